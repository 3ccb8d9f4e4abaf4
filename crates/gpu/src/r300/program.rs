//! Runs vertex programs. Reads a program and the program's constants from the memory and the registers of the vertex
//! unit.

use std::borrow::Cow;
use std::fmt::Display;
use std::iter;
use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_r500::chip::Chip;
use reconverge_r500::pvs::inst::OUTPUTS;
use reconverge_r500::pvs::launch::{Input, Launch, LaunchError, RunError};
use reconverge_r500::pvs::run::Loaded;
use reconverge_simt::Options;

use super::programs::DecodedFrom;
use super::registers::{self as reg, *};
use super::state::{CONST_BASE, PVS_CONSTANTS, State, fields};
use super::vertex::{VECTORS, Vectors};
use crate::Fault;
use crate::capture::{Recording, Watch};
use crate::observe::{ChipProgram, Machine, Rows};

/// Number of flow control descriptors, and number of constants.
const DESCRIPTORS: usize = 16;
const CONSTANTS: usize = 256;

/// Index of VAP_PVS_CONST_CNTL in [`VertexRegisters`].
const CONST_CNTL: usize = 2;

/// A vertex program with its constants. The program can run on any number of vertices.
#[derive(Debug)]
pub(super) struct VertexProgram {
    chip: Chip,
    key: DecodedFrom,
    loaded: Loaded,
    options: Options,
}

fn fault(what: impl Display) -> Fault {
    Fault::Trap(format!("vertex program: {what}"))
}

fn failed(error: RunError) -> Fault {
    match error {
        RunError::Trap(trap) => fault(trap),
        other => fault(other),
    }
}

impl VertexProgram {
    /// Returns the program that the registers select.
    ///
    /// # Errors
    /// Returns a fault if the machine cannot load the program.
    pub(super) fn new(
        chip: Chip,
        state: &mut State,
        options: Options,
        watch: &mut Watch,
    ) -> Result<VertexProgram, Fault> {
        let (slots, mut registers) = program(state);
        // Only an observer reads the offset of the constants. If the chip has no observer, the code removes the offset
        // from the key. Then the cache finds the program even if the offset has changed.
        if !watch.is_on() {
            registers[CONST_CNTL] &= !CONST_BASE;
        }
        let mut programs = take(&mut state.vertex_programs);
        let words = state.pvs_words(slots);
        let words: Cow<'_, [u32]> = match watch.is_on() {
            false => words.into(),
            true => watch.program(chip_program(chip, words, &registers)).words.into(),
        };
        let alike =
            |key: &DecodedFrom| key.options == options && *key.words == *words && *key.registers == registers;
        let load = || {
            let program = chip_program(chip, &words, &registers).program();
            let loaded = Loaded::new(&program, &Arc::default(), &options)?;
            let key = DecodedFrom { words: (*words).into(), first: 0, registers: registers.into(), options };
            Ok::<_, LaunchError>((key, loaded))
        };
        let found = programs.get(alike, load).map(|(key, loaded)| (key.clone(), loaded.clone()));
        state.vertex_programs = programs;
        let (key, loaded) = found.map_err(fault)?;
        let mut program = VertexProgram { chip, key, loaded, options };
        match watch.is_on() {
            false => program.take_constants(state),
            // An observer receives all constants.
            true => {
                let value = |number: u8| (number, state.pvs(PVS_CONSTANTS + usize::from(number)));
                program.loaded.set_constants((0..=u8::MAX).map(value));
            }
        }
        Ok(program)
    }

    /// Reads the constants again, for a draw without an observer.
    pub(super) fn take_constants(&mut self, state: &State) {
        let base = (state.word(reg::VAP_PVS_CONST_CNTL) & CONST_BASE) as usize;
        let most = self.loaded.setup().constant_max;
        let value = |number: u8| state.pvs(PVS_CONSTANTS + (base + usize::from(number)) % CONSTANTS);
        self.loaded.set_constants((0..=most).map(|number| (number, value(number))));
    }

    /// Returns the program in the form for observers.
    fn observed(&self) -> ChipProgram {
        chip_program(self.chip, &self.key.words, &self.key.registers)
    }

    /// Returns a recording of the vertices with these indices.
    pub(super) fn vertices(&self, numbers: &[u32]) -> Recording {
        let launch = Launch { environment: self.loaded.environment().clone(), ..Launch::default() };
        let vertices = numbers.iter().map(|number| [*number, 0]).collect();
        Recording::vertices(&self.observed(), Machine::Pvs(Box::new(launch)), self.options, vertices)
    }

    /// Runs the program on vertices. Replaces the input vectors of each vertex by the outputs of the program, in the
    /// order of the output registers. `targets` is the mask of the input vectors that the stream writes. All other
    /// input vectors are zero.
    ///
    /// # Errors
    /// Returns a fault if the program traps or exceeds the maximum number of instructions.
    pub(super) fn run(
        &self,
        vertices: &mut [Vectors],
        targets: u32,
        recording: &mut Option<Recording>,
    ) -> Result<(), Fault> {
        if recording.is_none() && self.loaded.runs_vectors() {
            return self.loaded.run_vectors(vertices, targets).map_err(failed);
        }
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
        let outcome = self.loaded.run(vertices.len(), inputs).map_err(failed)?;
        let outputs = || (0..OUTPUTS).filter_map(|at| Some((at, outcome.outputs.values(at)?)));
        if let Some(recording) = recording {
            let rows = |values: &[[u32; 4]]| Rows { width: 4, words: values.as_flattened().to_vec() };
            let outputs = outputs().map(|(output, values)| (format!("o{output}"), rows(values)));
            recording.end(outputs, iter::repeat_n(false, vertices.len()));
        }
        vertices.fill([[0; 4]; VECTORS]);
        for (output, values) in outputs().filter(|(output, _)| *output < VECTORS) {
            vertices.iter_mut().zip(values).for_each(|(vectors, value)| vectors[output] = *value);
        }
        Ok(())
    }
}

