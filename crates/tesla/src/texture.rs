//! Texture instructions. This file computes four components from the source registers. (6.9)
//!
//! [`reconverge_simt::texture`] reads and filters texels. This file defines the meaning of each source register, the
//! level of detail and the result. Textures and samplers are bound separately, by their numbers in the instruction. The
//! documents give the order of the sources. Interpretations of open questions are marked.

use std::sync::Arc;

use litemap::LiteMap;
use reconverge_simt::texture::anisotropy::Footprint;
use reconverge_simt::texture::{
    Compare, Face, Image, Position, Sampler, Shape, accessed_level, gather, gradients_of_quad,
    lod_of_gradients, sample, sample_bits, sample_compare,
};

use crate::trap::Cause;

/// A texture that is bound to a number.
#[derive(Clone, Debug)]
pub struct Texture {
    /// The texels.
    pub image: Arc<Image>,
    /// Whether the texels are integers, which are never filtered.
    pub integer: bool,
    /// The result of comparisons with texels.
    pub compared: Compared,
    /// The faces of a cube array, as the layers of a 2D array. Instructions without the cube form read these layers.
    /// `texprep` computes the numbers of these layers. Mesa's driver reads a cube array with five sources in this way
    /// (`nv50_ir_lowering_nv50.cpp`).
    faces: Option<Arc<Image>>,
}

impl Texture {
    /// Creates a texture whose comparisons are [`Compared::default`].
    pub fn new(image: Arc<Image>, integer: bool) -> Texture {
        let is_array = image.shape() == Shape::CubeArray;
        let faces = is_array.then(|| Arc::new((*image).clone().with_faces_as_layers()));
        Texture { image, integer, compared: Compared::default(), faces }
    }

    /// Returns the image that instructions sample. `cube` means that the instruction has the cube form.
    pub(crate) fn sampled(&self, cube: bool) -> &Arc<Image> {
        self.faces.as_ref().filter(|_| !cube).unwrap_or(&self.image)
    }
}

/// The value of one component in the result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The fraction of texels that pass the comparison, from 0 to 1.
    Share,
    /// Zero, as a float.
    Zero,
    /// One, as a float.
    One,
}

/// The rules for a comparison with a depth texture. The rules state whether the reference value is clamped. The rules
/// also state the components of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The components in the order from red to alpha. The texture's entry specifies these components.
    pub components: [Component; 4],
    /// Whether the reference value is clamped to [0, 1], for fixed-point depth. (OpenGL 3.3, 3.8.16)
    pub clamps: bool,
}

impl Default for Compared {
    /// **Open** (6.9): red, green and blue contain the fraction, and alpha is 1. OpenGL defines this result for a depth
    /// texture that is read as luminance. The reference value is not clamped.
    fn default() -> Compared {
        let share = Component::Share;
        Compared { components: [share, share, share, Component::One], clamps: false }
    }
}

impl Compared {
    /// Returns the bits of the reference value, clamped if requested.
    pub(crate) fn reference(self, bits: u32) -> u32 {
        match f32::from_bits(bits) {
            _ if !self.clamps => bits,
            value if value > 0.0 => value.min(1.0).to_bits(),
            // This case includes NaN.
            _ => 0,
        }
    }

    /// Returns the four components of the result. `share` is the fraction of texels that pass the comparison.
    pub(crate) fn spread(self, share: f32) -> [u32; 4] {
        self.components.map(|component| match component {
            Component::Share => share.to_bits(),
            Component::Zero => 0,
            Component::One => 1f32.to_bits(),
        })
    }
}

/// A sampler that is bound to a number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TextureSampler {
    /// Filtering, wrapping, level of detail.
    pub sampler: Sampler,
    /// The depth comparison, if any. In a comparison, the program provides a reference value and receives the fraction
    /// of texels that pass.
    pub compare: Option<Compare>,
}

/// The textures and samplers of a launch.
#[derive(Clone, Debug, Default)]
pub struct Textures {
    /// Textures by texture number.
    pub textures: LiteMap<u8, Texture>,
    /// Samplers by sampler number.
    pub samplers: LiteMap<u8, TextureSampler>,
}

