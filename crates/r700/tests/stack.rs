//! Compares the stack that a program's shape requires with the size that compilers declare and the size that runs use.

use reconverge_r700::chip::Chip;
use reconverge_r700::code::{Code, CodeOptions};
use reconverge_r700::flow::StackUse;
use reconverge_r700::stack::stack_needed;
use reconverge_r700::text::assemble;
use reconverge_testkit::records;

fn needed(source: &str, chip: Chip) -> Option<StackUse> {
    let words = assemble(source, chip).unwrap_or_else(|faults| panic!("{}", faults[0])).words;
    stack_needed(&Code::new(&words, 0, CodeOptions::new(chip)), 0)
}

fn use_of(full: u32, sub: u32) -> Option<StackUse> {
    Some(StackUse { full, sub })
}

const PREDICATE: &str = "ALU_PUSH_BEFORE:\n 0 x: PRED_SETE _.x, R0.x, 0 UPDATE_EXEC_MASK\n";

#[test]
fn nesting_counts_and_sequence_does_not() {
    let branch = |inside: &str| format!("{PREDICATE}{inside}POP: POP_CNT(1)\n");
    let end = "NOP: END_OF_PROGRAM\n";
    assert_eq!(needed(end, Chip::RV770), use_of(0, 0));
    assert_eq!(needed(&format!("{}{}{end}", branch(""), branch("")), Chip::RV770), use_of(0, 3));
    assert_eq!(needed(&format!("{}{end}", branch(&branch(""))), Chip::RV770), use_of(0, 4));
}

#[test]
fn a_break_unwinds_the_branches_of_its_loop() {
    let source = format!(
        "LOOP_START_DX10: ADDR(@out)\n@body:\n{PREDICATE}JUMP: ADDR(@on) POP_CNT(1)\nLOOP_BREAK: ADDR(@end)
         POP: POP_CNT(1)\n@on:\n@end:\nLOOP_END: ADDR(@body)\n@out:\nNOP: END_OF_PROGRAM\n"
    );
    assert_eq!(needed(&source, Chip::RV770), use_of(1, 3));
}

#[test]
fn what_a_jump_leaves_behind_is_what_it_takes_along() {
    // A break leaves the loop, so the push stays on the stack. Six pushes follow.
    let push = "PUSH: ADDR(@stop)\n";
    let six = push.repeat(6);
    let source = format!(
        "LOOP_START_DX10: ADDR(@out)\n{push}LOOP_BREAK: ADDR(@end)\nNOP: END_OF_PROGRAM\n@end:
         LOOP_END: ADDR(1)\n@out:\n{six}@stop:\nNOP: END_OF_PROGRAM\n"
    );
    assert_eq!(needed(&source, Chip::RV770), use_of(0, 8), "more than a loop with a push in it");
    // A PUSH that jumps has pushed nothing.
    let source = "PUSH: ADDR(@on)\nNOP: END_OF_PROGRAM\n@on:\nPUSH: ADDR(4)\nNOP: END_OF_PROGRAM\nNOP: END_OF_PROGRAM\n";
    assert_eq!(needed(source, Chip::RV770), use_of(0, 3));
}

#[test]
fn a_call_adds_what_its_subroutine_holds() {
    let source = format!(
        "{PREDICATE}CALL: ADDR(@sub) CALL_CNT(1)\nPOP: POP_CNT(1)\nNOP: END_OF_PROGRAM\n@sub:\n{PREDICATE}POP: POP_CNT(1)\nRETURN:\n"
    );
    assert_eq!(needed(&source, Chip::RV770), use_of(0, 2 + 2 + 1));
    assert_eq!(needed(&source, Chip::named("rv610").unwrap()), use_of(0, 2 + 2 + 2));
    assert_eq!(needed("CALL_FS:\nNOP: END_OF_PROGRAM\n", Chip::RV770), use_of(0, 1));
}

#[test]
fn a_subroutine_that_calls_itself_has_no_bound_but_that_of_its_count() {
    let source = "@self:\nCALL: ADDR(@self)\nNOP: END_OF_PROGRAM\n";
    assert_eq!(needed(source, Chip::RV770), None);
    // CALL_COUNT limits the recursion: calls deeper than 32 are skipped.
    let counted = |count: u32| source.replace("ADDR(@self)", &format!("ADDR(@self) CALL_CNT({count})"));
    assert_eq!(needed(&counted(1), Chip::RV770), use_of(0, 32));
    assert_eq!(needed(&counted(5), Chip::RV770), use_of(0, 6));
}

