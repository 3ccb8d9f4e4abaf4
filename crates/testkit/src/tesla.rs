//! Random programs, launches and instructions of Tesla. This module also creates machines whose next instructions are
//! the instructions of the caller.

use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::random::Random;
use reconverge_simt::{Lane, Options};
use reconverge_tesla::decode::decode;
use reconverge_tesla::inst::{Chip, Inst, Stage};
use reconverge_tesla::launch::{Compute, Fragment, Launch, Setup, Varying};
use reconverge_tesla::run::Run;
use reconverge_tesla::table::TABLE;
use reconverge_tesla::texture::Textures;

/// `exit nop`, which follows the instruction under test.
pub const EXIT: [u32; 2] = [0xf000_0001, 0xe000_0781];
const MEMORY: u32 = 0x1000;
const MEMORY_BYTES: u32 = 0x400;

/// Returns bits that are likely to be special cases in arithmetic.
pub fn value(random: &mut Random) -> u32 {
    const EDGES: [u32; 16] = [
        0,
        1,
        2,
        31,
        32,
        0xffff,
        0x8000,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x3f80_0000,
        0x7f80_0000,
        0x7fc0_0000,
        0x0080_0000,
        0x007f_ffff,
        0x4f00_0000,
    ];
    match random.below(5) {
        0 => random.one_of(&EDGES),
        1 => random.below(64),
        2 => MEMORY + random.below(MEMORY_BYTES),
        3 => (random.below(1 << 20) as f32 / 1024.0 - 300.0).to_bits(),
        _ => random.next(),
    }
}

/// Returns a machine that is about to execute the words. The state of the machine depends on the seed alone.
pub fn machine(words: &[u32], chip: Chip, stage: Stage, options: &Options, seed: u64) -> Run {
    machine_with(words, chip, stage, options, seed, &Textures::default())
}

/// Returns a machine like [`machine`], with these textures.
pub fn machine_with(
    words: &[u32],
    chip: Chip,
    stage: Stage,
    options: &Options,
    seed: u64,
    textures: &Textures,
) -> Run {
    let mut random = Random::new(seed);
    let program = Program::from_words([words, &EXIT].concat());
    let lanes = 1 + random.below(32) as usize;
    let registers = random.one_of(&[20, 64, 128]);
    let mut setup = Setup::new(chip);
    setup.textures = textures.clone();
    setup.registers = registers;
    setup.local_bytes = 256;
    setup.modes.sat_nan = random.below(4) == 0;
    setup.modes.mul_zero_wins = random.below(4) == 0;
    let constants: Vec<u8> = (0..256).flat_map(|_| value(&mut random).to_le_bytes()).collect();
    assert!(setup.constants.place(0, 0, &constants) && setup.constants.place(1, 0, &constants));
    let launch = match stage {
        Stage::Fragment => {
            let mut fragment = Fragment::new(setup, lanes);
            fragment.covered = (0..lanes).map(|_| random.below(3) != 0).collect();
            fragment.covered[0] = true;
            let values: Vec<u32> = (0..lanes).map(|_| value(&mut random)).collect();
            fragment.varyings.insert(1, Varying::Lanes(values.into()));
            Launch::Fragment(fragment)
        }
        Stage::Compute | Stage::Vertex | Stage::Geometry => {
            let mut compute = Compute::of(&program, chip).expect("a program that states nothing");
            compute.setup = setup.into();
            compute.block = [lanes as u32, 1, 1];
            compute.shared_bytes = Some(0x200);
            compute.segments.0[0] = compute.segments.0[14];
            let bytes: Vec<u8> = (0..MEMORY_BYTES).map(|_| random.next() as u8).collect();
            compute.memory = Memory::new(vec![Buffer::new(MEMORY, bytes)]).expect("one buffer");
            Launch::Compute(compute)
        }
    };
    let mut run = Run::new(&program, launch, options).expect("a launch that fits");
    let warp = &mut run.block_mut().warps[0];
    // For some seeds, the addresses of the lanes are consecutive or equal.
    let stride = random.one_of(&[None, None, Some(4), Some(0)]);
    // For some seeds, the registers contain only a few different values. Operands are then often equal or special.
    let few = random.one_of(&[1, 2, 4, u32::MAX]);
    let pool: Vec<u32> = (0..4).map(|_| value(&mut random)).collect();
    for register in 0..registers as u8 {
        let first = MEMORY + 4 * random.below(100);
        for lane in 0..32 {
            let value = match (stride, few) {
                (Some(stride), _) => first + stride * lane,
                (None, u32::MAX) => value(&mut random),
                (None, few) => pool[random.below(few) as usize],
            };
            warp.set_r(Lane(lane as u8), register, value);
        }
    }
    for register in 0..4 {
        let first = random.below(0x190) as u16;
        for lane in 0..32 {
            warp.set_c(Lane(lane), register, random.next() as u8);
            let address = match stride {
                Some(stride) => first + stride as u16 * u16::from(lane),
                None => random.below(0x220) as u16,
            };
            warp.set_a(Lane(lane), 1 + register, address);
        }
    }
    run
}

