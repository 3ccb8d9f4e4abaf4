//! Tests inputs through fetches and outputs through exports.

use reconverge_isa::Program;
use reconverge_r700::cause::Cause;
use reconverge_r700::code::ExportKind;
use reconverge_r700::flow::FlowFault;
use reconverge_r700::launch::FetchProgram;
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::texture::{Component, Texture, TextureSampler};
use reconverge_r700::words::Op2;
use reconverge_simt::Mask;
use reconverge_simt::texture::{Compare, Image, Level, MipFilter, Sampler, Shape, Wrap};

use crate::*;

fn vertex_buffer(words: &[u32], stride: u32) -> VertexBuffer {
    VertexBuffer { stride, ..VertexBuffer::constants(words) }
}

/// The vertex program of the XF86 driver (tool): two fetches of two floats, position and parameter exports.
fn copy_vs() -> Program {
    Program::from_words(vec![
        0x0000_0004,
        0x8100_0400,
        0x0000_a03c,
        0x9400_0688,
        0x0000_4000,
        0x1420_0688,
        0,
        0, //
        0x3c00_0000,
        0x6796_1001,
        0x0008_0000,
        0,
        0x1c00_0000,
        0x6796_1000,
        0x0000_0008,
        0,
    ])
}

fn vertex_launch() -> Launch {
    let mut launch = launch();
    launch.environment_mut().stage = Stage::Vertex;
    launch.inputs[0].values = vec![[0; 4], [1, 0, 0, 0]].into();
    let values: Vec<u32> = (1..=8).map(|value| (value as f32).to_bits()).collect();
    launch.environment_mut().resources.vertex_buffers.insert(0, vertex_buffer(&values, 16));
    launch
}

#[test]
fn a_vertex_program_fetches_by_index_offset_and_stride() {
    let outcome = strict(&copy_vs(), &vertex_launch()).unwrap();
    let position = outcome.export(ExportKind::Pos, 60).unwrap();
    assert_eq!(position.values, [floats([1.0, 2.0, 0.0, 1.0]), floats([5.0, 6.0, 0.0, 1.0])]);
    let parameter = outcome.export(ExportKind::Param, 0).unwrap();
    assert_eq!(parameter.values[1], floats([7.0, 8.0, 0.0, 1.0]));
}

#[test]
fn a_vertex_fetch_beyond_the_buffer_gives_zero_or_nan() {
    let mut launch = vertex_launch();
    launch.environment_mut().base_vertex = 1;
    let outcome = strict(&copy_vs(), &launch).unwrap();
    assert_eq!(outcome.export(ExportKind::Pos, 60).unwrap().values[1], floats([0.0, 0.0, 0.0, 1.0]));
    launch.environment_mut().resources.vertex_buffers.get_mut(&0).unwrap().nan_outside = true;
    let outcome = strict(&copy_vs(), &launch).unwrap();
    assert!(f32::from_bits(outcome.export(ExportKind::Pos, 60).unwrap().values[1][0]).is_nan());
}

/// Mesa fetches three shorts or bytes as four. `gl-2.0-vertexattribpointer-size-3` ends its buffer after the third and
/// passes on RV770.
#[test]
fn components_inside_of_the_buffer_are_fetched() {
    let mut launch = vertex_launch();
    let buffer = launch.environment_mut().resources.vertex_buffers.get_mut(&0).unwrap();
    // The last dword is missing: y of the second element of two dwords.
    buffer.bytes = buffer.bytes[..buffer.bytes.len() - 4].into();
    let whole = strict(&copy_vs(), &vertex_launch()).unwrap();
    let outcome = strict(&copy_vs(), &launch).unwrap();
    let last =
        |outcome: &reconverge_r700::outcome::Outcome| outcome.export(ExportKind::Param, 0).unwrap().values[1];
    assert_eq!((last(&whole), last(&outcome)), (floats([7.0, 8.0, 0.0, 1.0]), floats([7.0, 0.0, 0.0, 1.0])));
}

