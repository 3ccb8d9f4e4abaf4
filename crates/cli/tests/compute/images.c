/* Images: loads, stores, atomic operations and formats. */
#include "compute.h"

/* An image is stored, and the framebuffer reads it. */
static void image_store(void) {
    GLuint image = texture(GL_TEXTURE_2D, 1, GL_R32UI, 37, 21, 1);
    glBindImageTexture(0, image, 0, GL_FALSE, 0, GL_WRITE_ONLY, GL_R32UI);
    compute(PLACE GLSL(
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(r32ui, binding = 0) writeonly uniform uimage2D image;
        void main() {
            uvec2 at = gl_GlobalInvocationID.xy;
            if (at.x < 37u && at.y < 21u)
                imageStore(image, ivec2(at), uvec4(place(uvec3(at, 0u)), 1u, 2u, 3u));
        }));
    dispatch(5, 3, 1);
    same_places(GL_TEXTURE_2D, image, 0, 37, 21, 1, 0);
}

/* An image is uploaded, and a program loads it. */
static void image_load(void) {
    GLuint out = storage(0, 37 * 21, NULL), image = texture(GL_TEXTURE_2D, 1, GL_R32UI, 37, 21, 1);
    uint *words = places(37, 21, 1);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 37, 21, GL_RED_INTEGER, GL_UNSIGNED_INT, words);
    glBindImageTexture(2, image, 0, GL_FALSE, 0, GL_READ_ONLY, GL_R32UI);
    compute(OUT GLSL(
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(r32ui, binding = 2) readonly uniform uimage2D image;
        void main() {
            uvec2 at = gl_GlobalInvocationID.xy;
            if (at.x < 37u && at.y < 21u)
                o[at.y * 37u + at.x] = imageLoad(image, ivec2(at)).x;
        }));
    dispatch(5, 3, 1);
    same(out, words);
    free(words);
}

/* Loads and stores of the same image. */
static void image_update(void) {
    GLuint image = texture(GL_TEXTURE_2D, 1, GL_R32UI, 64, 64, 1);
    uint *words = places(64, 64, 1);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 64, 64, GL_RED_INTEGER, GL_UNSIGNED_INT, words);
    free(words);
    glBindImageTexture(0, image, 0, GL_FALSE, 0, GL_READ_WRITE, GL_R32UI);
    compute(GLSL(layout(local_size_x = 8, local_size_y = 8) in; layout(r32ui, binding = 0) uniform uimage2D image; void main() {
        ivec2 at = ivec2(gl_GlobalInvocationID.xy);
        imageStore(image, at, imageLoad(image, at) + 9u);
    }));
    for (uint round = 0; round < 3; round++)
        dispatch(8, 8, 1);
    same_places(GL_TEXTURE_2D, image, 0, 64, 64, 1, 27);
}

static void image_kind(GLenum kind, uint width, uint height, uint depth, const char *text) {
    GLuint image = texture(kind, 1, GL_R32UI, width, height, depth), load = texture(kind, 1, GL_R32UI, width, height, depth);
    uint *words = places(width, height, depth);
    if (kind == GL_TEXTURE_CUBE_MAP)
        for (uint face = 0; face < 6; face++)
            glTexSubImage2D(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, 0, 0, 0, width, height, GL_RED_INTEGER, GL_UNSIGNED_INT,
                words + face * width * height);
    else
        glTexSubImage3D(kind, 0, 0, 0, 0, width, height, depth, GL_RED_INTEGER, GL_UNSIGNED_INT, words);
    GLuint out = storage(0, width * height * depth, NULL), size = storage(1, 3, NULL);
    glBindImageTexture(0, image, 0, GL_TRUE, 0, GL_WRITE_ONLY, GL_R32UI);
    glBindImageTexture(1, load, 0, GL_TRUE, 0, GL_READ_ONLY, GL_R32UI);
    compute(text);
    dispatch((width + 3) / 4, (height + 3) / 4, depth);
    uint sides[3] = {width, height, kind == GL_TEXTURE_CUBE_MAP ? 1 : depth};
    same(size, sides);
    same(out, words);
    same_places(kind, image, 0, width, height, depth, 3);
    free(words);
}

