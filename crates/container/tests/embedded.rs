//! Tests that images are found in the files that contain them, and that other files are rejected with the name of
//! their kind.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use reconverge_container::{Endian, Error, Format, Hints, load, patch, recognise};
use reconverge_isa::program::Stage;
use reconverge_isa::{Image, Isa};
use reconverge_testkit::containers::{Elf, cal, cubin, fatbin, gsh, r600, sec, symbols, words};

const TEXT: &[u8] = b"architecture {sm_11}\nmodname {cubin}\ncode { name = old bincode { 0x00000001 } }\n";

fn read(bytes: &[u8]) -> Image {
    load(bytes, &Hints::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(bytes: &[u8]) -> String {
    let hints = Hints { isa: Some(Isa::R700), ..Hints::default() };
    load(bytes, &hints).expect_err("no image is there").to_string()
}

/// Returns an object for another machine with the given contents in its sections.
fn object(contents: &[&[u8]]) -> Vec<u8> {
    let sections = contents.iter().map(|content| sec(".rodata", content)).collect();
    Elf { wide: true, machine: 62, flags: 0, sections }.build()
}

/// Returns the first bytes of a Windows executable, followed by contents.
fn windows(contents: &[u8]) -> Vec<u8> {
    let mut file = b"MZ".to_vec();
    file.resize(0x3c, 0);
    file.extend(words(&[0x80]));
    file.resize(0x80, 0x90);
    file.extend(b"PE\0\0\x64\x86");
    file.extend(contents);
    file
}

fn objects(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = b"!<arch>\n".to_vec();
    for (name, content) in members {
        file.extend(format!("{name:<16}{:<32}{:<10}`\n", "0", content.len()).bytes());
        file.extend(*content);
        file.resize(file.len().next_multiple_of(2), b'\n');
    }
    file
}

fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = Vec::new();
    for (name, content) in members {
        let mut head = vec![0; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        head[257..263].copy_from_slice(b"ustar\0");
        file.extend(head);
        file.extend(*content);
        file.resize(file.len().next_multiple_of(512), 0);
    }
    file.resize(file.len() + 1024, 0);
    file
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn offset_of(file: &[u8], part: &[u8]) -> usize {
    file.windows(part.len()).position(|window| window == part).unwrap()
}

fn names(image: &Image) -> Vec<&str> {
    image.programs.iter().map(|program| program.name.as_deref().unwrap_or("-")).collect()
}

fn modules(image: &Image) -> Vec<&str> {
    image.modules.iter().map(|module| module.name.as_deref().unwrap()).collect()
}

#[test]
fn images_are_found_in_executables_objects_libraries_and_archives() {
    let elf = cubin(true).build();
    let fat = fatbin(&[(2, 13, 0, elf.clone()), (2, 11, 0, TEXT.to_vec())]);
    let mut text = b"\0\x01strings\0".to_vec();
    text.extend(TEXT);
    text.extend(b"\0more strings\0");
    for host in [object(&[b"abc", &fat, &text]), windows(&[&fat[..], &text].concat())] {
        assert_eq!(recognise(&host), Ok(Format::Embedded));
        let image = read(&host);
        assert_eq!((image.format, image.isa), ("embedded", Some(Isa::Tesla)));
        assert_eq!(names(&image), ["k", "old", "old"]);
        let (fat, text) = (offset_of(&host, &fat), offset_of(&host, &text) + 10);
        let expected = [
            format!("offset {fat:#x}, member 1, sm_13"),
            format!("offset {fat:#x}, cubin"),
            format!("offset {text:#x}, cubin"),
        ];
        assert_eq!(modules(&image), expected);
        assert_eq!(image.modules[2].chip.as_deref(), Some("sm_11"));
        let chips: Vec<_> =
            image.programs.iter().map(|program| image.module_of(program).unwrap().chip.clone()).collect();
        assert_eq!(
            chips.iter().map(|chip| chip.as_deref().unwrap()).collect::<Vec<_>>(),
            ["sm_13", "sm_11", "sm_11"]
        );
        for (program, word) in [(0, 0), (0, 1), (1, 0), (2, 0)] {
            let patched = patch(&host, &Hints::default(), program, word, &[0x1234_5678]).unwrap();
            assert_eq!(patched.len(), host.len());
            assert_eq!(read(&patched).programs[program].words[word], 0x1234_5678);
        }
    }
    // Names contain the members of archives.
    let host = object(&[&elf]);
    let library = objects(&[
        ("first.o/", b"nothing"),
        ("kernels.o/", &host),
        ("//", b"a_very_long_name.o/\n"),
        ("/0", TEXT),
    ]);
    let image = read(&library);
    let [at, second] = [offset_of(&library, &elf), offset_of(&library, TEXT)];
    assert_eq!(
        modules(&image),
        [format!("offset {at:#x} (kernels.o)"), format!("offset {second:#x} (a_very_long_name.o), cubin")]
    );
    let archive = tar(&[("readme", b"text"), ("dir/a.cubin", TEXT), ("b.gsh", &gsh(&[1, 2]))]);
    assert_eq!(recognise(&archive), Ok(Format::Embedded));
    let image = read(&archive);
    assert_eq!(modules(&image), ["offset 0x600 (dir/a.cubin), cubin", "offset 0xa00 (b.gsh)"]);
    // With two machines, none is selected.
    assert_eq!(image.isa, None);
    let hints = Hints { isa: Some(Isa::R700), ..Hints::default() };
    let image = load(&archive, &hints).unwrap();
    assert_eq!((image.programs.len(), image.isa), (1, Some(Isa::R700)));
    assert!(image.notes[0].contains("for tesla, not for r700"), "{:?}", image.notes);
}

/// Formats without names use the same names in every file, so a text could not distinguish the programs.
#[test]
fn programs_of_one_name_are_named_after_their_modules_too() {
    let (one, other) = (gsh(&[1, 2]), gsh(&[3, 4]));
    let archive = tar(&[("a.gsh", &one), ("b.gsh", &other)]);
    let image = read(&archive);
    assert_eq!(names(&image), ["offset 0x200 (a.gsh), pixel", "offset 0x600 (b.gsh), pixel"]);
    assert_eq!(names(&read(&tar(&[("a.gsh", &one)]))), ["pixel"]);
}

#[test]
fn an_image_that_cannot_be_read_does_not_hide_the_others_of_a_file() {
    let mut fermi = cubin(true);
    fermi.flags = 0x14_0014;
    let mut broken = cubin(false).build();
    broken[32..36].fill(0xff);
    let host = object(&[&fermi.build(), &broken, &r600().build()]);
    let image = read(&host);
    assert_eq!((names(&image), image.isa), (vec!["ps", "vs"], Some(Isa::R700)));
    assert_eq!(image.notes.len(), 2, "{:?}", image.notes);
    assert!(image.notes[0].contains("sm_20") && image.notes[1].contains("offset 0x"), "{:?}", image.notes);
    let none = load(&object(&[&fermi.build()]), &Hints::default()).unwrap_err();
    assert!(matches!(none, Error::Member { .. }), "{none}");
    // Many headers end the search early.
    let many = object(&[&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xbe\0".repeat(20_000)]);
    assert!(load(&many, &Hints::default()).is_err());
}

#[test]
fn an_image_amid_other_bytes_is_found_without_a_host() {
    let mut memory = vec![0xa5; 1001];
    memory.extend(cubin(false).build());
    memory.resize(memory.len() + 77, 0x5a);
    assert_eq!(modules(&read(&memory)), ["offset 0x3e9"]);
}

#[test]
fn a_cal_image_has_a_program_for_each_chip_of_ours() {
    let image = cal(&[
        (4, 0, &[1, 2], &[(0x28850, 0x0203), (0x28854, 1)]),
        (7, 0, &[3], &[]),
        (0, 1, &[4, 5], &[(0xa21a, 0x0104)]),
        (9, 0, &[6, 7], &[]),
        (12, 4, &[8, 9], &[]),
    ]);
    assert_eq!(recognise(&image), Ok(Format::CalElf));
    let image = read(&image);
    assert_eq!((image.isa, image.chip.as_deref(), image.format), (Some(Isa::R700), None, "cal-elf"));
    let stages: Vec<_> = image.programs.iter().map(|program| program.stage).collect();
    assert_eq!(stages, [Some(Stage::Pixel), Some(Stage::Vertex), Some(Stage::Compute)]);
    assert_eq!(modules(&image), ["encoding 1, rv770", "encoding 3, r600", "encoding 5, rv730"]);
    assert_eq!(image.programs[1].words, [4, 5]);
    assert_eq!(image.programs[0].state("SQ_PGM_RESOURCES_PS"), Some(0x203));
    assert_eq!(image.programs[1].state("SQ_PGM_RESOURCES_VS"), Some(0x104));
    assert_eq!(
        (image.programs[1].resources.registers, image.programs[1].resources.stack),
        (Some(4), Some(1))
    );
    assert!(image.notes.iter().any(|note| note.contains("encoding 4") && note.contains("machine 9")));
    assert!(image.notes.iter().any(|note| note.contains("encoding 2: intermediate language")));
    let later = load(&cal(&[(9, 0, &[6], &[])]), &Hints::default()).unwrap_err().to_string();
    assert!(later.contains("a later chip"), "{later}");
}

#[test]
fn an_opencl_binary_gives_its_kernels_their_names() {
    let kernels = [cal(&[(4, 4, &[1, 2], &[])]), cal(&[(11, 4, &[3, 4], &[])])];
    let sizes = kernels.each_ref().map(|kernel| kernel.len() as u64);
    let [symtab, strtab] = symbols(
        false,
        3,
        &[("__OpenCL_add_kernel", 2, 1, 0, sizes[0]), ("__OpenCL_scale_kernel", 2, 1, sizes[0], sizes[1])],
    );
    let sections = vec![sec(".text", &kernels.concat()), symtab, strtab];
    let file = Elf { wide: false, machine: 1006, flags: 0, sections }.build();
    let image = read(&file);
    assert_eq!(names(&image), ["add", "scale"]);
    assert_eq!(image.modules[1].chip.as_deref(), Some("rv710"));
}

#[test]
fn a_compressed_file_is_read_and_not_patched() {
    let image = read(&gzip(TEXT));
    assert_eq!((names(&image), image.format), (vec!["old"], "cubin-text"));
    let host = object(&[TEXT]);
    assert_eq!(names(&read(&gzip(&host))), ["old"]);
    let why = patch(&gzip(TEXT), &Hints::default(), 0, 0, &[1]).unwrap_err().to_string();
    assert!(why.contains("unpack it first"), "{why}");
    assert!(refused(&gzip(TEXT)[..40]).contains("truncated"));
    assert!(refused(&gzip(&gzip(TEXT))).contains("twice"));
    let words = Hints { isa: Some(Isa::R700), ..Hints::default() };
    assert_eq!(load(&gzip(&[1, 0, 0, 0x80]), &words).unwrap().programs[0].words, [0x8000_0001]);
}

#[test]
fn files_of_other_kinds_are_refused_by_name() {
    for (start, name) in [
        (&b"\x89PNG\r\n\x1a\n"[..], "a PNG image"),
        (b"PK\x03\x04\x14\0", "a zip archive"),
        (b"%PDF-1.4\xe2\xe3", "a PDF document"),
        (b"\xfd7zXZ\0", "an xz file"),
        (b"\x03\x02\x23\x07", "a SPIR-V module"),
        (b"\x93NUMPY\x01\0", "a NumPy array"),
        (b"\x1f\x8b\x08\0", "a gzip file"),
    ] {
        let mut file = start.to_vec();
        file.resize(64, 0xee);
        let why = refused(&file);
        assert!(why.contains(name), "{why}");
        assert!(refused(&object(&[&file])).contains("an ELF file of another machine"));
        // The caller may select a format.
        let hints = Hints { format: Some(Format::Bin), ..Hints::default() };
        assert_eq!(load(&file, &hints).unwrap().programs[0].words.len(), 16);
    }
    assert!(refused(&windows(b"code")).contains("a Windows executable or library"));
    assert!(refused(&objects(&[("a.o/", b"code")])).contains("an archive of objects"));
    assert!(refused(&tar(&[("a", b"code")])).contains("a tar archive"));
    let mut big = object(&[b"code"]);
    big[5] = 2;
    assert!(refused(&big).contains("an ELF file"));
}

#[test]
fn raw_words_can_be_big_endian() {
    let hints = Hints { endian: Some(Endian::Big), ..Hints::default() };
    let file = [0x80, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(load(&file, &hints).unwrap().programs[0].words, [0x8000_0001, 2]);
    assert_eq!(patch(&file, &hints, 0, 1, &[3]).unwrap(), [0x80, 0, 0, 1, 0, 0, 0, 3]);
}
