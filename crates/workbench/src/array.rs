//! Typed arrays. This module reads arrays from files and writes arrays to files. The formats are `.npy`, `.npz`, JSON
//! and raw bytes. The command line accepts ranges and lists as arrays.
//!
//! This module does not use the crate npyz for the header of a `.npy` file, for two reasons. npyz does not check
//! whether the product of a shape's sizes overflows. The `.npz` support of npyz depends on compressors written in C.

use std::io::{Cursor, Read};
use std::ops::Range;

use reconverge_isa::limits::{self, NoRoom, room};
use serde::ser::{SerializeSeq, Serializer};
use thiserror::Error;

reconverge_isa::choices! {
    /// Type of an element.
    #[non_exhaustive]
    pub enum Dtype {
        /// Unsigned 8 bit.
        U8 = "u8",
        /// Unsigned 16 bit.
        U16 = "u16",
        /// Unsigned 32 bit.
        U32 = "u32",
        /// Unsigned 64 bit.
        U64 = "u64",
        /// Signed 8 bit.
        I8 = "i8",
        /// Signed 16 bit.
        I16 = "i16",
        /// Signed 32 bit.
        I32 = "i32",
        /// Signed 64 bit.
        I64 = "i64",
        /// Binary32.
        F32 = "f32",
        /// Binary64.
        F64 = "f64",
    }
}

impl Dtype {
    /// Returns the unsigned integer type of `bytes` bytes, if one exists.
    pub fn unsigned(bytes: usize) -> Option<Dtype> {
        [Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64].into_iter().find(|dtype| dtype.bytes() == bytes)
    }

    /// Returns the signed integer type of `bytes` bytes, if one exists.
    pub fn signed(bytes: usize) -> Option<Dtype> {
        [Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64].into_iter().find(|dtype| dtype.bytes() == bytes)
    }

    /// Returns the type with this name.
    pub fn from_name(name: &str) -> Option<Dtype> {
        Dtype::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Returns the number of bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            Dtype::U8 | Dtype::I8 => 1,
            Dtype::U16 | Dtype::I16 => 2,
            Dtype::U32 | Dtype::I32 | Dtype::F32 => 4,
            Dtype::U64 | Dtype::I64 | Dtype::F64 => 8,
        }
    }

    /// Returns whether elements are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Dtype::F32 | Dtype::F64)
    }

    /// Returns numpy's little-endian type string.
    fn npy(self) -> String {
        let order = if self.bytes() == 1 { '|' } else { '<' };
        format!("{order}{}{}", &self.name()[..1], self.bytes())
    }
}

/// An array in row-major order. Numbers are little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Type of an element.
    pub dtype: Dtype,
    /// Length of each dimension. The outermost dimension comes first.
    pub shape: Vec<usize>,
    /// The elements.
    pub bytes: Vec<u8>,
}

/// The reason why data cannot be read or converted as an array.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// The bytes are not a `.npy` file.
    #[error("not an .npy file: {0}")]
    NotNpy(&'static str),
    /// The `.npy` element type is not supported.
    #[error(".npy element type `{0}` is not supported: use one of b1 u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8")]
    NpyType(String),
    /// The bytes are not a `.npz` file.
    #[error("not an .npz file: {0}")]
    NotNpz(String),
    /// The `.npz` file does not have an array with the requested name. The error also occurs if the caller gave no name
    /// and the file has several arrays.
    #[error("{}; name one as FILE.npz:NAME: {}", .asked.as_ref().map_or("several arrays".to_owned(), |name| format!("no array `{name}`")), .names.join(", "))]
    NpzName {
        /// The requested name, if the caller gave a name.
        asked: Option<String>,
        /// The arrays in the file.
        names: Vec<String>,
    },
    /// Numbers are expected, but raw bytes without a type were found.
    #[error("unknown type of numbers; state it as {0}:f32, :u32 or :i32")]
    Untyped(String),
    /// The data is too short or too long.
    #[error("expected {wanted} bytes of data for the shape and type, found {found}")]
    Length {
        /// Bytes needed.
        wanted: u128,
        /// Bytes found.
        found: usize,
    },
    /// The text is not valid JSON, or the JSON value does not consist of nested lists of numbers.
    #[error("JSON: {0}")]
    Json(String),
    /// Two JSON lists at the same nesting level have different lengths.
    #[error("JSON: expected lists of equal length")]
    Ragged,
    /// An element is NaN, but an integer is required.
    #[error(
        "element {index} is NaN, which {wanted} cannot hold: give an array of {wanted}, or replace the NaN"
    )]
    NotANumber {
        /// Position in row-major order.
        index: usize,
        /// The required type.
        wanted: Dtype,
    },
    /// An element has a value that the required type cannot hold.
    #[error("element {index} is {value}, which {wanted} cannot hold exactly: give an array of {wanted}")]
    DoesNotFit {
        /// Position in row-major order.
        index: usize,
        /// The value as text.
        value: String,
        /// The required type.
        wanted: Dtype,
    },
    /// The text is not a range or list.
    #[error("expected a list (1,2,3), a range (0..64 or 0..1..0.125) or a size (f32[64]), found `{0}`")]
    Literal(String),
    /// The data needs more memory than is available.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// Maximum number of copies of an array in memory. The copies are the loaded array, the converted array, the array in
