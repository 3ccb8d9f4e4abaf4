//! Tests run manifests and arithmetic vectors on every engine.

use std::path::PathBuf;

use rayon::prelude::*;
use reconverge_simt::{Engine, Level, Options};
use reconverge_testkit::shared;
use reconverge_workbench::result::RunResult;

use super::cases;
use crate::{Case, CaseKind, Settings, Verdict};

/// Returns the files with this extension in a folder of the collections, in order. If the collections are absent,
/// returns an empty list.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let Some(folder) = shared(folder) else { return Vec::new() };
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|is| is == extension)).collect();
    files.sort();
    files
}

/// Executes the instruction of each row from its encoded words. Compares the registers, flags and memory at the end.
#[test]
fn every_vector_holds_for_the_executed_instruction_on_every_engine() {
    let files = files("vectors/tesla", "gz");
    let levels = Level::available().into_iter().map(|level| (Engine::Fast, Some(level)));
    let ways: Vec<_> = levels.chain([(Engine::Reference, None), (Engine::Compiled, None)]).collect();
    let rows: Vec<Case> = files.par_iter().flat_map(|file| cases(file)).collect();
    let judge = |case: &Case| {
        let mut wrong = Vec::new();
        for (engine, level) in ways.iter().copied() {
            let options = Options { engine, level, ..Options::default() };
            let verdict = case.judge(&Settings { options, ..Settings::default() });
            if verdict != Verdict::PASSED {
                wrong.push(format!("{} ({engine}): {verdict:?}", case.name));
            }
        }
        wrong
    };
    let wrong: Vec<String> = rows.par_iter().flat_map_iter(judge).collect();
    assert!(files.is_empty() || rows.len() > 100_000, "{} rows", rows.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

/// Compares the arrays, counts and report of a run between the engines. Each engine runs each manifest on one thread,
/// and on one thread per processor.
#[test]
fn run_manifests_leave_the_same_on_every_engine() {
    let files = files("binaries/runs", "json");
    assert!(files.is_empty() || files.len() >= 48, "{} manifests", files.len());
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    for file in files {
        let [Case { kind: CaseKind::Manifest(case), .. }] = &cases(&file)[..] else {
            panic!("{}: not a run manifest", file.display())
        };
        let on = |engine, level| {
            // In the program flacuda, a warp reads a word that the next warp writes. The program does not use the value
            // of the word, so the race is harmless.
            let options = Options { engine, level, race_check: false, ..Options::default() };
            let result = case.run(&options).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let RunResult { outputs, statistics, report, mismatches, .. } = result;
            assert!(mismatches.is_empty(), "{}: {}", file.display(), mismatches[0]);
            (outputs, statistics, report)
        };
        let expected = on(Engine::Reference, None);
        assert!(alone.install(|| on(Engine::Reference, None)) == expected, "{}", file.display());
        for level in Level::available() {
            for engine in [Engine::Fast, Engine::Compiled, Engine::Lockstep, Engine::LockstepCompiled] {
                let what = format!("{}: {engine}, {}", file.display(), level.name());
                assert!(on(engine, Some(level)) == expected, "{what}");
                assert!(alone.install(|| on(engine, Some(level))) == expected, "{what}, one thread");
            }
        }
    }
}
