//! The meaning of each ALU opcode. A meaning has the function of [`lane`] or [`lane64`] that computes the opcode's
//! result, and the fidelity of the opcode.
//!
//! An opcode has one line in the table. The lines have the order of the opcode numbers. The table is a `match` without
//! a catch-all arm, so the module does not compile if an opcode has no meaning.

use std::sync::LazyLock;

use reconverge_isa::FieldValue;

use reconverge_simt::Fidelity;

use crate::chip::Family;
use crate::lane::{self, Predicate};
#[cfg(doc)]
use crate::lane64;
use crate::rules::Rule;
use crate::words::{Op2, Op3};

/// Computation of an opcode.
#[derive(Clone, Copy, Debug)]
pub enum Meaning {
    /// The opcode computes nothing and writes nothing.
    Nothing,
    /// Computes a float from one operand. OMOD and CLAMP apply to the float.
    Float1(fn(u32) -> u32),
    /// Computes a float from two operands. OMOD and CLAMP apply to the float.
    Float2(fn(u32, u32) -> u32),
    /// Computes a float from three operands and multiplies the float by a factor. CLAMP applies to the product.
    Float3(fn(u32, u32, u32) -> u32, f32),
    /// Computes bits from one operand.
    Bits1(fn(u32) -> u32),
    /// Computes bits from two operands.
    Bits2(fn(u32, u32) -> u32),
    /// Computes bits from three operands.
    Bits3(fn(u32, u32, u32) -> u32),
    /// Computes a predicate from up to two operands.
    PredSet(fn(u32, u32) -> Predicate),
    /// Tests up to two operands. If a lane passes the test, the lane becomes invalid and the result is 1.0. For all
    /// other lanes, the result is 0.0.
    Kill(fn(u32, u32) -> bool),
    /// Computes a value for AR.
    Mova(fn(u32) -> i32),
    /// Computes a value for aL.
    MovaLoop(fn(u32) -> i32),
    /// Computes one float from the eight operands of the four vector slots.
    Reduce(fn([u32; 4], [u32; 4]) -> u32),
    /// Computes four floats from the eight operands of the four vector slots.
    Cube,
    /// A double-precision operation over two or four slots.
    Double(Double),
}

impl Meaning {
    /// Returns whether the opcode is a PRED_SET*.
    pub fn sets_predicate(self) -> bool {
        matches!(self, Meaning::PredSet(_) | Meaning::Double(Double::PredSet(_)))
    }

    /// Returns the number of slots that one operation occupies.
    pub fn slots(self) -> u8 {
        match self {
            Meaning::Reduce(_) | Meaning::Cube => 4,
            Meaning::Double(double) => double.slots(),
            _ => 1,
        }
    }

    /// Returns whether the opcode has one result and no other effect. The result must depend only on the operands in
    /// the instruction's slot.
    pub fn is_result_only(self) -> bool {
        match self {
            Meaning::Float1(_)
            | Meaning::Float2(_)
            | Meaning::Float3(..)
            | Meaning::Bits1(_)
            | Meaning::Bits2(_)
            | Meaning::Bits3(_) => true,
            Meaning::Nothing
            | Meaning::PredSet(_)
            | Meaning::Kill(_)
            | Meaning::Mova(_)
            | Meaning::MovaLoop(_)
            | Meaning::Reduce(_)
            | Meaning::Cube
            | Meaning::Double(_) => false,
        }
    }

    /// Returns whether an instruction needs the operands of other slots.
    pub fn spans_slots(self) -> bool {
        self.slots() > 1
    }
}

/// The double-precision operations. Each operation occupies two or four slots.
#[derive(Clone, Copy, Debug)]
pub enum Double {
    /// The sum of two doubles, in two slots.
    Add,
    /// The product of two doubles, in four slots.
    Mul,
    /// The sum of a product and a double, in four slots. The sum is multiplied by this factor.
    MulAdd(f64),
    /// The exponent and the mantissa of a double, in four slots.
    Frexp,
    /// A double times a power of two, in two slots.
    Ldexp,
    /// The fraction of a double, in two slots.
    Fract,
    /// A double converted to a float, in two slots.
    ToFloat,
    /// A float converted to a double, in two slots.
    FromFloat,
    /// A predicate from the comparison of two doubles, in two slots.
    PredSet(fn(u64, u64) -> bool),
}

impl Double {
    /// Returns the number of slots that one operation occupies.
    pub fn slots(self) -> u8 {
        match self {
            Double::Mul | Double::MulAdd(_) | Double::Frexp => 4,
            Double::Add
            | Double::Ldexp
            | Double::Fract
            | Double::ToFloat
            | Double::FromFloat
            | Double::PredSet(_) => 2,
        }
    }
}

