//! All engines, levels and numbers of threads return the same verdicts.

use std::path::PathBuf;
use std::process::Command;

use rayon::prelude::*;
use reconverge_simt::Level;
use reconverge_testkit::shared;

/// Returns the verdicts of `check --json` for these files with the options `way`.
fn verdicts(way: &str, paths: &[PathBuf]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    let output = command.args(["check", "--json"]).args(way.split_whitespace()).args(paths).output().unwrap();
    let [said, wrong] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(0), "{way}: {wrong}{said}");
    // Only a run in lockstep counts the paths of the fast engine.
    let mut said: serde_json::Value = serde_json::from_str(&said).unwrap();
    said.as_object_mut().and_then(|said| said.remove("paths"));
    // Times differ from run to run.
    for result in said["results"].as_array_mut().into_iter().flatten() {
        result.as_object_mut().and_then(|result| result.remove("seconds"));
    }
    said.to_string()
}

#[test]
fn results_depend_neither_on_the_engine_nor_on_the_processor_nor_on_the_number_of_threads() {
    let built_in = Vec::new();
    let beside: Vec<PathBuf> = ["corpus", "vectors", "binaries"].into_iter().filter_map(shared).collect();
    let levels = Level::available().into_iter().map(Level::name);
    let mut ways: Vec<String> = levels
        .flat_map(|level| ["fast", "lockstep"].map(|engine| format!("--engine {engine} --level {level}")))
        .chain(["compiled", "lockstep=reference,compiled"].map(|engine| format!("--engine {engine}")))
        .collect();
    ways.extend(["--jobs 1".to_owned(), "--jobs 3".to_owned()]);
    for paths in [built_in, beside] {
        let reference = verdicts("--engine reference", &paths);
        // The checks run in parallel, so that one reads while another executes.
        ways.par_iter().for_each(|way| assert_eq!(verdicts(way, &paths), reference, "{way}"));
    }
}
