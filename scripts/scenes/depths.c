// The scene with depths and stencils in several formats.
#include "scenes.h"

// A framebuffer with a depth format.
static GLuint deep(GLenum depth, GLenum point) {
    GLuint made, buffers[2];
    glGenFramebuffers(1, &made);
    glBindFramebuffer(GL_FRAMEBUFFER, made);
    glGenRenderbuffers(2, buffers);
    const GLenum formats[] = {GL_RGBA8, depth}, points[] = {GL_COLOR_ATTACHMENT0, point};
    for (int number = 0; number < 2; number++) {
        glBindRenderbuffer(GL_RENDERBUFFER, buffers[number]);
        glRenderbufferStorage(GL_RENDERBUFFER, formats[number], size / 2, size / 2);
        glFramebufferRenderbuffer(GL_FRAMEBUFFER, points[number], GL_RENDERBUFFER, buffers[number]);
    }
    if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) fail("the framebuffer of depths is not complete");
    return made;
}

// Draws only pixels whose stored depth is between two bounds. Renderers without this test mark these pixels in the stencil.
static void bounded_fill(int number, unsigned color, float least, float most, Matrix at) {
    if (extension("GL_EXT_depth_bounds_test")) {
        glEnable(GL_DEPTH_BOUNDS_TEST_EXT), glDepthBoundsEXT(least, most), glDisable(GL_DEPTH_TEST);
        fill(number, color, at);
        glDisable(GL_DEPTH_BOUNDS_TEST_EXT), glEnable(GL_DEPTH_TEST);
        return;
    }
    glDepthMask(0), glColorMask(0, 0, 0, 0), glEnable(GL_STENCIL_TEST), glClearStencil(0), glClear(GL_STENCIL_BUFFER_BIT);
    glStencilFunc(GL_ALWAYS, 1, 255), glStencilOp(GL_KEEP, GL_KEEP, GL_REPLACE), glDepthFunc(GL_LEQUAL);
    fill(number, color, times(moved(0, 0, 2 * least - 1), at));
    glStencilFunc(GL_ALWAYS, 0, 255), glDepthFunc(GL_LESS);
    fill(number, color, times(moved(0, 0, 2 * most - 1), at));
    glDepthMask(1), glColorMask(1, 1, 1, 1), glDisable(GL_DEPTH_TEST);
    glStencilFunc(GL_EQUAL, 1, 255), glStencilOp(GL_KEEP, GL_KEEP, GL_KEEP);
    fill(number, color, at);
    glDisable(GL_STENCIL_TEST), glEnable(GL_DEPTH_TEST);
}

// Depths of 16 and 24 bits, with a stencil and without, ranges of depth, bounds and clamping. The comparison fails if a depth does not
// have the precision of its format, if bounds are ignored (once on the GT215), or if a depth outside the range is not clamped.
void depths(int frame) {
    static GLuint inner[4], plain;
    static Shape ball, slant;
    if (!plain) {
        static const GLenum formats[] = {GL_DEPTH_COMPONENT16, GL_DEPTH_COMPONENT24, GL_DEPTH24_STENCIL8, GL_DEPTH24_STENCIL8};
        for (int number = 0; number < 4; number++)
            inner[number] = deep(formats[number], number > 1 ? GL_DEPTH_STENCIL_ATTACHMENT : GL_DEPTH_ATTACHMENT);
        plain = program(plain_source), ball = sphere(16, 24), slant = square(1, 240, 200, 60, 255);
    }
    for (int number = 0; number < 4; number++) {
        glBindFramebuffer(GL_FRAMEBUFFER, inner[number]);
        glViewport(0, 0, width = size / 2, size / 2);
        glDepthFunc(GL_LESS), glEnable(GL_DEPTH_TEST), glDisable(GL_CULL_FACE);
        glClearStencil(0);
        clear(0.1f + 0.1f * number, 0.2f, 0.3f);
        int base = 1 + 7 * number;
        use(plain);
        // A sheet cuts the ball.
        bind(ball), surface(base);
        place(times(moved(-0.3f, 0.2f, -3 + 0.01f * (frame % 10)), scaled(0.8f)), perspective(1, 8));
        draw(ball, 0, ball.count);
        bind(slant), surface(base + 1);
        place(times(moved(0.1f, 0.1f, -2.9f), times(turned(0.1f, 0.6f), scaled(0.9f))), perspective(1, 8));
        draw(slant, 0, 6);
        // Depths that differ by a third of a step of 16 bits. With 16 bits, they are equal, so the second sheet is also drawn.
        float step = 2.f / 65535, depth = 20000.1f * step - 1;
        glDepthFunc(GL_LEQUAL);
        fill(base + 2, 0xf03030ff, times(moved(0, 0, depth), box_at(4, 4, 52, 28)));
        fill(base + 3, 0x30f030ff, times(moved(0, 0, depth + 0.3f * step), box_at(12, 8, 36, 20)));
        // With a range of depth from 0.25 to 0.75, the window's depth of this sheet is 0.25 + 0.5 * 0.5.
        glDepthRange(0.25, 0.75);
        fill(base + 4, 0x3060f0ff, box_at(64, 4, 28, 28));
        glDepthRange(1, 0);
        fill(base + 5, 0xf0f0f0ff, times(moved(0, 0, 0.2f), box_at(72, 10, 40, 14)));
        glDepthRange(0, 1);
        if (number == 2)
            bounded_fill(base + 6, 0xc040c0ff, 0.75f, 0.93f, box_at(0, 40, 128, 88));
        if (number == 3 && part("depths that are clamped", extension("GL_ARB_depth_clamp"))) {
            glEnable(GL_DEPTH_CLAMP);
            fill(base + 6, 0x60c0c0ff, times(moved(0, 0, -1.5f), box_at(90, 80, 30, 40)));
            glDisable(GL_DEPTH_CLAMP);
        }
        glDepthFunc(GL_LESS);
        glBindFramebuffer(GL_READ_FRAMEBUFFER, inner[number]), glBindFramebuffer(GL_DRAW_FRAMEBUFFER, target);
        int half = size / 2, x = number % 2 * half, y = number / 2 * half;
        glBlitFramebuffer(0, 0, half, half, x, y, x + half, y + half, GL_COLOR_BUFFER_BIT, GL_NEAREST);
    }
    glBindFramebuffer(GL_FRAMEBUFFER, target);
}