/// Registers that affect a vertex program. Four registers affect the whole program. Each descriptor has three more
/// registers. If a descriptor has no operation, zeros replace the registers of the descriptor.
type VertexRegisters = [u32; 4 + 3 * DESCRIPTORS];

/// Returns the instruction slots of the program, and the registers that affect the program.
fn program(state: &mut State) -> (Range<usize>, VertexRegisters) {
    let code = fields!(state, PvsCodeCntl0, state.word(reg::VAP_PVS_CODE_CNTL_0));
    let flow = state.word(reg::VAP_PVS_FLOW_CNTL_OPC);
    let mut registers = [0; _];
    let (first, descriptors) = registers.split_at_mut(4);
    let [code_1, constants] =
        [reg::VAP_PVS_CODE_CNTL_1, reg::VAP_PVS_CONST_CNTL].map(|address| state.word(address));
    first.copy_from_slice(&[state.word(reg::VAP_PVS_CODE_CNTL_0), code_1, constants, flow]);
    let mut last = usize::from(code.pvs_last_inst);
    for (number, words) in used(flow).zip(descriptors.as_chunks_mut().0) {
        if let Some(number) = number {
            let [low, high] = [0, 1].map(|at| state.nth(reg::VAP_PVS_FLOW_CNTL_ADDRS_LW_0, 2 * number + at));
            *words = [low, high, state.nth(reg::VAP_PVS_FLOW_CNTL_LOOP_INDEX_0, number)];
            // Subroutines may be after the last instruction of the main program.
            last = last.max((high & 0x3ff) as usize);
        }
    }
    (0..last + 1, registers)
}

/// Returns one entry per descriptor. The entry is the number of the descriptor, or `None` if the descriptor has no
/// operation.
fn used(flow: u32) -> impl Iterator<Item = Option<usize>> {
    (0..DESCRIPTORS).map(move |number| (flow >> (2 * number) & 3 != 0).then_some(number))
}

fn chip_program(chip: Chip, words: &[u32], registers: &[u32]) -> ChipProgram {
    let (first, descriptors) = registers.split_at(4);
    let names = ["CODE_CNTL_0", "CODE_CNTL_1", "CONST_CNTL", "FLOW_CNTL_OPC"];
    let named = names.iter().zip(first).map(|(name, word)| (format!("VAP_PVS_{name}"), *word));
    let mut state: Vec<(String, u32)> = named.collect();
    for (number, words) in used(first[3]).zip(descriptors.as_chunks::<3>().0) {
        if let Some(number) = number {
            let names = ["ADDRS_LW", "ADDRS_UW", "LOOP_INDEX"];
            let named = names.iter().zip(words);
            state.extend(named.map(|(name, word)| (format!("VAP_PVS_FLOW_CNTL_{name}_{number}"), *word)));
        }
    }
    let (isa, stage) = (Isa::R500, Stage::Vertex);
    ChipProgram { isa, chip: chip.name, stage, words: words.to_vec(), base: 0, state }
}