#define IMAGE_KIND(type, vector) PLACE OUT GLSL( \
    layout(std430, binding = 1) buffer Size { uint sizes[3]; }; \
    layout(local_size_x = 4, local_size_y = 4) in; \
    layout(r32ui, binding = 0) writeonly uniform type stored; \
    layout(r32ui, binding = 1) readonly uniform type loaded; \
    void main() { \
        uvec3 at = gl_GlobalInvocationID; \
        uvec3 size = uvec3(ivec3(imageSize(loaded) vector)); \
        if (at == uvec3(0u)) { \
            sizes[0] = size.x; \
            sizes[1] = size.y; \
            sizes[2] = size.z; \
        } \
        if (at.x >= size.x || at.y >= size.y) \
            return; \
        o[(at.z * size.y + at.y) * size.x + at.x] = imageLoad(loaded, ivec3(at)).x; \
        imageStore(stored, ivec3(at), uvec4(place(at) + 3u)); \
    })

static void image_3d(void) {
    image_kind(GL_TEXTURE_3D, 11, 7, 5, IMAGE_KIND(uimage3D, .xyz));
}

/* Several tiles in each direction. */
static void image_3d_large(void) {
    image_kind(GL_TEXTURE_3D, 70, 40, 37, IMAGE_KIND(uimage3D, .xyz));
}

static void image_array(void) {
    image_kind(GL_TEXTURE_2D_ARRAY, 19, 13, 6, IMAGE_KIND(uimage2DArray, .xyz));
}

static void image_cube(void) {
    image_kind(GL_TEXTURE_CUBE_MAP, 12, 12, 6, IMAGE_KIND(uimageCube, .xyy / ivec3(1, 1, 12)));
}

/* One layer, one slice or one level as a 2D image; the others stay. */
static void image_parts(void) {
    static const struct { GLenum kind; uint levels, level, layer, width, height, depth; } PARTS[] = {
        {GL_TEXTURE_2D_ARRAY, 1, 0, 2, 20, 12, 4},
        {GL_TEXTURE_3D, 1, 0, 3, 20, 12, 6},
        {GL_TEXTURE_3D, 1, 0, 9, 20, 12, 17},
        {GL_TEXTURE_CUBE_MAP, 1, 0, 4, 16, 16, 6},
        {GL_TEXTURE_2D, 3, 1, 0, 36, 24, 1},
        {GL_TEXTURE_2D, 4, 3, 0, 64, 64, 1},
        {GL_TEXTURE_2D_ARRAY, 3, 2, 1, 40, 40, 3},
        {GL_TEXTURE_3D, 3, 1, 1, 16, 16, 8},
    };
    GLuint program = compute(PLACE GLSL(
        layout(local_size_x = 4, local_size_y = 4) in;
        layout(r32ui, binding = 0) writeonly uniform uimage2D image;
        uniform uint layer;
        void main() {
            uvec2 at = gl_GlobalInvocationID.xy;
            ivec2 size = imageSize(image);
            if (int(at.x) < size.x && int(at.y) < size.y)
                imageStore(image, ivec2(at), uvec4(place(uvec3(at, layer)) + uint(size.x) * 1000u + uint(size.y)));
        }));
    for (uint number = 0; number < LENGTH(PARTS); number++) {
        const GLenum kind = PARTS[number].kind;
        const uint level = PARTS[number].level, width = PARTS[number].width >> level, height = PARTS[number].height >> level;
        const uint depth = kind == GL_TEXTURE_3D ? PARTS[number].depth >> level : PARTS[number].depth;
        const bool is_cube = kind == GL_TEXTURE_CUBE_MAP;
        GLuint image = texture(kind, PARTS[number].levels, GL_R32UI, PARTS[number].width, PARTS[number].height,
            PARTS[number].depth);
        uint *words = calloc(width * height * depth, 4);
        for (uint layer = 0; layer < depth; layer++)
            if (is_cube || kind == GL_TEXTURE_2D)
                glTexSubImage2D(is_cube ? GL_TEXTURE_CUBE_MAP_POSITIVE_X + layer : kind, level, 0, 0, width, height, GL_RED_INTEGER,
                    GL_UNSIGNED_INT, words);
            else
                glTexSubImage3D(kind, level, 0, 0, layer, width, height, 1, GL_RED_INTEGER, GL_UNSIGNED_INT, words);
        glBindImageTexture(0, image, level, GL_FALSE, PARTS[number].layer, GL_WRITE_ONLY, GL_R32UI);
        glUniform1ui(location(program, "layer"), PARTS[number].layer);
        dispatch((width + 3) / 4, (height + 3) / 4, 1);
        for (uint layer = 0; layer < depth; layer++) {
            for (uint n = 0; n < width * height; n++)
                words[n] = layer == PARTS[number].layer ? place(n % width, n / width, layer) + width * 1000 + height : 0;
            target(is_cube ? GL_TEXTURE_CUBE_MAP_POSITIVE_X + layer : kind, image, level, layer, width, height);
            uint *found = malloc(width * height * 16);
            glReadPixels(0, 0, width, height, GL_RGBA_INTEGER, GL_UNSIGNED_INT, found);
            for (uint n = 0; n < width * height; n++)
                if (found[4 * n] != words[n])
                    fails("part %u, layer %u: word %u is 0x%x, expected 0x%x", number, layer, n, found[4 * n], words[n]);
            free(found);
        }
        free(words);
    }
}