/// Returns random words that decode as row `row` of the encoding table. In half of the cases, the predicate is always
/// true.
pub fn words_of(row: usize, chip: Chip, stage: Stage, random: &mut Random) -> Option<(Vec<u32>, Inst)> {
    let row = &TABLE.rows()[row];
    for _ in 0..20 {
        let mut bits = u64::from(random.next()) | u64::from(random.next()) << 32;
        if row.long && random.below(2) == 0 {
            bits = bits & !(0x1f << 39) | 0xf << 39;
        }
        let word = row.fixed | bits & !row.mask & !row.unclaimed();
        let words = [word as u32, (word >> 32) as u32];
        if let Ok(inst) = decode(words, chip, stage) {
            // A short instruction is followed by another short instruction, which completes the 64 bits.
            let second = if inst.form.words() == 2 { words[1] } else { 0x1000_8000 };
            return Some((vec![words[0], second], inst));
        }
    }
    None
}

/// Returns a register from `$r0` to `$r9`, but not `$r1`, which holds the output's address.
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

/// Returns an instruction that uses only registers.
fn arithmetic(random: &mut Random, [d, a, b]: &[String; 3]) -> String {
    let whole = random.one_of(&["s32", "u32"]);
    let count = random.below(32);
    match random.below(10) {
        0 | 1 => format!(
            "{} {} {d} {a} {b}",
            random.one_of(&["min", "max"]),
            random.one_of(&["s32", "u32", "f32"])
        ),
        2 => format!("{} b32 {d} {a} {b}", random.one_of(&["sub", "subr", "and", "or", "xor"])),
        3 => format!("{} {d} {a} {count:#x}", random.one_of(&["shl b32", "shr s32", "shr u32"])),
        4 => format!("shl b32 {d} {a} {b}"),
        5 => format!("mul {d} {} {a} {b}", random.one_of(&["u24", "s24"])),
        6 => format!("mul {d} s16 {a}l s16 {b}h"),
        7 => format!("add {d} (mul u24 {a} {b}) {d}"),
        8 => format!("cvt {} {whole} {d} f32 {a}", random.one_of(&["rni", "rzi"])),
        _ => format!("cvt {} {d} {whole} {a}", random.one_of(&["u8", "abs s32", "neg s32", "rn f32"])),
    }
}

fn line(random: &mut Random, lines: u32) -> String {
    let [d, a, b] = [(); 3].map(|()| register(random));
    let (c, label) = (random.below(2), format!("L{}", random.below(lines)));
    let guard = predicate(random);
    match random.below(54) {
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
        44..54 => format!("{guard}{}", arithmetic(random, &[d, a, b])),
        33 => format!("({} $c{c}) break", random.one_of(&["e", "lg"])),
        34 => format!("({} $c{c}) ret", random.one_of(&["e", "lg"])),
        _ => random.one_of(&["exit nop", "nop", "rcp f32 $r4 $r5"]).to_owned(),
    }
}

