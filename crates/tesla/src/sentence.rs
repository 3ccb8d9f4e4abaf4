//! Parts of sentences that the rows of [`crate::arith`] and [`crate::control`] share.

use reconverge_simt::float::Rounding;

use crate::lane::convert::{FloatSize, Integer, Size};
use crate::lane::integer::Product;
use crate::lane::{Compare, Width, convert64};

/// The operands of an instruction as text.
pub(crate) struct Words {
    pub(crate) dst: String,
    /// The first source, without the modifiers of the source.
    pub(crate) a: String,
    pub(crate) b: String,
    pub(crate) c: String,
    /// The first source with its modifiers.
    pub(crate) ma: String,
    pub(crate) mb: String,
    pub(crate) mc: String,
    /// Number of the flag register that provides the carry.
    pub(crate) carry: u8,
    /// Whether the first source is negated.
    pub(crate) negated: bool,
    /// The phrase "in the lanes whose condition holds". The phrase is empty if the instruction does not have a
    /// condition.
    pub(crate) taken_by: &'static str,
}

impl Words {
    /// Returns a sentence about a function of the first source, which is an f32.
    pub(crate) fn function(&self, name: &str) -> String {
        format!("{} becomes the {name} of {}, an f32.", self.dst, self.ma)
    }
}

pub(crate) const fn bits(width: Width) -> &'static str {
    match width {
        Width::B16 => "16",
        Width::B32 => "32",
    }
}

pub(crate) const fn signedness(signed: bool) -> &'static str {
    if signed { "signed" } else { "unsigned" }
}

pub(crate) const fn rounded(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::Nearest => "rounded to the nearest, ties to even",
        Rounding::Down => "rounded down",
        Rounding::Up => "rounded up",
        Rounding::Zero => "rounded toward zero",
    }
}

pub(crate) const fn clamped(sat: bool) -> &'static str {
    if sat { ", clamped to 0…1" } else { "" }
}

/// Returns a comparison of two sources as a condition: `$r1 <= $r2`.
pub(crate) fn compared(compare: Compare, a: &str, b: &str) -> String {
    let order = match compare.bits() & 7 {
        0 => None,
        1 => Some(format!("{a} < {b}")),
        2 => Some(format!("{a} = {b}")),
        3 => Some(format!("{a} <= {b}")),
        4 => Some(format!("{a} > {b}")),
        5 => Some(format!("{a} < {b} or {a} > {b}")),
        6 => Some(format!("{a} >= {b}")),
        _ => Some("neither is a NaN".to_owned()),
    };
    match (order, compare.bits() & 8 != 0, compare.bits()) {
        (_, _, 15) => "always".to_owned(),
        (Some(order), true, _) => format!("where {order}, or one of them is a NaN"),
        (Some(order), false, _) => format!("where {order}"),
        (None, true, _) => "where one of them is a NaN".to_owned(),
        (None, false, _) => "never".to_owned(),
    }
}

pub(crate) fn integer(of: Integer) -> String {
    let size = match of.size {
        Size::B8 => 8,
        Size::B16 => 16,
        Size::B32 => 32,
    };
    format!("{} {size}-bit integer", signedness(of.signed))
}

pub(crate) fn wide_integer(of: convert64::Integer) -> String {
    format!("{} {}-bit integer", signedness(of.signed), if of.wide { 64 } else { 32 })
}

pub(crate) const fn float(size: FloatSize) -> &'static str {
    match size {
        FloatSize::F16 => "f16",
        FloatSize::F32 => "f32",
    }
}

/// Returns the product of the first two sources as a noun phrase.
pub(crate) fn in_words(product: Product, a: &str, b: &str) -> String {
    match product {
        Product::Bits16 { signed1, signed2 } => {
            format!("{a} times {b}, 16 bits each ({} and {})", signedness(signed1), signedness(signed2))
        }
        Product::Bits24 { signed, high } => {
            let part = if high { "bits 16 to 47 of the product" } else { "the low 32 bits of the product" };
            format!("{part} of {a} and {b}, 24 bits each, {}", signedness(signed))
        }
    }
}

/// Returns a phrase for the overflow of an integer sum.
pub(crate) fn modulo(sat: bool, width: Width) -> String {
    match sat {
        true => format!(", saturated to signed {} bits", bits(width)),
        false => format!(", modulo 2^{}", bits(width)),
    }
}

/// Returns a phrase for the rounding of a conversion to a whole number.
pub(crate) fn whole(integral: Option<Rounding>) -> String {
    integral.map(|rounding| format!(", {} to a whole number", rounded(rounding))).unwrap_or_default()
}