impl Textures {
    /// Returns whether both values have the same samplers and the same textures. Two textures are different if they
    /// have different images in memory, even if the texels are equal.
    pub(crate) fn is_same(&self, other: &Textures) -> bool {
        let texture = |((id, one), (number, other)): ((&u8, &Texture), (&u8, &Texture))| {
            let Texture { image, integer, compared, faces: _ } = one;
            id == number
                && Arc::ptr_eq(image, &other.image)
                && (*integer, *compared) == (other.integer, other.compared)
        };
        self.textures.len() == other.textures.len()
            && self.textures.iter().zip(&other.textures).all(texture)
            && self.samplers == other.samplers
    }
}

impl Textures {
    /// Binds an image and its sampler to one number. Most programs use one number for both.
    pub fn bind(&mut self, number: u8, image: Arc<Image>, sampler: Sampler) {
        self.textures.insert(number, Texture::new(image, false));
        self.samplers.insert(number, TextureSampler { sampler, compare: None });
    }
}

/// The kind of read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// `texauto`: the level of detail comes from the quad.
    Auto,
    /// `texbias`: the level of detail is the level of `texauto` plus the last source.
    Bias,
    /// `texlod`: the level of detail is the last source.
    Lod,
    /// `texfetch`: reads one texel at an integer position. `texfetch` does not use a sampler.
    Fetch,
    /// `texsize`: returns the size of a level instead of a texel.
    Size,
    /// `texgather`: returns one component of four texels.
    Gather,
    /// `texprep`: returns the position on a cube face to which a direction points. `texprep` does not read a texel.
    Prep,
    /// `texquerylod`: returns the level of detail instead of a texel.
    QueryLod,
}

/// A texture read of one lane, with the data of the lane's quad.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The kind of read.
    pub read: Read,
    /// Texture number.
    pub texture: u8,
    /// Sampler number.
    pub sampler: u8,
    /// Source registers of the four lanes of the quad. Each lane has `count` source registers.
    pub quad: &'a [[u32; 4]; 4],
    /// Number of source registers of the instruction.
    pub count: usize,
    /// Position of the lane in its quad, 0 to 3.
    pub place: usize,
    /// Texel offsets.
    pub offset: [i32; 3],
    /// Whether the lanes of the quad determine the derivatives. Otherwise, the derivatives are zero.
    pub derivatives: bool,
    /// Whether the instruction has the cube form.
    pub cube: bool,
}

/// The largest array layer. Larger layer numbers are clamped to this layer. (6.9)
pub(crate) const LAST_LAYER: u32 = 511;

/// **Open** (13.12): `texgather` returns the red component of the texels.
pub const GATHERED_COMPONENT: usize = 0;

/// The values of a lane's source registers. Each field has one meaning.
struct Sources {
    coordinates: [u32; 3],
    layer: u32,
    reference: u32,
    last: u32,
}

/// Returns the number of coordinates of an image, and whether the source after the coordinates is a layer.
fn target(shape: Shape) -> (usize, bool) {
    match shape {
        Shape::D1 => (1, false),
        Shape::D2 => (2, false),
        Shape::D3 | Shape::Cube => (3, false),
        Shape::D1Array => (1, true),
        Shape::D2Array => (2, true),
        Shape::CubeArray => (3, true),
    }
}

/// The index of each source among the source registers. The order of the sources is: coordinates, layer, depth
/// reference, and then bias or level of detail. (6.9)
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceOrder {
    pub(crate) coordinates: [Option<usize>; 3],
    pub(crate) layer: Option<usize>,
    pub(crate) reference: Option<usize>,
    pub(crate) last: usize,
}

impl SourceOrder {
    pub(crate) fn of(shape: Shape, compares: bool) -> SourceOrder {
        let (axes, layered) = target(shape);
        let reference = axes + usize::from(layered);
        SourceOrder {
            coordinates: [0, 1, 2].map(|axis| (axis < axes).then_some(axis)),
            layer: layered.then_some(axes),
            reference: compares.then_some(reference),
            last: reference + usize::from(compares),
        }
    }
}

/// Returns the values of a lane's source registers. **Open**: if the instruction does not have a source, the value of
/// the source is 0.
fn sources(words: &[u32; 4], count: usize, shape: Shape, compares: bool) -> Sources {
    let order = SourceOrder::of(shape, compares);
    let word = |number: usize| words.iter().take(count).nth(number).copied().unwrap_or(0);
    let optional = |number: Option<usize>| number.map_or(0, word);
    Sources {
        coordinates: order.coordinates.map(optional),
        layer: optional(order.layer).min(LAST_LAYER),
        reference: optional(order.reference),
        last: word(order.last),
    }
}

