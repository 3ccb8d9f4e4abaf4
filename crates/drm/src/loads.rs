//! Loads that `reconverge bench --draw` measures. A load is a frame of OpenGL 2.1, drawn with the driver that the
//! process finds.
//!
//! Each frame is drawn into a framebuffer object of [`WIDTH`] by [`HEIGHT`] pixels and ends with `glFinish`. The
//! processor time is the time of the whole process and therefore includes the threads of a driver.

use std::ffi::{CString, c_void};
use std::ptr::null;
use std::time::Instant;

use crate::gl::{Functions, GlContext};
use crate::json;

/// Width of the target in pixels.
const WIDTH: i32 = 1024;
/// Height of the target in pixels.
const HEIGHT: i32 = 768;
/// Number of pixels in the target.
const PIXELS: u32 = (WIDTH * HEIGHT) as u32;
/// Number of mesh cells in each direction. A cell has two triangles.
const CELLS: u32 = 260;
/// Minimum total processor time of the frames, in seconds.
const SECONDS: f64 = 0.3;
/// Minimum and maximum number of frames that are measured.
const FRAMES: [usize; 2] = [3, 100];

/// A frame that can be measured.
struct DrawLoad {
    name: &'static str,
    about: &'static str,
    /// The unit of work, and the number of units per frame.
    unit: (&'static str, u32),
    /// Creates the objects that the frame needs. Returns a function that draws the frame.
    start: fn(&Scene) -> Result<DrawFrame<'_>, String>,
}

const fn load(
    name: &'static str,
    about: &'static str,
    unit: &'static str,
    count: u32,
    start: fn(&Scene) -> Result<DrawFrame<'_>, String>,
) -> DrawLoad {
    DrawLoad { name, about, unit: (unit, count), start }
}

/// A function that draws a frame.
type DrawFrame<'a> = Box<dyn Fn() + 'a>;

const LOADS: [DrawLoad; 13] = [
    load(
        "clear",
        "20 clears of colour and depth, with a draw of 144 pixels after each",
        "pixel",
        20 * PIXELS,
        clear,
    ),
    load("solid", "20 full-screen quads of one colour", "pixel", 20 * PIXELS, solid),
    load("fill", "20 full-screen quads with a colour ramp", "pixel", 20 * PIXELS, fill),
    load("blend", "20 full-screen quads with a colour ramp, blended", "pixel", 20 * PIXELS, blend),
    load(
        "depth",
        "20 full-screen quads with a depth test that every second quad passes",
        "pixel",
        20 * PIXELS,
        depth,
    ),
    load("texture", "10 quads with a bilinear read of 512x512 texels", "pixel", 10 * PIXELS, bilinear),
    load("mipmaps", "10 quads with two trilinear reads of 512x512 texels", "pixel", 10 * PIXELS, trilinear),
    load("loop", "a Mandelbrot set with up to 96 iterations per pixel", "pixel", PIXELS, mandelbrot),
    load("mesh", "3 lit meshes over each other, with a depth test", "triangle", 3 * 2 * CELLS * CELLS, mesh),
    load("draws", "1,500 draws of 144 pixels", "draw", 1500, draws),
    load(
        "textured-draws",
        "1,500 draws of 144 pixels that read a texture of 512x512 texels",
        "draw",
        1500,
        textured_draws,
    ),
    load("upload", "a texture of 512x512 texels, replaced and drawn 6 times", "upload", 6, upload),
    load("read-back", "the target read 6 times, each after a draw", "read-back", 6, read_back),
];

/// Returns the loads as the entries of a JSON list.
pub(crate) fn list() -> String {
    let entry = |load: &DrawLoad| {
        let (unit, count) = load.unit;
        let [name, about, unit] = [load.name, load.about, unit].map(json::string);
        format!("{{\"name\": {name}, \"about\": {about}, \"unit\": {unit}, \"count\": {count}}}")
    };
    LOADS.iter().map(entry).collect::<Vec<_>>().join(", ")
}

/// Draws frames of a load. Returns the processor time and the wall time of each frame, in seconds. The result omits the
/// first frames, because the driver compiles programs during these frames.
///
/// # Errors
/// The load does not exist, or OpenGL reports an error.
pub(crate) fn run(context: &GlContext, name: &str) -> Result<Vec<[f64; 2]>, String> {
    let load = LOADS.iter().find(|load| load.name == name).ok_or_else(|| format!("no load `{name}`"))?;
    let scene = Scene::new(Functions::new(context)?)?;
    let frame = (load.start)(&scene)?;
    // SAFETY: the OpenGL context is current in this thread.
    let whole = || unsafe {
        frame();
        scene.gl.finish();
    };
    whole();
    whole();
    // SAFETY: the OpenGL context is current in this thread.
    let error = unsafe { scene.gl.get_error() };
    if error != 0 {
        return Err(format!("the load fails with OpenGL error {error:#06x}"));
    }
    let (mut seconds, mut sum) = (Vec::new(), 0.);
    while seconds.len() < FRAMES[0] || seconds.len() < FRAMES[1] && sum < SECONDS {
        let (start, wall) = (processor_time(), Instant::now());
        whole();
        let processor = processor_time() - start;
        sum += processor;
        seconds.push([processor, wall.elapsed().as_secs_f64()]);
    }
    Ok(seconds)
}

/// Returns the processor time of the process in seconds.
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

// The values of these constants are from the OpenGL registry.
const ARRAY_BUFFER: u32 = 0x8892;
const BLEND: u32 = 0x0be2;
const COLOR_ATTACHMENT: u32 = 0x8ce0;
const COLOR_AND_DEPTH: u32 = 0x4100;
const DEPTH: u32 = 0x0100;
const DEPTH24: u32 = 0x81a6;
const DEPTH_ATTACHMENT: u32 = 0x8d00;
const DEPTH_TEST: u32 = 0x0b71;
const ELEMENT_BUFFER: u32 = 0x8893;
const FLOAT: u32 = 0x1406;
const FRAGMENT_SHADER: u32 = 0x8b30;
const FRAMEBUFFER: u32 = 0x8d40;
const FRAMEBUFFER_COMPLETE: u32 = 0x8cd5;
const LESS: u32 = 0x0201;
const LINEAR: i32 = 0x2601;
const LINEAR_MIPMAP_LINEAR: i32 = 0x2703;
const LINKED: u32 = 0x8b82;
const MAG_FILTER: u32 = 0x2800;
const MIN_FILTER: u32 = 0x2801;
const ONE_MINUS_SOURCE_ALPHA: u32 = 0x0303;
const RENDERBUFFER: u32 = 0x8d41;
const RGBA: u32 = 0x1908;
const RGBA8: u32 = 0x8058;
const SOURCE_ALPHA: u32 = 0x0302;
const STATIC: u32 = 0x88e4;
const TEXTURE_2D: u32 = 0x0de1;
const TRIANGLES: u32 = 4;
const TRIANGLE_STRIP: u32 = 5;
const UNSIGNED_BYTE: u32 = 0x1401;
const UNSIGNED_INT: u32 = 0x1405;
const VERTEX_SHADER: u32 = 0x8b31;

/// The OpenGL functions. All draws go to the current framebuffer object.
struct Scene {
    gl: Functions,
}

/// The vertex program that draws a quad. `place` contains the centre of the quad, and half the size of the quad.
/// `tint.x` is the depth.
const QUAD: &str = "#version 120
    attribute vec3 at; uniform vec4 place, tint; varying vec2 t;
    void main() { t = at.xy * 0.5 + 0.5; gl_Position = vec4(at.xy * place.zw + place.xy, tint.x, 1.0); }";

/// A fragment program that draws a colour ramp.
const RAMP: &str = "#version 120
    uniform vec4 tint; varying vec2 t;
    void main() { gl_FragColor = vec4(t, tint.y, 0.5); }";

/// A fragment program with one bilinear read of a texture.
const READ: &str = "#version 120
    uniform sampler2D texels; uniform vec4 tint; varying vec2 t;
    void main() { gl_FragColor = texture2D(texels, t * 2.0) + tint.yyyy; }";

/// Calls functions of OpenGL on a scene.
macro_rules! gl {
    ($scene:expr, $($name:ident($($argument:expr),*));+ $(;)?) => {{
        // SAFETY: the context is current, and pointers are valid for the memory that the calls access.
        unsafe { $($scene.gl.$name($($argument),*));+ }
    }};
}

impl Scene {
    /// Creates the framebuffer object and makes the framebuffer object current.
    fn new(gl: Functions) -> Result<Scene, String> {
        let scene = Scene { gl };
        let mut target = 0;
        gl!(scene, gen_framebuffers(1, &raw mut target); bind_framebuffer(FRAMEBUFFER, target));
        for (attachment, format) in [(COLOR_ATTACHMENT, RGBA8), (DEPTH_ATTACHMENT, DEPTH24)] {
            let mut buffer = 0;
            gl!(
                scene,
                gen_renderbuffers(1, &raw mut buffer);
                bind_renderbuffer(RENDERBUFFER, buffer);
                renderbuffer_storage(RENDERBUFFER, 0, format, WIDTH, HEIGHT);
                framebuffer_renderbuffer(FRAMEBUFFER, attachment, RENDERBUFFER, buffer);
            );
        }
        let status = gl!(scene, check_framebuffer(FRAMEBUFFER));
        if status != FRAMEBUFFER_COMPLETE {
            return Err(format!("the framebuffer is not complete ({status:#06x})"));
        }
        gl!(scene, viewport(0, 0, WIDTH, HEIGHT));
        Ok(scene)
    }

