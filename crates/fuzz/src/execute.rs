//! Targets that execute arbitrary words and random programs on every engine, in strict and in lenient mode.
//!
//! An input consists of a head, a seed of two words for the launch, and the program's words. The first byte of the head
//! is the mode, and the second byte is the level of vector instructions. The third byte selects the launch, and the
//! fourth byte selects the chip.

use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::sync::Arc;

use reconverge_isa::{Isa, Program};
use reconverge_r500::{self as r500, pvs};
use reconverge_r700 as r700;
use reconverge_r700::chip::CHIPS;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::random::Random;
use reconverge_simt::texture::{Image, Sampler};
use reconverge_simt::{Engine, Level, Mode, Options, RunError};
use reconverge_tesla as tesla;
use reconverge_tesla::decode::decode;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::launch::{Fragment, Geometry, Launch, Setup, Varying, Vertex};
use reconverge_tesla::spaces::Segment;
use reconverge_tesla::table::TABLE;
use reconverge_testkit::{r500 as r500_programs, r700 as r700_programs, tesla as tesla_programs, vertex};

use crate::input::{HEAD, chosen, head, input, words_from};
use crate::{Target, no_seeds};

/// The targets: arbitrary words, and generated programs.
pub const TARGETS: &[Target] = &[
    target("execute-r500", Isa::R500, WORDS, words_r500, fragment),
    target("execute-r500-vertex", Isa::R500, WORDS, words_vertex, vertices),
    target("execute-r700", Isa::R700, WORDS, words_r700, wavefronts),
    target("execute-tesla", Isa::Tesla, WORDS, words_tesla, warps),
    target("engines-r500", Isa::R500, PROGRAMS, programs_r500, fragment),
    target("engines-r500-vertex", Isa::R500, PROGRAMS, programs_vertex, vertices),
    target("engines-r700", Isa::R700, PROGRAMS, programs_r700, wavefronts),
    target("engines-tesla", Isa::Tesla, PROGRAMS, programs_tesla, warps),
    target("calls-r700", Isa::R700, CALLS, calls_r700, wavefronts),
    target("reach-r500", Isa::R500, REACHES, relative_r500, fragment),
    target("reach-r700", Isa::R700, REACHES, indexed_r700, wavefronts),
    target("reach-tesla", Isa::Tesla, REACHES, shared_tesla, warps),
    target("blocks-tesla", Isa::Tesla, BARRIERS, barriers_tesla, blocks),
];

const WORDS: &str =
    "arbitrary words end or trap with the same result on the reference, the fast and the compiled engine";
const PROGRAMS: &str =
    "random programs have the same result on the reference, the fast and the compiled engine";
const CALLS: &str = "vertex programs that call a fetch program have the same result on every engine";
const REACHES: &str = "programs with extreme addresses near side exits access only their own memory, and have the \
                       same result on every engine";
const BARRIERS: &str = "programs whose warps meet at barriers have the same result on every engine, whether blocks run \
                        in order or ahead on threads";

const fn target(
    name: &'static str,
    isa: Isa,
    about: &'static str,
    make: fn(&mut Random) -> Vec<u8>,
    check: fn(&[u8]) -> Result<u64, String>,
) -> Target {
    Target { name, isa: Some(isa), about, counts: "programs", make, seeds: no_seeds, check }
}

/// The engines that are compared with the reference interpreter. In lockstep, the compiled engine compiles all code
/// that this engine can compile. In lockstep, the state of the compiled engine is compared with the state of the
/// reference interpreter during the run. Without lockstep, the compiled engine compiles only code that benefits from
/// compilation.
pub const ENGINES: [Engine; 3] = [Engine::Fast, Engine::Compiled, Engine::LockstepCompiled];

/// Returns the options for the mode and the level in an input's head. Programs run on one thread of the host.
pub fn options(mode: u8, level: u8, watchdog: u64) -> Options {
    let mode = if mode & 1 == 0 { Mode::Strict } else { Mode::Lenient };
    let level = Some(chosen(level, &Level::available()));
    let jobs = NonZeroUsize::new(1);
    Options { mode, level, watchdog, jobs, engine: Engine::Reference, ..Options::default() }
}

/// Returns a random byte for [`on_threads`].
pub fn threads(random: &mut Random) -> u8 {
    if random.once_in(4) { random.below(8) as u8 } else { 0 }
}

/// Returns the options for a launch on several threads of the host. The two low bits of a head's byte contain the
/// number of threads minus 1. If the next bit is set, blocks always run ahead.
pub fn on_threads(options: Options, byte: u8) -> Options {
    let jobs = NonZeroUsize::new(usize::from(byte & 3) + 1);
    Options { jobs, always_ahead: byte & 4 != 0, ..options }
}

