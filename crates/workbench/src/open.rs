//! A file's bytes to programs with their machine.

use reconverge_container::{Hints, load};
use reconverge_isa::program::Stage;
use reconverge_isa::source::{Diagnostic, lines};
use reconverge_isa::{Image, Isa, Program};
use thiserror::Error;

use crate::machine::{Target, TargetError, assemble, isa_of_chip, isa_of_source};

/// A file that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The machine and chip.
    pub target: Target,
    /// Its programs and what their container states.
    pub image: Image,
    /// Warnings of the assembler, for sources.
    pub warnings: Vec<Diagnostic>,
    /// For each program of a source the addresses of its instructions and the numbers of their lines, from 1.
    pub lines: Vec<Vec<(u32, usize)>>,
}

impl Opened {
    /// The line of the source that has the instruction at an address of a program of the image; `None` where the file
    /// is no source.
    pub fn line(&self, program: &Program, address: u32) -> Option<usize> {
        let number = self.image.programs.iter().position(|known| known == program)?;
        self.lines.get(number)?.iter().find(|(known, _)| *known == address).map(|(_, line)| *line)
    }
}

/// What the caller knows about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The machine.
    pub isa: Option<Isa>,
    /// The chip.
    pub chip: Option<String>,
    /// The step of the pipeline.
    pub stage: Option<Stage>,
}

/// A file that cannot be opened as a program.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum OpenError {
    /// The container is damaged or unknown.
    #[error(transparent)]
    Container(#[from] reconverge_container::Error),
    /// The machine is unknown, or the target cannot be.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The file is for another machine than asked for.
    #[error("this is a program for {found}, not for {asked}: leave --isa out, or say --isa {found}")]
    OtherMachine {
        /// The machine that the container names.
        found: Isa,
        /// The machine asked for.
        asked: Isa,
    },
    /// The file has several programs, none for the step asked for.
    #[error("no program of this file is for {asked}: there is {}", .has.join(", "))]
    NoStage {
        /// The step asked for.
        asked: Stage,
        /// The steps of its programs.
        has: Vec<&'static str>,
    },
    /// A source text that does not assemble.
    #[error("{} errors", .0.len())]
    Source(Vec<Diagnostic>),
}

/// Whether a file of this name holds assembler source.
pub fn is_source(name: &str) -> bool {
    SOURCES.iter().any(|ending| name.ends_with(ending))
}

/// How the names of sources end.
pub const SOURCES: [&str; 2] = [".s", ".asm"];

/// Reads a file as assembler source (when `is_source`) or as a container. `known` is what the caller
/// knows; what the file says itself must not contradict them. A stage chooses among several programs.
///
/// # Errors
/// See [`OpenError`].
pub fn open(bytes: &[u8], is_source: bool, known: &Known) -> Result<Opened, OpenError> {
    let Known { isa, chip, stage } = known.clone();
    let chip = chip.as_deref();
    let known = isa.or_else(|| chip.and_then(isa_of_chip));
    if is_source {
        let source = String::from_utf8_lossy(bytes);
        let isa = known
            .or_else(|| isa_of_source(&source))
            .ok_or(TargetError::Unknown("begin the source with .isa or .chip"))?;
        let target = Target { stage, ..Target::new(isa, chip) }.checked()?;
        let assembly = assemble(&target, &source).map_err(OpenError::Source)?;
        let chip = chip.map(str::to_owned).or(assembly.target.chip);
        let stage = assembly.target.stage.or(stage);
        let target = Target { isa, chip, stage }.checked()?;
        let all = assembly.image.programs.clone();
        let image = of_stage(assembly.image, stage)?;
        let starts: Vec<usize> = lines(&source).map(|(start, _)| start).collect();
        let number = |(address, at): &(u32, usize)| (*address, starts.partition_point(|start| start <= at));
        let of_program = |program| {
            let lines = all.iter().position(|known| known == program).and_then(|at| assembly.lines.get(at));
            lines.into_iter().flatten().map(number).collect()
        };
        let lines = image.programs.iter().map(of_program).collect();
        return Ok(Opened { target, image, warnings: assembly.warnings, lines });
    }
    let hints = Hints { isa: known, chip: chip.map(str::to_owned), ..Hints::default() };
    let image = load(bytes, &hints)?;
    if let (Some(found), Some(asked)) = (image.isa, known)
        && found != asked
    {
        return Err(OpenError::OtherMachine { found, asked });
    }
    let isa = image.isa.or(known).ok_or(TargetError::Unknown("--chip"))?;
    let chip = chip.map(str::to_owned).or_else(|| image.chip.clone());
    let (target, image) = (Target { isa, chip, stage }.checked()?, of_stage(image, stage)?);
    Ok(Opened { target, image, warnings: Vec::new(), lines: Vec::new() })
}

/// The image with those of its programs only that are for `stage`, when it has several that say what they are for.
fn of_stage(mut image: Image, stage: Option<Stage>) -> Result<Image, OpenError> {
    let mut stages = image.programs.iter().filter_map(|program| program.stage);
    let several = image.programs.len() > 1 && stages.clone().count() == image.programs.len();
    let Some(asked) = stage.filter(|_| several) else { return Ok(image) };
    if !stages.any(|stage| stage == asked) {
        let mut has: Vec<_> =
            image.programs.iter().filter_map(|program| Some(program.stage?.name())).collect();
        has.dedup();
        return Err(OpenError::NoStage { asked, has });
    }
    image.programs.retain(|program| program.stage == Some(asked));
    Ok(image)
}
