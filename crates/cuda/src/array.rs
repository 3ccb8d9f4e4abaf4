//! Arrays. An array is a block of texels. The program gets a handle of an array, but not the address of the texels.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use crate::addresses::AllocationKind;
use crate::call::give;
use crate::context;
use crate::driver::ready;
use crate::handles::{Handles, fresh};
use crate::memory;
use crate::queue;
use crate::status::{CallResult, CudaError};

/// The number format of one channel of a texel. (`CUarray_format`)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelFormat {
    Unsigned(u32),
    Signed(u32),
    Half,
    Float,
}

impl ChannelFormat {
    /// Returns the format for a value of `CUarray_format`.
    pub(crate) fn of(number: c_int) -> Result<ChannelFormat, CudaError> {
        Ok(match number {
            1..=3 => ChannelFormat::Unsigned(1 << (number - 1)),
            8..=10 => ChannelFormat::Signed(1 << (number - 8)),
            0x10 => ChannelFormat::Half,
            0x20 => ChannelFormat::Float,
            _ => return Err(CudaError::INVALID_VALUE),
        })
    }

    /// Size of a channel in bytes.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            ChannelFormat::Unsigned(bytes) | ChannelFormat::Signed(bytes) => bytes,
            ChannelFormat::Half => 2,
            ChannelFormat::Float => 4,
        }
    }
}

/// The format of a texel. The format consists of the number format of the channels and the number of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Texel {
    pub(crate) number: c_int,
    pub(crate) format: ChannelFormat,
    pub(crate) channels: u32,
}

impl Texel {
    /// Returns a texel format with 1, 2 or 4 channels.
    pub(crate) fn new(number: c_int, channels: c_uint) -> Result<Texel, CudaError> {
        if !matches!(channels, 1 | 2 | 4) {
            return Err(CudaError::INVALID_VALUE);
        }
        Ok(Texel { number, format: ChannelFormat::of(number)?, channels })
    }

    pub(crate) fn bytes(self) -> u32 {
        self.format.bytes() * self.channels
    }
}

/// An array of a context.
#[derive(Debug)]
pub(crate) struct CudaArray {
    pub(crate) handle: usize,
    pub(crate) context: usize,
    pub(crate) address: u32,
    /// Number of texels in x, y and z. The number is 0 in a dimension that the array does not have.
    pub(crate) size: [usize; 3],
    pub(crate) texel: Texel,
    flags: c_uint,
}

impl CudaArray {
    /// Number of texels in x, y and z. A dimension that the array does not have counts as 1.
    pub(crate) fn extent(&self) -> [usize; 3] {
        self.size.map(|size| size.max(1))
    }

    /// Distance between the starts of two consecutive rows, in bytes.
    pub(crate) fn pitch(&self) -> usize {
        self.size[0] * self.texel.bytes() as usize
    }

    /// Whether a block lies inside the array. `start` and `size` are in bytes, rows and slices.
    pub(crate) fn contains(&self, start: [usize; 3], size: [usize; 3]) -> bool {
        let [_, height, depth] = self.extent();
        let most = [self.pitch(), height, depth];
        let whole = [start[0], size[0]].iter().all(|bytes| bytes.is_multiple_of(self.texel.bytes() as usize));
        whole && (0..3).all(|axis| start[axis].checked_add(size[axis]).is_some_and(|end| end <= most[axis]))
    }

    /// Whether the array has one dimension.
    pub(crate) fn is_row(&self) -> bool {
        self.size[1] == 0
    }
}

/// The arrays of all contexts.
pub(crate) static ARRAYS: Handles<CudaArray> = Handles::new();

/// Removes the arrays of a context that ends.
pub(crate) fn end_of_context(context: usize) {
    ARRAYS.retain(|array| array.context != context);
}

/// `CUDA_ARRAY_DESCRIPTOR`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Descriptor {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) format: c_int,
    pub(crate) channels: c_uint,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Descriptor3 {
    width: usize,
    height: usize,
    depth: usize,
    format: c_int,
    channels: c_uint,
    flags: c_uint,
}

/// `cuArrayCreate`
pub(crate) unsafe fn create(to: *mut usize, descriptor: *const Descriptor) -> CallResult {
    context::usable()?;
    // SAFETY: the caller passes null or a pointer to a valid structure.
    let Some(&Descriptor { width, height, format, channels }) = (unsafe { descriptor.as_ref() }) else {
        return Err(CudaError::INVALID_VALUE);
    };
    let descriptor = Descriptor3 { width, height, depth: 0, format, channels, flags: 0 };
    // SAFETY: the caller passes null or a valid pointer, and the structure is local.
    unsafe { create_3(to, &raw const descriptor) }
}

/// `cuArray3DCreate`. Flags for layers, faces, surfaces and gathers are not supported.
pub(crate) unsafe fn create_3(to: *mut usize, descriptor: *const Descriptor3) -> CallResult {
    let context = context::usable()?;
    // SAFETY: the caller passes null or a pointer to a valid structure.
    let descriptor = *unsafe { descriptor.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    let Descriptor3 { width, height, depth, format, channels, flags } = descriptor;
    let texel = Texel::new(format, channels)?;
    // Limits of textures with one, two and three dimensions. (CUDA C Programming Guide 4.2, table F-2)
    let most = match (height, depth) {
        (0, 0) => [8192, 0, 0],
        (_, 0) => [65536, 32768, 0],
        _ => [2048; 3],
    };
    let size = [width, height, depth];
    if to.is_null()
        || width == 0
        || height == 0 && depth > 0
        || size.iter().zip(most).any(|(size, most)| *size > most)
    {
        return Err(CudaError::INVALID_VALUE);
    }
    if flags != 0 {
        return Err(CudaError::NOT_SUPPORTED);
    }
    let bytes: u64 = size.iter().map(|size| *size.max(&1) as u64).product::<u64>() * u64::from(texel.bytes());
    let address = memory::place(&context, bytes, AllocationKind::Array)?.address;
    let array = CudaArray { handle: fresh(), context: context.handle, address, size, texel, flags };
    let handle = array.handle;
    ready(&ARRAYS)?.insert(handle, Arc::new(array));
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, handle) }
}

fn find(handle: usize) -> Result<Arc<CudaArray>, CudaError> {
    context::current()?;
    ready(&ARRAYS)?.get(handle).ok_or(CudaError::INVALID_HANDLE)
}

/// `cuArrayGetDescriptor`
pub(crate) unsafe fn descriptor(to: *mut Descriptor, handle: usize) -> CallResult {
    let array = find(handle)?;
    let [width, height, _] = array.size;
    let Texel { number: format, channels, .. } = array.texel;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, Descriptor { width, height, format, channels }) }
}

/// `cuArray3DGetDescriptor`
pub(crate) unsafe fn descriptor_3(to: *mut Descriptor3, handle: usize) -> CallResult {
    let array = find(handle)?;
    let [width, height, depth] = array.size;
    let Texel { number: format, channels, .. } = array.texel;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, Descriptor3 { width, height, depth, format, channels, flags: array.flags }) }
}

/// `cuArrayDestroy`
pub(crate) unsafe fn destroy(handle: usize) -> CallResult {
    let array = find(handle)?;
    queue::wait_for_context(array.context);
    ready(&ARRAYS)?.remove(array.handle);
    memory::free_kind(array.address.into(), |kind| kind == AllocationKind::Array).map(|_| ())
}
