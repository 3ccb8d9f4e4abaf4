//! The parts of docs/ that are generated from this crate's tables.

mod fragment;
mod vertex;

use std::fmt::Write;

use reconverge_isa::lint::{MALFORMED, Rule};
use reconverge_r500::lint::RULES;
use reconverge_r500::pvs;
use reconverge_testkit::page_is_current;

#[test]
fn the_coverage_page_is_current() {
    page_is_current("coverage/r500.md", None, &fragment::coverage());
    page_is_current("coverage/r500-vertex.md", None, &vertex::coverage());
}

#[test]
fn the_pages_list_every_lint() {
    page_is_current("r500.md", Some("lint"), &table(RULES.iter().chain([&MALFORMED])));
    page_is_current("r500-vertex.md", Some("lint"), &table(pvs::lint::RULES.iter().chain([&MALFORMED])));
}

fn table<'a>(rules: impl Iterator<Item = &'a Rule>) -> String {
    let mut table = String::from("\n| rule | severity | demands | source | fix |\n|---|---|---|---|---|\n");
    for rule in rules {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            rule.name, rule.severity, rule.demands, rule.source, rule.fix
        );
    }
    table + "\n"
}
