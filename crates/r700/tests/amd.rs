//! Tests AMD's own assembly text: the input that latte-assembler accepts, translated to the same words, and the output
//! of disassemblers.

use reconverge_r700::chip::Chip;
use reconverge_r700::text::{Assembled, Options, Syntax, assemble, disassemble};

fn good(source: &str) -> Assembled {
    assemble(source, Chip::RV770).unwrap_or_else(|faults| panic!("{source}\n{}", faults[0]))
}

/// A source operand: selector, component, NEG, REL.
type Source = (u32, u32, u32, u32);

const BARRIER: u32 = 1 << 31;

/// Two-operand word pair with WRITE_MASK: operation, destination, its component, sources. LAST is set. (MAN 4, ALU_WORD0,
/// ALU_WORD1_OP2)
fn op2(inst: u32, gpr: u32, chan: u32, sources: [Source; 2]) -> [u32; 2] {
    let [first, second] =
        sources.map(|(selector, chan, neg, rel)| selector | rel << 9 | chan << 10 | neg << 12);
    [first | second << 13 | 1 << 31, 1 << 4 | inst << 7 | gpr << 21 | chan << 29]
}

const NONE: Source = (0, 0, 0, 0);

fn r(gpr: u32, chan: u32) -> Source {
    (gpr, chan, 0, 0)
}

/// Returns the words of the first ALU clause of a text.
fn clause(lines: &str) -> Vec<u32> {
    let words = good(&format!("00 ALU:\n{lines}\n01 EXP_DONE: PIX0, R0\nEND_OF_PROGRAM\n")).words;
    assert_eq!(words[0] & 0x3f_ffff, 32, "ALU clauses begin at a multiple of 32 words of 64 bits");
    words[64..].to_vec()
}

