//! Reads textures from the registers of a texture unit and from memory.
//!
//! Levels have the positions in memory that the driver computes. Within a level, elements are stored row by row,
//! because the driver never maps a tiled level. Source: Mesa `r300_texture_desc.c` for the layout, `r300_texture.c` and
//! `r300_state.c` for the registers.

use std::ops::Range;
use std::sync::Arc;

use reconverge_board::errata::{Errata, Erratum};
use reconverge_r500::texture::Texture;
use reconverge_raster::block::{Block, SIDE};
use reconverge_raster::format::{Format, Number};
use reconverge_simt::texture::elements::Strides;
use reconverge_simt::texture::{Filter, Image, Sampler, Shape};
use reconverge_simt::vram::Vram;

use super::format::{self, Texel};
use super::registers::{self as reg, *};
use super::state::{State, fields};
use crate::sampling;
use crate::texels::{self, LevelPlace, Select, TexelElement};

/// Maximum number of bytes by which a texture's padding may extend past the end of the texture's buffer.
const SLACK: usize = 1 << 20;

/// Code of an anisotropic filter. An anisotropic filter filters linearly at each of its positions.
const ANISOTROPIC: u8 = 3;

/// The chip's level of detail is less than OpenGL's level of detail. This constant is the difference in steps of
/// LOD_BIAS (1/32). The difference is not documented. Mesa adds one step to every bias (`r300_create_sampler_state`).
/// This step corrects glean's pointSprite. Even with the added step, the chip does not use the next level if the level
/// of detail is a whole number. The evidence is that RV530 and RV515 pass `compressedteximage` in all formats.
const LOD_BEHIND: f32 = 1.;

/// Cache of images from earlier draws. The key has the registers of the unit, and the range of the texture in memory.
pub(super) type Images = crate::images::Images<([u32; 5], Range<usize>), Arc<Image>>;

/// Tiling of elements. The tiling determines how the sizes of levels are rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiling {
    macro_tile: bool,
    /// 0: rows. 1: tiles. 2: square tiles, for elements of two bytes.
    micro_tile: u8,
}

impl Tiling {
    /// Returns two numbers for elements of `bytes` bytes. The width and the height of a level are rounded up to
    /// multiples of these numbers.
    fn unit(self, bytes: usize) -> (usize, usize) {
        let log = bytes.max(1).ilog2() as usize;
        let square = self.micro_tile == 2 && log == 1;
        match (self.macro_tile, self.micro_tile) {
            (false, _) if square => (4, 4),
            (true, _) if square => (32, 32),
            (false, 0) => (32 >> log, 1),
            (false, _) => [(8, 4), (8, 2), (4, 2), (2, 2), (2, 1)][log.min(4)],
            (true, 0) => (256 >> log, 8),
            (true, _) => [(64, 32), (64, 16), (32, 16), (16, 16), (16, 8)][log.min(4)],
        }
    }
}

/// Layout of a texture in memory, from the registers of its unit.
#[derive(Clone, Copy, Debug)]
struct Layout {
    size: [usize; 3],
    shape: Shape,
    levels: usize,
    texel: Texel,
    srgb: bool,
    /// Whether signed RGTC is decompressed as unsigned. See [`Erratum::SignedRgtc`].
    unsigned_rgtc: bool,
    tiling: Tiling,
    /// Number of texels per row of the first level, if the registers set this number.
    pitch: Option<usize>,
}

/// Size and layout of a level in memory.
struct Place {
    width: usize,
    height: usize,
    depth: usize,
    /// `stride` is the number of bytes from one row of elements to the next row. `layer` is the number of bytes from
    /// one layer to the next layer.
    stride: usize,
    layer: usize,
}

