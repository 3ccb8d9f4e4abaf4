//! What a machine's documents demand of a program, and where it is broken: malformed words and every other rule in one list.

use reconverge_isa::Program;
use reconverge_isa::lint::Finding;

use crate::target::{Target, TargetError};

/// Every place where a program breaks a rule, in order of address, errors first. What is malformed is named once, though
/// a machine's own rules may find it too.
///
/// # Errors
/// A program that cannot be loaded.
pub fn findings(target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
    let machine = target.machine();
    let mut found = machine.lint(target, program)?;
    for fault in machine.faults(target, program)? {
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