/// One row for each form of the grammar's ALU rules. (decaf-emu, latte-assembler `resources/grammar.txt`, `assembler_alu.cpp`)
#[test]
fn alu_forms_of_latte_assembler() {
    let mul = |sources| op2(1, 1, 0, sources);
    let with = |[word0, word1]: [u32; 2], low: u32, high: u32| [word0 | low, word1 | high];
    let rows: Vec<(&str, [u32; 2])> = vec![
        // AluScalar0, AluScalar1, AluScalar2, AluScalar3
        ("0 x: NOP ____", [1 << 31, 26 << 7]),
        ("0 x: MOV R1.x, R2.y", op2(25, 1, 0, [r(2, 1), NONE])),
        ("0 x: MUL R1.x, R2.y, R3.z", mul([r(2, 1), r(3, 2)])),
        (
            "0 x: MULADD R1.x, R2.y, R3.z, R4.w",
            [2 | 1 << 10 | 3 << 13 | 2 << 23 | 1 << 31, 4 | 3 << 10 | 16 << 13 | 1 << 21],
        ),
        // AluUnit
        ("0 w: MOV R1.w, R2.x", op2(25, 1, 3, [r(2, 0), NONE])),
        ("0 t: SQRT_IEEE R1.y, R2.x", op2(0x6a, 1, 1, [r(2, 0), NONE])),
        // Aliases of operations
        ("0 t: SQRT_e R1.x, R2.x", op2(0x6a, 1, 0, [r(2, 0), NONE])),
        ("0 t: EXP_e R1.x, R2.x", op2(0x61, 1, 0, [r(2, 0), NONE])),
        ("0 t: LOG_e R1.x, R2.x", op2(0x63, 1, 0, [r(2, 0), NONE])),
        ("0 t: LOG_sat R1.x, R2.x", op2(0x62, 1, 0, [r(2, 0), NONE])),
        ("0 t: RSQ_e R1.x, R2.x", op2(0x69, 1, 0, [r(2, 0), NONE])),
        ("0 t: RCP_e R1.x, R2.x", op2(0x66, 1, 0, [r(2, 0), NONE])),
        ("0 x: MUL_e R1.x, R2.x, R3.x", op2(2, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: DOT4_e R1.x, R2.x, R3.x", op2(0x51, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: MULADD_e R1.x, R2.x, R3.x, R4.x", [2 | 3 << 13 | 1 << 31, 4 | 20 << 13 | 1 << 21]),
        // Operations with more operands than the chip reads, and operations of later chips
        ("0 x: NOT_INT R1.x, R2.x, R3.x", op2(0x33, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: MAX4 R1.x, R2.x, R3.x", op2(0x53, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: PRED_SET_CLR ____, R2.x, R3.x", [2 | 3 << 13 | 1 << 31, 0x26 << 7]),
        ("0 x: GROUP_BARRIER R1.x, R2.x, R3.x", op2(84, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: GROUP_SEQ_BEGIN R1.x, R2.x, R3.x", op2(85, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: GROUP_SEQ_END R1.x, R2.x, R3.x", op2(86, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: SET_MODE R1.x", op2(87, 1, 0, [NONE, NONE])),
        ("0 x: SET_CF_IDX0 R1.x", op2(88, 1, 0, [NONE, NONE])),
        ("0 x: SET_CF_IDX1 R1.x", op2(89, 1, 0, [NONE, NONE])),
        ("0 x: SET_LDS_SIZE R1.x, R2.x, R3.x", op2(90, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: MUL_INT24 R1.x, R2.x, R3.x", op2(91, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: MULHI_INT24 R1.x, R2.x, R3.x", op2(92, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: MOVA_GPR_INT R1.x, R2.x, R3.x", op2(96, 1, 0, [r(2, 0), r(3, 0)])),
        ("0 x: BFE_UINT R1.x, R2.x, R3.x, R4.x", [2 | 3 << 13 | 1 << 31, 4 | 4 << 13 | 1 << 21]),
        ("0 x: FMA R1.x, R2.x, R3.x, R4.x", [2 | 3 << 13 | 1 << 31, 4 | 7 << 13 | 1 << 21]),
        // AluOutputModifier
        ("0 x: MUL*2 R1.x, R2.x, R3.x", with(mul([r(2, 0), r(3, 0)]), 0, 1 << 5)),
        ("0 x: MUL_e*4 R1.x, R2.x, R3.x", with(op2(2, 1, 0, [r(2, 0), r(3, 0)]), 0, 2 << 5)),
        ("0 x: ADD/2 R1.x, R2.x, R3.x", with(op2(0, 1, 0, [r(2, 0), r(3, 0)]), 0, 3 << 5)),
        // AluDst
        ("0 y: MOV ____, R2.x", [2 | 1 << 31, 25 << 7 | 1 << 29]),
        ("0 t: MOV _, R2.x", [2 | 1 << 31, 25 << 7]),
        ("0 z: MOV R1, R2.x", op2(25, 1, 2, [r(2, 0), NONE])),
        ("0 x: MOV R1[AR.x].x, R2.x", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 1 << 28)),
        ("0 x: MOV R1[AR.z].x, R2.x", with(op2(25, 1, 0, [r(2, 0), NONE]), 2 << 26, 1 << 28)),
        ("0 x: MOV R1[AL].x, R2.x", with(op2(25, 1, 0, [r(2, 0), NONE]), 4 << 26, 1 << 28)),
        // The letter of the unit and the component may differ. The component decides.
        ("0 x: MOV R1.y, R2.x", op2(25, 1, 1, [r(2, 0), NONE])),
        // AluSrc: Negate, AluAbsSrcValue, AluRel, OneCompSwizzle
        ("0 x: MOV R1.x, -R2.W", op2(25, 1, 0, [(2, 3, 1, 0), NONE])),
        ("0 x: MOV R1.x, |R2.x|", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 1)),
        ("0 x: MOV R1.x, -|R2|.x", with(op2(25, 1, 0, [(2, 0, 1, 0), NONE]), 0, 1)),
        ("0 x: MUL R1.x, R2.x, |R3|.y", with(mul([r(2, 0), r(3, 1)]), 0, 2)),
        ("0 x: MOV R1.x, C16[AR.x].x", op2(25, 1, 0, [(256 + 16, 0, 0, 1), NONE])),
        ("0 x: MOV R1.x, R2[AL].x", with(op2(25, 1, 0, [(2, 0, 0, 1), NONE]), 4 << 26, 0)),
        ("0 z: MOV R1.z, R2", op2(25, 1, 2, [r(2, 2), NONE])),
        // AluSrcValue
        ("0 x: MOV R1.x, KC0[4].y", op2(25, 1, 0, [(132, 1, 0, 0), NONE])),
        ("0 x: MOV R1.x, KC1[ 5 ].w", op2(25, 1, 0, [(165, 3, 0, 0), NONE])),
        ("0 x: MOV R1.x, C2.x", op2(25, 1, 0, [(258, 0, 0, 0), NONE])),
        ("0 y: MOV R1.y, PS3", op2(25, 1, 1, [(255, 1, 0, 0), NONE])),
        ("0 x: MOV R1.x, PV12.z", op2(25, 1, 0, [(254, 2, 0, 0), NONE])),
        ("0 y: MOV R1.y, 0.0f", op2(25, 1, 1, [(248, 1, 0, 0), NONE])),
        ("0 x: MOV R1.x, (0x00000000, 0.0f)", op2(25, 1, 0, [(248, 0, 0, 0), NONE])),
        // AluProperties
        ("0 x: MOV R1.x, R2.x VEC_012", op2(25, 1, 0, [r(2, 0), NONE])),
        ("0 x: MOV R1.x, R2.x VEC_021", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 1 << 18)),
        ("0 x: MOV R1.x, R2.x VEC_120", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 2 << 18)),
        ("0 x: MOV R1.x, R2.x VEC_102", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 3 << 18)),
        ("0 x: MOV R1.x, R2.x VEC_201", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 4 << 18)),
        ("0 x: MOV R1.x, R2.x VEC_210", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 5 << 18)),
        ("0 t: MOV R1.x, R2.x SCL_210", op2(25, 1, 0, [r(2, 0), NONE])),
        ("0 t: MOV R1.x, R2.x SCL_122", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 1 << 18)),
        ("0 t: MOV R1.x, R2.x SCL_212", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 2 << 18)),
        ("0 t: MOV R1.x, R2.x SCL_221", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 3 << 18)),
        ("0 x: MOV R1.x, R2.x CLAMP", with(op2(25, 1, 0, [r(2, 0), NONE]), 0, 1 << 31)),
        ("0 x: MOV R1.x, R2.x PRED_SEL_OFF", op2(25, 1, 0, [r(2, 0), NONE])),
        ("0 x: MOV R1.x, R2.x PRED_SEL_ZERO", with(op2(25, 1, 0, [r(2, 0), NONE]), 2 << 29, 0)),
        ("0 x: MOV R1.x, R2.x PRED_SEL_ONE", with(op2(25, 1, 0, [r(2, 0), NONE]), 3 << 29, 0)),
        ("0 x: PRED_SETE ____, R2.x, R3.x UPDATE_PRED", [2 | 3 << 13 | 1 << 31, 0x20 << 7 | 1 << 3]),
        ("0 x: PRED_SETE ____, R2.x, R3.x UPDATE_EXEC_MASK", [2 | 3 << 13 | 1 << 31, 0x20 << 7 | 1 << 2]),
        (
            "0 x: PRED_SETE ____, R2.x, R3.x UPDATE_EXEC_MASK(DEACTIVATE)",
            [2 | 3 << 13 | 1 << 31, 0x20 << 7 | 1 << 2],
        ),
        (
            "0 x: PRED_SETE ____, R2.x, R3.x UPDATE_EXEC_MASK (BREAK)",
            [2 | 3 << 13 | 1 << 31, 0x20 << 7 | 1 << 2 | 1 << 5],
        ),
        (
            "0 x: PRED_SETE ____, R2.x, R3.x UPDATE_EXEC_MASK(CONTINUE)",
            [2 | 3 << 13 | 1 << 31, 0x20 << 7 | 1 << 2 | 2 << 5],
        ),
        (
            "0 x: PRED_SETE ____, R2.x, R3.x UPDATE_EXEC_MASK(KILL)",
            [2 | 3 << 13 | 1 << 31, 0x20 << 7 | 1 << 2 | 3 << 5],
        ),
    ];
    for (line, words) in rows {
        assert_eq!(clause(line), words, "{line}");
    }
}

