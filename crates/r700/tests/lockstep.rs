//! The two kernels of the benchmark on all engines, and what lockstep says.

mod engines;

use engines::run;
use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::text::assemble;
use reconverge_simt::Options;

/// The counts of pixels `first` and behind it, 1024 a row.
fn counts(source: &str, first: u32, lanes: u32) -> Vec<u32> {
    let words = assemble(source, Chip::RV770).expect("it assembles").words;
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, lanes as usize);
    let centre = |pixel: u32| (pixel as f32 + 0.5).to_bits();
    let position = |lane: u32| [centre(lane % 1024), centre(lane / 1024), 0, 0];
    launch.inputs.push(Input { gpr: 0, values: (first..first + lanes).map(position).collect() });
    (launch.num_gprs, launch.clause_temps) = (4, 0);
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
