//! R700 programs in both syntaxes: sources, a gsh file with two programs, samples, and the requirements of a launch.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("amd").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Runs a command that must end with this status. Returns standard output and standard error.
#[track_caller]
fn ends(folder: &Path, arguments: &str, status: i32) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    let command = command.current_dir(folder).args(arguments.split_whitespace()).stdin(Stdio::null());
    let Output { status: found, stdout, stderr } = command.output().unwrap();
    let (out, error) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!(found.code(), Some(status), "{arguments}\n{out}\n{error}");
    (out, error)
}

const VERTEX: &str = "; $MODE = \"UniformRegister\"\n; $ATTRIB_VARS[0].name = \"aPosition\"\n; $ATTRIB_VARS[0].location = 0\n\
                      ; $NUM_SPI_VS_OUT_ID = 1\n; $SPI_VS_OUT_ID[0].SEMANTIC_0 = 0\n\n00 CALL_FS NO_BARRIER\n\
                      01 EXP_DONE: POS0, R1.xyzw\n02 EXP_DONE: PARAM0, R1.xyzw NO_BARRIER\nEND_OF_PROGRAM\n";
const PIXEL: &str = "; $NUM_SPI_PS_INPUT_CNTL = 1\n; $SPI_PS_INPUT_CNTL[0].SEMANTIC = 0\n\
                     00 ALU: ADDR(32) CNT(2) KCACHE0(CB0:0-15)\n 0 x: MUL_e*2 R0.x, R0.x, KC0[0].x VEC_021\n \
                     t: RCP_e R0.y, R0.y\n01 EXP_DONE: PIX0, R0\nEND_OF_PROGRAM\n";

#[test]
fn two_sources_of_latte_assembler_become_one_file() {
    let folder = folder("gsh");
    std::fs::write(folder.join("a.vsh"), VERTEX).unwrap();
    std::fs::write(folder.join("b.psh"), PIXEL).unwrap();
    let (_, error) = ends(&folder, "asm --vsh a.vsh --psh b.psh -o c.gsh", 0);
    assert!(error.contains("a program does not store MODE, ATTRIB_VARS"), "{error}");
    let (list, _) = ends(&folder, "list c.gsh --json", 0);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let stages: Vec<_> =
        list["programs"].as_array().unwrap().iter().map(|program| program["stage"].clone()).collect();
    assert_eq!(stages, ["vertex", "pixel"]);
    // Both texts assemble to the original file.
    for syntax in ["own", "amd"] {
        let (text, _) = ends(&folder, &format!("dis c.gsh --syntax {syntax}"), 0);
        assert_eq!(text.contains("01 EXP_DONE: POS0, R1"), syntax == "amd", "{text}");
        std::fs::write(folder.join("c.s"), text).unwrap();
        ends(&folder, "asm c.s -o back.gsh", 0);
        assert_eq!(
            std::fs::read(folder.join("back.gsh")).unwrap(),
            std::fs::read(folder.join("c.gsh")).unwrap()
        );
    }
    ends(&folder, "asm b.psh -o b.gsh", 0);
    let (_, error) = ends(&folder, "asm", 2);
    assert!(error.contains("FILE"), "{error}");
}

#[test]
fn amds_text_is_of_r700_alone() {
    let folder = folder("other");
    std::fs::write(folder.join("a.s"), ".isa tesla\nexit nop\n").unwrap();
    let (_, error) = ends(&folder, "dis a.s --syntax amd", 2);
    assert!(error.contains("expected a program for R600 or R700"), "{error}");
}

#[test]
fn what_is_declared_stands_beside_what_is_needed() {
    let folder = folder("needs");
    let source = ".isa r700\n.gprs 2\n.stack 0\nALU_PUSH_BEFORE:\n 0 x: PRED_SETE ____, R0.x, 0 UPDATE_EXEC_MASK\n\
                  POP: POP_CNT(1)\nEXPORT_DONE: PIXEL[0], R4 END_OF_PROGRAM\n";
    std::fs::write(folder.join("a.s"), source).unwrap();
    let (list, error) = ends(&folder, "list a.s", 0);
    assert!(list.contains("2 (needs 5)") && list.contains("0 (needs 1)"), "{list}");
    assert!(error.contains("write `.gprs 5`") && error.contains("write `.stack 1`"), "{error}");
}

/// The first program reads the constant file without setting it. The second sets it with `.const file`.
#[test]
fn the_constant_file_is_set_or_missing_by_name() {
    let folder = folder("file");
    let program = "ALU:\n 0 x: MOV R0.x, C[1].y\nEXPORT_DONE: PIXEL[0], R0.x000 END_OF_PROGRAM\n";
    std::fs::write(folder.join("a.s"), format!(".isa r700\n{program}")).unwrap();
    let (_, error) = ends(&folder, "run a.s --lanes 1", 2);
    assert!(error.contains("C[1] of the constant file, but nothing sets this file"), "{error}");
    std::fs::write(folder.join("b.s"), format!(".isa r700\n.const file 5 4.0\n{program}")).unwrap();
    let (out, _) = ends(&folder, "run b.s --lanes 1", 0);
    assert!(out.contains('4'), "{out}");
    let (text, _) = ends(&folder, "dis b.s", 0);
    assert!(text.contains(".const file 5 0x40800000\n"), "{text}");
}

#[test]
fn a_part_of_a_group_is_explained_with_what_it_lacks() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    let output = command.args(["explain", "x: CUBE R1.x, R0.z, R0.y", "--isa", "r700"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("takes the slots x, y, z and w of one group"), "{text}");
    assert!(text.contains("the group has x."), "{text}");
}

/// The samples were written by hand, and their results were computed by hand.
#[test]
fn samples_of_r700_give_the_results_that_they_state() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples");
    for name in ["mandelbrot", "transform", "sort", "gcd", "blur"] {
        let (out, _) = ends(&samples, &format!("check {name}.r700.toml"), 0);
        assert!(out.contains("1 passed"), "{name}: {out}");
    }
}

/// If the constants end inside a vector of four, a vertex fetch reads the whole vector.
#[test]
fn the_buffer_of_constants_is_a_whole_number_of_vectors() {
    let folder = folder("vectors");
    let source = ".isa r700\n.stage pixel\n.const 0 0 1.0 2.0 3.0 4.0 5.0\nVTX:\n FETCH R1.xyzw, R0.x, b0 FORMAT(32_32_32_32_FLOAT) MEGA(16)\n\
                  EXPORT_DONE: PIXEL[0], R1 END_OF_PROGRAM\n";
    std::fs::write(folder.join("a.s"), source).unwrap();
    let launch = "isa = \"r700\"\nprogram = \"a.s\"\ninput = [{ gpr = 0, values = \"0,1:u32\" }]\n\n[[expect]]\noutput = \"pixel0\"\n\
                  values = [[1, 2, 3, 4], [5, 0, 0, 0]]\n";
    std::fs::write(folder.join("a.toml"), launch).unwrap();
    ends(&folder, "check a.toml", 0);
}
