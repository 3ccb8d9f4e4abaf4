//! The operations of the vector engine and the math engine. Each row has the operands, accuracy, first chip family, and
//! computation of one operation.
//!
//! Source: docs/r500-vertex.md, section 3. [`mod@super::lane`] defines the arithmetic.

use reconverge_isa::{FieldValue, Name};
use reconverge_simt::Fidelity::{self, Approximate, Recommended, Specified};

use super::inst::{Dst, Inst, Op};
use super::lane::{self, Compare};
use super::words::{DstType, MacroOp, MeOp, VeOp};

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// For each of A, B and C, whether the operation reads the operand.
    pub operands: [bool; 3],
    /// Whether the operation exists only on R500, and not on earlier chips.
    pub r500_only: bool,
    /// Accuracy of the value.
    pub fidelity: Fidelity,
    /// Computation of the value.
    pub value: Value,
}

/// Computation of an operation's value.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// No value.
    Nothing,
    /// Each channel of the result is computed from the same channel of the operands.
    Channel(fn(f32, f32, f32) -> f32),
    /// The dot product, written to all channels.
    Dot,
    /// The vector 1, A.y * B.y, A.z, B.w.
    Distance,
    /// One number, computed from the x and w channels and written to all channels. ([`lane::multiply_clamp`])
    MultiplyClamp,
    /// An integer for A0 in each channel.
    Address(fn(f32) -> f32),
    /// Predicate and counter, computed from A.w and B.w. ([`lane::push`])
    Push(Compare),
    /// B, written only to the channels in which the comparison of A with zero holds.
    Write(Compare),
    /// One number, computed from the w channels and written to all channels.
    Scalar(fn(f32, f32, f32) -> f32),
    /// Four numbers, computed from the w channels.
    Vector(fn(f32, f32, f32) -> [f32; 4]),
    /// Predicate and counter, computed from A.w.
    Predicate(fn(f32) -> (bool, f32)),
}

const NONE: [bool; 3] = [false; 3];
const A: [bool; 3] = [true, false, false];
const AB: [bool; 3] = [true, true, false];
const AC: [bool; 3] = [true, false, true];
const ABC: [bool; 3] = [true; 3];
const ALL: bool = false;
const R5: bool = true;

const fn row(operands: [bool; 3], r500_only: bool, fidelity: Fidelity, value: Value) -> Operation {
    Operation { operands, r500_only, fidelity, value }
}

