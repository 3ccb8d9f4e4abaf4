//! Reads the files of shader cases. Each line of a file states its machine.

use reconverge_isa::Isa;
use serde::Deserialize;

use crate::corpus::Shader;
use crate::{Case, CaseKind, ReadError, json_lines, r500, r700, tesla};

#[derive(Deserialize)]
struct Header {
    name: String,
    arch: String,
}

/// Parses a line as a case of one machine.
type Schema = fn(&[u8]) -> serde_json::Result<CaseKind>;

/// The machines for which shader cases exist.
const SCHEMAS: [(Isa, Schema); 3] = [
    (r500::R500Case::ISA, |line| Ok(CaseKind::R500(serde_json::from_slice(line)?))),
    (r700::R700Case::ISA, |line| Ok(CaseKind::R700(serde_json::from_slice(line)?))),
    (tesla::TeslaCase::ISA, |line| Ok(CaseKind::Tesla(serde_json::from_slice(line)?))),
];

/// Returns the cases of a JSON Lines file.
///
/// # Errors
/// Fails if a line is not a case.
pub(crate) fn read(path: &str, bytes: &[u8]) -> Result<Vec<Case>, ReadError> {
    let headers: Vec<Header> = json_lines(path, bytes).collect::<Result<_, _>>()?;
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    headers
        .into_iter()
        .zip(lines)
        .map(|(header, (index, line))| {
            let bad = |error: serde_json::Error| ReadError::Line {
                file: path.to_owned(),
                line: index + 1,
                why: format!("{}: {error}", header.name),
            };
            let kind = match SCHEMAS.iter().find(|(isa, _)| isa.name() == header.arch) {
                Some((_, read)) => read(line).map_err(bad)?,
                None => CaseKind::Unsupported(format!("machine `{}`", header.arch)),
            };
            Ok(Case { file: path.to_owned(), name: header.name, kind })
        })
        .collect()
}

/// Returns the cases of a file of programs that LLVM compiled.
///
/// # Errors
/// Fails if a line is not a case with a program from LLVM.
pub(crate) fn read_llvm(path: &str, bytes: &[u8]) -> Result<Vec<Case>, ReadError> {
    json_lines::<r700::LlvmCase>(path, bytes)
        .map(|case| {
            let case = case?;
            let (file, name) = (path.to_owned(), case.id.clone());
            Ok(Case { file, name, kind: CaseKind::Llvm(Box::new(case)) })
        })
        .collect()
}