/// Calls `run` for every engine and returns the result of the reference interpreter.
///
/// # Errors
/// If an engine has a different result, returns a description of the difference.
pub fn same_on_every_engine<T: PartialEq + Debug>(
    options: &Options,
    run: impl Fn(&Options) -> T,
) -> Result<T, String> {
    let expected = run(options);
    for engine in ENGINES {
        let found = run(&Options { engine, ..*options });
        if found != expected {
            return Err(difference(engine, options, &found, &expected));
        }
    }
    Ok(expected)
}

/// Describes the difference between two results. The description contains the texts of both results, from the first
/// difference on.
fn difference<T: Debug>(engine: Engine, options: &Options, found: &T, expected: &T) -> String {
    let [found, expected] = [found, expected].map(|result| format!("{result:x?}"));
    let same = found.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| -> String {
        let bytes = &text.as_bytes()[same.saturating_sub(100)..text.len().min(same + 400)];
        String::from_utf8_lossy(bytes).into_owned()
    };
    let level = options.level.map_or("", Level::name);
    format!("{engine}, {}, {level}: … {} …\nreference: … {} …", options.mode, part(&found), part(&expected))
}

/// Runs a program on every engine and compares the results. Returns 1 if the engines executed the program. Returns 0 if
/// the engines rejected the program.
fn runs<T: PartialEq + Debug, L: PartialEq + Debug, C: PartialEq + Debug>(
    options: &Options,
    run: impl Fn(&Options) -> Result<T, RunError<L, C>>,
) -> Result<u64, String> {
    let left = same_on_every_engine(options, run)?;
    Ok(u64::from(!matches!(left, Err(RunError::Launch(_)))))
}

/// Returns a seed and a program. The program consists of the words of an input, truncated to whole instructions and to
/// at most `most` instructions.
fn parts(bytes: &[u8], instruction: usize, most: usize) -> (Random, Vec<u32>) {
    let words = words_from(bytes, HEAD);
    let seed = words.iter().take(2).fold(0, |seed, word| seed << 32 | u64::from(*word));
    let mut program: Vec<u32> = words.into_iter().skip(2).take(instruction * most).collect();
    program.truncate(program.len() / instruction * instruction);
    (Random::new(seed), program)
}

/// Returns an input that consists of a head, a random seed and a program. The head contains a random mode, a random
/// level, `launch` and `chip`.
fn of_program(random: &mut Random, launch: u8, chip: u8, words: &[u32]) -> Vec<u8> {
    let seeded: Vec<u32> = [random.next(), random.next()].into_iter().chain(words.iter().copied()).collect();
    input([random.next() as u8, random.next() as u8, launch, chip], &seeded)
}

// ---- R500

/// Maximum number of instructions in an input. An OUT is appended, and the program memory has room for all instructions
/// and the OUT.
const MOST_SLOTS: usize = 200;

fn words_r500(random: &mut Random) -> Vec<u8> {
    let words: Vec<u32> = (0..1 + random.below(16)).flat_map(|_| r500_programs::any_record(random)).collect();
    of_program(random, 0, 0, &words)
}

fn programs_r500(random: &mut Random) -> Vec<u8> {
    let words = r500_programs::program(random);
    of_program(random, 0, 0, &words)
}

fn relative_r500(random: &mut Random) -> Vec<u8> {
    let (words, _) = r500_programs::relative(random);
    of_program(random, 0, 0, &words)
}

fn fragment(bytes: &[u8]) -> Result<u64, String> {
    let [mode, level, lanes, _] = head(bytes);
    let (mut random, words) = parts(bytes, 6, MOST_SLOTS);
    let setup = r500_programs::setup(&mut random, words);
    let lanes = if lanes == 0 { 1 + random.below(70) as usize } else { usize::from(lanes) };
    let launch = r500_programs::launch(&mut random, lanes);
    runs(&options(mode, level, 200), |options| r500::run::run(&setup, &launch, options))
}

// ---- R500's vertex unit

fn words_vertex(random: &mut Random) -> Vec<u8> {
    let words: Vec<u32> = (0..1 + random.below(16)).flat_map(|_| vertex::any_record(random)).collect();
    of_program(random, 0, 0, &words)
}

fn programs_vertex(random: &mut Random) -> Vec<u8> {
    let words = vertex::program(random).words;
    of_program(random, 0, 0, &words)
}

