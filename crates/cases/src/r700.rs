//! R700 shader cases.

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_isa::{Isa, Program};
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::outcome::Outcome;
use reconverge_r700::run::{RunError, run};
use reconverge_r700::texture::{Texture, TextureSampler};
use reconverge_simt::{Mode, Options};
use reconverge_workbench::{Target, round_trip};
use serde::Deserialize;

use crate::corpus::{Run, ShaderCase};
use crate::hex::{Word, Words};
use crate::modes::{Trouble, in_modes};
use crate::{Settings, Verdict};

/// A fragment program that Mesa compiled.
pub type R700Case = ShaderCase<Code, Place, Constants>;

/// Code and registers.
#[derive(Clone, Debug, Deserialize)]
pub struct Code {
    code: Vec<Words>,
    regs: BTreeMap<String, Word>,
    #[serde(default)]
    loop_const: BTreeMap<usize, Word>,
    /// SQ_BOOL_CONST.
    #[serde(default)]
    bool_const: Word,
}

/// A general-purpose register.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    gpr: u8,
}

/// Constant buffers: runs of a first word and words.
#[derive(Clone, Debug, Deserialize)]
pub struct Constants {
    #[serde(default)]
    kcache: BTreeMap<u8, Vec<(usize, Words)>>,
}

/// Words of a constant buffer: 4096 vectors of four.
const BUFFER_WORDS: usize = 4096 * 4;
/// Resource number of texture unit 0 in a pixel shader. (Corpus description)
const FIRST_TEXTURE: u8 = 18;

impl R700Case {
    /// Round-trips the program and runs it, in both modes unless one is chosen.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        let program = self.program();
        let target = Target::new(Isa::R700, self.chip.as_deref());
        if let Err(why) = round_trip(&target, &program) {
            return Verdict::Failed(why);
        }
        in_modes(settings, &self.runs, |case_run, mode| {
            let outcome =
                run(&program, &self.launch(case_run)?, &options(mode, settings)).map_err(trouble)?;
            self.compare(case_run, &outcome).map_err(Trouble::Wrong)?;
            found(&outcome)
        })
    }

    pub(crate) fn program(&self) -> Program {
        Program::from_words(self.program.code.iter().flat_map(|pair| pair.0.iter().copied()).collect())
    }

    pub(crate) fn compare(&self, case_run: &Run<Constants>, outcome: &Outcome) -> Result<(), String> {
        let colour = outcome.export(ExportKind::Pixel, 0);
        let lanes: Vec<Option<[u32; 4]>> = (0..self.lanes)
            .map(|lane| (!outcome.killed[lane]).then(|| colour.map_or([0; 4], |colour| colour.values[lane])))
            .collect();
        if colour.is_none() && lanes.iter().any(Option::is_some) {
            return Err("nothing was exported to pixel target 0".to_owned());
        }
        case_run.expectation.compare(self.out, &lanes)
    }

    pub(crate) fn launch(&self, case_run: &Run<Constants>) -> Result<Launch, Trouble> {
        crate::modes::lanes_fit(self.lanes)?;
        let mut launch = Launch::new(chip(self.chip.as_deref())?, Stage::Pixel, self.lanes);
        if let Some(resources) = self.program.regs.get("SQ_PGM_RESOURCES_PS") {
            launch.set_pgm_resources(resources.0);
        }
        for input in &self.inputs {
            let values = input.lanes.iter().map(|quad| quad.0).collect();
            launch.inputs.push(Input { gpr: input.place.gpr, values });
        }
        let resources = &mut launch.resources;
        resources.booleans = self.program.bool_const.0;
        for (number, value) in &self.program.loop_const {
            let constant = resources.loop_constants.get_mut(*number);
            *constant.ok_or_else(|| Trouble::Wrong(format!("loop constant {number}")))? =
                LoopConstant(value.0);
        }
        for (number, runs) in &case_run.constants.kcache {
            let buffer = resources.constant_buffers.get_mut(usize::from(*number));
            let buffer = buffer.ok_or_else(|| Trouble::Wrong(format!("constant buffer {number}")))?;
            for (first, Words(words)) in runs {
                let end = first + words.len();
                if end > BUFFER_WORDS {
                    return Err(Trouble::Wrong(format!("word {end} of constant buffer {number}")));
                }
                buffer.resize(buffer.len().max(end), 0);
                buffer[*first..end].copy_from_slice(words);
            }
        }
        // Every constant buffer can be fetched from as well; words that are not listed are zero.
        for (number, buffer) in (0u8..).zip(&resources.constant_buffers) {
            let mut all = buffer.clone();
            all.resize(BUFFER_WORDS, 0);
            resources.vertex_buffers.insert(number, VertexBuffer::constants(&all));
        }
        for texture in &self.textures {
            let (image, sampler) = texture.image().map_err(|error| Trouble::Wrong(error.to_string()))?;
            let unit = u8::try_from(texture.unit).ok().filter(|unit| *unit < 18);
            let unit = unit.ok_or_else(|| Trouble::Wrong(format!("texture unit {}", texture.unit)))?;
            resources.textures.insert(FIRST_TEXTURE + unit, Texture::floats(image));
            resources.samplers.insert(unit, TextureSampler { sampler, ..TextureSampler::default() });
        }
        Ok(launch)
    }
}

fn options(mode: Mode, settings: &Settings) -> Options {
    Options { mode, engine: settings.how.engine(), level: settings.how.level, ..Options::default() }
}

fn trouble(error: RunError) -> Trouble {
    match error {
        RunError::Trap(trap) => Trouble::Trap(trap.to_string()),
        RunError::Launch(_) | RunError::Differ(_) => Trouble::Wrong(error.to_string()),
    }
}

