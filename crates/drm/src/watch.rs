//! What looks at the chip: programs that are changed on their way in and written, draws that are captured, surfaces.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reconverge_gpu::observe::{Captured, ChipProgram, Observer, Target};
use reconverge_gpu::patch::Patch;

use crate::capture::Folder;
use crate::messages::say_once;
use crate::programs::Programs;
use crate::surfaces::Surfaces;

/// What is to be looked at, and what was seen.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The folder of captured draws.
    pub(crate) capture: Option<PathBuf>,
    /// Words of programs to change.
    pub(crate) patch: Option<Patch>,
    /// The folder for what draws leave, and the draw whose surfaces are written whole.
    pub(crate) surfaces: Option<(PathBuf, Option<u64>)>,
    /// The folder for programs.
    pub(crate) programs: Option<PathBuf>,
    /// What was seen.
    pub(crate) counts: Mutex<Counts>,
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
    /// What was seen so far.
    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What looks at the chip, if anything is to be looked at.
    pub(crate) fn watcher(&'static self) -> Option<Box<dyn Observer>> {
        let Watch { capture, patch, surfaces, programs, .. } = self;
        if capture.is_none() && patch.is_none() && surfaces.is_none() && programs.is_none() {
            return None;
        }
        let folder = capture.as_ref().and_then(|path| {
            let failed = |error| self.not_captured(format!("{}: {error}", path.display()));
            Folder::new(path).map_err(failed).ok()
        });
        let surfaces = surfaces.as_ref().and_then(|(path, whole)| {
            let failed = |error| say_once(&format!("{}: {error}", path.display()));
            Surfaces::new(path, *whole).map_err(failed).ok()
        });
        let programs = programs.as_deref().map(Programs::new);
        Some(Box::new(Watcher { watch: self, folder, surfaces, programs }))
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
    /// Absent where surfaces are not looked at, or cannot be written.
    surfaces: Option<Surfaces>,
    programs: Option<Programs>,
}

impl Observer for Watcher {
    fn program(&mut self, program: &mut ChipProgram) {
        if let Some(patch) = &self.watch.patch {
            self.watch.counts().patched += patch.apply(&mut program.words);
        }
        if let Some(surfaces) = &mut self.surfaces {
            surfaces.program(program);
        }
        if let Some(programs) = &mut self.programs
            && let Err(error) = programs.write(program)
        {
            say_once(&format!("{}: {error}", programs.folder().display()));
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

    fn looks(&self) -> bool {
        self.surfaces.is_some()
    }

    fn surfaces(&mut self, draw: u64, targets: &[Target], memory: &[u8]) {
        let Some(surfaces) = &mut self.surfaces else { return };
        if let Err(error) = surfaces.draw(draw, targets, memory) {
            say_once(&format!("surfaces of draw {draw} and all after it are not written: {error}"));
            self.surfaces = None;
        }
    }
}
