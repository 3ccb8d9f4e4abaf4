//! A stream as Mesa's driver sends it for a strip of four vertices with one varying: every pixel is where it is.

use std::ops::Range;

use reconverge_gpu::r600::R600;
use reconverge_gpu::{Fault, Gpu, Submission};
use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_r700::chip::Chip;
use reconverge_simt::Engine;

/// Where the buffers of the relocation list are.
const TARGET: Range<usize> = 0x1_0000..0x5_0000;
const VERTICES: Range<usize> = 0x5_0000..0x6_0000;
const FETCH: Range<usize> = 0x6_0000..0x7_0000;
const PIXEL: Range<usize> = 0x7_0000..0x8_0000;
const VERTEX: Range<usize> = 0x8_0000..0x9_0000;
const BUFFERS: [Range<usize>; 5] = [TARGET, VERTICES, FETCH, PIXEL, VERTEX];

#[derive(Default)]
struct Stream(Vec<u32>);

impl Stream {
    fn packet(&mut self, op: u32, payload: &[u32]) {
        self.0.push(3 << 30 | (payload.len() as u32 - 1) << 16 | op << 8);
        self.0.extend(payload);
    }

    fn context(&mut self, address: u32, values: &[u32]) {
        let payload: Vec<u32> = [(address - 0x28000) / 4].into_iter().chain(values.iter().copied()).collect();
        self.packet(0x69, &payload);
    }

    fn relocation(&mut self, buffer: u32) {
        self.packet(0x10, &[4 * buffer]);
    }
}

fn put(memory: &mut [u8], at: usize, words: &[u32]) {
    for (place, word) in words.iter().enumerate() {
        memory[at + 4 * place..][..4].copy_from_slice(&word.to_le_bytes());
    }
}

fn memory() -> Vec<u8> {
    let mut memory = vec![0; 0x9_0000];
    let corner = |x: f32, y: f32| [x, y, 0., 1.].map(f32::to_bits);
    let corners = [corner(-1., -1.), corner(1., -1.), corner(-1., 1.), corner(1., 1.)];
    put(&mut memory, VERTICES.start + 0x8c0, corners.as_flattened());
    let fetch = [0x0000_0002, 0x8100_0000, 0, 0x8a00_0000, 0x7c00_a000, 0x08cd_1001, 0x0008_0000, 0];
    put(&mut memory, FETCH.start + 0x500, &fetch);
    #[rustfmt::skip]
    let vertex = [
        0x0000_0000, 0x8980_0000, 0x0000_0004, 0xa00c_0000, 0xc000_a03c, 0x9400_0688, 0xc000_4000, 0x9420_0688,
        // The clause begins at word 4 of 64 bits; its literals follow.
        0x001f_8001, 0x0002_80fc, 0x001f_8401, 0x2002_80fc, 0x001f_8801, 0x4002_80fc, 0x801f_8c01, 0x6002_80fc,
    ];
    put(&mut memory, VERTEX.start, &vertex);
    put(&mut memory, PIXEL.start, &[0xc000_0000, 0x9420_0688]);
    memory
}

fn stream() -> Stream {
    let mut stream = Stream::default();
    stream.packet(0x28, &[0x8000_0000, 0x8000_0000]);
    stream.context(0x28030, &[0, 0x2000_2000]);
    stream.context(0x28204, &[0x8000_0000, 0x00fa_00fa]);
    stream.context(0x28240, &[0, 0x2000_2000]);
    stream.context(0x28250, &[0x8000_0000, 0x00fa_00fa]);
    stream.context(0x280a0, &[0x0910_0468]);
    stream.context(0x28040, &[0]);
    stream.relocation(0);
    stream.context(0x28060, &[0x000f_fc1f]);
    stream.context(0x28238, &[0xf, 0xf]);
    stream.context(0x28808, &[0x00cc_0080]);
    stream.context(0x2880c, &[0x210]);
    stream.context(0x28810, &[0x0100_0000, 0x0008_0244, 0x43f, 0]);
    stream.context(0x2843c, &[125., 125., 125., 125., 0.5, 0.5].map(f32::to_bits));
    stream.context(0x282d0, &[0., 1.].map(f32::to_bits));
    stream.context(0x286d4, &[0x86b]);
    stream.context(0x28614, &[0xa]);
    stream.context(0x286c4, &[0]);
    stream.context(0x28644, &[0xa]);
    stream.context(0x286cc, &[0x1000_0001, 0]);
    stream.context(0x28894, &[5]);
    stream.relocation(2);
    stream.context(0x28850, &[0x0020_0001, 2]);
    stream.context(0x28840, &[0]);
    stream.relocation(3);
    stream.context(0x28868, &[0x0020_0102]);
    stream.context(0x28858, &[0]);
    stream.relocation(4);
    stream.packet(0x6d, &[320 * 7, 0x8c0, 0x180, 0x000f_fe7f & 0x1000, 0, 0, 0, 0xc000_0000]);
    stream.relocation(1);
    stream.context(0x28400, &[u32::MAX, 0, 0]);
    stream.packet(0x68, &[0x256, 6]);
    stream.packet(0x2f, &[1]);
    stream.packet(0x2d, &[4, 2]);
    stream
}

fn pixel(memory: &[u8], x: usize, y: usize) -> [u8; 4] {
    let at = TARGET.start + (y * 256 + x) * 4;
    memory[at..at + 4].try_into().unwrap()
}

#[test]
fn every_pixel_of_a_captured_draw_is_where_it_is() {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770, Engine::Fast));
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
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770, Engine::Fast));
    let mut stream = Stream::default();
    stream.packet(0x7f, &[0]);
    stream.context(0x28ffc, &[1]);
    stream.context(0x28ffc, &[1]);
    gpu.submit(&mut memory, &Submission { commands: &stream.0, buffers: &[] }).unwrap();
    assert_eq!(gpu.unknown(), [("packet 0x7f".to_owned(), 1), ("register 0x28ffc".to_owned(), 2)]);
}

#[test]
fn a_shader_that_never_ends_is_named() {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770, Engine::Fast));
    // LOOP_START_DX10, and LOOP_END at once.
    put(&mut memory, PIXEL.start, &[2, 0x8300_0000, 1, 0x8280_0000, 0, 0x8020_0000]);
    let fault =
        gpu.submit(&mut memory, &Submission { commands: &stream().0, buffers: &BUFFERS }).unwrap_err();
    assert!(matches!(&fault, Fault::Trap(what) if what.starts_with("draw 1: pixel shader: ")), "{fault}");
}

#[test]
fn engines_in_lockstep_draw_the_same_pixels_and_programs_are_given_once() {
    let drawn = |engine| {
        let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770, engine));
        gpu.keep_programs();
        for _ in 0..2 {
            gpu.submit(&mut memory, &Submission { commands: &stream().0, buffers: &BUFFERS }).unwrap();
        }
        (memory[TARGET].to_vec(), gpu.take_programs())
    };
    let (pixels, programs) = drawn(Engine::Fast);
    assert!(drawn(Engine::Lockstep) == (pixels.clone(), programs.clone()));
    assert!(drawn(Engine::Reference).0 == pixels);
    let stages: Vec<_> = programs.iter().map(|program| (program.chip, program.stage)).collect();
    assert_eq!(stages, [("rv770", Stage::Vertex), ("rv770", Stage::Pixel)]);
    assert!(programs.iter().all(|program| program.isa == Isa::R700 && !program.words.is_empty()));
}
