//! The text of a Tesla file contains the whole module: it assembles to the image that was loaded.

use std::collections::HashSet;

use reconverge_container::{Hints, load};
use reconverge_isa::Image;
use reconverge_isa::program::{ConstantBlock, Module, Param, Place, Program, Sampler, Slot, Stage, Variable};
use reconverge_workbench::assemble;
use reconverge_workbench::{Style, Target, kernels, round_trip_image};

/// A text cubin with every possible entry.
const CUBIN: &str = "architecture {sm_11}\nabiversion {1}\nmodname {cubin}\n\
    consts {\n name = __cudart_i2opi_f\n segname = const\n segnum = 0\n offset = 0\n bytes = 24\n \
      mem { 0x3c439041 0xdb629599 0xf534ddc0 0xfc2757d1 0x4e441529 0xa2f9836e } }\n\
    consts { name = bytes segname = const segnum = 0 offset = 24 bytes = 7 mem { 0x04030201 0x00070605 } }\n\
    consts { name = host segname = const segnum = 0 offset = 32 bytes = 40 }\n\
    sampler { name = tex texunit = 3 }\n\
    reloc { name = counter segname = reloc segnum = 14 offset = 0 bytes = 8 mem { 0x00000063 0x00000001 } }\n\
    code { name = _Z5scalePfi lmem = 16 smem = 24 reg = 4 bar = 1 ctaidZUsed = 1\n \
      bincode { 0x1000f801 0x0423c780 0x1000c805 0x0423c780 0x10000201 0x2400c780 0xd00e0001 0xa0c00781 }\n \
      const { segname = const segnum = 1 offset = 0 bytes = 4 mem { 0x3f000000 } }\n \
      const { segname = const segnum = 1 offset = 4 bytes = 2 mem { 0x00001234 } } }\n\
    code { name = other lmem = 0 smem = 16 reg = 1 bar = 0 bincode { 0xf0000001 0xe0000781 } }\n";

fn cubin() -> (Target, Image) {
    let image = load(CUBIN.as_bytes(), &Hints::default()).unwrap();
    (Target::new(image.isa.unwrap(), image.chip.as_deref()).unwrap(), image)
}

fn back(target: &Target, image: &Image, style: Style) -> (String, Image) {
    let text = target.machine().image_text(target, image, style).unwrap();
    let image = assemble(target, &text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0])).image;
    (text, image)
}

#[test]
fn the_text_of_a_cubin_gives_the_same_module() {
    let (target, image) = cubin();
    let (text, assembled) = back(&target, &image, Style::default());
    assert_eq!(Image { format: image.format, notes: image.notes.clone(), ..assembled }, image, "{text}");
    assert_eq!(round_trip_image(&target, &image), Ok(()));
    // Each header occurs once, with the file's own name for the chip.
    for once in [".isa tesla\n", ".chip sm_11\n", ".type CP\n", ".module cubin\n"] {
        assert_eq!(text.matches(once).count(), 1, "{text}");
    }
}

