//! The table of the opcodes that have kernels for whole rows. A kernel has variants for the modifiers of an
//! instruction. For each opcode, the table also contains the operation in compiled code.
//!
//! A kernel computes a function of [`crate::lane`] on rows. Opcodes that are not in the table are rare.
//! [`super::bodies::General`] runs these opcodes lane by lane. Tests in this folder compare every kernel with its lane
//! function.

use std::marker::PhantomData;

use reconverge_jit::{Emitted, One, Rows, Value};
use reconverge_simt::Level;
use reconverge_simt::curves::Curve;
use reconverge_simt::wide::Wide;
use reconverge_simt::word::Word;

use super::curves::{Cos, Curved, Exp, Log, LogClamped, RecipSqrt, Sin};
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
    /// Computes bits. Neither OMOD nor CLAMP applies to the result.
    Bits(Emit),
    /// Computes the lanes for which the test of a PRED_SET* holds.
    Test(Emit),
}

/// Returns the function that emits an operation. If the row has no expression, the function emits the lane function.
macro_rules! emit {
    ($src:pat, $lane:expr) => {
        |rows, sources| rows.emit(sources, |$src| Emitted::value($lane))
    };
    ($src:pat, $lane:expr, $rows:ident $emitted:expr) => {
        |$rows, $src| $emitted
    };
}

