//! Compares strips and a loop with a direct computation.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::audit::Allowed;
use super::*;
use crate::called::PerLane;
use crate::state::FLUSH;
use crate::strip::{One, Two, Value, predicate};

const N: usize = 32;
const ROWS: usize = 6;

type Rows = [[u32; N]; ROWS];

fn row(number: usize) -> Row {
    Row::Group((number * 4 * N) as u32)
}

/// Runs a program at a level for all lanes.
fn run(level: Level, nodes: &[Node], rows: &mut Rows, budget: i32, mode: u32) -> Over {
    let code = Code::compile(nodes, level, N, mode).expect("code");
    Allowed { rows: size_of::<Rows>(), functions: &[per_lane().address()], window: false }
        .audit(level, &code);
    super::run(&code, budget, u32::MAX.into(), rows, &mut [], |_, _| {})
}

/// Runs a strip at a level for all lanes.
fn run_strip(level: Level, strip: Strip, rows: &mut Rows) {
    let over = run(level, &[node(Segment::new(None, strip))], rows, 1, KEEP_DENORMALS);
    assert_eq!((over.left, over.state.budget, over.counts[0]), (Left::Outside(AFTER), 0, 1));
}

/// An operation. Its operands are the numbers of earlier values.
#[derive(Clone, Debug)]
enum Make {
    Row(usize),
    Constant(u32),
    Two(Two, usize, usize),
    One(One, usize),
    Select(usize, usize, usize),
    Fused(bool, usize, usize, usize),
    PerLane(usize, usize, usize),
}

fn float(word: u32) -> f32 {
    f32::from_bits(word)
}

fn truth(held: bool) -> u32 {
    if held { u32::MAX } else { 0 }
}

fn two(op: Two, a: u32, b: u32) -> u32 {
    let (x, y) = (float(a), float(b));
    match op {
        Two::Add => a.wrapping_add(b),
        Two::Sub => a.wrapping_sub(b),
        Two::Mul => a.wrapping_mul(b),
        Two::And => a & b,
        Two::AndNot => !a & b,
        Two::Or => a | b,
        Two::Xor => a ^ b,
        Two::Equal => truth(a == b),
        Two::Greater => truth(a as i32 > b as i32),
        Two::MinSigned => (a as i32).min(b as i32) as u32,
        Two::MaxSigned => (a as i32).max(b as i32) as u32,
        Two::MinUnsigned => a.min(b),
        Two::MaxUnsigned => a.max(b),
        Two::Shl => a.checked_shl(b).unwrap_or(0),
        Two::Shr => a.checked_shr(b).unwrap_or(0),
        Two::Sar => (a as i32 >> b.min(31)) as u32,
        Two::FAdd => (x + y).to_bits(),
        Two::FSub => (x - y).to_bits(),
        Two::FMul => (x * y).to_bits(),
        Two::FMin => {
            if x < y {
                a
            } else {
                b
            }
        }
        Two::FMax => {
            if x > y {
                a
            } else {
                b
            }
        }
        Two::FDiv => (x / y).to_bits(),
        Two::FCompare(predicate::LT) => truth(x < y),
        Two::FCompare(predicate::NLE) => truth((x > y) | x.is_nan() | y.is_nan()),
        Two::FCompare(predicate::UNORD) => truth(x.is_nan() | y.is_nan()),
        Two::FCompare(predicate::EQ_UQ) => truth((x == y) | x.is_nan() | y.is_nan()),
        Two::FCompare(predicate) => panic!("{predicate}"),
    }
}

fn one(op: One, a: u32) -> u32 {
    match op {
        One::Float => (a as i32 as f32).to_bits(),
        One::Sqrt => float(a).sqrt().to_bits(),
        One::Round(1) => float(a).floor().to_bits(),
        One::Truncate => {
            let x = float(a).trunc();
            if (-2147483648.0..2147483648.0).contains(&x) { x as i32 as u32 } else { 1 << 31 }
        }
        One::Shl(count) => a << count,
        One::Shr(count) => a >> count,
        One::Sar(count) => (a as i32 >> count) as u32,
        other => panic!("{other:?}"),
    }
}

/// Result of the tests' per-lane function for one lane.
fn rescued(a: u32, b: u32, c: u32) -> u32 {
    a.wrapping_mul(3) ^ b.rotate_left(7) ^ c
}

fn per_lane() -> PerLane {
    PerLane::of(|[a, b, c]| rescued(a, b, c))
}

/// Replaces every NaN by one NaN, because these tests do not check which NaN an operation returns.
fn settled(word: u32) -> u32 {
    if float(word).is_nan() { 0x7fc0_0000 } else { word }
}