/* Loads outside of an image are 0, and stores outside are dropped. `x` and `y` are the texels by which the grid is shifted. */
void image_shifted(uint x, uint y) {
    GLuint image = texture(GL_TEXTURE_2D, 1, GL_R32UI, 16, 16, 1), stored = texture(GL_TEXTURE_2D, 1, GL_R32UI, 10, 6, 1);
    uint *words = places(16, 16, 1), expected[24 * 24];
    glBindTexture(GL_TEXTURE_2D, image);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 16, 16, GL_RED_INTEGER, GL_UNSIGNED_INT, words);
    for (uint n = 0; n < 24 * 24; n++) {
        uint from_x = n % 24 - x, from_y = y ? n / 24 - y : n / 24 % 6;
        expected[n] = from_x < 16 && from_y < 16 ? words[from_y * 16 + from_x] : 0;
    }
    free(words);
    GLuint out = storage(0, 24 * 24, NULL);
    glBindImageTexture(0, image, 0, GL_FALSE, 0, GL_READ_ONLY, GL_R32UI);
    glBindImageTexture(1, stored, 0, GL_FALSE, 0, GL_WRITE_ONLY, GL_R32UI);
    GLuint program = compute(PLACE OUT GLSL(
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(r32ui, binding = 0) readonly uniform uimage2D image;
        layout(r32ui, binding = 1) writeonly uniform uimage2D stored;
        uniform ivec2 shift;
        void main() {
            ivec2 at = ivec2(gl_GlobalInvocationID.xy) - shift;
            if (shift.y == 0)
                at.y %= 6;
            o[gl_GlobalInvocationID.y * 24u + gl_GlobalInvocationID.x] = imageLoad(image, at).x;
            imageStore(stored, at, uvec4(place(uvec3(at, 0))));
        }));
    glUniform2i(location(program, "shift"), x, y);
    dispatch(3, 3, 1);
    same(out, expected);
    same_places(GL_TEXTURE_2D, stored, 0, 10, 6, 1, 0);
}

static void image_edges(void) {
    image_shifted(2, 0);
}

