//! Names of machines, program types, engines and modes.

use std::fmt;
use std::str::FromStr;

use reconverge_isa::program::{UnknownIsa, UnknownStage};

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isa {
    /// ATI R500: fragment processor and vertex unit.
    R500,
    /// AMD R700, and R600 as a chip.
    R700,
    /// NVIDIA G80 to GT21x.
    Tesla,
}

impl Isa {
    /// Returns the name on the command line and in files: `r500`, `r700`, `tesla`.
    pub fn name(self) -> &'static str {
        reconverge_isa::Isa::from(self).name()
    }

    /// Returns the names of the machine's chips, each of which [`OpenOptions::chip`](crate::OpenOptions::chip) accepts.
    pub fn chips(self) -> Vec<&'static str> {
        reconverge_workbench::target::chips(self.into()).into_iter().map(|chip| chip.name).collect()
    }

    /// Returns the formats that [`File::write`](crate::File::write) accepts for the machine's programs.
    pub fn formats(self) -> Vec<&'static str> {
        reconverge_workbench::formats::formats(self.into())
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Isa, UnknownIsa> {
        name.parse().map(|isa: reconverge_isa::Isa| isa.into())
    }
}

impl From<reconverge_isa::Isa> for Isa {
    fn from(isa: reconverge_isa::Isa) -> Isa {
        match isa {
            reconverge_isa::Isa::R500 => Isa::R500,
            reconverge_isa::Isa::R700 => Isa::R700,
            reconverge_isa::Isa::Tesla => Isa::Tesla,
        }
    }
}

impl From<Isa> for reconverge_isa::Isa {
    fn from(isa: Isa) -> reconverge_isa::Isa {
        match isa {
            Isa::R500 => reconverge_isa::Isa::R500,
            Isa::R700 => reconverge_isa::Isa::R700,
            Isa::Tesla => reconverge_isa::Isa::Tesla,
        }
    }
}

/// A program type: the step of the pipeline that a program serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Kernel.
    Compute,
    /// Vertex program.
    Vertex,
    /// Geometry program.
    Geometry,
    /// Program that copies a geometry program's output (R600, R700).
    GsCopy,
    /// Pixel program (the word of ATI and AMD).
    Pixel,
    /// Fragment program (the same step in the word of NVIDIA).
    Fragment,
    /// Vertex fetch program (R600, R700).
    Fetch,
}

impl Stage {
    /// Returns the name in files: `compute`, `vertex`, …
    pub fn name(self) -> &'static str {
        reconverge_isa::program::Stage::from(self).name()
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Stage {
    type Err = UnknownStage;

    fn from_str(name: &str) -> Result<Stage, UnknownStage> {
        name.parse().map(|stage: reconverge_isa::program::Stage| stage.into())
    }
}

impl From<reconverge_isa::program::Stage> for Stage {
    fn from(stage: reconverge_isa::program::Stage) -> Stage {
        use reconverge_isa::program::Stage as Below;
        match stage {
            Below::Compute => Stage::Compute,
            Below::Vertex => Stage::Vertex,
            Below::Geometry => Stage::Geometry,
            Below::GsCopy => Stage::GsCopy,
            Below::Pixel => Stage::Pixel,
            Below::Fragment => Stage::Fragment,
            Below::Fetch => Stage::Fetch,
        }
    }
}

impl From<Stage> for reconverge_isa::program::Stage {
    fn from(stage: Stage) -> reconverge_isa::program::Stage {
        use reconverge_isa::program::Stage as Below;
        match stage {
            Stage::Compute => Below::Compute,
            Stage::Vertex => Below::Vertex,
            Stage::Geometry => Below::Geometry,
            Stage::GsCopy => Below::GsCopy,
            Stage::Pixel => Below::Pixel,
            Stage::Fragment => Below::Fragment,
            Stage::Fetch => Below::Fetch,
        }
    }
}

/// An engine. Results do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// The interpreter that follows the manual, lane by lane.
    Reference,
    /// The interpreter with vector instructions.
    Fast,
    /// Generated code on an x86-64 processor with AVX2; otherwise as [`Engine::Fast`].
    #[default]
    Compiled,
    /// The reference interpreter and the fast engine, compared while they run. A difference is
    /// [`LaunchError::Differ`](crate::LaunchError::Differ).
    Lockstep,
    /// The reference interpreter and the compiled engine, compared while they run.
    LockstepCompiled,
}

impl From<Engine> for reconverge_simt::Engine {
    fn from(engine: Engine) -> reconverge_simt::Engine {
        match engine {
            Engine::Reference => reconverge_simt::Engine::Reference,
            Engine::Fast => reconverge_simt::Engine::Fast,
            Engine::Compiled => reconverge_simt::Engine::Compiled,
            Engine::Lockstep => reconverge_simt::Engine::Lockstep,
            Engine::LockstepCompiled => reconverge_simt::Engine::LockstepCompiled,
        }
    }
}

/// The behaviour where the documents leave it undefined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The program traps.
    #[default]
    Strict,
    /// The machine does what its specification recommends.
    Lenient,
}

impl From<Mode> for reconverge_simt::Mode {
    fn from(mode: Mode) -> reconverge_simt::Mode {
        match mode {
            Mode::Strict => reconverge_simt::Mode::Strict,
            Mode::Lenient => reconverge_simt::Mode::Lenient,
        }
    }
}
