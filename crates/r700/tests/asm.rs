//! Tests programs as a person writes them: labels instead of addresses, folded literals, mistakes reported with their
//! position.

mod engines;

use engines::run;
use reconverge_isa::source::name_text;
use reconverge_isa::{Diagnostic, Program};
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::text::{self, Assembled, assemble, assemble_all, disassemble};
use reconverge_r700::texture::{Texture, TextureSampler};
use reconverge_simt::Options;
use reconverge_simt::texture::Image;

fn good(source: &str) -> Assembled {
    assemble(source, Chip::RV770).unwrap_or_else(|faults| panic!("{}", faults[0]))
}

fn bad(source: &str) -> Vec<Diagnostic> {
    assemble(source, Chip::RV770).expect_err(source)
}

/// Returns the text to which the first message points, its sentence and its help.
fn first(source: &str) -> (&str, String, String) {
    let fault = bad(source).swap_remove(0).with_lines(source);
    (&source[fault.span.start..fault.span.end], fault.message, fault.help.unwrap_or_default())
}

/// Returns R1.x of four lanes whose R0.x is 0 to 3 (float), from a strict run.
fn run_four(source: &str, change: impl FnOnce(&mut Launch)) -> Vec<u32> {
    let assembled = good(source);
    let mut launch = Launch::new(assembled.chip, Stage::Pixel, 4);
    launch.environment_mut().num_gprs = 8;
    launch
        .inputs
        .push(Input { gpr: 0, values: (0..4).map(|lane| [(lane as f32).to_bits(), lane, 0, 0]).collect() });
    change(&mut launch);
    let outcome = run(&Program::from_words(assembled.words), &launch, &Options::default());
    let outcome = outcome.unwrap_or_else(|trap| panic!("{trap}"));
    outcome.export(ExportKind::Pixel, 0).expect("pixel 0").values.iter().map(|value| value[0]).collect()
}

#[test]
fn a_whole_program_is_written_without_counting_words() {
    // Loops, an if with else, a subroutine, a texture and a vertex clause, without addresses, counts and literals.
    let source = "
        .isa r700
        .stage ps
        CALL: ADDR(@fetch) CALL_CNT(1)
        LOOP_START: ADDR(@out) CF_CONST(3)
        @again: ALU_PUSH_BEFORE:
            0 x: PRED_SETGT _.x, 2.0f, R0.x UPDATE_EXEC_MASK
        JUMP: ADDR(@else)
        ALU:
            0 x: ADD_INT R1.x, R1.x, 100
              y: MOV R2.y, 7.5f
        @else: ELSE: ADDR(@endif) POP_CNT(1)
        ALU_POP_AFTER:
            0 x: ADD_INT R1.x, R1.x, R3.x
        @endif:
        LOOP_END: ADDR(@again) CF_CONST(3)
        @out:
        EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM
        @fetch:
        VTX: ; 3 elements of one dword
            FETCH R3.x000, R0.y, b0 FORMAT(32) NUM(INT) NO_STRIDE OFFSET(4)
        TEX:
            LD R4.xyzw, R0.0000, t0, s0
        ALU:
            0 x: MOV R1.x, R4.x
        RETURN:
    ";
    let x = run_four(source, |launch| {
        launch.environment_mut().resources.loop_constants[3] = LoopConstant(2);
        launch.environment_mut().resources.vertex_buffers.insert(0, VertexBuffer::constants(&[5, 10, 15]));
        launch
            .environment_mut()
            .resources
            .textures
            .insert(0, Texture::floats(Image::flat(1, 1, vec![[1000; 4]]).unwrap()));
        launch.environment_mut().resources.samplers.insert(0, TextureSampler::default());
    });
    assert_eq!(x, [1200, 1200, 1020, 1020]);
    let words = good(source).words;
    assert_eq!(good(&disassemble(&words, Chip::RV770, text::Options::default()).text).words, words);
}

