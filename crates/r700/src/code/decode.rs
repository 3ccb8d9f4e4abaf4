//! Decodes the words of R600 and R700 into the instructions of [`super`]. Also assigns a slot to each ALU instruction,
//! and resolves literals.
//!
//! Source: MAN chapters 2 and 4. A few fields have different positions in R600 words and in R700 words. The decoder
//! decodes R600 words into the R700 structures.

use reconverge_isa::FieldValue;

use super::{
    AluClause, AluOp, Cf, CfOp, CodeFault, CodeOptions, Export, ExportKind, Fetch, FetchOp, GroupSpan,
    MemoryExport, Operand, Select, Source, TRANS, VertexFormat, Window, always_passes,
};
use crate::chip::Family;
use crate::control::{self, CfWork, export_in_r600, tex_in_r600};
use crate::flow::{AluForm, Condition, Control};
use crate::meaning::{self, Meaning, Opcode, Unit};
use crate::words::{
    AluDword0, AluDword1Op2R600, AluDword1Op2R700, AluDword1Op3, CfAllocExportDword0, CfAllocExportDword1Buf,
    CfAllocExportDword1Swiz, CfAluDword0, CfAluDword1R700, CfDword1R700, CfInst, Cond, ExportInst,
    MemDsrDword0, MemDsrDword1, MemDswDword0, MemDswDword1, MemOp, MemRdDword0, MemRdDword1, MemRdDword2,
    Omod, PredSel, Sel, TexDword0R700, TexDword1, TexDword2, VtxDword0, VtxDword1Gpr, VtxDword1Sem,
    VtxDword2R700, VtxInst,
};

/// The words of a program, the options for decoding the words, and the instructions decoded so far.
pub(super) struct Reader<'a> {
    pub(super) words: &'a [u32],
    pub(super) options: CodeOptions,
    /// ALU instructions decoded so far.
    pub(super) ops: Vec<AluOp>,
    /// The groups that the decoder has decoded. The instructions of the groups are in `ops`.
    pub(super) groups: Vec<GroupSpan>,
}

type Read<T> = Result<T, CodeFault>;

