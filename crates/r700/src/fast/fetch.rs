//! Runs fetch clauses on whole rows. This module runs the texture instructions. [`super::memory`] runs the other fetch
//! instructions.

use reconverge_simt::level::Task;
use reconverge_simt::texture::anisotropy::Gradients;
use reconverge_simt::texture::rows::{
    FlatRows, Positions, Read, Texel, lods_of_differences, lods_of_gradients,
};
use reconverge_simt::texture::{Image, Sampler, Shape, lod_of_gradients};
use reconverge_simt::wide::Wide;
use reconverge_simt::{Event, Mask, Observer, Path, Trap};

use super::counts::Issued;
use super::lanes::{ACTIVE, Place};
use super::lower::{Bound, Chosen, FetchWork, Fetches, Fetching, Register, Sample};
use super::runner::Runner;
use crate::cause::Cause;
use crate::chip::LANES;
use crate::control::Lod;
use crate::flow::{Before, Changes};
use crate::lane;
use crate::launch::Launch;
use crate::reference::texture::{clamp, gradients_of_lane};
use crate::texture::{Component, Texture};
use crate::wave::{At, Held, Values, Wave};

/// A call of [`Runner::fetching`], compiled for each instruction set level.
struct Fetch<'a, 'b> {
    runner: &'a mut Runner<'b>,
    wave: &'a mut Wave,
    fetching: &'a Fetching,
    lanes: Mask,
}

impl Task for Fetch<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> bool {
        self.runner.fetching(wide, self.wave, self.fetching, self.lanes)
    }
}

