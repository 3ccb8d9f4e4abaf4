//! Formulas over the state of a group. Examples are `$r3@5 + 1`, `temp0.x@3 * 2` and `g[0x10] == 7 && $r1 > 2`.
//!
//! A formula is evaluated for one lane. A register without `@LANE` is the register of this lane. If each lane has a
//! separate instance of a memory space, the name of the space refers to the instance of this lane. Registers of R500
//! are floats. On R700 and Tesla, the operand on the opposite side of the operator determines the type of a register.
//! If this operand is a float (`1.5`), the register is a float. If this operand is negative (`-1`), the register is a
//! signed integer. In all other cases, the register is an unsigned integer.

use std::fmt;

use reconverge_simt::{Lane, Mask};

use super::Debugger;
use super::names::{brief, number, register, shown, shown_in};
use crate::session::{GroupState, Register, RegisterClass, SpaceOf, Stepping};

/// A parsed formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    text: String,
    root: Tree,
}

#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Literal(Quantity),
    /// A register. The lane is present if the formula names a lane. The flag is set if registers of the machine are
    /// floats.
    Register(Register, Option<Lane>, bool),
    /// A 32-bit word of a memory space. `private` is set if each lane has a separate memory. `lane` is present if the
    /// formula names a lane.
    Memory {
        space: &'static str,
        private: bool,
        address: Box<Tree>,
        lane: Option<Lane>,
    },
    /// The number of instructions that have run.
    Step,
    Negated(Box<Tree>),
    Two(Box<Tree>, Operator, Box<Tree>),
}

reconverge_isa::choices! {
    /// A binary operator. The parser takes the first operator in this list that matches the text. So a longer operator
    /// is in the list before any operator that is a prefix of the longer operator.
    enum Operator {
        Or = "||",
        And = "&&",
        Equal = "==",
        Differs = "!=",
        ShiftLeft = "<<",
        ShiftRight = ">>",
        AtMost = "<=",
        AtLeast = ">=",
        Less = "<",
        Greater = ">",
        BitOr = "|",
        BitXor = "^",
        BitAnd = "&",
        Add = "+",
        Subtract = "-",
        Multiply = "*",
        Divide = "/",
        Remainder = "%",
    }
}

impl Operator {
    /// Returns the precedence. Operators with higher values bind tighter. The order of precedence is the order in C,
    /// except that bit operators bind tighter than comparisons.
    const fn strength(self) -> u8 {
        match self {
            Operator::Or => 1,
            Operator::And => 2,
            Operator::Equal
            | Operator::Differs
            | Operator::AtMost
            | Operator::AtLeast
            | Operator::Less
            | Operator::Greater => 3,
            Operator::BitOr => 4,
            Operator::BitXor => 5,
            Operator::BitAnd => 6,
            Operator::ShiftLeft | Operator::ShiftRight => 7,
            Operator::Add | Operator::Subtract => 8,
            Operator::Multiply | Operator::Divide | Operator::Remainder => 9,
        }
    }
}

/// A value of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// The bits of a register or a word of memory. The flag is set if the bits are a float.
    Word(u32, bool),
    /// A literal in hexadecimal.
    Hex(u32),
    /// A decimal integer, or the result of a comparison.
    Integer(i64),
    /// A float.
    Float(f32),
}

impl Quantity {
    /// Returns whether the value is nonzero.
    pub fn is_true(self) -> bool {
        match self {
            Quantity::Float(value) => value != 0.0,
            Quantity::Word(bits, true) => f32::from_bits(bits) != 0.0,
            Quantity::Word(bits, false) | Quantity::Hex(bits) => bits != 0,
            Quantity::Integer(value) => value != 0,
        }
    }

    /// Returns the 32 bits of the value.
    pub fn bits(self) -> u32 {
        match self {
            Quantity::Word(bits, _) | Quantity::Hex(bits) => bits,
            Quantity::Integer(value) => value as u32,
            Quantity::Float(value) => value.to_bits(),
        }
    }

    /// Formats the value as a single decimal number. Bits that are not a float are formatted as an unsigned integer.
    pub fn short(self) -> String {
        match self {
            Quantity::Word(bits, true) => format!("{:?}", f32::from_bits(bits)),
            Quantity::Word(bits, false) | Quantity::Hex(bits) => bits.to_string(),
            Quantity::Integer(value) => value.to_string(),
            Quantity::Float(value) => format!("{value:?}"),
        }
    }

    fn float(self) -> f32 {
        match self {
            Quantity::Word(bits, _) | Quantity::Hex(bits) => f32::from_bits(bits),
            Quantity::Integer(value) => value as f32,
            Quantity::Float(value) => value,
        }
    }

