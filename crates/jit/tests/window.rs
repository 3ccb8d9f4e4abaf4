//! Loads from the window and stores to it, guards that fail, and the code of these.

#![cfg(target_arch = "x86_64")]
// The tests run code. They first check the processor, and they provide the rows and the window.
#![allow(unsafe_code)]

mod audit;

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use reconverge_guarded::Guarded;
use reconverge_guarded::Placement::AtEnd;
use reconverge_jit::{
    Back, Callee, Ended, FLUSH, Level, OWN, One, PerLane, Plan, Regions, Row, Segment, State, Step, Strip,
    Two, predicate,
};

const N: usize = 32;
const WORDS: usize = 48;
const BYTES: u32 = 4 * WORDS as u32;

/// Rows, aligned like those of groups: addresses, values, loaded words.
#[derive(Clone, Debug, PartialEq)]
#[repr(C, align(64))]
struct Rows([[u32; N]; 4]);

fn row(number: u32) -> Row {
    Row::Group(number * 4 * N as u32)
}

/// Loads the word at the address plus 4 bytes to row 2 and the word at the address to row 3. With `stores`, both
/// words become row 1.
fn body(stores: bool) -> Strip {
    let mut strip = Strip::with_window(BYTES);
    let (address, value, mask) = (strip.row(row(0)), strip.row(row(1)), strip.row(Row::Own(0)));
    let [first, second] = [0, 4].map(|distance| strip.inside(address, distance, mask).expect("a window"));
    if stores {
        strip.window_store(second, value);
        return strip;
    }
    for (to, inside) in [(2, second), (3, first)] {
        let old = strip.row(row(to));
        let loaded = strip.window_load(inside);
        let loaded = strip.select(mask, old, loaded);
        strip.store(row(to), loaded);
    }
    strip
}

fn plan(stores: bool) -> Plan {
    Plan {
        segments: vec![Segment::new(None, body(stores), None)],
        steps: vec![Step::Begin(0), Step::Run(1)],
        back: Back::Never,
        mask: Row::Own(0),
        lazy: false,
        joins: false,
    }
}

fn run(level: Level, rows: &mut Rows, window: &mut [u8; BYTES as usize], lanes: u64, stores: bool) -> Ended {
    let regions = Regions::compile(&[plan(stores)], level, N, FLUSH).expect("code");
    audit::audit(level, regions.bytes(0), size_of::<Rows>(), &[], stores);
    let mut state = State::new();
    state.budget = 10;
    let (mut own_rows, mut own_window) =
        (Guarded::copied(rows.0.as_flattened(), AtEnd), Guarded::copied(window.as_slice(), AtEnd));
    state.set_window(&mut own_window);
    *state.own_mut::<N>(0) = std::array::from_fn(|lane| 0u32.wrapping_sub((lanes >> lane) as u32 & 1));
    // SAFETY: the processor has been checked, and nothing else uses the rows and the window.
    let ended = unsafe {
        regions.run(
            0,
            &mut state,
            std::ptr::slice_from_raw_parts_mut(own_rows.as_mut_ptr().cast(), size_of_val(&own_rows[..])),
            lanes,
            |_| {},
            |_, _| {},
        )
    };
    let ended = ended.expect("no fault");
    rows.0.as_flattened_mut().copy_from_slice(&own_rows);
    window.copy_from_slice(&own_window);
    ended
}

/// Addresses of strips: contiguous, all the same, or independent; some beyond the end or between words.
fn addresses() -> impl Strategy<Value = [u32; N]> {
    let within = 0..WORDS as u32 - 1;
    let row = (0..WORDS as u32 - 8).prop_map(|first| std::array::from_fn(|lane| 4 * (first + lane as u32)));
    let one = within.clone().prop_map(|word| [4 * word; 8]);
    let each =
        proptest::collection::vec(within, 8).prop_map(|words| std::array::from_fn(|lane| 4 * words[lane]));
    let strip = prop_oneof![row, one, each];
    let odd = prop_oneof![
        6 => Just(None),
        1 => (0..N, prop_oneof![Just(4 * WORDS as u32 - 4), Just(u32::MAX - 3), Just(2), any::<u32>()]).prop_map(Some),
    ];
    (proptest::collection::vec(strip, N / 8), odd).prop_map(|(strips, odd): (Vec<[u32; 8]>, _)| {
        let mut all: [u32; N] = std::array::from_fn(|lane| strips[lane / 8][lane % 8]);
        if let Some((lane, address)) = odd {
            all[lane] = address;
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// If all lanes access words of the window, they load and store them, the lowest lane first. If one does not, no
    /// effect takes place.
    #[test]
    fn lanes_load_and_store_words_or_the_segment_refuses(
        addresses in addresses(),
        values in proptest::collection::vec(any::<u32>(), N),
        words in proptest::collection::vec(any::<u32>(), WORDS),
        lanes in prop_oneof![Just(u64::from(u32::MAX)), any::<u32>().prop_map(|lanes| u64::from(lanes) | 1)],
        stores in any::<bool>(),
    ) {
        for level in Level::available() {
        let mut rows = Rows([[0; N]; 4]);
        rows.0[0] = addresses;
        rows.0[1].copy_from_slice(&values);
        let mut window: [u32; WORDS] = std::array::from_fn(|word| words[word]);
        let (mut expected, mut left) = (rows.clone(), window);
        let active = || (0..N).filter(|lane| lanes >> lane & 1 != 0);
        let reaches = |address: u32| address & 3 == 0 && address / 4 < WORDS as u32 - 1;
        let done = active().all(|lane| reaches(addresses[lane]));
        for lane in active().filter(|_| done) {
            let word = addresses[lane] as usize / 4;
            if stores {
                left[word + 1] = values[lane];
            } else {
                (expected.0[2][lane], expected.0[3][lane]) = (window[word + 1], window[word]);
            }
        }
        let mut bytes: [u8; BYTES as usize] = std::array::from_fn(|at| window[at / 4].to_le_bytes()[at % 4]);
        let ended = run(level, &mut rows, &mut bytes, lanes, stores);
        window = std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])));
        prop_assert_eq!(ended, if done { Ended::Exit } else { Ended::Bailed(0) });
        prop_assert_eq!(rows, expected);
        prop_assert_eq!(window, left);
        }
    }
}

