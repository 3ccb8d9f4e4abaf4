//! Small programs, one behaviour each: launch state, memory, barriers, scheduling, quads, traps.

use std::num::NonZeroUsize;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_isa::program::{ConstantBlock, Module, Place, Slot, Variable};
use reconverge_simt::limits::LANES;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::texture::{Image, Level, MipFilter, Sampler, Shape};
use reconverge_simt::{
    Engine, Event, GroupId, GroupTrap, Lane, Mode, Options, Recorder, Silent, Step, Watch,
};
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::launch::{
    Compute, Fragment, Geometry, LaneResult, LaneResults, Launch, LaunchError, Outcome, RunError, SAMPLE_ID,
    Setup, Varying, Vertex,
};
use reconverge_tesla::run::{Loaded, Run, run_watched};
use reconverge_tesla::state::Emitted;
use reconverge_tesla::text::assemble;
use reconverge_tesla::trap::{Access, Cause, Space};

mod ahead;
mod engines;

use engines::{run, ways};

const CHIP: Chip = Chip::Gt215;

/// Address of the output buffer.
const OUT: u32 = 0x1000;

fn program(source: &str, stage: Stage) -> Program {
    let assembled = assemble(source, CHIP, stage).unwrap_or_else(|errors| panic!("{source}\n{errors:?}"));
    Program { words: assembled.words(), ..Program::default() }
}

/// Returns a launch with one parameter, the address of an output buffer of `words` words.
fn kernel(source: &str, grid: u32, block: [u32; 3], words: usize) -> (Compute, Program) {
    let program = program(source, Stage::Compute);
    let mut compute = Compute::of(&program, CHIP).unwrap();
    compute.grid = [grid, 1];
    compute.block = block;
    compute.params = OUT.to_le_bytes().to_vec();
    compute.memory = Memory::new(vec![Buffer::new(OUT, vec![0; 4 * words])]).unwrap();
    (compute, program)
}

/// Returns options without the search for races, which `races.rs` tests. These programs read s[] in its initial
/// state, and wait for changes to it.
fn strict() -> Options {
    Options { watchdog: 200_000, race_check: false, ..Options::default() }
}

fn lenient() -> Options {
    Options { mode: Mode::Lenient, ..strict() }
}

