//! Streams of Mesa's r300 driver, with and without the vertex unit: the tests check every pixel.

mod kept;
mod shelf;

use std::ops::Range;

use kept::{Kept, every_pixel_is_that_of_its_launch, seen};
use reconverge_board::errata::{Errata, Erratum};
use reconverge_gpu::r300::R300;
use reconverge_gpu::{Fault, Gpu, Submission};
use reconverge_r500::chip::Chip;
use reconverge_r500::text::assemble;
use reconverge_simt::loaded::loads;
use reconverge_simt::pool::on_one_thread;
use reconverge_simt::random::Random;
use reconverge_simt::vram::Vram;

/// Ranges of the buffers in the relocation list.
const TARGET: Range<usize> = 0x1_0000..0x5_0000;
const DEPTH: Range<usize> = 0x5_0000..0x9_0000;
const VERTICES: Range<usize> = 0x9_0000..0xa_0000;
const TEXTURE: Range<usize> = 0xa_0000..0xb_0000;
const BUFFERS: [Range<usize>; 4] = [TARGET, DEPTH, VERTICES, TEXTURE];
const MEMORY: usize = 0xb_0000;

/// Elements per row of the target.
const PITCH: usize = 256;

#[derive(Default)]
struct Stream(Vec<u32>);

impl Stream {
    /// A type 0 packet.
    fn set(&mut self, address: u32, values: &[u32]) {
        self.0.push((values.len() as u32 - 1) << 16 | (address / 4));
        self.0.extend(values);
    }

    /// A type 0 packet with all values for one register.
    fn port(&mut self, address: u32, values: &[u32]) {
        self.0.push((values.len() as u32 - 1) << 16 | 1 << 15 | (address / 4));
        self.0.extend(values);
    }

    fn packet(&mut self, op: u32, payload: &[u32]) {
        self.0.push(3 << 30 | (payload.len() as u32 - 1) << 16 | op << 8);
        self.0.extend(payload);
    }

    fn relocation(&mut self, buffer: u32) {
        self.packet(0x10, &[4 * buffer]);
    }

    fn program(&mut self, words: &[u32]) {
        self.set(0x4250, &[0]);
        self.port(0x4254, words);
        self.set(0x4630, &[(words.len() as u32 / 6 - 1) << 16, (words.len() as u32 / 6 - 1) << 16, 0]);
    }

    /// A draw of vertices in the packet: window coordinates and 1/w, then four coordinates of a set.
    fn draw(&mut self, primitive: u32, vertices: &[[f32; 8]]) {
        let mut payload = vec![(vertices.len() as u32) << 16 | 3 << 4 | primitive];
        payload.extend(vertices.as_flattened().iter().map(|x| x.to_bits()));
        self.packet(0x35, &payload);
    }
}

/// r, g of the first set of coordinates, a quarter, one: captured.
const COLORS: [u32; 6] = [0x0007_8005, 0x0802_0000, 0x0802_00a8, 0x00db_0420, 0x00c1_0000, 0x3039_0000];

/// A target of 250 x 250, RGBA8, and the other state for a draw of four floats and a set of coordinates.
fn stream() -> Stream {
    let mut stream = Stream::default();
    stream.set(0x43e0, &[0, 249 << 13 | 249]);
    stream.set(0x43d0, &[0xffff]);
    stream.set(0x4e00, &[0x4000]);
    stream.set(0x4e28, &[0]);
    stream.relocation(0);
    stream.set(0x4e38, &[0x00c3_0000 | PITCH as u32]);
    stream.relocation(0);
    stream.set(0x46a4, &[0x3900, 0xf, 0xf, 0xf]);
    stream.set(0x4e04, &[0, 0, 0xf]);
    stream.set(0x4e18, &[0]);
    stream.set(0x4f00, &[0, 0]);
    stream.set(0x4f1c, &[0]);
    // Vertices bypass the vertex unit.
    stream.set(0x2140, &[0x100]);
    stream.set(0x221c, &[0x1_0000]);
    stream.set(0x2150, &[0x2603_0003]);
    stream.set(0x21e0, &[0xf688_f688]);
    stream.set(0x2090, &[1, 4]);
    stream.set(0x20b4, &[8]);
    stream.set(0x2134, &[0xff_ffff, 0]);
    // The first set of coordinates goes to temporary 0.
    stream.set(0x4008, &[0]);
    stream.set(0x4074, &[0x000c_2040]);
    stream.set(0x4300, &[0x0004_0004, 0]);
    stream.set(0x4320, &[0x10]);
    stream.set(0x4278, &[0x3_aaaa]);
    stream.set(0x42b8, &[4]);
    stream.set(0x4600, &[2, 0]);
    stream.set(0x4624, &[0]);
    stream.set(0x46b4, &[0]);
    stream.set(0x4bd4, &[0, 0]);
    stream.program(&COLORS);
    stream
}

/// A strip over x0 to x1 and y0 to y1 whose coordinates run from 0 to 1, at a depth.
fn strip([x0, x1]: [f32; 2], [y0, y1]: [f32; 2], z: f32) -> [[f32; 8]; 4] {
    let corner = |x, y, s, t| [x, y, z, 1., s, t, 0., 1.];
    [corner(x0, y0, 0., 0.), corner(x1, y0, 1., 0.), corner(x0, y1, 0., 1.), corner(x1, y1, 1., 1.)]
}

const STRIP: u32 = 6;
const LINE: u32 = 2;
const POINT: u32 = 1;

/// TX_FILTER0_0: nearest texels, clamped to the edge.
const NEAREST: u32 = 0x0000_0a92;

fn submitted(stream: &Stream, memory: &mut [u8]) -> R300 {
    submitted_with(Errata::ALL, stream, memory)
}