fn vertices(bytes: &[u8]) -> Result<u64, String> {
    let [mode, level, ..] = head(bytes);
    let (mut random, words) = parts(bytes, 4, MOST_SLOTS);
    // With this state, a random program contains loops and calls.
    let state = vertex::state(&mut random, words.len() / 4);
    let program = Program { words, state, ..Program::default() };
    let Ok(setup) = pvs::setup::Setup::new(&program) else { return Ok(0) };
    let setup = Arc::new(setup);
    let lanes = 1 + random.below(70) as usize;
    let launch = vertex::launch(&mut random, lanes);
    runs(&options(mode, level, 300), |options| pvs::run::run(&setup, &launch, options))
}

// ---- R700

/// Value of the launch byte for [`wavefronts`]: a launch with memory. The value 0 means a launch with four registers.
const MEMORY: u8 = 1;
/// Value of the launch byte for [`wavefronts`]: a launch with registers relative to AR and aL.
const INDEXED: u8 = 2;
/// Value of the launch byte for [`wavefronts`]: a launch of vertices with a fetch program.
const FETCHING: u8 = 3;

fn words_r700(random: &mut Random) -> Vec<u8> {
    let words = match random.below(4) {
        // In each word, few bits are set. Therefore, some words are control flow instructions with valid targets.
        0 => (0..2 * (1 + random.below(16))).map(|_| random.next() & random.next()).collect(),
        1 => {
            let alu = r700_programs::any_slots(random);
            let fetch: Vec<u32> = (0..4 * (1 + random.below(4))).map(|_| random.next()).collect();
            r700_programs::with_clauses(&alu, &fetch)
        }
        _ => {
            let alu = r700_programs::any_slots(random);
            r700_programs::with_exports(random, &alu)
        }
    };
    let launch = random.below(2) as u8;
    // Half of the programs run on the chip of the launch. The slots are generated for this chip.
    let chip = if random.once_in(2) { random.next() as u8 } else { 0 };
    of_program(random, launch, chip, &words)
}

fn programs_r700(random: &mut Random) -> Vec<u8> {
    let (launch, words) = match random.below(6) {
        0..3 => (0, r700_programs::program(random).words),
        3 | 4 => (0, r700_programs::conditional(random).words),
        _ => {
            let source = r700_programs::memory::source(random);
            let assembled = r700::text::assemble(&source, CHIPS[0]);
            (MEMORY, assembled.map(|assembled| assembled.words).unwrap_or_default())
        }
    };
    of_program(random, launch, 0, &words)
}

fn indexed_r700(random: &mut Random) -> Vec<u8> {
    let source = r700_programs::indexed::source(random);
    let assembled = r700::text::assemble(&source, CHIPS[0]);
    let words = assembled.map(|assembled| assembled.words).unwrap_or_default();
    of_program(random, INDEXED, 0, &words)
}

fn calls_r700(random: &mut Random) -> Vec<u8> {
    let program = r700_programs::calling(random);
    of_program(random, FETCHING, 0, &program.words)
}

fn wavefronts(bytes: &[u8]) -> Result<u64, String> {
    let [mode, level, kind, chip] = head(bytes);
    let (mut random, words) = parts(bytes, 2, 512);
    let mut launch = match kind & 3 {
        INDEXED => r700_programs::indexed::launch(&mut random),
        MEMORY => r700_programs::memory::launch(&mut random),
        _ => r700_programs::launch(&mut random),
    };
    // The value 0 means the chip of the launch.
    if chip != 0 {
        launch.environment_mut().chip = chosen(chip, CHIPS);
    }
    launch.environment_mut().dx10_loop_limit = Some(1 + random.below(20));
    if kind & 3 == FETCHING {
        let words = r700_programs::fetch_program(&mut random).into();
        launch.environment_mut().stage = r700::launch::Stage::Vertex;
        launch.environment_mut().fetch_program = Some(r700::launch::FetchProgram { words, start: 0 });
    }
    let program = Program::from_words(words);
    runs(&options(mode, level, 3000), |options| r700::run::run(&program, &launch, options))
}

// ---- Tesla

/// Number of bytes that loads and stores of graphics programs can access.
const LOCAL_BYTES: u32 = 0x100;

/// Index of [`Stage::Compute`] in [`Stage::ALL`]. In an input, the low bits of the launch byte contain the index of the
/// stage.
const COMPUTE: u8 = 3;

/// A bit of the launch byte. If the bit is set, the program has all registers of the chip instead of 16.
const ALL_REGISTERS: u8 = 4;

/// A bit of the launch byte. If the bit is set, the size of s[] is random.
const SHARED: u8 = 8;

