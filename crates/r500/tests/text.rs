//! Round trips from words to text and back: every value of every field, random words, and the documented examples.

use rayon::prelude::*;
use reconverge_isa::Program;
use reconverge_isa::program::ConstantBlock;
use reconverge_r500::text::{Listing, assemble, disassemble};
use reconverge_r500::words::{FcInst, InstType, layout};
use reconverge_testkit::Random;

fn text_of(words: &[u32]) -> String {
    disassemble(&Program::from_words(words.to_vec()), Listing::default())
}

#[track_caller]
fn round_trip(words: &[u32]) {
    let text = text_of(words);
    let back = assemble(&text).unwrap_or_else(|errors| panic!("{errors:?}\nof\n{text}"));
    assert!(back.program.words == words, "{:08x?} from {words:08x?} through\n{text}", back.program.words);
}

const TYPES: [InstType; 4] = [InstType::ALU, InstType::OUT, InstType::FC, InstType::TEX];

#[test]
fn every_value_of_every_field_survives() {
    for kind in TYPES {
        for (word, info) in layout(kind).iter().enumerate() {
            for field in info.fields.iter().filter(|field| field.name != "type") {
                for value in 0..=field.max() {
                    let mut words = [kind as u32, 0, 0, 0, 0, 0];
                    words[word] = field.set(words[word], value);
                    round_trip(&words);
                }
            }
        }
    }
}

#[test]
fn every_reserved_and_unused_bit_survives() {
    for kind in TYPES {
        for word in 0..6 {
            for bit in 0..32 {
                let mut words = [kind as u32, 0, 0, 0, 0, 0];
                words[word] |= 1 << bit;
                round_trip(&words);
            }
        }
    }
}

#[test]
fn every_flow_control_word_of_documented_bits_survives() {
    let mut random = Random::new(0x5eed_0001);
    for _ in 0..200_000 {
        let words = [0x402, 0, random.next() & FcInst::OWNED, random.next() & 0x81ff_1f1f, 0, 0];
        round_trip(&words);
    }
}

/// No condition has this JUMP_FUNC, so the words are not an `if`, whatever other fields they share with one.
#[test]
fn a_jump_of_all_lanes_is_no_if() {
    for word in [0x0200_ff00, 0x0a00_ff00, 0x0601_ff00] {
        let words = [0x402, 0, word, 0, 0, 0];
        assert!(text_of(&words).contains("FC JUMP FUNC=0xff"), "{}", text_of(&words));
        round_trip(&words);
    }
}

#[test]
fn a_million_random_instructions_survive() {
    const PARTS: u32 = 16;
    (0..PARTS).into_par_iter().for_each(|part| {
        let seed = 0x5eed_0002 + u64::from(part);
        println!("seed {seed:#x}");
        let mut random = Random::new(seed);
        for round in 0..1_000_000 / PARTS {
            let kind = TYPES[round as usize % 4];
            let mut words = [0; 6];
            for (word, info) in words.iter_mut().zip(layout(kind)) {
                // Usually only documented bits, sometimes any.
                let keep = if round % 16 == 0 { u32::MAX } else { info.owned };
                *word = random.next() & keep;
            }
            words[0] = words[0] & !3 | kind as u32;
            round_trip(&words);
        }
    });
}

#[test]
fn words_that_are_no_whole_instruction_survive() {
    for extra in 1..6 {
        let words: Vec<u32> = (0..6 + extra).map(|n| if n == 0 { 5 } else { 0x1234_0000 + n }).collect();
        round_trip(&words);
    }
    round_trip(&[]);
}

