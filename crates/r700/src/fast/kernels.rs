//! Which lane functions have code of their own on whole rows, with their modifiers fixed.
//!
//! A kernel is a function of [`crate::lane`]. What is not in the list, because it is rare, goes lane by lane through
//! [`super::bodies::General`]; every kernel is compared with its lane function in the tests here.

use std::marker::PhantomData;

use reconverge_simt::Level;
use reconverge_simt::wide::Wide;

use super::curves::{Cos, Curve, Curved, Exp, Log, LogClamped, Sin};
use super::lanes::{Body, Handler, Lanes, Operation, finish, handler};
use crate::chip::{Family, LANES};
use crate::lane::{self, is_nan, number};
use crate::meaning::AluCode;
use crate::words::{Op2, Op3};

/// A lane function of up to three words.
trait Kernel {
    /// Whether [`usual`](Kernel::usual) is quicker.
    const USUAL: bool = false;

    /// The result.
    fn lane(src: [u32; 3]) -> u32;

    /// The result; a NaN only means that [`lane`](Kernel::lane) is to be asked.
    ///
    /// The rules about which NaN comes out cost a sum or a product more than the operation itself, and are asked for
    /// only in rows in which one came out at all.
    #[inline(always)]
    fn usual(src: [u32; 3]) -> u32 {
        Self::lane(src)
    }
}

macro_rules! kernels {
    ($( $Name:ident $src:pat => $lane:expr $(, usual $usual:expr)?; )*) => { $(
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
    )* };
}

#[inline(always)]
fn sum(a: u32, b: u32) -> u32 {
    lane::flush((number(a) + number(b)).to_bits())
}

#[inline(always)]
pub(super) fn product(a: u32, b: u32) -> u32 {
    lane::flush((number(a) * number(b)).to_bits())
}

/// A NaN stays one here, also where the rule of zero would hide it: the lane function is asked then.
#[inline(always)]
pub(super) fn legacy_product(a: u32, b: u32) -> u32 {
    let product = product(a, b);
    let zero = (number(a) == 0.0) | (number(b) == 0.0);
    if zero && !is_nan(product) { 0 } else { product }
}

/// 2^31
const HALF_RANGE: f32 = 2_147_483_648.0;

/// The integer part of a number from -2^31 to 2^31, 0 for others: one instruction, unlike a conversion that saturates.
#[inline(always)]
fn integer_part(x: f32) -> (u32, bool) {
    let inside = x.abs() < HALF_RANGE;
    // SAFETY: the integer part fits.
    let part: i32 = unsafe { (if inside { x } else { 0.0 }).to_int_unchecked() };
    (part as u32, inside)
}

/// [`lane::flt_to_int`] for rows.
#[inline(always)]
fn whole(a: u32) -> u32 {
    let x = number(a);
    let (part, inside) = integer_part(x);
    let beyond = if x > 0.0 { i32::MAX as u32 } else { i32::MIN as u32 };
    let beyond = if is_nan(a) { 0 } else { beyond };
    if inside { part } else { beyond }
}

/// [`lane::flt_to_uint`] for rows: from 2^31 on, the rest above that is converted.
#[inline(always)]
fn whole_unsigned(a: u32) -> u32 {
    let x = number(a);
    let upper = x >= HALF_RANGE;
    let (part, _) = integer_part(if upper { x - HALF_RANGE } else { x });
    let part = part ^ if upper { 1 << 31 } else { 0 };
    let part = if x > 0.0 { part } else { 0 };
    if x >= 2.0 * HALF_RANGE { u32::MAX } else { part }
}

/// [`lane::recip_uint`] for rows: a quotient of doubles. It is farther from the next integer than it is wrong.
#[inline(always)]
fn recip_uint(a: u32) -> u32 {
    /// 2^52: a sum with it ends in the bits of the integer.
    const ROUND: f64 = 4_503_599_627_370_496.0;
    let quotient = (f64::from(u32::MAX) / f64::from(a)).floor();
    if a == 0 { u32::MAX } else { (quotient + ROUND).to_bits() as u32 }
}

/// [`lane::recip_int`] for rows.
#[inline(always)]
fn recip_int(a: u32) -> u32 {
    let magnitude = recip_uint((a as i32).unsigned_abs());
    if (a as i32) < 0 { magnitude.wrapping_neg() } else { magnitude }
}