fn submitted_with(errata: Errata, stream: &Stream, memory: &mut [u8]) -> R300 {
    let mut gpu = R300::new(Chip::named("RV515").unwrap()).with_errata(errata);
    gpu.submit(Vram::new(memory), &Submission { commands: &stream.0, buffers: &BUFFERS }).unwrap();
    gpu
}

/// Executes known commands on a chip with all errata, and on one without this erratum. Returns what `look` finds in both memories.
fn with_and_without<T>(
    erratum: Erratum,
    stream: &Stream,
    memory: &[u8],
    look: impl Fn(&[u8]) -> T,
) -> [T; 2] {
    [Errata::ALL, Errata::ALL.without(erratum)].map(|errata| {
        let mut memory = memory.to_vec();
        assert_eq!(submitted_with(errata, stream, &mut memory).unknown(), vec![]);
        look(&memory)
    })
}

/// Executes commands without unknown features.
fn executed(stream: &Stream, memory: &mut [u8]) -> R300 {
    let gpu = submitted(stream, memory);
    assert_eq!(gpu.unknown(), vec![]);
    gpu
}

fn pixel(memory: &[u8], x: usize, y: usize) -> [u8; 4] {
    let at = TARGET.start + (y * PITCH + x) * 4;
    memory[at..at + 4].try_into().unwrap()
}

fn put(memory: &mut [u8], at: usize, words: &[u32]) {
    for (place, word) in words.iter().enumerate() {
        memory[at + 4 * place..][..4].copy_from_slice(&word.to_le_bytes());
    }
}

fn drawn_over(memory: &[u8]) {
    for y in 0..250 {
        for x in 0..250 {
            let expected = [x, y].map(|at| ((at as f64 + 0.5) / 250. * 255.).round() as u8);
            let [r, g, b, a] = pixel(memory, x, y);
            let close = r.abs_diff(expected[0]) <= 1 && g.abs_diff(expected[1]) <= 1;
            assert!(close && (b, a) == (64, 255), "{x} {y}: {:?}, not {expected:?}", [r, g, b, a]);
        }
        assert_eq!(pixel(memory, 250, y), [0; 4]);
    }
}

#[test]
fn every_pixel_of_a_draw_in_the_packet_is_where_it_is() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    stream.draw(STRIP, &strip([0., 250.], [0., 250.], 0.5));
    assert_eq!(executed(&stream, &mut memory).draws(), 1);
    drawn_over(&memory);
}

/// Only a fragment program runs, on 19 batches of lanes.
#[test]
fn the_shader_of_a_quad_is_decoded_and_lowered_once() {
    const WIDE: Range<usize> = 0..4 * 640 * 480;
    let (mut memory, mut stream) = (vec![0; WIDE.end], stream());
    stream.set(0x43e0, &[0, 479 << 13 | 639]);
    stream.set(0x4e38, &[0x00c3_0000 | 640]);
    stream.relocation(0);
    stream.draw(STRIP, &strip([0., 640.], [0., 480.], 0.5));
    let mut gpu = R300::new(Chip::named("RV515").unwrap());
    let before = loads();
    let submission = Submission { commands: &stream.0, buffers: &[WIDE] };
    // The counts are per thread.
    on_one_thread(|| gpu.submit(Vram::new(&mut memory), &submission)).unwrap();
    assert!(memory.as_chunks::<4>().0.iter().all(|[_, _, blue, alpha]| (*blue, *alpha) == (64, 255)));
    let (decoded, lowered) = (loads().decoded - before.decoded, loads().lowered - before.lowered);
    assert_eq!((gpu.draws(), decoded, lowered), (1, 1, 1));
}

/// 3D_LOAD_VBPNTR and 3D_DRAW_INDX_2 with an INDX_BUFFER. The index offset is added before vertices are fetched.
#[test]
fn a_draw_of_arrays_and_indices_gives_the_same_pixels() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    let corners = strip([0., 250.], [0., 250.], 0.5);
    // Positions in one array, coordinates in another, after two vertices that no index uses.
    for (number, corner) in corners.iter().enumerate() {
        let words = corner.map(f32::to_bits);
        put(&mut memory, VERTICES.start + 0x100 + 16 * (number + 2), &words[..4]);
        put(&mut memory, VERTICES.start + 0x400 + 32 * (number + 2), &words[4..]);
    }
    put(&mut memory, VERTICES.start + 0x800, &[0x0001_0000, 0x0003_0002]);
    stream.set(0x208c, &[2]);
    stream.packet(0x2f, &[2, 0x0804_0404, 0x100, 0x400]);
    stream.relocation(2);
    stream.relocation(2);
    stream.packet(0x36, &[4 << 16 | 1 << 4 | STRIP]);
    stream.packet(0x33, &[0x8000_0810, 0x800, 2]);
    stream.relocation(2);
    executed(&stream, &mut memory);
    drawn_over(&memory);
}

/// The sum of an index and its offset has 24 bits. Mesa's list of an RV530 does not have
/// `arb_draw_elements_base_vertex-negative-index`, whose indices are below 0.
#[test]
fn negative_indices_wrap_before_they_are_clamped() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    for (number, corner) in strip([0., 250.], [0., 250.], 0.5).iter().enumerate() {
        let words = corner.map(f32::to_bits);
        put(&mut memory, VERTICES.start + 32 * number, &words);
    }
    stream.set(0x2134, &[3, 0]);
    stream.set(0x208c, &[4]);
    stream.packet(0x2f, &[1, 0x0808, 0]);
    stream.relocation(2);
    // -4 to -1, of 32 bits.
    let indices = [-4i32, -3, -2, -1].map(i32::cast_unsigned);
    stream.packet(0x36, &[&[4 << 16 | 1 << 11 | 1 << 4 | STRIP][..], &indices].concat());
    executed(&stream, &mut memory);
    drawn_over(&memory);
}

