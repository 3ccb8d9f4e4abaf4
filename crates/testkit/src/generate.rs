//! Generates program trees from seeds.

use crate::evaluate::Lane;
use crate::tree::{Compare, Condition, MOST_ROUNDS, Program, STEP_MODULUS, Statement, VARIABLES};
use reconverge_simt::random::Random;

/// Limits and features of generated programs. The limits also limit the stack depth that a program needs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Nesting depth of constructs in the body.
    pub depth: u32,
    /// Maximum nesting depth of loops, including loops in called functions.
    pub loops: u32,
    /// Maximum number of statements per block.
    pub statements: u32,
    /// Maximum number of iterations per loop, at most [`MOST_ROUNDS`].
    pub rounds: u32,
    /// Maximum number of functions, and maximum nesting depth of calls.
    pub functions: u32,
    /// Whether every second statement is a loop, as long as the maximum nesting depth of loops permits another loop.
    pub loops_first: bool,
    /// Positions at which functions may return early.
    pub returns: Returns,
    /// Whether lanes may end at any statement.
    pub exits: bool,
}

/// Positions at which functions may return early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Functions do not return early.
    Nowhere,
    /// Functions may return early outside all constructs.
    AtTop,
    /// Functions may return early anywhere, including inside ifs and loops.
    Anywhere,
}

/// Nesting depth of constructs in a function.
const FUNCTION_DEPTH: u32 = 2;

impl Shape {
    /// Programs with many statements per block, of medium depth.
    pub const WIDE: Shape = Shape {
        depth: 4,
        loops: 2,
        statements: 5,
        rounds: MOST_ROUNDS,
        functions: 2,
        loops_first: false,
        returns: Returns::Nowhere,
        exits: false,
    };
    /// Programs with four nested loops, and with ifs between these loops.
    pub const DEEP: Shape = Shape {
        depth: 7,
        loops: 4,
        statements: 3,
        rounds: 3,
        functions: 1,
        loops_first: true,
        ..Shape::WIDE
    };
    /// Programs with functions that call other functions.
    pub const CALLS: Shape = Shape { depth: 3, loops: 3, statements: 4, functions: 4, ..Shape::WIDE };

    /// Returns the shape for a seed: one of the three shapes above.
    pub fn of(seed: u64) -> Shape {
        [Shape::WIDE, Shape::DEEP, Shape::CALLS][(seed % 3) as usize]
    }
}

/// Returns the program of a seed.
pub fn generate(seed: u64, shape: Shape) -> Program {
    let mut random = Random::new(seed);
    let count = random.below(shape.functions + 1) as usize;
    let mut program = Program { booleans: random.next(), ..Program::default() };
    // The generator creates the last function first, so that the loop depth of each called function is known.
    program.functions.resize(count, Vec::new());
    for index in (0..count).rev() {
        let mut scope =
            Scope { random: &mut random, shape, program: &program, callees: index + 1, in_function: true };
        let function = scope.block(FUNCTION_DEPTH, shape.loops.min(2), false);
        program.functions[index] = function;
    }
    let mut scope = Scope { random: &mut random, shape, program: &program, callees: 0, in_function: false };
    program.body = scope.block(shape.depth, shape.loops, false);
    program
}

/// Returns the initial variables of `count` lanes, from a seed. Variable 0, the trace, is 0.
pub fn lanes(seed: u64, count: usize) -> Vec<Lane> {
    let mut random = Random::new(seed.rotate_left(32));
    let mut value = || random.below(STEP_MODULUS as u32) as i32;
    (0..count).map(|_| [0, value(), value(), value()]).collect()
}

struct Scope<'a> {
    random: &'a mut Random,
    shape: Shape,
    /// The program with the functions that were generated so far.
    program: &'a Program,
    /// The first function that may be called.
    callees: usize,
    in_function: bool,
}

