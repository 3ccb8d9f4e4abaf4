//! Runs programs. Reads the programs of a stage, and the constants and resources of the programs, from registers and
//! memory.

use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::{Isa, Program, program};
use reconverge_r700::chip::Chip;
use reconverge_r700::code::{Code, CodeOptions};
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{
    Columns, Environment, FetchProgram, Input, Launch, LaunchError, Resources, Stage,
};
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::outcome::Outcome;
use reconverge_r700::run::{Loaded, RunError};
use reconverge_r700::texture::{Component, Texture};
use reconverge_raster::draw::{CopiedTexels, Draw, Fragments, interleaved};
use reconverge_simt::Options;
use reconverge_simt::texture::Sampler;
use reconverge_simt::texture::rows::Plan;
use reconverge_simt::vram::Vram;

use super::copied::TexelRead;
use super::program::{ComponentsRead, Element, KeptProgram, Largest, ProgramKey, ResourcesRead, words};
use super::registers as reg;
use super::state::State;
use super::texture::{self, Resource};
use crate::Fault;
use crate::capture::{Recording, Watch};
use crate::copied;
use crate::kept::Kept;
use crate::observe::{Captured, ChipProgram, Machine, Rows};
use crate::texels::Select;

/// A stage of the pipeline. The fields are the registers of the stage, and the stage's first numbers for resources,
/// samplers and loop constants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) stage: Stage,
    name: &'static str,
    start: u32,
    resources: u32,
    const_sizes: u32,
    const_caches: u32,
    first_resource: u32,
    first_sampler: u32,
    first_loop: usize,
    borders: u32,
}

impl Unit {
    /// Returns the stage of this unit in the type of stages that all machines share.
    fn program_stage(self) -> program::Stage {
        match self.stage {
            Stage::Pixel => program::Stage::Pixel,
            Stage::Vertex => program::Stage::Vertex,
            Stage::Geometry => program::Stage::Geometry,
        }
    }
}

/// The pixel stage.
pub(super) const PIXEL: Unit = Unit {
    stage: Stage::Pixel,
    name: "pixel shader",
    start: reg::SQ_PGM_START_PS,
    resources: reg::SQ_PGM_RESOURCES_PS,
    const_sizes: reg::ALU_CONST_BUFFER_SIZE_PS_0,
    const_caches: reg::ALU_CONST_CACHE_PS_0,
    first_resource: 0,
    first_sampler: 0,
    first_loop: 0,
    borders: reg::TD_PS_SAMPLER0_BORDER_RED,
};

/// The vertex stage. The fetch program and the vertex program use the same number as their first resource.
pub(super) const VERTEX: Unit = Unit {
    stage: Stage::Vertex,
    name: "vertex shader",
    start: reg::SQ_PGM_START_VS,
    resources: reg::SQ_PGM_RESOURCES_VS,
    const_sizes: reg::ALU_CONST_BUFFER_SIZE_VS_0,
    const_caches: reg::ALU_CONST_CACHE_VS_0,
    first_resource: 160,
    first_sampler: 18,
    first_loop: 32,
    borders: reg::TD_VS_SAMPLER0_BORDER_RED,
};

/// The vertex program before a geometry program. This program uses the constants and resources of the vertex stage.
pub(super) const EXPORT: Unit =
    Unit { start: reg::SQ_PGM_START_ES, resources: reg::SQ_PGM_RESOURCES_ES, ..VERTEX };

/// The geometry stage.
pub(super) const GEOMETRY: Unit = Unit {
    stage: Stage::Geometry,
    name: "geometry shader",
    start: reg::SQ_PGM_START_GS,
    resources: reg::SQ_PGM_RESOURCES_GS,
    const_sizes: reg::ALU_CONST_BUFFER_SIZE_GS_0,
    const_caches: reg::ALU_CONST_CACHE_GS_0,
    first_resource: 336,
    first_sampler: 36,
    first_loop: 64,
    borders: reg::TD_GS_SAMPLER0_BORDER_RED,
};

/// Number of the resource through which a stage reads the ring of the previous stage. (Mesa `r600_pipe.h`,
/// R600_GS_RING_CONST_BUFFER)
const RING: u8 = 17;