#[test]
fn a_path_that_would_trap_ends_there() {
    assert_eq!(
        needed(&format!("POP: POP_CNT(1)\n{PREDICATE}NOP: END_OF_PROGRAM\n"), Chip::RV770),
        use_of(0, 0)
    );
}

#[test]
fn only_a_loop_on_top_ends_at_a_loop_end_and_only_within_a_loop_lanes_leave_it() {
    let six = "PUSH: ADDR(@stop)\n".repeat(6);
    let end = "@stop:\nNOP: END_OF_PROGRAM\n";
    assert_eq!(
        needed(&format!("PUSH: ADDR(@stop)\nLOOP_END: ADDR(0)\n{six}{end}"), Chip::RV770),
        use_of(0, 3)
    );
    for form in ["ALU_BREAK", "ALU_CONTINUE"] {
        let source = format!("{form}:\n 0 x: PRED_SETE _.x, R0.x, 0 UPDATE_EXEC_MASK\n{six}{end}");
        assert_eq!(needed(&source, Chip::RV770), use_of(0, 0), "{form}");
    }
}

#[test]
fn the_path_with_the_most_subentries_decides() {
    // Two loops take eight subentries, five pushes seven.
    let source = "LOOP_START_DX10: ADDR(@other)\nLOOP_START_DX10: ADDR(@end)\nNOP: END_OF_PROGRAM\n@other:\n"
        .to_owned()
        + &"PUSH: ADDR(@end)\n".repeat(5)
        + "@end:\nNOP: END_OF_PROGRAM\n";
    assert_eq!(needed(&source, Chip::RV770), use_of(2, 0));
}

#[test]
fn a_stack_of_as_many_entries_as_can_be_declared_has_a_bound() {
    let pushes = |count| "PUSH: ADDR(@stop)\n".repeat(count) + "@stop:\nNOP: END_OF_PROGRAM\n";
    assert_eq!(needed(&pushes(4 * 255), Chip::RV770), use_of(0, 4 * 255 + 2));
    assert_eq!(needed(&pushes(4 * 255 + 1), Chip::RV770), None);
}

#[test]
fn a_search_that_grows_with_every_instruction_ends() {
    // After each pair the number of possible stacks is four times that before it.
    let pairs = |count| {
        let pair = |number| {
            format!("PUSH: ADDR(@a{number}) WHOLE_QUAD\n@a{number}:\nPUSH: ADDR(@b{number})\n@b{number}:\n")
        };
        (0..count).map(pair).collect::<String>() + "NOP: END_OF_PROGRAM\n"
    };
    assert_eq!(needed(&pairs(6), Chip::RV770), use_of(6, 6 + 2));
    assert_eq!(needed(&pairs(24), Chip::RV770), None);
}

#[test]
fn compilers_declare_what_their_programs_need() {
    let word = |text: &str| u32::from_str_radix(text, 16).expect("hexadecimal");
    let mut programs: Vec<(String, Chip, Vec<u32>, u32)> = Vec::new();
    for record in records("corpus/r700-llvm/exec.jsonl.gz") {
        let words = record["words"].as_str().unwrap_or("").split_whitespace().map(word).collect();
        let chip = Chip::named(record["chip"].as_str().unwrap_or("")).expect("a chip");
        let declared = record["stack_size"].as_u64().expect("a size") as u32;
        programs.push((record["id"].to_string(), chip, words, declared));
    }
    for file in ["fuzz", "piglit"] {
        for record in records(&format!("corpus/r700/{file}.jsonl.gz")) {
            let pairs = record["program"]["code"].as_array().expect("code");
            let pairs = pairs.iter().filter_map(|pair| pair.as_str());
            let words = pairs.flat_map(|pair| [word(&pair[..8]), word(&pair[8..])]).collect();
            let chip = Chip::named(record["chip"].as_str().unwrap_or("")).expect("a chip");
            let resources =
                word(record["program"]["regs"]["SQ_PGM_RESOURCES_PS"].as_str().expect("a register"));
            programs.push((record["name"].to_string(), chip, words, resources >> 8 & 0xff));
        }
    }
    let (mut exact, mut deepest) = (0, 0);
    for (name, chip, words, declared) in &programs {
        let needed = stack_needed(&Code::new(words, 0, CodeOptions::new(*chip)), 0).expect("a bound");
        let entries = needed.entries(StackUse::subentries_an_entry(chip.wave_width));
        assert!(entries <= *declared, "{name}: {needed:?} is {entries}, {declared} declared");
        exact += usize::from(entries == *declared);
        deepest = deepest.max(entries);
    }
    println!("{} programs, {exact} exact, {deepest} entries at most", programs.len());
}
