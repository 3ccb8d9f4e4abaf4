//! Targets. A target has the machine, chip and program type that determine how words are interpreted.

use reconverge_isa::limits::Exceeded;
use reconverge_isa::program::Stage;
use reconverge_isa::source::{closest, lines};
use reconverge_isa::{Image, Isa, Program, Span};
use reconverge_r500::chip as r500;
use reconverge_r700::chip as r700;
use reconverge_tesla::inst as tesla;
use thiserror::Error;

/// The machine, chip and program type that determine the meaning of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The machine.
    pub isa: Isa,
    /// The chip, if the user or the file states a chip.
    pub chip: Option<Chip>,
    /// The pipeline stage of programs that do not state a stage. The stage affects the meaning of some Tesla words.
    pub stage: Option<Stage>,
}

/// A chip, with the name that a file or a user states for this chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// The stated name.
    pub name: String,
    /// The chip in the form that the machine's crate uses.
    pub model: Model,
}

/// A chip of one of the machines.
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
    /// Returns the chip of a machine with this name. Case is ignored. A Tesla chip can also be named by its number,
    /// such as `a3`.
    pub fn named(isa: Isa, name: &str) -> Option<Model> {
        match isa {
            Isa::R500 => r500::Chip::named(name).map(Model::R500),
            Isa::R700 => r700::Chip::named(name).map(Model::R700),
            Isa::Tesla => tesla::Chip::from_name(name).map(Model::Tesla),
        }
    }
}

/// The names of a chip, for front ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChipName {
    /// The main name.
    pub name: &'static str,
    /// Other names for the chip.
    pub aliases: &'static [&'static str],
}

impl ChipName {
    /// Iterates over the name and the aliases.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// Returns the chips of a machine.
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

/// The reason why a target or its program is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The program exceeds a limit.
    #[error(transparent)]
    Exceeded(Exceeded),
    /// The machine is unknown. The field describes another way to state the machine, for the message.
    #[error("unknown machine; state it with --isa r500, r700 or tesla{}", hint(.0))]
    Unknown(&'static str),
    /// The chip belongs to another machine.
    #[error("{chip} is a chip of {belongs}, not of {isa}")]
    OtherChip {
        /// The requested chip.
        chip: String,
        /// The machine of the chip.
        belongs: Isa,
        /// The machine of the program.
        isa: Isa,
    },
    /// No machine has this chip.
    #[error("unknown chip `{chip}`: {help}")]
    UnknownChip {
        /// The requested chip.
        chip: String,
        /// Description of the expected values.
        help: String,
    },
    /// The machine does not have this program type.
    #[error("{stage} is not a program type of {isa}: expected {known}")]
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
    /// Returns a target without a chip.
    pub const fn of(isa: Isa) -> Target {
        Target { isa, chip: None, stage: None }
    }

    /// Returns a target. The target has a chip if `chip` names a chip.
    ///
    /// # Errors
    /// Returns an error if the chip belongs to another machine or is unknown.
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

    /// Returns the target of one program of a file. If the file has programs for several chips, the target has the chip
    /// of `program`.
    pub fn for_program(&self, image: &Image, program: &Program) -> Target {
        let own = image.module_of(program).and_then(|module| module.chip.as_deref());
        match (&self.chip, own.and_then(|name| Target::new(self.isa, Some(name)).ok())) {
            (None, Some(own)) => Target { stage: self.stage, ..own },
            _ => self.clone(),
        }
    }

    /// Returns two chips of the image's programs if the image has programs for R600 and for R700. One source text
    /// cannot contain all programs of such an image, because R600 and R700 have different encodings.
    pub fn several_chips(&self, image: &Image) -> Option<Vec<String>> {
        let target = |program: &Program| self.for_program(image, program);
        let mut programs = image.programs.iter();
        let first = programs.next().map(target)?;
        let other = programs.map(target).find(|other| other.r700().family != first.r700().family)?;
        [first, other].iter().map(|target| target.chip_name().map(str::to_owned)).collect()
    }

    /// Returns the chip's name as the file or the user states this name.
    pub fn chip_name(&self) -> Option<&str> {
        self.chip.as_ref().map(|chip| chip.name.as_str())
    }

    /// Returns the R500 chip. The default is R520.
    pub fn r500(&self) -> r500::Chip {
        match self.chip.as_ref().map(|chip| chip.model) {
            Some(Model::R500(chip)) => chip,
            None | Some(Model::R700(_) | Model::Tesla(_)) => r500::CHIPS[0],
        }
    }

    /// Returns the R700 chip. The default is RV770.
    pub fn r700(&self) -> r700::Chip {
        match self.chip.as_ref().map(|chip| chip.model) {
            Some(Model::R700(chip)) => chip,
            None | Some(Model::R500(_) | Model::Tesla(_)) => r700::Chip::RV770,
        }
    }

    /// Returns the Tesla chip. The default is G80, whose instructions run on every chip.
    pub fn tesla(&self) -> tesla::Chip {
        match self.chip.as_ref().map(|chip| chip.model) {
            Some(Model::Tesla(chip)) => chip,
            None | Some(Model::R500(_) | Model::R700(_)) => tesla::Chip::G80,
        }
    }
}

/// Returns the machine to which a chip belongs. Case is ignored.
pub fn isa_of_chip(chip: &str) -> Option<Isa> {
    Isa::ALL.into_iter().find(|isa| Model::named(*isa, chip).is_some())
}

/// Returns whether two names refer to the same chip of a machine. Case is ignored.
pub fn same_chip(isa: Isa, one: &str, other: &str) -> bool {
    Model::named(isa, one).is_some_and(|one| Model::named(isa, other) == Some(one))
}

/// Returns whether `family` is `r600` or `r700`, and the chip belongs to `family`.
pub(crate) fn is_family_of(family: &str, chip: &str) -> bool {
    let found = |name| r700::Chip::named(name).map(|chip| chip.family);
    ["r600", "r700"].contains(&family) && found(chip).is_some_and(|of_chip| found(family) == Some(of_chip))
}

/// Returns the machine of an assembler source. A `.isa` or `.chip` line states the machine. A source in AMD's syntax
/// has neither line. The function recognises such a source by its syntax.
pub fn isa_of_source(source: &str) -> Option<Isa> {
    let stated = directives(source).find_map(|(name, value, _)| match name {
        ".isa" => value.parse().ok(),
        ".chip" => isa_of_chip(value),
        _ => None,
    });
    stated.or_else(|| reconverge_r700::text::is_amd(source).then_some(Isa::R700))
}

/// Iterates over the lines of a source that begin with a directive. Each item has the directive, the word after the
/// directive, and the byte range of both words.
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
