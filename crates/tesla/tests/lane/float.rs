//! f32 and f64 arithmetic, compared with two judges: the integer models of the machine's description, which are
//! written here as they are there (6.1, 6.2), and rustc_apfloat.

use reconverge_tesla::lane::float::{self, NAN, Saturate};
use reconverge_tesla::lane::{Flags, Rounding, double};
use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, FloatConvert, Round, StatusAnd};

use crate::operands::Operands;

/// The description's own algorithms, step by step.
mod plain {
    use super::{NAN, Rounding};

    const SIGN: u32 = 0x8000_0000;

    enum Shift {
        Round(Rounding),
        Sticky,
    }

    fn nan(x: u32) -> bool {
        x & !SIGN > 0x7f80_0000
    }

    fn infinite(x: u32) -> bool {
        x & !SIGN == 0x7f80_0000
    }

    fn unpack(x: u32) -> (bool, i32, u64) {
        match x >> 23 & 0xff {
            0 => (x >> 31 != 0, 1, 0),
            field => (x >> 31 != 0, field as i32, u64::from(x & 0x7f_ffff | 1 << 23)),
        }
    }

    fn shr(x: u64, n: i32, mode: Shift) -> u64 {
        if n <= 0 {
            return x << -n;
        }
        let n = n.min(100) as u32;
        let (wide, half) = (u128::from(x), 1u128 << (n - 1));
        let (result, rest) = ((wide >> n) as u64, wide & ((1 << n) - 1));
        match mode {
            Shift::Round(Rounding::Nearest) => {
                result + u64::from(rest > half || (rest == half && result & 1 == 1))
            }
            Shift::Round(Rounding::Up) => result + u64::from(rest != 0),
            Shift::Round(Rounding::Down | Rounding::Zero) => result,
            Shift::Sticky => result | u64::from(rest != 0),
        }
    }

    fn pack(s: bool, mut e: i32, mut f: u64, mode: Rounding) -> u32 {
        let sign = u32::from(s) << 31;
        if f == 1 << 24 {
            (f, e) = (1 << 23, e + 1);
        }
        if e <= 0 || f < 1 << 23 {
            return sign;
        }
        if e >= 255 {
            let finite = matches!(mode.mirrored(s), Rounding::Zero | Rounding::Down);
            return sign | if finite { 0x7f7f_ffff } else { 0x7f80_0000 };
        }
        sign | (e as u32) << 23 | (f - (1 << 23)) as u32
    }

    /// Returns the common end of add and mad: ±`a` ± `b` with three guard bits and a sticky one, at exponent `er`.
    fn sum(
        mut er: i32,
        (sa, a): (bool, u64),
        (sb, b): (bool, u64),
        rm: Rounding,
        denormal_place: bool,
    ) -> u32 {
        let signed = |s: bool, f: u64| if s { -(f as i64) } else { f as i64 };
        let res = signed(sa, a) + signed(sb, b);
        if res == 0 {
            return u32::from(sa & sb) << 31;
        }
        let (s, mut f) = (res < 0, res.unsigned_abs());
        while f < 1 << 27 {
            (f, er) = (f << 1, er - 1);
        }
        if denormal_place && er < 1 {
            (f, er) = (shr(f, 1 - er, Shift::Sticky), 1);
        }
        pack(s, er, shr(f, 4, Shift::Round(rm.mirrored(s))), rm)
    }

    pub(super) fn add(a: u32, b: u32, rm: Rounding) -> u32 {
        if nan(a) || nan(b) || (infinite(a) && infinite(b) && a != b) {
            return NAN;
        }
        if infinite(a) || infinite(b) {
            return if infinite(a) { a } else { b };
        }
        let ((sa, ea, fa), (sb, eb, fb)) = (unpack(a), unpack(b));
        let er = ea.max(eb) + 1;
        sum(
            er,
            (sa, shr(fa, er - ea - 4, Shift::Sticky)),
            (sb, shr(fb, er - eb - 4, Shift::Sticky)),
            rm,
            false,
        )
    }