/// Every operation in the grammar's lists is accepted. (grammar.txt, AluOpcode0 to AluOpcode3)
#[test]
fn alu_operations_of_latte_assembler() {
    let one = "FLT64_TO_FLT32 FLT32_TO_FLT64 FREXP_64 FRACT TRUNC CEIL RNDNE FLOOR MOVA_FLOOR MOVA_INT MOVA MOV EXP_IEEE \
        LOG_CLAMPED LOG_IEEE RECIP_CLAMPED RECIP_IEEE RECIP_UINT RECIP_INT RECIP_FF RECIPSQRT_CLAMPED RECIPSQRT_IEEE \
        RECIPSQRT_FF SQRT_IEEE FLT_TO_INT INT_TO_FLT UINT_TO_FLT FLT_TO_UINT SIN COS FRACT_64";
    let two = "MULLO_INT MULHI_INT MULLO_UINT MULHI_UINT MUL_IEEE MUL_64 MUL MAX_DX10 MAX_UINT MAX_INT MAX MIN_DX10 MIN_UINT \
        MIN_INT MIN SETE SETGT SETGE SETNE SETE_DX10 SETGT_DX10 SETGE_DX10 SETNE_DX10 ADD_INT ADD_64 ADD PRED_SETGT_PUSH_INT \
        PRED_SETGT_PUSH PRED_SETGT_UINT PRED_SETGT_INT PRED_SETGT_64 PRED_SETGT PRED_SETGE_PUSH_INT PRED_SETGE_PUSH \
        PRED_SETGE_UINT PRED_SETGE_INT PRED_SETGE_64 PRED_SETGE PRED_SETE_PUSH_INT PRED_SETE_INT PRED_SETE_PUSH PRED_SETE_64 \
        PRED_SETE PRED_SETNE_PUSH_INT PRED_SETNE_PUSH PRED_SETNE_INT PRED_SETNE PRED_SETLT_PUSH_INT PRED_SETLE_PUSH_INT \
        PRED_SET_INV PRED_SET_POP PRED_SET_CLR PRED_SET_RESTORE KILLE KILLGT KILLGE KILLNE AND_INT OR_INT XOR_INT NOT_INT \
        SUB_INT SETE_INT SETGT_INT SETGE_INT SETNE_INT SETGT_UINT SETGE_UINT KILLGT_UINT KILLGE_UINT KILLE_INT KILLGT_INT \
        KILLGE_INT KILLNE_INT DOT4_IEEE DOT4 CUBE MAX4 ASHR_INT LSHR_INT LSHL_INT LDEXP_64";
    let three = "MULADD_64_D2 MULADD_64_M4 MULADD_64_M2 MULADD_64 MUL_LIT_D2 MUL_LIT_M4 MUL_LIT_M2 MUL_LIT MULADD_IEEE_D2 \
        MULADD_IEEE_M4 MULADD_IEEE_M2 MULADD_IEEE MULADD_D2 MULADD_M4 MULADD_M2 MULADD CNDGE_INT CNDGE CNDGT_INT CNDGT \
        CNDE_INT CNDE";
    for (names, sources) in [(one, ", R2.x"), (two, ", R2.x, R3.x"), (three, ", R2.x, R3.x, R4.x")] {
        for name in names.split_whitespace() {
            let words = clause(&format!("0 x: {name} R1.x{sources}"));
            assert_eq!(words[0], 1 << 31 | 2 | if sources.len() > 6 { 3 << 13 } else { 0 }, "{name}");
        }
    }
}

