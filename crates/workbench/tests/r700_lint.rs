//! Findings of the legality checks in compiler output for R700 and R600. Every kind of finding was examined and is
//! explained in docs/r700.md.

use std::collections::BTreeMap;

use reconverge_isa::Isa;
use reconverge_isa::program::{Program, Resources, Stage};
use reconverge_testkit::{records, shared};
use reconverge_workbench::{Target, machine};
use serde_json::Value;

fn word(text: &str) -> u32 {
    u32::from_str_radix(text, 16).expect("hexadecimal")
}

/// Returns a program from the records of drivers and LLVM.
fn program(record: &Value) -> (String, Program) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let chip = text(&record["chip"]).to_lowercase();
    let mut program = match &record["program"]["code"] {
        Value::Array(pairs) => {
            let pairs = pairs.iter().filter_map(Value::as_str);
            Program::from_words(pairs.flat_map(|pair| [word(&pair[..8]), word(&pair[8..])]).collect())
        }
        _ => Program::from_words(text(&record["words"]).split_whitespace().map(word).collect()),
    };
    let number = |value: &Value| value.as_u64().map(|value| value as u32);
    program.resources = Resources {
        stack: number(&record["stack_size"]),
        registers: number(&record["num_gprs"]),
        ..Resources::default()
    };
    if let Value::Object(registers) = &record["program"]["regs"] {
        program.stage = Some(Stage::Pixel);
        for (name, value) in registers {
            let value = word(value.as_str().unwrap_or("0"));
            if name == "SQ_PGM_RESOURCES_PS" {
                program.resources.registers = Some(value & 0xff);
                program.resources.stack = Some(value >> 8 & 0xff);
            }
            program.state.push((name.clone(), value));
        }
    }
    (chip, program)
}

/// Counts of the findings of each rule in programs.
#[derive(Default)]
struct Survey {
    programs: usize,
    found: BTreeMap<&'static str, usize>,
}

impl Survey {
    fn add(&mut self, name: &str, chip: &str, program: &Program) {
        self.programs += 1;
        let target = Target::new(Isa::R700, Some(chip)).unwrap();
        for finding in machine(Isa::R700).lint(&target, program).unwrap() {
            println!("{name} at {}: {} {}", finding.pc, finding.rule.name, finding.message);
            *self.found.entry(finding.rule.name).or_insert(0) += 1;
        }
    }

    fn counts(&self, what: &str) -> Vec<(&'static str, usize)> {
        println!("{what}: {} programs: {:?}", self.programs, self.found);
        self.found.iter().map(|(rule, count)| (*rule, *count)).collect()
    }
}

#[test]
fn what_compilers_wrote_breaks_the_rules_that_the_page_names() {
    for file in ["r700-llvm/exec", "r700-llvm/disasm", "r700/fuzz", "r700/piglit"] {
        let mut survey = Survey::default();
        for record in records(&format!("corpus/{file}.jsonl.gz")) {
            let (chip, program) = program(&record);
            let name = record["name"].as_str().or(record["id"].as_str()).unwrap_or_default();
            let variant = record["variant"].as_str().unwrap_or_default();
            survey.add(&format!("{name} {variant}"), &chip, &program);
        }
        let found = survey.counts(file);
        let expected: &[_] = match file {
            "r700-llvm/exec" => &[("double-write", 1), ("indexed-write", 11)],
            "r700-llvm/disasm" => &[("double-write", 3)],
            // Early returns: 180 at the final export, 3 at results of a loop or a function.
            "r700/fuzz" => &[("unwritten-path", 183)],
            _ => &[],
        };
        assert!(survey.programs == 0 || found == expected, "{file}: {found:?}");
    }
    let Some(folder) = shared("binaries") else { return };
    let index: Value = serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
    let mut survey = Survey::default();
    for item in index["items"].as_array().unwrap() {
        let text = |name: &str| item[name].as_str().unwrap_or_default();
        if text("format") != "hex32" || !["r600", "r700"].contains(&text("isa")) {
            continue;
        }
        let words = std::fs::read_to_string(folder.join(text("file"))).unwrap();
        let words = words.split_whitespace().map(word).collect();
        let program = Program { stage: text("stage").parse().ok(), ..Program::from_words(words) };
        survey.add(text("id"), text("arch"), &program);
    }
    // Two handwritten programs that are truncated or lack the bit that ends a group, and padding of the Wii U's
    // compiler.
    assert_eq!(survey.counts("binaries"), [("decode", 2), ("unreachable", 8)]);
}
