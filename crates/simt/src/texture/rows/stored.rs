//! Reads the texels of a level for all lanes of a row. The texels are stored as words or as elements. The code converts
//! the elements of several lanes at once.
//!
//! For elements, the results equal those of [`Elements::texel`](super::Elements::texel).

use super::super::elements::{Channel, Elements, Field, small_float_shift};
use crate::wide::Eight;

/// The texels of a level. A texel is identified by its position in bytes. A read returns the first `C` components of
/// each texel.
pub(super) trait Stored<const C: usize> {
    /// Whether all components are finite and not negative.
    const TAME: bool;

    /// Reads the texels at these positions.
    fn read<E: Eight>(&self, wide: E, places: E::Ints) -> [E::Ints; C];

    /// Reads the texels at two positions per lane. The two positions are usually adjacent.
    #[inline(always)]
    fn read_two<E: Eight>(&self, wide: E, places: [E::Ints; 2]) -> [[E::Ints; C]; 2] {
        // The two calls are written out, because the compiler does not always compile a closure for the level.
        [self.read(wide, places[0]), self.read(wide, places[1])]
    }

    /// Reads the texels at four positions per lane. The last two positions are usually one row below the first two
    /// positions.
    #[inline(always)]
    fn read_four<E: Eight>(&self, wide: E, [a, b, c, d]: [E::Ints; 4]) -> [[E::Ints; C]; 4] {
        let ([a, b], [c, d]) = (self.read_two(wide, [a, b]), self.read_two(wide, [c, d]));
        [a, b, c, d]
    }

    /// Returns the mean of the texels at four positions. The function mixes the texels along s, then along t. All
    /// numbers of the level must be [bounded](super::Image::is_bounded).
    #[inline(always)]
    fn mean<E: Eight>(
        &self,
        wide: E,
        places: [E::Ints; 4],
        [along_s, along_t]: [E::Floats; 2],
    ) -> [E::Ints; C] {
        let [a, b, c, d] = self.read_four(wide, places);
        wide.mean(along_t, wide.mean(along_s, a, b), wide.mean(along_s, c, d))
    }
}

/// Texels that are stored as bits of red, green, blue and alpha.
pub(super) struct Wholes<'a>(pub(super) &'a [[u32; 4]]);

/// Returns the first `C` components of a texel.
#[inline(always)]
fn first<T: Copy, const C: usize>(texel: [T; 4]) -> [T; C] {
    *texel.first_chunk().expect("up to four components")
}

impl<const C: usize> Stored<C> for Wholes<'_> {
    const TAME: bool = false;

    #[inline(always)]
    fn read<E: Eight>(&self, wide: E, places: E::Ints) -> [E::Ints; C] {
        first(wide.texels_at(self.0, places))
    }

    #[inline(always)]
    fn mean<E: Eight>(&self, wide: E, places: [E::Ints; 4], weights: [E::Floats; 2]) -> [E::Ints; C] {
        first(wide.mean_at(self.0, places, weights))
    }
}

/// The conversion of elements with few kinds of channels. Each channel is a fraction in the first word, or the constant
/// 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fractions {
    channels: [Fraction; 4],
    /// Whether all fractions are bytes.
    bytes: bool,
}

/// The conversion of one channel, which is a fraction or a constant. For a constant, `reciprocal` is 0. For a fraction,
/// `constant` is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fraction {
    shift: u32,
    /// The largest number that the field can contain.
    most: u32,
    /// The reciprocal of `most` as a single, and the exact reciprocal minus that single.
    reciprocal: [f32; 2],
    constant: f32,
}

impl Fraction {
    fn new(channel: &Channel) -> Option<Fraction> {
        const ONE: u32 = 1f32.to_bits();
        let constant = |constant: f32| Fraction { shift: 0, most: 0xff, reciprocal: [0.0; 2], constant };
        match channel {
            Channel::Word(0) => Some(constant(0.0)),
            Channel::Word(ONE) => Some(constant(1.0)),
            Channel::Fraction(field) if field.byte() == 0 => {
                let exact = 1.0 / f64::from(field.most());
                let reciprocal = exact as f32;
                let rest = (exact - f64::from(reciprocal)) as f32;
                let (shift, most) = (field.shift(), field.most());
                Some(Fraction { shift, most, reciprocal: [reciprocal, rest], constant: 0.0 })
            }
            _ => None,
        }
    }