/// Executes the read of one lane and returns four components.
///
/// # Errors
/// The texture or the sampler is not bound.
pub fn read(bound: &Textures, request: &Request) -> Result<[u32; 4], Cause> {
    let texture = bound.textures.get(&request.texture).ok_or(Cause::NoTexture(request.texture))?;
    let image: &Image = &texture.image;
    let own = &request.quad[request.place];
    match request.read {
        Read::Size => return Ok(size(image, own[0])),
        Read::Fetch => return Ok(fetch(image, own, request.count, request.offset)),
        Read::Prep => return Ok(prep(own)),
        Read::Auto | Read::Bias | Read::Lod | Read::Gather | Read::QueryLod => {}
    }
    let image: &Image = texture.sampled(request.cube);
    let sampler = bound.samplers.get(&request.sampler).ok_or(Cause::NoSampler(request.sampler))?;
    let compares = sampler.compare.is_some();
    let of = |lane: usize| sources(&request.quad[lane], request.count, image.shape(), compares);
    let here = of(request.place);
    let mut footprint = Footprint::default();
    let lod = match request.read {
        Read::Lod => f32::from_bits(here.last),
        Read::Auto | Read::Gather | Read::Bias | Read::QueryLod if request.derivatives => {
            let bias = if request.read == Read::Bias { f32::from_bits(here.last) } else { 0.0 };
            // The coordinates of the lanes 0 (upper left), 1 (upper right) and 2 (lower left).
            let quad = [0, 1, 2].map(|lane| of(lane).coordinates.map(f32::from_bits));
            let [dx, dy] = gradients_of_quad(image, here.coordinates.map(f32::from_bits), quad);
            footprint = Footprint::new(image, &sampler.sampler, [dx, dy]);
            lod_of_gradients(image, &sampler.sampler, dx, dy) + bias
        }
        // The coordinates do not change between pixels. The level of detail is the logarithm of zero, and a bias does
        // not change this level.
        Read::Auto | Read::Bias | Read::Gather | Read::Fetch | Read::Size | Read::Prep | Read::QueryLod => {
            f32::NEG_INFINITY
        }
    };
    if request.read == Read::QueryLod {
        // The level of detail includes the bias, and is not clamped to the sampler's range. (ARB_texture_query_lod)
        let biased = lod + sampler.sampler.lod_bias;
        return Ok(query_lod(accessed_level(image, &sampler.sampler, lod), biased));
    }
    let position = Position {
        coordinates: here.coordinates.map(f32::from_bits),
        layer: here.layer as f32,
        offset: request.offset,
        lod,
    };
    if request.read == Read::Gather {
        return Ok(gather(image, &sampler.sampler, &position).map(|texel| texel[GATHERED_COMPONENT]));
    }
    Ok(match sampler.compare {
        Some(compare) => {
            let reference = f32::from_bits(texture.compared.reference(here.reference));
            let share = |place: &Position| {
                [sample_compare(image, &sampler.sampler, place, compare, reference).to_bits(); 4]
            };
            texture.compared.spread(f32::from_bits(footprint.mean(image, &position, share)[0]))
        }
        None if texture.integer => sample_bits(image, &sampler.sampler, &position),
        None => footprint.mean(image, &position, |place| sample(image, &sampler.sampler, place)),
    })
}

/// Fetches a texel. The sources are x, y, z, layer and level of detail as integers. **Open**: a position outside the
/// image reads 0.
pub(crate) fn fetch(image: &Image, words: &[u32; 4], count: usize, offset: [i32; 3]) -> [u32; 4] {
    let here = sources(words, count, image.shape(), false);
    let [x, y, z] = [0, 1, 2].map(|axis| i64::from(here.coordinates[axis] as i32) + i64::from(offset[axis]));
    let (_, layered) = target(image.shape());
    let (y, z) = match image.shape() {
        Shape::D1 | Shape::D1Array => (0, i64::from(here.layer)),
        Shape::D2Array | Shape::CubeArray => (y, i64::from(here.layer)),
        Shape::D2 | Shape::D3 | Shape::Cube => (y, z),
    };
    let z = if layered || matches!(image.shape(), Shape::D3 | Shape::Cube) { z } else { 0 };
    image.texel(here.last as usize, x, y, z).unwrap_or_default()
}

