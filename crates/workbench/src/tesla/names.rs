//! Mangled names of kernels. nvcc mangles names by the Itanium C++ ABI. Such a name states the types of the kernel's
//! parameters.

use std::fmt;

use cpp_demangle::Symbol;

use crate::array::Dtype;

/// The type of a kernel's parameter, if the kernel's mangled name states this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A pointer. The field has the element type if the pointer refers to numbers or to vectors of numbers.
    Pointer(Option<Dtype>),
    /// A number.
    Scalar(Dtype),
    /// `long` or `unsigned long`, which has 4 or 8 bytes depending on the host.
    Long {
        /// Whether the type is signed.
        signed: bool,
    },
    /// A built-in vector such as `float4` that is passed by value.
    Vector(Dtype, usize),
    /// A structure, or another type that the name does not describe.
    Unknown,
}

impl ParamType {
    /// Returns the size in bytes. Returns `None` if the type does not determine the size. Pointers have `pointer_bytes`
    /// bytes.
    pub fn bytes(self, pointer_bytes: usize) -> Option<usize> {
        match self {
            ParamType::Pointer(_) => Some(pointer_bytes),
            ParamType::Scalar(dtype) => Some(dtype.bytes()),
            ParamType::Vector(dtype, count) => Some(count * dtype.bytes()),
            ParamType::Long { .. } | ParamType::Unknown => None,
        }
    }

    /// Returns the number of bytes to which a parameter of this type is aligned. Returns `None` if the type does not
    /// determine the alignment.
    pub fn align(self, pointer_bytes: usize) -> Option<usize> {
        match self {
            // A vector of three elements has the alignment of one element.
            ParamType::Vector(dtype, 3) => Some(dtype.bytes()),
            kind => kind.bytes(pointer_bytes),
        }
    }
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamType::Pointer(Some(dtype)) => write!(f, "{}*", dtype.name()),
            ParamType::Pointer(None) => f.write_str("pointer"),
            ParamType::Scalar(dtype) => f.write_str(dtype.name()),
            ParamType::Long { signed: true } => f.write_str("long"),
            ParamType::Long { signed: false } => f.write_str("unsigned long"),
            ParamType::Vector(dtype, count) => write!(f, "{}x{count}", dtype.name()),
            ParamType::Unknown => f.write_str("unknown"),
        }
    }
}

/// Converts a mangled name to the name in the C++ source. Returns `None` if the name is not mangled.
///
/// ```
/// use reconverge_workbench::tesla::names::demangled;
/// assert_eq!(demangled("_Z4Fan1PfS_ii").as_deref(), Some("Fan1(float*, float*, int, int)"));
/// assert_eq!(demangled("cuda_process"), None);
/// ```
pub fn demangled(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    Symbol::new(name).ok()?.demangle().ok()
}

/// Returns the types of a kernel's parameters, in order. Returns `None` if the kernel's name is not the mangled name of
/// a C++ function.
///
/// ```
/// use reconverge_workbench::array::Dtype;
/// use reconverge_workbench::tesla::names::{ParamType, params_of_mangled};
/// let float = ParamType::Pointer(Some(Dtype::F32));
/// let int = ParamType::Scalar(Dtype::I32);
/// assert_eq!(params_of_mangled("_Z4Fan1PfS_ii"), Some(vec![float, float, int, int]));
/// ```
pub fn params_of_mangled(name: &str) -> Option<Vec<ParamType>> {
    let text = demangled(name)?;
    let list = parameter_list(&text)?;
    Some(split(list).into_iter().map(param_type).collect())
}

