//! Prints words as AMD's assembly text, in the form of AMD's disassemblers. Sources: AMD, "R600/R700/Evergreen Assembly
//! Language Format"; decaf-emu's disassembler of Latte. For control flow, decaf-emu uses the names of the manual.
//!
//! AMD's text cannot express some data. The disassembler prints such data in the syntax of this project. So the
//! assembler can convert the whole text back to the same words.

use reconverge_isa::FieldValue;

use super::super::attr::{self, AMD_BANKS, AMD_TEX, Attr};
use super::super::{AMD_OPERATIONS, INLINE, LITERAL, alu_row, is_op3, op2_shift};
use super::{Dis, export_kinds, fetch_count, is_fetch_clause};
use crate::chip::Family;
use crate::words::{CfInst, ExportInst, TexInst};

/// Attributes with different names in AMD's text and in this project. A row has the name in this project and then AMD's
/// name.
const RENAMED: [(&str, &str); 9] = [
    ("COND", "CND"),
    ("CALL_CNT", "CALL_COUNT"),
    ("BURST_CNT", "BURSTCNT"),
    ("CONST_FIELDS", "USE_CONST_FIELDS"),
    ("NUM", "NUM_FORMAT"),
    ("TYPE", "FETCH_TYPE"),
    ("ENDIAN", "ENDIAN_SWAP"),
    ("NO_STRIDE", "CONST_BUF_NO_STRIDE"),
    ("BC_FRAC", "BC_FRAC_MODE"),
];

/// Inline constants of the chip, by selector.
const BUILT_IN: [(u32, &str); 3] = [(248, "0.0f"), (249, "1.0f"), (252, "0.5f")];