static void image_atomics(void) {
    needs_extension("GL_OES_shader_image_atomic");
    GLuint image = texture(GL_TEXTURE_2D, 1, GL_R32UI, 16, 8, 1), layers = texture(GL_TEXTURE_3D, 1, GL_R32I, 4, 4, 4);
    uint words[16 * 8];
    int first[64], expected[64];
    for (uint n = 0; n < 128; n++)
        words[n] = n % 16 == 1 ? 1000 : n % 16 == 3 ? 0xffffffffu : 0;
    glBindTexture(GL_TEXTURE_2D, image);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 16, 8, GL_RED_INTEGER, GL_UNSIGNED_INT, words);
    for (uint n = 0; n < 64; n++)
        first[n] = expected[n] = 5;
    glTexSubImage3D(GL_TEXTURE_3D, 0, 0, 0, 0, 4, 4, 4, GL_RED_INTEGER, GL_INT, first);
    for (uint n = 0; n < 64 * 4; n++) {
        uint *w = words + n % 8 * 16;
        w[0] += n;
        w[1] = n + 10 < w[1] ? n + 10 : w[1];
        w[2] = n > w[2] ? n : w[2];
        w[3] &= ~(1u << n % 32);
        w[4] |= 1u << n / 8;
        w[5] ^= n * 0x01010101u;
        w[6] += n;
        expected[n % 64] -= 3;
    }
    glBindImageTexture(0, image, 0, GL_FALSE, 0, GL_READ_WRITE, GL_R32UI);
    glBindImageTexture(1, layers, 0, GL_TRUE, 0, GL_READ_WRITE, GL_R32I);
    GLuint seen = storage(0, 256, NULL);
    extended("#extension GL_OES_shader_image_atomic : require\nprecision highp iimage3D;\n", OUT GLSL(
        layout(local_size_x = 64) in;
        layout(r32ui, binding = 0) uniform uimage2D image;
        layout(r32i, binding = 1) uniform highp iimage3D layers;
        void main() {
            uint n = gl_GlobalInvocationID.x;
            int y = int(n % 8u);
            imageAtomicAdd(image, ivec2(0, y), n);
            imageAtomicMin(image, ivec2(1, y), n + 10u);
            imageAtomicMax(image, ivec2(2, y), n);
            imageAtomicAnd(image, ivec2(3, y), ~(1u << (n % 32u)));
            imageAtomicOr(image, ivec2(4, y), 1u << (n / 8u));
            imageAtomicXor(image, ivec2(5, y), n * 0x01010101u);
            uint was = 0u;
            for (;;) {
                uint now = imageAtomicCompSwap(image, ivec2(6, y), was, was + n);
                if (now == was)
                    break;
                was = now;
            }
            o[n] = imageAtomicExchange(image, ivec2(7, y), n);
            int at = int(n % 64u);
            imageAtomicAdd(layers, ivec3(at & 3, at >> 2 & 3, at >> 4), -3);
        }));
    dispatch(4, 1, 1);
    uint found[256], last[16 * 8 * 4];
    target(GL_TEXTURE_2D, image, 0, 0, 16, 8);
    glReadPixels(0, 0, 16, 8, GL_RGBA_INTEGER, GL_UNSIGNED_INT, last);
    read_words(seen, found, 256);
    uint sum = 0;
    for (uint n = 0; n < 256; n++)
        sum += found[n] - n;
    for (uint y = 0; y < 8; y++) {
        words[16 * y + 7] = last[(16 * y + 7) * 4];
        sum += words[16 * y + 7];
    }
    if (sum)
        fails("exchanged texels differ by %u", sum);
    same_reds(16, 8, words);
    for (uint z = 0; z < 4; z++) {
        target(GL_TEXTURE_3D, layers, 0, z, 4, 4);
        int pixels[64];
        glReadPixels(0, 0, 4, 4, GL_RGBA_INTEGER, GL_INT, pixels);
        for (uint n = 0; n < 16; n++)
            pixels[n] = pixels[4 * n];
        same_words((uint *)pixels, (uint *)expected + 16 * z, 16);
    }
}

/* rgba8: one image is loaded, the other one stored with components exchanged. */
static void image_rgba8(void) {
    enum { W = 45, H = 30 };
    static uint data[W * H], words[W * H], swapped[W * H];
    for (uint n = 0; n < W * H; n++) {
        words[n] = data[n] = bytes_at(n % W, n / W);
        swapped[n] = data[n] >> 16 | data[n] << 16;
    }
    GLuint out = storage(0, W * H, NULL), loaded = texture(GL_TEXTURE_2D, 1, GL_RGBA8, W, H, 1);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, W, H, GL_RGBA, GL_UNSIGNED_BYTE, data);
    GLuint stored = texture(GL_TEXTURE_2D, 1, GL_RGBA8, W, H, 1);
    glBindImageTexture(0, loaded, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA8);
    glBindImageTexture(1, stored, 0, GL_FALSE, 0, GL_WRITE_ONLY, GL_RGBA8);
    compute(OUT BYTES GLSL(
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(rgba8, binding = 0) readonly uniform image2D loaded;
        layout(rgba8, binding = 1) writeonly uniform image2D stored;
        void main() {
            ivec2 at = ivec2(gl_GlobalInvocationID.xy);
            ivec2 size = imageSize(loaded);
            if (any(greaterThanEqual(at, size)))
                return;
            vec4 texel = imageLoad(loaded, at);
            o[at.y * size.x + at.x] = bytes(texel);
            imageStore(stored, at, texel.zwxy);
        }));
    dispatch(6, 4, 1);
    same(out, words);
    target(GL_TEXTURE_2D, stored, 0, 0, W, H);
    same_pixels(W, H, swapped);
}

