//! Words to text.

use std::fmt::Write;

use reconverge_isa::{Mark, Program};

use super::syntax::{CHANNELS, SATURATE, WORD_NAMES, destination, fields, letter, source, with_ignored};
use crate::pvs::flow::Descriptor;
use crate::pvs::inst::{Dst, Dual, Inst, Mode, Operand, WORDS, decode, operand};
use crate::pvs::operations::Value;
use crate::pvs::setup::Setup;
use crate::pvs::words::*;
use crate::text::dis::{constants, value_text};

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Adds slot number and words as a comment before each instruction.
    pub hex: bool,
    /// Adds what flow control does behind an instruction as a comment.
    pub structure: bool,
}

/// The text of a program: its state as directives, its instructions. [`super::assemble`] gives the same program back.
pub fn disassemble(program: &Program, listing: Listing) -> String {
    disassemble_marked(program, listing, &mut Vec::new())
}

/// As [`disassemble`], noting where each instruction ends.
pub fn disassemble_marked(program: &Program, listing: Listing, marks: &mut Vec<Mark>) -> String {
    let mut out = String::from(".stage vertex\n");
    directives(program, &mut out);
    let (records, rest) = program.words.as_chunks::<WORDS>();
    let whole = Program { words: records.as_flattened().to_vec(), ..program.clone() };
    let setup = Setup::new(&whole).ok().filter(|_| listing.structure);
    for (index, record) in records.iter().enumerate() {
        let address = program.base.wrapping_add(index as u32);
        if listing.hex {
            let words = record.map(|word| format!("{word:08x}")).join(" ");
            let _ = writeln!(out, "; {address:3}: {words}");
        }
        let lines = instruction(record);
        let flow = setup.as_ref().map_or_else(Vec::new, |setup| flow(setup, address));
        for (number, line) in lines.iter().enumerate() {
            out.push_str(line);
            if number == 0 && !flow.is_empty() {
                let _ = write!(out, "  ; {}", flow.join("; "));
            }
            out.push('\n');
        }
        marks.push(Mark { end: out.len(), address, words: WORDS * index..WORDS * (index + 1), depth: 0 });
    }
    for word in rest {
        let _ = writeln!(out, ".data {word:#010x}");
    }
    out
}

/// What flow control does at a slot.
fn flow(setup: &Setup, address: u32) -> Vec<String> {
    let mut notes = Vec::new();
    for (number, descriptor) in setup.control.descriptors().iter().enumerate() {
        let Descriptor { op, act, count_or_target, last, back, .. } = *descriptor;
        let acts = u32::from(act) == address;
        let ends = u32::from(last) == address;
        match op {
            FlowOp::JUMP if acts => notes.push(format!("{number}: goes to {count_or_target}")),
            FlowOp::LOOP if acts => notes.push(format!("{number}: {count_or_target} times {back} to {last}")),
            FlowOp::JSR if acts => {
                notes.push(format!("{number}: calls {count_or_target} to {last}, then {back}"));
            }
            FlowOp::LOOP if ends => notes.push(format!("{number}: end of the loop")),
            FlowOp::JSR if ends => notes.push(format!("{number}: return")),
            FlowOp::NO_OP | FlowOp::JUMP | FlowOp::LOOP | FlowOp::JSR => {}
        }
    }
    if u32::from(setup.control.last()) == address {
        notes.push("the program's last".to_owned());
    }
    notes
}

fn directives(program: &Program, out: &mut String) {
    if program.base != 0 {
        let _ = writeln!(out, ".base {}", program.base);
    }
    for (name, value) in &program.state {
        let known = state_register(name).filter(|(register, _)| value & !register.word.owned == 0);
        let fields: Vec<String> = known.map_or_else(Vec::new, |(register, _)| {
            let set = register.word.fields.iter().filter(|field| field.get(*value) != 0);
            set.map(|field| format!("{}={}", field.name.to_ascii_uppercase(), value_text(field, *value)))
                .collect()
        });
        let _ = match fields.is_empty() || known.is_some_and(|(register, _)| register.word.fields.len() == 1)
        {
            true => writeln!(out, ".state {name} {value:#x}"),
            false => writeln!(out, ".state {name} {}", fields.join(" ")),
        };
    }
    constants(program, out);
}