impl Layout {
    /// Returns the size and layout of a level.
    fn level(&self, number: usize) -> Place {
        let [width, height, depth] = self.size.map(|size| (size >> number).max(1));
        let depth = if self.shape == Shape::Cube { 6 } else { depth };
        let bytes = self.texel.bytes();
        let padded = match self.shape == Shape::D2 && self.levels == 1 {
            true => height,
            false => height.next_power_of_two(),
        };
        let (stride, rows) = match self.texel {
            Texel::Block(_) => ((width.div_ceil(SIDE) * bytes).next_multiple_of(32), padded.div_ceil(SIDE)),
            _ => {
                let whole = Tiling { macro_tile: true, ..self.tiling }.unit(bytes);
                let macro_tile = self.tiling.macro_tile && width >= whole.0 && height >= whole.1;
                let (across, down) = Tiling { macro_tile, ..self.tiling }.unit(bytes);
                (width.next_multiple_of(across) * bytes, padded.next_multiple_of(down))
            }
        };
        let stride = match self.pitch {
            Some(texels) if number == 0 => match self.texel {
                Texel::Block(_) => texels / SIDE * bytes,
                _ => texels * bytes,
            },
            _ => stride,
        };
        Place { width, height, depth, stride, layer: stride * rows }
    }

    /// Returns the size of all levels in bytes.
    fn bytes(&self) -> usize {
        (0..self.levels).map(|number| self.level(number)).map(|place| place.layer * place.depth).sum()
    }

    /// Returns the image of the texture. `bytes` contains the bytes of the texture. Only the first `length` bytes are
    /// in the buffer. `select` contains the sources of the texels' components.
    fn image(&self, bytes: &Arc<Vec<u8>>, length: usize, select: [Select; 4]) -> Result<Image, String> {
        let (element, select) = match self.texel {
            Texel::Plain(format) => (TexelElement::Plain(format), select),
            // The chip applies the sign to the decompressed component. Until 2015, Mesa's driver read RGTC1 as
            // unsigned, and the driver's programs added the sign to the result. The present driver sets the sign. RV530
            // fails only two tests of RGTC, `rgtc-teximage-01` and `-02`. In these tests, the end values of a block
            // have different signs.
            Texel::Block(Block::One { signed: true }) if self.unsigned_rgtc => {
                (TexelElement::SignedAfter(Block::One { signed: false }), select)
            }
            Texel::Block(Block::Two { signed: true }) if self.unsigned_rgtc => {
                (TexelElement::SignedAfter(Block::Two { signed: false }), select)
            }
            Texel::Block(block) => (TexelElement::Block { block, srgb: self.srgb }, select),
            // Component 0 of the texture is depth. In an element, the stencil comes first, and depth is component 1.
            Texel::Depth => {
                let depth = select.map(|select| match select {
                    Select::Component(0) => Select::Component(1),
                    Select::Component(_) => Select::Word(0),
                    Select::Word(word) => Select::Word(word),
                });
                (TexelElement::Plain(Format::new([8, 24, 0, 0], Number::Unorm)), depth)
            }
        };
        let mut levels = Vec::new();
        let mut start = 0;
        for number in 0..self.levels {
            let Place { width, height, depth, stride, layer } = self.level(number);
            let strides = Strides { start, element: element.bytes(), row: stride, slice: layer };
            let place = LevelPlace { size: [width, height, depth], strides, end: length };
            levels.push(texels::level(bytes, place, element, select));
            start += layer * depth;
        }
        Image::new(self.shape, levels).map_err(|error| format!("a texture: {error}"))
    }
}

/// The image and sampler of a texture unit.
#[derive(Clone, Debug)]
pub(super) struct TextureUnit {
    /// Key of the image in the cache. The key has the registers on which texels depend, and the range of the buffer.
    key: ([u32; 5], Range<usize>),
    /// The range of the texture in memory.
    range: Range<usize>,
    layout: Layout,
    select: [Select; 4],
    sampler: Sampler,
}

impl TextureUnit {
    /// Returns the image, with the current contents of memory.
    ///
    /// # Errors
    /// Returns the name of an unsupported feature of the texture.
    pub(super) fn image(&self, images: &mut Images, memory: Vram<'_>) -> Result<Arc<Image>, String> {
        let TextureUnit { key, range, layout, select, .. } = self;
        let make = |bytes: &Arc<Vec<u8>>| layout.image(bytes, range.len(), *select).map(Arc::new);
        images.get(key.clone(), range.clone(), memory, make)
    }

    /// Returns whether the cache still has this image for the unit and the bytes of the image in memory have not
    /// changed.
    pub(super) fn has(&self, image: &Arc<Image>, images: &mut Images, memory: Vram<'_>) -> bool {
        images.find(&self.key, &self.range, memory).is_some_and(|found| Arc::ptr_eq(&found, image))
    }

