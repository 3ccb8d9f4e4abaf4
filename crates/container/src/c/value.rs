//! Evaluates constant expressions of C, with the width and sign of the operands.

use super::tokens::{Kind, Lexer, Token, escape};
use crate::Error;

/// Maximum number of parentheses and prefix operators that precede a number.
const DEEPEST: usize = 16;

/// The meaning of names in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Names have the value 0, and numbers have 64 bits, as in a condition of the preprocessor.
    AreZero,
    /// A name is an error, unless it is the name of a function with a known result. The result may depend on the byte
    /// order of the host.
    AreFunctions {
        /// Whether the host stores the most significant byte first.
        big_endian: bool,
    },
}

/// Evaluates an expression that consists of all `tokens`. `end` is the token after the expression, for errors.
pub(super) fn evaluate(
    source: &str,
    tokens: &[Token<'_>],
    end: Token<'_>,
    names: Names,
) -> Result<Value, Error> {
    let mut reader = Expression { source, tokens, at: 0, end, names };
    let value = reader.expression(0, 0)?;
    match reader.peek() {
        None => Ok(value),
        Some(other) => Err(other.wrong(source, "an operator, `,` or `}`")),
    }
}

/// Returns the value of an element's text, truncated to the width of the element.
pub(crate) fn constant(text: &str, width: usize) -> Option<u64> {
    let tokens: Vec<Token<'_>> = Lexer::part(text, 0, text.len()).collect();
    let end = *tokens.last()?;
    let value = evaluate(text, &tokens, end, Names::AreFunctions { big_endian: false }).ok()?.value;
    Some(value as u64 & (u64::MAX >> (64 - 8 * width)))
}

struct Expression<'s, 'a> {
    source: &'s str,
    tokens: &'s [Token<'a>],
    at: usize,
    end: Token<'a>,
    names: Names,
}

