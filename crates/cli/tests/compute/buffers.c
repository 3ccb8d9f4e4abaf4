/* Storage buffers, uniforms and uniform blocks. */
#include "compute.h"

/* Loads and stores of vectors. */
static void vectors(void) {
    static uint data[64 * 16], words[64 * 16];
    for (uint n = 0; n < LENGTH(data); n++)
        data[n] = random_word();
    memcpy(words, data, sizeof data);
    for (uint n = 0; n < 64; n++) {
        uint *w = words + 16 * n, *d = data + 16 * n;
        for (uint k = 0; k < 4; k++)
            w[k] = d[3 - k] + d[4 + k];
        w[4] = d[5], w[6] = d[4];
        for (uint k = 0; k < 3; k++)
            w[8 + k] = d[8 + k] * d[12 + n % 4];
        w[12 + n % 4] = n;
    }
    GLuint out = storage(0, LENGTH(words), data);
    compute(GLSL(
        layout(local_size_x = 32) in;
        struct Words { uvec4 a; uvec2 b; uvec2 c; uvec3 d; uint unused; uint e[4]; };
        layout(std430, binding = 0) buffer Items { Words items[]; };
        void main() {
            uint n = gl_GlobalInvocationID.x;
            uvec4 a = items[n].a;
            uvec2 b = items[n].b;
            uvec3 d = items[n].d;
            items[n].a = a.wzyx + uvec4(b, items[n].c);
            items[n].b.x = b.y;
            items[n].c.x = b.x;
            items[n].d = d * items[n].e[n % 4u];
            items[n].e[n % 4u] = n;
        }));
    dispatch(2, 1, 1);
    same(out, words);
}

/* Ranges of one buffer at four slots, and their lengths. */
static void ranges(void) {
    GLint step;
    glGetIntegerv(GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT, &step);
    step = step < 256 ? 256 : step;
    static uint data[64 * 40], words[64 * 40];
    uint at[4] = {2 * step / 4, 5 * step / 4, 9 * step / 4, 20 * step / 4}, length[4] = {33, 64, 100, 7};
    for (uint n = 0; n < LENGTH(data); n++)
        words[n] = data[n] = random_word();
    for (uint n = 0; n < 4; n++)
        words[n] = length[n];
    for (uint slot = 0; slot < 4; slot++)
        for (uint n = 0; n < length[slot]; n++)
            words[at[slot] + n] = data[at[slot] + n] * 3 + slot;
    words[4] = data[at[3] + 6] * 3 + 3;
    GLuint buffer = storage(7, LENGTH(data), data);
    for (uint slot = 0; slot < 4; slot++)
        glBindBufferRange(GL_SHADER_STORAGE_BUFFER, slot + 1, buffer, at[slot] * 4, length[slot] * 4);
    glBindBufferRange(GL_SHADER_STORAGE_BUFFER, 0, buffer, 0, 20);
    compute(OUT GLSL(
        layout(local_size_x = 64) in;
        layout(std430, binding = 1) buffer A { uint a[]; };
        layout(std430, binding = 2) buffer B { uint b[]; };
        layout(std430, binding = 3) buffer C { uint c[]; };
        layout(std430, binding = 4) buffer D { uint d[]; };
        void main() {
            uint n = gl_GlobalInvocationID.x;
            if (n < uint(a.length()))
                a[n] = a[n] * 3u;
            if (n < uint(b.length()))
                b[n] = b[n] * 3u + 1u;
            if (n < uint(c.length()))
                c[n] = c[n] * 3u + 2u;
            if (n < uint(d.length())) {
                d[n] = d[n] * 3u + 3u;
                if (n == uint(d.length()) - 1u)
                    o[4] = d[n];
            }
            if (n == 0u) {
                o[0] = uint(a.length());
                o[1] = uint(b.length());
                o[2] = uint(c.length());
                o[3] = uint(d.length());
            }
        }));
    dispatch(2, 1, 1);
    same(buffer, words);
}

/* A buffer of each slot, without any order among the slots of the text. */
static void eight_buffers(void) {
    static uint words[8][64];
    GLuint buffers[8];
    for (uint slot = 0; slot < 8; slot++) {
        for (uint n = 0; n < 64; n++)
            words[slot][n] = slot * 1000 + n;
        buffers[slot] = storage(slot, 64, NULL);
    }
    compute(GLSL(
        layout(std430, binding = 5) buffer B5 { uint b5[]; };
        layout(std430, binding = 0) buffer B0 { uint b0[]; };
        layout(std430, binding = 7) buffer B7 { uint b7[]; };
        layout(std430, binding = 2) buffer B2 { uint v[]; } b2;
        layout(std430, binding = 1) buffer B1 { uint b1[]; };
        layout(std430, binding = 3) buffer B3 { uint v[]; } b3;
        layout(std430, binding = 6) buffer B6 { uint b6[]; };
        layout(std430, binding = 4) buffer B4 { uint b4[]; };
        layout(local_size_x = 64) in;
        void main() {
            uint n = gl_LocalInvocationID.x;
            b0[n] = n; b1[n] = n + 1000u; b2.v[n] = n + 2000u; b3.v[n] = n + 3000u;
            b4[n] = n + 4000u; b5[n] = n + 5000u; b6[n] = n + 6000u; b7[n] = n + 7000u;
        }));
    dispatch(1, 1, 1);
    for (uint slot = 0; slot < 8; slot++)
        same(buffers[slot], words[slot]);
}