/// r500.md 7 and 5.5.
#[test]
fn the_documented_examples_read_as_they_should() {
    let examples: [([u32; 6], &str); 22] = [
        (
            [0x00078005, 0x08020000, 0x08020000, 0x1c440220, 0x1c60c003, 0x00000005],
            "OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0] {TEX_SEM_WAIT}\n  + out[A].a = MAX*off src0.a, src0.a : src0=temp[0]\n",
        ),
        ([5, 0, 0, 0, 0, 0], "OUT nop {TEX_SEM_WAIT}\n"),
        (
            [0x00007807, 0x02400000, 0xe400f400, 0, 0, 0],
            "TEX temp[0].rgba = LD tex[0], temp[0].rgaa TEX_SEM_ACQUIRE {TEX_SEM_WAIT}\n",
        ),
        ([3, 0x00800000, 0x0000e401, 0, 0, 0], "TEX TEXKILL tex[0], temp[1].rgba\n"),
        (
            [0x0600_781b, 0x02400000, 0xe400f400, 0, 0, 0],
            "TEX (pred.g) temp[0].rgba = LD tex[0], temp[0].rgaa TEX_SEM_ACQUIRE\n",
        ),
        (
            [0x00087800, 0xc802c001, 0x3c840c01, 0x04002223, 0x0068c020, 0x3036e020],
            "ALU temp[2].rgb = MAD*2.sat srcp.rgb, src1.rrr, src2.aaa : src0=temp[1] src1=#0.5 srcp=NEG\n  + temp[2].a = MAD src0.a, src1.a, src0.1 : src0=temp[1] src1=const[3] src2=const[200+aL]\n",
        ),
        (
            [0x00800000, 0x08041401, 0x08020080, 0x80930480, 0, 0x00c81000],
            "ALU alu_result[LT].r = MAD src0.r00, src0.100, -src1.r00 : src0=temp[1] src1=const[5]\n",
        ),
        (
            [0x00048000, 0x08020004, 0x08020004, 0x5c440220, 0x7c60c003, 5],
            "ALU pred[GE].r = MAX*off src0.rgb, src0.rgb : src0=temp[4]\n  + pred[NE].a = MAX*off src0.a, src0.a : src0=temp[4]\n",
        ),
        (
            [0x0a007850, 0x08020080, 0x08020080, 0x1c920490, 0x1cc18053, 0x55],
            "ALU (!pred.r) temp[5].rgb = MAX*off src0.000, src0.000\n  + (pred.a) temp[5].a = MAX*off src0.1, src0.1\n",
        ),
        ([0x402, 0, 0x02000f00, 0x00100000, 0, 0], "if alu -> 16\n"),
        ([0x402, 0, 0x0a000f00, 0x00050000, 0, 0], "if alu else -> 5\n"),
        ([0x402, 0, 0x1a000f00, 0x00050000, 0, 0], "if alu else ignore_uncovered -> 5\n"),
        ([0x402, 0, 0x04010010, 0x00090000, 0, 0], "else -> 9\n"),
        ([0x402, 0, 0x01010020, 0, 0, 0], "endif -> 0\n"),
        ([0x402, 0, 0x01030020, 0, 0, 0], "endif pop=3 -> 0\n"),
        ([0x41a, 0, 0x02003300, 0x00050000, 0, 0], "if pred.g -> 5\n"),
        ([0x402, 0, 0x00005500, 0x00050007, 0, 0], "if bool[7] -> 5\n"),
        ([0x402, 0, 0x00000021, 0x00140200, 0, 0], "loop int[2] -> 20\n"),
        ([0x402, 0, 0x10000001, 0x00140000, 0, 0], "loop int[0] all ignore_uncovered -> 20\n"),
        ([0x402, 0, 0x0401ff05, 0x00140000, 0, 0], "break pop=1 -> 20\n"),
        ([0x402, 0, 0x0800f0a0, 0x001e0000, 0, 0], "call if alu -> 30\n"),
        ([0x402, 0, 0x0401ff40, 0, 0, 0], "return\n"),
    ];
    for (words, text) in examples {
        assert_eq!(text_of(&words), text);
        round_trip(&words);
    }
}

/// r500.md 5.5: hand-written source assembles to the canonical words.
#[test]
fn structured_source_assembles_to_the_canonical_words() {
    let source = "
        ALU alu_result[LT].r = MAD src0.r00, src0.100, -src1.r00 : src0=temp[1] src1=const[5]
        if alu
            ALU nop
        else
            ALU nop
        endif
        loop int[2]
            if !alu
                break
                continue if pred.g
            endif
            continue
        endloop int[2]
        rep int[1]
            break if alu
        endrep int[1]
        call sub
        goto done
    sub:
        return
    done:
        OUT nop {TEX_SEM_WAIT}
    ";
    let words = assemble(source).unwrap().program.words;
    let flow: Vec<(u32, u32)> =
        words.chunks(6).filter(|record| record[0] & 3 == 2).map(|r| (r[2], r[3] >> 16)).collect();
    let expected = [
        (0x0a000f00, 4),  // if with else, to the else part
        (0x04010010, 6),  // else, after the endif
        (0x01010020, 0),  // endif
        (0x00000021, 13), // loop, after the endloop
        (0x0200f000, 11), // if !alu, after the endif
        (0x0401ff05, 13), // break out of one if
        (0x0401cc07, 12), // continue if pred.g, out of one if
        (0x01010020, 0),
        (0x0400ff07, 12), // continue outside any if
        (0x0000ff22, 7),  // endloop
        (0x00000023, 16),
        (0x0000f006, 16), // break in rep is BREAKREP
        (0x0000ff24, 14),
        (0x0800ffa0, 18), // call
        (0x0000ff00, 19), // goto
        (0x0401ff40, 0),  // return
    ];
    assert_eq!(
        flow.iter().map(|(w, t)| format!("{w:08x} {t}")).collect::<Vec<_>>(),
        expected.iter().map(|(w, t)| format!("{w:08x} {t}")).collect::<Vec<_>>()
    );
}