/// A stage's program with its constants and resources. The program can run on any number of lanes.
#[derive(Debug)]
pub(super) struct Shader {
    unit: Unit,
    /// The words of the program.
    words: Arc<[u32]>,
    /// Offset of the words in memory.
    place: usize,
    /// The offset of the fetch program in memory, and the words of the fetch program.
    fetch: Option<(usize, Arc<[u32]>)>,
    /// Resources that the program and its fetch program may read.
    resources: Arc<ResourcesRead>,
    /// Word 2 of the resource of each vertex buffer, in the order of the vertex buffers in the environment.
    layouts: Vec<u32>,
    /// The lowered program. The program may have been lowered for a different environment. In this case, lowering for
    /// this environment has the same result.
    loaded: Loaded,
    environment: Arc<Environment>,
    reads: Arc<ComponentsRead>,
    options: Options,
}

/// The state and memory from which a shader is created.
pub(super) struct Context<'a, 'm> {
    pub(super) chip: Chip,
    pub(super) state: &'a mut State,
    pub(super) memory: Vram<'m>,
    pub(super) options: Options,
    pub(super) watch: &'a mut Watch,
}

impl Shader {
    /// Returns the program that the registers select, with its resources. If `numbers` is not `None`, reads only the
    /// bytes of vertex buffers that the vertices may access. If `numbers` is `None`, reads all bytes of vertex buffers.
    ///
    /// # Errors
    /// Returns a fault if no program is selected, or if the machine cannot load the program.
    pub(super) fn new(
        unit: Unit,
        context: &mut Context<'_, '_>,
        numbers: Option<Largest>,
    ) -> Result<Shader, Fault> {
        let Context { chip, state, memory, options, watch } = context;
        let Some(place) = state.place(unit.start, 0) else {
            return Err(Fault::Malformed(format!("a draw without a {}", unit.name)));
        };
        let prefer_vector = state.word(reg::SQ_CONFIG) >> 3 & 1 != 0;
        let options_of_code = CodeOptions { chip: *chip, prefer_vector };
        let mut reached = take(&mut state.reached);
        let mut found = |place: &Range<usize>, stage| -> Arc<[u32]> {
            if !watch.is_on() {
                return reached.words(*memory, place, options_of_code);
            }
            // An observer receives all words and may change these words.
            watch.program(chip_program(*chip, stage, words(*memory, place))).words.into()
        };
        let words = found(&place, unit.program_stage());
        let fetch = match unit.stage {
            Stage::Vertex => state.place(reg::SQ_PGM_START_FS, 0),
            Stage::Pixel | Stage::Geometry => None,
        };
        let fetch = fetch.map(|place| (place.start, found(&place, program::Stage::Fetch)));
        state.reached = reached;
        let key = ProgramKey {
            words: words.clone(),
            fetch: fetch.as_ref().map(|(_, words)| words.clone()),
            stage: unit.stage,
            resources: state.word(unit.resources),
            clause_temps: (state.word(reg::SQ_GPR_RESOURCE_MGMT_1) >> 28) as u8,
            prefer_vector,
            options: *options,
        };
        let mut programs = take(&mut state.programs);
        // An observer receives complete resources.
        let numbers = numbers.filter(|_| !watch.is_on());
        let loaded = loaded(&mut programs, unit, context, key, numbers);
        context.state.programs = programs;
        let (loaded, environment, reads, resources) =
            loaded.map_err(|error| Fault::Trap(format!("{}: {error}", unit.name)))?;
        let state = &*context.state;
        let layout = |(id, _): (&u8, &VertexBuffer)| {
            state.resource(unit.first_resource + u32::from(*id)).map_or(0, |resource| resource.words[2])
        };
        let layouts = environment.resources.vertex_buffers.iter().map(layout).collect();
        let (place, options) = (place.start, context.options);
        Ok(Shader { unit, words, place, fetch, resources, layouts, loaded, environment, reads, options })
    }

