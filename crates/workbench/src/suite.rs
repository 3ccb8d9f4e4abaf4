//! The suite of programs for all three machines. `bench` runs these programs in addition to the kernels mandel and
//! collatz.
//!
//! A [`Problem`] is a computation. A problem has inputs, and a function in plain Rust that computes the expected
//! outputs. A [`Workload`] is a program of one machine that solves a problem. A workload has a source in `kernels/` and
//! a launch. [`WORKLOADS`] lists all workloads. `suite/problems.rs` has single computations, and `suite/patterns.rs`
//! has problems that are typical of parallel programs.

mod patterns;
mod problems;

use std::sync::Arc;

use reconverge_isa::Isa;
use reconverge_isa::source::suggest;

use crate::array::{Array, Dtype};
use crate::kernels::{KERNELS, KernelError, positions};
use crate::launch::{LaunchFile, choose_program};
use crate::open::{Known, Opened, open};
use crate::request::{Common, MachineLaunch, TextureValues};
use crate::session::{Outcome, Session};
use crate::values::{NoFiles, Values};
use crate::{r500, r700, tesla};

/// A computation with its inputs and expected outputs.
#[derive(Debug)]
pub struct Problem {
    /// Name of the problem.
    pub name: &'static str,
    /// Function that returns the inputs.
    inputs: fn() -> Inputs,
    /// Function that computes the expected output words in plain Rust.
    expected: fn(&Inputs) -> Vec<u32>,
    /// The rule by which outputs are compared with the expected words.
    pub rule: Rule,
}

impl Problem {
    /// Returns the inputs. The inputs are the same in every run.
    pub fn inputs(&self) -> Inputs {
        (self.inputs)()
    }

    /// Returns the expected output words.
    pub fn expected(&self) -> Vec<u32> {
        (self.expected)(&self.inputs())
    }
}

/// The inputs of a problem, with their names.
#[derive(Clone, Debug, Default)]
pub struct Inputs(pub Vec<(&'static str, Array)>);

impl Inputs {
    fn array(&self, name: &str) -> &Array {
        let found = self.0.iter().find(|(known, _)| *known == name);
        &found.unwrap_or_else(|| panic!("this problem has no input {name}")).1
    }

    fn words(&self, name: &str) -> Vec<u32> {
        self.array(name).words().collect()
    }

    fn floats(&self, name: &str) -> Vec<f32> {
        self.array(name).words().map(f32::from_bits).collect()
    }
}

/// The rule by which outputs are compared with the expected words.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// The words must be equal. Every operation of the problem is exact, or rounds in the same way on all machines.
    Exact,
    /// The words are binary32 numbers, and |found - expected| <= abs + rel * |expected|. This rule applies to programs
    /// that compute approximate reciprocals and roots, or truncate products.
    Within {
        /// Absolute tolerance.
        abs: f32,
        /// Relative tolerance.
        rel: f32,
    },
}

impl Rule {
    /// Returns whether a word is within the tolerance.
    pub fn fits(self, found: u32, expected: u32) -> bool {
        match self {
            Rule::Exact => found == expected,
            Rule::Within { abs, rel } => {
                let (found, expected) = (f32::from_bits(found), f32::from_bits(expected));
                (found - expected).abs() <= abs + rel * expected.abs()
            }
        }
    }
}

/// A program of one machine that solves a problem.
#[derive(Debug)]
pub struct Workload {
    /// The problem that the program solves.
    pub problem: &'static Problem,
    /// The machine.
    pub isa: Isa,
    /// Assembler source of the program.
    pub source: &'static str,
    /// Number of lanes of the launch.
    pub lanes: u32,
    /// Name of the output with the result. The result is in the first words of each row.
    output: &'static str,
    /// Function that creates the launch for a number of lanes.
    launch: fn(&Inputs, u32) -> Launch,
}

/// Textures, and the fields of a launch that belong to the machine.
type Launch = (Vec<TextureValues>, Arc<dyn MachineLaunch>);

impl Workload {
    /// Returns a session that is ready to run the workload.
    ///
    /// # Errors
    /// Returns an error if the source does not assemble or the launch is invalid. Both errors are defects of this
    /// crate.
    pub fn prepare(&self) -> Result<Session, KernelError> {
        let opened = self.open()?;
        let launch = self.launch();
        Ok(launch.prepare(&opened.image, choose_program(&opened.image, None)?, &NoFiles)?)
    }

    /// Returns the launch of the workload.
    pub fn launch(&self) -> LaunchFile {
        let (texture, machine) = (self.launch)(&self.problem.inputs(), self.lanes);
        // The inputs of a Tesla fragment program may all be planes. Planes do not determine the number of lanes.
        let lanes = (self.output == "color0" && self.isa == Isa::Tesla).then_some(self.lanes as usize);
        let common = Common { lanes, texture, ..Common::default() };
        LaunchFile { isa: self.isa, common, machine }
    }

    /// Returns the assembled program.
    ///
    /// # Errors
    /// Returns an error if the source does not assemble. A source that does not assemble is a defect of this crate.
    pub fn open(&self) -> Result<Opened, crate::open::OpenError> {
        open(self.source.as_bytes(), true, &Known { isa: Some(self.isa), ..Known::default() })
    }

    /// Returns the first `count` words of the result of a run.
    ///
    /// # Errors
    /// Returns [`KernelError::NoCounts`] if the output is missing, which is a defect of this crate.
    pub fn result(&self, outcome: &dyn Outcome, count: usize) -> Result<Vec<u32>, KernelError> {
        let outputs = outcome.outputs();
        let (_, array) = outputs.iter().find(|(name, _)| name == self.output).ok_or(KernelError::NoCounts)?;
        let rows = array.shape.first().copied().unwrap_or(1).max(1);
        let (row, wanted) = (array.len() / rows, count / rows);
        let words: Vec<u32> = array.words().collect();
        Ok(words.chunks(row.max(1)).flat_map(|row| &row[..wanted.min(row.len())]).copied().collect())
    }
}

/// Returns the workload with this name for a machine.
pub fn find(isa: Isa, name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.isa == isa && workload.problem.name == name)
}

