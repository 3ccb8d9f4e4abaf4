//! Creates levels of images from elements in memory.
//!
//! If all components of a format are bit fields, the sampler converts the elements (see [`Elements`]). If a component
//! is not a bit field, the first read of a level decodes the elements of the level.

use std::sync::{Arc, LazyLock};

use reconverge_raster::block::{Block, SIDE};
use reconverge_raster::format::{Format, Number, from_srgb, shared_exponent};
use reconverge_simt::texture::elements::{Channel, Elements, Field, Strides};
use reconverge_simt::texture::{Level, Texels};

/// Encoding of an element of a texture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TexelElement {
    /// One texel.
    Plain(Format),
    /// One texel with three components of nine bits and a shared exponent.
    SharedExponent,
    /// A block of 4 x 4 texels.
    Block {
        /// The compression format.
        block: Block,
        /// Whether the block's colours are on the sRGB curve.
        srgb: bool,
    },
    /// A block of 4 x 4 texels. The block is decompressed to unsigned bytes. The bytes are interpreted as signed.
    SignedAfter(Block),
    /// One texel. The texel's red, green and blue are on the sRGB curve, even if the format selects alpha for red,
    /// green or blue.
    Curved(Format),
    /// A block of 4 x 4 texels. The red, green and blue of the texels are on the sRGB curve, even if the format selects
    /// alpha for red, green or blue.
    CurvedBlock(Block),
}

impl TexelElement {
    /// Returns the size of an element in bytes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            TexelElement::Plain(format) | TexelElement::Curved(format) => format.bytes.into(),
            TexelElement::SharedExponent => 4,
            TexelElement::Block { block, .. }
            | TexelElement::SignedAfter(block)
            | TexelElement::CurvedBlock(block) => block.bytes(),
        }
    }

    /// Returns the number of texels along each side of an element.
    pub(crate) fn side(self) -> usize {
        match self {
            TexelElement::Plain(_) | TexelElement::Curved(_) | TexelElement::SharedExponent => 1,
            TexelElement::Block { .. } | TexelElement::SignedAfter(_) | TexelElement::CurvedBlock(_) => SIDE,
        }
    }

    /// Returns the components of an element's texels, row by row. The sRGB curve of [`TexelElement::Curved`] and
    /// [`TexelElement::CurvedBlock`] is not applied. Bytes past the end of `bytes` read as 0.
    fn texels(self, bytes: &[u8]) -> [[u32; 4]; SIDE * SIDE] {
        match self {
            TexelElement::Plain(format) | TexelElement::Curved(format) => [format.read(bytes); SIDE * SIDE],
            TexelElement::SharedExponent => {
                let mut word = [0; 4];
                let length = bytes.len().min(4);
                word[..length].copy_from_slice(&bytes[..length]);
                [shared_exponent(u32::from_le_bytes(word)); SIDE * SIDE]
            }
            TexelElement::Block { block, srgb } => block.texels(bytes, srgb),
            TexelElement::SignedAfter(block) => block.texels(bytes, false).map(|[r, g, b, a]| {
                let sign = |value: u32| signed(f32::from_bits(value)).to_bits();
                match block {
                    Block::One { .. } => [sign(r), g, b, a],
                    Block::Two { .. } => [sign(r), sign(g), b, a],
                    Block::Color | Block::ExplicitAlpha | Block::InterpolatedAlpha => {
                        [sign(r), sign(g), sign(b), sign(a)]
                    }
                }
            }),
            TexelElement::CurvedBlock(block) => block.texels(bytes, false),
        }
    }

    /// For [`TexelElement::Curved`] and [`TexelElement::CurvedBlock`], returns all components after the sRGB curve.
    /// Red, green and blue of the texel are selected from the returned components.
    fn curved(self, bytes: &[u8]) -> Option<[[u32; 4]; SIDE * SIDE]> {
        match self {
            TexelElement::Plain(_)
            | TexelElement::SharedExponent
            | TexelElement::Block { .. }
            | TexelElement::SignedAfter(_) => None,
            TexelElement::Curved(format) => Some(TexelElement::Plain(curved(format)).texels(bytes)),
            TexelElement::CurvedBlock(block) => Some(block.texels(bytes, true).map(|[r, g, b, a]| {
                let alpha = from_srgb(f32::from_bits(a).into());
                [r, g, b, alpha.to_bits()]
            })),
        }
    }

    /// Returns whether the sampler reads texels directly from the bytes of a level.
    pub(crate) fn is_in_place(self, select: [Select; 4]) -> bool {
        self.channels(select).is_some()
    }

    /// Returns the channels of a texel. Returns `None` if a channel is neither a bit field nor a constant.
    fn channels(self, select: [Select; 4]) -> Option<[Channel; 4]> {
        let formats = match self {
            TexelElement::Plain(format) => [format; 4],
            TexelElement::Curved(format) => [curved(format), curved(format), curved(format), format],
            TexelElement::SharedExponent
            | TexelElement::Block { .. }
            | TexelElement::SignedAfter(_)
            | TexelElement::CurvedBlock(_) => return None,
        };
        let read = |chan: usize| match select[chan] {
            Select::Word(word) => Some(Channel::Word(word)),
            Select::Component(component) => channel(&formats[chan], component.into()),
        };
        Some([read(0)?, read(1)?, read(2)?, read(3)?])
    }
}

