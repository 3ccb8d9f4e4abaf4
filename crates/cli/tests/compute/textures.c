/* Textures that compute programs read. */
#include "compute.h"

/* texelFetch of each level of a 2D texture, of layers and of slices; textureSize. */
static void texel_fetch(void) {
    static uint words[(16 * 12 + 8 * 6 + 4 * 3) + 9 * 5 * 4 + 6 * 5 * 7 + 8];
    uint at = 0;
    texture(GL_TEXTURE_2D, 3, GL_R32UI, 16, 12, 1);
    for (uint level = 0; level < 3; level++) {
        uint *data = places(16 >> level, 12 >> level, 1);
        glTexSubImage2D(GL_TEXTURE_2D, level, 0, 0, 16 >> level, 12 >> level, GL_RED_INTEGER, GL_UNSIGNED_INT, data);
        for (uint n = 0; n < (16u >> level) * (12u >> level); n++)
            words[at++] = data[n] + level;
        free(data);
    }
    glActiveTexture(GL_TEXTURE1);
    texture(GL_TEXTURE_2D_ARRAY, 1, GL_R32UI, 9, 5, 4);
    uint *data = places(9, 5, 4);
    glTexSubImage3D(GL_TEXTURE_2D_ARRAY, 0, 0, 0, 0, 9, 5, 4, GL_RED_INTEGER, GL_UNSIGNED_INT, data);
    memcpy(words + at, data, 9 * 5 * 4 * 4);
    at += 9 * 5 * 4;
    free(data);
    glActiveTexture(GL_TEXTURE2);
    texture(GL_TEXTURE_3D, 1, GL_R32UI, 6, 5, 7);
    data = places(6, 5, 7);
    glTexSubImage3D(GL_TEXTURE_3D, 0, 0, 0, 0, 6, 5, 7, GL_RED_INTEGER, GL_UNSIGNED_INT, data);
    memcpy(words + at, data, 6 * 5 * 7 * 4);
    at += 6 * 5 * 7;
    free(data);
    uint sizes[8] = {8, 6, 9, 5, 4, 6, 5, 7};
    memcpy(words + at, sizes, sizeof sizes);
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT GLSL(
        layout(local_size_x = 64) in;
        layout(binding = 0) uniform usampler2D levels;
        layout(binding = 1) uniform usampler2DArray layers;
        layout(binding = 2) uniform usampler3D slices;
        void main() {
            int n = int(gl_GlobalInvocationID.x);
            int at = n;
            for (int level = 0; level < 3; level++) {
                ivec2 size = textureSize(levels, level);
                if (at >= 0 && at < size.x * size.y)
                    o[n] = texelFetch(levels, ivec2(at % size.x, at / size.x), level).x + uint(level);
                at -= size.x * size.y;
            }
            if (at >= 0 && at < 180)
                o[n] = texelFetch(layers, ivec3(at % 9, at / 9 % 5, at / 45), 0).x;
            at -= 180;
            if (at >= 0 && at < 210)
                o[n] = texelFetch(slices, ivec3(at % 6, at / 6 % 5, at / 30), 0).x;
            at -= 210;
            if (at == 0) {
                ivec2 size = textureSize(levels, 1);
                ivec3 array = textureSize(layers, 0);
                ivec3 volume = textureSize(slices, 0);
                o[n] = uint(size.x); o[n + 1] = uint(size.y);
                o[n + 2] = uint(array.x); o[n + 3] = uint(array.y); o[n + 4] = uint(array.z);
                o[n + 5] = uint(volume.x); o[n + 6] = uint(volume.y); o[n + 7] = uint(volume.z);
            }
        }));
    dispatch((LENGTH(words) + 63) / 64, 1, 1);
    glActiveTexture(GL_TEXTURE0);
    same(out, words);
}

/* textureLod at centres of texels: levels, wrap modes through sampler objects, and a linear filter in the middle of two
 * texels. */
