//! Measures the speed of the two divergent kernels on one thread: the fast engine on every level that the processor
//! supports, and the reference interpreter on a part of each kernel. Compare the time per wavefront instruction.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::run::run;
use reconverge_r700::text::assemble;
use reconverge_simt::Options;
use reconverge_simt::{Engine, Level};

const KERNELS: [(&str, &str); 2] = [
    ("mandel", include_str!("../../workbench/kernels/mandel.r700.s")),
    ("collatz", include_str!("../../workbench/kernels/collatz.r700.s")),
];

/// Returns a launch of `lanes` pixels from `first` on, 1024 per row.
fn launch(first: u32, lanes: u32) -> Launch {
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, lanes as usize);
    let centre = |pixel: u32| (pixel as f32 + 0.5).to_bits();
    let position = |lane: u32| [centre(lane % 1024), centre(lane / 1024), 0, 0];
    launch.inputs.push(Input { gpr: 0, values: (first..first + lanes).map(position).collect() });
    (launch.environment_mut().num_gprs, launch.environment_mut().clause_temps) = (4, 0);
    launch
}

fn kernels(criterion: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");
    for (name, source) in KERNELS {
        let words = assemble(source, Chip::RV770).expect("the kernels assemble").words;
        let program = Program::from_words(words);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).warm_up_time(Duration::from_millis(500));
        let mut ways = vec![("reference".to_owned(), Options::default(), 1 << 12)];
        for level in Level::available() {
            let options = Options { engine: Engine::Fast, level: Some(level), ..Options::default() };
            ways.push((format!("fast {}", level.name()), options, 1 << 16));
        }
        for (way, options, lanes) in ways {
            // Pixels from the middle of the picture.
            let launch = launch(1 << 19, lanes);
            let attempt = || pool.install(|| run(&program, &launch, &options)).expect("it ends");
            group.throughput(Throughput::Elements(attempt().statistics.instructions));
            group.bench_function(way, |bencher| bencher.iter(attempt));
        }
        group.finish();
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
