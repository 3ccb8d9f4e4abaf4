//! The open texts. Each text has an analysis of the current version of the text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lsp_types::TextDocumentContentChangeEvent;
use reconverge_language::{
    Analysis, ColumnUnit, HintSort, LineStarts, Marker, Settings, TargetHint, is_launch, launch_markers,
};

use super::convert::{TextPlaces, path_of};

/// A text that a client has opened.
#[derive(Debug)]
pub(super) struct OpenText {
    pub(super) version: i32,
    /// The text as the client sent it.
    raw: String,
    /// The text, in which the server has put a line feed in place of each lone carriage return. The reason for this
    /// change is that a carriage return alone also ends a line.
    pub(super) text: String,
    pub(super) lines: LineStarts,
    /// Path of the text, if the text is a file.
    path: Option<PathBuf>,
    /// Whether the text is TOML or JSON, such as a launch file. Any other text is a source.
    is_fields: bool,
    analysis: Option<Rc<Analysis>>,
    /// The files that the analysis read or tried to read.
    read: Vec<PathBuf>,
    /// Whether the diagnostics of the text must still be published.
    pub(super) is_dirty: bool,
}

/// All open texts, by URI.
#[derive(Debug, Default)]
pub(super) struct OpenTexts {
    pub(super) texts: BTreeMap<String, OpenText>,
    /// Machine, chip and stage of sources that do not state a machine, chip or stage.
    pub(super) fallback: TargetHint,
    /// Constants for all sources.
    pub(super) defines: Vec<String>,
    /// The kinds of hints that the editor shows.
    pub(super) hints: Vec<HintSort>,
    /// Whether the client shows hovers as plain text.
    pub(super) plain_hover: bool,
    /// Whether the client shows the documentation of completions as plain text.
    pub(super) plain_help: bool,
    /// The unit of the client's columns.
    pub(super) unit: ColumnUnit,
}

impl OpenTexts {
    pub(super) fn open(&mut self, uri: &str, language: &str, version: i32, text: String) {
        let path = path_of(uri);
        let ending = uri.rsplit('.').next().unwrap_or_default();
        let is_fields = matches!(language, "toml" | "json" | "jsonc") || matches!(ending, "toml" | "json");
        let mut opened = OpenText {
            version,
            lines: LineStarts::new(""),
            raw: text,
            text: String::new(),
            path,
            is_fields,
            analysis: None,
            read: Vec::new(),
            is_dirty: true,
        };
        opened.take_raw();
        self.texts.insert(uri.to_owned(), opened);
        self.changed(uri);
    }

    pub(super) fn close(&mut self, uri: &str) -> bool {
        let path = self.texts.get(uri).and_then(|text| text.path.clone());
        let closed = self.texts.remove(uri).is_some();
        path.into_iter().for_each(|path| self.changed_file(&path));
        closed
    }

    pub(super) fn get(&self, uri: &str) -> Option<&OpenText> {
        self.texts.get(uri)
    }

    /// Changes a text. Returns `false` if the text is not open.
    pub(super) fn change(
        &mut self,
        uri: &str,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) -> bool {
        let unit = self.unit;
        let Some(open) = self.texts.get_mut(uri) else { return false };
        for change in changes {
            match change.range {
                Some(range) => {
                    let span = TextPlaces { text: &open.text, lines: &open.lines, unit }.span(range);
                    open.raw.replace_range(span.start..span.end, &change.text);
                }
                None => open.raw = change.text,
            }
            open.take_raw();
        }
        open.version = version;
        self.changed(uri);
        true
    }

    /// Discards the analyses of a text and of all texts that depend on this text.
    fn changed(&mut self, uri: &str) {
        let path = self.texts.get_mut(uri).and_then(|open| {
            open.forget();
            open.path.clone()
        });
        path.into_iter().for_each(|path| self.changed_file(&path));
    }

    /// Discards the analyses of texts that depend on a file.
    pub(super) fn changed_file(&mut self, path: &Path) {
        let depends = self.texts.values_mut().filter(|open| open.read.iter().any(|read| read == path));
        depends.for_each(OpenText::forget);
    }

