//! The environment in which an OpenGL program finds the emulated device, and a check that the program finds this
//! device.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use reconverge_board::driver_fixes::DriverFixes;
use reconverge_board::{Board, Driver};
use reconverge_simt::Engine;
use serde_json::Value;
use walkdir::WalkDir;

use super::{ErrataArgs, Shaders};

/// The library that is preloaded into programs.
const LIBRARY: Library = Library {
    variable: "RECONVERGE_DRM_LIBRARY",
    file: "libreconverge_drm.so",
    build: "cargo build --release -p reconverge-drm",
};

/// The command that installs OpenGL on Debian, without the package of [`libdrm`]. Messages append this package, because
/// the package depends on the driver.
const INSTALL: &str = "apt-get install libegl1 libgl1-mesa-dri";

/// Returns the libdrm library for Mesa's driver, and the Debian package of this library.
const fn libdrm(driver: Driver) -> (&'static str, &'static str) {
    match driver {
        Driver::Nv50 => ("libdrm_nouveau.so.2", "libdrm-nouveau2"),
        _ => ("libdrm_radeon.so.1", "libdrm-radeon1"),
    }
}

/// The file that identifies the folder of a Mesa build.
const EGL: &str = "libEGL_mesa.so.0";

/// A build of Mesa other than the installed build: unpacked packages, or the output of `meson install`.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    /// The folder of the build's libraries.
    libraries: PathBuf,
}

impl Build {
    /// Finds the build in a folder or in the subfolders of this folder. If the argument is `installed`, returns `None`,
    /// which stands for the installed build.
    ///
    /// # Errors
    /// Returns an error if the folder does not contain a build.
    pub(crate) fn new(folder: &Path) -> Result<Option<Build>> {
        if folder == Path::new("installed") {
            return Ok(None);
        }
        let root = folder.canonicalize().with_context(|| crate::shown::path(&folder))?;
        let mut files = WalkDir::new(&root).sort_by_file_name().into_iter().flatten();
        let Some(found) = files.find(|entry| entry.file_name() == EGL) else {
            bail!(
                "{}: {EGL} not found; unpack Mesa's packages libegl-mesa0, libgl1-mesa-dri and their dependencies there (dpkg -x)",
                crate::shown::path(&folder)
            );
        };
        Ok(Some(Build { libraries: found.path().parent().unwrap_or(&root).to_path_buf() }))
    }
}

/// The environment of programs for one emulated chip.
#[derive(Clone)]
pub(crate) struct Setup {
    board: &'static Board,
    execute: bool,
    library: PathBuf,
    driver: Option<Build>,
    engine: Option<Engine>,
    programs: Option<PathBuf>,
    /// The enabled errata, if the command line names errata.
    errata: Option<String>,
    /// The driver faults to fix, if the command line names driver faults.
    fixes: Option<DriverFixes>,
    /// The window system for piglit's tests. If the value is `None`, the default window system is used.
    platform: Option<String>,
    /// Whether programs find the chip through OpenCL.
    opencl: bool,
}

/// The device node that a program finds.
const NODE: &str = "/dev/dri/renderD128";

impl Setup {
    /// Finds the library and the driver.
    ///
    /// # Errors
    /// Returns an error if no usual folder contains the library, or if the dynamic linker does not accept the path of
    /// the library.
    pub(crate) fn new(board: &'static Board, execute: bool, driver: Option<Build>) -> Result<Setup> {
        let library = LIBRARY.find()?;
        // Blanks and colons separate the names in LD_PRELOAD, and `$` starts a substitution. None of these characters
        // can be escaped.
        if let Some(byte) = library.as_os_str().as_bytes().iter().find(|byte| b" :$".contains(byte)) {
            let library = crate::shown::path(&library);
            bail!("{library}: LD_PRELOAD cannot contain a path with `{}`", char::from(*byte));
        }
        Ok(Setup {
            board,
            execute,
            library,
            driver,
            engine: None,
            programs: None,
            errata: None,
            fixes: None,
            platform: None,
            opencl: false,
        })
    }