// ---- Instructions

/// The lines of an instruction: two for a dual one.
pub(super) fn instruction(words: &[u32; WORDS]) -> Vec<String> {
    let Ok(inst) = decode(words) else {
        return vec![format!(".word {}", words.map(|word| format!("{word:#010x}")).join(" "))];
    };
    let mut line = String::new();
    match inst.predicate {
        None => {}
        Some(true) => line.push_str("(p) "),
        Some(false) => line.push_str("(!p) "),
    }
    line.push_str(inst.op.name());
    if inst.saturate {
        line.push_str(SATURATE);
    }
    let operands = inst.operation().operands;
    let in_text = [operands[0], operands[1], operands[2] && inst.dual.is_none()];
    if prints_destination(&inst) {
        let _ = write!(line, " {}", destination_text(&inst.dst));
    }
    let given: Vec<String> = (0..3)
        .filter(|number| in_text[*number])
        .map(|number| operand_text(&inst.operands[number], 4))
        .collect();
    if !given.is_empty() {
        let _ = write!(line, " = {}", given.join(", "));
    }

    // What the assembler makes of this much, and what it does not say.
    let mut expressed = with_ignored(plain(words, &inst), in_text, inst.dual.is_some());
    let mut braces = Vec::new();
    for word in 1..WORDS {
        let printed = in_text[word - 1] || (word == 3 && inst.dual.is_some());
        if printed || words[word] == expressed[word] {
            continue;
        }
        if let Ok(known) = operand(words[word]) {
            braces.push(format!("{}={}", WORD_NAMES[word], operand_text(&known, 4)));
            expressed[word] = plain_source(words[word], &known);
        }
    }
    for word in 0..WORDS {
        for field in fields(word, inst.dual.is_some()) {
            if field.get(words[word]) != field.get(expressed[word]) {
                let (name, value) = (field.name.to_ascii_uppercase(), value_text(field, words[word]));
                braces.push(format!("{}.{name}={value}", WORD_NAMES[word]));
                expressed[word] = field.set(expressed[word], field.get(words[word]));
            }
        }
        let stray = words[word] & !expressed[word];
        if stray != 0 {
            braces.push(format!("{}|={stray:#x}", WORD_NAMES[word]));
        }
    }
    if !braces.is_empty() {
        let _ = write!(line, " {{{}}}", braces.join(" "));
    }
    let mut lines = vec![line];
    lines.extend(inst.dual.map(|dual| dual_text(&dual)));
    lines
}

/// An operation that writes nothing prints its destination only where there is one.
fn prints_destination(inst: &Inst) -> bool {
    let none = Dst { file: DstType::TEMPORARY, register: 0, mode: Mode::Absolute, mask: 0 };
    !matches!(inst.operation().value, Value::Nothing) || inst.dst != none
}

/// The words without the fields that the text of a word's ordinary meaning does not show.
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

fn register(file: &str, register: u8, mode: Mode) -> String {
    match mode {
        Mode::Absolute => format!("{file}{register}"),
        Mode::A0(component) => format!("{file}[{register}+a0.{}]", CHANNELS[component as usize]),
        Mode::Loop => format!("{file}[{register}+aL]"),
    }
}

pub(super) fn destination_text(dst: &Dst) -> String {
    let channels: String =
        (0..4).filter(|channel| dst.writes(*channel)).map(|channel| CHANNELS[channel]).collect();
    let mask = match dst.mask {
        0 => "._".to_owned(),
        15 => String::new(),
        _ => format!(".{channels}"),
    };
    register(destination(dst.file), dst.register, dst.mode) + &mask
}

