//! Textures, samplers and coordinates from seeds.

use reconverge_simt::random::Random;
use reconverge_simt::texture::{Filter, Image, Level, MipFilter, Sampler, Shape, Wrap};

/// Returns the bits of a number. Most numbers are small, and some are special or arbitrary.
pub fn number(random: &mut Random) -> u32 {
    let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, -1e-40, 1e30, -1e30, 1.0];
    match random.below(8) {
        0 => random.one_of(&special).to_bits(),
        1 => random.next(),
        _ => (random.below(1 << 16) as f32 / 8192.0 - 4.0).to_bits(),
    }
}

/// Returns the bits of a coordinate. Most coordinates are in or near the image. The remaining coordinates have bits
/// that [`number`] returns.
pub fn coordinate(random: &mut Random) -> u32 {
    match random.below(8) {
        0 => number(random),
        1 => (random.below(64) as f32).to_bits(),
        2 => (random.below(64) as f32 / 16.0 - 1.0).to_bits(),
        _ => (random.below(1 << 16) as f32 / 32768.0 - 0.5).to_bits(),
    }
}

/// Returns an image of a shape with up to four levels.
pub fn image(shape: Shape, random: &mut Random) -> Image {
    let mut size = || random.one_of(&[1, 2, 3, 4, 5, 8]);
    let (width, height, depth) = (size(), size(), size());
    let [mut width, mut height, mut depth] = match shape {
        Shape::D1 => [width, 1, 1],
        Shape::D2 => [width, height, 1],
        Shape::D3 | Shape::D2Array => [width, height, depth],
        Shape::D1Array => [width, 1, depth],
        Shape::Cube => [width, width, 6],
        Shape::CubeArray => [width, width, 6 * depth],
    };
    let mut levels = Vec::new();
    for _ in 0..1 + random.below(4) {
        let texels = (0..width * height * depth).map(|_| [(); 4].map(|()| number(random))).collect();
        levels.push(Level { width, height, depth, texels });
        let before = [width, height, depth];
        (width, height) = ((width / 2).max(1), (height / 2).max(1));
        if shape == Shape::D3 {
            depth = (depth / 2).max(1);
        }
        if before == [width, height, depth] {
            break;
        }
    }
    Image::new(shape, levels).expect("the levels halve")
}

/// Returns an arbitrary sampler.
pub fn sampler(random: &mut Random) -> Sampler {
    let wraps = [
        Wrap::Repeat,
        Wrap::Mirror,
        Wrap::ClampToEdge,
        Wrap::Clamp,
        Wrap::ClampToBorder,
        Wrap::MirrorOnceToEdge,
        Wrap::MirrorOnce,
        Wrap::MirrorOnceToBorder,
    ];
    let filters = [Filter::Nearest, Filter::Linear];
    let (mag, min) = (random.one_of(&filters), random.one_of(&filters));
    let lod = |random: &mut Random| random.below(12) as f32 / 2.0 - 3.0;
    let bounded = random.once_in(3);
    Sampler {
        wrap: [(); 3].map(|()| random.one_of(&wraps)),
        mag,
        min,
        mip: random.one_of(&[MipFilter::None, MipFilter::Nearest, MipFilter::Linear]),
        border: [(); 4].map(|()| number(random)),
        min_lod: if bounded { lod(random) } else { -1000.0 },
        max_lod: if bounded { lod(random) } else { 1000.0 },
        lod_bias: if random.once_in(3) { lod(random) } else { 0.0 },
        unnormalised: random.once_in(4),
        seamless: random.once_in(3),
        anisotropy: if random.once_in(3) { random.below(17) as u8 } else { 0 },
    }
}
