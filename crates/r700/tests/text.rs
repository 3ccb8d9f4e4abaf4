//! Converts words to text and back: random words, every bit, every program of the corpora.

use reconverge_r700::chip::Chip;
use reconverge_r700::text::{Options, Syntax, assemble, disassemble};
use reconverge_testkit::Random;
use reconverge_testkit::r700::with_clauses;
use reconverge_testkit::records;
use reconverge_testkit::shared;

fn round_trip(words: &[u32], chip: Chip, what: &str) {
    for syntax in [Syntax::Own, Syntax::Amd] {
        round_trip_in(syntax, words, chip, what);
    }
}

fn round_trip_in(syntax: Syntax, words: &[u32], chip: Chip, what: &str) {
    let text = disassemble(words, chip, Options { syntax, ..Options::default() }).text;
    match assemble(&text, Chip::RV770) {
        Ok(back) => {
            if back.words != words {
                let at =
                    (0..words.len().max(back.words.len())).find(|&at| words.get(at) != back.words.get(at));
                panic!(
                    "{what}: word {at:?} of {} differs ({}): {:x?}\n{text}",
                    words.len(),
                    back.words.len(),
                    at.map(|at| (words.get(at), back.words.get(at)))
                );
            }
            assert_eq!(back.chip, chip);
        }
        Err(faults) => panic!("{what}: {} at {:?}\n{text}", faults[0], faults[0].span.line_column(&text)),
    }
}

fn chips() -> [Chip; 2] {
    [Chip::RV770, Chip::named("r600").expect("it is in the table")]
}

#[test]
fn a_million_random_words_come_back() {
    let seed = 0x5eed_0700;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for chip in chips() {
        for _ in 0..6200 {
            let alu: Vec<u32> = (0..48).map(|_| random.next()).collect();
            let fetch: Vec<u32> = (0..32).map(|_| random.next()).collect();
            round_trip(&with_clauses(&alu, &fetch), chip, "clauses");
            let cf: Vec<u32> = (0..random.next() % 40).map(|_| random.next() & random.next()).collect();
            round_trip(&cf, chip, "control flow");
        }
    }
}

#[test]
fn every_pattern_of_every_sixteen_bits_of_an_instruction_comes_back() {
    for chip in chips() {
        for half in 0..4 {
            for base in [0_u64, 0x8000_00f9_0020_0c90] {
                for chunk in 0..4096_u64 {
                    let mut alu = Vec::new();
                    for value in chunk * 16..chunk * 16 + 16 {
                        let word = base & !(0xffff << (16 * half)) | value << (16 * half);
                        alu.extend([word as u32 | 1 << 31, (word >> 32) as u32]);
                    }
                    alu.extend([0x8000_0000, 0, 0x8000_0000, 0]);
                    round_trip_in(
                        Syntax::Own,
                        &with_clauses(&alu, &[0x10, 0xf00d_1000, 0x6880_0000, 0]),
                        chip,
                        "ALU sweep",
                    );
                }
            }
        }
        for half in 0..8 {
            for inst in [0, 1, 2, 0x102, 0x402, 0x502, 0x10] {
                for chunk in 0..8192_u32 {
                    let mut fetch = Vec::new();
                    for value in chunk * 8..chunk * 8 + 8 {
                        let mut words = [inst, 0, 0, 0];
                        words[half / 2] |= value << (16 * (half % 2));
                        fetch.extend(words);
                    }
                    if half > 1 && chunk % 8 != 0 {
                        continue;
                    }
                    round_trip_in(Syntax::Own, &with_clauses(&[0x8000_0000, 0], &fetch), chip, "fetch sweep");
                }
            }
        }
    }
}

#[test]
fn every_value_of_every_half_of_a_control_flow_word_comes_back() {
    for chip in chips() {
        for value in 0..=0xffff {
            for (word0, word1) in
                [(value, 0x8020_0000), (value << 16, 0x8020_0000), (0, value), (0, value << 16)]
            {
                for low in [0, 0x93c0_0000, 0x9400_0000] {
                    round_trip_in(
                        Syntax::Own,
                        &[word0, word1 | if word1 < 0x1_0000 { low } else { 0 }, 0, 0x8020_0000],
                        chip,
                        "CF",
                    );
                }
            }
        }
    }
}

#[test]
fn random_edits_of_a_text_never_panic() {
    let seed = 0xed17;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let alu: Vec<u32> = (0..16).map(|_| random.next()).collect();
    let fetch: Vec<u32> = (0..16).map(|_| random.next()).collect();
    let text = disassemble(&with_clauses(&alu, &fetch), Chip::RV770, Options::default()).text;
    for _ in 0..20_000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..1 + random.next() % 4 {
            let at = random.next() as usize % bytes.len();
            match random.next() % 3 {
                0 => bytes[at] = b"x.()[],:@-|0R9\n ;"[random.next() as usize % 17],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, random.next() as u8 & 0x7f),
            }
        }
        let edited = String::from_utf8_lossy(&bytes).into_owned();
        if let Err(faults) = assemble(&edited, Chip::RV770) {
            assert!(faults.iter().all(|fault| fault.span.end <= edited.len()));
        }
    }
}

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text, 16).expect("eight hexadecimal digits")
}

