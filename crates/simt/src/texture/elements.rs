//! Texels in their memory format. A texel is an element. Reading a texel converts the fields of the element to numbers.
//!
//! [`Elements::texel`] converts one texel. Its result defines the value of the texel. The sampler over rows
//! (`rows/stored.rs`) converts the texels of several lanes at once.

use std::sync::Arc;

/// A bit field of an element. Bits are counted from the least significant bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset of the four bytes that are read for the field, from the start of the element.
    byte: u8,
    /// Number of bits below the field in the four bytes that are read for the field.
    shift: u8,
    /// Number of bits in the field.
    width: u8,
}

impl Field {
    /// Returns the field of `width` bits from bit `first` of an element on. Returns `None` if no four contiguous bytes
    /// contain the field.
    pub fn new(first: u8, width: u8) -> Option<Field> {
        // If possible, the field is read as part of the element's first word. One read of this word then provides the
        // fields of several components.
        let byte = if u32::from(first) + u32::from(width) <= u32::BITS { 0 } else { first / 8 };
        let shift = first - byte * 8;
        (width > 0 && u32::from(shift) + u32::from(width) <= u32::BITS).then_some(Field {
            byte,
            shift,
            width,
        })
    }

    /// Returns the offset of the four bytes that are read for the field, from the start of the element.
    pub(super) fn byte(self) -> usize {
        self.byte.into()
    }

    /// Returns the number of bits below the field in the four bytes that are read for the field.
    pub(super) fn shift(self) -> u32 {
        self.shift.into()
    }

    /// Returns the largest number that the field can contain.
    pub(super) fn most(self) -> u32 {
        u32::MAX >> (u32::BITS - u32::from(self.width))
    }

    /// Returns the number of bits of a word that are not part of the field.
    pub(super) fn above(self) -> u32 {
        u32::BITS - u32::from(self.width)
    }
}

/// The source of a component of a texel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// A constant. Every texel has this word.
    Word(u32),
    /// A fraction from 0 to 1. The number in the field is divided by the largest number that the field can contain. The
    /// quotient is rounded once. The field has up to 24 bits.
    Fraction(Field),
    /// The bits of the field.
    Bits(Field),
    /// The bits of the field, with its sign extended.
    Signed(Field),
    /// A float with five bits of exponent. A float of 16 bits has a sign. A float of 11 or 10 bits has no sign.
    SmallFloat(Field),
    /// A word of a list. The field contains the index of the word in the list.
    Listed(Field, Arc<[u32]>),
}

/// A channel that is a constant byte or one byte of the element. A byte b represents the fraction b / 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteChannel {
    /// The byte with this number in the element.
    Byte(u8),
    /// The same byte in every texel.
    Constant(u8),
}

impl Channel {
    /// Returns the field that the channel reads. Returns `None` if the channel does not read a field.
    pub(super) fn field(&self) -> Option<Field> {
        match self {
            Channel::Word(_) => None,
            Channel::Fraction(field)
            | Channel::Bits(field)
            | Channel::Signed(field)
            | Channel::SmallFloat(field)
            | Channel::Listed(field, _) => Some(*field),
        }
    }

    /// Returns the channel as a byte. The channel must be the constant 0 or 1, or a fraction in a whole byte of the
    /// first word. For any other channel, the function returns `None`.
    pub fn as_byte(&self) -> Option<ByteChannel> {
        const ONE: u32 = 1f32.to_bits();
        match self {
            Channel::Word(0) => Some(ByteChannel::Constant(0)),
            Channel::Word(ONE) => Some(ByteChannel::Constant(u8::MAX)),
            Channel::Fraction(Field { byte: 0, shift, width: 8 }) if shift % 8 == 0 => {
                Some(ByteChannel::Byte(shift / 8))
            }
            _ => None,
        }
    }

    /// Returns whether all values of the channel are [bounded](are_bounded).
    pub(super) fn is_bounded(&self) -> bool {
        match self {
            Channel::Word(word) => are_bounded(&[*word]),
            Channel::Fraction(_) => true,
            Channel::Bits(_) | Channel::Signed(_) | Channel::SmallFloat(_) => false,
            Channel::Listed(_, words) => are_bounded(words),
        }
    }

    /// Returns whether the channel defines a value for each number in the field.
    fn is_complete(&self) -> bool {
        match self {
            Channel::Word(_) | Channel::Bits(_) | Channel::Signed(_) => true,
            Channel::Fraction(field) => field.width <= 24,
            Channel::SmallFloat(field) => matches!(field.width, 10 | 11 | 16),
            Channel::Listed(field, words) => words.len() as u64 > u64::from(field.most()),
        }
    }

