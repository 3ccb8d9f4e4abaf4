//! Programs of Mesa's nv50 compiler that address s[] wrongly, and the same programs with the addresses that are meant.
//!
//! s[] begins with 0x14 bytes that the hardware and the driver write; arguments of a kernel follow, then variables. The compiler
//! counts arguments and variables from 0 on, each by themselves (F2), and gives loads of arguments that it does not fold into
//! another instruction the form of a shader's inputs: without the type of the access, and with the offset divided by its size
//! (F5). Source: Mesa 22.3.6 and 25.0.7, `src/nouveau/codegen`: `nv50_ir_from_nir.cpp` (`Converter::visit`, which does not add
//! `inputOffset`), `nv50_ir_lowering_nv50.cpp` (`NV50LoweringPreSSA::handleRDSV`, `handleLDST`), `nv50_ir_emit_nv50.cpp`
//! (`CodeEmitterNV50::emitLOAD`).
//!
//! The form of an operand shows its meaning:
//!
//! | operand | means |
//! |---|---|
//! | `cvt` or `ld` of u16 s[0x2] to s[0x12] | a word of hardware or driver, where it says |
//! | `mov` of u8 s[k], 32 bits | the argument at byte 4k |
//! | `mov` of u8 s[k], 16 bits | the small argument at byte k or 2k: what reads it next has the type |
//! | folded into another instruction, of 32 bits or half of them, within the arguments | an argument |
//! | all others, stores, locks, and with an address register | a variable |
//!
//! A variable at a fixed offset below the size of the arguments is ambiguous if another instruction has it folded.

use crate::arith::Arith;
use crate::code::Code;
use crate::inst::{Access, Base, Dst, Half, Inst, Mem, Memory, Op, Operand, Space};
use crate::lane::convert::Size;

/// Bytes that hardware and driver write.
const HEADER: i32 = 0x14;

/// What the addresses of a program depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverFixes {
    /// Bytes of the arguments, without those that the driver itself adds.
    pub argument_bytes: u32,
}

impl DriverFixes {
    /// The name of these fixes in launch files, and of the option of `drm`.
    pub const NAME: &str = "nv50-compute";
}

/// A fault of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramFault {
    /// F2: a variable or an argument is addressed from s[0x0] on.
    Offset,
    /// F5: an argument is loaded in a form without a type.
    Form,
    /// An operand may mean an argument or a variable.
    Ambiguous,
}

/// What an operand in s[] means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// A word of hardware or driver.
    Header,
    /// An argument, folded.
    Argument,
    /// An argument in the form of a shader's input.
    Input,
    /// A variable.
    Variable,
}

fn meaning(inst: &Inst, mem: &Mem, arguments: u32) -> Meaning {
    if mem.base != Base::A(0) || mem.increment {
        return Meaning::Variable;
    }
    let within = u32::try_from(mem.offset).is_ok_and(|offset| offset + mem.access.bytes() <= arguments);
    match (inst.op, mem.access) {
        (Op::Arith(Arith::Mov { .. }), Access::U8) => Meaning::Input,
        (Op::Arith(Arith::I2I { .. } | Arith::I2F32 { .. }) | Op::Memory(Memory::Ld), Access::U16)
            if (2..HEADER).contains(&mem.offset) =>
        {
            Meaning::Header
        }
        (Op::Memory(_), _) => Meaning::Variable,
        _ if within => Meaning::Argument,
        _ => Meaning::Variable,
    }
}

/// The operands in s[] of an instruction, by their numbers.
fn operands(inst: &Inst) -> impl Iterator<Item = (usize, Mem)> + use<> {
    let of = |(number, operand): (usize, &Operand)| Some((number, *operand.mem()?));
    let all: Vec<(usize, Mem)> = inst.src.iter().enumerate().filter_map(of).collect();
    all.into_iter().filter(|(_, mem)| mem.space == Space::Shared)
}

/// Returns the program with the addresses that are meant.
pub fn fixed(code: &Code, fixes: DriverFixes) -> Code {
    let arguments = fixes.argument_bytes;
    code.mapped(|place, inst| {
        let mut inst = *inst;
        for (number, mut mem) in operands(&inst) {
            let meaning = meaning(&inst, &mem, arguments);
            match meaning {
                Meaning::Header => continue,
                Meaning::Argument => mem.offset += HEADER,
                Meaning::Variable => mem.offset += HEADER + arguments as i32,
                Meaning::Input => {
                    mem.access = input_access(code, place, inst.dst);
                    mem.offset = mem.offset * mem.access.bytes() as i32 + HEADER;
                }
            }
            inst.src[number] = Operand::Mem(mem);
        }
        inst
    })
}

/// Returns the type of the argument that the instruction at a place loads to `dst`: the type that the next reader uses.
fn input_access(code: &Code, place: usize, dst: Dst) -> Access {
    let Dst::R16(half) = dst else { return Access::B32 };
    for inst in (place + 1..code.words().len()).filter_map(|place| code.slot(place)) {
        let reads =
            inst.src.contains(&Operand::R16(half)) || inst.src.contains(&Operand::R32(half.register()));
        match inst.op {
            Op::Arith(Arith::I2I { from, .. } | Arith::I2F32 { from, .. }) if reads => {
                return if from.size == Size::B8 { Access::U8 } else { Access::U16 };
            }
            Op::Memory(Memory::St) if reads => {
                let byte = inst.src[0].mem().is_some_and(|mem| mem.access.bytes() == 1);
                return if byte { Access::U8 } else { Access::U16 };
            }
            _ if reads && !is_move(inst, half) => return Access::U16,
            _ => {}
        }
        if inst.dst == Dst::R16(half) || inst.dst == Dst::R32(half.register()) {
            break;
        }
    }
    Access::U16
}