impl<'a> Expression<'_, 'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    fn need(&mut self, expected: &str) -> Result<Token<'a>, Error> {
        self.next().ok_or_else(|| self.end.wrong(self.source, expected))
    }

    /// Evaluates an expression whose operators have at least the precedence `least`.
    fn expression(&mut self, least: u8, depth: usize) -> Result<Value, Error> {
        let mut left = self.operand(depth)?;
        loop {
            let before = self.at;
            let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= least)
            else {
                self.at = before;
                break;
            };
            let right = self.expression(strength + 1, depth)?;
            left = left.with(operator, right).ok_or_else(|| {
                let expected = "a divisor other than 0, a shift by less than the operand's bits";
                self.tokens[before].wrong(self.source, expected)
            })?;
        }
        if least > 0 || !self.peek().is_some_and(|token| token.is("?")) {
            return Ok(left);
        }
        let question = self.need("`?`")?;
        if depth > DEEPEST {
            return Err(Error::too_deep(self.source, question.start, DEEPEST));
        }
        let first = self.expression(0, depth + 1)?;
        let colon = self.need("`:`")?;
        if !colon.is(":") {
            return Err(colon.wrong(self.source, "`:`"));
        }
        let second = self.expression(0, depth + 1)?;
        Ok(if left.value != 0 { first } else { second })
    }

    /// Returns the next token as a binary operator, and the precedence of this operator.
    fn operator(&mut self) -> Option<(&'static str, u8)> {
        #[rustfmt::skip]
        const OPERATORS: [(&str, u8); 18] = [
            ("||", 1), ("&&", 2), ("==", 6), ("!=", 6), ("<=", 7), (">=", 7), ("<<", 8), (">>", 8),
            ("|", 3), ("^", 4), ("&", 5), ("<", 7), (">", 7), ("+", 9), ("-", 9), ("*", 10), ("/", 10), ("%", 10),
        ];
        let marks = self.tokens[self.at..].iter().take(2);
        let marks: Vec<&str> =
            marks.take_while(|token| token.kind == Kind::Mark).map(|token| token.text).collect();
        let fits = |text: &str| {
            text.bytes()
                .enumerate()
                .all(|(at, byte)| marks.get(at).is_some_and(|mark| mark.as_bytes() == [byte]))
        };
        let found = OPERATORS.into_iter().find(|(text, _)| fits(text))?;
        self.at += found.0.len();
        Some(found)
    }

    /// Evaluates a constant with its prefix operators, or an expression in parentheses.
    fn operand(&mut self, depth: usize) -> Result<Value, Error> {
        const EXPECTED: &str = "an integer constant, `,` or `}`";
        let token = self.need(EXPECTED)?;
        if depth > DEEPEST {
            return Err(Error::too_deep(self.source, token.start, DEEPEST));
        }
        let wrong = || token.wrong(self.source, EXPECTED);
        match (token.kind, token.text) {
            (Kind::Number, number) if self.names == Names::AreZero => {
                Value::literal(number).map(Value::widest).ok_or_else(wrong)
            }
            (Kind::Number, number) => Value::literal(number).ok_or_else(wrong),
            (Kind::Character, text) => character(text).map(Value::int).ok_or_else(wrong),
            (Kind::Mark, "-") => Ok(self.operand(depth + 1)?.map(|value| -value)),
            (Kind::Mark, "+") => self.operand(depth + 1),
            (Kind::Mark, "~") => Ok(self.operand(depth + 1)?.map(|value| !value)),
            (Kind::Mark, "!") => Ok(Value::truth(self.operand(depth + 1)?.value == 0)),
            (Kind::Mark, "(") => {
                let types: Vec<&str> = self.tokens[self.at..]
                    .iter()
                    .take(8)
                    .take_while(|token| token.kind == Kind::Word)
                    .map(|token| token.text)
                    .collect();
                let close = self.tokens.get(self.at + types.len());
                if let Some(kind) = integer_type(&types).filter(|_| close.is_some_and(|close| close.is(")")))
                {
                    self.at += types.len() + 1;
                    return Ok(self.operand(depth + 1)?.cast(8 * kind.bytes as u32, kind.unsigned));
                }
                self.parenthesis(depth)
            }
            (Kind::Word, name) => {
                let is_use = self.peek().is_some_and(|open| open.is("("));
                match (is_use, self.names) {
                    (false, Names::AreZero) => Ok(Value::truth(name == "true").widest()),
                    (true, Names::AreFunctions { big_endian }) if let Some(function) = function(name) => {
                        self.at += 1;
                        Ok(function.value(self.parenthesis(depth)?, big_endian))
                    }
                    (true, _) => {
                        let expected =
                            format!("a number: {name} is not known here, -D '{name}(x)=x' defines it");
                        Err(token.wrong(self.source, expected))
                    }
                    (false, _) => {
                        let expected =
                            format!("a number: {name} is not known here, -D {name}=VALUE defines it");
                        Err(token.wrong(self.source, expected))
                    }
                }
            }
            _ => Err(wrong()),
        }
    }

    /// Reads an expression after an opening parenthesis, and the closing parenthesis.
    fn parenthesis(&mut self, depth: usize) -> Result<Value, Error> {
        let inner = self.expression(0, depth + 1)?;
        let close = self.need("`)`")?;
        match close.is(")") {
            true => Ok(inner),
            false => Err(close.wrong(self.source, "an operator or `)`")),
        }
    }
}