    /// Prepares the shader for reuse: reads the constants and the vertices from memory again. Returns `false` if the
    /// program, a texture or the layout of a vertex buffer has changed. The caller must then create a new shader. The
    /// caller must also create a new shader if a register has changed on which the shader depends. The only exceptions
    /// are the registers of constant buffers, because this function reads these registers again.
    pub(super) fn renew(&mut self, context: &mut Context<'_, '_>, numbers: Option<Largest>) -> bool {
        let memory = context.memory;
        let holds = |place: usize, words: &[u32]| memory.holds_words(place, words);
        let Shader { place, fetch, .. } = &*self;
        if !holds(*place, &self.words) || fetch.as_ref().is_some_and(|(place, words)| !holds(*place, words)) {
            return false;
        }
        let (state, first) = (&mut *context.state, self.unit.first_resource);
        let environment = Arc::make_mut(&mut self.environment);
        let Resources { constant_buffers, vertex_buffers, textures, .. } = &mut environment.resources;
        let mut count = 0;
        for id in &self.resources.textures {
            let Some(found) = find_texture(state, first + u32::from(*id), memory) else { continue };
            count += 1;
            let same = found.zip(textures.get(id)).is_some_and(|(found, known)| known.is_same(&found));
            if !same {
                return false;
            }
        }
        if count != textures.len() {
            return false;
        }
        let mut layouts = self.layouts.iter();
        let bound = self.resources.buffers.iter().filter(|(id, _)| *id != RING);
        if bound.filter(|(id, _)| is_bound(self.unit, state, *id)).count() != vertex_buffers.len() {
            return false;
        }
        for (id, buffer) in vertex_buffers.iter_mut() {
            let read = self.resources.buffers.iter().find(|(read, _)| read == id);
            let Some((_, elements)) = read else { return false };
            let Some(resource) = state.resource(first + u32::from(*id)) else { return false };
            if layouts.next() != Some(&resource.words[2]) {
                return false;
            }
            let Some(range) = vertex_range(resource, elements.as_deref(), numbers) else { return false };
            let in_place = Arc::get_mut(&mut buffer.bytes).filter(|bytes| bytes.len() == range.len());
            if in_place.and_then(|bytes| memory.read(range.start, bytes)).is_none() {
                buffer.bytes = memory.bytes(range).into();
            }
        }
        for (bank, words) in constant_buffers.iter_mut().enumerate() {
            match constant_range(self.unit, state, bank, self.resources.constants[bank].saturating_mul(4)) {
                Some(range) => *words = memory.words(range),
                None => words.clear(),
            }
        }
        true
    }

    /// Returns the program in the form for observers.
    fn observed(&self) -> ChipProgram {
        let chip = self.environment.chip;
        chip_program(chip, self.unit.program_stage(), self.words.to_vec())
    }

    /// Returns the launch in the form that observers receive, without lanes and without registers of lanes.
    fn machine(&self) -> Machine {
        let mut launch = Launch::of(self.environment.clone(), 0, Vec::new());
        launch.environment_mut().resources.vertex_buffers.iter_mut().for_each(|(_, buffer)| shorten(buffer));
        Machine::R700(Box::new(launch))
    }

    /// Returns a recording of vertices. An element of `vertices` is the value of a vertex's first register. The four
    /// components are the index, zero, the number of the primitive, and the instance.
    pub(super) fn vertices(&self, vertices: &[[u32; 4]]) -> Recording {
        let vertices = vertices.iter().map(|[index, _, _, instance]| [*index, *instance]).collect();
        Recording::vertices(&self.observed(), self.machine(), self.options, vertices)
    }

    /// Returns a recording of the fragments of a draw, if the draw is captured.
    pub(super) fn fragments(&self, captured: Option<&mut Captured>, draw: &Draw) -> Option<Recording> {
        let captured = captured?;
        Some(Recording::fragments(&self.observed(), self.machine(), self.options, (captured, draw)))
    }

    /// Sets the bytes of the ring that the program reads.
    pub(super) fn set_ring(&mut self, state: &State, bytes: Vec<u8>) {
        let resource = state.resource(self.unit.first_resource + u32::from(RING));
        let mut words = resource.map_or([0; 7], |resource| resource.words);
        // The resource contains the size of the driver's ring, which wraps many times in a draw. In this model, the
        // ring must contain all records of the draw. Therefore, this code sets the largest possible size.
        words[1] = u32::MAX;
        let ring = VertexBuffer::from_resource(words, bytes);
        let environment = Arc::make_mut(&mut self.environment);
        environment.resources.vertex_buffers.insert(RING, ring);
        let loaded = self.loaded.with_environment(&self.environment);
        self.loaded = loaded.expect("the registers fit as before");
    }