static void texture_lod(void) {
    static uint words[4][24 * 24];
    uint data[4][64];
    for (uint level = 0; level < 4; level++)
        for (uint n = 0; n < 64; n++)
            data[level][n] = (random_word() & 0x7f7f7f7f) * 2;
    texture(GL_TEXTURE_2D, 4, GL_RGBA8, 8, 8, 1);
    for (uint level = 0; level < 4; level++)
        glTexSubImage2D(GL_TEXTURE_2D, level, 0, 0, 8 >> level, 8 >> level, GL_RGBA, GL_UNSIGNED_BYTE, data[level]);
    GLuint samplers[3];
    glGenSamplers(3, samplers);
    const GLenum modes[3] = {GL_REPEAT, GL_CLAMP_TO_EDGE, GL_MIRRORED_REPEAT};
    for (uint n = 0; n < 3; n++) {
        glSamplerParameteri(samplers[n], GL_TEXTURE_MIN_FILTER, GL_NEAREST_MIPMAP_NEAREST);
        glSamplerParameteri(samplers[n], GL_TEXTURE_MAG_FILTER, GL_NEAREST);
        glSamplerParameteri(samplers[n], GL_TEXTURE_WRAP_S, modes[n]);
        glSamplerParameteri(samplers[n], GL_TEXTURE_WRAP_T, modes[n]);
    }
    GLuint program = compute(OUT BYTES GLSL(
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(binding = 0) uniform sampler2D image;
        uniform float level; uniform float side; uniform float shift;
        void main() {
            vec2 at = (vec2(gl_GlobalInvocationID.xy) - 8.0 + vec2(0.5 + shift, 0.5)) / side;
            o[gl_GlobalInvocationID.y * 24u + gl_GlobalInvocationID.x] = bytes(textureLod(image, at, level));
        }));
    for (uint round = 0; round < 7; round++) {
        const uint level = round < 3 ? 0 : round < 6 ? round - 2 : 0, mode = round < 3 ? round : 0, side = 8 >> level;
        const int linear = round == 6;
        GLuint out = storage(0, 24 * 24, NULL);
        glBindSampler(0, samplers[mode]);
        if (linear) {
            glSamplerParameteri(samplers[0], GL_TEXTURE_MIN_FILTER, GL_LINEAR_MIPMAP_NEAREST);
            glSamplerParameteri(samplers[0], GL_TEXTURE_MAG_FILTER, GL_LINEAR);
        }
        glUniform1f(location(program, "level"), level);
        glUniform1f(location(program, "side"), side);
        glUniform1f(location(program, "shift"), linear ? 0.5f : 0);
        for (uint n = 0; n < 24 * 24; n++) {
            int place[2] = {(int)(n % 24) - 8, (int)(n / 24) - 8};
            for (uint k = 0; k < 2; k++) {
                const int s = side, v = ((place[k] % (2 * s)) + 2 * s) % (2 * s);
                const int clamped = place[k] < 0 ? 0 : place[k] >= s ? s - 1 : place[k];
                place[k] = mode == 0 ? v % s : mode == 1 ? clamped : v < s ? v : 2 * s - 1 - v;
            }
            uint a = data[level][place[1] * side + place[0]], b = data[level][place[1] * side + (place[0] + 1) % side];
            words[0][n] = linear ? (a >> 1 & 0x7f7f7f7f) + (b >> 1 & 0x7f7f7f7f) : a;
        }
        dispatch(3, 3, 1);
        same(out, words[0]);
    }
    glBindSampler(0, 0);
    glDeleteSamplers(3, samplers);
}

