//! Targets: the machine, chip and program type that decide what words mean.

use reconverge_isa::limits::Exceeded;
use reconverge_isa::program::Stage;
use reconverge_isa::source::{closest, lines};
use reconverge_isa::{Image, Isa, Program, Span};
use reconverge_r500::chip as r500;
use reconverge_r700::chip as r700;
use reconverge_tesla::inst as tesla;
use thiserror::Error;

/// Machine, chip and program type of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The machine.
    pub isa: Isa,
    /// The chip, if it is stated.
    pub chip: Option<Chip>,
    /// The step of the pipeline, for programs that do not state theirs. It decides what some Tesla words mean.
    pub stage: Option<Stage>,
}

/// A chip under the name by which a file or a user states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// The name as it is stated.
    pub name: String,
    /// The machine's own value.
    pub model: Model,
}

/// A chip, by machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A chip of R500.
    R500(r500::Chip),
    /// A chip of R700.
    R700(r700::Chip),
    /// A chip of Tesla.
    Tesla(tesla::Chip),
}

impl Model {
    /// The chip of a machine with this name, in any case. Chip numbers (`a3`) are names of Tesla chips.
    pub fn named(isa: Isa, name: &str) -> Option<Model> {
        match isa {
            Isa::R500 => r500::Chip::named(name).map(Model::R500),
            Isa::R700 => r700::Chip::named(name).map(Model::R700),
            Isa::Tesla => tesla::Chip::from_name(name).map(Model::Tesla),
        }
    }
}

/// A chip as front ends know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipName {
    /// The name.
    pub name: &'static str,
    /// Other names that mean it.
    pub aliases: &'static [&'static str],
}

impl ChipName {
    /// The name and the aliases.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// The chips of a machine.
pub fn chips(isa: Isa) -> Vec<ChipName> {
    match isa {
        Isa::R500 => {
            r500::CHIPS.iter().map(|chip| ChipName { name: chip.name, aliases: chip.aliases }).collect()
        }
        Isa::R700 => {
            r700::CHIPS.iter().map(|chip| ChipName { name: chip.name, aliases: chip.aliases }).collect()
        }
        Isa::Tesla => {
            tesla::Chip::ALL.map(|chip| ChipName { name: chip.name(), aliases: chip.aliases() }).to_vec()
        }
    }
}

/// A target that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The program has more of something than a limit allows.
    #[error(transparent)]
    Exceeded(Exceeded),
    /// The machine is unknown.
    #[error("which machine is this for? Say --isa r500, r700 or tesla{}", hint(.0))]
    Unknown(&'static str),
    /// The chip belongs to another machine.
    #[error("{chip} is a chip of {belongs}, not of {isa}")]
    OtherChip {
        /// The chip asked for.
        chip: String,
        /// The machine of the chip.
        belongs: Isa,
        /// The machine of the program.
        isa: Isa,
    },
    /// No machine has such a chip.
    #[error("unknown chip `{chip}`: {help}")]
    UnknownChip {
        /// The chip asked for.
        chip: String,
        /// The expected values.
        help: String,
    },
    /// The machine has no such programs.
    #[error("{stage} is no program type of {isa}: {isa} has {known}")]
    Stage {
        /// The program type.
        stage: Stage,
        /// The machine.
        isa: Isa,
        /// The program types of the machine.
        known: &'static str,
    },
    /// The program cannot be loaded.
    #[error("{0}")]
    Program(String),
}

fn hint(more: &str) -> String {
    if more.is_empty() { String::new() } else { format!(", or {more}") }
}

impl Target {
    /// A machine, without a chip.
    pub const fn of(isa: Isa) -> Target {
        Target { isa, chip: None, stage: None }
    }

    /// A machine, and a chip if its name is known.
    ///
    /// # Errors
    /// The chip belongs to another machine, or to none.
    pub fn new(isa: Isa, chip: Option<&str>) -> Result<Target, TargetError> {
        let Some(chip) = chip else { return Ok(Target::of(isa)) };
        if let Some(model) = Model::named(isa, chip) {
            return Ok(Target { chip: Some(Chip { name: chip.to_owned(), model }), ..Target::of(isa) });
        }
        let chip = chip.to_owned();
        if let Some(belongs) = isa_of_chip(&chip) {
            return Err(TargetError::OtherChip { chip, belongs, isa });
        }
        let names: Vec<&str> = chips(isa).into_iter().flat_map(ChipName::names).collect();
        let meant = closest(&chip, names.iter().copied());
        let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
        Err(TargetError::UnknownChip { help: format!("{meant}{isa} has {}", names.join(", ")), chip })
    }

    /// The target of one program of a file. If the programs are for several chips, each has its own.
    pub fn for_program(&self, image: &Image, program: &Program) -> Target {
        let own = image.module_of(program).and_then(|module| module.chip.as_deref());
        match (&self.chip, own.and_then(|name| Target::new(self.isa, Some(name)).ok())) {
            (None, Some(own)) => Target { stage: self.stage, ..own },
            _ => self.clone(),
        }
    }

