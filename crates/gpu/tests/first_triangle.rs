//! A stream of Mesa's driver for a strip of four vertices with one varying: the tests check every pixel.

mod strip;

use std::ops::Range;

use reconverge_gpu::r600::R600;
use reconverge_gpu::{Fault, Gpu, Submission};
use reconverge_r700::chip::Chip;
use reconverge_simt::Engine;
use reconverge_simt::loaded::loads;
use reconverge_simt::pool::on_one_thread;
use reconverge_simt::random::Random;
use reconverge_simt::vram::Vram;
use strip::{BUFFERS, PIXEL, Stream, TARGET, VERTEX, memory, put, stream};

fn pixel(memory: &[u8], x: usize, y: usize) -> [u8; 4] {
    let at = TARGET.start + (y * 256 + x) * 4;
    memory[at..at + 4].try_into().unwrap()
}

#[test]
fn every_pixel_of_a_captured_draw_is_where_it_is() {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream().0, buffers: &BUFFERS }).unwrap();
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

/// Draws the strip through a geometry program that emits each triangle unchanged, with `most` vertices of it. The
/// colour is the position.
fn with_geometry(most: u32) -> (Vec<u8>, R600) {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    let at = |offset: usize| VERTEX.start + offset;
    // ES: CALL_FS; MEM_RING WRITE 0 = R1.
    put(&mut memory, at(0x100), &[0, 0x8980_0000, 0xc000_8000, 0x9320_f000]);
    let emit = |gpr: u32, dword: u32| [0xc200_2000 | gpr << 15 | dword, 0x9300_ffff, 0, 0x8a80_0000];
    let fetch = |chan: u32, gpr: u32| [0x4000_1140 | chan << 24, 0x08cd_1000 | gpr, 0x0008_0000, 0];
    // GS: R3, R2, R1 = the ring at R0.x, R0.y, R0.w; each to the ring and EMIT_VERTEX.
    let program = [
        &[8, 0x8100_0800][..],
        &emit(3, 0),
        &emit(2, 4),
        &emit(1, 8),
        &[0, 0x8020_0000],
        &fetch(0, 3),
        &fetch(1, 2),
        &fetch(3, 1),
    ];
    put(&mut memory, at(0x200), &program.concat());
    // VS: R1 = the ring at R0.x; POS60 = R1; PARAM0 = R1.
    let copy = [4, 0x8100_0000, 0xc000_a03c, 0x9400_0688, 0xc000_c000, 0x9420_0688, 0, 0];
    put(&mut memory, at(0x300), &[&copy[..], &fetch(0, 1)].concat());
    let mut stream = stream();
    let draw = stream.0.split_off(stream.0.len() - 3);
    for (address, start) in [(0x28880, 1), (0x2886c, 2), (0x28858, 3)] {
        stream.context(address, &[start]);
        stream.relocation(4);
    }
    for address in [0x28890, 0x2887c, 0x28868] {
        stream.context(address, &[0x0020_0105]);
    }
    for resource in [160 + 17, 336 + 17] {
        stream.packet(0x6d, &[resource * 7, 0, 0xffff, 4 << 8, 0, 0, 0, 0xc000_0000]);
        stream.relocation(1);
    }
    stream.context(0x28a40, &[3]);
    stream.context(0x28a6c, &[2]);
    stream.context(0x288a8, &[4, 12]);
    stream.context(0x288c8, &[4]);
    stream.context(0x28b38, &[most]);
    stream.0.extend(draw);
    gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &BUFFERS }).unwrap();
    (memory, gpu)
}

#[test]
fn a_geometry_program_emits_what_is_drawn() {
    let (memory, gpu) = with_geometry(3);
    for (x, y) in [(0, 0), (249, 0), (130, 200), (200, 130), (249, 249)] {
        let red = ((2. * (x as f64 + 0.5) / 250. - 1.).max(0.) * 255.).round() as u8;
        let found = pixel(&memory, x, y);
        assert!(found[0].abs_diff(red) <= 1 && found[3] == 255, "{x} {y}: {found:?}, not {red}");
    }
    assert_eq!(gpu.unknown(), []);
}

#[test]
fn a_geometry_program_emits_no_more_than_it_may() {
    let (memory, _) = with_geometry(2);
    assert_eq!(pixel(&memory, 100, 100), [0; 4]);
}

