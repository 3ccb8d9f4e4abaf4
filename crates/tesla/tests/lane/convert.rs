//! Conversions of every f16, every 16-bit integer, and random wider values, compared with rustc_apfloat and plain
//! arithmetic.

use reconverge_tesla::lane::convert::{self, FloatSize, Integer, Size};
use reconverge_tesla::lane::float::{self, NAN, Saturate};
use reconverge_tesla::lane::{Modifiers, Rounding, Width, convert64, double};
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::operands::Operands;

const MODIFIERS: [Modifiers; 4] = [
    Modifiers::NONE,
    Modifiers::NEG,
    Modifiers { abs: true, neg: false },
    Modifiers { abs: true, neg: true },
];
const INTEGERS: [Integer; 6] = [
    Integer { size: Size::B8, signed: false },
    Integer { size: Size::B8, signed: true },
    Integer { size: Size::B16, signed: false },
    Integer { size: Size::B16, signed: true },
    Integer { size: Size::B32, signed: false },
    Integer { size: Size::B32, signed: true },
];

fn apfloat(rounding: Rounding) -> Round {
    match rounding {
        Rounding::Nearest => Round::NearestTiesToEven,
        Rounding::Down => Round::TowardNegative,
        Rounding::Up => Round::TowardPositive,
        Rounding::Zero => Round::TowardZero,
    }
}

fn single(x: u32) -> Single {
    Single::from_bits(u128::from(x))
}

#[test]
fn every_f16_widens_exactly() {
    for x in 0..=0xffffu32 {
        let half = Half::from_bits(u128::from(x));
        let wide: Single = half.convert(&mut false).value;
        let expected = if half.is_nan() { NAN } else { wide.to_bits() as u32 };
        assert_eq!(convert::widen_f16(x | 0xabcd_0000), expected, "{x:#x}");
        let (back, _) =
            convert::f2f16(false, Rounding::Nearest, Saturate::No, FloatSize::F16, Modifiers::NONE, x);
        assert_eq!(back, if half.is_nan() { 0x7fff } else { x });
    }
}

fn check_narrow(x: u32) {
    for rounding in Rounding::ALL {
        let got = convert::f2f16(false, rounding, Saturate::No, FloatSize::F32, Modifiers::NONE, x).0;
        let half: Half = single(x).convert_r(apfloat(rounding), &mut false).value;
        let expected = match x >> 23 & 0xff {
            0xff if half.is_nan() => 0x7fff,
            // Too small to be read, in every mode.
            0..=0x5d => x >> 16 & 0x8000,
            _ => half.to_bits() as u32,
        };
        assert_eq!(got, expected, "{x:#x} {rounding:?}");
    }
}

#[test]
fn f32_narrows_to_f16_at_every_tie_and_beside_it() {
    for x in 0..=0x7c00u32 {
        let (low, high) = (convert::widen_f16(x), convert::widen_f16((x + 1).min(0x7c00)));
        for place in [low, low / 2 + high / 2] {
            for near in place.saturating_sub(2)..place + 3 {
                check_narrow(near);
                check_narrow(near | 0x8000_0000);
            }
        }
    }
    // Near the smallest f16, near the smallest value that rounds up to it, and at the first overflow.
    for place in
        [0x2e80_0000u32, 0x2f00_0000, 0x3300_0000, 0x3380_0000, 0x477f_e000, 0x477f_f000, 0x4780_0000]
    {
        (place - 3..place + 4).for_each(check_narrow);
    }
    let mut random = Operands::new(0x1234_5678_9abc_def1);
    (0..1_000_000).for_each(|_| check_narrow(random.f32()));
}

/// Rounds a number to a whole number in a mode, by the host's own functions in doubles.
fn whole(x: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => x.round_ties_even(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
        Rounding::Zero => x.trunc(),
    }
}

fn check_f2i(from: FloatSize, x: u32) {
    for modifiers in MODIFIERS {
        let wide = if from == FloatSize::F16 { convert::widen_f16(x) } else { float::flush(x) };
        let source = f64::from(f32::from_bits(modifiers.f32(wide)));
        for rounding in Rounding::ALL {
            // A double's conversion saturates, and converts a NaN to 0.
            let rounded = whole(source, rounding) as i64;
            for (to, signed, low, high) in [
                (Width::B32, true, i64::from(i32::MIN), i64::from(i32::MAX)),
                (Width::B32, false, 0, i64::from(u32::MAX)),
                (Width::B16, true, i64::from(i16::MIN), i64::from(i16::MAX)),
                (Width::B16, false, 0, i64::from(u16::MAX)),
            ] {
                let expected = rounded.clamp(low, high) as u32 & (u32::MAX >> (32 - to.bits()));
                let (got, flags) = convert::f2i(to, signed, rounding, from, modifiers, x);
                assert_eq!(got, expected, "{x:#x} {from:?} {to:?} {signed} {rounding:?} {modifiers:?}");
                assert_eq!(flags.bits(), (got == 0) as u8 + 2 * (got >> (to.bits() - 1) != 0) as u8);
            }
        }
    }
}

