//! Number of host instructions of each piece of work, counted by valgrind. Unlike times, counts are equal in every run
//! and on every machine of one kind. valgrind supports AVX2 but not AVX-512, so the fast engines run their AVX2 code.
//!
//! `scripts/instruction-counts` runs this.

// The macros create modules and functions without documentation.
#![allow(missing_docs)]

use std::hint::black_box;

use gungraun::{LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main};
use reconverge_isa::{Isa, Program};
use reconverge_simt::{Engine, Options};
use reconverge_workbench::assemble;
use reconverge_workbench::kernels::find;
use reconverge_workbench::{Outcome, Session, Style, Target};

/// Number of lanes of a run: eight blocks of Tesla.
const LANES: u32 = 1 << 11;

fn target(isa: Isa) -> Target {
    Target::of(isa)
}

fn source(isa: Isa) -> (Target, String) {
    let kernel = find(isa, "mandel").expect("every machine has it");
    // One-time initialisation of the process is not counted.
    let warm = assemble(&target(isa), kernel.source).expect("our own source assembles");
    assert_eq!(warm.image.programs.len(), 1);
    (target(isa), kernel.source.to_owned())
}

fn program(isa: Isa) -> (Target, Program) {
    let (target, source) = source(isa);
    let mut assembly = assemble(&target, &source).expect("our own source assembles");
    (target, assembly.image.programs.remove(0))
}

fn prepared(isa: Isa, name: &str, engine: Engine) -> (Session, Engine) {
    let kernel = find(isa, name).expect("the kernel is there");
    (kernel.prepare(LANES).expect("it can be laid out"), engine)
}

#[library_benchmark]
#[bench::r500(source(Isa::R500))]
#[bench::r700(source(Isa::R700))]
#[bench::tesla(source(Isa::Tesla))]
fn parse_and_encode((target, source): (Target, String)) -> usize {
    black_box(assemble(&target, &source)).map_or(0, |assembly| assembly.image.programs.len())
}

#[library_benchmark]
#[bench::r500(program(Isa::R500))]
#[bench::r700(program(Isa::R700))]
#[bench::tesla(program(Isa::Tesla))]
fn decode_and_print((target, program): (Target, Program)) -> usize {
    black_box(target.machine().disassemble(&target, &program, Style::default()))
        .map_or(0, |listing| listing.text.len())
}

#[library_benchmark]
#[bench::r700(program(Isa::R700))]
#[bench::tesla(program(Isa::Tesla))]
fn decode((target, program): (Target, Program)) -> usize {
    black_box(target.machine().faults(&target, &program)).map_or(0, |found| found.len())
}

#[library_benchmark]
#[bench::r500_mandel_fast(prepared(Isa::R500, "mandel", Engine::Fast))]
#[bench::r500_mandel_reference(prepared(Isa::R500, "mandel", Engine::Reference))]
#[bench::r700_mandel_fast(prepared(Isa::R700, "mandel", Engine::Fast))]
#[bench::r700_mandel_reference(prepared(Isa::R700, "mandel", Engine::Reference))]
#[bench::r700_collatz_fast(prepared(Isa::R700, "collatz", Engine::Fast))]
#[bench::r700_collatz_reference(prepared(Isa::R700, "collatz", Engine::Reference))]
#[bench::tesla_mandel_fast(prepared(Isa::Tesla, "mandel", Engine::Fast))]
#[bench::tesla_mandel_reference(prepared(Isa::Tesla, "mandel", Engine::Reference))]
#[bench::tesla_collatz_fast(prepared(Isa::Tesla, "collatz", Engine::Fast))]
#[bench::tesla_collatz_reference(prepared(Isa::Tesla, "collatz", Engine::Reference))]
fn execute((session, engine): (Session, Engine)) -> Box<dyn Outcome> {
    black_box(session.run(&Options { engine, ..Options::default() })).expect("our own kernel runs")
}

library_benchmark_group!(name = text, benchmarks = [parse_and_encode, decode_and_print, decode]);
library_benchmark_group!(name = execution, benchmarks = [execute]);
// One thread: with several, the work per thread varies between runs, and only the benchmark's own thread is counted.
main!(
    config = LibraryBenchmarkConfig::default().env("RAYON_NUM_THREADS", "1"),
    library_benchmark_groups = [text, execution]
);
