//! The table of the opcodes that have kernels for whole rows. A kernel has variants for the modifiers of an
//! instruction. For each opcode, the table also contains the operation in compiled code.
//!
//! A kernel computes a function of [`crate::lane`] on rows. Opcodes that are not in the table are rare.
//! [`super::bodies::General`] runs these opcodes lane by lane. Tests in this folder compare every kernel with its lane
//! function.

use std::marker::PhantomData;

use reconverge_jit::{One, Rows, Two, Value, predicate};
use reconverge_simt::Level;
use reconverge_simt::wide::Wide;

use super::curves::{Cos, Curve, Curved, Exp, Log, LogClamped, RecipSqrt, Sin};
use super::lanes::{Body, Handler, Lanes, Operation, finish, handler};
use super::nodes;
use crate::chip::{Family, LANES};
use crate::lane::{self, is_nan, number};
use crate::meaning::AluCode;
use crate::words::{Op2, Op3};

/// A lane function of up to three words.
trait Kernel {
    /// Whether [`usual`](Kernel::usual) is faster than [`lane`](Kernel::lane).
    const USUAL: bool = false;

    /// Computes the result.
    fn lane(src: [u32; 3]) -> u32;

    /// Computes the result on the fast path. If the result is a NaN, [`lane`](Kernel::lane) must recompute the result.
    ///
    /// Determining the NaN that an operation returns takes more time than computing the sum or the product. So the code
    /// applies the NaN rules only to rows in which a NaN occurred.
    #[inline(always)]
    fn usual(src: [u32; 3]) -> u32 {
        Self::lane(src)
    }
}

/// A function that emits compiled code for the sources of an opcode.
type Emit = fn(&mut Rows, [Value; 3]) -> Value;

/// Operation of an opcode in compiled code. The variants state whether the sources and the result are floats or bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Emitter {
    /// Computes a float. OMOD and CLAMP apply to the result.
    Float(Emit),
    /// Returns a source with unchanged bits. OMOD and CLAMP apply to the result.
    Choice(Emit),
    /// Computes bits from floats.
    Compare(Emit),
    /// Computes bits from bits.
    Bits(Emit),
    /// Computes the lanes for which the test of a PRED_SET* holds.
    Test(Emit),
}

/// The table of opcodes.
///
/// A row of `kernels` contains the kind of the operands, the opcodes, and the kernel of these opcodes. A kernel always
/// has a lane function. A kernel may also have a faster function for usual rows, and an emitter for compiled code. A
/// row of `tests` contains a PRED_SET*, the KILL* with the same test, the test, and the emitter of the test. A row of
/// `curves` contains a transcendental function.
macro_rules! opcodes {
    (
        kernels { $(
            $with:ident $Op:ident($op:pat) => $Name:ident $src:pat => $lane:expr $(, usual $usual:expr)?
                $(=> $emitter:ident |$rows:ident| $emitted:expr)?;
        )* }
        tests { $(
            $pred_set:ident $kill:ident => $Test:ident($a:ident, $b:ident) $holds:expr, |$way:ident| $held:expr;
        )* }
        curves { $( $curve:ident => $Curve:ident; )* }
    ) => {
        $(
            struct $Name;
            impl Kernel for $Name {
                $( const USUAL: bool = { let _ = stringify!($usual); true }; )?
                #[inline(always)]
                fn lane($src: [u32; 3]) -> u32 {
                    $lane
                }
                $(
                    #[inline(always)]
                    fn usual($src: [u32; 3]) -> u32 {
                        $usual
                    }
                )?
            }
        )*
        $(
            struct $Test;
            impl Test for $Test {
                #[inline(always)]
                fn holds($a: u32, $b: u32) -> bool {
                    $holds
                }
            }
        )*

        /// Returns the kernel of an opcode, or `None` if the opcode does not have a kernel.
        pub(super) fn choose(code: AluCode, shape: Shape, family: Family, level: Level) -> Option<Handler> {
            match code {
                // SIN and COS of R600 take radians. The kernels do not support radians.
                AluCode::Op2(Op2::SIN | Op2::COS) if family != Family::R700 => None,
                $( AluCode::$Op($op) => $with::<$Name>(shape, level), )*
                $(
                    AluCode::Op2(Op2::$pred_set) => Some(predicate_set::<$Test>(shape, level)),
                    AluCode::Op2(Op2::$kill) => Some(kill::<$Test>(shape, level)),
                )*
                $( AluCode::Op2(Op2::$curve) => Some(curve::<$Curve>(shape, level)), )*
                _ => None,
            }
        }

        /// Returns the operation of an opcode in compiled code, or `None` if compiled code calls the fast engine's
        /// operation.
        pub(super) fn emitter(code: AluCode) -> Option<Emitter> {
            Some(match code {
                $($( AluCode::$Op($op) => Emitter::$emitter(|$rows, $src| $emitted), )?)*
                $( AluCode::Op2(Op2::$pred_set) => Emitter::Test(|$way, [$a, $b, _]| $held), )*
                _ => return None,
            })
        }
    };
}

