//! Parses the parts that all kinds of instructions share: register names, components, selects, literals, attributes.

use reconverge_isa::Diagnostic;
use reconverge_isa::source::{parse_number, suggest};

use super::super::attr::Attr;
use super::super::{INDEXES, SELECTS};
use super::amd;
use super::lex::{Parse, Token, call, chan_of, number, wrong};

/// Splits `name.c` into the name and the component.
pub(super) fn split_chan(token: Token<'_>) -> Parse<(&str, u32)> {
    let split = token.text.rsplit_once('.').and_then(|(name, chan)| Some((name, chan_of(chan)?)));
    split.ok_or_else(|| wrong(token, "a component was expected").help("as in R0.x"))
}

/// Parses `prefix` followed by a number, `prefix[n]` or `prefix[n+index]`. Returns the number, and whether the text
/// adds an index.
pub(super) fn indexed(text: &str, prefix: &str, index: &mut Option<u32>) -> Option<(u32, bool)> {
    let rest = text.strip_prefix(prefix)?;
    let plain = |text: &str| parse_number(text).and_then(|value| u32::try_from(value).ok());
    let mut add = |by: &str| {
        let by = if by.eq_ignore_ascii_case("aL") { "aL" } else { by };
        let mode = INDEXES.iter().position(|known| *known == by)? as u32;
        if index.is_some_and(|known| known != mode) {
            return None;
        }
        *index = Some(mode);
        Some(true)
    };
    let Some(inner) = rest.strip_suffix(']') else {
        return Some((plain(rest)?, false));
    };
    let (before, inner) = inner.split_once('[')?;
    match inner.split_once('+') {
        // In AMD's text, the index can be in separate brackets: `R3[AR.x]` and `KC0[4][AR.x]`.
        None if !before.is_empty() => {
            let base = before.strip_prefix('[').and_then(|base| base.strip_suffix(']')).unwrap_or(before);
            add(inner)?;
            Some((plain(base)?, true))
        }
        _ if !before.is_empty() => None,
        None => match inner.split_once("][") {
            Some((base, by)) => {
                add(by)?;
                Some((plain(base)?, true))
            }
            None => Some((plain(inner.trim())?, false)),
        },
        Some((base, by)) => {
            let (base, by) = (base.trim(), by.trim());
            // In AMD's text, the index can also come first: `R[AL + 3]`.
            let (base, by) = if base.eq_ignore_ascii_case("aL") { (by, base) } else { (base, by) };
            add(by)?;
            Some((plain(base)?, true))
        }
    }
}

/// Returns the message about a token that is not an operand of an ALU instruction.
#[cold]
pub(super) fn no_operand(token: Token<'_>) -> Diagnostic {
    let text = token.text.trim_start_matches(['-', '|', '(']);
    let number = &text[..text.bytes().take_while(u8::is_ascii_alphanumeric).count()];
    if parse_number(number).is_some_and(|number| number > u64::from(u32::MAX)) {
        return wrong(token, format!("{number} does not fit into 32 bits"))
            .help("expected 0x0 to 0xffffffff");
    }
    let (front, last) = text.trim_end_matches('|').rsplit_once('.').unwrap_or((text, ""));
    let is_register = |prefix: &str| indexed(front, prefix, &mut None).is_some();
    if last.len() == 1
        && chan_of(last).is_none()
        && ["R", "KC0", "KC1", "C", "T"].into_iter().any(is_register)
    {
        return wrong(token, format!("`{last}` is not a component")).help("expected x, y, z or w");
    }
    if is_register("T") {
        return wrong(token, format!("{front} does not exist")).help("expected T0 to T3");
    }
    let bank = text
        .strip_prefix("KC")
        .and_then(|rest| rest.split('[').next())
        .filter(|bank| bank.parse::<u32>().is_ok());
    if let Some(bank) = bank {
        return wrong(token, format!("KC{bank} does not exist"))
            .help("expected KC0 and KC1: the two locked ranges of a clause");
    }
    wrong(token, "an operand was expected").help("expected a register, KC0[n].x, a constant, PV.x or PS")
}

/// Parses four selects into a twelve-bit field.
pub(super) fn select_of(text: &str, token: Token<'_>) -> Parse<u32> {
    let fault =
        || wrong(token, "four selects were expected").help("of x, y, z, w, 0, 1 and _, as in R0.xyz1");
    if text.chars().count() != 4 {
        return Err(fault());
    }
    let mut raw = 0;
    for (at, letter) in text.chars().enumerate() {
        raw |= (SELECTS.find(letter.to_ascii_lowercase()).ok_or_else(fault)? as u32) << (3 * at);
    }
    Ok(raw)
}

