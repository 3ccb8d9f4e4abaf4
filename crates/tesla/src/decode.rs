//! Decodes words to an [`Inst`], and describes each bit of the words.

pub use reconverge_isa::read::{Described, NoReading};

use crate::draft::Draft;
use crate::inst::{Chip, Form, Inst, Stage};
use crate::parts::here;
use crate::table::{Row, TABLE};

/// Returns the form of an instruction. For a one-word instruction, the function ignores the second word. (2)
#[inline(always)]
pub const fn form([first, second]: [u32; 2]) -> Form {
    match (first & 3, second & 3) {
        (0, _) => Form::Short,
        (2, _) => Form::ShortControl,
        (1, 3) => Form::Immediate,
        (1, _) => Form::Long,
        (_, _) => Form::Control,
    }
}

/// Returns the number of words of the instruction whose first word is `first`.
#[inline(always)]
pub const fn length(first: u32) -> u32 {
    1 + (first & 1)
}

/// Returns both words as one number. For a one-word instruction, the second word is 0 in this number.
#[inline(always)]
pub(crate) const fn joined([first, second]: [u32; 2]) -> u64 {
    let second = if length(first) == 2 { second } else { 0 };
    first as u64 | (second as u64) << 32
}

/// Returns the instruction that starts with these words. For a one-word instruction, the function ignores the second
/// word.
///
/// # Errors
/// For this chip and stage, no instruction has these bits. The chip reports ILLEGAL_OPCODE. (10)
///
/// ```
/// use reconverge_tesla::decode::decode;
/// use reconverge_tesla::inst::{Arith, Chip, Dst, Op, Operand, Stage};
/// use reconverge_tesla::lane::Width;
/// let mov = decode([0x1001_8005, 0x0000_0003], Chip::G80, Stage::Compute).unwrap();
/// assert_eq!(mov.op, Op::Arith(Arith::Mov { width: Width::B32 }));
/// assert_eq!((mov.dst, mov.src[0]), (Dst::R32(1), Operand::Imm(1)));
/// ```
#[inline]
pub fn decode(words: [u32; 2], chip: Chip, stage: Stage) -> Result<Inst, NoReading> {
    let mut draft = Draft::default();
    let row = TABLE.decode(joined(words), here(chip, stage), &mut draft)?;
    let op = (row.meaning)(&draft);
    Ok(Inst { op, form: form(words), ..draft.inst })
}

/// Returns the row of the table for these words.
///
/// # Errors
/// The errors of [`decode`].
pub fn row(words: [u32; 2], chip: Chip, stage: Stage) -> Result<&'static Row, NoReading> {
    TABLE.find(joined(words), here(chip, stage))
}

/// Describes every bit of an instruction, in the order of the instruction's assembly text. Bit n of the second word is
/// bit 32 + n.
///
/// # Errors
/// The errors of [`decode`].
pub fn describe(words: [u32; 2], chip: Chip, stage: Stage) -> Result<Vec<Described>, NoReading> {
    TABLE.describe(joined(words), here(chip, stage))
}
