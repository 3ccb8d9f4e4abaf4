//! The bundled kernels: every lane against a direct evaluation, all lanes against the golden hashes.

use reconverge_isa::Isa;
use reconverge_simt::{Engine, Options};
use reconverge_workbench::kernels::{KERNELS, Kernel, KernelError, LANES, find, hash};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::trace::{Pieces, Recorded};

fn mandel(lane: u32) -> u32 {
    let cx = (lane % 1024) as f32 * (3.0 / 1024.0) - 2.0;
    let cy = (lane / 1024) as f32 * (3.0 / 1024.0) - 1.5;
    let (mut zx, mut zy, mut zx2, mut zy2) = (0.0f32, 0.0f32, 0.0f32, 0.0f32);
    let mut steps = 0;
    while steps < 255 && zx2 + zy2 <= 4.0 {
        zy = 2.0 * zx * zy + cy;
        zx = zx2 - zy2 + cx;
        (zx2, zy2) = (zx * zx, zy * zy);
        steps += 1;
    }
    steps
}

fn collatz(lane: u32) -> u32 {
    let (mut n, mut steps) = (lane + 1, 0);
    while n != 1 && steps < 255 {
        n = if n % 2 != 0 { n.wrapping_mul(3).wrapping_add(1) } else { n / 2 };
        steps += 1;
    }
    steps
}

fn evaluation(kernel: &Kernel) -> fn(u32) -> u32 {
    match kernel.name {
        "mandel" => mandel,
        "collatz" => collatz,
        other => panic!("there is no evaluation of {other}"),
    }
}

fn on(engine: Engine) -> Options {
    Options { engine, ..Options::default() }
}

/// Compares the first lanes of a kernel with the evaluation and returns their counts.
#[track_caller]
fn evaluated(kernel: &Kernel, lanes: u32, least_divergent: u64) -> Vec<u32> {
    let what = format!("{} on {}", kernel.name, kernel.isa);
    let prepared = kernel.prepare(lanes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let outcome = prepared.run(&on(Engine::Reference)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (counts, statistics) = (kernel.counts(&*outcome).expect("counts"), outcome.statistics());
    let lane = evaluation(kernel);
    let wrong = (0..lanes).find(|&at| counts[at as usize] != lane(at));
    assert_eq!(wrong.map(|at| (at, counts[at as usize], lane(at))), None, "{what}: lane, found, expected");
    assert!(statistics.divergent_branches >= least_divergent, "{what}: {statistics:?}");
    counts
}

#[test]
fn every_kernel_equals_a_direct_evaluation_of_each_lane() {
    for kernel in &KERNELS {
        // The first rows of the image are nearly uniform.
        evaluated(kernel, 1 << 14, if kernel.name == "mandel" { 10 } else { 10_000 });
    }
}

// A quarter of the image reaches the rows where the set begins and lanes stay for all 255 steps. All lanes take half a
// minute per kernel in this profile; `bench` compares them with the golden hashes.
#[test]
fn a_quarter_of_the_picture_equals_a_direct_evaluation_of_each_lane() {
    for kernel in KERNELS.iter().filter(|kernel| kernel.name == "mandel") {
        assert!(evaluated(kernel, 1 << 18, 5_000).contains(&255));
    }
}

#[test]
fn the_evaluations_give_the_golden_hashes() {
    for kernel in &KERNELS {
        let counts: Vec<u32> = (0..LANES).map(evaluation(kernel)).collect();
        assert_eq!(hash(&counts), kernel.golden, "{}", kernel.name);
    }
}

#[test]
fn a_trace_is_the_same_on_both_engines_and_changes_nothing() {
    for kernel in &KERNELS {
        let prepared = kernel.prepare(1 << 12).unwrap();
        let untraced = RunResult::of(&*prepared.copy().run(&on(Engine::Fast)).unwrap());
        let traced = [Engine::Fast, Engine::Reference].map(|engine| {
            let mut trace = Pieces::default();
            let outcome = prepared.copy().run_traced(&on(engine), Recorded::Flow, &mut trace).unwrap();
            (RunResult::of(&*outcome), trace.count)
        });
        let what = format!("{} on {}", kernel.name, kernel.isa);
        assert!(traced.iter().all(|(result, _)| *result == untraced), "{what}");
        assert_eq!(traced[0].1, traced[1].1, "{what}");
        assert!(traced[0].1 > 500, "{what}: {}", traced[0].1);
    }
}

#[test]
fn what_is_no_launch_is_refused() {
    for kernel in &KERNELS {
        for lanes in [0, LANES + 256] {
            assert!(matches!(kernel.prepare(lanes), Err(KernelError::Lanes(found)) if found == lanes));
        }
    }
    let tesla = find(Isa::Tesla, "mandel").unwrap();
    assert!(matches!(tesla.prepare(255), Err(KernelError::Lanes(255))));
    assert!(find(Isa::R500, "collatz").is_none());
}

#[test]
fn no_kernel_breaks_a_rule_of_its_machine() {
    for kernel in &KERNELS {
        let opened = kernel.open().unwrap();
        for program in &opened.image.programs {
            let findings = opened.target.machine().lint(&opened.target, program).unwrap();
            assert!(findings.is_empty(), "{} on {}: {findings:?}", kernel.name, kernel.isa);
        }
    }
}