    /// Returns the channel's component of an element. `word` returns the four bytes at an offset in the element.
    fn read(&self, word: impl Fn(usize) -> u32) -> u32 {
        let Some(field) = self.field() else {
            return if let Channel::Word(bits) = self { *bits } else { 0 };
        };
        let number = word(field.byte()) >> field.shift() & field.most();
        match self {
            Channel::Word(_) | Channel::Bits(_) => number,
            // Numbers of up to 24 bits are exact as singles, and the quotient is rounded once.
            Channel::Fraction(_) => (number as f32 / field.most() as f32).to_bits(),
            Channel::Signed(_) => ((number << field.above()) as i32 >> field.above()) as u32,
            Channel::SmallFloat(_) => small_float(number << small_float_shift(field)),
            Channel::Listed(_, words) => words[number as usize],
        }
    }
}

/// Returns whether each word, as a single, is +0 or has a magnitude from 2^-100 to 2^100.
pub(super) fn are_bounded(words: &[u32]) -> bool {
    const LEAST: u32 = (127 - 100) << 23;
    const SPAN: u32 = 200 << 23;
    let is_bounded = |word: u32| word == 0 || (word & 0x7fff_ffff).wrapping_sub(LEAST) <= SPAN;
    // The compiler vectorizes a conjunction over the words of a chunk. It does not vectorize a search for the first
    // unbounded word.
    let are = |words: &[u32]| words.iter().fold(true, |bounded, word| bounded & is_bounded(*word));
    words.chunks(1024).all(are)
}

/// Returns the number of bits by which a small float is shifted left to become a half float.
pub(super) fn small_float_shift(field: Field) -> u32 {
    match field.width {
        16 => 0,
        11 => 4,
        _ => 5,
    }
}

/// Converts a half float to a single. If the half float is a NaN, the result is a quiet NaN with the same other bits.
#[inline(always)]
pub(super) fn small_float(half: u32) -> u32 {
    let magnitude = half & 0x7fff;
    // After the shift, the exponent is too small by 112. The multiplication by 2^112 corrects the exponent. The product
    // is exact, and denormal halves become normal singles.
    let finite = (f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000)).to_bits();
    let quiet = if magnitude > 0x7c00 { 0x0040_0000 } else { 0 };
    let special = magnitude << 13 | 0x7f80_0000 | quiet;
    (half & 0x8000) << 16 | if magnitude >= 0x7c00 { special } else { finite }
}

/// Positions of the elements of a level within a list of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// Offset of the first element in bytes.
    pub start: usize,
    /// Number of bytes from the start of an element to the start of the next element in the row.
    pub element: usize,
    /// Number of bytes from the start of a row to the start of the next row.
    pub row: usize,
    /// Number of bytes from the start of a slice to the start of the next slice.
    pub slice: usize,
}

impl Strides {
    /// Returns the offset of an element in bytes.
    pub fn place(&self, x: usize, y: usize, z: usize) -> usize {
        self.start + z * self.slice + y * self.row + x * self.element
    }
}

/// The elements of one level. They are in a list of bytes, and the list may also contain the elements of other levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements {
    bytes: Arc<Vec<u8>>,
    strides: Strides,
    channels: [Channel; 4],
    /// A read of an element covers the bytes from the start of the element to the end of the last word. This field is
    /// the number of these bytes.
    reads: usize,
}

impl Elements {
    /// Returns the elements of a level. Returns `None` in two cases. In the first case, a channel would read past the
    /// end of the bytes. In the second case, a channel does not define a value for each number in its field.
    pub fn new(
        bytes: &Arc<Vec<u8>>,
        strides: Strides,
        channels: [Channel; 4],
        size: [u32; 3],
    ) -> Option<Elements> {
        let fields = channels.iter().filter_map(Channel::field);
        let reads = fields.map(|field| field.byte() + size_of::<u32>()).max().unwrap_or(0);
        let elements = Elements { bytes: bytes.clone(), strides, channels, reads };
        let complete = elements.channels.iter().all(Channel::is_complete);
        (complete && elements.reaches(size)).then_some(elements)
    }

    /// Returns whether the bytes contain all elements of a level of this size.
    pub(super) fn reaches(&self, [width, height, depth]: [u32; 3]) -> bool {
        let Strides { start, element, row, slice } = self.strides;
        let steps = [(width, element), (height, row), (depth, slice)];
        let last = steps.iter().try_fold(start, |at, (count, step)| {
            (*count as usize).checked_sub(1)?.checked_mul(*step)?.checked_add(at)
        });
        last.and_then(|last| last.checked_add(self.reads)).is_some_and(|end| end <= self.bytes.len())
    }

    /// Returns the bytes that contain the elements.
    pub fn bytes(&self) -> &Arc<Vec<u8>> {
        &self.bytes
    }

    /// Returns the positions of the elements.
    pub fn strides(&self) -> Strides {
        self.strides
    }

    /// Returns the sources of red, green, blue and alpha.
    pub fn channels(&self) -> &[Channel; 4] {
        &self.channels
    }

