//! Tests that damaged and malicious files lead to an error with a message. Loading never panics or allocates much
//! memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use proptest::prelude::*;
use reconverge_container::{Error, Format, Hints, ctm_elf, load};
use reconverge_isa::Program;
use reconverge_testkit::containers::{self, Elf, Sec, cubin, fatbin, gsh, r600, sec, symbols};
use reconverge_testkit::shared;

thread_local! {
    static HELD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Seed for all random numbers of this file.
const SEED: u64 = 0x5eed_0001;

/// Maximum ratio of the loader's memory use to the size of the file. The worst case is a C source of arrays with one
/// word: twelve bytes become a program and a module of some 600 bytes together, in vectors that double when they
/// grow.
const MULTIPLE: usize = 128;

/// Counts the bytes that each thread has allocated, and their maximum.
struct Counting;

// The system's allocator is only extended by counting.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = HELD.try_with(|held| {
            let (now, most) = held.get();
            let now = now + layout.size();
            held.set((now, most.max(now)));
        });
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let _ = HELD.try_with(|held| {
            let (now, most) = held.get();
            held.set((now.saturating_sub(layout.size()), most));
        });
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Loads a file, and checks that this took no more memory than a small multiple of its size.
fn try_load(bytes: &[u8]) -> Result<(), Error> {
    try_load_as(bytes, None)
}

fn try_load_as(bytes: &[u8], format: Option<Format>) -> Result<(), Error> {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    let result = load(bytes, &Hints { format, ..Hints::default() });
    let (_, most) = HELD.get();
    // Unpacking needs a window of 32 KiB and tables.
    let fixed = if bytes.starts_with(b"\x1f\x8b") { 96 << 10 } else { 16 << 10 };
    let limit = MULTIPLE * bytes.len() + fixed;
    assert!(most - before <= limit, "{} bytes held for a file of {}", most - before, bytes.len());
    if let Err(error) = &result {
        assert!(!error.to_string().is_empty());
    }
    result.map(|_| ())
}

/// Returns a sample of each format.
fn samples() -> Vec<(Format, Vec<u8>)> {
    let program = Program {
        name: Some("p".to_owned()),
        words: vec![3; 12],
        state: vec![("US_CONFIG".to_owned(), 2)],
        ..Program::default()
    };
    let others = containers::samples().into_iter();
    let mut samples: Vec<(Format, Vec<u8>)> =
        others.map(|(name, bytes)| (name.parse().unwrap(), bytes)).collect();
    samples.push((Format::CtmElf, ctm_elf::write(&program).unwrap().content));
    samples
}

#[test]
fn every_sample_loads() {
    let samples = samples();
    assert_eq!(samples.len(), Format::ALL.len());
    for (format, bytes) in samples {
        assert_eq!(reconverge_container::recognise(&bytes), Ok(format));
        assert_eq!(try_load(&bytes), Ok(()), "{format}");
    }
}

#[test]
fn every_truncation_of_a_binary_sample_is_an_error() {
    for (format, bytes) in samples() {
        for end in 0..bytes.len() {
            let result = try_load_as(&bytes[..end], Some(format));
            let is_text = matches!(
                format,
                Format::Hex32 | Format::CubinText | Format::C | Format::Dump | Format::Diff | Format::Log
            );
            // Whole words are a file of raw words. A cut directly after the last program loses nothing.
            let may_load = is_text
                || format == Format::Bin && end % 4 == 0
                // The missing part may belong to the host file only.
                || format == Format::Embedded
                || format == Format::Gsh && end == bytes.len() - 32;
            assert!(may_load || result.is_err(), "{format} cut at {end}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(SEED),
        ..ProptestConfig::default()
    })]

    #[test]
    fn flipped_and_cut_samples_never_panic(
        which in 0..Format::ALL.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (format, mut bytes) = samples().swap_remove(which);
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = try_load(&bytes);
        let _ = try_load_as(&bytes, Some(format));
    }

    #[test]
    fn any_bytes_as_any_format_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in Format::ALL {
            let _ = try_load_as(&bytes, Some(format));
        }
    }
}

#[test]
fn every_byte_of_every_binary_sample_can_be_extreme() {
    for (format, bytes) in samples() {
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let _ = try_load_as(&bytes, Some(format));
            }
        }
    }
}

