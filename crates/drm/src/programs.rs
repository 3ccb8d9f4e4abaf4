//! Writes each program that the chip runs to a file. Other commands can read the files.
//!
//! The folder is the value of `RECONVERGE_DRM_PROGRAMS`. The name of a file is CHIP-STAGE-NUMBER. The number is a hash
//! of the content. Programs of R600 and R700 are written as words (`.hex`). Programs of R300 to R500 and of NVIDIA
//! chips are written as source text (`.s`). The text contains the registers or the address of the program. If a file
//! already has the right content, a process does not write the file again. Therefore, several processes can use the
//! folder at the same time. Fetch shaders are not written. All fetch shaders are in one buffer, and the end of a fetch
//! shader in the buffer is unknown.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use reconverge_gpu::observe::ChipProgram;
use reconverge_isa::program::Stage;

use crate::whole;

/// The folder, and the programs that were written to the folder.
#[derive(Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
    known: HashSet<ChipProgram>,
}

impl Programs {
    /// Creates a writer for an existing folder.
    pub(crate) fn new(folder: &Path) -> Programs {
        Programs { folder: folder.to_path_buf(), known: HashSet::new() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a vertex, geometry or pixel program. Does nothing if the program was already written.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub(crate) fn write(&mut self, program: &ChipProgram) -> io::Result<()> {
        if program.stage == Stage::Fetch || self.known.contains(program) {
            return Ok(());
        }
        self.known.insert(program.clone());
        let (ending, text) = program.file();
        let (chip, stage) = (program.chip, program.stage.name());
        let path = self.folder.join(format!("{chip}-{stage}-{:016x}.{ending}", number(&text)));
        // An existing file may be truncated, because earlier versions did not write files atomically.
        if whole::is(&path, text.as_bytes()) { Ok(()) } else { whole::replace(&path, text.as_bytes()) }
    }
}

/// Returns the 64-bit FNV-1a hash of the content.
fn number(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use reconverge_isa::Isa;

    use super::*;

    #[test]
    fn a_program_is_a_file_of_words_that_says_what_they_are_for() {
        let folder = std::env::temp_dir().join(format!("reconverge-programs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut programs = Programs::new(&folder);
        for stage in [Stage::Pixel, Stage::Pixel, Stage::Vertex, Stage::Fetch] {
            let (words, base, state) = (vec![0xc000_0000, 0x9420_0688], 0, Vec::new());
            programs
                .write(&ChipProgram { isa: Isa::R700, chip: "rv770", stage, words, base, state })
                .unwrap();
        }
        let mut files: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
        let expected = ["pixel", "vertex"]
            .map(|stage| format!("# isa r700, chip rv770, stage {stage}\nc0000000\n94200688\n"));
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_program_is_written_whole_or_not_at_all() {
        let name = "programs::tests::a_program_is_written_whole_or_not_at_all";
        if !crate::whole::tests::on_a_full_disk(name, 60) {
            return;
        }
        let folder = std::env::temp_dir().join(format!("reconverge-programs-full-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = |words| {
            let (isa, chip, stage) = (Isa::R700, "rv770", Stage::Pixel);
            ChipProgram { isa, chip, stage, words, base: 0, state: Vec::new() }
        };
        let mut programs = Programs::new(&folder);
        assert!(programs.write(&program(vec![0; 8])).is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        programs.write(&program(vec![0; 2])).unwrap();
        let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        let whole = std::fs::read(&file).unwrap();
        // A truncated file is replaced.
        std::fs::write(&file, "").unwrap();
        Programs::new(&folder).write(&program(vec![0; 2])).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), whole);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
