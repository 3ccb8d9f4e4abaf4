//! Mesa's own listings of the programs that it compiled. A listing has one line per instruction, in Mesa's
//! intermediate language, with the size in bytes. Sizes, operations and registers must agree with those decoded
//! from the words.

use std::collections::BTreeMap;

use reconverge_tesla::decode::length;
use reconverge_tesla::inst::Stage;
use reconverge_tesla::text::{Listing, disassemble};
use reconverge_testkit::{records, shared};

use super::{chip_of, code};

/// Returns the first words of our text for one of Mesa's operations.
fn ours(theirs: &str) -> &'static [&'static str] {
    match theirs {
        "mov" => &["mov"],
        "add" => &["add", "subr", "sub"],
        "sub" => &["add", "sub", "subr"],
        "mul" => &["mul"],
        "mad" => &["add", "sub", "subr", "addc"],
        "and" => &["and"],
        "or" => &["or"],
        "xor" => &["xor"],
        "not" => &["mov2", "xor"],
        "shl" => &["shl"],
        "shr" => &["shr"],
        "min" => &["min"],
        "max" => &["max"],
        "set" => &["set"],
        "cvt" | "neg" | "abs" | "floor" | "ceil" | "trunc" | "sat" => &["cvt"],
        "ld" => &["ld", "mov"],
        "st" => &["st"],
        "linterp" | "pinterp" => &["interp"],
        "rcp" => &["rcp"],
        "rsq" => &["rsqrt"],
        "lg2" => &["lg2"],
        "sin" => &["sin"],
        "cos" => &["cos"],
        "ex2" => &["ex2"],
        "presin" => &["presin"],
        "preex2" => &["preex2"],
        "tex" => &["texauto"],
        "txb" => &["texbias"],
        "txl" => &["texlod"],
        "txf" => &["texfetch"],
        "bra" => &["bra"],
        "joinat" => &["joinat"],
        "prebreak" => &["breakaddr"],
        "break" => &["break"],
        "join" | "exit" | "nop" => &["nop"],
        "discard" => &["discard"],
        "ret" => &["ret"],
        "call" => &["call"],
        "slct" => &["slct"],
        "quadop" => &["quadop"],
        _ => &[],
    }
}

const CONDITIONS: [&str; 21] = [
    "lt", "eq", "le", "gt", "ne", "ge", "ltu", "equ", "leu", "gtu", "neu", "geu", "c", "nc", "s", "ns", "o",
    "no", "a", "na", "never",
];

/// Returns the registers `$r` of a text: halves as they are, larger ones as their first register.
fn registers(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '$'))
        .filter(|word| word.starts_with("$r"))
        .map(|word| word.trim_end_matches(['d', 'q', 't']).to_owned())
        .collect()
}

#[test]
fn the_compilers_listings_agree() {
    if shared("corpus/tesla").is_none() {
        return;
    }
    let mut lines = 0;
    let mut differences: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for file in ["fuzz", "piglit"] {
        let cases: BTreeMap<String, serde_json::Value> = records(&format!("corpus/tesla/{file}.jsonl.gz"))
            .into_iter()
            .map(|case| (format!("{} {}", case["name"], case["id"]), case))
            .collect();
        for listing in records(&format!("corpus/tesla/{file}-disasm.jsonl.gz")) {
            let mut of = cases.values().filter(|case| case["name"] == listing["name"]);
            let (Some(case), None) = (of.next(), of.next()) else { continue };
            let chip = chip_of(case["id"].as_str().unwrap());
            let stage = Stage::from_name(case["stage"].as_str().unwrap()).unwrap();
            let words = code(case);
            let text = disassemble(&words, 0, chip, stage, Listing { labels: false, ..Listing::default() });
            let theirs: Vec<&str> =
                listing["disasm"].as_str().unwrap().lines().filter(|line| line.ends_with(')')).collect();
            let name = &listing["name"];
            assert_eq!(text.lines().count(), theirs.len(), "{name}");
            let mut place = 0;
            for (our, their) in text.lines().zip(theirs) {
                let size = 4 * length(words[place]);
                place += size as usize / 4;
                assert!(their.ends_with(&format!("({size})")), "{name}: {our} / {their}");
                let mut words = their
                    .split_whitespace()
                    .filter(|word| !word.starts_with('$') && !CONDITIONS.contains(word));
                let op = match (words.next().unwrap(), words.next().unwrap()) {
                    // `sat` is an operation or a modifier before one.
                    ("sat", next) if !ours(next).is_empty() => next,
                    (op, _) => op,
                };
                let first = our.split_whitespace().find(|word| ours(op).contains(word));
                let exits = our.trim_start().starts_with("exit") == their.contains("exit");
                let (ours, theirs) = (registers(our), registers(their));
                let same = match op {
                    // Mesa's texture registers are groups, named by their first; the texture looks like a register.
                    "tex" | "txb" | "txl" | "txf" => ours.first() == theirs.last(),
                    // A logic operation whose first source does not count.
                    "not" => (ours.first(), ours.last()) == (theirs.first(), theirs.last()),
                    _ => ours == theirs,
                };
                lines += 1;
                if first.is_none() || !exits || !same {
                    let entry = differences.entry(op.to_owned()).or_insert((0, String::new()));
                    entry.0 += 1;
                    entry.1 = format!("{our} / {their}");
                }
            }
        }
    }
    for (op, (count, example)) in &differences {
        println!("{count} x {op}: {example}");
    }
    println!("{lines} lines");
    // Mesa lets a half register above $r31h overflow its 6-bit field into the signedness of an immediate `mul`. Its
    // listing then differs from the code that it emits.
    let overflow = differences.remove("mul").expect("the known overflow");
    assert_eq!(
        overflow,
        (4, "    mul $r34 s16 $r0h u16 0xff / mul u32 $r34 u16 $r32h 0x00ff (8)".to_owned())
    );
    assert!(lines > 100_000 && differences.is_empty());
}
