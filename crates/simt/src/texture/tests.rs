//! Tests of the per-lane sampler.

use super::*;

fn bits(x: f32) -> [u32; 4] {
    [x.to_bits(); 4]
}

/// Returns an image in which texel n has the value n.
fn ramp(shape: Shape, width: u32, height: u32, depth: u32) -> Image {
    let texels = (0..width * height * depth).map(|n| bits(n as f32)).collect();
    Image::new(shape, vec![Level { width, height, depth, texels: Texels::Words(texels) }]).unwrap()
}

fn at(coordinates: [f32; 3]) -> Position {
    Position { coordinates, ..Position::default() }
}

fn read(image: &Image, sampler: &Sampler, coordinates: [f32; 3]) -> f32 {
    f32::from_bits(sample(image, sampler, &at(coordinates))[0])
}

fn wrap(wrap: Wrap) -> Sampler {
    Sampler { wrap: [wrap; 3], border: bits(-9.0), ..Sampler::default() }
}

#[test]
fn sizes_must_fit_shape_and_texels() {
    let level =
        |width, height, depth, count| Level { width, height, depth, texels: vec![[0; 4]; count].into() };
    assert!(Image::new(Shape::D2, vec![level(2, 2, 1, 4)]).is_ok());
    assert!(matches!(Image::new(Shape::D2, vec![level(2, 2, 1, 3)]), Err(ImageError::Texels { .. })));
    assert!(matches!(Image::new(Shape::D1, vec![level(2, 2, 1, 4)]), Err(ImageError::Size { .. })));
    assert!(matches!(Image::new(Shape::Cube, vec![level(2, 2, 5, 20)]), Err(ImageError::Size { .. })));
    assert!(matches!(Image::new(Shape::D2, vec![level(0, 2, 1, 0)]), Err(ImageError::Empty { .. })));
    assert!(matches!(Image::new(Shape::D2, vec![]), Err(ImageError::Empty { .. })));
    let huge = level(u32::MAX, u32::MAX, u32::MAX / 8, 0);
    assert!(Image::new(Shape::D3, vec![huge]).is_err());
}

#[test]
fn weights_are_those_that_sample_mixes_with() {
    let level = |width, value: f32| Level {
        width,
        height: 1,
        depth: 1,
        texels: vec![bits(value); width as usize].into(),
    };
    let image = Image::new(Shape::D2, vec![level(4, 0.0), level(2, 8.0), level(1, 16.0)]).unwrap();
    let linear =
        Sampler { mag: Filter::Linear, min: Filter::Linear, mip: MipFilter::Linear, ..Sampler::default() };
    let at = |lod| Position { coordinates: [0.4375, 0.5, 0.9], lod, ..Position::default() };
    // The coordinate is 1.75 texels on the first level, and 0.875 texels on the second level.
    assert_eq!(weights(&image, &linear, &at(0.0)), [0.25, 0.0, 0.0, 0.0]);
    assert_eq!(weights(&image, &linear, &at(1.25)), [0.375, 0.0, 0.0, 0.25]);
    assert_eq!(weights(&image, &linear, &at(9.0))[3], 0.0, "nothing is behind the last level");
    assert_eq!(f32::from_bits(sample(&image, &linear, &at(1.25))[0]), 8.0 + 0.25 * 8.0);
    assert_eq!(weights(&image, &Sampler::default(), &at(1.25)), [0.0; 4], "nearest mixes nothing");
}

#[test]
fn nearest_hits_every_texel_centre() {
    let image = ramp(Shape::D2, 8, 4, 1);
    for y in 0..4 {
        for x in 0..8 {
            let centre = [(x as f32 + 0.5) / 8.0, (y as f32 + 0.5) / 4.0, 0.0];
            assert_eq!(read(&image, &wrap(Wrap::Repeat), centre), (y * 8 + x) as f32);
        }
    }
}