    /// Sets the engine and the folder for shaders to the values on the command line.
    ///
    /// # Errors
    /// Returns an error if the folder for shaders cannot be created.
    pub(crate) fn with(self, shaders: &Shaders) -> Result<Setup> {
        let programs = shaders.programs.as_ref().map(|folder| {
            std::fs::create_dir_all(folder)
                .and_then(|()| folder.canonicalize())
                .with_context(|| crate::shown::path(&folder))
        });
        Ok(Setup { engine: shaders.engine, programs: programs.transpose()?, ..self })
    }

    /// Sets the enabled errata and the driver faults to fix. If an option is absent, the library uses the default of
    /// this option.
    pub(crate) fn with_errata(self, args: &ErrataArgs) -> Setup {
        Setup { errata: args.errata.clone(), fixes: args.driver_fixes, ..self }
    }

    /// Sets the engine that runs shaders. If `engine` is `None`, the library uses the default engine.
    pub(crate) fn with_engine(self, engine: Option<Engine>) -> Setup {
        Setup { engine, ..self }
    }

    /// Sets the window system for piglit's tests. `platform` is the value of `PIGLIT_PLATFORM`.
    pub(crate) fn with_platform(self, platform: &str) -> Setup {
        Setup { platform: Some(platform.to_owned()), ..self }
    }

    /// Lets programs find the chip through Mesa's OpenCL.
    pub(crate) fn with_opencl(self) -> Setup {
        Setup { opencl: true, ..self }
    }

    /// Returns the value for `LD_LIBRARY_PATH`. The value contains, in this order, the folders in `first`, the folder
    /// of the driver, and the folders of the current value.
    fn library_path(&self, first: &[PathBuf]) -> Option<OsString> {
        let mut folders = first.to_vec();
        folders.extend(self.driver.iter().map(|driver| driver.libraries.clone()));
        let others = env::var_os("LD_LIBRARY_PATH").filter(|others| !others.is_empty());
        let others: Vec<PathBuf> = others.iter().flat_map(env::split_paths).collect();
        (!folders.is_empty()).then(|| env::join_paths(folders.into_iter().chain(others)).ok()).flatten()
    }

    /// Sets the environment of a command. The command looks for shared libraries first in `libraries` and then in other
    /// folders.
    pub(crate) fn apply_with(&self, command: &mut Command, libraries: &[PathBuf]) {
        self.apply(command);
        if let Some(path) = self.library_path(libraries) {
            command.env("LD_LIBRARY_PATH", path);
        }
    }