/* Cube, 3D, array and shadow samplers with textureLod, and textureGather. */
static void texture_kinds(void) {
    static uint words[96 + 64 + 64 + 16 + 36];
    static float cube[6][16], volume[64], layers[4][16], depth[16], gathered[16];
    for (uint n = 0; n < 96; n++)
        words[n] = bits_of(cube[n / 16][n % 16] = n * 0.25f - 3);
    for (uint n = 0; n < 64; n++) {
        words[96 + n] = bits_of(volume[n] = n * 0.5f);
        words[160 + n] = bits_of(layers[n / 16][n % 16] = 100.0f + n);
    }
    for (uint n = 0; n < 16; n++) {
        depth[n] = n / 16.0f;
        words[224 + n] = bits_of(0.5f <= depth[n]);
        gathered[n] = n * 3;
    }
    for (uint n = 0; n < 36; n++) {
        uint x = n / 4 % 3, y = n / 12;
        /* Order of textureGather: (0, 1), (1, 1), (1, 0), (0, 0). */
        words[240 + n] = bits_of(gathered[(y + (n % 4 < 2)) * 4 + x + (n % 4 == 1 || n % 4 == 2)]);
    }
    texture(GL_TEXTURE_CUBE_MAP, 1, GL_R32F, 4, 4, 1);
    for (uint face = 0; face < 6; face++)
        glTexSubImage2D(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, 0, 0, 0, 4, 4, GL_RED, GL_FLOAT, cube[face]);
    glActiveTexture(GL_TEXTURE1);
    texture(GL_TEXTURE_3D, 1, GL_R32F, 4, 4, 4);
    glTexSubImage3D(GL_TEXTURE_3D, 0, 0, 0, 0, 4, 4, 4, GL_RED, GL_FLOAT, volume);
    glActiveTexture(GL_TEXTURE2);
    texture(GL_TEXTURE_2D_ARRAY, 1, GL_R32F, 4, 4, 4);
    glTexSubImage3D(GL_TEXTURE_2D_ARRAY, 0, 0, 0, 0, 4, 4, 4, GL_RED, GL_FLOAT, layers);
    glActiveTexture(GL_TEXTURE3);
    texture(GL_TEXTURE_2D, 1, GL_DEPTH_COMPONENT32F, 4, 4, 1);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 4, 4, GL_DEPTH_COMPONENT, GL_FLOAT, depth);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_MODE, GL_COMPARE_REF_TO_TEXTURE);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_FUNC, GL_LEQUAL);
    glActiveTexture(GL_TEXTURE4);
    texture(GL_TEXTURE_2D, 1, GL_R32F, 4, 4, 1);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 4, 4, GL_RED, GL_FLOAT, gathered);
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(GLSL(
        layout(std430, binding = 0) buffer Out { float o[]; };
        layout(local_size_x = 96) in;
        layout(binding = 0) uniform samplerCube cube;
        layout(binding = 1) uniform sampler3D volume;
        layout(binding = 2) uniform sampler2DArray layers;
        layout(binding = 3) uniform sampler2DShadow shadow;
        layout(binding = 4) uniform sampler2D gathered;
        void main() {
            int n = int(gl_LocalInvocationID.x);
            int face = n / 16;
            vec2 f = (vec2(n % 4, n / 4 % 4) + 0.5) / 2.0 - 1.0;
            vec3 to = face == 0 ? vec3(1.0, -f.y, -f.x) : face == 1 ? vec3(-1.0, -f.y, f.x) : face == 2 ? vec3(f.x, 1.0, f.y)
                : face == 3 ? vec3(f.x, -1.0, -f.y) : face == 4 ? vec3(f.x, -f.y, 1.0) : vec3(-f.x, -f.y, -1.0);
            o[n] = textureLod(cube, to, 0.0).x;
            vec2 at = (vec2(n % 4, n / 4 % 4) + 0.5) / 4.0;
            if (n < 64) {
                o[96 + n] = textureLod(volume, vec3(at, (float(n / 16) + 0.5) / 4.0), 0.0).x;
                o[160 + n] = textureLod(layers, vec3(at, float(n / 16)), 0.0).x;
            }
            if (n < 16)
                o[224 + n] = textureLod(shadow, vec3(at, 0.5), 0.0);
            if (n < 9) {
                vec4 four = textureGather(gathered, vec2(n % 3 + 1, n / 3 + 1) / 4.0);
                for (int k = 0; k < 4; k++)
                    o[240 + 4 * n + k] = four[k];
            }
        }));
    dispatch(1, 1, 1);
    glActiveTexture(GL_TEXTURE0);
    same(out, words);
}

/* A framebuffer that was drawn before, read with texelFetch and as an image. */
static void framebuffer_read(void) {
    enum { W = 50, H = 34 };
    static uint words[W * H * 2];
    for (uint n = 0; n < W * H; n++)
        words[2 * n] = words[2 * n + 1] = bytes_at(n % W, n / W);
    GLuint drawn = texture(GL_TEXTURE_2D, 1, GL_RGBA8, W, H, 1);
    target(GL_TEXTURE_2D, drawn, 0, 0, W, H);
    drawing(WHOLE, GLSL(out vec4 colour; void main() {
        uvec2 at = uvec2(gl_FragCoord.xy);
        colour = vec4(uvec4(at.x * 5u, at.y * 9u, at.x ^ at.y, at.x * at.y + 1u) & 255u) / 255.0;
    }));
    glDrawArrays(GL_TRIANGLES, 0, 3);
    GLuint out = storage(0, LENGTH(words), NULL);
    glMemoryBarrier(GL_SHADER_IMAGE_ACCESS_BARRIER_BIT);
    glBindImageTexture(0, drawn, 0, GL_FALSE, 0, GL_READ_ONLY, GL_RGBA8);
    compute(OUT BYTES GLSL(
        layout(local_size_x = 10, local_size_y = 2) in;
        layout(binding = 0) uniform sampler2D drawn;
        layout(rgba8, binding = 0) readonly uniform image2D image;
        void main() {
            ivec2 at = ivec2(gl_GlobalInvocationID.xy);
            o[2 * (at.y * 50 + at.x)] = bytes(texelFetch(drawn, at, 0));
            o[2 * (at.y * 50 + at.x) + 1] = bytes(imageLoad(image, at));
        }));
    dispatch(W / 10, H / 2, 1);
    same(out, words);
}