/// the launch, and the array in an output.
const COPIES: u64 = 4;

/// Estimate of the memory for parsing a JSON text, as a multiple of the text's length.
const JSON_COPIES: u64 = 40;

/// An element, converted to the widest integer or floating-point type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    Integer(i128),
    Float(f64),
}

impl Element {
    /// Returns the nearest `f64`.
    fn as_f64(self) -> f64 {
        match self {
            Element::Integer(value) => value as f64,
            Element::Float(value) => value,
        }
    }
}

impl Array {
    /// Divides the array into `all` rows of equal length, one row for each lane. Returns the rows of the lanes in
    /// `lanes`. If the array cannot be divided into rows of equal length, returns the array unchanged.
    pub(crate) fn rows_of(self, lanes: &Range<usize>, all: usize) -> Array {
        let Array { dtype, mut shape, bytes } = self;
        if all == 0 || !bytes.len().is_multiple_of(all) {
            return Array { dtype, shape, bytes };
        }
        let each = bytes.len() / all;
        match shape.first_mut() {
            Some(first) if *first == all => *first = lanes.len(),
            _ => shape = vec![lanes.len() * each / dtype.bytes()],
        }
        let bytes = bytes[lanes.start * each..lanes.end * each].to_vec();
        Array { dtype, shape, bytes }
    }

