//! Assembly text of LLVM's R600 target with encodings (`llc -march=r600 --show-mc-encoding`).
//!
//! ```text
//!     .section .AMDGPU.config       pairs of a register and its value, before each function
//!     .long 165968
//!     .long 3
//! ps:                                     ; @ps
//!     ALU 6, @4, KC0[], KC1[]             ; encoding: [0x04,0x00,0x00,0x00,0x00,0x00,0x18,0xa0]
//!     ALU clause starting at 4:           ; encoding: []
//! ```
//! (LLVM `R600AsmPrinter.cpp`, `R600MCCodeEmitter.cpp`.) Addresses count pairs of words.

use super::found::{LoggedShader, is_number, missing};
use super::lines::{ENCODING, LogLine, LogLines};
use crate::r600_elf::configure;
use crate::{Error, bytes};

/// The section that states the registers of functions.
pub(super) const CONFIG: &str = ".AMDGPU.config";

/// Registers of the program resources of Evergreen and Cayman. (Mesa `evergreend.h`)
const EVERGREEN: [u32; 3] = [0x28844, 0x28860, 0x288d4];

/// Facts in the lines before a function.
#[derive(Default)]
pub(super) struct Preceding<'a> {
    in_config: bool,
    pairs: Vec<u32>,
    label: Option<&'a str>,
}

impl<'a> Preceding<'a> {
    /// Reads a line that is not part of a function.
    pub(super) fn see(&mut self, line: LogLine<'a>) -> Result<(), Error> {
        let mut words = line.text.split_ascii_whitespace();
        match words.next() {
            Some(".section") => {
                self.in_config = words.next().is_some_and(|name| name.trim_matches(['"', ',']) == CONFIG);
                if self.in_config {
                    self.pairs.clear();
                }
            }
            Some(".text" | ".data") => self.in_config = false,
            Some(".long") if self.in_config => {
                let value = words.next().unwrap_or("");
                let number = value
                    .parse()
                    .map_err(|_| Error::at(line.number, line.text, value, "a number of 32 bits"))?;
                self.pairs.push(number);
            }
            Some(label) if !label.starts_with(['.', ';']) => {
                if let Some(label) = label.strip_suffix(':') {
                    self.label = Some(label);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Reads a function, starting with its first line that has an encoding.
pub(super) fn read<'a>(
    lines: &mut LogLines<'a>,
    first: LogLine<'a>,
    before: &mut Preceding<'a>,
) -> Result<LoggedShader, Error> {
    let mut found = LoggedShader::new(first);
    found.isa = Some(reconverge_isa::Isa::R700);
    found.name = before.label.take().unwrap_or("function").to_owned();
    let mut code = Vec::new();
    lines.back(first);
    while let Some(line) = lines.of_dump() {
        let start = line.text.trim_ascii_start();
        if start.starts_with(".Lfunc_end") || start.starts_with(".section") {
            lines.back(line);
            break;
        }
        let Some((text, encoding)) = line.text.split_once(ENCODING) else { continue };
        let encoding = encoding.split_once(']').map_or(encoding, |(bytes, _)| bytes);
        if let Some((_, address)) = text.split_once("clause starting at ") {
            let address = address.trim().trim_end_matches(':');
            let at = address.parse::<usize>().ok().and_then(|at| at.checked_mul(8));
            // Before the clause, there may be a gap for alignment. The gap is smaller than one fetch instruction.
            let at = at.filter(|at| (code.len()..code.len() + 16).contains(at));
            let expected = "the address after the preceding instructions";
            code.resize(at.ok_or_else(|| Error::at(line.number, line.text, address, expected))?, 0);
        }
        for byte in encoding.split(',').map(str::trim).filter(|byte| !byte.is_empty()) {
            let digits = byte.strip_prefix("0x").filter(|digits| digits.len() == 2);
            let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let expected = "bytes such as 0x1f (code with relocations requires an object: llc -filetype=obj)";
            code.push(value.ok_or_else(|| Error::at(line.number, line.text, byte, expected))?);
        }
    }
    found.words = bytes::words("the encodings of a function", first.at as u64, &code)?;
    let (pairs, rest) = before.pairs.as_chunks::<2>();
    if !rest.is_empty() {
        found.damage =
            Some(Box::new(missing(first, "pairs of a register and its value in .AMDGPU.config".to_owned())));
    }
    if pairs.iter().any(|[register, _]| EVERGREEN.contains(register)) {
        found.foreign = Some("Evergreen or Cayman (according to the registers in .AMDGPU.config)".to_owned());
    } else {
        let pairs: Vec<(u32, u32)> = pairs.iter().map(|[register, value]| (*register, *value)).collect();
        let mut program = reconverge_isa::Program::default();
        configure(&mut program, &pairs, &mut found.notes);
        (found.stage, found.state, found.resources) = (program.stage, program.state, program.resources);
    }
    before.pairs.clear();
    Ok(found)
}

/// Returns the first Evergreen or Cayman instruction in a text, with the number of its line. The function recognizes
/// instructions that LLVM prints only for Evergreen and Cayman.
pub(crate) fn foreign(text: &str) -> Option<(usize, &str)> {
    // The names of memory instructions begin with one of these strings.
    const NAMES: [&str; 3] = ["CF_TC_EG", "CF_VC_EG", "MEM_RAT"];
    let of_line = |line: &'_ str| {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_foreign = |word: &&str| {
            NAMES.iter().any(|name| word.starts_with(name))
                || (word.starts_with("CF_") || word.starts_with("RAT_"))
                    && ["_EG", "_CM", "_eg", "_cm"].iter().any(|end| word.ends_with(end))
        };
        words.filter(|word| !is_number(word)).find(is_foreign).map(|word| {
            word.as_ptr() as usize - line.as_ptr() as usize
                ..word.len() + (word.as_ptr() as usize - line.as_ptr() as usize)
        })
    };
    (1..).zip(text.lines()).find_map(|(number, line)| Some((number, line.get(of_line(line)?)?)))
}
