//! Runs vertex programs: what the vertex unit has in its memory and registers, as a launch of the machine.

use std::fmt::Display;
use std::iter;
use std::sync::Arc;

use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_r500::chip::Chip;
use reconverge_r500::pvs::inst::OUTPUTS;
use reconverge_r500::pvs::launch::{Environment, Input, Launch, RunError};
use reconverge_r500::pvs::run::Loaded;
use reconverge_simt::Options;

use super::registers::{self as reg, *};
use super::state::{PVS_CONSTANTS, State, fields};
use super::vertex::{VECTORS, Vectors};
use crate::Fault;
use crate::capture::{Recording, Watch};
use crate::observe::{ChipProgram, Machine, Rows};

/// Descriptors of flow control, and constants.
const DESCRIPTORS: usize = 16;
const CONSTANTS: usize = 256;

/// The vertex program with its constants; it runs on any number of vertices.
pub(super) struct VertexProgram {
    /// The program as it is observed, and as it runs.
    observed: ChipProgram,
    loaded: Loaded,
    options: Options,
}

fn fault(what: impl Display) -> Fault {
    Fault::Trap(format!("vertex program: {what}"))
}

impl VertexProgram {
    /// The program that the unit holds.
    ///
    /// # Errors
    /// The registers name no program.
    pub(super) fn new(
        chip: Chip,
        state: &mut State,
        options: Options,
        watch: &mut Watch,
    ) -> Result<VertexProgram, Fault> {
        let (words, registers) = program(state);
        let (isa, stage) = (Isa::R500, Stage::Vertex);
        let program = ChipProgram { isa, chip: chip.name, stage, words, base: 0, state: registers };
        let observed = watch.program(program);
        let constants = (0..CONSTANTS).map(|at| (at as u8, state.pvs(PVS_CONSTANTS + at))).collect();
        let key = (observed.clone(), Environment { constants }, options);
        let loaded = state.vertex_programs.get(key, |(program, environment, options)| {
            Loaded::new(&program.program(), &environment.clone().into(), options)
        });
        let loaded = loaded.map_err(fault)?;
        Ok(VertexProgram { observed, loaded, options })
    }

    /// A recording of vertices of these indices.
    pub(super) fn vertices(&self, numbers: &[u32]) -> Recording {
        let launch = Launch { environment: self.loaded.environment().clone(), ..Launch::default() };
        let vertices = numbers.iter().map(|number| [*number, 0]).collect();
        Recording::vertices(&self.observed, Machine::Pvs(Box::new(launch)), self.options, vertices)
    }

    /// What it leaves of these vertices: vectors in the order of its output registers.
    ///
    /// # Errors
    /// It traps, or runs too long.
    pub(super) fn run(
        &self,
        vertices: &[Vectors],
        recording: &mut Option<Recording>,
    ) -> Result<Vec<Vectors>, Fault> {
        let of = |register: usize| vertices.iter().map(|vectors| vectors[register]).collect::<Arc<[_]>>();
        let used =
            (0..VECTORS).filter(|register| vertices.iter().any(|vectors| vectors[*register] != [0; 4]));
        let input = |register| Input { register: register as u8, values: of(register) };
        let inputs: Vec<Input> = used.map(input).collect();
        if let Some(recording) = recording {
            let inputs = inputs.iter();
            let inputs = inputs.map(|input| (input.register.into(), 4, input.values.as_flattened()));
            recording.start(vertices.len(), inputs, None);
        }
        let outcome = self.loaded.run(vertices.len(), inputs).map_err(|error| match error {
            RunError::Trap(trap) => fault(trap),
            other => fault(other),
        })?;
        let outputs = || (0..OUTPUTS).filter_map(|at| Some((at, outcome.outputs.values(at)?)));
        if let Some(recording) = recording {
            let rows = |values: &[[u32; 4]]| Rows { width: 4, words: values.as_flattened().to_vec() };
            let outputs = outputs().map(|(output, values)| (format!("o{output}"), rows(values)));
            recording.end(outputs, iter::repeat_n(false, vertices.len()));
        }
        let mut left = vec![[[0; 4]; VECTORS]; vertices.len()];
        for (output, values) in outputs().filter(|(output, _)| *output < VECTORS) {
            left.iter_mut().zip(values).for_each(|(vectors, value)| vectors[output] = *value);
        }
        Ok(left)
    }
}

/// The words of the program, and the registers that it runs by.
fn program(state: &mut State) -> (Vec<u32>, Vec<(String, u32)>) {
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
    ((0..=last).flat_map(|slot| state.pvs(slot)).collect(), registers)
}
