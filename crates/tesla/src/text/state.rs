//! Prints the contents of a container as directives, except for the words of the code.

use reconverge_isa::Program;
use reconverge_isa::program::{ConstantBlock, Module, Place, Sampler};
use reconverge_isa::read::{push_decimal, push_hex, push_word};

use super::notes::{About, push_comment};
use super::written::PARAMETERS;

/// Prints a module: the line `.module` and the directives of the module.
pub(super) fn push_module(module: &Module, chip: Option<&str>, out: &mut String) {
    out.push_str(".module");
    if let Some(name) = &module.name {
        out.push(' ');
        push_name(name, out);
    }
    out.push('\n');
    if let Some(chip) = chip {
        out.extend([".chip ", chip, "\n"]);
    }
    for (directive, value) in [(".abi ", module.abi_version), (".pointers ", module.pointer_bytes)] {
        push_number(directive, value, out);
    }
    push_samplers(&module.samplers, out);
    for variable in &module.variables {
        out.push_str(".variable ");
        push_name(&variable.name, out);
        out.push(' ');
        push_decimal(variable.bytes, out);
        match &variable.place {
            Place::Constant { bank, offset } => push_constant_place(*bank, *offset, out),
            Place::Global { slots, init } => {
                out.push_str(" global");
                for slot in slots {
                    push_constant_place(slot.bank, slot.offset, out);
                    if slot.addend != 0 {
                        out.push('+');
                        push_hex(slot.addend, out);
                    }
                }
                if !init.is_empty() {
                    out.push('\n');
                    push_data(init, out);
                    continue;
                }
            }
        }
        out.push('\n');
    }
    push_constants(&module.constants, out);
}

/// Prints the directives of a program, and not its code: name, registers, memory, parameters, constants.
pub(super) fn push_program(program: &Program, about: Option<&About<'_>>, out: &mut String) {
    let resources = &program.resources;
    for (directive, value) in [
        (".reg ", resources.registers),
        (".shared ", resources.shared_bytes),
        (".local ", resources.local_bytes),
        (".bar ", resources.barriers),
        (".stack ", resources.stack),
        (".params ", resources.param_bytes),
    ] {
        push_number(directive, value, out);
    }
    for (name, value) in &program.state {
        out.push_str(".state ");
        push_name(name, out);
        out.push(' ');
        push_hex(*value, out);
        out.push('\n');
    }
    push_samplers(&program.samplers, out);
    for param in &program.params {
        out.push_str(".param ");
        match param.offset.checked_add(PARAMETERS) {
            // The address is printed like an operand.
            Some(address) => {
                out.push_str("s[");
                push_hex(address, out);
                out.push(']');
            }
            None => push_hex(param.offset, out),
        }
        out.push(' ');
        push_decimal(param.bytes, out);
        if let Some(name) = &param.name {
            out.push(' ');
            push_name(name, out);
        }
        if let Some(named) = about.and_then(|about| about.param(param.offset)) {
            push_comment(&named.label, out);
        }
        out.push('\n');
    }
    push_constants(&program.constants, out);
}

fn push_number(directive: &str, value: Option<u32>, out: &mut String) {
    if let Some(value) = value {
        out.push_str(directive);
        push_decimal(value, out);
        out.push('\n');
    }
}

fn push_samplers(samplers: &[Sampler], out: &mut String) {
    for sampler in samplers {
        out.push_str(".sampler ");
        push_name(&sampler.name, out);
        out.push(' ');
        push_decimal(sampler.unit, out);
        out.push('\n');
    }
}

/// Prints ` c14[0x8]`.
fn push_constant_place(bank: u32, offset: u32, out: &mut String) {
    out.push_str(" c");
    push_decimal(bank, out);
    out.push('[');
    push_hex(offset, out);
    out.push(']');
}

fn push_constants(blocks: &[ConstantBlock], out: &mut String) {
    for block in blocks {
        out.push_str(".const ");
        push_decimal(block.bank, out);
        out.push(' ');
        push_hex(block.offset, out);
        // If a block is small, its words are printed on the line of the directive.
        if block.bytes.len() <= 16 {
            push_bytes(&block.bytes, out);
            out.push('\n');
        } else {
            out.push('\n');
            push_data(&block.bytes, out);
        }
    }
}

/// Number of bytes per line of `.data`.
const LINE: usize = 32;

/// Prints lines of `.data`.
fn push_data(bytes: &[u8], out: &mut String) {
    for line in bytes.chunks(LINE) {
        out.push_str("    .data");
        push_bytes(line, out);
        out.push('\n');
    }
}

/// Prints bytes as ` 0x12345678 0x00000000 bytes 0x12`: first the whole words, then the remaining bytes.
fn push_bytes(bytes: &[u8], out: &mut String) {
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        out.push_str(" 0x");
        push_word(u32::from_le_bytes(*word), out);
    }
    if !rest.is_empty() {
        out.push_str(" bytes");
        for &byte in rest {
            out.push(' ');
            push_hex(byte.into(), out);
        }
    }
}

/// Prints a name in a form that the assembler reads. A name is quoted if it is not a single word, or if its start could
/// begin a comment.
pub(super) fn push_name(name: &str, out: &mut String) {
    let plain =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && !b";\"/\\".contains(&byte));
    if plain {
        out.push_str(name);
        return;
    }
    out.push('"');
    for c in name.chars() {
        if matches!(c, ';' | '/') { out.extend(c.escape_unicode()) } else { out.extend(c.escape_default()) }
    }
    out.push('"');
}
