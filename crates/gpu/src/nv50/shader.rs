//! Runs programs. Reads the program of a stage, and the constants and textures of the program, from methods and memory.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use litemap::LiteMap;
use reconverge_isa::Isa;
use reconverge_isa::sets::SortedSet;
use reconverge_raster::draw::{Draw, Fragments};
use reconverge_simt::Options;
use reconverge_simt::vram::Vram;
use reconverge_tesla::code::Code;
use reconverge_tesla::decode::{decode, length};
use reconverge_tesla::driver_fixes::is_indexed_argument;
use reconverge_tesla::inst::{
    Base, Chip, Control, End, Group, Guard, Inst, Memory, Op, Operand, Space, Special, Stage, TexOp,
};
use reconverge_tesla::lane::interpolate::Position;
use reconverge_tesla::launch::{
    Environment, Fragment, LaneResult, LaneResults, Launch, LaunchError, MOST_LOCAL, RunError, Setup,
    Varying, Vertex,
};
use reconverge_tesla::run::Loaded;
use reconverge_tesla::uses::accesses;

use super::bindings::{Bindings, Unit};
use super::methods::tesla as m;
use super::state::{State, Unknown, load};
use super::texture::{self, BoundTexture, Images, Read};
use crate::Fault;
use crate::capture::{Recording, Watch};
use crate::kept::Kept;
use crate::observe::{Captured, ChipProgram, Machine, Rows};

/// Size in bytes of the window of memory that contains a stage's code.
pub(super) const WINDOW: u32 = 0x8_0000;

/// Index of the word of v[] that states whether the front is visible.
pub(super) const FACING: u16 = 0xff;

/// Maximum size in bytes of a constant buffer that is copied to an array on the stack.
const FEW: usize = 256;

/// The vertex stage.
pub(super) const VERTEX: Unit = Unit {
    stage: Stage::Vertex,
    name: "vertex program",
    window: m::VP_ADDRESS_HIGH,
    start: m::VP_START_ID,
    registers: m::VP_REG_ALLOC_TEMP,
    program: 0,
    textures: 0,
};

/// The geometry stage.
pub(super) const GEOMETRY: Unit = Unit {
    stage: Stage::Geometry,
    name: "geometry program",
    window: m::GP_ADDRESS_HIGH,
    start: m::GP_START_ID,
    registers: m::GP_REG_ALLOC_TEMP,
    program: 2,
    textures: 1,
};

/// The compute stage. The compute stage uses the code window and the bindings of the fragment stage. Separate methods
/// of the compute object set the start of the program and the number of registers.
pub(super) const COMPUTE: Unit = Unit {
    stage: Stage::Compute,
    name: "compute program",
    window: m::FP_ADDRESS_HIGH,
    start: 0,
    registers: 0,
    program: 3,
    textures: 2,
};

/// The fragment stage.
pub(super) const FRAGMENT: Unit = Unit {
    stage: Stage::Fragment,
    name: "fragment program",
    window: m::FP_ADDRESS_HIGH,
    start: m::FP_START_ID,
    registers: m::FP_REG_ALLOC_TEMP,
    program: 3,
    textures: 2,
};

/// A stage's program with its constants and textures.
#[derive(Debug)]
pub(super) struct Shader {
    unit: Unit,
    /// Offset of the program in memory, and the words of the program.
    place: usize,
    words: Arc<[u32]>,
    /// The constant buffers that the program reads. Each entry has the slot of a buffer and the range of the buffer in
    /// memory.
    buffers: Vec<(usize, Range<usize>)>,
    /// The textures that the program reads.
    textures: Vec<BoundTexture>,
    loaded: Loaded,
    options: Options,
    is_plain: bool,
    sees_coverage: bool,
    reads_facing: bool,
    reads_sample: bool,
    centroids: SortedSet<u16>,
}

/// Cache of programs from earlier draws.
pub(super) type Programs = Kept<Key, KeptProgram>;

/// The properties on which the decoding of a program depends.
#[derive(Clone, Debug)]
pub(super) struct Key {
    stage: Stage,
    /// Address in the code window of the program's first word.
    start: u32,
    words: Arc<[u32]>,
    options: Options,
}