    /// Creates an array of bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Array {
        Array { dtype: Dtype::U8, shape: vec![bytes.len()], bytes }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.bytes()
    }

    /// Returns whether the array does not have elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Creates an array of 32-bit words.
    pub fn from_words(dtype: Dtype, shape: Vec<usize>, words: impl IntoIterator<Item = u32>) -> Array {
        let mut bytes = Vec::new();
        for word in words {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        Array { dtype, shape, bytes }
    }

    /// Returns the elements as 32-bit words. The element type must have four bytes.
    pub fn words(&self) -> impl Iterator<Item = u32> {
        self.bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word))
    }

    /// Converts the numbers to another type.
    ///
    /// # Errors
    /// Returns an error for the first element that the new type cannot hold exactly. Conversion to `f32` does not
    /// return an error. This conversion rounds the elements. A NaN stays a NaN.
    pub fn convert(&self, wanted: Dtype) -> Result<Array, ArrayError> {
        if self.dtype == wanted {
            return Ok(self.clone());
        }
        Array::of(wanted, self.shape.clone(), (0..self.len()).map(|index| self.element(index)))
    }

    /// Creates an array of type `dtype` from numbers.
    fn of(
        dtype: Dtype,
        shape: Vec<usize>,
        elements: impl ExactSizeIterator<Item = Element>,
    ) -> Result<Array, ArrayError> {
        let mut bytes = Vec::with_capacity(elements.len() * dtype.bytes());
        for (index, element) in elements.enumerate() {
            push(&mut bytes, dtype, element, index)?;
        }
        Ok(Array { dtype, shape, bytes })
    }

    /// Creates an array from numbers. The element type is `f64` if a number has a fraction. If no number has a fraction
    /// but a number exceeds the maximum of `i64`, the type is `u64`. In all other cases, the type is `i64`.
    fn of_numbers(shape: Vec<usize>, numbers: Vec<Element>) -> Result<Array, ArrayError> {
        let any = |is: fn(&Element) -> bool| numbers.iter().any(is);
        let dtype = if any(|number| matches!(number, Element::Float(_))) {
            Dtype::F64
        } else if any(|number| matches!(number, Element::Integer(i) if *i > i128::from(i64::MAX))) {
            Dtype::U64
        } else {
            Dtype::I64
        };
        Array::of(dtype, shape, numbers.into_iter())
    }

    fn element(&self, index: usize) -> Element {
        let size = self.dtype.bytes();
        let mut raw = [0; 8];
        raw[..size].copy_from_slice(&self.bytes[index * size..(index + 1) * size]);
        let bits = u64::from_le_bytes(raw);
        match self.dtype {
            Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => Element::Integer(i128::from(bits)),
            Dtype::I8 => Element::Integer(i128::from(bits as i8)),
            Dtype::I16 => Element::Integer(i128::from(bits as i16)),
            Dtype::I32 => Element::Integer(i128::from(bits as i32)),
            Dtype::I64 => Element::Integer(i128::from(bits as i64)),
            Dtype::F32 => Element::Float(f64::from(f32::from_bits(bits as u32))),
            Dtype::F64 => Element::Float(f64::from_bits(bits)),
        }
    }

    /// Returns the number of rows, which is the length of the outermost dimension.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Returns the indices of the elements of a row.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        let each = self.shape.iter().skip(1).product::<usize>();
        row * each..(row + 1) * each
    }

    /// Returns an element as an `f64`. Integers beyond 2^53 are rounded.
    pub fn number(&self, index: usize) -> f64 {
        self.element(index).as_f64()
    }

    /// Returns an element as text. The text of a floating-point number has a decimal point, as in JSON.
    pub fn text(&self, index: usize) -> String {
        match self.element(index) {
            Element::Integer(value) => value.to_string(),
            Element::Float(value) if value.is_finite() => serde_json::json!(value).to_string(),
            Element::Float(value) => value.to_string(),
        }
    }

    /// Returns the elements as nested JSON lists of numbers. JSON cannot represent NaN and infinity, so the function
    /// writes these values as strings. For a large array, serialise the `Array` directly. Direct serialisation does not
    /// need extra memory.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads a `.npy` file.
    ///
    /// # Errors
    /// See [`ArrayError`].
    pub fn from_npy(file: &[u8]) -> Result<Array, ArrayError> {
        let rest =
            file.strip_prefix(b"\x93NUMPY").ok_or(ArrayError::NotNpy("the magic number is missing"))?;
        let cut = ArrayError::NotNpy("the header is cut short");
        let (length_bytes, at) = match rest.first() {
            Some(1) => (2, 2),
            Some(2 | 3) => (4, 2),
            Some(_) => return Err(ArrayError::NotNpy("unknown version")),
            None => return Err(cut),
        };
        let mut raw = [0; 4];
        raw[..length_bytes].copy_from_slice(rest.get(at..at + length_bytes).ok_or(cut.clone())?);
        let start = at + length_bytes;
        let end = start + u32::from_le_bytes(raw) as usize;
        let header = rest.get(start..end).and_then(|text| std::str::from_utf8(text).ok()).ok_or(cut)?;
        let data = &rest[end..];

        let value_of = |key: &str| {
            header
                .split_once(&format!("'{key}':"))
                .map(|(_, rest)| rest.trim_start())
                .ok_or(ArrayError::NotNpy("the header lacks descr, fortran_order or shape"))
        };
        let descr = value_of("descr")?.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
        let (descr, _) = descr.ok_or(ArrayError::NpyType(value_of("descr")?.chars().take(20).collect()))?;
        let shape = value_of("shape")?
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .and_then(|(list, _)| {
                let sizes = list.split(',').map(str::trim).filter(|size| !size.is_empty());
                sizes.map(|size| size.parse().ok()).collect::<Option<Vec<usize>>>()
            })
            .ok_or(ArrayError::NotNpy("the shape is not a tuple of sizes"))?;
        let unknown = || ArrayError::NpyType(descr.to_owned());
        let (order, kind) = descr.split_at_checked(1).ok_or_else(unknown)?;
        let (stored, dtype) = match kind {
            "f2" => (2, Dtype::F32),
            "b1" => (1, Dtype::U8),
            _ => {
                let dtype = Dtype::ALL.into_iter().find(|dtype| dtype.npy()[1..] == *kind);
                dtype.map(|dtype| (dtype.bytes(), dtype)).ok_or_else(unknown)?
            }
        };
        let big_endian = match (order, stored) {
            ("<" | "=" | "|", _) | (_, 1) => false,
            (">", _) => true,
            _ => return Err(unknown()),
        };
        let wanted = shape.iter().fold(stored as u128, |size, side| size.saturating_mul(*side as u128));
        if wanted != data.len() as u128 {
            return Err(ArrayError::Length { wanted, found: data.len() });
        }
        room(data.len() as u64, COPIES)?;
        let mut bytes = data.to_vec();
        if big_endian {
            bytes.chunks_exact_mut(stored).for_each(<[u8]>::reverse);
        }
        if kind == "f2" {
            let halves = bytes.as_chunks::<2>().0.iter();
            bytes = halves.flat_map(|half| half::f16::from_le_bytes(*half).to_f32().to_le_bytes()).collect();
        }
        let array = Array { dtype, shape, bytes };
        Ok(if value_of("fortran_order")?.starts_with("True") { array.to_rows() } else { array })
    }

    /// Converts an array from column-major order to row-major order.
    fn to_rows(&self) -> Array {
        let (size, count) = (self.dtype.bytes(), self.len());
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut place = vec![0; self.shape.len()];
        for _ in 0..count {
            let index =
                place.iter().zip(&self.shape).rev().fold(0, |index, (place, side)| index * side + place);
            bytes.extend(&self.bytes[index * size..(index + 1) * size]);
            for (place, side) in place.iter_mut().zip(&self.shape).rev() {
                *place += 1;
                if *place < *side {
                    break;
                }
                *place = 0;
            }
        }
        Array { dtype: self.dtype, shape: self.shape.clone(), bytes }
    }

    /// Reads the array `name` of a `.npz` file. If `name` is `None`, the function reads the only array of the file.
    ///
    /// # Errors
    /// See [`ArrayError`].
    pub fn from_npz(file: &[u8], name: Option<&str>) -> Result<Array, ArrayError> {
        let wrong = |error: zip::result::ZipError| ArrayError::NotNpz(error.to_string());
        let mut archive = zip::ZipArchive::new(Cursor::new(file)).map_err(wrong)?;
        let files = archive.file_names();
        let names: Vec<String> =
            files.filter_map(|name| Some(name.strip_suffix(".npy")?.to_owned())).collect();
        let chosen = match (name, &names[..]) {
            (Some(name), _) if names.iter().any(|known| known == name) => name,
            (None, [only]) => only,
            (asked, _) => return Err(ArrayError::NpzName { asked: asked.map(str::to_owned), names }),
        };
        let member = archive.by_name(&format!("{chosen}.npy")).map_err(wrong)?;
        let mut bytes = Vec::new();
        let most = limits::MEMORY.get();
        let read = member.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| ArrayError::NotNpz(error.to_string()))?;
        if bytes.len() as u64 > most {
            return Err(NoRoom::Limit(limits::MEMORY.exceeded()).into());
        }
        Array::from_npy(&bytes)
    }

    /// Returns the array as a `.npy` file, version 1.0.
    pub fn to_npy(&self) -> Vec<u8> {
        let sizes: String = self.shape.iter().map(|size| format!("{size},")).collect();
        let header =
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({sizes}), }}", self.dtype.npy());
        // Magic number, version and length take ten bytes. Data starts at a multiple of 64.
        let total = (10 + header.len() + 1).next_multiple_of(64);
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend(((total - 10) as u16).to_le_bytes());
        file.extend(format!("{header:<width$}\n", width = total - 11).bytes());
        file.extend(&self.bytes);
        file
    }

    /// Reads nested JSON lists of numbers. If all numbers are integers, the element type is `i64` or `u64`. If a number
    /// has a fraction, the element type is `f64`.
    ///
    /// # Errors
    /// See [`ArrayError`].
    pub fn from_json(text: &[u8]) -> Result<Array, ArrayError> {
        room(text.len() as u64, JSON_COPIES)?;
        let value: serde_json::Value =
            serde_json::from_slice(text).map_err(|error| ArrayError::Json(error.to_string()))?;
        Array::from_json_value(&value)
    }

    /// Creates an array from parsed nested lists of numbers.
    ///
    /// # Errors
    /// See [`ArrayError`].
    pub fn from_json_value(value: &serde_json::Value) -> Result<Array, ArrayError> {
        let mut shape = Vec::new();
        let mut inner = value;
        while let serde_json::Value::Array(items) = inner {
            shape.push(items.len());
            match items.first() {
                Some(first) => inner = first,
                None => break,
            }
        }
        let mut elements = Vec::new();
        flatten(value, &shape, &mut elements)?;
        Array::of_numbers(shape, elements)
    }

    /// Parses an array literal of the command line. The literal is a list `1,2.5,-3`, rows `(1,2),(3,4)`, or a range
    /// `0..64` or `0..1..0.125`. A range does not include its end. A type with a size, such as `f32[64]` or `u32[8,4]`,
    /// is also a literal: an array of zeros.
    ///
    /// # Errors
    /// Returns an error if the text is not an array literal, or if the array needs more memory than is available.
    pub fn from_literal(text: &str) -> Result<Array, ArrayError> {
        let unknown = || ArrayError::Literal(text.to_owned());
        if let Some((name, sizes)) = text.split_once('[') {
            let dtype = Dtype::from_name(name).ok_or_else(unknown)?;
            let sizes = sizes.strip_suffix(']').ok_or_else(unknown)?;
            let shape: Vec<usize> = sizes
                .split(',')
                .map(|size| size.trim().parse())
                .collect::<Result<_, _>>()
                .map_err(|_| unknown())?;
            let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
            let bytes = count.and_then(|count| count.checked_mul(dtype.bytes())).unwrap_or(usize::MAX);
            room(bytes as u64, COPIES)?;
            return Ok(Array { dtype, shape, bytes: vec![0; bytes] });
        }
        if text.contains("..") {
            return range(text);
        }
        if text.trim_start().starts_with('(') {
            return rows(text).ok_or_else(unknown)?;
        }
        let numbers: Vec<Element> = text.split(',').map(number).collect::<Option<_>>().ok_or_else(unknown)?;
        Array::of_numbers(vec![numbers.len()], numbers)
    }

    /// Returns an element as text.
    pub(crate) fn shown(&self, index: usize) -> String {
        match self.element(index) {
            Element::Integer(value) => value.to_string(),
            Element::Float(value) => value.to_string(),
        }
    }
}

