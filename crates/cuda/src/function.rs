//! Kernels: launches, attributes, occupancy.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use reconverge_tesla::launch::PARAMETERS;

use crate::board::{MOST_BLOCK, MOST_GRID, MOST_THREADS, SHARED};
use crate::call::{give, lasting, offer};
use crate::context::{self, CudaContext};
use crate::device;
use crate::driver::{driver, ready, started};
use crate::handles::lock;
use crate::launch::{self, Sizes};
use crate::library;
use crate::messages::say_once;
use crate::module::{self, Function, most_dynamic};
use crate::parameters;
use crate::status::{CallResult, CudaError};
use crate::stream;
use crate::texture;

/// Returns the kernel that has the handle `handle`. The handle may belong to a kernel of a library. In this case,
/// returns the function of this kernel in the current context.
pub(crate) fn find(handle: usize) -> Result<Arc<Function>, CudaError> {
    driver()?;
    if let Some(function) = module::FUNCTIONS.get(handle) {
        return Ok(function);
    }
    let kernel = library::KERNELS.get(handle).ok_or(CudaError::INVALID_HANDLE)?;
    library::function_of(&kernel)
}

/// Checks the sizes of a launch. (CUDA C Programming Guide 4.2, table F-2)
fn check(
    function: &Function,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic: u32,
    parameters: usize,
) -> CallResult {
    let within = |sizes: [u32; 3], most: [u32; 3]| {
        sizes.iter().zip(most).all(|(size, most)| (1..=most).contains(size))
    };
    let threads: u64 = block.iter().map(|size| u64::from(*size)).product();
    if !within(grid, MOST_GRID) || !within(block, MOST_BLOCK) || threads > MOST_THREADS.into() {
        return Err(CudaError::INVALID_VALUE);
    }
    let shared =
        u64::from(function.shared).max(u64::from(PARAMETERS) + parameters as u64) + u64::from(dynamic);
    if shared > SHARED.into() {
        return Err(CudaError::INVALID_VALUE);
    }
    if !driver()?.board.has_registers(threads as u32, function.registers) || parameters > parameters::MOST {
        return Err(CudaError::LAUNCH_OUT_OF_RESOURCES);
    }
    Ok(())
}

fn launch(
    function: Arc<Function>,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    stream: usize,
    parameters: impl FnOnce(&Function) -> Result<Vec<u8>, CudaError>,
) -> CallResult {
    let (context, stream) = stream::find_for_work(stream)?;
    if function.context != context.handle {
        return Err(CudaError::INVALID_HANDLE);
    }
    check(&function, grid, block, dynamic_shared, 0)?;
    let parameters = parameters(&function)?;
    check(&function, grid, block, dynamic_shared, parameters.len())?;
    let sizes = Sizes { grid: [grid[0], grid[1]], block, dynamic_shared };
    stream.enqueue(move || run(&context, &function, &sizes, parameters));
    Ok(())
}

/// Runs a kernel. The memory of the context is locked during the run.
fn run(context: &CudaContext, function: &Function, sizes: &Sizes, parameters: Vec<u8>) -> CallResult {
    let mut memory = lock(&context.memory);
    let textures = texture::bound(&function.textures, &memory);
    let mapped = lock(&started()?.addresses).mapped(context.handle);
    let Function { prepared, name, .. } = function;
    launch::run(prepared, name, sizes, parameters, textures, mapped, &mut memory)
}

/// `cuLaunchKernel`
#[allow(clippy::too_many_arguments, reason = "as CUDA declares it")]
pub(crate) unsafe fn launch_kernel(
    handle: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: usize,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> CallResult {
    context::usable()?;
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    launch(find(handle)?, grid, block, shared, stream, |function| {
        // SAFETY: the caller passes null or the lists that `cuLaunchKernel` documents.
        unsafe { function.layout.collect(parameters, extra) }
    })
}

/// `cuLaunchCooperativeKernel`. This call is not supported, because chips of this generation have no cooperative launches.
#[allow(clippy::too_many_arguments, reason = "as CUDA declares it")]
pub(crate) unsafe fn launch_cooperative(
    handle: usize,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: usize,
    _: *const *const c_void,
) -> CallResult {
    context::usable()?;
    find(handle)?;
    Err(CudaError::NOT_SUPPORTED)
}

/// `CUlaunchConfig`
#[repr(C)]
pub(crate) struct Configuration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: usize,
    attributes: *const Attribute,
    count: c_uint,
}

