//! The operations of the RGB unit and the alpha unit. Each row has the codes, operands, accuracy, computation, and
//! description of one operation.
//!
//! The table follows the opcode tables of the CTM guide, pp. 28-29. [`mod@crate::lane`] defines the arithmetic. The RGB
//! unit and the alpha unit both have an operation if the row has codes in both columns.

use reconverge_simt::Fidelity::{self, Approximate, Specified};

use crate::inst::{Alu, Operand};
use crate::lane;
use crate::words::{AlphaOp, Omod, RgbOp, Sel, SrcpOp, Swiz};

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Code in the RGB unit, if that unit has the operation.
    pub rgb: Option<RgbOp>,
    /// Code in the alpha unit, if that unit has the operation.
    pub alpha: Option<AlphaOp>,
    /// Number of operands. The first operand is A, and the second is B.
    pub operands: usize,
    /// Accuracy of the value.
    pub fidelity: Fidelity,
    /// Computation of the value.
    pub value: Value,
}

/// Computation of an operation's value.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// A * B + C with OMOD, rounded once. ([`lane::sum`])
    Sum,
    /// The sum A * B + C of [`Value::Sum`] with operands from lanes of the quad. A is src0 of lane 0 of the quad, and C
    /// is src0 of another lane. The value is the number of the other lane. The modifiers of A and C apply. (REG, MDH
    /// and MDV)
    Derivative(u8),
    /// A choice between the operands A and B. If OMOD is disabled, the bits of the chosen operand do not change. (CTM
    /// guide p. 29)
    Choice(fn(f32, f32, f32) -> f32, Words),
    /// A function of A. OMOD scales the exact value, and the scaled value is rounded once.
    Rounded(fn(f32, Omod) -> f32, Words),
    /// A function of A that only the alpha unit has. OMOD scales the rounded value. (CTM guide p. 42)
    Transcendental(fn(f32) -> f32, Words),
    /// A dot product. ([`lane::dot`])
    Dot(Dot),
    /// The operation returns a value that the other unit (RGB or alpha) has computed, before OMOD and clamp. DP
    /// forwards the value of the dot product, and SOP forwards the value of the transcendental function.
    Forwarded,
}

/// Description of a value. `{A}`, `{B}` and `{C}` are placeholders for the operands.
pub type Words = &'static str;

/// The terms of a dot product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dot {
    /// A.r * B.r + A.g * B.g + A.b * B.b
    Three,
    /// The sum of [`Dot::Three`] plus the alpha unit's A * B, whatever the alpha opcode is. (CTM guide p. 27)
    Four,
    /// A.r * B.r + A.g * B.g + C.b
    TwoAndAddend,
}

const fn row(
    rgb: Option<RgbOp>,
    alpha: Option<AlphaOp>,
    operands: usize,
    fidelity: Fidelity,
    value: Value,
) -> Operation {
    Operation { rgb, alpha, operands, fidelity, value }
}

