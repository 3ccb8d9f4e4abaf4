// Declarations of the scenes and of their shared parts. draw.c has the parts, host.c the table of scenes.
//
// Every scene is a function that draws one frame. In its first frame, it creates the objects that it needs. Scenes use OpenGL 2.1 with framebuffer
// objects and GLSL 1.20, unless the table states another version. A surface is a smooth part of an object: a cube has six surfaces, a sphere has one.
// Neighbouring pixels of different surfaces are at an edge.
#define EGL_EGLEXT_PROTOTYPES
#define GL_GLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int size;
extern int width;            // Width of the current target.
extern int grid;             // Number of steps per pixel to which vertices are rounded, or 0.
extern GLuint target;        // The framebuffer that is read at the end.
extern int showing_surfaces; // Whether colours are numbers of surfaces.
extern int core_profile;     // Whether the context has the core profile.

void fail(const char *what);

// Returns whether scenes draw a part that only some drivers support: `has` is set, and SCENES_WITHOUT does not name the part. Otherwise, prints the
// name of the part, so that the other renderer also omits it.
int part(const char *name, int has);
// Returns whether the driver has an extension.
int extension(const char *name);
// Returns whether GL_RENDERER begins with a text: "ATI R" is r300, "AMD R" r600, "NV" nouveau. Scenes use this if a driver does not support a feature
// that its version of OpenGL requires.
int driver(const char *renderer);

// Programs. Attributes: position, normal, texture coordinate, colour.

enum { POSITION, NORMAL, COORDINATE, COLOR };

extern const char *const vertex_source, *const surface_source, *const plain_source, *const textured_source, *const lit_source;

GLuint shader(GLenum kind, const char *source);
GLuint linked(GLuint program);
// Creates a program with this vertex shader. Its fragment shader is `fragment`, or `surfaces` if surfaces are shown.
GLuint program_of(const char *vertex, const char *fragment, const char *surfaces);
GLuint program_with(const char *fragment, const char *surfaces);
GLuint program(const char *fragment);
void use(GLuint program);
GLint uniform(const char *name);
// Returns the number of a surface as a colour.
const float *surface_color(int number);
// Sets the surface of the next draws.
void surface(int number);
// Sets the surface of the next draws in the pipeline without programs.
void fixed_surface(int number);

// Matrices, stored by column.

typedef struct { float m[16]; } Matrix;

Matrix times(Matrix a, Matrix b);
Matrix moved(float x, float y, float z);
Matrix scaled(float s);
Matrix turned(float x, float y);
Matrix perspective(float near, float far);
Matrix flat(void);
// Returns a matrix that maps the square from -1 to 1 to a rectangle of the picture. The picture has sides of 128 units, which are pixels in a picture of
// 128x128 pixels.
Matrix box_at(float x, float y, float wide, float high);
void place(Matrix model, Matrix projection);

// Shapes: vertex buffers and their indices.

typedef struct { float position[3], normal[3], coordinate[2]; unsigned char color[4]; } Vertex;
typedef struct { GLuint vertices, indices; int count; } Shape;

Shape shape(const Vertex *vertices, int vertex_count, const unsigned short *indices, int count);
void bind(Shape shape);
void draw(Shape shape, int first, int count);
// A sphere of radius 1 with rings and segments, indexed.
Shape sphere(int rings, int segments);
// A cube from -1 to 1, with six indices per side.
Shape cube(void);
// A square from -1 to 1, with texture coordinates from 0 to `repeats`.
Shape square(float repeats, unsigned red, unsigned green, unsigned blue, unsigned alpha);
// For the pipeline without programs: sets the matrices, and the arrays of positions and texture coordinates.
void fixed_place(Matrix model, Matrix projection);
void fixed_bind(Shape shape);
void fixed_unbind(void);
// Draws a square in one colour, 0xRRGGBBAA.
void fill(int number, unsigned color, Matrix at);

// Targets.

// A texture of squares and ramps that differ by up to `contrast`, with all levels.
GLuint texture(int width, int levels, int contrast);
GLuint framebuffer(int width, GLuint texture);
void clear(float red, float green, float blue);

// Scenes, by file.

typedef void Scene(int frame);

// first.c
Scene lit, mipmaps, blended, indexed, to_texture, query, points, fixed, cube_map, divergent, masked, targets;
// samples.c
Scene samples, coverage;
// primitives.c
Scene clipped, modes, stippled, layers;
// texels.c
Scene levels, borders, srgb;
// depths.c
Scene depths;