/* Stores, loads and texel fetches of every format that ES 3.1 has for images. A component of a texel is an integer over `unit`. */
static void image_formats(void) {
    enum { W = 19, H = 9, WORDS = W * H * 4 };
    static const struct { const char *name, *prefix; GLenum format; uint components, unit; int low; uint range; } FORMATS[] = {
        {"rgba32f", "", GL_RGBA32F, 4, 8, -4096, 8192}, {"rgba16f", "", GL_RGBA16F, 4, 8, -1024, 2048},
        {"r32f", "", GL_R32F, 1, 8, -4096, 8192},
        {"rgba8", "", GL_RGBA8, 4, 255, 0, 256}, {"rgba8_snorm", "", GL_RGBA8_SNORM, 4, 127, -127, 255},
        {"rgba32i", "i", GL_RGBA32I, 4, 1, -100000, 200000}, {"rgba16i", "i", GL_RGBA16I, 4, 1, -32768, 65536},
        {"rgba8i", "i", GL_RGBA8I, 4, 1, -128, 256}, {"r32i", "i", GL_R32I, 1, 1, -100000, 200000},
        {"rgba32ui", "u", GL_RGBA32UI, 4, 1, 0, 200000}, {"rgba16ui", "u", GL_RGBA16UI, 4, 1, 0, 65536},
        {"rgba8ui", "u", GL_RGBA8UI, 4, 1, 0, 256}, {"r32ui", "u", GL_R32UI, 1, 1, 0, 200000},
    };
    static const struct { const char *name, *text; } STEPS[] = {
        {"imageStore", GLSL(layout(FORMAT, binding = 1) writeonly uniform highp IMAGE image; void main() {
            uint n = gl_LocalInvocationIndex * 4u;
            ivec4 v = ivec4(i[n], i[n + 1u], i[n + 2u], i[n + 3u]);
            imageStore(image, ivec2(gl_LocalInvocationID.xy), VECTOR(v) / UNIT);
        })},
        {"imageLoad", GLSL(layout(FORMAT, binding = 0) readonly uniform highp IMAGE image; void main() {
            put(INTEGERS(imageLoad(image, ivec2(gl_LocalInvocationID.xy))));
        })},
        {"texelFetch", GLSL(layout(binding = 0) uniform highp SAMPLER image; void main() {
            put(INTEGERS(texelFetch(image, ivec2(gl_LocalInvocationID.xy), 0)));
        })},
    };
    static int data[WORDS];
    for (uint number = 0; number < LENGTH(FORMATS); number++) {
        const GLenum format = FORMATS[number].format;
        const char *prefix = FORMATS[number].prefix;
        char head[300];
        snprintf(head, sizeof head, "#define FORMAT %s\n#define IMAGE %simage2D\n#define SAMPLER %ssampler2D\n#define VECTOR %svec4\n"
            "#define UNIT %u%s\n#define INTEGERS(v) ivec4(%s)\n", FORMATS[number].name, prefix, prefix, prefix, FORMATS[number].unit,
            *prefix == 'u' ? "u" : *prefix ? "" : ".0",
            *prefix ? "v" : FORMATS[number].unit == 8 ? "v * UNIT" : "floor(v * UNIT + 0.5)");
        for (uint n = 0; n < WORDS; n++)
            data[n] = FORMATS[number].low + (int)(random_word() % FORMATS[number].range);
        GLuint image = texture(GL_TEXTURE_2D, 1, format, W, H, 1);
        storage(1, WORDS, (uint *)data);
        glBindImageTexture(0, image, 0, GL_FALSE, 0, GL_READ_ONLY, format);
        glBindImageTexture(1, image, 0, GL_FALSE, 0, GL_WRITE_ONLY, format);
        for (uint n = 0; n < WORDS; n++)
            if (n % 4 >= FORMATS[number].components)
                data[n] = n % 4 == 3 ? FORMATS[number].unit : 0;
        for (uint step = 0; step < LENGTH(STEPS); step++) {
            char text[2000];
            GLuint out = storage(0, WORDS, NULL);
            snprintf(text, sizeof text, "%s" OUT IN "%s%s", head, GLSL(
                layout(local_size_x = 19, local_size_y = 9) in;
                void put(ivec4 v) {
                    uint n = gl_LocalInvocationIndex * 4u;
                    o[n] = uint(v.x); o[n + 1u] = uint(v.y); o[n + 2u] = uint(v.z); o[n + 3u] = uint(v.w);
                }), STEPS[step].text);
            compute(text);
            dispatch(1, 1, 1);
            static uint found[WORDS];
            read_words(out, found, WORDS);
            for (uint n = 0; n < WORDS && step > 0; n++)
                if (found[n] != (uint)data[n])
                    fails("%s, %s: word %u is %d, expected %d", FORMATS[number].name, STEPS[step].name, n, found[n], data[n]);
        }
    }
}

