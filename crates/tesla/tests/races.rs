//! Races on s[], and reads of bytes in it that were never written, on every engine.

use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Engine, Mode, Options};
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::launch::{Compute, Launch, RunError};
use reconverge_tesla::run::run;
use reconverge_tesla::text::assemble;
use reconverge_tesla::trap::{Access, Cause, SharedAccess};
use reconverge_testkit::Random;

const OUT: u32 = 0x1_0000;

/// `$a1` = 4 · the thread's number, `$r1` = the address of its word of the buffer, `$r2` = its number in its warp.
const START: &str = "and b32 $r0 $r0 0xffff\nshl $a1 $r0 0x2\nshl b32 $r1 $r0 0x2\nadd b32 $r1 b32 s[0x10] $r1\n\
                     and b32 $r2 $r0 0x1f\n";

/// Leaves the warp's number in `$r3` and `$c0`, which is not zero for all warps except for the first.
const WARP: &str = "shr u32 $r3 $r0 0x5\nand b32 $c0 $r3 $r3 $r3\n";

const BARRIER: &str = "bar inc wait 0x0 0xfff\n";

/// Runs one block of a program with two arguments, the buffer and `0x55`, on every engine. All engines must end
/// alike.
fn on_all(source: &str, threads: u32, options: &Options) -> Result<Vec<u8>, Cause> {
    let assembled =
        assemble(source, Chip::Gt215, Stage::Compute).unwrap_or_else(|e| panic!("{source}\n{e:?}"));
    let program = Program { words: assembled.words(), ..Program::default() };
    let mut compute = Compute::of(&program, Chip::Gt215).unwrap();
    compute.block = [threads, 1, 1];
    compute.params = [OUT.to_le_bytes(), 0x55u32.to_le_bytes()].concat();
    compute.memory = Memory::new(vec![Buffer::new(OUT, vec![0; 4 * threads as usize])]).unwrap();
    let ends = Engine::ALL.map(|engine| {
        let ended = run(&program, Launch::Compute(compute.clone()), &Options { engine, ..*options });
        match ended {
            Ok(outcome) => Ok(outcome.memory.at(OUT).unwrap().bytes.to_vec()),
            Err(RunError::Trap(trap)) => Err((trap.trap.pc, trap.trap.lanes, trap.trap.cause)),
            Err(other) => panic!("{engine}: {other}\n{source}"),
        }
    });
    for (engine, end) in Engine::ALL.iter().zip(&ends) {
        assert_eq!(end, &ends[0], "{engine}\n{source}");
    }
    let [first, ..] = ends;
    first.map_err(|(pc, lanes, cause)| {
        if let Cause::Race { accesses, .. } = &cause {
            let by = |access: &SharedAccess| {
                access.pc == pc && lanes.lanes().eq([reconverge_simt::Lane(access.lane as u8)])
            };
            assert!(accesses.iter().any(by), "the trap is at one of the accesses");
        }
        cause
    })
}

fn strict(source: &str, threads: u32) -> Result<Vec<u8>, Cause> {
    on_all(source, threads, &Options::default())
}

/// Returns the accesses of a race: whether it is a write, warp, lane.
fn race(source: &str, threads: u32) -> (u32, [(bool, u32, u32); 2]) {
    for options in [
        Options { mode: Mode::Lenient, ..Options::default() },
        Options { race_check: false, ..Options::default() },
    ] {
        on_all(source, threads, &options).unwrap_or_else(|cause| panic!("{cause}\n{source}"));
    }
    match strict(source, threads) {
        Err(Cause::Race { address, accesses }) => {
            (address, accesses.map(|access| (access.access == Access::Write, access.warp, access.lane)))
        }
        other => panic!("{other:?}\n{source}"),
    }
}

fn no_finding(source: &str, threads: u32) {
    if let Err(cause) = strict(source, threads) {
        panic!("{cause}\n{source}");
    }
}

#[test]
fn a_load_of_what_another_warp_stores_without_a_barrier_is_a_race() {
    // Warp 0 stores for warp 1.
    let source = format!(
        "{START}{WARP}(e $c0) st b32 s[$a1+0x40] $r0\n@BAR(lg $c0) ld $r4 b32 s[$a1-0x40]\nexit st b32 g14[$r1] $r4\n"
    );
    let source = source.replace("s[$a1-0x40]", "s[$a2+0x40]").replace("@BAR", "shl $a2 $r2 0x2\n@BAR");
    assert_eq!(race(&source.replace("@BAR", ""), 64), (0x40, [(true, 0, 0), (false, 1, 0)]));
    no_finding(&source.replace("@BAR", BARRIER), 64);
}

