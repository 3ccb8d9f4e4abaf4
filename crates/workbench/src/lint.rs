//! What a machine's documents demand of a program, and where it is broken: malformed words and every other rule in one list.

use reconverge_isa::Program;
use reconverge_isa::lint::Finding;

use crate::error::Error;
use crate::launch::LaunchFile;
use crate::open::Opened;
use crate::target::{Target, TargetError};
use crate::values::Files;

/// Every place where a program breaks a rule, in order of address, errors first. What is malformed is named once, though
/// a machine's own rules may find it too.
///
/// # Errors
/// A program that cannot be loaded.
pub fn findings(target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
    let found = target.machine().lint(target, program)?;
    with_faults(target, program, found)
}

/// [`findings`] of a program as a launch runs it: with the fixes of the driver's faults that the launch states.
///
/// # Errors
/// A program that cannot be loaded, or a launch that does not fit it.
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
        // A CF instruction of a number that none has.
        let program = Program { words: vec![0, 0x1fc0_0000], ..Program::default() };
        let found = findings(&target, &program).unwrap();
        let first: Vec<_> = found.iter().filter(|finding| finding.pc == 0).collect();
        assert_eq!(first.len(), 1, "{found:?}");
        assert!(!target.machine().faults(&target, &program).unwrap().is_empty());
    }
}
