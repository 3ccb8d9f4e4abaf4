//! The formats of targets, depth buffers and textures, by the chip's numbers.
//!
//! Source: Mesa `r300_reg.h` (R300_COLOR_FORMAT_*, R300_US_OUT_FMT_*, R300_TX_FORMAT_*, R300_DEPTHFORMAT_*) and
//! `r300_texture.c`.

use reconverge_raster::block::Block;
use reconverge_raster::depth::DepthFormat;
use reconverge_raster::format::{Format, Number};

/// Format of a colour target. The fields are the format of an element, and the components of an element that store the
/// fragment unit's C0 to C3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Color {
    pub(super) format: Format,
    pub(super) places: [Option<u8>; 4],
    /// For each of C0 to C3, the bit of RB3D_COLOR_CHANNEL_MASK that enables the component.
    pub(super) mask_bits: [u8; 4],
}

impl Color {
    /// Returns whether the element is a single byte. If the element is a single byte, blending also reads this byte as
    /// alpha. In this case, blending uses C1 of the blend constant instead of C0 and C2. Mesa sets C1 of the constant
    /// for R8, L8, I8 and A8 (`r300_set_blend_color`). RV530 passes `fbo-blending-formats` for these formats. Mesa does
    /// not set C1 for R8_SNORM, and RV530 fails the test for this format.
    pub(super) fn is_byte(&self) -> bool {
        self.format.bytes == 1
    }
}

const ALL: [Option<u8>; 4] = [Some(0), Some(1), Some(2), Some(3)];
const FIRST: [Option<u8>; 4] = [Some(0), None, None, None];
const FIRST_TWO: [Option<u8>; 4] = [Some(0), Some(1), None, None];

/// Returns the format of a colour target for COLORFORMAT and US_OUT_FMT, or `None` if the format is unknown.
///
/// If the fragment unit outputs 16 or 32 bits per component, US_OUT_FMT determines the components, and COLORFORMAT is
/// ignored.
pub(super) fn color(color_format: u8, out_fmt: u8, signed: bool) -> Option<Color> {
    let number = if signed { Number::Snorm } else { Number::Unorm };
    let made = |bits: [u8; 4], number: Number, places: [Option<u8>; 4]| {
        // The developers of Mesa tested formats with two components of 16 or 32 bits. Bits 1 and 2 enable red, and bits
        // 0 and 3 enable the second component (`grrg_cmask`, `arra_cmask`). This function uses bit 2 for red and bit 0
        // for the second component. The bits of UV88 are also 2 and 0, because the components of UV88 are C2 and C0.
        let mask_bits = match places {
            [Some(0), Some(1), None, None] => [2, 0, 1, 3],
            [Some(0), None, Some(1), None] => [2, 1, 0, 3],
            _ => [0, 1, 2, 3],
        };
        Some(Color { format: Format::new(bits, number), places, mask_bits })
    };
    match out_fmt {
        3 => return made([16, 0, 0, 0], number, FIRST),
        4 => return made([16, 16, 0, 0], number, FIRST_TWO),
        5 => return made([16; 4], number, ALL),
        16 => return made([16, 0, 0, 0], Number::Float, FIRST),
        17 => return made([16, 16, 0, 0], Number::Float, FIRST_TWO),
        18 => return made([16; 4], Number::Float, ALL),
        19 => return made([32, 0, 0, 0], Number::Float, FIRST),
        // Two 32-bit floats contain C0 and C2.
        20 => return made([32, 32, 0, 0], Number::Float, [Some(0), None, Some(1), None]),
        21 => return made([32; 4], Number::Float, ALL),
        // C4_8, C4_10, and C4_10 with gamma: COLORFORMAT determines the components.
        0..=2 => {}
        _ => return None,
    }
    match color_format {
        0x3 => made([5, 5, 5, 1], number, ALL),
        0x4 => made([5, 6, 5, 0], number, [Some(0), Some(1), Some(2), None]),
        0x5 => made([10, 10, 10, 2], number, ALL),
        0x6 => made([8; 4], number, ALL),
        0x7 => made([32; 4], Number::Float, ALL),
        0x9 => made([8, 0, 0, 0], number, [None, None, Some(0), None]),
        0xa => made([16; 4], number, ALL),
        0xd => made([8, 8, 0, 0], number, [Some(1), None, Some(0), None]),
        0xf => made([4; 4], number, ALL),
        _ => None,
    }
}

/// Returns the format of a depth buffer, or `None` if the format is unknown.
pub(super) fn depth(format: u8) -> Option<DepthFormat> {
    match format {
        0 => Some(DepthFormat::Unorm16),
        2 => Some(DepthFormat::StencilUnorm24),
        _ => None,
    }
}

/// Encoding of a texture's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texel {
    /// One element per texel.
    Plain(Format),
    /// Depth in the upper 24 bits, and stencil in the lower bits. Only the depth is read.
    Depth,
    /// Blocks of 4 x 4 texels.
    Block(Block),
}