/// `CUlaunchAttribute`: the number of an attribute, and a value of 64 bytes.
#[repr(C)]
pub(crate) struct Attribute {
    number: c_int,
    padding: c_uint,
    value: [u32; 16],
}

/// Checks an attribute of a launch. (`CUlaunchAttributeID`)
fn check_attribute(attribute: &Attribute) -> CallResult {
    let Attribute { number, value, .. } = attribute;
    match number {
        // These attributes do not affect results: ignored entries, cache window, synchronization policy, priority,
        // memory domains, carveout.
        0 | 1 | 3 | 8 | 9 | 10 | 14 => Ok(()),
        // These attributes enable cooperative launches and overlapping launches. The only valid value is 0, which
        // disables these launches.
        2 | 6 if value[0] == 0 => Ok(()),
        // Clusters are valid if each cluster consists of one block.
        4 | 11 if value[..3].iter().all(|size| *size <= 1) => Ok(()),
        _ => {
            say_once(&format!(
                "cuLaunchKernelEx: attribute {number} is not supported on chips of this generation"
            ));
            Err(CudaError::NOT_SUPPORTED)
        }
    }
}

/// `cuLaunchKernelEx`
pub(crate) unsafe fn launch_configured(
    configuration: *const Configuration,
    handle: usize,
    parameters: *const *const c_void,
    extra: *const *const c_void,
) -> CallResult {
    context::usable()?;
    // SAFETY: the caller passes null or a pointer to a valid structure.
    let configuration = unsafe { configuration.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    if configuration.count > 0 && configuration.attributes.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    for index in 0..configuration.count as usize {
        // SAFETY: the caller's array has as many elements as the structure states.
        check_attribute(unsafe { &*configuration.attributes.add(index) })?;
    }
    let Configuration { grid, block, shared, stream, .. } = *configuration;
    launch(find(handle)?, grid, block, shared, stream, |function| {
        // SAFETY: the caller passes null or the lists that `cuLaunchKernel` documents.
        unsafe { function.layout.collect(parameters, extra) }
    })
}

/// `cuFuncSetBlockShape`
pub(crate) unsafe fn set_block(handle: usize, x: c_int, y: c_int, z: c_int) -> CallResult {
    context::usable()?;
    let function = find(handle)?;
    let block = [x, y, z].map(|size| u32::try_from(size).unwrap_or(0));
    check(&function, [1; 3], block, 0, 0)?;
    lock(&function.old).block = Some(block);
    Ok(())
}

/// `cuFuncSetSharedSize`
pub(crate) unsafe fn set_shared(handle: usize, bytes: c_uint) -> CallResult {
    context::usable()?;
    let function = find(handle)?;
    if bytes > SHARED {
        return Err(CudaError::INVALID_VALUE);
    }
    lock(&function.old).shared = bytes;
    Ok(())
}

/// `cuParamSetSize`
pub(crate) unsafe fn set_parameter_size(handle: usize, bytes: c_uint) -> CallResult {
    context::usable()?;
    let function = find(handle)?;
    if bytes as usize > parameters::MOST {
        return Err(CudaError::INVALID_VALUE);
    }
    lock(&function.old).size = bytes as usize;
    Ok(())
}

fn set_bytes(handle: usize, offset: c_int, bytes: &[u8]) -> CallResult {
    context::usable()?;
    let function = find(handle)?;
    let start = usize::try_from(offset).map_err(|_| CudaError::INVALID_VALUE)?;
    let end = start
        .checked_add(bytes.len())
        .filter(|end| *end <= parameters::MOST)
        .ok_or(CudaError::INVALID_VALUE)?;
    let area = &mut lock(&function.old).parameters;
    area.resize(area.len().max(end), 0);
    area[start..end].copy_from_slice(bytes);
    Ok(())
}

/// `cuParamSeti`
pub(crate) unsafe fn set_word(handle: usize, offset: c_int, value: c_uint) -> CallResult {
    set_bytes(handle, offset, &value.to_le_bytes())
}

/// `cuParamSetf`
pub(crate) unsafe fn set_float(handle: usize, offset: c_int, value: f32) -> CallResult {
    set_bytes(handle, offset, &value.to_le_bytes())
}

/// `cuParamSetv`
pub(crate) unsafe fn set_value(handle: usize, offset: c_int, from: *const u8, bytes: c_uint) -> CallResult {
    if from.is_null() || bytes as usize > parameters::MOST {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes the address of `bytes` bytes.
    set_bytes(handle, offset, unsafe { std::slice::from_raw_parts(from, bytes as usize) })
}

/// `cuLaunchGridAsync`
pub(crate) unsafe fn launch_grid_async(
    handle: usize,
    width: c_int,
    height: c_int,
    stream: usize,
) -> CallResult {
    context::usable()?;
    let function = find(handle)?;
    let old = lock(&function.old).clone();
    let block = old.block.ok_or(CudaError::INVALID_VALUE)?;
    let [width, height] = [width, height].map(|size| u32::try_from(size).unwrap_or(0));
    let mut area = old.parameters;
    area.resize(old.size, 0);
    launch(function, [width, height, 1], block, old.shared, stream, |_| Ok(area))
}

/// `cuLaunchGrid`
pub(crate) unsafe fn launch_grid(handle: usize, width: c_int, height: c_int) -> CallResult {
    // SAFETY: no argument is a pointer to memory of the host.
    unsafe { launch_grid_async(handle, width, height, 0) }
}

/// `cuLaunch`
pub(crate) unsafe fn launch_one(handle: usize) -> CallResult {
    // SAFETY: no argument is a pointer to memory of the host.
    unsafe { launch_grid_async(handle, 1, 1, 0) }
}

/// Returns an attribute of a kernel. (`CUfunction_attribute`)
fn attribute(function: &Function, number: c_int) -> Result<c_int, CudaError> {
    Ok(match number {
        0 => driver()?.board.most_threads(function.registers) as c_int,
        1 => function.shared as c_int,
        2 => function.constant as c_int,
        3 => function.local as c_int,
        4 => function.registers as c_int,
        // The PTX version and the binary version, as 10 * major + minor.
        5 | 6 => 10 + function.minor as c_int,
        8 => most_dynamic(function) as c_int,
        9 => -1,
        // Only later chips have these features: caching of global memory, clusters, updates by the device, modes of
        // shared memory.
        7 | 10..=17 => 0,
        _ => return Err(CudaError::INVALID_VALUE),
    })
}

/// `cuFuncGetAttribute`
pub(crate) unsafe fn get_attribute(value: *mut c_int, number: c_int, handle: usize) -> CallResult {
    let function = find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(value, attribute(&function, number)?) }
}

/// `cuFuncSetAttribute`. Programs can set the maximum dynamic shared memory. Programs can also set the preferred split
/// between caches, but this setting has no effect.
pub(crate) unsafe fn set_attribute(handle: usize, number: c_int, value: c_int) -> CallResult {
    let function = find(handle)?;
    match number {
        8 => {
            let most = SHARED.saturating_sub(function.shared);
            let value =
                u32::try_from(value).ok().filter(|value| *value <= most).ok_or(CudaError::INVALID_VALUE)?;
            *lock(&function.most_dynamic) = Some(value);
            Ok(())
        }
        9 if (-1..=100).contains(&value) => Ok(()),
        _ => Err(CudaError::INVALID_VALUE),
    }
}

/// `cuFuncSetCacheConfig`. The preference has no effect.
pub(crate) unsafe fn set_cache_config(handle: usize, config: c_uint) -> CallResult {
    context::current()?;
    find(handle)?;
    if config > 3 { Err(CudaError::INVALID_VALUE) } else { Ok(()) }
}

/// `cuFuncSetSharedMemConfig`. The preference has no effect.
pub(crate) unsafe fn set_shared_config(handle: usize, config: c_uint) -> CallResult {
    context::current()?;
    find(handle)?;
    if config > 2 { Err(CudaError::INVALID_VALUE) } else { Ok(()) }
}

/// `cuFuncGetModule`
pub(crate) unsafe fn get_module(to: *mut usize, handle: usize) -> CallResult {
    let function = find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, function.module) }
}