#[test]
fn state_and_constants_survive() {
    let source = ".base 3\n.chip RV515\n.const 4 1.5 -0.25 0x7fc00001 0\n.const 5 1 2 3 4\n.int 2 10 0 -3\n.bool 7 true\n.out B C4_16_FP R G B A\n.state US_PIXSIZE 0x5\n.state US_CODE_ADDR END_ADDR=1\nif bool[7] -> L4\nL4:\nOUT nop\n";
    let assembled = assemble(source).unwrap();
    assert_eq!(assembled.chip.as_deref(), Some("RV515"));
    let program = assembled.program;
    assert_eq!(program.state("US_FC_INT_CONST_2"), Some(0x00fd_000a));
    assert_eq!(program.state("US_FC_BOOL_CONST"), Some(0x80));
    assert_eq!(program.state("US_OUT_FMT_1"), Some(18 | 1 << 8 | 2 << 10 | 3 << 12));
    assert_eq!(program.state("US_CODE_ADDR"), Some(0x0001_0000));
    assert_eq!(program.constants.len(), 1, "neighbours share a block");
    let again = assemble(&disassemble(&program, Listing { hex: true, structure: true, idioms: false }))
        .unwrap()
        .program;
    assert_eq!(again, program);
}

#[test]
fn structure_indents_and_numbers_constructs() {
    let source = "if alu\nloop int[0]\nOUT nop\nendloop int[0]\nelse\nOUT nop\nendif\nOUT nop\n";
    let program = assemble(source).unwrap().program;
    let text = disassemble(&program, Listing { structure: true, ..Listing::default() });
    let expected = "if alu else -> L5  ; #1\n\
        L1:\n  loop int[0] -> L4  ; #2\n\
        L2:\n    OUT nop\n  endloop int[0] -> L2  ; end #2\n\
        L4:\nelse -> L7  ; #1\n\
        L5:\n  OUT nop\nendif  ; end #1\n\
        L7:\nOUT nop\n";
    assert_eq!(text, expected.replace("L1:\n", ""));
    assert_eq!(assemble(&text).unwrap().program, program);
}

#[test]
fn any_constant_bits_survive() {
    let mut random = Random::new(0x5eed_0003);
    for _ in 0..20_000 {
        let bytes = (0..4).flat_map(|_| random.next().to_le_bytes()).collect();
        let constants = vec![ConstantBlock { bank: 0, offset: 16 * (random.next() % 256), bytes }];
        let program = Program { words: vec![5, 0, 0, 0, 0, 0], constants, ..Program::default() };
        assert_eq!(assemble(&disassemble(&program, Listing::default())).unwrap().program, program);
    }
}

#[track_caller]
fn errors(source: &str) -> Vec<String> {
    let errors = assemble(source).expect_err("an error");
    errors
        .iter()
        .map(|error| {
            let (line, column) = error.span.line_column(source);
            assert!(error.span.start <= error.span.end && error.span.end <= source.len());
            format!("{line}:{column}: {error}")
        })
        .collect()
}

