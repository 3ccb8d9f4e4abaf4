//! The text of R700 images: several programs, the properties that each states, and the selection of one.

mod several;

use reconverge_isa::Isa;
use reconverge_isa::program::{Program, Stage};
use reconverge_testkit::shared;
use reconverge_workbench::launch::choose_program;
use reconverge_workbench::{Known, Style, Target, assemble, open};
use several::{come_back, text};

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

#[test]
fn several_programs_come_back_from_their_text() {
    assert_eq!(come_back(PROGRAMS).target.chip_name(), Some("latte"));
}

#[test]
fn every_file_of_the_collection_comes_back_from_its_text_as_a_whole() {
    let Some(folder) = shared("binaries/r700") else { return };
    let (mut files, mut several) = (0, 0);
    for entry in walk(&folder) {
        let bytes = std::fs::read(&entry).unwrap();
        let opened = open(&bytes, false, &known(&entry)).unwrap();
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

/// Programs of R600 chips in the collection have `r600` in their names.
fn known(path: &std::path::Path) -> Known {
    let r600 = path.to_string_lossy().contains("r600").then(|| "r600".to_owned());
    Known { isa: Some(Isa::R700), chip: r600, ..Known::default() }
}

#[test]
fn words_of_the_other_family_or_byte_order_are_not_read_as_they_stand() {
    // KILLGT has number 45 in bits 17:8 of an R600 word. This is number 90 in bits 17:7 of an R700 word, which is
    // unassigned.
    let source =
        ".chip r600\nALU:\n 0 x: KILLGT R0.x, R0.x, R1.x\nEXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM\n";
    let words = assemble(&Target::of(Isa::R700), source).unwrap().image.programs.remove(0).words;
    let refused = |words: &[u32], chip: Option<&str>| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let known = Known { isa: Some(Isa::R700), chip: chip.map(str::to_owned), ..Known::default() };
        open(&bytes, false, &known).map_or_else(|error| error.to_string(), |_| String::new())
    };
    assert!(refused(&words, None).contains("use --chip r600"), "{}", refused(&words, None));
    assert_eq!(refused(&words, Some("r600")), "");
    // Words in the other byte order are seldom a program. If they are not, the message mentions the byte order.
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/r700");
    let mut hinted = 0;
    for path in walk(&corpus) {
        let opened = open(&std::fs::read(&path).unwrap(), true, &Known::default()).unwrap();
        let (words, chip) = (&opened.image.programs[0].words, opened.target.chip_name());
        assert_eq!(refused(words, chip), "", "{}", path.display());
        let swapped: Vec<u32> = words.iter().map(|word| word.swap_bytes()).collect();
        hinted += usize::from(refused(&swapped, chip).contains("--endian"));
    }
    assert!(hinted > 0);
}

/// Explains every instruction of the corpus and the samples in the repository, and of the collection.
#[test]
fn every_real_instruction_is_explained_where_it_stands() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_sample = |path: &std::path::PathBuf| path.to_string_lossy().ends_with("r700.s");
    let mut files = walk(&root.join("corpus/r700"));
    files.extend(walk(&root.join("docs/samples")).into_iter().filter(is_sample));
    files.extend(shared("binaries/r700").iter().flat_map(|folder| walk(folder)));
    let mut explained = 0;
    for path in &files {
        let is_source = path.extension().is_some_and(|ending| ending == "s");
        let opened = open(&std::fs::read(path).unwrap(), is_source, &known(path)).unwrap();
        let target = &opened.target;
        for program in &opened.image.programs {
            let listing = target.machine().disassemble(target, program, Style::default()).unwrap();
            for line in listing.lines(&program.words) {
                let Some(address) = line.address else {
                    continue;
                };
                let place = format!("{}, {address}: {}", path.display(), line.text);
                let found = target.machine().explain_at(target, program, address);
                let found = found.unwrap_or_else(|error| panic!("{place}: {error}"));
                let plain = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                let slot = line.text.starts_with(".slot") && !found.findings.is_empty();
                assert!(slot || plain(&line.text).ends_with(&plain(&found.text)), "{place}: {}", found.text);
                assert!(found.words.starts_with(&line.words) || found.text.contains(": "), "{place}");
                assert!(!found.fields.is_empty() && !found.meaning.is_empty(), "{place}");
                assert!(
                    found.source.contains(" p. ") || found.source.contains(" pp. "),
                    "{place}: {}",
                    found.source
                );
                let words = found.fields.iter().flat_map(|field| [&field.name, &field.text, &field.doc]);
                for text in words.chain(&found.meaning).chain(&found.flow).chain([&found.text]) {
                    assert!(
                        !text.is_empty() && !text.to_lowercase().contains("unknown"),
                        "{place}: {found:?}"
                    );
                }
                let bits: u32 = found.fields.iter().map(|field| u32::from(field.hi - field.lo) + 1).sum();
                assert_eq!(bits % 32, 0, "{place}");
                explained += 1;
            }
        }
    }
    println!("{explained} instructions of {} files", files.len());
    assert!(explained > 50 && (shared("binaries").is_none() || explained > 1000), "{explained}");
}

