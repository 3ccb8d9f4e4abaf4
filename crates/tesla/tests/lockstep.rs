//! Compares the fast engine with the reference interpreter: every row of the tables with random fields, registers,
//! flags and lanes, one instruction at a time, on every level that the processor has.

use std::sync::Arc;

use rayon::prelude::*;
use reconverge_simt::texture::{Compare, Shape};
use reconverge_simt::{Engine, Lane, Level, Mode, Options, Silent};
use reconverge_tesla::inst::{Chip, Control, Group, Op, Stage};
use reconverge_tesla::table::TABLE;
use reconverge_tesla::texture::{Texture, TextureSampler, Textures};
use reconverge_testkit::tesla::{machine_with, words_of};
use reconverge_testkit::{Random, textures};

/// Executes up to `steps` instructions on two machines with the same initial state.
fn compare(words: &[u32], chip: Chip, stage: Stage, mode: Mode, level: Level, seed: u64, steps: u32) {
    compare_with(words, chip, stage, mode, level, seed, steps, None);
}

/// Compares like [`compare`], with textures; registers then hold coordinates.
#[expect(clippy::too_many_arguments, reason = "what a machine is made of")]
fn compare_with(
    words: &[u32],
    chip: Chip,
    stage: Stage,
    mode: Mode,
    level: Level,
    seed: u64,
    steps: u32,
    bound: Option<&Textures>,
) {
    for other in [Engine::Fast, Engine::Compiled] {
        compare_engines(words, chip, stage, mode, (other, level), seed, steps, bound);
    }
}

/// Compares like [`compare_with`], for one engine on a level.
#[expect(clippy::too_many_arguments, reason = "what a machine is made of")]
fn compare_engines(
    words: &[u32],
    chip: Chip,
    stage: Stage,
    mode: Mode,
    (other, level): (Engine, Level),
    seed: u64,
    steps: u32,
    bound: Option<&Textures>,
) {
    let options = Options { mode, watchdog: 1000, ..Options::default() };
    let nothing = Textures::default();
    let [mut reference, mut fast] = [Engine::Reference, other].map(|engine| {
        let options = Options { engine, level: Some(level), ..options };
        machine_with(words, chip, stage, &options, seed, bound.unwrap_or(&nothing))
    });
    if bound.is_some() {
        for run in [&mut reference, &mut fast] {
            let mut random = Random::new(seed);
            let warp = &mut run.block_mut().warps[0];
            for register in 0..20 {
                let integer = random.once_in(4);
                for lane in (0..32).map(Lane) {
                    let value = if integer { random.below(8) } else { textures::coordinate(&mut random) };
                    warp.set_r(lane, register, value);
                }
            }
        }
    }
    let what = || format!("{words:08x?} {chip} {stage} {mode:?} {other} {} seed {seed:#x}", level.name());
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

fn sweep(mode: Mode, rounds: u32, seed: u64) {
    let compared = (0..TABLE.rows().len()).into_par_iter().map(|row| {
        let mut seed = seed ^ row as u64;
        println!("row {row} seed {seed:#x}");
        let mut random = Random::new(seed);
        let mut compared = 0;
        for _ in 0..rounds {
            let chip = random.one_of(&Chip::ALL);
            let stage = random.one_of(&[Stage::Compute, Stage::Compute, Stage::Fragment]);
            let Some((words, inst)) = words_of(row, chip, stage, &mut random) else { continue };
            // One step is enough for a barrier.
            let steps = if matches!(inst.op, Op::Control(Control::Bar { .. })) { 1 } else { 2 };
            for level in Level::available() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                compare(&words, chip, stage, mode, level, seed | 1, steps);
                compared += 1;
            }
        }
        compared
    });
    let compared: u32 = compared.sum();
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

/// The destination `$a5` does not exist, so nothing uses the loaded byte. A lane outside s[] traps nevertheless.
#[test]
fn a_load_without_a_use_traps_outside_shared_memory() {
    // (geu $c1) shl $a5 u8 s[$a4+0x12] 0x1
    let words = [0x0001_2415, 0xc020_1704];
    for level in Level::available() {
        for seed in (1..200).chain([0x56e6_e7f3_e658_d13f]) {
            compare(&words, Chip::G80, Stage::Compute, Mode::Lenient, level, seed, 2);
        }
    }
}

#[test]
fn every_texture_instruction_and_quadop_does_the_same_on_any_texture() {
    let mut random = Random::new(0x7e57_0001);
    let shapes = [
        Shape::D1,
        Shape::D2,
        Shape::D2,
        Shape::D3,
        Shape::Cube,
        Shape::D1Array,
        Shape::D2Array,
        Shape::CubeArray,
    ];
    let compares = [Compare::Less, Compare::Equal, Compare::GreaterEqual, Compare::Always];
    let mut compared = 0;
    for _ in 0..16 {
        let mut bound = Textures::default();
        for number in 0..128 {
            let image = Arc::new(textures::image(shapes[number as usize % 8], &mut random));
            bound.textures.insert(number, Texture::new(image, random.once_in(4)));
        }
        for number in 0..16 {
            let compare = random.once_in(4).then(|| random.one_of(&compares));
            let sampler = textures::sampler(&mut random);
            bound.samplers.insert(number, TextureSampler { sampler, compare });
        }
        for row in 0..TABLE.rows().len() {
            for _ in 0..40 {
                let stage = random.one_of(&[Stage::Compute, Stage::Fragment]);
                let found = words_of(row, Chip::Gt215, stage, &mut random);
                let Some((words, inst)) = found else { break };
                if !matches!(inst.op, Op::Group(Group::Tex(_) | Group::Quadop { .. })) {
                    break;
                }
                let (level, seed) = (random.one_of(&Level::available()), random.next_u64() | 1);
                compare_with(&words, Chip::Gt215, stage, Mode::Strict, level, seed, 1, Some(&bound));
                compared += 1;
            }
        }
    }
    assert!(compared > 2_000, "{compared} instructions compared");
}
