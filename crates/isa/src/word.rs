//! A word of named bit fields, written like the table of a register manual.
//!
//! [`word!`](crate::word!) turns a block of `name: type [hi:lo]` lines into a plain struct with `pack` and `unpack`.
//! The macro also keeps the lines as data ([`Field`]). The assembler texts, the bit pictures, the documentation and the
//! exhaustive tests use this data. [`names!`](crate::names!) turns a list of codes into an enum, and also keeps the
//! list as data. Two fields that share a bit cause a compile error.
//!
//! ```
//! use reconverge_isa::{names, word};
//! names! {
//!     /// What a flow-control instruction does.
//!     pub enum Op(2) { JUMP = 0, LOOP = 1, ENDLOOP = 2 }
//! }
//! word! {
//!     /// Flow control.
//!     pub struct Flow(u32) = "US_FLOW" {
//!         op:   Op [1:0],
//!         any:  bool [5:5],
//!         /// Slot to go on with.
//!         addr: u16 [16:8],
//!     }
//! }
//! let flow = Flow::unpack(0x0000_1221).unwrap();
//! assert_eq!(flow, Flow { op: Op::LOOP, any: true, addr: 0x12 });
//! assert_eq!(flow.pack(), 0x0000_1221);
//! assert!(Flow::unpack(0x3).is_err()); // value 3 of `op` is not assigned
//! assert!(Flow::unpack(0x80).is_err()); // bit 7 belongs to no field
//! ```

use thiserror::Error;

/// One assigned value of an enumerated field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The manual's spelling.
    pub text: &'static str,
    /// Code of the value, right-aligned.
    pub value: u32,
    /// Meaning of the value. The text may be empty.
    pub doc: &'static str,
}

/// Interpretation of the bits of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One bit, set or clear.
    Flag,
    /// An unsigned number.
    Number,
    /// A two's-complement number.
    Signed,
    /// One of the values in [`Field::names`].
    Names,
}

/// A run of bits with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name in the manual, in lower case.
    pub name: &'static str,
    /// Highest bit, inclusive.
    pub hi: u8,
    /// Lowest bit, inclusive.
    pub lo: u8,
    /// Interpretation of the bits.
    pub kind: Kind,
    /// The assigned values, if `kind` is [`Kind::Names`].
    pub names: &'static [Name],
    /// Meaning of the field. The text may be empty.
    pub doc: &'static str,
}

impl Field {
    /// Returns the width in bits, 1 to 32.
    pub const fn width(&self) -> u32 {
        (self.hi - self.lo + 1) as u32
    }

    /// Returns the largest value that fits into the field.
    pub const fn max(&self) -> u32 {
        u32::MAX >> (32 - self.width())
    }

    /// Returns the bits of the field.
    pub const fn mask(&self) -> u32 {
        self.max() << self.lo
    }

    /// Returns the value of the field in the word `raw`, right-aligned.
    pub const fn get(&self, raw: u32) -> u32 {
        (raw >> self.lo) & self.max()
    }

    /// Returns `raw` with this field set to `value`. Bits of `value` that do not fit are dropped.
    pub const fn set(&self, raw: u32, value: u32) -> u32 {
        (raw & !self.mask()) | ((value << self.lo) & self.mask())
    }

    /// Returns the name of `value`, if `value` has a name.
    pub fn name_of(&self, value: u32) -> Option<&'static str> {
        self.names.iter().find(|name| name.value == value).map(|name| name.text)
    }

    /// Returns the value with the name `text`, or `None`. The case of letters does not matter.
    pub fn value_of(&self, text: &str) -> Option<u32> {
        self.names.iter().find(|name| name.text.eq_ignore_ascii_case(text)).map(|name| name.value)
    }

    /// Returns the name of `value` or, for a value without a name, the number as text.
    pub fn show(&self, value: u32) -> String {
        match self.kind {
            Kind::Names => self.name_of(value).map_or_else(|| format!("{value} (unassigned)"), str::to_owned),
            Kind::Signed => format!("{}", sign_extend(value, self.width())),
            Kind::Flag | Kind::Number if value > 9 => format!("{value} ({value:#x})"),
            Kind::Flag | Kind::Number => format!("{value}"),
        }
    }
}

/// Returns `value`, a two's-complement number of `width` bits, as an `i32`.
pub const fn sign_extend(value: u32, width: u32) -> i32 {
    ((value << (32 - width)) as i32) >> (32 - width)
}

/// Description of a word format that [`word!`](crate::word!) has declared.
#[derive(Clone, Copy, Debug)]
pub struct WordInfo {
    /// The manual's name of the word format.
    pub name: &'static str,
    /// Purpose of the word, and the document that describes the word.
    pub doc: &'static str,
    /// The fields in the manual's order.
    pub fields: &'static [Field],
    /// Mask of all bits that belong to a field.
    pub owned: u32,
}