impl Reader<'_> {
    fn family(&self) -> Family {
        self.options.chip.family
    }

    /// Returns the two words of slot `addr`.
    fn pair(&self, addr: u32) -> Read<[u32; 2]> {
        let at = (addr as usize).checked_mul(2).ok_or(CodeFault::Cut)?;
        self.words.get(at..at + 2).map(|pair| [pair[0], pair[1]]).ok_or(CodeFault::Cut)
    }

    /// Decodes the control-flow instruction at `addr`.
    pub(super) fn cf(&mut self, addr: u32) -> Read<Cf> {
        let [word0, word1] = self.pair(addr)?;
        if word1 >> 29 & 1 != 0 {
            return Ok(Cf { op: CfOp::Alu(self.alu_clause(word0, word1)?), end_of_program: false });
        }
        let number = word1 >> 23 & 0x7f;
        if let Some(inst) = ExportInst::from_bits(number, 7) {
            return self.export(inst, word0, word1);
        }
        let fields = CfDword1R700::unpack_lenient(word1)?;
        let unknown = CodeFault::Unknown { field: "CF_INST", number };
        let inst = CfInst::from_bits(number, 7).ok_or(unknown.clone())?;
        let row = control::cf(inst);
        if !row.in_r600 && self.family() == Family::R600 {
            return Err(unknown);
        }
        let control = control_of(word0, &fields);
        let op = match row.work {
            CfWork::Fetch { .. } => {
                let high = if self.family() == Family::R700 { u32::from(fields.count_3) << 3 } else { 0 };
                let count = u32::from(fields.count) + high + 1;
                let fetches = (0..count)
                    .map(|index| self.fetch(word0.saturating_add(2 * index)))
                    .collect::<Read<_>>()?;
                CfOp::Fetch(inst, control, fetches)
            }
            CfWork::Flow(_) | CfWork::Emit { .. } | CfWork::WaitAck => CfOp::Control(inst, control),
        };
        // The manual states that END_PROGRAM is reserved. Opcode tables contain END_PROGRAM. The only plausible effect
        // of END_PROGRAM is that the program ends.
        let end_of_program = fields.end_of_program || inst == CfInst::END_PROGRAM;
        Ok(Cf { op, end_of_program })
    }

    fn export(&self, inst: ExportInst, word0: u32, word1: u32) -> Read<Cf> {
        let low = CfAllocExportDword0::unpack_lenient(word0)?;
        let type_code = u32::from(low.type_code);
        // The mode bits have the same positions in the BUF and SWIZ forms of the word.
        let high = CfAllocExportDword1Buf::unpack_lenient(word1)?;
        let control = Control {
            valid_pixel_mode: high.valid_pixel_mode,
            whole_quad_mode: high.whole_quad_mode,
            ..Control::to(0)
        };
        let op = match inst {
            _ if !export_in_r600(inst) && self.family() == Family::R600 => {
                return Err(CodeFault::Unknown { field: "CF_INST", number: word1 >> 23 & 0x7f });
            }
            ExportInst::EXPORT | ExportInst::EXPORT_DONE => {
                let swizzle = CfAllocExportDword1Swiz::unpack_lenient(word1)?;
                let kind = match type_code {
                    0 => ExportKind::Pixel,
                    1 => ExportKind::Pos,
                    2 => ExportKind::Param,
                    number => return Err(CodeFault::Unknown { field: "TYPE", number }),
                };
                let select = [swizzle.sel_x, swizzle.sel_y, swizzle.sel_z, swizzle.sel_w].map(select);
                let export = Export {
                    kind,
                    base: low.array_base,
                    gpr: low.rw_gpr,
                    rel: low.rw_rel,
                    select,
                    burst: high.burst_count + 1,
                    done: inst == ExportInst::EXPORT_DONE,
                };
                CfOp::Export(control, export)
            }
            ExportInst::MEM_STREAM0
            | ExportInst::MEM_STREAM1
            | ExportInst::MEM_STREAM2
            | ExportInst::MEM_STREAM3
            | ExportInst::MEM_SCRATCH
            | ExportInst::MEM_REDUCTION
            | ExportInst::MEM_RING
            | ExportInst::MEM_EXPORT => {
                let second_half = type_code & 2 != 0;
                let memory = MemoryExport {
                    inst,
                    indexed: type_code & 1 != 0,
                    read: second_half && self.family() == Family::R600,
                    ack: second_half && self.family() == Family::R700,
                    base: low.array_base,
                    size: high.array_size,
                    gpr: low.rw_gpr,
                    rel: low.rw_rel,
                    index_gpr: low.index_gpr,
                    elem_dwords: low.elem_size + 1,
                    comp_mask: high.comp_mask,
                    burst: high.burst_count + 1,
                };
                CfOp::Memory(control, memory)
            }
        };
        Ok(Cf { op, end_of_program: high.end_of_program })
    }

    fn alu_clause(&mut self, word0: u32, word1: u32) -> Read<AluClause> {
        let low = CfAluDword0::unpack_lenient(word0)?;
        // On R600, bit 25 is USES_WATERFALL. This bit has no effect in this emulation.
        let high = CfAluDword1R700::unpack_lenient(word1)?;
        let number = u32::from(high.cf_inst);
        let unknown = CodeFault::Unknown { field: "CF_INST", number };
        let form = AluForm::from_bits(number, 4).ok_or(unknown)?;
        let end = low.addr + u32::from(high.count) + 1;
        let first = self.groups.len() as u32;
        let mut at = low.addr;
        while at < end {
            at = self.group(at, end)?;
        }
        Ok(AluClause {
            form,
            whole_quad_mode: high.whole_quad_mode,
            kcache: [
                Window { bank: low.kcache_bank0, line: high.kcache_addr0, mode: low.kcache_mode0 },
                Window { bank: low.kcache_bank1, line: high.kcache_addr1, mode: high.kcache_mode1 },
            ],
            alt_const: high.alt_const && self.family() == Family::R700,
            slots: low.addr..end,
            groups: first..self.groups.len() as u32,
        })
    }

    /// Decodes the group at `addr` and adds the group to `groups`. The clause of the group ends before address `end`.
    /// Returns the address after the group.
    pub(super) fn group(&mut self, addr: u32, end: u32) -> Read<u32> {
        let mut group = [[0; 2]; 5];
        let (mut count, mut at) = (0, addr);
        loop {
            if at >= end {
                return Err(CodeFault::OpenGroup);
            }
            let Some(place) = group.get_mut(count) else {
                return Err(CodeFault::LongGroup);
            };
            *place = self.pair(at)?;
            count += 1;
            at += 1;
            // Bit 31 is LAST.
            if place[0] >> 31 != 0 {
                break;
            }
        }
        let group = &group[..count];
        let mut literals = [0; 4];
        for pair in 0..literal_pairs(group) {
            if at >= end {
                return Err(CodeFault::OpenGroup);
            }
            literals[pair * 2..][..2].copy_from_slice(&self.pair(at)?);
            at += 1;
        }
        let first = self.ops.len();
        let mut taken = [false; 5];
        let mut spans_slots = false;
        for &words in group {
            let mut op = self.alu(words, &literals)?;
            op.slot = match op.opcode.unit {
                Unit::Trans => TRANS,
                Unit::Vector => op.dst_chan,
                Unit::Either if taken[usize::from(op.dst_chan)] => TRANS,
                // If ALU_INST_PREFER_VECTOR is not set and slot t can compute the opcode, the last instruction of a
                // group runs in slot t.
                Unit::Either if words[0] >> 31 != 0 && !self.options.prefer_vector => TRANS,
                Unit::Either => op.dst_chan,
            };
            let slot = usize::from(op.slot);
            if taken[slot] {
                return Err(CodeFault::SlotTaken { slot: b"xyzwt"[slot].into() });
            }
            taken[slot] = true;
            spans_slots |= op.opcode.meaning.spans_slots();
            self.ops.push(op);
        }
        if spans_slots {
            fill_their_slots(&self.ops[first..])?;
        }
        self.groups.push(GroupSpan { addr, first: first as u32, len: count as u8 });
        Ok(at)
    }

    /// Decodes one ALU instruction. The caller assigns the slot of the instruction.
    fn alu(&self, [word0, word1]: [u32; 2], literals: &[u32; 4]) -> Read<AluOp> {
        let dword0 = AluDword0::unpack_lenient(word0)?;
        let pred_sel = match dword0.pred_sel {
            PredSel::OFF => None,
            PredSel::ZERO => Some(false),
            PredSel::ONE => Some(true),
        };
        let source = |selector, chan, rel, abs, neg, read| {
            Ok::<_, CodeFault>(Source { operand: operand(selector, chan, literals, read)?, rel, abs, neg })
        };
        let first = |abs, read| {
            source(dword0.src0_sel, dword0.src0_chan, dword0.src0_rel, abs, dword0.src0_neg, read)
        };
        let second = |abs, read| {
            source(dword0.src1_sel, dword0.src1_chan, dword0.src1_rel, abs, dword0.src1_neg, read)
        };
        if is_op3(word1) {
            let high = AluDword1Op3::unpack_lenient(word1)?;
            let number = high.alu_inst as u32;
            let opcode = self.known(meaning::op3_row(number), number)?;
            return Ok(AluOp {
                sources: [
                    first(false, true)?,
                    second(false, true)?,
                    source(high.src2_sel, high.src2_chan, high.src2_rel, false, high.src2_neg, true)?,
                ],
                opcode,
                slot: 0,
                dst_gpr: high.dst_gpr,
                dst_chan: high.dst_chan,
                dst_rel: high.dst_rel,
                write: true,
                omod: 1.0,
                clamp: high.clamp,
                index_mode: dword0.index_mode,
                pred_sel,
                update_pred: false,
                update_execute_mask: false,
            });
        }
        let high = self.op2(word1)?;
        let number = u32::from(high.alu_inst);
        let opcode = self.known(meaning::op2_row(number, self.family()), number)?;
        Ok(AluOp {
            sources: [
                first(high.src0_abs, opcode.sources > 0)?,
                second(high.src1_abs, opcode.sources > 1)?,
                Source { operand: Operand::Value(0), rel: false, abs: false, neg: false },
            ],
            opcode,
            slot: 0,
            dst_gpr: high.dst_gpr,
            dst_chan: high.dst_chan,
            dst_rel: high.dst_rel,
            write: high.write_mask,
            omod: match high.omod {
                Omod::OFF => 1.0,
                Omod::M2 => 2.0,
                Omod::M4 => 4.0,
                Omod::D2 => 0.5,
            },
            clamp: high.clamp,
            index_mode: dword0.index_mode,
            pred_sel,
            update_pred: high.update_pred,
            update_execute_mask: high.update_execute_mask,
        })
    }

    /// Decodes the second word of an OP2 instruction. R600 and R700 differ in bits 5 to 17 of this word.
    fn op2(&self, word1: u32) -> Read<AluDword1Op2R700> {
        if self.family() == Family::R700 {
            return Ok(AluDword1Op2R700::unpack_lenient(word1)?);
        }
        let r600 = AluDword1Op2R600::unpack_lenient(word1)?;
        Ok(AluDword1Op2R700 {
            src0_abs: r600.src0_abs,
            src1_abs: r600.src1_abs,
            update_execute_mask: r600.update_execute_mask,
            update_pred: r600.update_pred,
            write_mask: r600.write_mask,
            omod: r600.omod,
            alu_inst: r600.alu_inst,
            bank_swizzle: r600.bank_swizzle,
            dst_gpr: r600.dst_gpr,
            dst_rel: r600.dst_rel,
            dst_chan: r600.dst_chan,
            clamp: r600.clamp,
        })
    }

    /// Returns `opcode` if the chip has this opcode. Some chips do not have the operations on doubles. If the chip does
    /// not have the opcode, the function returns an error with `number`, the number of the opcode.
    fn known(&self, opcode: Option<&'static Opcode>, number: u32) -> Read<&'static Opcode> {
        let has = |opcode: &&Opcode| self.options.chip.fp64 || !matches!(opcode.meaning, Meaning::Double(_));
        opcode.filter(has).ok_or(CodeFault::Unknown { field: "ALU_INST", number })
    }

    pub(super) fn fetch(&self, addr: u32) -> Read<Fetch> {
        let [word0, word1] = self.pair(addr)?;
        let [word2, _] = self.pair(addr + 1)?;
        let r700 = self.family() == Family::R700;
        let number = word0 & 0x1f;
        if let Some(inst) = VtxInst::from_bits(number, 5) {
            let low = VtxDword0::unpack_lenient(word0)?;
            let mut third = VtxDword2R700::unpack_lenient(word2)?;
            third.alt_const &= r700;
            let semantic = match inst {
                VtxInst::FETCH => None,
                VtxInst::SEMANTIC => Some(VtxDword1Sem::unpack_lenient(word1)?.semantic_id),
            };
            // The GPR form and the SEM form of the word differ only in the lowest nine bits.
            let word = VtxDword1Gpr::unpack_lenient(word1)?;
            let op = FetchOp::Vertex(low, VertexFormat { word, semantic }, third);
            let fetch = fetch_of(addr, op, low.fetch_whole_quad, [word0, word1])?;
            return Ok(match semantic {
                None => fetch,
                Some(_) => Fetch { dst_gpr: 0, dst_rel: false, ..fetch },
            });
        }
        if number == MEMORY {
            if !r700 {
                return Err(CodeFault::Unknown { field: "MEM_INST", number });
            }
            return self.memory_fetch(addr, word0, word1, word2);
        }
        let mut low = TexDword0R700::unpack_lenient(word0)?;
        if !tex_in_r600(low.tex_inst) && !r700 {
            return Err(CodeFault::Unknown { field: "TEX_INST", number });
        }
        low.alt_const &= r700;
        let high = TexDword1::unpack_lenient(word1)?;
        let third = TexDword2::unpack_lenient(word2)?;
        fetch_of(addr, FetchOp::Texture(low, high, third), low.fetch_whole_quad, [word0, word1])
    }

    fn memory_fetch(&self, addr: u32, word0: u32, word1: u32, word2: u32) -> Read<Fetch> {
        let number = word0 >> 8 & 7;
        let unknown = CodeFault::Unknown { field: "MEM_OP", number };
        let op = MemOp::from_bits(number, 3).ok_or(unknown)?;
        match op {
            MemOp::RD_SCRATCH | MemOp::RD_REDUC | MemOp::RD_SCATTER => {
                let low = MemRdDword0::unpack_lenient(word0)?;
                let high = MemRdDword1::unpack_lenient(word1)?;
                let third = MemRdDword2::unpack_lenient(word2)?;
                fetch_of(addr, FetchOp::Memory(low, high, third), low.fetch_whole_quad, [word0, word1])
            }
            MemOp::LOCAL_DS_WRITE => {
                MemDswDword0::unpack_lenient(word0)?;
                let op = FetchOp::DataShareWrite(MemDswDword1::unpack_lenient(word1)?);
                fetch_of(addr, op, false, [word0, NOWHERE])
            }
            MemOp::LOCAL_DS_READ => {
                let low = MemDsrDword0::unpack_lenient(word0)?;
                let op = FetchOp::DataShareRead(low, MemDsrDword1::unpack_lenient(word1)?);
                fetch_of(addr, op, false, [word0, word1])
            }
            MemOp::GLOBAL_DS_WRITE | MemOp::GLOBAL_DS_READ => {
                Err(CodeFault::Undocumented { name: op.name() })
            }
        }
    }
}