/// VAP_GB_HORZ_CLIP_ADJ and VAP_GB_VERT_CLIP_ADJ are 1: nothing is drawn outside of the viewport. Mesa's list of an
/// RV530 does not have `triangle-guardband-viewport`.
#[test]
fn primitives_are_cut_at_the_edges_of_the_viewport() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    with_a_vertex_program(&mut stream, &VERTEX);
    let viewport = stream.0.iter().position(|word| *word == 125f32.to_bits()).unwrap();
    // Columns 50 to 149, and rows 20 to 79. The strip is twice as large.
    for (at, value) in [50f32, 100., 30., 50.].into_iter().enumerate() {
        stream.0[viewport + at] = value.to_bits();
    }
    for word in &mut stream.0[viewport + 6..] {
        *word = match f32::from_bits(*word) {
            -1. => (-2f32).to_bits(),
            _ => *word,
        };
    }
    executed(&stream, &mut memory);
    let drawn = |x: usize, y: usize| pixel(&memory, x, y)[3] != 0;
    let all = (0..250).flat_map(|y| (0..250).map(move |x| (x, y))).filter(|(x, y)| drawn(*x, *y));
    let all: Vec<_> = all.collect();
    assert_eq!((all.first(), all.last(), all.len()), (Some(&(50, 20)), Some(&(149, 79)), 100 * 60));
}

/// Mesa, `r300_reg.h`: VAP_GB_VERT_CLIP_ADJ, VERT_DISC_ADJ, HORZ_CLIP_ADJ and HORZ_DISC_ADJ. The strip reaches from
/// -w to w, and from column 50 to 149 and from row 20 to 79.
#[test]
fn a_primitive_outside_of_the_guard_band_is_dropped() {
    let count = |registers: [f32; 4]| {
        let (mut memory, mut stream) = (vec![0; MEMORY], stream());
        with_a_vertex_program(&mut stream, &VERTEX);
        let viewport = stream.0.iter().position(|word| *word == 125f32.to_bits()).unwrap();
        for (at, value) in [50f32, 100., 30., 50.].into_iter().enumerate() {
            stream.0[viewport + at] = value.to_bits();
        }
        let band = stream.0.windows(4).position(|words| *words == [1f32.to_bits(); 4]).unwrap();
        stream.0[band..band + 4].copy_from_slice(&registers.map(f32::to_bits));
        executed(&stream, &mut memory);
        let all = (0..250).flat_map(|y| (0..250).map(move |x| (x, y)));
        all.filter(|(x, y)| pixel(&memory, *x, *y)[3] != 0).count()
    };
    assert_eq!(count([1., 1., 1., 1.]), 100 * 60);
    // The triangle has vertices on both sides.
    assert_eq!(count([1., 0.5, 1., 0.5]), 100 * 60);
    // All vertices lie beyond -2 w.
    assert_eq!(count([1., -2., 1., 1.]), 0);
    assert_eq!(count([1., 1., 1., -2.]), 0);
}

/// Four samples at the places of GB_MSPOS0 and 1, which Mesa sets: (4, 4), (8, 8), (2, 10), (10, 2), in twelfths of a
/// pixel. The resolve stores their mean.
#[test]
fn samples_are_covered_at_their_places_and_resolved() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    stream.set(0x4010, &[0x22a2_8844, 0x022a_2a2a]);
    stream.set(0x4020, &[1 | 2 << 1]);
    stream.set(0x43e8, &[0xff_ffff]);
    stream.set(0x43e0, &[0, 15 << 13 | 15]);
    stream.set(0x4e38, &[0x00c0_0010]);
    stream.relocation(0);
    // Half of column 8: the samples at 2 and 4. A third of the samples' rows below 10 of row 8: all but the third.
    stream.draw(STRIP, &strip([0., 8.5], [0., 8. + 9. / 12.], 0.5));
    // With a mask of samples 0 and 3, at the right.
    stream.set(0x43e8, &[0x24_9249]);
    stream.draw(STRIP, &strip([12., 14.], [0., 2.], 0.5));
    stream.set(0x43e8, &[0xff_ffff]);
    stream.set(0x4e80, &[0x400, 0x10, 5]);
    stream.relocation(1);
    stream.draw(STRIP, &strip([0., 16.], [0., 16.], 0.5));
    executed(&stream, &mut memory);
    let resolved = |x: usize, y: usize| memory[DEPTH.start + 0x400 + (16 * y + x) * 4 + 3];
    let found = [(0, 0), (8, 0), (9, 0), (0, 8), (8, 8), (0, 9), (12, 1)].map(|(x, y)| resolved(x, y));
    assert_eq!(found, [255, 128, 0, 191, 64, 0, 128]);
}

/// RB3D formats do not have a sign: 5fh plus 40h is 9fh, which is below 0 as a signed fraction.
#[test]
fn signed_fractions_blend_as_unsigned_ones() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    stream.set(0x46a4, &[0x000f_3900]);
    put(&mut memory, TARGET.start, &[0x4040_4040; 10]);
    let corners = strip([0., 10.], [0., 1.], 0.5).map(|mut corner| {
        (corner[4], corner[5]) = (0.75, 0.75);
        corner
    });
    stream.draw(STRIP, &corners);
    // Addition, with factors of one.
    stream.set(0x4e04, &[1 | 33 << 16 | 33 << 24]);
    put(&mut memory, TARGET.start, &[0x4040_4040; 10]);
    executed(&stream, &mut memory);
    assert_eq!(pixel(&memory, 3, 0), [0x5f, 0x5f, 0x20, 0x7f]);
    let mut blended = Stream(stream.0.clone());
    blended.draw(STRIP, &corners);
    let found =
        with_and_without(Erratum::UnsignedBlending, &blended, &[0; MEMORY], |memory| pixel(memory, 3, 0));
    // Without the erratum, sums saturate at 1.
    assert_eq!(found, [[0xbe, 0xbe, 0x40, 0xfe], [0x7f, 0x7f, 0x40, 0x7f]]);
}