fn words(outcome: &Outcome) -> Vec<u32> {
    let bytes = &outcome.memory.at(OUT).unwrap().bytes;
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn output(source: &str, grid: u32, block: [u32; 3], count: usize) -> Vec<u32> {
    let (compute, program) = kernel(source, grid, block, count);
    words(&run(Launch::Compute(compute), &program, &strict()).unwrap())
}

fn trap(source: &str, options: &Options) -> GroupTrap<Cause> {
    let (compute, program) = kernel(source, 1, [64, 1, 1], 64);
    match run(Launch::Compute(compute), &program, options) {
        Err(RunError::Trap(trap)) => trap,
        other => panic!("{source}\nexpected a trap: {:?}", other.map(|outcome| words(&outcome))),
    }
}

/// $r1 = number of the thread in the grid (one-dimensional); $r2 = address of its output word.
const INDEX: &str = "
    mov b32 $r1 u16 s[0xc]
    mov b32 $r2 u16 s[0x2]
    mul $r1 u16 $r1l u16 $r2l
    add b32 $r1 $r1 $r0
    shl b32 $r2 $r1 0x2
    add b32 $r2 b32 s[0x10] $r2
";

fn indexed(body: &str) -> String {
    format!("{INDEX}{body}")
}

// 1.6: `$r0`, and lanes by t = x + ntid.x * (y + ntid.y * z); the last warp is partial.
#[test]
fn a_thread_finds_its_index_packed_in_r0() {
    let source = "
        mov $r1 $physid
        shr u32 $r2 $r1 0x8
        shl b32 $r2 $r2 0x5
        and b32 $r1 $r1 0xff
        add b32 $r2 $r2 $r1
        shl b32 $r2 $r2 0x2
        add b32 $r2 b32 s[0x10] $r2
        exit st b32 g14[$r2] $r0";
    let expected: Vec<u32> = (0..60).map(|t| (t % 5) | (t / 5 % 4) << 16 | (t / 20) << 26).collect();
    assert_eq!(output(source, 1, [5, 4, 3], 60), expected);
}

// 1.6: the header of s[] and the parameters.
#[test]
fn a_block_finds_its_sizes_its_index_and_its_parameters_in_shared_memory() {
    let mut source = String::from("mov b32 $r1 b32 s[0x10]\nmov b32 $r4 0x4\n");
    for place in 1..8 {
        source += &format!("mov b32 $r2 u16 s[{:#x}]\nst b32 g14[$r1] $r2\nadd b32 $r1 $r1 $r4\n", 2 * place);
    }
    source += "mov b32 $r2 b32 s[0x14]\nexit st b32 g14[$r1] $r2";
    let (mut compute, program) = kernel(&source, 1, [3, 2, 1], 8);
    compute.grid = [1, 1];
    compute.params.extend(0xdead_beefu32.to_le_bytes());
    let outcome = run(Launch::Compute(compute.clone()), &program, &strict()).unwrap();
    assert_eq!(words(&outcome), [3, 2, 1, 1, 1, 0, 0, 0xdead_beef]);
    compute.grid = [5, 4];
    let outcome = run(Launch::Compute(compute), &program, &strict()).unwrap();
    assert_eq!(words(&outcome), [3, 2, 1, 5, 4, 4, 3, 0xdead_beef], "the last block wrote last");
}

// 9.7
#[test]
fn warps_exchange_values_across_a_barrier() {
    let source = indexed(
        "shl $a1 $r0 0x2
        st b32 s[$a1+0x40] $r0
        bar inc wait 0x0 0xfff
        mov b32 $r3 0x5f
        sub b32 $r3 $r3 $r0
        shl $a1 $r3 0x2
        ld $r4 b32 s[$a1+0x40]
        exit st b32 g14[$r2] $r4",
    );
    let expected: Vec<u32> = (0..96).rev().collect();
    assert_eq!(output(&source, 1, [96, 1, 1], 96), expected);
}

// 9.7: a barrier does not wait for warps that have exited.
#[test]
fn a_barrier_for_all_does_not_wait_for_warps_that_have_ended() {
    let source = indexed(
        "mov b32 $r5 0x20
        set $c0 # ge u32 $r0 $r5
        (lg $c0) bra out
        bar inc wait 0x0 0xfff
        st b32 g14[$r2] $r0
    out:
        exit nop",
    );
    let mut expected: Vec<u32> = (0..32).collect();
    expected.resize(64, 0);
    assert_eq!(output(&source, 1, [64, 1, 1], 64), expected);
}

#[test]
fn a_barrier_that_cannot_complete_names_the_warps_that_wait() {
    let trap = trap("bar inc wait 0x3 0x5\nexit nop", &strict());
    assert_eq!(trap.trap.cause, Cause::BarrierNever(vec![(0, 3), (1, 3)]));
}

#[test]
fn a_barrier_beyond_those_allocated_traps() {
    let (mut compute, program) = kernel("bar inc wait 0x1 0xfff\nexit nop", 1, [32, 1, 1], 1);
    compute.barriers = Some(1);
    let launch = Launch::Compute(compute);
    let Err(RunError::Trap(trap)) = run(launch.clone(), &program, &strict()) else { panic!("no trap") };
    assert_eq!(trap.trap.cause, Cause::NoBarrier(1));
    assert!(run(launch, &program, &lenient()).is_ok());
}

// 6.8, and the order guaranteed by the launch.
#[test]
fn atomics_of_all_blocks_add_up_and_the_old_values_are_those_of_the_order() {
    let source = indexed(
        "mov b32 $r3 b32 s[0x10]
        mov b32 $r4 0x1
        ld add u32 $r5 g14[$r3] $r4
        add b32 $r2 $r2 0x4
        exit st b32 g14[$r2] $r5",
    );
    let found = output(&source, 40, [50, 1, 1], 2001);
    assert_eq!(found[0], 2000);
    assert_eq!(found[1..], (0..2000).collect::<Vec<u32>>());
}

#[test]
fn a_warp_that_spins_lets_the_others_proceed() {
    let source = indexed(
        "mov b32 $r3 0x20
        set $c0 # ge u32 $r0 $r3
        (s $c0) bra set
    spin:
        ld $r4 b32 s[0x40]
        set $c0 # e u32 $r4 $r63
        (s $c0) bra spin
        exit st b32 g14[$r2] $r4
    set:
        mov b32 $r4 0x9
        st b32 s[0x40] $r4
        exit st b32 g14[$r2] $r4",
    );
    assert_eq!(output(&source, 1, [64, 1, 1], 64), [9; 64]);
}

// The convention of the counts: an instruction counts when it executes, for the lanes active then.
#[test]
fn counts_are_of_executed_instructions_and_split_decisions() {
    let source = "
        joinat out
        mov b32 $r1 0x8
        set $c0 # ge u32 $r0 $r1
        (s $c0) bra out
        nop
    out:
        join (never) nop
        exit nop";
    let (compute, program) = kernel(source, 1, [32, 1, 1], 1);
    let launch = Launch::Compute(compute);
    let counted = run(launch.clone(), &program, &strict()).unwrap().statistics;
    let mut seen = Recorder::default();
    let observed = run_watched(&program, launch, &strict(), Watch::of(&mut seen)).unwrap();
    let issued = seen.events.iter().filter(|event| matches!(event, Event::Issue { .. })).count();
    assert_eq!((observed.statistics, issued as u64), (counted, counted.instructions));
    // The join is reached twice and executes once.
    assert_eq!(
        (counted.instructions, counted.lane_instructions, counted.divergent_branches),
        (7, 6 * 32 + 8, 1)
    );
}

// Section 4, locks.
#[test]
fn threads_take_turns_at_a_lock() {
    let source = "
        mov b32 $r3 0x1
        mov b32 $r1 b32 s[0x10]
    again:
        joinat done
        ld lock $c1 $r2 b32 s[0x20]
        (geu $c1) bra done
        add b32 $r2 $r2 $r3
        st unlock b32 s[0x20] $r2
        mov b32 $r4 0x1
    done:
        join (never) nop
        set $c0 # e u32 $r4 $r63
        (l $c0) bra again
        bar inc wait 0x0 0xfff
        ld $r2 b32 s[0x20]
        exit st b32 g14[$r1] $r2";
    assert_eq!(output(source, 1, [64, 1, 1], 1), [64]);
}

// 6.10
#[test]
fn a_vote_tells_every_active_lane() {
    let source = indexed(
        "mov b32 $r3 0x5
        set $c0 # e u32 $r0 $r3
        (s $c0) vote any $c1
        (s $c0) vote all $c2
        mov $r4 $c1
        mov $r5 $c2
        shl b32 $r5 $r5 0x4
        or b32 $r4 $r4 $r5
        exit st b32 g14[$r2] $r4",
    );
    assert_eq!(output(&source, 1, [32, 1, 1], 32), [0x12; 32]);
}

// 1.4
#[test]
fn what_names_a_register_beyond_the_count_vanishes() {
    let source = indexed(
        "mov b32 $r3 0x7
        mov b32 $r20 0x9
        mov b32 $r4 $r20
        st b32 g14[$r2] $r3
        st b32 g14[$r2] $r20
        add b32 $r3 $r3 $r4
        exit st b32 g14[$r2] $r3",
    );
    let (mut compute, program) = kernel(&source, 1, [1, 1, 1], 1);
    compute.setup_mut().registers = 8;
    let outcome = run(Launch::Compute(compute), &program, &strict()).unwrap();
    assert_eq!(words(&outcome), [7]);
}

// 3.3 and 13.22
#[test]
fn a_post_increment_counts_only_for_lanes_that_execute() {
    let source = indexed(
        "mov b32 $r3 0x10
        shl $a1 $r3 0x0
        mov b32 $r4 0x1
        set $c0 # e u32 $r0 $r4
        (s $c0) mov b32 $r5 b32 s[$a1++0x4]
        mov $r6 $a1
        exit st b32 g14[$r2] $r6",
    );
    assert_eq!(output(&source, 1, [3, 1, 1], 3), [0x10, 0x14, 0x10]);
}

// 3.3: the address is the register alone, and the offset is signed.
#[test]
fn a_post_increment_reads_first_and_counts_in_both_directions() {
    let source = indexed(
        "mov b32 $r3 0x48
        shl $a1 $r3 0x0
        mov b32 $r4 0x5
        st b32 s[0x48] $r4
        mov b32 $r5 b32 s[$a1++-0x8]
        mov $r6 $a1
        shl b32 $r6 $r6 0x8
        or b32 $r5 $r5 $r6
        exit st b32 g14[$r2] $r5",
    );
    assert_eq!(output(&source, 1, [1, 1, 1], 1), [0x4005]);
}

// 1.7
#[test]
fn local_memory_belongs_to_a_thread_and_starts_at_zero() {
    let source = indexed(
        "ld b32 $r4 l[0x8]
        st b32 l[0x8] $r1
        ld b32 $r5 l[0x8]
        add b32 $r5 $r5 $r4
        exit st b32 g14[$r2] $r5",
    );
    let (mut compute, program) = kernel(&source, 1, [4, 1, 1], 4);
    compute.setup_mut().local_bytes = 12;
    let outcome = run(Launch::Compute(compute), &program, &strict()).unwrap();
    assert_eq!(words(&outcome), [0, 1, 2, 3]);
}

// 1.4, 1.7: each block starts without the state of the block before it.
#[test]
fn every_block_begins_with_all_its_state_at_zero() {
    let source = indexed(
        "ld b32 $r4 l[0x8]
        add b32 $r4 $r4 $r9
        mov $r5 $a1
        add b32 $r4 $r4 $r5
        mov $r5 $c1
        add b32 $r4 $r4 $r5
        mov b32 $r5 b32 s[0x20]
        add b32 $r4 $r4 $r5
        st b32 g14[$r2] $r4
        mov b32 $r9 0x1
        st b32 l[0x8] $r9
        shl $a1 $r9 0x0
        set $c1 # ge u32 $r9 $r9
        st b32 s[0x20] $r9
        exit nop",
    );
    let (mut compute, program) = kernel(&source, 3, [4, 1, 1], 12);
    compute.setup_mut().local_bytes = 12;
    let outcome = run(Launch::Compute(compute), &program, &strict()).unwrap();
    assert_eq!(words(&outcome), [0; 12]);
}

// 4: widths of g[].
#[test]
fn loads_extend_and_stores_cut() {
    let source = "
        mov b32 $r1 b32 s[0x10]
        mov b32 $r2 0x8091a2b3
        st b32 g14[$r1] $r2
        ld s8 $r4 g14[$r1]
        ld u16 $r5 g14[$r1]
        mov b32 $r6 $r4
        mov b32 $r7 $r5
        add b32 $r1 $r1 0x8
        st b64 g14[$r1] $r6d
        add b32 $r1 $r1 0x8
        st u8 g14[$r1] $r2
        exit nop";
    assert_eq!(output(source, 1, [1, 1, 1], 5), [0x8091_a2b3, 0, 0xffff_ffb3, 0xa2b3, 0xb3]);
}

// 13.18
#[test]
fn an_unaligned_address_loses_its_low_bits() {
    let source = "
        mov b32 $r1 b32 s[0x10]
        mov b32 $r2 0x7
        mov b32 $r3 0x8
        add b32 $r1 $r1 0x7
        st b64 g14[$r1] $r2d
        exit nop";
    assert_eq!(output(source, 1, [1, 1, 1], 3), [7, 8, 0]);
}

// 9.9
#[test]
fn an_indirect_call_returns_behind_itself() {
    let source = "
        mov b32 $r1 b32 s[0x10]
        mov b32 $r2 0x1
        preret back
        bra c0[0x4]
    back:
        add b32 $r2 $r2 0x10
        exit st b32 g14[$r1] $r2
        add b32 $r2 $r2 0x100
        ret";
    let (mut compute, program) = kernel(source, 1, [32, 1, 1], 1);
    compute.setup_mut().constants.place(0, 4, &0x30u32.to_le_bytes());
    let outcome = run(Launch::Compute(compute), &program, &strict()).unwrap();
    assert_eq!(words(&outcome), [0x111]);
}

#[test]
fn a_bad_access_names_the_lane_and_the_address() {
    let source = indexed("mov b32 $r3 0x4\nadd b32 $r2 $r2 $r3\nexit st b32 g14[$r2] $r1");
    let trap = trap(&source, &strict());
    let cause =
        Cause::Memory { space: Space::Global(14), access: Access::Write, address: OUT + 4 * 64, bytes: 4 };
    assert_eq!((trap.group, trap.trap.cause.clone()), (GroupId::Warp { block: [0, 0], warp: 1 }, cause));
    assert_eq!(trap.trap.lanes.lanes().collect::<Vec<_>>(), [Lane(31)]);
    assert_eq!(trap.words, Some([0xd00e_0405, 0xa0c0_0781]));
}

#[test]
fn memory_that_is_not_there_traps_in_every_space() {
    for (source, space, access) in [
        ("ld b32 $r1 l[0x0]\nexit nop", Space::Local, Access::Read),
        ("mov b32 $r1 0x4000\nshl $a1 $r1 0x0\nld $r1 b32 s[$a1]\nexit nop", Space::Shared, Access::Read),
        ("ld b32 $r1 g3[$r0]\nexit nop", Space::Global(3), Access::Read),
        ("red add u32 g14[$r0] $r1\nexit nop", Space::Global(14), Access::Red),
        ("ld add u32 $r1 g14[$r0] $r1\nexit nop", Space::Global(14), Access::Atom),
    ] {
        match trap(source, &lenient()).trap.cause {
            Cause::Memory { space: found, access: tried, .. } => assert_eq!((found, tried), (space, access)),
            other => panic!("{source}: {other}"),
        }
    }
}

#[test]
fn a_program_that_does_not_end_is_stopped() {
    let trap = trap("again:\n    bra again", &strict());
    assert_eq!(trap.trap.cause, Cause::Timeout(200_000));
}

#[test]
fn leaving_the_code_traps() {
    assert_eq!(trap("nop", &strict()).trap.cause, Cause::OutsideCode);
    let words = vec![0x1000_8000, 0xf000_0001, 0xe000_0781];
    let program = Program::from_words(words);
    let compute = Compute::of(&program, CHIP).unwrap();
    let Err(RunError::Trap(trap)) = run(Launch::Compute(compute), &program, &strict()) else {
        panic!("no trap")
    };
    assert_eq!(trap.trap.cause, Cause::UnalignedLongInstruction);
}

#[test]
fn an_executed_trap_instruction_ignores_its_predicate() {
    assert_eq!(trap("trap", &strict()).trap.cause, Cause::TrapInstruction);
}

#[test]
fn address_registers_that_do_not_exist_trap_or_read_zero() {
    let source = indexed("mov $r3 $a5\nexit st b32 g14[$r2] $r3");
    assert_eq!(trap(&source, &strict()).trap.cause, Cause::NoAddressRegister(5));
    let (compute, program) = kernel(&source, 1, [1, 1, 1], 1);
    assert_eq!(words(&run(Launch::Compute(compute), &program, &lenient()).unwrap()), [0]);
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let (compute, program) = kernel("exit nop", 1, [1, 1, 1], 1);
    let refused = |change: fn(&mut Compute)| {
        let mut compute = compute.clone();
        change(&mut compute);
        match run(Launch::Compute(compute), &program, &strict()) {
            Err(RunError::Launch(error)) => error,
            other => panic!("{:?}", other.map(|outcome| outcome.statistics)),
        }
    };
    assert_eq!(refused(|compute| compute.grid = [0, 1]), LaunchError::Grid([0, 1]));
    assert_eq!(refused(|compute| compute.block = [1, 1, 65]), LaunchError::Block([1, 1, 65]));
    assert_eq!(refused(|compute| compute.block = [0xffff, 2, 1]), LaunchError::Block([0xffff, 2, 1]));
    assert_eq!(refused(|compute| compute.setup_mut().registers = 129), LaunchError::Registers(129));
    assert_eq!(
        refused(|compute| compute.setup_mut().local_bytes = 0x1_0001),
        LaunchError::LocalBytes(0x1_0001)
    );
    let local =
        |compute: &mut Compute| (compute.block, compute.setup_mut().local_bytes) = ([0x8000, 2, 1], 0x1_0000);
    assert_eq!(refused(local), LaunchError::LocalOfBlock(1 << 32));
    let shared = refused(|compute| (compute.shared_bytes, compute.dynamic_shared) = (Some(0x4000), 1));
    assert_eq!(shared, LaunchError::SharedBytes(0x4040));
    assert!(matches!(
        refused(|compute| compute.setup_mut().code_base = 4),
        LaunchError::CodeBase { base: 4, .. }
    ));
    let lanes = 1 << 63;
    let vertex = Vertex { setup: Setup::new(CHIP).into(), lanes, inputs: Default::default() };
    let refused = run(Launch::Vertex(vertex), &program, &strict()).unwrap_err();
    let exceeded = LANES.check(lanes as u64).unwrap_err();
    assert_eq!(refused, RunError::Launch(LaunchError::Lanes(exceeded)));
}

// 11.1: `consts` and `reloc` of a text cubin.
#[test]
fn a_modules_constants_and_variables_are_loaded() {
    let source = "
        mov b32 $r1 b32 s[0x10]
        ld $r2 b32 c14[0x4]
        ld b32 $r3 g14[$r2]
        ld $r4 b32 c0[0x8]
        add b32 $r3 $r3 $r4
        exit st b32 g14[$r1] $r3";
    let (mut compute, program) = kernel(source, 1, [1, 1, 1], 1);
    let slots = vec![Slot { bank: 14, offset: 4, addend: 8 }];
    let init = [0u32, 0, 30].iter().flat_map(|word| word.to_le_bytes()).collect();
    let module = Module {
        constants: vec![ConstantBlock { bank: 0, offset: 8, bytes: vec![4, 0, 0, 0] }],
        variables: vec![Variable { name: "v".into(), bytes: 16, place: Place::Global { slots, init } }],
        ..Module::default()
    };
    assert_eq!(compute.load_module(&module, 0x8000), Ok(vec![("v".into(), 0x8000)]));
    assert_eq!(words(&run(Launch::Compute(compute.clone()), &program, &strict()).unwrap()), [34]);
    assert!(matches!(compute.load_module(&module, OUT), Err(LaunchError::Memory(_))));
}

#[test]
fn stepping_equals_running_and_a_copy_is_a_snapshot() {
    let source = indexed(
        "shl $a1 $r0 0x2
        st b32 s[$a1+0x40] $r1
        bar inc wait 0x0 0xfff
        exit st b32 g14[$r2] $r1",
    );
    let (compute, program) = kernel(&source, 3, [70, 1, 1], 210);
    let whole = run(Launch::Compute(compute.clone()), &program, &strict()).unwrap();
    for way in ways(&strict()) {
        let mut stepped = Run::new(&program, Launch::Compute(compute.clone()), &way).unwrap();
        for _ in 0..57 {
            assert_eq!(stepped.step(&mut Silent), Ok(Step::Running));
        }
        let snapshot = stepped.clone();
        for mut machine in [stepped, snapshot] {
            while machine.step(&mut Silent).unwrap() == Step::Running {}
            assert_eq!(machine.statistics(), whole.statistics);
            assert_eq!(machine.memory(), &whole.memory);
            assert_eq!(machine.outcome().report, whole.report);
        }
    }
}

fn fragment(source: &str, lanes: usize) -> (Fragment, Program) {
    let mut setup = Setup::new(CHIP);
    setup.registers = 16;
    (Fragment::new(setup, lanes), program(source, Stage::Fragment))
}

fn registers(fragment: Fragment, program: &Program, register: usize) -> Vec<u32> {
    let outcome = run(Launch::Fragment(fragment), program, &strict()).unwrap();
    outcome.lanes.iter().map(|lane| lane.registers[register]).collect()
}

fn floats(words: Vec<u32>) -> Vec<f32> {
    words.into_iter().map(f32::from_bits).collect()
}

// 6.7
#[test]
fn interpolation_is_at_the_centre_the_centroid_or_flat() {
    let plane = Varying::Plane { base: 1.0, dx: 2.0, dy: 4.0, flat: 7 };
    for (source, expected) in [
        ("interp $r0 v[0x8]\nexit nop", vec![4.0, 6.0, 8.0, 10.0]),
        ("interp $r0 cent v[0x8]\nexit nop", vec![1.0, 6.0, 8.0, 10.0]),
        ("mov b32 $r1 0x40400000\ninterp $r0 v[0x8] $r1\nexit nop", vec![12.0, 18.0, 24.0, 30.0]),
    ] {
        let (mut launch, program) = fragment(source, 4);
        launch.varyings.insert(2, plane.clone());
        launch.centroids = vec![[0.0, 0.0]];
        assert_eq!(floats(registers(launch, &program, 0)), expected, "{source}");
    }
    let (mut launch, program) = fragment("interp $r0 flat v[0x8]\nexit nop", 4);
    launch.varyings.insert(2, plane);
    assert_eq!(registers(launch, &program, 0), [7; 4]);
}

/// Mesa `nv50_ir_emit_nv50.cpp`, getSRegEncoding: 8 is SV_SAMPLE_INDEX.
#[test]
fn the_number_of_a_sample_is_that_of_the_launch_and_otherwise_zero() {
    let (mut launch, program) = fragment("mov $r0 $sampleid\nadd b32 $r0 $r0 $r0\nexit nop", 4);
    assert_eq!(registers(launch.clone(), &program, 0), [0; 4]);
    launch.varyings.insert(SAMPLE_ID, Varying::Lanes(vec![0, 3, 1, 2].into()));
    assert_eq!(registers(launch, &program, 0), [0, 6, 2, 4]);
}

#[test]
fn an_input_that_the_launch_does_not_give_traps_or_reads_zero() {
    let (launch, program) = fragment("mov b32 $r0 0x5\ninterp $r0 v[0x10]\nexit nop", 1);
    let result = run(Launch::Fragment(launch.clone()), &program, &strict());
    let Err(RunError::Trap(trap)) = result else { panic!("no trap") };
    assert_eq!(trap.trap.cause, Cause::NoInput { space: Space::Varying, address: 0x10 });
    let outcome = run(Launch::Fragment(launch), &program, &lenient()).unwrap();
    assert_eq!(outcome.lanes.get(0).unwrap().registers[0], 0);
}

// 6.10
#[test]
fn a_discarded_fragment_runs_on_and_is_reported_dead() {
    let source = "
        mov b32 $r1 0x1
        interp $r2 flat v[0x4]
        set $c0 # e u32 $r2 $r1
        (s $c0) discard
        mov b32 $r0 0x9
        exit nop";
    let (mut launch, program) = fragment(source, 3);
    launch.varyings.insert(1, Varying::Lanes(vec![0, 1, 2].into()));
    let outcome = run(Launch::Fragment(launch), &program, &strict()).unwrap();
    let lanes: Vec<(u32, bool)> = outcome.lanes.iter().map(|lane| (lane.registers[0], lane.dead)).collect();
    assert_eq!(lanes, [(9, false), (9, true), (9, false)]);
    by_column_as_by_lane(&outcome.lanes);
}

/// Checks that results by column equal those of each lane.
fn by_column_as_by_lane(lanes: &LaneResults) {
    for register in [0, 1, 63, 200] {
        let of = |lane: LaneResult| lane.registers.get(register).copied();
        let expected: Vec<u32> = lanes.iter().map(|lane| of(lane).unwrap_or(0)).collect();
        assert_eq!(lanes.column(register), expected, "$r{register}");
        let lane = |lane: usize| lanes.get(lane).and_then(of);
        assert!((0..=lanes.len()).all(|number| lanes.register(number, register) == lane(number)));
    }
    let dead: Vec<bool> = lanes.iter().map(|lane| lane.dead).collect();
    let found = lanes.dead();
    assert!(found == dead || found.is_empty() && !dead.contains(&true), "{found:?}");
    assert!(lanes.outputs().into_iter().eq(lanes.iter().map(|lane| lane.outputs)));
}

/// Straight-line programs: constants alone, registers that keep a lane's value, predicates and flags, halves,
/// inputs that the launch does not provide, derivatives, and one that branches.
const STRAIGHT: [&str; 9] = [
    "interp $r0 v[0x0]
    rcp f32 $r0 $r0
    interp $r4 v[0x4] $r0
    interp $r1 v[0x8] $r0
    ld $r2 b32 c0[0x8]
    mov b32 $r3 0x3f000000
    mov b32 $r0 $r4
    exit nop",
    "mov b32 $r5 0x7
    interp $r0 v[0x4]
    mov b32 $r6 0x40
    set $c0 # l s32 $r0 $r6
    (e $c0) mov b32 $r1 $r5
    add b32 $r2 $r2 $r0
    (e $c0) add b32 $r2 $r2 $r5
    mov $r3 $c0
    exit nop",
    "interp $r0 v[0x4]
    mov b16 $r1h $r0l
    mov b16 $r2l $r0h
    add b32 $r1 $r1 $r2
    mov b32 $r3 $r9
    exit nop",
    "interp $r0 v[0x20]
    add b32 $r0 $r0 0x5
    interp $r1 v[0x0]
    ld $r2 b32 c0[0x4]
    add b32 $r2 $r2 $r2
    exit nop",
    "interp $r1 v[0x4]
    interp $r2 v[0x8]
    quadop f32 subr subr sub sub $r0 dx $r1 $r1
    add rn f32 $r3 $r0 $r2
    mov b32 $r0 $r3
    exit nop",
    "interp $r0 v[0x4]
    mov b32 $r6 0x40
    set $c0 # l s32 $r0 $r6
    (e $c0) bra end
    mov b32 $r1 0x9
    end:
    exit nop",
    "mov b32 $r0 0x3
    mov b32 $r4 0x40
    interp $r1 v[0x4]
    add b32 $r0 $r0 $r4
    add b32 $r1 $r1 $r0
    set $c0 # l s32 $r1 $r4
    mov b32 $r0 0x9
    (e $c0) add b32 $r0 $r1 $r4
    mov b32 $r1 $r4
    mov b32 $r20 $r4
    add b32 $r3 $r20 $r0
    mov b32 $r4 0x5
    exit nop",
    "mov b32 $r5 0x40
    interp $r1 v[0x4]
    set $c0 # l u32 $r1 $r5
    (lg $c0) interp $r0 v[0x8] $r1
    (e $c0) interp $r2 v[0x8]
    exit nop",
    // Lanes that are discarded continue.
    "interp $r0 v[0x4]
    interp $r1 v[0x8]
    set $c0 # l f32 $r1 $r0
    (lg $c0) discard
    add rn f32 $r2 $r0 $r1
    mov b32 $r3 $r2
    exit nop",
];

/// A launch of a straight-line program runs without its control flow. Its results, counts and reports equal those
/// of the engines that run all of it, for any number of threads.
#[test]
fn straight_line_fragments_leave_the_same_without_control_flow() {
    for source in STRAIGHT {
        for (lanes, helpers, covered, ones) in [
            (3_016, true, true, true),
            (3_000, true, false, false),
            (64, false, true, true),
            (70, false, false, true),
        ] {
            let (mut launch, program) = fragment(source, lanes);
            let float = |number: usize| (number as f32 * 0.37 - 11.).to_bits();
            launch.helpers = helpers;
            launch.kept = if ones { Some(4) } else { None };
            launch.setup_mut().constants.place(0, 0, &[5; 16]);
            launch.varyings.insert(1, Varying::Lanes((0..lanes as u32).collect::<Vec<_>>().into()));
            launch.varyings.insert(2, Varying::Lanes((0..lanes).map(float).collect::<Vec<_>>().into()));
            if !ones {
                let reciprocals = (0..lanes).map(|lane| float(lane % 7)).collect::<Vec<_>>();
                launch.varyings.insert(0, Varying::Lanes(reciprocals.into()));
            }
            if !covered {
                launch.covered = (0..lanes).map(|lane| lane % 7 != 2 && lane / 64 != 3).collect();
            }
            let expected = run(Launch::Fragment(launch.clone()), &program, &lenient()).unwrap();
            for threads in [2, 5] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let found = pool.install(|| {
                    let launch = Launch::Fragment(launch.clone());
                    reconverge_tesla::run::run(&program, launch, &Options { jobs: None, ..lenient() })
                        .unwrap()
                });
                assert!(found.lanes == expected.lanes, "{source} {lanes}");
                assert_eq!(found.statistics, expected.statistics, "{source}");
                assert_eq!(found.report, expected.report, "{source}");
            }
            let (mut taken, copied) = (expected.lanes.clone(), expected.lanes);
            assert!((0..17).all(|register| taken.take_column(register) == copied.column(register)));
        }
    }
}

