//! Encodings that the documents forbid. The hardware could execute these encodings.
//!
//! Source: docs/r500-vertex.md, sections 4.2 and 8.

use thiserror::Error;

use super::inst::{Inst, Mode, Op, Operand, WORDS};
use super::operations::Value;
use super::words::*;

/// A rule of the documents that an executable encoding violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// Reserved bits are set. In lenient mode, these bits are ignored.
    #[error("reserved bits {bits:#010x} of word {word} are set")]
    ReservedBits {
        /// Number of the word, 0 to 3.
        word: u8,
        /// The reserved bits that are set.
        bits: u32,
    },
    /// DUAL_MATH_OP is set, but the operation does not belong to the vector engine. In lenient mode, the bit is
    /// ignored.
    #[error("DUAL_MATH_OP needs an operation of the vector engine")]
    DualWithoutVector,
    /// The vector operation of a dual instruction reads operand C, but a dual instruction does not have operand C. In
    /// lenient mode, C is 0.0.
    #[error("{0} has three operands: a dual instruction has two")]
    DualNeedsThirdOperand(VeOp),
    /// The math half of a dual instruction has an operation with three operands, but its source has only two scalars.
    /// In lenient mode, operands B and C are both the second scalar.
    #[error("{0} needs three scalars: a dual instruction provides two")]
    DualNeedsThirdScalar(MeOp),
    /// The math half of a dual instruction is a predicate operation. In lenient mode, this half writes the predicate.
    #[error("{0} in the math half of a dual instruction: no document describes it")]
    DualPredicate(MeOp),
    /// An operand channel that the operation uses selects a reserved code. In lenient mode, the channel is 0.0.
    #[error("operand {operand} selects {select} for a channel that is used")]
    ReservedSelect {
        /// The operand: A, B or C.
        operand: char,
        /// The code.
        select: Select,
    },
    /// An instruction reads more registers of a file than the hardware can read. In lenient mode, the instruction reads
    /// all these registers.
    #[error("{count} different registers of the {file} file are read, more than {most}")]
    TooManyReads {
        /// The file.
        file: SrcType,
        /// Number of different registers that are read.
        count: usize,
        /// Maximum number of registers.
        most: usize,
    },
    /// An operation other than VE_FLT2FIX_DX and VE_FLT2FIX_DX_RND writes A0. In lenient mode, A0 receives the floor of
    /// the result, clamped to the range of A0.
    #[error("{0} writes A0: only VE_FLT2FIX_DX and VE_FLT2FIX_DX_RND should write it")]
    AddressByOther(&'static str),
}

/// Returns the rules of the documents that the instruction in `words` violates, ordered by word.
pub fn violations(words: &[u32; WORDS], inst: &Inst) -> Vec<Violation> {
    let mut found = Vec::new();
    let operation = inst.operation();
    if words[0] >> 28 & 1 == 1 && inst.dual.is_none() {
        found.push(Violation::DualWithoutVector);
    }
    for (word, (info, raw)) in layout(inst.dual.is_some()).iter().zip(words).enumerate() {
        let bits = raw & !info.owned;
        if bits != 0 {
            found.push(Violation::ReservedBits { word: word as u8, bits });
        }
    }
    if inst.dst.file == DstType::A0 && inst.dst.mask != 0 && !matches!(operation.value, Value::Address(_)) {
        found.push(Violation::AddressByOther(inst.op.name()));
    }
    if let Some(dual) = &inst.dual {
        if let Op::Vector(op) = inst.op
            && operation.operands[2]
        {
            found.push(Violation::DualNeedsThirdOperand(op));
        }
        let math = dual.op.operation();
        if math.operands == [true; 3] {
            found.push(Violation::DualNeedsThirdScalar(dual.op));
        }
        if math.sets_predicate() {
            found.push(Violation::DualPredicate(dual.op));
        }
    }
    found.extend(reserved_selects(inst));
    found.extend(reads(inst));
    found
}

fn reserved_selects(inst: &Inst) -> impl Iterator<Item = Violation> {
    let mut found = Vec::new();
    let mut check = |name, operand: &Operand, used: u8| {
        for (channel, select) in operand.select.into_iter().enumerate() {
            if used >> channel & 1 == 1 && matches!(select, Select::RESERVED | Select::UNUSED) {
                found.push(Violation::ReservedSelect { operand: name, select });
                return;
            }
        }
    };
    for ((name, operand), used) in ['A', 'B', 'C'].into_iter().zip(&inst.operands).zip(inst.reads()) {
        check(name, operand, used);
    }
    if let Some(dual) = &inst.dual {
        check('A', &dual.source, dual.scalars());
    }
    found.into_iter()
}

