//! Compares the tables with the machine-readable description of the instruction set, and tests the fields of every
//! word.

use std::collections::HashSet;

use reconverge_isa::WordInfo;
use reconverge_r700::chip::Chip;
use reconverge_r700::control;
use reconverge_r700::explain::{Place, explain, field_says, formats};
use reconverge_r700::words::*;
use reconverge_testkit::shared;

fn chip(family: &str) -> Chip {
    Chip::named(family).expect("a family")
}

/// Returns every word format of a family, through one instruction of each kind.
fn all_formats(family: &str) -> Vec<&'static WordInfo> {
    let samples: [(&[u32], Place); 12] = [
        (&[0, 0], Place::ControlFlow),
        (&[0, 0x2000_0000], Place::ControlFlow),
        (&[0, 39 << 23], Place::ControlFlow),
        (&[0, 32 << 23], Place::ControlFlow),
        (&[0, 0], Place::Alu),
        (&[0, 0x10 << 13], Place::Alu),
        (&[0], Place::Fetch),
        (&[1], Place::Fetch),
        (&[0x10], Place::Fetch),
        (&[2], Place::Fetch),
        (&[2 | 4 << 8], Place::Fetch),
        (&[2 | 5 << 8], Place::Fetch),
    ];
    samples.into_iter().flat_map(|(words, place)| formats(words, place, chip(family))).collect()
}

#[test]
fn every_field_of_the_description_is_a_field_of_the_words() {
    let Some(path) = shared("spec/r700.toml") else { return };
    let spec: toml::Value = toml::from_str(&std::fs::read_to_string(path).expect("it exists")).expect("TOML");
    let mut fields = 0;
    for word in spec["word"].as_array().expect("words") {
        let name = word["name"].as_str().expect("a name");
        // Literals have one field, the word; the third data-share words have none.
        if name.starts_with("ALU_LITERAL") || matches!(name, "MEM_DSW_DWORD2" | "MEM_DSR_DWORD2") {
            continue;
        }
        let families = word.get("families").and_then(|families| families.as_array());
        for family in ["r600", "r700"] {
            if families.is_some_and(|families| !families.iter().any(|known| known.as_str() == Some(family))) {
                continue;
            }
            let known = all_formats(family);
            let info =
                known.iter().find(|info| info.name == name).unwrap_or_else(|| panic!("{family} {name}"));
            let mut owned = 0;
            for field in word["fields"].as_array().expect("fields") {
                if field.get("reserved").is_some() {
                    continue;
                }
                let bit = |key: &str| field[key].as_integer().expect("a bit") as u8;
                let label = field["name"].as_str().expect("a name").to_lowercase();
                let label = if label == "type" { "type_code".to_owned() } else { label };
                let ours = info.field(&label).unwrap_or_else(|| panic!("{family} {name}.{label}"));
                assert_eq!((ours.hi, ours.lo), (bit("hi"), bit("lo")), "{family} {name}.{label}");
                owned |= ours.mask();
                fields += 1;
            }
            assert_eq!(owned, info.owned, "{family} {name} has other fields, too");
        }
    }
    println!("{fields} fields");
}

#[test]
fn every_field_and_every_opcode_has_a_sentence() {
    for family in ["r600", "r700"] {
        for info in all_formats(family) {
            for field in info.fields {
                assert!(!field_says(field.name).is_empty(), "{}.{}", info.name, field.name);
            }
        }
    }
    fn all<T: reconverge_isa::FieldValue>() {
        for name in T::NAMES {
            assert!(name.doc.trim().ends_with(['.', ')']), "{}: {}", name.text, name.doc);
        }
    }
    all::<CfInst>();
    all::<ExportInst>();
    all::<AluForm>();
    all::<Op2>();
    all::<Op3>();
    all::<TexInst>();
    all::<VtxInst>();
    all::<MemOp>();
    all::<Cond>();
    for &inst in CfInst::ALL {
        let row = control::cf(inst);
        let flows = row.jumps || matches!(row.work, control::CfWork::Flow(_)) && inst != CfInst::NOP;
        assert_eq!(flows, !control::effect(inst).is_empty(), "{inst}");
    }
}

#[test]
fn every_opcode_of_the_description_is_in_the_tables() {
    let Some(path) = shared("spec/r700.toml") else { return };
    let spec: toml::Value = toml::from_str(&std::fs::read_to_string(path).expect("it exists")).expect("TOML");
    fn known<T: reconverge_isa::FieldValue>() -> Vec<(&'static str, u32)> {
        T::NAMES.iter().map(|name| (name.text, name.value)).collect()
    }
    let tables = [
        ("cf", known::<CfInst>()),
        ("cf_export", known::<ExportInst>()),
        ("cf_alu", known::<AluForm>()),
        ("op2", known::<Op2>()),
        ("op3", known::<Op3>()),
        ("tex", known::<TexInst>()),
        ("vtx", known::<VtxInst>()),
    ];
    let mut opcodes = 0;
    for (table, ours) in tables {
        let mut seen = HashSet::new();
        for row in spec["opcode"][table].as_array().expect("rows") {
            if row.get("reserved").is_some() {
                continue;
            }
            let entry =
                (row["name"].as_str().expect("a name"), row["number"].as_integer().expect("a number") as u32);
            assert!(ours.contains(&entry), "{table} {entry:?}");
            seen.insert(entry.1);
            if let Some(sources) = row.get("srcs")
                && table == "op2"
            {
                let code =
                    Op2::ALL[ours.iter().position(|(_, value)| *value == entry.1).expect("it is there")];
                let opcode = reconverge_r700::meaning::op2(code, reconverge_r700::chip::Family::R600)
                    .expect("R600 has all");
                assert_eq!(Some(i64::from(opcode.sources)), sources.as_integer(), "{}", entry.0);
            }
            opcodes += 1;
        }
        assert_eq!(seen.len(), ours.len(), "{table} has opcodes that the description does not");
    }
    println!("{opcodes} opcodes");
}

#[test]
fn an_explanation_owns_every_bit_once_and_shows_its_value() {
    for family in ["r600", "r700"] {
        for place in [Place::ControlFlow, Place::Alu, Place::Fetch] {
            let mut seed = 0x9e37_79b9_u32;
            for _ in 0..2000 {
                let words: Vec<u32> = (0..if place == Place::Fetch { 4 } else { 2 })
                    .map(|_| {
                        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        seed ^ seed >> 15
                    })
                    .collect();
                let mut back = vec![0; words.len()];
                let mut owned = vec![0_u64; words.len()];
                for field in explain(&words, place, chip(family)) {
                    let mask = ((1_u64 << (field.hi - field.lo + 1)) - 1) << field.lo;
                    assert_eq!(owned[field.word] & mask, 0);
                    owned[field.word] |= mask;
                    back[field.word] |= field.value << field.lo;
                }
                assert_eq!(back, words);
                assert!(owned.iter().all(|owned| *owned == 0xffff_ffff));
            }
        }
    }
}
