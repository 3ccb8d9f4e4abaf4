/* Draws and copies before, between and after dispatches. */
#include "compute.h"

/* An image that is stored is copied, blitted and reduced to further levels by the driver. */
static void image_copies(void) {
    uint words[16 * 16], half[8 * 8];
    GLuint image = texture(GL_TEXTURE_2D, 2, GL_RGBA8, 16, 16, 1);
    glBindImageTexture(0, image, 0, GL_FALSE, 0, GL_WRITE_ONLY, GL_RGBA8);
    compute(GLSL(
        layout(local_size_x = 16, local_size_y = 16) in;
        layout(rgba8, binding = 0) writeonly uniform image2D image;
        void main() {
            uvec2 at = gl_LocalInvocationID.xy;
            imageStore(image, ivec2(at), vec4(at.x / 2u * 8u, at.y / 2u * 8u, 17u, 255u) / 255.0);
        }));
    dispatch(1, 1, 1);
    glGenerateMipmap(GL_TEXTURE_2D);
    for (uint n = 0; n < 256; n++)
        words[n] = (n % 16 / 2 * 8) | (n / 32 * 8) << 8 | 17 << 16 | 255u << 24;
    for (uint n = 0; n < 64; n++)
        half[n] = (n % 8 * 8) | (n / 8 * 8) << 8 | 17 << 16 | 255u << 24;
    target(GL_TEXTURE_2D, image, 1, 0, 8, 8);
    same_pixels(8, 8, half);
    target(GL_TEXTURE_2D, image, 0, 0, 16, 16);
    same_pixels(16, 16, words);
    GLuint copy = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 16, 16, 1);
    glCopyTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 0, 0, 16, 16);
    target(GL_TEXTURE_2D, copy, 0, 0, 16, 16);
    same_pixels(16, 16, words);
    GLuint from = objects.framebuffers[1], blitted = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 16, 16, 1);
    target(GL_TEXTURE_2D, blitted, 0, 0, 16, 16);
    glBindFramebuffer(GL_READ_FRAMEBUFFER, from);
    glBlitFramebuffer(0, 0, 16, 16, 16, 0, 0, 16, GL_COLOR_BUFFER_BIT, GL_NEAREST);
    glBindFramebuffer(GL_READ_FRAMEBUFFER, objects.framebuffers[objects.framebuffer_count - 1]);
    for (uint n = 0; n < 256; n++)
        words[n] = ((15 - n % 16) / 2 * 8) | (n / 32 * 8) << 8 | 17 << 16 | 255u << 24;
    same_pixels(16, 16, words);
}

/* A buffer that a program stores is uploaded into a texture; pixels are read into a buffer that a program loads. */
static void pixel_buffers(void) {
    static uint words[32 * 16];
    GLuint source = storage(0, LENGTH(words), NULL);
    compute(OUT GLSL(layout(local_size_x = 32) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        o[n] = n * 2654435761u;
    }));
    glDispatchCompute(16, 1, 1);
    glMemoryBarrier(GL_PIXEL_BUFFER_BARRIER_BIT);
    GLuint image = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 32, 16, 1);
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, source);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 32, 16, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    target(GL_TEXTURE_2D, image, 0, 0, 32, 16);
    GLuint read = storage(1, LENGTH(words), NULL);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, read);
    glReadPixels(0, 0, 32, 16, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    glBindBuffer(GL_PIXEL_PACK_BUFFER, 0);
    GLuint out = storage(0, LENGTH(words), NULL);
    compute(OUT IN GLSL(layout(local_size_x = 32) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        o[n] = i[511u - n] + 1u;
    }));
    dispatch(16, 1, 1);
    for (uint n = 0; n < LENGTH(words); n++)
        words[n] = (511 - n) * 2654435761u + 1;
    same(out, words);
}