#[test]
fn a_label_may_stand_on_the_line_it_names_or_before_it() {
    let apart = "JUMP: ADDR(@end)\n@end:\nNOP: END_OF_PROGRAM\n";
    let together = "JUMP: ADDR(@end)\n@end: NOP: END_OF_PROGRAM\n";
    let numbered = "00 JUMP: ADDR(1)\n01 NOP: END_OF_PROGRAM\n";
    let two = "JUMP: ADDR(@also)\n@end:\n@also: NOP: END_OF_PROGRAM\n";
    for source in [apart, together, two] {
        assert_eq!(good(source).words, good(numbered).words, "{source}");
    }
}

#[test]
fn clauses_are_laid_out_behind_control_flow_and_fetches_at_even_addresses() {
    let source = "ALU:\n 0 x: MOV R1.x, 1\nTEX:\n SAMPLE R1.xyzw, R1.xyzw, t0, s0\nALU:\n 0 x: MOV R1.x, 2.5f\nNOP: END_OF_PROGRAM\n";
    let words = good(source).words;
    let addr = |number: usize| words[2 * number] & 0x3f_ffff;
    assert_eq!([addr(0), addr(1), addr(2)], [4, 6, 8], "one slot, a gap, two words of 64 bits, two slots");
    assert_eq!(words.len(), 2 * 10);
}

#[test]
fn two_instructions_can_run_one_clause_or_its_tail() {
    let source = "
        ALU:
            @all: 0 x: ADD_INT R1.x, R1.x, 1
            @tail: 1 x: ADD_INT R1.x, R1.x, 10
        ALU: ADDR(@all)
        ALU: ADDR(@tail)
        ALU: ADDR(@all) CNT(1)
        EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM
    ";
    // The literal 10 makes the second group two slots long.
    assert_eq!(run_four(source, |_| {}), [11 + 11 + 10 + 1; 4]);
    // A label begins a group, whether or not the group is numbered.
    let unnumbered = source.replace("@tail: 1 x:", "@tail: x:");
    assert_ne!(unnumbered, source);
    assert_eq!(good(&unnumbered).words, good(source).words);
    let source = "
        TEX:
            @first: PASS R1.xyzw, R0.xyzw, t0, s0
            @second: PASS R1.xyzw, R0.yxzw, t0, s0
        TEX: ADDR(@first) CNT(1)
        TEX: ADDR(@second)
        EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM
    ";
    assert_eq!(run_four(source, |_| {}), [0, 1, 2, 3]);
}

#[test]
fn equal_literals_share_a_dword_and_four_fit() {
    let five = "ALU:\n 0 x: ADD R1.x, 2.5f, 3.5f\n y: ADD R1.y, 3.5f, 2.5f\n z: ADD R1.z, 4.5f, 5.5f\n w: MOV R1.w, 6.5f\n";
    let (at, message, _) = first(five);
    assert_eq!((at, message.as_str()), ("6.5f", "a group has four literals at most"));
    let four = five.replace("6.5f", "2.5f") + "NOP: END_OF_PROGRAM\n";
    let words = good(&four).words;
    assert_eq!(words[2 * (2 + 4)..], [2.5f32, 3.5, 4.5, 5.5].map(f32::to_bits));
    let one = good("ALU:\n 0 x: MOV R1.x, 0x40200000\n y: MOV R1.y, 2.5f\nNOP: END_OF_PROGRAM\n").words;
    assert_eq!(one[2 * (2 + 2)..], [2.5f32.to_bits(), 0]);
}

