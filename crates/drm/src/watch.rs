//! Observers of the chip. The observers replace words of programs, and write programs, captured draws and surfaces to
//! files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use reconverge_board::patch::Patch;
use reconverge_gpu::observe::{Captured, ChipProgram, Observer, Target};
use reconverge_simt::vram::Vram;

use crate::capture::{End, Folder};
use crate::lock::Lock;
use crate::messages::say_once;
use crate::programs::Programs;
use crate::surfaces::Surfaces;
use crate::tally;

/// The observations that the user has selected, and their counts.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The folder to which draws are captured.
    pub(crate) capture: Option<PathBuf>,
    /// The number of the first draw that is captured.
    pub(crate) capture_from: u64,
    /// The program words that are replaced, and the new words.
    pub(crate) patch: Option<Patch>,
    /// The folder for the contents of surfaces after draws, and a draw number. After the draw with this number, the
    /// library writes complete surfaces.
    pub(crate) surfaces: Option<(PathBuf, Option<u64>)>,
    /// The folder to which programs are written.
    pub(crate) programs: Option<PathBuf>,
    /// Number of launch files that were written.
    pub(crate) captured: AtomicU64,
    /// Number of positions in programs at which words were replaced.
    pub(crate) patched: AtomicU64,
    /// Counts that have names.
    pub(crate) counts: Lock<Counts>,
}

/// Counts by name.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Reasons why draws were not captured. The value is the number of times that the reason occurred.
    pub(crate) uncaptured: BTreeMap<String, u64>,
    /// Number of files that could not be written. The key is the purpose of the files.
    pub(crate) lost: BTreeMap<String, u64>,
}

impl Watch {
    /// Changes the counts that have names. Does nothing if the process was forked while another thread changed the
    /// counts.
    fn counted(&self, change: impl FnOnce(&mut Counts)) {
        if let Ok(mut counts) = self.counts.lock() {
            change(&mut counts);
        }
    }

    /// Counts a file that could not be written.
    pub(crate) fn lost(&self, what: &str) {
        self.counted(|counts| tally::count(&mut counts.lost, what));
    }

    /// Resets the counts to zero.
    pub(crate) fn restart(&self) {
        self.captured.store(0, Ordering::Relaxed);
        self.patched.store(0, Ordering::Relaxed);
        self.counted(|counts| *counts = Counts::default());
    }

    /// Returns the observer of the chip, if any observation is selected.
    pub(crate) fn watcher(&'static self) -> Option<Box<dyn Observer>> {
        let Watch { capture, patch, surfaces, programs, .. } = self;
        if capture.is_none() && patch.is_none() && surfaces.is_none() && programs.is_none() {
            return None;
        }
        let folder = capture.as_ref().and_then(|path| {
            let failed = |error| {
                self.not_captured(format!("{}: {error}", path.display()));
                self.lost("captures");
            };
            Folder::new(path).map_err(failed).ok()
        });
        let surfaces = surfaces.as_ref().and_then(|(path, whole)| {
            let failed = |error| {
                say_once(&format!("{}: {error}", path.display()));
                self.lost("surfaces");
            };
            Surfaces::new(path, *whole).map_err(failed).ok()
        });
        let programs = programs.as_deref().map(Programs::new);
        Some(Box::new(Watcher { watch: self, folder, surfaces, programs }))
    }

    fn not_captured(&self, why: String) {
        say_once(&format!("not captured: {why}"));
        self.counted(|counts| tally::count(&mut counts.uncaptured, &why));
    }
}

#[derive(Debug)]
struct Watcher {
    watch: &'static Watch,
    /// The folder to which draws are captured. `None` if no draw is captured, or if no more draws can be captured.
    folder: Option<Folder>,
    /// The writer of the contents of surfaces. `None` if surfaces are not observed, or if the contents cannot be
    /// written.
    surfaces: Option<Surfaces>,
    programs: Option<Programs>,
}

impl Observer for Watcher {
    fn program(&mut self, program: &mut ChipProgram) {
        if let Some(patch) = &self.watch.patch {
            self.watch.patched.fetch_add(patch.apply(&mut program.words), Ordering::Relaxed);
        }
        if let Some(surfaces) = &mut self.surfaces {
            surfaces.program(program);
        }
        if let Some(programs) = &mut self.programs
            && let Err(error) = programs.write(program)
        {
            say_once(&format!("{}: programs are not written: {error}", programs.folder().display()));
            self.watch.lost("programs");
        }
    }

    fn captures(&self, draw: u64) -> bool {
        self.folder.is_some() && draw >= self.watch.capture_from
    }

    fn draw(&mut self, draw: &Captured) {
        let Some(folder) = &mut self.folder else { return };
        match folder.draw(draw) {
            Ok(written) => {
                self.watch.captured.fetch_add(written.launches as u64, Ordering::Relaxed);
                written.not.into_iter().for_each(|why| self.watch.not_captured(why));
            }
            Err(End { why, lost }) => {
                self.watch.not_captured(format!("draw {} and all later draws: {why}", draw.number));
                if lost {
                    self.watch.lost("captures");
                }
                self.folder = None;
            }
        }
    }

    fn looks(&self) -> bool {
        self.surfaces.is_some()
    }

    fn surfaces(&mut self, draw: u64, targets: &[Target], memory: Vram<'_>) {
        let Some(surfaces) = &mut self.surfaces else { return };
        if let Err(error) = surfaces.draw(draw, targets, memory) {
            say_once(&format!(
                "{}: the surfaces of draw {draw} and of all later draws are not written: {error}",
                surfaces.folder().display()
            ));
            self.watch.lost("surfaces");
            self.surfaces = None;
        }
    }
}