impl Texel {
    /// Returns the size in bytes of an element or a block.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Texel::Plain(format) => format.bytes.into(),
            Texel::Depth => 4,
            Texel::Block(block) => block.bytes(),
        }
    }
}

/// Returns the encoding of a texture's elements, or `None` if the format is unknown. `format` is TXFORMAT with its most
/// significant bit as bit 5. `curved` states which components are on the sRGB curve.
pub(super) fn texture(format: u8, signed: u8, curved: [bool; 4]) -> Option<Texel> {
    let (bits, float) = match format {
        0x00 => ([8, 0, 0, 0], false),
        0x01 => ([16, 0, 0, 0], false),
        0x02 => ([4, 4, 0, 0], false),
        0x03 => ([8, 8, 0, 0], false),
        0x04 => ([16, 16, 0, 0], false),
        0x05 => ([2, 3, 3, 0], false),
        0x06 => ([5, 6, 5, 0], false),
        0x07 => ([5, 5, 6, 0], false),
        0x08 => ([10, 11, 11, 0], false),
        0x09 => ([11, 11, 10, 0], false),
        0x0a => ([4; 4], false),
        0x0b => ([5, 5, 5, 1], false),
        0x0c => ([8; 4], false),
        0x0d => ([10, 10, 10, 2], false),
        0x0e => ([16; 4], false),
        0x0f => return Some(Texel::Block(Block::Color)),
        0x10 => return Some(Texel::Block(Block::ExplicitAlpha)),
        0x11 => return Some(Texel::Block(Block::InterpolatedAlpha)),
        0x18 => ([16, 0, 0, 0], true),
        0x19 => ([16, 16, 0, 0], true),
        0x1a => ([16; 4], true),
        0x1b => ([32, 0, 0, 0], true),
        0x1c => ([32, 32, 0, 0], true),
        0x1d => ([32; 4], true),
        0x1f => return Some(Texel::Block(Block::Two { signed: signed & 3 != 0 })),
        0x22 => ([10, 0, 0, 0], false),
        0x23 => ([10, 10, 0, 0], false),
        0x24 => ([10; 4], false),
        0x25 => return Some(Texel::Block(Block::One { signed: signed & 1 != 0 })),
        0x26 => return Some(Texel::Depth),
        _ => return None,
    };
    let numbers = std::array::from_fn(|at| match signed >> at & 1 != 0 {
        _ if float => Number::Float,
        true => Number::Snorm,
        false if curved[at] => Number::Srgb,
        false => Number::Unorm,
    });
    Some(Texel::Plain(Format { numbers, ..Format::new(bits, Number::Uint) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Y8X8 is SLUMINANCE8_ALPHA8, whose second component is alpha. RV530 passes `fbo-generatemipmap-formats`.
    #[test]
    fn only_red_green_and_blue_are_on_the_srgb_curve() {
        let numbers = |curved| match texture(0x03, 0, curved) {
            Some(Texel::Plain(format)) => format.numbers,
            other => panic!("{other:?}"),
        };
        assert_eq!(numbers([true, false, false, false])[..2], [Number::Srgb, Number::Unorm]);
        assert_eq!(numbers([true, true, false, false])[..2], [Number::Srgb; 2]);
    }

    /// Mesa, `grrg_cmask` and `r300_translate_colormask_swizzle`. RV530 passes `fbo-colormask-formats` for all formats.
    #[test]
    fn components_have_the_mask_bits_that_the_driver_gives_them() {
        let bits = |color_format, out_fmt| color(color_format, out_fmt, false).map(|color| color.mask_bits);
        // Two components of 16 bits, as fractions and as floats, are red and green.
        for out_fmt in [4, 17] {
            assert_eq!(bits(0x6, out_fmt).map(|bits| [bits[0], bits[1]]), Some([2, 0]));
        }
        // Two 32-bit floats contain C0 and C2.
        assert_eq!(bits(0xa, 20).map(|bits| [bits[0], bits[2]]), Some([2, 0]));
        for (color_format, out_fmt) in [(0x6, 0), (0xd, 0), (0xd, 3), (0x9, 0), (0xa, 18)] {
            assert_eq!(bits(color_format, out_fmt), Some([0, 1, 2, 3]));
        }
    }

    /// Mesa, `r300_translate_out_fmt`: I8 stores C2. UV88 stores C2 and C0.
    #[test]
    fn small_targets_store_their_components() {
        assert_eq!(color(0x9, 0, false).map(|color| color.places), Some([None, None, Some(0), None]));
        assert_eq!(color(0xd, 0, false).map(|color| color.places), Some([Some(1), None, Some(0), None]));
        // US_OUT_FMT 16 is one half-precision float. A half-precision float has as many bits as an element of UV88.
        assert_eq!(color(0xd, 16, false).map(|color| color.format.numbers[0]), Some(Number::Float));
        assert_eq!(color(0x6, 15, false), None);
    }
}
