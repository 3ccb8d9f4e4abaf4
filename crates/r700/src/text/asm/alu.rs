//! Parses ALU lines, and forms groups from these lines.

use std::collections::HashMap;
use std::sync::LazyLock;

use reconverge_isa::source::{parse_number, suggest};
use reconverge_isa::{Diagnostic, Span};

use super::super::attr;
use super::super::{CHANS, INLINE, LITERAL, SLOTS, op2_row, op2_shift};
use super::amd::{self, Dialect};
use super::lex::{Parse, Token, chan_of, set, wrong};
use super::operand::{attribute, bracketed_literal, indexed, is_minus_one, literal, no_operand, split_chan};
use super::{Asm, Cf};
use crate::chip::Family;
use crate::code::{is_op3, literal_pairs};
use crate::meaning::{self, Opcode};
use crate::ports;
use crate::words::{Op2, Op3};

/// The group under construction.
#[derive(Default)]
pub(super) struct Group {
    pub(super) words: Vec<[u32; 2]>,
    pub(super) literals: [Option<u32>; 4],
    /// Literals that have no component yet. When the group ends, each of these literals receives a component. Each
    /// entry has the literal's instruction, source, value, and position in the text.
    loose: Vec<(usize, usize, u32, Span)>,
    /// Number of the group, if the text states a number.
    pub(super) number: Option<u64>,
    /// Bit mask of the slots in use, with one bit for each slot letter.
    taken: u8,
    /// Part of the text from the group's first slot to its last slot.
    span: Span,
    /// Bit mask of the instructions for which the text states BANK.
    banked: u32,
}

impl Group {
    /// Returns whether a line with this number and slot belongs to the group. The group must have the number of the
    /// line, and the slot of the line must be free in the group.
    pub(super) fn goes_on(&self, number: u64, slot: &str) -> bool {
        self.number == Some(number) && self.taken & letter(slot) == 0
    }

    fn clear(&mut self) {
        let Group { words, literals, loose, number, taken, span, banked } = self;
        words.clear();
        loose.clear();
        (*literals, *number, *taken, *span, *banked) = ([None; 4], None, 0, Span::default(), 0);
    }
}

/// Returns the bit for a slot's letter.
fn letter(slot: &str) -> u8 {
    SLOTS.iter().position(|name| slot.starts_with(name)).map_or(0, |place| 1 << place)
}

/// Encoding of an ALU opcode: the number of the opcode. For an OP2 opcode, the encoding also states how many sources
/// the opcode reads.
#[derive(Clone, Copy)]
enum Code {
    Op2(u32, u8),
    Op3(u32),
}

impl Code {
    fn row(self, family: Family) -> Option<&'static Opcode> {
        match self {
            Code::Op2(number, _) => op2_row(number, family),
            Code::Op3(number) => meaning::op3_row(number),
        }
    }
}

/// Role of an operand. The fields are the index of the instruction in the group, the index of the source, the component
/// of the destination, and the opcode.
#[derive(Clone, Copy)]
pub(super) struct Role {
    inst: usize,
    source: usize,
    dst_chan: u32,
    code: Code,
}

/// Type of the numbers in an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Floats,
    Integers,
    /// The operand takes bits of any type, or the operation is unknown.
    Bits,
}

impl Role {
    fn takes(self, family: Family) -> Takes {
        use crate::meaning::Meaning::*;
        let Some(row) = self.code.row(family) else { return Takes::Bits };
        let by_name = match row.name {
            name if name.contains("INT") => Takes::Integers,
            _ => Takes::Floats,
        };
        match row.meaning {
            Float1(_) | Float3(..) | Bits3(_)
                if row.name == "MOV" || row.name.starts_with("CND") && self.source > 0 =>
            {
                Takes::Bits
            }
            Float1(_) if row.name.ends_with("_TO_FLT") => Takes::Integers,
            Bits1(_) if row.name.starts_with("FLT_TO_") => Takes::Floats,
            Float1(_) | Float2(_) | Float3(..) | Reduce(_) | Cube => Takes::Floats,
            Bits1(_) | Bits2(_) | Bits3(_) | PredSet(_) | Kill(_) | Mova(_) | MovaLoop(_) => by_name,
            Nothing | Double(_) => Takes::Bits,
        }
    }
}

