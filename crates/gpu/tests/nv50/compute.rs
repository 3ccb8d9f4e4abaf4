//! Compute programs: methods of Mesa's driver, and faults of the driver.

use reconverge_gpu::observe::Lanes;

use super::*;

const COMPUTE: u32 = 6;

/// Buffers of the program.
const OUT: usize = 0x10_0000 - 0x8000;
const UNIFORMS: usize = TARGET;

/// Returns the methods of the driver: the window of code, and the buffers 0x7e and 0x7f.
fn started() -> Stream {
    let mut stream = Stream::new();
    stream.call(TESLA, 0x0fa4, &[0, FP_CODE as u32]);
    stream.call(TESLA, 0x1280, &[0, UNIFORMS as u32 + 0x1_0000, 0x007f_0000]);
    stream.call(TESLA, 0x1694, &[0x0007_ff31]);
    stream
}

fn assembled(text: &str) -> Vec<u32> {
    assemble(text, Chip::Gt215, Stage::Compute).unwrap().words()
}

/// Sets g0[] to `bytes` bytes at [`OUT`], linear.
fn out(stream: &mut Stream, bytes: u32) {
    stream.call(COMPUTE, 0x0400, &[0, OUT as u32, 0, bytes - 1, 1]);
}

/// Adds a launch, with the methods in the order of captured streams.
fn launch(stream: &mut Stream, grid: [u32; 3], block: [u32; 3], arguments: &[u32]) {
    stream.call(COMPUTE, 0x0374, &[(1 + arguments.len() as u32) << 8]);
    if !arguments.is_empty() {
        stream.call(COMPUTE, 0x0604, arguments);
    }
    stream.call(COMPUTE, 0x03b4, &[0]);
    stream.call(COMPUTE, 0x03a8, &[0x80]);
    stream.call(COMPUTE, 0x02c0, &[8]);
    stream.call(COMPUTE, 0x03ac, &[block[1] << 16 | block[0], block[2]]);
    stream.call(COMPUTE, 0x02b4, &[1 << 16 | block.iter().product::<u32>()]);
    stream.call(COMPUTE, 0x02f8, &[1]);
    stream.call(COMPUTE, 0x03a4, &[grid[1] << 16 | grid[0]]);
    stream.call(COMPUTE, 0x0388, &[1]);
    for z in 0..grid[2] {
        stream.call(COMPUTE, 0x0600, &[grid[2] | z << 16]);
        stream.call(COMPUTE, 0x0368, &[0]);
    }
    stream.call(COMPUTE, 0x0110, &[0]);
}

/// Adds an upload of a program to the start of the window, with both flushes.
fn program(stream: &mut Stream, words: &[u32]) {
    stream.upload(FP_CODE, words);
    stream.call(COMPUTE, 0x0380, &[0]);
}

fn words(memory: &[u8], count: usize) -> Vec<u32> {
    (0..count).map(|number| word(memory, OUT + 4 * number)).collect()
}

/// Stores 100 * (block in z) + 10 * (block in x) + thread at the thread's number in the whole grid of 2 x 1 x n blocks of 4.
const NUMBERS: &str = "
    and b32 $r0 $r0 0xffff
    cvt u32 $r1 u16 u16 s[0xc]
    cvt u32 $r2 u16 u16 s[0x12]
    shl b32 $r3 $r2 0x3
    shl b32 $r4 $r1 0x2
    add b32 $r3 $r3 $r4
    add b32 $r3 $r3 $r0
    shl b32 $r3 $r3 0x2
    mov b32 $r4 0xa
    mul $r1 u16 $r1l u16 $r4l
    mov b32 $r4 0x64
    mul $r2 u16 $r2l u16 $r4l
    add b32 $r0 $r0 $r1
    add b32 $r0 $r0 $r2
    st b32 g0[$r3] $r0
    exit nop";

