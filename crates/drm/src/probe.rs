//! The probe: which renderer an OpenGL program finds, without such a program.
//!
//! Where `RECONVERGE_DRM_PROBE` is set, the process into which this library is loaded makes an OpenGL context without a
//! surface before its `main`, prints one JSON object with `renderer` and `version`, or `error`, and ends: with status 0
//! or 1. `reconverge drm` starts itself so.
//!
//! Source of the numbers: the EGL 1.5 specification and `EGL_MESA_platform_surfaceless`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::ptr::{null, null_mut};

use crate::json;
use crate::real::call;
use crate::report;

/// Runs before `main` in every process that loads this library.
#[cfg_attr(not(test), used, unsafe(link_section = ".init_array"))]
#[cfg_attr(test, allow(dead_code))]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    // SAFETY: the name is a C string. Not through `std`, whose look-up allocates, in processes that do not ask for it.
    if unsafe { libc::getenv(c"RECONVERGE_DRM_PROBE".as_ptr()) }.is_null() {
        return;
    }
    let (line, status) = match renderer() {
        Ok((renderer, version)) => {
            let (renderer, version) = (json::string(&renderer), json::string(&version));
            (format!("{{\"renderer\": {renderer}, \"version\": {version}}}\n"), 0)
        }
        Err(why) => (format!("{{\"error\": {}}}\n", json::string(&why)), 1),
    };
    let _ = std::io::stdout().write_all(line.as_bytes());
    report::end();
    // SAFETY: ends the process. Nothing of it was started that would have to end before.
    unsafe { libc::_exit(status) }
}

const OPENGL_API: c_uint = 0x30a2;
const PLATFORM_SURFACELESS: c_uint = 0x31dd;
const GL_RENDERER: c_uint = 0x1f01;
const GL_VERSION: c_uint = 0x1f02;

/// `GL_RENDERER` and `GL_VERSION` of a context without a surface.
fn renderer() -> Result<(String, String), String> {
    // SAFETY: the name is a C string. A library whose constructors run here is the same that the program would load.
    let egl = unsafe { libc::dlopen(c"libEGL.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if egl.is_null() {
        return Err(loader_error());
    }
    // SAFETY: the library is loaded, the names are C strings.
    let find = |name: &CStr| unsafe { libc::dlsym(egl, name.as_ptr()) };
    let failed = |what: &str| {
        let error = call!(find(c"eglGetError"), fn() -> c_int, (), else 0);
        format!("{what} failed (EGL error {error:#06x})")
    };

    let display = call!(
        find(c"eglGetPlatformDisplay"),
        fn(c_uint, *mut c_void, *const isize) -> *mut c_void,
        (PLATFORM_SURFACELESS, null_mut(), null()), else null_mut()
    );
    if display.is_null() {
        return Err(failed("eglGetPlatformDisplay (surfaceless)"));
    }
    let initialized = call!(
        find(c"eglInitialize"),
        fn(*mut c_void, *mut c_int, *mut c_int) -> c_uint,
        (display, null_mut(), null_mut()), else 0
    );
    if initialized == 0 {
        return Err(failed("eglInitialize"));
    }
    if call!(find(c"eglBindAPI"), fn(c_uint) -> c_uint, (OPENGL_API), else 0) == 0 {
        return Err(failed("eglBindAPI (OpenGL)"));
    }
    // No configuration and no context to share with: both null.
    let context = call!(
        find(c"eglCreateContext"),
        fn(*mut c_void, *mut c_void, *mut c_void, *const c_int) -> *mut c_void,
        (display, null_mut(), null_mut(), null()), else null_mut()
    );
    if context.is_null() {
        return Err(failed("eglCreateContext"));
    }
    let current = call!(
        find(c"eglMakeCurrent"),
        fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> c_uint,
        (display, null_mut(), null_mut(), context), else 0
    );
    if current == 0 {
        return Err(failed("eglMakeCurrent"));
    }

    let address = find(c"eglGetProcAddress");
    let get_string =
        call!(address, fn(*const c_char) -> *mut c_void, (c"glGetString".as_ptr()), else null_mut());
    let text = |name: c_uint| {
        let text = call!(get_string, fn(c_uint) -> *const c_char, (name), else null());
        // SAFETY: not null, so a C string of the driver.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    let found = text(GL_RENDERER).zip(text(GL_VERSION)).ok_or("glGetString gives nothing")?;
    call!(find(c"eglTerminate"), fn(*mut c_void) -> c_uint, (display), else 0);
    Ok(found)
}

/// Why a library was not loaded.
fn loader_error() -> String {
    // SAFETY: gives null or a C string.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "libEGL.so.1 cannot be loaded".to_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
