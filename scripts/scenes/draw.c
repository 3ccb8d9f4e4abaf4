// Shared parts of the scenes: programs, matrices, shapes and targets.
#include "scenes.h"

int size, width, grid, showing_surfaces, core_profile;
GLuint target;

void fail(const char *what) {
    fprintf(stderr, "host: %s\n", what);
    exit(1);
}

int extension(const char *name) {
    if (core_profile) {
        GLint count;
        glGetIntegerv(GL_NUM_EXTENSIONS, &count);
        for (int number = 0; number < count; number++)
            if (!strcmp((const char *)glGetStringi(GL_EXTENSIONS, number), name)) return 1;
        return 0;
    }
    const char *at = (const char *)glGetString(GL_EXTENSIONS);
    size_t length = strlen(name);
    while ((at = strstr(at, name)))
        if (at += length, *at == ' ' || !*at) return 1;
    return 0;
}

int driver(const char *renderer) { return !strncmp((const char *)glGetString(GL_RENDERER), renderer, strlen(renderer)); }

int part(const char *name, int has) {
    static const char *printed[16];
    const char *without = getenv("SCENES_WITHOUT");
    if (has && !(without && strstr(without, name))) return 1;
    for (int number = 0; number < 16; number++) {
        if (printed[number] && !strcmp(printed[number], name)) break;
        if (printed[number]) continue;
        printf("without: %s\n", printed[number] = name);
        break;
    }
    return 0;
}

// Programs.

GLuint shader(GLenum kind, const char *source) {
    GLuint shader = glCreateShader(kind);
    glShaderSource(shader, 1, &source, NULL);
    glCompileShader(shader);
    GLint ok;
    glGetShaderiv(shader, GL_COMPILE_STATUS, &ok);
    if (!ok) {
        char log[4096];
        glGetShaderInfoLog(shader, sizeof log, NULL, log);
        fail(log);
    }
    return shader;
}

const char *const vertex_source =
    "#version 120\n"
    "attribute vec3 position, normal; attribute vec2 coordinate; attribute vec4 color;\n"
    "uniform mat4 turned, projected; uniform float grid; varying vec3 n, p; varying vec2 t; varying vec4 c;\n"
    "void main() { vec4 at = turned * vec4(position, 1.0); n = mat3(turned) * normal; p = at.xyz; t = coordinate; c = color;\n"
    "  gl_Position = projected * at;\n"
    "  if (grid > 0.0) gl_Position.xy = floor(gl_Position.xy / gl_Position.w * grid + 0.5) / grid * gl_Position.w; }\n";

const char *const surface_source =
    "#version 120\nuniform vec4 surface; void main() { gl_FragColor = surface; }\n";

const char *const lit_source =
    "#version 120\nvarying vec3 n, p; varying vec4 c;\n"
    "void main() { vec3 l = normalize(vec3(0.4, 0.7, 0.6)), m = normalize(n), e = normalize(-p);\n"
    "  float shine = pow(max(dot(reflect(-l, m), e), 0.0), 20.0);\n"
    "  gl_FragColor = vec4(c.rgb * (0.15 + 0.75 * max(dot(m, l), 0.0)) + vec3(0.5 * shine), 1.0); }\n";

const char *const plain_source = "#version 120\nvarying vec4 c; void main() { gl_FragColor = c; }\n";

const char *const textured_source =
    "#version 120\nuniform sampler2D image; varying vec2 t; void main() { gl_FragColor = texture2D(image, t); }\n";

GLuint linked(GLuint program) {
    GLint ok;
    glLinkProgram(program);
    glGetProgramiv(program, GL_LINK_STATUS, &ok);
    if (!ok) fail("a program does not link");
    return program;
}

GLuint program_of(const char *vertex, const char *fragment, const char *surfaces) {
    GLuint program = glCreateProgram();
    glAttachShader(program, shader(GL_VERTEX_SHADER, vertex));
    glAttachShader(program, shader(GL_FRAGMENT_SHADER, showing_surfaces ? surfaces : fragment));
    const char *names[] = {"position", "normal", "coordinate", "color"};
    for (int number = 0; number < 4; number++) glBindAttribLocation(program, number, names[number]);
    return linked(program);
}