#[test]
fn a_grid_of_three_dimensions_is_a_launch_for_each_layer() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = started();
    program(&mut stream, &assembled(NUMBERS));
    out(&mut stream, 0x100);
    launch(&mut stream, [2, 1, 3], [4, 1, 1], &[]);
    launch(&mut stream, [0, 1, 1], [4, 1, 1], &[]);
    stream.push(&mut gpu, &mut memory).unwrap();
    let expected: Vec<u32> =
        (0..24).map(|number| 100 * (number / 8) + 10 * (number / 4 % 2) + number % 4).collect();
    assert_eq!((words(&memory, 24), gpu.draws()), (expected, 3));
    assert_eq!(gpu.unknown(), []);
    // No method has bound the object.
    let remarks = gpu.take_remarks();
    assert!(matches!(&remarks[..], [one] if one.starts_with("F1: ")), "{remarks:?}");
    assert_eq!(gpu.take_remarks(), Vec::<String>::new());
}

/// Captured: the words follow those of the 3D object in the push buffer, and bind the object (`nv50_screen_compute_setup`).
#[test]
fn the_start_up_that_is_not_submitted_is_executed_if_that_is_asked_for() {
    for handled in [false, true] {
        let mut gpu = Nv50::new(Chip::Gt215).with_driver_fixes(handled);
        let mut memory = vec![0; BYTES];
        let mut behind = Stream::default();
        behind.call(COMPUTE, 0, &[0xbeef_50c0]);
        // A limit of g15[] that the program reaches.
        behind.call(COMPUTE, 0x05e0, &[0, OUT as u32, 0, 3, 1]);
        let stream = started();
        for (number, word) in behind.0.iter().enumerate() {
            memory[PUSH + 4 * (stream.0.len() + number)..][..4].copy_from_slice(&word.to_le_bytes());
        }
        stream.push(&mut gpu, &mut memory).unwrap();
        let mut stream = Stream::default();
        program(&mut stream, &assembled("mov b32 $r0 0x0\nmov b32 $r1 0x7\nst b32 g15[$r0] $r1\nexit nop"));
        launch(&mut stream, [1, 1, 1], [1, 1, 1], &[]);
        // At another address, like the driver's next buffer.
        let next = PUSH + 0x4000;
        for (number, word) in stream.0.iter().enumerate() {
            memory[next + 4 * number..][..4].copy_from_slice(&word.to_le_bytes());
        }
        let (segment, all) = (next..next + 4 * stream.0.len(), 0..memory.len());
        gpu.push(Vram::new(&mut memory), &[segment], &[all]).unwrap();
        let place = if handled { OUT } else { 0 };
        assert_eq!(word(&memory, place), 7, "handled: {handled}");
        assert_eq!(gpu.take_remarks().iter().any(|remark| remark.starts_with("F1: ")), !handled);
    }
}

/// Captured: launches of A, B and A, with an upload for the first two (`nv50_program_upload_code`).
#[test]
fn a_program_that_returns_is_another_one_unless_it_is_stored_again() {
    for handled in [false, true] {
        let mut gpu = Nv50::new(Chip::Gt215).with_driver_fixes(handled);
        let mut memory = vec![0; BYTES];
        let stores = |value: u32| {
            assembled(&format!(
                "and b32 $r0 $r0 0xffff\nshl b32 $r1 $r0 0x2\nmov b32 $r0 {value:#x}\nst b32 g0[$r1] $r0\nexit nop"
            ))
        };
        let mut stream = started();
        out(&mut stream, 0x100);
        for value in [1, 2] {
            program(&mut stream, &stores(value));
            launch(&mut stream, [1, 1, 1], [4, 1, 1], &[]);
        }
        stream.call(COMPUTE, 0x0380, &[0]);
        launch(&mut stream, [1, 1, 1], [4, 1, 1], &[]);
        stream.push(&mut gpu, &mut memory).unwrap();
        assert_eq!(words(&memory, 4), [if handled { 1 } else { 2 }; 4]);
        assert!(gpu.take_remarks().iter().any(|remark| remark.starts_with("F4: ")));
    }
}

/// Captured from rusticl: the pointer is in USER_PARAM(1), the kernel reads s\[0x0\] and stores to g0[].
#[test]
fn a_kernel_finds_its_arguments_and_memory_if_the_driver_is_fixed() {
    let mut memory = vec![0; BYTES];
    let mut stream = started();
    program(
        &mut stream,
        &assembled(
            "ld b32 $r1 g0[$r0]\nadd b32 $r0 b32 s[0x0] $r63\nmov b32 $r1 0x5\nst b32 g0[$r0] $r1\nexit nop",
        ),
    );
    launch(&mut stream, [1, 1, 1], [1, 1, 1], &[OUT as u32, 0]);
    let mut fixed = Nv50::new(Chip::Gt215).with_driver_fixes(true);
    stream.push(&mut fixed, &mut memory).unwrap();
    assert_eq!(word(&memory, OUT), 5);
    let fault = stream.push(&mut Nv50::new(Chip::Gt215), &mut memory).unwrap_err();
    let text = fault.to_string();
    assert!(text.starts_with("launch 1: compute program of ") && text.contains("block (0, 0)"), "{text}");
}

