//! Streams of Mesa's driver for a GT215: a strip of four vertices with one varying, queries, copies, and programs
//! that fail.

mod compute;
#[path = "../kept/mod.rs"]
mod kept;
#[path = "../shelf/mod.rs"]
mod shelf;

use kept::{Kept, every_pixel_is_that_of_its_launch, seen};
use reconverge_board::errata::{Errata, Erratum};
use reconverge_gpu::nv50::Nv50;
use reconverge_gpu::{Fault, Gpu};
use reconverge_simt::Engine;
use reconverge_simt::loaded::loads;
use reconverge_simt::pool::on_one_thread;
use reconverge_simt::random::Random;
use reconverge_simt::vram::Vram;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::text::assemble;

/// Addresses in memory.
const TARGET: usize = 0x1_0000;
const VP_CODE: usize = 0x10_0000;
const FP_CODE: usize = 0x18_0000;
const RESULT: usize = 0x20_0000;
const PUSH: usize = 0x21_0000;
const BYTES: usize = 0x22_0000;

/// Subchannels of the driver's objects.
const TESLA: u32 = 3;
const TWOD: u32 = 4;
const M2MF: u32 = 5;

#[derive(Default)]
struct Stream(Vec<u32>);

impl Stream {
    /// Binds the objects to their subchannels.
    fn new() -> Stream {
        let mut stream = Stream::default();
        stream.call(M2MF, 0, &[0xbeef_5039]);
        stream.call(TWOD, 0, &[0xbeef_502d]);
        stream.call(TESLA, 0, &[0xbeef_8597]);
        stream
    }

    /// Adds an incrementing packet.
    fn call(&mut self, subchannel: u32, method: u32, words: &[u32]) {
        self.0.push((words.len() as u32) << 18 | subchannel << 13 | method);
        self.0.extend(words);
    }

    /// Adds a non-incrementing packet.
    fn repeat(&mut self, subchannel: u32, method: u32, words: &[u32]) {
        self.0.push(1 << 30 | (words.len() as u32) << 18 | subchannel << 13 | method);
        self.0.extend(words);
    }

    /// Adds an upload of words to an address, as the driver uploads programs.
    fn upload(&mut self, at: usize, words: &[u32]) {
        let (start, x) = ((at & !0xff) as u32, (at & 0xff) as u32);
        self.call(TWOD, 0x0200, &[0xf3, 1]);
        self.call(TWOD, 0x0214, &[0x4_0000, 0x1_0000, 1, 0, start]);
        self.call(TWOD, 0x0800, &[0, 0xf3]);
        self.call(TWOD, 0x0838, &[4 * words.len() as u32, 1, 0, 1, 0, 1, 0, x, 0, 0]);
        self.repeat(TWOD, 0x0860, words);
        self.call(TESLA, 0x1440, &[0]);
    }

    /// Executes the stream, with its words at [`PUSH`].
    fn push(&self, gpu: &mut dyn Gpu, memory: &mut [u8]) -> Result<(), Fault> {
        for (number, word) in self.0.iter().enumerate() {
            memory[PUSH + 4 * number..][..4].copy_from_slice(&word.to_le_bytes());
        }
        let (segment, all) = (PUSH..PUSH + 4 * self.0.len(), 0..memory.len());
        gpu.push(Vram::new(memory), &[segment], &[all])
    }
}