    pub(super) fn mul(a: u32, b: u32, rm: Rounding, zero_wins: bool) -> u32 {
        let ((sa, ea, fa), (sb, eb, fb)) = (unpack(a), unpack(b));
        let s = sa ^ sb;
        let (zero_a, zero_b) = (fa == 0, fb == 0);
        if zero_wins && (zero_a || zero_b) {
            return 0;
        }
        if nan(a) || nan(b) || (infinite(a) && zero_b) || (infinite(b) && zero_a) {
            return NAN;
        }
        if infinite(a) || infinite(b) {
            return u32::from(s) << 31 | 0x7f80_0000;
        }
        if zero_a || zero_b {
            return u32::from(s) << 31;
        }
        let (mut p, mut e) = (fa * fb, ea + eb - 127 + 1);
        if p < 1 << 47 {
            (p, e) = (p << 1, e - 1);
        }
        pack(s, e, shr(p, 24, Shift::Round(rm.mirrored(s))), rm)
    }

    pub(super) fn mad(a: u32, b: u32, c: u32, zero_wins: bool) -> u32 {
        let ((sa, ea, fa), (sb, eb, fb), (sc, ec, fc)) = (unpack(a), unpack(b), unpack(c));
        let ss = sa ^ sb;
        if zero_wins && (fa == 0 || fb == 0) {
            return add(c, 0, Rounding::Nearest);
        }
        if nan(a) || nan(b) || nan(c) {
            return NAN;
        }
        if infinite(a) || infinite(b) {
            let product = u32::from(ss) << 31 | 0x7f80_0000;
            return if fa == 0 || fb == 0 || (infinite(c) && c != product) { NAN } else { product };
        }
        if infinite(c) {
            return c;
        }
        if fa == 0 || fb == 0 || fc == 0 {
            return add(mul(a, b, Rounding::Nearest, false), c, Rounding::Nearest);
        }
        let (mut p, mut es) = (fa * fb, ea + eb - 126);
        if p < 1 << 47 {
            (p, es) = (p << 1, es - 1);
        }
        let p = p >> 24;
        let er = es.max(ec) + 1;
        let (p, c) = (shr(p, er - es - 4, Shift::Sticky), shr(fc, er - ec - 4, Shift::Sticky));
        sum(er, (ss, p), (sc, c), Rounding::Nearest, true)
    }
}

fn apfloat(rounding: Rounding) -> Round {
    match rounding {
        Rounding::Nearest => Round::NearestTiesToEven,
        Rounding::Down => Round::TowardNegative,
        Rounding::Up => Round::TowardPositive,
        Rounding::Zero => Round::TowardZero,
    }
}

fn single(x: u32) -> Single {
    Single::from_bits(u128::from(float::flush(x)))
}

fn single_bits(x: Single) -> u32 {
    if x.is_nan() { NAN } else { float::flush(x.to_bits() as u32) }
}

fn value<T>(result: StatusAnd<T>) -> T {
    result.value
}

const COUNT: usize = 3_000_000;

#[test]
fn f32_add_is_the_models_and_the_flushed_ieee_sum() {
    let mut random = Operands::new(0x1f83_d9ab_fb41_bd6b);
    for _ in 0..COUNT {
        let a = random.f32();
        // Half of the time a neighbour of -a, to test cancellation.
        let b = match random.bits() & 1 {
            0 => random.f32(),
            _ => a ^ 0x8000_0000 ^ (random.bits() as u32 & random.of(&[1, 3, 0x0080_0001, 0x0180_0003])),
        };
        for rounding in Rounding::ALL {
            let got = float::add(a, b, rounding, Saturate::No).0;
            assert_eq!(got, plain::add(a, b, rounding), "{a:#x} + {b:#x}, {rounding:?}: model");
            let sum = value(single(a).add_r(single(b), apfloat(rounding)));
            // The hardware returns +0 for x - x in every mode; IEEE 754 returns -0 if rounding is down.
            let cancelled =
                single(a).is_finite() && sum.is_zero() && single(a).is_negative() != single(b).is_negative();
            let expected = if cancelled { 0 } else { single_bits(sum) };
            assert_eq!(got, expected, "{a:#x} + {b:#x}, {rounding:?}: apfloat");
        }
    }
}