#[test]
fn errors_name_the_place_and_what_would_fit() {
    let one = |source: &str, expected: &str| assert_eq!(errors(source), [expected]);
    one(
        "ifg alu\nendif",
        "1:1: unknown mnemonic `ifg` (did you mean `if`? expected one of ALU, OUT, TEX, FC, if, else, endif, loop, endloop, rep, endrep, break, breakrep, continue, call, return, goto)",
    );
    one(
        "if alu\nOUT nop",
        "1:1: `if` is never closed (`endif` is missing, or `-> LABEL` at the end of this line)",
    );
    one(
        "break",
        "1:1: `break` without loop or rep (open it with loop or rep, or write a target, `-> LABEL`)",
    );
    one(
        "goto nowhere\nnowhre:\nOUT nop",
        "1:6: undefined label `nowhere` (did you mean `nowhre`? expected `nowhre`)",
    );
    one("ALU temp[128].r = FRC src0.rgb", "1:10: a temporary cannot be 128 (expected 0 to 127)");
    one(
        "ALU temp[1].r = FRC src0.rgb : src0=const[256]",
        "1:43: a const address cannot be 256 (expected 0 to 255)",
    );
    one(
        "ALU temp[1].r = FRC src0.rgb : src0=#0.3",
        "1:37: `#0.3` is not an inline constant (inline constants are (8 to 15) / 8 times a power of two from 2^-7 to 2^8; others go into .const)",
    );
    one(
        "ALU temp[1].r = FRX src0.rgb",
        "1:17: the RGB unit has no operation `FRX` (did you mean `FRC`? expected one of MAD, DP3, DP4, D2A, MIN, MAX, CND, CMP, FRC, SOP, MDH, MDV, MOV, SUB, ADD, MUL, GEZ, LTZ)",
    );
    one(
        "OUT nop {RGB_PRED_SEL=RRRG}",
        "1:23: unknown value `RRRG` for RGB_PRED_SEL (did you mean `RRRR`? expected one of NONE, RGBA, RRRR, GGGG, BBBB, AAAA)",
    );
    one(
        "ALU out[A].r = FRC src0.rgb",
        "1:5: ALU cannot write to `out` (expected one of temp, pred, alu_result)",
    );
    one(
        ".chip G80",
        "1:7: `G80` is not an R500 chip (expected one of R500, R520, RV515, RV530, R580, RV560, RV570)",
    );
    one(
        "if bool[1]\nendif",
        "1:1: an `if` on a boolean constant needs a target (it does not open a level that `endif` could close: write `-> LABEL`, and end the body with `goto`)",
    );
    one("OUT nop trailing", "1:9: `trailing` is not understood here (the line should end here)");
}

#[test]
fn several_errors_are_reported_in_one_run() {
    assert_eq!(errors("x\ny\nz").len(), 3);
    assert_eq!(errors(&"x\n".repeat(50)).len(), 20, "but not without end");
}

#[test]
fn the_513th_instruction_is_one_too_many() {
    let source = "OUT nop\n".repeat(513);
    let expected = "513:1: 513 instructions do not fit: R500 has 512 instruction slots (shorten the program; the hardware cannot load more)";
    assert_eq!(errors(&source), [expected]);
    assert!(assemble(&"OUT nop\n".repeat(512)).is_ok());
}

#[test]
fn damaged_text_never_panics() {
    let mut random = Random::new(0x5eed_0004);
    let mut words = Vec::new();
    for round in 0..64 {
        let kind = TYPES[round % 4];
        words.extend(layout(kind).iter().map(|info| random.next() & info.owned));
        let start = words.len() - 6;
        words[start] = words[start] & !3 | kind as u32;
    }
    let text = text_of(&words);
    let pieces = [
        "[",
        "]",
        "=",
        "{",
        "}",
        "->",
        " ",
        "\n",
        "0x",
        "é",
        "|",
        "-",
        "if",
        "endif",
        ".const",
        "999999999999999999999",
        "temp",
        ":",
    ];
    const PARTS: u32 = 16;
    (0..PARTS).into_par_iter().for_each(|part| {
        let mut random = Random::new(0x5eed_0104 + u64::from(part));
        for _ in 0..20_000 / PARTS {
            let mut damaged: Vec<char> = text.chars().collect();
            for _ in 0..=random.below(4) {
                if damaged.is_empty() {
                    break;
                }
                let at = random.below(damaged.len() as u32) as usize;
                match random.below(3) {
                    0 => drop(damaged.remove(at)),
                    1 => damaged.truncate(at.max(1)),
                    _ => {
                        damaged.splice(at..at, random.one_of(&pieces).chars());
                    }
                }
            }
            let damaged: String = damaged.into_iter().collect();
            if let Err(errors) = assemble(&damaged) {
                assert!(errors.iter().all(|error| error.span.end <= damaged.len()), "{damaged}");
            }
        }
    });
}
