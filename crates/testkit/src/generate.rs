//! Program trees from seeds.

use crate::random::Random;
use crate::tree::{Compare, Condition, Program, Statement, VARIABLES};

/// How large programs may be. The limits keep what a machine needs at once small: loops nest at most
/// `loops` deep in the body and once in each function, calls nest at most twice.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Constructs inside each other, in the body.
    pub depth: u32,
    /// Loops inside each other, in the body.
    pub loops: u32,
    /// Statements a block, at most.
    pub statements: u32,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { depth: 4, loops: 2, statements: 4 }
    }
}

/// The program of a seed.
pub fn generate(seed: u64, shape: Shape) -> Program {
    let mut random = Random::new(seed);
    let functions = random.below(3) as usize;
    let mut program = Program { booleans: random.next(), ..Program::default() };
    for index in 0..functions {
        let mut scope = Scope { random: &mut random, shape, first_function: index + 1, functions };
        program.functions.push(scope.block(2, 1, false));
    }
    let mut scope = Scope { random: &mut random, shape, first_function: 0, functions };
    program.body = scope.block(shape.depth, shape.loops, false);
    program
}

struct Scope<'a> {
    random: &'a mut Random,
    shape: Shape,
    first_function: usize,
    functions: usize,
}

impl Scope<'_> {
    /// A block that may nest `depth` more constructs, `loops` of them loops.
    fn block(&mut self, depth: u32, loops: u32, in_loop: bool) -> Vec<Statement> {
        let count = 1 + self.random.below(self.shape.statements);
        (0..count).map(|_| self.statement(depth, loops, in_loop)).collect()
    }

    fn statement(&mut self, depth: u32, loops: u32, in_loop: bool) -> Statement {
        let kind = self.random.below(14);
        match kind {
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
                let count = self.random.below(6);
                Statement::Loop(count, self.block(depth - 1, loops - 1, true))
            }
            7 if in_loop => Statement::Break(self.maybe_condition()),
            8 if in_loop => Statement::Continue(self.maybe_condition()),
            9 if self.first_function < self.functions => {
                let choices = (self.functions - self.first_function) as u32;
                let function = self.first_function + self.random.below(choices) as usize;
                Statement::Call(function, self.maybe_condition())
            }
            10 | 11 => Statement::Step(1 + self.random.below(VARIABLES as u32 - 1) as usize),
            _ => Statement::Mix(1 + self.random.below(63) as i32),
        }
    }

    fn condition(&mut self) -> Condition {
        let compares = [Compare::Less, Compare::GreaterEqual, Compare::Equal, Compare::NotEqual];
        Condition {
            variable: 1 + self.random.below(VARIABLES as u32 - 1) as usize,
            compare: compares[self.random.below(4) as usize],
            number: self.random.below(16) as i32,
        }
    }

    /// Mostly a condition: an unconditional break hides what follows.
    fn maybe_condition(&mut self) -> Option<Condition> {
        (!self.random.once_in(4)).then(|| self.condition())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_program() {
        assert_eq!(generate(7, Shape::default()), generate(7, Shape::default()));
        assert_ne!(generate(7, Shape::default()), generate(8, Shape::default()));
    }

    #[test]
    fn every_kind_of_statement_occurs() {
        let text: String = (0..200).map(|seed| format!("{:?}", generate(seed, Shape::default()))).collect();
        for kind in
            ["Mix", "Step", "If(", "IfStatic", "Loop", "Break(None)", "Break(Some", "Continue(Some", "Call"]
        {
            assert!(text.contains(kind), "{kind}");
        }
    }
}