    /// Returns the decoded program.
    pub(super) fn code(&self) -> &Code {
        self.loaded.codes().0
    }

    /// Returns a mask of the components of a register that the program reads. Bit n stands for component n.
    pub(super) fn reads(&self, gpr: u8) -> u8 {
        self.reads.registers[usize::from(gpr) & 127]
    }

    /// Returns the texels that the program copies. Returns `None` if the program does more than copy texels. `others`
    /// contains the registers that are not interpolated inputs.
    pub(super) fn copied(&self, others: &[u8]) -> Option<CopiedTexels> {
        let TexelRead { resource, select, axes, level, sampler } = self.reads.texel.as_ref()?;
        let resources = &self.environment.resources;
        let texture = resources.textures.get(resource)?;
        let (number, normalised) = match sampler {
            None => (0, false),
            Some((id, normalised)) => {
                let sampler = resources.samplers.get(id)?.sampler;
                let sampler = Sampler { unnormalised: !normalised, ..sampler };
                (Plan::new(&texture.image, &sampler).nearest_level()?, *normalised)
            }
        };
        let place = |(gpr, chan): &(u8, u8)| {
            (!others.contains(gpr)).then_some((usize::from(*gpr), usize::from(*chan)))
        };
        let axes = [place(&axes[0])?, place(&axes[1])?];
        let zeros = level.iter().map(place).collect::<Option<_>>()?;
        let select = select.map(|select| match select {
            Select::Word(word) => Select::Word(word),
            Select::Component(component) => match texture.select[usize::from(component & 3)] {
                Component::Texel(component) => Select::Component(component),
                Component::Word(word) => Select::Word(word),
            },
        });
        copied::texels(&texture.image, number, select, copied::Coordinates { axes, zeros }, normalised)
    }

    /// Returns whether lanes with equal inputs have equal results.
    pub(super) fn is_uniform(&self) -> bool {
        self.reads.is_plain
    }

    /// Runs the program on fragments. The columns contain the initial values of the fragments' registers. An empty
    /// column reads as zeros. If the caller passes a recording, adds the lanes to the recording. `outcome` receives the
    /// results.
    ///
    /// # Errors
    /// See [`Shader::run`].
    pub(super) fn run_fragments(
        &self,
        outcome: &mut Outcome,
        registers: Vec<Columns>,
        recording: Option<&mut Recording>,
        fragments: &Fragments,
    ) -> Result<(), Fault> {
        let lanes = fragments.lanes;
        if recording.is_some() {
            let whole = |columns: &Columns| input(columns.gpr, interleaved(&columns.components, lanes));
            let inputs = registers.iter().map(whole).collect();
            return self.run(outcome, lanes, inputs, recording, Some(fragments));
        }
        let read = Some(self.reads.components.clone());
        let launch = Launch::of_columns(self.environment.clone(), lanes, registers, read);
        self.loaded.run_in(outcome, Launch { reports: false, ..launch }).map_err(|error| self.fault(error))
    }

    fn fault(&self, error: RunError) -> Fault {
        match error {
            RunError::Trap(trap) => Fault::Trap(format!("{}: {trap}", self.unit.name)),
            other => Fault::Trap(format!("{}: {other}", self.unit.name)),
        }
    }

    /// Runs the program on lanes with these registers. If there is a recording, adds the lanes and the pixels of
    /// `fragments` to the recording. `outcome` receives the results.
    ///
    /// # Errors
    /// Returns a fault if the program traps or exceeds the maximum number of instructions.
    pub(super) fn run(
        &self,
        outcome: &mut Outcome,
        lanes: usize,
        inputs: Vec<Input>,
        mut recording: Option<&mut Recording>,
        fragments: Option<&Fragments>,
    ) -> Result<(), Fault> {
        if let Some(recording) = &mut recording {
            let inputs = inputs.iter().map(|input| (input.gpr.into(), 4, input.values.as_flattened()));
            recording.start(lanes, inputs, fragments);
        }
        // The list of components is complete only if fetches are the program's only memory accesses.
        let read = self.reads.is_plain.then(|| self.reads.components.clone());
        let launch = Launch { read, reports: false, ..Launch::of(self.environment.clone(), lanes, inputs) };
        self.loaded.run_in(outcome, launch).map_err(|error| self.fault(error))?;
        if let Some(recording) = recording {
            let exports = outcome.exports.iter().map(|export| {
                (export.name(), Rows { width: 4, words: export.values.as_flattened().to_vec() })
            });
            recording.end(exports, outcome.killed.iter().copied());
        }
        Ok(())
    }
}

