//! The mandel kernel over 2^16 lanes on every engine and level, on one thread, in lane instructions per second.

use std::num::NonZeroUsize;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use reconverge_r500::launch::{Input, Launch};
use reconverge_r500::run::run;
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;
use reconverge_simt::{Engine, Level, Options};

const LANES: usize = 1 << 16;

fn execute(criterion: &mut Criterion) {
    let source = include_str!("../../workbench/kernels/mandel.r500.s");
    let assembled = assemble(source).expect("the kernel assembles");
    let setup = Arc::new(Setup::new(&assembled.program).expect("and can be set up"));
    // Rows 480 to 543 of the picture, which cross its middle.
    let centre = |pixel: usize| (pixel as f32 + 0.5).to_bits();
    let values = (0..LANES).map(|lane| [centre(lane % 1024), centre(480 + lane / 1024), 0, 0]).collect();
    let launch = Launch { lanes: LANES, inputs: vec![Input { temp: 0, values }], ..Launch::default() };
    let options = |engine, level| Options { engine, level, jobs: NonZeroUsize::new(1), ..Options::default() };
    let run = |options: &Options| run(&setup, &launch, options).expect("it runs");
    let statistics = run(&options(Engine::Fast, None)).statistics;

    let mut group = criterion.benchmark_group("r500 mandel");
    group.throughput(Throughput::Elements(statistics.lane_instructions)).sample_size(10);
    for level in Level::available() {
        let fast = options(Engine::Fast, Some(level));
        group.bench_with_input(BenchmarkId::new("fast", level.name()), &fast, |bencher, fast| {
            bencher.iter(|| run(fast));
        });
    }
    let reference = options(Engine::Reference, None);
    group.bench_function("reference", |bencher| bencher.iter(|| run(&reference)));
    group.finish();
}

criterion_group!(benches, execute);
criterion_main!(benches);
