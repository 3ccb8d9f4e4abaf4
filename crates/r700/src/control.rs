//! The table of control-flow instructions. An instruction has one row with its operation, its chips and the fidelity of
//! its emulation. The table is a `match` without a catch-all arm, so the module does not compile if an instruction has
//! no row. [`mem_fidelity`] and [`tex_fidelity`] return the fidelity of fetches from memory and textures.
//!
//! Sources: MAN chapter 3 and the opcode tables of Mesa and XF86. [`crate::rules`] lists the questions that these
//! sources leave open, and the answers of this project.

use reconverge_simt::Fidelity::{self, Recommended, Specified};

use crate::flow::{Control, Flow, FlowFault};
use crate::rules::Rule;
use crate::words::{AluForm, CfInst, ExportInst, MemOp, TexInst};

/// The kind of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// A pixel shader (PS).
    Pixel,
    /// A vertex shader (VS), an export shader (ES), or a fetch program. A VS or an ES calls the fetch program.
    Vertex,
    /// A geometry shader (GS).
    Geometry,
}

/// A row of the table. The row has the properties of a control-flow instruction except its number and its name. Every
/// instruction with a 7-bit CF_INST has a row, except the exports.
#[derive(Clone, Copy, Debug)]
pub struct CfRow {
    /// The operation.
    pub work: CfWork,
    /// Whether R600 has the instruction. R700 has all instructions.
    pub in_r600: bool,
    /// Whether the instruction can jump to ADDR.
    pub jumps: bool,
    /// The only kind of program that may contain the instruction (MAN p. 47). If the field is `None`, all kinds of
    /// programs may contain the instruction.
    pub stage: Option<Stage>,
    /// Fidelity of the emulation.
    pub exactness: Fidelity,
    /// The disputed rule that determines the result of the instruction. The field is `None` if no disputed rule affects
    /// the result.
    pub rule: Option<Rule>,
}

/// Operation of a control-flow instruction.
#[derive(Clone, Copy, Debug)]
pub enum CfWork {
    /// Only changes the flow of lanes.
    Flow(FlowStep),
    /// Runs a clause of fetch instructions for the lanes that pass the condition.
    Fetch {
        /// Whether WAIT_ACK can wait for the clause.
        acknowledged: bool,
    },
    /// Emits a vertex, ends a strip, or does both, for the lanes that pass the condition.
    Emit {
        /// Whether a vertex is emitted.
        vertex: bool,
        /// Whether a strip ends.
        cut: bool,
    },
    /// Waits until the number of outstanding acknowledges is at most ADDR.
    WaitAck,
}

/// A function that runs a control-flow instruction on the flow state.
pub type FlowStep = fn(&mut Flow, &Control) -> Result<(), FlowFault>;

