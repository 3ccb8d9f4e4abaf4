//! Converts notation that people write, but listings do not contain. Examples are commas, floats, negative numbers,
//! names of parameters and built-in variables.
//!
//! If no row of the instruction table matches a line, this code converts the line to the form of listings. The
//! assembler then reads the converted line. A line that is already in the form of listings is not converted. So this
//! code takes no time for a line in the form of listings.

use reconverge_isa::Program;
use reconverge_isa::program::{Module, Place};
use reconverge_isa::source::{Diagnostic, Span, number_len, parse_float, parse_number, suggest};

use crate::inst::Stage;

/// The program and the module that define the names in a line.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) program: &'a Program,
    pub(super) module: Option<&'a Module>,
    pub(super) stage: Stage,
}

/// A line that is converted to the form of listings.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) text: String,
    /// The pieces of the text, in ascending order. Each entry has the start of a piece in the text, and a span of the
    /// original line. The piece replaces this span.
    pieces: Vec<(usize, Span)>,
}

/// Byte address of the first parameter of a kernel in s[]. (1.6)
pub(super) const PARAMETERS: u32 = 0x10;

/// Byte addresses and names of the built-in variables at the start of s[] in compute programs. (1.6)
pub(super) const BUILT_INS: [(u32, &str); 7] = [
    (0x2, "blockDim.x"),
    (0x4, "blockDim.y"),
    (0x6, "blockDim.z"),
    (0x8, "gridDim.x"),
    (0xa, "gridDim.y"),
    (0xc, "blockIdx.x"),
    (0xe, "blockIdx.y"),
];

impl Written {
    fn put(&mut self, text: &str, line: Span) {
        self.pieces.push((self.text.len(), line));
        self.text.push_str(text);
    }

    /// Converts a span of the text to a span of the original line.
    pub(super) fn in_line(&self, span: Span) -> Span {
        let piece = |at: usize| {
            let index = self.pieces.partition_point(|(start, _)| *start <= at).checked_sub(1);
            index.map_or(Span::default(), |index| self.pieces[index].1)
        };
        match span.start == span.end {
            true if span.start == self.text.len() => {
                let end = self.pieces.last().map_or(0, |(_, line)| line.end);
                Span::new(end, end)
            }
            _ => Span::new(piece(span.start).start, piece(span.end.saturating_sub(1).max(span.start)).end),
        }
    }
}

/// The type of the numbers of an instruction. The text of the instruction determines the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    /// The text contains `f32`.
    Float,
    /// 32 bits without a type. Floats and integers are both valid.
    Bits32,
    /// The text contains a 16-bit type.
    Bits16,
    /// The instruction has any other type: only integers are valid.
    Integer,
}

fn type_of(line: &str) -> Type {
    let has = |name: &str| line.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name);
    if has("f32") {
        Type::Float
    } else if has("b16") || has("u16") || has("s16") {
        Type::Bits16
    } else if has("b32") {
        Type::Bits32
    } else {
        Type::Integer
    }
}

/// Reads a number as 32 bits. The number is an integer with an optional sign, or a float. A float has a point or an
/// exponent, and an optional suffix `f`.
pub(super) fn bits_of(text: &str) -> Option<u32> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if let Some(value) = parse_number(digits) {
        return match negative {
            true => i64::try_from(value)
                .ok()
                .and_then(|value| i32::try_from(-value).ok())
                .map(|value| value as u32),
            false => u32::try_from(value).ok(),
        };
    }
    let float: f32 = parse_float(digits)?;
    float.is_finite().then(|| float.to_bits() | u32::from(negative) << 31)
}

/// The types that the assembler inserts before a built-in variable if the text omits the types. An entry is empty, has
/// the type of the access, or has the type of the operand before the type of the access. The text before the variable
/// determines which entry is right.
pub(super) const ACCESSES: [&str; 3] = ["", "u16 ", "u16 u16 "];