/// Planes have the same values without control flow, at each position and in each mode. Some are NaN or denormal.
#[test]
fn straight_line_fragments_read_planes_at_each_position() {
    let source = "
        interp $r0 v[0x4]
        interp $r1 cent v[0x4]
        interp $r2 flat v[0x4]
        interp $r3 v[0x8]
        interp $r4 cent v[0x8] $r0
        interp $r5 v[0xc]
        exit interp $r6 v[0x0]";
    for (lanes, helpers, given) in [(3_000, true, 0), (64, false, 40), (2_050, true, 2_000)] {
        for (engine, mode) in [(Engine::Fast, Mode::Strict), (Engine::Compiled, Mode::Lenient)] {
            let (mut launch, program) = fragment(source, lanes);
            launch.helpers = helpers;
            launch.kept = Some(7);
            launch.centres = (0..given).map(|lane| [lane as f32 / 8.0, 3.5 - lane as f32]).collect();
            launch.centroids = (0..given / 2).map(|lane| [lane as f32 / 4.0, -0.25]).collect();
            let plane = |base, dx, dy| Varying::Plane { base, dx, dy, flat: 0x1234_5678 };
            launch.varyings.insert(1, plane(0.5, -0.25, 0.1));
            launch.varyings.insert(2, plane(f32::INFINITY, f32::NEG_INFINITY, 1.0));
            launch.varyings.insert(3, plane(-1e-38, 1e-40, 1e-39));
            let ran = |engine| {
                let options = Options { mode, engine, ..strict() };
                reconverge_tesla::run::run(&program, Launch::Fragment(launch.clone()), &options).unwrap()
            };
            let (expected, found) = (ran(Engine::Reference), ran(engine));
            assert!(found.lanes == expected.lanes, "{lanes}");
            assert_eq!((found.statistics, found.report), (expected.statistics, expected.report));
        }
    }
}