impl Runner<'_> {
    /// Runs a fetch clause.
    pub(super) fn fetch_clause<W: Wide, O: Observer>(
        &mut self,
        wide: W,
        wave: &mut Wave,
        issued: &mut Issued,
        (clause, end): (&Fetches, bool),
        observer: &mut O,
    ) -> Result<(), Trap<Cause>> {
        let (pc, active) = (wave.flow.pc(), wave.flow.active());
        issued.alone(pc, active, observer);
        let mut before = Before::of::<O>(&wave.flow, Changes::Flow);
        let lanes =
            wave.flow.test(&clause.control).map_err(|fault| wave.trap(pc, active, fault.into(), observer))?;
        if lanes.any() {
            before.announce(&mut wave.flow, observer);
            wave.acknowledges += u32::from(clause.acknowledged);
            wave.held = Held::default();
            for number in 0..clause.count {
                let place = (clause.first + number) as usize;
                let info = &self.lowered.fetches[place];
                let fetching = info.fetching.as_ref();
                let run =
                    |fetching| wide.call(Fetch { runner: &mut *self, wave: &mut *wave, fetching, lanes });
                if !fetching.is_some_and(run) {
                    issued.settle(wave);
                    wave.at = At::Fetch(number as usize, lanes);
                    self.by_reference(wave, observer)?;
                    if wave.at == At::ControlFlow {
                        return Ok(());
                    }
                    wave.at = At::ControlFlow;
                    continue;
                }
                issued.count(1, lanes);
                if O::PATHS {
                    observer.path(Path::Block, 1);
                }
                if O::ENABLED {
                    observer.event(Event::Issue { pc: info.addr, mask: lanes });
                }
                self.counts.fetches[place] += 1;
            }
            before = Before::of::<O>(&wave.flow, Changes::All);
        }
        wave.flow.nop();
        if end {
            wave.flow.end_of_program();
        }
        before.announce(&mut wave.flow, observer);
        Ok(())
    }

    /// Runs and counts a fetch clause. The clause must contain only texture instructions whose registers exist.
    #[inline(always)]
    pub(super) fn sample<W: Wide>(&mut self, wide: W, wave: &mut Wave, clause: &Fetches, lanes: Mask) {
        wave.held = Held::default();
        for place in clause.first as usize..(clause.first + clause.count) as usize {
            if let Some(fetching) = &self.lowered.fetches[place].fetching {
                wide.call(Fetch { runner: &mut *self, wave: &mut *wave, fetching, lanes });
            }
            self.counts.fetches[place] += 1;
        }
    }

    /// Runs a fetch instruction for the lanes `lanes`. If the instruction traps or accesses memory out of bounds, this
    /// function changes nothing and returns `false`. The reference interpreter must then run the instruction.
    #[inline(always)]
    fn fetching<W: Wide>(&mut self, wide: W, wave: &mut Wave, fetching: &Fetching, lanes: Mask) -> bool {
        let lanes = if fetching.whole_quad { wave.whole_quads(lanes) } else { lanes };
        match &fetching.work {
            FetchWork::Nothing => true,
            FetchWork::Vertex(vertex) => self.vertex(wide, wave, fetching, vertex, lanes),
            FetchWork::Read(reads) => self.memory_read(wide, wave, fetching, reads, lanes),
            FetchWork::ShareWrite(high) => self.share_write(wave, fetching, high, lanes),
            FetchWork::ShareRead(high) => self.share_read(wide, wave, fetching, high, lanes),
            FetchWork::Sample(sample) => {
                if traps(fetching, wave) {
                    return false;
                }
                let left = self.flat(wide, sample, lanes);
                !left.any() || self.texture(wide, wave, fetching, left).is_some()
            }
            FetchWork::Load(..) | FetchWork::Gradients(_) | FetchWork::SetGradients(_) => {
                self.texture(wide, wave, fetching, lanes).is_some()
            }
        }
    }

    /// Runs a frequent kind of sample on a fast path. Returns the lanes that this path cannot sample.
    #[inline(always)]
    fn flat<W: Wide>(&mut self, wide: W, sample: &Sample, lanes: Mask) -> Mask {
        let Some(flat) = &sample.flat else { return lanes };
        let cells = self.lanes.frame.cells();
        let row = |place: Option<Place>| place.map(|place| cells.row(place));
        let ([s, t], [r, g, b, a], [dx, dy, _]) = (flat.coordinates, flat.texels, sample.offset);
        let rows = FlatRows {
            coordinates: [cells.row(s), cells.row(t)],
            offset: [dx, dy],
            texels: [row(r), row(g), row(b), row(a)],
            lanes: lanes.0,
        };
        let left = sample.plan.read_flat(wide, &flat.image, &rows);
        for (place, word) in &flat.words {
            wide.write(&mut self.lanes.frame.row_mut(*place).0, &[*word; LANES], lanes.0 & !left);
        }
        Mask(left)
    }

    /// Runs a texture instruction for the lanes `lanes`. Returns `None` if a register does not exist.
    #[inline(always)]
    fn texture<W: Wide>(&mut self, wide: W, wave: &mut Wave, fetching: &Fetching, lanes: Mask) -> Option<()> {
        let [x, y, z, w] = self.places(wave, &fetching.src[0])?;
        let dst = self.targets(wave, &fetching.dst[0])?;
        let rows = &mut self.lanes;
        let src = [rows.row(x), rows.row(y), rows.row(z), rows.row(w)];
        let mut values = [[0; LANES]; 4];
        match &fetching.work {
            FetchWork::Sample(sample) => {
                let texture = texture(&wave.launch, sample.bound);
                sample_rows(wide, sample, texture, &src, &wave.held, lanes.0, &mut values);
                select(texture, &mut values);
            }
            FetchWork::Load(load) => {
                let texture = texture(&wave.launch, load.bound);
                let numbers = [0, 1, 2].map(|axis| if load.axes[axis] { src[axis] } else { &ZERO });
                let at = Texel { numbers, offset: load.offset, level: src[3] };
                load.plan.fetch(wide, &texture.image, &at, lanes.0, &mut values);
                select(texture, &mut values);
            }
            FetchWork::Gradients(step) => {
                for (values, src) in values.iter_mut().zip(src) {
                    // For each quad, copies the words of two of its lanes to all four lanes. With these copies, the
                    // loop over lanes vectorises.
                    let (mut from, mut to) = ([0; LANES], [0; LANES]);
                    for (quad, src) in src.as_chunks::<4>().0.iter().enumerate() {
                        from[4 * quad..][..4].copy_from_slice(&[src[0]; 4]);
                        to[4 * quad..][..4].copy_from_slice(&[src[*step & 3]; 4]);
                    }
                    for lane in 0..LANES {
                        values[lane] = lane::add(to[lane], lane::neg(from[lane]));
                    }
                }
            }
            FetchWork::SetGradients(direction) => {
                wave.held.gradients[*direction] = Some(Box::new(src.map(|row| *row)));
                return Some(());
            }
            _ => unreachable!("texture instructions only"),
        }
        self.write_chosen(wide, &dst, &values, lanes);
        Some(())
    }

    /// Returns the current rows of registers, or `None` if one of the registers does not exist.
    #[inline(always)]
    pub(super) fn places<const N: usize>(
        &self,
        wave: &Wave,
        registers: &[Register; N],
    ) -> Option<[Place; N]> {
        let mut places = [Place::FIRST; N];
        for (place, register) in places.iter_mut().zip(registers) {
            *place = register.place(wave, &self.lowered.layout)?;
        }
        Some(places)
    }

    /// Returns the current rows of a result's components, or `None` if a register does not exist.
    #[inline(always)]
    pub(super) fn targets(
        &self,
        wave: &Wave,
        registers: &[Option<(Register, Chosen)>; 4],
    ) -> Option<Targets> {
        let mut targets = [None; 4];
        for (target, chosen) in targets.iter_mut().zip(registers) {
            if let Some((register, chosen)) = chosen {
                *target = Some((register.place(wave, &self.lowered.layout)?, *chosen));
            }
        }
        Some(targets)
    }

    /// Writes the components that DST_SEL selects.
    #[inline(always)]
    pub(super) fn write_chosen<W: Wide>(&mut self, wide: W, dst: &Targets, values: &Values, lanes: Mask) {
        let rows = &mut self.lanes;
        rows.sets[usize::from(ACTIVE)] = lanes;
        for (place, chosen) in dst.iter().flatten() {
            match chosen {
                Chosen::Component(component) => rows.write(wide, *place, ACTIVE, &values[*component]),
                Chosen::Word(word) => rows.write(wide, *place, ACTIVE, &[*word; LANES]),
            }
        }
    }
}