/// Captured: the state of a surface of 250 x 250, RGBA8, and of a draw without tests and blending.
fn prepared() -> Stream {
    let mut stream = Stream::new();
    let half = 125f32.to_bits();
    for (method, words) in [
        (0x0f7c, &[0, VP_CODE as u32][..]),
        (0x0fa4, &[0, FP_CODE as u32]),
        (0x12d8, &[0, 0, 3]),
        (0x121c, &[0x0fac_6881]),
        (0x0ff4, &[0x00fa_0000, 0x00fa_0000]),
        (0x0200, &[0, TARGET as u32, 0xd5, 0x40, 0]),
        (0x1240, &[0xfa, 0xfa]),
        (0x1224, &[1]),
        (0x0c00, &[0x00fa_0000, 0x00fa_0000]),
        (0x143c, &[0x10]),
        (0x0f90, &[1]),
        (0x135c, &[1]),
        (0x1360, &[0]),
        (0x1a00, &[0x1111]),
        (0x12d4, &[0x1d01]),
        (0x1684, &[1]),
        (0x0dac, &[0x1b02, 0x1b02, 0]),
        (0x1918, &[0, 0x900, 0x405]),
        (0x0e00, &[1, 0x00fa_0000, 0x00fa_0000]),
        (0x0a0c, &[half, half, 0x3f00_0000]),
        (0x0a00, &[half, half, 0x3f00_0000]),
        (0x0c08, &[0, 0x3f80_0000]),
        (0x1650, &[0xf, 0]),
        (0x16b8, &[6]),
        (0x16b0, &[4]),
        (0x140c, &[0x7_ffc0]),
        (0x198c, &[4]),
        (0x1298, &[4]),
        (0x1414, &[0x7_ffc0]),
        (0x16ac, &[6]),
        (0x16bc, &[0x0302_0100, 0x4040_0504]),
        (0x1900, &[0, 0x0100_0404, 4, 0, 0]),
        (0x1988, &[0x0802_0402]),
        (0x1540, &[0, 0, 0, 0]),
        (0x1ac0, &[0x7e08_0000]),
    ] {
        stream.call(TESLA, method, words);
    }
    // mov b32 of the position to o[0..4], x / 2 + 1 / 2 and y / 2 + 1 / 2 to o[4..6].
    stream.upload(
        VP_CODE + 0x7_ffc0,
        &[
            0x1000_0001,
            0x0423_c788,
            0x1000_0205,
            0x0423_c788,
            0x1000_0409,
            0x0423_c788,
            0x1000_060d,
            0x0423_c788,
            0x1000_8001,
            0x03f0_0003,
            0xe000_0011,
            0x0020_0788,
            0xe000_0215,
            0x0020_0789,
        ],
    );
    // w, then both varyings times w; 0.5 and 1.
    stream.upload(
        FP_CODE + 0x7_ffc0,
        &[
            0x8000_0000,
            0x9000_0004,
            0x8201_0200,
            0x8202_0204,
            0x1000_800d,
            0x03f8_0003,
            0x1000_8009,
            0x03f0_0003,
            0xf000_0001,
            0xe000_0001,
        ],
    );
    stream
}

/// Captured: a strip of four vertices, each of four floats in the commands.
fn strip(stream: &mut Stream) {
    let corners = [[-1f32, -1.], [1., -1.], [-1., 1.], [1., 1.]];
    let words: Vec<u32> = corners.iter().flat_map(|[x, y]| [*x, *y, 0., 1.].map(f32::to_bits)).collect();
    stream.call(TESLA, 0x15dc, &[5]);
    stream.repeat(TESLA, 0x1640, &words);
    stream.call(TESLA, 0x15e0, &[0]);
}

fn gpu() -> (Nv50, Vec<u8>) {
    (Nv50::new(Chip::Gt215), vec![0; BYTES])
}

fn word(memory: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(memory[at..at + 4].try_into().unwrap())
}

/// Reads pixels as the driver does: M2MF, from tiled to linear.
fn pixels(gpu: &mut Nv50, memory: &mut [u8], y: u32) -> Vec<[u8; 4]> {
    let mut stream = Stream::default();
    stream.call(M2MF, 0x0200, &[0, 0x40, 0x3e8, 0xfa, 1, 0]);
    stream.call(M2MF, 0x021c, &[1]);
    stream.call(M2MF, 0x0318, &[1000]);
    stream.call(M2MF, 0x0238, &[0, 0]);
    stream.call(M2MF, 0x030c, &[TARGET as u32, RESULT as u32]);
    stream.call(M2MF, 0x0218, &[y << 16]);
    stream.call(M2MF, 0x031c, &[1000, 1, 0x101, 0]);
    stream.push(gpu, memory).unwrap();
    memory[RESULT..RESULT + 1000].chunks_exact(4).map(|pixel| pixel.try_into().unwrap()).collect()
}

#[test]
fn every_pixel_of_a_captured_draw_is_where_it_is() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = prepared();
    strip(&mut stream);
    let before = loads();
    // The counts are per thread.
    on_one_thread(|| stream.push(&mut gpu, &mut memory)).unwrap();
    let (decoded, lowered) = (loads().decoded - before.decoded, loads().lowered - before.lowered);
    assert_eq!((decoded, lowered), (2, 2), "each program once, whatever its batches are");
    for y in 0..250 {
        for (x, pixel) in pixels(&mut gpu, &mut memory, y).into_iter().enumerate() {
            let expected = [x as f64, f64::from(y)].map(|at| ((at + 0.5) / 250. * 255.).round() as u8);
            let close = pixel[0].abs_diff(expected[0]) <= 1 && pixel[1].abs_diff(expected[1]) <= 1;
            assert!(close && pixel[2..] == [128, 255], "{x} {y}: {pixel:?}, not {expected:?}");
        }
    }
    assert_eq!((gpu.draws(), gpu.unknown()), (1, vec![]));
}

