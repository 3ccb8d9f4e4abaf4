/* Programs that Mesa 22.3.6 compiles or runs wrongly on nv50. */
#include "compute.h"

/* F9: NIR drops the mask of a shift count; the shifts of nv50 take the whole word. */
static uint masked_shift(uint n) {
    uint count = n * 2654435761u;
    return n % 3 == 0 ? 0x89abcdefu << (count & 31) : n % 3 == 1 ? 0x89abcdefu >> (count & 31)
        : (uint)((int)0x89abcdefu >> (count & 31));
}

static void masked_shifts(void) {
    each(GLSL(uint masked_shift(uint n) {
        uint count = n * 2654435761u;
        uint a = 0x89abcdefu ^ (n >> 20);
        if (n % 3u == 0u)
            return a << (count & 31u);
        if (n % 3u == 1u)
            return a >> (count & 31u);
        return uint(int(a) >> (count & 31u));
    }), "masked_shift(n)", 2, masked_shift);
}

static void first_second_first(const char *second, uint groups) {
    uint words[3][32];
    GLuint out[3], programs[2];
    programs[0] = compute(OUT GLSL(layout(local_size_x = 32) in; void main() {
        o[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x * 3u + 1u;
    }));
    programs[1] = compute(second);
    for (uint round = 0; round < 3; round++) {
        out[round] = storage(0, 32, NULL);
        glUseProgram(programs[round % 2]);
        dispatch(round % 2 ? groups : 1, 1, 1);
        for (uint n = 0; n < 32; n++)
            words[round][n] = round % 2 ? n ^ 0x777 : n * 3 + 1;
    }
    for (uint round = 0; round < 3; round++)
        same(out[round], words[round]);
}

/* An image of one component reads 0 as its second one, which only the driver's compiler knows. It folds the conversion of a
 * constant to an integer, and rounds to the nearest integer then (nv50_ir_peephole.cpp: ConstantFolding::opnd). */
static void folded_conversion(void) {
    const uint word = 0;
    GLuint out = storage(0, 1, NULL), image = texture(GL_TEXTURE_2D, 1, GL_R32F, 1, 1, 1);
    glBindImageTexture(0, image, 0, GL_FALSE, 0, GL_READ_ONLY, GL_R32F);
    compute(OUT GLSL(layout(local_size_x = 1) in; layout(r32f, binding = 0) readonly uniform image2D image; void main() {
        o[0] = uint(imageLoad(image, ivec2(0)).y + 0.75);
    }));
    dispatch(1, 1, 1);
    same(out, &word);
}

static uint high_word(uint n) {
    uint a = n * 2654435761u + 0xffff0000u;
    return (uint64_t)a * 0xfffdfffbu >> 32;
}

/* A product of words adds four products of halves. The driver's compiler puts a constant half into the second of the additions, in
 * a form that does not store the carry, which is read later (nv50_ir_peephole.cpp: PostRaLoadPropagation::handleMADforNV50 does
 * not look at flagsDef). */
static void high_words(void) {
    each(GLSL(uint high_word(uint n) {
        uint high;
        uint low;
        umulExtended(n * 2654435761u + 0xffff0000u, 0xfffdfffbu, high, low);
        return high;
    }), "high_word(n)", 4, high_word);
}

/* F11: the driver states 65536 rows for each 2D image without layers. What the program reaches depends on the memory behind it. */
static void image_rows(void) {
    image_shifted(2, 2);
}

/* F12: the driver uploads no more than 64 KiB of code. */
static void long_code(void) {
    enum { STEPS = 1400 };
    char *text = malloc(100 * STEPS + 1000);
    uint words[64];
    int length = sprintf(text, OUT "layout(local_size_x = 64) in;\n"
        "void main() { uint n = gl_GlobalInvocationID.x; uint v = n; uint w = ~n;\n");
    for (uint k = 0; k < STEPS; k++)
        length += sprintf(text + length, "v = v * w + n; w = (w ^ v) * (n + %uu);\n", k);
    sprintf(text + length, "o[n] = v; }");
    for (uint n = 0; n < 64; n++) {
        uint v = n, w = ~n;
        for (uint k = 0; k < STEPS; k++) {
            v = v * w + n;
            w = (w ^ v) * (n + k);
        }
        words[n] = v;
    }
    GLuint out = storage(0, 64, NULL);
    compute(text);
    free(text);
    dispatch(1, 1, 1);
    same(out, words);
}

/* F4: the driver launches the program that it has uploaded last. Here both programs have groups of 32 threads. */
static void a_b_a(void) {
    first_second_first(OUT GLSL(layout(local_size_x = 32) in; void main() {
        o[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x ^ 0x777u;
    }), 1);
}

static void a_b_a_sizes(void) {
    first_second_first(OUT GLSL(layout(local_size_x = 8) in; void main() {
        o[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x ^ 0x777u;
    }), 4);
}

/* Three programs with uniforms and shared words, 12 dispatches in an irregular order. */
static void programs_alternate(void) {
    static const uint ORDER[] = {0, 1, 2, 2, 0, 1, 0, 2, 1, 1, 0, 2};
    static uint words[64];
    GLuint programs[3], buffer = storage(0, 64, words);
    static const char *const TEXTS[3] = {
        GLSL(layout(local_size_x = 16) in; uniform uint k; void main() {
            uint n = gl_GlobalInvocationID.x;
            o[n] = o[n] * k + n;
        }),
        GLSL(layout(local_size_x = 64) in; uniform uint k; shared uint s[64]; void main() {
            uint n = gl_LocalInvocationID.x;
            s[n] = o[n];
            memoryBarrierShared();
            barrier();
            o[n] = s[63u - n] + k;
        }),
        GLSL(layout(local_size_x = 8) in; uniform uint k; void main() {
            uint n = gl_GlobalInvocationID.x;
            for (uint t = 0u; t < min(n % 5u + k, 30u); t++)
                o[n] = o[n] * 5u + t;
        }),
    };
    for (uint n = 0; n < 3; n++) {
        char text[1000];
        snprintf(text, sizeof text, OUT "%s", TEXTS[n]);
        programs[n] = compute(text);
    }
    for (uint step = 0; step < LENGTH(ORDER); step++) {
        const uint k = step + 2, kind = ORDER[step];
        glUseProgram(programs[kind]);
        glUniform1ui(location(programs[kind], "k"), k);
        dispatch(kind == 0 ? 4 : kind == 1 ? 1 : 8, 1, 1);
        uint before[64];
        memcpy(before, words, sizeof before);
        for (uint n = 0; n < 64; n++)
            if (kind == 0)
                words[n] = words[n] * k + n;
            else if (kind == 1)
                words[n] = before[63 - n] + k;
            else
                for (uint t = 0; t < n % 5 + k; t++)
                    words[n] = words[n] * 5 + t;
    }
    same(buffer, words);
}

const struct test FAULTS[] = {
    TEST(masked_shifts), TEST(folded_conversion), TEST(high_words), TEST(image_rows), TEST(long_code), TEST(a_b_a),
    TEST(a_b_a_sizes), TEST(programs_alternate), {0},
};
