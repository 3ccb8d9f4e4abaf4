//! Modules: the programs of an image in a context, with their variables.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex};

use reconverge_isa::program::Place;
use reconverge_tesla::launch::Setup;
use reconverge_tesla::spaces::Constants;

use crate::addresses::AllocationKind;
use crate::call::{give, offer, text};
use crate::context::{self, CudaContext};
use crate::driver::{driver, ready};
use crate::handles::{Handles, fresh, lock};
use crate::image::{self, Parsed};
use crate::launch::{ConstantBank, Prepared};
use crate::memory;
use crate::parameters::ParameterLayout;
use crate::queue;
use crate::status::{CallResult, CudaError};
use crate::texture::{self, TextureReference};

/// The modules of all contexts.
pub(crate) static MODULES: Handles<Module> = Handles::new();
/// The kernels of all modules.
pub(crate) static FUNCTIONS: Handles<Function> = Handles::new();

/// A module in a context.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) handle: usize,
    pub(crate) context: usize,
    pub(crate) functions: Vec<Arc<Function>>,
    globals: Vec<Global>,
    /// Addresses of the device memory that the module owns.
    owned: Vec<u32>,
    /// The texture references of the module.
    pub(crate) textures: Vec<Arc<TextureReference>>,
    /// Whether the module belongs to a library. If so, unloading the library also unloads the module.
    is_of_library: bool,
}

/// A variable of a module.
#[derive(Debug)]
struct Global {
    name: String,
    address: u32,
    bytes: u32,
}

/// The sizes and parameters of the next launch. Only functions of CUDA 3 and earlier set these values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Old {
    pub(crate) block: Option<[u32; 3]>,
    pub(crate) shared: u32,
    pub(crate) size: usize,
    pub(crate) parameters: Vec<u8>,
}

/// A kernel in a context.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) handle: usize,
    pub(crate) context: usize,
    pub(crate) module: usize,
    pub(crate) name: String,
    pub(crate) layout: ParameterLayout,
    pub(crate) minor: u32,
    pub(crate) registers: u32,
    /// Bytes of static shared memory, including the header and the parameters.
    pub(crate) shared: u32,
    pub(crate) local: u32,
    pub(crate) constant: u32,
    /// The texture references that the kernel reads, with their texture units.
    pub(crate) textures: Vec<(u32, Arc<TextureReference>)>,
    pub(crate) prepared: Prepared,
    /// The sizes and parameters of the next launch. Only functions of CUDA 3 and earlier set these values.
    pub(crate) old: Mutex<Old>,
    /// The value of `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`, if the program has set this attribute.
    pub(crate) most_dynamic: Mutex<Option<u32>>,
}

/// Removes the modules of a context that ends.
pub(crate) fn end_of_context(context: usize) {
    MODULES.retain(|module| module.context != context);
    FUNCTIONS.retain(|function| function.context != context);
}

/// Loads an image into a context.
pub(crate) fn load(
    context: &CudaContext,
    parsed: &Parsed,
    is_of_library: bool,
) -> Result<Arc<Module>, CudaError> {
    let mut owned = Vec::new();
    let module = build(context, parsed, is_of_library, &mut owned).inspect_err(|_| {
        for address in &owned {
            let _ = memory::free_kind((*address).into(), |_| true);
        }
    })?;
    driver()?;
    for function in &module.functions {
        FUNCTIONS.insert(function.handle, function.clone());
    }
    for reference in &module.textures {
        texture::REFERENCES.insert(reference.handle, reference.clone());
    }
    MODULES.insert(module.handle, module.clone());
    Ok(module)
}

