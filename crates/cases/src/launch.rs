//! Launch files with expectations. A launch file with expectations has a program, the inputs of the program, and the
//! expected results.

use std::path::Path;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::{Mode, Options};
use reconverge_workbench::Error;
use reconverge_workbench::keys::{line_of, plain};
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::open::{OpenError, open_named};
use reconverge_workbench::values::Files;
use reconverge_workbench::{Known, Opened, round_trip};

use crate::opened::OpenedCase;
use crate::{Case, CaseKind, Folder, ReadError, Settings, Verdict};

/// A launch and its program.
#[derive(Clone, Debug)]
pub struct LaunchCase {
    launch: LaunchFile,
    opened: Opened,
    program: Program,
    /// The program's file, for messages.
    file: String,
    folder: Arc<dyn Folder>,
}

/// Reads files that a launch names. Each path is relative to the folder of the case.
pub(crate) struct Beside<'a>(pub(crate) &'a dyn Folder);

impl Files for Beside<'_> {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.0.read(name)
    }
}

/// Returns the case of a launch file. Returns `None` if the bytes are not a launch file.
pub fn read(path: &str, bytes: &[u8], folder: &Arc<dyn Folder>) -> Option<Result<Vec<Case>, ReadError>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_launch = if path.ends_with(".toml") {
        match text.parse::<toml::Table>() {
            Ok(table) => table.contains_key("program") || table.contains_key("isa"),
            Err(_) => return Some(Err(parse(path, text).err()?)),
        }
    } else if text.trim_start().starts_with('{') {
        let value: serde_json::Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_) if path.ends_with(".json") => return Some(Err(parse(path, text).err()?)),
            Err(_) => return None,
        };
        let object = value.as_object()?;
        object.get("program").is_some_and(serde_json::Value::is_string)
    } else if path.ends_with(".json") && serde_json::from_str::<serde_json::Value>(text).is_ok() {
        return Some(Err(parse(path, text).err()?));
    } else {
        false
    };
    is_launch.then(|| read_launch(path, text, folder))
}

fn read_launch(path: &str, text: &str, folder: &Arc<dyn Folder>) -> Result<Vec<Case>, ReadError> {
    let damaged = |why: String| ReadError::Damaged { file: path.to_owned(), why };
    let launch = parse(path, text)?;
    let name = launch.common.program.clone();
    let name = name
        .ok_or_else(|| damaged("missing `program`; add a line such as program = \"shader.s\"".to_owned()))?;
    let bytes = folder.read(&name).map_err(|why| damaged(format!("the program {name}: {why}")))?;
    let file = next_to(path, &name);
    let named = HandedIn { path: &file, bytes: &bytes, folder };
    let case = LaunchCase::of(launch, &name, named, folder).map_err(damaged)?;
    // Several launch files may use the same program, so the name of the case is the name of the launch file.
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
    Ok(vec![Case { file: path.to_owned(), name, kind: CaseKind::Launch(Box::new(case)) }])
}

/// Returns the path of a file that another file names, in the form that `run` prints.
fn next_to(path: &str, name: &str) -> String {
    let path = Path::new(path).with_file_name(name);
    plain(&path).display().to_string()
}

/// Reads the launch file.
fn parse(path: &str, text: &str) -> Result<LaunchFile, ReadError> {
    LaunchFile::parse(text).map_err(|error| {
        let (file, why) = (path.to_owned(), error.to_string());
        match line_of(&why) {
            Some((line, why)) => ReadError::Line { file, line, why: why.to_owned() },
            None => ReadError::Damaged { file, why },
        }
    })
}

/// A program, and the files in the folder of the program.
#[derive(Clone, Copy, Debug)]
pub struct HandedIn<'a> {
    /// The path, for messages.
    pub path: &'a str,
    /// The contents.
    pub bytes: &'a [u8],
    /// Files that the program includes.
    pub folder: &'a Arc<dyn Folder>,
}