/// The source of a component of a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Select {
    /// A component of the element.
    Component(u8),
    /// A constant.
    Word(u32),
}

impl Select {
    /// The components of the element, unchanged.
    pub(crate) const ALL: [Select; 4] =
        [Select::Component(0), Select::Component(1), Select::Component(2), Select::Component(3)];

    /// Returns the selected value, from the components of an element.
    pub(crate) fn of(self, components: [u32; 4]) -> u32 {
        match self {
            Select::Component(component) => components[usize::from(component & 3)],
            Select::Word(word) => word,
        }
    }
}

/// Converts an unsigned fraction to eight bits, and returns the signed fraction with the same bits.
fn signed(fraction: f32) -> f32 {
    let bits = (fraction * 255.).round() as u8;
    (f32::from(bits as i8) / 127.).max(-1.)
}

/// Returns a format with sRGB components instead of unsigned fractions.
fn curved(format: Format) -> Format {
    let number = |number| if number == Number::Unorm { Number::Srgb } else { number };
    Format { numbers: format.numbers.map(number), ..format }
}

/// Returns a component of a format as a channel. Returns `None` if the sampler cannot convert the component.
fn channel(format: &Format, component: usize) -> Option<Channel> {
    let (width, number) = (format.bits[component], format.numbers[component]);
    if width == 0 {
        return Some(Channel::Word(0));
    }
    let first = format.bits[..component].iter().sum();
    let field = Field::new(first, width)?;
    match number {
        Number::Uint => Some(Channel::Bits(field)),
        Number::Sint => Some(Channel::Signed(field)),
        Number::Unorm if width <= 24 => Some(Channel::Fraction(field)),
        Number::Float if width == 32 => Some(Channel::Bits(field)),
        Number::Float if matches!(width, 10 | 11 | 16) => Some(Channel::SmallFloat(field)),
        Number::Snorm | Number::Srgb | Number::Uscaled | Number::Sscaled if width == 8 => {
            Some(Channel::Listed(field, bytes_of(number)))
        }
        Number::Snorm | Number::Srgb | Number::Uscaled | Number::Sscaled if width < 8 => {
            Some(Channel::Listed(field, list(width, number)))
        }
        _ => None,
    }
}

/// Returns the value of each code of a component.
fn list(width: u8, number: Number) -> Arc<[u32]> {
    // The component is the first component of `format`, because the fourth component of an sRGB format is linear.
    let format = Format { numbers: [number; 4], ..Format::new([width, 0, 0, 0], number) };
    (0..1u32 << width).map(|code| format.read(&code.to_le_bytes())[0]).collect()
}

/// Returns the result of [`list`] for components of eight bits.
fn bytes_of(number: Number) -> Arc<[u32]> {
    const NUMBERS: [Number; 4] = [Number::Snorm, Number::Srgb, Number::Uscaled, Number::Sscaled];
    static LISTS: LazyLock<[Arc<[u32]>; 4]> = LazyLock::new(|| NUMBERS.map(|number| list(8, number)));
    match NUMBERS.iter().position(|known| *known == number) {
        Some(at) => LISTS[at].clone(),
        None => list(8, number),
    }
}

/// Position of a level in the bytes of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelPlace {
    /// Width, height and depth in texels.
    pub(crate) size: [usize; 3],
    /// Offset of the first element, and distances between elements, rows and slices.
    pub(crate) strides: Strides,
    /// Offset of the end of the level's bytes. Bytes after this offset read as 0.
    pub(crate) end: usize,
}

impl LevelPlace {
    /// Returns the offset of the end of the last element.
    pub(crate) fn last(&self, element: TexelElement) -> usize {
        let Strides { start, element: step, row, slice } = self.strides;
        let [width, height, depth] = self.size;
        let side = element.side();
        let steps = [(width.div_ceil(side), step), (height.div_ceil(side), row), (depth, slice)];
        steps.iter().fold(start.saturating_add(element.bytes()), |at, (count, step)| {
            at.saturating_add(count.saturating_sub(1).saturating_mul(*step))
        })
    }
}

