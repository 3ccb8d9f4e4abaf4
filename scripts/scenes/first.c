// The scenes for programs, buffers, textures and targets.
#include "scenes.h"

void lit(int frame) {
    static Shape ball, box;
    static GLuint shades;
    if (!shades) ball = sphere(16, 24), box = cube(), shades = program(lit_source);
    clear(0.1f, 0.12f, 0.2f);
    glEnable(GL_DEPTH_TEST), glEnable(GL_CULL_FACE);
    use(shades);
    Matrix view = perspective(1, 20);
    bind(ball), surface(1);
    place(times(moved(-0.8f, 0.3f, -5), turned(0.3f, 0.02f * frame)), view);
    draw(ball, 0, ball.count);
    bind(box);
    place(times(moved(0.9f, -0.3f, -5.5f), times(turned(0.5f, 0.7f + 0.02f * frame), scaled(0.9f))), view);
    for (int side = 0; side < 6; side++) surface(2 + side), draw(box, side * 6, 6);
}

void mipmaps(int frame) {
    static Shape floor, box;
    static GLuint shades, image;
    if (!shades) floor = square(12, 255, 255, 255, 255), box = cube(), shades = program(textured_source);
    // llvmpipe computes log2 with a piecewise linear function, so its level is up to 0.043 too small. Adjacent levels differ by less than
    // 1/255 / 0.043, so this does not affect the comparison.
    if (!image) image = texture(64, 7, 40);
    clear(0.5f, 0.6f, 0.8f);
    glEnable(GL_DEPTH_TEST), glEnable(GL_CULL_FACE);
    use(shades);
    glBindTexture(GL_TEXTURE_2D, image);
    glUniform1i(uniform("image"), 0);
    Matrix view = perspective(1, 60);
    bind(floor), surface(1);
    place(times(moved(0, -1.5f, -16), times(turned(-1.45f, 0.01f * frame), scaled(14))), view);
    draw(floor, 0, 6);
    bind(box);
    place(times(moved(0.2f, 0, -5), turned(0.5f, 0.6f + 0.02f * frame)), view);
    for (int side = 0; side < 6; side++) surface(2 + side), draw(box, side * 6, 6);
}

