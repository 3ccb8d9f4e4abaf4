//! Where the numbers of an input come from: a file, or what is written in place.

use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;

use crate::array::{Array, ArrayError, Dtype};

/// Numbers: nested lists, or text that names a file (`.npy`, `.json`, `.bin:f32`) or is a literal (`0..64`,
/// `1,2,3`, `f32[64]`, `0..64:f32`).
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// A file or a literal.
    Text(String),
    /// Nested lists of numbers.
    Lists(serde_json::Value),
    /// Numbers with their type, which no file states: what is lowered to a launch has them.
    #[serde(skip)]
    Array(Arc<Array>),
}

impl From<Array> for Values {
    fn from(array: Array) -> Values {
        Values::Array(Arc::new(array))
    }
}

/// Files that a request names; the front end reads them.
pub trait Files {
    /// The bytes of a file, or why they cannot be had.
    ///
    /// # Errors
    /// A message for people, without the file's name.
    fn read(&self, name: &str) -> Result<Vec<u8>, String>;
}

/// No files: a launch that names none needs none.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("no such file".to_owned())
    }
}

/// Numbers that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValuesError {
    /// A file that is not there or cannot be read.
    #[error(
        "{place}: {file}: {why}; name a .npy, .json or .bin:TYPE file, or give values like 0..64, 1,2,3 or f32[64]"
    )]
    File {
        /// What the numbers are for.
        place: String,
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
    /// A file or literal with wrong content.
    #[error("{place}: {what}: {error}")]
    Content {
        /// What the numbers are for.
        place: String,
        /// The file or literal.
        what: String,
        /// What is wrong.
        error: ArrayError,
    },
}

impl Values {
    /// What names the numbers in messages.
    fn what(&self) -> &str {
        match self {
            Values::Text(text) => text,
            Values::Lists(_) | Values::Array(_) => "the list",
        }
    }

    /// The numbers. `place` says what they are for, in messages.
    ///
    /// # Errors
    /// See [`ValuesError`].
    pub fn load(&self, place: &str, files: &dyn Files) -> Result<Array, ValuesError> {
        let result = match self {
            Values::Array(array) => Ok(Array::clone(array)),
            Values::Lists(lists) => Array::from_json_value(lists),
            Values::Text(text) => {
                let read = |file: &str| {
                    files.read(file).map_err(|why| ValuesError::File {
                        place: place.to_owned(),
                        file: file.to_owned(),
                        why,
                    })
                };
                match file_kind(text) {
                    Some(FileKind::Npy) => Array::from_npy(&read(text)?),
                    Some(FileKind::Json) => Array::from_json(&read(text)?),
                    Some(FileKind::Bin(file, dtype)) => raw(read(file)?, dtype),
                    Some(FileKind::Literal(literal, dtype)) => {
                        Array::from_literal(literal).and_then(|array| array.convert(dtype))
                    }
                    None => Array::from_literal(text),
                }
            }
        };
        result.map_err(|error| self.wrong(place, error))
    }

    fn wrong(&self, place: &str, error: ArrayError) -> ValuesError {
        ValuesError::Content { place: place.to_owned(), what: self.what().to_owned(), error }
    }

    /// The numbers, converted to `dtype`.
    ///
    /// # Errors
    /// See [`ValuesError`]; also the first number that the type cannot hold.
    pub fn load_as(&self, place: &str, dtype: Dtype, files: &dyn Files) -> Result<Array, ValuesError> {
        let array = self.load(place, files)?;
        if array.dtype == dtype {
            return Ok(array);
        }
        array.convert(dtype).map_err(|error| self.wrong(place, error))
    }

    /// The numbers as a program's memory holds them: of the type that is stated (by the file, or behind `:`), and
    /// otherwise 32 bits wide, `i32`, `u32` or `f32`.
    ///
    /// # Errors
    /// See [`ValuesError`]; also a number without a stated type that 32 bits cannot hold.
    pub fn load_plain(&self, place: &str, files: &dyn Files) -> Result<Array, ValuesError> {
        let array = self.load(place, files)?;
        let stated = match self {
            Values::Array(_) => true,
            Values::Lists(_) => false,
            Values::Text(text) => match file_kind(text) {
                Some(FileKind::Npy | FileKind::Bin(..) | FileKind::Literal(..)) => true,
                Some(FileKind::Json) => false,
                None => text.contains('['),
            },
        };
        if stated {
            return Ok(array);
        }
        let narrow = |dtype| array.convert(dtype);
        let result = match array.dtype {
            Dtype::F64 => narrow(Dtype::F32),
            _ => narrow(Dtype::I32).or_else(|_| narrow(Dtype::U32)),
        };
        result.map_err(|error| ValuesError::Content {
            place: place.to_owned(),
            what: "a number without a stated type (add one: `1,2,3:u64`)".to_owned(),
            error,
        })
    }
}

enum FileKind<'a> {
    Npy,
    Json,
    Bin(&'a str, Dtype),
    /// A literal with the type of its elements.
    Literal(&'a str, Dtype),
}

fn file_kind(text: &str) -> Option<FileKind<'_>> {
    if text.ends_with(".npy") {
        Some(FileKind::Npy)
    } else if text.ends_with(".json") {
        Some(FileKind::Json)
    } else if text.ends_with(".bin") {
        Some(FileKind::Bin(text, Dtype::U8))
    } else {
        let (file, name) = text.rsplit_once(':')?;
        let dtype = Dtype::from_name(name)?;
        Some(match Array::from_literal(file) {
            Err(ArrayError::Literal(_)) => FileKind::Bin(file, dtype),
            _ => FileKind::Literal(file, dtype),
        })
    }
}

fn raw(bytes: Vec<u8>, dtype: Dtype) -> Result<Array, ArrayError> {
    if !bytes.len().is_multiple_of(dtype.bytes()) {
        let wanted = bytes.len().next_multiple_of(dtype.bytes()) as u128;
        return Err(ArrayError::Length { wanted, found: bytes.len() });
    }
    Ok(Array { dtype, shape: vec![bytes.len() / dtype.bytes()], bytes })
}
