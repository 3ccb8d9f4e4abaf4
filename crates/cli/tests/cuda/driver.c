/* A program of CUDA's driver API. Its argument names the claim to check; the module is kernels.cubin or kernels.elf. It prints the
   first condition that does not hold. Declared by hand: a toolkit is not needed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int R;
typedef int device;
typedef uint64_t address;
typedef void *handle;
struct copy2 {
    size_t from_x, from_y; unsigned from_kind; const void *from_host; address from_device; handle from_array; size_t from_pitch;
    size_t to_x, to_y; unsigned to_kind; void *to_host; address to_device; handle to_array; size_t to_pitch;
    size_t width, height;
};
struct copy3 {
    size_t from_x, from_y, from_z, from_level; unsigned from_kind; const void *from_host; address from_device; handle from_array, from_context;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_level; unsigned to_kind; void *to_host; address to_device; handle to_array, to_context;
    size_t to_pitch, to_height;
    size_t width, height, depth;
};
struct array { size_t width, height; int format; unsigned channels; };
struct config { unsigned grid[3], block[3], shared; handle stream; void *attributes; unsigned count; };

R cuInit(unsigned), cuDriverGetVersion(int *), cuDeviceGet(device *, int), cuDeviceGetCount(int *);
R cuDeviceGetName(char *, int, device), cuDeviceGetAttribute(int *, int, device), cuDeviceTotalMem_v2(size_t *, device);
R cuDevicePrimaryCtxRetain(handle *, device), cuDevicePrimaryCtxRelease_v2(device);
R cuDevicePrimaryCtxGetState(device, unsigned *, int *), cuDevicePrimaryCtxReset_v2(device);
R cuDeviceGetTexture1DLinearMaxWidth(size_t *, int, unsigned, device), cuDeviceGetExecAffinitySupport(int *, int, device);
R cuCtxCreate_v2(handle *, unsigned, device), cuCtxDestroy_v2(handle), cuCtxPushCurrent_v2(handle), cuCtxPopCurrent_v2(handle *);
R cuCtxSetCurrent(handle), cuCtxGetCurrent(handle *), cuCtxSynchronize(void), cuCtxGetLimit(size_t *, int), cuCtxGetDevice(device *);
R cuModuleLoad(handle *, const char *), cuModuleLoadData(handle *, const void *), cuModuleUnload(handle);
R cuModuleGetFunction(handle *, handle, const char *), cuModuleGetGlobal_v2(address *, size_t *, handle, const char *);
R cuModuleLoadDataEx(handle *, const void *, unsigned, int *, void **), cuLibraryUnload(handle), cuLibraryGetModule(handle *, handle);
R cuLibraryLoadFromFile(handle *, const char *, int *, void **, unsigned, int *, void **, unsigned);
R cuFuncGetAttribute(int *, int, handle);
R cuLaunchKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **);
R cuLaunchKernelEx(const struct config *, handle, void **, void **);
R cuFuncSetBlockShape(handle, int, int, int), cuParamSetSize(handle, unsigned), cuParamSeti(handle, int, unsigned);
R cuParamSetv(handle, int, void *, unsigned), cuLaunchGrid(handle, int, int);
R cuMemAlloc_v2(address *, size_t), cuMemFree_v2(address), cuMemGetInfo_v2(size_t *, size_t *);
R cuMemAlloc(uint32_t *, uint32_t), cuMemFree(uint32_t), cuMemFreeAsync(address, handle);
R cuMemsetD8Async(address, uint8_t, size_t, handle);
R cuMemAllocPitch_v2(address *, size_t *, size_t, size_t, unsigned), cuMemGetAddressRange_v2(address *, size_t *, address);
R cuMemHostAlloc(void **, size_t, unsigned), cuMemFreeHost(void *), cuMemHostGetDevicePointer_v2(address *, void *, unsigned);
R cuMemHostRegister_v2(void *, size_t, unsigned), cuMemHostUnregister(void *);
R cuPointerGetAttribute(void *, int, address);
R cuMemcpyHtoD_v2(address, const void *, size_t), cuMemcpyDtoH_v2(void *, address, size_t), cuMemcpyDtoD_v2(address, address, size_t);
R cuMemcpyHtoDAsync_v2(address, const void *, size_t, handle), cuMemcpyDtoHAsync_v2(void *, address, size_t, handle);
R cuMemcpy(address, address, size_t), cuMemcpy2D_v2(const struct copy2 *), cuMemcpy3D_v2(const struct copy3 *);
R cuMemsetD8_v2(address, uint8_t, size_t), cuMemsetD16_v2(address, uint16_t, size_t), cuMemsetD32_v2(address, uint32_t, size_t);
R cuMemsetD2D32_v2(address, size_t, uint32_t, size_t, size_t);
R cuArrayCreate_v2(handle *, const struct array *), cuArrayDestroy(handle);
R cuModuleGetTexRef(handle *, handle, const char *), cuTexRefSetAddress_v2(size_t *, handle, address, size_t);
R cuTexRefSetArray(handle, handle, unsigned), cuTexRefSetFormat(handle, int, int), cuTexRefSetFlags(handle, unsigned);
R cuTexRefSetAddress2D_v3(handle, const struct array *, address, size_t);
R cuTexRefSetFilterMode(handle, int), cuTexRefGetFormat(int *, int *, handle);
R cuStreamCreate(handle *, unsigned), cuStreamDestroy_v2(handle), cuStreamQuery(handle), cuStreamSynchronize(handle);
R cuStreamWaitEvent(handle, handle, unsigned), cuLaunchHostFunc(handle, void (*)(void *), void *);
R cuStreamAddCallback(handle, void (*)(handle, R, void *), void *, unsigned);
R cuEventCreate(handle *, unsigned), cuEventDestroy_v2(handle), cuEventRecord(handle, handle), cuEventQuery(handle);
R cuEventSynchronize(handle), cuEventElapsedTime(float *, handle, handle);
R cuGetErrorName(R, const char **), cuGetErrorString(R, const char **);
R cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *), cuGraphCreate(handle *, unsigned);
R cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, handle, int, size_t);
R cuOccupancyMaxPotentialBlockSize(int *, int *, handle, size_t (*)(int), size_t, int);

static const char *image = "kernels.elf";

static void is(long found, long expected, const char *what, int line) {
    if (found != expected) {
        fprintf(stderr, "driver.c:%d: %s is %ld, expected %ld\n", line, what, found, expected);
        _exit(1);
    }
}
#define IS(found, expected) is((long)(found), (long)(expected), #found, __LINE__)
#define OK(call) IS(call, 0)

enum { VALUE = 1, MEMORY = 2, UNINITIALIZED = 3, DEVICE = 101, IMAGE = 200, CONTEXT = 201, LIMIT = 215, NO_BINARY = 209, NO_COMPILER = 221,
       NO_FILE = 301, HANDLE = 400, ABSENT = 500, NOT_READY = 600, ILLEGAL = 700, RESOURCES = 701, DESTROYED = 709, REGISTERED = 712,
       NOT_REGISTERED = 713, PERMITTED = 800, UNSUPPORTED = 801 };

static handle start(handle *module) {
    handle context;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoad(module, image));
    return context;
}

static handle kernel(handle module, const char *name) {
    handle function;
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

/* Before cuInit, without a context, and with wrong arguments. */
static void wrong_arguments_have_the_documented_errors(void) {
    handle context, module, function, other;
    address memory, range;
    size_t free, total, bytes;
    int number;
    uint32_t words[16];
    const char *text;
    IS(cuDeviceGet(&number, 0), UNINITIALIZED);
    IS(cuMemAlloc_v2(&memory, 4), UNINITIALIZED);
    IS(cuInit(1), VALUE);
    OK(cuInit(0));
    IS(cuDeviceGet(&number, 1), DEVICE);
    IS(cuDeviceGet(&number, -1), DEVICE);
    IS(cuDeviceGet(NULL, 0), VALUE);
    IS(cuDeviceGetAttribute(&number, 100000, 0), VALUE);
    IS(cuDeviceGetAttribute(&number, 1, 7), DEVICE);
    IS(cuMemAlloc_v2(&memory, 4), CONTEXT);
    IS(cuCtxSynchronize(), CONTEXT);
    IS(cuModuleLoadData(&module, "x"), CONTEXT);
    IS(cuCtxPopCurrent_v2(&context), CONTEXT);
    IS(cuCtxSetCurrent((handle)1234), CONTEXT);
    IS(cuCtxDestroy_v2(NULL), CONTEXT);
    IS(cuCtxCreate_v2(&context, 3, 0), VALUE);
    IS(cuCtxCreate_v2(&context, 0, 5), DEVICE);
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuCtxGetCurrent(&other));
    IS(other == context, 1);
    IS(cuMemAlloc_v2(&memory, 0), VALUE);
    IS(cuMemAlloc_v2(NULL, 4), VALUE);
    IS(cuMemAlloc_v2(&memory, (size_t)1 << 40), MEMORY);
    IS(cuCtxGetLimit(&bytes, 0), LIMIT);
    IS(cuModuleLoad(&module, "no-such-file"), NO_FILE);
    IS(cuModuleLoadData(&module, "neither a cubin nor anything else"), IMAGE);
    IS(cuModuleLoadData(&module, "\n.version 1.4\n.target sm_13\n"), NO_COMPILER);
    IS(cuModuleLoadData(&module, NULL), VALUE);
    OK(cuModuleLoad(&module, image));
    IS(cuModuleGetFunction(&function, module, "absent"), ABSENT);
    IS(cuModuleGetGlobal_v2(&memory, &bytes, module, "absent"), ABSENT);
    IS(cuModuleGetFunction(&function, (handle)1234, "fill"), HANDLE);
    function = kernel(module, "fill");
    IS(cuFuncGetAttribute(&number, 1000, function), VALUE);
    IS(cuFuncGetAttribute(&number, 0, (handle)1234), HANDLE);
    OK(cuMemAlloc_v2(&memory, 64));
    uint32_t to = memory, count = 16, value = 1;
    void *parameters[] = { &to, &count, &value }, *extra[] = { (void *)1, words, (void *)7, NULL };
    IS(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), HANDLE);
    IS(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), VALUE);
    IS(cuLaunchKernel(function, 1, 1, 2, 1, 1, 1, 0, NULL, parameters, NULL), VALUE);
    IS(cuLaunchKernel(function, 65536, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), VALUE);
    IS(cuLaunchKernel(function, 1, 1, 1, 513, 1, 1, 0, NULL, parameters, NULL), VALUE);
    IS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 65, 0, NULL, parameters, NULL), VALUE);
    IS(cuLaunchKernel(function, 1, 1, 1, 16, 0, 1, 0, NULL, parameters, NULL), VALUE);
    IS(cuLaunchKernel(function, 1, 1, 1, 16, 1, 1, 16384, NULL, parameters, NULL), VALUE);
    IS(cuLaunchKernel(function, 1, 1, 1, 16, 1, 1, 0, NULL, parameters, extra), VALUE);
    IS(cuLaunchKernel(function, 1, 1, 1, 16, 1, 1, 0, NULL, NULL, extra), VALUE);
    IS(cuLaunchKernel(function, 1, 1, 1, 16, 1, 1, 0, (handle)1234, parameters, NULL), HANDLE);
    IS(cuMemcpyHtoD_v2(memory, words, 65), VALUE);
    IS(cuMemcpyDtoH_v2(words, memory + 4, 64), VALUE);
    IS(cuMemcpyHtoD_v2(memory, NULL, 4), VALUE);
    IS(cuMemcpyHtoD_v2(12, words, 4), VALUE);
    OK(cuMemcpyHtoD_v2(memory, words, 0));
    IS(cuMemsetD16_v2(memory + 1, 0, 1), VALUE);
    IS(cuMemsetD32_v2(memory, 0, 17), VALUE);
    IS(cuMemFree_v2(memory + 4), VALUE);
    IS(cuMemGetAddressRange_v2(&range, &bytes, 12), ABSENT);
    OK(cuMemGetAddressRange_v2(&range, &bytes, memory + 60));
    IS(range == memory && bytes == 64, 1);
    OK(cuMemGetInfo_v2(&free, &total));
    OK(cuMemFree_v2(memory));
    IS(cuMemFree_v2(memory), VALUE);
    OK(cuMemGetInfo_v2(&bytes, &total));
    IS(bytes - free, 256);
    IS(cuStreamQuery((handle)1234), HANDLE);
    IS(cuStreamCreate(&other, 2), VALUE);
    IS(cuEventRecord((handle)1234, NULL), HANDLE);
    IS(cuEventCreate(&other, 64), VALUE);
    IS(cuPointerGetAttribute(&number, 2, (address)(uintptr_t)words), VALUE);
    IS(cuMemFreeHost(words), VALUE);
    IS(cuMemHostUnregister(words), NOT_REGISTERED);
    OK(cuMemHostRegister_v2(words, sizeof words, 0));
    IS(cuMemHostRegister_v2(words + 1, 4, 0), REGISTERED);
    OK(cuMemHostUnregister(words));
    IS(cuGetErrorName(12345, &text), VALUE);
    OK(cuGetErrorName(ILLEGAL, &text));
    IS(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"), 0);
    OK(cuGetErrorString(VALUE, &text));
    IS(strcmp(text, "invalid argument"), 0);
    IS(cuGraphCreate(&other, 0), UNSUPPORTED);
    void *found;
    int status;
    OK(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status));
    IS(found == (void *)cuMemAlloc_v2 && status == 0, 1);
    OK(cuGetProcAddress_v2("cuSomethingElse", &found, 12000, 0, &status));
    IS(found == NULL && status == 1, 1);
    OK(cuGetProcAddress_v2("cuLibraryLoadData", &found, 11000, 0, &status));
    IS(found == NULL && status == 2, 1);
    IS(cuGetProcAddress_v2("cuInit", &found, 99999, 0, &status), VALUE);
    OK(cuModuleUnload(module));
    IS(cuModuleUnload(module), HANDLE);
    IS(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), HANDLE);
    OK(cuCtxDestroy_v2(context));
    IS(cuCtxDestroy_v2(context), CONTEXT);
    IS(cuMemAlloc_v2(&memory, 4), CONTEXT);
}

