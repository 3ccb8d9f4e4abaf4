//! The disassembler: converts words to text.

use std::fmt::{self, Display, Write};

use reconverge_isa::word::{FieldValue, Kind};
use reconverge_isa::{Mark, Program};

use super::construct::{Condition, Jumps, Pop, Statement};
use super::idioms::Idiom;
use super::structure::strays;
use super::syntax::{
    COMPARISONS, OMOD, PREDICATES, RAW_FIELDS, TARGETS, UNUSED_SOURCE, UNUSED_SOURCES, field, field_names,
    letter, modifier, source, tex_letter, word_name,
};
use crate::inst::{self, Alu, Body, Fc, Half, Inst, Operand, Tex, TexRegister, WORDS};
use crate::operations::Operation;
use crate::words::*;

/// Options of the disassembler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Whether a comment with the slot number and the words precedes each instruction.
    pub hex: bool,
    /// Whether the disassembler indents the bodies of flow constructs, and numbers the starts and ends of the
    /// constructs. For the vertex unit, a comment after an instruction describes the flow control at this instruction.
    pub structure: bool,
    /// Whether the disassembler prints the forms of [`IDIOMS`](super::idioms::IDIOMS) by name. The vertex unit does not
    /// have such forms.
    pub idioms: bool,
}

/// Returns the text of a program. The text consists of directives for the state of the program, and of the program's
/// instructions and labels. [`super::assemble`] turns this text into the same program.
pub fn disassemble(program: &Program, listing: Listing) -> String {
    disassemble_marked(program, listing, &mut Vec::new())
}

/// Returns the same text as [`disassemble`]. Also records the position at which the text of each instruction ends.
pub fn disassemble_marked(program: &Program, listing: Listing, marks: &mut Vec<Mark>) -> String {
    let (records, rest) = program.words.as_chunks::<WORDS>();
    let mut out = String::with_capacity(256 * records.len());
    directives(program, STATE, &mut out);
    let offset = program.state("US_CODE_OFFSET").and_then(|raw| CodeOffset::unpack(raw).ok());
    let offset = u32::from(offset.map_or(0, |offset| offset.offset_addr));
    // Addresses in instructions are relative to OFFSET_ADDR.
    let labels = Labels { first: program.base.wrapping_sub(offset), count: records.len() as u32 };
    let targets = labels.targets(records);
    let strays = strays(records.iter());
    // Numbers of the open constructs, outermost first.
    let (mut open, mut constructs) = (Vec::<usize>::new(), 0);
    for index in 0..=records.len() {
        if targets.get(index).copied().unwrap_or(false) {
            let _ = writeln!(out, "L{}:", labels.first.wrapping_add(index as u32));
        }
        let Some(record) = records.get(index) else { continue };
        if listing.hex {
            let words = record.map(|word| format!("{word:08x}")).join(" ");
            let _ = writeln!(out, "; {:3}: {words}", u64::from(program.base) + index as u64);
        }
        let (closes, opens) = if listing.structure { nesting(record) } else { (0, 0) };
        let closed = open.split_off(open.len().saturating_sub(closes));
        let (start, depth) = (out.len(), open.len());
        instruction(record, &labels, (listing.idioms, strays[index]), &mut out);
        if listing.structure {
            let text = out.split_off(start);
            (0..opens).for_each(|_| {
                constructs += 1;
                // An `else` and the matching `if` belong to one construct, so the `else` has the number of the `if`.
                open.push(closed.last().copied().unwrap_or(constructs));
            });
            let label = match (opens, closed.first()) {
                (1.., _) => open.last().map_or(String::new(), |id| format!("  ; #{id}")),
                (0, Some(first)) => format!("  ; end #{first}"),
                (0, None) => String::new(),
            };
            for (line, label) in text.lines().zip([label.as_str(), ""]) {
                let _ = writeln!(out, "{:width$}{line}{label}", "", width = 2 * depth);
            }
        }
        let (address, words) = (program.base.wrapping_add(index as u32), WORDS * index..WORDS * (index + 1));
        marks.push(Mark { end: out.len(), address, words, depth });
    }
    for word in rest {
        let _ = writeln!(out, ".data {word:#010x}");
    }
    out
}

