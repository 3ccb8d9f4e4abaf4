//! `reconverge cuda`

use std::ffi::OsString;

use anyhow::Result;
use reconverge_isa::Isa;
use reconverge_simt::Engine;
use reconverge_workbench::target::Target;

use crate::args::Answer;

/// Run a CUDA program on an emulated Tesla chip
///
/// COMMAND finds a libcuda.so.1 with the driver API of CUDA, whose only device is the chip. COMMAND needs neither
/// changes nor special rights. Kernels are cubins for sm_10 to sm_13; PTX is not supported. The exit status is that
/// of COMMAND, or 128 plus the number of the signal that ends it.
#[derive(clap::Args)]
pub(crate) struct Cuda {
    /// The chip: g80 (sm_10), g84 (sm_11), gt215 (sm_12), gt200 (sm_13), or another name of one of these chips
    #[arg(long, value_name = "NAME", default_value = "gt215")]
    chip: String,
    /// Engine that runs kernels (default: compiled)
    #[arg(long, value_parser = crate::args::engine())]
    engine: Option<Engine>,
    /// Number of instructions that a block can issue before the watchdog stops the kernel
    #[arg(long, value_name = "N")]
    watchdog: Option<u64>,
    /// Check shared memory for races and uninitialized reads. A kernel with a race or an uninitialized read fails
    #[arg(long)]
    race_check: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Cuda) -> Result<Answer> {
    let target = Target::new(Isa::Tesla, Some(&args.chip))?;
    started(args, target.tesla().name())
}

#[cfg(target_os = "linux")]
fn started(args: &Cuda, chip: &str) -> Result<Answer> {
    use anyhow::Context as _;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    use crate::drm::host::{ended, status_of};

    let [name, arguments @ ..] = &args.command[..] else { unreachable!("clap requires a command") };
    let folder = linux::Folder::new()?;
    let mut program = std::process::Command::new(name);
    program.args(arguments).env("LD_LIBRARY_PATH", folder.library_path()?).env("RECONVERGE_CUDA_CHIP", chip);
    match args.engine {
        Some(engine) => program.env("RECONVERGE_CUDA_ENGINE", engine.name()),
        None => program.env_remove("RECONVERGE_CUDA_ENGINE"),
    };
    match args.watchdog {
        Some(most) => program.env("RECONVERGE_CUDA_WATCHDOG", most.to_string()),
        None => program.env_remove("RECONVERGE_CUDA_WATCHDOG"),
    };
    match args.race_check {
        true => program.env("RECONVERGE_CUDA_RACE_CHECK", "1"),
        false => program.env_remove("RECONVERGE_CUDA_RACE_CHECK"),
    };
    // The code installs the handler before the start of the program. Otherwise, early signals would be lost.
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals")?;
    let mut child = program.spawn().with_context(|| crate::shown::program(&name))?;
    let status = ended(&mut child, signals, std::process::Child::wait)
        .with_context(|| crate::shown::program(&name))?;
    Ok(Answer::Status(status_of(name, status)))
}

#[cfg(not(target_os = "linux"))]
fn started(_args: &Cuda, _chip: &str) -> Result<Answer> {
    anyhow::bail!("cuda is available only on Linux, where programs load libcuda.so.1")
}

/// The folder in which a program that `cuda` runs finds the library.
#[cfg(target_os = "linux")]
mod linux {
    use std::env;
    use std::ffi::OsString;
    use std::os::unix::fs::{DirBuilderExt as _, symlink};
    use std::path::PathBuf;

    use anyhow::{Context as _, Result, bail};
    use reconverge_output::random_name;

    use crate::drm::setup::Library;

    const LIBRARY: Library = Library {
        variable: "RECONVERGE_CUDA_LIBRARY",
        file: "libreconverge_cuda.so",
        build: "cargo build --release -p reconverge-cuda",
    };

    /// Names under which programs load CUDA's driver.
    const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

    /// A temporary folder with links to the library.
    pub(super) struct Folder {
        path: PathBuf,
    }

    impl Folder {
        pub(super) fn new() -> Result<Folder> {
            let library = LIBRARY.find()?;
            let path = env::temp_dir().join(format!("reconverge-cuda-{}", random_name()?));
            std::fs::DirBuilder::new()
                .mode(0o700)
                .create(&path)
                .with_context(|| crate::shown::path(&path))?;
            let folder = Folder { path };
            for name in NAMES {
                let link = folder.path.join(name);
                symlink(&library, &link).with_context(|| crate::shown::path(&link))?;
            }
            Ok(folder)
        }

        /// Returns the new value of `LD_LIBRARY_PATH`. This folder comes first, and the folders of the current value
        /// follow.
        pub(super) fn library_path(&self) -> Result<OsString> {
            let others = env::var_os("LD_LIBRARY_PATH").filter(|others| !others.is_empty());
            let others: Vec<PathBuf> = others.iter().flat_map(env::split_paths).collect();
            match env::join_paths([self.path.clone()].into_iter().chain(others)) {
                Ok(path) => Ok(path),
                Err(_) => {
                    let folder = crate::shown::path(&self.path);
                    bail!(
                        "{folder}: LD_LIBRARY_PATH cannot contain a path with `:`; set TMPDIR to another folder"
                    )
                }
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // The program has ended. If the deletion of the folder fails, the command ignores the error, because the
            // folder is no longer needed.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