/// The driver adds one step of 1/32 to every bias. RV530 then does not show the next level: it passes
/// `compressedteximage`.
#[test]
fn a_level_of_detail_lags_behind_by_a_step_of_its_bias() {
    let level = |bias: u32| {
        let (mut memory, mut stream) = (vec![0; MEMORY], stream());
        // Level 0 of 8 x 4 is black, level 1 white: its rows of 32 bytes follow those of level 0.
        put(&mut memory, TEXTURE.start + 4 * 32, &[!0; 32]);
        // Linear between levels.
        textured(&mut stream, NEAREST | 2 << 13);
        stream.0.truncate(stream.0.len() - 6);
        stream.set(0x4440, &[0x8000_0000 | bias << 3]);
        stream.set(0x4480, &[1 << 26 | 3 << 11 | 7]);
        // Half as large: level 1.
        stream.set(0x421c, &[(4 * 6) << 16 | (2 * 6)]);
        let center = [12f32, 21., 0., 1.].map(f32::to_bits);
        stream.packet(0x35, &[&[1 << 16 | 3 << 4 | POINT][..], &center].concat());
        executed(&stream, &mut memory);
        pixel(&memory, 11, 20)[0]
    };
    assert_eq!([level(1), level(0x3ff & -15i32 as u32)], [255, 128]);
}

/// A clear of a tiled target: a point as large as the upper half, while the depth unit stores the lower one.
#[test]
fn the_depth_unit_stores_its_clear_value_at_every_pixel() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    // Wider than a row: pixels beyond the pitch are dropped.
    stream.set(0x43e0, &[0, 127 << 13 | 319]);
    stream.set(0x421c, &[(320 * 6) << 16 | (128 * 6)]);
    stream.set(0x4f1c, &[0x20]);
    stream.set(0x4f20, &[128 * 256 * 4]);
    stream.relocation(0);
    stream.set(0x4f24, &[PITCH as u32]);
    stream.relocation(0);
    stream.set(0x4f10, &[2]);
    stream.set(0x4f28, &[0xff40_8001]);
    stream.draw(POINT, &[[160., 64., 1., 1., 0., 0.5, 0., 1.]]);
    executed(&stream, &mut memory);
    for (x, y) in (0..256).flat_map(|x| (0..256).map(move |y| (x, y))) {
        let expected = if y < 128 { [0, 128, 64, 255] } else { [1, 0x80, 0x40, 0xff] };
        assert_eq!(pixel(&memory, x, y), expected, "{x} {y}");
    }
}

/// A point with point coordinates, from (S0, T0) at the left and lower edge. It reads eight texels across and four
/// down with the filters of TX_FILTER0_0.
fn textured(stream: &mut Stream, filters: u32) {
    textured_point(stream, filters, [8, 4]);
}

/// Draws as [`textured`] does, with a point of another size around the same centre.
fn textured_point(stream: &mut Stream, filters: u32, [width, height]: [u32; 2]) {
    stream.set(0x2150, &[0x2003]);
    stream.set(0x20b4, &[4]);
    stream.set(0x2090, &[1, 0]);
    stream.set(0x4008, &[0x0002_0001]);
    stream.set(0x4074, &[0x00ff_e040]);
    stream.set(0x421c, &[(width * 6) << 16 | (height * 6)]);
    stream.set(0x4200, &[0f32, 1., 1., 0.].map(f32::to_bits));
    stream.set(0x4104, &[1]);
    stream.set(0x4400, &[filters]);
    stream.set(0x4440, &[0x8000_0000]);
    stream.set(0x4480, &[3 << 11 | 7]);
    stream.set(0x44c0, &[0x0008_860c]);
    stream.set(0x4500, &[0]);
    stream.set(0x4540, &[0]);
    stream.relocation(3);
    // temp[0] = texture 0 at temp[0]; then its output.
    let fetch = [0x0000_7807, 0x0240_0000, 0xe400_e400, 0, 0, 0];
    let out = [0x0007_8005, 0x0802_0000, 0x0802_0000, 0x00db_0220, 0x00c0_c000, 0x2049_0000];
    stream.program(&[fetch, out].concat());
    let center = [10f32 + 4., 20. + 2., 0., 1.].map(f32::to_bits);
    stream.packet(0x35, &[&[1 << 16 | 3 << 4 | POINT][..], &center].concat());
}

/// The texture is copied to the target.
#[test]
fn a_point_is_stretched_over_a_texture() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    let texels: Vec<u32> = (0..32).map(|texel| 0xff00_0000 | texel).collect();
    put(&mut memory, TEXTURE.start, &texels);
    textured(&mut stream, NEAREST);
    executed(&stream, &mut memory);
    for (x, y) in (0..8).flat_map(|x| (0..4).map(move |y| (x, y))) {
        assert_eq!(pixel(&memory, 10 + x, 20 + y), [(8 * y + x) as u8, 0, 0, 255], "{x} {y}");
    }
    assert_eq!([pixel(&memory, 9, 20), pixel(&memory, 18, 20), pixel(&memory, 10, 24)], [[0; 4]; 3]);
}