/// A decoded program.
#[derive(Clone, Debug)]
pub(super) struct KeptProgram {
    pub(super) words: Arc<[u32]>,
    code: Arc<Code>,
    pub(super) reads: SortedSet<Read>,
    /// For each constant buffer, an upper bound of the number of bytes that the program may read.
    constants: [usize; 16],
    /// Upper bound of the number of bytes of l[] that the program may use.
    pub(super) local_bytes: u32,
    /// Whether one of two conditions holds for an instruction. The instruction may have different results in lanes with
    /// equal inputs, or may affect other lanes.
    is_special: bool,
    /// Whether the results of covered lanes may depend on which lanes are covered.
    sees_coverage: bool,
    /// Whether the program may read [`FACING`].
    reads_facing: bool,
    /// Whether the program reads the number of the sample.
    reads_sample: bool,
    /// The words of v[] that the program reads at the centroid of the covered samples.
    centroids: SortedSet<u16>,
    /// Two bit sets of segments of g[]. The first set has the segments that the program may access. The second set has
    /// the segments to which the program may write.
    pub(super) segments: [u16; 2],
    /// The lowered program for each set-up. The set-ups contain no constants, because constants do not affect lowering.
    lowered: Kept<Arc<Setup>, Loaded>,
}

/// Caches of programs and of images from earlier draws.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) programs: Programs,
    pub(super) images: Images,
}

/// Returns the decoded program at the address `start` of a code window.
pub(super) fn program<'p>(
    programs: &'p mut Programs,
    (unit, chip): (Unit, Chip),
    (window, start): (usize, u32),
    memory: Vram<'_>,
    options: Options,
    watch: &mut Watch,
) -> &'p mut KeptProgram {
    let stage = unit.stage;
    let place = |at: u32| window.saturating_add(at as usize);
    let found = || Found::new(|at| load(memory, place(at)), start, (chip, stage));
    let make = |found: Found| {
        let words: Arc<[u32]> = found.words.as_slice().into();
        let code = Code::of(&words, start, (stage, chip), &found.insts);
        let Found { reads, constants, local_bytes, is_special, sees_coverage, .. } = found;
        let Found { reads_facing, reads_sample, centroids, segments, .. } = found;
        let program = KeptProgram {
            words: words.clone(),
            code: Arc::new(code),
            reads,
            constants,
            local_bytes,
            is_special,
            sees_coverage,
            reads_facing,
            reads_sample,
            centroids,
            segments,
            lowered: Kept::default(),
        };
        Ok::<_, Infallible>((Key { stage, start, words, options }, program))
    };
    let alike = |key: &Key| (key.stage, key.start, key.options) == (stage, start, options);
    let program = match watch.is_on() {
        false => {
            programs.get(|key| alike(key) && memory.holds_words(place(start), &key.words), || make(found()))
        }
        true => {
            let mut found = found();
            let observed = watch.program(chip_program(unit, chip, start, &found.words));
            if observed.words != found.words {
                let words = &observed.words;
                let changed = |at: u32| words.get((at - start) as usize / 4).copied().unwrap_or(0);
                found = Found::new(changed, start, (chip, stage));
            }
            let words = found.words.clone();
            programs.get(|key| alike(key) && *key.words == *words, || make(found))
        }
    };
    let Ok((_, program)) = program;
    program
}

impl KeptProgram {
    /// Returns the decoded program.
    pub(super) fn code(&self) -> &Code {
        &self.code
    }

    /// Returns the lowered program for launches with `setup`. `bare` is the same set-up without constants.
    ///
    /// # Errors
    /// Returns an error if the machine cannot run a program with this set-up.
    pub(super) fn loaded(
        &mut self,
        setup: Setup,
        bare: &Setup,
        options: &Options,
    ) -> Result<Loaded, LaunchError> {
        let stage = self.code.stage();
        let (_, lowered) = self.lowered.get(
            |known| known.lowers_alike(bare),
            || {
                let bare = Arc::new(bare.clone());
                let environment = Environment { stage, setup: bare.clone() };
                Ok((bare, Loaded::of(&self.code, &environment, options)?))
            },
        )?;
        lowered.with_setup(setup.into())
    }

    /// Copies the bound constant buffers to `setup`. If `all` is set, copies complete buffers. Otherwise, copies the
    /// bytes up to the last byte that the program may read. Returns the slots of the buffers and their ranges in
    /// memory.
    pub(super) fn place_constants(
        &self,
        setup: &mut Setup,
        bindings: &Bindings,
        unit: Unit,
        memory: Vram<'_>,
        all: bool,
    ) -> Vec<(usize, Range<usize>)> {
        let mut buffers = Vec::new();
        for (slot, bound) in bindings.constants[unit.program].iter().enumerate() {
            let Some((start, size)) = bound.map(|number| bindings.buffers[usize::from(number)]) else {
                continue;
            };
            // An observer receives complete buffers.
            let size = if all { size } else { size.min(self.constants[slot]) };
            let end = start.saturating_add(size).min(memory.len());
            setup.constants.place(slot, 0, &memory.bytes(start..end));
            if size != 0 {
                buffers.push((slot, start..end));
            }
        }
        buffers
    }
}

