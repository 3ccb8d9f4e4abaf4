//! Comments after instructions: names of operands, values of constants, built-in variables.
//!
//! A comment does not change the words that the assembler produces. The built-in variables have the same names as in
//! CUDA.

use reconverge_isa::Program;
use reconverge_isa::program::{ConstantBlock, Module, Place, Sampler};

use super::written::{BUILT_INS, PARAMETERS};
use crate::decode::{decode, length};
use crate::inst::{
    Access, Arith, Base, Chip, Control, Dst, End, Group, Half, Idle, Inst, Mem, Memory, Op, Operand, Space,
    Stage,
};
use crate::lane::Width;

/// Names that the comments of a program use. These names come from outside the program.
#[derive(Clone, Debug, Default)]
pub struct About<'a> {
    /// The demangled name of the program.
    pub demangled: Option<String>,
    /// The parameters of the program.
    pub params: Vec<NamedParam>,
    /// The module of the program.
    pub module: Option<&'a Module>,
}

/// A parameter and its label in comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedParam {
    /// Offset of the first byte in the parameter area.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Name or number of the parameter, and its type.
    pub label: String,
}

impl About<'_> {
    /// Returns the parameter that begins at a byte of the parameter area.
    pub(super) fn param(&self, offset: u32) -> Option<&NamedParam> {
        self.params.iter().find(|param| param.offset == offset)
    }

    fn param_at(&self, offset: u32) -> Option<&NamedParam> {
        self.params
            .iter()
            .find(|param| (param.offset..param.offset.saturating_add(param.bytes)).contains(&offset))
    }
}

/// Appends ` ; text`. The comment is on one line, whatever the text contains.
pub(super) fn push_comment(text: &str, out: &mut String) {
    out.push_str(" ; ");
    out.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
}

/// Creates the comments of a program.
pub(super) struct Notes<'a> {
    about: &'a About<'a>,
    program: &'a Program,
    chip: Chip,
    stage: Stage,
    /// Index of the first word at which `$r0` may no longer have its initial value.
    first_r0: usize,
}

