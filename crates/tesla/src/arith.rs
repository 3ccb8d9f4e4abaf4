//! The arithmetic operations. Each operation has one row in this file, with a name, the exactness, and the sentence for
//! `explain`. [`crate::meaning`] calls the function of [`crate::lane`] that computes an operation.

use reconverge_simt::Fidelity;

use crate::lane::convert::{FloatSize, Integer};
use crate::lane::convert64;
use crate::lane::integer::{Addition, Logic, Product};
use crate::lane::{Compare, Rounding, Width};
use crate::sentence::{
    Words, bits, clamped, compared, float, in_words, integer, modulo, rounded, signedness, whole,
    wide_integer,
};

macro_rules! operations {
    ($(
        $(#[$doc:meta])*
        $Name:ident $({ $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })?
            => $name:literal, $grade:ident, $does:expr;
    )*) => {
        /// An arithmetic operation. [`crate::meaning`] calls one function of [`crate::lane`] for each variant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Arith { $(
            $(#[$doc])*
            $Name $({ $($(#[$field_doc])* $field: $type,)* })?,
        )* }

        impl Arith {
            /// Returns the name of the operation in reports, and the exactness of the operation with any modifiers.
            pub const fn fidelity(&self) -> (&'static str, Fidelity) {
                match self { $( Arith::$Name { .. } => ($name, Fidelity::$grade), )* }
            }

            /// Returns the sentence that `explain` prints for the operation.
            #[allow(unused_variables, reason = "a row uses the fields that it needs")]
            pub(crate) fn sentence(self, words: &Words) -> String {
                fn of(does: impl Fn(&Words) -> String, words: &Words) -> String {
                    does(words)
                }
                match self { $( Arith::$Name $({ $($field),* })? => of($does, words), )* }
            }
        }
    };
}

operations! {
    // Data movement (4)
    /// dst = src\[0\]. \[mov\]
    Mov {
        /// Width of the operation.
        width: Width,
    } => "mov", Specified,
        |Words { dst, a, .. }| format!("{dst} becomes {a}, {} bits.", bits(width));
    /// dst = the flags of src\[0\], an [`Operand::C`](crate::inst::Operand::C). \[mov $r, $c\]
    MovFromC => "mov $r $c", Specified,
        |Words { dst, a, .. }| format!("{dst} becomes the flags in {a}: Z bit 0, S bit 1, C bit 2, O bit 3.");
    /// dst (a [`Dst::C`](crate::inst::Dst::C)) = bits 0 to 3 of src\[0\]. \[mov $c, $r\]
    MovToC => "mov $c $r", Specified,
        |Words { dst, a, .. }| format!("{dst} becomes bits 0 to 3 of {a}: Z, S, C, O.");
    /// dst = src\[0\], an [`Operand::A`](crate::inst::Operand::A). \[mov $r, $a\]
    MovFromA => "mov $r $a", Specified,
        |Words { dst, a, .. }| format!("{dst} becomes {a}.");
    /// dst = src\[0\], an [`Operand::Special`](crate::inst::Operand::Special). \[mov $r, $sr\]
    MovFromSpecial => "mov $r $sr", Recommended,
        |Words { dst, a, .. }| format!("{dst} becomes {a}.");
    /// dst (a [`Dst::A`](crate::inst::Dst::A)) = low 16 bits of src\[0\] << src\[1\] (an immediate from 0 to 15). \[shl
    /// $a\]
    ShlA => "shl $a", Specified,
        |Words { dst, a, b, .. }| format!("{dst} becomes the low 16 bits of {a} shifted left by {b}.");
    /// dst (a [`Dst::A`](crate::inst::Dst::A)) = src\[0\] (an [`Operand::A`](crate::inst::Operand::A)) + src\[1\] (a
    /// 16-bit immediate). \[add $a\]
    AddA => "add $a", Specified,
        |Words { dst, a, b, .. }| format!("{dst} becomes {a} + {b}, modulo 2^16.");

    // Integer (5)
    /// [`crate::lane::integer::add`] of src\[0\] and src\[1\]. `guard.c` provides the carry into the addition. \[add
    /// sub subr addc\]
    Add {
        /// The kind of addition.
        addition: Addition,
        /// Width of the operation.
        width: Width,
        /// Whether to saturate the result.
        sat: bool,
    } => "add", Exact,
        |Words { dst, a, b, carry, .. }| {
            let sum = match addition {
                Addition::Add => format!("{a} + {b}"),
                Addition::Sub => format!("{a} - ({b})"),
                Addition::Subr => format!("{b} - ({a})"),
                Addition::Addc => format!("{a} + {b} + the carry in $c{carry}"),
            };
            format!("{dst} becomes {sum}{}.", modulo(sat, width))
        };
    /// [`crate::lane::integer::mul`] \[mul\]
    Mul {
        /// The kind of product.
        product: Product,
    } => "mul", Exact,
        |Words { dst, a, b, .. }| format!("{dst} becomes {}.", in_words(product, a, b));
    /// [`crate::lane::integer::mad`]. src\[2\] is the addend, and `guard.c` provides the carry into the addition. \[add
    /// ( mul )\]
    Mad {
        /// The kind of product.
        product: Product,
        /// The kind of addition.
        addition: Addition,
        /// Whether to saturate the result.
        sat: bool,
    } => "mad", Exact,
        |Words { dst, a, b, c, carry, .. }| {
            let of = in_words(product, a, b);
            let sum = match addition {
                Addition::Add => format!("{c} is added"),
                Addition::Sub => format!("{c} is subtracted"),
                Addition::Subr => format!("it is subtracted from {c}"),
                Addition::Addc => format!("{c} and the carry in $c{carry} are added"),
            };
            format!("{dst} becomes {of}, to which {sum}{}.", modulo(sat, Width::B32))
                .replace("to which it", "and it")
        };
    /// [`crate::lane::integer::sad`] \[sad\]
    Sad {
        /// Width of the difference.
        width: Width,
        /// Whether the difference is signed.
        signed: bool,
    } => "sad", Exact,
        |Words { dst, a, b, c, .. }| format!(
            "{dst} becomes |{a} - {b}| + {c}; the difference is {}, {} bits.",
            signedness(signed),
            bits(width)
        );
    /// [`crate::lane::integer::min`] \[min\]
    Min {
        /// Width of the operation.
        width: Width,
        /// Whether the comparison is signed.
        signed: bool,
    } => "min", Exact,
        |Words { dst, a, b, .. }| format!(
            "{dst} becomes the smaller of {a} and {b}, as {} {}-bit integers.",
            signedness(signed),
            bits(width)
        );
    /// [`crate::lane::integer::max`] \[max\]
    Max {
        /// Width of the operation.
        width: Width,
        /// Whether the comparison is signed.
        signed: bool,
    } => "max", Exact,
        |Words { dst, a, b, .. }| format!(
            "{dst} becomes the larger of {a} and {b}, as {} {}-bit integers.",
            signedness(signed),
            bits(width)
        );
    /// [`crate::lane::integer::set`]: all ones or 0. \[set\]
    Set {
        /// The comparison.
        compare: Compare,
        /// Width of the operation.
        width: Width,
        /// Whether the comparison is signed.
        signed: bool,
    } => "set", Exact,
        |Words { dst, a, b, .. }| format!(
            "{dst} becomes all ones {}, else 0. The sources are {} {}-bit integers.",
            compared(compare, a, b),
            signedness(signed),
            bits(width)
        );
    /// [`crate::lane::integer::logic`] \[and or xor mov2\]
    Logic {
        /// The operation.
        logic: Logic,
        /// Width of the operation.
        width: Width,
        /// Whether to invert src\[0\].
        not1: bool,
        /// Whether to invert src\[1\].
        not2: bool,
    } => "and or xor mov2", Exact,
        |Words { dst, a, b, .. }| {
            let not = |not: bool, text: &str| if not { format!("not {text}") } else { text.to_owned() };
            let (a, b) = (not(not1, a), not(not2, b));
            let value = match logic {
                Logic::And => format!("{a} and {b}, bit by bit"),
                Logic::Or => format!("{a} or {b}, bit by bit"),
                Logic::Xor => format!("{a} exclusive or {b}, bit by bit"),
                Logic::Mov2 => b,
            };
            format!("{dst} becomes {value}, {} bits.", bits(width))
        };
    /// [`crate::lane::integer::shl`]; src\[1\] is the count. \[shl\]
    Shl {
        /// Width of the operation.
        width: Width,
        /// Whether to take the shift count modulo 32. Chips use the whole shift count. Only
        /// [`driver_fixes`](crate::driver_fixes) sets this field to `true`.
        wrap: bool,
    } => "shl", Exact,
        |Words { dst, a, b, .. }| {
            let count = if wrap { " modulo 32" } else { "" };
            format!("{dst} becomes {a} shifted left by {b}{count}, {} bits.", bits(width))
        };
    /// [`crate::lane::integer::shr`]; src\[1\] is the count. \[shr\]
    Shr {
        /// Width of the operation.
        width: Width,
        /// Whether the shift is arithmetic.
        signed: bool,
        /// Whether to take the shift count modulo 32, as in [`Arith::Shl`].
        wrap: bool,
    } => "shr", Exact,
        |Words { dst, a, b, .. }| {
            let fill = if signed { "copies of the sign" } else { "zeros" };
            let count = if wrap { " modulo 32" } else { "" };
            format!("{dst} becomes {a} shifted right by {b}{count}, {} bits; {fill} come in.", bits(width))
        };

    // f32 (6.2, 6.3). `modifiers` apply to the sources. The modifier abs applies before neg.
    /// [`crate::lane::float::add`] \[add f32\]
    FAdd {
        /// The rounding mode: to nearest or toward zero. For the two invalid codes of the rounding field, the machine's
        /// description recommends rounding down and rounding up.
        rounding: Rounding,
        /// Whether to saturate the result.
        sat: bool,
    } => "add f32", Exact,
        |Words { dst, ma, mb, .. }|
            format!("{dst} becomes {ma} + {mb} in f32, {}{}.", rounded(rounding), clamped(sat));
    /// [`crate::lane::float::mul`] \[mul f32\]
    FMul {
        /// The rounding mode, as in [`Arith::FAdd`].
        rounding: Rounding,
        /// Whether to saturate the result. For chips that ignore the saturation bit, the field is always `false`.
        sat: bool,
    } => "mul f32", Exact,
        |Words { dst, ma, mb, .. }|
            format!("{dst} becomes {ma} * {mb} in f32, {}{}.", rounded(rounding), clamped(sat));
    /// [`crate::lane::float::mad`]; `modifiers[0].neg` negates the product, and `modifiers[2].neg` negates src\[2\].
    /// \[add f32 ( mul )\]
    FMad {
        /// Whether to saturate the result.
        sat: bool,
    } => "mad f32", Exact,
        |Words { dst, a, b, mc, negated, .. }| {
            let minus = if *negated { "-" } else { "" };
            format!(
                "{dst} becomes {minus}({a} * {b}) + {mc} in f32; the product is truncated to f32 before the sum, \
                 which is rounded to the nearest{}.",
                clamped(sat)
            )
        };
    /// [`crate::lane::float::min`] \[min f32\]
    FMin => "min f32", Exact,
        |Words { dst, ma, mb, .. }| format!("{dst} becomes the smaller of {ma} and {mb}, as f32.");
    /// [`crate::lane::float::max`] \[max f32\]
    FMax => "max f32", Exact,
        |Words { dst, ma, mb, .. }| format!("{dst} becomes the larger of {ma} and {mb}, as f32.");
    /// [`crate::lane::float::set`]: all ones or 0. \[set f32\]
    FSet {
        /// The comparison.
        compare: Compare,
    } => "set f32", Exact,
        |Words { dst, ma, mb, .. }|
            format!("{dst} becomes all ones {}, else 0. The sources are f32.", compared(compare, ma, mb));
    /// [`crate::lane::float::slct`]; `modifiers[2].neg` negates src\[2\], which is compared with 0. \[slct\]
    Slct => "slct", Exact,
        |Words { dst, a, b, mc, .. }| format!("{dst} becomes {a} where {mc} is at least 0 as f32, else {b}.");

    // Conversions (6.4, 6.5). `modifiers[0]` applies to the source.
    /// [`crate::lane::convert::i2i`] \[cvt\]
    I2I {
        /// Destination type.
        to: Integer,
        /// Width of the destination register. A byte result is extended to this width.
        register: Width,
        /// Source type.
        from: Integer,
    } => "cvt integer integer", Exact,
        |Words { dst, ma, .. }|
            format!("{dst} becomes {ma}, a {}, saturated to a {}.", integer(from), integer(to));
    /// [`crate::lane::convert::i2f`] \[cvt f32\]
    I2F32 {
        /// Source type.
        from: Integer,
        /// The rounding mode.
        rounding: Rounding,
        /// Whether to saturate the result.
        sat: bool,
    } => "cvt f32 integer", Exact,
        |Words { dst, ma, .. }|
            format!("{dst} becomes {ma}, a {}, as f32, {}{}.", integer(from), rounded(rounding), clamped(sat));
    /// [`crate::lane::convert::i2f16`] \[cvt f16\]
    I2F16 {
        /// Source type.
        from: Integer,
        /// The rounding mode.
        rounding: Rounding,
        /// Whether to saturate the result.
        sat: bool,
    } => "cvt f16 integer", Exact,
        |Words { dst, ma, .. }|
            format!("{dst} becomes {ma}, a {}, as f16, {}{}.", integer(from), rounded(rounding), clamped(sat));
    /// [`crate::lane::convert::f2i`] \[cvt\]
    F2I {
        /// Destination width.
        to: Width,
        /// Whether the destination type is signed.
        signed: bool,
        /// The rounding mode for the integer result.
        rounding: Rounding,
        /// Source type.
        from: FloatSize,
    } => "cvt integer float", Exact,
        |Words { dst, ma, .. }| format!(
            "{dst} becomes {ma}, an {}, {}, as {} {}-bit integer, saturated.",
            float(from),
            rounded(rounding),
            signedness(signed),
            bits(to)
        );
    /// [`crate::lane::convert::f2f32`] \[cvt f32\]
    F2F32 {
        /// Rounding mode for the rounding to a whole number. `None` if the operation does not round to a whole number.
        integral: Option<Rounding>,
        /// Whether to saturate the result.
        sat: bool,
        /// Source type.
        from: FloatSize,
    } => "cvt f32 float", Exact,
        |Words { dst, ma, .. }|
            format!("{dst} becomes {ma}, an {}, as f32{}{}.", float(from), whole(integral), clamped(sat));
    /// [`crate::lane::convert::f2f16`] \[cvt f16\]
    F2F16 {
        /// Whether to round the source to a whole number before the conversion.
        integral: bool,
        /// The rounding mode.
        rounding: Rounding,
        /// Whether to saturate the result.
        sat: bool,
        /// Source type.
        from: FloatSize,
    } => "cvt f16 float", Exact,
        |Words { dst, ma, .. }| {
            let whole = if integral { " to a whole number first" } else { "" };
            format!(
                "{dst} becomes {ma}, an {}, as f16, {}{whole}{}.",
                float(from),
                rounded(rounding),
                clamped(sat)
            )
        };
    /// [`crate::lane::convert64::i2f64`] \[cvt f64\]
    I2F64 {
        /// Source type.
        from: convert64::Integer,
        /// The rounding mode.
        rounding: Rounding,
    } => "cvt f64 integer", Exact,
        |Words { dst, ma, .. }|
            format!("{dst} becomes {ma}, a {}, as f64, {}.", wide_integer(from), rounded(rounding));
    /// [`crate::lane::convert64::i2f32`]: from 64 bits. \[cvt f32\]
    I64ToF32 {
        /// Source type.
        from: convert64::Integer,
        /// The rounding mode.
        rounding: Rounding,
    } => "cvt f32 integer", Exact,
        |Words { dst, ma, .. }|
            format!("{dst} becomes {ma}, a {}, as f32, {}.", wide_integer(from), rounded(rounding));
    /// [`crate::lane::convert64::f64_to_i`] \[cvt\]
    F64ToI {
        /// Destination type.
        to: convert64::Integer,
        /// The rounding mode for the integer result.
        rounding: Rounding,
    } => "cvt integer float", Exact,
        |Words { dst, ma, .. }|
            format!("{dst} becomes {ma}, an f64, {}, as {}, saturated.", rounded(rounding), wide_integer(to));
    /// [`crate::lane::convert64::f32_to_i`]: to 64 bits. \[cvt\]
    F32ToI64 {
        /// Destination type.
        to: convert64::Integer,
        /// The rounding mode for the integer result.
        rounding: Rounding,
    } => "cvt integer float", Exact,
        |Words { dst, ma, .. }|
            format!("{dst} becomes {ma}, an f32, {}, as {}, saturated.", rounded(rounding), wide_integer(to));
    /// [`crate::lane::convert64::f64_to_f32`] \[cvt f32 f64\]
    F64ToF32 {
        /// The rounding mode.
        rounding: Rounding,
    } => "cvt f32 float", Exact,
        |Words { dst, ma, .. }| format!("{dst} becomes {ma}, an f64, as f32, {}.", rounded(rounding));
    /// [`crate::lane::convert64::f32_to_f64`] \[cvt f64 f32\]
    F32ToF64 => "cvt f64 float", Exact,
        |Words { dst, ma, .. }| format!("{dst} becomes {ma}, an f32, as f64.");
    /// [`crate::lane::convert64::f64_to_f64`] \[cvt f64 f64\]
    F64ToF64 {
        /// Rounding mode for the rounding to a whole number. `None` if the operation does not round to a whole number.
        integral: Option<Rounding>,
    } => "cvt f64 float", Exact,
        |Words { dst, ma, .. }| format!("{dst} becomes {ma}, an f64{}.", whole(integral));

    // f64 (6.5)
    /// [`crate::lane::double::add`] with `modifiers[0].neg` and `modifiers[1].neg`. \[add f64\]
    DAdd {
        /// The rounding mode.
        rounding: Rounding,
    } => "add f64", Exact,
        |Words { dst, ma, mb, .. }| format!("{dst} becomes {ma} + {mb} in f64, {}.", rounded(rounding));
    /// [`crate::lane::double::mul`] with `modifiers[0].neg`. \[mul f64\]
    DMul {
        /// The rounding mode.
        rounding: Rounding,
    } => "mul f64", Exact,
        |Words { dst, ma, mb, .. }| format!("{dst} becomes {ma} * {mb} in f64, {}.", rounded(rounding));
    /// [`crate::lane::double::fma`] with `modifiers[0].neg` and `modifiers[2].neg`. \[fma f64\]
    DFma {
        /// The rounding mode.
        rounding: Rounding,
    } => "fma f64", Exact,
        |Words { dst, b, ma, mc, .. }|
            format!("{dst} becomes {ma} * {b} + {mc} in f64, {} once.", rounded(rounding));
    /// [`crate::lane::double::min`] \[min f64\]
    DMin => "min f64", Exact,
        |Words { dst, ma, mb, .. }| format!("{dst} becomes the smaller of {ma} and {mb}, as f64.");
    /// [`crate::lane::double::max`] \[max f64\]
    DMax => "max f64", Exact,
        |Words { dst, ma, mb, .. }| format!("{dst} becomes the larger of {ma} and {mb}, as f64.");
    /// [`crate::lane::double::set`]: 32 bits, all ones or 0. \[set f64\]
    DSet {
        /// The comparison.
        compare: Compare,
    } => "set f64", Exact,
        |Words { dst, ma, mb, .. }|
            format!("{dst} becomes all ones {}, else 0. The sources are f64.", compared(compare, ma, mb));

    // Special functions (8). `modifiers[0]` applies to the source.
    /// [`crate::lane::special::rcp`] \[rcp\]
    Rcp => "rcp", Exact,
        |words| words.function("reciprocal");
    /// [`crate::lane::special::rsqrt`] \[rsqrt\]
    Rsqrt => "rsqrt", Exact,
        |words| words.function("reciprocal square root");
    /// [`crate::lane::special::lg2`] \[lg2\]
    Lg2 => "lg2", Exact,
        |words| words.function("logarithm to base 2");
    /// [`crate::lane::special::sin`] \[sin\]
    Sin => "sin", Exact,
        |Words { dst, ma, .. }| format!("{dst} becomes the sine of {ma}, which `presin` has prepared.");
    /// [`crate::lane::special::cos`] \[cos\]
    Cos => "cos", Exact,
        |Words { dst, ma, .. }| format!("{dst} becomes the cosine of {ma}, which `presin` has prepared.");
    /// [`crate::lane::special::ex2`] \[ex2\]
    Ex2 {
        /// Whether to saturate the result.
        sat: bool,
    } => "ex2", Exact,
        |Words { dst, ma, .. }|
            format!("{dst} becomes 2 to the power of {ma}, which `preex2` has prepared{}.", clamped(sat));
    /// [`crate::lane::special::presin`] \[presin\]
    PreSin => "presin", Exact,
        |Words { dst, ma, .. }| format!("{dst} becomes {ma}, an f32, in the form that `sin` and `cos` read.");
    /// [`crate::lane::special::preex2`] \[preex2\]
    PreEx2 => "preex2", Exact,
        |Words { dst, ma, .. }| format!("{dst} becomes {ma}, an f32, in the form that `ex2` reads.");
}
