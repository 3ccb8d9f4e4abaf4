//! Shaders as files: each program that the chip runs, once, for the other commands to read.
//!
//! In the folder of `RECONVERGE_DRM_PROGRAMS` a program is a file CHIP-STAGE-NUMBER.hex, of which the number is made from its
//! words. Processes share the folder: a file that is there is not written again.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use reconverge_gpu::ChipProgram;

use crate::device::Device;
use crate::messages::say_once;
use crate::node::State;

/// Writes the programs that have come up since the last call.
pub(crate) fn write(device: &Device, state: &mut State) {
    let (Some(folder), Some(gpu)) = (&device.programs, &mut state.gpu) else { return };
    for program in gpu.take_programs() {
        if let Err(error) = write_one(folder, &program) {
            say_once(&format!("{}: {error}", folder.display()));
        }
    }
}

fn write_one(folder: &Path, program: &ChipProgram) -> std::io::Result<()> {
    let ChipProgram { isa, chip, stage, words } = program;
    let (isa, stage) = (isa.name(), stage.name());
    let path = folder.join(format!("{chip}-{stage}-{:016x}.hex", number(words)));
    let mut text = format!("# isa {isa}, chip {chip}, stage {stage}\n");
    for word in words {
        let _ = writeln!(text, "{word:08x}"); // A string never refuses.
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// FNV-1a over the words, 64 bits.
fn number(words: &[u32]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
