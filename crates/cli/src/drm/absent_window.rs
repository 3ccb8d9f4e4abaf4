//! The window of `--screen window` in a build without the feature `window`.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Child, ExitStatus};

use anyhow::{Result, bail};
use reconverge_board::Board;

use crate::features::missing;

/// A type without values, because this build does not have a window.
pub(super) struct ScreenWindow(Infallible);

/// Returns an error that names the feature.
pub(super) fn check() -> Result<()> {
    bail!(
        "{}; --screen DIR and --record FILE write frames without a window",
        missing("--screen window", "window")
    )
}

impl ScreenWindow {
    pub(super) fn open(_program: &OsStr, _board: &Board) -> Result<ScreenWindow> {
        check().map(|()| unreachable!("the feature is missing"))
    }

    pub(super) fn folder(&self) -> &Path {
        match self.0 {}
    }

    pub(super) fn until_end(self, _child: &mut Child) -> io::Result<ExitStatus> {
        match self.0 {}
    }
}
