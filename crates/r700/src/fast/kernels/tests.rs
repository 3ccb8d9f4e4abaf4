//! For every opcode, compares its kernel with the lane function that the reference interpreter calls. The tests run
//! every instruction set level that this processor supports, with special values and random bits.

use std::sync::LazyLock;

use reconverge_simt::Mask;
use reconverge_simt::guarded::Guarded;
use reconverge_simt::place::{Frame, Layout};
use reconverge_simt::registers::Row;
use reconverge_testkit::Random;

use super::super::lanes::{ACTIVE, Tables};
use super::*;
use crate::chip::Chip;
use crate::launch::{Environment, Stage};
use crate::meaning::{Meaning, op2, op3};

/// Layout of the rows in these tests.
const LAYOUT: Layout<LANES> = Layout::new(5);

/// Returns random rows.
fn rows(random: impl Fn(&mut Random) -> u32, source: &mut Random) -> Guarded<Row<LANES>> {
    (0..5).map(|_| Row(std::array::from_fn(|_| random(source)))).collect()
}

/// An environment for the lanes. The kernels in these tests do not read the environment.
static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| Environment::new(Chip::RV770, Stage::Pixel));

/// Returns the state of lanes with these rows, in which the lanes `running` are active.
fn lanes(mut rows: Guarded<Row<LANES>>, running: u64, tables: &Tables) -> Lanes<'_> {
    // SAFETY: all positions in these tests belong to this layout.
    let mut frame = unsafe { Frame::empty(&LAYOUT) };
    // SAFETY: all positions in these tests belong to the layout of the rows.
    unsafe { frame.swap(&mut rows) };
    Lanes {
        frame,
        sets: [Mask(running); 4],
        predicate: 0x0123_4567_89ab_cdef,
        skip: 0,
        killed: 0,
        loop_index: 0,
        tables,
        environment: &ENVIRONMENT,
    }
}

/// Boundary values of the operations.
#[rustfmt::skip]
const SPECIAL: [u32; 32] = [
    0, 0x8000_0000, 1, 0x8000_0001, 0x007f_ffff, 0x807f_ffff, 0x0080_0000, 0x8080_0000,
    0x0080_0001, 0x00ff_ffff, 0x3f80_0000, 0xbf80_0000, 0x3f7f_ffff, 0x3f80_0001, 0x4000_0000, 0x3f00_0000,
    0x7f7f_ffff, 0xff7f_ffff, 0x7f80_0000, 0xff80_0000, 0x7f80_0001, 0x7fc0_0000, 0xffc0_1234, 0xff80_0001,
    0x7fff_ffff, 0xffff_ffff, 31, 32, 0x1fff_ffff, 0x4f00_0000, 0xcf00_0000, 0x4f80_0000,
];

/// Returns a special value, a small float or denormal, a small integer, or random bits.
fn word(random: &mut Random) -> u32 {
    let word = random.next();
    match random.next() % 4 {
        0 => random.one_of(&SPECIAL),
        1 => word & 0x83ff_ffff,
        2 => word & 0xff,
        _ => word,
    }
}

/// Returns the result of the reference interpreter for one lane, and whether a test holds.
fn expected(meaning: Meaning, src: [u32; 3], operation: &Operation) -> (u32, bool) {
    let [a, b, c] = src;
    match meaning {
        Meaning::Float1(f) => (finish(f(a), operation), false),
        Meaning::Float2(f) => (finish(f(a, b), operation), false),
        Meaning::Float3(f, _) => (finish(f(a, b, c), operation), false),
        Meaning::Bits1(f) => (f(a), false),
        Meaning::Bits2(f) => (f(a, b), false),
        Meaning::Bits3(f) => (f(a, b, c), false),
        Meaning::PredSet(f) => (f(a, b).value, f(a, b).execute),
        Meaning::Kill(f) => (if f(a, b) { lane::ONE } else { 0 }, f(a, b)),
        Meaning::Mova(f) => (f(a) as u32, false),
        Meaning::Nothing | Meaning::MovaLoop(_) | Meaning::Reduce(_) | Meaning::Cube | Meaning::Double(_) => {
            panic!("no code of its own")
        }
    }
}

