//! Explains every instruction of real programs in full.

use std::collections::HashSet;
use std::path::Path;

use reconverge_r500::text::{assemble, explain};
use reconverge_testkit::{shared, unpacked};

/// Adds the different instructions of the programs in a file of cases.
fn instructions(file: &Path, found: &mut HashSet<[u32; 6]>) {
    for line in unpacked(file).lines() {
        let Some((_, code)) = line.split_once("\"code\":[") else { continue };
        let digits = code.split(']').next().unwrap_or("").split('"').filter(|part| part.len() == 48);
        for digits in digits {
            found.insert(std::array::from_fn(|word| {
                u32::from_str_radix(&digits[8 * word..][..8], 16).unwrap()
            }));
        }
    }
}

/// Checks that text, fields, meaning, flow and page are present, in sentences.
fn check(words: &[u32; 6]) {
    let explained = explain(words);
    assert!(!explained.text.is_empty() && !explained.fields.is_empty() && !explained.source.is_empty());
    assert!(!explained.meaning.is_empty(), "{}", explained.text);
    for sentence in &explained.meaning {
        assert!(sentence.ends_with('.') && sentence.starts_with(|c: char| c.is_uppercase()), "{sentence}");
        assert!(!sentence.to_lowercase().contains("unknown"), "{sentence}");
    }
    assert_eq!(words[0] & 3 == 2, !explained.flow.is_empty(), "{}", explained.text);
}

#[test]
fn every_instruction_of_the_built_in_programs_is_explained() {
    let mut found = HashSet::new();
    instructions(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/r500/fuzz.jsonl.gz"), &mut found);
    assert!(found.len() > 1000, "{}", found.len());
    found.iter().for_each(check);
}

#[test]
fn every_instruction_of_the_collections_is_explained() {
    let Some(folder) = shared("corpus/r500") else { return };
    let mut found = HashSet::new();
    for file in ["flow", "fuzz", "piglit"] {
        instructions(&folder.join(format!("{file}.jsonl.gz")), &mut found);
    }
    println!("{} different instructions", found.len());
    found.iter().for_each(check);
}

#[test]
fn the_meaning_says_what_each_half_computes() {
    let meaning = |source: &str| {
        let program = assemble(source).unwrap_or_else(|errors| panic!("{source}: {errors:?}")).program;
        explain(program.words.first_chunk().unwrap()).meaning
    };
    for (source, expected) in [
        (
            "ALU temp[2].rgb = MAD*2.sat srcp.rgb, src1.rrr, src2.aaa : src0=temp[1] src1=#0.5 srcp=NEG {TEX_SEM_WAIT}\n\
               + temp[2].a = MAD src0.a, src1.a, src0.1 : src0=temp[1] src1=const[3] src2=const[200+aL]",
            &[
                "RGB half: temp[2].rgb = (1 - temp[1]).rgb * 0.5 + const[200+aL].aaa, times 2, clamped to 0..1.",
                "Alpha half: temp[2].a = temp[1].a * const[3].a + 1.",
                "Waits until the data of earlier texture fetches has arrived.",
            ][..],
        ),
        (
            "ALU temp[1].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[1] src1=#1",
            &["RGB half: temp[1].r = temp[1].rrr + 1."],
        ),
        ("ALU temp[1].rg = MAX src0.rgb, src0.rgb : src0=temp[0]", &["RGB half: temp[1].rg = temp[0].rgb."]),
        (
            "ALU alu_result[LT].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=#6",
            &["RGB half: computes temp[0].rrr - 6; the ALU result records whether red is below zero."],
        ),
        (
            "ALU temp[3].g = SOP\n  + RSQ |src0.a| : src0=temp[4]",
            &["RGB half: temp[3].g = the alpha half's function, in each channel."],
        ),
        (
            "ALU (!pred.g) temp[3].g = CMP src0.rgb, src1.rg0, src2.rgb : src0=temp[4] src1=temp[5] src2=const[6]",
            &[
                "RGB half: temp[3].g = temp[4].rgb where const[6].rgb is zero or above, (temp[5].r, temp[5].g, 0) elsewhere, \
               only in lanes where predicate g is false.",
            ],
        ),
        (
            "OUT out[B].rg = D2A src0.rgb, src1.rgb, -src2.rgb : src0=temp[4] src1=temp[5] src2=const[6]",
            &[
                "RGB half: channels rg of render target B = temp[4].r * temp[5].r + temp[4].g * temp[5].g + -const[6].b.",
            ],
        ),
        (
            "TEX temp[0].rg = LODBIAS tex[3], temp[1].rgaa swz=gbra",
            &[
                "Fetches from texture 3 at temp[1].rgaa, the level of detail biased by the fourth component.",
                "The result goes to temp[0].rg, in the order gbra.",
                "Coordinates go from 0 to 1.",
            ],
        ),
        (
            "TEX TEXKILL tex[0], temp[1].rgba",
            &["Kills the lanes in which a component of temp[1].rgba is negative."],
        ),
        ("OUT nop", &["Neither half writes anything whatever it computes: no effect on registers."]),
        (
            "if !alu -> 7",
            &[
                "Begins an if, for lanes where the ALU result is false; its end is before 7.",
                "Waits until earlier arithmetic has completed.",
            ],
        ),
    ] {
        assert_eq!(meaning(source), expected, "{source}");
    }
}