/// Returns all fields of a control-flow instruction except CF_INST. The instruction is neither an ALU clause nor an
/// export.
pub(super) fn control_of(addr: u32, fields: &CfDword1R700) -> Control {
    Control {
        addr,
        pop_count: fields.pop_count,
        cond: match fields.cond {
            Cond::CF_COND_ACTIVE => Condition::Active,
            Cond::CF_COND_FALSE => Condition::False,
            Cond::CF_COND_BOOL => Condition::Bool(fields.cf_const),
            Cond::CF_COND_NOT_BOOL => Condition::NotBool(fields.cf_const),
        },
        cf_const: fields.cf_const,
        call_count: fields.call_count,
        valid_pixel_mode: fields.valid_pixel_mode,
        whole_quad_mode: fields.whole_quad_mode,
    }
}

/// Returns whether these words encode an unconditional RETURN.
pub(crate) fn is_final_return([word0, word1]: [u32; 2]) -> bool {
    let inst = CfInst::from_bits(word1 >> 23 & 0x7f, 7).filter(|_| word1 >> 29 & 1 == 0);
    let fields = CfDword1R700::unpack_lenient(word1);
    inst == Some(CfInst::RETURN) && fields.is_ok_and(|fields| always_passes(&control_of(word0, &fields)))
}

