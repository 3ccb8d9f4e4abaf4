//! Tests every value of every field in every word of the vertex unit, and compares the words with the
//! machine-readable reference.

use reconverge_isa::word::{Kind, WordError, WordInfo};
use reconverge_r500::pvs::words::*;
use reconverge_testkit::Random;

type Repack = fn(u32) -> Result<u32, WordError>;

macro_rules! words {
    ($($Word:ident),*) => { [ $( ($Word::INFO, (|raw| $Word::unpack(raw).map($Word::pack)) as Repack) ),* ] };
}

/// Returns every word format with a function that unpacks and packs it.
#[rustfmt::skip]
fn all() -> [(WordInfo, Repack); 11] {
    words![
        DstOperand, SrcOperand, DualMath, CodeCntl0, CodeCntl1, ConstCntl, FlowCntlOpc, FlowCntlAddrs, FlowCntlAddrsLw,
        FlowCntlAddrsUw, FlowCntlLoopIndex
    ]
}

#[track_caller]
fn check(info: &WordInfo, repack: Repack, raw: u32) {
    let assigned =
        info.fields.iter().all(|field| field.kind != Kind::Names || field.name_of(field.get(raw)).is_some());
    match repack(raw) {
        Ok(back) => {
            assert!(assigned && raw & !info.owned == 0 && back == raw, "{} {raw:#010x}", info.name);
        }
        Err(_) => assert!(!assigned || raw & !info.owned != 0, "{} {raw:#010x}", info.name),
    }
}

#[test]
fn every_value_of_every_field_survives() {
    let fields: usize = all().iter().map(|(info, _)| info.fields.len()).sum();
    println!("{} words, {fields} fields", all().len());
    for (info, repack) in all() {
        for field in info.fields.iter().filter(|field| field.width() <= 16) {
            (0..=field.max()).for_each(|value| check(&info, repack, field.set(0, value)));
        }
        (0..32).for_each(|bit| check(&info, repack, 1 << bit));
    }
}

#[test]
fn random_words_of_each_format_survive() {
    let seed = 0x5eed_0511;
    println!("seed {seed:#x}");
    for (info, repack) in all() {
        let mut random = Random::new(seed);
        for round in 0..100_000u32 {
            let keep = if round % 8 == 0 { u32::MAX } else { info.owned };
            check(&info, repack, (random.next() << 12 ^ random.next()) & keep);
        }
    }
}

/// Compares with the tables at the end of the reference next to the repository, if it exists.
#[test]
fn fields_and_codes_are_where_the_reference_has_them() {
    let Some(path) = reconverge_testkit::shared("spec/r500-pvs.md") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let (_, tables) = text.split_once("```toml").expect("a fenced table");
    let (tables, _) = tables.split_once("```").expect("its end");
    let reference: toml::Table = tables.parse().unwrap();
    let mut seen = 0;
    let mut field = |info: WordInfo, name: &str, hi: i64, lo: i64| {
        let name = name.to_ascii_lowercase();
        // Bits that the manual names separately are one field here.
        let (joined, bit) = match name.rsplit_once('_') {
            Some(("we", channel)) if channel != "sel" => ("we", Some(channel)),
            Some(("modifier", channel)) => ("modifier", Some(channel)),
            _ => (name.as_str(), None),
        };
        let known = info.field(joined).unwrap_or_else(|| panic!("{} has no {name}", info.name));
        match bit {
            None => assert_eq!((i64::from(known.hi), i64::from(known.lo)), (hi, lo), "{}.{name}", info.name),
            Some(channel) => {
                let at = i64::from(known.lo) + "xyzw".find(channel).unwrap() as i64;
                assert_eq!((at, at), (hi, lo), "{}.{name}", info.name);
            }
        }
        seen += 1;
    };
    let rows = |table: &toml::Value| table.as_array().unwrap().clone();
    for (table, info) in [("dst", DstOperand::INFO), ("src", SrcOperand::INFO), ("dual", DualMath::INFO)] {
        for row in rows(&reference["fields"][table]) {
            let (name, hi, lo) =
                (row[0].as_str().unwrap(), row[2].as_integer().unwrap(), row[3].as_integer().unwrap());
            if name == "SPARE" {
                assert_eq!(!info.owned, 4);
                continue;
            }
            // MATH_INST and MACRO_INST of an opcode are fields, and so is the mask of each channel.
            field(info, name, hi, lo);
        }
    }
    for row in rows(&reference["registers"]["fields"]) {
        let name = row[0].as_str().unwrap();
        if let Some(register) = STATE.iter().find(|register| register.word.name == name) {
            let (hi, lo) = (row[2].as_integer().unwrap(), row[3].as_integer().unwrap());
            field(register.word, row[1].as_str().unwrap(), hi, lo);
        }
    }
    assert!(seen > 60, "{seen} fields");
    for row in rows(&reference["registers"]["list"]) {
        let name = row[0].as_str().unwrap();
        if let Some(register) = STATE.iter().find(|register| register.word.name == name) {
            let expected = [1, 2, 3].map(|n| row[n].as_integer().unwrap());
            let found = [register.mmio, register.count, register.stride].map(i64::from);
            assert_eq!(found, expected, "{name}");
        }
    }
    let codes = |table: &str| rows(&reference["opcodes"][table]);
    let check =
        |table: &str, codes: Vec<(&'static str, &'static reconverge_r500::pvs::operations::Operation)>| {
            let reference = self::rows_of(&reference, table);
            assert_eq!(codes.len(), reference.len(), "{table}");
            for (number, ((name, operation), row)) in codes.into_iter().zip(reference).enumerate() {
                assert_eq!((number as i64, name), (row[0].as_integer().unwrap(), row[1].as_str().unwrap()));
                let operands = operation.operands.iter().filter(|used| **used).count() as i64;
                assert_eq!(operands, row[2].as_integer().unwrap(), "{name}");
                assert_eq!(operation.r500_only, row[3].as_integer() == Some(5), "{name}");
            }
        };
    assert_eq!(codes("ve").len(), 29);
    check("ve", VeOp::ALL.iter().map(|op| (op.name(), op.operation())).collect());
    check("me", MeOp::ALL.iter().map(|op| (op.name(), op.operation())).collect());
    check("macro", MacroOp::ALL.iter().map(|op| (op.name(), op.operation())).collect());
}

fn rows_of(reference: &toml::Table, table: &str) -> Vec<toml::Value> {
    reference["opcodes"][table].as_array().unwrap().clone()
}