#[inline(always)]
fn sum(a: u32, b: u32) -> u32 {
    lane::flush((number(a) + number(b)).to_bits())
}

#[inline(always)]
pub(super) fn product(a: u32, b: u32) -> u32 {
    lane::flush((number(a) * number(b)).to_bits())
}

/// Multiplies two factors. If a factor is zero, the product is zero. If the product is a NaN, the function returns the
/// NaN. The lane function then recomputes the result.
#[inline(always)]
pub(super) fn legacy_product(a: u32, b: u32) -> u32 {
    let product = product(a, b);
    let zero = (number(a) == 0.0) | (number(b) == 0.0);
    if zero && !is_nan(product) { 0 } else { product }
}

/// 2^31
const HALF_RANGE: f32 = 2_147_483_648.0;

/// Returns the integer part of a number, and whether the absolute value of the number is less than 2^31. If the
/// absolute value is 2^31 or more, the returned integer is 0. This conversion takes one host instruction. A saturating
/// conversion would take several host instructions.
#[inline(always)]
fn integer_part(x: f32) -> (u32, bool) {
    let inside = x.abs() < HALF_RANGE;
    // SAFETY: the integer part fits in 32 bits.
    let part: i32 = unsafe { (if inside { x } else { 0.0 }).to_int_unchecked() };
    (part as u32, inside)
}

/// Computes [`lane::flt_to_int`] for rows.
#[inline(always)]
fn whole(a: u32) -> u32 {
    let x = number(a);
    let (part, inside) = integer_part(x);
    let beyond = if x > 0.0 { i32::MAX as u32 } else { i32::MIN as u32 };
    let beyond = if is_nan(a) { 0 } else { beyond };
    if inside { part } else { beyond }
}

/// Computes [`lane::flt_to_uint`] for rows. If a number is 2^31 or more, the function subtracts 2^31, converts the
/// difference, and sets the highest bit.
#[inline(always)]
fn whole_unsigned(a: u32) -> u32 {
    let x = number(a);
    let upper = x >= HALF_RANGE;
    let (part, _) = integer_part(if upper { x - HALF_RANGE } else { x });
    let part = part ^ if upper { 1 << 31 } else { 0 };
    let part = if x > 0.0 { part } else { 0 };
    if x >= 2.0 * HALF_RANGE { u32::MAX } else { part }
}

/// Computes [`lane::recip_uint`] for rows, as a quotient of doubles. The rounding error is smaller than the distance
/// from the quotient to the next integer above the quotient. So the integer part is exact.
#[inline(always)]
fn recip_uint(a: u32) -> u32 {
    /// 2^52. Let x be a smaller number. The lowest bits of the sum 2^52 + x contain x as an integer.
    const ROUND: f64 = 4_503_599_627_370_496.0;
    let quotient = (f64::from(u32::MAX) / f64::from(a)).floor();
    if a == 0 { u32::MAX } else { (quotient + ROUND).to_bits() as u32 }
}

