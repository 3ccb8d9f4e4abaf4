//! Programs without expected results. A program comes from words, a container or an image. Each program must survive
//! the conversion to text and back.
//!
//! Bare words do not state their machine. The machine comes from the caller, or from the file `index.json`. This file
//! is in the folder of the words' file, or in a parent folder.

use reconverge_isa::lint::Finding;
use reconverge_isa::{Image, Isa, Program};
use reconverge_workbench::open::{OpenError, has_source, open};
use reconverge_workbench::target::{TargetError, isa_of_chip};
use reconverge_workbench::{Known, Target, round_trip, round_trip_image};
use serde::Deserialize;

use crate::{Case, CaseKind, Folder, ReadError, Verdict};

/// A program and its machine.
#[derive(Clone, Debug)]
pub struct RoundTrip {
    /// The machine and chip.
    pub target: Target,
    /// The program.
    pub program: Program,
    /// The whole file, which must also survive the conversion to text and back. Only the case of a file's first program
    /// has this field. The file must have modules, and all programs of the file must be for one chip.
    pub image: Option<Box<Image>>,
}

impl RoundTrip {
    /// Converts the program to text and back, and compares the words. The verdict reports malformed parts of the
    /// program as findings.
    pub fn judge(&self) -> Verdict {
        if let Err(why) = round_trip(&self.target, &self.program) {
            return Verdict::Failed(why);
        }
        if let Some(Err(why)) = self.image.as_deref().map(|image| round_trip_image(&self.target, image)) {
            return Verdict::Failed(why);
        }
        let machine = self.target.machine();
        match machine.faults(&self.target, &self.program) {
            Ok(faults) => {
                let finding =
                    |fault: Finding| format!("at {}: {}", self.target.isa.spelled(fault.pc), fault.message);
                Verdict::Passed { findings: faults.into_iter().map(finding).collect() }
            }
            Err(error) => Verdict::Failed(error.to_string()),
        }
    }
}

/// An entry of `index.json`.
#[derive(Deserialize)]
struct Item {
    file: String,
    isa: String,
    arch: Option<String>,
    stage: Option<String>,
}

#[derive(Deserialize)]
struct Index {
    items: Vec<Item>,
}

/// Returns the programs of a file.
///
/// # Errors
/// Fails if the file is not recognised, or if the file is damaged.
pub fn read(path: &str, bytes: &[u8], folder: &dyn Folder, isa: Option<Isa>) -> Result<Vec<Case>, ReadError> {
    read_as(path, bytes, folder, has_source(path, bytes), Known { isa, ..Known::default() })
}

/// Returns the programs of a file that is an assembler source or a container.
///
/// # Errors
/// Fails if the file is damaged, or if the file's machine, chip or stage contradicts `known`.
pub fn read_as(
    path: &str,
    bytes: &[u8],
    folder: &dyn Folder,
    is_source: bool,
    mut known: Known,
) -> Result<Vec<Case>, ReadError> {
    let item = indexed(folder);
    let case = |name: &str, kind| Case { file: path.to_owned(), name: name.to_owned(), kind };
    if let Some(item) = &item {
        // `index.json` names the older chips r600. The machine R700 includes these chips.
        known.isa = known.isa.or(match item.isa.as_str() {
            "r600" => Some(Isa::R700),
            other => other.parse().ok(),
        });
        known.chip = item.arch.clone().filter(|arch| isa_of_chip(arch).is_some());
        known.stage = item.stage.as_deref().and_then(|stage| stage.parse().ok());
    }
    if is_source {
        known = known.with_included(bytes, &mut |file| folder.read(file));
    }
    let opened = match open(bytes, is_source, &known) {
        Ok(opened) => opened,
        Err(OpenError::Target(TargetError::Unknown(_))) => {
            let why = "unknown machine of bare words: expected an index.json in a parent folder, or --isa";
            return Ok(vec![case("", CaseKind::Unsupported(why.to_owned()))]);
        }
        Err(OpenError::Source(errors)) => {
            let (line, column) = errors[0].line_column(&String::from_utf8_lossy(bytes));
            let file = errors[0].file.as_ref().map(|file| format!("{}: ", file.name)).unwrap_or_default();
            let why = format!("{file}line {line}, column {column}: {}", errors[0]);
            return Err(ReadError::Damaged { file: path.to_owned(), why });
        }
        Err(error) => return Err(ReadError::Unknown { file: path.to_owned(), why: error.to_string() }),
    };
    if opened.image.programs.is_empty() {
        return Err(ReadError::Damaged { file: path.to_owned(), why: "no program found".to_owned() });
    }
    let (target, image) = (opened.target, opened.image);
    let whole = image;
    // If a file does not have modules, the file contains only programs. In this case, each program is tested
    // separately. Each program of a file for several chips is also tested separately, because one text cannot contain
    // programs for several chips.
    let one_text = !whole.modules.is_empty() && target.several_chips(&whole).is_none();
    let mut image = one_text.then(|| Box::new(whole.clone()));
    let programs = whole.programs.clone().into_iter();
    Ok(programs
        .map(|program| {
            let name = program.name.clone().unwrap_or_default();
            let target = target.for_program(&whole, &program);
            let image = image.take();
            case(&name, CaseKind::RoundTrip(Box::new(RoundTrip { target, program, image })))
        })
        .collect())
}

fn indexed(folder: &dyn Folder) -> Option<Item> {
    let (relative, index) = folder.above("index.json")?;
    let index: Index = serde_json::from_slice(&index).ok()?;
    index.items.into_iter().find(|item| item.file == relative)
}
