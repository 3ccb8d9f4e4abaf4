//! Finds the definitions and uses of names in a source and in the included files.

use std::collections::HashMap;

use reconverge_isa::{Isa, Span};

use crate::lexemes::{LexedLine, Lexeme, LexemeKind, lex};
use crate::vocabulary::{Vocabulary, vocabulary};

/// Kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameSort {
    /// A label.
    Label,
    /// A constant that `.equ` defines.
    Constant,
    /// An alias.
    Alias,
    /// A macro.
    Macro,
    /// A parameter of a macro, or the counter of a repetition.
    MacroParameter,
    /// A program.
    Program,
    /// A parameter of a kernel (Tesla).
    Parameter,
    /// A variable of a module (Tesla).
    Variable,
}

impl NameSort {
    /// Returns the noun for this kind of name in messages.
    pub fn noun(self) -> &'static str {
        match self {
            NameSort::Label => "label",
            NameSort::Constant => "constant",
            NameSort::Alias => "alias",
            NameSort::Macro => "macro",
            NameSort::MacroParameter => "parameter of a macro",
            NameSort::Program => "program",
            NameSort::Parameter => "parameter",
            NameSort::Variable => "variable",
        }
    }
}

/// The definition of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Kind of the name.
    pub sort: NameSort,
    /// The name.
    pub name: String,
    /// Index of the file that contains the definition. The source has the index 0.
    pub file: usize,
    /// Span of the name in its file.
    pub span: Span,
    /// Span of the defining construct: one line, or all lines of a macro or program.
    pub whole: Span,
    /// Span in the file in which the name is visible. `None` if the name is visible everywhere.
    pub scope: Option<Span>,
}

/// A definition or use of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence {
    /// Index of the definition. If a name has several definitions, this is the index of the first definition.
    pub(crate) definition: usize,
    /// Index of the file that contains the occurrence.
    pub(crate) file: usize,
    /// Span of the name.
    pub(crate) span: Span,
    /// Whether this occurrence defines the name.
    pub(crate) defines: bool,
}

/// A file of the source, split into lines.
#[derive(Clone, Debug)]
pub(crate) struct SheetFile {
    /// Path relative to the folder of the source. The path of the source is empty.
    pub(crate) name: String,
    /// Text of the file.
    pub(crate) text: String,
    /// Lines of the file.
    pub(crate) lines: Vec<LexedLine>,
}

impl SheetFile {
    pub(crate) fn new(name: &str, text: &str, isa: Option<Isa>) -> SheetFile {
        SheetFile { name: name.to_owned(), text: text.to_owned(), lines: lex(text, isa) }
    }
}

/// All names of the source and its included files.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable {
    pub(crate) definitions: Vec<Definition>,
    pub(crate) occurrences: Vec<Occurrence>,
}

impl NameTable {
    /// Creates the table of the names in the files.
    pub(crate) fn new(files: &[SheetFile], isa: Isa) -> NameTable {
        let words = vocabulary(isa);
        let mut table = NameTable::default();
        for (number, file) in files.iter().enumerate() {
            table.define(number, file, words);
        }
        let known = ByName::of(&table.definitions);
        for (number, file) in files.iter().enumerate() {
            table.find_uses(number, file, isa, &known);
        }
        table
    }

    /// Returns the occurrence at an offset in bytes of a file.
    pub(crate) fn at(&self, file: usize, offset: usize) -> Option<Occurrence> {
        let touches = |found: &&Occurrence| {
            found.file == file && found.span.start <= offset && offset <= found.span.end
        };
        self.occurrences.iter().find(touches).copied()
    }

    /// Returns all occurrences of a definition.
    pub(crate) fn of(&self, definition: usize) -> impl Iterator<Item = Occurrence> {
        self.occurrences.iter().filter(move |found| found.definition == definition).copied()
    }

    /// Returns the definitions that are visible at an offset in bytes of the source.
    pub(crate) fn known_at(&self, offset: usize) -> impl Iterator<Item = &Definition> {
        let known = move |scope: Span| scope.start <= offset && offset <= scope.end;
        self.definitions.iter().filter(move |found| match found.scope {
            Some(scope) => found.file == 0 && known(scope),
            None => true,
        })
    }