impl Shader {
    /// Returns the program that the methods select, with its constants and textures.
    pub(super) fn new(
        unit: Unit,
        chip: Chip,
        (state, bindings, unknown): (&State, &Bindings, &mut Unknown),
        Cache { programs, images }: &mut Cache,
        memory: Vram<'_>,
        options: Options,
        watch: &mut Watch,
    ) -> Result<Shader, Fault> {
        let (window, start) = (state.address(unit.window), state.word(unit.start) & (WINDOW - 8));
        let program = program(programs, (unit, chip), (window, start), memory, options, watch);
        let mut setup = Setup::new(chip);
        setup.registers = state.word(unit.registers).clamp(4, 128);
        setup.local_bytes = (8 << state.word(m::LOCAL_SIZE_LOG).min(13)).max(program.local_bytes);
        setup.code_base = start;
        setup.modes.mul_zero_wins = state.word(m::MUL_ZERO_WINS) & 0x1_0000 != 0;
        let bound = (state, bindings, unknown);
        let textures =
            texture::bind(&mut setup.textures, (unit, chip), &program.reads, bound, images, memory);
        let fault = |error: LaunchError| Fault::Trap(format!("{}: {error}", unit.name));
        let bare = setup.clone();
        let buffers = program.place_constants(&mut setup, bindings, unit, memory, watch.is_on());
        let loaded = program.loaded(setup, &bare, &options).map_err(fault)?;
        let KeptProgram { is_special, sees_coverage, reads_facing, reads_sample, .. } = *program;
        let centroids = program.centroids.clone();
        let (words, is_plain) = (program.words.clone(), !is_special);
        let place = window.saturating_add(start as usize);
        let shader = Shader {
            unit,
            place,
            words,
            buffers,
            textures,
            loaded,
            options,
            is_plain,
            sees_coverage,
            reads_facing,
            reads_sample,
            centroids,
        };
        Ok(shader)
    }

    /// Prepares the shader for reuse: reads the constants from memory again. Returns `false` if the program or a
    /// texture has changed in memory, or if a texture is not in the cache. The caller must then create a new shader.
    /// The caller must also create a new shader if a method on which the shader depends has changed.
    pub(super) fn renew(&mut self, images: &mut Images, memory: Vram<'_>) -> bool {
        let same = memory.holds_words(self.place, &self.words)
            && self.textures.iter().all(|bound| bound.is_there(images, memory));
        if !same {
            return false;
        }
        let constants = self.loaded.constants_mut();
        for (slot, range) in &self.buffers {
            match range.len() <= FEW {
                // An array on the stack avoids an allocation.
                true => memory
                    .read(range.start, &mut [0; FEW][..range.len()])
                    .is_some_and(|bytes| constants.place(*slot, 0, bytes)),
                false => constants.place(*slot, 0, &memory.bytes(range.clone())),
            };
        }
        true
    }

    /// Returns the program in the form for observers.
    fn observed(&self) -> ChipProgram {
        let Setup { chip, code_base, .. } = *self.loaded.environment().setup;
        chip_program(self.unit, chip, code_base, &self.words)
    }

    /// Returns whether lanes with equal inputs have equal results.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Returns whether the results of covered lanes may depend on which lanes are covered.
    pub(super) fn sees_coverage(&self) -> bool {
        self.sees_coverage
    }

    /// Returns whether the program may read [`FACING`].
    pub(super) fn reads_facing(&self) -> bool {
        self.reads_facing
    }

    /// Returns whether the program reads the number of the sample.
    pub(super) fn reads_sample(&self) -> bool {
        self.reads_sample
    }

    /// Returns the words of v[] that the program reads at the centroid of the covered samples.
    pub(super) fn centroids(&self) -> &SortedSet<u16> {
        &self.centroids
    }

    /// Returns the set-up that all launches of the shader share.
    pub(super) fn setup(&self) -> Arc<Setup> {
        self.loaded.environment().setup.clone()
    }