/// `cuFuncGetName`
pub(crate) unsafe fn get_name(to: *mut *const c_char, handle: usize) -> CallResult {
    let function = find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, lasting(&function.name)) }
}

/// `cuFuncIsLoaded`
pub(crate) unsafe fn is_loaded(to: *mut c_int, handle: usize) -> CallResult {
    find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, 1) }
}

/// `cuFuncLoad`
pub(crate) unsafe fn load(handle: usize) -> CallResult {
    find(handle).map(|_| ())
}

/// Stores the offset and the size of a parameter.
pub(crate) unsafe fn parameter(
    function: &Function,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> CallResult {
    let list = function.layout.list().ok_or(CudaError::NOT_SUPPORTED)?;
    let found = list.get(index).ok_or(CudaError::INVALID_VALUE)?;
    if offset.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        give(offset, found.offset as usize)?;
        offer(bytes, found.bytes as usize);
    }
    Ok(())
}

/// `cuFuncGetParamInfo`
pub(crate) unsafe fn get_parameter(
    handle: usize,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> CallResult {
    // SAFETY: the caller passes null or valid pointers.
    unsafe { parameter(&*find(handle)?, index, offset, bytes) }
}

/// `cuFuncGetParamCount`
pub(crate) unsafe fn get_parameter_count(handle: usize, count: *mut usize) -> CallResult {
    let function = find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(count, function.layout.list().ok_or(CudaError::NOT_SUPPORTED)?.len()) }
}