/// Pixels that are four texels wide and one high. A linear filter mixes the two in the middle. The number of an
/// anisotropic filter's positions follows from its ratio.
#[test]
fn an_anisotropic_filter_reads_along_the_longer_side() {
    let drawn = |filter: u32, most: u32, finer: u32| {
        let (mut memory, mut stream) = (vec![0; MEMORY], stream());
        let texels: Vec<u32> = (0..32).map(|texel| [200, 0, 0, 40, 0, 100, 80, 0][texel % 8]).collect();
        put(&mut memory, TEXTURE.start, &texels);
        stream.set(0x4440, &[0x8000_0000 | finer << 23]);
        let filters = filter << 11 | filter << 9 | most << 21;
        textured_point(&mut stream, filters, [2, 4]);
        assert_eq!(submitted(&stream, &mut memory).unknown(), []);
        [13, 14].map(|x| [20, 21, 22, 23].map(|y| pixel(&memory, x, y)[0]))
    };
    // MAX_ANISO has an effect only with an anisotropic filter.
    assert_eq!([drawn(2, 4, 0), drawn(3, 0, 0)], [[[0; 4], [90; 4]]; 2]);
    // The middles of the halves: texels 1 and 2, and 3 and 4 of each four.
    assert_eq!(drawn(3, 1, 0), [[60; 4], [45; 4]]);
    assert_eq!([drawn(3, 2, 0), drawn(3, 4, 0)], [[[60; 4], [45; 4]]; 2]);
}

/// END_TYPE 2 and 3 of GA_LINE_CNTL: a line of one pixel down a slope of 1 is a pixel wide along x, or at right angles.
#[test]
fn ends_of_lines_are_along_an_axis_or_at_right_angles() {
    let drawn = |end_type: u32| {
        let (mut memory, mut stream) = (vec![0; MEMORY], stream());
        stream.set(0x4234, &[end_type << 16 | 6]);
        let [mut from, mut to, ..] = strip([0., 32.], [0.5, 32.5], 0.5);
        (from[0], to[0], to[1]) = (0., 32., 32.5);
        stream.draw(LINE, &[from, to]);
        executed(&stream, &mut memory);
        (8..24).map(|x| (0..40).filter(|y| pixel(&memory, x, *y)[3] != 0).count()).sum::<usize>()
    };
    assert_eq!([2, 3].map(drawn), [16, 32]);
}

/// RV530 fails piglit's `line-aa-width`, whose smooth lines have END_TYPE 3.
#[test]
fn smooth_lines_without_their_erratum_are_as_wide_as_others() {
    let mut stream = stream();
    stream.set(0x4234, &[3 << 16 | 6]);
    let [mut from, mut to, ..] = strip([0., 32.], [0.5, 32.5], 0.5);
    (from[0], to[0], to[1]) = (0., 32., 32.5);
    stream.draw(LINE, &[from, to]);
    let count = |memory: &[u8]| {
        (8..24).map(|x| (0..40).filter(|y| pixel(memory, x, *y)[3] != 0).count()).sum::<usize>()
    };
    assert_eq!(with_and_without(Erratum::SmoothLines, &stream, &[0; MEMORY], count), [32, 16]);
}

/// SC_CLIP_RULE has a bit for each set of four rectangles. (REG)
#[test]
fn clip_rules_keep_what_is_inside_of_some_rectangles() {
    let drawn = |rule: u32| {
        let (mut memory, mut stream) = (vec![0; MEMORY], stream());
        stream.set(0x43d0, &[rule]);
        // Columns 2 to 9, rows 4 to 7, then everything.
        stream.set(0x43b0, &[2, 249 << 13 | 9, 4 << 13, 7 << 13 | 249, 0, 249 << 13 | 249]);
        stream.draw(STRIP, &strip([0., 16.], [0., 16.], 0.5));
        let unknown = submitted(&stream, &mut memory).unknown().len();
        let drawn = (0..16).flat_map(|y| (0..16).map(move |x| (x, y)));
        (drawn.filter(|(x, y)| pixel(&memory, *x, *y)[3] != 0).count(), unknown)
    };
    let found = [0xffff, 0xaaaa, 0xcccc, 0x8888, 0x8080, 0, 0x5555].map(drawn);
    assert_eq!(found, [(256, 0), (8 * 16, 0), (4 * 16, 0), (32, 0), (32, 0), (0, 0), (256, 1)]);
}

/// STIPPLE_SCALE counts bits of the pattern per pixel. Mesa writes 0 for the factor 1 of OpenGL, so the first bit is
/// used everywhere.
#[test]
fn lines_are_stippled_by_a_scale() {
    let drawn = |scale: f32, pattern: u32| {
        let (mut memory, mut stream) = (vec![0; MEMORY], stream());
        stream.set(0x4238, &[scale.to_bits() | 1]);
        stream.set(0x4260, &[pattern]);
        stream.draw(LINE, &strip([0., 16.], [0.5, 0.5], 0.5)[..2]);
        executed(&stream, &mut memory);
        (0..16).filter(|x| pixel(&memory, *x, 0)[3] != 0).fold(0, |all, x| all | 1 << x)
    };
    let found = [(0., 0x5555), (0., 0xaaaa), (1., 0x1234), (2., 0x5533), (0.5, 0x0035)];
    assert_eq!(found.map(|(scale, pattern)| drawn(scale, pattern)), [0xffff, 0, 0x1234, 0xf5f5, 0x0f33]);
}

/// Mesa `r300_create_rs_state` writes the factor of OpenGL minus one, and RV530 fails piglit's `linestipple`.
#[test]
fn a_scale_without_its_erratum_is_the_factor_less_one() {
    let pattern = |scale: f32| {
        let mut stream = stream();
        stream.set(0x4238, &[scale.to_bits() | 1]);
        stream.set(0x4260, &[0x0035]);
        stream.draw(LINE, &strip([0., 16.], [0.5, 0.5], 0.5)[..2]);
        let pixels =
            |memory: &[u8]| (0..16).filter(|x| pixel(memory, *x, 0)[3] != 0).fold(0, |all, x| all | 1 << x);
        with_and_without(Erratum::StippleScale, &stream, &[0; MEMORY], pixels)
    };
    assert_eq!([0., 1.].map(pattern), [[0xffff, 0x0035], [0x0035, 0x0f33]]);
}

