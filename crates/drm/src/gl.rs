//! An OpenGL context without a surface. A process without a window can use this context.
//!
//! Source of the numbers: the EGL 1.5 specification, `EGL_MESA_platform_surfaceless`, and the OpenGL 2.1 specification with
//! `GL_ARB_framebuffer_object`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::real::call;

const OPENGL_API: c_uint = 0x30a2;
const PLATFORM_SURFACELESS: c_uint = 0x31dd;
const RENDERER: c_uint = 0x1f01;
const VERSION: c_uint = 0x1f02;

/// An OpenGL context. The context is current in the thread that created the context.
pub(crate) struct GlContext {
    egl: *mut c_void,
    display: *mut c_void,
}

impl GlContext {
    /// Creates a context for desktop OpenGL. The context has no surface and no configuration.
    ///
    /// # Errors
    /// EGL is not installed, or a step fails. The error text names the step.
    pub(crate) fn new() -> Result<GlContext, String> {
        // SAFETY: the name is a C string. Loading runs the library's constructors. An OpenGL program would run the same
        // constructors.
        let egl = unsafe { libc::dlopen(c"libEGL.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if egl.is_null() {
            return Err(loader_error());
        }
        let mut context = GlContext { egl, display: null_mut() };
        let display = call!(
            context.symbol(c"eglGetPlatformDisplay"),
            fn(c_uint, *mut c_void, *const isize) -> *mut c_void,
            (PLATFORM_SURFACELESS, null_mut(), null()), else null_mut()
        );
        if display.is_null() {
            return Err(context.failed("eglGetPlatformDisplay (surfaceless)"));
        }
        let initialized = call!(
            context.symbol(c"eglInitialize"),
            fn(*mut c_void, *mut c_int, *mut c_int) -> c_uint,
            (display, null_mut(), null_mut()), else 0
        );
        if initialized == 0 {
            return Err(context.failed("eglInitialize"));
        }
        context.display = display;
        if call!(context.symbol(c"eglBindAPI"), fn(c_uint) -> c_uint, (OPENGL_API), else 0) == 0 {
            return Err(context.failed("eglBindAPI (OpenGL)"));
        }
        // The configuration and the shared context are null.
        let made = call!(
            context.symbol(c"eglCreateContext"),
            fn(*mut c_void, *mut c_void, *mut c_void, *const c_int) -> *mut c_void,
            (display, null_mut(), null_mut(), null()), else null_mut()
        );
        if made.is_null() {
            return Err(context.failed("eglCreateContext"));
        }
        let current = call!(
            context.symbol(c"eglMakeCurrent"),
            fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> c_uint,
            (display, null_mut(), null_mut(), made), else 0
        );
        if current == 0 { Err(context.failed("eglMakeCurrent")) } else { Ok(context) }
    }

    /// Returns the renderer (`GL_RENDERER`) and the version (`GL_VERSION`).
    ///
    /// # Errors
    /// The driver returns no string for `GL_RENDERER` or for `GL_VERSION`.
    pub(crate) fn renderer(&self) -> Result<(String, String), String> {
        let get_string = self.function(c"glGetString");
        let text = |name: c_uint| {
            let text = call!(get_string, fn(c_uint) -> *const c_char, (name), else null());
            // SAFETY: a pointer from the driver is null or a C string. This pointer is not null.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        text(RENDERER).zip(text(VERSION)).ok_or_else(|| "glGetString returns nothing".to_owned())
    }

    /// Returns the address of an OpenGL function, or null if the driver does not have the function.
    pub(crate) fn function(&self, name: &CStr) -> *mut c_void {
        let address = self.symbol(c"eglGetProcAddress");
        call!(address, fn(*const c_char) -> *mut c_void, (name.as_ptr()), else null_mut())
    }

    fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the library is loaded, and the name is a C string.
        unsafe { libc::dlsym(self.egl, name.as_ptr()) }
    }

    fn failed(&self, step: &str) -> String {
        let error = call!(self.symbol(c"eglGetError"), fn() -> c_int, (), else 0);
        format!("{step} failed (EGL error {error:#06x})")
    }
}

impl Drop for GlContext {
    fn drop(&mut self) {
        if !self.display.is_null() {
            call!(self.symbol(c"eglTerminate"), fn(*mut c_void) -> c_uint, (self.display), else 0);
        }
    }
}

/// Returns the reason why a library was not loaded.
fn loader_error() -> String {
    // SAFETY: `dlerror` returns null or a C string.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "libEGL.so.1 cannot be loaded".to_owned();
    }
    // SAFETY: the pointer is null or a C string. This pointer is not null.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Defines [`Functions`], which has a method for each function of OpenGL. The method has the argument types of the
/// function.
macro_rules! functions {
    ($($name:ident, $symbol:literal, ($($argument:ident: $kind:ty),*) $(-> $answer:ty)?;)*) => {
        /// Functions of OpenGL. The constants for these functions are from the OpenGL registry.
        pub(crate) struct Functions {
            $($name: unsafe extern "C" fn($($kind),*) $(-> $answer)?,)*
        }

        impl Functions {
            /// Looks up all functions.
            ///
            /// # Errors
            /// The driver lacks a function. The error text names the function.
            pub(crate) fn new(context: &GlContext) -> Result<Functions, String> {
                Ok(Functions {
                    $($name: {
                        let address = context.function($symbol);
                        if address.is_null() {
                            return Err(format!("OpenGL does not have {}", $symbol.to_string_lossy()));
                        }
                        // SAFETY: the function has this type in OpenGL, and the address is not null.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) $(-> $answer)?>(address)
                        }
                    },)*
                })
            }

            $(
                /// Calls the OpenGL function of this name.
                ///
                /// # Safety
                /// All pointers must be valid for the memory that OpenGL accesses, and the context must be current.
                #[allow(clippy::too_many_arguments, reason = "the number of arguments is that of the OpenGL function")]
                pub(crate) unsafe fn $name(&self, $($argument: $kind),*) $(-> $answer)? {
                    // SAFETY: the caller ensures that the arguments are valid.
                    unsafe { (self.$name)($($argument),*) }
                }
            )*
        }
    };
}

