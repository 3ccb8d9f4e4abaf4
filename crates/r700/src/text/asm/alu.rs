//! ALU lines and the groups they make.

use std::collections::HashMap;
use std::sync::LazyLock;

use reconverge_isa::source::{parse_number, suggest};
use reconverge_isa::{Diagnostic, Span};

use super::super::attr;
use super::super::{CHANS, INLINE, LITERAL, op2_row, op2_shift};
use super::Asm;
use super::lex::{Parse, Token, chan_of, wrong};
use super::operand::{attribute, bracketed_literal, indexed, is_minus_one, literal, split_chan};
use crate::chip::Family;
use crate::code::{is_op3, literal_pairs};
use crate::words::{Op2, Op3};

/// The group that is being read.
#[derive(Default)]
pub(super) struct Group {
    pub(super) words: Vec<[u32; 2]>,
    pub(super) literals: [Option<u32>; 4],
    /// Literals that still need a component: instruction, source, value, place.
    loose: Vec<(usize, usize, u32, Span)>,
}

/// An ALU opcode as its encoding: the number, and for OP2 how many sources it reads.
#[derive(Clone, Copy)]
enum Code {
    Op2(u32, u8),
    Op3(u32),
}

/// The opcode of this name, or the number in `OP2_n` and `OP3_n`.
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
    NAMES[usize::from(family == Family::R700)]
        .get(name)
        .copied()
        .or_else(|| Some(Code::Op2(raw("OP2_", 0..=u64::from(0x7fffu32 >> op2_shift(family)))? as u32, 2)))
        .or_else(|| Some(Code::Op3(raw("OP3_", 4..=31)? as u32)))
}

