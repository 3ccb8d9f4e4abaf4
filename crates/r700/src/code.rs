//! A decoded program. The program consists of control-flow instructions with addresses, and decoded clauses. An ALU
//! instruction of a clause has a slot, an opcode, and the values of its literals.
//!
//! The decoder starts at the first instruction and decodes only reachable instructions. The gaps between clauses may
//! contain any data. Source: MAN chapters 2 (formats), 3 (control flow) and 4 (groups, slots, literals).

mod decode;

use std::ops::Range;

use reconverge_isa::WordError;
use thiserror::Error;

use crate::chip::Chip;
use crate::control;
use crate::flow::{AluForm, Condition, Control};
use crate::meaning::{Meaning, Opcode};
use crate::words::{
    CfInst, ExportInst, IndexModeR700, KcacheMode, MemDsrDword0, MemDsrDword1, MemDswDword1, MemOp,
    MemRdDword0, MemRdDword1, MemRdDword2, TexDword0R700, TexDword1, TexDword2, VtxDword0, VtxDword1Gpr,
    VtxDword2R700,
};
use decode::Reader;
pub(crate) use decode::{LITERAL, is_final_return, is_op3, literal_pairs, select};

/// A program that can run.
#[derive(Clone, Debug)]
pub struct Code {
    chip: Chip,
    /// For each address, the index in `cf` of the instruction at this address. If no instruction was decoded at the
    /// address, the entry is [`UNREACHED`].
    place: Vec<u32>,
    cf: Vec<Result<Cf, CodeFault>>,
    /// The ALU instructions of all clauses, in one list. Creating one list is much faster than creating one list per
    /// clause.
    ops: Vec<AluOp>,
    groups: Vec<GroupSpan>,
}

/// Entry of [`Code::place`] for an address that control flow cannot reach.
const UNREACHED: u32 = u32::MAX;

/// One control-flow instruction.
#[derive(Clone, Debug)]
pub struct Cf {
    /// The operation.
    pub op: CfOp,
    /// Whether the program ends after this instruction.
    pub end_of_program: bool,
}

/// Operation of a control-flow instruction.
#[derive(Clone, Debug)]
pub enum CfOp {
    /// An instruction that only changes the flow of lanes.
    Control(CfInst, Control),
    /// Runs fetch instructions for the lanes that pass the instruction's condition.
    Fetch(CfInst, Control, Vec<Fetch>),
    /// Runs ALU groups.
    Alu(AluClause),
    /// EXPORT or EXPORT_DONE.
    Export(Control, Export),
    /// An access to memory: one of the MEM_* instructions.
    Memory(Control, MemoryExport),
}

/// An ALU clause, and the windows of constants that the clause locks.
#[derive(Clone, Debug)]
pub struct AluClause {
    /// Effect of the clause on the stack.
    pub form: AluForm,
    /// WHOLE_QUAD_MODE.
    pub whole_quad_mode: bool,
    /// The two windows into constant buffers.
    pub kcache: [Window; 2],
    /// ALT_CONST. If this field is set, a clause of a vertex program reads the constants of the pixel stage, and a
    /// clause of a pixel program reads the constants of the vertex stage.
    pub alt_const: bool,
    /// The part of the program that contains the clause, including the literals. The unit is 64-bit words.
    pub slots: Range<u32>,
    /// Groups of the clause, as indices into the groups of the program.
    pub(crate) groups: Range<u32>,
}

impl AluClause {
    /// Returns the number of groups, 1 to 128.
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }
}

/// Position of a group in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupSpan {
    /// Address of the group's first slot.
    pub(crate) addr: u32,
    /// Index of the group's first instruction in the program's list of ALU instructions.
    pub(crate) first: u32,
    /// Number of instructions, 1 to 5.
    pub(crate) len: u8,
}

/// KCACHE_BANK, KCACHE_ADDR, KCACHE_MODE of one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The constant buffer, 0 to 15.
    pub bank: u8,
    /// The first locked line. A line has 16 constants.
    pub line: u8,
    /// KCACHE_MODE, which determines the locked lines.
    pub mode: KcacheMode,
}

/// The ALU instructions of a group. The chip issues them together.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// Address of the group's first slot.
    pub addr: u32,
    /// Instructions of the group, up to five, in program order.
    pub ops: &'a [AluOp],
}