/// The same is true for a launch of vertices. Fewer lanes of the last warp run.
#[test]
fn straight_line_vertices_leave_the_same_without_control_flow() {
    for source in [
        "mov b32 $r0 a[0x0]
        ld $r1 b32 c0[0x4]
        ld $r2 b32 c0[0x8]
        mul rn f32 $r3 $r0 $r1
        add rn f32 o[0xc] a[0x4] $r3
        st b32 o[0x0] $r2
        add b32 $r2 $r2 $r2
        (lg $c1) mov b32 o[0x20] $r2
        mov b32 $r4 $r3
        mov b16 o[0x10] $r4h
        exit st b32 o[0x4] $r4",
        "mov b32 $r6 0x40
        set $c0 # l s32 a[0x4] $r6
        (e $c0) add b32 $r5 $r5 $r6
        (e $c0) st b32 o[0x8] $r5
        (lg $c0) mov b32 o[0x0] $r6
        shl $a1 $r6 0x0
        mov b32 o[0x14] a[0x40]
        exit nop",
        "mov b32 $r1 0x5
        exit nop",
    ] {
        let program = program(source, Stage::Vertex);
        for lanes in [1, 4, 32, 70, 2_050] {
            let mut setup = Setup::new(CHIP);
            setup.registers = 16;
            setup.constants.place(0, 0, &[5; 16]);
            let words = (0..lanes as u32 + 3).collect::<Vec<_>>();
            let floats = (0..lanes).map(|lane| (lane as f32 * 0.37 - 11.).to_bits()).collect();
            let inputs = [(0, floats), (1, words)].into_iter().collect();
            let launch = Launch::Vertex(Vertex { inputs, setup: setup.into(), lanes });
            let expected = run(launch.clone(), &program, &lenient()).unwrap();
            for threads in [2, 5] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let options = Options { jobs: None, ..lenient() };
                let loaded = Loaded::new(&program, &launch.environment(), &options).unwrap();
                for _ in 0..2 {
                    let found = pool.install(|| loaded.run(launch.clone()).unwrap());
                    assert!(found.lanes == expected.lanes, "{source} {lanes}");
                    assert_eq!(found.statistics, expected.statistics, "{source}");
                    assert_eq!(found.report, expected.report, "{source}");
                    let left = pool.install(|| loaded.run_lanes(launch.clone()).unwrap());
                    assert_eq!(left.outputs(), expected.lanes.outputs(), "{source}");
                }
            }
        }
    }
}