    fn shader(&self, program: u32, kind: u32, source: &str) -> Result<(), String> {
        let text = CString::new(source).map_err(|error| error.to_string())?;
        let shader = gl!(self, create_shader(kind));
        let texts = [text.as_ptr()];
        gl!(
            self,
            shader_source(shader, 1, texts.as_ptr(), null());
            compile_shader(shader);
            attach_shader(program, shader);
        );
        Ok(())
    }

    /// Creates a program and makes this program current. The name of attribute 0 is `at`. The name of attribute 1 is
    /// `normal`.
    fn program(&self, vertex: &str, fragment: &str) -> Result<Drawing<'_>, String> {
        let program = gl!(self, create_program());
        self.shader(program, VERTEX_SHADER, vertex)?;
        self.shader(program, FRAGMENT_SHADER, fragment)?;
        let mut linked = 0;
        gl!(
            self,
            bind_attrib_location(program, 0, c"at".as_ptr());
            bind_attrib_location(program, 1, c"normal".as_ptr());
            link_program(program);
            program_value(program, LINKED, &raw mut linked);
            use_program(program);
        );
        if linked == 0 {
            return Err("a program does not link".to_owned());
        }
        let uniform = |name: &std::ffi::CStr| gl!(self, uniform_location(program, name.as_ptr()));
        Ok(Drawing { scene: self, place: uniform(c"place"), tint: uniform(c"tint") })
    }