/// ZB_FORMAT 2: depth above, stencil below. ZB_ZPASS_DATA counts pixels that pass, ZB_ZPASS_ADDR stores the count.
#[test]
fn depth_and_stencil_are_tested_and_counted() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    for place in 0..PITCH * 250 {
        put(&mut memory, DEPTH.start + 4 * place, &[0x8000_0007]);
    }
    stream.set(0x4f10, &[2]);
    stream.set(0x4f20, &[0]);
    stream.relocation(1);
    stream.set(0x4f24, &[PITCH as u32]);
    stream.relocation(1);
    // Depth less, written; stencil equal to 7, incremented if both pass.
    stream.set(0x4f00, &[7, 1 | 3 << 3 | 3 << 9]);
    stream.set(0x4f08, &[0x00ff_ff07]);
    stream.set(0x42c8, &[0xf]);
    stream.set(0x4f58, &[0]);
    stream.draw(STRIP, &strip([0., 10.], [0., 10.], 0.75));
    stream.draw(STRIP, &strip([0., 10.], [0., 4.], 0.25));
    stream.draw(STRIP, &strip([0., 10.], [0., 4.], 0.125));
    stream.set(0x42c8, &[1]);
    stream.set(0x4f5c, &[0xc000]);
    stream.relocation(2);
    executed(&stream, &mut memory);
    let word = |at: usize| u32::from_le_bytes(memory[at..at + 4].try_into().unwrap());
    assert_eq!(word(VERTICES.start + 0xc000), 40);
    // A quarter of 2^24 - 1, rounded.
    assert_eq!((word(DEPTH.start), word(DEPTH.start + 4 * (4 * PITCH))), (0x4000_0008, 0x8000_0007));
    assert_eq!((pixel(&memory, 0, 3)[3], pixel(&memory, 0, 4)[3]), (255, 0));
}

/// Captured: `gl_Position = gl_Vertex; c = gl_Vertex * 0.5 + 0.5`, the whole viewport.
fn with_a_vertex_program(stream: &mut Stream, code: &[u32]) {
    stream.set(0x2140, &[0]);
    stream.set(0x221c, &[0xc000]);
    stream.set(0x2220, &[1f32.to_bits(); 4]);
    stream.set(0x20b0, &[0x43f]);
    stream.set(0x1d98, &[125f32, 125., 125., 125., 0.5, 0.5].map(f32::to_bits));
    stream.set(0x2150, &[0x2003]);
    stream.set(0x21e0, &[0xf688]);
    stream.set(0x20b4, &[4]);
    stream.set(0x22d0, &[0x0010_0400]);
    stream.set(0x22d8, &[1]);
    stream.set(0x2200, &[0]);
    stream.port(0x2208, code);
    stream.set(0x22d4, &[0]);
    stream.set(0x2200, &[1024]);
    stream.port(0x2208, &[0.5f32.to_bits(), 0, 0, 0]);
    let corners = [[-1f32, -1., 0., 1.], [1., -1., 0., 1.], [-1., 1., 0., 1.], [1., 1., 0., 1.]];
    let corners: Vec<u32> = corners.as_flattened().iter().map(|x| x.to_bits()).collect();
    stream.packet(0x35, &[&[4 << 16 | 3 << 4 | STRIP][..], &corners].concat());
}

/// o1 = i0 * c0.x + c0.x; o0 = i0.
#[rustfmt::skip]
const VERTEX: [u32; 8] = [
    0x00f0_2204, 0x00d1_0001, 0x0000_0002, 0x0000_0002, 0x00f0_0203, 0x00d1_0001, 0x0124_8001, 0x0124_8001,
];

#[test]
fn a_captured_draw_with_a_vertex_program_gives_the_same_pixels() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    with_a_vertex_program(&mut stream, &VERTEX);
    executed(&stream, &mut memory);
    drawn_over(&memory);
}

/// The launches of both units compute every stored pixel, and the surface after the draw equals memory.
#[test]
fn a_captured_draw_runs_again_from_its_launch_files() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    with_a_vertex_program(&mut stream, &VERTEX);
    let mut gpu = R300::new(Chip::named("RV515").unwrap());
    let seen = seen(&mut gpu, true, [0; 2], |gpu| {
        gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &BUFFERS }).unwrap();
    });
    let [draw] = &seen.draws[..] else { panic!("{} draws", seen.draws.len()) };
    assert_eq!((draw.number, &*draw.primitive, draw.indices), (1, "TriangleStrip", 4));
    let [vertex, fragment] = &draw.launches[..] else { panic!("{} launches", draw.launches.len()) };
    let positions: Vec<[u32; 4]> = Kept::new(vertex).run("o0");
    assert_eq!(positions[2].map(f32::from_bits), [-1., 1., 0., 1.]);
    every_pixel_is_that_of_its_launch(fragment, "color0", 62_500, |x, y| {
        pixel(&memory, x as usize, y as usize)
    });

    let [(1, surfaces)] = &seen.surfaces[..] else { panic!("{:?}", seen.surfaces) };
    let [(target, content)] = &surfaces[..] else { panic!("{} surfaces", surfaces.len()) };
    assert_eq!((&*target.name, &*target.format, target.rows), ("color0", "8_8_8_8 unorm", 250));
    assert_eq!(*content, memory[TARGET.start..][..250 * PITCH * 4]);
    // Words alone are not sufficient: the flow control of the vertex unit is only in registers.
    let file = seen.programs[0].file();
    assert!(file.0 == "s" && file.1.contains(".state VAP_PVS_CODE_CNTL_0"), "{}", file.1);
}