#[test]
fn labels_that_do_not_fit_are_told_with_their_place() {
    let end = "NOP: END_OF_PROGRAM\n";
    let cases = [
        (format!("JUMP: ADDR(@lop)\n@loop: {end}"), "@lop", "undefined label `@lop`", "`loop`"),
        (format!("@a: NOP:\n@a: {end}"), "@a:", "label `@a` is defined twice", "the first is in line 1"),
        (format!("{end}@a:\n"), "@a:", "no instruction comes after label `@a`: the text ends here", ""),
        (
            format!("ALU: ADDR(@a) CNT(1)\n@a: {end}"),
            "@a",
            "`@a` names control flow, but this instruction launches a clause",
            "clause",
        ),
        (
            format!("JUMP: ADDR(@a)\nALU:\n@a: 0 x: MOV R1.x, 1\n{end}"),
            "@a",
            "`@a` names a line of a clause, but this instruction continues in control flow",
            "control-flow",
        ),
        (
            format!("TEX: ADDR(@a) CNT(1)\nALU:\n@a: 0 x: MOV R1.x, 1\n{end}"),
            "@a",
            "the label names a line of a clause of another kind",
            "",
        ),
        (format!(".start @man\n@main: {end}"), "@man", "undefined label `@man`", "`main`"),
    ];
    for (source, at, message, help) in &cases {
        let found = first(source);
        assert_eq!((found.0, found.1.as_str()), (*at, *message), "{source}");
        assert!(found.2.contains(help), "{source}: {}", found.2);
    }
}

/// The text can express every kind of program that a container can state.
#[test]
fn every_kind_of_program_has_a_name_that_is_read() {
    for stage in reconverge_isa::program::Stage::ALL.into_iter().filter(|stage| stage.name() != "fragment") {
        let assembled = good(&format!(".stage {}\nNOP: END_OF_PROGRAM\n", stage.name()));
        assert_eq!(assembled.state, [(format!("stage {stage}"), Vec::new())]);
    }
}

#[test]
fn state_is_checked_and_kept_in_order() {
    let source = ".isa r700\n.chip rv740\n.stage vs\n.gprs 12\n.stack 3\n.start @main\n.const 2 4 1.0 -2.5 -7 0x10\n.loop 5 0x01000fff\n\
                  .bool 0x8\n.state SQ_PGM_RESOURCES_VS 0x103\n.state SPI_PS_INPUT_CNTL_31 1\n.state 0x2880c 2\nNOP:\n@main: NOP: END_OF_PROGRAM\n";
    let assembled = good(source);
    assert_eq!(assembled.chip.name, "rv740");
    let state: Vec<_> =
        assembled.state.iter().map(|(key, values)| (key.as_str(), values.as_slice())).collect();
    let wanted: [(&str, &[u32]); 10] = [
        ("stage vertex", &[]),
        ("gprs", &[12]),
        ("stack", &[3]),
        ("const", &[2, 4, 0x3f80_0000, 0xc020_0000, -7_i32 as u32, 0x10]),
        ("loop", &[5, 0x0100_0fff]),
        ("bool", &[8]),
        ("state SQ_PGM_RESOURCES_VS", &[0x103]),
        ("state SPI_PS_INPUT_CNTL_31", &[1]),
        ("state 0x2880c", &[2]),
        ("start", &[1]),
    ];
    assert_eq!(state, wanted);
}