    /// Returns the image and the sampler, with the current contents of memory.
    ///
    /// # Errors
    /// Returns the name of an unsupported feature of the texture.
    pub(super) fn texture(&self, images: &mut Images, memory: Vram<'_>) -> Result<Texture, String> {
        Ok(Texture { image: self.image(images, memory)?, sampler: self.sampler })
    }
}

/// Returns the state of a texture unit.
///
/// # Errors
/// Returns the name of an unsupported feature of the texture.
pub(super) fn unit(state: &mut State, unit: usize) -> Result<TextureUnit, String> {
    let filter0 = fields!(state, TxFilter0, state.nth(reg::TX_FILTER0_0, unit));
    let filter1 = fields!(state, TxFilter1, state.nth(reg::TX_FILTER1_0, unit));
    let format0 = fields!(state, TxFormat0, state.nth(reg::TX_FORMAT0_0, unit));
    let format1 = fields!(state, TxFormat1, state.nth(reg::TX_FORMAT1_0, unit));
    let format2 = fields!(state, TxFormat2, state.nth(reg::TX_FORMAT2_0, unit));
    let offset = fields!(state, TxOffset, state.nth(reg::TX_OFFSET_0, unit));
    let number = format1.txformat | u8::from(format2.txformat_msb) << 5;
    let curved = [format1.sel_red, format1.sel_green, format1.sel_blue];
    let curved = [0, 1, 2, 3].map(|component| format1.gamma && curved.contains(&component));
    let texel = format::texture(number, format1.signed, curved)
        .ok_or_else(|| format!("TX_FORMAT1_0.TXFORMAT {number:#x}"))?;
    let shape = match format1.tex_coord_type {
        0 => Shape::D2,
        1 => Shape::D3,
        2 => Shape::Cube,
        other => return Err(format!("TX_FORMAT1_0.TEX_COORD_TYPE {other}")),
    };
    let size = |low: u16, high: bool| usize::from(low) + usize::from(high) * 2048 + 1;
    let depth = if shape == Shape::D3 { 1 << format0.txdepth.min(12) } else { 1 };
    let layout = Layout {
        size: [size(format0.txwidth, format2.txwidth_11), size(format0.txheight, format2.txheight_11), depth],
        shape,
        levels: usize::from(format0.num_levels) + 1,
        texel,
        srgb: format1.gamma,
        unsigned_rgtc: state.errata.has(Erratum::SignedRgtc),
        tiling: Tiling { macro_tile: offset.macro_tile, micro_tile: offset.micro_tile },
        pitch: format0.txpitch_en.then_some(usize::from(format2.txpitch) + 1),
    };
    let place = state
        .place(reg::TX_OFFSET_0, unit, offset.txoffset as usize * 32)
        .ok_or_else(|| "TX_OFFSET_0 without a buffer, or past the end of the buffer".to_owned())?;
    let select = [format1.sel_red, format1.sel_green, format1.sel_blue, format1.sel_alpha];
    // The unit exchanges x and z of a decoded block. The component selection of the driver also exchanges x and z.
    // Therefore, the two exchanges cancel each other.
    let exchanged = filter1.dxtc_swizzle && (0x0f..=0x11).contains(&number);
    let select = select.map(|select| match select {
        0 if exchanged => Select::Component(2),
        2 if exchanged => Select::Component(0),
        0..=3 => Select::Component(select),
        5 => Select::Word(1f32.to_bits()),
        _ => Select::Word(0),
    });
    let words = [
        reg::TX_FORMAT0_0,
        reg::TX_FORMAT1_0,
        reg::TX_FORMAT2_0,
        reg::TX_OFFSET_0,
        // TX_FILTER1_0 contains DXTC_SWIZZLE, the only field of a filter that changes texels.
        reg::TX_FILTER1_0,
    ]
    .map(|address| state.nth(address, unit));
    if layout.bytes() > place.len() + SLACK {
        return Err("a texture larger than its buffer".to_owned());
    }
    let end = place.end.min(place.start + layout.bytes());
    let range = place.start..end;
    let border = border(state.nth(reg::TX_BORDER_COLOR_0, unit), (texel, format1.gamma), state.errata);
    let border = select.map(|select| select.of(border));
    let sampler = sampler(&filter0, &filter1, border);
    Ok(TextureUnit { key: (words, place), range, layout, select, sampler })
}