/// Returns the message that a built-in kernel does not exist. The message suggests the kernel with the most similar
/// name, and lists the machine's kernels.
pub fn no_kernel(isa: Isa, name: &str) -> String {
    let small = KERNELS.iter().filter(|kernel| kernel.isa == isa).map(|kernel| kernel.name);
    let suite = WORKLOADS.iter().filter(|workload| workload.isa == isa);
    let names: Vec<&str> = small.chain(suite.map(|workload| workload.problem.name)).collect();
    format!("{isa} has no kernel `{name}`: {}", suggest(name, names))
}

const fn workload(
    isa: Isa,
    problem: &'static Problem,
    source: &'static str,
    lanes: u32,
    output: &'static str,
    launch: fn(&Inputs, u32) -> Launch,
) -> Workload {
    Workload { problem, isa, source, lanes, output, launch }
}

/// All workloads.
#[rustfmt::skip]
pub static WORKLOADS: &[Workload] = &[
    workload(Isa::Tesla, &problems::MATMUL,    include_str!("../kernels/matmul.tesla.s"),    1 << 16, "out",    |inputs, _| grid(&[16, 16], &[16, 16], with_output(inputs, 1 << 16))),
    workload(Isa::Tesla, &problems::NBODY,     include_str!("../kernels/nbody.tesla.s"),     1 << 11, "out",    |inputs, _| grid(&[16], &[128], with_output(inputs, 1 << 13))),
    workload(Isa::Tesla, &problems::SORT,      include_str!("../kernels/sort.tesla.s"),      1 << 17, "keys",   |inputs, lanes| grid(&[lanes / 256], &[256], inputs.clone())),
    workload(Isa::Tesla, &problems::HASH,      include_str!("../kernels/hash.tesla.s"),      1 << 18, "out",    |inputs, lanes| grid(&[lanes / 256], &[256], with_output(inputs, lanes))),
    workload(Isa::Tesla, &problems::SEARCH,    include_str!("../kernels/search.tesla.s"),    1 << 18, "out",    |inputs, lanes| grid(&[lanes / 256], &[256], with_output(inputs, lanes))),
    workload(Isa::Tesla, &problems::HISTOGRAM, include_str!("../kernels/histogram.tesla.s"), 1 << 17, "out",    |inputs, lanes| grid(&[lanes / 256], &[256], with_output(inputs, 256))),
    workload(Isa::Tesla, &problems::SCAN,      include_str!("../kernels/scan.tesla.s"),      1 << 19, "values", |inputs, lanes| grid(&[lanes / 256], &[256], inputs.clone())),
    workload(Isa::Tesla, &problems::NESTED,    include_str!("../kernels/nested.tesla.s"),    1 << 17, "out",    |inputs, lanes| grid(&[lanes / 256], &[256], with_output(inputs, lanes))),
    workload(Isa::Tesla, &problems::TABLE,     include_str!("../kernels/table.tesla.s"),     1 << 18, "out",    table_on_tesla),
    workload(Isa::Tesla, &problems::LIT,       include_str!("../kernels/lit.tesla.s"),       1 << 19, "color0", lit_on_tesla),
    workload(Isa::Tesla, &problems::OPTIONS,   include_str!("../kernels/options.tesla.s"),   1 << 18, "out",    |inputs, lanes| grid(&[lanes / 256], &[256], with_output(inputs, lanes))),
    workload(Isa::Tesla, &patterns::REDUCE,    include_str!("../kernels/reduce.tesla.s"),    1 << 19, "out",    |inputs, lanes| grid(&[lanes / 256], &[256], with_output(inputs, lanes / 256))),
    workload(Isa::Tesla, &patterns::SPMV,      include_str!("../kernels/spmv.tesla.s"),      1 << 17, "out",    |inputs, lanes| grid(&[lanes / 256], &[256], with_output(inputs, lanes))),
    workload(Isa::Tesla, &patterns::BFS,       include_str!("../kernels/bfs.tesla.s"),       1 << 18, "levels", |inputs, lanes| grid(&[lanes / 256], &[256], inputs.clone())),
    workload(Isa::Tesla, &patterns::STENCIL,   include_str!("../kernels/stencil.tesla.s"),   1 << 20, "out",    |inputs, lanes| grid(&[64, 64], &[16, 16], with_output(inputs, lanes))),
    workload(Isa::Tesla, &patterns::FIND,      include_str!("../kernels/find.tesla.s"),      1 << 15, "out",    find_on_tesla),
    workload(Isa::Tesla, &patterns::RADIX,     include_str!("../kernels/radix.tesla.s"),     1 << 17, "out",    |inputs, lanes| grid(&[lanes / 64], &[64], with_output(inputs, 8 * lanes))),
    workload(Isa::R700,  &problems::HASH4,     include_str!("../kernels/hash4.r700.s"),      1 << 18, "pixel0", |_, lanes| pixels(lanes, 1024, r700::Launch::default())),
    workload(Isa::R700,  &problems::NESTED,    include_str!("../kernels/nested.r700.s"),     1 << 17, "pixel0", |_, lanes| pixels(lanes, 1024, r700::Launch::default())),
    workload(Isa::R700,  &problems::SEARCH,    include_str!("../kernels/search.r700.s"),     1 << 18, "pixel0", search_on_r700),
    workload(Isa::R700,  &problems::TABLE16,   include_str!("../kernels/table.r700.s"),      1 << 17, "pixel0", table_on_r700),
    workload(Isa::R700,  &problems::CONVOLVE,  include_str!("../kernels/convolve.r700.s"),   1 << 18, "pixel0", picture_on_r700),
    workload(Isa::R700,  &problems::OPTIONS,   include_str!("../kernels/options.r700.s"),    1 << 18, "pixel0", options_on_r700),
    workload(Isa::R700,  &patterns::SPMV,      include_str!("../kernels/spmv.r700.s"),       1 << 17, "pixel0", fetched_on_r700),
    workload(Isa::R700,  &patterns::PULL,      include_str!("../kernels/pull.r700.s"),       1 << 18, "pixel0", fetched_on_r700),
    workload(Isa::R700,  &patterns::STENCIL4,  include_str!("../kernels/stencil4.r700.s"),   1 << 18, "pixel0", picture_on_r700),
    workload(Isa::R700,  &patterns::FIND,      include_str!("../kernels/find.r700.s"),       1 << 15, "pixel0", fetched_on_r700),
    workload(Isa::R700,  &problems::LIT,       include_str!("../kernels/lit.r700.s"),        1 << 19, "pixel0", lit_on_r700),
    workload(Isa::R500,  &problems::SCALE,     include_str!("../kernels/scale.r500.s"),      1 << 18, "color0", |inputs, lanes| picture_on_r500(lanes, texture(inputs, "texels", 128, "linear", "clamp_to_edge"))),
    workload(Isa::R500,  &problems::NEWTON,    include_str!("../kernels/newton.r500.s"),     1 << 20, "color0", |inputs, _| from_temps(inputs, &["a"])),
    workload(Isa::R500,  &problems::OPTIONS,   include_str!("../kernels/options.r500.s"),    1 << 18, "color0", |inputs, _| from_temps(inputs, &["options"])),
    workload(Isa::R500,  &patterns::STENCIL4,  include_str!("../kernels/stencil4.r500.s"),   1 << 18, "color0", |inputs, lanes| picture_on_r500(lanes, neighbours(inputs))),
    workload(Isa::R500,  &problems::LIT,       include_str!("../kernels/lit.r500.s"),        1 << 19, "color0", lit_on_r500),
];