/// Removes the zeros at the end of a buffer. Reads past the end of a buffer return zero, so the removal does not change
/// any result. Drivers store the vertices of many draws in one large buffer. The function keeps the first 16 bytes of
/// the zeros. Therefore, the last element with a value other than zero is complete.
fn shorten(buffer: &mut VertexBuffer) {
    const KEPT: usize = 16;
    if !buffer.nan_outside {
        let used = buffer.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        buffer.bytes = buffer.bytes[..buffer.bytes.len().min(used + KEPT)].into();
    }
}

/// Returns the initial values of a register as an input.
pub(super) fn input(gpr: u8, values: impl Into<Arc<[[u32; 4]]>>) -> Input {
    Input { gpr, values: values.into() }
}

fn chip_program(chip: Chip, stage: program::Stage, words: Vec<u32>) -> ChipProgram {
    ChipProgram { isa: Isa::R700, chip: chip.name, stage, words, base: 0, state: Vec::new() }
}

/// A lowered program, the environment of the program, and the components and resources that the program may read. The
/// program may have been lowered for a different environment. In this case, lowering for this environment has the same
/// result.
type LoadedProgram = (Loaded, Arc<Environment>, Arc<ComponentsRead>, Arc<ResourcesRead>);

/// Returns the lowered program with this key, and the resources of the program.
fn loaded(
    programs: &mut Kept<ProgramKey, KeptProgram>,
    unit: Unit,
    context: &mut Context<'_, '_>,
    key: ProgramKey,
    numbers: Option<Largest>,
) -> Result<LoadedProgram, LaunchError> {
    let bare = Environment::new(context.chip, unit.stage);
    let (options, bare) = (context.options, bare_environment(bare, &key));
    let (_, program) = programs.get(
        |known| *known == key,
        || {
            let program = Program::from_words(key.words.to_vec());
            let decoded = Loaded::new(&program, &bare.clone().into(), &options)?;
            Ok((key.clone(), KeptProgram::new(decoded)))
        },
    )?;
    let mut environment = bare;
    environment.base_instance = context.state.first_instance();
    drop_stale(program, unit, context.state, context.memory);
    environment.resources = resources(unit, context, &program.resources, numbers);
    let environment = Arc::new(environment);
    let (_, lowered) = program.lowered.get(
        |known| known.lowers_alike(&environment),
        || {
            let known = Arc::new(without_contents(&environment));
            Ok::<_, LaunchError>((known.clone(), program.decoded.with_environment(&known)?))
        },
    )?;
    Ok((lowered.clone(), environment, program.reads.clone(), program.resources.clone()))
}

/// Returns `None` if no resource has this number. Returns `Some(None)` if the texture of the resource is not in the
/// cache, or if the bytes of the texture in memory have changed. Otherwise, returns the cached texture.
fn find_texture(state: &mut State, resource: u32, memory: Vram<'_>) -> Option<Option<Texture>> {
    let resource = state.resource(resource).cloned()?;
    Some(texture::find(&mut state.images, &resource, memory))
}

/// Drops the lowered forms of `program` that refer to an image whose bytes in memory have changed. If only these
/// lowered forms referred to the image, the cache can then update the image. For the update, the cache reads only the
/// changed parts of the image's bytes.
fn drop_stale(program: &mut KeptProgram, unit: Unit, state: &mut State, memory: Vram<'_>) {
    let stale = program.resources.textures.iter().any(|id| {
        let found = find_texture(state, unit.first_resource + u32::from(*id), memory);
        found.is_some_and(|found| found.is_none())
    });
    if stale {
        let is_kept = |texture: &Texture| state.images.has(|image| image.is_same(texture));
        program.lowered.retain(|known| known.resources.textures.iter().all(|(_, texture)| is_kept(texture)));
    }
}

/// Returns the environment of a program, without resources.
fn bare_environment(mut environment: Environment, key: &ProgramKey) -> Environment {
    environment.set_pgm_resources(key.resources);
    environment.clause_temps = key.clause_temps;
    environment.prefer_vector = key.prefer_vector;
    let fetch = key.fetch.as_ref().map(|words| FetchProgram { words: words.clone(), start: 0 });
    environment.fetch_program = fetch;
    environment
}

