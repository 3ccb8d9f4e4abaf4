/* Arithmetic of integers and floats. */
#include "compute.h"

static void float_math(void) {
    static uint words[256 * 8];
    static float data[256];
    for (uint n = 0; n < 256; n++)
        data[n] = ((int)(random_word() & 0xfff) - 2048) * 0.125f;
    for (uint n = 0; n < 256; n++) {
        float a = data[n], b = data[(n + 1) % 256], below = (float)(int)a - ((float)(int)a > a), size = a < 0 ? -a : a;
        float result[8] = {a + b, a * b, a - b * 0.5f, below, -below + a, a < b ? a : b, size + (a > 0 ? 1 : a < 0 ? -1 : 0),
            (float)(int)a * 4 + (b > 1 ? 1 : b < -1 ? -1 : b)};
        for (uint k = 0; k < 8; k++)
            words[8 * n + k] = bits_of(result[k] + 0.0f);
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, 256, (uint *)data);
    compute(GLSL(
        layout(local_size_x = 64) in;
        layout(std430, binding = 0) buffer Out { float o[]; };
        layout(std430, binding = 1) readonly buffer In { float i[]; };
        void main() {
            uint n = gl_GlobalInvocationID.x;
            float a = i[n];
            float b = i[(n + 1u) % 256u];
            /* Plus 0: no sign of zero. */
            o[8u * n] = a + b + 0.0;
            o[8u * n + 1u] = a * b + 0.0;
            o[8u * n + 2u] = a - b * 0.5 + 0.0;
            o[8u * n + 3u] = floor(a) + 0.0;
            o[8u * n + 4u] = fract(a) + 0.0;
            o[8u * n + 5u] = min(a, b) + 0.0;
            o[8u * n + 6u] = abs(a) + sign(a) + 0.0;
            o[8u * n + 7u] = trunc(a) * 4.0 + clamp(b, -1.0, 1.0) + 0.0;
        }));
    dispatch(4, 1, 1);
    /* -0 is 0. */
    static uint found[256 * 8];
    read_words(out, found, LENGTH(found));
    for (uint word = 0; word < LENGTH(found); word++) {
        found[word] = found[word] == 0x80000000u ? 0 : found[word];
        words[word] = words[word] == 0x80000000u ? 0 : words[word];
    }
    same_words(found, words, LENGTH(found));
}

static void conversions(void) {
    static uint words[128 * 6];
    static uint data[128];
    for (uint n = 0; n < 128; n++)
        data[n] = (random_word() & 0xffffff) << random_word() % 9 >> random_word() % 9;
    data[0] = 0xffffff00u, data[1] = 0x80000000u, data[2] = 0, data[3] = 1, data[4] = 0x7fffff80u;
    for (uint n = 0; n < 128; n++) {
        uint v = data[n];
        words[6 * n] = v >> 8 << 8 == v || v < 1 << 24 ? bits_of((float)v) : 0;
        words[6 * n + 1] = bits_of((float)(int)(v & 0x80ffff00u));
        words[6 * n + 2] = (uint)((v >> 8) * 0.25f);
        words[6 * n + 3] = (uint)(int)(((int)(v & 0xffff) - 30000) * 0.25f);
        words[6 * n + 4] = (v & 1 ? 10 : 20) + (v != 0);
        words[6 * n + 5] = bits_of((v & 3) != 0 ? 1 : 0);
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, 128, data);
    compute(OUT IN GLSL(layout(local_size_x = 64) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        uint v = i[n];
        o[6u * n] = (v >> 8 << 8) == v || v < 1u << 24 ? floatBitsToUint(float(v)) : 0u;
        o[6u * n + 1u] = floatBitsToUint(float(int(v & 0x80ffff00u)));
        o[6u * n + 2u] = uint(float(v >> 8) * 0.25);
        o[6u * n + 3u] = uint(int(float(int(v & 0xffffu) - 30000) * 0.25));
        o[6u * n + 4u] = (bool(v & 1u) ? 10u : 20u) + uint(bool(v));
        o[6u * n + 5u] = floatBitsToUint(float(bool(v & 3u)));
    }));
    dispatch(2, 1, 1);
    same(out, words);
}

