//! Commands and options whose feature this build omits. The messages of these commands and options name the feature.

#[cfg(not(feature = "campaign"))]
use std::ffi::OsString;

#[cfg(not(feature = "campaign"))]
use anyhow::{Result, anyhow};

#[cfg(not(feature = "campaign"))]
use crate::args::Answer;

/// Returns the message for a command or option that this build omits. The message names the feature that contains the
/// command or option.
pub(crate) fn missing(what: &str, feature: &str) -> String {
    format!(
        "{what} is not in this build: `cargo install --path crates/cli --features {feature}` builds the command with it, \
         `--features full` with all features"
    )
}

/// A command that is not in this build. It accepts any arguments.
#[cfg(not(feature = "campaign"))]
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Absent {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    arguments: Vec<OsString>,
}

#[cfg(not(feature = "campaign"))]
impl Absent {
    /// Whether the arguments request one JSON object.
    pub(crate) fn as_json(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "--json")
    }

    /// Returns an error that names the feature to which the command belongs.
    pub(crate) fn run(&self, command: &str) -> Result<Answer> {
        Err(anyhow!(missing(&format!("`reconverge {command}`"), command)))
    }
}
