//! Parses directives. A directive begins with a dot. A directive states the chip, the state before the first
//! instruction, or raw words.
//!
//! A directive takes exactly the operands that its row in the table states. For any other operand, the assembler
//! reports an error with a position.

use reconverge_isa::program::Stage;
use reconverge_isa::source::{DirectiveRow, suggest};

use super::amd::Dialect;
use super::lex::{Parse, Token, chan_of, number, wrong};
use super::operand::signed_literal;
use super::{Asm, LIMIT};
use crate::chip::{CHIPS, Chip};

/// All directives.
#[rustfmt::skip]
pub const DIRECTIVES: &[DirectiveRow] = &[
    DirectiveRow::new(".isa", "r700", "the machine"),
    DirectiveRow::new(".syntax", "amd|latte|own", "how numbers and clauses are read"),
    DirectiveRow::new(".chip", "NAME", "the chip, before the first instruction"),
    DirectiveRow::program(".program"),
    DirectiveRow::new(".stage", "ps|vs|gs|es|fs|dc|cs, pixel|vertex|…", "the kind of the program"),
    DirectiveRow::new(".gprs", "n", "NUM_GPRS: registers that the program needs"),
    DirectiveRow::new(".stack", "entries", "STACK_SIZE: entries of the stack that the program needs"),
    DirectiveRow::new(".start", "n or @label", "the first instruction"),
    DirectiveRow::new(".const", "buffer|file first word…", "words of a constant buffer or of the constant file"),
    DirectiveRow::new(".loop", "n value", "loop constant n"),
    DirectiveRow::new(".bool", "value", "the word of boolean constants"),
    DirectiveRow::new(".state", "REGISTER value", "a register by name or address"),
    DirectiveRow::new(".org", "n", "address of the next words"),
    DirectiveRow::new(".word", "w0, w1", "two words as they are"),
    DirectiveRow::new(".zero", "n", "n pairs of zeros"),
    DirectiveRow::new(".dword", "w", "an odd last word"),
    DirectiveRow::new(".slot", "w0, w1", "in an ALU clause: the two words of a slot, as they are"),
    DirectiveRow::new(".literal", "component, w", "in an ALU clause: a literal that no operand reads"),
];

/// Names of the kinds of programs (MAN p. 37). `cs` denotes the kernels of CAL images and of LLVM. The hardware runs
/// such a kernel as a program of another kind.
const STAGES: [(&str, Stage); 7] = [
    ("ps", Stage::Pixel),
    ("vs", Stage::Vertex),
    ("gs", Stage::Geometry),
    ("es", Stage::Vertex),
    ("fs", Stage::Fetch),
    ("dc", Stage::GsCopy),
    ("cs", Stage::Compute),
];

/// Returns the kind of program with this name. A name is the abbreviation in the manual or the full name.
fn stage_named(text: &str) -> Option<Stage> {
    let letters = STAGES.iter().find(|(letters, _)| *letters == text).map(|(_, stage)| *stage);
    letters.or_else(|| STAGES.iter().map(|(_, stage)| *stage).find(|stage| stage.name() == text))
}

/// Registers that containers and drivers set for a program. (Mesa `r600d.h`)
const REGISTERS: [&str; 33] = [
    "SQ_PGM_START_PS",
    "SQ_PGM_START_VS",
    "SQ_PGM_START_GS",
    "SQ_PGM_START_ES",
    "SQ_PGM_START_FS",
    "SQ_PGM_RESOURCES_PS",
    "SQ_PGM_RESOURCES_VS",
    "SQ_PGM_RESOURCES_GS",
    "SQ_PGM_RESOURCES_ES",
    "SQ_PGM_RESOURCES_FS",
    "SQ_PGM_EXPORTS_PS",
    "SQ_CONFIG",
    "SQ_GPR_RESOURCE_MGMT_1",
    "SQ_GPR_RESOURCE_MGMT_2",
    "SQ_LDS_ALLOC",
    "SQ_GS_VERT_ITEMSIZE",
    "SQ_VTX_SEMANTIC_CLEAR",
    "SPI_VS_OUT_CONFIG",
    "SPI_PS_IN_CONTROL_0",
    "SPI_PS_IN_CONTROL_1",
    "SPI_INPUT_Z",
    "CB_SHADER_MASK",
    "CB_SHADER_CONTROL",
    "DB_SHADER_CONTROL",
    "PA_CL_VS_OUT_CNTL",
    "VGT_PRIMITIVEID_EN",
    "VGT_STRMOUT_BUFFER_EN",
    "VGT_VERTEX_REUSE_BLOCK_CNTL",
    "VGT_HOS_REUSE_DEPTH",
    "VGT_GS_OUT_PRIM_TYPE",
    "VGT_GS_MODE",
    "VGT_STRMOUT_EN",
    "SPI_INTERP_CONTROL_0",
];

