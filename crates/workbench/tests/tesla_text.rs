//! The text of a Tesla file holds the whole module: what is assembled from it is the image that was loaded.

use reconverge_container::{Hints, load};
use reconverge_isa::Image;
use reconverge_isa::program::{ConstantBlock, Module, Param, Place, Program, Sampler, Slot, Stage, Variable};
use reconverge_workbench::machine::assemble;
use reconverge_workbench::{Style, Target, round_trip_image};

/// A text cubin with everything that one can have.
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
    (Target::new(image.isa.unwrap(), image.chip.as_deref()), image)
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
    // Each header once, and the file's own word for the chip.
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
        // Two blocks that touch stay two; one is empty, one has odd bytes.
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
    let target = Target::new(reconverge_isa::Isa::Tesla, None);
    let (text, assembled) = back(&target, &image, Style { hex: true, structure: true, notes: true });
    assert_eq!(Image { format: image.format, ..assembled }, image, "{text}");
    assert_eq!(round_trip_image(&target, &image), Ok(()));
}

#[test]
fn comments_change_nothing_that_is_read() {
    let (target, image) = cubin();
    let (plain, assembled) = back(&target, &image, Style::default());
    let (noted, with_notes) = back(&target, &image, Style { notes: true, hex: true, structure: true });
    assert_eq!(assembled, with_notes);
    assert!(noted.len() > plain.len());
    let altered: Vec<&str> = noted.lines().map(|line| line.split(';').next().unwrap()).collect();
    assert_eq!(assemble(&target, &altered.join("; x \"y\" .reg 9\n")).unwrap().image, assembled);
}

#[test]
fn comments_name_what_instructions_use() {
    let (target, image) = cubin();
    let (text, _) = back(&target, &image, Style { notes: true, ..Style::default() });
    for wanted in [".kernel _Z5scalePfi ; scale(float*, int)", "s[0x10]", "; parameter 0: f32*"] {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
}

#[test]
fn what_belongs_elsewhere_is_refused_with_the_place() {
    let target = Target::new(reconverge_isa::Isa::Tesla, None);
    let wrong = |source: &str| assemble(&target, source).unwrap_err()[0].to_string();
    assert_eq!(
        wrong(".module m\n.reg 4\n"),
        "`.reg` belongs to a program (put `.kernel NAME` in front of it)"
    );
    assert_eq!(
        wrong(".kernel k\n.abi 1\n"),
        "`.abi` belongs to a module (begin one with `.module`, in front of its kernels)"
    );
    assert!(wrong(".module\n.variable x 4 elsewhere\n").contains("`c0[0x10]` fits here"));
    assert!(wrong(".module\n.data 1\n").contains("continues the contents"));
    assert!(wrong(".const 0 0 bytes 0x100\n").contains("at most 0xff"));
    assert!(wrong(".kernel k\n.param s[0x8] 4\n").contains("s[0x10]"));
    assert!(wrong(".kernel \"k\n").contains("quotation marks"));
}