/// Each literal has its own component, in order. (assembler_alu.cpp)
#[test]
fn literals_of_latte_assembler() {
    let of = |lines: &str| clause(lines);
    let literal = |chan: u32| (253, chan, 0, 0);
    let mov = |chan, source| op2(25, 1, chan, [source, NONE]);
    let last = |words: [u32; 2]| [words[0] & !(1 << 31), words[1]];
    let eighth = 0x3e00_0000;
    assert_eq!(of("0 x: MOV R1.x, (0x3E000000, 0.125)"), [mov(0, literal(0)), [eighth, 0]].concat());
    assert_eq!(of("0 x: MOV R1.x, ( 0x3E000000 , 0.125f )"), [mov(0, literal(0)), [eighth, 0]].concat());
    assert_eq!(of("0 x: MOV R1.x, 0x3E000000"), [mov(0, literal(0)), [eighth, 0]].concat());
    assert_eq!(of("0 x: MOV R1.x, 0x0"), [mov(0, literal(0)), [0, 0]].concat());
    assert_eq!(of("0 x: MOV R1.x, 0.125f"), [mov(0, literal(0)), [eighth, 0]].concat());
    assert_eq!(of("0 x: MOV R1.x, 1.0f"), [mov(0, literal(0)), [0x3f80_0000, 0]].concat());
    assert_eq!(of("0 x: MOV R1.x, 1"), [mov(0, literal(0)), [0x3f80_0000, 0]].concat());
    assert_eq!(of("0 x: MOV R1.x, -0.5"), [mov(0, (253, 0, 1, 0)), [0x3f00_0000, 0]].concat());
    assert_eq!(of("0 x: MOV R1.x, 1.0e-3f"), [mov(0, literal(0)), [0.001_f32.to_bits(), 0]].concat());
    let twice =
        "0 x: MOV R1.x, (0x3E000000, 0.125)\n   y: MOV R1.y, (0x3E000000, 0.125)\n   z: MOV R1.z, 2.0";
    let words = [last(mov(0, literal(0))), last(mov(1, literal(1))), mov(2, literal(2))];
    assert_eq!(of(twice), [words.concat(), vec![eighth, eighth, 2.0_f32.to_bits(), 0]].concat());
    // A listing of the vendor's code has a count that shows that equal literals share a component.
    let counted = format!("00 ALU: ADDR(32) CNT(4)\n{twice}\n01 EXP_DONE: PIX0, R1\nEND_OF_PROGRAM\n");
    let words = [last(mov(0, literal(0))), last(mov(1, literal(0))), mov(2, literal(1))];
    assert_eq!(good(&counted).words[64..], [words.concat(), vec![eighth, 2.0_f32.to_bits()]].concat());
}