    /// Converts the value to an integer. If `signed` is set, words are sign-extended.
    fn integer(self, signed: bool) -> i64 {
        match self {
            Quantity::Integer(value) => value,
            other if signed => i64::from(other.bits() as i32),
            other => i64::from(other.bits()),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Word(bits, _) | Quantity::Hex(bits) => f.write_str(&shown(*bits)),
            Quantity::Integer(value) => write!(f, "{value}"),
            Quantity::Float(value) => write!(f, "{value:?}  {:#010x}", value.to_bits()),
        }
    }
}

/// The state in which a formula is evaluated.
pub(super) struct Here<'a> {
    pub(super) stepping: &'a Stepping,
    /// Number of instructions that have run.
    pub(super) step: u64,
    pub(super) group: usize,
}

impl Here<'_> {
    /// Returns the lanes for which a formula without a lane is evaluated. The returned lanes are the active lanes, or
    /// all lanes if the group has ended.
    fn lanes(&self) -> Mask {
        match (self.stepping.issue(self.group), self.stepping.state(self.group)) {
            (Some(issue), _) => issue.mask,
            (None, GroupState::Ended) => Mask::first(self.stepping.lanes(self.group).len()),
            (None, _) => Mask::NONE,
        }
    }
}

impl Formula {
    /// Parses a formula. The launch determines the names of registers and memory spaces, and the number of lanes.
    ///
    /// # Errors
    /// Returns an error if the text is not a formula or is too long. Also returns an error if the text contains the
    /// name of a register, lane or space that does not exist.
    pub fn parse(debugger: &Debugger, text: &str) -> Result<Formula, String> {
        if text.trim().is_empty() {
            return Err("a formula is missing".to_owned());
        }
        let mut parser = Parser { debugger, text, rest: text.trim_start(), parts: 0 };
        let root = parser.operators(0).and_then(|root| match parser.rest.trim() {
            "" => Ok(root),
            rest => Err(format!("`{text}`: expected an operator, found `{rest}`")),
        });
        match root {
            Ok(root) => Ok(Formula { text: text.trim().to_owned(), root }),
            Err(why) => Err(brief(&why)),
        }
    }

    /// Evaluates the formula for a lane of the group.
    pub(super) fn value(&self, here: &Here<'_>, lane: Lane) -> Result<Quantity, String> {
        self.root.value(here, lane)
    }

    /// Returns whether the value depends on the lane for which the formula is evaluated.
    pub fn is_of_a_lane(&self) -> bool {
        self.root.is_of_a_lane()
    }

    /// If the formula is a single register, returns this register. If the formula names a lane, also returns this lane.
    pub fn register(&self) -> Option<(Register, Option<Lane>)> {
        match &self.root {
            Tree::Register(register, lane, _) => Some((*register, *lane)),
            _ => None,
        }
    }

    /// If the formula is a single word of memory, returns the memory space, the lane and the address of this word. If
    /// the formula does not name a lane, the function returns `lane` as the lane.
    pub(super) fn place(&self, here: &Here<'_>, lane: Lane) -> Option<(&'static str, Lane, u32)> {
        let Tree::Memory { space, address, lane: named, .. } = &self.root else { return None };
        let lane = named.unwrap_or(lane);
        Some((space, lane, place_in(space, address.value(here, lane).ok()?).ok()?))
    }