impl VeOp {
    /// Returns the row of this operation.
    #[rustfmt::skip]
    pub const fn operation(self) -> &'static Operation {
        match self {
            VeOp::VECTOR_NO_OP =>              &const { row(NONE, ALL, Specified,   Value::Nothing) },
            VeOp::VE_DOT_PRODUCT =>            &const { row(AB,   ALL, Approximate, Value::Dot) },
            VeOp::VE_MULTIPLY =>               &const { row(AB,   ALL, Approximate, Value::Channel(|a, b, _| lane::multiply(a, b))) },
            VeOp::VE_ADD =>                    &const { row(AB,   ALL, Approximate, Value::Channel(|a, b, _| lane::add(a, b))) },
            VeOp::VE_MULTIPLY_ADD =>           &const { row(ABC,  ALL, Approximate, Value::Channel(lane::multiply_add)) },
            VeOp::VE_DISTANCE_VECTOR =>        &const { row(AB,   ALL, Approximate, Value::Distance) },
            VeOp::VE_FRACTION =>               &const { row(A,    ALL, Approximate, Value::Channel(|a, _, _| lane::fraction(a))) },
            VeOp::VE_MAXIMUM =>                &const { row(AB,   ALL, Specified,   Value::Channel(|a, b, _| lane::maximum(a, b))) },
            VeOp::VE_MINIMUM =>                &const { row(AB,   ALL, Specified,   Value::Channel(|a, b, _| lane::minimum(a, b))) },
            VeOp::VE_SET_GREATER_THAN_EQUAL => &const { row(AB,   ALL, Specified,   Value::Channel(|a, b, _| lane::set(a >= b))) },
            VeOp::VE_SET_LESS_THAN =>          &const { row(AB,   ALL, Specified,   Value::Channel(|a, b, _| lane::set(a < b))) },
            VeOp::VE_MULTIPLYX2_ADD =>         &const { row(ABC,  ALL, Approximate, Value::Channel(lane::multiply_x2_add)) },
            VeOp::VE_MULTIPLY_CLAMP =>         &const { row(ABC,  ALL, Approximate, Value::MultiplyClamp) },
            VeOp::VE_FLT2FIX_DX =>             &const { row(A,    ALL, Specified,   Value::Address(lane::to_fixed)) },
            VeOp::VE_FLT2FIX_DX_RND =>         &const { row(A,    ALL, Specified,   Value::Address(lane::to_fixed_rounded)) },
            VeOp::VE_PRED_SET_EQ_PUSH =>       &const { row(AB,   R5,  Recommended, Value::Push(Compare::Eq)) },
            VeOp::VE_PRED_SET_GT_PUSH =>       &const { row(AB,   R5,  Recommended, Value::Push(Compare::Gt)) },
            VeOp::VE_PRED_SET_GTE_PUSH =>      &const { row(AB,   R5,  Recommended, Value::Push(Compare::Ge)) },
            VeOp::VE_PRED_SET_NEQ_PUSH =>      &const { row(AB,   R5,  Recommended, Value::Push(Compare::Ne)) },
            VeOp::VE_COND_WRITE_EQ =>          &const { row(AB,   R5,  Recommended, Value::Write(Compare::Eq)) },
            VeOp::VE_COND_WRITE_GT =>          &const { row(AB,   R5,  Recommended, Value::Write(Compare::Gt)) },
            VeOp::VE_COND_WRITE_GTE =>         &const { row(AB,   R5,  Recommended, Value::Write(Compare::Ge)) },
            VeOp::VE_COND_WRITE_NEQ =>         &const { row(AB,   R5,  Recommended, Value::Write(Compare::Ne)) },
            VeOp::VE_COND_MUX_EQ =>            &const { row(ABC,  R5,  Specified,   Value::Channel(|a, b, c| if Compare::Eq.holds(a) { b } else { c })) },
            VeOp::VE_COND_MUX_GT =>            &const { row(ABC,  R5,  Specified,   Value::Channel(|a, b, c| if Compare::Gt.holds(a) { b } else { c })) },
            VeOp::VE_COND_MUX_GTE =>           &const { row(ABC,  R5,  Specified,   Value::Channel(|a, b, c| if Compare::Ge.holds(a) { b } else { c })) },
            VeOp::VE_SET_GREATER_THAN =>       &const { row(AB,   R5,  Specified,   Value::Channel(|a, b, _| lane::set(a > b))) },
            VeOp::VE_SET_EQUAL =>              &const { row(AB,   R5,  Specified,   Value::Channel(|a, b, _| lane::set(a == b))) },
            VeOp::VE_SET_NOT_EQUAL =>          &const { row(AB,   R5,  Specified,   Value::Channel(|a, b, _| lane::set(a != b))) },
        }
    }
}

