//! Arrays of register values next to programs. Tools for the Wii U write `u32 ps_regs[] = { … };` next to `u32
//! ps_program[] = { … };`.
//!
//! The name of such an array ends in `Regs` or `Registers`. The array contains either packets that set registers, or
//! the registers of a GX2 structure in the order of the structure. These registers are the state of a program. The
//! names of the program and the array start with the same text. The array is not read as code.

use reconverge_isa::Image;
use reconverge_isa::program::Stage;

use crate::gsh;
use crate::r600_elf::{register_name, resources_of};

/// An array of registers.
pub(super) struct RegisterArray {
    /// Name of the array.
    pub(super) name: String,
    /// Number of programs of the image that precede the array in the source.
    pub(super) after: usize,
    /// Elements of the array.
    pub(super) values: Vec<u32>,
}

/// Suffixes of the names of register arrays.
const ENDINGS: [&str; 4] = ["registers", "register", "regs", "reg"];

/// Suffixes of the names of programs.
const CODE: [&str; 8] = ["program", "shader", "code", "data", "words", "binary", "bytes", "prog"];

/// If `name` is the name of a register array, returns the prefix that this name shares with the name of the array's
/// program.
fn stem(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let found = ENDINGS.iter().find_map(|ending| lower.strip_suffix(ending))?;
    // In `vsRegs` and `vs_regs`, the suffix is a separate word. In `segregs`, the suffix is not a separate word.
    let word = name[found.len()..].starts_with(|c: char| c.is_ascii_uppercase())
        || found.ends_with('_')
        || found.is_empty();
    word.then(|| bare(found))
}

/// Removes the suffixes in [`CODE`] from a lower-case name.
fn bare(name: &str) -> String {
    let mut name = name.trim_end_matches('_');
    while let Some(rest) = CODE.iter().find_map(|ending| name.strip_suffix(ending)) {
        name = rest.trim_end_matches('_');
    }
    name.to_owned()
}

/// Program type and registers.
type SetRegisters = (Option<Stage>, Vec<(String, u32)>);

/// Returns the registers of an array. If the number of registers determines the program type, the function also returns
/// the program type.
pub(super) fn state_of(values: &[u32]) -> Option<SetRegisters> {
    gsh::registers_of(values)
        .map(|(stage, state)| (Some(stage), state))
        .or_else(|| Some((None, packets(values)?)))
}

/// Returns whether an array contains registers. The name and the values of the array decide.
pub(super) fn looks_like(name: &str, values: &[u32]) -> bool {
    stem(name).is_some() && state_of(values).is_some()
}

/// Returns the registers that packets set. A packet consists of a header of type 3 with the opcode SET_CONTEXT_REG, the
/// first register, and the values of consecutive registers. (Mesa `r600d.h`)
fn packets(values: &[u32]) -> Option<Vec<(String, u32)>> {
    const SET_CONTEXT_REG: u32 = 0x69;
    let mut state = Vec::new();
    let mut rest = values;
    while let [header, first, after @ ..] = rest {
        let count = (header >> 16 & 0x3fff) as usize;
        let fits =
            header >> 30 == 3 && header >> 8 & 0xff == SET_CONTEXT_REG && header & 0xff == 0 && count > 0;
        let (set, next) = after.split_at_checked(count).filter(|_| fits)?;
        for (index, value) in set.iter().enumerate() {
            let address = (*first & 0xffff).checked_mul(4)?.checked_add(0x28000 + 4 * index as u32)?;
            let name = register_name(address);
            state.push((name.map_or_else(|| format!("{address:#07x}"), str::to_owned), *value));
        }
        rest = next;
    }
    (rest.is_empty() && !state.is_empty()).then_some(state)
}

