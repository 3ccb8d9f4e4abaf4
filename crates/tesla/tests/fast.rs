//! Whole random programs, executed in every way: reference, fast on every level, lockstep.
//!
//! Control flow of all kinds stands between arithmetic, predicates and memory. Most of it makes sense, some of it
//! traps, and some does not end. All engines must agree in each case.

mod engines;

use std::num::NonZero;

use engines::run;
use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory, Store};
use reconverge_simt::{Engine, Level, Mode, Options, Silent};
use reconverge_tesla::fast::Fast;
use reconverge_tesla::grid::Grid;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::launch::{Compute, Fragment, Launch, RunError, Setup, Varying, Vertex};
use reconverge_tesla::reference::Reference;
use reconverge_tesla::run::{Loaded, run as run_once};
use reconverge_tesla::text::assemble;
use reconverge_tesla::trap::Cause;
use reconverge_testkit::tesla::{OUT, compute, program};
use reconverge_testkit::{Campaign, Random};

const CHIP: Chip = Chip::Gt215;

/// Returns the indices of the instructions of a program that the reference interpreter executes.
fn by_reference(text: &str) -> Vec<usize> {
    let program =
        Program { words: assemble(text, CHIP, Stage::Compute).unwrap().words(), ..Program::default() };
    let compute = Compute::of(&program, CHIP).unwrap();
    let options = Options::default();
    let (grid, _) = Grid::new(Launch::Compute(compute), &program, &options).unwrap();
    Fast::of(&grid, options.level()).by_reference()
}

#[test]
fn only_what_has_no_fast_way_goes_to_the_reference_interpreter() {
    let quick = "mov b32 $r1 b32 s[0x10]\nadd b32 $r2 $r1 $r0\nrcp f32 $r3 $r2\nbar inc wait 0x0 0xfff\n(e $c0) bra OUT\nOUT:\n\
                 st b32 g14[$r1] $r2\nexit nop";
    assert_eq!(by_reference(quick), Vec::<usize>::new());
    assert_eq!(by_reference("nop\nmov $r1 $physid\nmov $r1 $clock\nexit nop").len(), 2);
}

#[test]
fn random_programs_end_the_same_in_every_way() {
    let (programs, mut random) = Campaign::of_random(1500, 0x2545_f491_4f6c_dd1d);
    let (mut ended, mut trapped, mut stopped, mut divergent) = (0u64, 0u64, 0u64, 0);
    for number in 0..programs as u32 {
        let text = program(&mut random);
        let assembled = assemble(&text, CHIP, Stage::Compute).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
        let program = Program { words: assembled.words(), ..Program::default() };
        let compute = compute(&mut random, &program, CHIP);
        let mode = if number % 2 == 0 { Mode::Strict } else { Mode::Lenient };
        // Odd limits, so that the budget is used up in the middle of blocks and slices.
        let watchdog = 2000 + u64::from(random.below(2000));
        // Most of these programs read bytes that were never written.
        let options = Options { mode, watchdog, race_check: number % 8 == 0, ..Options::default() };
        match run(Launch::Compute(compute), &program, &options) {
            Ok(outcome) => {
                ended += 1;
                divergent += outcome.statistics.divergent_branches;
            }
            Err(RunError::Trap(trap)) if matches!(trap.trap.cause, Cause::Timeout(_)) => stopped += 1,
            Err(RunError::Trap(_)) => trapped += 1,
            Err(other) => panic!("{text}\n{other}"),
        }
    }
    println!("{ended} ended after {divergent} divergent branches, {trapped} trapped, {stopped} were stopped");
    assert!(ended >= programs / 5 && trapped >= programs / 15 && stopped >= programs / 75);
    assert!(divergent >= programs / 2);
}

/// Iterations of an `if` with two short sides. After it, each warp reads the values that the others have written
/// meanwhile.
const ROUNDS: &str = "mov b32 $r1 b32 s[0x10]\nmov b32 $r2 0x1\nand b32 $c0 # $r0 $r2\nmov b32 $r3 0x150\nLOOP:\n\
                      joinat NEXT\n(lg $c0) bra ODD\nadd b32 $r4 $r4 $r2\nadd b32 $r4 $r4 $r2\nbra NEXT\nODD:\n\
                      add b32 $r4 $r4 $r0\nNEXT:\njoin ld b32 $r5 g14[$r1]\nadd b32 $r5 $r5 $r0\n\
                      st b32 g14[$r1] $r5\nsub b32 $c1 $r3 $r3 $r2\n(lg $c1) bra LOOP\nexit nop";

fn rounds() -> (Compute, Program) {
    let words = assemble(ROUNDS, CHIP, Stage::Compute).unwrap().words();
    let program = Program { words, ..Program::default() };
    let mut compute = Compute::of(&program, CHIP).unwrap();
    compute.block = [70, 1, 1];
    compute.params = OUT.to_le_bytes().to_vec();
    compute.memory = Memory::new(vec![Buffer::new(OUT, vec![0; 4])]).unwrap();
    (compute, program)
}

#[test]
fn warps_take_turns_after_as_many_instructions_in_every_way() {
    let (compute, program) = rounds();
    let outcome = run(Launch::Compute(compute), &program, &Options::default()).unwrap();
    assert_ne!(outcome.memory.at(OUT).unwrap().bytes[..], [0; 4]);
}

/// Iterations with two barriers. Between the barriers, each warp changes words that all warps share, so the result
/// depends on the order of the warps. `second` is the second barrier. `inside` are instructions of the loop.
fn meetings(threads: u32, second: &str, inside: &str) -> (Compute, Program) {
    let source = format!(
        "mov b32 $r1 b32 s[0x10]\nand b32 $r0 $r0 0xffff\nmov b32 $r2 0x1\nmov b32 $r3 0x9\nmov b32 $r6 0x7\nmov b32 $r8 0x20\n\
         mov b32 $r7 0x40\nshl $a1 $r7 0x0\nLOOP:\nmov b32 $r4 b32 s[$a1]\nadd b32 $r4 $r4 $r4\nadd b32 $r4 $r4 $r0\n\
         xor b32 $r5 $r4 $r3\nadd b32 $r5 $r5 $r2\nst b32 s[$a1] $r5\nbar inc wait 0x0 0xfff\n\
         ld b32 $r5 g14[$r1]\nxor b32 $r5 $r5 $r4\nadd b32 $r5 $r5 $r5\nadd b32 $r5 $r5 $r0\n\
         st b32 g14[$r1] $r5\n{inside}\n{second}\nsub b32 $c1 $r3 $r3 $r2\n(lg $c1) bra LOOP\n\
         exit st b32 g14[$r1] $r5"
    );
    let program =
        Program { words: assemble(&source, CHIP, Stage::Compute).unwrap().words(), ..Program::default() };
    let mut compute = Compute::of(&program, CHIP).unwrap();
    compute.block = [threads, 1, 1];
    compute.dynamic_shared = 0x80;
    compute.params = OUT.to_le_bytes().to_vec();
    compute.memory = Memory::new(vec![Buffer::new(OUT, vec![0; 4])]).unwrap();
    (compute, program)
}