unsafe extern "sysv64" fn callee(_: *mut State, _: u32, _: u64) -> u32 {
    0
}

/// Every kind of step and of value, in one region that is only decoded.
#[test]
fn a_pass_of_everything_is_made_of_listed_instructions_and_stores_where_it_may() {
    let per_lane = PerLane::of(|[a, ..]| a);
    let strip = |exact: bool| {
        let mut strip = Strip::with_window(BYTES);
        let (a, b, mask) = (strip.row(row(0)), strip.row(row(1)), strip.row(Row::Own(0)));
        let mut all = vec![a, b, strip.window_word(8).expect("a word"), strip.constant(77)];
        for op in [
            Two::Add,
            Two::Sub,
            Two::Mul,
            Two::And,
            Two::AndNot,
            Two::Or,
            Two::Xor,
            Two::Equal,
            Two::Greater,
            Two::MinSigned,
            Two::MaxSigned,
            Two::MinUnsigned,
            Two::MaxUnsigned,
            Two::Shl,
            Two::Shr,
            Two::Sar,
            Two::FAdd,
            Two::FSub,
            Two::FMul,
            Two::FMin,
            Two::FMax,
            Two::FDiv,
            Two::FCompare(predicate::LT),
        ] {
            all.push(strip.two(op, a, b));
        }
        for op in [
            One::Float,
            One::Truncate,
            One::Nearest,
            One::Round(1),
            One::Sqrt,
            One::Shl(3),
            One::Shr(3),
            One::Sar(3),
        ] {
            all.push(strip.one(op, b));
        }
        all.push(strip.select(a, b, mask));
        all.push(strip.fused(false, a, b, mask));
        all.push(strip.fused(true, a, b, mask));
        let [first, second] = [12, -4].map(|distance| strip.inside(a, distance, mask).expect("a window"));
        all.push(strip.window_load(first));
        all.push(strip.per_lane(per_lane, b, a, mask, [a, b, mask]));
        let sum = all.into_iter().reduce(|sum, value| strip.two(Two::Xor, sum, value)).expect("some");
        strip.store(row(2), sum);
        strip.store(Row::Own(OWN as u32 / 2), sum);
        strip.gather(1, sum);
        for word in 5..10 {
            strip.gather(word, a);
        }
        if exact {
            strip.leave(60, b);
        } else {
            strip.guard(b);
        }
        strip.window_store(second, sum);
        strip
    };
    let call: (Callee, u32, u32) = (callee, 3, 1);
    let segment = |call| Segment::new(Some(strip(false)), strip(true), call);
    let steps = vec![
        Step::Begin(0),
        Step::Call,
        Step::Run(2),
        Step::Leave { word: 60, arrives: true },
        Step::If(1),
        Step::Meanwhile(1),
        Step::If(5),
        Step::Run(2),
        Step::Else,
        Step::Run(3),
        Step::End,
        Step::Else,
        Step::End,
        Step::Begin(1),
    ];
    let functions = [per_lane.address(), callee as *const () as usize];
    for (back, joins) in [(Back::Never, true), (Back::Always, false), (Back::All(6), true)] {
        let segments = vec![segment(Some(call)), segment(None)];
        let plan = Plan { segments, steps: steps.clone(), back, mask: Row::Own(0), lazy: true, joins };
        // Nothing runs, so the processor need not have the levels.
        for level in [Level::Avx2, Level::Avx512] {
            let regions = Regions::compile(&[plan.clone(), plan.clone()], level, N, FLUSH).expect("code");
            for number in 0..2 {
                audit::audit(level, regions.bytes(number), size_of::<Rows>(), &functions, true);
            }
        }
    }
}

/// Violations that the audit must detect.
#[test]
fn the_audit_sees_stores_elsewhere_and_other_instructions() {
    let refuses =
        |bytes: &[u8]| std::panic::catch_unwind(|| audit::audit(Level::Avx2, bytes, 64, &[], false)).is_err();
    assert!(!refuses(&[0x48, 0x31, 0xc0, 0xc3]), "xor rax, rax; ret");
    assert!(refuses(&[0x48, 0x89, 0x07, 0xc3]), "mov [rdi], rax");
    assert!(refuses(&[0x0f, 0x05, 0xc3]), "syscall");
    assert!(refuses(&[0xff, 0xe0]), "jmp rax");
    assert!(refuses(&[0xeb, 0x10, 0xc3]), "a jump out of the code");
    assert!(refuses(&[0x48, 0x89, 0x44, 0x08, 0x00, 0xc3]), "mov [rax + rcx], rax where no window is");
    assert!(refuses(&[0x4a, 0x89, 0x44, 0x2b, 0xf8, 0xc3]), "mov [rbx + r13 - 8], rax: before the state");
}
