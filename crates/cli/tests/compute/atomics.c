/* Atomic operations on buffers, counters and shared variables. */
#include "compute.h"

static void atomics_unsigned(void) {
    const uint threads = 64 * 5;
    uint words[10] = {10, 0xffffff00u, 5, 0xffffffffu, 0, 0x12345678u, 1000, 3, 0, 0x80000000u}, first[10], sum = 0;
    memcpy(first, words, sizeof words);
    for (uint n = 0; n < threads; n++) {
        uint value = n * 2654435761u;
        words[0] += value;
        words[1] = value < words[1] ? value : words[1];
        words[2] = value > words[2] ? value : words[2];
        words[3] &= ~(1u << n % 27);
        words[4] |= 1u << n % 29;
        words[5] ^= value;
        sum += n + 1;
        words[7] += n;
        words[9] = n + 0x7fffff80u > words[9] ? n + 0x7fffff80u : words[9];
    }
    GLuint out = storage(0, 10, first), seen = storage(1, threads, NULL);
    compute(OUT GLSL(layout(local_size_x = 64) in; layout(std430, binding = 1) buffer Seen { uint seen[]; }; void main() {
        uint n = gl_GlobalInvocationID.x;
        uint value = n * 2654435761u;
        atomicAdd(o[0], value);
        atomicMin(o[1], value);
        atomicMax(o[2], value);
        atomicAnd(o[3], ~(1u << (n % 27u)));
        atomicOr(o[4], 1u << (n % 29u));
        atomicXor(o[5], value);
        seen[n] = atomicExchange(o[6], n + 1u);
        uint was = 3u;
        for (;;) {
            uint now = atomicCompSwap(o[7], was, was + n);
            if (now == was)
                break;
            was = now;
        }
        atomicMax(o[9], n + 0x7fffff80u);
    }));
    dispatch(5, 1, 1);
    /* The exchanged words: each but the last one was seen once. */
    uint found[10], exchanged[64 * 5];
    read_words(out, found, 10);
    read_words(seen, exchanged, threads);
    uint total = found[6];
    for (uint n = 0; n < threads; n++)
        total += exchanged[n];
    if (total != sum + 1000)
        fails("exchanged words add up to %u, expected %u", total, sum + 1000);
    words[6] = found[6];
    same(out, words);
}

static void atomics_signed(void) {
    int words[6] = {-7, 0, 0, 100, -1, 5}, first[6];
    memcpy(first, words, sizeof words);
    for (int n = 0; n < 256; n++) {
        int value = (int)(n * 2654435761u);
        words[0] += value / 3;
        words[1] = value < words[1] ? value : words[1];
        words[2] = value > words[2] ? value : words[2];
        words[3] = n - 50 < words[3] ? n - 50 : words[3];
        words[4] = -n - 3 > words[4] ? -n - 3 : words[4];
    }
    words[5] = -6;
    GLuint out = storage(0, 6, (uint *)first);
    compute(GLSL(layout(local_size_x = 64) in; layout(std430, binding = 0) buffer Out { int o[]; }; void main() {
        int n = int(gl_GlobalInvocationID.x);
        int value = int(gl_GlobalInvocationID.x * 2654435761u);
        atomicAdd(o[0], value / 3);
        atomicMin(o[1], value);
        atomicMax(o[2], value);
        atomicMin(o[3], n - 50);
        atomicMax(o[4], -n - 3);
        if (n == 77)
            atomicCompSwap(o[5], 5, -6);
    }));
    dispatch(4, 1, 1);
    same(out, (uint *)words);
}

/* Each result of an atomic addition is a place of a list. */
static void atomic_results(void) {
    enum { THREADS = 96 * 4 };
    static uint list[1 + THREADS], words[1 + THREADS];
    uint count = 0;
    for (uint n = 0; n < THREADS; n++)
        if (n % 3 != 1)
            words[1 + count++] = n;
    words[0] = count;
    for (uint n = 1 + count; n < 1 + THREADS; n++)
        words[n] = FILL;
    uint *first = malloc(sizeof words);
    memset(first, 0, 4);
    for (uint n = 1; n < 1 + THREADS; n++)
        first[n] = FILL;
    GLuint out = storage(0, 1 + THREADS, first);
    free(first);
    compute(OUT GLSL(layout(local_size_x = 96) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        if (n % 3u != 1u)
            o[1u + atomicAdd(o[0], 1u)] = n;
    }));
    dispatch(4, 1, 1);
    read_words(out, list, 1 + THREADS);
    sort(list + 1, list[0] < THREADS ? list[0] : THREADS);
    same_words(list, words, 1 + THREADS);
}

