//! Decodes compressed texels in blocks of 4 x 4.
//!
//! Sources: EXT_texture_compression_s3tc, EXT_texture_sRGB, ARB_texture_compression_rgtc. Intermediate colours of a
//! block have single precision. The specifications do not require rounding.

use crate::format::from_srgb;

/// Compression format of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// BC1, DXT1. A block has two colours, and further colours between the two colours. Alpha is 0 or 1.
    Color,
    /// BC2, DXT3. A block has four bits of alpha per texel, followed by colours as in BC1.
    ExplicitAlpha,
    /// BC3, DXT5. A block has two values of alpha, and further values between the two values. Colours as in BC1 follow.
    InterpolatedAlpha,
    /// BC4, RGTC1. A block has one channel with two values, and further values between the two values.
    One {
        /// Whether values are from -1 to 1. If not, values are from 0 to 1.
        signed: bool,
    },
    /// BC5, RGTC2: red and green, each encoded as in BC4.
    Two {
        /// Whether values are from -1 to 1. If not, values are from 0 to 1.
        signed: bool,
    },
}

/// Width and height of a block in texels.
pub const SIDE: usize = 4;

impl Block {
    /// Returns the size of a block in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Block::Color | Block::One { .. } => 8,
            Block::ExplicitAlpha | Block::InterpolatedAlpha | Block::Two { .. } => 16,
        }
    }

    /// Returns the texels of a block, row by row. A texel is the bits of red, green, blue and alpha. Missing colour
    /// channels are 0, and missing alpha is 1. Bytes after the end of `bytes` read as 0. If `srgb` is set, the colours
    /// are on the sRGB curve.
    pub fn texels(self, bytes: &[u8], srgb: bool) -> [[u32; 4]; SIDE * SIDE] {
        let mut block = [0; 16];
        let length = bytes.len().min(self.bytes());
        block[..length].copy_from_slice(&bytes[..length]);
        let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| block[at + byte]));
        let mut texels = [[0., 0., 0., 1.]; SIDE * SIDE];
        match self {
            Block::Color => texels = colors(half(0), true),
            Block::ExplicitAlpha => {
                texels = colors(half(8), false);
                for (place, texel) in texels.iter_mut().enumerate() {
                    texel[3] = (half(0) >> (4 * place) & 0xf) as f32 / 15.;
                }
            }
            Block::InterpolatedAlpha => {
                texels = colors(half(8), false);
                for (texel, alpha) in texels.iter_mut().zip(channel(half(0), false)) {
                    texel[3] = alpha;
                }
            }
            Block::One { signed } => {
                for (texel, red) in texels.iter_mut().zip(channel(half(0), signed)) {
                    texel[0] = red;
                }
            }
            Block::Two { signed } => {
                let both = channel(half(0), signed).into_iter().zip(channel(half(8), signed));
                for (texel, (red, green)) in texels.iter_mut().zip(both) {
                    (texel[0], texel[1]) = (red, green);
                }
            }
        }
        texels.map(|[r, g, b, a]| {
            let color = [r, g, b].map(|value| if srgb { from_srgb(value.into()) } else { value });
            [color[0], color[1], color[2], a].map(f32::to_bits)
        })
    }
}

/// Decodes eight bytes of colours. The bytes contain two colours of 5, 6 and 5 bits, followed by two bits per texel.
fn colors(half: u64, may_be_transparent: bool) -> [[f32; 4]; SIDE * SIDE] {
    let ends = [half & 0xffff, half >> 16 & 0xffff];
    let [first, second] = ends.map(|end| {
        [(end >> 11 & 0x1f) as f32 / 31., (end >> 5 & 0x3f) as f32 / 63., (end & 0x1f) as f32 / 31., 1.]
    });
    let between = |share: f32| -> [f32; 4] {
        std::array::from_fn(|at| if at == 3 { 1. } else { first[at] + (second[at] - first[at]) * share })
    };
    let others = match !may_be_transparent || ends[0] > ends[1] {
        true => [between(1. / 3.), between(2. / 3.)],
        false => [between(0.5), [0.; 4]],
    };
    let all = [first, second, others[0], others[1]];
    std::array::from_fn(|place| all[(half >> (32 + 2 * place) & 3) as usize])
}

