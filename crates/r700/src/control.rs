//! What each control-flow instruction is: what it does, which chips have it, how exact it is. One row an instruction; the
//! match has no catch-all, so an instruction without a row does not compile.
//!
//! Source: MAN chapter 3 and the opcode tables of Mesa and XF86; [`crate::rules`] for what these leave open.

use reconverge_simt::Fidelity::{self, Recommended, Specified};

use crate::flow::{Control, Flow, FlowFault};
use crate::rules::Rule;
use crate::words::{CfInst, ExportInst, TexInst};

/// The kind of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// PS.
    Pixel,
    /// VS, ES, and the fetch programs they call.
    Vertex,
    /// GS.
    Geometry,
}

/// What a control-flow instruction (CF_INST of 7 bits, exports excepted) is, besides its number and name.
#[derive(Clone, Copy, Debug)]
pub struct CfRow {
    /// What it does.
    pub work: CfWork,
    /// Whether R600 has it; R700 has all.
    pub in_r600: bool,
    /// Whether it can go on at ADDR.
    pub jumps: bool,
    /// The only kind of program that may have it (MAN p. 47).
    pub stage: Option<Stage>,
    /// How exact it is.
    pub exactness: Fidelity,
    /// The disputed reading it leans on, if any.
    pub rule: Option<Rule>,
}

/// What a control-flow instruction does.
#[derive(Clone, Copy, Debug)]
pub enum CfWork {
    /// Decides about flow, and nothing else.
    Flow(FlowStep),
    /// Runs a clause of fetch instructions for the lanes that pass.
    Fetch {
        /// Whether WAIT_ACK can wait for it.
        acknowledged: bool,
    },
    /// Names the lanes that pass as a vertex, the end of a strip, or both.
    Emit {
        /// Whether a vertex ends.
        vertex: bool,
        /// Whether a strip ends.
        cut: bool,
    },
    /// Waits until at most ADDR acknowledges are outstanding.
    WaitAck,
}

/// A control-flow instruction on the flow state.
pub type FlowStep = fn(&mut Flow, &Control) -> Result<(), FlowFault>;

/// The row of a control-flow instruction.
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

/// Whether R600 has an export instruction; R700 has all.
pub fn export_in_r600(inst: ExportInst) -> bool {
    inst != ExportInst::MEM_EXPORT
}

/// Whether R600 has a texture instruction; R700 has all.
pub fn tex_in_r600(inst: TexInst) -> bool {
    inst != TexInst::KEEP_GRADIENTS
}
