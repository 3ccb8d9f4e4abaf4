// Scenes of primitives: clipping, polygon modes, stipples, base vertices, layers and viewports.
#include "scenes.h"

// Viewports smaller than the target, triangles far larger than a viewport, and clip planes. The comparison fails if x and y are not clipped
// (once on the R500 chips), if the guard band is wrong, or if a user clip plane is ignored.
void clipped(int frame) {
    static GLuint plain;
    static Shape sheet, ball, far;
    if (!plain) {
        plain = program(plain_source);
        sheet = square(1, 240, 160, 40, 255), ball = sphere(24, 32);
        // One triangle is many times as large as the viewport. The other one extends past the eye.
        static const float corners[6][3] = {{-9, -6, 0}, {12, -7, 0}, {1, 15, 0}, {-400, -1, 380}, {500, -1.2f, 350}, {10, -0.9f, -900}};
        Vertex vertices[6];
        memset(vertices, 0, sizeof vertices);
        static const unsigned short order[] = {0, 1, 2, 3, 4, 5};
        for (int corner = 0; corner < 6; corner++) {
            memcpy(vertices[corner].position, corners[corner], sizeof corners[corner]);
            unsigned char color[4] = {corner % 3 ? 40 : 250, corner % 3 == 1 ? 250 : 60, corner % 3 == 2 ? 240 : 30, 255};
            memcpy(vertices[corner].color, color, sizeof color);
        }
        far = shape(vertices, 6, order, 6);
    }
    clear(0.2f, 0.25f, 0.3f);
    int unit = size / 128;
    use(plain);
    bind(sheet), surface(1);
    // This sheet is twice as wide as its viewport, and must end at the edge of the viewport.
    glViewport(6 * unit, 70 * unit, width = 40 * unit, 52 * unit);
    place((Matrix){{2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0.3f, -0.2f, 0, 1}}, flat());
    draw(sheet, 0, 6);
    bind(far), surface(2);
    glViewport(52 * unit, 70 * unit, width = 70 * unit, 52 * unit);
    place(flat(), flat());
    glDrawElements(GL_TRIANGLES, 3, GL_UNSIGNED_SHORT, 0);
    // The near plane cuts this triangle.
    surface(3);
    glViewport(6 * unit, 6 * unit, width = 58 * unit, 58 * unit);
    place(moved(0, 0.01f * (frame % 20), 0), perspective(0.5f, 2000));
    glDrawElements(GL_TRIANGLES, 3, GL_UNSIGNED_SHORT, (void *)(3 * sizeof(unsigned short)));
    // Three planes cut a ball, in the pipeline without programs. Its inside is also visible. Its colours are its directions.
    glUseProgram(0);
    glViewport(68 * unit, 6 * unit, width = 56 * unit, 58 * unit);
    static const double planes[3][4] = {{1, 0.2, 0, 0.6}, {0.1, -1, 0.1, 0.9}, {-0.3, 0.4, -1, -1.9}};
    for (int plane = 0; plane < 3; plane++) glClipPlane(GL_CLIP_PLANE0 + plane, planes[plane]), glEnable(GL_CLIP_PLANE0 + plane);
    glEnable(GL_DEPTH_TEST), glEnable(GL_CULL_FACE);
    fixed_place(times(moved(0, 0, -2.6f), turned(0.2f, 0.4f + 0.02f * frame)), perspective(1, 20));
    fixed_bind(ball);
    if (!showing_surfaces) glEnableClientState(GL_COLOR_ARRAY), glColorPointer(3, GL_FLOAT, sizeof(Vertex), ((Vertex *)NULL)->normal);
    glCullFace(GL_FRONT), fixed_surface(4), draw(ball, 0, ball.count);
    glCullFace(GL_BACK), fixed_surface(5), draw(ball, 0, ball.count);
    fixed_unbind();
    for (int plane = 0; plane < 3; plane++) glDisable(GL_CLIP_PLANE0 + plane);
}