/// The addresses that can have a label. These are the addresses of all records, and the address after the last record.
/// `first` is the address of the first record, and `count` is the number of records.
struct Labels {
    first: u32,
    count: u32,
}

impl Labels {
    /// Returns the index of the record at an address, or `None` if the address cannot have a label.
    fn index(&self, addr: &FcAddr) -> Option<usize> {
        let index = u32::from(addr.jump_addr).wrapping_sub(self.first);
        (!addr.jump_global && index <= self.count).then_some(index as usize)
    }

    fn targets(&self, records: &[[u32; WORDS]]) -> Vec<bool> {
        let mut targets = vec![false; records.len() + 1];
        for record in records {
            if let Ok(Inst { body: Body::Fc(fc), .. }) = inst::decode(record)
                && has_target(&fc)
                && let Some(index) = self.index(&fc.addr)
            {
                targets[index] = true;
            }
        }
        targets
    }

    fn text(&self, addr: &FcAddr) -> String {
        match self.index(addr) {
            Some(_) => format!("L{}", addr.jump_addr),
            None => addr.jump_addr.to_string(),
        }
    }
}

/// Returns whether the disassembler prints JUMP_ADDR. The disassembler prints JUMP_ADDR if the instruction uses
/// JUMP_ADDR, or if JUMP_ADDR is not zero.
fn has_target(fc: &Fc) -> bool {
    let unused = fc.inst.a_op == AOp::POP
        || Statement::recognise(&fc.inst, &fc.addr)
            .is_some_and(|statement| statement.construct.name == "endif");
    fc.addr.jump_addr != 0 || !unused
}

/// Returns the number of constructs that an instruction closes before its line, and then the number of constructs that
/// the instruction opens after its line.
fn nesting(record: &[u32; WORDS]) -> (usize, usize) {
    let Ok(Inst { body: Body::Fc(fc), .. }) = inst::decode(record) else { return (0, 0) };
    match Statement::recognise(&fc.inst, &fc.addr) {
        Some(statement) => match statement.construct.name {
            "if" | "loop" | "rep" => (0, 1),
            "else" => (1, 1),
            "endif" => (usize::from(statement.pop), 0),
            "endloop" | "endrep" => (1, 0),
            _ => (0, 0),
        },
        None => (0, 0),
    }
}

// ---- State

/// Writes the directives of a program: the base, the state registers, and the constants. The names of the registers
/// come from `table`.
pub(crate) fn directives(program: &Program, table: &'static [StateRegister], out: &mut String) {
    if program.base != 0 {
        let _ = writeln!(out, ".base {}", program.base);
    }
    for (name, value) in &program.state {
        let known = named_register(table, name).filter(|(register, _)| value & !register.word.owned == 0);
        if let Some((register, n)) = known
            && register.word.name == FcIntConst::INFO.name
            && let Ok(FcIntConst { kr, kg, kb }) = FcIntConst::unpack(*value)
        {
            let _ = writeln!(out, ".int {n} {kr} {kg} {kb}");
            continue;
        }
        let format = known.map_or(&[][..], |(register, _)| register.word.fields);
        let set = format.iter().filter(|field| format.len() > 1 && field.get(*value) != 0);
        let _ = write!(out, ".state {name}");
        let start = out.len();
        for field in set {
            let _ = write!(out, " {}={}", field.name.to_ascii_uppercase(), value_text(field, *value));
        }
        let _ = if out.len() == start { writeln!(out, " {value:#x}") } else { writeln!(out) };
    }
    constants(program, out);
}