/// Converts a line to the form of listings, and inserts `access` before built-in variables. Returns `None` if the line
/// is already in the form of listings.
///
/// # Errors
/// A name is unknown, or a number is invalid for the operation. The positions in the error are byte offsets in the
/// original line.
pub(super) fn written(
    line: &str,
    names: Names<'_>,
    access: &str,
) -> Result<Option<Written>, Box<Diagnostic>> {
    let kind = type_of(line);
    let bytes = line.as_bytes();
    let mut out = Written::default();
    refuse_predicated_end(line)?;
    let (mut at, mut changed) = (0, false);
    while let Some(&byte) = bytes.get(at) {
        let rest = &line[at..];
        let starts = at == 0 || matches!(bytes[at - 1], b' ' | b'\t' | b',' | b'(');
        let len = word(rest);
        match byte {
            b',' => {
                out.put(" ", Span::new(at, at + 1));
                (at, changed) = (at + 1, true);
            }
            b'[' => {
                let end = rest.find(']').map_or(line.len(), |end| at + end);
                let inside = Span::new(at + 1, end);
                out.put("[", Span::new(at, at + 1));
                match address(line, inside, names)? {
                    Some(text) => {
                        out.put(&text, inside);
                        changed = true;
                    }
                    None => out.put(&line[inside.start..end], inside),
                }
                at = end;
            }
            b'-' | b'.' | b'0'..=b'9' if starts && signed_len(rest) > 0 => {
                let end = at + signed_len(rest);
                let text = &line[at..end];
                match number(text, kind).map_err(|why| wrong(Span::new(at, end), why))? {
                    Some(bits) => {
                        out.put(&format!("{bits:#x}"), Span::new(at, end));
                        changed = true;
                    }
                    None => out.put(text, Span::new(at, end)),
                }
                at = end;
            }
            _ if len > 0 => {
                let (text, span) = (&rest[..len], Span::new(at, at + len));
                match built_in(text, names.stage).map_err(|why| wrong(span, why))? {
                    Some(operand) => {
                        out.put(&format!("{access}{operand}"), span);
                        changed = true;
                    }
                    None => out.put(text, span),
                }
                at += len;
            }
            _ => {
                let len = rest.chars().next().map_or(1, char::len_utf8);
                out.put(&rest[..len], Span::new(at, at + len));
                at += len;
            }
        }
    }
    Ok(changed.then_some(out))
}

/// Rejects `exit` and `join` after a predicate. `exit` and `join` are not predicated, and must be before the predicate.
/// (9.2, 2.2)
fn refuse_predicated_end(line: &str) -> Result<(), Box<Diagnostic>> {
    let start = line.len() - line.trim_start().len();
    let Some(inside) = line[start..].strip_prefix('(').and_then(|inside| inside.find(')')) else {
        return Ok(());
    };
    let behind = &line[start + inside + 2..];
    let at = line.len() - behind.trim_start().len();
    let name = &line[at..at + word(&line[at..])];
    if !["exit", "join"].contains(&name) {
        return Ok(());
    }
    let message = format!("`{name}` is not predicated: it acts for all lanes that are active");
    let help = match name {
        "exit" => {
            "to end only the lanes whose predicate holds, use `ret` outside subroutines; to end all active lanes, \
             write `exit` before the predicate"
        }
        _ => {
            "to make the join conditional, branch around the instruction; otherwise, write `join` before the predicate"
        }
    };
    Err(wrong(Span::new(at, at + name.len()), (message, help.to_owned())))
}

fn wrong(span: Span, (message, help): (String, String)) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(span, message).help(help))
}

/// Returns the length in bytes of the word at the start of a text. A word has letters, digits, `_`, `$` and points.
fn word(text: &str) -> usize {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.');
    text.bytes().position(|byte| !belongs(byte)).unwrap_or(text.len())
}

/// Returns the length of the number at the start of a text, in bytes and including the sign. Returns 0 if the text does
/// not start with a number.
fn signed_len(text: &str) -> usize {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match number_len(digits) {
        0 => 0,
        len => text.len() - digits.len() + len,
    }
}

/// Returns the bits of a number that is not in the notation of listings.
fn number(text: &str, kind: Type) -> Result<Option<u32>, (String, String)> {
    let plain = text.strip_prefix('-').unwrap_or(text);
    let whole = parse_number(plain).is_some();
    if whole && plain.len() == text.len() {
        return Ok(None);
    }
    let Some(bits) = bits_of(text) else {
        let help = "expected -0x80000000 to 0xffffffff and finite floats such as `1.5`";
        return Err((format!("`{text}` is not a number of 32 bits"), help.to_owned()));
    };
    match (kind, whole) {
        (Type::Float, true) => Err((
            format!("`{text}` is an integer, and the operation is on floats"),
            format!("write `{text}.0`"),
        )),
        (Type::Integer | Type::Bits16, false) => {
            let help = "its bits are written as a number: `0x3f800000` is 1.0";
            Err((format!("`{text}` is a float, and the operation is not on floats"), help.to_owned()))
        }
        (Type::Bits16, true) if (bits as i32) < -0x8000 => {
            Err((format!("`{text}` has more than 16 bits"), "-32768 is the least".to_owned()))
        }
        (Type::Bits16, true) => Ok(Some(bits & 0xffff)),
        _ => Ok(Some(bits)),
    }
}

