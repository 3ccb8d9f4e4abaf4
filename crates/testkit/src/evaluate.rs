//! Computes the expected results of a lane by evaluating the program tree for this lane alone.

use crate::tree::{
    Compare, Condition, MIX_MODULUS, MIX_MULTIPLIER, Program, STEP_MODULUS, Statement, VARIABLES,
};

/// The variables of a lane.
pub type Lane = [i32; VARIABLES];

/// The way in which control flow continues after a statement.
#[derive(PartialEq)]
enum Flow {
    Next,
    Break,
    Continue,
    Return,
    Exit,
}

/// Returns the final variables of a lane. `lane` has the initial variables of the lane.
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
    let leave = |condition: &Option<Condition>, lane: &Lane, flow: Flow| {
        let leaves = condition.as_ref().is_none_or(|condition| holds(condition, lane));
        if leaves { flow } else { Flow::Next }
    };
    match statement {
        Statement::Mix(k) => {
            lane[0] = (lane[0] * MIX_MULTIPLIER + k).rem_euclid(MIX_MODULUS);
            Flow::Next
        }
        Statement::Step(variable) => {
            lane[*variable] = (lane[*variable] + 1) % STEP_MODULUS;
            Flow::Next
        }
        Statement::If(condition, then, otherwise) => match (holds(condition, lane), otherwise) {
            (true, _) => block(program, then, lane),
            (false, Some(otherwise)) => block(program, otherwise, lane),
            (false, None) => Flow::Next,
        },
        Statement::IfStatic(index, body) => {
            if program.booleans >> index & 1 != 0 {
                block(program, body, lane)
            } else {
                Flow::Next
            }
        }
        Statement::Loop(count, body) => {
            for _ in 0..*count {
                match block(program, body, lane) {
                    Flow::Next | Flow::Continue => {}
                    Flow::Break => break,
                    flow @ (Flow::Return | Flow::Exit) => return flow,
                }
            }
            Flow::Next
        }
        Statement::Break(condition) => leave(condition, lane, Flow::Break),
        Statement::Continue(condition) => leave(condition, lane, Flow::Continue),
        Statement::Return(condition) => leave(condition, lane, Flow::Return),
        Statement::Exit(condition) => leave(condition, lane, Flow::Exit),
        Statement::Call(index, condition) => {
            let calls = condition.as_ref().is_none_or(|condition| holds(condition, lane));
            if calls && block(program, &program.functions[*index], lane) == Flow::Exit {
                return Flow::Exit;
            }
            Flow::Next
        }
    }
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

    #[test]
    fn a_return_leaves_the_loops_of_its_function_and_an_exit_leaves_everything() {
        let leaving = |statement| Program {
            body: vec![Statement::Loop(2, vec![Statement::Call(0, None), Statement::Step(2)])],
            functions: vec![vec![
                Statement::Loop(3, vec![Statement::Step(1), statement]),
                Statement::Step(3),
            ]],
            ..Program::default()
        };
        assert_eq!(evaluate(&leaving(Statement::Return(None)), [0; VARIABLES]), [0, 2, 2, 0]);
        assert_eq!(evaluate(&leaving(Statement::Exit(None)), [0; VARIABLES]), [0, 1, 0, 0]);
    }
}