#[test]
fn a_load_before_another_warps_store_is_a_race_although_nothing_was_written_yet() {
    // Warp 0, which runs first, loads what warp 1 stores.
    let source = format!(
        "{START}xor b32 $r4 $r0 0x3f\nshl $a2 $r4 0x2\nst b32 s[$a1+0x40] $r0\n@BARld $r4 b32 s[$a2+0x40]\nexit st b32 g14[$r1] $r4\n"
    );
    let (address, accesses) = race(&source.replace("@BAR", ""), 64);
    assert_eq!((address, accesses), (0x13c, [(true, 1, 31), (false, 0, 0)]));
    no_finding(&source.replace("@BAR", BARRIER), 64);
}

#[test]
fn a_store_after_another_warps_load_is_a_race() {
    // The warp that arrived last at the barrier continues first.
    let source = format!(
        "{START}{WARP}st b32 s[$a1+0x40] $r0\n{BARRIER}shl $a2 $r2 0x2\n(lg $c0) ld $r4 b32 s[$a2+0x40]\n@BAR\
         (e $c0) st b32 s[$a1+0x40] $r1\nexit st b32 g14[$r1] $r4\n"
    );
    assert_eq!(race(&source.replace("@BAR", ""), 64), (0x40, [(false, 1, 0), (true, 0, 0)]));
    no_finding(&source.replace("@BAR", BARRIER), 64);
}

#[test]
fn the_second_load_before_a_store_counts_as_well() {
    // Warp 1 loads a word. Then warp 0 loads it and stores it: the load of warp 1 races.
    let source = format!(
        "{START}{WARP}(e $c0) st b32 s[$a1+0x40] $r0\n{BARRIER}ld $r4 b32 s[0x44]\n(e $c0) st b32 s[$a1+0x40] $r4\n\
         exit st b32 g14[$r1] $r4\n"
    );
    assert_eq!(race(&source, 64), (0x44, [(false, 1, 0), (true, 0, 1)]));
}

#[test]
fn stores_of_two_warps_race_unless_they_store_the_same() {
    // CUDA C Programming Guide, "Shared memory": the store that remains is undefined.
    let source = format!("{START}shl $a2 $r2 0x2\nst b32 s[$a2+0x40] $r0\nexit nop\n");
    assert_eq!(race(&source, 64), (0x40, [(true, 0, 0), (true, 1, 0)]));
    no_finding(&source.replace("s[$a2+0x40] $r0", "s[$a2+0x40] $r2"), 64);
}

#[test]
fn warps_that_store_the_same_read_it_without_a_barrier() {
    let source = format!(
        "{START}add b32 $r4 b32 s[0x14] $r63\nst b32 s[0x40] $r4\nld $r5 b32 s[0x40]\nst b32 s[0x40] $r4\n\
         exit st b32 g14[$r1] $r5\n"
    );
    no_finding(&source, 96);
    // A warp that only loads it may run before all stores.
    let source = format!(
        "{START}{WARP}mov b32 $r5 0x2\nset $c1 # l u32 $r3 $r5\nmov b32 $r4 0x7\n(lg $c1) st b32 s[0x40] $r4\n\
         (e $c1) ld $r5 b32 s[0x40]\nexit st b32 g14[$r1] $r5\n"
    );
    let (address, [(written, ..), (loaded, warp, _)]) = race(&source, 96);
    assert_eq!((address, written, loaded, warp), (0x40, true, false, 2));
}

#[test]
fn lanes_of_a_warp_do_not_race() {
    // A warp runs in lockstep, and the remaining value is that of one of its lanes. Programs use this: CUDA's
    // histogram sample stores tagged counts and repeats for the lanes whose tag is lost.
    let source = format!(
        "{START}st b32 s[0x40] $r0\nld $r4 b32 s[0x40]\nshl $a2 $r4 0x2\nst b32 s[$a1+0x80] $r4\n\
         xor b32 $r5 $r0 0x1f\nshl $a2 $r5 0x2\nld $r6 b32 s[$a2+0x80]\nst b32 s[$a1+0x80] $r6\nexit st b32 g14[$r1] $r6\n"
    );
    no_finding(&source, 32);
}