/// A row of zeros.
static ZERO: [u32; LANES] = [0; LANES];

/// Destination row and source of each component of a result.
pub(super) type Targets = [Option<(Place, Chosen)>; 4];

/// Returns whether the instruction traps. If the instruction traps, the reference interpreter runs the instruction and
/// reports the trap.
fn traps(fetching: &Fetching, wave: &Wave) -> bool {
    let missing = |sample: &Sample| {
        sample.kind.lod == Lod::Gradients && wave.held.gradients.iter().any(Option::is_none)
    };
    matches!(&fetching.work, FetchWork::Sample(sample) if missing(sample)) && wave.strict()
}

fn texture(launch: &Launch, bound: Bound) -> &Texture {
    let resources = launch.environment.bound(bound.alternate);
    &resources.textures[&bound.id]
}

/// Selects the components of `values` that the resource's DST_SEL names.
fn select(texture: &Texture, values: &mut Values) {
    if texture.select == Component::ALL {
        return;
    }
    let read = *values;
    for (values, component) in values.iter_mut().zip(texture.select) {
        *values = match component {
            Component::Texel(component) => read[usize::from(component & 3)],
            Component::Word(word) => [word; LANES],
        };
    }
}

/// Runs SAMPLE and its variants on rows. `Wave::read_texture` computes the same result for each lane.
fn sample_rows<W: Wide>(
    wide: W,
    sample: &Sample,
    texture: &Texture,
    src: &[&[u32; LANES]; 4],
    held: &Held,
    lanes: u64,
    values: &mut Values,
) {
    let Sample { plan, sampler, kind, .. } = sample;
    let (image, [x, y, z, w]) = (&texture.image, *src);
    let clamped: [u32; LANES];
    let read = if sample.gathers {
        Read::Gather
    } else if kind.compare {
        let mut reference = src[kind.reference_component()];
        if texture.fractions {
            clamped = reference.map(|bits| clamp(f32::from_bits(bits)).to_bits());
            reference = &clamped;
        }
        Read::Compare(sample.state.compare, reference)
    } else if sample.integer {
        Read::Bits
    } else {
        Read::Floats
    };
    let mut lods = [0; LANES];
    if plan.needs_lod(read) {
        lods = match kind.lod {
            Lod::Quad => {
                let mut lods = lods_of_differences(wide, image, sampler, [x, y, z], lanes);
                if matches!(image.shape(), Shape::Cube | Shape::CubeArray) {
                    lods_of_several_faces(image, sampler, [x, y, z], &mut lods);
                }
                lods
            }
            Lod::Gradients => {
                let nothing = [[0; LANES]; 4];
                let [h, v] = held.gradients.each_ref().map(|loaded| loaded.as_deref().unwrap_or(&nothing));
                lods_of_gradients(
                    wide,
                    image,
                    sampler,
                    [h, v].map(|rows| [&rows[0], &rows[1], &rows[2]]),
                    lanes,
                )
            }
            Lod::Register => *w,
            Lod::Zero => [0; LANES],
        };
        for lane in 0..LANES {
            let biased = if kind.biased { f32::from_bits(w[lane]) } else { 0.0 };
            lods[lane] = (f32::from_bits(lods[lane]) + sample.bias + biased).to_bits();
        }
    }
    let (coordinates, layer) = ([x, y, z], z);
    let plain = Positions { coordinates, layer, offset: sample.offset, lod: &lods };
    if matches!(image.shape(), Shape::Cube | Shape::CubeArray) {
        let (directions, mut layer) = directions(coordinates);
        if let Some(index) = &held.cubemap_index {
            layer = **index;
        }
        let at = Positions { coordinates: directions.each_ref(), layer: &layer, ..plain };
        read_along(wide, sample, image, read, &at, (src, held, lanes), values);
    } else {
        read_along(wide, sample, image, read, &plain, (src, held, lanes), values);
    }
}

