//! Runs programs: what a stage reads, from methods and memory.

use std::collections::BTreeSet;

use reconverge_isa::Program;
use reconverge_simt::Options;
use reconverge_tesla::decode::{decode, length};
use reconverge_tesla::inst::{Chip, Control, End, Group, Guard, Op, Space, Stage, TexOp};
use reconverge_tesla::launch::{Launch, Outcome, RunError, Setup};
use reconverge_tesla::run::run;
use reconverge_tesla::uses::accesses;

use super::methods::tesla as m;
use super::state::{State, Unknown, load};
use super::texture::{self, Read};
use crate::Fault;

/// Bytes of the window of a stage's code.
const WINDOW: u32 = 0x8_0000;

/// A stage of the pipeline: the methods that say what it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    stage: Stage,
    name: &'static str,
    window: u32,
    start: u32,
    registers: u32,
    /// Its number in SET_PROGRAM_CB.
    pub(super) program: usize,
    /// Its number in BIND_TIC and BIND_TSC.
    pub(super) textures: usize,
}

/// Vertex programs.
pub(super) const VERTEX: Unit = Unit {
    stage: Stage::Vertex,
    name: "vertex program",
    window: m::VP_ADDRESS_HIGH,
    start: m::VP_START_ID,
    registers: m::VP_REG_ALLOC_TEMP,
    program: 0,
    textures: 0,
};

/// Geometry programs.
pub(super) const GEOMETRY: Unit = Unit {
    stage: Stage::Geometry,
    name: "geometry program",
    window: m::GP_ADDRESS_HIGH,
    start: m::GP_START_ID,
    registers: m::GP_REG_ALLOC_TEMP,
    program: 2,
    textures: 1,
};

/// Fragment programs.
pub(super) const FRAGMENT: Unit = Unit {
    stage: Stage::Fragment,
    name: "fragment program",
    window: m::FP_ADDRESS_HIGH,
    start: m::FP_START_ID,
    registers: m::FP_REG_ALLOC_TEMP,
    program: 3,
    textures: 2,
};

/// What is bound by methods that are called several times.
#[derive(Clone, Debug)]
pub(super) struct Bindings {
    /// CB_DEF_SET, by number: where a constant buffer is and how many bytes it has.
    pub(super) buffers: Vec<(usize, usize)>,
    /// SET_PROGRAM_CB, by program and slot: the number of a constant buffer.
    pub(super) constants: [[Option<u8>; 16]; 16],
    /// BIND_TIC, by stage and unit: the number of an entry.
    pub(super) textures: [Vec<Option<u32>>; 3],
    /// BIND_TSC, by stage and unit.
    pub(super) samplers: [[Option<u32>; 16]; 3],
}

impl Default for Bindings {
    fn default() -> Bindings {
        Bindings {
            buffers: vec![(0, 0); 128],
            constants: [[None; 16]; 16],
            textures: std::array::from_fn(|_| vec![None; 256]),
            samplers: [[None; 16]; 3],
        }
    }
}

/// A stage's program with all that it reads.
pub(super) struct Shader {
    unit: Unit,
    program: Program,
    /// What every launch of it has.
    pub(super) setup: Setup,
    options: Options,
}

impl Shader {
    /// The program that the methods name, with what it reads.
    pub(super) fn new(
        unit: Unit,
        chip: Chip,
        (state, bindings, unknown): (&State, &Bindings, &mut Unknown),
        memory: &[u8],
        options: Options,
    ) -> Shader {
        let (window, start) = (state.address(unit.window), state.word(unit.start) & (WINDOW - 8));
        let found = Found::new(memory, window, start, (chip, unit.stage));
        let mut setup = Setup::new(chip);
        setup.registers = state.word(unit.registers).clamp(4, 128);
        setup.local_bytes = (8 << state.word(m::LOCAL_SIZE_LOG).min(13)).max(found.local_bytes);
        setup.code_base = start;
        setup.modes.mul_zero_wins = state.word(m::MUL_ZERO_WINS) & 0x1_0000 != 0;
        for (slot, bound) in bindings.constants[unit.program].iter().enumerate() {
            let Some((start, size)) = bound.map(|number| bindings.buffers[usize::from(number)]) else {
                continue;
            };
            let end = start.saturating_add(size).min(memory.len());
            setup.constants.place(slot, 0, memory.get(start..end).unwrap_or(&[]));
        }
        texture::bind(&mut setup.textures, unit, &found.reads, (state, bindings, unknown), memory);
        Shader { unit, program: Program::from_words(found.words), setup, options }
    }

    /// Runs it.
    ///
    /// # Errors
    /// It traps, or runs too long.
    pub(super) fn run(&self, launch: Launch) -> Result<Outcome, Fault> {
        run(launch, &self.program, &self.options).map_err(|error| match error {
            RunError::Trap(trap) => Fault::Trap(format!("{}: {trap}", self.unit.name)),
            other => Fault::Trap(format!("{}: {other}", self.unit.name)),
        })
    }
}

/// What can be seen of a program in memory.
struct Found {
    words: Vec<u32>,
    reads: BTreeSet<Read>,
    /// What it may use of l[].
    local_bytes: u32,
}

/// The l[] of a program that uses any.
///
/// Inferred: the driver leaves LOCAL_SIZE_LOG at 64 bytes for programs that index arrays of 160 bytes and more, and NV92
/// passes the tests that they are from. So the size is a matter of where lanes lie in memory, and not of what is allowed.
const LOCAL: u32 = 0x4000;

impl Found {
    /// Reads as far as the program goes: to an end that no branch passes.
    fn new(memory: &[u8], window: usize, start: u32, (chip, stage): (Chip, Stage)) -> Found {
        let mut found = Found { words: Vec::new(), reads: BTreeSet::new(), local_bytes: 0 };
        let (mut at, mut furthest) = (start, start);
        while at < WINDOW {
            let word = |number: u32| load(memory, window.saturating_add((at + 4 * number) as usize));
            let words = [word(0), word(1)];
            let count = length(words[0]);
            found.words.extend(&words[..count as usize]);
            at += 4 * count;
            let Ok(inst) = decode(words, chip, stage) else {
                // A trap when it is reached. Where a branch goes further, there may be more.
                if at > furthest {
                    break;
                }
                continue;
            };
            for (place, _) in accesses(&inst, stage).memory {
                if place.space == Space::Local {
                    found.local_bytes = found.local_bytes.max(LOCAL);
                }
            }
            let mut ends = inst.end == End::Exit;
            match inst.op {
                Op::Control(control) => {
                    furthest = furthest.max(control.target().unwrap_or(0));
                    ends |= matches!(control, Control::Bra { .. } | Control::Ret | Control::Trap);
                }
                Op::Group(Group::Tex(tex)) => {
                    let samples = !matches!(tex.op, TexOp::Fetch | TexOp::Size);
                    found.reads.insert(Read { texture: tex.texture, sampler: tex.sampler, samples });
                }
                _ => {}
            }
            let always = inst.guard == Guard::ALWAYS;
            if ends && always && at > furthest {
                break;
            }
        }
        found
    }
}