/// Number of slot t.
pub const TRANS: u8 = 4;

/// One ALU instruction.
#[derive(Clone, Debug)]
pub struct AluOp {
    /// The opcode and its meaning.
    pub opcode: &'static Opcode,
    /// Slot of the instruction: 0 to 3 are x to w, 4 is t.
    pub slot: u8,
    /// Operands. The instruction reads only the first `opcode.sources` operands.
    pub sources: [Source; 3],
    /// DST_GPR.
    pub dst_gpr: u8,
    /// DST_CHAN, 0 to 3.
    pub dst_chan: u8,
    /// DST_REL.
    pub dst_rel: bool,
    /// WRITE_MASK: whether the instruction writes the register. OP3 instructions always write the register.
    pub write: bool,
    /// The factor that OMOD applies to the result, or 1.0 if OMOD is not set.
    pub omod: f32,
    /// CLAMP.
    pub clamp: bool,
    /// INDEX_MODE.
    pub index_mode: IndexModeR700,
    /// PRED_SEL. Only lanes whose predicate has this value run the instruction. If the field is `None`, every active
    /// lane runs the instruction.
    pub pred_sel: Option<bool>,
    /// UPDATE_PRED.
    pub update_pred: bool,
    /// UPDATE_EXECUTE_MASK.
    pub update_execute_mask: bool,
}

impl AluOp {
    /// Returns the operands that the instruction reads.
    pub fn read(&self) -> &[Source] {
        &self.sources[..usize::from(self.opcode.sources)]
    }

    /// Returns whether the instruction writes a register.
    pub fn writes(&self) -> bool {
        self.write && !matches!(self.opcode.meaning, Meaning::Nothing)
    }

    /// Returns whether the instruction is a PRED_SET*.
    pub fn sets_predicate(&self) -> bool {
        self.opcode.meaning.sets_predicate()
    }
}

impl<'a> Group<'a> {
    /// Returns the PRED_SET* whose result becomes the predicate. If the group has no PRED_SET*, the function returns
    /// `None`. If the group has several PRED_SET*, the machine computes the returned PRED_SET* last. The machine
    /// computes instructions with an indexed destination before all other instructions. If an operation takes a pair of
    /// slots, the instruction in the lower slot has the operation's result.
    pub fn deciding(&self) -> Option<&'a AluOp> {
        let first = |op: &&AluOp| op.dst_rel && !op.opcode.meaning.spans_slots();
        let counts =
            |op: &&AluOp| op.sets_predicate() && (!op.opcode.meaning.spans_slots() || op.slot & 1 == 0);
        let last = self.ops.iter().filter(|op| !first(op)).rfind(counts);
        last.or_else(|| self.ops.iter().filter(first).rfind(counts))
    }
}

/// One operand with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// Origin of the value.
    pub operand: Operand,
    /// Whether the machine adds an index to the number of the operand's register or constant. INDEX_MODE of the
    /// instruction selects this index.
    pub rel: bool,
    /// SRC_ABS.
    pub abs: bool,
    /// SRC_NEG.
    pub neg: bool,
}

/// Origin of an operand's value (MAN 4, source selectors).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register component.
    Gpr {
        /// Register, before indexing.
        gpr: u8,
        /// Component.
        chan: u8,
    },
    /// A constant in a locked window.
    Kcache {
        /// Window 0 or 1.
        set: u8,
        /// Constant in the window, 0 to 31.
        index: u8,
        /// Component.
        chan: u8,
    },
    /// An entry of the constant file (DX9 mode).
    ConstantFile {
        /// Entry, before indexing.
        index: u8,
        /// Component.
        chan: u8,
    },
    /// An inline constant or a literal.
    Value(u32),
    /// The result of a vector slot, 0 to 3, of the previous group.
    Previous(u8),
    /// The result of slot t of the previous group.
    PreviousScalar,
}

/// Source of a component in a fetch or an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// A component of the value, 0 to 3.
    Component(usize),
    /// The constant 0.
    Zero,
    /// The constant 1.
    One,
    /// The instruction does not write the destination component.
    Mask,
}