/// Whether an instruction only moves a half register.
fn is_move(inst: &Inst, half: Half) -> bool {
    matches!(inst.op, Op::Arith(Arith::Mov { .. })) && inst.src[0] == Operand::R16(half)
}

/// Returns the faults of a program, each with the place of the first instruction that has it.
pub fn faults(code: &Code, fixes: DriverFixes) -> Vec<(ProgramFault, usize)> {
    let mut found: Vec<(ProgramFault, usize)> = Vec::new();
    let mut add = |fault: ProgramFault, place: usize| {
        if !found.iter().any(|(known, _)| *known == fault) {
            found.push((fault, place));
        }
    };
    let (mut folded, mut fixed): (Vec<(i32, usize)>, Vec<i32>) = (Vec::new(), Vec::new());
    for (place, inst) in code.slots().enumerate().filter_map(|(place, inst)| Some((place, inst?))) {
        for (_, mem) in operands(inst) {
            match meaning(inst, &mem, fixes.argument_bytes) {
                Meaning::Header => {}
                Meaning::Input => add(ProgramFault::Form, place),
                Meaning::Argument => {
                    add(ProgramFault::Offset, place);
                    folded.push((mem.offset, place));
                }
                Meaning::Variable => {
                    add(ProgramFault::Offset, place);
                    fixed.extend((mem.base == Base::A(0)).then_some(mem.offset));
                }
            }
        }
    }
    let both = |(offset, _): &&(i32, usize)| fixed.iter().any(|other| (offset - other).abs() < 4);
    if let Some((_, place)) = folded.iter().find(both) {
        add(ProgramFault::Ambiguous, *place);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;
    use crate::inst::{Chip, Stage};
    use crate::text::assemble;

    fn code(text: &str) -> Code {
        let words = assemble(text, Chip::Gt215, Stage::Compute).unwrap().words();
        Code::new(&words, 0, Stage::Compute, Chip::Gt215)
    }

    /// Returns the operands in s[] of a program after the fix.
    fn places(code: &Code, argument_bytes: u32) -> Vec<(Access, i32)> {
        let fixed = fixed(code, DriverFixes { argument_bytes });
        let mut all = Vec::new();
        let mut place = 0;
        while let Some(inst) = fixed.slot(place) {
            all.extend(operands(inst).map(|(_, mem)| (mem.access, mem.offset)));
            place += inst.form.words() as usize;
        }
        all
    }

    /// Captured from rusticl: `k(__global uint *o, uint n)`.
    #[test]
    fn arguments_lie_behind_the_words_of_hardware_and_driver() {
        let words = [0x2000_c001, 0x0420_0780];
        let inst = decode(words, Chip::Gt215, Stage::Compute).unwrap();
        let code = Code::of(&words, 0, (Stage::Compute, Chip::Gt215), &[(0, inst)]);
        assert_eq!(places(&code, 0x1c), [(Access::B32, 0x14)]);
        let faults = faults(&code, DriverFixes { argument_bytes: 0x1c });
        assert_eq!(faults, [(ProgramFault::Offset, 0)]);
    }

    /// `CodeEmitterNV50::emitLOAD` of a shader's input: 32 bits at byte 8, and at byte 0xe what `cvt` takes for 16 bits.
    #[test]
    fn loads_in_the_form_of_inputs_get_their_type() {
        let words = [0x1000_0405, 0x0423_c780, 0x1000_0e05, 0x0023_c780];
        let insts = [0, 2].map(|place| {
            (place, decode([words[place], words[place + 1]], Chip::Gt215, Stage::Compute).unwrap())
        });
        let code = Code::of(&words, 0, (Stage::Compute, Chip::Gt215), &insts);
        assert_eq!(places(&code, 0x10), [(Access::B32, 0x1c), (Access::U16, 0x30)]);
        assert_eq!(faults(&code, DriverFixes { argument_bytes: 0x10 }), [(ProgramFault::Form, 0)]);
    }

    #[test]
    fn variables_lie_behind_the_arguments_and_header_words_stay() {
        let code = code(
            "cvt u32 $r1 u16 u16 s[0xc]
             ld $r2 b32 s[$a1+0x40]
             ld lock $c0 $r3 b32 s[0x0]
             st unlock b32 s[0x0] $r3
             exit nop",
        );
        let all = [
            (Access::U16, 0xc),
            (Access::B32, 0x40 + 0x14 + 8),
            (Access::B32, 0x14 + 8),
            (Access::B32, 0x14 + 8),
        ];
        assert_eq!(places(&code, 8), all);
        assert_eq!(faults(&code, DriverFixes { argument_bytes: 8 }).len(), 1);
    }

    #[test]
    fn a_place_that_is_stored_to_and_folded_is_ambiguous() {
        let code = code("st b32 s[0x4] $r1\nadd b32 $r0 b32 s[0x4] $r0\nexit nop");
        let names = |argument_bytes| -> Vec<ProgramFault> {
            faults(&code, DriverFixes { argument_bytes }).into_iter().map(|(fault, _)| fault).collect()
        };
        assert_eq!(names(8), [ProgramFault::Offset, ProgramFault::Ambiguous]);
        assert_eq!(names(0), [ProgramFault::Offset]);
    }
}
