//! Tests of the translation of methods and of texture and sampler entries.

use reconverge_isa::sets::SortedSet;
use reconverge_raster::depth::DepthFormat;
use reconverge_raster::draw::{Draw, Stipple};
use reconverge_raster::format::{Format, Number};
use reconverge_raster::interpolate::Input;
use reconverge_tesla::texture::Textures;

use super::draw::draw;
use super::*;

const ONE: u32 = 1f32.to_bits();

/// Returns the state of a 3D object without targets, after these methods.
fn state(methods: &[(u32, u32)]) -> State {
    let mut state = State::new(Object::Tesla);
    methods.iter().for_each(|(method, word)| state.set(*method, *word));
    state
}

fn drawn(state: &State, topology: Topology, window: Window) -> Draw {
    let mut unknown = Unknown::default();
    let reads = Reads::new((state, &mut unknown), topology, &SortedSet::default());
    draw((state, &mut unknown, &mut Slices::new(0)), topology, &reads, window)
}

/// Mesa `nv50_validate_viewport`, `nv50_validate_scissor`: each viewport has eight words in the array of transforms.
/// Each viewport has four words in the array of scissors, and four words in the array with the depth ranges.
#[test]
fn a_viewport_has_its_own_transform_scissor_and_range_of_depth() {
    let third = 2;
    let methods = [
        (m::SCREEN_SCISSOR_HORIZ, 100 << 16),
        (m::SCREEN_SCISSOR_HORIZ + 4, 100 << 16),
        (m::VIEWPORT_SCALE_X + 0x20 * third, 3f32.to_bits()),
        (m::VIEWPORT_SCALE_X + 0x20 * third + 12, 5f32.to_bits()),
        (m::VIEWPORT_HORIZ + 0x10 * third + 12, 0.5f32.to_bits()),
        (m::SCISSOR_ENABLE + 0x10 * third, 1),
        (m::SCISSOR_ENABLE + 0x10 * third + 4, 9 << 16 | 7),
        (m::SCISSOR_ENABLE + 0x10 * third + 8, 30 << 16 | 20),
    ];
    let draw = drawn(&state(&methods), Topology::Triangles, Window { layer: 0, viewport: 2 });
    assert_eq!((draw.viewport.scale[0], draw.viewport.offset[0]), (3., 5.));
    assert_eq!(draw.viewport.depth, Some((0., 0.5)));
    let scissor = draw.scissor;
    assert_eq!([scissor.x0, scissor.x1, scissor.y0, scissor.y1], [7, 9, 20, 30]);
}

/// NV92 passes piglit's `arb_viewport_array-render-viewport` and `layered-rendering-gl-layer-render`, which draw points
/// and strips.
#[test]
fn a_primitive_goes_to_the_layer_and_the_viewport_of_its_provoking_vertex() {
    let state = state(&[
        (m::LAYER, 1 << 16),
        (m::SEMANTIC_LAYER, 0),
        (m::GP_VIEWPORT_ID_ENABLE, 1),
        (m::SEMANTIC_VIEWPORT, 1),
        (m::PROVOKING_VERTEX_LAST, 1),
    ]);
    // Layer and viewport of each vertex. The chip has 16 viewports, so 99 is clamped to 15.
    let words = [[0, 3], [0, 3], [0, 3], [4, 3], [4, 99], [4, 99]];
    let slots = Slots { words: words.concat(), size: 2, count: words.len() };
    let part =
        |topology: Topology, window: Window, runs: Vec<Vec<usize>>| WindowRuns { topology, window, runs };
    let point = |vertex: usize| vec![vertex];
    let first = Window { layer: 0, viewport: 3 };
    let (second, third) = (Window { layer: 4, viewport: 3 }, Window { layer: 4, viewport: 15 });
    assert_eq!(
        windows(&state, Topology::Points, &slots, &[(0..6).collect()]),
        [
            part(Topology::Points, first, vec![point(0), point(1), point(2)]),
            part(Topology::Points, second, vec![point(3)]),
            part(Topology::Points, third, vec![point(4), point(5)]),
        ]
    );
    // A run with one layer and viewport is unchanged.
    assert_eq!(
        windows(&state, Topology::TriangleStrip, &slots, &[vec![0, 1, 2]]),
        [part(Topology::TriangleStrip, first, vec![vec![0, 1, 2]])]
    );
    let strip = windows(&state, Topology::TriangleStrip, &slots, &[vec![1, 2, 3, 4]]);
    assert_eq!(
        strip,
        [
            part(Topology::Triangles, second, vec![vec![1, 2, 3]]),
            part(Topology::Triangles, third, vec![vec![3, 2, 4]]),
        ]
    );
}