    /// Returns the bits of the channel's values in these words.
    #[inline(always)]
    fn of<E: Eight>(&self, wide: E, words: E::Ints, bytes: bool) -> E::Ints {
        // The number has up to 24 bits, so a single represents the number exactly.
        let number = wide.to_floats(match bytes {
            true => wide.byte(words, self.shift / 8),
            false => wide.and(wide.shr(words, self.shift), wide.ints(self.most as i32)),
        });
        let (reciprocal, constant) = (self.reciprocal, wide.floats(self.constant));
        // For every number that a field can contain, both expressions return the correctly rounded quotient.
        wide.bits(match E::FUSED {
            true => {
                let rest = wide.mul_add(number, wide.floats(reciprocal[1]), constant);
                wide.mul_add(number, wide.floats(reciprocal[0]), rest)
            }
            false if reciprocal[0] == 0.0 => constant,
            false => wide.div(number, wide.floats(self.most as f32)),
        })
    }
}

impl Fractions {
    /// Returns the conversion for these channels. Returns `None` if a channel is neither a fraction in the first word
    /// nor the constant 0 or 1.
    pub(super) fn new(channels: &[Channel; 4]) -> Option<Fractions> {
        let [r, g, b, a] = channels.each_ref().map(Fraction::new);
        let channels = [r?, g?, b?, a?];
        let bytes = channels.iter().all(|channel| channel.most == 0xff && channel.shift.is_multiple_of(8));
        Some(Fractions { channels, bytes })
    }
}

/// Texels that are stored as elements. [`Fractions`] converts these elements.
pub(super) struct OfFractions<'a> {
    bytes: &'a [u8],
    fractions: &'a Fractions,
}

impl<'a> OfFractions<'a> {
    pub(super) fn new(elements: &'a Elements, fractions: &'a Fractions) -> OfFractions<'a> {
        OfFractions { bytes: elements.bytes(), fractions }
    }

    #[inline(always)]
    fn convert<E: Eight, const C: usize>(&self, wide: E, words: E::Ints) -> [E::Ints; C] {
        let mut texels = [words; C];
        for (texel, fraction) in texels.iter_mut().zip(&self.fractions.channels) {
            *texel = fraction.of(wide, words, self.fractions.bytes);
        }
        texels
    }
}

impl<const C: usize> Stored<C> for OfFractions<'_> {
    const TAME: bool = true;

    #[inline(always)]
    fn read<E: Eight>(&self, wide: E, places: E::Ints) -> [E::Ints; C] {
        self.convert(wide, wide.words_at(self.bytes, places))
    }

    #[inline(always)]
    fn read_two<E: Eight>(&self, wide: E, places: [E::Ints; 2]) -> [[E::Ints; C]; 2] {
        // If the two words are adjacent in all lanes, one read covers both words. If a lane's coordinate wraps around
        // between the two texels, the words of this lane are not adjacent.
        let [first, second] = match follows(wide, places) {
            true => wide.pairs_at(self.bytes, places[0]),
            false => [wide.words_at(self.bytes, places[0]), wide.words_at(self.bytes, places[1])],
        };
        [self.convert(wide, first), self.convert(wide, second)]
    }

    #[inline(always)]
    fn read_four<E: Eight>(&self, wide: E, [a, b, c, d]: [E::Ints; 4]) -> [[E::Ints; C]; 4] {
        let [[a, b], [c, d]] = match follows(wide, [a, b]) && follows(wide, [c, d]) {
            true => wide.two_pairs_at(self.bytes, [a, c]),
            false => [
                [wide.words_at(self.bytes, a), wide.words_at(self.bytes, b)],
                [wide.words_at(self.bytes, c), wide.words_at(self.bytes, d)],
            ],
        };
        [self.convert(wide, a), self.convert(wide, b), self.convert(wide, c), self.convert(wide, d)]
    }
}

/// Returns whether, in all lanes, the word at the second position directly follows the word at the first position.
#[inline(always)]
fn follows<E: Eight>(wide: E, [first, second]: [E::Ints; 2]) -> bool {
    let word = wide.ints(size_of::<u32>() as i32);
    wide.lanes(wide.equal_ints(wide.sub_ints(second, first), word)) == 0xff
}

/// Texels that are stored as elements with any channels.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    channels: &'a [Channel; 4],
}

impl<'a> Fields<'a> {
    pub(super) fn new(elements: &'a Elements) -> Fields<'a> {
        Fields { bytes: elements.bytes(), channels: elements.channels() }
    }
}

impl<const C: usize> Stored<C> for Fields<'_> {
    const TAME: bool = false;

