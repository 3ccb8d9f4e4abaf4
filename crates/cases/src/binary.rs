//! Bare programs: words, containers, images. Each must survive the round trip through text.

use reconverge_isa::{Isa, Program};

use crate::{Case, Folder, ReadError, Verdict};

/// A program and what is known about it.
#[derive(Clone, Debug)]
pub struct RoundTrip {
    /// The machine.
    pub isa: Isa,
    /// The chip.
    pub chip: Option<String>,
    /// Program type, where it matters for decoding.
    pub stage: Option<String>,
    /// The program.
    pub program: Program,
}

impl RoundTrip {
    /// Words to text and back.
    pub fn judge(&self) -> Verdict {
        let (chip, stage) = (self.chip.as_deref(), self.stage.as_deref());
        match reconverge_workbench::round_trip(self.isa, chip, stage, &self.program) {
            Ok(()) => Verdict::PASSED,
            Err(why) => Verdict::Failed(why),
        }
    }
}

/// The programs of a file.
///
/// # Errors
/// The file is not recognised, or is damaged.
pub fn read(
    path: &str,
    _bytes: &[u8],
    _folder: &dyn Folder,
    _isa: Option<Isa>,
) -> Result<Vec<Case>, ReadError> {
    Err(ReadError::Unknown { file: path.to_owned() })
}
