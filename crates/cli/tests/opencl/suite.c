// Launches each kernel of a source once, over few work items: scripts/peers/suite.cl, with inputs of the sizes that it reads.
//
//   suite SOURCE
//
// Prints a line for each kernel. Results are not compared; scripts/opencl does that.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

// Numbers below 251 or floats, and the words of each input. A result follows, unless the kernel writes its last input.
struct kernel {
    const char *name, *inputs;
    size_t words[4], global[2], local[2];
    int in_place;
};

// The kernel with the largest input is the last: a captured launch has all memory of its device.
static const struct kernel kernels[] = {
    {"mandel", "", {0}, {256}, {64}, 0},
    {"collatz", "", {0}, {256}, {64}, 0},
    {"matmul", "ff", {65536, 65536}, {16, 32}, {16, 16}, 0},
    {"nbody", "f", {8192}, {128}, {128}, 0},
    {"sort", "n", {512}, {256}, {256}, 1},
    {"hash", "", {0}, {256}, {64}, 0},
    {"hash4", "", {0}, {256}, {64}, 0},
    {"search", "nn", {65536, 256}, {256}, {64}, 0},
    {"scan", "n", {512}, {512}, {256}, 1},
    {"nested", "", {0}, {256}, {64}, 0},
    {"table", "n", {256}, {256}, {64}, 0},
    {"table16", "n", {16}, {256}, {64}, 0},
    {"newton", "f", {256}, {256}, {64}, 0},
    {"convolve", "f", {8192}, {256}, {64}, 0},
    {"scale", "f", {65536}, {256}, {64}, 0},
    {"lit", "ffff", {16384, 512, 768, 4}, {256}, {64}, 0},
    {"options", "f", {1024}, {256}, {64}, 0},
    {"reduce", "f", {1024}, {256}, {256}, 0},
    {"spmv", "nnff", {257, 251, 251, 251}, {256}, {64}, 0},
    {"bfs", "nnn", {257, 251, 256}, {256}, {64}, 1},
    {"pull", "nnn", {257, 251, 256}, {256}, {64}, 0},
    {"stencil", "f", {17408}, {16, 16}, {16, 16}, 0},
    {"stencil4", "f", {8192}, {256}, {64}, 0},
    {"find", "nn", {4096, 2}, {256}, {64}, 0},
    {"radix", "n", {512}, {64}, {64}, 0},
    {"histogram", "n", {1 << 21}, {256}, {64}, 0},
};

static void check(cl_int error, const char *what) {
    if (error != CL_SUCCESS) {
        fprintf(stderr, "%s: OpenCL error %d\n", what, error);
        exit(1);
    }
}

// A buffer with `words` numbers or floats.
static cl_mem filled(cl_context context, char kind, size_t words) {
    cl_uint *values = malloc(4 * words);
    for (size_t at = 0; at < words; at++) {
        union { float number; cl_uint bits; } value = {.number = 0.5f + (float)(at % 127) / 64.0f};
        values[at] = kind == 'f' ? value.bits : (cl_uint)(at * 7 % 251);
    }
    cl_int error;
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, 4 * words, values, &error);
    check(error, "clCreateBuffer");
    free(values);
    return memory;
}

int main(int count, char **args) {
    static char source[1 << 16];
    const char *text = source;
    FILE *file = count == 2 ? fopen(args[1], "r") : NULL;
    if (!file || fread(source, 1, sizeof source - 1, file) == 0) {
        fprintf(stderr, "usage: suite SOURCE\n");
        return 2;
    }
    fclose(file);
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    check(clGetPlatformIDs(1, &platform, 0), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, 0), "clGetDeviceIDs");
    cl_context context = clCreateContext(0, 1, &device, 0, 0, &error);
    check(error, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "clCreateCommandQueue");
    cl_program program = clCreateProgramWithSource(context, 1, &text, 0, &error);
    check(error, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", 0, 0), "clBuildProgram");
    for (size_t number = 0; number < sizeof kernels / sizeof *kernels; number++) {
        const struct kernel *own = &kernels[number];
        cl_kernel kernel = clCreateKernel(program, own->name, &error);
        check(error, own->name);
        cl_mem memory[5];
        cl_uint at = 0;
        for (; own->inputs[at]; at++) memory[at] = filled(context, own->inputs[at], own->words[at]);
        if (!own->in_place) memory[at++] = filled(context, 'n', 16384);
        for (cl_uint argument = 0; argument < at; argument++)
            check(clSetKernelArg(kernel, argument, sizeof(cl_mem), &memory[argument]), own->name);
        cl_uint dimensions = own->global[1] ? 2 : 1;
        check(clEnqueueNDRangeKernel(queue, kernel, dimensions, 0, own->global, own->local, 0, 0, 0), own->name);
        check(clFinish(queue), own->name);
        for (cl_uint argument = 0; argument < at; argument++) clReleaseMemObject(memory[argument]);
        clReleaseKernel(kernel);
        printf("%s\n", own->name);
    }
    return 0;
}
