//! Tests the computations of one lane: the float profile and the corner cases of each family, as tables.

use reconverge_r700::{lane, lane64};

const INF: u32 = 0x7f80_0000;
const MINUS_ZERO: u32 = 0x8000_0000;
const DENORMAL: u32 = 0x0000_0001;
const SIGNALLING: u32 = 0x7f80_1234;

fn bits(value: f32) -> u32 {
    value.to_bits()
}

#[test]
fn denormals_are_zero_on_the_way_in_and_out() {
    assert_eq!(lane::add(DENORMAL, DENORMAL), 0);
    assert_eq!(lane::add(DENORMAL | MINUS_ZERO, MINUS_ZERO), MINUS_ZERO);
    assert_eq!(lane::mul_ieee(bits(1e-30), bits(-1e-10)), MINUS_ZERO);
    assert_eq!(lane::scale(bits(f32::MIN_POSITIVE), 0.5), 0);
    assert_eq!(lane::sete(DENORMAL, MINUS_ZERO), lane::ONE);
    assert_eq!(lane::exp_ieee(bits(-130.0)), 0);
}

#[test]
fn choices_keep_the_bits_of_what_they_choose() {
    assert_eq!(lane::max(DENORMAL, MINUS_ZERO), DENORMAL);
    assert_eq!(lane::cnde(DENORMAL, SIGNALLING, 0), SIGNALLING);
    assert_eq!(lane::mov(DENORMAL), DENORMAL);
}

#[test]
fn a_nan_operand_comes_out_quieted_and_the_first_one_wins() {
    assert_eq!(lane::add(SIGNALLING, 0x7fc0_0001), SIGNALLING | 0x0040_0000);
    assert_eq!(lane::mul_ieee(bits(1.0), SIGNALLING), SIGNALLING | 0x0040_0000);
    assert_eq!(lane::add(INF, lane::neg(INF)), lane::NAN);
    assert_eq!(lane::mul_ieee(INF, 0), lane::NAN);
    assert_eq!(lane::recipsqrt_ieee(bits(-1.0)), lane::NAN);
}

#[test]
fn a_legacy_product_with_zero_is_plus_zero() {
    for other in [INF, lane::NAN, bits(-3.0), MINUS_ZERO, DENORMAL] {
        assert_eq!(lane::mul(0, other), 0, "{other:08x}");
        assert_eq!(lane::mul(other, MINUS_ZERO), 0, "{other:08x}");
    }
    assert_eq!(lane::muladd(INF, 0, bits(2.0)), bits(2.0));
    assert_eq!(lane::muladd_ieee(INF, 0, bits(2.0)), lane::NAN);
}

#[test]
fn muladd_rounds_twice() {
    // (1 + 2^-12)^2 - 1 - 2^-11 = 2^-24 if fused, 0 if the product is rounded first.
    let a = bits(1.0 + 2f32.powi(-12));
    assert_eq!(lane::muladd_ieee(a, a, bits(-1.0 - 2f32.powi(-11))), 0);
}

#[test]
fn maxima_treat_nan_as_their_rule_says() {
    let nan = lane::NAN;
    assert_eq!([lane::max(nan, 5), lane::max(bits(1.0), nan)], [5, nan]);
    assert_eq!([lane::max_dx10(nan, bits(1.0)), lane::max_dx10(bits(1.0), nan)], [bits(1.0); 2]);
    assert_eq!([lane::min_dx10(nan, bits(1.0)), lane::min_dx10(bits(1.0), nan)], [bits(1.0); 2]);
}

#[test]
fn only_not_equal_holds_with_nan() {
    let nan = lane::NAN;
    let all = [lane::sete_dx10, lane::setgt_dx10, lane::setge_dx10, lane::setne_dx10];
    assert_eq!(all.map(|compare| compare(nan, nan)), [0, 0, 0, lane::TRUE]);
}

#[test]
fn clamp_makes_nan_zero_only_with_dx10_clamp() {
    assert_eq!([lane::clamp(lane::NAN, true), lane::clamp(lane::NAN, false)], [0, lane::NAN]);
    assert_eq!(
        [bits(-2.0), MINUS_ZERO, bits(0.25), bits(7.0), INF].map(|x| lane::clamp(x, true)),
        [0, 0, bits(0.25), lane::ONE, lane::ONE]
    );
}

#[test]
fn conversions_truncate_and_saturate() {
    let inputs = [bits(-1.9), bits(3e9), bits(-3e9), bits(5e9), lane::NAN];
    assert_eq!(inputs.map(lane::flt_to_int), [u32::MAX, 0x7fff_ffff, 0x8000_0000, 0x7fff_ffff, 0]);
    assert_eq!(inputs.map(lane::flt_to_uint), [0, 3_000_000_000, 0, u32::MAX, 0]);
    assert_eq!(lane::uint_to_flt(u32::MAX), bits(4294967296.0));
    assert_eq!(lane::int_to_flt(u32::MAX), bits(-1.0));
}