#[test]
fn mutated_shared_files_never_panic() {
    let Some(binaries) = shared("binaries") else { return };
    let mut seed = SEED;
    println!("seed {seed:#x}");
    let mut random = || {
        // xorshift64
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    let mut files = Vec::new();
    for folder in ["tesla/rodinia", "tesla/decuda", "tesla/forcefieldx", "r700/latte-wut", "r700/latte-sdl"] {
        for entry in std::fs::read_dir(binaries.join(folder)).unwrap() {
            files.push(entry.unwrap().path());
        }
    }
    files.sort();
    assert!(files.len() > 40);
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(try_load(&bytes), Ok(()), "{}", path.display());
        for _ in 0..30 {
            let mut bytes = bytes.clone();
            for _ in 0..1 + random() % 6 {
                let at = random() % bytes.len();
                bytes[at] = random() as u8;
            }
            if random() % 3 == 0 {
                bytes.truncate(random() % bytes.len());
            }
            let _ = try_load(&bytes);
        }
    }
}

#[test]
fn large_files_of_small_parts_take_a_small_multiple_of_memory() {
    let keys = "a=b ".repeat(50_000);
    let text = format!("code {{ name = k bincode {{ 0x1 }} {keys} }}");
    assert_eq!(try_load(text.as_bytes()), Ok(()), "unknown keys");
    let state = "a=1 ".repeat(50_000);
    let text = format!("code {{ name = k bincode {{ 0x1 }} {state} }}");
    assert_eq!(try_load(text.as_bytes()), Ok(()), "state");
    let zeros = "0 ".repeat(100_000);
    let text = format!("code {{ name = k bincode {{ {zeros} }} }}");
    assert_eq!(try_load(text.as_bytes()), Ok(()), "words");
    let kernels: String = (0..20_000).map(|index| format!("code{{name={index} bincode{{}}}}")).collect();
    assert_eq!(try_load(kernels.as_bytes()), Ok(()), "kernels");
    let array = format!("char a[]={{{}}};", "1,".repeat(100_000));
    assert_eq!(try_load(array.as_bytes()), Ok(()), "array");
    let arrays = "int a[]={1};".repeat(20_000);
    assert_eq!(try_load(arrays.as_bytes()), Ok(()), "arrays");
    for (line, what) in [
        ("#if 0\n1\n#endif\n", "groups"),
        ("#if 1\n", "conditions"),
        ("#define A 1\n", "definitions"),
        ("A;", "macros"),
        ("\"\\0\"", "strings"),
        ("R\"(", "raw strings"),
        ("u8 a[]=\"\\1\\0\\0\\0\";", "arrays of a string"),
        ("u8 a[]={A,A,A,A,};", "elements of macros"),
        ("(", "parentheses"),
    ] {
        let text = format!("#define A 1\nu32 a[] = {{ 1 }};\n{}", line.repeat(200_000 / line.len()));
        let _ = try_load_as(text.as_bytes(), Some(Format::C));
        let inside = format!("u32 a[] = {{ 1,\n{}", line.repeat(200_000 / line.len()));
        assert!(try_load_as(inside.as_bytes(), Some(Format::C)).is_err(), "{what}");
    }
    let lines = " u32 a[]={1};\n".repeat(10_000);
    let diff = format!("--- a\n+++ b\n@@ -1,10000 +1,10000 @@\n{lines}");
    assert_eq!(try_load(diff.as_bytes()), Ok(()), "a diff of arrays");
    let diff = "--- a\n+++ b\n@@ -1 +1 @@\n u32 a[]={1};\n".repeat(10_000);
    assert_eq!(try_load(diff.as_bytes()), Ok(()), "files of a diff");
    let sections = std::iter::once(sec(".text.k", &[])).chain((0..20_000).map(|_| sec("x", &[]))).collect();
    assert_eq!(try_load(&Elf { sections, ..cubin(false) }.build()), Ok(()), "sections");
    let members: Vec<_> = std::iter::once((2, 13, 0, cubin(true).build()))
        .chain((0..5000).map(|_| (1, 10, 0, vec![])))
        .collect();
    assert_eq!(try_load(&fatbin(&members)), Ok(()), "members");
}

fn change(change: impl FnOnce(&mut Elf)) -> Result<(), Error> {
    let mut elf = cubin(true);
    change(&mut elf);
    try_load(&elf.build())
}

