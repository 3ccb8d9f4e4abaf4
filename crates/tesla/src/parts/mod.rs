//! The operands and modifiers of which the rows of the instruction table consist. The names of these parts come from
//! the machine's description. S, I and L at the start mean a short, immediate or long form. H, D and Q at the end mean
//! 16, 64 and 128 bits. W at the end of a source's name means 32 bits, and H means 16 bits. Such a source can be a
//! register or memory. (3, and its Appendices B to D)
//!
//! Bits are numbered 0 to 63: bit n of the second word is 32 + n. Comments write w0\[n\] and w1\[n\] for bit n of the
//! first and the second word. If a field contains an operand other than the operand in the field's name, the part's
//! name ends in the number of the operand. For example, `LSRC3W_2` is the part for a second source in the field SRC3.

use reconverge_isa::row::{Part, Style};

use crate::draft::Draft;

/// A part of a Tesla row.
pub(crate) type P = Part<Draft>;

/// A part whose text is the number in a field.
macro_rules! number {
    ($name:expr, $field:expr, $style:expr, $set:expr $(,)?) => {
        Part::Number(const { &Number { name: $name, field: $field, style: $style, set: $set } })
    };
}

/// A part that has a word of text for each value of a field.
macro_rules! word {
    ($name:expr, $field:expr, $texts:expr, $set:expr $(,)?) => {
        Part::Word(const { &Words { name: $name, field: $field, texts: $texts, set: $set } })
    };
}

/// A part with several cases. The first case whose bits match applies.
macro_rules! choice {
    ($name:expr, $cases:expr $(,)?) => {
        Part::Case(const { &Cases { name: $name, cases: &$cases } })
    };
}

/// A case that applies only to some chips and stages. This definition is a macro, not a function. If a struct literal
/// borrows data, the data becomes static. If an argument of a function borrows data, the data does not become static.
macro_rules! case_in {
    ($scope:expr, $fixed:expr, $mask:expr, $parts:expr $(,)?) => {
        Case { mask: $mask, fixed: $fixed, scope: $scope, parts: $parts }
    };
}

/// A case for all chips and stages.
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

/// A part whose text is present if a bit is set.
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
