//! Directives that exist for both units. These directives set the chip, the base, constants, state registers, and words
//! that are not instructions.

use reconverge_isa::Program;
use reconverge_isa::program::ConstantBlock;
use reconverge_isa::source::{Cursor, Diagnostic, DirectiveRow, Span, suggest};

use super::reading::{Parsed, number, state_value, vector, word};
use crate::chip::{CHIPS, Chip};
use crate::words::{StateRegister, named_register};

/// An assembled source text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assembled {
    /// Words, state and constants.
    pub program: Program,
    /// The chip, from `.chip`.
    pub chip: Option<String>,
    /// For each instruction, its slot and its position in the text.
    pub lines: Vec<(u32, usize)>,
}

/// The directives of a unit, and the limits of their values.
pub(crate) struct Directives {
    /// Number of instruction slots.
    pub slots: usize,
    /// The term for a float constant in messages, and the number of float constants.
    pub constant: (&'static str, usize),
    /// The unit's state registers.
    pub state: &'static [StateRegister],
    /// Prefixes of the register names of other units. A container may also hold registers of other units. For some of
    /// these registers, the container has only the address. So the text has only a plain number for the value of such a
    /// register.
    pub elsewhere: &'static [&'static str],
    /// Whether register names may end in a number. If this field is set, an error message ignores the number at the end
    /// of an unknown name and suggests similar names.
    pub numbered: bool,
    /// The directives of the unit.
    pub directives: &'static [DirectiveRow],
}

/// The settings that the directives of one source text make.
#[derive(Default)]
pub(crate) struct Stated {
    pub base: u32,
    pub state: Vec<(String, u32)>,
    pub constants: Vec<(u8, [u32; 4])>,
    pub chip: Option<String>,
    pub data: Vec<u32>,
}

impl Stated {
    /// Parses the arguments of a directive and applies the directive. The name of the directive has already been
    /// parsed.
    ///
    /// # Errors
    /// Returns an error if neither unit has this directive. Also returns an error if the arguments of the directive are
    /// wrong.
    pub(crate) fn directive(
        &mut self,
        cursor: &mut Cursor<'_>,
        unit: &Directives,
        name: &str,
        span: Span,
    ) -> Parsed<()> {
        match name {
            ".chip" => {
                let at = cursor.here();
                let chip = cursor.token().to_owned();
                if Chip::named(&chip).is_none() {
                    let names = CHIPS.iter().flat_map(|chip| chip.aliases.iter().copied().chain([chip.name]));
                    return Err(Diagnostic::error(at, format!("`{chip}` is not an R500 chip"))
                        .help(suggest(&chip, names)));
                }
                self.chip = Some(chip);
            }
            ".base" => self.base = number(cursor, "a slot", unit.slots as u64 - 1)? as u32,
            ".const" => {
                let (what, count) = unit.constant;
                let number = number(cursor, what, count as u64 - 1)? as u8;
                self.constants.push((number, vector(cursor)?));
            }
            ".state" => self.state(cursor, unit)?,
            ".data" => self.data.push(word(cursor, "a 32-bit word")?),
            _ => {
                return Err(Diagnostic::error(span, format!("unknown directive `{name}`"))
                    .help(suggest(name, unit.directives.iter().map(|row| row.name))));
            }
        }
        Ok(())
    }

    fn state(&mut self, cursor: &mut Cursor<'_>, unit: &Directives) -> Parsed<()> {
        let at = cursor.here();
        let name = cursor.word().to_owned();
        let register = named_register(unit.state, &name).map(|(register, _)| register);
        if register.is_none() && !unit.elsewhere.iter().any(|start| name.starts_with(start)) {
            let names = unit.state.iter().map(|register| register.word.name);
            let similar = match unit.numbered {
                true => name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_'),
                false => &name,
            };
            return Err(Diagnostic::error(at, format!("unknown state register `{name}`"))
                .help(suggest(similar, names)));
        }
        let raw = state_value(cursor, &name, register.map(|register| &register.word))?;
        self.set(name, raw);
        Ok(())
    }

    /// Sets one state register.
    pub(crate) fn set(&mut self, name: String, value: u32) {
        match self.state.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.state.push((name, value)),
        }
    }

    /// Returns the value of a state register. If the text did not set the register, the function returns `None`.
    pub(crate) fn get(&self, name: &str) -> Option<u32> {
        self.state.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Returns the assembled program with the instructions `instructions`. `places` holds the positions of the
    /// instructions in the text.
    pub(crate) fn assembled<const N: usize>(
        self,
        instructions: impl Iterator<Item = [u32; N]>,
        places: impl Iterator<Item = usize>,
    ) -> Assembled {
        let Stated { base, state, constants, chip, data } = self;
        let words = instructions.flatten().chain(data).collect();
        let constants = constant_blocks(&constants);
        let program = Program { words, base, state, constants, ..Program::default() };
        Assembled { program, chip, lines: (base..).zip(places).collect() }
    }
}

/// Joins consecutive constants into blocks.
fn constant_blocks(constants: &[(u8, [u32; 4])]) -> Vec<ConstantBlock> {
    let mut blocks: Vec<ConstantBlock> = Vec::new();
    for (number, value) in constants {
        let offset = u32::from(*number) * 16;
        let bytes = value.iter().flat_map(|word| word.to_le_bytes());
        match blocks.last_mut() {
            Some(block) if block.offset + block.bytes.len() as u32 == offset => block.bytes.extend(bytes),
            _ => blocks.push(ConstantBlock { bank: 0, offset, bytes: bytes.collect() }),
        }
    }
    blocks
}
