//! Parses control-flow lines: instructions, clauses and exports.

use reconverge_isa::source::{parse_number, suggest};

use super::super::CHANS;
use super::super::attr::{self, Attr};
use super::super::dis::export_kinds;
use super::amd::{self, Dialect};
use super::lex::{Parse, Token, call, number, wrong};
use super::operand::{attribute, indexed, select_of, select_or, usual};
use super::{Asm, count_field, most_in_clause};
use crate::chip::Family;
use crate::words::{AluForm, CfInst, ExportInst};

impl Asm<'_> {
    pub(super) fn control(&mut self, head: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        let name = amd::control(head.text.trim_end_matches(':'));
        let family = self.chip.family;
        let unassigned = |prefix: &str, max: u64| {
            name.strip_prefix(prefix)
                .and_then(parse_number)
                .filter(|value| *value <= max)
                .map(|value| value as u32)
        };
        let form = AluForm::ALL.iter().find(|form| form.name() == name).map(|form| *form as u32);
        if let Some(form) = form.or_else(|| unassigned("ALU_", 15).filter(|form| *form > 7)) {
            let bit_25 = &attr::ALU_BIT_25[usize::from(family == Family::R700)];
            return self.fields(rest, [0, form << 26], &[std::slice::from_ref(bit_25), attr::CF_ALU]);
        }
        if let Some(inst) = ExportInst::ALL.iter().find(|inst| inst.name() == name) {
            return self.export(*inst, head, rest);
        }
        if let Some((inst, kind)) = amd::memory(name) {
            return self.amd_memory(inst, kind, head, rest);
        }
        let inst = CfInst::ALL.iter().find(|inst| inst.name() == name).map(|inst| *inst as u32);
        let Some(inst) = inst.or_else(|| unassigned("CF_", 63)) else {
            if let [letter, b':'] = head.text.as_bytes()
                && letter.is_ascii_alphabetic()
            {
                return Err(wrong(head, format!("`{}` is not a slot of an ALU group", head.text))
                    .help("expected x:, y:, z:, w: or t:"));
            }
            let known = CfInst::ALL.iter().map(|inst| inst.name());
            let known = known.chain(ExportInst::ALL.iter().map(|inst| inst.name()));
            let known = known.chain(AluForm::ALL.iter().map(|form| form.name()));
            return Err(wrong(head, "unknown control-flow instruction").help(suggest(name, known)));
        };
        self.fields(rest, [0, inst << 23], &[attr::CF])
    }

    /// Parses the ADDR, CNT, KCACHE and attributes of the last control-flow word.
    pub(super) fn fields(
        &mut self,
        rest: &[Token<'_>],
        mut words: [u32; 2],
        tables: &[&[Attr]],
    ) -> Parse<()> {
        let family = self.chip.family;
        let alu = words[1] >> 29 & 1 != 0;
        usual(tables, &mut words);
        let (mut placed, mut counted, mut label) = (false, false, None);
        for &token in rest {
            let (name, inner) = call(token);
            match (name, inner) {
                // In AMD's text, the parentheses of ADDR or CNT are empty if the user must fill in the value.
                ("ADDR" | "CNT", Some(value)) if value.text.is_empty() => {}
                ("ADDR" | "FAIL_JUMP_ADDR" | "PASS_JUMP_ADDR", Some(value)) => {
                    placed = true;
                    match value.text.strip_prefix('@') {
                        Some(target) => label = Some((target.to_owned(), value.span)),
                        None => words[0] |= number(value, if alu { 0x3f_ffff } else { u32::MAX })?,
                    }
                }
                ("CNT", Some(value)) => {
                    counted = true;
                    let count = number(value, most_in_clause(alu, family))?
                        .checked_sub(1)
                        .ok_or_else(|| wrong(value, "a count is at least 1"))?;
                    words[1] |= count_field(count, alu);
                }
                ("KCACHE0" | "KCACHE1", Some(value)) if alu => {
                    let (bank, line, mode) = kcache(value)?;
                    if name == "KCACHE0" {
                        words[0] |= bank << 22 | mode << 30;
                        words[1] |= line << 2;
                    } else {
                        words[0] |= bank << 26;
                        words[1] |= mode | line << 10;
                    }
                }
                _ => attribute(token, tables, &mut words, &["ADDR(…)", "CNT(…)"])?,
            }
        }
        if let Some(cf) = self.cf.last_mut() {
            (cf.words, cf.placed, cf.counted, cf.label) = (words, placed, counted, label);
        }
        Ok(())
    }

    pub(super) fn export(&mut self, inst: ExportInst, head: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        let swizzle = matches!(inst, ExportInst::EXPORT | ExportInst::EXPORT_DONE);
        let [target, data, rest @ ..] = rest else {
            return Err(wrong(head, "a target and a register were expected")
                .help("as in `EXPORT_DONE: PIXEL[0], R0.xyzw`"));
        };
        let kinds = export_kinds(swizzle, self.chip.family);
        let (kind, base) = target.text.split_once('[').unwrap_or((target.text, ""));
        let (code, base) = match kinds.iter().position(|known| *known == kind) {
            Some(code) => {
                (code as u32, number(Token { text: base.trim_end_matches(']'), ..*target }, 0x1fff)?)
            }
            None if swizzle && let Some(found) = amd::target(target.text) => found,
            None if !swizzle && let Some((name, inner)) = target.text.split_once('(') => {
                return self.decaf_memory(inst, name, inner.trim_end_matches(')'), [*target, *data], rest);
            }
            None => return Err(wrong(*target, "unknown kind of export").help(suggest(kind, kinds))),
        };
        let (register, select) = match data.text.rsplit_once('.') {
            Some((register, select)) if !select.contains(']') => (register, select),
            _ => (data.text, "xyzw"),
        };
        let found = indexed(register, "R", &mut None).filter(|(gpr, _)| *gpr < 128);
        let (gpr, rel) = found.ok_or_else(|| wrong(*data, "a register R0 to R127 was expected"))?;
        let mut words = [base | code << 13 | gpr << 15 | u32::from(rel) << 22, (inst as u32) << 23];
        let table = if swizzle {
            words[1] |= match self.dialect {
                Dialect::Own => select_of(select, *data)?,
                Dialect::Amd | Dialect::Latte => select_or(select, "0001", *data)?,
            };
            attr::EXPORT
        } else {
            for (chan, letter) in select.chars().enumerate() {
                match CHANS.find(letter) {
                    Some(at) if at == chan => words[1] |= 1 << (12 + chan),
                    None if letter == '_' && chan < 4 => {}
                    Some(_) | None => {
                        return Err(wrong(*data, "a component mask is written in order, as x_zw"));
                    }
                }
            }
            attr::MEMORY
        };
        self.memory_attributes(words, table, rest)
    }

    /// Parses the attributes at the end of an export.
    fn memory_attributes(&mut self, mut words: [u32; 2], table: &[Attr], rest: &[Token<'_>]) -> Parse<()> {
        usual(&[table], &mut words);
        for &token in rest {
            attribute(token, &[table], &mut words, &[])?;
        }
        if let Some(cf) = self.cf.last_mut() {
            cf.words = words;
        }
        Ok(())
    }
}

impl Asm<'_> {
    /// Parses a memory export in the form of AMD's disassemblers: `MEM_EXPORT_WRITE_IND: DWORD_PTR[3+R1.x], R0.xy__,
    /// ARRAY_SIZE(4) …`.
    fn amd_memory(&mut self, inst: ExportInst, kind: &str, head: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        let kinds = export_kinds(false, self.chip.family);
        let Some(code) = kinds.iter().position(|known| *known == kind) else {
            return Err(wrong(head, "unknown kind of memory access").help(suggest(kind, kinds)));
        };
        let [target, data, rest @ ..] = rest else {
            return Err(wrong(head, "a pointer and a register were expected")
                .help("as in `MEM_SCRATCH_WRITE: VEC_PTR[0], R0.xyzw`"));
        };
        let inner = ["VEC_PTR[", "DWORD_PTR[", "["]
            .iter()
            .find_map(|name| target.text.strip_prefix(name)?.strip_suffix(']'));
        let inner =
            inner.ok_or_else(|| wrong(*target, "a pointer was expected").help("as in VEC_PTR[0+R1.x]"))?;
        self.memory_access(inst, code as u32, inner, 1, [*target, *data], rest)
    }

    /// Parses a memory export in the form that decaf's disassembler prints: `WRITE(32 + R1), R0.xy__ ARRAY_SIZE(4)`.
    /// The base is a number of bytes or dwords.
    fn decaf_memory(
        &mut self,
        inst: ExportInst,
        name: &str,
        inner: &str,
        operands: [Token<'_>; 2],
        rest: &[Token<'_>],
    ) -> Parse<()> {
        let indexed = u32::from(inner.contains('+'));
        let code = match name.trim() {
            "WRITE" => indexed,
            "READ" => 2 | indexed,
            _ => {
                let kinds = export_kinds(false, self.chip.family);
                return Err(wrong(operands[0], "unknown kind of export").help(suggest(name, kinds)));
            }
        };
        let unit = if matches!(inst, ExportInst::MEM_SCRATCH | ExportInst::MEM_REDUCTION) { 16 } else { 4 };
        self.memory_access(inst, code, inner, unit, operands, rest)
    }

    /// Parses a memory access to `base` or `base + Rn.x`. The base must be a multiple of `unit`. ARRAY_BASE is the base
    /// divided by `unit`.
    fn memory_access(
        &mut self,
        inst: ExportInst,
        code: u32,
        place: &str,
        unit: u32,
        [target, data]: [Token<'_>; 2],
        rest: &[Token<'_>],
    ) -> Parse<()> {
        let (base, by) = place.split_once('+').map_or((place, None), |(base, by)| (base, Some(by.trim())));
        let base = number(Token { text: base.trim(), ..target }, 0x1fff * unit)?;
        if !base.is_multiple_of(unit) {
            return Err(wrong(target, format!("a multiple of {unit} was expected")));
        }
        let index = match by {
            None => 0,
            Some(by) => {
                let register = by.strip_suffix(".x").unwrap_or(by);
                let gpr = register.strip_prefix('R').and_then(parse_number).filter(|gpr| *gpr < 128);
                gpr.ok_or_else(|| wrong(target, "an index R0.x to R127.x was expected"))? as u32
            }
        };
        let (register, mask) = match data.text.rsplit_once('.') {
            Some((register, mask)) if !mask.contains(']') => (register, mask),
            _ => (data.text, "xyzw"),
        };
        let found = indexed(register, "R", &mut None).filter(|(gpr, _)| *gpr < 128);
        let (gpr, rel) = found.ok_or_else(|| wrong(data, "a register R0 to R127 was expected"))?;
        let mut words = [
            (base / unit) | code << 13 | gpr << 15 | u32::from(rel) << 22 | index << 23,
            (inst as u32) << 23,
        ];
        for (chan, letter) in mask.chars().enumerate() {
            match CHANS.find(letter) {
                Some(at) if at == chan => words[1] |= 1 << (12 + chan),
                None if letter == '_' && chan < 4 => {}
                Some(_) | None => return Err(wrong(data, "a component mask is written in order, as x_zw")),
            }
        }
        self.memory_attributes(words, attr::MEMORY, rest)
    }
}

/// Parses `CBb:first-last` into bank, line and mode.
fn kcache(token: Token<'_>) -> Parse<(u32, u32, u32)> {
    let fault = || wrong(token, "a window of constants was expected").help("as in CB0:0-15 or CB1:32-63");
    let (bank, range) =
        token.text.strip_prefix("CB").and_then(|rest| rest.split_once(':')).ok_or_else(fault)?;
    let (first, last) = range.split_once('-').ok_or_else(fault)?;
    let (bank, first, last) = (bank.trim(), first.trim(), last.trim());
    // In AMD's text, an index is part of both ends of the range.
    let (first, last, by_loop) = match (first.strip_prefix("AL+"), last.strip_prefix("AL+")) {
        (Some(first), Some(last)) => (first, last, "aL"),
        _ => (first, last, ""),
    };
    let (last, suffix) = last.split_once('+').unwrap_or((last, by_loop));
    let bank = parse_number(bank).filter(|bank| *bank < 16).ok_or_else(fault)? as u32;
    let first =
        parse_number(first).filter(|first| first % 16 == 0 && *first < 4096).ok_or_else(fault)? as u32;
    let count =
        parse_number(last).and_then(|last| (last + 1).checked_sub(u64::from(first))).ok_or_else(fault)?;
    let mode = match (count, suffix) {
        (16, "OFF") => 0,
        (16, "") => 1,
        (32, "") => 2,
        (32, "aL") => 3,
        _ => return Err(fault()),
    };
    Ok((bank, first / 16, mode))
}
