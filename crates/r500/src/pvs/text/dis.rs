//! The disassembler: converts words to text.

use std::fmt::{self, Display, Write};

use reconverge_isa::{Mark, Program};

use super::syntax::{CHANNELS, SATURATE, WORD_NAMES, destination, fields, letter, source, with_ignored};
use crate::pvs::flow::Descriptor;
use crate::pvs::inst::{Dst, Dual, Inst, Mode, Operand, WORDS, decode, operand};
use crate::pvs::operations::Value;
use crate::pvs::setup::Setup;
use crate::pvs::words::*;
pub use crate::text::dis::Listing;
use crate::text::dis::{directives, value_text};

/// Returns the text of a program. The text consists of directives for the state of the program, followed by the
/// program's instructions. [`super::assemble`] turns this text into the same program.
pub fn disassemble(program: &Program, listing: Listing) -> String {
    disassemble_marked(program, listing, &mut Vec::new())
}

/// Returns the same text as [`disassemble`]. Also records the position at which the text of each instruction ends.
pub fn disassemble_marked(program: &Program, listing: Listing, marks: &mut Vec<Mark>) -> String {
    let (records, rest) = program.words.as_chunks::<WORDS>();
    let mut out = String::with_capacity(96 * records.len());
    out.push_str(".stage vertex\n");
    directives(program, &STATE, &mut out);
    let whole = || Program { words: records.as_flattened().to_vec(), ..program.clone() };
    let setup = if listing.structure { Setup::new(&whole()).ok() } else { None };
    for (index, record) in records.iter().enumerate() {
        let address = program.base.wrapping_add(index as u32);
        if listing.hex {
            let words = record.map(|word| format!("{word:08x}")).join(" ");
            let _ = writeln!(out, "; {address:3}: {words}");
        }
        let start = out.len();
        instruction(record, &mut out);
        let flow = setup.as_ref().map_or_else(Vec::new, |setup| flow(setup, address));
        if !flow.is_empty() {
            let first = out[start..].find('\n').map_or(out.len(), |first| start + first);
            out.insert_str(first, &format!("  ; {}", flow.join("; ")));
        }
        out.push('\n');
        marks.push(Mark { end: out.len(), address, words: WORDS * index..WORDS * (index + 1), depth: 0 });
    }
    for word in rest {
        let _ = writeln!(out, ".data {word:#010x}");
    }
    out
}

/// Describes the flow-control descriptors that act or end at a slot.
fn flow(setup: &Setup, address: u32) -> Vec<String> {
    let mut notes = Vec::new();
    for (number, descriptor) in setup.control.descriptors().iter().enumerate() {
        let Descriptor { op, act, count_or_target, last, back, .. } = *descriptor;
        let acts = u32::from(act) == address;
        let ends = u32::from(last) == address;
        match op {
            FlowOp::JUMP if acts => notes.push(format!("{number}: jump to {count_or_target}")),
            FlowOp::LOOP if acts => {
                notes.push(format!("{number}: loop, {count_or_target} times slots {back} to {last}"))
            }
            FlowOp::JSR if acts => {
                notes.push(format!("{number}: call of slots {count_or_target} to {last}, then slot {back}"));
            }
            FlowOp::LOOP if ends => notes.push(format!("{number}: end of the loop")),
            FlowOp::JSR if ends => notes.push(format!("{number}: return")),
            FlowOp::NO_OP | FlowOp::JUMP | FlowOp::LOOP | FlowOp::JSR => {}
        }
    }
    if u32::from(setup.control.last()) == address {
        notes.push("last slot of the program".to_owned());
    }
    notes
}

// ---- Instructions

/// Writes the lines of an instruction, without the last newline. A dual instruction has two lines.
pub(super) fn instruction(words: &[u32; WORDS], out: &mut String) {
    let Ok(inst) = decode(words) else {
        out.push_str(".word");
        words.iter().for_each(|word| {
            let _ = write!(out, " {word:#010x}");
        });
        return;
    };
    match inst.predicate {
        None => {}
        Some(true) => out.push_str("(p) "),
        Some(false) => out.push_str("(!p) "),
    }
    out.push_str(inst.op.name());
    if inst.saturate {
        out.push_str(SATURATE);
    }
    let operands = inst.operation().operands;
    let in_text = [operands[0], operands[1], operands[2] && inst.dual.is_none()];
    if prints_destination(&inst) {
        let _ = write!(out, " {}", destination_text(&inst.dst));
    }
    let mut before = " = ";
    for (operand, _) in inst.operands.iter().zip(in_text).filter(|(_, in_text)| *in_text) {
        let _ = write!(out, "{before}{}", operand_text(operand, 4));
        before = ", ";
    }
    braces(words, &inst, in_text, out);
    if let Some(dual) = &inst.dual {
        out.push('\n');
        dual_text(dual, out);
    }
}