fn build(
    context: &CudaContext,
    parsed: &Parsed,
    is_of_library: bool,
    owned: &mut Vec<u32>,
) -> Result<Arc<Module>, CudaError> {
    let (handle, board) = (fresh(), driver()?.board);
    let module = &parsed.module;
    let mut constants = Constants::new();
    let outside = |fits: bool| if fits { Ok(()) } else { Err(CudaError::INVALID_IMAGE) };
    for block in &module.constants {
        outside(constants.place(block.bank as usize, block.offset as usize, &block.bytes))?;
    }
    let mut place = |bytes: u64| {
        let allocation = memory::place(context, bytes.max(4), AllocationKind::Variable)?;
        owned.push(allocation.address);
        Ok::<u32, CudaError>(allocation.address)
    };
    let mut globals = Vec::new();
    for variable in &module.variables {
        let Place::Global { slots, init } = &variable.place else { continue };
        let address = place(variable.bytes.into())?;
        let init = &init[..init.len().min(variable.bytes as usize)];
        if !init.is_empty() {
            memory::write(address.into(), init)?;
        }
        for slot in slots {
            let value = address.wrapping_add(slot.addend).to_le_bytes();
            outside(constants.place(slot.bank as usize, slot.offset as usize, &value))?;
        }
        globals.push(Global { name: variable.name.clone(), address, bytes: variable.bytes });
    }
    let mut banks: Vec<ConstantBank> = Vec::new();
    for variable in &module.variables {
        let Place::Constant { bank, offset } = variable.place else { continue };
        let end = offset.saturating_add(variable.bytes) as usize;
        let number = bank as usize;
        outside(number < reconverge_tesla::spaces::BANKS && end <= 0x1_0000)?;
        match banks.iter_mut().find(|bank| bank.number == number) {
            Some(bank) => bank.bytes = bank.bytes.max(end),
            None => {
                let bytes = end.max(constants.bank(number).len());
                banks.push(ConstantBank { number, address: 0, bytes });
            }
        }
    }
    for bank in &mut banks {
        bank.address = place(bank.bytes as u64)?;
        let contents = constants.bank(bank.number);
        if !contents.is_empty() {
            memory::write(bank.address.into(), contents)?;
        }
    }
    for variable in &module.variables {
        let Place::Constant { bank, offset } = variable.place else { continue };
        if let Some(bank) = banks.iter().find(|found| found.number == bank as usize) {
            let (name, address) = (variable.name.clone(), bank.address + offset);
            globals.push(Global { name, address, bytes: variable.bytes });
        }
    }
    let banks = Arc::new(banks);
    let samplers = module.samplers.iter().chain(parsed.programs.iter().flat_map(|program| &program.samplers));
    let mut textures: Vec<Arc<TextureReference>> = Vec::new();
    for sampler in samplers {
        if !textures.iter().any(|known| known.name == sampler.name) {
            textures.push(Arc::new(TextureReference::new(fresh(), context.handle, &sampler.name)));
        }
    }
    let mut functions = Vec::new();
    for program in &parsed.programs {
        let mut setup = Setup::of(program, board.chip).map_err(|_| CudaError::INVALID_IMAGE)?;
        setup.code_base = program.base;
        setup.constants = constants.clone();
        for block in &program.constants {
            outside(setup.constants.place(block.bank as usize, block.offset as usize, &block.bytes))?;
        }
        let layout = ParameterLayout::of(program, module.pointer_bytes);
        let named = |name: &str| textures.iter().find(|known| known.name == name).cloned();
        // If the program does not list textures, the program uses the textures of the module.
        let own = if program.samplers.is_empty() { &module.samplers } else { &program.samplers };
        let units = own.iter().filter_map(|sampler| Some((sampler.unit, named(&sampler.name)?)));
        let constant = program.constants.iter().map(|block| block.bytes.len() as u32).sum();
        functions.push(Arc::new(Function {
            handle: fresh(),
            context: context.handle,
            module: handle,
            name: program.name.clone().unwrap_or_default(),
            layout,
            minor: parsed.minor,
            registers: setup.registers,
            shared: program.resources.shared_bytes.unwrap_or(0),
            local: setup.local_bytes,
            constant,
            textures: units.collect(),
            prepared: Prepared::new(program, setup, banks.clone(), &driver()?.options)?,
            old: Mutex::default(),
            most_dynamic: Mutex::default(),
        }));
    }
    let owned = owned.clone();
    let context = context.handle;
    Ok(Arc::new(Module { handle, context, functions, globals, owned, textures, is_of_library }))
}