/* Words that transform feedback stores are loaded by a program. */
static void feedback_read(void) {
    static uint words[64];
    GLuint stored = storage(1, 64 * 2, NULL), unused = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 4, 4, 1);
    target(GL_TEXTURE_2D, unused, 0, 0, 4, 4);
    GLuint program = objects.programs[objects.program_count++] = glCreateProgram();
    const char *names[] = {"stored"};
    glAttachShader(program, shader(GL_VERTEX_SHADER, GLSL(flat out uvec2 stored; void main() {
        stored = uvec2(uint(gl_VertexID) * 77u, 5u);
        gl_Position = vec4(0.0);
    })));
    glAttachShader(program, shader(GL_FRAGMENT_SHADER, GLSL(out vec4 colour; void main() { colour = vec4(1.0); })));
    glTransformFeedbackVaryings(program, 1, names, GL_INTERLEAVED_ATTRIBS);
    linked(program);
    glBindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, stored);
    glEnable(GL_RASTERIZER_DISCARD);
    glBeginTransformFeedback(GL_POINTS);
    glDrawArrays(GL_POINTS, 0, 64);
    glEndTransformFeedback();
    glDisable(GL_RASTERIZER_DISCARD);
    glBindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, 0);
    glMemoryBarrier(GL_ALL_BARRIER_BITS);
    GLuint out = storage(0, 64, NULL);
    compute(OUT IN GLSL(layout(local_size_x = 64) in; void main() {
        uint n = gl_GlobalInvocationID.x;
        o[n] = i[2u * n] + i[2u * (63u - n) + 1u] + n;
    }));
    dispatch(1, 1, 1);
    for (uint n = 0; n < 64; n++)
        words[n] = n * 77 + 5 + n;
    same(out, words);
}

/* Positions and colours of 64 squares that a program stores are drawn. */
static void vertex_data(void) {
    static uint words[32 * 32];
    for (uint n = 0; n < 1024; n++) {
        uint quad = n / 32 / 4 * 8 + n % 32 / 4;
        words[n] = quad * 4 | (255 - quad) << 8 | (quad % 7 * 30) << 16 | 255u << 24;
    }
    GLuint vertices = storage(0, 64 * 6 * 6, NULL), array;
    compute(GLSL(
        layout(local_size_x = 6, local_size_y = 8) in;
        layout(std430, binding = 0) buffer Vertices { float v[]; };
        void main() {
            uint quad = gl_GlobalInvocationID.y;
            uint corner = gl_LocalInvocationID.x;
            uint at = (quad * 6u + corner) * 6u;
            bool right = corner == 1u || corner == 2u || corner == 4u;
            bool up = corner == 2u || corner == 4u || corner == 5u;
            v[at] = float(quad % 8u + (right ? 1u : 0u)) / 4.0 - 1.0;
            v[at + 1u] = float(quad / 8u + (up ? 1u : 0u)) / 4.0 - 1.0;
            v[at + 2u] = float(quad * 4u) / 255.0;
            v[at + 3u] = float(255u - quad) / 255.0;
            v[at + 4u] = float(quad % 7u * 30u) / 255.0;
            v[at + 5u] = 1.0;
        }));
    /* Corners: left lower, right lower, right upper; left lower, right upper, left upper. */
    glDispatchCompute(1, 8, 1);
    glMemoryBarrier(GL_VERTEX_ATTRIB_ARRAY_BARRIER_BIT);
    GLuint drawn = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 32, 32, 1);
    target(GL_TEXTURE_2D, drawn, 0, 0, 32, 32);
    glClearColor(0, 0, 0, 0);
    glClear(GL_COLOR_BUFFER_BIT);
    drawing(GLSL(
        layout(location = 0) in vec2 position;
        layout(location = 1) in vec4 given;
        flat out vec4 colour;
        void main() {
            colour = given;
            gl_Position = vec4(position, 0.0, 1.0);
        }), GLSL(flat in vec4 colour; out vec4 stored; void main() { stored = colour; }));
    glGenVertexArrays(1, &array);
    glBindVertexArray(array);
    glBindBuffer(GL_ARRAY_BUFFER, vertices);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 24, NULL);
    glVertexAttribPointer(1, 4, GL_FLOAT, GL_FALSE, 24, (void *)8);
    glEnableVertexAttribArray(0);
    glEnableVertexAttribArray(1);
    glDrawArrays(GL_TRIANGLES, 0, 64 * 6);
    glBindVertexArray(0);
    glDeleteVertexArrays(1, &array);
    same_pixels(32, 32, words);
}

