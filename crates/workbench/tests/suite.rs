//! The suite: compares every word of a workload's result with the plain evaluation of its problem, and checks the
//! machine's rules.

use reconverge_simt::{Engine, Options};
use reconverge_workbench::suite::{Rule, WORKLOADS};

#[test]
fn every_workload_equals_the_plain_evaluation_of_its_problem() {
    let mut wrong = Vec::new();
    for workload in WORKLOADS {
        let what = format!("{} on {}", workload.problem.name, workload.isa);
        let session = workload.prepare().unwrap_or_else(|error| panic!("{what}: {error}"));
        let options = Options { engine: Engine::Fast, ..Options::default() };
        let outcome = session.run(&options).unwrap_or_else(|error| panic!("{what}: {error}"));
        let expected = workload.problem.expected();
        let found = workload.result(&*outcome, expected.len()).unwrap();
        assert_eq!(found.len(), expected.len(), "{what}");
        let differing = (0..found.len()).filter(|&at| !workload.problem.rule.fits(found[at], expected[at]));
        let differing: Vec<usize> = differing.collect();
        if let Some(&at) = differing.first() {
            let float = f32::from_bits;
            wrong.push(format!(
                "{what}: {} of {} words, the first {at}: {:08x} ({}) where {:08x} ({}) is expected",
                differing.len(),
                found.len(),
                found[at],
                float(found[at]),
                expected[at],
                float(expected[at])
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_rule_of_nearness_refuses_what_is_further_and_what_is_no_number() {
    let rule = Rule::Within { abs: 0.5, rel: 0.0 };
    let fits = |found: f32| rule.fits(found.to_bits(), 2f32.to_bits());
    assert!(fits(2.5) && !fits(2.6) && !fits(f32::NAN));
    assert!(!Rule::Exact.fits(0x8000_0000, 0));
}

#[test]
fn no_workload_breaks_a_rule_of_its_machine() {
    for workload in WORKLOADS {
        let opened = workload.open().unwrap();
        for program in &opened.image.programs {
            let findings = opened.target.machine().lint(&opened.target, program).unwrap();
            assert!(findings.is_empty(), "{} on {}: {findings:?}", workload.problem.name, workload.isa);
        }
    }
}
