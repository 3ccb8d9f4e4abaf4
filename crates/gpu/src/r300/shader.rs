//! Runs fragment programs. The program, the constants and the textures come from the memories and the registers of the
//! fragment unit.

use std::borrow::Cow;
use std::mem::take;
use std::sync::Arc;

use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_r500::chip::Chip;
use reconverge_r500::inst::TARGETS;
use reconverge_r500::launch::{Columns, Environment, Hardware, Launch, LaunchError, RunError};
use reconverge_r500::outputs::Outputs;
use reconverge_r500::run::Loaded;
use reconverge_r500::uses::temps_read;
use reconverge_raster::draw::{CopiedTexels, Draw, Fragments, interleaved};
use reconverge_simt::Options;
use reconverge_simt::texture::Sampler;
use reconverge_simt::texture::rows::Plan;
use reconverge_simt::vram::Vram;

use super::copied::{TexelRead, texel_read};
use super::programs::{DecodedFrom, KeptFragmentProgram};
use super::registers as reg;
use super::state::State;
use super::texture::{self, Images};
use crate::Fault;
use crate::capture::{Recording, Watch};
use crate::copied;
use crate::kept::Kept;
use crate::observe::{Captured, ChipProgram, Machine, Rows};
use crate::texels::Select;

/// State registers that affect fragment programs. Each entry has the address of a register and the machine's name of
/// the register.
const REGISTERS: [(u32, &str); 6] = [
    (reg::US_CONFIG, "US_CONFIG"),
    (reg::US_PIXSIZE, "US_PIXSIZE"),
    (reg::US_FC_CTRL, "US_FC_CTRL"),
    (reg::US_CODE_RANGE, "US_CODE_RANGE"),
    (reg::US_CODE_OFFSET, "US_CODE_OFFSET"),
    (reg::US_CODE_ADDR, "US_CODE_ADDR"),
];

/// Number of integer constants.
const INTEGERS: usize = 32;

/// Values that affect a program: the registers in [`REGISTERS`], the integer constants, the boolean constants, and the
/// register FG_DEPTH_SRC.
type FragmentRegisters = [u32; REGISTERS.len() + INTEGERS + 2];

fn registers(state: &State) -> FragmentRegisters {
    let named = REGISTERS.iter().map(|(address, _)| state.word(*address));
    let integers = (0..INTEGERS).map(|at| state.nth(reg::US_FC_INT_CONST_0, at));
    let last = [reg::US_FC_BOOL_CONST, reg::FG_DEPTH_SRC].map(|address| state.word(address));
    let mut found = [0; _];
    found.iter_mut().zip(named.chain(integers).chain(last)).for_each(|(to, word)| *to = word);
    found
}

/// Returns the registers with the names that the machine uses.
fn named(registers: &[u32]) -> Vec<(String, u32)> {
    let names = REGISTERS.iter().map(|(_, name)| (*name).to_owned());
    let integers = (0..INTEGERS).map(|at| format!("US_FC_INT_CONST_{at}"));
    let last = ["US_FC_BOOL_CONST", "FG_DEPTH_SRC"].map(str::to_owned);
    names.chain(integers).chain(last).zip(registers.iter().copied()).collect()
}

/// A fragment program with its constants and textures. The program can run on any number of lanes.
#[derive(Debug)]
pub(super) struct Shader {
    chip: Chip,
    key: DecodedFrom,
    loaded: Loaded,
    /// For each channel of each temporary, whether the program may read the channel.
    read: Arc<[bool]>,
    /// Numbers of the constants that the program reads.
    constants: Arc<[u8]>,
    /// The texel that the program outputs. `None` if the program does more than output a texel.
    texel: Option<TexelRead>,
    /// The texture units that are enabled, in the order of the textures in the environment.
    units: Vec<texture::TextureUnit>,
    options: Options,
}