impl Dis<'_> {
    /// Works like [`Dis::attrs`], but prints AMD's name of a value if AMD has a name for the value.
    fn amd_attrs(&mut self, table: &[Attr], words: &[u32], owned: &mut [u32]) {
        for attr in table {
            owned[attr.word] |= attr.mask();
            let value = attr.get(words);
            if value == attr.usual {
                continue;
            }
            let named = attr.names.get(value as usize).filter(|name| !name.is_empty());
            let plain = attr.names.is_empty() || named.is_some();
            let renamed = RENAMED.iter().find(|(ours, _)| *ours == attr.name).filter(|_| plain);
            self.push(" ");
            self.push(renamed.map_or(attr.name, |(_, theirs)| *theirs));
            if attr.bits > 1 {
                self.push("(");
                match named {
                    Some(name) => self.push(name),
                    None => self.number(value + attr.add),
                }
                self.push(")");
            }
        }
    }

    pub(super) fn amd_cf_plain(&mut self, words: [u32; 2], last: bool) {
        let [word0, word1] = words;
        let number = word1 >> 23 & 0x7f;
        let inst = CfInst::from_bits(number, 7);
        match inst {
            Some(inst) => self.push(inst.name()),
            None => {
                self.push("CF_");
                self.number(number);
            }
        }
        let clause = is_fetch_clause(word1);
        if clause || inst.is_none() {
            self.push(":");
        }
        let jumps = inst.is_some_and(|inst| crate::control::cf(inst).jumps);
        if word0 != 0 || clause || jumps {
            use CfInst::*;
            self.push(match inst {
                Some(LOOP_START | LOOP_START_DX10 | LOOP_START_NO_AL) => " FAIL_JUMP_ADDR(",
                Some(LOOP_END) => " PASS_JUMP_ADDR(",
                _ => " ADDR(",
            });
            self.number(word0);
            self.push(")");
        }
        let count = fetch_count(word1, self.family);
        if clause || count != 0 {
            self.push(" CNT(");
            self.number(count + 1);
            self.push(")");
        }
        let mut owned = [!0, 0x7f << 23 | 7 << 10];
        if self.family == Family::R700 {
            owned[1] |= 1 << 19;
        }
        self.amd_end(&words, attr::CF, last, &mut owned);
    }

    /// Prints the attributes of a control-flow instruction. In the last instruction, END_OF_PROGRAM is not an
    /// attribute. The text shows this END_OF_PROGRAM as a separate line.
    fn amd_end(&mut self, words: &[u32; 2], table: &[Attr], last: bool, owned: &mut [u32; 2]) {
        let shown = if last { [words[0], words[1] & !(1 << 21)] } else { *words };
        self.amd_attrs(table, &shown, owned);
        self.bits(words, owned);
    }

    pub(super) fn amd_export(&mut self, inst: ExportInst, words: [u32; 2], last: bool) {
        let [word0, word1] = words;
        let (kind, base, gpr) = ((word0 >> 13 & 3) as usize, word0 & 0x1fff, word0 >> 15 & 0x7f);
        let swizzle = matches!(inst, ExportInst::EXPORT | ExportInst::EXPORT_DONE);
        let mut owned = [0x007f_ffff, 0x7f << 23];
        if !swizzle {
            self.push(inst.name());
            self.push("_");
            self.push(export_kinds(false, self.family)[kind]);
            let vectors = matches!(inst, ExportInst::MEM_SCRATCH | ExportInst::MEM_REDUCTION);
            self.push(if vectors { ": VEC_PTR[" } else { ": DWORD_PTR[" });
            self.number(base);
            if kind & 1 != 0 {
                self.push("+R");
                self.number(word0 >> 23 & 0x7f);
                self.push(".x");
                owned[0] |= 0x7f << 23;
            }
            self.push("], ");
            self.amd_exported(gpr, word0);
            let mask = word1 >> 12 & 15;
            if mask != 15 {
                self.push(".");
                for chan in 0..4 {
                    self.push(if mask >> chan & 1 != 0 { &super::CHANS[chan..=chan] } else { "_" });
                }
            }
            self.push(",");
            owned[1] |= 0xf000;
            let shown = [word0 & !owned[0], word1];
            self.amd_end(&shown, attr::MEMORY, last, &mut owned);
            return;
        }
        self.push(if inst == ExportInst::EXPORT { "EXP: " } else { "EXP_DONE: " });
        let target = match kind {
            0 => Some(("PIX", base)),
            1 => base.checked_sub(60).map(|place| ("POS", place)),
            2 => Some(("PARAM", base)),
            _ => None,
        };
        match target {
            Some((name, place)) => {
                self.push(name);
                self.number(place);
            }
            None => {
                self.push(export_kinds(true, self.family)[kind]);
                self.push("[");
                self.number(base);
                self.push("]");
            }
        }
        self.push(", ");
        self.amd_exported(gpr, word0);
        self.amd_select(word1);
        owned[1] |= 0xfff;
        let shown = [word0 & !owned[0], word1];
        self.amd_end(&shown, attr::EXPORT, last, &mut owned);
    }

    /// Prints the register of an export.
    fn amd_exported(&mut self, gpr: u32, word0: u32) {
        let rel = word0 >> 22 & 1 != 0;
        self.push(if rel { "R[AL + " } else { "R" });
        self.number(gpr);
        self.push(if rel { "]" } else { "" });
    }

    /// Prints the selects. Prints nothing if the selects are x, y, z and w in this order.
    fn amd_select(&mut self, raw: u32) {
        if raw & 0xfff != 0o3210 {
            self.push(".");
            self.select(raw);
        }
    }

    pub(super) fn amd_alu(&mut self, words: [u32; 2], slot: u8, literals: &[u32; 4], shown: &mut u8) {
        let [word0, word1] = words;
        let op3 = is_op3(word1);
        let row = alu_row(word1, self.family);
        let omod = if op3 { 0 } else { attr::op2(self.family)[0].get(&words) };
        let name = match row {
            Some(row) => {
                let theirs = AMD_OPERATIONS.iter().find(|(_, ours)| *ours == row.name);
                theirs.map_or(row.name, |(theirs, _)| *theirs).to_owned()
            }
            None if op3 => format!("OP3_{}", word1 >> 13 & 31),
            None => format!("OP2_{}", (word1 & 0x3ffff) >> op2_shift(self.family)),
        };
        let suffix = ["", "*2", "*4", "/2"][omod as usize];
        self.push(&name);
        self.push(suffix);
        for _ in name.len() + suffix.len()..11 {
            self.push(" ");
        }
        self.push(" ");
        let index = word0 >> 26 & 7;
        // The disassembler does not print LAST, because the text shows where the group ends.
        let mut owned = [1 << 31, 0x7fe0_0000];
        let gpr = word1 >> 21 & 0x7f;
        let dst_rel = word1 >> 28 & 1 != 0;
        let chan = word1 >> 29 & 3;
        let written = op3 || word1 >> 4 & 1 != 0;
        let implied = if slot < 4 { u32::from(slot) } else { 0 };
        if !written && gpr == 0 && !dst_rel && chan == implied {
            self.push("____");
        } else {
            if !written {
                self.push("_");
            }
            self.amd_register(gpr, dst_rel, index);
            self.chan(chan);
        }
        let mut related = dst_rel;
        let encoding = if op3 {
            owned[1] |= 31 << 13;
            attr::OP3
        } else {
            owned[1] |= 1 << 4 | (0x3ffff >> op2_shift(self.family)) << op2_shift(self.family);
            // The text shows OMOD as a part of the operation's name.
            owned[1] |= attr::op2(self.family)[0].mask();
            &attr::op2(self.family)[1..]
        };
        let sources = row.map_or(if op3 { 3 } else { 2 }, |row| usize::from(row.sources));
        for source in 0..sources {
            let raw = [word0, word0 >> 13, word1][source];
            let abs = !op3 && source < 2 && word1 >> source & 1 != 0;
            self.push(", ");
            self.amd_source(raw & 0x1fff, abs, index, literals, shown);
            related |= raw >> 9 & 1 != 0;
            match source {
                0 => owned[0] |= 0x1fff,
                1 => owned[0] |= 0x1fff << 13,
                _ => owned[1] |= 0x1fff,
            }
            if !op3 && source < 2 {
                owned[1] |= 1 << source;
            }
        }
        if related {
            owned[0] |= 7 << 26;
        }
        let masked = [words[0] & !owned[0], words[1] & !owned[1]];
        if masked == [0, 0] {
            return;
        }
        let bank = word1 >> 18 & 7;
        let trans = slot == 4;
        let named_bank = bank != 0 && bank < if trans { 4 } else { 6 };
        let pred = word0 >> 29 & 3;
        owned[0] |= if pred >= 2 { 3 << 29 } else { 0 };
        owned[1] |= if named_bank { 7 << 18 } else { 0 };
        let masked = [words[0] & !owned[0], words[1] & !owned[1]];
        self.amd_attrs(encoding, &masked, &mut owned);
        if named_bank {
            self.push(" ");
            self.push(AMD_BANKS[bank as usize + if trans { 6 } else { 0 }]);
        }
        self.push(["", "", " PRED_SEL_ZERO", " PRED_SEL_ONE"][pred as usize]);
        self.unused_source(word0, sources == 1 && row.is_some() && !op3, &mut owned);
        self.bits(&words, &owned);
    }

    fn amd_register(&mut self, gpr: u32, rel: bool, index: u32) {
        match 127_u32.checked_sub(gpr).filter(|number| *number < 4) {
            Some(number) => {
                self.push("T");
                self.number(number);
            }
            None => {
                self.push("R");
                self.number(gpr);
            }
        }
        self.amd_index(rel, index);
    }

    fn amd_index(&mut self, rel: bool, index: u32) {
        if rel {
            self.push("[");
            self.push(if index == 4 { "AL" } else { super::INDEXES[index as usize] });
            self.push("]");
        }
    }

    /// Prints one operand. In `raw`, the selector is in bits 8:0, REL in bit 9, CHAN in bits 11:10, and NEG in bit 12.
    fn amd_source(&mut self, raw: u32, abs: bool, index: u32, literals: &[u32; 4], shown: &mut u8) {
        let (selector, rel, chan) = (raw & 0x1ff, raw >> 9 & 1 != 0, raw >> 10 & 3);
        let group = self.group.checked_sub(1);
        match selector {
            0..=127 | 256.. => {}
            LITERAL | 254 | 255 if !rel => {}
            _ if BUILT_IN.iter().any(|(known, _)| *known == selector) && !rel => {}
            // In both syntaxes, constants in windows, integers and unnamed selectors have the same text.
            _ => return self.source(raw, abs, index, literals, shown),
        }
        if raw >> 12 & 1 != 0 {
            self.push("-");
        }
        let bar = if abs { "|" } else { "" };
        self.push(bar);
        let mut whole = true;
        match selector {
            0..=127 => self.amd_register(selector, rel, index),
            256.. => {
                self.push("C");
                self.number(selector - 256);
                self.amd_index(rel, index);
            }
            LITERAL => {
                let value = literals[chan as usize];
                let float = f32::from_bits(value);
                *shown |= 1 << chan;
                self.push(&format!("(0x{value:08X}, {float}{})", if float.is_finite() { "f" } else { "" }));
            }
            254 => {
                self.push("PV");
                group.into_iter().for_each(|group| self.number(group));
            }
            255 => {
                self.push("PS");
                group.into_iter().for_each(|group| self.number(group));
                whole = chan != 0;
            }
            _ => {
                let name = BUILT_IN.iter().find(|(known, _)| *known == selector);
                self.push(name.map_or(INLINE[0].1, |(_, name)| *name));
                whole = chan != 0;
            }
        }
        if whole {
            self.chan(chan);
        }
        self.push(bar);
    }

    pub(super) fn amd_fetch(&mut self, words: [u32; 4]) {
        let number = words[0] & 31;
        if number == 2 {
            return self.fetch(words);
        }
        let mut owned = [0x1f, 0, 0, 0];
        let (src, src_rel) = (words[0] >> 16 & 0x7f, words[0] >> 23 & 1 != 0);
        let (dst, dst_rel) = (words[1] & 0x7f, words[1] >> 7 & 1 != 0);
        let select = words[1] >> 9 & 0xfff;
        let nothing = select == 0o7777 && words[1] & 0xff == 0;
        owned[1] |= 0xff | 0xfff << 9;
        if number < 2 {
            self.push(if number == 0 { "VFETCH " } else { "SEMANTIC " });
            if number == 1 {
                self.push("SEM[");
                self.number(words[1] & 0xff);
                self.push("].");
                self.select(select);
            } else if nothing {
                self.push("____");
            } else {
                self.amd_fetched(dst, dst_rel);
                self.amd_select(select);
            }
            self.push(", ");
            self.amd_fetched(src, src_rel);
            self.chan(words[0] >> 24);
            self.push(", fc");
            self.number(words[0] >> 8 & 0xff);
            owned[0] |= 0x03ff_ff00;
            self.amd_attrs(attr::VTX, &words, &mut owned);
            if self.family == Family::R700 {
                self.amd_attrs(&[attr::VTX_ALT], &words, &mut owned);
            }
            self.bits(&words, &owned);
            return;
        }
        match TexInst::from_bits(number, 5) {
            Some(inst) => {
                let theirs = AMD_TEX.iter().find(|(_, ours)| *ours == inst.name());
                self.push(theirs.map_or(inst.name(), |(theirs, _)| *theirs));
            }
            None => {
                self.push("TEX_");
                self.number(number);
            }
        }
        self.push(" ");
        if nothing {
            self.push("____");
        } else {
            self.amd_fetched(dst, dst_rel);
            self.amd_select(select);
        }
        self.push(", ");
        self.amd_fetched(src, src_rel);
        self.amd_select(words[2] >> 20);
        self.push(", t");
        self.number(words[0] >> 8 & 0xff);
        self.push(", s");
        self.number(words[2] >> 15 & 31);
        owned[0] |= 0x00ff_ff00;
        owned[2] |= 0xffff_8000;
        let normal = words[1] >> 28;
        if normal != 15 {
            self.push(" UNNORM(");
            for (place, letter) in ["X", "Y", "Z", "W"].into_iter().enumerate() {
                self.push(if normal >> place & 1 == 0 { letter } else { "" });
            }
            self.push(")");
        }
        let signed = |raw: u32, bits: u32| (raw << (32 - bits)) as i32 >> (32 - bits);
        let bias = words[1] >> 21 & 0x7f;
        if bias != 0 {
            self.push(&format!(" LOD({})", f64::from(signed(bias, 7)) / 8.0));
        }
        for (place, name) in [" XOFFSET(", " YOFFSET(", " ZOFFSET("].into_iter().enumerate() {
            let offset = words[2] >> (5 * place) & 31;
            if offset != 0 {
                self.push(&format!("{name}{})", f64::from(signed(offset, 5)) / 2.0));
            }
        }
        owned[1] |= 15 << 28 | 0x7f << 21;
        owned[2] |= 0x7fff;
        let others: &[&str] = &["BC_FRAC", "WHOLE_QUAD"];
        let others: Vec<Attr> =
            attr::TEX.iter().filter(|attr| others.contains(&attr.name)).copied().collect();
        self.amd_attrs(&others, &words, &mut owned);
        if self.family == Family::R700 {
            self.amd_attrs(&[attr::TEX_ALT], &words, &mut owned);
        }
        self.bits(&words, &owned);
    }

    /// Prints a register of a fetch. The only possible index is aL.
    fn amd_fetched(&mut self, gpr: u32, rel: bool) {
        self.push("R");
        self.number(gpr);
        self.push(if rel { "[AL]" } else { "" });
    }
}
