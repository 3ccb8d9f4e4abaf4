//! What an instruction does to the flow of lanes, in words.

use crate::inst::{Control, End, Group, Inst, Op};

/// What `inst` does to the lanes of its warp and to the token stack, a sentence each; empty for an instruction that
/// every active lane executes and that goes on to the next. (tesla.md 9)
pub fn flow(inst: &Inst) -> Vec<&'static str> {
    let mut text = Vec::new();
    if !inst.guard.is_always() {
        text.push("only lanes whose condition holds take part; the others stay active and do nothing");
    }
    text.extend(of_op(&inst.op));
    text.extend(match inst.end {
        End::None => None,
        End::Exit => Some("exit: every active lane of the warp ends behind it"),
        End::Join => Some(
            "join, before it: a side that still waits runs first; when all have arrived, the JOINAT entry is dropped \
             and they go on together",
        ),
    });
    text
}

fn of_op(op: &Op) -> Option<&'static str> {
    match op {
        Op::Control(control) => Some(of_control(control)),
        Op::Group(Group::Vote { .. }) => {
            Some("compares the condition of all active lanes; all get the same flags")
        }
        Op::Arith(_) | Op::Memory(_) | Op::Group(_) | Op::Idle(_) => None,
    }
}

fn of_control(control: &Control) -> &'static str {
    match control {
        Control::Bra { .. } => {
            "lanes that take it go to the target; when only some do, the fall-through side is pushed as a BRANCH entry"
        }
        Control::BraIndirect { .. } => {
            "all active lanes go to the address in $a, which must be the same for all"
        }
        Control::Call { .. } => "pushes a CALL entry with the next address and goes to the target",
        Control::Preret { .. } => "pushes a CALL entry with the target as return address and goes on",
        Control::Ret => {
            "lanes that take it wait for the innermost CALL entry; its address is next when all have returned"
        }
        Control::Breakaddr { .. } => "pushes a BREAK entry with the target and goes on",
        Control::Break => {
            "lanes that take it wait for the innermost BREAK entry; its address is next when all have left"
        }
        Control::Joinat { .. } => {
            "pushes a JOINAT entry with the target: where paths that part from here on meet again"
        }
        Control::Quadon => {
            "pushes a QUADON entry and switches on every lane of a quad in which one is active"
        }
        Control::Quadpop => "pops the QUADON entry and restores its lanes",
        Control::Discard => "lanes that take it are dead: they go on only as helpers and write nothing",
        Control::Bar { .. } => "the warp waits until the barrier has the warps that it waits for",
        Control::Trap => "stops the launch",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;
    use crate::inst::{Chip, Stage};

    #[test]
    fn flow_names_condition_branch_and_exit() {
        let branch = decode([0x1000_0003, 0x0000_0280], Chip::G80, Stage::Compute).unwrap();
        assert_eq!(flow(&branch).len(), 2);
        let exit = decode([0xf000_0001, 0xe000_0781], Chip::G80, Stage::Compute).unwrap();
        assert_eq!(flow(&exit), ["exit: every active lane of the warp ends behind it"]);
    }
}
