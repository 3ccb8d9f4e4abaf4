//! Parsers for ALU, OUT and TEX instructions.

use reconverge_isa::source::{Cursor, Diagnostic, Span, suggest};
use reconverge_isa::word::FieldValue;

use super::dis::{blank, default_swizzle};
use super::idioms::{IDIOMS, Idiom, elsewhere};
use super::reading::{Parsed, equals, expected, number, place, set, sign, value};
use super::record::Reads;
use super::syntax::{self, COMPARISONS, OMOD, PREDICATES, TARGETS, UNUSED_SOURCE, UNUSED_SOURCES};
use crate::inst::{CONSTANTS, Operand, SAMPLERS, TEMPORARIES, WORDS};
use crate::words::*;

pub(super) fn alu_line(cursor: &mut Cursor<'_>, kind: InstType, reads: &mut Reads) -> Parsed<[u32; WORDS]> {
    let mut words = [blank(kind).pack(), UNUSED_SOURCES, UNUSED_SOURCES, 0, 0, 0];
    if cursor.eat_word("nop") {
        words[1..].fill(0);
        return Ok(words);
    }
    if !matches!(cursor.peek(), None | Some('{')) {
        rgb_half(cursor, kind, &mut words, reads)?;
    }
    Ok(words)
}

/// A destination of one half of an instruction.
pub(super) enum Dest {
    Temp { address: u32, rel: bool },
    Output { target: u32 },
    Depth,
    AluResult { op: AluResultOp, alpha: bool },
}

/// Parses a destination: `temp[2].rg`, `out[A].rgb`, `pred[GE].a`, `out.w` or `alu_result[LT].r`. Returns the
/// destination, the mask letters and the position of the mask letters.
pub(super) fn dest<'a>(cursor: &mut Cursor<'a>, kind: InstType) -> Parsed<(Dest, &'a str, Span)> {
    let start = cursor.offset();
    let at = cursor.here();
    let file = cursor.word();
    let dest = match (file, kind) {
        ("temp", _) => {
            let (address, rel) = indexed(cursor, "a temporary", TEMPORARIES as u64 - 1)?;
            Dest::Temp { address, rel }
        }
        ("out", _) if cursor.peek() == Some('.') => Dest::Depth,
        ("out", InstType::OUT) => Dest::Output { target: named_index(cursor, "a render target", &TARGETS)? },
        ("pred", InstType::ALU) => {
            Dest::Output { target: named_index(cursor, "a comparison", &COMPARISONS)? }
        }
        ("alu_result", _) => {
            let op = AluResultOp::ALL[named_index(cursor, "a comparison", &COMPARISONS)? as usize];
            Dest::AluResult { op, alpha: false }
        }
        _ => {
            let own = if kind == InstType::OUT { "out" } else { "pred" };
            let message = format!("{kind} cannot write to `{file}`");
            return Err(Diagnostic::error(at, message).help(suggest(file, ["temp", own, "alu_result"])));
        }
    };
    if !cursor.eat(".") {
        return Err(expected(
            cursor,
            "expected the channels that are written",
            "write .rgb, .a or ._ (none)",
        ));
    }
    let mask = cursor.word();
    let span = cursor.since(start);
    match dest {
        Dest::AluResult { op, .. } => {
            match mask {
                "r" | "a" => Ok((Dest::AluResult { op, alpha: mask == "a" }, mask, span)),
                _ => Err(Diagnostic::error(span, "the ALU result comes from red or alpha")
                    .help("expected .r or .a")),
            }
        }
        Dest::Depth if mask != "w" => Err(Diagnostic::error(span, "the depth output is out.w")),
        dest => Ok((dest, mask, span)),
    }
}

/// Parses an index in brackets: `[12]` or `[12+aL]`. Returns the number, and whether the text adds aL.
pub(super) fn indexed(cursor: &mut Cursor<'_>, what: &str, max: u64) -> Parsed<(u32, bool)> {
    if !cursor.eat("[") {
        return Err(expected(cursor, format!("expected the number of {what}"), "write [NUMBER]"));
    }
    let value = number(cursor, what, max)? as u32;
    let rel = cursor.eat("+");
    if rel && !cursor.eat_word("aL") {
        return Err(expected(cursor, "expected aL", "only aL can be added to an address"));
    }
    sign(cursor, "]", "expected ] or +aL")?;
    Ok((value, rel))
}

