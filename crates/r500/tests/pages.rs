//! The parts of docs/ that are generated from this crate's tables.

use std::fmt::Write;

use reconverge_isa::lint::MALFORMED;
use reconverge_r500::coverage::coverage;
use reconverge_r500::lint::RULES;
use reconverge_testkit::page_is_current;

#[test]
fn the_coverage_page_is_current() {
    page_is_current("coverage/r500.md", None, &coverage());
}

#[test]
fn the_page_lists_every_lint() {
    let mut table = String::from("\n| rule | severity | demands | source | fix |\n|---|---|---|---|---|\n");
    for rule in RULES.iter().chain([&MALFORMED]) {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            rule.name, rule.severity, rule.demands, rule.source, rule.fix
        );
    }
    page_is_current("r500.md", Some("lint"), &(table + "\n"));
}