/// Writes the float constants of a program, with one directive per constant.
fn constants(program: &Program, out: &mut String) {
    for block in &program.constants {
        if block.bank != 0 || !block.offset.is_multiple_of(16) || !block.bytes.len().is_multiple_of(16) {
            let _ = writeln!(
                out,
                "; {} bytes of constants at byte {} of bank {} are not float constants and are not shown",
                block.bytes.len(),
                block.offset,
                block.bank
            );
            continue;
        }
        for (index, bytes) in block.bytes.as_chunks::<16>().0.iter().enumerate() {
            let words = bytes.as_chunks::<4>().0.iter().map(|word| number_text(u32::from_le_bytes(*word)));
            let number = block.offset as usize / 16 + index;
            let _ = writeln!(out, ".const {number} {}", words.collect::<Vec<_>>().join(" "));
        }
    }
}

/// Returns a float as a decimal number. If parsing the decimal number would give different bits, the function returns
/// the bits in hexadecimal.
fn number_text(bits: u32) -> String {
    let value = f32::from_bits(bits);
    let text = format!("{value:?}");
    let same = value.is_finite() && text.parse::<f32>().is_ok_and(|back| back.to_bits() == bits);
    if same { text } else { format!("{bits:#010x}") }
}

pub(crate) fn value_text(field: &reconverge_isa::Field, raw: u32) -> impl Display {
    let value = field.get(raw);
    let name = field.name_of(value).filter(|_| field.kind == Kind::Names);
    fmt::from_fn(move |f| match name {
        Some(name) => f.write_str(name),
        None if value < 10 => write!(f, "{value}"),
        None => write!(f, "{value:#x}"),
    })
}

// ---- Instructions

fn instruction(words: &[u32; WORDS], labels: &Labels, (idioms, stray): (bool, bool), out: &mut String) {
    // After the ordinary text, braces contain the fields that the ordinary syntax cannot express.
    let expressed = match inst::decode(words) {
        Ok(Inst { common, body: Body::Alu(alu) }) => alu_text(words, &common, &alu, idioms, out),
        Ok(Inst { common, body: Body::Tex(tex) }) => tex_text(&common, &tex, out),
        Ok(Inst { common, body: Body::Fc(fc) }) => fc_text(&common, &fc, labels, stray, out),
        Err(_) => {
            // Some field has an undefined code, so the disassembler writes every field by name.
            let Some(kind) = InstType::from_bits(words[0] & 3, 2) else { unreachable!("two bits") };
            out.push_str(kind.name());
            let mut expressed = Expressed::new(kind, [kind as u32, 0, 0, 0, 0, 0]);
            if matches!(kind, InstType::ALU | InstType::OUT) {
                expressed.words[1..3].fill(UNUSED_SOURCES);
            }
            braces(words, &expressed, true, out);
            out.push('\n');
            return;
        }
    };
    let tail = expressed.first_line_end.map(|at| out.split_off(at));
    braces(words, &expressed, false, out);
    if let Some(tail) = tail {
        out.push_str(&tail);
    }
    out.push('\n');
}

/// The words that the assembler would produce from the text that has been written so far.
struct Expressed {
    kind: InstType,
    words: [u32; WORDS],
    /// If the instruction has two lines, the offset at which the first line ends.
    first_line_end: Option<usize>,
    /// The name of a flag that is on by default but off in this instruction. The text writes the flag as `-NAME`. The
    /// field is empty if the instruction has no such flag.
    absent: &'static str,
}

impl Expressed {
    fn new(kind: InstType, words: [u32; WORDS]) -> Expressed {
        Expressed { kind, words, first_line_end: None, absent: "" }
    }
}

/// Writes braces with every field in which `words` differ from the words that the text expresses.
fn braces(words: &[u32; WORDS], expressed: &Expressed, always: bool, out: &mut String) {
    let start = out.len();
    let item = |out: &mut String, text: &str| {
        out.push_str(if out.len() == start { " {" } else { " " });
        out.push_str(text);
    };
    if !expressed.absent.is_empty() {
        item(out, expressed.absent);
    }
    for (index, info) in layout(expressed.kind).iter().enumerate() {
        let (raw, known) = (words[index], expressed.words[index]);
        // Most words equal the words that the text expresses, so this check comes first.
        if raw == known && raw & !info.owned == 0 {
            continue;
        }
        for (name, field) in field_names(expressed.kind, index) {
            let value = field.get(raw);
            if value != field.get(known) {
                item(out, name);
                if field.kind != Kind::Flag || value != 1 {
                    let _ = write!(out, "={}", value_text(field, raw));
                }
            }
        }
        let stray = raw & !info.owned;
        if stray != 0 {
            item(out, &word_name(info, index));
            let _ = write!(out, "|={stray:#x}");
        }
    }
    if out.len() != start {
        out.push('}');
    } else if always {
        out.push_str(" {}");
    }
}

