//! Integer arithmetic against plain arithmetic in 128 bits, as the description words it (chapter 5).

use reconverge_tesla::lane::integer::{self, Addition, Product};
use reconverge_tesla::lane::{Compare, Flags, Width};

use crate::operands::Operands;

const ADDITIONS: [Addition; 4] = [Addition::Add, Addition::Sub, Addition::Subr, Addition::Addc];
const WIDTHS: [Width; 2] = [Width::B16, Width::B32];

fn value(width: Width, signed: bool, x: u32) -> i128 {
    match (width, signed) {
        (Width::B16, true) => i128::from(x as i16),
        (Width::B16, false) => i128::from(x as u16),
        (Width::B32, true) => i128::from(x as i32),
        (Width::B32, false) => i128::from(x),
    }
}

fn bits(width: Width, x: i128) -> u32 {
    match width {
        Width::B16 => u32::from(x as u16),
        Width::B32 => x as u32,
    }
}

fn flags(width: Width, result: u32, carry: bool, overflow: bool) -> Flags {
    let (zero, sign) = (result == 0, value(width, true, result) < 0);
    Flags::from_bits(zero as u8 | (sign as u8) << 1 | (carry as u8) << 2 | (overflow as u8) << 3)
}

/// Returns the sum as a number. The carry is set if the unsigned sum exceeds the width, the overflow if the signed
/// sum does.
fn plain_add(op: Addition, width: Width, sat: bool, a: u32, b: u32, carry_in: Flags) -> (u32, Flags) {
    let (a, b, carry) = match op {
        Addition::Add => (a, b, 0),
        Addition::Sub => (a, !b, 1),
        Addition::Subr => (!a, b, 1),
        Addition::Addc => (a, b, i128::from(carry_in.carry())),
    };
    let unsigned = value(width, false, a) + value(width, false, b) + carry;
    let signed = value(width, true, a) + value(width, true, b) + carry;
    let (lowest, highest) = (-(1i128 << (width.bits() - 1)), (1i128 << (width.bits() - 1)) - 1);
    let overflow = signed != signed.clamp(lowest, highest);
    let result = bits(width, if sat { signed.clamp(lowest, highest) } else { signed });
    (result, flags(width, result, unsigned >> width.bits() != 0, overflow))
}

fn check_additions(a: u32, b: u32) {
    for op in ADDITIONS {
        for (width, sat) in [(Width::B16, false), (Width::B16, true), (Width::B32, false), (Width::B32, true)]
        {
            for carry in [Flags::NONE, Flags::C] {
                let got = integer::add(op, width, sat, a, b, carry.carry().into()).of_lane();
                assert_eq!(
                    got,
                    plain_add(op, width, sat, a, b, carry),
                    "{op:?} {width:?} {a:#x} {b:#x} {carry:?}"
                );
            }
        }
    }
}

/// Values at which carries, signs and widths change.
const EDGES: [u32; 18] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7ffe,
    0x7fff,
    0x8000,
    0x8001,
    0xfffe,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
];

#[test]
fn every_16_bit_value_adds_to_every_edge() {
    for a in 0..=0xffff {
        EDGES.iter().for_each(|&b| check_additions(a, b));
    }
}

#[test]
fn random_values_add() {
    let mut random = Operands::new(0x9b05_688c_2b3e_6c1f);
    for _ in 0..300_000 {
        check_additions(random.bits() as u32, random.bits() as u32);
        check_additions(random.bits() as u32, random.of(&EDGES));
    }
}

/// Returns the low or high bits of the whole product.
fn plain_product(product: Product, a: u32, b: u32) -> u32 {
    let low24 = |x: u32, signed: bool| match signed && x & 0x80_0000 != 0 {
        true => i128::from(x & 0xff_ffff) - (1 << 24),
        false => i128::from(x & 0xff_ffff),
    };
    match product {
        Product::Bits16 { signed1, signed2 } => {
            (value(Width::B16, signed1, a) * value(Width::B16, signed2, b)) as u32
        }
        Product::Bits24 { signed, high } => {
            ((low24(a, signed) * low24(b, signed)) >> if high { 16 } else { 0 }) as u32
        }
    }
}

#[test]
fn a_comparison_is_the_low_nibble_of_its_code() {
    for code in 0..=u8::MAX {
        assert_eq!(Compare::from_bits(code).bits(), code & 0xf);
    }
}

