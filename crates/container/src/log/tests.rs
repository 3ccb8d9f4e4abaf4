use reconverge_isa::program::Resources;

use super::*;

const FETCH: &str = "--------------------------------------------------------------\nVertex elements state:\n   {src_offset = 0, }\n\
    bytecode 8 dw -- 2 gprs -- 1 nstack -------------\nshader 0 -- 7\n0000 00000002 81000000  VTX 1 @4 \n \
    0004 7C00A000 08CD1001 00080000   VFETCH         R1.xyzw, R0.x,  RID:160 VERTEX MFC:31 UCF:0 FMT(DTA:35 NUM:0)\n\
    0002 00000000 8A000000  RET @0 \n--------------------------------------\n";

const PIXEL: &str = "shader: MESA_SHADER_FRAGMENT\ninputs: 1\nimpl main {\n\tblock block_0:\n\t/* preds: */\n\
    \tvec1 32 ssa_1 = load_const (0x00000000 = 0.000000)\n}\n--TGSI-----\nFRAG\nPROPERTY NEXT_SHADER VERT\n  0: MOV OUT[0], IN[0]\n\
    --------------------------------------------------------------\nbytecode 14 dw -- 3 gprs -- 2 nstack -------------\nshader 1 -- 7\n\
    0000 00000003 A0080000  ALU 3 @6 \n 0006 801FA080 60001D90     1 w:     SETGT_INT      R0.w,  KC0[0].x, [0x00000002 0.000000]\n \
    0008 00000002                                               0.000000 (2)\n \
    0010 00000CFE 00401990     2 x:     NOT_INT                R2.x,  PV.w\n \
    0012 80000CFE 20401990       y:     NOT_INT                R2.y,  PV.x\n\
    0002 C0004000 94000A88  EXPORT_DONE        PARAM 0     R0.xyz1      ES:3 \n\
    0004 C0000000 94200688  EXPORT_DONE        PIXEL 0     R0.xyzw      ES:3 EOP \n--------------------------------------\n";

const SB: &str = "===== SHADER #3 OPT ========================================== PS/RV730/R700 =====\n\
    ===== 12 dw ===== 4 gprs ===== 1 stack =========================================\n\
    0000  00000004 80800000 TEX 1 @8\n 0008  00000010 f00d1000 68800000 SAMPLE R0.xyzw, R0.xyzw\n\
    0002  00000000 94200688 EXPORT_DONE        PIXEL 0     R0.xyzw  EOP\n\
    0004  00000000 00000000 NOP @0\n===== SHADER_END ====\n";

const VERTEX: &str = "r300: Initial vertex program\nVERT\n  0: MOV OUT[0], IN[0]\nFinal vertex program code:\n\
    0: op: 0x00f00203 dst: 0o op:                    VE_ADD\n src0: 0x00d10001 reg: 0i swiz:  X/ Y/ Z/ W\n \
    src1: 0x01248001 reg: 0i swiz:  0/ 0/ 0/ 0\n src2: 0x01248001 reg: 0i swiz:  0/ 0/ 0/ 0\n\
    Flow Control Ops: 0x00000002\nLOOP: uw-> 0x00060000 lw-> 0x00010001 loop data->0x00000003\nBefore = 1 First = 6 Last = 0\n";

const FRAGMENT: &str = "R500 Fragment Program:\n--------\n\
    0\t0:CMN_INST   0x00007807:TEX TEX_WAIT wmask: ARGB omask: NONE\n\
    \t1:TEX_INST:  0x02400000: id: 0 op:LD, ACQ, SCALED\n\t2:TEX_ADDR:  0xe400f400: src: 0 R/G/A/A dst: 0 R/G/B/A\n\n\
    1\t0:CMN_INST   0x00078005:OUT TEX_WAIT wmask: NONE omask: ARGB\n\t1:RGB_ADDR   0x08020000:Addr0: 0t\n\
    \t2:ALPHA_ADDR 0x08020001:Addr0: 0t\n\t3 RGB_INST:  0x1c440220:rgb_A_src:0 R/G/B\n\
    \t4 ALPHA_INST:0x1c60c003:MAX dest:0\n\t5 RGBA_INST: 0x00000005:MAX dest:0\n\n";

const BINARY: &str = "translating program of type 4\nMAIN:-1 ()\nBB:0 (3 instructions) - df = { }\n  0: mov u32 $r0 0x00000000 (8)\n\
    program binary (40 bytes)\n10000001 00000003 10000005 00000003 10000009 00000003 1000000d 00000003 \n\
    f0000001 e0000001 \n";