/// Number of an opcode in one of the two word formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AluCode {
    /// ALU_INST of the format with two operands.
    Op2(Op2),
    /// ALU_INST of the format with three operands.
    Op3(Op3),
}

impl AluCode {
    /// Returns the manual's name of the opcode.
    pub const fn name(self) -> &'static str {
        match self {
            AluCode::Op2(code) => code.name(),
            AluCode::Op3(code) => code.name(),
        }
    }
}

/// An opcode with its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Opcode {
    /// Number of the opcode in its format.
    pub code: AluCode,
    /// The manual's name of the opcode.
    pub name: &'static str,
    /// The computation.
    pub meaning: Meaning,
    /// Number of operands that the opcode reads, 0 to 3.
    pub sources: u8,
    /// Slots in which the opcode can run.
    pub unit: Unit,
    /// Fidelity of the emulation.
    pub exactness: Fidelity,
    /// The disputed rule that determines the result of the opcode. The field is `None` if no disputed rule affects the
    /// result.
    pub rule: Option<Rule>,
}

/// The slots that an opcode can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The slot of the instruction's destination component only.
    Vector,
    /// Slot t only.
    Trans,
    /// The slot of the instruction's destination component, or slot t.
    Either,
}

use Fidelity::{Approximate, Exact, Recommended, Specified};
use Meaning::{Bits1, Bits2, Bits3, Float1, Float2, Float3, Kill, Mova, PredSet, Reduce};
use Unit::{Either, Trans, Vector};

const fn op(
    code: AluCode,
    meaning: Meaning,
    sources: u8,
    unit: Unit,
    exactness: Fidelity,
    rule: Option<Rule>,
) -> Opcode {
    Opcode { code, name: code.name(), meaning, sources, unit, exactness, rule }
}

/// Returns the OP2 opcode with this number on chips of `family`. If the number is unassigned, the function returns
/// `None`.
pub fn op2_row(number: u32, family: Family) -> Option<&'static Opcode> {
    static ROWS: LazyLock<[[Option<Opcode>; 128]; 2]> = LazyLock::new(|| {
        [Family::R600, Family::R700]
            .map(|family| std::array::from_fn(|number| op2(Op2::from_bits(number as u32, 7)?, family)))
    });
    ROWS[usize::from(family == Family::R700)].get(number as usize)?.as_ref()
}

/// Returns the OP3 opcode with this number, or `None` if the number is unassigned.
pub fn op3_row(number: u32) -> Option<&'static Opcode> {
    static ROWS: LazyLock<[Option<Opcode>; 32]> =
        LazyLock::new(|| std::array::from_fn(|number| Op3::from_bits(number as u32, 5).map(op3)));
    ROWS.get(number as usize)?.as_ref()
}

