//! The legal forms of a mnemonic, with an example of each form. The forms are computed from the rows of a table.

use crate::read::Table;
use crate::row::{Draft, Memory, Number, Part, Row, Scope, Style};

/// A form of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Text of the form. `a|b` means `a` or `b`, `[a]` is optional, and capital letters represent numbers.
    pub text: String,
    /// An instruction of this form.
    pub example: String,
    /// Meanings of the names in angle brackets.
    pub places: Vec<(String, String)>,
    /// Purpose of the form. For a form of certain chips or program types, the text names the chips or program types.
    /// The text may be empty.
    pub about: String,
    /// Document and section that describe the form.
    pub source: String,
}

/// Maximum number of characters of a list of alternatives inside the text. A longer list is replaced by a name in angle
/// brackets.
const SPELLED: usize = 40;

/// Returns the fields `text` and `places` of a [`Form`], for a row in the circumstance `here`. If the row has several
/// mnemonics, the text contains only the mnemonic `name`.
pub fn text<D: Draft>(row: &Row<D>, name: &str, here: Scope) -> (String, Vec<(String, String)>) {
    let (mut out, mut places) = (String::new(), Vec::new());
    parts(row.parts, here, &mut out, &mut places);
    match row.names.contains('|') {
        true => (out.replacen(row.names, name, 1), places),
        false => (out, places),
    }
}

/// Returns an example instruction of a row with the mnemonic `name`, in the circumstance `here`. The function tries two
/// simple choices of operands. Returns `None` if neither choice results in a text that belongs to this row.
pub fn example<D: Draft>(table: &Table<D>, row: &'static Row<D>, name: &str, here: Scope) -> Option<String> {
    let mut plain = row.fixed | row.default & !row.mask;
    for part in row.parts {
        if let Part::Word(words) = part
            && let Some(value) = words.texts.iter().position(|text| *text == Some(name))
        {
            plain = plain & !(words.field.mask() & !row.mask) | words.field.put(value as u32);
        }
    }
    let mut filled = plain;
    fill(row.parts, here, row.mask, &mut filled, &mut 0);
    [filled, plain].into_iter().find_map(|word| {
        let mut out = String::new();
        let found = table.print(word, here, None, &mut out).ok()?;
        (found.id == row.id && !out.contains(" bits ")).then_some(out)
    })
}

/// Names in angle brackets, each with its meaning.
type Places = Vec<(String, String)>;

fn parts<D>(parts: &[Part<D>], here: Scope, out: &mut String, places: &mut Places) {
    for part in parts {
        let text = part_text(part, here, places);
        match part {
            _ if text.is_empty() => {}
            Part::Close => out.push(')'),
            _ if out.is_empty() || out.ends_with('(') => out.push_str(&text),
            _ => {
                out.push(' ');
                out.push_str(&text);
            }
        }
    }
}

fn part_text<D>(part: &Part<D>, here: Scope, places: &mut Places) -> String {
    match part {
        Part::Text(text) => (*text).to_owned(),
        Part::Open => "(".to_owned(),
        Part::Close => ")".to_owned(),
        Part::Word(words) => {
            let known: Vec<String> = words.texts.iter().flatten().map(|text| (*text).to_owned()).collect();
            one_of(known)
        }
        Part::Number(number) => number_text(number),
        Part::Memory(memory) => memory_text(memory),
        Part::Custom(custom) => format!("<{}>", custom.name),
        Part::Case(cases) => {
            let here_only = cases.cases.iter().filter(|case| case.scope.admits(here));
            let mut inside = Vec::new();
            let texts = here_only.map(|case| {
                let mut text = String::new();
                self::parts(case.parts, here, &mut text, &mut inside);
                text
            });
            let text = one_of(texts.collect());
            if text.chars().count() <= SPELLED {
                places.append(&mut inside);
                return text;
            }
            let (name, optional) = (format!("<{}>", cases.name), text.starts_with('['));
            let plain = text.trim_start_matches(['[', '{']).trim_end_matches([']', '}']);
            let spelled = if optional || text.starts_with('{') { plain.to_owned() } else { text.clone() };
            let known = places.iter().any(|(known, _)| *known == name);
            if !known {
                places.push((name.clone(), spelled));
                places.append(&mut inside);
            }
            if optional { format!("[{name}]") } else { name }
        }
        Part::Set(_) => String::new(),
    }
}