/// Parses rows of equal length. Each row is in parentheses, as in `(1,2),(3,4)`.
fn rows(text: &str) -> Option<Result<Array, ArrayError>> {
    let inside = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let rows: Vec<Vec<Element>> = inside
        .split(')')
        .enumerate()
        .map(|(index, row)| {
            let row = match index {
                0 => row,
                _ => row.trim_start().strip_prefix(',')?.trim_start().strip_prefix('(')?,
            };
            row.split(',').map(number).collect()
        })
        .collect::<Option<_>>()?;
    let width = rows.first()?.len();
    let shape = vec![rows.len(), width];
    rows.iter().all(|row| row.len() == width).then(|| Array::of_numbers(shape, rows.concat()))
}

/// Serialises the array as nested lists of numbers. The output equals the output of [`Array::to_json`], but this
/// implementation converts one element at a time.
impl serde::Serialize for Array {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Level { array: self, shape: &self.shape, elements: 0..self.len() }.serialize(serializer)
    }
}

/// A part of an array, for serialisation. `elements` is the index range of the part's elements, and `shape` is the
/// shape of the part.
struct Level<'a> {
    array: &'a Array,
    shape: &'a [usize],
    elements: std::ops::Range<usize>,
}

impl serde::Serialize for Level<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (count, rest) = self.shape.split_first().unwrap_or((&1, &[]));
        let mut list = serializer.serialize_seq(Some(*count))?;
        let each = rest.iter().product::<usize>();
        for row in 0..*count {
            let start = self.elements.start + row * each;
            match rest {
                [] => match self.array.element(start) {
                    Element::Integer(value) if value < 0 => list.serialize_element(&(value as i64))?,
                    Element::Integer(value) => list.serialize_element(&(value as u64))?,
                    Element::Float(value) if value.is_finite() => list.serialize_element(&value)?,
                    Element::Float(value) => list.serialize_element(&value.to_string())?,
                },
                rest => {
                    list.serialize_element(&Level {
                        array: self.array,
                        shape: rest,
                        elements: start..start + each,
                    })?;
                }
            }
        }
        list.end()
    }
}