impl Shader {
    /// Returns the program that the registers select, with its constants and textures.
    ///
    /// # Errors
    /// Returns a fault if the machine cannot load the program.
    pub(super) fn new(
        chip: Chip,
        (state, images): (&mut State, &mut Images),
        memory: Vram<'_>,
        options: Options,
        watch: &mut Watch,
    ) -> Result<Shader, Fault> {
        let range = state.word(reg::US_CODE_RANGE);
        let (first, size) = ((range & 0x1ff) as usize, (range >> 16 & 0x1ff) as usize + 1);
        let registers = registers(state);
        let (mut textures, mut units) = (Vec::new(), Vec::new());
        let enabled = state.word(reg::TX_ENABLE);
        for unit in (0..16u8).filter(|unit| enabled >> unit & 1 != 0) {
            let found = texture::unit(state, usize::from(unit))
                .and_then(|found| Ok((found.texture(images, memory)?, found)));
            match found {
                Ok((texture, found)) => {
                    textures.push((unit, texture));
                    units.push(found);
                }
                Err(what) => state.unknown.note(what),
            }
        }
        let mut programs = take(&mut state.fragment_programs);
        let words = state.us_code(first..(first + size).min(512));
        let words: Cow<'_, [u32]> = match watch.is_on() {
            false => words.into(),
            true => watch.program(chip_program(chip, words, first, &registers)).words.into(),
        };
        let alike = |key: &DecodedFrom| {
            (key.first, key.options) == (first, options)
                && *key.words == *words
                && *key.registers == registers
        };
        let hardware = Hardware { group_width: chip.group_width, ..Hardware::default() };
        let bare = Environment { constants: Vec::new(), textures, hardware };
        let load = || {
            let key = DecodedFrom { words: (*words).into(), first, registers: registers.into(), options };
            let program = chip_program(chip, &key.words, first, &registers).program();
            let without = Environment { textures: Vec::new(), ..bare.clone() };
            let decoded = Loaded::new(&program, &without.into(), &options)?;
            let constants = decoded.setup().constants_read().into();
            let read = temps_read(decoded.setup()).into();
            let lowered = Kept::default();
            let texel = texel_of(&key);
            Ok::<_, LaunchError>((key, KeptFragmentProgram { constants, read, texel, decoded, lowered }))
        };
        let mut loaded = || -> Result<_, LaunchError> {
            let (key, KeptFragmentProgram { constants, read, texel, decoded, lowered }) =
                programs.get(alike, load)?;
            let (_, lowered) = lowered.get(
                |known| known.lowers_alike(&bare),
                || {
                    let known = Arc::new(bare.clone());
                    Ok::<_, LaunchError>((known.clone(), decoded.with_environment(&known)?))
                },
            )?;
            let constants = match watch.is_on() {
                false => constants.clone(),
                // An observer receives all constants.
                true => (0..=u8::MAX).collect(),
            };
            Ok((key.clone(), read.clone(), *texel, constants, lowered.clone()))
        };
        let found = loaded();
        state.fragment_programs = programs;
        let (key, read, texel, constants, loaded) =
            found.map_err(|error| Fault::Trap(format!("fragment program: {error}")))?;
        let mut shader = Shader { chip, key, loaded, read, constants, texel, units, options };
        shader.take_constants(state);
        Ok(shader)
    }

    /// Reads the constants from the fragment unit again.
    fn take_constants(&mut self, state: &State) {
        let constants = self.constants.iter().map(|number| (*number, state.us_constant(*number)));
        self.loaded.set_constants(constants);
    }

    /// Prepares the shader for reuse: reads the constants again. Returns `false` if a texture has changed in memory or
    /// is not in the cache. The caller must then create a new shader.
    pub(super) fn renew(&mut self, state: &State, images: &mut Images, memory: Vram<'_>) -> bool {
        let textures = &self.loaded.environment().textures;
        let mut units = self.units.iter().zip(textures);
        let same = units.all(|(unit, (_, texture))| unit.has(&texture.image, images, memory));
        if same {
            self.take_constants(state);
        }
        same
    }

    /// Returns whether the program may read a channel of a temporary.
    pub(super) fn reads(&self, temp: u8, channel: usize) -> bool {
        self.read[usize::from(temp) * 4 + channel]
    }

    /// Returns the program in the form for observers.
    fn observed(&self) -> ChipProgram {
        chip_program(self.chip, &self.key.words, self.key.first, &self.key.registers)
    }

    /// Returns the texels that the program copies to target A. Returns `None` if the program does more than copy
    /// texels. `select` contains the channel of the output for each component of the stored colour. `input` returns the
    /// draw's input that a channel of a temporary contains.
    pub(super) fn copied(
        &self,
        select: [u8; 4],
        input: impl Fn(u8, u8) -> Option<(usize, usize)>,
    ) -> Option<CopiedTexels> {
        let read = self.texel?;
        let textures = &self.loaded.environment().textures;
        let (_, texture) = textures.iter().rev().find(|(unit, _)| *unit == read.unit)?;
        let unnormalised = read.unscaled || texture.sampler.unnormalised;
        let sampler = Sampler { unnormalised, ..texture.sampler };
        let level = Plan::new(&texture.image, &sampler).nearest_level()?;
        let [s, t] = read.axes.map(|(temp, channel)| input(temp, channel));
        let coordinates = copied::Coordinates { axes: [s?, t?], zeros: Vec::new() };
        let select = select.map(|channel| Select::Component(read.select[usize::from(channel & 3)]));
        copied::texels(&texture.image, level, select, coordinates, !unnormalised)
    }

    /// Returns a recording of the fragments of a draw. The recording has no lanes yet.
    pub(super) fn fragments(&self, captured: &mut Captured, draw: &Draw) -> Recording {
        let environment = self.loaded.environment().clone();
        let machine = Machine::R500(Box::new(Launch { environment, ..Launch::default() }));
        Recording::fragments(&self.observed(), machine, self.options, (captured, draw))
    }

    /// Runs the program on lanes with these temporaries. If there is a recording, adds the lanes to the recording.
    ///
    /// # Errors
    /// Returns a fault if the program traps or exceeds the maximum number of instructions.
    pub(super) fn run(
        &self,
        fragments: &Fragments,
        temps: Vec<Columns>,
        mut recording: Option<&mut Recording>,
    ) -> Result<Outputs, Fault> {
        if let Some(recording) = &mut recording {
            let values = |columns: &Columns| interleaved(&columns.components, fragments.lanes);
            let inputs: Vec<_> = temps.iter().map(|columns| (columns.temp.into(), values(columns))).collect();
            let inputs = inputs.iter().map(|(temp, values)| (*temp, 4, values.as_flattened()));
            recording.start(fragments.lanes, inputs, Some(fragments));
        }
        let environment = self.loaded.environment().clone();
        let launch = Launch { environment, lanes: fragments.lanes, inputs: Vec::new(), columns: temps };
        let outputs = self.loaded.run_for_outputs(launch).map_err(|error| match error {
            RunError::Trap(trap) => Fault::Trap(format!("fragment program: {trap}")),
            other => Fault::Trap(format!("fragment program: {other}")),
        })?;
        if let Some(recording) = recording {
            recording.end(named_outputs(&outputs).into_iter(), outputs.iter().map(|lane| lane.killed));
        }
        Ok(outputs)
    }
}

/// Returns the texel that a program outputs. Returns `None` if the program does more than output a texel.
fn texel_of(key: &DecodedFrom) -> Option<TexelRead> {
    let DecodedFrom { words, first, registers, .. } = key;
    let register = |address: u32| {
        let at = REGISTERS.iter().position(|(known, _)| *known == address)?;
        registers.get(at).copied()
    };
    texel_read(words, *first, register(reg::US_CODE_ADDR)?, register(reg::US_CODE_OFFSET)?)
}

fn chip_program(chip: Chip, words: &[u32], first: usize, registers: &[u32]) -> ChipProgram {
    ChipProgram {
        isa: Isa::R500,
        chip: chip.name,
        stage: Stage::Fragment,
        words: words.to_vec(),
        base: first as u32,
        state: named(registers),
    }
}

/// Returns the results of lanes, each with the name that the machine's launches use for the result.
fn named_outputs(left: &Outputs) -> Vec<(String, Rows)> {
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
