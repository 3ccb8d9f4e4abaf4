//! Messages for people, on standard error.

use std::fmt::Write;
use std::io::{IsTerminal, Write as _};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anyhow::Error;
use reconverge_isa::source::{self, Diagnostic};

/// Errors of an assembler source, already rendered with the lines they are about.
#[derive(Debug)]
pub(crate) struct SourceErrors(pub(crate) String);

impl std::fmt::Display for SourceErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.trim_end())
    }
}

impl std::error::Error for SourceErrors {}

/// Prints why a command could not do its work.
pub(crate) fn error(error: &Error) {
    match error.downcast_ref::<SourceErrors>() {
        Some(errors) => eprintln!("{errors}"),
        None => eprintln!("error: {error:#}"),
    }
}

/// Writes to standard output. A reader that has gone away wants no more: that is no error.
pub(crate) fn answer(text: std::fmt::Arguments<'_>) {
    if let Err(error) = std::io::stdout().write_fmt(text) {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        eprintln!("error: standard output: {error}");
        std::process::exit(2);
    }
}

/// Prints something that a person should know and that stops nothing.
pub(crate) fn note(text: &str) {
    eprintln!("note: {text}");
}

/// Diagnostics with the lines they are about.
pub(crate) fn render(path: &str, text: &str, diagnostics: &[Diagnostic]) -> String {
    let renderer = if std::io::stderr().is_terminal() { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for diagnostic in diagnostics {
        let level = match diagnostic.level {
            source::Level::Error => Level::ERROR,
            source::Level::Warning => Level::WARNING,
        };
        let span = diagnostic.span.start.min(text.len())..diagnostic.span.end.min(text.len());
        let annotation = AnnotationKind::Primary.span(span).label(&diagnostic.label);
        let snippet = Snippet::source(text).path(path).annotation(annotation);
        let mut group = level.primary_title(&diagnostic.message).element(snippet);
        if let Some(help) = &diagnostic.help {
            group = group.element(Level::HELP.message(help));
        }
        let _ = writeln!(out, "{}", renderer.render(&[group]));
    }
    out
}