/// Returns the case of a launch file. The launch runs `program` instead of the program that the launch file names. For
/// example, `program` is a solution to an exercise.
///
/// If the program does not assemble, the case fails. The case's `file` is the program's file. If `several` is set,
/// several launch files are judged, and the case has the name of the launch file. Otherwise, the case has the name of
/// the program's file.
///
/// # Errors
/// Fails if the launch file is wrong.
pub fn read_with(
    path: &str,
    text: &str,
    folder: &Arc<dyn Folder>,
    program: HandedIn<'_>,
    several: bool,
) -> Result<Case, ReadError> {
    let file = program.path;
    let last = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
    let name = last(if several { path } else { file });
    let kind = match LaunchCase::of(parse(path, text)?, &last(file), program, folder) {
        Ok(case) => CaseKind::Launch(Box::new(case)),
        Err(why) => CaseKind::Broken(format!("does not assemble: {why}")),
    };
    Ok(Case { file: file.to_owned(), name, kind })
}

impl LaunchCase {
    /// Returns the case of a launch and a program. `name` is the program's file name, and `folder` has the files of the
    /// launch.
    fn of(
        launch: LaunchFile,
        name: &str,
        program: HandedIn<'_>,
        folder: &Arc<dyn Folder>,
    ) -> Result<LaunchCase, String> {
        let HandedIn { path, bytes, folder: beside } = program;
        let stage = launch.stage().map_err(|error| error.to_string())?;
        let known =
            Known { isa: Some(launch.isa), chip: launch.common.chip.clone(), stage, ..Known::default() };
        let read = &mut |file: &str| beside.read(file);
        let opened = open_named(name, bytes, known, read).map_err(|error| match error {
            OpenError::Source(errors) => {
                let place = errors[0].place(path, &String::from_utf8_lossy(bytes));
                format!("{place}: {}", errors[0])
            }
            error => format!("{path}: {error}"),
        })?;
        let program = choose_program(&opened.image, launch.common.kernel.as_deref());
        let program = program.map_err(|error| format!("{path}: {error}"))?.clone();
        Ok(LaunchCase { launch, opened, program, file: path.to_owned(), folder: folder.clone() })
    }
}

impl LaunchCase {
    /// Converts the program to text and back, and runs the launch. If the launch states a mode, the launch runs only in
    /// this mode.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        if let Err(why) = round_trip(&self.opened.target, &self.program) {
            return Verdict::Failed(why);
        }
        if !self.launch.expects_something() {
            return Verdict::Failed(
                "missing expectation in the launch file; add [[expect]] or trap".to_owned(),
            );
        }
        let modes = match (self.launch.mode(), settings.mode) {
            (Err(error), _) => return Verdict::Failed(error.to_string()),
            (Ok(Some(mode)), _) | (Ok(None), Some(mode)) => vec![mode],
            (Ok(None), None) => Mode::ALL.to_vec(),
        };
        let mut findings = Vec::new();
        for mode in modes {
            match self.judge_run(settings, &Options { mode, ..settings.options }) {
                Ok(found) => findings.extend(found),
                Err(why) => return Verdict::Failed(format!("{mode}: {why}")),
            }
        }
        Verdict::Passed { findings }
    }

    /// Returns the program's file and the launch.
    pub(crate) fn open(&self) -> OpenedCase {
        OpenedCase { opened: self.opened.clone(), launches: vec![self.launch.clone()] }
    }

    fn judge_run(&self, settings: &Settings, options: &Options) -> Result<Vec<String>, String> {
        let files = Beside(&*self.folder);
        let result = self.launch.run(&self.opened.image, &self.program, options, &files);
        result.iter().for_each(|result| settings.count(&result.shares));
        let seen = |error: Error| match error {
            Error::Trap(mut trapped) if self.launch.common.trap.is_some() => {
                self.launch.look(&mut trapped, &self.opened, &self.program, options, &files);
                Error::Trap(trapped)
            }
            error => error,
        };
        let (result, wrong) =
            self.launch.judged(result.map_err(seen), &self.file).map_err(|error| match error {
                Error::Trap(mut trapped) => {
                    self.launch.look(&mut trapped, &self.opened, &self.program, options, &files);
                    trapped.sentence(&self.file)
                }
                error => error.to_string(),
            })?;
        match wrong.is_empty() {
            true => Ok(result.map(|result| result.findings).unwrap_or_default()),
            false => Err(wrong.join("; ")),
        }
    }
}
