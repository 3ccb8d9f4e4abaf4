//! Libraries: images that do not belong to a context. Each context loads a library when the context first uses the
//! library.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex};

use crate::call::{give, lasting, offer, text};
use crate::context;
use crate::driver::{driver, ready};
use crate::handles::{Handles, fresh, lock};
use crate::image::{self, Parsed};
use crate::module::{self, Function, Module};
use crate::status::{CallResult, CudaError};

/// The libraries of the process.
pub(crate) static LIBRARIES: Handles<Library> = Handles::new();
/// The kernels of all libraries.
pub(crate) static KERNELS: Handles<LibraryKernel> = Handles::new();

/// An image and its kernels, independent of contexts.
#[derive(Debug)]
pub(crate) struct Library {
    parsed: Parsed,
    /// The kernels of the library, in the order of the kernels in the image.
    kernels: Vec<Arc<LibraryKernel>>,
    /// The modules into which the library was loaded. The keys are the handles of contexts.
    modules: Mutex<HashMap<usize, Arc<Module>>>,
}

/// A kernel of a library.
#[derive(Debug)]
pub(crate) struct LibraryKernel {
    pub(crate) handle: usize,
    library: usize,
    name: String,
}

impl Library {
    /// Returns the module of the library in the current context. Loads the module if necessary.
    fn module(&self) -> Result<Arc<Module>, CudaError> {
        let context = context::usable()?;
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&context.handle) {
            return Ok(module.clone());
        }
        let module = module::load(&context, &self.parsed, true)?;
        modules.insert(context.handle, module.clone());
        Ok(module)
    }
}

/// Removes the modules that libraries have loaded into a context that ends.
pub(crate) fn end_of_context(context: usize) {
    LIBRARIES.all(|_| true).iter().for_each(|library| {
        lock(&library.modules).remove(&context);
    });
}

fn find(handle: usize) -> Result<Arc<Library>, CudaError> {
    ready(&LIBRARIES)?.get(handle).ok_or(CudaError::INVALID_HANDLE)
}

pub(crate) fn find_kernel(handle: usize) -> Result<Arc<LibraryKernel>, CudaError> {
    ready(&KERNELS)?.get(handle).ok_or(CudaError::INVALID_HANDLE)
}

/// Returns the function of a kernel in the current context.
pub(crate) fn function_of(kernel: &LibraryKernel) -> Result<Arc<Function>, CudaError> {
    let module = find(kernel.library)?.module()?;
    module.function(&kernel.name).cloned().ok_or(CudaError::NOT_FOUND)
}

fn load(to: *mut usize, bytes: &[u8]) -> CallResult {
    let driver = driver()?;
    let parsed = image::parse(bytes, driver.board.minor)?;
    let handle = fresh();
    let named = parsed.programs.iter().map(|program| program.name.clone().unwrap_or_default());
    let kernels =
        named.map(|name| Arc::new(LibraryKernel { handle: fresh(), library: handle, name })).collect();
    let library = Arc::new(Library { parsed, kernels, modules: Mutex::default() });
    for kernel in &library.kernels {
        KERNELS.insert(kernel.handle, kernel.clone());
    }
    LIBRARIES.insert(handle, library);
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, handle) }
}

/// `cuLibraryLoadData`. The options have no effect, because the options control the PTX compiler and the time at which
/// modules are loaded.
#[allow(clippy::too_many_arguments, reason = "as CUDA declares it")]
pub(crate) unsafe fn load_data(
    to: *mut usize,
    image: usize,
    _options: *const c_int,
    _values: *const *const c_void,
    _count: c_uint,
    _library_options: *const c_int,
    _library_values: *const *const c_void,
    _library_count: c_uint,
) -> CallResult {
    driver()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    load(to, &image::at(image)?)
}