/// Parses `[NAME]` and returns the index of the name in a list.
pub(super) fn named_index(cursor: &mut Cursor<'_>, what: &str, names: &[&str]) -> Parsed<u32> {
    if !cursor.eat("[") {
        return Err(expected(cursor, format!("expected {what}"), format!("write [{}]", names.join("|"))));
    }
    let index = place(cursor, names.iter().copied(), |name| format!("`{name}` is not {what}"))?;
    sign(cursor, "]", "expected ]")?;
    Ok(index as u32)
}

/// Parses an optional predicate: `(pred.g)` or `(!pred.rgba)`.
pub(super) fn predicate(cursor: &mut Cursor<'_>) -> Parsed<Option<(PredSel, bool)>> {
    if !cursor.eat("(") {
        return Ok(None);
    }
    let inverted = cursor.eat("!");
    let select = predicate_name(cursor)?;
    sign(cursor, ")", "expected )")?;
    Ok(Some((select, inverted)))
}

pub(super) fn predicate_name(cursor: &mut Cursor<'_>) -> Parsed<PredSel> {
    let at = cursor.here();
    if !(cursor.eat_word("pred") && cursor.eat(".")) {
        return Err(Diagnostic::error(at, "expected a predicate")
            .help("expected pred.r, pred.g, pred.b, pred.a or pred.rgba"));
    }
    let at = cursor.here();
    let name = cursor.word();
    PREDICATES.iter().find(|(_, known)| *known == name).map(|(select, _)| *select).ok_or_else(|| {
        Diagnostic::error(at, format!("`{name}` is not a predicate")).help("expected r, g, b, a or rgba")
    })
}

/// Returns whether the remaining text of a half has destinations. If there are destinations, an `=` precedes the
/// operation.
pub(super) fn has_dests(cursor: &Cursor<'_>) -> bool {
    let rest = cursor.rest();
    let rest = rest.split(['{', ':']).next().unwrap_or("");
    rest.contains('=')
}

pub(super) fn mask_bits(letters: &str, allowed: &str, span: Span) -> Parsed<u32> {
    if letters == "_" {
        return Ok(0);
    }
    let mut bits = 0;
    for letter in letters.chars() {
        match allowed.find(letter) {
            Some(bit) if bits >> bit & 1 == 0 => bits |= 1 << bit,
            _ => {
                return Err(Diagnostic::error(span, format!("`{letters}` is not a mask of this half"))
                    .help(format!("expected letters of {allowed}, each once, or _ for none")));
            }
        }
    }
    Ok(bits)
}

/// The operation of a half, with the output modifier and the clamp of the operation.
pub(super) struct Named<Op> {
    op: Op,
    omod: Omod,
    clamp: bool,
    idiom: Option<&'static Idiom>,
}