#[test]
fn odd_names_sizes_and_places_come_back() {
    let name = |text: &str| Some(text.to_owned());
    let variable = |name: &str, bytes, place| Variable { name: name.to_owned(), bytes, place };
    let slots = vec![Slot { bank: 14, offset: 4, addend: 0 }, Slot { bank: 14, offset: 8, addend: 0x10 }];
    let module = |chip: &str, pointer_bytes| Module {
        name: name("member 1, sm_10; \"x\""),
        chip: name(chip),
        abi_version: None,
        pointer_bytes,
        // Two adjacent blocks remain two blocks. One block is empty, and one has an odd number of bytes.
        constants: vec![
            ConstantBlock { bank: 0, offset: 0, bytes: vec![1, 2, 3] },
            ConstantBlock { bank: 0, offset: 3, bytes: (0..97).collect() },
            ConstantBlock { bank: 2, offset: 0x100, bytes: Vec::new() },
        ],
        samplers: vec![Sampler { name: "a b".to_owned(), unit: 7 }],
        variables: vec![
            variable("global", 64, Place::Global { slots: slots.clone(), init: vec![9; 37] }),
            variable("", 0, Place::Global { slots: Vec::new(), init: Vec::new() }),
            variable("// c", 4, Place::Constant { bank: 0, offset: 4 }),
        ],
    };
    let program = |module, name, stage| Program {
        name,
        module,
        stage: Some(stage),
        words: vec![0xf000_0001, 0xe000_0781],
        base: 8 * module as u32,
        state: vec![("EIATTR_MAX THREADS".to_owned(), 5), ("x".to_owned(), u32::MAX)],
        params: vec![
            Param { name: None, offset: 0, bytes: 8 },
            Param { name: Some("n".to_owned()), offset: u32::MAX, bytes: 4 },
        ],
        samplers: vec![Sampler { name: "s;".to_owned(), unit: 0 }],
        ..Program::default()
    };
    let image = Image {
        format: "test",
        isa: Some(reconverge_isa::Isa::Tesla),
        chip: None,
        modules: vec![module("sm_10", Some(8)), module("sm_13", None)],
        programs: vec![
            program(0, name("k"), Stage::Compute),
            program(0, None, Stage::Compute),
            program(1, name("k"), Stage::Fragment),
        ],
        notes: Vec::new(),
    };
    let target = Target::of(reconverge_isa::Isa::Tesla);
    let (text, assembled) =
        back(&target, &image, Style { hex: true, structure: true, notes: true, ..Style::default() });
    assert_eq!(Image { format: image.format, ..assembled }, image, "{text}");
    assert_eq!(round_trip_image(&target, &image), Ok(()));
}

#[test]
fn comments_change_nothing_that_is_read() {
    let (target, image) = cubin();
    let (plain, assembled) = back(&target, &image, Style::default());
    let (noted, with_notes) =
        back(&target, &image, Style { notes: true, hex: true, structure: true, ..Style::default() });
    assert_eq!(assembled, with_notes);
    assert!(noted.len() > plain.len());
    let altered: Vec<&str> = noted.lines().map(|line| line.split(';').next().unwrap()).collect();
    assert_eq!(assemble(&target, &altered.join("; x \"y\" .reg 9\n")).unwrap().image, assembled);
}

/// A program with everything that comments can name.
const NAMED: &str = ".chip sm_11\n.module m\n.sampler tex 3\n.variable table 24 c0[0x0]\n\
    .variable counter 8 global c14[0x0]\n.const 0 0x0 0x3c439041 0xdb629599 0xf534ddc0\n\
    .kernel _Z5scalePfi\n.reg 8\n.shared 24\n.const 1 0x0 0x3f000000\n\
    cvt u32 $r2 u16 $r0l\n\
    mov b32 $r0 b32 s[0x10]\n\
    mov b32 $r4 b32 s[0x14]\n\
    cvt u32 $r3 u16 u16 s[0xc]\n\
    ld $r3 b32 c0[0x8]\n\
    ld $r3 b32 c14[0x0]\n\
    mul rn f32 $r1 $r1 c1[0x0]\n\
    add b32 $r1 $r1 0xffffffff\n\
    mov b32 $r1 0x3f800000\n\
    texfetch live $r1:#:#:# $t3 $s3 $r1 0x0 0x0 0x0\n\
    cvt u32 $r2 u16 $r0l\n\
    call f\n\
    join nop\n\
    exit nop\n\
    f:\n\
    ret\n";

/// Returns the comment on the nth line that begins with a text.
fn comment<'a>(text: &'a str, start: &str, nth: usize) -> Option<&'a str> {
    let mut lines = text.lines().filter(|line| line.trim_start().starts_with(start));
    let line = lines.nth(nth).unwrap_or_else(|| panic!("{start} in\n{text}"));
    line.split_once("; ").map(|(_, comment)| comment)
}

