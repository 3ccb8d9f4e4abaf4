//! The engine of a machine, and the options of a run. Results never depend on the engine, the level or the number of
//! threads.

use std::num::NonZeroUsize;

use reconverge_isa::limits::INSTRUCTIONS;

use crate::level::Level;
use crate::machine::Mode;
use crate::pool;

reconverge_isa::choices! {
    /// An engine of a machine.
    #[derive(Default, Hash)]
    pub enum Engine {
        /// The reference interpreter. A reader can compare the interpreter's code with the manual line by line.
        #[default]
        Reference = "reference",
        /// The fast engine. This engine lowers the program once, and executes operations on whole rows of lanes.
        Fast = "fast",
        /// Host code that is compiled for the program at run time. If the machine or the processor does not support
        /// compiled code, the fast engine runs instead.
        Compiled = "compiled",
        /// The reference interpreter and the fast engine. Both engines run the program, and [`crate::lockstep`]
        /// compares the states of the engines.
        Lockstep = "lockstep",
        /// The reference interpreter and the compiled engine. Both engines run the program, and [`crate::lockstep`]
        /// compares the states of the engines.
        LockstepCompiled = "lockstep=reference,compiled",
    }
}

impl Engine {
    /// Returns whether this engine is a lockstep: it runs two other engines and compares the two.
    pub const fn is_lockstep(self) -> bool {
        matches!(self, Engine::Lockstep | Engine::LockstepCompiled)
    }

    /// Returns this engine. The fast engine replaces the compiled engine, also in lockstep.
    pub const fn not_compiled(self) -> Engine {
        match self {
            Engine::Compiled => Engine::Fast,
            Engine::LockstepCompiled => Engine::Lockstep,
            Engine::Reference | Engine::Fast | Engine::Lockstep => self,
        }
    }

    /// Returns the engine with a name. `lockstep=reference,fast` means the same engine as `lockstep`.
    pub fn from_name(name: &str) -> Option<Engine> {
        let name = if name == "lockstep=reference,fast" { "lockstep" } else { name };
        Engine::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

/// Options for running a launch. The options include neither the launch nor the hardware limits. Each machine defines
/// its hardware limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Behaviour in cases that the documents leave undefined.
    pub mode: Mode,
    /// Whether strict mode checks the memory that groups share (Tesla's s[], R700's local data share). The check finds
    /// races, and reads of bytes that were never written.
    pub race_check: bool,
    /// The requested engine.
    pub engine: Engine,
    /// Level of vector instructions that the fast engine uses. `None` means the highest level that the processor has.
    pub level: Option<Level>,
    /// Maximum number of instructions that a group (Tesla: a block) may issue. The watchdog stops a group that exceeds
    /// this number. The default is [`INSTRUCTIONS`].
    pub watchdog: u64,
    /// Maximum number of host threads. `None` means all threads of the pool in which the launch runs.
    pub jobs: Option<NonZeroUsize>,
    /// Whether blocks of Tesla run ahead of earlier blocks even if this does not save time. If `false`, the engine
    /// measures the time. The results are the same. Tests set this field.
    pub always_ahead: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mode: Mode::Strict,
            race_check: true,
            engine: Engine::Fast,
            level: None,
            watchdog: INSTRUCTIONS.get(),
            jobs: None,
            always_ahead: false,
        }
    }
}

impl Options {
    /// Returns the engine that runs a launch. The options name an engine. If this build has vector code for the
    /// processor ([`Level::any`]), the function returns this engine. Otherwise, it returns the reference interpreter.
    pub fn engine(&self) -> Engine {
        if Level::any() { self.engine } else { Engine::Reference }
    }

    /// Returns whether a run checks for races.
    pub fn checks_races(&self) -> bool {
        self.race_check && self.mode == Mode::Strict
    }

    /// Returns the level for which programs are lowered.
    pub fn level(&self) -> Level {
        self.level.unwrap_or_else(Level::best)
    }

    /// Returns the number of host threads that may run groups. The result is the number of threads in the pool of
    /// [`pool::install`], but at most [`Options::jobs`].
    pub fn workers(&self) -> usize {
        let threads = pool::threads();
        self.jobs.map_or(threads, |jobs| threads.min(jobs.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_found_by_its_name() {
        for engine in Engine::ALL {
            assert_eq!(Engine::from_name(engine.name()), Some(engine));
        }
        assert_eq!(Engine::from_name("slow"), None);
    }

    #[test]
    fn jobs_bound_the_workers_and_never_exceed_the_pool() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
        let workers =
            |jobs| pool.install(|| Options { jobs: NonZeroUsize::new(jobs), ..Options::default() }.workers());
        assert_eq!([workers(0), workers(1), workers(2), workers(9)], [3, 1, 2, 3]);
    }
}