/// Source: Mesa `nv50_compute_validate_surfaces`. Images with and without depth differ in the description only.
#[test]
fn the_bytes_of_a_tiled_segment_are_those_of_the_surface() {
    for (slices, place) in [(0, 9 * 0x80 + 4), (3, 0x400 + 64 + 4)] {
        let (mut gpu, mut memory) = gpu();
        let mut stream = started();
        // Word 10 of the description of segment 0.
        stream.call(COMPUTE, 0x0238, &[((0x3c4 + 40) / 4) << 8 | 0x7f]);
        stream.repeat(COMPUTE, 0x023c, &[slices]);
        stream.call(COMPUTE, 0x0400, &[0, OUT as u32, 0x400, 0x000f_007f, 0x100]);
        // Row 9, byte 4.
        program(
            &mut stream,
            &assembled("mov b32 $r0 0x90004\nmov b32 $r1 0x7\nst b32 g0[$r0] $r1\nexit nop"),
        );
        launch(&mut stream, [1, 1, 1], [1, 1, 1], &[]);
        stream.push(&mut gpu, &mut memory).unwrap();
        let found = memory[OUT..OUT + 0x800].iter().position(|byte| *byte != 0);
        assert_eq!(found, Some(place), "slices: {slices}");
    }
}

#[test]
fn beyond_a_segment_there_are_zeros_and_nothing_is_stored() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = started();
    out(&mut stream, 0x100);
    program(
        &mut stream,
        &assembled(
            "mov b32 $r0 0x100\nmov b32 $r1 0x7\nst b32 g0[$r0] $r1\nld b32 $r1 g0[$r0]\nadd b32 $r1 $r1 0x1
            mov b32 $r0 0x0\nst b32 g0[$r0] $r1\nexit nop",
        ),
    );
    launch(&mut stream, [1, 1, 1], [1, 1, 1], &[]);
    stream.push(&mut gpu, &mut memory).unwrap();
    assert_eq!((word(&memory, OUT), word(&memory, OUT + 0x100)), (1, 0));
    assert!(gpu.take_remarks().iter().any(|remark| remark.contains("accesses memory outside of a buffer")));
}

#[test]
fn a_captured_launch_runs_from_its_file() {
    for fixed in [false, true] {
        let mut gpu = Nv50::new(Chip::Gt215).with_driver_fixes(fixed);
        let mut memory = vec![0; BYTES];
        memory[OUT..OUT + 0x100].fill(3);
        let mut stream = started();
        out(&mut stream, 0x100);
        program(&mut stream, &assembled(NUMBERS));
        launch(&mut stream, [2, 1, 1], [4, 1, 1], &[]);
        let seen = seen(&mut gpu, true, [0; 2], |gpu| stream.push(gpu, &mut memory).unwrap());
        let [draw] = &seen.draws[..] else { panic!("{}", seen.draws.len()) };
        let [launched] = &draw.launches[..] else { panic!("{}", draw.launches.len()) };
        assert_eq!((launched.stage, &launched.lanes), ("compute", &Lanes::Threads(8)));
        // `run` compares the outputs with those of the chip.
        let rows: Vec<[u32; 1]> = Kept::new(launched).run("buffer-000f8000");
        assert_eq!(rows.as_flattened(), words(&memory, 64));
    }
}

#[test]
fn a_query_says_that_everything_before_is_done() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = started();
    stream.call(COMPUTE, 0x0310, &[0, RESULT as u32, 0x1234, 1 << 15]);
    stream.call(COMPUTE, 0x0310, &[0, RESULT as u32 + 16, 0x5678, 0]);
    stream.push(&mut gpu, &mut memory).unwrap();
    assert_eq!((word(&memory, RESULT), word(&memory, RESULT + 4)), (0x1234, 0));
    assert_eq!(word(&memory, RESULT + 16), 0x5678);
    assert_ne!(word(&memory, RESULT + 24), 0, "the time");
}

