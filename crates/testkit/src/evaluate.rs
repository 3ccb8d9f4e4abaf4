//! What a lane must compute: the tree walked for one lane alone.

use crate::tree::{Compare, Condition, MIX_MODULUS, MIX_MULTIPLIER, Program, Statement, VARIABLES};

/// The variables of a lane.
pub type Lane = [i32; VARIABLES];

/// Where a statement goes on.
#[derive(PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The variables at the end, for a lane that starts with `lane`.
pub fn evaluate(program: &Program, lane: Lane) -> Lane {
    let mut lane = lane;
    block(program, &program.body, &mut lane);
    lane
}

fn block(program: &Program, statements: &[Statement], lane: &mut Lane) -> Flow {
    for statement in statements {
        let flow = run(program, statement, lane);
        if flow != Flow::Next {
            return flow;
        }
    }
    Flow::Next
}

fn holds(condition: &Condition, lane: &Lane) -> bool {
    let value = lane[condition.variable];
    match condition.compare {
        Compare::Less => value < condition.number,
        Compare::GreaterEqual => value >= condition.number,
        Compare::Equal => value == condition.number,
        Compare::NotEqual => value != condition.number,
    }
}

fn run(program: &Program, statement: &Statement, lane: &mut Lane) -> Flow {
    let holds_or_absent = |condition: &Option<Condition>, lane: &Lane| {
        condition.as_ref().is_none_or(|condition| holds(condition, lane))
    };
    match statement {
        Statement::Mix(k) => lane[0] = (lane[0] * MIX_MULTIPLIER + k).rem_euclid(MIX_MODULUS),
        Statement::Step(variable) => lane[*variable] = (lane[*variable] + 1) % 16,
        Statement::If(condition, then, otherwise) => {
            if holds(condition, lane) {
                return block(program, then, lane);
            } else if let Some(otherwise) = otherwise {
                return block(program, otherwise, lane);
            }
        }
        Statement::IfStatic(index, body) => {
            if program.booleans >> index & 1 != 0 {
                return block(program, body, lane);
            }
        }
        Statement::Loop(count, body) => {
            for _ in 0..*count {
                if block(program, body, lane) == Flow::Break {
                    break;
                }
            }
        }
        Statement::Break(condition) if holds_or_absent(condition, lane) => return Flow::Break,
        Statement::Continue(condition) if holds_or_absent(condition, lane) => return Flow::Continue,
        Statement::Break(_) | Statement::Continue(_) => {}
        Statement::Call(index, condition) => {
            if holds_or_absent(condition, lane) {
                block(program, &program.functions[*index], lane);
            }
        }
    }
    Flow::Next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_break_leaves_only_the_innermost_loop() {
        let inner = Statement::Loop(5, vec![Statement::Step(1), Statement::Break(None)]);
        let program = Program { body: vec![Statement::Loop(3, vec![inner])], ..Program::default() };
        assert_eq!(evaluate(&program, [0; VARIABLES])[1], 3);
    }

    #[test]
    fn a_continue_skips_the_rest_of_the_round() {
        let odd = Condition { variable: 1, compare: Compare::Equal, number: 1 };
        let body = vec![Statement::Step(1), Statement::Continue(Some(odd)), Statement::Step(2)];
        let program = Program { body: vec![Statement::Loop(3, body)], ..Program::default() };
        assert_eq!(evaluate(&program, [0; VARIABLES]), [0, 3, 2, 0]);
    }
}
