//! Texture resources and samplers. Reads the images of textures from memory.
//!
//! Levels have the positions in memory that libdrm_radeon computes. Within a level, elements are stored row by row,
//! because the driver never maps a tiled level.

use std::ops::Range;
use std::sync::Arc;

use reconverge_board::errata::{Errata, Erratum};
use reconverge_r700::texture::{Component, Texture, TextureSampler};
use reconverge_raster::block::Block;
use reconverge_simt::texture::elements::Strides;
use reconverge_simt::texture::{Compare, Filter, Image, Sampler, Shape};
use reconverge_simt::vram::Vram;

use super::format::{self, Components};
use crate::images::OwnBytes;
use crate::sampling;
use crate::texels::{self, LevelPlace, Select, TexelElement};

/// Number of the format FMT_5_9_9_9_SHAREDEXP.
const SHARED_EXPONENT: u8 = 0x2b;

/// A texture or vertex buffer: the words of the resource, and the memory of the resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Resource {
    pub(super) words: [u32; 7],
    /// Buffers to which the relocations refer. A vertex buffer has one relocation, and a texture has two.
    pub(super) buffers: Vec<Range<usize>>,
}

/// Cache of images from earlier draws.
pub(super) type Images = crate::images::Images<Resource, Texture>;

impl OwnBytes for Texture {
    fn own_bytes(&self) -> usize {
        self.image.own_bytes()
    }
}

/// Returns the texture of a resource. Uses the cached texture if the texture's bytes in memory have not changed.
///
/// # Errors
/// Returns the name of an unsupported feature of the texture.
pub(super) fn texture(
    images: &mut Images,
    (resource, errata): (&Resource, Errata),
    memory: Vram<'_>,
) -> Result<Texture, String> {
    let layout = TextureLayout::new(resource)?;
    images.get(resource.clone(), layout.range.clone(), memory, |bytes| layout.image(bytes, errata))
}

/// Returns the cached texture of a resource, if the texture's bytes in memory have not changed.
pub(super) fn find(images: &mut Images, resource: &Resource, memory: Vram<'_>) -> Option<Texture> {
    let layout = TextureLayout::new(resource).ok()?;
    images.find(resource, &layout.range, memory)
}

/// Fields of a texture resource.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Words {
    dim: u32,
    tile_mode: u32,
    /// Number of elements per row of the first level.
    pitch: usize,
    size: [usize; 3],
    format: u8,
    components: Components,
    select: [u32; 4],
    last_level: usize,
    layers: Range<usize>,
}

impl Words {
    fn new(words: &[u32; 7]) -> Words {
        let field = |word: usize, high: u32, low: u32| words[word] >> low & (u32::MAX >> (31 - (high - low)));
        let size =
            [field(0, 31, 19), field(1, 12, 0), field(1, 25, 13)].map(|less_one| less_one as usize + 1);
        Words {
            dim: field(0, 2, 0),
            tile_mode: field(0, 6, 3),
            pitch: (field(0, 18, 8) as usize + 1) * 8,
            size,
            format: field(1, 31, 26) as u8,
            components: Components {
                signed: [0, 1, 2, 3].map(|at| field(4, 2 * at + 1, 2 * at) == 1),
                num_format: field(4, 9, 8) as u8,
                srgb: field(4, 11, 11) != 0,
            },
            select: [16, 19, 22, 25].map(|low| field(4, low + 2, low)),
            last_level: field(5, 3, 0) as usize,
            layers: field(5, 16, 4) as usize..field(5, 29, 17) as usize + 1,
        }
    }
}

/// Returns the block compression of a format, or `None` if the format is not compressed.
fn block(words: &Words) -> Option<Block> {
    let signed = words.components.signed[0];
    match words.format {
        0x31 => Some(Block::Color),
        0x32 => Some(Block::ExplicitAlpha),
        0x33 => Some(Block::InterpolatedAlpha),
        0x34 => Some(Block::One { signed }),
        0x35 => Some(Block::Two { signed }),
        _ => None,
    }
}

/// Returns the encoding of a texture's elements.
///
/// # Errors
/// Returns a message with the number of the format if the format is unknown.
fn element(words: &Words) -> Result<TexelElement, String> {
    if let Some(block) = block(words) {
        return Ok(TexelElement::Block { block, srgb: words.components.srgb });
    }
    if words.format == SHARED_EXPONENT {
        return Ok(TexelElement::SharedExponent);
    }
    let format = format::texture(words.format, &words.components);
    format.map(TexelElement::Plain).ok_or_else(|| format!("textures of DATA_FORMAT {:#x}", words.format))
}