static void expect_filled(address memory, uint32_t value) {
    uint32_t words[64];
    memset(words, 0xee, sizeof words);
    OK(cuMemcpyDtoH_v2(words, memory, sizeof words));
    for (int i = 0; i < 64; i++)
        IS(words[i], i < 60 ? value + i : 7);
}

/* kernelParams, extra, a configuration, and the functions of CUDA 3. */
static void parameters_reach_the_kernel_in_every_way(void) {
    handle module;
    start(&module);
    handle function = kernel(module, "fill");
    address memory;
    OK(cuMemAlloc_v2(&memory, 256));
    uint32_t to = memory, count = 60, value = 100, area[3] = { memory, 60, 200 };
    void *parameters[] = { &to, &count, &value };
    OK(cuMemsetD32_v2(memory, 7, 64));
    OK(cuLaunchKernel(function, 4, 1, 1, 16, 1, 1, 0, NULL, parameters, NULL));
    expect_filled(memory, 100);
    size_t size = sizeof area;
    void *extra[] = { (void *)1, area, (void *)2, &size, NULL };
    OK(cuLaunchKernel(function, 4, 1, 1, 16, 1, 1, 0, NULL, NULL, extra));
    expect_filled(memory, 200);
    struct config config = { { 2, 1, 1 }, { 32, 1, 1 }, 0, NULL, NULL, 0 };
    value = 300;
    OK(cuLaunchKernelEx(&config, function, parameters, NULL));
    expect_filled(memory, 300);
    OK(cuFuncSetBlockShape(function, 64, 1, 1));
    OK(cuParamSetv(function, 0, &to, 4));
    OK(cuParamSeti(function, 4, 60));
    OK(cuParamSeti(function, 8, 400));
    OK(cuParamSetSize(function, 12));
    OK(cuLaunchGrid(function, 1, 1));
    expect_filled(memory, 400);
}

