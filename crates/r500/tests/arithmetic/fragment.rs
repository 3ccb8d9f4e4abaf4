//! The fragment processor with profile R. Sums are exact before they are rounded.

use reconverge_r500::lane::{self, Term};
use reconverge_r500::words::{AluResultOp, Imod, Omod, SrcpOp, Target};
use reconverge_testkit::exact;
use reconverge_testkit::{Random, same_of_each, special_words};

use crate::rules::{
    Exact, INFINITY, NAN, ONE, SIGN, flushed, is_infinite, is_nan, judged, near, of_numbers, words,
};

const OMODS: [(Omod, i32); 7] = [
    (Omod::MUL_1, 0),
    (Omod::MUL_2, 1),
    (Omod::MUL_4, 2),
    (Omod::MUL_8, 3),
    (Omod::DIV_2, -1),
    (Omod::DIV_4, -2),
    (Omod::DIV_8, -3),
];

#[test]
fn omod_scales_what_is_rounded_and_disabled_it_passes_bits() {
    for (omod, scale) in OMODS {
        same_of_each("OMOD", words(|x| lane::scaled(x, omod)), |x, _| {
            of_numbers(x, |x| {
                let (significand, exponent) = exact::parts(x);
                let scaled = exact::nearest(x & SIGN != 0, significand.into(), exponent + scale);
                if is_infinite(x) { x } else { scaled }
            })
        });
    }
    same_of_each("OMOD disabled", words(|x| lane::scaled(x, Omod::DISABLED)), |x, _| x);
    same_of_each("clamp", words(lane::clamp), |x, _| match flushed(x) {
        nan if is_nan(nan) => 0,
        0 | SIGN.. => 0,
        ONE..SIGN => ONE,
        between => between,
    });
}

#[test]
fn a_fraction_is_scaled_and_rounded_once() {
    for (omod, scale) in OMODS {
        same_of_each("FRC", words(|x| lane::frc(x, omod)), |x, _| {
            of_numbers(x, |x| {
                let (magnitude, exponent) = exact::fraction(x);
                if is_infinite(x) { NAN } else { exact::nearest(false, magnitude, exponent + scale) }
            })
        });
    }
}

#[test]
fn reciprocals_are_the_nearest() {
    same_of_each("RCP", words(lane::rcp), |x, found| {
        of_numbers(x, |x| match x & !SIGN {
            0 => x | INFINITY,
            // Above 2^126 the result is a denormal.
            0x7e80_0001.. => x & SIGN,
            magnitude => {
                judged(found, found & SIGN == x & SIGN && exact::is_reciprocal(magnitude, found & !SIGN))
            }
        })
    });
    same_of_each("RSQ", words(lane::rsq), |x, found| {
        of_numbers(x, |x| match x {
            0 | SIGN => x | INFINITY,
            SIGN.. => NAN,
            INFINITY => 0,
            _ => judged(found, exact::is_reciprocal_root(x, found)),
        })
    });
}

#[test]
fn exponentials_and_logarithms_are_rounded_once() {
    same_of_each("EX2", words(lane::ex2), |x, found| {
        of_numbers(x, |x| match x {
            INFINITY => x,
            0xff80_0000 => 0,
            _ => near(found, Some(exact::exp2(x)), 0),
        })
    });
    same_of_each("LN2", words(lane::ln2), |x, found| {
        of_numbers(x, |x| match x {
            0 | SIGN => SIGN | INFINITY,
            SIGN.. => NAN,
            INFINITY => x,
            _ => near(found, exact::log2(x), 0),
        })
    });
}

#[test]
fn sines_are_rounded_once_and_plus_zero_at_their_zeros() {
    let finite = |x: u32, function: &dyn Fn(u32) -> u32| {
        of_numbers(x, |x| if is_infinite(x) { NAN } else { function(x) })
    };
    same_of_each("SIN", words(lane::sin), |x, found| finite(x, &|x| near(found, exact::sine_of_turns(x), 0)));
    same_of_each("COS", words(lane::cos), |x, found| {
        finite(x, &|x| near(found, exact::cosine_of_turns(x), 0))
    });
}