/// Returns code that stores numbers in the registers $r2 to $r7. Some of the numbers differ between lanes.
fn prologue(random: &mut Random) -> String {
    (2..8).fold(String::new(), |text, register| {
        let number = tesla_programs::value(random);
        let lane = if random.once_in(2) {
            format!("add b32 $r{register} $r{register} $r0\n")
        } else {
            String::new()
        };
        text + &format!("mov b32 $r{register} {number:#x}\n{lane}")
    })
}

fn words_tesla(random: &mut Random) -> Vec<u8> {
    let stage = if random.once_in(2) { COMPUTE } else { random.below(4) as u8 };
    let mut words = Vec::new();
    let text = prologue(random);
    if let Ok(assembled) = tesla::text::assemble(&text, Chip::Gt215, Stage::Compute) {
        words.extend(assembled.words());
    }
    // Most programs have only a few instructions, so that every instruction runs.
    let most = random.one_of(&[1, 2, 4, 24]);
    for _ in 0..1 + random.below(most) {
        if random.once_in(12) {
            words.extend([random.next(), random.next()]);
            continue;
        }
        let (row, chip) = (random.next() as usize % TABLE.rows().len(), random.one_of(&Chip::ALL));
        let stage = chosen(stage, &Stage::ALL);
        if let Some((mut instruction, inst)) = tesla_programs::words_of(row, chip, stage, random) {
            if !random.once_in(4) {
                // Restricts operands to the registers that the prologue sets. In instructions with register operands,
                // bits 5 to 8, 12 to 15, 19 to 22 and 49 to 52 are the upper bits of register numbers.
                let near = [instruction[0] & !0x0078_f1e0, instruction[1] & !0x001e_0000];
                if decode(near, chip, stage).is_ok_and(|other| other.op == inst.op) {
                    instruction = near.to_vec();
                }
            }
            words.extend(instruction);
        }
    }
    words.extend(tesla_programs::EXIT);
    let chip = random.next() as u8;
    of_program(random, stage | ALL_REGISTERS, chip, &words)
}

fn programs_tesla(random: &mut Random) -> Vec<u8> {
    let text = prologue(random) + &tesla_programs::program(random);
    let assembled = tesla::text::assemble(&text, Chip::Gt215, Stage::Compute);
    let words = assembled.map(|assembled| assembled.words()).unwrap_or_default();
    // The compute programs are generated for chip number 4, and therefore run on this chip.
    of_program(random, COMPUTE, 4, &words)
}

fn shared_tesla(random: &mut Random) -> Vec<u8> {
    let assembled = tesla::text::assemble(&tesla_programs::shared(random), Chip::Gt215, Stage::Compute);
    let words = assembled.map(|assembled| assembled.words()).unwrap_or_default();
    of_program(random, COMPUTE | SHARED, 4, &words)
}

fn warps(bytes: &[u8]) -> Result<u64, String> {
    let [mode, level, which, chip] = head(bytes);
    let (mut random, words) = parts(bytes, 1, 1024);
    let (stage, chip) = (chosen(which & 3, &Stage::ALL), chosen(chip, &Chip::ALL));
    let program = Program::from_words(words);
    let registers = if which & ALL_REGISTERS != 0 { 128 } else { 16 };
    let mut setup = Setup::new(chip);
    setup.registers = registers;
    setup.local_bytes = LOCAL_BYTES;
    let constants: Vec<u8> =
        (0..256).flat_map(|_| tesla_programs::value(&mut random).to_le_bytes()).collect();
    if !setup.constants.place(0, 0, &constants) || !setup.constants.place(1, 0, &constants) {
        return Err("a bank of constants has no room for 1024 bytes".to_owned());
    }
    if let Some(image) = Image::flat(2, 2, vec![[0x3f80_0000; 4]; 4]).ok().map(Arc::new) {
        setup.textures.bind(0, image, Sampler::default());
    }
    let lanes = 1 + random.below(70) as usize;
    let mut values = || -> Vec<u32> { (0..lanes).map(|_| tesla_programs::value(&mut random)).collect() };
    let inputs = (0..4).map(|word| (word, values())).collect();
    let launch = match stage {
        Stage::Compute => {
            let mut compute = tesla_programs::compute(&mut random, &program, chip);
            compute.setup = setup.into();
            if which & SHARED != 0 {
                compute.shared_bytes =
                    Some(random.one_of(&[0x14, 0x40, 0x80, 0x200, 0x1000, 0x3e00, 0x4000]));
            }
            compute.segments.0[0] = compute.segments.0[14];
            let bytes: Vec<u8> = (0..300).map(|_| random.next() as u8).collect();
            let memory = Memory::new(vec![Buffer::new(tesla_programs::OUT, bytes)]);
            compute.memory = memory.map_err(|error| error.to_string())?;
            Launch::Compute(compute)
        }
        Stage::Fragment => {
            let mut fragment = Fragment::new(setup, lanes);
            fragment.covered = (0..lanes).map(|_| !random.once_in(3)).collect();
            fragment.helpers = random.once_in(2);
            let plane = Varying::Plane { base: 0.5, dx: -0.25, dy: 0.125, flat: random.next() };
            let values: Vec<u32> = (0..lanes).map(|_| random.next()).collect();
            fragment.varyings.insert(1, Varying::Lanes(values.into()));
            fragment.varyings.insert(2, plane);
            Launch::Fragment(fragment)
        }
        Stage::Vertex => Launch::Vertex(Vertex { setup: setup.into(), lanes, inputs }),
        Stage::Geometry => {
            Launch::Geometry(Geometry { setup: setup.into(), lanes, inputs, vertices: vec![7; 64] })
        }
    };
    let watchdog = 500 + u64::from(random.below(1500));
    runs(&options(mode, level, watchdog), |options| tesla::run::run(&program, launch.clone(), options))
}