/// The warps of a block take turns at barriers in compiled code. (9.7)
#[test]
fn warps_meet_at_barriers_in_the_same_order_in_every_way() {
    let seconds = [
        "bar inc wait 0x0 0xfff",
        "bar inc wait 0x1 0xfff",
        "bar inc wait 0x1 0x2",
        "bar inc 0x2 0xfff\nbar inc wait 0x0 0xfff",
    ];
    let insides = [
        "",
        // A warp ends in the fourth iteration.
        "set $c0 # e u32 $r3 $r6\nset $c1 # l u32 $r0 $r6\n(lg $c0) bra GO\n(e $c1) bra GO\nexit nop\nGO:\nnop",
        // The lanes of a warp diverge, and lanes leave.
        "joinat GO\nset $c0 # l u32 $r0 $r6\n(lg $c0) bra GO\nadd b32 $r4 $r5 $r2\nst b32 s[$a1] $r4\nGO:\njoin nop",
        "set $c0 # e u32 $r0 $r3\n(lg $c0) ret",
        // In the fourth iteration, all warps but one wait at another barrier, so no barrier is ever complete.
        "set $c0 # e u32 $r3 $r6\nset $c1 # l u32 $r0 $r8\n(e $c0) bra GO\n(lg $c1) bra GO\n\
         bar inc wait 0x2 0xfff\nGO:\nnop",
    ];
    for (second, inside) in seconds.iter().flat_map(|second| insides.map(|inside| (second, inside))) {
        for threads in [20, 64, 150, 512] {
            let (compute, program) = meetings(threads, second, inside);
            let launch = || Launch::Compute(compute.clone());
            // In strict mode, the races of this program would be traps.
            let lenient = Options { mode: Mode::Lenient, ..Options::default() };
            let instructions = match run(launch(), &program, &lenient) {
                Ok(outcome) => outcome.statistics.instructions,
                Err(RunError::Trap(trap)) => {
                    assert!(
                        matches!(trap.trap.cause, Cause::BarrierNever(_)),
                        "{second}, {inside}: {trap:?}"
                    );
                    continue;
                }
                Err(other) => panic!("{other}"),
            };
            // The watchdog stops the launch at every point of a turn.
            for watchdog in [instructions / 3, instructions / 2 + 1, instructions - 1, instructions] {
                let options = Options { watchdog, ..lenient };
                assert_eq!(run(launch(), &program, &options).is_ok(), watchdog >= instructions);
            }
        }
    }
}

/// A warp that has become the current warp by a turn then waits at a barrier without a turn, because the code after
/// this barrier is the target of a branch. Later turns begin at the position of this barrier, not at an earlier position.
#[test]
fn a_warp_that_waits_without_a_turn_after_a_turn_continues_at_its_own_barrier() {
    let source = "mov b32 $r11 0x1\nmov b32 $r14 0x2\nshr u32 $r8 $r0 0x5\nmov b32 $r12 0x8\nAGAIN:\njoinat MEET\nMEET:\n\
                  bar inc wait 0x0 0xfff\nbar inc wait 0x0 0xfff\njoin nop\nset $c0 # e u32 $r8 $r14\n\
                  (lg $c0) bra MORE\nbra NEXT\nMORE:\nbar inc wait 0x0 0xfff\nNEXT:\nbar inc wait 0x0 0xfff\n\
                  bar inc wait 0x0 0xfff\nsub b32 $c1 $r12 $r12 $r11\n(e $c1) bra OUT\nbra AGAIN\nOUT:\nexit nop";
    let program =
        Program { words: assemble(source, CHIP, Stage::Compute).unwrap().words(), ..Program::default() };
    let mut compute = Compute::of(&program, CHIP).unwrap();
    compute.block = [128, 1, 1];
    let lenient = Options { mode: Mode::Lenient, ..Options::default() };
    let outcome = run(Launch::Compute(compute), &program, &lenient).unwrap();
    assert_eq!(outcome.statistics.instructions, 4 * (4 + 8 * 12));
}

#[test]
fn a_watchdog_bites_at_the_same_instruction_in_every_way() {
    let (compute, program) = rounds();
    // 3 warps: 5 instructions around 336 iterations of 11. The first arrival at a join does not count.
    let enough = 3 * (5 + 336 * 11);
    for watchdog in (1..200).chain(enough - 100..enough + 2) {
        let options = Options { watchdog, ..Options::default() };
        let ended = run(Launch::Compute(compute.clone()), &program, &options).is_ok();
        assert_eq!(ended, watchdog >= enough, "{watchdog}");
    }
}

#[test]
fn an_if_runs_the_same_in_every_way_whatever_room_the_stack_has_and_whatever_joins() {
    let tests = [
        "and b32 $c0 # $r0 $r2",
        "set $c0 # e u32 $r0 $r63",
        "set $c0 # e u32 $r0 $r0",
        "set $c0 # l u32 $r63 $r0",
    ];
    let sides = [["", ""], ["add b32 $r4 $r4 $r0\n", ""], ["", "add b32 $r4 $r4 $r2\n"]]
        .into_iter()
        .chain([["add b32 $r4 $r4 $r0\nadd b32 $r4 $r4 $r4\n", "sub b32 $c0 $r4 $r4 $r2\n"]]);
    let joins = [
        "join nop",
        "join sub b32 $c0 $r4 $r4 $r0",
        "join st b32 g14[$r1] $r4",
        "join st b32 g14[$r4] $r4",
        "join ld b32 $r4 g14[$r63]",
        "join mov $r5 $clock",
        "join mov $r5 $a5",
    ];
    let (mut ended, mut trapped) = (0, 0);
    for (number, ((test, [taken, not]), joins)) in tests
        .into_iter()
        .flat_map(|test| sides.clone().map(move |sides| (test, sides)))
        .flat_map(|test| joins.map(|joins| (test, joins)))
        .enumerate()
    {
        // A third of the `if`s is inside another whose lanes have diverged. A third is in code that whole quads
        // run, including lanes beyond the block, which a join drops.
        let (before, behind) = match number % 3 {
            0 => ("joinat OUTER\nset $c1 # l u32 $r2 $r0\n(s $c1) bra OUTER\n", "OUTER:\njoin nop\n"),
            1 => ("quadon\n", "quadpop\n"),
            _ => ("", ""),
        };
        let joinat = if number % 2 == 0 { "JOIN" } else { "BEHIND" };
        let text = format!(
            "mov b32 $r1 b32 s[0x10]\nshl b32 $r2 $r0 0x2\nadd b32 $r1 $r1 $r2\nmov b32 $r2 0x1\n{before}joinat {joinat}\n\
             {test}\n(lg $c0) bra TAKEN\n{not}bra JOIN\nTAKEN:\n{taken}JOIN:\n{joins}\nBEHIND:\n{behind}\
             st b32 g14[$r1] $r4\nexit nop\n"
        );
        let words = assemble(&text, CHIP, Stage::Compute).unwrap_or_else(|e| panic!("{text}\n{e:?}")).words();
        let program = Program { words, ..Program::default() };
        let mut compute = Compute::of(&program, CHIP).unwrap();
        compute.setup_mut().registers = 16;
        compute.block = [45, 1, 1];
        compute.params = OUT.to_le_bytes().to_vec();
        compute.memory = Memory::new(vec![Buffer::new(OUT, vec![0; 4 * 45])]).unwrap();
        for entries in 0..5 {
            compute.setup_mut().limits.stack_entries = entries;
            for mode in [Mode::Strict, Mode::Lenient] {
                match run(Launch::Compute(compute.clone()), &program, &Options { mode, ..Options::default() })
                {
                    Ok(_) => ended += 1,
                    Err(RunError::Trap(_)) => trapped += 1,
                    Err(other) => panic!("{text}\n{other}"),
                }
            }
        }
    }
    println!("{ended} ended, {trapped} trapped");
    assert!(ended > 100 && trapped > 100);
}