/// The launches of both programs compute every stored pixel, and the surface after the draw equals the pixels that
/// the driver reads.
#[test]
fn a_captured_draw_runs_again_from_its_launch_files() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = prepared();
    strip(&mut stream);
    let seen = seen(&mut gpu, true, [0; 2], |gpu| stream.push(gpu, &mut memory).unwrap());
    let [draw] = &seen.draws[..] else { panic!("{} draws", seen.draws.len()) };
    assert_eq!((draw.number, &*draw.primitive, draw.indices), (1, "TriangleStrip", 4));
    let [vertex, fragment] = &draw.launches[..] else { panic!("{} launches", draw.launches.len()) };
    let outputs: Vec<[u32; 6]> = Kept::new(vertex).run("outputs");
    assert_eq!(outputs[3].map(f32::from_bits), [1., 1., 0., 1., 1., 1.]);
    let rows: Vec<Vec<[u8; 4]>> = (0..250).map(|y| pixels(&mut gpu, &mut memory, y)).collect();
    every_pixel_is_that_of_its_launch(fragment, "color0", 62_500, |x, y| rows[y as usize][x as usize]);

    let [(1, surfaces)] = &seen.surfaces[..] else { panic!("{:?}", seen.surfaces) };
    let [(target, content)] = &surfaces[..] else { panic!("{} surfaces", surfaces.len()) };
    assert_eq!((&*target.name, target.bytes, target.rows), ("color0", 4, 250));
    assert_eq!(content[4 * (7 * target.pitch + 3)..][..4], rows[7][3]);
    // Branches use addresses, so the text contains the address of the words.
    let file = seen.programs[1].file();
    assert!(file.0 == "s" && file.1.contains(".base 0x7ffc0\n"), "{}", file.1);
}

/// A replaced word also changes the operands that the program reads.
#[test]
fn a_replaced_word_runs_and_is_captured() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = prepared();
    strip(&mut stream);
    // Blue is 1 instead of 1/2.
    let [old, new] = [0x03f0_0003, 0x03f8_0003];
    let seen = seen(&mut gpu, true, [old, new], |gpu| stream.push(gpu, &mut memory).unwrap());
    assert_eq!(pixels(&mut gpu, &mut memory, 9)[9][2], 255);
    let fragment = &seen.draws[0].launches[1];
    assert!(fragment.program.words.contains(&new));
    let colors: Vec<[u32; 4]> = Kept::new(fragment).run("color0");
    assert_eq!(f32::from_bits(colors[0][2]), 1.);
}

/// Captured: the first clear of a context comes while the scissor is empty.
#[test]
fn a_clear_fills_the_rectangle_of_the_viewport_and_not_the_scissor() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = prepared();
    stream.call(TESLA, 0x0e04, &[0, 0]);
    stream.call(TESLA, 0x0c00, &[0x0010_0004, 0x00fa_0000]);
    stream.call(TESLA, 0x0d80, &[1f32, 0., 0.5, 1.].map(f32::to_bits));
    stream.call(TESLA, 0x19d0, &[0x3c]);
    stream.push(&mut gpu, &mut memory).unwrap();
    let row = pixels(&mut gpu, &mut memory, 7);
    assert_eq!([row[3], row[4], row[19], row[20]], [[0; 4], [255, 0, 128, 255], [255, 0, 128, 255], [0; 4]]);
}

#[test]
fn fences_and_counts_of_samples_are_written_where_the_driver_waits_for_them() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = prepared();
    stream.call(TESLA, 0x1514, &[1]);
    stream.call(TESLA, 0x1530, &[1]);
    strip(&mut stream);
    stream.call(TESLA, 0x1b00, &[0, RESULT as u32, 7, 0x0100_f002]);
    stream.call(TESLA, 0x1b00, &[0, RESULT as u32 + 16, 8, 0x1000_f010]);
    stream.push(&mut gpu, &mut memory).unwrap();
    assert_eq!([0, 4, 16, 20].map(|at| word(&memory, RESULT + at)), [7, 250 * 250, 8, 0]);
}

/// Mesa `nv50_hw_begin_query`: the words that read statistics of the pipeline. The counter of generated primitives
/// runs only during feedback: NV92 fails piglit's `primgen-query transform-feedback-disabled`.
#[test]
fn each_stage_counts_its_work() {
    counts_of_stages(Nv50::new(Chip::Gt215), 0);
    // Without the erratum, the counter also runs without feedback.
    let errata = Errata::ALL.without(Erratum::GeneratedCounter);
    counts_of_stages(Nv50::new(Chip::Gt215).with_errata(errata), 2);
}

fn counts_of_stages(mut gpu: Nv50, generated: u32) {
    let mut memory = vec![0; BYTES];
    let mut stream = prepared();
    strip(&mut stream);
    let words = [
        0x0080_1002,
        0x0180_1002,
        0x0280_2002,
        0x0380_6002,
        0x0480_6002,
        0x0780_4002,
        0x0880_4002,
        0x0980_a002,
        0x0680_5002,
    ];
    for (number, word) in words.into_iter().enumerate() {
        stream.call(TESLA, 0x1b00, &[0, (RESULT + 16 * number) as u32, 0, word]);
    }
    stream.push(&mut gpu, &mut memory).unwrap();
    let counted: Vec<u32> = (0..words.len()).map(|number| word(&memory, RESULT + 16 * number)).collect();
    assert_eq!(counted, [4, 2, 4, 0, 0, 2, 2, 250 * 250, generated]);
    // Time advances, regardless of the host's clock.
    let times: Vec<u32> = (0..words.len()).map(|number| word(&memory, RESULT + 16 * number + 8)).collect();
    assert!(times.is_sorted_by(|one, next| one < next) && times[0] > 0, "{times:?}");
    assert_eq!(gpu.unknown(), vec![]);
}