/// An operand with its first `count` channels.
pub(super) fn operand_text(operand: &Operand, count: usize) -> String {
    let name = register(source(operand.file), operand.register, operand.mode);
    let name = if operand.abs { format!("|{name}|") } else { name };
    let select = &operand.select[..count];
    let all = (1 << count) - 1;
    let (sign, inner) = match operand.negate {
        negate if negate == all => ("-", 0),
        negate => ("", negate),
    };
    let identity = [Select::X, Select::Y, Select::Z, Select::W];
    let channels = match inner {
        0 if select == identity => String::new(),
        0 if select.iter().all(|one| *one == select[0]) => format!(".{}", letter(select[0])),
        _ => {
            let channel = |(number, one): (usize, &Select)| match inner >> number & 1 {
                0 => letter(*one).to_string(),
                _ => format!("-{}", letter(*one)),
            };
            format!(".{}", select.iter().enumerate().map(channel).collect::<String>())
        }
    };
    format!("{sign}{name}{channels}")
}

fn dual_text(dual: &Dual) -> String {
    let saturate = if dual.saturate { SATURATE } else { "" };
    let channel = CHANNELS[dual.channel as usize];
    let source = operand_text(&dual.source, 2);
    format!("  + {}{saturate} at{}.{channel} = {source}", dual.op.name(), dual.register)
}

#[cfg(test)]
mod tests {
    use super::super::syntax::ignored;
    use super::*;

    /// Words that Mesa 22.3.6's r300 driver wrote.
    #[test]
    fn compiled_programs_need_no_braces() {
        let text = |words: [u32; 4]| instruction(&words).join("\n");
        assert_eq!(
            text([0x0010_010d, 0x01ff_0282, 0x0124_8282, 0x0124_8282]),
            "VE_FLT2FIX_DX a0.x = c20.x___"
        );
        assert_eq!(
            text([0x00f0_0004, 0x00d1_0001, 0x00d1_0012, 0x00d1_0000]),
            "VE_MULTIPLY_ADD t0 = i0, c[0+a0.x], t0"
        );
        assert_eq!(text([0x0010_2045, 8, 0x0124_8000, 0x0049_2000]), "ME_POWER_FUNC_FF t1.x = |t0|.x, t0.y");
        assert_eq!(text([0x00f0_2280, 0, 0x00d1_0020, 0x00d1_0040]), "MACRO_OP_2CLK_MADD o1 = t0.x, t1, t2");
        assert_eq!(
            text([0x00f0_2004, 0x1e00_0040, 0x00d1_0080, 0x00d1_0080]),
            "VE_MULTIPLY_ADD t1 = -t2.x, t4, t4"
        );
        assert_eq!(text([0; 4]), "VECTOR_NO_OP");
        assert_eq!(
            text([0x0c10_4009, 0x01ff_0000, 0x01ff_0042, 0x0124_8042]),
            "(p) VE_SET_GREATER_THAN_EQUAL t2.x = t0.x___, c2.x___"
        );
        assert_eq!(ignored(Some(0x01ff_0042)), 0x0124_8042);
    }

    /// A dual instruction of Mesa's r300 driver, in one line for each half.
    #[test]
    fn a_dual_instruction_has_two_lines() {
        assert_eq!(
            instruction(&[0x1060_2002, 0x05d2_e001, 0x01c8_e060, 0x1019_2004]),
            ["VE_MULTIPLY t1.yz = i0._-zz_, t3._xy_", "  + ME_SIN at3.z = t0.y"]
        );
    }

    #[test]
    fn what_the_syntax_does_not_say_is_in_braces() {
        assert_eq!(
            instruction(&[0x0800_0003 | 1 << 25, 4 | 1 << 29, 0x21, 0x42]),
            ["VE_ADD t0._ = t0.x, i1.x {C=c2.x OP.ME_SAT=1 OP.PRED_SENSE=1 A.ADDR_SEL=Y A|=0x4}"]
        );
        assert_eq!(instruction(&[63, 0, 0, 1]), [".word 0x0000003f 0x00000000 0x00000000 0x00000001"]);
    }
}
