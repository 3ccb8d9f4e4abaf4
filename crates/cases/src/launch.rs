//! Launch files with expectations: a program, its inputs, and what must come out.

use std::collections::BTreeMap;

use reconverge_isa::Isa;
use reconverge_simt::Mode;
use reconverge_workbench::Opened;
use reconverge_workbench::open::{OpenError, open};
use reconverge_workbench::r500::{Error, LaunchFile, run};
use reconverge_workbench::values::Files;

use crate::binary::RoundTrip;
use crate::{Case, CaseKind, Folder, ReadError, Settings, Verdict};

/// A launch with everything it names.
#[derive(Clone, Debug)]
pub struct LaunchCase {
    launch: LaunchFile,
    program: RoundTrip,
    files: Loaded,
}

/// Files that a launch names.
#[derive(Clone, Debug, Default)]
struct Loaded(BTreeMap<String, Vec<u8>>);

impl Files for Loaded {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.0.get(name).cloned().ok_or_else(|| "no such file".to_owned())
    }
}

/// The case of a launch file; `None` when the bytes are no such file.
pub fn read(path: &str, bytes: &[u8], folder: &dyn Folder) -> Option<Result<Vec<Case>, ReadError>> {
    let text = std::str::from_utf8(bytes).ok().filter(|_| path.ends_with(".toml"))?;
    let table: toml::Table = text.parse().ok()?;
    if !table.contains_key("program") || !table.contains_key("isa") {
        return None;
    }
    Some(read_launch(path, text, folder))
}

fn read_launch(path: &str, text: &str, folder: &dyn Folder) -> Result<Vec<Case>, ReadError> {
    let damaged = |why: String| ReadError::Damaged { file: path.to_owned(), why };
    let launch: LaunchFile = toml::from_str(text).map_err(|error| damaged(error.to_string()))?;
    let name = launch.program.clone().unwrap_or_default();
    let case = |kind| Ok(vec![Case { file: path.to_owned(), name: name.clone(), kind }]);
    let isa: Isa =
        launch.isa.as_deref().unwrap_or_default().parse().map_err(|error| damaged(format!("{error}")))?;
    if isa != Isa::R500 {
        return case(CaseKind::Unsupported(format!("launch files for {isa}")));
    }
    let bytes = folder.read(&name).ok_or_else(|| damaged(format!("the program {name} is not beside it")))?;
    let is_source = name.ends_with(".s");
    let opened = open(&bytes, is_source, Some(isa), launch.chip.as_deref()).map_err(|error| match error {
        OpenError::Source(errors) => damaged(format!("{name}: {}", errors[0])),
        error => damaged(format!("{name}: {error}")),
    })?;
    let Opened { target, image, .. } = opened;
    let [program] = &image.programs[..] else {
        return Err(damaged(format!("{name}: one program is expected")));
    };
    let program = RoundTrip { target, program: program.clone() };
    let mut files = Loaded::default();
    for file in launch.files() {
        if let Some(bytes) = folder.read(&file) {
            files.0.insert(file, bytes);
        }
    }
    case(CaseKind::Launch(Box::new(LaunchCase { launch, program, files })))
}

impl LaunchCase {
    /// Round-trips the program and runs the launch; a launch that names a mode runs in that one only.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        match self.program.judge() {
            Verdict::Passed { .. } => {}
            other => return other,
        }
        if self.launch.expect.is_empty() && self.launch.trap.is_none() {
            return Verdict::Failed(
                "the launch file states no expectation: add [[expect]] or trap".to_owned(),
            );
        }
        let modes = match (&self.launch.mode, settings.mode) {
            (Some(mode), _) => vec![mode.as_str()],
            (None, Some(Mode::Strict)) => vec!["strict"],
            (None, Some(Mode::Lenient)) => vec!["lenient"],
            (None, None) => vec!["strict", "lenient"],
        };
        for mode in modes {
            let launch = LaunchFile { mode: Some(mode.to_owned()), ..self.launch.clone() };
            if let Err(why) = self.judge_run(&launch) {
                return Verdict::Failed(format!("{mode}: {why}"));
            }
        }
        Verdict::PASSED
    }

    fn judge_run(&self, launch: &LaunchFile) -> Result<(), String> {
        match (run(launch, &self.program.program, &self.files), &launch.trap) {
            (Ok(result), None) => match result.mismatches.first() {
                None => Ok(()),
                Some(mismatch) => Err(mismatch.clone()),
            },
            (Ok(_), Some(trap)) => Err(format!("must trap with `{trap}`, but ended")),
            (Err(Error::Trap(found)), Some(trap)) if found.contains(trap.as_str()) => Ok(()),
            (Err(error), _) => Err(error.to_string()),
        }
    }
}