/* Buffers and images in one program, eleven segments. */
static void images_and_buffers(void) {
    static uint words[32 * 32], sums[1024];
    GLuint images[7];
    char text[4000];
    int length = snprintf(text, sizeof text, PLACE "layout(local_size_x = 16, local_size_y = 16) in;\n");
    for (uint n = 0; n < 7; n++) {
        images[n] = texture(GL_TEXTURE_2D, 1, GL_R32UI, 32, 32, 1);
        if (n % 2) {
            uint *data = places(32, 32, 1);
            glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 32, 32, GL_RED_INTEGER, GL_UNSIGNED_INT, data);
            free(data);
        }
        glBindImageTexture(n, images[n], 0, GL_FALSE, 0, n % 2 ? GL_READ_ONLY : GL_WRITE_ONLY, GL_R32UI);
        length += snprintf(text + length, sizeof text - length, "layout(r32ui, binding = %u) %s uniform uimage2D image%u;\n", n,
            n % 2 ? "readonly" : "writeonly", n);
    }
    GLuint buffers[4];
    for (uint n = 0; n < 4; n++) {
        buffers[n] = storage(n, 1024, NULL);
        length += snprintf(text + length, sizeof text - length, "layout(std430, binding = %u) buffer B%u { uint b%u[]; };\n", n,
            n, n);
    }
    snprintf(text + length, sizeof text - length, "%s", GLSL(void main() {
        ivec2 at = ivec2(gl_GlobalInvocationID.xy);
        uint n = gl_GlobalInvocationID.y * 32u + gl_GlobalInvocationID.x;
        uint a = imageLoad(image1, at).x;
        uint b = imageLoad(image3, at.yx).x;
        uint c = imageLoad(image5, 31 - at).x;
        b0[n] = a; b1[n] = b; b2[n] = c; b3[n] = a + b + c;
        uint p = place(uvec3(at, 0));
        imageStore(image0, at, uvec4(p + 1u));
        imageStore(image2, at, uvec4(p + 2u));
        imageStore(image4, at, uvec4(p + 3u));
        imageStore(image6, at, uvec4(p + 4u));
    }));
    compute(text);
    dispatch(2, 2, 1);
    for (uint kind = 0; kind < 3; kind++) {
        for (uint n = 0; n < 1024; n++) {
            uint x = n % 32, y = n / 32;
            words[n] = kind == 0 ? place(x, y, 0) : kind == 1 ? place(y, x, 0) : place(31 - x, 31 - y, 0);
            sums[n] += words[n];
        }
        same(buffers[kind], words);
    }
    same(buffers[3], sums);
    for (uint n = 0; n < 4; n++)
        same_places(GL_TEXTURE_2D, images[2 * n], 0, 32, 32, 1, n + 1);
}