/// Computes [`lane::recip_int`] for rows.
#[inline(always)]
fn recip_int(a: u32) -> u32 {
    let magnitude = recip_uint((a as i32).unsigned_abs());
    if (a as i32) < 0 { magnitude.wrapping_neg() } else { magnitude }
}

opcodes! {
    kernels {
        float Op2(Op2::MOV) => Mov[a, _, _] => a => Choice |_rows| a;
        float Op2(Op2::ADD) => Add[a, b, _] => lane::add(a, b), usual sum(a, b) => Float |rows| nodes::add(rows, a, b);
        float Op2(Op2::MUL) => Mul[a, b, _] => lane::mul(a, b), usual legacy_product(a, b)
            => Float |rows| nodes::legacy_product(rows, a, b);
        float Op2(Op2::MUL_IEEE) => MulIeee[a, b, _] => lane::mul_ieee(a, b), usual product(a, b)
            => Float |rows| nodes::product(rows, a, b);
        float Op3(Op3::MULADD | Op3::MULADD_M2 | Op3::MULADD_M4 | Op3::MULADD_D2) => MulAdd[a, b, c] => lane::muladd(a, b, c), usual sum(legacy_product(a, b), c)
            => Float |rows| { let product = nodes::legacy_product(rows, a, b); nodes::add(rows, product, c) };
        float Op3(Op3::MULADD_IEEE | Op3::MULADD_IEEE_M2 | Op3::MULADD_IEEE_M4 | Op3::MULADD_IEEE_D2) => MulAddIeee[a, b, c] => lane::muladd_ieee(a, b, c), usual sum(product(a, b), c)
            => Float |rows| { let product = nodes::product(rows, a, b); nodes::add(rows, product, c) };
        float Op3(Op3::MUL_LIT | Op3::MUL_LIT_M2 | Op3::MUL_LIT_M4 | Op3::MUL_LIT_D2) => MulLit[a, b, c] => lane::mul_lit(a, b, c);
        float Op2(Op2::MAX) => Max[a, b, _] => lane::max(a, b) => Choice |rows| nodes::first_if(rows, predicate::GE, a, b);
        float Op2(Op2::MIN) => Min[a, b, _] => lane::min(a, b) => Choice |rows| nodes::first_if(rows, predicate::LT, a, b);
        float Op2(Op2::MAX_DX10) => MaxDx10[a, b, _] => lane::max_dx10(a, b)
            => Choice |rows| nodes::first_if_or_nan(rows, predicate::GE, a, b);
        float Op2(Op2::MIN_DX10) => MinDx10[a, b, _] => lane::min_dx10(a, b)
            => Choice |rows| nodes::first_if_or_nan(rows, predicate::LT, a, b);
        float Op2(Op2::SETE) => SetE[a, b, _] => lane::sete(a, b) => Float |rows| nodes::one_if(rows, predicate::EQ, a, b);
        float Op2(Op2::SETGT) => SetGt[a, b, _] => lane::setgt(a, b) => Float |rows| nodes::one_if(rows, predicate::GT, a, b);
        float Op2(Op2::SETGE) => SetGe[a, b, _] => lane::setge(a, b) => Float |rows| nodes::one_if(rows, predicate::GE, a, b);
        float Op2(Op2::SETNE) => SetNe[a, b, _] => lane::setne(a, b) => Float |rows| nodes::one_if(rows, predicate::NEQ, a, b);
        compare Op2(Op2::SETE_DX10) => SetEDx10[a, b, _] => lane::sete_dx10(a, b)
            => Compare |rows| rows.compare(predicate::EQ, a, b);
        compare Op2(Op2::SETGT_DX10) => SetGtDx10[a, b, _] => lane::setgt_dx10(a, b)
            => Compare |rows| rows.compare(predicate::GT, a, b);
        compare Op2(Op2::SETGE_DX10) => SetGeDx10[a, b, _] => lane::setge_dx10(a, b)
            => Compare |rows| rows.compare(predicate::GE, a, b);
        compare Op2(Op2::SETNE_DX10) => SetNeDx10[a, b, _] => lane::setne_dx10(a, b)
            => Compare |rows| rows.compare(predicate::NEQ, a, b);
        float Op3(Op3::CNDE) => CndE[a, b, c] => lane::cnde(a, b, c) => Choice |rows| nodes::choose(rows, predicate::EQ, a, [b, c]);
        float Op3(Op3::CNDGT) => CndGt[a, b, c] => lane::cndgt(a, b, c)
            => Choice |rows| nodes::choose(rows, predicate::GT, a, [b, c]);
        float Op3(Op3::CNDGE) => CndGe[a, b, c] => lane::cndge(a, b, c)
            => Choice |rows| nodes::choose(rows, predicate::GE, a, [b, c]);
        float Op2(Op2::FRACT) => Fract[a, _, _] => lane::fract(a) => Float |rows| nodes::fract(rows, a);
        float Op2(Op2::TRUNC) => Trunc[a, _, _] => lane::trunc(a) => Float |rows| nodes::unary(rows, One::Round(3), a);
        float Op2(Op2::CEIL) => Ceil[a, _, _] => lane::ceil(a) => Float |rows| nodes::unary(rows, One::Round(2), a);
        float Op2(Op2::RNDNE) => RndNe[a, _, _] => lane::rndne(a) => Float |rows| nodes::unary(rows, One::Round(0), a);
        float Op2(Op2::FLOOR) => Floor[a, _, _] => lane::floor(a) => Float |rows| nodes::unary(rows, One::Round(1), a);
        float Op2(Op2::INT_TO_FLT) => IntToFlt[a, _, _] => lane::int_to_flt(a) => Float |rows| nodes::from_int(rows, a);
        float Op2(Op2::UINT_TO_FLT) => UintToFlt[a, _, _] => lane::uint_to_flt(a) => Float |rows| nodes::from_uint(rows, a);
        compare Op2(Op2::FLT_TO_INT) => FltToInt[a, _, _] => whole(a) => Compare |rows| nodes::whole(rows, a);
        compare Op2(Op2::FLT_TO_UINT) => FltToUint[a, _, _] => whole_unsigned(a) => Compare |rows| nodes::whole_unsigned(rows, a);
        float Op2(Op2::RECIP_IEEE) => RecipIeee[a, _, _] => lane::recip_ieee(a) => Float |rows| nodes::reciprocal(rows, a);
        float Op2(Op2::RECIP_CLAMPED) => RecipClamped[a, _, _] => lane::recip_clamped(a);
        float Op2(Op2::RECIP_FF) => RecipFf[a, _, _] => lane::recip_ff(a);
        float Op2(Op2::RECIPSQRT_CLAMPED) => RecipSqrtClamped[a, _, _] => lane::recipsqrt_clamped(a);
        float Op2(Op2::RECIPSQRT_FF) => RecipSqrtFf[a, _, _] => lane::recipsqrt_ff(a);
        float Op2(Op2::SQRT_IEEE) => SqrtIeee[a, _, _] => lane::sqrt_ieee(a) => Float |rows| nodes::unary(rows, One::Sqrt, a);
        compare Op2(Op2::MOVA) => Mova[a, _, _] => lane::mova(a) as u32 => Compare |rows| nodes::address(rows, 0, a);
        compare Op2(Op2::MOVA_FLOOR) => MovaFloor[a, _, _] => lane::mova_floor(a) as u32 => Compare |rows| nodes::address(rows, 1, a);
        compare Op2(Op2::MOVA_INT) => MovaInt[a, _, _] => lane::mova_int(a) as u32 => Bits |rows| nodes::held(rows, a);
        // Opcodes whose results are bits. Neither OMOD nor CLAMP applies to bits.
        bits Op2(Op2::AND_INT) => AndInt[a, b, _] => lane::and_int(a, b) => Bits |rows| rows.two(Two::And, a, b);
        bits Op2(Op2::OR_INT) => OrInt[a, b, _] => lane::or_int(a, b) => Bits |rows| rows.two(Two::Or, a, b);
        bits Op2(Op2::XOR_INT) => XorInt[a, b, _] => lane::xor_int(a, b) => Bits |rows| rows.two(Two::Xor, a, b);
        bits Op2(Op2::NOT_INT) => NotInt[a, _, _] => lane::not_int(a) => Bits |rows| rows.not(a);
        bits Op2(Op2::ADD_INT) => AddInt[a, b, _] => lane::add_int(a, b) => Bits |rows| rows.two(Two::Add, a, b);
        bits Op2(Op2::SUB_INT) => SubInt[a, b, _] => lane::sub_int(a, b) => Bits |rows| rows.two(Two::Sub, a, b);
        bits Op2(Op2::MAX_INT) => MaxInt[a, b, _] => lane::max_int(a, b) => Bits |rows| rows.two(Two::MaxSigned, a, b);
        bits Op2(Op2::MIN_INT) => MinInt[a, b, _] => lane::min_int(a, b) => Bits |rows| rows.two(Two::MinSigned, a, b);
        bits Op2(Op2::MAX_UINT) => MaxUint[a, b, _] => lane::max_uint(a, b) => Bits |rows| rows.two(Two::MaxUnsigned, a, b);
        bits Op2(Op2::MIN_UINT) => MinUint[a, b, _] => lane::min_uint(a, b) => Bits |rows| rows.two(Two::MinUnsigned, a, b);
        bits Op2(Op2::SETE_INT) => SetEInt[a, b, _] => lane::sete_int(a, b) => Bits |rows| nodes::equal(rows, a, b);
        bits Op2(Op2::SETNE_INT) => SetNeInt[a, b, _] => lane::setne_int(a, b) => Bits |rows| nodes::not_equal(rows, a, b);
        bits Op2(Op2::SETGT_INT) => SetGtInt[a, b, _] => lane::setgt_int(a, b) => Bits |rows| nodes::greater(rows, a, b);
        bits Op2(Op2::SETGE_INT) => SetGeInt[a, b, _] => lane::setge_int(a, b) => Bits |rows| nodes::greater_equal(rows, a, b);
        bits Op2(Op2::SETGT_UINT) => SetGtUint[a, b, _] => lane::setgt_uint(a, b)
            => Bits |rows| nodes::greater_unsigned(rows, a, b);
        bits Op2(Op2::SETGE_UINT) => SetGeUint[a, b, _] => lane::setge_uint(a, b)
            => Bits |rows| nodes::greater_equal_unsigned(rows, a, b);
        bits Op3(Op3::CNDE_INT) => CndEInt[a, b, c] => lane::cnde_int(a, b, c)
            => Bits |rows| nodes::choose_int(rows, nodes::equal, a, [b, c]);
        bits Op3(Op3::CNDGT_INT) => CndGtInt[a, b, c] => lane::cndgt_int(a, b, c)
            => Bits |rows| nodes::choose_int(rows, nodes::greater, a, [b, c]);
        bits Op3(Op3::CNDGE_INT) => CndGeInt[a, b, c] => lane::cndge_int(a, b, c)
            => Bits |rows| nodes::choose_int(rows, nodes::greater_equal, a, [b, c]);
        bits Op2(Op2::ASHR_INT) => AshrInt[a, b, _] => lane::ashr_int(a, b)
            => Bits |rows| nodes::shift(rows, Two::Sar, One::Sar, a, b);
        bits Op2(Op2::LSHR_INT) => LshrInt[a, b, _] => lane::lshr_int(a, b)
            => Bits |rows| nodes::shift(rows, Two::Shr, One::Shr, a, b);
        bits Op2(Op2::LSHL_INT) => LshlInt[a, b, _] => lane::lshl_int(a, b)
            => Bits |rows| nodes::shift(rows, Two::Shl, One::Shl, a, b);
        bits Op2(Op2::MULLO_INT | Op2::MULLO_UINT) => MulLo[a, b, _] => lane::mullo_int(a, b)
            => Bits |rows| rows.two(Two::Mul, a, b);
        bits Op2(Op2::MULHI_INT) => MulHiInt[a, b, _] => lane::mulhi_int(a, b);
        bits Op2(Op2::MULHI_UINT) => MulHiUint[a, b, _] => lane::mulhi_uint(a, b);
        bits Op2(Op2::RECIP_INT) => RecipInt[a, _, _] => recip_int(a);
        bits Op2(Op2::RECIP_UINT) => RecipUint[a, _, _] => recip_uint(a);
    }
    tests {
        PRED_SETE KILLE => Equal(a, b) lane::equal(a, b), |rows| rows.compare(predicate::EQ, a, b);
        PRED_SETGT KILLGT => Greater(a, b) lane::greater(a, b), |rows| rows.compare(predicate::GT, a, b);
        PRED_SETGE KILLGE => GreaterEqual(a, b) lane::greater_equal(a, b), |rows| rows.compare(predicate::GE, a, b);
        PRED_SETNE KILLNE => NotEqual(a, b) lane::not_equal(a, b), |rows| rows.compare(predicate::NEQ, a, b);
        PRED_SETE_INT KILLE_INT => EqualInt(a, b) a == b, |rows| nodes::equal(rows, a, b);
        PRED_SETNE_INT KILLNE_INT => NotEqualInt(a, b) a != b, |rows| nodes::not_equal(rows, a, b);
        PRED_SETGT_INT KILLGT_INT => GreaterInt(a, b) a as i32 > b as i32, |rows| nodes::greater(rows, a, b);
        PRED_SETGE_INT KILLGE_INT => GreaterEqualInt(a, b) a as i32 >= b as i32, |rows| nodes::greater_equal(rows, a, b);
        PRED_SETGT_UINT KILLGT_UINT => GreaterUint(a, b) a > b, |rows| nodes::greater_unsigned(rows, a, b);
        PRED_SETGE_UINT KILLGE_UINT => GreaterEqualUint(a, b) a >= b, |rows| nodes::greater_equal_unsigned(rows, a, b);
    }
    curves {
        EXP_IEEE => Exp;
        LOG_IEEE => Log;
        LOG_CLAMPED => LogClamped;
        SIN => Sin;
        COS => Cos;
        RECIPSQRT_IEEE => RecipSqrt;
    }
}