#[test]
fn modifiers_and_comparisons_of_one_word() {
    for x in special_words() {
        let modified = |modifier| lane::modify(f32::from_bits(x), modifier).to_bits();
        let found = [Imod::NOP, Imod::NEG, Imod::ABS, Imod::NAB].map(modified);
        assert_eq!(found, [x, x.wrapping_add(SIGN), x % SIGN, x % SIGN + SIGN], "{x:#010x}");
        let (nan, zero, low) = (is_nan(x), flushed(x) << 1 == 0, x >= SIGN);
        let expected = [!nan && zero, !nan && !zero && low, !nan && (zero || !low), nan || !zero];
        let value = f32::from_bits(x);
        let compare = |op| lane::compare(value, op);
        let all = [AluResultOp::EQ, AluResultOp::LT, AluResultOp::GE, AluResultOp::NE].map(compare);
        assert_eq!(all, expected, "{x:#010x}");
        let targets = [Target::A, Target::B, Target::C, Target::D].map(|to| lane::predicate(value, to));
        assert_eq!(targets, expected, "{x:#010x}");
        assert_eq!(lane::texkill(value), low, "{x:#010x}");
    }
}

/// A term as words: a product or a value.
#[derive(Clone, Copy, Debug)]
struct Operands {
    a: u32,
    b: u32,
    zero_wins: bool,
}

impl Operands {
    fn value(a: u32) -> Operands {
        Operands { a, b: ONE, zero_wins: false }
    }

    fn term(self) -> Term {
        match self.b {
            ONE if !self.zero_wins => Term::value(f32::from_bits(self.a)),
            _ => Term::product(f32::from_bits(self.a), f32::from_bits(self.b), self.zero_wins),
        }
    }

    /// Returns the exact term; `Err` with its bits for a NaN or an infinity.
    fn exact(self) -> Result<(Exact, bool), u32> {
        let (a, b) = (flushed(self.a), flushed(self.b));
        let negative = (a ^ b) & SIGN != 0;
        let (zero, nan) = (a << 1 == 0 || b << 1 == 0, is_nan(a) || is_nan(b));
        match (zero, is_infinite(a) || is_infinite(b)) {
            (true, _) if self.zero_wins => Ok((Exact::product(0, 0), negative)),
            _ if nan => Err(NAN),
            (true, true) => Err(NAN),
            (false, true) => Err((a ^ b) & SIGN | INFINITY),
            (_, false) => Ok((Exact::product(a, b), negative)),
        }
    }
}

/// Returns the exact sum, scaled and rounded once. It is -0 only if every term is -0.
fn expected_sum(terms: &[Operands], scale: i32) -> u32 {
    let special: Vec<u32> = terms.iter().filter_map(|term| term.exact().err()).collect();
    if let Some(first) = special.first() {
        let one_infinity = special.iter().all(|bits| bits == first);
        return if one_infinity { *first } else { NAN };
    }
    let exact: Vec<(Exact, bool)> = terms.iter().filter_map(|term| term.exact().ok()).collect();
    let sum = exact.iter().fold(Exact::product(0, 0), |sum, (term, _)| sum.plus(*term));
    match sum.is_zero() {
        true if exact.iter().all(|(term, negative)| term.is_zero() && *negative) => SIGN,
        true => 0,
        false => flushed(sum.rounded(scale)),
    }
}

/// Returns the sum with the one documented deviation of dot products (CTM guide p. 42): if the two largest terms
/// cancel and no other term is above 2^-25 of them, the sum is +0.
fn expected_dot(terms: &[Operands], scale: i32) -> u32 {
    let exact: Result<Vec<Exact>, u32> =
        terms.iter().map(|term| term.exact().map(|(exact, _)| exact)).collect();
    if let Ok(mut exact) = exact {
        // Sorts by magnitude, largest first.
        exact.sort_by(|a, b| {
            let (a, b) = (a.magnitude(), b.magnitude());
            b.is_below(a).cmp(&a.is_below(b)).reverse()
        });
        let rest = exact.get(2).map_or(Exact::product(0, 0), |third| third.magnitude());
        let cancelled = !exact[0].is_zero() && exact[0].plus(exact[1]).is_zero();
        if cancelled && !exact[0].magnitude().is_below(rest.doubled(25)) {
            return 0;
        }
    }
    expected_sum(terms, scale)
}

/// Returns words for terms: special ones, random ones, and ones that cancel.
fn operand(random: &mut Random, special: &[u32], before: &[Operands]) -> Operands {
    let mut word = || match random.below(8) {
        0..3 => random.one_of(special),
        3 => random.next() << 12 ^ random.next(),
        // A mantissa of few bits, near one.
        4 => random.next() & 0x8000_0000 | (0x3c00_0000 + (random.next() & 0x7f0_0000)),
        _ => random.next() & 0x8000_0000 | (0x3000_0000 + (random.next() & 0xfff_ffff)),
    };
    let (a, b) = (word(), word());
    let zero_wins = random.once_in(2);
    match before.last() {
        Some(last) if random.once_in(3) => Operands { a: last.a ^ SIGN ^ (random.below(8) / 7), ..*last },
        _ if random.once_in(4) => Operands::value(a),
        _ => Operands { a, b, zero_wins },
    }
}

