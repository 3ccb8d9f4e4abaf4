// Scenes with four samples per pixel. Renderers place samples differently. But in every renderer, one, two and three of the four samples are before
// a quarter, a half and three quarters of the pixel, along both axes. If a vertical or horizontal side cuts a pixel at one of these positions, the
// colour of the pixel is therefore defined.
#include "scenes.h"

// A framebuffer with four samples per pixel. Surfaces are drawn directly into the target, with one sample.
static GLuint several(void) {
    GLuint made, buffers[2];
    if (showing_surfaces) return target;
    glGenFramebuffers(1, &made);
    glBindFramebuffer(GL_FRAMEBUFFER, made);
    glGenRenderbuffers(2, buffers);
    static const GLenum formats[] = {GL_RGBA8, GL_DEPTH24_STENCIL8}, points[] = {GL_COLOR_ATTACHMENT0, GL_DEPTH_STENCIL_ATTACHMENT};
    for (int number = 0; number < 2; number++) {
        GLint had;
        glBindRenderbuffer(GL_RENDERBUFFER, buffers[number]);
        glRenderbufferStorageMultisample(GL_RENDERBUFFER, 4, formats[number], size, size);
        glGetRenderbufferParameteriv(GL_RENDERBUFFER, GL_RENDERBUFFER_SAMPLES, &had);
        if (had != 4) fail("a renderbuffer does not have four samples");
        glFramebufferRenderbuffer(GL_FRAMEBUFFER, points[number], GL_RENDERBUFFER, buffers[number]);
    }
    if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) fail("the framebuffer of samples is not complete");
    return made;
}

static void resolve(GLuint from) {
    if (from == target) return;
    glBindFramebuffer(GL_READ_FRAMEBUFFER, from);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, target);
    glBlitFramebuffer(0, 0, size, size, 0, 0, size, size, GL_COLOR_BUFFER_BIT, GL_NEAREST);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
}

// Bars whose sides cut pixels. They count as the same surface as the sheet under them, so that the cut pixels are compared.
static void bars(int number, unsigned sheet, unsigned bar, float x, float y, int upright) {
    fill(number, sheet, box_at(x, y, 32, 24));
    for (int at = 0; at < 3; at++) {
        float cut = 0.25f * (1 + at), along = (upright ? 3 : 2) + (upright ? 10 : 7) * at + cut, wide = 4 + cut;
        fill(number, bar, upright ? box_at(x + along, y, wide, 24) : box_at(x, y + along, 32, wide));
    }
}

// Triangles, depths and stencils of samples, and the mean of samples. The comparison fails if pixels have only one sample (once on the NVIDIA and
// R500 chips), or if depths, stencils or queries apply to pixels instead of samples.
void samples(int frame) {
    static GLuint inner, plain, shades, counter;
    static Shape ball, box;
    if (!shades) {
        inner = several(), plain = program(plain_source), shades = program(lit_source), ball = sphere(16, 24), box = cube();
        glGenQueries(1, &counter);
    }
    glBindFramebuffer(GL_FRAMEBUFFER, inner);
    clear(0.2f, 0.2f, 0.3f);
    bars(1, 0x204080ff, 0xf0c020ff, 4, 100, 1);
    bars(2, 0x802040ff, 0x30e0c0ff, 40, 100, 0);
    // Without multisampling, the centre of a pixel decides for all samples. The driver r300 does not turn multisampling off.
    fill(3, 0x406020ff, box_at(76, 100, 48, 24));
    if (part("GL_MULTISAMPLE off", !driver("ATI R"))) {
        glDisable(GL_MULTISAMPLE);
        fill(3, 0xf04020ff, box_at(80.25f, 100, 9.5f, 24));
        fill(3, 0x20a0f0ff, box_at(96.75f, 100, 9.5f, 24));
        glEnable(GL_MULTISAMPLE);
    }
    // The sheet is not drawn at samples that a bar has marked, or that a nearer bar covers.
    glEnable(GL_STENCIL_TEST);
    glStencilFunc(GL_ALWAYS, 1, 255), glStencilOp(GL_KEEP, GL_KEEP, GL_REPLACE);
    fill(4, 0x101010ff, box_at(4.5f, 70, 7.75f, 24));
    fill(4, 0x101010ff, box_at(16, 70, 8.5f, 24));
    glStencilFunc(GL_EQUAL, 0, 255), glStencilOp(GL_KEEP, GL_KEEP, GL_KEEP);
    fill(4, 0xe0e0a0ff, box_at(4, 70, 32, 24));
    glDisable(GL_STENCIL_TEST);
    glEnable(GL_DEPTH_TEST);
    fill(5, 0x60f060ff, times(moved(0, 0, -0.5f), box_at(44.75f, 70, 9.5f, 24)));
    fill(5, 0xf060f0ff, times(moved(0, 0, 0.5f), box_at(40, 70, 32, 24)));
    glEnable(GL_CULL_FACE);
    // The ball has only one colour, because renderers differ in how many samples of a pixel belong to each of two adjacent triangles.
    use(plain);
    Matrix view = perspective(1, 20);
    bind(ball), surface(6);
    place(times(moved(-0.8f, -0.7f, -5), turned(0.3f, 0.02f * frame)), view);
    glBeginQuery(GL_SAMPLES_PASSED, counter);
    draw(ball, 0, ball.count);
    glEndQuery(GL_SAMPLES_PASSED);
    GLuint passed;
    glGetQueryObjectuiv(counter, GL_QUERY_RESULT, &passed);
    if (frame == 0 && !showing_surfaces) printf("samples passed: %u\n", passed);
    use(shades), bind(box);
    place(times(moved(0.9f, -0.6f, -5.5f), times(turned(0.5f, 0.7f + 0.02f * frame), scaled(0.9f))), view);
    for (int side = 0; side < 6; side++) surface(7 + side), draw(box, side * 6, 6);
    resolve(inner);
}