/// Decodes eight bytes of one channel. The bytes contain two values of eight bits, followed by three bits per texel.
fn channel(half: u64, signed: bool) -> [f32; SIDE * SIDE] {
    let codes = [half as u8, (half >> 8) as u8];
    let value = |code: u8| match signed {
        false => f32::from(code) / 255.,
        true => (f32::from(code as i8) / 127.).max(-1.),
    };
    let [first, second] = codes.map(value);
    let above = match signed {
        false => codes[0] > codes[1],
        true => (codes[0] as i8) > (codes[1] as i8),
    };
    let between = |at: u64, of: u64| first + (second - first) * at as f32 / of as f32;
    std::array::from_fn(|place| match half >> (16 + 3 * place) & 7 {
        0 => first,
        1 => second,
        code if above => between(code - 1, 7),
        6 if signed => -1.,
        6 => 0.,
        7 => 1.,
        code => between(code - 1, 5),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(block: Block, bytes: &[u8]) -> [[f32; 4]; 16] {
        block.texels(bytes, false).map(|texel| texel.map(f32::from_bits))
    }

    /// EXT_texture_compression_s3tc: the block has the colours red and blue, and two colours between red and blue.
    #[test]
    fn colours_lie_between_the_two_of_the_block() {
        let bytes = [0x00, 0xf8, 0x1f, 0x00, 0b11_10_01_00, 0, 0, 0];
        let found = floats(Block::Color, &bytes);
        let close = |a: [f32; 4], b: [f32; 4]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close(found[0], [1., 0., 0., 1.]) && close(found[1], [0., 0., 1., 1.]));
        assert!(close(found[2], [2. / 3., 0., 1. / 3., 1.]) && close(found[3], [1. / 3., 0., 2. / 3., 1.]));
    }

    #[test]
    fn the_fourth_colour_is_transparent_where_the_first_is_not_above_the_second() {
        let bytes = [0x1f, 0x00, 0x00, 0xf8, 0b11_10_01_00, 0, 0, 0];
        let found = floats(Block::Color, &bytes);
        assert_eq!((found[2], found[3]), ([0.5, 0., 0.5, 1.], [0.; 4]));
        // BC2 and BC3 do not have a transparent colour.
        let wide = [[0xff; 8], bytes].concat();
        assert_eq!(floats(Block::ExplicitAlpha, &wide)[3][3], 1.);
    }

    /// ARB_texture_compression_rgtc: if the first value of a block is larger than the second value, the block has eight
    /// values. Any other block has six values, and also the minimum and maximum of the format.
    #[test]
    fn a_channel_has_eight_steps_or_six_and_the_ends() {
        let codes = |low: u8, high: u8| {
            let bits = (0..8u64).fold(0, |bits, code| bits | code << (3 * code));
            let half = u64::from(low) | u64::from(high) << 8 | bits << 16;
            floats(Block::One { signed: false }, &half.to_le_bytes()).map(|texel| texel[0] * 255.)
        };
        let round = |values: [f32; 16]| values[..8].iter().map(|value| value.round()).collect::<Vec<_>>();
        assert_eq!(round(codes(210, 0)), [210., 0., 180., 150., 120., 90., 60., 30.]);
        assert_eq!(round(codes(0, 250)), [0., 250., 50., 100., 150., 200., 0., 255.]);
    }

    #[test]
    fn signed_channels_reach_minus_one() {
        let half = u64::from(0x80u8) | u64::from(0x7fu8) << 8 | 0b110_001_000 << 16;
        let found = floats(Block::Two { signed: true }, &[half.to_le_bytes(); 2].concat());
        assert_eq!(
            [found[0], found[1], found[2]],
            [[-1., -1., 0., 1.], [1., 1., 0., 1.], [-1., -1., 0., 1.]]
        );
    }

    #[test]
    fn a_block_that_is_cut_off_reads_as_zeros() {
        assert_eq!(floats(Block::InterpolatedAlpha, &[])[0], [0., 0., 0., 0.]);
    }
}
