//! Loads the numbers of an input from a file, or from text in the launch. Also determines the type of the numbers.
//!
//! The rule for types is the same for all machines. If the type of numbers is stated, the numbers keep this type. The
//! type can be stated after `:` (`0..16:u32`), in `u32[16]`, or in a `.npy` file. If the type is not stated, the type
//! depends on the input that uses the numbers. An input of floats uses `f32` ([`Values::load_float`]). An input of any
//! type uses `f32` if a number has a fraction. Otherwise, this input uses `i32` or `u32` ([`Values::load_plain`]).
//! [`Files::typed`] receives the type that this rule chose. An input of one fixed type converts all numbers to its type
//! ([`Values::load_as`]).

use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;

use crate::array::{Array, ArrayError, Dtype};

/// The source of numbers, which is nested lists or a text. The text is the name of a file or a literal. Examples of
/// files are `.npy`, `.npz:NAME`, `.json` and `.bin:f32` files. Examples of literals are `0..64`, `1,2,3`, `f32[64]`
/// and `0..64:f32`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// The name of a file, or a literal.
    Text(String),
    /// Nested lists of numbers with their type.
    Typed(TypedList),
    /// Nested lists of numbers without a type.
    Lists(serde_json::Value),
    /// Numbers that a front end has in memory. A launch file cannot contain this variant.
    #[serde(skip)]
    Array(Arc<Array>),
}

/// Nested lists of numbers with their type.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypedList {
    /// Name of the type, for example `f32` or `u32`, or the name `bits`.
    pub r#type: String,
    /// Nested lists of the numbers.
    pub list: serde_json::Value,
}

/// The place where the type of numbers is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stated {
    /// The type is not stated. The input that uses the numbers determines the type.
    Not,
    /// The file with the numbers states the type.
    File,
    /// The launch or the calling code states the type.
    Request,
    /// The launch states that the numbers are bit patterns.
    Bits,
}

/// Loaded numbers, with information about their source.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The numbers.
    pub array: Array,
    /// The place where the type of the numbers is stated.
    pub stated: Stated,
    /// Whether the numbers come from a file of raw numbers. A file of raw numbers does not state rows, so the array's
    /// shape has no meaning.
    pub flat: bool,
}

impl From<Array> for Values {
    fn from(array: Array) -> Values {
        Values::Array(Arc::new(array))
    }
}

/// Access to the files that a launch names. The front end implements this trait.
pub trait Files {
    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// If the file cannot be read, returns a message for users. The message does not contain the file's name.
    fn read(&self, name: &str) -> Result<Vec<u8>, String>;

    /// If the caller has an array with this name in memory, returns this array. Also returns the place where the type
    /// of the array is stated.
    fn array(&self, _name: &str) -> Option<(&Array, Stated)> {
        None
    }

    /// Receives the type that was chosen for numbers without a stated type.
    fn typed(&self, _place: &str, _dtype: Dtype) {}

    /// Receives a note for the user. The note is about the numbers.
    fn noted(&self, _text: &str) {}
}

/// A [`Files`] without any files, for launches that do not name a file.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("no such file".to_owned())
    }
}

/// The reason why numbers cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// A file does not exist or cannot be read.
    #[error(
        "{place}: {file}: {why}; name a .npy, .json or .bin:TYPE file, or give values like 0..64, 1,2,3 or f32[64]"
    )]
    File {
        /// The input that uses the numbers.
        place: String,
        /// Name of the file.
        file: String,
        /// The reason.
        why: String,
    },
    /// The content of a file or literal is invalid.
    #[error("{place}: {what}: {error}")]
    Content {
        /// The input that uses the numbers.
        place: String,
        /// The file or literal.
        what: String,
        /// The error in the content.
        error: ArrayError,
    },
}

impl Values {
    /// Returns the text by which messages name the numbers.
    fn what(&self) -> &str {
        match self {
            Values::Text(text) => text,
            Values::Lists(_) | Values::Typed(_) | Values::Array(_) => "the list",
        }
    }