/// Joins alternatives as `a|b`. If one of the alternatives is empty, the result is in brackets.
fn one_of(texts: Vec<String>) -> String {
    let optional = texts.iter().any(String::is_empty);
    let mut kept: Vec<String> = Vec::new();
    for text in texts.iter().filter(|text| !text.is_empty()) {
        // If an alternative is a list of alternatives, the function splits the list.
        let plain = !text.contains([' ', '[', '(', '{', '<']);
        for piece in text.split(|c| c == '|' && plain) {
            if !kept.iter().any(|known| known == piece) {
                kept.push(piece.to_owned());
            }
        }
    }
    let joined = kept.join("|");
    match (optional, kept.len()) {
        (_, 0) => String::new(),
        (true, _) => format!("[{joined}]"),
        (false, 1) => joined,
        (false, _) if kept.iter().any(|text| text.contains(' ')) => format!("{{{joined}}}"),
        (false, _) => joined,
    }
}

fn number_text<D>(number: &Number<D>) -> String {
    match number.style {
        Style::Register(prefix, suffix) | Style::Aligned(prefix, suffix, _) => format!("{prefix}N{suffix}"),
        Style::Half(prefix) => format!("{prefix}Nl|{prefix}Nh"),
        Style::Hex | Style::Signed if number.name == "immediate" => "IMMEDIATE".to_owned(),
        Style::Hex => format!("N ({})", number.name),
        Style::Signed => format!("±N ({})", number.name),
        Style::Code(_) => "LABEL".to_owned(),
    }
}

fn memory_text<D>(memory: &Memory<D>) -> String {
    let bank = if memory.bank.is_some() { "N" } else { "" };
    let inside = match (memory.base, memory.always_base, memory.offset) {
        (Some((prefix, _)), _, Some(_)) if memory.increment => format!("{prefix}N++OFFSET"),
        (Some((prefix, _)), true, Some(_)) => format!("{prefix}N+OFFSET"),
        (Some((prefix, _)), true, None) => format!("{prefix}N"),
        (Some((prefix, _)), false, Some(_)) => format!("[{prefix}N+]OFFSET"),
        (Some((prefix, _)), false, None) => format!("[{prefix}N]"),
        (None, ..) => "OFFSET".to_owned(),
    };
    format!("{}{bank}[{inside}]", memory.space)
}

/// Assigns small, distinct numbers to the operands whose bits have no value yet. `fixed` are the bits that already have
/// a value.
fn fill<D>(parts: &[Part<D>], here: Scope, fixed: u64, word: &mut u64, next: &mut u32) {
    for part in parts {
        match part {
            Part::Number(number) => {
                let field = number.field;
                let step = match number.style {
                    Style::Aligned(_, _, count) => count,
                    Style::Half(_) => 2,
                    Style::Code(shift) => 1 << shift,
                    Style::Register(..) | Style::Hex | Style::Signed => 1,
                };
                let value = match number.style {
                    Style::Hex | Style::Signed => 4,
                    Style::Code(_) => 0,
                    _ => *next * step,
                };
                if field.mask() & fixed == 0 && field.get(*word) == 0 && field.get(field.put(value)) == value
                {
                    *word |= field.put(value);
                    *next += 1;
                }
            }
            Part::Memory(memory) => {
                if let Some((_, field)) = memory.base.filter(|_| memory.always_base)
                    && field.mask() & fixed == 0
                    && field.get(*word) == 0
                {
                    *word |= field.put(*next);
                    *next += 1;
                }
                if let Some(offset) = memory.offset.filter(|offset| offset.mask() & fixed == 0) {
                    *word |= offset.put(16 >> memory.shift);
                }
            }
            Part::Case(cases) => {
                if let Some(case) = cases.cases.iter().find(|case| case.holds(*word, here)) {
                    fill(case.parts, here, fixed | case.mask, word, next);
                }
            }
            Part::Word(words) => {
                let spelled = |value: u32| words.texts.get(value as usize).is_some_and(Option::is_some);
                let first = words.texts.iter().position(Option::is_some);
                if let Some(first) =
                    first.filter(|_| !spelled(words.field.get(*word)) && words.field.mask() & fixed == 0)
                {
                    *word = *word & !words.field.mask() | words.field.put(first as u32);
                }
            }
            Part::Text(_) | Part::Open | Part::Close | Part::Custom(_) | Part::Set(_) => {}
        }
    }
}