#[test]
fn what_nothing_has_written_is_named_by_byte() {
    let unwritten = |source: &str, threads| match strict(&format!("{START}{source}"), threads) {
        Err(Cause::Unwritten { address, bytes }) => Some((address, bytes)),
        Ok(_) => None,
        other => panic!("{other:?}"),
    };
    let end = "exit st b32 g14[$r1] $r4\n";
    for threads in [1, 32, 33, 64] {
        assert_eq!(unwritten(&format!("ld $r4 b32 s[0x40]\n{end}"), threads), Some((0x40, 4)));
        assert_eq!(unwritten(&format!("add b32 $r4 b32 s[0x40] $r0\n{end}"), threads), Some((0x40, 4)));
        assert_eq!(
            unwritten(&format!("ld $r4 b32 s[$a1+0x14]\n{end}"), threads),
            (threads > 1).then_some((0x18, 4))
        );
        let bytes =
            |load: &str| unwritten(&format!("mov b32 $r4 0x1\nst b8 s[0x41] $r4\n{load}\n{end}"), threads);
        assert_eq!(bytes("ld $r4 u8 s[0x41]"), None);
        assert_eq!(bytes("ld $r4 u8 s[0x42]"), Some((0x42, 1)));
        assert_eq!(bytes("ld $r4 u16 s[0x40]"), Some((0x40, 2)));
        assert_eq!(bytes("ld $r4 b32 s[0x40]"), Some((0x40, 4)));
    }
    // The header and the parameters count as written.
    assert_eq!(
        unwritten(&format!("ld $r4 b32 s[0x0]\nadd b32 $r4 b32 s[0x14] $r4\nld $r4 u16 s[0xe]\n{end}"), 64),
        None
    );
    let lenient = Options { mode: Mode::Lenient, ..Options::default() };
    assert!(on_all(&format!("{START}ld $r4 b32 s[0x40]\n{end}"), 64, &lenient).is_ok());
}