/* Indices and the arguments of an indirect draw come from a program. */
static void draw_arguments(void) {
    uint words[16 * 16];
    for (uint n = 0; n < 256; n++)
        words[n] = n / 16 / 4 % 2 ? 0xff0000ffu : 0;
    /* Nothing is drawn if the program does not run. */
    const uint zeros[5] = {0};
    GLuint arguments = storage(0, 5, zeros), indices = storage(1, 12, NULL), array;
    compute(OUT GLSL(layout(local_size_x = 12) in; layout(std430, binding = 1) buffer Indices { uint indices[]; }; void main() {
        uint n = gl_LocalInvocationID.x;
        /* Two triangles of each of two stripes. */
        uint corner = n % 6u < 3u ? n % 3u : n % 3u + 1u;
        indices[n] = n / 6u * 4u + corner;
        if (n < 5u)
            o[n] = n == 0u ? 12u : n == 1u ? 1u : 0u;
    }));
    glDispatchCompute(1, 1, 1);
    glMemoryBarrier(GL_COMMAND_BARRIER_BIT | GL_ELEMENT_ARRAY_BARRIER_BIT);
    GLuint drawn = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 16, 16, 1);
    target(GL_TEXTURE_2D, drawn, 0, 0, 16, 16);
    glClearColor(0, 0, 0, 0);
    glClear(GL_COLOR_BUFFER_BIT);
    drawing(GLSL(void main() {
        float y = float(1 + gl_VertexID / 4 * 2 + (gl_VertexID >> 1 & 1)) / 2.0 - 1.0;
        gl_Position = vec4((gl_VertexID & 1) != 0 ? 1.0 : -1.0, y, 0.0, 1.0);
    }), GLSL(out vec4 stored; void main() { stored = vec4(1.0, 0.0, 0.0, 1.0); }));
    glGenVertexArrays(1, &array);
    glBindVertexArray(array);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, indices);
    glBindBuffer(GL_DRAW_INDIRECT_BUFFER, arguments);
    glDrawElementsIndirect(GL_TRIANGLES, GL_UNSIGNED_INT, NULL);
    glBindVertexArray(0);
    glDeleteVertexArrays(1, &array);
    same_pixels(16, 16, words);
}

/* An image that a program stores is a texture of a draw. */
static void texture_in_draw(void) {
    enum { W = 40, H = 24 };
    static uint words[W * H];
    for (uint n = 0; n < W * H; n++)
        words[n] = bytes_at(W - 1 - n % W, n / W);
    GLuint image = texture(GL_TEXTURE_2D, 1, GL_RGBA8, W, H, 1);
    glBindImageTexture(0, image, 0, GL_FALSE, 0, GL_WRITE_ONLY, GL_RGBA8);
    compute(GLSL(
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(rgba8, binding = 0) writeonly uniform image2D image;
        void main() {
            uvec2 at = gl_GlobalInvocationID.xy;
            imageStore(image, ivec2(at), vec4(uvec4(at.x * 5u, at.y * 9u, at.x ^ at.y, at.x * at.y + 1u) & 255u) / 255.0);
        }));
    glDispatchCompute(W / 8, H / 8, 1);
    glMemoryBarrier(GL_TEXTURE_FETCH_BARRIER_BIT);
    GLuint drawn = texture(GL_TEXTURE_2D, 1, GL_RGBA8, W, H, 1);
    target(GL_TEXTURE_2D, drawn, 0, 0, W, H);
    glBindTexture(GL_TEXTURE_2D, image);
    drawing(WHOLE, GLSL(layout(binding = 0) uniform sampler2D image; out vec4 colour; void main() {
        ivec2 at = ivec2(gl_FragCoord.xy);
        colour = texelFetch(image, ivec2(39 - at.x, at.y), 0);
    }));
    glDrawArrays(GL_TRIANGLES, 0, 3);
    same_pixels(W, H, words);
}