static void variables_of_a_module_are_memory(void) {
    handle module;
    start(&module);
    address memory, scale, table;
    size_t bytes;
    float numbers[8], factor = 3;
    uint32_t words[8], one[4] = { 9, 8, 7, 6 };
    OK(cuMemAlloc_v2(&memory, 32));
    uint32_t to = memory;
    void *parameters[] = { &to };
    handle scaled = kernel(module, "scaled"), looked = kernel(module, "looked");
    for (int i = 0; i < 8; i++) numbers[i] = i;
    OK(cuMemcpyHtoD_v2(memory, numbers, 32));
    OK(cuLaunchKernel(scaled, 1, 1, 1, 8, 1, 1, 0, NULL, parameters, NULL));
    OK(cuModuleGetGlobal_v2(&scale, &bytes, module, "scale"));
    IS(bytes, 4);
    OK(cuMemcpyHtoD_v2(scale, &factor, 4));
    OK(cuLaunchKernel(scaled, 1, 1, 1, 8, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(numbers, memory, 32));
    for (int i = 0; i < 8; i++) IS(numbers[i], 6 * i);
    OK(cuLaunchKernel(looked, 1, 1, 1, 8, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(words, memory, 32));
    for (int i = 0; i < 8; i++) IS(words[i], 1 + i % 4);
    OK(cuModuleGetGlobal_v2(&table, &bytes, module, "table"));
    IS(bytes, 16);
    OK(cuMemcpyHtoD_v2(table, one, 16));
    OK(cuLaunchKernel(looked, 1, 1, 1, 8, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(words, memory, 32));
    for (int i = 0; i < 8; i++) IS(words[i], 9 - i % 4);
    OK(cuLaunchKernel(kernel(module, "turned"), 1, 1, 1, 8, 1, 1, 256, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(words, memory, 32));
    for (int i = 0; i < 8; i++) IS(words[i], 7 - i);
}

static void copies_and_fills_move_the_bytes_that_they_name(void) {
    handle module, array;
    start(&module);
    address memory, second, pitched;
    size_t pitch;
    uint8_t bytes[64], back[64];
    uint32_t old;
    for (int i = 0; i < 64; i++) bytes[i] = i;
    OK(cuMemAlloc_v2(&memory, 64));
    OK(cuMemAlloc_v2(&second, 64));
    IS(memory < (1ull << 32) && memory % 256 == 0, 1);
    OK(cuMemcpyHtoD_v2(memory, bytes, 64));
    OK(cuMemcpyDtoD_v2(second, memory + 1, 63));
    OK(cuMemcpyDtoH_v2(back, second, 63));
    IS(memcmp(back, bytes + 1, 63), 0);
    OK(cuMemcpy((address)(uintptr_t)back, memory, 64));
    IS(memcmp(back, bytes, 64), 0);
    OK(cuMemsetD8_v2(memory, 0x11, 3));
    OK(cuMemsetD16_v2(memory + 4, 0x2233, 2));
    OK(cuMemcpyDtoH_v2(back, memory, 9));
    IS(memcmp(back, "\x11\x11\x11\x03\x33\x22\x33\x22\x08", 9), 0);
    OK(cuMemAllocPitch_v2(&pitched, &pitch, 12, 4, 4));
    IS(pitch % 256 == 0 && pitch >= 12, 1);
    OK(cuMemsetD2D32_v2(pitched, pitch, 5, 3, 4));
    struct copy2 copy = { .from_kind = 2, .from_device = pitched, .from_pitch = pitch, .to_kind = 1, .to_host = back, .to_pitch = 16,
                          .to_x = 4, .width = 12, .height = 4 };
    memset(back, 0, 64);
    OK(cuMemcpy2D_v2(&copy));
    for (int i = 0; i < 64; i++) IS(back[i], i % 16 >= 4 && i % 4 == 0 ? 5 : 0);
    copy.to_pitch = 12;
    IS(cuMemcpy2D_v2(&copy), VALUE);
    struct array of = { 4, 4, 3, 1 };
    OK(cuArrayCreate_v2(&array, &of));
    struct copy2 in = { .from_kind = 1, .from_host = bytes, .from_pitch = 16, .to_kind = 3, .to_array = array, .width = 16, .height = 4 };
    OK(cuMemcpy2D_v2(&in));
    struct copy2 out = { .from_kind = 3, .from_array = array, .from_x = 4, .from_y = 1, .to_kind = 1, .to_host = back, .to_pitch = 12,
                         .width = 12, .height = 3 };
    OK(cuMemcpy2D_v2(&out));
    IS(back[0] == 20 && back[12] == 36 && back[35] == 63, 1);
    OK(cuArrayDestroy(array));
    IS(cuArrayDestroy(array), HANDLE);
    OK(cuMemAlloc(&old, 64));
    OK(cuMemFree(old));
}

static void textures_read_linear_memory_and_arrays(void) {
    handle module, row, picture, array;
    start(&module);
    address memory, out;
    size_t offset;
    int format, channels;
    uint32_t words[8];
    uint8_t bytes[32];
    float numbers[8];
    for (int i = 0; i < 8; i++) words[i] = 100 + i;
    for (int i = 0; i < 32; i++) bytes[i] = 8 * i;
    OK(cuMemAlloc_v2(&memory, 32));
    OK(cuMemAlloc_v2(&out, 32));
    OK(cuMemcpyHtoD_v2(memory, words, 32));
    OK(cuModuleGetTexRef(&row, module, "row"));
    IS(cuModuleGetTexRef(&picture, module, "absent"), ABSENT);
    OK(cuModuleGetTexRef(&picture, module, "picture"));
    OK(cuTexRefSetFormat(row, 3, 1));
    OK(cuTexRefSetFlags(row, 1));
    OK(cuTexRefSetAddress_v2(&offset, row, memory, 32));
    IS(offset, 0);
    uint32_t to = out;
    void *parameters[] = { &to };
    OK(cuLaunchKernel(kernel(module, "fetched"), 1, 1, 1, 8, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(words, out, 32));
    for (int i = 0; i < 8; i++) IS(words[i], 100 + i);
    /* Bytes as floats from 0 to 1. */
    struct array of = { 8, 4, 1, 1 };
    OK(cuArrayCreate_v2(&array, &of));
    struct copy2 copy = { .from_kind = 1, .from_host = bytes, .from_pitch = 8, .to_kind = 3, .to_array = array, .width = 8, .height = 4 };
    OK(cuMemcpy2D_v2(&copy));
    OK(cuTexRefSetArray(picture, array, 1));
    OK(cuTexRefGetFormat(&format, &channels, picture));
    IS(format == 1 && channels == 1, 1);
    for (int filter = 0; filter < 2; filter++) {
        OK(cuTexRefSetFilterMode(picture, filter));
        OK(cuLaunchKernel(kernel(module, "sampled"), 1, 1, 1, 8, 1, 1, 0, NULL, parameters, NULL));
        OK(cuMemcpyDtoH_v2(numbers, out, 32));
        for (int i = 0; i < 8; i++) IS(numbers[i] * 255 + 0.5f, 8 * (8 + i));
    }
}

static void a_kernel_reaches_mapped_memory_of_the_host(void) {
    handle module;
    start(&module);
    uint32_t *words;
    address device;
    OK(cuMemHostAlloc((void **)&words, 256, 2));
    OK(cuMemHostGetDevicePointer_v2(&device, words, 0));
    for (int i = 0; i < 64; i++) words[i] = 7;
    uint32_t to = device, count = 60, value = 100;
    void *parameters[] = { &to, &count, &value };
    OK(cuLaunchKernel(kernel(module, "fill"), 1, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    OK(cuCtxSynchronize());
    for (int i = 0; i < 64; i++) IS(words[i], i < 60 ? 100 + i : 7);
    OK(cuMemFreeHost(words));
}

static void a_trap_stays_until_the_context_ends(void) {
    handle module, context = start(&module), event;
    address memory;
    size_t free, total;
    OK(cuMemAlloc_v2(&memory, 4));
    uint32_t to = memory;
    void *parameters[] = { &to };
    OK(cuEventCreate(&event, 0));
    OK(cuLaunchKernel(kernel(module, "wild"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    IS(cuCtxSynchronize(), ILLEGAL);
    IS(cuMemAlloc_v2(&memory, 4), ILLEGAL);
    IS(cuMemcpyDtoH_v2(&to, memory, 4), ILLEGAL);
    IS(cuStreamQuery(NULL), ILLEGAL);
    IS(cuEventQuery(event), ILLEGAL);
    IS(cuCtxSynchronize(), ILLEGAL);
    OK(cuCtxDestroy_v2(context));
    start(&module);
    OK(cuMemGetInfo_v2(&free, &total));
    OK(cuMemAlloc_v2(&memory, 4));
    OK(cuCtxSynchronize());
}

static volatile int go, ran;

static void held(void *data) {
    handle event;
    while (!go) usleep(1000);
    /* A function that a stream runs must not call CUDA. */
    ran = 10 * ran + (long)data;
    IS(cuEventCreate(&event, 0), PERMITTED);
}

static void noted(void *data) { ran = 10 * ran + (long)data; }

static void called(handle stream, R error, void *data) {
    (void)stream;
    ran = 10 * ran + (long)data + error;
}

/* A function of the program holds a stream up, and others continue. */
static void streams_and_events_are_in_order(void) {
    handle module, one, two, events[3];
    float time;
    start(&module);
    OK(cuStreamCreate(&one, 1));
    OK(cuStreamCreate(&two, 1));
    for (int i = 0; i < 3; i++) OK(cuEventCreate(&events[i], i == 2 ? 2 : 0));
    OK(cuEventQuery(events[0]));
    IS(cuEventElapsedTime(&time, events[0], events[1]), HANDLE);
    OK(cuEventRecord(events[0], one));
    OK(cuLaunchHostFunc(one, held, (void *)1));
    OK(cuEventRecord(events[1], one));
    OK(cuStreamWaitEvent(two, events[1], 0));
    OK(cuLaunchHostFunc(two, noted, (void *)3));
    OK(cuStreamAddCallback(two, called, (void *)4, 0));
    OK(cuStreamQuery(NULL));
    IS(cuStreamQuery(one), NOT_READY);
    IS(cuStreamQuery(two), NOT_READY);
    IS(cuEventQuery(events[1]), NOT_READY);
    IS(cuEventElapsedTime(&time, events[0], events[1]), NOT_READY);
    /* Memory that is not pinned is read before the call returns. */
    address memory;
    uint32_t word = 5, *pinned;
    OK(cuMemHostAlloc((void **)&pinned, 4, 0));
    OK(cuMemAlloc_v2(&memory, 4));
    OK(cuMemcpyHtoDAsync_v2(memory, &word, 4, one));
    word = 6;
    OK(cuMemcpyDtoHAsync_v2(pinned, memory, 4, one));
    go = 1;
    OK(cuEventSynchronize(events[1]));
    OK(cuStreamSynchronize(two));
    IS(ran, 134);
    OK(cuStreamSynchronize(one));
    IS(*pinned, 5);
    OK(cuEventElapsedTime(&time, events[0], events[1]));
    IS(time > 0, 1);
    OK(cuEventRecord(events[2], one));
    IS(cuEventElapsedTime(&time, events[0], events[2]), HANDLE);
    OK(cuStreamDestroy_v2(one));
    IS(cuStreamQuery(one), HANDLE);
    OK(cuMemFreeHost(pinned));
}

struct work { handle context, function; int number; };

static void *worker(void *data) {
    struct work *work = data;
    handle streams[4];
    address memory[4];
    uint32_t *back[4];
    OK(cuCtxPushCurrent_v2(work->context));
    for (int s = 0; s < 4; s++) {
        OK(cuStreamCreate(&streams[s], s & 1));
        OK(cuMemAlloc_v2(&memory[s], 256));
        OK(cuMemHostAlloc((void **)&back[s], 256, 0));
    }
    for (int turn = 0; turn < 50; turn++) {
        uint32_t value[4];
        for (int s = 0; s < 4; s++) {
            uint32_t to = memory[s], count = 64;
            value[s] = 1000 * work->number + 100 * s + turn;
            void *parameters[] = { &to, &count, &value[s] };
            OK(cuLaunchKernel(work->function, 2, 1, 1, 32, 1, 1, 0, streams[s], parameters, NULL));
            OK(cuMemcpyDtoHAsync_v2(back[s], memory[s], 256, streams[s]));
        }
        for (int s = 0; s < 4; s++) {
            OK(cuStreamSynchronize(streams[s]));
            for (int i = 0; i < 64; i++) IS(back[s][i], value[s] + i);
        }
    }
    for (int s = 0; s < 4; s++) {
        OK(cuStreamDestroy_v2(streams[s]));
        OK(cuMemFree_v2(memory[s]));
        OK(cuMemFreeHost(back[s]));
    }
    return NULL;
}

static void four_threads_use_four_streams_each(void) {
    handle module, context = start(&module), function = kernel(module, "fill");
    pthread_t threads[4];
    struct work work[4];
    for (int t = 0; t < 4; t++) {
        work[t] = (struct work){ context, function, t };
        pthread_create(&threads[t], NULL, worker, &work[t]);
    }
    for (int t = 0; t < 4; t++) pthread_join(threads[t], NULL);
    size_t free, total;
    OK(cuMemGetInfo_v2(&free, &total));
    IS(total - free < 4096, 1);
}

static void contexts_are_a_stack_and_the_primary_one_counts(void) {
    handle one, two, primary, same, found;
    unsigned flags;
    int active;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&one, 0, 0));
    OK(cuCtxCreate_v2(&two, 0, 0));
    OK(cuCtxPopCurrent_v2(&found));
    IS(found == two, 1);
    OK(cuCtxGetCurrent(&found));
    IS(found == one, 1);
    OK(cuCtxDestroy_v2(two));
    OK(cuCtxDestroy_v2(one));
    OK(cuCtxGetCurrent(&found));
    IS(found == NULL, 1);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    IS(active, 0);
    IS(cuDevicePrimaryCtxRelease_v2(0), CONTEXT);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuDevicePrimaryCtxRetain(&same, 0));
    IS(primary == same, 1);
    IS(cuCtxDestroy_v2(primary), CONTEXT);
    OK(cuCtxSetCurrent(primary));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxRelease_v2(0));
    IS(cuCtxSynchronize(), DESTROYED);
}

static void attributes_are_those_of_the_chip(void) {
    handle module;
    int number, grid, block, expected = atoi(getenv("EXPECTED_MINOR"));
    char name[64];
    start(&module);
    OK(cuDeviceGetAttribute(&number, 75, 0));
    IS(number, 1);
    OK(cuDeviceGetAttribute(&number, 76, 0));
    IS(number, expected);
    OK(cuDeviceGetAttribute(&number, 12, 0));
    IS(number, expected < 2 ? 8192 : 16384);
    OK(cuDeviceGetName(name, sizeof name, 0));
    handle function = kernel(module, "fill");
    int values[7] = { 512, 28, 0, 0, 4, 11, 11 };
    for (int i = 0; i < 7; i++) {
        OK(cuFuncGetAttribute(&number, i, function));
        IS(number, values[i]);
    }
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, function, 128, 0));
    IS(number, expected < 2 ? 6 : 8);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 0));
    IS(block, expected < 2 ? 384 : 512);
}

/* Each of these pointers, sizes and handles is refused, and nothing after it waits. */
static void hostile_arguments_are_errors(void) {
    handle module, context = start(&module), library, event, other, texture;
    address memory, mapped;
    void *host;
    float time = 1;
    size_t size;
    int number;
    uint64_t wrapper[2] = { 0x466243b1, (uint64_t)wrapper };
    uint32_t bytes[16] = { 0 };
    OK(cuMemAlloc_v2(&memory, 4096));
    IS(cuModuleLoadData(&other, wrapper), IMAGE);
    /* The logs of a compiler that has nothing to say. */
    char log[4] = "log";
    int options[] = { 3, 4 };
    void *values[] = { log, (void *)sizeof log };
    IS(cuModuleLoadDataEx(&other, wrapper, 2, options, values), IMAGE);
    IS(log[0], 0);
    IS((size_t)values[1], 0);
    OK(cuLibraryLoadFromFile(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetModule(&other, library));
    IS(cuModuleUnload(other), PERMITTED);
    OK(cuLibraryUnload(library));
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, NULL));
    OK(cuEventElapsedTime(&time, event, event));
    IS(time == 0, 1);
    IS(cuMemHostRegister_v2((void *)16, -300, 2), VALUE);
    IS(cuMemHostRegister_v2((void *)0x10000, 4096, 2), VALUE);
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(cuMemHostRegister_v2(pages, 4096, 2));
    IS(cuMemHostRegister_v2(pages + 100, 40, 2), REGISTERED);
    OK(cuMemHostGetDevicePointer_v2(&mapped, pages, 0));
    /* Both sides are the same memory. */
    for (int i = 0; i < 100; i++) pages[i] = i;
    OK(cuMemcpyDtoH_v2(pages + 1, mapped, 99));
    IS(pages[99], 98);
    OK(cuMemcpyDtoD_v2(mapped, mapped + 1, 99));
    IS(pages[98], 98);
    IS(cuMemFreeHost(pages), VALUE);
    OK(cuMemHostUnregister(pages));
    IS(cuMemHostUnregister(pages), NOT_REGISTERED);
    IS(cuMemHostAlloc(&host, (size_t)1 << 60, 2), MEMORY);
    OK(cuMemHostAlloc(&host, 100, 2));
    OK(cuMemFreeHost(host));
    IS(cuMemFreeHost(host), VALUE);
    IS(cuMemcpyHtoD_v2(memory - 1, bytes, 2), VALUE);
    IS(cuMemcpyHtoD_v2(memory + 4095, bytes, 2), VALUE);
    IS(cuMemcpy(memory, memory + 0x1000000, 4), VALUE);
    struct copy2 rows = { .from_kind = 1, .from_x = 64, .to_kind = 2, .to_device = memory, .width = 4, .height = 1 };
    IS(cuMemcpy2D_v2(&rows), VALUE);
    rows.from_host = bytes, rows.from_x = 0, rows.from_y = -1;
    IS(cuMemcpy2D_v2(&rows), VALUE);
    struct copy3 block = { .from_kind = 2, .from_device = memory, .from_pitch = 0x7fffffff, .from_height = ((size_t)1 << 33) + 3,
                           .to_kind = 2, .to_device = memory, .to_pitch = 4, .to_height = 1, .width = 4, .height = 1, .depth = 3 };
    IS(cuMemcpy3D_v2(&block), VALUE);
    OK(cuModuleGetTexRef(&texture, module, "picture"));
    struct array texels = { 16, 16, 1, 1 };
    IS(cuTexRefSetAddress2D_v3(texture, &texels, memory, (size_t)1 << 62), VALUE);
    IS(cuDeviceGetTexture1DLinearMaxWidth(&size, 7, 1, 0), VALUE);
    IS(cuDeviceGetExecAffinitySupport(&number, 7, 0), VALUE);
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy_v2(context));
}

