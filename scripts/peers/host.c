// Runs a kernel of suite.cl on inputs that `reconverge bench --write` wrote, and compares its result with the expected one.
//
//   host SOURCE KERNEL GLOBAL[xGLOBAL] LOCAL[xLOCAL] RUNS LIST
//
// LIST names the rule of comparison ("exact", or an absolute and a relative tolerance), the file with the result, and the
// inputs. A kernel without an argument for the result leaves the result in its last input. Prints the median processor seconds and
// wall seconds, and the number of words that differ.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void check(cl_int error, const char *what) {
    if (error != CL_SUCCESS) {
        fprintf(stderr, "%s: OpenCL error %d\n", what, error);
        exit(1);
    }
}

static char *contents(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    char *bytes = calloc(1, *size + 1);
    if (fread(bytes, 1, *size, file) != *size) exit(1);
    fclose(file);
    return bytes;
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int count, char **args) {
    if (count != 7) {
        fprintf(stderr, "usage: host SOURCE KERNEL GLOBAL LOCAL RUNS LIST\n");
        return 2;
    }
    size_t size, global[2] = {1, 1}, local[2] = {1, 1};
    const char *source = contents(args[1], &size);
    int dimensions = sscanf(args[3], "%zux%zu", &global[0], &global[1]);
    sscanf(args[4], "%zux%zu", &local[0], &local[1]);
    int runs = atoi(args[5]);

    char *list = contents(args[6], &size), *folder = dirname(strdup(args[6])), *line = strtok(list, "\n");
    double absolute = 0, relative = 0;
    int exact = strcmp(line, "exact") == 0;
    if (!exact) sscanf(line, "%lf %lf", &absolute, &relative);
    char name[256], path[4096];
    size_t words;
    line = strtok(NULL, "\n");
    sscanf(line, "%255s %zu", name, &words);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unsigned *wanted = (unsigned *)contents(path, &size);

    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    check(clGetPlatformIDs(1, &platform, 0), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, 0), "clGetDeviceIDs");
    cl_context context = clCreateContext(0, 1, &device, 0, 0, &error);
    check(error, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "clCreateCommandQueue");
    cl_program program = clCreateProgramWithSource(context, 1, &source, 0, &error);
    check(error, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", 0, 0), "clBuildProgram");
    cl_kernel kernel = clCreateKernel(program, args[2], &error);
    check(error, args[2]);

    struct { char *bytes; size_t size; cl_mem memory; } buffers[16];
    unsigned number = 0;
    while ((line = strtok(NULL, "\n")) && number < 15) {
        snprintf(path, sizeof path, "%s/%s", folder, line);
        buffers[number].bytes = contents(path, &buffers[number].size);
        number++;
    }
    cl_uint parameters;
    check(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof parameters, &parameters, 0), "clGetKernelInfo");
    if (parameters == number + 1) {
        buffers[number].bytes = calloc(words, 4);
        buffers[number++].size = 4 * words;
    }
    if (parameters != number) {
        fprintf(stderr, "%s takes %u buffers, and there are %u\n", args[2], parameters, number);
        return 1;
    }
    for (unsigned at = 0; at < number; at++) {
        buffers[at].memory = clCreateBuffer(context, CL_MEM_READ_WRITE, buffers[at].size, 0, &error);
        check(error, "clCreateBuffer");
        check(clSetKernelArg(kernel, at, sizeof(cl_mem), &buffers[at].memory), "clSetKernelArg");
    }

    double *cpu = calloc(runs + 1, sizeof *cpu), *wall = calloc(runs + 1, sizeof *wall);
    // The first run compiles the kernel for its local size, and is not counted.
    for (int run = 0; run <= runs; run++) {
        for (unsigned at = 0; at < number; at++)
            check(clEnqueueWriteBuffer(queue, buffers[at].memory, 1, 0, buffers[at].size, buffers[at].bytes, 0, 0, 0),
                  "clEnqueueWriteBuffer");
        clFinish(queue);
        double cpu_start = seconds(CLOCK_PROCESS_CPUTIME_ID), start = seconds(CLOCK_MONOTONIC);
        check(clEnqueueNDRangeKernel(queue, kernel, dimensions, 0, global, local, 0, 0, 0), "clEnqueueNDRangeKernel");
        clFinish(queue);
        wall[run] = seconds(CLOCK_MONOTONIC) - start;
        cpu[run] = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    }
    qsort(cpu + 1, runs, sizeof *cpu, by_size);
    qsort(wall + 1, runs, sizeof *wall, by_size);

    unsigned *found = malloc(4 * words);
    check(clEnqueueReadBuffer(queue, buffers[number - 1].memory, 1, 0, 4 * words, found, 0, 0, 0), "clEnqueueReadBuffer");
    size_t differing = 0;
    for (size_t at = 0; at < words; at++) {
        float one, other;
        memcpy(&one, &found[at], 4);
        memcpy(&other, &wanted[at], 4);
        // Both results may differ from the evaluation, in opposite directions.
        int same = exact ? found[at] == wanted[at] : fabs(one - other) <= 2 * (absolute + relative * fabs(other));
        differing += !same;
    }
    printf("cpu=%.6f wall=%.6f differing=%zu of %zu\n", cpu[1 + (runs - 1) / 2], wall[1 + (runs - 1) / 2], differing, words);
    return differing != 0;
}
