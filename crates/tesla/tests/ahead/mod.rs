//! Blocks that share memory: the same results, counts and traps for any number of threads.

use super::*;

/// Runs in order, on one thread, and on several; all must agree. Returns the outcome.
fn any_number_of_threads(compute: &Compute, program: &Program) -> Outcome {
    any_result(compute, program, &strict()).unwrap()
}

fn any_result(compute: &Compute, program: &Program, options: &Options) -> Result<Outcome, RunError> {
    let attempt = |jobs: usize, threads: usize, always_ahead: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = Options { jobs: NonZeroUsize::new(jobs), always_ahead, ..*options };
        pool.install(|| run(Launch::Compute(compute.clone()), program, &options))
    };
    let ordered = attempt(1, 2, false);
    for (threads, always_ahead) in [(1, false), (2, false), (2, true), (3, true), (8, false), (8, true)] {
        match (&attempt(0, threads, always_ahead), &ordered) {
            (Ok(parallel), Ok(ordered)) => {
                assert_eq!(parallel.memory, ordered.memory, "{threads} threads");
                assert_eq!(parallel.statistics, ordered.statistics, "{threads} threads");
                assert_eq!(parallel.report, ordered.report, "{threads} threads");
            }
            (parallel, ordered) => assert_eq!(
                parallel.as_ref().map_err(ToString::to_string).err(),
                ordered.as_ref().map_err(ToString::to_string).err(),
                "{threads} threads"
            ),
        }
    }
    ordered
}

#[test]
fn a_block_sees_what_the_block_before_it_wrote() {
    // out[n] = out[n - 1] + n, with one thread per block.
    let source = indexed(
        "mov b32 $r3 0x4
        sub b32 $r4 $r2 $r3
        set $c0 # e u32 $r1 $r63
        mov b32 $r5 $r63
        (e $c0) ld b32 $r5 g14[$r4]
        add b32 $r5 $r5 $r1
        exit st b32 g14[$r2] $r5",
    );
    let (compute, program) = kernel(&source, 300, [1, 1, 1], 300);
    let outcome = any_number_of_threads(&compute, &program);
    let expected: Vec<u32> = (0..300).map(|n: u32| n * (n + 1) / 2).collect();
    assert_eq!(words(&outcome), expected);
}

/// Compiled code reads a buffer directly until the first store of the block. Later loads must return the block's own
/// stores.
#[test]
fn a_block_that_runs_ahead_in_compiled_code_sees_its_own_stores() {
    let source = indexed(
        "mov b32 $r5 0x10
        mov b32 $r7 0x1
    again:
        ld b32 $r6 g14[$r2]
        add b32 $r6 $r6 $r5
        st b32 g14[$r2] $r6
        sub b32 $r5 $r5 $r7
        set $c0 # lg u32 $r5 $r63
        (lg $c0) bra again
        exit nop",
    );
    let (compute, program) = kernel(&source, 300, [64, 1, 1], 300 * 64);
    let options = Options { engine: Engine::Compiled, ..strict() };
    let outcome = any_result(&compute, &program, &options).unwrap();
    assert_eq!(words(&outcome), vec![16 * 17 / 2; 300 * 64]);
}

#[test]
fn blocks_find_what_those_of_a_batch_before_wrote_wherever_it_ends() {
    // Every thread writes to a page of its own, which makes more pages than may wait to be committed. The last
    // threads add to the values that the first wrote.
    let source = indexed(
        "shl b32 $r3 $r1 0x8
        add b32 $r3 b32 s[0x10] $r3
        mov b32 $r4 0x11170
        set $c0 # ge u32 $r1 $r4
        mov b32 $r5 0x1
        sub b32 $r6 $r1 $r4
        shl b32 $r6 $r6 0x8
        add b32 $r6 b32 s[0x10] $r6
        (s $c0) ld b32 $r5 g14[$r6]
        add b32 $r5 $r5 $r1
        exit st b32 g14[$r3] $r5",
    );
    let (blocks, first) = (2300, 70_000);
    let (compute, program) = kernel(&source, blocks, [32, 1, 1], 64 * 32 * blocks as usize);
    let outcome = any_number_of_threads(&compute, &program);
    let found: Vec<u32> = words(&outcome).into_iter().step_by(64).collect();
    let own = |n: u32| n + 1;
    let expected = |n: u32| if n < first { own(n) } else { n + own(n - first) };
    assert_eq!(found, (0..32 * blocks).map(expected).collect::<Vec<_>>());
}

#[test]
fn some_blocks_build_on_others() {
    // Each 64th block of 16 threads adds to the values of the block 63 before it. Rows meet in lines and in pages.
    let source = indexed(
        "mov b32 $r3 0x3f0
        and b32 $r4 $r1 $r3
        set $c0 # e u32 $r4 $r3
        mov b32 $r5 0x0
        add b32 $r6 $r2 0xfffff040
        (s $c0) ld b32 $r5 g14[$r6]
        add b32 $r5 $r5 $r1
        ld b32 $r7 g14[$r2]
        add b32 $r5 $r5 $r7
        exit st b32 g14[$r2] $r5",
    );
    let (compute, program) = kernel(&source, 1000, [16, 1, 1], 16_000);
    let outcome = any_number_of_threads(&compute, &program);
    let expected = |n: u32| if n & 0x3f0 == 0x3f0 { n + (n - 63 * 16) } else { n };
    assert_eq!(words(&outcome), (0..16_000).map(expected).collect::<Vec<_>>());
}