/// Four samples per pixel. The left edge of the strip passes through the centres of the first column, so half of
/// their samples are covered. A resolve (CB_COLOR_CONTROL.SPECIAL_OP 7) computes the mean. (OpenGL 3.0, 3.3.1)
#[test]
fn a_resolve_is_the_mean_of_the_samples() {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    memory.resize(0x20_0000, 0);
    const SAMPLES: Range<usize> = 0x10_0000..0x20_0000;
    let mut buffers = BUFFERS.to_vec();
    buffers.push(SAMPLES);
    let mut stream = stream();
    let draw = stream.0.split_off(stream.0.len() - 3);
    stream.context(0x28040, &[0]);
    stream.relocation(5);
    stream.context(0x28c04, &[2 | 6 << 13]);
    // (-2, -2), (2, 2), (-6, 6), (6, -6).
    stream.context(0x28c1c, &[0xa66a_22ee, 0xa66a_22ee]);
    stream.context(0x28c48, &[u32::MAX]);
    stream.context(0x28a4c, &[0x0051_4001]);
    stream.context(0x2843c, &[125., 125.5].map(f32::to_bits));
    stream.0.extend(&draw);
    // A copy from the samples to the target of the other tests.
    stream.context(0x280a0, &[0x0910_0468, 0x0910_0468]);
    stream.context(0x28044, &[0]);
    stream.relocation(0);
    stream.context(0x28064, &[0x000f_fc1f]);
    stream.context(0x28808, &[0x00cc_00f0]);
    stream.context(0x2843c, &[125., 125.].map(f32::to_bits));
    stream.0.extend(&draw);
    gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &buffers }).unwrap();
    for y in [0, 1, 100, 249] {
        let [_, green, blue, alpha] = pixel(&memory, 1, y);
        assert_eq!((blue, alpha), (128, 255));
        let half = pixel(&memory, 0, y);
        assert_eq!(half[2..], [64, 128], "row {y}");
        assert!(half[1].abs_diff(green / 2) <= 1, "row {y}: {half:?}");
    }
    assert_eq!(gpu.unknown(), []);
}

/// The words of SAMPLE_PIPELINESTAT in Mesa's order (`r600_query.c`): pixels, primitives out of the clipper and into
/// it, vertex and geometry lanes, geometry primitives, primitives, vertices. Nothing counts between PIPELINESTAT_STOP
/// and PIPELINESTAT_START, as around blits of `ext_transform_feedback-generatemipmap prims_generated`, which RV770
/// passes.
#[test]
fn statistics_count_while_they_are_on() {
    const RESULTS: Range<usize> = 0x10_0000..0x10_1000;
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    memory.resize(RESULTS.end, 0);
    let mut buffers = BUFFERS.to_vec();
    buffers.push(RESULTS);
    let mut stream = stream();
    let draw = stream.0.split_off(stream.0.len() - 3);
    let sample = |stream: &mut Stream, at: u32| {
        stream.packet(0x46, &[0x1e | 2 << 8, at, 0]);
        stream.relocation(5);
    };
    sample(&mut stream, 0);
    stream.0.extend(&draw);
    stream.packet(0x46, &[0x1a]);
    stream.0.extend(&draw);
    stream.packet(0x46, &[0x19]);
    sample(&mut stream, 64);
    gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &buffers }).unwrap();
    let word = |at: usize| u64::from_le_bytes(memory[RESULTS.start + at..][..8].try_into().unwrap());
    let counts: Vec<u64> = (0..8).map(|number| word(64 + 8 * number) - word(8 * number)).collect();
    assert_eq!(counts, [250 * 250, 2, 2, 4, 0, 0, 2, 4]);
    assert_eq!(gpu.unknown(), []);
}

