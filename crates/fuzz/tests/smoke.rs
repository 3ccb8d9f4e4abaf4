//! Runs some cases of every target, and every finding that is kept.

use std::path::Path;
use std::time::Duration;

use reconverge_fuzz::driver::{Outcome, Plan, Until, checked, run};
use reconverge_fuzz::finding::Finding;
use reconverge_fuzz::{target, targets};

/// Number of cases per target.
const CASES: u64 = if cfg!(debug_assertions) { 40 } else { 400 };

#[test]
fn some_cases_of_every_target_are_sound() {
    for target in targets() {
        let plan = Plan {
            seed: 0x5eed_f022,
            until: Until::Cases(CASES),
            jobs: 2,
            limit: Duration::from_secs(120),
            marks: None,
        };
        let Outcome { counted, finding, .. } = run(target, &plan, |_, _| {});
        if let Some(finding) = finding {
            panic!("{}: case {}: {}", target.name, finding.case, finding.why);
        }
        // Most cases check at least one item.
        assert!(counted >= CASES / 2, "{}: {counted} {} of {CASES} cases", target.name, target.counts);
    }
}

#[test]
fn what_was_found_is_sound_now() {
    let mut kept = 0;
    let folder = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("kept"));
    for entry in folder.into_iter().flatten() {
        let file = entry.unwrap().path();
        let finding = Finding::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let target =
            target(&finding.target).unwrap_or_else(|| panic!("there is no target {}", finding.target));
        if let Err(why) = checked(target, &finding.bytes) {
            panic!("{}: {why}", file.display());
        }
        kept += 1;
    }
    println!("{kept} findings");
}

#[test]
fn names_of_targets_are_apart() {
    let mut names: Vec<&str> = targets().map(|target| target.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