#[test]
fn wrap_modes_at_nearest() {
    let image = ramp(Shape::D1, 4, 1, 1);
    let row = |mode| {
        [-5, -4, -1, 0, 3, 4, 7, 8].map(|x| read(&image, &wrap(mode), [(x as f32 + 0.5) / 4.0, 0.0, 0.0]))
    };
    assert_eq!(row(Wrap::Repeat), [3.0, 0.0, 3.0, 0.0, 3.0, 0.0, 3.0, 0.0]);
    assert_eq!(row(Wrap::Mirror), [3.0, 3.0, 0.0, 0.0, 3.0, 3.0, 0.0, 0.0]);
    assert_eq!(row(Wrap::ClampToEdge), [0.0, 0.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0]);
    assert_eq!(row(Wrap::ClampToBorder), [-9.0, -9.0, -9.0, 0.0, 3.0, -9.0, -9.0, -9.0]);
    assert_eq!(row(Wrap::MirrorOnceToEdge), [3.0, 3.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0]);
    assert_eq!(row(Wrap::MirrorOnceToBorder), [-9.0, 3.0, 0.0, 0.0, 3.0, -9.0, -9.0, -9.0]);
}

#[test]
fn linear_filtering_mixes_neighbours() {
    let image = ramp(Shape::D2, 2, 2, 1);
    let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
    assert_eq!(read(&image, &linear, [0.5, 0.5, 0.0]), 1.5);
    assert_eq!(read(&image, &linear, [0.25, 0.25, 0.0]), 0.0);
    assert_eq!(read(&image, &linear, [0.375, 0.25, 0.0]), 0.25);
    assert_eq!(read(&image, &linear, [0.0, 0.0, 0.0]), 0.0);
    let border = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToBorder) };
    assert_eq!(read(&image, &border, [0.0, 0.25, 0.0]), -4.5, "half border, half texel 0");
}

#[test]
fn linear_filtering_in_three_dimensions() {
    let image = ramp(Shape::D3, 2, 2, 2);
    let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
    assert_eq!(read(&image, &linear, [0.5, 0.5, 0.5]), 3.5);
    assert_eq!(read(&image, &linear, [0.25, 0.25, 0.5]), 2.0);
}

#[test]
fn unnormalised_coordinates_count_texels() {
    let image = ramp(Shape::D2, 5, 3, 1);
    let sampler = Sampler { unnormalised: true, ..wrap(Wrap::ClampToEdge) };
    assert_eq!(read(&image, &sampler, [3.5, 2.5, 0.0]), 13.0);
    assert_eq!(read(&image, &sampler, [99.0, 0.0, 0.0]), 4.0);
}

#[test]
fn layers_are_rounded_and_clamped() {
    let image = ramp(Shape::D2Array, 1, 1, 3);
    for (layer, found) in [(-5.0, 0.0), (0.4, 0.0), (1.5, 2.0), (9.0, 2.0), (f32::NAN, 0.0)] {
        let position = Position { layer, ..Position::default() };
        assert_eq!(f32::from_bits(sample(&image, &Sampler::default(), &position)[0]), found, "{layer}");
    }
}

/// The expected faces are those of OpenGL 3.0, table 3.19.
#[test]
fn cube_directions_choose_their_face() {
    let image = ramp(Shape::Cube, 1, 1, 6);
    let directions = [
        [1.0, 0.1, 0.1],
        [-1.0, 0.1, 0.1],
        [0.1, 1.0, 0.1],
        [0.1, -1.0, 0.1],
        [0.1, 0.1, 1.0],
        [0.1, 0.1, -1.0],
    ];
    for (face, direction) in directions.into_iter().enumerate() {
        assert_eq!(read(&image, &Sampler::default(), direction), face as f32);
    }
    assert_eq!(Face(0).project([2.0, 1.0, -1.0]), [0.75, 0.25]);
    assert_eq!(Face(3).project([1.0, -2.0, 1.0]), [0.75, 0.25]);
}