/// All operations.
///
/// For operations that return an operand, the documents define the result bit for bit. Operations that round follow
/// profile R, because no document describes the rounding of the hardware. The CTM guide (p. 41) states only that the
/// error is about one bit per input.
#[rustfmt::skip]
pub const OPERATIONS: &[Operation] = &[
    //  RGB unit           alpha unit         operands
    row(Some(RgbOp::MAD), Some(AlphaOp::MAD), 3, Approximate, Value::Sum),
    row(Some(RgbOp::DP3), None,               2, Approximate, Value::Dot(Dot::Three)),
    row(Some(RgbOp::DP4), None,               2, Approximate, Value::Dot(Dot::Four)),
    row(Some(RgbOp::D2A), None,               3, Approximate, Value::Dot(Dot::TwoAndAddend)),
    row(Some(RgbOp::MIN), Some(AlphaOp::MIN), 2, Specified,   Value::Choice(|a, b, _| lane::min(a, b), "the smaller of {A} and {B}")),
    row(Some(RgbOp::MAX), Some(AlphaOp::MAX), 2, Specified,   Value::Choice(|a, b, _| lane::max(a, b), "the larger of {A} and {B}")),
    row(Some(RgbOp::CND), Some(AlphaOp::CND), 3, Specified,   Value::Choice(lane::cnd, "{A} where {C} is above 0.5, {B} elsewhere")),
    row(Some(RgbOp::CMP), Some(AlphaOp::CMP), 3, Specified,   Value::Choice(lane::cmp, "{A} where {C} is zero or above, {B} elsewhere")),
    row(Some(RgbOp::FRC), Some(AlphaOp::FRC), 1, Approximate, Value::Rounded(lane::frc, "the fraction of {A}: {A} minus its floor")),
    row(Some(RgbOp::MDH), Some(AlphaOp::MDH), 3, Approximate, Value::Derivative(1)),
    row(Some(RgbOp::MDV), Some(AlphaOp::MDV), 3, Approximate, Value::Derivative(2)),
    row(Some(RgbOp::SOP), None,               0, Approximate, Value::Forwarded),
    row(None,             Some(AlphaOp::DP),  0, Approximate, Value::Forwarded),
    row(None,             Some(AlphaOp::EX2), 1, Approximate, Value::Transcendental(lane::ex2, "2 to the power of {A}")),
    row(None,             Some(AlphaOp::LN2), 1, Approximate, Value::Transcendental(lane::ln2, "the base-2 logarithm of {A}")),
    row(None,             Some(AlphaOp::RCP), 1, Approximate, Value::Transcendental(lane::rcp, "1 / {A}")),
    row(None,             Some(AlphaOp::RSQ), 1, Approximate, Value::Transcendental(lane::rsq, "1 / the square root of {A}")),
    row(None,             Some(AlphaOp::SIN), 1, Approximate, Value::Transcendental(lane::sin, "the sine of {A} turns")),
    row(None,             Some(AlphaOp::COS), 1, Approximate, Value::Transcendental(lane::cos, "the cosine of {A} turns")),
];

/// Returns the row index of each code. If a code has no row or two rows, compilation fails.
macro_rules! rows {
    ($Op:ident, $unit:ident) => {{
        let mut places = [u8::MAX; 16];
        let mut place = 0;
        while place < OPERATIONS.len() {
            if let Some(op) = OPERATIONS[place].$unit {
                assert!(places[op as usize] == u8::MAX, "a code has one row");
                places[op as usize] = place as u8;
            }
            place += 1;
        }
        let mut number = 0;
        while number < $Op::ALL.len() {
            assert!(places[$Op::ALL[number] as usize] != u8::MAX, "every code has a row");
            number += 1;
        }
        places
    }};
}

const RGB: [u8; 16] = rows!(RgbOp, rgb);
const ALPHA: [u8; 16] = rows!(AlphaOp, alpha);

impl RgbOp {
    /// Returns the row of this code.
    pub const fn operation(self) -> &'static Operation {
        &OPERATIONS[RGB[self as usize] as usize]
    }

    /// Returns whether all channels of the result hold the same dot product.
    pub const fn is_dot_product(self) -> bool {
        matches!(self.operation().value, Value::Dot(_))
    }
}

impl AlphaOp {
    /// Returns the row of this code.
    pub const fn operation(self) -> &'static Operation {
        &OPERATIONS[ALPHA[self as usize] as usize]
    }

    /// Returns whether only the alpha unit has this function.
    pub const fn is_transcendental(self) -> bool {
        matches!(self.operation().value, Value::Transcendental(..))
    }
}

impl Operation {
    /// Returns whether the result is always one of the operands. Only in this case may OMOD be disabled. (CTM guide p.
    /// 29)
    pub const fn is_choice(&self) -> bool {
        matches!(self.value, Value::Choice(..))
    }
}

/// The unit that executes one half of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The RGB unit, for red, green and blue.
    Rgb,
    /// The alpha unit.
    Alpha,
}