GLuint program_with(const char *fragment, const char *surfaces) { return program_of(vertex_source, fragment, surfaces); }

GLuint program(const char *fragment) { return program_with(fragment, surface_source); }

static GLuint used;

void use(GLuint program) { glUseProgram(used = program); }

GLint uniform(const char *name) { return glGetUniformLocation(used, name); }

const float *surface_color(int number) {
    static float color[4] = {0, 0, 0, 1};
    for (int c = 0; c < 3; c++) color[c] = (number >> 4 * c & 15) * 17 / 255.f;
    return color;
}

void surface(int number) { glUniform4fv(uniform("surface"), 1, surface_color(number)); }

void fixed_surface(int number) {
    if (showing_surfaces) glColor3fv(surface_color(number));
}

// Matrices, stored by column.

Matrix times(Matrix a, Matrix b) {
    Matrix c;
    for (int column = 0; column < 4; column++)
        for (int row = 0; row < 4; row++) {
            c.m[column * 4 + row] = 0;
            for (int k = 0; k < 4; k++) c.m[column * 4 + row] += a.m[k * 4 + row] * b.m[column * 4 + k];
        }
    return c;
}

Matrix moved(float x, float y, float z) { return (Matrix){{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, x, y, z, 1}}; }

Matrix scaled(float s) { return (Matrix){{s, 0, 0, 0, 0, s, 0, 0, 0, 0, s, 0, 0, 0, 0, 1}}; }

Matrix turned(float x, float y) {
    float a = cosf(x), b = sinf(x), c = cosf(y), d = sinf(y);
    Matrix about_x = {{1, 0, 0, 0, 0, a, b, 0, 0, -b, a, 0, 0, 0, 0, 1}};
    Matrix about_y = {{c, 0, -d, 0, 0, 1, 0, 0, d, 0, c, 0, 0, 0, 0, 1}};
    return times(about_x, about_y);
}

Matrix perspective(float near, float far) {
    return (Matrix){{2, 0, 0, 0, 0, 2, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0}};
}

Matrix flat(void) { return (Matrix){{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}}; }

Matrix box_at(float x, float y, float wide, float high) {
    float unit = 2.f / 128;
    return (Matrix){{wide * unit / 2, 0, 0, 0, 0, high * unit / 2, 0, 0, 0, 0, 1, 0, (x + wide / 2) * unit - 1, (y + high / 2) * unit - 1, 0, 1}};
}

void place(Matrix model, Matrix projection) {
    glUniformMatrix4fv(uniform("turned"), 1, GL_FALSE, model.m);
    glUniformMatrix4fv(uniform("projected"), 1, GL_FALSE, projection.m);
    glUniform1f(uniform("grid"), grid * width / 2.f);
}

// Shapes: vertex buffers, followed by indices.

Shape shape(const Vertex *vertices, int vertex_count, const unsigned short *indices, int count) {
    Shape made = {0, 0, count};
    glGenBuffers(1, &made.vertices);
    glBindBuffer(GL_ARRAY_BUFFER, made.vertices);
    glBufferData(GL_ARRAY_BUFFER, vertex_count * sizeof *vertices, vertices, GL_STATIC_DRAW);
    glGenBuffers(1, &made.indices);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, made.indices);
    glBufferData(GL_ELEMENT_ARRAY_BUFFER, count * sizeof *indices, indices, GL_STATIC_DRAW);
    return made;
}