/// **Open**: `texquerylod` returns the accessed level and then the level of detail. Each is a signed number in units of
/// 1/256. Mesa expects this order. Mesa's compiler swaps the two values on chips after Tesla, but not on the chips of
/// this crate. (Mesa, `handleTXLQ`)
fn query_lod(level: f32, lod: f32) -> [u32; 4] {
    let fixed = |value: f32| (value * 256.0) as i32 as u32;
    [fixed(level), fixed(lod), 0, 0]
}

/// **Open**: `texprep` converts a direction and a layer to coordinates. With the converted coordinates, `texauto` reads
/// the faces of a cube array as the layers of a 2D array. The coordinates are s, t, and 6 × layer + face. (Mesa,
/// `OP_TEXPREP`: "turn cube map array into 2d array coordinates") [`Image::with_faces_as_layers`] creates the layers of
/// the 2D array.
fn prep(words: &[u32; 4]) -> [u32; 4] {
    let direction = [0, 1, 2].map(|axis| f32::from_bits(words[axis]));
    let face = Face::of(direction);
    let [s, t] = face.project(direction);
    [s.to_bits(), t.to_bits(), words[3].wrapping_mul(6).wrapping_add(face.0.into()), 0]
}

/// Returns width, height, depth and number of levels. The source selects the level to which the sizes belong. For an
/// array, the number of layers comes after the sizes. The number is in y for one dimension, and in z for two
/// dimensions. An NV92 passes tests of `textureSize` for both kinds of array. The driver of the NV92 does not change y
/// and z. **Open**: the depth of a cube is 1, and the sizes of a level beyond the last level are 0.
fn size(image: &Image, level: u32) -> [u32; 4] {
    let levels = image.levels().len() as u32;
    let Some(size) = image.levels().get(level as usize) else { return [0, 0, 0, levels] };
    let (height, depth) = match image.shape() {
        Shape::D1Array => (size.depth, 1),
        Shape::D3 | Shape::D2Array => (size.height, size.depth),
        Shape::CubeArray => (size.height, size.depth / 6),
        Shape::D1 | Shape::D2 | Shape::Cube => (size.height, 1),
    };
    [size.width, height, depth, levels]
}

#[cfg(test)]
mod tests {
    use reconverge_simt::texture::{Filter, Level, MipFilter, Wrap};

    use super::*;

    fn f(value: f32) -> u32 {
        value.to_bits()
    }

    /// Creates an image in which texel n of level l has the value 100 l + n.
    fn image(shape: Shape, sizes: &[[u32; 3]]) -> Arc<Image> {
        let level = |(number, &[width, height, depth]): (usize, &[u32; 3])| Level {
            width,
            height,
            depth,
            texels: (0..width * height * depth)
                .map(|n| [f((100 * number as u32 + n) as f32), 1, 2, 3])
                .collect(),
        };
        Arc::new(Image::new(shape, sizes.iter().enumerate().map(level).collect()).unwrap())
    }

    fn bound(image: Arc<Image>, sampler: Sampler, compare: Option<Compare>) -> Textures {
        let mut textures = Textures::default();
        textures.bind(2, image, Sampler { wrap: [Wrap::ClampToEdge; 3], ..sampler });
        textures.samplers.entry(2).and_modify(|entry| entry.compare = compare);
        textures
    }