static handle at_exit_context, at_exit_module;

static void at_exit(void) {
    handle current, stream;
    uint32_t memory, count = 4, value = 1;
    void *parameters[] = { &memory, &count, &value };
    OK(cuCtxGetCurrent(&current));
    IS(current == at_exit_context, 1);
    OK(cuMemAlloc(&memory, 16));
    OK(cuStreamCreate(&stream, 0));
    handle function = kernel(at_exit_module, "fill"), streams[] = { NULL, (handle)2, stream };
    for (int i = 0; i < 3; i++) OK(cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, streams[i], parameters, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemFree(memory));
    OK(cuModuleUnload(at_exit_module));
    OK(cuCtxDestroy_v2(current));
}

/* As destructors of C++ do, after the variables of the main thread were dropped. */
static void a_context_is_usable_at_exit(void) {
    atexit(at_exit);
    at_exit_context = start(&at_exit_module);
    OK(cuCtxSynchronize());
}

static void hold(void *pipe) {
    char byte;
    if (read(*(int *)pipe, &byte, 1) < 0) _exit(1);
}

static void a_child_loses_contexts_with_busy_streams(void) {
    handle module, context = start(&module), stream, other;
    address memory;
    int ends[2], status;
    IS(pipe(ends), 0);
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemAlloc_v2(&memory, 4));
    OK(cuLaunchHostFunc(stream, hold, ends));
    pid_t child = fork();
    if (!child) {
        IS(cuMemsetD8_v2(memory, 1, 4), DESTROYED);
        IS(cuCtxSynchronize(), DESTROYED);
        OK(cuCtxCreate_v2(&other, 0, 0));
        OK(cuMemAlloc_v2(&memory, 4));
        OK(cuMemsetD8_v2(memory, 1, 4));
        OK(cuCtxDestroy_v2(other));
        _exit(0);
    }
    IS(waitpid(child, &status, 0), child);
    IS(status, 0);
    IS(write(ends[1], "", 1), 1);
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy_v2(context));
}

