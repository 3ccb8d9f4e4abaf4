//! Derives smaller programs from a program that fails.

use crate::tree::{Program, Statement};

impl Program {
    /// Returns the smaller programs that one change of this program makes. A change is one of these: remove a function
    /// that is not called, remove a statement, replace a construct by its contents or by a part of its contents, drop a
    /// condition, or reduce the number of iterations of a loop.
    pub fn smaller(&self) -> Vec<Program> {
        let mut found = Vec::new();
        // A change removes only the last function, so that the remaining functions keep their numbers.
        if let Some(last) = self.functions.len().checked_sub(1)
            && !self.calls(last)
        {
            found.push(Program { functions: self.functions[..last].to_vec(), ..self.clone() });
        }
        let bodies = smaller_blocks(&self.body).into_iter();
        found.extend(bodies.map(|body| Program { body, ..self.clone() }));
        for (index, function) in self.functions.iter().enumerate() {
            found.extend(smaller_blocks(function).into_iter().map(|block| {
                let mut program = self.clone();
                program.functions[index] = block;
                program
            }));
        }
        found
    }

    fn calls(&self, function: usize) -> bool {
        fn calls(block: &[Statement], function: usize) -> bool {
            block.iter().any(|statement| match statement {
                Statement::Call(index, _) => *index == function,
                Statement::If(_, then, otherwise) => {
                    calls(then, function) || otherwise.as_ref().is_some_and(|block| calls(block, function))
                }
                Statement::IfStatic(_, body) | Statement::Loop(_, body) => calls(body, function),
                Statement::Mix(_)
                | Statement::Step(_)
                | Statement::Break(_)
                | Statement::Continue(_)
                | Statement::Return(_)
                | Statement::Exit(_) => false,
            })
        }
        calls(&self.body, function) || self.functions.iter().any(|block| calls(block, function))
    }
}

/// Returns each block that results from `block` by one change.
fn smaller_blocks(block: &[Statement]) -> Vec<Vec<Statement>> {
    let replaced = |at: usize, by: &[Statement]| [&block[..at], by, &block[at + 1..]].concat();
    let mut found: Vec<_> = (0..block.len()).map(|at| replaced(at, &[])).collect();
    for (at, statement) in block.iter().enumerate() {
        found.extend(smaller_statements(statement).iter().map(|by| replaced(at, by)));
    }
    found
}

/// Returns the statements that may replace a statement.
fn smaller_statements(statement: &Statement) -> Vec<Vec<Statement>> {
    let mut found = Vec::new();
    match statement {
        Statement::If(condition, then, otherwise) => {
            found.push(then.clone());
            if let Some(block) = otherwise {
                found.push(block.clone());
                found.push(vec![Statement::If(*condition, then.clone(), None)]);
                let blocks = smaller_blocks(block).into_iter();
                found.extend(blocks.map(|block| vec![Statement::If(*condition, then.clone(), Some(block))]));
            }
            let blocks = smaller_blocks(then).into_iter();
            found.extend(blocks.map(|block| vec![Statement::If(*condition, block, otherwise.clone())]));
        }
        Statement::IfStatic(index, body) => {
            found.push(body.clone());
            let blocks = smaller_blocks(body).into_iter();
            found.extend(blocks.map(|block| vec![Statement::IfStatic(*index, block)]));
        }
        // A change does not replace a loop by the loop's body, because the body may contain a break.
        Statement::Loop(count, body) => {
            found.extend((0..*count).map(|count| vec![Statement::Loop(count, body.clone())]));
            let blocks = smaller_blocks(body).into_iter();
            found.extend(blocks.map(|block| vec![Statement::Loop(*count, block)]));
        }
        Statement::Break(Some(_)) => found.push(vec![Statement::Break(None)]),
        Statement::Continue(Some(_)) => found.push(vec![Statement::Continue(None)]),
        Statement::Call(index, Some(_)) => found.push(vec![Statement::Call(*index, None)]),
        Statement::Return(Some(_)) => found.push(vec![Statement::Return(None)]),
        Statement::Exit(Some(_)) => found.push(vec![Statement::Exit(None)]),
        Statement::Mix(_)
        | Statement::Step(_)
        | Statement::Break(None)
        | Statement::Continue(None)
        | Statement::Call(_, None)
        | Statement::Return(None)
        | Statement::Exit(None) => {}
    }
    found
}
