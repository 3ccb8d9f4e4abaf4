//! Integer arithmetic. (5; every rule agrees with hwtest/g80_int.cc)
//!
//! A 16-bit operand is the low half of a 32-bit parameter, whatever the upper half. 16-bit results are zero-extended.

use reconverge_simt::word::Word;

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

/// A result and its flags, for any [`Word`].
#[derive(Clone, Copy, Debug)]
pub struct Flagged<W> {
    /// The result.
    pub word: W,
    /// The flags Z, S, C and O. The sign bit of a word states whether the flag is set. The other bits are arbitrary.
    pub flags: [W; 4],
}

impl Flagged<u32> {
    /// Returns the result and the flags of one lane.
    #[inline(always)]
    pub fn of_lane(self) -> (u32, Flags) {
        let [zero, sign, carry, overflow] = self.flags;
        (self.word, Flags((zero >> 31 | sign >> 31 << 1 | carry >> 31 << 2 | overflow >> 31 << 3) as u8))
    }
}

/// Computes add, sub, subr or addc, with or without saturation. Only `Addc` uses `carry`, 0 or 1. (5.1)
///
/// The flags Z and S describe the saturated result. The flags C and O describe the sum before saturation.
#[inline(always)]
pub fn add<W: Word>(op: Addition, width: Width, sat: bool, a: W, b: W, carry: W) -> Flagged<W> {
    // The operands of the equivalent addition. The operand of a subtraction is inverted.
    let (sum, a, b) = match op {
        Addition::Add => (a.plus(b), a, b),
        Addition::Sub => (a.minus(b), a, !b),
        Addition::Subr => (b.minus(a), !a, b),
        Addition::Addc => (a.plus(b).plus(carry), a, b),
    };
    let sum = width.extend(sum, false);
    // The carry out of the top bit, in 32-bit arithmetic. The carry is set if the top bits of both operands are ones.
    // The carry is also set if one top bit is one, and a carry from the lower bits has cleared the top bit of the sum.
    let carry_out = width.top(a & b | (a | b) & !sum);
    let overflow = width.top((a ^ sum) & (b ^ sum));
    if !sat {
        return Flagged { flags: flags_of(width, sum, carry_out, overflow), word: sum };
    }
    // If `a` is positive, the limit is the largest positive number. If `a` is negative, the limit has the bits of the
    // largest positive number plus one. These are the bits of the smallest negative number.
    let one = sum.same(1);
    let limit = sum.same(u32::MAX >> (33 - width.bits())).plus(width.top(a).right(sum.same(31)) & one);
    let result = overflow.choose(limit, sum);
    Flagged { flags: flags_of(width, result, carry_out, overflow), word: result }
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
    pub fn of<W: Word>(self, a: W, b: W) -> W {
        match self {
            Product::Bits16 { signed1, signed2 } => a.extended(16, signed1).times(b.extended(16, signed2)),
            Product::Bits24 { signed, high: false } => a.extended(24, signed).times(b.extended(24, signed)),
            Product::Bits24 { signed, high: true } => {
                // Each factor has an upper and a lower part of 12 bits, and every product of parts fits into a word.
                // The lowest 12 bits of the whole product are not part of the result.
                let (a, b) = (a.extended(24, signed), b.extended(24, signed));
                let part = |x: W| (x.right_signed(x.same(12)), x.extended(12, false));
                let ((a, low_a), (b, low_b)) = (part(a), part(b));
                let low = low_a.times(low_b).right(a.same(12));
                let middle = a.times(low_b).plus(low_a.times(b)).plus(low);
                a.times(b).left(a.same(8)).plus(middle.right_signed(a.same(4)))
            }
        }
    }
}

/// Computes mul with 16-bit or 24-bit factors. The flags C and O are 0. (5.2, 5.3)
#[inline(always)]
pub fn mul<W: Word>(product: Product, a: W, b: W) -> Flagged<W> {
    plain(Width::B32, product.of(a, b))
}

/// Computes a product and a 32-bit addition. `Sub` is product - c, and `Subr` is c - product. (5.4)
#[inline(always)]
pub fn mad<W: Word>(product: Product, op: Addition, sat: bool, [a, b, c]: [W; 3], carry: W) -> Flagged<W> {
    add(op, Width::B32, sat, product.of(a, b), c, carry)
}

/// Computes sad: |a - b| + c. The difference has the width `width`, and the sum always has 32 bits. (5.5)
#[inline(always)]
pub fn sad<W: Word>(width: Width, signed: bool, a: W, b: W, c: W) -> Flagged<W> {
    let (a, b) = (width.extend(a, signed), width.extend(b, signed));
    let a_less = relation(Compare::from_bits(1), signed, a, b);
    let distance = a_less.choose(b.minus(a), a.minus(b));
    add(Addition::Add, Width::B32, false, distance, c, c.same(0))
}