/// Returns the row of a control-flow instruction.
#[rustfmt::skip]
pub fn cf(inst: CfInst) -> CfRow {
    let of = |work| CfRow { work, in_r600: true, jumps: false, stage: None, exactness: Specified, rule: None };
    let stays = |step: FlowStep| of(CfWork::Flow(step));
    let jumps = |step: FlowStep| CfRow { jumps: true, ..stays(step) };
    let fetch = |acknowledged| of(CfWork::Fetch { acknowledged });
    let emit = |vertex, cut| CfRow { stage: Some(Stage::Geometry), ..of(CfWork::Emit { vertex, cut }) };
    let nop: FlowStep = |flow, _| { flow.nop(); Ok(()) };
    match inst {
        CfInst::NOP => stays(nop),
        CfInst::TEX | CfInst::VTX | CfInst::VTX_TC => fetch(false),
        CfInst::LOOP_START => jumps(Flow::loop_start),
        CfInst::LOOP_END => jumps(Flow::loop_end),
        CfInst::LOOP_START_DX10 => jumps(Flow::loop_start_dx10).leaning_on(Rule::DX10_LOOP_HAS_NO_COUNT),
        CfInst::LOOP_START_NO_AL => jumps(Flow::loop_start_no_al),
        CfInst::LOOP_CONTINUE => jumps(Flow::loop_continue),
        CfInst::LOOP_BREAK => jumps(Flow::loop_break),
        CfInst::JUMP => jumps(Flow::jump).leaning_on(Rule::POP_ONLY_WHEN_JUMPING),
        CfInst::PUSH => jumps(Flow::push_).leaning_on(Rule::ALU_PUSH_BEFORE_ALWAYS_PUSHES),
        CfInst::PUSH_ELSE => jumps(Flow::push_else).leaning_on(Rule::PUSH_ELSE_INVERTS).recommended(),
        CfInst::ELSE => jumps(Flow::else_).leaning_on(Rule::POP_ONLY_WHEN_JUMPING),
        CfInst::POP => stays(Flow::pop).leaning_on(Rule::POP_KEEPS_BREAKS),
        CfInst::POP_JUMP => jumps(Flow::pop_jump),
        CfInst::POP_PUSH => jumps(Flow::pop_push),
        CfInst::POP_PUSH_ELSE => jumps(Flow::pop_push_else).leaning_on(Rule::PUSH_ELSE_INVERTS).recommended(),
        CfInst::CALL => jumps(Flow::call),
        CfInst::CALL_FS => CfRow { stage: Some(Stage::Vertex), ..stays(Flow::call_fs) },
        CfInst::RETURN => stays(Flow::return_),
        CfInst::EMIT_VERTEX => emit(true, false),
        CfInst::EMIT_CUT_VERTEX => emit(true, true),
        CfInst::CUT_VERTEX => emit(false, true),
        CfInst::KILL => jumps(Flow::kill).leaning_on(Rule::KILL_JUMPS_WHEN_NONE_IS_VALID).recommended(),
        CfInst::END_PROGRAM => stays(nop).recommended(),
        CfInst::WAIT_ACK => of(CfWork::WaitAck).r700_only(),
        CfInst::TEX_ACK | CfInst::VTX_ACK | CfInst::VTX_TC_ACK => fetch(true).r700_only(),
    }
}

/// Describes the effect of a control-flow instruction on the flow of lanes. The text is empty if the instruction does
/// not affect the flow. (MAN pp. 47 to 54, 120)
pub fn effect(inst: CfInst) -> &'static str {
    match inst {
        CfInst::NOP | CfInst::TEX | CfInst::VTX | CfInst::VTX_TC | CfInst::WAIT_ACK => "",
        CfInst::TEX_ACK | CfInst::VTX_ACK | CfInst::VTX_TC_ACK => "",
        CfInst::EMIT_VERTEX | CfInst::EMIT_CUT_VERTEX | CfInst::CUT_VERTEX => "",
        CfInst::LOOP_START | CfInst::LOOP_START_DX10 | CfInst::LOOP_START_NO_AL => {
            "The states of all lanes are pushed as one entry; lanes that do not pass become inactive-break. If no lane passes, the entry is dropped and execution continues at ADDR, after the LOOP_END."
        }
        CfInst::LOOP_END => {
            "Lanes that are inactive-continue or inactive-branch become active again. If one of these lanes starts another iteration, execution continues at ADDR, after the LOOP_START. Otherwise the loop's entry is popped, which restores the states of the lanes before the loop."
        }
        CfInst::LOOP_CONTINUE => {
            "Lanes that pass become inactive-continue. If no lane of the loop is active or inactive-branch, the entries pushed inside the loop are popped and execution continues at ADDR, the LOOP_END."
        }
        CfInst::LOOP_BREAK => {
            "Lanes that pass become inactive-break until the loop ends. If no lane of the loop is active or inactive-branch, the entries pushed inside the loop are popped and execution continues at ADDR, the LOOP_END."
        }
        CfInst::JUMP => {
            "If no lane passes, POP_COUNT entries are popped and execution continues at ADDR. Otherwise nothing changes."
        }
        CfInst::PUSH => {
            "The active mask is pushed; lanes that do not pass become inactive-branch. If no lane passes, nothing is pushed, POP_COUNT entries are popped and execution continues at ADDR."
        }
        CfInst::PUSH_ELSE => {
            "The active mask is pushed; lanes that pass become inactive-branch. If no lane is left active, execution continues at ADDR."
        }
        CfInst::ELSE => {
            "Among the lanes that were active at the innermost push, active lanes become inactive-branch, and inactive-branch lanes become active. If no lane is active after this change, POP_COUNT entries are popped and execution continues at ADDR."
        }
        CfInst::POP => {
            "POP_COUNT entries are popped: the active mask is as before the push, except for lanes that broke or continued."
        }
        CfInst::POP_JUMP => {
            "First, POP_COUNT entries are popped. If no lane passes after the pop, execution continues at ADDR."
        }
        CfInst::POP_PUSH => {
            "POP_COUNT entries are popped, then the active mask is pushed and lanes that do not pass become inactive-branch."
        }
        CfInst::POP_PUSH_ELSE => {
            "POP_COUNT entries are popped, then the active mask is pushed and lanes that pass become inactive-branch."
        }
        CfInst::CALL => {
            "If a lane passes, the next address is pushed and execution continues at ADDR; masks do not change. A call beyond the maximum depth is skipped."
        }
        CfInst::CALL_FS => {
            "If a lane passes, the next address is pushed and execution continues in the fetch program."
        }
        CfInst::RETURN => {
            "If every active lane passes, the address of the call is popped and execution continues there."
        }
        CfInst::KILL => {
            "Lanes that pass leave the valid mask and stay active. If no lane is valid, execution continues at ADDR."
        }
        CfInst::END_PROGRAM => "All lanes end.",
    }
}