/// Returns the lines of a program. At its end, the program stores its registers at the address of the output. Half of
/// the programs contain a loop with a branch.
pub fn program(random: &mut Random) -> String {
    let mut text = String::from(
        "mov b32 $r1 b32 s[0x10]\nshl b32 $r2 $r0 0x2\nadd b32 $r1 $r1 $r2\nset $c0 # l u32 $r0 $r3\n",
    );
    let lines = 4 + random.below(24);
    if random.below(2) == 0 {
        // A loop in which the lanes diverge and join. The lanes leave the loop at different times.
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

/// Returns an address for an access to s[]. The address is inside s[], near the end of s[], near 0, or at an end of the
/// range of 16-bit or 32-bit numbers.
fn address(random: &mut Random) -> u32 {
    const BASES: [u32; 11] =
        [0, 0, 0x10, 0x40, 0x80, 0x200, 0x4000, 0x7fff_fffc, 0x8000, 0xfff0, 0xffff_fffc];
    let base = random.one_of(&BASES);
    let near = (random.below(9) * 4).wrapping_sub(16);
    base.wrapping_add(if random.once_in(8) { random.below(16) } else { near })
}

/// Returns an instruction that loads from s[] or c[], stores to s[], has an operand in s[], or computes a new address. If
/// `local` is set, the instruction can also load from l[] and store to l[].
fn shared_line(random: &mut Random, local: bool) -> String {
    let [d, a] = [(); 2].map(|()| format!("$r{}", 2 + random.below(6)));
    let (guard, base) = (predicate(random), 1 + random.below(4));
    let offset = random.one_of(&[0, 4, 8, 0x10, 0x3c, 0x40, 0x7c]);
    let at = format!("s[$a{base}+{offset:#x}]");
    match random.below(if local { 16 } else { 13 }) {
        13 => format!("{guard}ld b32 {d} l[$a{base}+{:#x}]", 4 * random.below(32)),
        14 => format!("{guard}ld {} {d} l[{:#x}]", random.one_of(&["b32", "u8"]), 4 * random.below(32)),
        15 => format!("{guard}st b32 l[$a{base}+{:#x}] {a}", 4 * random.below(32)),
        0..4 => format!("{guard}mov b32 {d} b32 {at}"),
        4 => format!("{guard}add b32 {d} b32 {at} {a}"),
        5 => {
            let (access, step) = random.one_of(&[("b32", 4), ("u16", 2), ("s16", 2), ("u8", 1)]);
            format!("{guard}ld {d} {access} s[$a{base}+{:#x}]", step * random.below(32 / step))
        }
        6 | 7 => format!("{guard}st b32 {at} {a}"),
        8 => format!("mov b32 $r13 {:#x}\n{guard}mov b32 {d} $r13", address(random)),
        9 => format!("{guard}mov b32 {d} b32 s[{:#x}]", 4 * random.below(32)),
        10 => {
            let (access, step) = random.one_of(&[("b32", 4), ("u16", 2), ("s16", 2), ("u8", 1)]);
            let bank = random.one_of(&["c0", "c1", "c2"]);
            format!("{guard}ld {d} {access} {bank}[$a{base}+{:#x}]", step * random.below(32 / step))
        }
        _ => format!("{guard}shl $a{base} {a} {:#x}", random.below(3)),
    }
}

/// Returns a program with loads and stores of s[]. Between the loads and stores, lanes break, branch to a join, return
/// or exit. Some loads and stores are in the sides of a branch. Addresses are small, near the end of s[], or at the ends
/// of the ranges of 16 and 32 bits. Masks depend on loaded values. Some programs also load from l[] and store to l[].
pub fn shared(random: &mut Random) -> String {
    let local = random.once_in(4);
    let mut text = String::from("mov b32 $r1 b32 s[0x10]\nshl b32 $r9 $r0 0x2\nadd b32 $r1 $r1 $r9\n");
    for register in 2..8 {
        text += &format!("mov b32 $r{register} {:#x}\n", address(random));
        if random.once_in(2) {
            text += &format!("add b32 $r{register} $r{register} {}\n", random.one_of(&["$r0", "$r9"]));
        }
    }
    for base in 1..5 {
        text += &format!("shl $a{base} {} 0x0\n", random.one_of(&["$r9", "$r9", "$r2", "$r3", "$r4"]));
    }
    text += &format!("mov b32 $r10 0x0\nmov b32 $r11 {:#x}\nand b32 $r12 $r0 $r11\n", 1 + random.below(15));
    text += "set $c0 # l u32 $r10 $r12\nset $c1 # l u32 $r10 $r12\n";
    let (open, leave, close) = random.one_of(&[
        ("breakaddr DONE\nSTEP:\n", "break", "bra STEP\nDONE:\n"),
        ("joinat DONE\nSTEP:\n", "bra DONE", "bra STEP\nDONE:\njoin nop\n"),
        ("call BODY\nbra DONE\nBODY:\nSTEP:\n", "ret", "bra STEP\nDONE:\n"),
        ("breakaddr DONE\nSTEP:\n", "exit", "bra STEP\nDONE:\n"),
    ]);
    text += open;
    let leaves = |guard: &str| match leave {
        "exit" => format!("exit {guard} nop\n"),
        _ => format!("{guard} {leave}\n"),
    };
    let lines = 2 + random.below(12);
    let (exit, count) = (random.below(lines), random.below(lines));
    for number in 0..lines {
        if number == count {
            // A counter makes all lanes leave the loop after some iterations.
            text += "add b32 $r10 $r10 0x1\nset $c1 # ge u32 $r10 $r12\n";
            text += &leaves("(lg $c1)");
        }
        if number == exit {
            let compare = random.one_of(&["l", "e", "le", "g", "lg", "ge"]);
            let [a, b] = [(); 2].map(|()| random.one_of(&["$r2", "$r3", "$r5", "$r10", "$r12"]));
            text += &format!("set $c0 # {compare} u32 {a} {b}\n");
            text += &leaves(random.one_of(&["(e $c0)", "(lg $c0)"]));
        }
        if !random.once_in(4) {
            text += &format!("{}\n", shared_line(random, local));
            continue;
        }
        let mut side = || -> String {
            (0..random.below(4)).map(|_| format!("{}\n", shared_line(random, local))).collect()
        };
        let (taken, not) = (side(), side());
        let (guard, compare) = (random.one_of(&["(e $c0)", "(lg $c0)"]), random.one_of(&["l", "e", "ge"]));
        let value = random.one_of(&["$r2", "$r10", "$r12"]);
        text += &format!(
            "joinat J{number}\nset $c0 # {compare} u32 $r0 {value}\n{guard} bra T{number}\n{not}bra J{number}\n\
             T{number}:\n{taken}J{number}:\njoin nop\n"
        );
    }
    text += close;
    let results: String = (2..8).map(|register| format!("xor b32 $r8 $r8 $r{register}\n")).collect();
    text + "mov b32 $r8 $r10\n" + &results + "exit st b32 g14[$r1] $r8\n"
}

/// A program of [`barriers`] under construction.
struct Meetings<'r> {
    random: &'r mut Random,
    text: String,
    /// Number of labels so far.
    labels: u32,
}

impl Meetings<'_> {
    fn add(&mut self, line: &str) {
        self.text += line;
        self.text += "\n";
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("N{}", self.labels)
    }

    /// Sets `$c0` to a condition. The condition holds for some warps, or for some lanes of every warp.
    fn condition(&mut self) -> String {
        let (number, compare) = (self.random.below(6), self.random.one_of(&["l", "e", "lg", "ge"]));
        self.add(&format!("mov b32 $r14 {number:#x}"));
        let value = self.random.one_of(&["$r8", "$r8", "$r12", "$r10", "$r0", "$r4", "$r9"]);
        self.add(&format!("set $c0 # {compare} u32 {value} $r14"));
        self.random.one_of(&["(e $c0)", "(lg $c0)"]).to_owned()
    }

    fn barrier(&mut self) {
        let line = match self.random.below(24) {
            0 => "bar inc wait 0x1 0x2",
            1 => "bar inc 0x2 0xfff",
            2 => "bar wait 0x2 0xfff",
            3..6 => "bar inc wait 0x1 0xfff",
            _ => "bar inc wait 0x0 0xfff",
        };
        self.add(line);
    }

    /// Adds an instruction that accesses s[] or g[], or that computes a value for such an access.
    fn access(&mut self) {
        let random = &mut *self.random;
        let [d, a, b] = [(); 3].map(|()| format!("$r{}", 2 + random.below(6)));
        let (guard, base, offset) = (predicate(random), 1 + random.below(4), 4 * random.below(9));
        let segment = random.one_of(&["g14", "g14", "g0"]);
        let line = match random.below(27) {
            0..4 => format!("{guard}mov b32 {d} b32 s[$a{base}+{:#x}]", 0x40 + offset),
            4 => format!("{guard}add b32 {d} b32 s[$a{base}+{:#x}] {a}", 0x40 + offset),
            5..8 => format!("{guard}st b32 s[$a{base}+{:#x}] {a}", 0x40 + offset),
            8 => format!("{guard}mov b32 {d} b32 s[{:#x}]", 4 * random.below(32)),
            9 => format!("{guard}ld {d} {} s[$a{base}+0x40]", random.one_of(&["u8", "u16", "s16", "b32"])),
            10 => format!("and b32 $r14 {a} $r15\nshl $a{base} $r14 0x2"),
            11 => format!("and b32 $r14 {a} $r15\nshl b32 $r14 $r14 0x2\nadd b32 $r13 $r1 $r14"),
            12 => format!("add b32 $r13 $r1 {}", random.one_of(&["$r0", "$r8", "$r9", "$r10"])),
            13..15 => format!("{guard}ld b32 {d} {segment}[{}]", random.one_of(&["$r13", "$r1"])),
            15 => format!("{guard}ld {} {d} {segment}[$r13]", random.one_of(&["u8", "s8", "u16", "s16"])),
            16 => format!("{guard}ld b64 $r{}d {segment}[$r13]", 2 * (1 + random.below(3))),
            17..19 => format!("{guard}st b32 {segment}[{}] {a}", random.one_of(&["$r13", "$r1"])),
            19 => format!(
                "{guard}red {} {segment}[$r13] {a}",
                random.one_of(&["add u32", "max s32", "xor b32"])
            ),
            20 => format!("{guard}ld add u32 {d} {segment}[$r13] {a}"),
            21 => {
                format!("{guard}{} f32 {d} {a}", random.one_of(&["rcp", "rsqrt", "lg2", "sin", "cos", "ex2"]))
            }
            22 => format!("{guard}vote {} $c1", random.one_of(&["any", "all"])),
            23 => format!("mov {d} $physid"),
            24 => format!("{guard}st b64 {segment}[$r13] $r{}d", 2 * (1 + random.below(3))),
            25 => {
                let size = random.one_of(&["b32", "b32", "u8", "u16", "s16"]);
                format!("{guard}ld {d} {size} c1[$a{base}+{:#x}]", offset & 0x1c)
            }
            _ => format!("{guard}mul rn f32 {d} {a} {b}"),
        };
        self.add(&line);
    }

    /// Adds straight code, barriers, branches and exits. `depth` bounds the nesting of branches.
    fn body(&mut self, depth: u32) {
        for _ in 0..1 + self.random.below(5) {
            match self.random.below(24) {
                0..11 => self.access(),
                11..14 => {
                    let [d, a, b] = [(); 3].map(|()| format!("$r{}", 2 + self.random.below(6)));
                    let line = arithmetic(self.random, &[d, a, b]);
                    self.add(&line);
                }
                14..18 => self.barrier(),
                18 => {
                    let line = self.random.one_of(&["call MEET", "bar inc wait 0x0 0xfff"]);
                    self.add(line);
                }
                19 if self.random.once_in(3) => {
                    let guard = self.condition();
                    if self.random.once_in(2) {
                        self.add(&format!("{guard} ret"));
                    } else {
                        let stays = self.label();
                        self.add(&format!("{guard} bra {stays}\nexit nop\n{stays}:\nnop"));
                    }
                }
                19 if self.random.once_in(4) => {
                    // Long code between barriers uses up the slice of a warp.
                    let (count, again) = (self.random.below(0x180), self.label());
                    self.add(&format!("mov b32 $r14 {count:#x}\nor b32 $r14 $r14 $r11\n{again}:"));
                    if self.random.once_in(2) {
                        self.add("xor b32 $r14 $r14 $r11\nxor b32 $r14 $r14 $r11");
                    }
                    self.add(&format!("sub b32 $c1 $r14 $r14 $r11\n(lg $c1) bra {again}"));
                }
                20 | 21 if depth > 0 => {
                    // The code may contain a barrier. The lanes that skip the code wait at the join.
                    let (guard, join) = (self.condition(), self.label());
                    self.add(&format!("joinat {join}\n{guard} bra {join}"));
                    self.body(depth - 1);
                    self.add(&format!("{join}:\njoin nop"));
                }
                22 if depth > 0 => {
                    let (guard, other, join) = (self.condition(), self.label(), self.label());
                    self.add(&format!("joinat {join}\n{guard} bra {other}"));
                    self.body(depth - 1);
                    self.add(&format!("bra {join}\n{other}:"));
                    self.body(depth - 1);
                    self.add(&format!("{join}:\njoin nop"));
                }
                23 if depth > 0 => {
                    // If the lanes of a warp diverge here, they do not reconverge.
                    let (guard, over) = (self.condition(), self.label());
                    self.add(&format!("{guard} bra {over}"));
                    self.body(depth - 1);
                    self.add(&format!("{over}:\nnop"));
                }
                _ => self.access(),
            }
        }
    }

    /// Adds a loop. The number of iterations is a constant, or differs between warps, lanes or blocks.
    fn rounds(&mut self) {
        let most = self.random.one_of(&[9, 9, 9, 40]);
        let count = 1 + self.random.below(most);
        self.add(&format!("mov b32 $r12 {count:#x}"));
        match self.random.below(8) {
            0 => self.add("add b32 $r12 $r12 $r8"),
            1 => self.add("and b32 $r14 $r10 $r11\nadd b32 $r12 $r12 $r14"),
            2 => self.add("and b32 $r14 $r9 $r11\nadd b32 $r12 $r12 $r14"),
            _ => {}
        }
        let (out, again) = (self.label(), self.label());
        let (open, leave, close) = self.random.one_of(&[
            ("", "", ""),
            ("", "", ""),
            ("breakaddr OUT", "(e $c1) break", ""),
            ("joinat OUT", "(e $c1) bra OUT", "join nop"),
        ]);
        let named = |line: &str| line.replace("OUT", &out);
        self.add(&named(open));
        self.add(&format!("{again}:"));
        self.body(2);
        if self.random.once_in(2) {
            self.barrier();
        }
        self.body(1);
        self.add("sub b32 $c1 $r12 $r12 $r11");
        match leave {
            "" => self.add(&format!("(lg $c1) bra {again}")),
            leave => {
                self.add(&named(leave));
                if self.random.once_in(2) {
                    self.body(0);
                }
                self.add(&format!("bra {again}"));
            }
        }
        self.add(&format!("{out}:\n{close}"));
    }
}

