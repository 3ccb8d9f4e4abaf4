//! Runs a case in strict and in lenient mode.

use reconverge_isa::Program;
use reconverge_isa::limits::LANES;
use reconverge_simt::{Mode, Options};
use reconverge_workbench::error::Trapped;
use reconverge_workbench::trapped::instruction;
use reconverge_workbench::{Error, Outcome, Target};

use crate::{Settings, Verdict};

/// The reason why a run does not return the expected result.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The program trapped. The trap includes the text of the instruction, if this text is known.
    Trap(Box<Trapped>),
    /// The results are as expected, but strict mode reports a problem with the state at the program's end.
    Finding(String),
    /// The results are not as expected, or the case is invalid.
    Wrong(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        match error {
            Error::Trap(trap) => Trouble::Trap(trap),
            error => Trouble::Wrong(error.to_string()),
        }
    }
}

impl Trouble {
    /// Converts an error in a run of `program`. If the error is a trap, adds the text of the trapping instruction.
    pub(crate) fn of(error: Error, target: &Target, program: &Program) -> Trouble {
        let mut trouble = Trouble::from(error);
        if let Trouble::Trap(trap) = &mut trouble {
            trap.instruction = instruction(target, program, trap.pc);
        }
        trouble
    }
}

/// Checks the state at the end of the program.
///
/// # Errors
/// If strict mode reports a problem, returns this problem as a finding.
pub(crate) fn ended(outcome: &dyn Outcome) -> Result<(), Trouble> {
    outcome.finding().map_or(Ok(()), |finding| Err(Trouble::Finding(finding)))
}

/// Checks the number of lanes before memory is allocated for the lanes.
///
/// # Errors
/// Fails if `lanes` is greater than [`LANES`].
pub(crate) fn lanes_fit(lanes: usize) -> Result<(), String> {
    if lanes > LANES.size() { Err(Error::Lanes(lanes).to_string()) } else { Ok(()) }
}

/// Executes every run of a case with `judge`. If the settings do not state a mode, every run executes in both modes.
/// Lenient mode must return the expected result. In this case, a trap in strict mode is a finding. A wrong result in
/// strict mode makes the case fail. A problem that strict mode reports at the program's end is always a finding.
pub(crate) fn in_modes<Run>(
    settings: &Settings,
    runs: &[Run],
    judge: impl Fn(&Run, &Options) -> Result<(), Trouble>,
) -> Verdict {
    let mut findings = Vec::new();
    let mut judge_all = || {
        for (number, run) in runs.iter().enumerate() {
            let in_mode = |mode| judge(run, &Options { mode, ..settings.options });
            let failed = |why: String| if runs.len() == 1 { why } else { format!("run {number}: {why}") };
            let mut found = |result, trap_is_finding: bool| match result {
                Ok(()) => Ok(()),
                Err(Trouble::Trap(trap)) if !trap_is_finding => Err(failed(trap.sentence(""))),
                Err(Trouble::Wrong(why)) => Err(failed(why)),
                Err(trouble @ (Trouble::Trap(_) | Trouble::Finding(_))) => {
                    let why = match trouble {
                        Trouble::Trap(trap) => trap.sentence(""),
                        Trouble::Finding(why) | Trouble::Wrong(why) => why,
                    };
                    if !findings.contains(&why) {
                        findings.push(why);
                    }
                    Ok(())
                }
            };
            match settings.mode {
                Some(mode) => found(in_mode(mode), false)?,
                None => {
                    found(in_mode(Mode::Strict), true)?;
                    found(in_mode(Mode::Lenient), false)?;
                }
            }
        }
        Ok(())
    };
    match judge_all() {
        Ok(()) => Verdict::Passed { findings },
        Err(why) => Verdict::Failed(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strict_mode_objects_to_at_the_end_is_a_finding_whether_or_not_a_mode_is_chosen() {
        let judge = |_: &(), options: &Options| match options.mode {
            Mode::Strict => Err(Trouble::Finding("an entry on a stack at the end".to_owned())),
            Mode::Lenient => Ok(()),
        };
        for mode in [None, Some(Mode::Strict)] {
            let settings = Settings { mode, ..Settings::default() };
            match in_modes(&settings, &[()], judge) {
                Verdict::Passed { findings } => assert_eq!(findings, ["an entry on a stack at the end"]),
                _ => panic!("the case passes"),
            }
        }
    }
}