impl WordInfo {
    /// Removes the last field from the format. The bits of the removed field then belong to no field.
    pub const fn without_last(&self) -> WordInfo {
        match self.fields.split_last() {
            Some((last, fields)) => WordInfo { fields, owned: self.owned & !last.mask(), ..*self },
            None => *self,
        }
    }

    /// Returns the field with this name (upper or lower case).
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        // The exact name is compared first. Comparisons without regard to case would take 12 % of the time for writing
        // and reading a vertex program.
        let exact = self.fields.iter().find(|field| field.name == name);
        exact.or_else(|| self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)))
    }

    /// Returns the field that contains `bit`.
    pub fn field_at(&self, bit: u8) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.lo <= bit && bit <= field.hi)
    }
}

/// Reason why a word cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WordError {
    /// Bits that do not belong to any field are set.
    #[error("{word}: reserved bits {bits:#010x} are set")]
    StrayBits {
        /// Name of the word format.
        word: &'static str,
        /// The reserved bits that are set.
        bits: u32,
    },
    /// A field holds a code that is not assigned.
    #[error("{word}.{field}: value {value} is not assigned")]
    Unassigned {
        /// Name of the word format.
        word: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u32,
    },
}

/// A Rust type that can represent the bits of a field.
pub trait FieldValue: Copy {
    /// Interpretation of the bits.
    const KIND: Kind;
    /// Width of the widest field that this type can hold.
    const BITS: u32;
    /// The assigned values of an enumeration.
    const NAMES: &'static [Name] = &[];
    /// Returns the value of a field that is `width` bits wide. `bits` contains the bits of the field, right-aligned.
    /// Returns `None` if the code is not assigned.
    fn from_bits(bits: u32, width: u32) -> Option<Self>;
    /// Returns the bits of the value, right-aligned. A negative number may have bits above the field. `pack` checks
    /// that the bits above the field are copies of the sign. `pack` drops these bits.
    fn to_bits(self) -> u32;
}

impl FieldValue for bool {
    const KIND: Kind = Kind::Flag;
    const BITS: u32 = 1;
    fn from_bits(bits: u32, _: u32) -> Option<Self> {
        Some(bits != 0)
    }
    fn to_bits(self) -> u32 {
        self as u32
    }
}

macro_rules! unsigned_field_value {
    ($($ty:ty),*) => { $(
        impl FieldValue for $ty {
            const KIND: Kind = Kind::Number;
            const BITS: u32 = <$ty>::BITS;
            fn from_bits(bits: u32, _: u32) -> Option<Self> { Some(bits as $ty) }
            fn to_bits(self) -> u32 { self as u32 }
        }
    )* };
}
unsigned_field_value!(u8, u16, u32);

macro_rules! signed_field_value {
    ($($ty:ty),*) => { $(
        impl FieldValue for $ty {
            const KIND: Kind = Kind::Signed;
            const BITS: u32 = <$ty>::BITS;
            fn from_bits(bits: u32, width: u32) -> Option<Self> { Some(sign_extend(bits, width) as $ty) }
            fn to_bits(self) -> u32 { self as i32 as u32 }
        }
    )* };
}
signed_field_value!(i8, i16, i32);

/// Returns a mask of the bits of all `fields`. Panics if two fields share a bit. Also panics if `hi` is below `lo` in a
/// field, or if a field is wider than the field's type. For [`word!`](crate::word!), the panic occurs at compile time.
pub const fn owned(fields: &[Field], type_bits: &[u32]) -> u32 {
    let mut owned = 0;
    let mut index = 0;
    while index < fields.len() {
        let field = &fields[index];
        assert!(field.lo <= field.hi && field.hi < 32, "a field's bits are [hi:lo] of a 32-bit word");
        assert!(field.width() <= type_bits[index], "a field is wider than its type");
        assert!(owned & field.mask() == 0, "two fields share a bit");
        owned |= field.mask();
        index += 1;
    }
    owned
}

/// Removes the prefix `r#` from a field's name. Rust requires this prefix if a name is a keyword, such as `type`.
pub const fn plain_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Returns a word that contains only `value`, in the bits of `field`. The caller must ensure that the value fits.
///
/// # Panics
/// Panics if `value` needs more bits than the field has.
pub fn place<T: FieldValue>(field: &Field, value: T) -> u32 {
    let bits = value.to_bits();
    let fits = match T::KIND {
        Kind::Signed => sign_extend(bits & field.max(), field.width()) as u32 == bits,
        _ => bits <= field.max(),
    };
    assert!(fits, "{} does not fit into {} bits", field.name, field.width());
    (bits & field.max()) << field.lo
}