#[test]
fn the_accessed_level_is_clamped_and_whole_unless_levels_are_mixed() {
    let level = |size: u32| Level {
        width: size,
        height: size,
        depth: 1,
        texels: vec![bits(0.0); (size * size) as usize].into(),
    };
    let image = Image::new(Shape::D2, vec![level(4), level(2), level(1)]).unwrap();
    let read = |mip, lod| accessed_level(&image, &Sampler { mip, ..Sampler::default() }, lod);
    assert_eq!([-1.0, 0.75, 9.0].map(|lod| read(MipFilter::Linear, lod)), [0.0, 0.75, 2.0]);
    assert_eq!([-1.0, 0.75, 9.0].map(|lod| read(MipFilter::Nearest, lod)), [0.0, 1.0, 2.0]);
    assert_eq!(read(MipFilter::None, 2.0), 0.0);
}

#[test]
fn mip_levels_follow_the_level_of_detail() {
    let level = |size: u32, value: f32| Level {
        width: size,
        height: size,
        depth: 1,
        texels: vec![bits(value); (size * size) as usize].into(),
    };
    let image = Image::new(Shape::D2, vec![level(4, 0.0), level(2, 10.0), level(1, 20.0)]).unwrap();
    let value = |mip, lod| {
        let sampler = Sampler { mip, ..Sampler::default() };
        f32::from_bits(sample(&image, &sampler, &Position { lod, ..at([0.5; 3]) })[0])
    };
    assert_eq!(value(MipFilter::None, 2.0), 0.0);
    assert_eq!(
        [-1.0, 0.5, 0.51, 1.5, 9.0].map(|lod| value(MipFilter::Nearest, lod)),
        [0.0, 0.0, 10.0, 10.0, 20.0]
    );
    assert_eq!([-1.0, 0.5, 1.25, 9.0].map(|lod| value(MipFilter::Linear, lod)), [0.0, 5.0, 12.5, 20.0]);
    let biased = Sampler { mip: MipFilter::Nearest, lod_bias: 1.0, max_lod: 1.0, ..Sampler::default() };
    assert_eq!(f32::from_bits(sample(&image, &biased, &Position { lod: 5.0, ..at([0.5; 3]) })[0]), 10.0);
}

#[test]
fn the_level_of_detail_is_the_log_of_the_longer_gradient() {
    let image = ramp(Shape::D2, 8, 4, 1);
    let lod = |dx, dy| lod_of_gradients(&image, &Sampler::default(), dx, dy);
    assert_eq!(lod([0.25, 0.0, 0.0], [0.0, 0.25, 0.0]), 1.0);
    assert_eq!(lod([0.125, 0.0, 0.0], [0.0, 1.0, 0.0]), 2.0);
    assert_eq!(lod([0.0; 3], [0.0; 3]), f32::NEG_INFINITY);
}

#[test]
fn comparisons_are_filtered_after_the_test() {
    let image = ramp(Shape::D1, 2, 1, 1);
    let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
    let share = sample_compare(&image, &linear, &at([0.625, 0.0, 0.0]), Compare::Less, 0.5);
    assert_eq!(share, 0.75);
    assert!(!Compare::Less.passes(f32::NAN, 1.0) && Compare::NotEqual.passes(f32::NAN, 1.0));
}

#[test]
fn gather_gives_the_four_neighbours() {
    let image = ramp(Shape::D2, 2, 2, 1);
    let texels = gather(&image, &wrap(Wrap::ClampToEdge), &at([0.5, 0.5, 0.0]));
    assert_eq!(texels.map(|texel| f32::from_bits(texel[0])), [2.0, 3.0, 1.0, 0.0]);
}

#[test]
fn an_infinite_neighbour_of_weight_zero_does_not_count() {
    let texels = vec![bits(1.0), bits(f32::INFINITY)];
    let image = Image::flat(2, 1, texels).unwrap();
    let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
    assert_eq!(read(&image, &linear, [0.25, 0.5, 0.0]), 1.0);
}