/// Returns the number of bytes of shared memory that a block uses, except for the dynamic shared memory.
fn fixed_shared(function: &Function) -> u64 {
    u64::from(function.shared).max(u64::from(PARAMETERS) + function.layout.bytes() as u64)
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessor`
pub(crate) unsafe fn active_blocks(
    blocks: *mut c_int,
    handle: usize,
    threads: c_int,
    dynamic: usize,
) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { active_blocks_with_flags(blocks, handle, threads, dynamic, 0) }
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`
pub(crate) unsafe fn active_blocks_with_flags(
    blocks: *mut c_int,
    handle: usize,
    threads: c_int,
    dynamic: usize,
    flags: c_uint,
) -> CallResult {
    let function = find(handle)?;
    let threads =
        u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(CudaError::INVALID_VALUE)?;
    if flags > 1 {
        return Err(CudaError::INVALID_VALUE);
    }
    let shared = fixed_shared(&function).saturating_add(dynamic as u64);
    let found = driver()?.board.resident_blocks(threads, function.registers, shared);
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(blocks, found as c_int) }
}

/// `CUoccupancyB2DSize`: returns the number of bytes of dynamic shared memory for a number of threads.
pub(crate) type DynamicSize = Option<unsafe extern "C" fn(c_int) -> usize>;

/// `cuOccupancyMaxPotentialBlockSize`
pub(crate) unsafe fn best_block(
    grid: *mut c_int,
    block: *mut c_int,
    handle: usize,
    dynamic_of: DynamicSize,
    dynamic: usize,
    limit: c_int,
) -> CallResult {
    let function = find(handle)?;
    if grid.is_null() || block.is_null() || limit < 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    let board = driver()?.board;
    let most = match limit {
        0 => MOST_THREADS,
        limit => (limit as u32).min(MOST_THREADS),
    };
    // The first candidate is the limit `most`. The further candidates are all multiples of the warp size, from the
    // largest to the smallest. The loop chooses the first candidate with the most resident threads.
    let sizes = [most].into_iter().chain((1..=most / 32).rev().map(|warps| 32 * warps));
    let mut best = (0, 0, 0);
    for threads in sizes {
        let dynamic = match dynamic_of {
            // SAFETY: the program has passed this function for this call.
            Some(of) => unsafe { of(threads as c_int) },
            None => dynamic,
        };
        let shared = fixed_shared(&function).saturating_add(dynamic as u64);
        let blocks = board.resident_blocks(threads, function.registers, shared);
        if blocks * threads > best.0 {
            best = (blocks * threads, blocks, threads);
        }
    }
    let (_, blocks, threads) = best;
    if blocks == 0 {
        return Err(CudaError::LAUNCH_OUT_OF_RESOURCES);
    }
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        give(grid, (blocks * board.multiprocessors()) as c_int)?;
        give(block, threads as c_int)
    }
}