/// Parses an operation or idiom with an output modifier and a clamp, such as `MAD*2.sat`.
///
/// `Other` is the type of the operations of the other unit.
pub(super) fn operation<Op: FieldValue, Other: FieldValue>(
    cursor: &mut Cursor<'_>,
    unit: &str,
) -> Parsed<Named<Op>> {
    let at = cursor.here();
    let name = cursor.word();
    let code = |name: &str| {
        let known = Op::NAMES.iter().find(|known| known.text == name);
        known.and_then(|known| Op::from_bits(known.value, Op::BITS))
    };
    let unknown = || {
        let error = Diagnostic::error(at, format!("the {unit} unit has no operation `{name}`"));
        let mut names = Op::NAMES.iter().map(|known| known.text).collect::<Vec<_>>();
        for idiom in &IDIOMS {
            if !names.contains(&idiom.name) {
                names.push(idiom.name);
            }
        }
        let upper = name.to_ascii_uppercase();
        let other = |name: &str| Other::NAMES.iter().any(|known| known.text == name);
        error.help(match elsewhere(&upper) {
            _ if names.contains(&&*upper) => format!("did you mean `{upper}`?"),
            Some(form) => form.to_owned(),
            None if unit == "RGB" && other(&upper) => {
                format!(
                    "only the alpha unit has {upper}; SOP in the RGB half uses the result of the alpha unit"
                )
            }
            None if other(&upper) => {
                format!(
                    "only the RGB unit has {upper}; DP in the alpha half uses the dot product of the RGB unit"
                )
            }
            None => suggest(name, names),
        })
    };
    let rest = cursor.rest();
    let suffix = OMOD.iter().rev().find(|(suffix, _)| !suffix.is_empty() && rest.starts_with(suffix));
    let omod = match suffix {
        Some((suffix, omod)) => {
            cursor.eat(suffix);
            *omod
        }
        None if rest.starts_with(['*', '/']) => {
            return Err(expected(cursor, "unknown output modifier", "write *2 *4 *8 /2 /4 /8 or *off"));
        }
        None => Omod::MUL_1,
    };
    let clamp = cursor.rest().starts_with(".sat") && cursor.eat(".sat");
    let idiom = Idiom::named(name, omod == Omod::DISABLED);
    let op = idiom.map_or(name, |idiom| idiom.operation);
    Ok(Named { op: code(op).ok_or_else(unknown)?, omod, clamp, idiom })
}

/// Names of the sources that an operand can select.
const SOURCES: [&str; 4] = ["src0", "src1", "src2", "srcp"];

/// Parses an operand such as `-|src1.rgb|`. An operand has a source, swizzle letters and a modifier.
pub(super) fn operand(cursor: &mut Cursor<'_>, letters: usize) -> Parsed<(Operand, Span)> {
    let start = cursor.offset();
    let negative = cursor.eat("-");
    let absolute = cursor.eat("|");
    let at = cursor.clone();
    let name = cursor.word();
    let sel =
        Sel::ALL.iter().copied().find(|sel| sel.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            Diagnostic::error(at.here(), format!("`{name}` is not a source")).help(suggest(name, SOURCES))
        })?;
    if !cursor.eat(".") {
        return Err(expected(cursor, "expected a swizzle", "write .LETTERS of r g b a 0 h 1"));
    }
    let at = cursor.clone();
    let text = cursor.word();
    // The alpha unit has only one channel. The operand repeats this channel three times.
    let channel = |channel: usize| text.as_bytes().get(channel % letters).copied();
    let swiz = [0, 1, 2].map(|n| channel(n).and_then(|letter| syntax::swiz(char::from(letter))));
    let ([Some(red), Some(green), Some(blue)], true) = (swiz, text.len() == letters) else {
        return Err(Diagnostic::error(at.here(), format!("`{text}` is not a swizzle of this half"))
            .help(format!("expected {letters} of the letters r g b a 0 h 1")));
    };
    if absolute {
        sign(cursor, "|", "| closes the absolute value")?;
    }
    let modifier = Imod::ALL[usize::from(negative) | usize::from(absolute) << 1];
    Ok((Operand { sel, swiz: [red, green, blue], modifier }, cursor.since(start)))
}

/// Parses the list of sources of one half, such as ` : src0=temp[1] src1=#0.5 srcp=NEG`.
pub(super) fn sources(cursor: &mut Cursor<'_>, declared: &mut [bool; 3]) -> Parsed<u32> {
    let mut word = UNUSED_SOURCES;
    if !cursor.eat(":") {
        return Ok(word);
    }
    let mut first = true;
    while !matches!(cursor.peek(), None | Some('{')) {
        // The disassembler separates sources by spaces. The assembler also accepts commas, because people often write
        // commas.
        if !std::mem::take(&mut first) {
            cursor.eat(",");
        }
        let number = place(cursor, SOURCES, |name| format!("`{name}` is not a source"))?;
        sign(cursor, "=", "expected src0=temp[1]")?;
        match declared.get_mut(number) {
            Some(declared) => {
                *declared = true;
                let shift = 10 * number as u32;
                word = word & !(0x3ff << shift) | source_bits(cursor)? << shift;
            }
            None => {
                let op: SrcpOp = value(cursor, |name| format!("`{name}` is not a presubtract operation"))?;
                word = word & 0x3fff_ffff | op.to_bits() << 30;
            }
        }
    }
    Ok(word)
}