/* A dispatch between draws of one program, whose textures, uniforms and blocks stay; then the same the other way round. */
static void draws_between(void) {
    uint data[16], words[16 * 16], stored[64], data2[16];
    for (uint n = 0; n < 16; n++)
        data[n] = bytes_at(n + 3, n + 1), data2[n] = ~data[n];
    GLuint small = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 4, 4, 1);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 4, 4, GL_RGBA, GL_UNSIGNED_BYTE, data);
    GLuint other = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 4, 4, 1);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 4, 4, GL_RGBA, GL_UNSIGNED_BYTE, data2);
    glActiveTexture(GL_TEXTURE1);
    glBindTexture(GL_TEXTURE_2D, small);
    glActiveTexture(GL_TEXTURE0);
    glBindTexture(GL_TEXTURE_2D, other);
    uint block[4] = {bits_of(0), bits_of(0), bits_of(0), bits_of(0)};
    GLuint constants = storage(5, 4, block);
    glBindBufferRange(GL_UNIFORM_BUFFER, 0, constants, 0, 16);
    GLuint drawn = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 16, 16, 1);
    glBindTexture(GL_TEXTURE_2D, other);
    target(GL_TEXTURE_2D, drawn, 0, 0, 16, 16);
    GLuint draw = drawing(WHOLE, GLSL(
        layout(binding = 1) uniform sampler2D image;
        layout(std140, binding = 0) uniform Block { vec4 added; };
        uniform ivec2 shift;
        out vec4 colour;
        void main() {
            colour = texelFetch(image, (ivec2(gl_FragCoord.xy) + shift) & 3, 0) + added;
        }));
    int shift = location(draw, "shift");
    GLuint out = storage(0, 64, NULL);
    GLuint program = compute(OUT BYTES GLSL(
        layout(local_size_x = 16) in;
        layout(binding = 0) uniform sampler2D image;
        uniform uint base;
        void main() {
            uint n = gl_LocalInvocationID.x;
            o[base + n] = bytes(texelFetch(image, ivec2(n & 3u, n >> 2), 0)) + base;
        }));
    int base = location(program, "base");
    for (uint round = 0; round < 4; round++) {
        glUseProgram(draw);
        glUniform2i(shift, round, round * 2);
        glClear(GL_COLOR_BUFFER_BIT);
        glDrawArrays(GL_TRIANGLES, 0, 3);
        for (uint n = 0; n < 256; n++)
            words[n] = data[(n / 16 + round * 2) % 4 * 4 + (n % 16 + round) % 4];
        same_pixels(16, 16, words);
        glUseProgram(program);
        glUniform1ui(base, round * 16);
        dispatch(1, 1, 1);
    }
    for (uint n = 0; n < 64; n++)
        stored[n] = data2[n % 16] + n / 16 * 16;
    same(out, stored);
    glUseProgram(draw);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    same_pixels(16, 16, words);
    glActiveTexture(GL_TEXTURE1);
    glBindTexture(GL_TEXTURE_2D, 0);
    glActiveTexture(GL_TEXTURE0);
}

