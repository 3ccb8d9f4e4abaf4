//! Tests every control-flow instruction and every disputed rule of the divergence machine, one claim per test.
//!
//! The sources are those of `flow.rs`: MAN is the R700 guide's PDF page; "compilers" means that Mesa and LLVM emit code
//! that works only with this behaviour.

mod branches;
mod calls;
mod clauses;
mod conditions;
mod loops;
mod stack;

use reconverge_r700::flow::{
    AluForm, Condition, Control, Cost, Entry, Flow, FlowFault, FlowSetup, LoopConstant, StackUse, State,
};
use reconverge_simt::{FlowView, Issue, Lane, Mask, Why};

const ALL: Mask = Mask(0b1111);

fn setup() -> FlowSetup {
    FlowSetup::new(64, ALL)
}

/// Returns a flow state with four valid lanes, all active, at address 0.
fn four() -> Flow {
    Flow::new(setup())
}

/// Begins an `if`: an ALU_PUSH_BEFORE whose predicate holds for `execute`.
fn push_if(flow: &mut Flow, execute: Mask) {
    let lanes = flow.alu_enter(AluForm::ALU_PUSH_BEFORE, false).unwrap();
    flow.update_execute_mask(AluForm::ALU_PUSH_BEFORE, lanes - execute);
    flow.alu_leave(AluForm::ALU_PUSH_BEFORE).unwrap();
}

fn states(flow: &Flow) -> String {
    (0..4).map(|lane| flow.state(Lane(lane)).to_string()).collect::<Vec<_>>().join(" ")
}

/// Enters a loop with all active lanes; its LOOP_START is at 0 and its LOOP_END at 20.
fn in_loop(mut flow: Flow) -> Flow {
    flow.loop_start_dx10(&Control::to(21)).unwrap();
    flow
}

/// Returns a flow state with a loop constant of count 3, init 4, increment 2.
fn dx9() -> Flow {
    Flow::new(dx9_setup())
}

fn dx9_setup() -> FlowSetup {
    let mut setup = setup();
    setup.loop_constants[2] = LoopConstant(0x0200_4003);
    setup
}

const I2: Control = Control { cf_const: 2, ..Control::to(21) };

const fn valid_pixels(control: Control) -> Control {
    Control { valid_pixel_mode: true, ..control }
}

const fn whole_quads(control: Control) -> Control {
    Control { whole_quad_mode: true, ..control }
}
