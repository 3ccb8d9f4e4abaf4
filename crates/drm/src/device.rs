//! Which chip is emulated, from the environment.
//!
//! | variable | meaning |
//! |---|---|
//! | `RECONVERGE_DRM_CHIP` | a chip's name or a PCI id in hexadecimal digits; without it this library does nothing |
//! | `RECONVERGE_DRM_EXECUTE` | `yes` (the default): submissions are executed; `none`: only counted |
//! | `RECONVERGE_DRM_REPORT` | a file to which [`report`](crate::report) lines are appended |
//! | `RECONVERGE_DRM_PROBE` | set: the process says which renderer it finds and ends, see [`probe`](crate::probe) |

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::OnceLock;

use reconverge_gpu::Gpu;
use reconverge_gpu::device::Board;

use crate::messages::say_once;

/// What is emulated.
#[derive(Debug)]
pub(crate) struct Device {
    /// The board.
    pub(crate) board: &'static Board,
    /// Whether submissions are executed, rather than only counted.
    pub(crate) execute: bool,
    /// Where the report goes.
    pub(crate) report: Option<PathBuf>,
}

/// What the environment asks for; nothing where it does not, or where it cannot be read, which is said.
pub(crate) fn chosen() -> Option<&'static Device> {
    static CHOSEN: OnceLock<Option<Device>> = OnceLock::new();
    let read = || {
        let variable = |name: &str| std::env::var_os(name);
        let chip = variable("RECONVERGE_DRM_CHIP")?;
        let report = variable("RECONVERGE_DRM_REPORT").map(PathBuf::from);
        device(&chip, variable("RECONVERGE_DRM_EXECUTE").as_deref(), report)
            .inspect_err(|why| say_once(why))
            .ok()
    };
    CHOSEN.get_or_init(read).as_ref()
}

/// The device that the variables' values ask for.
fn device(chip: &OsStr, execute: Option<&OsStr>, report: Option<PathBuf>) -> Result<Device, String> {
    let unknown = || format!("RECONVERGE_DRM_CHIP: no such chip: {}", chip.display());
    let board = chip.to_str().and_then(Board::named).ok_or_else(unknown)?;
    let execute = match execute.map(|value| value.to_str()) {
        None | Some(Some("yes")) => true,
        Some(Some("none")) => false,
        _ => return Err("RECONVERGE_DRM_EXECUTE is yes or none".to_owned()),
    };
    Ok(Device { board, execute, report })
}

/// What executes submissions to the device: the only place where a chip is made.
pub(crate) fn chip(device: &Device) -> Option<Box<dyn Gpu>> {
    device.board.gpu()
}

#[cfg(test)]
mod tests {
    use reconverge_gpu::device::{BOARDS, Driver};
    use reconverge_r700::chip::CHIPS;

    use super::*;

    #[test]
    fn every_chip_of_the_machine_is_on_a_board() {
        let radeons = BOARDS.iter().filter(|board| board.driver == Driver::R600);
        let mut boards: Vec<&str> = radeons.map(|board| board.chip).collect();
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
        let device = device(OsStr::new("9440"), Some(OsStr::new("none")), None).unwrap();
        assert_eq!((device.board.chip, device.execute), ("rv770", false));
    }
}