    /// Returns a recording of vertices. `vertices` contains the index and instance of each vertex.
    pub(super) fn vertices(&self, vertices: Vec<[u32; 2]>) -> Recording {
        let launch = Vertex { setup: self.setup(), lanes: 0, inputs: LiteMap::new() };
        Recording::vertices(&self.observed(), Machine::TeslaVertex(Box::new(launch)), self.options, vertices)
    }

    /// Returns a recording of the fragments of a draw. The first `results` registers of the program contain the results
    /// of the program.
    pub(super) fn fragments(&self, results: usize, captured: &mut Captured, draw: &Draw) -> Recording {
        let launch = Fragment { helpers: true, kept: Some(results), ..Fragment::new(self.setup(), 0) };
        let machine = Machine::TeslaFragment(Box::new(launch));
        Recording::fragments(&self.observed(), machine, self.options, (captured, draw))
    }

    /// Runs the program. If `recording` is not `None`, adds the lanes of the run and the pixels of `fragments` to the
    /// recording.
    ///
    /// # Errors
    /// Returns a fault if the program traps or exceeds the maximum number of instructions.
    pub(super) fn run(
        &self,
        launch: Launch,
        mut recording: Option<&mut Recording>,
        fragments: Option<&Fragments>,
    ) -> Result<LaneResults, Fault> {
        if let Some(recording) = &mut recording {
            let (lanes, words) = words(&launch);
            recording.start(lanes, words.into_iter().map(|(word, values)| (word, 1, values)), fragments);
        }
        let lanes = self.loaded.run_lanes(launch).map_err(|error| match error {
            RunError::Trap(trap) => Fault::Trap(format!("{}: {trap}", self.unit.name)),
            other => Fault::Trap(format!("{}: {other}", self.unit.name)),
        })?;
        if let Some(recording) = recording {
            recording.end(outputs(self.unit.stage, &lanes), lanes.iter().map(|lane| lane.dead));
        }
        Ok(lanes)
    }
}

/// Returns whether an instruction has equal results in lanes with equal inputs. The memory that the instruction
/// accesses is checked separately.
fn is_plain(inst: &Inst) -> bool {
    let reads_special = inst.src.iter().any(|operand| matches!(operand, Operand::Special(_)));
    let by_lane = match inst.op {
        Op::Arith(_) | Op::Control(_) | Op::Idle(_) | Op::Memory(Memory::Ld | Memory::Interp { .. }) => false,
        Op::Group(group) => !matches!(group, Group::Tex(_) | Group::Quadop { .. }),
        Op::Memory(_) => true,
    };
    !reads_special && !by_lane && inst.lanes == 15
}

/// Returns whether an instruction depends on the coverage of lanes. If the result is true, one of two conditions holds.
/// The instruction acts differently in uncovered lanes, or the results of covered lanes depend on uncovered lanes.
fn sees_coverage(inst: &Inst) -> bool {
    match inst.op {
        Op::Arith(_) | Op::Idle(_) | Op::Memory(Memory::Ld | Memory::Interp { .. }) => false,
        Op::Group(Group::Tex(tex)) => tex.live,
        Op::Group(group) => !matches!(group, Group::Quadop { .. }),
        Op::Memory(_) | Op::Control(_) => true,
    }
}

pub(super) fn chip_program(unit: Unit, chip: Chip, base: u32, words: &[u32]) -> ChipProgram {
    let stage = unit.stage.any();
    ChipProgram { isa: Isa::Tesla, chip: chip.name(), stage, words: words.to_vec(), base, state: Vec::new() }
}

/// Returns the number of lanes of a launch, and the inputs. Each input consists of the number of a word, and of the
/// values of this word for all lanes.
fn words(launch: &Launch) -> (usize, Vec<(u16, &[u32])>) {
    match launch {
        Launch::Fragment(Fragment { lanes, varyings, .. }) => {
            let words = varyings.iter().filter_map(|(word, varying)| match varying {
                Varying::Lanes(values) => Some((*word, &values[..])),
                // This crate does not create planes.
                Varying::Plane { .. } => None,
            });
            (*lanes, words.collect())
        }
        Launch::Vertex(Vertex { lanes, inputs, .. }) => {
            (*lanes, inputs.iter().map(|(word, values)| (*word, &values[..])).collect())
        }
        Launch::Geometry(_) | Launch::Compute(_) => (0, Vec::new()),
    }
}