/// Returns the meaning of an OP2 opcode on chips of `family`. If the family does not have this opcode, the function
/// returns `None`.
#[rustfmt::skip]
pub fn op2(code: Op2, family: Family) -> Option<Opcode> {
    let r600 = family == Family::R600;
    let shift = if r600 { Trans } else { Either };
    let this = AluCode::Op2(code);
    let float1 = |f: fn(u32) -> u32| op(this, Float1(f), 1, Either, Specified, None);
    let float2 = |f: fn(u32, u32) -> u32| op(this, Float2(f), 2, Either, Specified, None);
    let choose = |f: fn(u32, u32) -> u32| op(this, Float2(f), 2, Either, Exact, None);
    let dx10 = |f: fn(u32, u32) -> u32| op(this, Float2(f), 2, Either, Exact, Some(Rule::MAX_DX10_GIVES_THE_NUMBER));
    let bits2 = |f: fn(u32, u32) -> u32| op(this, Bits2(f), 2, Either, Exact, None);
    let trans = |f: fn(u32) -> u32| op(this, Float1(f), 1, Trans, Approximate, Some(Rule::TRANSCENDENTALS_ARE_ROUNDED_ONCE));
    let pred = |f: fn(u32, u32) -> Predicate| op(this, PredSet(f), 2, Either, Exact, None);
    let counter = |f: fn(u32, u32) -> Predicate, sources| op(this, PredSet(f), sources, Either, Recommended, None);
    let kill = |f: fn(u32, u32) -> bool| op(this, Kill(f), 2, Either, Exact, None);
    let double = |d: Double, sources, exactness, rule| op(this, Meaning::Double(d), sources, Vector, exactness, rule);
    let halves = Some(Rule::DOUBLES_TAKE_THE_HIGH_HALF_FIRST);
    Some(match code {
        Op2::ADD => float2(lane::add),
        Op2::MUL => float2(lane::mul),
        Op2::MUL_IEEE => float2(lane::mul_ieee),
        Op2::MAX => choose(lane::max),
        Op2::MIN => choose(lane::min),
        Op2::MAX_DX10 => dx10(lane::max_dx10),
        Op2::MIN_DX10 => dx10(lane::min_dx10),
        Op2::FREXP_64 => double(Double::Frexp, 1, Recommended, halves),
        Op2::SETE => choose(lane::sete),
        Op2::SETGT => choose(lane::setgt),
        Op2::SETGE => choose(lane::setge),
        Op2::SETNE => choose(lane::setne),
        Op2::SETE_DX10 => bits2(lane::sete_dx10),
        Op2::SETGT_DX10 => bits2(lane::setgt_dx10),
        Op2::SETGE_DX10 => bits2(lane::setge_dx10),
        Op2::SETNE_DX10 => bits2(lane::setne_dx10),
        Op2::FRACT => float1(lane::fract),
        Op2::TRUNC => float1(lane::trunc),
        Op2::CEIL => float1(lane::ceil),
        Op2::RNDNE => float1(lane::rndne),
        Op2::FLOOR => float1(lane::floor),
        Op2::MOVA => op(this, Mova(lane::mova), 1, Vector, Specified, None),
        Op2::MOVA_FLOOR => op(this, Mova(lane::mova_floor), 1, Vector, Specified, None),
        Op2::ADD_64 => double(Double::Add, 2, Specified, halves),
        Op2::MOVA_INT => op(this, Mova(lane::mova_int), 1, Vector, Exact, None),
        Op2::MOV => op(this, Float1(lane::mov), 1, Either, Exact, None),
        Op2::NOP => op(this, Meaning::Nothing, 0, Either, Exact, None),
        Op2::MUL_64 => double(Double::Mul, 2, Specified, halves),
        Op2::FLT64_TO_FLT32 => double(Double::ToFloat, 1, Specified, halves),
        Op2::FLT32_TO_FLT64 => double(Double::FromFloat, 1, Specified, halves),
        Op2::PRED_SETGT_UINT => pred(|a, b| lane::pred_set(a > b)),
        Op2::PRED_SETGE_UINT => pred(|a, b| lane::pred_set(a >= b)),
        Op2::PRED_SETE => pred(|a, b| lane::pred_set(lane::equal(a, b))),
        Op2::PRED_SETGT => pred(|a, b| lane::pred_set(lane::greater(a, b))),
        Op2::PRED_SETGE => pred(|a, b| lane::pred_set(lane::greater_equal(a, b))),
        Op2::PRED_SETNE => pred(|a, b| lane::pred_set(lane::not_equal(a, b))),
        Op2::PRED_SET_INV => counter(|a, _| lane::pred_set_inv(a), 1),
        Op2::PRED_SET_POP => counter(lane::pred_set_pop, 2),
        Op2::PRED_SET_CLR => counter(|_, _| lane::pred_set_clr(), 0),
        Op2::PRED_SET_RESTORE => counter(|a, _| lane::pred_set_restore(a), 1),
        Op2::PRED_SETE_PUSH => counter(|a, b| lane::pred_set_push(a, lane::equal(b, 0)), 2),
        Op2::PRED_SETGT_PUSH => counter(|a, b| lane::pred_set_push(a, lane::greater(b, 0)), 2),
        Op2::PRED_SETGE_PUSH => counter(|a, b| lane::pred_set_push(a, lane::greater_equal(b, 0)), 2),
        Op2::PRED_SETNE_PUSH => counter(|a, b| lane::pred_set_push(a, lane::not_equal(b, 0)), 2),
        Op2::KILLE => kill(lane::equal),
        Op2::KILLGT => kill(lane::greater),
        Op2::KILLGE => kill(lane::greater_equal),
        Op2::KILLNE => kill(lane::not_equal),
        Op2::AND_INT => bits2(lane::and_int),
        Op2::OR_INT => bits2(lane::or_int),
        Op2::XOR_INT => bits2(lane::xor_int),
        Op2::NOT_INT => op(this, Bits1(lane::not_int), 1, Either, Exact, None),
        Op2::ADD_INT => bits2(lane::add_int),
        Op2::SUB_INT => bits2(lane::sub_int),
        Op2::MAX_INT => bits2(lane::max_int),
        Op2::MIN_INT => bits2(lane::min_int),
        Op2::MAX_UINT => bits2(lane::max_uint),
        Op2::MIN_UINT => bits2(lane::min_uint),
        Op2::SETE_INT => bits2(lane::sete_int),
        Op2::SETGT_INT => bits2(lane::setgt_int),
        Op2::SETGE_INT => bits2(lane::setge_int),
        Op2::SETNE_INT => bits2(lane::setne_int),
        Op2::SETGT_UINT => bits2(lane::setgt_uint),
        Op2::SETGE_UINT => bits2(lane::setge_uint),
        Op2::KILLGT_UINT => kill(|a, b| a > b),
        Op2::KILLGE_UINT => kill(|a, b| a >= b),
        Op2::PRED_SETE_INT => pred(|a, b| lane::pred_set(a == b)),
        Op2::PRED_SETGT_INT => pred(|a, b| lane::pred_set(a as i32 > b as i32)),
        Op2::PRED_SETGE_INT => pred(|a, b| lane::pred_set(a as i32 >= b as i32)),
        Op2::PRED_SETNE_INT => pred(|a, b| lane::pred_set(a != b)),
        Op2::KILLE_INT => kill(|a, b| a == b),
        Op2::KILLGT_INT => kill(|a, b| a as i32 > b as i32),
        Op2::KILLGE_INT => kill(|a, b| a as i32 >= b as i32),
        Op2::KILLNE_INT => kill(|a, b| a != b),
        Op2::PRED_SETE_PUSH_INT => counter(|a, b| lane::pred_set_push(a, b == 0), 2),
        Op2::PRED_SETGT_PUSH_INT => counter(|a, b| lane::pred_set_push(a, b as i32 > 0), 2),
        Op2::PRED_SETGE_PUSH_INT => counter(|a, b| lane::pred_set_push(a, b as i32 >= 0), 2),
        Op2::PRED_SETNE_PUSH_INT => counter(|a, b| lane::pred_set_push(a, b != 0), 2),
        Op2::PRED_SETLT_PUSH_INT => counter(|a, b| lane::pred_set_push(a, (b as i32) < 0), 2),
        Op2::PRED_SETLE_PUSH_INT => counter(|a, b| lane::pred_set_push(a, b as i32 <= 0), 2),
        Op2::DOT4 => op(this, Reduce(lane::dot4), 2, Vector, Specified, Some(Rule::SUMS_GO_LEFT_TO_RIGHT)),
        Op2::DOT4_IEEE => op(this, Reduce(lane::dot4_ieee), 2, Vector, Specified, Some(Rule::SUMS_GO_LEFT_TO_RIGHT)),
        Op2::CUBE => op(this, Meaning::Cube, 2, Vector, Specified, Some(Rule::CUBE_SC_SIGN)),
        Op2::MAX4 => op(this, Reduce(|a, _| lane::max4(a)), 1, Vector, Exact, None),
        Op2::MOVA_GPR_INT if r600 => op(this, Meaning::MovaLoop(lane::mova_int), 1, Trans, Specified, Some(Rule::MOVA_GPR_INT_IS_EARLY_R600)),
        Op2::MOVA_GPR_INT => return None,
        Op2::EXP_IEEE => trans(lane::exp_ieee),
        Op2::LOG_CLAMPED => trans(lane::log_clamped),
        Op2::LOG_IEEE => trans(lane::log_ieee),
        Op2::RECIP_CLAMPED => trans(lane::recip_clamped),
        Op2::RECIP_FF => trans(lane::recip_ff),
        Op2::RECIP_IEEE => trans(lane::recip_ieee),
        Op2::RECIPSQRT_CLAMPED => trans(lane::recipsqrt_clamped),
        Op2::RECIPSQRT_FF => trans(lane::recipsqrt_ff),
        Op2::RECIPSQRT_IEEE => trans(lane::recipsqrt_ieee),
        Op2::SQRT_IEEE => trans(lane::sqrt_ieee),
        Op2::FLT_TO_INT => op(this, Bits1(lane::flt_to_int), 1, Trans, Specified, Some(Rule::FLT_TO_INT_SATURATES)),
        Op2::INT_TO_FLT => op(this, Float1(lane::int_to_flt), 1, Trans, Specified, None),
        Op2::UINT_TO_FLT => op(this, Float1(lane::uint_to_flt), 1, Trans, Specified, None),
        Op2::SIN if r600 => op(this, Float1(lane::sin_radians), 1, Trans, Approximate, Some(Rule::R600_SIN_TAKES_RADIANS)),
        Op2::COS if r600 => op(this, Float1(lane::cos_radians), 1, Trans, Approximate, Some(Rule::R600_SIN_TAKES_RADIANS)),
        Op2::SIN => trans(lane::sin),
        Op2::COS => trans(lane::cos),
        Op2::ASHR_INT => op(this, Bits2(lane::ashr_int), 2, shift, Exact, Some(Rule::SHIFTS_USE_FIVE_BITS)),
        Op2::LSHR_INT => op(this, Bits2(lane::lshr_int), 2, shift, Exact, Some(Rule::SHIFTS_USE_FIVE_BITS)),
        Op2::LSHL_INT => op(this, Bits2(lane::lshl_int), 2, shift, Exact, Some(Rule::SHIFTS_USE_FIVE_BITS)),
        Op2::MULLO_INT => op(this, Bits2(lane::mullo_int), 2, Trans, Exact, None),
        Op2::MULHI_INT => op(this, Bits2(lane::mulhi_int), 2, Trans, Exact, None),
        Op2::MULLO_UINT => op(this, Bits2(lane::mullo_uint), 2, Trans, Exact, None),
        Op2::MULHI_UINT => op(this, Bits2(lane::mulhi_uint), 2, Trans, Exact, None),
        Op2::RECIP_INT => op(this, Bits1(lane::recip_int), 1, Trans, Recommended, None),
        Op2::RECIP_UINT => op(this, Bits1(lane::recip_uint), 1, Trans, Approximate, None),
        Op2::FLT_TO_UINT => op(this, Bits1(lane::flt_to_uint), 1, Trans, Specified, Some(Rule::FLT_TO_INT_SATURATES)),
        Op2::LDEXP_64 => double(Double::Ldexp, 2, Specified, Some(Rule::LDEXP_64_TAKES_THE_DOUBLE_FIRST)),
        Op2::FRACT_64 => double(Double::Fract, 1, Specified, halves),
        Op2::PRED_SETGT_64 => double(Double::PredSet(crate::lane64::greater), 2, Specified, halves),
        Op2::PRED_SETE_64 => double(Double::PredSet(crate::lane64::equal), 2, Specified, halves),
        Op2::PRED_SETGE_64 => double(Double::PredSet(crate::lane64::greater_equal), 2, Specified, halves),
    })
}