#[test]
fn f32_mul_is_the_models_and_the_ieee_product_rounded_before_the_flush() {
    let mut random = Operands::new(0x5be0_cd19_137e_2179);
    let up = Single::from_bits(0x5f80_0000); // 2^64
    for _ in 0..COUNT {
        let a = random.f32();
        let b = match random.bits() & 1 {
            0 => random.f32(),
            // The product's exponent field is near the smallest.
            _ => {
                random.bits() as u32 & 0x807f_ffff
                    | (126 + (random.bits() as u32 & 3)).wrapping_sub(a >> 23 & 0xff) << 23
            }
        };
        for rounding in Rounding::ALL {
            let got = float::mul(a, b, rounding, Saturate::No, false).0;
            assert_eq!(got, plain::mul(a, b, rounding, false), "{a:#x} * {b:#x}, {rounding:?}: model");
            let mode = apfloat(rounding);
            let product = value(single(a).mul_r(single(b), mode));
            // A small product, scaled by 2^64, is rounded at 24 bits.
            let mut exact = false;
            let wide = |x: u32| -> Double { single(x).convert(&mut false).value };
            let scaled = value(wide(a).mul_r(wide(b), mode));
            let wide_up: Double = up.convert(&mut false).value;
            let scaled: Single = value(scaled.mul_r(wide_up, mode).value.convert_r(mode, &mut exact));
            let tiny = scaled.abs() < Single::from_bits(0x2080_0000) && !scaled.is_nan();
            let sign = (a ^ b) & 0x8000_0000;
            let expected = if tiny { sign } else { single_bits(product) };
            assert_eq!(got, expected, "{a:#x} * {b:#x}, {rounding:?}: apfloat");
        }
        let got = float::mul(a, b, Rounding::Nearest, Saturate::No, true).0;
        assert_eq!(got, plain::mul(a, b, Rounding::Nearest, true), "{a:#x} * {b:#x}, zero wins");
    }
}

#[test]
fn f32_mad_is_the_models() {
    let mut random = Operands::new(0x3c6e_f372_fe94_f82b);
    for round in 0..2 * COUNT {
        let (a, b) = (random.f32(), random.f32());
        let noise = random.bits() as u32;
        let c = match round % 4 {
            0 => random.f32(),
            // Minus the product, or close to it.
            1 => plain::mul(a, b, Rounding::Zero, false) ^ 0x8000_0000 ^ noise & 7,
            // Some places above or below the product.
            2 => {
                noise & 0x807f_ffff
                    | ((a >> 23 & 0xff) + (b >> 23 & 0xff))
                        .wrapping_sub(127 + 32)
                        .wrapping_add(noise >> 23 & 63)
                        << 23
                        & 0x7f80_0000
            }
            _ => noise & 0x80ff_ffff,
        };
        // For the smallest results: a product about 2^-126.
        let b = match round % 8 {
            3 => {
                noise.rotate_left(9) & 0x807f_ffff
                    | (127u32 + (noise >> 28)).wrapping_sub(a >> 23 & 0xff) << 23 & 0x7f80_0000
            }
            _ => b,
        };
        for zero_wins in [false, true] {
            let got = float::mad(a, b, c, false, Saturate::No, zero_wins).0;
            assert_eq!(
                got,
                plain::mad(a, b, c, zero_wins),
                "{a:#x} * {b:#x} + {c:#x}, zero wins {zero_wins}"
            );
        }
        let negated = float::mad(a, b, c, true, Saturate::No, false).0;
        assert_eq!(negated, plain::mad(a ^ 0x8000_0000, b, c, false), "-{a:#x} * {b:#x} + {c:#x}");
    }
}