    /// Returns the bits of red, green, blue and alpha of a texel.
    ///
    /// # Panics
    /// Panics if the texel is outside the bytes.
    pub fn texel(&self, x: usize, y: usize, z: usize) -> [u32; 4] {
        let element = &self.bytes[self.strides.place(x, y, z)..][..self.reads];
        let word = |byte: usize| u32::from_le_bytes(std::array::from_fn(|at| element[byte + at]));
        self.channels.each_ref().map(|channel| channel.read(word))
    }

    /// Returns whether the formats of two levels agree, so that equal bytes mean equal texels.
    pub(super) fn is_like(&self, other: &Elements) -> bool {
        (self.strides.element, &self.channels) == (other.strides.element, &other.channels)
    }

    /// Returns the bytes of a row of elements, if the list contains all bytes of the row.
    pub(super) fn row(&self, width: usize, y: usize, z: usize) -> Option<&[u8]> {
        self.bytes.get(self.strides.place(0, y, z)..)?.get(..width * self.strides.element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the value of a half float, computed from its definition in IEEE 754.
    fn value(half: u32) -> f64 {
        let (exponent, fraction) = (half >> 10 & 0x1f, f64::from(half & 0x3ff));
        let sign = if half & 0x8000 != 0 { -1. } else { 1. };
        match exponent {
            0 => sign * fraction * libm::exp2(-24.),
            31 if fraction == 0. => sign * f64::INFINITY,
            31 => f64::NAN,
            _ => sign * (1024. + fraction) * libm::exp2(f64::from(exponent) - 25.),
        }
    }

    #[test]
    fn every_half_is_its_number() {
        for half in 0..1 << 16 {
            let found = f32::from_bits(small_float(half));
            let expected = value(half);
            if expected.is_nan() {
                assert_eq!(found.to_bits(), (half & 0x8000) << 16 | 0x7fc0_0000 | (half & 0x3ff) << 13);
            } else {
                assert_eq!(found.to_bits(), (expected as f32).to_bits(), "{half:#x}");
            }
        }
    }

    #[test]
    fn a_field_is_read_from_four_bytes_that_contain_it() {
        assert_eq!(Field::new(24, 8), Some(Field { byte: 0, shift: 24, width: 8 }));
        assert_eq!(Field::new(48, 16), Some(Field { byte: 6, shift: 0, width: 16 }));
        assert_eq!(Field::new(30, 10), Some(Field { byte: 3, shift: 6, width: 10 }));
        assert_eq!(Field::new(3, 32), None, "five bytes");
        assert_eq!(Field::new(3, 0), None);
    }

    #[test]
    fn elements_beyond_the_bytes_are_refused() {
        let bytes = Arc::new(vec![0; 16]);
        let strides = Strides { start: 4, element: 4, row: 8, slice: 0 };
        let channels = || [0, 8, 16, 24].map(|first| Channel::Fraction(Field::new(first, 8).unwrap()));
        let fits = |strides, size| Elements::new(&bytes, strides, channels(), size).is_some();
        assert!(fits(strides, [1, 2, 1]) && fits(strides, [3, 1, 1]) && fits(strides, [1, 1, 9]));
        assert!(!fits(strides, [2, 2, 1]) && !fits(strides, [4, 1, 1]) && !fits(strides, [0, 1, 1]));
        assert!(!fits(Strides { row: usize::MAX, ..strides }, [1, 3, 1]));
        let wide = Channel::Fraction(Field::new(0, 25).unwrap());
        let list = Channel::Listed(Field::new(0, 2).unwrap(), Arc::new([0; 3]));
        for channel in [wide, list] {
            let channels = [channel, Channel::Word(0), Channel::Word(0), Channel::Word(0)];
            assert_eq!(Elements::new(&bytes, strides, channels, [1, 1, 1]), None);
        }
    }

    #[test]
    fn a_texel_has_the_numbers_of_its_fields() {
        let bytes = Arc::new(vec![0xff, 0x80, 0x01, 0x3c, 0xfe, 0, 0, 0]);
        let strides = Strides { start: 0, element: 8, row: 8, slice: 8 };
        let field = |first, width| Field::new(first, width).unwrap();
        let of = |channels| Elements::new(&bytes, strides, channels, [1, 1, 1]).unwrap().texel(0, 0, 0);
        let [r, g, b, a] = of([
            Channel::Fraction(field(0, 8)),
            Channel::Signed(field(32, 8)),
            Channel::SmallFloat(field(16, 16)),
            Channel::Word(7),
        ]);
        assert_eq!([r, g, b, a], [1f32.to_bits(), -2i32 as u32, 0x3f80_2000, 7]);
        let list = Channel::Listed(field(15, 1), Arc::new([5, 6]));
        let [r, g, ..] = of([list, Channel::Bits(field(8, 8)), Channel::Word(0), Channel::Word(0)]);
        assert_eq!([r, g], [6, 0x80]);
    }
}