#[test]
fn blocks_that_write_the_same_word_leave_the_last_ones_value() {
    // The block that owns the word does not write it a second time.
    let source = indexed(
        "mov b32 $r3 b32 s[0x10]
        st b32 g14[$r3] $r1
        set $c0 # e u32 $r1 $r63
        (e $c0) st b32 g14[$r2] $r1
        exit nop",
    );
    let (compute, program) = kernel(&source, 100, [1, 1, 1], 100);
    let outcome = any_number_of_threads(&compute, &program);
    assert_eq!(words(&outcome)[..3], [99, 1, 2]);
}

#[test]
fn threads_count_on_one_word_in_order() {
    let source = indexed(
        "mov b32 $r3 b32 s[0x10]
        mov b32 $r4 0x1
        ld add u32 $r5 g14[$r3] $r4
        add b32 $r2 $r2 $r4
        add b32 $r2 $r2 0x3
        exit st b32 g14[$r2] $r5",
    );
    let (compute, program) = kernel(&source, 150, [40, 1, 1], 6001);
    let found = words(&any_number_of_threads(&compute, &program));
    assert_eq!(found[0], 6000);
    assert_eq!(found[1..], (0..6000).collect::<Vec<u32>>());
}

#[test]
fn blocks_share_words_in_which_each_has_bytes() {
    // Three threads per block, with one byte each: first a number, then that number plus one.
    let source = indexed(
        "add b32 $r3 b32 s[0x10] $r1
        st u8 g14[$r3] $r1
        ld u8 $r4 g14[$r3]
        add b32 $r4 $r4 0x1
        exit st u8 g14[$r3] $r4",
    );
    let (compute, program) = kernel(&source, 400, [3, 1, 1], 300);
    let outcome = any_number_of_threads(&compute, &program);
    let expected: Vec<u8> = (0..1200).map(|n: u32| (n as u8).wrapping_add(1)).collect();
    assert_eq!(outcome.memory.at(OUT).unwrap().bytes[..], expected);
}

// Every block except for the first follows a pointer that the block before it stores. Before that, the pointer is
// invalid.
#[test]
fn a_trap_that_only_an_old_view_of_memory_would_have_does_not_happen() {
    let source = indexed(
        "set $c0 # e u32 $r1 $r63
        (s $c0) st b32 g14[$r2] $r2
        add b32 $r3 $r2 0xfffffffc
        (e $c0) ld b32 $r4 g14[$r3]
        (e $c0) ld b32 $r5 g14[$r4]
        (e $c0) st b32 g14[$r2] $r4
        exit nop",
    );
    let (compute, program) = kernel(&source, 250, [1, 1, 1], 250);
    assert_eq!(words(&any_number_of_threads(&compute, &program)), [OUT; 250]);
}

// Each block reads its own word, but block 200 reads at a distance that block 100 stores. Before that store, the distance
// is zero.
#[test]
fn a_trap_that_an_old_view_of_memory_would_not_have_happens() {
    let source = indexed(
        "mov b32 $r3 b32 s[0x10]
        mov b32 $r4 0x64
        set $c0 # e u32 $r1 $r4
        mov b32 $r5 0x7ff00000
        (s $c0) st b32 g14[$r3] $r5
        mov b32 $r4 0xc8
        set $c0 # e u32 $r1 $r4
        mov b32 $r6 0x0
        (s $c0) ld b32 $r6 g14[$r3]
        add b32 $r2 $r2 $r6
        ld b32 $r7 g14[$r2]
        exit nop",
    );
    let (compute, program) = kernel(&source, 250, [1, 1, 1], 250);
    let Err(RunError::Trap(trap)) = any_result(&compute, &program, &strict()) else { panic!("no trap") };
    assert_eq!(trap.group, GroupId::Warp { block: [0xc8, 0], warp: 0 });
}

#[test]
fn of_several_blocks_that_trap_the_first_is_reported() {
    let source = indexed("mov b32 $r5 0x7\nset $c0 # ge u32 $r1 $r5\n(s $c0) ld b32 $r4 g14[$r63]\nexit nop");
    let (compute, program) = kernel(&source, 250, [1, 1, 1], 250);
    let Err(RunError::Trap(trap)) = any_result(&compute, &program, &strict()) else { panic!("no trap") };
    assert_eq!(trap.group, GroupId::Warp { block: [7, 0], warp: 0 });
}

/// Returns a program whose threads wait until the word of thread `for_thread` is not zero, then store one.
fn waiting(for_thread: &str) -> String {
    indexed(&format!(
        "mov b32 $r3 b32 s[0x10]
        add b32 $r3 $r3 {for_thread}
        mov b32 $r5 0x1
        set $c0 # e u32 $r1 $r63
        (s $c0) bra over
    spin:
        ld b32 $r4 g14[$r3]
        set $c1 # e u32 $r4 $r63
        (s $c1) bra spin
    over:
        exit st b32 g14[$r2] $r5"
    ))
}

// The block runs ahead of the block for which it waits, but not until the watchdog stops it.
#[test]
fn a_block_waits_for_an_earlier_one_no_longer_than_in_order() {
    let (compute, program) = kernel(&waiting("0x0"), 40, [1, 1, 1], 40);
    let patient = Options { watchdog: 1 << 40, ..strict() };
    assert_eq!(words(&any_result(&compute, &program, &patient).unwrap()), [1; 40]);
}

#[test]
fn the_watchdog_stops_a_block_that_waits_for_a_later_one() {
    let (compute, program) = kernel(&waiting("0x20"), 40, [1, 1, 1], 40);
    let Err(RunError::Trap(trap)) = any_result(&compute, &program, &strict()) else { panic!("no trap") };
    assert_eq!(trap.group, GroupId::Warp { block: [1, 0], warp: 0 });
    assert_eq!(trap.trap.cause, Cause::Timeout(200_000));
}
