/* Variables that the threads of a group share, and barriers. */
#include "compute.h"

static void shared_sum(void) {
    GLuint out = storage(0, 9, NULL);
    uint words[9] = {0};
    static uint data[9 * 128];
    for (uint n = 0; n < LENGTH(data); n++)
        words[n / 128] += data[n] = random_word();
    storage(1, LENGTH(data), data);
    compute(OUT IN GLSL(layout(local_size_x = 128) in; shared uint sums[128]; void main() {
        uint n = gl_LocalInvocationID.x;
        sums[n] = i[gl_GlobalInvocationID.x];
        for (uint half_count = 64u; half_count > 0u; half_count >>= 1) {
            memoryBarrierShared();
            barrier();
            if (n < half_count)
                sums[n] += sums[n + half_count];
        }
        if (n == 0u)
            o[gl_WorkGroupID.x] = sums[0];
    }));
    dispatch(9, 1, 1);
    same(out, words);
}

static void shared_transpose(void) {
    static uint data[48 * 32], words[48 * 32];
    for (uint n = 0; n < LENGTH(data); n++) {
        data[n] = random_word();
        words[n % 48 * 32 + n / 48] = data[n];
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, LENGTH(data), data);
    compute(OUT IN GLSL(layout(local_size_x = 16, local_size_y = 16) in; shared uint tile[16][17]; void main() {
        uvec2 at = gl_LocalInvocationID.xy;
        uvec2 from = gl_WorkGroupID.xy * 16u + at;
        tile[at.y][at.x] = i[from.y * 48u + from.x];
        memoryBarrierShared();
        barrier();
        uvec2 to = gl_WorkGroupID.yx * 16u + at;
        o[to.y * 32u + to.x] = tile[at.x][at.y];
    }));
    dispatch(3, 2, 1);
    same(out, words);
}

static void prefix_sum(void) {
    static uint data[256 * 4], words[256 * 4];
    for (uint n = 0; n < LENGTH(data); n++) {
        data[n] = random_word();
        words[n] = data[n] + (n % 256 ? words[n - 1] : 0);
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, LENGTH(data), data);
    compute(OUT IN GLSL(layout(local_size_x = 256) in; shared uint sums[256]; void main() {
        uint n = gl_LocalInvocationID.x;
        sums[n] = i[gl_GlobalInvocationID.x];
        memoryBarrierShared();
        barrier();
        for (uint distance = 1u; distance < 256u; distance *= 2u) {
            uint other = n >= distance ? sums[n - distance] : 0u;
            barrier();
            sums[n] += other;
            memoryBarrierShared();
            barrier();
        }
        o[gl_GlobalInvocationID.x] = sums[n];
    }));
    dispatch(4, 1, 1);
    same(out, words);
}

static void bitonic_sort(void) {
    static uint data[256 * 3], words[256 * 3];
    for (uint n = 0; n < LENGTH(data); n++)
        words[n] = data[n] = random_word();
    for (uint group = 0; group < 3; group++)
        sort(words + 256 * group, 256);
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, LENGTH(data), data);
    compute(OUT IN GLSL(layout(local_size_x = 128) in; shared uint s[256]; void main() {
        uint n = gl_LocalInvocationID.x;
        uint base = gl_WorkGroupID.x * 256u;
        s[n] = i[base + n];
        s[n + 128u] = i[base + n + 128u];
        for (uint size = 2u; size <= 256u; size *= 2u) {
            for (uint stride = size / 2u; stride > 0u; stride /= 2u) {
                memoryBarrierShared();
                barrier();
                uint low = 2u * n - (n & (stride - 1u));
                uint a = s[low];
                uint b = s[low + stride];
                bool up = (low & size) == 0u;
                if ((a > b) == up) {
                    s[low] = b;
                    s[low + stride] = a;
                }
            }
        }
        memoryBarrierShared();
        barrier();
        o[base + n] = s[n];
        o[base + n + 128u] = s[n + 128u];
    }));
    dispatch(3, 1, 1);
    same(out, words);
}

