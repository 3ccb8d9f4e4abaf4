//! Copies between the host, the device and arrays, as rows of bytes.

use std::ffi::c_uint;

use crate::array::{self, CudaArray};
use crate::board::MOST_PITCH;
use crate::context;
use crate::driver::{driver, ready};
use crate::handles::lock;
use crate::host::{exists, is_pinned};
use crate::memory;
use crate::queue;
use crate::status::{CallResult, CudaError};
use crate::stream;

/// The address of the first byte of a copy, either on the host or on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopySide {
    /// An address of the host.
    Host(usize),
    /// An address of the device.
    Device(u64),
}

impl CopySide {
    /// Returns the host address if `self` is a device address of mapped host memory. Otherwise returns `self`.
    fn of_host(self, count: usize) -> CopySide {
        match self {
            CopySide::Device(at) => memory::mapped(at, count).map_or(self, CopySide::Host),
            CopySide::Host(_) => self,
        }
    }
}

/// An end of a copy. The end is either the source or the destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyEnd {
    pub(crate) side: CopySide,
    /// Distance between the starts of two consecutive rows, in bytes.
    pub(crate) pitch: u64,
    /// Distance between the starts of two consecutive slices, in bytes.
    pub(crate) slice: u64,
}

impl CopyEnd {
    /// Returns an end that has a single row.
    pub(crate) fn row(side: CopySide) -> CopyEnd {
        CopyEnd { side, pitch: 0, slice: 0 }
    }

    /// Returns an end that starts `bytes` bytes after the start of this end.
    pub(crate) fn shifted(mut self, bytes: u64) -> Result<CopyEnd, CudaError> {
        self.side = match self.side {
            CopySide::Host(at) => {
                CopySide::Host(at.checked_add(bytes as usize).ok_or(CudaError::INVALID_VALUE)?)
            }
            CopySide::Device(at) => CopySide::Device(at.checked_add(bytes).ok_or(CudaError::INVALID_VALUE)?),
        };
        Ok(self)
    }
}

/// A copy of a block of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) to: CopyEnd,
    pub(crate) from: CopyEnd,
    /// Number of bytes per row.
    pub(crate) width: u64,
    /// Number of rows per slice.
    pub(crate) height: u64,
    /// Number of slices.
    pub(crate) depth: u64,
}

impl Copy {
    /// A copy of contiguous bytes.
    fn linear(to: CopySide, from: CopySide, bytes: usize) -> Copy {
        Copy { to: CopyEnd::row(to), from: CopyEnd::row(from), width: bytes as u64, height: 1, depth: 1 }
    }

    fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Returns the number of bytes from the first to the last byte of an end, including the gaps between rows.
    fn extent(&self, end: &CopyEnd) -> Result<u64, CudaError> {
        let rows = end.pitch.checked_mul(self.height - 1);
        let slices = end.slice.checked_mul(self.depth - 1);
        let sum =
            rows.zip(slices).and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(self.width));
        sum.ok_or(CudaError::INVALID_VALUE)
    }

    /// Checks that both ends lie within allocations, and that host addresses are not null.
    fn check(&self) -> CallResult {
        for end in [&self.to, &self.from] {
            let extent = self.extent(end)?;
            match end.side {
                CopySide::Host(at) => {
                    at.checked_add(extent as usize).filter(|_| at != 0).ok_or(CudaError::INVALID_VALUE)?;
                }
                CopySide::Device(at) => {
                    memory::find(at, extent)?;
                }
            }
        }
        Ok(())
    }

    /// Whether an end is host memory that is not pinned. The program may change unpinned memory as soon as the call
    /// returns.
    fn is_pageable(&self, end: &CopyEnd) -> bool {
        match end.side {
            CopySide::Host(at) => self.extent(end).is_ok_and(|extent| !is_pinned(at, extent as usize)),
            CopySide::Device(_) => false,
        }
    }

    /// Copies row after row.
    fn run(&self) -> CallResult {
        let contiguous = |end: &CopyEnd| end.pitch == self.width || self.height == 1;
        let (mut width, mut height) = (self.width, self.height);
        if contiguous(&self.to) && contiguous(&self.from) {
            (width, height) = (width * height, 1);
        }
        for slice in 0..self.depth {
            for row in 0..height {
                let start =
                    |end: &CopyEnd| end.shifted(slice * end.slice + row * end.pitch).map(|end| end.side);
                copy_row(start(&self.to)?, start(&self.from)?, width as usize)?;
            }
        }
        Ok(())
    }

    /// Copies the bytes of the source into a new list. The program may then change the source.
    fn staged(&self) -> Result<Vec<u8>, CudaError> {
        let mut bytes = vec![0; (self.width * self.height * self.depth) as usize];
        let to = CopyEnd {
            side: CopySide::Host(bytes.as_mut_ptr() as usize),
            pitch: self.width,
            slice: self.width * self.height,
        };
        Copy { to, ..*self }.run()?;
        Ok(bytes)
    }
}

