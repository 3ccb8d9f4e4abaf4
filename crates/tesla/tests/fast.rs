//! Random programs, whole, in every way: reference, fast on every level, lockstep.
//!
//! Control flow of all kinds between arithmetic, predicates and memory; most of it makes sense, some of it traps, and
//! some does not end: all of that must come out the same.

mod engines;

use engines::run;
use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Mode, Options};
use reconverge_tesla::fast::Fast;
use reconverge_tesla::grid::Grid;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::launch::{Compute, Launch, RunError};
use reconverge_tesla::text::assemble;
use reconverge_tesla::trap::Cause;
use reconverge_testkit::Random;

const CHIP: Chip = Chip::Gt215;
const OUT: u32 = 0x1000;

/// `$r0` to `$r9`; `$r1` is the output's address and stays.
fn register(random: &mut Random) -> String {
    let number = random.below(9);
    format!("$r{}", if number == 0 { 0 } else { number + 1 })
}

fn predicate(random: &mut Random) -> String {
    match random.below(3) {
        0 => format!("({} $c{}) ", random.one_of(&["e", "lg", "l", "ge", "s", "c", "no"]), random.below(2)),
        _ => String::new(),
    }
}

fn line(random: &mut Random, lines: u32) -> String {
    let [d, a, b] = [(); 3].map(|()| register(random));
    let (c, label) = (random.below(2), format!("L{}", random.below(lines)));
    let guard = predicate(random);
    match random.below(44) {
        0..4 => {
            let compare = random.one_of(&["l", "e", "le", "g", "lg", "ge"]);
            let kind = random.one_of(&["u32", "s32", "f32"]);
            format!("set $c{c} # {compare} {kind} {a} {b}")
        }
        4..7 => format!("{guard}add b32 {d} {a} {b}"),
        7 => format!("{guard}add b32 $c{c} {d} {a} {b}"),
        8..10 => format!("mov b32 {d} {:#x}", random.below(70)),
        10 => format!("{guard}add rn f32 {d} {a} {b}"),
        11 => format!("{guard}mul rn f32 {d} {a} neg {b}"),
        12 => format!("{guard}and b32 $c{c} {d} {a} {b}"),
        13 => format!("{guard}shr u32 {d} {a} 0x1"),
        14 => format!("cvt rn f32 {d} u32 {a}"),
        15 => format!("{guard}mov b32 {d} b32 s[0x10]"),
        16 => format!("{guard}mul {d} u16 {a}l u16 {b}h"),
        17 => format!("shl $a1 $r0 0x2\nst b32 s[$a1+0x40] {a}"),
        18 => format!("shl $a1 $r0 0x2\nmov b32 {d} b32 s[$a1+0x44]"),
        19 => format!("{guard}st b32 g14[$r1] {a}"),
        20 => format!("{guard}ld b32 {d} g14[$r1]"),
        21..27 => format!("({} $c{c}) bra {label}", random.one_of(&["e", "lg", "s", "ns"])),
        27 => format!("bra {label}"),
        28 | 29 => format!("joinat {label}"),
        30 => "join nop".to_owned(),
        31 => format!("join add b32 {d} {a} {b}"),
        32 => match random.below(3) {
            0 => format!("breakaddr {label}"),
            1 => format!("call {label}"),
            _ => "bar inc wait 0x0 0xfff".to_owned(),
        },
        36 => format!("{guard}red {} g14[$r1] {a}", random.one_of(&["add u32", "max s32", "xor b32"])),
        37 => format!("{guard}ld add u32 {d} g14[$r1] {a}"),
        38 => format!("{guard}cas b32 {d} g14[$r1] {a} {b}"),
        39 => format!("{guard}vote {} $c{c}", random.one_of(&["any", "all"])),
        40 => format!("shl $a1 {a} 0x2\n{guard}ld {d} {} s[$a1+0x40]", random.one_of(&["b32", "u16", "s16"])),
        41 => format!("{guard}ld {} {d} g14[$r1]", random.one_of(&["u8", "s16", "b32"])),
        42 => format!("{guard}{} f32 {d} {a}", random.one_of(&["rsqrt", "lg2", "presin", "sin", "ex2"])),
        43 => format!("{guard}add f32 {d} (mul {a} {b}) {d}"),
        33 => format!("({} $c{c}) break", random.one_of(&["e", "lg"])),
        34 => format!("({} $c{c}) ret", random.one_of(&["e", "lg"])),
        _ => random.one_of(&["exit nop", "nop", "rcp f32 $r4 $r5"]).to_owned(),
    }
}