/// R6xx 3D registers: PA_CL_GB_HORZ_CLIP_ADJ and PA_CL_GB_VERT_CLIP_ADJ cut, PA_CL_GB_*_DISC_ADJ drop what is outside of a side.
#[test]
fn the_guard_band_cuts_and_drops() {
    let drawn = |registers: [f32; 4]| {
        let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
        let mut stream = stream();
        let draw = stream.0.split_off(stream.0.len() - 3);
        stream.context(0x28c0c, &registers.map(f32::to_bits));
        // Half the size: the strip reaches to w, the target to twice that.
        stream.context(0x2843c, &[62.5, 125., 62.5, 125.].map(f32::to_bits));
        stream.0.extend(draw);
        gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &BUFFERS }).unwrap();
        let row = |y: usize| (0..250).filter(|x| pixel(&memory, *x, y) != [0; 4]).count();
        [row(125), (0..250).filter(|y| row(*y) != 0).count()]
    };
    // y, then x: cut at half of w along x, and along y.
    assert_eq!(drawn([8., 8., 0.5, 8.]), [62, 125]);
    assert_eq!(drawn([0.5, 8., 8., 8.]), [125, 62]);
    // All vertices lie at w or -w. A side at -2 w drops all.
    assert_eq!(drawn([8., -2., 8., 8.]), [0, 0]);
}

/// RV770 fails `interpolation N non-centroid-deriv`: SPI_PS_IN_CONTROL_0.BARYC_SAMPLE_CNTL is 0, CENTROIDS_ONLY,
/// unless a program reads the position. The strip is from 0.5 to 16.5, and the first sample of a pixel is 2/16 to the
/// left of its centre.
#[test]
fn inputs_are_at_the_centroid_if_there_are_only_centroids() {
    const SAMPLES: Range<usize> = 0x10_0000..0x20_0000;
    let red = |control: u32, x: usize| {
        let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
        memory.resize(SAMPLES.end, 0);
        let mut buffers = BUFFERS.to_vec();
        buffers.push(SAMPLES);
        let mut stream = stream();
        let draw = stream.0.split_off(stream.0.len() - 3);
        stream.context(0x28040, &[0]);
        stream.relocation(5);
        stream.context(0x28c04, &[2 | 6 << 13]);
        stream.context(0x28c1c, &[0xa66a_22ee, 0xa66a_22ee]);
        stream.context(0x28c48, &[u32::MAX]);
        stream.context(0x28a4c, &[0x0051_4001]);
        stream.context(0x2843c, &[8., 8.5, 8., 8.5].map(f32::to_bits));
        stream.context(0x286cc, &[0x1000_0001 | control << 26]);
        stream.0.extend(&draw);
        gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &buffers }).unwrap();
        assert_eq!(gpu.unknown(), []);
        memory[SAMPLES.start + (5 * 256 + x) * 4]
    };
    assert_eq!([0, 1, 2].map(|control| red(control, 16)), [253, 255, 255]);
    assert_eq!([0, 1, 2].map(|control| red(control, 8)), [128; 3]);
}

#[test]
fn what_is_not_known_is_named_and_counted() {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    let mut stream = Stream::default();
    stream.packet(0x7f, &[0]);
    stream.context(0x28ffc, &[1]);
    stream.context(0x28ffc, &[1]);
    gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &[] }).unwrap();
    assert_eq!(gpu.unknown(), [("packet 0x7f".to_owned(), 1), ("register 0x28ffc".to_owned(), 2)]);
}

/// The vertex and the pixel shader. The quad has 19 batches of lanes.
#[test]
fn each_shader_of_a_quad_is_decoded_and_lowered_once() {
    const WIDE: Range<usize> = 0x9_0000..0x9_0000 + 4 * 640 * 480;
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    memory.resize(WIDE.end, 0);
    let mut buffers = BUFFERS;
    buffers[0] = WIDE;
    let mut stream = stream();
    let draw = stream.0.split_off(stream.0.len() - 3);
    for scissor in [0x28204, 0x28250] {
        stream.context(scissor, &[0x8000_0000, 480 << 16 | 640]);
    }
    stream.context(0x28040, &[0]);
    stream.relocation(0);
    stream.context(0x28060, &[(640 / 8 - 1) | (640 * 480 / 64 - 1) << 10]);
    stream.context(0x2843c, &[320., 320., 240., 240.].map(f32::to_bits));
    stream.0.extend(draw);
    let before = loads();
    let submission = Submission { commands: &stream.0, buffers: &buffers };
    // The counts are per thread.
    on_one_thread(|| gpu.submit(Vram::new(&mut memory), &submission)).unwrap();
    assert!(memory[WIDE].as_chunks::<4>().0.iter().all(|[_, _, blue, alpha]| (*blue, *alpha) == (128, 255)));
    let (decoded, lowered) = (loads().decoded - before.decoded, loads().lowered - before.lowered);
    assert_eq!((gpu.draws(), decoded, lowered), (1, 2, 2));
}

