//! Tests that a patched file differs from the old one only in the requested words.

use reconverge_container::{Hints, ctm_elf, load, patch};
use reconverge_isa::{Isa, Program};
use reconverge_testkit::containers::{self, cubin, fatbin, gsh, r600, words};
use reconverge_testkit::shared;

/// Changes each word of a file, one after another. Returns the number of words.
fn patch_each(name: &str, file: &[u8], step: usize) -> usize {
    let hints = Hints::default();
    let image = load(file, &hints).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut count = 0;
    for (number, program) in image.programs.iter().enumerate() {
        for index in (0..program.words.len()).step_by(step) {
            let new = !program.words[index];
            let patched = patch(file, &hints, number, index, &[new])
                .unwrap_or_else(|error| panic!("{name}, program {number}, word {index}: {error}"));
            let mut expected = image.clone();
            expected.programs[number].words[index] = new;
            assert!(load(&patched, &hints).unwrap() == expected, "{name}, program {number}, word {index}");
            assert_eq!(patched.len(), file.len(), "{name}");
            let differ: Vec<usize> = (0..file.len()).filter(|at| patched[*at] != file[*at]).collect();
            let span = differ.last().unwrap() - differ.first().unwrap();
            let text = std::str::from_utf8(file).is_ok();
            // A fat binary may contain a text cubin, whose numbers have ten characters.
            let most = if name.contains("fatbin") { 9 } else { 3 };
            assert!(text || (3..=most).contains(&span), "{name}, word {index}: {differ:?}");
            count += 1;
        }
    }
    count
}

const TEXT: &str = "architecture {sm_10}\nabiversion {1}\nsampler { name = t texunit = 3 }\n\
    code {\n name = a\n reg=3 bincode  {\n 0x1000c805 0000000000 0x0423c780\n }\n }\n\
    # between\ncode { name = b bincode { 0xFFFFFFFF } const { segnum = 1 offset = 0 bytes = 4 mem { 0x00000005 } } }";

#[test]
fn every_word_of_every_container_can_be_changed_alone() {
    let ctm = Program { words: (0..12).collect(), ..Program::default() };
    let members = [
        (1, 10, 0, b".version 1.4".to_vec()),
        (2, 13, 0, cubin(true).build()),
        (2, 10, 0, TEXT.as_bytes().to_vec()),
    ];
    let fat = fatbin(&members);
    let array = |kind: &str, file: &[u8]| {
        let width = if kind == "unsigned int" { 4 } else { 1 };
        let number = |part: &[u8]| {
            part.iter().rev().fold(String::from("0x"), |text, byte| text + &format!("{byte:02x}"))
        };
        let numbers: Vec<String> = file.chunks(width).map(number).collect();
        format!("static const {kind} x[] = {{\n {} /* , */\n}};\n", numbers.join(",\n ")).into_bytes()
    };
    let samples = [
        ("bin", words(&[1, 0x8000_0002, 3]), 3),
        ("hex32", b"# two\n00000001 deadbeef\n".to_vec(), 2),
        ("cubin-text", TEXT.as_bytes().to_vec(), 4),
        ("cubin-elf32", cubin(false).build(), 2),
        ("cubin-elf64", cubin(true).build(), 2),
        ("fatbin", fat.clone(), 6),
        ("wrapped fatbin", [words(&[0x4662_43b1, 1, 0, 0, 0, 0]), fat.clone()].concat(), 6),
        ("ctm-elf", ctm_elf::write(&ctm).unwrap().content, 12),
        ("r600-elf", r600().build(), 6),
        ("gsh", gsh(&[1, 2, 3, 4]), 4),
        ("array of bytes", array("unsigned char", &cubin(true).build()), 2),
        ("array of bytes of text", array("unsigned char", TEXT.as_bytes()), 4),
        ("array of words", array("unsigned int", &words(&[5, 6, 0x8000_0000])), 3),
        ("array of a fatbin", array("unsigned char", &fat), 6),
    ];
    for (name, file, words) in samples {
        assert_eq!(patch_each(name, &file, 1), words, "{name}");
    }
}

#[test]
fn words_that_two_programs_share_are_refused() {
    // The second function has the offset of the first: the object is damaged, and loading rejects it before patching.
    let mut elf = r600();
    [elf.sections[2], elf.sections[3]] =
        containers::symbols(false, 4, &[("ps", 2, 1, 0, 8), ("vs", 2, 1, 4, 16)]);
    assert!(patch(&elf.build(), &Hints::default(), 0, 0, &[7]).is_err());
}

#[test]
fn a_hint_decides_as_when_loading() {
    let hints = Hints { isa: Some(Isa::R700), ..Hints::default() };
    assert_eq!(patch(b"00000001", &hints, 0, 0, &[2]).unwrap(), b"00000002");
}

#[test]
fn real_cubins_and_wii_u_files_keep_every_other_byte() {
    let Some(folder) = shared("binaries") else { return };
    let index: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
    let formats = index["items"].as_array().unwrap().iter().filter(|item| item["format"] != "hex32");
    let mut files: Vec<_> = formats.map(|item| item["file"].as_str().unwrap().to_owned()).collect();
    let wii = ["latte-wut/pos_col_shader.gsh", "latte-sdl/wiiucolorshaderdata.gsh"];
    files.extend(wii.map(|name| format!("r700/{name}")));
    assert!(files.len() > 12);
    let mut count = 0;
    for name in &files {
        let file = std::fs::read(folder.join(name)).unwrap();
        // Every word of small files, about thirty of large ones.
        count += patch_each(name, &file, (file.len() / 4 / 30).max(1));
    }
    println!("{} files, {count} words", files.len());
}