#[test]
fn a_replaced_word_runs_and_is_captured() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    stream.draw(STRIP, &strip([0., 250.], [0., 250.], 0.5));
    // Colour 0 gets r, g and one half, rather than a quarter.
    let [old, new] = [COLORS[2], COLORS[2] + 0x8];
    let mut gpu = R300::new(Chip::named("RV515").unwrap());
    let seen = seen(&mut gpu, true, [old, new], |gpu| {
        gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &BUFFERS }).unwrap();
    });
    assert_eq!(pixel(&memory, 7, 7)[2], 128);
    // Vertices that bypass the vertex unit do not have a launch.
    let [fragment] = &seen.draws[0].launches[..] else { panic!("{:?}", seen.draws) };
    assert!(fragment.program.words.contains(&new));
    let colors: Vec<[u32; 4]> = Kept::new(fragment).run("color0");
    assert_eq!(f32::from_bits(colors[0][2]), 0.5);
}

/// The six user planes follow the constants; plane 0 keeps x >= 0.
#[test]
fn user_planes_cut_what_the_vertex_program_places() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    stream.set(0x2200, &[1536]);
    stream.port(0x2208, &[1f32.to_bits(), 0, 0, 0]);
    with_a_vertex_program(&mut stream, &VERTEX);
    let clip = stream.0.iter().position(|word| *word == 0xc000).unwrap();
    stream.0[clip] |= 1;
    executed(&stream, &mut memory);
    assert_eq!([124, 125].map(|x| pixel(&memory, x, 7)[3]), [0, 255]);
}

#[test]
fn a_vertex_program_without_a_meaning_is_named() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    // Opcode 63 does not exist.
    with_a_vertex_program(&mut stream, &[[0x00f0_223f, 0, 0, 0], [0; 4]].concat());
    let mut gpu = R300::new(Chip::named("RV515").unwrap());
    let submission = Submission { commands: &stream.0, buffers: &BUFFERS };
    let fault = gpu.submit(Vram::new(&mut memory), &submission).unwrap_err();
    assert!(matches!(&fault, Fault::Trap(what) if what.starts_with("draw 1: vertex program: ")), "{fault}");
}

#[test]
fn what_is_not_known_is_named_and_counted() {
    let (mut memory, mut stream) = (vec![0; MEMORY], Stream::default());
    stream.packet(0x7f, &[0]);
    stream.set(0x7ffc, &[1]);
    stream.set(0x7ffc, &[1]);
    let mut gpu = R300::new(Chip::named("R580").unwrap());
    gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &[] }).unwrap();
    assert_eq!(gpu.unknown(), [("packet 0x7f".to_owned(), 1), ("register 0x7ffc".to_owned(), 2)]);
}

#[test]
fn a_fragment_program_that_never_ends_is_named() {
    let (mut memory, mut stream) = (vec![0; MEMORY], stream());
    // JUMP to itself, regardless of the lanes.
    stream.program(&[[0x2, 0, 0xff00, 0, 0, 0], COLORS].concat());
    stream.draw(STRIP, &strip([0., 1.], [0., 1.], 0.5));
    let mut gpu = R300::new(Chip::named("RV515").unwrap());
    let submission = Submission { commands: &stream.0, buffers: &BUFFERS };
    let fault = gpu.submit(Vram::new(&mut memory), &submission).unwrap_err();
    assert!(matches!(&fault, Fault::Trap(what) if what.starts_with("draw 1: fragment program: ")), "{fault}");
}

/// The kernel rejects such a buffer before a draw: `r100_cs_track_check`.
#[test]
fn a_buffer_that_is_too_small_for_the_rows_of_the_scissor_is_refused() {
    let refused = |change: fn(&mut Stream)| {
        let (mut memory, mut stream) = (vec![0; MEMORY], stream());
        change(&mut stream);
        stream.draw(STRIP, &strip([0., 250.], [0., 250.], 0.5));
        let mut gpu = R300::new(Chip::named("RV515").unwrap());
        gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &BUFFERS })
            .map_err(|why| why.to_string())
    };
    // 0x4_0000 bytes hold 256 rows of 256 pixels.
    assert_eq!(refused(|stream| stream.set(0x43e0, &[0, 255 << 13 | 249])), Ok(()));
    assert_eq!(
        refused(|stream| stream.set(0x43e0, &[0, 256 << 13 | 249])).unwrap_err(),
        "malformed submission: colour buffer 0: 257 rows of 256 pixels of 4 bytes at 0x0 do not fit in a buffer of \
         0x40000 bytes"
    );
    // The write mask is empty, so nothing is stored.
    assert_eq!(
        refused(|stream| {
            stream.set(0x43e0, &[0, 256 << 13 | 249]);
            stream.set(0x4e0c, &[0]);
        }),
        Ok(())
    );
    let depth = refused(|stream| {
        stream.set(0x4f00, &[2, 0]);
        stream.set(0x4f10, &[2]);
        stream.set(0x4f20, &[0x1_0000]);
        stream.relocation(1);
        stream.set(0x4f24, &[PITCH as u32]);
    });
    assert!(
        depth.as_ref().is_err_and(|why| why.contains("the depth buffer: 250 rows of 256 pixels")),
        "{depth:?}"
    );
}