#[test]
fn saturation_and_its_nan_modes_hold_for_every_operation() {
    let mut random = Operands::new(0xa54f_f53a_5f1d_36f1);
    for _ in 0..COUNT / 3 {
        let (a, b, c) = (random.f32(), random.f32(), random.f32());
        let operand = float::is_nan(a) || float::is_nan(b);
        type Operation = fn(u32, u32, u32, Saturate) -> (u32, Flags);
        let operations: [(Operation, bool); 3] = [
            (|a, b, _, sat| float::add(a, b, Rounding::Zero, sat), operand),
            (|a, b, _, sat| float::mul(a, b, Rounding::Nearest, sat, false), operand),
            (|a, b, c, sat| float::mad(a, b, c, false, sat, false), operand || float::is_nan(c)),
        ];
        for (operation, nan_operand) in operations {
            let raw = operation(a, b, c, Saturate::No).0;
            let clamped = match f32::from_bits(raw) {
                x if x.is_nan() => NAN,
                x if x > 0.0 => x.min(1.0).to_bits(),
                _ => 0,
            };
            let zero_all = if raw == NAN { 0 } else { clamped };
            let zero_operands = if nan_operand { 0 } else { clamped };
            assert_eq!(operation(a, b, c, Saturate::Plain), (clamped, float::flags(clamped)));
            assert_eq!(operation(a, b, c, Saturate::ZeroNan).0, zero_all);
            assert_eq!(operation(a, b, c, Saturate::ZeroNanOperands).0, zero_operands);
        }
    }
}

#[test]
fn a_nan_factor_saturates_to_zero_even_where_zero_wins() {
    // 0 * NaN + c: the product is 0 by MUL_ZERO_WINS, the result is c without saturation.
    let half = 0.5f32.to_bits();
    assert_eq!(float::mad(0, NAN, half, false, Saturate::Plain, true).0, half);
    assert_eq!(float::mad(0, NAN, half, false, Saturate::ZeroNan, true).0, 0);
    assert_eq!(float::mad(0, NAN, half, false, Saturate::ZeroNanOperands, true).0, 0);
}

fn wide(x: u64) -> Double {
    Double::from_bits(u128::from(x))
}

/// Returns whether the bits are equal, or both are NaN (the judge does not know the payload).
fn same(got: u64, expected: Double) -> bool {
    if expected.is_nan() { double::is_nan(got) } else { u128::from(got) == expected.to_bits() }
}

#[test]
fn f64_add_mul_and_fma_are_ieee_in_all_four_modes() {
    let mut random = Operands::new(0x510e_527f_ade6_82d1);
    for round in 0..COUNT / 2 {
        let (a, b) = (random.f64(), random.f64());
        let product = value(wide(a).mul_r(wide(b), Round::NearestTiesToEven)).to_bits() as u64;
        let c = match round % 3 {
            0 => random.f64(),
            1 => product ^ 1 << 63 ^ (random.bits() & 3),
            // The result is near the range of denormals.
            _ => random.bits() & 0x803f_ffff_ffff_ffff,
        };
        for rounding in Rounding::ALL {
            let mode = apfloat(rounding);
            let sum = double::add(rounding, false, false, a, c).0;
            assert!(same(sum, value(wide(a).add_r(wide(c), mode))), "{a:#x} + {c:#x} {rounding:?}: {sum:#x}");
            let product = double::mul(rounding, false, a, b).0;
            assert!(
                same(product, value(wide(a).mul_r(wide(b), mode))),
                "{a:#x} * {b:#x} {rounding:?}: {product:#x}"
            );
            let fused = double::fma(rounding, false, false, a, b, c).0;
            let expected = value(wide(a).mul_add_r(wide(b), wide(c), mode));
            assert!(
                same(fused, expected),
                "{a:#x} * {b:#x} + {c:#x} {rounding:?}: {fused:#x}, not {:#x}",
                expected.to_bits()
            );
        }
    }
}