fn named() -> (Target, Image, String) {
    let target = Target::of(reconverge_isa::Isa::Tesla);
    let assembled = assemble(&target, NAMED).unwrap_or_else(|errors| panic!("{errors:?}"));
    let (target, image) = (assembled.target, assembled.image);
    let (text, again) = back(&target, &image, Style { notes: true, ..Style::default() });
    assert_eq!(again, image);
    (target, image, text)
}

#[test]
fn comments_name_parameters_variables_and_textures_at_their_uses() {
    let (.., text) = named();
    assert_eq!(comment(&text, "mov b32 $r0", 0), Some("parameter 0: f32*"));
    assert_eq!(comment(&text, "mov b32 $r4", 0), Some("parameter 1: i32"));
    assert_eq!(comment(&text, "ld $r3", 0), Some("table + 0x8 = 0xf534ddc0"));
    assert_eq!(comment(&text, "ld $r3", 1), Some("address of counter"));
    assert_eq!(comment(&text, "texfetch", 0), Some("tex"));
}

#[test]
fn comments_give_values_as_floats_and_negatives() {
    let (.., text) = named();
    assert_eq!(comment(&text, "mul rn f32", 0), Some("0x3f000000 (0.5f)"));
    assert_eq!(comment(&text, "add b32", 0), Some("-1"));
    assert_eq!(comment(&text, "mov b32 $r1", 0), Some("1.0f"));
}

#[test]
fn comments_name_built_in_variables() {
    let (.., text) = named();
    assert_eq!(comment(&text, "cvt u32 $r2", 0), Some("threadIdx.x"));
    // After its first write, $r0 has a different meaning.
    assert_eq!(comment(&text, "cvt u32 $r2", 1), None);
    assert_eq!(comment(&text, "cvt u32 $r3", 0), Some("blockIdx.x"));
}

#[test]
fn a_kernel_has_its_demangled_name_and_a_call_target_is_a_function() {
    let (target, image, text) = named();
    assert_eq!(comment(&text, ".kernel", 0), Some("scale(float*, int)"));
    assert_eq!(comment(&text, "L", 0), Some("function"));
    let (text, _) = back(&target, &image, Style { structure: true, ..Style::default() });
    assert_eq!(comment(&text, "L", 0), Some("function"));
}

#[test]
fn joins_and_ends_are_readable() {
    let (.., text) = named();
    assert_eq!(comment(&text, "join nop", 0), Some("lanes meet again"));
    assert_eq!(comment(&text, "exit nop", 0), Some("end"));
}

#[test]
fn parameters_have_the_places_of_the_operands() {
    let (target, mut image, _) = named();
    image.programs[0].params = vec![Param { name: Some("factor".to_owned()), offset: 4, bytes: 4 }];
    let (text, again) = back(&target, &image, Style { notes: true, ..Style::default() });
    assert!(text.contains("\n.param s[0x14] 4 factor"), "{text}");
    assert_eq!(comment(&text, "mov b32 $r4", 0), Some("factor"));
    assert_eq!(again, image);
}

#[test]
fn addresses_stand_on_the_left_with_one_width() {
    let (target, image, _) = named();
    let (text, again) = back(&target, &image, Style { hex: true, ..Style::default() });
    let first = text.lines().find(|line| line.starts_with("/*")).unwrap();
    assert!(
        first.starts_with("/*0000*/    cvt u32 $r2 u16 $r0l") && first.ends_with("; a0000009 04000780"),
        "{first}"
    );
    assert!(text.contains("\n/*0008*/"), "{text}");
    assert_eq!(again, image);
}

