//! Control-flow lines: instructions, clauses and exports.

use reconverge_isa::source::{parse_number, suggest};

use super::super::CHANS;
use super::super::attr::{self, Attr};
use super::super::dis::export_kinds;
use super::lex::{Parse, Token, call, number, wrong};
use super::operand::{attribute, select_of, usual};
use super::{Asm, count_field, most_in_clause};
use crate::chip::Family;
use crate::words::{AluForm, CfInst, ExportInst};

impl Asm<'_> {
    pub(super) fn control(&mut self, head: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        let name = head.text.trim_end_matches(':');
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
        let inst = CfInst::ALL.iter().find(|inst| inst.name() == name).map(|inst| *inst as u32);
        let Some(inst) = inst.or_else(|| unassigned("CF_", 63)) else {
            let known = CfInst::ALL.iter().map(|inst| inst.name());
            let known = known.chain(ExportInst::ALL.iter().map(|inst| inst.name()));
            let known = known.chain(AluForm::ALL.iter().map(|form| form.name()));
            return Err(wrong(head, "unknown control-flow instruction").help(suggest(name, known)));
        };
        self.fields(rest, [0, inst << 23], &[attr::CF])
    }

    /// ADDR, CNT, KCACHE and attributes of the last control-flow word.
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
                ("ADDR", Some(value)) => {
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
        let Some(code) = kinds.iter().position(|known| *known == kind) else {
            return Err(wrong(*target, "unknown kind of export").help(suggest(kind, kinds)));
        };
        let base = number(Token { text: base.trim_end_matches(']'), ..*target }, 0x1fff)?;
        let (register, select) = data.text.rsplit_once('.').unwrap_or((data.text, "xyzw"));
        let gpr = register.strip_prefix('R').and_then(parse_number).filter(|gpr| *gpr < 128);
        let gpr = gpr.ok_or_else(|| wrong(*data, "a register R0 to R127 was expected"))? as u32;
        let mut words = [base | (code as u32) << 13 | gpr << 15, (inst as u32) << 23];
        let table = if swizzle {
            words[1] |= select_of(select, *data)?;
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

/// `CBb:first-last`: bank, line and mode.
fn kcache(token: Token<'_>) -> Parse<(u32, u32, u32)> {
    let fault = || wrong(token, "a window of constants was expected").help("as in CB0:0-15 or CB1:32-63");
    let (bank, range) =
        token.text.strip_prefix("CB").and_then(|rest| rest.split_once(':')).ok_or_else(fault)?;
    let (first, last) = range.split_once('-').ok_or_else(fault)?;
    let (last, suffix) = last.split_once('+').unwrap_or((last, ""));
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