/// EXPORT or EXPORT_DONE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// TYPE.
    pub kind: ExportKind,
    /// ARRAY_BASE.
    pub base: u16,
    /// RW_GPR.
    pub gpr: u8,
    /// RW_REL.
    pub rel: bool,
    /// SEL_X to SEL_W.
    pub select: [Select; 4],
    /// Number of registers, 1 to 16.
    pub burst: u8,
    /// Whether this is the last export of its kind.
    pub done: bool,
}

/// TYPE of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExportKind {
    /// Colours and computed Z.
    Pixel,
    /// The position and the other outputs with a fixed meaning, such as the point size.
    Pos,
    /// Parameters for the pixel stage.
    Param,
}

/// A memory export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryExport {
    /// The instruction. Its name states the memory space.
    pub inst: ExportInst,
    /// Whether the machine adds component x of register INDEX_GPR to the base.
    pub indexed: bool,
    /// Whether the instruction reads memory into registers instead of writing registers to memory (R600 only).
    pub read: bool,
    /// Whether the instruction requests an acknowledge.
    pub ack: bool,
    /// ARRAY_BASE.
    pub base: u16,
    /// ARRAY_SIZE.
    pub size: u16,
    /// RW_GPR.
    pub gpr: u8,
    /// RW_REL.
    pub rel: bool,
    /// INDEX_GPR.
    pub index_gpr: u8,
    /// Size of an element in dwords, 1 to 4.
    pub elem_dwords: u8,
    /// COMP_MASK, bit 0 is x.
    pub comp_mask: u8,
    /// Number of registers, 1 to 16.
    pub burst: u8,
}

impl MemoryExport {
    /// Returns the number of register components from which COMP_MASK selects. For a stream, the number is always four.
    /// For other memory, the number is the number of dwords in an element. (Source: Mesa `r600_shader.c`. There,
    /// `emit_streamout` can write component y of a register to elements of one dword.)
    pub fn components(&self) -> usize {
        if self.space().is_stream() { 4 } else { self.elem_dwords.into() }
    }

    /// Returns the dword of element 0. For streams and rings, ARRAY_BASE is a number of dwords for any element size.
    /// For other memory, ARRAY_BASE is a number of elements. (Source: Mesa `r600_shader.c`. In this file,
    /// `emit_streamout` and `emit_gs_ring_writes` write elements of several dwords to streams and rings. The manual, p.
    /// 45, describes only elements of one dword.)
    pub fn first_dword(&self) -> u64 {
        let space = self.space();
        let by_dword = space.is_stream() || space == Space::Ring;
        u64::from(self.base) * if by_dword { 1 } else { self.elem_dwords.into() }
    }

    /// Returns the memory space that the export accesses.
    pub(crate) fn space(&self) -> Space {
        match self.inst {
            ExportInst::MEM_STREAM0 => Space::Stream(0),
            ExportInst::MEM_STREAM1 => Space::Stream(1),
            ExportInst::MEM_STREAM2 => Space::Stream(2),
            ExportInst::MEM_STREAM3 => Space::Stream(3),
            ExportInst::MEM_SCRATCH => Space::Scratch,
            ExportInst::MEM_REDUCTION => Space::Reduction,
            ExportInst::MEM_RING => Space::Ring,
            ExportInst::MEM_EXPORT | ExportInst::EXPORT | ExportInst::EXPORT_DONE => Space::Scatter,
        }
    }
}

/// A memory space that a memory instruction can access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Scratch,
    Reduction,
    Ring,
    Stream(usize),
    Scatter,
}

impl Space {
    /// Returns whether the space is a stream-out record.
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Space::Stream(_))
    }
}

/// Returns the memory space that a READ instruction reads.
pub(crate) fn read_space(op: MemOp) -> Space {
    match op {
        MemOp::RD_REDUC => Space::Reduction,
        MemOp::RD_SCATTER => Space::Scatter,
        _ => Space::Scratch,
    }
}

/// One fetch instruction.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Address of the instruction.
    pub addr: u32,
    /// The kind of fetch.
    pub op: FetchOp,
    /// FETCH_WHOLE_QUAD.
    pub whole_quad: bool,
    /// SRC_GPR.
    pub src_gpr: u8,
    /// SRC_REL.
    pub src_rel: bool,
    /// DST_GPR.
    pub dst_gpr: u8,
    /// DST_REL.
    pub dst_rel: bool,
    /// DST_SEL_X to DST_SEL_W.
    pub select: [Select; 4],
}

