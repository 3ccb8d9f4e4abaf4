//! Finds the rows and constants of an instruction's operands and results.

use reconverge_simt::Mask;

use crate::pvs::flow::Frame;
use crate::pvs::group::{ALT_TEMPORARY, File, Group};
use crate::pvs::inst::{Dst, Inst, Mode, Operand};
use crate::pvs::setup::Setup;
use crate::pvs::words::DstType;

/// The location of the four components of an operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Four consecutive rows. The value is the number of the first row.
    Rows(usize),
    /// The constant at this index of the constant file.
    Constant(usize),
    /// Not stored. The operand is a constant outside the program's constants, which reads as zero, or the operand
    /// consists of literals.
    Zero,
    /// The constant whose number is the value of this variant plus aL.
    LoopConstant(i32),
    /// The constant whose number is the first value plus a component of A0. The second value is the number of the
    /// component.
    A0Constant(i32, usize),
}

/// Destination of a result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// Four consecutive rows. The value is the number of the first row.
    Rows(usize),
    /// The four rows of an output. The values are the number of the first row and the number of the output.
    Output(usize, usize),
    /// The address register A0.
    A0,
    /// No destination, because the write mask is empty.
    Nothing,
}

/// A lowered instruction: the properties that are known before the instruction runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    pub(super) places: [Place; 3],
    /// For each operand, the channels that affect the result. Bit 0 is x.
    pub(super) reads: [u8; 3],
    pub(super) target: Target,
    /// For a dual instruction: the source row of the math half, and the row that the math half writes.
    pub(super) dual: Option<(Place, usize)>,
}

impl Plain {
    /// Lowers an instruction. Returns `None` if the reference interpreter has to execute the instruction.
    pub(super) fn new(inst: &Inst, setup: &Setup) -> Option<Plain> {
        let reads = inst.reads();
        let mut places = [Place::Zero; 3];
        for ((place, operand), used) in places.iter_mut().zip(&inst.operands).zip(reads) {
            *place = Place::new(operand, used, setup)?;
        }
        let dual = match &inst.dual {
            None => None,
            Some(dual) => {
                let row = ALT_TEMPORARY.start + usize::from(dual.register) * 4 + dual.channel as usize;
                Some((Place::new(&dual.source, dual.scalars(), setup)?, row))
            }
        };
        Some(Plain { places, reads, target: target(&inst.dst)?, dual })
    }

    /// Returns whether the instruction cannot trap in the current state.
    pub(super) fn fits(&self, group: &Group, lanes: Mask) -> bool {
        if !group.strict() {
            return true;
        }
        let all = self.places.iter().chain(self.dual.iter().map(|(place, _)| place));
        let in_loop = || group.flow.frames().iter().any(|frame| matches!(frame, Frame::Loop { .. }));
        all.into_iter().all(|place| match place {
            Place::LoopConstant(_) => in_loop(),
            Place::A0Constant(_, component) => (lanes - group.a0_written[*component]).is_empty(),
            Place::Rows(_) | Place::Constant(_) | Place::Zero => true,
        })
    }
}

impl Place {
    fn new(operand: &Operand, used: u8, setup: &Setup) -> Option<Place> {
        if !operand.needs_register(used) {
            return Some(Place::Zero);
        }
        let register = i32::from(operand.register);
        match (File::of_source(operand.file), operand.mode) {
            (Some(file), Mode::Absolute) => file.row(register).map(Place::Rows),
            (Some(_), _) => None,
            (None, Mode::Absolute) => Some(setup.constant(register).map_or(Place::Zero, Place::Constant)),
            (None, Mode::Loop) => Some(Place::LoopConstant(register)),
            (None, Mode::A0(component)) => Some(Place::A0Constant(register, component as usize)),
        }
    }
}

fn target(dst: &Dst) -> Option<Target> {
    if dst.mask == 0 {
        return Some(Target::Nothing);
    }
    if dst.mode != Mode::Absolute {
        return None;
    }
    let Some(file) = File::of_destination(dst.file) else { return Some(Target::A0) };
    let row = file.row(i32::from(dst.register))?;
    Some(match dst.file {
        DstType::OUT | DstType::OUT_REPL_X => Target::Output(row, usize::from(dst.register)),
        _ => Target::Rows(row),
    })
}

/// Returns the rows that a program may write.
pub(super) fn written(setup: &Setup) -> Vec<usize> {
    let mut rows = Vec::new();
    for inst in setup.slots().filter_map(|(_, slot)| slot.inst.as_ref().ok()) {
        if let Some(file) = File::of_destination(inst.dst.file) {
            match inst.dst.mode {
                Mode::Absolute => {
                    rows.extend(
                        file.row(i32::from(inst.dst.register)).into_iter().flat_map(|row| row..row + 4),
                    );
                }
                Mode::A0(_) | Mode::Loop => rows.extend(file.start..file.start + file.size * 4),
            }
        }
        if inst.dual.is_some() {
            rows.extend(ALT_TEMPORARY.start..ALT_TEMPORARY.start + 16);
        }
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}