/// Reads the image. For anisotropic filters, this function uses the coordinate gradients that the instruction provides.
#[inline(always)]
fn read_along<W: Wide>(
    wide: W,
    sample: &Sample,
    image: &Image,
    read: Read<'_, LANES>,
    at: &Positions<'_, LANES>,
    (src, held, lanes): (&[&[u32; LANES]; 4], &Held, u64),
    values: &mut Values,
) {
    let Sample { plan, sampler, kind, .. } = sample;
    if matches!(kind.lod, Lod::Register | Lod::Zero) {
        return plan.read(wide, image, read, at, lanes, values);
    }
    let gradients = |lane| gradients(image, kind.lod, src, held, lane);
    plan.read_along(wide, image, read, (at, lanes), (sampler, gradients), values);
}

/// Returns the gradients of a lane's coordinates.
#[inline(never)]
fn gradients(image: &Image, lod: Lod, src: &[&[u32; LANES]; 4], held: &Held, lane: usize) -> Gradients {
    if lod == Lod::Gradients {
        let loaded = held.gradients.each_ref().map(Option::as_deref);
        let of_lane = |rows: &Values| [0, 1, 2].map(|axis| f32::from_bits(rows[axis][lane]));
        return loaded.map(|rows| rows.map_or([0.0; 3], of_lane));
    }
    let of_lane = |lane: usize| [0, 1, 2].map(|axis| f32::from_bits(src[axis][lane]));
    let [x, y, z] = of_lane(lane);
    gradients_of_lane(image, [x, y, z, 0.0], [0, 1, 2].map(|place| of_lane((lane & !3) + place)))
}

/// Computes the levels of detail in quads whose lanes are on several faces of a cube. The function computes one lane
/// after another.
fn lods_of_several_faces(
    image: &Image,
    sampler: &Sampler,
    rows: [&[u32; LANES]; 3],
    lods: &mut [u32; LANES],
) {
    for first in (0..LANES).step_by(4) {
        // CUBE computes faces as whole numbers, so equal faces have equal bits.
        if rows[2][first..first + 4].iter().all(|face| *face == rows[2][first]) {
            continue;
        }
        let coordinates = |lane: usize| rows.map(|row| f32::from_bits(row[lane]));
        let quad = [first, first + 1, first + 2].map(coordinates);
        for lane in first..first + 4 {
            let [x, y, z] = coordinates(lane);
            let [dx, dy] = gradients_of_lane(image, [x, y, z, 0.], quad);
            lods[lane] = lod_of_gradients(image, sampler, dx, dy).to_bits();
        }
    }
}

/// Returns the directions that a cube's coordinates denote, and the numbers of the array elements. Computes
/// [`position`](crate::reference::texture::position) on rows.
#[inline(always)]
fn directions([x, y, z]: [&[u32; LANES]; 3]) -> ([[u32; LANES]; 3], [u32; LANES]) {
    let (mut directions, mut elements) = ([[0; LANES]; 3], [0; LANES]);
    let [xs, ys, zs] = &mut directions;
    for lane in 0..LANES {
        let [x, y, z] = [x, y, z].map(|row| f32::from_bits(row[lane]));
        // Adding 2^23 rounds the value to an integer, ties to even, because floats from 2^23 on have no fractions. A
        // NaN becomes 0.
        let clamped = if z > 0.0 { z.min(65_535.0) } else { 0.0 };
        let number = (clamped + 8_388_608.0).to_bits() & 0x007f_ffff;
        let (face, element) = (number % 8, number / 8);
        let (sc, tc) = ((x - 1.5) * 2.0, (y - 1.5) * 2.0);
        // Each axis has two faces, and the second face is on the negative side of the axis. Face numbers above 5 mean
        // the last face.
        let (axis, below) = (face / 2, face % 2 != 0 || face > 5);
        let (major, along_s, along_t) = if below { (-1.0, -sc, -tc) } else { (1.0, sc, tc) };
        let [x, y, z] = match axis {
            0 => [major, -tc, -along_s],
            1 => [sc, major, along_t],
            _ => [along_s, -tc, major],
        };
        (xs[lane], ys[lane], zs[lane]) = (x.to_bits(), y.to_bits(), z.to_bits());
        elements[lane] = (element as f32).to_bits();
    }
    (directions, elements)
}
