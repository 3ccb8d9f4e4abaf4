//! Operations that are not arithmetic: lane sets, predicate bits and the ALU result, marks of written outputs, values of
//! a quad's lanes.

use reconverge_simt::Mask;

use super::lanes::{Body, CHUNK, Lanes, Operation, Set, Wide, Words};
use crate::words::AluResultOp;

/// A set = the lanes of [`Set::ACTIVE`] or [`Set::ALL`], by `number[1]`, whose predicate bit `number[0]` says so.
pub(super) struct Predicated;

impl Body for Predicated {
    #[inline(always)]
    unsafe fn run<W: Wide>(lanes: &mut Lanes<'_>, operation: &Operation) {
        let bits = lanes.predicate[usize::from(operation.number[0] & 3)];
        let holding = if operation.inverted { !bits } else { bits };
        let members = lanes.set(Set(operation.number[1])) & holding;
        // SAFETY: the caller has the level of W.
        unsafe { lanes.choose::<W>(operation.set, members) };
    }
}

/// [`crate::lane::compare`] for the whole row of the first source.
#[inline(always)]
fn comparing<W: Wide>(lanes: &Lanes<'_>, operation: &Operation) -> Mask {
    let mut bits = 0;
    for chunk in 0..lanes.chunks {
        let words = compared(lanes.read(operation.channels[0].src[0], chunk), operation.compare);
        // SAFETY: the callers have the level of W.
        bits |= u64::from(unsafe { W::signs(&words) }) << (chunk * CHUNK);
    }
    Mask(bits)
}

#[inline(always)]
pub(super) fn compared(words: Words, op: AluResultOp) -> Words {
    let all = |yes: bool| if yes { u32::MAX } else { 0 };
    // Denormals are zeros; negative numbers are those from -MIN_POSITIVE to -infinity.
    let zero = |x: u32| x & 0x7fff_ffff < 0x0080_0000;
    let negative = |x: u32| x.wrapping_sub(0x8080_0000) <= 0x7f00_0000;
    let nan = |x: u32| x & 0x7fff_ffff > 0x7f80_0000;
    match op {
        AluResultOp::EQ => words.map(|x| all(zero(x))),
        AluResultOp::LT => words.map(|x| all(negative(x))),
        AluResultOp::GE => words.map(|x| all(!negative(x) & !nan(x))),
        AluResultOp::NE => words.map(|x| all(!zero(x))),
    }
}

/// Predicate bit `number[0]` = the comparison, for the operation's lanes.
pub(super) struct Predicate;

impl Body for Predicate {
    #[inline(always)]
    unsafe fn run<W: Wide>(lanes: &mut Lanes<'_>, operation: &Operation) {
        let holding = comparing::<W>(lanes, operation);
        let members = lanes.set(operation.set);
        let bits = &mut lanes.predicate[usize::from(operation.number[0] & 3)];
        *bits = (*bits - members) | (holding & members);
    }
}

/// The ALU result = the comparison, for the operation's lanes.
pub(super) struct AluResult;

impl Body for AluResult {
    #[inline(always)]
    unsafe fn run<W: Wide>(lanes: &mut Lanes<'_>, operation: &Operation) {
        let holding = comparing::<W>(lanes, operation);
        let members = lanes.set(operation.set);
        *lanes.alu_result = (*lanes.alu_result - members) | (holding & members);
        *lanes.alu_result_valid |= members;
    }
}

/// The operation's lanes have written channel `number[1]` of target `number[0]`.
pub(super) struct ColorWritten;

impl Body for ColorWritten {
    #[inline(always)]
    unsafe fn run<W: Wide>(lanes: &mut Lanes<'_>, operation: &Operation) {
        let members = lanes.set(operation.set);
        let [target, channel] = operation.number.map(|number| usize::from(number & 3));
        lanes.written.color[target][channel] |= members;
    }
}

/// The operation's lanes have written the depth output.
pub(super) struct DepthWritten;

impl Body for DepthWritten {
    #[inline(always)]
    unsafe fn run<W: Wide>(lanes: &mut Lanes<'_>, operation: &Operation) {
        let members = lanes.set(operation.set);
        lanes.written.depth |= members;
    }
}

/// The row of the first source with the value of lane `number[0]` of each quad in all four. (REG, MDH and MDV)
pub(super) struct OfQuad;

impl Body for OfQuad {
    #[inline(always)]
    unsafe fn run<W: Wide>(lanes: &mut Lanes<'_>, operation: &Operation) {
        let channel = &operation.channels[0];
        let from = usize::from(operation.number[0] & 3);
        for chunk in 0..lanes.chunks {
            let src = lanes.read(channel.src[0], chunk);
            let mut result = [0; CHUNK];
            for lane in 0..CHUNK {
                result[lane] = src[(lane & !3) + from];
            }
            lanes.write(channel.dst, chunk, result);
        }
    }
}