/// Runs a kernel for every lane. `MODIFIED`: whether some source has abs or neg. `FINISH`: whether the kernel
/// multiplies its result by a factor (OMOD) or applies CLAMP.
struct Lanewise<K, const MODIFIED: bool, const FINISH: bool>(PhantomData<K>);

impl<K: Kernel, const MODIFIED: bool, const FINISH: bool> Body for Lanewise<K, MODIFIED, FINISH> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let rows = lanes.sources(operation);
        let source = |lane: usize| {
            let word = |number: usize| match MODIFIED {
                true => rows[number][lane] & operation.keep[number] ^ operation.flip[number],
                false => rows[number][lane],
            };
            // The code writes out three calls, because the compiler does not always vectorise `array::map`.
            [word(0), word(1), word(2)]
        };
        let mut result = [0; LANES];
        if K::USUAL {
            let mut nan = 0;
            for lane in 0..LANES {
                let value = K::usual(source(lane));
                nan |= u32::from(is_nan(value));
                // The value that `finish` returns for a NaN does not matter, because the NaN has already been detected.
                result[lane] = if FINISH { finish(value, operation) } else { value };
            }
            if nan == 0 {
                return lanes.write(wide, operation.dst, operation.set, &result);
            }
        }
        for lane in 0..LANES {
            let value = K::lane(source(lane));
            result[lane] = if FINISH { finish(value, operation) } else { value };
        }
        lanes.write(wide, operation.dst, operation.set, &result);
    }
}

