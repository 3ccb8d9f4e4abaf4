//! Recognizes pixel programs that only read a texel and export the texel. The driver uses such programs for blits.
//!
//! ```text
//! FLOOR       R1.y, R0.x       MOV  R0.z, KC0[0].x
//! FLT_TO_INT  R1.x, PV.y       SAMPLE R1.xyzw, R0.xyzz
//! LD R2.xyzw, R1.xy_w          EXPORT_DONE PIXEL[0], R1.xyzw
//! EXPORT_DONE PIXEL[0], R2
//! ```

use reconverge_r700::code::{AluOp, CfOp, Code, ExportKind, FetchOp, Group, Operand, Source, TRANS};
use reconverge_r700::code::{Export, Fetch, Select as Chosen};
use reconverge_r700::flow::{Condition, Control};
use reconverge_r700::meaning::Meaning;
use reconverge_r700::words::{AluForm, CoordType, Sel, TexInst};

use crate::texels::Select;

/// The texel that a program reads and exports as colour 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TexelRead {
    pub(super) resource: u8,
    /// For each component of the colour, the component of the texture resource.
    pub(super) select: [Select; 4],
    /// Register and component of coordinates s and t.
    pub(super) axes: [(u8, u8); 2],
    /// Register and component of the level, or `None` if level 0 is read.
    pub(super) level: Option<(u8, u8)>,
    /// The sampler, and whether coordinates run from 0 to 1. If the coordinates are the texel's column and row, the
    /// value is `None`.
    pub(super) sampler: Option<(u8, bool)>,
}

/// A value that the program computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopiedValue {
    /// The initial value of a register's component.
    Input(u8, u8),
    /// The initial value of a register's component, rounded down.
    Below(u8, u8),
    /// The initial value of a register's component as an integer. If `below` is set, the value is rounded down.
    /// Otherwise, the rounding mode is not known.
    Whole {
        gpr: u8,
        chan: u8,
        below: bool,
    },
    Word(u32),
    /// A component of the texel.
    Texel(u8),
    Unknown,
}

/// Maximum number of ALU groups in a clause. Programs with longer clauses are not examined.
const GROUPS: usize = 8;

/// The values of registers, and the results of the previous ALU group.
struct CopiedValues {
    registers: Vec<((u8, u8), CopiedValue)>,
    vector: [CopiedValue; 4],
    scalar: CopiedValue,
    texel: Option<TexelRead>,
}

/// Returns the texel that a program exports. Returns `None` if the program does more than export a texel.
pub(super) fn texel_read(code: &Code) -> Option<TexelRead> {
    let unknown = CopiedValue::Unknown;
    let mut values =
        CopiedValues { registers: Vec::new(), vector: [unknown; 4], scalar: unknown, texel: None };
    let mut exported = None;
    code.faults().next().is_none().then_some(())?;
    for (number, (addr, cf)) in code.instructions().enumerate() {
        // The instructions must be in order, and the export of the colour must be the last instruction.
        (addr as usize == number && exported.is_none()).then_some(())?;
        match &cf.op {
            CfOp::Alu(clause) => {
                (clause.form == AluForm::ALU && clause.group_count() <= GROUPS).then_some(())?;
                (values.vector, values.scalar) = ([unknown; 4], unknown);
                code.groups(clause).try_for_each(|group| values.compute(group))?;
            }
            CfOp::Fetch(_, control, fetches) => {
                is_plain(control).then_some(())?;
                fetches.iter().try_for_each(|fetch| values.fetch(fetch))?;
            }
            CfOp::Export(control, export) => {
                is_plain(control).then_some(())?;
                exported = Some(values.export(export)?);
            }
            CfOp::Control(..) | CfOp::Memory(..) => return None,
        }
        if cf.end_of_program {
            break;
        }
    }
    let select = exported?;
    values.texel.map(|texel| TexelRead { select, ..texel })
}

fn is_plain(control: &Control) -> bool {
    (control.cond, control.pop_count) == (Condition::Active, 0)
}

impl CopiedValues {
    fn of(&self, gpr: u8, chan: u8) -> CopiedValue {
        let known = self.registers.iter().rev().find(|(place, _)| *place == (gpr, chan));
        known.map_or(CopiedValue::Input(gpr, chan), |(_, value)| *value)
    }

