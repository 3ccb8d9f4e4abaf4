//! A captured draw: its launch files reproduce the pixels that the chip has stored.

mod kept;
mod shelf;
mod strip;

use kept::{Kept, every_pixel_is_that_of_its_launch, seen};
use reconverge_gpu::Submission;
use reconverge_gpu::observe::{Captured, Machine};
use reconverge_gpu::r600::R600;
use reconverge_r700::chip::Chip;
use reconverge_simt::vram::Vram;
use strip::{BUFFERS, PIXEL, Stream, TARGET, memory, put, stream};

/// Submits a stream on a chip with an observer.
fn submitted(memory: &mut [u8], stream: &Stream, captures: bool, replaced: [u32; 2]) -> Vec<Captured> {
    let mut gpu = R600::new(Chip::RV770);
    let seen = seen(&mut gpu, captures, replaced, |gpu| {
        let _ = gpu.submit(Vram::new(memory), &Submission { commands: &stream.0, buffers: &BUFFERS });
    });
    seen.draws
}

fn stored(memory: &[u8], x: i32, y: i32) -> [u8; 4] {
    let at = TARGET.start + (y as usize * 256 + x as usize) * 4;
    memory[at..at + 4].try_into().unwrap()
}

/// All 62,500 pixels: several batches of the rasteriser are one launch.
#[test]
fn the_launch_of_the_fragments_gives_every_stored_pixel() {
    let mut memory = memory();
    let draws = submitted(&mut memory, &stream(), true, [0, 0]);
    let [draw] = &draws[..] else { panic!("{} draws", draws.len()) };
    assert_eq!((draw.number, &*draw.primitive, draw.indices, &draw.trap), (1, "TriangleStrip", 4, &None));
    assert_eq!(draw.targets[0].format, "8_8_8_8 unorm");
    let [vertex, fragment] = &draw.launches[..] else { panic!("{} launches", draw.launches.len()) };

    let positions: Vec<[u32; 4]> = Kept::new(vertex).run("pos60");
    assert_eq!(positions[3].map(f32::from_bits), [1., 1., 0., 1.]);
    every_pixel_is_that_of_its_launch(fragment, "pixel0", 62_500, |x, y| stored(&memory, x, y));
}

/// Words are replaced before they are decoded, and the capture has the new ones.
#[test]
fn a_replaced_word_runs_and_is_captured() {
    let mut memory = memory();
    // EXPORT_DONE of R0.xyzw, and of R0.zyxw.
    let [old, new] = [0x9420_0688, 0x9420_060a];
    let draws = submitted(&mut memory, &stream(), true, [old, new]);
    let [r, g, b, a] = stored(&memory, 200, 20);
    assert_eq!(([r, a], b > 200, g < 30), ([128, 255], true, true));
    assert!(draws[0].launches[1].program.words.contains(&new));
    // Without a capture, words are also replaced.
    let mut memory = strip::memory();
    assert_eq!(submitted(&mut memory, &stream(), false, [old, new]).len(), 0);
    assert_eq!(stored(&memory, 200, 20)[0], 128);
}

#[test]
fn a_draw_that_traps_is_captured_with_what_it_started_from() {
    let mut memory = memory();
    // LOOP_START_DX10, and LOOP_END at once.
    put(&mut memory, PIXEL.start, &[2, 0x8300_0000, 1, 0x8280_0000, 0, 0x8020_0000]);
    let draws = submitted(&mut memory, &stream(), true, [0, 0]);
    assert!(draws[0].trap.as_ref().is_some_and(|trap| trap.starts_with("draw 1: pixel shader: ")));
    let fragment = &draws[0].launches[1];
    assert_eq!(fragment.outputs, []);
    let Machine::R700(launch) = &fragment.machine else { panic!("of R700") };
    // The lanes of the first part of the primitive: whole rows of at least 2,048 quads.
    assert_eq!((launch.lanes, launch.inputs[0].values.len()), (8_388, 8_388));
}