#[test]
fn products_mad_sad_min_max_and_set_are_those_of_whole_numbers() {
    let mut random = Operands::new(0x6a09_e667_f3bc_c908);
    let mut products = Vec::new();
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        products.push(Product::Bits16 { signed1: first, signed2: second });
        products.push(Product::Bits24 { signed: first, high: second });
    }
    for _ in 0..300_000 {
        let [a, b, c] = [(); 3].map(|()| match random.bits() & 3 {
            0 => random.of(&EDGES),
            _ => random.bits() as u32,
        });
        for &product in &products {
            let whole = plain_product(product, a, b);
            assert_eq!(
                integer::mul(product, a, b).of_lane(),
                (whole, flags(Width::B32, whole, false, false))
            );
            let (op, sat) = (random.of(&ADDITIONS), random.bits() & 1 != 0);
            let got = integer::mad(product, op, sat, [a, b, c], 1).of_lane();
            assert_eq!(got, plain_add(op, Width::B32, sat, whole, c, Flags::C), "{product:?} {op:?}");
        }
        for (width, signed) in WIDTHS.into_iter().flat_map(|width| [(width, false), (width, true)]) {
            let (x, y) = (value(width, signed, a), value(width, signed, b));
            let distance = (x - y).unsigned_abs() as u32;
            let sum = plain_add(Addition::Add, Width::B32, false, distance, c, Flags::NONE);
            assert_eq!(integer::sad(width, signed, a, b, c).of_lane(), sum);
            let (low, high) = (bits(width, x.min(y)), bits(width, x.max(y)));
            assert_eq!(integer::min(width, signed, a, b).of_lane(), (low, flags(width, low, false, false)));
            assert_eq!(integer::max(width, signed, a, b).of_lane(), (high, flags(width, high, false, false)));
            for code in 0..8u8 {
                let held =
                    code & match x.cmp(&y) {
                        std::cmp::Ordering::Less => 1,
                        std::cmp::Ordering::Equal => 2,
                        std::cmp::Ordering::Greater => 4,
                    } != 0;
                let expected = if held { (bits(width, -1), Flags::S) } else { (0, Flags::Z) };
                assert_eq!(integer::set(Compare::from_bits(code), width, signed, a, b).of_lane(), expected);
            }
        }
    }
}

/// Shifts one bit at a time.
fn plain_shift(width: Width, right: bool, signed: bool, a: u32, count: u32) -> (u32, Flags) {
    let (x, count) = (bits(width, i128::from(a)), bits(width, i128::from(count)));
    let top = 1 << (width.bits() - 1);
    let (mut result, mut carry) = (x, false);
    for _ in 0..count.min(64) {
        carry = result & if right { 1 } else { top } != 0;
        result = match right {
            true => result >> 1 | if signed { result & top } else { 0 },
            false => bits(width, i128::from(result) << 1),
        };
    }
    // C is set for counts below the width only.
    let carry = carry && count < width.bits();
    (result, flags(width, result, carry, count == 1 && (x ^ result) & top != 0))
}

fn check_shifts(width: Width, a: u32, count: u32) {
    assert_eq!(
        integer::shl(width, a, count).of_lane(),
        plain_shift(width, false, false, a, count),
        "{a:#x} << {count}"
    );
    for signed in [false, true] {
        let got = integer::shr(width, signed, a, count).of_lane();
        assert_eq!(got, plain_shift(width, true, signed, a, count), "{a:#x} >> {count}, {signed}");
    }
}

#[test]
fn every_16_bit_value_shifts_by_every_count_that_matters() {
    for a in 0..=0xffff {
        for count in (0..=34).chain([0x7f, 0x8000, 0xffff, 0x1_0000, 0x1_0003]) {
            check_shifts(Width::B16, a, count);
        }
    }
}

#[test]
fn random_32_bit_values_shift() {
    let mut random = Operands::new(0xbb67_ae85_84ca_a73b);
    for _ in 0..50_000 {
        let a = random.bits() as u32;
        for count in (0..=34).chain([0x7f, 0x1_0000, 0x1_0003, 0x8000_0001, 0xffff_ffff]) {
            check_shifts(Width::B32, a, count);
        }
    }
}