/// A comparison of two words.
trait Test {
    fn holds(a: u32, b: u32) -> bool;
}

/// Returns the lanes of a whole row for which a test holds. In the result, the sign bit of a lane's word states whether
/// the test holds.
#[inline(always)]
fn holding<T: Test, const MODIFIED: bool>(lanes: &Lanes<'_>, operation: &Operation) -> [u32; LANES] {
    let [a, b, _] = lanes.sources(operation);
    let mut holds = [0; LANES];
    for lane in 0..LANES {
        let modified = |word: u32, number: usize| match MODIFIED {
            true => word & operation.keep[number] ^ operation.flip[number],
            false => word,
        };
        holds[lane] = if T::holds(modified(a[lane], 0), modified(b[lane], 1)) { u32::MAX } else { 0 };
    }
    holds
}

/// PRED_SET*: computes the lanes for which the test holds. If `WRITE` is set, also computes the value of the
/// destination, 0.0 or 1.0.
struct PredSet<T, const MODIFIED: bool, const WRITE: bool>(PhantomData<T>);

impl<T: Test, const MODIFIED: bool, const WRITE: bool> Body for PredSet<T, MODIFIED, WRITE> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let holds = holding::<T, MODIFIED>(lanes, operation);
        let bits = wide.signs(&holds);
        lanes.decide(operation, bits);
        if WRITE {
            let mut values = [0; LANES];
            for lane in 0..LANES {
                values[lane] = !holds[lane] & lane::ONE;
            }
            lanes.write(wide, operation.dst, operation.set, &values);
        }
    }
}