impl MeOp {
    /// Returns the row of this operation.
    #[rustfmt::skip]
    pub const fn operation(self) -> &'static Operation {
        match self {
            MeOp::MATH_NO_OP =>               &const { row(NONE, ALL, Specified,   Value::Nothing) },
            MeOp::ME_EXP_BASE2_DX =>          &const { row(A,    ALL, Approximate, Value::Vector(|a, _, _| lane::exp_base2(a))) },
            MeOp::ME_LOG_BASE2_DX =>          &const { row(A,    ALL, Approximate, Value::Vector(|a, _, _| lane::log_base2(a))) },
            MeOp::ME_EXP_BASEE_FF =>          &const { row(A,    ALL, Approximate, Value::Scalar(|a, _, _| lane::exp_base_e(a))) },
            MeOp::ME_LIGHT_COEFF_DX =>        &const { row(ABC,  ALL, Approximate, Value::Vector(lane::light)) },
            MeOp::ME_POWER_FUNC_FF =>         &const { row(AC,   ALL, Approximate, Value::Scalar(|a, _, c| lane::power(a, c))) },
            MeOp::ME_RECIP_DX =>              &const { row(A,    ALL, Approximate, Value::Scalar(|a, _, _| lane::recip_dx(a))) },
            MeOp::ME_RECIP_FF =>              &const { row(A,    ALL, Approximate, Value::Scalar(|a, _, _| lane::recip_ff(a))) },
            MeOp::ME_RECIP_SQRT_DX =>         &const { row(A,    ALL, Approximate, Value::Scalar(|a, _, _| lane::recip_sqrt_dx(a))) },
            MeOp::ME_RECIP_SQRT_FF =>         &const { row(A,    ALL, Approximate, Value::Scalar(|a, _, _| lane::recip_sqrt_ff(a))) },
            MeOp::ME_MULTIPLY =>              &const { row(AB,   ALL, Approximate, Value::Scalar(|a, b, _| lane::multiply(a, b))) },
            MeOp::ME_EXP_BASE2_FULL_DX =>     &const { row(A,    ALL, Approximate, Value::Scalar(|a, _, _| lane::exp_base2_full(a))) },
            MeOp::ME_LOG_BASE2_FULL_DX =>     &const { row(A,    ALL, Approximate, Value::Scalar(|a, _, _| lane::log_base2_full(a))) },
            MeOp::ME_POWER_FUNC_FF_CLAMP_B => &const { row(ABC,  ALL, Approximate, Value::Scalar(lane::power_clamp_b)) },
            MeOp::ME_POWER_FUNC_FF_CLAMP_B1 => &const { row(ABC, ALL, Approximate, Value::Scalar(lane::power_clamp_b1)) },
            MeOp::ME_POWER_FUNC_FF_CLAMP_01 => &const { row(AC,  ALL, Approximate, Value::Scalar(|a, _, c| lane::power_clamp_01(a, c))) },
            // For chips before R500, Mesa computes sine and cosine with polynomials. (docs/r500-vertex.md, D8)
            MeOp::ME_SIN =>                   &const { row(A,    ALL, Approximate, Value::Scalar(|a, _, _| lane::sine(a))) },
            MeOp::ME_COS =>                   &const { row(A,    ALL, Approximate, Value::Scalar(|a, _, _| lane::cosine(a))) },
            MeOp::ME_LOG_BASE2_IEEE =>        &const { row(A,    R5,  Approximate, Value::Scalar(|a, _, _| lane::log_base2_ieee(a))) },
            MeOp::ME_RECIP_IEEE =>            &const { row(A,    R5,  Approximate, Value::Scalar(|a, _, _| lane::recip_ieee(a))) },
            MeOp::ME_RECIP_SQRT_IEEE =>       &const { row(A,    R5,  Approximate, Value::Scalar(|a, _, _| lane::recip_sqrt_ieee(a))) },
            MeOp::ME_PRED_SET_EQ =>           &const { row(A,    R5,  Recommended, Value::Predicate(|a| lane::predicate(Compare::Eq, a))) },
            MeOp::ME_PRED_SET_GT =>           &const { row(A,    R5,  Recommended, Value::Predicate(|a| lane::predicate(Compare::Gt, a))) },
            MeOp::ME_PRED_SET_GTE =>          &const { row(A,    R5,  Recommended, Value::Predicate(|a| lane::predicate(Compare::Ge, a))) },
            MeOp::ME_PRED_SET_NEQ =>          &const { row(A,    R5,  Recommended, Value::Predicate(|a| lane::predicate(Compare::Ne, a))) },
            MeOp::ME_PRED_SET_CLR =>          &const { row(NONE, R5,  Recommended, Value::Predicate(lane::clear)) },
            MeOp::ME_PRED_SET_INV =>          &const { row(A,    R5,  Recommended, Value::Predicate(lane::invert)) },
            MeOp::ME_PRED_SET_POP =>          &const { row(A,    R5,  Recommended, Value::Predicate(lane::pop)) },
            MeOp::ME_PRED_SET_RESTORE =>      &const { row(A,    R5,  Recommended, Value::Predicate(lane::restore)) },
        }
    }
}