fn copy_row(to: CopySide, from: CopySide, count: usize) -> CallResult {
    match (to.of_host(count), from.of_host(count)) {
        (CopySide::Host(to), CopySide::Host(from)) => {
            // SAFETY: the program ensures that both ranges are memory of the program. `copy_from` allows that the
            // ranges overlap.
            unsafe { (to as *mut u8).copy_from(from as *const u8, count) };
            Ok(())
        }
        (CopySide::Host(to), CopySide::Device(from)) => {
            // SAFETY: the program promises that this range is memory of the program.
            memory::read(from, unsafe { std::slice::from_raw_parts_mut(to as *mut u8, count) })
        }
        (CopySide::Device(to), CopySide::Host(from)) => {
            // SAFETY: the program promises that this range is memory of the program.
            memory::write(to, unsafe { std::slice::from_raw_parts(from as *const u8, count) })
        }
        (CopySide::Device(to), CopySide::Device(from)) => {
            let mut bytes = vec![0; count];
            memory::read(from, &mut bytes)?;
            memory::write(to, &bytes)
        }
    }
}

/// Enqueues a copy in the default stream and waits until the copy has ended.
pub(crate) fn now(copy: Copy) -> CallResult {
    let (context, stream) = stream::find_for_work(0)?;
    if copy.is_empty() {
        return Ok(());
    }
    copy.check()?;
    queue::wait(stream.enqueue(move || copy.run()));
    context.check()
}

/// Enqueues a copy in a stream. If the source is unpinned host memory, the call reads the source before the call
/// returns. If the destination is unpinned host memory, the call writes the destination before the call returns. (CUDA
/// driver API, "API synchronization behavior")
pub(crate) fn in_stream(copy: Copy, handle: usize) -> CallResult {
    let (context, stream) = stream::find_for_work(handle)?;
    if copy.is_empty() {
        return Ok(());
    }
    copy.check()?;
    let (to_pageable, from_pageable) = (copy.is_pageable(&copy.to), copy.is_pageable(&copy.from));
    if from_pageable && !to_pageable && !queue::is_reached(stream.last()) {
        let bytes = copy.staged()?;
        stream.enqueue(move || {
            let side = CopySide::Host(bytes.as_ptr() as usize);
            let from = CopyEnd { side, pitch: copy.width, slice: copy.width * copy.height };
            Copy { from, ..copy }.run()
        });
        return Ok(());
    }
    let end = stream.enqueue(move || copy.run());
    if to_pageable || from_pageable {
        queue::wait(end);
        return context.check();
    }
    Ok(())
}

/// Returns the address and whether the address belongs to the host or to the device.
///
/// # Errors
/// Returns an error if neither an allocation of the device nor a page of the host contains the address. For example,
/// the program may have freed the memory at the address.
fn any(address: u64) -> Result<CopySide, CudaError> {
    if lock(&driver()?.addresses).find(address, 1).is_some() {
        return Ok(CopySide::Device(address));
    }
    let is_host = address != 0 && exists(address as usize, 1);
    if is_host { Ok(CopySide::Host(address as usize)) } else { Err(CudaError::INVALID_VALUE) }
}

/// `cuMemcpyHtoD`
pub(crate) unsafe fn to_device(to: u64, from: usize, bytes: usize) -> CallResult {
    now(Copy::linear(CopySide::Device(to), CopySide::Host(from), bytes))
}

/// `cuMemcpyDtoH`
pub(crate) unsafe fn to_host(to: usize, from: u64, bytes: usize) -> CallResult {
    now(Copy::linear(CopySide::Host(to), CopySide::Device(from), bytes))
}

/// `cuMemcpyDtoD`
pub(crate) unsafe fn on_device(to: u64, from: u64, bytes: usize) -> CallResult {
    now(Copy::linear(CopySide::Device(to), CopySide::Device(from), bytes))
}