#[test]
fn words_have_every_legal_reading_and_a_group_all_its_slots() {
    let target = Target::of(Isa::R700);
    let explain = |words: &[u32]| target.machine().explain(&target, words).unwrap();
    // MUL R1.x, |R2.x|, -3.5 and RECIP_IEEE R3.x, R0.y in one group.
    let source = "ALU:\n 0 x: MUL R1.x, |R2.x|, -(0x40600000, 3.5).x\n t: RECIP_IEEE R3.x, R0.y CLAMP\nNOP: END_OF_PROGRAM\n";
    let program = assemble(&target, source).unwrap().image.programs.remove(0);
    let group = explain(&program.words[4..]);
    assert_eq!(
        group.text.lines().collect::<Vec<_>>(),
        ["x: MUL R1.x, |R2.x|, -(0x40600000, 3.5).x", "t: RECIP_IEEE R3.x, R0.y CLAMP"]
    );
    for line in [
        "x: Multiplies src0 by src1. If a factor is 0, the product is 0, whatever the other factor is.",
        "x: src0 is register R2.x, its absolute value.",
        "x: src1 is the value 0x40600000 (3.5 as a float), negated.",
        "x: The result goes to R1.x; the next group can read it as PV.x.",
        "t: Returns 1 / src0.",
        "t: CLAMP limits the result to 0.0 to 1.0.",
    ] {
        assert!(group.meaning.iter().any(|known| known == line), "{line}: {:#?}", group.meaning);
    }
    let fields = |name: &str| group.fields.iter().filter(|field| field.name == name).count();
    assert_eq!((fields("ALU_INST"), fields("VALUE")), (2, 2));
    // One slot of the group, at its address in the program.
    let slot = target.machine().explain_at(&target, &program, 3).unwrap();
    assert_eq!(
        (slot.text.as_str(), slot.meaning[0].as_str()),
        ("t: RECIP_IEEE R3.x, R0.y CLAMP", "Returns 1 / src0.")
    );
    assert!(slot.meaning.last().unwrap().contains("the group of two instructions at 2 to 3"), "{slot:?}");
    let refused = target.machine().explain_at(&target, &program, 4).unwrap_err().to_string();
    assert!(refused.starts_with("no instruction starts at 4"), "{refused}");
    // Words that are only a control-flow instruction, and words that are only an ALU instruction.
    let jump = explain(&[3, 0x8500_0001]);
    assert_eq!(jump.text, "JUMP: ADDR(3) POP_CNT(1)");
    assert!(jump.flow[0].starts_with("If no lane passes, POP_COUNT entries are popped"), "{:?}", jump.flow);
    assert_eq!(explain(&[0x8000_0000, 0x0000_0c90]).text, "x: MOV R0.x, R0.x");
    // Words with two legal interpretations are shown with both.
    let nop = explain(&[0, 0]);
    assert_eq!(nop.text, "control flow: NOP: NO_BARRIER\nALU: x: ADD _.x, R0.x, R0.x");
    assert!(nop.meaning.iter().any(|line| line == "control flow: Does nothing."), "{:?}", nop.meaning);
    assert!(nop.source.starts_with("control flow: R700-Family") && nop.source.contains("\nALU: R700-Family"));
    // Words without a legal interpretation have findings with the reason.
    let none = explain(&[200, 0x9f00_0000]);
    assert!(
        none.findings.iter().any(|line| line.contains("CF_INST 0x3e is not an instruction of this chip")),
        "{none:?}"
    );
    assert!(target.machine().explain(&target, &[0; 3]).unwrap_err().to_string().contains("4 words (fetch)"));
}