/// Returns the channel names of a predicate, or `None` if the selector of the predicate has no name.
fn predicate_name(select: PredSel) -> Option<&'static str> {
    PREDICATES.iter().find(|(known, _)| *known == select).map(|(_, name)| *name)
}

/// Writes `(pred.g) ` if the selector of the predicate has a name.
fn predicate_text(select: PredSel, inverted: bool, out: &mut String) {
    if let Some(name) = predicate_name(select) {
        let _ = write!(out, "({}pred.{name}) ", if inverted { "!" } else { "" });
    }
}

/// Returns the letters of a mask, or `_` if the mask is empty.
pub(super) fn mask_text(rgb: u8, alpha: bool) -> &'static str {
    const ALL: [&str; 16] =
        ["_", "r", "g", "rg", "b", "rb", "gb", "rgb", "a", "ra", "ga", "rga", "ba", "rba", "gba", "rgba"];
    ALL[usize::from(rgb & 7) | usize::from(alpha) << 3]
}

pub(super) fn temp_text(address: u8, rel: bool) -> impl Display {
    let al = if rel { "+aL" } else { "" };
    fmt::from_fn(move |f| write!(f, "temp[{address}{al}]"))
}

/// Returns the letters of a swizzle.
pub(super) fn swizzle_text(register: TexRegister) -> String {
    register.swizzle.into_iter().map(tex_letter).collect()
}

/// Returns the text of the coordinate of a fetch, such as `temp[1].rgba`.
pub(super) fn vector_text(register: TexRegister) -> String {
    format!("{}.{}", temp_text(register.temp, register.rel), swizzle_text(register))
}

/// Writes an operand of a unit with `channels` channels.
fn operand_text(operand: &Operand, channels: usize, out: &mut String) {
    let (before, after) = modifier(operand.modifier);
    out.push_str(before);
    out.extend(operand.sel.name().chars().map(|letter| letter.to_ascii_lowercase()));
    out.push('.');
    out.extend(operand.swiz[..channels].iter().map(|swiz| letter(*swiz)));
    out.push_str(after);
}

/// The operand that the assembler assumes if the text omits an operand.
const MISSING: Operand = Operand { sel: Sel::SRC0, swiz: [Swiz::R; 3], modifier: Imod::NOP };

/// Writes the sources of a half, as ` : src0=… srcp=…`. Writes a source if the source differs from the default, or if
/// an operand reads the source.
fn sources_text(word: u32, read: [bool; 3], out: &mut String) {
    let mut colon = " :";
    for (number, read) in read.into_iter().enumerate() {
        let bits = word >> (10 * number) & 0x3ff;
        if bits != UNUSED_SOURCE || read {
            let _ = write!(out, "{} src{number}={}", std::mem::take(&mut colon), source(bits));
        }
    }
    if let Some(op) = SrcpOp::from_bits(word >> 30, 2).filter(|op| *op != SrcpOp::NEG2) {
        let _ = write!(out, "{colon} srcp={}", op.name());
    }
}

/// The style of a half. The style has the text before the half, and states whether the disassembler writes idioms.
struct HalfStyle {
    before: &'static str,
    idioms: bool,
}

