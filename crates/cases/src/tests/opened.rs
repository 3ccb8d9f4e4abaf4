//! Opens a case of a file by the name of the case.

use std::path::Path;
use std::sync::Arc;

use reconverge_simt::Options;
use reconverge_workbench::launch::choose_program;
use reconverge_workbench::values::NoFiles;
use reconverge_workbench::{Style, round_trip};

use super::cases;
use crate::{Case, Folder, NoFolder, find, read};

fn read_text(path: &str, text: &str) -> Vec<Case> {
    let folder: Arc<dyn Folder> = Arc::new(NoFolder);
    read(path, text.as_bytes(), &folder, Some(reconverge_isa::Isa::R500)).expect("cases")
}

#[test]
fn one_case_of_a_corpus_opens_by_name_and_runs() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/r500/fuzz.jsonl.gz"));
    let cases = cases(path);
    let case = find(&cases, &cases[7].name).expect("it is there");
    let opened = case.open().expect("a program");
    let (target, program) = (&opened.opened.target, &opened.opened.image.programs[0]);
    round_trip(target, program).expect("text and back");
    let text = target.machine().image_text(target, &opened.opened.image, Style::default()).expect("text");
    assert!(text.starts_with(".isa r500\n"), "{text}");
    assert!(!opened.launches.is_empty());
    for launch in &opened.launches {
        let program = choose_program(&opened.opened.image, None).expect("the one");
        let result = launch.run(&opened.opened.image, program, &Options::default(), &NoFiles).expect("a run");
        assert_eq!(result.outputs[0].0, "color0");
    }
    assert!(case.about().starts_with("r500 shader, "), "{}", case.about());
    let error = find(&cases, "fuzz-f120-l1-1039").expect_err("no such case").to_string();
    assert!(
        error.starts_with("unknown case `fuzz-f120-l1-1039` among") && error.contains("did you mean"),
        "{error}"
    );
}

#[test]
fn a_row_of_the_vectors_opens_as_its_instruction() {
    let table = "op,chip,mode,w0,w1,src1,src2,src3,cc_in,result,cc_out\n\
                 cvt neg u16 u8 a,any,,a0001039,200087c0,80000000,-,-,-,00000000,1\n";
    let cases = read_text("cvt_i2i.csv", table);
    let opened = cases[0].open().expect("a program");
    assert_eq!(opened.opened.image.programs[0].words, [0xa000_1039, 0x2000_87c0, 0xf000_0001, 0xe000_0781]);
    assert!(opened.launches.is_empty());
}

#[test]
fn cases_of_a_file_have_names_of_their_own() {
    let line = r#"{"name": "a", "arch": "r500", "words": "00000005", "disasm": ""}"#;
    let names = |cases: Vec<Case>| cases.into_iter().map(|case| case.name).collect::<Vec<_>>();
    assert_eq!(names(read_text("x.jsonl", &format!("{line}\n{line}\n{line}\n"))), ["a", "a#2", "a#3"]);
    // If the container does not state the name of a program, the program has the name of its file.
    let words = "00000005\n00000000\n00000000\n00000000\n00000000\n00000000\n";
    assert_eq!(names(read_text("folder/x.hex", words)), ["x.hex"]);
}
