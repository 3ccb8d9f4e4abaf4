// Three frames of 32x32 pixels, for a trace. The first shows a rectangle. The others draw another rectangle into a texture of 16x16
// pixels, with a second program, and show the texture. With an argument no frame is shown.
//
// The few functions are declared here, so that no headers of EGL and OpenGL are needed.
#include <stdio.h>
#include <stdlib.h>

void *eglGetDisplay(void *), *eglCreateContext(void *, void *, void *, const int *), *eglCreatePbufferSurface(void *, void *, const int *);
unsigned eglInitialize(void *, int *, int *), eglBindAPI(unsigned), eglChooseConfig(void *, const int *, void **, int, int *);
unsigned eglMakeCurrent(void *, void *, void *, void *), eglSwapBuffers(void *, void *);
unsigned glCreateShader(unsigned), glCreateProgram(void), glCheckFramebufferStatus(unsigned);
void glShaderSource(unsigned, int, const char *const *, const int *), glCompileShader(unsigned), glAttachShader(unsigned, unsigned);
void glBindAttribLocation(unsigned, unsigned, const char *), glLinkProgram(unsigned), glUseProgram(unsigned), glViewport(int, int, int, int);
void glGenBuffers(int, unsigned *), glBindBuffer(unsigned, unsigned), glBufferData(unsigned, long, const void *, unsigned), glFlush(void);
void glVertexAttribPointer(unsigned, int, unsigned, unsigned char, int, const void *), glEnableVertexAttribArray(unsigned);
void glGenTextures(int, unsigned *), glBindTexture(unsigned, unsigned), glTexParameteri(unsigned, unsigned, int);
void glTexImage2D(unsigned, int, int, int, int, int, unsigned, unsigned, const void *), glDrawArrays(unsigned, int, int);
void glGenFramebuffers(int, unsigned *), glBindFramebuffer(unsigned, unsigned), glFramebufferTexture2D(unsigned, unsigned, unsigned, unsigned, int);
void glClearColor(float, float, float, float), glClear(unsigned), glGetProgramiv(unsigned, unsigned, int *);

enum {
    RENDERABLE = 0x3040, ES2 = 4, SURFACE = 0x3033, PBUFFER = 1, WIDTH = 0x3057, HEIGHT = 0x3056, VERSION = 0x3098, NONE = 0x3038, ES = 0x30a0,
    FRAGMENT = 0x8b30, VERTEX = 0x8b31, LINKED = 0x8b82, ARRAY = 0x8892, STATIC = 0x88e4, FLOAT = 0x1406, TEXTURE = 0x0de1, RGBA = 0x1908,
    UNSIGNED_BYTE = 0x1401, MIN_FILTER = 0x2801, MAG_FILTER = 0x2800, NEAREST = 0x2600, FRAMEBUFFER = 0x8d40, COLOR0 = 0x8ce0,
    COMPLETE = 0x8cd5, COLOR_BIT = 0x4000, STRIP = 5,
};

static void check(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "frames: %s\n", what);
    exit(1);
}

static unsigned program(const char *fragment) {
    const char *vertex = "attribute vec2 p; varying vec2 t; void main() { gl_Position = vec4(p, 0, 1); t = p * 0.5 + 0.5; }";
    unsigned made = glCreateProgram(), kinds[] = {VERTEX, FRAGMENT};
    for (int stage = 0; stage < 2; stage++) {
        unsigned shader = glCreateShader(kinds[stage]);
        glShaderSource(shader, 1, stage ? &fragment : &vertex, NULL);
        glCompileShader(shader);
        glAttachShader(made, shader);
    }
    glBindAttribLocation(made, 0, "p");
    glLinkProgram(made);
    int linked;
    glGetProgramiv(made, LINKED, &linked);
    check(linked, "a program does not link");
    return made;
}

int main(int count, char **arguments) {
    (void)arguments;
    void *config, *display = eglGetDisplay(NULL);
    check(eglInitialize(display, NULL, NULL), "no display");
    eglBindAPI(ES);
    int wanted[] = {RENDERABLE, ES2, SURFACE, PBUFFER, NONE}, size[] = {WIDTH, 32, HEIGHT, 32, NONE}, version[] = {VERSION, 2, NONE}, found = 0;
    eglChooseConfig(display, wanted, &config, 1, &found);
    check(found, "no config");
    void *surface = eglCreatePbufferSurface(display, config, size), *context = eglCreateContext(display, config, NULL, version);
    check(eglMakeCurrent(display, surface, surface, context), "no context");

    unsigned grey = program("precision mediump float; void main() { gl_FragColor = vec4(0.25, 0.5, 0.75, 1); }");
    // 0.3515625 is 0x3eb40000, a literal in the words of the program on R600 and R700.
    unsigned odd = program("precision mediump float; void main() { gl_FragColor = vec4(0.3515625, 0, 1, 1); }");
    unsigned shown = program("precision mediump float; varying vec2 t; uniform sampler2D s; void main() { gl_FragColor = texture2D(s, t); }");
    // The left half; the lower left eighth, in the texture 8x4 pixels; everything.
    static const float corners[] = {-1, -1, 0, -1, -1, 1, 0, 1, -1, -1, 0, -1, -1, -.5f, 0, -.5f, -1, -1, 1, -1, -1, 1, 1, 1};
    unsigned buffer, texture, target;
    glGenBuffers(1, &buffer), glBindBuffer(ARRAY, buffer), glBufferData(ARRAY, sizeof corners, corners, STATIC);
    glVertexAttribPointer(0, 2, FLOAT, 0, 0, NULL), glEnableVertexAttribArray(0);
    glGenTextures(1, &texture), glBindTexture(TEXTURE, texture);
    glTexImage2D(TEXTURE, 0, RGBA, 16, 16, 0, RGBA, UNSIGNED_BYTE, NULL);
    glTexParameteri(TEXTURE, MIN_FILTER, NEAREST), glTexParameteri(TEXTURE, MAG_FILTER, NEAREST);
    glGenFramebuffers(1, &target), glBindFramebuffer(FRAMEBUFFER, target);
    glFramebufferTexture2D(FRAMEBUFFER, COLOR0, TEXTURE, texture, 0);
    check(glCheckFramebufferStatus(FRAMEBUFFER) == COMPLETE, "the framebuffer is not complete");

    for (int frame = 0; frame < 3; frame++) {
        if (frame) {
            glBindFramebuffer(FRAMEBUFFER, target), glViewport(0, 0, 16, 16);
            glClearColor(0, 0, 0, 1), glClear(COLOR_BIT);
            glUseProgram(odd), glDrawArrays(STRIP, 4, 4);
        }
        glBindFramebuffer(FRAMEBUFFER, 0), glViewport(0, 0, 32, 32);
        glClearColor(1, 1, 1, 1), glClear(COLOR_BIT);
        glUseProgram(frame ? shown : grey), glDrawArrays(STRIP, frame ? 8 : 0, 4);
        if (count > 1) glFlush();
        else check(eglSwapBuffers(display, surface), "a frame is not shown");
    }
    return 0;
}
