// Runs kernels with many kinds of arguments, variables and ranges on the first OpenCL device. Compares each word of their results with
// the same expression in C. Prints a line for each kernel. Ends with status 1 if a kernel differs, and 2 without a device.
//
//   forms [KERNEL]
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 1024

static const char *source =
    "kernel void scalars(global uint *o, global const uint *in, uint n, int m, float f) {"
    "    uint i = get_global_id(0); o[i] = in[i] * n + (uint)(f * 16.0f) + m; }"
    "kernel void smalls(global uint *o, uchar c, short s, char d, ushort t) {"
    "    uint i = get_global_id(0); o[i] = (i + c) * s + d * t; }"
    "kernel void wraps(global uint *o, char a, uchar b, short c, ushort d) {"
    "    uint i = get_global_id(0); char r = (char)i + a; uchar s = (uchar)i * b; short t = (short)i * c; ushort u = (ushort)i + d;"
    "    o[i] = (uint)r ^ (uint)s << 8 ^ (uint)t << 3 ^ u; }"
    "kernel void bytes(global uchar *o, global const uchar *in, global ushort *p, char a) {"
    "    uint i = get_global_id(0); o[2 * i] = in[i] * 3 + a; o[2 * i + 1] = i & 1 ? a : 7; p[N + i] = in[i] * 257 - a; }"
    "kernel void vectors(global uint *o, uint4 a, uint2 b) {"
    "    uint i = get_global_id(0); uint4 v = a * i + (uint4)(b, b); o[i] = v.x ^ v.y << 3 ^ v.z << 7 ^ v.w; }"
    "typedef struct { uint a; float b; short c; char d; uint e[3]; } S;"
    "kernel void structs(global uint *o, S s) {"
    "    uint i = get_global_id(0); o[i] = s.a * i + (uint)s.b + s.c * s.d + s.e[0] + s.e[1] * s.e[2]; }"
    "kernel void locals(global uint *o, global const uint *in, local uint *s, uint n, local ushort *q) {"
    "    uint t = get_local_id(0), i = get_global_id(0); local uint z[64];"
    "    s[t] = in[i]; q[t] = in[i] >> 5; z[t] = t * n; barrier(CLK_LOCAL_MEM_FENCE);"
    "    o[i] = s[63 - t] + q[(t + 5) & 63] + z[t ^ 1]; }"
    "kernel void shorts(global uint *o, global const uint *in) {"
    "    uint t = get_local_id(0), i = get_global_id(0); local ushort s[64]; local uchar c[64];"
    "    s[t] = in[i]; c[t] = in[i] >> 4; barrier(CLK_LOCAL_MEM_FENCE); o[i] = s[63 - t] << 8 | c[t ^ 9]; }"
    "kernel void range(global uint *o) {"
    "    uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);"
    "    o[(z * 8 + y) * 16 + x] = x | y << 8 | z << 16 | get_local_id(2) << 24 | get_num_groups(2) << 28; }"
    "kernel void offset(global uint *o) {"
    "    uint i = get_global_id(0); o[i - 256] = i << 8 | get_local_id(0); }"
    "kernel void atomics(global uint *o, global const uint *in) {"
    "    uint i = get_global_id(0); atomic_add(o, in[i] & 255); atomic_inc(o + 1); atomic_max(o + 2, in[i]);"
    "    atomic_or(o + 3, 1u << (i & 31)); atomic_xor(o + 4, in[i]); atomic_sub(o + 5, 3); }"
    "kernel void locked(global uint *o, global const uint *in) {"
    "    uint t = get_local_id(0), i = get_global_id(0); local uint s[16]; if (t < 16) s[t] = 0;"
    "    barrier(CLK_LOCAL_MEM_FENCE); atomic_add(&s[in[i] & 15], i); barrier(CLK_LOCAL_MEM_FENCE);"
    "    if (t < 16) o[get_group_id(0) * 16 + t] = s[t]; }"
    "kernel void arrays(global uint *o, global const uint *in) {"
    "    uint i = get_global_id(0), p[16], s = 0; for (int j = 0; j < 16; j++) p[j] = in[(i + j) & (N - 1)];"
    "    for (int j = 0; j < 16; j++) { uint q = p[(in[i] + j) & 15]; s = s * 31 + q; p[q >> 3 & 15] = s; } o[i] = s; }"
    "kernel void products(global short2 *o, short2 a, uchar3 b) {"
    "    uint i = get_global_id(0); o[i] = a * (short)i + (short2)(b.x, b.z); }"
    "kernel void indexed(global uint *o, S s, uint n) {"
    "    uint i = get_global_id(0); o[i] = s.e[i % 3] * i + s.e[n]; }"
    "kernel void counted(global uint *o, global const uint *in) {"
    "    local uint s, m; local int c; uint t = get_local_id(0), v = in[get_global_id(0)];"
    "    if (t == 0) s = 0, m = 0, c = 7; barrier(CLK_LOCAL_MEM_FENCE);"
    "    atomic_add(&s, v & 255); atomic_max(&m, v); atomic_cmpxchg(&c, 7, 11); barrier(CLK_LOCAL_MEM_FENCE);"
    "    if (t == 0) o[get_group_id(0) * 3] = s, o[get_group_id(0) * 3 + 1] = m, o[get_group_id(0) * 3 + 2] = c; }"
    "constant uint T[8] = {3, 1, 4, 1, 5, 9, 2, 6};"
    "kernel void constants(global uint *o, global const uint *in, constant uint *c) {"
    "    uint i = get_global_id(0); o[i] = T[in[i] & 7] + c[in[i] >> 3 & 15]; }";