/// Returns the components of a border colour. The encoding of the border colour in the register depends on the
/// texture's format.
///
/// For an sRGB texture, the driver writes the border colour on the sRGB curve. RV530 fails `texwrap bordercolor` for
/// all sRGB textures. Therefore, this model assumes that the chip does not decode the border colour:
/// [`Erratum::SrgbBorder`].
fn border(word: u32, (texel, srgb): (Texel, bool), errata: Errata) -> [u32; 4] {
    let curve = if errata.has(Erratum::SrgbBorder) { Number::Unorm } else { Number::Srgb };
    match texel {
        Texel::Plain(format) => {
            let numbers = format.numbers.map(|number| if number == Number::Srgb { curve } else { number });
            match format.bits {
                // If the texture's format has up to four bytes, the border colour has the format of the texture.
                bits if format.bytes <= 4 && bits[0] != 8 && bits[0] != 10 => {
                    Format { numbers, ..format }.read(&word.to_le_bytes())
                }
                [10, 10, 10, 2] => Format { numbers, ..format }.read(&word.to_le_bytes()),
                // Inferred: the driver writes fractions of eight bits for two kinds of formats. Formats of the first
                // kind have four components of 16 bits. Formats of the second kind have at least two components of 32
                // bits.
                _ => {
                    let numbers = numbers.map(|number| match number {
                        Number::Float => Number::Unorm,
                        number => number,
                    });
                    Format { numbers, ..Format::new([8; 4], Number::Uint) }.read(&word.to_le_bytes())
                }
            }
        }
        Texel::Depth => {
            let depth = f64::from(word >> 8) / 16_777_215.;
            [(depth as f32).to_bits(), 0, 0, 0]
        }
        // The border colour has four bits, in bits 4 to 7 of the register. Source: Mesa, `r300_get_border_color`, which
        // rounds the colour to four bits.
        Texel::Block(Block::One { signed }) => {
            let number = if signed { Number::Snorm } else { Number::Unorm };
            [Format::new([4; 4], number).read(&word.to_le_bytes())[1], 0, 0, 0]
        }
        Texel::Block(Block::Two { signed }) => {
            let number = if signed { Number::Snorm } else { Number::Unorm };
            Format::new([8, 8, 0, 0], number).read(&word.to_le_bytes())
        }
        Texel::Block(Block::Color | Block::ExplicitAlpha | Block::InterpolatedAlpha) => {
            let color = Format::new([8; 4], if srgb { curve } else { Number::Unorm });
            let [x, y, z, w] = color.read(&word.to_le_bytes());
            [z, y, x, w]
        }
    }
}

