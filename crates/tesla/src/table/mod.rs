//! The table of the instruction set: the rows of each form, and the macros that define rows.
//!
//! Sources: the tables of the machine's description (Appendices A to D), checked against compiled programs.

mod control;
mod immediate;
mod long;
mod short;

use std::sync::LazyLock;

use reconverge_isa::read::Table;
use reconverge_isa::row::{self, Bits, Part, at};

use crate::draft::Draft;
use crate::inst::{Arith, BarrierCount, Control, Group, Memory, Op, Tex, TexOp};
use crate::lane::Width;
use crate::lane::atomic::{Atomic, Atomic64};
use crate::lane::convert::{Integer, Size};
use crate::lane::convert64;
use crate::lane::integer::Product;
use crate::parts::{ALL, PREDICATE_ALWAYS};

pub use crate::parts::here;

/// A row of this machine.
pub type Row = row::Row<Draft>;

/// The table indexes rows by these bits: opcode, form, second opcode, and the bits that distinguish long forms from
/// immediate forms.
const KEY: &[Bits] = &[at(28, 4), at(0, 2), at(61, 3), at(32, 2)];

/// All rows, with an index for decoding.
///
/// Immediate forms come before long forms. In an immediate form, the lowest bits of the second word are 3. Rows of long
/// forms also match such words. The decoder takes the first row that matches.
pub static TABLE: LazyLock<Table<Draft>> = LazyLock::new(|| {
    Table::new(&[short::SHORT_ROWS, immediate::IMMEDIATE_ROWS, long::LONG_ROWS, control::CONTROL_ROWS], KEY)
});

const fn pair([low, high]: [u32; 2]) -> u64 {
    low as u64 | (high as u64) << 32
}

/// A function that returns the operation of a row from the values of the row's parts.
type Meaning = fn(&Draft) -> Op;

/// Defines a function that creates rows of a form. The arguments are the type of the row's bits, whether the form has
/// two words, the default bits, and a closure. The closure converts the bits to 64 bits.
macro_rules! form {
    ($(#[$doc:meta])* $name:ident, $Bits:ty, $long:literal, $default:expr, |$bits:ident| $joined:expr) => {
        $(#[$doc])*
        const fn $name(
            id: &'static str,
            names: &'static str,
            fixed: $Bits,
            mask: $Bits,
            source: &'static str,
            parts: &'static [Part<Draft>],
            meaning: Meaning,
        ) -> Row {
            let $bits = fixed;
            let fixed = $joined;
            let $bits = mask;
            let mask = $joined;
            assert!(fixed & !mask == 0, "a fixed bit outside the mask");
            Row { id, names, long: $long, fixed, mask, default: $default, scope: ALL, parts, meaning, source }
        }
    };
}

form! {
    /// Creates a row of one word. The arguments are the fixed bits of the word and the mask of the fixed bits.
    short, u32, false, 0, |bits| bits as u64
}
form! {
    /// Creates a row of two words. The lowest bits of the second word are 3.
    immediate, u32, true, 0, |bits| pair([bits, 3])
}
form! {
    /// Creates a row of two words without a predicate.
    control, [u32; 2], true, 0, |bits| pair(bits)
}
form! {
    /// Creates a row of two words with a predicate. The predicate is "always" unless the text has a predicate.
    predicated, [u32; 2], true, PREDICATE_ALWAYS, |bits| pair(bits)
}

/// Returns a product of 16-bit sources.
fn bits16([signed1, signed2]: [bool; 2]) -> Product {
    Product::Bits16 { signed1, signed2 }
}

/// Returns a product of 24-bit sources.
fn bits24(signed: bool, high: bool) -> Product {
    Product::Bits24 { signed, high }
}

fn mad(draft: &Draft, product: Product, sat: bool) -> Op {
    Op::Arith(Arith::Mad { product, addition: draft.addition, sat })
}

fn i2i(draft: &Draft, size: Size, signed: bool, register: Width) -> Op {
    Op::Arith(Arith::I2I { to: Integer { size, signed }, register, from: draft.from })
}

fn wide_integer(wide: bool, signed: bool) -> convert64::Integer {
    convert64::Integer { wide, signed }
}

fn atom32(draft: &Draft, atomic: Atomic) -> Op {
    Op::Memory(Memory::Atom { atomic, signed: draft.signed[0] })
}

fn atom(draft: &Draft, atomic: Atomic, wide: Atomic64) -> Op {
    if draft.wide { Op::Memory(Memory::Atom64 { atomic: wide }) } else { atom32(draft, atomic) }
}

fn red32(draft: &Draft, atomic: Atomic) -> Op {
    Op::Memory(Memory::Red { atomic, signed: draft.signed[0] })
}

fn red(draft: &Draft, atomic: Atomic, wide: Atomic64) -> Op {
    if draft.wide { Op::Memory(Memory::Red64 { atomic: wide }) } else { red32(draft, atomic) }
}

fn tex(draft: &Draft, op: TexOp, cube: bool) -> Op {
    Op::Group(Group::Tex(Tex { op, cube, ..draft.tex }))
}

fn bar(draft: &Draft, count: BarrierCount) -> Op {
    let [inc, wait] = draft.barrier;
    Op::Control(Control::Bar { inc, wait, barrier: draft.numbers[0] as u8, count })
}

#[cfg(test)]
mod tests;