/// Returns a level of an image. `bytes` must end with the zeros that [`Images`](crate::images::Images) appends.
pub(crate) fn level(
    bytes: &Arc<Vec<u8>>,
    place: LevelPlace,
    element: TexelElement,
    select: [Select; 4],
) -> Level {
    let [width, height, depth] = place.size.map(|size| size as u32);
    let elements = || {
        let channels = element.channels(select).filter(|_| place.last(element) <= place.end)?;
        Elements::new(bytes, place.strides, channels, [width, height, depth])
    };
    let texels = elements().map(Texels::Elements).unwrap_or_else(|| {
        let bytes = bytes.clone();
        Texels::later(move || decoded(&bytes, place, element, select))
    });
    Level { width, height, depth, texels }
}

/// Decodes the texels of a level one by one. [`Elements`] must have the same texels.
fn decoded(bytes: &[u8], place: LevelPlace, element: TexelElement, select: [Select; 4]) -> Vec<[u32; 4]> {
    let [width, height, depth] = place.size;
    let side = element.side();
    let mut texels = vec![[0; 4]; width * height * depth];
    for z in 0..depth {
        for (y, x) in (0..height).step_by(side).flat_map(|y| (0..width).step_by(side).map(move |x| (y, x))) {
            let at = place.strides.place(x / side, y / side, z);
            let end = at.saturating_add(element.bytes()).min(place.end).min(bytes.len());
            let bytes = bytes.get(at..end).unwrap_or(&[]);
            let found = element.texels(bytes);
            let colors = element.curved(bytes).unwrap_or(found);
            for row in 0..side.min(height - y) {
                let to = &mut texels[(z * height + y + row) * width + x..][..side.min(width - x)];
                let found = colors[row * SIDE..].iter().zip(&found[row * SIDE..]);
                for (texel, (color, plain)) in to.iter_mut().zip(found) {
                    let [r, g, b, a] = select;
                    *texel = [r.of(*color), g.of(*color), b.of(*color), a.of(*plain)];
                }
            }
        }
    }
    texels
}

#[cfg(test)]
mod tests {
    use reconverge_simt::random::Random;

    use super::*;

    const NUMBERS: [Number; 8] = [
        Number::Unorm,
        Number::Snorm,
        Number::Uscaled,
        Number::Sscaled,
        Number::Uint,
        Number::Sint,
        Number::Srgb,
        Number::Float,
    ];

    const WIDTHS: [[u8; 4]; 16] = [
        [8; 4],
        [8, 0, 0, 0],
        [8, 8, 0, 0],
        [16, 0, 0, 0],
        [16, 16, 0, 0],
        [16; 4],
        [32, 0, 0, 0],
        [32; 4],
        [10, 10, 10, 2],
        [11, 11, 10, 0],
        [5, 6, 5, 0],
        [5, 5, 5, 1],
        [1, 5, 5, 5],
        [4; 4],
        [8, 24, 0, 0],
        [32, 8, 24, 0],
    ];

    fn random_select(random: &mut Random) -> [Select; 4] {
        if random.once_in(2) {
            return Select::ALL;
        }
        [(); 4].map(|()| match random.below(4) {
            0 => Select::Word(if random.once_in(2) { 0 } else { 1f32.to_bits() }),
            _ => Select::Component(random.below(4) as u8),
        })
    }

    /// According to Mesa's list for RV530, `rgtc-teximage-01` and `-02` fail. The end value -1 is 255 as an unsigned
    /// byte. So -1 is the larger end value of the block.
    #[test]
    fn a_sign_after_decompression_takes_the_larger_end_from_unsigned_bytes() {
        // The end values of the block are -1 / 127 and 5 / 127. The test reads texels with the codes 0, 1, 2 and 7.
        let half = 0xffu64 | 0x05 << 8 | 0b111_010_001_000 << 16;
        let texels = |element: TexelElement| {
            let texels = element.texels(&half.to_le_bytes());
            [0, 1, 2, 3].map(|place: usize| (f32::from_bits(texels[place][0]) * 127.).round())
        };
        let after = texels(TexelElement::SignedAfter(Block::One { signed: false }));
        // The third value is (6 * 255 + 5) / 7 = 219, which is -37 as a signed byte. The fourth value is (255 + 6 * 5)
        // / 7 = 41.
        assert_eq!(after, [-1., 5., -37., 41.]);
        // If both end values have the same sign, the unsigned and the signed format give equal results.
        let same = 0x7fu64 | 0x11 << 8 | 0b111_010_001_000 << 16;
        let texels = |element: TexelElement| element.texels(&same.to_le_bytes())[3][0];
        let block = TexelElement::Block { block: Block::One { signed: true }, srgb: false };
        let found =
            [TexelElement::SignedAfter(Block::One { signed: false }), block].map(texels).map(f32::from_bits);
        assert!((found[0] - found[1]).abs() < 0.5 / 127., "{found:?}");
    }