// 9.6, 9.8, 1.6: the registers of a lane are its colour when it ends. Later values, computed for its quad, are not.
#[test]
fn exit_finalises_the_colour_of_a_fragment() {
    for end in ["exit nop", "ret"] {
        let source = format!(
            "
            interp $r0 flat v[0x4]
            set $c0 # e u32 $r0 $r63
            (e $c0) bra end
            quadon
            mov b32 $r0 0x63
            discard
            quadpop
            exit nop
            end: {end}"
        );
        let (mut launch, program) = fragment(&source, 5);
        launch.varyings.insert(1, Varying::Lanes(vec![1, 0, 2, 3, 4].into()));
        let outcome = run(Launch::Fragment(launch), &program, &strict()).unwrap();
        let left: Vec<_> = outcome.lanes.iter().map(|lane| (lane.registers[0], lane.dead)).collect();
        assert_eq!(left, [(1, false), (0x63, true), (2, false), (3, false), (4, false)], "{end}");
        by_column_as_by_lane(&outcome.lanes);
    }
}

// 9.6: a lane that waits for its CALL entry has not ended.
#[test]
fn a_lane_that_waits_for_its_caller_has_its_colour_still_to_come() {
    let source = "
        interp $r0 flat v[0x4]
        call sub
        exit nop
        sub:
        set $c0 # e u32 $r0 $r63
        (e $c0) ret
        quadon
        mov b32 $r0 0x63
        quadpop
        ret";
    let (mut launch, program) = fragment(source, 4);
    launch.varyings.insert(1, Varying::Lanes(vec![1, 0, 2, 3].into()));
    assert_eq!(registers(launch, &program, 0), [0x63; 4]);
}