    /// Sets the environment of a command.
    pub(crate) fn apply(&self, command: &mut Command) {
        let mut preload = OsString::from(&self.library);
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        command.env("LD_PRELOAD", preload);
        if let Some(path) = self.library_path(&[]) {
            command.env("LD_LIBRARY_PATH", path);
        }
        if let Some(Build { libraries }) = &self.driver {
            command.env("LIBGL_DRIVERS_PATH", libraries.join("dri"));
            command.env("GBM_BACKENDS_PATH", libraries.join("gbm"));
        }
        command.env("RECONVERGE_DRM_CHIP", self.board.chip);
        command.env("RECONVERGE_DRM_EXECUTE", if self.execute { "yes" } else { "none" });
        if let Some(engine) = self.engine {
            command.env("RECONVERGE_DRM_ENGINE", engine.name());
        }
        if let Some(list) = &self.errata {
            command.env("RECONVERGE_DRM_ERRATA", list);
        }
        if let Some(fixes) = self.fixes {
            command.env("RECONVERGE_DRM_DRIVER_FIXES", fixes.name());
        }
        if let Some(folder) = &self.programs {
            command.env("RECONVERGE_DRM_PROGRAMS", folder);
        }
        for (name, value) in [("EGL_PLATFORM", "surfaceless"), ("PIGLIT_PLATFORM", "surfaceless_egl")] {
            if env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        if let Some(platform) = &self.platform {
            command.env("PIGLIT_PLATFORM", platform);
            if platform == "gbm" {
                // The library waffle passes a display to EGL. If EGL_PLATFORM is not set, EGL uses the platform of this
                // display. If WAFFLE_GBM_DEVICE is not set, waffle uses udev to search for the device node.
                command.env_remove("EGL_PLATFORM");
                if env::var_os("WAFFLE_GBM_DEVICE").is_none() {
                    command.env("WAFFLE_GBM_DEVICE", NODE);
                }
            }
        }
        if self.opencl {
            command.env("RUSTICL_ENABLE", "nouveau").env("NOUVEAU_ENABLE_CL", "1");
            if let Some(vendor) = opencl_vendor().filter(|_| env::var_os(VENDORS).is_none()) {
                command.env(VENDORS, vendor);
            }
        }
        // If shaders are not executed, nothing writes the fences that Mesa's nouveau waits for.
        if !self.execute {
            command.env("NOUVEAU_DISABLE_FENCES", "1");
        }
        // The cache is disabled for two reasons. First, a driver with other options may have compiled the shaders in
        // the cache. Second, if shaders came from the cache, tests would not test the compiler.
        command.env("MESA_SHADER_CACHE_DISABLE", "true");
        for name in [
            "CAPTURE",
            "CAPTURE_FROM",
            "LOAD",
            "PATCH",
            "PROBE",
            "RECORD",
            "SCREEN",
            "SURFACES",
            "SURFACES_OF",
            "WINDOW",
        ] {
            command.env_remove(format!("RECONVERGE_DRM_{name}"));
        }
        // Each of these variables makes Mesa use another driver or device.
        for name in ["MESA_LOADER_DRIVER_OVERRIDE", "LIBGL_ALWAYS_SOFTWARE", "DRI_PRIME"] {
            command.env_remove(name);
        }
    }

    /// Changes the environment of a command. After this change, the command draws OpenGL with a software renderer of
    /// Mesa, not with the chip.
    pub(crate) fn draw_in_software(command: &mut Command, renderer: &str) {
        for name in ["RECONVERGE_DRM_CHIP", "RADEON_GPU_ID", "NOUVEAU_CHIPSET"] {
            command.env_remove(name);
        }
        command.env("LIBGL_ALWAYS_SOFTWARE", "true").env("GALLIUM_DRIVER", renderer);
    }

    /// Starts the probe in this environment. If `software` names a software renderer of Mesa, this renderer draws
    /// instead of the chip. Returns the answer of the probe, and a text with the messages of the probe. If there are
    /// messages, the text starts with a newline.
    fn probed(&self, software: Option<&str>) -> Result<(Value, String)> {
        // Runs this program with the library preloaded. The function `probe` in the library ends the process before
        // `main`.
        let program = env::current_exe().context("the path of this program")?;
        let mut probe = Command::new(&program);
        self.apply(&mut probe);
        probe
            .env("RECONVERGE_DRM_PROBE", if self.opencl { "opencl" } else { "1" })
            .env("RECONVERGE_DRM_EXECUTE", "none");
        probe.env("NOUVEAU_DISABLE_FENCES", "1");
        probe.env_remove("RECONVERGE_DRM_REPORT");
        if let Some(renderer) = software {
            Setup::draw_in_software(&mut probe, renderer);
        }
        let output = probe.arg("--version").stdin(Stdio::null()).output();
        let output = output.with_context(|| crate::shown::program(&program))?;
        let (answer, messages) = (lossy(&output.stdout), lossy(&output.stderr));
        let messages =
            if messages.trim().is_empty() { String::new() } else { format!("\n{}", messages.trim()) };

        let object = |line: &str| serde_json::from_str(line).ok().filter(Value::is_object);
        let Some(answer) = answer.lines().rev().find_map(object) else {
            let (library, status) = (crate::shown::path(&self.library), output.status);
            bail!(
                "{library} was not loaded into any program ({status}); check that it is from this build{messages}"
            );
        };
        Ok((answer, messages))
    }

    /// Checks that a software renderer of Mesa draws in this environment. [`Setup::draw_in_software`] has selected this
    /// renderer.
    ///
    /// # Errors
    /// Returns an error if OpenGL cannot start, or if OpenGL does not use the requested renderer.
    pub(crate) fn check_software(&self, renderer: &str) -> Result<()> {
        let (answer, messages) = self.probed(Some(renderer))?;
        match (answer["renderer"].as_str(), answer["error"].as_str()) {
            (Some(found), _) if is_renderer(found, renderer) => Ok(()),
            (Some(found), _) => bail!("OpenGL renderer: expected {renderer}, found `{found}`{messages}"),
            (None, error) => {
                bail!("{renderer}: OpenGL does not start: {}{messages}", error.unwrap_or("no reason given"))
            }
        }
    }

    /// Checks that an OpenGL context in this environment has the chip's `GL_RENDERER`. Returns the `GL_VERSION` of the
    /// context.
    ///
    /// If Mesa's driver cannot start, a program silently uses a software renderer. Without this check, the program
    /// would draw correct pictures, and no message would report that the program does not use the chip.
    ///
    /// # Errors
    /// Returns an error if OpenGL uses a renderer other than the chip. The message names this renderer and the
    /// components that may be missing.
    pub(crate) fn check_renderer(&self) -> Result<String> {
        let (answer, messages) = self.probed(None)?;
        let expected = self.board.renderer();
        let found = match (answer["renderer"].as_str(), answer["error"].as_str()) {
            (Some(renderer), _) if is_renderer(renderer, &expected) => {
                return Ok(answer["version"].as_str().unwrap_or_default().to_owned());
            }
            (Some(renderer), _) => format!("OpenGL draws with `{renderer}`"),
            (None, error) => format!("OpenGL does not start: {}", error.unwrap_or("no reason given")),
        };
        let missing = missing(self.board.driver);
        if !missing.is_empty() {
            bail!(
                "{found}, not with {expected}. Not installed: {}. {INSTALL} {}{messages}",
                missing.join(", "),
                libdrm(self.board.driver).1
            );
        }
        bail!(
            "{found}, not with {expected}. Mesa's {} is installed but did not accept the device; set LIBGL_DEBUG=verbose and \
                 EGL_LOG_LEVEL=debug to see the reason{messages}",
            self.board.driver.mesa()
        );
    }
}

impl Setup {
    /// Checks that OpenCL uses the chip as its device in this environment.
    ///
    /// # Errors
    /// Returns an error if the device of OpenCL is not the chip, or if a component is not installed. The message names
    /// the device or the component.
    pub(crate) fn check_opencl(&self) -> Result<()> {
        let spirv = SPIRV.into_iter().any(|path| Path::new(path).exists());
        let vendor = env::var_os(VENDORS).is_some() || opencl_vendor().is_some();
        let missing: Vec<&str> = [(vendor, ICD), (spirv, SPIRV[0])]
            .into_iter()
            .filter_map(|(found, name)| (!found).then_some(name))
            .collect();
        let install = format!("{INSTALL_OPENCL} {}", libdrm(self.board.driver).1);
        if !missing.is_empty() {
            bail!("Mesa's OpenCL is not installed: {} not found. {install}", missing.join(" and "));
        }
        let (answer, messages) = self.probed(None)?;
        let expected = self.board.renderer();
        match (answer["renderer"].as_str(), answer["error"].as_str()) {
            (Some(found), _) if is_renderer(found, &expected) => Ok(()),
            (Some(found), _) => {
                bail!("OpenCL device: expected {expected}, found `{found}`. {install}{messages}")
            }
            (None, error) => {
                bail!("{}. {install}{messages}", error.unwrap_or("OpenCL does not start, no reason given"))
            }
        }
    }
}

/// The environment variable that lists OpenCL implementations.
const VENDORS: &str = "OCL_ICD_VENDORS";

/// The file that describes Mesa's OpenCL implementation.
const ICD: &str = "rusticl.icd";

/// Paths of the file with the OpenCL C functions that Mesa adds to kernels. The first path is used by Debian. The
/// second path is used by other distributions.
const SPIRV: [&str; 2] = ["/usr/lib/clc/spirv-mesa3d-.spv", "/usr/share/clc/spirv-mesa3d-.spv"];

/// The command that installs Mesa's OpenCL on Debian, without the package of [`libdrm`]. Messages append this package,
/// because the package depends on the driver.
const INSTALL_OPENCL: &str = "apt-get install mesa-opencl-icd libclc-15 ocl-icd-libopencl1";

/// Returns the path of [`ICD`].
fn opencl_vendor() -> Option<PathBuf> {
    let folders = ["/etc/OpenCL/vendors", "/usr/share/OpenCL/vendors"];
    folders.into_iter().map(|folder| Path::new(folder).join(ICD)).find(|path| path.exists())
}

/// Whether a renderer string names the expected renderer. For instance, `AMD RV770 (DRM 2.50.0 / 6.1.0, LLVM 15.0.6)`
/// names `AMD RV770`.
fn is_renderer(renderer: &str, expected: &str) -> bool {
    renderer.strip_prefix(expected).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Returns the absolute form of a path.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A library of this project that a command preloads into other programs.
pub(crate) struct Library {
    /// The environment variable that overrides the library's path.
    pub(crate) variable: &'static str,
    /// The name of the library's file.
    pub(crate) file: &'static str,
    /// The command that builds the library.
    pub(crate) build: &'static str,
}

impl Library {
    /// Returns the path of the library. If the library's environment variable is set, the variable contains the path.
    /// Otherwise, the function searches the folder of this program, the subfolder `deps` of that folder, and
    /// `../lib/reconverge`.
    ///
    /// # Errors
    /// Returns an error if the file does not exist.
    pub(crate) fn find(&self) -> Result<PathBuf> {
        let Library { variable, file, build } = self;
        if let Some(path) = env::var_os(variable).map(PathBuf::from) {
            let found = path.canonicalize();
            return found.with_context(|| {
                format!("{variable} names {}; `{build}` builds the library", crate::shown::path(&path))
            });
        }
        let program = env::current_exe().context("the path of this program")?;
        let folder =
            program.canonicalize().unwrap_or(program).parent().map(Path::to_path_buf).unwrap_or_default();
        // An installed program is in `bin`. The library of this program is in `lib/reconverge` next to `bin`. The
        // library of a built program is in the program's folder or in `deps` inside this folder.
        let places = [".", "deps", "../lib/reconverge"].map(|place| folder.join(place).join(file));
        match places.iter().find_map(|place| place.canonicalize().ok()) {
            Some(place) => Ok(place),
            None => bail!(
                "{file} not found in {0}, {0}/deps or {0}/../lib/reconverge; build it with `{build}`, or set \
                 {variable} to its path",
                crate::shown::path(&folder)
            ),
        }
    }
}

/// Returns the files that OpenGL needs and that are in none of the usual folders.
fn missing(driver: Driver) -> Vec<&'static str> {
    let listed = |name: &str| {
        let folders = env::var_os(name);
        folders.map(|folders| env::split_paths(&folders).collect::<Vec<_>>()).unwrap_or_default()
    };
    let mut libraries = listed("LD_LIBRARY_PATH");
    for folder in ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib"] {
        libraries.push(folder.into());
        // Debian has one folder per architecture.
        let inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
        libraries.extend(inside.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    let mut drivers = listed("LIBGL_DRIVERS_PATH");
    if drivers.is_empty() {
        drivers.extend(libraries.iter().map(|folder| folder.join("dri")));
    }
    let absent = |folders: &[PathBuf], name: &str| {
        !folders.iter().any(|folder| folder.join(OsStr::new(name)).exists())
    };
    let mut missing: Vec<&str> =
        ["libEGL.so.1", libdrm(driver).0].into_iter().filter(|name| absent(&libraries, name)).collect();
    if absent(&drivers, driver.mesa()) {
        missing.push(driver.mesa());
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renderer_is_the_chips_by_its_whole_name() {
        let is = |renderer| is_renderer(renderer, "AMD R600");
        assert!(is("AMD R600") && is("AMD R600 (DRM 2.50.0 / 6.1.0, LLVM 15.0.6)"));
        assert!(!is("AMD R6000") && !is("llvmpipe (LLVM 15.0.6, 256 bits)") && !is("AMD RV770 (DRM 2.50.0)"));
    }
}
