//! Compares the tables with programs of other people's compilers.

mod listings;

use std::collections::BTreeMap;
use std::path::Path;

use reconverge_container::{Hints, load};
use reconverge_isa::Isa;
use reconverge_tesla::decode::{decode, length, row};
use reconverge_tesla::inst::{Arith, Chip, Control, Op, Stage};
use reconverge_tesla::text::{Listing, assemble, disassemble};
use reconverge_testkit::{records, shared, unpacked};
use serde_json::Value;

/// The counts of a collection.
#[derive(Default)]
struct Count {
    programs: usize,
    instructions: usize,
    unnamed: usize,
    raw: usize,
    examples: BTreeMap<String, usize>,
}

impl Count {
    /// Converts words to text and back in two styles. Counts raw words, and lines with bits that the text otherwise
    /// does not show.
    fn program(&mut self, words: &[u32], chip: Chip, stage: Stage, name: &str) {
        for listing in [Listing::default(), Listing { hex: true, structure: true, labels: true }] {
            let text = disassemble(words, 0, chip, stage, listing);
            let assembled =
                assemble(&text, chip, stage).unwrap_or_else(|errors| panic!("{name}: {}", errors[0]));
            assert_eq!(assembled.words(), words, "{name}");
        }
        self.programs += 1;
        let listing = Listing { labels: false, ..Listing::default() };
        for line in disassemble(words, 0, chip, stage, listing).lines() {
            self.instructions += 1;
            let unnamed = line.contains(" bits ");
            let raw = line.contains(".word");
            self.unnamed += usize::from(unnamed);
            self.raw += usize::from(raw);
            if unnamed || raw {
                let kind = line.trim_start().split(' ').find(|word| !word.starts_with('(')).unwrap_or("");
                let bits = line.find("bits").map_or("", |at| &line[at..]);
                *self.examples.entry(format!("{kind} {bits}")).or_default() += 1;
            }
        }
    }

    fn report(&self, what: &str) {
        let Count { programs, instructions, unnamed, raw, examples } = self;
        println!(
            "{what}: {programs} programs, {instructions} instructions, {unnamed} with unnamed bits, {raw} raw"
        );
        let mut most: Vec<_> = examples.iter().collect();
        most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (example, count) in most.into_iter().take(20) {
            println!("    {count} x {example}");
        }
    }
}

/// Returns the words of a case.
fn code(case: &Value) -> Vec<u32> {
    let digits = case["program"]["code"].as_str().unwrap().as_bytes();
    let word = |digits: &[u8]| u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
    digits.chunks(8).map(word).collect()
}

fn chip_of(name: &str) -> Chip {
    if name == "nv50" { Chip::G80 } else { Chip::from_name(name).unwrap_or_else(|| panic!("chip {name}")) }
}

#[test]
fn every_compiled_shader_is_known_and_comes_back() {
    for file in ["fuzz", "piglit"] {
        let mut count = Count::default();
        for case in records(&format!("corpus/tesla/{file}.jsonl.gz")) {
            let chip = chip_of(case["id"].as_str().unwrap());
            let stage = Stage::from_name(case["stage"].as_str().unwrap()).unwrap();
            let words = code(&case);
            count.program(&words, chip, stage, case["name"].as_str().unwrap());
        }
        count.report(file);
        assert_eq!(count.raw, 0);
    }
}

#[test]
fn every_binary_is_known_and_comes_back() {
    let Some(folder) = shared("binaries") else { return };
    let index: Value = serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
    let mut count = Count::default();
    for item in index["items"].as_array().unwrap().iter().filter(|item| item["isa"] == "tesla") {
        let file = item["file"].as_str().unwrap();
        let chip = chip_of(item["arch"].as_str().unwrap());
        let stage = Stage::from_name(item["stage"].as_str().unwrap()).unwrap();
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let image = load(&bytes, &Hints { isa: Some(Isa::Tesla), ..Hints::default() }).unwrap();
        for (place, program) in image.programs.iter().enumerate() {
            count.program(&program.words, chip, stage, file);
            let kernels = item["kernels"].as_array().unwrap();
            let named = kernels.iter().find(|kernel| kernel["name"].as_str() == program.name.as_deref());
            let kernel = named.unwrap_or(&kernels[place]);
            operations_agree(&program.words, chip, stage, kernel, file);
        }
    }
    count.report("binaries");
    assert_eq!(count.raw, 0);
}