impl MacroOp {
    /// Returns the row of this operation.
    pub const fn operation(self) -> &'static Operation {
        match self {
            MacroOp::MACRO_OP_2CLK_MADD => VeOp::VE_MULTIPLY_ADD.operation(),
            MacroOp::MACRO_OP_2CLK_M2X_ADD => VeOp::VE_MULTIPLYX2_ADD.operation(),
        }
    }
}

impl Op {
    /// Returns the row of this operation.
    pub const fn operation(self) -> &'static Operation {
        match self {
            Op::Vector(op) => op.operation(),
            Op::Math(op) => op.operation(),
            Op::Macro(op) => op.operation(),
        }
    }

    /// Returns the names of all operations of the engine that executes this operation. Also returns the code of this
    /// operation.
    pub(crate) const fn names(self) -> (&'static [Name], u32) {
        match self {
            Op::Vector(op) => (VeOp::NAMES, op as u32),
            Op::Math(op) => (MeOp::NAMES, op as u32),
            Op::Macro(op) => (MacroOp::NAMES, op as u32),
        }
    }

    /// Returns the name in the manual.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Vector(op) => op.name(),
            Op::Math(op) => op.name(),
            Op::Macro(op) => op.name(),
        }
    }
}

impl Operation {
    /// Returns whether the operation writes the predicate bit.
    pub const fn sets_predicate(&self) -> bool {
        matches!(self.value, Value::Push(_) | Value::Predicate(_))
    }

    /// Returns the channels of each operand that affect the result channels in the mask `wanted`. Bit 0 is x.
    pub const fn reads(&self, wanted: u8) -> [u8; 3] {
        let all = if wanted == 0 && !self.sets_predicate() { 0 } else { 15 };
        let masks = match self.value {
            Value::Nothing => [0; 3],
            Value::Channel(_) | Value::Address(_) | Value::Write(_) => [wanted; 3],
            Value::Dot => [all; 3],
            Value::Distance => [wanted & 6, wanted & 10, 0],
            Value::MultiplyClamp => [all & 9; 3],
            Value::Push(_) | Value::Scalar(_) | Value::Vector(_) | Value::Predicate(_) => [all & 8; 3],
        };
        let [a, b, c] = self.operands;
        [if a { masks[0] } else { 0 }, if b { masks[1] } else { 0 }, if c { masks[2] } else { 0 }]
    }
}

impl Inst {
    /// Returns the row of the operation.
    pub const fn operation(&self) -> &'static Operation {
        self.op.operation()
    }

    /// Returns the channels of each operand that affect the result. Bit 0 is x.
    pub const fn reads(&self) -> [u8; 3] {
        self.operation().reads(self.dst.wanted())
    }
}

impl Dst {
    /// Returns the channels of the result that the instruction writes. Bit 0 is x.
    pub const fn wanted(&self) -> u8 {
        match self.file {
            DstType::OUT_REPL_X if self.mask != 0 => 1,
            _ => self.mask,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_read_what_the_result_needs() {
        assert_eq!(VeOp::VE_ADD.operation().reads(5), [5, 5, 0]);
        assert_eq!(VeOp::VE_DOT_PRODUCT.operation().reads(1), [15, 15, 0]);
        assert_eq!(VeOp::VE_DISTANCE_VECTOR.operation().reads(15), [6, 10, 0]);
        assert_eq!(MeOp::ME_POWER_FUNC_FF.operation().reads(1), [8, 0, 8]);
        assert_eq!(VeOp::VE_MULTIPLY_ADD.operation().reads(0), [0; 3]);
        assert_eq!(MeOp::ME_PRED_SET_NEQ.operation().reads(0), [8, 0, 0]);
    }
}