    fn source(&self, source: &Source) -> CopiedValue {
        if source.rel || source.abs || source.neg {
            return CopiedValue::Unknown;
        }
        match source.operand {
            Operand::Gpr { gpr, chan } => self.of(gpr, chan),
            Operand::Value(word) => CopiedValue::Word(word),
            Operand::Previous(chan) => self.vector[usize::from(chan & 3)],
            Operand::PreviousScalar => self.scalar,
            Operand::Kcache { .. } | Operand::ConstantFile { .. } => CopiedValue::Unknown,
        }
    }

    /// Computes the values of an ALU group. Returns `None` if the group has an effect besides these values.
    fn compute(&mut self, group: Group<'_>) -> Option<()> {
        let results: Vec<CopiedValue> = group.ops.iter().map(|op| self.result(op)).collect::<Option<_>>()?;
        (self.vector, self.scalar) = ([CopiedValue::Unknown; 4], CopiedValue::Unknown);
        for (op, value) in group.ops.iter().zip(results) {
            match op.slot {
                TRANS => self.scalar = value,
                slot => self.vector[usize::from(slot & 3)] = value,
            }
            if op.writes() {
                self.registers.push(((op.dst_gpr, op.dst_chan), value));
            }
        }
        Some(())
    }

    fn result(&self, op: &AluOp) -> Option<CopiedValue> {
        let computes = match op.opcode.meaning {
            Meaning::Nothing
            | Meaning::Float1(_)
            | Meaning::Float2(_)
            | Meaning::Float3(..)
            | Meaning::Bits1(_)
            | Meaning::Bits2(_)
            | Meaning::Bits3(_)
            | Meaning::Reduce(_)
            | Meaning::Cube => true,
            Meaning::PredSet(_)
            | Meaning::Kill(_)
            | Meaning::Mova(_)
            | Meaning::MovaLoop(_)
            | Meaning::Double(_) => false,
        };
        let plain = op.pred_sel.is_none() && !op.dst_rel && !op.update_pred && !op.update_execute_mask;
        (computes && plain).then_some(())?;
        let [first] = op.read() else { return Some(CopiedValue::Unknown) };
        let modified = op.omod != 1. || op.clamp;
        Some(match (op.opcode.name, self.source(first)) {
            _ if modified => CopiedValue::Unknown,
            ("MOV", value) => value,
            ("FLOOR", CopiedValue::Input(gpr, chan)) => CopiedValue::Below(gpr, chan),
            ("FLT_TO_INT", CopiedValue::Below(gpr, chan)) => CopiedValue::Whole { gpr, chan, below: true },
            ("FLT_TO_INT", CopiedValue::Input(gpr, chan)) => CopiedValue::Whole { gpr, chan, below: false },
            _ => CopiedValue::Unknown,
        })
    }

    /// Records the texel that an instruction reads. Returns `None` if this module does not support the read, or if an
    /// earlier instruction has already read a texel.
    fn fetch(&mut self, fetch: &Fetch) -> Option<()> {
        let FetchOp::Texture(low, high, third) = &fetch.op else { return None };
        let still = (third.offset_x, third.offset_y) == (0, 0);
        let plain = still && !fetch.src_rel && !fetch.dst_rel && !low.alt_const;
        (plain && self.texel.is_none()).then_some(())?;
        let component = |sel: Sel| match sel {
            Sel::X | Sel::Y | Sel::Z | Sel::W => self.of(fetch.src_gpr, sel as u8),
            Sel::ZERO => CopiedValue::Word(0),
            Sel::ONE | Sel::MASK => CopiedValue::Unknown,
        };
        let along = [component(third.src_sel_x), component(third.src_sel_y)];
        let (axes, level, sampler) = match low.tex_inst {
            TexInst::LD => {
                let axes = along.map(|value| match value {
                    CopiedValue::Whole { gpr, chan, below: true } => Some((gpr, chan)),
                    _ => None,
                });
                let level = match component(third.src_sel_w) {
                    CopiedValue::Whole { gpr, chan, .. } => Some((gpr, chan)),
                    CopiedValue::Word(0) => None,
                    _ => return None,
                };
                (axes, level, None)
            }
            TexInst::SAMPLE | TexInst::SAMPLE_LZ => {
                let axes = along.map(|value| match value {
                    CopiedValue::Input(gpr, chan) => Some((gpr, chan)),
                    _ => None,
                });
                let normalised = high.coord_type_x == CoordType::NORMALIZED;
                (axes, None, Some((third.sampler_id, normalised)))
            }
            _ => return None,
        };
        let [s, t] = axes;
        let axes = [s?, t?];
        self.texel = Some(TexelRead { resource: low.resource_id, select: Select::ALL, axes, level, sampler });
        for (chan, select) in (0..4).zip(fetch.select) {
            let value = match select {
                Chosen::Component(component) => CopiedValue::Texel(component as u8),
                Chosen::Zero => CopiedValue::Word(0),
                Chosen::One => CopiedValue::Word(1f32.to_bits()),
                Chosen::Mask => continue,
            };
            self.registers.push(((fetch.dst_gpr, chan), value));
        }
        Some(())
    }