/// Returns the results of lanes, each with the name that the machine's launches use for the result.
fn outputs(stage: Stage, lanes: &LaneResults) -> impl Iterator<Item = (String, Rows)> {
    let lanes = || lanes.iter();
    let rows = |width: usize, words: Vec<u32>| Rows { width, words };
    let mut found = Vec::new();
    if stage == Stage::Fragment {
        let count = lanes().map(|lane| lane.registers.len()).max().unwrap_or(0);
        let of = |range: Range<usize>| {
            let one = |lane: LaneResult| {
                range.clone().map(move |number| lane.registers.get(number).copied().unwrap_or(0))
            };
            rows(range.len(), lanes().flat_map(one).collect())
        };
        found.extend((0..count / 4).map(|color| (format!("color{color}"), of(4 * color..4 * color + 4))));
        if !count.is_multiple_of(4) {
            found.push(("others".to_owned(), of(count / 4 * 4..count)));
        }
    } else {
        let count = lanes().map(|lane| lane.outputs.len()).max().unwrap_or(0);
        let one =
            |lane: LaneResult| (0..count).map(move |number| lane.outputs.get(number).copied().unwrap_or(0));
        found.push(("outputs".to_owned(), rows(count, lanes().flat_map(one).collect())));
    }
    found.into_iter()
}

/// Instructions and properties of a program that was found in memory.
#[derive(Default)]
struct Found {
    words: Vec<u32>,
    /// The instructions that can be decoded, each with the index of the instruction's first word.
    insts: Vec<(usize, Inst)>,
    reads: SortedSet<Read>,
    /// See [`KeptProgram::constants`].
    constants: [usize; 16],
    /// See [`KeptProgram::local_bytes`].
    local_bytes: u32,
    /// See [`KeptProgram::is_special`].
    is_special: bool,
    /// See [`KeptProgram::sees_coverage`].
    sees_coverage: bool,
    /// See [`KeptProgram::reads_facing`].
    reads_facing: bool,
    /// See [`KeptProgram::reads_sample`].
    reads_sample: bool,
    /// See [`KeptProgram::centroids`].
    centroids: SortedSet<u16>,
    /// See [`KeptProgram::segments`].
    segments: [u16; 2],
}

/// Size of l[] in bytes, for a program that addresses l[] through an address register.
///
/// Inferred: the driver sets LOCAL_SIZE_LOG to 64 bytes, even for programs with arrays of 160 bytes and more. NV92
/// passes the tests with these programs. LOCAL_SIZE_LOG therefore determines the positions of lanes in memory, and does
/// not limit accesses.
const LOCAL: u32 = 0x4000;