#[test]
fn a_program_that_traps_ends_its_draw_and_not_the_commands_after_it() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = prepared();
    // A branch to itself, for one quad.
    stream.upload(FP_CODE + 0x7_ffc0, &[0x17ff_8003, 0x0000_4780]);
    stream.call(TESLA, 0x0e04, &[0x0002_0000, 0x0002_0000]);
    strip(&mut stream);
    stream.call(TESLA, 0x1b00, &[0, RESULT as u32, 9, 0x1000_f010]);
    let fault = stream.push(&mut gpu, &mut memory).unwrap_err();
    assert!(matches!(&fault, Fault::Trap(what) if what.starts_with("draw 1: fragment program: ")), "{fault}");
    assert_eq!(word(&memory, RESULT), 9, "the fence");
    Stream::default().push(&mut gpu, &mut memory).unwrap();
}

#[test]
fn what_is_not_known_is_named_and_counted() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = Stream::new();
    stream.call(TESLA, 0x1ffc, &[1]);
    stream.call(TESLA, 0x1ffc, &[1]);
    stream.call(7, 0x0100, &[0]);
    stream.push(&mut gpu, &mut memory).unwrap();
    let expected = [("3D method 0x1ffc", 2), ("methods of subchannel 7", 1)];
    assert_eq!(gpu.unknown(), expected.map(|(name, count)| (name.to_owned(), count)));
}

/// The driver splits copies into parts of up to 2,047 rows. (Mesa `nv50_transfer.c`)
#[test]
fn a_copy_of_more_rows_than_the_driver_asks_for_is_named() {
    for (rows, last) in [(2047, 0x5a), (2048, 0)] {
        let (mut gpu, mut memory) = gpu();
        memory[TARGET..TARGET + 2047].fill(0x5a);
        let mut stream = Stream::new();
        // A copy within linear memory, one byte per row.
        stream.call(M2MF, 0x0200, &[1]);
        stream.call(M2MF, 0x021c, &[1]);
        stream.call(M2MF, 0x0238, &[0, 0]);
        stream.call(M2MF, 0x030c, &[TARGET as u32, RESULT as u32, 1, 1, 1, rows, 0x101, 0]);
        stream.push(&mut gpu, &mut memory).unwrap();
        assert_eq!(memory[RESULT + 2046], last, "{rows}");
        let named = [("M2MF copy of more than 2047 rows".to_owned(), 1)];
        assert_eq!(gpu.unknown(), &named[..usize::from(last == 0)], "{rows}");
    }
}

#[test]
fn a_word_that_begins_no_packet_is_malformed() {
    let (mut gpu, mut memory) = gpu();
    let fault = Stream(vec![0x2000_0000]).push(&mut gpu, &mut memory).unwrap_err();
    assert!(matches!(&fault, Fault::Malformed(what) if what.contains("0x20000000")), "{fault}");
}

/// Captured: indices come as a segment that is a part of the index buffer, after the header of a long packet. It
/// begins at an odd index, so the set-up word skips one, and its last word has one too many.
#[test]
fn indices_of_a_segment_are_read_when_it_is_reached() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = prepared();
    let corners = [[-1f32, -1.], [1., -1.], [-1., 1.], [1., 1.]];
    let words: Vec<u32> = corners.iter().flat_map(|[x, y]| [*x, *y, 0., 1.].map(f32::to_bits)).collect();
    let (vertices, indices) = (RESULT + 0x2000, RESULT + 0x3000);
    for (number, word) in words.iter().enumerate() {
        memory[vertices + 4 * number..][..4].copy_from_slice(&word.to_le_bytes());
    }
    stream.call(TESLA, 0x0900, &[1 << 29 | 16, 0, vertices as u32]);
    stream.call(TESLA, 0x1080, &[0, vertices as u32 + 63]);
    stream.call(TESLA, 0x15dc, &[5]);
    stream.call(TESLA, 0x15ec, &[1 << 31 | 4]);
    // Written by the commands before it.
    stream.upload(indices, &[0x0000_0007, 0x0002_0001, 0x0009_0003]);
    stream.0.extend([0x0003_75f0, 3]);
    stream.push(&mut gpu, &mut memory).unwrap();
    let segment = indices..indices + 12;
    gpu.push(Vram::new(&mut memory), &[segment], &[]).unwrap();
    let mut stream = Stream::default();
    stream.call(TESLA, 0x15ec, &[0]);
    stream.call(TESLA, 0x15e0, &[0]);
    stream.push(&mut gpu, &mut memory).unwrap();
    for y in [0, 125, 249] {
        assert!(pixels(&mut gpu, &mut memory, y).iter().all(|pixel| pixel[2..] == [128, 255]), "{y}");
    }
    assert_eq!((gpu.draws(), gpu.unknown()), (1, vec![]));
}

