//! The source and the launch file of a request. A launch file may omit the machine if the source states the machine.

use std::borrow::Cow;

use reconverge_isa::Isa;
use reconverge_isa::expand::Given;
use reconverge_isa::source::Diagnostic;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::open::OpenError;
use reconverge_workbench::text::Source;
use reconverge_workbench::{Known, Opened, open};

/// Returns a launch file that states a machine. If `launch` does not state a machine, inserts the source's machine at
/// the start of `launch`. Also returns the number of inserted bytes. Returns `None` if neither the launch file nor the
/// source states a machine.
pub(crate) fn with_machine<'a>(launch: &'a str, source: &str) -> Option<(Cow<'a, str>, usize)> {
    // If the launch file cannot be parsed, this function returns the launch file unchanged. The caller reports the
    // error later.
    if LaunchFile::fields(launch).map_or(true, |fields| fields.contains_key("isa")) {
        return Some((Cow::Borrowed(launch), 0));
    }
    let isa = isa_of(source)?;
    Some(match launch.trim_start().strip_prefix('{') {
        Some(rest) => {
            let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
            let added = format!("{{\"isa\": \"{isa}\"{comma}");
            (Cow::Owned(format!("{added}{rest}")), added.len())
        }
        None => {
            let added = format!("isa = \"{isa}\"\n");
            (Cow::Owned(format!("{added}{launch}")), added.len())
        }
    })
}

/// Returns the machine that a source states.
fn isa_of(source: &str) -> Option<Isa> {
    read(source).ok()?.isa()
}

/// Reads a source, with its macros expanded.
///
/// # Errors
/// Returns an error if the source has a wrong macro or directive, or if the source includes a file.
pub(crate) fn read(source: &str) -> Result<Source<'_>, Vec<Diagnostic>> {
    Source::new(source, &Given::default())
}

/// Opens a source for a launch. The launch may state the machine, the chip and the program type.
///
/// # Errors
/// Returns an error if the source does not assemble. Also returns an error if the source is for another machine or chip
/// than the launch.
pub(crate) fn opened(source: &str, launch: &LaunchFile) -> Result<Opened, OpenError> {
    let chip = launch.common.chip.clone();
    let stage = launch.stage().ok().flatten();
    open(source.as_bytes(), true, &Known { isa: Some(launch.isa), chip, stage, ..Known::default() })
}