/// Checks the counts of some operations of each kernel, which the index lists under its own names.
fn operations_agree(words: &[u32], chip: Chip, stage: Stage, kernel: &Value, file: &str) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut instructions = 0;
    let mut place = 0;
    while place < words.len() {
        let pair = [words[place], words.get(place + 1).copied().unwrap_or(0)];
        let inst = decode(pair, chip, stage).unwrap_or_else(|why| panic!("{file}: {pair:08x?}: {why}"));
        place += length(pair[0]) as usize;
        instructions += 1;
        let name = match inst.op {
            Op::Control(Control::Joinat { .. }) => "joinat",
            Op::Control(Control::Bra { .. }) => "bra",
            Op::Control(Control::Bar { .. }) => "bar",
            Op::Control(Control::Call { .. }) => "call",
            Op::Control(Control::Breakaddr { .. }) => "breakaddr",
            Op::Control(Control::Break) => "break",
            Op::Control(Control::Ret) => "ret",
            Op::Arith(Arith::FMad { .. }) => "mad.f32",
            Op::Arith(Arith::FMul { .. }) => "mul.f32",
            Op::Arith(Arith::FAdd { .. }) => "add.f32",
            Op::Arith(Arith::FSet { .. }) => "set.f32",
            Op::Arith(Arith::Slct) => "slct",
            Op::Arith(Arith::DMul { .. }) => "mul.f64",
            _ => continue,
        };
        *counts.entry(name).or_default() += 1;
    }
    assert_eq!(kernel["instructions"].as_u64(), Some(instructions), "{file}");
    for (name, count) in counts {
        assert_eq!(kernel["ops"][name].as_u64(), Some(count), "{file}: {name}");
    }
}

#[test]
fn every_vector_is_known_and_comes_back() {
    let Some(folder) = shared("vectors/tesla") else { return };
    let mut count = Count::default();
    let mut forms = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "gz") {
            continue;
        }
        for (chip, stage, words, op) in vectors(&path) {
            forms.entry((chip, stage, words)).or_insert(op);
        }
    }
    for ((chip, stage, words), op) in &forms {
        let taken = length(words[0]) as usize;
        count.program(&words[..taken], *chip, *stage, op);
        row(*words, *chip, *stage).unwrap_or_else(|why| panic!("{op}: {why}"));
    }
    count.report("vectors");
    assert_eq!(count.raw, 0, "{:?}", count.examples);
}

/// Returns chip, stage, words and description of each row of a file.
fn vectors(path: &Path) -> Vec<(Chip, Stage, [u32; 2], String)> {
    let text = unpacked(path);
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| names.iter().position(|known| *known == name);
    let (op, chip, w0, w1) = (column("op"), column("chip"), column("w0").unwrap(), column("w1").unwrap());
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let chip = match chip.map(|column| cells[column]) {
                None | Some("any" | "G80+G84") => Chip::G84,
                Some("G84+") => Chip::G84,
                Some("GT215") => Chip::Gt215,
                Some(_) => Chip::G200,
            };
            let word = |column: usize| u32::from_str_radix(cells[column], 16).unwrap_or(0);
            let stage =
                if path.to_string_lossy().contains("quadop") { Stage::Fragment } else { Stage::Compute };
            (chip, stage, [word(w0), word(w1)], op.map_or(String::new(), |column| cells[column].to_owned()))
        })
        .collect()
}
