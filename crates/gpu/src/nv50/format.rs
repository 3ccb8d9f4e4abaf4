//! The formats of surfaces, textures and vertex attributes, by the chip's numbers.
//!
//! Source: Mesa `nv50_formats.c` and `nv50_defs.xml.h`. Components are listed from byte 0 upward.

use reconverge_board::errata::{Errata, Erratum};
use reconverge_raster::depth::DepthFormat;
use reconverge_raster::format::{Format, Number};

/// Format of a colour surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Color {
    /// Format of the elements.
    pub(super) format: Format,
    /// The four entries belong to red, green, blue and alpha. An entry is the number of the component that stores the
    /// channel, or `None` if no component stores the channel.
    pub(super) places: [Option<u8>; 4],
}

const RGBA: [Option<u8>; 4] = [Some(0), Some(1), Some(2), Some(3)];
const BGRA: [Option<u8>; 4] = [Some(2), Some(1), Some(0), Some(3)];
const RGBX: [Option<u8>; 4] = [Some(0), Some(1), Some(2), None];
const BGRX: [Option<u8>; 4] = [Some(2), Some(1), Some(0), None];
const RG: [Option<u8>; 4] = [Some(0), Some(1), None, None];
const R: [Option<u8>; 4] = [Some(0), None, None, None];
const A: [Option<u8>; 4] = [None, None, None, Some(0)];

/// Returns the format of a colour surface, or `None` if the number is unassigned.
pub(super) fn color(number: u32) -> Option<Color> {
    use Number::{Float, Sint, Snorm, Srgb, Uint, Unorm};
    let (bits, kind, places) = match number {
        0xc0 => ([32; 4], Float, RGBA),
        0xc1 => ([32; 4], Sint, RGBA),
        0xc2 => ([32; 4], Uint, RGBA),
        0xc3 => ([32; 4], Float, RGBX),
        0xc4 => ([32; 4], Sint, RGBX),
        0xc5 => ([32; 4], Uint, RGBX),
        0xc6 => ([16; 4], Unorm, RGBA),
        0xc7 => ([16; 4], Snorm, RGBA),
        0xc8 => ([16; 4], Sint, RGBA),
        0xc9 => ([16; 4], Uint, RGBA),
        0xca => ([16; 4], Float, RGBA),
        0xcb => ([32, 32, 0, 0], Float, RG),
        0xcc => ([32, 32, 0, 0], Sint, RG),
        0xcd => ([32, 32, 0, 0], Uint, RG),
        0xce => ([16; 4], Float, RGBX),
        0xcf => ([8; 4], Unorm, BGRA),
        0xd0 => ([8; 4], Srgb, BGRA),
        0xd1 => ([10, 10, 10, 2], Unorm, RGBA),
        0xd2 => ([10, 10, 10, 2], Uint, RGBA),
        0xd5 => ([8; 4], Unorm, RGBA),
        0xd6 => ([8; 4], Srgb, RGBA),
        0xd7 => ([8; 4], Snorm, RGBA),
        0xd8 => ([8; 4], Sint, RGBA),
        0xd9 => ([8; 4], Uint, RGBA),
        0xda => ([16, 16, 0, 0], Unorm, RG),
        0xdb => ([16, 16, 0, 0], Snorm, RG),
        0xdc => ([16, 16, 0, 0], Sint, RG),
        0xdd => ([16, 16, 0, 0], Uint, RG),
        0xde => ([16, 16, 0, 0], Float, RG),
        0xdf => ([10, 10, 10, 2], Unorm, BGRA),
        0xe0 => ([11, 11, 10, 0], Float, RGBX),
        0xe3 => ([32, 0, 0, 0], Sint, R),
        0xe4 => ([32, 0, 0, 0], Uint, R),
        0xe5 | 0xff => ([32, 0, 0, 0], Float, R),
        0xe6 | 0xfd | 0xfe => ([8; 4], Unorm, BGRX),
        0xe7 => ([8; 4], Srgb, BGRX),
        0xe8 => ([5, 6, 5, 0], Unorm, BGRX),
        0xe9 => ([5, 5, 5, 1], Unorm, BGRA),
        0xea => ([8, 8, 0, 0], Unorm, RG),
        0xeb => ([8, 8, 0, 0], Snorm, RG),
        0xec => ([8, 8, 0, 0], Sint, RG),
        0xed => ([8, 8, 0, 0], Uint, RG),
        0xee => ([16, 0, 0, 0], Unorm, R),
        0xef => ([16, 0, 0, 0], Snorm, R),
        0xf0 => ([16, 0, 0, 0], Sint, R),
        0xf1 => ([16, 0, 0, 0], Uint, R),
        0xf2 => ([16, 0, 0, 0], Float, R),
        0xf3 => ([8, 0, 0, 0], Unorm, R),
        0xf4 => ([8, 0, 0, 0], Snorm, R),
        0xf5 => ([8, 0, 0, 0], Sint, R),
        0xf6 => ([8, 0, 0, 0], Uint, R),
        0xf7 => ([8, 0, 0, 0], Unorm, A),
        0xf8 | 0xfb | 0xfc => ([5, 5, 5, 1], Unorm, BGRX),
        0xf9 => ([8; 4], Unorm, RGBX),
        0xfa => ([8; 4], Srgb, RGBX),
        _ => return None,
    };
    Some(Color { format: Format::new(bits, kind), places })
}

