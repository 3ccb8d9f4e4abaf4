//! Runs fragment programs: what the unit has in its memories and registers, as a launch of the machine.

use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_r500::chip::Chip;
use reconverge_r500::inst::TARGETS;
use reconverge_r500::launch::{Columns, Environment, Hardware, Launch, RunError};
use reconverge_r500::outputs::Outcome;
use reconverge_r500::run::Loaded;
use reconverge_raster::draw::{Draw, Fragments, interleaved};
use reconverge_simt::vram::Vram;
use reconverge_simt::{Options, Watch as Observed};

use super::registers as reg;
use super::state::State;
use super::texture::{self, Images};
use crate::Fault;
use crate::capture::{Recording, Watch};
use crate::observe::{Captured, ChipProgram, Machine, Rows};

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
    /// The program as it is observed, and as it runs.
    observed: ChipProgram,
    loaded: Loaded,
    options: Options,
}

impl Shader {
    /// The program that the unit holds, with its constants and textures.
    ///
    /// # Errors
    /// The registers name no program.
    pub(super) fn new(
        chip: Chip,
        (state, images): (&mut State, &mut Images),
        memory: Vram<'_>,
        options: Options,
        watch: &mut Watch,
    ) -> Result<Shader, Fault> {
        let range = state.word(reg::US_CODE_RANGE);
        let (first, size) = ((range & 0x1ff) as usize, (range >> 16 & 0x1ff) as usize + 1);
        let mut registers: Vec<(String, u32)> =
            REGISTERS.iter().map(|(address, name)| ((*name).to_owned(), state.word(*address))).collect();
        let loops =
            (0..32).map(|at| (format!("US_FC_INT_CONST_{at}"), state.nth(reg::US_FC_INT_CONST_0, at)));
        registers.extend(loops);
        registers.push(("US_FC_BOOL_CONST".to_owned(), state.word(reg::US_FC_BOOL_CONST)));
        registers.push(("FG_DEPTH_SRC".to_owned(), state.word(reg::FG_DEPTH_SRC)));
        let observed = watch.program(ChipProgram {
            isa: Isa::R500,
            chip: chip.name,
            stage: Stage::Fragment,
            words: state.us_code(first..(first + size).min(512)).to_vec(),
            base: first as u32,
            state: registers,
        });
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
        let key = (observed.clone(), Environment { constants, textures, hardware }, options);
        let loaded = state.fragment_programs.get(key, |(program, environment, options)| {
            Loaded::new(&program.program(), &environment.clone().into(), options)
        });
        let loaded = loaded.map_err(|error| Fault::Trap(format!("fragment program: {error}")))?;
        Ok(Shader { observed, loaded, options })
    }

    /// A recording of the fragments of a draw.
    pub(super) fn fragments(&self, captured: &mut Captured, draw: &Draw) -> Recording {
        let environment = self.loaded.environment().clone();
        let machine = Machine::R500(Box::new(Launch { environment, ..Launch::default() }));
        Recording::fragments(&self.observed, machine, self.options, (captured, draw))
    }

    /// Runs the program on lanes with these temporaries, and adds that to what is captured.
    ///
    /// # Errors
    /// It traps, or runs too long.
    pub(super) fn run(
        &self,
        fragments: &Fragments,
        temps: Vec<Columns>,
        recording: &mut Option<Recording>,
    ) -> Result<Outcome, Fault> {
        if let Some(recording) = recording {
            let values = |columns: &Columns| interleaved(&columns.components, fragments.lanes);
            let inputs: Vec<_> = temps.iter().map(|columns| (columns.temp.into(), values(columns))).collect();
            let inputs = inputs.iter().map(|(temp, values)| (*temp, 4, values.as_flattened()));
            recording.start(fragments.lanes, inputs, Some(fragments));
        }
        let environment = self.loaded.environment().clone();
        let launch = Launch { environment, lanes: fragments.lanes, inputs: Vec::new(), columns: temps };
        let outcome = self.loaded.run_watched(launch, Observed::Nothing).map_err(|error| match error {
            RunError::Trap(trap) => Fault::Trap(format!("fragment program: {trap}")),
            other => Fault::Trap(format!("fragment program: {other}")),
        })?;
        if let Some(recording) = recording {
            recording.end(outputs(&outcome).into_iter(), outcome.outputs.iter().map(|lane| lane.killed));
        }
        Ok(outcome)
    }
}

/// What lanes have left, by the names that launches of the machine have for it.
fn outputs(outcome: &Outcome) -> Vec<(String, Rows)> {
    let left = &outcome.outputs;
    let mut found = Vec::new();
    for target in 0..TARGETS {
        let channels = [0, 1, 2, 3].map(|channel| left.color(target, channel));
        if channels.iter().any(Option::is_some) {
            let of = |lane: usize| channels.map(|words| words.map_or(0, |words| words[lane]));
            let words = (0..left.len()).flat_map(of).collect();
            found.push((format!("color{target}"), Rows { width: 4, words }));
        }
    }
    let depth = left.depth().map(|words| Rows { width: 1, words: words.to_vec() });
    found.extend(depth.map(|rows| ("depth".to_owned(), rows)));
    found
}
