//! Selects the emulated chip from environment variables.
//!
//! | variable | meaning |
//! |---|---|
//! | `RECONVERGE_DRM_CHIP` | a chip's name or a PCI id in hexadecimal digits |
//! | `RADEON_GPU_ID`, `NOUVEAU_CHIPSET` | the PCI id of a Radeon, or the number of an NVIDIA chip, in hexadecimal digits, as for Mesa's drm-shim. Without `RECONVERGE_DRM_CHIP`, these two variables select the chip. If none of the three variables is set, this library does nothing |
//! | `RECONVERGE_DRM_EXECUTE` | with `yes` (the default), submissions are executed. With `none`, submissions are only counted |
//! | `RECONVERGE_DRM_ENGINE` | the engine that runs shaders. The possible values are the values of the option `--engine`. The default is [the compiled engine](ENGINE) |
//! | `RECONVERGE_DRM_ERRATA` | the errata of the chip that are emulated. The possible values are the values of the option `--errata`. By default, all errata are emulated |
//! | `RECONVERGE_DRM_DRIVER_FIXES` | the known driver faults that the chip works around. The possible values are the values of the option `--driver-fixes`. By default, the chip works around no faults |
//! | `RECONVERGE_DRM_PROGRAMS` | a folder into which programs are written, see [`programs`](crate::programs) |
//! | `RECONVERGE_DRM_REPORT` | a file to which [`report`](crate::report) lines are appended |
//! | `RECONVERGE_DRM_SCREEN` | a folder to which the shown frames are written, see [`screen`](crate::screen) |
//! | `RECONVERGE_DRM_RECORD` | a file that records the shown frames, see `screen/record.rs` |
//! | `RECONVERGE_DRM_WINDOW` | a folder with sockets: the sockets of the window that shows the frames, and the sockets of the [`input`](crate::input) devices, see [`reconverge_board::screen`] |
//! | `RECONVERGE_DRM_CAPTURE` | a folder into which draws are captured, see [`capture`](crate::capture) |
//! | `RECONVERGE_DRM_CAPTURE_FROM` | the number of the first draw that is captured. By default, all draws are captured |
//! | `RECONVERGE_DRM_PATCH` | old words of programs and new words, in the form `OLD:NEW`. The new words replace the old words |
//! | `RECONVERGE_DRM_SURFACES` | a folder to which the contents of surfaces are written after each draw, see [`surfaces`](crate::surfaces) |
//! | `RECONVERGE_DRM_SURFACES_OF` | the number of the draw whose surfaces are written completely |
//! | `RECONVERGE_DRM_PROBE`, `RECONVERGE_DRM_LOAD` | with one of these variables, the process prints the name of its renderer or measures the renderer. Then the process ends, see [`probe`](crate::probe) |

use std::ffi::OsStr;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use reconverge_board::driver_fixes::DriverFixes;
use reconverge_board::errata::{Errata, ErrataError};
use reconverge_board::patch::PatchError;
use reconverge_board::{BOARDS, Board, Driver};
use reconverge_gpu::Gpu;
use reconverge_simt::Engine;

use crate::messages::say_once;
use crate::watch::Watch;

/// The emulated device and its options.
#[derive(Debug)]
pub(crate) struct Device {
    /// The emulated board.
    pub(crate) board: &'static Board,
    /// The PCI id that the device reports. The PCI id belongs to the board or to another board with the same chip.
    pub(crate) pci: u16,
    /// Whether submissions are executed. If false, submissions are only counted.
    pub(crate) execute: bool,
    /// The engine that runs shaders.
    pub(crate) engine: Engine,
    /// The errata of the chip that are emulated.
    pub(crate) errata: Errata,
    /// The set of known driver faults that the chip works around.
    pub(crate) fixes: Option<DriverFixes>,
    /// The file to which the report is appended.
    pub(crate) report: Option<PathBuf>,
    /// The folder to which shown frames are written.
    pub(crate) screen: Option<PathBuf>,
    /// The file that records the frames.
    pub(crate) record: Option<PathBuf>,
    /// The folder with the sockets of the window.
    pub(crate) window: Option<PathBuf>,
    /// Observers of the chip.
    pub(crate) watch: Watch,
}

