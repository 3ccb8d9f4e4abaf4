//! Pseudo-instructions stand for the forms that the page lists, and a listing with them assembles to the same words,
//! for any words.

use std::path::Path;

use reconverge_isa::Program;
use reconverge_r500::text::idioms::{IDIOMS, Idiom, Part};
use reconverge_r500::text::{Listing, assemble, disassemble};
use reconverge_testkit::{Random, shared, unpacked};

const SHOWN: Listing = Listing { hex: false, structure: false, idioms: true };

fn words(source: &str) -> Vec<u32> {
    assemble(source).unwrap_or_else(|errors| panic!("{source}: {errors:?}")).program.words
}

fn text(words: &[u32]) -> String {
    disassemble(&Program::from_words(words.to_vec()), SHOWN)
}

/// Returns `MAD A, src0.111, src0.000` for operands named A and B.
fn expansion(idiom: &Idiom, operand: impl Fn(usize) -> String, literal: impl Fn(char) -> String) -> String {
    let part = |part: &Part| match part {
        Part::Operand(number) => Some(operand(*number)),
        Part::Negated(number) => Some(format!("-{}", operand(*number))),
        Part::One => Some(literal('1')),
        Part::Zero => Some(literal('0')),
        Part::Nothing => None,
    };
    let operands: Vec<String> = idiom.parts.iter().filter_map(part).collect();
    format!("{}{} {}", idiom.operation, if idiom.off { "*off" } else { "" }, operands.join(", "))
}

fn letters(number: usize) -> String {
    ["A", "B"][number].to_owned()
}

#[test]
fn every_idiom_assembles_to_its_form_and_is_shown_by_its_name() {
    for idiom in &IDIOMS {
        for (half, swizzle, one) in [("ALU temp[1].rgb", "rgb", "111"), ("ALU\n  + temp[1].a", "a", "1")] {
            let sources = ": src0=temp[2] src1=const[3]";
            let operand = |number: usize| format!("src{number}.{swizzle}");
            let literal = |value: char| format!("src0.{}", one.replace('1', &value.to_string()));
            let form = format!("{half} = {} {sources}\n", expansion(idiom, operand, literal));
            let off = if idiom.off { "*off" } else { "" };
            let operands: Vec<String> = (0..idiom.operands).map(operand).collect();
            let short = format!("{half} = {}{off} {} {sources}\n", idiom.name, operands.join(", "));
            assert_eq!(words(&short), words(&form), "{short}");
            assert!(
                text(&words(&form)).contains(&format!("{}{off} src0", idiom.name)),
                "{}",
                text(&words(&form))
            );
        }
    }
    // Modifiers stay with the operands. A form that no idiom can express stays in the long form.
    for (form, shown) in [
        ("MAD*2.sat -|src0.rgb|, src0.111, src0.000 : src0=temp[2]", "MOV*2.sat -|src0.rgb| : src0=temp[2]"),
        (
            "MAD src0.rgb, src0.111, -|src1.rgb| : src0=temp[2] src1=temp[3]",
            "SUB src0.rgb, |src1.rgb| : src0=temp[2] src1=temp[3]",
        ),
        (
            "MAD src0.rgb, src1.111, src1.000 : src0=temp[2]",
            "MAD src0.rgb, src1.111, src1.000 : src0=temp[2]",
        ),
        ("MAX src0.rgb, src0.rgb : src0=temp[2]", "MAX src0.rgb, src0.rgb : src0=temp[2]"),
        (
            "MAD*off src0.rgb, src0.111, src0.000 : src0=temp[2]",
            "MAD*off src0.rgb, src0.111, src0.000 : src0=temp[2]",
        ),
    ] {
        let line = |operation: &str| format!("ALU temp[1].rgb = {operation}\n");
        assert_eq!(text(&words(&line(form))), line(shown));
        assert_eq!(words(&line(shown)), words(&line(form)));
    }
}

#[test]
fn any_words_survive_a_listing_with_idioms() {
    let round_trip = |words: &[u32]| {
        let text = text(words);
        let back = assemble(&text).unwrap_or_else(|errors| panic!("{errors:?}\nof\n{text}"));
        assert_eq!(back.program.words, words, "{text}");
        text
    };
    let mut random = Random::new(0x5eed_0007);
    for _ in 0..20_000 {
        let mut words: [u32; 6] = std::array::from_fn(|_| random.next());
        words[0] &= !2;
        round_trip(&words);
    }
    let mut files = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/r500/fuzz.jsonl.gz")];
    if let Some(folder) = shared("corpus/r500") {
        files.extend(["flow", "piglit"].map(|name| folder.join(format!("{name}.jsonl.gz"))));
    }
    let mut seen = vec![0; IDIOMS.len()];
    for line in files.iter().flat_map(|file| unpacked(file).lines().map(str::to_owned).collect::<Vec<_>>()) {
        let Some((_, code)) = line.split_once("\"code\":[") else { continue };
        let records = code.split(']').next().unwrap_or("").split('"').filter(|part| part.len() == 48);
        let words: Vec<u32> = records
            .flat_map(|digits| (0..6).map(|word| u32::from_str_radix(&digits[8 * word..][..8], 16).unwrap()))
            .collect();
        let text = round_trip(&words);
        for (idiom, count) in IDIOMS.iter().zip(&mut seen) {
            *count += text.matches(&format!("= {} ", idiom.name)).count();
        }
    }
    println!("{:?}", IDIOMS.iter().map(|idiom| idiom.name).zip(&seen).collect::<Vec<_>>());
    assert!(IDIOMS.iter().zip(&seen).all(|(idiom, count)| idiom.off || *count > 0), "{seen:?}");
}

