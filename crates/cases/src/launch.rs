//! Launch files with expectations: a program, its inputs, and what must come out.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::{Mode, Options};
use reconverge_workbench::Error;
use reconverge_workbench::keys::line_of;
use reconverge_workbench::launch::{LaunchFile, LaunchFileError, choose_program};
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

/// The files that a request names.
pub(crate) struct Beside<'a>(pub(crate) &'a dyn Folder);

impl Files for Beside<'_> {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.0.read(name)
    }
}

/// The case of a launch file; `None` when the bytes are no such file.
pub fn read(path: &str, bytes: &[u8], folder: &Arc<dyn Folder>) -> Option<Result<Vec<Case>, ReadError>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_launch = if path.ends_with(".toml") {
        match text.parse::<toml::Table>() {
            Ok(table) => table.contains_key("program") || table.contains_key("isa"),
            Err(error) => {
                let why = error.to_string().trim_end().to_owned();
                return Some(Err(ReadError::Damaged { file: path.to_owned(), why }));
            }
        }
    } else if text.trim_start().starts_with('{') {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let object = value.as_object()?;
        object.get("program").is_some_and(serde_json::Value::is_string)
    } else {
        false
    };
    is_launch.then(|| read_launch(path, text, folder))
}

fn read_launch(path: &str, text: &str, folder: &Arc<dyn Folder>) -> Result<Vec<Case>, ReadError> {
    let damaged = |why: String| ReadError::Damaged { file: path.to_owned(), why };
    let launch = parse(path, text)?;
    let name = launch.common.program.clone();
    let name = name.ok_or_else(|| {
        damaged("it names no program: add a line such as program = \"shader.s\"".to_owned())
    })?;
    let bytes = folder.read(&name).map_err(|why| damaged(format!("the program {name}: {why}")))?;
    let case = LaunchCase::of(launch, &name, &bytes, folder, folder).map_err(damaged)?;
    // The launch's own name: several launches may have one program.
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
    Ok(vec![Case { file: path.to_owned(), name, kind: CaseKind::Launch(Box::new(case)) }])
}

/// The launch file.
fn parse(path: &str, text: &str) -> Result<LaunchFile, ReadError> {
    LaunchFile::parse(text).map_err(|error| match error {
        LaunchFileError::Field { line: Some(line), .. } => {
            let why = error.to_string();
            let why = line_of(&why).map_or(why.clone(), |(_, rest)| rest.to_owned());
            ReadError::Line { file: path.to_owned(), line, why }
        }
        error => ReadError::Damaged { file: path.to_owned(), why: error.to_string() },
    })
}

/// A program and the files next to it.
#[derive(Clone, Copy, Debug)]
pub struct HandedIn<'a> {
    /// The path, for messages.
    pub path: &'a str,
    /// The contents.
    pub bytes: &'a [u8],
    /// Files that the program includes.
    pub folder: &'a Arc<dyn Folder>,
}

/// The case of a launch file with another program instead of the one that it names: an exercise and a solution.
///
/// A program that does not assemble is a case that fails. The case has the name of the program's file, with the launch file's
/// if `several` launch files are judged.
///
/// # Errors
/// The launch file is wrong.
pub fn read_with(
    path: &str,
    text: &str,
    folder: &Arc<dyn Folder>,
    program: HandedIn<'_>,
    several: bool,
) -> Result<Case, ReadError> {
    let HandedIn { path: file, bytes, folder: beside } = program;
    let of = if several { path } else { file };
    let name = of.rsplit(['/', '\\']).next().unwrap_or(of).to_owned();
    let kind = match LaunchCase::of(parse(path, text)?, file, bytes, folder, beside) {
        Ok(case) => CaseKind::Launch(Box::new(case)),
        Err(why) => CaseKind::Broken(format!("does not assemble: {why}")),
    };
    Ok(Case { file: file.to_owned(), name, kind })
}

impl LaunchCase {
    /// A launch and the program in `bytes`. Files that the launch names are in `folder`, those of the program in `beside`.
    fn of(
        launch: LaunchFile,
        name: &str,
        bytes: &[u8],
        folder: &Arc<dyn Folder>,
        beside: &Arc<dyn Folder>,
    ) -> Result<LaunchCase, String> {
        let stage = launch.stage().map_err(|error| error.to_string())?;
        let known =
            Known { isa: Some(launch.isa), chip: launch.common.chip.clone(), stage, ..Known::default() };
        let read = &mut |file: &str| beside.read(file);
        let opened = open_named(name, bytes, known, read).map_err(|error| match error {
            OpenError::Source(errors) => {
                let place = errors[0].place(name, &String::from_utf8_lossy(bytes));
                format!("{place}: {}", errors[0])
            }
            error => format!("{name}: {error}"),
        })?;
        let program = choose_program(&opened.image, launch.common.kernel.as_deref());
        let program = program.map_err(|error| format!("{name}: {error}"))?.clone();
        Ok(LaunchCase { launch, opened, program, file: name.to_owned(), folder: folder.clone() })
    }
}

impl LaunchCase {
    /// Round-trips the program and runs the launch; a launch that names a mode runs in that one only.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        if let Err(why) = round_trip(&self.opened.target, &self.program) {
            return Verdict::Failed(why);
        }
        if !self.launch.expects_something() {
            return Verdict::Failed(
                "the launch file states no expectation: add [[expect]] or trap".to_owned(),
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

    /// The program's file and the launch.
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
        let (result, wrong) = self.launch.judged(result.map_err(seen)).map_err(|error| match error {
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