/// Returns the operand that a built-in variable of CUDA stands for.
fn built_in(name: &str, stage: Stage) -> Result<Option<String>, (String, String)> {
    let (object, _) = name.split_once('.').unwrap_or((name, ""));
    if stage != Stage::Compute || !["threadIdx", "blockIdx", "blockDim", "gridDim"].contains(&object) {
        return Ok(None);
    }
    if let Some((offset, _)) = BUILT_INS.iter().find(|(_, known)| *known == name) {
        return Ok(Some(format!("s[{offset:#x}]")));
    }
    let in_r0 = "$r0 has x in bits 0 to 15, y in bits 16 to 25 and z in bits 26 to 31 when a kernel starts";
    match name {
        "threadIdx.x" => Ok(Some("$r0l".to_owned())),
        "threadIdx.y" | "threadIdx.z" => {
            Err((format!("`{name}` is not an operand: shift and mask $r0"), in_r0.to_owned()))
        }
        _ => {
            let known = BUILT_INS.map(|(_, name)| name).into_iter().chain(["threadIdx.x"]);
            Err((format!("unknown operand `{name}`"), suggest(name, known)))
        }
    }
}

/// Converts the names inside brackets to numbers. Returns `None` if the brackets contain no name.
fn address(line: &str, inside: Span, names: Names<'_>) -> Result<Option<String>, Box<Diagnostic>> {
    let text = &line[inside.start..inside.end];
    let is_name = |term: &str| term.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !text.split(['+', '-']).any(|term| is_name(term.trim())) {
        return Ok(None);
    }
    let space = &line[..inside.start - 1];
    let space = &space[space.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len()..];
    let (mut register, mut sum, mut at) = (None, 0_i64, inside.start);
    for term in text.split_inclusive(['+', '-']) {
        let negative = line[..at].trim_end().ends_with('-');
        let (start, plain) = (at, term.trim_end_matches(['+', '-']));
        at += term.len();
        let name = plain.trim();
        let span = Span::new(start + plain.len() - plain.trim_start().len(), start + plain.trim_end().len());
        let value = match name {
            _ if name.starts_with('$') && register.is_none() && !negative => {
                register = Some(name);
                continue;
            }
            _ if is_name(name) => place(name, space, names).map_err(|why| wrong(span, why))?,
            _ => match parse_number(name).and_then(|value| i64::try_from(value).ok()) {
                Some(value) => value,
                None => {
                    let help = "expected a register, names and numbers, with `+` between them".to_owned();
                    return Err(wrong(span, (format!("`{name}` is not a part of an address"), help)));
                }
            },
        };
        sum = sum.saturating_add(if negative { -value } else { value });
    }
    let offset = if sum < 0 { format!("-{:#x}", -sum) } else { format!("{sum:#x}") };
    Ok(Some(match register {
        Some(register) if sum < 0 => format!("{register}{offset}"),
        Some(register) => format!("{register}+{offset}"),
        None => offset,
    }))
}

/// Returns the address of a name in a memory space.
fn place(name: &str, space: &str, names: Names<'_>) -> Result<i64, (String, String)> {
    if space == "s" {
        let params = &names.program.params;
        if let Some(param) = params.iter().find(|param| param.name.as_deref() == Some(name)) {
            return Ok(i64::from(PARAMETERS) + i64::from(param.offset));
        }
        let known: Vec<&str> = params.iter().filter_map(|param| param.name.as_deref()).collect();
        let help = match known.is_empty() {
            true => "state it before the instructions: `.param s[0x10] 4 NAME`".to_owned(),
            false => suggest(name, known),
        };
        return Err((format!("unknown parameter `{name}`"), help));
    }
    let bank = space.strip_prefix('c').and_then(|bank| bank.parse::<u32>().ok());
    let Some(bank) = bank else {
        return Err((
            format!("`{name}` has no address in {space}[]"),
            "parameters have an address in s[], and variables of the module in their constant bank"
                .to_owned(),
        ));
    };
    let variables = names.module.into_iter().flat_map(|module| &module.variables);
    let here = variables.filter_map(|variable| match variable.place {
        Place::Constant { bank: of, offset } if of == bank => Some((variable.name.as_str(), offset)),
        _ => None,
    });
    let here: Vec<(&str, u32)> = here.collect();
    match here.iter().find(|(known, _)| *known == name) {
        Some((_, offset)) => Ok(i64::from(*offset)),
        None => {
            let message = format!("unknown variable `{name}` in c{bank}[]");
            Err((message, suggest(name, here.into_iter().map(|(name, _)| name))))
        }
    }
}

