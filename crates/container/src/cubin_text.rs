//! Text cubins of CUDA 1.x and 2.x: words, segments and sizes as text. (`decuda` tests; files of nvcc 1.0 to 2.3)
//!
//! ```text
//! architecture {sm_10}
//! code {
//!     name = kernel
//!     reg = 2
//!     bincode { 0x1000c805 0x0423c780 }
//! }
//! ```
//! Tokens are words and `{ } =`, in any layout. A zero word may be printed without `0x`, as `0000000000`. As an
//! extension of the format, the reader also accepts comments from `#` or `//` to the end of the line. A block with an
//! unknown name is skipped with a note. If a `code` block contains `key = number` with an unknown key, the pair becomes
//! a state entry of the program. The name of the state entry is the key. [`write()`] writes the pair back.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;

use reconverge_isa::program::{
    ConstantBlock, Digits, Module, Place, Resources, Sampler, Slot, Stage, Variable,
};
use reconverge_isa::source::parse_number;
use reconverge_isa::{Image, Isa, Program, Span};

use crate::error::quoted;
use crate::{Error, Format, Written, limits};

/// Maximum nesting of skipped blocks. Real files have three levels of blocks.
const DEEPEST: usize = 16;

/// Top-level keys. A text that starts with one of these keys and then `{` is a text cubin.
const KEYS: [&str; 7] = ["architecture", "abiversion", "modname", "code", "consts", "sampler", "reloc"];

/// Architectures with Tesla code.
pub(crate) const CHIPS: [&str; 4] = ["sm_10", "sm_11", "sm_12", "sm_13"];

/// Keys of a `code` block that have a defined meaning. A pair of any other key and a number becomes a state entry of
/// the program.
const CODE_KEYS: [&str; 7] = ["name", "lmem", "smem", "reg", "bar", "bincode", "const"];

/// Reads a text cubin.
///
/// The image has one module. The programs of the module are the `code` blocks, in the order of the text.
pub fn load(text: &str) -> Result<Image, Error> {
    let mut reader = Reader { text, at: 0 };
    let mut image = Image { format: Format::CubinText.name(), isa: Some(Isa::Tesla), ..Image::default() };
    let mut module = Module::default();
    let mut names = HashSet::new();
    while let Some(key) = reader.next() {
        match key.text {
            "architecture" => {
                let chip = reader.braced()?;
                if !CHIPS.contains(&chip.text) {
                    let expected =
                        "one of sm_10, sm_11, sm_12, sm_13: later chips have another instruction set";
                    return Err(reader.syntax(chip, expected));
                }
                module.chip = Some(chip.text.to_owned());
            }
            "abiversion" => {
                let value = reader.braced()?;
                module.abi_version = Some(reader.number(value, u32::MAX)?);
            }
            "modname" => module.name = Some(reader.braced()?.text.to_owned()),
            "consts" => {
                reader.mark("{")?;
                let segment = reader.segment(&mut image.notes)?;
                if let Some(block) = segment.block() {
                    module.constants.push(block);
                }
                let place = Place::Constant { bank: segment.bank, offset: segment.offset };
                if let Some(name) = segment.name {
                    module.variables.push(Variable { name: name.to_owned(), bytes: segment.bytes, place });
                }
            }
            "reloc" => {
                reader.mark("{")?;
                let segment = reader.segment(&mut image.notes)?;
                let slot = Slot { bank: segment.bank, offset: segment.offset, addend: 0 };
                let Some(name) = segment.name else {
                    return Err(reader.missing(key, "a name in this reloc block"));
                };
                let place = Place::Global { slots: vec![slot], init: segment.contents.unwrap_or_default() };
                module.variables.push(Variable { name: name.to_owned(), bytes: segment.bytes, place });
            }
            "sampler" => module.samplers.push(reader.sampler(key, &mut image.notes)?),
            "code" => {
                let program = reader.code(key, &mut image.notes)?;
                let name = program.name.clone().unwrap_or_default();
                if !names.insert(name.clone()) {
                    return Err(Error::Duplicate { what: "kernel", name });
                }
                image.programs.push(program);
            }
            "{" | "}" | "=" => return Err(reader.syntax(key, "a key such as architecture, code or consts")),
            _ => reader.pass_over(key, &mut image.notes)?,
        }
    }
    if image.programs.is_empty() {
        let remedy = "expected at least one block `code { name = … bincode { … } }`";
        return Err(Error::missing("a kernel", remedy));
    }
    image.chip = module.chip.clone();
    image.modules.push(module);
    Ok(image)
}