#[test]
fn each_directive_says_what_does_not_fit() {
    let cases = [
        (".stag ps", ".stag", "unknown directive", "did you mean `stage`?"),
        (".stage px", "px", "unknown kind of program", "did you mean `ps`?"),
        (".stage", ".stage", ".stage needs more operands", ".stage ps|vs"),
        (".stage ps 1", "1", ".stage has no such operand", ".stage ps|vs"),
        (".isa r500", "r500", "another machine", "`r700`"),
        (".chip rv77", "rv77", "unknown chip", "did you mean `rv770`?"),
        (".gprs 256", "256", "the number is larger than 255", ""),
        (".gprs many", "many", "a number was expected", "0 to 255"),
        (".stack 256", "256", "the number is larger than 255", ""),
        (".stack 1\n.stack 1", ".stack", "stack is set twice", "the first is in line 1"),
        (".start @a\n.start 0\n@a: NOP:", ".start", "start is set twice", "the first is in line 1"),
        ("NOP:\n.dword 1\n.dword 2", ".dword", "the odd last word is set twice", "the first is in line 2"),
        (".stage ps\n.stage vs", ".stage", "stage is set twice", ""),
        (".start 0x400000", "0x400000", "the number is larger than 4194303", ""),
        (".const 16 0 1", "16", "the number is larger than 15", ""),
        (".const 0 0", ".const", ".const needs more operands", "first word"),
        (".const 0 16383 1 2", ".const", "a constant buffer has 16384 words", ""),
        (".const 0 0 one", "one", "a word was expected", "1.0"),
        (".loop 32 1", "32", "the number is larger than 31", ""),
        (".loop 1 1\n.loop 1 2", ".loop", "loop constant 1 is set twice", ""),
        (".bool yes", "yes", "a number was expected", ""),
        (".state SQ_PGM_RESOURCE_PS 1", "SQ_PGM_RESOURCE_PS", "unknown register", "`SQ_PGM_RESOURCES_PS`"),
        (".state SQ_VTX_SEMANTIC_32 1", "SQ_VTX_SEMANTIC_32", "unknown register", "0x"),
        (".state SQ_CONFIG", ".state", ".state needs more operands", "REGISTER value"),
        (".word 1", ".word", ".word needs more operands", ".word w0, w1"),
        (".org 1 2", "2", ".org has no such operand", ".org n"),
        ("NOP:\n.chip r600", ".chip", ".chip must be before the first instruction", ".program NAME"),
        (
            "ALU:\n 0 x: MOV R1.x, (1.5f).x\n.literal x, 1",
            ".literal",
            "the group has another literal in this component",
            "x holds (0x3fc00000, 1.5)",
        ),
        ("ALU:\n 0 x: MOV R1.x, 1\n.literal q, 1", "q", "a component x, y, z or w was expected", ""),
    ];
    for (source, at, message, help) in cases {
        let found = first(source);
        assert_eq!((found.0, found.1.as_str()), (at, message), "{source}");
        assert!(found.2.contains(help), "{source}: {}", found.2);
    }
}

#[test]
fn a_clause_of_the_wrong_size_or_kind_is_an_error() {
    let many = "ALU:\n".to_owned() + &" 0 x: MOV R1.x, 1\n".repeat(129) + "NOP: END_OF_PROGRAM\n";
    assert_eq!(first(&many).1, "the clause has 129 64-bit words of slots and literals; 1 to 128 fit");
    let many = "TEX:\n".to_owned() + &" PASS R1.xyzw, R0.xyzw, t0, s0\n".repeat(17) + "NOP: END_OF_PROGRAM\n";
    assert_eq!(first(&many).1, "the clause has 17 instructions; 1 to 16 fit");
    let r600 = assemble(&many.replacen("TEX", ".chip r600\nTEX", 1), Chip::RV770).unwrap_err();
    assert_eq!(r600[0].message, "the clause has 17 instructions; 1 to 8 fit");
    assert_eq!(first("TEX:\n 0 x: MOV R1.x, 1\n").1, "this line is valid only in an ALU clause");
    assert_eq!(first("POP:\n 0 PASS R1.xyzw, R0.xyzw, t0, s0\n").1, "this instruction has no clause");
    assert_eq!(first(" 0 x: MOV R1.x, 1\n").1, "no control-flow instruction precedes this line");
}

#[test]
fn the_bits_and_the_value_of_a_literal_agree() {
    let value = |text: &str| {
        let words = good(&format!("ALU:\n 0 x: MOV R1.x, {text}\nNOP: END_OF_PROGRAM\n")).words;
        words[2 * (2 + 1)]
    };
    for text in ["(0xc0400000, -3).x", "(-3.0f).x", "(-3.0).x", "(0xc0400000).x", "(0xc0400000, -3.0f)"] {
        assert_eq!(value(text), (-3.0_f32).to_bits(), "{text}");
    }
    for (text, bits) in [
        ("(0x00000003, 3).x", 3),
        ("(0xfffffffd, NaN).x", 0xffff_fffd),
        ("(-3).x", -3_i32 as u32),
        ("(0xfffffffd, -3).x", -3_i32 as u32),
        ("(0x80000000, -0).x", 1 << 31),
        ("(0xff800000, -inf).x", 0xff80_0000),
    ] {
        assert_eq!(value(text), bits, "{text}");
    }
    let wrong = "(0xc0400000, -5).x";
    let source = format!("ALU:\n 0 x: MOV R1.x, {wrong}\n");
    let found = first(&source);
    assert_eq!((found.0, found.1.as_str()), (wrong, "the bits 0xc0400000 are -3, not -5"));
    assert_eq!(found.2, "for -5 write (-5.0f), for the bits write (0xc0400000)");
    let found = first("ALU:\n 0 x: MOV R1.x, -5\n");
    assert_eq!((found.0, found.1.as_str()), ("-5", "a minus sign before an integer flips its highest bit"));
    assert_eq!(found.2, "for the integer write (-5), for the float -5.0f");
}