/// One row for each form of the grammar's control flow and exports. (grammar.txt; `assembler_cf.cpp`, `assembler_exp.cpp`)
#[test]
fn control_flow_forms_of_latte_assembler() {
    let cf = |inst: u32| [0, BARRIER | inst << 23];
    let with = |[word0, word1]: [u32; 2], low: u32, high: u32| [word0 | low, word1 | high];
    let export = |inst: u32, kind: u32, base: u32, gpr: u32, selects: u32| {
        [base | kind << 13 | gpr << 15, BARRIER | inst << 23 | selects]
    };
    let (exp, done, xyzw) = (0x27, 0x28, 0o3210);
    let rows: Vec<(&str, [u32; 2])> = vec![
        ("NOP", cf(0)),
        ("LOOP_START FAIL_JUMP_ADDR(5) CF_CONST(3)", with(cf(4), 5, 3 << 3)),
        ("LOOP_END PASS_JUMP_ADDR( 1 )", with(cf(5), 1, 0)),
        ("LOOP_START_DX10 FAIL_JUMP_ADDR(8)", with(cf(6), 8, 0)),
        ("LOOP_START_NO_AL ADDR(8)", with(cf(7), 8, 0)),
        ("LOOP_CONTINUE ADDR(8)", with(cf(8), 8, 0)),
        ("LOOP_BREAK ADDR(8) POP_CNT(1)", with(cf(9), 8, 1)),
        ("JUMP POP_CNT(1) ADDR(3)", with(cf(10), 3, 1)),
        ("PUSH ADDR(3)", with(cf(11), 3, 0)),
        ("PUSH_ELSE ADDR(3)", with(cf(12), 3, 0)),
        ("ELSE POP_CNT(1) ADDR(7)", with(cf(13), 7, 1)),
        ("POP POP_CNT(2)", with(cf(14), 0, 2)),
        ("POP_JUMP ADDR(3)", with(cf(15), 3, 0)),
        ("POP_PUSH ADDR(3)", with(cf(16), 3, 0)),
        ("POP_PUSH_ELSE ADDR(3)", with(cf(17), 3, 0)),
        ("CALL ADDR(9)", with(cf(18), 9, 0)),
        ("CALL_FS NO_BARRIER", [0, 19 << 23]),
        ("RETURN", cf(20)),
        ("EMIT_VERTEX", cf(21)),
        ("EMIT_CUT_VERTEX", cf(22)),
        ("CUT_VERTEX", cf(23)),
        ("KILL VALID_PIX", with(cf(24), 0, 1 << 22)),
        ("END_PROGRAM", cf(25)),
        ("WAIT_ACK WHOLE_QUAD_MODE", with(cf(26), 0, 1 << 30)),
        ("NOP WHOLE_QUAD", with(cf(0), 0, 1 << 30)),
        ("EXP_DONE: PIX0, R0", export(done, 0, 0, 0, xyzw)),
        ("EXP: PIX1, R2.xyzw", export(exp, 0, 1, 2, xyzw)),
        ("EXP_DONE: POS0, R2.xyz1", export(done, 1, 60, 2, 0o5210)),
        ("EXP_DONE: PARAM3, R1.x_0Y NO_BARRIER", export(done, 2, 3, 1, 0o1470).map(|word| word & !BARRIER)),
        // Missing selects of a partial register default to 0, 0, 0, 1.
        ("EXP_DONE: PARAM0, R1.xy", export(done, 2, 0, 1, 0o5410)),
        ("EXP: PIX0, R[AL + 3]", with(export(exp, 0, 0, 3, xyzw), 1 << 22, 0)),
        ("EXP: PIX0, R1 BURSTCNT(4) ELEM_SIZE(3)", with(export(exp, 0, 0, 1, xyzw), 3 << 30, 4 << 17)),
        ("EXP: PIX0, R1 WHOLE_QUAD VALID_PIX", with(export(exp, 0, 0, 1, xyzw), 0, 1 << 30 | 1 << 22)),
    ];
    for (line, words) in rows {
        let found = good(&format!("00 {line}\n01 EXP_DONE: PIX0, R0\nEND_OF_PROGRAM\n")).words;
        assert_eq!(found[..2], words, "{line}");
        assert_eq!(found[3] >> 21 & 1, 1);
    }
    let alu = |attributes: &str| {
        let source = format!("00 {attributes}\n0 x: MOV R0.x, R1.x\n01 NOP\nEND_OF_PROGRAM\n");
        let words = good(&source).words;
        [words[0], words[1]]
    };
    let rows = [
        ("ALU:", [32, BARRIER | 8 << 26]),
        ("ALU_PUSH_BEFORE: ADDR(32) CNT(1)", [32, BARRIER | 9 << 26]),
        ("ALU_POP_AFTER:", [32, BARRIER | 10 << 26]),
        ("ALU_POP2_AFTER:", [32, BARRIER | 11 << 26]),
        ("ALU_EXT:", [32, BARRIER | 12 << 26]),
        ("ALU_CONTINUE:", [32, BARRIER | 13 << 26]),
        ("ALU_BREAK:", [32, BARRIER | 14 << 26]),
        ("ALU_ELSE_AFTER:", [32, BARRIER | 15 << 26]),
        ("ALU: KCACHE0(CB0:0-15)", [32 | 1 << 30, BARRIER | 8 << 26]),
        ("ALU: KCACHE0 ( CB2 : 16 - 47 )", [32 | 2 << 22 | 2 << 30, BARRIER | 8 << 26 | 1 << 2]),
        ("ALU: KCACHE1(CB1:32-47)", [32 | 1 << 26, BARRIER | 8 << 26 | 1 | 2 << 10]),
        ("ALU: USES_WATERFALL WHOLE_QUAD_MODE NO_BARRIER", [32, 8 << 26 | 1 << 25 | 1 << 30]),
    ];
    for (line, words) in rows {
        assert_eq!(alu(line), words, "{line}");
    }
}

