// The scenes of primitives: what is cut off, how polygons are filled, which vertices a draw takes, and where it goes.
#include "scenes.h"

// Viewports smaller than the target, triangles far larger than a viewport, and planes that cut. (Fails if nothing is clipped in x and y, as
// on the R500 chips before they did; if the guard band ends at the viewport; or if a plane of the user is left out.)
void clipped(int frame) {
    static GLuint plain;
    static Shape sheet, ball, far;
    if (!plain) {
        plain = program(plain_source);
        sheet = square(1, 240, 160, 40, 255), ball = sphere(24, 32);
        // Corners at many times the size of the viewport, and in perspective behind the eye.
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
    // Twice as wide as its viewport. It ends with the viewport.
    glViewport(6 * unit, 70 * unit, width = 40 * unit, 52 * unit);
    place((Matrix){{2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0.3f, -0.2f, 0, 1}}, flat());
    draw(sheet, 0, 6);
    bind(far), surface(2);
    glViewport(52 * unit, 70 * unit, width = 70 * unit, 52 * unit);
    place(flat(), flat());
    glDrawElements(GL_TRIANGLES, 3, GL_UNSIGNED_SHORT, 0);
    // The plane runs through the eye's plane to far behind it.
    surface(3);
    glViewport(6 * unit, 6 * unit, width = 58 * unit, 58 * unit);
    place(moved(0, 0.01f * (frame % 20), 0), perspective(0.5f, 2000));
    glDrawElements(GL_TRIANGLES, 3, GL_UNSIGNED_SHORT, (void *)(3 * sizeof(unsigned short)));
    // A ball that three planes cut, in the pipeline without programs, seen from inside as well. Its colours are its directions.
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