void bind(Shape shape) {
    glBindBuffer(GL_ARRAY_BUFFER, shape.vertices);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, shape.indices);
    for (int number = POSITION; number <= COLOR; number++) glEnableVertexAttribArray(number);
    const Vertex *none = NULL;
    glVertexAttribPointer(POSITION, 3, GL_FLOAT, GL_FALSE, sizeof *none, none->position);
    glVertexAttribPointer(NORMAL, 3, GL_FLOAT, GL_FALSE, sizeof *none, none->normal);
    glVertexAttribPointer(COORDINATE, 2, GL_FLOAT, GL_FALSE, sizeof *none, none->coordinate);
    glVertexAttribPointer(COLOR, 4, GL_UNSIGNED_BYTE, GL_TRUE, sizeof *none, none->color);
}

void fixed_place(Matrix model, Matrix projection) {
    glMatrixMode(GL_PROJECTION), glLoadMatrixf(projection.m);
    glMatrixMode(GL_MODELVIEW), glLoadMatrixf(model.m);
}

void fixed_bind(Shape shape) {
    for (int number = POSITION; number <= COLOR; number++) glDisableVertexAttribArray(number);
    glBindBuffer(GL_ARRAY_BUFFER, shape.vertices);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, shape.indices);
    const Vertex *none = NULL;
    glEnableClientState(GL_VERTEX_ARRAY), glVertexPointer(3, GL_FLOAT, sizeof *none, none->position);
    glEnableClientState(GL_TEXTURE_COORD_ARRAY), glTexCoordPointer(2, GL_FLOAT, sizeof *none, none->coordinate);
}

void fixed_unbind(void) {
    static const GLenum arrays[] = {GL_VERTEX_ARRAY, GL_TEXTURE_COORD_ARRAY, GL_COLOR_ARRAY, GL_NORMAL_ARRAY};
    for (int number = 0; number < 4; number++) glDisableClientState(arrays[number]);
}

void draw(Shape shape, int first, int count) {
    glDrawElements(GL_TRIANGLES, count, GL_UNSIGNED_SHORT, (void *)(first * sizeof(unsigned short)));
}

Shape sphere(int rings, int segments) {
    Vertex *vertices = calloc((rings + 1) * (segments + 1), sizeof *vertices);
    unsigned short *indices = calloc(rings * segments * 6, sizeof *indices);
    int count = 0, vertex_count = 0;
    for (int ring = 0; ring <= rings; ring++)
        for (int segment = 0; segment <= segments; segment++) {
            float polar = ring * (float)M_PI / rings, around = segment * 2 * (float)M_PI / segments;
            float at[3] = {sinf(polar) * cosf(around), cosf(polar), sinf(polar) * sinf(around)};
            Vertex *vertex = &vertices[vertex_count++];
            memcpy(vertex->position, at, sizeof at);
            memcpy(vertex->normal, at, sizeof at);
            vertex->coordinate[0] = (float)segment / segments, vertex->coordinate[1] = (float)ring / rings;
            unsigned char color[4] = {230, 140, 60, 255};
            memcpy(vertex->color, color, sizeof color);
        }
    for (int ring = 0; ring < rings; ring++)
        for (int segment = 0; segment < segments; segment++) {
            int a = ring * (segments + 1) + segment, b = a + segments + 1;
            int corners[] = {a, a + 1, b, b, a + 1, b + 1};
            for (int corner = 0; corner < 6; corner++) indices[count++] = corners[corner];
        }
    Shape made = shape(vertices, vertex_count, indices, count);
    free(vertices), free(indices);
    return made;
}

Shape cube(void) {
    Vertex vertices[24];
    unsigned short indices[36];
    for (int side = 0; side < 6; side++) {
        int axis = side / 2, sign = side % 2 ? -1 : 1;
        for (int corner = 0; corner < 4; corner++) {
            Vertex *vertex = &vertices[side * 4 + corner];
            float u = corner & 1 ? 1 : -1, v = corner & 2 ? 1 : -1;
            memset(vertex, 0, sizeof *vertex);
            vertex->position[axis] = sign;
            vertex->position[(axis + 1) % 3] = u * sign;
            vertex->position[(axis + 2) % 3] = v;
            vertex->normal[axis] = sign;
            vertex->coordinate[0] = (u + 1) / 2, vertex->coordinate[1] = (v + 1) / 2;
            unsigned char color[4] = {80 + 60 * axis, 200 - 50 * axis, sign > 0 ? 220 : 110, 255};
            memcpy(vertex->color, color, sizeof color);
        }
        int corners[] = {0, 1, 2, 2, 1, 3};
        for (int corner = 0; corner < 6; corner++) indices[side * 6 + corner] = side * 4 + corners[corner];
    }
    return shape(vertices, 24, indices, 36);
}

