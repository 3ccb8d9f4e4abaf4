//! Parses lines of TEX and VTX clauses.

use reconverge_isa::source::{parse_number, suggest};

use super::super::attr::{self, Attr};
use super::super::dis::mem_attrs;
use super::Asm;
use super::amd::{self, Dialect};
use super::lex::{Parse, Token, chan_of, wrong};
use super::operand::{attribute, indexed, select_of, select_or, usual};
use crate::chip::Family;
use crate::words::{MemOp, TexInst};

impl Asm<'_> {
    pub(super) fn fetch(&mut self, head: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        let family = self.chip.family;
        let count = rest.iter().take_while(|token| token.comma).count() + 1;
        let (operands, attributes) = rest.split_at(count.min(rest.len()));
        let want = |index: usize| {
            operands
                .get(index)
                .copied()
                .ok_or_else(|| wrong(head, format!("{} needs more operands", head.text)))
        };
        let register = |token: Token<'_>| -> Parse<(u32, String)> {
            let (body, tail) = token
                .text
                .rsplit_once('.')
                .filter(|(_, tail)| !tail.contains(']'))
                .unwrap_or((token.text, ""));
            // If the destination is `____`, the instruction writes no register.
            if !body.is_empty() && body.bytes().all(|byte| byte == b'_') {
                return Ok((0, "____".to_owned()));
            }
            let (gpr, rel) = indexed(body, "R", &mut None)
                .filter(|(gpr, _)| *gpr < 128)
                .ok_or_else(|| wrong(token, "a register R0 to R127 was expected"))?;
            Ok((gpr | u32::from(rel) << 7, tail.to_owned()))
        };
        let own = self.dialect == Dialect::Own;
        // A register without selects means all four components. If a register has fewer than four selects,
        // latte-assembler adds the missing selects.
        let select_of = |text: &str, token: Token<'_>| match text.len() {
            1..=3 if own => select_of(text, token),
            _ => select_or(text, "xyzw", token),
        };
        let id = |token: Token<'_>, prefix: &str, max: u64| {
            let found = token.text.strip_prefix(prefix).and_then(parse_number).filter(|value| *value <= max);
            found
                .map(|value| value as u32)
                .ok_or_else(|| wrong(token, format!("{prefix}0 to {prefix}{max} was expected")))
        };
        // Other tools name buffers with the prefixes fc, vb and t.
        let buffer = |token: Token<'_>| {
            let found = ["fc", "vb", "t"].iter().find_map(|prefix| token.text.strip_prefix(prefix));
            match found.and_then(parse_number) {
                Some(number @ 0..256) => Ok(number as u32),
                _ => id(token, "b", 255),
            }
        };
        let one = |text: &str, token: Token<'_>| {
            chan_of(if text.is_empty() { "x" } else { text })
                .ok_or_else(|| wrong(token, "one component was expected"))
        };
        let mut words = [0_u32; 4];
        let mut tables: Vec<&[Attr]> = Vec::new();
        let name = amd::texture(head.text);
        let tex = TexInst::ALL.iter().find(|inst| inst.name() == name).map(|inst| *inst as u32);
        // latte-assembler accepts the following instructions with the operands of a texture instruction.
        let tex = tex.or_else(|| {
            let raw = ["VTX_FETCH", "VTX_SEMANTIC", "MEM"].iter().position(|name| *name == head.text)?;
            (operands.len() == 4).then_some(raw as u32)
        });
        let vertex = match head.text {
            "FETCH" | "VFETCH" | "VTX_FETCH" => Some(0),
            "SEMANTIC" | "VTX_SEMANTIC" | "VFETCH_SEMANTIC" => Some(1),
            _ => None,
        };
        let mem = MemOp::ALL.iter().find(|op| op.name() == head.text).map(|op| *op as u32);
        let mem = mem.or_else(|| {
            head.text.strip_prefix("MEM_").and_then(parse_number).filter(|op| *op < 8).map(|op| op as u32)
        });
        if let Some(inst) = tex {
            let (dst, select) = register(want(0)?)?;
            let (src, coords) = register(want(1)?)?;
            words[0] = inst | src << 16 | id(want(2)?, "t", 255)? << 8;
            words[1] = dst | select_of(&select, want(0)?)? << 9;
            words[2] = select_of(&coords, want(1)?)? << 20 | id(want(3)?, "s", 31)? << 15;
            tables.push(attr::TEX);
            if family == Family::R700 {
                tables.push(std::slice::from_ref(&attr::TEX_ALT));
            }
        } else if let Some(inst) = vertex {
            let target = want(0)?;
            let select;
            let semantic = target.text.strip_prefix("SEM[").and_then(|rest| rest.split_once(']'));
            if inst == 0 || target.text.starts_with('_') {
                let (dst, tail) = register(target)?;
                words[0] = inst;
                words[1] = dst;
                select = tail;
            } else if let Some((number, tail)) = semantic {
                words[0] = 1;
                words[1] = super::lex::number(Token { text: number, ..target }, 255)?;
                select = tail.trim_start_matches('.').to_owned();
            } else {
                let (name, tail) = target.text.split_once('.').unwrap_or((target.text, ""));
                words[0] = 1;
                words[1] = id(Token { text: name, ..target }, "S", 255)?;
                select = tail.to_owned();
            }
            words[1] |= select_of(&select, target)? << 9;
            let (src, chan) = register(want(1)?)?;
            words[0] |= src << 16 | one(&chan, want(1)?)? << 24 | buffer(want(2)?)? << 8;
            tables.push(attr::VTX);
            if family == Family::R700 {
                tables.push(std::slice::from_ref(&attr::VTX_ALT));
            }
        } else if let Some(op) = mem {
            words[0] = 2 | op << 8;
            if matches!(op, 4 | 6) {
                words[0] |= register(want(0)?)?.0 << 16;
            } else {
                let (dst, select) = register(want(0)?)?;
                let (src, chan) = register(want(1)?)?;
                words[0] |= src << 16 | one(&chan, want(1)?)? << 24;
                words[1] = dst | select_of(&select, want(0)?)? << 9;
            }
            tables.push(mem_attrs(op));
        } else {
            let known =
                TexInst::ALL.iter().map(|inst| inst.name()).chain(MemOp::ALL.iter().map(|op| op.name()));
            return Err(wrong(head, "unknown instruction")
                .help(suggest(head.text, known.chain(["FETCH", "SEMANTIC"]))));
        }
        usual(&tables, &mut words);
        for &token in attributes {
            attribute(token, &tables, &mut words, &[])?;
        }
        self.body(head, false)?.extend(words);
        Ok(())
    }
}