fn range(text: &str) -> Result<Array, ArrayError> {
    let unknown = || ArrayError::Literal(text.to_owned());
    let parts: Vec<Element> = text.split("..").map(number).collect::<Option<_>>().ok_or_else(unknown)?;
    let (first, end, step) = match parts[..] {
        [first, end] => (first, end, Element::Integer(1)),
        [first, end, step] => (first, end, step),
        _ => return Err(unknown()),
    };
    let whole = parts.iter().all(|part| matches!(part, Element::Integer(_)));
    let (first, end, step) = (first.as_f64(), end.as_f64(), step.as_f64());
    let count = ((end - first) / step).ceil();
    if !count.is_finite() || step == 0.0 {
        return Err(unknown());
    }
    // The conversion to `usize` saturates. A count of 2^64 or more becomes the largest `usize`.
    let count = count.max(0.0) as usize;
    room((count as u64).saturating_mul(8), COPIES)?;
    let values = (0..count).map(|index| first + step * index as f64);
    let bytes = values.flat_map(|value| match whole {
        true => (value as i64).to_le_bytes(),
        false => value.to_le_bytes(),
    });
    let mut all = Vec::with_capacity(8 * count);
    all.extend(bytes);
    Ok(Array { dtype: if whole { Dtype::I64 } else { Dtype::F64 }, shape: vec![count], bytes: all })
}

