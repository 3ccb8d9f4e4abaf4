/* Compute programs of OpenGL ES 3.1 whose results are compared word by word with a direct evaluation in C.
 *
 *     cc -O1 *.c -lEGL -lGLESv2 && EGL_PLATFORM=surfaceless ./a.out [NAME...]
 *
 * Each test prints a line, `name: ok` or its first difference. The status is the number of tests that failed.
 *
 * All results are exact in any implementation: integers, or floats whose operations do not round. Every buffer is followed by
 * guard words. Except for the tests of faults.c, no test returns to a program after another one ran: Mesa 22.3.6 runs the wrong
 * code then on nv50.
 *
 * `--list` prints the names, `--version` the version of OpenGL ES. `--padded`, the first argument, keeps five words before the
 * shared variables of each program unused, which is a way around another fault of that driver. */
#include "compute.h"
#include <setjmp.h>
#include <stdarg.h>

static const struct test *const FILES[] = {FLOW, SHARED, ATOMICS, GRIDS, BUFFERS, ARITHMETIC, IMAGES, TEXTURES, DRAWS, FAULTS};

/* Words after each buffer. */
#define GUARD 64

#define PRECISION "precision highp float; precision highp int;\n" \
    "precision highp sampler2D; precision highp usampler2D; precision highp isampler2D; precision highp sampler3D;\n" \
    "precision highp sampler2DArray; precision highp usampler3D; precision highp usampler2DArray;\n" \
    "precision highp samplerCube; precision highp sampler2DShadow; precision highp sampler2DMS;\n" \
    "precision highp image2D; precision highp uimage2D; precision highp iimage2D; precision highp uimage3D;\n" \
    "precision highp uimage2DArray; precision highp uimageCube;\n"

struct objects objects;

static const char *running;
static bool pads;
static jmp_buf end_of_test;
static uint random_state;

void fails(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s: ", running);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    longjmp(end_of_test, 1);
}

void skips(const char *reason) {
    printf("%s: skipped: %s\n", running, reason);
    longjmp(end_of_test, 2);
}

void needs_extension(const char *name) {
    if (!strstr((const char *)glGetString(GL_EXTENSIONS), name))
        skips(name);
}

void needs_full_groups(void) {
    GLint limit;
    glGetIntegerv(GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS, &limit);
    if (limit < 512)
        skips("groups of 512 threads");
}

void same_words(const uint *found, const uint *expected, uint words) {
    for (uint word = 0; word < words; word++)
        if (found[word] != expected[word]) {
            uint wrong = 0;
            for (uint other = word; other < words; other++)
                wrong += found[other] != expected[other];
            fails("word %u is 0x%x, expected 0x%x; %u of %u words differ", word, found[word], expected[word], wrong, words);
        }
}

static GLuint compiled(GLenum stage, const char *extension, const char *text) {
    GLuint shader = glCreateShader(stage);
    const char *texts[] = {"#version 310 es\n", extension, PRECISION, text};
    glShaderSource(shader, 4, texts, NULL);
    glCompileShader(shader);
    GLint good;
    char log[1000] = "";
    glGetShaderiv(shader, GL_COMPILE_STATUS, &good);
    glGetShaderInfoLog(shader, sizeof log, NULL, log);
    if (!good)
        fails("does not compile: %s", log);
    return shader;
}

GLuint shader(GLenum stage, const char *text) {
    return compiled(stage, "", text);
}

GLuint linked(GLuint program) {
    GLint good;
    char log[1000] = "";
    glLinkProgram(program);
    glGetProgramiv(program, GL_LINK_STATUS, &good);
    glGetProgramInfoLog(program, sizeof log, NULL, log);
    if (!good)
        fails("does not link: %s", log);
    glUseProgram(program);
    return program;
}

/* Moves the shared variables of a program into one struct that begins with five unused words: Mesa 22.3.6 places the variables
 * over the first five words of a block's memory on nv50, which the chip has written. Each declaration has one variable. */
static void pad(const char *text, char *padded) {
    static char whole[1 << 17];
    char fields[1000] = "", names[1000] = "";
    const char *declaration, *last = NULL;
    strcpy(whole, text);
    for (const char *at = text; (declaration = strstr(at, "shared ")); at = declaration + 7) {
        const char *end = strchr(declaration, ';'), *name = end;
        for (const char *bracket = declaration; bracket < name; bracket++)
            if (*bracket == '[')
                name = bracket;
        const char *name_end = name;
        while (name[-1] != ' ')
            name--;
        sprintf(fields + strlen(fields), "%.*s; ", (int)(end - declaration) - 7, declaration + 7);
        const int length = name_end - name;
        sprintf(names + strlen(names), "#define %.*s shared_words.%.*s\n", length, name, length, name);
        memset(whole + (declaration - text), ' ', end + 1 - declaration);
        last = end + 1;
    }
    if (last)
        sprintf(padded, "%.*s\nstruct SharedWords { uint unused_words[5]; %s}; shared SharedWords shared_words;\n%s%s",
            (int)(last - text), whole, fields, names, whole + (last - text));
    else
        strcpy(padded, text);
}