    /// Discards all analyses after a change of settings.
    pub(super) fn forget_all(&mut self) {
        self.texts.values_mut().for_each(OpenText::forget);
    }

    /// Returns a text whose diagnostics must still be published.
    pub(super) fn next_dirty(&self) -> Option<String> {
        self.texts.iter().find(|(_, open)| open.is_dirty).map(|(uri, _)| uri.clone())
    }

    pub(super) fn published(&mut self, uri: &str) {
        self.texts.get_mut(uri).into_iter().for_each(|open| open.is_dirty = false);
    }

    /// Returns the analysis of a source, or `None` if the text is not open or is not a source.
    pub(super) fn analysis(&mut self, uri: &str) -> Option<Rc<Analysis>> {
        let open = self.texts.get(uri).filter(|open| !open.is_fields)?;
        if let Some(known) = &open.analysis {
            return Some(known.clone());
        }
        let mut files = Vec::new();
        let launch = self.launch_of(open, &mut files);
        let settings = Settings { launch, fallback: self.fallback.clone(), defines: self.defines.clone() };
        let folder = open.path.as_deref().and_then(Path::parent);
        let analysis = Analysis::new(&open.text, &settings, &mut |name| {
            let folder = folder.ok_or("the text is not in a file, so it does not have a folder")?;
            let path = folder.join(name);
            files.push(path.clone());
            self.read(&path)
        });
        let analysis = Rc::new(analysis);
        let open = self.texts.get_mut(uri)?;
        (open.analysis, open.read) = (Some(analysis.clone()), files);
        Some(analysis)
    }

    /// Returns the diagnostics of a TOML or JSON text. Returns `None` if the text is a source, or if the text is not
    /// open.
    pub(super) fn field_markers(&self, uri: &str) -> Option<Vec<Marker>> {
        let open = self.texts.get(uri).filter(|open| open.is_fields)?;
        Some(if is_launch(&open.text) { launch_markers(&open.text) } else { Vec::new() })
    }

    /// Reads the target that the launch file next to a source states.
    fn launch_of(&self, open: &OpenText, files: &mut Vec<PathBuf>) -> TargetHint {
        let Some(path) = &open.path else { return TargetHint::default() };
        let path = path.with_extension("toml");
        files.push(path.clone());
        let text = self.read(&path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(|text| TargetHint::of_launch(&text)).unwrap_or_default()
    }

    /// Returns the bytes of a file. If the editor has opened the file, returns the editor's text.
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let open = self.texts.values().find(|open| open.path.as_deref() == Some(path));
        match open {
            Some(open) => Ok(open.text.clone().into_bytes()),
            None => read_regular(path),
        }
    }
}

/// Maximum number of bytes in an included file or a launch file.
const MOST_BYTES: u64 = 4 << 20;

/// Returns the bytes of a regular file. The function rejects all other files, because reading a pipe or a device may
/// never end.
fn read_regular(path: &Path) -> Result<Vec<u8>, String> {
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("not a regular file".to_owned());
    }
    if about.len() > MOST_BYTES {
        return Err(format!("expected at most {MOST_BYTES} bytes, found {}", about.len()));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

impl OpenText {
    /// Derives `text` and the lines of `text` from the text that the client sent.
    fn take_raw(&mut self) {
        let mut bytes = self.raw.clone().into_bytes();
        for at in 0..bytes.len() {
            if bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n') {
                bytes[at] = b'\n';
            }
        }
        self.text = String::from_utf8(bytes).unwrap_or_else(|_| self.raw.clone());
        self.lines = LineStarts::new(&self.text);
    }

    fn forget(&mut self) {
        (self.analysis, self.is_dirty) = (None, true);
    }

    /// Returns the path of a file that the text names.
    pub(super) fn beside(&self, name: &str) -> Option<PathBuf> {
        Some(self.path.as_deref()?.parent()?.join(name))
    }
}
