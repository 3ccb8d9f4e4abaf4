//! The text of R700 images: several programs, what each states, which one is meant.

use reconverge_isa::Isa;
use reconverge_isa::program::{Image, Program, Stage};
use reconverge_testkit::shared;
use reconverge_workbench::launch::choose_program;
use reconverge_workbench::machine::{Target, assemble};
use reconverge_workbench::{Known, Style, open};

const PROGRAMS: &str = "\
.isa r700
.chip latte

.program vertex
.stage vertex
.gprs 3
.const 1 4 0x3f800000 0x2
.bool 0x8
00 EXPORT_DONE: POS[60], R1.xyzw END_OF_PROGRAM

.program pixel%20main
.stage pixel
.start 1
00 NOP:
01 EXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM
";

fn text(target: &Target, image: &Image) -> String {
    target.machine().image_text(target, image, Style::default()).unwrap()
}

#[test]
fn several_programs_come_back_from_their_text() {
    let known = Known::default();
    let opened = open(PROGRAMS.as_bytes(), true, &known).unwrap();
    assert_eq!((opened.target.chip.as_deref(), opened.image.programs.len()), (Some("latte"), 2));
    assert_eq!(opened.image.programs[1].name.as_deref(), Some("pixel main"));
    assert_eq!(text(&opened.target, &opened.image), PROGRAMS);
    // Nameless programs are kept apart as well; one alone needs no line of its own.
    let mut nameless = opened.image.clone();
    nameless.programs.iter_mut().for_each(|program| program.name = None);
    let back = assemble(&opened.target, &text(&opened.target, &nameless)).unwrap().image;
    assert_eq!(back.programs, nameless.programs);
    nameless.programs.pop();
    assert!(!text(&opened.target, &nameless).contains(".program"));
}

#[test]
fn every_file_of_the_collection_comes_back_from_its_text_as_a_whole() {
    let Some(folder) = shared("binaries/r700") else { return };
    let (mut files, mut several) = (0, 0);
    for entry in walk(&folder) {
        let bytes = std::fs::read(&entry).unwrap();
        let known = Known { isa: Some(Isa::R700), ..Known::default() };
        let opened = open(&bytes, false, &known).unwrap();
        let text = text(&opened.target, &opened.image);
        let back =
            open(text.as_bytes(), true, &Known::default()).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(back.image.programs, opened.image.programs, "{}", entry.display());
        assert_eq!(back.target.chip.is_some(), text.contains(".chip"));
        files += 1;
        several += usize::from(opened.image.programs.len() > 1);
    }
    assert!(files > 50 && several >= 3, "{files} files, {several} of several programs");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => found.extend(walk(&path)),
            path if path.extension().is_some_and(|ending| ending == "hex" || ending == "gsh") => {
                found.push(path)
            }
            _ => {}
        }
    }
    found.sort();
    found
}

#[test]
fn a_wii_u_program_is_chosen_by_name_or_by_stage() {
    let Some(folder) = shared("binaries/r700") else { return };
    let bytes = std::fs::read(folder.join("latte-wut/pos_col_shader.gsh")).unwrap();
    let opened = open(&bytes, false, &Known::default()).unwrap();
    let named = |name| choose_program(&opened.image, Some(name)).map(Clone::clone);
    let pixel: Program = named("pixel").unwrap();
    assert_eq!((pixel.stage, named("vertex").unwrap().stage), (Some(Stage::Pixel), Some(Stage::Vertex)));
    for chip in ["LATTE", "latte", "rv770"] {
        let known = Known { stage: Some(Stage::Pixel), chip: Some(chip.to_owned()), ..Known::default() };
        let image = open(&bytes, false, &known).unwrap().image;
        assert_eq!(choose_program(&image, None).unwrap(), &pixel);
    }
    let known = Known { stage: Some(Stage::Geometry), ..Known::default() };
    let refused = open(&bytes, false, &known).unwrap_err().to_string();
    assert_eq!(refused, "no program of this file is for geometry: there is vertex, pixel");
    // The file that is written of its text has the same programs.
    let machine = opened.target.machine();
    let text = text(&opened.target, &opened.image);
    let assembled = open(text.as_bytes(), true, &Known::default()).unwrap();
    let written = machine.write(&assembled.target, &assembled.image, "gsh").unwrap().unwrap();
    assert_eq!(
        open(&written.content, false, &Known::default()).unwrap().image.programs,
        opened.image.programs
    );
    let other = Target { chip: Some("rv730".to_owned()), ..assembled.target };
    let refused = machine.write(&other, &assembled.image, "gsh").unwrap().unwrap_err().to_string();
    assert!(refused.contains("a program for rv730 cannot be written as gsh"), "{refused}");
}