/// Second word of a fetch that writes no register because every DST_SEL is MASK.
const NOWHERE: u32 = 0xfff << 9;

/// Returns a fetch instruction with its registers and its DST_SEL fields. Fetches of all kinds have these fields in the
/// same bits.
fn fetch_of(addr: u32, op: FetchOp, whole_quad: bool, [word0, word1]: [u32; 2]) -> Read<Fetch> {
    let high = TexDword1::unpack_lenient(word1)?;
    Ok(Fetch {
        addr,
        op,
        whole_quad,
        src_gpr: (word0 >> 16 & 0x7f) as u8,
        src_rel: word0 >> 23 & 1 != 0,
        dst_gpr: high.dst_gpr,
        dst_rel: high.dst_rel,
        select: [high.dst_sel_x, high.dst_sel_y, high.dst_sel_z, high.dst_sel_w].map(select),
    })
}

/// Value of MEM_INST in a memory instruction of a fetch clause.
const MEMORY: u32 = 2;

/// The source selector of literals.
pub(crate) const LITERAL: u16 = 253;

/// Converts the code of a component selector to a [`Select`].
pub(crate) fn select(sel: Sel) -> Select {
    match sel {
        Sel::X => Select::Component(0),
        Sel::Y => Select::Component(1),
        Sel::Z => Select::Component(2),
        Sel::W => Select::Component(3),
        Sel::ZERO => Select::Zero,
        Sel::ONE => Select::One,
        Sel::MASK => Select::Mask,
    }
}