    /// Loads the numbers. `place` is the name of the input in messages.
    ///
    /// # Errors
    /// See [`ValuesError`].
    pub fn load(&self, place: &str, files: &dyn Files) -> Result<Loaded, ValuesError> {
        let loaded = |array, stated| Loaded { array, stated, flat: false };
        if let Values::Text(name) = self
            && let Some((array, stated)) = files.array(name)
        {
            return Ok(loaded(array.clone(), stated));
        }
        let result = match self {
            Values::Array(array) => Ok(loaded(Array::clone(array), Stated::Request)),
            Values::Lists(lists) => Array::from_json_value(lists).map(|array| loaded(array, Stated::Not)),
            Values::Typed(TypedList { r#type, list }) => match Wanted::from_name(r#type) {
                Some(wanted) => Array::from_json_value(list).and_then(|array| wanted.of(array, Stated::Not)),
                None => Err(ArrayError::Json(format!("unknown type `{}`", r#type))),
            },
            Values::Text(text) => {
                let (kind, wanted) = source(text);
                let read = |file: &str| {
                    files.read(file).map_err(|why| ValuesError::File {
                        place: place.to_owned(),
                        file: file.to_owned(),
                        why,
                    })
                };
                let by_request = |typed: bool| if typed { Stated::Request } else { Stated::Not };
                let (array, stated, flat) = match kind {
                    Kind::Npy(file) => (Array::from_npy(&read(file)?), Stated::File, false),
                    Kind::Npz(file, name) => (Array::from_npz(&read(file)?, name), Stated::File, false),
                    Kind::Json(file) => (Array::from_json(&read(file)?), Stated::Not, false),
                    Kind::Raw(file) => {
                        let dtype = wanted.map_or(Dtype::U8, Wanted::raw);
                        (raw(read(file)?, dtype), by_request(wanted.is_some()), true)
                    }
                    Kind::Literal(text) => (Array::from_literal(text), by_request(text.contains('[')), false),
                };
                array.and_then(|array| match wanted {
                    Some(wanted) => Ok(Loaded { flat, ..wanted.of(array, stated)? }),
                    None => Ok(Loaded { array, stated, flat }),
                })
            }
        };
        result.map_err(|error| self.wrong(place, error))
    }

    fn wrong(&self, place: &str, error: ArrayError) -> ValuesError {
        ValuesError::Content { place: place.to_owned(), what: self.what().to_owned(), error }
    }

    /// Loads the numbers and converts the numbers to `dtype`.
    ///
    /// # Errors
    /// See [`ValuesError`]. A number that `dtype` cannot hold is also an error.
    pub fn load_as(&self, place: &str, dtype: Dtype, files: &dyn Files) -> Result<Array, ValuesError> {
        let Loaded { array, stated, .. } = self.load(place, files)?;
        if stated == Stated::Bits && array.dtype.bytes() == dtype.bytes() {
            return Ok(Array { dtype, ..array });
        }
        if array.dtype == dtype {
            return Ok(array);
        }
        array.convert(dtype).map_err(|error| self.wrong(place, error))
    }

    /// Loads the numbers for an input of 32-bit floats. Numbers without a stated type become `f32`. Numbers of 64 bits,
    /// and numbers of less than 32 bits from files, also become `f32`. If `integers` is set, `i32` and `u32` from files
    /// keep their bits.
    ///
    /// # Errors
    /// See [`ValuesError`]. Raw bytes without a type are also an error.
    pub fn load_float(&self, place: &str, integers: bool, files: &dyn Files) -> Result<Loaded, ValuesError> {
        let loaded = self.load(place, files)?;
        let dtype = loaded.array.dtype;
        let keep = match loaded.stated {
            Stated::Not if loaded.flat => {
                return Err(self.wrong(place, ArrayError::Untyped(self.what().to_owned())));
            }
            Stated::Not => false,
            Stated::File => dtype == Dtype::F32 || integers && dtype.bytes() == 4,
            Stated::Request | Stated::Bits => dtype != Dtype::F64,
        };
        if keep {
            return Ok(loaded);
        }
        // Whole numbers could also be integers. Only in this case, the function reports that the type is `f32`.
        if !dtype.is_float() {
            files.typed(place, Dtype::F32);
        }
        let array = loaded.array.convert(Dtype::F32).map_err(|error| self.wrong(place, error))?;
        Ok(Loaded { array, ..loaded })
    }

    /// Loads the numbers as the bytes that a program's memory holds. If the numbers have a stated type, the numbers
    /// keep this type. Otherwise, the type is `i32`, `u32` or `f32`.
    ///
    /// # Errors
    /// See [`ValuesError`]. A number that has no stated type and does not fit into 32 bits is also an error.
    pub fn load_plain(&self, place: &str, files: &dyn Files) -> Result<Array, ValuesError> {
        let Loaded { array, stated, flat } = self.load(place, files)?;
        // Raw bytes without a type remain bytes.
        if stated != Stated::Not || flat {
            return Ok(array);
        }
        let array = narrow(&array).map_err(|error| ValuesError::Content {
            place: place.to_owned(),
            what: "a number without a stated type (add one: `1,2,3:u64`)".to_owned(),
            error,
        })?;
        // Whole numbers could also be floats. Only in this case, the function reports the integer type.
        if !array.dtype.is_float() {
            files.typed(place, array.dtype);
        }
        Ok(array)
    }
}

/// Converts numbers to a 32-bit type. Whole numbers become `i32` or `u32`. Other numbers become `f32`.
fn narrow(array: &Array) -> Result<Array, ArrayError> {
    match array.dtype {
        Dtype::F64 => array.convert(Dtype::F32),
        _ => array.convert(Dtype::I32).or_else(|_| array.convert(Dtype::U32)),
    }
}

/// A type that a text states after `:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Type(Dtype),
    /// Bit patterns of 32 bits. The numbers may have any type.
    Bits,
}

impl Wanted {
    fn from_name(name: &str) -> Option<Wanted> {
        if name == "bits" { Some(Wanted::Bits) } else { Dtype::from_name(name).map(Wanted::Type) }
    }

    /// Returns the element type of a raw file.
    fn raw(self) -> Dtype {
        match self {
            Wanted::Type(dtype) => dtype,
            Wanted::Bits => Dtype::U32,
        }
    }

    fn of(self, array: Array, stated: Stated) -> Result<Loaded, ArrayError> {
        let (array, stated) = match self {
            Wanted::Type(dtype) => (array.convert(dtype)?, Stated::Request),
            Wanted::Bits if stated == Stated::Not => (narrow(&array)?, Stated::Bits),
            Wanted::Bits => (array, Stated::Bits),
        };
        Ok(Loaded { array, stated, flat: false })
    }
}

enum Kind<'a> {
    Npy(&'a str),
    /// A `.npz` file, and the name of an array in this file.
    Npz(&'a str, Option<&'a str>),
    Json(&'a str),
    /// A file of raw numbers.
    Raw(&'a str),
    Literal(&'a str),
}

/// Splits a text into the file or literal, and the type after `:`.
fn source(text: &str) -> (Kind<'_>, Option<Wanted>) {
    let typed = text.rsplit_once(':').and_then(|(rest, name)| Some((rest, Wanted::from_name(name)?)));
    let (rest, wanted) = typed.map_or((text, None), |(rest, wanted)| (rest, Some(wanted)));
    let npz = || rest.rsplit_once(':').filter(|(file, _)| file.ends_with(".npz"));
    let kind = if rest.ends_with(".npy") {
        Kind::Npy(rest)
    } else if rest.ends_with(".npz") {
        Kind::Npz(rest, None)
    } else if let Some((file, name)) = npz() {
        Kind::Npz(file, Some(name))
    } else if rest.ends_with(".json") {
        Kind::Json(rest)
    } else if rest.ends_with(".bin")
        || wanted.is_some() && matches!(Array::from_literal(rest), Err(ArrayError::Literal(_)))
    {
        Kind::Raw(rest)
    } else {
        Kind::Literal(rest)
    };
    (kind, wanted)
}

fn raw(bytes: Vec<u8>, dtype: Dtype) -> Result<Array, ArrayError> {
    if !bytes.len().is_multiple_of(dtype.bytes()) {
        let wanted = bytes.len().next_multiple_of(dtype.bytes()) as u128;
        return Err(ArrayError::Length { wanted, found: bytes.len() });
    }
    Ok(Array { dtype, shape: vec![bytes.len() / dtype.bytes()], bytes })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A [`Files`] with one file. `One` records each type that was chosen for numbers without a stated type.
    struct One(Vec<u8>, RefCell<Vec<(String, Dtype)>>);

    impl Files for One {
        fn read(&self, _: &str) -> Result<Vec<u8>, String> {
            Ok(self.0.clone())
        }

        fn typed(&self, place: &str, dtype: Dtype) {
            self.1.borrow_mut().push((place.to_owned(), dtype));
        }
    }

    #[test]
    fn numbers_without_a_type_are_floats_where_floats_are_expected() {
        let words = |text: &str| {
            let (files, values) = (One(Vec::new(), RefCell::default()), Values::Text(text.to_owned()));
            let loaded = values.load_float("R0", true, &files).unwrap();
            (loaded.array.dtype, loaded.array.words().last().unwrap(), files.1.into_inner().len())
        };
        let three = 3f32.to_bits();
        assert_eq!(words("0..4"), (Dtype::F32, three, 1));
        assert_eq!(words("0,3.0"), (Dtype::F32, three, 0));
        // If the text states a type, the input uses the stated type and does not report a type.
        assert_eq!(words("0..4:f32"), (Dtype::F32, three, 0));
        assert_eq!(words("0..4:u32"), (Dtype::U32, 3, 0));
        assert_eq!(words("0..4:i32"), (Dtype::I32, 3, 0));
        assert_eq!(words("0..4:bits"), (Dtype::I32, 3, 0));
        assert_eq!(words("0xffffffff:bits"), (Dtype::U32, u32::MAX, 0));
        assert_eq!(words("u32[4]"), (Dtype::U32, 0, 0));
        let list = Values::Typed(TypedList { r#type: "u32".to_owned(), list: serde_json::json!([[1], [2]]) });
        let loaded = list.load_float("R0", true, &NoFiles).unwrap();
        assert_eq!((loaded.array.dtype, &loaded.array.shape[..]), (Dtype::U32, &[2, 1][..]));
    }

    #[test]
    fn integers_of_a_file_keep_their_bits_where_the_machine_has_integers() {
        let file = |dtype, bytes| Array { dtype, shape: vec![1], bytes }.to_npy();
        let load = |file: Vec<u8>, text: &str, integers| {
            let files = One(file, RefCell::default());
            let loaded = Values::Text(text.to_owned()).load_float("x", integers, &files).unwrap();
            (loaded.array.dtype, loaded.array.words().next().unwrap(), files.1.into_inner().len())
        };
        let (three, two) = (file(Dtype::I32, 3u32.to_le_bytes().to_vec()), 2f64.to_le_bytes().to_vec());
        assert_eq!(load(three.clone(), "a.npy", true), (Dtype::I32, 3, 0));
        assert_eq!(load(three.clone(), "a.npy", false), (Dtype::F32, 3f32.to_bits(), 1));
        assert_eq!(load(three.clone(), "a.npy:f32", true), (Dtype::F32, 3f32.to_bits(), 0));
        assert_eq!(load(three, "a.npy:bits", false), (Dtype::I32, 3, 0));
        assert_eq!(load(file(Dtype::F64, two), "a.npy", true), (Dtype::F32, 2f32.to_bits(), 0));
        assert_eq!(
            load(file(Dtype::I64, 3u64.to_le_bytes().to_vec()), "a.npy", true),
            (Dtype::F32, 3f32.to_bits(), 1)
        );
    }

    #[test]
    fn raw_bytes_without_a_type_are_refused_where_numbers_are_wanted() {
        let files = One(vec![0; 16], RefCell::default());
        let error = Values::Text("a.bin".to_owned()).load_float("R0", true, &files).unwrap_err();
        assert_eq!(
            error.to_string(),
            "R0: a.bin: unknown type of numbers; state it as a.bin:f32, :u32 or :i32"
        );
        assert!(Values::Text("a.bin:f32".to_owned()).load_float("R0", true, &files).unwrap().flat);
    }
}
