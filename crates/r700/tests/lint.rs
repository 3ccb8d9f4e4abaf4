//! The rules of `lint`, each broken once; compiled programs break one, once.

use reconverge_r700::chip::Chip;
use reconverge_r700::lint::{Components, lint, lint_with};
use reconverge_r700::text::assemble;
use reconverge_testkit::records;

fn broken(source: &str) -> Vec<&'static str> {
    let words = assemble(source, Chip::RV770).unwrap_or_else(|faults| panic!("{}", faults[0])).words;
    let mut rules: Vec<_> = lint(&words, Chip::RV770).iter().map(|finding| finding.rule.name).collect();
    rules.dedup();
    rules
}

const END: &str = "NOP: END_OF_PROGRAM\n";

#[test]
fn a_register_that_a_path_leaves_unwritten_is_found_where_it_is_read() {
    let found = |source: &str| {
        let words = assemble(source, Chip::RV770).unwrap().words;
        let findings = lint_with(&words, Chip::RV770, Some(Components::NONE.with(0)));
        findings
            .into_iter()
            .map(|finding| (finding.rule.name, finding.pc, finding.message))
            .collect::<Vec<_>>()
    };
    let branch = "
        ALU_PUSH_BEFORE:
          0 x: PRED_SETGT _.x, R0.x, 0 UPDATE_EXEC_MASK
        JUMP: ADDR(@end) POP_CNT(1)
        ALU_POP_AFTER:
          1 x: MOV R1.x, R0.y
            y: MOV R1.y, R2.w
        @end: EXPORT_DONE: PIXEL[0], R1.xyz1 END_OF_PROGRAM
    ";
    let unwritten =
        |addr, what: &str| ("unwritten", addr, format!("{what} may be read before it is written"));
    // R1.x and R1.y are written on one path only, R1.z and R2.w on none.
    let wanted = [unwritten(3, "R1.x"), unwritten(3, "R1.y"), unwritten(3, "R1.z"), unwritten(6, "R2.w")];
    assert_eq!(found(branch), wanted);
    let before = branch.replacen(
        "ALU_PUSH_BEFORE:",
        "ALU:\n 0 x: MOV R1.x, 0\n y: MOV R1.y, 0\n z: MOV R1.z, 0\n w: MOV R2.w, 0\nALU_PUSH_BEFORE:",
        1,
    );
    assert_eq!(found(&before), []);
    // A subroutine writes for what is behind its call; a loop's first round reads what a later one writes.
    let call = "CALL: ADDR(@sub)\nEXPORT_DONE: PIXEL[0], R1.xxxx END_OF_PROGRAM\n@sub: ALU:\n 0 x: MOV R1.x, R0.x\nRETURN:\nNOP: END_OF_PROGRAM\n";
    assert_eq!(found(call), []);
    let rounds = "LOOP_START_DX10: ADDR(@out)\n@in: ALU_BREAK:\n 0 x: PRED_SETGT _.x, R0.x, R3.x UPDATE_EXEC_MASK\nALU:\n 0 x: MOV R3.x, R0.y\nLOOP_END: ADDR(@in)\n@out: NOP: END_OF_PROGRAM\n";
    assert_eq!(found(rounds), [unwritten(5, "R3.x")]);
    // What the host fetches, and what is written through an index, may be anything.
    assert_eq!(found(&branch.replacen("ALU_PUSH_BEFORE", "CALL_FS:\nALU_PUSH_BEFORE", 1)), []);
}