/// KILL*: computes the killed lanes. If `WRITE` is set, also computes the value of the destination, 1.0 or 0.0.
struct Kill<T, const MODIFIED: bool, const WRITE: bool>(PhantomData<T>);

impl<T: Test, const MODIFIED: bool, const WRITE: bool> Body for Kill<T, MODIFIED, WRITE> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let holds = holding::<T, MODIFIED>(lanes, operation);
        lanes.killed |= wide.signs(&holds) & lanes.set(operation.set);
        if WRITE {
            let mut values = [0; LANES];
            for lane in 0..LANES {
                values[lane] = holds[lane] & lane::ONE;
            }
            lanes.write(wide, operation.dst, operation.set, &values);
        }
    }
}

/// A kernel and a PRED_SET* in one operation. The PRED_SET* compares the kernel's result with the third operand. The
/// PRED_SET* has no destination.
struct Both<K, T>(PhantomData<(K, T)>);

impl<K: Kernel, T: Test> Body for Both<K, T> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let [a, b, other] = lanes.sources(operation);
        let mut result = [0; LANES];
        let mut holds = [0; LANES];
        for lane in 0..LANES {
            let value = K::lane([a[lane], b[lane], 0]);
            result[lane] = value;
            holds[lane] = if T::holds(value, other[lane]) { u32::MAX } else { 0 };
        }
        let bits = wide.signs(&holds);
        lanes.write(wide, operation.dst, operation.set, &result);
        lanes.decide(operation, bits);
    }
}