/// Mesa `nv50_query_hw.c`: mode 3 draws if two pairs of words are equal, 4 if they differ.
#[test]
fn a_condition_holds_draws_back() {
    for (mode, drawn) in [(0, false), (1, true), (3, true), (4, false)] {
        let (mut gpu, mut memory) = gpu();
        let mut stream = prepared();
        stream.call(TESLA, 0x1550, &[0, RESULT as u32 + 0x2000, mode]);
        strip(&mut stream);
        stream.push(&mut gpu, &mut memory).unwrap();
        assert_eq!(pixels(&mut gpu, &mut memory, 100)[100] != [0; 4], drawn, "{mode}");
    }
}

/// Address of a texture of 16 x 16, RGBA8 in linear memory, and of other bytes of the same size.
const TEXTURE: usize = 0x8_0000;
const OTHER: usize = RESULT + 0x6000;
const TEXTURE_BYTES: usize = 4 * 16 * 16;

/// Offsets of programs in their windows: one of varyings, and one of texels.
const PLAIN: u32 = 0x7_ffc0;
const TEXTURED: u32 = 0x7_fe00;

/// A draw of the strip to a surface.
fn strip_to(target: usize, program: u32) -> Stream {
    let mut stream = Stream::default();
    stream.call(TESLA, 0x0200, &[0, target as u32, 0xd5, 0x40, 0]);
    stream.call(TESLA, 0x1414, &[program]);
    strip(&mut stream);
    stream
}

/// Returns the commands before draws with the texture.
fn with_texture(memory: &mut [u8]) -> Stream {
    let (entry, sampler) = (RESULT + 0x4000, RESULT + 0x5000);
    let words = [0x2c69_2488, TEXTURE as u32, 0xd104_5000, 64, 0x8000_0010, 0x0001_0010, 0x0300_0000, 0];
    for (place, words) in [(entry, &words[..]), (sampler, &[0x0002_6000, 0x51, 0x00f0_0000, 0])] {
        for (number, word) in words.iter().enumerate() {
            memory[place + 4 * number..][..4].copy_from_slice(&word.to_le_bytes());
        }
    }
    let mut stream = prepared();
    let text = "texauto live $r0:$r1:$r2:$r3 $t0 $s0 $r0:$r1 0x0 0x0 0x0\nexit nop\n";
    let code = assemble(text, Chip::Gt215, Stage::Fragment).unwrap().words();
    // The program of a strip, and then the texel at its varyings.
    let varyings = [0x8000_0000, 0x9000_0004, 0x8201_0200, 0x8202_0204];
    stream.upload(FP_CODE + TEXTURED as usize, &[&varyings[..], &code].concat());
    stream.call(TESLA, 0x1574, &[0, entry as u32, 0]);
    stream.call(TESLA, 0x155c, &[0, sampler as u32, 0]);
    stream.call(TESLA, 0x1454, &[1, 1]);
    stream
}

/// Pixels four times as long along s as along t: four positions, from the anisotropy of the sampler or from that of
/// the texture's entry.
#[test]
fn an_anisotropic_filter_reads_along_the_longer_side() {
    let drawn = |engine: Engine, of_sampler: u32, of_texture: Option<u32>| {
        let (mut gpu, mut memory) = gpu();
        gpu.use_engine(engine);
        let stream = with_texture(&mut memory);
        for (at, texel) in memory[TEXTURE..][..64 * 16 * 4].chunks_exact_mut(4).enumerate() {
            texel.copy_from_slice(&[(at % 64 % 4 * 20 + at / 64) as u8, 0, 0, 255]);
        }
        let mut put = |at: usize, word: u32| memory[at..at + 4].copy_from_slice(&word.to_le_bytes());
        let (entry, sampler) = (RESULT + 0x4000, RESULT + 0x5000);
        put(entry + 12, 256 | u32::from(of_texture.is_some()) << 29);
        put(entry + 16, 0x8000_0040);
        put(entry + 24, 0x0300_0000 | of_texture.unwrap_or(0) << 27);
        put(sampler, 0x0002_6000 | of_sampler << 20);
        stream.push(&mut gpu, &mut memory).unwrap();
        strip_to(TARGET, TEXTURED).push(&mut gpu, &mut memory).unwrap();
        assert_eq!(gpu.unknown(), vec![]);
        pixels(&mut gpu, &mut memory, 39)[54][0]
    };
    for engine in Engine::ALL {
        // The middle is at texel 13.95 of row 2, whose red is 22. The last of four positions is in texel 14, whose
        // red is 42.
        assert_eq!([drawn(engine, 0, None), drawn(engine, 2, None)], [22, 27]);
        assert_eq!([drawn(engine, 0, Some(2)), drawn(engine, 2, Some(0))], [27, 22]);
    }
}