/// A function or macro of common headers whose result is known.
struct Function {
    bits: u32,
    /// Hosts on which the function swaps bytes.
    swaps: Swaps,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Swaps {
    Never,
    Always,
    OnBig,
    OnLittle,
}

impl Function {
    fn value(&self, argument: Value, big_endian: bool) -> Value {
        let value = argument.cast(self.bits, true);
        let swaps = match self.swaps {
            Swaps::Never => return argument,
            Swaps::Always => true,
            Swaps::OnBig => big_endian,
            Swaps::OnLittle => !big_endian,
        };
        let swapped = (value.value as u64).swap_bytes() >> (64 - self.bits);
        if swaps { Value { value: i128::from(swapped), ..value } } else { value }
    }
}

/// Returns the function that has the name `name`, or `None` if the function is not known. The known functions are the
/// constant macros of stdint.h, and the byte order functions of Linux, Mesa, endian.h and arpa/inet.h.
fn function(name: &str) -> Option<Function> {
    if let Some(bits) = name.strip_prefix("UINT").or(name.strip_prefix("INT")) {
        let bits = ["8_C", "16_C", "32_C", "64_C"].into_iter().find(|known| *known == bits)?;
        return Some(Function { bits: bits.trim_end_matches("_C").parse().ok()?, swaps: Swaps::Never });
    }
    match name {
        "htonl" | "ntohl" => return Some(Function { bits: 32, swaps: Swaps::OnLittle }),
        "htons" | "ntohs" => return Some(Function { bits: 16, swaps: Swaps::OnLittle }),
        _ => {}
    }
    let name = name.strip_prefix("__constant_").or(name.strip_prefix("util_")).unwrap_or(name);
    let name = name.trim_start_matches("__");
    let digits = name.find(|c: char| c.is_ascii_digit())?;
    let len = name[digits..].find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len() - digits);
    let bits = name[digits..digits + len].parse().ok().filter(|bits| [16, 32, 64].contains(bits))?;
    let swaps = match (&name[..digits], &name[digits + len..]) {
        ("builtin_bswap" | "bswap_" | "bswap" | "swab", "") => Swaps::Always,
        ("cpu_to_le" | "htole", "") | ("le", "_to_cpu" | "toh") => Swaps::OnBig,
        ("cpu_to_be" | "htobe", "") | ("be", "_to_cpu" | "toh") => Swaps::OnLittle,
        _ => return None,
    };
    Some(Function { bits, swaps })
}

/// A value with its type. C arithmetic depends on the type.
#[derive(Clone, Copy)]
pub(super) struct Value {
    pub(super) value: i128,
    /// Number of bits, 32 or 64.
    bits: u32,
    unsigned: bool,
}

impl Value {
    fn int(value: u64) -> Value {
        Value { value: i128::from(value), bits: 32, unsigned: false }
    }

    fn truth(holds: bool) -> Value {
        Value::int(u64::from(holds))
    }

    fn literal(text: &str) -> Option<Value> {
        let value = integer(text)?;
        let suffix = text.trim_start_matches(|c: char| !matches!(c, 'u' | 'U' | 'l' | 'L'));
        let bits = if suffix.contains(['l', 'L']) || value > u64::from(u32::MAX) { 64 } else { 32 };
        // A value that does not fit into the signed type has the unsigned type.
        let unsigned = suffix.contains(['u', 'U']) || value >> (bits - 1) != 0;
        Some(Value { value: i128::from(value), bits, unsigned })
    }

    /// Converts the value to the widest type, as the preprocessor does.
    fn widest(self) -> Value {
        Value { bits: 64, unsigned: self.unsigned && self.bits == 64, ..self }
    }

    /// Wraps the value to the range of the value's type.
    fn wrapped(self) -> Value {
        let low = self.value & ((1 << self.bits) - 1);
        let negative = !self.unsigned && low >> (self.bits - 1) & 1 == 1;
        Value { value: if negative { low - (1 << self.bits) } else { low }, ..self }
    }

    fn map(self, change: impl Fn(i128) -> i128) -> Value {
        Value { value: change(self.value), ..self }.wrapped()
    }

    fn cast(self, bits: u32, unsigned: bool) -> Value {
        let cut = Value { bits, unsigned, ..self }.wrapped();
        // C converts smaller types to int before arithmetic.
        if bits < 32 { Value { bits: 32, unsigned: false, ..cut } } else { cut }
    }