#[test]
fn every_program_of_the_corpora_comes_back() {
    let mut programs = 0;
    for file in ["fuzz", "piglit"] {
        for record in records(&format!("corpus/r700/{file}.jsonl.gz")) {
            let code = record["program"]["code"].as_array().expect("code");
            let words: Vec<u32> = code
                .iter()
                .filter_map(|word| word.as_str())
                .flat_map(|word| [hex(&word[..8]), hex(&word[8..])])
                .collect();
            let chip = Chip::named(record["chip"].as_str().unwrap_or("")).expect("a chip");
            round_trip(&words, chip, record["name"].as_str().unwrap_or(""));
            assert_eq!(disassemble(&words, chip, Options::default()).notes, []);
            programs += 1;
        }
    }
    for file in ["exec", "disasm"] {
        for record in records(&format!("corpus/r700-llvm/{file}.jsonl.gz")) {
            let words: Vec<u32> =
                record["words"].as_str().unwrap_or("").split_whitespace().map(hex).collect();
            let chip = Chip::named(record["chip"].as_str().unwrap_or("")).expect("a chip");
            round_trip(&words, chip, record["id"].as_str().unwrap_or(""));
            programs += 1;
        }
    }
    println!("{programs} programs");
}

#[test]
fn every_r600_and_r700_binary_comes_back() {
    let Some(index) = shared("binaries/index.json") else { return };
    let text = std::fs::read_to_string(&index).expect("it exists");
    let index_json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut binaries = 0;
    for item in index_json["items"].as_array().expect("items") {
        let isa = item["isa"].as_str().unwrap_or("");
        if !matches!(isa, "r600" | "r700") || item["format"] != "hex32" {
            continue;
        }
        let file = index.with_file_name(item["file"].as_str().expect("a file"));
        let text = std::fs::read_to_string(file).expect("it exists");
        let words: Vec<u32> =
            text.split_whitespace().map(|word| hex(word.trim_start_matches("0x"))).collect();
        let chip = Chip::named(isa).expect("a family");
        let id = item["id"].as_str().unwrap_or("");
        round_trip(&words, chip, id);
        let notes = disassemble(&words, chip, Options::default()).notes;
        // tri-ps-r600 has no LAST in its final group; perf-ps omits the fourth word of its only fetch.
        let known = matches!(id, "r700.r600_demo.tri-ps-r600" | "r700.r600_demo.perf-ps");
        assert_eq!(notes.is_empty(), !known, "{id}: {notes:?}");
        binaries += 1;
    }
    println!("{binaries} binaries");
}