#[test]
fn overlapping_sections_are_an_error() {
    let mut bytes = cubin(true).build();
    let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    // .nv.constant1.k starts at the same offset as .text.k.
    let text: [u8; 8] = bytes[table + 64 + 24..table + 64 + 32].try_into().unwrap();
    bytes[table + 128 + 24..table + 128 + 32].copy_from_slice(&text);
    assert!(matches!(try_load(&bytes), Err(Error::Overlap { .. })));
}

#[test]
fn absurd_section_sizes_are_errors() {
    for size in [0x1_0000_0000, u64::MAX, u64::MAX - 8] {
        assert!(matches!(change(|elf| elf.sections[0].size = Some(size)), Err(Error::Truncated { .. })));
        assert!(matches!(change(|elf| elf.sections[3].size = Some(size)), Err(Error::Value { .. })));
        assert!(matches!(change(|elf| elf.sections[4].size = Some(size)), Err(Error::Value { .. })));
    }
}

#[test]
fn impossible_register_barrier_and_bank_counts_are_errors() {
    assert!(matches!(change(|elf| elf.sections[0].info = u32::MAX), Err(Error::Value { .. })));
    assert!(matches!(change(|elf| elf.sections[0].flags = u64::MAX), Err(Error::Value { .. })));
    for name in [".nv.constant99", ".nv.constant", ".nv.constant99999999999999999999"] {
        assert!(matches!(change(|elf| elf.sections[8].name = name), Err(Error::Value { .. })), "{name}");
    }
}

#[test]
fn a_section_name_without_its_zero_byte_is_an_error() {
    let mut bytes = cubin(true).build();
    let names = bytes.windows(10).rposition(|part| part == b".shstrtab\0").unwrap();
    bytes[names + 9] = b'x';
    assert!(matches!(try_load(&bytes), Err(Error::Name { .. })));
}

#[test]
fn many_sections_of_one_long_name_are_an_error() {
    let name: &'static str = Box::leak(format!(".text.{}", "n".repeat(4000)).into_boxed_str());
    let mut bytes = Elf {
        sections: std::iter::once(sec(name, &[])).chain((0..300).map(|_| sec("", &[]))).collect(),
        ..cubin(true)
    }
    .build();
    let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    for index in 2..300 {
        // Each name starts one byte later in the same string, so all names differ and are long.
        bytes[table + 64 * index..table + 64 * index + 4].copy_from_slice(&(1 + index as u32).to_le_bytes());
    }
    assert!(matches!(try_load(&bytes), Err(Error::Value { what: "a section's name", .. })));
}

#[test]
fn cyclic_and_dangling_relocations_are_errors() {
    let relocation = |offset: u64, symbol: u64, kind: u64| {
        [offset.to_le_bytes(), (symbol << 32 | kind).to_le_bytes()].concat()
    };
    let error = |result: Result<(), Error>, text: &str| match result {
        Err(Error::Relocation { why, .. }) => assert!(why.contains(text), "{why}"),
        other => panic!("{text}: {other:?}"),
    };
    // Section 7 relocates itself.
    error(change(|elf| elf.sections[6].info = 7), "cycle");
    error(change(|elf| elf.sections[6].info = 99), "does not exist");
    error(change(|elf| elf.sections[6].info = 1), "only relocations of constant banks");
    error(change(|elf| elf.sections[6].data = relocation(8, 77, 2)), "there are 5");
    error(change(|elf| elf.sections[6].data = relocation(8, 3, 2)), "not defined");
    error(change(|elf| elf.sections[6].data = relocation(13, 1, 2)), "has 16 bytes");
    error(change(|elf| elf.sections[6].data = relocation(u64::MAX, 1, 2)), "has 16 bytes");
    error(change(|elf| elf.sections[6].data = relocation(8, 1, 9)), "type 9");
    // The word in c14 is to hold the address of the symbol of c0.
    error(change(|elf| elf.sections[6].data = relocation(8, 2, 2)), "cycle");
}

