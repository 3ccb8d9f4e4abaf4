//! Compares every operation on words in compiled code with the operation on one lane.

use reconverge_simt::random::Random;
use reconverge_simt::word::Word;

use super::*;
use crate::emitted::Emitted;
use crate::rows::Rows;
use crate::state::FLUSH_OPERANDS;
use crate::strip::Value;

const N: usize = 32;

/// Lists operations on three words. For each operation, there is a function of one lane and a function that emits code.
macro_rules! operations {
    ($( |$a:ident, $b:ident, $c:ident| $value:expr; )*) => {
        const OF_LANE: &[(&str, fn([u32; 3]) -> u32)] = &[$( (stringify!($value), |[$a, $b, $c]| $value) ),*];
        const EMIT: &[fn([Emitted<'_>; 3]) -> Value] = &[$( |[$a, $b, $c]| Emitted::value($value) ),*];
    };
}

operations! {
    |a, b, _c| a & b;
    |a, b, _c| a | b;
    |a, b, _c| a ^ b;
    |a, _b, _c| !a;
    |a, _b, _c| a.same(0x1234_5678);
    |a, b, _c| a.plus(b);
    |a, b, _c| a.minus(b);
    |a, b, _c| a.times(b);
    |a, b, _c| a.left(b);
    |a, b, _c| a.right(b);
    |a, b, _c| a.right_signed(b);
    |a, _b, _c| a.left(a.same(7));
    |a, _b, _c| a.right(a.same(31));
    |a, _b, _c| a.right_signed(a.same(32));
    |a, _b, _c| a.left(a.same(u32::MAX));
    |a, b, _c| a.min_signed(b);
    |a, b, _c| a.max_signed(b);
    |a, b, _c| a.min_unsigned(b);
    |a, b, _c| a.max_unsigned(b);
    |a, b, _c| a.equal(b);
    |a, b, _c| a.greater(b);
    |a, b, _c| a.at_least(b);
    |a, b, _c| a.greater_unsigned(b);
    |a, b, _c| a.at_least_unsigned(b);
    |a, b, _c| a.float_equal(b);
    |a, b, _c| a.float_greater(b);
    |a, b, _c| a.float_at_least(b);
    |a, _b, _c| a.is_nan();
    |a, _b, _c| a.to_float();
    |a, _b, _c| a.truncated();
    |a, b, c| a.choose(b, c);
    |a, _b, _c| a.extended(8, true);
    |a, _b, _c| a.extended(24, false);
    |a, _b, _c| a.extended(32, true);
}

/// Returns a boundary value, a small number, a float near the limits of integers, or random bits.
fn word(random: &mut Random) -> u32 {
    let special = [
        0,
        1 << 31,
        1,
        0x8000_0001,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7fff_ffff,
        u32::MAX,
        0x0080_0000,
    ];
    match random.below(4) {
        0 => random.one_of(&special),
        1 => random.below(40),
        2 => [0x4eff_ffff, 0x4f00_0000, 0xcf00_0000, 0xcf00_0001, 0x3f80_0000][random.below(5) as usize],
        _ => random.next(),
    }
}

#[test]
fn every_operation_on_words_gives_the_word_of_each_lane() {
    let seed = 0x5eed_0a0b;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for level in Level::available() {
        for ((name, of_lane), emit) in OF_LANE.iter().zip(EMIT) {
            let row = |number: usize| Row::Group((number * 4 * N) as u32);
            let mut rows = Rows::new(Row::Own(MASK), false);
            let sources = [0, 1, 2].map(|number| rows.read(row(number)));
            let value = rows.emit(sources, emit);
            let mut strip = rows.strip;
            strip.store(row(3), value);
            let nodes = [node(Segment::new(None, strip))];
            let code = Code::compile(&nodes, level, N, FLUSH_OPERANDS).expect("code");
            for _ in 0..20 {
                let mut rows = [[0; N]; 4];
                rows[..3].as_flattened_mut().fill_with(|| word(&mut random));
                let sources = rows;
                run(&code, 1, u32::MAX.into(), &mut rows, &mut [], |_, _| {});
                for lane in 0..N {
                    let of = [0, 1, 2].map(|number: usize| sources[number][lane]);
                    assert_eq!(rows[3][lane], of_lane(of), "{name} of {of:x?}, {}", level.name());
                }
            }
        }
    }
}