/// One row for each form of the grammar's texture clauses. (grammar.txt, `assembler_tex.cpp`)
#[test]
fn texture_forms_of_latte_assembler() {
    let fetch = |line: &str| {
        let words = good(&format!("00 TEX:\n0 {line}\n01 EXP_DONE: PIX0, R0\nEND_OF_PROGRAM\n")).words;
        assert_eq!(words[0], 32, "with no ALU clause before them texture clauses begin at word 32");
        words[64..].to_vec()
    };
    let normal = 15 << 28;
    let tex = |inst: u32, low: u32, dst: u32, high: u32, third: u32| {
        vec![inst | low, dst | 0o3210 << 9 | high, 0o3210 << 20 | third, 0]
    };
    let sample = |low, high, third| tex(16, low, 0, normal | high, third);
    let rows: Vec<(&str, Vec<u32>)> = vec![
        ("SAMPLE R0, R0, t0, s0", sample(0, 0, 0)),
        (
            "SAMPLE R2.xy__, R5.xy0x, t2, s3",
            vec![16 | 2 << 8 | 5 << 16, 2 | 0o7710 << 9 | normal, 0o0410 << 20 | 3 << 15, 0],
        ),
        ("SAMPLE ____, R0, t0, s0", vec![16, 0o7777 << 9 | normal, 0o3210 << 20, 0]),
        ("SAMPLE R0.xy, R0.y, t0, s0", vec![16, 0o3210 << 9 | normal, 0o3211 << 20, 0]),
        ("SAMPLE R1[AL], R2[AL], t0, s0", tex(16, 2 << 16 | 1 << 23, 1 | 1 << 7, normal, 0)),
        ("SAMPLE R0, R0, t0, s0 WHOLE_QUAD_MODE", sample(1 << 7, 0, 0)),
        ("SAMPLE R0, R0, t0, s0 ALT_CONST", sample(1 << 24, 0, 0)),
        ("SAMPLE R0, R0, t0, s0 BC_FRAC_MODE", sample(1 << 5, 0, 0)),
        ("SAMPLE R0, R0, t0, s0 DENORM(XyZW)", tex(16, 0, 0, 0, 0)),
        ("SAMPLE R0, R0, t0, s0 DENORM(xyzw) NORM(y)", tex(16, 0, 0, 2 << 28, 0)),
        ("SAMPLE R0, R0, t0, s0 LOD(1.5)", sample(0, 12 << 21, 0)),
        ("SAMPLE R0, R0, t0, s0 LOD(-0.125)", sample(0, 0x7f << 21, 0)),
        ("SAMPLE R0, R0, t0, s0 XOFFSET(1.5) YOFFSET(-1) ZOFFSET(0.5f)", sample(0, 0, 3 | 30 << 5 | 1 << 10)),
    ];
    for (line, words) in rows {
        assert_eq!(fetch(line), words, "{line}");
    }
    let names = "VTX_FETCH VTX_SEMANTIC MEM LD GET_TEXTURE_INFO GET_SAMPLE_INFO GET_COMP_TEX_LOD GET_GRADIENTS_H \
        GET_GRADIENTS_V GET_LERP KEEP_GRADIENTS SET_GRADIENTS_H SET_GRADIENTS_V PASS SET_CUBEMAP_INDEX FETCH4 SAMPLE SAMPLE_L \
        SAMPLE_LB SAMPLE_LZ SAMPLE_G SAMPLE_G_L SAMPLE_G_LB SAMPLE_G_LZ SAMPLE_C SAMPLE_C_L SAMPLE_C_LB SAMPLE_C_LZ SAMPLE_C_G \
        SAMPLE_C_G_L SAMPLE_C_G_LB SAMPLE_C_G_LZ";
    for (number, name) in (0..).zip(names.split_whitespace()) {
        assert_eq!(fetch(&format!("{name} R0, R0, t0, s0")), tex(number, 0, 0, normal, 0), "{name}");
    }
    // The numbers of these operations exceed the five bits of TEX_INST.
    for name in
        ["SET_TEXTURE_OFFSETS", "GATHER4", "GATHER4_O", "GATHER4_C", "GATHER4_C_O", "GET_BUFFER_RESINFO"]
    {
        let source = format!("00 TEX:\n0 {name} R0, R0, t0, s0\nEND_OF_PROGRAM\n");
        assert!(assemble(&source, Chip::RV770).is_err(), "{name}");
    }
    let clause = |attributes: &str| {
        let source = format!("00 TEX: {attributes}\n0 SAMPLE R0, R0, t0, s0\n01 NOP\nEND_OF_PROGRAM\n");
        good(&source).words[1]
    };
    let rows = [
        ("ADDR(32) CNT(1)", BARRIER),
        ("ADDR() CNT() VALID_PIX", BARRIER | 1 << 22),
        ("CF_CONST(2) CND(BOOL)", BARRIER | 2 << 3 | 2 << 8),
        ("CND(CF_NOT_BOOL)", BARRIER | 3 << 8),
        ("CND(ALWAYS_FALSE)", BARRIER | 1 << 8),
        ("CND(ACTIVE)", BARRIER),
        ("WHOLE_QUAD NO_BARRIER", 1 << 30),
    ];
    for (attributes, word) in rows {
        assert_eq!(clause(attributes), word | 1 << 23, "{attributes}");
    }
    let ack = good("00 TEX_ACK:\n0 SAMPLE R0, R0, t0, s0\nEND_OF_PROGRAM\n").words;
    assert_eq!(ack[1], BARRIER | 27 << 23 | 1 << 21);
}

/// ALU clauses begin at a multiple of 32, then texture clauses at a multiple of 16, in the order of control flow.
/// (`assembler_cf.cpp`)
#[test]
fn clauses_lie_where_latte_assembler_has_them() {
    let source = "00 TEX: VALID_PIX\n0 SAMPLE R1, R1.xy0x, t0, s0\n01 ALU:\n1 x: MUL R0.x, R0.x, R1.x\n   y: MUL R0.y, R0.y, R1.y\n\
                  02 TEX:\n2 SAMPLE R2, R0, t1, s0\n03 ALU:\n3 x: MOV R0.x, R2.x\n04 EXP_DONE: PIX0, R0\nEND_OF_PROGRAM\n";
    let words = good(source).words;
    let addr = |number: usize| words[2 * number] & 0x3f_ffff;
    assert_eq!([addr(1), addr(3), addr(0), addr(2)], [32, 34, 48, 50]);
    assert_eq!(words.len(), 2 * 52);
    assert_eq!(words[9] >> 21 & 1, 1, "END_OF_PROGRAM is a bit of the last instruction");
}