/// Returns a description of how an ALU clause changes the flow of lanes. The description does not cover predicates.
/// (MAN pp. 47 to 54)
pub fn form_effect(form: AluForm) -> &'static str {
    match form {
        AluForm::ALU => "Lanes that fail a predicate with UPDATE_EXECUTE_MASK become inactive-branch.",
        AluForm::ALU_PUSH_BEFORE => {
            "The active mask is pushed before the clause, also when no lane is active; lanes that fail a predicate with UPDATE_EXECUTE_MASK become inactive-branch."
        }
        AluForm::ALU_POP_AFTER => {
            "After the clause one entry is popped: the active mask is as before its push, except for lanes that broke or continued."
        }
        AluForm::ALU_POP2_AFTER => {
            "After the clause two entries are popped: the active mask is as before the outer push, except for lanes that broke or continued."
        }
        AluForm::ALU_CONTINUE => {
            "Lanes that fail a predicate with UPDATE_EXECUTE_MASK become inactive-continue until the LOOP_END."
        }
        AluForm::ALU_BREAK => {
            "Lanes that fail a predicate with UPDATE_EXECUTE_MASK become inactive-break until the loop ends."
        }
        AluForm::ALU_ELSE_AFTER => {
            "After the clause, among the lanes that were active at the innermost push, active lanes become inactive-branch, and inactive-branch lanes become active."
        }
    }
}

impl CfRow {
    fn leaning_on(self, rule: Rule) -> CfRow {
        CfRow { rule: Some(rule), ..self }
    }

    fn recommended(self) -> CfRow {
        CfRow { exactness: Recommended, ..self }
    }

    fn r700_only(self) -> CfRow {
        CfRow { in_r600: false, ..self }
    }
}

/// Returns whether R600 has an export instruction. R700 has all export instructions.
pub fn export_in_r600(inst: ExportInst) -> bool {
    inst != ExportInst::MEM_EXPORT
}

/// Returns whether R600 has a texture instruction. R700 has all texture instructions.
pub fn tex_in_r600(inst: TexInst) -> bool {
    inst != TexInst::KEEP_GRADIENTS
}

/// Returns the fidelity of a memory instruction of a fetch clause. Returns `None` if no source describes the
/// instruction. Such an instruction traps.
pub fn mem_fidelity(op: MemOp) -> Option<Fidelity> {
    match op {
        MemOp::RD_SCRATCH | MemOp::RD_REDUC | MemOp::RD_SCATTER => Some(Fidelity::Specified),
        // The sources confirm only the fields MEM_INST and MEM_OP. The layout of all other fields of LDS instructions
        // is provisional.
        MemOp::LOCAL_DS_WRITE | MemOp::LOCAL_DS_READ => Some(Fidelity::Recommended),
        MemOp::GLOBAL_DS_WRITE | MemOp::GLOBAL_DS_READ => None,
    }
}