/// Kind of a fetch instruction, with the words of the instruction.
#[derive(Clone, Debug)]
pub enum FetchOp {
    /// Reads a buffer.
    Vertex(VtxDword0, VertexFormat, VtxDword2R700),
    /// Reads a texture, or returns properties of the texture.
    Texture(TexDword0R700, TexDword1, TexDword2),
    /// Reads scratch, reduction or scatter memory.
    Memory(MemRdDword0, MemRdDword1, MemRdDword2),
    /// Writes the local data share.
    DataShareWrite(MemDswDword1),
    /// Reads the local data share.
    DataShareRead(MemDsrDword0, MemDsrDword1),
}

/// The second word of a vertex fetch.
#[derive(Clone, Copy, Debug)]
pub struct VertexFormat {
    /// The second word, decoded as the form that names a destination register. If the fetch has a semantic, this
    /// register is not used.
    pub word: VtxDword1Gpr,
    /// SEMANTIC_ID. The table of semantics maps SEMANTIC_ID to the destination register. If the word names the
    /// register, this field is `None`.
    pub semantic: Option<u8>,
}

/// Reason why words are not a valid instruction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodeFault {
    /// The instruction extends past the last word, or starts at an address where the program has no instruction.
    #[error("no instruction is here")]
    Cut,
    /// A field has a value that the manual does not define.
    #[error(transparent)]
    Word(#[from] WordError),
    /// No instruction has this number on this chip.
    #[error("{field} {number:#x} is not an instruction of this chip")]
    Unknown {
        /// The field.
        field: &'static str,
        /// Value of the field.
        number: u32,
    },
    /// Opcode tables name the instruction, but no source describes its words.
    #[error("{name} is not supported: the layout of its words is not documented")]
    Undocumented {
        /// Name of the instruction.
        name: &'static str,
    },
    /// No instruction of the group has the LAST bit before the clause ends, or the group's literals lie partly after
    /// the end of the clause.
    #[error("the clause ends inside a group")]
    OpenGroup,
    /// A group has more than five instructions.
    #[error("a group of more than five instructions")]
    LongGroup,
    /// Two instructions of one group need the same slot.
    #[error("two instructions of the group need slot {slot}")]
    SlotTaken {
        /// x, y, z, w or t.
        slot: char,
    },
    /// An operation takes several slots of the group, but the group does not have an instruction in each of these
    /// slots.
    #[error("{name} does not fill the slots it needs")]
    Incomplete {
        /// Name of the opcode.
        name: &'static str,
    },
    /// A source selector has no meaning.
    #[error("source selector {selector} is reserved")]
    Selector {
        /// Value of the selector.
        selector: u16,
    },
    /// A selector of a fetch or an export has no meaning.
    #[error("component select {0} is reserved")]
    Select(u32),
}

/// Settings that affect decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeOptions {
    /// The chip.
    pub chip: Chip,
    /// ALU_INST_PREFER_VECTOR of SQ_CONFIG. Drivers set this bit.
    pub prefer_vector: bool,
}

impl CodeOptions {
    /// Returns the settings with which drivers configure `chip`.
    pub const fn new(chip: Chip) -> CodeOptions {
        CodeOptions { chip, prefer_vector: true }
    }
}

impl Code {
    /// Decodes the instructions of `words` that are reachable from instruction `start`.
    ///
    /// For an invalid instruction, the program stores a [`CodeFault`] ([`Code::faults`]). An invalid instruction traps
    /// only if a wavefront executes the instruction.
    pub fn new(words: &[u32], start: u32, options: CodeOptions) -> Code {
        let mut reader =
            Reader { words, options, ops: Vec::with_capacity(words.len() / 2), groups: Vec::new() };
        let mut place = vec![UNREACHED; words.len() / 2];
        let mut cf: Vec<Result<Cf, CodeFault>> = Vec::new();
        let mut open = vec![start];
        while let Some(addr) = open.pop() {
            let Some(place @ &mut UNREACHED) = place.get_mut(addr as usize) else {
                continue;
            };
            let decoded = reader.cf(addr);
            if let Ok(Cf { op, end_of_program: false }) = &decoded {
                if let CfOp::Control(inst, control) = op
                    && control::cf(*inst).jumps
                {
                    open.push(control.addr);
                }
                match op {
                    CfOp::Control(CfInst::RETURN, control) if always_passes(control) => {}
                    _ => open.push(addr + 1),
                }
            }
            *place = cf.len() as u32;
            cf.push(decoded);
        }
        Code { chip: options.chip, place, cf, ops: reader.ops, groups: reader.groups }
    }

