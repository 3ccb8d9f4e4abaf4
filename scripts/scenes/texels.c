// Scenes of textures: levels of detail, borders and sRGB.
#include "scenes.h"

// Each level has one colour, and the colours differ by at least `contrast`. So the colour of a pixel shows the number of its level.
static void level_color(unsigned char *texel, int level, int contrast) {
    texel[0] = 250 - contrast * level, texel[1] = 20 + contrast * (level * 3 % 7), texel[2] = 20 + contrast * (level * 5 % 7), texel[3] = 255;
}

// Creates all levels of a texture with these sides; for a cube map, six faces.
static GLuint leveled(GLenum kind, int wide, int high, int deep, int contrast) {
    GLuint made;
    glGenTextures(1, &made);
    glBindTexture(kind, made);
    unsigned char *texels = malloc((size_t)wide * high * deep * 4);
    for (int level = 0;; level++) {
        int w = wide >> level ? wide >> level : 1, h = high >> level ? high >> level : 1, d = deep >> level ? deep >> level : 1;
        for (int at = 0; at < w * h * d; at++) level_color(texels + 4 * at, level, contrast);
        if (kind == GL_TEXTURE_3D)
            glTexImage3D(kind, level, GL_RGBA8, w, h, d, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
        else if (kind == GL_TEXTURE_2D)
            glTexImage2D(kind, level, GL_RGBA8, w, h, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
        else
            for (int face = 0; face < 6; face++) {
                for (int at = 0; at < w * h; at++) level_color(texels + 4 * at, level, contrast), texels[4 * at + 2] = 20 + 40 * face;
                glTexImage2D(GL_TEXTURE_CUBE_MAP_POSITIVE_X + face, level, GL_RGBA8, w, h, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
            }
        if (w == 1 && h == 1 && d == 1) break;
    }
    free(texels);
    glTexParameteri(kind, GL_TEXTURE_MIN_FILTER, GL_LINEAR_MIPMAP_LINEAR);
    return made;
}

// A tile that shows a part of a texture, with `texels` texels of level 0 per pixel.
static void tile(int number, int at, Shape sheet, float texels) {
    glUniform1f(uniform("repeats"), 26 * texels / 64), surface(number);
    place(box_at(3 + 31 * (at % 4), 98 - 31 * (at / 4), 26, 26), flat());
    draw(sheet, 0, 6);
}

// Levels of detail: biases of samplers and of programs, bounds, first and last levels, explicit levels and derivatives, and the level of
// pixels that cover several faces of a cube map. The comparison fails if a texture
// of one level reads others (once on the GT215), if a level is 1/32 too large (once on the R500 chips), if neighbours on another face of a cube
// change a level (once on the RV770), or if explicit derivatives are ignored.
void levels(int frame) {
    static const char *const sources[] = {
        "#version 120\nuniform sampler2D image; uniform float repeats; varying vec2 t;\n"
        "void main() { gl_FragColor = texture2D(image, t * repeats); }\n",
        "#version 120\nuniform sampler2D image; uniform float repeats, value; varying vec2 t;\n"
        "void main() { gl_FragColor = texture2D(image, t * repeats, value); }\n",
        "#version 120\n#extension GL_ARB_shader_texture_lod : require\nuniform sampler2D image; uniform float repeats, value; varying vec2 t;\n"
        "void main() { gl_FragColor = texture2DLod(image, t * repeats, value); }\n",
        "#version 120\n#extension GL_ARB_shader_texture_lod : require\nuniform sampler2D image; uniform float repeats, value; varying vec2 t;\n"
        "void main() { gl_FragColor = texture2DGradARB(image, t * repeats, vec2(value, 0.0), vec2(0.0, value)); }\n",
        "#version 120\n#extension GL_ARB_shader_texture_lod : require\nuniform sampler3D image; uniform float repeats, value; varying vec2 t;\n"
        "void main() { gl_FragColor = texture3DGradARB(image, vec3(t * repeats, 0.4), vec3(value, 0.0, 0.0), vec3(0.0, 0.0, value)); }\n",
    };
    // Directions to all faces except for one. A pixel covers up to 1.2 texels of level 0.
    static const char *const around_source =
        "#version 120\nuniform samplerCube image; uniform float ahead; varying vec2 t;\n"
        "void main() { gl_FragColor = textureCube(image, vec3(5.0 * t.x - 2.51, 4.6 * t.y - 2.27, ahead)); }\n";
    enum { PLAIN, BIASED, EXPLICIT, DERIVED, DEEP };
    static GLuint programs[5], around, image, deep, faces;
    static Shape sheet;
    if (!image) {
        for (int number = 0; number < 5; number++) programs[number] = program(sources[number]);
        around = program(around_source), sheet = square(1, 255, 255, 255, 255);
        image = leveled(GL_TEXTURE_2D, 64, 64, 1, 36), deep = leveled(GL_TEXTURE_3D, 64, 64, 16, 36);
        faces = leveled(GL_TEXTURE_CUBE_MAP, 8, 8, 1, 36);
        // Level 1 is the lowest level that is allowed, and the highest that a pixel needs. OpenGL permits renderers to approximate levels in between.
        glTexParameterf(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_MIN_LOD, 1);
        glTexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
        glTexParameteri(GL_TEXTURE_CUBE_MAP, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
    }
    clear(0.1f, 0.1f, 0.1f);
    glBindTexture(GL_TEXTURE_2D, image);
    bind(sheet);
    use(programs[PLAIN]);
    glUniform1i(uniform("image"), 0);
    // Level 1; level 1.5 by the sampler's bias; bounds of the level, which are whole numbers because r300 rounds them; first and last levels.
    static const struct { GLenum name; float value, usual, texels; } parameters[] = {
        {GL_TEXTURE_LOD_BIAS, 0, 0, 2},       {GL_TEXTURE_LOD_BIAS, 0.5f, 0, 2},   {GL_TEXTURE_MIN_LOD, 3, -1000, 2},
        {GL_TEXTURE_MAX_LOD, 1, 1000, 4},  {GL_TEXTURE_BASE_LEVEL, 2, 0, 1},    {GL_TEXTURE_MAX_LEVEL, 1, 1000, 8},
        {GL_TEXTURE_MAX_LEVEL, 0, 1000, 4},
    };
    for (int number = 0; number < 7; number++) {
        glTexParameterf(GL_TEXTURE_2D, parameters[number].name, parameters[number].value);
        tile(1 + number, number, sheet, parameters[number].texels);
        glTexParameterf(GL_TEXTURE_2D, parameters[number].name, parameters[number].usual);
    }
    static const struct { int program; float value; } ways[] = {{BIASED, 1.25f}, {EXPLICIT, 3.75f}, {DERIVED, 4 / 64.f}, {DEEP, 8 / 64.f}};
    for (int number = 0; number < 4; number++) {
        use(programs[ways[number].program]);
        if (ways[number].program == DEEP) glBindTexture(GL_TEXTURE_3D, deep);
        glUniform1i(uniform("image"), 0), glUniform1f(uniform("value"), ways[number].value);
        tile(8 + number, 7 + number, sheet, 1);
    }
    use(around);
    glUniform1i(uniform("image"), 0);
    glBindTexture(GL_TEXTURE_CUBE_MAP, faces);
    for (int number = 0; number < 2; number++) {
        glUniform1f(uniform("ahead"), number ? -0.9f : 0.8f);
        surface(12 + number), place(box_at(34 + 47 * number, 4 + frame % 2, 44, 28), flat());
        draw(sheet, 0, 6);
    }
}

// A texture in a given format, without further levels, with a border of one colour.
static GLuint bordered(GLenum kind, GLenum format, int wide, int high, int deep, GLenum wrap) {
    GLuint made;
    glGenTextures(1, &made);
    glBindTexture(kind, made);
    unsigned char *texels = malloc((size_t)wide * high * deep * 4);
    // Blocks of four by four texels have one colour, which compression keeps.
    for (int at = 0; at < wide * high * deep; at++) {
        int x = at % wide / 4, y = at / wide % high / 4, z = at / wide / high;
        unsigned char texel[4] = {(x + y) % 2 ? 255 : 0, y % 2 ? 255 : 0, z % 2 || x > 1 ? 255 : 0, (x + y) % 2 ? 255 : 102};
        memcpy(texels + 4 * at, texel, 4);
    }
    if (kind == GL_TEXTURE_3D)
        glTexImage3D(kind, 0, format, wide, high, deep, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    else
        glTexImage2D(kind, 0, format, wide, high, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    free(texels);
    static const float border[] = {0.2f, 0.6f, 0.8f, 0.4f};
    static const GLenum directions[] = {GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T, GL_TEXTURE_WRAP_R};
    for (int number = 0; number < 3; number++) glTexParameteri(kind, directions[number], wrap);
    glTexParameterfv(kind, GL_TEXTURE_BORDER_COLOR, border);
    glTexParameteri(kind, GL_TEXTURE_MIN_FILTER, GL_NEAREST), glTexParameteri(kind, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    return made;
}

// Borders in several formats and orders of channels, wrap modes, rectangles, 3D textures, and sides that are not powers of two. The comparison
// fails if a border does not have the channels of its format, if a swizzle does not apply to it, or if the border of a compressed format with one or
// two channels is wrong (once on the R500 and R600 chips).
void borders(int frame) {
    static const char *const sources[] = {
        "#version 120\nuniform sampler2D image; uniform vec2 at; varying vec2 t;\n"
        "void main() { vec4 c = texture2D(image, t * 2.0 - 0.5 + at); gl_FragColor = vec4(mix(vec3(0.5, 0.4, 0.1), c.rgb, c.a), 1.0); }\n",
        "#version 120\nuniform sampler3D image; uniform vec2 at; varying vec2 t;\n"
        "void main() { vec4 c = texture3D(image, vec3(t * 2.0 - 0.5 + at, 1.9 * t.x - 0.42)); gl_FragColor = vec4(mix(vec3(0.5, 0.4, 0.1), c.rgb, c.a), 1.0); }\n",
        "#version 120\n#extension GL_ARB_texture_rectangle : require\nuniform sampler2DRect image; uniform vec2 at; varying vec2 t;\n"
        "void main() { vec4 c = texture2DRect(image, (t * 2.0 - 0.5 + at) * vec2(12.0, 8.0));\n"
        "  gl_FragColor = vec4(mix(vec3(0.5, 0.4, 0.1), c.rgb, c.a), 1.0); }\n",
    };
    enum { RGB_SWAPPED = 1, ALPHA_IN_RED };
    static const struct { GLenum kind, format; int wide, high, deep; GLenum wrap; int order; } textures[] = {
        {GL_TEXTURE_2D, GL_RGBA8, 12, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_RGB8, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_ALPHA8, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_LUMINANCE8, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_LUMINANCE8_ALPHA8, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_INTENSITY8, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_RG8, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_RGBA8, 16, 8, 1, GL_CLAMP_TO_BORDER, RGB_SWAPPED},
        {GL_TEXTURE_2D, GL_RG8, 16, 8, 1, GL_CLAMP_TO_BORDER, ALPHA_IN_RED},
        {GL_TEXTURE_2D, GL_COMPRESSED_RED_RGTC1, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_COMPRESSED_RG_RGTC2, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_COMPRESSED_RGBA_S3TC_DXT5_EXT, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_RGBA4, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_RGBA16F_ARB, 16, 8, 1, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_2D, GL_RGBA8, 16, 8, 1, GL_MIRRORED_REPEAT, 0},
        {GL_TEXTURE_2D, GL_RGBA8, 12, 20, 1, GL_REPEAT, 0},
        {GL_TEXTURE_2D, GL_RGBA8, 12, 8, 1, GL_MIRROR_CLAMP_TO_EDGE, 0},
        {GL_TEXTURE_3D, GL_RGBA8, 12, 8, 6, GL_CLAMP_TO_BORDER, 0},
        {GL_TEXTURE_3D, GL_RGBA8, 12, 12, 5, GL_REPEAT, 0},
        {GL_TEXTURE_RECTANGLE_ARB, GL_RGBA8, 12, 8, 1, GL_CLAMP_TO_BORDER, 0},
    };
    enum { COUNT = sizeof textures / sizeof *textures };
    static GLuint programs[3], images[COUNT];
    static Shape sheet;
    if (!sheet.count) {
        for (int number = 0; number < 3; number++) programs[number] = program(sources[number]);
        // r300 scales coordinates twice when it copies a 3D texture whose sides are not powers of two.
        // A real R500 fails piglit's `texwrap` for borders of half floats (Mesa's lists for RV530).
        int halves = part("borders of textures of halves", !driver("ATI R"));
        int whole = !part("sides of 3D textures that are no powers of two", !driver("ATI R"));
        for (int number = 0; number < COUNT; number++) {
            GLenum kind = textures[number].kind;
            int sides[3] = {textures[number].wide, textures[number].high, textures[number].deep};
            if (whole && kind == GL_TEXTURE_3D) sides[0] = 16, sides[1] = 16, sides[2] = 8;
            GLenum format = textures[number].format == GL_RGBA16F_ARB && !halves ? GL_RGBA8 : textures[number].format;
            images[number] = bordered(kind, format, sides[0], sides[1], sides[2], textures[number].wrap);
            static const GLint orders[][4] = {
                {GL_RED, GL_GREEN, GL_BLUE, GL_ALPHA}, {GL_BLUE, GL_ONE, GL_RED, GL_GREEN}, {GL_GREEN, GL_RED, GL_ZERO, GL_RED},
            };
            glTexParameteriv(kind, GL_TEXTURE_SWIZZLE_RGBA, orders[textures[number].order]);
        }
        sheet = square(1, 255, 255, 255, 255);
    }
    clear(0.1f, 0.1f, 0.1f);
    bind(sheet);
    for (int number = 0; number < COUNT; number++) {
        GLenum kind = textures[number].kind;
        use(programs[kind == GL_TEXTURE_2D ? 0 : kind == GL_TEXTURE_3D ? 1 : 2]);
        // The centres of texels are between the centres of pixels.
        glUniform1i(uniform("image"), 0), glUniform2f(uniform("at"), 0.003f + 0.0001f * (frame % 10), 0.007f);
        glBindTexture(kind, images[number]), surface(1 + number);
        place(box_at(2 + 25 * (number % 5), 97 - 31 * (number / 5), 23, 28), flat());
        draw(sheet, 0, 6);
    }
}

// A texture of a ramp in red and green, with a step of alpha.
static GLuint ramp(GLenum inner) {
    GLuint made;
    unsigned char texels[16 * 16][4];
    for (int at = 0; at < 16 * 16; at++) {
        unsigned char texel[4] = {at % 16 * 17, at / 16 * 17, 200 - at % 16 * 8, 40 + at / 16 * 14};
        memcpy(texels[at], texel, 4);
    }
    glGenTextures(1, &made);
    glBindTexture(GL_TEXTURE_2D, made);
    glTexImage2D(GL_TEXTURE_2D, 0, inner, 16, 16, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST), glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    return made;
}

// sRGB textures, decoded and not decoded, and sRGB targets that are cleared, drawn into and blended. The comparison fails if alpha is decoded (once
// on the GT215 and R500 chips, for luminance and alpha), or if blending or a target ignores the encoding.
void srgb(int frame) {
    // Alpha is shown as blue.
    static const char *const shown_source =
        "#version 120\nuniform sampler2D image; varying vec2 t; void main() { vec4 c = texture2D(image, t + 0.003); gl_FragColor = vec4(c.rg, c.a, 1.0); }\n";
    static const GLenum formats[] = {GL_SRGB8_ALPHA8, GL_SLUMINANCE8_ALPHA8, GL_SLUMINANCE8, GL_COMPRESSED_SRGB_ALPHA_S3TC_DXT5_EXT, GL_RGBA8};
    static GLuint shows, images[5], inner, encoded;
    static Shape sheet;
    if (!shows) {
        shows = program(shown_source), sheet = square(1, 255, 255, 255, 255);
        for (int number = 0; number < 5; number++) images[number] = ramp(formats[number]);
        glGenTextures(1, &encoded);
        glBindTexture(GL_TEXTURE_2D, encoded);
        glTexImage2D(GL_TEXTURE_2D, 0, GL_SRGB8_ALPHA8, size, size, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST), glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
        if (!showing_surfaces && extension("GL_ARB_framebuffer_sRGB")) inner = framebuffer(size, encoded);
    }
    glBindFramebuffer(GL_FRAMEBUFFER, target);
    clear(0.3f, 0.3f, 0.3f);
    use(shows);
    glUniform1i(uniform("image"), 0);
    bind(sheet);
    for (int number = 0; number < 6; number++) {
        glBindTexture(GL_TEXTURE_2D, images[number % 5]);
        // The last texture is the first one without decoding.
        if (number == 5) glBindTexture(GL_TEXTURE_2D, images[0]), glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_SRGB_DECODE_EXT, GL_SKIP_DECODE_EXT);
        surface(1 + number), place(box_at(2 + 21 * number, 92, 19, 34), flat());
        draw(sheet, 0, 6);
        if (number == 5) glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_SRGB_DECODE_EXT, GL_DECODE_EXT);
    }
    if (!part("targets in sRGB", extension("GL_ARB_framebuffer_sRGB"))) return;
    // Sheets in an sRGB target. Its bytes are copied, so the picture shows the encoded values.
    if (inner) glBindFramebuffer(GL_FRAMEBUFFER, inner);
    glEnable(GL_FRAMEBUFFER_SRGB);
    glScissor(0, 0, size, size * 88 / 128), glEnable(GL_SCISSOR_TEST);
    clear(0.1f, 0.3f, 0.6f);
    glDisable(GL_SCISSOR_TEST);
    fill(7, 0x80402060, box_at(4, 48, 36, 34));
    glEnable(GL_BLEND);
    glBlendFunc(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA);
    fill(8, 0xf0a03080, box_at(46, 48, 36, 34));
    if (!showing_surfaces) glBlendFunc(GL_ONE, GL_ONE);
    fill(9, 0x20104040, box_at(88, 48, 36, 34));
    // Alpha is blended without encoding.
    glBlendFunc(showing_surfaces ? GL_ONE : GL_DST_ALPHA, GL_ZERO);
    fill(7, 0xc0e0f0ff, box_at(10, 54, 24, 22));
    glDisable(GL_BLEND);
    use(shows);
    glUniform1i(uniform("image"), 0);
    bind(sheet), glBindTexture(GL_TEXTURE_2D, images[4]);
    surface(10), place(box_at(4, 6 + frame % 2, 56, 36), flat());
    draw(sheet, 0, 6);
    // Without GL_FRAMEBUFFER_SRGB, the same target stores values without encoding.
    glDisable(GL_FRAMEBUFFER_SRGB);
    surface(11), place(box_at(68, 6, 56, 36), flat());
    draw(sheet, 0, 6);
    if (!inner) return;
    glBindFramebuffer(GL_READ_FRAMEBUFFER, inner), glBindFramebuffer(GL_DRAW_FRAMEBUFFER, target);
    int top = size * 88 / 128;
    glBlitFramebuffer(0, 0, size, top, 0, 0, size, top, GL_COLOR_BUFFER_BIT, GL_NEAREST);
    glBindFramebuffer(GL_FRAMEBUFFER, target);
}