#[test]
fn a_fetch_from_nothing_traps_in_strict_mode() {
    let mut launch = vertex_launch();
    launch.environment_mut().resources.vertex_buffers.clear();
    let cause = strict(&copy_vs(), &launch).unwrap_err().cause;
    assert_eq!(cause, Cause::NoResource { what: "vertex buffer", id: 0 });
    assert_eq!(
        lenient(&copy_vs(), &launch).export(ExportKind::Pos, 60).unwrap().values[0],
        floats([0.0, 0.0, 0.0, 1.0])
    );
}

#[test]
fn a_vertex_resource_is_read_from_its_words() {
    // Size 15 (16 bytes), stride 8, format 30 (32_32_FLOAT), SCALED, signed.
    let words = [0, 15, 8 << 8 | 30 << 20 | 2 << 26 | 1 << 28, 0, 0, 0, 3 << 30];
    let buffer = VertexBuffer::from_resource(words, vec![0; 64]);
    assert_eq!((buffer.bytes.len(), buffer.stride, buffer.format), (16, 8, 30));
}

#[test]
fn call_fs_runs_a_fetch_program_in_its_own_addresses() {
    // Main: CALL_FS, EXPORT_DONE POS 60 R1. Fetch program: VTX @2 (one fetch into R1), RETURN.
    let main = Program::from_words(vec![0, 0x8980_0000, 0x0000_a03c, 0x9420_0688]);
    let fetch = vec![2, 0x8100_0000, 0, 0x8a00_0000, 0x3c00_0000, 0x6796_1001, 0x0008_0000, 0];
    let mut launch = vertex_launch();
    launch.environment_mut().fetch_program = Some(FetchProgram { words: fetch.into(), start: 0 });
    let outcome = strict(&main, &launch).unwrap();
    assert_eq!(outcome.export(ExportKind::Pos, 60).unwrap().values[1], floats([5.0, 6.0, 0.0, 1.0]));
    launch.environment_mut().stage = Stage::Pixel;
    assert!(matches!(strict(&main, &launch).unwrap_err().cause, Cause::WrongStage { name: "CALL_FS", .. }));
}

#[test]
fn a_semantic_fetch_goes_where_the_table_says() {
    // The first fetch of copy_vs with VTX_INST 1 and SEMANTIC_ID 9. The table has 9 at position 0: register 1.
    let mut program = copy_vs();
    program.words[8] |= 1;
    program.words[9] = program.words[9] & !0xff | 9;
    let mut launch = vertex_launch();
    launch.environment_mut().semantics = vec![9];
    let outcome = strict(&program, &launch).unwrap();
    assert_eq!(outcome.export(ExportKind::Pos, 60).unwrap().values[0], floats([1.0, 2.0, 0.0, 1.0]));
}

fn edge() -> TextureSampler {
    let sampler = Sampler { wrap: [Wrap::ClampToEdge; 3], ..Sampler::default() };
    TextureSampler { sampler, compare: Compare::Less }
}

/// One texture instruction `number` from R1 to R0 (resource 0, sampler 0, normalized, x y z w), then R0 to pixel 0.
fn texture_program(number: u32) -> Program {
    let tex = [number | 1 << 16, 0xf00d_1000, 0x6880_0000, 0];
    Program::from_words([2, 0x8080_0000, 0xc000_0000, 0x9420_0688].into_iter().chain(tex).collect())
}

/// Returns a launch with R1 in one lane and an image whose texel n is n.
fn texture_launch(shape: Shape, sizes: &[[u32; 3]], register: [u32; 4]) -> Launch {
    let mut launch = launch();
    launch.lanes = 1;
    launch.inputs = vec![Input { gpr: 1, values: vec![register].into() }];
    let level = |&[width, height, depth]: &[u32; 3]| {
        let texels = (0..width * height * depth).map(|texel| floats([texel as f32; 4])).collect();
        Level { width, height, depth, texels }
    };
    let image = Image::new(shape, sizes.iter().map(level).collect()).unwrap();
    launch.environment_mut().resources.textures.insert(0, Texture::floats(image));
    launch.environment_mut().resources.samplers.insert(0, edge());
    launch
}

fn texture_result(number: u32, launch: &Launch) -> [u32; 4] {
    pixels(&strict(&texture_program(number), launch).unwrap())[0]
}