kernels! {
    Mov[a, _, _] => a;
    Add[a, b, _] => lane::add(a, b), usual sum(a, b);
    Mul[a, b, _] => lane::mul(a, b), usual legacy_product(a, b);
    MulIeee[a, b, _] => lane::mul_ieee(a, b), usual product(a, b);
    MulAdd[a, b, c] => lane::muladd(a, b, c), usual sum(legacy_product(a, b), c);
    MulAddIeee[a, b, c] => lane::muladd_ieee(a, b, c), usual sum(product(a, b), c);
    Max[a, b, _] => lane::max(a, b);
    Min[a, b, _] => lane::min(a, b);
    MaxDx10[a, b, _] => lane::max_dx10(a, b);
    MinDx10[a, b, _] => lane::min_dx10(a, b);
    SetE[a, b, _] => lane::sete(a, b);
    SetGt[a, b, _] => lane::setgt(a, b);
    SetGe[a, b, _] => lane::setge(a, b);
    SetNe[a, b, _] => lane::setne(a, b);
    CndE[a, b, c] => lane::cnde(a, b, c);
    CndGt[a, b, c] => lane::cndgt(a, b, c);
    CndGe[a, b, c] => lane::cndge(a, b, c);
    IntToFlt[a, _, _] => lane::int_to_flt(a);
    UintToFlt[a, _, _] => lane::uint_to_flt(a);
    RecipIeee[a, _, _] => lane::recip_ieee(a);
    RecipClamped[a, _, _] => lane::recip_clamped(a);
    RecipFf[a, _, _] => lane::recip_ff(a);
    RecipSqrtIeee[a, _, _] => lane::recipsqrt_ieee(a);
    RecipSqrtClamped[a, _, _] => lane::recipsqrt_clamped(a);
    RecipSqrtFf[a, _, _] => lane::recipsqrt_ff(a);
    SqrtIeee[a, _, _] => lane::sqrt_ieee(a);
    Fract[a, _, _] => lane::fract(a);
    Trunc[a, _, _] => lane::trunc(a);
    Ceil[a, _, _] => lane::ceil(a);
    RndNe[a, _, _] => lane::rndne(a);
    Floor[a, _, _] => lane::floor(a);
    MulLit[a, b, c] => lane::mul_lit(a, b, c);
    // Bits: neither OMOD nor CLAMP acts on them.
    SetEDx10[a, b, _] => lane::sete_dx10(a, b);
    SetGtDx10[a, b, _] => lane::setgt_dx10(a, b);
    SetGeDx10[a, b, _] => lane::setge_dx10(a, b);
    SetNeDx10[a, b, _] => lane::setne_dx10(a, b);
    AndInt[a, b, _] => lane::and_int(a, b);
    OrInt[a, b, _] => lane::or_int(a, b);
    XorInt[a, b, _] => lane::xor_int(a, b);
    NotInt[a, _, _] => lane::not_int(a);
    AddInt[a, b, _] => lane::add_int(a, b);
    SubInt[a, b, _] => lane::sub_int(a, b);
    MaxInt[a, b, _] => lane::max_int(a, b);
    MinInt[a, b, _] => lane::min_int(a, b);
    MaxUint[a, b, _] => lane::max_uint(a, b);
    MinUint[a, b, _] => lane::min_uint(a, b);
    SetEInt[a, b, _] => lane::sete_int(a, b);
    SetGtInt[a, b, _] => lane::setgt_int(a, b);
    SetGeInt[a, b, _] => lane::setge_int(a, b);
    SetNeInt[a, b, _] => lane::setne_int(a, b);
    SetGtUint[a, b, _] => lane::setgt_uint(a, b);
    SetGeUint[a, b, _] => lane::setge_uint(a, b);
    AshrInt[a, b, _] => lane::ashr_int(a, b);
    LshrInt[a, b, _] => lane::lshr_int(a, b);
    LshlInt[a, b, _] => lane::lshl_int(a, b);
    MulLo[a, b, _] => lane::mullo_int(a, b);
    MulHiInt[a, b, _] => lane::mulhi_int(a, b);
    MulHiUint[a, b, _] => lane::mulhi_uint(a, b);
    FltToInt[a, _, _] => whole(a);
    FltToUint[a, _, _] => whole_unsigned(a);
    RecipInt[a, _, _] => recip_int(a);
    RecipUint[a, _, _] => recip_uint(a);
    Mova[a, _, _] => lane::mova(a) as u32;
    MovaFloor[a, _, _] => lane::mova_floor(a) as u32;
    MovaInt[a, _, _] => lane::mova_int(a) as u32;
    CndEInt[a, b, c] => lane::cnde_int(a, b, c);
    CndGtInt[a, b, c] => lane::cndgt_int(a, b, c);
    CndGeInt[a, b, c] => lane::cndge_int(a, b, c);
}