/// The chip draws the same as a chip that has kept nothing, if others write only where they may, or report their
/// writes.
#[test]
fn a_texture_is_decoded_anew_when_its_memory_has_other_bytes() {
    let (mut gpu, mut memory) = (R300::new(Chip::named("RV515").unwrap()), vec![0; MEMORY]);
    let mut random = Random::new(7);
    let mut stream = stream();
    textured(&mut stream, NEAREST);
    let is_current = |gpu: &mut R300, memory: &mut Vec<u8>| {
        let submission = Submission { commands: &stream.0, buffers: &BUFFERS };
        let mut expected = memory.clone();
        R300::new(Chip::named("RV515").unwrap()).submit(Vram::new(&mut expected), &submission).unwrap();
        gpu.submit(Vram::new(memory), &submission).unwrap();
        *memory == expected
    };
    let mut change = |memory: &mut Vec<u8>| memory[TEXTURE][..128].fill_with(|| random.next() as u8);
    gpu.share(Some(&[]));
    change(&mut memory);
    assert!(is_current(&mut gpu, &mut memory));
    change(&mut memory);
    assert!(!is_current(&mut gpu, &mut memory), "nobody may write there");
    gpu.replaced(&TEXTURE);
    assert!(is_current(&mut gpu, &mut memory));
    for parts in [Some(&[0..4, TEXTURE.start + 4..TEXTURE.start + 5][..]), Some(&[TARGET, TEXTURE]), None] {
        gpu.share(parts);
        for _ in 0..2 {
            change(&mut memory);
            assert!(is_current(&mut gpu, &mut memory), "{parts:?}");
        }
    }
    // A draw to the texture: rows of 8 texels.
    gpu.share(Some(&[]));
    assert!(is_current(&mut gpu, &mut memory));
    let before = memory[TEXTURE][..128].to_vec();
    let mut draw = self::stream();
    draw.set(0x43e0, &[0, 3 << 13 | 7]);
    draw.set(0x4e28, &[0]);
    draw.relocation(3);
    draw.set(0x4e38, &[0x00c3_0000 | 8]);
    draw.relocation(3);
    draw.draw(STRIP, &strip([0., 8.], [0., 4.], 0.5));
    gpu.submit(Vram::new(&mut memory), &Submission { commands: &draw.0, buffers: &BUFFERS }).unwrap();
    assert!(before != memory[TEXTURE][..128]);
    assert!(is_current(&mut gpu, &mut memory));
}

/// Mesa `r300_emit.c`, r300_emit_aa_state, and `r300_blit.c`, r300_simple_msaa_resolve. Two samples are at 3 and 9
/// twelfths of a pixel along both axes.
#[test]
fn a_resolve_stores_the_mean_of_samples_that_are_covered_and_those_that_are_not() {
    let mut memory = vec![0; MEMORY];
    let mut stream = stream();
    // Two samples per pixel fit twice into 128 pixels per row.
    stream.set(0x4e38, &[0x00c3_0000 | (PITCH as u32 / 2)]);
    stream.relocation(0);
    stream.set(0x43e0, &[0, 99 << 13 | 99]);
    stream.set(0x4010, &[0x6666_9933, 0x0666_6666]);
    stream.set(0x4020, &[1]);
    stream.set(0x43e8, &[0xff_ffff]);
    // The right edge is in the middle of pixel 20, the lower one below the first sample of pixel 30.
    stream.draw(STRIP, &strip([10., 20.5], [10., 30.5], 0.));
    // The resolve, whose colours are ignored.
    stream.set(0x4e80, &[0]);
    stream.relocation(1);
    stream.set(0x4e84, &[PITCH as u32]);
    stream.set(0x4e88, &[5]);
    stream.draw(STRIP, &strip([0., 100.], [0., 100.], 0.));
    let gpu = executed(&stream, &mut memory);
    assert_eq!(gpu.draws(), 2);
    let alpha = |x: usize, y: usize| memory[DEPTH.start + (y * PITCH + x) * 4 + 3];
    let found = [[15, 20], [20, 20], [15, 30], [20, 30], [21, 20], [9, 20]].map(|[x, y]| alpha(x, y));
    assert_eq!(found, [255, 128, 128, 128, 0, 0]);
}

/// Mesa `r300_state.c`, r300_set_sample_mask, and `r300_reg.h`, R300_FG_ALPHA_FUNC_MASK_ENABLE.
#[test]
fn a_mask_and_alpha_say_which_samples_are_drawn() {
    let coverage = |config: u32, mask: u32, alpha: u32, program: &[u32]| {
        let mut memory = vec![0; MEMORY];
        let mut stream = stream();
        stream.set(0x4e38, &[0x00c3_0000 | (PITCH as u32 / 4)]);
        stream.relocation(0);
        stream.set(0x43e0, &[0, 49 << 13 | 49]);
        stream.set(0x4010, &[0x6666_6666, 0x0666_6666]);
        stream.set(0x4020, &[config]);
        stream.set(0x43e8, &[mask]);
        stream.set(0x4bd4, &[alpha, 0]);
        stream.program(program);
        stream.draw(STRIP, &strip([0., 50.], [0., 50.], 0.));
        let gpu = executed(&stream, &mut memory);
        assert_eq!(gpu.draws(), 1);
        // The samples of a pixel are contiguous.
        let samples = [2, 3, 4, 6][config as usize >> 1];
        let at = |sample: usize| TARGET.start + ((7 * (PITCH / 4) + 3) * samples + sample) * 4;
        (0..samples).map(|sample| memory[at(sample)..at(sample) + 4] != [0; 4]).collect::<Vec<_>>()
    };
    assert_eq!(coverage(1, 0x04_1041, 0, &COLORS), [true, false]);
    assert_eq!(coverage(7, 0xff_ffff, 0, &COLORS), [true; 6]);
    // Alpha is one, and a quarter.
    assert_eq!(coverage(5, 0xff_ffff, 0x1_0000, &COLORS), [true; 4]);
    let quarter = "OUT out[A].rgb = MAD src0.111, src0.111, src0.000
  + out[A].a = MAD src0.a, src0.1, src0.0 : src0=#0.25";
    let quarter = assemble(quarter).unwrap().program.words;
    assert_eq!(coverage(5, 0xff_ffff, 0x1_0000, &quarter), [true, false, false, false]);
    assert_eq!(coverage(5, 0xff_ffff, 0, &quarter), [true; 4]);
}
