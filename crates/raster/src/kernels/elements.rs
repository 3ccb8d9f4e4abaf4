//! Converts colours of any format by rows. Computes [`Target::store`] and [`Target::color`] for all lanes of a row.

use super::{Cells, Floats, LANES, Live, Places, Words, floats};
use crate::format::{Number, SrgbBytes, from_value, to_value};
use crate::state::Target;

/// Number of words in the largest element.
pub(super) const MOST: usize = 4;

/// Position and type of a component in an element.
#[derive(Clone, Copy, Debug)]
struct ElementPart {
    /// Index of the word that contains the component.
    word: usize,
    /// Index of the component's lowest bit in this word.
    first: u32,
    width: u8,
    number: Number,
}

/// The elements of a target, and the components of these elements.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    pub(super) cells: Cells<'a>,
    /// The components that store red, green, blue and alpha.
    parts: [Option<ElementPart>; 4],
    /// Mask of the bits that are written in each word of an element.
    written: [u32; MOST],
    /// Whether all bits of an element are written.
    pub(super) writes_all: bool,
}

impl<'a> Elements<'a> {
    /// Returns the elements of a target. Returns `None` if the kernels cannot convert a component of the elements.
    pub(super) fn new(target: &Target, cells: Cells<'a>) -> Option<Elements<'a>> {
        let (mut components, mut at) = ([None; 4], 0);
        for (component, (width, number)) in
            components.iter_mut().zip(target.format.bits.into_iter().zip(target.format.numbers))
        {
            let (word, first) = (at / 32, at as u32 % 32);
            if width != 0 {
                let is_known = number != Number::Srgb || width == 8;
                (is_known && first + u32::from(width) <= 32).then_some(())?;
                *component = Some(ElementPart { word, first, width, number });
            }
            at += usize::from(width);
        }
        let mut parts = [None; 4];
        let (mut written, mut seen) = ([0; MOST], 0_u8);
        for (chan, place) in target.places.iter().enumerate() {
            let Some(place) = place else { continue };
            let part: ElementPart = components[usize::from(*place)]?;
            // Elements that store two channels in one component are not supported.
            (seen >> place & 1 == 0).then_some(())?;
            seen |= 1 << place;
            parts[chan] = Some(part);
            if target.mask >> chan & 1 != 0 {
                written[part.word] |= u32::MAX >> (32 - part.width) << part.first;
            }
        }
        let bits = |word: usize| (8 * usize::from(target.format.bytes)).saturating_sub(32 * word).min(32);
        let whole = |word: usize| u32::MAX.checked_shr(32 - bits(word) as u32).unwrap_or(0);
        let writes_all = (0..MOST).all(|word| written[word] == whole(word));
        Some(Elements { cells, parts, written, writes_all })
    }

    /// Returns the colours in elements. Missing components are 0, 0, 0, 1.
    #[inline(always)]
    pub(super) fn colors(&self, stored: &[Words; MOST]) -> [Floats; 4] {
        let mut colors = [[0.; LANES], [0.; LANES], [0.; LANES], [1.; LANES]];
        for (color, part) in colors.iter_mut().zip(&self.parts) {
            if let Some(part) = part {
                *color = floats(&part.values(&stored[part.word]));
            }
        }
        colors
    }

    /// Returns the words of elements with these colours. Components that are not written are 0.
    #[inline(always)]
    pub(super) fn words(&self, colors: [&Words; 4]) -> [Words; MOST] {
        let mut words = [[0; LANES]; MOST];
        for (color, part) in colors.into_iter().zip(&self.parts) {
            if let Some(part) = part
                && self.written[part.word] >> part.first & 1 != 0
            {
                let codes = part.codes(color);
                let words = &mut words[part.word];
                for lane in 0..LANES {
                    words[lane] |= codes[lane] << part.first;
                }
            }
        }
        words
    }

    /// The target does not write some bits. The function replaces these bits of `words` by the bits of `stored`.
    #[inline(always)]
    pub(super) fn keep(&self, words: &mut [Words; MOST], stored: &[Words; MOST]) {
        for ((words, stored), written) in words.iter_mut().zip(stored).zip(self.written) {
            for lane in 0..LANES {
                words[lane] = words[lane] & written | stored[lane] & !written;
            }
        }
    }

    /// Returns the words of the elements of live lanes.
    #[inline(always)]
    pub(super) fn load(&self, places: &Places, live: &Live) -> [Words; MOST] {
        let mut words = [[0; LANES]; MOST];
        match self.cells.bytes {
            1 => words[0] = self.cells.load_parts::<1>(places, live),
            2 => words[0] = self.cells.load_parts::<2>(places, live),
            4 => words[0] = self.cells.load(places, live),
            8 => self.cells.load_many::<2>(places, live, words.first_chunk_mut().expect("four words")),
            _ => self.cells.load_many::<4>(places, live, &mut words),
        }
        words
    }

    /// Stores the words of the elements of live lanes.
    #[inline(always)]
    pub(super) fn store(&self, places: &Places, live: &Live, words: &[Words; MOST]) {
        match self.cells.bytes {
            1 => self.cells.store_parts::<1>(places, live, &words[0]),
            2 => self.cells.store_parts::<2>(places, live, &words[0]),
            4 => self.cells.store(places, live, &words[0]),
            8 => self.cells.store_many::<2>(places, live, words.first_chunk().expect("four words")),
            _ => self.cells.store_many::<4>(places, live, words),
        }
    }
}

/// Returns the result of a function for each word.
#[inline(always)]
fn each(words: &Words, function: impl Fn(u32) -> u32) -> Words {
    let mut result = [0; LANES];
    for lane in 0..LANES {
        result[lane] = function(words[lane]);
    }
    result
}

impl ElementPart {
    /// Returns the values of the component in the words of a row.
    #[inline(always)]
    fn values(&self, words: &Words) -> Words {
        let ElementPart { first, width, number, .. } = *self;
        let mask = u32::MAX >> (32 - width);
        let raw = each(words, |word| word >> first & mask);
        // With one arm per number type, the compiler emits a loop for each type. The loop does not contain a branch on
        // the type.
        match number {
            // This quotient of singles equals the quotient of doubles, rounded to a single.
            Number::Unorm if width <= 24 => each(&raw, |raw| (raw as f32 / mask as f32).to_bits()),
            Number::Unorm => each(&raw, |raw| to_value(raw, width, Number::Unorm)),
            Number::Snorm => each(&raw, |raw| to_value(raw, width, Number::Snorm)),
            Number::Uscaled => each(&raw, |raw| to_value(raw, width, Number::Uscaled)),
            Number::Sscaled => each(&raw, |raw| to_value(raw, width, Number::Sscaled)),
            Number::Uint => raw,
            Number::Sint => each(&raw, |raw| to_value(raw, width, Number::Sint)),
            Number::Float if width == 32 => raw,
            Number::Float if width == 16 => each(&raw, |raw| to_value(raw, 16, Number::Float)),
            Number::Float if width == 11 => each(&raw, |raw| to_value(raw, 11, Number::Float)),
            Number::Float => each(&raw, |raw| to_value(raw, 10, Number::Float)),
            Number::Srgb => {
                let tables = SrgbBytes::get();
                each(&raw, |raw| tables.value(raw))
            }
        }
    }

    /// Returns the bits of the component for the values of a row.
    #[inline(always)]
    fn codes(&self, values: &Words) -> Words {
        let ElementPart { width, number, .. } = *self;
        match number {
            Number::Unorm => each(values, |value| from_value(value, width, Number::Unorm)),
            Number::Snorm => each(values, |value| from_value(value, width, Number::Snorm)),
            Number::Uscaled => each(values, |value| from_value(value, width, Number::Uscaled)),
            Number::Sscaled => each(values, |value| from_value(value, width, Number::Sscaled)),
            Number::Uint => each(values, |value| from_value(value, width, Number::Uint)),
            Number::Sint => each(values, |value| from_value(value, width, Number::Sint)),
            Number::Float if width == 32 => *values,
            Number::Float if width == 16 => each(values, |value| from_value(value, 16, Number::Float)),
            Number::Float if width == 11 => each(values, |value| from_value(value, 11, Number::Float)),
            Number::Float => each(values, |value| from_value(value, 10, Number::Float)),
            Number::Srgb => {
                let tables = SrgbBytes::get();
                each(values, |value| tables.code(value))
            }
        }
    }
}