/// `cuLibraryLoadFromFile`
#[allow(clippy::too_many_arguments, reason = "as CUDA declares it")]
pub(crate) unsafe fn load_file(
    to: *mut usize,
    path: *const c_char,
    _options: *const c_int,
    _values: *const *const c_void,
    _count: c_uint,
    _library_options: *const c_int,
    _library_values: *const *const c_void,
    _library_count: c_uint,
) -> CallResult {
    driver()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    load(to, &module::file(path)?)
}

/// `cuLibraryUnload`
pub(crate) unsafe fn unload(handle: usize) -> CallResult {
    let library = find(handle)?;
    driver()?;
    LIBRARIES.remove(handle);
    for kernel in &library.kernels {
        KERNELS.remove(kernel.handle);
    }
    let modules: Vec<_> = lock(&library.modules).drain().collect();
    modules.iter().try_for_each(|(_, module)| module::unload(module))
}

/// `cuLibraryGetKernel`
pub(crate) unsafe fn get_kernel(to: *mut usize, handle: usize, name: *const c_char) -> CallResult {
    let library = find(handle)?;
    // SAFETY: the caller passes null or a C string.
    let name = unsafe { text(name) }?;
    let kernel = library.kernels.iter().find(|kernel| kernel.name == name).ok_or(CudaError::NOT_FOUND)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, kernel.handle) }
}

/// `cuLibraryGetKernelCount`
pub(crate) unsafe fn kernel_count(count: *mut c_uint, handle: usize) -> CallResult {
    let library = find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(count, library.kernels.len() as c_uint) }
}

/// `cuLibraryEnumerateKernels`
pub(crate) unsafe fn enumerate(to: *mut usize, count: c_uint, handle: usize) -> CallResult {
    let library = find(handle)?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    for (index, kernel) in library.kernels.iter().take(count as usize).enumerate() {
        // SAFETY: the caller's array has `count` elements.
        unsafe { to.add(index).write(kernel.handle) };
    }
    Ok(())
}

/// `cuLibraryGetModule`
pub(crate) unsafe fn get_module(to: *mut usize, handle: usize) -> CallResult {
    let module = find(handle)?.module()?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, module.handle) }
}

/// `cuLibraryGetGlobal`
pub(crate) unsafe fn get_global(
    address: *mut u64,
    bytes: *mut usize,
    handle: usize,
    name: *const c_char,
) -> CallResult {
    let module = find(handle)?.module()?;
    // SAFETY: the caller passes null or a C string.
    let (found, size) = module.global(unsafe { text(name) }?).ok_or(CudaError::NOT_FOUND)?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        offer(address, found.into());
        offer(bytes, size as usize);
    }
    Ok(())
}

/// `cuLibraryGetManaged` and `cuLibraryGetUnifiedFunction`. Cubins for these chips contain neither managed variables
/// nor unified functions.
pub(crate) unsafe fn get_absent(_: *mut u64, handle: usize, _: *const c_char) -> CallResult {
    find(handle)?;
    Err(CudaError::NOT_FOUND)
}

/// `cuLibraryGetManaged`
pub(crate) unsafe fn get_managed(_: *mut u64, _: *mut usize, handle: usize, _: *const c_char) -> CallResult {
    find(handle)?;
    Err(CudaError::NOT_FOUND)
}

/// `cuKernelGetFunction`
pub(crate) unsafe fn get_function(to: *mut usize, handle: usize) -> CallResult {
    let function = function_of(&*find_kernel(handle)?)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, function.handle) }
}

/// `cuKernelGetLibrary`
pub(crate) unsafe fn get_library(to: *mut usize, handle: usize) -> CallResult {
    let kernel = find_kernel(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, kernel.library) }
}

/// `cuKernelGetName`
pub(crate) unsafe fn get_name(to: *mut *const c_char, handle: usize) -> CallResult {
    let kernel = find_kernel(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, lasting(&kernel.name)) }
}

/// `cuKernelSetCacheConfig`
pub(crate) unsafe fn set_cache_config(handle: usize, config: c_uint, device: c_int) -> CallResult {
    find_kernel(handle)?;
    crate::device::check(device)?;
    if config > 3 { Err(CudaError::INVALID_VALUE) } else { Ok(()) }
}
