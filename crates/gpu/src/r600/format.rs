//! The formats of colour buffers, depth buffers and textures, by the chip's numbers.
//!
//! Source: Mesa `r600d.h` (V_0280A0_COLOR_*, V_028010_DEPTH_*, V_0280A0_NUMBER_*, V_0280A0_SWAP_*) and the manual's
//! DATA_FORMAT table. The name of a packed format lists the most significant component first.

use reconverge_raster::depth::DepthFormat;
use reconverge_raster::format::{Format, Number};

/// Returns the widths of a format's components, from the least significant bit upward, and whether the components are
/// floats.
fn layout(number: u8) -> Option<([u8; 4], bool)> {
    Some(match number {
        0x01 => ([8, 0, 0, 0], false),
        0x02 => ([4, 4, 0, 0], false),
        0x03 => ([2, 3, 3, 0], false),
        0x05 => ([16, 0, 0, 0], false),
        0x06 => ([16, 0, 0, 0], true),
        0x07 => ([8, 8, 0, 0], false),
        0x08 => ([5, 6, 5, 0], false),
        0x09 => ([5, 5, 6, 0], false),
        0x0a => ([5, 5, 5, 1], false),
        0x0b => ([4, 4, 4, 4], false),
        0x0c => ([1, 5, 5, 5], false),
        0x0d => ([32, 0, 0, 0], false),
        0x0e => ([32, 0, 0, 0], true),
        0x0f => ([16, 16, 0, 0], false),
        0x10 => ([16, 16, 0, 0], true),
        0x11 => ([24, 8, 0, 0], false),
        0x13 => ([8, 24, 0, 0], false),
        0x15 => ([11, 11, 10, 0], false),
        0x16 => ([11, 11, 10, 0], true),
        0x17 => ([10, 11, 11, 0], false),
        0x18 => ([10, 11, 11, 0], true),
        0x19 => ([10, 10, 10, 2], false),
        0x1a => ([8, 8, 8, 8], false),
        0x1b => ([2, 10, 10, 10], false),
        0x1d => ([32, 32, 0, 0], false),
        0x1e => ([32, 32, 0, 0], true),
        0x1f => ([16, 16, 16, 16], false),
        0x20 => ([16, 16, 16, 16], true),
        0x22 => ([32, 32, 32, 32], false),
        0x23 => ([32, 32, 32, 32], true),
        0x2c => ([8, 8, 8, 0], false),
        0x2d => ([16, 16, 16, 0], false),
        0x2e => ([16, 16, 16, 0], true),
        0x2f => ([32, 32, 32, 0], false),
        0x30 => ([32, 32, 32, 0], true),
        _ => return None,
    })
}

/// Returns the format of a colour buffer with the fields FORMAT and NUMBER_TYPE, or `None` if a colour buffer cannot
/// have this format.
pub(super) fn color(format: u8, number_type: u8) -> Option<Format> {
    // A colour format for depth and stencil. The first component is a 32-bit float. A byte of stencil follows.
    if format == 0x1c {
        let numbers = [Number::Float, Number::Uint, Number::Uint, Number::Uint];
        return Some(Format { bits: [32, 8, 0, 0], numbers, bytes: 8 });
    }
    let (bits, float) = layout(format)?;
    let number = match number_type {
        _ if float => Number::Float,
        0 => Number::Unorm,
        1 => Number::Snorm,
        2 => Number::Uscaled,
        3 => Number::Sscaled,
        4 => Number::Uint,
        5 => Number::Sint,
        6 => Number::Srgb,
        _ => Number::Float,
    };
    Some(Format::new(bits, number))
}

/// For each of red, green, blue and alpha, returns the component of the element that stores the channel. The result
/// depends on COMP_SWAP and on the number of components.
pub(super) fn places(format: &Format, comp_swap: u8) -> [Option<u8>; 4] {
    let count = format.bits.iter().filter(|width| **width != 0).count();
    // For each component of the element, the channel of the colour.
    let memory: &[usize] = match (count, comp_swap) {
        (1, 0) => &[0],
        (1, 1) => &[1],
        (1, 2) => &[2],
        (1, _) => &[3],
        (2, 0) => &[0, 1],
        (2, 1) => &[0, 3],
        (2, 2) => &[1, 0],
        (2, _) => &[3, 0],
        (3, 0) => &[0, 1, 2],
        (3, 1) => &[0, 1, 3],
        (3, 2) => &[2, 1, 0],
        (3, _) => &[3, 1, 0],
        (_, 0) => &[0, 1, 2, 3],
        (_, 1) => &[2, 1, 0, 3],
        (_, 2) => &[3, 2, 1, 0],
        (_, _) => &[3, 0, 1, 2],
    };
    let mut places = [None; 4];
    for (place, channel) in memory.iter().enumerate() {
        places[*channel] = Some(place as u8);
    }
    places
}

/// Returns the format of a depth buffer, or `None` if the number is unassigned.
pub(super) fn depth(format: u8) -> Option<DepthFormat> {
    match format {
        1 => Some(DepthFormat::Unorm16),
        2 | 3 => Some(DepthFormat::Unorm24),
        6 => Some(DepthFormat::Float32),
        7 => Some(DepthFormat::Float32Stencil),
        _ => None,
    }
}

/// Fields of a texture that describe its components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Components {
    /// FORMAT_COMP: whether each component is signed.
    pub(super) signed: [bool; 4],
    /// NUM_FORMAT_ALL. 0: a fraction. 1: an integer. 2: an integer that is converted to a float.
    pub(super) num_format: u8,
    /// FORCE_DEGAMMA: whether red, green and blue are on the sRGB curve.
    pub(super) srgb: bool,
}

/// Returns the format of a texture's elements, or `None` if the format is compressed or unknown.
pub(super) fn texture(format: u8, components: &Components) -> Option<Format> {
    if format == 0x1c {
        return color(0x1c, 0);
    }
    let (bits, float) = layout(format)?;
    let numbers = std::array::from_fn(|at| match (components.num_format, components.signed[at]) {
        _ if float => Number::Float,
        (1, false) => Number::Uint,
        (1, true) => Number::Sint,
        (2, false) => Number::Uscaled,
        (2, true) => Number::Sscaled,
        (_, false) if components.srgb && at < 3 => Number::Srgb,
        (_, false) => Number::Unorm,
        (_, true) => Number::Snorm,
    });
    Some(Format { numbers, ..Format::new(bits, Number::Uint) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_go_where_comp_swap_says() {
        let four = Format::new([8; 4], Number::Unorm);
        assert_eq!(places(&four, 1), [Some(2), Some(1), Some(0), Some(3)]);
        assert_eq!(places(&four, 3), [Some(1), Some(2), Some(3), Some(0)]);
        let one = Format::new([8, 0, 0, 0], Number::Unorm);
        assert_eq!(places(&one, 3), [None, None, None, Some(0)]);
    }
}