pub(super) fn source_bits(cursor: &mut Cursor<'_>) -> Parsed<u32> {
    let start = cursor.offset();
    if cursor.eat("#") {
        let rest = cursor.rest();
        let len = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let text = &rest[..len];
        cursor.eat(text);
        let value = text.parse::<f32>().ok();
        return value.and_then(syntax::inline_code).map(|code| UNUSED_SOURCE | code).ok_or_else(|| {
            Diagnostic::error(cursor.since(start), format!("`#{text}` is not an inline constant"))
                .help("inline constants are (8 to 15) / 8 times a power of two from 2^-7 to 2^8; others go into .const")
        });
    }
    let at = cursor.here();
    let file = cursor.word();
    let (base, is_const, max) = match file {
        "temp" => (0, false, TEMPORARIES as u64 - 1),
        "const" => (0, true, CONSTANTS as u64 - 1),
        "inline" => (UNUSED_SOURCE, false, 127),
        other => {
            return Err(Diagnostic::error(at, format!("`{other}` is not a register file"))
                .help("expected temp[N], const[N] or an inline constant #VALUE"));
        }
    };
    let (address, rel) = indexed(cursor, &format!("a {file} address"), max)?;
    Ok(base | address | u32::from(is_const) << 8 | u32::from(rel) << 9)
}

/// Parses the destinations of a half, up to and including the `=`.
pub(super) fn dests(
    cursor: &mut Cursor<'_>,
    kind: InstType,
    mut store: impl FnMut(Dest, &str, Span) -> Parsed<()>,
) -> Parsed<()> {
    if !has_dests(cursor) {
        return Ok(());
    }
    let mut seen = Vec::new();
    loop {
        let (place, mask, span) = dest(cursor, kind)?;
        let file = std::mem::discriminant(&place);
        if seen.contains(&file) {
            return Err(Diagnostic::error(span, "a second destination of the same kind")
                .help("a half writes at most one temporary and one output"));
        }
        seen.push(file);
        store(place, mask, span)?;
        if cursor.eat("=") {
            return Ok(());
        }
        if !cursor.eat(",") {
            return Err(expected(cursor, "expected `,` or `=`", "write more destinations or ="));
        }
    }
}

/// Parses the operands of a half. The sources follow the operands, and another function parses the sources.
pub(super) fn operands(cursor: &mut Cursor<'_>, letters: usize) -> Parsed<Vec<(Operand, Span)>> {
    let mut list = Vec::new();
    while !matches!(cursor.peek(), None | Some('{' | ':')) {
        if !list.is_empty() {
            sign(cursor, ",", "expected a comma, : or the end of the line")?;
        }
        let at = cursor.here();
        if list.len() == 3 {
            return Err(Diagnostic::error(at, "an operation has at most three operands"));
        }
        list.push(operand(cursor, letters)?);
    }
    Ok(list)
}

/// Parses the operands of an operation or idiom, and records the sources that the operands read.
fn half_operands(
    cursor: &mut Cursor<'_>,
    letters: usize,
    (name, wanted): (&str, usize),
    idiom: Option<&'static Idiom>,
    reads: &mut Reads,
) -> Parsed<Vec<Operand>> {
    let start = cursor.here();
    let list = operands(cursor, letters)?;
    let (name, wanted) = idiom.map_or((name, wanted), |idiom| (idiom.name, idiom.operands));
    let wrong = || {
        let plural = if wanted == 1 { "" } else { "s" };
        format!("{name} takes {wanted} operand{plural}, not {}", list.len())
    };
    // A missing operand is an error, because the assembler would otherwise use src0.r for this operand.
    if list.len() < wanted {
        let fits = match wanted {
            1 => "expected one operand".to_owned(),
            _ => format!("expected {wanted} operands, separated by commas"),
        };
        return Err(expected(cursor, wrong(), fits));
    }
    if idiom.is_some() && list.len() > wanted {
        return Err(Diagnostic::error(start, wrong()));
    }
    for (operand, at) in &list[..wanted] {
        reads.operands.extend(operand.stated(letters).map(|(word, number)| (word, number, *at)));
    }
    let list: Vec<Operand> = list.into_iter().map(|(operand, _)| operand).collect();
    Ok(match idiom {
        Some(idiom) => idiom.expand(&list),
        None => list,
    })
}