// ---- Launches

/// Returns the inputs and an additional last input. The additional input has the name `out` and consists of `words`
/// zeros.
fn with_output(inputs: &Inputs, words: u32) -> Inputs {
    let mut all = inputs.clone();
    let words = words as usize;
    all.0.push(("out", Array { dtype: Dtype::U32, shape: vec![words], bytes: vec![0; 4 * words] }));
    all
}

/// Returns a launch of Tesla blocks. The addresses of `buffers` are the parameters.
fn grid(blocks: &[u32], threads: &[u32], buffers: Inputs) -> Launch {
    (Vec::new(), Arc::new(blocks_of(blocks, threads, buffers)))
}

fn blocks_of(blocks: &[u32], threads: &[u32], buffers: Inputs) -> tesla::Launch {
    let param = |(name, array): (&'static str, Array)| tesla::launch::ParamValue {
        name: name.to_owned(),
        buffer: Some(array.into()),
        ..Default::default()
    };
    tesla::Launch {
        grid: blocks.to_vec(),
        block: threads.to_vec(),
        param: buffers.0.into_iter().map(param).collect(),
        ..tesla::Launch::default()
    }
}

/// Returns an input of the problem as the contents of the constant bank c1.
fn in_c1(inputs: &Inputs, name: &str) -> Vec<tesla::launch::ConstantValues> {
    let values = inputs.array(name).clone().into();
    vec![tesla::launch::ConstantValues { bank: 1, offset: 0, values }]
}