    /// Returns `None` if the formula is false for all active lanes. Otherwise, returns the first active lane for which
    /// the formula is true. If the formula does not depend on the lane, returns `Some(None)` instead of this lane.
    ///
    /// # Errors
    /// If the formula is true for an active lane, the function does not return an error. If the formula is true for no
    /// active lane, and its evaluation fails for an active lane, the function returns an error.
    pub(super) fn holds(&self, here: &Here<'_>) -> Result<Option<Option<Lane>>, String> {
        if !self.is_of_a_lane() {
            return Ok(self.value(here, Lane(0))?.is_true().then_some(None));
        }
        let mut failed = None;
        for lane in here.lanes().lanes() {
            match self.value(here, lane) {
                Ok(value) if value.is_true() => return Ok(Some(Some(lane))),
                Ok(_) => {}
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        failed.map_or(Ok(None), Err)
    }

    /// If the formula is a comparison, returns the left operand. Otherwise, returns the whole formula. A message about
    /// a failed comparison shows the value of the left operand.
    pub(super) fn compared(&self) -> Formula {
        let root = match &self.root {
            Tree::Two(left, operator, _) if operator.strength() == Operator::Equal.strength() => &**left,
            other => other,
        };
        Formula { text: self.text.clone(), root: root.clone() }
    }

    /// Formats a value of this formula. If the formula is a register, the value has the format of [`shown_in`].
    pub fn shown(&self, value: Quantity) -> String {
        match self.register() {
            Some((register, _)) => shown_in(register, value.bits()),
            None => value.to_string(),
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Tree {
    fn is_of_a_lane(&self) -> bool {
        match self {
            Tree::Literal(_) | Tree::Step => false,
            Tree::Register(_, lane, _) => lane.is_none(),
            Tree::Memory { private, address, lane, .. } => {
                lane.is_none() && (*private || address.is_of_a_lane())
            }
            Tree::Negated(of) => of.is_of_a_lane(),
            Tree::Two(left, _, right) => left.is_of_a_lane() || right.is_of_a_lane(),
        }
    }

    fn value(&self, here: &Here<'_>, lane: Lane) -> Result<Quantity, String> {
        Ok(match self {
            Tree::Literal(value) => *value,
            Tree::Step => Quantity::Integer(here.step as i64),
            Tree::Register(register, named, float) => {
                let lane = named.unwrap_or(lane);
                let values = here.stepping.read(here.group, *register);
                let value = values.as_ref().and_then(|values| values.get(lane.index()));
                let value = value.ok_or_else(|| absent(here.stepping, here.group, lane))?;
                Quantity::Word(*value, *float)
            }
            Tree::Memory { space, address, lane: named, .. } => {
                let lane = named.unwrap_or(lane);
                let address = place_in(space, address.value(here, lane)?)?;
                let bytes = here.stepping.memory(space, here.group, lane, address, 4);
                let word = <[u8; 4]>::try_from(bytes)
                    .map_err(|_| format!("{space}[{address:#x}]: no word exists at this address"))?;
                Quantity::Word(u32::from_le_bytes(word), false)
            }
            Tree::Negated(of) => match of.value(here, lane)? {
                Quantity::Integer(value) => Quantity::Integer(value.checked_neg().ok_or_else(overflow)?),
                Quantity::Float(value) => Quantity::Float(-value),
                Quantity::Word(bits, true) => Quantity::Float(-f32::from_bits(bits)),
                Quantity::Word(bits, false) | Quantity::Hex(bits) => {
                    Quantity::Word(bits.wrapping_neg(), false)
                }
            },
            Tree::Two(left, Operator::And, right) => {
                let both = left.value(here, lane)?.is_true() && right.value(here, lane)?.is_true();
                Quantity::Integer(both.into())
            }
            Tree::Two(left, Operator::Or, right) => {
                let one = left.value(here, lane)?.is_true() || right.value(here, lane)?.is_true();
                Quantity::Integer(one.into())
            }
            Tree::Two(left, operator, right) => {
                operate(*operator, left.value(here, lane)?, right.value(here, lane)?)?
            }
        })
    }
}

/// Converts a value to an address in a memory space.
fn place_in(space: &str, address: Quantity) -> Result<u32, String> {
    match address {
        Quantity::Integer(value) => {
            u32::try_from(value).map_err(|_| format!("{space}[{value}]: expected a 32-bit address"))
        }
        other => Ok(other.bits()),
    }
}

/// Returns the message that a number is too large.
fn overflow() -> String {
    "the result does not fit in 64 bits".to_owned()
}

/// Explains why the registers of a group or lane cannot be read.
fn absent(stepping: &Stepping, group: usize, lane: Lane) -> String {
    match stepping.state(group) {
        GroupState::Waiting => {
            format!("group {group} waits for the groups before it and has no registers yet")
        }
        GroupState::Ended => format!("group {group} has ended, and its last state is no longer kept"),
        GroupState::Running => format!("group {group} has no lane {}", lane.0),
    }
}

fn operate(operator: Operator, left: Quantity, right: Quantity) -> Result<Quantity, String> {
    use Quantity::{Float, Hex, Integer, Word};
    let either = |test: fn(Quantity) -> bool| test(left) || test(right);
    let float = either(|value| matches!(value, Float(_)))
        || either(|value| matches!(value, Word(_, true))) && !either(|value| matches!(value, Hex(_)));
    if float {
        return in_floats(operator, left.float(), right.float());
    }
    let signed = either(|value| matches!(value, Integer(number) if number < 0));
    let (left_value, right_value) = (left.integer(signed), right.integer(signed));
    let literals = matches!((left, right), (Integer(_), Integer(_)));
    let truth = |holds: bool| Ok(Integer(holds.into()));
    // If both operands are decimal integers, the result is a 64-bit integer. Otherwise, the result is truncated to 32
    // bits, as on the machines. An overflow of 64 bits is an error.
    let number = |value: Option<i64>| match value {
        None => Err(overflow()),
        Some(value) if literals => Ok(Integer(value)),
        Some(value) => Ok(Word(value as u32, false)),
    };
    let shift = || {
        let by = u32::try_from(right_value).ok().filter(|by| *by < 64);
        by.ok_or_else(|| format!("`{operator}` shifts by 0 to 63 bits, not {right_value}"))
    };
    let is_divided = matches!(operator, Operator::Divide | Operator::Remainder);
    if is_divided && right_value == 0 {
        return Err("division by zero".to_owned());
    }
    match operator {
        Operator::Or | Operator::And => truth(left.is_true() || right.is_true()),
        Operator::Equal => truth(left_value == right_value),
        Operator::Differs => truth(left_value != right_value),
        Operator::AtMost => truth(left_value <= right_value),
        Operator::AtLeast => truth(left_value >= right_value),
        Operator::Less => truth(left_value < right_value),
        Operator::Greater => truth(left_value > right_value),
        Operator::BitOr => number(Some(left_value | right_value)),
        Operator::BitXor => number(Some(left_value ^ right_value)),
        Operator::BitAnd => number(Some(left_value & right_value)),
        Operator::ShiftLeft => {
            let by = shift()?;
            number(Some(left_value << by).filter(|shifted| !literals || shifted >> by == left_value))
        }
        Operator::ShiftRight => number(Some(left_value >> shift()?)),
        Operator::Add => number(left_value.checked_add(right_value)),
        Operator::Subtract => number(left_value.checked_sub(right_value)),
        Operator::Multiply => number(left_value.checked_mul(right_value)),
        Operator::Divide => number(left_value.checked_div(right_value)),
        Operator::Remainder => number(left_value.checked_rem(right_value)),
    }
}

fn in_floats(operator: Operator, left: f32, right: f32) -> Result<Quantity, String> {
    let truth = |holds: bool| Ok(Quantity::Integer(holds.into()));
    let number = |value: f32| Ok(Quantity::Float(value));
    match operator {
        Operator::Equal => truth(left == right),
        Operator::Differs => truth(left != right),
        Operator::AtMost => truth(left <= right),
        Operator::AtLeast => truth(left >= right),
        Operator::Less => truth(left < right),
        Operator::Greater => truth(left > right),
        Operator::Add => number(left + right),
        Operator::Subtract => number(left - right),
        Operator::Multiply => number(left * right),
        Operator::Divide => number(left / right),
        Operator::Remainder => number(left % right),
        Operator::Or
        | Operator::And
        | Operator::BitOr
        | Operator::BitXor
        | Operator::BitAnd
        | Operator::ShiftLeft
        | Operator::ShiftRight => Err(format!("`{operator}`: expected integers, found a float")),
    }
}

struct Parser<'a> {
    debugger: &'a Debugger,
    text: &'a str,
    rest: &'a str,
    /// Number of operands and operators parsed so far.
    parts: usize,
}

/// Maximum number of operands and operators in a formula. Each operand or operator can add a level to the syntax tree.
/// The maximum therefore also limits the recursion depth.
const MOST_PARTS: usize = 1000;

/// Maximum nesting depth of parentheses and signs.
const DEEPEST: usize = 64;

impl<'a> Parser<'a> {
    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(text);
        if let Some(rest) = rest {
            self.rest = rest;
        }
        rest.is_some()
    }

    /// Consumes characters while `fits` returns `true`. Returns the consumed text.
    fn word(&mut self, fits: fn(char) -> bool) -> &'a str {
        let rest = self.rest;
        let end = rest.find(|letter| !fits(letter)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    fn operators(&mut self, depth: usize) -> Result<Tree, String> {
        self.weaker(0, depth)
    }

    /// Parses an expression whose operators bind tighter than `strength` (precedence climbing).
    fn weaker(&mut self, strength: u8, depth: usize) -> Result<Tree, String> {
        let mut left = self.operand(depth)?;
        loop {
            let rest = self.rest.trim_start();
            let operator = Operator::ALL.into_iter().find(|operator| rest.starts_with(operator.name()));
            let Some(operator) = operator.filter(|operator| operator.strength() > strength) else {
                return Ok(left);
            };
            self.rest = &rest[operator.name().len()..];
            self.count()?;
            let right = self.weaker(operator.strength(), depth)?;
            left = Tree::Two(Box::new(left), operator, Box::new(right));
        }
    }

    /// Counts one operand or operator. Returns an error if the formula has too many operands and operators.
    fn count(&mut self) -> Result<(), String> {
        self.parts += 1;
        match self.parts > MOST_PARTS {
            true => Err(format!("`{}` has more than {MOST_PARTS} operands and operators", self.text)),
            false => Ok(()),
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Tree, String> {
        self.count()?;
        if depth > DEEPEST {
            return Err(format!("`{}` nests deeper than {DEEPEST}", self.text));
        }
        if self.eat("(") {
            let inside = self.operators(depth + 1)?;
            return match self.eat(")") {
                true => Ok(inside),
                false => Err(format!("`{}`: missing closing parenthesis", self.text)),
            };
        }
        if self.eat("-") {
            let of = self.operand(depth + 1)?;
            return Ok(match of {
                Tree::Literal(Quantity::Integer(value)) => Tree::Literal(Quantity::Integer(-value)),
                Tree::Literal(Quantity::Float(value)) => Tree::Literal(Quantity::Float(-value)),
                other => Tree::Negated(Box::new(other)),
            });
        }
        self.rest = self.rest.trim_start();
        match self.rest.chars().next() {
            Some(first) if first.is_ascii_digit() => self.literal(),
            Some(first) if first.is_alphabetic() || first == '$' => self.named(depth),
            Some(_) => Err(format!(
                "`{}`: expected a register, memory or a number, found `{}`",
                self.text, self.rest
            )),
            None => Err(format!("`{}`: expected a register, memory or a number at the end", self.text)),
        }
    }

    fn literal(&mut self) -> Result<Tree, String> {
        let mut word = self.word(|letter| letter.is_ascii_alphanumeric() || letter == '.').to_owned();
        let exponent =
            word.ends_with(['e', 'E']) && !word.starts_with("0x") && self.rest.starts_with(['-', '+']);
        if exponent {
            word.push_str(&self.rest[..1]);
            self.rest = &self.rest[1..];
            word.push_str(self.word(|letter| letter.is_ascii_digit()));
        }
        let value = if word.starts_with("0x") {
            number(&word).map(Quantity::Hex)
        } else if word.contains(['.', 'e', 'E']) {
            word.parse().ok().map(Quantity::Float)
        } else {
            word.parse().ok().map(Quantity::Integer)
        };
        value.map(Tree::Literal).ok_or_else(|| format!("`{word}` is not a number"))
    }

    fn named(&mut self, depth: usize) -> Result<Tree, String> {
        let start = self.rest;
        let name = self.word(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$');
        let spaces = self.debugger.stepping().spaces();
        if let Some(space) = spaces.iter().find(|space| space.name == name)
            && self.eat("[")
        {
            let address = Box::new(self.operators(depth + 1)?);
            if !self.eat("]") {
                return Err(format!("`{}`: missing closing bracket", self.text));
            }
            let (lane, private) = (self.lane()?, space.of == SpaceOf::Lane);
            return Ok(Tree::Memory { space: space.name, private, address, lane });
        }
        if let Some(space) = spaces.iter().find(|space| space.name == name) {
            return Err(format!("`{name}`: memory needs an address, such as `{}[0x10]`", space.name));
        }
        if name == "step" {
            return Ok(Tree::Step);
        }
        let begins_a_class = |class: &RegisterClass| {
            let begin = name.get(..class.name.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(class.name))
        };
        if self.rest.starts_with('[') && !self.debugger.stepping().registers().iter().any(begins_a_class) {
            let all: Vec<&str> = spaces.iter().map(|space| space.name).collect();
            return Err(format!("unknown memory `{name}`; expected one of {}", all.join(", ")));
        }
        // The name of a register may continue with an index or a channel: `temp[3].r`, `R1.x`.
        if self.rest.starts_with('[') {
            self.word(|letter| letter.is_ascii_digit() || letter == '[' || letter == ']');
        }
        if self.rest.starts_with('.') {
            self.word(|letter| letter.is_alphanumeric() || letter == '.');
        }
        let word = &start[..start.len() - self.rest.len()];
        let register = register(&self.debugger.stepping().registers(), word)?;
        Ok(Tree::Register(register, self.lane()?, self.debugger.has_float_registers()))
    }

    /// Parses `@LANE`, if `@LANE` is present.
    fn lane(&mut self) -> Result<Option<Lane>, String> {
        if !self.rest.starts_with('@') {
            return Ok(None);
        }
        self.rest = &self.rest[1..];
        match self.word(|letter| letter.is_alphanumeric()) {
            "any" => Ok(None),
            word => super::names::lane_of(self.debugger, word).map(Some),
        }
    }
}
