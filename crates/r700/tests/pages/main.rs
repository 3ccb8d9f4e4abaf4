//! Generates the parts of docs/ that come from this crate's tables.

mod coverage;

use std::fmt::Write;

use reconverge_isa::lint::Rule;
use reconverge_r700::lint;
use reconverge_r700::rules::{RULES, Weight};
use reconverge_testkit::page_is_current;

#[test]
fn the_coverage_page_is_current() {
    page_is_current("coverage/r700.md", None, &coverage::coverage());
}

#[test]
fn the_page_lists_every_rule() {
    let mut table = String::from("\n| | question | interpretation | why | weight |\n|---|---|---|---|---|\n");
    for info in RULES {
        let weight = match info.weight {
            Weight::Compilers => "compilers",
            Weight::OneSource => "one source",
            Weight::Recommended => "recommended",
        };
        let (number, [question, reading, why]) = (
            info.rule.number(),
            [info.question, info.reading, info.why].map(|text| text.replace('|', "\\|")),
        );
        let _ = writeln!(table, "| D{number} | {question} | {reading} | {why} | {weight} |");
    }
    page_is_current("r700.md", Some("rules"), &(table + "\n"));
}

#[test]
fn the_page_lists_every_lint() {
    let mut table = String::from("\n| rule | severity | demands | source | fix |\n|---|---|---|---|---|\n");
    for rule in lint::RULES {
        let Rule { name, severity, demands, source, fix } = rule;
        let _ = writeln!(table, "| {name} | {severity} | {demands} | {source} | {fix} |");
    }
    page_is_current("r700.md", Some("lint"), &(table + "\n"));
}