#[test]
fn ld_takes_integers_and_a_level_and_gives_zero_outside() {
    let at = |register| texture_launch(Shape::D2, &[[4, 2, 1], [2, 1, 1]], register);
    assert_eq!(texture_result(0x03, &at([3, 1, 0, 0]))[0], 7f32.to_bits());
    assert_eq!(texture_result(0x03, &at([1, 0, 0, 1]))[0], 1f32.to_bits());
    assert_eq!(texture_result(0x03, &at([4, 0, 0, 0]))[0], 0);
}

/// MAN 5: GET_NUMBER_OF_SAMPLES returns the number of samples of the resource. Mesa reads it for textureSamples().
#[test]
fn the_number_of_samples_is_that_of_the_texture() {
    let mut launch = texture_launch(Shape::D2, &[[4, 2, 1], [2, 1, 1]], [0; 4]);
    assert_eq!(texture_result(0x05, &launch)[0], 1);
    let sample = Level { width: 4, height: 2, depth: 1, texels: vec![[0; 4]; 8].into() };
    let image = Image::of_samples(Shape::D2, vec![sample; 4]).unwrap();
    launch.environment_mut().resources.textures.insert(0, Texture::floats(image));
    assert_eq!(texture_result(0x05, &launch)[0], 4);
}

/// The list of failures on RV770: `texwrap bordercolor` passes with RGBA4 (ZYXW) and LUMINANCE8_ALPHA8 (XXXY) and fails
/// with rotated components and with integers.
#[test]
fn border_colours_come_back_to_their_places() {
    let border = |select: &str, integer: bool| {
        let mut launch = texture_launch(Shape::D2, &[[2, 2, 1]], floats([-1.0, 0.5, 0.0, 0.0]));
        let resources = &mut launch.environment_mut().resources;
        let texture = resources.textures.get_mut(&0).unwrap();
        texture.integer = integer;
        for (component, letter) in texture.select.iter_mut().zip(select.chars()) {
            *component = Component::of_letter(letter, integer).unwrap();
        }
        let sampler = Sampler {
            wrap: [Wrap::ClampToBorder; 3],
            border: if integer { [7, 8, 9, 10] } else { floats([0.1, 0.9, 0.5, 0.8]) },
            ..Sampler::default()
        };
        resources.samplers.insert(0, TextureSampler { sampler, compare: Compare::Less });
        texture_result(0x13, &launch)
    };
    assert_eq!(border("zyxw", false), floats([0.1, 0.9, 0.5, 0.8]));
    assert_eq!(border("000x", false), floats([0.0, 0.0, 0.0, 0.8]));
    assert_eq!(border("xxxy", false), floats([0.1, 0.1, 0.1, 0.8]));
    assert_eq!(border("zxyw", false), floats([0.9, 0.5, 0.1, 0.8]));
    assert_eq!(border("0x01", false), floats([0.0, 0.0, 0.0, 1.0]));
    assert_eq!(border("xyzw", true), [0; 4]);
}

/// Two faces of a cube share a quad: the gradient is the one on the face of the lane that reads. Inferred from
/// `tex-miplevel-selection "GL2:texture()" Cube`, which passes on RV770.
#[test]
fn lanes_on_another_face_of_a_cube_do_not_change_the_level() {
    let mut launch = texture_launch(Shape::Cube, &[[16, 16, 6], [8, 8, 6]], [0; 4]);
    launch.lanes = 4;
    let sampler = Sampler { wrap: [Wrap::ClampToEdge; 3], mip: MipFilter::Nearest, ..Sampler::default() };
    let samplers = &mut launch.environment_mut().resources.samplers;
    samplers.insert(0, TextureSampler { sampler, compare: Compare::Less });
    // Lanes 0 and 2 are at the right edge of +z, lanes 1 and 3 at the left edge of +x: a sixteenth of a face apart.
    let values = [[1.98, 1.5, 4.0], [1.02, 1.5, 0.0], [1.98, 1.53, 4.0], [1.02, 1.53, 0.0]];
    let value = |[x, y, face]: [f32; 3]| floats([x, y, face, 0.0]);
    launch.inputs = vec![Input { gpr: 1, values: values.map(value).to_vec().into() }];
    let outcome = strict(&texture_program(0x10), &launch).unwrap();
    let read = pixels(&outcome);
    // The first level has 256 texels per face, the second one 64.
    let texel = |lane: usize| f32::from_bits(read[lane][0]);
    assert_eq!((texel(0), texel(1)), (4. * 256. + 8. * 16. + 15., 8. * 16.));
}