#[test]
fn every_f16_and_random_f32_become_the_right_integers() {
    (0..=0xffff).for_each(|x| check_f2i(FloatSize::F16, x));
    let mut random = Operands::new(0x0fed_cba9_8765_4321);
    for _ in 0..200_000 {
        check_f2i(FloatSize::F32, random.f32());
        // Exponents that matter: from a quarter to 2^34.
        let x = random.bits() as u32;
        check_f2i(FloatSize::F32, x & 0x807f_ffff | (125 + (x >> 8) % 37) << 23);
    }
}

#[test]
fn f32_rounds_to_whole_numbers_as_the_soft_float_does() {
    let mut random = Operands::new(0xdead_beef_0bad_cafe);
    for _ in 0..1_000_000 {
        let noise = random.bits() as u32;
        for x in [random.f32(), noise & 0x807f_ffff | (125 + (noise >> 8) % 28) << 23] {
            for rounding in Rounding::ALL {
                let got = convert::round_to_integral(rounding, float::flush(x));
                let expected = single(float::flush(x)).round_to_integral(apfloat(rounding)).value;
                if expected.is_nan() {
                    assert!(float::is_nan(got));
                } else {
                    assert_eq!(u128::from(got), expected.to_bits(), "{x:#x} {rounding:?}");
                }
            }
        }
    }
}

/// Returns the source as a number, with the modifiers applied to its value.
fn number(from: Integer, modifiers: Modifiers, x: u32) -> i64 {
    let value = match (from.size, from.signed) {
        (Size::B8, false) => i64::from(x as u8),
        (Size::B8, true) => i64::from(x as i8),
        (Size::B16, false) => i64::from(x as u16),
        (Size::B16, true) => i64::from(x as i16),
        (Size::B32, false) => i64::from(x),
        (Size::B32, true) => i64::from(x as i32),
    };
    let value = if modifiers.abs { value.abs() } else { value };
    if modifiers.neg { -value } else { value }
}

fn check_integer_source(x: u32) {
    for from in INTEGERS {
        for modifiers in MODIFIERS {
            let value = number(from, modifiers, x);
            for to in INTEGERS {
                let bits = [8, 16, 32][to.size as usize];
                let (low, high) = match to.signed {
                    true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
                    false => (0, (1i64 << bits) - 1),
                };
                let clamped = value.clamp(low, high) as u32;
                let narrow = [Width::B16, Width::B16, Width::B32][to.size as usize];
                let wide = convert::i2i(to, Width::B32, from, modifiers, x).0;
                let got = convert::i2i(to, narrow, from, modifiers, x).0;
                assert_eq!(wide, clamped, "{x:#x} {from:?} {to:?} {modifiers:?}");
                assert_eq!(got, clamped & (u32::MAX >> (32 - narrow.bits())));
            }
            // Zero takes the sign of the modifier.
            let negative = value < 0 || (value == 0 && modifiers.neg);
            for rounding in Rounding::ALL {
                let magnitude = u128::from(value.unsigned_abs());
                let mode = if negative { -apfloat(rounding) } else { apfloat(rounding) };
                let single = Single::from_u128_r(magnitude, mode).value.to_bits() as u32;
                let expected = single | u32::from(negative) << 31;
                let got = convert::i2f(rounding, Saturate::No, from, modifiers, x).0;
                assert_eq!(got, expected, "{x:#x} {from:?} {rounding:?} {modifiers:?}");
            }
        }
    }
}

#[test]
fn every_16_bit_and_random_32_bit_integers_convert() {
    (0..=0xffff).for_each(check_integer_source);
    let mut random = Operands::new(0x0123_4567_89ab_cdef);
    for _ in 0..50_000 {
        check_integer_source(random.bits() as u32);
        // Ties at 24 bits.
        let noise = random.bits();
        check_integer_source((noise as u32 | 1 << 31 | 1) >> (noise >> 59));
    }
    [0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_ff7f, 0xffff_ff80, 0xffff_ffff]
        .into_iter()
        .for_each(check_integer_source);
}

#[test]
fn small_integers_reach_f16_unharmed_by_its_defects() {
    // A number that f16 holds exactly does not have any of the lost bits.
    let from = Integer { size: Size::B16, signed: true };
    for x in 0..=2048u32 {
        for rounding in Rounding::ALL {
            let got = convert::i2f16(rounding, Saturate::No, from, Modifiers::NONE, x).0;
            assert_eq!(f32::from_bits(convert::widen_f16(got)), x as f32);
        }
    }
}

const WIDE: [convert64::Integer; 4] = [
    convert64::Integer { wide: false, signed: false },
    convert64::Integer { wide: false, signed: true },
    convert64::Integer { wide: true, signed: false },
    convert64::Integer { wide: true, signed: true },
];

