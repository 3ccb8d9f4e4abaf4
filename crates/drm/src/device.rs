//! Which chip is emulated, from the environment.
//!
//! | variable | meaning |
//! |---|---|
//! | `RECONVERGE_DRM_CHIP` | a chip's name or a PCI id in hexadecimal digits; without it this library does nothing |
//! | `RECONVERGE_DRM_EXECUTE` | `yes` (the default): submissions are executed; `none`: only counted |
//! | `RECONVERGE_DRM_ENGINE` | the engine that runs shaders, as `--engine` spells it; without it the fast one |
//! | `RECONVERGE_DRM_PROGRAMS` | a folder to which shaders are written, see [`programs`](crate::programs) |
//! | `RECONVERGE_DRM_REPORT` | a file to which [`report`](crate::report) lines are appended |
//! | `RECONVERGE_DRM_PROBE` | set: the process says which renderer it finds and ends, see [`probe`](crate::probe) |

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;

use reconverge_gpu::Gpu;
use reconverge_gpu::device::Board;
use reconverge_simt::Engine;

use crate::messages::say_once;

/// What is emulated.
#[derive(Debug)]
pub(crate) struct Device {
    /// The board.
    pub(crate) board: &'static Board,
    /// Whether submissions are executed, rather than only counted.
    pub(crate) execute: bool,
    /// What runs shaders.
    pub(crate) engine: Engine,
    /// Where shaders are written.
    pub(crate) programs: Option<PathBuf>,
    /// Where the report goes.
    pub(crate) report: Option<PathBuf>,
}

/// What the environment asks for; nothing where it does not, or where it cannot be read, which is said.
pub(crate) fn chosen() -> Option<&'static Device> {
    static CHOSEN: OnceLock<Option<Device>> = OnceLock::new();
    let read = || {
        let variable = |name: &str| std::env::var_os(name);
        let chip = variable("RECONVERGE_DRM_CHIP")?;
        let [execute, engine] = ["EXECUTE", "ENGINE"].map(|name| variable(&format!("RECONVERGE_DRM_{name}")));
        let device =
            device(&chip, execute.as_deref(), engine.as_deref()).inspect_err(|why| say_once(why)).ok()?;
        let path = |name| variable(name).map(PathBuf::from);
        let (programs, report) = (path("RECONVERGE_DRM_PROGRAMS"), path("RECONVERGE_DRM_REPORT"));
        Some(Device { programs, report, ..device })
    };
    CHOSEN.get_or_init(read).as_ref()
}

/// The device that the variables' values ask for, without its files.
fn device(chip: &OsStr, execute: Option<&OsStr>, engine: Option<&OsStr>) -> Result<Device, String> {
    let unknown = || format!("RECONVERGE_DRM_CHIP: no such chip: {}", chip.display());
    let board = chip.to_str().and_then(Board::named).ok_or_else(unknown)?;
    let execute = match execute.map(|value| value.to_str()) {
        None | Some(Some("yes")) => true,
        Some(Some("none")) => false,
        _ => return Err("RECONVERGE_DRM_EXECUTE is yes or none".to_owned()),
    };
    let engine = match engine {
        None => Engine::Fast,
        Some(name) => name.to_str().and_then(Engine::from_name).ok_or_else(|| {
            let names = Engine::ALL.map(Engine::name).join(", ");
            format!("RECONVERGE_DRM_ENGINE: {}: one of {names} fits here", name.display())
        })?,
    };
    Ok(Device { board, execute, engine, programs: None, report: None })
}

/// What executes submissions to the device: the only place where a chip is made.
pub(crate) fn chip(device: &Device) -> Option<Box<dyn Gpu>> {
    let mut gpu = device.board.gpu(device.engine)?;
    if device.programs.is_some() {
        gpu.keep_programs();
    }
    Some(gpu)
}

#[cfg(test)]
mod tests {
    use reconverge_gpu::device::BOARDS;
    use reconverge_r700::chip::CHIPS;

    use super::*;

    #[test]
    fn every_chip_of_the_machine_is_on_a_board() {
        let mut boards: Vec<&str> = BOARDS.iter().map(|board| board.chip).collect();
        let mut chips: Vec<&str> = CHIPS.iter().map(|chip| chip.name).collect();
        boards.sort_unstable();
        chips.sort_unstable();
        assert_eq!(boards, chips);
    }

    #[test]
    fn values_that_mean_nothing_are_refused_by_name() {
        let refused = |chip: &str, execute: Option<&str>| {
            device(OsStr::new(chip), execute.map(OsStr::new), None).unwrap_err()
        };
        assert!(refused("rv71", None).contains("RECONVERGE_DRM_CHIP: no such chip: rv71"));
        assert!(refused("rv710", Some("no")).contains("RECONVERGE_DRM_EXECUTE"));
        let engine =
            |name: &str| device(OsStr::new("9440"), Some(OsStr::new("none")), Some(OsStr::new(name)));
        assert!(
            engine("quick").unwrap_err().contains("RECONVERGE_DRM_ENGINE: quick: one of reference, fast")
        );
        let device = engine("lockstep").unwrap();
        assert_eq!((device.board.chip, device.execute, device.engine), ("rv770", false, Engine::Lockstep));
    }
}
