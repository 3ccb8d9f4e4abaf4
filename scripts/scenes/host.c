// Draws a scene with OpenGL, without a window system, and writes its pixels. (scripts/compare-scenes compiles and runs this.)
//
//   host SCENE SIZE FILE               one frame: its pixels, 4 bytes each, row after row from below
//   host SCENE SIZE --surfaces FILE    one frame in which each pixel has the number of its surface instead of a colour
//   host SCENE SIZE --frames N         N frames; prints the maximum resident memory, in KiB, in the second and in the last quarter
//   host --list                        the names of the scenes
//
// With SCENES_GRID=N in the environment, vertex programs place vertices at multiples of 1/N of a pixel. A chip that rounds positions to 1/N
// then draws the same triangles as other renderers. SCENES_WITHOUT names parts that scenes omit.
//
// Prints GL_RENDERER, then each omitted part, and the results of queries. If the driver cannot draw a scene, prints the missing feature.
#include "scenes.h"

// The scenes, and the version of OpenGL whose core profile a scene needs, or 0. Scenes with 0 need only OpenGL 2.1 and framebuffer objects,
// which every chip supports.
static const struct { const char *name; Scene *draw; int version; } scenes[] = {
    {"lit", lit, 0},
    {"mipmaps", mipmaps, 0},
    {"blended", blended, 0},
    {"indexed", indexed, 0},
    {"to-texture", to_texture, 0},
    {"query", query, 0},
    {"points", points, 0},
    {"fixed", fixed, 0},
    {"cube-map", cube_map, 0},
    {"divergent", divergent, 0},
    {"masked", masked, 0},
    {"targets", targets, 0},
    {"samples", samples, 0},
    {"coverage", coverage, 0},
    {"clipped", clipped, 0},
    {"levels", levels, 0},
    {"modes", modes, 0},
    {"borders", borders, 0},
    {"stippled", stippled, 0},
    {"depths", depths, 0},
    {"srgb", srgb, 0},
    {"layers", layers, 33},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

static void frame(Scene *draw, int number) {
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glViewport(0, 0, width = size, size);
    glDisable(GL_DEPTH_TEST), glDisable(GL_CULL_FACE), glDisable(GL_BLEND);
    draw(number);
}

static void write_pixels(const char *path) {
    unsigned char *pixels = malloc(size * size * 4);
    glReadPixels(0, 0, size, size, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(pixels, 4, size * size, file) != (size_t)(size * size) || fclose(file)) fail("cannot write");
    free(pixels);
}

// The maximum resident memory so far in KiB: memory of this process, and memory that is shared with files.
static long most_own, most_shared;

static void look(void) {
    FILE *file = fopen("/proc/self/status", "r");
    long own = 0, shared = 0;
    char line[256];
    while (file && fgets(line, sizeof line, file)) sscanf(line, "RssAnon: %ld", &own), sscanf(line, "RssShmem: %ld", &shared);
    if (file) fclose(file);
    if (own > most_own) most_own = own;
    if (shared > most_shared) most_shared = shared;
}

static void resident(const char *when) {
    printf("%s: own %ld shared %ld\n", when, most_own, most_shared);
    most_own = most_shared = 0;
}

// Creates a context, of the core profile if `version` is not 0. Returns whether the driver has that version.
static int context(int version) {
    EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    if (!eglInitialize(display, NULL, NULL) || !eglBindAPI(EGL_OPENGL_API)) fail("EGL does not start");
    EGLint core[] = {
        EGL_CONTEXT_MAJOR_VERSION, version / 10, EGL_CONTEXT_MINOR_VERSION, version % 10,
        EGL_CONTEXT_OPENGL_PROFILE_MASK, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE,
    };
    EGLContext made = version ? eglCreateContext(display, NULL, EGL_NO_CONTEXT, core) : NULL;
    core_profile = made != NULL;
    if (!made) made = eglCreateContext(display, NULL, EGL_NO_CONTEXT, NULL);
    if (!made || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, made)) fail("no OpenGL context");
    printf("renderer: %s\n", (const char *)glGetString(GL_RENDERER));
    return !version || core_profile;
}

int main(int count, char **args) {
    if (count == 2 && !strcmp(args[1], "--list")) {
        for (int number = 0; number < SCENES; number++) puts(scenes[number].name);
        return 0;
    }
    int frames = count == 5 && !strcmp(args[3], "--frames") ? atoi(args[4]) : 0;
    showing_surfaces = count == 5 && !strcmp(args[3], "--surfaces");
    if (count != 4 && frames < 10 && !showing_surfaces) {
        fprintf(stderr, "usage: host SCENE SIZE [--surfaces] FILE | host SCENE SIZE --frames N | host --list\n");
        return 2;
    }
    int chosen = 0;
    while (chosen < SCENES && strcmp(scenes[chosen].name, args[1])) chosen++;
    size = atoi(args[2]), grid = getenv("SCENES_GRID") ? atoi(getenv("SCENES_GRID")) : 0;
    if (chosen == SCENES || size < 16 || size > 4096) fail("no such scene, or its size is not 16 to 4096");
    Scene *draw = scenes[chosen].draw;
    if (!context(scenes[chosen].version)) {
        printf("lacks: OpenGL %d.%d\n", scenes[chosen].version / 10, scenes[chosen].version % 10);
        return 0;
    }
    target = framebuffer(size, 0);
    if (frames == 0) frame(draw, 0), write_pixels(args[count - 1]);
    for (int number = 0; number < frames; number++) {
        frame(draw, number);
        unsigned pixel;
        glReadPixels(size / 2, size / 2, 1, 1, GL_RGBA, GL_UNSIGNED_BYTE, &pixel);
        // A driver keeps buffers for some time, so the memory of a single frame depends on the moment of the measurement.
        int half = frames / 2, of_half = number < half ? number : number - half;
        if (of_half >= half / 2) look();
        if (number + 1 == half) resident("after a half");
    }
    if (frames) resident("after all");
    if (glGetError() != GL_NO_ERROR) fail("OpenGL has an error");
    return 0;
}