/// Returns whether an ALU instruction with this second word is an OP3 instruction. The field ENCODING, bits 17:15 of
/// this word, is not 0 in OP3 instructions.
pub(crate) const fn is_op3(word1: u32) -> bool {
    word1 >> 15 & 7 != 0
}

/// Returns the number of literal pairs after a group. A source field of the group can select a component of the
/// literals. The highest selected component determines the number of pairs. A field counts even if the opcode does not
/// read the field (MAN p. 70).
pub(crate) fn literal_pairs(group: &[[u32; 2]]) -> usize {
    let mut pairs = 0;
    for &[word0, word1] in group {
        let mut field = |raw: u32| {
            if raw & 0x1ff == u32::from(LITERAL) {
                pairs = pairs.max(if raw >> 10 & 3 > 1 { 2 } else { 1 });
            }
        };
        field(word0);
        field(word0 >> 13);
        if is_op3(word1) {
            field(word1);
        }
    }
    pairs
}

/// Decodes the source of an operand. `read` states whether the instruction reads the operand. A reserved selector is an
/// error only if `read` is set.
fn operand(selector: u16, chan: u8, literals: &[u32; 4], read: bool) -> Read<Operand> {
    Ok(match selector {
        0..=127 => Operand::Gpr { gpr: selector as u8, chan },
        128..=191 => {
            Operand::Kcache { set: (selector - 128) as u8 / 32, index: (selector - 128) as u8 % 32, chan }
        }
        245 => Operand::Value(0x3ff0_0000),
        247 => Operand::Value(0x3fe0_0000),
        244 | 246 | 248 => Operand::Value(0),
        249 => Operand::Value(0x3f80_0000),
        250 => Operand::Value(1),
        251 => Operand::Value(u32::MAX),
        252 => Operand::Value(0x3f00_0000),
        LITERAL => Operand::Value(literals[usize::from(chan)]),
        254 => Operand::Previous(chan),
        255 => Operand::PreviousScalar,
        256..=511 => Operand::ConstantFile { index: (selector - 256) as u8, chan },
        _ if read => return Err(CodeFault::Selector { selector }),
        _ => Operand::Value(0),
    })
}

/// Checks that an operation over two or four slots has an instruction in each slot.
fn fill_their_slots(ops: &[AluOp]) -> Read<()> {
    for op in ops {
        let wanted = op.opcode.meaning.slots();
        let first = op.slot / wanted * wanted;
        let same = |slot| ops.iter().any(|other| other.slot == slot && other.opcode.name == op.opcode.name);
        if !(first..first + wanted).all(same) {
            return Err(CodeFault::Incomplete { name: op.opcode.name });
        }
    }
    Ok(())
}