impl Asm<'_> {
    pub(super) fn alu(&mut self, rest: &[Token<'_>], slot: Token<'_>) -> Parse<()> {
        let family = self.chip.family;
        let Some(&head) = rest.first() else {
            return Err(wrong(slot, "an instruction was expected"));
        };
        let shift = op2_shift(family);
        let (mut words, sources, table) = match opcode(head.text, family) {
            Some(Code::Op2(number, sources)) => ([0, number << shift], sources, attr::op2(family)),
            Some(Code::Op3(number)) => ([0, number << 13], 3, attr::OP3),
            None => {
                let op2 = Op2::ALL.iter().map(|code| code.name());
                let known = op2.chain(Op3::ALL.iter().map(|code| code.name()));
                return Err(wrong(head, "unknown ALU instruction").help(suggest(head.text, known)));
            }
        };
        let is_op3 = is_op3(words[1]);
        let Some((operands, attributes)) = rest[1..].split_at_checked(usize::from(sources) + 1) else {
            return Err(wrong(head, format!("{} has a destination and {sources} sources", head.text)));
        };
        let mut index = None;
        let (target, chan) = split_chan(operands[0])?;
        let (masked, register) = match target.strip_prefix('_') {
            Some(register) if !is_op3 => (true, register),
            Some(_) => return Err(wrong(operands[0], "a three-operand instruction always writes")),
            None => (false, target),
        };
        if !(masked && register.is_empty()) {
            let Some((gpr, rel)) = indexed(register, "R", &mut index).filter(|(gpr, _)| *gpr < 128) else {
                return Err(wrong(operands[0], "a register R0 to R127 was expected"));
            };
            words[1] |= gpr << 21 | u32::from(rel) << 28;
        }
        let slot_chan = CHANS.find(&slot.text[..1]).map(|at| at as u32);
        if slot_chan.is_some_and(|slot| slot != chan) {
            return Err(wrong(slot, "the slot and the destination's component differ"));
        }
        words[1] |= chan << 29;
        if !is_op3 && !masked {
            words[1] |= 1 << 4;
        }
        let at = self.group.words.len();
        for (place, &token) in operands[1..].iter().enumerate() {
            let (raw, abs) = self.source(token, &mut index, (at, place))?;
            if abs && is_op3 {
                return Err(wrong(token, "a three-operand instruction has no absolute values"));
            }
            match place {
                0 => words[0] |= raw,
                1 => words[0] |= raw << 13,
                _ => words[1] |= raw,
            }
            if abs {
                words[1] |= 1 << place;
            }
        }
        words[0] |= index.unwrap_or(0) << 26;
        for &token in attributes {
            attribute(token, &[table], &mut words, &[])?;
        }
        self.body(head, true)?;
        self.group.words.push(words);
        Ok(())
    }

    /// An operand: its thirteen bits, and whether it is an absolute value.
    pub(super) fn source(
        &mut self,
        token: Token<'_>,
        index: &mut Option<u32>,
        place: (usize, usize),
    ) -> Parse<(u32, bool)> {
        let fault = || {
            wrong(token, "an operand was expected")
                .help("a register, KC0[n].x, a constant, PV.x or PS fits here")
        };
        let mut text = token.text;
        let mut negative = 0;
        if text != "-1"
            && !text.starts_with("-1.x")
            && !is_minus_one(text)
            && let Some(rest) = text.strip_prefix('-')
        {
            (negative, text) = (1 << 12, rest);
        }
        let mut abs = false;
        if let Some(rest) = text.strip_prefix('|') {
            (abs, text) = (true, rest.strip_suffix('|').ok_or_else(fault)?);
        }
        let (mut body, mut chan) = (text, None);
        if let Some((front, last)) = text.rsplit_once('.')
            && let Some(found) = chan_of(last)
        {
            (body, chan) = (front, Some(found));
        }
        let raw = |selector: u32, rel: bool, chan: Option<u32>| {
            Ok((selector | u32::from(rel) << 9 | chan.unwrap_or(0) << 10 | negative, abs))
        };
        // No constant begins as a register does.
        if matches!(body.as_bytes().first(), Some(b'R' | b'K' | b'C' | b'S')) {
            for (prefix, first, count) in
                [("KC0", 128, 32), ("KC1", 160, 32), ("C", 256, 256), ("R", 0, 128), ("SEL", 0, 512)]
            {
                if let Some((number, rel)) = indexed(body, prefix, index) {
                    if number >= count {
                        return Err(wrong(token, format!("{prefix} goes from 0 to {}", count - 1)));
                    }
                    return raw(first + number, rel, Some(chan.ok_or_else(fault)?));
                }
            }
        }
        let plain = body.strip_prefix('(').and_then(|body| body.strip_suffix(')')).unwrap_or(body);
        if let Some((selector, _)) = INLINE.iter().find(|(_, name)| *name == plain) {
            return raw(*selector, false, chan);
        }
        if body == "PV" {
            return raw(254, false, Some(chan.ok_or_else(fault)?));
        }
        let value = if plain.len() < body.len() {
            bracketed_literal(plain, token).ok_or_else(fault)??
        } else {
            literal(plain).ok_or_else(fault)?
        };
        if negative != 0 && body.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong(token, "a minus sign before an integer flips its highest bit")
                .help(format!("for the integer write (-{body}), for the float -{body}.0f")));
        }
        match chan {
            Some(chan) => self.literal(chan, value, token)?,
            None => self.group.loose.push((place.0, place.1, value, token.span)),
        }
        raw(LITERAL, false, chan)
    }

    /// Puts a literal of the group into its component.
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

    /// Ends the group: LAST, literals, and into the clause with it.
    pub(super) fn close_group(&mut self) -> Parse<()> {
        let mut group = std::mem::take(&mut self.group);
        let Some(last) = group.words.last_mut() else { return Ok(()) };
        last[0] |= 1 << 31;
        for (inst, place, value, span) in group.loose {
            let same = |literal: &Option<u32>| *literal == Some(value);
            let chan = group
                .literals
                .iter()
                .position(same)
                .or_else(|| group.literals.iter().position(Option::is_none));
            let chan = chan.ok_or_else(|| Diagnostic::error(span, "a group has four literals at most"))?;
            group.literals[chan] = Some(value);
            let (word, shift) = [(0, 10), (0, 23), (1, 10)][place];
            if let Some(words) = group.words.get_mut(inst) {
                words[word] |= (chan as u32) << shift;
            }
        }
        let pairs = literal_pairs(&group.words);
        if let Some(cf) = self.cf.last_mut() {
            cf.body.extend(group.words.iter().flatten());
            cf.body.extend(group.literals.iter().take(2 * pairs).map(|literal| literal.unwrap_or(0)));
        }
        Ok(())
    }
}