/// Computes min. The flags C and O are 0. (5.6)
#[inline(always)]
pub fn min<W: Word>(width: Width, signed: bool, a: W, b: W) -> Flagged<W> {
    let (a, b) = (width.extend(a, signed), width.extend(b, signed));
    plain(width, if signed { a.min_signed(b) } else { a.min_unsigned(b) })
}

/// Computes max. The flags C and O are 0. (5.6)
#[inline(always)]
pub fn max<W: Word>(width: Width, signed: bool, a: W, b: W) -> Flagged<W> {
    let (a, b) = (width.extend(a, signed), width.extend(b, signed));
    plain(width, if signed { a.max_signed(b) } else { a.max_unsigned(b) })
}

/// Computes set. The result is all ones in the width if the comparison is true, and 0 if the comparison is false. (5.7)
#[inline(always)]
pub fn set<W: Word>(compare: Compare, width: Width, signed: bool, a: W, b: W) -> Flagged<W> {
    let held = relation(compare, signed, width.extend(a, signed), width.extend(b, signed));
    Flagged { word: width.extend(held, false), flags: [!held, held, held.same(0), held.same(0)] }
}

/// Returns all ones if the comparison of two integers is true, and otherwise 0.
#[inline(always)]
fn relation<W: Word>(compare: Compare, signed: bool, a: W, b: W) -> W {
    let greater = |a: W, b: W| if signed { a.greater(b) } else { a.greater_unsigned(b) };
    match compare.bits() & 7 {
        0 => a.same(0),
        1 => greater(b, a),
        2 => a.equal(b),
        3 => !greater(a, b),
        4 => greater(a, b),
        5 => !a.equal(b),
        6 => !greater(b, a),
        _ => a.same(u32::MAX),
    }
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
pub fn logic<W: Word>(op: Logic, width: Width, not_a: bool, not_b: bool, a: W, b: W) -> Flagged<W> {
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
pub fn shl<W: Word>(width: Width, a: W, count: W) -> Flagged<W> {
    let (x, count) = (width.extend(a, false), width.extend(count, false));
    let result = width.extend(x.left(count), false);
    // For counts from 1 to width - 1, the carry is the last bit that is shifted out. This bit has the number
    // width - count. A second shift moves the bit to the sign bit. Bit 0 would become the carry only if the count equals
    // the width, and then the carry is 0. So the second shift omits bit 0.
    let carry = (x & x.same(!1)).left(count.plus(x.same(31_u32.wrapping_sub(width.bits()))));
    shifted(width, x, result, count, carry)
}

/// Computes shr. If `signed` is set, the shift copies the sign into the upper bits. shr uses the same bits of the count
/// as [`shl`]. (5.9)
#[inline(always)]
pub fn shr<W: Word>(width: Width, signed: bool, a: W, count: W) -> Flagged<W> {
    let (x, count) = (width.extend(a, false), width.extend(count, false));
    let extended = width.extend(x, signed);
    let wide = if signed { extended.right_signed(count) } else { extended.right(count) };
    // For counts from 1 to width - 1, the carry is bit count - 1. The top bit would become the carry only if the count
    // equals the width, and then the carry is 0. So the second shift omits the top bit.
    let carry = (x & x.same(u32::MAX >> (33 - width.bits()))).left(x.same(32).minus(count));
    shifted(width, x, width.extend(wide, false), count, carry)
}

/// Returns the result of a shift with its flags. O means that a shift by exactly one changed the sign.
#[inline(always)]
fn shifted<W: Word>(width: Width, x: W, result: W, count: W, carry: W) -> Flagged<W> {
    let overflow = count.equal(count.same(1)) & width.top(result ^ x);
    Flagged { word: result, flags: flags_of(width, result, carry, overflow) }
}

/// Returns the flags of a result of this width, with the flags C and O.
#[inline(always)]
fn flags_of<W: Word>(width: Width, result: W, carry: W, overflow: W) -> [W; 4] {
    [result.equal(result.same(0)), width.top(result), carry, overflow]
}

/// Returns the result, truncated to its width, with Z and S only.
#[inline(always)]
pub(super) fn plain<W: Word>(width: Width, result: W) -> Flagged<W> {
    let (word, zero) = (width.extend(result, false), result.same(0));
    Flagged { word, flags: flags_of(width, word, zero, zero) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logic_is_bit_by_bit_and_inverts_where_asked() {
        let (a, b) = (0xf0f0_1234, 0xff00_4321);
        let of = |op, width, not_a, not_b| logic(op, width, not_a, not_b, a, b).word;
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
        assert_eq!(logic(Logic::Xor, Width::B32, false, false, a, a).of_lane().1, Flags::Z);
        assert_eq!(logic(Logic::Or, Width::B32, false, false, a, b).of_lane().1, Flags::S);
    }
}
