//! Fills of device memory (`cuMemset…`), and writes of single values (`cuStreamWriteValue…`).

use std::ffi::c_uint;

use crate::memory;
use crate::status::{CallResult, CudaError};
use crate::stream;

/// Rows of bytes that are filled with a pattern.
struct Fill {
    at: u64,
    /// Distance between the starts of two consecutive rows, in bytes.
    pitch: u64,
    pattern: Vec<u8>,
    /// Number of patterns per row.
    width: u64,
    height: u64,
}

impl Fill {
    fn row_bytes(&self) -> Result<u64, CudaError> {
        self.width.checked_mul(self.pattern.len() as u64).ok_or(CudaError::INVALID_VALUE)
    }

    fn check(&self) -> CallResult {
        let (size, row) = (self.pattern.len() as u64, self.row_bytes()?);
        let aligned = self.at.is_multiple_of(size) && (self.height == 1 || self.pitch.is_multiple_of(size));
        if !aligned || self.height > 1 && self.pitch < row {
            return Err(CudaError::INVALID_VALUE);
        }
        let rows = self.pitch.checked_mul(self.height - 1).and_then(|rows| rows.checked_add(row));
        memory::find(self.at, rows.ok_or(CudaError::INVALID_VALUE)?).map(|_| ())
    }

    fn run(&self) -> CallResult {
        let row = self.row_bytes()?;
        (0..self.height)
            .try_for_each(|number| memory::fill(self.at + number * self.pitch, row as usize, &self.pattern))
    }

    /// Enqueues the fill in a stream, and does not wait until the fill has ended.
    fn enqueue(self, stream: usize) -> CallResult {
        let (_, stream) = stream::find_for_work(stream)?;
        if self.width != 0 && self.height != 0 {
            self.check()?;
            stream.enqueue(move || self.run());
        }
        Ok(())
    }
}

/// Defines the functions for one width of the pattern.
macro_rules! fills {
    ($($pattern:ty: $row:ident $row_async:ident $rows:ident $rows_async:ident $row_32:ident $rows_32:ident;)*) => {
        $(
            /// Fills a row.
            pub(crate) unsafe fn $row(at: u64, value: $pattern, count: usize) -> CallResult {
                fill(at, 0, value.to_le_bytes().to_vec(), [count, 1]).enqueue(0)
            }

            /// Fills a row in a stream.
            pub(crate) unsafe fn $row_async(at: u64, value: $pattern, count: usize, stream: usize) -> CallResult {
                fill(at, 0, value.to_le_bytes().to_vec(), [count, 1]).enqueue(stream)
            }

            /// Fills rows.
            pub(crate) unsafe fn $rows(at: u64, pitch: usize, value: $pattern, width: usize, height: usize) -> CallResult {
                fill(at, pitch, value.to_le_bytes().to_vec(), [width, height]).enqueue(0)
            }

            /// Fills rows in a stream.
            pub(crate) unsafe fn $rows_async(
                at: u64, pitch: usize, value: $pattern, width: usize, height: usize, stream: usize,
            ) -> CallResult {
                fill(at, pitch, value.to_le_bytes().to_vec(), [width, height]).enqueue(stream)
            }

            /// Fills a row, for programs of CUDA 3.1 and earlier.
            pub(crate) unsafe fn $row_32(at: u32, value: $pattern, count: u32) -> CallResult {
                fill(at.into(), 0, value.to_le_bytes().to_vec(), [count as usize, 1]).enqueue(0)
            }

            /// Fills rows, for programs of CUDA 3.1 and earlier.
            pub(crate) unsafe fn $rows_32(at: u32, pitch: u32, value: $pattern, width: u32, height: u32) -> CallResult {
                let size = [width as usize, height as usize];
                fill(at.into(), pitch as usize, value.to_le_bytes().to_vec(), size).enqueue(0)
            }
        )*
    };
}

fn fill(at: u64, pitch: usize, pattern: Vec<u8>, [width, height]: [usize; 2]) -> Fill {
    Fill { at, pitch: pitch as u64, pattern, width: width as u64, height: height as u64 }
}

fills! {
    u8: bytes bytes_async rows_of_bytes rows_of_bytes_async bytes_32 rows_of_bytes_32;
    u16: halves halves_async rows_of_halves rows_of_halves_async halves_32 rows_of_halves_32;
    u32: words words_async rows_of_words rows_of_words_async words_32 rows_of_words_32;
}

/// `cuStreamWriteValue32` and `cuStreamWriteValue64`. `value` has 4 or 8 bytes.
unsafe fn write_value(handle: usize, address: u64, value: Vec<u8>, flags: c_uint) -> CallResult {
    let (_, stream) = stream::find_for_work(handle)?;
    if flags > 1 || !address.is_multiple_of(value.len() as u64) {
        return Err(CudaError::INVALID_VALUE);
    }
    memory::find(address, value.len() as u64)?;
    stream.enqueue(move || memory::write(address, &value));
    Ok(())
}

/// `cuStreamWriteValue32`
pub(crate) unsafe fn write_value_32(handle: usize, address: u64, value: u32, flags: c_uint) -> CallResult {
    // SAFETY: no argument is a pointer to memory of the host.
    unsafe { write_value(handle, address, value.to_le_bytes().to_vec(), flags) }
}

/// `cuStreamWriteValue64`
pub(crate) unsafe fn write_value_64(handle: usize, address: u64, value: u64, flags: c_uint) -> CallResult {
    // SAFETY: no argument is a pointer to memory of the host.
    unsafe { write_value(handle, address, value.to_le_bytes().to_vec(), flags) }
}