fn table_on_tesla(inputs: &Inputs, lanes: u32) -> Launch {
    let blocks = blocks_of(&[lanes / 256], &[256], with_output(&Inputs::default(), lanes));
    (Vec::new(), Arc::new(tesla::Launch { constant: in_c1(inputs, "table"), ..blocks }))
}

fn find_on_tesla(inputs: &Inputs, lanes: u32) -> Launch {
    let lines = Inputs(vec![("lines", inputs.array("lines").clone())]);
    let blocks = blocks_of(&[lanes / 256], &[256], with_output(&lines, lanes));
    (Vec::new(), Arc::new(tesla::Launch { constant: in_c1(inputs, "word"), ..blocks }))
}

/// Returns a texture. Its texels are an input of the problem, with four numbers per texel.
fn texture(inputs: &Inputs, name: &str, size: u32, filter: &str, wrap: &str) -> Vec<TextureValues> {
    vec![TextureValues {
        filter: Some(filter.to_owned()),
        wrap: Some(wrap.to_owned()),
        ..TextureValues::new(0, vec![size, size], inputs.array(name).clone().into())
    }]
}

/// Returns the texture of 512 x 512 texels. The programs that use this texture read the texels around each pixel.
fn neighbours(inputs: &Inputs) -> Vec<TextureValues> {
    texture(inputs, "texels", 512, "nearest", "clamp_to_edge")
}

/// The inputs of the fragments are planes. On a GPU, triangle setup computes such planes.
fn lit_on_tesla(inputs: &Inputs, _: u32) -> Launch {
    let plane = |(word, plane): (u16, [f32; 3])| tesla::launch::InputValues {
        word,
        plane: Some(plane),
        ..Default::default()
    };
    let machine = tesla::Launch {
        input: (1..).zip(problems::PLANES).map(plane).collect(),
        constant: in_c1(inputs, "light"),
        ..tesla::Launch::default()
    };
    (texture(inputs, "texels", 64, "linear", "repeat"), Arc::new(machine))
}