/// DRAW_INDEX_AUTO with all bits set, and few vertices in as many instances.
#[test]
fn a_draw_of_more_vertices_than_a_launch_has_is_named() {
    for (vertices, instances) in [(u32::MAX, 1), (4, u32::MAX)] {
        let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
        let mut stream = stream();
        stream.0.truncate(stream.0.len() - 3);
        stream.packet(0x2f, &[instances]);
        stream.packet(0x2d, &[vertices, 2]);
        gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &BUFFERS }).unwrap();
        assert_eq!(
            (gpu.draws(), gpu.unknown()),
            (0, vec![("draws that exceed the limit of vertices".to_owned(), 1)])
        );
    }
}

#[test]
fn a_shader_that_never_ends_is_named() {
    let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
    // LOOP_START_DX10, and LOOP_END at once.
    put(&mut memory, PIXEL.start, &[2, 0x8300_0000, 1, 0x8280_0000, 0, 0x8020_0000]);
    let fault = gpu
        .submit(Vram::new(&mut memory), &Submission { commands: &stream().0, buffers: &BUFFERS })
        .unwrap_err();
    assert!(matches!(&fault, Fault::Trap(what) if what.starts_with("draw 1: pixel shader: ")), "{fault}");
}

#[test]
fn engines_alone_and_in_lockstep_draw_the_same_pixels() {
    let drawn = |engine| {
        let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
        gpu.use_engine(engine);
        gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream().0, buffers: &BUFFERS }).unwrap();
        memory[TARGET].to_vec()
    };
    let [first, others @ ..] = Engine::ALL.map(drawn);
    assert!(others.iter().all(|other| *other == first));
}

/// The buffer of a texture of 64 x 64, RGBA8.
const TEXTURE: Range<usize> = 0x9_0000..0xd_0000;
const TEXTURE_BYTES: usize = 4 * 64 * 64;

/// The chip draws the same as a chip that has kept nothing, if others write only where they may, or report their
/// writes.
#[test]
fn a_texture_is_decoded_anew_when_its_memory_has_other_bytes() {
    let (mut gpu, mut memory) = (R600::new(Chip::RV770), memory());
    memory.resize(TEXTURE.end, 0);
    let mut random = Random::new(9);
    // TEX; EXPORT_DONE PIX0 = R0. SAMPLE R0 = the texture at R0.xy.
    let sample = [2, 0x8080_0000, 0xc000_0000, 0x9420_0688, 0x10, 0xf00d_1000, 0x0080_0000, 0];
    put(&mut memory, PIXEL.start + 0x100, &sample);
    let buffers = [&BUFFERS[..], &[TEXTURE]].concat();
    let before_draw = |words: &dyn Fn(&mut Stream)| {
        let mut stream = stream();
        let draw = stream.0.split_off(stream.0.len() - 3);
        words(&mut stream);
        stream.0.extend(draw);
        stream
    };
    let textured = before_draw(&|stream| {
        stream.context(0x28840, &[1]);
        stream.relocation(3);
        stream.packet(0x6d, &[0, 0x01f8_0721, 0x6800_003f, 0, 0, 0x0688_4000, 0, 0x8000_0010]);
        stream.relocation(5);
        stream.relocation(5);
        stream.packet(0x6e, &[0, 0x0c04_0200, 0x000f_0000, 0x8000_0000]);
    });
    let is_current = |gpu: &mut R600, memory: &mut Vec<u8>| {
        let submission = Submission { commands: &textured.0, buffers: &buffers };
        let (mut fresh, mut expected) = (R600::new(Chip::RV770), memory.clone());
        fresh.submit(Vram::new(&mut expected), &submission).unwrap();
        gpu.submit(Vram::new(memory), &submission).unwrap();
        assert_eq!(fresh.unknown(), vec![]);
        *memory == expected
    };
    let mut change = |memory: &mut Vec<u8>, at: usize| {
        memory[at..at + TEXTURE_BYTES].fill_with(|| random.next() as u8);
    };
    gpu.share(Some(&[]));
    change(&mut memory, TEXTURE.start);
    assert!(is_current(&mut gpu, &mut memory));
    change(&mut memory, TEXTURE.start);
    assert!(!is_current(&mut gpu, &mut memory), "nobody may write there");
    gpu.replaced(&TEXTURE);
    assert!(is_current(&mut gpu, &mut memory));
    for parts in [Some(&[0..4, TEXTURE.start + 4..TEXTURE.start + 5][..]), Some(&[TARGET, TEXTURE]), None] {
        gpu.share(parts);
        for _ in 0..2 {
            change(&mut memory, TEXTURE.start);
            assert!(is_current(&mut gpu, &mut memory), "{parts:?}");
        }
    }
    gpu.share(Some(&[]));
    assert!(is_current(&mut gpu, &mut memory));
    let target = before_draw(&|stream| {
        stream.context(0x28040, &[0]);
        stream.relocation(5);
    });
    let mut copy = Stream::default();
    copy.packet(0x41, &[0x8000, 0, 0, 0, TEXTURE_BYTES as u32]);
    copy.relocation(5);
    copy.relocation(5);
    let mut word = Stream::default();
    word.packet(0x3d, &[0x40, 1 << 18, 0x1234_5678, 0]);
    word.relocation(5);
    for (name, stream) in [("a draw", target), ("a copy", copy), ("a write", word)] {
        change(&mut memory, TEXTURE.start + 0x8000);
        let before = memory[TEXTURE][..TEXTURE_BYTES].to_vec();
        let submission = Submission { commands: &stream.0, buffers: &buffers };
        gpu.submit(Vram::new(&mut memory), &submission).unwrap();
        assert!(before != memory[TEXTURE][..TEXTURE_BYTES], "{name} writes to the texture");
        assert!(is_current(&mut gpu, &mut memory), "{name}");
    }
}