fn read_as(text: &[u8], isa: Option<Isa>) -> Result<Image, Error> {
    assert_eq!(crate::recognise(text), Ok(Format::Log), "{}", String::from_utf8_lossy(text));
    crate::load(text, &Hints { isa, ..Hints::default() })
}

#[track_caller]
fn read(text: &str) -> Image {
    read_as(text.as_bytes(), None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Name, type, registers and stack of a program.
type Head<'a> = (&'a str, Option<Stage>, Option<u32>, Option<u32>);

/// Returns the name, type, registers and stack of each program.
fn heads(image: &Image) -> Vec<Head<'_>> {
    let head = |program: &Program| {
        let Resources { registers, stack, .. } = program.resources;
        (program.name.as_deref().unwrap_or("").to_owned().leak() as &str, program.stage, registers, stack)
    };
    image.programs.iter().map(head).collect()
}

#[test]
fn all_shaders_of_r600_are_read_with_what_their_headers_state() {
    let image = read(&format!(
        "Mesa: a message\n{FETCH}{PIXEL}#include \"x.h\"\nvoid f() {{ memset(s, 0, 1); }}\n{SB}PIGLIT: pass\n"
    ));
    assert_eq!(
        heads(&image),
        [
            ("shader0", Some(Stage::Fetch), Some(2), Some(1)),
            ("shader1", Some(Stage::Pixel), Some(3), Some(2)),
            ("SHADER3-OPT", Some(Stage::Pixel), Some(4), Some(1)),
        ]
    );
    assert_eq!((image.isa, image.chip.as_deref()), (Some(Isa::R700), Some("rv730")));
    assert_eq!(
        image.programs[0].words,
        [2, 0x8100_0000, 0, 0x8a00_0000, 0x7c00_a000, 0x08cd_1001, 0x0008_0000, 0]
    );
    assert_eq!(
        image.programs[1].words,
        [
            3,
            0xa008_0000,
            0xc000_4000,
            0x9400_0a88,
            0xc000_0000,
            0x9420_0688,
            0x801f_a080,
            0x6000_1d90,
            2,
            0,
            0xcfe,
            0x0040_1990,
            0x8000_0cfe,
            0x2040_1990
        ]
    );
    // Fetch clauses are aligned.
    assert_eq!(image.programs[2].words[6..], [0, 0, 0x10, 0xf00d_1000, 0x6880_0000, 0]);
    assert_eq!(image.notes, Vec::<String>::new());
}

#[test]
fn a_class_without_a_chip_is_that_of_the_log_or_of_the_family() {
    assert_eq!(read(PIXEL).chip.as_deref(), Some("r700"));
    assert_eq!(read(&PIXEL.replace("1 -- 7", "1 -- 6")).chip.as_deref(), Some("r600"));
    let both = read(&format!("{SB}{}", PIXEL.replace("1 -- 7", "1 -- 6")));
    assert_eq!(both.chip, None);
    let chips: Vec<_> =
        both.programs.iter().map(|program| both.module_of(program).unwrap().chip.as_deref()).collect();
    assert_eq!(chips, [Some("rv730"), Some("r600")]);
}

#[test]
fn the_program_that_copies_the_output_of_a_geometry_program_is_known_by_its_place() {
    let geometry = PIXEL.replace("MESA_SHADER_FRAGMENT", "MESA_SHADER_GEOMETRY").replace("FRAG\n", "GEOM\n");
    let copy = SB.replace("PS/", "VS/").replace(" OPT", "");
    let stages = |text: &str| read(text).programs.iter().map(|program| program.stage).collect::<Vec<_>>();
    let [g, c, v] = [Some(Stage::Geometry), Some(Stage::GsCopy), Some(Stage::Vertex)];
    assert_eq!(stages(&format!("{geometry}{copy}")), [g, c]);
    // Mesa 25 does not print a program type.
    let plain = &PIXEL[PIXEL.find("bytecode").unwrap()..];
    assert_eq!(stages(&format!("{geometry}{plain}")), [g, c]);
    assert_eq!(stages(&format!("{geometry}VERT\n  0: END\n{copy}")), [g, v]);
    assert_eq!(stages(plain), [None]);
}

