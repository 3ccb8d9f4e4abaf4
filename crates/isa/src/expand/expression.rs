//! Expressions of constants: 64-bit integers and floats, with the operators and precedences of C.

use std::fmt;

use crate::source::{number_len, parse_float, parse_number, word_len};

/// Value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A float, which is always finite.
    Float(f64),
}

/// Writes the value in a notation that the texts of all three machines accept. A float always has a decimal point and
/// never has an exponent.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) if value.fract() == 0.0 => write!(f, "{value:.1}"),
            Value::Float(value) => write!(f, "{value}"),
        }
    }
}

impl Value {
    /// Returns whether a condition with this value is true.
    pub(super) fn is_true(self) -> bool {
        self != Value::Int(0) && self != Value::Float(0.0)
    }

    fn float(self) -> f64 {
        match self {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
        }
    }
}

/// A mistake in an expression, and its position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) why: String,
}

/// An expression at the start of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Read {
    pub(super) value: Value,
    /// Length of the expression's text, in bytes.
    pub(super) len: usize,
    /// Whether the expression contains the name of a constant.
    pub(super) names: bool,
    /// Whether the expression has an operator outside all parentheses.
    pub(super) operator: bool,
}

/// The part of a text that an expression may occupy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The whole text.
    Whole,
    /// The longest expression at the start of the text. Text that is not part of the expression may follow. A binary
    /// operator has space on both sides or on no side. So the text `N -2` is two operands. Comparisons, `&&` and `||`
    /// end the expression.
    Within,
    /// Like [`Reach::Within`], but an operator outside the expression is directly before the expression. The number is
    /// the precedence of that operator. The expression contains only operators with a higher precedence.
    Behind(u8),
}

/// Binary operators with their precedence. If one operator begins with another, the longer operator comes first: `<<`
/// before `<`.
#[rustfmt::skip]
const OPERATORS: [(&str, u8); 18] = [
    ("||", 1), ("&&", 2), ("==", 6), ("!=", 6), ("<<", 8), (">>", 8), ("<=", 7), (">=", 7), ("<", 7), (">", 7),
    ("|", 3), ("^", 4), ("&", 5), ("+", 9), ("-", 9), ("*", 10), ("/", 10), ("%", 10),
];

/// The lowest precedence of an operator in [`Reach::Within`]: the precedence of `|`.
const PLAIN: u8 = 3;

/// Returns the precedence of a binary operator that has one character.
pub(super) fn precedence(operator: u8) -> Option<u8> {
    OPERATORS.iter().find(|(text, _)| text.as_bytes() == [operator]).map(|(_, precedence)| *precedence)
}

/// Maximum depth of nested parentheses and signs.
const DEPTH: usize = 100;

/// Reads an expression at the start of a text. `constant` returns the value of a name.
pub(super) fn read(
    text: &str,
    reach: Reach,
    constant: &dyn Fn(&str) -> Option<Value>,
) -> Result<Read, Wrong> {
    let lowest = match reach {
        Reach::Whole => 0,
        Reach::Within => PLAIN,
        Reach::Behind(precedence) => precedence + 1,
    };
    let mut parser = Parser {
        text,
        at: 0,
        whole: reach == Reach::Whole,
        constant,
        names: false,
        operator: false,
        depth: 0,
    };
    let value = parser.binary(lowest)?;
    let read = Read { value, len: parser.at, names: parser.names, operator: parser.operator };
    let rest = &text[read.len..];
    if parser.whole && !rest.trim().is_empty() {
        let at = read.len + rest.len() - rest.trim_start().len();
        return Err(parser.wrong(
            at,
            text.trim_end().len(),
            "expected an operator or the end of the expression",
        ));
    }
    Ok(read)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    whole: bool,
    constant: &'a dyn Fn(&str) -> Option<Value>,
    names: bool,
    operator: bool,
    depth: usize,
}