/// Returns a launch of R700 pixels. R0 holds the pixel positions, and the result consists of unsigned integers.
fn pixels(lanes: u32, row: u32, own: r700::Launch) -> Launch {
    let machine = r700::Launch {
        input: vec![r700::launch::InputValues { gpr: 0, values: positions(lanes, row) }],
        clause_temps: Some(0),
        output_type: Some("u32".to_owned()),
        ..own
    };
    (Vec::new(), Arc::new(machine))
}

fn in_register(gpr: u8, array: &Array) -> r700::launch::InputValues {
    r700::launch::InputValues { gpr, values: array.clone().into() }
}

fn search_on_r700(inputs: &Inputs, _: u32) -> Launch {
    let tree = inputs.array("tree").clone().into();
    let machine = r700::Launch {
        input: vec![in_register(0, inputs.array("keys"))],
        buffer: vec![r700::launch::BufferValues::new(160, tree, 4)],
        clause_temps: Some(0),
        output_type: Some("u32".to_owned()),
        ..r700::Launch::default()
    };
    (Vec::new(), Arc::new(machine))
}

/// A constant of R700 has four components. The launch stores each word of the table in the first component of one
/// constant.
fn table_on_r700(inputs: &Inputs, lanes: u32) -> Launch {
    let words: Vec<u32> = inputs.words("table").into_iter().flat_map(|word| [word, 0, 0, 0]).collect();
    let values = Array::from_words(Dtype::U32, vec![words.len()], words).into();
    let constant = vec![r700::launch::ConstantValues { number: 0, offset: 0, values }];
    pixels(lanes, 1024, r700::Launch { constant, ..r700::Launch::default() })
}

fn options_on_r700(inputs: &Inputs, _: u32) -> Launch {
    let input = vec![in_register(0, inputs.array("options"))];
    (Vec::new(), Arc::new(r700::Launch { input, clause_temps: Some(0), ..r700::Launch::default() }))
}

fn picture_on_r700(inputs: &Inputs, lanes: u32) -> Launch {
    let (_, machine) = pixels(lanes, 512, r700::Launch::default());
    (neighbours(inputs), machine)
}

/// The inputs are vertex resources. The resources have the order of the list of inputs, and the first input is resource
/// 160.
fn fetched_on_r700(inputs: &Inputs, lanes: u32) -> Launch {
    let resource = |(number, (_, array)): (u8, &(&str, Array))| {
        r700::launch::BufferValues::new(number, array.clone().into(), array.dtype.bytes() as u32)
    };
    let buffer = (160..).zip(&inputs.0).map(resource).collect();
    pixels(lanes, 1024, r700::Launch { buffer, ..r700::Launch::default() })
}

fn lit_on_r700(inputs: &Inputs, _: u32) -> Launch {
    let light = inputs.array("light").clone().into();
    let machine = r700::Launch {
        input: vec![in_register(0, inputs.array("coordinates")), in_register(1, inputs.array("normals"))],
        constant: vec![r700::launch::ConstantValues { number: 0, offset: 0, values: light }],
        clause_temps: Some(0),
        ..r700::Launch::default()
    };
    (texture(inputs, "texels", 64, "linear", "repeat"), Arc::new(machine))
}

/// Returns a launch of R500 pixels. The named inputs are in consecutive temporaries from `temp[0]` on.
fn from_temps(inputs: &Inputs, names: &[&str]) -> Launch {
    let input = |(temp, name): (u8, &&str)| r500::launch::InputValues {
        temp,
        values: Values::from(inputs.array(name).clone()),
    };
    let machine = r500::Launch { input: (0..).zip(names).map(input).collect(), ..r500::Launch::default() };
    (Vec::new(), Arc::new(machine))
}

/// Returns a launch of R500 pixels in rows of 512. `temp[0]` holds the pixel positions.
fn picture_on_r500(lanes: u32, texture: Vec<TextureValues>) -> Launch {
    let input = vec![r500::launch::InputValues { temp: 0, values: positions(lanes, 512) }];
    (texture, Arc::new(r500::Launch { input, ..r500::Launch::default() }))
}

/// The light is not an input, because the program contains its direction.
fn lit_on_r500(inputs: &Inputs, _: u32) -> Launch {
    let (_, machine) = from_temps(inputs, &["coordinates", "normals"]);
    (texture(inputs, "texels", 64, "linear", "repeat"), machine)
}
