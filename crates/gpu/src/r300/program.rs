//! Runs vertex programs: what the vertex unit has in its memory and registers, as a launch of the machine.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_r500::pvs::launch::{Input, Launch, RunError};
use reconverge_r500::pvs::run::run;
use reconverge_r500::pvs::setup::Setup;
use reconverge_simt::Options;

use super::registers::{self as reg, *};
use super::state::{PVS_CONSTANTS, State, fields};
use super::vertex::{VECTORS, Vectors};
use crate::Fault;

/// Descriptors of flow control, and constants.
const DESCRIPTORS: usize = 16;
const CONSTANTS: usize = 256;

/// What the vertex program leaves of these vertices: vectors in the order of its output registers.
///
/// # Errors
/// The registers name no program, or it traps.
pub(super) fn shade(
    state: &mut State,
    vertices: &[Vectors],
    options: Options,
) -> Result<Vec<Vectors>, Fault> {
    let fault = |what: String| Fault::Trap(format!("vertex program: {what}"));
    let setup = Setup::new(&program(state)).map_err(|error| fault(error.to_string()))?;
    let of = |register: usize| vertices.iter().map(|vectors| vectors[register]).collect::<Arc<[_]>>();
    let used = (0..VECTORS).filter(|register| vertices.iter().any(|vectors| vectors[*register] != [0; 4]));
    let launch = Launch {
        vertices: vertices.len(),
        inputs: used.map(|register| Input { register: register as u8, values: of(register) }).collect(),
        constants: (0..CONSTANTS).map(|at| (at as u8, state.pvs(PVS_CONSTANTS + at))).collect(),
    };
    let outcome = run(&Arc::new(setup), &launch, &options).map_err(|error| match error {
        RunError::Trap(trap) => fault(trap.to_string()),
        other => fault(other.to_string()),
    })?;
    let mut left = vec![[[0; 4]; VECTORS]; vertices.len()];
    for output in 0..VECTORS {
        let Some(values) = outcome.outputs.values(output) else { continue };
        left.iter_mut().zip(values).for_each(|(vectors, value)| vectors[output] = *value);
    }
    Ok(left)
}

/// The program with the registers that it runs by.
fn program(state: &mut State) -> Program {
    let code = fields!(state, PvsCodeCntl0, state.word(reg::VAP_PVS_CODE_CNTL_0));
    let flow = state.word(reg::VAP_PVS_FLOW_CNTL_OPC);
    let addresses =
        |number: usize| [0, 1].map(|at| state.nth(reg::VAP_PVS_FLOW_CNTL_ADDRS_LW_0, 2 * number + at));
    let mut registers = vec![
        ("VAP_PVS_CODE_CNTL_0".to_owned(), state.word(reg::VAP_PVS_CODE_CNTL_0)),
        ("VAP_PVS_CODE_CNTL_1".to_owned(), state.word(reg::VAP_PVS_CODE_CNTL_1)),
        ("VAP_PVS_CONST_CNTL".to_owned(), state.word(reg::VAP_PVS_CONST_CNTL)),
        ("VAP_PVS_FLOW_CNTL_OPC".to_owned(), flow),
    ];
    let mut last = usize::from(code.pvs_last_inst);
    for number in (0..DESCRIPTORS).filter(|number| flow >> (2 * number) & 3 != 0) {
        let [low, high] = addresses(number);
        registers.push((format!("VAP_PVS_FLOW_CNTL_ADDRS_LW_{number}"), low));
        registers.push((format!("VAP_PVS_FLOW_CNTL_ADDRS_UW_{number}"), high));
        let index = state.nth(reg::VAP_PVS_FLOW_CNTL_LOOP_INDEX_0, number);
        registers.push((format!("VAP_PVS_FLOW_CNTL_LOOP_INDEX_{number}"), index));
        // Subroutines may lie behind the end.
        last = last.max((high & 0x3ff) as usize);
    }
    let words = (0..=last).flat_map(|slot| state.pvs(slot)).collect();
    Program { words, state: registers, ..Program::default() }
}