/// Properties of a texture, and its range in memory.
struct TextureLayout {
    words: Words,
    shape: Shape,
    element: TexelElement,
    samples: usize,
    /// Range in memory that contains all levels.
    range: Range<usize>,
    /// Positions of the levels in the range. For a multisampled texture, positions of the samples of the only level.
    levels: Vec<LevelPlace>,
}

impl TextureLayout {
    /// Returns the layout of a resource.
    ///
    /// # Errors
    /// Returns the name of an unsupported feature of the texture.
    fn new(resource: &Resource) -> Result<TextureLayout, String> {
        let words = Words::new(&resource.words);
        let [Some(first), others] = [resource.buffers.first(), resource.buffers.get(1)] else {
            return Err("a texture without a relocation".to_owned());
        };
        let others = others.unwrap_or(first);
        let shape = match words.dim {
            0 => Shape::D1,
            1 => Shape::D2,
            2 => Shape::D3,
            3 => Shape::Cube,
            4 => Shape::D1Array,
            5 => Shape::D2Array,
            6 => Shape::D2,
            7 => Shape::D2Array,
            dim => return Err(format!("textures of DIM {dim}")),
        };
        let element = element(&words)?;
        let (side, bytes) = (element.side(), element.bytes());
        let layers = match words.dim {
            2 => 1,
            3 => 6,
            4 | 5 | 7 => words.layers.len().max(1),
            _ => 1,
        };
        // For a multisampled texture, LAST_LEVEL is log2 of the number of samples. The samples of a layer are
        // contiguous. The samples are read as levels of the same size.
        let samples = if matches!(words.dim, 6 | 7) { 1 << words.last_level.min(3) } else { 1 };
        let start_of = |buffer: &Range<usize>, word: u32| buffer.start + word as usize * 256;
        let mut levels = Vec::new();
        let mut tile_mode = words.tile_mode;
        let mut next = start_of(others, resource.words[3]);
        let last_level = if samples > 1 { samples - 1 } else { words.last_level };
        for number in 0..=last_level {
            let (number, sample) = if samples > 1 { (0, number) } else { (number, 0) };
            let shrunk = |size: usize| (size >> number).max(1);
            let (width, height) =
                (shrunk(words.size[0]), if matches!(words.dim, 0 | 4) { 1 } else { shrunk(words.size[1]) });
            let depth = if words.dim == 2 { shrunk(words.size[2]) } else { layers };
            let whole = if words.dim == 4 { words.size[1].max(words.size[2]) } else { words.size[2] };
            let slices = match words.dim {
                2 => shrunk(words.size[2]).next_power_of_two(),
                3 => 8,
                // Captured: a texture with 5 layers has the size of 8 layers.
                4 | 5 | 7 => whole.next_power_of_two(),
                _ => 1,
            };
            let padded =
                |size: usize| if number == 0 { size } else { size.next_power_of_two() }.div_ceil(side);
            let place = Place::new(&mut tile_mode, padded(width), padded(height), bytes);
            let pitch = if number == 0 { words.pitch / side } else { place.pitch };
            let (start, end) = match number {
                0 => (start_of(first, resource.words[2]), first.end),
                _ => (next, others.end),
            };
            if number > 0 {
                next += place.pitch * place.height * bytes * slices;
            }
            let rows =
                if number == 0 { padded_height(words.tile_mode, padded(height)) } else { place.height };
            let slice = pitch * rows * bytes;
            let first_layer = if matches!(words.dim, 4 | 5 | 7) { words.layers.start } else { 0 };
            let start = start + (first_layer * samples + sample) * slice;
            let strides = Strides { start, element: bytes, row: pitch * bytes, slice: samples * slice };
            levels.push(LevelPlace { size: [width, height, depth], strides, end });
        }
        let start = levels.iter().map(|level| level.strides.start).min().unwrap_or(0);
        let end = levels.iter().map(|level| level.last(element).min(level.end)).max().unwrap_or(0);
        for level in &mut levels {
            level.strides.start -= start;
            level.end = level.end.saturating_sub(start);
        }
        Ok(TextureLayout { words, shape, element, samples, range: start..end.max(start), levels })
    }