#[test]
fn resinfo_gives_the_size_of_a_level_and_the_number_of_levels() {
    let launch = texture_launch(Shape::D3, &[[8, 4, 2], [4, 2, 1]], [1, 0, 0, 0]);
    assert_eq!(texture_result(0x04, &launch), [4, 2, 1, 2]);
}

#[test]
fn a_cube_takes_coordinates_from_one_to_two_and_the_face_in_z() {
    for face in 0..6 {
        let launch = texture_launch(Shape::Cube, &[[2, 2, 6]], floats([1.75, 1.25, face as f32, 0.0]));
        assert_eq!(texture_result(0x10, &launch)[0], (face as f32 * 4.0 + 1.0).to_bits(), "face {face}");
    }
}

#[test]
fn an_array_takes_its_layer_from_z() {
    let launch = texture_launch(Shape::D2Array, &[[2, 2, 3]], floats([0.25, 0.25, 2.0, 0.0]));
    assert_eq!(texture_result(0x13, &launch)[0], 8f32.to_bits());
}

#[test]
fn a_comparison_takes_its_reference_from_w_or_from_z_when_w_is_the_level() {
    // Texel 1 against 0.5: less, so it passes.
    let launch = texture_launch(Shape::D2, &[[2, 1, 1]], floats([0.75, 0.5, 9.0, 0.5]));
    assert_eq!(texture_result(0x18, &launch)[0], lane_one());
    let launch = texture_launch(Shape::D2, &[[2, 1, 1]], floats([0.75, 0.5, 0.5, 9.0]));
    assert_eq!(texture_result(0x19, &launch)[0], lane_one());
}

fn lane_one() -> u32 {
    reconverge_r700::lane::ONE
}

#[test]
fn explicit_gradients_must_be_set_in_the_same_clause() {
    let launch = texture_launch(Shape::D2, &[[2, 1, 1]], floats([0.75, 0.5, 0.0, 0.0]));
    assert_eq!(strict(&texture_program(0x14), &launch).unwrap_err().cause, Cause::Gradients);
    assert_eq!(pixels(&lenient(&texture_program(0x14), &launch))[0][0], 1f32.to_bits());
}

#[test]
fn gradients_are_differences_within_the_quad() {
    let mut launch = texture_launch(Shape::D2, &[[2, 1, 1]], [0; 4]);
    launch.lanes = 4;
    launch.inputs[0].values =
        [[0.0, 1.0], [2.0, 1.0], [0.0, 5.0], [9.0, 9.0]].map(|[x, y]| floats([x, y, 0.0, 0.0])).into();
    for (number, wanted) in [(0x07, [2.0, 0.0, 0.0, 0.0]), (0x08, [0.0, 4.0, 0.0, 0.0])] {
        let outcome = strict(&texture_program(number), &launch).unwrap();
        assert_eq!(pixels(&outcome), [floats(wanted); 4]);
    }
}

#[test]
fn a_texture_is_read_at_its_nearest_texel() {
    // LLVM's SAMPLE words (tool) from R1 to R0: resource 2, normalized coordinates; then R0 to pixel 0.
    let program = Program::from_words(vec![
        2,
        0x8080_0000,
        0xc000_0000,
        0x9420_0688,
        0x0001_0210,
        0xf00d_1000,
        0x6881_8000,
        0,
    ]);
    let mut launch = launch();
    launch.inputs.push(Input {
        gpr: 1,
        values: vec![floats([0.25, 0.75, 0.0, 0.0]), floats([9.0, -9.0, 0.0, 0.0])].into(),
    });
    let texels = (0..4).map(|texel| [texel; 4]).collect();
    launch
        .environment_mut()
        .resources
        .textures
        .insert(2, Texture::floats(Image::flat(2, 2, texels).unwrap()));
    launch.environment_mut().resources.samplers.insert(3, edge());
    assert_eq!(pixels(&strict(&program, &launch).unwrap()), [[2; 4], [1; 4]]);
}

