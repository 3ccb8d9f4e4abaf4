//! A stream as Mesa's driver sends it for a strip of four vertices with one varying: every pixel is where it is.

mod strip;

use reconverge_gpu::r600::R600;
use reconverge_gpu::{Fault, Gpu, Submission};
use reconverge_r700::chip::Chip;
use reconverge_simt::Engine;
use strip::{BUFFERS, PIXEL, Stream, TARGET, memory, put, stream};

fn pixel(memory: &[u8], x: usize, y: usize) -> [u8; 4] {
    let at = TARGET.start + (y * 256 + x) * 4;
    memory[at..at + 4].try_into().unwrap()
}

#[test]
fn every_pixel_of_a_captured_draw_is_where_it_is() {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    gpu.submit(&mut memory, &Submission { commands: &stream().0, buffers: &BUFFERS }).unwrap();
    for y in 0..250 {
        for x in 0..250 {
            let expected = [x, y].map(|at| ((at as f64 + 0.5) / 250. * 255.).round() as u8);
            let [r, g, b, a] = pixel(&memory, x, y);
            let close = r.abs_diff(expected[0]) <= 1 && g.abs_diff(expected[1]) <= 1;
            assert!(close && (b, a) == (128, 255), "{x} {y}: {:?}, not {expected:?}", [r, g, b, a]);
        }
        assert_eq!(pixel(&memory, 250, y), [0; 4]);
    }
    assert_eq!((gpu.draws(), gpu.unknown()), (1, vec![]));
}

#[test]
fn what_is_not_known_is_named_and_counted() {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    let mut stream = Stream::default();
    stream.packet(0x7f, &[0]);
    stream.context(0x28ffc, &[1]);
    stream.context(0x28ffc, &[1]);
    gpu.submit(&mut memory, &Submission { commands: &stream.0, buffers: &[] }).unwrap();
    assert_eq!(gpu.unknown(), [("packet 0x7f".to_owned(), 1), ("register 0x28ffc".to_owned(), 2)]);
}

#[test]
fn a_shader_that_never_ends_is_named() {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    // LOOP_START_DX10, and LOOP_END at once.
    put(&mut memory, PIXEL.start, &[2, 0x8300_0000, 1, 0x8280_0000, 0, 0x8020_0000]);
    let fault =
        gpu.submit(&mut memory, &Submission { commands: &stream().0, buffers: &BUFFERS }).unwrap_err();
    assert!(matches!(&fault, Fault::Trap(what) if what.starts_with("draw 1: pixel shader: ")), "{fault}");
}

#[test]
fn engines_alone_and_in_lockstep_draw_the_same_pixels() {
    let drawn = |engine| {
        let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
        gpu.use_engine(engine);
        gpu.submit(&mut memory, &Submission { commands: &stream().0, buffers: &BUFFERS }).unwrap();
        memory[TARGET].to_vec()
    };
    let [first, others @ ..] = Engine::ALL.map(drawn);
    assert!(others.iter().all(|other| *other == first));
}
