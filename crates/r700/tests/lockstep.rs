//! Runs kernels of the benchmark and other programs on all engines and in lockstep.

mod engines;

use engines::run;
use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::text::assemble;
use reconverge_r700::texture::{Component, Texture, TextureSampler};
use reconverge_simt::texture::{Compare, Shape};
use reconverge_simt::{Mode, Options};
use reconverge_testkit::{Random, textures};

/// Returns the counts of `lanes` pixels from `first` on, 1024 per row.
fn counts(source: &str, first: u32, lanes: u32) -> Vec<u32> {
    let words = assemble(source, Chip::RV770).expect("it assembles").words;
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, lanes as usize);
    let centre = |pixel: u32| (pixel as f32 + 0.5).to_bits();
    let position = |lane: u32| [centre(lane % 1024), centre(lane / 1024), 0, 0];
    launch.inputs.push(Input { gpr: 0, values: (first..first + lanes).map(position).collect() });
    (launch.environment_mut().num_gprs, launch.environment_mut().clause_temps) = (4, 0);
    let outcome = run(&Program::from_words(words), &launch, &Options::default()).expect("it ends");
    let pixels = outcome.export(ExportKind::Pixel, 0).expect("it exports");
    pixels.values.iter().map(|[red, ..]| *red).collect()
}

#[test]
fn collatz_counts_its_steps_on_every_engine() {
    let steps = |mut n: u32| {
        let mut steps = 0;
        while n != 1 && steps < 255 {
            n = if n & 1 != 0 { n.wrapping_mul(3).wrapping_add(1) } else { n >> 1 };
            steps += 1;
        }
        steps
    };
    let expected: Vec<u32> = (1..=200).map(steps).collect();
    assert_eq!(counts(include_str!("../../workbench/kernels/collatz.r700.s"), 0, 200), expected);
}

#[test]
fn mandel_counts_its_steps_on_every_engine() {
    let first = 300 * 1024 + 400;
    let steps = |pixel: u32| {
        let (x, y) = ((pixel % 1024) as f32, (pixel / 1024) as f32);
        let (cx, cy) = (-2.0 + x * (3.0 / 1024.0), -1.5 + y * (3.0 / 1024.0));
        let (mut zx, mut zy, mut steps) = (0f32, 0f32, 0);
        while steps < 255 && zx * zx + zy * zy <= 4.0 {
            (zx, zy) = (zx * zx - zy * zy + cx, 2.0 * (zx * zy) + cy);
            steps += 1;
        }
        steps
    };
    let expected: Vec<u32> = (first..first + 200).map(steps).collect();
    assert!(expected.iter().any(|count| *count != expected[0]));
    assert_eq!(counts(include_str!("../../workbench/kernels/mandel.r700.s"), first, 200), expected);
}

/// The lanes leave the inner loop one by one, and then the outer one.
#[test]
fn nested_loops_end_for_each_lane_on_every_engine() {
    let value = |lane: u32| {
        let mut a = lane;
        for i in 0..(lane ^ lane >> 7) % 32 {
            for j in 0..(a >> 3) % 16 {
                a = (a << 1 ^ a >> 5).wrapping_add(j);
            }
            a = a.wrapping_add(i);
        }
        a
    };
    let expected: Vec<u32> = (3000..3200).map(value).collect();
    assert_eq!(counts(include_str!("../../workbench/kernels/nested.r700.s"), 3000, 200), expected);
}

/// The conditional in the loop has more instructions than a node of compiled code.
#[test]
fn a_long_conditional_counts_the_instructions_that_run_on_every_engine() {
    let mut group = 4;
    let clauses: String = (0..4)
        .map(|_| {
            let groups = (0..110).map(|_| {
                group += 1;
                format!("  {group} x: ADD R2.x, R2.x, R1.x\n")
            });
            format!("ALU:\n{}", groups.collect::<String>())
        })
        .collect();
    let source = format!(
        ".stack 2\nALU:\n  0 x: MOV R1.x, 0\n  1 x: MOV R2.x, 0\nLOOP_START_DX10: ADDR(@done)\n@again:\nALU_BREAK:\n  \
         2 x: PRED_SETGT _.x, (4.0f).x, R1.x UPDATE_EXEC_MASK\nALU:\n  3 x: ADD R1.x, R1.x, 1.0\nALU_PUSH_BEFORE:\n  \
         4 x: PRED_SETGT _.x, R0.x, R1.x UPDATE_EXEC_MASK\nJUMP: ADDR(@on) POP_CNT(1)\n{clauses}POP: POP_CNT(1)\n@on:\n\
         LOOP_END: ADDR(@again)\n@done:\nEXPORT_DONE: PIXEL[0], R2.x___ END_OF_PROGRAM\n"
    );
    // Iterations 1 to the pixel's column add 440 times their number.
    let rounds = |column: u32| (1..=column.min(4)).sum::<u32>();
    let expected: Vec<u32> = (0..6).map(|column| ((440 * rounds(column)) as f32).to_bits()).collect();
    assert_eq!(counts(&source, 0, 6), expected);
}