#[test]
fn a_text_holds_several_programs() {
    let source = "
        .isa r700
        .chip rv730
        .program vertex
        .stage vs
        .gprs 3
        @end: EXPORT_DONE: POS[60], R1.xyzw END_OF_PROGRAM
        .program a%20%25
        .stage ps
        .gprs 2
        .start @end
        NOP:
        @end: EXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM
        .program
        NOP: END_OF_PROGRAM
    ";
    let programs = assemble_all(source, Chip::RV770).unwrap();
    let names: Vec<_> = programs.iter().map(|program| program.name.as_deref()).collect();
    assert_eq!(names, [Some("vertex"), Some("a %"), None]);
    assert_eq!(name_text("a %"), "a%20%25");
    assert_eq!(programs[1].state[1..], [("gprs".to_owned(), vec![2]), ("start".to_owned(), vec![1])]);
    assert_eq!(programs.iter().map(|program| program.words.len()).collect::<Vec<_>>(), [2, 4, 2]);
    assert!(programs.iter().all(|program| program.chip.name == "rv730"));
    assert_eq!(first(source).1, "one program was expected, 3 are here");
}

#[test]
fn texts_that_do_not_make_a_module_have_one_error() {
    let program = ".stage ps\n.gprs 2\nNOP:\nNOP: END_OF_PROGRAM\n";
    let cases = [
        (
            format!(".isa r700\n{program}.isa r700\n{program}"),
            ".isa",
            ".isa must be before the first instruction",
        ),
        (format!("{program}.program b\n{program}"), ".program", "a program has begun before this line"),
        (format!(".gprs 2\n.program b\n{program}"), ".program", "a program has begun before this line"),
        (format!(".program b\n{program}.program b\n{program}"), "b", "two programs are named `b`"),
        (
            format!(".program a\n.chip rv770\n{program}.program b\n.chip r600\n{program}"),
            "r600",
            "another chip",
        ),
        (format!(".program a b\n{program}"), "b", "a name is one word"),
        (format!(".program a%2\n{program}"), "a%2", "`%` and two hexadecimal digits were expected"),
    ];
    for (source, at, message) in cases {
        let errors = assemble_all(&source, Chip::RV770).unwrap_err();
        assert_eq!(errors.len(), 1, "{source}: {errors:?}");
        assert_eq!(
            (&source[errors[0].span.start..errors[0].span.end], errors[0].message.as_str()),
            (at, message)
        );
    }
}

#[test]
fn a_number_that_comes_again_continues_its_group() {
    let group = "ALU:\n 0 x: MOV R1.x, R0.x\n   y: MOV R1.y, R0.y\nNOP: END_OF_PROGRAM\n";
    let again = "ALU:\n 0 x: MOV R1.x, R0.x\n 0 y: MOV R1.y, R0.y\nNOP: END_OF_PROGRAM\n";
    assert_eq!(good(again).words, good(group).words);
    // A repeated slot begins a new group.
    let taken = "ALU:\n 0 x: MOV R1.x, R0.x\n 0 x: MOV R1.y, R0.y\nNOP: END_OF_PROGRAM\n"
        .replace("R1.y, R0.y", "R2.x, R0.x");
    assert_ne!(good(&taken).words[4] >> 31, 0);
}

