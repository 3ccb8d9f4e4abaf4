//! Replaces one instruction of a program. The new instruction is assembler text.

use std::ops::Range;

use reconverge_isa::Program;
use reconverge_isa::program::Image;
use reconverge_isa::source::Diagnostic;
use thiserror::Error;

use crate::error::counted;
use crate::listing::{Listing, Style};
use crate::machine::{Assembled, ExplainError, line_at, within};
use crate::target::{Target, TargetError};

/// Words to change in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Index of the first changed word.
    pub first: usize,
    /// The new words, starting at `first`.
    pub words: Vec<u32>,
}

/// The reason why an instruction cannot be replaced.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum EditError {
    /// No instruction starts at the address.
    #[error(transparent)]
    Address(#[from] ExplainError),
    /// The program cannot be disassembled.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The text does not assemble. The positions of the errors refer to the text.
    #[error("the text does not assemble: {}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Text(Vec<Diagnostic>),
    /// The length of the new instruction differs from the length of the old instruction.
    #[error("expected {wanted}, as in the old instruction `{old}`; found {found} in `{text}`{help}")]
    Length {
        /// Text of the new instruction.
        text: String,
        /// Length of the new instruction.
        found: String,
        /// Text of the old instruction.
        old: String,
        /// Length of the old instruction.
        wanted: String,
        /// The remedy. The remedy is the end of the message.
        help: &'static str,
    },
    /// The new text also changes words of other instructions.
    #[error("`{text}` also changes the instruction at {elsewhere}; assemble the whole program instead")]
    Elsewhere {
        /// Text of the new instruction.
        text: String,
        /// Address of the first changed instruction, apart from the edited instruction.
        elsewhere: String,
    },
}

/// Returns the words that change if `text` replaces the instruction at `address`.
///
/// The function inserts `text` into the program's listing and assembles the listing. So `text` can be everything that a
/// listing may contain at this position. Examples are an instruction, an operation of an ALU group, and a fetch.
///
/// # Errors
/// See [`EditError`].
pub fn replace(target: &Target, program: &Program, address: u32, text: &str) -> Result<Change, EditError> {
    let machine = target.machine();
    let listing = machine.disassemble(target, program, Style::default())?;
    let old = line_at(&listing.lines(&program.words), target.isa, address)?.clone();
    let found = listing.marks.iter().position(|mark| mark.address == address);
    let Some(index) = found else {
        return Err(ExplainError::NoStart { isa: target.isa, address, near: Vec::new() }.into());
    };
    let place = instruction_in(&listing, index);
    let own = listing.marks[index].words.clone();
    let heading = machine.heading(target, program);
    let (before, after) = (&listing.text[..place.start], &listing.text[place.end..]);
    // In a listing, a number begins each control-flow instruction, and also the first operation of each ALU group. If
    // the new text does not begin with a number, the function copies the number of the old text.
    let number = |text: &str| text.trim_start().split(' ').next().and_then(|word| word.parse::<u32>().ok());
    let prefix = match (number(&listing.text[place.clone()]), number(text)) {
        (Some(number), None) => format!("{number} "),
        _ => String::new(),
    };
    let start = heading.len() + before.len() + prefix.len();
    let source = format!("{heading}{before}{prefix}{text}{after}");
    let length = |found: usize| EditError::Length {
        text: text.to_owned(),
        found: counted(found as u64, "word"),
        old: old.text.clone(),
        wanted: counted(own.len() as u64, "word"),
        help: match found < own.len() {
            true => "; use a form of the same length, or assemble the whole program",
            false => "; use a form of the same length",
        },
    };
    let words = match machine.assemble(target, &source) {
        Ok(Assembled { image: Image { programs, .. }, .. }) => {
            programs.into_iter().next().map(|program| program.words).unwrap_or_default()
        }
        Err(errors) => {
            // If the new text and the old text differ in length, the listing after the new text becomes invalid. In
            // this case, a message about the length is more helpful than the errors in the listing.
            return Err(match length_alone(target, text) {
                Some(found) if found != own.len() => length(found),
                _ => EditError::Text(within(errors, start..start + text.len())),
            });
        }
    };
    if words.len() != program.words.len() {
        return Err(length((words.len() + own.len()).saturating_sub(program.words.len())));
    }
    let changed: Vec<usize> = (0..words.len()).filter(|at| words[*at] != program.words[*at]).collect();
    // No line of the listing contains the literals of an ALU group. A literal may change together with the operation
    // that reads the literal.
    let may_change =
        |at: &usize| own.contains(at) || listing.marks.iter().all(|mark| !mark.words.contains(at));
    if let Some(at) = changed.iter().find(|at| !may_change(at)) {
        let owner = listing.marks.iter().find(|mark| mark.words.contains(at));
        let elsewhere = owner.map(|mark| target.isa.spelled(mark.address)).unwrap_or_default();
        return Err(EditError::Elsewhere { text: text.to_owned(), elsewhere });
    }
    let first = changed.first().copied().unwrap_or(own.start);
    let end = changed.last().map_or(first, |last| last + 1);
    Ok(Change { first, words: words[first..end].to_vec() })
}