#[test]
fn each_rule_finds_the_program_that_breaks_it() {
    let cases = [
        ("decode", "CF_31: END_OF_PROGRAM\n"),
        ("modes", "NOP: WHOLE_QUAD VALID_PIX END_OF_PROGRAM\n"),
        ("alignment", "TEX: ADDR(3)\n 0 SAMPLE R0.xyzw, R0.xyzw, t0, s0\n"),
        ("call-pop", "CALL: ADDR(1) POP_CNT(1)\n"),
        ("loop-pair", "LOOP_START_DX10: ADDR(1)\n"),
        ("loop-exit", "LOOP_BREAK: ADDR(1)\n"),
        ("export-target", "EXPORT_DONE: PIXEL[9], R0.xyzw\n"),
        ("kcache-range", "ALU: KCACHE0(CB0:0-15)\n 0 x: MOV R0.x, KC0[16].x\n"),
        ("kcache-rel", "ALU: KCACHE0(CB0:0-15)\n 0 x: MOV R0.x, KC0[1+AR.x].x\n"),
        ("index-mode", "ALU:\n 0 x: MOV R0.x, R[1+AR.y].x\n"),
        ("bank-swizzle", "ALU:\n 0 x: MOV R0.x, R1.x BANK(6)\n"),
        ("read-port", "ALU:\n 0 x: MOV R0.x, R1.x\n y: MOV R0.y, R2.x\n"),
        (
            "constant-port",
            "ALU: KCACHE0(CB0:0-15)\n 0 x: ADD R0.x, KC0[0].x, KC0[1].x\n y: MOV R0.y, KC0[2].x\n",
        ),
        ("trans-constants", "ALU:\n 0 t: MUL_LIT R0.x, 1.0, 0.5, 0\n"),
        ("one-predicate", "ALU:\n 0 x: PRED_SETE _.x, R0.x, 0\n y: KILLE _.y, R0.x, 0\n"),
        ("mova-use", "ALU:\n 0 x: MOVA_INT _.x, R0.x\n y: MOV R1.y, R[2+AR.x].y\n 1 x: MOV R0.x, R0.x\n"),
        ("double-write", "ALU:\n 0 x: MOV R0.x, R1.x\n t: MOV R0.x, 0\n"),
        ("pred-update", "ALU:\n 0 x: MOV R0.x, R1.x UPDATE_PRED\n"),
        ("exec-last", "ALU:\n 0 x: PRED_SETE _.x, R1.x, 0 UPDATE_EXEC_MASK\n 1 x: MOV R0.x, 0\n"),
        ("integer-modifier", "ALU:\n 0 x: ADD_INT R0.x, -R1.x, 0\n"),
    ];
    for (rule, source) in cases {
        assert_eq!(broken(&format!("{source}{END}")), [rule], "{source}");
    }
    // `unwritten`, which needs the inputs, has the test above.
    assert_eq!(cases.len() + 1, reconverge_r700::lint::RULES.len());
}

#[test]
fn what_llvm_and_mesa_compiled_breaks_one_rule_once() {
    let word = |text: &str| u32::from_str_radix(text, 16).expect("hexadecimal");
    let mut found: Vec<String> = Vec::new();
    let mut programs = 0;
    for record in records("corpus/r700-llvm/exec.jsonl.gz") {
        let words: Vec<u32> = record["words"].as_str().unwrap_or("").split_whitespace().map(word).collect();
        let chip = Chip::named(record["chip"].as_str().unwrap_or("")).expect("a chip");
        found.extend(lint(&words, chip).iter().map(|finding| format!("{}: {finding:?}", record["id"])));
        programs += 1;
    }
    for file in ["fuzz", "piglit"] {
        for record in records(&format!("corpus/r700/{file}.jsonl.gz")) {
            let code = record["program"]["code"].as_array().expect("code");
            let words: Vec<u32> = code
                .iter()
                .filter_map(|pair| pair.as_str())
                .flat_map(|pair| [word(&pair[..8]), word(&pair[8..])])
                .collect();
            let chip = Chip::named(record["chip"].as_str().unwrap_or("")).expect("a chip");
            found.extend(lint(&words, chip).iter().map(|finding| format!("{}: {finding:?}", record["name"])));
            programs += 1;
        }
    }
    println!("{programs} programs");
    // LLVM 19 once packs two copies into R61.y, one in slot y and one in t, into one group: its own mistake.
    let expected = usize::from(programs > 0);
    assert!(
        found.len() == expected && found.iter().all(|finding| finding.contains("double-write")),
        "{found:#?}"
    );
}