/// Adds the registers of each array to the program with the same prefix. If no program has this prefix, adds the
/// registers to a program next to the array.
pub(super) fn attach(image: &mut Image, arrays: Vec<RegisterArray>) {
    for RegisterArray { name, after, values } in arrays {
        let Some((stage, state)) = state_of(&values) else { continue };
        let stem = stem(&name).unwrap_or_default();
        let is_free =
            |index: &usize| image.programs.get(*index).is_some_and(|program| program.state.is_empty());
        let alike = |index: &usize| {
            let program = image.programs.get(*index).and_then(|program| program.name.as_deref());
            !stem.is_empty() && program.is_some_and(|program| bare(&program.to_ascii_lowercase()) == stem)
        };
        let all = 0..image.programs.len();
        let found = all.clone().filter(alike).find(is_free);
        // If no name of a program shares a prefix with the name of the array, the array belongs to the program before
        // the array. If no program precedes the array, the array belongs to the program after the array.
        let near = || {
            [after.checked_sub(1), Some(after)]
                .into_iter()
                .flatten()
                .find(|index| stem.is_empty() && is_free(index))
        };
        let Some(program) = found.or_else(near).and_then(|index| image.programs.get_mut(index)) else {
            image.notes.push(format!(
                "array {name} was skipped, because it contains registers of a program that was not read"
            ));
            continue;
        };
        program.stage = program.stage.or(stage);
        if let Some((_, resources)) = state.iter().find(|(name, _)| name.starts_with("SQ_PGM_RESOURCES_")) {
            program.resources = resources_of(*resources);
        }
        image.notes.push(format!(
            "array {name} holds the registers of {}",
            program.name.as_deref().unwrap_or("a program")
        ));
        program.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endian, Hints};

    /// Returns an array of `count` registers. The array has the resources of the program and then zeros.
    fn array(name: &str, count: usize) -> String {
        format!("static const u32 {name}[] = {{ 0x00000103{} }};\n", ", 0".repeat(count - 1))
    }

    fn read(text: &str) -> Image {
        crate::load(text.as_bytes(), &Hints { endian: Some(Endian::Big), ..Hints::default() }).unwrap()
    }

    fn stages(image: &Image) -> Vec<(&str, Option<Stage>, usize, Option<u32>)> {
        let head = |program: &'_ reconverge_isa::Program| {
            (program.stage, program.state.len(), program.resources.registers)
        };
        image
            .programs
            .iter()
            .map(|program| {
                let (stage, state, registers) = head(program);
                (program.name.as_deref().unwrap_or(""), stage, state, registers)
            })
            .collect()
    }

    const CODE: &str = "static const u32 NAME[] = { 0x00000000, 0x00008009, 0x00000000, 0x88062094 };\n";

    #[test]
    fn registers_stay_with_their_program() {
        let code = |name: &str| CODE.replace("NAME", name);
        for (program, registers) in
            [("cpVertexShaderProgram", "cpVertexShaderRegs"), ("vs", "vs_regs"), ("vs_code", "vsRegisters")]
        {
            let text = code(program) + &array(registers, 52) + &code("other");
            let image = read(&text);
            assert_eq!(
                stages(&image),
                [(program, Some(Stage::Vertex), 8, Some(3)), ("other", None, 0, None)],
                "{registers}"
            );
            assert_eq!(image.programs[0].state("SQ_PGM_RESOURCES_VS"), Some(0x103));
            assert!(image.notes.iter().any(|note| note.contains(registers)), "{:?}", image.notes);
        }
        let pixel = read(&(array("Regs", 41) + &code("Program")));
        assert_eq!(stages(&pixel), [("Program", Some(Stage::Pixel), 8, Some(3))]);
    }

    #[test]
    fn packets_that_set_registers_are_state() {
        let code = CODE.replace("NAME", "ps");
        // SQ_PGM_RESOURCES_PS and SQ_PGM_EXPORTS_PS, then DB_SHADER_CONTROL.
        let packets = "u32 ps_regs[] = { 0xc0026900, 0x214, 0x205, 2, 0xc0016900, 0x203, 0x10 };";
        let image = read(&(code + packets));
        assert_eq!(stages(&image), [("ps", None, 3, Some(5))]);
        assert_eq!(image.programs[0].state("DB_SHADER_CONTROL"), Some(0x10));
        assert_eq!(image.programs[0].state("0x28854"), Some(2));
    }

    #[test]
    fn other_arrays_are_code() {
        // No structure has 12 registers, and `aggregates` and `segregs` are not names of register arrays.
        for text in [array("vs_regs", 12), array("aggregates", 52), array("segregs", 52)] {
            assert_eq!(read(&text).programs.len(), 1, "{text}");
            assert_eq!(read(&text).programs[0].state, []);
        }
        // The number of outputs is out of range.
        let wrong = array("vs_regs", 52).replacen(", 0, 0, 0", ", 0, 0, 11", 1);
        assert_eq!(read(&wrong).programs.len(), 1);
        let alone = crate::load(array("vs_regs", 52).as_bytes(), &Hints::default()).unwrap_err().to_string();
        assert!(alone.contains("machine code"), "{alone}");
    }
}