    #[inline(always)]
    fn read<E: Eight>(&self, wide: E, places: E::Ints) -> [E::Ints; C] {
        let mut last = None;
        let mut words = wide.ints(0);
        let mut texels = [words; C];
        for (texel, channel) in texels.iter_mut().zip(self.channels) {
            let Some(field) = channel.field() else {
                if let Channel::Word(bits) = channel {
                    *texel = wide.ints(*bits as i32);
                }
                continue;
            };
            if last != Some(field.byte()) {
                last = Some(field.byte());
                let places = wide.add_ints(places, wide.ints(field.byte() as i32));
                words = wide.words_at(self.bytes, places);
            }
            *texel = component(wide, channel, field, words);
        }
        texels
    }
}

/// Returns the component of a channel. `words` are the words that contain the channel's field.
#[inline(always)]
fn component<E: Eight>(wide: E, channel: &Channel, field: Field, words: E::Ints) -> E::Ints {
    let numbers = wide.and(wide.shr(words, field.shift()), wide.ints(field.most() as i32));
    match channel {
        Channel::Word(_) | Channel::Bits(_) => numbers,
        // The number has up to 24 bits, so a single represents the number exactly.
        Channel::Fraction(_) => {
            let most = wide.floats(field.most() as f32);
            wide.bits(wide.div(wide.to_floats(numbers), most))
        }
        Channel::Signed(_) => wide.sar(wide.shl(numbers, field.above()), field.above()),
        Channel::SmallFloat(_) => singles(wide, wide.shl(numbers, small_float_shift(field))),
        Channel::Listed(_, list) => wide.load(&wide.store(numbers).map(|number| list[number as usize])),
    }
}

/// Converts halves to singles, as [`small_float`](super::super::elements::small_float) does.
#[inline(always)]
fn singles<E: Eight>(wide: E, halves: E::Ints) -> E::Ints {
    let magnitudes = wide.and(halves, wide.ints(0x7fff));
    let moved = wide.shl(magnitudes, 13);
    let scale = wide.of_bits(wide.ints(0x7780_0000));
    let finite = wide.bits(wide.mul(wide.of_bits(moved), scale));
    let quiet = wide.and(wide.greater_ints(magnitudes, wide.ints(0x7c00)), wide.ints(0x0040_0000));
    let special = wide.or(wide.or(moved, wide.ints(0x7f80_0000)), quiet);
    let magnitudes = wide.choose(wide.greater_ints(magnitudes, wide.ints(0x7bff)), special, finite);
    wide.or(wide.shl(wide.and(halves, wide.ints(0x8000)), 16), magnitudes)
}

#[cfg(test)]
mod tests {
    use super::super::super::elements::small_float;
    use super::*;
    use crate::level::{Level, Task};
    use crate::wide::{Wide, Words8};

    struct Convert<'a>(&'a Fraction, &'a Words8);

    impl Task for Convert<'_> {
        type Output = Words8;
        #[inline(always)]
        fn run<W: Wide>(self, wide: W) -> Words8 {
            let wide = wide.eight();
            wide.store(self.0.of(
                wide,
                wide.load(self.1),
                self.0.most == 0xff && self.0.shift.is_multiple_of(8),
            ))
        }
    }

    struct Singles<'a>(&'a Words8);

    impl Task for Singles<'_> {
        type Output = Words8;
        #[inline(always)]
        fn run<W: Wide>(self, wide: W) -> Words8 {
            let wide = wide.eight();
            wide.store(singles(wide, wide.load(self.0)))
        }
    }

    #[test]
    fn every_half_is_its_number_on_every_level() {
        for first in (0..1 << 16).step_by(8) {
            let halves: Words8 = std::array::from_fn(|lane| first + lane as u32);
            for level in Level::available() {
                assert_eq!(level.run(Singles(&halves)), halves.map(small_float), "{first:x}");
            }
        }
    }

    #[test]
    fn every_number_of_every_fraction_is_the_quotient() {
        for width in [1, 2, 4, 5, 6, 8, 10, 11, 16, 24] {
            let field = Field::new(32 - width, width).unwrap();
            let fraction = Fraction::new(&Channel::Fraction(field)).unwrap();
            // A test of all codes of 24 bits would take too long. So this test covers only every 1,021st code.
            let step = if width > 16 { 1021 } else { 1 };
            for first in (0..1u32 << width).step_by(8 * step) {
                let numbers: Words8 =
                    std::array::from_fn(|lane| (first + (lane * step) as u32) & field.most());
                let expected =
                    numbers.map(|number| ((f64::from(number) / f64::from(field.most())) as f32).to_bits());
                let words = numbers.map(|number| number << (32 - width) | 1 >> width);
                for level in Level::available() {
                    assert_eq!(level.run(Convert(&fraction, &words)), expected, "{width} {first}");
                }
            }
        }
    }
}