#[test]
fn sums_and_dot_products_are_exact_until_they_are_rounded() {
    let special = special_words();
    let check = |terms: &[Operands], (omod, scale): (Omod, i32)| {
        let own: Vec<Term> = terms.iter().map(|term| term.term()).collect();
        let found = lane::sum(&own, omod).to_bits();
        assert_eq!(found, expected_sum(terms, scale), "sum of {terms:x?}, {omod:?}: {found:#010x}");
        if terms.len() > 2 {
            let found = lane::dot(&own, omod).to_bits();
            assert_eq!(found, expected_dot(terms, scale), "dot product {terms:x?}, {omod:?}: {found:#010x}");
        }
    };
    // A * B + C for every pair, with a C that cancels and one that does not.
    for (number, (a, b)) in special.iter().flat_map(|a| special.iter().map(move |b| (*a, *b))).enumerate() {
        let omod = OMODS[number % 7];
        let third = special[number * 7 % special.len()];
        for zero_wins in [false, true] {
            check(&[Operands { a, b, zero_wins }, Operands::value(third)], omod);
        }
        check(&[Operands::value(a), Operands::value(b)], omod);
        check(
            &[Operands { a, b, zero_wins: false }, Operands { a: a ^ SIGN, b: b ^ 1, zero_wins: false }],
            omod,
        );
    }
    let seed = 0x5eed_2440;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for round in 0..300_000 {
        let mut terms: Vec<Operands> = Vec::new();
        for _ in 0..2 + round % 3 {
            terms.push(operand(&mut random, &special, &terms));
        }
        check(&terms, OMODS[round % 7]);
    }
}

#[test]
fn the_deviation_of_dot_products_begins_at_a_part_of_two_to_the_25() {
    let value = |x: f32| Operands::value(x.to_bits());
    for (part, dropped) in [(25, true), (24, false), (26, true)] {
        let small = 3.0 / (1u32 << part) as f32;
        for terms in [[value(3.0), value(-3.0), value(small)], [value(-small), value(3.0), value(-3.0)]] {
            let own = terms.map(Operands::term);
            let found = lane::dot(&own, Omod::MUL_1).to_bits();
            assert_eq!(found, expected_dot(&terms, 0));
            assert_eq!(found == 0, dropped, "{part}");
        }
    }
}

#[test]
fn choices_and_presubtract_of_every_pair_of_special_words() {
    let special = special_words();
    for (a, b) in special.iter().flat_map(|a| special.iter().map(move |b| (*a, *b))) {
        let shown = || format!("{a:#010x} {b:#010x}");
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        // Ranks as integers in the order of the floats. Zeros are equal.
        let rank = |word: u32| {
            let magnitude = i64::from(flushed(word) & !SIGN);
            if word & SIGN != 0 { -magnitude } else { magnitude }
        };
        let (unordered, zeros) = (is_nan(a) || is_nan(b), rank(a) == 0 && rank(b) == 0);
        let less = !unordered && rank(a) < rank(b);
        let not_less = !unordered && !zeros && rank(a) >= rank(b);
        assert_eq!(lane::min(x, y).to_bits(), if less { a } else { b }, "{}", shown());
        assert_eq!(lane::max(x, y).to_bits(), if not_less { a } else { b }, "{}", shown());
        let half = !is_nan(a) && rank(a) > i64::from(0.5f32.to_bits());
        assert_eq!(lane::cnd(1.0, 2.0, x), if half { 1.0 } else { 2.0 }, "{}", shown());
        assert_eq!(lane::cmp(1.0, 2.0, x), if !is_nan(a) && rank(a) >= 0 { 1.0 } else { 2.0 }, "{}", shown());
        assert_eq!(lane::cmp(y, x, 1.0).to_bits(), b, "bits pass");
        let (one, plus, minus) = (Operands::value(ONE), Operands::value(a), Operands::value(a ^ SIGN));
        let twice = Operands { a: a ^ SIGN, b: 0x4000_0000, zero_wins: false };
        for (op, terms) in [
            (SrcpOp::NEG2, [one, twice]),
            (SrcpOp::SUB, [Operands::value(b), minus]),
            (SrcpOp::ADD, [Operands::value(b), plus]),
            (SrcpOp::NEG, [one, minus]),
        ] {
            let found = lane::presubtract(op, x, y).to_bits();
            assert_eq!(found, expected_sum(&terms, 0), "{op:?} {}", shown());
        }
    }
}
