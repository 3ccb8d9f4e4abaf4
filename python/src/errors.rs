//! Converts errors to the exceptions of `reconverge.errors`.

use std::fmt::Display;

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use reconverge_isa::source::Diagnostic;
use reconverge_workbench::Error;
use reconverge_workbench::error::Trapped;
use reconverge_workbench::machine::ExplainError;
use reconverge_workbench::open::OpenError;
use reconverge_workbench::target::TargetError;
use serde_json::{Value, json};

/// Returns an exception of `reconverge.errors`. `name` is the name of the exception's class.
fn exception<'py, A>(py: Python<'py>, name: &str, arguments: A) -> PyResult<PyErr>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
{
    let class = py.import("reconverge.errors")?.getattr(name)?;
    let made = class.call1(arguments.into_pyobject(py)?)?;
    Ok(PyErr::from_value(made.cast_into::<PyBaseException>()?.into_any()))
}

fn raised(name: &str, message: String, details: Option<Value>) -> PyErr {
    Python::attach(|py| {
        let made = match details {
            None => exception(py, name, (message,)),
            Some(details) => exception(py, name, (message, details.to_string())),
        };
        made.unwrap_or_else(|error| error)
    })
}

/// Returns the error for a hook that requests something impossible.
pub(crate) fn hook(message: impl Display) -> PyErr {
    raised("HookError", message.to_string(), None)
}

/// Returns the error for wrong input or usage.
pub(crate) fn wrong(message: impl Display) -> PyErr {
    raised("Error", message.to_string(), None)
}

/// Returns messages about a source, with their positions in the source.
pub(crate) fn diagnostics(messages: &[Diagnostic], source: &str) -> Value {
    let message = |message: &Diagnostic| {
        let (line, column) = message.line_column(source);
        json!({ "line": line, "column": column, "message": message.message, "help": message.help })
    };
    messages.iter().map(message).collect()
}

/// Returns the error for a source text that the assembler rejects.
pub(crate) fn source(title: &str, text: &str, messages: &[Diagnostic]) -> PyErr {
    let (lines, more) = messages.split_at(messages.len().min(3));
    let line = |message: &Diagnostic| format!("{}: {message}", message.place(title, text));
    let mut lines: Vec<String> = lines.iter().map(line).collect();
    if !more.is_empty() {
        lines.push(format!("and {} more", more.len()));
    }
    raised("SourceError", lines.join("\n"), Some(diagnostics(messages, text)))
}

/// Returns the error for a file that is not a program.
pub(crate) fn open(title: &str, text: &[u8], error: &OpenError) -> PyErr {
    match error {
        OpenError::Source(messages) => source(title, &String::from_utf8_lossy(text), messages),
        other => wrong(format!("{title}: {other}")),
    }
}

/// Returns the error for an invalid target.
pub(crate) fn target(error: &TargetError) -> PyErr {
    wrong(error)
}

/// Returns the error for words that are not an instruction.
pub(crate) fn explain(error: &ExplainError) -> PyErr {
    wrong(error)
}

/// Returns the error for a program that trapped. The error has the message and the details that the command prints.
/// `file` is the program's file.
fn trap(trapped: &Trapped, file: &str) -> PyErr {
    let mut lines = vec![trapped.message.clone()];
    lines.extend(trapped.details(file).into_iter().map(|line| format!("  {line}")));
    let mut details = trapped.to_json();
    details["message"] = json!(trapped.message);
    details["file"] = json!(file);
    raised("Trap", lines.join("\n"), Some(details))
}

/// Returns the error for a launch that does not have a result.
pub(crate) fn run(error: Error) -> PyErr {
    run_of(error, "")
}

/// Returns the error for a launch that cannot be prepared. In the message, the function replaces options of the command
/// line by Python keywords. If the launch comes from a launch file, the function replaces the options by names of
/// fields.
pub(crate) fn prepared(error: Error, of_file: bool) -> PyErr {
    match error {
        Error::Machine(message) => wrong(with_keywords(&message, of_file)),
        other => run(other),
    }
}

/// Returns a message of the workbench in which Python keywords replace the options of the command line.
fn with_keywords(message: &str, of_file: bool) -> String {
    let buffer = "add --buf ";
    let found = message.split_once(buffer).and_then(|(before, rest)| {
        let (name, rest) = rest.split_once("=VALUES for a buffer or --arg ")?;
        let (_, after) = rest.split_once("=VALUE for a number ([[param]] in a launch file)")?;
        Some((before, name, after))
    });
    if let Some((before, name, after)) = found {
        let remedy = match of_file {
            true => "add a [[param]] table to the launch file".to_owned(),
            false => format!(
                "add params={{\"{name}\": array}} for a buffer or params={{\"{name}\": 5}} for a number"
            ),
        };
        return format!("{before}{remedy}{after}");
    }
    let (in_order, number) = match of_file {
        true => ("the order of the [[param]] tables", "give a number with value ="),
        false => ("the order of params=", "give a number, for instance 5"),
    };
    message
        .replace("the order of --buf and --arg", in_order)
        .replace("give a number with --arg", number)
        .replace("with --buf inN=...,", "with buffers={\"inN\": array},")
        .replace("with --texture UNIT=FILE,", "with textures={UNIT: array},")
}

/// Returns the error for a launch that does not have a result. `file` is the program's file.
pub(crate) fn run_of(error: Error, file: &str) -> PyErr {
    match error {
        Error::Trap(trapped) => trap(&trapped, file),
        Error::Differ(why) => raised("EnginesDiffer", why, None),
        Error::Fault(fault) => raised("EngineFault", fault.to_string(), None),
        Error::Option { option, isa } => wrong(format!("`{option}` is not for {isa} programs")),
        other => wrong(other),
    }
}