/// Returns whether the text starts with the tokens of a cubin.
pub(crate) fn starts_like(text: &str) -> bool {
    let mut reader = Reader { text, at: 0 };
    reader.next().is_some_and(|key| KEYS.contains(&key.text))
        && reader.next().is_some_and(|token| token.text == "{")
}

/// Parses a 32-bit number.
fn word_of(text: &str) -> Option<u32> {
    parse_number(text)?.try_into().ok()
}

#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    start: usize,
}

/// A `consts`, `reloc` or `const` block.
#[derive(Default)]
struct Segment<'a> {
    name: Option<&'a str>,
    bank: u32,
    offset: u32,
    bytes: u32,
    contents: Option<Vec<u8>>,
}

impl Segment<'_> {
    fn block(&self) -> Option<ConstantBlock> {
        let bytes = self.contents.clone()?;
        Some(ConstantBlock { bank: self.bank, offset: self.offset, bytes })
    }
}

/// A member of a block: `key = value`, or `key { … }`. A member with braces has no value. The reader has already read
/// the opening brace of this member.
type Member<'a> = (Token<'a>, Option<Token<'a>>);

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            let rest = &self.text[self.at..];
            if rest.starts_with('#') || rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            let first = rest.chars().next()?;
            let len = match first {
                '{' | '}' | '=' => 1,
                _ => rest.find(|c: char| c.is_whitespace() || "{}=".contains(c)).unwrap_or(rest.len()),
            };
            let token = Token { text: &rest[..len], start: self.at };
            self.at += len;
            return Some(token);
        }
    }

    /// Returns the next token. At the end of the text, returns an error with the expected token.
    fn need(&mut self, expected: &str) -> Result<Token<'a>, Error> {
        match self.next() {
            Some(token) => Ok(token),
            None => Err(self.syntax(Token { text: "", start: self.text.len() }, expected)),
        }
    }

    fn word(&mut self, expected: &str) -> Result<Token<'a>, Error> {
        let token = self.need(expected)?;
        if matches!(token.text, "{" | "}" | "=") { Err(self.syntax(token, expected)) } else { Ok(token) }
    }

    fn mark(&mut self, mark: &str) -> Result<(), Error> {
        let expected = format!("`{mark}`");
        let token = self.need(&expected)?;
        if token.text == mark { Ok(()) } else { Err(self.syntax(token, &expected)) }
    }

    fn line(&self, at: usize) -> usize {
        Span::new(at, at).line_column(self.text).0
    }

    fn syntax(&self, found: Token<'_>, expected: &str) -> Error {
        let text = if found.text.is_empty() { "the end of the text".to_owned() } else { quoted(found.text) };
        Error::syntax(self.text, found.start, text, expected)
    }

    fn missing(&self, block: Token<'_>, expected: &str) -> Error {
        Error::syntax(self.text, block.start, format!("a {} block without it", block.text), expected)
    }

    /// Reads `{value}`.
    fn braced(&mut self) -> Result<Token<'a>, Error> {
        self.mark("{")?;
        let value = self.word("a value in braces")?;
        self.mark("}")?;
        Ok(value)
    }

    fn number(&self, token: Token<'_>, limit: u32) -> Result<u32, Error> {
        let fits = word_of(token.text).filter(|value| *value <= limit);
        fits.ok_or_else(|| self.syntax(token, &format!("a number, decimal or 0x…, of at most {limit}")))
    }

    /// Returns the next member of a block, or `None` at the closing brace of the block.
    fn member(&mut self) -> Result<Option<Member<'a>>, Error> {
        let key = self.need("a key or `}`")?;
        match key.text {
            "}" => return Ok(None),
            "{" | "=" => return Err(self.syntax(key, "a key or `}`")),
            _ => {}
        }
        let mark = self.need("`=` or `{`")?;
        match mark.text {
            "=" => Ok(Some((key, Some(self.word("a value")?)))),
            "{" => Ok(Some((key, None))),
            _ => Err(self.syntax(mark, "`=` or `{`")),
        }
    }

    /// Reads words up to the closing brace. The opening brace has already been read.
    fn words(&mut self) -> Result<(Vec<u32>, Vec<Range<usize>>), Error> {
        const EXPECTED: &str = "a word such as 0x1000c805, or `}`";
        let (mut words, mut places) = (Vec::new(), Vec::new());
        loop {
            let token = self.need(EXPECTED)?;
            if token.text == "}" {
                return Ok((words, places));
            }
            places.push(token.start..token.start + token.text.len());
            // nvcc prints a zero with a C format that omits the 0x.
            let zero = token.text.bytes().all(|byte| byte == b'0');
            let hexadecimal = token.text.starts_with("0x");
            match word_of(token.text) {
                Some(word) if zero || hexadecimal => words.push(word),
                Some(_) | None => return Err(self.syntax(token, EXPECTED)),
            }
        }
    }

    /// Skips a block whose opening brace has been read.
    fn pass_over_block(&mut self) -> Result<(), Error> {
        let mut depth = 1;
        while depth > 0 {
            let token = self.need("`}`")?;
            match token.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth > DEEPEST {
                return Err(Error::too_deep(self.text, token.start, DEEPEST));
            }
        }
        Ok(())
    }

    /// Skips an unknown item at the top level.
    fn pass_over(&mut self, key: Token<'a>, notes: &mut Vec<String>) -> Result<(), Error> {
        let mark = self.need("`{` or `=`")?;
        let value = match mark.text {
            "{" => None,
            "=" => Some(self.word("a value")?),
            _ => return Err(self.syntax(mark, "`{` or `=`")),
        };
        self.unknown((key, value), notes)
    }

    /// Skips an unknown member.
    fn unknown(&mut self, (key, value): Member<'a>, notes: &mut Vec<String>) -> Result<(), Error> {
        if value.is_none() {
            self.pass_over_block()?;
        }
        let line = self.line(key.start);
        notes.push(format!("line {line}: {} has no known meaning and was skipped", quoted(key.text)));
        Ok(())
    }

    /// Reads a `consts`, `reloc` or `const` block, whose opening brace has been read.
    fn segment(&mut self, notes: &mut Vec<String>) -> Result<Segment<'a>, Error> {
        let mut segment = Segment::default();
        let mut mem = None;
        let start = self.at;
        while let Some((key, value)) = self.member()? {
            match (key.text, value) {
                ("name", Some(value)) => segment.name = Some(value.text),
                // `segname` repeats the kind of the block, so the reader ignores `segname`.
                ("segname", Some(_)) => {}
                ("segnum", Some(value)) => segment.bank = self.number(value, limits::LAST_BANK)?,
                ("offset", Some(value)) => segment.offset = self.number(value, limits::BANK_BYTES)?,
                ("bytes", Some(value)) => segment.bytes = self.number(value, u32::MAX)?,
                ("mem", None) => mem = Some((key, self.words()?.0)),
                _ => self.unknown((key, value), notes)?,
            }
        }
        if let Some((key, words)) = mem {
            let mut contents = crate::bytes::to_bytes(&words);
            if contents.len() as u64 > u64::from(segment.bytes).next_multiple_of(4) {
                let found = format!("{} words of contents", words.len());
                let expected = format!("at most the words of the block's `bytes = {}`", segment.bytes);
                return Err(Error::syntax(self.text, key.start, found, expected));
            }
            contents.truncate(segment.bytes as usize);
            segment.contents = Some(contents);
        } else if segment.name.is_none() {
            let Segment { bytes, bank, offset, .. } = segment;
            let line = self.line(start);
            notes.push(format!(
                "line {line}: {bytes} bytes of constant bank {bank} at {offset} are declared without contents"
            ));
        }
        Ok(segment)
    }

    fn sampler(&mut self, block: Token<'a>, notes: &mut Vec<String>) -> Result<Sampler, Error> {
        self.mark("{")?;
        let mut name = None;
        let mut unit = None;
        while let Some((key, value)) = self.member()? {
            match (key.text, value) {
                ("name", Some(value)) => name = Some(value.text.to_owned()),
                ("texunit", Some(value)) => unit = Some(self.number(value, u32::MAX)?),
                _ => self.unknown((key, value), notes)?,
            }
        }
        match (name, unit) {
            (Some(name), Some(unit)) => Ok(Sampler { name, unit }),
            (None, _) => Err(self.missing(block, "`name = …`")),
            (_, None) => Err(self.missing(block, "`texunit = …`")),
        }
    }

    fn code(&mut self, block: Token<'a>, notes: &mut Vec<String>) -> Result<Program, Error> {
        self.mark("{")?;
        let mut program = Program { stage: Some(Stage::Compute), ..Program::default() };
        let mut words = None;
        while let Some((key, value)) = self.member()? {
            let Resources { registers, shared_bytes, local_bytes, barriers, .. } = &mut program.resources;
            match (key.text, value) {
                ("name", Some(value)) => program.name = Some(value.text.to_owned()),
                ("lmem", Some(value)) => *local_bytes = Some(self.number(value, limits::LOCAL_BYTES)?),
                ("smem", Some(value)) => *shared_bytes = Some(self.number(value, limits::SHARED_BYTES)?),
                ("reg", Some(value)) => *registers = Some(self.number(value, limits::REGISTERS)?),
                ("bar", Some(value)) => *barriers = Some(self.number(value, limits::BARRIERS)?),
                ("bincode", None) if words.is_some() => {
                    return Err(self.syntax(key, "one bincode block a kernel"));
                }
                ("bincode", None) => words = Some(self.words()?),
                ("const", None) => program.constants.extend(self.segment(notes)?.block()),
                (_, value) => match value.and_then(|value| word_of(value.text)) {
                    Some(number) => program.state.push((key.text.to_owned(), number)),
                    None => self.unknown((key, value), notes)?,
                },
            }
        }
        if program.name.is_none() {
            return Err(self.missing(block, "`name = …`"));
        }
        let (words, places) = words.ok_or_else(|| self.missing(block, "`bincode { … }`"))?;
        program.words = words;
        program.code_at = crate::bytes::numbers(places, Digits::C);
        Ok(program)
    }
}

