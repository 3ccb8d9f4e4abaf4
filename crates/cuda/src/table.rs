//! The exported functions. A function can have several forms. For example, `cuMemAlloc` and `cuMemAlloc_v2` are forms
//! of one function. Each form of a function has one row. The row defines the function and its entry for
//! `cuGetProcAddress`.
//!
//! A row begins with three items: the name without a version suffix, the version of CUDA that introduced the form, and
//! the symbol. A second form may use the default stream of the thread as the null stream. If this form exists, the
//! version and the symbol of the form follow. The row ends with the parameters and the function that implements the
//! row. The versions are from `cudaTypedefs.h`.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::rows::functions;
use crate::{array, context, copy, device, event, fill, function, general, host, library, memory, module};
use crate::{start, stream, texture};

functions! {
    // Errors, versions, initialization
    cuInit 2000 cuInit (flags: c_uint) => start::init;
    cuDriverGetVersion 2020 cuDriverGetVersion (version: *mut c_int) => general::version;
    cuGetErrorName 6000 cuGetErrorName (error: c_uint, to: *mut *const c_char) => general::error_name;
    cuGetErrorString 6000 cuGetErrorString (error: c_uint, to: *mut *const c_char) => general::error_text;
    cuGetExportTable 3000 cuGetExportTable (to: *mut *const c_void, id: *const [u8; 16]) => general::export_table;
    cuProfilerStart 4000 cuProfilerStart () => general::profiler;
    cuProfilerStop 4000 cuProfilerStop () => general::profiler;

    // Devices
    cuDeviceGet 2000 cuDeviceGet (device: *mut c_int, ordinal: c_int) => device::get;
    cuDeviceGetCount 2000 cuDeviceGetCount (count: *mut c_int) => device::count;
    cuDeviceGetName 2000 cuDeviceGetName (name: *mut c_char, room: c_int, device: c_int) => device::name;
    cuDeviceGetUuid 9020 cuDeviceGetUuid (to: *mut [u8; 16], device: c_int) => device::get_uuid;
    cuDeviceGetUuid 11040 cuDeviceGetUuid_v2 (to: *mut [u8; 16], device: c_int) => device::get_uuid;
    cuDeviceGetLuid 10000 cuDeviceGetLuid (luid: *mut c_char, mask: *mut c_uint, device: c_int) => device::get_luid;
    cuDeviceTotalMem 2000 cuDeviceTotalMem (bytes: *mut u32, device: c_int) => device::total_memory_32;
    cuDeviceTotalMem 3020 cuDeviceTotalMem_v2 (bytes: *mut usize, device: c_int) => device::total_memory;
    cuDeviceGetAttribute 2000 cuDeviceGetAttribute
        (value: *mut c_int, attribute: c_int, device: c_int) => device::get_attribute;
    cuDeviceComputeCapability 2000 cuDeviceComputeCapability
        (major: *mut c_int, minor: *mut c_int, device: c_int) => device::compute_capability;
    cuDeviceGetProperties 2000 cuDeviceGetProperties
        (properties: *mut device::Properties, device: c_int) => device::properties;
    cuDeviceGetPCIBusId 4010 cuDeviceGetPCIBusId (to: *mut c_char, room: c_int, device: c_int) => device::bus_id;
    cuDeviceGetByPCIBusId 4010 cuDeviceGetByPCIBusId (device: *mut c_int, id: *const c_char) => device::by_bus_id;
    cuDeviceCanAccessPeer 4000 cuDeviceCanAccessPeer
        (can: *mut c_int, device: c_int, peer: c_int) => device::can_access_peer;
    cuDeviceGetP2PAttribute 8000 cuDeviceGetP2PAttribute
        (value: *mut c_int, attribute: c_int, from: c_int, to: c_int) => device::peer_attribute;
    cuDeviceGetExecAffinitySupport 11040 cuDeviceGetExecAffinitySupport
        (supported: *mut c_int, kind: c_int, device: c_int) => device::exec_affinity;
    cuDeviceGetTexture1DLinearMaxWidth 11010 cuDeviceGetTexture1DLinearMaxWidth
        (width: *mut usize, format: c_int, channels: c_uint, device: c_int) => texture::linear_width;
    cuDevicePrimaryCtxRetain 7000 cuDevicePrimaryCtxRetain (to: *mut usize, device: c_int) => context::retain_primary;
    cuDevicePrimaryCtxRelease 7000 cuDevicePrimaryCtxRelease (device: c_int) => context::release_primary;
    cuDevicePrimaryCtxRelease 11000 cuDevicePrimaryCtxRelease_v2 (device: c_int) => context::release_primary;
    cuDevicePrimaryCtxReset 7000 cuDevicePrimaryCtxReset (device: c_int) => context::reset_primary;
    cuDevicePrimaryCtxReset 11000 cuDevicePrimaryCtxReset_v2 (device: c_int) => context::reset_primary;
    cuDevicePrimaryCtxSetFlags 7000 cuDevicePrimaryCtxSetFlags
        (device: c_int, flags: c_uint) => context::set_primary_flags;
    cuDevicePrimaryCtxSetFlags 11000 cuDevicePrimaryCtxSetFlags_v2
        (device: c_int, flags: c_uint) => context::set_primary_flags;
    cuDevicePrimaryCtxGetState 7000 cuDevicePrimaryCtxGetState
        (device: c_int, flags: *mut c_uint, active: *mut c_int) => context::primary_state;

    // Contexts
    cuCtxCreate 2000 cuCtxCreate (to: *mut usize, flags: c_uint, device: c_int) => context::create;
    cuCtxCreate 3020 cuCtxCreate_v2 (to: *mut usize, flags: c_uint, device: c_int) => context::create;
    cuCtxCreate 11040 cuCtxCreate_v3
        (to: *mut usize, parts: *const c_void, count: c_int, flags: c_uint, device: c_int) =>
         context::create_3;
    cuCtxCreate 12050 cuCtxCreate_v4
        (to: *mut usize, parameters: *const context::CreateParameters, flags: c_uint, device: c_int) =>
         context::create_4;
    cuCtxDestroy 2000 cuCtxDestroy (context: usize) => context::destroy;
    cuCtxDestroy 4000 cuCtxDestroy_v2 (context: usize) => context::destroy;
    cuCtxAttach 2000 cuCtxAttach (to: *mut usize, flags: c_uint) => context::attach;
    cuCtxDetach 2000 cuCtxDetach (context: usize) => context::detach;
    cuCtxPushCurrent 2000 cuCtxPushCurrent (context: usize) => context::push;
    cuCtxPushCurrent 4000 cuCtxPushCurrent_v2 (context: usize) => context::push;
    cuCtxPopCurrent 2000 cuCtxPopCurrent (to: *mut usize) => context::pop;
    cuCtxPopCurrent 4000 cuCtxPopCurrent_v2 (to: *mut usize) => context::pop;
    cuCtxSetCurrent 4000 cuCtxSetCurrent (context: usize) => context::set_current;
    cuCtxGetCurrent 4000 cuCtxGetCurrent (to: *mut usize) => context::get_current;
    cuCtxGetDevice 2000 cuCtxGetDevice (device: *mut c_int) => context::get_device;
    cuCtxGetDevice 13000 cuCtxGetDevice_v2 (device: *mut c_int, context: usize) => context::get_device_2;
    cuCtxGetFlags 7000 cuCtxGetFlags (flags: *mut c_uint) => context::get_flags;
    cuCtxSetFlags 12010 cuCtxSetFlags (flags: c_uint) => context::set_flags;
    cuCtxGetId 12000 cuCtxGetId (context: usize, id: *mut u64) => context::get_id;
    cuCtxGetApiVersion 3020 cuCtxGetApiVersion (context: usize, version: *mut c_uint) => context::get_api_version;
    cuCtxSynchronize 2000 cuCtxSynchronize () => context::synchronize;
    cuCtxSynchronize 13000 cuCtxSynchronize_v2 (context: usize) => context::synchronize_2;
    cuCtxGetLimit 3010 cuCtxGetLimit (value: *mut usize, limit: c_int) => context::get_limit;
    cuCtxSetLimit 3010 cuCtxSetLimit (limit: c_int, value: usize) => context::set_limit;
    cuCtxGetCacheConfig 3020 cuCtxGetCacheConfig (config: *mut c_uint) => context::get_cache_config;
    cuCtxSetCacheConfig 3020 cuCtxSetCacheConfig (config: c_uint) => context::set_cache_config;
    cuCtxGetSharedMemConfig 4020 cuCtxGetSharedMemConfig (config: *mut c_uint) => context::get_shared_config;
    cuCtxSetSharedMemConfig 4020 cuCtxSetSharedMemConfig (config: c_uint) => context::set_shared_config;
    cuCtxGetStreamPriorityRange 5050 cuCtxGetStreamPriorityRange
        (least: *mut c_int, greatest: *mut c_int) => context::priority_range;
    cuCtxEnablePeerAccess 4000 cuCtxEnablePeerAccess (peer: usize, flags: c_uint) => context::enable_peer;
    cuCtxDisablePeerAccess 4000 cuCtxDisablePeerAccess (peer: usize) => context::disable_peer;
    cuCtxResetPersistingL2Cache 11000 cuCtxResetPersistingL2Cache () => context::reset_cache;

    // Modules and libraries
    cuModuleLoad 2000 cuModuleLoad (to: *mut usize, path: *const c_char) => module::load_file;
    cuModuleLoadData 2000 cuModuleLoadData (to: *mut usize, image: usize) => module::load_data;
    cuModuleLoadDataEx 2010 cuModuleLoadDataEx
        (to: *mut usize, image: usize, count: c_uint, options: *const c_int, values: *mut *mut c_void) =>
         module::load_data_with;
    cuModuleLoadFatBinary 2000 cuModuleLoadFatBinary (to: *mut usize, image: usize) => module::load_data;
    cuModuleUnload 2000 cuModuleUnload (module: usize) => module::unload_handle;
    cuModuleGetLoadingMode 11070 cuModuleGetLoadingMode (mode: *mut c_int) => module::loading_mode;
    cuModuleGetFunction 2000 cuModuleGetFunction
        (to: *mut usize, module: usize, name: *const c_char) => module::get_function;
    cuModuleGetFunctionCount 12040 cuModuleGetFunctionCount
        (count: *mut c_uint, module: usize) => module::function_count;
    cuModuleEnumerateFunctions 12040 cuModuleEnumerateFunctions
        (to: *mut usize, count: c_uint, module: usize) => module::enumerate;
    cuModuleGetGlobal 2000 cuModuleGetGlobal
        (address: *mut u32, bytes: *mut u32, module: usize, name: *const c_char) => module::get_global_32;
    cuModuleGetGlobal 3020 cuModuleGetGlobal_v2
        (address: *mut u64, bytes: *mut usize, module: usize, name: *const c_char) => module::get_global;
    cuModuleGetTexRef 2000 cuModuleGetTexRef
        (to: *mut usize, module: usize, name: *const c_char) => module::get_texture;
    cuModuleGetSurfRef 3000 cuModuleGetSurfRef
        (to: *mut usize, module: usize, name: *const c_char) => module::get_surface;
    cuLibraryLoadData 12000 cuLibraryLoadData
        (to: *mut usize, image: usize, options: *const c_int, values: *const *const c_void, count: c_uint,
         library_options: *const c_int, library_values: *const *const c_void, library_count: c_uint) =>
         library::load_data;
    cuLibraryLoadFromFile 12000 cuLibraryLoadFromFile
        (to: *mut usize, path: *const c_char, options: *const c_int, values: *const *const c_void, count:
         c_uint, library_options: *const c_int, library_values: *const *const c_void, library_count: c_uint)
         => library::load_file;
    cuLibraryUnload 12000 cuLibraryUnload (library: usize) => library::unload;
    cuLibraryGetKernel 12000 cuLibraryGetKernel
        (to: *mut usize, library: usize, name: *const c_char) => library::get_kernel;
    cuLibraryGetKernelCount 12040 cuLibraryGetKernelCount
        (count: *mut c_uint, library: usize) => library::kernel_count;
    cuLibraryEnumerateKernels 12040 cuLibraryEnumerateKernels
        (to: *mut usize, count: c_uint, library: usize) => library::enumerate;
    cuLibraryGetModule 12000 cuLibraryGetModule (to: *mut usize, library: usize) => library::get_module;
    cuLibraryGetGlobal 12000 cuLibraryGetGlobal
        (address: *mut u64, bytes: *mut usize, library: usize, name: *const c_char) => library::get_global;
    cuLibraryGetManaged 12000 cuLibraryGetManaged
        (address: *mut u64, bytes: *mut usize, library: usize, name: *const c_char) => library::get_managed;
    cuLibraryGetUnifiedFunction 12000 cuLibraryGetUnifiedFunction
        (to: *mut u64, library: usize, name: *const c_char) => library::get_absent;
    cuKernelGetFunction 12000 cuKernelGetFunction (to: *mut usize, kernel: usize) => library::get_function;
    cuKernelGetLibrary 12050 cuKernelGetLibrary (to: *mut usize, kernel: usize) => library::get_library;
    cuKernelGetName 12030 cuKernelGetName (to: *mut *const c_char, kernel: usize) => library::get_name;
    cuKernelGetAttribute 12000 cuKernelGetAttribute
        (value: *mut c_int, attribute: c_int, kernel: usize, device: c_int) => function::get_kernel_attribute;
    cuKernelSetAttribute 12000 cuKernelSetAttribute
        (attribute: c_int, value: c_int, kernel: usize, device: c_int) => function::set_kernel_attribute;
    cuKernelSetCacheConfig 12000 cuKernelSetCacheConfig
        (kernel: usize, config: c_uint, device: c_int) => library::set_cache_config;
    cuKernelGetParamInfo 12040 cuKernelGetParamInfo
        (kernel: usize, index: usize, offset: *mut usize, bytes: *mut usize) => function::get_kernel_parameter;
    cuKernelGetParamCount 13020 cuKernelGetParamCount
        (kernel: usize, count: *mut usize) => function::get_kernel_parameter_count;

    // Kernels
    cuFuncGetAttribute 2020 cuFuncGetAttribute
        (value: *mut c_int, attribute: c_int, function: usize) => function::get_attribute;
    cuFuncSetAttribute 9000 cuFuncSetAttribute
        (function: usize, attribute: c_int, value: c_int) => function::set_attribute;
    cuFuncSetCacheConfig 3000 cuFuncSetCacheConfig (function: usize, config: c_uint) => function::set_cache_config;
    cuFuncSetSharedMemConfig 4020 cuFuncSetSharedMemConfig
        (function: usize, config: c_uint) => function::set_shared_config;
    cuFuncGetModule 11000 cuFuncGetModule (to: *mut usize, function: usize) => function::get_module;
    cuFuncGetName 12030 cuFuncGetName (to: *mut *const c_char, function: usize) => function::get_name;
    cuFuncGetParamInfo 12040 cuFuncGetParamInfo
        (function: usize, index: usize, offset: *mut usize, bytes: *mut usize) => function::get_parameter;
    cuFuncGetParamCount 13020 cuFuncGetParamCount
        (function: usize, count: *mut usize) => function::get_parameter_count;
    cuFuncIsLoaded 12040 cuFuncIsLoaded (to: *mut c_int, function: usize) => function::is_loaded;
    cuFuncLoad 12040 cuFuncLoad (function: usize) => function::load;
    cuLaunchKernel 4000 cuLaunchKernel / 7000 cuLaunchKernel_ptsz
        (function: usize, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
         block_z: c_uint, shared: c_uint, stream: usize, parameters: *const *const c_void, extra: *const
         *const c_void) => function::launch_kernel;
    cuLaunchKernelEx 11060 cuLaunchKernelEx / 11060 cuLaunchKernelEx_ptsz
        (configuration: *const function::Configuration, function: usize, parameters: *const *const c_void,
         extra: *const *const c_void) => function::launch_configured;
    cuLaunchCooperativeKernel 9000 cuLaunchCooperativeKernel / 9000 cuLaunchCooperativeKernel_ptsz
        (function: usize, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
         block_z: c_uint, shared: c_uint, stream: usize, parameters: *const *const c_void) =>
         function::launch_cooperative;
    cuFuncSetBlockShape 2000 cuFuncSetBlockShape
        (function: usize, x: c_int, y: c_int, z: c_int) => function::set_block;
    cuFuncSetSharedSize 2000 cuFuncSetSharedSize (function: usize, bytes: c_uint) => function::set_shared;
    cuParamSetSize 2000 cuParamSetSize (function: usize, bytes: c_uint) => function::set_parameter_size;
    cuParamSeti 2000 cuParamSeti (function: usize, offset: c_int, value: c_uint) => function::set_word;
    cuParamSetf 2000 cuParamSetf (function: usize, offset: c_int, value: f32) => function::set_float;
    cuParamSetv 2000 cuParamSetv
        (function: usize, offset: c_int, from: *const u8, bytes: c_uint) => function::set_value;
    cuParamSetTexRef 2000 cuParamSetTexRef
        (function: usize, unit: c_int, reference: usize) => function::set_texture;
    cuLaunch 2000 cuLaunch (function: usize) => function::launch_one;
    cuLaunchGrid 2000 cuLaunchGrid (function: usize, width: c_int, height: c_int) => function::launch_grid;
    cuLaunchGridAsync 2000 cuLaunchGridAsync
        (function: usize, width: c_int, height: c_int, stream: usize) => function::launch_grid_async;
    cuOccupancyMaxActiveBlocksPerMultiprocessor 6050 cuOccupancyMaxActiveBlocksPerMultiprocessor
        (blocks: *mut c_int, function: usize, threads: c_int, dynamic: usize) => function::active_blocks;
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        (blocks: *mut c_int, function: usize, threads: c_int, dynamic: usize, flags: c_uint) =>
         function::active_blocks_with_flags;
    cuOccupancyMaxPotentialBlockSize 6050 cuOccupancyMaxPotentialBlockSize
        (grid: *mut c_int, block: *mut c_int, function: usize, dynamic_of: function::DynamicSize, dynamic:
         usize, limit: c_int) => function::best_block;
    cuOccupancyMaxPotentialBlockSizeWithFlags 7000 cuOccupancyMaxPotentialBlockSizeWithFlags
        (grid: *mut c_int, block: *mut c_int, function: usize, dynamic_of: function::DynamicSize, dynamic:
         usize, limit: c_int, flags: c_uint) => function::best_block_with_flags;
    cuOccupancyAvailableDynamicSMemPerBlock 10020 cuOccupancyAvailableDynamicSMemPerBlock
        (to: *mut usize, function: usize, blocks: c_int, threads: c_int) => function::available_dynamic;

    // Memory
    cuMemAlloc 2000 cuMemAlloc (to: *mut u32, bytes: u32) => memory::alloc_32;
    cuMemAlloc 3020 cuMemAlloc_v2 (to: *mut u64, bytes: usize) => memory::alloc;
    cuMemAllocPitch 2000 cuMemAllocPitch
        (to: *mut u32, pitch: *mut u32, width: u32, height: u32, element: c_uint) => memory::alloc_pitch_32;
    cuMemAllocPitch 3020 cuMemAllocPitch_v2
        (to: *mut u64, pitch: *mut usize, width: usize, height: usize, element: c_uint) =>
         memory::alloc_pitch;
    cuMemAllocManaged 6000 cuMemAllocManaged (to: *mut u64, bytes: usize, flags: c_uint) => memory::alloc_managed;
    cuMemAllocAsync 11020 cuMemAllocAsync / 11020 cuMemAllocAsync_ptsz
        (to: *mut u64, bytes: usize, stream: usize) => memory::alloc_async;
    cuMemFree 2000 cuMemFree (address: u32) => memory::free_32;
    cuMemFree 3020 cuMemFree_v2 (address: u64) => memory::free;
    cuMemFreeAsync 11020 cuMemFreeAsync / 11020 cuMemFreeAsync_ptsz
        (address: u64, stream: usize) => memory::free_async;
    cuMemGetInfo 2000 cuMemGetInfo (free: *mut u32, total: *mut u32) => memory::get_info_32;
    cuMemGetInfo 3020 cuMemGetInfo_v2 (free: *mut usize, total: *mut usize) => memory::get_info;
    cuMemGetAddressRange 2000 cuMemGetAddressRange
        (base: *mut u32, bytes: *mut u32, address: u32) => memory::address_range_32;
    cuMemGetAddressRange 3020 cuMemGetAddressRange_v2
        (base: *mut u64, bytes: *mut usize, address: u64) => memory::address_range;
    cuPointerGetAttribute 4000 cuPointerGetAttribute
        (to: *mut u8, attribute: c_int, address: u64) => memory::pointer_attribute;
    cuPointerGetAttributes 7000 cuPointerGetAttributes
        (count: c_uint, attributes: *const c_int, to: *const *mut u8, address: u64) =>
         memory::pointer_attributes;
    cuPointerSetAttribute 6000 cuPointerSetAttribute
        (value: *const u8, attribute: c_int, address: u64) => memory::set_pointer_attribute;
    cuMemAllocHost 2000 cuMemAllocHost (to: *mut usize, bytes: u32) => host::alloc_plain_32;
    cuMemAllocHost 3020 cuMemAllocHost_v2 (to: *mut usize, bytes: usize) => host::alloc_plain;
    cuMemFreeHost 2000 cuMemFreeHost (address: usize) => host::free;
    cuMemHostAlloc 2020 cuMemHostAlloc (to: *mut usize, bytes: usize, flags: c_uint) => host::alloc;
    cuMemHostRegister 4000 cuMemHostRegister (address: usize, bytes: usize, flags: c_uint) => host::register;
    cuMemHostRegister 6050 cuMemHostRegister_v2 (address: usize, bytes: usize, flags: c_uint) => host::register;
    cuMemHostUnregister 4000 cuMemHostUnregister (address: usize) => host::unregister;
    cuMemHostGetDevicePointer 2020 cuMemHostGetDevicePointer
        (to: *mut u32, address: usize, flags: c_uint) => host::get_device_pointer_32;
    cuMemHostGetDevicePointer 3020 cuMemHostGetDevicePointer_v2
        (to: *mut u64, address: usize, flags: c_uint) => host::get_device_pointer;
    cuMemHostGetFlags 2030 cuMemHostGetFlags (to: *mut c_uint, address: usize) => host::get_flags;

    // Copies
    cuMemcpy 4000 cuMemcpy / 7000 cuMemcpy_ptds (to: u64, from: u64, bytes: usize) => copy::anywhere;
    cuMemcpyAsync 4000 cuMemcpyAsync / 7000 cuMemcpyAsync_ptsz
        (to: u64, from: u64, bytes: usize, stream: usize) => copy::anywhere_async;
    cuMemcpyPeer 4000 cuMemcpyPeer / 7000 cuMemcpyPeer_ptds
        (to: u64, to_context: usize, from: u64, from_context: usize, bytes: usize) => copy::peer;
    cuMemcpyPeerAsync 4000 cuMemcpyPeerAsync / 7000 cuMemcpyPeerAsync_ptsz
        (to: u64, to_context: usize, from: u64, from_context: usize, bytes: usize, stream: usize) =>
         copy::peer_async;
    cuMemcpyHtoD 2000 cuMemcpyHtoD (to: u32, from: usize, bytes: u32) => copy::to_device_32;
    cuMemcpyHtoD 3020 cuMemcpyHtoD_v2 / 7000 cuMemcpyHtoD_v2_ptds
        (to: u64, from: usize, bytes: usize) => copy::to_device;
    cuMemcpyDtoH 2000 cuMemcpyDtoH (to: usize, from: u32, bytes: u32) => copy::to_host_32;
    cuMemcpyDtoH 3020 cuMemcpyDtoH_v2 / 7000 cuMemcpyDtoH_v2_ptds
        (to: usize, from: u64, bytes: usize) => copy::to_host;
    cuMemcpyDtoD 2000 cuMemcpyDtoD (to: u32, from: u32, bytes: u32) => copy::on_device_32;
    cuMemcpyDtoD 3020 cuMemcpyDtoD_v2 / 7000 cuMemcpyDtoD_v2_ptds
        (to: u64, from: u64, bytes: usize) => copy::on_device;
    cuMemcpyHtoDAsync 2000 cuMemcpyHtoDAsync
        (to: u32, from: usize, bytes: u32, stream: usize) => copy::to_device_async_32;
    cuMemcpyHtoDAsync 3020 cuMemcpyHtoDAsync_v2 / 7000 cuMemcpyHtoDAsync_v2_ptsz
        (to: u64, from: usize, bytes: usize, stream: usize) => copy::to_device_async;
    cuMemcpyDtoHAsync 2000 cuMemcpyDtoHAsync
        (to: usize, from: u32, bytes: u32, stream: usize) => copy::to_host_async_32;
    cuMemcpyDtoHAsync 3020 cuMemcpyDtoHAsync_v2 / 7000 cuMemcpyDtoHAsync_v2_ptsz
        (to: usize, from: u64, bytes: usize, stream: usize) => copy::to_host_async;
    cuMemcpyDtoDAsync 3000 cuMemcpyDtoDAsync
        (to: u32, from: u32, bytes: u32, stream: usize) => copy::on_device_async_32;
    cuMemcpyDtoDAsync 3020 cuMemcpyDtoDAsync_v2 / 7000 cuMemcpyDtoDAsync_v2_ptsz
        (to: u64, from: u64, bytes: usize, stream: usize) => copy::on_device_async;
    cuMemcpy2D 3020 cuMemcpy2D_v2 / 7000 cuMemcpy2D_v2_ptds (copy: *const copy::Copy2) => copy::rows;
    cuMemcpy2DUnaligned 3020 cuMemcpy2DUnaligned_v2 / 7000 cuMemcpy2DUnaligned_v2_ptds
        (copy: *const copy::Copy2) => copy::rows;
    cuMemcpy2DAsync 3020 cuMemcpy2DAsync_v2 / 7000 cuMemcpy2DAsync_v2_ptsz
        (copy: *const copy::Copy2, stream: usize) => copy::rows_async;
    cuMemcpy3D 3020 cuMemcpy3D_v2 / 7000 cuMemcpy3D_v2_ptds (copy: *const copy::Copy3) => copy::block;
    cuMemcpy3DAsync 3020 cuMemcpy3DAsync_v2 / 7000 cuMemcpy3DAsync_v2_ptsz
        (copy: *const copy::Copy3, stream: usize) => copy::block_async;
    cuMemcpy3DPeer 4000 cuMemcpy3DPeer / 7000 cuMemcpy3DPeer_ptds (copy: *const copy::Copy3) => copy::block;
    cuMemcpy3DPeerAsync 4000 cuMemcpy3DPeerAsync / 7000 cuMemcpy3DPeerAsync_ptsz
        (copy: *const copy::Copy3, stream: usize) => copy::block_async;
    cuMemcpyHtoA 3020 cuMemcpyHtoA_v2 / 7000 cuMemcpyHtoA_v2_ptds
        (array: usize, offset: usize, from: usize, bytes: usize) => copy::host_to_array;
    cuMemcpyHtoAAsync 3020 cuMemcpyHtoAAsync_v2 / 7000 cuMemcpyHtoAAsync_v2_ptsz
        (array: usize, offset: usize, from: usize, bytes: usize, stream: usize) =>
         copy::host_to_array_async;
    cuMemcpyAtoH 3020 cuMemcpyAtoH_v2 / 7000 cuMemcpyAtoH_v2_ptds
        (to: usize, array: usize, offset: usize, bytes: usize) => copy::array_to_host;
    cuMemcpyAtoHAsync 3020 cuMemcpyAtoHAsync_v2 / 7000 cuMemcpyAtoHAsync_v2_ptsz
        (to: usize, array: usize, offset: usize, bytes: usize, stream: usize) => copy::array_to_host_async;
    cuMemcpyDtoA 3020 cuMemcpyDtoA_v2 / 7000 cuMemcpyDtoA_v2_ptds
        (array: usize, offset: usize, from: u64, bytes: usize) => copy::device_to_array;
    cuMemcpyAtoD 3020 cuMemcpyAtoD_v2 / 7000 cuMemcpyAtoD_v2_ptds
        (to: u64, array: usize, offset: usize, bytes: usize) => copy::array_to_device;
    cuMemcpyAtoA 3020 cuMemcpyAtoA_v2 / 7000 cuMemcpyAtoA_v2_ptds
        (to: usize, to_offset: usize, from: usize, from_offset: usize, bytes: usize) =>
         copy::array_to_array;

    // Fills
    cuMemsetD8 2000 cuMemsetD8 (at: u32, value: u8, count: u32) => fill::bytes_32;
    cuMemsetD8 3020 cuMemsetD8_v2 / 7000 cuMemsetD8_v2_ptds (at: u64, value: u8, count: usize) => fill::bytes;
    cuMemsetD8Async 3020 cuMemsetD8Async / 7000 cuMemsetD8Async_ptsz
        (at: u64, value: u8, count: usize, stream: usize) => fill::bytes_async;
    cuMemsetD16 2000 cuMemsetD16 (at: u32, value: u16, count: u32) => fill::halves_32;
    cuMemsetD16 3020 cuMemsetD16_v2 / 7000 cuMemsetD16_v2_ptds (at: u64, value: u16, count: usize) => fill::halves;
    cuMemsetD16Async 3020 cuMemsetD16Async / 7000 cuMemsetD16Async_ptsz
        (at: u64, value: u16, count: usize, stream: usize) => fill::halves_async;
    cuMemsetD32 2000 cuMemsetD32 (at: u32, value: u32, count: u32) => fill::words_32;
    cuMemsetD32 3020 cuMemsetD32_v2 / 7000 cuMemsetD32_v2_ptds (at: u64, value: u32, count: usize) => fill::words;
    cuMemsetD32Async 3020 cuMemsetD32Async / 7000 cuMemsetD32Async_ptsz
        (at: u64, value: u32, count: usize, stream: usize) => fill::words_async;
    cuMemsetD2D8 2000 cuMemsetD2D8
        (at: u32, pitch: u32, value: u8, width: u32, height: u32) => fill::rows_of_bytes_32;
    cuMemsetD2D8 3020 cuMemsetD2D8_v2 / 7000 cuMemsetD2D8_v2_ptds
        (at: u64, pitch: usize, value: u8, width: usize, height: usize) => fill::rows_of_bytes;
    cuMemsetD2D8Async 3020 cuMemsetD2D8Async / 7000 cuMemsetD2D8Async_ptsz
        (at: u64, pitch: usize, value: u8, width: usize, height: usize, stream: usize) =>
         fill::rows_of_bytes_async;
    cuMemsetD2D16 2000 cuMemsetD2D16
        (at: u32, pitch: u32, value: u16, width: u32, height: u32) => fill::rows_of_halves_32;
    cuMemsetD2D16 3020 cuMemsetD2D16_v2 / 7000 cuMemsetD2D16_v2_ptds
        (at: u64, pitch: usize, value: u16, width: usize, height: usize) => fill::rows_of_halves;
    cuMemsetD2D16Async 3020 cuMemsetD2D16Async / 7000 cuMemsetD2D16Async_ptsz
        (at: u64, pitch: usize, value: u16, width: usize, height: usize, stream: usize) =>
         fill::rows_of_halves_async;
    cuMemsetD2D32 2000 cuMemsetD2D32
        (at: u32, pitch: u32, value: u32, width: u32, height: u32) => fill::rows_of_words_32;
    cuMemsetD2D32 3020 cuMemsetD2D32_v2 / 7000 cuMemsetD2D32_v2_ptds
        (at: u64, pitch: usize, value: u32, width: usize, height: usize) => fill::rows_of_words;
    cuMemsetD2D32Async 3020 cuMemsetD2D32Async / 7000 cuMemsetD2D32Async_ptsz
        (at: u64, pitch: usize, value: u32, width: usize, height: usize, stream: usize) =>
         fill::rows_of_words_async;

    // Streams and events
    cuStreamCreate 2000 cuStreamCreate (to: *mut usize, flags: c_uint) => stream::create;
    cuStreamCreateWithPriority 5050 cuStreamCreateWithPriority
        (to: *mut usize, flags: c_uint, priority: c_int) => stream::create_with_priority;
    cuStreamDestroy 2000 cuStreamDestroy (stream: usize) => stream::destroy;
    cuStreamDestroy 4000 cuStreamDestroy_v2 (stream: usize) => stream::destroy;
    cuStreamQuery 2000 cuStreamQuery / 7000 cuStreamQuery_ptsz (stream: usize) => stream::query;
    cuStreamSynchronize 2000 cuStreamSynchronize / 7000 cuStreamSynchronize_ptsz
        (stream: usize) => stream::synchronize;
    cuStreamWaitEvent 3020 cuStreamWaitEvent / 7000 cuStreamWaitEvent_ptsz
        (stream: usize, event: usize, flags: c_uint) => event::wait_in_stream;
    cuStreamAddCallback 5000 cuStreamAddCallback / 7000 cuStreamAddCallback_ptsz
        (stream: usize, callback: stream::Callback, data: *mut c_void, flags: c_uint) =>
         stream::add_callback;
    cuLaunchHostFunc 10000 cuLaunchHostFunc / 10000 cuLaunchHostFunc_ptsz
        (stream: usize, function: stream::HostFunction, data: *mut c_void) => stream::launch_host_function;
    cuLaunchHostFunc 13010 cuLaunchHostFunc_v2 / 13010 cuLaunchHostFunc_v2_ptsz
        (stream: usize, function: stream::HostFunction, data: *mut c_void, mode: c_uint) =>
         stream::launch_host_function_2;
    cuStreamGetFlags 5050 cuStreamGetFlags / 7000 cuStreamGetFlags_ptsz
        (stream: usize, flags: *mut c_uint) => stream::get_flags;
    cuStreamGetPriority 5050 cuStreamGetPriority / 7000 cuStreamGetPriority_ptsz
        (stream: usize, priority: *mut c_int) => stream::get_priority;
    cuStreamGetId 12000 cuStreamGetId / 12000 cuStreamGetId_ptsz (stream: usize, id: *mut u64) => stream::get_id;
    cuStreamGetCtx 9020 cuStreamGetCtx / 9020 cuStreamGetCtx_ptsz
        (stream: usize, context: *mut usize) => stream::get_context;
    cuStreamGetCtx 12050 cuStreamGetCtx_v2 / 12050 cuStreamGetCtx_v2_ptsz
        (stream: usize, context: *mut usize, green: *mut usize) => stream::get_context_2;
    cuStreamGetDevice 12080 cuStreamGetDevice / 12080 cuStreamGetDevice_ptsz
        (stream: usize, device: *mut c_int) => stream::get_device;
    cuStreamIsCapturing 10000 cuStreamIsCapturing / 10000 cuStreamIsCapturing_ptsz
        (stream: usize, status: *mut c_int) => stream::is_capturing;
    cuStreamGetCaptureInfo 10010 cuStreamGetCaptureInfo / 10010 cuStreamGetCaptureInfo_ptsz
        (stream: usize, status: *mut c_int, id: *mut u64) => stream::capture_info;
    cuStreamGetCaptureInfo 11030 cuStreamGetCaptureInfo_v2 / 11030 cuStreamGetCaptureInfo_v2_ptsz
        (stream: usize, status: *mut c_int, id: *mut u64, graph: *mut usize, dependencies: *mut *const
         usize, count: *mut usize) => stream::capture_info_2;
    cuStreamGetCaptureInfo 12030 cuStreamGetCaptureInfo_v3 / 12030 cuStreamGetCaptureInfo_v3_ptsz
        (stream: usize, status: *mut c_int, id: *mut u64, graph: *mut usize, dependencies: *mut *const
         usize, edges: *mut *const c_void, count: *mut usize) => stream::capture_info_3;
    cuThreadExchangeStreamCaptureMode 10010 cuThreadExchangeStreamCaptureMode
        (mode: *mut c_int) => stream::exchange_capture_mode;
    cuStreamAttachMemAsync 6000 cuStreamAttachMemAsync / 7000 cuStreamAttachMemAsync_ptsz
        (stream: usize, address: u64, bytes: usize, flags: c_uint) => stream::attach_memory;
    cuStreamWriteValue32 8000 cuStreamWriteValue32 / 8000 cuStreamWriteValue32_ptsz
        (stream: usize, address: u64, value: u32, flags: c_uint) => fill::write_value_32;
    cuStreamWriteValue32 11070 cuStreamWriteValue32_v2 / 11070 cuStreamWriteValue32_v2_ptsz
        (stream: usize, address: u64, value: u32, flags: c_uint) => fill::write_value_32;
    cuStreamWriteValue64 9000 cuStreamWriteValue64 / 9000 cuStreamWriteValue64_ptsz
        (stream: usize, address: u64, value: u64, flags: c_uint) => fill::write_value_64;
    cuStreamWriteValue64 11070 cuStreamWriteValue64_v2 / 11070 cuStreamWriteValue64_v2_ptsz
        (stream: usize, address: u64, value: u64, flags: c_uint) => fill::write_value_64;
    cuEventCreate 2000 cuEventCreate (to: *mut usize, flags: c_uint) => event::create;
    cuEventDestroy 2000 cuEventDestroy (event: usize) => event::destroy;
    cuEventDestroy 4000 cuEventDestroy_v2 (event: usize) => event::destroy;
    cuEventRecord 2000 cuEventRecord / 7000 cuEventRecord_ptsz (event: usize, stream: usize) => event::record;
    cuEventRecordWithFlags 11010 cuEventRecordWithFlags / 11010 cuEventRecordWithFlags_ptsz
        (event: usize, stream: usize, flags: c_uint) => event::record_with_flags;
    cuEventQuery 2000 cuEventQuery (event: usize) => event::query;
    cuEventSynchronize 2000 cuEventSynchronize (event: usize) => event::synchronize;
    cuEventElapsedTime 2000 cuEventElapsedTime (to: *mut f32, start: usize, end: usize) => event::elapsed_time;
    cuEventElapsedTime 12080 cuEventElapsedTime_v2 (to: *mut f32, start: usize, end: usize) => event::elapsed_time;

    // Arrays and texture references
    cuArrayCreate 3020 cuArrayCreate_v2 (to: *mut usize, descriptor: *const array::Descriptor) => array::create;
    cuArrayGetDescriptor 3020 cuArrayGetDescriptor_v2 (to: *mut array::Descriptor, array: usize) => array::descriptor;
    cuArray3DCreate 3020 cuArray3DCreate_v2
        (to: *mut usize, descriptor: *const array::Descriptor3) => array::create_3;
    cuArray3DGetDescriptor 3020 cuArray3DGetDescriptor_v2
        (to: *mut array::Descriptor3, array: usize) => array::descriptor_3;
    cuArrayDestroy 2000 cuArrayDestroy (array: usize) => array::destroy;
    cuTexRefCreate 2000 cuTexRefCreate (to: *mut usize) => texture::create;
    cuTexRefDestroy 2000 cuTexRefDestroy (reference: usize) => texture::destroy;
    cuTexRefSetArray 2000 cuTexRefSetArray (reference: usize, array: usize, flags: c_uint) => texture::set_array;
    cuTexRefSetAddress 3020 cuTexRefSetAddress_v2
        (offset: *mut usize, reference: usize, address: u64, bytes: usize) => texture::set_address;
    cuTexRefSetAddress2D 3020 cuTexRefSetAddress2D_v2
        (reference: usize, descriptor: *const array::Descriptor, address: u64, pitch: usize) =>
         texture::set_rows;
    cuTexRefSetAddress2D 4010 cuTexRefSetAddress2D_v3
        (reference: usize, descriptor: *const array::Descriptor, address: u64, pitch: usize) =>
         texture::set_rows;
    cuTexRefSetFormat 2000 cuTexRefSetFormat
        (reference: usize, format: c_int, channels: c_int) => texture::set_format;
    cuTexRefSetAddressMode 2000 cuTexRefSetAddressMode
        (reference: usize, axis: c_int, mode: c_int) => texture::set_wrap;
    cuTexRefSetFilterMode 2000 cuTexRefSetFilterMode (reference: usize, filter: c_int) => texture::set_filter;
    cuTexRefSetFlags 2000 cuTexRefSetFlags (reference: usize, flags: c_uint) => texture::set_flags;
    cuTexRefSetMaxAnisotropy 5000 cuTexRefSetMaxAnisotropy
        (reference: usize, most: c_uint) => texture::set_anisotropy;
    cuTexRefSetBorderColor 8000 cuTexRefSetBorderColor
        (reference: usize, border: *const [f32; 4]) => texture::set_border;
    cuTexRefGetAddress 3020 cuTexRefGetAddress_v2 (to: *mut u64, reference: usize) => texture::get_address;
    cuTexRefGetArray 2000 cuTexRefGetArray (to: *mut usize, reference: usize) => texture::get_array;
    cuTexRefGetAddressMode 2000 cuTexRefGetAddressMode
        (to: *mut c_int, reference: usize, axis: c_int) => texture::get_wrap;
    cuTexRefGetFilterMode 2000 cuTexRefGetFilterMode (to: *mut c_int, reference: usize) => texture::get_filter;
    cuTexRefGetFlags 2000 cuTexRefGetFlags (to: *mut c_uint, reference: usize) => texture::get_flags;
    cuTexRefGetFormat 2000 cuTexRefGetFormat
        (format: *mut c_int, channels: *mut c_int, reference: usize) => texture::get_format;
    cuTexRefGetMaxAnisotropy 5000 cuTexRefGetMaxAnisotropy
        (to: *mut c_int, reference: usize) => texture::get_anisotropy;
}