/// The table of opcodes.
///
/// A row of `kernels` contains the kind of the operands, the opcodes, and the kernel of these opcodes. A kernel always
/// has a lane function. A kernel may also have a faster function for usual rows. If compiled code computes the opcodes,
/// the row also has the variant of [`Emitter`]. Compiled code computes the lane function, unless the row has an
/// expression that emits code. A row of `tests` contains a PRED_SET*, the KILL* with the same test, and the test. A row
/// of `curves` contains a transcendental function.
macro_rules! opcodes {
    (
        kernels { $(
            $with:ident $Op:ident($op:pat) => $Name:ident $src:pat => $lane:expr $(, usual $usual:expr)?
                $(=> $emitter:ident $(|$rows:ident| $emitted:expr)?)?;
        )* }
        tests { $(
            $pred_set:ident $kill:ident => $Test:ident($a:ident, $b:ident) $holds:expr;
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
                fn holds<W: Word>($a: W, $b: W) -> W {
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
                $($( AluCode::$Op($op) => Emitter::$emitter(emit!($src, $lane $(, $rows $emitted)?)), )?)*
                $( AluCode::Op2(Op2::$pred_set) => Emitter::Test(emit!([a, b, _], $Test::holds(a, b))), )*
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

/// 2^31, as a float.
const HALF_RANGE: u32 = 0x4f00_0000;

/// 2^32, as a float.
const RANGE: u32 = 0x4f80_0000;

/// Computes [`lane::flt_to_int`]. If the number is 2^31 or more, the truncated number is 0x80000000, and its complement
/// is 2^31 - 1.
#[inline(always)]
fn whole<W: Word>(a: W) -> W {
    (a.truncated() ^ a.float_at_least(a.same(HALF_RANGE))) & !a.is_nan()
}

/// Computes [`lane::flt_to_uint`]. From 2^31 to 2^32, the 24 bits of the significand are the upper bits of the integer.
#[inline(always)]
fn whole_unsigned<W: Word>(a: W) -> W {
    let upper = a.left(a.same(8)) | a.same(1 << 31);
    let part = a.float_at_least(a.same(HALF_RANGE)).choose(upper, a.truncated());
    part & a.float_greater(a.same(0)) | a.float_at_least(a.same(RANGE))
}

/// Limits a signed integer to the range of AR, -256 to 255.
#[inline(always)]
fn held<W: Word>(a: W) -> W {
    a.max_signed(a.same(-256_i32 as u32)).min_signed(a.same(255))
}

/// Emits code that converts a float to an index. `mode` is the mode for [rounding](One::Round).
fn address(rows: &mut Rows, mode: u8, a: Value) -> Value {
    let rounded = rows.one(One::Round(mode), a);
    rows.emit([rounded], |[a]| held(whole(a)).value())
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
        float Op2(Op2::MOV) => Mov[a, _, _] => a => Choice;
        float Op2(Op2::ADD) => Add[a, b, _] => lane::add(a, b), usual sum(a, b)
            => Float |rows| nodes::add(rows, a, b);
        float Op2(Op2::MUL) => Mul[a, b, _] => lane::mul(a, b), usual legacy_product(a, b)
            => Float |rows| nodes::legacy_product(rows, a, b);
        float Op2(Op2::MUL_IEEE) => MulIeee[a, b, _] => lane::mul_ieee(a, b), usual product(a, b)
            => Float |rows| nodes::product(rows, a, b);
        float Op3(Op3::MULADD | Op3::MULADD_M2 | Op3::MULADD_M4 | Op3::MULADD_D2) => MulAdd[a, b, c] => lane::muladd(a, b, c), usual sum(legacy_product(a, b), c)
            => Float |rows| { let product = nodes::legacy_product(rows, a, b); nodes::add(rows, product, c) };
        float Op3(Op3::MULADD_IEEE | Op3::MULADD_IEEE_M2 | Op3::MULADD_IEEE_M4 | Op3::MULADD_IEEE_D2) => MulAddIeee[a, b, c] => lane::muladd_ieee(a, b, c), usual sum(product(a, b), c)
            => Float |rows| { let product = nodes::product(rows, a, b); nodes::add(rows, product, c) };
        float Op3(Op3::MUL_LIT | Op3::MUL_LIT_M2 | Op3::MUL_LIT_M4 | Op3::MUL_LIT_D2) => MulLit[a, b, c]
            => lane::mul_lit(a, b, c);
        float Op2(Op2::MAX) => Max[a, b, _] => lane::max(a, b) => Choice;
        float Op2(Op2::MIN) => Min[a, b, _] => lane::min(a, b) => Choice;
        float Op2(Op2::MAX_DX10) => MaxDx10[a, b, _] => lane::max_dx10(a, b) => Choice;
        float Op2(Op2::MIN_DX10) => MinDx10[a, b, _] => lane::min_dx10(a, b) => Choice;
        float Op2(Op2::SETE) => SetE[a, b, _] => lane::sete(a, b) => Float;
        float Op2(Op2::SETGT) => SetGt[a, b, _] => lane::setgt(a, b) => Float;
        float Op2(Op2::SETGE) => SetGe[a, b, _] => lane::setge(a, b) => Float;
        float Op2(Op2::SETNE) => SetNe[a, b, _] => lane::setne(a, b) => Float;
        compare Op2(Op2::SETE_DX10) => SetEDx10[a, b, _] => lane::sete_dx10(a, b) => Bits;
        compare Op2(Op2::SETGT_DX10) => SetGtDx10[a, b, _] => lane::setgt_dx10(a, b) => Bits;
        compare Op2(Op2::SETGE_DX10) => SetGeDx10[a, b, _] => lane::setge_dx10(a, b) => Bits;
        compare Op2(Op2::SETNE_DX10) => SetNeDx10[a, b, _] => lane::setne_dx10(a, b) => Bits;
        float Op3(Op3::CNDE) => CndE[a, b, c] => lane::cnde(a, b, c) => Choice;
        float Op3(Op3::CNDGT) => CndGt[a, b, c] => lane::cndgt(a, b, c) => Choice;
        float Op3(Op3::CNDGE) => CndGe[a, b, c] => lane::cndge(a, b, c) => Choice;
        float Op2(Op2::FRACT) => Fract[a, _, _] => lane::fract(a) => Float |rows| nodes::fract(rows, a);
        float Op2(Op2::TRUNC) => Trunc[a, _, _] => lane::trunc(a)
            => Float |rows| nodes::unary(rows, One::Round(3), a);
        float Op2(Op2::CEIL) => Ceil[a, _, _] => lane::ceil(a)
            => Float |rows| nodes::unary(rows, One::Round(2), a);
        float Op2(Op2::RNDNE) => RndNe[a, _, _] => lane::rndne(a)
            => Float |rows| nodes::unary(rows, One::Round(0), a);
        float Op2(Op2::FLOOR) => Floor[a, _, _] => lane::floor(a)
            => Float |rows| nodes::unary(rows, One::Round(1), a);
        float Op2(Op2::INT_TO_FLT) => IntToFlt[a, _, _] => lane::int_to_flt(a) => Float;
        float Op2(Op2::UINT_TO_FLT) => UintToFlt[a, _, _] => lane::uint_to_flt(a)
            => Float |rows| nodes::from_uint(rows, a);
        compare Op2(Op2::FLT_TO_INT) => FltToInt[a, _, _] => whole(a) => Bits;
        compare Op2(Op2::FLT_TO_UINT) => FltToUint[a, _, _] => whole_unsigned(a) => Bits;
        float Op2(Op2::RECIP_IEEE) => RecipIeee[a, _, _] => lane::recip_ieee(a)
            => Float |rows| nodes::reciprocal(rows, a);
        float Op2(Op2::RECIP_CLAMPED) => RecipClamped[a, _, _] => lane::recip_clamped(a);
        float Op2(Op2::RECIP_FF) => RecipFf[a, _, _] => lane::recip_ff(a);
        float Op2(Op2::RECIPSQRT_CLAMPED) => RecipSqrtClamped[a, _, _] => lane::recipsqrt_clamped(a);
        float Op2(Op2::RECIPSQRT_FF) => RecipSqrtFf[a, _, _] => lane::recipsqrt_ff(a);
        float Op2(Op2::SQRT_IEEE) => SqrtIeee[a, _, _] => lane::sqrt_ieee(a)
            => Float |rows| nodes::unary(rows, One::Sqrt, a);
        compare Op2(Op2::MOVA) => Mova[a, _, _] => lane::mova(a) as u32 => Bits |rows| address(rows, 0, a);
        compare Op2(Op2::MOVA_FLOOR) => MovaFloor[a, _, _] => lane::mova_floor(a) as u32
            => Bits |rows| address(rows, 1, a);
        compare Op2(Op2::MOVA_INT) => MovaInt[a, _, _] => held(a) => Bits;
        // Opcodes whose results are bits. Neither OMOD nor CLAMP applies to bits.
        bits Op2(Op2::AND_INT) => AndInt[a, b, _] => lane::and_int(a, b) => Bits;
        bits Op2(Op2::OR_INT) => OrInt[a, b, _] => lane::or_int(a, b) => Bits;
        bits Op2(Op2::XOR_INT) => XorInt[a, b, _] => lane::xor_int(a, b) => Bits;
        bits Op2(Op2::NOT_INT) => NotInt[a, _, _] => lane::not_int(a) => Bits;
        bits Op2(Op2::ADD_INT) => AddInt[a, b, _] => lane::add_int(a, b) => Bits;
        bits Op2(Op2::SUB_INT) => SubInt[a, b, _] => lane::sub_int(a, b) => Bits;
        bits Op2(Op2::MAX_INT) => MaxInt[a, b, _] => lane::max_int(a, b) => Bits;
        bits Op2(Op2::MIN_INT) => MinInt[a, b, _] => lane::min_int(a, b) => Bits;
        bits Op2(Op2::MAX_UINT) => MaxUint[a, b, _] => lane::max_uint(a, b) => Bits;
        bits Op2(Op2::MIN_UINT) => MinUint[a, b, _] => lane::min_uint(a, b) => Bits;
        bits Op2(Op2::SETE_INT) => SetEInt[a, b, _] => lane::sete_int(a, b) => Bits;
        bits Op2(Op2::SETNE_INT) => SetNeInt[a, b, _] => lane::setne_int(a, b) => Bits;
        bits Op2(Op2::SETGT_INT) => SetGtInt[a, b, _] => lane::setgt_int(a, b) => Bits;
        bits Op2(Op2::SETGE_INT) => SetGeInt[a, b, _] => lane::setge_int(a, b) => Bits;
        bits Op2(Op2::SETGT_UINT) => SetGtUint[a, b, _] => lane::setgt_uint(a, b) => Bits;
        bits Op2(Op2::SETGE_UINT) => SetGeUint[a, b, _] => lane::setge_uint(a, b) => Bits;
        bits Op3(Op3::CNDE_INT) => CndEInt[a, b, c] => lane::cnde_int(a, b, c) => Bits;
        bits Op3(Op3::CNDGT_INT) => CndGtInt[a, b, c] => lane::cndgt_int(a, b, c) => Bits;
        bits Op3(Op3::CNDGE_INT) => CndGeInt[a, b, c] => lane::cndge_int(a, b, c) => Bits;
        bits Op2(Op2::ASHR_INT) => AshrInt[a, b, _] => lane::ashr_int(a, b) => Bits;
        bits Op2(Op2::LSHR_INT) => LshrInt[a, b, _] => lane::lshr_int(a, b) => Bits;
        bits Op2(Op2::LSHL_INT) => LshlInt[a, b, _] => lane::lshl_int(a, b) => Bits;
        bits Op2(Op2::MULLO_INT | Op2::MULLO_UINT) => MulLo[a, b, _] => lane::mullo_int(a, b) => Bits;
        bits Op2(Op2::MULHI_INT) => MulHiInt[a, b, _] => lane::mulhi_int(a, b);
        bits Op2(Op2::MULHI_UINT) => MulHiUint[a, b, _] => lane::mulhi_uint(a, b);
        bits Op2(Op2::RECIP_INT) => RecipInt[a, _, _] => recip_int(a);
        bits Op2(Op2::RECIP_UINT) => RecipUint[a, _, _] => recip_uint(a);
    }
    tests {
        PRED_SETE KILLE => Equal(a, b) a.float_equal(b);
        PRED_SETGT KILLGT => Greater(a, b) a.float_greater(b);
        PRED_SETGE KILLGE => GreaterEqual(a, b) a.float_at_least(b);
        PRED_SETNE KILLNE => NotEqual(a, b) !a.float_equal(b);
        PRED_SETE_INT KILLE_INT => EqualInt(a, b) a.equal(b);
        PRED_SETNE_INT KILLNE_INT => NotEqualInt(a, b) !a.equal(b);
        PRED_SETGT_INT KILLGT_INT => GreaterInt(a, b) a.greater(b);
        PRED_SETGE_INT KILLGE_INT => GreaterEqualInt(a, b) a.at_least(b);
        PRED_SETGT_UINT KILLGT_UINT => GreaterUint(a, b) a.greater_unsigned(b);
        PRED_SETGE_UINT KILLGE_UINT => GreaterEqualUint(a, b) a.at_least_unsigned(b);
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
    /// Returns all ones if the test holds, and otherwise 0.
    fn holds<W: Word>(a: W, b: W) -> W;
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
        holds[lane] = T::holds(modified(a[lane], 0), modified(b[lane], 1));
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
            holds[lane] = T::holds(value, other[lane]);
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