/// A kernel for every lane. `MODIFIED`: some source has abs or neg. `FINISH`: there is a factor or a clamp.
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
            // Written out: `array::map` does not always vectorise.
            [word(0), word(1), word(2)]
        };
        let mut result = [0; LANES];
        if K::USUAL {
            let mut nan = 0;
            for lane in 0..LANES {
                let value = K::usual(source(lane));
                nan |= u32::from(is_nan(value));
                // What finishing makes of a NaN does not matter: there was one.
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

/// A comparison that decides for lanes.
trait Test {
    fn holds(a: u32, b: u32) -> bool;
}

macro_rules! tests {
    ($( $Name:ident($a:ident, $b:ident) $holds:expr; )*) => { $(
        struct $Name;
        impl Test for $Name {
            #[inline(always)]
            fn holds($a: u32, $b: u32) -> bool {
                $holds
            }
        }
    )* };
}

tests! {
    Equal(a, b) lane::equal(a, b);
    Greater(a, b) lane::greater(a, b);
    GreaterEqual(a, b) lane::greater_equal(a, b);
    NotEqual(a, b) lane::not_equal(a, b);
    EqualInt(a, b) a == b;
    GreaterInt(a, b) a as i32 > b as i32;
    GreaterEqualInt(a, b) a as i32 >= b as i32;
    NotEqualInt(a, b) a != b;
    GreaterUint(a, b) a > b;
    GreaterEqualUint(a, b) a >= b;
}

/// The lanes of a whole row for which a test holds, as signs of words.
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

/// PRED_SET*: what executes, and 0.0 or 1.0 for the destination where `WRITE` says that there is one.
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

/// KILL*: what is killed, and 1.0 or 0.0 for the destination where `WRITE` says that there is one.
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

/// A kernel and the PRED_SET* of its result with a third operand, without a destination of the PRED_SET*.
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

/// What an instruction asks of its code besides the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Some source has abs or neg.
    pub(super) modified: bool,
    /// There is a factor or a clamp.
    pub(super) finish: bool,
    /// The result goes somewhere.
    pub(super) write: bool,
}

/// A float: OMOD and CLAMP act on it.
fn float<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
    Some(match (shape.modified, shape.finish) {
        (false, false) => handler::<Lanewise<K, false, false>>(level),
        (true, false) => handler::<Lanewise<K, true, false>>(level),
        // Rarer, so one code serves both.
        (_, true) => handler::<Lanewise<K, true, true>>(level),
    })
}

/// A transcendental function.
fn curve<C: Curve>(shape: Shape, level: Level) -> Option<Handler> {
    match shape.finish {
        false => Some(handler::<Curved<C, false>>(level)),
        true => Some(handler::<Curved<C, true>>(level)),
    }
}

/// Bits.
fn bits<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
    match shape.modified {
        false => Some(handler::<Lanewise<K, false, false>>(level)),
        true => None,
    }
}

/// Bits of operands with modifiers: float comparisons with integer results.
fn compare<K: Kernel>(shape: Shape, level: Level) -> Option<Handler> {
    match shape.modified {
        false => Some(handler::<Lanewise<K, false, false>>(level)),
        true => Some(handler::<Lanewise<K, true, false>>(level)),
    }
}

fn predicate<T: Test>(shape: Shape, level: Level) -> Option<Handler> {
    Some(match (shape.modified, shape.write) {
        (false, false) => handler::<PredSet<T, false, false>>(level),
        (true, false) => handler::<PredSet<T, true, false>>(level),
        (_, true) => handler::<PredSet<T, true, true>>(level),
    })
}

fn kill<T: Test>(shape: Shape, level: Level) -> Option<Handler> {
    Some(match shape.write {
        false => handler::<Kill<T, true, false>>(level),
        true => handler::<Kill<T, true, true>>(level),
    })
}

/// The code of an opcode; `None` when it has none of its own.
pub(super) fn choose(code: AluCode, shape: Shape, family: Family, level: Level) -> Option<Handler> {
    match code {
        AluCode::Op2(code) => choose_op2(code, shape, family, level),
        AluCode::Op3(code) => choose_op3(code, shape, level),
    }
}