/// Calls `read` for each source and channel that a unit's operation reads. `wanted` states which results of the RGB
/// unit (red, green and blue) are needed. The last argument of `read` states whether the operation reads the source in
/// all lanes of the quad. An SOP or DP that forwards the value of the other unit reads no source. So the function does
/// not call `read` for the forwarded value.
pub(crate) fn each_read(alu: &Alu, unit: Unit, wanted: [bool; 3], read: &mut impl FnMut(Sel, Swiz, bool)) {
    let of_rgb = |number: usize, channel: usize| {
        let Operand { sel, swiz, .. } = alu.rgb.operands[number];
        (sel, swiz[channel], false)
    };
    let of_alpha = |number: usize| {
        let Operand { sel, swiz, .. } = alu.alpha.operands[number];
        (sel, swiz[0], false)
    };
    let mut all = |reads: &mut dyn Iterator<Item = (Sel, Swiz, bool)>| {
        reads.for_each(|(sel, swiz, quad)| read(sel, swiz, quad));
    };
    let (rgb, alpha) = (alu.rgb.op.operation(), alu.alpha.op.operation());
    match (unit, rgb.value) {
        (Unit::Rgb, Value::Dot(dot)) => {
            let terms = if dot == Dot::TwoAndAddend { 0..2 } else { 0..3 };
            all(&mut terms.flat_map(|channel| [of_rgb(0, channel), of_rgb(1, channel)]));
            match dot {
                Dot::Three => {}
                Dot::Four => all(&mut [of_alpha(0), of_alpha(1)].into_iter()),
                Dot::TwoAndAddend => all(&mut [of_rgb(2, 2)].into_iter()),
            }
        }
        (Unit::Rgb, value) => {
            for channel in (0..3).filter(|channel| wanted[*channel]) {
                match value {
                    Value::Derivative(_) => {
                        let here = [Swiz::R, Swiz::G, Swiz::B][channel];
                        all(&mut [of_rgb(1, channel), (Sel::SRC0, here, true)].into_iter());
                    }
                    _ => all(&mut (0..rgb.operands).map(|number| of_rgb(number, channel))),
                }
            }
        }
        (Unit::Alpha, _) => match alpha.value {
            Value::Derivative(_) => all(&mut [of_alpha(1), (Sel::SRC0, Swiz::A, true)].into_iter()),
            _ => all(&mut (0..alpha.operands).map(of_alpha)),
        },
    }
}

/// Returns the sources of an operand, or `None` for a literal. The first element is the address word (0 RGB, 1 alpha).
/// The second contains the numbers of the sources (0 to 2 for src0 to src2). The third states whether the presubtract
/// combines the sources.
pub(crate) fn sources_of(alu: &Alu, sel: Sel, swiz: Swiz) -> Option<(usize, &'static [usize], bool)> {
    let (word, srcp_op) = match swiz {
        Swiz::R | Swiz::G | Swiz::B => (0, alu.rgb_sources.srcp_op),
        Swiz::A => (1, alu.alpha_sources.srcp_op),
        Swiz::ZERO | Swiz::HALF | Swiz::ONE => return None,
    };
    Some(match (sel, srcp_op) {
        (Sel::SRC0, _) => (word, &[0], false),
        (Sel::SRC1, _) => (word, &[1], false),
        (Sel::SRC2, _) => (word, &[2], false),
        (Sel::SRCP, SrcpOp::SUB | SrcpOp::ADD) => (word, &[0, 1], true),
        (Sel::SRCP, SrcpOp::NEG2 | SrcpOp::NEG) => (word, &[0], true),
    })
}

/// Returns which of src0 to src2 an instruction reads. The first list is for the RGB address word, and the second is
/// for the alpha address word. Only a source that the instruction reads can trap.
pub(crate) fn used_sources(alu: &Alu) -> [[bool; 3]; 2] {
    let mut used = [[false; 3]; 2];
    let mut mark = |sel, swiz, _| {
        if let Some((word, sources, _)) = sources_of(alu, sel, swiz) {
            sources.iter().for_each(|source| used[word][*source] = true);
        }
    };
    each_read(alu, Unit::Rgb, [true; 3], &mut mark);
    each_read(alu, Unit::Alpha, [true; 3], &mut mark);
    used
}