#[test]
fn what_belongs_elsewhere_is_refused_with_the_place() {
    let target = Target::of(reconverge_isa::Isa::Tesla);
    let wrong = |source: &str| assemble(&target, source).unwrap_err()[0].to_string();
    assert_eq!(
        wrong(".module m\n.reg 4\n"),
        "`.reg` belongs to a program (put `.kernel NAME` in front of it)"
    );
    assert_eq!(
        wrong(".kernel k\n.abi 1\n"),
        "`.abi` belongs to a module (begin a module with `.module`, before its kernels)"
    );
    assert!(wrong(".module\n.variable x 4 elsewhere\n").contains("expected `c0[0x10]`"));
    assert!(wrong(".module\n.data 1\n").contains("continues the contents"));
    assert!(wrong(".const 0 0 bytes 0x100\n").contains("at most 0xff"));
    assert!(wrong(".kernel k\n.param s[0x8] 4\n").contains("s[0x10]"));
    assert!(wrong(".kernel \"k\n").contains("quotation marks"));
}

/// Explains every instruction of a program, each encoding once, and returns their number.
fn explained(target: &Target, program: &Program, seen: &mut HashSet<Vec<u32>>) -> usize {
    let mut count = 0;
    let mut words = &program.words[..];
    while let [first, ..] = words {
        let (inst, rest) = words.split_at(1 + (first & 1) as usize);
        words = rest;
        if !seen.insert(inst.to_vec()) {
            continue;
        }
        let explanation = target.machine().explain(target, inst).unwrap_or_else(|error| panic!("{error}"));
        count += 1;
        let text = &explanation.text;
        assert!(!text.is_empty() && !explanation.fields.is_empty(), "{inst:08x?}");
        for field in &explanation.fields {
            assert!(!field.name.is_empty() && field.doc.ends_with('.'), "{text}: {field:?}");
        }
        assert!(!explanation.meaning.is_empty(), "{text}");
        assert!(explanation.source.starts_with("docs/tesla.md, section "), "{text}: {}", explanation.source);
        let sentences = explanation.meaning.iter().chain(&explanation.flow).chain([&explanation.source]);
        for sentence in sentences {
            assert!(!sentence.is_empty() && !sentence.contains("unknown"), "{text}: {sentence}");
        }
    }
    count
}

#[test]
fn explain_says_text_fields_meaning_and_page_of_the_instructions_of_real_programs() {
    let mut seen = HashSet::new();
    let mut count = 0;
    for name in ["mandel", "collatz"] {
        let opened = kernels::find(reconverge_isa::Isa::Tesla, name).unwrap().open().unwrap();
        count += explained(&opened.target, &opened.image.programs[0], &mut seen);
    }
    assert!(count > 30, "{count}");
    let Some(folder) = reconverge_testkit::shared("binaries/tesla") else { return };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in files.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path())
    {
        let Ok(image) = load(&std::fs::read(&path).unwrap(), &Hints::default()) else { continue };
        let Some(isa) = image.isa else { continue };
        let target = Target::new(isa, image.chip.as_deref()).unwrap();
        for program in &image.programs {
            count += explained(&target, program, &mut seen);
        }
    }
    println!("{count} different instructions explained");
    assert!(count > 1000, "{count}");
}

#[test]
fn one_program_of_a_file_comes_with_its_own_module() {
    let module = |chip: &str| Module { chip: Some(chip.to_owned()), ..Module::default() };
    let program = |module, name: &str| Program { name: Some(name.to_owned()), module, ..Program::default() };
    let image = Image {
        modules: vec![module("sm_10"), module("sm_13")],
        programs: vec![program(0, "a"), program(1, "b")],
        ..Image::default()
    };
    let one = image.only(&image.programs[1]);
    assert_eq!((one.modules.len(), one.chip.as_deref()), (1, Some("sm_13")));
    let target = Target::of(reconverge_isa::Isa::Tesla);
    let text = target.machine().image_text(&target, &one, Style::default()).unwrap();
    assert!(text.contains(".chip sm_13\n") && !text.contains("sm_10"), "{text}");
    assert_eq!(round_trip_image(&target, &one), Ok(()));
}
