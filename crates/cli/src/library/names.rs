//! Names of machines, program types, engines and modes.

use std::fmt;
use std::str::FromStr;

use reconverge_isa::program::{UnknownIsa, UnknownStage};

use super::mirror::mirror;

mirror! {
    /// A machine.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Isa {
        /// ATI R500: fragment processor and vertex unit.
        R500,
        /// AMD R700. R600 is also a chip of this machine.
        R700,
        /// NVIDIA G80 to GT21x.
        Tesla,
    }
    = reconverge_isa::Isa
}

impl Isa {
    /// Returns the name in commands and files: `r500`, `r700` or `tesla`.
    pub fn name(self) -> &'static str {
        reconverge_isa::Isa::from(self).name()
    }

    /// Returns the names of the machine's chips. [`OpenOptions::chip`](crate::OpenOptions::chip) accepts each of these
    /// names.
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

mirror! {
    /// A program type: the pipeline stage of a program.
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
        /// Pixel program (ATI's and AMD's term).
        Pixel,
        /// Fragment program. This is NVIDIA's term for a pixel program.
        Fragment,
        /// Vertex fetch program (R600, R700).
        Fetch,
    }
    = reconverge_isa::program::Stage
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

mirror! {
    /// An engine. The results of a run do not depend on the engine.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Engine {
        /// The interpreter that follows the manual, one lane at a time.
        Reference,
        /// The fast interpreter, which uses vector instructions.
        Fast,
        /// Generated code on an x86-64 processor with AVX2. On other processors, [`Engine::Fast`] runs instead.
        #[default]
        Compiled,
        /// The reference interpreter and the fast engine, which are compared during the run. If the two engines differ,
        /// the run returns [`LaunchError::Differ`](crate::LaunchError::Differ).
        Lockstep,
        /// The reference interpreter and the compiled engine, which are compared during the run.
        LockstepCompiled,
    }
    = reconverge_simt::Engine
}

mirror! {
    /// The behaviour in cases that the documents leave undefined.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Mode {
        /// The program traps in a case that the documents leave undefined.
        #[default]
        Strict,
        /// The machine does what its specification recommends.
        Lenient,
    }
    = reconverge_simt::Mode
}
