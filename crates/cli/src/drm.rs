//! `reconverge drm`

#[cfg(target_os = "linux")]
pub(crate) mod host;
pub(crate) mod opencl;
#[cfg(target_os = "linux")]
mod recording;
#[cfg(target_os = "linux")]
pub(crate) mod setup;
#[cfg(target_os = "linux")]
#[cfg_attr(not(feature = "window"), path = "drm/absent_window.rs")]
mod window;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use reconverge_board::driver_fixes::DriverFixes;
use reconverge_board::errata::Errata;
use reconverge_board::patch::Patch;
use reconverge_board::{BOARDS, Board};
use reconverge_isa::Isa;
use reconverge_isa::source::closest;
use reconverge_simt::Engine;
use reconverge_workbench::target::{chips, isa_of_chip};

use crate::args::Answer;

/// Run an OpenGL program on Mesa's driver and an emulated chip
///
/// COMMAND finds a render node of the chip at /dev/dri/renderD128 and a screen at /dev/dri/card0. Other processes do
/// not see them. COMMAND needs neither changes nor special rights. Before COMMAND starts, `drm` creates an OpenGL
/// context in the same environment; if its renderer is not the chip's, COMMAND does not run. The exit status is that
/// of COMMAND, or 128 plus the number of the signal that ends it. Unless they are set, EGL_PLATFORM and
/// PIGLIT_PLATFORM request rendering without a window system.
#[derive(clap::Args)]
pub(crate) struct Drm {
    /// The chip: its name, a board's name or a PCI ID, for instance rv770, `Radeon HD 4870` or 9440
    #[arg(long, value_name = "NAME")]
    chip: String,
    /// Execute the driver's submissions (yes), or only count them (none)
    #[arg(long, value_name = "WHAT", default_value = "yes")]
    execute: Execute,
    #[command(flatten)]
    errata: ErrataArgs,
    #[command(flatten)]
    shaders: Shaders,
    /// Write the launch files of each draw's shaders into this folder, which must be new or empty; draws.jsonl lists
    /// the draws. `run`, `trace` and `debug` open the files, and select a pixel or vertex with --pixel or --vertex
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,
    /// Write each frame on the screen of /dev/dri/card0 as a picture into this folder, which must be new or empty. If
    /// DIR is `window`, a window shows the frames instead, and the program receives the window's keyboard and mouse
    /// input. For a folder with the name window, write ./window
    #[arg(long, value_name = "DIR")]
    screen: Option<PathBuf>,
    /// Record the frames on the screen of /dev/dri/card0 in a new video file, uncompressed, at 60 frames per second. A
    /// frame of another size, or the first frame of another process, starts a new file FILE-2.y4m
    #[arg(long, value_name = "FILE.y4m")]
    record: Option<PathBuf>,
    /// Replace all occurrences of the words OLD in shaders by the words NEW, before the chip runs the shaders. For
    /// example: 80000c10,00000001:80000c10,00000002
    #[arg(long, value_name = "OLD:NEW")]
    patch: Option<Patch>,
    /// Folder of a build of Mesa to use instead of the installed build: unpacked packages, or an installation prefix
    #[arg(long, value_name = "DIR")]
    driver: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The options that choose errata of the chip and faults of its driver.
#[derive(clap::Args)]
pub(crate) struct ErrataArgs {
    /// Errata of the chip to emulate: all, none, NAME,NAME or all,-NAME,-NAME (default: all, as on silicon).
    /// docs/mesa.md lists the errata
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) errata: Option<String>,
    /// Fix these faults of Mesa's driver: nv50-compute (default: no fixes, as on a real chip). docs/mesa.md lists the
    /// faults
    #[arg(long, value_name = "FIXES", value_parser = crate::args::driver_fixes())]
    pub(crate) driver_fixes: Option<DriverFixes>,
}

impl ErrataArgs {
    /// Checks that the errata and fixes belong to the driver of a board.
    ///
    /// # Errors
    /// Returns an error for an unknown erratum, for an erratum of another driver, and for fixes of another driver.
    pub(crate) fn check(&self, board: &Board) -> Result<()> {
        let chosen = self.errata.as_deref().map(|list| Errata::chosen(list, board.driver));
        chosen.transpose().map_err(|why| anyhow!("--errata: {why}"))?;
        match self.driver_fixes {
            Some(fixes) if fixes.driver() != board.driver => {
                bail!("--driver-fixes {fixes}: not for the driver of {}", board.chip)
            }
            _ => Ok(()),
        }
    }
}