/// `cuMemcpyHtoDAsync`
pub(crate) unsafe fn to_device_async(to: u64, from: usize, bytes: usize, stream: usize) -> CallResult {
    in_stream(Copy::linear(CopySide::Device(to), CopySide::Host(from), bytes), stream)
}

/// `cuMemcpyDtoHAsync`
pub(crate) unsafe fn to_host_async(to: usize, from: u64, bytes: usize, stream: usize) -> CallResult {
    in_stream(Copy::linear(CopySide::Host(to), CopySide::Device(from), bytes), stream)
}

/// `cuMemcpyDtoDAsync`
pub(crate) unsafe fn on_device_async(to: u64, from: u64, bytes: usize, stream: usize) -> CallResult {
    in_stream(Copy::linear(CopySide::Device(to), CopySide::Device(from), bytes), stream)
}

/// `cuMemcpyHtoD` of CUDA 3.1 and earlier. In this file, all functions whose names end in `_32` are from CUDA 3.1 and
/// earlier.
pub(crate) unsafe fn to_device_32(to: u32, from: usize, bytes: u32) -> CallResult {
    now(Copy::linear(CopySide::Device(to.into()), CopySide::Host(from), bytes as usize))
}

/// `cuMemcpyDtoH`
pub(crate) unsafe fn to_host_32(to: usize, from: u32, bytes: u32) -> CallResult {
    now(Copy::linear(CopySide::Host(to), CopySide::Device(from.into()), bytes as usize))
}

/// `cuMemcpyDtoD`
pub(crate) unsafe fn on_device_32(to: u32, from: u32, bytes: u32) -> CallResult {
    now(Copy::linear(CopySide::Device(to.into()), CopySide::Device(from.into()), bytes as usize))
}

/// `cuMemcpyHtoDAsync`
pub(crate) unsafe fn to_device_async_32(to: u32, from: usize, bytes: u32, stream: usize) -> CallResult {
    in_stream(Copy::linear(CopySide::Device(to.into()), CopySide::Host(from), bytes as usize), stream)
}

/// `cuMemcpyDtoHAsync`
pub(crate) unsafe fn to_host_async_32(to: usize, from: u32, bytes: u32, stream: usize) -> CallResult {
    in_stream(Copy::linear(CopySide::Host(to), CopySide::Device(from.into()), bytes as usize), stream)
}

/// `cuMemcpyDtoDAsync`
pub(crate) unsafe fn on_device_async_32(to: u32, from: u32, bytes: u32, stream: usize) -> CallResult {
    in_stream(
        Copy::linear(CopySide::Device(to.into()), CopySide::Device(from.into()), bytes as usize),
        stream,
    )
}

/// `cuMemcpy`. An address inside an allocation is a device address. Any other address is a host address.
pub(crate) unsafe fn anywhere(to: u64, from: u64, bytes: usize) -> CallResult {
    if bytes == 0 {
        return stream::find_for_work(0).map(|_| ());
    }
    now(Copy::linear(any(to)?, any(from)?, bytes))
}

/// `cuMemcpyAsync`
pub(crate) unsafe fn anywhere_async(to: u64, from: u64, bytes: usize, stream: usize) -> CallResult {
    if bytes == 0 {
        return stream::find_for_work(stream).map(|_| ());
    }
    in_stream(Copy::linear(any(to)?, any(from)?, bytes), stream)
}

/// Checks that the allocation at an address belongs to a context.
fn check_owner(address: u64, context: usize) -> CallResult {
    context::of(context).map_err(|_| CudaError::INVALID_CONTEXT)?;
    if memory::find(address, 1)?.context == context { Ok(()) } else { Err(CudaError::INVALID_VALUE) }
}

/// `cuMemcpyPeer`
pub(crate) unsafe fn peer(
    to: u64,
    to_context: usize,
    from: u64,
    from_context: usize,
    bytes: usize,
) -> CallResult {
    check_owner(to, to_context)?;
    check_owner(from, from_context)?;
    now(Copy::linear(CopySide::Device(to), CopySide::Device(from), bytes))
}