/// MAN 4; Mesa `check_vector`, `check_scalar`: three cycles read one register of each component.
#[test]
fn bank_swizzle_is_found() {
    let source = |lines: &str| format!("ALU:\n{lines}NOP: END_OF_PROGRAM\n");
    let banks = |lines: &str| -> Vec<u32> {
        let words = good(&source(lines)).words;
        words[4..].chunks(2).map(|pair| pair[1] >> 18 & 7).collect()
    };
    assert_eq!(banks(" 0 x: ADD R1.x, R2.x, R3.x\n 0 y: ADD R1.y, R4.y, R5.y\n"), [0, 0]);
    assert_eq!(banks(" 0 x: ADD R1.x, R2.x, R3.x\n 0 y: ADD R1.y, R3.x, R2.x\n"), [0, 2]);
    assert_eq!(banks(" 0 x: MOV R1.x, R2.x\n 0 y: MOV R1.y, R3.x\n 0 z: MOV R1.z, R4.x\n"), [0, 2, 4]);
    assert_eq!(banks(" 0 x: MOV R1.x, R2.x BANK(120)\n 0 y: MOV R1.y, R3.x\n"), [2, 0]);
    // A clause with an explicit count is assembled unchanged.
    assert_eq!(
        good("ALU: ADDR(2) CNT(2)\n 0 x: MOV R1.x, R2.x\n 0 y: MOV R1.y, R3.x\nNOP: END_OF_PROGRAM\n").words
            [7]
            >> 18
            & 7,
        0
    );
    let four = source(" 0 x: ADD R1.x, R2.x, R3.x\n 0 y: ADD R1.y, R4.x, R5.x\n");
    let (_, message, help) = first(&four);
    assert_eq!(message, "the group reads more than three registers of one component: R2.x, R3.x, R4.x, R5.x");
    assert_eq!(help, "split the group, or read a result of the previous group through PV or PS");
    let given = source(
        " 0 x: MOV R1.x, R2.x BANK(012)\n 0 y: MULADD R1.y, R3.x, R4.x, R2.x BANK(012)\n 0 z: MOV R1.z, R4.x\n",
    );
    assert_eq!(
        first(&given).2,
        "these values fit, in the order of the slots: BANK(012), BANK(120), BANK(201)"
    );
}

#[test]
fn numbers_of_another_kind_than_the_operation_computes_with_are_warnings() {
    let warning = |line: &str| {
        let assembled = good(&format!("ALU:\n 0 x: {line}\nNOP: END_OF_PROGRAM\n"));
        assembled.warnings.first().map(|warning| warning.help.clone().unwrap_or_default())
    };
    assert_eq!(warning("MUL R0.x, R0.x, 3").as_deref(), Some("write 3.0f"));
    assert_eq!(warning("ADD R0.x, R0.x, 1").as_deref(), Some("write 1.0"));
    assert_eq!(warning("ADD_INT R0.x, R0.x, 3.0f").as_deref(), Some("write 3"));
    for fine in [
        "MUL R0.x, R0.x, 3.0f",
        "MUL R0.x, R0.x, 0x3",
        "MUL R0.x, R0.x, 0",
        "MOV R0.x, 3",
        "ADD_INT R0.x, R0.x, -3",
        "AND_INT R0.x, R0.x, 1.5f",
        "CNDE R0.x, R1.x, 3, 4",
    ] {
        assert_eq!(warning(fine), None, "{fine}");
    }
    let words = good("ALU:\n 0 x: ADD_INT R0.x, R0.x, -3\nNOP: END_OF_PROGRAM\n").words;
    assert_eq!(words[6], -3_i32 as u32);
}

#[test]
fn the_constant_file_is_a_bank_of_its_own() {
    let assembled = good(".const file 4 4.0 -1 0x10\nNOP: END_OF_PROGRAM\n");
    assert_eq!(assembled.state, [("const".to_owned(), vec![16, 4, 4.0_f32.to_bits(), u32::MAX, 0x10])]);
    assert_eq!(first(".const file 1023 1 2\n").1, "the constant file has 1024 words");
}