/// NV92 passes piglit's `gl-1.4-polygon-offset`, which requires that a unit is two steps of a depth of 24 bits. The
/// driver multiplies OpenGL's units by two before it writes the units (Mesa `nv50_rasterizer_state_create`).
#[test]
fn a_unit_of_polygon_offset_is_a_step_of_depth() {
    let units = [
        (m::POLYGON_MODE_FRONT, 0x1b02),
        (m::POLYGON_OFFSET_POINT_ENABLE + 8, 1),
        (m::POLYGON_OFFSET_UNITS, 2f32.to_bits()),
    ];
    let draw = drawn(&state(&units), Topology::Triangles, Window::default());
    assert_eq!(draw.sides[0].offset.map(|offset| offset.constant), Some(libm::exp2(-23.)));
}

/// Mesa `nv50_validate_stipple`, `nv50_validate_window_rects`, `nv50_rasterizer_state_create`, `nv50_zsa_state_create`.
#[test]
fn stipples_rectangles_and_bounds_are_those_of_the_driver() {
    let methods = [
        (m::POLYGON_STIPPLE_ENABLE, 1),
        // Row 80000001h of OpenGL's pattern. The bytes of the row are swapped.
        (m::POLYGON_STIPPLE_PATTERN + 4, 0x0100_0080),
        (m::CLIP_RECTS_EN, 1),
        (m::CLIP_RECTS_MODE, 1),
        (m::CLIP_RECT_HORIZ + 8, 5 << 16 | 2),
        (m::CLIP_RECT_HORIZ + 12, 7 << 16 | 3),
        (m::LINE_STIPPLE_ENABLE, 1),
        (m::LINE_STIPPLE, 0x8fff << 8 | 2),
        (m::DEPTH_BOUNDS_EN, 1),
        (m::DEPTH_BOUNDS, 0),
        (m::DEPTH_BOUNDS + 4, ONE),
    ];
    let draw = drawn(&state(&methods), Topology::LineStrip, Window::default());
    let mask = draw.mask.expect("a mask");
    assert_eq!(mask.stipple.map(|rows| rows[1]), Some(0x8000_0001));
    let rectangles = mask.rectangles.expect("rectangles");
    let second = rectangles.all[1];
    assert_eq!((rectangles.all.len(), rectangles.inside), (8, false));
    assert_eq!([second.x0, second.x1, second.y0, second.y1], [2, 5, 3, 7]);
    assert_eq!(draw.stipple, Some(Stipple { pattern: 0x8fff, factor: 3, restarts: false }));
    assert_eq!(draw.depth_bounds, Some([0., 1.]));
    let lines = drawn(&state(&methods), Topology::Lines, Window::default());
    assert!(lines.stipple.is_some_and(|stipple| stipple.restarts));
    assert_eq!(drawn(&state(&[]), Topology::Lines, Window::default()).mask, None);
}

/// NV92 passes piglit's `arb_point_sprite-mipmap`, which draws quads in the point mode of polygons.
#[test]
fn a_polygon_that_is_drawn_as_points_has_their_coordinates() {
    let methods = |mode: u32| {
        state(&[
            (m::POLYGON_MODE_FRONT, mode),
            (m::POLYGON_MODE_BACK, mode),
            (m::POINT_SPRITE_ENABLE, 1),
            // The inputs are two words that begin at slot 4. For points, the coordinates s and t replace these words.
            (m::FP_INTERPOLANT_CTRL, 0x0802_0402),
            (m::POINT_COORD_REPLACE_MAP, 0x0021_0000),
        ])
    };
    let sprites = |mode: u32, topology: Topology| {
        let reads = Reads::new((&methods(mode), &mut Unknown::default()), topology, &SortedSet::default());
        let is_sprite = |input: &Input| matches!(input, Input::Sprite { otherwise: Some(_), .. });
        reads.inputs.iter().filter(|input| is_sprite(input)).count()
    };
    // One side of a quad may be drawn as points while the other side is not drawn as points. For the side that is not
    // drawn as points, the program reads the values of the slots. Each word therefore has a separate input.
    assert_eq!(sprites(0x1b00, Topology::Quads), 2);
    assert_eq!(sprites(0x1b02, Topology::Quads), 0);
    assert_eq!(sprites(0x1b00, Topology::Lines), 0);
}

/// Mesa `nv50_formats.c`: X8Z24 and S8_Z24 have the number 14h.
#[test]
fn stencil_may_lie_below_depth() {
    assert_eq!(format::zeta(0x14), Some(DepthFormat::StencilUnorm24));
    assert_eq!(format::zeta(0x16), Some(DepthFormat::Unorm24));
}

/// Mesa `nv50_formats.c` lists these formats as targets without blending. NV92 fails piglit's `fbo-blending-formats`
/// for exactly these formats.
#[test]
fn fractions_of_sixteen_bits_and_signed_ones_do_not_blend() {
    let blends =
        |bits: [u8; 4], number: Number| format::blends(&Format::new(bits, number), Errata::default());
    assert!(blends([8; 4], Number::Unorm) && blends([10, 10, 10, 2], Number::Unorm));
    assert!(blends([16; 4], Number::Float) && blends([32; 4], Number::Float) && blends([8; 4], Number::Srgb));
    assert!(!blends([16, 0, 0, 0], Number::Unorm) && !blends([16; 4], Number::Unorm));
    assert!(!blends([8; 4], Number::Snorm) && !blends([16, 16, 0, 0], Number::Snorm));
    assert!(!blends([8; 4], Number::Uint));
}