/// Options for shaders: the engine that runs the shaders, and the folder to which the shaders are written.
#[derive(clap::Args)]
pub(crate) struct Shaders {
    /// Engine that runs programs (default: compiled). If the results of two engines in lockstep differ, the chip is
    /// reset
    #[arg(long, value_parser = crate::args::engine())]
    pub(crate) engine: Option<Engine>,
    /// Write each vertex and pixel program once into this folder, for check, lint and dis
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: Option<PathBuf>,
}

/// Whether the chip executes the driver's submissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Execute {
    /// Execute submissions
    Yes,
    /// Count submissions, without drawing
    None,
}

pub(crate) fn run(args: &Drm) -> Result<Answer> {
    let board = board(&args.chip)?;
    args.errata.check(board)?;
    if args.execute == Execute::None {
        let given = [("--capture", args.capture.is_some()), ("--patch", args.patch.is_some())];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            bail!("{option}: no shader runs with --execute none; omit --execute none");
        }
    }
    started(args, board)
}

#[cfg(target_os = "linux")]
fn started(args: &Drm, board: &'static Board) -> Result<Answer> {
    let driver = args.driver.as_deref().map(setup::Build::new).transpose()?.flatten();
    let setup = setup::Setup::new(board, args.execute == Execute::Yes, driver)?;
    let setup = setup.with_errata(&args.errata).with(&args.shaders)?;
    let folder = |option: &str, path: &Option<PathBuf>| {
        path.as_deref().map(|path| host::empty_folder(option, path)).transpose()
    };
    let (in_window, screen) = match &args.screen {
        Some(screen) if screen.as_os_str() == "window" => (true, &None),
        screen => (false, screen),
    };
    if in_window {
        window::check()?;
    }
    let wanted = host::Wanted {
        capture: folder("--capture", &args.capture)?,
        screen: folder("--screen", screen)?,
        record: args.record.as_deref().map(recording::RecordingFiles::new).transpose()?,
        patch: args.patch.as_ref(),
    };
    setup.check_renderer()?;
    let window = in_window.then(|| window::ScreenWindow::open(&args.command[0], board)).transpose()?;
    host::run(&setup, &args.command, &wanted, window)
}

#[cfg(not(target_os = "linux"))]
fn started(_args: &Drm, _board: &'static Board) -> Result<Answer> {
    bail!("drm is available only on Linux, because it runs Linux graphics drivers")
}

/// Returns a list of names and counts, for a message.
#[cfg(target_os = "linux")]
pub(crate) fn named_counts<N: std::fmt::Display>(counts: &std::collections::BTreeMap<N, u64>) -> String {
    let entries: Vec<String> = counts.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    entries.join(", ")
}

/// Returns the board with this name. The name can also be the name of a chip in the machine's table of chips.
pub(crate) fn board(name: &str) -> Result<&'static Board> {
    board_among(name, |_| true)
}

/// Returns the board with this name if `fits` accepts the board. If the name is unknown, the message lists the boards
/// that `fits` accepts.
pub(crate) fn board_among(name: &str, fits: impl Fn(&Board) -> bool) -> Result<&'static Board> {
    let known = || [Isa::R500, Isa::R700].into_iter().flat_map(chips);
    let alias = || known().find(|chip| chip.names().any(|known| known.eq_ignore_ascii_case(name)));
    if let Some(board) = Board::named(name).or_else(|| Board::named(alias()?.name)) {
        return Ok(board);
    }
    if let Some(isa) = isa_of_chip(name) {
        bail!("--chip {name}: not implemented: this command does not emulate {isa} chips");
    }
    let names: Vec<&str> = BOARDS.iter().filter(|board| fits(board)).map(|board| board.chip).collect();
    let meant = closest(name, names.iter().copied());
    let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
    Err(anyhow!("unknown --chip `{name}`: {meant}expected one of {}", names.join(", ")))
}