#[test]
fn objects_that_share_contents_many_times_are_an_error() {
    let list: Vec<_> =
        (0..200).map(|index| (&*Box::leak(format!("v{index}").into_boxed_str()), 1, 8, 0, 4000)).collect();
    let [symtab, strtab] = symbols(true, 11, &list);
    let result = change(|elf| {
        elf.sections[2].data.clear();
        elf.sections[6].data.clear();
        elf.sections[7].data = vec![1; 4000];
        (elf.sections[9], elf.sections[10]) = (symtab, strtab);
    });
    assert!(matches!(result, Err(Error::Overlap { .. })), "{result:?}");
}

#[test]
fn two_kernels_of_one_name_are_an_error() {
    let result = change(|elf| {
        let text = elf.sections[0].clone();
        elf.sections.push(Sec { ..text });
    });
    assert!(matches!(result, Err(Error::Duplicate { .. })));
}

#[test]
fn a_cut_attribute_record_is_an_error() {
    let result = change(|elf| elf.sections[2].data = vec![4, 0x17, 0xff, 0xff, 0]);
    assert!(matches!(result, Err(Error::Truncated { .. })));
    let result = change(|elf| elf.sections[2].data = vec![9, 0x17, 0, 0]);
    assert!(matches!(result, Err(Error::Value { .. })));
}

#[test]
fn fat_binary_members_beyond_the_end_are_errors() {
    let good = fatbin(&[(2, 13, 0, cubin(true).build())]);
    for (at, value) in [(8, u64::MAX), (24, u64::MAX), (24, 1 << 40), (24, u64::MAX - 0x50)] {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        assert!(matches!(try_load(&bytes), Err(Error::Truncated { .. })), "{at} {value:#x}");
    }
    let mut bytes = good;
    bytes[20..24].fill(0);
    assert!(matches!(try_load(&bytes), Err(Error::Value { .. })));
}

#[test]
fn wii_u_blocks_beyond_the_end_are_errors() {
    let mut bytes = gsh(&[1, 2, 3, 4]);
    bytes[32 + 20..32 + 24].fill(0xff);
    assert!(matches!(try_load(&bytes), Err(Error::Truncated { .. })));
    let mut bytes = gsh(&[1, 2, 3, 4]);
    // SPI_PS_INPUT_CNTL's count.
    bytes[64 + 16..64 + 20].fill(0xff);
    assert!(matches!(try_load(&bytes), Err(Error::Value { .. })));
}

#[test]
fn r600_functions_and_config_must_fit_each_other() {
    let mut elf = r600();
    elf.sections[1].data.truncate(16);
    assert!(matches!(try_load(&elf.build()), Err(Error::Value { .. })));
    let mut elf = r600();
    elf.sections[1].data.truncate(12);
    assert!(matches!(try_load(&elf.build()), Err(Error::Uneven { .. })));
    let mut elf = r600();
    [elf.sections[2], elf.sections[3]] = symbols(false, 4, &[("a", 2, 1, 0, 16), ("b", 2, 1, 8, 16)]);
    assert!(matches!(try_load(&elf.build()), Err(Error::Overlap { .. })));
    let mut elf = r600();
    [elf.sections[2], elf.sections[3]] = symbols(false, 4, &[("a", 2, 1, 0, 0xffff_fffc)]);
    assert!(matches!(try_load(&elf.build()), Err(Error::Truncated { .. })));
}

#[test]
fn absurd_ctm_notes_are_errors() {
    let program = Program { words: vec![0; 6], ..Program::default() };
    let good = ctm_elf::write(&program).unwrap().content;
    let note = good.windows(8).position(|part| part == b"ATI DPP\0").unwrap() - 12;
    for at in [note, note + 4] {
        let mut bytes = good.clone();
        bytes[at..at + 4].fill(0xff);
        assert!(matches!(try_load(&bytes), Err(Error::Truncated { .. })));
    }
}

#[test]
fn a_log_of_headers_and_far_addresses_takes_little_memory() {
    for line in [
        "bytecode 1 dw\n",
        "bytecode 9 dw\n0000 00000000\n",
        "bytecode 9 dw\n999999 00000000\n",
        "R500 Fragment Program:\n",
        "0 0:CMN_INST 0x00000000\n",
        "program binary (4 bytes)\n00000000\n",
        "Final vertex program code:\n0: op: 0x00000000\n",
        "; encoding: [0x00]\n.Lfunc_end\n",
        "= SHADER #1 a/\n",
    ] {
        let _ = try_load(line.repeat(3000).as_bytes());
    }
}