void blended(int frame) {
    static Shape hole, sheets[3];
    static GLuint shades;
    if (!shades) {
        hole = square(1, 20, 60, 90, 255), shades = program(plain_source);
        for (int number = 0; number < 3; number++)
            sheets[number] = square(1, number == 0 ? 250 : 30, number == 1 ? 240 : 50, number == 2 ? 230 : 20, 120 + 30 * number);
    }
    clear(0.85f, 0.85f, 0.8f);
    use(shades);
    // The stencil restricts the sheets to a rotated square, and excludes pixels that are marked twice.
    glEnable(GL_STENCIL_TEST);
    glStencilFunc(GL_ALWAYS, 1, 255), glStencilOp(GL_KEEP, GL_KEEP, GL_REPLACE);
    Matrix turn = {{0.6f, 0.5f, 0, 0, -0.5f, 0.6f, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};
    bind(hole), surface(1);
    place(turn, flat());
    draw(hole, 0, 6);
    glStencilFunc(GL_EQUAL, 1, 255), glStencilOp(GL_KEEP, GL_KEEP, GL_KEEP);
    // The numbers of surfaces are added where sheets overlap.
    glEnable(GL_BLEND);
    if (showing_surfaces) glBlendFunc(GL_ONE, GL_ONE);
    for (int number = 0; number < 3; number++) {
        if (!showing_surfaces && number == 1) glBlendFunc(GL_SRC_ALPHA, GL_ONE);
        if (!showing_surfaces && number != 1) glBlendFunc(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA);
        bind(sheets[number]), surface(2 << number);
        float x = 0.35f * cosf(2.1f * number + 0.03f * frame), y = 0.35f * sinf(2.1f * number + 0.03f * frame);
        place(times(moved(x, y, 0), scaled(0.5f)), flat());
        draw(sheets[number], 0, 6);
    }
    // A square decrements the stencil, which wraps from 0 to 255 at unmarked pixels. Only these pixels are then drawn.
    glDisable(GL_BLEND);
    glStencilFunc(GL_ALWAYS, 0, 255), glStencilOp(GL_KEEP, GL_KEEP, GL_DECR_WRAP);
    glColorMask(0, 0, 0, 0);
    place(times(moved(0.45f, 0.4f, 0), scaled(0.4f)), flat());
    draw(hole, 0, 6);
    glColorMask(1, 1, 1, 1);
    glStencilFunc(GL_EQUAL, 255, 255), glStencilOp(GL_KEEP, GL_KEEP, GL_KEEP);
    bind(sheets[2]), surface(32);
    place(flat(), flat());
    draw(sheets[2], 0, 6);
    glDisable(GL_STENCIL_TEST);
}

// 300 draws. Each uses an index range of one buffer, and state changes between the draws.
void indexed(int frame) {
    static Shape box;
    static GLuint shades;
    if (!shades) box = cube(), shades = program(lit_source);
    clear(0, 0, 0);
    glEnable(GL_DEPTH_TEST), glEnable(GL_CULL_FACE);
    use(shades);
    bind(box);
    Matrix view = perspective(1, 30);
    for (int number = 0; number < 50; number++) {
        float x = (number % 10 - 4.5f) * 0.9f, y = (number / 10 - 2) * 1.6f;
        place(times(moved(x, y, -11 - number % 3), times(turned(0.4f * number, 0.3f * number + 0.02f * frame), scaled(0.38f))), view);
        for (int side = 0; side < 6; side++) surface(1 + number * 6 + side), draw(box, side * 6, 6);
    }
}

void to_texture(int frame) {
    static GLuint image, inner, shades;
    static Shape box;
    // The picture on the sides shows the lit scene. An edge in this picture also counts as an edge on the side.
    static const char *const both_source =
        "#version 120\nuniform sampler2D image; uniform vec4 surface; varying vec2 t;\n"
        "void main() { gl_FragColor = vec4(texture2D(image, t).r, surface.r, 0.0, 1.0); }\n";
    if (!shades) {
        image = texture(64, 1, 255), inner = framebuffer(64, image);
        shades = program_with(textured_source, both_source), box = cube();
    }
    glBindFramebuffer(GL_FRAMEBUFFER, inner);
    glViewport(0, 0, width = 64, 64);
    lit(frame);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glViewport(0, 0, width = size, size);
    clear(0.2f, 0.3f, 0.25f);
    use(shades);
    glBindTexture(GL_TEXTURE_2D, image);
    glUniform1i(uniform("image"), 0);
    bind(box);
    place(times(moved(0, 0, -4), times(turned(0.5f, 0.8f + 0.01f * frame), scaled(1.1f))), perspective(1, 20));
    for (int side = 0; side < 6; side++) surface(2 + side), draw(box, side * 6, 6);
}

// The result of a query determines the colour of the next draw.
void query(int frame) {
    static Shape ball, bar;
    static GLuint shades, counter;
    if (!shades) {
        ball = sphere(12, 16), bar = square(1, 60, 220, 90, 255), shades = program(lit_source);
        glGenQueries(1, &counter);
    }
    clear(0.15f, 0.1f, 0.1f);
    glEnable(GL_DEPTH_TEST), glDisable(GL_CULL_FACE);
    use(shades);
    Matrix view = perspective(1, 20);
    bind(bar), surface(1);
    place(times(moved(-0.5f, 0, -4), turned(0.2f, 0.3f)), view);
    draw(bar, 0, 6);
    glBeginQuery(GL_SAMPLES_PASSED, counter);
    bind(ball), surface(2);
    place(times(moved(0.3f + 0.005f * (frame % 40), 0.1f, -4.6f), scaled(0.8f)), view);
    draw(ball, 0, ball.count);
    glEndQuery(GL_SAMPLES_PASSED);
    GLuint passed;
    glGetQueryObjectuiv(counter, GL_QUERY_RESULT, &passed);
    if (frame == 0 && !showing_surfaces) printf("samples passed: %u\n", passed);
    // A bar whose length is the number of pixels that passed, in steps of an eighth of the picture.
    float length = ceilf(8.f * passed / (0.25f * size * size)) / 8;
    bind(bar), surface(3);
    glDisable(GL_DEPTH_TEST);
    place((Matrix){{length / 2, 0, 0, 0, 0, 0.05f, 0, 0, 0, 0, 1, 0, length / 2 - 1, -0.9f, 0, 1}}, flat());
    draw(bar, 0, 6);
}

// Points as sprites whose sizes come from the vertex program, points of one size, and wide lines.
void points(int frame) {
    static const char *const sized_source =
        "#version 120\nattribute vec3 position; attribute vec2 coordinate; attribute vec4 color; varying vec4 c;\n"
        "void main() { c = color; gl_PointSize = coordinate.x; gl_Position = vec4(position, 1.0); }\n";
    static const char *const sprite_source =
        "#version 120\nvarying vec4 c; void main() { gl_FragColor = vec4(gl_PointCoord, c.b, 1.0) * c.a + vec4(0.0, 0.0, 0.2, 0.0); }\n";
    static GLuint sprites, shades;
    static Shape many, star;
    if (!sprites) {
        Vertex vertices[24];
        unsigned short indices[24];
        memset(vertices, 0, sizeof vertices);
        for (int number = 0; number < 24; number++) {
            float at[3] = {(number % 6 - 2.5f) * 0.31f, (number / 6 - 1.5f) * 0.37f + 0.02f * (number % 5), 0};
            memcpy(vertices[number].position, at, sizeof at);
            vertices[number].coordinate[0] = 5 + (number * 7) % 15;
            unsigned char color[4] = {30 * (number % 8), 10 * number, 60 + 7 * number, 200};
            memcpy(vertices[number].color, color, sizeof color);
            indices[number] = number;
        }
        many = shape(vertices, 24, indices, 24);
        for (int number = 0; number < 10; number++) {
            float radius = number % 2 ? 0.42f : 0.95f, around = number * 2 * (float)M_PI / 10;
            float at[3] = {radius * sinf(around), radius * cosf(around), 0};
            memcpy(vertices[number].position, at, sizeof at);
            unsigned char color[4] = {240, 220, 90, 255};
            memcpy(vertices[number].color, color, sizeof color);
        }
        star = shape(vertices, 10, indices, 10);
        sprites = program_of(sized_source, sprite_source, surface_source), shades = program(plain_source);
    }
    clear(0.1f, 0.1f, 0.15f);
    use(shades);
    bind(star), surface(1), place(turned(0, 0), flat());
    glLineWidth(5);
    glDrawElements(GL_LINE_LOOP, 10, GL_UNSIGNED_SHORT, 0);
    surface(2), place(scaled(0.5f), flat());
    glLineWidth(3);
    glDrawElements(GL_LINE_STRIP, 7, GL_UNSIGNED_SHORT, 0);
    use(sprites);
    bind(many);
    glEnable(GL_VERTEX_PROGRAM_POINT_SIZE), glEnable(GL_POINT_SPRITE);
    for (int number = 0; number < 18; number++) {
        surface(3 + number);
        glDrawElements(GL_POINTS, 1, GL_UNSIGNED_SHORT, (void *)((number + frame) % 18 * sizeof(unsigned short)));
    }
    glDisable(GL_VERTEX_PROGRAM_POINT_SIZE), glDisable(GL_POINT_SPRITE);
    use(shades);
    glPointSize(9);
    surface(21), place(flat(), flat());
    glDrawElements(GL_POINTS, 6, GL_UNSIGNED_SHORT, (void *)(18 * sizeof(unsigned short)));
}

// The pipeline without programs: display lists, vertices one by one, three lights, fog, and a clip plane.
void fixed(int frame) {
    static GLuint ball;
    if (!ball) {
        ball = glGenLists(1);
        glNewList(ball, GL_COMPILE);
        for (int ring = 0; ring < 12; ring++) {
            glBegin(GL_TRIANGLE_STRIP);
            for (int segment = 0; segment <= 20; segment++)
                for (int next = 0; next < 2; next++) {
                    float polar = (ring + next) * (float)M_PI / 12, around = segment * 2 * (float)M_PI / 20;
                    float at[3] = {sinf(polar) * cosf(around), cosf(polar), sinf(polar) * sinf(around)};
                    glNormal3fv(at), glVertex3fv(at);
                }
            glEnd();
        }
        glEndList();
    }
    clear(0.45f, 0.5f, 0.55f);
    glUseProgram(0);
    glEnable(GL_DEPTH_TEST);
    glMatrixMode(GL_PROJECTION), glLoadMatrixf(perspective(1, 20).m);
    glMatrixMode(GL_MODELVIEW), glLoadIdentity();
    if (!showing_surfaces) {
        static const float lights[3][3][4] = {
            {{0.4f, 0.7f, 0.6f, 0}, {0.6f, 0.55f, 0.5f, 1}, {0, 0, 0, 1}},
            {{-3, 1, 1, 1}, {0.1f, 0.3f, 0.5f, 1}, {0.3f, 0.3f, 0.3f, 1}},
            {{2, -3, -2, 1}, {0.4f, 0.15f, 0.1f, 1}, {0, 0, 0, 1}},
        };
        static const float fog[] = {0.45f, 0.5f, 0.55f, 1}, shine[] = {0.4f, 0.4f, 0.4f, 1};
        for (int number = 0; number < 3; number++) {
            glLightfv(GL_LIGHT0 + number, GL_POSITION, lights[number][0]);
            glLightfv(GL_LIGHT0 + number, GL_DIFFUSE, lights[number][1]);
            glLightfv(GL_LIGHT0 + number, GL_SPECULAR, lights[number][2]);
            glEnable(GL_LIGHT0 + number);
        }
        glLightf(GL_LIGHT1, GL_LINEAR_ATTENUATION, 0.1f);
        glMaterialfv(GL_FRONT_AND_BACK, GL_SPECULAR, shine), glMaterialf(GL_FRONT_AND_BACK, GL_SHININESS, 8);
        glEnable(GL_LIGHTING), glEnable(GL_COLOR_MATERIAL), glEnable(GL_NORMALIZE);
        glFogi(GL_FOG_MODE, GL_LINEAR), glFogf(GL_FOG_START, 3), glFogf(GL_FOG_END, 10), glFogfv(GL_FOG_COLOR, fog);
        glEnable(GL_FOG);
    }
    // The part above the plane is not drawn.
    static const double plane[] = {0.25, -1, 0.1, 1.1};
    glClipPlane(GL_CLIP_PLANE0, plane);
    glEnable(GL_CLIP_PLANE0);
    for (int number = 0; number < 3; number++) {
        glColor3f(0.9f - 0.3f * number, 0.4f + 0.2f * number, 0.3f + 0.3f * number), fixed_surface(1 + number);
        glPushMatrix();
        glTranslatef(-1 + 1.3f * number, 0.2f * number, -4 - 1.6f * number), glRotatef(20 * number + frame, 0.2f, 1, 0.1f);
        glCallList(ball);
        glPopMatrix();
    }
    glDisable(GL_CLIP_PLANE0);
    glBegin(GL_QUADS);
    glColor3f(0.5f, 0.6f, 0.35f), fixed_surface(4);
    glNormal3f(0, 1, 0);
    glVertex3f(-6, -1.6f, -1.5f), glVertex3f(6, -1.6f, -1.5f), glVertex3f(6, -1.6f, -14), glVertex3f(-6, -1.6f, -14);
    glEnd();
    glDisable(GL_LIGHTING), glDisable(GL_FOG);
}

// A cube map on a ball, and in front of it a sheet through a 3D texture.
void cube_map(int frame) {
    static const char *const mirror_source =
        "#version 120\nuniform samplerCube image; varying vec3 n, p;\n"
        "void main() { gl_FragColor = textureCube(image, reflect(normalize(p), normalize(n))); }\n";
    static const char *const inside_source =
        "#version 120\nuniform sampler3D image; uniform float deep; varying vec2 t;\n"
        "void main() { gl_FragColor = texture3D(image, vec3(0.1 + 0.8 * t, deep + 0.2 * t.x * t.y)); }\n";
    static GLuint mirrors, shades, images[2];
    static Shape ball, sheet;
    if (!mirrors) {
        enum { WIDE = 32, DEEP = 16 };
        unsigned char texels[DEEP * DEEP * DEEP * 4];
        glGenTextures(2, images);
        glBindTexture(GL_TEXTURE_CUBE_MAP, images[0]);
        for (int face = 0; face < 6; face++) {
            // The texel in a direction has the direction as its colour, so colours are continuous across edges.
            for (int at = 0; at < WIDE * WIDE; at++) {
                float s = (at % WIDE + 0.5f) * 2 / WIDE - 1, t = (at / WIDE + 0.5f) * 2 / WIDE - 1;
                float all[6][3] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t}, {s, -1, -t}, {s, -t, 1}, {-s, -t, -1}};
                float length = sqrtf(1 + s * s + t * t);
                for (int c = 0; c < 3; c++) texels[4 * at + c] = (unsigned char)(127.5f + 120 * all[face][c] / length);
                texels[4 * at + 3] = 255;
            }
            GLenum name = GL_TEXTURE_CUBE_MAP_POSITIVE_X + face;
            glTexImage2D(name, 0, GL_RGBA8, WIDE, WIDE, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
        }
        glTexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
        glTexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
        glTexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
        glBindTexture(GL_TEXTURE_3D, images[1]);
        for (int at = 0; at < DEEP * DEEP * DEEP; at++) {
            int x = at % DEEP, y = at / DEEP % DEEP, z = at / DEEP / DEEP;
            unsigned char texel[4] = {16 * x, 255 - 12 * y - 3 * z, 120 + (x + y + z) % 8 * 4, 255};
            memcpy(texels + 4 * at, texel, 4);
        }
        glTexImage3D(GL_TEXTURE_3D, 0, GL_RGBA8, DEEP, DEEP, DEEP, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
        glTexParameteri(GL_TEXTURE_3D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
        ball = sphere(20, 32), sheet = square(1, 255, 255, 255, 255);
        mirrors = program(mirror_source), shades = program(inside_source);
    }
    clear(0.2f, 0.2f, 0.25f);
    glEnable(GL_DEPTH_TEST), glEnable(GL_CULL_FACE);
    Matrix view = perspective(1, 20);
    use(mirrors);
    glUniform1i(uniform("image"), 0);
    bind(ball), surface(1);
    place(times(moved(-0.4f, 0.3f, -4), scaled(1.4f)), view);
    draw(ball, 0, ball.count);
    use(shades);
    glUniform1i(uniform("image"), 0), glUniform1f(uniform("deep"), 0.3f + 0.001f * (frame % 100));
    bind(sheet), surface(2);
    place(times(moved(0.6f, -0.5f, -3), turned(0.3f, -0.4f)), view);
    draw(sheet, 0, 6);
}

// A loop that pixels leave one after the other, and branches on the number of iterations.
static const char *const divergent_source =
    "#version 120\nuniform vec4 surface; varying vec2 t;\n"
    "void main() { vec2 c = (t - vec2(0.75, 0.5)) * 2.2, z = vec2(0.0); float n = 0.0;\n"
    "  for (int i = 0; i < 9; i++) { if (dot(z, z) > 4.0) break;\n"
    "    z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c; n += 1.0; }\n"
    "  vec3 shown; float odd = mod(n, 2.0);\n"
    "  if (n > 8.5) shown = vec3(0.1, 0.1, 0.3) + 0.1 * vec3(t, t.x);\n"
    "  else if (odd > 0.5) { shown = vec3(0.9, 0.5, 0.1); for (int i = 0; i < 3; i++) shown *= 0.8 + 0.01 * n; }\n"
    "  else shown = vec3(0.1 * t.x, 0.08 * n, 0.9 - 0.08 * n);\n";

void divergent(int frame) {
    static GLuint shades;
    static Shape all;
    if (!shades) {
        char colors[2048], surfaces[2048];
        snprintf(colors, sizeof colors, "%s  gl_FragColor = vec4(shown, 1.0); }\n", divergent_source);
        // Each number of iterations is a separate surface.
        snprintf(surfaces, sizeof surfaces, "%s  gl_FragColor = vec4(n / 15.0, surface.r, 0.0, 1.0) + 0.0 * shown.xyzz; }\n", divergent_source);
        shades = program_with(colors, surfaces), all = square(1, 255, 255, 255, 255);
    }
    clear(0, 0, 0);
    use(shades);
    bind(all), surface(1);
    place(scaled(1 + 0.0001f * frame), flat());
    draw(all, 0, 6);
}

// Functions that decide which pixels, channels and bits are stored: scissor, colour mask, logic operation, alpha test, and a stencil that
// counts front and back faces separately.
void masked(int frame) {
    static GLuint shades;
    static Shape sheets[4], ball;
    if (!shades) {
        shades = program(plain_source), ball = sphere(12, 16);
        for (int number = 0; number < 4; number++)
            sheets[number] = square(1, 200 - 40 * number, 60 + 50 * number, number % 2 ? 210 : 90, 60 * number + 40);
    }
    clear(0.25f, 0.5f, 0.75f);
    use(shades);
    // The near plane cuts a ball. Where the inside is visible, the stencil has counted fewer front faces than back faces.
    glEnable(GL_STENCIL_TEST);
    glStencilFunc(GL_ALWAYS, 0, 255), glColorMask(0, 0, 0, 0);
    glStencilOpSeparate(GL_FRONT, GL_KEEP, GL_KEEP, GL_INCR_WRAP), glStencilOpSeparate(GL_BACK, GL_KEEP, GL_KEEP, GL_DECR_WRAP);
    bind(ball), place(times(moved(-0.15f, 0.1f, -1.45f), times(turned(0.3f, 0.01f * frame), scaled(0.5f))), perspective(1, 20));
    draw(ball, 0, ball.count);
    glColorMask(1, 1, 1, 1);
    glStencilFunc(GL_NOTEQUAL, 0, 255), glStencilOp(GL_KEEP, GL_KEEP, GL_KEEP);
    bind(sheets[0]), surface(1), place(flat(), flat());
    draw(sheets[0], 0, 6);
    glDisable(GL_STENCIL_TEST);
    // The colours are whole bytes, so operations on bits are exact.
    glEnable(GL_SCISSOR_TEST), glEnable(GL_COLOR_LOGIC_OP);
    static const GLenum operations[] = {GL_XOR, GL_AND_REVERSE, GL_EQUIV, GL_OR_INVERTED};
    for (int number = 0; number < 4; number++) {
        glScissor(size * (1 + number) / 8, size * (5 - number) / 9, size / 3, size / 3);
        // If surfaces are shown, the operation must not remove an edge.
        glLogicOp(showing_surfaces ? GL_XOR : operations[number]);
        bind(sheets[number]), surface(0x248 >> number);
        place(flat(), flat());
        draw(sheets[number], 0, 6);
    }
    glDisable(GL_COLOR_LOGIC_OP), glDisable(GL_SCISSOR_TEST);
    // Only red and blue are stored.
    glColorMask(1, 0, 1, 1);
    bind(sheets[3]), surface(0x505), place(times(moved(0.7f, -0.6f, 0), scaled(0.25f)), flat());
    draw(sheets[3], 0, 6);
    glColorMask(1, 1, 1, 1);
    // The two of four sheets with more alpha pass the test. If surfaces are shown, alpha is always 1, so only these two sheets are drawn.
    glEnable(GL_ALPHA_TEST), glAlphaFunc(GL_GEQUAL, 0.5f);
    for (int number = showing_surfaces ? 2 : 0; number < 4; number++) {
        bind(sheets[number]), surface(0x333 + number);
        place(times(moved(-0.75f + 0.5f * number, 0.8f, 0), scaled(0.15f)), flat());
        draw(sheets[number], 0, 6);
    }
    glDisable(GL_ALPHA_TEST);
}

// Two targets at once. A second pass combines them into the picture.
void targets(int frame) {
    static const char *const both_source =
        "#version 120\nvarying vec3 n; varying vec4 c;\n"
        "void main() { gl_FragData[0] = c; gl_FragData[1] = vec4(0.5 + 0.5 * normalize(n), 1.0); }\n";
    static const char *const both_surfaces =
        "#version 120\nuniform vec4 surface; void main() { gl_FragData[0] = surface; gl_FragData[1] = surface; }\n";
    static const char *const second_source =
        "#version 120\nuniform sampler2D image, normals; varying vec2 t;\n"
        "void main() { vec4 c = texture2D(image, t); vec3 n = texture2D(normals, t).xyz * 2.0 - 1.0;\n"
        "  gl_FragColor = vec4(c.rgb * (0.3 + 0.7 * max(dot(n, vec3(0.4, 0.7, 0.6)), 0.0)), 1.0); }\n";
    static const char *const second_surfaces =
        "#version 120\nuniform sampler2D image, normals; varying vec2 t;\n"
        "void main() { gl_FragColor = vec4(texture2D(image, t).rg, texture2D(normals, t).r, 1.0); }\n";
    static GLuint images[2], inner, firsts, seconds;
    static Shape ball, box, all;
    static const GLenum buffers[] = {GL_COLOR_ATTACHMENT0, GL_COLOR_ATTACHMENT1};
    if (!firsts) {
        glGenTextures(2, images);
        for (int number = 0; number < 2; number++) {
            glBindTexture(GL_TEXTURE_2D, images[number]);
            glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, size, size, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
            glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
            glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
        }
        inner = framebuffer(size, images[0]);
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT1, GL_TEXTURE_2D, images[1], 0);
        glDrawBuffers(2, buffers);
        firsts = program_with(both_source, both_surfaces), seconds = program_with(second_source, second_surfaces);
        ball = sphere(16, 24), box = cube(), all = square(1, 255, 255, 255, 255);
    }
    glBindFramebuffer(GL_FRAMEBUFFER, inner);
    clear(0.3f, 0.4f, 0.5f);
    glEnable(GL_DEPTH_TEST), glEnable(GL_CULL_FACE);
    use(firsts);
    Matrix view = perspective(1, 20);
    bind(ball), surface(1);
    place(times(moved(0.7f, 0.4f, -4.5f), turned(0.2f, 0.02f * frame)), view);
    draw(ball, 0, ball.count);
    bind(box);
    place(times(moved(-0.7f, -0.3f, -5), turned(0.4f, 0.6f + 0.02f * frame)), view);
    for (int side = 0; side < 6; side++) surface(2 + side), draw(box, side * 6, 6);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glDisable(GL_DEPTH_TEST), glDisable(GL_CULL_FACE);
    use(seconds);
    for (int number = 0; number < 2; number++) glActiveTexture(GL_TEXTURE0 + number), glBindTexture(GL_TEXTURE_2D, images[number]);
    glActiveTexture(GL_TEXTURE0);
    glUniform1i(uniform("image"), 0), glUniform1i(uniform("normals"), 1);
    bind(all), place(flat(), flat());
    draw(all, 0, 6);
}