/// The example sources of latte-assembler have these statements. (decaf-emu, `gfd.cpp`, `gfd_vsh_comment_parser.cpp`)
#[test]
fn comments_state_the_registers_of_a_header() {
    let source = "; $MODE = \"UniformRegister\"\n; $ATTRIB_VARS[0].name = \"colour\"\n; $ATTRIB_VARS[0].type = \"vec4\"\n\
                  ; $ATTRIB_VARS[1].location = 5\n; $NUM_SPI_VS_OUT_ID = 1\n; $SPI_VS_OUT_ID[0].SEMANTIC_0 = 0\n\
                  ; $SPI_VS_OUT_CONFIG.VS_EXPORT_COUNT = 1\n; $PA_CL_VS_OUT_CNTL.CLIP_DIST_ENA_1 = true\n\
                  ; plain text\n00 CALL_FS NO_BARRIER\n01 EXP_DONE: POS0, R2.xyzw\n02 EXP_DONE: PARAM0, R1.xyzw NO_BARRIER\nEND_OF_PROGRAM\n";
    let assembled = good(source);
    let state = |name: &str| {
        assembled.state.iter().find(|(known, _)| known == name).map(|(_, values)| values.clone())
    };
    for (name, value) in [
        ("gprs", 3),
        ("stack", 1),
        ("state SQ_PGM_RESOURCES_VS", 3 | 1 << 8),
        ("state SPI_VS_OUT_CONFIG", 2),
        ("state SPI_VS_OUT_ID_0", 0xffff_ff00),
        ("state PA_CL_VS_OUT_CNTL", 2 | 1 << 22),
        ("state SQ_VTX_SEMANTIC_0", 0),
        ("state SQ_VTX_SEMANTIC_1", 5),
        ("state SQ_VTX_SEMANTIC_CLEAR", 0xffff_fffc),
        ("state VGT_VERTEX_REUSE_BLOCK_CNTL", 14),
        ("state VGT_HOS_REUSE_DEPTH", 16),
        ("state VGT_PRIMITIVEID_EN", 0),
        ("state VGT_STRMOUT_BUFFER_EN", 0),
    ] {
        assert_eq!(state(name), Some(vec![value]), "{name}");
    }
    assert_eq!(state("stage vertex"), Some(vec![]));
    assert_eq!(assembled.warnings.len(), 1);
    assert!(assembled.warnings[0].message.contains("MODE, ATTRIB_VARS"), "{}", assembled.warnings[0]);
    let pixel = "; $SPI_PS_INPUT_CNTL[0].SEMANTIC = 0\n; $SPI_PS_INPUT_CNTL[0].DEFAULT_VAL = 1\n; $NUM_SPI_PS_INPUT_CNTL = 1\n\
                 ; $SPI_PS_IN_CONTROL_0.BARYC_SAMPLE_CNTL = \"centroids_only\"\n00 EXP_DONE: PIX0, R0\nEND_OF_PROGRAM\n";
    let assembled = good(pixel);
    let state =
        |name: &str| assembled.state.iter().find(|(known, _)| known == name).map(|(_, values)| values[0]);
    assert_eq!(state("state SPI_PS_IN_CONTROL_0"), Some(1 | 1 << 28));
    assert_eq!(state("state SPI_PS_INPUT_CNTL_0"), Some(1 << 8));
    assert_eq!(state("state DB_SHADER_CONTROL"), Some(1 << 4));
    assert_eq!((state("state CB_SHADER_MASK"), state("state CB_SHADER_CONTROL")), (Some(15), Some(1)));
    assert_eq!((state("gprs"), state("stack")), (Some(1), Some(0)));
    for (wrong, message) in [
        ("; $SQ_PGM_RESOURCE_PS.NUM_GPRS = 1", "unknown register"),
        ("; $SQ_PGM_RESOURCES_PS.NUM_GPR = 1", "unknown field"),
        ("; $SQ_PGM_RESOURCES_PS.NUM_GPRS = 256", "the value does not fit"),
        ("; $SPI_VS_OUT_ID[10].SEMANTIC_0 = 1", "more than there are"),
        ("; $SPI_INPUT_Z", "a value was expected"),
    ] {
        let faults = assemble(&format!("{wrong}\n00 EXP_DONE: PIX0, R0\nEND_OF_PROGRAM\n"), Chip::RV770);
        assert_eq!(faults.unwrap_err()[0].message, message, "{wrong}");
    }
}