#[test]
fn the_page_shows_the_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/r500-idioms.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<String> = IDIOMS
        .iter()
        .map(|idiom| {
            let operands: Vec<String> = (0..idiom.operands).map(letters).collect();
            let off = if idiom.off { "*off" } else { "" };
            let form = expansion(idiom, letters, |value| format!("src0.{}", value.to_string().repeat(3)));
            format!("| `{}{off} {}` | `{form}` | {} |", idiom.name, operands.join(", "), idiom.meaning)
        })
        .collect();
    let found: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(found, rows);
}

#[test]
fn an_unknown_operation_says_how_to_write_what_is_meant() {
    for (operation, message, help) in [
        ("MOVE src0.rgb", "the RGB unit has no operation `MOVE`", "did you mean `MOV`?"),
        ("mov src0.rgb", "the RGB unit has no operation `mov`", "did you mean `MOV`?"),
        (
            "RCP src0.rgb",
            "the RGB unit has no operation `RCP`",
            "only the alpha unit has RCP; SOP in the RGB half uses the result of the alpha unit",
        ),
        (
            "ABS src0.rgb",
            "the RGB unit has no operation `ABS`",
            "write the operand as |src0.rgb|, for example in MOV",
        ),
        ("ADD src0.rgb", "ADD takes 2 operands, not 1", "expected 2 operands, separated by commas"),
        ("MOV src0.rgb, src0.rgb", "MOV takes 1 operand, not 2", ""),
    ] {
        let errors = assemble(&format!("ALU temp[0].rgb = {operation} : src0=temp[1]")).unwrap_err();
        assert_eq!(errors[0].message, message);
        let found = errors[0].help.clone().unwrap_or_default();
        assert!(found.starts_with(help), "{found}");
    }
}

#[test]
fn an_operand_whose_source_is_stated_nowhere_is_an_error() {
    let error = |source: &str| assemble(source).map(|_| ()).unwrap_err().remove(0);
    let source = "ALU temp[0].rgb = MAD src0.rgb, src1.rgb, src0.000 : src0=temp[1]";
    let found = error(source);
    assert_eq!(found.message, "src1 is not stated: r, g and b read the sources of the RGB half's line");
    assert_eq!(&source[found.span.start..found.span.end], "src1.rgb");
    let found = error("ALU temp[0].rgb = MOV src0.rga : src0=temp[1]");
    assert_eq!(found.message, "src0 is not stated: a reads the sources of the alpha half's line");
    let found = error("ALU temp[0].rgb = MOV srcp.rgb");
    assert!(found.message.starts_with("src0 is not stated"), "{found}");
    // The half whose line would state the source is `nop` or omitted.
    let found = error("ALU nop\n  + temp[1].a = RCP src0.r : src0=temp[1]");
    assert_eq!(found.message, "src0 is not stated: r, g and b read the sources of the RGB half's line");
    // Literals do not read a source. A source that is present may be inline code 0.
    for fine in [
        "ALU temp[0].rgb = MOV src0.01h",
        "ALU temp[0].rgb = MOV src0.rgb : src0=#0.0078125",
        "ALU temp[0].rgb = MOV src0.rga : src0=temp[1]\n  + MAD src0.0, src0.0, src0.0 : src0=temp[2]",
        "ALU temp[0].rgb = MOV src0.rgb {US_ALU_RGB_ADDR.ADDR0=3}",
    ] {
        words(fine);
    }
}

#[test]
fn a_label_that_is_defined_twice_points_at_the_first() {
    let source = "OUT nop\nhere: OUT nop\nhere:\nOUT nop";
    let errors = assemble(source).unwrap_err();
    assert_eq!(
        errors[0].clone().with_lines(source).to_string(),
        "label `here` is defined twice (the first is in line 2)"
    );
}

#[test]
fn an_endif_that_closes_nothing_is_an_error_unless_it_says_so() {
    let errors = assemble("if alu\nOUT nop\nendif\nendif\nOUT nop").unwrap_err();
    assert_eq!(errors[0].message, "`endif` closes more constructs than are open");
    assert_eq!(errors[0].span.line_column("if alu\nOUT nop\nendif\nendif\nOUT nop"), (4, 1));
    assert!(assemble("if alu\nOUT nop\nendif 2\nOUT nop").is_err());
    let kept = words("endif -> 0\nOUT nop");
    assert!(text(&kept).starts_with("endif -> 0\n"), "{}", text(&kept));
    assert_eq!(words(&text(&kept)), kept);
}
