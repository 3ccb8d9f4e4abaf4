//! The user's source of a program. The source has the text, the line of each instruction, and the labels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reconverge_isa::Isa;
use reconverge_isa::source::lines as without_comments;

/// An assembler source, and the line of each instruction of one of the source's programs.
#[derive(Clone, Debug, Default)]
pub struct UserSource {
    path: PathBuf,
    lines: Vec<String>,
    /// The line number (from 1) and the address of each instruction. The list is sorted by line, and then by address.
    places: Vec<(usize, u32)>,
    labels: Vec<(String, usize)>,
    /// Texts of the instructions, indexed by address.
    instructions: BTreeMap<u32, String>,
}

impl UserSource {
    /// Creates the source of a program. `lines` has the address and the line number of each instruction, in the form
    /// that the assembler returns.
    pub fn new(isa: Isa, path: &Path, text: &str, lines: &[(u32, usize)]) -> UserSource {
        let mut places: Vec<(usize, u32)> = lines.iter().map(|(address, line)| (*line, *address)).collect();
        places.sort_unstable();
        places.dedup();
        let labels =
            text.lines().enumerate().filter_map(|(at, line)| Some((label(isa, line)?.to_owned(), at + 1)));
        UserSource {
            instructions: instructions(isa, text, &places),
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

    /// Returns the name of the file without the folder.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    /// Returns whether `path` is the path or the name of this file.
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

    /// Returns the line number of the instruction at an address.
    pub fn line_of(&self, address: u32) -> Option<usize> {
        let here = self.places.iter().find(|(_, known)| *known == address).map(|(line, _)| *line);
        // An address can lie between the starts of two instructions, for example inside an ALU group on several lines.
        // For such an address, the function returns the line of the preceding instruction.
        here.or_else(|| {
            let before = self.places.iter().filter(|(_, known)| *known <= address);
            before.max_by_key(|(_, known)| *known).map(|(line, _)| *line)
        })
    }

    /// Returns the text of the instruction at an address. The text is one line without label and comment. Returns
    /// `None` if the source line is not an instruction, for example if the line uses a macro.
    pub fn instruction(&self, address: u32) -> Option<&str> {
        self.instructions.get(&address).map(String::as_str)
    }

    /// Returns the first label of the instruction at an address.
    pub fn label_of(&self, address: u32) -> Option<&str> {
        let is_of = |line: usize| self.instruction_at(line).is_some_and(|(at, _)| at == address);
        self.labels.iter().find(|(_, line)| is_of(*line)).map(|(label, _)| label.as_str())
    }

    /// Returns the address and the line number of the first instruction in this line. If this line has no
    /// instruction, the function uses the next line that has an instruction.
    pub fn instruction_at(&self, line: usize) -> Option<(u32, usize)> {
        let at = self.places.partition_point(|(known, _)| *known < line);
        self.places.get(at).map(|(line, address)| (*address, *line))
    }

    /// Returns the numbers of the lines from `first` to `last` that have an instruction.
    pub fn lines_with_instructions(&self, first: usize, last: usize) -> Vec<usize> {
        let mut lines: Vec<usize> = self.places.iter().map(|(line, _)| *line).collect();
        lines.dedup();
        lines.retain(|line| (first..=last).contains(line));
        lines
    }

    /// Returns the address of the first instruction after a label.
    pub fn labelled(&self, name: &str) -> Option<u32> {
        let name = name.strip_prefix('@').unwrap_or(name);
        let (_, line) = self.labels.iter().find(|(label, _)| label == name)?;
        self.instruction_at(*line).map(|(address, _)| address)
    }

    /// Returns the labels in the order of the source.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(|(label, _)| label.as_str())
    }
}

/// Returns the text of each instruction, indexed by address. The result omits the instructions of a line that has
/// several instructions. On R500, a line that begins with `+` continues the instruction of the line before.
fn instructions(isa: Isa, text: &str, places: &[(usize, u32)]) -> BTreeMap<u32, String> {
    let lines: Vec<&str> = without_comments(text).map(|(_, line)| line).collect();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = |line: &&str| words(line).strip_prefix(".macro ").map(str::to_owned);
    let macros: Vec<String> = lines.iter().filter_map(named).collect();
    let is_macro = |code: &str| {
        let first = code.split(' ').next();
        macros.iter().any(|text| text.split([' ', ',', '(']).next() == first)
    };
    let of = |(at, (line, address)): (usize, &(usize, u32))| {
        let is_shared = |other: Option<&(usize, u32)>| other.is_some_and(|(other, _)| other == line);
        if is_shared(places.get(at + 1)) || is_shared(at.checked_sub(1).and_then(|before| places.get(before)))
        {
            return None;
        }
        let (first, rest) = lines.get(line.checked_sub(1)?..)?.split_first()?;
        let code = words(match label(isa, first) {
            Some(name) => first.trim_start().trim_start_matches('@')[name.len() + 1..].trim_start(),
            None => first,
        });
        if code.is_empty() || code.starts_with('.') || is_macro(&code) {
            return None;
        }
        let more = rest.iter().map(|line| words(line)).take_while(|line| line.starts_with('+'));
        Some((*address, more.fold(code, |code, line| code + " " + &line)))
    };
    places.iter().enumerate().filter_map(of).collect()
}

/// Returns the label at the start of a line. A label is `name:`, or `@name:` on R700.
fn label(isa: Isa, line: &str) -> Option<&str> {
    let line = line.trim_start();
    let name = match line.strip_prefix('@') {
        Some(name) => name,
        // On R700, a word such as `ALU:` begins a clause and is not a label.
        None if isa == Isa::R700 => return None,
        None => line,
    };
    let end = name.find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '.'))?;
    (end > 0 && name[end..].starts_with(':')).then(|| &name[..end])
}