static void structs(void) {
    /* Offsets of std430 in words. A particle has 12: position 0, mass 3, cell 4, tag 6, weights 7 to 9, padding 10, 11. */
    enum { COUNT = 40, BASE = 28 };
    static uint data[BASE + 12 * COUNT], words[BASE + 12 * COUNT];
    for (uint n = 0; n < LENGTH(data); n++)
        data[n] = random_word() & 0xffff;
    for (uint n = 4; n < 12; n++)
        data[n] = bits_of(n);
    for (uint n = 20; n < 28; n++)
        data[n] = bits_of(n * 2);
    for (uint k = 0; k < COUNT; k++) {
        for (uint n = 0; n < 4; n++)
            data[BASE + 12 * k + n] = bits_of(k * 4.0f + n);
        for (uint n = 7; n < 10; n++)
            data[BASE + 12 * k + n] = bits_of(n * 3.0f);
    }
    memcpy(words, data, sizeof data);
    words[0] = COUNT;
    for (uint k = 0; k < COUNT; k++) {
        uint *p = words + BASE + 12 * k;
        float m[3] = {4 + 8 * 2, 5 + 9 * 2, 6 + 10 * 2}, r[2] = {20 + 2 * 21 + 4 * 22, 24 + 2 * 25 + 4 * 26};
        for (uint n = 0; n < 3; n++)
            p[n] = bits_of(k * 4.0f + n + m[n]);
        p[3] = bits_of((k * 4.0f + 3) * 2 + r[0] * 2 + r[1] * 4);
        p[4] = data[BASE + 12 * k + 5];
        p[5] = data[BASE + 12 * k + 4] + data[12 + k % 4] + data[16 + k % 2 * 2 + 1];
        p[6] = -data[BASE + 12 * k + 6];
        p[7 + k % 3] = bits_of(k);
    }
    GLuint buffer = storage(0, LENGTH(words), data);
    compute(GLSL(
        struct Particle { vec3 position; float mass; uvec2 cell; int tag; float weights[3]; };
        layout(std430, binding = 0) buffer World {
            uint count;
            mat2x3 columns;
            uint numbers[4];
            uvec2 pairs[2];
            layout(row_major) mat3x2 rows;
            Particle particles[];
        };
        layout(local_size_x = 16) in;
        void main() {
            uint k = gl_GlobalInvocationID.x;
            if (k >= uint(particles.length()))
                return;
            if (k == 0u)
                count = uint(particles.length());
            particles[k].position += columns * vec2(1.0, 2.0);
            vec2 r = rows * vec3(0.5, 1.0, 2.0);
            particles[k].mass = particles[k].mass * 2.0 + dot(r, vec2(2.0, 4.0));
            uvec2 cell = particles[k].cell.yx;
            cell.y += numbers[k % 4u] + pairs[k % 2u].y;
            particles[k].cell = cell;
            particles[k].tag = -particles[k].tag;
            particles[k].weights[k % 3u] = float(k);
        }));
    /* Without the guard words, which would be particles. */
    glBindBufferRange(GL_SHADER_STORAGE_BUFFER, 0, buffer, 0, sizeof words);
    dispatch(4, 1, 1);
    same(buffer, words);
}