#[rustfmt::skip]
fn choose_op2(code: Op2, shape: Shape, family: Family, level: Level) -> Option<Handler> {
    match code {
        Op2::ADD => float::<Add>(shape, level),
        Op2::MUL => float::<Mul>(shape, level),
        Op2::MUL_IEEE => float::<MulIeee>(shape, level),
        Op2::MAX => float::<Max>(shape, level),
        Op2::MIN => float::<Min>(shape, level),
        Op2::MAX_DX10 => float::<MaxDx10>(shape, level),
        Op2::MIN_DX10 => float::<MinDx10>(shape, level),
        Op2::SETE => float::<SetE>(shape, level),
        Op2::SETGT => float::<SetGt>(shape, level),
        Op2::SETGE => float::<SetGe>(shape, level),
        Op2::SETNE => float::<SetNe>(shape, level),
        Op2::SETE_DX10 => compare::<SetEDx10>(shape, level),
        Op2::SETGT_DX10 => compare::<SetGtDx10>(shape, level),
        Op2::SETGE_DX10 => compare::<SetGeDx10>(shape, level),
        Op2::SETNE_DX10 => compare::<SetNeDx10>(shape, level),
        Op2::MOV => float::<Mov>(shape, level),
        Op2::PRED_SETE => predicate::<Equal>(shape, level),
        Op2::PRED_SETGT => predicate::<Greater>(shape, level),
        Op2::PRED_SETGE => predicate::<GreaterEqual>(shape, level),
        Op2::PRED_SETNE => predicate::<NotEqual>(shape, level),
        Op2::PRED_SETE_INT => predicate::<EqualInt>(shape, level),
        Op2::PRED_SETGT_INT => predicate::<GreaterInt>(shape, level),
        Op2::PRED_SETGE_INT => predicate::<GreaterEqualInt>(shape, level),
        Op2::PRED_SETNE_INT => predicate::<NotEqualInt>(shape, level),
        Op2::PRED_SETGT_UINT => predicate::<GreaterUint>(shape, level),
        Op2::PRED_SETGE_UINT => predicate::<GreaterEqualUint>(shape, level),
        Op2::KILLE => kill::<Equal>(shape, level),
        Op2::KILLGT => kill::<Greater>(shape, level),
        Op2::KILLGE => kill::<GreaterEqual>(shape, level),
        Op2::KILLNE => kill::<NotEqual>(shape, level),
        Op2::KILLE_INT => kill::<EqualInt>(shape, level),
        Op2::KILLGT_INT => kill::<GreaterInt>(shape, level),
        Op2::KILLGE_INT => kill::<GreaterEqualInt>(shape, level),
        Op2::KILLNE_INT => kill::<NotEqualInt>(shape, level),
        Op2::KILLGT_UINT => kill::<GreaterUint>(shape, level),
        Op2::KILLGE_UINT => kill::<GreaterEqualUint>(shape, level),
        Op2::AND_INT => bits::<AndInt>(shape, level),
        Op2::OR_INT => bits::<OrInt>(shape, level),
        Op2::XOR_INT => bits::<XorInt>(shape, level),
        Op2::NOT_INT => bits::<NotInt>(shape, level),
        Op2::ADD_INT => bits::<AddInt>(shape, level),
        Op2::SUB_INT => bits::<SubInt>(shape, level),
        Op2::MAX_INT => bits::<MaxInt>(shape, level),
        Op2::MIN_INT => bits::<MinInt>(shape, level),
        Op2::MAX_UINT => bits::<MaxUint>(shape, level),
        Op2::MIN_UINT => bits::<MinUint>(shape, level),
        Op2::SETE_INT => bits::<SetEInt>(shape, level),
        Op2::SETGT_INT => bits::<SetGtInt>(shape, level),
        Op2::SETGE_INT => bits::<SetGeInt>(shape, level),
        Op2::SETNE_INT => bits::<SetNeInt>(shape, level),
        Op2::SETGT_UINT => bits::<SetGtUint>(shape, level),
        Op2::SETGE_UINT => bits::<SetGeUint>(shape, level),
        Op2::ASHR_INT => bits::<AshrInt>(shape, level),
        Op2::LSHR_INT => bits::<LshrInt>(shape, level),
        Op2::LSHL_INT => bits::<LshlInt>(shape, level),
        Op2::MULLO_INT | Op2::MULLO_UINT => bits::<MulLo>(shape, level),
        Op2::MULHI_INT => bits::<MulHiInt>(shape, level),
        Op2::MULHI_UINT => bits::<MulHiUint>(shape, level),
        Op2::FLT_TO_INT => compare::<FltToInt>(shape, level),
        Op2::FLT_TO_UINT => compare::<FltToUint>(shape, level),
        Op2::INT_TO_FLT => float::<IntToFlt>(shape, level),
        Op2::UINT_TO_FLT => float::<UintToFlt>(shape, level),
        Op2::RECIP_IEEE => float::<RecipIeee>(shape, level),
        Op2::RECIP_CLAMPED => float::<RecipClamped>(shape, level),
        Op2::RECIP_FF => float::<RecipFf>(shape, level),
        Op2::RECIPSQRT_IEEE => float::<RecipSqrtIeee>(shape, level),
        Op2::RECIPSQRT_CLAMPED => float::<RecipSqrtClamped>(shape, level),
        Op2::RECIPSQRT_FF => float::<RecipSqrtFf>(shape, level),
        Op2::SQRT_IEEE => float::<SqrtIeee>(shape, level),
        Op2::FRACT => float::<Fract>(shape, level),
        Op2::TRUNC => float::<Trunc>(shape, level),
        Op2::CEIL => float::<Ceil>(shape, level),
        Op2::RNDNE => float::<RndNe>(shape, level),
        Op2::FLOOR => float::<Floor>(shape, level),
        Op2::EXP_IEEE => curve::<Exp>(shape, level),
        Op2::LOG_IEEE => curve::<Log>(shape, level),
        Op2::LOG_CLAMPED => curve::<LogClamped>(shape, level),
        // R600 takes radians.
        Op2::SIN if family == Family::R700 => curve::<Sin>(shape, level),
        Op2::COS if family == Family::R700 => curve::<Cos>(shape, level),
        Op2::RECIP_INT => bits::<RecipInt>(shape, level),
        Op2::RECIP_UINT => bits::<RecipUint>(shape, level),
        Op2::MOVA => compare::<Mova>(shape, level),
        Op2::MOVA_FLOOR => compare::<MovaFloor>(shape, level),
        Op2::MOVA_INT => compare::<MovaInt>(shape, level),
        // Rare.
        Op2::SIN | Op2::COS
        | Op2::PRED_SET_INV | Op2::PRED_SET_POP | Op2::PRED_SET_CLR | Op2::PRED_SET_RESTORE
        | Op2::PRED_SETE_PUSH | Op2::PRED_SETGT_PUSH | Op2::PRED_SETGE_PUSH | Op2::PRED_SETNE_PUSH
        | Op2::PRED_SETE_PUSH_INT | Op2::PRED_SETGT_PUSH_INT | Op2::PRED_SETGE_PUSH_INT | Op2::PRED_SETNE_PUSH_INT
        | Op2::PRED_SETLT_PUSH_INT | Op2::PRED_SETLE_PUSH_INT
        | Op2::MOVA_GPR_INT | Op2::NOP
        | Op2::DOT4 | Op2::DOT4_IEEE | Op2::CUBE | Op2::MAX4
        | Op2::FREXP_64 | Op2::ADD_64 | Op2::MUL_64 | Op2::FLT64_TO_FLT32 | Op2::FLT32_TO_FLT64 | Op2::LDEXP_64
        | Op2::FRACT_64 | Op2::PRED_SETGT_64 | Op2::PRED_SETE_64 | Op2::PRED_SETGE_64 => None,
    }
}