/// The fields and letters of a unit.
struct HalfSyntax {
    /// Name of the unit in messages.
    name: &'static str,
    /// Letters of the unit's channels.
    letters: &'static str,
    /// Names of the fields for the predicate and its inversion.
    predicate: [&'static str; 2],
    /// Names of the three fields for a temporary: the write mask, the address, and the bit that makes the address
    /// relative.
    temp: [&'static str; 3],
    /// Names of the fields for the output mask, and for the render target or comparison.
    output: [&'static str; 2],
    /// Names of the fields for the operation, the output modifier and the clamp.
    operation: [&'static str; 3],
    /// Names of the fields of each operand: source, modifier and swizzle.
    operands: [(&'static str, &'static str, &'static [&'static str]); 3],
}

const RGB: HalfSyntax = HalfSyntax {
    name: "RGB",
    letters: "rgb",
    predicate: ["RGB_PRED_SEL", "RGB_PRED_INV"],
    temp: ["RGB_WMASK", "RGB_ADDRD", "RGB_ADDRD_REL"],
    output: ["RGB_OMASK", "US_ALU_RGB_INST.TARGET"],
    operation: ["RGB_OP", "US_ALU_RGB_INST.OMOD", "RGB_CLAMP"],
    operands: [
        ("RGB_SEL_A", "RGB_MOD_A", &["RED_SWIZ_A", "GREEN_SWIZ_A", "BLUE_SWIZ_A"]),
        ("RGB_SEL_B", "RGB_MOD_B", &["RED_SWIZ_B", "GREEN_SWIZ_B", "BLUE_SWIZ_B"]),
        ("RGB_SEL_C", "RGB_MOD_C", &["RED_SWIZ_C", "GREEN_SWIZ_C", "BLUE_SWIZ_C"]),
    ],
};

const ALPHA: HalfSyntax = HalfSyntax {
    name: "alpha",
    letters: "a",
    predicate: ["ALPHA_PRED_SEL", "ALPHA_PRED_INV"],
    temp: ["ALPHA_WMASK", "ALPHA_ADDRD", "ALPHA_ADDRD_REL"],
    output: ["ALPHA_OMASK", "US_ALU_ALPHA_INST.TARGET"],
    operation: ["ALPHA_OP", "US_ALU_ALPHA_INST.OMOD", "ALPHA_CLAMP"],
    operands: [
        ("ALPHA_SEL_A", "ALPHA_MOD_A", &["ALPHA_SWIZ_A"]),
        ("ALPHA_SEL_B", "ALPHA_MOD_B", &["ALPHA_SWIZ_B"]),
        ("ALPHA_SEL_C", "ALPHA_MOD_C", &["ALPHA_SWIZ_C"]),
    ],
};

fn rgb_half(
    cursor: &mut Cursor<'_>,
    kind: InstType,
    words: &mut [u32; WORDS],
    reads: &mut Reads,
) -> Parsed<()> {
    let about = |op: RgbOp| (op.name(), op.operation().operands);
    half::<RgbOp, AlphaOp>(cursor, kind, &RGB, about, words, reads)?;
    words[1] = sources(cursor, &mut reads.declared[0])?;
    Ok(())
}

pub(super) fn alpha_half(cursor: &mut Cursor<'_>, words: &mut [u32; WORDS], reads: &mut Reads) -> Parsed<()> {
    let kind = if words[0] & 3 == InstType::OUT as u32 { InstType::OUT } else { InstType::ALU };
    let about = |op: AlphaOp| (op.name(), op.operation().operands);
    half::<AlphaOp, RgbOp>(cursor, kind, &ALPHA, about, words, reads)?;
    words[2] = sources(cursor, &mut reads.declared[1])?;
    Ok(())
}

/// Parses a half of an instruction, up to its sources. The caller parses the sources. `about` returns the name and the
/// number of operands of an operation.
fn half<Op: FieldValue, Other: FieldValue>(
    cursor: &mut Cursor<'_>,
    kind: InstType,
    unit: &HalfSyntax,
    about: impl Fn(Op) -> (&'static str, usize),
    words: &mut [u32; WORDS],
    reads: &mut Reads,
) -> Parsed<()> {
    let mut set = |name: &str, value: u32| set(words, kind, name, value);
    if let Some((select, inverted)) = predicate(cursor)? {
        set(unit.predicate[0], select.to_bits());
        set(unit.predicate[1], u32::from(inverted));
    }
    dests(cursor, kind, |dest, mask, span| {
        match dest {
            Dest::Temp { address, rel } => {
                set(unit.temp[0], mask_bits(mask, unit.letters, span)?);
                set(unit.temp[1], address);
                set(unit.temp[2], u32::from(rel));
            }
            Dest::Output { target } => {
                set(unit.output[0], mask_bits(mask, unit.letters, span)?);
                set(unit.output[1], target);
            }
            Dest::AluResult { op, alpha } if unit.name == "RGB" => {
                set("ALU_WMASK", 1);
                set("ALU_RESULT_OP", op.to_bits());
                set("ALU_RESULT_SEL", u32::from(alpha));
            }
            Dest::AluResult { .. } => {
                return Err(Diagnostic::error(span, "the ALU result is written on the RGB half's line")
                    .help("on the RGB half's line, `alu_result[OP].a` computes the ALU result from alpha"));
            }
            Dest::Depth if unit.name == "RGB" => {
                return Err(Diagnostic::error(span, "only the alpha half writes out.w"));
            }
            Dest::Depth => set("W_OMASK", 1),
        }
        Ok(())
    })?;
    let Named { op, omod, clamp, idiom } = operation::<Op, Other>(cursor, unit.name)?;
    set(unit.operation[0], op.to_bits());
    set(unit.operation[1], omod.to_bits());
    set(unit.operation[2], u32::from(clamp));
    let list = half_operands(cursor, unit.letters.len(), about(op), idiom, reads)?;
    for (operand, (sel, modifier, swizzle)) in list.into_iter().zip(unit.operands) {
        set(sel, operand.sel.to_bits());
        set(modifier, operand.modifier.to_bits());
        for (swiz, field) in operand.swiz.into_iter().zip(swizzle) {
            set(field, swiz.to_bits());
        }
    }
    Ok(())
}

// ---- Texture

pub(super) fn tex_line(cursor: &mut Cursor<'_>) -> Parsed<[u32; WORDS]> {
    let kind = InstType::TEX;
    let mut words = [blank(kind).pack(), 0, 0, 0, 0, 0];
    if cursor.peek() == Some('{') {
        return Ok(words);
    }
    if let Some((select, inverted)) = predicate(cursor)? {
        for [field, inversion] in [RGB.predicate, ALPHA.predicate] {
            set(&mut words, kind, field, select.to_bits());
            set(&mut words, kind, inversion, u32::from(inverted));
        }
    }
    let has_dest = cursor.rest().trim_start().starts_with("temp");
    if has_dest {
        let (place, mask, span) = dest(cursor, kind)?;
        let Dest::Temp { address, rel } = place else {
            return Err(Diagnostic::error(span, "a fetch writes a temporary"));
        };
        let mask = mask_bits(mask, "rgba", span)?;
        set(&mut words, kind, "RGB_WMASK", mask & 7);
        set(&mut words, kind, "ALPHA_WMASK", mask >> 3);
        set(&mut words, kind, "DST_ADDR", address);
        set(&mut words, kind, "DST_ADDR_REL", u32::from(rel));
        equals(cursor)?;
    }
    let op: TexOp = value(cursor, |name| format!("unknown texture operation `{name}`"))?;
    set(&mut words, kind, "INST", op.to_bits());
    let at = cursor.here();
    if !cursor.eat_word("tex") {
        return Err(Diagnostic::error(at, "expected a texture unit").help("expected tex[0] to tex[15]"));
    }
    let (unit, rel) = indexed(cursor, "a texture unit", SAMPLERS as u64 - 1)?;
    if rel {
        return Err(Diagnostic::error(at, "a texture unit cannot be relative"));
    }
    set(&mut words, kind, "TEX_ID", unit);
    sign(cursor, ",", "expected a comma and the coordinate")?;
    tex_register(cursor, &mut words, &SRC)?;
    let dst = ["DST_R_SWIZ", "DST_G_SWIZ", "DST_B_SWIZ", "DST_A_SWIZ"];
    tex_swizzle(&mut words, default_swizzle(has_dest), dst, at)?;
    while !matches!(cursor.peek(), None | Some('{')) {
        let at = cursor.here();
        match cursor.word() {
            "swz" => {
                equals(cursor)?;
                let at = cursor.here();
                let letters = cursor.word();
                tex_swizzle(&mut words, letters, dst, at)?;
            }
            name @ ("dx" | "dy") => {
                equals(cursor)?;
                tex_register(cursor, &mut words, if name == "dx" { &DX } else { &DY })?;
            }
            flag @ ("UNSCALED" | "TEX_SEM_ACQUIRE" | "IGNORE_UNCOVERED") => set(&mut words, kind, flag, 1),
            other => {
                let fits = ["UNSCALED", "TEX_SEM_ACQUIRE", "IGNORE_UNCOVERED", "swz", "dx", "dy"];
                return Err(Diagnostic::error(at, format!("unknown texture modifier `{other}`"))
                    .help(suggest(other, fits)));
            }
        }
    }
    Ok(words)
}

/// Names of the fields for a register in a texture instruction: the address of the register, the bit that makes the
/// address relative, and the swizzle.
type TexFields = (&'static str, &'static str, [&'static str; 4]);

const SRC: TexFields = ("SRC_ADDR", "SRC_ADDR_REL", ["SRC_S_SWIZ", "SRC_T_SWIZ", "SRC_R_SWIZ", "SRC_Q_SWIZ"]);
const DX: TexFields = ("DX_ADDR", "DX_ADDR_REL", ["DX_S_SWIZ", "DX_T_SWIZ", "DX_R_SWIZ", "DX_Q_SWIZ"]);
const DY: TexFields = ("DY_ADDR", "DY_ADDR_REL", ["DY_S_SWIZ", "DY_T_SWIZ", "DY_R_SWIZ", "DY_Q_SWIZ"]);

fn tex_register(cursor: &mut Cursor<'_>, words: &mut [u32; WORDS], fields: &TexFields) -> Parsed<()> {
    let (address_field, rel_field, swizzle_fields) = *fields;
    let at = cursor.here();
    if !cursor.eat_word("temp") {
        return Err(
            Diagnostic::error(at, "a coordinate comes from a temporary").help("expected temp[N].LETTERS")
        );
    }
    let (address, rel) = indexed(cursor, "a temporary", TEMPORARIES as u64 - 1)?;
    set(words, InstType::TEX, address_field, address);
    set(words, InstType::TEX, rel_field, u32::from(rel));
    if !cursor.eat(".") {
        return Err(expected(cursor, "expected a swizzle", "write .LETTERS of r g b a"));
    }
    let at = cursor.here();
    let letters = cursor.word();
    tex_swizzle(words, letters, swizzle_fields, at)
}

fn tex_swizzle(words: &mut [u32; WORDS], letters: &str, fields: [&str; 4], at: Span) -> Parsed<()> {
    let codes: Option<Vec<TexSwiz>> = letters.chars().map(syntax::tex_swiz).collect();
    let codes = codes.filter(|codes| codes.len() == 4).ok_or_else(|| {
        Diagnostic::error(at, format!("`{letters}` is not a texture swizzle"))
            .help("expected four of the letters r g b a")
    })?;
    for (field, code) in fields.iter().zip(codes) {
        set(words, InstType::TEX, field, code.to_bits());
    }
    Ok(())
}
