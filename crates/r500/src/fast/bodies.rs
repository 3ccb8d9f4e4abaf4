//! Operations other than arithmetic. Some operations compute lane sets, predicate bits and the ALU result. Some
//! operations record which outputs the lanes have written. Some operations read values of neighbouring lanes in a quad.

use std::marker::PhantomData;

use reconverge_simt::Mask;
use reconverge_simt::wide::Wide;

use super::kernels::{Kernel, sources};
use super::lanes::{Body, CHUNK, Lanes, Operation, Words};
use super::operands::Set;
use crate::words::AluResultOp;

/// Computes a lane set. `number[1]` is [`Set::ACTIVE`] or [`Set::ALL`]. The computed set consists of the lanes of set
/// `number[1]` in which predicate bit `number[0]` is set.
pub(super) struct Predicated;

impl Body for Predicated {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let bits = lanes.predicate[usize::from(operation.number[0] & 3)];
        let holding = if operation.inverted { !bits } else { bits };
        let members = lanes.set(Set(operation.number[1])) & holding;
        lanes.choose(operation.set, members);
    }
}

/// Comparison code for [`Predicate`] and [`AluResult`]: equal to zero.
pub(super) const EQ: u8 = AluResultOp::EQ as u8;
/// Comparison code: below zero.
pub(super) const LT: u8 = AluResultOp::LT as u8;
/// Comparison code: zero or above.
pub(super) const GE: u8 = AluResultOp::GE as u8;
/// Comparison code: not equal to zero, or a NaN.
pub(super) const NE: u8 = AluResultOp::NE as u8;

/// For each lane, applies [`crate::lane::compare`] to the first source and returns the result.
#[inline(always)]
fn comparing<W: Wide, const OP: u8>(wide: W, lanes: &Lanes<'_>, operation: &Operation) -> Mask {
    let mut bits = 0;
    for chunk in lanes.chunks() {
        let words = compared::<OP>(&lanes.read(operation.channels[0].src[0], chunk));
        bits |= wide.signs(&words) << (chunk * CHUNK);
    }
    Mask(bits)
}

/// Compares the word of each lane with zero. Returns a word per lane: all bits are 1 if the comparison is true, and 0
/// otherwise.
#[inline(always)]
fn compared<const OP: u8>(words: &Words) -> Words {
    let mut result = [0; CHUNK];
    for lane in 0..CHUNK {
        let x = words[lane];
        // Denormals compare as zeros. Negative numbers range from -MIN_POSITIVE to -infinity.
        let zero = x & 0x7fff_ffff < 0x0080_0000;
        let negative = x.wrapping_sub(0x8080_0000) <= 0x7f00_0000;
        let nan = x & 0x7fff_ffff > 0x7f80_0000;
        let holds = match OP {
            EQ => zero,
            LT => negative,
            GE => !negative & !nan,
            _ => !zero,
        };
        result[lane] = if holds { u32::MAX } else { 0 };
    }
    result
}

/// Compares the first source with zero, and writes the result to predicate bit `number[0]`, for the operation's lanes.
pub(super) struct Predicate<const OP: u8>;

impl<const OP: u8> Body for Predicate<OP> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let holding = comparing::<W, OP>(wide, lanes, operation);
        let members = lanes.set(operation.set);
        let bits = &mut lanes.predicate[usize::from(operation.number[0] & 3)];
        *bits = (*bits - members) | (holding & members);
    }
}

/// Compares the first source with zero, and writes the result to the ALU result, for the operation's lanes.
pub(super) struct AluResult<const OP: u8>;

impl<const OP: u8> Body for AluResult<OP> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let holding = comparing::<W, OP>(wide, lanes, operation);
        write_alu_result(lanes, operation.set, holding);
    }
}

/// Computes a kernel's result, compares the result with zero, and writes the outcome to the ALU result. The kernel's
/// result is not stored, because no operation reads the result later.
pub(super) struct AluResultOf<K, const OP: u8>(PhantomData<K>);

impl<K: Kernel, const OP: u8> Body for AluResultOf<K, OP> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let mut bits = 0;
        for chunk in lanes.chunks() {
            let channel = &operation.channels[0];
            let value = K::chunk(wide, operation, channel, sources::<K>(lanes, channel, chunk));
            bits |= wide.signs(&compared::<OP>(&value)) << (chunk * CHUNK);
        }
        write_alu_result(lanes, operation.set, Mask(bits));
    }
}

#[inline(always)]
fn write_alu_result(lanes: &mut Lanes<'_>, set: Set, holding: Mask) {
    let members = lanes.set(set);
    *lanes.alu_result = (*lanes.alu_result - members) | (holding & members);
    *lanes.alu_result_valid |= members;
}

/// Records that the operation's lanes have written channel `number[1]` of target `number[0]`.
pub(super) struct ColorWritten;

impl Body for ColorWritten {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let members = lanes.set(operation.set);
        let [target, channel] = operation.number.map(|number| usize::from(number & 3));
        lanes.written.color[target][channel] |= members;
    }
}

/// Records that the operation's lanes have written the depth output.
pub(super) struct DepthWritten;

impl Body for DepthWritten {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let members = lanes.set(operation.set);
        lanes.written.depth |= members;
    }
}

/// In each quad, copies the first source of lane `number[0]` to all four lanes. (REG, MDH and MDV)
pub(super) struct OfQuad;

impl Body for OfQuad {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let channel = &operation.channels[0];
        let from = usize::from(operation.number[0] & 3);
        for chunk in lanes.chunks() {
            let src = lanes.read(channel.src[0], chunk);
            let mut result = [0; CHUNK];
            for lane in 0..CHUNK {
                result[lane] = src[(lane & !3) + from];
            }
            lanes.write(channel.dst, chunk, result);
        }
    }
}

/// Reads channel `number[1]` of temporary `number[0]` + aL.
pub(super) struct TempByAl;

impl Body for TempByAl {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let [base, channel] = operation.number;
        let from = lanes.temp_by_al(base, channel);
        for chunk in lanes.chunks() {
            lanes.write(operation.channels[0].dst, chunk, lanes.read(from, chunk));
        }
    }
}

/// Reads channel `number[1]` of constant `number[0]` + aL, in every lane.
pub(super) struct ConstantByAl;

impl Body for ConstantByAl {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let [base, channel] = operation.number;
        let bits = lanes.constant_by_al(base, channel);
        for chunk in lanes.chunks() {
            lanes.write(operation.channels[0].dst, chunk, [bits; CHUNK]);
        }
    }
}

/// Writes the first source to channel `number[1]` of temporary `number[0]` + aL, for the operation's lanes.
pub(super) struct ToTempByAl;

impl Body for ToTempByAl {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let [base, channel] = operation.number;
        let to = lanes.temp_by_al(base, channel);
        for chunk in lanes.chunks() {
            let words = lanes.read(operation.channels[0].src[0], chunk);
            lanes.blend(wide, to, chunk, operation.set, words);
        }
    }
}

/// Executes TEXKILL for one channel. Kills a lane of the operation's set if the sign bit of the lane's first source is
/// set. ([`crate::lane::texkill`])
pub(super) struct Killed;

impl Body for Killed {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let mut negative = 0;
        for chunk in lanes.chunks() {
            let words = lanes.read(operation.channels[0].src[0], chunk);
            negative |= wide.signs(&words) << (chunk * CHUNK);
        }
        let killed = lanes.set(operation.set) & Mask(negative);
        *lanes.killed |= killed;
        lanes.covered = lanes.covered - killed;
    }
}
