//! The speed of the two divergent kernels on one thread. The fast engine runs them on every level that the
//! processor has, and the reference interpreter runs a part of each. The number to compare is the time per warp
//! instruction.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reconverge_container::Hints;
use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Engine, Level, Options};
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Compute, Launch};
use reconverge_tesla::run::run;

const OUT: u32 = 0x1_0000;

fn kernel(name: &str) -> Option<Program> {
    let places = ["/../../../shared", "/../../../../shared"];
    let path = places
        .map(|up| format!("{}{up}/bench/{name}.cubin", env!("CARGO_MANIFEST_DIR")))
        .into_iter()
        .find(|path| Path::new(path).exists())?;
    let image = reconverge_container::load(&std::fs::read(path).ok()?, &Hints::default()).ok()?;
    image.programs.into_iter().next()
}

fn launch(program: &Program, blocks: u32) -> Launch {
    let chip = Chip::from_name("sm_10").expect("a chip");
    let mut compute = Compute::of(program, chip).expect("its constants fit");
    compute.grid = [blocks, 1];
    compute.block = [256, 1, 1];
    compute.params = OUT.to_le_bytes().to_vec();
    let bytes = vec![0; 1024 * blocks as usize];
    compute.memory = Memory::new(vec![Buffer::new(OUT, bytes)]).expect("one buffer");
    Launch::Compute(compute)
}

fn kernels(criterion: &mut Criterion) {
    for name in ["mandel", "collatz"] {
        let Some(program) = kernel(name) else {
            println!("skipped: the {name} kernel is not here");
            continue;
        };
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).warm_up_time(Duration::from_millis(500));
        let one = Options { jobs: NonZeroUsize::new(1), ..Options::default() };
        let mut ways = vec![("reference".to_owned(), Options { engine: Engine::Reference, ..one }, 64)];
        for level in Level::available() {
            ways.push((format!("fast {}", level.name()), Options { level: Some(level), ..one }, 1024));
        }
        for (way, options, blocks) in ways {
            let attempt = || run(&program, launch(&program, blocks), &options).expect("it ends");
            group.throughput(Throughput::Elements(attempt().statistics.instructions));
            group.bench_function(way, |bencher| bencher.iter(attempt));
        }
        group.finish();
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