#[test]
fn scratch_written_with_an_acknowledge_is_read_back() {
    // Derived in the notes: MEM_SCRATCH WRITE_ACK base 3 of R5, WAIT_ACK 0, READ_SCRATCH R6 from base 3; then R6.
    let program = Program::from_words(vec![
        0xc002_c003,
        0x9200_f000,
        0,
        0x8d00_0000,
        4,
        0x8080_0000,
        0xc003_0000,
        0x9420_0688, //
        0x0000_0862,
        0x188d_1006,
        0x0000_0003,
        0,
    ]);
    let mut launch = launch();
    launch.inputs[0].gpr = 5;
    let outcome = strict(&program, &launch).unwrap();
    assert_eq!(pixels(&outcome), [[0, 1, 2, 3], [10, 11, 12, 13]]);
    assert_eq!(outcome.memory.scratch[1][12..], [10, 11, 12, 13]);
}

#[test]
fn r600_reads_scratch_through_the_same_instruction() {
    // TYPE 0 writes R0 to element 0; TYPE 2 reads it into R1; then R1.
    let program = Program::from_words(vec![
        0xc000_0000,
        0x9200_f000,
        0xc000_c000,
        0x9200_f000,
        0xc000_8000,
        0x9420_0688,
    ]);
    let mut launch = launch();
    launch.environment_mut().chip = Chip::named("rv670").unwrap();
    assert_eq!(pixels(&strict(&program, &launch).unwrap()), [[0, 1, 2, 3], [10, 11, 12, 13]]);
}

#[test]
fn array_size_is_the_last_element_that_may_be_written() {
    // MEM_SCRATCH WRITE_IND, index in R0.x, ARRAY_SIZE 9: lane 0 writes element 0, lane 1 (index 10) is outside.
    let program = Program::from_words(vec![0xc000_2000, 0x9200_f009, 0, 0x8020_0000]);
    let cause = strict(&program, &launch()).unwrap_err().cause;
    assert_eq!(cause, Cause::MemoryBounds { what: "MEM_SCRATCH", lanes: Mask(0b10) });
    assert_eq!(lenient(&program, &launch()).memory.scratch, [vec![0, 1, 2, 3], vec![0; 4]]);
}

#[test]
fn the_scatter_buffer_is_one_for_all_lanes() {
    // MEM_EXPORT WRITE_IND, ELEM_SIZE 0, index R0.x, COMP_MASK x.
    let program = Program::from_words(vec![0x0000_a000, 0x9d00_1fff, 0, 0x8020_0000]);
    let mut launch = launch();
    launch.inputs.push(Input { gpr: 1, values: vec![[7, 0, 0, 0], [8, 0, 0, 0]].into() });
    launch.scatter = vec![0; 16];
    let outcome = strict(&program, &launch).unwrap();
    assert_eq!((outcome.memory.scatter[0], outcome.memory.scatter[10]), (7, 8));
}

#[test]
fn an_export_burst_advances_register_and_target() {
    // EXPORT_DONE PIXEL 0, R0, BURST_COUNT 1: R1 goes to target 1; selects x, 0, 1, masked.
    let program = Program::from_words(vec![0xc000_0000, 0x9422_0f60]);
    let mut launch = launch();
    launch.inputs.push(Input { gpr: 1, values: vec![[21; 4], [22; 4]].into() });
    let outcome = strict(&program, &launch).unwrap();
    let second = outcome.export(ExportKind::Pixel, 1).unwrap();
    assert_eq!(second.values[1], [22, 0, 1f32.to_bits(), 0]);
    assert_eq!(second.written[1], 0b0111);
}

#[test]
fn killed_lanes_export_nothing_and_are_reported() {
    // KILLE_INT on R0.x == 0: lane 0.
    let program = one_clause(&[alu(Op2::KILLE_INT).a(0, 0).b(ZERO, 0).last().words()]);
    let outcome = strict(&program, &launch()).unwrap();
    assert_eq!(outcome.killed, [true, false]);
    assert_eq!(outcome.export(ExportKind::Pixel, 0).unwrap().written, [0, 0b1111]);
}

