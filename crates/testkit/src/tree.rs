//! The program tree, and what each statement means.
//!
//! Every lane has [`VARIABLES`] variables, integers that stay between -2^12 and 2^12, so that any machine computes them
//! exactly in integers or in binary32. Variable 0 is the trace: [`Statement::Mix`] makes it depend on what ran, how
//! often and in which order. The others start with the lane's inputs.

/// Variables of a lane; the first one is the trace.
pub const VARIABLES: usize = 4;
/// Mix: trace = (trace * `MIX_MULTIPLIER` + k) mod [`MIX_MODULUS`].
pub const MIX_MULTIPLIER: i32 = 5;
/// See [`MIX_MULTIPLIER`].
pub const MIX_MODULUS: i32 = 4096;

/// How a variable is compared with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Compare {
    Less,
    GreaterEqual,
    Equal,
    NotEqual,
}

/// A variable against a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The variable, 0 to 3.
    pub variable: usize,
    /// The comparison.
    pub compare: Compare,
    /// The number, 0 to 15.
    pub number: i32,
}

/// One statement. `if`, loops and calls contain others.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// trace = (trace * 5 + k) mod 4096; k is 1 to 63.
    Mix(i32),
    /// variable = (variable + 1) mod 16; the variable is 1 to 3.
    Step(usize),
    /// Both parts may be empty; there may be no else part at all.
    If(Condition, Vec<Statement>, Option<Vec<Statement>>),
    /// The body runs when boolean constant `index` is true; the same for all lanes.
    IfStatic(u32, Vec<Statement>),
    /// The body runs `count` times, 0 to 5.
    Loop(u32, Vec<Statement>),
    /// Leaves the innermost loop, where the condition holds or always.
    Break(Option<Condition>),
    /// Goes on with the innermost loop's next round, where the condition holds or always.
    Continue(Option<Condition>),
    /// Runs function `index`, where the condition holds or always. Functions call only functions of higher index.
    Call(usize, Option<Condition>),
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// What runs.
    pub body: Vec<Statement>,
    /// What it calls. A break or continue never crosses a function.
    pub functions: Vec<Vec<Statement>>,
    /// Boolean constants: bit n is constant n.
    pub booleans: u32,
}
