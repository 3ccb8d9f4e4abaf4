//! Describes the next instruction, and the reason why a movement of the debugger ended.

use crate::debugger::{Debugger, Halt};
use crate::error::counted;
use crate::session::GroupState;

/// Default maximum number of instructions that one command executes.
pub const BUDGET: u64 = 100_000_000;

/// Describes why a movement ended, and then describes the next instruction.
pub(super) fn describe(debugger: &Debugger, halt: &Halt) -> String {
    let what = match halt {
        Halt::There => String::new(),
        Halt::Stop(why) => format!("{why}\n"),
        Halt::End => "the launch or the group has ended\n".to_owned(),
        Halt::Start => "at the start of the launch\n".to_owned(),
        Halt::Trap(message) => format!("{message}\n"),
        Halt::Budget => {
            format!("no stop was reached in {BUDGET} instructions; use `continue` to run further\n")
        }
        Halt::Interrupted => "interrupted\n".to_owned(),
    };
    what + &position(debugger)
}

/// Describes the next instruction of the group, its lanes, and the position in the launch.
pub(super) fn position(debugger: &Debugger) -> String {
    let group = debugger.group();
    let head = format!("group {group}, after {}: ", counted(debugger.position(), "instruction"));
    match debugger.stepping().state(group) {
        GroupState::Waiting => format!("{head}waits for the groups before it\n"),
        GroupState::Ended => format!("{head}ended\n"),
        GroupState::Running => {
            let Some(issue) = debugger.issue() else { return format!("{head}ended\n") };
            let text = debugger.instruction(issue.pc);
            format!("{head}{}  {text}  for lanes {}\n", debugger.placed(issue.pc), issue.mask)
        }
    }
}
