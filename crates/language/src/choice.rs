//! The machine, chip and program type of a source.

use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_isa::source::lines;
use reconverge_workbench::Target;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::target::{isa_of_chip, isa_of_source};

/// Facts about the target that the text of the source may not state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetHint {
    /// The machine.
    pub isa: Option<Isa>,
    /// The chip.
    pub chip: Option<String>,
    /// The program type.
    pub stage: Option<Stage>,
}

impl TargetHint {
    /// Returns a hint that names only a machine.
    pub fn of(isa: Isa) -> TargetHint {
        TargetHint { isa: Some(isa), ..TargetHint::default() }
    }

    /// Returns the target that a launch file states. Returns an empty hint if the text is not a launch file.
    pub fn of_launch(text: &str) -> TargetHint {
        let Ok(fields) = LaunchFile::fields(text) else { return TargetHint::default() };
        let field = |name: &str| fields.get(name).and_then(|value| value.as_str());
        TargetHint {
            isa: field("isa").and_then(|isa| isa.parse().ok()),
            chip: field("chip").map(str::to_owned),
            stage: field("stage").and_then(|stage| stage.parse().ok()),
        }
    }

    fn machine(&self) -> Option<Isa> {
        self.isa.or_else(|| self.chip.as_deref().and_then(isa_of_chip))
    }
}

/// The origin of the machine that the analysis determined for a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// The source states the machine, or the source is in AMD's syntax.
    Source,
    /// The launch file next to the source states the machine.
    Launch,
    /// A setting states the machine.
    Setting,
    /// The machine is not stated. Among the assemblers of all machines, the assembler of the chosen machine finds the
    /// fewest errors.
    Fewest,
}

/// Returns the target of a source, and how the analysis determined this target. Returns `None` if neither the text nor
/// the hints name a machine. `plain` is the text with its macros expanded.
pub(crate) fn stated(plain: &str, launch: &TargetHint, setting: &TargetHint) -> Option<(Target, ChosenBy)> {
    let (isa, by) = if let Some(isa) = isa_of_source(plain) {
        (isa, ChosenBy::Source)
    } else if let Some(isa) = launch.machine() {
        (isa, ChosenBy::Launch)
    } else {
        (setting.machine()?, ChosenBy::Setting)
    };
    Some((with_hints(isa, plain, launch, setting), by))
}

/// Returns the target of a source for a machine. If the source does not state a chip, the function uses a chip in the
/// hints that belongs to the machine. The function uses a program type in the hints if the hints name this machine or
/// no machine.
pub(crate) fn with_hints(isa: Isa, plain: &str, launch: &TargetHint, setting: &TargetHint) -> Target {
    let states_chip = || lines(plain).any(|(_, line)| line.split_whitespace().next() == Some(".chip"));
    let chip = [launch, setting].into_iter().find_map(|hint| {
        let chip = hint.chip.as_deref().filter(|chip| isa_of_chip(chip) == Some(isa))?;
        Target::new(isa, Some(chip)).ok()
    });
    let stage = launch
        .stage
        .or(setting.stage)
        .filter(|_| launch.machine().or(setting.machine()).is_none_or(|of| of == isa));
    let target = chip.filter(|_| !states_chip()).unwrap_or_else(|| Target::of(isa));
    Target { stage, ..target }
}

/// Returns the machine whose assembler finds the fewest errors. If several machines have equally few errors, returns
/// the machine whose mnemonics occur on the most lines.
pub(crate) fn fewest(errors: impl Fn(Isa) -> usize, mnemonics: impl Fn(Isa) -> usize) -> Isa {
    let rank = |isa: &Isa| (errors(*isa), std::cmp::Reverse(mnemonics(*isa)));
    Isa::ALL.into_iter().min_by_key(rank).unwrap_or(Isa::Tesla)
}