    fn request(read: Read, quad: &[[u32; 4]; 4], count: usize) -> Request<'_> {
        Request {
            read,
            texture: 2,
            sampler: 2,
            quad,
            count,
            place: 0,
            offset: [0; 3],
            derivatives: true,
            cube: false,
        }
    }

    fn red(textures: &Textures, request: &Request) -> f32 {
        f32::from_bits(read(textures, request).unwrap()[0])
    }

    #[test]
    fn a_layer_follows_the_coordinates_and_is_an_integer() {
        let textures = bound(image(Shape::D2Array, &[[2, 2, 3]]), Sampler::default(), None);
        let words = [f(0.75), f(0.25), 2, 0];
        assert_eq!(red(&textures, &request(Read::Auto, &[words; 4], 3)), 9.0);
    }

    #[test]
    fn a_reference_follows_the_coordinates_when_the_sampler_compares() {
        let textures = bound(image(Shape::D2, &[[2, 1, 1]]), Sampler::default(), Some(Compare::LessEqual));
        let share =
            |reference: f32| red(&textures, &request(Read::Auto, &[[f(0.75), 0, f(reference), 0]; 4], 3));
        assert_eq!((share(1.0), share(1.5)), (1.0, 0.0));
    }

    #[test]
    fn the_level_of_detail_comes_from_the_quad_a_bias_or_a_register() {
        let mips = Sampler { mip: MipFilter::Nearest, ..Sampler::default() };
        let textures = bound(image(Shape::D2, &[[4, 4, 1], [2, 2, 1], [1, 1, 1]]), mips, None);
        // Neighbouring lanes are half the image apart, which is two texels of level 0.
        let at = |x: f32, y: f32, last: f32| [f(x), f(y), f(last), 0];
        let quad = |last| [at(0.1, 0.1, last), at(0.6, 0.1, last), at(0.1, 0.6, last), at(0.6, 0.6, last)];
        assert_eq!(red(&textures, &request(Read::Auto, &quad(0.0), 2)), 100.0);
        assert_eq!(red(&textures, &request(Read::Bias, &quad(1.0), 3)), 200.0);
        assert_eq!(red(&textures, &request(Read::Lod, &quad(2.0), 3)), 200.0);
        let quad = quad(0.0);
        let still = Request { derivatives: false, ..request(Read::Auto, &quad, 2) };
        assert_eq!(red(&textures, &still), 0.0);
    }

    /// Mesa `nv50_tex.c`, NV50_TEXVIEW_FILTER_MSAA8: a pixel has eight samples, four per row. Two bilinear filters at
    /// different positions cover the eight samples. The mean of the two filters is the mean of the samples.
    #[test]
    fn a_filter_along_the_longer_side_of_a_pixel_is_the_mean_of_its_texels() {
        let linear =
            Sampler { mag: Filter::Linear, min: Filter::Linear, unnormalised: true, ..Sampler::default() };
        let textures =
            |anisotropy: u8| bound(image(Shape::D2, &[[8, 4, 1]]), Sampler { anisotropy, ..linear }, None);
        let at = |x: f32, y: f32| [f(x), f(y), 0, 0];
        let quad = [at(2.0, 1.0), at(6.0, 1.0), at(2.0, 3.0), at(6.0, 3.0)];
        // Without anisotropy, the filter uses the two middle texels in each of the two rows.
        assert_eq!(red(&textures(1), &request(Read::Auto, &quad, 2)), 5.5);
        let pixel = |place: usize| red(&textures(2), &Request { place, ..request(Read::Auto, &quad, 2) });
        // The first result is the mean of texels 0 to 3 and 8 to 11. The second result belongs to the pixel on the
        // right. The third result belongs to the pixel below.
        assert_eq!([0, 1, 2].map(pixel), [5.5, 9.5, 21.5]);
    }

    #[test]
    fn a_fetch_is_by_integer_position_with_offset_and_zero_outside() {
        let textures = bound(image(Shape::D2, &[[4, 4, 1], [2, 2, 1]]), Sampler::default(), None);
        let quad = [[1, 0, 1, 0]; 4];
        let shifted = Request { offset: [-1, 1, 0], ..request(Read::Fetch, &quad, 3) };
        assert_eq!(red(&textures, &shifted), 102.0);
        assert_eq!(read(&textures, &request(Read::Fetch, &[[4, 0, 0, 0]; 4], 3)).unwrap(), [0; 4]);
        assert_eq!(read(&textures, &request(Read::Fetch, &[[u32::MAX, 0, 0, 0]; 4], 3)).unwrap(), [0; 4]);
    }

    #[test]
    fn a_size_is_width_height_depth_and_levels() {
        let textures = bound(image(Shape::D2Array, &[[4, 2, 3], [2, 1, 3]]), Sampler::default(), None);
        assert_eq!(read(&textures, &request(Read::Size, &[[1, 0, 0, 0]; 4], 1)).unwrap(), [2, 1, 3, 2]);
    }

    /// Mesa reads a cube array in the cube form. With five sources, Mesa uses `texprep` and then the form without cube.
    #[test]
    fn a_cube_array_is_read_by_direction_or_by_face() {
        let textures = bound(image(Shape::CubeArray, &[[2, 2, 12]]), Sampler::default(), None);
        // The direction points to face -y of the second cube.
        let direction = [f(0.5), f(-1.0), f(0.25), 1];
        let quad = [direction; 4];
        let cube = Request { cube: true, ..request(Read::Auto, &quad, 4) };
        let prepared = read(&textures, &request(Read::Prep, &quad, 4)).unwrap();
        let by_face = red(&textures, &request(Read::Auto, &[prepared; 4], 3));
        assert_eq!((red(&textures, &cube), by_face), (37.0, 37.0));
        assert_eq!(read(&textures, &request(Read::Size, &[[0; 4]; 4], 1)).unwrap(), [2, 2, 2, 1]);
    }

    /// An NV92 passes piglit's `textureSize 140 fs sampler1DArray`, and the driver reads y of the result.
    #[test]
    fn the_layers_of_a_one_dimensional_array_are_the_second_size() {
        let textures = bound(image(Shape::D1Array, &[[4, 1, 3], [2, 1, 3]]), Sampler::default(), None);
        assert_eq!(read(&textures, &request(Read::Size, &[[1, 0, 0, 0]; 4], 1)).unwrap(), [2, 3, 1, 2]);
    }

    #[test]
    fn a_gather_gives_the_red_of_four_texels() {
        let textures = bound(
            image(Shape::D2, &[[2, 2, 1]]),
            Sampler { mag: Filter::Linear, ..Sampler::default() },
            None,
        );
        let texels = read(&textures, &request(Read::Gather, &[[f(0.5), f(0.5), 0, 0]; 4], 2)).unwrap();
        assert_eq!(texels.map(f32::from_bits), [2.0, 3.0, 1.0, 0.0]);
    }

    #[test]
    fn a_level_of_detail_is_in_fractions_of_256() {
        let mips = Sampler { mip: MipFilter::Linear, ..Sampler::default() };
        let textures = bound(image(Shape::D2, &[[4, 4, 1], [2, 2, 1], [1, 1, 1]]), mips, None);
        // A step of 2.0 between lanes is a step of eight texels, which needs a level beyond the last level. A step of
        // 0.125 is a step of half a texel, which needs a level below level 0.
        let at = |x: f32, y: f32| [f(x), f(y), 0, 0];
        let of = |step: f32| {
            let quad = [at(0.0, 0.0), at(step, 0.0), at(0.0, step), at(step, step)];
            read(&textures, &request(Read::QueryLod, &quad, 2)).unwrap()
        };
        assert_eq!(of(0.5), [256, 256, 0, 0]);
        assert_eq!(of(2.0), [512, 768, 0, 0]);
        assert_eq!(of(0.125), [0, (-256i32) as u32, 0, 0]);
    }

    /// ARB_texture_query_lod: the query adds any bias to the level of detail. The query returns this sum before the
    /// sampler clamps the sum to its range.
    #[test]
    fn a_queried_level_of_detail_has_the_bias_of_the_sampler() {
        let biased = Sampler { mip: MipFilter::Nearest, lod_bias: 1., max_lod: 1.5, ..Sampler::default() };
        let textures = bound(image(Shape::D2, &[[4, 4, 1], [2, 2, 1], [1, 1, 1]]), biased, None);
        let at = |x: f32, y: f32| [f(x), f(y), 0, 0];
        let quad = [at(0.0, 0.0), at(0.5, 0.0), at(0.0, 0.5), at(0.5, 0.5)];
        let queried = read(&textures, &request(Read::QueryLod, &quad, 2)).unwrap();
        assert_eq!(queried[1], 512);
    }

    #[test]
    fn a_direction_and_a_layer_become_a_place_on_a_face() {
        let textures = bound(image(Shape::D2Array, &[[2, 2, 12]]), Sampler::default(), None);
        let words = [f(1.0), f(-1.0), f(0.5), 1];
        let prepared = read(&textures, &request(Read::Prep, &[words; 4], 4)).unwrap();
        // x and y have equal magnitudes. The face is -y, so s = (x / |y| + 1) / 2 and t = (-z / |y| + 1) / 2.
        assert_eq!(prepared, [f(1.0), f(0.25), 9, 0]);
        assert_eq!(red(&textures, &request(Read::Auto, &[prepared; 4], 3)), 37.0);
    }

    #[test]
    fn what_is_not_bound_is_named() {
        let textures = Textures::default();
        assert_eq!(read(&textures, &request(Read::Auto, &[[0; 4]; 4], 2)), Err(Cause::NoTexture(2)));
    }
}