#[test]
fn a_lane_killed_after_its_export_is_discarded_too() {
    let kill = clause(8, &[alu(Op2::KILLE_INT).a(0, 0).b(ZERO, 0).last().words()]);
    let program = assemble(&[Ok([0xc000_0000, 0x9400_0688]), Err(0), Ok(END)], &[kill]);
    assert_eq!(
        strict(&program, &launch()).unwrap().export(ExportKind::Pixel, 0).unwrap().written,
        [0, 0b1111]
    );
}

#[test]
fn emitted_vertices_are_recorded_and_belong_to_geometry_programs() {
    // EMIT_VERTEX, CUT_VERTEX, end.
    let program = Program::from_words(vec![0, 0x8a80_0000, 0, 0x8b80_0000, 0, 0x8020_0000]);
    assert!(matches!(strict(&program, &launch()).unwrap_err().cause, Cause::WrongStage { .. }));
    let mut launch = launch();
    launch.environment_mut().stage = Stage::Geometry;
    let emissions = strict(&program, &launch).unwrap().emissions;
    assert_eq!(
        emissions.iter().map(|emission| (emission.vertex, emission.cut)).collect::<Vec<_>>(),
        [(true, false), (false, true)]
    );
}

#[test]
fn the_data_share_is_written_by_its_owner_and_read_by_all() {
    // LOCAL_DS_WRITE of R0, stride 4, index 0; LOCAL_DS_READ R1 with bank R2.x and dword R2.y; then R1.
    let write = [2 | 4 << 8, 4 << 6, 0, 0];
    let read = [2 | 5 << 8 | 2 << 16 | 1 << 26, 1 | 0x688 << 9, 0, 0];
    let mut words = vec![2, 0x8080_0400, 0xc000_8000, 0x9420_0688];
    words.extend(write);
    words.extend(read);
    let mut launch = launch();
    // Each lane reads the other's entry: bank = lane, entry 0.
    launch.inputs.push(Input { gpr: 2, values: vec![[1, 0, 0, 0], [0, 0, 0, 0]].into() });
    let outcome = strict(&Program::from_words(words), &launch).unwrap();
    assert_eq!(pixels(&outcome), [[10, 11, 12, 13], [0, 1, 2, 3]]);
}

#[test]
fn the_data_share_of_a_group_goes_from_wavefront_to_wavefront() {
    // WAVE_REL: lane n of the launch writes entry n / 4 of bank n & 3; all lanes read lane 0's entry.
    let source = "TEX:\n LOCAL_DS_WRITE R0 DST_STRIDE(4) WAVE_REL\n LOCAL_DS_READ R1.xyzw, R2.x SRC_Y(Y)
                  EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM\n";
    let program = |source: &str| {
        Program::from_words(reconverge_r700::text::assemble(source, Chip::RV770).expect("it assembles").words)
    };
    let mut launch = launch();
    launch.lanes = 65;
    launch.inputs[0].values = (0..65).map(|lane| [100 + lane; 4]).collect();
    // In strict mode this is a race: see races.rs.
    let outcome = lenient(&program(source), &launch);
    assert_eq!((pixels(&outcome)[1][0], pixels(&outcome)[64][0]), (100, 100));
    // Counted within the wavefront, the second one overwrites the first one's entry.
    let outcome = lenient(&program(&source.replace(" WAVE_REL", "")), &launch);
    assert_eq!((pixels(&outcome)[1][0], pixels(&outcome)[64][0]), (100, 164));
}

#[test]
fn more_stack_than_declared_traps_with_what_is_needed() {
    let push = |_| Ok([1, 0x8580_0000]);
    let cf: Vec<_> = (0..3).map(push).chain([Ok(END)]).collect();
    let mut launch = launch();
    launch.environment_mut().stack_size = Some(1);
    match strict(&assemble(&cf, &[]), &launch).unwrap_err().cause {
        Cause::Flow(FlowFault::StackOverflow { needed: 2, declared: 1, .. }) => {}
        other => panic!("{other}"),
    }
}
