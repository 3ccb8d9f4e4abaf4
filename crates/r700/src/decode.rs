//! From words to the instructions of [`crate::code`]: both families, slots, literals.
//!
//! Source: MAN chapters 2 and 4. R600 words differ in a few positions; they are read into the R700 structures.

use reconverge_isa::FieldValue;

use crate::chip::Family;
use crate::code::{
    AluClause, AluOp, Cf, CfOp, CodeFault, CodeOptions, Export, ExportKind, Fetch, FetchOp, Group,
    MemoryExport, Operand, Select, Source, TRANS, VertexFormat, Window,
};
use crate::flow::{AluForm, Condition, Control};
use crate::meaning::{self, Meaning, Opcode, Unit};
use crate::words::{
    AluDword0, AluDword1Op2R600, AluDword1Op2R700, AluDword1Op3, CfAllocExportDword0,
    CfAllocExportDword1BufR700, CfAllocExportDword1SwizR700, CfAluDword0, CfAluDword1R700, CfDword1R700,
    CfInst, Cond, ExportInst, MemDsrDword0, MemDsrDword1, MemDswDword0, MemDswDword1, MemOp, MemRdDword0,
    MemRdDword1, MemRdDword2, Omod, Op2, PredSel, Sel, TexDword0R700, TexDword1, TexDword2, VtxDword0,
    VtxDword1Gpr, VtxDword1Sem, VtxDword2R700, VtxInst,
};

/// Words with what decides about their reading.
pub(crate) struct Reader<'a> {
    pub(crate) words: &'a [u32],
    pub(crate) options: CodeOptions,
}

type Read<T> = Result<T, CodeFault>;

/// An ALU instruction as its words say, before the group gives it a slot.
struct Raw {
    dword0: AluDword0,
    op: AluOp,
    /// The selectors and components of all source fields, used or not.
    selectors: [(u16, u8); 3],
}