/// Returns the fidelity of a texture instruction.
pub fn tex_fidelity(inst: TexInst) -> Fidelity {
    match inst {
        TexInst::LD
        | TexInst::GET_TEXTURE_RESINFO
        | TexInst::GET_NUMBER_OF_SAMPLES
        | TexInst::SET_GRADIENTS_H
        | TexInst::SET_GRADIENTS_V => Fidelity::Specified,
        TexInst::GET_LOD | TexInst::FETCH4 => Fidelity::Approximate,
        _ if sample_kind(inst).is_some() => Fidelity::Approximate,
        _ => Fidelity::Recommended,
    }
}

/// Source of the level of detail in a SAMPLE instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lod {
    /// The differences between neighbouring lanes of the quad.
    Quad,
    /// The gradients of SET_GRADIENTS_H and SET_GRADIENTS_V.
    Gradients,
    /// Component w of the source register.
    Register,
    /// Always level 0.
    Zero,
}

/// One of the sixteen SAMPLE instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleKind {
    pub(crate) lod: Lod,
    /// Whether w is added to the level of detail.
    pub(crate) biased: bool,
    pub(crate) compare: bool,
}

impl SampleKind {
    /// Returns the number of the coordinate that a comparison compares with texels. If w is the level of detail or its
    /// bias, the coordinate is z. Otherwise, the coordinate is w (Mesa).
    pub(crate) fn reference_component(&self) -> usize {
        if self.biased || self.lod == Lod::Register { 2 } else { 3 }
    }
}

/// Returns the kind of a SAMPLE instruction. For other instructions, the function returns `None`. A `_G_L` or `_G_LZ`
/// instruction has an explicit level of detail. So gradients have no effect on a `_G_L` or `_G_LZ` instruction.
pub(crate) fn sample_kind(inst: TexInst) -> Option<SampleKind> {
    let kind = |lod, biased, compare| Some(SampleKind { lod, biased, compare });
    match inst {
        TexInst::SAMPLE => kind(Lod::Quad, false, false),
        TexInst::SAMPLE_L | TexInst::SAMPLE_G_L => kind(Lod::Register, false, false),
        TexInst::SAMPLE_LB => kind(Lod::Quad, true, false),
        TexInst::SAMPLE_LZ | TexInst::SAMPLE_G_LZ => kind(Lod::Zero, false, false),
        TexInst::SAMPLE_G => kind(Lod::Gradients, false, false),
        TexInst::SAMPLE_G_LB => kind(Lod::Gradients, true, false),
        TexInst::SAMPLE_C => kind(Lod::Quad, false, true),
        TexInst::SAMPLE_C_L | TexInst::SAMPLE_C_G_L => kind(Lod::Register, false, true),
        TexInst::SAMPLE_C_LB => kind(Lod::Quad, true, true),
        TexInst::SAMPLE_C_LZ | TexInst::SAMPLE_C_G_LZ => kind(Lod::Zero, false, true),
        TexInst::SAMPLE_C_G => kind(Lod::Gradients, false, true),
        TexInst::SAMPLE_C_G_LB => kind(Lod::Gradients, true, true),
        TexInst::LD
        | TexInst::GET_TEXTURE_RESINFO
        | TexInst::GET_NUMBER_OF_SAMPLES
        | TexInst::GET_LOD
        | TexInst::GET_GRADIENTS_H
        | TexInst::GET_GRADIENTS_V
        | TexInst::GET_LERP
        | TexInst::KEEP_GRADIENTS
        | TexInst::SET_GRADIENTS_H
        | TexInst::SET_GRADIENTS_V
        | TexInst::PASS
        | TexInst::SET_CUBEMAP_INDEX
        | TexInst::FETCH4 => None,
    }
}