/// With the inputs in the state of a Wii U program, no register is read before it is written. With one input less,
/// there is a finding.
#[test]
fn registers_read_before_they_are_written_are_found_where_the_inputs_are_known() {
    let Some(folder) = shared("binaries/r700") else { return };
    let mut judged = 0;
    for path in
        walk(&folder).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "gsh"))
    {
        let opened = open(&std::fs::read(&path).unwrap(), false, &Known::default()).unwrap();
        let machine = opened.target.machine();
        let unwritten = |program: &Program| {
            let findings = machine.lint(&opened.target, program).unwrap();
            findings.into_iter().filter(|finding| finding.rule.name == "unwritten").collect::<Vec<_>>()
        };
        for program in &opened.image.programs {
            assert_eq!(unwritten(program), [], "{}", path.display());
            let mut fewer = program.clone();
            let control = fewer.state.iter_mut().find(|(name, _)| name == "SPI_PS_IN_CONTROL_0");
            let Some((_, control)) = control.filter(|(_, control)| *control & 63 > 0) else { continue };
            *control -= *control & 63;
            assert!(unwritten(&fewer)[0].message.starts_with("R0."), "{:?}", unwritten(&fewer));
            judged += 1;
        }
    }
    assert!(judged > 0);
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => found.extend(walk(&path)),
            path if path
                .extension()
                .is_some_and(|ending| ending == "hex" || ending == "gsh" || ending == "s") =>
            {
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
    let named = |name| choose_program(&opened.image, Some(name)).cloned();
    let pixel: Program = named("pixel").unwrap();
    assert_eq!((pixel.stage, named("vertex").unwrap().stage), (Some(Stage::Pixel), Some(Stage::Vertex)));
    for chip in ["LATTE", "latte", "rv770"] {
        let known = Known { stage: Some(Stage::Pixel), chip: Some(chip.to_owned()), ..Known::default() };
        let image = open(&bytes, false, &known).unwrap().image;
        assert_eq!(choose_program(&image, None).unwrap(), &pixel);
    }
    let known = Known { stage: Some(Stage::Geometry), ..Known::default() };
    let refused = open(&bytes, false, &known).unwrap_err().to_string();
    assert_eq!(refused, "no program of this file is for geometry: expected one of vertex, pixel");
    // The file that is written from its text has the same programs.
    let machine = opened.target.machine();
    let text = text(&opened.target, &opened.image);
    let assembled = open(text.as_bytes(), true, &Known::default()).unwrap();
    let written = machine.write(&assembled.target, &assembled.image, "gsh").unwrap().unwrap();
    assert_eq!(
        open(&written.content, false, &Known::default()).unwrap().image.programs,
        opened.image.programs
    );
    let other = Target::new(Isa::R700, Some("rv730")).unwrap();
    let refused = machine.write(&other, &assembled.image, "gsh").unwrap().unwrap_err().to_string();
    assert!(refused.contains("a program for rv730 cannot be written as gsh"), "{refused}");
}
