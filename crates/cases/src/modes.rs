//! Running a case in strict and in lenient mode.

use reconverge_simt::Mode;

use reconverge_workbench::request::{Error, MOST_LANES};

use crate::{Settings, Verdict};

/// Why a run does not give what it should.
pub(crate) enum Trouble {
    /// The program trapped.
    Trap(String),
    /// The program left what it should, but strict mode objects to how it ended.
    Finding(String),
    /// It gave something else, or the case makes no sense.
    Wrong(String),
}

impl Trouble {
    pub(crate) fn say(self) -> String {
        match self {
            Trouble::Trap(why) | Trouble::Finding(why) | Trouble::Wrong(why) => why,
        }
    }
}

/// Refuses more lanes than a launch may have.
pub(crate) fn lanes_fit(lanes: usize) -> Result<(), Trouble> {
    if lanes > MOST_LANES { Err(Trouble::Wrong(Error::Lanes(lanes).to_string())) } else { Ok(()) }
}

/// Judges every run of a case. Without a chosen mode, both must give the result, except that a strict trap is a
/// finding when lenient mode gives it. What strict mode objects to at a program's end is a finding in any case.
pub(crate) fn in_modes<Run>(
    settings: &Settings,
    runs: &[Run],
    judge: impl Fn(&Run, Mode) -> Result<(), Trouble>,
) -> Verdict {
    let mut findings = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let failed = |why: Trouble| {
            let why = why.say();
            Verdict::Failed(if runs.len() == 1 { why } else { format!("run {number}: {why}") })
        };
        if let Some(mode) = settings.mode {
            match judge(run, mode) {
                Ok(()) => continue,
                Err(Trouble::Finding(why)) => {
                    findings.push(why);
                    continue;
                }
                Err(why) => return failed(why),
            }
        }
        match judge(run, Mode::Strict) {
            Ok(()) => {}
            Err(Trouble::Trap(why) | Trouble::Finding(why)) if findings.contains(&why) => {}
            Err(Trouble::Trap(why) | Trouble::Finding(why)) => findings.push(why),
            Err(why) => return failed(why),
        }
        if let Err(why) = judge(run, Mode::Lenient) {
            return failed(why);
        }
    }
    Verdict::Passed { findings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strict_mode_objects_to_at_the_end_is_a_finding_whether_or_not_a_mode_is_chosen() {
        let judge = |(): &(), mode| match mode {
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