/// Adds a copy of a rectangle of the other bytes to the texture, as the 2D object copies it.
fn blit(stream: &mut Stream) {
    for (base, start) in [(0x0230, OTHER), (0x0200, TEXTURE)] {
        stream.call(TWOD, base, &[0xd5, 1]);
        stream.call(TWOD, base + 0x14, &[64, 16, 16, 0, start as u32]);
    }
    stream.call(TWOD, 0x02ac, &[3]);
    stream.call(TWOD, 0x08b0, &[0, 0, 16, 16, 0, 1, 0, 1, 0, 0, 0, 0]);
}

/// The chip draws the same as a chip that has kept nothing, if others write only where they may, or report their
/// writes.
#[test]
fn a_texture_is_decoded_anew_when_its_memory_has_other_bytes() {
    let (mut gpu, mut memory) = gpu();
    let mut random = Random::new(8);
    let first = with_texture(&mut memory);
    first.push(&mut gpu, &mut memory).unwrap();
    let is_current = |gpu: &mut Nv50, memory: &mut Vec<u8>| {
        let (mut fresh, mut expected) = (Nv50::new(Chip::Gt215), memory.clone());
        first.push(&mut fresh, &mut expected).unwrap();
        for (gpu, memory) in [(&mut fresh, &mut expected), (gpu, &mut *memory)] {
            // The stream does not upload: after an upload, the chip compares everything.
            strip_to(TARGET, TEXTURED).push(gpu, memory).unwrap();
            assert_eq!(gpu.unknown(), vec![]);
        }
        memory[..VP_CODE] == expected[..VP_CODE]
    };
    let mut change = |memory: &mut Vec<u8>, at: usize| {
        memory[at..at + TEXTURE_BYTES].fill_with(|| random.next() as u8);
    };
    gpu.share(Some(&[]));
    change(&mut memory, TEXTURE);
    assert!(is_current(&mut gpu, &mut memory));
    change(&mut memory, TEXTURE);
    assert!(!is_current(&mut gpu, &mut memory), "nobody may write there");
    gpu.replaced(&(TEXTURE..TEXTURE + 1));
    assert!(is_current(&mut gpu, &mut memory));
    for parts in [Some(&[0..4, TEXTURE + 4..TEXTURE + 5][..]), Some(&[0..4, TEXTURE..TEXTURE + 4096]), None] {
        gpu.share(parts);
        for _ in 0..2 {
            change(&mut memory, TEXTURE);
            assert!(is_current(&mut gpu, &mut memory), "{parts:?}");
        }
    }
    // A pixel has the texel below it.
    let texel: [u8; 4] = memory[TEXTURE + 64 * 2 + 4 * 3..][..4].try_into().unwrap();
    assert_eq!(pixels(&mut gpu, &mut memory, 39)[54], texel);
    gpu.share(Some(&[]));
    assert!(is_current(&mut gpu, &mut memory));
    type Write = fn(&mut Stream);
    let writes: [(&str, Write); 7] = [
        ("a draw", |stream| *stream = strip_to(TEXTURE, PLAIN)),
        ("a clear", |stream| {
            stream.call(TESLA, 0x0200, &[0, TEXTURE as u32, 0xd5, 0x40, 0]);
            stream.call(TESLA, 0x0d80, &[0.25f32, 1., 0.5, 1.].map(f32::to_bits));
            stream.call(TESLA, 0x19d0, &[0x3c]);
        }),
        ("a blit", blit),
        ("an upload", |stream| stream.upload(TEXTURE + 0x40, &[0x1234_5678, 0x9abc_def0])),
        ("a copy", |stream| {
            stream.call(M2MF, 0x0200, &[1]);
            stream.call(M2MF, 0x021c, &[1]);
            stream.call(M2MF, 0x0238, &[0, 0]);
            stream.call(M2MF, 0x030c, &[OTHER as u32, TEXTURE as u32, 64, 64, 64, 16, 0x101, 0]);
        }),
        ("a query", |stream| stream.call(TESLA, 0x1b00, &[0, TEXTURE as u32, 0x1717_1717, 0x1000_f010])),
        ("constants", |stream| {
            stream.call(TESLA, 0x1280, &[0, TEXTURE as u32, 0x0005_0100]);
            stream.call(TESLA, 0x0f00, &[5 | 3 << 8, 0xc0c0_c0c0]);
        }),
    ];
    for (name, write) in writes {
        change(&mut memory, OTHER);
        let before = memory[TEXTURE..TEXTURE + TEXTURE_BYTES].to_vec();
        let mut stream = Stream::default();
        write(&mut stream);
        stream.push(&mut gpu, &mut memory).unwrap();
        assert!(before != memory[TEXTURE..TEXTURE + TEXTURE_BYTES], "{name} writes to the texture");
        assert!(is_current(&mut gpu, &mut memory), "{name}");
    }
    assert_eq!(gpu.unknown(), vec![]);
}