/// `cuMemcpyPeerAsync`
pub(crate) unsafe fn peer_async(
    to: u64,
    to_context: usize,
    from: u64,
    from_context: usize,
    bytes: usize,
    stream: usize,
) -> CallResult {
    check_owner(to, to_context)?;
    check_owner(from, from_context)?;
    in_stream(Copy::linear(CopySide::Device(to), CopySide::Device(from), bytes), stream)
}

/// An end of `CUDA_MEMCPY2D`. The fields are, in order: x in bytes, y, the type of memory, the host address, the device
/// address, the array, and the pitch.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct End2 {
    x: usize,
    y: usize,
    kind: c_uint,
    host: usize,
    device: u64,
    array: usize,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Copy2 {
    from: End2,
    to: End2,
    width: usize,
    height: usize,
}

/// An end of `CUDA_MEMCPY3D`. The structure has the fields of [`End2`] and three more fields: z, the level of detail,
/// and the number of rows per slice.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct End3 {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: c_uint,
    host: usize,
    device: u64,
    array: usize,
    context: usize,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D` or `CUDA_MEMCPY3D_PEER`. Pointers that are reserved in the first structure are contexts in the
/// second structure.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Copy3 {
    from: End3,
    to: End3,
    width: usize,
    height: usize,
    depth: usize,
}

/// Returns an end of a copy. This end starts at the first texel of an array.
fn of_array(array: &CudaArray) -> CopyEnd {
    let (pitch, height) = (array.pitch() as u64, array.extent()[1] as u64);
    CopyEnd { side: CopySide::Device(array.address.into()), pitch, slice: pitch * height }
}

/// Returns an end of a copy from the fields of the program's structure. `size` is the size of the copied block in
/// bytes, rows and slices.
fn end(end: &End3, size: [usize; 3]) -> Result<CopyEnd, CudaError> {
    let [width, height, depth] = size;
    let found = match end.kind {
        // CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED
        1 | 2 | 4 => {
            let side = match end.kind {
                1 if end.host == 0 => return Err(CudaError::INVALID_VALUE),
                1 => CopySide::Host(end.host),
                2 => CopySide::Device(end.device),
                _ => any(end.device)?,
            };
            let row = end.x.checked_add(width).ok_or(CudaError::INVALID_VALUE)?;
            // A pitch of 0 means that there is no gap between rows.
            let pitch = if end.pitch == 0 { row } else { end.pitch };
            if pitch < row || pitch as u64 > MOST_PITCH {
                return Err(CudaError::INVALID_VALUE);
            }
            let least = end.y.checked_add(height).ok_or(CudaError::INVALID_VALUE)?;
            let rows = if end.height == 0 { least } else { end.height };
            if depth > 1 && rows < least {
                return Err(CudaError::INVALID_VALUE);
            }
            let slice = (pitch as u64).checked_mul(rows as u64).ok_or(CudaError::INVALID_VALUE)?;
            CopyEnd { side, pitch: pitch as u64, slice }
        }
        // CU_MEMORYTYPE_ARRAY
        3 => {
            let array = ready(&array::ARRAYS)?.get(end.array).ok_or(CudaError::INVALID_HANDLE)?;
            if !array.contains([end.x, end.y, end.z], size) {
                return Err(CudaError::INVALID_VALUE);
            }
            of_array(&array)
        }
        _ => return Err(CudaError::INVALID_VALUE),
    };
    let rows = (end.y as u64).checked_mul(found.pitch);
    let slices = (end.z as u64).checked_mul(found.slice);
    let start =
        rows.zip(slices).and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(end.x as u64));
    found.shifted(start.ok_or(CudaError::INVALID_VALUE)?)
}

fn of_block(copy: &Copy3) -> Result<Copy, CudaError> {
    let size = [copy.width, copy.height, copy.depth];
    if copy.from.level != 0 || copy.to.level != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    Ok(Copy {
        to: end(&copy.to, size)?,
        from: end(&copy.from, size)?,
        width: copy.width as u64,
        height: copy.height as u64,
        depth: copy.depth as u64,
    })
}

fn of_rows(copy: &Copy2) -> Result<Copy, CudaError> {
    let end = |end: &End2| End3 {
        x: end.x,
        y: end.y,
        z: 0,
        level: 0,
        kind: end.kind,
        host: end.host,
        device: end.device,
        array: end.array,
        context: 0,
        pitch: end.pitch,
        height: 0,
    };
    let (from, to) = (end(&copy.from), end(&copy.to));
    of_block(&Copy3 { from, to, width: copy.width, height: copy.height, depth: 1 })
}

/// Reads a structure of the caller. The address need not be aligned.
///
/// # Safety
/// The address must be null or the address of a `T`.
unsafe fn structure<T: std::marker::Copy>(at: *const T) -> Result<T, CudaError> {
    context::usable()?;
    // SAFETY: the address is not null, so the caller has passed the address of a `T`.
    if at.is_null() { Err(CudaError::INVALID_VALUE) } else { Ok(unsafe { at.read_unaligned() }) }
}

/// `cuMemcpy2D`, `cuMemcpy2DUnaligned`
pub(crate) unsafe fn rows(copy: *const Copy2) -> CallResult {
    // SAFETY: the caller passes null or a pointer to a valid structure.
    now(of_rows(&unsafe { structure(copy) }?)?)
}

/// `cuMemcpy2DAsync`
pub(crate) unsafe fn rows_async(copy: *const Copy2, stream: usize) -> CallResult {
    // SAFETY: the caller passes null or a pointer to a valid structure.
    in_stream(of_rows(&unsafe { structure(copy) }?)?, stream)
}

/// `cuMemcpy3D`, `cuMemcpy3DPeer`
pub(crate) unsafe fn block(copy: *const Copy3) -> CallResult {
    // SAFETY: the caller passes null or a pointer to a valid structure.
    now(of_block(&unsafe { structure(copy) }?)?)
}

/// `cuMemcpy3DAsync`, `cuMemcpy3DPeerAsync`
pub(crate) unsafe fn block_async(copy: *const Copy3, stream: usize) -> CallResult {
    // SAFETY: the caller passes null or a pointer to a valid structure.
    in_stream(of_block(&unsafe { structure(copy) }?)?, stream)
}

/// Returns the address of a range of bytes in a one-dimensional array.
fn in_array(array: usize, offset: usize, bytes: usize) -> Result<CopySide, CudaError> {
    let array = ready(&array::ARRAYS)?.get(array).ok_or(CudaError::INVALID_HANDLE)?;
    if !array.is_row() || !array.contains([offset, 0, 0], [bytes, 1, 1]) {
        return Err(CudaError::INVALID_VALUE);
    }
    Ok(of_array(&array).shifted(offset as u64)?.side)
}

/// `cuMemcpyHtoA`
pub(crate) unsafe fn host_to_array(array: usize, offset: usize, from: usize, bytes: usize) -> CallResult {
    now(Copy::linear(in_array(array, offset, bytes)?, CopySide::Host(from), bytes))
}

/// `cuMemcpyHtoAAsync`
pub(crate) unsafe fn host_to_array_async(
    array: usize,
    offset: usize,
    from: usize,
    bytes: usize,
    stream: usize,
) -> CallResult {
    in_stream(Copy::linear(in_array(array, offset, bytes)?, CopySide::Host(from), bytes), stream)
}

/// `cuMemcpyAtoH`
pub(crate) unsafe fn array_to_host(to: usize, array: usize, offset: usize, bytes: usize) -> CallResult {
    now(Copy::linear(CopySide::Host(to), in_array(array, offset, bytes)?, bytes))
}

/// `cuMemcpyAtoHAsync`
pub(crate) unsafe fn array_to_host_async(
    to: usize,
    array: usize,
    offset: usize,
    bytes: usize,
    stream: usize,
) -> CallResult {
    in_stream(Copy::linear(CopySide::Host(to), in_array(array, offset, bytes)?, bytes), stream)
}

/// `cuMemcpyDtoA`
pub(crate) unsafe fn device_to_array(array: usize, offset: usize, from: u64, bytes: usize) -> CallResult {
    now(Copy::linear(in_array(array, offset, bytes)?, CopySide::Device(from), bytes))
}

/// `cuMemcpyAtoD`
pub(crate) unsafe fn array_to_device(to: u64, array: usize, offset: usize, bytes: usize) -> CallResult {
    now(Copy::linear(CopySide::Device(to), in_array(array, offset, bytes)?, bytes))
}

/// `cuMemcpyAtoA`
pub(crate) unsafe fn array_to_array(
    to: usize,
    to_offset: usize,
    from: usize,
    from_offset: usize,
    bytes: usize,
) -> CallResult {
    now(Copy::linear(in_array(to, to_offset, bytes)?, in_array(from, from_offset, bytes)?, bytes))
}
