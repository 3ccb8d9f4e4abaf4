//! R700 shader cases.

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_isa::program::Stage;
use reconverge_isa::{Image, Isa, Program};
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::r700::Launch;
use reconverge_workbench::r700::launch::{BufferValues, ConstantValues, InputValues};
use reconverge_workbench::request::TextureValues;
use reconverge_workbench::request::{Common, MachineLaunch};
use reconverge_workbench::result::Differences;
use reconverge_workbench::values::NoFiles;
use reconverge_workbench::{Outcome, Session, Target, round_trip};
use serde::Deserialize;

use crate::corpus::{Run, Shader, ShaderCase, TextureCase, quads, words};
use crate::hex::{Word, Words};
use crate::modes::{Trouble, ended, in_modes, lanes_fit};
use crate::opened::OpenedCase;
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
    /// Value of the register SQ_BOOL_CONST.
    #[serde(default)]
    bool_const: Word,
}

/// Number of the general-purpose register that holds an input.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    gpr: u8,
}

/// Contents of the constant buffers. Each entry of a list has an index, and the words that start at this index.
#[derive(Clone, Debug, Deserialize)]
pub struct Constants {
    #[serde(default)]
    kcache: BTreeMap<u8, Vec<(usize, Words)>>,
}

/// Resource number of texture unit 0 in a pixel shader. (Corpus description)
const FIRST_TEXTURE: u8 = 18;

impl Shader for R700Case {
    type Constants = Constants;
    const ISA: Isa = Isa::R700;
    const OUTPUT: &'static str = "pixel0";
    const UNWRITTEN: Option<[u32; 4]> = None;

    fn chip(&self) -> Option<&str> {
        self.chip.as_deref()
    }

    fn program(&self) -> Result<Program, String> {
        let Code { code, regs, loop_const, bool_const } = &self.program;
        let mut program = Program::from_words(code.iter().flat_map(|pair| pair.0.iter().copied()).collect());
        let register = |name: &str| regs.get(name).map(|word| (name.to_owned(), word.0));
        program.state.extend(register("SQ_PGM_RESOURCES_PS"));
        program.state.push(("SQ_BOOL_CONST".to_owned(), bool_const.0));
        for (number, word) in loop_const {
            if *number >= 32 {
                return Err(format!("loop constant {number}"));
            }
            program.state.push((format!("SQ_LOOP_CONST_{number}"), word.0));
        }
        Ok(program)
    }

    fn launch(&self, run: &Run<Constants>) -> Result<Arc<dyn MachineLaunch>, String> {
        let input = self.inputs.iter();
        let input = input.map(|input| InputValues {
            gpr: input.place.gpr,
            values: quads(input.lanes.iter().map(|quad| quad.0)),
        });
        let mut constant = Vec::new();
        for (number, runs) in &run.constants.kcache {
            for (offset, Words(list)) in runs {
                constant.push(ConstantValues {
                    number: *number,
                    offset: *offset,
                    values: words(list.iter().copied()),
                });
            }
        }
        // Programs can also fetch from a constant buffer. If the case does not state the contents of a buffer, the
        // buffer has only zeros.
        let unlisted = (0..16).filter(|number| !run.constants.kcache.contains_key(number));
        let buffer = unlisted.map(|number| BufferValues::new(number, words([].into_iter()), 16));
        Ok(Arc::new(Launch {
            output_type: Some("u32".to_owned()),
            input: input.collect(),
            constant,
            buffer: buffer.collect(),
            ..Launch::default()
        }))
    }

    /// Texture unit N is resource 18 + N in a pixel shader. (Corpus description)
    fn texture(&self, texture: &TextureCase) -> Result<TextureValues, String> {
        let unit = u8::try_from(texture.unit).ok().filter(|unit| *unit < FIRST_TEXTURE);
        let unit = unit.ok_or_else(|| format!("texture unit {}", texture.unit))?;
        Ok(TextureValues { unit: FIRST_TEXTURE + unit, sampler: Some(unit), ..texture.values()? })
    }
}