#[test]
fn vertex_and_fragment_programs_of_r300_are_read() {
    let image = read(&format!(
        "{VERTEX}r300: Initial fragment program\nFRAG\n  0: END\n{FRAGMENT}{VERTEX}{FRAGMENT}"
    ));
    let stages: Vec<_> = heads(&image).into_iter().map(|(name, stage, ..)| (name, stage)).collect();
    let [vertex, fragment] = [Some(Stage::Vertex), Some(Stage::Fragment)];
    assert_eq!(
        stages,
        [("vertex1", vertex), ("fragment1", fragment), ("vertex2", vertex), ("fragment2", fragment)]
    );
    assert_eq!(image.programs[0].words, [0x00f0_0203, 0x00d1_0001, 0x0124_8001, 0x0124_8001]);
    assert_eq!(
        image.programs[0].state.iter().map(|(name, value)| (&name[13..], *value)).collect::<Vec<_>>(),
        [
            ("CNTL_OPC", 2),
            ("CNTL_ADDRS_UW_0", 0x6_0000),
            ("CNTL_ADDRS_LW_0", 0x1_0001),
            ("CNTL_LOOP_INDEX_0", 3)
        ]
    );
    let words = [
        0x7807,
        0x0240_0000,
        0xe400_f400,
        0,
        0,
        0,
        0x78005,
        0x0802_0000,
        0x0802_0001,
        0x1c44_0220,
        0x1c60_c003,
        5,
    ];
    assert_eq!(image.programs[3].words, words);
    assert_eq!(image.isa, Some(Isa::R500));
    // In a dump without a header, the first instruction number begins a program.
    let lines = &FRAGMENT[FRAGMENT.find("0\t").unwrap()..];
    let twice = read(&format!("{lines}{lines}"));
    assert_eq!(twice.programs.iter().map(|program| &program.words[..]).collect::<Vec<_>>(), [words, words]);
}

#[test]
fn binaries_of_nouveau_are_read() {
    let image = read(&format!("{BINARY}{}", BINARY.replace("type 4", "type 0")));
    assert_eq!(image.isa, Some(Isa::Tesla));
    let stages: Vec<_> = heads(&image).into_iter().map(|(name, stage, ..)| (name, stage)).collect();
    assert_eq!(stages, [("fragment1", Some(Stage::Fragment)), ("vertex1", Some(Stage::Vertex))]);
    assert_eq!(image.programs[1].words[7..], [3, 0xf000_0001, 0xe000_0001]);
    // The dump ends after the stated number of words, so the text after these words is ignored.
    assert_eq!(read(&format!("{BINARY}12345678 triangles\n")).programs.len(), 1);
}

#[test]
fn text_of_llvm_with_encodings_is_read() {
    let text = "\t.text\n\t.section\t.AMDGPU.config\n\t.long\t165968\n\t.long\t259\n\t.long\t165900\n\t.long\t0\n\t.text\n\
        \t.globl\tps                              ; -- Begin function ps\nps:                                     ; @ps\n; %bb.0:\n\
        \tTEX 0 @4                                ; encoding: [0x04,0x00,0x00,0x00,0x00,0x00,0x80,0x80]\n\
        \tEXPORT T0.XYZW                          ; encoding: [0x00,0x00,0x00,0xc0,0x88,0x06,0x20,0x94]\n\
        \tPAD                                     ; encoding: [0x00,0x00,0x00,0x00,0x00,0x00,0x00,0x00]\n\
        \tFetch clause starting at 4:             ; encoding: []\n\
        \t  TEX_SAMPLE T0.XYZW                    ; encoding: [0x10,0x00,0x01,0x00,0x00,0x10,0x0d,0xf0,0x00,0x00,0x80,0x68,0x00,0x00,0x00,0x00]\n\
        .Lfunc_end0:\n\t.size\tps, .Lfunc_end0-ps\n\t.section\t.AMDGPU.csdata\n\t;SQ_PGM_RESOURCES:STACK_SIZE = 1\n";
    let image = read(text);
    assert_eq!(heads(&image), [("ps", Some(Stage::Pixel), Some(3), Some(1))]);
    assert_eq!(
        image.programs[0].words,
        [4, 0x8080_0000, 0xc000_0000, 0x9420_0688, 0, 0, 0, 0, 0x1_0010, 0xf00d_1000, 0x6880_0000, 0]
    );
    let error = |text: &str| read_as(text.as_bytes(), Some(Isa::R700)).unwrap_err().to_string();
    // SQ_PGM_RESOURCES_PS of Evergreen.
    let evergreen = error(&text.replace("165968", "165956"));
    assert!(evergreen.contains("ps is for Evergreen or Cayman"), "{evergreen}");
    let plain: String =
        text.lines().map(|line| line.split("; enc").next().unwrap().to_owned() + "\n").collect();
    assert!(error(&plain).contains("--show-mc-encoding"), "{}", error(&plain));
    assert!(error(&text.replace("at 4:", "at 9:")).contains("`9`"));
    assert!(error(&text.replace("[0x04,", "[A,")).contains("`A`"));
}