static cl_context context;
static cl_command_queue queue;
static cl_program program;
static unsigned in[N], want[2 * N], found[2 * N];
static cl_mem input, output;

static void check(cl_int error, const char *what) {
    if (error != CL_SUCCESS) {
        fprintf(stderr, "%s: OpenCL error %d\n", what, error);
        exit(1);
    }
}

struct argument { size_t size; const void *value; };
#define ARG(x) {sizeof(x), &(x)}
#define LOCAL(n) {n, NULL}

// Launches a kernel and compares the first words of the output. Returns whether they differ.
static int run(const char *name, int dimensions, const size_t *offset, const size_t *global, const size_t *local,
               const struct argument *arguments, int count, int words) {
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    check(error, name);
    memset(found, 0, sizeof found);
    check(clEnqueueWriteBuffer(queue, output, 1, 0, sizeof found, found, 0, 0, 0), "clEnqueueWriteBuffer");
    for (int at = 0; at < count; at++)
        check(clSetKernelArg(kernel, at, arguments[at].size, arguments[at].value), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, 0, 0, 0), name);
    check(clEnqueueReadBuffer(queue, output, 1, 0, sizeof found, found, 0, 0, 0), "clEnqueueReadBuffer");
    clReleaseKernel(kernel);
    int differing = 0, first = -1;
    for (int at = 0; at < words; at++)
        if (found[at] != want[at]) {
            if (first < 0) first = at;
            differing++;
        }
    if (differing)
        printf("%-10s %d of %d words differ, first %d: expected %08x, found %08x\n", name, differing, words, first, want[first], found[first]);
    else
        printf("%-10s the same %d words\n", name, words);
    fflush(stdout);
    return differing != 0;
}

static const char *only;
static int failed;
#define EACH(expression) for (unsigned i = 0; i < N; i++) want[i] = (expression)
#define RUN(name, words, ...) \
    if (!only || !strcmp(only, name)) { \
        struct argument arguments[] = {ARG(output), __VA_ARGS__}; \
        failed |= run(name, 1, NULL, line, block, arguments, sizeof arguments / sizeof *arguments, words); \
    }