/// Parses selects as latte-assembler does. If there are fewer than four selects, the missing selects come from `rest`.
pub(super) fn select_or(text: &str, rest: &str, token: Token<'_>) -> Parse<u32> {
    match text.len() {
        0 => select_of(rest, token),
        1..=3 if text.is_ascii() => select_of(&format!("{text}{}", &rest[text.len()..]), token),
        _ if !text.is_empty() && text.bytes().all(|byte| byte == b'_') => select_of("____", token),
        _ => select_of(text, token),
    }
}

/// Parses bits, an integer or a float, without a sign. Returns the 32 bits of the number.
pub(super) fn literal(text: &str) -> Option<u32> {
    if let Some(bits) = parse_number(text) {
        return u32::try_from(bits).ok();
    }
    let digits = text.strip_suffix('f').unwrap_or(text);
    digits
        .starts_with(|c: char| c.is_ascii_digit() || c == '.')
        .then(|| digits.parse::<f32>().ok())
        .flatten()
        .map(f32::to_bits)
}

/// Parses bits, an integer or a float, with or without a sign. Returns the 32 bits of the number.
pub(super) fn signed_literal(text: &str) -> Option<u32> {
    match text.strip_prefix('-') {
        None => literal(text),
        Some(rest) if rest.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse::<i32>().ok().map(|value| value as u32)
        }
        Some(rest) => literal(rest).map(|bits| bits ^ 1 << 31),
    }
}

/// Parses the contents of brackets: bits, a value, or `bits, value`. Returns `None` if the contents are not a literal.
pub(super) fn bracketed_literal(text: &str, token: Token<'_>) -> Option<Parse<u32>> {
    let Some((bits, value)) = text.split_once(',') else { return signed_literal(text.trim()).map(Ok) };
    let (bits, value) = (literal(bits.trim())?, value.trim());
    let float = value.parse::<f32>().or_else(|_| value.trim_end_matches('f').parse()).ok()?;
    let is = f32::from_bits(bits);
    let agree =
        float.to_bits() == bits || (float.is_nan() && is.is_nan()) || signed_literal(value) == Some(bits);
    Some(if agree {
        Ok(bits)
    } else {
        Err(wrong(token, format!("the bits {bits:#010x} are {is}, not {value}"))
            .help(format!("for {value} write ({float:?}f), for the bits write ({bits:#010x})")))
    })
}

/// Returns whether a text is the inline constant −1 with a component. In every other text, `-` is the modifier that
/// negates the operand.
pub(super) fn is_minus_one(text: &str) -> bool {
    text.strip_prefix("-1.").is_some_and(|rest| chan_of(rest).is_some())
}

/// Sets every attribute to its default.
pub(super) fn usual(tables: &[&[Attr]], words: &mut [u32]) {
    for attr in tables.iter().copied().flatten() {
        words[attr.word] |= attr.usual << attr.lo;
    }
}

/// Parses an attribute, `BITS(…)` or `PAD(…)`. Stores the value in `words`.
pub(super) fn attribute(token: Token<'_>, tables: &[&[Attr]], words: &mut [u32], also: &[&str]) -> Parse<()> {
    let (name, inner) = call(token);
    if let ("BITS", Some(inner)) = (name, inner) {
        for (word, part) in words.iter_mut().zip(inner.text.split(',')) {
            *word |= number(Token { text: part.trim(), ..inner }, u32::MAX)?;
        }
        return Ok(());
    }
    if let ("PAD", Some(inner), [_, _, _, padding]) = (name, inner, &mut *words) {
        *padding = number(inner, u32::MAX)?;
        return Ok(());
    }
    let attr = tables.iter().copied().flatten().find(|attr| attr.name == name);
    // Only AMD's text has the spellings `UPDATE_EXEC_MASK(BREAK)`, `FORMAT(32 NORM)` and `COND(CF_BOOL)`.
    let own = |attr: &&Attr| match inner {
        Some(inner) => attr.bits > 1 && name != "COND" && !inner.text.contains(' '),
        None => true,
    };
    let Some(attr) = attr.filter(own) else {
        if amd::attribute(name, inner, tables, words)? {
            return Ok(());
        }
        let known: Vec<&str> =
            tables.iter().copied().flatten().map(|attr| attr.name).chain(also.iter().copied()).collect();
        return Err(wrong(token, "unknown attribute").help(suggest(name, known)));
    };
    let value = match inner {
        None if attr.bits == 1 => 1 - attr.usual,
        None => return Err(wrong(token, format!("{name} needs a value: {name}(…)"))),
        Some(inner) => match attr.names.iter().position(|known| *known == inner.text && !known.is_empty()) {
            Some(value) => value as u32,
            None => match number(inner, attr.max() + attr.add)?.checked_sub(attr.add) {
                Some(value) => value,
                None => return Err(wrong(inner, "a count is at least 1")),
            },
        },
    };
    words[attr.word] = words[attr.word] & !attr.mask() | value << attr.lo;
    Ok(())
}