BOTH(unsigned_text, uint unsigned_value(uint a, uint b, uint k) {
    uint d = b | 1u;
    uint s = b >> 27;
    if (k == 0u)
        return a * b;
    if (k == 1u)
        return a / d;
    if (k == 2u)
        return a % d;
    if (k == 3u)
        return (a << s) ^ (a >> (31u - s));
    if (k == 4u)
        return (a < b ? 1u : 0u) + (a / (d >> 16 | 1u)) * 5u;
    if (k == 5u)
        return a % (d & 255u) + ~b;
    if (k == 6u)
        return a / 7u + a % 10u + b / 641u + b % 65537u;
    return (a & b) | (a ^ 0x0f0f0f0fu);
})

static void integers_unsigned(void) {
    static uint data[256], words[256 * 8];
    for (uint n = 0; n < 256; n++)
        data[n] = n % 3 ? random_word() : random_word() >> random_word() % 32;
    data[5] = 0xffffffffu, data[6] = 0, data[7] = 0x80000000u, data[8] = 0xffffffffu, data[9] = 1;
    for (uint n = 0; n < LENGTH(words); n++)
        words[n] = unsigned_value(data[n / 8], data[(n / 8 + 1) % 256], n % 8);
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, 256, data);
    char text[4000];
    snprintf(text, sizeof text, OUT IN "%s%s", unsigned_text, GLSL(layout(local_size_x = 64) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        o[n] = unsigned_value(i[n / 8u], i[(n / 8u + 1u) % 256u], n % 8u);
    }));
    compute(text);
    dispatch(LENGTH(words) / 64, 1, 1);
    same(out, words);
}

BOTH(signed_text, int signed_value(int a, int b, int k) {
    int d = b | 1;
    if (d == -1)
        d = 3;
    if (k == 0)
        return (a >> 8) * (b >> 20);
    if (k == 1)
        return a / d;
    if (k == 2)
        return (a & 0x7fffffff) % (d & 0x7fffffff);
    if (k == 3)
        return a >> (b < 0 ? 17 : b >> 26);
    if (k == 4)
        return (a < b ? 1 : 0) + (a <= 0 ? 2 : 0) + (a == b ? 4 : 0);
    if (k == 5)
        return a / -13 + b / 16;
    if (k == 6)
        return (a >> 1) - (b >> 2);
    return (a / 1000) * 7;
})

static void integers_signed(void) {
    static uint data[256], words[256 * 8];
    for (uint n = 0; n < 256; n++)
        data[n] = n % 3 ? random_word() : (uint)((int)random_word() >> random_word() % 32);
    data[5] = 0xffffffffu, data[6] = 0, data[7] = 0x80000001u, data[8] = 0xffffffffu, data[9] = 1;
    for (uint n = 0; n < LENGTH(words); n++)
        words[n] = signed_value(data[n / 8], data[(n / 8 + 1) % 256], n % 8);
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, 256, data);
    char text[4000];
    snprintf(text, sizeof text, OUT IN "%s%s", signed_text, GLSL(layout(local_size_x = 64) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        o[n] = uint(signed_value(int(i[n / 8u]), int(i[(n / 8u + 1u) % 256u]), int(n % 8u)));
    }));
    compute(text);
    dispatch(LENGTH(words) / 64, 1, 1);
    same(out, words);
}

/* umulExtended, imulExtended, uaddCarry, usubBorrow. */
static void wide_integers(void) {
    static uint data[128], words[128 * 8];
    for (uint n = 0; n < 128; n++)
        data[n] = n % 3 ? random_word() : (uint)((int)random_word() >> random_word() % 32);
    data[5] = 0xffffffffu, data[6] = 0xffffffffu, data[7] = 0x80000000u, data[8] = 0x80000000u;
    for (uint n = 0; n < 128; n++) {
        uint a = data[n], b = data[(n + 1) % 128];
        uint64_t product = (uint64_t)a * b;
        int64_t other = (int64_t)(int)a * (int)b;
        uint values[8] = {product >> 32, product, (uint64_t)other >> 32, other, a + b, a + b < a, a - b, a < b};
        memcpy(words + 8 * n, values, sizeof values);
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, 128, data);
    compute(OUT IN GLSL(layout(local_size_x = 32) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        uint a = i[n];
        uint b = i[(n + 1u) % 128u];
        uint high;
        uint low;
        umulExtended(a, b, high, low);
        o[8u * n] = high;
        o[8u * n + 1u] = low;
        int signed_high;
        int signed_low;
        imulExtended(int(a), int(b), signed_high, signed_low);
        o[8u * n + 2u] = uint(signed_high);
        o[8u * n + 3u] = uint(signed_low);
        uint carry;
        o[8u * n + 4u] = uaddCarry(a, b, carry);
        o[8u * n + 5u] = carry;
        uint borrow;
        o[8u * n + 6u] = usubBorrow(a, b, borrow);
        o[8u * n + 7u] = borrow;
    }));
    dispatch(4, 1, 1);
    same(out, words);
}