/// Writes a text cubin. [`load`] reads the text cubin back as the same programs and module.
///
/// The returned notes report data that the format cannot represent: parameters, usage, and unknown resources. Three
/// inputs are errors: an image with several modules, an image for another machine, and a kernel without a name.
pub fn write(image: &Image) -> Result<Written<String>, Error> {
    if let Some(isa @ (Isa::R500 | Isa::R700)) = image.isa {
        return unwritable(format!("code of {isa}"), "a cubin holds Tesla code; write hex or bin instead");
    }
    if image.modules.len() > 1 {
        return unwritable(
            format!("an image of {} modules", image.modules.len()),
            "a text cubin holds one module; write each to a separate file",
        );
    }
    if image.programs.is_empty() {
        return unwritable("an image without programs", "a text cubin holds at least one kernel");
    }
    let default = Module::default();
    let module = image.modules.first().unwrap_or(&default);
    let chip = module.chip.as_deref().or(image.chip.as_deref()).unwrap_or(CHIPS[0]);
    if !CHIPS.contains(&chip) {
        return unwritable(format!("code for {}", quoted(chip)), "one of sm_10, sm_11, sm_12, sm_13 fits");
    }
    let check = |what: &str, name: &str| {
        let fits = !name.is_empty()
            && !name.starts_with('#')
            && !name.starts_with("//")
            && !name.contains(|c: char| c.is_whitespace() || "{}=".contains(c));
        let remedy = "use a non-empty name without spaces, braces, `=` or a leading comment mark";
        if fits { Ok(()) } else { unwritable(format!("{what} {}", quoted(name)), remedy) }
    };
    let mut notes = Vec::new();
    let mut lines = Lines::default();
    lines.line(0, &format!("architecture {{{chip}}}"));
    if let Some(version) = module.abi_version {
        lines.line(0, &format!("abiversion {{{version}}}"));
    }
    if let Some(bytes) = module.pointer_bytes {
        notes.push(format!(
            "the size of pointers ({bytes} bytes) cannot be stored in a text cubin and is omitted"
        ));
    }
    if let Some(name) = &module.name {
        check("the module name", name)?;
        lines.line(0, &format!("modname {{{name}}}"));
    }
    for sampler in &module.samplers {
        check("the sampler name", &sampler.name)?;
        lines.line(0, "sampler {");
        lines.field(1, "name", &sampler.name);
        lines.field(1, "texunit", sampler.unit);
        lines.line(0, "}");
    }
    // If several variables start at the same offset, the contents belong to the first of these variables. Contents at
    // an offset without a variable are written separately.
    let mut named = vec![false; module.constants.len()];
    for variable in &module.variables {
        check("the variable name", &variable.name)?;
        match &variable.place {
            Place::Constant { bank, offset } => {
                let at = module.constants.iter().zip(&named).position(|(block, named)| {
                    let fits = block.bytes.len() as u64 <= u64::from(variable.bytes);
                    !named && (block.bank, block.offset) == (*bank, *offset) && fits
                });
                let mem = at.map(|index| {
                    named[index] = true;
                    module.constants[index].bytes.as_slice()
                });
                lines.segment(0, "consts", Some(&variable.name), (*bank, *offset, variable.bytes), mem);
            }
            Place::Global { slots, init } => {
                let [slot] = slots.as_slice() else {
                    return unwritable(
                        format!("variable {} with {} address slots", quoted(&variable.name), slots.len()),
                        "a reloc block has exactly one",
                    );
                };
                if slot.addend != 0 {
                    return unwritable(
                        format!("variable {} with an addend", quoted(&variable.name)),
                        "a reloc block has none",
                    );
                }
                let mem = (!init.is_empty()).then_some(init.as_slice());
                lines.segment(
                    0,
                    "reloc",
                    Some(&variable.name),
                    (slot.bank, slot.offset, variable.bytes),
                    mem,
                );
            }
        }
    }
    for (block, _) in module.constants.iter().zip(&named).filter(|(_, named)| !**named) {
        let place = (block.bank, block.offset, block.bytes.len() as u32);
        lines.segment(0, "consts", None, place, Some(&block.bytes));
    }
    for program in &image.programs {
        let Some(name) = &program.name else {
            return unwritable("a kernel without a name", "give it a name (.kernel NAME in the text)");
        };
        check("the kernel name", name)?;
        if !program.params.is_empty() || program.resources.param_bytes.is_some() {
            notes.push(format!(
                "{name}: a text cubin cannot represent the list of parameters, so the writer omits it"
            ));
        }
        if program.resources.stack.is_some()
            || program.usage != Default::default()
            || !program.samplers.is_empty()
        {
            notes.push(format!(
                "{name}: a text cubin cannot represent stack size, usage lists and samplers of a kernel, so the writer \
                 omits them"
            ));
        }
        lines.line(0, "code {");
        lines.field(1, "name", name);
        let resources = &program.resources;
        for (key, value) in [
            ("lmem", resources.local_bytes),
            ("smem", resources.shared_bytes),
            ("reg", resources.registers),
            ("bar", resources.barriers),
        ] {
            if let Some(value) = value {
                lines.field(1, key, value);
            }
        }
        for (key, value) in &program.state {
            check("the state name", key)?;
            if CODE_KEYS.contains(&key.as_str()) {
                return unwritable(
                    format!("a state entry named {}", quoted(key)),
                    "use the program's resources for it",
                );
            }
            lines.field(1, key, value);
        }
        lines.words(1, "bincode", &program.words);
        for block in &program.constants {
            let place = (block.bank, block.offset, block.bytes.len() as u32);
            lines.segment(1, "const", None, place, Some(&block.bytes));
        }
        lines.line(0, "}");
    }
    Ok(Written { content: lines.text, notes })
}

