//! Tests of loads and stores in the window and in sites, and of guards that fail. The tests also check the code that is
//! generated for these loads, stores and guards.

use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::audit::Allowed;
use super::*;
use crate::called::PerLane;
use crate::state::{FLUSH, OWN};
use crate::strip::{Inside, One, Two, predicate};

const N: usize = 32;
const WORDS: usize = 48;
const BYTES: u32 = 4 * WORDS as u32;

/// Address of the first byte of the site.
const START: u32 = 0x1000;

/// Rows: addresses, values, loaded words.
type Rows = [[u32; N]; 4];

/// Accesses of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Accesses {
    Loads,
    /// Loads whose words are not used. The node has no other effect.
    UnusedLoads,
    Stores,
    /// Stores in a strip that bails out without a separate check.
    StoresAtOnce,
    /// A load, then two stores. Only code that computes both vectors of a group at once can run these accesses.
    Several,
}

fn row(number: u32) -> Row {
    Row::Group(number * 4 * N as u32)
}

/// Returns a node with one of four kinds of accesses. The first kind loads the word at the address plus 4 bytes into row
/// 2 and the word at the address into row 3. [`Accesses::UnusedLoads`] loads the same words into no row. The third kind
/// stores row 1 at the address plus 4 bytes. [`Accesses::Several`] loads the word at the address into row 3, stores row 1
/// at the address plus 4 bytes, and then stores row 0 at the address. If `site` is set, the node accesses the memory of a
/// site.
fn body(accesses: Accesses, site: bool) -> Node {
    let mut strip = if site { Strip::new() } else { Strip::with_window(BYTES) };
    let (address, value, mask) = (strip.row(row(0)), strip.row(row(1)), strip.row(Row::Own(MASK)));
    let [first, second] = [0, 4].map(|distance| match site {
        true => strip.inside_site(3, address, distance, mask),
        false => strip.inside(address, distance, mask).expect("a window"),
    });
    if accesses == Accesses::Several {
        let (old, loaded) = (strip.row(row(3)), strip.window_load(first));
        let loaded = strip.select(mask, old, loaded);
        strip.store(row(3), loaded);
        strip.window_store(second, value);
        strip.window_store(first, address);
        return node(Segment::new(None, strip));
    }
    if accesses == Accesses::UnusedLoads {
        let _ = [first, second].map(|inside| strip.window_load(inside));
        return node(Segment::new(None, strip));
    }
    if accesses != Accesses::Loads {
        strip.window_store(second, value);
        let segment = match accesses {
            Accesses::StoresAtOnce => Segment::restarting(strip.clone(), strip),
            _ => Segment::new(None, strip),
        };
        return node(segment);
    }
    for (to, inside) in [(2, second), (3, first)] {
        let old = strip.row(row(to));
        let loaded = strip.window_load(inside);
        let loaded = strip.select(mask, old, loaded);
        strip.store(row(to), loaded);
    }
    node(Segment::new(None, strip))
}

/// Runs a node with a window or a site for some lanes.
fn run(
    level: Level,
    node: Node,
    rows: &mut Rows,
    memory: &mut [u8; BYTES as usize],
    lanes: u64,
    [site, stores]: [bool; 2],
) -> Over {
    let code = Code::compile(&[node], level, N, FLUSH).expect("code");
    Allowed { rows: size_of::<Rows>(), functions: &[], window: stores }.audit(level, &code);
    super::run(&code, 10, lanes, rows, memory, |state, memory| match site {
        // SAFETY: the memory lives longer than the run, and only generated code uses the memory during the run.
        true => unsafe { state.set_site(3, START, memory) },
        false => state.set_window(memory),
    })
}