/* A texture of four samples with a colour of its own for each sample. */
static void multisample_read(void) {
    GLint samples = 0;
    glGetInternalformativ(GL_TEXTURE_2D_MULTISAMPLE, GL_RGBA8, GL_SAMPLES, 1, &samples);
    if (samples < 4)
        skips("textures of 4 samples");
    static uint words[16 * 8 * 4];
    for (uint n = 0; n < LENGTH(words); n++)
        words[n] = (n / 4 % 16 * 3) | (n / 64 * 5) << 8 | (n % 4 * 60) << 16;
    GLuint name;
    glGenTextures(1, &name);
    objects.textures[objects.texture_count++] = name;
    glBindTexture(GL_TEXTURE_2D_MULTISAMPLE, name);
    glTexStorage2DMultisample(GL_TEXTURE_2D_MULTISAMPLE, 4, GL_RGBA8, 16, 8, GL_TRUE);
    target(GL_TEXTURE_2D_MULTISAMPLE, name, 0, 0, 16, 8);
    GLuint program = drawing(WHOLE, GLSL(uniform float blue; out vec4 colour; void main() {
        uvec2 at = uvec2(gl_FragCoord.xy);
        colour = vec4(vec2(at * uvec2(3u, 5u)) / 255.0, blue, 0.0);
    }));
    glEnable(GL_SAMPLE_MASK);
    for (uint sample = 0; sample < 4; sample++) {
        glSampleMaski(0, 1u << sample);
        glUniform1f(location(program, "blue"), sample * 60 / 255.0f);
        glDrawArrays(GL_TRIANGLES, 0, 3);
    }
    glSampleMaski(0, ~0u);
    glDisable(GL_SAMPLE_MASK);
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT BYTES GLSL(
        layout(local_size_x = 4, local_size_y = 16) in;
        layout(binding = 0) uniform sampler2DMS image;
        void main() {
            ivec3 at = ivec3(gl_GlobalInvocationID);
            o[(at.z * 16 + at.y) * 4 + at.x] = bytes(texelFetch(image, at.yz, at.x));
        }));
    dispatch(1, 1, 8);
    same(out, words);
}

/* A depth buffer that was drawn, read as a texture. */
static void depth_read(void) {
    static uint words[20 * 12];
    for (uint n = 0; n < LENGTH(words); n++)
        words[n] = n % 20 < 10 ? bits_of(0.25f) : bits_of(0.75f);
    GLuint depth = texture(GL_TEXTURE_2D, 1, GL_DEPTH_COMPONENT32F, 20, 12, 1);
    GLuint colour = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 20, 12, 1);
    target(GL_TEXTURE_2D, colour, 0, 0, 20, 12);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_TEXTURE_2D, depth, 0);
    glClearDepthf(0.75f);
    glClear(GL_DEPTH_BUFFER_BIT);
    glClearDepthf(1);
    glEnable(GL_DEPTH_TEST);
    glEnable(GL_SCISSOR_TEST);
    glScissor(0, 0, 10, 12);
    drawing(GLSL(void main() {
        gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, -0.5, 1.0);
    }), GLSL(out vec4 colour; void main() { colour = vec4(1.0); }));
    glDrawArrays(GL_TRIANGLES, 0, 3);
    glDisable(GL_SCISSOR_TEST);
    glDisable(GL_DEPTH_TEST);
    GLuint out = storage(0, LENGTH(words), NULL);
    glBindTexture(GL_TEXTURE_2D, depth);
    compute(OUT GLSL(layout(local_size_x = 20) in; layout(binding = 0) uniform sampler2D depth; void main() {
        ivec2 at = ivec2(gl_LocalInvocationID.x, gl_WorkGroupID.x);
        o[at.y * 20 + at.x] = floatBitsToUint(texelFetch(depth, at, 0).x);
    }));
    dispatch(12, 1, 1);
    same(out, words);
}

const struct test TEXTURES[] = {
    TEST(texel_fetch), TEST(texture_lod), TEST(texture_kinds), TEST(framebuffer_read), TEST(multisample_read),
    TEST(depth_read), {0},
};