/// Writes one half of an instruction, as `(pred.g) A, B = OP operands : sources`. `channel` is a channel that the half
/// computes. `more` is a destination in addition to the temporary and the output. The default half does nothing. If a
/// text omits a half, the assembler adds the default half. For the default half, this function writes nothing and
/// returns false.
fn half_text<Op>(
    (half, HalfStyle { before, idioms }): (&Half<Op>, HalfStyle),
    (name, operation): (&str, &Operation),
    common: &CmnInst,
    channel: usize,
    more: Option<&str>,
    (sources, read): (u32, [bool; 3]),
    out: &mut String,
) -> bool {
    let (select, inverted, clamp, channels) = match channel {
        3 => (common.alpha_pred_sel, common.alpha_pred_inv, common.alpha_clamp, 1),
        _ => (common.rgb_pred_sel, common.rgb_pred_inv, common.rgb_clamp, 3),
    };
    let mask = |rgb: u8, alpha: bool| if channel == 3 { mask_text(0, alpha) } else { mask_text(rgb, false) };
    let (temp_mask, output_mask) =
        (mask(common.rgb_wmask, common.alpha_wmask), mask(common.rgb_omask, common.alpha_omask));
    let (targets, file) = match common.r#type {
        InstType::OUT => (TARGETS, "out"),
        _ => (COMPARISONS, "pred"),
    };
    let temp = temp_mask != "_" || half.addrd != 0 || half.addrd_rel;
    let output = output_mask != "_" || half.target != Target::A;
    let written = temp || output || more.is_some();
    let last = half.operands.iter().rposition(|operand| *operand != MISSING).map_or(0, |n| n + 1);
    let predicated = select != PredSel::NONE;
    let idle = !predicated && !written && last == 0 && half.omod == Omod::MUL_1 && !clamp;
    if idle && name == "MAD" && sources == UNUSED_SOURCES && read == [false; 3] {
        return false;
    }
    out.push_str(before);
    predicate_text(select, inverted, out);
    let mut comma = "";
    if temp {
        let _ = write!(out, "{}.{temp_mask}", temp_text(half.addrd, half.addrd_rel));
        comma = ", ";
    }
    if output {
        let _ = write!(out, "{comma}{file}[{}].{output_mask}", targets[half.target as usize]);
        comma = ", ";
    }
    if let Some(more) = more {
        out.push_str(comma);
        out.push_str(more);
    }
    if written {
        out.push_str(" = ");
    }
    let suffix = OMOD.iter().find(|(_, known)| *known == half.omod).map_or("", |(suffix, _)| suffix);
    let idiom =
        if idioms && !idle { Idiom::recognise(name, half.omod, &half.operands, &MISSING) } else { None };
    let (name, operands) = match &idiom {
        Some((idiom, operands)) => (idiom.name, operands.as_slice()),
        None => (name, &half.operands[..last.max(operation.operands)]),
    };
    for part in [name, suffix, if clamp { ".sat" } else { "" }] {
        out.push_str(part);
    }
    for (number, operand) in operands.iter().enumerate() {
        out.push_str(if number == 0 { " " } else { ", " });
        operand_text(operand, channels, out);
    }
    sources_text(sources, read, out);
    true
}

/// Returns which sources the operands of both halves read. The first element is for the RGB address word, and the
/// second element is for the alpha address word.
fn read_sources(alu: &Alu) -> [[bool; 3]; 2] {
    let mut read = [[false; 3]; 2];
    let halves = [
        (&alu.rgb.operands[..alu.rgb.op.operation().operands], 3),
        (&alu.alpha.operands[..alu.alpha.op.operation().operands], 1),
    ];
    for (operands, channels) in halves {
        for operand in operands {
            operand.stated(channels).for_each(|(word, number)| read[word][number] = true);
        }
    }
    read
}

