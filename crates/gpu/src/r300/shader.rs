//! Runs fragment programs: what the unit has in its memories and registers, as a launch of the machine.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_r500::chip::Chip;
use reconverge_r500::launch::{Hardware, Input, Launch, RunError};
use reconverge_r500::outputs::Outcome;
use reconverge_r500::run::run;
use reconverge_r500::setup::Setup;
use reconverge_simt::Options;

use super::registers as reg;
use super::state::State;
use super::texture::{self, Images};
use crate::Fault;

/// State registers of the fragment unit that its programs run by, with their names in the machine.
const REGISTERS: [(u32, &str); 6] = [
    (reg::US_CONFIG, "US_CONFIG"),
    (reg::US_PIXSIZE, "US_PIXSIZE"),
    (reg::US_FC_CTRL, "US_FC_CTRL"),
    (reg::US_CODE_RANGE, "US_CODE_RANGE"),
    (reg::US_CODE_OFFSET, "US_CODE_OFFSET"),
    (reg::US_CODE_ADDR, "US_CODE_ADDR"),
];

/// The fragment program with all that it reads; it runs on any number of lanes.
pub(super) struct Shader {
    setup: Arc<Setup>,
    launch: Launch,
    options: Options,
}

impl Shader {
    /// The program that the unit holds, with its constants and textures.
    ///
    /// # Errors
    /// The registers name no program.
    pub(super) fn new(
        chip: Chip,
        state: &mut State,
        images: &mut Images,
        memory: &[u8],
        options: Options,
    ) -> Result<Shader, Fault> {
        let range = state.word(reg::US_CODE_RANGE);
        let (first, size) = ((range & 0x1ff) as usize, (range >> 16 & 0x1ff) as usize + 1);
        let mut program = Program::from_words(state.us_code(first..(first + size).min(512)).to_vec());
        program.base = first as u32;
        program
            .state
            .extend(REGISTERS.iter().map(|(address, name)| ((*name).to_owned(), state.word(*address))));
        let loops =
            (0..32).map(|at| (format!("US_FC_INT_CONST_{at}"), state.nth(reg::US_FC_INT_CONST_0, at)));
        program.state.extend(loops);
        program.state.push(("US_FC_BOOL_CONST".to_owned(), state.word(reg::US_FC_BOOL_CONST)));
        program.state.push(("FG_DEPTH_SRC".to_owned(), state.word(reg::FG_DEPTH_SRC)));
        let setup = Setup::new(&program);
        let setup = Arc::new(setup.map_err(|error| Fault::Trap(format!("fragment program: {error}")))?);
        let hardware = Hardware { group_width: chip.group_width, ..Hardware::default() };
        let constants = state.us_constants().collect();
        let mut textures = Vec::new();
        let enabled = state.word(reg::TX_ENABLE);
        for unit in (0..16u8).filter(|unit| enabled >> unit & 1 != 0) {
            match texture::texture(state, images, usize::from(unit), memory) {
                Ok(found) => textures.push((unit, found)),
                Err(what) => state.unknown.note(what),
            }
        }
        let launch = Launch { lanes: 0, inputs: Vec::new(), constants, textures, hardware };
        Ok(Shader { setup, launch, options })
    }

    /// Runs the program on lanes with these temporaries.
    ///
    /// # Errors
    /// It traps, or runs too long.
    pub(super) fn run(&self, lanes: usize, temps: Vec<(u8, Vec<[u32; 4]>)>) -> Result<Outcome, Fault> {
        let inputs = temps.into_iter().map(|(temp, values)| Input { temp, values: Arc::from(values) });
        let launch = Launch { lanes, inputs: inputs.collect(), ..self.launch.clone() };
        run(&self.setup, &launch, &self.options).map_err(|error| match error {
            RunError::Trap(trap) => Fault::Trap(format!("fragment program: {trap}")),
            other => Fault::Trap(format!("fragment program: {other}")),
        })
    }
}
