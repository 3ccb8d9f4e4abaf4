//! The operands and modifiers of which rows consist, named as in the description: S... short, I... immediate, L...
//! long; ...H 16 bits, ...D 64, ...Q 128; ...W and ...H choices of a 32- or 16-bit source among registers and
//! memory. (3, and its Appendices B to D)
//!
//! Bits are numbered 0 to 63: bit n of the second word is 32 + n. If a field serves as another operand than its
//! name states, the part's name ends in that operand: `LSRC3W_2` is the field SRC3 as second source.

use reconverge_isa::row::{Part, Style};

use crate::draft::Draft;

/// A part of a Tesla row.
pub(crate) type P = Part<Draft>;

/// A number in a field.
macro_rules! number {
    ($name:expr, $field:expr, $style:expr, $set:expr $(,)?) => {
        Part::Number(const { &Number { name: $name, field: $field, style: $style, set: $set } })
    };
}

/// A word for each value of a field.
macro_rules! word {
    ($name:expr, $field:expr, $texts:expr, $set:expr $(,)?) => {
        Part::Word(const { &Words { name: $name, field: $field, texts: $texts, set: $set } })
    };
}

/// The first case that fits.
macro_rules! choice {
    ($name:expr, $cases:expr $(,)?) => {
        Part::Case(const { &Cases { name: $name, cases: &$cases } })
    };
}

/// A case of some chips and stages. (A macro because the compiler keeps the data that a literal refers to, but not
/// the data that a function's argument refers to.)
macro_rules! case_in {
    ($scope:expr, $fixed:expr, $mask:expr, $parts:expr $(,)?) => {
        Case { mask: $mask, fixed: $fixed, scope: $scope, parts: $parts }
    };
}

/// A case of any chip and stage.
macro_rules! case {
    ($fixed:expr, $mask:expr, $parts:expr $(,)?) => {
        case_in!(ALL, $fixed, $mask, $parts)
    };
}

const R: Style = Style::Register("$r", "");
const RH: Style = Style::Half("$r");
const RD: Style = Style::Aligned("$r", "d", 2);
const RQ: Style = Style::Aligned("$r", "q", 4);
const A: Style = Style::Register("$a", "");
const CC: Style = Style::Register("$c", "");

const SOURCES: [&str; 3] = ["source 1", "source 2", "source 3"];

/// A flag: written or not.
macro_rules! flag {
    ($text:literal, $bit:expr, $set:expr) => {
        word!($text, at($bit, 1), &[Some(""), Some($text)], $set)
    };
}

mod control;
mod destination;
#[rustfmt::skip]
mod memory;
#[rustfmt::skip]
mod modifier;
#[rustfmt::skip]
mod prefix;
mod register;
mod scope;
#[rustfmt::skip]
mod source;
mod texture;

pub(crate) use control::*;
pub(crate) use destination::*;
pub(crate) use memory::*;
pub(crate) use modifier::*;
pub(crate) use prefix::*;
pub(crate) use register::*;
pub use scope::here;
pub(crate) use scope::*;
pub(crate) use source::*;
pub(crate) use texture::*;
