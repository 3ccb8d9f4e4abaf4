//! Lists all violations of a machine's rules in a program, including malformed words.

use reconverge_isa::Program;
use reconverge_isa::lint::Finding;

use crate::error::Error;
use crate::launch::LaunchFile;
use crate::open::Opened;
use crate::target::{Target, TargetError};
use crate::values::Files;

/// Returns every violation of a rule in a program, ordered by address. If one address has several violations, errors
/// come first. If a rule and the check for malformed parts both report a part of the program, the result contains a
/// single violation for this part.
///
/// # Errors
/// Returns an error if the program cannot be loaded.
pub fn findings(target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
    let found = target.machine().lint(target, program)?;
    with_faults(target, program, found)
}

/// Returns the [`findings`] of the program that a launch runs. This program includes the driver fixes that the launch
/// states.
///
/// # Errors
/// Returns an error if the program cannot be loaded, or if the launch is not valid for the program.
pub fn findings_in_launch(
    opened: &Opened,
    program: &Program,
    launch: &LaunchFile,
    files: &dyn Files,
) -> Result<Vec<Finding>, Error> {
    let target = &opened.target.for_program(&opened.image, program);
    let found = match launch.lint(&opened.image, program, files)? {
        Some((program, found)) => with_faults(target, &program, found),
        None => findings(target, program),
    };
    found.map_err(|error| Error::Machine(error.to_string()))
}

fn with_faults(
    target: &Target,
    program: &Program,
    mut found: Vec<Finding>,
) -> Result<Vec<Finding>, TargetError> {
    for fault in target.machine().faults(target, program)? {
        if !found.iter().any(|known| known.pc == fault.pc && known.message == fault.message) {
            found.push(fault);
        }
    }
    found.sort_by_key(|finding| (finding.pc, std::cmp::Reverse(finding.rule.severity)));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use reconverge_isa::Isa;

    use super::*;

    #[test]
    fn what_is_malformed_is_found_once() {
        let target = Target::of(Isa::R700);
        // A CF instruction with an unassigned opcode.
        let program = Program { words: vec![0, 0x1fc0_0000], ..Program::default() };
        let found = findings(&target, &program).unwrap();
        let first: Vec<_> = found.iter().filter(|finding| finding.pc == 0).collect();
        assert_eq!(first.len(), 1, "{found:?}");
        assert!(!target.machine().faults(&target, &program).unwrap().is_empty());
    }
}