/// Returns the number of words of one instruction. The function assembles the instruction separately from the rest of
/// the program.
fn length_alone(target: &Target, text: &str) -> Option<usize> {
    let machine = target.machine();
    let (program, address) = machine.one(target, text).ok()?;
    let lines = machine.disassemble(target, &program, Style::default()).ok()?.lines(&program.words);
    Some(line_at(&lines, target.isa, address).ok()?.words.len())
}

/// Returns the range of an instruction's text in a listing. The range does not contain the labels and directives before
/// the instruction. The range also does not contain the comment after the instruction or the line end.
fn instruction_in(listing: &Listing, index: usize) -> Range<usize> {
    let mut start = index.checked_sub(1).map_or(0, |before| listing.marks[before].end);
    let end = listing.marks[index].end;
    for line in listing.text[start..end].split_inclusive('\n') {
        let code = line.split(';').next().unwrap_or_default().trim();
        let is_label = code.ends_with(':') && !code.contains(' ');
        let is_words = [".word", ".data", ".slot", ".dword"].iter().any(|words| code.starts_with(words));
        if !code.is_empty() && !is_label && (is_words || !code.starts_with('.')) {
            break;
        }
        start += line.len();
    }
    let text = &listing.text[start..end];
    start + text.len() - text.trim_start().len()..start + text.trim_end().len()
}

#[cfg(test)]
mod tests {
    use reconverge_isa::Isa;

    use super::*;
    use crate::text::assemble;

    fn program(isa: Isa, source: &str) -> (Target, Program) {
        let mut assembled = assemble(&Target::of(isa), source).unwrap();
        (assembled.target, assembled.image.programs.remove(0))
    }

    #[test]
    fn a_long_tesla_instruction_takes_the_place_of_another() {
        let (target, program) =
            program(Isa::Tesla, "mov b32 $r1 0x1\nL:\nadd b32 $r0 $r1 $r2\nbra L\nexit nop\n");
        let change = replace(&target, &program, 8, "sub b32 $r0 $r1 $r2").unwrap();
        assert!((2..4).contains(&change.first) && change.words.len() <= 2, "{change:?}");
        let change = replace(&target, &program, 0x10, "bra 0x0").unwrap();
        assert!((4..6).contains(&change.first), "{change:?}");
        assert_eq!(replace(&target, &program, 8, "add b32 $r0 $r1 $r2").unwrap().words, [0; 0]);
    }

    #[test]
    fn another_length_is_refused_with_both() {
        let (target, program) = program(Isa::Tesla, "add b32 $r0 $r1 $r2\nexit nop\n");
        let refused = replace(&target, &program, 0, "short mov b32 $r0 $r1").unwrap_err().to_string();
        assert!(
            refused.starts_with("expected 2 words, as in the old instruction `add b32 $r0 $r1 $r2`; found 1 word in `short mov b32 $r0 $r1`"),
            "{refused}"
        );
    }

