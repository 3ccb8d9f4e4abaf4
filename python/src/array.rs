//! Converts between numpy arrays and arrays of the workbench.

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use reconverge_workbench::array::{Array, Dtype};
use reconverge_workbench::values::Stated;

use crate::errors::wrong;

/// Returns an array as a read-only numpy array, which is a view of the array's bytes without a copy.
///
/// numpy lets a user make a view writable again if its base array is writable, or if the object that owns the memory
/// has a writable buffer. The base array is therefore made read-only before views of it exist, and its memory belongs
/// to a Rust object without a buffer.
pub(crate) fn to_numpy<'py>(py: Python<'py>, array: Array) -> PyResult<Bound<'py, PyAny>> {
    let Array { dtype, shape, bytes } = array;
    let name = format!("{}{}", &dtype.name()[..1], dtype.bytes());
    let owner = column(py, bytes)?;
    owner.call_method1("view", (name,))?.call_method1("reshape", (shape,))
}

/// Returns a read-only column of numbers, without a conversion.
pub(crate) fn column<'py, T: numpy::Element>(py: Python<'py>, values: Vec<T>) -> PyResult<Bound<'py, PyAny>> {
    let column = values.into_pyarray(py).into_any();
    column.call_method("setflags", (), Some(&[("write", false)].into_py_dict(py)?))?;
    Ok(column)
}

/// An array from numpy: its name, the name of its type, whether the user chose the type, its shape, and its bytes in
/// row-major order.
#[derive(FromPyObject)]
pub(crate) struct FromNumpy<'py>(String, String, bool, Vec<usize>, PyReadonlyArray1<'py, u8>);

impl FromNumpy<'_> {
    /// Returns the name, the array, and the origin of its type. A type that the user chose is treated like the type of
    /// a `.npy` file.
    ///
    /// # Errors
    /// Fails if the workbench does not have the type, or if the bytes are not contiguous.
    pub(crate) fn read(&self) -> PyResult<(String, (Array, Stated))> {
        let FromNumpy(name, dtype, chosen, shape, bytes) = self;
        let dtype =
            Dtype::from_name(dtype).ok_or_else(|| wrong(format!("{name}: unsupported type {dtype}")))?;
        let bytes = bytes.as_slice().map_err(|_| wrong(format!("{name}: the bytes are not contiguous")))?;
        let stated = if *chosen { Stated::File } else { Stated::Not };
        Ok((name.clone(), (Array { dtype, shape: shape.clone(), bytes: bytes.to_vec() }, stated)))
    }
}
