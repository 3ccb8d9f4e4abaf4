//! Reads the programs in a file, and determines the machine of the programs.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use reconverge_container::log::is_llvm_text;
use reconverge_container::{Endian, Format, Hints, load};
use reconverge_isa::expand::{Given, Included, beside};
use reconverge_isa::program::Stage;
use reconverge_isa::source::{Diagnostic, lines};
use reconverge_isa::{Image, Isa, Program};
use thiserror::Error;

use crate::source::UserSource;
use crate::target::{Target, TargetError, is_family_of, isa_of_chip, same_chip};
use crate::text::{Source, included};

/// A file whose programs were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The machine and chip.
    pub target: Target,
    /// The programs, and the data that their container states.
    pub image: Image,
    /// Warnings of the assembler, if the file is a source.
    pub warnings: Vec<Diagnostic>,
    /// For each program of a source, the list of its instructions. An entry has the address and the line number of an
    /// instruction. Lines count from 1.
    pub lines: Vec<Vec<(u32, usize)>>,
    /// Text of the file, if the file is a source.
    pub source: Option<String>,
}

impl Opened {
    /// Returns the source line of the instruction at an address. `program` must be one of the image's programs. If no
    /// line has the address `address` (inside an ALU group), returns the last line with a lower address. Returns `None`
    /// if the file is not a source.
    pub fn line(&self, program: &Program, address: u32) -> Option<usize> {
        let number = self.image.programs.iter().position(|known| known == program)?;
        let before = self.lines.get(number)?.iter().filter(|(known, _)| *known <= address);
        before.max_by_key(|(known, _)| *known).map(|(_, line)| *line)
    }

    /// Returns the source of one of the image's programs. `path` is the path of the file. Returns `None` if the file is
    /// not a source.
    pub fn user_source(&self, program: &Program, path: &Path) -> Option<UserSource> {
        let number = self.image.programs.iter().position(|known| known == program)?;
        Some(UserSource::new(self.target.isa, path, self.source.as_ref()?, self.lines.get(number)?))
    }
}

/// Properties of a file that the caller has already determined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The machine.
    pub isa: Option<Isa>,
    /// The chip.
    pub chip: Option<String>,
    /// The pipeline stage.
    pub stage: Option<Stage>,
    /// The byte order of raw words.
    pub endian: Option<Endian>,
    /// The container format of the file. This format replaces the format that would be detected.
    pub format: Option<Format>,
    /// Macros for a C source, or constants for an assembler source, as `NAME` or `NAME=VALUE`. A C source also allows
    /// `NAME(x)=VALUE`.
    pub defines: Vec<String>,
    /// If the file is a diff, whether to read the old version of the file instead of the new version.
    pub old: bool,
    /// The files that an assembler source includes.
    pub included: Vec<Included>,
}

