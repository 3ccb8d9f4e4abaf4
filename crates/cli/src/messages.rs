//! Messages on standard error and answers on standard output.

use std::fmt::{self, Write as _};
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anyhow::Error;
use comfy_table::{Row, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reconverge_isa::source::{self, Diagnostic};
use reconverge_output::standard_output_was_closed;
use serde::Serialize;
use serde_json::{Value, json};

use crate::shown;

/// Whether notes, warnings and progress are suppressed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses notes, warnings and progress.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether notes, warnings and progress are suppressed.
pub(crate) fn quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Errors in an assembler source, with the source lines.
#[derive(Debug)]
pub(crate) struct SourceErrors {
    rendered: String,
    json: Vec<Value>,
}

impl SourceErrors {
    pub(crate) fn new(path: &str, text: &str, diagnostics: &[Diagnostic]) -> SourceErrors {
        let of = |diagnostic: &Diagnostic| {
            let (line, column) = diagnostic.line_column(text);
            let mut object = json!({"message": diagnostic.message, "line": line, "column": column, "help": diagnostic.help});
            if let Some(file) = &diagnostic.file {
                object["file"] = file.name.clone().into();
            }
            object
        };
        let json = diagnostics.iter().take(SHOWN).map(of).collect();
        SourceErrors { rendered: render(path, text, diagnostics), json }
    }
}

impl fmt::Display for SourceErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rendered.trim_end())
    }
}

impl std::error::Error for SourceErrors {}

/// Writes to standard error. A failed write does not change the exit status.
pub(crate) fn tell(text: fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_all(shown::lines(&text.to_string()).as_bytes());
}

/// Writes to standard error like [`tell`]. If the terminal supports colours, the text has colours.
pub(crate) fn tell_coloured(text: &str) {
    let _ = anstream::stderr().write_all(shown::styled(text).as_bytes());
}

/// Reports the error of a command on standard error. If `as_json` is set, also writes the error as a JSON object to
/// standard output.
pub(crate) fn error(error: &Error, as_json: bool) {
    let source = error.downcast_ref::<SourceErrors>();
    match source {
        Some(errors) => tell_coloured(&format!("{errors}\n")),
        None => tell!("error: {error:#}"),
    }
    if as_json {
        let plain = match source {
            Some(errors) => anstream::adapter::strip_str(&errors.to_string()).to_string(),
            None => format!("{error:#}"),
        };
        let mut object = json!({ "error": plain });
        if let Some(errors) = source {
            object["diagnostics"] = errors.json.clone().into();
        }
        answer_json(&object);
    }
}

/// Returns standard output, the destination of every answer.
pub(crate) fn output() -> std::io::Result<std::io::Stdout> {
    // If the caller has closed standard output, Rust's runtime has opened `/dev/null` instead.
    match standard_output_was_closed() {
        true => Err(std::io::Error::other("the caller has closed it")),
        false => Ok(std::io::stdout()),
    }
}

/// Writes to standard output. If the reader has closed the pipe, the process ends quietly. If the output is a terminal,
/// control characters are escaped.
pub(crate) fn answer(text: fmt::Arguments<'_>) {
    written(output().and_then(|mut out| match out.is_terminal() {
        true => out.write_all(shown::lines(&text.to_string()).as_bytes()),
        false => out.write_fmt(text),
    }));
}

/// Writes to standard output like [`answer`]. If the output does not support colours, removes the colour codes.
pub(crate) fn answer_coloured(text: fmt::Arguments<'_>) {
    written(output().and_then(|_| anstream::stdout().write_all(shown::styled(&text.to_string()).as_bytes())));
}

/// Writes bytes to standard output. Handles errors like [`answer`].
pub(crate) fn answer_bytes(bytes: &[u8]) {
    written(output().and_then(|mut out| {
        match out.is_terminal() {
            true => out.write_all(shown::lines(&String::from_utf8_lossy(bytes)).as_bytes())?,
            false => out.write_all(bytes)?,
        }
        out.flush()
    }));
}

/// Flushes the answers. Standard output is flushed at each newline, but the last line may not end with a newline.
pub(crate) fn finish() {
    written(std::io::stdout().flush());
}

/// Serializes an object directly to standard output. Handles errors like [`answer`].
pub(crate) fn answer_json(object: &impl Serialize) {
    written(output().and_then(|out| {
        let mut out = std::io::BufWriter::new(out.lock());
        object.serialize(&mut serde_json::Serializer::with_formatter(&mut out, shown::Json))?;
        out.write_all(b"\n")?;
        out.flush()
    }));
}

/// If `as_json` is set, writes the answer to standard output as JSON. Otherwise, calls `print`.
pub(crate) fn answer_as<T: Serialize>(as_json: bool, answer: &T, print: impl FnOnce(&T)) {
    match as_json {
        true => answer_json(answer),
        false => print(answer),
    }
}

/// Returns counts as text. The text contains the instructions by group and by lane, and the divergent branches.
pub(crate) fn executed(groups: u64, lanes: u64, divergent: u64) -> String {
    let groups = counted(groups, "group instruction");
    format!("{groups}, {}, {}", counted(lanes, "lane instruction"), counted(divergent, "divergent branch"))
}

