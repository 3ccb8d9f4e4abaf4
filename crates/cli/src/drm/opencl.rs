//! `reconverge opencl`

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use reconverge_board::driver_fixes::DriverFixes;
use reconverge_board::patch::Patch;
use reconverge_board::{Board, Driver};

use super::{ErrataArgs, Shaders};
use crate::args::Answer;

/// Run an OpenCL program on Mesa's driver and an emulated NVIDIA chip
///
/// COMMAND finds one device, the chip, through Mesa's rusticl. OCL_ICD_VENDORS selects other implementations. Known
/// faults of Mesa's compute driver are fixed before the chip runs its commands, because otherwise no kernel with an
/// argument runs. The exit status is that of COMMAND, or 128 plus the number of the signal that ends it.
#[derive(clap::Args)]
pub(crate) struct OpenCl {
    /// The chip: its name, a board's name or a PCI ID, for instance gt215 or `GeForce GT 240`
    #[arg(long, value_name = "NAME", default_value = "gt215")]
    chip: String,
    /// Do not fix faults of Mesa's driver, as on silicon. docs/mesa.md lists the faults
    #[arg(long)]
    no_driver_fixes: bool,
    /// Errata of the chip to emulate: all, none, NAME,NAME or all,-NAME,-NAME (default: all, as on silicon).
    /// docs/mesa.md lists the errata
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    errata: Option<String>,
    #[command(flatten)]
    shaders: Shaders,
    /// Write each launch as a launch file for `run`, `trace` and `debug` into this folder, which must be new or
    /// empty; draws.jsonl lists the launches
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,
    /// Replace words of programs before the chip runs them, like `drm --patch`
    #[arg(long, value_name = "OLD:NEW")]
    patch: Option<Patch>,
    /// Folder of a build of Mesa to use instead of the installed build, like `drm --driver`
    #[arg(long, value_name = "DIR")]
    driver: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &OpenCl) -> Result<Answer> {
    let board = super::board_among(&args.chip, |board| board.driver == Driver::Nv50)?;
    if board.driver != Driver::Nv50 {
        bail!(
            "--chip {}: expected an NVIDIA chip; Mesa's rusticl does not have a driver for this chip",
            args.chip
        );
    }
    let fixes = (!args.no_driver_fixes).then_some(DriverFixes::Nv50Compute);
    let errata = ErrataArgs { errata: args.errata.clone(), driver_fixes: fixes };
    errata.check(board)?;
    started(args, board, &errata)
}

#[cfg(target_os = "linux")]
fn started(args: &OpenCl, board: &'static Board, errata: &ErrataArgs) -> Result<Answer> {
    use super::{host, setup};
    let driver = args.driver.as_deref().map(setup::Build::new).transpose()?.flatten();
    let setup =
        setup::Setup::new(board, true, driver)?.with_errata(errata).with(&args.shaders)?.with_opencl();
    let capture = args.capture.as_deref().map(|path| host::empty_folder("--capture", path)).transpose()?;
    setup.check_opencl()?;
    let wanted = host::Wanted { capture, screen: None, record: None, patch: args.patch.as_ref() };
    host::run(&setup, &args.command, &wanted, None)
}

#[cfg(not(target_os = "linux"))]
fn started(_args: &OpenCl, _board: &'static Board, _errata: &ErrataArgs) -> Result<Answer> {
    bail!("opencl is available only on Linux, because it runs Linux graphics drivers")
}