#[test]
fn shaders_of_other_chips_are_named_and_the_others_are_read() {
    let hardware = "Fragment Program: after 'x'\nHardware program\n----------------\nNODE 0: alu_offset: 0, tex_offset: 0\n";
    let nvc0 =
        "HDR[00] = 0x00020461\nshader binary code (0x10 bytes):\n00000000 00000000 00000000 00000000 \n";
    for (foreign, own, chip) in [
        (SB.replace("RV730/R700", "REDWOOD/EVERGREEN"), PIXEL, "SHADER3-OPT is for REDWOOD (EVERGREEN)"),
        (SB.replace("RV730/R700", "CAYMAN/CAYMAN"), PIXEL, "CAYMAN (CAYMAN)"),
        (PIXEL.replace("1 -- 7", "1 -- E"), SB, "shader1 is for EVERGREEN"),
        (PIXEL.replace("1 -- 7", "1 -- C"), SB, "shader1 is for CAYMAN"),
        (hardware.to_owned(), VERTEX, "R300 or R400"),
        (VERTEX.replace("uw-> 0x00060000 lw-> 0x00010001 loop data->", ""), FRAGMENT, "R300 or R400"),
        (nvc0.to_owned(), BINARY, "NVC0"),
    ] {
        let image = read(&format!("{foreign}{own}"));
        assert_eq!(image.programs.len(), 1, "{foreign}");
        assert!(image.notes.iter().any(|note| note.contains(chip)), "{chip}: {:?}", image.notes);
        for isa in [None, Some(Isa::R700), Some(Isa::R500), Some(Isa::Tesla)] {
            let error = read_as(foreign.as_bytes(), isa).unwrap_err().to_string();
            assert!(error.contains(chip) && error.starts_with("line "), "{error}");
        }
    }
}

#[test]
fn other_lines_between_and_inside_dumps_are_passed_over() {
    let all = format!("{FETCH}{PIXEL}{SB}{VERTEX}{FRAGMENT}{BINARY}");
    let of = |text: &[u8]| {
        let words = |isa| read_as(text, Some(isa)).unwrap().programs.into_iter().map(|program| program.words);
        Isa::ALL.into_iter().flat_map(words).collect::<Vec<_>>()
    };
    let expected = of(all.as_bytes());
    assert_eq!(expected.len(), 6);
    let timed: String = all
        .lines()
        .enumerate()
        .map(|(number, line)| format!("[ {:>4}.{:03}] app[12]: {line}\n", number / 7, number * 37 % 1000))
        .collect();
    let prefixed: String = all.lines().map(|line| format!("ninja: {line}\n")).collect();
    let coloured: String = all.lines().map(|line| format!("\x1b[1;31m{line}\x1b[0m\n")).collect();
    let mixed: String =
        all.lines().map(|line| format!("{line}\nFPS: 60.5 in frame 12345678\n60 frames\n")).collect();
    let carriage = all.replace('\n', "\r\n");
    for (kind, text) in [
        ("times", timed.into_bytes()),
        ("a name", prefixed.into_bytes()),
        ("colours", coloured.into_bytes()),
        ("other output", mixed.into_bytes()),
        ("CRLF", carriage.into_bytes()),
        ("other bytes", [b"\xff\xfe\x07 caf\xe9\n".as_slice(), all.as_bytes()].concat()),
    ] {
        assert_eq!(of(&text), expected, "{kind}");
    }
}

