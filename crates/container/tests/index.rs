//! Tests that every binary of the shared collection loads, with the facts that the collection's index states.

use reconverge_container::{Format, Hints, cubin_elf, cubin_text, gsh, hex, load, recognise};
use reconverge_isa::{Image, Isa};
use reconverge_testkit::shared;
use serde_json::Value;

#[test]
fn every_item_of_the_index_loads_as_the_index_says() {
    let Some(folder) = shared("binaries") else { return };
    let index: Value = serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
    let items = index["items"].as_array().unwrap();
    assert!(!items.is_empty());
    let mut kernels = 0;
    for item in items {
        let file = item["file"].as_str().unwrap();
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let hints = match item["isa"].as_str().unwrap() {
            "tesla" => Isa::Tesla,
            "r500" => Isa::R500,
            _ => Isa::R700,
        };
        let image = load(&bytes, &Hints { isa: Some(hints), ..Hints::default() });
        let image = image.unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(image.format, item["format"], "{file}");
        assert_eq!(image.isa, Some(hints), "{file}");
        let expected = item["kernels"].as_array().unwrap();
        assert_eq!(image.programs.len(), expected.len(), "{file}");
        for (position, kernel) in expected.iter().enumerate() {
            let name = kernel["name"].as_str().unwrap();
            // The index sorts kernels of some ELF files its own way.
            let named = image.programs.iter().find(|program| program.name.as_deref() == Some(name));
            let program = named.unwrap_or(&image.programs[position]);
            if image.format != "hex32" {
                assert_eq!(program.name.as_deref(), Some(name), "{file}");
                assert_eq!(image.chip.as_deref(), item["arch"].as_str(), "{file}");
            }
            assert_eq!(program.words.len() as u64, kernel["words"], "{file} {name}");
            let resources = &program.resources;
            for (field, value) in [
                ("registers", resources.registers),
                ("shared_bytes", resources.shared_bytes),
                ("local_bytes", resources.local_bytes),
                ("barriers", resources.barriers),
            ] {
                // A hex file cannot contain the registers that the index states.
                if let (Some(expected), true) = (kernel[field].as_u64(), image.format != "hex32") {
                    assert_eq!(value.map(u64::from), Some(expected), "{file} {name} {field}");
                }
            }
            kernels += 1;
        }
        if image.format == Format::CubinText.name() {
            let written = cubin_text::write(&image).unwrap();
            assert_eq!(cubin_text::load(&written.content).unwrap().programs, image.programs, "{file}");
            assert_eq!(cubin_text::load(&written.content).unwrap().modules, image.modules, "{file}");
        }
        let wide = image.format == Format::CubinElf64.name();
        if wide || image.format == Format::CubinElf32.name() {
            let written = cubin_elf::write(&image, wide).unwrap_or_else(|error| panic!("{file}: {error}"));
            let back = cubin_elf::load(&written.content).unwrap();
            assert_eq!(Image { notes: image.notes.clone(), ..back }, image, "{file}");
            assert!(written.notes.is_empty(), "{file}: {:?}", written.notes);
        }
        for program in &image.programs {
            assert_eq!(
                hex::load(&hex::write(&program.words)).unwrap().programs[0].words,
                program.words,
                "{file}"
            );
        }
    }
    println!("{} files, {kernels} kernels", items.len());
}

#[test]
fn benchmark_cubins_load() {
    let Some(folder) = shared("bench") else { return };
    for name in ["mandel", "collatz"] {
        let bytes = std::fs::read(folder.join(format!("{name}.cubin"))).unwrap();
        let image = load(&bytes, &Hints::default()).unwrap();
        assert_eq!(recognise(&bytes), Ok(Format::CubinText));
        assert_eq!(image.programs[0].name.as_deref(), Some(name));
        assert!(image.notes.is_empty(), "{:?}", image.notes);
    }
}

#[test]
fn wii_u_files_hold_the_words_of_their_neighbours() {
    let Some(folder) = shared("binaries/r700") else { return };
    let files = [
        ("latte-wut/pos_col_shader.gsh", "latte-wut/pos_col"),
        ("latte-sdl/wiiucolorshaderdata.gsh", "latte-sdl/wiiucolorshaderdata"),
        ("latte-sdl/wiiutextureshaderdata.gsh", "latte-sdl/wiiutextureshaderdata"),
    ];
    for (file, words) in files {
        let image = load(&std::fs::read(folder.join(file)).unwrap(), &Hints::default()).unwrap();
        assert_eq!((image.format, image.isa, image.chip.as_deref()), ("gsh", Some(Isa::R700), Some("latte")));
        let names = |note: &String| note.starts_with("not read: ") && !note.contains("initial");
        assert!(image.notes.iter().all(names), "{file}: {:?}", image.notes);
        for (program, stage) in image.programs.iter().zip(["vs", "ps"]) {
            let text = std::fs::read_to_string(folder.join(format!("{words}-{stage}.hex"))).unwrap();
            assert_eq!(program.words, hex::load(&text).unwrap().programs[0].words, "{file} {stage}");
            assert!(program.state(&format!("SQ_PGM_RESOURCES_{}", stage.to_uppercase())).is_some());
        }
        let names: Vec<_> = image.programs.iter().map(|program| program.name.as_deref()).collect();
        assert_eq!(names, [Some("vertex"), Some("pixel")]);
        let back = load(&gsh::write(&image).unwrap().content, &Hints::default()).unwrap();
        assert_eq!((&back.programs, &back.chip), (&image.programs, &image.chip), "{file}");
    }
}