    /// Creates a buffer of floats and makes this buffer current. Each pair in `attributes` has the index of an
    /// attribute, and the index of the attribute's first float in `floats`. For each vertex, an attribute reads three
    /// floats. The floats of consecutive vertices are `stride` floats apart.
    fn vertices(&self, floats: &[f32], attributes: &[(u32, usize)], stride: usize) {
        let mut buffer = 0;
        gl!(
            self,
            gen_buffers(1, &raw mut buffer);
            bind_buffer(ARRAY_BUFFER, buffer);
            buffer_data(ARRAY_BUFFER, size_of_val(floats) as isize, floats.as_ptr().cast(), STATIC);
        );
        for (index, first) in attributes {
            let offset: *const c_void = std::ptr::without_provenance(4 * first);
            gl!(
                self,
                vertex_pointer(*index, 3, FLOAT, 0, 4 * stride as i32, offset);
                enable_array(*index);
            );
        }
    }

    /// Creates the corners of a quad and a program that draws the quad. Makes the corners and the program current.
    fn quad(&self, fragment: &str) -> Result<Drawing<'_>, String> {
        self.vertices(&[-1., -1., 0., 1., -1., 0., -1., 1., 0., 1., 1., 0.], &[(0, 0)], 3);
        self.program(QUAD, fragment)
    }

    /// Creates a texture of 512x512 texels and makes this texture current.
    fn texture(&self, filter: i32) {
        let mut texture = 0;
        gl!(self, gen_textures(1, &raw mut texture); bind_texture(TEXTURE_2D, texture));
        self.upload(&texels(1));
        gl!(
            self,
            generate_mipmap(TEXTURE_2D);
            tex_parameter(TEXTURE_2D, MIN_FILTER, filter);
            tex_parameter(TEXTURE_2D, MAG_FILTER, LINEAR);
        );
    }

    /// Replaces the texels of the current texture.
    fn upload(&self, texels: &[u32]) {
        let data = texels.as_ptr().cast();
        gl!(self, tex_image(TEXTURE_2D, 0, RGBA8 as i32, 512, 512, 0, RGBA, UNSIGNED_BYTE, data));
    }
}