/// Returns the opcode with this name. Also accepts `OP2_n` and `OP3_n`, which contain the number of the opcode.
fn opcode(name: &str, family: Family) -> Option<Code> {
    static NAMES: LazyLock<[HashMap<&'static str, Code>; 2]> = LazyLock::new(|| {
        [Family::R600, Family::R700].map(|family| {
            let op3 = Op3::ALL.iter().map(|code| (code.name(), Code::Op3(*code as u32)));
            let op2 = Op2::ALL.iter().filter_map(|code| {
                let row = op2_row(*code as u32, family)?;
                Some((row.name, Code::Op2(*code as u32, row.sources)))
            });
            op3.chain(op2).collect()
        })
    });
    let raw = |prefix: &str, range: std::ops::RangeInclusive<u64>| {
        name.strip_prefix(prefix).and_then(parse_number).filter(|number| range.contains(number))
    };
    let names = &NAMES[usize::from(family == Family::R700)];
    names
        .get(name)
        .copied()
        .or_else(|| Some(Code::Op2(raw("OP2_", 0..=u64::from(0x7fffu32 >> op2_shift(family)))? as u32, 2)))
        .or_else(|| Some(Code::Op3(raw("OP3_", 4..=31)? as u32)))
        .or_else(|| names.get(amd::operation(name)?).copied())
}

/// Returns an operation that only later chips have. latte-assembler accepts operations of later chips.
fn later(name: &str) -> Option<Code> {
    let op2 = amd::LATER_OP2.iter().find(|(known, ..)| *known == name);
    let op3 = || amd::LATER_OP3.iter().find(|(known, _)| *known == name);
    op2.map(|(_, number, sources)| Code::Op2(*number, *sources))
        .or_else(|| op3().map(|(_, number)| Code::Op3(*number)))
}

/// Splits `MUL*2` or `ADD/2` into the name of the operation and the value of OMOD.
fn output_modifier(name: &str) -> (&str, u32) {
    for (suffix, omod) in [("*2", 1), ("*4", 2), ("/2", 3)] {
        if let Some(name) = name.strip_suffix(suffix) {
            return (name, omod);
        }
    }
    (name, 0)
}