impl Parser<'_> {
    fn wrong(&self, at: usize, end: usize, why: impl Into<String>) -> Wrong {
        Wrong { at, end: end.max(at), why: why.into() }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Returns the next binary operator with a precedence of at least `lowest`, and the position of the right operand.
    fn next_operator(&self, lowest: u8) -> Option<(&'static str, u8, usize)> {
        let rest = self.rest();
        let trimmed = rest.trim_start();
        let spaced = trimmed.len() < rest.len();
        let (text, precedence) = *OPERATORS.iter().find(|(text, _)| trimmed.starts_with(text))?;
        let behind = &trimmed[text.len()..];
        let compares = matches!(text, "==" | "!=" | "<" | ">" | "<=" | ">=");
        if compares && !self.whole {
            return None;
        }
        let fits = self.whole || self.depth > 0 || spaced == behind.starts_with(char::is_whitespace);
        (fits && precedence >= lowest).then(|| (text, precedence, self.text.len() - behind.len()))
    }

    fn binary(&mut self, lowest: u8) -> Result<Value, Wrong> {
        let start = self.at;
        let mut left = self.unary()?;
        while let Some((operator, precedence, behind)) = self.next_operator(lowest) {
            let (before, names) = (self.at, self.names);
            self.at = behind;
            let right = match self.binary(precedence + 1) {
                Ok(right) => right,
                // Text that is not an expression may follow the expression. The operator may belong to that text: `N +
                // $r1`.
                Err(_) if !self.whole && self.depth == 0 => {
                    (self.at, self.names) = (before, names);
                    break;
                }
                Err(wrong) => return Err(wrong),
            };
            self.operator |= self.depth == 0;
            left = apply(operator, left, right).map_err(|why| self.wrong(start, self.at, why))?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Value, Wrong> {
        self.skip_space();
        let start = self.at;
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.wrong(
                start,
                start,
                format!("expected at most {DEPTH} nested parentheses and signs"),
            ));
        }
        let value = self.operand(start);
        self.depth -= 1;
        value
    }

    fn operand(&mut self, start: usize) -> Result<Value, Wrong> {
        let Some(first) = self.rest().bytes().next() else {
            return Err(self.wrong(start, start, "a number or the name of a constant is missing here"));
        };
        match first {
            b'-' | b'~' | b'!' | b'+' => {
                self.at += 1;
                let value = self.unary()?;
                let value = match (first, value) {
                    (b'+', value) => Ok(value),
                    (b'-', Value::Int(value)) => {
                        value.checked_neg().map(Value::Int).ok_or(TOO_LARGE.to_owned())
                    }
                    (b'-', Value::Float(value)) => Ok(Value::Float(-value)),
                    (b'~', Value::Int(value)) => Ok(Value::Int(!value)),
                    (b'!', value) => Ok(Value::Int(i64::from(!value.is_true()))),
                    _ => Err("`~` needs an integer".to_owned()),
                };
                value.map_err(|why| self.wrong(start, self.at, why))
            }
            b'(' => {
                self.at += 1;
                let value = self.binary(if self.whole { 0 } else { PLAIN })?;
                self.skip_space();
                if !self.rest().starts_with(')') {
                    return Err(self.wrong(start, self.at, "this parenthesis is not closed"));
                }
                self.at += 1;
                Ok(value)
            }
            b'0'..=b'9' => {
                let len = number_len(self.rest());
                let text = &self.rest()[..len];
                let value = number(text)
                    .ok_or_else(|| self.wrong(start, start + len, format!("`{text}` is not a number")))?;
                self.at += len;
                Ok(value)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let len = word_len(self.rest());
                let name = &self.rest()[..len];
                let value = (self.constant)(name)
                    .ok_or_else(|| self.wrong(start, start + len, format!("unknown constant `{name}`")))?;
                self.at += len;
                self.names = true;
                Ok(value)
            }
            _ => {
                let len = self.rest().chars().next().map_or(0, char::len_utf8);
                Err(self.wrong(start, start + len, "expected a number, the name of a constant or `(`"))
            }
        }
    }
}

/// Parses a decimal, `0x…` or `0b…` integer, or a float.
fn number(text: &str) -> Option<Value> {
    let plain = text.replace('_', "");
    let integer = match plain.strip_prefix("0b") {
        Some(digits) => u64::from_str_radix(digits, 2).ok(),
        None => parse_number(&plain),
    };
    match integer {
        Some(value) => i64::try_from(value).ok().map(Value::Int),
        None => parse_float(&plain).filter(|value: &f64| value.is_finite()).map(Value::Float),
    }
}

const TOO_LARGE: &str = "the result has more than 64 bits";