impl<'a> Notes<'a> {
    pub(super) fn new(about: &'a About<'a>, program: &'a Program, chip: Chip, stage: Stage) -> Notes<'a> {
        let mut notes = Notes { about, program, chip, stage, first_r0: 0 };
        notes.first_r0 = notes.first_r0_write();
        notes
    }

    fn inst(&self, index: usize) -> Option<Inst> {
        let first = *self.program.words.get(index)?;
        let second = self.program.words.get(index + 1).copied();
        let second = if length(first) == 2 { second? } else { 0 };
        decode([first, second], self.chip, self.stage).ok()
    }

    /// Returns the index of the first word at which `$r0` may have been written. In most cases, the result is the word
    /// after the start of the first instruction that writes `$r0`. If a later instruction jumps back to a word before
    /// this word, the result is the target of the jump.
    fn first_r0_write(&self) -> usize {
        if self.stage != Stage::Compute {
            return 0;
        }
        let (mut index, mut write, mut back) = (0, None, usize::MAX);
        while let Some(&first) = self.program.words.get(index) {
            if let Some(inst) = self.inst(index) {
                if write.is_none() && writes_r0(&inst) {
                    write = Some(index + 1);
                }
                if let (Op::Control(control), true) = (inst.op, write.is_some())
                    && let Some(target) = control.target()
                {
                    back = back.min(target.wrapping_sub(self.program.base) as usize / 4);
                }
            }
            index += length(first) as usize;
        }
        write.unwrap_or(usize::MAX).min(back)
    }

    /// Appends the comment on the instruction at a word. If `behind` is set, the comment comes after another comment.
    /// Otherwise, the comment starts at a fixed column. `line` is the start of the line in `out`.
    pub(super) fn push(&self, index: usize, behind: bool, line: usize, out: &mut String) {
        let Some(inst) = self.inst(index) else { return };
        let mut parts: Vec<String> = Vec::new();
        let floats = takes_floats(&inst.op);
        for operand in &inst.src {
            let part = match *operand {
                Operand::Imm(value) => immediate(value, &inst.op, floats),
                Operand::Mem(mem) => self.memory(&mem, floats),
                Operand::R16(Half(0)) if index < self.first_r0 => Some("threadIdx.x".to_owned()),
                Operand::R16(Half(1)) if index < self.first_r0 => {
                    Some("threadIdx.y + (threadIdx.z << 10)".to_owned())
                }
                Operand::R32(0) if index < self.first_r0 => {
                    Some("threadIdx.x + (threadIdx.y << 16) + (threadIdx.z << 26)".to_owned())
                }
                _ => None,
            };
            parts.extend(part.filter(|part| !parts.contains(part)));
        }
        match inst.op {
            Op::Group(Group::Tex(tex)) => parts.extend(self.sampler(tex.texture)),
            Op::Idle(Idle::Nop) if inst.end == End::Exit => parts.push("end".to_owned()),
            Op::Idle(Idle::Nop) if inst.end == End::Join => parts.push("lanes meet again".to_owned()),
            Op::Control(Control::Bar { inc: true, wait: true, .. }) => {
                parts.push("__syncthreads()".to_owned())
            }
            _ => {}
        }
        if parts.is_empty() {
            return;
        }
        if !behind {
            let width = out.len() - line;
            (width..52).for_each(|_| out.push(' '));
        }
        push_comment(&parts.join(", "), out);
    }

    fn sampler(&self, unit: u8) -> Option<String> {
        let is = |sampler: &&Sampler| sampler.unit == u32::from(unit);
        let of_module = || self.about.module.and_then(|module| module.samplers.iter().find(is));
        self.program.samplers.iter().find(is).or_else(of_module).map(|sampler| sampler.name.clone())
    }

    fn memory(&self, mem: &Mem, floats: bool) -> Option<String> {
        let direct = mem.base == Base::A(0) && !mem.increment;
        let offset = u32::try_from(mem.offset).ok()?;
        match mem.space {
            Space::Shared if self.stage == Stage::Compute && direct => {
                self.shared(mem.offset, offset, mem.access)
            }
            Space::Const(bank) if !mem.increment => {
                self.constant(u32::from(bank), offset, mem.access, direct, floats)
            }
            _ => None,
        }
    }

    /// Returns the built-in variable or parameter at an address of s[].
    fn shared(&self, signed: i32, offset: u32, access: Access) -> Option<String> {
        if offset < PARAMETERS {
            let end = signed + access.bytes() as i32;
            let names: Vec<&str> = BUILT_INS
                .iter()
                .filter(|(at, _)| (signed..end).contains(&(*at as i32)))
                .map(|(_, name)| *name)
                .collect();
            return (!names.is_empty()).then(|| names.join(" and "));
        }
        let at = offset - PARAMETERS;
        let param = self.about.param_at(at)?;
        Some(within(&param.label, at - param.offset))
    }

    /// Returns the variable or slot at an address of a constant bank, and its value.
    fn constant(&self, bank: u32, offset: u32, access: Access, direct: bool, floats: bool) -> Option<String> {
        let mut parts = Vec::new();
        for variable in self.about.module.into_iter().flat_map(|module| &module.variables) {
            match &variable.place {
                Place::Constant { bank: of, offset: at }
                    if *of == bank
                        && offset.checked_sub(*at).is_some_and(|inside| inside < variable.bytes) =>
                {
                    parts.push(within(&variable.name, offset - at));
                }
                Place::Global { slots, .. } if direct => {
                    let slot = slots.iter().find(|slot| (slot.bank, slot.offset) == (bank, offset));
                    if let Some(slot) = slot {
                        parts.push(format!("address of {}", within(&variable.name, slot.addend)));
                    }
                }
                Place::Constant { .. } | Place::Global { .. } => {}
            }
        }
        if direct && parts.is_empty() | parts.iter().all(|part| !part.starts_with("address of")) {
            parts.extend(self.contents(bank, offset, access).map(|value| value_text(value, access, floats)));
        }
        (!parts.is_empty()).then(|| parts.join(" = "))
    }

    /// Returns the bytes at an address of a constant bank. The program's own bytes override the bytes of the program's
    /// module.
    fn contents(&self, bank: u32, offset: u32, access: Access) -> Option<u32> {
        let of = |block: &ConstantBlock| -> Option<u32> {
            let at = offset.checked_sub(block.offset).filter(|_| block.bank == bank)? as usize;
            let bytes = block.bytes.get(at..at + access.bytes().min(4) as usize)?;
            Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
        };
        let module = || self.about.module.and_then(|module| module.constants.iter().find_map(of));
        self.program.constants.iter().rev().find_map(of).or_else(module)
    }
}

/// Returns `name`, or `name + 0x10` with the offset.
fn within(name: &str, offset: u32) -> String {
    if offset == 0 { name.to_owned() } else { format!("{name} + {offset:#x}") }
}

/// Formats a value that an operation reads. `access` is the type of the read, and determines the notation.
fn value_text(value: u32, access: Access, floats: bool) -> String {
    match access {
        Access::B32 | Access::B64 | Access::B128 => {
            let hex = format!("{value:#x}");
            number(value, floats).map_or_else(|| hex.clone(), |number| format!("{hex} ({number})"))
        }
        Access::U8 | Access::U16 => format!("{value}"),
        Access::S8 => format!("{}", value as u8 as i8),
        Access::S16 => format!("{}", value as u16 as i16),
    }
}

/// Formats a word as a float or as a negative number. Returns `None` if the word probably is neither a float nor a
/// negative number.
fn number(value: u32, floats: bool) -> Option<String> {
    let float = f32::from_bits(value);
    let magnitude = float.abs();
    // If the type of a word is only assumed to be float, the magnitude of the float must be plausible.
    let plausible = (1e-9..1e12).contains(&magnitude);
    if floats || plausible && value >> 16 != 0xffff {
        let mut text = format!("{float:?}");
        text.push('f');
        return Some(text);
    }
    ((value as i32) < 0 && value as i32 > -0x10_0000).then(|| format!("{}", value as i32))
}

fn immediate(value: u32, op: &Op, floats: bool) -> Option<String> {
    match op {
        _ if floats => number(value, true),
        Op::Arith(Arith::Mov { width: Width::B32 } | Arith::Logic { .. }) => number(value, false),
        Op::Arith(Arith::Add { width: Width::B32, .. }) => {
            ((value as i32) < 0).then(|| format!("{}", value as i32))
        }
        Op::Arith(Arith::Add { width: Width::B16, .. }) => {
            (value as u16 as i16).is_negative().then(|| format!("{}", value as u16 as i16))
        }
        _ => None,
    }
}

/// Returns whether the sources of an operation are f32.
fn takes_floats(op: &Op) -> bool {
    match op {
        Op::Arith(arith) => match arith {
            Arith::FAdd { .. }
            | Arith::FMul { .. }
            | Arith::FMad { .. }
            | Arith::FMin
            | Arith::FMax
            | Arith::FSet { .. }
            | Arith::Rcp
            | Arith::Rsqrt
            | Arith::Lg2
            | Arith::Sin
            | Arith::Cos
            | Arith::Ex2 { .. }
            | Arith::PreSin
            | Arith::PreEx2 => true,
            Arith::F2I { from, .. } | Arith::F2F32 { from, .. } | Arith::F2F16 { from, .. } => {
                *from == crate::lane::convert::FloatSize::F32
            }
            _ => false,
        },
        Op::Memory(_) | Op::Group(_) | Op::Control(_) | Op::Idle(_) => false,
    }
}

/// Returns whether an instruction may write part of `$r0`.
fn writes_r0(inst: &Inst) -> bool {
    let result = match inst.dst {
        Dst::R32(0) | Dst::R64(0) | Dst::R128(0) => true,
        Dst::R16(half) => half.register() == 0,
        _ => false,
    };
    let texture = matches!(inst.op, Op::Group(Group::Tex(tex)) if tex.base == 0);
    let stores = matches!(
        inst.op,
        Op::Memory(Memory::St | Memory::StUnlock | Memory::Red { .. } | Memory::Red64 { .. })
    );
    (result || texture) && !stores
}