/// Returns the meaning of an OP3 opcode. OP3 opcodes have the same meaning in both families.
#[rustfmt::skip]
pub fn op3(code: Op3) -> Opcode {
    let this = AluCode::Op3(code);
    let float3 = |f: fn(u32, u32, u32) -> u32, factor| op(this, Float3(f, factor), 3, Either, Specified, None);
    let choose = |f: fn(u32, u32, u32) -> u32| op(this, Float3(f, 1.0), 3, Either, Exact, None);
    let bits3 = |f: fn(u32, u32, u32) -> u32| op(this, Bits3(f), 3, Either, Exact, None);
    let lit = |factor| op(this, Float3(lane::mul_lit, factor), 3, Trans, Recommended, Some(Rule::MUL_LIT_TESTS_SRC1));
    let double = |factor| op(this, Meaning::Double(Double::MulAdd(factor)), 3, Vector, Recommended, Some(Rule::SUMS_GO_LEFT_TO_RIGHT));
    match code {
        Op3::MULADD_64 => double(1.0),
        Op3::MULADD_64_M2 => double(2.0),
        Op3::MULADD_64_M4 => double(4.0),
        Op3::MULADD_64_D2 => double(0.5),
        Op3::MUL_LIT => lit(1.0),
        Op3::MUL_LIT_M2 => lit(2.0),
        Op3::MUL_LIT_M4 => lit(4.0),
        Op3::MUL_LIT_D2 => lit(0.5),
        Op3::MULADD => float3(lane::muladd, 1.0),
        Op3::MULADD_M2 => float3(lane::muladd, 2.0),
        Op3::MULADD_M4 => float3(lane::muladd, 4.0),
        Op3::MULADD_D2 => float3(lane::muladd, 0.5),
        Op3::MULADD_IEEE => float3(lane::muladd_ieee, 1.0),
        Op3::MULADD_IEEE_M2 => float3(lane::muladd_ieee, 2.0),
        Op3::MULADD_IEEE_M4 => float3(lane::muladd_ieee, 4.0),
        Op3::MULADD_IEEE_D2 => float3(lane::muladd_ieee, 0.5),
        Op3::CNDE => choose(lane::cnde),
        Op3::CNDGT => choose(lane::cndgt),
        Op3::CNDGE => choose(lane::cndge),
        Op3::CNDE_INT => bits3(lane::cnde_int),
        Op3::CNDGT_INT => bits3(lane::cndgt_int),
        Op3::CNDGE_INT => bits3(lane::cndge_int),
    }
}