/// Declares a word format in the notation of a register manual.
///
/// Fields that share a bit cause a compile error:
///
/// ```compile_fail
/// reconverge_isa::word! {
///     struct Clash(u32) = "CLASH" { low: u8 [7:0], high: u8 [8:7] }
/// }
/// ```
///
/// `pub struct Name(u32) = "MANUAL_NAME" { field: Type [hi:lo], … }` declares a plain struct with these fields. The
/// struct has the constant `INFO` (the format as data) and the functions `unpack`, `unpack_lenient` and `pack`.
/// `unpack` returns an error if a bit outside the fields is set or if a code is unassigned. `unpack_lenient` ignores
/// bits outside the fields.
#[macro_export]
macro_rules! word {
    ($(
        $(#[doc = $about:literal])*
        $vis:vis struct $Word:ident(u32) = $manual:literal {
            $( $(#[doc = $doc:literal])* $name:ident : $ty:ty [$hi:literal : $lo:literal] ),* $(,)?
        }
    )*) => { $(
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        $vis struct $Word { $( $(#[doc = $doc])* pub $name: $ty ),* }

        impl $Word {
            /// The fields in the manual's order.
            pub const FIELDS: &'static [$crate::word::Field] = &[ $( $crate::word::Field {
                name: $crate::word::plain_name(stringify!($name)), hi: $hi, lo: $lo,
                kind: <$ty as $crate::word::FieldValue>::KIND,
                names: <$ty as $crate::word::FieldValue>::NAMES,
                doc: concat!("", $($doc),*),
            } ),* ];
            /// Mask of all bits that belong to a field.
            pub const OWNED: u32 =
                $crate::word::owned(Self::FIELDS, &[$(<$ty as $crate::word::FieldValue>::BITS),*]);
            /// The format as data.
            pub const INFO: $crate::word::WordInfo = $crate::word::WordInfo {
                name: $manual, doc: concat!("", $($about),*), fields: Self::FIELDS, owned: Self::OWNED,
            };

            /// Returns the fields of `raw`.
            ///
            /// # Errors
            /// Returns an error if bits outside the fields are set, or if a code is not assigned.
            pub fn unpack(raw: u32) -> Result<Self, $crate::word::WordError> {
                if raw & !Self::OWNED != 0 {
                    return Err($crate::word::WordError::StrayBits { word: $manual, bits: raw & !Self::OWNED });
                }
                Self::unpack_lenient(raw)
            }

            /// Returns the fields of `raw`. The function ignores bits outside the fields, as hardware does.
            ///
            /// # Errors
            /// Returns an error if a code is not assigned.
            pub fn unpack_lenient(raw: u32) -> Result<Self, $crate::word::WordError> {
                Ok(Self { $( $name: {
                    const FIELD: $crate::word::Field = $crate::word::Field {
                        name: $crate::word::plain_name(stringify!($name)), hi: $hi, lo: $lo,
                        kind: <$ty as $crate::word::FieldValue>::KIND, names: &[], doc: "",
                    };
                    <$ty as $crate::word::FieldValue>::from_bits(FIELD.get(raw), FIELD.width()).ok_or(
                        $crate::word::WordError::Unassigned {
                            word: $manual, field: FIELD.name, value: FIELD.get(raw),
                        })?
                } ),* })
            }

            /// Returns the word with these fields. Bits outside the fields are zero.
            ///
            /// # Panics
            /// Panics if a value does not fit its field.
            pub fn pack(self) -> u32 {
                let mut fields = Self::FIELDS.iter();
                let mut raw = 0;
                $( raw |= $crate::word::place(fields.next().expect("one field a name"), self.$name); )*
                raw
            }
        }
    )* };
}

/// Declares an enumerated field: `pub enum Name(width) { MANUAL_NAME = code, … }`.
///
/// Codes that are not listed are unassigned. Decoding an unassigned code returns an error that names the code.
#[macro_export]
macro_rules! names {
    ($(
        $(#[$meta:meta])*
        $vis:vis enum $Enum:ident($width:literal) {
            $( $(#[doc = $doc:literal])* $Name:ident = $value:literal ),* $(,)?
        }
    )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, non_camel_case_types, clippy::upper_case_acronyms)]
        $vis enum $Enum { $( $(#[doc = $doc])* $Name = $value ),* }

        impl $Enum {
            /// Every assigned value, in the manual's order.
            pub const ALL: &'static [$Enum] = &[ $( $Enum::$Name ),* ];

            /// The manual's spelling.
            pub const fn name(self) -> &'static str {
                match self { $( $Enum::$Name => stringify!($Name) ),* }
            }
        }

        impl $crate::word::FieldValue for $Enum {
            const KIND: $crate::word::Kind = $crate::word::Kind::Names;
            const BITS: u32 = $width;
            const NAMES: &'static [$crate::word::Name] = &[ $( $crate::word::Name {
                text: stringify!($Name), value: $value, doc: concat!("", $($doc),*),
            } ),* ];
            #[inline]
            fn from_bits(bits: u32, _: u32) -> Option<Self> {
                match bits { $( $value => Some($Enum::$Name), )* _ => None }
            }
            #[inline]
            fn to_bits(self) -> u32 { self as u32 }
        }

        impl ::core::fmt::Display for $Enum {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result { f.write_str(self.name()) }
        }
    )* };
}
