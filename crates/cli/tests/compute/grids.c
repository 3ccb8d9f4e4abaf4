/* Sizes of groups and grids, and indirect dispatches. */
#include "compute.h"

static void odd_groups(void) {
    enum { X = 21, Y = 10, Z = 12 };
    static uint words[X * Y * Z * 16];
    for (uint z = 0; z < Z; z++)
        for (uint y = 0; y < Y; y++)
            for (uint x = 0; x < X; x++) {
                uint values[16] = {x, y, z, x % 7, y % 5, z % 3, x % 7 + y % 5 * 7 + z % 3 * 35, x / 7, y / 5, z / 3,
                    3, 2, 4, 7, 5, 3};
                memcpy(words + ((z * Y + y) * X + x) * 16, values, sizeof values);
            }
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT GLSL(
        layout(local_size_x = 7, local_size_y = 5, local_size_z = 3) in;
        uint at;
        void put(uint value) { o[at++] = value; }
        void put3(uvec3 values) { put(values.x); put(values.y); put(values.z); }
        void main() {
            uvec3 size = gl_NumWorkGroups * gl_WorkGroupSize;
            at = ((gl_GlobalInvocationID.z * size.y + gl_GlobalInvocationID.y) * size.x + gl_GlobalInvocationID.x) * 16u;
            put3(gl_GlobalInvocationID);
            put3(gl_LocalInvocationID);
            put(gl_LocalInvocationIndex);
            put3(gl_WorkGroupID);
            put3(gl_NumWorkGroups);
            put3(gl_WorkGroupSize);
        }));
    dispatch(3, 2, 4);
    same(out, words);
}

/* A barrier in a group whose last warp is not full. */
static void odd_barrier(void) {
    static uint words[105 * 6];
    for (uint n = 0; n < LENGTH(words); n++)
        words[n] = n / 105 * 1000 + (n % 105 * 2 + 1) % 105;
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT GLSL(
        layout(local_size_x = 7, local_size_y = 5, local_size_z = 3) in;
        shared uint s[105];
        void main() {
            uint n = gl_LocalInvocationIndex;
            uint group = (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
            s[n] = group * 1000u + n;
            memoryBarrierShared();
            barrier();
            o[group * 105u + n] = s[(n * 2u + 1u) % 105u];
        }));
    dispatch(1, 3, 2);
    same(out, words);
}

static void full_block(void) {
    needs_full_groups();
    static uint words[512 * 3];
    for (uint n = 0; n < LENGTH(words); n++)
        words[n] = (n / 512 * 512 + 511 - n % 512) * 5 + 3;
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT GLSL(layout(local_size_x = 512) in; shared uint s[512]; void main() {
        uint n = gl_LocalInvocationID.x;
        s[n] = gl_GlobalInvocationID.x * 5u;
        memoryBarrierShared();
        barrier();
        o[gl_GlobalInvocationID.x] = s[511u - n] + 3u;
    }));
    dispatch(3, 1, 1);
    same(out, words);
}

/* 512 threads without shared memory, of which each needs many registers. */
static void full_block_registers(void) {
    needs_full_groups();
    static uint words[512], data[512 + 16];
    for (uint n = 0; n < LENGTH(data); n++)
        data[n] = random_word();
    for (uint n = 0; n < 512; n++) {
        uint v[12], sum = 0;
        for (uint k = 0; k < 12; k++)
            v[k] = data[n + k];
        for (uint round = 0; round < 5; round++)
            for (uint k = 0; k < 12; k++)
                v[k] = v[k] * 5 + v[(k + 5) % 12];
        for (uint k = 0; k < 12; k++)
            sum ^= v[k];
        words[n] = sum;
    }
    GLuint out = storage(0, 512, NULL);
    storage(1, LENGTH(data), data);
    compute(OUT IN GLSL(layout(local_size_x = 32, local_size_y = 4, local_size_z = 4) in; void main() {
        uint n = gl_LocalInvocationIndex;
        uint v[12];
        for (int k = 0; k < 12; k++)
            v[k] = i[n + uint(k)];
        for (int round = 0; round < 5; round++)
            for (int k = 0; k < 12; k++)
                v[k] = v[k] * 5u + v[(k + 5) % 12];
        uint sum = 0u;
        for (int k = 0; k < 12; k++)
            sum ^= v[k];
        o[n] = sum;
    }));
    dispatch(1, 1, 1);
    same(out, words);
}

static void one_thread(void) {
    uint words[4] = {1, 2, 3, 1};
    GLuint out = storage(0, 4, NULL);
    compute(OUT GLSL(layout(local_size_x = 1) in; void main() {
        o[0] = 1u + gl_GlobalInvocationID.x;
        o[1] = 2u + gl_LocalInvocationIndex;
        o[2] = 3u + gl_WorkGroupID.z;
        o[3] = gl_NumWorkGroups.x * gl_NumWorkGroups.y * gl_NumWorkGroups.z;
    }));
    dispatch(1, 1, 1);
    same(out, words);
}

static void big_grid(void) {
    static uint words[300 * 7 * 32];
    for (uint n = 0; n < LENGTH(words); n++) {
        uint x = n % 9600, y = n / 9600;
        words[n] = x * 1000003 ^ y * 7919 ^ x / 32 << 20;
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT GLSL(layout(local_size_x = 32) in; void main() {
        uvec2 at = gl_GlobalInvocationID.xy;
        o[at.y * 9600u + at.x] = at.x * 1000003u ^ at.y * 7919u ^ gl_WorkGroupID.x << 20;
    }));
    dispatch(300, 7, 1);
    same(out, words);
}