static void uniforms(void) {
    static uint words[64 * 4];
    uint array[20], scale = 5;
    int vector[4] = {-1, 20, -300, 4000};
    float matrix[6] = {1, 2, 3, 4, 5, 6};
    for (uint n = 0; n < 20; n++)
        array[n] = random_word();
    GLuint out = storage(0, LENGTH(words), NULL);
    GLuint program = compute(OUT GLSL(
        uniform uint array[20];
        uniform uint scale;
        uniform ivec4 vector;
        uniform bool flag;
        uniform mat3x2 matrix;
        uniform struct { uint first; vec2 second[2]; } group;
        layout(local_size_x = 64) in;
        void main() {
            uint n = gl_GlobalInvocationID.x;
            o[4u * n] = array[n % 20u] * scale;
            o[4u * n + 1u] = uint(vector[n % 4u] * (flag ? 1 : 2));
            vec2 v = matrix * vec3(1.0, 2.0, float(n));
            o[4u * n + 2u] = floatBitsToUint(v.x) ^ uint(v.y);
            o[4u * n + 3u] = group.first + uint(group.second[n & 1u].y);
        }));
    glUniform1uiv(location(program, "array"), 20, array);
    glUniform1ui(location(program, "scale"), scale);
    glUniform4iv(location(program, "vector"), 1, vector);
    glUniform1i(location(program, "flag"), 0);
    glUniformMatrix3x2fv(location(program, "matrix"), 1, GL_FALSE, matrix);
    glUniform1ui(location(program, "group.first"), 17);
    glUniform2f(location(program, "group.second[0]"), 3, 4);
    glUniform2f(location(program, "group.second[1]"), 5, 6);
    for (uint n = 0; n < 64; n++) {
        words[4 * n] = array[n % 20] * scale;
        words[4 * n + 1] = vector[n % 4] * 2;
        words[4 * n + 2] = bits_of(1 + 3 * 2 + 5 * n) ^ (2 + 4 * 2 + 6 * n);
        words[4 * n + 3] = 17 + (n & 1 ? 6 : 4);
    }
    dispatch(1, 1, 1);
    same(out, words);
    /* The same program with other uniforms. */
    glUniform1i(location(program, "flag"), 1);
    glUniform1ui(location(program, "scale"), 7);
    for (uint n = 0; n < 64; n++) {
        words[4 * n] = array[n % 20] * 7;
        words[4 * n + 1] = vector[n % 4];
    }
    dispatch(1, 1, 1);
    same(out, words);
}

static void uniform_blocks(void) {
    GLint step;
    glGetIntegerv(GL_UNIFORM_BUFFER_OFFSET_ALIGNMENT, &step);
    step = step < 256 ? 256 : step;
    static uint data[64 * 16], words[64 * 4];
    for (uint n = 0; n < LENGTH(data); n++)
        data[n] = random_word() & 0xfffff;
    uint *a = data, *b = data + step / 4, *c = data + step / 2, *d = data + step;
    for (uint n = 0; n < 64; n++) {
        words[4 * n] = a[n % 5 * 4] + a[20 + n % 2];
        words[4 * n + 1] = b[n % 5 * 4] ^ b[21];
        words[4 * n + 2] = c[n % 3 * 8 + 4 + n % 3] + c[24];
        words[4 * n + 3] = d[n] - d[63 - n];
    }
    GLuint out = storage(0, LENGTH(words), NULL), buffer = storage(1, LENGTH(data), data);
    glBindBufferRange(GL_UNIFORM_BUFFER, 0, buffer, 0, 96);
    glBindBufferRange(GL_UNIFORM_BUFFER, 1, buffer, step, 96);
    glBindBufferRange(GL_UNIFORM_BUFFER, 3, buffer, 2 * step, 112);
    glBindBufferRange(GL_UNIFORM_BUFFER, 6, buffer, 4 * step, 256);
    compute(OUT GLSL(
        layout(std140, binding = 0) uniform Block { uint values[5]; uvec2 pair; } blocks[2];
        struct Item { uint a; uvec3 b; };
        layout(std140, binding = 3) uniform Items { Item items[3]; uint last; };
        layout(std140, binding = 6) uniform Many { uvec4 many[16]; };
        layout(local_size_x = 64) in;
        void main() {
            uint n = gl_GlobalInvocationID.x;
            o[4u * n] = blocks[0].values[n % 5u] + blocks[0].pair[n % 2u];
            o[4u * n + 1u] = blocks[1].values[n % 5u] ^ blocks[1].pair.y;
            o[4u * n + 2u] = items[n % 3u].b[n % 3u] + last;
            o[4u * n + 3u] = many[n / 4u][n % 4u] - many[(63u - n) / 4u][(63u - n) % 4u];
        }));
    dispatch(1, 1, 1);
    same(out, words);
}

/* A storage buffer is a uniform block of the next dispatch of the same program. */
static void block_written(void) {
    uint words[16];
    for (uint n = 0; n < 16; n++)
        words[n] = n;
    for (uint round = 0; round < 3; round++) {
        uint next[16];
        for (uint n = 0; n < 16; n++)
            next[n] = words[n] * 3 + words[15 - n];
        memcpy(words, next, sizeof words);
    }
    uint first[16];
    for (uint n = 0; n < 16; n++)
        first[n] = n;
    GLuint buffers[2] = {storage(0, 16, first), storage(0, 16, NULL)};
    compute(OUT GLSL(
        layout(std140, binding = 0) uniform Words { uvec4 words[4]; };
        layout(local_size_x = 16) in;
        void main() {
            uint n = gl_LocalInvocationID.x;
            o[n] = words[n / 4u][n % 4u] * 3u + words[(15u - n) / 4u][(15u - n) % 4u];
        }));
    for (uint round = 0; round < 3; round++) {
        glBindBufferRange(GL_UNIFORM_BUFFER, 0, buffers[round % 2], 0, 64);
        glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffers[1 - round % 2]);
        glDispatchCompute(1, 1, 1);
        glMemoryBarrier(GL_UNIFORM_BARRIER_BIT | GL_SHADER_STORAGE_BARRIER_BIT);
    }
    same(buffers[1], words);
}