/// Source: Mesa `nv50_query_hw_sm.c`.
#[test]
fn counters_of_a_multiprocessor_count_until_they_are_stopped() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = started();
    out(&mut stream, 0x100);
    program(&mut stream, &assembled("mov b32 $r0 0x0\nexit nop"));
    stream.call(COMPUTE, 0x02d0, &[0, 0, 0, 7]);
    // Instructions and blocks. Branches are not counted, and neither are functions of several signals.
    stream.call(COMPUTE, 0x02e0, &[0x04aa_aa40, 0x33cc_cc10, 0x02f0_f040, 0x0455_5540]);
    // Two blocks of two warps.
    launch(&mut stream, [2, 1, 1], [33, 1, 1], &[]);
    stream.call(COMPUTE, 0x02e0, &[0; 4]);
    program(
        &mut stream,
        &assembled(
            "mov b32 $r0 0x0\nmov $r1 $pm0\nst b32 g0[$r0] $r1\nmov b32 $r0 0x4\nmov $r1 $pm1
            st b32 g0[$r0] $r1\nmov b32 $r0 0x8\nmov $r1 $pm3\nst b32 g0[$r0] $r1\nexit nop",
        ),
    );
    launch(&mut stream, [1, 1, 1], [1, 1, 1], &[]);
    stream.push(&mut gpu, &mut memory).unwrap();
    assert_eq!(words(&memory, 3), [8, 2, 7]);
    let unknown: Vec<_> = gpu.unknown().into_iter().map(|(name, _)| name).collect();
    assert_eq!(unknown, ["MP_PM_CONTROL: branches", "MP_PM_CONTROL: function 0x5555 of counter 3"]);
}

/// Words for sizes and addresses at their limits and on overflow.
const EDGES: [u32; 12] =
    [0, 1, 0x3f, 0x40, 0xff, 0x200, 0xffff, 0x1_0000, 0x7fff_ffff, 0xffff_0000, 0xffff_fff8, u32::MAX];

#[test]
fn any_words_of_any_methods_end_in_a_result_or_a_fault() {
    let loads = assembled("ld b32 $r1 g15[$r0]\nld b32 $r2 g3[$r1]\nst b32 g7[$r2] $r1\nexit nop");
    let shared = assembled("mov b32 $r1 $r0\nst b32 s[0x20] $r1\nbar inc wait 0x0 0xfff\nexit nop");
    for (number, words) in [assembled(NUMBERS), loads, shared].iter().enumerate() {
        for seed in 0..40 {
            let mut random = Random::new(seed << 8 | number as u64);
            let mut gpu = Nv50::new(random.one_of(&[Chip::G80, Chip::G84, Chip::G200, Chip::Gt215]))
                .with_driver_fixes(random.below(2) == 0);
            let mut memory = vec![0; BYTES];
            let mut stream = started();
            program(&mut stream, words);
            out(&mut stream, 0x1000);
            launch(&mut stream, [2, 1, 1], [33, 1, 1], &[OUT as u32]);
            for _ in 0..24 {
                // All methods except the launch, and more often those that set sizes.
                let method = match random.below(2) {
                    0 => 4 * (0x40 + random.below(0x9a)),
                    _ => random.one_of(&[
                        0x0238, 0x023c, 0x02a8, 0x02ac, 0x02b4, 0x02c0, 0x031c, 0x0374, 0x03a8, 0x03ac,
                        0x03b0, 0x03b4, 0x0404, 0x040c, 0x0468, 0x046c, 0x0470, 0x05ec,
                    ]),
                };
                let word = if random.below(2) == 0 { random.one_of(&EDGES) } else { random.next() };
                stream.call(COMPUTE, method, &[word]);
            }
            // Many blocks mean many results, not a fault.
            let [x, y] = [(); 2].map(|()| 1 + random.below(3));
            stream.call(COMPUTE, 0x03a4, &[y << 16 | x]);
            stream.call(COMPUTE, 0x0368, &[0]);
            // A fault is also a result.
            let _ = stream.push(&mut gpu, &mut memory);
        }
    }
}