fn alu_text(words: &[u32; WORDS], common: &CmnInst, alu: &Alu, idioms: bool, out: &mut String) -> Expressed {
    let kind = common.r#type;
    let mut expressed = Expressed::new(kind, *words);
    // The fields of word 0 that the text of this instruction expresses.
    let said = CmnInst {
        r#type: kind,
        tex_sem_wait: false,
        write_inactive: false,
        last: false,
        nop: false,
        alu_wait: false,
        stat_we: 0,
        rgb_pred_inv: common.rgb_pred_inv && common.rgb_pred_sel != PredSel::NONE,
        alpha_pred_inv: common.alpha_pred_inv && common.alpha_pred_sel != PredSel::NONE,
        alu_result_sel: if alu.alu_wmask { common.alu_result_sel } else { AluResultSel::RED },
        alu_result_op: if alu.alu_wmask { common.alu_result_op } else { AluResultOp::EQ },
        ..*common
    };
    expressed.words[0] = said.pack();
    out.push_str(kind.name());
    if words[1..] == [0; 5] && said.pack() == kind as u32 {
        out.push_str(" nop");
        return expressed;
    }

    let alu_result = alu.alu_wmask.then(|| {
        let channel = if common.alu_result_sel == AluResultSel::RED { 'r' } else { 'a' };
        format!("alu_result[{}].{channel}", common.alu_result_op.name())
    });
    let read = read_sources(alu);
    let op = (alu.rgb.op.name(), alu.rgb.op.operation());
    let half = (&alu.rgb, HalfStyle { before: " ", idioms });
    half_text(half, op, common, 0, alu_result.as_deref(), (words[1], read[0]), out);
    let depth = alu.w_omask.then_some("out.w");
    let op = (alu.alpha.op.name(), alu.alpha.op.operation());
    let (half, first_line_end) = ((&alu.alpha, HalfStyle { before: "\n  + ", idioms }), out.len());
    if half_text(half, op, common, 3, depth, (words[2], read[1]), out) {
        expressed.first_line_end = Some(first_line_end);
    }
    expressed
}

fn tex_text(common: &CmnInst, tex: &Tex, out: &mut String) -> Expressed {
    let said = CmnInst {
        rgb_pred_inv: common.rgb_pred_inv && common.rgb_pred_sel != PredSel::NONE,
        rgb_pred_sel: common.rgb_pred_sel,
        // If the text has only one predicate, the predicate applies to all four channels.
        alpha_pred_sel: common.rgb_pred_sel,
        alpha_pred_inv: common.rgb_pred_inv && common.rgb_pred_sel != PredSel::NONE,
        rgb_wmask: common.rgb_wmask,
        alpha_wmask: common.alpha_wmask,
        ..blank(InstType::TEX)
    };
    out.push_str("TEX ");
    predicate_text(common.rgb_pred_sel, common.rgb_pred_inv, out);
    let dst = tex.dst();
    let has_dest = common.rgb_wmask != 0 || common.alpha_wmask || dst.temp != 0 || dst.rel;
    if has_dest {
        let mask = mask_text(common.rgb_wmask, common.alpha_wmask);
        let _ = write!(out, "{}.{mask} = ", temp_text(dst.temp, dst.rel));
    }
    let _ = write!(out, "{} tex[{}], {}", tex.inst.inst.name(), tex.inst.tex_id, vector_text(tex.src()));
    let to = swizzle_text(dst);
    if to != default_swizzle(has_dest) {
        let _ = write!(out, " swz={to}");
    }
    for (flag, name) in [
        (tex.inst.unscaled, "UNSCALED"),
        (tex.inst.tex_sem_acquire, "TEX_SEM_ACQUIRE"),
        (tex.inst.ignore_uncovered, "IGNORE_UNCOVERED"),
    ] {
        if flag {
            let _ = write!(out, " {name}");
        }
    }
    let dxdy = &tex.dxdy;
    if dxdy.pack() != 0 {
        let [dx, dy] = tex.derivatives().map(vector_text);
        let _ = write!(out, " dx={dx} dy={dy}");
    }
    Expressed::new(InstType::TEX, [said.pack(), tex.inst.pack(), tex.addr.pack(), dxdy.pack(), 0, 0])
}

/// Returns the result swizzle of a fetch whose text does not state a swizzle. The result is `rgba` if the fetch has a
/// destination. Otherwise, the result is `rrrr`, in which all bits are zero.
pub(super) const fn default_swizzle(has_dest: bool) -> &'static str {
    if has_dest { "rgba" } else { "rrrr" }
}

/// Returns a common word in which only the instruction type is set.
pub(super) fn blank(kind: InstType) -> CmnInst {
    match CmnInst::unpack(kind as u32) {
        Ok(common) => common,
        Err(error) => unreachable!("a word of zeros and a type: {error}"),
    }
}