// 6.3: the horizontal derivative as compilers write it.
#[test]
fn a_quadop_sees_the_neighbour_even_one_that_is_only_a_helper() {
    let source = "
        interp $r1 v[0x4]
        quadop f32 sub subr sub subr $r0 dx $r1 $r1
        exit nop";
    let (mut launch, program) = fragment(source, 3);
    launch.helpers = true;
    launch.varyings.insert(1, Varying::Plane { base: 0.0, dx: 3.0, dy: 10.0, flat: 0 });
    assert_eq!(floats(registers(launch, &program, 0)), [3.0, 3.0, 3.0]);
}

/// 8 x 8 and smaller levels; each texel holds the number of its level.
fn mips(setup: &mut Setup) {
    let level = |number: u32| {
        let size = 8 >> number;
        let texels = vec![[(number as f32).to_bits(), 20, 30, 40]; (size * size) as usize];
        Level { width: size, height: size, depth: 1, texels: texels.into() }
    };
    let image = Arc::new(Image::new(Shape::D2, (0..4).map(level).collect()).unwrap());
    setup.textures.bind(3, image, Sampler { mip: MipFilter::Nearest, ..Sampler::default() });
}

// 6.9
#[test]
fn a_texture_reads_the_level_that_its_quad_needs() {
    let source = "
        interp $r0 v[0x4]
        interp $r1 v[0x8]
        texauto live $r0:$r1:$r2:$r3 $t3 $s3 $r0:$r1 0x0 0x0 0x0
        exit nop";
    let (mut launch, program) = fragment(source, 3);
    launch.helpers = true;
    mips(launch.setup_mut());
    // A step of a quarter of the image between pixels: two texels of level 0, one of level 1.
    launch.varyings.insert(1, Varying::Plane { base: 0.0, dx: 0.25, dy: 0.0, flat: 0 });
    launch.varyings.insert(2, Varying::Plane { base: 0.0, dx: 0.0, dy: 0.25, flat: 0 });
    assert_eq!(floats(registers(launch.clone(), &program, 0)), [1.0; 3]);
    assert_eq!(registers(launch, &program, 3), [40; 3]);
}

