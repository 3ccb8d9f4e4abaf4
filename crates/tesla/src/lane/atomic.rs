//! Atomics and reductions on one word of g[]. (6.8; hwtest/g80_atom32.cc, g80_atom64.cc)
//!
//! Atomics return the old word, and reductions return nothing. An atomic and a reduction with the same operation store
//! the same new word to memory. This file omits types of less than 32 bits. According to INSNS, chips before G200
//! replicate a value of less than 32 bits over the word. Later chips do nothing.

/// An operation on a 32-bit word. The type of the word is u32 or b32, or s32 if the instruction is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atomic {
    /// 0: old + src, u32 or s32.
    Add,
    /// 1: src. Not available as a reduction.
    Exch,
    /// 2: src3 if old equals src2, otherwise old. Not available as a reduction.
    Cas,
    /// 4: old + 1, or 0 if old is at least src.
    Inc,
    /// 5: old - 1, or src if old is 0 or greater than src.
    Dec,
    /// 6: the larger of old and src.
    Max,
    /// 7: the smaller of old and src.
    Min,
    /// 10: old & src.
    And,
    /// 11: old | src.
    Or,
    /// 12: old ^ src.
    Xor,
}

/// Returns the new word. Only [`Atomic::Cas`] uses `src3`. Only max, min, inc and dec use `signed`.
///
/// If `before_g200` is set, signed inc and dec treat a negative source as a signed number. G200 and later chips treat a
/// negative source as u32.
#[inline(always)]
pub fn atomic32(op: Atomic, signed: bool, before_g200: bool, old: u32, src2: u32, src3: u32) -> u32 {
    let signed_oddity = signed && before_g200 && (src2 as i32) < 0;
    let next = old.wrapping_add(1);
    let previous = old.wrapping_sub(1);
    match op {
        Atomic::Add => old.wrapping_add(src2),
        Atomic::Exch => src2,
        Atomic::Cas => {
            if old == src2 {
                src3
            } else {
                old
            }
        }
        Atomic::Inc if signed_oddity => {
            if odd(next, src2) {
                src2
            } else {
                next
            }
        }
        Atomic::Inc => {
            if next > src2 {
                0
            } else {
                next
            }
        }
        Atomic::Dec if signed_oddity => {
            if odd(next, src2) {
                0
            } else {
                previous
            }
        }
        Atomic::Dec => {
            if previous > src2 {
                src2
            } else {
                previous
            }
        }
        Atomic::Max if signed => (old as i32).max(src2 as i32) as u32,
        Atomic::Max => old.max(src2),
        Atomic::Min if signed => (old as i32).min(src2 as i32) as u32,
        Atomic::Min => old.min(src2),
        Atomic::And => old & src2,
        Atomic::Or => old | src2,
        Atomic::Xor => old ^ src2,
    }
}

/// For a negative source of a signed inc or dec, chips before G200 select one of two results by this condition. No test
/// vector covers this condition.
fn odd(next: u32, src: u32) -> bool {
    next as i32 > 0 || src as i32 > next as i32
}

/// The operations on 64-bit words. (G200 and later)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atomic64 {
    /// 0: old + src.
    Add,
    /// 1: src. Not available as a reduction.
    Exch,
    /// 2: src3 if old equals src2, otherwise old. Not available as a reduction.
    Cas,
}

/// Returns the new 64-bit value.
pub fn atomic64(op: Atomic64, old: u64, src2: u64, src3: u64) -> u64 {
    match op {
        Atomic64::Add => old.wrapping_add(src2),
        Atomic64::Exch => src2,
        Atomic64::Cas => {
            if old == src2 {
                src3
            } else {
                old
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inc_and_dec_wrap_at_the_source() {
        let inc = |old| atomic32(Atomic::Inc, false, false, old, 5, 0);
        assert_eq!([0, 4, 5, 6, u32::MAX].map(inc), [1, 5, 0, 0, 0]);
        let dec = |old| atomic32(Atomic::Dec, false, false, old, 5, 0);
        assert_eq!([0, 1, 6, 7, u32::MAX].map(dec), [5, 0, 5, 5, 5]);
    }

    #[test]
    fn signed_inc_and_dec_of_a_negative_source_misbehave_before_g200() {
        let minus = |x: i32| x as u32;
        let old = [minus(-7), minus(-6), minus(-5), minus(-1), 0];
        // In the five cases, old + 1 is -6, -5, -4, 0 and 1. The source is -5.
        let inc = |old| atomic32(Atomic::Inc, true, true, old, minus(-5), 0);
        assert_eq!(old.map(inc), [minus(-5), minus(-5), minus(-4), 0, minus(-5)]);
        let dec = |old| atomic32(Atomic::Dec, true, true, old, minus(-5), 0);
        assert_eq!(old.map(dec), [0, minus(-7), minus(-6), minus(-2), 0]);
        // On a later chip, signed inc has the same result as u32 inc. The result is also the same for a source that is
        // not negative.
        assert_eq!(atomic32(Atomic::Inc, true, false, 0, minus(-5), 0), 1);
        assert_eq!(atomic32(Atomic::Inc, true, true, 5, 5, 0), 0);
    }

    #[test]
    fn cas_stores_only_where_the_old_word_is_the_expected_one() {
        assert_eq!(atomic32(Atomic::Cas, false, false, 7, 7, 9), 9);
        assert_eq!(atomic32(Atomic::Cas, false, false, 7, 8, 9), 7);
        assert_eq!(atomic64(Atomic64::Cas, 7, 7, 1 << 40), 1 << 40);
    }
}