Shape square(float repeats, unsigned red, unsigned green, unsigned blue, unsigned alpha) {
    Vertex vertices[4];
    for (int corner = 0; corner < 4; corner++) {
        float u = corner & 1, v = corner >> 1;
        Vertex vertex = {{2 * u - 1, 2 * v - 1, 0}, {0, 0, 1}, {u * repeats, v * repeats}, {red, green, blue, alpha}};
        vertices[corner] = vertex;
    }
    unsigned short indices[] = {0, 1, 2, 2, 1, 3};
    return shape(vertices, 4, indices, 6);
}

void fill(int number, unsigned color, Matrix at) {
    static const char *const color_source = "#version 120\nuniform vec4 color; void main() { gl_FragColor = color; }\n";
    static GLuint fills;
    static Shape sheet;
    if (!fills) fills = program(color_source), sheet = square(1, 255, 255, 255, 255);
    use(fills);
    float shown[4];
    for (int c = 0; c < 4; c++) shown[c] = (color >> (24 - 8 * c) & 255) / 255.f;
    glUniform4fv(uniform("color"), 1, shown);
    bind(sheet), surface(number), place(at, flat());
    draw(sheet, 0, 6);
}

// Targets.

GLuint texture(int width, int levels, int contrast) {
    unsigned char *texels = calloc(width * width, 4);
    for (int y = 0; y < width; y++)
        for (int x = 0; x < width; x++) {
            unsigned char texel[4] = {(x ^ y) * contrast / width, x * contrast / width, (x / 8 + y / 8) % 2 * contrast, 255};
            for (int c = 0; c < 3; c++) texel[c] += (255 - contrast) / 2;
            memcpy(texels + 4 * (y * width + x), texel, 4);
        }
    GLuint made;
    glGenTextures(1, &made);
    glBindTexture(GL_TEXTURE_2D, made);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, width, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    // The levels are computed here, because the comparison is not about the driver's method.
    for (int level = 1; level < levels; level++) {
        int to = width >> level, from = to * 2;
        for (int y = 0; y < to; y++)
            for (int x = 0; x < to; x++)
                for (int c = 0; c < 4; c++) {
                    unsigned char *at = texels + 4 * (2 * y * from + 2 * x) + c;
                    texels[4 * (y * to + x) + c] = (at[0] + at[4] + at[4 * from] + at[4 * from + 4] + 2) / 4;
                }
        glTexImage2D(GL_TEXTURE_2D, level, GL_RGBA8, to, to, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    }
    free(texels);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, levels - 1);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, levels > 1 ? GL_LINEAR_MIPMAP_LINEAR : GL_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
    return made;
}

GLuint framebuffer(int width, GLuint texture) {
    GLuint made, buffers[2];
    glGenFramebuffers(1, &made);
    glBindFramebuffer(GL_FRAMEBUFFER, made);
    glGenRenderbuffers(2, buffers);
    if (texture)
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    else {
        glBindRenderbuffer(GL_RENDERBUFFER, buffers[0]);
        glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, width);
        glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, buffers[0]);
    }
    glBindRenderbuffer(GL_RENDERBUFFER, buffers[1]);
    glRenderbufferStorage(GL_RENDERBUFFER, GL_DEPTH24_STENCIL8, width, width);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_STENCIL_ATTACHMENT, GL_RENDERBUFFER, buffers[1]);
    if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) fail("the framebuffer is not complete");
    return made;
}

void clear(float red, float green, float blue) {
    if (showing_surfaces) red = green = blue = 1;
    glClearColor(red, green, blue, 1);
    glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT);
}