/// Returns a program whose warps meet at barriers in loops. Between barriers, the warps of a block exchange values in
/// s[], and the blocks exchange values in g[]. Some lanes, warps and blocks take other paths or end early.
pub fn barriers(random: &mut Random) -> String {
    let mask = random.one_of(&[0xf, 0x3f, 0x7f]);
    let mut text = format!(
        "mov b32 $r1 b32 s[0x10]\nmov b32 $r9 u16 s[0xc]\nmov b32 $r11 0x1\nmov b32 $r15 {mask:#x}\n\
         mov b32 $r14 0xffff\nand b32 $r0 $r0 $r14\nshr u32 $r8 $r0 0x5\nmov b32 $r14 0x1f\nand b32 $r10 $r0 $r14\n\
         shl $a1 $r0 0x2\nshl $a2 $r10 0x2\n"
    );
    text += random.one_of(&["xor b32 $r14 $r0 $r11\n", "and b32 $r14 $r0 $r15\n", "add b32 $r14 $r0 $r11\n"]);
    text += "shl $a3 $r14 0x2\n";
    text += random.one_of(&["shl $a4 $r8 0x2\n", "shl $a4 $r11 0x2\n", "shl $a4 $r10 0x3\n"]);
    text += random.one_of(&["", "add b32 $r14 $r0 $r9\n", "and b32 $r14 $r0 $r15\n"]);
    text += random.one_of(&["", "shl b32 $r14 $r14 0x2\nadd b32 $r1 $r1 $r14\n"]);
    text += "add b32 $r13 $r1 $r9\n";
    for register in 2..8 {
        text += &format!("mov b32 $r{register} {:#x}\n", value(random));
        text += &random
            .one_of(&["", "add b32 $rN $rN $r0\n", "add b32 $rN $rN $r9\n"])
            .replace("N", &register.to_string());
    }
    let mut meetings = Meetings { random, text, labels: 0 };
    for _ in 0..1 + meetings.random.below(2) {
        meetings.rounds();
    }
    (3..8).for_each(|register| meetings.add(&format!("xor b32 $r2 $r2 $r{register}")));
    meetings.add("st b32 g14[$r13] $r2\nexit st b32 g14[$r1] $r2\nMEET:");
    meetings.access();
    meetings.barrier();
    meetings.access();
    meetings.text + "ret\n"
}

/// Address of the memory of a [`compute`] launch. The parameter of a [`program`] has this address.
pub const OUT: u32 = 0x1000;

/// Returns a launch of up to three blocks. Each block has up to 70 threads. The launch has 16 registers, shared memory,
/// and 300 bytes at the address [`OUT`].
pub fn compute(random: &mut Random, program: &Program, chip: Chip) -> Compute {
    let mut compute = Compute::of(program, chip).expect("a program that states nothing");
    compute.setup_mut().registers = 16;
    compute.grid = [1 + random.below(3), 1];
    compute.block = [1 + random.below(70), 1, 1];
    compute.params = OUT.to_le_bytes().to_vec();
    compute.shared_bytes = Some(0x200);
    compute.memory = Memory::new(vec![Buffer::new(OUT, vec![0; 300])]).expect("one buffer");
    compute
}
