//! The text of R500 images: several programs of both units, and formats that hold only one program.

mod several;

use reconverge_container::ctm_elf;
use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_workbench::formats::write;
use reconverge_workbench::{Known, open};
use reconverge_workbench::{Target, assemble, round_trip_image};
use several::come_back;

const PROGRAMS: &str = "\
.isa r500
.chip R580

.program vertex
.stage vertex
.base 3
VE_ADD t0 = i0, i0

.program pixel%20main
.const 2 1.0 0.5 -2.0 0.0
OUT nop
";

#[test]
fn several_programs_come_back_from_their_text() {
    let opened = come_back(PROGRAMS);
    assert_eq!(opened.target.chip_name(), Some("R580"));
    let stages: Vec<_> = opened.image.programs.iter().map(|program| program.stage).collect();
    assert_eq!(stages[0], Some(Stage::Vertex));
    assert_ne!(stages[1], Some(Stage::Vertex));
}

/// Images in a file, as in a dump of a process: each image is found at its offset and is in the text.
#[test]
fn several_images_of_ctm_in_a_file_come_back_from_its_text() {
    let program = assemble(&Target::of(Isa::R500), "OUT nop\n").unwrap();
    let image = ctm_elf::write(&program.image.programs[0]).unwrap().content;
    let file = [&[0x5a; 20][..], &image, &[0; 8], &image].concat();
    let opened = open(&file, false, &Known::default()).unwrap();
    assert_eq!(opened.image.programs.len(), 2);
    round_trip_image(&opened.target, &opened.image).unwrap();
}

#[test]
fn a_format_of_one_program_refuses_several() {
    let opened = open(PROGRAMS.as_bytes(), true, &Known::default()).unwrap();
    let refused = |format| write(&opened.target, &opened.image, format, true).unwrap_err().to_string();
    for format in ["hex", "bin"] {
        assert!(refused(format).contains("expected one program, found 2"), "{}", refused(format));
    }
    assert!(refused("elf").starts_with("2 programs cannot be written as elf"), "{}", refused("elf"));
}
