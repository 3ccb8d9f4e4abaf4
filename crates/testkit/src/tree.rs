//! The program tree and the meaning of its statements.
//!
//! Every lane has [`VARIABLES`] variables. The variables are integers between -2^12 and 2^12, so that any machine can
//! compute exactly, in integers or in binary32. Variable 0 is the trace. [`Statement::Mix`] changes the trace. The
//! trace therefore depends on which statements ran, how often, and in which order. The other variables start with the
//! inputs of the lane.

use std::fmt;

/// Number of variables per lane. The first variable is the trace.
pub const VARIABLES: usize = 4;
/// Mix: trace = (trace * `MIX_MULTIPLIER` + k) mod [`MIX_MODULUS`].
pub const MIX_MULTIPLIER: i32 = 5;
/// Modulus of the formula at [`MIX_MULTIPLIER`].
pub const MIX_MODULUS: i32 = 4096;
/// Step: variable = (variable + 1) mod `STEP_MODULUS`.
pub const STEP_MODULUS: i32 = 16;

/// Comparison of a variable with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Compare {
    Less,
    GreaterEqual,
    Equal,
    NotEqual,
}

impl Compare {
    /// Returns the opposite comparison.
    pub const fn negated(self) -> Compare {
        match self {
            Compare::Less => Compare::GreaterEqual,
            Compare::GreaterEqual => Compare::Less,
            Compare::Equal => Compare::NotEqual,
            Compare::NotEqual => Compare::Equal,
        }
    }
}

/// A comparison of a variable with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The variable, 0 to 3.
    pub variable: usize,
    /// The comparison.
    pub compare: Compare,
    /// The number, 0 to 15.
    pub number: i32,
}

impl Condition {
    /// Returns the opposite condition.
    pub const fn negated(self) -> Condition {
        Condition { compare: self.compare.negated(), ..self }
    }
}

/// One statement. An `if`, a loop or a call contains other statements.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// trace = (trace * 5 + k) mod 4096; k is 1 to 63.
    Mix(i32),
    /// variable = (variable + 1) mod 16. The number of the variable is 1 to 3.
    Step(usize),
    /// `if` with an optional else part. Both parts may be empty.
    If(Condition, Vec<Statement>, Option<Vec<Statement>>),
    /// Runs the body if boolean constant `index` is true. The constant is the same for all lanes.
    IfStatic(u32, Vec<Statement>),
    /// Runs the body a fixed number of times, 0 to [`MOST_ROUNDS`].
    Loop(u32, Vec<Statement>),
    /// Leaves the innermost loop, always or if the condition is true.
    Break(Option<Condition>),
    /// Continues with the next iteration of the innermost loop, always or if the condition is true.
    Continue(Option<Condition>),
    /// Calls function `index`, always or if the condition is true. A function calls only functions with a higher index.
    Call(usize, Option<Condition>),
    /// Returns from the function, always or if the condition is true. The statement occurs only in functions.
    Return(Option<Condition>),
    /// Ends the lane, and keeps the lane's current variables. A condition, if any, must be true.
    Exit(Option<Condition>),
}

/// Maximum number of iterations of a loop.
pub const MOST_ROUNDS: u32 = 5;

/// A program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The main block.
    pub body: Vec<Statement>,
    /// The functions. A break or continue in a function refers to a loop of the same function.
    pub functions: Vec<Vec<Statement>>,
    /// Values of the boolean constants: bit n is the value of constant n.
    pub booleans: u32,
}

impl Program {
    /// Returns the maximum nesting depth of loops, including loops in called functions.
    pub fn loop_depth(&self) -> u32 {
        self.loops_in(&self.body)
    }

    /// Returns the maximum nesting depth of loops in a block of this program.
    pub fn loops_in(&self, block: &[Statement]) -> u32 {
        let of = |statement: &Statement| match statement {
            Statement::If(_, then, otherwise) => {
                self.loops_in(then).max(otherwise.as_ref().map_or(0, |block| self.loops_in(block)))
            }
            Statement::IfStatic(_, body) => self.loops_in(body),
            Statement::Loop(_, body) => 1 + self.loops_in(body),
            Statement::Call(index, _) => self.loops_in(&self.functions[*index]),
            Statement::Mix(_)
            | Statement::Step(_)
            | Statement::Break(_)
            | Statement::Continue(_)
            | Statement::Return(_)
            | Statement::Exit(_) => 0,
        };
        block.iter().map(of).max().unwrap_or(0)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compare = match self.compare {
            Compare::Less => "<",
            Compare::GreaterEqual => ">=",
            Compare::Equal => "==",
            Compare::NotEqual => "!=",
        };
        write!(f, "v{} {compare} {}", self.variable, self.number)
    }
}

/// Prints the program with one statement per line, and nested statements indented.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_block(f, &self.body, 0)?;
        for (index, function) in self.functions.iter().enumerate() {
            writeln!(f, "function {index}")?;
            write_block(f, function, 1)?;
        }
        writeln!(f, "booleans {:#010x}", self.booleans)
    }
}

fn write_block(f: &mut fmt::Formatter<'_>, block: &[Statement], depth: usize) -> fmt::Result {
    let indent = "  ".repeat(depth);
    let only_if = |condition: &Option<Condition>| match condition {
        Some(condition) => format!(" if {condition}"),
        None => String::new(),
    };
    for statement in block {
        match statement {
            Statement::Mix(k) => writeln!(f, "{indent}mix {k}")?,
            Statement::Step(variable) => writeln!(f, "{indent}step v{variable}")?,
            Statement::If(condition, then, otherwise) => {
                writeln!(f, "{indent}if {condition}")?;
                write_block(f, then, depth + 1)?;
                if let Some(otherwise) = otherwise {
                    writeln!(f, "{indent}else")?;
                    write_block(f, otherwise, depth + 1)?;
                }
            }
            Statement::IfStatic(index, body) => {
                writeln!(f, "{indent}if boolean {index}")?;
                write_block(f, body, depth + 1)?;
            }
            Statement::Loop(count, body) => {
                writeln!(f, "{indent}loop {count}")?;
                write_block(f, body, depth + 1)?;
            }
            Statement::Break(condition) => writeln!(f, "{indent}break{}", only_if(condition))?,
            Statement::Continue(condition) => writeln!(f, "{indent}continue{}", only_if(condition))?,
            Statement::Call(index, condition) => writeln!(f, "{indent}call {index}{}", only_if(condition))?,
            Statement::Return(condition) => writeln!(f, "{indent}return{}", only_if(condition))?,
            Statement::Exit(condition) => writeln!(f, "{indent}exit{}", only_if(condition))?,
        }
    }
    Ok(())
}