#[test]
fn both_texts_stand_beside_one_another() {
    let own = "ALU:\n 0 x: MUL_IEEE R1.x, R0.x, C[2].x OMOD(M2) BANK(021)\n t: RECIP_IEEE R127.y, PV.x\n\
               JUMP: ADDR(2) POP_CNT(1)\nEXPORT_DONE: POS[60], R1.xyzw END_OF_PROGRAM\n";
    let mixed = "ALU:\n 0 x: MUL_e*2 R1.x, R0.x, C2.x VEC_021\n t: RCP_e T0.y, PV0.x\n\
                 JUMP POP_CNT(1) ADDR(2)\nEXP_DONE: POS0, R1 END_OF_PROGRAM\n";
    assert_eq!(good(mixed).words, good(own).words);
    let loops =
        "LOOP_DX10 i0 FAIL_JUMP_ADDR(3)\nBREAK ADDR(2)\nENDLOOP i0 PASS_JUMP_ADDR(1)\nPOP (1) ADDR(4)\nRET\n";
    let named = "LOOP_START_DX10: ADDR(3)\nLOOP_BREAK: ADDR(2)\nLOOP_END: ADDR(1)\nPOP: ADDR(4) POP_CNT(1)\nRETURN:\n";
    assert_eq!(good(loops).words, good(named).words);
    let fetches = "VTX:\n VFETCH R1.xyz1, R0.x, fc3 FORMAT(32_32_32_FLOAT) FORMAT_COMP(SIGNED) MEGA(12) FETCH_TYPE(NO_INDEX_OFFSET)\n \
                   SEMANTIC SEM[5].xyzw, R0.x, b0 MINI(4) ENDIAN_SWAP(8IN32)\nNOP: END_OF_PROGRAM\n";
    let ours = "VTX:\n FETCH R1.xyz1, R0.x, b3 FORMAT(32_32_32_FLOAT) SIGNED MEGA(12) TYPE(NO_INDEX_OFFSET)\n \
                SEMANTIC S5.xyzw, R0.x, b0 MEGA(4) MINI ENDIAN(8IN32)\nNOP: END_OF_PROGRAM\n";
    assert_eq!(good(fetches).words, good(ours).words);
    let memory = "MEM_EXPORT_WRITE_IND: DWORD_PTR[3+R1.x], R2.xy__, ARRAY_SIZE(4) ELEM_SIZE(1) VPM\n\
                  MEM_SCRATCH_WRITE: VEC_PTR[2], R3, ARRAY_SIZE(7)\nMEM_STREAM0: WRITE(8 + R1), R2.x___ ARRAY_SIZE(1)\nNOP: END_OF_PROGRAM\n";
    let ours = "MEM_EXPORT: WRITE_IND[3], R2.xy__ ARRAY_SIZE(4) INDEX_GPR(1) ELEM_SIZE(1) VALID_PIX\n\
                MEM_SCRATCH: WRITE[2], R3.xyzw ARRAY_SIZE(7)\nMEM_STREAM0: WRITE_IND[2], R2.x___ INDEX_GPR(1) ARRAY_SIZE(1)\nNOP: END_OF_PROGRAM\n";
    assert_eq!(good(memory).words, good(ours).words);
    // One group of several slots on one line.
    let line = "ALU:\n 0 x: MOV R1.x, R0.x CLAMP y: MOV R1.y, R0.y\nNOP: END_OF_PROGRAM\n";
    let lines = "ALU:\n 0 x: MOV R1.x, R0.x CLAMP\n y: MOV R1.y, R0.y\nNOP: END_OF_PROGRAM\n";
    assert_eq!(good(line).words, good(lines).words);
}

#[test]
fn a_listing_in_amds_text_reads_as_amds_disassemblers_print_it() {
    let own = "TEX: ADDR(8) CNT(1) VALID_PIX\n SAMPLE R0.xyzw, R0.xy0x, t0, s0 UNNORM_X UNNORM_Y LOD_BIAS(4)\n\
               ALU: ADDR(16) CNT(5) KCACHE0(CB0:0-15)\n 0 x: MUL_IEEE R1.x, R0.x, KC0[4].y OMOD(M2)\n y: MOV _.y, 1.0\n \
               t: RECIP_IEEE R127.x, |R0.w| BANK(021)\n 1 z: ADD R1.z, PV.x, -(0x3e000000, 0.125).x CLAMP BANK(102)\n\
               LOOP_START_DX10: ADDR(4)\nLOOP_END: ADDR(3)\nEXPORT_DONE: PIXEL[0], R1.xyz1 END_OF_PROGRAM\n";
    let words = good(own).words;
    let options = Options { syntax: Syntax::Amd, ..Options::default() };
    let text = disassemble(&words, Chip::RV770, options).text;
    let expected = ".chip rv770
.syntax amd
00 TEX: ADDR(8) CNT(1) VALID_PIX
      0  SAMPLE R0, R0.xy0x, t0, s0 UNNORM(XY) LOD(0.5)
01 ALU: ADDR(16) CNT(5) KCACHE0(CB0:0-15)
      1  x: MUL_e*2     R1.x, R0.x, KC0[4].y
         y: MOV         ____, 1.0f
         t: RCP_e       T0.x, |R0.w| SCL_122
      2  z: ADD         R1.z, PV1.x, -(0x3E000000, 0.125f).x CLAMP VEC_102
02 LOOP_START_DX10 FAIL_JUMP_ADDR(4)
03 LOOP_END PASS_JUMP_ADDR(3)
04 EXP_DONE: PIX0, R1.xyz1
END_OF_PROGRAM
";
    let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with('.') || line.len() < 13).collect();
    let plain: Vec<&str> =
        plain.into_iter().filter(|line| !line.starts_with(".org") && !line.starts_with(".zero")).collect();
    assert_eq!(plain, expected.lines().collect::<Vec<_>>());
    assert_eq!(good(&text).words, words);
}
