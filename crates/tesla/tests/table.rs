//! Compares the tables with the machine-readable description, and with the page that is generated from them.

mod coverage;

use std::collections::BTreeSet;

use reconverge_tesla::decode::{describe, row};
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::table::{TABLE, here};
use reconverge_testkit::{page_is_current, shared};
use toml::Value;

/// Rows that are in the text of the description but not in its tables.
const BEYOND: [&str; 2] = ["l.imad.9", "l.emit.restart"];

/// Encodings that the description's tables list for one chip group, and its text (1.1, 9.9) for all from 0xa0 on.
const WIDENED: [&str; 2] = ["c.bra.c", "c.preret"];

fn description() -> Option<Value> {
    let path = shared("spec/tesla.toml")?;
    Some(toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
}

fn bits(insn: &Value, first: &str, second: &str) -> u64 {
    let word = |name| insn.get(name).and_then(Value::as_integer).unwrap_or(0) as u64;
    word(first) | word(second) << 32
}

#[test]
fn every_encoding_of_the_description_is_a_row_with_the_same_bits_and_places() {
    let Some(description) = description() else { return };
    let encodings = description["insn"].as_array().unwrap();
    assert_eq!(encodings.len(), 214);
    for insn in encodings {
        let id = insn["id"].as_str().unwrap();
        let row = TABLE.rows().iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no row {id}"));
        assert_eq!((row.fixed, row.mask), (bits(insn, "v0", "v1"), bits(insn, "m0", "m1")), "{id}");
        let listed = |list: &str, name: &str| {
            insn[list].as_array().unwrap().iter().any(|found| found.as_str() == Some(name))
        };
        for chip in Chip::ALL {
            for stage in Stage::ALL {
                let widened = WIDENED.contains(&id) && chip.has_sm12();
                let expected = listed("stages", stage.name()) && (widened || listed("chips", chip.name()));
                assert_eq!(row.scope.admits(here(chip, stage)), expected, "{id} {chip} {stage}");
            }
        }
    }
    let known: BTreeSet<&str> = encodings.iter().filter_map(|insn| insn["id"].as_str()).collect();
    let beyond: Vec<&str> = TABLE.rows().iter().map(|row| row.id).filter(|id| !known.contains(id)).collect();
    assert_eq!(beyond, BEYOND);
}

#[test]
fn the_coverage_page_is_current_and_has_an_example_for_every_row() {
    let page = coverage::coverage();
    assert!(!page.contains("``"));
    page_is_current("coverage/tesla.md", None, &page);
}

#[test]
fn a_description_names_every_bit() {
    let words = [0x307c_cffd, 0x6c20_c7c8];
    let described = describe(words, Chip::G80, Stage::Compute).unwrap();
    let all = described.iter().fold(0, |bits, part| bits | part.bits);
    assert_eq!(all, u64::MAX);
    assert_eq!(row(words, Chip::G80, Stage::Compute).unwrap().id, "l.set.32");
    let text = |name: &str| described.iter().find(|part| part.name == name).map(|part| part.text.as_str());
    assert_eq!(text("comparison"), Some("le"));
    assert_eq!(text("kind of source 1"), Some("b32 s[0x1c]"));
    assert_eq!(text("flags register"), Some("$c0"));
    assert_eq!(text("spare"), Some(""));
}