// Filled polygons, and polygons drawn as lines and as points, with edge flags and offsets. Lines and points are wide, so that they have an
// inside. The comparison fails if edges without a flag are drawn (once on the R600 chips), if points of polygons do not have sprite
// coordinates, or if units of an offset have half their value (both once on the GT215).
void modes(int frame) {
    static const char *const sprite_source =
        "#version 120\nvarying vec4 c; void main() { gl_FragColor = vec4(gl_PointCoord, c.b, 1.0); }\n";
    static GLuint plain, sprites;
    static Shape sheet, turned_sheet;
    if (!plain) {
        plain = program(plain_source), sprites = program(sprite_source);
        sheet = square(1, 240, 120, 60, 255), turned_sheet = square(1, 60, 160, 240, 255);
    }
    clear(0.15f, 0.2f, 0.15f);
    glLineWidth(5), glPointSize(11);
    // A polygon of which every second edge is drawn, and a polygon with points at the corners where a drawn edge begins. r300 and nouveau ignore
    // edge flags.
    if (part("edge flags", driver("AMD R") || driver("llvmpipe"))) {
        glUseProgram(0);
        for (int points = 0; points < 2; points++) {
            fixed_place(box_at(4 + 42.3f * points, 84 + 0.2f * points, 36, 40), flat());
            glPolygonMode(GL_FRONT_AND_BACK, points ? GL_POINT : GL_LINE);
            glColor3f(points ? 0.3f : 0.9f, 0.8f, points ? 0.9f : 0.3f), fixed_surface(1 + points);
            static const float corners[6][2] = {{-0.5f, -0.8f}, {0.5f, -0.8f}, {0.9f, 0}, {0.5f, 0.8f}, {-0.5f, 0.8f}, {-0.9f, 0}};
            glBegin(GL_POLYGON);
            for (int corner = 0; corner < 6; corner++)
                glEdgeFlag(points ? corner % 3 != 0 : corner % 2 == 0), glVertex2fv(corners[corner]);
            glEnd();
            glEdgeFlag(GL_TRUE);
        }
    }
    // The front face of a triangle is drawn as lines. The points below are back faces.
    use(plain);
    bind(sheet);
    glPolygonMode(GL_FRONT, GL_LINE), glPolygonMode(GL_BACK, GL_POINT);
    surface(3), place(box_at(90, 106, 30, 16), flat());
    glDrawElements(GL_TRIANGLES, 3, GL_UNSIGNED_SHORT, 0);
    // Points at the corners of polygons are sprites like other points, with coordinates from above or from below. With r300, only point
    // primitives are sprites.
    if (part("sprites of polygons", !driver("ATI R"))) {
        Matrix mirrored = {{-1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};
        use(sprites);
        bind(turned_sheet);
        glEnable(GL_POINT_SPRITE);
        for (int origin = 0; origin < 2; origin++) {
            glPointParameteri(GL_POINT_SPRITE_COORD_ORIGIN, origin ? GL_LOWER_LEFT : GL_UPPER_LEFT);
            surface(4 + origin), place(times(box_at(92.3f + 16 * origin, 84.3f, 8, 8), mirrored), flat());
            glDrawElements(GL_TRIANGLES, 3, GL_UNSIGNED_SHORT, 0);
        }
        glPointParameteri(GL_POINT_SPRITE_COORD_ORIGIN, GL_UPPER_LEFT);
        glDisable(GL_POINT_SPRITE);
    }
    glPolygonMode(GL_FRONT_AND_BACK, GL_FILL);
    // Three pairs of slanted sheets in one plane. In the first pair, the second sheet is moved forward and is visible. In the second pair, it is
    // moved back and hidden. In the third pair, it is drawn as lines and is visible.
    use(plain);
    glEnable(GL_DEPTH_TEST), glDepthFunc(GL_LESS);
    static const GLenum offsets[] = {GL_POLYGON_OFFSET_FILL, GL_POLYGON_OFFSET_FILL, GL_POLYGON_OFFSET_LINE};
    for (int number = 0; number < 3; number++) {
        Matrix slant = {{1, 0, 0.3f, 0, 0, 1, 0.2f + 0.001f * (frame % 20), 0, 0, 0, 1, 0, 0, 0, 0.1f, 1}};
        bind(sheet), surface(6 + 2 * number), place(times(box_at(4 + 42 * number, 42, 36, 36), slant), flat());
        draw(sheet, 0, 6);
        glEnable(offsets[number]), glPolygonOffset(number == 1 ? 2 : -2, number == 1 ? 64 : -64);
        if (number == 2) glPolygonMode(GL_FRONT_AND_BACK, GL_LINE);
        bind(turned_sheet), surface(7 + 2 * number);
        place(times(times(box_at(4 + 42 * number, 42, 36, 36), slant), scaled(0.6f)), flat());
        draw(turned_sheet, 0, 6);
        glPolygonMode(GL_FRONT_AND_BACK, GL_FILL), glDisable(offsets[number]);
    }
    // A sheet is a hundred steps of 24 bits farther away than another. A unit is two steps, so 70 units bring it to the front, but 35 do not.
    glDepthFunc(GL_LEQUAL);
    for (int number = 0; number < 2; number++) {
        float behind = 100.f / (1 << 23);
        bind(sheet), surface(12 + 2 * number), place(times(moved(0, 0, 0.5f), box_at(4 + 62 * number, 4, 56, 32)), flat());
        draw(sheet, 0, 6);
        glEnable(GL_POLYGON_OFFSET_FILL), glPolygonOffset(0, number ? -35 : -70);
        bind(turned_sheet), surface(13 + 2 * number), place(times(moved(0, 0, 0.5f + behind), box_at(12 + 62 * number, 10, 40, 20)), flat());
        draw(turned_sheet, 0, 6);
        glDisable(GL_POLYGON_OFFSET_FILL);
    }
    glDepthFunc(GL_LESS);
    glLineWidth(1), glPointSize(1);
}

// Stipples of lines and polygons, rectangles, quads and polygons, and draws with a base vertex. The comparison fails if a stipple is ignored (once
// that of polygons on the GT215), or if a base vertex is not added to an index.
void stippled(int frame) {
    static GLuint plain;
    static Shape steps, sheet;
    if (!plain) {
        plain = program(plain_source), sheet = square(1, 200, 80, 160, 255);
        // Eight squares in a row. The indices are those of the first and the fourth.
        Vertex vertices[32];
        memset(vertices, 0, sizeof vertices);
        for (int number = 0; number < 32; number++) {
            float at[3] = {(number / 4 * 0.25f - 1) + (number & 1) * 0.2f, number & 2 ? 0.8f : -0.8f, 0};
            memcpy(vertices[number].position, at, sizeof at);
            unsigned char color[4] = {30 + 30 * (number / 4), 250 - 25 * (number / 4), number & 2 ? 200 : 60, 255};
            memcpy(vertices[number].color, color, sizeof color);
        }
        static const unsigned short indices[] = {0, 1, 2, 2, 1, 3, 12, 13, 14, 14, 13, 15};
        steps = shape(vertices, 32, indices, 12);
    }
    clear(0.1f, 0.1f, 0.2f);
    use(plain);
    bind(steps);
    for (int number = 0; number < 8; number++) {
        surface(1 + number), place(box_at(4, 100, 120, 24), flat());
        // Three squares have a base vertex below 0, three have one above 0, and two have a first vertex.
        if (number > 5)
            glDrawArrays(GL_TRIANGLE_STRIP, 4 * number, 4);
        else if (number < 3)
            glDrawElementsBaseVertex(GL_TRIANGLES, 6, GL_UNSIGNED_SHORT, (void *)12, 4 * number - 12);
        else
            glDrawElementsBaseVertex(GL_TRIANGLES, 6, GL_UNSIGNED_SHORT, 0, 4 * number);
    }
    glUseProgram(0);
    fixed_place(box_at(0, 0, 128, 128), flat());
    float unit = 1 / 64.f;
    // Quads, a strip of quads, a polygon and a rectangle, and stippled lines between them. Lines and line strips alternate, because r600 sets a
    // stipple only when the kind of line changes. r300 scales a stipple by its factor minus one.
    int lines = part("stipples of lines", !driver("ATI R"));
    glLineWidth(3);
    for (int number = 0; number < 4; number++) {
        static const unsigned short patterns[] = {0x00ff, 0xf0f0, 0x0fff, 0x3c3c};
        glColor3f(0.9f - 0.2f * number, 0.3f + 0.1f * number, 0.2f + 0.2f * number), fixed_surface(9 + number);
        static const GLenum kinds[] = {GL_QUADS, GL_QUAD_STRIP, GL_POLYGON};
        if (number == 3)
            glRectf(4 * unit - 1, 42 * unit - 1, 28 * unit - 1, 64 * unit - 1);
        else {
            glBegin(kinds[number]);
            for (int corner = 0; corner < 8; corner++) {
                float x = 34 + 32 * number, y = 42 - frame % 2;
                if (number == 0) x += corner % 4 % 3 ? 10 : 0, x += 14 * (corner / 4), y += corner % 4 / 2 * 18 + corner % 4 % 3 * 2;
                if (number == 1) x += 8 * (corner / 2), y += corner % 2 * 18 + corner / 2 % 2 * 3;
                if (number == 2) x += 10 + 12 * cosf(corner * 0.785f), y += 10 + 9 * sinf(corner * 0.785f);
                glVertex2f(x * unit - 1, y * unit - 1);
            }
            glEnd();
        }
        if (!lines) continue;
        glEnable(GL_LINE_STIPPLE), glLineStipple(1 + number % 2, patterns[number]);
        glColor3f(0.9f, 0.9f - 0.2f * number, 0.4f + 0.1f * number), fixed_surface(13 + number);
        for (int line = 0; line < 2; line++) {
            glBegin(number % 2 ? GL_LINE_STRIP : GL_LINES);
            // A line strip with only one line would be drawn as a line.
            float from[2] = {line ? 66.5f + 7 * number : 4.5f, line ? 70.5f : 94.5f - 7 * number}, length = line ? 24 : 56;
            for (int corner = 0; corner < 3; corner++) {
                float along = corner * length / 2;
                if (number % 2 || corner != 1) glVertex2f((from[0] + (line ? 0 : along)) * unit - 1, (from[1] + (line ? along : 0)) * unit - 1);
            }
            glEnd();
        }
        glDisable(GL_LINE_STIPPLE);
    }
    // A stipple of blocks of four by four pixels, which starts at the corner of the window. Neither r300 nor r600 has it.
    if (part("stipples of polygons", !driver("ATI R") && !driver("AMD R"))) {
        unsigned char pattern[32][4];
        for (int row = 0; row < 32; row++) memset(pattern[row], row / 4 % 3 ? 0xf0 : 0x0f, 4);
        glPolygonStipple(pattern[0]), glEnable(GL_POLYGON_STIPPLE);
    }
    use(plain);
    bind(sheet), surface(17), place(box_at(4, 4, 120, 32), flat());
    draw(sheet, 0, 6);
    glDisable(GL_POLYGON_STIPPLE);
    glLineWidth(1);
}

// Draws of the core profile: triangles that a geometry program sends to layers and viewports, clip distances, and a seamless cube map. The
// comparison fails if there is only one viewport (once on the GT215), if all triangles go to the first layer, or if a cube map has seams (once on
// the R600 chips).
void layers(int frame) {
    static const char *const core_vertex =
        "#version 150\nin vec3 position; in vec2 coordinate; in vec4 color; uniform mat4 turned, projected; uniform float grid, cut;\n"
        "out vec4 c; out vec2 t; out float gl_ClipDistance[2];\n"
        "void main() { c = color; t = coordinate; gl_Position = projected * (turned * vec4(position, 1.0));\n"
        "  if (grid > 0.0) gl_Position.xy = floor(gl_Position.xy / gl_Position.w * grid + 0.5) / grid * gl_Position.w;\n"
        "  gl_ClipDistance[0] = cut > 0.0 ? position.x + 0.5 * position.y + 0.4 : 1.0; gl_ClipDistance[1] = cut > 0.0 ? 0.6 - position.y : 1.0; }\n";
    static const char *const pass_vertex =
        "#version 150\nin vec3 position; in vec4 color; out vec4 v;\nvoid main() { v = color; gl_Position = vec4(position, 1.0); }\n";
    static const char *const spread_geometry =
        "#version 150\n%s\nlayout(triangles) in; layout(triangle_strip, max_vertices = 12) out; in vec4 v[3]; out vec4 c; out vec2 t;\n"
        "void main() { for (int to = 0; to < 4; to++) { for (int corner = 0; corner < 3; corner++) {\n"
        "  %s = to; c = mix(v[corner], vec4(0.1, 0.3 * float(to), 0.9 - 0.2 * float(to), 1.0), 0.3 * float(to)); t = c.xy;\n"
        "  gl_Position = vec4(gl_in[corner].gl_Position.xy * (0.9 - 0.15 * float(to)), 0.0, 1.0); EmitVertex(); } EndPrimitive(); } }\n";
    static const char *const sources[] = {
        "#version 150\nin vec4 c; out vec4 shown; void main() { shown = c; }\n",
        "#version 150\nuniform sampler2DArray image; uniform float value; in vec2 t; out vec4 shown;\n"
        "void main() { shown = texture(image, vec3(t, value)); }\n",
        "#version 150\nuniform samplerCube image; in vec2 t; out vec4 shown;\n"
        "void main() { shown = texture(image, vec3(4.0 * t.x - 2.01, 3.6 * t.y - 1.77, 0.8)); }\n",
    };
    static const char *const core_surface = "#version 150\nuniform vec4 surface; out vec4 shown; void main() { shown = surface; }\n";
    enum { WIDE = 64 };
    static GLuint array, image, inner, faces, to_layers, to_viewports, plain, layer, around;
    static Shape sheet;
    if (!array) {
        glGenVertexArrays(1, &array), glBindVertexArray(array);
        glGenTextures(1, &image);
        glBindTexture(GL_TEXTURE_2D_ARRAY, image);
        glTexImage3D(GL_TEXTURE_2D_ARRAY, 0, GL_RGBA8, WIDE, WIDE, 4, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
        glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_MIN_FILTER, GL_NEAREST), glTexParameteri(GL_TEXTURE_2D_ARRAY, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
        glGenFramebuffers(1, &inner);
        glBindFramebuffer(GL_FRAMEBUFFER, inner);
        glFramebufferTexture(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, image, 0);
        glGenTextures(1, &faces);
        glBindTexture(GL_TEXTURE_CUBE_MAP, faces);
        for (int face = 0; face < 6; face++) {
            unsigned char texels[4][4];
            for (int at = 0; at < 4; at++) {
                unsigned char texel[4] = {40 * face, 255 - 30 * face - 20 * at, face % 2 ? 220 : 40 + 30 * at, 255};
                memcpy(texels[at], texel, 4);
            }
            glTexImage2D(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, 0, GL_RGBA8, 2, 2, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
        }
        glTexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
        GLuint *const spread[] = {&to_layers, &to_viewports};
        static const char *const extensions[] = {"", "#extension GL_ARB_viewport_array : require"};
        static const char *const outputs[] = {"gl_Layer", "gl_ViewportIndex"};
        for (int number = 0; number < 2; number++) {
            if (number == 1 && !extension("GL_ARB_viewport_array")) continue;
            char source[2048];
            snprintf(source, sizeof source, spread_geometry, extensions[number], outputs[number]);
            GLuint made = program_of(pass_vertex, sources[0], number ? core_surface : sources[0]);
            glAttachShader(made, shader(GL_GEOMETRY_SHADER, source));
            *spread[number] = linked(made);
        }
        plain = program_of(core_vertex, sources[0], core_surface), layer = program_of(core_vertex, sources[1], core_surface);
        around = program_of(core_vertex, sources[2], core_surface), sheet = square(1, 240, 180, 60, 255);
    }
    // Each layer has a square of another size and colour.
    glBindFramebuffer(GL_FRAMEBUFFER, inner);
    glViewport(0, 0, width = WIDE, WIDE);
    glClearColor(0.3f, 0.3f, 0.3f, 1), glClear(GL_COLOR_BUFFER_BIT);
    use(to_layers);
    bind(sheet), draw(sheet, 0, 6);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    glViewport(0, 0, width = size, size);
    clear(0.1f, 0.15f, 0.1f);
    use(layer);
    glBindTexture(GL_TEXTURE_2D_ARRAY, image), glUniform1i(uniform("image"), 0), glUniform1f(uniform("cut"), 0);
    for (int number = 0; number < 4; number++) {
        // The frame of a layer and its square are separate surfaces.
        float side = 28 * (0.9f - 0.15f * number), x = 2 + 32 * number;
        glUniform1f(uniform("value"), number);
        surface(1 + 2 * number), place(box_at(x, 98, 28, 28), flat()), draw(sheet, 0, 6);
        if (showing_surfaces) surface(2 + 2 * number), place(box_at(x + 14 - side / 2, 112 - side / 2, side, side), flat()), draw(sheet, 0, 6);
    }
    if (part("several viewports", extension("GL_ARB_viewport_array"))) {
        int unit = size / 128;
        use(to_viewports), surface(9);
        for (int number = 0; number < 4; number++) {
            glViewportIndexedf(number, (2 + 32 * number) * unit, 62 * unit, 28 * unit, (32 - 4 * number) * unit);
            glScissorIndexed(number, (2 + 32 * number) * unit, 66 * unit, 20 * unit, 24 * unit);
        }
        glEnable(GL_SCISSOR_TEST);
        draw(sheet, 0, 6);
        glDisable(GL_SCISSOR_TEST);
        glViewport(0, 0, size, size);
    }
    use(plain);
    glEnable(GL_CLIP_DISTANCE0), glEnable(GL_CLIP_DISTANCE1);
    glUniform1f(uniform("cut"), 1), surface(10), place(box_at(4, 4 + frame % 2, 56, 52), flat());
    draw(sheet, 0, 6);
    glDisable(GL_CLIP_DISTANCE0), glDisable(GL_CLIP_DISTANCE1);
    use(around);
    glEnable(GL_TEXTURE_CUBE_MAP_SEAMLESS);
    glBindTexture(GL_TEXTURE_CUBE_MAP, faces), glUniform1i(uniform("image"), 0), glUniform1f(uniform("cut"), 0);
    surface(11), place(box_at(66, 4, 58, 52), flat());
    draw(sheet, 0, 6);
    glDisable(GL_TEXTURE_CUBE_MAP_SEAMLESS);
}