/// Waits for the tasks of the module's context, then removes the module.
pub(crate) fn unload(module: &Module) -> CallResult {
    driver()?;
    queue::wait_for_context(module.context);
    // Another thread may have unloaded the module, or ended the context of the module.
    if MODULES.remove(module.handle).is_none() {
        return Err(CudaError::INVALID_HANDLE);
    }
    for function in &module.functions {
        FUNCTIONS.remove(function.handle);
    }
    for reference in &module.textures {
        texture::REFERENCES.remove(reference.handle);
    }
    for address in &module.owned {
        memory::free_kind((*address).into(), |_| true)?;
    }
    Ok(())
}

impl Module {
    /// Returns the kernel that has the name `name`.
    pub(crate) fn function(&self, name: &str) -> Option<&Arc<Function>> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Returns the address and the size of the variable that has the name `name`.
    pub(crate) fn global(&self, name: &str) -> Option<(u32, u32)> {
        let found = self.globals.iter().find(|global| global.name == name)?;
        Some((found.address, found.bytes))
    }
}

pub(crate) fn find(handle: usize) -> Result<Arc<Module>, CudaError> {
    ready(&MODULES)?.get(handle).ok_or(CudaError::INVALID_HANDLE)
}

fn load_bytes(to: *mut usize, bytes: &[u8]) -> CallResult {
    let context = context::usable()?;
    let parsed = image::parse(bytes, driver()?.board.minor)?;
    let module = load(&context, &parsed, false)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, module.handle) }
}

/// Reads a file.
pub(crate) fn file(path: *const c_char) -> Result<Vec<u8>, CudaError> {
    if path.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the address is not null, so the caller has passed a C string.
    let path = unsafe { std::ffi::CStr::from_ptr(path) };
    let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(path.to_bytes());
    std::fs::read(path).map_err(|_| CudaError::FILE_NOT_FOUND)
}

/// `cuModuleLoad`
pub(crate) unsafe fn load_file(to: *mut usize, path: *const c_char) -> CallResult {
    context::usable()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    load_bytes(to, &file(path)?)
}

/// `cuModuleLoadData`, `cuModuleLoadFatBinary`
pub(crate) unsafe fn load_data(to: *mut usize, image: usize) -> CallResult {
    context::usable()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    load_bytes(to, &image::at(image)?)
}

/// `cuModuleLoadDataEx`. The options have no effect, because the options control the PTX compiler. The logs of the
/// compiler are empty.
pub(crate) unsafe fn load_data_with(
    to: *mut usize,
    image: usize,
    count: c_uint,
    options: *const c_int,
    values: *mut *mut c_void,
) -> CallResult {
    context::usable()?;
    if count > 0 && (options.is_null() || values.is_null()) {
        return Err(CudaError::INVALID_VALUE);
    }
    for index in 0..count as usize {
        // SAFETY: the caller's arrays have `count` elements.
        let (option, value) = unsafe { (*options.add(index), values.add(index)) };
        // `CU_JIT_INFO_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER`. The value of each option is the address of a buffer
        // for a log. The option with the next number contains the size of the buffer in bytes. Programs print the logs,
        // so each log must be an empty string.
        if matches!(option, 3 | 5) {
            let size = (0..count as usize).find_map(|other| {
                // SAFETY: the caller's arrays have `count` elements.
                let (found, value) = unsafe { (*options.add(other), *values.add(other)) };
                (found == option + 1).then_some(value as usize)
            });
            // SAFETY: the value is null or the address of a buffer of this size.
            unsafe {
                let buffer = (*value).cast::<u8>();
                if size.is_some_and(|size| size > 0) && !buffer.is_null() {
                    buffer.write(0);
                }
            }
        }
    }
    for index in 0..count as usize {
        // SAFETY: the caller's arrays have `count` elements.
        let (option, value) = unsafe { (*options.add(index), values.add(index)) };
        // Two options contain the sizes of the logs. Each size is replaced by the number of bytes that this call has
        // written to the buffer.
        if matches!(option, 4 | 6) {
            // SAFETY: the caller's arrays have `count` elements.
            unsafe { value.write(std::ptr::null_mut()) };
        }
    }
    // SAFETY: the caller passes null or valid pointers.
    unsafe { load_data(to, image) }
}