fn makes() -> impl Strategy<Value = Vec<Make>> {
    let integer = prop_oneof![
        Just(Two::Add),
        Just(Two::Sub),
        Just(Two::Mul),
        Just(Two::And),
        Just(Two::AndNot),
        Just(Two::Or),
        Just(Two::Xor),
        Just(Two::Equal),
        Just(Two::Greater),
        Just(Two::MinSigned),
        Just(Two::MaxSigned),
        Just(Two::MinUnsigned),
        Just(Two::MaxUnsigned),
        Just(Two::Shl),
        Just(Two::Shr),
        Just(Two::Sar),
    ];
    let lone = prop_oneof![
        Just(One::Float),
        (0..32u8).prop_map(One::Shl),
        (0..32u8).prop_map(One::Shr),
        (0..32u8).prop_map(One::Sar),
    ];
    let made = 0..1000usize;
    let make = prop_oneof![
        2 => (0..ROWS).prop_map(Make::Row),
        1 => prop_oneof![Just(0), Just(u32::MAX), Just(5), Just(8), any::<u32>()].prop_map(Make::Constant),
        8 => (integer, made.clone(), made.clone()).prop_map(|(op, a, b)| Make::Two(op, a, b)),
        3 => (lone, made.clone()).prop_map(|(op, a)| Make::One(op, a)),
        2 => (made.clone(), made.clone(), made.clone()).prop_map(|(a, b, c)| Make::Select(a, b, c)),
        1 => (made.clone(), made.clone(), made).prop_map(|(a, b, c)| Make::PerLane(a, b, c)),
    ];
    proptest::collection::vec(make, 1..90)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// The strip has rows, constants, integer operations and calls of a per-lane function, and it has more values than
    /// registers. At the end, the strip stores to rows. The strip also reads some of these rows.
    #[test]
    fn a_slice_gives_what_its_operations_say(
        makes in makes(),
        stores in proptest::collection::btree_map(0..ROWS, 0..1000usize, 1..ROWS),
        words in proptest::collection::vec(prop_oneof![any::<u32>(), 0..40u32], N * ROWS),
    ) {
        for level in Level::available() {
        let mut rows = [[0; N]; ROWS];
        rows.as_flattened_mut().copy_from_slice(&words);
        let before = rows;
        let mut strip = Strip::new();
        let mut values: Vec<(Value, [u32; N])> = Vec::new();
        let first = strip.row(row(0));
        let mask = strip.row(Row::Own(0));
        values.push((first, before[0]));
        for make in &makes {
            let at = |number: usize| values[values.len() - 1 - number % values.len().min(40)];
            let made = match make.clone() {
                Make::Row(number) => (strip.row(row(number)), before[number]),
                Make::Constant(word) => (strip.constant(word), [word; N]),
                Make::Two(op, a, b) => {
                    let ((a, x), (b, y)) = (at(a), at(b));
                    (strip.two(op, a, b), std::array::from_fn(|lane| two(op, x[lane], y[lane])))
                }
                Make::One(op, a) => {
                    let (a, x) = at(a);
                    (strip.one(op, a), x.map(|word| one(op, word)))
                }
                Make::Select(a, b, c) => {
                    let ((a, x), (b, y), (c, z)) = (at(a), at(b), at(c));
                    let of = |lane: usize| if x[lane] >> 31 != 0 { z[lane] } else { y[lane] };
                    (strip.select(a, b, c), std::array::from_fn(of))
                }
                Make::PerLane(a, b, c) => {
                    let ((a, x), (b, y), (c, z)) = (at(a), at(b), at(c));
                    // If one lane of a strip must be recomputed, all lanes of the strip are recomputed.
                    let of = |lane: usize| {
                        let first = lane & !(level.lanes() - 1);
                        let rare = (first..first + level.lanes()).any(|lane| x[lane] >> 31 != 0);
                        if rare { rescued(x[lane], y[lane], z[lane]) } else { y[lane] }
                    };
                    (strip.per_lane(per_lane(), b, a, mask, [a, b, c]), std::array::from_fn(of))
                }
                Make::Fused(..) => unreachable!("floats only"),
            };
            values.push(made);
        }
        let mut expected = before;
        for (number, value) in &stores {
            let (value, words) = values[value % values.len()];
            strip.store(row(*number), value);
            expected[*number] = words;
        }
        run_strip(level, strip, &mut rows);
        prop_assert_eq!(rows, expected);
        }
    }

    /// The strip has a sequence of float operations.
    #[test]
    fn floats_are_the_hosts(
        makes in proptest::collection::vec(prop_oneof![
            (prop_oneof![
                Just(Two::FAdd), Just(Two::FSub), Just(Two::FMul), Just(Two::FMin), Just(Two::FMax), Just(Two::FDiv),
                Just(Two::FCompare(predicate::LT)), Just(Two::FCompare(predicate::NLE)),
                Just(Two::FCompare(predicate::UNORD)), Just(Two::FCompare(predicate::EQ_UQ)),
            ], 0..ROWS - 1, 0..ROWS - 1).prop_map(|(op, a, b)| Make::Two(op, a, b)),
            (prop_oneof![Just(One::Sqrt), Just(One::Round(1)), Just(One::Truncate), Just(One::Float)], 0..ROWS - 1)
                .prop_map(|(op, a)| Make::One(op, a)),
            (any::<bool>(), 0..ROWS - 1, 0..ROWS - 1, 0..ROWS - 1)
                .prop_map(|(minus, a, b, c)| Make::Fused(minus, a, b, c)),
        ], 1..2),
        words in proptest::collection::vec(prop_oneof![any::<u32>(), (-40.0..40.0f32).prop_map(f32::to_bits)], N * ROWS),
    ) {
        for level in Level::available() {
        let mut rows = [[0; N]; ROWS];
        rows.as_flattened_mut().copy_from_slice(&words);
        let mut expected = rows;
        let mut strip = Strip::new();
        let at = |strip: &mut Strip, number: usize| strip.row(row(number));
        for make in &makes {
            let all = expected;
            let (value, words): (Value, [u32; N]) = match make.clone() {
                Make::Two(op, a, b) => {
                    let (x, y) = (at(&mut strip, a), at(&mut strip, b));
                    (strip.two(op, x, y), std::array::from_fn(|lane| two(op, all[a][lane], all[b][lane])))
                }
                Make::One(op, a) => {
                    let x = at(&mut strip, a);
                    (strip.one(op, x), all[a].map(|word| one(op, word)))
                }
                Make::Fused(minus, a, b, c) => {
                    let (x, y, z) = (at(&mut strip, a), at(&mut strip, b), at(&mut strip, c));
                    (strip.fused(minus, x, y, z), std::array::from_fn(|lane| {
                        let c = float(all[c][lane]);
                        float(all[a][lane]).mul_add(float(all[b][lane]), if minus { -c } else { c }).to_bits()
                    }))
                }
                other => panic!("{other:?}"),
            };
            strip.store(row(ROWS - 1), value);
            expected[ROWS - 1] = words;
        }
        run_strip(level, strip, &mut rows);
        for number in 0..ROWS {
            prop_assert_eq!(rows[number].map(settled), expected[number].map(settled));
        }
        }
    }
}

