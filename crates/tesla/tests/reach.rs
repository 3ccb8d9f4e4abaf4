//! Generated code accesses only s[], whatever lanes leave a loop and whatever their addresses are. In these tests,
//! all memory that generated code accesses lies between inaccessible pages, so that a wrong access is a fault.

use reconverge_isa::Program;
use reconverge_simt::guarded::Placement;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Engine, Level, Mode, Options};
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::launch::{Compute, Launch};
use reconverge_tesla::run::run;
use reconverge_tesla::text::assemble;
use reconverge_testkit::Campaign;
use reconverge_testkit::tesla::{OUT, shared};

const ENGINES: [Engine; 4] = [Engine::Fast, Engine::Compiled, Engine::LockstepCompiled, Engine::Reference];

/// Runs a program of one parameter, the output's address, on every engine and level, with guards on both sides of memory.
///
/// # Panics
/// Results differ from the reference interpreter's, or generated code faults.
fn same_everywhere(source: &str, shared_bytes: u32, [grid, block]: [u32; 2], options: &Options) -> bool {
    let assembled =
        assemble(source, Chip::Gt215, Stage::Compute).unwrap_or_else(|errors| panic!("{errors:?}\n{source}"));
    let program = Program::from_words(assembled.words());
    let mut launch = Compute::of(&program, Chip::Gt215).expect("a program that states nothing");
    launch.setup_mut().registers = 16;
    (launch.grid, launch.block) = ([grid, 1], [block, 1, 1]);
    launch.params = OUT.to_le_bytes().to_vec();
    launch.shared_bytes = Some(shared_bytes);
    // Warps with l[] do not take turns. So only launches of programs that use l[] have it.
    launch.setup_mut().local_bytes = if source.contains("l[") { 0x100 } else { 0 };
    let bytes = vec![0; 4 * (grid * block) as usize];
    launch.memory = Memory::new(vec![Buffer::new(OUT, bytes)]).expect("one buffer");
    let outcome = |options: &Options| run(&program, Launch::Compute(launch.clone()), options);
    let expected = outcome(&Options { engine: Engine::Reference, ..*options });
    for placement in [Placement::AtEnd, Placement::AtStart] {
        placement.force();
        for level in Level::available() {
            for engine in ENGINES {
                let found = outcome(&Options { engine, level: Some(level), ..*options });
                assert_eq!(found, expected, "{engine}, {}, {placement:?}\n{source}", level.name());
            }
        }
    }
    expected.is_ok()
}

fn options(mode: Mode) -> Options {
    // The programs load the initial contents of s[].
    Options { mode, watchdog: 3000, race_check: false, ..Options::default() }
}

/// `$r1`: the output. `$r6` counts up to the lane's `$r4` of 0 to 7; `$r2`: an address outside s[].
const BEGIN: &str = "mov b32 $r1 b32 s[0x10]\nshl b32 $r9 $r0 0x2\nadd b32 $r1 $r1 $r9\nmov b32 $r2 0xfff0\n\
    mov b32 $r4 0x7\nand b32 $r4 $r4 $r0\nmov b32 $r6 0x0\nmov b32 $r5 0x0\nmov b32 $r7 0x0\n";
const END: &str = "st b32 g14[$r1] $r5\nexit st b32 g14[$r1] $r6\n";

/// A loop in whose iterations lanes with `$r6` = `$r4` set a bad address and then leave before the load.
fn leaving(open: &str, leave: &str, close: &str) -> String {
    let leave = if leave == "exit" { "exit (lg $c0) nop".to_owned() } else { format!("(lg $c0) {leave}") };
    format!(
        "{BEGIN}{open}STEP:\nset $c0 # ge u32 $r6 $r4\n(lg $c0) mov b32 $r7 $r2\nshl $a1 $r7 0x0\n{leave}\n\
         mov b32 $r3 b32 s[$a1+0x7c]\nadd b32 $r5 $r5 $r3\nadd b32 $r6 $r6 0x1\nbra STEP\n{close}{END}"
    )
}

#[test]
fn lanes_that_have_left_load_nothing() {
    let kinds = [
        ("breakaddr DONE\n", "break", "DONE:\n"),
        ("joinat DONE\n", "bra DONE", "DONE:\njoin nop\n"),
        ("call STEP\nbra DONE\n", "ret", "DONE:\n"),
        ("", "exit", ""),
    ];
    for (open, leave, close) in kinds {
        for mode in [Mode::Strict, Mode::Lenient] {
            let source = leaving(open, leave, close);
            assert!(same_everywhere(&source, 15872, [3, 64], &options(mode)), "{leave}");
        }
    }
}

#[test]
fn a_mask_that_depends_on_a_load_outside_reaches_nothing() {
    let source = format!(
        "{BEGIN}shl $a2 $r5 0x0\nmov b32 $r4 0x8\nbreakaddr DONE\nSTEP:\nset $c1 # ge u32 $r6 $r4\n\
         (lg $c1) mov b32 $r7 $r2\nshl $a1 $r7 0x0\nmov b32 $r3 b32 s[$a1+0x7c]\nset $c0 # e u32 $r3 $r4\n\
         (lg $c0) break\nmov b32 $r5 b32 s[$a2+0x40]\nadd b32 $r6 $r6 0x1\nbra STEP\nDONE:\n{END}"
    );
    for mode in [Mode::Strict, Mode::Lenient] {
        assert!(!same_everywhere(&source, 15872, [1, 64], &options(mode)), "it does not end by itself");
    }
}

#[test]
fn an_address_that_a_load_gives_is_checked_like_any_other() {
    // s[] holds the block's dimensions and parameters, and zeros: addresses within, between words and outside.
    for (address, ends) in [("0x0", true), ("0x10", false), ("0x40", false)] {
        let source = format!(
            "{BEGIN}shl $a1 $r6 0x0\nbreakaddr DONE\nSTEP:\nset $c0 # ge u32 $r6 $r4\n(lg $c0) break\n\
             mov b32 $r3 b32 s[$a1+{address}]\nshl $a2 $r3 0x0\nmov b32 $r5 b32 s[$a2+0x3c]\n\
             add b32 $r6 $r6 0x1\nbra STEP\nDONE:\n{END}"
        );
        let ended = same_everywhere(&source, 0x40, [2, 33], &options(Mode::Strict));
        assert!(ended || !ends, "s[{address}]");
    }
}

/// Random loads and stores around side exits, with addresses at both ends of the address range.
#[test]
fn extreme_addresses_around_side_exits_are_the_same_on_every_engine() {
    let (programs, mut random) = Campaign::of_random(400, 0x5eed_0e14);
    let mut ended = [0u64; 2];
    for number in 0..programs {
        let source = shared(&mut random);
        let bytes = random.one_of(&[0x14, 0x40, 0x7c, 0x200, 0x3ffc]);
        let dimensions = [1 + random.below(2), 1 + random.below(70)];
        let lenient = number as usize % 2;
        let mode = [Mode::Strict, Mode::Lenient][lenient];
        ended[lenient] += u64::from(same_everywhere(&source, bytes, dimensions, &options(mode)));
    }
    println!("{ended:?} of {programs} ended");
    assert!(ended.into_iter().all(|ended| ended >= programs / 10), "{ended:?}");
}