    /// The chips of an image's programs, if no one text can be for all of them: encodings of R600 and R700 differ.
    pub fn several_chips(&self, image: &Image) -> Option<Vec<String>> {
        let target = |program: &Program| self.for_program(image, program);
        let mut programs = image.programs.iter();
        let first = programs.next().map(target)?;
        let other = programs.map(target).find(|other| other.r700().family != first.r700().family)?;
        [first, other].iter().map(|target| target.chip_name().map(str::to_owned)).collect()
    }

    /// The name of the chip as it is stated.
    pub fn chip_name(&self) -> Option<&str> {
        self.chip.as_ref().map(|chip| chip.name.as_str())
    }

    /// The R500 chip; R520 if none is stated.
    pub fn r500(&self) -> r500::Chip {
        match self.chip.as_ref().map(|chip| chip.model) {
            Some(Model::R500(chip)) => chip,
            None | Some(Model::R700(_) | Model::Tesla(_)) => r500::CHIPS[0],
        }
    }

    /// The R700 chip; RV770 if none is stated.
    pub fn r700(&self) -> r700::Chip {
        match self.chip.as_ref().map(|chip| chip.model) {
            Some(Model::R700(chip)) => chip,
            None | Some(Model::R500(_) | Model::Tesla(_)) => r700::Chip::RV770,
        }
    }

    /// The Tesla chip; G80 if none is stated, whose instructions every chip runs.
    pub fn tesla(&self) -> tesla::Chip {
        match self.chip.as_ref().map(|chip| chip.model) {
            Some(Model::Tesla(chip)) => chip,
            None | Some(Model::R500(_) | Model::R700(_)) => tesla::Chip::G80,
        }
    }
}

/// The machine that a chip belongs to. Case does not count.
pub fn isa_of_chip(chip: &str) -> Option<Isa> {
    Isa::ALL.into_iter().find(|isa| Model::named(*isa, chip).is_some())
}

/// Whether two names mean one chip of a machine. Case does not count.
pub fn same_chip(isa: Isa, one: &str, other: &str) -> bool {
    Model::named(isa, one).is_some_and(|one| Model::named(isa, other) == Some(one))
}

/// Whether a name of R600 or R700 is used for the family of a chip.
pub(crate) fn is_family_of(family: &str, chip: &str) -> bool {
    let found = |name| r700::Chip::named(name).map(|chip| chip.family);
    ["r600", "r700"].contains(&family) && found(chip).is_some_and(|of_chip| found(family) == Some(of_chip))
}

/// The machine that an assembler source is for: its `.isa` or `.chip` line, or that of AMD's text, which has none.
pub fn isa_of_source(source: &str) -> Option<Isa> {
    let stated = directives(source).find_map(|(name, value, _)| match name {
        ".isa" => value.parse().ok(),
        ".chip" => isa_of_chip(value),
        _ => None,
    });
    stated.or_else(|| reconverge_r700::text::is_amd(source).then_some(Isa::R700))
}

/// The lines of a source that begin with a directive: its name, its first word, and the bytes of both.
pub(crate) fn directives(source: &str) -> impl Iterator<Item = (&str, &str, Span)> {
    lines(source).filter_map(move |(start, line)| {
        let mut words = line.split_whitespace();
        let (name, value) = (words.next().filter(|name| name.starts_with('.'))?, words.next()?);
        let at = start + (line.len() - line.trim_start().len());
        let end = start + (value.as_ptr() as usize - line.as_ptr() as usize) + value.len();
        Some((name, value, Span::new(at, end)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_or_a_source_names_its_machine() {
        assert_eq!(isa_of_chip("rv770"), Some(Isa::R700));
        assert_eq!(isa_of_chip("sm_11"), Some(Isa::Tesla));
        assert_eq!(isa_of_chip("GF100"), None);
        assert!(same_chip(Isa::Tesla, "a3", "0xA3") && same_chip(Isa::Tesla, "nva3", "GT215"));
        assert!(!same_chip(Isa::Tesla, "a3", "50") && !same_chip(Isa::Tesla, "x", "x"));
        assert_eq!(["LATTE", "nva3"].map(isa_of_chip), [Some(Isa::R700), Some(Isa::Tesla)]);
        assert_eq!(isa_of_source("; x\n.chip R580\nOUT nop"), Some(Isa::R500));
        assert_eq!(isa_of_source(".isa tesla"), Some(Isa::Tesla));
    }

    #[test]
    fn every_name_of_a_chip_belongs_to_one_machine() {
        for isa in Isa::ALL {
            for name in chips(isa).into_iter().flat_map(ChipName::names) {
                let machines = Isa::ALL.into_iter().filter(|isa| Model::named(*isa, name).is_some());
                assert_eq!(machines.collect::<Vec<_>>(), [isa], "{name}");
            }
        }
    }

    #[test]
    fn an_unknown_chip_is_refused_with_what_fits() {
        let refused = |isa, chip| Target::new(isa, Some(chip)).unwrap_err().to_string();
        assert_eq!(refused(Isa::R500, "rv770"), "rv770 is a chip of r700, not of r500");
        assert_eq!(
            refused(Isa::R500, "R52"),
            "unknown chip `R52`: did you mean `R520`? r500 has R520, R500, RV515, RV530, R580, RV560, RV570"
        );
    }
}