    #[test]
    fn elements_are_the_texels_that_are_decoded_one_by_one() {
        let mut random = Random::new(23);
        let mut kept = 0;
        for round in 0..2_000 {
            let number = random.one_of(&NUMBERS);
            let bits = random.one_of(&WIDTHS);
            let mut format = Format { numbers: [number; 4], ..Format::new(bits, Number::Uint) };
            if random.once_in(3) {
                format.numbers = [(); 4].map(|()| random.one_of(&NUMBERS));
            }
            for (width, number) in bits.into_iter().zip(&mut format.numbers) {
                if *number == Number::Float && !matches!(width, 0 | 10 | 11 | 16 | 32) {
                    *number = Number::Unorm;
                }
            }
            let element = match random.once_in(4) {
                true => TexelElement::Curved(format),
                false => TexelElement::Plain(format),
            };
            let size = [(); 3].map(|()| 1 + random.below(9) as usize);
            let row = size[0] * element.bytes() + random.below(7) as usize;
            let slice = row * size[1] + random.below(7) as usize;
            let start = random.below(5) as usize;
            let strides = Strides { start, element: element.bytes(), row, slice };
            let length = start + slice * size[2];
            // In one of five cases, the memory contains only a part of the level.
            let end = if random.once_in(5) { random.below(length as u32) as usize } else { length };
            let place = LevelPlace { size, strides, end };
            let bytes = (0..length).map(|_| random.next() as u8).chain([0; 16]).collect();
            let select = random_select(&mut random);
            let bytes = Arc::new(bytes);
            let level = level(&bytes, place, element, select);
            kept += usize::from(matches!(level.texels, Texels::Elements(_)));
            let expected = decoded(&bytes, place, element, select);
            assert!(level.texels().eq(expected), "{round}: {format:?} {place:?} {select:?}");
        }
        assert!(kept > 1_000, "{kept} levels have elements");
    }

    /// The curve applies to the red, green and blue of a texel, but not to the alpha of the texel. The format's
    /// selection of components for red, green and blue does not matter.
    #[test]
    fn the_curve_is_for_the_colour_of_a_texel() {
        let luminance =
            [Select::Component(0), Select::Component(0), Select::Component(0), Select::Component(1)];
        let exchanged = [Select::Component(1), Select::Word(0), Select::Component(0), Select::Component(0)];
        let format = Format::new([8, 8, 0, 0], Number::Unorm);
        let bytes: Arc<Vec<u8>> = Arc::new([0x80, 0x80].into_iter().chain([0; 16]).collect());
        let strides = Strides { start: 0, element: 2, row: 2, slice: 2 };
        let place = LevelPlace { size: [1; 3], strides, end: 2 };
        let (plain, curve) = ((128f32 / 255.).to_bits(), from_srgb(128. / 255.).to_bits());
        for (select, expected) in
            [(luminance, [curve, curve, curve, plain]), (exchanged, [curve, 0, curve, plain])]
        {
            let element = TexelElement::Curved(format);
            assert_eq!(level(&bytes, place, element, select).texel(0, 0, 0), expected);
            assert_eq!(decoded(&bytes, place, element, select), [expected]);
        }
        // A block with alpha 80h and black texels.
        let bytes: Arc<Vec<u8>> = Arc::new([0x80, 0x80].into_iter().chain([0; 30]).collect());
        let place = LevelPlace { size: [1; 3], strides, end: 16 };
        let alphas = [Select::Component(3); 4];
        let texel =
            level(&bytes, place, TexelElement::CurvedBlock(Block::InterpolatedAlpha), alphas).texel(0, 0, 0);
        // Alpha is rounded to single precision before the curve is applied.
        let curve = from_srgb(f32::from_bits(plain).into()).to_bits();
        assert_eq!(texel, [curve, curve, curve, plain]);
    }

    #[test]
    fn blocks_fill_levels_of_any_size() {
        let bytes: Arc<Vec<u8>> = Arc::new((0..64u8).map(|at| at.wrapping_mul(5)).chain([0; 16]).collect());
        let element = TexelElement::Block { block: Block::Color, srgb: false };
        let strides = Strides { start: 0, element: 8, row: 16, slice: 32 };
        let level = level(&bytes, LevelPlace { size: [7, 5, 2], strides, end: 64 }, element, Select::ALL);
        assert!(matches!(level.texels, Texels::Later(_)));
        let block = |at: usize| Block::Color.texels(&bytes[at..], false);
        assert_eq!(level.texel(6, 4, 1), block(32 + 16 + 8)[2]);
        assert_eq!(level.texel(1, 3, 0), block(0)[13]);
        assert_eq!(level.texels().count(), 70);
    }
}