    #[test]
    fn an_address_inside_an_instruction_and_a_text_that_is_none_are_refused() {
        let (target, program) = program(Isa::Tesla, "add b32 $r0 $r1 $r2\nexit nop\n");
        let refused = replace(&target, &program, 4, "nop").unwrap_err().to_string();
        assert_eq!(refused, "no instruction starts at 0x4: the nearest start at 0x0 and 0x8");
        let EditError::Text(errors) = replace(&target, &program, 0, "add b32 $r0 $r1 $x2").unwrap_err()
        else {
            panic!()
        };
        assert_eq!(errors[0].span.start, 16, "{errors:?}");
    }

    #[test]
    fn an_operation_of_a_group_a_literal_and_a_jump_are_replaced_on_r700() {
        let source = "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT _.x, 4.5f, R0.x UPDATE_EXEC_MASK\nJUMP: ADDR(@e) POP_CNT(1)\n\
                      ALU_POP_AFTER:\n 1 x: MUL R1.x, R2.x, 3.5f\n y: MUL R1.y, R2.x, 2.5f\n\
                      @e: EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM\n";
        let (target, program) = program(Isa::R700, source);
        let change = |address, text| replace(&target, &program, address, text);
        // The first operation of a group keeps the number that precedes the operation. Later operations of the group do
        // not have a number.
        assert_eq!(change(6, "x: ADD R1.x, R2.x, 3.5f").unwrap().words.len(), 1);
        assert_eq!(change(7, "y: ADD R1.y, R2.x, 2.5f").unwrap().words.len(), 1);
        let literal = change(6, "x: MUL R1.x, R2.x, 7.5f").unwrap();
        assert_eq!((literal.first, literal.words), (16, vec![7.5f32.to_bits()]));
        assert_eq!(change(1, "JUMP: ADDR(2) POP_CNT(1)").unwrap().words, [2]);
        assert!(change(6, "x: MUL R1.x, R2.x, 3.5f\n z: MUL R1.z, R2.x, 3.5f").is_err());
    }

    #[test]
    fn an_r500_instruction_is_replaced() {
        let (target, program) =
            program(Isa::R500, "OUT nop\nOUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n");
        let change =
            replace(&target, &program, 1, "OUT out[A].rgb = MIN*off src0.rgb, src0.rgb : src0=temp[0]")
                .unwrap();
        assert!((6..12).contains(&change.first) && change.words.len() == 1, "{change:?}");
    }

    #[test]
    fn an_instruction_is_explained_from_its_text() {
        for (isa, text, part) in [
            (Isa::Tesla, "add b32 $r0 $r1 $r2", "add b32 $r0 $r1 $r2"),
            (Isa::R500, "OUT nop", "OUT nop"),
            (Isa::R700, "JUMP: ADDR(3) POP_CNT(1)", "JUMP"),
            (Isa::R700, "x: ADD R0.x, R1.x, KC0[3].y", "ADD"),
            (Isa::R700, "t: RECIP_IEEE R3.x, R0.y", "RECIP_IEEE"),
            (Isa::R700, "SAMPLE R0.xyzw, R1.xy01, t2, s3", "SAMPLE"),
        ] {
            let target = Target::of(isa);
            let (program, address) = target.machine().one(&target, text).unwrap();
            let explained = target.machine().explain_at(&target, &program, address).unwrap();
            let listing = target.machine().disassemble(&target, &program, Style::default()).unwrap();
            let lines = listing.lines(&program.words);
            let line = line_at(&lines, isa, address).unwrap();
            assert_eq!(explained.words, line.words, "{isa}");
            assert!(line.text.contains(part), "{isa}: {}", line.text);
        }
    }
}