fn check(code: AluCode, meaning: Meaning, level: Level, random: &mut Random) -> usize {
    let tables = Tables::default();
    let mut ways = 0;
    for number in 0..8 {
        let shape = Shape { modified: number & 1 != 0, finish: number & 2 != 0, write: number & 4 != 0 };
        let Some(run) = choose(code, shape, Family::R700, level) else { continue };
        ways += 1;
        for round in 0..200 {
            let rows = rows(word, random);
            let modifier = |random: &mut Random, number: u32| {
                if shape.modified { random.next() & number != 0 } else { false }
            };
            let running = if round % 3 == 0 {
                u64::MAX
            } else {
                u64::from(random.next()) << 32 | u64::from(random.next())
            };
            let mut lanes = lanes(rows.clone(), running, &tables);
            let operation = Operation {
                run,
                src: [0, 1, 2].map(|row| LAYOUT.place(row)),
                dst: LAYOUT.place(3),
                keep: [1, 2, 4].map(|bit| if modifier(random, bit) { 0x7fff_ffff } else { u32::MAX }),
                flip: [1, 2, 4].map(|bit| if modifier(random, bit) { 0x8000_0000 } else { 0 }),
                factor: if shape.finish { [1.0, 2.0, 4.0, 0.5][round % 4] } else { 1.0 },
                clamp: shape.finish && random.next() & 8 != 0,
                dx10_clamp: random.next() & 8 != 0,
                set: ACTIVE,
                update_pred: random.next() & 8 != 0,
                update_execute_mask: true,
                number: 0,
            };
            // SAFETY: the processor supports the level, and all four rows exist.
            unsafe { run(&mut lanes, &operation) };
            let mut holds = 0;
            for lane in 0..LANES {
                let src = [0, 1, 2].map(|number: usize| {
                    rows[number].0[lane] & operation.keep[number] ^ operation.flip[number]
                });
                let (value, holding) = expected(meaning, src, &operation);
                let decides = matches!(meaning, Meaning::PredSet(_) | Meaning::Kill(_));
                let written = running >> lane & 1 != 0 && (shape.write || !decides);
                let wanted = if written { value } else { rows[3].0[lane] };
                let shown = format!("{} {shape:?} {} of {src:x?}, lane {lane}", code.name(), level.name());
                assert_eq!(lanes.row(LAYOUT.place(3))[lane], wanted, "{shown}");
                holds |= u64::from(holding) << lane;
            }
            match meaning {
                Meaning::PredSet(_) => {
                    assert_eq!(lanes.skip, running & !holds);
                    let updated = 0x0123_4567_89ab_cdef & !running | holds & running;
                    let wanted = if operation.update_pred { updated } else { 0x0123_4567_89ab_cdef };
                    assert_eq!(lanes.predicate, wanted);
                }
                Meaning::Kill(_) => assert_eq!(lanes.killed, holds & running),
                _ => {}
            }
        }
    }
    ways
}

#[test]
fn every_code_of_an_opcodes_own_gives_what_its_lane_function_gives() {
    let seed = 0x2545_f491_4f6c_dd1d;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for level in Level::available() {
        let mut opcodes = 0;
        for code in Op2::ALL {
            if let Some(opcode) = op2(*code, Family::R700) {
                opcodes += usize::from(check(opcode.code, opcode.meaning, level, &mut random) > 0);
            }
        }
        for code in Op3::ALL {
            let opcode = op3(*code);
            opcodes += usize::from(check(opcode.code, opcode.meaning, level, &mut random) > 0);
        }
        assert!(opcodes > 95, "{} has only {opcodes} opcodes with code of their own", level.name());
    }
}

#[test]
fn two_codes_in_one_give_what_both_give_one_after_the_other() {
    let seed = 0x9e37_79b9_7f4a_7c15;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let tables = Tables::default();
    let alone = Shape { modified: false, finish: false, write: true };
    let mut pairs = 0;
    for level in Level::available() {
        let codes = || Op2::ALL.iter().map(|code| AluCode::Op2(*code));
        for (first, second) in codes().flat_map(|first| codes().map(move |second| (first, second))) {
            let Some(both) = choose_both(first, second, level) else { continue };
            pairs += 1;
            let ways = [
                choose(first, alone, Family::R700, level),
                choose(second, Shape { write: false, ..alone }, Family::R700, level),
            ];
            let [one, two] = ways.map(|run| run.expect("both have code of their own"));
            for round in 0..50 {
                let rows = rows(|random| word(random) & 0x8000_0003, &mut random);
                let running = if round % 3 == 0 { u64::MAX } else { u64::from(random.next()) << 16 };
                let (mut together, mut apart) =
                    (lanes(rows.clone(), running, &tables), lanes(rows, running, &tables));
                let operation = |run: Handler, src: [usize; 3]| Operation {
                    run,
                    src: src.map(|row| LAYOUT.place(row)),
                    dst: LAYOUT.place(3),
                    keep: [u32::MAX; 3],
                    flip: [0; 3],
                    factor: 1.0,
                    clamp: false,
                    dx10_clamp: false,
                    set: ACTIVE,
                    update_pred: true,
                    update_execute_mask: true,
                    number: 0,
                };
                // SAFETY: the processor supports the level, and all rows exist.
                unsafe {
                    both(&mut together, &operation(both, [0, 1, 2]));
                    one(&mut apart, &operation(one, [0, 1, 4]));
                    two(&mut apart, &operation(two, [3, 2, 4]));
                }
                let names = (first.name(), second.name());
                for row in 0..5 {
                    let place = LAYOUT.place(row);
                    assert_eq!(together.row(place), apart.row(place), "{names:?}");
                }
                assert_eq!((together.predicate, together.skip), (apart.predicate, apart.skip), "{names:?}");
            }
        }
    }
    assert_eq!(pairs, 24 * Level::available().len());
}