/// Pixels of four texels by one: SAMPLE with filters of points is the mean of the four with MAX_ANISO_RATIO 2, on all engines.
#[test]
fn an_anisotropic_filter_reads_along_the_longer_side() {
    let drawn = |engine: Engine, filter: u32, ratio: u32| {
        let (mut memory, mut gpu) = (memory(), R600::new(Chip::RV770));
        gpu.use_engine(engine);
        memory.resize(TEXTURE.end, 0);
        // TEX; EXPORT_DONE PIX0 = R0. SAMPLE R0 = the texture at R0.xy.
        let sample = [2, 0x8080_0000, 0xc000_0000, 0x9420_0688, 0x10, 0xf00d_1000, 0x0080_0000, 0];
        put(&mut memory, PIXEL.start + 0x100, &sample);
        let texels: Vec<u32> = (0..64 * 64).map(|at| (at % 64 % 4 * 20 + at / 64) | 0xff00_0000).collect();
        put(&mut memory, TEXTURE.start, &texels);
        let mut stream = stream();
        let draw = stream.0.split_off(stream.0.len() - 3);
        stream.context(0x28840, &[1]);
        stream.relocation(3);
        stream.packet(0x6d, &[0, 0x01f8_0701, 0x6800_003f, 0, 0, 0x0688_4000, 0, 0x8000_0010]);
        stream.relocation(5);
        stream.relocation(5);
        stream.packet(
            0x6e,
            &[0, 0x0c00_0000 | filter << 9 | filter << 12 | ratio << 19, 0x000f_0000, 0x8000_0000],
        );
        stream.context(0x2843c, &[8., 8., 32., 32.].map(f32::to_bits));
        stream.0.extend(draw);
        let buffers = [&BUFFERS[..], &[TEXTURE]].concat();
        gpu.submit(Vram::new(&mut memory), &Submission { commands: &stream.0, buffers: &buffers }).unwrap();
        assert_eq!(gpu.unknown(), []);
        [[0, 0], [5, 9], [15, 63]].map(|[x, y]| pixel(&memory, x, y)[0])
    };
    for engine in Engine::ALL {
        // The texel to the right of the middle, and the mean of 0, 20, 40 and 60.
        assert_eq!(drawn(engine, 0, 2), [40, 49, 103]);
        assert_eq!(drawn(engine, 4, 2), [30, 39, 93]);
        // Two positions: between texels 0 and 1, and between 2 and 3, which a bilinear filter mixes.
        assert_eq!(drawn(engine, 5, 1), [30, 39, 93]);
    }
}