/// Returns a violation for each register file with too many different addresses among the operands. The function also
/// counts the addresses of operands that the operation ignores. A relative address always differs from an absolute
/// address. (Mesa, t_src_conflict)
fn reads(inst: &Inst) -> impl Iterator<Item = Violation> {
    let count = if inst.dual.is_some() { 2 } else { 3 };
    let operands: Vec<Operand> =
        inst.operands[..count].iter().copied().chain(inst.dual.iter().map(|dual| dual.source)).collect();
    let three = matches!(inst.op, Op::Macro(_));
    let no_op = matches!(inst.operation().value, Value::Nothing) && inst.dual.is_none();
    SrcType::ALL.iter().filter_map(move |file| {
        let mut seen: Vec<(u8, Mode)> = Vec::new();
        for operand in operands.iter().filter(|operand| operand.file == *file && !no_op) {
            let address = (operand.register, operand.mode);
            if !seen.contains(&address) {
                seen.push(address);
            }
        }
        let most = match file {
            SrcType::TEMPORARY if three => 3,
            SrcType::TEMPORARY => 2,
            SrcType::INPUT | SrcType::CONSTANT | SrcType::ALT_TEMPORARY => 1,
        };
        (seen.len() > most).then_some(Violation::TooManyReads { file: *file, count: seen.len(), most })
    })
}

impl super::inst::Dual {
    /// Returns which of the two scalars the operation reads. Bit 0 is the first scalar.
    pub(crate) const fn scalars(&self) -> u8 {
        let [a, b, c] = self.op.operation().operands;
        a as u8 | ((b || c) as u8) << 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pvs::inst::decode;

    #[test]
    fn forbidden_combinations_are_named() {
        let check = |words: [u32; 4], expected: &[Violation]| {
            assert_eq!(violations(&words, &decode(&words).unwrap()), expected, "{words:08x?}");
        };
        let zeros = 0x0124_8000;
        check([0, 0, 0, 0], &[]);
        check([0x00f0_0203, 0x00d1_0001, 0x0124_8001, 0x0124_8001], &[]);
        check([3, 4, 0, 0], &[Violation::ReservedBits { word: 1, bits: 4 }]);
        check([1 << 28 | 1 << 6, 0, 0, 0], &[Violation::DualWithoutVector]);
        check([1 << 28 | 4, 0, 0, 0], &[Violation::DualNeedsThirdOperand(VeOp::VE_MULTIPLY_ADD)]);
        check([1 << 28 | 3, 0, 0, 4 << 21], &[Violation::DualNeedsThirdScalar(MeOp::ME_LIGHT_COEFF_DX)]);
        check([1 << 28 | 3, 0, 0, 5 << 21 | 4], &[Violation::DualPredicate(MeOp::ME_PRED_SET_EQ)]);
        check(
            [1 << 20 | 3, 7 << 13, zeros, zeros],
            &[Violation::ReservedSelect { operand: 'A', select: Select::UNUSED }],
        );
        check([1 << 21 | 3, 7 << 13, zeros, zeros], &[]);
        check([1 << 20 | 1 << 8 | 3, zeros, zeros, zeros], &[Violation::AddressByOther("VE_ADD")]);
    }

    /// Sources: Mesa, `t_src_conflict` and the macro for three temporaries; docs/r500-vertex.md 4.2.
    #[test]
    fn files_are_read_at_few_addresses() {
        let source = |file: u32, register: u32| 0x0124_8000 | file | register << 5;
        let count = |op: u32, sources: [u32; 3]| {
            let words = [op, sources[0], sources[1], sources[2]];
            violations(&words, &decode(&words).unwrap())
        };
        let mad = 4;
        assert_eq!(count(mad, [source(0, 0), source(0, 1), source(0, 0)]), []);
        assert_eq!(
            count(mad, [source(0, 0), source(0, 1), source(0, 2)]),
            [Violation::TooManyReads { file: SrcType::TEMPORARY, count: 3, most: 2 }]
        );
        assert_eq!(count(0x80, [source(0, 0), source(0, 1), source(0, 2)]), []);
        assert_eq!(count(mad, [source(2, 5), source(2, 5), source(1, 5)]), []);
        assert_eq!(
            count(mad, [source(2, 5), source(2, 6), source(1, 5)]),
            [Violation::TooManyReads { file: SrcType::CONSTANT, count: 2, most: 1 }]
        );
        // The first two addresses have the same register number. One of the two addresses is relative, so the check
        // counts two different addresses.
        assert_eq!(count(mad, [source(2, 5), source(2, 5) | 16, source(1, 5)]).len(), 1);
    }
}