functions! {
    attach_shader, c"glAttachShader", (program: u32, shader: u32);
    bind_attrib_location, c"glBindAttribLocation", (program: u32, index: u32, name: *const c_char);
    bind_buffer, c"glBindBuffer", (target: u32, buffer: u32);
    bind_framebuffer, c"glBindFramebuffer", (target: u32, framebuffer: u32);
    bind_renderbuffer, c"glBindRenderbuffer", (target: u32, renderbuffer: u32);
    bind_texture, c"glBindTexture", (target: u32, texture: u32);
    blend_func, c"glBlendFunc", (source: u32, destination: u32);
    buffer_data, c"glBufferData", (target: u32, size: isize, data: *const c_void, usage: u32);
    check_framebuffer, c"glCheckFramebufferStatus", (target: u32) -> u32;
    clear, c"glClear", (mask: u32);
    clear_color, c"glClearColor", (red: f32, green: f32, blue: f32, alpha: f32);
    compile_shader, c"glCompileShader", (shader: u32);
    create_program, c"glCreateProgram", () -> u32;
    create_shader, c"glCreateShader", (kind: u32) -> u32;
    depth_func, c"glDepthFunc", (function: u32);
    draw_arrays, c"glDrawArrays", (mode: u32, first: i32, count: i32);
    draw_elements, c"glDrawElements", (mode: u32, count: i32, kind: u32, indices: *const c_void);
    enable, c"glEnable", (what: u32);
    enable_array, c"glEnableVertexAttribArray", (index: u32);
    finish, c"glFinish", ();
    framebuffer_renderbuffer, c"glFramebufferRenderbuffer",
        (target: u32, attachment: u32, kind: u32, renderbuffer: u32);
    gen_buffers, c"glGenBuffers", (count: i32, names: *mut u32);
    gen_framebuffers, c"glGenFramebuffers", (count: i32, names: *mut u32);
    gen_renderbuffers, c"glGenRenderbuffers", (count: i32, names: *mut u32);
    gen_textures, c"glGenTextures", (count: i32, names: *mut u32);
    generate_mipmap, c"glGenerateMipmap", (target: u32);
    get_error, c"glGetError", () -> u32;
    link_program, c"glLinkProgram", (program: u32);
    program_value, c"glGetProgramiv", (program: u32, what: u32, value: *mut i32);
    read_pixels, c"glReadPixels",
        (x: i32, y: i32, width: i32, height: i32, format: u32, kind: u32, data: *mut c_void);
    renderbuffer_storage, c"glRenderbufferStorageMultisample",
        (target: u32, samples: i32, format: u32, width: i32, height: i32);
    shader_source, c"glShaderSource",
        (shader: u32, count: i32, texts: *const *const c_char, lengths: *const i32);
    tex_image, c"glTexImage2D",
        (target: u32, level: i32, inner: i32, width: i32, height: i32, border: i32, format: u32, kind: u32, data: *const c_void);
    tex_parameter, c"glTexParameteri", (target: u32, name: u32, value: i32);
    uniform, c"glUniform4f", (place: i32, x: f32, y: f32, z: f32, w: f32);
    uniform_location, c"glGetUniformLocation", (program: u32, name: *const c_char) -> i32;
    use_program, c"glUseProgram", (program: u32);
    vertex_pointer, c"glVertexAttribPointer",
        (index: u32, size: i32, kind: u32, normalized: u8, stride: i32, data: *const c_void);
    viewport, c"glViewport", (x: i32, y: i32, width: i32, height: i32);
}