impl Device {
    /// Returns a device that emulates a board and has the default options. The device writes no files.
    pub(crate) fn new(board: &'static Board) -> Device {
        Device {
            board,
            pci: board.pci,
            execute: true,
            engine: ENGINE,
            errata: Errata::default(),
            fixes: None,
            report: None,
            screen: None,
            record: None,
            window: None,
            watch: Watch::default(),
        }
    }
}

/// Returns the device that the environment variables select. Returns `None` if no variable names a chip. If a variable
/// is invalid, reports the error and also returns `None`.
pub(crate) fn chosen() -> Option<&'static Device> {
    // This variable is not a `OnceLock`. If one thread forked while another thread initialised a `OnceLock`, the child
    // would wait for the `OnceLock` forever.
    static CHOSEN: AtomicPtr<Option<Device>> = AtomicPtr::new(null_mut());
    // SAFETY: if the pointer is not null, the value behind the pointer is never freed and has only shared references.
    if let Some(chosen) = unsafe { CHOSEN.load(Ordering::Acquire).as_ref() } {
        return chosen.as_ref();
    }
    let read = || {
        let variable = |name: &str| std::env::var_os(name);
        let (name, chip) = CHIP_VARIABLES.iter().find_map(|name| Some((*name, variable(name)?)))?;
        let path = |name: &str| variable(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let execute = variable("RECONVERGE_DRM_EXECUTE");
        let found =
            device((name, &chip), execute.as_deref(), path("RECONVERGE_DRM_REPORT")).and_then(|device| {
                let patch = variable("RECONVERGE_DRM_PATCH").filter(|patch| !patch.is_empty());
                let patch = patch.map(|patch| {
                    let patch = patch.to_string_lossy().parse();
                    patch.map_err(|why: PatchError| format!("RECONVERGE_DRM_PATCH: {why}"))
                });
                let draw = |name: &str| {
                    let number = variable(name).map(|number| {
                        let number = number.to_str().and_then(|number| number.parse::<u64>().ok());
                        number.ok_or_else(|| format!("{name}: expected the number of a draw"))
                    });
                    number.transpose()
                };
                let whole = draw("RECONVERGE_DRM_SURFACES_OF")?;
                let watch = Watch {
                    capture: path("RECONVERGE_DRM_CAPTURE"),
                    capture_from: draw("RECONVERGE_DRM_CAPTURE_FROM")?.unwrap_or(0),
                    patch: patch.transpose()?,
                    surfaces: path("RECONVERGE_DRM_SURFACES").map(|path| (path, whole)),
                    programs: path("RECONVERGE_DRM_PROGRAMS"),
                    ..Watch::default()
                };
                let engine = engine(variable("RECONVERGE_DRM_ENGINE").as_deref())?;
                let errata = errata(variable("RECONVERGE_DRM_ERRATA").as_deref(), device.board)?;
                let fixes = fixes(variable("RECONVERGE_DRM_DRIVER_FIXES").as_deref(), device.board)?;
                let [screen, record, window] =
                    ["SCREEN", "RECORD", "WINDOW"].map(|name| path(&format!("RECONVERGE_DRM_{name}")));
                Ok(Device { engine, errata, fixes, screen, record, window, watch, ..device })
            });
        found.inspect_err(|why| say_once(why)).ok()
    };
    let made = Box::into_raw(Box::new(read()));
    // If another thread has already stored a value, this thread uses the stored value. In this case, the value that
    // this thread created is never freed.
    let chosen = match CHOSEN.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(other) => other,
    };
    // SAFETY: the value behind `chosen` is never freed and has only shared references.
    unsafe { (*chosen).as_ref() }
}

/// The environment variables that name a chip. The library uses the first variable that is set.
const CHIP_VARIABLES: [&str; 3] = ["RECONVERGE_DRM_CHIP", RADEON, NOUVEAU];

/// Environment variable of Mesa's drm-shim for Radeons. The value of the variable is a PCI id. (Mesa
/// `src/amd/drm-shim/radeon_noop_drm_shim.c`)
const RADEON: &str = "RADEON_GPU_ID";

