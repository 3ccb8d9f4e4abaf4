//! Encodings that the documents forbid. The hardware could execute these encodings.

use thiserror::Error;

use crate::inst::{Alu, Body, Inst, WORDS};
use crate::words::*;

/// A rule of the documents that an executable encoding violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// Reserved bits are set. In lenient mode, these bits are ignored.
    #[error("reserved bits {bits:#010x} of word {word} are set")]
    ReservedBits {
        /// Number of the word, 0 to 5.
        word: u8,
        /// The reserved bits that are set.
        bits: u32,
    },
    /// An FC instruction selects the predicate RGBA. An FC instruction has only one predicate bit. In lenient mode, the
    /// instruction uses the red bit. (CTM guide p. 31)
    #[error("an FC instruction cannot use RGB_PRED_SEL = RGBA: it has one predicate")]
    FcPredicatePerChannel,
    /// A TEX or FC instruction has a write mask for outputs or predicates. In lenient mode, the mask is ignored.
    #[error("RGB_OMASK and ALPHA_OMASK do not have a meaning on TEX and FC instructions")]
    OmaskOnTexOrFc,
    /// The RGB unit has the operation SOP, but the alpha unit does not have a transcendental operation. In lenient
    /// mode, SOP returns operand A of the alpha unit. (REG)
    #[error("SOP needs EX2, LN2, RCP, RSQ, SIN or COS in the alpha unit")]
    SopWithoutTranscendental,
    /// The alpha unit has the operation DP, but the RGB unit does not have a dot product. In lenient mode, DP returns
    /// the red channel of the RGB unit's operand A. (REG)
    #[error("alpha DP needs DP3, DP4 or D2A in the RGB unit")]
    DpWithoutDotProduct,
    /// OMOD is disabled for an operation that computes a new value. In lenient mode, the value is not scaled. (CTM
    /// guide p. 29)
    #[error("OMOD DISABLED is only valid for MIN, MAX, CND and CMP")]
    OmodDisabledOnArithmetic,
    /// The REL bit of an inline constant is set. In lenient mode, REL is ignored. (CTM guide p. 26, table of operands)
    #[error("an inline constant cannot be relative")]
    RelativeInline,
    /// The ALU_WMASK bit of an OUT instruction is set. In lenient mode, the instruction does not write the ALU result.
    /// (The CTM guide, p. 35, says "any ALU instruction".)
    #[error("ALU_WMASK is only valid on ALU instructions")]
    AluResultOnOut,
    /// The W_OMASK bit of an ALU instruction is set. In lenient mode, the bit is ignored. (REG)
    #[error("W_OMASK is only valid on OUT instructions")]
    DepthOnAlu,
}

/// Returns the rules of the documents that the instruction in `words` violates, ordered by word.
pub fn violations(words: &[u32; WORDS], inst: &Inst) -> Vec<Violation> {
    let mut found = Vec::new();
    for (word, (info, raw)) in layout(inst.common.r#type).iter().zip(words).enumerate() {
        // The manual also says "write 0" for unused words. No document says that the hardware reads unused words. So
        // this function does not check unused words.
        let bits = raw & !info.owned;
        if bits != 0 && !info.fields.is_empty() {
            found.push(Violation::ReservedBits { word: word as u8, bits });
        }
    }
    let has_omask = inst.common.rgb_omask != 0 || inst.common.alpha_omask;
    match &inst.body {
        Body::Alu(alu) => alu_violations(words, inst.common.r#type, alu, &mut found),
        Body::Fc(_) => {
            if inst.common.rgb_pred_sel == PredSel::RGBA {
                found.push(Violation::FcPredicatePerChannel);
            }
            if has_omask {
                found.push(Violation::OmaskOnTexOrFc);
            }
        }
        Body::Tex(_) if has_omask => found.push(Violation::OmaskOnTexOrFc),
        Body::Tex(_) => {}
    }
    found
}

fn alu_violations(words: &[u32; WORDS], kind: InstType, alu: &Alu, found: &mut Vec<Violation>) {
    if alu.rgb.op == RgbOp::SOP && !alu.alpha.op.is_transcendental() {
        found.push(Violation::SopWithoutTranscendental);
    }
    if alu.alpha.op == AlphaOp::DP && !alu.rgb.op.is_dot_product() {
        found.push(Violation::DpWithoutDotProduct);
    }
    if (alu.rgb.omod == Omod::DISABLED && !alu.rgb.op.operation().is_choice())
        || (alu.alpha.omod == Omod::DISABLED && !alu.alpha.op.operation().is_choice())
    {
        found.push(Violation::OmodDisabledOnArithmetic);
    }
    for word in &words[1..3] {
        for base in [0, 10, 20] {
            if word >> base & 0x380 == 0x280 {
                found.push(Violation::RelativeInline);
            }
        }
    }
    if kind == InstType::OUT && alu.alu_wmask {
        found.push(Violation::AluResultOnOut);
    }
    if kind == InstType::ALU && alu.w_omask {
        found.push(Violation::DepthOnAlu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inst::decode;

    #[test]
    fn forbidden_combinations_are_named() {
        let check = |words: [u32; 6], expected: &[Violation]| {
            assert_eq!(violations(&words, &decode(&words).unwrap()), expected);
        };
        check([0, 0x8_0200, 0x8_0200, 0, 0, 0], &[]);
        check([0, 0x280, 0, 0, 0, 0], &[Violation::RelativeInline]);
        check([0, 0, 0, 0, 0, 10], &[Violation::SopWithoutTranscendental]);
        check([0, 0, 0, 0, 1, 0], &[Violation::DpWithoutDotProduct]);
        check([0, 0, 0, 7 << 26, 0, 0], &[Violation::OmodDisabledOnArithmetic]);
        check([1, 0, 0, 1 << 31, 0, 0], &[Violation::AluResultOnOut]);
        check([0, 0, 0, 0, 1 << 31, 0], &[Violation::DepthOnAlu]);
        check([2 | 1 << 3, 0, 0, 0, 0, 0], &[Violation::FcPredicatePerChannel]);
        check([3 | 1 << 18, 0, 0, 0, 0, 0], &[Violation::OmaskOnTexOrFc]);
        check([2, 0, 8, 0, 0, 0], &[Violation::ReservedBits { word: 2, bits: 8 }]);
    }
}
