//! What looks at the chip: words of programs that are changed on their way in, and draws that are captured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reconverge_gpu::observe::{Captured, Observer};
use reconverge_gpu::patch::Patch;

use crate::capture::Folder;
use crate::messages::say_once;
use crate::programs::Programs;

/// What is to be looked at, and what was seen.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The folder of captured draws.
    capture: Option<PathBuf>,
    /// Words of programs to change.
    patch: Option<Patch>,
    /// Where programs are written.
    programs: Option<Programs>,
    counts: Mutex<Counts>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Launch files.
    pub(crate) captured: u64,
    /// Why draws were not captured, with how often.
    pub(crate) uncaptured: BTreeMap<String, u64>,
    /// Places in programs that were changed.
    pub(crate) patched: u64,
}

impl Watch {
    /// What is to be looked at, and nothing seen so far.
    pub(crate) fn new(capture: Option<PathBuf>, patch: Option<Patch>, programs: Option<Programs>) -> Watch {
        Watch { capture, patch, programs, counts: Mutex::default() }
    }

    /// What was seen so far.
    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What looks at the chip, if anything is to be looked at.
    pub(crate) fn watcher(&'static self) -> Option<Box<dyn Observer>> {
        if self.capture.is_none() && self.patch.is_none() && self.programs.is_none() {
            return None;
        }
        let folder = self.capture.as_ref().and_then(|path| {
            let failed = |error| self.not_captured(format!("{}: {error}", path.display()));
            Folder::new(path).map_err(failed).ok()
        });
        Some(Box::new(Watcher { watch: self, folder }))
    }

    fn not_captured(&self, why: String) {
        say_once(&format!("not captured: {why}"));
        *self.counts().uncaptured.entry(why).or_default() += 1;
    }
}

#[derive(Debug)]
struct Watcher {
    watch: &'static Watch,
    /// Absent where nothing is captured, or not any more.
    folder: Option<Folder>,
}

impl Observer for Watcher {
    fn program(&mut self, stage: &'static str, words: &mut [u32]) {
        if let Some(patch) = &self.watch.patch {
            self.watch.counts().patched += patch.apply(words);
        }
        if let Some(programs) = &self.watch.programs {
            programs.write(stage, words);
        }
    }

    fn captures(&self) -> bool {
        self.folder.is_some()
    }

    fn draw(&mut self, draw: &Captured) {
        let Some(folder) = &mut self.folder else { return };
        match folder.draw(draw) {
            Ok(written) => {
                self.watch.counts().captured += written.launches as u64;
                written.not.into_iter().for_each(|why| self.watch.not_captured(why));
            }
            Err(why) => {
                self.watch.not_captured(format!("draw {} and all after it: {why}", draw.number));
                self.folder = None;
            }
        }
    }
}