/// Runs texture instructions with random textures, samplers, swizzles and lanes: one clause, whose results are
/// exported.
#[test]
fn texture_instructions_do_the_same_on_every_engine() {
    let mut random = Random::new(0x7e57_0700);
    let names = [
        "LD",
        "SAMPLE",
        "SAMPLE_L",
        "SAMPLE_LB",
        "SAMPLE_LZ",
        "SAMPLE_G",
        "SAMPLE_G_L",
        "SAMPLE_G_LB",
        "SAMPLE_G_LZ",
        "SAMPLE_C",
        "SAMPLE_C_L",
        "SAMPLE_C_LB",
        "SAMPLE_C_LZ",
        "SAMPLE_C_G",
        "SAMPLE_C_G_L",
        "SAMPLE_C_G_LB",
        "SAMPLE_C_G_LZ",
        "FETCH4",
        "GET_GRADIENTS_H",
        "GET_GRADIENTS_V",
        "GET_LOD",
        "GET_LERP",
        "PASS",
        "GET_TEXTURE_RESINFO",
        "SET_CUBEMAP_INDEX",
    ];
    let shapes = [
        Shape::D2,
        Shape::D1,
        Shape::D2,
        Shape::D3,
        Shape::Cube,
        Shape::D1Array,
        Shape::D2Array,
        Shape::CubeArray,
    ];
    let compares = [Compare::Less, Compare::Equal, Compare::GreaterEqual, Compare::Always];
    let mut ended = 0;
    for round in 0..600 {
        let mut source = "TEX:\n".to_owned();
        // Without gradients some instructions trap, or take zeros.
        if round % 8 != 0 {
            source +=
                " SET_GRADIENTS_H R3.____, R1.xyzw, t0, s0\n SET_GRADIENTS_V R3.____, R2.xyzw, t0, s0\n";
        }
        for register in 4..7 {
            let swizzle = random.one_of(&["xyzw", "yxwz", "xy01", "wwzz", "zyx_"]);
            let selects = random.one_of(&["xyzw", "x0_1", "wzyx", "_yyx"]);
            let (texture, sampler) = (random.below(8), random.below(4));
            let name = random.one_of(&names);
            source += &format!(" {name} R{register}.{selects}, R1.{swizzle}, t{texture}, s{sampler}");
            for attribute in
                ["OFFSET_X(2)", "OFFSET_Y(30)", "LOD_BIAS(12)", "UNNORM_X", "WHOLE_QUAD", "ALT_CONST"]
            {
                if random.once_in(6) {
                    source += &format!(" {attribute}");
                }
            }
            source += "\n";
        }
        source += "EXPORT: PIXEL[0], R4.xyzw\nEXPORT: PIXEL[1], R5.xyzw\nEXPORT_DONE: PIXEL[2], R6.xyzw END_OF_PROGRAM\n";
        let words =
            assemble(&source, Chip::RV770).unwrap_or_else(|error| panic!("{error:?}: {source}")).words;
        let lanes = 1 + random.below(100) as usize;
        let mut launch = Launch::new(Chip::RV770, Stage::Pixel, lanes);
        if random.once_in(2) {
            launch.covered = Some((0..lanes).map(|_| random.once_in(2)).collect());
        }
        for gpr in [1, 2, 4, 5, 6] {
            let kind = random.below(6);
            let mut value = |component: usize| match (kind, component) {
                (0, _) => random.below(6),
                // A position on a face of a cube.
                (1 | 2, 0 | 1) => (1.0 + random.below(65) as f32 / 64.0).to_bits(),
                (1 | 2, 2) => (random.below(64) as f32 / 4.0).to_bits(),
                _ => textures::coordinate(&mut random),
            };
            let values = (0..lanes).map(|_| [0, 1, 2, 3].map(&mut value)).collect();
            launch.inputs.push(Input { gpr, values });
        }
        for (number, shape) in (0..).zip(shapes) {
            let image = textures::image(shape, &mut random);
            let select = [0, 1, 2, 3].map(|chan| match random.below(8) {
                0 => Component::Word(random.next()),
                1 => Component::Texel(random.below(4) as u8),
                _ => Component::Texel(chan),
            });
            let (integer, fractions) = (random.once_in(4), random.once_in(2));
            let texture = Texture { integer, fractions, select, ..Texture::floats(image) };
            launch.environment_mut().resources.textures.insert(number, texture);
        }
        for number in 0..4 {
            let compare = random.one_of(&compares);
            let sampler = TextureSampler { sampler: textures::sampler(&mut random), compare };
            launch.environment_mut().resources.samplers.insert(number, sampler);
        }
        let mut alternate = launch.environment.resources.clone();
        alternate.textures.remove(&(random.below(8) as u8));
        launch.environment_mut().alternate = Some(alternate.into());
        let mode = if random.once_in(2) { Mode::Strict } else { Mode::Lenient };
        // Runs both engines, on every level of vector instructions, and in lockstep.
        let options = Options { mode, ..Options::default() };
        ended += usize::from(run(&Program::from_words(words), &launch, &options).is_ok());
    }
    assert!(ended > 300, "{ended} programs came to their end");
}