/// Registers with several instances. The instances have the names `NAME_0` and so on. An entry has `NAME` and the
/// number of instances.
const COUNTED: [(&str, u32); 5] = [
    ("SPI_VS_OUT_ID_", 10),
    ("SQ_VTX_SEMANTIC_", 32),
    ("SPI_PS_INPUT_CNTL_", 32),
    ("SQ_LOOP_CONST_", 192),
    ("SQ_BOOL_CONST_", 6),
];

/// Number of dwords in a constant buffer: 4096 vectors of four dwords.
const BUFFER_DWORDS: u32 = 4096 * 4;
/// Number of dwords in the constant file: 256 vectors of four dwords.
const FILE_DWORDS: u32 = 256 * 4;
/// Number that denotes the constant file in `.const`. Smaller numbers denote constant buffers.
const CONSTANT_FILE: u32 = 16;

impl Asm<'_> {
    pub(super) fn directive(&mut self, name: &str, at: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        let Some(DirectiveRow { operands: shape, .. }) = DIRECTIVES.iter().find(|row| row.name[1..] == *name)
        else {
            let known = DIRECTIVES.iter().map(|row| &row.name[1..]);
            return Err(wrong(at, "unknown directive").help(suggest(name, known)));
        };
        let usage = || format!("as in `.{name} {shape}`");
        let arg = |index: usize| {
            rest.get(index)
                .copied()
                .ok_or_else(|| wrong(at, format!(".{name} needs more operands")).help(usage()))
        };
        let only = |count: usize| match rest.get(count) {
            Some(token) => Err(wrong(*token, format!(".{name} has no such operand")).help(usage())),
            None => Ok(()),
        };
        match name {
            "isa" => {
                let isa = arg(0)?;
                if !isa.text.eq_ignore_ascii_case("r700") {
                    return Err(wrong(isa, "another machine").help("expected `r700`; .chip names R600 chips"));
                }
                only(1)?;
                self.before_instructions(at)?;
            }
            "syntax" => {
                let syntax = arg(0)?;
                self.before_instructions(at)?;
                only(1)?;
                self.dialect = match syntax.text {
                    "amd" => Dialect::Amd,
                    "latte" => Dialect::Latte,
                    "own" => Dialect::Own,
                    other => {
                        let known = ["amd", "latte", "own"];
                        return Err(wrong(syntax, "unknown syntax").help(suggest(other, known)));
                    }
                };
            }
            "chip" => {
                let chip = arg(0)?;
                self.before_instructions(at)?;
                let named = Chip::named(chip.text).ok_or_else(|| {
                    let names = CHIPS
                        .iter()
                        .flat_map(|chip| [chip.name].into_iter().chain(chip.aliases.iter().copied()));
                    wrong(chip, "unknown chip").help(suggest(chip.text, names))
                })?;
                only(1)?;
                if self.later && named != self.chip {
                    return Err(wrong(chip, "another chip")
                        .help(format!("the programs of a text are for one chip, here {}", self.chip.name)));
                }
                self.chip = named;
                self.chip_name = Some(chip.text.to_owned());
            }
            "stage" => {
                let stage = arg(0)?;
                let named = stage_named(stage.text).ok_or_else(|| {
                    let names = STAGES.iter().flat_map(|(letters, stage)| [*letters, stage.name()]);
                    wrong(stage, "unknown kind of program").help(suggest(stage.text, names))
                })?;
                only(1)?;
                self.set_state(at, format!("stage {named}"), Vec::new())?;
            }
            "gprs" | "stack" | "bool" => {
                // NUM_GPRS and STACK_SIZE have eight bits, so the assembler accepts numbers up to 255. Only 128
                // registers exist, and a launch rejects larger values of NUM_GPRS.
                let most = if name == "bool" { u32::MAX } else { 255 };
                let value = number(arg(0)?, most)?;
                only(1)?;
                self.set_state(at, name.to_owned(), vec![value])?;
            }
            "start" => {
                let target = arg(0)?;
                only(1)?;
                match target.text.strip_prefix('@') {
                    Some(label) => {
                        self.once(at, name.to_owned())?;
                        self.start = Some((label.to_owned(), target.span));
                    }
                    None => {
                        let value = number(target, LIMIT as u32 - 1)?;
                        self.set_state(at, name.to_owned(), vec![value])?;
                    }
                }
            }
            "const" => {
                let file = arg(0)?.text == "file";
                let bank = if file { CONSTANT_FILE } else { number(arg(0)?, 15)? };
                let most = if file { FILE_DWORDS } else { BUFFER_DWORDS };
                let mut values = vec![bank, number(arg(1)?, most - 1)?];
                arg(2)?;
                for token in &rest[2..] {
                    let fault = || wrong(*token, "a word was expected").help("as in 0x3f800000, 1.0 or 42");
                    values.push(signed_literal(token.text).ok_or_else(fault)?);
                }
                if values[1] + rest.len() as u32 - 2 > most {
                    let what = if file { "the constant file" } else { "a constant buffer" };
                    return Err(wrong(at, format!("{what} has {most} words")));
                }
                self.state.push((name.to_owned(), values));
            }
            "loop" => {
                let values = vec![number(arg(0)?, 31)?, number(arg(1)?, u32::MAX)?];
                only(2)?;
                self.once(at, format!("loop constant {}", values[0]))?;
                self.state.push((name.to_owned(), values));
            }
            "state" => {
                let register = arg(0)?;
                if !is_register(register.text) {
                    return Err(wrong(register, "unknown register")
                        .help(format!("{}, or its address as 0x…", suggest(register.text, REGISTERS))));
                }
                let value = number(arg(1)?, u32::MAX)?;
                only(2)?;
                self.set_state(at, format!("state {}", register.text), vec![value])?;
            }
            "org" => {
                self.at = number(arg(0)?, LIMIT as u32)? as usize;
                only(1)?;
            }
            "word" => {
                let words = [number(arg(0)?, u32::MAX)?, number(arg(1)?, u32::MAX)?];
                only(2)?;
                self.data.push((self.at, words, at.span));
                self.at += 1;
            }
            "zero" => {
                let count = number(arg(0)?, LIMIT as u32)? as usize;
                only(1)?;
                if self.at + count > LIMIT {
                    return Err(wrong(at, "the address is beyond any program"));
                }
                for _ in 0..count {
                    self.data.push((self.at, [0, 0], at.span));
                    self.at += 1;
                }
            }
            "dword" => {
                self.once(at, "the odd last word".to_owned())?;
                self.tail = Some(number(arg(0)?, u32::MAX)?);
                only(1)?;
            }
            "slot" => {
                let words = [number(arg(0)?, u32::MAX)?, number(arg(1)?, u32::MAX)?];
                only(2)?;
                self.close_group()?;
                self.body(at, true)?.extend(words);
            }
            _ => {
                // The code above handles all directives except `.literal`.
                let chan = arg(0)?;
                let chan =
                    chan_of(chan.text).ok_or_else(|| wrong(chan, "a component x, y, z or w was expected"))?;
                let value = number(arg(1)?, u32::MAX)?;
                only(2)?;
                self.literal(chan, value, at)?;
            }
        }
        Ok(())
    }

    /// Rejects a directive that must be before all instructions but comes after an instruction. In this case, someone
    /// has probably appended another text to this text.
    fn before_instructions(&mut self, at: Token<'_>) -> Parse<()> {
        if self.cf.is_empty() && self.data.is_empty() {
            return Ok(());
        }
        self.gone_astray = true;
        Err(wrong(at, format!("{} must be before the first instruction", at.text))
            .help("each of several programs begins with `.program NAME`"))
    }

    /// Records a state that a program can set only once.
    fn set_state(&mut self, at: Token<'_>, key: String, values: Vec<u32>) -> Parse<()> {
        let kind = if key.starts_with("stage ") { "stage" } else { key.as_str() };
        self.once(at, kind.to_owned())?;
        self.state.push((key, values));
        Ok(())
    }

    /// Records that `what` is set at `at`. Reports an error if the program has already set `what`.
    fn once(&mut self, at: Token<'_>, what: String) -> Parse<()> {
        if let Some(first) = self.set.get(&what) {
            return Err(wrong(at, format!("{what} is set twice")).related(*first, "the first"));
        }
        self.set.insert(what, at.span);
        Ok(())
    }
}

fn is_register(name: &str) -> bool {
    let counted = COUNTED.iter().any(|(prefix, count)| {
        let number = name.strip_prefix(prefix).and_then(|number| number.parse::<u32>().ok());
        number.is_some_and(|number| number < *count)
    });
    let address = name.strip_prefix("0x").is_some_and(|digits| u32::from_str_radix(digits, 16).is_ok());
    counted || address || REGISTERS.contains(&name)
}