fn fc_text(common: &CmnInst, fc: &Fc, labels: &Labels, stray: bool, out: &mut String) -> Expressed {
    let statement = Statement::recognise(&fc.inst, &fc.addr);
    // If the condition of a construct is a predicate, the text of the condition names the predicate.
    let names_predicate = statement.is_some_and(|s| matches!(s.condition, Some((Condition::Predicate, _))));
    let sayable =
        common.rgb_pred_sel != PredSel::NONE && common.rgb_pred_sel != PredSel::RGBA && !common.rgb_pred_inv;
    let statement = statement.filter(|_| !names_predicate || sayable);
    let mut said = CmnInst { alu_wait: common.alu_wait, ..blank(InstType::FC) };
    match &statement {
        Some(statement) => {
            if names_predicate {
                said.rgb_pred_sel = common.rgb_pred_sel;
            }
            statement_text(statement, common, out);
        }
        None => {
            said.rgb_pred_sel = common.rgb_pred_sel;
            said.rgb_pred_inv = common.rgb_pred_inv && common.rgb_pred_sel != PredSel::NONE;
            out.push_str("FC ");
            predicate_text(common.rgb_pred_sel, common.rgb_pred_inv, out);
            raw_text(fc, out);
        }
    }
    if has_target(fc) {
        let _ = write!(out, " -> {}", labels.text(&fc.addr));
    } else if stray {
        // The disassembler always writes the target. The assembler reports an error for an instruction without a
        // target.
        let _ = write!(out, " -> {}", fc.addr.jump_addr);
    }
    let absent = if common.alu_wait { "" } else { "-ALU_WAIT" };
    Expressed {
        absent,
        ..Expressed::new(InstType::FC, [said.pack(), 0, fc.inst.pack(), fc.addr.pack(), 0, 0])
    }
}

fn statement_text(statement: &Statement, common: &CmnInst, out: &mut String) {
    let construct = statement.construct;
    out.push_str(construct.name);
    if let Some((condition, negated)) = statement.condition {
        if construct.name != "if" {
            out.push_str(" if");
        }
        let not = if negated { "!" } else { "" };
        let _ = match condition {
            Condition::Alu => write!(out, " {not}alu"),
            Condition::Boolean => write!(out, " {not}bool[{}]", statement.addr.bool_addr),
            Condition::Predicate => {
                write!(out, " {not}pred.{}", predicate_name(common.rgb_pred_sel).unwrap_or_default())
            }
        };
    }
    if !construct.variant.is_empty() {
        let _ = write!(out, " {}", construct.variant);
    }
    if construct.has_int() {
        let _ = write!(out, " int[{}]", statement.addr.int_addr);
    }
    match construct.pop {
        Pop::None => {}
        Pop::One if statement.pop == 1 => {}
        Pop::One | Pop::Said => {
            let _ = write!(out, " pop={}", statement.pop);
        }
    }
    if statement.any != construct.any {
        out.push_str(if statement.any { " any" } else { " all" });
    }
    if statement.ignore_uncovered {
        out.push_str(" ignore_uncovered");
    }
    if statement.addr.jump_global {
        out.push_str(" global");
    }
    debug_assert!(matches!(construct.jumps, Jumps::Never | Jumps::Always) || statement.condition.is_some());
}

fn raw_text(fc: &Fc, out: &mut String) {
    let words = [0, 0, fc.inst.pack(), fc.addr.pack()];
    out.push_str(fc.inst.op.name());
    for (name, manual, _) in RAW_FIELDS {
        let Some((word, field)) = field(InstType::FC, manual) else { continue };
        let value = field.get(words[word]);
        let _ = match (value, field.kind, field.name_of(value)) {
            (0, ..) => Ok(()),
            (_, Kind::Flag, _) => write!(out, " {name}"),
            (_, Kind::Names, Some(text)) => write!(out, " {name}={text}"),
            _ if name == "FUNC" => write!(out, " {name}={value:#04x}"),
            _ => write!(out, " {name}={value}"),
        };
    }
}