/// The properties of an instruction that, together with the opcode, select the instruction's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Whether some source has abs or neg.
    pub(super) modified: bool,
    /// Whether a factor (OMOD) or CLAMP applies to the result.
    pub(super) finish: bool,
    /// Whether the instruction writes the result to a register.
    pub(super) write: bool,
}

/// Returns the kernel of an operation with a float result. OMOD and CLAMP apply to the result.
fn float<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
    Some(match (shape.modified, shape.finish) {
        (false, false) => handler::<Lanewise<K, false, false>>(level),
        (true, false) => handler::<Lanewise<K, true, false>>(level),
        // Instructions with a factor or CLAMP are rare. For these instructions, the table has only one kernel. This
        // kernel runs instructions with and without abs or neg.
        (_, true) => handler::<Lanewise<K, true, true>>(level),
    })
}

/// Returns the kernel of a transcendental function.
fn curve<C: Curve>(shape: Shape, level: Level) -> Handler {
    match shape.finish {
        false => handler::<Curved<C, false>>(level),
        true => handler::<Curved<C, true>>(level),
    }
}

/// Returns the kernel of an operation on bits.
fn bits<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
    match shape.modified {
        false => Some(handler::<Lanewise<K, false, false>>(level)),
        true => None,
    }
}

/// Returns the kernel of a float comparison with an integer result. Modifiers apply to the operands of the comparison,
/// but not to its result.
fn compare<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
    match shape.modified {
        false => Some(handler::<Lanewise<K, false, false>>(level)),
        true => Some(handler::<Lanewise<K, true, false>>(level)),
    }
}