#[test]
fn a_number_of_a_dump_that_cannot_be_used_is_an_error_with_its_line() {
    for (text, was, is) in [
        (PIXEL, "0000 00000003 A0080000", "0000 00000003 A008000"),
        (PIXEL, "0010 00000CFE 00401990", "0010 00000CFE 0x401990"),
        (PIXEL, "0010 00000CFE", "0010 00000CF"),
        (PIXEL, "0010 00000CFE", "00000CFE"),
        (PIXEL, "0012 80000CFE", "0010 80000CFE"),
        (SB, "f00d1000 68800000 SAMPLE", "f00d1000 68800000 00000000 00000000 SAMPLE"),
        (SB, "f00d1000", "f00d100g"),
        (FRAGMENT, "0x02400000", "0x0240000"),
        (FRAGMENT, "0x02400000", "0240000"),
        (VERTEX, "src1: 0x01248001", "src1: 0x012480010"),
        (VERTEX, " src1:", " src3:"),
        (VERTEX, "uw-> 0x00060000", "uw-> 0x6"),
        (BINARY, "1000000d", "1000000"),
        (BINARY, "f0000001 e0000001", "f0000001 e0000001 00000000"),
        (BINARY, "(40 bytes)", "(41 bytes)"),
    ] {
        let broken = text.replacen(was, is, 1);
        assert_ne!(broken, text, "{was}");
        let line = text[..text.find(was).unwrap()].matches('\n').count() + 1;
        // Valid dumps in the same log do not hide the error.
        let error = read_as(format!("{broken}{FETCH}").as_bytes(), None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line}, ")), "{is}: {error}");
    }
}

#[test]
fn a_dump_without_some_of_its_lines_is_named_and_not_read() {
    for (text, line, what) in [
        (PIXEL, " 0010 00000CFE 00401990", "words 10 to 11"),
        (PIXEL, "0002 C0004000", "words 2 to 3"),
        (SB, " 0008  00000010", "words 6"),
        (FRAGMENT, "\t2:ALPHA_ADDR", "word 2 of instruction 1"),
        (BINARY, "f0000001 e0000001", "10 words, found 8"),
    ] {
        let start = text.find(line).unwrap();
        let end = start + text[start..].find('\n').unwrap() + 1;
        let cut = format!("{}{}", &text[..start], &text[end..]);
        let image = read(&format!("{cut}{FETCH}"));
        if text == SB {
            // Only the header of the following dump shows where a program ends.
            assert!(
                image.notes.iter().any(|note| note.contains("states 12 words, its lines have 6")),
                "{:?}",
                image.notes
            );
            continue;
        }
        assert_eq!(image.programs.len(), 1, "{line}");
        assert!(image.notes.iter().any(|note| note.contains(what)), "{what}: {:?}", image.notes);
        assert!(read_as(cut.as_bytes(), None).unwrap_err().to_string().contains(what), "{what}");
    }
}

#[test]
fn shaders_of_one_name_have_the_number_of_their_line_behind_it() {
    let image = read(&format!("{PIXEL}{PIXEL}{FETCH}"));
    let names: Vec<_> = heads(&image).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["shader1:13", "shader1:35", "shader0"]);
}

#[test]
fn a_source_that_quotes_a_dump_is_a_source() {
    let source = |comment: &str| format!("{comment}\nu32 ps[] = {{ 0x0000203c, 0x94200688 }};\n");
    for quoted in [format!("/*\n{PIXEL}*/"), PIXEL.lines().map(|line| format!("// {line}\n")).collect()] {
        let quoted = quoted.replace("/* preds: */", "");
        assert_eq!(crate::recognise(source(&quoted).as_bytes()), Ok(Format::C), "{quoted}");
    }
    assert_eq!(crate::recognise(source(PIXEL).as_bytes()), Ok(Format::Log));
}

#[test]
fn words_of_a_log_are_patched_in_place() {
    let log = format!("[ 12.5] {BINARY}").replace("program binary", "\x1b[0mprogram binary");
    let patched = crate::patch(log.as_bytes(), &Hints::default(), 0, 8, &[0x1234_5678]).unwrap();
    assert_eq!(String::from_utf8(patched).unwrap(), log.replace("f0000001", "12345678"));
}

#[test]
fn the_state_of_a_log_can_be_stated() {
    for format in [Format::Log, Format::Dump] {
        let hints = Hints { format: Some(format), ..Hints::default() };
        assert_eq!(crate::load(SB.as_bytes(), &hints).unwrap().programs.len(), 1, "{format:?}");
    }
    let hints = Hints { format: Some(Format::Log), ..Hints::default() };
    let error = crate::load(b"0000 00000002 A0000000 ALU\n", &hints).unwrap_err().to_string();
    assert!(error.contains("--format dump"), "{error}");
}