/// Returns the addresses that the lanes of a strip access: contiguous, all the same, or independent. Some addresses are
/// past the end of the memory or between words.
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

    /// If all lanes access words of the window or the site, the lanes load or store these words, the lowest lane first.
    /// Several accesses run one after another, each for all lanes. If a lane accesses other memory, the node has no
    /// effect. The exception is a node whose only access is a store in a loop over the vectors of a group. In this
    /// case, earlier strips may have stored before a strip bails out.
    #[test]
    fn lanes_load_and_store_words_or_the_node_refuses(
        addresses in addresses(),
        values in proptest::collection::vec(any::<u32>(), N),
        words in proptest::collection::vec(any::<u32>(), WORDS),
        lanes in prop_oneof![Just(u64::from(u32::MAX)), any::<u32>().prop_map(|lanes| u64::from(lanes) | 1)],
        accesses in prop_oneof![
            Just(Accesses::Loads),
            Just(Accesses::UnusedLoads),
            Just(Accesses::Stores),
            Just(Accesses::StoresAtOnce),
            Just(Accesses::Several),
        ],
        site in any::<bool>(),
    ) {
        for level in Level::available() {
        if accesses == Accesses::Several && !level.has_both(N) {
            let compiled = Code::compile(&[body(accesses, site)], level, N, FLUSH);
            prop_assert!(matches!(compiled, Err(CompileError::Rejected(Rejected::Stores))));
            continue;
        }
        let mut rows = [[0; N]; 4];
        rows[0] = if site { addresses.map(|address| address.wrapping_add(START)) } else { addresses };
        rows[1].copy_from_slice(&values);
        let mut window: [u32; WORDS] = std::array::from_fn(|word| words[word]);
        let (mut expected, mut left) = (rows, window);
        let active = || (0..N).filter(|lane| lanes >> lane & 1 != 0);
        let reaches = |address: u32| address & 3 == 0 && address / 4 < WORDS as u32 - 1;
        let outside = active().find(|lane| !reaches(addresses[*lane]));
        let done = match outside {
            None => N,
            Some(lane) if accesses == Accesses::StoresAtOnce && !level.has_both(N) => lane - lane % level.lanes(),
            Some(_) => 0,
        };
        for lane in active().filter(|lane| *lane < done) {
            let word = addresses[lane] as usize / 4;
            match accesses {
                Accesses::Loads => {
                    (expected[2][lane], expected[3][lane]) = (window[word + 1], window[word]);
                }
                Accesses::UnusedLoads => {}
                Accesses::Several => {
                    expected[3][lane] = window[word];
                    left[word + 1] = values[lane];
                }
                Accesses::Stores | Accesses::StoresAtOnce => left[word + 1] = values[lane],
            }
        }
        if accesses == Accesses::Several {
            for lane in active().filter(|lane| *lane < done) {
                left[addresses[lane] as usize / 4] = rows[0][lane];
            }
        }
        let mut bytes: [u8; BYTES as usize] = std::array::from_fn(|at| window[at / 4].to_le_bytes()[at % 4]);
        let node = body(accesses, site);
        let stores = !matches!(accesses, Accesses::Loads | Accesses::UnusedLoads);
        let Over { left: reason, counts, state } =
            run(level, node, &mut rows, &mut bytes, lanes, [site, stores]);
        window = std::array::from_fn(|word| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * word + byte])));
        let (reason_then, ran) = match outside {
            None => (Left::Outside(AFTER), 1),
            Some(_) => (Left::Refused(0), 0),
        };
        prop_assert_eq!((reason, 10 - state.budget, counts[0]), (reason_then, ran, ran as u64));
        prop_assert_eq!(rows, expected);
        prop_assert_eq!(window, left);
        }
    }
}

/// A site without memory has no words.
#[test]
fn a_site_without_memory_refuses_every_lane() {
    for level in Level::available() {
        let code = Code::compile(&[body(Accesses::Loads, true)], level, N, FLUSH).expect("code");
        for address in [0, 4, START, u32::MAX - 3] {
            let mut rows = [[address; N]; 4];
            let over = super::run(&code, 10, 1, &mut rows, &mut [], |_, _| {});
            assert_eq!((over.left, rows), (Left::Refused(0), [[address; N]; 4]));
        }
    }
}

convention! {
    fn callee(_state: *mut State, _number: u32) -> u32 {
        0
    }
}