GLuint extended(const char *extension, const char *text) {
    GLuint program = objects.programs[objects.program_count++] = glCreateProgram();
    static char padded[1 << 18];
    if (pads)
        pad(text, padded);
    glAttachShader(program, compiled(GL_COMPUTE_SHADER, extension, pads ? padded : text));
    return linked(program);
}

GLuint compute(const char *text) {
    return extended("", text);
}

GLuint drawing(const char *vertex, const char *fragment) {
    GLuint program = objects.programs[objects.program_count++] = glCreateProgram();
    glAttachShader(program, shader(GL_VERTEX_SHADER, vertex));
    glAttachShader(program, shader(GL_FRAGMENT_SHADER, fragment));
    return linked(program);
}

GLuint storage(uint slot, uint words, const uint *data) {
    GLuint name;
    uint *filled = malloc((words + GUARD) * 4);
    for (uint word = 0; word < words + GUARD; word++)
        filled[word] = data && word < words ? data[word] : FILL;
    glGenBuffers(1, &name);
    objects.words[objects.buffer_count] = words;
    objects.buffers[objects.buffer_count++] = name;
    glBindBuffer(GL_SHADER_STORAGE_BUFFER, name);
    glBufferData(GL_SHADER_STORAGE_BUFFER, (words + GUARD) * 4, filled, GL_DYNAMIC_COPY);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, slot, name);
    free(filled);
    return name;
}

void dispatch(uint x, uint y, uint z) {
    glDispatchCompute(x, y, z);
    glMemoryBarrier(GL_ALL_BARRIER_BITS);
}

void same(GLuint buffer, const uint *expected) {
    uint words = 0;
    for (uint number = 0; number < objects.buffer_count; number++)
        if (objects.buffers[number] == buffer)
            words = objects.words[number];
    glBindBuffer(GL_COPY_READ_BUFFER, buffer);
    const uint *found = glMapBufferRange(GL_COPY_READ_BUFFER, 0, (words + GUARD) * 4, GL_MAP_READ_BIT);
    if (!found)
        fails("cannot map a buffer: GL error 0x%x", glGetError());
    same_words(found, expected, words);
    for (uint word = words; word < words + GUARD; word++)
        if (found[word] != FILL)
            fails("guard word %u after %u words is 0x%x", word - words, words, found[word]);
    glUnmapBuffer(GL_COPY_READ_BUFFER);
}

void read_words(GLuint buffer, uint *words, uint count) {
    glBindBuffer(GL_COPY_READ_BUFFER, buffer);
    const uint *found = glMapBufferRange(GL_COPY_READ_BUFFER, 0, count * 4, GL_MAP_READ_BIT);
    memcpy(words, found, count * 4);
    glUnmapBuffer(GL_COPY_READ_BUFFER);
}

GLuint texture(GLenum target, uint levels, GLenum format, uint width, uint height, uint depth) {
    GLuint name;
    glGenTextures(1, &name);
    objects.textures[objects.texture_count++] = name;
    glBindTexture(target, name);
    if (target == GL_TEXTURE_2D || target == GL_TEXTURE_CUBE_MAP)
        glTexStorage2D(target, levels, format, width, height);
    else
        glTexStorage3D(target, levels, format, width, height, depth);
    glTexParameteri(target, GL_TEXTURE_MIN_FILTER, levels > 1 ? GL_NEAREST_MIPMAP_NEAREST : GL_NEAREST);
    glTexParameteri(target, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    return name;
}

void target(GLenum target, GLuint texture, uint level, uint layer, uint width, uint height) {
    GLuint name;
    glGenFramebuffers(1, &name);
    objects.framebuffers[objects.framebuffer_count++] = name;
    glBindFramebuffer(GL_FRAMEBUFFER, name);
    if (target == GL_TEXTURE_3D || target == GL_TEXTURE_2D_ARRAY)
        glFramebufferTextureLayer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, texture, level, layer);
    else
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, target, texture, level);
    if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
        fails("the framebuffer is incomplete");
    glViewport(0, 0, width, height);
}

void same_reds(uint width, uint height, const uint *expected) {
    uint *words = malloc(width * height * 16);
    glReadPixels(0, 0, width, height, GL_RGBA_INTEGER, GL_UNSIGNED_INT, words);
    for (uint pixel = 0; pixel < width * height; pixel++)
        words[pixel] = words[4 * pixel];
    same_words(words, expected, width * height);
    free(words);
}

void same_pixels(uint width, uint height, const uint *expected) {
    uint *words = malloc(width * height * 4);
    glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, words);
    same_words(words, expected, width * height);
    free(words);
}

uint random_word(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state ^ random_state >> 15;
}

uint bits_of(float value) {
    uint word;
    memcpy(&word, &value, 4);
    return word;
}

static int by_value(const void *a, const void *b) {
    uint first = *(const uint *)a, second = *(const uint *)b;
    return first < second ? -1 : first > second;
}

void sort(uint *words, uint count) {
    qsort(words, count, 4, by_value);
}