/* Two images in exchange, 8 generations of Conway's rule. */
static void life(void) {
    enum { W = 40, H = 24 };
    static uint cells[W * H], next[W * H];
    for (uint n = 0; n < W * H; n++)
        cells[n] = random_word() >> 8 & 1;
    GLuint images[2];
    for (uint n = 0; n < 2; n++)
        images[n] = texture(GL_TEXTURE_2D, 1, GL_R32UI, W, H, 1);
    glBindTexture(GL_TEXTURE_2D, images[0]);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, W, H, GL_RED_INTEGER, GL_UNSIGNED_INT, cells);
    compute(GLSL(
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(r32ui, binding = 0) readonly uniform uimage2D now;
        layout(r32ui, binding = 1) writeonly uniform uimage2D next;
        void main() {
            ivec2 at = ivec2(gl_GlobalInvocationID.xy);
            uint count = 0u;
            for (int y = -1; y <= 1; y++)
                for (int x = -1; x <= 1; x++)
                    if (x != 0 || y != 0)
                        count += imageLoad(now, (at + ivec2(x, y) + ivec2(40, 24)) % ivec2(40, 24)).x;
            bool lives = count == 3u || (count == 2u && imageLoad(now, at).x == 1u);
            imageStore(next, at, uvec4(lives ? 1u : 0u));
        }));
    for (uint round = 0; round < 8; round++) {
        glBindImageTexture(0, images[round % 2], 0, GL_FALSE, 0, GL_READ_ONLY, GL_R32UI);
        glBindImageTexture(1, images[1 - round % 2], 0, GL_FALSE, 0, GL_WRITE_ONLY, GL_R32UI);
        glDispatchCompute(W / 8, H / 8, 1);
        glMemoryBarrier(GL_SHADER_IMAGE_ACCESS_BARRIER_BIT);
        for (int n = 0; n < W * H; n++) {
            uint count = 0;
            for (int k = 0; k < 9; k++)
                if (k != 4)
                    count += cells[(n / W + k / 3 - 1 + H) % H * W + (n % W + k % 3 - 1 + W) % W];
            next[n] = count == 3 || (count == 2 && cells[n]);
        }
        memcpy(cells, next, sizeof cells);
    }
    glMemoryBarrier(GL_FRAMEBUFFER_BARRIER_BIT);
    target(GL_TEXTURE_2D, images[0], 0, 0, W, H);
    same_reds(W, H, cells);
}

/* Images of 4, 8 and 16 bytes a texel in three dimensions and in layers. */
static void image_texel_sizes(void) {
    enum { W = 23, H = 18, D = 9 };
    static const struct { const char *name; GLenum format; uint components; } FORMATS[] = {
        {"r32ui", GL_R32UI, 1}, {"rgba16ui", GL_RGBA16UI, 4}, {"rgba32ui", GL_RGBA32UI, 4}, {"rgba8ui", GL_RGBA8UI, 4},
    };
    static const char *const STEPS[2] = {
        GLSL(layout(FORMAT, binding = 0) writeonly uniform highp IMAGE image; void main() {
            uvec3 at = gl_GlobalInvocationID;
            imageStore(image, ivec3(at), uvec4((at.x * 5u + at.y * 3u + at.z * 7u) & 255u, at.x ^ at.y, at.y ^ at.z, at.x));
        }),
        OUT GLSL(
            layout(FORMAT, binding = 1) readonly uniform highp IMAGE image;
            layout(binding = 0) uniform highp SAMPLER read;
            layout(std430, binding = 1) buffer Other { uint p[]; };
            uint word(uvec4 v) { return COMPONENTS == 1 ? v.x : v.x | v.y << 8 | v.z << 16 | v.w << 24; }
            void main() {
                uvec3 at = gl_GlobalInvocationID;
                uint n = (at.z * 18u + at.y) * 23u + at.x;
                o[n] = word(imageLoad(image, ivec3(at)));
                p[n] = word(texelFetch(read, ivec3(at), 0));
            }),
    };
    static uint words[W * H * D];
    for (uint number = 0; number < 2 * LENGTH(FORMATS); number++) {
        const bool volume = number % 2;
        const char *kind = volume ? "3D" : "2DArray";
        const GLenum format = FORMATS[number / 2].format;
        const uint components = FORMATS[number / 2].components;
        for (uint n = 0; n < LENGTH(words); n++) {
            uint x = n % W, y = n / W % H, z = n / W / H;
            words[n] = (x * 5 + y * 3 + z * 7) & 255;
            if (components == 4)
                words[n] |= (x ^ y) << 8 | (y ^ z) << 16 | x << 24;
        }
        GLuint image = texture(volume ? GL_TEXTURE_3D : GL_TEXTURE_2D_ARRAY, 1, format, W, H, D);
        glBindImageTexture(0, image, 0, GL_TRUE, 0, GL_WRITE_ONLY, format);
        glBindImageTexture(1, image, 0, GL_TRUE, 0, GL_READ_ONLY, format);
        GLuint out = storage(0, LENGTH(words), NULL), other = storage(1, LENGTH(words), NULL);
        for (uint step = 0; step < 2; step++) {
            char text[2000];
            snprintf(text, sizeof text, "#define FORMAT %s\n#define IMAGE uimage%s\n#define SAMPLER usampler%s\n#define COMPONENTS %u\n"
                "layout(local_size_x = 23, local_size_y = 6) in;\n%s", FORMATS[number / 2].name, kind, kind, components, STEPS[step]);
            compute(text);
            dispatch(1, 3, D);
        }
        same(out, words);
        same(other, words);
    }
}

