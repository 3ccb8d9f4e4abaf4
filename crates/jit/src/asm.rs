//! Assembler: a list of instructions with labels, and their encoding.

use crate::CompileError;
use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, OpKind, Register};

/// A position in the code. Instructions may refer to the label before the position of the label is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// Operand of an instruction: a register or memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rm {
    Register(Register),
    Memory(MemoryOperand),
}

impl From<Register> for Rm {
    fn from(register: Register) -> Rm {
        Rm::Register(register)
    }
}

impl From<MemoryOperand> for Rm {
    fn from(memory: MemoryOperand) -> Rm {
        Rm::Memory(memory)
    }
}

/// Returns a memory operand from a base register, an index register and a displacement in bytes.
pub(crate) fn at(base: Register, index: Register, displacement: i32) -> MemoryOperand {
    let size = u32::from(displacement != 0);
    MemoryOperand::with_base_index_scale_displ_size(base, index, 1, displacement.into(), size)
}

/// Returns a memory operand from a base register and a displacement in bytes.
pub(crate) fn at_base(base: Register, displacement: i32) -> MemoryOperand {
    at(base, Register::None, displacement)
}

/// Encodes one instruction with an immediate. The library `iced-x86` builds its tables for the first encoded
/// instruction. Building the tables takes about 0.7 ms once per process (AMD EPYC).
pub(crate) fn prepare() {
    let mut asm = Assembler::default();
    asm.number(Code::Add_rm64_imm8, Register::RAX, 1);
    asm.bytes().expect("an addition has bytes");
}

/// The instructions so far. The assembler stores the first error that occurs. [`bytes`](Self::bytes) returns this
/// error.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    /// Index of the instruction after each label, or `None` if the label is not bound.
    labels: Vec<Option<usize>>,
    error: Option<IcedError>,
}

impl Assembler {
    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Binds the label to the position after the instructions that were added so far.
    pub(crate) fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.instructions.len());
    }

    pub(crate) fn push(&mut self, instruction: Result<Instruction, IcedError>) {
        match instruction {
            Ok(instruction) => self.instructions.push(instruction),
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
    }

    /// Adds an instruction for the lanes of a mask register.
    pub(crate) fn masked(&mut self, instruction: Result<Instruction, IcedError>, mask: Register) {
        self.push(instruction.map(|mut instruction| {
            instruction.set_op_mask(mask);
            instruction
        }));
    }

    /// Adds a jump or call to a label.
    pub(crate) fn branch(&mut self, code: Code, label: Label) {
        self.push(Instruction::with_branch(code, label.0 as u64));
    }

    /// Adds an instruction without operands.
    pub(crate) fn plain(&mut self, code: Code) {
        self.instructions.push(Instruction::with(code));
    }

    /// Adds an instruction with a destination and a single source.
    pub(crate) fn two(&mut self, code: Code, to: Register, from: impl Into<Rm>) {
        self.push(match from.into() {
            Rm::Register(from) => Instruction::with2(code, to, from),
            Rm::Memory(from) => Instruction::with2(code, to, from),
        });
    }

    /// Adds an instruction with a destination in memory and a source.
    pub(crate) fn store(&mut self, code: Code, to: MemoryOperand, from: Register) {
        self.push(Instruction::with2(code, to, from));
    }

    /// Adds an instruction with two operands: a register or memory, and an immediate.
    pub(crate) fn number(&mut self, code: Code, to: impl Into<Rm>, number: i32) {
        self.push(match to.into() {
            Rm::Register(to) => Instruction::with2(code, to, number),
            Rm::Memory(to) => Instruction::with2(code, to, number),
        });
    }

    /// Adds an instruction with a destination and two sources.
    pub(crate) fn three(&mut self, code: Code, to: Register, a: Register, b: impl Into<Rm>) {
        self.push(match b.into() {
            Rm::Register(b) => Instruction::with3(code, to, a, b),
            Rm::Memory(b) => Instruction::with3(code, to, a, b),
        });
    }

    /// Inserts instructions before all earlier instructions.
    pub(crate) fn before(&mut self, first: impl FnOnce(&mut Assembler)) {
        let mut front = Assembler::default();
        first(&mut front);
        let moved = front.instructions.len();
        self.labels.iter_mut().flatten().for_each(|place| *place += moved);
        self.error = self.error.take().or(front.error);
        front.instructions.append(&mut self.instructions);
        self.instructions = front.instructions;
    }

    /// Returns the encoded bytes. The bytes do not depend on the address at which the code is placed.
    ///
    /// # Errors
    /// An instruction cannot be encoded, or a label is not bound.
    pub(crate) fn bytes(self) -> Result<Vec<u8>, CompileError> {
        Ok(self.encode(&[])?.0)
    }

    /// Returns the encoded bytes, and the offset of each label in the bytes.
    ///
    /// # Errors
    /// The errors are those of [`Assembler::bytes`].
    pub(crate) fn encode(self, labels: &[Label]) -> Result<(Vec<u8>, Vec<u32>), CompileError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        let mut encoder = Encoder::new(64);
        let mut starts = Vec::with_capacity(self.instructions.len() + 1);
        // Each jump and call: the end of the instruction, and its label. The instruction ends with the distance to the
        // label, which is not yet known.
        let mut branches = Vec::new();
        let mut end = 0;
        for mut instruction in self.instructions {
            starts.push(end as u32);
            let label = (instruction.op0_kind() == OpKind::NearBranch64).then(|| instruction.near_branch64());
            if label.is_some() {
                instruction.set_near_branch64(end as u64);
            }
            end += encoder.encode(&instruction, end as u64)?;
            branches.extend(label.map(|label| (end, Label(label as usize))));
        }
        starts.push(end as u32);
        let offset = |label: Label| {
            let instruction = self.labels.get(label.0).copied().flatten();
            instruction.map(|instruction| starts[instruction]).ok_or(CompileError::Label(label.0))
        };
        let mut bytes = encoder.take_buffer();
        for (end, label) in branches {
            let distance = offset(label)?.wrapping_sub(end as u32);
            bytes[end - 4..end].copy_from_slice(&distance.to_le_bytes());
        }
        let offsets = labels.iter().copied().map(offset).collect::<Result<_, _>>()?;
        Ok((bytes, offsets))
    }
}
