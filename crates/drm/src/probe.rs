//! The probe. The probe examines or measures a driver in a process without an OpenGL program. This library must be
//! loaded in the process.
//!
//! The probe runs if one of the following environment variables is set. Before `main`, the probe creates an OpenGL
//! context without a surface, prints one JSON object, and ends the process. The exit status is 0. After an error, the
//! exit status is 1, and the object only has the field `error`.
//!
//! | variable | printed fields |
//! |---|---|
//! | `RECONVERGE_DRM_PROBE` | `renderer` and `version` of the OpenGL context. With the value `opencl`, the fields are the name and the version of the OpenCL device, and no OpenGL context is created. `reconverge drm` sets this variable in a child process |
//! | `RECONVERGE_DRM_LOAD` | `renderer` and `version`. The value is the name of a [load](crate::loads). For each frame of the load, also the processor time (`processor`) and the wall time (`wall`). If the value is `list`, only the list of `loads`. `reconverge bench --draw` sets this variable in a child process |

use std::io::Write;

use crate::gl::GlContext;
use crate::{cl, json, loads, report};

/// Runs before `main` in every process that loads this library.
#[cfg_attr(not(test), used, unsafe(link_section = ".init_array"))]
#[cfg_attr(test, allow(dead_code))]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    // SAFETY: the names are C strings. `std::env::var_os` would allocate memory. This code runs in every process that
    // loads the library, and therefore must not allocate.
    let is_set = |name: &std::ffi::CStr| !unsafe { libc::getenv(name.as_ptr()) }.is_null();
    let loads = is_set(c"RECONVERGE_DRM_LOAD");
    if !loads && !is_set(c"RECONVERGE_DRM_PROBE") {
        return;
    }
    let fields = match loads {
        true => measured(),
        false if std::env::var_os("RECONVERGE_DRM_PROBE").is_some_and(|what| what == "opencl") => {
            cl::device().map(fields)
        }
        false => GlContext::new().and_then(|context| renderer(&context)),
    };
    let (line, status) = match fields {
        Ok(fields) => (format!("{{{fields}}}\n"), 0),
        Err(why) => (format!("{{\"error\": {}}}\n", json::string(&why)), 1),
    };
    let _ = std::io::stdout().write_all(line.as_bytes());
    report::end();
    // SAFETY: the call ends the process, which has nothing to clean up.
    unsafe { libc::_exit(status) }
}

/// Returns the fields of the JSON object for an OpenGL context.
fn renderer(context: &GlContext) -> Result<String, String> {
    context.renderer().map(fields)
}

fn fields((renderer, version): (String, String)) -> String {
    let (renderer, version) = (json::string(&renderer), json::string(&version));
    format!("\"renderer\": {renderer}, \"version\": {version}")
}

/// Returns the fields of the JSON object for the value of `RECONVERGE_DRM_LOAD`. The value is the name of a load, or
/// `list`.
fn measured() -> Result<String, String> {
    let name = std::env::var("RECONVERGE_DRM_LOAD").unwrap_or_default();
    if name == "list" {
        return Ok(format!("\"loads\": [{}]", loads::list()));
    }
    let context = GlContext::new()?;
    let renderer = renderer(&context)?;
    let frames = loads::run(&context, &name)?;
    let list =
        |what: usize| frames.iter().map(|frame| frame[what].to_string()).collect::<Vec<_>>().join(", ");
    Ok(format!("{renderer}, \"processor\": [{}], \"wall\": [{}]", list(0), list(1)))
}