/// A program with every kind of node and of value. The program is only decoded and does not run.
#[test]
fn a_program_of_everything_is_made_of_listed_instructions_and_stores_where_it_may() {
    let per_lane = PerLane::of(|[a, ..]| a);
    let strip = |exact: bool, stores: bool| {
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
        let place = strip.inside_site(1, b, 8, mask);
        all.push(strip.window_load(place));
        all.extend([Row::Bytes(0), Row::Halves(3)].map(|row| strip.row(row)));
        all.push(strip.per_lane(per_lane, b, a, mask, [a, b, mask]));
        let sum = all.into_iter().reduce(|sum, value| strip.two(Two::Xor, sum, value)).expect("some");
        strip.store(row(2), sum);
        strip.store(Row::Own(OWN as u32 / 2), sum);
        strip.store(Row::Bytes(1), sum);
        strip.store(Row::Halves(2), sum);
        strip.gather(1, sum);
        for word in 5..10 {
            strip.gather(word, a);
        }
        if exact {
            strip.leave(60, b);
        } else {
            strip.guard(b);
        }
        // Only code that computes both vectors of a group at once stores after loads.
        if stores {
            strip.window_store(second, sum);
            strip.window_store(place, a);
        }
        strip
    };
    let stores = || {
        let mut strip = Strip::with_window(BYTES);
        let (a, mask) = (strip.row(row(0)), strip.row(Row::Own(MASK)));
        let inside: Inside = strip.inside(a, 4, mask).expect("a window");
        strip.window_store(inside, a);
        strip.gather(EXIT, a);
        strip
    };
    let side = |size: u32, count: u32, always: u32| Branch { size, count, always };
    let conditional = |word: u32, parent: Option<(u32, usize)>, joins: bool| Conditional {
        word,
        parent,
        sides: [side(2, word, 1), side(3, word + 1, 0)],
        held: word - 4,
        joins,
    };
    let piece = |leave: Option<(u32, Waits)>| Piece {
        size: 2,
        count: 1,
        conditionals: vec![conditional(5, None, true), conditional(6, Some((5, 1)), false)],
        leave,
        apart: leave.map(|_| [2, 1]),
    };
    let pieces = [
        vec![Piece { size: 9, ..Piece::default() }],
        vec![piece(Some((60, Waits::Arrive))), piece(Some((61, Waits::For(1)))), piece(None)],
    ];
    let nexts = [
        Next::To(Target::Node(1)),
        Next::To(Target::Outside(9)),
        Next::To(Target::Flow),
        Next::Either([Target::Node(0), Target::Flow]),
        Next::Either([Target::Outside(1), Target::Node(2)]),
        Next::Again(Target::Node(0)),
        Next::Barrier(1, Target::Node(0)),
        Next::Again(Target::Flow),
    ];
    let functions = [per_lane.address(), callee as *const () as usize];
    // The code does not run, so the processor does not need to have the levels.
    for level in [Level::Avx2, Level::Avx512] {
        let both = level.has_both(N);
        let segments = [
            Segment::new(None, strip(true, both)),
            Segment::new(Some(strip(false, both)), strip(true, both)),
            Segment::restarting(stores(), stores()),
        ];
        let mut nodes = Vec::new();
        for (number, next) in nexts.iter().copied().enumerate() {
            for segment in &segments {
                for call in [None, Some((callee as Callee, 3))] {
                    let segment = Segment { call, ..segment.clone() };
                    let pieces = pieces[number % 2].clone();
                    let lazy = number % 3 == 1;
                    let (needs, entries) = (number as u32, number as u32 / 2);
                    nodes.push(Node { pieces, needs, budget: 20, entries, next, lazy, ..node(segment) });
                }
            }
        }
        let code = Code::compile(&nodes, level, N, FLUSH).expect("code");
        Allowed { rows: size_of::<Rows>(), functions: &functions, window: true }.audit(level, &code);
    }
}