/// Writes braces with the fields that the preceding text does not express. For such a field, the assembler would choose
/// another value than the value in `words`.
fn braces(words: &[u32; WORDS], inst: &Inst, in_text: [bool; 3], out: &mut String) {
    let mut expressed = with_ignored(plain(words, inst), in_text, inst.dual.is_some());
    let start = out.len();
    let item = |out: &mut String, word: usize| {
        out.push_str(if out.len() == start { " {" } else { " " });
        out.push_str(WORD_NAMES[word]);
    };
    for word in 1..WORDS {
        let printed = in_text[word - 1] || (word == 3 && inst.dual.is_some());
        if printed || words[word] == expressed[word] {
            continue;
        }
        if let Ok(known) = operand(words[word]) {
            item(out, word);
            let _ = write!(out, "={}", operand_text(&known, 4));
            expressed[word] = plain_source(words[word], &known);
        }
    }
    for word in 0..WORDS {
        if words[word] == expressed[word] {
            continue;
        }
        for field in fields(word, inst.dual.is_some()) {
            if field.get(words[word]) != field.get(expressed[word]) {
                item(out, word);
                out.push('.');
                out.extend(field.name.chars().map(|letter| letter.to_ascii_uppercase()));
                let _ = write!(out, "={}", value_text(field, words[word]));
                expressed[word] = field.set(expressed[word], field.get(words[word]));
            }
        }
        let stray = words[word] & !expressed[word];
        if stray != 0 {
            item(out, word);
            let _ = write!(out, "|={stray:#x}");
        }
    }
    if out.len() != start {
        out.push('}');
    }
}

/// Returns whether the text includes the destination. If the operation writes nothing and every field of the
/// destination is zero, the text omits the destination.
fn prints_destination(inst: &Inst) -> bool {
    let none = Dst { file: DstType::TEMPORARY, register: 0, mode: Mode::Absolute, mask: 0 };
    !matches!(inst.operation().value, Value::Nothing) || inst.dst != none
}

/// Clears all fields that the text without braces does not show, and returns the resulting words.
fn plain(words: &[u32; WORDS], inst: &Inst) -> [u32; WORDS] {
    let mut plain = *words;
    let mut clear = |name| plain[0] &= !field(&DstOperand::INFO, name).mask();
    if !matches!(inst.dst.mode, Mode::A0(_)) {
        clear("addr_sel");
    }
    if inst.predicate.is_none() {
        clear("pred_sense");
    }
    let head = DstOperand::unpack_lenient(words[0]);
    let math = head.is_ok_and(|head| head.math_inst);
    if math {
        clear("ve_sat");
    } else if inst.dual.is_none() {
        clear("me_sat");
    }
    if inst.dual.is_none() {
        clear("dual_math_op");
    }
    for (word, known) in (1..).zip(&inst.operands) {
        if word < 3 || inst.dual.is_none() {
            plain[word] = plain_source(words[word], known);
        }
    }
    if let Some(dual) = &inst.dual
        && !matches!(dual.source.mode, Mode::A0(_))
    {
        plain[3] &= !field(&DualMath::INFO, "addr_sel").mask();
    }
    plain
}

fn plain_source(word: u32, operand: &Operand) -> u32 {
    let plain = word & SrcOperand::OWNED;
    match operand.mode {
        Mode::A0(_) => plain,
        Mode::Absolute | Mode::Loop => plain & !field(&SrcOperand::INFO, "addr_sel").mask(),
    }
}

fn register(file: &'static str, register: u8, mode: Mode) -> impl Display {
    fmt::from_fn(move |f| match mode {
        Mode::Absolute => write!(f, "{file}{register}"),
        Mode::A0(component) => write!(f, "{file}[{register}+a0.{}]", CHANNELS[component as usize]),
        Mode::Loop => write!(f, "{file}[{register}+aL]"),
    })
}

pub(super) fn destination_text(dst: &Dst) -> impl Display {
    fmt::from_fn(move |f| {
        write!(f, "{}", register(destination(dst.file), dst.register, dst.mode))?;
        match dst.mask {
            0 => f.write_str("._"),
            15 => Ok(()),
            _ => {
                f.write_char('.')?;
                let mut channels = (0..4).filter(|channel| dst.writes(*channel));
                channels.try_for_each(|channel| f.write_char(CHANNELS[channel]))
            }
        }
    })
}