/* Vectors, structs and floats in shared memory, and all of the memory that ES 3.1 requires. */
static void shared_kinds(void) {
    static uint words[64 * 4];
    for (uint n = 0; n < 64; n++) {
        uint other = 63 - n;
        words[4 * n] = other * 2;
        words[4 * n + 1] = (uint)-(int)other;
        words[4 * n + 2] = bits_of(other * 0.5f);
        words[4 * n + 3] = (other * 61 + 5) * 3;
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT GLSL(
        struct Item { uint a; ivec2 b; float c; };
        layout(local_size_x = 64) in;
        shared Item items[64];
        shared uvec3 vectors[64];
        shared uint big[3500 - 64 * 7];
        void main() {
            uint n = gl_LocalInvocationID.x;
            items[n].a = n * 2u;
            items[n].b = ivec2(int(n), -int(n));
            items[n].c = float(n) * 0.5;
            vectors[n] = uvec3(n);
            vectors[n].y = n + 5u;
            big[n * 41u + 7u] = n * 60u;
            memoryBarrierShared();
            barrier();
            uint other = 63u - n;
            o[4u * n] = items[other].a;
            o[4u * n + 1u] = uint(items[other].b.y);
            o[4u * n + 2u] = floatBitsToUint(items[other].c);
            o[4u * n + 3u] = (vectors[other].y + big[other * 41u + 7u]) * 3u;
        }));
    dispatch(1, 1, 1);
    same(out, words);
}

/* Threads of a group exchange words through a storage buffer. */
static void buffer_barrier(void) {
    static uint words[128 * 2 * 2];
    for (uint group = 0; group < 2; group++)
        for (uint n = 0; n < 128; n++) {
            words[256 * group + n] = group * 1000 + n * 7;
            words[256 * group + 128 + n] = group * 1000 + (n + 37) % 128 * 7 + 1;
        }
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(GLSL(layout(local_size_x = 128) in; layout(std430, binding = 0) coherent buffer Out { uint o[]; }; void main() {
        uint n = gl_LocalInvocationID.x;
        uint base = gl_WorkGroupID.x * 256u;
        o[base + n] = gl_WorkGroupID.x * 1000u + n * 7u;
        memoryBarrierBuffer();
        barrier();
        o[base + 128u + n] = o[base + (n + 37u) % 128u] + 1u;
    }));
    dispatch(2, 1, 1);
    same(out, words);
}

static void matrix_multiply(void) {
    enum { SIDE = 48 };
    static float a[SIDE * SIDE], b[SIDE * SIDE];
    static uint words[SIDE * SIDE];
    for (uint n = 0; n < SIDE * SIDE; n++) {
        a[n] = (int)(random_word() % 64) - 32;
        b[n] = (int)(random_word() % 64) - 32;
    }
    for (uint n = 0; n < SIDE * SIDE; n++) {
        float sum = 0;
        for (uint k = 0; k < SIDE; k++)
            sum += a[n / SIDE * SIDE + k] * b[k * SIDE + n % SIDE];
        words[n] = bits_of(sum);
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, LENGTH(a), (uint *)a);
    storage(2, LENGTH(b), (uint *)b);
    /* Without shared memory, then with it. */
    for (uint shared = 0; shared < 2; shared++) {
        compute(shared ? GLSL(
            layout(local_size_x = 16, local_size_y = 16) in;
            layout(std430, binding = 0) buffer Out { float o[]; };
            layout(std430, binding = 1) readonly buffer A { float a[]; };
            layout(std430, binding = 2) readonly buffer B { float b[]; };
            shared float left[16][16];
            shared float right[16][16];
            void main() {
                uvec2 at = gl_GlobalInvocationID.xy;
                uvec2 l = gl_LocalInvocationID.xy;
                float sum = 0.0;
                for (uint tile = 0u; tile < 3u; tile++) {
                    left[l.y][l.x] = a[at.y * 48u + tile * 16u + l.x];
                    right[l.y][l.x] = b[(tile * 16u + l.y) * 48u + at.x];
                    memoryBarrierShared();
                    barrier();
                    for (uint k = 0u; k < 16u; k++)
                        sum += left[l.y][k] * right[k][l.x];
                    barrier();
                }
                o[at.y * 48u + at.x] = sum;
            }) : GLSL(
            layout(local_size_x = 16, local_size_y = 16) in;
            layout(std430, binding = 0) buffer Out { float o[]; };
            layout(std430, binding = 1) readonly buffer A { float a[]; };
            layout(std430, binding = 2) readonly buffer B { float b[]; };
            void main() {
                uvec2 at = gl_GlobalInvocationID.xy;
                float sum = 0.0;
                for (uint k = 0u; k < 48u; k++)
                    sum += a[at.y * 48u + k] * b[k * 48u + at.x];
                o[at.y * 48u + at.x] = sum;
            }));
        dispatch(3, 3, 1);
        same(out, words);
        if (!shared)
            out = storage(0, LENGTH(words), NULL);
    }
}

const struct test SHARED[] = {
    TEST(shared_sum), TEST(shared_transpose), TEST(prefix_sum), TEST(bitonic_sort), TEST(shared_kinds),
    TEST(buffer_barrier), TEST(matrix_multiply), {0},
};