impl Scope<'_> {
    /// Returns a block. Constructs in the block are nested at most `depth` deep, and loops at most `loops` deep.
    fn block(&mut self, depth: u32, loops: u32, in_loop: bool) -> Vec<Statement> {
        let count = 1 + self.random.below(self.shape.statements);
        (0..count).map(|_| self.statement(depth, loops, in_loop)).collect()
    }

    fn statement(&mut self, depth: u32, loops: u32, in_loop: bool) -> Statement {
        let kind = self.random.below(16);
        match kind {
            0..=8 if self.shape.loops_first && depth > 0 && loops > 0 => {
                let count = 1 + self.random.below(self.shape.rounds);
                Statement::Loop(count, self.block(depth - 1, loops - 1, true))
            }
            0..=3 if depth > 0 => {
                let condition = self.condition();
                let then = self.block(depth - 1, loops, in_loop);
                let otherwise = (kind < 2).then(|| self.block(depth - 1, loops, in_loop));
                Statement::If(condition, then, otherwise)
            }
            4 if depth > 0 => {
                let index = self.random.below(32);
                Statement::IfStatic(index, self.block(depth - 1, loops, in_loop))
            }
            5 | 6 if depth > 0 && loops > 0 => {
                let count = self.random.below(self.shape.rounds + 1);
                Statement::Loop(count, self.block(depth - 1, loops - 1, true))
            }
            7 | 8 if in_loop => Statement::Break(self.maybe_condition()),
            9 if in_loop => Statement::Continue(self.maybe_condition()),
            10 | 11 => self.call(loops).unwrap_or(Statement::Mix(10)),
            12 if self.shape.exits && self.random.once_in(4) => Statement::Exit(Some(self.condition())),
            12 if self.may_return(depth) => Statement::Return(self.maybe_condition()),
            12 | 13 => Statement::Step(1 + self.random.below(VARIABLES as u32 - 1) as usize),
            _ => Statement::Mix(1 + self.random.below(63) as i32),
        }
    }

    fn may_return(&self, depth: u32) -> bool {
        match self.shape.returns {
            Returns::Nowhere => false,
            Returns::AtTop => self.in_function && depth == FUNCTION_DEPTH,
            Returns::Anywhere => self.in_function,
        }
    }

    /// Returns a call of a function in which loops are nested at most `loops` deep.
    fn call(&mut self, loops: u32) -> Option<Statement> {
        let fits = |index: &usize| self.program.loops_in(&self.program.functions[*index]) <= loops;
        let choices: Vec<usize> = (self.callees..self.program.functions.len()).filter(fits).collect();
        if choices.is_empty() {
            return None;
        }
        let function = choices[self.random.below(choices.len() as u32) as usize];
        Some(Statement::Call(function, self.maybe_condition()))
    }

    fn condition(&mut self) -> Condition {
        let compares = [Compare::Less, Compare::GreaterEqual, Compare::Equal, Compare::NotEqual];
        Condition {
            variable: 1 + self.random.below(VARIABLES as u32 - 1) as usize,
            compare: compares[self.random.below(4) as usize],
            number: self.random.below(STEP_MODULUS as u32) as i32,
        }
    }

    /// Returns a condition with a probability of 3 / 4. Returns no condition with a probability of 1 / 4. A break
    /// without a condition is less frequent, because the statements after this break are unreachable.
    fn maybe_condition(&mut self) -> Option<Condition> {
        (!self.random.once_in(4)).then(|| self.condition())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_program() {
        assert_eq!(generate(7, Shape::WIDE), generate(7, Shape::WIDE));
        assert_ne!(generate(7, Shape::WIDE), generate(8, Shape::WIDE));
    }

    #[test]
    fn every_kind_of_statement_occurs() {
        let all = |seed| Shape { returns: Returns::Anywhere, exits: true, ..Shape::of(seed) };
        let text: String = (0..300).map(|seed| format!("{:?}", generate(seed, all(seed)))).collect();
        for kind in [
            "Mix",
            "Step",
            "If(",
            "IfStatic",
            "Loop",
            "Break(None)",
            "Break(Some",
            "Continue(None)",
            "Continue(Some",
            "Call(0, None)",
            "Call(3, Some",
            "Return(None)",
            "Return(Some",
            "Exit(Some",
        ] {
            assert!(text.contains(kind), "{kind}");
        }
    }

    #[test]
    fn four_loops_nest_and_never_more() {
        let depths: Vec<u32> = (0..300).map(|seed| generate(seed, Shape::of(seed)).loop_depth()).collect();
        assert!(depths.iter().filter(|depth| **depth == 4).count() > 20);
        assert_eq!(depths.iter().max(), Some(&4));
    }

    #[test]
    fn only_who_asks_gets_returns_and_exits() {
        let text: String = (0..300).map(|seed| format!("{:?}", generate(seed, Shape::of(seed)))).collect();
        assert!(!text.contains("Return") && !text.contains("Exit"));
        for seed in 0..300 {
            let program = generate(seed, Shape { returns: Returns::AtTop, ..Shape::of(seed) });
            let inside = program.functions.concat().iter().any(|statement| {
                !matches!(statement, Statement::Return(_)) && format!("{statement:?}").contains("Return")
            });
            assert!(!inside, "seed {seed}");
        }
    }
}