/// Violations that the audit must detect.
#[test]
fn the_audit_sees_stores_elsewhere_and_other_instructions() {
    let allowed = Allowed { rows: 64, functions: &[], window: false };
    let refuses_from = |entry: u32, bytes: &[u8]| {
        std::panic::catch_unwind(|| allowed.audit_bytes(Level::Avx2, bytes, &[entry], 2)).is_err()
    };
    let refuses = |bytes: &[u8]| refuses_from(0, bytes);
    assert!(!refuses(&[0x48, 0x31, 0xc0, 0xc3]), "xor rax, rax; ret");
    assert!(refuses_from(1, &[0x48, 0x31, 0xc0, 0xc3]), "a node between two instructions");
    assert!(refuses(&[0x48, 0x89, 0x07, 0xc3]), "mov [rdi], rax");
    assert!(refuses(&[0x0f, 0x05, 0xc3]), "syscall");
    assert!(refuses(&[0xff, 0xe0]), "jmp rax");
    assert!(refuses(&[0xeb, 0x10, 0xc3]), "a jump out of the code");
    assert!(refuses(&[0x48, 0x89, 0x44, 0x08, 0x00, 0xc3]), "mov [rax + rcx], rax where no window is");
    assert!(refuses(&[0x4a, 0x89, 0x44, 0x2b, 0xf8, 0xc3]), "mov [rbx + r13 - 8], rax: before the state");
    let refuses = |emit: &dyn Fn(&mut Assembler)| {
        let mut asm = Assembler::default();
        emit(&mut asm);
        asm.plain(Op::Retnq);
        refuses(&asm.bytes().expect("bytes"))
    };
    let load = |asm: &mut Assembler, part: i32| {
        asm.two(Op::Mov_r64_rm64, Register::RCX, at_base(Register::RBX, part));
    };
    let add = |asm: &mut Assembler, distance: i32| {
        asm.number(Op::Add_rm64_imm8, at_base(Register::RCX, distance), 1);
    };
    let counts = |distance: i32| {
        refuses(&|asm: &mut Assembler| {
            load(asm, place!(counts));
            add(asm, distance);
        })
    };
    assert!(!counts(0) && !counts(8), "a count");
    assert!(counts(16) && counts(-8), "beyond the counts");
    assert!(refuses(&|asm: &mut Assembler| add(asm, 0)), "no counts");
    let changed = |asm: &mut Assembler| {
        load(asm, place!(counts));
        asm.two(Op::Add_r64_rm64, Register::RCX, Register::RAX);
        add(asm, 0);
    };
    assert!(refuses(&changed), "an address that is not that of the counts any more");
    let dispatch = |scale: u32, base: i32| {
        refuses(&|asm: &mut Assembler| {
            load(asm, place!(entries));
            let entry = MemoryOperand::with_base_index_scale(Register::RCX, Register::RAX, scale);
            asm.two(Op::Mov_r32_rm32, Register::EAX, entry);
            asm.two(Op::Add_r64_rm64, Register::RAX, at_base(Register::RBX, base));
            asm.push(Instruction::with1(Op::Jmp_rm64, Register::RAX));
        })
    };
    assert!(!dispatch(4, place!(code)), "the jump to a node");
    assert!(dispatch(1, place!(code)) && dispatch(4, place!(rows)), "a jump to something else");
}

#[test]
fn lanes_outside_a_site_load_zeros_and_the_others_any_word() {
    let places = |lane: usize| [5, 4 * lane as u32, BYTES - 3, u32::MAX - 1, BYTES - 4][lane % 5];
    site_loads(std::array::from_fn(places));
}

#[test]
fn lanes_outside_a_site_load_zeros_if_the_others_load_one_word() {
    for outside in [BYTES - 3, BYTES, u32::MAX] {
        site_loads(std::array::from_fn(|lane| if lane % 4 == 0 { 8 } else { outside }));
        site_loads(std::array::from_fn(|lane| if lane == 0 { BYTES - 4 } else { outside }));
    }
}

/// Loads words at these offsets in the memory of a site, and checks the words of all lanes.
fn site_loads(places: [u32; N]) {
    let mut strip = Strip::new();
    let (place, mask) = (strip.row(row(0)), strip.row(Row::Own(MASK)));
    let [word, inside] = strip.site_load(3, place, mask);
    strip.store(row(2), word);
    strip.store(row(3), inside);
    let node = node(Segment::new(None, strip));
    for level in Level::available() {
        let mut memory: [u8; BYTES as usize] = std::array::from_fn(|at| at as u8);
        let mut rows: Rows = [[0; N]; 4];
        rows[0] = places;
        run(level, node.clone(), &mut rows, &mut memory, u64::from(u32::MAX), [true, false]);
        for (lane, place) in places.into_iter().enumerate() {
            let found = memory.get(place as usize..).and_then(|bytes| bytes.first_chunk());
            let expected = found.map_or(0, |bytes| u32::from_le_bytes(*bytes));
            assert_eq!((rows[2][lane], rows[3][lane] != 0), (expected, found.is_some()), "{level:?} {place}");
        }
    }
}