static void counters(void) {
    enum { THREADS = 32 * 6 };
    static uint order[THREADS], words[THREADS];
    uint first[3] = {40, 1000, 7}, expected[3] = {40, 1000, 7}, even = 0;
    for (uint n = 0; n < THREADS; n++) {
        words[n] = n % 2 ? expected[1] - n / 2 - 1 : expected[0] + n / 2;
        even += n % 2 == 0;
    }
    expected[0] += even;
    expected[1] -= THREADS - even;
    GLuint out = storage(0, THREADS, NULL), buffer = storage(1, 3, first), copy = storage(1, 6, NULL);
    glBindBufferBase(GL_ATOMIC_COUNTER_BUFFER, 0, buffer);
    compute(OUT GLSL(
        layout(binding = 0, offset = 0) uniform atomic_uint up;
        layout(binding = 0, offset = 4) uniform atomic_uint down;
        layout(binding = 0, offset = 8) uniform atomic_uint same;
        layout(std430, binding = 1) buffer Copy { uint copies[]; };
        layout(local_size_x = 32) in;
        void main() {
            uint n = gl_GlobalInvocationID.x;
            o[n] = n % 2u == 0u ? atomicCounterIncrement(up) : atomicCounterDecrement(down);
            if (gl_LocalInvocationID.x == 5u)
                copies[gl_WorkGroupID.x] = atomicCounter(same);
        }));
    dispatch(6, 1, 1);
    same(buffer, expected);
    uint sevens[6] = {7, 7, 7, 7, 7, 7};
    same(copy, sevens);
    read_words(out, order, THREADS);
    sort(order, THREADS);
    sort(words, THREADS);
    same_words(order, words, THREADS);
}

static void shared_atomics(void) {
    enum { GROUPS = 4, WORDS = 24 };
    uint words[GROUPS * WORDS];
    for (uint group = 0; group < GROUPS; group++) {
        uint *w = words + WORDS * group;
        memset(w, 0, WORDS * 4);
        w[16] = 0xffffffffu;
        w[18] = 0xffffffffu;
        w[23] = 9;
        for (uint n = 0; n < 128; n++) {
            uint value = (group * 128 + n) * 2654435761u;
            w[value >> 28]++;
            w[16] = value < w[16] ? value : w[16];
            w[17] = value > w[17] ? value : w[17];
            w[18] &= ~(1u << (value >> 24) % 31);
            w[19] |= value & 0x01010101u;
            w[20] ^= value;
            if ((int)value < (int)w[21])
                w[21] = value;
            if ((int)value > (int)w[22])
                w[22] = value;
            w[23] += n;
        }
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT GLSL(
        layout(local_size_x = 128) in;
        shared uint bins[16];
        shared uint low; shared uint high; shared uint all; shared uint any; shared uint odd; shared uint swapped;
        shared int lowest; shared int highest;
        void main() {
            uint n = gl_LocalInvocationID.x;
            if (n < 16u)
                bins[n] = 0u;
            if (n == 16u) {
                low = 0xffffffffu; high = 0u; all = 0xffffffffu; any = 0u; odd = 0u; swapped = 9u;
                lowest = 0; highest = 0;
            }
            memoryBarrierShared();
            barrier();
            uint value = gl_GlobalInvocationID.x * 2654435761u;
            atomicAdd(bins[value >> 28], 1u);
            atomicMin(low, value);
            atomicMax(high, value);
            atomicAnd(all, ~(1u << ((value >> 24) % 31u)));
            atomicOr(any, value & 0x01010101u);
            atomicXor(odd, value);
            atomicMin(lowest, int(value));
            atomicMax(highest, int(value));
            uint was = 9u;
            for (;;) {
                uint now = atomicCompSwap(swapped, was, was + n);
                if (now == was)
                    break;
                was = now;
            }
            memoryBarrierShared();
            barrier();
            uint base = gl_WorkGroupID.x * 24u;
            if (n < 16u)
                o[base + n] = bins[n];
            if (n == 0u) {
                o[base + 16u] = low; o[base + 17u] = high; o[base + 18u] = all; o[base + 19u] = any;
                o[base + 20u] = odd; o[base + 21u] = uint(lowest); o[base + 22u] = uint(highest);
                o[base + 23u] = swapped;
            }
        }));
    dispatch(GROUPS, 1, 1);
    same(out, words);
}

/* Results of atomics on a shared word: each thread takes a number once. */
static void shared_tickets(void) {
    enum { THREADS = 192 };
    static uint found[THREADS * 2], words[THREADS * 2];
    for (uint n = 0; n < THREADS * 2; n++)
        words[n] = n % THREADS;
    GLuint out = storage(0, THREADS * 2, NULL);
    compute(OUT GLSL(layout(local_size_x = 192) in; shared uint next; void main() {
        if (gl_LocalInvocationIndex == 0u)
            next = 0u;
        memoryBarrierShared();
        barrier();
        uint ticket = atomicAdd(next, 1u);
        o[gl_WorkGroupID.x * 192u + ticket] = gl_LocalInvocationIndex;
    }));
    dispatch(2, 1, 1);
    read_words(out, found, THREADS * 2);
    sort(found, THREADS);
    sort(found + THREADS, THREADS);
    same_words(found, words, THREADS * 2);
}

const struct test ATOMICS[] = {
    TEST(atomics_unsigned), TEST(atomics_signed), TEST(atomic_results), TEST(counters), TEST(shared_atomics),
    TEST(shared_tickets), {0},
};