fn sampler(filter0: &TxFilter0, filter1: &TxFilter1, border: [u32; 4]) -> Sampler {
    let wrap = |code: u8| sampling::WRAPS[usize::from(code)];
    let filter = |code: u8| if code >= 2 { Filter::Linear } else { Filter::Nearest };
    // Inferred from Mesa's option `r500_anisotropy`, which requests a better filter. The option maps the numbers 1 to
    // 16 to codes up to 63. On R500, the field ANISO replaces MAX_ANISO if ANISO is not 0. In this case, the filter has
    // up to 1 + ANISO / 4 positions.
    let most = match filter1.aniso {
        0 => sampling::anisotropy(filter0.max_aniso.into()),
        finer => 1 + finer / 4,
    };
    Sampler {
        wrap: [wrap(filter0.clamp_s), wrap(filter0.clamp_t), wrap(filter0.clamp_r)],
        mag: filter(filter0.mag_filter),
        min: filter(filter0.min_filter),
        mip: sampling::mip_filter(filter0.mip_filter.into()),
        border,
        min_lod: f32::from(filter0.max_mip_level),
        lod_bias: (filter1.lod_bias as f32 - LOD_BEHIND) / 32.,
        // Only minification uses anisotropy, so only the minification filter is tested. The driver also selects the
        // anisotropic filter for linear magnification, even if the minification filter is not linear.
        anisotropy: if filter0.min_filter == ANISOTROPIC { most } else { 0 },
        ..Sampler::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mesa, `r300_get_border_color`: for blocks with one component, the driver packs the border colour as 4444. The
    /// second component contains the colour. For blocks with two components, the border colour has one byte per
    /// component. For DXT, the border colour is BGRA8.
    #[test]
    fn border_colours_of_blocks_are_packed_by_their_kinds() {
        let border =
            |word, block| border(word, (Texel::Block(block), false), Errata::default()).map(f32::from_bits);
        assert_eq!(border(0x0f3c, Block::One { signed: false }), [0.2, 0., 0., 0.]);
        // The component is a number in two's complement. Mesa halves the number, and adds 1 if the number is negative.
        assert_eq!(border(0x00e0, Block::One { signed: true }), [-2. / 7., 0., 0., 0.]);
        assert_eq!(border(0x0000_33ff, Block::Two { signed: false }), [1., 0.2, 0., 0.]);
        assert_eq!(border(0x0000_817f, Block::Two { signed: true }), [1., -1., 0., 0.]);
        assert_eq!(border(0xff33_6600, Block::Color), [0.2, 0.4, 0., 1.]);
    }

    /// Mesa `r300_get_border_color`: if a floating-point texel has at most 32 bits, the border colour has the same
    /// format as the texel. For larger texels, the border colour has four bytes.
    #[test]
    fn border_colours_of_wide_floats_are_fractions() {
        let border = |bits: [u8; 4], word: u32| {
            let texel = Texel::Plain(Format::new(bits, Number::Float));
            border(word, (texel, false), Errata::ALL).map(f32::from_bits)
        };
        for bits in [[16; 4], [32; 4], [32, 32, 0, 0]] {
            assert_eq!(border(bits, 0xff66_3300), [0., 0.2, 0.4, 1.]);
        }
        assert_eq!(border([16, 16, 0, 0], 0x3800_3c00)[..2], [1., 0.5]);
        assert_eq!(border([32, 0, 0, 0], 0.25f32.to_bits())[0], 0.25);
    }

    /// Mesa `r300_get_border_color` writes these colours on the sRGB curve. RV530 fails piglit's `texwrap bordercolor`
    /// for all sRGB formats.
    #[test]
    fn border_colours_of_srgb_textures_are_decoded_without_their_erratum() {
        let curved = Format::new([8; 4], Number::Srgb);
        for texel in [Texel::Plain(curved), Texel::Block(Block::Color)] {
            let border = |errata: Errata| border(0x8080_8080, (texel, true), errata).map(f32::from_bits);
            assert_eq!(border(Errata::ALL), [128. / 255.; 4]);
            let [red, .., alpha] = border(Errata::ALL.without(Erratum::SrgbBorder));
            assert!((red - 0.2159).abs() < 1e-3 && alpha == 128. / 255., "{texel:?}: {red} {alpha}");
        }
        let linear = border(0x8080_8080, (Texel::Block(Block::Color), false), Errata::NONE);
        assert_eq!(linear.map(f32::from_bits), [128. / 255.; 4]);
    }

    /// RV530 fails `rgtc-teximage-01`, in which a block has the end values -1 / 127 and 5 / 127.
    #[test]
    fn signed_blocks_are_mixed_with_their_signs_without_their_erratum() {
        let bytes =
            Arc::new((0xffu64 | 0x05 << 8 | 0b010 << 16).to_le_bytes().into_iter().chain([0; 24]).collect());
        let red = |unsigned_rgtc: bool| {
            let layout = Layout {
                size: [4, 4, 1],
                shape: Shape::D2,
                levels: 1,
                texel: Texel::Block(Block::One { signed: true }),
                srgb: false,
                unsigned_rgtc,
                tiling: Tiling { macro_tile: false, micro_tile: 0 },
                pitch: None,
            };
            let image = layout.image(&bytes, 8, Select::ALL).unwrap();
            (f32::from_bits(image.texel(0, 0, 0, 0).unwrap()[0]) * 127.).round()
        };
        // Six sevenths of -1 plus one seventh of 5 is about 0. Six sevenths of 255 plus one seventh of 5 is 219. The
        // signed byte with the bits of 219 is -37.
        assert_eq!([true, false].map(red), [-37., 0.]);
    }
}