#[test]
fn levels_halve_down_to_one() {
    let level = |width: u32, height: u32, depth: u32| {
        let texels = vec![[0; 4]; (width * height * depth) as usize];
        Level { width, height, depth, texels: texels.into() }
    };
    assert!(Image::new(Shape::D2, vec![level(5, 2, 1), level(2, 1, 1), level(1, 1, 1)]).is_ok());
    assert!(Image::new(Shape::D3, vec![level(4, 4, 4), level(2, 2, 2)]).is_ok());
    assert!(Image::new(Shape::D2Array, vec![level(4, 4, 3), level(2, 2, 3)]).is_ok());
    let broken = [
        (Shape::D2, vec![level(4, 4, 1), level(4, 4, 1)], 1),
        (Shape::D3, vec![level(4, 4, 4), level(2, 2, 4)], 1),
        (Shape::D2Array, vec![level(4, 4, 3), level(2, 2, 1)], 1),
    ];
    for (shape, levels, at) in broken {
        let error = Image::new(shape, levels).unwrap_err();
        assert!(matches!(error, ImageError::Chain { level, .. } if level == at), "{error}");
    }
    let surplus = Image::new(Shape::D2, vec![level(2, 1, 1), level(1, 1, 1), level(1, 1, 1)]);
    assert_eq!(surplus, Err(ImageError::Surplus { level: 2 }));
}

#[test]
fn clamp_never_reads_the_border_at_nearest() {
    let image = ramp(Shape::D1, 4, 1, 1);
    let row = |mode| [-2.0, -0.1, 0.1, 0.9, 1.0, 3.0].map(|s| read(&image, &wrap(mode), [s, 0.0, 0.0]));
    assert_eq!(row(Wrap::Clamp), [0.0, 0.0, 0.0, 3.0, 3.0, 3.0]);
    assert_eq!(row(Wrap::MirrorOnce), [3.0, 0.0, 0.0, 3.0, 3.0, 3.0]);
}

#[test]
fn clamp_mixes_half_of_the_border_however_far_outside() {
    let image = ramp(Shape::D1, 4, 1, 1);
    let row = |mode| {
        let sampler = Sampler { mag: Filter::Linear, ..wrap(mode) };
        [-7.0, 0.0, 0.25, 1.0, 1.125, 7.0, f32::INFINITY].map(|s| read(&image, &sampler, [s, 0.0, 0.0]))
    };
    // Outside the image, each result is the mean of two values: the border colour, which is -9, and the texel at the
    // edge, which is 0 or 3.
    assert_eq!(row(Wrap::Clamp), [-4.5, -4.5, 0.5, -3.0, -3.0, -3.0, -3.0]);
    // At 0, the image is mixed with its mirror image, not with the border.
    assert_eq!(row(Wrap::MirrorOnce), [-3.0, 0.0, 0.5, -3.0, -3.0, -3.0, -3.0]);
    assert_eq!(row(Wrap::ClampToBorder), [-9.0, -4.5, 0.5, -3.0, -9.0, -9.0, -9.0]);
}

#[test]
fn linear_wrap_modes_at_the_seam() {
    let image = ramp(Shape::D1, 4, 1, 1);
    let at_zero_and_one = |mode| {
        let sampler = Sampler { mag: Filter::Linear, ..wrap(mode) };
        [0.0, 1.0].map(|s| read(&image, &sampler, [s, 0.0, 0.0]))
    };
    assert_eq!(at_zero_and_one(Wrap::Repeat), [1.5, 1.5]);
    assert_eq!(at_zero_and_one(Wrap::Mirror), [0.0, 3.0]);
    assert_eq!(at_zero_and_one(Wrap::ClampToEdge), [0.0, 3.0]);
    assert_eq!(at_zero_and_one(Wrap::MirrorOnceToEdge), [0.0, 3.0]);
    assert_eq!(at_zero_and_one(Wrap::MirrorOnceToBorder), [0.0, -3.0]);
}