// Draws with a mask of samples. Without ARB_texture_multisample, a coverage value covers the same number of samples.
static void masked_fill(int number, unsigned color, unsigned mask, Matrix at) {
    int count = __builtin_popcount(mask);
    if (showing_surfaces)
        fill(number, color, at);
    else if (part("masks of samples", extension("GL_ARB_texture_multisample"))) {
        glEnable(GL_SAMPLE_MASK), glSampleMaski(0, mask);
        fill(number, color, at);
        glDisable(GL_SAMPLE_MASK);
    } else {
        // Masks with the lowest sample and masks without it have no sample in common.
        glEnable(GL_SAMPLE_COVERAGE), glSampleCoverage(mask & 1 ? 0.25f * count : 1 - 0.25f * count, !(mask & 1));
        fill(number, color, at);
        glDisable(GL_SAMPLE_COVERAGE);
    }
}

// Samples that are covered by alpha, by a coverage value or by a mask. The mean of a pixel shows their number, and a query counts them. The
// comparison fails if a mask is ignored or if alpha covers a whole pixel.
void coverage(int frame) {
    static GLuint inner, counter;
    if (!inner) inner = several(), glGenQueries(1, &counter);
    glBindFramebuffer(GL_FRAMEBUFFER, inner);
    clear(0.2f, 0.3f, 0.2f);
    glBeginQuery(GL_SAMPLES_PASSED, counter);
    // Alpha is 0, 0.5 and 1. Alpha 0.5 covers two samples. If surfaces are shown, alpha is 1.
    if (!showing_surfaces) glEnable(GL_SAMPLE_ALPHA_TO_COVERAGE);
    if (!showing_surfaces) fill(1, 0xf0f0f000, box_at(4, 98, 36, 26));
    fill(2, 0xf0802070, box_at(46, 98, 36, 26));
    fill(3, 0x20c0f0ff, box_at(88, 98, 36, 26));
    glDisable(GL_SAMPLE_ALPHA_TO_COVERAGE);
    // A coverage value, and its complement in another colour. Together, they cover the pixel.
    if (!showing_surfaces) glEnable(GL_SAMPLE_COVERAGE);
    for (int number = 0; number < 3; number++) {
        float value = 0.25f * (1 + number);
        glSampleCoverage(value, GL_FALSE);
        fill(4 + number, 0xf03060ff, box_at(4 + 42 * number, 66, 36, 26));
        glSampleCoverage(value, GL_TRUE);
        fill(4 + number, 0x30f0a0ff, box_at(4 + 42 * number, 66, 36, 26));
    }
    glDisable(GL_SAMPLE_COVERAGE);
    static const unsigned masks[] = {0x1, 0xa, 0x7};
    for (int number = 0; number < 3; number++) masked_fill(7 + number, 0xf0f060ff, masks[number], box_at(4 + 42 * number, 36, 36, 24));
    masked_fill(8, 0x2020f0ff, 0x5, box_at(50, 40, 28, 16));
    // Every sample has a separate depth. The farther sheet is visible in the samples that the nearer one does not cover.
    glEnable(GL_DEPTH_TEST);
    masked_fill(10, 0x40f0f0ff, 0x3, times(moved(0, 0, -0.5f), box_at(4, 4, 78, 26)));
    fill(10, 0xf04040ff, times(moved(0, 0, 0.25f), box_at(4, 4, 78, 26)));
    glDisable(GL_DEPTH_TEST);
    // Blending uses an alpha of 1, so the sheet hides the one below.
    if (!showing_surfaces) glEnable(GL_SAMPLE_ALPHA_TO_ONE);
    glEnable(GL_BLEND), glBlendFunc(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA);
    fill(11, 0xa0c04040, box_at(88, 4, 36, 26));
    glDisable(GL_BLEND), glDisable(GL_SAMPLE_ALPHA_TO_ONE);
    glEndQuery(GL_SAMPLES_PASSED);
    GLuint passed;
    glGetQueryObjectuiv(counter, GL_QUERY_RESULT, &passed);
    if (frame == 0 && !showing_surfaces) printf("samples passed: %u\n", passed);
    resolve(inner);
}