/// Pixels of a multisampled surface.
const SIDE: u32 = 32;

/// A surface of [`SIDE`] pixels per side, with 2^x by 2^y samples each, and a strip from 0.5 to 16.5 along both axes.
fn multisampled(mode: u32, [x, y]: [u32; 2]) -> Stream {
    let mut stream = prepared();
    stream.call(TESLA, 0x0ff4, &[SIDE << 16; 2]);
    stream.call(TESLA, 0x0c00, &[SIDE << 16; 2]);
    stream.call(TESLA, 0x0e04, &[SIDE << 16; 2]);
    stream.call(TESLA, 0x1240, &[SIDE << x, SIDE << y]);
    stream.call(TESLA, 0x0a0c, &[8.5f32, 8.5, 0.5].map(f32::to_bits));
    stream.call(TESLA, 0x0a00, &[8f32, 8., 0.5].map(f32::to_bits));
    stream.call(TESLA, 0x15d0, &[mode]);
    stream.call(TESLA, 0x1534, &[1]);
    stream
}

/// Draws the strip with a fragment program, and returns the elements of a pixel, row by row.
fn four_samples(stream: &mut Stream, program: &str, pixel: [usize; 2]) -> [[u8; 4]; 4] {
    let (mut gpu, mut memory) = gpu();
    let code = assemble(program, Chip::Gt215, Stage::Fragment).unwrap().words();
    stream.upload(FP_CODE + 0x7_ffc0, &code);
    strip(stream);
    stream.push(&mut gpu, &mut memory).unwrap();
    assert_eq!(gpu.unknown(), vec![]);
    [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(x, y)| element(&memory, 2, [2 * pixel[0] + x, 2 * pixel[1] + y]))
}

/// Returns an element of a multisampled surface whose pixels have `columns` columns.
fn element(memory: &[u8], columns: usize, [x, y]: [usize; 2]) -> [u8; 4] {
    word(memory, TARGET + 4 * (y * columns * SIDE as usize + x)).to_le_bytes()
}

/// Returns a program whose colour is 0.2, 0.4, 0.6 and an alpha.
fn constant(alpha: f32) -> String {
    let values = [0.2, 0.4, 0.6, alpha].map(f32::to_bits);
    let all = values.iter().enumerate().map(|(number, bits)| format!("mov b32 $r{number} {bits:#x}\n"));
    format!("{}exit nop", all.collect::<String>())
}

/// Mesa `nv50_context.c`, nv50_get_sample_position, and `nv50_tex.c`, msaa_sample_xy_offsets: the samples left of and
/// above the centre are in the first columns and rows.
#[test]
fn the_samples_of_a_pixel_are_elements_of_a_larger_surface() {
    // The number of samples in a pixel's first row that are above its centre.
    for (mode, log2, above) in [(1, [1, 0], 1), (2, [1, 1], 2), (3, [2, 1], 4)] {
        let (mut gpu, mut memory) = gpu();
        let mut stream = multisampled(mode, log2);
        stream.call(TESLA, 0x1514, &[1]);
        stream.call(TESLA, 0x1530, &[1]);
        strip(&mut stream);
        stream.call(TESLA, 0x1b00, &[0, RESULT as u32, 7, 0x0100_f002]);
        stream.push(&mut gpu, &mut memory).unwrap();
        assert_eq!(gpu.unknown(), vec![]);
        let [columns, rows] = log2.map(|log2| 1usize << log2);
        assert_eq!(word(&memory, RESULT + 4) as usize, 16 * 16 * columns * rows, "samples are counted");
        let is_drawn = |x: usize, y: usize| element(&memory, columns, [x, y])[3] != 0;
        for sample in 0..columns {
            assert_eq!(is_drawn(16 * columns + sample, 5 * rows), sample < columns / 2, "{mode} {sample}");
            assert_eq!(is_drawn(sample, 5 * rows), sample >= columns / 2, "{mode} {sample}");
            let last = 16 * rows;
            assert_eq!(is_drawn(5 * columns + sample, last), sample < above, "{mode} {sample}");
            if rows > 1 {
                assert!(!is_drawn(5 * columns + sample, last + 1), "{mode} {sample}");
            }
        }
    }
}

/// Mesa `nv50_surface.c`, nv50_clear: the rectangle has pixels of the frame buffer.
#[test]
fn a_clear_of_pixels_clears_all_their_samples() {
    let (mut gpu, mut memory) = gpu();
    let mut stream = multisampled(3, [2, 1]);
    stream.call(TESLA, 0x0c00, &[3 << 16 | 2, 1 << 16 | 4]);
    stream.call(TESLA, 0x0d80, &[1f32; 4].map(f32::to_bits));
    stream.call(TESLA, 0x19d0, &[0x3c]);
    stream.push(&mut gpu, &mut memory).unwrap();
    for (y, x) in (0..64).flat_map(|y| (0..128).map(move |x| (y, x))) {
        let inside = (8..20).contains(&x) && (8..10).contains(&y);
        assert_eq!(element(&memory, 4, [x, y]), if inside { [255; 4] } else { [0; 4] }, "{x} {y}");
    }
}