/// Returns a program, and a launch of one block of `threads` threads. The buffer at [`OUT`] has one word per thread.
fn kernel(text: &str, threads: u32) -> (Compute, Program) {
    let words = assemble(text, CHIP, Stage::Compute).unwrap_or_else(|e| panic!("{text}\n{e:?}")).words();
    let program = Program { words, ..Program::default() };
    let mut compute = Compute::of(&program, CHIP).unwrap();
    compute.setup_mut().registers = 16;
    compute.block = [threads, 1, 1];
    compute.params = OUT.to_le_bytes().to_vec();
    compute.memory = Memory::new(vec![Buffer::new(OUT, vec![0; 4 * threads as usize])]).unwrap();
    (compute, program)
}

/// Runs a launch in every way. Returns whether the launch has ended. If the launch has trapped, returns `false`.
fn ends(compute: Compute, program: &Program, options: &Options) -> bool {
    match run(Launch::Compute(compute), program, options) {
        Ok(_) => true,
        Err(RunError::Trap(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

/// Returns a program and its launch. In each iteration, the sides of an `if` load from and store to s[], and some lanes
/// access the words of other lanes. `lines` are the lines of the two sides, and `joins` is the instruction with the join.
fn sides(test: &str, [taken, not]: [&str; 2], joins: &str, threads: u32) -> (Compute, Program) {
    let text = format!(
        "mov b32 $r1 b32 s[0x10]\nand b32 $r0 $r0 0xffff\nshl b32 $r2 $r0 0x2\nadd b32 $r1 $r1 $r2\nshl $a1 $r2 0x0\n\
         mov b32 $r3 0x1\nxor b32 $r4 $r0 $r3\nshl $a2 $r4 0x2\nshl $a3 $r0 0x3\nmov b32 $r5 0x9e37\n\
         mul $r6 u16 $r0l u16 $r5l\nadd b32 $r6 $r6 $r5\nst b32 s[$a1+0x40] $r6\nbar inc wait 0x0 0xfff\nmov b32 $r15 0x3\nAGAIN:\n\
         add b32 $r7 $r7 $r15\njoinat JOIN\n{test}\n(lg $c0) bra TAKEN\n{not}bra JOIN\nTAKEN:\n{taken}JOIN:\n\
         {joins}\nxor b32 $r6 $r6 $r7\nshl b32 $r6 $r6 0x1\nsub b32 $c1 $r15 $r15 $r3\n(lg $c1) bra AGAIN\n\
         ld $r8 b32 s[$a1+0x40]\nxor b32 $r6 $r6 $r8\nexit st b32 g14[$r1] $r6\n"
    );
    let (mut compute, program) = kernel(&text, threads);
    compute.shared_bytes = Some(0x140);
    (compute, program)
}

/// Returns options without checks for races, because the programs of [`sides`] have races.
fn unchecked() -> Options {
    Options { mode: Mode::Lenient, ..Options::default() }
}

/// Condition for the sides that run: odd lanes take the branch.
const ODD: &str = "and b32 $c0 # $r0 $r3";

#[test]
fn sides_that_load_and_store_run_the_same_in_every_way() {
    let (programs, mut random) = Campaign::of_random(400, 0xbb67_ae85_84ca_a73b);
    let (mut ended, mut trapped) = (0u64, 0u64);
    for _ in 0..programs {
        let line = |random: &mut Random| {
            let guard = random.one_of(&["", "", "", "(l $c1) ", "(lg $c0) "]);
            let [d, a] = [(); 2].map(|()| 4 + random.below(4));
            // The addresses relative to `$a3` are outside s[] for some lanes.
            let base = if random.once_in(16) { 3 } else { random.one_of(&[1, 1, 2]) };
            match random.below(9) {
                0..3 => format!("{guard}ld $r{d} b32 s[$a{base}+0x40]\n"),
                3 => format!("{guard}ld $r{d} {} s[$a{base}+0x42]\n", random.one_of(&["u8", "u16", "s16"])),
                4..7 => format!("{guard}st b32 s[$a{base}+0x40] $r{a}\n"),
                7 => format!("{guard}add b32 $r{d} b32 s[0x44] $r{a}\n"),
                _ => format!("{guard}add rn f32 $r{d} $r{d} $r{a}\n"),
            }
        };
        let side = |random: &mut Random| -> String { (0..random.below(4)).map(|_| line(random)).collect() };
        let lines = [side(&mut random), side(&mut random)];
        let test = random.one_of(&[
            ODD,
            "set $c0 # l u32 $r3 $r0",
            "set $c0 # e u32 $r0 $r63",
            "set $c0 # e u32 $r0 $r0",
            "set $c0 # lg u32 $r15 $r0",
            "ld $r8 b32 s[$a2+0x40]\nand b32 $c0 # $r8 $r3",
        ]);
        let joins = random.one_of(&[
            "join nop",
            "join ld $r7 b32 s[$a2+0x40]",
            "join ld $r7 b32 s[$a3+0x40]",
            "join st b32 s[$a2+0x40] $r6",
            "join add b32 $r7 b32 s[0x44] $r6",
            "join nop\nbar inc wait 0x0 0xfff",
            "join nop\nst b32 s[$a1+0x40] $r7\nbar inc wait 0x0 0xfff",
            "join nop\nld $r7 b32 s[$a2+0x40]",
        ]);
        let (mut compute, program) = sides(test, [&lines[0], &lines[1]], joins, 1 + random.below(70));
        compute.setup_mut().limits.stack_entries = random.one_of(&[0, 1, 2, 4, 4, 4]);
        let watchdog = if random.once_in(2) { 100_000 } else { 20 + u64::from(random.below(300)) };
        match run(Launch::Compute(compute), &program, &Options { watchdog, ..unchecked() }) {
            Ok(_) => ended += 1,
            Err(RunError::Trap(_)) => trapped += 1,
            Err(other) => panic!("{lines:?}\n{other}"),
        }
    }
    println!("{ended} ended, {trapped} trapped");
    assert!(ended >= programs / 4 && trapped >= programs / 4);
}

/// The lanes of the second side load what the lanes of the first side have stored. After the join, each lane loads what
/// its neighbour has stored.
#[test]
fn a_load_after_a_store_of_another_side_gets_the_stored_word() {
    let store = "st b32 s[$a2+0x40] $r7\n";
    let (load, both) = ("ld $r6 b32 s[$a1+0x40]\n", "ld $r6 b32 s[$a2+0x40]\nst b32 s[$a1+0x40] $r7\n");
    for [taken, not] in [[store, load], [load, store], [store, store], [both, both], [both, ""], ["", both]] {
        for joins in ["join nop", "join ld $r7 b32 s[$a2+0x40]", "join nop\nld $r7 b32 s[$a2+0x40]"] {
            let (compute, program) = sides(ODD, [taken, not], joins, 40);
            run(Launch::Compute(compute), &program, &unchecked()).unwrap();
        }
    }
}

/// The lanes of one side end inside the side, so only the other lanes store a result.
#[test]
fn lanes_that_end_inside_a_side_do_not_reach_the_join() {
    for (end, odd) in ["exit nop\n", "exit st b32 s[$a1+0x40] $r7\n"].into_iter().zip([1, 0]) {
        let side = if odd == 1 { [end, ""] } else { ["", end] };
        let (compute, program) = sides(ODD, side, "join nop", 32);
        let outcome = run(Launch::Compute(compute), &program, &unchecked()).unwrap();
        let words = outcome.memory.at(OUT).unwrap().bytes.as_chunks::<4>().0;
        assert!(words.iter().enumerate().all(|(lane, word)| (*word == [0; 4]) == (lane % 2 == odd)));
    }
}

/// The watchdog stops the launch at every instruction of the sides. The first side's arrival at the join does not count.
#[test]
fn a_watchdog_bites_inside_sides_that_load_and_store() {
    let taken = "ld $r6 b32 s[$a1+0x40]\nadd b32 $r6 $r6 $r3\nst b32 s[$a1+0x40] $r6\n";
    let (compute, program) = sides(ODD, [taken, "st b32 s[$a1+0x40] $r7\n"], "join nop", 32);
    // 15 instructions before the loop, 3 iterations, and 3 instructions after the loop.
    let enough = 15 + 3 * (4 + 3 + 2 + 5) + 3;
    for watchdog in 1..enough + 2 {
        let launch = Launch::Compute(compute.clone());
        match run(launch, &program, &Options { watchdog, ..unchecked() }) {
            Ok(outcome) => assert_eq!((outcome.statistics.instructions, watchdog >= enough), (enough, true)),
            Err(_) => assert!(watchdog < enough, "{watchdog}"),
        }
    }
}

/// A lane of a side, or a lane at the join, accesses a word outside s[]. The launch traps, and the trap names this lane.
#[test]
fn a_lane_outside_shared_memory_traps_inside_a_side_and_at_the_join() {
    let [load, store] = ["ld $r6 b32 s[$a3+0x40]\n", "st b32 s[$a3+0x40] $r6\n"];
    let inside = "st b32 s[$a1+0x40] $r7\n";
    for side in
        [[load, ""], ["", load], [load, inside], [store, ""], ["", store], [store, inside], ["", inside]]
    {
        for joins in ["join nop", "join ld $r7 b32 s[$a3+0x40]"] {
            // Lane 31 of the first warp is inside s[]. Lane 32, the first lane of the second warp, is outside.
            let (compute, program) = sides(ODD, side, joins, 32);
            run(Launch::Compute(compute), &program, &unchecked()).unwrap();
            let (compute, program) = sides(ODD, side, joins, 40);
            match run(Launch::Compute(compute), &program, &unchecked()) {
                Err(RunError::Trap(trap)) => assert!(
                    matches!(trap.trap.cause, Cause::Memory { address: 0x140 | 0x148, .. }),
                    "{trap:?}"
                ),
                other => assert_eq!((side, joins, other.is_ok()), (["", inside], "join nop", true)),
            }
        }
    }
}

/// Memory that does not lend its bytes: engines load and store lane by lane, as in launches on several threads.
struct Recorded(Memory);

impl Store for Recorded {
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool {
        self.0.load(address, into)
    }
    fn store(&mut self, address: u32, bytes: &[u8]) -> bool {
        self.0.store(address, bytes)
    }
}

#[test]
fn loads_and_stores_do_the_same_on_plain_bytes_and_lane_by_lane() {
    let (programs, mut random) = Campaign::of_random(600, 0x2545_f491_4f6c_dd1d);
    let options = Options::default();
    let (mut ended, mut trapped) = (0u64, 0u64);
    for _ in 0..programs {
        // Addresses that are contiguous, equal, scattered, or outside the memory.
        let stride = random.one_of(&[0, 2, 4, 4, 4, 8, 12, 16]);
        let spread = if random.once_in(3) { random.one_of(&[0x3c, 0x7f, 0xfc]) } else { 0 };
        let most = if random.once_in(4) { 0x140 } else { 0x40 };
        let first = random.below(most);
        let mut text = format!(
            "mov b32 $r1 b32 s[0x10]\nmov b32 $r2 {stride:#x}\nmul $r2 u16 $r0l u16 $r2l\nmov b32 $r3 {spread:#x}\n\
             mul $r4 u16 $r0l u16 $r0l\nand b32 $r3 $r3 $r4\nadd b32 $r2 $r2 $r3\nmov b32 $r3 {first:#x}\n\
             add b32 $r2 $r2 $r3\nadd b32 $r1 $r1 $r2\nshl $a1 $r2 0x0\nset $c0 # {} u32 $r0 $r3\n",
            random.one_of(&["l", "ge", "lg"])
        );
        for _ in 0..8 {
            let guard = random.one_of(&["", "(s $c0) ", "(e $c0) "]);
            let data = 8 + random.below(4);
            let narrow = random.one_of(&["u8", "s8", "u16", "s16"]);
            text += &match random.below(19) {
                8 => format!("{guard}red add u64 g14[$r1] $r8d\n"),
                9 => format!("{guard}cas b64 $r10d g14[$r1] $r8d $r12d\n"),
                10 => format!("{guard}ld lock $c1 $r{data} b32 s[$a1+0x40]\n"),
                11 => format!("{guard}st unlock b32 s[$a1+0x40] $r{data}\n"),
                12 => format!("{guard}st b32 s[$a1+0x40] $r{data}\n"),
                13 => format!("{guard}ld $r{data} {} s[$a1+0x40]\n", narrow.replace("s8", "u8")),
                14 => format!("{guard}ld {narrow} $r{data} l[$a1+0x4]\n"),
                15 => format!("{guard}st b32 l[$a1] $r{data}\n"),
                16 => format!("{guard}st b128 l[$a1] $r8q\n"),
                17 => format!("{guard}ld b64 $r8d l[$a1+0x8]\n"),
                0 => format!("{guard}ld b32 $r{data} g14[$r1]\n"),
                1 => format!("{guard}st b32 g14[$r1] $r{data}\n"),
                2 => format!("{guard}ld {narrow} $r{data} g14[$r1]\n"),
                3 => format!("{guard}st {} g14[$r1] $r{data}\n", random.one_of(&["u8", "u16"])),
                4 => format!("{guard}ld b128 $r8q g14[$r1]\n"),
                5 => format!("{guard}st b64 g14[$r1] $r8d\n"),
                6 => {
                    let operation = random.one_of(&[
                        "red add u32",
                        "red and b32",
                        "red max s32",
                        "red dec u32",
                        "red xor b32",
                    ]);
                    format!("{guard}{operation} g14[$r1] $r{data}\n")
                }
                7 => match random.below(3) {
                    0 => format!("{guard}cas b32 $r{data} g14[$r1] $r10 $r11\n"),
                    1 => format!("{guard}exch b32 $r{data} g14[$r1] $r11\n"),
                    _ => {
                        let operation =
                            random.one_of(&["add u32", "inc u32", "dec u32", "min s32", "or b32"]);
                        format!("{guard}ld {operation} $r{data} g14[$r1] $r11\n")
                    }
                },
                _ => format!("{guard}add b32 $r{data} $r0 $r1\n"),
            };
        }
        text += "exit nop\n";
        let words = assemble(&text, CHIP, Stage::Compute).unwrap_or_else(|e| panic!("{text}\n{e:?}")).words();
        let program = Program { words, ..Program::default() };
        let mut compute = Compute::of(&program, CHIP).unwrap();
        compute.setup_mut().registers = 16;
        compute.setup_mut().local_bytes = random.one_of(&[0x100, 0x800, 0x800]);
        compute.block = [1 + random.below(70), 1, 1];
        compute.params = OUT.to_le_bytes().to_vec();
        // Two adjacent buffers: the accesses of a warp may extend into both.
        let bytes = |random: &mut Random, count| Vec::from_iter((0..count).map(|_| random.next() as u8));
        let second = Buffer::new(OUT + 0x80, bytes(&mut random, 0x1c0));
        let first = Buffer::new(OUT, bytes(&mut random, 0x80));
        compute.memory = Memory::new(vec![first, second]).unwrap();
        // The compiled engine as well.
        let _ = run(Launch::Compute(compute.clone()), &program, &options);
        let level = random.one_of(&Level::available());
        let (grid, mut plain) = Grid::new(Launch::Compute(compute), &program, &options).unwrap();
        let fast = Fast::of(&grid, level);
        let (mut recorded, mut known) = (Recorded(plain.clone()), plain.clone());
        let [mut quick, mut each] = [(); 2].map(|()| grid.block(&fast, 0, None));
        let mut reference = grid.block(&Reference, 0, None);
        let end = reference.run(&Reference, grid.context(), &mut known, &mut Silent);
        let ends = [
            quick.run(&fast, grid.context(), &mut plain, &mut Silent),
            each.run(&fast, grid.context(), &mut recorded, &mut Silent),
        ];
        assert_eq!(ends, [end.clone(), end], "{text}");
        assert!(plain == known && recorded.0 == known, "g[]: {text}");
        for block in [&quick, &each] {
            assert!(block.warps == reference.warps, "{text}");
            assert!(block.common.shared == reference.common.shared, "s[]: {text}");
        }
        if ends[0].is_ok() { ended += 1 } else { trapped += 1 }
    }
    println!("{ended} ended, {trapped} trapped");
    assert!(ended >= programs / 3 && trapped >= programs / 30);
}

/// Constants past the end of a bank are zeros, and addresses relative to `$a` have 16 bits. (1.7, 13.18) A store of
/// several words stores the words of the last lane if lanes have the same address.
#[test]
fn constants_at_any_address_and_stores_of_several_words_do_the_same_in_every_way() {
    let (programs, mut random) = Campaign::of_random(300, 0x51ed_270b_2f1c_9a3d);
    let mut ended = 0u64;
    for _ in 0..programs {
        let first = random.one_of(&[0, 0, 4, 0x30, 0x7e, 0xfff0, 0xfffc, 0x8000]);
        let mut text = format!(
            "mov b32 $r1 b32 s[0x10]\nshl b32 $r2 $r0 {:#x}\nmov b32 $r3 {first:#x}\nadd b32 $r2 $r2 $r3\n\
             shl b32 $r3 $r0 {:#x}\nadd b32 $r1 $r1 $r3\nmov b32 $r15 0x3\nset $c0 # l u32 $r0 $r15\nAGAIN:\n\
             shl $a1 $r2 0x0\n",
            random.below(5),
            random.below(6)
        );
        for _ in 0..4 {
            let guard = random.one_of(&["", "", "(lg $c0) ", "(e $c0) "]);
            let data = 4 + random.below(8);
            text += &match random.below(6) {
                0 => format!("{guard}ld $r{data} b32 c1[$a1+{:#x}]\n", 4 * random.below(32)),
                1 => format!("{guard}ld $r{data} u16 c1[$a1+{:#x}]\n", 2 * random.below(32)),
                2 => format!("{guard}ld $r{data} s16 c1[$a1+{:#x}]\n", 2 * random.below(32)),
                3 => format!("{guard}ld $r{data} u8 c1[$a1+{:#x}]\n", random.below(32)),
                4 => format!("{guard}st b64 g14[$r1] $r{}d\n", 4 + 2 * random.below(4)),
                _ => format!("{guard}st b128 g14[$r1] $r{}q\n", 4 + 4 * random.below(2)),
            };
        }
        text +=
            "mov b32 $r3 0x1\nadd b32 $r2 $r2 $r3\nsub b32 $c1 $r15 $r15 $r3\n(lg $c1) bra AGAIN\nexit nop\n";
        let words = assemble(&text, CHIP, Stage::Compute).unwrap_or_else(|e| panic!("{text}\n{e:?}")).words();
        let program = Program { words, ..Program::default() };
        let mut compute = Compute::of(&program, CHIP).unwrap();
        compute.setup_mut().registers = 16;
        compute.block = [1 + random.below(70), 1, 1];
        compute.params = OUT.to_le_bytes().to_vec();
        let mut bytes = |count: u32| Vec::from_iter((0..count).map(|_| random.next() as u8));
        let (bank, buffer) = (bytes(0x10000), bytes(0x900));
        let size = random.one_of(&[0, 1, 3, 4, 0x33, 0x100, 0x1_0000]);
        assert!(compute.setup_mut().constants.place(1, 0, &bank[..size]));
        compute.memory = Memory::new(vec![Buffer::new(OUT, buffer)]).unwrap();
        ended += u64::from(run(Launch::Compute(compute), &program, &Options::default()).is_ok());
    }
    assert!(ended >= programs / 2);
}

/// An access to a part of a word ignores the low bits of its address, and addresses relative to `$a` have 16 bits.
/// (13.18)
#[test]
fn parts_of_words_of_shared_memory_do_the_same_in_every_way() {
    let (programs, mut random) = Campaign::of_random(300, 0x6a09_e667_f3bc_c908);
    let mut ended = 0u64;
    for _ in 0..programs {
        let (threads, shift) = (1 + random.below(70), random.below(4));
        let first = random.one_of(&[0, 0x40, 0x41, 0x43, 0x7e, 0x13c, 0xffe0, 0xffff, 0x8000]);
        let mut text = format!(
            "mov b32 $r1 b32 s[0x10]\nshl b32 $r2 $r0 0x2\nadd b32 $r1 $r1 $r2\nshl $a2 $r2 0x0\n\
             mov b32 $r3 0x9e37\nmul $r4 u16 $r0l u16 $r3l\nshl b32 $r3 $r4 0xf\nxor b32 $r4 $r4 $r3\n\
             st b32 s[$a2+0x40] $r4\nbar inc wait 0x0 0xfff\nshl b32 $r2 $r0 {shift:#x}\nmov b32 $r3 {first:#x}\n\
             add b32 $r2 $r2 $r3\nmov b32 $r15 0x3\nset $c0 # l u32 $r0 $r15\nAGAIN:\nshl $a1 $r2 0x0\n"
        );
        for number in 0..4 {
            let guard = random.one_of(&["", "", "(lg $c0) ", "(e $c0) "]);
            let (access, step) = random.one_of(&[("u8", 1), ("u16", 2), ("s16", 2), ("b32", 4)]);
            let offset = step * random.below(0x80 / step);
            text += &format!("{guard}ld $r{} {access} s[$a1+{offset:#x}]\n", 5 + number);
            text += &format!("xor b32 $r4 $r4 $r{}\nshl b32 $r4 $r4 0x1\n", 5 + number);
            if random.once_in(4) {
                text += &format!("{guard}st b32 s[$a2+0x40] $r4\n");
            }
        }
        text += "mov b32 $r3 0x1\nadd b32 $r2 $r2 $r3\nsub b32 $c1 $r15 $r15 $r3\n(lg $c1) bra AGAIN\n\
                 exit st b32 g14[$r1] $r4\n";
        let (mut compute, program) = kernel(&text, threads);
        compute.shared_bytes = Some(random.one_of(&[0x40 + 4 * threads, 0x200, 0x3ffc]));
        let options = Options { mode: Mode::Lenient, ..Options::default() };
        ended += u64::from(ends(compute, &program, &options));
    }
    let trapped = programs - ended;
    println!("{ended} ended, {trapped} trapped");
    assert!(ended >= programs / 3 && trapped >= programs / 10);
}

/// Each lane has its own l[]. Lanes access equal and different addresses, elements of all sizes, and addresses outside
/// l[].
#[test]
fn local_memory_does_the_same_in_every_way() {
    let (programs, mut random) = Campaign::of_random(300, 0x510e_527f_ade6_82d1);
    let mut ended = 0u64;
    for _ in 0..programs {
        let (threads, shift) = (1 + random.below(70), random.below(5));
        let first = random.one_of(&[0, 0, 0x10, 0x41, 0x7c, 0xf3, 0x1000, 0x7ffc, 0xfff0, 0xffff]);
        let mask = random.one_of(&[0, 0x3c, 0xff, 0xffff]);
        let mut text = format!(
            "mov b32 $r1 b32 s[0x10]\nshl b32 $r2 $r0 0x2\nadd b32 $r1 $r1 $r2\nshl b32 $r2 $r0 {shift:#x}\n\
             mov b32 $r3 {mask:#x}\nand b32 $r2 $r2 $r3\nmov b32 $r3 {first:#x}\nadd b32 $r2 $r2 $r3\n\
             mov b32 $r3 0x9e37\nmul $r4 u16 $r0l u16 $r3l\nshl b32 $r3 $r4 0xf\nxor b32 $r4 $r4 $r3\n\
             mov b32 $r15 0x3\nset $c0 # l u32 $r0 $r15\nAGAIN:\nshl $a1 $r2 0x0\n"
        );
        for _ in 0..6 {
            let guard = random.one_of(&["", "", "(lg $c0) ", "(e $c0) "]);
            let (access, step, words, wide) = random.one_of(&[
                ("u8", 1, 1, ""),
                ("s16", 2, 1, ""),
                ("b32", 4, 1, ""),
                ("b32", 4, 1, ""),
                ("b64", 8, 2, "d"),
                ("b128", 16, 4, "q"),
            ]);
            let offset = step * random.below(0x80 / step);
            let base = random.one_of(&["$a1+", "$a1+", ""]);
            let at = format!("l[{base}{offset:#x}]");
            if random.once_in(2) {
                text += &format!("{guard}ld {access} $r8{wide} {at}\n");
                for word in 0..words {
                    text += &format!("xor b32 $r{} $r{} $r{}\n", 4 + word, 4 + word, 8 + word);
                }
            } else {
                let access = if access == "s16" { "u16" } else { access };
                text += &format!("{guard}st {access} {at} $r4{wide}\nadd b32 $r4 $r4 $r5\n");
            }
        }
        text += "mov b32 $r3 0x1\nadd b32 $r2 $r2 $r3\nsub b32 $c1 $r15 $r15 $r3\n(lg $c1) bra AGAIN\n\
                 exit st b32 g14[$r1] $r4\n";
        let (mut compute, program) = kernel(&text, threads);
        compute.setup_mut().local_bytes = random.one_of(&[0x10, 0x80, 0x100, 0x1000, 0x1_0000]);
        compute.grid = [1 + random.below(3), 1];
        ended += u64::from(ends(compute, &program, &Options::default()));
    }
    let trapped = programs - ended;
    println!("{ended} ended, {trapped} trapped");
    assert!(ended >= programs / 4 && trapped >= programs / 10);
}

/// Launches of one program follow each other with other constants, and with banks of other sizes. All launches use the
/// same memory.
#[test]
fn each_launch_loads_its_own_constants() {
    let mut random = Random::new(0x3c6e_f372_fe94_f82b);
    let text = "mov b32 $r1 b32 s[0x10]\nmov b32 $r5 0x4\nshl b32 $r4 $r0 0x2\nadd b32 $r1 $r1 $r4\nshl $a1 $r4 0x0\n\
                AGAIN:\nld $r2 b32 c1[$a1]\nadd b32 $r3 $r3 $r2\nld $r2 s16 c2[$a1+0x6]\nadd b32 $r3 $r3 $r2\n\
                mov b32 $r2 0x1\nsub b32 $c0 $r5 $r5 $r2\n(lg $c0) bra AGAIN\nexit st b32 g14[$r1] $r3";
    let words = assemble(text, CHIP, Stage::Compute).unwrap_or_else(|e| panic!("{e:?}")).words();
    let program = Program { words, ..Program::default() };
    let mut compute = Compute::of(&program, CHIP).unwrap();
    compute.block = [64, 1, 1];
    compute.params = OUT.to_le_bytes().to_vec();
    compute.memory = Memory::new(vec![Buffer::new(OUT, vec![0; 4 * 64])]).unwrap();
    let options = Options { engine: Engine::Compiled, jobs: NonZero::new(1), ..Options::default() };
    let environment = Launch::Compute(compute.clone()).environment();
    let loaded = Loaded::new(&program, &environment, &options).unwrap();
    for size in [0x100, 0x100, 0, 0x13, 0x1000, 3] {
        let mut setup = Setup::new(CHIP);
        for bank in [1, 2] {
            let constants: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
            assert!(setup.constants.place(bank, 0, &constants));
        }
        compute.setup = setup.into();
        let launch = || Launch::Compute(compute.clone());
        let reference = Options { engine: Engine::Reference, ..options };
        let expected = run_once(&program, launch(), &reference).unwrap();
        let memory = std::mem::take(&mut compute.memory);
        let launch = Launch::Compute(Compute { memory, ..compute.clone() });
        let outcome = loaded.with_setup(launch.environment().setup).unwrap().run(launch).unwrap();
        assert_eq!(outcome, expected, "{size}");
        compute.memory = outcome.memory;
    }
}

/// Returns a fragment or vertex program that reads and writes every kind of data of its stage.
fn graphics_program(stage: Stage, random: &mut Random) -> String {
    let mut text = "mov b32 $r5 0x4\nset $c0 # l u32 $r1 $r5\n".to_owned();
    for _ in 0..3 + random.below(12) {
        let (d, a) = (random.below(8), random.below(8));
        let word = 4 * random.below(5);
        let guard = random.one_of(&["", "(e $c0) ", "(lg $c0) "]);
        text += &match (stage, random.below(8)) {
            (Stage::Fragment, 0) => format!("{guard}interp $r{d} v[{word:#x}]\n"),
            (Stage::Fragment, 1) => format!("{guard}interp $r{d} cent v[{word:#x}]\n"),
            (Stage::Fragment, 2) => format!("{guard}interp $r{d} v[{word:#x}] $r{a}\n"),
            (Stage::Fragment, 3) => format!("{guard}interp $r{d} flat v[{word:#x}]\n"),
            (Stage::Fragment, 4) => {
                format!("shl $a1 $r{a} 0x2\n{guard}interp $r{d} v[$a1+{word:#x}]\n")
            }
            (Stage::Fragment, 5) => format!("{guard}discard\n"),
            (_, 0..2) => format!("{guard}mov b32 o[{word:#x}] $r{a}\n"),
            (_, 2) => format!("{guard}add b32 o[{word:#x}] $r{a} $r{d}\n"),
            (Stage::Vertex, 3) => format!("{guard}mov b32 $r{d} a[{word:#x}]\n"),
            (Stage::Vertex, 4) => format!("{guard}ld b32 $r{d} a[{word:#x}]\n"),
            (Stage::Vertex, 5) => format!("{guard}add rn f32 $r{d} a[{word:#x}] $r{a}\n"),
            (_, 6) => format!("set $c0 # le f32 $r{d} $r{a}\n"),
            (_, 7) => format!("{guard}add rn f32 $r{d} $r{a} c0[{word:#x}]\n"),
            _ => format!("{guard}add rn f32 $r{d} $r{d} $r{a}\n"),
        };
    }
    text + "exit nop\n"
}

/// Returns a launch of such a program.
fn graphics_launch(stage: Stage, setup: Setup, random: &mut Random) -> Launch {
    let lanes = 1 + random.below(100) as usize;
    let specials = [0, 1, 0x8000_0000, 0x7f80_0000, 0x7fc0_0001, 0xffff_ffff, 0x3f80_0000, 0x0080_0000];
    let values = |random: &mut Random| (0..lanes).map(|_| random.one_of(&specials)).collect::<Vec<u32>>();
    match stage {
        Stage::Fragment => {
            let mut fragment = Fragment::new(setup, lanes);
            fragment.helpers = random.once_in(2);
            fragment.covered = (0..lanes).map(|_| !random.once_in(3)).collect();
            fragment.centroids = (0..lanes / 2).map(|lane| [lane as f32, 0.25]).collect();
            fragment.kept = random.one_of(&[None, Some(4), Some(0), Some(99)]);
            let plane = Varying::Plane { base: 0.5, dx: -0.25, dy: 0.125, flat: random.next() };
            fragment.varyings.insert(1, Varying::Lanes(values(random).into()));
            fragment.varyings.insert(2, plane);
            if random.once_in(2) {
                fragment.varyings.insert(3, Varying::Lanes(values(random).into()));
            }
            Launch::Fragment(fragment)
        }
        _ => {
            let mut vertex = Vertex { setup: setup.into(), lanes, inputs: Default::default() };
            (0..3 + random.below(3) as u16).for_each(|word| {
                vertex.inputs.insert(word, values(random));
            });
            Launch::Vertex(vertex)
        }
    }
}

#[test]
fn graphics_programs_do_the_same_in_every_way() {
    let (programs, mut random) = Campaign::of_random(400, 0x2545_f491_4f6c_dd1d);
    let (mut ended, mut trapped) = (0u64, 0u64);
    for number in 0..programs {
        let stage = random.one_of(&[Stage::Fragment, Stage::Fragment, Stage::Vertex]);
        let text = graphics_program(stage, &mut random);
        let words = assemble(&text, CHIP, stage).unwrap_or_else(|e| panic!("{text}\n{e:?}")).words();
        let program = Program { words, ..Program::default() };
        let mut setup = Setup::new(CHIP);
        setup.registers = 8;
        setup.modes.mul_zero_wins = number % 5 == 0;
        let launch = graphics_launch(stage, setup, &mut random);
        let lanes = match &launch {
            Launch::Fragment(fragment) => fragment.lanes,
            Launch::Vertex(vertex) => vertex.lanes,
            _ => unreachable!(),
        };
        let mode = random.one_of(&[Mode::Strict, Mode::Lenient]);
        match run(launch, &program, &Options { mode, ..Options::default() }) {
            Ok(outcome) => {
                ended += 1;
                assert_eq!(outcome.lanes.len(), lanes);
            }
            Err(RunError::Trap(_)) => trapped += 1,
            Err(other) => panic!("{text}\n{other}"),
        }
    }
    println!("{ended} ended, {trapped} trapped");
    assert!(ended >= programs / 4 && trapped >= programs / 20);
}

/// The next launch reuses a block that has ended. Registers, flags, masks and inputs must be those of a new block.
#[test]
fn a_launch_leaves_nothing_to_the_next_one_of_its_program() {
    let (programs, mut random) = Campaign::of_random(400, 0x1f83_d9ab_fb41_bd6b);
    let (mut ended, mut mixed) = (0u64, 0u64);
    for round in 0..programs {
        let stage = random.one_of(&[Stage::Fragment, Stage::Fragment, Stage::Vertex]);
        let text = graphics_program(stage, &mut random);
        let words = assemble(&text, CHIP, stage).unwrap_or_else(|e| panic!("{text}\n{e:?}")).words();
        let program = Program { words, ..Program::default() };
        let mut setup = Setup::new(CHIP);
        setup.registers = 8;
        let engine = random.one_of(&[Engine::Fast, Engine::Fast, Engine::Compiled]);
        let mode = random.one_of(&[Mode::Strict, Mode::Lenient]);
        let options = Options { engine, mode, ..Options::default() };
        let first = graphics_launch(stage, setup.clone(), &mut random);
        let loaded = Loaded::new(&program, &first.environment(), &options).unwrap();
        let (mut good, mut bad) = (0, 0);
        for number in 0..8 {
            let mut setup = setup.clone();
            let constants: Vec<u8> = (0..20).map(|_| random.next() as u8 & 0xbf).collect();
            assert!(setup.constants.place(0, 0, &constants));
            if random.once_in(6) {
                // Another number of registers requires another form of the program.
                setup.registers = 9;
            }
            let launch = graphics_launch(stage, setup, &mut random);
            let next = loaded.with_setup(launch.environment().setup).unwrap();
            let found = next.run(launch.clone());
            assert_eq!(found, run_once(&program, launch, &options), "{text}\nround {round}, launch {number}");
            if found.is_ok() { good += 1 } else { bad += 1 }
        }
        ended += good;
        mixed += u64::from(good > 0 && bad > 0);
    }
    println!("{ended} ended, {mixed} programs ended and trapped");
    assert!(ended >= 2 * programs && mixed > 0);
}

#[test]
fn a_lit_fragment_and_a_vertex_run_without_the_reference_interpreter() {
    let by_reference = |text: &str, stage: Stage, launch: &dyn Fn(Setup) -> Launch| {
        let words = assemble(text, CHIP, stage).unwrap_or_else(|e| panic!("{text}\n{e:?}")).words();
        let program = Program { words, ..Program::default() };
        let options = Options::default();
        let (grid, _) = Grid::new(launch(Setup::new(CHIP)), &program, &options).unwrap();
        Fast::of(&grid, options.level()).by_reference()
    };
    let fragment = |setup: Setup| {
        let mut fragment = Fragment::new(setup, 32);
        fragment.varyings.insert(1, Varying::Lanes(vec![0; 32].into()));
        Launch::Fragment(fragment)
    };
    let text = "interp $r1 v[0x0]\nrcp f32 $r1 $r1\ninterp $r0 v[0x4] $r1\ninterp $r2 cent v[0x4]\ninterp $r3 flat v[0x4]\n\
                (e $c0) discard\nexit nop";
    assert_eq!(by_reference(text, Stage::Fragment, &fragment), Vec::<usize>::new());
    let vertex = |setup: Setup| {
        Launch::Vertex(Vertex {
            setup: setup.into(),
            lanes: 32,
            inputs: [(0, vec![0; 32])].into_iter().collect(),
        })
    };
    let text = "mov b32 $r0 a[0x0]\nadd rn f32 o[0x8] a[0x0] $r0\nexit nop";
    assert_eq!(by_reference(text, Stage::Vertex, &vertex), Vec::<usize>::new());
}

#[test]
fn a_barrier_of_a_graphics_program_is_that_of_its_warp_alone() {
    let words = assemble("bar inc wait 0x0 0xfff\nexit nop", CHIP, Stage::Fragment).unwrap().words();
    let program = Program { words, ..Program::default() };
    let fragment = Fragment::new(Setup::new(CHIP), 100);
    let outcome = run(Launch::Fragment(fragment), &program, &Options::default()).unwrap();
    assert_eq!(outcome.statistics.instructions, 8);
}

/// Every lane adds to the value of the last lane of its quad. The last quad of the launch has one vertex, so its other
/// lanes do not run, and their registers are zeros.
#[test]
fn a_vertex_reads_zeros_from_the_missing_lanes_of_its_quad() {
    let text = "mov b32 $r1 0x3f800000\nquadop f32 add add add add $r0 l3 $r1 $r1\nexit nop";
    let words = assemble(text, CHIP, Stage::Vertex).unwrap_or_else(|e| panic!("{e:?}")).words();
    let program = Program { words, ..Program::default() };
    for lanes in [5, 37] {
        let vertex = Vertex { setup: Setup::new(CHIP).into(), lanes, inputs: Default::default() };
        let outcome = run(Launch::Vertex(vertex), &program, &Options::default()).unwrap();
        let sums: Vec<u32> = outcome.lanes.iter().map(|lane| lane.registers[0]).collect();
        assert_eq!(sums[lanes - 1], 1f32.to_bits());
        assert!(sums[..lanes - 1].iter().all(|sum| *sum == 2f32.to_bits()));
    }
}