    /// Returns the source of each component of the exported colour. Returns `None` if the instruction exports anything
    /// except this colour.
    fn export(&self, export: &Export) -> Option<[Select; 4]> {
        let color = (export.kind, export.base, export.burst, export.rel) == (ExportKind::Pixel, 0, 1, false);
        color.then_some(())?;
        let [x, y, z, w] = export.select.map(|select| {
            let value = match select {
                Chosen::Component(chan) => self.of(export.gpr, chan as u8),
                Chosen::Zero => CopiedValue::Word(0),
                Chosen::One => CopiedValue::Word(1f32.to_bits()),
                Chosen::Mask => CopiedValue::Unknown,
            };
            match value {
                CopiedValue::Texel(component) => Some(Select::Component(component)),
                CopiedValue::Word(word) => Some(Select::Word(word)),
                _ => None,
            }
        });
        Some([x?, y?, z?, w?])
    }
}

#[cfg(test)]
mod tests {
    use reconverge_r700::chip::Chip;
    use reconverge_r700::code::CodeOptions;

    use super::*;

    /// Captured: the program of the driver's blits. At the top of this file, this program is on the left.
    #[rustfmt::skip]
    const BLIT: [u32; 20] = [
        0x0000_0003, 0xa010_0000, 0x0000_0008, 0x8080_0000, 0xc001_0000, 0x9420_0688,
        0x0000_0000, 0x2020_0a10, 0x0000_0400, 0x4020_0a10, 0x8000_0c00, 0x6020_3590,
        0x8000_04fe, 0x0020_3590, 0x8000_0801, 0x2020_3590, 0x0001_1203, 0xf00d_1002,
        0x7c80_0000, 0x0000_0000,
    ];

    fn read(words: &[u32]) -> Option<TexelRead> {
        texel_read(&Code::new(words, 0, CodeOptions { chip: Chip::RV770, prefer_vector: true }))
    }

    #[test]
    fn the_program_of_a_blit_exports_a_texel() {
        let expected = TexelRead {
            resource: 18,
            select: Select::ALL,
            axes: [(0, 0), (0, 1)],
            level: Some((0, 3)),
            sampler: None,
        };
        assert_eq!(read(&BLIT), Some(expected));
    }

    #[test]
    fn other_programs_are_run() {
        let with = |at: usize, word: u32| {
            let mut words = BLIT;
            words[at] = word;
            read(&words)
        };
        // MOV, FRACT and TRUNC replace the first FLOOR of the program.
        for op in [0x19, 0x10, 0x11] {
            assert_eq!(with(7, BLIT[7] & !(0x3ff << 7) | op << 7), None, "{op:#x}");
        }
        assert_eq!(with(6, BLIT[6] | 1 << 12), None, "the other sign");
        assert_eq!(with(7, BLIT[7] | 1 << 31), None, "clamped");
        assert_eq!(with(18, BLIT[18] | 2), None, "an offset of a texel");
        assert_eq!(with(4, BLIT[4] | 1), None, "another colour");
        assert_eq!(read(&BLIT[..16]), None, "cut");
    }
}