fn number(text: &str) -> Option<Element> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if let Some(value) = reconverge_isa::source::parse_number(digits) {
        let value = i128::from(value);
        let value = if negative { -value } else { value };
        return i64::try_from(value).ok().map(|value| Element::Integer(i128::from(value)));
    }
    text.parse().ok().map(Element::Float)
}

fn flatten(value: &serde_json::Value, shape: &[usize], out: &mut Vec<Element>) -> Result<(), ArrayError> {
    match (value, shape) {
        (serde_json::Value::Array(items), [length, rest @ ..]) => {
            if items.len() != *length {
                return Err(ArrayError::Ragged);
            }
            items.iter().try_for_each(|item| flatten(item, rest, out))?;
        }
        (serde_json::Value::Number(number), []) => {
            let integer = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            out.push(match integer {
                Some(value) => Element::Integer(value),
                None => Element::Float(number.as_f64().unwrap_or(f64::NAN)),
            });
        }
        (serde_json::Value::Bool(value), []) => out.push(Element::Integer(i128::from(*value))),
        // `to_json` writes NaN and infinity as the strings of this pattern.
        (serde_json::Value::String(text), []) if matches!(text.as_str(), "NaN" | "inf" | "-inf") => {
            out.push(Element::Float(text.parse().unwrap_or(f64::NAN)));
        }
        (serde_json::Value::Array(_), []) | (serde_json::Value::Number(_), _) => {
            return Err(ArrayError::Ragged);
        }
        (other, _) => return Err(ArrayError::Json(format!("`{other}` is not a number"))),
    }
    Ok(())
}

fn push(bytes: &mut Vec<u8>, wanted: Dtype, element: Element, index: usize) -> Result<(), ArrayError> {
    match wanted {
        Dtype::F32 => bytes.extend((element.as_f64() as f32).to_le_bytes()),
        Dtype::F64 => bytes.extend(element.as_f64().to_le_bytes()),
        _ => bytes.extend(&integer(wanted, element, index)?.to_le_bytes()[..wanted.bytes()]),
    }
    Ok(())
}