int location(GLuint program, const char *name) {
    int location = glGetUniformLocation(program, name);
    if (location < 0)
        fails("no uniform `%s`", name);
    return location;
}

void each(const char *functions, const char *value, uint groups, uint (*expected)(uint)) {
    static const char main_text[] = "layout(local_size_x = 64) in; void main() { uint n = gl_GlobalInvocationID.x; o[n] = ";
    char text[8000];
    snprintf(text, sizeof text, OUT "%s%s%s; }", functions, main_text, value);
    GLuint out = storage(0, groups * 64, NULL);
    uint *words = malloc(groups * 256);
    for (uint n = 0; n < groups * 64; n++)
        words[n] = expected(n);
    compute(text);
    dispatch(groups, 1, 1);
    same(out, words);
    free(words);
}

uint place(uint x, uint y, uint z) {
    return x * 0x01000193u ^ y * 0x00010007u ^ z * 0x00300001u ^ 0x55u;
}

uint *places(uint width, uint height, uint depth) {
    uint *words = malloc(width * height * depth * 4);
    for (uint n = 0; n < width * height * depth; n++)
        words[n] = place(n % width, n / width % height, n / width / height);
    return words;
}

void same_places(GLenum kind, GLuint name, uint level, uint width, uint height, uint depth, uint addition) {
    uint *words = malloc(width * height * 4);
    for (uint z = 0; z < depth; z++) {
        for (uint n = 0; n < width * height; n++)
            words[n] = place(n % width, n / width, z) + addition;
        target(kind == GL_TEXTURE_CUBE_MAP ? GL_TEXTURE_CUBE_MAP_POSITIVE_X + z : kind, name, level, z, width, height);
        same_reds(width, height, words);
    }
    free(words);
}

uint bytes_at(uint x, uint y) {
    return (x * 5 & 255) | (y * 9 & 255) << 8 | ((x ^ y) & 255) << 16 | ((x * y + 1) & 255) << 24;
}

/* Deletes the objects of a test and returns to the state of a new context. */
static void clean(void) {
    glUseProgram(0);
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    for (uint n = 0; n < objects.program_count; n++)
        glDeleteProgram(objects.programs[n]);
    glDeleteBuffers(objects.buffer_count, objects.buffers);
    glDeleteTextures(objects.texture_count, objects.textures);
    glDeleteFramebuffers(objects.framebuffer_count, objects.framebuffers);
    glActiveTexture(GL_TEXTURE0);
    glDisable(GL_BLEND);
    memset(&objects, 0, sizeof objects);
}

/* Returns whether a test fails. `number` is the place of the test among all. */
static bool failed(const struct test *test, uint number) {
    running = test->name;
    random_state = number + 1;
    int how = setjmp(end_of_test);
    if (how == 0) {
        test->run();
        GLenum error = glGetError();
        if (error)
            fails("GL error 0x%x", error);
        printf("%s: ok\n", running);
    }
    clean();
    while (glGetError())
        ;
    return how == 1;
}

/* Makes a context of OpenGL ES 3.1 without a surface the current one. */
static bool has_context(EGLDisplay display) {
    const EGLint wanted[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT, EGL_NONE};
    const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1, EGL_NONE};
    EGLConfig config;
    EGLint configs;
    if (!eglInitialize(display, NULL, NULL) || !eglBindAPI(EGL_OPENGL_ES_API)
        || !eglChooseConfig(display, wanted, &config, 1, &configs)) {
        fprintf(stderr, "EGL error 0x%x\n", eglGetError());
        return false;
    }
    EGLContext context = eglCreateContext(display, configs ? config : NULL, EGL_NO_CONTEXT, version);
    if (!context || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context)) {
        fprintf(stderr, "no context of OpenGL ES 3.1: EGL error 0x%x\n", eglGetError());
        return false;
    }
    return true;
}

int main(int count, char **names) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    const bool lists = count == 2 && !strcmp(names[1], "--list");
    pads = count > 1 && !strcmp(names[1], "--padded");
    const int first = pads ? 2 : 1;
    EGLDisplay display = eglGetDisplay(EGL_DEFAULT_DISPLAY);
    if (!lists && !has_context(display))
        return 125;
    if (count == 2 && !strcmp(names[1], "--version")) {
        printf("%s\n", glGetString(GL_VERSION));
        return 0;
    }
    int failures = 0;
    bool *known = calloc(count, sizeof *known);
    uint number = 0;
    for (uint file = 0; file < LENGTH(FILES); file++)
        for (const struct test *test = FILES[file]; test->name; test++, number++) {
            bool runs = count == first;
            for (int name = first; name < count; name++)
                if (!strcmp(names[name], test->name))
                    runs = known[name] = true;
            if (lists)
                printf("%s\n", test->name);
            else if (runs)
                failures += failed(test, number);
        }
    for (int name = first; name < count && !lists; name++)
        if (!known[name]) {
            printf("%s: unknown test\n", names[name]);
            failures++;
        }
    free(known);
    if (!lists) {
        eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
        eglTerminate(display);
    }
    return failures;
}
