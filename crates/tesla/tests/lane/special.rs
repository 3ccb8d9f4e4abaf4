//! The special function unit: the check values of its description, and the distance of its results from the
//! functions.

use reconverge_tesla::lane::float::Saturate;
use reconverge_tesla::lane::special::{cos, ex2, lg2, preex2, presin, rcp, rsqrt, sin};

use crate::operands::Operands;

#[test]
fn the_descriptions_check_values_hold() {
    for (x, expected) in [(0x3f80_0000, 0x3f80_0000), (0x4000_0000, 0x3f00_0000), (0x3f80_0001, 0x3f7f_fffe)]
    {
        assert_eq!(rcp(x), expected);
    }
    // Not symmetric: a negative logarithm is complemented.
    assert_eq!((lg2(0x4000_0000), lg2(0x3f00_0000)), (0x3f80_0000, 0xbf7f_fffe));
    assert_eq!((presin(0x3f80_0000), presin(0x4049_0fdb)), (0x0051_7cc1, 0x00ff_ffff));
    assert_eq!((preex2(0x3f80_0000), preex2(0xbf00_0000)), (0x0080_0000, 0x8040_0000));
    assert_eq!(ex2(0, Saturate::No), 0x3f80_0000);
    for (word, sine, cosine) in [
        (0, 0, 0x3f80_0000),
        (0x8000_0000, 0x8000_0000, 0x3f80_0000),
        (0x0080_0000, 0x3f80_0000, 0x8000_0000),
        (0x007f_ffff, 0x3f80_0000, 0),
        (0x0100_0000, 0x8000_0000, 0xbf80_0000),
        (0x0180_0000, 0xbf80_0000, 0),
    ] {
        assert_eq!((sin(word), cos(word)), (sine, cosine), "{word:#x}");
    }
}

#[test]
fn the_logarithm_of_what_is_just_below_one_is_not_zero() {
    // A sum of -1 would be complemented to 0, whose sign no document states; no source produces one.
    for x in 0x3f7e_0000..0x3f80_0000 {
        assert!(lg2(x) > 0x8000_0000 && lg2(x) < 0xc000_0000, "{x:#x}: {:#x}", lg2(x));
    }
}

/// An error in a table would be thousands of times larger than the bounds here.
#[test]
fn every_interval_of_every_table_is_near_its_function() {
    let near = |got: u32, exact: f64, bound: f64| (f64::from(f32::from_bits(got)) - exact).abs() <= bound;
    // 32 places in each of 2^10 intervals of [1, 4): all rows of all tables.
    for step in 0..3 << 15 {
        let x = 1.0f32 + step as f32 / 32768.0;
        let (bits, exact) = (x.to_bits(), f64::from(x));
        assert!(near(rcp(bits), 1.0 / exact, 1.2e-7 / exact), "rcp {x}");
        assert!(near(rsqrt(bits), 1.0 / exact.sqrt(), 1.8e-7), "rsqrt {x}");
        assert!(near(lg2(bits), exact.log2(), 2.5e-7), "lg2 {x}");
        assert!(near(sin(presin(bits)), exact.sin(), 6e-7), "sin {x}");
        assert!(near(cos(presin(bits)), exact.cos(), 6e-7), "cos {x}");
        let power = ex2(preex2(bits), Saturate::No);
        assert!(near(power, exact.exp2(), 2.5e-7 * exact.exp2()), "ex2 {x}");
        let power = ex2(preex2(bits | 0x8000_0000), Saturate::No);
        assert!(near(power, (-exact).exp2(), 2.5e-7 * (-exact).exp2()), "ex2 -{x}");
    }
}

#[test]
fn every_word_gives_a_normal_number_or_the_one_nan() {
    let mut random = Operands::new(0x8f1b_bcdc_ca62_c1d6);
    for _ in 0..1_000_000 {
        let x = random.f32();
        presin(x);
        preex2(x);
        for function in [rcp, rsqrt, lg2, sin, cos, |x| ex2(x, Saturate::Plain)] {
            // The result is not a denormal, and NaN results are canonical.
            let result = function(x);
            assert!(result & 0x7f80_0000 != 0 || result & 0x007f_ffff == 0, "{x:#x}: {result:#x}");
            assert!(result & 0x7fff_ffff <= 0x7f80_0000 || result == 0x7fff_ffff, "{x:#x}: {result:#x}");
        }
    }
}
