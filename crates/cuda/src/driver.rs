//! The state of the process: the chip, and the addresses that are in use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use reconverge_simt::{Engine, Options};
use reconverge_tesla::inst::Chip;

use crate::addresses::Addresses;
use crate::board::Board;
use crate::call::in_host_function;
use crate::messages::say;
use crate::status::CudaError;

/// The environment variable with the name of the chip.
const CHIP: &str = "RECONVERGE_CUDA_CHIP";
/// The environment variable with the name of the engine.
const ENGINE: &str = "RECONVERGE_CUDA_ENGINE";

/// The environment variable with the maximum number of instructions that a block may issue.
const WATCHDOG: &str = "RECONVERGE_CUDA_WATCHDOG";

/// The environment variable that turns on the search for races on shared memory.
const RACE_CHECK: &str = "RECONVERGE_CUDA_RACE_CHECK";

/// The chip that is used if the environment does not name a chip. The compute capability of this chip is 1.2.
const DEFAULT_CHIP: Chip = Chip::Gt215;

/// The state of the library in a process.
#[derive(Debug)]
pub(crate) struct Driver {
    /// The board of the chip.
    pub(crate) board: &'static Board,
    /// The engine and the limits for kernels.
    pub(crate) options: Options,
    /// The addresses of the device that are in use.
    pub(crate) addresses: Mutex<Addresses>,
}

static DRIVER: OnceLock<Result<Driver, CudaError>> = OnceLock::new();
static READY: AtomicBool = AtomicBool::new(false);

/// Returns the state that `cuInit` has created.
///
/// # Errors
/// Returns `CUDA_ERROR_NOT_INITIALIZED` before the program calls `cuInit`. Returns `CUDA_ERROR_NOT_PERMITTED` in a host
/// function that a stream runs.
pub(crate) fn driver() -> Result<&'static Driver, CudaError> {
    if in_host_function() {
        return Err(CudaError::NOT_PERMITTED);
    }
    match DRIVER.get() {
        Some(Ok(driver)) if READY.load(Ordering::Acquire) => Ok(driver),
        _ => Err(CudaError::NOT_INITIALIZED),
    }
}

/// Returns `table`, if the driver is initialized.
///
/// # Errors
/// Returns the errors of [`driver`].
pub(crate) fn ready<T>(table: &'static T) -> Result<&'static T, CudaError> {
    driver().map(|_| table)
}

/// Returns the state. Only code that runs after `cuInit` may call this function.
pub(crate) fn started() -> Result<&'static Driver, CudaError> {
    match DRIVER.get() {
        Some(Ok(driver)) => Ok(driver),
        _ => Err(CudaError::NOT_INITIALIZED),
    }
}

/// `cuInit`
pub(crate) fn init(flags: u32) -> Result<(), CudaError> {
    if flags != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    match DRIVER.get_or_init(start) {
        Ok(_) => {
            READY.store(true, Ordering::Release);
            Ok(())
        }
        Err(error) => Err(*error),
    }
}

fn start() -> Result<Driver, CudaError> {
    if !is_visible(std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref()) {
        return Err(CudaError::NO_DEVICE);
    }
    let chip = match std::env::var(CHIP) {
        Err(_) => DEFAULT_CHIP,
        Ok(name) => Chip::from_name(&name).ok_or_else(|| {
            let known: Vec<&str> = Chip::ALL.into_iter().map(Chip::name).collect();
            say(&format!("{CHIP}: unknown chip `{name}`: expected one of {}", known.join(", ")));
            CudaError::NO_DEVICE
        })?,
    };
    let engine = match std::env::var(ENGINE) {
        Err(_) => Engine::Compiled,
        Ok(name) => Engine::from_name(&name).ok_or_else(|| {
            let known: Vec<&str> = Engine::ALL.into_iter().map(Engine::name).collect();
            say(&format!("{ENGINE}: unknown engine `{name}`: expected one of {}", known.join(", ")));
            CudaError::INVALID_VALUE
        })?,
    };
    let defaults = Options::default();
    let watchdog = match std::env::var(WATCHDOG) {
        Err(_) => defaults.watchdog,
        Ok(number) => number.parse().map_err(|_| {
            say(&format!("{WATCHDOG}: expected a number of instructions, found `{number}`"));
            CudaError::INVALID_VALUE
        })?,
    };
    let board = Board::of(chip);
    Ok(Driver {
        board,
        options: Options { engine, watchdog, race_check: std::env::var_os(RACE_CHECK).is_some(), ..defaults },
        addresses: Mutex::new(Addresses::new(board.memory)),
    })
}

/// Whether the list of visible devices begins with device 0. If the list contains an invalid index, only the devices
/// before the invalid index are visible. (CUDA C Programming Guide, "CUDA environment variables")
fn is_visible(list: Option<&str>) -> bool {
    list.is_none_or(|list| {
        let first = list.split(',').next().unwrap_or_default().trim();
        first == "0" || first.starts_with("GPU-")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_devices_hides_the_device_if_it_does_not_begin_with_it() {
        assert!(is_visible(None) && is_visible(Some("0")) && is_visible(Some("0,1")));
        assert!(!is_visible(Some("")) && !is_visible(Some("-1")) && !is_visible(Some("1,0")));
    }
}
