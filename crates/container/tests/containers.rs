//! Tests that the image of each binary container has the facts that the container states about its programs.

use reconverge_container::{
    Error, Format, Hints, Written, ctm_elf, cubin_elf, formats, gsh, load, recognise,
};
use reconverge_isa::program::{ConstantBlock, Place, Resources, Sampler, Slot, Stage, Usage, Variable};
use reconverge_isa::{Image, Isa, Program};
use reconverge_testkit::containers::{self, cubin, fatbin, gsh as gsh_file, r600, words};

fn read(bytes: &[u8]) -> Image {
    load(bytes, &Hints::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_format_name_reads_back_as_the_format() {
    assert_eq!(formats().count(), Format::ALL.len());
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    assert!("elf".parse::<Format>().unwrap_err().to_string().contains("cubin-elf64"));
}

#[test]
fn content_decides_the_format() {
    let cases: [(&[u8], Format); 8] = [
        (b"00000001\n", Format::Hex32),
        (b"# { [\n00000001\n", Format::Hex32),
        (b"hello", Format::Hex32),
        (b"\x01\x00\x00\x80", Format::Bin),
        (b"modname      {cubin}", Format::CubinText),
        (b"unsigned char a[] = { 1 };", Format::C),
        (b"Gfx2", Format::Gsh),
        (b"\x50\xed\x55\xba", Format::Fatbin),
    ];
    for (bytes, format) in cases {
        assert_eq!(recognise(bytes), Ok(format), "{bytes:?}");
    }
    assert_eq!(recognise(&cubin(false).build()), Ok(Format::CubinElf32));
    assert_eq!(recognise(&cubin(true).build()), Ok(Format::CubinElf64));
    assert_eq!(recognise(&r600().build()), Ok(Format::R600Elf));
    assert_eq!(recognise(&[]), Err(Error::Empty));
    let mut other = cubin(true);
    other.machine = 62;
    assert_eq!(recognise(&other.build()), Ok(Format::Embedded));
}

/// A driver writes one pair after the other.
#[test]
fn a_register_that_is_stated_twice_holds_the_last_value() {
    let mut elf = r600();
    elf.sections[1].data = words(&[0x28850, 0x0203, 0x2880c, 0x40, 0x2880c, 0x80, 0x28868, 0x0104]);
    let image = read(&elf.build());
    let [pixel, _] = &image.programs[..] else { panic!("two functions") };
    assert_eq!(pixel.state[1..], [("DB_SHADER_CONTROL".to_owned(), 0x80)]);
    assert_eq!(image.notes, ["DB_SHADER_CONTROL is stated more than once: the last value is used"]);
}

#[test]
fn hints_fill_what_the_file_does_not_tell_and_never_replace_what_it_does() {
    let hints = Hints { isa: Some(Isa::R500), chip: Some("rv515".to_owned()), ..Hints::default() };
    let image = load(b"00000001", &hints).unwrap();
    assert_eq!((image.isa, image.chip.as_deref()), (Some(Isa::R500), Some("rv515")));
    let image = load(&r600().build(), &hints).unwrap();
    assert_eq!((image.isa, image.chip.as_deref()), (Some(Isa::R700), Some("rv770")));
    assert_eq!(image.notes.len(), 2);
}

#[test]
fn an_elf_cubin_of_either_width_says_all_it_has() {
    for wide in [false, true] {
        let image = read(&cubin(wide).build());
        assert_eq!(image.format, if wide { "cubin-elf64" } else { "cubin-elf32" });
        assert_eq!((image.isa, image.chip.as_deref()), (Some(Isa::Tesla), Some("sm_13")));
        assert!(image.notes.is_empty(), "{:?}", image.notes);
        let program = &image.programs[0];
        assert_eq!(program.name.as_deref(), Some("k"));
        assert_eq!(program.stage, Some(Stage::Compute));
        assert_eq!(program.words, [0x1000_0001, 0xf]);
        assert_eq!(
            program.resources,
            Resources {
                registers: Some(7),
                shared_bytes: Some(0x28),
                local_bytes: Some(16),
                barriers: Some(2),
                stack: None,
                param_bytes: Some(0x18),
            }
        );
        let params: Vec<_> = program.params.iter().map(|param| (param.offset, param.bytes)).collect();
        assert_eq!(params, [(0, 8), (8, 4)]);
        assert_eq!(program.samplers, [Sampler { name: "tex".to_owned(), unit: 5 }]);
        assert_eq!(program.state("EIATTR_CRS_STACK_SIZE"), Some(0x10));
        assert_eq!(program.state("EIATTR_MAX_THREADS_Y"), Some(2));
        assert_eq!(program.constants, [ConstantBlock { bank: 1, offset: 0, bytes: words(&[0x4048_f5c3]) }]);
        let module = image.module_of(program).unwrap();
        let banks: Vec<_> = module.constants.iter().map(|block| block.bank).collect();
        assert_eq!(banks, [14, 0]);
        let [counter, table] = &module.variables[..] else { panic!("{:?}", module.variables) };
        assert_eq!(
            counter.place,
            Place::Global { slots: vec![Slot { bank: 14, offset: 8, addend: 0 }], init: words(&[99]) }
        );
        assert_eq!((table.bytes, &table.place), (8, &Place::Constant { bank: 0, offset: 0 }));
    }
}

#[test]
fn a_relocation_against_a_section_finds_the_object_that_is_meant() {
    let mut elf = cubin(true);
    let [symtab, strtab] = containers::symbols(
        true,
        11,
        &[("", 3, 8, 0, 0), ("first", 1, 8, 0, 4), ("tex", 10, 0, 0, 0), ("second", 1, 8, 4, 4)],
    );
    (elf.sections[9], elf.sections[10]) = (symtab, strtab);
    // The existing word is the addend: six bytes into the section, two into the second object.
    elf.sections[5].data = words(&[0, 0, 6, 0]);
    let image = read(&elf.build());
    let second = image.modules[0].variables.iter().find(|variable| variable.name == "second").unwrap();
    let slots = vec![Slot { bank: 14, offset: 8, addend: 2 }];
    assert_eq!(second.place, Place::Global { slots, init: words(&[99]) });
}

#[test]
fn a_fat_binary_gives_every_cubin_a_module_of_its_own() {
    let text = b"architecture {sm_10}\ncode { name = old bincode { 0x1 } }".to_vec();
    let file =
        fatbin(&[(1, 10, 0, b".version 1.4".to_vec()), (2, 13, 0, cubin(true).build()), (2, 10, 0, text)]);
    for file in [file.clone(), [words(&[0x4662_43b1, 1, 0, 0, 0, 0]), file].concat()] {
        let image = read(&file);
        let names: Vec<_> = image.programs.iter().map(|program| program.name.as_deref()).collect();
        assert_eq!(names, [Some("k"), Some("old")]);
        assert_eq!((image.isa, image.chip.as_deref()), (Some(Isa::Tesla), None));
        let chips: Vec<_> =
            image.programs.iter().map(|p| image.module_of(p).unwrap().chip.as_deref()).collect();
        assert_eq!(chips, [Some("sm_13"), Some("sm_10")]);
        assert_eq!(image.notes.len(), 1, "{:?}", image.notes);
    }
}

#[test]
fn a_compressed_member_is_an_error_by_name() {
    let file = fatbin(&[(2, 12, 0x2001, vec![1, 2, 3, 4])]);
    let error = load(&file, &Hints::default()).unwrap_err();
    assert!(
        matches!(&error, Error::Compressed { at: 16, flags: 0x2001, name } if name.contains("sm_12")),
        "{error}"
    );
}

#[test]
fn one_unreadable_member_does_not_hide_the_others_of_a_fat_binary() {
    let text = |name: &str| {
        format!("architecture {{sm_10}}\ncode {{ name = {name} bincode {{ 0x1 }} }}").into_bytes()
    };
    let mut fermi = cubin(true);
    fermi.flags = 0x14_0014;
    let mut empty = cubin(true);
    empty.sections.retain(|section| !section.name.starts_with(".text"));
    let members = [
        (2, 20, 0, fermi.build()),
        (2, 10, 0, text("first")),
        (2, 13, 0, empty.build()),
        (2, 10, 0x2001, vec![1, 2, 3, 4]),
        (2, 10, 0, text("last")),
    ];
    let file = fatbin(&members);
    let image = read(&file);
    let names: Vec<_> = image.programs.iter().map(|program| program.name.as_deref()).collect();
    assert_eq!(names, [Some("first"), Some("last")]);
    for (note, name, why) in
        [(0, "member 1, sm_20", "sm_20"), (1, "member 3", ".text"), (2, "member 4", "compressed")]
    {
        assert!(image.notes[note].contains(name) && image.notes[note].contains(why), "{:?}", image.notes);
    }
    assert_eq!(image.notes.len(), 3, "{:?}", image.notes);
    // A member that extends past the end of the file hides the members after it, but not those before it.
    let mut cut = file.clone();
    let last = file.len() - members[4].3.len() - 0x40;
    cut[last + 8..last + 16].fill(0xff);
    let image = read(&cut);
    assert_eq!((image.programs.len(), image.notes.len()), (1, 4), "{:?}", image.notes);
    let error = load(&fatbin(&members[..1]), &Hints::default()).unwrap_err().to_string();
    assert!(error.contains("member 1, sm_20") && error.contains("sm_10, sm_11"), "{error}");
}

#[test]
fn the_old_fat_binary_is_refused_by_name() {
    let error = load(&words(&[0x1ee5_5a01, 4, 0, 0]), &Hints::default()).unwrap_err();
    assert!(error.to_string().contains("0x1ee55a01"), "{error}");
}

#[test]
fn an_r600_object_gives_each_function_its_registers() {
    let image = read(&r600().build());
    assert_eq!((image.isa, image.chip.as_deref()), (Some(Isa::R700), Some("rv770")));
    let [ps, vs] = &image.programs[..] else { panic!("{:?}", image.programs) };
    assert_eq!(
        (ps.name.as_deref(), ps.stage, ps.words.as_slice()),
        (Some("ps"), Some(Stage::Pixel), &[1, 2][..])
    );
    assert_eq!((vs.name.as_deref(), vs.stage, vs.words.len()), (Some("vs"), Some(Stage::Vertex), 4));
    assert_eq!(ps.state, [("SQ_PGM_RESOURCES_PS".to_owned(), 0x203), ("DB_SHADER_CONTROL".to_owned(), 0x40)]);
    assert_eq!((ps.resources.registers, ps.resources.stack), (Some(3), Some(2)));
    assert_eq!((vs.resources.registers, vs.resources.stack), (Some(4), Some(1)));
}

#[test]
fn the_machine_number_names_the_chip() {
    for (flags, chip) in [(5, "rv710"), (6, "rv730"), (7, "rv770"), (1, "r600")] {
        let mut elf = r600();
        elf.flags = flags;
        assert_eq!(read(&elf.build()).chip.as_deref(), Some(chip));
    }
    let mut cedar = r600();
    cedar.flags = 8;
    assert!(matches!(load(&cedar.build(), &Hints::default()), Err(Error::OtherChip { .. })));
}

#[test]
fn a_wii_u_program_has_the_registers_of_its_header() {
    let image = read(&gsh_file(&[1, 2, 3, 4]));
    let program = &image.programs[0];
    assert_eq!((program.words.as_slice(), program.stage), (&[1, 2, 3, 4][..], Some(Stage::Pixel)));
    assert_eq!(program.state("SPI_PS_INPUT_CNTL_0"), Some(0x100));
    assert_eq!((program.resources.registers, program.resources.stack), (Some(3), Some(2)));
    assert!(image.notes.is_empty(), "{:?}", image.notes);
}

/// Returns a geometry program, its copy program and two pixel programs, with all registers of their headers.
fn wii_u_image() -> Image {
    let state = |names: &[&str]| {
        let value =
            |name: &&str| if name.starts_with("SQ_PGM_RESOURCES") { 0x103 } else { name.len() as u32 };
        names.iter().map(|name| ((*name).to_owned(), value(name))).collect::<Vec<_>>()
    };
    let geometry = [
        "SQ_PGM_RESOURCES_GS",
        "VGT_GS_OUT_PRIM_TYPE",
        "VGT_GS_MODE",
        "PA_CL_VS_OUT_CNTL",
        "SQ_PGM_RESOURCES_VS",
        "SQ_GS_VERT_ITEMSIZE",
        "SPI_VS_OUT_CONFIG",
        "VGT_STRMOUT_BUFFER_EN",
        "SPI_VS_OUT_ID_0",
        "SPI_VS_OUT_ID_1",
    ];
    let pixel = [
        "SQ_PGM_RESOURCES_PS",
        "SQ_PGM_EXPORTS_PS",
        "SPI_PS_IN_CONTROL_0",
        "SPI_PS_IN_CONTROL_1",
        "CB_SHADER_MASK",
        "CB_SHADER_CONTROL",
        "DB_SHADER_CONTROL",
        "SPI_INPUT_Z",
    ];
    let program = |name: &str, stage, words: &[u32], state: Vec<(String, u32)>| Program {
        name: Some(name.to_owned()),
        stage: Some(stage),
        words: words.to_vec(),
        resources: match state.first() {
            Some((_, register)) => Resources {
                registers: Some(register & 0xff),
                stack: Some(register >> 8),
                ..Resources::default()
            },
            None => Resources::default(),
        },
        state,
        ..Program::default()
    };
    Image {
        format: "gsh",
        isa: Some(Isa::R700),
        chip: Some("latte".to_owned()),
        programs: vec![
            program("geometry", Stage::Geometry, &[1, 2], state(&geometry)),
            program("gs-copy", Stage::GsCopy, &[3, 4], Vec::new()),
            program("pixel0", Stage::Pixel, &[5, 6, 7, 8], state(&pixel)),
            program("pixel1", Stage::Pixel, &[9, 10], state(&pixel)),
        ],
        ..Image::default()
    }
}

#[test]
fn a_wii_u_file_comes_back_as_it_was_written() {
    let image = wii_u_image();
    let back = read(&gsh::write(&image).unwrap().content);
    assert_eq!((back.programs, back.chip), (image.programs, image.chip));
}

#[test]
fn a_wii_u_file_refuses_by_name_what_it_cannot_hold() {
    let refused = |change: &dyn Fn(&mut Program)| {
        let mut image = wii_u_image();
        change(&mut image.programs[2]);
        gsh::write(&image).unwrap_err().to_string()
    };
    type Change<'a> = &'a dyn Fn(&mut Program);
    let cases: [(&str, Change<'_>); 9] = [
        ("the name `main`", &|program| program.name = Some("main".to_owned())),
        ("stage fetch of program", &|program| program.stage = Some(Stage::Fetch)),
        ("no stage", &|program| program.stage = None),
        ("a start that is not 0", &|program| program.base = 2),
        ("contents of constant buffers", &|program| program.constants.push(ConstantBlock::default())),
        ("state `SQ_CONFIG`", &|program| program.state.push(("SQ_CONFIG".to_owned(), 1))),
        ("state `SPI_PS_INPUT_CNTL_1`", &|program| program.state.push(("SPI_PS_INPUT_CNTL_1".to_owned(), 1))),
        ("without the registers CB_SHADER_MASK, SPI_INPUT_Z", &|program| {
            program.state.retain(|(name, _)| name != "CB_SHADER_MASK" && name != "SPI_INPUT_Z");
        }),
        ("7 registers", &|program| program.resources.registers = Some(7)),
    ];
    for (what, change) in cases {
        let message = refused(change);
        assert!(message.contains(what) && message.contains("cannot be written as gsh"), "{what}: {message}");
    }
    let mut alone = wii_u_image();
    alone.programs.remove(0);
    assert!(gsh::write(&alone).unwrap_err().to_string().contains("gs-copy program"), "{alone:?}");
}

fn ctm_program() -> Program {
    let state = [
        ("US_CONFIG", 2),
        ("US_PIXSIZE", 3),
        ("US_FC_CTRL", 0x8000_0000),
        ("US_CODE_ADDR", 0x1_0000),
        ("FG_DEPTH_SRC", 1),
        ("US_OUT_FMT_0", 0x1b07),
        ("US_FC_INT_CONST_31", 7),
        ("RS_INST_3", 9),
        ("0x4abc", 5),
    ];
    Program {
        name: Some("shade".to_owned()),
        stage: Some(Stage::Pixel),
        words: (0..12).collect(),
        state: state.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        constants: vec![
            ConstantBlock { bank: 0, offset: 0, bytes: (0..32).collect() },
            ConstantBlock { bank: 0, offset: 32, bytes: vec![7; 16] },
            ConstantBlock { bank: 0, offset: 255 * 16, bytes: vec![8; 16] },
        ],
        usage: Usage {
            inputs: Some(vec![0, 1]),
            outputs: Some(vec![0]),
            conditional_output: Some(true),
            float_constants: Some(vec![0, 1, 2, 255]),
            integer_constants: Some(vec![]),
            early_exit: Some(false),
        },
        ..Program::default()
    }
}

#[test]
fn a_ctm_executable_reads_back_as_the_program_written() {
    for program in
        [ctm_program(), Program { stage: Some(Stage::Pixel), words: vec![1; 6], ..Program::default() }]
    {
        let Written { content, notes } = ctm_elf::write(&program).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(recognise(&content), Ok(Format::CtmElf));
        let image = read(&content);
        assert_eq!(image.programs, [program]);
        assert_eq!(image.isa, Some(Isa::R500));
        assert!(image.notes.is_empty(), "{:?}", image.notes);
    }
}

#[test]
fn the_ctm_header_is_the_guides() {
    let bytes = ctm_elf::write(&ctm_program()).unwrap().content;
    assert_eq!(bytes[..9], *b"\x7fELF\x01\x01\x01\x62\x01");
    assert_eq!(bytes[16..24], [2, 0, 122, 0, 1, 0, 0, 0]);
    assert_eq!(bytes[24..28], [0; 4]);
    assert_eq!(bytes[36..40], [1, 0, 0, 0]);
}

#[test]
fn a_ctm_executable_without_the_state_note_says_what_is_missing() {
    let bytes = ctm_elf::write(&ctm_program()).unwrap().content;
    // The project's notes get another name.
    let foreign = replace(&bytes, b"Reconverge\0", b"Somebodyes\0");
    let image = read(&foreign);
    assert_eq!(image.programs[0].words, ctm_program().words);
    assert_eq!(image.programs[0].state, [("FG_DEPTH_SRC".to_owned(), 1)]);
    assert!(image.notes.iter().any(|note| note.contains("US_CONFIG")), "{:?}", image.notes);
    assert!(image.notes.iter().any(|note| note.contains("float constants")), "{:?}", image.notes);
}

#[test]
fn a_ctm_executable_needs_its_program_information() {
    let bytes = ctm_elf::write(&ctm_program()).unwrap().content;
    let without = replace(&bytes, b"ATI DPP\0", b"BTI DPP\0");
    assert!(matches!(load(&without, &Hints::default()), Err(Error::Missing { .. })));
}

#[test]
fn a_ctm_executable_loads_without_section_headers() {
    let mut bytes = ctm_elf::write(&Program { name: None, ..ctm_program() }).unwrap().content;
    bytes[32..36].fill(0);
    bytes[48..52].fill(0);
    assert_eq!(read(&bytes).programs[0], Program { name: None, ..ctm_program() });
}

#[test]
fn what_a_ctm_executable_cannot_hold_is_an_error() {
    let mut program = ctm_program();
    program.state.push(("SQ_PGM_RESOURCES_PS".to_owned(), 0));
    assert!(matches!(ctm_elf::write(&program), Err(Error::Unwritable { .. })));
    for block in [
        ConstantBlock { bank: 1, offset: 0, bytes: vec![0; 16] },
        ConstantBlock { bank: 0, offset: 8, bytes: vec![0; 16] },
        ConstantBlock { bank: 0, offset: 0, bytes: vec![0; 15] },
        ConstantBlock { bank: 0, offset: 256 * 16, bytes: vec![0; 16] },
    ] {
        let program = Program { constants: vec![block], ..ctm_program() };
        assert!(matches!(ctm_elf::write(&program), Err(Error::Unwritable { .. })));
    }
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for at in 0..=out.len() - from.len() {
        if out[at..].starts_with(from) {
            out[at..at + to.len()].copy_from_slice(to);
        }
    }
    out
}

/// Returns a cubin whose attributes only state the offsets of parameters.
fn with_offsets_only(wide: bool, offsets: &[u32], size: Option<u32>) -> Image {
    let mut elf = cubin(wide);
    let mut info = Vec::new();
    info.extend([4, 0x0b]);
    info.extend((4 * offsets.len() as u16).to_le_bytes());
    info.extend(words(offsets));
    if let Some(size) = size {
        info.extend([3, 0x18]);
        info.extend((size as u16).to_le_bytes());
    }
    let section = elf.sections.iter_mut().find(|section| section.name == ".nv.info.k").unwrap();
    section.data = info;
    read(&elf.build())
}

#[test]
fn parameter_offsets_alone_give_the_parameters() {
    let image = with_offsets_only(true, &[0, 8, 0x10, 0x14], Some(0x18));
    let params = &image.programs[0].params;
    let found: Vec<_> = params.iter().map(|param| (param.offset, param.bytes)).collect();
    assert_eq!(found, [(0, 8), (8, 8), (0x10, 4), (0x14, 4)]);
    assert!(image.notes.is_empty(), "{:?}", image.notes);
    let image = with_offsets_only(true, &[0, 8], None);
    assert!(image.programs[0].params.is_empty());
    assert!(image.notes[0].contains("offsets without sizes"), "{:?}", image.notes);
}

#[test]
fn the_class_of_an_elf_cubin_says_how_wide_pointers_are() {
    for (wide, bytes) in [(false, 4), (true, 8)] {
        assert_eq!(read(&cubin(wide).build()).modules[0].pointer_bytes, Some(bytes));
    }
}

fn rewritten(image: &Image, wide: bool) -> (Image, Vec<String>) {
    let Written { content, notes } = cubin_elf::write(image, wide).unwrap_or_else(|error| panic!("{error}"));
    (Image { notes: image.notes.clone(), ..read(&content) }, notes)
}

#[test]
fn an_elf_cubin_reads_back_as_the_image_written() {
    for wide in [false, true] {
        let image = read(&cubin(wide).build());
        let (back, notes) = rewritten(&image, wide);
        assert_eq!(back, image);
        assert!(notes.is_empty(), "{notes:?}");
    }
    // An addend that differs from the existing word, a variable without contents, a bank that has only variables.
    let mut image = read(&cubin(true).build());
    let module = &mut image.modules[0];
    let place = |slots, init| Place::Global { slots, init };
    for (name, bytes, place) in [
        ("far", 8, place(vec![Slot { bank: 14, offset: 0, addend: 6 }], Vec::new())),
        ("set", 3, place(vec![Slot { bank: 13, offset: 0, addend: 0 }], vec![1, 2, 3])),
        ("bank", 16, Place::Constant { bank: 3, offset: 8 }),
    ] {
        module.variables.push(Variable { name: name.to_owned(), bytes, place });
    }
    let (back, notes) = rewritten(&image, true);
    assert_eq!(back, image);
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn a_text_cubin_becomes_an_elf_cubin_with_notes_of_what_has_no_place() {
    let text = "architecture {sm_11}\nabiversion {1}\nmodname {m}\n\
        consts { name = a segname = const segnum = 0 offset = 0 bytes = 4 mem { 0x1 } }\n\
        consts { name = b segname = const segnum = 0 offset = 8 bytes = 4 mem { 0x2 } }\n\
        sampler { name = tex texunit = 3 }\n\
        code { name = k lmem = 0 smem = 24 reg = 2 bar = 0 bincode { 0x1000c805 0x0423c780 } }";
    let image = read(text.as_bytes());
    let (back, notes) = rewritten(&image, true);
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert_eq!(back.chip.as_deref(), Some("sm_11"));
    assert_eq!(back.modules[0].variables, image.modules[0].variables);
    assert_eq!(back.modules[0].constants[0].bytes, words(&[1, 0, 2]));
    assert_eq!(back.programs[0].samplers, image.modules[0].samplers);
    assert_eq!(back.programs[0].words, image.programs[0].words);
    assert_eq!(back.programs[0].resources, image.programs[0].resources);
}

#[test]
fn what_an_elf_cubin_cannot_hold_is_refused_by_name() {
    let refused = |change: fn(&mut Image), wide| {
        let mut image = read(&cubin(true).build());
        change(&mut image);
        cubin_elf::write(&image, wide).unwrap_err().to_string()
    };
    let has = |text: String, part: &str| assert!(text.contains(part), "{text}");
    has(refused(|_| {}, false), "pointers of 8 bytes cannot be written as cubin-elf32: write cubin-elf64");
    has(refused(|image| image.modules.push(image.modules[0].clone()), true), "2 modules");
    has(refused(|image| image.modules[0].chip = Some("sm_20".to_owned()), true), "`sm_20`");
    has(refused(|image| image.programs[0].name = None, true), "without a name");
    has(refused(|image| image.programs[0].name = Some("a\0".to_owned()), true), "zero byte");
    has(refused(|image| image.programs[0].base = 8, true), "at address 0x8");
    has(refused(|image| image.programs[0].stage = Some(Stage::Fragment), true), "fragment program");
    has(refused(|image| image.programs[0].resources.registers = None, true), "say .reg N");
    has(refused(|image| image.programs[0].resources.registers = Some(300), true), "300 registers");
    has(refused(|image| image.programs[0].resources.stack = Some(1), true), "stack size");
    has(refused(|image| image.programs[0].state.push(("odd".to_owned(), 1)), true), "state `odd`");
    has(refused(|image| image.programs[0].params[0].bytes = 1 << 14, true), "parameter 0");
    has(refused(|image| image.modules[0].constants[0].bank = 99, true), "bank 99");
    has(refused(|image| image.programs.push(image.programs[0].clone()), true), "k");
}

#[test]
fn debug_sections_are_one_note() {
    let mut elf = cubin(true);
    let names = [".debug_line", ".debug_info", ".nv_debug_ptx_txt"];
    elf.sections.extend(names.map(|name| containers::sec(name, &[1, 2, 3])));
    let image = read(&elf.build());
    assert_eq!(image.notes, ["debug information (.debug_line and 2 more) was skipped"]);
}