/// Returns the text of the first `count` channels of an operand.
pub(super) fn operand_text(operand: &Operand, count: usize) -> impl Display {
    fmt::from_fn(move |f| {
        let name = register(source(operand.file), operand.register, operand.mode);
        let select = &operand.select[..count];
        let all = (1 << count) - 1;
        let (sign, inner) = match operand.negate {
            negate if negate == all => ("-", 0),
            negate => ("", negate),
        };
        let bar = if operand.abs { "|" } else { "" };
        write!(f, "{sign}{bar}{name}{bar}")?;
        let identity = [Select::X, Select::Y, Select::Z, Select::W];
        if inner == 0 && select == identity {
            return Ok(());
        }
        let same = inner == 0 && select.iter().all(|one| *one == select[0]);
        f.write_char('.')?;
        for (number, one) in select.iter().enumerate().take(if same { 1 } else { count }) {
            if inner >> number & 1 != 0 {
                f.write_char('-')?;
            }
            f.write_char(letter(*one))?;
        }
        Ok(())
    })
}

fn dual_text(dual: &Dual, out: &mut String) {
    let saturate = if dual.saturate { SATURATE } else { "" };
    let channel = CHANNELS[dual.channel as usize];
    let source = operand_text(&dual.source, 2);
    let _ = write!(out, "  + {}{saturate} at{}.{channel} = {source}", dual.op.name(), dual.register);
}

#[cfg(test)]
mod tests {
    use super::super::syntax::ignored;
    use super::*;

    fn text(words: &[u32; WORDS]) -> String {
        let mut out = String::new();
        instruction(words, &mut out);
        out
    }

    /// Words that Mesa 22.3.6's r300 driver wrote.
    #[test]
    fn compiled_programs_need_no_braces() {
        assert_eq!(
            text(&[0x0010_010d, 0x01ff_0282, 0x0124_8282, 0x0124_8282]),
            "VE_FLT2FIX_DX a0.x = c20.x___"
        );
        assert_eq!(
            text(&[0x00f0_0004, 0x00d1_0001, 0x00d1_0012, 0x00d1_0000]),
            "VE_MULTIPLY_ADD t0 = i0, c[0+a0.x], t0"
        );
        assert_eq!(text(&[0x0010_2045, 8, 0x0124_8000, 0x0049_2000]), "ME_POWER_FUNC_FF t1.x = |t0|.x, t0.y");
        assert_eq!(text(&[0x00f0_2280, 0, 0x00d1_0020, 0x00d1_0040]), "MACRO_OP_2CLK_MADD o1 = t0.x, t1, t2");
        assert_eq!(
            text(&[0x00f0_2004, 0x1e00_0040, 0x00d1_0080, 0x00d1_0080]),
            "VE_MULTIPLY_ADD t1 = -t2.x, t4, t4"
        );
        assert_eq!(text(&[0; 4]), "VECTOR_NO_OP");
        assert_eq!(
            text(&[0x0c10_4009, 0x01ff_0000, 0x01ff_0042, 0x0124_8042]),
            "(p) VE_SET_GREATER_THAN_EQUAL t2.x = t0.x___, c2.x___"
        );
        assert_eq!(ignored(Some(0x01ff_0042)), 0x0124_8042);
    }

    /// Mesa's r300 driver writes this dual instruction. Each half has one line.
    #[test]
    fn a_dual_instruction_has_two_lines() {
        assert_eq!(
            text(&[0x1060_2002, 0x05d2_e001, 0x01c8_e060, 0x1019_2004]),
            "VE_MULTIPLY t1.yz = i0._-zz_, t3._xy_\n  + ME_SIN at3.z = t0.y"
        );
    }

    #[test]
    fn what_the_syntax_does_not_say_is_in_braces() {
        assert_eq!(
            text(&[0x0800_0003 | 1 << 25, 4 | 1 << 29, 0x21, 0x42]),
            "VE_ADD t0._ = t0.x, i1.x {C=c2.x OP.ME_SAT=1 OP.PRED_SENSE=1 A.ADDR_SEL=Y A|=0x4}"
        );
        assert_eq!(text(&[63, 0, 0, 1]), ".word 0x0000003f 0x00000000 0x00000000 0x00000001");
    }
}