/// Returns the environment without the contents of buffers. Lowering does not depend on these contents.
fn without_contents(environment: &Environment) -> Environment {
    let mut bare = environment.clone();
    bare.resources.constant_buffers = Default::default();
    bare.resources.vertex_buffers.iter_mut().for_each(|(_, buffer)| buffer.bytes = Arc::default());
    bare
}

/// Returns the range in memory of a constant buffer, up to `read` bytes. Returns `None` if the range is empty.
fn constant_range(unit: Unit, state: &State, bank: usize, read: usize) -> Option<Range<usize>> {
    if read == 0 {
        return None;
    }
    let size = read.min(state.nth(unit.const_sizes, bank) as usize * 256);
    let place = state.place(unit.const_caches, bank).filter(|_| size > 0)?;
    Some(place.start..place.end.min(place.start + size))
}

/// Returns whether a vertex buffer is bound.
fn is_bound(unit: Unit, state: &State, id: u8) -> bool {
    state.resource(unit.first_resource + u32::from(id)).is_some_and(|buffer| !buffer.buffers.is_empty())
}

/// Returns the range of a vertex buffer that the vertices may read. `numbers` has the largest index and the largest
/// instance of the vertices. Returns `None` if the buffer had no relocation.
fn vertex_range(
    buffer: &Resource,
    elements: Option<&[Element]>,
    numbers: Option<Largest>,
) -> Option<Range<usize>> {
    let place = buffer.buffers.first()?;
    let start = place.start as u64 + (u64::from(buffer.words[0]) | u64::from(buffer.words[2] & 0xff) << 32);
    let start = usize::try_from(start).unwrap_or(usize::MAX).min(place.end);
    let mut size = (buffer.words[1] as usize).saturating_add(1);
    if let (Some(elements), Some(numbers)) = (elements, numbers) {
        let stride = (buffer.words[2] >> 8 & 0x7ff) as usize;
        let reached = elements.iter().map(|element| element.end(numbers, stride)).max();
        size = size.min(reached.unwrap_or(0));
    }
    Some(start..place.end.min(start.saturating_add(size)))
}

/// Returns the resources that the program of a stage may read.
fn resources(
    unit: Unit,
    context: &mut Context<'_, '_>,
    reads: &ResourcesRead,
    numbers: Option<Largest>,
) -> Resources {
    let memory = context.memory;
    let observed = context.watch.is_on();
    let state = &mut *context.state;
    let mut all = Resources::default();
    for (bank, read) in reads.constants.iter().enumerate() {
        // An observer receives complete buffers.
        let read = if observed { usize::MAX } else { read.saturating_mul(4) };
        if let Some(range) = constant_range(unit, state, bank, read) {
            all.constant_buffers[bank] = memory.words(range);
        }
    }
    for number in 0..32 {
        all.loop_constants[number] = LoopConstant(state.loop_constant(unit.first_loop + number));
    }
    for (id, elements) in reads.buffers.iter().filter(|(id, _)| *id != RING) {
        if let Some(buffer) = state.resource(unit.first_resource + u32::from(*id)) {
            let Some(range) = vertex_range(buffer, elements.as_deref(), numbers) else { continue };
            all.vertex_buffers.insert(*id, VertexBuffer::from_resource(buffer.words, memory.bytes(range)));
        }
    }
    for id in &reads.textures {
        let Some(resource) = state.resource(unit.first_resource + u32::from(*id)).cloned() else { continue };
        match texture::texture(&mut state.images, (&resource, state.errata), memory) {
            Ok(found) => {
                all.textures.insert(*id, found);
            }
            Err(what) => state.unknown.note(what),
        }
    }
    for id in &reads.samplers {
        let border = [0, 1, 2, 3].map(|chan| state.nth(unit.borders, 4 * usize::from(*id) + chan));
        let words = state.sampler(unit.first_sampler + u32::from(*id));
        let cube_wrap = state.word(reg::TA_CNTL_AUX) & 1 == 0;
        all.samplers.insert(*id, texture::sampler(words, border, cube_wrap));
    }
    all
}