#[test]
fn the_example_of_the_syntax_document_is_what_the_disassembler_prints() {
    let document = include_str!("../../../docs/r700-syntax.md");
    let (_, rest) = document.split_once("```text\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let words = assemble(example, Chip::RV770).unwrap_or_else(|faults| panic!("{}", faults[0])).words;
    assert_eq!(disassemble(&words, Chip::RV770, Options::default()).text, example);
    for options in [false, true].map(|structure| Options { hex: true, structure, ..Options::default() }) {
        let text = disassemble(&words, Chip::RV770, options).text;
        assert_eq!(assemble(&text, Chip::RV770).map(|back| back.words), Ok(words.clone()));
    }
}

#[test]
fn worked_examples_read_as_they_are_described() {
    let clause = |words: &[u32]| {
        let text = disassemble(&with_clauses(words, &[0x10, 0, 0, 0]), Chip::RV770, Options::default()).text;
        let lines = text.lines().filter(|line| line.starts_with("      ")).map(|line| {
            line.trim()
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        });
        lines.take_while(|line| !line.starts_with("SAMPLE")).collect::<Vec<_>>()
    };
    let cases: [(&[u32], &[&str]); 12] = [
        (&[0x8194_6c80, 0x6000_0010], &["w: ADD R0.w, KC0[0].w, KC1[3].w"]),
        (&[0x8080_0000, 0x6000_0110], &["w: MUL_IEEE R0.w, R0.x, R0.y"]),
        (
            &[0x001f_acfe, 0x6020_0690, 0x8000_04fd, 0x6000_0c90, 0x4060_0000, 1],
            &[
                "w: SETGT_DX10 R1.w, PV.w, (0x40600000, 3.5).x",
                "t: MOV R0.w, (0x00000001, 0.000000000000000000000000000000000000000000001).y",
            ],
        ),
        (&[0x801f_0cfe, 0x0000_2104], &["x: PRED_SETE_INT _.x, PV.w, 0 UPDATE_EXEC_MASK"]),
        (&[0xe000_0801, 0x0000_0a10], &["x: FLOOR R0.x, R1.z PRED(ONE)"]),
        (&[0x839f_c000, 0x6000_0012], &["w: ADD R0.w, R0.x, -|PV.w|"]),
        (&[0x801f_a000, 0x8040_00b0, 0, 0], &["x: MUL R2.x, R0.x, (0x00000000, 0).x OMOD(M2) CLAMP"]),
        (&[0x8080_0000, 0x6002_8801], &["w: MULADD_IEEE R0.w, R0.x, R0.y, R1.z"]),
        (&[0x8180_0cfe, 0x4000_3990], &["t: MULLO_INT R0.z, PV.w, R0.w"]),
        (&[0x8000_0c01, 0x4008_0c90], &["z: MOV R0.z, R1.w BANK(120)"]),
        (&[0x8000_0a0a, 0x6040_0c90], &["w: MOV R2.w, R[10+AR.x].z"]),
        (&[0x8180_00f8, 0x0000_1680], &["x: KILLGT _.x, 0, R0.w"]),
    ];
    for (words, lines) in cases {
        assert_eq!(clause(words), lines);
    }
}

#[test]
fn worked_control_flow_reads_as_it_is_described() {
    let cases = [
        ([0x0000_0000, 0x8020_0000], "00 NOP: END_OF_PROGRAM"),
        ([0x8000_0004, 0xa00c_0802], "00 ALU: ADDR(4) CNT(4) KCACHE0(CB0:0-31) KCACHE1(CB0:32-63)"),
        ([0x0000_0005, 0x8500_0001], "00 JUMP: ADDR(5) POP_CNT(1)"),
        ([0x0000_0004, 0x8200_0010], "00 LOOP_START: ADDR(4) CF_CONST(2)"),
        ([0xc000_8000, 0x9420_0ff8], "00 EXPORT_DONE: PIXEL[0], R1.x___ ELEM_SIZE(3) END_OF_PROGRAM"),
        ([0x0000_a03c, 0x9400_0688], "00 EXPORT_DONE: POS[60], R1.xyzw"),
        ([0x0000_0006, 0x8088_0000], "00 TEX: ADDR(6) CNT(9)"),
        ([0x0000_0006, 0x8900_2000], "00 CALL: ADDR(6) CALL_CNT(1)"),
        ([0xc002_c003, 0x9200_f000], "00 MEM_SCRATCH: WRITE_ACK[3], R5.xyzw ELEM_SIZE(3)"),
        ([0x0000_0000, 0x8d00_0000], "00 WAIT_ACK:"),
    ];
    for (words, line) in cases {
        let text = disassemble(&words, Chip::RV770, Options::default()).text;
        assert_eq!(text.lines().nth(1), Some(line));
    }
}

/// Neither a clause after an unconditional RETURN nor one before the start is control flow.
#[test]
fn control_flow_is_followed_from_the_start_to_an_unconditional_return() {
    let source = "
        CALL: ADDR(@first)
        CALL: ADDR(@second)
        NOP: END_OF_PROGRAM
        @first: ALU: ADDR(6)
          0 x: MOV R1.x, R2.y
        NOP: END_OF_PROGRAM
        @second: RETURN:
    ";
    let words = assemble(source, Chip::RV770).unwrap().words;
    let text = disassemble(&words, Chip::RV770, Options::default()).text;
    let clause = "03 ALU: ADDR(6) CNT(1)\n      0  x: MOV             R1.x, R2.y\n";
    assert!(text.contains(clause) && text.ends_with("05 RETURN:\n"), "{text}");
    // Control flow continues after a conditional RETURN.
    let conditional = assemble(&source.replace("RETURN:", "RETURN: COND(BOOL)"), Chip::RV770).unwrap().words;
    let text = disassemble(&conditional, Chip::RV770, Options::default()).text;
    assert!(!text.contains("R1.x, R2.y"), "{text}");
    // The start enters the routine at address 0, which a walk from 0 alone would not reach.
    let source =
        "RETURN:\n.org 1\n.zero 1\n02 ALU: ADDR(4) CNT(1)\n 0 x: MOV R1.x, R2.y\n03 NOP: END_OF_PROGRAM\n";
    let words = assemble(source, Chip::RV770).unwrap().words;
    let text = disassemble(&words, Chip::RV770, Options { start: 2, ..Options::default() }).text;
    assert!(text.contains("02 ALU: ADDR(4) CNT(1)\n      0  x: MOV             R1.x, R2.y\n"), "{text}");
    for (words, start) in [(words, 2), (conditional, 0)] {
        let text = disassemble(&words, Chip::RV770, Options { start, ..Options::default() }).text;
        assert_eq!(assemble(&text, Chip::RV770).unwrap().words, words, "{text}");
    }
}

#[test]
fn several_mistakes_are_told_at_once_with_their_place_and_what_was_meant() {
    let source =
        "ALU:\n 0 x: MUUL R0.x, R1.x, R2.x\n y: MOV R200.y, R0.x\nJUPM: ADDR(1)\nNOP: END_OF_PROGRM\n";
    let faults = assemble(source, Chip::RV770).expect_err("nothing is right");
    let places: Vec<_> = faults
        .iter()
        .map(|fault| (fault.span.line_column(source), fault.help.clone().unwrap_or_default()))
        .collect();
    assert_eq!(places.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [(2, 7), (3, 9), (4, 1), (5, 6)]);
    for (place, meant) in places.iter().zip(["`MUL`", "", "`JUMP`", "`END_OF_PROGRAM`"]) {
        assert!(place.1.contains(meant), "{place:?}");
    }
}