#[test]
fn a_mask_says_which_samples_are_drawn() {
    let mut stream = multisampled(2, [1, 1]);
    stream.call(TESLA, 0x0fbc, &[0x5; 4]);
    let drawn = four_samples(&mut stream, &constant(1.), [5, 5]).map(|color| color[3] != 0);
    assert_eq!(drawn, [true, false, true, false]);
}

/// OpenGL 3.3, 4.1.3: alpha becomes the mask before it becomes 1.
#[test]
fn alpha_is_the_share_of_samples_that_are_drawn_and_then_1() {
    for (control, count, alpha) in [(0, 4, 128), (1, 2, 128), (0x10, 4, 255), (0x11, 2, 255)] {
        let mut stream = multisampled(2, [1, 1]);
        stream.call(TESLA, 0x153c, &[control]);
        let colors = four_samples(&mut stream, &constant(0.5), [5, 5]);
        let drawn: Vec<_> = colors.into_iter().filter(|color| color[1] != 0).collect();
        assert_eq!(drawn, vec![[51, 102, 153, alpha]; count], "{control:#x}");
    }
}

/// Mesa `nv50_shader_state.c`, NVA3_3D_FP_MULTISAMPLE, and `nv50_ir_emit_nv50.cpp`, SV_SAMPLE_INDEX.
#[test]
fn a_program_runs_for_each_sample_and_gives_a_mask() {
    let program = "mov $r0 $sampleid
        cvt rn f32 $r0 s32 $r0
        mul f32 $r0 $r0 0x3b808081
        mov b32 $r1 0x3f800000
        mov b32 $r2 0x3f800000
        mov b32 $r3 0x3f800000
        mov b32 $r4 0xe
        exit nop";
    for (word, count, expected) in [
        (2, 4, [Some(0), Some(1), Some(2), Some(3)]),
        (3, 5, [None, Some(1), Some(2), Some(3)]),
        // Without multisampling, a mask has no effect, and pixels are shaded as a whole.
        (0, 4, [Some(0); 4]),
    ] {
        let mut stream = multisampled(2, [1, 1]);
        stream.call(TESLA, 0x1928, &[word]);
        stream.call(TESLA, 0x1298, &[count]);
        stream.call(TESLA, 0x198c, &[8]);
        let colors = four_samples(&mut stream, program, [5, 5]);
        assert_eq!(colors.map(|color| (color[3] != 0).then_some(color[0])), expected, "{word}");
    }
    let mut stream = multisampled(2, [1, 1]);
    stream.call(TESLA, 0x1534, &[0]);
    stream.call(TESLA, 0x1928, &[3]);
    stream.call(TESLA, 0x1298, &[5]);
    stream.call(TESLA, 0x198c, &[8]);
    let colors = four_samples(&mut stream, program, [5, 5]);
    assert_eq!(colors.map(|color| color[3]), [255; 4]);
}

/// At the right edge, at 16.5, the first sample that is covered is at 6/16; at the left one, at 0.5, it is at 14/16.
#[test]
fn interpolation_at_the_centroid_is_at_a_sample_that_is_covered() {
    let program = |place: &str| format!("interp $r0 {place}v[0x4]\n{}", &constant(1.)[23..]);
    let red = |place: &str, x: usize| {
        let colors = four_samples(&mut multisampled(2, [1, 1]), &program(place), [x, 5]);
        colors.iter().find(|color| color[3] != 0).unwrap()[0]
    };
    let [left, middle, right] = [0.375f32 / 16., 5. / 16., 15.875 / 16.].map(|s| (s * 255.).round() as u8);
    assert_eq!([0, 5, 16].map(|x| red("cent ", x)), [left, middle, right]);
    assert_eq!([0, 5, 16].map(|x| red("", x)), [0, middle, 255]);
}

/// NV92 passes `turn-on-off`, which compares triangles with the same ones upside down.
#[test]
fn positions_are_rounded_to_the_nearest_of_256_steps() {
    let is_drawn = |x: f32| {
        let mut stream = multisampled(0, [0, 0]);
        stream.call(TESLA, 0x0a0c, &[x, 8.5].map(f32::to_bits));
        four_samples(&mut stream, &constant(1.), [0, 2])[0][3] != 0
    };
    // The left edge is 8 to the left: up to half a step after a centre it is at the centre.
    assert!(is_drawn(8.5 + 0.4 / 256.) && !is_drawn(8.5 + 0.6 / 256.));
}
