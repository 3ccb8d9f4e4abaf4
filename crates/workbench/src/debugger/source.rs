//! The user's own source of a program: its text, the line of each instruction, and its labels.

use std::path::{Path, PathBuf};

use reconverge_isa::Isa;

/// An assembler source, and the lines of the instructions of one of its programs.
#[derive(Clone, Debug, Default)]
pub struct UserSource {
    path: PathBuf,
    lines: Vec<String>,
    /// Addresses in the machine's own unit and the numbers of their lines, from 1, sorted by line and address.
    places: Vec<(usize, u32)>,
    labels: Vec<(String, usize)>,
}

impl UserSource {
    /// Returns the source of a machine's program at a path, with its text. `lines` has the addresses of the program's
    /// instructions and the numbers of their lines, as the assembler returns them.
    pub fn new(isa: Isa, path: &Path, text: &str, lines: &[(u32, usize)]) -> UserSource {
        let mut places: Vec<(usize, u32)> = lines.iter().map(|(address, line)| (*line, *address)).collect();
        places.sort_unstable();
        places.dedup();
        let labels =
            text.lines().enumerate().filter_map(|(at, line)| Some((label(isa, line)?.to_owned(), at + 1)));
        UserSource {
            path: path.to_owned(),
            labels: labels.collect(),
            lines: text.lines().map(str::to_owned).collect(),
            places,
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name of the file without its folder.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    /// Returns whether a path or name means this file.
    pub fn is_at(&self, path: &str) -> bool {
        let path = Path::new(path);
        let same = |one: &Path, other: &Path| {
            one == other
                || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
        };
        same(&self.path, path) || path.parent() == Some(Path::new("")) && self.path.ends_with(path)
    }

    /// Returns the lines of the text.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns the number of the line that has the instruction at an address.
    pub fn line_of(&self, address: u32) -> Option<usize> {
        let here = self.places.iter().find(|(_, known)| *known == address).map(|(line, _)| *line);
        // An instruction that a line has several of: the group that begins before it.
        here.or_else(|| {
            let before = self.places.iter().filter(|(_, known)| *known <= address);
            before.max_by_key(|(_, known)| *known).map(|(line, _)| *line)
        })
    }

    /// Returns the first instruction on a line or after it, and its line.
    pub fn instruction_at(&self, line: usize) -> Option<(u32, usize)> {
        let at = self.places.partition_point(|(known, _)| *known < line);
        self.places.get(at).map(|(line, address)| (*address, *line))
    }

    /// Returns the lines from `first` to `last` that have an instruction, each once.
    pub fn lines_with_instructions(&self, first: usize, last: usize) -> Vec<usize> {
        let mut lines: Vec<usize> = self.places.iter().map(|(line, _)| *line).collect();
        lines.dedup();
        lines.retain(|line| (first..=last).contains(line));
        lines
    }

    /// Returns the first instruction after a label.
    pub fn labelled(&self, name: &str) -> Option<u32> {
        let name = name.strip_prefix('@').unwrap_or(name);
        let (_, line) = self.labels.iter().find(|(label, _)| label == name)?;
        self.instruction_at(*line).map(|(address, _)| address)
    }

    /// Returns the labels in their order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(|(label, _)| label.as_str())
    }
}

/// The label at the start of a line: `name:`, on R700 `@name:`.
fn label(isa: Isa, line: &str) -> Option<&str> {
    let line = line.trim_start();
    let name = match line.strip_prefix('@') {
        Some(name) => name,
        // `ALU:` begins a clause there.
        None if isa == Isa::R700 => return None,
        None => line,
    };
    let end = name.find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '.'))?;
    (end > 0 && name[end..].starts_with(':')).then(|| &name[..end])
}