#[cfg(test)]
mod tests {
    use reconverge_isa::program::{Param, Variable};

    use super::*;

    fn again(line: &str) -> Result<String, String> {
        let param = |name: &str, offset| Param { name: Some(name.to_owned()), offset, bytes: 4 };
        let program = Program { params: vec![param("out", 0), param("n", 4)], ..Program::default() };
        let variable =
            Variable { name: "table".to_owned(), bytes: 8, place: Place::Constant { bank: 1, offset: 0x20 } };
        let module = Module { variables: vec![variable], ..Module::default() };
        let names = Names { program: &program, module: Some(&module), stage: Stage::Compute };
        match written(line, names, "") {
            Ok(Some(written)) => Ok(written.text),
            Ok(None) => Ok("as it is".to_owned()),
            Err(error) => Err(format!("{}..{}: {error}", error.span.start, error.span.end)),
        }
    }

    #[test]
    fn what_people_write_becomes_what_listings_have() {
        for (line, text) in [
            ("mov b32 $r0 0x1", "as it is"),
            ("ld b32 $r1 g14[$r2]", "as it is"),
            ("add b32 $r0, $r1, $r2", "add b32 $r0  $r1  $r2"),
            ("mov b32 $r0 1.5", "mov b32 $r0 0x3fc00000"),
            ("mul f32 $r0 $r1 -0.25f", "mul f32 $r0 $r1 0xbe800000"),
            ("add f32 $r0 $r1 1e-3", "add f32 $r0 $r1 0x3a83126f"),
            ("add f32 $r0 $r1 .5", "add f32 $r0 $r1 0x3f000000"),
            ("add b32 $r0 $r1 -4", "add b32 $r0 $r1 0xfffffffc"),
            ("add b16 $r0l $r1l -4", "add b16 $r0l $r1l 0xfffc"),
            ("mov b32 $r0 s[n]", "mov b32 $r0 s[0x14]"),
            ("mov b32 $r0 s[out + 4]", "mov b32 $r0 s[0x14]"),
            ("mov b32 $r0 s[$a1+n-4]", "mov b32 $r0 s[$a1+0x10]"),
            ("mov b32 $r0 c1[table+0x4]", "mov b32 $r0 c1[0x24]"),
            ("cvt u32 $r1 u16 u16 blockIdx.x", "cvt u32 $r1 u16 u16 s[0xc]"),
            ("cvt u32 $r1 u16 threadIdx.x", "cvt u32 $r1 u16 $r0l"),
            ("mov b16 $r1l threadIdx.x", "mov b16 $r1l $r0l"),
            ("join (lg $c0) nop", "as it is"),
        ] {
            assert_eq!(again(line).as_deref(), Ok(text), "{line}");
        }
    }

    #[test]
    fn what_has_no_meaning_is_refused_at_its_place() {
        for (line, message) in [
            (
                "add f32 $r0 $r1 -4",
                "16..18: `-4` is an integer, and the operation is on floats (write `-4.0`)",
            ),
            (
                "(lg $c0) exit nop",
                "9..13: `exit` is not predicated: it acts for all lanes that are active (to end only",
            ),
            ("mul u24 $r0 $r1 1.5", "16..19: `1.5` is a float"),
            ("add b16 $r0l $r1l -40000", "18..24: `-40000` has more than 16 bits"),
            ("mov b32 $r0 s[m]", "14..15: unknown parameter `m` (expected one of out, n"),
            ("mov b32 $r0 c1[tabel]", "15..20: unknown variable `tabel` in c1[] (did you mean `table`?"),
            ("mov b32 $r0 g14[n]", "16..17: `n` has no address in g14[]"),
            ("cvt u32 $r1 u16 threadIdx.y", "16..27: `threadIdx.y` is not an operand: shift and mask $r0"),
            ("cvt u32 $r1 u16 blockIdx.z", "16..26: unknown operand `blockIdx.z`"),
            ("mov b32 $r0 1.2.3", "12..17: `1.2.3` is not a number"),
            ("mov b32 $r0 1e99", "12..16: `1e99` is not a number"),
            ("mov b32 $r0 -0x80000001", "12..23: `-0x80000001` is not a number"),
        ] {
            let found = again(line);
            assert!(found.as_ref().is_err_and(|found| found.starts_with(message)), "{line}: {found:?}");
        }
    }
}
