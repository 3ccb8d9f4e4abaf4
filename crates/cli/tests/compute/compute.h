/* What the programs of this folder share: shaders, buffers and textures that end with a test, and comparisons. */
#include <EGL/egl.h>
#include <GLES3/gl31.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t uint;

/* Text of a shader. A function in BOTH is compiled as GLSL and as C. */
#define GLSL(...) #__VA_ARGS__ "\n"
#define BOTH(name, ...) __VA_ARGS__ static const char name[] = #__VA_ARGS__ "\n";
#define EXPANDED(...) GLSL(__VA_ARGS__)
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* The storage buffers of most programs. */
#define OUT "layout(std430, binding = 0) buffer Out { uint o[]; };\n"
#define IN "layout(std430, binding = 1) readonly buffer In { uint i[]; };\n"

/* A word that depends on a place, as `place` returns it. */
#define PLACE GLSL(uint place(uvec3 at) { return at.x * 0x01000193u ^ at.y * 0x00010007u ^ at.z * 0x00300001u ^ 0x55u; })

/* The bytes of a texel with four components of 8 bits. */
#define BYTES GLSL(uint bytes(vec4 texel) { \
    uvec4 v = uvec4(texel * 255.0 + 0.5); \
    return v.x | v.y << 8 | v.z << 16 | v.w << 24; \
})

/* A vertex program that covers the target with one triangle. */
#define WHOLE GLSL(void main() { \
    gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0); \
})

/* Words that no program stores. */
#define FILL 0xcafef00du

/* A test, which returns if it passes. The list of a file ends with a test without name. */
struct test { const char *name; void (*run)(void); };
#define TEST(name) {#name, name}
extern const struct test FLOW[], SHARED[], ATOMICS[], GRIDS[], BUFFERS[], ARITHMETIC[], IMAGES[], TEXTURES[], DRAWS[], FAULTS[];

/* Objects of the running test, which are deleted after it. */
struct objects {
    GLuint programs[64], buffers[64], textures[64], framebuffers[64];
    uint program_count, buffer_count, texture_count, framebuffer_count;
    /* Words of each buffer, without the guard. */
    uint words[64];
};
extern struct objects objects;

/* End the test: it fails, or the implementation does not offer what it needs. */
_Noreturn void fails(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void skips(const char *reason);

/* Skips the test without this extension, or without groups of 512 threads. */
void needs_extension(const char *name);
void needs_full_groups(void);

/* Return a program, which becomes the current one. `linked` takes one with its shaders. */
GLuint compute(const char *text);
GLuint extended(const char *extension, const char *text);
GLuint drawing(const char *vertex, const char *fragment);
GLuint shader(GLenum stage, const char *text);
GLuint linked(GLuint program);
int location(GLuint program, const char *name);

/* Returns a buffer, bound to a slot of storage buffers. Without data all words are FILL. Guard words follow. */
GLuint storage(uint slot, uint words, const uint *data);

/* Returns an immutable texture without filter, which is bound to its target. */
GLuint texture(GLenum target, uint levels, GLenum format, uint width, uint height, uint depth);

/* Binds a framebuffer with one layer of a texture. `target` is a face for cube textures. */
void target(GLenum target, GLuint texture, uint level, uint layer, uint width, uint height);

void dispatch(uint x, uint y, uint z);

/* Runs a program with one storage buffer whose word n is a function of n, in groups of 64 threads. */
void each(const char *functions, const char *value, uint groups, uint (*expected)(uint));

/* Copies words of a buffer. */
void read_words(GLuint buffer, uint *words, uint count);

/* Compare words; all words of a buffer of `storage` and its guard words; the red words of the framebuffer, an unsigned integer
 * format; its pixels, 8 bits a component. */
void same_words(const uint *found, const uint *expected, uint words);
void same(GLuint buffer, const uint *expected);
void same_reds(uint width, uint height, const uint *expected);
void same_pixels(uint width, uint height, const uint *expected);

/* Data: PLACE in C, the words of a texture with it (to be freed), bytes by place, and random words. */
uint place(uint x, uint y, uint z);
uint *places(uint width, uint height, uint depth);
uint bytes_at(uint x, uint y);
uint random_word(void);

/* Compares each layer of an r32ui texture with `place` plus an addition. */
void same_places(GLenum kind, GLuint name, uint level, uint width, uint height, uint depth, uint addition);

/* Loads and stores of images at places that are shifted, so that some lie outside (images.c). */
void image_shifted(uint x, uint y);

uint bits_of(float value);
void sort(uint *words, uint count);