/// Returns an element as a number of an integer type.
fn integer(wanted: Dtype, element: Element, index: usize) -> Result<i128, ArrayError> {
    let does_not_fit = |value: String| Err(ArrayError::DoesNotFit { index, value, wanted });
    let value = match element {
        Element::Integer(value) => value,
        Element::Float(value) if value.is_nan() => return Err(ArrayError::NotANumber { index, wanted }),
        Element::Float(value) if value.fract() != 0.0 || value.abs() >= 2f64.powi(64) => {
            return does_not_fit(value.to_string());
        }
        Element::Float(value) => value as i128,
    };
    let bits = 8 * wanted.bytes() as u32;
    let signed = Dtype::signed(wanted.bytes()) == Some(wanted);
    let (low, high) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    if (low..=high).contains(&value) { Ok(value) } else { does_not_fit(value.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npy_files_survive_the_round_trip() {
        for dtype in Dtype::ALL {
            let array = Array { dtype, shape: vec![2, 3], bytes: (0..6 * dtype.bytes() as u8).collect() };
            let file = array.to_npy();
            assert_eq!(Array::from_npy(&file), Ok(array), "{dtype}");
            assert_eq!(file.len() % 64, 6 * dtype.bytes() % 64, "data is aligned");
        }
    }

    #[test]
    fn damaged_npy_files_are_refused() {
        let good = Array { dtype: Dtype::F32, shape: vec![3], bytes: vec![0; 12] }.to_npy();
        for end in 0..good.len() {
            assert!(Array::from_npy(&good[..end]).is_err(), "cut at {end}");
        }
    }

    /// Returns the file that `numpy.save` writes with this header and data.
    fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
    }

    #[test]
    fn npy_files_of_other_orders_and_types_are_read() {
        let read = |file: Vec<u8>| Array::from_npy(&file).unwrap().to_json().to_string();
        assert_eq!(read(npy(">f4", "False", "(2,)", &[0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0])), "[1.0,-2.0]");
        assert_eq!(read(npy(">i2", "False", "(2,)", &[0, 1, 0xff, 0xfe])), "[1,-2]");
        assert_eq!(read(npy("<f2", "False", "(2,)", &[0, 0x3c, 0, 0xc0])), "[1.0,-2.0]");
        assert_eq!(read(npy("|b1", "False", "(2,)", &[0, 1])), "[0,1]");
        assert_eq!(read(npy("|u1", "True", "(2, 3)", &[1, 4, 2, 5, 3, 6])), "[[1,2,3],[4,5,6]]");
        assert_eq!(read(npy("<u8", "False", "(1,)", &[0xff; 8])), "[18446744073709551615]");
        // The product of the dimensions does not fit in 64 bits.
        let huge = npy("<f4", "True", "(4294967296, 4294967296, 4294967296)", &[]);
        assert!(matches!(Array::from_npy(&huge), Err(ArrayError::Length { .. })));
    }

    #[test]
    fn an_array_of_an_npz_file_is_chosen_by_name() {
        use std::io::Write;
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, value) in [("a.npy", 1), ("b.npy", 2)] {
            archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(&npy("|u1", "False", "(1,)", &[value])).unwrap();
        }
        let file = archive.finish().unwrap().into_inner();
        assert_eq!(Array::from_npz(&file, Some("b")).unwrap().bytes, [2]);
        let error = Array::from_npz(&file, None).unwrap_err().to_string();
        assert_eq!(error, "several arrays; name one as FILE.npz:NAME: a, b");
        let error = Array::from_npz(&file, Some("c")).unwrap_err().to_string();
        assert_eq!(error, "no array `c`; name one as FILE.npz:NAME: a, b");
        assert!(Array::from_npz(&file[..20], None).is_err());
    }

    #[test]
    fn nan_does_not_become_an_integer() {
        let array = Array::from_words(Dtype::F32, vec![3], [1.0f32, 2.0, f32::NAN].map(f32::to_bits));
        let error = array.convert(Dtype::U8).unwrap_err();
        assert_eq!(error, ArrayError::NotANumber { index: 2, wanted: Dtype::U8 });
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let literal = |text| Array::from_literal(text).unwrap();
        assert!(literal("255").convert(Dtype::U8).is_ok());
        assert!(literal("256").convert(Dtype::U8).is_err());
        assert!(literal("-1").convert(Dtype::U32).is_err());
        assert!(literal("0.5").convert(Dtype::I32).is_err());
        assert_eq!(literal("-128").convert(Dtype::I8).unwrap().bytes, [0x80]);
    }

    #[test]
    fn literals_are_lists_ranges_and_sizes() {
        let numbers = |text| Array::from_literal(text).unwrap().to_json().to_string();
        assert_eq!(numbers("1,0x10,-3"), "[1,16,-3]");
        assert_eq!(numbers("0..4"), "[0,1,2,3]");
        assert_eq!(numbers("0..1..0.25"), "[0.0,0.25,0.5,0.75]");
        assert_eq!(numbers("4..0..-2"), "[4,2]");
        assert_eq!(numbers("u8[2,2]"), "[[0,0],[0,0]]");
        for bad in ["", "a..b", "0..1..0", "f33[2]", "f32[", "1,,2", "0..inf"] {
            assert!(Array::from_literal(bad).is_err(), "{bad}");
        }
        assert!(matches!(Array::from_literal("u8[99999999999]"), Err(ArrayError::NoRoom(_))));
    }

    #[test]
    fn json_lists_nest() {
        let array = Array::from_json(b"[[1, 2], [3, 4.5]]").unwrap();
        assert_eq!((array.dtype, &array.shape[..]), (Dtype::F64, &[2, 2][..]));
        for bad in ["[[1],[2,3]]", "[1,[2]]", "{}", "[\"x\"]", "[1"] {
            assert!(Array::from_json(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