fn barriers_tesla(random: &mut Random) -> Vec<u8> {
    let assembled = tesla::text::assemble(&tesla_programs::barriers(random), Chip::Gt215, Stage::Compute);
    let words = assembled.map(|assembled| assembled.words()).unwrap_or_default();
    let threads = threads(random);
    of_program(random, threads, 4, &words)
}

/// A bit of the mode byte for [`blocks`]. If the bit is set, strict mode checks races in s[].
const RACES: u8 = 2;

/// Runs a compute program in several warps per block and in several blocks. The launch byte is the byte for
/// [`on_threads`].
fn blocks(bytes: &[u8]) -> Result<u64, String> {
    let [mode, level, threads, chip] = head(bytes);
    let (mut random, words) = parts(bytes, 1, 1024);
    let program = Program::from_words(words);
    let mut compute = tesla_programs::compute(&mut random, &program, chosen(chip, &Chip::ALL));
    let warps = random.one_of(&[1, 2, 2, 3, 4, 5, 8, 16]);
    compute.block = [32 * warps - random.one_of(&[0, 0, 1, 31, 13]), 1, 1];
    let most = if random.once_in(8) { 100 / warps } else { 1 + 8 / warps };
    compute.grid = [1 + random.below(most), 1];
    compute.shared_bytes = Some(random.one_of(&[0x140, 0x400, 0x900, 0x900, 0x1000, 0x4000]));
    compute.segments.0[0] = compute.segments.0[14];
    let first = random.one_of(&[0x80, 0x100, 0x400, 0x1000]);
    let mut buffer = |address, size: u32| {
        Buffer::new(address, (0..size).map(|_| random.next() as u8).collect::<Vec<u8>>())
    };
    let mut buffers = vec![buffer(tesla_programs::OUT, first), buffer(tesla_programs::OUT + first, 0x804)];
    let mut watchdog = random.one_of(&[1 << 14, 1 << 15]) + u64::from(random.below(1 << 12));
    if random.once_in(64) {
        // With this many warps, code outside loops is also compiled. A lower limit bounds the time of the case.
        compute.grid[0] = (512 + random.below(64)).div_ceil(warps);
        watchdog = u64::from(512 * warps);
    }
    if random.once_in(2) {
        let last = tesla_programs::OUT + random.below(first);
        let limit = random.one_of(&[u32::MAX, last]);
        let segment = Segment::linear(random.one_of(&[4, 0x22, 0x40, 0x400]), limit);
        compute.segments.0[0] = Some(Segment { lenient: random.once_in(2), ..segment });
    }
    if random.once_in(4) {
        let size = random.one_of(&[0x801, 0x803, 0x3f6, 0x81]);
        buffers[1] = Buffer::new(tesla_programs::OUT + first, buffers[1].bytes[..size].to_vec());
        compute.barriers = Some(1 + random.below(3));
    }
    compute.memory = Memory::new(buffers).map_err(|error| error.to_string())?;
    let options = Options { race_check: mode & RACES != 0, ..options(mode, level, watchdog) };
    let mut options = on_threads(options, threads);
    let launch = Launch::Compute(compute);
    let run = |options: &Options| tesla::run::run(&program, launch.clone(), options);
    if random.once_in(2)
        && let Ok(outcome) = run(&options)
    {
        // The watchdog stops a block between two barriers.
        let most = (outcome.statistics.instructions / launch.blocks().max(1) as u64).max(1);
        options.watchdog = most - u64::from(random.below((most / 2 + 1) as u32));
    }
    runs(&options, run)
}
