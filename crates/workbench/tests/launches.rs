//! The fields of a launch file, together with the data in the program's file.

use reconverge_isa::Isa;
use reconverge_isa::program::{ConstantBlock, Module};
use reconverge_simt::Options;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::result::RunResult;
use reconverge_workbench::values::NoFiles;
use reconverge_workbench::{Known, Opened, open};

fn opened(source: &str) -> Opened {
    open(source.as_bytes(), true, &Known::default()).expect("a source that assembles")
}

fn run(launch: &str, opened: &Opened) -> RunResult {
    let launch = LaunchFile::parse(launch).expect("a launch file");
    launch.run(&opened.image, &opened.image.programs[0], &Options::default(), &NoFiles).expect("a result")
}

/// The kernel stores two words of c1 to its buffer.
const CONSTANTS: &str = ".isa tesla\n.kernel k\n  mov b32 $r2 b32 s[0x10]\n  mov b32 $r3 0x0\n  add b32 $r1 $r3 c1[0x0]\n  \
                         st b32 g14[$r2] $r1\n  add b32 $r1 $r3 c1[0x4]\n  add b32 $r2 $r2 0x4\n  \
                         exit st b32 g14[$r2] $r1\n";

#[test]
fn constants_of_a_launch_are_on_top_of_those_of_the_module() {
    let mut opened = opened(CONSTANTS);
    let block = |words: [u32; 2]| ConstantBlock {
        bank: 1,
        offset: 0,
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    };
    opened.image.modules.push(Module { constants: vec![block([7, 8])], ..Module::default() });
    let launch = "isa = \"tesla\"\nparam = [{ name = \"out\", buffer = \"u32[2]\" }]\n";
    assert_eq!(run(launch, &opened).outputs[0].1.to_json().to_string(), "[7,8]");
    let launch = format!("{launch}constant = [{{ bank = 1, offset = 4, values = [9] }}]\n");
    assert_eq!(run(&launch, &opened).outputs[0].1.to_json().to_string(), "[7,9]");
}

/// Memory that is not a parameter is an output under its name. A parameter may be its address.
#[test]
fn a_buffer_at_a_fixed_address_is_memory_and_an_output() {
    let opened = opened(CONSTANTS);
    let launch = "isa = \"tesla\"\nconstant = [{ bank = 1, values = [1, 2] }]\n\
                  buffer = [{ name = \"table\", address = 0x40000, values = \"u32[2]\" }]\n\
                  param = [{ name = \"address\", value = 0x40000 }]\n";
    let (name, array) = &run(launch, &opened).outputs[0];
    assert_eq!((name.as_str(), array.to_json().to_string().as_str()), ("table", "[1,2]"));
}

/// The machine has sixteen segments of g[] (tesla.md 1.7). Mesa's OpenGL driver binds each buffer to one.
#[test]
fn a_buffer_is_any_segment_of_global_memory() {
    let kernel = ".isa tesla
        shl b32 $r1 $r0 0x2
        ld b32 $r2 g0[$r1]
        add b32 $r2 $r2 0x1
        st b32 g3[$r1] $r2
        exit nop";
    let opened = opened(kernel);
    let launch = "isa = \"tesla\"\nblock = [2]\n\
                  buffer = [{ name = \"in\", values = [5, 6], segment = 0 }]\n\
                  param = [{ name = \"out\", buffer = \"u32[2]\", segment = 3 }]\n";
    let outputs = run(launch, &opened).outputs;
    let of = |name: &str| outputs.iter().find(|(known, _)| known == name).unwrap().1.to_json().to_string();
    assert_eq!((of("in"), of("out")), ("[5,6]".to_owned(), "[6,7]".to_owned()));
    for (what, wrong) in [
        ("expected 0 to 15", "segment = [{ number = 16, limit = 3 }]\n"),
        ("g0 is bound twice", "segment = [{ number = 0, limit = 3 }]\n"),
        ("both pitch and tile_rows", "segment = [{ number = 1, limit = 3, pitch = 64 }]\n"),
        ("a power of two", "segment = [{ number = 1, limit = 3, pitch = 64, tile_rows = 3 }]\n"),
        ("shared_bytes: unknown value `16385`: expected 0 to 16384", "shared_bytes = 16385\n"),
        ("barriers: unknown value `17`: expected 0 to 16", "barriers = 17\n"),
        (
            "driver_fixes: unknown value `no`",
            "shared_bytes = 16384\nshared = 0xffff_ffff\ndriver_fixes = \"no\"\n",
        ),
    ] {
        let text = format!("{launch}{wrong}");
        let file = LaunchFile::parse(&text).unwrap();
        let [program] = &opened.image.programs[..] else { panic!("one program") };
        let refused =
            file.run(&opened.image, program, &Options::default(), &NoFiles).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
}

/// Rows beyond the limit of a tiled segment are zeros if it is lenient, and a trap otherwise.
#[test]
fn a_tiled_segment_is_stated_with_its_layout() {
    let opened = opened(
        ".isa tesla\nmov b32 $r0 0x10004\nmov b32 $r1 0x7\nst b32 g1[$r0] $r1\nmov b32 $r0 0x90000\nst b32 g1[$r0] $r1\nexit nop",
    );
    let launch = |lenient: bool| {
        format!(
            "isa = \"tesla\"\n[[buffer]]\nname = \"image\"\naddress = 0x10000\nvalues = \"u32[128]\"\n\
             [[segment]]\nnumber = 1\nbase = 0x10000\nlimit = 0x7003f\npitch = 512\ntile_rows = 8\nlenient = {lenient}\n"
        )
    };
    let words: Vec<u32> = run(&launch(true), &opened).outputs[0].1.words().collect();
    assert_eq!(words.iter().position(|word| *word != 0), Some(17));
    let file = LaunchFile::parse(&launch(false)).unwrap();
    let refused =
        file.run(&opened.image, &opened.image.programs[0], &Options::default(), &NoFiles).unwrap_err();
    assert!(refused.to_string().contains("g1[] 0x90000"), "{refused}");
}

#[test]
fn a_listing_has_its_instructions_as_data() {
    for (isa, source) in [
        (Isa::R500, ".isa r500\nif alu\nendif\nOUT nop\n"),
        (
            Isa::R700,
            ".isa r700\n.chip rv770\nALU:\n  0 x: ADD_INT R0.x, R0.x, 1\nEXPORT_DONE: PIXEL[0], R0.x___ END_OF_PROGRAM\n",
        ),
        (Isa::Tesla, CONSTANTS),
    ] {
        let known = Known { isa: Some(isa), ..Known::default() };
        let Ok(opened) = open(source.as_bytes(), true, &known) else { panic!("{isa}") };
        let words = &opened.image.programs[0].words;
        let style = reconverge_workbench::Style { structure: true, ..Default::default() };
        let listing = opened.target.machine().disassemble(&opened.target, &opened.image.programs[0], style);
        let listing = listing.expect("a listing");
        let lines = listing.lines(words);
        let instructions: Vec<_> = lines.iter().filter(|line| line.address.is_some()).collect();
        // Together, the lines contain each word once, and each line has the words at its address.
        let mut all: Vec<u32> = instructions.iter().flat_map(|line| line.words.clone()).collect();
        all.sort_unstable();
        let mut expected = words.clone();
        expected.sort_unstable();
        assert_eq!(all, expected, "{isa}: {lines:?}");
        for line in instructions {
            let first = line.text.lines().next().unwrap_or_default();
            let found = listing.text.lines().nth(line.source_line - 1).unwrap_or_default();
            assert!(!first.is_empty() && found.contains(first), "{isa}: {line:?} in {found}");
        }
    }
}