fn unwritable<T>(what: impl Into<String>, remedy: &'static str) -> Result<T, Error> {
    Err(Error::Unwritable { format: Format::CubinText.name(), what: what.into(), remedy })
}

#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    fn line(&mut self, depth: usize, line: &str) {
        for _ in 0..depth {
            self.text.push('\t');
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn field(&mut self, depth: usize, key: &str, value: impl std::fmt::Display) {
        self.line(depth, &format!("{key} = {value}"));
    }

    fn words(&mut self, depth: usize, key: &str, words: &[u32]) {
        self.line(depth, &format!("{key} {{"));
        for four in words.chunks(4) {
            let mut line = String::with_capacity(44);
            for word in four {
                let _ = write!(line, "{word:#010x} "); // Writing to a string cannot fail.
            }
            self.line(depth + 1, line.trim_end());
        }
        self.line(depth, "}");
    }

    fn segment(
        &mut self,
        depth: usize,
        kind: &str,
        name: Option<&str>,
        place: (u32, u32, u32),
        mem: Option<&[u8]>,
    ) {
        let (bank, offset, bytes) = place;
        self.line(depth, &format!("{kind} {{"));
        if let Some(name) = name {
            self.field(depth + 1, "name", name);
        }
        self.field(depth + 1, "segname", if kind == "reloc" { "reloc" } else { "const" });
        self.field(depth + 1, "segnum", bank);
        self.field(depth + 1, "offset", offset);
        self.field(depth + 1, "bytes", bytes);
        if let Some(mem) = mem {
            let word = |part: &[u8]| part.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
            self.words(depth + 1, "mem", &mem.chunks(4).map(word).collect::<Vec<_>>());
        }
        self.line(depth, "}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "architecture {sm_13}\nabiversion   {1}\nmodname {cubin}\n\
        sampler  {\n name = tex\n texunit = 3\n}\n\
        consts {\n name = table\n segname = const\n segnum = 0\n offset = 8\n bytes = 6\n mem { 0x00000001 0x00000002 } }\n\
        consts { name=host segname=const segnum=0 offset=16 bytes=40 }\n\
        reloc { name = var segname = reloc segnum = 14 offset = 4 bytes = 4 mem { 0x00000007 } }\n\
        code{\n name = k\n lmem = 8\n smem = 24\n reg  = 2\n bar = 1\n ctaidZUsed = 1\n\
        bincode  {\n 0x1000c805 0000000000 0x0423c780\n }\n\
        const { segname = const segnum = 1 offset = 0 bytes = 4 mem { 0x4048f5c3 } } }\n";

    #[test]
    fn every_field_of_a_cubin_is_kept() {
        let image = load(SAMPLE).unwrap();
        assert_eq!(image.chip.as_deref(), Some("sm_13"));
        let module = &image.modules[0];
        assert_eq!((module.abi_version, module.name.as_deref()), (Some(1), Some("cubin")));
        assert_eq!(module.samplers, [Sampler { name: "tex".to_owned(), unit: 3 }]);
        assert_eq!(module.constants, [ConstantBlock { bank: 0, offset: 8, bytes: vec![1, 0, 0, 0, 2, 0] }]);
        assert_eq!(module.variables.len(), 3);
        assert_eq!(
            module.variables[2].place,
            Place::Global { slots: vec![Slot { bank: 14, offset: 4, addend: 0 }], init: vec![7, 0, 0, 0] }
        );
        let program = &image.programs[0];
        assert_eq!(program.words, [0x1000_c805, 0, 0x0423_c780]);
        assert_eq!(program.state("ctaidZUsed"), Some(1));
        assert_eq!(program.constants[0].bytes, 0x4048_f5c3_u32.to_le_bytes());
        let resources = &program.resources;
        assert_eq!((resources.registers, resources.shared_bytes), (Some(2), Some(24)));
        assert_eq!((resources.local_bytes, resources.barriers), (Some(8), Some(1)));
        assert_eq!(image.constants_of(program).count(), 2);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let image = load(SAMPLE).unwrap();
        let written = write(&image).unwrap();
        assert_eq!(load(&written.content).unwrap(), image);
        assert!(written.notes.is_empty());
    }

    #[test]
    fn what_the_format_cannot_carry_is_said() {
        let mut image = load(SAMPLE).unwrap();
        image.programs[0].resources.param_bytes = Some(8);
        assert_eq!(write(&image).unwrap().notes.len(), 1);
        image.programs[0].name = Some("two words".to_owned());
        assert!(matches!(write(&image), Err(Error::Unwritable { .. })));
        image.programs[0].name = None;
        assert!(matches!(write(&image), Err(Error::Unwritable { .. })));
    }

    #[test]
    fn an_error_points_at_the_token() {
        let error = load("architecture {sm_10}\ncode {\n name = k\n bincode { 0x1 0xzz }\n}\n").unwrap_err();
        assert!(matches!(error, Error::Syntax { line: 4, column: 16, .. }), "{error}");
    }

    #[test]
    fn a_cut_text_is_an_error() {
        for end in (0..SAMPLE.len() - 1).filter(|end| SAMPLE.is_char_boundary(*end)) {
            let cut = load(&SAMPLE[..end]);
            assert!(cut.is_err(), "cut at {end}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let text = format!("mystery {}", "{ a ".repeat(100_000));
        assert!(matches!(load(&text), Err(Error::TooDeep { limit: DEEPEST, .. })));
    }

    #[test]
    fn absurd_sizes_are_errors() {
        for bad in [
            "reg = 4294967295",
            "reg = 129",
            "smem = 99999999",
            "lmem = 0xffffffff",
            "bar = 17",
            "reg = 4294967296",
        ] {
            let text = format!("code {{ name = k {bad} bincode {{ 0x0 }} }}");
            assert!(matches!(load(&text), Err(Error::Syntax { .. })), "{bad}");
        }
        let text = "consts { name = t segnum = 0 offset = 0 bytes = 4 mem { 0x1 0x2 } }";
        assert!(matches!(load(text), Err(Error::Syntax { .. })));
    }

    #[test]
    fn other_architectures_and_double_names_are_errors() {
        assert!(matches!(load("architecture {sm_20}"), Err(Error::Syntax { .. })));
        let kernel = "code { name = k bincode { 0x0 } }";
        assert!(matches!(load(&format!("{kernel}{kernel}")), Err(Error::Duplicate { .. })));
    }

    #[test]
    fn an_unknown_block_is_passed_over_with_a_note() {
        let image = load("mystery { a { b } }\ncode { name = k params_SMEM { x } bincode { 0x5 } }").unwrap();
        assert_eq!(image.programs[0].words, [5]);
        assert_eq!(image.notes.len(), 2, "{:?}", image.notes);
    }
}