/* Words that the CPU and copies write between dispatches of one program. */
static void buffer_updates(void) {
    enum { WORDS = 64 };
    uint words[WORDS];
    GLuint out = storage(0, WORDS, NULL), other = storage(1, WORDS, NULL);
    for (uint n = 0; n < WORDS; n++)
        words[n] = n;
    glBindBuffer(GL_COPY_WRITE_BUFFER, out);
    glBufferSubData(GL_COPY_WRITE_BUFFER, 0, sizeof words, words);
    compute(OUT GLSL(layout(local_size_x = 64) in; void main() {
        o[gl_GlobalInvocationID.x] = o[gl_GlobalInvocationID.x] * 3u + 1u;
    }));
    dispatch(1, 1, 1);
    uint part[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    glBufferSubData(GL_COPY_WRITE_BUFFER, 16 * 4, sizeof part, part);
    dispatch(1, 1, 1);
    glBindBuffer(GL_COPY_READ_BUFFER, other);
    glCopyBufferSubData(GL_COPY_WRITE_BUFFER, GL_COPY_READ_BUFFER, 0, 0, sizeof words);
    glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, 0, 128, 64);
    dispatch(1, 1, 1);
    uint *mapped = glMapBufferRange(GL_COPY_WRITE_BUFFER, 8, 8, GL_MAP_WRITE_BIT | GL_MAP_READ_BIT);
    mapped[0] += 5;
    mapped[1] = 77;
    glUnmapBuffer(GL_COPY_WRITE_BUFFER);
    dispatch(1, 1, 1);
    for (uint n = 0; n < WORDS; n++)
        words[n] = words[n] * 3 + 1;
    memcpy(words + 16, part, sizeof part);
    for (uint n = 0; n < WORDS; n++)
        words[n] = words[n] * 3 + 1;
    uint copied[WORDS];
    memcpy(copied, words, sizeof words);
    memcpy(words + 32, words, 64);
    for (uint n = 0; n < WORDS; n++)
        words[n] = words[n] * 3 + 1;
    words[2] += 5;
    words[3] = 77;
    for (uint n = 0; n < WORDS; n++)
        words[n] = words[n] * 3 + 1;
    same(out, words);
    same(other, copied);
}

/* Ten generations of a rule, one dispatch each. */
static void chain(void) {
    enum { WORDS = 512 };
    static uint a[WORDS], b[WORDS];
    for (uint n = 0; n < WORDS; n++)
        a[n] = random_word();
    GLuint buffers[2] = {storage(0, WORDS, a), storage(0, WORDS, NULL)};
    compute(OUT IN GLSL(layout(local_size_x = 64) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        o[n] = i[n] * 3u + i[(n + 511u) % 512u] + (i[(n + 200u) % 512u] >> 5);
    }));
    for (uint round = 0; round < 10; round++) {
        glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, buffers[1 - round % 2]);
        glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, buffers[round % 2]);
        glDispatchCompute(WORDS / 64, 1, 1);
        glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
        for (uint n = 0; n < WORDS; n++)
            b[n] = a[n] * 3 + a[(n + 511) % 512] + (a[(n + 200) % 512] >> 5);
        memcpy(a, b, sizeof a);
    }
    same(buffers[0], a);
}

/* Five programs in order, each of which reads the words of the one before. */
static void five_programs(void) {
    static uint words[96];
    GLuint buffer = storage(0, 96, NULL);
    for (uint number = 0; number < 5; number++) {
        char text[400];
        snprintf(text, sizeof text, OUT "layout(local_size_x = 32) in; void main() { uint n = gl_GlobalInvocationID.x;"
            "o[n] = %s; }", number == 0 ? "n" : number == 1 ? "o[n] * 7u" : number == 2 ? "o[n] ^ n << 3"
            : number == 3 ? "o[n] / 3u + o[n] % 5u" : "o[n] - 100u");
        compute(text);
        glDispatchCompute(3, 1, 1);
        glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
    }
    for (uint n = 0; n < 96; n++) {
        uint v = n * 7;
        v ^= n << 3;
        v = v / 3 + v % 5;
        words[n] = v - 100;
    }
    same(buffer, words);
}

const struct test BUFFERS[] = {
    TEST(vectors), TEST(ranges), TEST(eight_buffers), TEST(structs), TEST(uniforms), TEST(uniform_blocks),
    TEST(block_written), TEST(buffer_updates), TEST(chain), TEST(five_programs), {0},
};