#[test]
fn reciprocals_have_three_rules_for_infinity() {
    assert_eq!(
        [lane::recip_ieee(MINUS_ZERO), lane::recip_clamped(MINUS_ZERO), lane::recip_ff(MINUS_ZERO)],
        [0xff80_0000, 0xff7f_ffff, MINUS_ZERO]
    );
    assert_eq!(
        [lane::recipsqrt_ieee(0), lane::recipsqrt_clamped(0), lane::recipsqrt_ff(0)],
        [INF, lane::FLT_MAX, 0]
    );
    assert_eq!([lane::log_ieee(0), lane::log_clamped(DENORMAL)], [0xff80_0000, 0xff7f_ffff]);
    assert_eq!(
        [lane::recip_uint(0), lane::recip_uint(1), lane::recip_uint(3)],
        [u32::MAX, u32::MAX, 0x5555_5555]
    );
}

#[test]
fn sine_counts_revolutions_and_is_exact_at_the_quarters() {
    let quarters = [-1.0f32, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 255.25];
    assert_eq!(
        quarters.map(|x| f32::from_bits(lane::sin(bits(x)))),
        [0.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0, 1.0]
    );
    assert_eq!(
        quarters.map(|x| f32::from_bits(lane::cos(bits(x)))),
        [1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0]
    );
    // A quarter is too small to add to these whole numbers.
    assert_eq!([2f32.powi(51), -(2f32.powi(90)), f32::MAX].map(|x| lane::cos(bits(x))), [lane::ONE; 3]);
    for step in 0..1000 {
        let x = step as f32 / 499.0 - 1.0;
        let (sine, cosine) = (f64::from(x) * std::f64::consts::TAU).sin_cos();
        assert!((f64::from(f32::from_bits(lane::sin(bits(x)))) - sine).abs() < 1e-7, "{x}");
        assert!((f64::from(f32::from_bits(lane::cos(bits(x)))) - cosine).abs() < 1e-7, "{x}");
    }
}

#[test]
fn integers_wrap_shift_by_five_bits_and_multiply_by_halves() {
    assert_eq!(lane::add_int(u32::MAX, 2), 1);
    assert_eq!(
        [lane::lshl_int(1, 33), lane::lshr_int(MINUS_ZERO, 32), lane::ashr_int(MINUS_ZERO, 63)],
        [2, MINUS_ZERO, u32::MAX]
    );
    assert_eq!(
        [lane::mulhi_int(u32::MAX, 5), lane::mulhi_uint(u32::MAX, 5), lane::mullo_int(u32::MAX, 5)],
        [u32::MAX, 4, (-5i32) as u32]
    );
}

#[test]
fn address_values_are_held_in_nine_bits() {
    let inputs = [-1000.0f32, -0.5, 0.5, 1.5, 254.7, 1000.0];
    assert_eq!(inputs.map(|x| lane::mova(bits(x))), [-256, 0, 0, 2, 255, 255]);
    assert_eq!(inputs.map(|x| lane::mova_floor(bits(x))), [-256, -1, 0, 1, 254, 255]);
    assert_eq!([i32::MIN, -256, 255, 256].map(|x| lane::mova_int(x as u32)), [-256, -256, 255, 255]);
}

#[test]
fn nesting_counters_count_up_and_down() {
    // A lane that skips counts the pushes that it passes. Pops count back.
    assert_eq!(lane::pred_set_push(0, false).value, bits(1.0));
    assert_eq!(lane::pred_set_push(bits(1.0), true).value, bits(2.0));
    assert!(!lane::pred_set_pop(bits(2.0), bits(1.0)).execute);
    assert!(lane::pred_set_pop(bits(1.0), bits(1.0)).execute);
    assert_eq!(lane::pred_set_inv(0).value, bits(1.0));
    assert!(lane::pred_set_inv(bits(1.0)).execute && lane::pred_set_restore(0).execute);
}

#[test]
fn doubles_flush_scale_and_take_apart() {
    let double = f64::to_bits;
    assert_eq!(lane64::add_64(1, 1), 0, "denormals are zero");
    assert_eq!(lane64::frexp_64(double(12.0)), (4, double(0.75)));
    // A signalling NaN becomes a quiet one.
    assert_eq!(lane64::frexp_64(0x7ff0_0000_0000_0001), (-1, 0x7ff8_0000_0000_0001));
    assert_eq!(lane64::ldexp_64(double(-3.0), 2), double(-12.0));
    assert_eq!(lane64::ldexp_64(double(-3.0), 5000), double(f64::NEG_INFINITY));
    assert_eq!(lane64::ldexp_64(double(-3.0), -5000), double(-0.0));
    assert_eq!(lane64::fract_64(double(-1.25)), double(0.75));
    assert_eq!(lane64::flt64_to_flt32(double(1.0 + 2f64.powi(-30))), lane::ONE);
    assert_eq!(lane64::flt32_to_flt64(bits(1.5)), double(1.5));
    let a = double(1.0 + 2f64.powi(-30));
    let c = double(-1.0 - 2f64.powi(-29));
    assert_eq!(lane64::muladd_64(a, a, c, 1.0, true), double(2f64.powi(-60)));
    assert_eq!(lane64::muladd_64(a, a, c, 1.0, false), 0);
}