static void a_stream_frees_memory_once(void) {
    handle module, context = start(&module), stream;
    address memory;
    int ends[2];
    IS(pipe(ends), 0);
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemAlloc_v2(&memory, 4));
    OK(cuLaunchHostFunc(stream, hold, ends));
    OK(cuMemsetD8Async(memory, 1, 4, stream));
    OK(cuMemFreeAsync(memory, stream));
    IS(cuMemFreeAsync(memory, stream), VALUE);
    IS(cuMemFree_v2(memory), VALUE);
    IS(write(ends[1], "", 1), 1);
    OK(cuCtxSynchronize());
    IS(cuMemsetD8_v2(memory, 1, 4), VALUE);
    OK(cuCtxDestroy_v2(context));
}

static void a_reset_does_not_release_the_primary_context(void) {
    handle primary, same;
    unsigned flags;
    int active;
    address memory;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    IS(active, 0);
    OK(cuDevicePrimaryCtxRetain(&same, 0));
    OK(cuCtxSetCurrent(same));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuMemAlloc_v2(&memory, 4));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    IS(cuMemFree_v2(memory), DESTROYED);
    IS(cuDevicePrimaryCtxRelease_v2(0), CONTEXT);
}

/* Uses a context that ends meanwhile. Any result is right, as long as there is one. */
static void *user(void *data) {
    struct work *work = data;
    cuCtxSetCurrent(work->context);
    for (int turn = 0; turn < 200; turn++) {
        handle stream, events[2];
        address memory = 0;
        uint32_t words[64] = { 0 }, count = 64, value = 1;
        float time;
        cuMemAlloc_v2(&memory, sizeof words);
        uint32_t to = memory;
        void *parameters[] = { &to, &count, &value };
        if (cuStreamCreate(&stream, turn & 1) || cuEventCreate(&events[0], 0) || cuEventCreate(&events[1], 0)) continue;
        cuMemcpyHtoDAsync_v2(memory, words, sizeof words, stream);
        cuEventRecord(events[0], stream);
        cuLaunchKernel(work->function, 2, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
        cuEventRecord(events[1], NULL);
        cuStreamWaitEvent(stream, events[1], 0);
        cuEventElapsedTime(&time, events[turn & 1], events[1 - (turn & 1)]);
        cuStreamDestroy_v2(stream);
        cuMemcpyDtoH_v2(words, memory, sizeof words);
        cuMemFree_v2(memory);
        cuEventDestroy_v2(events[0]);
    }
    return NULL;
}

static void a_context_may_end_while_threads_use_it(void) {
    size_t free, total;
    handle context;
    for (int round = 0; round < 8; round++) {
        handle module, function;
        context = start(&module), function = kernel(module, "fill");
        struct work work = { context, function, 0 };
        pthread_t threads[8];
        for (int t = 0; t < 8; t++) pthread_create(&threads[t], NULL, user, &work);
        usleep(500 * round);
        OK(cuCtxDestroy_v2(context));
        for (int t = 0; t < 8; t++) pthread_join(threads[t], NULL);
    }
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuMemGetInfo_v2(&free, &total));
    IS(free, total);
}