fn predicate_set<T: Test>(shape: Shape, level: Level) -> Handler {
    match (shape.modified, shape.write) {
        (false, false) => handler::<PredSet<T, false, false>>(level),
        (true, false) => handler::<PredSet<T, true, false>>(level),
        (_, true) => handler::<PredSet<T, true, true>>(level),
    }
}

fn kill<T: Test>(shape: Shape, level: Level) -> Handler {
    match shape.write {
        false => handler::<Kill<T, true, false>>(level),
        true => handler::<Kill<T, true, true>>(level),
    }
}

/// Returns one kernel for two opcodes without modifiers. The second opcode is a PRED_SET* that tests the first opcode's
/// result and has no destination. Returns `None` if no kernel computes both opcodes.
///
/// Compilers emit such pairs of opcodes for branches. The first opcode is a comparison with an integer result. The
/// second opcode is a PRED_SET*_INT that tests this integer.
pub(super) fn choose_both(first: AluCode, second: AluCode, level: Level) -> Option<Handler> {
    match second {
        AluCode::Op2(Op2::PRED_SETE_INT) => choose_tested::<EqualInt>(first, level),
        AluCode::Op2(Op2::PRED_SETNE_INT) => choose_tested::<NotEqualInt>(first, level),
        AluCode::Op2(_) | AluCode::Op3(_) => None,
    }
}

#[rustfmt::skip]
fn choose_tested<T: Test>(first: AluCode, level: Level) -> Option<Handler> {
    let AluCode::Op2(code) = first else { return None };
    Some(match code {
        Op2::AND_INT => handler::<Both<AndInt, T>>(level),
        Op2::OR_INT => handler::<Both<OrInt, T>>(level),
        Op2::SETE_INT => handler::<Both<SetEInt, T>>(level),
        Op2::SETGT_INT => handler::<Both<SetGtInt, T>>(level),
        Op2::SETGE_INT => handler::<Both<SetGeInt, T>>(level),
        Op2::SETNE_INT => handler::<Both<SetNeInt, T>>(level),
        Op2::SETGT_UINT => handler::<Both<SetGtUint, T>>(level),
        Op2::SETGE_UINT => handler::<Both<SetGeUint, T>>(level),
        Op2::SETE_DX10 => handler::<Both<SetEDx10, T>>(level),
        Op2::SETGT_DX10 => handler::<Both<SetGtDx10, T>>(level),
        Op2::SETGE_DX10 => handler::<Both<SetGeDx10, T>>(level),
        Op2::SETNE_DX10 => handler::<Both<SetNeDx10, T>>(level),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