impl Known {
    /// Adds the files that a source includes, directly or indirectly. `read` receives a path relative to the folder of
    /// the source. `read` returns the bytes of this file, or the reason why this file cannot be read.
    pub fn with_included(
        mut self,
        source: &[u8],
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Known {
        self.included = included(&String::from_utf8_lossy(source), read);
        self
    }
}

/// The reason why a file cannot be opened as a program.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The container is damaged or unknown.
    #[error(transparent)]
    Container(#[from] reconverge_container::Error),
    /// The machine is unknown, or the target is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The file is for a machine other than the requested machine.
    #[error("this is a program for {found}, not for {asked}: omit --isa, or use --isa {found}")]
    OtherMachine {
        /// The machine that the container names.
        found: Isa,
        /// The requested machine.
        asked: Isa,
    },
    /// The file is for a chip other than the requested chip.
    #[error("this is a program for {found}, not for {asked}: omit --chip, or use --chip {found}")]
    OtherChip {
        /// The chip that the container names.
        found: String,
        /// The requested chip.
        asked: String,
    },
    /// The words do not seem to be a program of the requested machine.
    #[error("{what}; --stage reads them as a program of {isa} anyway")]
    Mistaken {
        /// Description of the possible meaning of the words, with a remedy.
        what: String,
        /// The requested machine.
        isa: Isa,
    },
    /// The file has several programs, but none for the requested stage.
    #[error("no program of this file is for {asked}: expected one of {}", .has.join(", "))]
    NoStage {
        /// The requested stage.
        asked: Stage,
        /// The stages of the programs.
        has: Vec<&'static str>,
    },
    /// The source text does not assemble.
    #[error("{} errors", .0.len())]
    Source(Vec<Diagnostic>),
}

/// Returns whether the name of a file is the name of an assembler source.
pub fn is_source(name: &str) -> bool {
    SOURCES.iter().any(|ending| name.ends_with(ending))
}

/// Returns whether a file is an assembler source. The name of the file decides whether the file is a source. Texts of
/// LLVM have the same file extensions as sources. The function recognises a text of LLVM by its content and returns
/// `false`.
pub fn has_source(name: &str, bytes: &[u8]) -> bool {
    is_source(name) && !is_llvm_text(bytes)
}

/// Extensions of assembler sources. latte-assembler uses `.vsh` and `.psh`.
pub const SOURCES: [&str; 4] = [".s", ".asm", ".vsh", ".psh"];

/// Reads a file as [`open`] does. The name of the file determines whether the file is a source. `read` returns the
/// bytes of each file that the source includes. `name` and the path that `read` receives are relative to one common
/// folder.
///
/// # Errors
/// See [`OpenError`].
pub fn open_named(
    name: &str,
    bytes: &[u8],
    known: Known,
    read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<Opened, OpenError> {
    let is_source = is_source(name);
    let known = match is_source {
        true => known.with_included(bytes, &mut |included| read(&beside(name, included))),
        false => known,
    };
    open(bytes, is_source, &known)
}

/// If `is_source` is set, reads a file as an assembler source. Otherwise, reads the file as a container. The file must
/// not contradict the properties in `known`. If the file has several programs and `known` has a stage, the result has
/// only the programs for this stage.
///
/// # Errors
/// See [`OpenError`].
pub fn open(bytes: &[u8], is_source: bool, known: &Known) -> Result<Opened, OpenError> {
    let Known { isa, chip, stage, endian, format, defines, old, included } = known.clone();
    let chip = chip.as_deref();
    let known = isa.or_else(|| chip.and_then(isa_of_chip));
    if is_source {
        let source = String::from_utf8_lossy(bytes);
        let given = Given { files: included, defines };
        let expanded = Source::new(&source, &given).map_err(OpenError::Source)?;
        let isa = known
            .or_else(|| expanded.isa())
            .ok_or(TargetError::Unknown("begin the source with .isa or .chip"))?;
        let target = Target { stage, ..Target::new(isa, chip)? };
        let assembly = expanded.assemble(&target).map_err(OpenError::Source)?;
        let stage = assembly.target.stage.or(stage);
        let target = Target { isa, chip: target.chip.or(assembly.target.chip), stage };
        let all = assembly.image.programs.clone();
        let image = of_stage(assembly.image, stage)?;
        let starts: Vec<usize> = lines(&source).map(|(start, _)| start).collect();
        let number = |(address, at): &(u32, usize)| (*address, starts.partition_point(|start| start <= at));
        let of_program = |program| {
            let lines = all.iter().position(|known| known == program).and_then(|at| assembly.lines.get(at));
            lines.into_iter().flatten().map(number).collect()
        };
        let lines = image.programs.iter().map(of_program).collect();
        let source = Some(source.into_owned());
        return Ok(Opened { target, image, warnings: assembly.warnings, lines, source });
    }
    let hints = Hints { isa: known, endian, format, defines, old, ..Hints::default() };
    let mut image = load(bytes, &hints)?;
    if let (Some(found), Some(asked)) = (image.isa, known)
        && found != asked
    {
        return Err(OpenError::OtherMachine { found, asked });
    }
    let isa = image.isa.or(known).ok_or(TargetError::Unknown("--chip"))?;
    if image.format == Format::Log.name()
        && let Some(asked) = chip
    {
        choose_chip(&mut image, isa, asked)?;
    }
    if let (Some(found), Some(asked)) = (&image.chip, chip)
        && !same_chip(isa, found, asked)
        && isa_of_chip(asked) == Some(isa)
    {
        return Err(OpenError::OtherChip { found: found.clone(), asked: asked.to_owned() });
    }
    let target = Target { stage, ..Target::new(isa, chip.or(image.chip.as_deref()))? };
    let raw = [Format::Bin, Format::Hex32, Format::C, Format::Dump, Format::Diff, Format::Log];
    let raw = raw.map(Format::name).contains(&image.format);
    if raw && stage.is_none() {
        let mistaken = image.programs.iter().find_map(|program| target.machine().mistaken(&target, program));
        if let Some(what) = mistaken {
            return Err(OpenError::Mistaken { what, isa });
        }
    }
    if isa == Isa::Tesla {
        qualify(&mut image);
    }
    let image = of_stage(image, stage)?;
    Ok(Opened { target, image, warnings: Vec::new(), lines: Vec::new(), source: None })
}

/// Renames kernels if several modules have a kernel with the same name. Each kernel's name gets the chip of its module
/// as a suffix. If two of these modules have one chip in common, the suffix is the index of the module. The container
/// allows equal kernel names, because a CUDA program first selects a module and then a kernel.
fn qualify(image: &mut Image) {
    let mut uses: HashMap<String, Vec<(usize, Option<String>)>> = HashMap::new();
    for program in &image.programs {
        let chip = image.module_of(program).and_then(|module| module.chip.clone());
        uses.entry(program.name.clone().unwrap_or_default()).or_default().push((program.module, chip));
    }
    let mut taken: HashSet<String> = uses.keys().cloned().collect();
    for program in &mut image.programs {
        let Some(name) = &program.name else { continue };
        let Some(modules) = uses.get(name).filter(|modules| modules.len() > 1) else { continue };
        let chip =
            modules.iter().find(|(module, _)| *module == program.module).and_then(|(_, chip)| chip.clone());
        let is_own = chip.is_some() && modules.iter().filter(|(_, other)| *other == chip).count() == 1;
        let mut new = match chip.filter(|_| is_own) {
            Some(chip) => format!("{name}:{chip}"),
            None => format!("{name}:{}", program.module),
        };
        while !taken.insert(new.clone()) {
            new.push('_');
        }
        program.name = Some(new);
    }
}

/// Keeps only the programs for the chip `asked` in `image`, which contains the programs of a log. A log may state a
/// chip family instead of a chip. In this case, `asked` replaces the family.
fn choose_chip(image: &mut Image, isa: Isa, asked: &str) -> Result<(), OpenError> {
    for module in &mut image.modules {
        if module.chip.as_ref().is_some_and(|found| is_family_of(found, asked)) {
            module.chip = Some(asked.to_owned());
        }
    }
    let fits = |image: &Image, program: &Program| {
        let found = image.module_of(program).and_then(|module| module.chip.as_deref());
        found.is_none_or(|found| same_chip(isa, found, asked))
    };
    let (own, other): (Vec<Program>, Vec<Program>) =
        std::mem::take(&mut image.programs).into_iter().partition(|program| fits(image, program));
    let Some(first) = own.first() else {
        let found = other.first().and_then(|program| image.module_of(program)?.chip.clone());
        return Err(OpenError::OtherChip { found: found.unwrap_or_default(), asked: asked.to_owned() });
    };
    for program in &other {
        let chip =
            image.module_of(program).and_then(|module| module.chip.as_deref()).unwrap_or("another chip");
        let name = program.name.as_deref().unwrap_or("a program");
        image.notes.push(format!("{name} is for {chip}, not for {asked}, and was skipped"));
    }
    image.chip = image.module_of(first).and_then(|module| module.chip.clone());
    image.programs = own;
    Ok(())
}

/// If the image has several programs, and each program states a stage, the result contains only the programs for
/// `stage`.
fn of_stage(mut image: Image, stage: Option<Stage>) -> Result<Image, OpenError> {
    let mut stages = image.programs.iter().filter_map(|program| program.stage);
    let several = image.programs.len() > 1 && stages.clone().count() == image.programs.len();
    let Some(asked) = stage.filter(|_| several) else { return Ok(image) };
    if !stages.any(|stage| stage == asked) {
        let mut has: Vec<_> =
            image.programs.iter().filter_map(|program| Some(program.stage?.name())).collect();
        has.dedup();
        return Err(OpenError::NoStage { asked, has });
    }
    image.programs.retain(|program| program.stage == Some(asked));
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str, isa: Option<Isa>, chip: &str) -> Result<Opened, OpenError> {
        let chip = (!chip.is_empty()).then(|| chip.to_owned());
        open(text.as_bytes(), true, &Known { isa, chip, ..Known::default() })
    }

    #[test]
    fn a_chip_that_contradicts_the_source_is_refused() {
        for (isa, stated, other, alias, body) in [
            (Isa::R500, "R580", "RV515", "r580", "OUT nop\n"),
            (Isa::R700, "rv770", "RV610", "LATTE", "00 NOP\n"),
            (Isa::Tesla, "G80", "sm_13", "sm_10", "exit nop\n"),
        ] {
            let text = format!("; made by hand\n.chip {stated} ; this one\n{body}");
            let opened = |chip: &str| source(&text, None, chip);
            let Err(OpenError::Source(errors)) = opened(other) else { panic!("{isa}: {:?}", opened(other)) };
            let expected =
                format!("this source is for {stated}, not for {other} (omit --chip, or use --chip {stated})");
            assert_eq!(errors[0].to_string(), expected);
            assert_eq!(errors[0].span.line_column(&text), (2, 1));
            for same in [alias, stated, ""] {
                // The assembler accepts this chip. The source may have errors other than the chip. This test ignores
                // such errors.
                if let Err(OpenError::Source(errors)) = opened(same) {
                    assert!(
                        !errors[0].to_string().contains("this source is for"),
                        "{isa} {same}: {}",
                        errors[0]
                    );
                }
            }
        }
    }

    #[test]
    fn a_chip_that_contradicts_the_container_is_refused() {
        let cubin = b"architecture {sm_13}\ncode { name = k bincode { 0xf0000001 0xe0000001 } }";
        let chip = |chip: &str| {
            let known = Known { chip: Some(chip.to_owned()), ..Known::default() };
            open(cubin, false, &known).map(|opened| opened.target.chip)
        };
        let error = chip("sm_10").unwrap_err().to_string();
        assert_eq!(error, "this is a program for sm_13, not for sm_10: omit --chip, or use --chip sm_13");
        assert!(chip("sm_13").is_ok() && chip("SM_13").is_ok());
    }

    #[test]
    fn kernels_of_one_name_in_several_cubins_have_the_chip_behind_it() {
        let cubin = |chip: &str, word: u32| {
            format!("architecture {{{chip}}}\\ncode {{ name = k bincode {{ {word:#x} 0xe0000001 }} }}")
        };
        let source = |chips: [&str; 3]| {
            let of = |(number, chip): (usize, &&str)| {
                format!("const char *c{number} = \"{}\";\n", cubin(chip, 0xf000_0001))
            };
            chips.iter().enumerate().map(of).collect::<String>()
        };
        let names = |chips| {
            let opened = open(source(chips).as_bytes(), false, &Known::default()).unwrap();
            opened.image.programs.into_iter().filter_map(|program| program.name).collect::<Vec<_>>()
        };
        assert_eq!(names(["sm_10", "sm_11", "sm_13"]), ["k:sm_10", "k:sm_11", "k:sm_13"]);
        assert_eq!(names(["sm_10", "sm_11", "sm_11"]), ["k:sm_10", "k:1", "k:2"]);
    }

    #[test]
    fn words_that_are_hardly_of_the_machine_are_refused() {
        let hex = |words: &[u32]| words.iter().map(|word| format!("{word:08x}\n")).collect::<String>();
        let opened = |isa, words: &[u32], stage| {
            open(hex(words).as_bytes(), false, &Known { isa: Some(isa), stage, ..Known::default() })
        };
        for isa in Isa::ALL {
            let source = crate::kernels::find(isa, "mandel").unwrap().source;
            let known = Known { isa: Some(isa), ..Known::default() };
            let words = &open(source.as_bytes(), true, &known).unwrap().image.programs[0].words;
            assert!(opened(isa, words, None).is_ok(), "{isa}");
            let swapped: Vec<u32> = words.iter().map(|word| word.swap_bytes()).collect();
            let error = opened(isa, &swapped, None).expect_err("words in the other order").to_string();
            assert!(error.contains("--endian"), "{error}");
            let stage = if isa == Isa::Tesla { Stage::Compute } else { Stage::Pixel };
            assert!(opened(isa, &swapped, Some(stage)).is_ok(), "{isa}");
        }
        // `MOV o0, v0` and `MOV o1, v1` for the vertex processor.
        let vertex = [
            0x00f0_0203,
            0x00d1_0001,
            0x0124_8001,
            0x0124_8001,
            0x00f0_2203,
            0x00d1_0021,
            0x0124_8021,
            0x0124_8021,
        ];
        let error = opened(Isa::R500, &vertex, None).expect_err("vertex words").to_string();
        assert!(error.contains("vertex processor"), "{error}");
    }
}
