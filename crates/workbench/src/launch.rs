//! Launch files, whatever the machine: parsed, asked, run.

use reconverge_isa::program::UnknownIsa;
use reconverge_isa::{Image, Isa, Program};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::request::{Error, How};
use crate::result::RunResult;
use crate::values::Files;
use crate::{r500, r700, tesla};

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())
    } else {
        toml::from_str(text).map_err(|error| error.to_string())
    }
}

/// A launch of one of the machines.
#[derive(Clone, Debug)]
pub enum LaunchFile {
    /// On R500.
    R500(r500::LaunchFile),
    /// On R700.
    R700(Box<r700::LaunchFile>),
    /// On Tesla.
    Tesla(tesla::LaunchFile),
}

impl LaunchFile {
    /// Reads a launch file: TOML, or JSON with the same names when the text begins with a brace.
    ///
    /// # Errors
    /// What is wrong with the text, for people.
    pub fn parse(text: &str) -> Result<LaunchFile, String> {
        #[derive(Deserialize)]
        struct Header {
            isa: Option<String>,
        }
        let header: Header = read(text)?;
        let missing = || "the launch file names no machine: add a line such as isa = \"r500\"".to_owned();
        let isa: Isa =
            header.isa.ok_or_else(missing)?.parse().map_err(|unknown: UnknownIsa| unknown.to_string())?;
        Ok(match isa {
            Isa::R500 => LaunchFile::R500(read(text)?),
            Isa::R700 => LaunchFile::R700(Box::new(read(text)?)),
            Isa::Tesla => LaunchFile::Tesla(read(text)?),
        })
    }

    /// The machine.
    pub const fn isa(&self) -> Isa {
        match self {
            LaunchFile::R500(_) => Isa::R500,
            LaunchFile::R700(_) => Isa::R700,
            LaunchFile::Tesla(_) => Isa::Tesla,
        }
    }

    /// The program's file.
    pub fn program(&self) -> Option<&str> {
        match self {
            LaunchFile::R500(file) => file.program.as_deref(),
            LaunchFile::R700(file) => file.program.as_deref(),
            LaunchFile::Tesla(file) => file.program.as_deref(),
        }
    }

    /// The program's name in its file.
    pub fn kernel(&self) -> Option<&str> {
        match self {
            LaunchFile::R500(_) => None,
            LaunchFile::R700(file) => file.kernel.as_deref(),
            LaunchFile::Tesla(file) => file.kernel.as_deref(),
        }
    }

    /// The program type that the launch states.
    pub fn stage(&self) -> Option<&str> {
        match self {
            LaunchFile::R500(_) => None,
            LaunchFile::R700(file) => file.stage.as_deref(),
            LaunchFile::Tesla(file) => file.stage.as_deref(),
        }
    }

    /// The chip.
    pub fn chip(&self) -> Option<&str> {
        match self {
            LaunchFile::R500(file) => file.chip.as_deref(),
            LaunchFile::R700(file) => file.chip.as_deref(),
            LaunchFile::Tesla(file) => file.chip.as_deref(),
        }
    }

    /// The chip, for changing.
    pub fn chip_mut(&mut self) -> &mut Option<String> {
        match self {
            LaunchFile::R500(file) => &mut file.chip,
            LaunchFile::R700(file) => &mut file.chip,
            LaunchFile::Tesla(file) => &mut file.chip,
        }
    }

    /// `strict` or `lenient`, for changing.
    pub fn mode_mut(&mut self) -> &mut Option<String> {
        match self {
            LaunchFile::R500(file) => &mut file.mode,
            LaunchFile::R700(file) => &mut file.mode,
            LaunchFile::Tesla(file) => &mut file.mode,
        }
    }

    /// The instructions that may be issued, for changing.
    pub fn watchdog_mut(&mut self) -> &mut Option<u64> {
        match self {
            LaunchFile::R500(file) => &mut file.watchdog,
            LaunchFile::R700(file) => &mut file.watchdog,
            LaunchFile::Tesla(file) => &mut file.watchdog,
        }
    }

    /// The files that the launch names, besides its program.
    pub fn files(&self) -> Vec<String> {
        match self {
            LaunchFile::R500(file) => file.files(),
            LaunchFile::R700(file) => file.files(),
            LaunchFile::Tesla(file) => file.files(),
        }
    }

    /// Part of the message of the trap that the program must end with.
    pub fn trap(&self) -> Option<&str> {
        match self {
            LaunchFile::R500(file) => file.trap.as_deref(),
            LaunchFile::R700(file) => file.trap.as_deref(),
            LaunchFile::Tesla(file) => file.trap.as_deref(),
        }
    }

    /// Whether it says what must come out.
    pub fn expects_something(&self) -> bool {
        let outputs = match self {
            LaunchFile::R500(file) => file.expect.len(),
            LaunchFile::R700(file) => file.expect.len(),
            LaunchFile::Tesla(file) => file.expect.len(),
        };
        outputs > 0 || self.trap().is_some()
    }

    /// Runs the launch of `program`, which stands in `image`.
    ///
    /// # Errors
    /// [`Error::Trap`] is the program's fault, the others are the request's.
    pub fn run(
        &self,
        image: &Image,
        program: &Program,
        how: How,
        files: &dyn Files,
    ) -> Result<RunResult, Error> {
        match self {
            LaunchFile::R500(file) => r500::run(file, program, how, files),
            LaunchFile::R700(file) => r700::run(file, program, how, files),
            LaunchFile::Tesla(file) => tesla::run(file, image, program, how, files),
        }
    }
}