/* More than 65535 / 2 groups in a row, one thread each in the last dimension as well. */
static void wide_grid(void) {
    static uint words[40000 + 300];
    for (uint n = 0; n < 40000; n++)
        words[n] = n ^ 0x5a5au;
    for (uint n = 0; n < 300; n++)
        words[40000 + n] = n * 3;
    GLuint out = storage(0, LENGTH(words), NULL);
    GLuint program = compute(OUT GLSL(layout(local_size_x = 1) in; uniform uint base; void main() {
        if (base == 0u)
            o[gl_WorkGroupID.x] = gl_WorkGroupID.x ^ 0x5a5au;
        else
            o[base + gl_WorkGroupID.z] = gl_WorkGroupID.z * 3u;
    }));
    dispatch(40000, 1, 1);
    glUniform1ui(location(program, "base"), 40000);
    dispatch(1, 1, 300);
    same(out, words);
}

static void zero_sides(void) {
    uint words[8] = {FILL, FILL, FILL, FILL, FILL, FILL, FILL, 7}, arguments[12] = {0, 1, 1, 1, 0, 1, 1, 1, 0, 2, 1, 1};
    GLuint out = storage(0, 8, NULL), indirect = storage(1, 12, arguments);
    GLuint program = compute(OUT GLSL(layout(local_size_x = 1) in; uniform uint number; void main() {
        o[number] = number;
    }));
    int number = location(program, "number");
    glBindBuffer(GL_DISPATCH_INDIRECT_BUFFER, indirect);
    for (uint n = 0; n < 6; n++) {
        glUniform1ui(number, n);
        if (n < 3)
            dispatch(n != 0, n != 1, n != 2);
        else
            glDispatchComputeIndirect((n - 3) * 12);
    }
    glUniform1ui(number, 7);
    glDispatchComputeIndirect(36);
    glMemoryBarrier(GL_ALL_BARRIER_BITS);
    same(out, words);
}

/* A program that stores nothing, then one that does. */
static void empty(void) {
    GLuint out = storage(0, 32, NULL);
    uint words[32];
    for (uint n = 0; n < 32; n++)
        words[n] = n;
    compute(GLSL(layout(local_size_x = 64) in; void main() {}));
    dispatch(4, 4, 4);
    compute(OUT GLSL(layout(local_size_x = 32) in; void main() { o[gl_LocalInvocationIndex] = gl_LocalInvocationIndex; }));
    dispatch(1, 1, 1);
    same(out, words);
}

static void indirect(void) {
    uint arguments[9] = {9, 9, 9, 3, 2, 5, 9, 9, 9};
    static uint words[3 * 2 * 5 * 4];
    for (uint n = 0; n < LENGTH(words); n++)
        words[n] = n % 12 + n / 12 % 2 * 100 + n / 24 * 10000 + 3000000 + 20000000 + 500000000;
    GLuint out = storage(0, LENGTH(words), NULL);
    glBindBuffer(GL_DISPATCH_INDIRECT_BUFFER, storage(1, 9, arguments));
    compute(OUT GLSL(layout(local_size_x = 4) in; void main() {
        uvec3 at = gl_GlobalInvocationID;
        o[(at.z * gl_NumWorkGroups.y + at.y) * gl_NumWorkGroups.x * 4u + at.x] = at.x + at.y * 100u + at.z * 10000u
            + gl_NumWorkGroups.x * 1000000u + gl_NumWorkGroups.y * 10000000u + gl_NumWorkGroups.z * 100000000u;
    }));
    glDispatchComputeIndirect(12);
    glMemoryBarrier(GL_ALL_BARRIER_BITS);
    same(out, words);
}

static void indirect_written(void) {
    static uint words[6 * 3 * 2];
    for (uint n = 0; n < LENGTH(words); n++)
        words[n] = n * 11 + 6;
    const uint zeros[8] = {0};
    GLuint arguments = storage(0, 8, zeros);
    compute(OUT GLSL(layout(local_size_x = 3) in; void main() {
        o[4u + gl_LocalInvocationID.x] = 6u / (gl_LocalInvocationID.x + 1u);
    }));
    glDispatchCompute(1, 1, 1);
    glMemoryBarrier(GL_COMMAND_BARRIER_BIT);
    GLuint out = storage(0, LENGTH(words), NULL);
    glBindBuffer(GL_DISPATCH_INDIRECT_BUFFER, arguments);
    compute(OUT GLSL(layout(local_size_x = 1) in; void main() {
        uvec3 at = gl_WorkGroupID;
        o[(at.z * 3u + at.y) * 6u + at.x] = ((at.z * 3u + at.y) * 6u + at.x) * 11u + gl_NumWorkGroups.x;
    }));
    glDispatchComputeIndirect(16);
    glMemoryBarrier(GL_ALL_BARRIER_BITS);
    same(out, words);
}

const struct test GRIDS[] = {
    TEST(odd_groups), TEST(odd_barrier), TEST(full_block), TEST(full_block_registers), TEST(one_thread),
    TEST(big_grid), TEST(wide_grid), TEST(zero_sides), TEST(empty), TEST(indirect), TEST(indirect_written), {0},
};