/// Environment variable of Mesa's drm-shim for NVIDIA chips. The value of the variable is the number of a chip. (Mesa
/// `src/nouveau/drm-shim/nouveau_noop.c`)
const NOUVEAU: &str = "NOUVEAU_CHIPSET";

/// Returns the board that the value of an environment variable names, and the PCI id that the device reports.
fn board(variable: &str, value: &OsStr) -> Option<(&'static Board, u16)> {
    let text = value.to_str()?;
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let number = u16::from_str_radix(digits, 16).ok();
    let board = match variable {
        RADEON => Board::of_id(number?).filter(|board| board.driver != Driver::Nv50),
        NOUVEAU => Board::of_chipset(number?),
        _ => Board::named(text),
    }?;
    let id = number.filter(|number| board.ids().contains(number));
    Some((board, id.unwrap_or(board.pci)))
}

/// Returns the device that the values of environment variables describe. The first parameter contains a variable that
/// names a chip, and the value of this variable.
fn device(
    (variable, chip): (&str, &OsStr),
    execute: Option<&OsStr>,
    report: Option<PathBuf>,
) -> Result<Device, String> {
    let unknown = || match variable {
        RADEON => format!("{RADEON}: {}: expected the PCI id of an R500, R600 or R700 chip", chip.display()),
        NOUVEAU => {
            let numbers = BOARDS.iter().filter_map(Board::chipset).map(|number| format!("{number:x}"));
            let numbers = numbers.collect::<Vec<_>>().join(", ");
            format!("{NOUVEAU}: {}: expected one of {numbers}", chip.display())
        }
        _ => format!("{variable}: unknown chip: {}", chip.display()),
    };
    let (board, pci) = board(variable, chip).ok_or_else(unknown)?;
    let execute = match execute.map(|value| value.to_str()) {
        None | Some(Some("yes")) => true,
        Some(Some("none")) => false,
        _ => return Err("RECONVERGE_DRM_EXECUTE: expected `yes` or `none`".to_owned()),
    };
    Ok(Device { pci, execute, report, ..Device::new(board) })
}

/// The default engine. The default engine compiles loops to host code and runs other code in the fast engine. On gt215,
/// the default engine needs half the time of the fast engine for a shader with a loop.
const ENGINE: Engine = Engine::Compiled;

/// Returns the engine with this name.
fn engine(name: Option<&OsStr>) -> Result<Engine, String> {
    let Some(name) = name else { return Ok(ENGINE) };
    name.to_str().and_then(Engine::from_name).ok_or_else(|| {
        let names = Engine::ALL.map(Engine::name).join(", ");
        format!("RECONVERGE_DRM_ENGINE: {}: expected one of {names}", name.display())
    })
}

/// Returns the errata that a list turns on.
fn errata(list: Option<&OsStr>, board: &Board) -> Result<Errata, String> {
    let Some(list) = list else { return Ok(Errata::default()) };
    let errata = Errata::chosen(&list.to_string_lossy(), board.driver);
    errata.map_err(|why: ErrataError| format!("RECONVERGE_DRM_ERRATA: {why}"))
}

/// Returns the set of driver faults that a name selects, or `None` without a name.
fn fixes(name: Option<&OsStr>, board: &Board) -> Result<Option<DriverFixes>, String> {
    let Some(name) = name else { return Ok(None) };
    let fixes = name.to_str().and_then(DriverFixes::from_name).filter(|fixes| fixes.driver() == board.driver);
    let refused = || {
        let all = DriverFixes::ALL.into_iter().filter(|fixes| fixes.driver() == board.driver);
        let all: Vec<_> = all.map(DriverFixes::name).collect();
        let there_are = if all.is_empty() { "no fixes are known".to_owned() } else { all.join(", ") };
        format!("RECONVERGE_DRM_DRIVER_FIXES: {}: for {}: {there_are}", name.display(), board.chip)
    };
    fixes.map(Some).ok_or_else(refused)
}

/// Creates the chip that executes the submissions to a device. No other function creates a chip.
pub(crate) fn chip(device: &'static Device) -> Option<Box<dyn Gpu>> {
    let mut gpu = reconverge_gpu::device::chip_with(device.board, device.errata, device.fixes)?;
    gpu.use_engine(device.engine);
    if let Some(watcher) = device.watch.watcher() {
        gpu.observe(watcher);
    }
    Some(gpu)
}

