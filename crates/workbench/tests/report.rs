//! The report of a run: every step, and the state of every lane before it.

use reconverge_isa::Isa;
use reconverge_simt::Options;
use reconverge_workbench::kernels::KERNELS;
use reconverge_workbench::report::{Bounds, Report, Subject, page};
use reconverge_workbench::{Error, Target};

/// A page with a slot for runs.
const TEMPLATE: &str = "<p><script id=\"runs\" type=\"application/json\">[]</script></p>";

/// Returns the report of a kernel for some lanes.
fn report(isa: Isa, name: &str, lanes: u32, bounds: Bounds) -> Report {
    attempt(isa, name, lanes, bounds).unwrap()
}

fn attempt(isa: Isa, name: &str, lanes: u32, bounds: Bounds) -> Result<Report, Error> {
    let kernel = KERNELS.iter().find(|kernel| (kernel.isa, kernel.name) == (isa, name)).unwrap();
    let opened = kernel.open().unwrap();
    let session = kernel.prepare(lanes).unwrap();
    let subject = Subject { title: name, opened: &opened, program: &opened.image.programs[0], source: None };
    Report::of(subject, &session, &Options::default(), bounds)
}

#[test]
fn a_page_has_the_run_and_nothing_that_ends_its_script() {
    let run = report(Isa::Tesla, "mandel", 256, Bounds::default());
    let html = page(TEMPLATE, &[run]).unwrap();
    assert!(html.starts_with("<p><script id=\"runs\"") && html.ends_with("</script></p>"));
    assert_eq!(html.matches('<').count(), TEMPLATE.matches('<').count());
}

#[test]
fn a_bound_is_named_in_the_page() {
    let bounds = Bounds { steps: 100, values: 64, ..Bounds::default() };
    for kernel in &KERNELS {
        let run = report(kernel.isa, kernel.name, 256, bounds);
        let json = serde_json::to_value(&run).unwrap();
        let notes: Vec<&str> =
            json["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
        assert!(notes.iter().any(|note| note.contains("first 100 of")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("registers are recorded up to step")), "{notes:?}");
        assert_eq!(json["steps"]["count"], 100);
    }
}

#[test]
fn the_counts_of_a_report_are_those_of_the_run() {
    for kernel in &KERNELS {
        let run = serde_json::to_value(report(kernel.isa, kernel.name, 256, Bounds::default())).unwrap();
        let counted = kernel.prepare(256).unwrap().run(&Options::default()).unwrap().statistics();
        let what = format!("{} {}", kernel.isa, kernel.name);
        assert_eq!(run["totals"]["instructions"], counted.instructions, "{what}");
        assert_eq!(run["totals"]["lane_instructions"], counted.lane_instructions, "{what}");
        assert_eq!(run["totals"]["divergent_branches"], counted.divergent_branches, "{what}");
        // A step is an instruction. A switch of lanes without an issue is not a step.
        let bound = Bounds::default().steps as u64;
        assert_eq!(run["steps"]["count"], counted.instructions.min(bound), "{what}");
        let sum: u64 = run["counts"].as_array().unwrap().iter().filter_map(|counts| counts[0].as_u64()).sum();
        assert_eq!(sum, counted.instructions, "{what}");
    }
}

#[test]
fn a_report_keeps_its_bytes_and_says_what_it_leaves_out() {
    for kernel in &KERNELS {
        let what = format!("{} {}", kernel.isa, kernel.name);
        let whole = report(kernel.isa, kernel.name, 1 << 11, Bounds::default());
        let size = page(TEMPLATE, &[whole]).unwrap().len();
        let bytes = size * 3 / 4;
        let run = report(kernel.isa, kernel.name, 1 << 11, Bounds { bytes, ..Bounds::default() });
        assert!(run.notes().iter().any(|note| note.contains("registers are recorded up to")), "{what}");
        let html = page(TEMPLATE, &[run]).unwrap();
        assert!(html.len() <= bytes + TEMPLATE.len(), "{what}: {} of {bytes}", html.len());
        let error = attempt(kernel.isa, kernel.name, 1 << 11, Bounds { bytes: 100, ..Bounds::default() });
        let text = error.unwrap_err().to_string();
        assert!(text.contains("the page has room for only 100 bytes"), "{what}: {text}");
    }
}

/// The meaning of `join nop` is that lanes reconverge, not that it computes nothing.
#[test]
fn an_instruction_that_only_joins_or_ends_lanes_says_so() {
    let target = Target::of(Isa::Tesla);
    for (text, says) in [
        ("join nop", "Reconverges the sides of a branch"),
        ("exit nop", "Ends every active lane of the warp."),
        ("nop", "Computes nothing."),
    ] {
        let (program, address) = target.machine().one(&target, text).unwrap();
        let meaning = target.machine().explain_at(&target, &program, address).unwrap().meaning;
        assert!(meaning[0].starts_with(says), "{text}: {meaning:?}");
        assert!(
            text == "nop" || !meaning.iter().any(|line| line == "Computes nothing."),
            "{text}: {meaning:?}"
        );
    }
}