/* Arrays of blocks, images and samplers. */
static void binding_arrays(void) {
    static uint words[3][64], data[3][64], more[2][64], sums[64];
    GLuint buffers[3], images[2];
    for (uint k = 0; k < 3; k++) {
        for (uint n = 0; n < 64; n++)
            data[k][n] = random_word();
        buffers[k] = storage(k, 64, data[k]);
    }
    for (uint k = 0; k < 2; k++) {
        glActiveTexture(GL_TEXTURE0);
        images[k] = texture(GL_TEXTURE_2D, 1, GL_R32UI, 8, 8, 1);
        glBindImageTexture(k, images[k], 0, GL_FALSE, 0, GL_WRITE_ONLY, GL_R32UI);
        glActiveTexture(GL_TEXTURE2 + k);
        texture(GL_TEXTURE_2D, 1, GL_R32UI, 8, 8, 1);
        uint *texels = places(8, 8, 1);
        for (uint n = 0; n < 64; n++)
            texels[n] += k, sums[n] += texels[n] * (k + 1);
        glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 8, 8, GL_RED_INTEGER, GL_UNSIGNED_INT, texels);
        free(texels);
    }
    glActiveTexture(GL_TEXTURE0);
    for (uint n = 0; n < 64; n++) {
        for (uint k = 0; k < 3; k++)
            words[k][n] = data[(k + 1) % 3][n] + k;
        words[0][n] = data[1][n] + sums[n];
        for (uint k = 0; k < 2; k++)
            more[k][n] = data[k][n] ^ data[2][n];
    }
    compute(GLSL(
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(std430, binding = 0) buffer Words { uint v[]; } b[3];
        layout(r32ui, binding = 0) writeonly uniform uimage2D images[2];
        layout(binding = 2) uniform usampler2D samplers[2];
        void main() {
            uint n = gl_LocalInvocationIndex;
            ivec2 at = ivec2(gl_LocalInvocationID.xy);
            uint first = b[0].v[n];
            uint second = b[1].v[n];
            uint third = b[2].v[n];
            b[0].v[n] = second + texelFetch(samplers[0], at, 0).x + texelFetch(samplers[1], at, 0).x * 2u;
            b[1].v[n] = third + 1u;
            b[2].v[n] = first + 2u;
            imageStore(images[0], at, uvec4(first ^ third));
            imageStore(images[1], at, uvec4(second ^ third));
        }));
    dispatch(1, 1, 1);
    for (uint k = 0; k < 3; k++)
        same(buffers[k], words[k]);
    for (uint k = 0; k < 2; k++) {
        target(GL_TEXTURE_2D, images[k], 0, 0, 8, 8);
        same_reds(8, 8, more[k]);
    }
}

const struct test IMAGES[] = {
    TEST(image_store), TEST(image_load), TEST(image_update), TEST(image_3d), TEST(image_3d_large), TEST(image_array),
    TEST(image_cube), TEST(image_parts), TEST(image_edges), TEST(image_atomics), TEST(image_rgba8),
    TEST(image_formats), TEST(images_and_buffers), TEST(life), TEST(image_texel_sizes), TEST(binding_arrays), {0},
};
