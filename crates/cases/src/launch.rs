//! Launch files with expectations: a program, its inputs, and what must come out.

use std::collections::BTreeMap;

use reconverge_isa::program::Stage;
use reconverge_isa::{Image, Program};
use reconverge_simt::Mode;
use reconverge_workbench::Known;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::open::{OpenError, is_source, open};
use reconverge_workbench::request::Error;
use reconverge_workbench::values::Files;

use crate::binary::RoundTrip;
use crate::{Case, CaseKind, Folder, ReadError, Settings, Verdict};

/// A launch with everything it names.
#[derive(Clone, Debug)]
pub struct LaunchCase {
    launch: LaunchFile,
    program: RoundTrip,
    image: Image,
    files: Loaded,
}

/// Files that a launch names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loaded(pub(crate) BTreeMap<String, Vec<u8>>);

impl Files for Loaded {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.0.get(name).cloned().ok_or_else(|| "no such file".to_owned())
    }
}

/// The case of a launch file; `None` when the bytes are no such file.
pub fn read(path: &str, bytes: &[u8], folder: &dyn Folder) -> Option<Result<Vec<Case>, ReadError>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_launch = if path.ends_with(".toml") {
        let table: toml::Table = text.parse().ok()?;
        table.contains_key("program") && table.contains_key("isa")
    } else if text.trim_start().starts_with('{') {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let object = value.as_object()?;
        object.get("program").is_some_and(serde_json::Value::is_string) && object.contains_key("isa")
    } else {
        false
    };
    is_launch.then(|| read_launch(path, text, folder))
}

fn read_launch(path: &str, text: &str, folder: &dyn Folder) -> Result<Vec<Case>, ReadError> {
    let damaged = |why: String| ReadError::Damaged { file: path.to_owned(), why };
    let launch = LaunchFile::parse(text).map_err(damaged)?;
    let name = launch.program().unwrap_or_default().to_owned();
    let case = |kind| Ok(vec![Case { file: path.to_owned(), name: name.clone(), kind }]);
    let bytes = folder.read(&name).ok_or_else(|| damaged(format!("the program {name} is not beside it")))?;
    let stage = launch.stage().map(str::parse::<Stage>).transpose();
    let stage = stage.map_err(|unknown| damaged(unknown.to_string()))?;
    let known = Known { isa: Some(launch.isa()), chip: launch.chip().map(str::to_owned), stage };
    let opened = open(&bytes, is_source(&name), &known).map_err(|error| match error {
        OpenError::Source(errors) => {
            let (line, column) = errors[0].span.line_column(&String::from_utf8_lossy(&bytes));
            damaged(format!("{name}:{line}:{column}: {}", errors[0]))
        }
        error => damaged(format!("{name}: {error}")),
    })?;
    let wanted = launch.kernel();
    let named = |program: &&Program| wanted.is_none() || program.name.as_deref() == wanted;
    let program = match opened.image.programs.iter().filter(named).collect::<Vec<_>>()[..] {
        [program] => RoundTrip { target: opened.target.clone(), program: program.clone() },
        [] => return Err(damaged(format!("{name}: there is no program {}", wanted.unwrap_or_default()))),
        _ => return Err(damaged(format!("{name}: several programs; choose one with kernel = \"NAME\""))),
    };
    let mut files = Loaded::default();
    for file in launch.files() {
        if let Some(bytes) = folder.read(&file) {
            files.0.insert(file, bytes);
        }
    }
    case(CaseKind::Launch(Box::new(LaunchCase { launch, program, image: opened.image, files })))
}

impl LaunchCase {
    /// Round-trips the program and runs the launch; a launch that names a mode runs in that one only.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        match self.program.judge() {
            Verdict::Passed { .. } => {}
            other => return other,
        }
        if !self.launch.expects_something() {
            return Verdict::Failed(
                "the launch file states no expectation: add [[expect]] or trap".to_owned(),
            );
        }
        let mut launch = self.launch.clone();
        let modes = match (launch.mode_mut().clone(), settings.mode) {
            (Some(mode), _) => vec![mode],
            (None, Some(Mode::Strict)) => vec!["strict".to_owned()],
            (None, Some(Mode::Lenient)) => vec!["lenient".to_owned()],
            (None, None) => vec!["strict".to_owned(), "lenient".to_owned()],
        };
        for mode in modes {
            *launch.mode_mut() = Some(mode.clone());
            if let Err(why) = self.judge_run(&launch, settings) {
                return Verdict::Failed(format!("{mode}: {why}"));
            }
        }
        Verdict::PASSED
    }

    fn judge_run(&self, launch: &LaunchFile, settings: &Settings) -> Result<(), String> {
        match (launch.run(&self.image, &self.program.program, settings.how, &self.files), launch.trap()) {
            (Ok(result), None) => match result.mismatches.first() {
                None => Ok(()),
                Some(mismatch) => Err(mismatch.clone()),
            },
            (Ok(_), Some(trap)) => Err(format!("must trap with `{trap}`, but ended")),
            (Err(Error::Trap(found)), Some(trap)) if found.contains(trap) => Ok(()),
            (Err(error), _) => Err(error.to_string()),
        }
    }
}