#[test]
fn offsets_move_by_whole_texels_before_wrapping() {
    let image = ramp(Shape::D1, 4, 1, 1);
    let read = |mode, offset: i32| {
        let position = Position { offset: [offset, 0, 0], ..at([0.125, 0.0, 0.0]) };
        f32::from_bits(sample(&image, &wrap(mode), &position)[0])
    };
    assert_eq!([-1, 1, 5].map(|offset| read(Wrap::Repeat, offset)), [3.0, 1.0, 1.0]);
    assert_eq!([-1, 1, 5].map(|offset| read(Wrap::ClampToEdge, offset)), [0.0, 1.0, 3.0]);
    let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::Clamp) };
    let far = Position { offset: [7, 0, 0], ..at([0.125, 0.0, 0.0]) };
    assert_eq!(f32::from_bits(sample(&image, &linear, &far)[0]), -3.0, "half of 3, half of the border");
}

#[test]
fn a_level_mixed_with_itself_is_unchanged() {
    let level = |size: u32, value: u32| Level {
        width: size,
        height: 1,
        depth: 1,
        texels: vec![[value; 4]; size as usize].into(),
    };
    // In binary32, 0.1 * 0.7 + 0.1 * 0.3 is not 0.1, and -0 * 1 + 1 * 0 is +0.
    let (tenth, minus_zero) = (0.1f32.to_bits(), (-0.0f32).to_bits());
    let image = Image::new(Shape::D1, vec![level(4, 0), level(2, minus_zero), level(1, tenth)]).unwrap();
    let sampler = Sampler { mip: MipFilter::Linear, max_lod: f32::INFINITY, ..Sampler::default() };
    let read = |lod| sample(&image, &sampler, &Position { lod, ..at([0.5; 3]) })[0];
    assert_eq!(read(1.0), minus_zero);
    for lod in [2.0, 2.3, 9.7, f32::INFINITY] {
        assert_eq!(read(lod), tenth, "{lod}");
    }
}

#[test]
fn a_texel_of_weight_zero_does_not_count_on_either_side() {
    // The coordinate is 2^-25 below the centre of a texel, so the weight of that texel rounds to 1.
    let texels = vec![bits(f32::INFINITY), bits(1.0)];
    let image = Image::flat(2, 1, texels).unwrap();
    let linear = Sampler { mag: Filter::Linear, unnormalised: true, ..wrap(Wrap::Repeat) };
    let just_below_the_first_centre = 0.5f32.next_down();
    let texels = vec![bits(1.0), bits(f32::INFINITY)];
    let turned = Image::flat(2, 1, texels).unwrap();
    assert_eq!(read(&turned, &linear, [just_below_the_first_centre, 0.5, 0.0]), 1.0);
    assert_eq!(read(&image, &linear, [1.5, 0.5, 0.0]), 1.0);
}

#[test]
fn a_nan_that_filtering_makes_is_the_quiet_one() {
    let texels = vec![[0xffc1_2345; 4], [0x7f80_0001; 4]];
    let image = Image::flat(2, 1, texels).unwrap();
    let linear = Sampler { mag: Filter::Linear, ..wrap(Wrap::ClampToEdge) };
    assert_eq!(sample(&image, &linear, &at([0.5, 0.5, 0.0])), [0x7fc0_0000; 4]);
    // Nearest filtering returns the bits of the texel.
    let nearest = wrap(Wrap::ClampToEdge);
    assert_eq!(sample(&image, &nearest, &at([0.25, 0.5, 0.0])), [0xffc1_2345; 4]);
    assert_eq!(sample(&image, &nearest, &at([0.75, 0.5, 0.0])), [0x7f80_0001; 4]);
}

#[test]
fn an_axis_that_the_image_does_not_have_has_no_say_in_the_level_of_detail() {
    let image = ramp(Shape::D2, 8, 4, 1);
    let (normal, unscaled) = (Sampler::default(), Sampler { unnormalised: true, ..Sampler::default() });
    for stray in [100.0, f32::INFINITY, f32::NAN] {
        assert_eq!(lod_of_gradients(&image, &normal, [0.25, 0.0, stray], [0.0, 0.25, stray]), 1.0);
        assert_eq!(lod_of_gradients(&image, &unscaled, [2.0, 0.0, stray], [0.0, 1.0, stray]), 1.0);
    }
    let volume = ramp(Shape::D3, 2, 2, 2);
    assert_eq!(lod_of_gradients(&volume, &unscaled, [0.0, 0.0, 4.0], [0.0; 3]), 2.0);
}

