//! Tests every value of every field in every word, and compares the words with the machine-readable reference.

use reconverge_isa::word::{Kind, WordError, WordInfo};
use reconverge_r500::words::*;
use reconverge_testkit::Random;

type Repack = fn(u32) -> Result<u32, WordError>;

macro_rules! words {
    ($($Word:ident),*) => { [ $( ($Word::INFO, (|raw| $Word::unpack(raw).map($Word::pack)) as Repack) ),* ] };
}

/// Returns every word format with a function that unpacks and packs it.
#[rustfmt::skip]
fn all() -> [(WordInfo, Repack); 24] {
    words![
        CmnInst, AluRgbAddr, AluAlphaAddr, AluRgbInst, AluAlphaInst, AluRgbaInst, TexInst, TexAddr, TexAddrDxDy, FcInst,
        FcAddr, Config, PixSize, FcBoolConst, FcCtrl, CodeAddr, CodeRange, CodeOffset, Format0, OutFmtReg, WFmtReg,
        FcIntConst, VectorIndex, VectorData
    ]
}

fn assigned(info: &WordInfo, raw: u32) -> bool {
    info.fields.iter().all(|field| field.kind != Kind::Names || field.name_of(field.get(raw)).is_some())
}

#[track_caller]
fn check(info: &WordInfo, repack: Repack, raw: u32) {
    let expected_ok = raw & !info.owned == 0 && assigned(info, raw);
    match repack(raw) {
        Ok(back) => {
            assert!(expected_ok && back == raw, "{} {raw:#010x} came back as {back:#010x}", info.name)
        }
        Err(_) => assert!(!expected_ok, "{} {raw:#010x} has a meaning but does not unpack", info.name),
    }
}

#[test]
fn every_value_of_every_field_survives() {
    let fields: usize = all().iter().map(|(info, _)| info.fields.len()).sum();
    println!("{} words, {fields} fields", all().len());
    for (info, repack) in all() {
        for field in info.fields {
            if field.width() <= 16 {
                (0..=field.max()).for_each(|value| check(&info, repack, field.set(0, value)));
            } else {
                (0..field.width()).for_each(|bit| check(&info, repack, field.set(0, 1 << bit)));
                check(&info, repack, field.mask());
            }
        }
    }
}

#[test]
fn reserved_bits_are_errors() {
    for (info, repack) in all() {
        for bit in (0..32).filter(|bit| info.owned >> bit & 1 == 0) {
            let expected = Err(WordError::StrayBits { word: info.name, bits: 1 << bit });
            assert_eq!(repack(1 << bit), expected);
        }
    }
}

#[test]
fn a_million_random_words_of_each_format_survive() {
    let seed = 0x5eed_0501;
    println!("seed {seed:#x}");
    for (info, repack) in all() {
        let mut random = Random::new(seed);
        for round in 0..1_000_000u32 {
            let keep = if round % 8 == 0 { u32::MAX } else { info.owned };
            check(&info, repack, (random.next() << 12 ^ random.next()) & keep);
        }
    }
}

/// Compares with the reference next to the repository, if it exists.
#[test]
fn fields_stand_where_the_reference_has_them() {
    let Some(path) = reconverge_testkit::shared("spec/r500.toml") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let reference: toml::Table = text.parse().unwrap();
    let enums = reference["enum"].as_table().unwrap();
    let mut compared = 0;
    for word in reference["word"].as_array().unwrap() {
        let name = word["name"].as_str().unwrap();
        let formats = all();
        let depth = (DepthSrcReg::INFO, (|raw| Ok(raw)) as Repack);
        let info = formats.iter().chain([&depth]).find(|(info, _)| info.name == name);
        let (info, _) = info.unwrap_or_else(|| panic!("{name} is not modelled"));
        for field in word["field"].as_array().unwrap() {
            let field_name = field["name"].as_str().unwrap().to_lowercase();
            let known = info.fields.iter().find(|known| {
                let ours = known.name;
                ours == field_name || (ours == "vec_type" && field_name == "type")
            });
            let known = known.unwrap_or_else(|| panic!("{name}.{field_name} is missing"));
            let position = (i64::from(known.lo), i64::from(known.hi));
            assert_eq!(
                position,
                (field["lo"].as_integer().unwrap(), field["hi"].as_integer().unwrap()),
                "{name}.{field_name}"
            );
            compared += 1;
            let Some(values) = field.get("enum").and_then(|key| enums[key.as_str().unwrap()].as_table())
            else {
                continue;
            };
            for (text, value) in values.iter().filter(|_| known.kind == Kind::Names) {
                // The same names are used for render targets and comparisons here. A 7 is a code without a meaning.
                let ours = known.name_of(value.as_integer().unwrap() as u32);
                let same = ours.is_some_and(|ours| ours == text || text.starts_with(&format!("{ours}_OR_")));
                assert!(same || text == "UNUSED", "{name}.{field_name}: {text} is {ours:?}");
            }
        }
    }
    assert!(compared > 140, "{compared} fields compared");
}