/// OpenGL 3.0, 4.1.7: all formats except for integers are blended.
#[test]
fn fractions_blend_without_the_erratum_and_integers_do_not() {
    let blends = |number: Number| {
        format::blends(&Format::new([16; 4], number), Errata::ALL.without(Erratum::NoBlending))
    };
    assert!(blends(Number::Unorm) && blends(Number::Snorm) && !blends(Number::Uint) && !blends(Number::Sint));
}

/// NV92 fails `texwrap bordercolor` for all integer formats. For integer formats, the driver writes the border colour
/// as integers.
#[test]
fn the_border_of_a_texture_of_integers_is_what_the_driver_writes_without_the_erratum() {
    let border = |errata: Errata| {
        let read = texture::Read { texture: 0, sampler: 0, samples: true };
        let mut state = state(&[(m::TSC_ADDRESS_HIGH + 4, 32)]);
        state.errata = errata;
        let mut bindings = Bindings::default();
        bindings.textures[FRAGMENT.textures][0] = Some(0);
        bindings.samplers[FRAGMENT.textures][0] = Some(0);
        // The entry of a linear texture with one texel of R8_G8_B8_A8 UINT, followed by the entry of a sampler with a
        // border colour.
        let sources = 2 << 18 | 3 << 21 | 4 << 24 | 5 << 27;
        let texture = [0x08 | 0o4444 << 6 | sources, 0, 0x9005_4000, 64, 1, 0x0001_0001, 0, 0];
        let words = [&texture[..], &[0, 0, 0, 0, 3, ONE, 200, 2f32.to_bits()]].concat();
        let mut memory: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let (mut unknown, mut textures, mut images) = Default::default();
        texture::bind(
            &mut textures,
            (FRAGMENT, Chip::Gt215),
            &[read].into_iter().collect(),
            (&state, &bindings, &mut unknown),
            &mut images,
            Vram::new(&mut memory),
        );
        assert!(unknown.list().is_empty(), "{:?}", unknown.list());
        textures.samplers[&0].sampler.border
    };
    assert_eq!(border(Errata::ALL), [0, 1, 0, 2]);
    assert_eq!(border(Errata::ALL.without(Erratum::IntegerBorder)), [3, ONE, 200, 2f32.to_bits()]);
}

/// The driver has 2,048 samplers (Mesa `nv50_context.h`).
#[test]
fn a_sampler_has_a_number_of_eleven_bits() {
    let bound = BindTsc::unpack_lenient(2047 << 12 | 3 << 4 | 1).expect("no codes");
    assert_eq!((bound.valid, bound.unit, bound.id), (true, 3, 2047));
    assert_eq!((2047 << 12 | 3 << 4 | 1) & !BindTsc::OWNED, 0);
}

/// Sources: OpenGL 3.2, 2.12.4, and piglit's `primitive-id-no-gs`, which NV92 passes. Numbering continues from one run
/// to the next run. Both triangles of a quad have the same number.
#[test]
fn primitives_have_numbers_without_a_geometry_program() {
    let slots = Slots { words: (0..8).flat_map(|vertex| [vertex, 77]).collect(), size: 2, count: 8 };
    let numbers = |topology: Topology, runs: &[Vec<usize>]| {
        let (slots, runs) = numbered(topology, 1, &slots, runs, true);
        runs.concat().iter().map(|vertex| slots.of(*vertex)[1]).collect::<Vec<u32>>()
    };
    assert_eq!(numbers(Topology::Points, &[vec![0, 1], vec![4]]), [0, 1, 2]);
    assert_eq!(numbers(Topology::TriangleStrip, &[vec![0, 1, 2, 3]]), [0, 0, 0, 1, 1, 1]);
    let quads = [vec![0, 1, 2, 3], vec![4, 5, 6, 7]];
    assert_eq!(numbers(Topology::Quads, &quads), [[0; 6], [1; 6]].concat());
    assert_eq!(numbers(Topology::Polygon, &quads[..1]), [0; 6]);
}

/// Sources: Mesa `nv50_tex.c`, which writes TEX_MISC only on GT200 and later chips, and piglit's
/// `arb_seamless_cubemap`, which NV92 fails.
#[test]
fn one_bit_says_whether_the_cubes_of_all_samplers_are_seamless() {
    let seamless = |word: u32| {
        let read = texture::Read { texture: 0, sampler: 3, samples: true };
        let (state, bindings, mut unknown) =
            (state(&[(m::TEX_MISC, word)]), Bindings::default(), Unknown::default());
        let (mut textures, mut images, mut memory) = (Textures::default(), Default::default(), [0; 64]);
        texture::bind(
            &mut textures,
            (FRAGMENT, Chip::Gt215),
            &[read].into_iter().collect(),
            (&state, &bindings, &mut unknown),
            &mut images,
            Vram::new(&mut memory),
        );
        textures.samplers[&3].sampler.seamless
    };
    assert!(seamless(1 << 2) && !seamless(0));
}