#[test]
fn a_quad_gives_the_level_of_detail_of_its_differences() {
    let image = ramp(Shape::D2, 8, 8, 1);
    let quad = [[0.5, 0.5, 0.0], [0.75, 0.5, 0.0], [0.5, 0.625, 0.0]];
    assert_eq!(lod_of_quad(&image, &Sampler::default(), quad[0], quad), 1.0);
}

#[test]
fn on_a_cube_the_level_of_detail_is_that_on_the_face() {
    let image = ramp(Shape::Cube, 8, 8, 6);
    // The distance to the lane on the right is a quarter of the face's width. A face spans the range from -1 to 1, so
    // this distance is 0.5. The lengths of the directions have no effect.
    let quad = [[0.0, 0.0, 1.0], [1.0, 0.0, 2.0], [0.0, 0.0, 4.0]];
    assert_eq!(lod_of_quad(&image, &Sampler::default(), quad[0], quad), 1.0);
}

/// OpenGL 3.0, table 3.19. The test finds the texels of each face by their coordinates s and t.
#[test]
fn each_face_has_its_own_axes() {
    // For each face, its direction, the direction in which s grows, and the direction in which t grows.
    let faces: [[[f32; 3]; 3]; 6] = [
        [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, -1.0, 0.0]],
        [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]],
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]],
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]],
        [[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]],
    ];
    let image = ramp(Shape::Cube, 4, 4, 6);
    for (number, [out, along_s, along_t]) in faces.into_iter().enumerate() {
        for y in 0..4 {
            for x in 0..4 {
                let (s, t) = (x as f32 / 2.0 - 0.75, y as f32 / 2.0 - 0.75);
                let direction = [0, 1, 2].map(|i| 3.0 * (out[i] + s * along_s[i] + t * along_t[i]));
                assert_eq!(Face::of(direction), Face(number as u8));
                let texel = (number as u32 * 16 + y * 4 + x) as f32;
                assert_eq!(read(&image, &Sampler::default(), direction), texel, "{direction:?}");
            }
        }
    }
}

#[test]
fn on_the_edges_of_a_cube_z_wins_over_y_over_x() {
    assert_eq!(Face::of([1.0, 1.0, 1.0]), Face(4));
    assert_eq!(Face::of([-1.0, 1.0, -1.0]), Face(5));
    assert_eq!(Face::of([1.0, -1.0, 0.5]), Face(3));
    assert_eq!(Face::of([0.0, 0.0, -0.0]), Face(4), "as the CUBE instruction of R700: -0 is not below 0");
    let image = ramp(Shape::Cube, 2, 2, 6);
    assert_eq!(read(&image, &Sampler::default(), [0.0, 0.0, 0.0]), 16.0, "the first texel of +z");
    assert_eq!(read(&image, &Sampler::default(), [1.0, -1.0, 1.0]), 19.0, "the far corner of +z");
}