/// Returns 512x512 random texels.
fn texels(seed: u32) -> Vec<u32> {
    let mut random = seed;
    let mut texel = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random
    };
    (0..512 * 512).map(|_| texel()).collect()
}

/// The current program, with the locations of its uniforms.
#[derive(Clone, Copy)]
struct Drawing<'a> {
    scene: &'a Scene,
    place: i32,
    tint: i32,
}

impl Drawing<'_> {
    /// Draws a quad with the centre `place` at a depth. `size` is half the width and half the height of the quad.
    fn draw(&self, place: [f32; 2], size: [f32; 2], depth: f32) {
        gl!(
            self.scene,
            uniform(self.place, place[0], place[1], size[0], size[1]);
            uniform(self.tint, depth, 0.25 + 0.25 * depth, 0.5, 0.5);
            draw_arrays(TRIANGLE_STRIP, 0, 4);
        );
    }

    /// Draws full-screen quads at depth 0.
    fn fill(&self, count: u32) {
        (0..count).for_each(|_| self.draw([0.; 2], [1.; 2], 0.));
    }
}

fn clear(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    let quad = scene.quad(RAMP)?;
    Ok(Box::new(move || {
        for number in 0..20 {
            gl!(scene, clear_color(number as f32 / 20., 0.5, 0.25, 1.); clear(COLOR_AND_DEPTH));
            // A driver may drop a clear if another clear follows directly. The quad between the clears prevents the
            // driver from dropping the first clear.
            quad.draw([0.; 2], [12. / WIDTH as f32, 12. / HEIGHT as f32], 0.);
        }
    }))
}

fn solid(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    let quad = scene.quad("#version 120\nuniform vec4 tint; void main() { gl_FragColor = tint; }")?;
    Ok(Box::new(move || quad.fill(20)))
}

fn fill(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    let quad = scene.quad(RAMP)?;
    Ok(Box::new(move || quad.fill(20)))
}

fn blend(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    gl!(scene, enable(BLEND); blend_func(SOURCE_ALPHA, ONE_MINUS_SOURCE_ALPHA));
    fill(scene)
}

fn depth(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    gl!(scene, enable(DEPTH_TEST); depth_func(LESS));
    let quad = scene.quad(RAMP)?;
    Ok(Box::new(move || {
        gl!(scene, clear(DEPTH));
        for number in 0..20 {
            let depth = if number % 2 == 0 { 0.9 - 0.08 * number as f32 } else { 0.95 };
            quad.draw([0.; 2], [1.; 2], depth);
        }
    }))
}

fn bilinear(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    scene.texture(LINEAR);
    let quad = scene.quad(READ)?;
    Ok(Box::new(move || quad.fill(10)))
}

fn trilinear(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    scene.texture(LINEAR_MIPMAP_LINEAR);
    let quad = scene.quad(
        "#version 120
        uniform sampler2D texels; varying vec2 t;
        void main() { gl_FragColor = texture2D(texels, t * 3.0) + texture2D(texels, t.yx * 5.0); }",
    )?;
    Ok(Box::new(move || quad.fill(10)))
}