    /// Returns the texture. `bytes` is a copy of the texture's range in memory.
    ///
    /// # Errors
    /// Returns the name of an unsupported feature of the texture.
    fn image(&self, bytes: &Arc<Vec<u8>>, errata: Errata) -> Result<Texture, String> {
        let TextureLayout { words, shape, element, samples, levels, .. } = self;
        let levels = levels.iter().map(|place| texels::level(bytes, *place, *element, Select::ALL)).collect();
        let image = if *samples > 1 { Image::of_samples(*shape, levels) } else { Image::new(*shape, levels) };
        let image = image.map_err(|error| error.to_string())?;
        let integer = words.components.num_format == 1;
        let one = if integer { 1 } else { 1f32.to_bits() };
        let select = words.select.map(|select| match select {
            0..=3 => Component::Texel(select as u8),
            5 => Component::Word(one),
            _ => Component::Word(0),
        });
        let fractions = words.components.num_format == 0 && !matches!(words.format, 0x0e | 0x1c);
        let integer_border = !errata.has(Erratum::IntegerBorder);
        Ok(Texture { image: image.into(), integer, fractions, select, integer_border })
    }
}

/// Returns the number of rows of a texture's first level, including padding. The resource contains only the pitch of
/// this level.
fn padded_height(tile_mode: u32, height: usize) -> usize {
    if tile_mode >= 2 { height.next_multiple_of(8) } else { height }
}

/// Size of a level in memory, in elements.
struct Place {
    pitch: usize,
    height: usize,
}

/// Size of a group in bytes, and numbers of banks and pipes, for TILING_CONFIG 0.
const GROUP: usize = 256;
const BANKS: usize = 4;
const PIPES: usize = 1;

impl Place {
    /// Returns the size of a level, with the padding that the tile mode of the level requires. If a level is too small
    /// for two-dimensional tiles, that level and all smaller levels have one-dimensional tiles.
    fn new(tile_mode: &mut u32, width: usize, height: usize, bytes: usize) -> Place {
        let wide = (8 * BANKS).max(GROUP * BANKS / (8 * bytes));
        if *tile_mode >= 4 && (width < wide || height < 8 * PIPES) {
            *tile_mode = 2;
        }
        let (to_width, to_height) = match *tile_mode {
            0 | 1 => (64.max(GROUP / bytes), 1),
            2 | 3 => (8.max(GROUP / (8 * bytes)), 8),
            _ => (wide, 8 * PIPES),
        };
        Place { pitch: width.next_multiple_of(to_width), height: height.next_multiple_of(to_height) }
    }
}