/// `cuModuleUnload`. This call fails for a module that a library has loaded.
pub(crate) unsafe fn unload_handle(handle: usize) -> CallResult {
    context::current()?;
    let module = find(handle)?;
    if module.is_of_library { Err(CudaError::NOT_PERMITTED) } else { unload(&module) }
}

/// `cuModuleGetFunction`
pub(crate) unsafe fn get_function(to: *mut usize, handle: usize, name: *const c_char) -> CallResult {
    context::current()?;
    let module = find(handle)?;
    // SAFETY: the caller passes null or a C string.
    let name = unsafe { text(name) }?;
    let function = module.function(name).ok_or(CudaError::NOT_FOUND)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, function.handle) }
}

/// `cuModuleGetFunctionCount`
pub(crate) unsafe fn function_count(count: *mut c_uint, handle: usize) -> CallResult {
    let module = find(handle)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(count, module.functions.len() as c_uint) }
}

/// `cuModuleEnumerateFunctions`
pub(crate) unsafe fn enumerate(to: *mut usize, count: c_uint, handle: usize) -> CallResult {
    let module = find(handle)?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    for (index, function) in module.functions.iter().take(count as usize).enumerate() {
        // SAFETY: the caller's array has `count` elements.
        unsafe { to.add(index).write(function.handle) };
    }
    Ok(())
}

/// `cuModuleGetGlobal`. Each of the pointers for the address and the size may be null.
pub(crate) unsafe fn get_global(
    address: *mut u64,
    bytes: *mut usize,
    handle: usize,
    name: *const c_char,
) -> CallResult {
    context::current()?;
    let module = find(handle)?;
    // SAFETY: the caller passes null or a C string.
    let (found, size) = module.global(unsafe { text(name) }?).ok_or(CudaError::NOT_FOUND)?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        offer(address, found.into());
        offer(bytes, size as usize);
    }
    Ok(())
}

/// `cuModuleGetGlobal` of CUDA 3.1 and earlier.
pub(crate) unsafe fn get_global_32(
    address: *mut u32,
    bytes: *mut u32,
    handle: usize,
    name: *const c_char,
) -> CallResult {
    let (mut found, mut size) = (0, 0);
    // SAFETY: the caller passes null or a C string. The other pointers are addresses of local variables.
    unsafe { get_global(&raw mut found, &raw mut size, handle, name)? };
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        offer(address, found as u32);
        offer(bytes, size as u32);
    }
    Ok(())
}

/// `cuModuleGetTexRef`
pub(crate) unsafe fn get_texture(to: *mut usize, handle: usize, name: *const c_char) -> CallResult {
    context::current()?;
    let module = find(handle)?;
    // SAFETY: the caller passes null or a C string.
    let name = unsafe { text(name) }?;
    let reference = module.textures.iter().find(|known| known.name == name).ok_or(CudaError::NOT_FOUND)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, reference.handle) }
}

/// `cuModuleGetSurfRef`. This call fails, because chips of this generation have no surfaces.
pub(crate) unsafe fn get_surface(_to: *mut usize, handle: usize, _name: *const c_char) -> CallResult {
    find(handle)?;
    Err(CudaError::NOT_FOUND)
}

/// `cuModuleGetLoadingMode`. Modules are always loaded eagerly.
pub(crate) unsafe fn loading_mode(mode: *mut c_int) -> CallResult {
    driver()?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(mode, 1) }
}

/// Returns the maximum size of the dynamic shared memory of a kernel in bytes.
pub(crate) fn most_dynamic(function: &Function) -> u32 {
    lock(&function.most_dynamic).unwrap_or(crate::board::SHARED.saturating_sub(function.shared))
}