#[test]
fn what_a_block_has_written_is_not_written_in_the_next() {
    let source = "and b32 $r0 $r0 0xffff\nmov b32 $r1 u16 s[0xc]\nand b32 $c0 # $r1 $r1\nmov b32 $r2 0x1\n\
                  (e $c0) st b32 s[0x40] $r2\nld $r3 b32 s[0x40]\nexit nop\n";
    let words = assemble(source, Chip::Gt215, Stage::Compute).unwrap().words();
    let program = Program { words, ..Program::default() };
    let mut compute = Compute::of(&program, Chip::Gt215).unwrap();
    (compute.grid, compute.block) = ([2, 1], [32, 1, 1]);
    for engine in Engine::ALL {
        let options = Options { engine, ..Options::default() };
        match run(&program, Launch::Compute(compute.clone()), &options) {
            Err(RunError::Trap(trap)) => {
                assert_eq!(trap.trap.cause, Cause::Unwritten { address: 0x40, bytes: 4 });
                assert!(trap.to_string().contains("block (1, 0)"), "{trap}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn stores_to_other_bytes_of_a_word_do_not_race() {
    // Each warp has its own bytes of every word.
    let source = format!(
        "{START}{WARP}shl b32 $r4 $r2 0x2\nadd b32 $r4 $r4 $r3\nshl $a2 $r4 0x0\nst b8 s[$a2+0x40] $r0\n\
         ld $r5 u8 s[$a2+0x40]\nexit st b32 g14[$r1] $r5\n"
    );
    no_finding(&source, 128);
    let source = source.replace("add b32 $r4 $r4 $r3\n", "");
    assert_eq!(race(&source, 128), (0x40, [(true, 0, 0), (true, 1, 0)]));
}

#[test]
fn a_lock_orders_those_that_hold_it() {
    // tesla.md 4: a word, and another one that its lock protects.
    // Lanes without the lock wait at the join, after the release.
    let one = "LOOP:\njoinat AGAIN\nld lock $c1 $r4 b32 s[0x40]\n(e $c1) bra AGAIN\nadd b32 $r4 $r4 $r5\n@OTHER\
               st unlock b32 s[0x40] $r4\nAGAIN:\njoin nop\n(e $c1) bra LOOP\n";
    let start = format!(
        "{START}{WARP}mov b32 $r5 0x1\nmov b32 $r6 0x0\n(e $c0) st b32 s[0x40] $r6\n(e $c0) st b32 s[0x80] $r6\n{BARRIER}"
    );
    let end = format!("{BARRIER}ld $r4 b32 s[0x40]\nexit st b32 g14[$r1] $r4\n");
    let other = "ld $r6 b32 s[0x80]\nadd b32 $r6 $r6 $r5\nst b32 s[0x80] $r6\n";
    for other in ["", other] {
        let source = format!("{start}{}{end}", one.replace("@OTHER", other));
        let out = strict(&source, 96).unwrap_or_else(|cause| panic!("{cause}\n{source}"));
        assert_eq!(out[..4], 96u32.to_le_bytes(), "{source}");
    }
    // Outside the lock, the other word is not protected.
    let source = format!("{start}{}{other}{end}", one.replace("@OTHER", ""));
    assert_eq!(race(&source, 96).0, 0x80);
}

#[test]
fn a_barrier_for_some_warps_orders_those() {
    // Warps 0 and 1 meet at barrier 1; warp 2 does not.
    let pair = "mov b32 $r5 0x2\nset $c1 # l u32 $r3 $r5\njoinat ON\n(e $c1) bra ON\nbar inc wait 0x1 0x2\nON:\njoin nop\n";
    let source = format!(
        "{START}{WARP}shl $a2 $r2 0x2\n(e $c0) st b32 s[$a1+0x40] $r0\n{pair}set $c2 # e u32 $r3 @WARP\n\
         (lg $c2) ld $r4 b32 s[$a2+0x40]\nexit st b32 g14[$r1] $r4\n"
    );
    let with = |warp: &str| {
        source.replace("set $c2", &format!("mov b32 $r6 {warp}\nset $c2")).replace("@WARP", "$r6")
    };
    no_finding(&with("0x1"), 96);
    assert_eq!(race(&with("0x2"), 96), (0x40, [(true, 0, 0), (false, 2, 0)]));
}

#[test]
fn an_arrival_without_a_wait_orders_what_came_before_it() {
    // Warp 0 stores and arrives; warp 1 waits for it, and warp 0 stores again.
    let source = format!(
        "{START}{WARP}shl $a2 $r2 0x2\n(e $c0) st b32 s[$a1+0x40] $r0\njoinat ON\n(lg $c0) bra SECOND\n\
         bar inc 0x1 0x2\n@THENbra ON\nSECOND:\nbar inc wait 0x1 0x2\nld $r4 b32 s[$a2+0x40]\nbra ON\nON:\n\
         join nop\nexit st b32 g14[$r1] $r4\n"
    );
    no_finding(&source.replace("@THEN", ""), 64);
    let again = "st b32 s[$a1+0x40] $r2\n";
    let (address, accesses) = race(&source.replace("@THEN", &again.replace("$r2", "$r1")), 64);
    assert_eq!((address, accesses[0].1, accesses[1].1), (0x40, 0, 1));
}

#[test]
fn a_change_of_a_parameter_is_an_access_like_any_other() {
    let source = format!(
        "{START}{WARP}@BAR(e $c0) st b32 s[0x14] $r0\n@BAR2mov b32 $r4 b32 s[0x14]\nexit st b32 g14[$r1] $r4\n"
    );
    let at = |before: &str, after: &str| source.replace("@BAR2", after).replace("@BAR", before);
    assert_eq!(race(&at("", ""), 64), (0x14, [(true, 0, 31), (false, 1, 0)]));
    no_finding(&at(BARRIER, BARRIER), 64);
}

#[test]
fn a_race_names_both_accesses() {
    let source = format!("{START}shl $a2 $r2 0x2\nst b32 s[$a2+0x40] $r0\nexit nop\n");
    let cause = strict(&source, 64).unwrap_err();
    assert_eq!(
        cause.to_string(),
        "race on s[0x40]: write at 0x30 by thread 0 (warp 0, lane 0) and write at 0x30 by thread 32 (warp 1, lane 0), \
         without a barrier between them"
    );
}

/// Random programs in phases. In each phase, every thread stores to words to which no other thread stores, or all
/// threads of a warp store to one of the warp's words. They load values from earlier phases. With barriers between,
/// no race is found.
#[test]
fn phases_between_barriers_never_race() {
    let mut random = Random::new(0x5ac3);
    let mut without = 0;
    for _ in 0..60 {
        let threads = 1 + random.below(160);
        let mut source = format!("{START}{WARP}");
        let mut last = None;
        for phase in 0..3 + random.below(3) {
            // The two halves of s[] alternate: words of 256 threads each.
            let [to, from] = if phase % 2 == 0 { [0x40, 0x440] } else { [0x440, 0x40] };
            if let Some(bytes) = last {
                // The word of another existing thread.
                let turn = random.below(threads);
                source += &format!(
                    "mov b32 $r5 {threads:#x}\nmov b32 $r6 {turn:#x}\nadd b32 $r6 $r6 $r0\nset $c1 # l u32 $r6 $r5\n\
                     (e $c1) sub b32 $r6 $r6 $r5\nshl $a2 $r6 0x2\n"
                );
                source += match bytes {
                    1 => "ld $r4 u8 s[$a2+@]\n",
                    2 => "ld $r4 u16 s[$a2+@]\n",
                    _ => "ld $r4 b32 s[$a2+@]\n",
                }
                .replace('@', &format!("{from:#x}"))
                .as_str();
                source += "add b32 $r4 $r4 $r0\n";
            } else {
                source += "mov b32 $r4 $r0\n";
            }
            let bytes = [1, 2, 4, 4][random.below(4) as usize];
            source += &match bytes {
                1 => format!("st b8 s[$a1+{to:#x}] $r4\n"),
                2 => format!("st b16 s[$a1+{to:#x}] $r4l\n"),
                _ => format!("st b32 s[$a1+{to:#x}] $r4\n"),
            };
            last = Some(bytes);
            source += BARRIER;
        }
        source += "exit st b32 g14[$r1] $r4\n";
        no_finding(&source, threads);
        without += u32::from(strict(&source.replace(BARRIER, ""), threads).is_err());
    }
    assert!(without > 30, "{without} of 60 have a finding without barriers");
}
