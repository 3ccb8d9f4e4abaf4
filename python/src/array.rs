//! Converts numpy arrays to arrays of the workbench, and arrays of the workbench to numpy arrays.

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use reconverge_workbench::array::{Array, Dtype};
use reconverge_workbench::values::Stated;

use crate::errors::wrong;

/// Returns an array as a read-only numpy array. The numpy array is a view of the array's bytes, so the bytes are not
/// copied.
///
/// numpy lets a user make a view writable again in two cases. In the first case, the base array of the view is
/// writable. In the second case, the object that owns the memory has a writable buffer. To prevent the first case, this
/// function makes the base array read-only before a view of the base array exists. To prevent the second case, a Rust
/// object without a buffer owns the memory.
pub(crate) fn to_numpy<'py>(py: Python<'py>, array: Array) -> PyResult<Bound<'py, PyAny>> {
    let Array { dtype, shape, bytes } = array;
    let name = format!("{}{}", &dtype.name()[..1], dtype.bytes());
    let owner = column(py, bytes)?;
    owner.call_method1("view", (name,))?.call_method1("reshape", (shape,))
}

/// Returns a read-only column of numbers. The numbers are not converted.
pub(crate) fn column<'py, T: numpy::Element>(py: Python<'py>, values: Vec<T>) -> PyResult<Bound<'py, PyAny>> {
    let column = values.into_pyarray(py).into_any();
    column.call_method("setflags", (), Some(&[("write", false)].into_py_dict(py)?))?;
    Ok(column)
}

/// An array from numpy. The fields are the array's name, the name of the array's type, whether the user chose the type,
/// the shape, and the bytes in row-major order.
#[derive(FromPyObject)]
pub(crate) struct FromNumpy<'py>(String, String, bool, Vec<usize>, PyReadonlyArray1<'py, u8>);

impl FromNumpy<'_> {
    /// Returns the name, the array, and the origin of the array's type. A type that the user chose has the same origin
    /// as a type that a `.npy` file states.
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
