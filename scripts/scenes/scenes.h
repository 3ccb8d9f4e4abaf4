// Declarations of the scenes and of their shared parts. draw.c has the parts, host.c the table of scenes.
//
// Every scene is a function that draws one frame and makes what it needs at its first frame. It is OpenGL 2.1 with framebuffer objects and
// GLSL 1.20 if the table does not say otherwise. A surface is what a viewer takes for one: the sides of a cube are six, a sphere is one.
// Neighbouring pixels of different surfaces are an edge.
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
extern int width;            // Width of the target that is drawn into.
extern int grid;             // Steps of a pixel that vertices are placed at; 0: anywhere.
extern GLuint target;        // The framebuffer that is read at the end.
extern int showing_surfaces; // Whether colours are numbers of surfaces.
extern int core_profile;     // Whether the context has the core profile.

void fail(const char *what);

// Returns whether scenes draw a part that only some drivers have: `has` is set, and SCENES_WITHOUT does not name the part. A part that is left
// out is printed, so that the other renderer also leaves it out.
int part(const char *name, int has);
// Whether the driver has an extension.
int extension(const char *name);
// Whether GL_RENDERER begins so: "ATI R" is r300, "AMD R" r600, "NV" nouveau. A driver may lack what its version of OpenGL asks for.
int driver(const char *renderer);

// Programs. Attributes: position, normal, texture coordinate, colour.

enum { POSITION, NORMAL, COORDINATE, COLOR };

extern const char *const vertex_source, *const surface_source, *const plain_source, *const textured_source, *const lit_source;

GLuint shader(GLenum kind, const char *source);
GLuint linked(GLuint program);
// A program of these vertices whose colours are those of `fragment`, or, if surfaces are shown, of `surfaces`.
GLuint program_of(const char *vertex, const char *fragment, const char *surfaces);
GLuint program_with(const char *fragment, const char *surfaces);
GLuint program(const char *fragment);
void use(GLuint program);
GLint uniform(const char *name);
// The number of a surface as a colour.
const float *surface_color(int number);
// The next draws are this surface.
void surface(int number);
// The same in the pipeline without programs.
void fixed_surface(int number);

// Matrices, column after column.

typedef struct { float m[16]; } Matrix;

Matrix times(Matrix a, Matrix b);
Matrix moved(float x, float y, float z);
Matrix scaled(float s);
Matrix turned(float x, float y);
Matrix perspective(float near, float far);
Matrix flat(void);
// Places the square from -1 to 1 as a rectangle of the picture, whose sides are 128. In a picture of 128x128 pixels these are pixels.
Matrix box_at(float x, float y, float wide, float high);
void place(Matrix model, Matrix projection);

// Shapes: vertex buffers and their indices.

typedef struct { float position[3], normal[3], coordinate[2]; unsigned char color[4]; } Vertex;
typedef struct { GLuint vertices, indices; int count; } Shape;

Shape shape(const Vertex *vertices, int vertex_count, const unsigned short *indices, int count);
void bind(Shape shape);
void draw(Shape shape, int first, int count);
// A sphere of radius 1: rings by segments, indexed.
Shape sphere(int rings, int segments);
// A cube from -1 to 1, six indices a side.
Shape cube(void);
// A square from -1 to 1, its coordinates from 0 to `repeats`.
Shape square(float repeats, unsigned red, unsigned green, unsigned blue, unsigned alpha);
// The same for the pipeline without programs: its matrices, and arrays of positions and texture coordinates.
void fixed_place(Matrix model, Matrix projection);
void fixed_bind(Shape shape);
void fixed_unbind(void);
// Draws a square in one colour, 0xRRGGBBAA.
void fill(int number, unsigned color, Matrix at);

// Targets.

// A texture of squares and ramps that differ by up to `contrast`, with its levels.
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