/// Lanes leave a loop one by one, and the loop contains a conditional. Results, counts and the end of the run must
/// equal those of a simulation that executes lane by lane.
#[test]
fn a_loop_counts_as_a_group_would() {
    for level in Level::available() {
        for waits in [Waits::For(1), Waits::Arrive] {
            a_loop_counts_at(level, waits);
        }
    }
}

const LEAVES: u32 = 1;
const TAKEN: u32 = 2;
const SIZES: [u32; 4] = [2, 2, 3, 7];

/// Returns a loop. In each iteration, the lanes whose row 0 is zero leave first. Then row 0 decreases by 1. Row 1
/// increases by 5 if row 0 was odd, otherwise by 1.
fn count_down(waits: Waits) -> Node {
    let body = |exact: bool| {
        let mut strip = Strip::new();
        let (left, sum) = (strip.row(row(0)), strip.row(row(1)));
        let mask = strip.row(Row::Own(MASK));
        let [zero, one, five] = [0, 1, 5].map(|word| strip.constant(word));
        let exits = strip.two(Two::Equal, left, zero);
        let mut active = mask;
        if exact {
            let leaves = strip.two(Two::And, exits, mask);
            strip.leave(LEAVES, leaves);
            active = strip.two(Two::AndNot, exits, mask);
        } else {
            strip.guard(exits);
        }
        let odd = strip.one(One::Shl(31), left);
        let taken = strip.two(Two::And, odd, active);
        strip.gather(TAKEN, taken);
        let step = strip.select(odd, one, five);
        let next = [strip.two(Two::Sub, left, one), strip.two(Two::Add, sum, step)];
        for (number, (value, old)) in next.into_iter().zip([left, sum]).enumerate() {
            let value = strip.select(active, old, value);
            strip.store(row(number), value);
        }
        if exact {
            strip.store(Row::Own(MASK), active);
        }
        strip
    };
    let side = |number: u32| Branch { size: SIZES[number as usize], count: number, always: 0 };
    let conditional =
        Conditional { word: TAKEN, parent: None, sides: [side(2), side(3)], held: 0, joins: true };
    let pieces = vec![
        Piece { size: SIZES[0], leave: Some((LEAVES, waits)), ..Piece::default() },
        Piece { size: SIZES[1], count: 1, conditionals: vec![conditional], ..Piece::default() },
    ];
    let node = node(Segment::new(Some(body(false)), body(true)));
    // The budget of 16 covers three things: all instructions of an iteration, the arrival of one side at the join, and
    // the arrival of the lanes that leave.
    Node { pieces, budget: 16, next: Next::To(Target::Node(0)), ..node }
}