/* A target is drawn, a program changes it as an image, and the next draw blends onto the result. */
static void image_of_target(void) {
    uint words[32 * 32];
    GLuint drawn = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 32, 32, 1);
    target(GL_TEXTURE_2D, drawn, 0, 0, 32, 32);
    glClearColor(0, 1, 0, 0);
    glClear(GL_COLOR_BUFFER_BIT);
    glMemoryBarrier(GL_ALL_BARRIER_BITS);
    glBindImageTexture(0, drawn, 0, GL_FALSE, 0, GL_WRITE_ONLY, GL_RGBA8);
    compute(GLSL(
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(rgba8, binding = 0) writeonly uniform image2D image;
        void main() {
            ivec2 at = ivec2(gl_GlobalInvocationID.xy);
            if (((at.x ^ at.y) & 1) == 0)
                imageStore(image, at, vec4(float(at.x) / 255.0, 0.0, 1.0, 1.0));
        }));
    dispatch(4, 4, 1);
    drawing(WHOLE, GLSL(out vec4 colour; void main() { colour = vec4(100.0 / 255.0, 0.0, 0.0, 0.0); }));
    glEnable(GL_BLEND);
    glBlendFunc(GL_ONE, GL_ONE);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    glDisable(GL_BLEND);
    for (uint n = 0; n < 1024; n++)
        words[n] = ((n % 32 ^ n / 32) & 1) == 0 ? (n % 32 + 100) | 0xffff0000u : 100 | 0xff00;
    same_pixels(32, 32, words);
}

/* A second program stays the current one while draws, other buffers, uniforms and indirect dispatches come between its
 * launches. */
static void program_stays(void) {
    uint words[32], pixels[16], arguments[3] = {1, 1, 1};
    GLuint drawn = texture(GL_TEXTURE_2D, 1, GL_RGBA8, 4, 4, 1), indirect = storage(3, 3, arguments);
    target(GL_TEXTURE_2D, drawn, 0, 0, 4, 4);
    glBindBuffer(GL_DISPATCH_INDIRECT_BUFFER, indirect);
    GLuint draw = drawing(WHOLE, GLSL(uniform float green; out vec4 colour; void main() {
        colour = vec4(0.0, green, 0.0, 1.0);
    }));
    GLuint first = storage(0, 32, NULL);
    compute(OUT GLSL(layout(local_size_x = 32) in; uniform uint k; void main() {
        o[gl_LocalInvocationID.x] = gl_LocalInvocationID.x * 3u + k;
    }));
    dispatch(1, 1, 1);
    for (uint n = 0; n < 32; n++)
        words[n] = n * 3;
    same(first, words);
    GLuint second = compute(OUT GLSL(layout(local_size_x = 32) in; uniform uint k; void main() {
        o[gl_LocalInvocationID.x] = gl_LocalInvocationID.x * 5u + k;
    }));
    for (uint round = 0; round < 8; round++) {
        if (round % 4 == 1) {
            glUseProgram(draw);
            glUniform1f(location(draw, "green"), round * 20 / 255.0f);
            glDrawArrays(GL_TRIANGLES, 0, 3);
        } else if (round % 4 == 2) {
            glUseProgram(0);
            glFinish();
        } else if (round % 4 == 3)
            glFlush();
        GLuint out = storage(0, 32, NULL);
        glUseProgram(second);
        glUniform1ui(location(second, "k"), round / 2);
        if (round % 3 == 2)
            glDispatchComputeIndirect(0);
        else
            glDispatchCompute(1, 1, 1);
        glMemoryBarrier(GL_ALL_BARRIER_BITS);
        for (uint n = 0; n < 32; n++)
            words[n] = n * 5 + round / 2;
        same(out, words);
    }
    for (uint n = 0; n < 16; n++)
        pixels[n] = 100 << 8 | 255u << 24;
    same_pixels(4, 4, pixels);
}

const struct test DRAWS[] = {
    TEST(image_copies), TEST(pixel_buffers), TEST(feedback_read), TEST(vertex_data), TEST(draw_arguments),
    TEST(texture_in_draw), TEST(draws_between), TEST(image_of_target), TEST(program_stays), {0},
};