/// OpenGL 3.2, 3.8.8: with TEXTURE_CUBE_MAP_SEAMLESS, a filter also reads texels of the adjacent face. At a corner of
/// the cube, three texels meet.
#[test]
fn seamless_filters_mix_texels_of_adjacent_faces() {
    let image = ramp(Shape::Cube, 2, 2, 6);
    let linear = Sampler { mag: Filter::Linear, min: Filter::Linear, ..Sampler::default() };
    let seamless = Sampler { seamless: true, ..linear };
    // The direction points at the middle of the edge between +z (texels 16 to 19) and +x (texels 0 to 3).
    let edge = [1.0, 0.0, 1.0];
    assert_eq!(read(&image, &linear, edge), (17. + 19.) / 2.);
    assert_eq!(read(&image, &seamless, edge), ((17. + 19.) / 2. + (0. + 2.) / 2.) / 2.);
    // At the corner of +z, +x and +y, the texels of these faces are 17, 0 and 11.
    let corner = read(&image, &seamless, [1.0, 1.0, 1.0]);
    assert!((corner - (17. + 0. + 11.) / 3.).abs() < 1e-5, "{corner}");
    // At every edge, both faces return nearly the same result.
    let single = Image::new(
        Shape::Cube,
        vec![Level { width: 5, height: 5, depth: 6, texels: (0..150).map(|n| bits(n as f32)).collect() }],
    );
    let single = single.unwrap();
    for (axis, along) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        for (step, sign) in (-10..=10).flat_map(|step| [(step, 1.0), (step, -1.0)]) {
            let other = 3 - axis - along;
            let at = |first: f32, second: f32| {
                let mut direction = [step as f32 / 11.0; 3];
                (direction[axis], direction[along]) = (first * sign, second);
                direction[other] = step as f32 / 11.0;
                read(&single, &seamless, direction)
            };
            let [here, there] = [at(1.00001, 1.0), at(1.0, 1.00001)];
            assert!((here - there).abs() < 0.02, "{axis} {along} {step} {sign}: {here}, {there}");
        }
    }
}

#[test]
fn faces_as_layers_keep_their_texels() {
    let cube = ramp(Shape::Cube, 2, 2, 6);
    let layers = cube.clone().with_faces_as_layers();
    assert_eq!((layers.shape(), layers.levels()), (Shape::D2Array, cube.levels()));
    let position = Position { layer: 3.0, ..at([0.75, 0.25, 0.0]) };
    assert_eq!(f32::from_bits(sample(&layers, &Sampler::default(), &position)[0]), 13.0);
    let flat = ramp(Shape::D2, 2, 2, 1);
    assert_eq!(flat.clone().with_faces_as_layers(), flat);
}

#[test]
fn nearest_always_gives_a_texel_or_the_border() {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        f32::from_bits(seed as u32)
    };
    let modes = [
        Wrap::Repeat,
        Wrap::Mirror,
        Wrap::ClampToEdge,
        Wrap::Clamp,
        Wrap::ClampToBorder,
        Wrap::MirrorOnceToEdge,
        Wrap::MirrorOnce,
        Wrap::MirrorOnceToBorder,
    ];
    let images = [
        ramp(Shape::D1, 5, 1, 1),
        ramp(Shape::D2, 3, 5, 1),
        ramp(Shape::D3, 3, 4, 2),
        ramp(Shape::Cube, 2, 2, 6),
        ramp(Shape::CubeArray, 2, 2, 12),
    ];
    for round in 0..100_000 {
        let image = &images[round % images.len()];
        let position = Position {
            coordinates: [next(), next(), next()],
            layer: next(),
            offset: [next(), next(), next()].map(|bits| bits.to_bits() as i32),
            lod: next(),
        };
        // The number of images and the number of modes have no common factor, so every combination of an image and a
        // mode occurs.
        let mut sampler = wrap(modes[round % modes.len()]);
        sampler.unnormalised = round % 3 == 0;
        let value = f32::from_bits(sample(image, &sampler, &position)[0]);
        let known = value == -9.0 || (value >= 0.0 && (value as usize) < image.levels[0].texels().count());
        assert!(known && value.fract() == 0.0, "{value} at {position:?}");
        // Linear filtering must not panic for any bit pattern.
        sampler.mag = Filter::Linear;
        sampler.mip = MipFilter::Linear;
        sample(image, &sampler, &position);
        sample_bits(image, &sampler, &position);
        sample_compare(image, &sampler, &position, Compare::Less, next());
        gather(image, &sampler, &position);
        let mut direction = || [next(), next(), next()];
        let quad = [direction(), direction(), direction()];
        lod_of_quad(image, &sampler, quad[0], quad);
    }
}