/// Lines that leave their registers at the output's address. Half of them have a shape that makes sense.
fn program(random: &mut Random) -> String {
    let mut text = String::from(
        "mov b32 $r1 b32 s[0x10]\nshl b32 $r2 $r0 0x2\nadd b32 $r1 $r1 $r2\nset $c0 # l u32 $r0 $r3\n",
    );
    let lines = 4 + random.below(24);
    if random.below(2) == 0 {
        // A loop in which the lanes part, join and leave one after another.
        text += "mov b32 $r11 0x9\nmov b32 $r12 0x1\nand b32 $r10 $r0 $r11\njoinat OUT\nAGAIN:\n";
        text += "set $c1 # e u32 $r10 $r63\n(s $c1) bra OUT\nsub b32 $r10 $r10 $r12\n";
        text += "joinat BOTH\nand b32 $c0 $r13 $r0 $r10\n(e $c0) bra EVEN\n";
        for side in ["bra BOTH\nEVEN:\n", "BOTH:\njoin nop\nbra AGAIN\nOUT:\njoin nop\n"] {
            for _ in 0..random.below(6) {
                let straight = loop {
                    let line = line(random, 1);
                    let flows =
                        ["bra", "join", "break", "call", "ret", "exit", "bar", "discard", "$c0", "g14"];
                    if !flows.iter().any(|word| line.contains(word)) {
                        break line;
                    }
                };
                text += &format!("{straight}\n");
            }
            text += side;
        }
        return text + "st b32 g14[$r1] $r4\nexit st b32 g14[$r1] $r5\n";
    }
    for number in 0..lines {
        text += &format!("L{number}:\n{}\n", line(random, lines));
    }
    text + "st b32 g14[$r1] $r4\nexit st b32 g14[$r1] $r5\n"
}

/// Which instructions of a program go to the reference interpreter.
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
    let seed = 0x2545_f491_4f6c_dd1d;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let (mut ended, mut trapped, mut stopped, mut divergent) = (0, 0, 0, 0);
    for number in 0..1500 {
        let text = program(&mut random);
        let assembled = assemble(&text, CHIP, Stage::Compute).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
        let program = Program { words: assembled.words(), ..Program::default() };
        let mut compute = Compute::of(&program, CHIP).unwrap();
        compute.setup.registers = 16;
        compute.grid = [1 + number % 3, 1];
        compute.block = [1 + random.below(70), 1, 1];
        compute.params = OUT.to_le_bytes().to_vec();
        compute.shared_bytes = Some(0x200);
        compute.memory = Memory::new(vec![Buffer { address: OUT, bytes: vec![0; 300] }]).unwrap();
        let mode = if number % 2 == 0 { Mode::Strict } else { Mode::Lenient };
        // Odd limits, so that time is over in the middle of blocks and slices.
        let options = Options { mode, watchdog: 2000 + u64::from(random.below(2000)), ..Options::default() };
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
    assert!(ended > 300 && trapped > 100 && stopped > 20 && divergent > 1000);
}

/// Rounds of an if of two short sides; behind it each warp sees what the others have written meanwhile.
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
    compute.memory = Memory::new(vec![Buffer { address: OUT, bytes: vec![0; 4] }]).unwrap();
    (compute, program)
}

#[test]
fn warps_take_turns_after_as_many_instructions_in_every_way() {
    let (compute, program) = rounds();
    let outcome = run(Launch::Compute(compute), &program, &Options::default()).unwrap();
    assert_ne!(outcome.memory.at(OUT).unwrap().bytes, [0; 4]);
}

#[test]
fn a_watchdog_bites_at_the_same_instruction_in_every_way() {
    let (compute, program) = rounds();
    // 3 warps: 5 instructions around 336 rounds of 11. The first arrival at a join does not count.
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
        // A third of the ifs stands in another whose lanes have parted, a third where whole quads run: lanes beyond
        // the block among them, which a join leaves behind.
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
        compute.setup.registers = 16;
        compute.block = [45, 1, 1];
        compute.params = OUT.to_le_bytes().to_vec();
        compute.memory = Memory::new(vec![Buffer { address: OUT, bytes: vec![0; 4 * 45] }]).unwrap();
        for entries in 0..5 {
            compute.setup.limits.stack_entries = entries;
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