/// `cuOccupancyMaxPotentialBlockSizeWithFlags`
pub(crate) unsafe fn best_block_with_flags(
    grid: *mut c_int,
    block: *mut c_int,
    handle: usize,
    dynamic_of: DynamicSize,
    dynamic: usize,
    limit: c_int,
    flags: c_uint,
) -> CallResult {
    if flags > 1 {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or valid pointers.
    unsafe { best_block(grid, block, handle, dynamic_of, dynamic, limit) }
}

/// `cuOccupancyAvailableDynamicSMemPerBlock`
pub(crate) unsafe fn available_dynamic(
    to: *mut usize,
    handle: usize,
    blocks: c_int,
    threads: c_int,
) -> CallResult {
    let function = find(handle)?;
    let (blocks, threads) = (u32::try_from(blocks).unwrap_or(0), u32::try_from(threads).unwrap_or(0));
    let board = driver()?.board;
    if blocks == 0 || board.resident_blocks(threads, function.registers, 0) < blocks {
        return Err(CudaError::INVALID_VALUE);
    }
    // Shared memory is allocated in multiples of 512 bytes.
    let each = u64::from(SHARED / blocks / 512 * 512);
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, each.saturating_sub(fixed_shared(&function)) as usize) }
}

/// Stores the value of an attribute that a library's kernel has on a device.
pub(crate) unsafe fn attribute_on(
    value: *mut c_int,
    number: c_int,
    function: &Function,
    device: c_int,
) -> CallResult {
    device::check(device)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(value, attribute(function, number)?) }
}

/// `cuKernelGetAttribute`
pub(crate) unsafe fn get_kernel_attribute(
    value: *mut c_int,
    number: c_int,
    handle: usize,
    device: c_int,
) -> CallResult {
    let function = library::function_of(&*library::find_kernel(handle)?)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { attribute_on(value, number, &function, device) }
}

/// `cuKernelSetAttribute`
pub(crate) unsafe fn set_kernel_attribute(
    number: c_int,
    value: c_int,
    handle: usize,
    device: c_int,
) -> CallResult {
    device::check(device)?;
    let function = library::function_of(&*library::find_kernel(handle)?)?;
    // SAFETY: no argument is a pointer to memory of the host.
    unsafe { set_attribute(function.handle, number, value) }
}

/// `cuKernelGetParamInfo`
pub(crate) unsafe fn get_kernel_parameter(
    handle: usize,
    index: usize,
    offset: *mut usize,
    bytes: *mut usize,
) -> CallResult {
    let function = library::function_of(&*library::find_kernel(handle)?)?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe { parameter(&function, index, offset, bytes) }
}

/// `cuKernelGetParamCount`
pub(crate) unsafe fn get_kernel_parameter_count(handle: usize, count: *mut usize) -> CallResult {
    let function = library::function_of(&*library::find_kernel(handle)?)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(count, function.layout.list().ok_or(CudaError::NOT_SUPPORTED)?.len()) }
}

/// `cuParamSetTexRef`. This call only checks its arguments, because the texture references of a module are always bound
/// to the kernels of the module.
pub(crate) unsafe fn set_texture(function: usize, _unit: c_int, handle: usize) -> CallResult {
    context::usable()?;
    let function = find(function)?;
    ready(&texture::REFERENCES)?.get(handle).ok_or(CudaError::INVALID_HANDLE)?;
    let known = function.textures.iter().any(|(_, reference)| reference.handle == handle);
    if known { Ok(()) } else { Err(CudaError::INVALID_VALUE) }
}
