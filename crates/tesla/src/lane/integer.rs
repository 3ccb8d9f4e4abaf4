//! Integer arithmetic. (5; every rule agrees with hwtest/g80_int.cc)
//!
//! A 16-bit operand is the low half of a 32-bit parameter, whatever the upper half. 16-bit results are zero-extended.

use super::{Compare, Flags, Width};

/// The four kinds of addition. The encodings of add and mad contain two bits that select the kind. (5.1)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addition {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// b - a
    Subr,
    /// a + b + carry
    Addc,
}

/// Computes add, sub, subr or addc, with or without saturation. Only `Addc` uses `carry_in`. (5.1)
///
/// The flags Z and S describe the saturated result. The flags C and O describe the sum before saturation.
#[inline(always)]
pub fn add(op: Addition, width: Width, sat: bool, a: u32, b: u32, carry_in: Flags) -> (u32, Flags) {
    let (a, b, carry) = match op {
        Addition::Add => (a, b, 0),
        Addition::Sub => (a, !b, 1),
        Addition::Subr => (!a, b, 1),
        Addition::Addc => (a, b, carry_in.carry() as u32),
    };
    let (mask, top) = (width.mask(), width.top());
    let (a, b) = (a & mask, b & mask);
    let sum = a.wrapping_add(b).wrapping_add(carry) & mask;
    // The carry out of the top bit, in 32-bit arithmetic. The carry is set if the top bits of both operands are ones.
    // The carry is also set if one top bit is one, and a carry from the lower bits has cleared the top bit of the sum.
    let carry_out = ((a & b) | ((a | b) & !sum)) & top != 0;
    let overflow = (a ^ sum) & (b ^ sum) & top != 0;
    // If `a` is positive, the limit is the largest positive number. If `a` is negative, the limit has the bits of the
    // largest positive number plus one. These are the bits of the smallest negative number.
    let limit = (top - 1) + (a & top != 0) as u32;
    let result = if sat & overflow { limit } else { sum };
    (result, Flags::of(result == 0, result & top != 0, carry_out, overflow))
}

/// A kind of multiplication. The kind selects which bits of the sources are the factors, and which bits of the product
/// are the result. (5.2 to 5.4)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Product {
    /// Both factors have 16 bits. Each factor is signed or unsigned. The result is the product modulo 2^32.
    Bits16 {
        /// Whether SRC1 is signed.
        signed1: bool,
        /// Whether SRC2 is signed.
        signed2: bool,
    },
    /// Both factors have 24 bits. Either both factors are signed, or both factors are unsigned.
    Bits24 {
        /// Whether both sources are signed.
        signed: bool,
        /// Whether the result is bits 16 to 47 of the product rather than bits 0 to 31.
        high: bool,
    },
}

impl Product {
    /// Returns the 32 bits of the product that are the result.
    #[inline(always)]
    pub fn of(self, a: u32, b: u32) -> u32 {
        match self {
            Product::Bits16 { signed1, signed2 } => {
                Width::B16.extend(a, signed1).wrapping_mul(Width::B16.extend(b, signed2))
            }
            Product::Bits24 { signed, high: false } => low24(a, signed).wrapping_mul(low24(b, signed)),
            Product::Bits24 { signed: true, high: true } => {
                ((low24(a, true) as i32 as i64 * low24(b, true) as i32 as i64) >> 16) as u32
            }
            Product::Bits24 { signed: false, high: true } => {
                ((low24(a, false) as u64 * low24(b, false) as u64) >> 16) as u32
            }
        }
    }
}

/// Returns the low 24 bits, extended to 32 bits.
#[inline(always)]
fn low24(x: u32, signed: bool) -> u32 {
    if signed { ((x << 8) as i32 >> 8) as u32 } else { x & 0xff_ffff }
}

/// Computes mul with 16-bit or 24-bit factors. The flags C and O are 0. (5.2, 5.3)
#[inline(always)]
pub fn mul(product: Product, a: u32, b: u32) -> (u32, Flags) {
    plain(Width::B32, product.of(a, b))
}

/// Computes a product and a 32-bit addition. `Sub` is product - c, and `Subr` is c - product. (5.4)
#[inline(always)]
pub fn mad(
    product: Product,
    op: Addition,
    sat: bool,
    a: u32,
    b: u32,
    c: u32,
    carry_in: Flags,
) -> (u32, Flags) {
    add(op, Width::B32, sat, product.of(a, b), c, carry_in)
}

/// Computes sad: |a - b| + c. The difference has the width `width`, and the sum always has 32 bits. (5.5)
#[inline(always)]
pub fn sad(width: Width, signed: bool, a: u32, b: u32, c: u32) -> (u32, Flags) {
    let (a, b) = (width.extend(a, signed), width.extend(b, signed));
    let a_less = if signed { (a as i32) < b as i32 } else { a < b };
    let distance = if a_less { b.wrapping_sub(a) } else { a.wrapping_sub(b) };
    add(Addition::Add, Width::B32, false, distance, c, Flags::NONE)
}

/// Computes min. The flags C and O are 0. (5.6)
#[inline(always)]
pub fn min(width: Width, signed: bool, a: u32, b: u32) -> (u32, Flags) {
    let (a, b) = (width.extend(a, signed), width.extend(b, signed));
    plain(width, if signed { (a as i32).min(b as i32) as u32 } else { a.min(b) })
}