fn apply(operator: &str, left: Value, right: Value) -> Result<Value, String> {
    let (Value::Int(a), Value::Int(b)) = (left, right) else {
        return apply_floats(operator, left, right);
    };
    let truth = |value: bool| Some(i64::from(value));
    let shift = |by: i64| u32::try_from(by).ok().filter(|by| *by < 64);
    let zero = || format!("`{operator}` by zero");
    let value = match operator {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" if b == 0 => return Err(zero()),
        "%" if b == 0 => return Err(zero()),
        "/" => a.checked_div(b),
        "%" => a.checked_rem(b),
        "&" => Some(a & b),
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "<<" | ">>" => {
            let Some(by) = shift(b) else {
                return Err(format!("expected a shift by 0 to 63 bits, found {b}"));
            };
            match operator {
                ">>" => Some(a >> by),
                _ => (a << by >> by == a).then_some(a << by),
            }
        }
        "&&" => truth(a != 0 && b != 0),
        "||" => truth(a != 0 || b != 0),
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "<" => truth(a < b),
        "<=" => truth(a <= b),
        ">" => truth(a > b),
        _ => truth(a >= b),
    };
    value.map(Value::Int).ok_or_else(|| TOO_LARGE.to_owned())
}

fn apply_floats(operator: &str, left: Value, right: Value) -> Result<Value, String> {
    let (a, b) = (left.float(), right.float());
    let truth = |value: bool| Ok(Value::Int(i64::from(value)));
    let value = match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "&&" => return truth(left.is_true() && right.is_true()),
        "||" => return truth(left.is_true() || right.is_true()),
        "==" => return truth(a == b),
        "!=" => return truth(a != b),
        "<" => return truth(a < b),
        "<=" => return truth(a <= b),
        ">" => return truth(a > b),
        ">=" => return truth(a >= b),
        _ => return Err(format!("`{operator}` needs integers")),
    };
    match value.is_finite() {
        true => Ok(Value::Float(value)),
        false => Err("the result is not a finite number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(name: &str) -> Option<Value> {
        match name {
            "N" => Some(Value::Int(16)),
            "PI" => Some(Value::Float(3.25)),
            _ => None,
        }
    }

    fn whole(text: &str) -> Result<String, String> {
        read(text, Reach::Whole, &constant).map(|read| read.value.to_string()).map_err(|wrong| wrong.why)
    }

    #[test]
    fn operators_have_the_precedences_of_c() {
        for (text, value) in [
            ("1 + 2*3", "7"),
            ("(1+2)*3", "9"),
            ("1 << 4 | 2", "18"),
            ("7 & 3 == 3", "1"),
            ("-N + 4", "-12"),
            ("10 - 4 - 3", "3"),
            ("~0", "-1"),
            ("0x10 / 3 % 4", "1"),
            ("PI / 2", "1.625"),
            ("2.0 * 3", "6.0"),
            ("1e-3", "0.001"),
            ("0.5f", "0.5"),
            ("0b101", "5"),
            ("N > 3 && N != 4", "1"),
            ("!N || 0", "0"),
            ("-8 >> 1", "-4"),
        ] {
            assert_eq!(whole(text).as_deref(), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_is_an_error() {
        for (text, why) in [
            ("", "missing"),
            ("1 +", "missing"),
            ("1 2", "an operator"),
            ("(1", "not closed"),
            ("X", "unknown constant `X`"),
            ("1 / 0", "by zero"),
            ("1 << 64", "0 to 63"),
            ("1 << 63", "64 bits"),
            ("9223372036854775807 + 1", "64 bits"),
            ("99999999999999999999", "not a number"),
            ("1.5 & 1", "needs integers"),
            ("1.0 / 0", "finite"),
            ("0x", "not a number"),
            ("12q", "not a number"),
            ("é", "expected"),
        ] {
            assert!(whole(text).is_err_and(|found| found.contains(why)), "{text}: {:?}", whole(text));
        }
        let deep = "(".repeat(100_000);
        assert!(whole(&deep).is_err_and(|why| why.contains("nested")));
    }

    #[test]
    fn within_other_text_an_expression_ends_where_it_cannot_continue() {
        for (text, value, len) in [
            ("N+4]", "20", 3),
            ("N -2", "16", 1),
            ("N - 2 x", "14", 5),
            ("N+$r1", "16", 1),
            ("4*N, R0", "64", 3),
            ("(N+1)*2 ", "34", 7),
            ("N == 1", "16", 1),
        ] {
            let read = read(text, Reach::Within, &constant).unwrap();
            assert_eq!((read.value.to_string().as_str(), read.len), (value, len), "{text}");
        }
        // In `[$r2-N+4]`, the assembler must not compute `N+4` first, because the result would be `$r2-(N+4)`.
        assert_eq!(read("N+4]", Reach::Behind(9), &constant).unwrap().len, 1);
        assert_eq!(read("N*4]", Reach::Behind(9), &constant).unwrap().len, 3);
    }
}