/// Returns whether the chip blends colours in a format. If the chip does not blend a format, new colours replace the
/// stored colours. In Mesa's table, three kinds of targets have no blending: integers, SNORM, and UNORM with 16-bit
/// components. NV92 fails piglit's `fbo-blending-formats` only for the formats of these three kinds:
/// [`Erratum::NoBlending`]. Integers never blend. (OpenGL 3.0, 4.1.7)
pub(super) fn blends(format: &Format, errata: Errata) -> bool {
    let all = !errata.has(Erratum::NoBlending);
    match format.numbers[0] {
        Number::Unorm | Number::Srgb => all || !format.bits.contains(&16),
        Number::Float => true,
        Number::Snorm => all,
        Number::Uscaled | Number::Sscaled | Number::Uint | Number::Sint => false,
    }
}

/// Returns the format of a depth surface, or `None` if the number is unassigned. Formats with coverage samples are not
/// supported. The driver does not use these formats.
pub(super) fn zeta(number: u32) -> Option<DepthFormat> {
    Some(match number {
        0x0a => DepthFormat::Float32,
        0x13 => DepthFormat::Unorm16,
        0x14 => DepthFormat::StencilUnorm24,
        0x15 | 0x16 => DepthFormat::Unorm24,
        0x19 => DepthFormat::Float32Stencil,
        _ => return None,
    })
}

/// Returns the widths in bits of the components of a vertex attribute.
pub(super) fn vertex(number: u32) -> Option<[u8; 4]> {
    Some(match number {
        0x01 => [32; 4],
        0x02 => [32, 32, 32, 0],
        0x03 => [16; 4],
        0x04 => [32, 32, 0, 0],
        0x05 => [16, 16, 16, 0],
        0x0a => [8; 4],
        0x0f => [16, 16, 0, 0],
        0x12 => [32, 0, 0, 0],
        0x13 => [8, 8, 8, 0],
        0x18 => [8, 8, 0, 0],
        0x1b => [16, 0, 0, 0],
        0x1d => [8, 0, 0, 0],
        0x30 => [10, 10, 10, 2],
        0x31 => [11, 11, 10, 0],
        _ => return None,
    })
}

/// Returns the number type of the components of a vertex attribute.
pub(super) fn vertex_number(number: u32) -> Option<Number> {
    Some(match number {
        0x09 => Number::Snorm,
        0x12 => Number::Unorm,
        0x1b => Number::Sint,
        0x24 => Number::Uint,
        0x2d => Number::Uscaled,
        0x36 => Number::Sscaled,
        0x3f => Number::Float,
        _ => return None,
    })
}

/// Returns the widths in bits of the components of a texture's elements, from the lowest bits upward. Returns `None`
/// for compressed and unknown formats.
pub(super) fn texture(number: u32) -> Option<[u8; 4]> {
    Some(match number {
        0x01 => [32; 4],
        0x03 => [16; 4],
        0x04 => [32, 32, 0, 0],
        // The components are R32, then G8, then B24.
        0x05 => [32, 8, 24, 0],
        0x07 | 0x08 => [8; 4],
        0x09 => [10, 10, 10, 2],
        0x0c => [16, 16, 0, 0],
        0x0d => [24, 8, 0, 0],
        0x0e => [8, 24, 0, 0],
        0x0f => [32, 0, 0, 0],
        0x12 => [4; 4],
        0x13 => [1, 5, 5, 5],
        0x14 => [5, 5, 5, 1],
        0x15 => [5, 6, 5, 0],
        0x16 => [5, 5, 6, 0],
        0x18 => [8, 8, 0, 0],
        0x1b | 0x3a => [16, 0, 0, 0],
        0x1d => [8, 0, 0, 0],
        0x1e => [4, 4, 0, 0],
        0x21 => [11, 11, 10, 0],
        // Format 29h has the stencil in the lower bits. Formats 2ah and 2bh have the depth in the lower bits.
        0x29 => [8, 24, 0, 0],
        0x2a | 0x2b => [24, 8, 0, 0],
        0x2f => [32, 0, 0, 0],
        0x30 => [32, 8, 24, 0],
        _ => return None,
    })
}

/// Returns the number type of a texture's component.
pub(super) fn texture_number(number: u32) -> Number {
    match number {
        1 | 5 => Number::Snorm,
        3 => Number::Sint,
        4 => Number::Uint,
        7 => Number::Float,
        _ => Number::Unorm,
    }
}