impl Found {
    /// Reads the program from `start` to its last instruction. The last instruction is the first instruction that ends
    /// the program and after which no branch target follows. `word` returns the word at an address.
    fn new(word: impl Fn(u32) -> u32, start: u32, (chip, stage): (Chip, Stage)) -> Found {
        let mut found = Found::default();
        let (mut at, mut furthest) = (start, start);
        // `complete` states whether all reachable instructions are known. `targets` contains the targets of branches.
        let (mut complete, mut targets) = (true, Vec::new());
        while at < WINDOW {
            let words = [word(at), word(at + 4)];
            let count = length(words[0]);
            found.words.extend(&words[..count as usize]);
            at += 4 * count;
            let Ok(inst) = decode(words, chip, stage) else {
                (found.is_special, found.sees_coverage) = (true, true);
                // `decode` has rejected these words. If a lane reaches the words, the lane traps. The program may
                // continue after the words if a branch leads to a later address.
                complete = false;
                let goes_on = stage == Stage::Compute && is_indexed_argument(words, chip);
                if at > furthest && !goes_on {
                    break;
                }
                continue;
            };
            // An instruction of two words must start at an even word.
            if count == 1 || at.is_multiple_of(8) {
                found.insts.push((found.words.len() - count as usize, inst));
            }
            found.is_special |= !is_plain(&inst);
            found.sees_coverage |= sees_coverage(&inst);
            found.reads_sample |= inst.src.contains(&Operand::Special(Special::Sampleid));
            let at_centroid = matches!(inst.op, Op::Memory(Memory::Interp { position: Position::Centroid }));
            for (place, written) in accesses(&inst, stage).memory {
                found.is_special |= !matches!(place.space, Space::Const(_) | Space::Varying);
                let fixed = place.base == Base::A(0) && !place.increment;
                match place.space {
                    // A read of several words may begin before FACING. Therefore, the code compares the end of the read
                    // with FACING.
                    Space::Varying => {
                        let end = (place.offset as u32).saturating_add(place.access.bytes());
                        found.reads_facing |= !fixed || end > 4 * u32::from(FACING);
                        // An address register may have any value. Therefore, the program may read all words from
                        // `first` on.
                        let first = place.offset as u32 / 4;
                        let last = if fixed { first } else { u32::from(FACING) - 1 };
                        for word in (first..=last).filter(|_| at_centroid) {
                            found.centroids.insert(word as u16);
                        }
                    }
                    Space::Local => {
                        let end = (place.offset as u32).saturating_add(place.access.bytes());
                        let most = if stage == Stage::Compute { MOST_LOCAL } else { LOCAL };
                        found.local_bytes = found.local_bytes.max(if fixed { end } else { most });
                    }
                    Space::Global(segment) => {
                        let bit = 1 << (segment % 16);
                        found.segments[0] |= bit;
                        found.segments[1] |= if written { bit } else { 0 };
                    }
                    Space::Const(bank) => {
                        let end = usize::from(place.offset as u16) + place.access.bytes() as usize;
                        let bytes = &mut found.constants[usize::from(bank) % 16];
                        *bytes = if fixed { end.max(*bytes) } else { usize::MAX };
                    }
                    _ => {}
                }
            }
            let always = inst.guard == Guard::ALWAYS;
            // The exit marker ends all lanes, even lanes for which the guard of the instruction is false.
            let mut ends = inst.end == End::Exit;
            match inst.op {
                Op::Control(control) => {
                    furthest = furthest.max(control.target().unwrap_or(0));
                    targets.extend(control.target());
                    complete &= !matches!(control, Control::BraIndirect { .. });
                    ends |= always && matches!(control, Control::Bra { .. } | Control::Ret | Control::Trap);
                }
                Op::Group(Group::Tex(tex)) => {
                    let samples = !matches!(tex.op, TexOp::Fetch | TexOp::Size);
                    found.reads.insert(Read { texture: tex.texture, sampler: tex.sampler, samples });
                }
                _ => {}
            }
            if ends && at > furthest {
                break;
            }
        }
        let begins = |target: &u32| {
            let place = target.checked_sub(start).map(|offset| offset as usize / 4);
            place.is_some_and(|place| found.insts.binary_search_by_key(&place, |(at, _)| *at).is_ok())
        };
        if !complete || !targets.iter().all(begins) {
            found.constants = [usize::MAX; 16];
            found.reads_facing = true;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reconverge_tesla::text::assemble;

    fn reads_facing(words: &[u32]) -> bool {
        let word = |at: u32| words.get(at as usize / 4).copied().unwrap_or(0);
        Found::new(word, 0, (Chip::Gt215, Stage::Fragment)).reads_facing
    }

    #[test]
    fn a_program_reads_facing_where_its_words_or_an_address_register_may_name_it() {
        for (place, expected) in [("v[0x3f8]", false), ("v[0x3fc]", true), ("v[$a1+0x10]", true)] {
            let text = format!("interp $r0 {place}\nexit nop");
            let code = assemble(&text, Chip::Gt215, Stage::Fragment).unwrap().words();
            assert_eq!(reads_facing(&code), expected, "{place}");
        }
    }

    #[test]
    fn only_flow_and_reads_of_live_lanes_see_coverage() {
        for (line, expected) in [
            ("mov b32 $r0 0x1", false),
            ("interp $r0 v[0x4]", false),
            ("texauto all $r0:#:#:# $t0 $s0 $r0:$r1 0x0 0x0 0x0", false),
            ("texauto live $r0:#:#:# $t0 $s0 $r0:$r1 0x0 0x0 0x0", true),
            ("discard", true),
        ] {
            let code = assemble(&format!("{line}\nexit nop"), Chip::Gt215, Stage::Fragment).unwrap().words();
            let word = |at: u32| code.get(at as usize / 4).copied().unwrap_or(0);
            let found = Found::new(word, 0, (Chip::Gt215, Stage::Fragment));
            assert_eq!(found.sees_coverage, expected, "{line}");
        }
    }

    #[test]
    fn a_program_that_cannot_be_decoded_may_read_facing() {
        let start = assemble("mov b32 $r0 0x1", Chip::Gt215, Stage::Fragment).unwrap().words();
        let unknown = [0xf000_0001, 0xffff_ffff];
        assert!(decode(unknown, Chip::Gt215, Stage::Fragment).is_err());
        let end = assemble("exit nop", Chip::Gt215, Stage::Fragment).unwrap().words();
        assert!(reads_facing(&[&start, &unknown[..], &end].concat()));
        assert!(!reads_facing(&[&start[..], &end].concat()));
    }
}