/// Returns the version of the kernel driver that the node reports. The requests of Mesa depend on this version.
pub(crate) fn kernel_version(driver: Driver) -> [i32; 3] {
    match driver {
        Driver::Nv50 => [1, 3, 1],
        _ => [2, 50, 0],
    }
}

#[cfg(test)]
mod tests {
    use reconverge_r500::chip::CHIPS as R500_CHIPS;
    use reconverge_r700::chip::CHIPS;

    use super::*;

    #[test]
    fn every_chip_of_the_machines_is_on_a_board() {
        let radeons = BOARDS.iter().filter(|board| board.driver != Driver::Nv50);
        let mut boards: Vec<&str> = radeons.map(|board| board.chip).collect();
        let mut chips: Vec<String> = CHIPS.iter().map(|chip| chip.name.to_owned()).collect();
        chips.extend(R500_CHIPS.iter().map(|chip| chip.name.to_lowercase()));
        boards.sort_unstable();
        chips.sort_unstable();
        assert_eq!(boards, chips);
    }

    #[test]
    fn an_engine_is_one_of_a_list() {
        assert_eq!(engine(None), Ok(Engine::Compiled));
        assert_eq!(engine(Some(OsStr::new("lockstep"))), Ok(Engine::Lockstep));
        let refused = engine(Some(OsStr::new("quick"))).unwrap_err();
        assert!(
            refused.contains("RECONVERGE_DRM_ENGINE: quick: expected one of reference, fast"),
            "{refused}"
        );
    }

    #[test]
    fn errata_are_those_of_the_chip() {
        use reconverge_board::errata::Erratum;
        let board = Board::named("rv515").unwrap();
        assert_eq!(errata(None, board), Ok(Errata::ALL));
        let some = errata(Some(OsStr::new("signed-rgtc")), board);
        assert_eq!(some, Ok(Errata::NONE.with(Erratum::SignedRgtc)));
        let refused = |list: &str| errata(Some(OsStr::new(list)), board).unwrap_err();
        assert!(refused("rgtc").starts_with("RECONVERGE_DRM_ERRATA: unknown erratum `rgtc`: expected "));
        assert!(refused("flat-back").contains("expected alpha-test, "));
    }

    /// The examples are from Mesa's `src/amd/drm-shim/README.md` and `src/nouveau/drm-shim/README.md`.
    #[test]
    fn variables_of_drm_shim_name_a_chip() {
        let found = |variable: &str, value: &str| {
            device((variable, OsStr::new(value)), None, None).map(|device| (device.board.chip, device.pci))
        };
        assert_eq!(found(RADEON, "0x7142"), Ok(("rv515", 0x7142)));
        assert_eq!(found(RADEON, "9440"), Ok(("rv770", 0x9440)));
        assert_eq!(found(NOUVEAU, "a3"), Ok(("gt215", 0x0ca3)));
        assert_eq!(found(NOUVEAU, "0xAC"), Ok(("mcp79", 0x0861)));
        assert!(found(RADEON, "0x0ca3").unwrap_err().contains("RADEON_GPU_ID: 0x0ca3"));
        assert!(found(NOUVEAU, "e4").unwrap_err().contains("NOUVEAU_CHIPSET: e4: expected one of 50, 84,"));
    }

    #[test]
    fn values_that_mean_nothing_are_refused_by_name() {
        let refused = |chip: &str, execute: Option<&str>| {
            device((CHIP_VARIABLES[0], OsStr::new(chip)), execute.map(OsStr::new), None).unwrap_err()
        };
        assert!(refused("rv71", None).contains("RECONVERGE_DRM_CHIP: unknown chip: rv71"));
        assert!(refused("rv710", Some("no")).contains("RECONVERGE_DRM_EXECUTE"));
        let device = device((CHIP_VARIABLES[0], OsStr::new("9440")), Some(OsStr::new("none")), None).unwrap();
        assert_eq!((device.board.chip, device.execute), ("rv770", false));
    }
}