    /// Returns the result of a binary operator, or `None` if the result is undefined in C.
    fn with(self, operator: &str, right: Value) -> Option<Value> {
        if let "<<" | ">>" = operator {
            let by = u32::try_from(right.value).ok().filter(|by| *by < self.bits)?;
            return Some(self.map(|value| if operator == "<<" { value << by } else { value >> by }));
        }
        let bits = self.bits.max(right.bits);
        let unsigned = [self, right].iter().any(|value| value.bits == bits && value.unsigned);
        let [a, b] = [self, right].map(|value| Value { bits, unsigned, ..value }.wrapped().value);
        let value = match operator {
            "|" => a | b,
            "^" => a ^ b,
            "&" => a & b,
            "+" => a + b,
            "-" => a - b,
            "*" => a.checked_mul(b)?,
            "/" => a.checked_div(b)?,
            "%" => a.checked_rem(b)?,
            "==" => return Some(Value::truth(a == b)),
            "!=" => return Some(Value::truth(a != b)),
            "<" => return Some(Value::truth(a < b)),
            ">" => return Some(Value::truth(a > b)),
            "<=" => return Some(Value::truth(a <= b)),
            ">=" => return Some(Value::truth(a >= b)),
            "&&" => return Some(Value::truth(a != 0 && b != 0)),
            "||" => return Some(Value::truth(a != 0 || b != 0)),
            _ => return None,
        };
        Some(Value { value, bits, unsigned }.wrapped())
    }
}

/// Returns the value of a character constant with one character.
fn character(text: &str) -> Option<u64> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    match inner.strip_prefix('\\') {
        Some(rest) => {
            let (value, len) = escape(rest)?;
            value.filter(|_| len == rest.len()).map(u64::from)
        }
        None => inner.bytes().next().filter(|_| inner.len() == 1).map(u64::from),
    }
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Integer {
    pub(super) bytes: usize,
    pub(super) unsigned: bool,
}

/// Returns the type that `words` spell. Returns `None` if the words are not the name of an integer type, or if the size
/// of the type differs between hosts.
pub(super) fn integer_type(words: &[&str]) -> Option<Integer> {
    #[rustfmt::skip]
    const NAMES: [(usize, &[&str], &[&str]); 4] = [
        (8, &["uint64_t", "u64", "__u64", "ulonglong", "uint64", "GLuint64"],
            &["int64_t", "s64", "__s64", "int64"]),
        (4, &["uint", "uint32_t", "u32", "__u32", "DWORD", "CARD32", "GLuint", "uint32", "UINT", "UINT32", "__le32", "__be32"],
            &["int", "int32_t", "s32", "__s32", "GLint", "int32", "INT32"]),
        (2, &["uint16_t", "u16", "__u16", "WORD", "ushort", "CARD16", "GLushort", "uint16"],
            &["short", "int16_t", "s16", "__s16", "GLshort", "int16"]),
        (1, &["uint8_t", "u8", "__u8", "BYTE", "u_char", "uchar", "byte", "GLubyte", "uint8", "CARD8"],
            &["char", "int8_t", "s8", "__s8", "int8"]),
    ];
    let has = |name: &str| words.contains(&name);
    let longs = words.iter().filter(|word| **word == "long").count();
    if longs == 1 || ["float", "double", "struct", "union", "void", "*"].into_iter().any(has) {
        return None;
    }
    let unsigned = has("unsigned");
    if longs >= 2 {
        return Some(Integer { bytes: 8, unsigned });
    }
    // If the words contain two type names, the smaller type takes precedence: `short int` is short.
    let mut found = NAMES.into_iter().rev().filter_map(|(bytes, of_unsigned, of_signed)| {
        let is_unsigned = of_unsigned.iter().any(|name| has(name));
        let is_there = is_unsigned || of_signed.iter().any(|name| has(name));
        is_there.then_some(Integer { bytes, unsigned: unsigned || is_unsigned })
    });
    found.next().or((unsigned || has("signed")).then_some(Integer { bytes: 4, unsigned }))
}

/// Parses a C integer constant with any suffix of `u` and `l`.
pub(crate) fn integer(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']).replace('\'', "");
    let of = |prefix: [&str; 2]| prefix.into_iter().find_map(|prefix| digits.strip_prefix(prefix));
    if let Some(hexadecimal) = of(["0x", "0X"]) {
        u64::from_str_radix(hexadecimal, 16).ok()
    } else if let Some(binary) = of(["0b", "0B"]) {
        u64::from_str_radix(binary, 2).ok()
    } else if let Some(octal) = digits.strip_prefix('0').filter(|rest| !rest.is_empty()) {
        u64::from_str_radix(octal, 8).ok()
    } else {
        digits.parse().ok()
    }
}