fn found(outcome: &Outcome) -> Result<(), Trouble> {
    outcome.finding.map_or(Ok(()), |finding| Err(Trouble::Finding(finding.to_string())))
}

fn chip(name: Option<&str>) -> Result<Chip, Trouble> {
    let name = name.unwrap_or("rv770");
    Chip::named(name).ok_or_else(|| Trouble::Wrong(format!("unknown chip {name}")))
}

/// A program that LLVM compiled, with what its source computes.
#[derive(Clone, Debug, Deserialize)]
pub struct LlvmCase {
    /// Its name.
    pub id: String,
    chip: String,
    stage: String,
    words: Words,
    num_gprs: u8,
    stack_size: u32,
    pub(crate) lanes: usize,
    pub(crate) gprs: BTreeMap<String, Words>,
    r#const: BTreeMap<u8, Words>,
    pub(crate) expect: LlvmExpectation,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LlvmExpectation {
    pub(crate) exports: Vec<LlvmExport>,
    #[serde(default)]
    pub(crate) killed: Vec<usize>,
    #[serde(default)]
    ulp: u32,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LlvmExport {
    r#type: String,
    base: u16,
    pub(crate) x: Words,
    pub(crate) y: Words,
    pub(crate) z: Words,
    pub(crate) w: Words,
}

impl LlvmCase {
    /// Round-trips the program and runs it, in both modes unless one is chosen.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        let program = self.program();
        let target = Target::new(Isa::R700, Some(&self.chip));
        if let Err(why) = round_trip(&target, &program) {
            return Verdict::Failed(why);
        }
        in_modes(settings, &[()], |(), mode| {
            let outcome = run(&program, &self.launch()?, &options(mode, settings)).map_err(trouble)?;
            self.compare(&outcome).map_err(Trouble::Wrong)?;
            found(&outcome)
        })
    }

    pub(crate) fn program(&self) -> Program {
        Program::from_words(self.words.0.clone())
    }

    pub(crate) fn launch(&self) -> Result<Launch, Trouble> {
        crate::modes::lanes_fit(self.lanes)?;
        let stage = match self.stage.as_str() {
            "ps" => Stage::Pixel,
            "vs" => Stage::Vertex,
            other => return Err(Trouble::Wrong(format!("unknown stage {other}"))),
        };
        let mut launch = Launch::new(chip(Some(&self.chip))?, stage, self.lanes);
        launch.num_gprs = self.num_gprs;
        launch.stack_size = Some(self.stack_size);
        for (name, Words(words)) in &self.gprs {
            let unknown = || Trouble::Wrong(format!("unknown register {name}"));
            let (gpr, letter) =
                name.strip_prefix('T').and_then(|rest| rest.split_once('.')).ok_or_else(unknown)?;
            let gpr: u8 = gpr.parse().map_err(|_| unknown())?;
            let channel = "xyzw".find(letter).filter(|_| letter.len() == 1).ok_or_else(unknown)?;
            let place = launch.inputs.iter().position(|input| input.gpr == gpr).unwrap_or_else(|| {
                launch.inputs.push(Input { gpr, values: vec![[0; 4]; self.lanes].into() });
                launch.inputs.len() - 1
            });
            let values = Arc::make_mut(&mut launch.inputs[place].values);
            values.iter_mut().zip(words).for_each(|(lane, word)| lane[channel] = *word);
        }
        for (number, Words(words)) in &self.r#const {
            let buffer = launch.resources.constant_buffers.get_mut(usize::from(*number));
            *buffer.ok_or_else(|| Trouble::Wrong(format!("constant buffer {number}")))? = words.clone();
            launch.resources.vertex_buffers.insert(*number, VertexBuffer::constants(words));
        }
        Ok(launch)
    }

    pub(crate) fn compare(&self, outcome: &Outcome) -> Result<(), String> {
        for lane in 0..self.lanes {
            if outcome.killed[lane] != self.expect.killed.contains(&lane) {
                return Err(format!("lane {lane}: killed is {}", outcome.killed[lane]));
            }
        }
        for export in &self.expect.exports {
            let kind = match export.r#type.as_str() {
                "pixel" => ExportKind::Pixel,
                "pos" => ExportKind::Pos,
                "param" => ExportKind::Param,
                other => return Err(format!("unknown export type {other}")),
            };
            let found = outcome.export(kind, export.base);
            for (channel, Words(wanted)) in
                [&export.x, &export.y, &export.z, &export.w].into_iter().enumerate()
            {
                for (lane, wanted) in wanted.iter().enumerate().take(self.lanes) {
                    let written = found.map_or(0, |found| found.written[lane]);
                    if self.expect.killed.contains(&lane) {
                        if written != 0 {
                            return Err(format!("lane {lane} was killed and exported"));
                        }
                        continue;
                    }
                    let value = found.map_or(0, |found| found.values[lane][channel]);
                    if written >> channel & 1 == 0 || !near(value, *wanted, self.expect.ulp) {
                        let place = format!("{} {} lane {lane}", export.r#type, export.base);
                        return Err(format!("{place} channel {channel}: {value:08x}, expected {wanted:08x}"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether two words are the same, or floats at most `ulp` apart.
fn near(found: u32, wanted: u32, ulp: u32) -> bool {
    let ordered = |bits: u32| if bits >> 31 != 0 { -i64::from(bits & 0x7fff_ffff) } else { i64::from(bits) };
    found == wanted || (ulp > 0 && (ordered(found) - ordered(wanted)).abs() <= i64::from(ulp))
}