/// A program that LLVM compiled. The expected values were computed from the source of the program.
#[derive(Clone, Debug, Deserialize)]
pub struct LlvmCase {
    /// Name of the program.
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
    /// Converts the program to text and back, and runs the converted program. If the settings do not state a mode, the
    /// program runs in both modes.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        let (session, target) = match self.prepare(&self.image()).and_then(|it| Ok((it, self.target()?))) {
            Ok(ready) => ready,
            Err(why) => return Verdict::Failed(why),
        };
        in_modes(settings, &[()], |(), options| {
            let ran = session.copy().run(options);
            let outcome = ran.map_err(|error| Trouble::of(error, &target, &self.program()))?;
            self.compare(&*outcome).map_err(Trouble::Wrong)?;
            settings.count(&outcome.shares());
            ended(&*outcome)
        })
    }

    fn target(&self) -> Result<Target, String> {
        Target::new(Isa::R700, Some(&self.chip)).map_err(|error| error.to_string())
    }

    pub(crate) fn prepare(&self, image: &Image) -> Result<Session, String> {
        round_trip(&self.target()?, &image.programs[0])?;
        let launch = self.launch()?;
        launch.prepare(image, &image.programs[0], &NoFiles).map_err(|error| error.to_string())
    }

    /// Returns the program and its launch.
    ///
    /// # Errors
    /// Fails if the launch is invalid.
    pub(crate) fn open(&self) -> Result<OpenedCase, String> {
        Ok(OpenedCase::of(self.target()?, self.program(), vec![self.launch()?]))
    }

    pub(crate) fn image(&self) -> Image {
        Image { programs: vec![self.program()], ..Image::default() }
    }

    fn program(&self) -> Program {
        let mut program = Program::from_words(self.words.0.clone());
        program.resources.stack = Some(self.stack_size);
        program
    }

    pub(crate) fn launch(&self) -> Result<LaunchFile, String> {
        let stage = match self.stage.as_str() {
            "ps" => Stage::Pixel,
            "vs" => Stage::Vertex,
            other => return Err(format!("unknown stage {other}")),
        };
        let mut registers: BTreeMap<u8, Vec<[u32; 4]>> = BTreeMap::new();
        lanes_fit(self.lanes)?;
        for (name, Words(list)) in &self.gprs {
            let unknown = || format!("unknown register {name}");
            let (gpr, letter) =
                name.strip_prefix('T').and_then(|rest| rest.split_once('.')).ok_or_else(unknown)?;
            let gpr: u8 = gpr.parse().map_err(|_| unknown())?;
            let channel = "xyzw".find(letter).filter(|_| letter.len() == 1).ok_or_else(unknown)?;
            let values = registers.entry(gpr).or_insert_with(|| vec![[0; 4]; self.lanes]);
            values.iter_mut().zip(list).for_each(|(lane, word)| lane[channel] = *word);
        }
        let input = registers.into_iter();
        let input = input.map(|(gpr, lanes)| InputValues { gpr, values: quads(lanes.into_iter()) });
        let constant = self.r#const.iter();
        let constant = constant.map(|(number, Words(list))| ConstantValues {
            number: *number,
            offset: 0,
            values: words(list.iter().copied()),
        });
        let own = Launch {
            gprs: Some(self.num_gprs),
            output_type: Some("u32".to_owned()),
            input: input.collect(),
            constant: constant.collect(),
            ..Launch::default()
        };
        let common = Common {
            chip: Some(self.chip.clone()),
            stage: Some(stage.name().to_owned()),
            lanes: Some(self.lanes),
            ..Common::default()
        };
        Ok(LaunchFile { isa: Isa::R700, common, machine: Arc::new(own) })
    }

    pub(crate) fn compare(&self, outcome: &dyn Outcome) -> Result<(), String> {
        let outputs = outcome.outputs();
        let output = |name: &str| outputs.iter().find(|(known, _)| known == name).map(|(_, array)| array);
        let killed = output("killed").map(|array| &array.bytes[..]);
        let (mut differences, mut compared) = (Differences::default(), self.lanes);
        for lane in 0..self.lanes {
            let killed = killed.is_some_and(|killed| killed[lane] != 0);
            if killed != self.expect.killed.contains(&lane) {
                differences.add(|| format!("lane {lane}: killed is {killed}"));
            }
        }
        for export in &self.expect.exports {
            if !["pixel", "pos", "param"].contains(&export.r#type.as_str()) {
                return Err(format!("unknown export type {}", export.r#type));
            }
            let name = format!("{}{}", export.r#type, export.base);
            let found: Vec<u32> = output(&name).map(|array| array.words().collect()).unwrap_or_default();
            let columns = [("x", &export.x), ("y", &export.y), ("z", &export.z), ("w", &export.w)];
            for (channel, (letter, Words(wanted))) in columns.into_iter().enumerate() {
                for (lane, wanted) in wanted.iter().enumerate().take(self.lanes) {
                    compared += 1;
                    let written = outcome.written(&name).map_or(0, |written| written[lane]);
                    if self.expect.killed.contains(&lane) {
                        if written != 0 {
                            differences.add(|| format!("lane {lane} was killed and exported"));
                        }
                        continue;
                    }
                    let value = found.get(4 * lane + channel).copied().unwrap_or(0);
                    if written >> channel & 1 == 0 || !near(value, *wanted, self.expect.ulp) {
                        let place = format!("{name} lane {lane} .{letter}");
                        differences.add(|| format!("{place}: expected {wanted:08x}, found {value:08x}"));
                    }
                }
            }
        }
        differences.sentence(compared, "number").map_or(Ok(()), Err)
    }
}

/// Returns `true` for equal words, and for floats that differ by at most `ulp` units in the last place.
fn near(found: u32, wanted: u32, ulp: u32) -> bool {
    let ordered = |bits: u32| if bits >> 31 != 0 { -i64::from(bits & 0x7fff_ffff) } else { i64::from(bits) };
    found == wanted || (ulp > 0 && (ordered(found) - ordered(wanted)).abs() <= i64::from(ulp))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Program {
        let case =
            r#"{"name": "a", "arch": "r700", "lanes": 1, "runs": [], "program": "#.to_owned() + text + "}";
        serde_json::from_str::<R700Case>(&case).expect("a case").program().expect("a program")
    }

    #[test]
    fn the_boolean_constants_of_a_case_reach_the_program_and_are_false_where_it_states_none() {
        let stated = r#"{"code": ["0020000000000000"], "regs": {}, "bool_const": "3b391de9"}"#;
        assert_eq!(program(stated).state("SQ_BOOL_CONST"), Some(0x3b39_1de9));
        let unstated = r#"{"code": ["0020000000000000"], "regs": {}}"#;
        assert_eq!(program(unstated).state("SQ_BOOL_CONST"), Some(0));
    }
}