fn wide_number(from: convert64::Integer, x: u64) -> i128 {
    match (from.wide, from.signed) {
        (false, false) => i128::from(x as u32),
        (false, true) => i128::from(x as i32),
        (true, false) => i128::from(x),
        (true, true) => i128::from(x as i64),
    }
}

#[test]
fn wide_integers_round_once() {
    let mut random = Operands::new(0x7f4a_7c15_9e37_79b9);
    for _ in 0..300_000 {
        let noise = random.bits();
        let x = match noise & 1 {
            0 => random.bits() >> (noise >> 58),
            _ => {
                (random.of(&[1u64 << 63, 0x8000_0080_0000_0000, u64::MAX, 0x8000_0000_0000_0400]) | noise & 3)
                    >> (noise >> 58)
            }
        };
        for (from, rounding) in
            WIDE.into_iter().flat_map(|from| Rounding::ALL.map(|rounding| (from, rounding)))
        {
            let value = wide_number(from, x);
            for modifiers in MODIFIERS {
                let negative = (value < 0 && !modifiers.abs) != modifiers.neg;
                // The direction is that of the final sign for a signed source, and that of the magnitude otherwise.
                let mirrored = negative && from.signed;
                let mode = if mirrored { -apfloat(rounding) } else { apfloat(rounding) };
                let magnitude = value.unsigned_abs();
                let single = Single::from_u128_r(magnitude, mode).value.to_bits() as u32;
                let double = Double::from_u128_r(magnitude, mode).value.to_bits() as u64;
                let got = convert64::i2f32(rounding, from, modifiers, x).0;
                assert_eq!(
                    got,
                    single | u32::from(negative) << 31,
                    "{x:#x} {from:?} {rounding:?} {modifiers:?}"
                );
                let got = convert64::i2f64(rounding, from, modifiers, x).0;
                assert_eq!(
                    got,
                    double | u64::from(negative) << 63,
                    "{x:#x} {from:?} {rounding:?} {modifiers:?}"
                );
            }
        }
    }
}

#[test]
fn doubles_convert_as_the_soft_float_does() {
    let mut random = Operands::new(0xc2b2_ae3d_27d4_eb4f);
    for _ in 0..500_000 {
        let noise = random.bits();
        let x = match noise & 3 {
            0 => random.f64(),
            // Near the ends of the integers, and near one.
            1 => random.bits() & 0x800f_ffff_ffff_ffff | (1020 + (noise >> 8) % 70) << 52,
            2 => {
                random.bits() & 0x8000_0000_0000_001f
                    | (1020 + (noise >> 8) % 70) << 52
                    | ((noise >> 16 & 1) * 0xf_ffff_ffff_ffe0)
            }
            // Near the smallest f32.
            _ => random.bits() & 0x800f_ffff_ffff_ffff | (1023 - 152 + (noise >> 8) % 30) << 52,
        };
        let source = Double::from_bits(u128::from(x));
        if source.is_nan() {
            continue;
        }
        for rounding in Rounding::ALL {
            let mode = apfloat(rounding);
            let single: Single = source.convert_r(mode, &mut false).value;
            let got = convert64::f64_to_f32(rounding, Modifiers::NONE, x).0;
            assert_eq!(u128::from(got), single.to_bits(), "{x:#x} {rounding:?}");
            let integral = source.round_to_integral(mode).value;
            let got = convert64::f64_to_f64(Some(rounding), Modifiers::NONE, x).0;
            assert_eq!(u128::from(got), integral.to_bits(), "{x:#x} {rounding:?}");
            for to in WIDE {
                let bits = if to.wide { 64 } else { 32 };
                let expected = match to.signed {
                    true => source.to_i128_r(bits, mode, &mut false).value as u64,
                    false => source.to_u128_r(bits, mode, &mut false).value as u64,
                };
                let expected = if to.wide { expected } else { expected & 0xffff_ffff };
                let got = convert64::f64_to_i(to, rounding, Modifiers::NONE, x).0;
                assert_eq!(got, expected, "{x:#x} {to:?} {rounding:?}");
                // The path through f32, if it is exact.
                let back: Double = single.convert(&mut false).value;
                if back == source {
                    let (got, flags) =
                        convert64::f32_to_i(to, rounding, Modifiers::NONE, single.to_bits() as u32);
                    assert_eq!((got, flags), convert64::f64_to_i(to, rounding, Modifiers::NONE, x));
                }
            }
        }
    }
}

#[test]
fn f32_becomes_f64_exactly_and_nan_keeps_its_payload() {
    let mut random = Operands::new(0x1656_67b1_9e37_79f9);
    for _ in 0..300_000 {
        let x = random.f32();
        let got = convert64::f32_to_f64(Modifiers::NONE, x).0;
        if float::is_nan(x) {
            assert!(double::is_nan(got));
            assert_eq!(convert64::f64_to_f32(Rounding::Nearest, Modifiers::NONE, got).0, x | 0x0040_0000);
        } else {
            assert_eq!(got, f64::from(f32::from_bits(x)).to_bits());
        }
    }
}