/// Returns the sampler with these words. `border` contains the border colour registers of the sampler.
///
/// If TA_CNTL_AUX.DISABLE_CUBE_WRAP is 0, filters cross the edges of a cube's faces for all values of CLAMP_X and
/// CLAMP_Y. Inferred from `arb_seamless_cubemap`, which passes on RV770 with SQ_TEX_CLAMP_LAST_TEXEL. Since 2023, Mesa
/// sets SQ_TEX_WRAP. The reason is that the clamp modes have an effect on another chip of the R600 and R700 families.
pub(super) fn sampler(words: [u32; 3], border: [u32; 4], cube_wrap: bool) -> TextureSampler {
    let field = |word: usize, high: u32, low: u32| words[word] >> low & (u32::MAX >> (31 - (high - low)));
    let wrap = |low: u32| sampling::WRAPS[field(0, low + 2, low) as usize];
    // 0: point. 1: bilinear. 4: point with anisotropy. 5: bilinear with anisotropy. (REG, SQ_TEX_SAMPLER_WORD0)
    let filter = |low: u32| if field(0, low + 2, low) & 1 != 0 { Filter::Linear } else { Filter::Nearest };
    let is_anisotropic = |low: u32| matches!(field(0, low + 2, low), 4 | 5);
    let fixed = |value: u32| value as f32 / 64.;
    let one = 1f32.to_bits();
    let bias = (field(1, 31, 20) << 20) as i32 >> 20;
    TextureSampler {
        sampler: Sampler {
            wrap: [wrap(0), wrap(3), wrap(6)],
            mag: filter(9),
            min: filter(12),
            mip: sampling::mip_filter(field(0, 18, 17)),
            border: match field(0, 23, 22) {
                0 => [0; 4],
                1 => [0, 0, 0, one],
                2 => [one; 4],
                _ => border,
            },
            min_lod: fixed(field(1, 9, 0)),
            max_lod: fixed(field(1, 19, 10)),
            lod_bias: bias as f32 / 64.,
            unnormalised: false,
            seamless: cube_wrap,
            // Mesa sets equal codes for the magnification filter and the minification filter (`r600_tex_filter`).
            anisotropy: if is_anisotropic(12) { sampling::anisotropy(field(0, 21, 19)) } else { 0 },
        },
        compare: Compare::ALL[field(0, 28, 26) as usize],
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::texture::MipFilter;

    use super::*;

    /// Captured: the words of a mipmapped RGBA8 texture of 64 x 64 texels. The second level of this texture is at
    /// 4000h.
    #[test]
    fn the_levels_of_a_captured_texture_are_where_the_driver_put_them() {
        let words = [0x01f8_0721, 0x6800_003f, 0, 0x40, 0x0688_4000, 6, 0x8000_0010];
        let mut memory = vec![0; 0x6000];
        for (level, base) in [0x0, 0x4000, 0x5000, 0x5400, 0x5500, 0x5600, 0x5700].into_iter().enumerate() {
            memory[base] = level as u8 + 1;
        }
        let resource = Resource { words, buffers: vec![0..memory.len(); 2] };
        let texture =
            texture(&mut Images::default(), (&resource, Errata::default()), Vram::new(&mut memory)).unwrap();
        let first = |level: usize| f32::from_bits(texture.image.texel(level, 0, 0, 0).unwrap()[0]) * 255.;
        for level in 0..7 {
            assert!((first(level) - (level + 1) as f32).abs() < 0.01, "{level}: {}", first(level));
        }
    }

    #[test]
    fn the_border_of_integers_is_that_of_integers_without_the_erratum() {
        let words = [0x01f8_0721, 0x6800_003f, 0, 0x40, 0x0688_4000, 6, 0x8000_0010];
        let mut memory = vec![0; 0x6000];
        let resource = Resource { words, buffers: vec![0..memory.len(); 2] };
        let mut integer_border = |errata: Errata| {
            let read = texture(&mut Images::default(), (&resource, errata), Vram::new(&mut memory));
            read.unwrap().integer_border
        };
        assert!(!integer_border(Errata::ALL) && integer_border(Errata::ALL.without(Erratum::IntegerBorder)));
    }

    /// Captured: the default sampler of OpenGL.
    #[test]
    fn the_default_sampler_reads_as_gl_says() {
        let found = sampler([0x0c04_0200, 0x000f_0000, 0x8000_0000], [0; 4], false);
        assert_eq!((found.sampler.mag, found.sampler.min), (Filter::Linear, Filter::Nearest));
        assert_eq!((found.sampler.mip, found.compare), (MipFilter::Linear, Compare::LessEqual));
        assert_eq!(found.sampler.max_lod, 15.);
        assert!(!found.sampler.seamless);
    }

    /// Mesa `r600_tex_aniso_filter`: MAX_ANISO_RATIO is log2 of the anisotropy. REG: filters 4 and 5 are anisotropic
    /// forms of point and bilinear.
    #[test]
    fn a_ratio_counts_with_an_anisotropic_filter() {
        let read = |filter: u32, ratio: u32| {
            let found = sampler([filter << 9 | filter << 12 | ratio << 19, 0, 0], [0; 4], false).sampler;
            (found.min, found.anisotropy)
        };
        let bilinear = [0, 1, 2, 3, 4].map(|ratio| read(5, ratio));
        assert_eq!(bilinear, [1, 2, 4, 8, 16].map(|ratio| (Filter::Linear, ratio)));
        assert_eq!([read(4, 2), read(1, 2)], [(Filter::Nearest, 4), (Filter::Linear, 0)]);
    }

    /// Captured from `arb_seamless_cubemap`: SQ_TEX_CLAMP_LAST_TEXEL along all axes.
    #[test]
    fn filters_cross_faces_of_cubes_whatever_the_clamp_modes_are() {
        let seamless = |clamp: u32, cube_wrap| sampler([clamp, 0, 0], [0; 4], cube_wrap).sampler.seamless;
        assert!(seamless(0, true) && seamless(0o222, true) && !seamless(0o222, false));
    }
}
