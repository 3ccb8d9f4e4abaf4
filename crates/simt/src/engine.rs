//! Which of a machine's engines runs, and how. Results never depend on the engine, the level or the number of threads.

use std::num::NonZeroUsize;

use reconverge_isa::limits::INSTRUCTIONS;

use crate::level::Level;
use crate::machine::Mode;
use crate::pool;

reconverge_isa::choices! {
    /// An engine of a machine.
    #[derive(Default, Hash)]
    pub enum Engine {
        /// The clear interpreter, written to be read next to the manual.
        #[default]
        Reference = "reference",
        /// Lowered once, whole rows at a time.
        Fast = "fast",
        /// Code made for the program while it runs, where a machine and the processor have it; else as [`Engine::Fast`].
        Compiled = "compiled",
        /// The reference interpreter and the fast engine, compared while they run. ([`crate::lockstep`])
        Lockstep = "lockstep",
        /// The reference interpreter and the compiled engine, compared while they run.
        LockstepCompiled = "lockstep=reference,compiled",
    }
}

impl Engine {
    /// Whether two engines run and are compared.
    pub const fn is_lockstep(self) -> bool {
        matches!(self, Engine::Lockstep | Engine::LockstepCompiled)
    }

    /// The engine without code made for the program: the compiled one is the fast one with such code.
    pub const fn not_compiled(self) -> Engine {
        match self {
            Engine::Compiled => Engine::Fast,
            Engine::LockstepCompiled => Engine::Lockstep,
            Engine::Reference | Engine::Fast | Engine::Lockstep => self,
        }
    }

    /// The engine of a name. `lockstep=reference,fast` is `lockstep`.
    pub fn from_name(name: &str) -> Option<Engine> {
        let name = if name == "lockstep=reference,fast" { "lockstep" } else { name };
        Engine::ALL.into_iter().find(|engine| engine.name() == name)
    }
}

/// How a machine runs a launch. What a launch is, limits of the hardware included, belongs to the machine's own launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What happens where the documents leave behaviour undefined.
    pub mode: Mode,
    /// Whether strict mode looks for races on memory that groups share (Tesla's s[], R700's local data share), and for reads
    /// of it that nothing has written.
    pub race_check: bool,
    /// The engine.
    pub engine: Engine,
    /// The vector instructions that the fast engine uses; `None`: the best that the processor has.
    pub level: Option<Level>,
    /// Instructions that a group (Tesla: a block) may issue before the watchdog stops it; by default
    /// [`INSTRUCTIONS`].
    pub watchdog: u64,
    /// Threads of the host at most; `None`: all of the pool in which the launch runs.
    pub jobs: Option<NonZeroUsize>,
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
        }
    }
}

impl Options {
    /// The engine that runs: that of the options, or the reference interpreter where this build has no vector code for the
    /// processor ([`Level::any`]).
    pub fn engine(&self) -> Engine {
        if Level::any() { self.engine } else { Engine::Reference }
    }

    /// Whether races are looked for.
    pub fn checks_races(&self) -> bool {
        self.race_check && self.mode == Mode::Strict
    }

    /// The level to lower a program for.
    pub fn level(&self) -> Level {
        self.level.unwrap_or_else(Level::best)
    }

    /// Threads of the host that may run groups: those of the pool of [`pool::install`], [`Options::jobs`] at
    /// most.
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