/// Computes max. The flags C and O are 0. (5.6)
#[inline(always)]
pub fn max(width: Width, signed: bool, a: u32, b: u32) -> (u32, Flags) {
    let (a, b) = (width.extend(a, signed), width.extend(b, signed));
    plain(width, if signed { (a as i32).max(b as i32) as u32 } else { a.max(b) })
}

/// Computes set. The result is all ones in the width if the comparison is true, and 0 if the comparison is false. (5.7)
#[inline(always)]
pub fn set(compare: Compare, width: Width, signed: bool, a: u32, b: u32) -> (u32, Flags) {
    let (a, b) = (width.extend(a, signed), width.extend(b, signed));
    let less = if signed { (a as i32) < b as i32 } else { a < b };
    let held = compare.holds(less, a == b, !less & (a != b));
    (if held { width.mask() } else { 0 }, Flags::truth(held))
}

/// The four bitwise operations. (5.8)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logic {
    /// a & b
    And,
    /// a | b
    Or,
    /// a ^ b
    Xor,
    /// b, the second source.
    Mov2,
}

/// Computes and, or, xor or mov2. Each source is inverted first if requested. The flags C and O are 0. (5.8)
#[inline(always)]
pub fn logic(op: Logic, width: Width, not_a: bool, not_b: bool, a: u32, b: u32) -> (u32, Flags) {
    let (a, b) = (if not_a { !a } else { a }, if not_b { !b } else { b });
    plain(
        width,
        match op {
            Logic::And => a & b,
            Logic::Or => a | b,
            Logic::Xor => a ^ b,
            Logic::Mov2 => b,
        },
    )
}

/// Computes shl. A 16-bit shift uses 16 bits of the count, and a 32-bit shift uses all 32 bits. (5.9)
#[inline(always)]
pub fn shl(width: Width, a: u32, count: u32) -> (u32, Flags) {
    let (x, count) = (a & width.mask(), count & width.mask());
    let result = if count < 32 { x << (count & 31) } else { 0 } & width.mask();
    // For counts from 1 to width - 1, the carry is the last bit that is shifted out. For other counts, the carry is 0.
    let carry = (count.wrapping_sub(1) < width.bits() - 1)
        & ((x >> (width.bits().wrapping_sub(count) & 31)) & 1 != 0);
    shifted(width, x, result, count, carry)
}

/// Computes shr. If `signed` is set, the shift copies the sign into the upper bits. shr uses the same bits of the count
/// as [`shl`]. (5.9)
#[inline(always)]
pub fn shr(width: Width, signed: bool, a: u32, count: u32) -> (u32, Flags) {
    let (x, count) = (a & width.mask(), count & width.mask());
    let extended = width.extend(x, signed);
    // After a signed shift by 31, all bits are copies of the sign. Larger counts have the same result.
    let result = match signed {
        true => ((extended as i32) >> count.min(31)) as u32 & width.mask(),
        false => {
            if count < 32 {
                extended >> (count & 31)
            } else {
                0
            }
        }
    };
    let carry = (count.wrapping_sub(1) < width.bits() - 1) & ((x >> (count.wrapping_sub(1) & 31)) & 1 != 0);
    shifted(width, x, result, count, carry)
}

/// Returns the result of a shift with its flags. O means that a shift by exactly one changed the sign.
#[inline(always)]
fn shifted(width: Width, x: u32, result: u32, count: u32, carry: bool) -> (u32, Flags) {
    let overflow = (count == 1) & ((result ^ x) & width.top() != 0);
    (result, Flags::of(result == 0, result & width.top() != 0, carry, overflow))
}

/// Returns the result, truncated to its width, with Z and S only.
#[inline(always)]
pub(super) fn plain(width: Width, result: u32) -> (u32, Flags) {
    let result = result & width.mask();
    (result, Flags::of(result == 0, result & width.top() != 0, false, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logic_is_bit_by_bit_and_inverts_where_asked() {
        let (a, b) = (0xf0f0_1234, 0xff00_4321);
        let of = |op, width, not_a, not_b| logic(op, width, not_a, not_b, a, b).0;
        for (op, whole) in [
            (Logic::And, 0xf000_0220),
            (Logic::Or, 0xfff0_5335),
            (Logic::Xor, 0x0ff0_5115),
            (Logic::Mov2, 0xff00_4321),
        ] {
            assert_eq!(of(op, Width::B32, false, false), whole, "{op:?}");
            assert_eq!(of(op, Width::B16, false, false), whole & 0xffff, "{op:?}");
        }
        assert_eq!(of(Logic::And, Width::B32, true, false), 0x0f00_4101);
        assert_eq!(of(Logic::And, Width::B32, false, true), 0x00f0_1014);
        assert_eq!(of(Logic::Xor, Width::B32, true, true), 0x0ff0_5115);
        assert_eq!(of(Logic::Mov2, Width::B32, false, true), 0x00ff_bcde);
        assert_eq!(logic(Logic::Xor, Width::B32, false, false, a, a).1, Flags::Z);
        assert_eq!(logic(Logic::Or, Width::B32, false, false, a, b).1, Flags::S);
    }
}
