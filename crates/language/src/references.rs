//! Definitions and uses of names, and the changes that rename a name.

use reconverge_isa::{Program, Span};

use crate::analysis::Analysis;
use crate::lexemes::{Lexeme, LexemeKind, lex};
use crate::message::{FilePlace, TextChange, changed};
use crate::names::{Definition, NameSort, Occurrence};
use crate::vocabulary::vocabulary;

/// The reason why a name cannot be renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RenameError {
    /// The position does not have a name.
    NoName,
    /// Names of this kind cannot be renamed.
    Sort(NameSort),
    /// The new name is not a valid name.
    Malformed {
        /// The new name.
        name: String,
    },
    /// The new name already has a meaning.
    Taken {
        /// The new name.
        name: String,
        /// Current meaning of the new name: the noun of a kind of names, or `mnemonic`.
        by: &'static str,
    },
    /// An included file also uses the name.
    OtherFile {
        /// The current name.
        name: String,
        /// Path of the included file.
        file: String,
    },
    /// The programs would change if the name changed.
    Changes {
        /// The new name.
        name: String,
    },
}

impl std::fmt::Display for RenameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RenameError::NoName => f.write_str(
                "expected a name: labels, constants, aliases, macros and parameters can be renamed",
            ),
            RenameError::Sort(sort) => {
                write!(f, "a {} cannot be renamed: other files use its name", sort.noun())
            }
            RenameError::Malformed { name } => {
                write!(
                    f,
                    "`{name}` is not a name: a name consists of letters, digits and `_`, and does not begin with a \
                     digit"
                )
            }
            RenameError::Taken { name, by } => write!(f, "`{name}` is in use ({by})"),
            RenameError::OtherFile { name, file } => {
                write!(f, "{file} also uses `{name}`: rename it in both files by hand")
            }
            RenameError::Changes { name } => {
                write!(f, "the name `{name}` would change the programs")
            }
        }
    }
}

impl std::error::Error for RenameError {}

impl Analysis {
    /// Returns the definition of the name at an offset in bytes. On an `.include` line, returns the included file.
    pub fn definition(&self, offset: usize) -> Option<FilePlace> {
        if let Some(found) = self.names.at(0, offset) {
            let definition = &self.names.definitions[found.definition];
            return Some(self.place(definition.file, definition.span));
        }
        let line = self.line_at(offset);
        let path =
            line.statement(self.text()).get(1).filter(|_| line.directive(self.text()) == Some(".include"))?;
        let name = path.text(self.text()).trim_matches('"');
        self.included()
            .any(|file| file == name)
            .then(|| FilePlace { file: Some(name.to_owned()), span: Span::default() })
    }

    /// Finds the name at an offset in bytes. Returns the occurrences of the name in the source and in the included
    /// files. If `definitions` is not set, omits occurrences that define the name.
    pub fn references(&self, offset: usize, definitions: bool) -> Vec<FilePlace> {
        let Some(found) = self.names.at(0, offset) else { return Vec::new() };
        let kept = |other: &Occurrence| definitions || !other.defines;
        self.names.of(found.definition).filter(kept).map(|other| self.place(other.file, other.span)).collect()
    }

    /// Finds the name at an offset in bytes. Returns the occurrences of this name in the source, and whether each
    /// occurrence is a definition.
    pub fn highlights(&self, offset: usize) -> Vec<(Span, bool)> {
        let Some(found) = self.names.at(0, offset) else { return Vec::new() };
        let own = self.names.of(found.definition).filter(|other| other.file == 0);
        own.map(|other| (other.span, other.defines)).collect()
    }

    /// Returns the text of a file that the source includes.
    pub fn included_text(&self, name: &str) -> Option<&str> {
        self.files.iter().skip(1).find(|file| file.name == name).map(|file| file.text.as_str())
    }

    /// Returns the name at an offset in bytes, and the span of the name. [`Analysis::rename`] can change the returned
    /// name.
    ///
    /// # Errors
    /// Returns an error if there is no name at the offset, or if names of this kind cannot be renamed.
    pub fn renamable(&self, offset: usize) -> Result<(Span, &str), RenameError> {
        let (found, definition) = self.name_at(offset)?;
        Ok((found.span, &definition.name))
    }

    /// Returns the changes that rename the name at an offset in bytes. The changed text is assembled first, to check
    /// that the programs stay the same.
    ///
    /// # Errors
    /// Returns the reason why the name cannot be renamed ([`RenameError`]).
    pub fn rename(&self, offset: usize, name: &str) -> Result<Vec<TextChange>, RenameError> {
        let (found, definition) = self.name_at(offset)?;
        let owned = || name.to_owned();
        if !is_name(name) {
            return Err(RenameError::Malformed { name: owned() });
        }
        if name == definition.name {
            return Ok(Vec::new());
        }
        let hides = |other: &&Definition| {
            other.name == name
                && (other.scope.is_none() || definition.scope.is_none() || other.scope == definition.scope)
        };
        if let Some(other) = self.names.definitions.iter().find(hides) {
            return Err(RenameError::Taken { name: owned(), by: other.sort.noun() });
        }
        if definition.sort != NameSort::Label && vocabulary(self.isa()).mnemonics.contains(name) {
            return Err(RenameError::Taken { name: owned(), by: "mnemonic" });
        }
        let mut changes = Vec::new();
        for other in self.names.of(found.definition) {
            if other.file != 0 {
                let file = self.files[other.file].name.clone();
                return Err(RenameError::OtherFile { name: definition.name.clone(), file });
            }
            changes.push(TextChange { span: other.span, text: owned() });
        }
        match self.is_same(&changed(self.text(), &changes)) {
            true => Ok(changes),
            false => Err(RenameError::Changes { name: owned() }),
        }
    }

    fn name_at(&self, offset: usize) -> Result<(Occurrence, &Definition), RenameError> {
        let found = self.names.at(0, offset).ok_or(RenameError::NoName)?;
        let definition = &self.names.definitions[found.definition];
        match definition.sort {
            NameSort::Program => Err(RenameError::Sort(definition.sort)),
            _ => Ok((found, definition)),
        }
    }

    /// Returns whether `text` and the text of this analysis have equal programs and equally many errors.
    pub(crate) fn is_same(&self, text: &str) -> bool {
        let other = self.again(text);
        let words = |analysis: &Analysis| {
            let programs = analysis.assembled().map(|assembled| assembled.image.programs.clone());
            // Parameters are not compared, because renaming may change their names.
            let parts = |program: Program| (program.words, program.base, program.constants, program.state);
            programs.map(|programs| programs.into_iter().map(parts).collect::<Vec<_>>())
        };
        words(self) == words(&other) && self.error_count() == other.error_count()
    }

    fn place(&self, file: usize, span: Span) -> FilePlace {
        FilePlace { file: (file != 0).then(|| self.files[file].name.clone()), span }
    }
}

/// Returns whether a text consists of a single name.
fn is_name(text: &str) -> bool {
    let only = |lexemes: &[Lexeme]| matches!(lexemes, [only] if only.kind == LexemeKind::Word);
    let fits = lex(text, None).first().is_some_and(|line| only(&line.lexemes));
    fits && !text.contains(['\n', '$']) && text.trim() == text
}
