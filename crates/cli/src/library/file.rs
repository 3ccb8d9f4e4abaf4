//! Reads programs from files and sources, and writes programs as text and files.

use std::sync::Arc;

use reconverge_container::{Endian, Written};
use reconverge_isa::expand::Included;
use reconverge_isa::lint::Finding;
use reconverge_isa::{Diagnostic, program};
use reconverge_workbench::listing::Line;
use reconverge_workbench::machine::Explanation;
use reconverge_workbench::open::OpenError;
use reconverge_workbench::{Known, Opened, Style, Target, formats, lint};

use super::error::{Error, SourceError};
use super::names::{Isa, Stage};

/// Properties of a file. The caller sets these options if the file itself does not state the properties. If the file
/// contradicts these options, reading the file fails.
///
/// ```
/// use reconverge::{Isa, OpenOptions};
/// let options = OpenOptions::default().isa(Isa::R700).chip("RV770");
/// # assert_eq!(options.isa, Some(Isa::R700));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The machine of the programs.
    pub isa: Option<Isa>,
    /// Name of the chip.
    pub chip: Option<String>,
    /// Program type. If the file states the types of its programs, the library reads only the programs of this type.
    pub stage: Option<Stage>,
    /// Byte order of raw words.
    pub endian: Option<Endian>,
    /// Constants of a source and macros of a C source: `NAME`, `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Files that a source includes. Each entry consists of a name and the text of the file. The name is the operand of
    /// `.include`, a path relative to the folder of the source.
    pub included: Vec<(String, String)>,
}

impl OpenOptions {
    /// Sets the machine.
    #[must_use]
    pub fn isa(mut self, isa: Isa) -> OpenOptions {
        self.isa = Some(isa);
        self
    }

    /// Sets the chip; [`Isa::chips`] lists the names.
    #[must_use]
    pub fn chip(mut self, name: &str) -> OpenOptions {
        self.chip = Some(name.to_owned());
        self
    }

    /// Sets the program type.
    #[must_use]
    pub fn stage(mut self, stage: Stage) -> OpenOptions {
        self.stage = Some(stage);
        self
    }

    /// Sets the byte order of raw words.
    #[must_use]
    pub fn endian(mut self, endian: Endian) -> OpenOptions {
        self.endian = Some(endian);
        self
    }

    /// Adds a constant of a source, or a macro of a C source. `NAME=VALUE` states the value. `NAME` alone means the
    /// value 1.
    #[must_use]
    pub fn define(mut self, constant: &str) -> OpenOptions {
        self.defines.push(constant.to_owned());
        self
    }

    /// Adds a file that a source can include by this name.
    ///
    /// ```
    /// use reconverge::{Isa, OpenOptions, assemble};
    /// let options = OpenOptions::default().isa(Isa::Tesla).include("n.inc", ".equ N, 4\n");
    /// let file = assemble(".include \"n.inc\"\nmov b32 $r0 N\n", &options)?;
    /// assert_eq!(file.programs()[0].words(), [0x1004_8001, 0x0000_0003]);
    /// # Ok::<(), reconverge::Error>(())
    /// ```
    #[must_use]
    pub fn include(mut self, name: &str, text: &str) -> OpenOptions {
        self.included.push((name.to_owned(), text.to_owned()));
        self
    }

    fn known(&self) -> Known {
        let (isa, stage) = (self.isa.map(Into::into), self.stage.map(Into::into));
        let included =
            self.included.iter().map(|(name, text)| Included { name: name.clone(), text: Ok(text.clone()) });
        Known {
            isa,
            chip: self.chip.clone(),
            stage,
            endian: self.endian,
            defines: self.defines.clone(),
            included: included.collect(),
            ..Known::default()
        }
    }
}

/// Opens a binary: a cubin, an ELF file, a dump, raw words, or a file in another format of
/// [`formats()`](crate::formats). The content determines the format.
///
/// # Errors
/// Returns [`Error::Open`] if the bytes are not a program of a known machine.
pub fn open(bytes: &[u8], options: &OpenOptions) -> Result<File, Error> {
    let opened = reconverge_workbench::open(bytes, false, &options.known()).map_err(Error::Open)?;
    Ok(File(Arc::new(opened)))
}

/// Assembles a source. If the options do not state the machine, the source must start with `.isa` or `.chip`.
///
/// # Errors
/// Returns [`Error::Source`] with the position of each error in the source.
pub fn assemble(source: &str, options: &OpenOptions) -> Result<File, Error> {
    match reconverge_workbench::open(source.as_bytes(), true, &options.known()) {
        Ok(opened) => Ok(File(Arc::new(opened))),
        Err(OpenError::Source(errors)) => Err(SourceError::new(source, errors).into()),
        Err(other) => Err(Error::Open(other)),
    }
}

/// Treatment of state that a format cannot represent, although this state affects the results of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// [`File::write`] returns an error if the format cannot represent the state.
    #[default]
    Required,
    /// [`File::write`] drops the state and adds a note.
    Dropped,
}

/// A file with programs. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct File(Arc<Opened>);

impl File {
    /// Returns the machine.
    pub fn isa(&self) -> Isa {
        self.0.target.isa.into()
    }

    /// Returns the chip, if the chip is known.
    pub fn chip(&self) -> Option<&str> {
        self.0.target.chip_name()
    }

