//! For `reconverge piglit --compare`, records the contents of surfaces after each draw that stores into the surfaces.
//!
//! The folder contains the file `surfaces.jsonl`. This file has a JSON object for each draw that stores into a surface.
//! The objects are in the order of the draws. An object has these fields:
//!
//! | field | contents |
//! |---|---|
//! | `draw` | number of the draw. The first draw has the number 1 |
//! | `targets` | `name`, `format`, `bytes` of an element, `pitch`, `rows`, and a digest of the content |
//! | `programs` | for each stage, the words of its current program |
//!
//! For one selected draw, the contents of the surfaces are also written to files `draw-N.NAME.bin`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use reconverge_gpu::observe::{ChipProgram, Target};
use reconverge_simt::vram::Vram;

use crate::json;
use crate::whole;

/// Name of the file that lists the draws.
const INDEX: &str = "surfaces.jsonl";

/// The folder to which the contents of surfaces are written.
#[derive(Debug)]
pub(crate) struct Surfaces {
    folder: PathBuf,
    index: File,
    /// The number of the draw for which the complete contents of the surfaces are written.
    whole: Option<u64>,
    /// The words of the current program of each stage.
    programs: BTreeMap<&'static str, Vec<u32>>,
}

impl Surfaces {
    /// Begins a list in an existing folder.
    ///
    /// # Errors
    /// The list cannot be opened.
    pub(crate) fn new(folder: &Path, whole: Option<u64>) -> io::Result<Surfaces> {
        let index = OpenOptions::new().append(true).create(true).open(folder.join(INDEX))?;
        Ok(Surfaces { folder: folder.to_path_buf(), index, whole, programs: BTreeMap::new() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Records that the chip runs a program from now on.
    pub(crate) fn program(&mut self, program: &ChipProgram) {
        self.programs.insert(program.stage.name(), program.words.clone());
    }

    /// Records the contents of the surfaces after a draw.
    ///
    /// # Errors
    /// The files cannot be written.
    pub(crate) fn draw(&mut self, draw: u64, targets: &[Target], memory: Vram<'_>) -> io::Result<()> {
        let mut entries = Vec::new();
        for target in targets {
            let content = target.content(memory);
            let mut hasher = DefaultHasher::new();
            hasher.write(&content);
            entries.push(format!(
                "{{\"name\": {}, \"format\": {}, \"bytes\": {}, \"pitch\": {}, \"rows\": {}, \"digest\": \"{:016x}\"}}",
                json::string(&target.name),
                json::string(&target.format),
                target.bytes,
                target.pitch,
                target.rows,
                hasher.finish()
            ));
            if self.whole == Some(draw) {
                whole::replace(&self.folder.join(format!("draw-{draw}.{}.bin", target.name)), &content)?;
            }
        }
        let programs = self.programs.iter().map(|(stage, words)| {
            let words: String = words.iter().map(|word| format!("{word:08x}")).collect();
            format!("{}: \"{words}\"", json::string(stage))
        });
        let line = format!(
            "{{\"draw\": {draw}, \"targets\": [{}], \"programs\": {{{}}}}}\n",
            entries.join(", "),
            programs.collect::<Vec<_>>().join(", ")
        );
        whole::append(&mut self.index, line.as_bytes())
    }
}
