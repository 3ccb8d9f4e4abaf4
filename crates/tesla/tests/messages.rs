//! The messages of the assembler about invalid lines.

use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::text::{Listing, assemble, disassemble};

/// Returns the only message about a line, with its help.
fn message(line: &str, chip: Chip, stage: Stage) -> String {
    let errors = assemble(line, chip, stage).unwrap_err();
    let [error] = &errors[..] else { panic!("{errors:?}") };
    error.clone().with_lines(line).to_string()
}

fn compute(line: &str) -> String {
    message(line, Chip::G80, Stage::Compute)
}

#[test]
fn an_immediate_excludes_flags_and_predicates() {
    for line in ["add b32 $c0 $r1 $r1 0xffffffff", "(lg $c0) add b32 $r1 $r1 0x1", "exit mov b32 $r1 0x1"] {
        let text = compute(line);
        assert!(
            text.contains("a form with an immediate writes no flags and has no predicate, exit or join"),
            "{text}"
        );
    }
    assert!(assemble("add b32 $r1 $r1 0xffffffff", Chip::G80, Stage::Compute).is_ok());
}

#[test]
fn a_form_of_another_chip_or_program_type_says_so() {
    let text = compute("ld $r1 b32 s[0x10]");
    assert!(
        text.contains("G80 does not have this form; G84, G200, MCP77, GT215 do: choose one with `.chip`"),
        "{text}"
    );
    let text = compute("emit");
    assert!(text.contains("CP programs do not have this form; GP programs do"), "{text}");
}

#[test]
fn a_missing_shift_count_is_called_so() {
    let text = compute("shl $a1 $r0");
    assert!(text.contains("0x0 (shift count)") && text.contains("not complete"), "{text}");
}

#[test]
fn a_label_without_any_says_how_to_make_one() {
    assert_eq!(
        compute("bra nowhere"),
        "undefined label `nowhere` in this program (the program has no labels: put `nowhere:` in front of an instruction)"
    );
}

#[test]
fn a_second_label_points_at_the_first() {
    assert_eq!(
        compute("    exit nop\na: exit nop\n\na: exit nop"),
        "the label `a` is defined twice (the first is in line 2)"
    );
}

#[test]
fn outputs_are_offered_where_there_are_any() {
    let in_stage = |stage| message("mov b32 ? $r1", Chip::G80, stage);
    assert!(!in_stage(Stage::Compute).contains("o["), "{}", in_stage(Stage::Compute));
    assert!(!in_stage(Stage::Fragment).contains("o["));
    assert!(in_stage(Stage::Vertex).contains("o["), "{}", in_stage(Stage::Vertex));
}

#[test]
fn pairs_are_even_and_fours_multiples_of_four() {
    for (line, why) in [
        ("ld b64 $r3d g14[$r2]", "2 registers together begin at a multiple of 2: $r2d or $r4d"),
        ("ld b128 $r1q g14[$r2]", "4 registers together begin at a multiple of 4: $r0q or $r4q"),
    ] {
        assert_eq!(message(line, Chip::G80, Stage::Compute), why);
    }
    // Words with such bits are nevertheless read back, as words.
    let even = assemble("ld b64 $r2d g14[$r2]", Chip::G80, Stage::Compute).unwrap().words();
    let odd = [even[0] | 1 << 2, even[1]];
    let text = disassemble(&odd, 0, Chip::G80, Stage::Compute, Listing::default());
    assert!(text.contains(".word") && text.contains("destination"), "{text}");
    assert_eq!(assemble(&text, Chip::G80, Stage::Compute).unwrap().words(), odd);
}
