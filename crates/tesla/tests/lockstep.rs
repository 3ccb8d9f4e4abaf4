//! The fast engine against the reference interpreter: every row of the tables with random fields, registers, flags and
//! lanes, one instruction at a time, on every level that the processor has.

use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Engine, Lane, Level, Machine, Mode, Options, Silent};
use reconverge_tesla::decode::decode;
use reconverge_tesla::inst::{Chip, Control, Inst, Op, Stage};
use reconverge_tesla::launch::{Compute, Fragment, Launch, Setup, Varying};
use reconverge_tesla::run::Run;
use reconverge_tesla::table::TABLE;
use reconverge_testkit::Random;

/// `exit nop`, behind the instruction under test.
const EXIT: [u32; 2] = [0xf000_0001, 0xe000_0781];
const MEMORY: u32 = 0x1000;
const MEMORY_BYTES: u32 = 0x400;

/// Bits that arithmetic finds interesting.
fn value(random: &mut Random) -> u32 {
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

/// A machine about to execute the words; the state depends on the seed alone.
fn machine(words: &[u32], chip: Chip, stage: Stage, options: &Options, seed: u64) -> Run {
    let mut random = Random::new(seed);
    let program = Program::from_words([words, &EXIT].concat());
    let lanes = 1 + random.below(32) as usize;
    let registers = random.one_of(&[20, 64, 128]);
    let mut setup = Setup::new(chip);
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
            fragment.varyings.insert(1, Varying::Lanes((0..lanes).map(|_| value(&mut random)).collect()));
            Launch::Fragment(fragment)
        }
        Stage::Compute | Stage::Vertex | Stage::Geometry => {
            let mut compute = Compute::of(&program, chip).unwrap();
            compute.setup = setup;
            compute.block = [lanes as u32, 1, 1];
            compute.shared_bytes = Some(0x200);
            compute.segments.0[0] = compute.segments.0[14];
            let bytes = (0..MEMORY_BYTES).map(|_| random.next() as u8).collect();
            compute.memory = Memory::new(vec![Buffer { address: MEMORY, bytes }]).unwrap();
            Launch::Compute(compute)
        }
    };
    let mut run = Run::new(launch, &program, options).unwrap();
    let warp = &mut run.block_mut().warps[0];
    // Now and then addresses that follow each other.
    let stride = random.one_of(&[None, None, Some(4), Some(0)]);
    // In some machines few values, so that operands are equal, or special together.
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
        for lane in 0..32 {
            warp.set_c(Lane(lane), register, random.next() as u8);
            warp.set_a(Lane(lane), 1 + register, random.below(0x220) as u16);
        }
    }
    run
}

/// Executes up to `steps` instructions with two machines that start alike.
fn compare(words: &[u32], chip: Chip, stage: Stage, mode: Mode, level: Level, seed: u64, steps: u32) {
    let options = Options { mode, watchdog: 1000, ..Options::default() };
    let [mut reference, mut fast] = [Engine::Reference, Engine::Fast]
        .map(|engine| machine(words, chip, stage, &Options { engine, level: Some(level), ..options }, seed));
    let what = || format!("{words:08x?} {chip} {stage} {mode:?} {} seed {seed:#x}", level.name());
    for step in 0..steps {
        let ends = [&mut reference, &mut fast].map(|run| run.step(&mut Silent));
        assert_eq!(ends[0], ends[1], "{} step {step}", what());
        let warps = [&reference, &fast].map(|run| &run.block().warps[0]);
        assert!(warps[0] == warps[1], "{} step {step}: {}", what(), first_difference(warps));
        let shared = [&reference, &fast].map(|run| &run.block().common.shared);
        assert!(shared[0] == shared[1], "{} step {step}: s[]", what());
        assert!(reference.memory() == fast.memory(), "{} step {step}: g[]", what());
        assert_eq!(reference.statistics(), fast.statistics(), "{} step {step}", what());
        if ends[0] != Ok(reconverge_simt::Step::Running) {
            break;
        }
    }
}

fn first_difference([a, b]: [&reconverge_tesla::state::Warp; 2]) -> String {
    for lane in (0..32).map(Lane) {
        for register in 0..a.file().count() as u8 {
            if a.r(lane, register) != b.r(lane, register) {
                let [a, b] = [a, b].map(|warp| warp.r(lane, register));
                return format!("lane {} $r{register} {a:08x}, fast {b:08x}", lane.0);
            }
        }
        for register in 0..4 {
            let ([c, d], [e, f]) =
                ([a, b].map(|warp| warp.c(lane, register)), [a, b].map(|warp| warp.a(lane, register + 1)));
            if c != d || e != f {
                return format!("lane {} $c{register} {c:x}, fast {d:x}; $a {e:x}, fast {f:x}", lane.0);
            }
        }
    }
    format!("{:?}, fast {:?}", a.flow, b.flow)
}

/// Random words of a row that decode. Predicates that always hold are made as frequent as all others.
fn words_of(row: usize, chip: Chip, stage: Stage, random: &mut Random) -> Option<(Vec<u32>, Inst)> {
    let row = &TABLE.rows()[row];
    for _ in 0..20 {
        let mut bits = u64::from(random.next()) | u64::from(random.next()) << 32;
        if row.long && random.below(2) == 0 {
            bits = bits & !(0x1f << 39) | 0xf << 39;
        }
        let word = row.fixed | bits & !row.mask & !row.unclaimed();
        let words = [word as u32, (word >> 32) as u32];
        if let Ok(inst) = decode(words, chip, stage) {
            // A short one stands beside another.
            let second = if inst.form.words() == 2 { words[1] } else { 0x1000_8000 };
            return Some((vec![words[0], second], inst));
        }
    }
    None
}

fn sweep(mode: Mode, rounds: u32, mut seed: u64) {
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let mut compared = 0;
    for row in 0..TABLE.rows().len() {
        for _ in 0..rounds {
            let chip = random.one_of(&Chip::ALL);
            let stage = random.one_of(&[Stage::Compute, Stage::Compute, Stage::Fragment]);
            let Some((words, inst)) = words_of(row, chip, stage, &mut random) else { continue };
            // A branch to itself is no interesting thing to wait for.
            let steps = if matches!(inst.op, Op::Control(Control::Bar { .. })) { 1 } else { 2 };
            for level in Level::available() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                compare(&words, chip, stage, mode, level, seed | 1, steps);
                compared += 1;
            }
        }
    }
    println!("{compared} instructions");
    assert!(compared > 20 * rounds, "{compared} instructions compared");
}

#[test]
fn every_row_does_the_same_in_both_engines() {
    sweep(Mode::Strict, 500, 0x9e37_79b9_7f4a_7c15);
}

#[test]
fn every_row_does_the_same_in_lenient_mode() {
    sweep(Mode::Lenient, 200, 0x2545_f491_4f6c_dd1d);
}