#[test]
fn a_constant_guard_fails_whichever_vector_has_active_lanes() {
    let body = |guards: bool| {
        let mut strip = Strip::new();
        let [all, word] = [u32::MAX, if guards { 1 } else { 2 }].map(|word| strip.constant(word));
        if guards {
            strip.guard(all);
        }
        strip.store(row(1), word);
        strip
    };
    for level in Level::available() {
        let node = node(Segment::new(Some(body(true)), body(false)));
        let code = Code::compile(&[node], level, N, KEEP_DENORMALS).expect("code");
        for lane in [0, 8, 16, 31] {
            let mut rows = [[0; N]; ROWS];
            super::run(&code, 1, 1 << lane, &mut rows, &mut [], |_, _| {});
            assert_eq!(rows[1][lane], 2, "{level:?}, lane {lane}");
        }
    }
}

fn a_loop_counts_at(level: Level, waits: Waits) {
    let mut rows = [[0; N]; ROWS];
    rows[0] = std::array::from_fn(|lane| (lane * lane % 23) as u32);
    let (mut left, mut sums) = (rows[0], [0; N]);
    // Number of runs of each part, followed by the number of arrivals.
    let mut times = [0; 5];
    let (mut lane_instructions, mut divergent) = (0, 0);
    let mut active: Vec<usize> = (0..N).collect();
    loop {
        let mut ran = |part: usize, count: usize| {
            times[part] += u64::from(count > 0);
            lane_instructions += u64::from(SIZES[part]) * count as u64;
        };
        ran(0, active.len());
        let (stay, go): (Vec<_>, Vec<_>) = active.iter().partition(|lane| left[**lane] != 0);
        if stay.is_empty() {
            break;
        }
        active = stay;
        ran(1, active.len());
        let odd = active.iter().filter(|lane| left[**lane] & 1 != 0).count();
        ran(2, odd);
        ran(3, active.len() - odd);
        let parts = odd > 0 && odd < active.len();
        divergent += u64::from(!go.is_empty()) + u64::from(parts);
        times[4] += u64::from(!go.is_empty() && waits == Waits::Arrive) + u64::from(parts);
        for lane in &active {
            sums[*lane] += if left[*lane] & 1 != 0 { 5 } else { 1 };
            left[*lane] -= 1;
        }
    }
    let Over { left: reason, counts, state } = run(level, &[count_down(waits)], &mut rows, 10_000, FLUSH);
    assert_eq!((reason, state.node, state.leave), (Left::Ended, 0, 1));
    assert_eq!((rows[0], rows[1]), (left, sums));
    let [parts @ .., arrivals] = times;
    assert_eq!(counts[..4], parts);
    let tried: u64 = parts.iter().zip(SIZES).map(|(times, size)| times * u64::from(size)).sum();
    assert_eq!((state.lane_instructions, state.divergent), (lane_instructions, divergent));
    assert_eq!((10_000 - state.budget as u64, state.arrivals.into()), (tried + arrivals, arrivals));
    let last: u64 = (0..N).filter(|lane| lane * lane % 23 == 18).map(|lane| 1 << lane).sum();
    assert_eq!(state.active, last, "the lanes that remained");
    let gone = if waits == Waits::Arrive { 0 } else { u64::from(u32::MAX) & !last };
    assert_eq!(state.gone, [0, gone], "the lanes that left before");
}

/// If the budget does not cover another iteration of the loop, the run stops at the entry of the loop. A later run
/// continues at that entry.
#[test]
fn a_loop_stops_before_a_run_that_the_budget_does_not_cover() {
    for level in Level::available() {
        let mut rows = [[100; N]; ROWS];
        let Over { left, counts, state } =
            run(level, &[count_down(Waits::Arrive)], &mut rows, 16 + 3 * 9, FLUSH);
        // An iteration takes 11 instructions if the number is even, and 7 instructions if the number is odd.
        assert_eq!((left, state.budget, &counts[..4]), (Left::Budget(0), 43 - 29, &[3, 3, 1, 2][..]));
        assert_eq!(rows[0], [97; N]);
    }
}