fn mandelbrot(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    let quad = scene.quad(
        "#version 120
        varying vec2 t;
        void main() {
            vec2 c = t * vec2(3.0, 2.2) - vec2(2.2, 1.1), z = vec2(0.0);
            int n = 0;
            for (; n < 96; n++) {
                z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
                if (dot(z, z) > 4.0) break;
            }
            gl_FragColor = vec4(float(n) / 96.0);
        }",
    )?;
    Ok(Box::new(move || quad.fill(1)))
}

fn mesh(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    let side = CELLS + 1;
    let vertex = |at: u32| {
        let [x, y] = [at % side, at / side].map(|at| at as f32 / CELLS as f32 * 2. - 1.);
        let (along_x, along_y) = ((9. * x).sin(), (7. * y).sin());
        [x, y, 0.2 * along_x * along_y, -along_x, -along_y, 2.]
    };
    let vertices: Vec<f32> = (0..side * side).flat_map(vertex).collect();
    let cell = |at: u32| {
        let first = at / CELLS * side + at % CELLS;
        [first, first + 1, first + side, first + side, first + 1, first + side + 1]
    };
    let indices: Vec<u32> = (0..CELLS * CELLS).flat_map(cell).collect();
    let mut buffer = 0;
    scene.vertices(&vertices, &[(0, 0), (1, 3)], 6);
    gl!(
        scene,
        gen_buffers(1, &raw mut buffer);
        bind_buffer(ELEMENT_BUFFER, buffer);
        buffer_data(ELEMENT_BUFFER, size_of_val(&indices[..]) as isize, indices.as_ptr().cast(), STATIC);
        enable(DEPTH_TEST);
        depth_func(LESS);
    );
    let program = scene.program(
        "#version 120
        attribute vec3 at, normal; uniform vec4 place; varying vec3 light;
        void main() {
            vec3 n = normalize(normal), to = normalize(vec3(0.3, 0.6, 1.0) - at);
            light = vec3(0.1) + max(dot(n, to), 0.0) * vec3(0.8, 0.7, 0.5);
            float w = 2.0 + at.z;
            gl_Position = vec4(at.xy * place.zw * w + place.xy * w, (at.z + place.x) * w * 0.5, w);
        }",
        "#version 120\nvarying vec3 light; void main() { gl_FragColor = vec4(light, 1.0); }",
    )?;
    let count = indices.len() as i32;
    Ok(Box::new(move || {
        gl!(scene, clear(COLOR_AND_DEPTH));
        for number in 0..3 {
            gl!(
                scene,
                uniform(program.place, 0.05 * number as f32, 0., 0.9, 0.9);
                draw_elements(TRIANGLES, count, UNSIGNED_INT, null());
            );
        }
    }))
}

/// Draws a grid of quads of 12 by 12 pixels.
fn small_quads(quad: Drawing<'_>) {
    for number in 0..1500 {
        let [x, y] = [number % 50, number / 50].map(|at| at as f32);
        let place = [x / 25. - 0.98, y / 15. - 0.96];
        quad.draw(place, [12. / WIDTH as f32, 12. / HEIGHT as f32], 0.);
    }
}

fn draws(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    let quad = scene.quad(RAMP)?;
    Ok(Box::new(move || small_quads(quad)))
}

fn textured_draws(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    scene.texture(LINEAR);
    let quad = scene.quad(READ)?;
    Ok(Box::new(move || small_quads(quad)))
}

fn upload(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    scene.texture(LINEAR);
    let quad = scene.quad(READ)?;
    let all: Vec<Vec<u32>> = (0..6).map(texels).collect();
    Ok(Box::new(move || {
        for texels in &all {
            scene.upload(texels);
            quad.draw([0.; 2], [0.25; 2], 0.);
        }
    }))
}

fn read_back(scene: &Scene) -> Result<DrawFrame<'_>, String> {
    let quad = scene.quad(RAMP)?;
    Ok(Box::new(move || {
        let mut pixels = vec![0u32; PIXELS as usize];
        for _ in 0..6 {
            quad.draw([0.; 2], [0.25; 2], 0.);
            gl!(scene, read_pixels(0, 0, WIDTH, HEIGHT, RGBA, UNSIGNED_BYTE, pixels.as_mut_ptr().cast()));
        }
    }))
}