    /// Returns the name of the format: `cubin-text`, `hex32`, …. For an assembled text, the name is `source`.
    pub fn format(&self) -> &'static str {
        self.0.image.format
    }

    /// Returns the notes of the reader. For instance, a note names a skipped section or a field of unknown meaning.
    pub fn notes(&self) -> &[String] {
        &self.0.image.notes
    }

    /// Returns the assembler's warnings.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.0.warnings
    }

    /// Returns the programs in the order of the file.
    pub fn programs(&self) -> Vec<Program> {
        (0..self.0.image.programs.len()).map(|number| Program { file: self.clone(), number }).collect()
    }

    /// Returns the program of this name.
    ///
    /// # Errors
    /// Returns [`Error::NoProgram`] if no program has the name.
    pub fn program(&self, name: &str) -> Result<Program, Error> {
        let programs = self.programs().into_iter();
        let mut found = programs.filter(|program| program.name() == Some(name));
        found.next().ok_or_else(|| Error::NoProgram { name: Some(name.to_owned()), has: self.names() })
    }

    /// Returns the only program.
    ///
    /// # Errors
    /// Returns [`Error::NoProgram`] if the file does not have exactly one program.
    pub fn only_program(&self) -> Result<Program, Error> {
        match self.0.image.programs.len() {
            1 => Ok(Program { file: self.clone(), number: 0 }),
            _ => Err(Error::NoProgram { name: None, has: self.names() }),
        }
    }

    fn names(&self) -> Vec<String> {
        let name =
            |program: &program::Program| program.name.clone().unwrap_or_else(|| "(unnamed)".to_owned());
        self.0.image.programs.iter().map(name).collect()
    }

    /// Returns the text of all programs and of their shared parts. [`assemble`] accepts the text.
    ///
    /// # Errors
    /// Returns [`Error::Target`] if the machine does not have programs of this type.
    pub fn text(&self, options: &TextOptions) -> Result<String, Error> {
        Ok(self.0.target.machine().image_text(&self.0.target, &self.0.image, options.0)?)
    }

    /// Returns the content of a file in `format`, which is one of [`Isa::formats`]. The returned notes list each name
    /// and each declaration that the format cannot represent.
    ///
    /// # Errors
    /// Returns [`Error::Write`] if the format cannot represent the programs. Unless `state` is [`State::Dropped`], this
    /// error also occurs if the format cannot represent the state of the programs.
    pub fn write(&self, format: &str, state: State) -> Result<Written<Vec<u8>>, Error> {
        let drop_state = match state {
            State::Required => false,
            State::Dropped => true,
        };
        Ok(formats::write(&self.0.target, &self.0.image, format, drop_state)?)
    }
}

/// The layout of a program's text. The text assembles to the same words in every layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextOptions(Style);

impl TextOptions {
    /// Adds addresses and words to the text.
    #[must_use]
    pub fn hex(self) -> TextOptions {
        TextOptions(Style { hex: true, ..self.0 })
    }

    /// Indents and labels flow constructs.
    #[must_use]
    pub fn structure(self) -> TextOptions {
        TextOptions(Style { structure: true, ..self.0 })
    }

    /// Prints common forms of an operation under separate names. (R500)
    #[must_use]
    pub fn idioms(self) -> TextOptions {
        TextOptions(Style { idioms: true, ..self.0 })
    }

    /// Adds comments with the names of operands, the values of constants, and the names of built-in variables. (Tesla)
    #[must_use]
    pub fn notes(self) -> TextOptions {
        TextOptions(Style { notes: true, ..self.0 })
    }
}

/// A program in a file. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Program {
    file: File,
    number: usize,
}

impl Program {
    pub(crate) fn opened(&self) -> &Opened {
        &self.file.0
    }

    pub(crate) fn inner(&self) -> &program::Program {
        &self.file.0.image.programs[self.number]
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the name, if the file states a name.
    pub fn name(&self) -> Option<&str> {
        self.inner().name.as_deref()
    }

    /// Returns the program type, if the program type is known.
    pub fn stage(&self) -> Option<Stage> {
        self.inner().stage.or(self.opened().target.stage).map(Into::into)
    }

    /// Returns the machine code as 32-bit words in memory order.
    pub fn words(&self) -> &[u32] {
        &self.inner().words
    }

    /// Returns the text of the program. [`assemble`] accepts this text if the options state the machine.
    ///
    /// # Errors
    /// Returns [`Error::Target`] if the machine does not have programs of this type.
    pub fn text(&self, options: &TextOptions) -> Result<String, Error> {
        let target = &self.target();
        Ok(target.machine().disassemble(target, self.inner(), options.0)?.text)
    }

    /// Returns the lines of the text as data: addresses, words, labels.
    ///
    /// # Errors
    /// See [`Program::text`].
    pub fn lines(&self, options: &TextOptions) -> Result<Vec<Line>, Error> {
        let target = &self.target();
        Ok(target.machine().disassemble(target, self.inner(), options.0)?.lines(self.words()))
    }

    /// Returns the target of this program. In a file for several chips, the programs can have different targets.
    fn target(&self) -> Target {
        let opened = self.opened();
        opened.target.for_program(&opened.image, self.inner())
    }

    /// Returns an address in the notation of listings and messages. The notation is decimal (`12`), or hexadecimal for
    /// machines that count bytes (`0x60`).
    pub fn spelled(&self, address: u32) -> String {
        self.opened().target.isa.spelled(address)
    }

    /// Explains the instruction at an address, field by field.
    ///
    /// # Errors
    /// Returns [`Error::Explain`] if no instruction starts at this address.
    pub fn explain(&self, address: u32) -> Result<Explanation, Error> {
        let target = &self.target();
        Ok(target.machine().explain_at(target, self.inner(), address)?)
    }

    /// Returns the positions where the program breaks a rule of the machine.
    ///
    /// # Errors
    /// Returns [`Error::Target`] if the program cannot be loaded.
    pub fn lint(&self) -> Result<Vec<Finding>, Error> {
        Ok(lint::findings(&self.target(), self.inner())?)
    }
}