/// Returns a spinner with a text and the elapsed time. The spinner appears on a terminal after one second.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    bar(None, "{spinner} {msg} {elapsed}").with_message(what)
}

/// Returns a progress bar of this form. The bar appears only on a terminal, and only after one second.
pub(crate) fn bar(length: Option<u64>, form: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    if std::io::stderr().is_terminal() && !quiet() {
        let bar = bar.downgrade();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(1));
            if let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(Duration::from_secs(1));
            }
        });
    }
    bar
}

/// Returns a table without borders.
pub(crate) fn table<T: Into<Row>>(head: T) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(head);
    table
}

fn written(result: std::io::Result<()>) {
    if let Err(error) = result {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        tell!("error: standard output: {error}");
        std::process::exit(2);
    }
}

/// Prints a note that does not affect the command.
pub(crate) fn note(text: &str) {
    if !quiet() {
        tell!("note: {text}");
    }
}

/// Prints warnings with their source lines.
pub(crate) fn warn(path: &Path, text: &str, warnings: &[Diagnostic]) {
    if !quiet() && !warnings.is_empty() {
        tell_coloured(&render(&shown::path(path), text, warnings));
    }
}

/// Returns `1 case`, `2 cases` or `2 branches`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let ending = match count {
        1 => "",
        _ if what.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{count} {what}{ending}")
}

/// Maximum number of diagnostics that are shown.
const SHOWN: usize = 50;

/// Returns diagnostics with their source lines. The renderer reads its whole input once per diagnostic, so the function
/// passes only these lines to the renderer.
fn render(path: &str, text: &str, diagnostics: &[Diagnostic]) -> String {
    let renderer = Renderer::styled();
    let starts_of = |text: &str| -> Vec<usize> {
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
    };
    let own_starts = starts_of(text);
    let mut out = String::new();
    for diagnostic in diagnostics.iter().take(SHOWN) {
        // For an included file, the renderer gets the whole text, because included files are short.
        let (path, text, starts) = match &diagnostic.file {
            Some(file) => (&*file.name, &*file.text, &starts_of(&file.text)),
            None => (path, text, &own_starts),
        };
        let path = &*shown::name(path);
        let line_of = |at: usize| starts.partition_point(|start| *start <= at) - 1;
        let level = match diagnostic.level {
            source::Level::Error => Level::ERROR,
            source::Level::Warning => Level::WARNING,
        };
        let (start, end) = (diagnostic.span.start.min(text.len()), diagnostic.span.end.min(text.len()));
        let (first, last) = (line_of(start), line_of(end.max(start)));
        let from = starts[first];
        let to = starts.get(last + 1).copied().unwrap_or(text.len());
        let label = shown::name(&diagnostic.label);
        let annotation = AnnotationKind::Primary.span(start - from..end.max(start) - from).label(&*label);
        let snippet =
            Snippet::source(&text[from..to]).line_start(first + 1).path(path).annotation(annotation);
        let message = shown::lines(&diagnostic.message);
        let help = diagnostic.help.as_deref().map(shown::lines);
        let mut group = level.primary_title(&*message).element(snippet);
        if let Some(help) = &help {
            group = group.element(Level::HELP.message(&**help));
        }
        let _ = writeln!(out, "{}", renderer.render(&[group]));
    }
    if let Some(more) = diagnostics.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(out, "{} more of {} in {}", more, diagnostics.len(), shown::name(path));
    }
    out
}

#[cfg(test)]
mod tests {
    use reconverge_isa::Span;

    use super::*;

    #[test]
    fn fifty_diagnostics_are_shown_and_the_rest_is_counted() {
        let text = "bad line\n".repeat(2_000);
        let errors: Vec<Diagnostic> =
            (0..2_000).map(|line| Diagnostic::error(Span::new(line * 9, line * 9 + 3), "unknown")).collect();
        let rendered = anstream::adapter::strip_str(&render("a.s", &text, &errors)).to_string();
        assert_eq!(rendered.matches("error: unknown").count(), 50);
        assert!(rendered.contains(" --> a.s:50:1\n   |\n50 | bad line\n   | ^^^\n"), "{rendered}");
        assert!(rendered.ends_with("1950 more of 2000 in a.s\n"), "{rendered}");
    }

    /// Tests three places: a position at the end of a text without a newline, a position after the end, and a range
    /// over two lines.
    #[test]
    fn any_place_can_be_shown() {
        for (start, end) in [(3, 3), (7, 9), (0, 4), (2, 3)] {
            let rendered = render("a.s", "ab\ncd", &[Diagnostic::error(Span::new(start, end), "wrong")]);
            assert!(rendered.contains("a.s:"), "{rendered}");
        }
    }

    #[test]
    fn messages_count_properly() {
        assert_eq!([counted(1, "case"), counted(0, "case")], ["1 case", "0 cases"]);
        assert_eq!(counted(2, "divergent branch"), "2 divergent branches");
    }
}