impl Asm<'_> {
    pub(super) fn alu(&mut self, rest: &[Token<'_>], slot: Token<'_>) -> Parse<()> {
        let family = self.chip.family;
        let Some(&head) = rest.first() else {
            return Err(wrong(slot, "an instruction was expected"));
        };
        let shift = op2_shift(family);
        let (mut name, mut omod) = (head.text, 0);
        let mut code = opcode(name, family);
        if code.is_none() {
            (name, omod) = output_modifier(name);
            code = opcode(name, family);
        }
        if code.is_none() {
            code = later(name);
            if code.is_some() {
                let message = format!(
                    "R600 and R700 do not have the instruction {name}: its number has no meaning on these chips"
                );
                self.warnings.push(Diagnostic::warning(head.span, message));
            }
        }
        let (mut words, sources, table) = match code {
            Some(Code::Op2(number, sources)) => ([0, number << shift], sources, attr::op2(family)),
            Some(Code::Op3(number)) => ([0, number << 13], 3, attr::OP3),
            None => {
                let op2 = Op2::ALL.iter().map(|code| code.name());
                let known = op2.chain(Op3::ALL.iter().map(|code| code.name()));
                return Err(wrong(head, "unknown ALU instruction").help(suggest(name, known)));
            }
        };
        let code = code.unwrap_or(Code::Op2(0, 2));
        let is_op3 = is_op3(words[1]);
        let Some((operands, attributes)) = rest[1..].split_at_checked(usize::from(sources) + 1) else {
            return Err(wrong(head, format!("{} has a destination and {sources} sources", head.text)));
        };
        // The words have fields for sources that the operation does not read. So the text may contain such sources.
        let more = match operands.last() {
            Some(last) if last.comma && sources < 2 => {
                let more = 1 + attributes.iter().take_while(|token| token.comma).count();
                more.min(attributes.len()).min(2 - usize::from(sources))
            }
            _ => 0,
        };
        let (operands, attributes) = rest[1..].split_at(operands.len() + more);
        let mut index = None;
        let slot_chan = CHANS.find(&slot.text[..1]).map(|at| at as u32);
        let (target, chan) = match split_chan(operands[0]) {
            Ok(split) => split,
            // If the destination is `____` or a register without a component, the instruction writes the component that
            // belongs to its slot.
            Err(_) if is_whole(operands[0].text) => (operands[0].text, slot_chan.unwrap_or(0)),
            Err(fault) => return Err(fault),
        };
        let (masked, register) = match target.strip_prefix('_') {
            Some(register) if !is_op3 => (true, register.trim_start_matches('_')),
            Some(_) => return Err(wrong(operands[0], "a three-operand instruction always writes")),
            None => (false, target),
        };
        if !(masked && register.is_empty()) {
            let Some((gpr, rel)) = register_of(register, &mut index) else {
                return Err(wrong(operands[0], "a register R0 to R127 was expected"));
            };
            words[1] |= gpr << 21 | u32::from(rel) << 28;
        }
        if slot_chan.is_some_and(|slot| slot != chan) && self.dialect != Dialect::Latte {
            let letter = &CHANS[chan as usize..][..1];
            return Err(wrong(slot, "the slot and the destination's component differ").help(format!(
                "slot {letter} writes component {letter}: write `{letter}:`, or `t:` for what can run in slot t"
            )));
        }
        words[1] |= chan << 29;
        if !is_op3 && !masked {
            words[1] |= 1 << 4;
        }
        let inst = self.group.words.len();
        for (source, &token) in operands[1..].iter().enumerate() {
            let role = Role { inst, source, dst_chan: chan, code };
            let (raw, abs) = self.source(token, &mut index, role)?;
            if abs && is_op3 {
                return Err(wrong(token, "a three-operand instruction has no absolute values"));
            }
            match source {
                0 => words[0] |= raw,
                1 => words[0] |= raw << 13,
                _ => words[1] |= raw,
            }
            if abs {
                words[1] |= 1 << source;
            }
        }
        words[0] |= index.unwrap_or(0) << 26;
        if omod != 0 && !set("OMOD", omod, &[table], &mut words) {
            return Err(wrong(head, "a three-operand instruction has no output modifier")
                .help("some operations have an output modifier in their names, for example MULADD_M2"));
        }
        let (mut banked, mut next) = (false, None);
        for (place, &token) in attributes.iter().enumerate() {
            if matches!(token.text, "x:" | "y:" | "z:" | "w:" | "t:") {
                next = Some((token, &attributes[place + 1..]));
                break;
            }
            // If an operation reads only one source, the text has `~` before the second source.
            if let Some(unused) = token.text.strip_prefix('~') {
                let role = Role { inst, source: 1, dst_chan: chan, code };
                words[0] |= match unused {
                    "" => (words[0] >> 10 & 3) << 23,
                    text => self.source(Token { text, ..token }, &mut index, role)?.0 << 13,
                };
                continue;
            }
            banked |= ["BANK", "VEC_", "SCL_"].iter().any(|name| token.text.starts_with(name));
            attribute(token, &[table], &mut words, &[])?;
        }
        self.body(head, true)?;
        if inst == 0 {
            self.group.span = slot.span;
        }
        self.group.span.end = slot.span.end;
        self.group.taken |= letter(slot.text);
        self.group.banked |= u32::from(banked) << inst.min(31);
        self.group.words.push(words);
        match next {
            // In AMD's text, several instructions can be on one line.
            Some((slot, rest)) => self.alu(rest, slot),
            None => Ok(()),
        }
    }

    /// Parses an operand. Returns its thirteen bits, and whether the operand is an absolute value.
    fn source(&mut self, token: Token<'_>, index: &mut Option<u32>, role: Role) -> Parse<(u32, bool)> {
        let fault = || no_operand(token);
        let family = self.chip.family;
        let latte = self.dialect == Dialect::Latte;
        let mut text = token.text;
        let mut negative = 0;
        if (text != "-1" && !text.starts_with("-1.x") && !is_minus_one(text) || latte)
            && let Some(rest) = text.strip_prefix('-')
        {
            (negative, text) = (1 << 12, rest.trim_start());
        }
        let mut abs = false;
        let joined;
        if let Some(rest) = text.strip_prefix('|') {
            abs = true;
            text = match rest.strip_suffix('|') {
                Some(text) => text,
                // In an absolute value, the component comes after the bars, as in `|R0|.x`.
                None => {
                    let (inner, outer) = rest.split_once('|').ok_or_else(fault)?;
                    joined = inner.trim().to_owned() + outer;
                    &joined
                }
            };
        }
        let (mut body, mut chan) = (text, None);
        if let Some((front, last)) = text.rsplit_once('.')
            && let Some(found) = chan_of(last)
        {
            (body, chan) = (front, Some(found));
        }
        let raw = |selector: u32, rel: bool, chan: u32| {
            Ok((selector | u32::from(rel) << 9 | chan << 10 | negative, abs))
        };
        // No number begins with one of these letters. So the operand is a register or a constant in a window.
        if matches!(body.as_bytes().first(), Some(b'R' | b'K' | b'C' | b'S' | b'T' | b'P')) {
            let whole = chan.unwrap_or(role.dst_chan);
            for (prefix, first, count) in
                [("KC0", 128, 32), ("KC1", 160, 32), ("C", 256, 256), ("R", 0, 128), ("SEL", 0, 512)]
            {
                if let Some((number, rel)) = indexed(body, prefix, index) {
                    if number >= count {
                        return Err(wrong(token, format!("{prefix} goes from 0 to {}", count - 1)));
                    }
                    return raw(first + number, rel, whole);
                }
            }
            if let Some((number, rel)) = indexed(body, "T", index).filter(|(number, _)| *number < 4) {
                return raw(127 - number, rel, whole);
            }
            // In AMD's text, the number of the previous group comes directly after PV or PS.
            let numbered = |prefix: &str| {
                let rest = body.strip_prefix(prefix);
                rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
            };
            if numbered("PV") {
                return raw(254, false, whole);
            }
            if numbered("PS") {
                return raw(255, false, chan.unwrap_or(if latte { role.dst_chan } else { 0 }));
            }
        }
        let plain = body.strip_prefix('(').and_then(|body| body.strip_suffix(')')).unwrap_or(body);
        let bracketed = plain.len() < body.len();
        let digits = plain.bytes().all(|byte| byte.is_ascii_digit());
        if !latte {
            let amd = [("0.0f", 248), ("0.0", 248), ("1.0f", 249), ("0.5f", 252)];
            let built_in = INLINE.iter().find(|(_, name)| *name == plain).map(|(selector, _)| *selector);
            let amd = || amd.iter().find(|(name, _)| *name == plain).map(|(_, selector)| *selector);
            let built_in = built_in.or_else(|| amd().filter(|_| self.dialect == Dialect::Amd && !bracketed));
            if let Some(selector) = built_in {
                if selector == 250 || selector == 251 {
                    self.integer_of_floats(token, role, plain);
                }
                return raw(selector, false, chan.unwrap_or(0));
            }
        }
        if let Some((_, selector)) = [("1.0_L", 244), ("1.0_M", 245), ("0.5_L", 246), ("0.5_M", 247)]
            .iter()
            .find(|(name, _)| *name == plain)
        {
            return raw(*selector, false, chan.unwrap_or(0));
        }
        let integers = role.takes(family) == Takes::Integers;
        let value = if bracketed {
            bracketed_literal(plain, token).ok_or_else(fault)??
        } else if latte && !plain.starts_with("0x") {
            let value = literal(plain).ok_or_else(fault)?;
            match (digits, integers) {
                (true, true) if negative != 0 => return self.negative_integer(token, role, value, chan),
                (true, true) => value,
                (true, false) => (value as f32).to_bits(),
                (false, _) => value,
            }
        } else {
            literal(plain).ok_or_else(fault)?
        };
        if negative != 0 && !bracketed && digits && !latte {
            if integers {
                return self.negative_integer(token, role, value, chan);
            }
            return Err(wrong(token, "a minus sign before an integer flips its highest bit")
                .help(format!("for the integer write (-{body}), for the float -{body}.0f")));
        }
        // For latte-assembler, 0 is the only number that becomes an inline constant of the chip.
        let is_zero = || !plain.starts_with("0x") || plain.contains(',');
        if latte && value == 0 && is_zero() {
            return raw(248, false, chan.unwrap_or(role.dst_chan));
        }
        if digits || bracketed && signed_digits(plain) {
            self.integer_of_floats(token, role, plain);
        } else if integers && !plain.contains("0x") && arithmetic(role.code.row(family)) {
            let value = f32::from_bits(value);
            let message = format!(
                "{} computes with integers; as an integer, the bits of {plain} are a large number",
                head_name(role, family)
            );
            let help = format!("write {value:.0}");
            self.warnings.push(Diagnostic::warning(token.span, message).help(help));
        }
        match chan {
            Some(chan) => self.literal(chan, value, token)?,
            None => self.group.loose.push((role.inst, role.source, value, token.span)),
        }
        raw(LITERAL, false, chan.unwrap_or(0))
    }

    /// Parses a negative operand, such as `-5`, of an operation on integers. Operations on integers do not have NEG.
    fn negative_integer(
        &mut self,
        token: Token<'_>,
        role: Role,
        value: u32,
        chan: Option<u32>,
    ) -> Parse<(u32, bool)> {
        let value = value.wrapping_neg();
        if value == u32::MAX {
            return Ok((251 | chan.unwrap_or(0) << 10, false));
        }
        match chan {
            Some(chan) => self.literal(chan, value, token)?,
            None => self.group.loose.push((role.inst, role.source, value, token.span)),
        }
        Ok((LITERAL | chan.unwrap_or(0) << 10, false))
    }

    /// Warns about an integer in an operation on floats. As a float, the bits of the integer are a denormal or a NaN.
    fn integer_of_floats(&mut self, token: Token<'_>, role: Role, plain: &str) {
        let family = self.chip.family;
        if self.dialect == Dialect::Latte || role.takes(family) != Takes::Floats || plain == "0" {
            return;
        }
        let message = format!(
            "{} computes with floats; the bits of the integer {plain} are not this number as a float",
            head_name(role, family)
        );
        let float = if plain == "1" { "1.0".to_owned() } else { format!("{plain}.0f") };
        self.warnings.push(Diagnostic::warning(token.span, message).help(format!("write {float}")));
    }

    /// Stores a literal of the group as component `chan`.
    pub(super) fn literal(&mut self, chan: u32, value: u32, at: Token<'_>) -> Parse<()> {
        let place = &mut self.group.literals[chan as usize];
        match place {
            Some(other) if *other != value => {
                let other = *other;
                Err(wrong(at, "the group has another literal in this component").help(format!(
                    "{} holds ({other:#010x}, {})",
                    &CHANS[chan as usize..][..1],
                    f32::from_bits(other)
                )))
            }
            Some(_) | None => {
                *place = Some(value);
                Ok(())
            }
        }
    }

    /// Ends the group: sets BANK_SWIZZLE and LAST, adds literals, and appends the group to the clause.
    pub(super) fn close_group(&mut self) -> Parse<()> {
        if self.group.words.is_empty() {
            self.group.number = None;
            return Ok(());
        }
        let mut group = std::mem::take(&mut self.group);
        let latte = self.dialect == Dialect::Latte;
        let counted = self.cf.last().is_some_and(|cf| cf.counted);
        if !counted && !latte && group.banked.count_ones() < group.words.len() as u32 {
            self.schedule(&mut group);
        }
        if let Some(last) = group.words.last_mut() {
            last[0] |= 1 << 31;
        }
        let apart = latte.then(|| (group.words.clone(), group.literals));
        let done = place_literals(&group.loose, true, &mut group.words, &mut group.literals);
        if let Some(cf) = self.cf.last_mut().filter(|_| done.is_ok()) {
            let before = cf.body.len();
            cf.add_group(&group.words, &group.literals);
            if let Some((mut words, mut literals)) = apart
                && place_literals(&group.loose, false, &mut words, &mut literals).is_ok()
            {
                let shared = cf.body.split_off(before);
                cf.add_group(&words, &literals);
                if cf.body.len() - before != shared.len() {
                    cf.shorter.push((before, shared));
                }
            }
        }
        group.clear();
        self.group = group;
        done
    }

    /// Chooses BANK_SWIZZLE for each instruction without BANK in the text. With the chosen values, no two reads need
    /// the same port in the same cycle.
    fn schedule(&mut self, group: &mut Group) {
        let reads = ports::reads(&group.words, self.chip.family);
        let own = |(place, words): (usize, &[u32; 2])| {
            (group.banked >> place.min(31) & 1 != 0).then_some(words[1] >> 18 & 7)
        };
        let given: Vec<Option<u32>> = group.words.iter().enumerate().map(own).collect();
        if let Some(found) = ports::schedule(&reads, &given) {
            for (words, bank) in group.words.iter_mut().zip(found) {
                words[1] = words[1] & !(7 << 18) | bank << 18;
            }
            return;
        }
        let help = match ports::schedule(&reads, &vec![None; given.len()]) {
            Some(found) => {
                let names: Vec<&str> = found.into_iter().map(ports::name).collect();
                format!("these values fit, in the order of the slots: BANK({})", names.join("), BANK("))
            }
            None => "split the group, or read a result of the previous group through PV or PS".to_owned(),
        };
        self.faults.push(Diagnostic::error(group.span, ports::conflict(&reads)).help(help));
    }
}

