//! The interface that every chip of this crate implements. [`Gpu`] is implemented once, for all types that have this
//! interface.

use std::ops::Range;

use reconverge_simt::vram::{Fills, Vram};
use reconverge_simt::{Engine, Options};

use crate::capture::Watch;
use crate::observe::Observer;
use crate::unknown::Unknown;
use crate::{Fault, Gpu, Submission};

/// A chip of this crate. A type that implements this trait also implements [`Gpu`].
pub(crate) trait SharedParts: Send {
    /// See [`Gpu::submit`].
    fn submit(&mut self, memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault>;

    /// See [`Gpu::push`].
    fn push(
        &mut self,
        _memory: Vram<'_>,
        segments: &[Range<usize>],
        _buffers: &[Range<usize>],
    ) -> Result<(), Fault> {
        Err(Fault::Malformed(format!(
            "cannot read {} segments: this chip does not read commands from memory",
            segments.len()
        )))
    }

    /// See [`Gpu::share`].
    fn share(&mut self, parts: Option<&[Range<usize>]>);

    /// See [`Gpu::replaced`].
    fn replaced(&mut self, part: &Range<usize>);

    /// Returns the options with which programs run, and the observer.
    fn control(&mut self) -> (&mut Options, &mut Watch);

    /// See [`Gpu::unknown`].
    fn unknown(&self) -> &Unknown;

    /// See [`Gpu::draws`].
    fn draws(&self) -> u64;

    /// See [`Gpu::take_remarks`].
    fn take_remarks(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Executes commands. A clear does not store its bytes at once, but adds an outstanding fill to `memory`. A fill is
/// stored when its bytes are read, or after the last command. If the caller's `memory` already collects fills, the
/// caller stores the fills.
fn with_fills(memory: Vram<'_>, run: impl FnOnce(Vram<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
    if memory.may_have_fills() {
        return run(memory);
    }
    let fills = Fills::default();
    let memory = memory.with_fills(&fills);
    let result = run(memory);
    memory.settle(0..memory.len());
    result
}

impl<C: SharedParts> Gpu for C {
    fn submit(&mut self, memory: Vram<'_>, submission: &Submission<'_>) -> Result<(), Fault> {
        with_fills(memory, |memory| SharedParts::submit(self, memory, submission))
    }

    fn push(
        &mut self,
        memory: Vram<'_>,
        segments: &[Range<usize>],
        buffers: &[Range<usize>],
    ) -> Result<(), Fault> {
        with_fills(memory, |memory| SharedParts::push(self, memory, segments, buffers))
    }

    fn share(&mut self, parts: Option<&[Range<usize>]>) {
        SharedParts::share(self, parts);
    }

    fn replaced(&mut self, part: &Range<usize>) {
        SharedParts::replaced(self, part);
    }

    fn observe(&mut self, observer: Box<dyn Observer>) {
        *self.control().1 = Watch::new(observer);
    }

    fn use_engine(&mut self, engine: Engine) {
        self.control().0.engine = engine;
    }

    fn unknown(&self) -> Vec<(String, u64)> {
        SharedParts::unknown(self).list()
    }

    fn each_unknown(&self, visit: &mut dyn FnMut(&str, u64)) {
        SharedParts::unknown(self).each(visit);
    }

    fn draws(&self) -> u64 {
        SharedParts::draws(self)
    }

    fn take_remarks(&mut self) -> Vec<String> {
        SharedParts::take_remarks(self)
    }
}