/// Returns the text inside the last pair of parentheses. This text is the list of parameters, for example `float*` of
/// `f<int>(float*)`.
fn parameter_list(text: &str) -> Option<&str> {
    let inside = text.strip_suffix(')')?;
    let mut depth = 0;
    for (at, byte) in inside.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth == 0 => return Some(&inside[at + 1..]),
            b'(' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits a list at the commas that are not inside brackets. `void` and an empty list have no elements.
fn split(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'(' | b'<' | b'[' | b'{' => depth += 1,
            b')' | b'>' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = list[start..].trim();
    if !last.is_empty() && last != "void" {
        parts.push(last);
    }
    parts
}

fn param_type(text: &str) -> ParamType {
    // In demangled names, qualifiers follow the type. Examples are `float const*` and `int* const`.
    let plain = |text: &str| -> String {
        let qualifies = |word: &&str| matches!(*word, "const" | "volatile" | "__restrict__");
        text.split_whitespace().filter(|word| !qualifies(word)).collect::<Vec<_>>().join(" ")
    };
    let text = text.trim_end();
    let text = ["const", "volatile", "restrict", "__restrict__", "__restrict"]
        .iter()
        .fold(text, |text, word| text.strip_suffix(word).map_or(text, str::trim_end));
    if let Some(pointee) = text.strip_suffix('*') {
        let element = match scalar(&plain(pointee)) {
            ParamType::Scalar(dtype) | ParamType::Vector(dtype, _) => Some(dtype),
            ParamType::Pointer(_) | ParamType::Long { .. } | ParamType::Unknown => None,
        };
        return ParamType::Pointer(element);
    }
    scalar(&plain(text))
}

fn scalar(name: &str) -> ParamType {
    ParamType::Scalar(match name {
        "bool" | "unsigned char" => Dtype::U8,
        "char" | "signed char" => Dtype::I8,
        "short" => Dtype::I16,
        "unsigned short" => Dtype::U16,
        "int" => Dtype::I32,
        "unsigned int" | "unsigned" => Dtype::U32,
        "long long" => Dtype::I64,
        "unsigned long long" => Dtype::U64,
        "float" => Dtype::F32,
        "double" => Dtype::F64,
        "long" => return ParamType::Long { signed: true },
        "unsigned long" => return ParamType::Long { signed: false },
        _ => return vector(name),
    })
}

/// Returns the type of a built-in vector of CUDA, such as `float4` or `uchar2`.
fn vector(name: &str) -> ParamType {
    let Some((at, count)) =
        name.char_indices().last().and_then(|(at, digit)| Some((at, digit.to_digit(10)?)))
    else {
        return ParamType::Unknown;
    };
    let dtype = match &name[..at] {
        "char" => Dtype::I8,
        "uchar" => Dtype::U8,
        "short" => Dtype::I16,
        "ushort" => Dtype::U16,
        "int" => Dtype::I32,
        "uint" => Dtype::U32,
        "longlong" => Dtype::I64,
        "ulonglong" => Dtype::U64,
        "float" => Dtype::F32,
        "double" => Dtype::F64,
        _ => return ParamType::Unknown,
    };
    if (1..=4).contains(&count) { ParamType::Vector(dtype, count as usize) } else { ParamType::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOAT: ParamType = ParamType::Pointer(Some(Dtype::F32));
    const INT: ParamType = ParamType::Scalar(Dtype::I32);

    #[test]
    fn a_mangled_name_states_the_types_of_its_parameters() {
        let cases: [(&str, &[ParamType]); 8] = [
            (
                "_Z14dynproc_kerneliPiS_S_iiii",
                &[
                    INT,
                    ParamType::Pointer(Some(Dtype::I32)),
                    ParamType::Pointer(Some(Dtype::I32)),
                    ParamType::Pointer(Some(Dtype::I32)),
                    INT,
                    INT,
                    INT,
                    INT,
                ],
            ),
            ("_Z1kPKfS0_d", &[FLOAT, FLOAT, ParamType::Scalar(Dtype::F64)]),
            ("_Z1kP6float4S0_", &[FLOAT, FLOAT]),
            ("_Z1k6float2m", &[ParamType::Vector(Dtype::F32, 2), ParamType::Long { signed: false }]),
            (
                "_Z1kIfEvPT_hxy",
                &[
                    FLOAT,
                    ParamType::Scalar(Dtype::U8),
                    ParamType::Scalar(Dtype::I64),
                    ParamType::Scalar(Dtype::U64),
                ],
            ),
            ("_Z1kPFvfiE4dataPPf", &[ParamType::Unknown, ParamType::Unknown, ParamType::Pointer(None)]),
            ("_Z1kv", &[]),
            ("_ZN5space1kEPfi", &[FLOAT, INT]),
        ];
        for (name, types) in cases {
            assert_eq!(params_of_mangled(name).as_deref(), Some(types), "{name}: {:?}", demangled(name));
        }
    }

    #[test]
    fn what_is_no_mangled_function_states_nothing() {
        for name in ["cuda_process", "", "_Z", "_ZZZZ", "_Z3x", "_ZN1a1bE"] {
            assert_eq!(params_of_mangled(name), None, "{name}");
        }
        let deep = format!("_Z1k{}i", "P".repeat(100_000));
        let _ = params_of_mangled(&deep);
    }
}