/// Assigns a component to each literal that has none. `shared` allows equal literals to share a component.
fn place_literals(
    loose: &[(usize, usize, u32, Span)],
    shared: bool,
    words: &mut [[u32; 2]],
    literals: &mut [Option<u32>; 4],
) -> Parse<()> {
    for &(inst, place, value, span) in loose {
        let same = |literal: &Option<u32>| shared && *literal == Some(value);
        let chan = literals.iter().position(same).or_else(|| literals.iter().position(Option::is_none));
        let chan = chan.ok_or_else(|| Diagnostic::error(span, "a group has four literals at most"))?;
        literals[chan] = Some(value);
        let (word, shift) = [(0, 10), (0, 23), (1, 10)][place];
        if let Some(words) = words.get_mut(inst) {
            words[word] |= (chan as u32) << shift;
        }
    }
    Ok(())
}

impl Cf {
    fn add_group(&mut self, words: &[[u32; 2]], literals: &[Option<u32>; 4]) {
        let pairs = literal_pairs(words);
        self.body.extend(words.iter().flatten());
        self.body.extend(literals.iter().take(2 * pairs).map(|literal| literal.unwrap_or(0)));
    }
}

/// Returns whether the text of a destination has no component. Such a text is `____` or the name of a register.
fn is_whole(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'_') || register_of(text, &mut None).is_some()
}

/// Parses `R3`, `R[3+AR.x]`, `R3[AR.x]`, or a clause temporary. The clause temporary `T0` is R127.
fn register_of(text: &str, index: &mut Option<u32>) -> Option<(u32, bool)> {
    let temporary = |index: &mut Option<u32>| {
        let (number, rel) = indexed(text, "T", index)?;
        (number < 4).then(|| (127 - number, rel))
    };
    indexed(text, "R", index).filter(|(gpr, _)| *gpr < 128).or_else(|| temporary(index))
}

fn signed_digits(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether an operation on integers is arithmetic. An operation that is not arithmetic, such as AND_INT, may
/// have a float as its operand.
fn arithmetic(row: Option<&Opcode>) -> bool {
    row.is_some_and(|row| {
        ["ADD_", "SUB_", "MUL", "MAX_", "MIN_", "ASHR", "LSHR", "LSHL", "INT_TO"]
            .iter()
            .any(|name| row.name.starts_with(name))
    })
}

fn head_name(role: Role, family: Family) -> &'static str {
    role.code.row(family).map_or("the operation", |row| row.name)
}