    /// Returns group `number` of a clause of this program. The first group has number 0.
    ///
    /// # Panics
    /// Panics if the clause has no group `number`, or if the clause belongs to another program.
    pub fn group(&self, clause: &AluClause, number: usize) -> Group<'_> {
        let groups = &self.groups[clause.groups.start as usize..clause.groups.end as usize];
        let GroupSpan { addr, first, len } = groups[number];
        Group { addr, ops: &self.ops[first as usize..][..usize::from(len)] }
    }

    /// Returns the groups of a clause of this program, in order.
    pub fn groups<'a>(&'a self, clause: &'a AluClause) -> impl ExactSizeIterator<Item = Group<'a>> {
        (0..clause.group_count()).map(|number| self.group(clause, number))
    }

    /// Returns the address of a control-flow instruction, followed by the addresses of the groups or fetches of its
    /// clause.
    pub fn places(&self, addr: u32, op: &CfOp) -> Vec<u32> {
        let mut places = vec![addr];
        match op {
            CfOp::Alu(clause) => places.extend(self.groups(clause).map(|group| group.addr)),
            CfOp::Fetch(_, _, fetches) => places.extend(fetches.iter().map(|fetch| fetch.addr)),
            CfOp::Control(..) | CfOp::Export(..) | CfOp::Memory(..) => {}
        }
        places
    }

    fn at(&self, addr: u32) -> Option<&Result<Cf, CodeFault>> {
        let place = *self.place.get(addr as usize)?;
        self.cf.get(place as usize)
    }

    /// Returns the reachable instructions with their addresses, in the order of the addresses.
    fn reached(&self) -> impl Iterator<Item = (u32, &Result<Cf, CodeFault>)> {
        (0..).zip(&self.place).filter_map(|(addr, place)| Some((addr, self.cf.get(*place as usize)?)))
    }

    /// Returns the control-flow instruction at `addr`.
    ///
    /// # Errors
    /// Returns an error if the instruction is invalid, or if the program cannot reach this address.
    pub fn cf(&self, addr: u32) -> Result<&Cf, CodeFault> {
        match self.at(addr) {
            Some(Ok(cf)) => Ok(cf),
            Some(Err(fault)) => Err(fault.clone()),
            None => Err(CodeFault::Cut),
        }
    }

    /// Returns the valid reachable instructions with their addresses.
    pub fn instructions(&self) -> impl Iterator<Item = (u32, &Cf)> {
        self.reached().filter_map(|(addr, cf)| Some((addr, cf.as_ref().ok()?)))
    }

    /// Returns the faults of invalid reachable instructions, with their addresses.
    pub fn faults(&self) -> impl Iterator<Item = (u32, &CodeFault)> {
        self.reached().filter_map(|(addr, cf)| Some((addr, cf.as_ref().err()?)))
    }

    /// Returns the chip for which the program was decoded.
    pub fn chip(&self) -> Chip {
        self.chip
    }
}

/// Decodes `words` as one group and its literals.
pub(crate) fn group_of(words: &[u32], chip: Chip) -> Result<Vec<AluOp>, CodeFault> {
    let mut reader = Reader { words, options: CodeOptions::new(chip), ops: Vec::new(), groups: Vec::new() };
    let slots = (words.len() / 2) as u32;
    match reader.group(0, slots)? {
        end if end == slots => Ok(reader.ops),
        _ => Err(CodeFault::OpenGroup),
    }
}

/// Decodes `words` as one fetch instruction.
pub(crate) fn fetch_of(words: &[u32], chip: Chip) -> Result<Fetch, CodeFault> {
    Reader { words, options: CodeOptions::new(chip), ops: Vec::new(), groups: Vec::new() }.fetch(0)
}

/// Returns whether every active lane passes the condition of `control`. The result does not depend on the values of the
/// constants.
pub(crate) fn always_passes(control: &Control) -> bool {
    control.cond == Condition::Active && !control.valid_pixel_mode
}