int main(int count, char **arguments) {
    if (count > 2) image = arguments[2];
#define CLAIM(name) if (!strcmp(arguments[1], #name)) { name(); return 0; }
    CLAIM(wrong_arguments_have_the_documented_errors)
    CLAIM(parameters_reach_the_kernel_in_every_way)
    CLAIM(variables_of_a_module_are_memory)
    CLAIM(copies_and_fills_move_the_bytes_that_they_name)
    CLAIM(textures_read_linear_memory_and_arrays)
    CLAIM(a_kernel_reaches_mapped_memory_of_the_host)
    CLAIM(a_trap_stays_until_the_context_ends)
    CLAIM(streams_and_events_are_in_order)
    CLAIM(four_threads_use_four_streams_each)
    CLAIM(contexts_are_a_stack_and_the_primary_one_counts)
    CLAIM(attributes_are_those_of_the_chip)
    CLAIM(hostile_arguments_are_errors)
    CLAIM(a_context_is_usable_at_exit)
    CLAIM(a_child_loses_contexts_with_busy_streams)
    CLAIM(a_stream_frees_memory_once)
    CLAIM(a_reset_does_not_release_the_primary_context)
    CLAIM(a_context_may_end_while_threads_use_it)
    fprintf(stderr, "no claim %s\n", arguments[1]);
    return 2;
}