int main(int count, char **args) {
    only = count > 1 ? args[1] : NULL;
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    if (clGetPlatformIDs(1, &platform, 0) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, 0)) {
        fprintf(stderr, "no OpenCL device\n");
        return 2;
    }
    context = clCreateContext(0, 1, &device, 0, 0, &error);
    check(error, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "clCreateCommandQueue");
    program = clCreateProgramWithSource(context, 1, &source, 0, &error);
    check(error, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "-DN=1024", 0, 0), "clBuildProgram");
    for (unsigned at = 0, x = 1; at < N; at++) in[at] = x = x * 1664525u + 1013904223u;
    input = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof in, in, &error);
    check(error, "clCreateBuffer");
    output = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof found, 0, &error);
    check(error, "clCreateBuffer");
    const size_t line[1] = {N}, block[1] = {64};

    cl_uint n = 77;
    cl_int m = -3;
    cl_float f = 1.5f;
    EACH(in[i] * n + 24 + m);
    RUN("scalars", N, ARG(input), ARG(n), ARG(m), ARG(f));

    cl_uchar c = 200;
    cl_short s = -300;
    cl_char d = -7;
    cl_ushort t = 60000;
    EACH((i + c) * s + d * t);
    RUN("smalls", N, ARG(c), ARG(s), ARG(d), ARG(t));
    EACH((unsigned)(cl_char)(i + d) ^ (unsigned)(cl_uchar)(i * c) << 8 ^ (unsigned)(cl_short)(i * s) << 3 ^ (cl_ushort)(i + t));
    RUN("wraps", N, ARG(d), ARG(c), ARG(s), ARG(t));
    // Launches a kernel again after a kernel of another program.
    EACH((i + c) * s + d * t);
    RUN("smalls", N, ARG(c), ARG(s), ARG(d), ARG(t));
    for (unsigned i = 0; i < N; i++) {
        cl_uchar byte = ((cl_uchar *)in)[i];
        ((cl_uchar *)want)[2 * i] = byte * 3 + d;
        ((cl_uchar *)want)[2 * i + 1] = i & 1 ? d : 7;
        ((cl_ushort *)want)[N + i] = byte * 257 - d;
    }
    RUN("bytes", N, ARG(input), ARG(output), ARG(d));

    cl_uint4 a = {{1, 2, 3, 4}};
    cl_uint2 b = {{7, 9}};
    EACH((i + 7) ^ (2 * i + 9) << 3 ^ (3 * i + 7) << 7 ^ (4 * i + 9));
    RUN("vectors", N, ARG(a), ARG(b));
    struct { cl_uint a; cl_float b; cl_short c; cl_char d; cl_uint e[3]; } record = {5, 3.5f, -7, 9, {1, 2, 3}};
    EACH(5 * i + 3 - 63 + 1 + 6);
    RUN("structs", N, ARG(record));
    cl_uint last = 2;
    EACH(record.e[i % 3] * i + 3);
    RUN("indexed", N, ARG(record), ARG(last));
    cl_short2 pair = {{-3, 9}};
    cl_uchar3 bytes = {{1, 2, 200, 0}};
    EACH((cl_ushort)(-3 * i + 1) | (cl_ushort)(9 * i + 200) << 16);
    RUN("products", N, ARG(pair), ARG(bytes));
    EACH(in[i ^ 63] + (cl_ushort)(in[(i & ~63u) + ((i + 5) & 63)] >> 5) + ((i & 63) ^ 1) * n);
    RUN("locals", N, ARG(input), LOCAL(256), ARG(n), LOCAL(128));
    EACH((unsigned)(cl_ushort)in[i ^ 63] << 8 | (cl_uchar)(in[i ^ 9] >> 4));
    RUN("shorts", N, ARG(input));

    if (!only || !strcmp(only, "range")) {
        const size_t space[3] = {16, 8, 8}, part[3] = {4, 2, 2};
        struct argument arguments[] = {ARG(output)};
        EACH((i & 15) | (i >> 4 & 7) << 8 | (i >> 7) << 16 | (i >> 7 & 1) << 24 | 4u << 28);
        failed |= run("range", 3, NULL, space, part, arguments, 1, N);
    }
    if (!only || !strcmp(only, "offset")) {
        const size_t start[1] = {256};
        struct argument arguments[] = {ARG(output)};
        EACH((i + 256) << 8 | (i & 63));
        failed |= run("offset", 1, start, line, block, arguments, 1, N);
    }
    memset(want, 0, sizeof want);
    for (unsigned i = 0; i < N; i++) {
        want[0] += in[i] & 255;
        want[2] = in[i] > want[2] ? in[i] : want[2];
        want[4] ^= in[i];
    }
    want[1] = N, want[3] = ~0u, want[5] = -3 * N;
    RUN("atomics", 6, ARG(input));
    memset(want, 0, sizeof want);
    for (unsigned i = 0; i < N; i++) want[(i >> 6) * 16 + (in[i] & 15)] += i;
    RUN("locked", N / 4, ARG(input));

    memset(want, 0, sizeof want);
    for (unsigned i = 0; i < N; i++) {
        unsigned *group = want + (i >> 6) * 3;
        group[0] += in[i] & 255;
        group[1] = in[i] > group[1] ? in[i] : group[1];
        group[2] = 11;
    }
    RUN("counted", 3 * N / 64, ARG(input));

    for (unsigned i = 0; i < N; i++) {
        unsigned p[16], sum = 0;
        for (unsigned j = 0; j < 16; j++) p[j] = in[(i + j) & (N - 1)];
        for (unsigned j = 0; j < 16; j++) {
            unsigned q = p[(in[i] + j) & 15];
            sum = sum * 31 + q;
            p[q >> 3 & 15] = sum;
        }
        want[i] = sum;
    }
    RUN("arrays", N, ARG(input));
    const unsigned table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    EACH(table[in[i] & 7] + in[in[i] >> 3 & 15]);
    RUN("constants", N, ARG(input), ARG(input));
    return failed;
}