static void bits(void) {
    static uint data[128], words[128 * 10];
    for (uint n = 0; n < 128; n++)
        data[n] = n % 2 ? random_word() : (uint)((int)random_word() >> random_word() % 32);
    data[5] = 0xffffffffu, data[6] = 0, data[7] = 0x80000000u, data[8] = 1;
    for (uint n = 0; n < 128; n++) {
        uint a = data[n], b = data[(n + 1) % 128], offset = b & 15, count = b >> 4 & 15;
        uint mask = (1u << count) - 1, field = a >> offset & mask, reversed = 0;
        uint sign = a >> 31 ? ~a : a;
        for (uint k = 0; k < 32; k++)
            reversed |= (a >> k & 1) << (31 - k);
        uint values[10] = {
            field,
            count && field >> (count - 1) & 1 ? field | ~mask : field,
            (a & ~(mask << offset)) | (b & mask) << offset,
            reversed,
            __builtin_popcount(a),
            a ? __builtin_ctz(a) : -1,
            a ? 31 - __builtin_clz(a) : -1,
            sign ? 31 - __builtin_clz(sign) : -1,
            __builtin_popcount(b & 0xffff) * 100,
            a >> 8 & 255,
        };
        memcpy(words + 10 * n, values, sizeof values);
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    storage(1, 128, data);
    compute(OUT IN GLSL(layout(local_size_x = 32) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        uint a = i[n];
        uint b = i[(n + 1u) % 128u];
        int offset = int(b & 15u);
        int count = int(b >> 4 & 15u);
        o[10u * n] = bitfieldExtract(a, offset, count);
        o[10u * n + 1u] = uint(bitfieldExtract(int(a), offset, count));
        o[10u * n + 2u] = bitfieldInsert(a, b, offset, count);
        o[10u * n + 3u] = bitfieldReverse(a);
        o[10u * n + 4u] = uint(bitCount(a));
        o[10u * n + 5u] = uint(findLSB(a));
        o[10u * n + 6u] = uint(findMSB(a));
        o[10u * n + 7u] = uint(findMSB(int(a)));
        o[10u * n + 8u] = uint(bitCount(int(b & 0xffffu)) * 100);
        o[10u * n + 9u] = bitfieldExtract(a, 8, 8);
    }));
    dispatch(4, 1, 1);
    same(out, words);
}

static void packing(void) {
    /* Halves that are exact: 1.5 n for small n; bytes and 16-bit words: ends and zero, which round alike everywhere. */
    static uint words[64 * 4];
    for (uint n = 0; n < 64; n++) {
        uint half = 0;
        if (n) {
            float value = 1.5f * n;
            for (half = 15; value >= 2; half++)
                value /= 2;
            half = half << 10 | (uint)((value - 1) * 1024);
        }
        words[4 * n] = half | 0xc0000000u;
        words[4 * n + 1] = bits_of(1.5f * n);
        words[4 * n + 2] = n % 2 ? 0x00ff00ffu : 0xff00ff00u;
        words[4 * n + 3] = n % 2 ? 0x80017fffu : 0x7fff0000u;
    }
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT GLSL(layout(local_size_x = 64) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        o[4u * n] = packHalf2x16(vec2(1.5 * float(n), -2.0));
        o[4u * n + 1u] = floatBitsToUint(unpackHalf2x16(o[4u * n]).x);
        bool odd = (n & 1u) != 0u;
        o[4u * n + 2u] = packUnorm4x8(odd ? vec4(1.0, 0.0, 1.0, -3.0) : vec4(0.0, 2.0, 0.0, 1.0));
        o[4u * n + 3u] = packSnorm2x16(odd ? vec2(1.0, -1.0) : vec2(0.0, 5.0));
    }));
    dispatch(1, 1, 1);
    same(out, words);
}

const struct test ARITHMETIC[] = {
    TEST(float_math), TEST(conversions), TEST(integers_unsigned), TEST(integers_signed), TEST(wide_integers),
    TEST(bits), TEST(packing), {0},
};