impl Reader<'_> {
    fn family(&self) -> Family {
        self.options.chip.family
    }

    /// The two words of slot `addr`.
    fn pair(&self, addr: u32) -> Read<[u32; 2]> {
        let at = (addr as usize).checked_mul(2).ok_or(CodeFault::Cut)?;
        self.words.get(at..at + 2).map(|pair| [pair[0], pair[1]]).ok_or(CodeFault::Cut)
    }

    /// The control-flow instruction at `addr`.
    pub(crate) fn cf(&self, addr: u32) -> Read<Cf> {
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
        let r700_only = match inst {
            CfInst::WAIT_ACK | CfInst::TEX_ACK | CfInst::VTX_ACK | CfInst::VTX_TC_ACK => true,
            CfInst::NOP
            | CfInst::TEX
            | CfInst::VTX
            | CfInst::VTX_TC
            | CfInst::LOOP_START
            | CfInst::LOOP_END
            | CfInst::LOOP_START_DX10
            | CfInst::LOOP_START_NO_AL
            | CfInst::LOOP_CONTINUE
            | CfInst::LOOP_BREAK
            | CfInst::JUMP
            | CfInst::PUSH
            | CfInst::PUSH_ELSE
            | CfInst::ELSE
            | CfInst::POP
            | CfInst::POP_JUMP
            | CfInst::POP_PUSH
            | CfInst::POP_PUSH_ELSE
            | CfInst::CALL
            | CfInst::CALL_FS
            | CfInst::RETURN
            | CfInst::EMIT_VERTEX
            | CfInst::EMIT_CUT_VERTEX
            | CfInst::CUT_VERTEX
            | CfInst::KILL
            | CfInst::END_PROGRAM => false,
        };
        if r700_only && self.family() == Family::R600 {
            return Err(unknown);
        }
        let control = Control {
            addr: word0,
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
        };
        let op = match inst {
            CfInst::TEX
            | CfInst::VTX
            | CfInst::VTX_TC
            | CfInst::TEX_ACK
            | CfInst::VTX_ACK
            | CfInst::VTX_TC_ACK => {
                let high = if self.family() == Family::R700 { u32::from(fields.count_3) << 3 } else { 0 };
                let count = u32::from(fields.count) + high + 1;
                let fetches = (0..count)
                    .map(|index| self.fetch(word0.saturating_add(2 * index)))
                    .collect::<Read<_>>()?;
                CfOp::Fetch(inst, control, fetches)
            }
            CfInst::NOP
            | CfInst::LOOP_START
            | CfInst::LOOP_END
            | CfInst::LOOP_START_DX10
            | CfInst::LOOP_START_NO_AL
            | CfInst::LOOP_CONTINUE
            | CfInst::LOOP_BREAK
            | CfInst::JUMP
            | CfInst::PUSH
            | CfInst::PUSH_ELSE
            | CfInst::ELSE
            | CfInst::POP
            | CfInst::POP_JUMP
            | CfInst::POP_PUSH
            | CfInst::POP_PUSH_ELSE
            | CfInst::CALL
            | CfInst::CALL_FS
            | CfInst::RETURN
            | CfInst::EMIT_VERTEX
            | CfInst::EMIT_CUT_VERTEX
            | CfInst::CUT_VERTEX
            | CfInst::KILL
            | CfInst::END_PROGRAM
            | CfInst::WAIT_ACK => CfOp::Control(inst, control),
        };
        Ok(Cf { op, end_of_program: fields.end_of_program })
    }

    fn export(&self, inst: ExportInst, word0: u32, word1: u32) -> Read<Cf> {
        let low = CfAllocExportDword0::unpack_lenient(word0)?;
        let type_code = u32::from(low.type_code);
        // The mode bits stand at the same places in both forms.
        let high = CfAllocExportDword1BufR700::unpack_lenient(word1)?;
        let control = Control {
            valid_pixel_mode: high.valid_pixel_mode,
            whole_quad_mode: high.whole_quad_mode,
            ..Control::to(0)
        };
        let op = match inst {
            ExportInst::EXPORT | ExportInst::EXPORT_DONE => {
                let swizzle = CfAllocExportDword1SwizR700::unpack_lenient(word1)?;
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
            ExportInst::MEM_EXPORT if self.family() == Family::R600 => {
                return Err(CodeFault::Unknown { field: "CF_INST", number: word1 >> 23 & 0x7f });
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

    fn alu_clause(&self, word0: u32, word1: u32) -> Read<AluClause> {
        let low = CfAluDword0::unpack_lenient(word0)?;
        // Bit 25 is USES_WATERFALL on R600, which changes nothing here.
        let high = CfAluDword1R700::unpack_lenient(word1)?;
        let number = u32::from(high.cf_inst);
        let form = match number {
            8 => AluForm::Alu,
            9 => AluForm::PushBefore,
            10 => AluForm::PopAfter,
            11 => AluForm::Pop2After,
            13 => AluForm::Continue,
            14 => AluForm::Break,
            15 => AluForm::ElseAfter,
            _ => return Err(CodeFault::Unknown { field: "CF_INST", number }),
        };
        let end = low.addr + u32::from(high.count) + 1;
        let mut groups = Vec::new();
        let mut at = low.addr;
        while at < end {
            let (group, next) = self.group(at, end)?;
            groups.push(group);
            at = next;
        }
        Ok(AluClause {
            form,
            whole_quad_mode: high.whole_quad_mode,
            kcache: [
                Window { bank: low.kcache_bank0, line: high.kcache_addr0, mode: low.kcache_mode0 },
                Window { bank: low.kcache_bank1, line: high.kcache_addr1, mode: high.kcache_mode1 },
            ],
            alt_const: high.alt_const && self.family() == Family::R700,
            groups,
        })
    }

    /// The group at `addr` in a clause that ends before `end`, and where the next one begins.
    fn group(&self, addr: u32, end: u32) -> Read<(Group, u32)> {
        let mut raws: Vec<Raw> = Vec::new();
        let mut at = addr;
        loop {
            if at >= end {
                return Err(CodeFault::OpenGroup);
            }
            if raws.len() == 5 {
                return Err(CodeFault::LongGroup);
            }
            let raw = self.alu(at)?;
            at += 1;
            let last = raw.dword0.last;
            raws.push(raw);
            if last {
                break;
            }
        }
        // A field that holds the literal selector makes the hardware fetch literals even when the opcode does not
        // read it (MAN p. 70).
        let highest = raws
            .iter()
            .flat_map(|raw| raw.selectors)
            .filter(|(sel, _)| *sel == LITERAL)
            .map(|(_, chan)| chan)
            .max();
        let pairs = highest.map_or(0, |chan| u32::from(chan) / 2 + 1);
        let mut literals = [0; 4];
        for pair in 0..pairs {
            if at >= end {
                return Err(CodeFault::OpenGroup);
            }
            let words = self.pair(at)?;
            literals[pair as usize * 2..][..2].copy_from_slice(&words);
            at += 1;
        }
        let mut ops = Vec::with_capacity(raws.len());
        let mut taken = [false; 5];
        for mut raw in raws {
            for (source, (selector, chan)) in raw.op.sources.iter_mut().zip(raw.selectors) {
                if selector == LITERAL {
                    source.operand = Operand::Value(literals[usize::from(chan)]);
                }
            }
            let slot = match raw.op.opcode.unit {
                Unit::Trans => TRANS,
                Unit::Vector => raw.op.dst_chan,
                Unit::Either if taken[raw.op.dst_chan] => TRANS,
                Unit::Either if raw.dword0.last && !self.options.prefer_vector => TRANS,
                Unit::Either => raw.op.dst_chan,
            };
            if taken[slot] {
                return Err(CodeFault::SlotTaken { slot: b"xyzwt"[slot].into() });
            }
            taken[slot] = true;
            raw.op.slot = slot;
            ops.push(raw.op);
        }
        whole(&ops)?;
        Ok((Group { addr, ops }, at))
    }

    fn alu(&self, addr: u32) -> Read<Raw> {
        let [word0, word1] = self.pair(addr)?;
        let dword0 = AluDword0::unpack_lenient(word0)?;
        let pred_sel = match dword0.pred_sel {
            PredSel::OFF => None,
            PredSel::ZERO => Some(false),
            PredSel::ONE => Some(true),
        };
        let selectors =
            |third| [(dword0.src0_sel, dword0.src0_chan), (dword0.src1_sel, dword0.src1_chan), third];
        if word1 >> 15 & 7 != 0 {
            let high = AluDword1Op3::unpack_lenient(word1)?;
            let opcode = meaning::op3(high.alu_inst);
            self.has(&opcode, high.alu_inst as u32)?;
            let selectors = selectors((high.src2_sel, high.src2_chan));
            let op = AluOp {
                sources: [
                    source(selectors[0], dword0.src0_rel, false, dword0.src0_neg, true)?,
                    source(selectors[1], dword0.src1_rel, false, dword0.src1_neg, true)?,
                    source(selectors[2], high.src2_rel, false, high.src2_neg, true)?,
                ],
                opcode,
                slot: 0,
                dst_gpr: high.dst_gpr,
                dst_chan: high.dst_chan.into(),
                dst_rel: high.dst_rel,
                write: true,
                omod: 1.0,
                clamp: high.clamp,
                index_mode: dword0.index_mode,
                pred_sel,
                update_pred: false,
                update_execute_mask: false,
            };
            return Ok(Raw { dword0, op, selectors });
        }
        let high = self.op2(word1)?;
        let number = u32::from(high.alu_inst);
        let unknown = CodeFault::Unknown { field: "ALU_INST", number };
        let opcode =
            Op2::from_bits(number, 11).and_then(|code| meaning::op2(code, self.family())).ok_or(unknown)?;
        self.has(&opcode, number)?;
        let selectors = selectors((0, 0));
        let op = AluOp {
            sources: [
                source(selectors[0], dword0.src0_rel, high.src0_abs, dword0.src0_neg, opcode.sources > 0)?,
                source(selectors[1], dword0.src1_rel, high.src1_abs, dword0.src1_neg, opcode.sources > 1)?,
                Source { operand: Operand::Value(0), rel: false, abs: false, neg: false },
            ],
            opcode,
            slot: 0,
            dst_gpr: high.dst_gpr,
            dst_chan: high.dst_chan.into(),
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
        };
        Ok(Raw { dword0, op, selectors })
    }

    /// The second word of an OP2 instruction; the families differ from bit 5 to bit 17.
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

    /// Doubles are not in every chip.
    fn has(&self, opcode: &Opcode, number: u32) -> Read<()> {
        match opcode.meaning {
            Meaning::Double(_) if !self.options.chip.fp64 => {
                Err(CodeFault::Unknown { field: "ALU_INST", number })
            }
            _ => Ok(()),
        }
    }

    fn fetch(&self, addr: u32) -> Read<Fetch> {
        let [word0, word1] = self.pair(addr)?;
        let [word2, _] = self.pair(addr + 1)?;
        let r700 = self.family() == Family::R700;
        let number = word0 & 0x1f;
        if let Some(inst) = VtxInst::from_bits(number, 5) {
            let low = VtxDword0::unpack_lenient(word0)?;
            let mut third = VtxDword2R700::unpack_lenient(word2)?;
            third.alt_const &= r700;
            let (format, dst_gpr, dst_rel, select) = match inst {
                VtxInst::FETCH => {
                    let high = VtxDword1Gpr::unpack_lenient(word1)?;
                    let select = [high.dst_sel_x, high.dst_sel_y, high.dst_sel_z, high.dst_sel_w].map(select);
                    (VertexFormat::Gpr(high), high.dst_gpr, high.dst_rel, select)
                }
                VtxInst::SEMANTIC => {
                    let high = VtxDword1Sem::unpack_lenient(word1)?;
                    let select = [high.dst_sel_x, high.dst_sel_y, high.dst_sel_z, high.dst_sel_w].map(select);
                    (VertexFormat::Semantic(high), 0, false, select)
                }
            };
            return Ok(Fetch {
                addr,
                op: FetchOp::Vertex(low, format, third),
                whole_quad: low.fetch_whole_quad,
                src_gpr: low.src_gpr,
                src_rel: low.src_rel,
                dst_gpr,
                dst_rel,
                select,
            });
        }
        if number == MEMORY {
            if !r700 {
                return Err(CodeFault::Unknown { field: "MEM_INST", number });
            }
            return self.memory_fetch(addr, word0, word1, word2);
        }
        let mut low = TexDword0R700::unpack_lenient(word0)?;
        low.alt_const &= r700;
        let high = TexDword1::unpack_lenient(word1)?;
        let third = TexDword2::unpack_lenient(word2)?;
        Ok(Fetch {
            addr,
            op: FetchOp::Texture(low, high, third),
            whole_quad: low.fetch_whole_quad,
            src_gpr: low.src_gpr,
            src_rel: low.src_rel,
            dst_gpr: high.dst_gpr,
            dst_rel: high.dst_rel,
            select: [high.dst_sel_x, high.dst_sel_y, high.dst_sel_z, high.dst_sel_w].map(select),
        })
    }

    fn memory_fetch(&self, addr: u32, word0: u32, word1: u32, word2: u32) -> Read<Fetch> {
        let number = word0 >> 8 & 7;
        let unknown = CodeFault::Unknown { field: "MEM_OP", number };
        match MemOp::from_bits(number, 3).ok_or(unknown.clone())? {
            MemOp::RD_SCRATCH | MemOp::RD_REDUC | MemOp::RD_SCATTER => {
                let low = MemRdDword0::unpack_lenient(word0)?;
                let high = MemRdDword1::unpack_lenient(word1)?;
                let third = MemRdDword2::unpack_lenient(word2)?;
                Ok(Fetch {
                    addr,
                    op: FetchOp::Memory(low, high, third),
                    whole_quad: low.fetch_whole_quad,
                    src_gpr: low.src_gpr,
                    src_rel: low.src_rel,
                    dst_gpr: high.dst_gpr,
                    dst_rel: high.dst_rel,
                    select: [high.dst_sel_x, high.dst_sel_y, high.dst_sel_z, high.dst_sel_w].map(select),
                })
            }
            MemOp::LOCAL_DS_WRITE => {
                let low = MemDswDword0::unpack_lenient(word0)?;
                let high = MemDswDword1::unpack_lenient(word1)?;
                Ok(Fetch {
                    addr,
                    op: FetchOp::DataShareWrite(high),
                    whole_quad: false,
                    src_gpr: low.src_gpr,
                    src_rel: low.src_rel,
                    dst_gpr: 0,
                    dst_rel: false,
                    select: [Select::Mask; 4],
                })
            }
            MemOp::LOCAL_DS_READ => {
                let low = MemDsrDword0::unpack_lenient(word0)?;
                let high = MemDsrDword1::unpack_lenient(word1)?;
                Ok(Fetch {
                    addr,
                    op: FetchOp::DataShareRead(low, high),
                    whole_quad: false,
                    src_gpr: low.src_gpr,
                    src_rel: low.src_rel,
                    dst_gpr: high.dst_gpr,
                    dst_rel: high.dst_rel,
                    select: [high.dst_sel_x, high.dst_sel_y, high.dst_sel_z, high.dst_sel_w].map(select),
                })
            }
            MemOp::GLOBAL_DS_WRITE | MemOp::GLOBAL_DS_READ => Err(unknown),
        }
    }
}

/// MEM_INST of a memory instruction.
const MEMORY: u32 = 2;

/// The source selector of literals.
const LITERAL: u16 = 253;

fn select(sel: Sel) -> Select {
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

/// An operand; a reserved selector is an error only where it is `read`. Literals come in with the group.
fn source((selector, chan): (u16, u8), rel: bool, abs: bool, neg: bool, read: bool) -> Read<Source> {
    let chan = usize::from(chan);
    let operand = match selector {
        0..=127 => Operand::Gpr { gpr: selector as u8, chan },
        128..=191 => Operand::Kcache {
            set: usize::from(selector - 128) / 32,
            index: (selector - 128) as u8 % 32,
            chan,
        },
        245 => Operand::Value(0x3ff0_0000),
        247 => Operand::Value(0x3fe0_0000),
        244 | 246 | 248 | LITERAL => Operand::Value(0),
        249 => Operand::Value(0x3f80_0000),
        250 => Operand::Value(1),
        251 => Operand::Value(u32::MAX),
        252 => Operand::Value(0x3f00_0000),
        254 => Operand::Previous(chan),
        255 => Operand::PreviousScalar,
        256..=511 => Operand::ConstantFile { index: (selector - 256) as u8, chan },
        _ if read => return Err(CodeFault::Selector { selector }),
        _ => Operand::Value(0),
    };
    Ok(Source { operand, rel, abs, neg })
}

/// An operation over two or four slots must stand in all of them.
fn whole(ops: &[AluOp]) -> Read<()> {
    for op in ops {
        let wanted = match op.opcode.meaning {
            Meaning::Reduce(_) | Meaning::Cube => 4,
            Meaning::Double(double) => double.slots(),
            _ => continue,
        };
        let first = op.slot / wanted * wanted;
        let same = |slot| ops.iter().any(|other| other.slot == slot && other.opcode.name == op.opcode.name);
        if !(first..first + wanted).all(same) {
            return Err(CodeFault::Incomplete { name: op.opcode.name });
        }
    }
    Ok(())
}