// 6.9: components that are not enabled do not take a register.
#[test]
fn enabled_components_go_to_consecutive_registers() {
    let source = "
        mov b32 $r3 0x77
        texauto all $r0:#:#:$r1 $t3 $s3 $r0:$r1 0x0 0x0 0x0
        exit nop";
    let (mut launch, program) = fragment(source, 1);
    mips(launch.setup_mut());
    let outcome = run(Launch::Fragment(launch), &program, &strict()).unwrap();
    assert_eq!(outcome.lanes.get(0).unwrap().registers[..4], [0, 40, 0, 0x77]);
}

// 1.2: a vertex program's attributes and outputs.
#[test]
fn a_vertex_program_reads_attributes_and_writes_outputs() {
    let program = program("mov b32 o[0x8] a[0x4]\nexit nop", Stage::Vertex);
    let inputs = [(1, (0..40).collect::<Vec<u32>>())].into_iter().collect();
    let launch = Vertex { setup: Setup::new(CHIP).into(), lanes: 40, inputs };
    let outcome = run(Launch::Vertex(launch), &program, &strict()).unwrap();
    let third: Vec<u32> = outcome.lanes.iter().map(|lane| lane.outputs[2]).collect();
    assert_eq!(third, (0..40).collect::<Vec<u32>>());
    by_column_as_by_lane(&outcome.lanes);
}

// 1.6 and 6.10
#[test]
fn a_geometry_program_reads_its_vertices_and_emits() {
    let source = "
        mov b32 $r1 a[0x0]
        shl $a1 $r1 0x0
        mov b32 o[0x0] p[$a1+0x4]
        emit
        restart
        exit nop";
    let program = program(source, Stage::Geometry);
    let inputs = [(0, vec![0, 8])].into_iter().collect();
    let launch = Geometry { setup: Setup::new(CHIP).into(), lanes: 2, inputs, vertices: vec![1, 2, 3, 4] };
    let outcome = run(Launch::Geometry(launch), &program, &strict()).unwrap();
    let emitted: Vec<_> = outcome.lanes.iter().map(|lane| lane.emitted.clone()).collect();
    let strip = |word| vec![Emitted::Vertex(vec![word]), Emitted::Restart];
    assert_eq!(emitted, [strip(2), strip(4)]);
}