#[rustfmt::skip]
fn choose_op3(code: Op3, shape: Shape, level: Level) -> Option<Handler> {
    match code {
        Op3::MULADD | Op3::MULADD_M2 | Op3::MULADD_M4 | Op3::MULADD_D2 => float::<MulAdd>(shape, level),
        Op3::MULADD_IEEE | Op3::MULADD_IEEE_M2 | Op3::MULADD_IEEE_M4 | Op3::MULADD_IEEE_D2 => float::<MulAddIeee>(shape, level),
        Op3::CNDE => float::<CndE>(shape, level),
        Op3::CNDGT => float::<CndGt>(shape, level),
        Op3::CNDGE => float::<CndGe>(shape, level),
        Op3::CNDE_INT => bits::<CndEInt>(shape, level),
        Op3::CNDGT_INT => bits::<CndGtInt>(shape, level),
        Op3::CNDGE_INT => bits::<CndGeInt>(shape, level),
        Op3::MUL_LIT | Op3::MUL_LIT_M2 | Op3::MUL_LIT_M4 | Op3::MUL_LIT_D2 => float::<MulLit>(shape, level),
        Op3::MULADD_64 | Op3::MULADD_64_M2 | Op3::MULADD_64_M4 | Op3::MULADD_64_D2 => None,
    }
}

/// The code of two opcodes without modifiers, where the second is a PRED_SET* of what the first gives and has no
/// destination; `None` when there is none.
///
/// How compilers branch: the result of a comparison is an integer, and a PRED_SET*_INT tests it.
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