    /// Adds the definitions in a file.
    fn define(&mut self, number: usize, file: &SheetFile, words: &Vocabulary) {
        let text = file.text.as_str();
        let ends = program_ends(file, words);
        let mut blocks: Vec<(Vec<usize>, usize)> = Vec::new();
        let add = |table: &mut NameTable, sort, lexeme: Lexeme, whole, scope| {
            let name = lexeme.text(text).to_owned();
            table.definitions.push(Definition { sort, name, file: number, span: lexeme.span, whole, scope });
            table.definitions.len() - 1
        };
        for line in &file.lines {
            let program = program_of(&ends, line.span.start);
            for label in line.code().iter().filter(|lexeme| lexeme.kind == LexemeKind::Label) {
                add(self, NameSort::Label, *label, line.span, Some(program));
            }
            let statement = line.statement(text);
            let Some(directive) = line.directive(text) else { continue };
            let first = statement.get(1).copied().filter(|lexeme| lexeme.kind == LexemeKind::Word);
            match (directive, first) {
                (".equ", Some(name)) => drop(add(self, NameSort::Constant, name, line.span, None)),
                (".alias", Some(name)) => drop(add(self, NameSort::Alias, name, line.span, None)),
                (".macro", Some(name)) => {
                    let of = add(self, NameSort::Macro, name, line.span, None);
                    let mut inner = vec![of];
                    for parameter in parameters(&statement[2..], text) {
                        inner.push(add(
                            self,
                            NameSort::MacroParameter,
                            parameter,
                            line.span,
                            Some(line.span),
                        ));
                    }
                    blocks.push((inner, line.span.start));
                }
                (".rept", _) => {
                    let comma = statement.iter().position(|lexeme| lexeme.text(text) == ",");
                    let name = comma.and_then(|at| statement.get(at + 1)).copied();
                    let name = name.filter(|lexeme| lexeme.kind == LexemeKind::Word);
                    let inner = name
                        .map(|name| add(self, NameSort::MacroParameter, name, line.span, Some(line.span)));
                    blocks.push((inner.into_iter().collect(), line.span.start));
                }
                (".macro", None) => blocks.push((Vec::new(), line.span.start)),
                (".endm" | ".endr", _) => {
                    if let Some((inner, start)) = blocks.pop() {
                        let block = Span::new(start, line.span.end);
                        for index in inner {
                            let definition = &mut self.definitions[index];
                            definition.whole = block;
                            definition.scope = definition.scope.map(|_| block);
                        }
                    }
                }
                (".param", _) => {
                    let last = statement.last().copied().filter(|lexeme| lexeme.kind == LexemeKind::Word);
                    if let Some(name) = last {
                        add(self, NameSort::Parameter, name, line.span, Some(program));
                    }
                }
                (".variable", Some(name)) => drop(add(self, NameSort::Variable, name, line.span, None)),
                (name, _) if words.directive(name).is_some_and(|row| row.begins_program) => {
                    if let (Some(first), Some(last)) = (statement.get(1), statement.last())
                        && first.span.start < last.span.end
                    {
                        let lexeme = Lexeme {
                            kind: LexemeKind::Word,
                            span: Span::new(first.span.start, last.span.end),
                        };
                        add(self, NameSort::Program, lexeme, program, Some(program));
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the uses of names in a file.
    fn find_uses(&mut self, number: usize, file: &SheetFile, isa: Isa, known: &ByName) {
        let text = file.text.as_str();
        for line in &file.lines {
            let first = line.statement(text).first().map(|lexeme| lexeme.span.start);
            let is_directive = line.directive(text).is_some();
            // This function treats calls of macros separately, because an argument of a macro can be a name of almost
            // any kind.
            let first_word = line.statement(text).first().map_or("", |lexeme| lexeme.text(text));
            let is_call = known.has(&self.definitions, first_word, NameSort::Macro);
            let mut brackets = 0_i32;
            for lexeme in line.code() {
                let name = lexeme.text(text);
                let sorts: &[NameSort] = match lexeme.kind {
                    LexemeKind::Mark => {
                        brackets += i32::from(name == "[") - i32::from(name == "]");
                        continue;
                    }
                    LexemeKind::Label => &[NameSort::Label],
                    LexemeKind::LabelUse if isa == Isa::R700 => &[NameSort::Label],
                    LexemeKind::Parameter => &[NameSort::MacroParameter],
                    LexemeKind::Word if text[..lexeme.span.start].ends_with(['%', '#']) => continue,
                    LexemeKind::Word if first == Some(lexeme.span.start) => {
                        &[NameSort::Macro, NameSort::Constant, NameSort::Alias]
                    }
                    LexemeKind::Word if brackets > 0 => {
                        &[NameSort::Constant, NameSort::Alias, NameSort::Parameter, NameSort::Variable]
                    }
                    LexemeKind::Word if is_call => &[
                        NameSort::Constant,
                        NameSort::Alias,
                        NameSort::Label,
                        NameSort::Parameter,
                        NameSort::Variable,
                    ],
                    LexemeKind::Word if isa == Isa::R700 || is_directive => {
                        &[NameSort::Constant, NameSort::Alias, NameSort::Parameter, NameSort::Variable]
                    }
                    LexemeKind::Word => &[NameSort::Constant, NameSort::Alias, NameSort::Label],
                    _ => continue,
                };
                let found = known.find(&self.definitions, name, number, lexeme.span, sorts);
                if let Some((definition, defines)) = found {
                    self.occurrences.push(Occurrence {
                        definition,
                        file: number,
                        span: lexeme.span,
                        defines,
                    });
                }
            }
        }
        // The name of a program may consist of several lexemes. Occurrences inside the name are replaced by one
        // occurrence of the whole name.
        for (index, definition) in self.definitions.iter().enumerate() {
            if definition.sort == NameSort::Program && definition.file == number {
                self.occurrences.retain(|found| {
                    found.file != number
                        || found.span.start < definition.span.start
                        || found.span.end > definition.span.end
                });
                self.occurrences.push(Occurrence {
                    definition: index,
                    file: number,
                    span: definition.span,
                    defines: true,
                });
            }
        }
    }
}

/// The indices of the definitions of each name.
struct ByName(HashMap<String, Vec<usize>>);

impl ByName {
    fn of(definitions: &[Definition]) -> ByName {
        let mut known: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, definition) in definitions.iter().enumerate() {
            known.entry(definition.name.clone()).or_default().push(index);
        }
        ByName(known)
    }

    /// Returns whether a name has a definition of the kind `sort`.
    fn has(&self, definitions: &[Definition], name: &str, sort: NameSort) -> bool {
        self.0.get(name).is_some_and(|all| all.iter().any(|index| definitions[*index].sort == sort))
    }

    /// Returns the index of the definition of a name. Also returns whether the occurrence of the name at the position
    /// is a definition. `sorts` contains the possible kinds of the name, in order of precedence.
    fn find(
        &self,
        definitions: &[Definition],
        name: &str,
        file: usize,
        span: Span,
        sorts: &[NameSort],
    ) -> Option<(usize, bool)> {
        let all = self.0.get(name)?;
        if let Some(own) =
            all.iter().find(|index| definitions[**index].span == span && definitions[**index].file == file)
        {
            let own_definition = &definitions[*own];
            let first = all.iter().find(|index| {
                let other = &definitions[**index];
                other.sort == own_definition.sort
                    && other.scope == own_definition.scope
                    && (other.scope.is_none() || other.file == file)
            });
            return Some((*first.unwrap_or(own), true));
        }
        sorts.iter().find_map(|sort| {
            let of_sort = || all.iter().copied().filter(|index| definitions[*index].sort == *sort);
            let inside = |index: &usize| {
                let definition = &definitions[*index];
                definition.scope.is_none_or(|scope| {
                    definition.file == file && scope.start <= span.start && span.end <= scope.end
                })
            };
            // Among several visible definitions, the definition with the smallest scope is used. A macro before the
            // programs may use a label. So a label with only one definition is visible even outside the program of the
            // label.
            let innermost = of_sort().filter(inside).min_by_key(|index| {
                definitions[*index].scope.map_or(usize::MAX, |scope| scope.end - scope.start)
            });
            let only = || {
                (*sort == NameSort::Label)
                    .then(|| of_sort().next())
                    .flatten()
                    .filter(|_| of_sort().count() == 1)
            };
            innermost.or_else(only).map(|index| (index, false))
        })
    }
}

/// Returns the offsets at which the programs of a file start, and the length of the file.
fn program_ends(file: &SheetFile, words: &Vocabulary) -> Vec<usize> {
    let begins = |line: &&LexedLine| {
        line.directive(&file.text)
            .and_then(|name| words.directive(name))
            .is_some_and(|row| row.begins_program)
    };
    let mut ends: Vec<usize> = file.lines.iter().filter(begins).map(|line| line.span.start).collect();
    ends.push(file.text.len() + 1);
    ends
}

/// Returns the span of the program that contains the byte at an offset. The span begins at the first line of the
/// program and ends before the next program.
fn program_of(ends: &[usize], offset: usize) -> Span {
    let next = ends.partition_point(|start| *start <= offset);
    let start = next.checked_sub(1).map_or(0, |before| ends[before]);
    Span::new(start, ends.get(next).copied().unwrap_or(start).saturating_sub(1))
}

/// Returns the parameters of `.macro`: the first name in `lexemes`, and each name after a comma.
fn parameters<'l>(lexemes: &'l [Lexeme], text: &'l str) -> impl Iterator<Item = Lexeme> + 'l {
    let mut depth = 0_i32;
    let mut fresh = true;
    lexemes.iter().copied().filter(move |lexeme| {
        let mark = lexeme.text(text);
        match mark {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "," if depth == 0 => {
                fresh = true;
                return false;
            }
            _ => {}
        }
        std::mem::replace(&mut fresh, false) && lexeme.kind == LexemeKind::Word
    })
}
