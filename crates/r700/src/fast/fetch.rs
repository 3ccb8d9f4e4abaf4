//! Runs fetch clauses: texture instructions on whole rows, the others by the reference interpreter.

use reconverge_simt::texture::Image;
use reconverge_simt::texture::rows::{Positions, Read, lods_of_differences, lods_of_gradients, members};
use reconverge_simt::wide::Wide;
use reconverge_simt::{Event, Mask, Observer, Path, Trap};

use super::lanes::{ACTIVE, Lanes};
use super::lower::{Bound, Chosen, Fetches, Sample, Texture, TextureWork};
use super::run::{Issued, Runner};
use crate::cause::Cause;
use crate::chip::LANES;
use crate::flow::{Before, Changes};
use crate::lane;
use crate::launch::Launch;
use crate::reference::texture::{Lod, load};
use crate::wave::{At, Held, Values, Wave};

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
        issued.count(1, active);
        if O::PATHS {
            observer.path(Path::Block, 1);
        }
        if O::ENABLED {
            observer.event(Event::Issue { pc, mask: active });
        }
        let before = Before::of::<O>(&wave.flow, Changes::Flow);
        let lanes =
            wave.flow.test(&clause.control).map_err(|fault| wave.trap(pc, active, fault.into(), observer))?;
        if lanes.any() {
            before.announce(&wave.flow, observer);
            wave.acknowledges += u32::from(clause.acknowledged);
            wave.held = Held::default();
            for number in 0..clause.count {
                let place = (clause.first + number) as usize;
                let info = &self.lowered().fetches[place];
                let texture = info.texture.as_ref().filter(|texture| !traps(texture, wave));
                let Some(texture) = texture else {
                    issued.settle(wave);
                    wave.at = At::Fetch(number as usize, lanes);
                    self.by_reference(wave, observer)?;
                    if wave.at == At::ControlFlow {
                        return Ok(());
                    }
                    wave.at = At::ControlFlow;
                    continue;
                };
                issued.count(1, lanes);
                if O::PATHS {
                    observer.path(Path::Block, 1);
                }
                if O::ENABLED {
                    observer.event(Event::Issue { pc: info.addr, mask: lanes });
                }
                self.count_fetch(place);
                self.texture(wide, wave, texture, lanes);
            }
            let before = Before::of::<O>(&wave.flow, Changes::All);
            leave(wave, end);
            before.announce(&wave.flow, observer);
        } else {
            leave(wave, end);
            before.announce(&wave.flow, observer);
        }
        Ok(())
    }

    /// A texture instruction on these lanes.
    fn texture<W: Wide>(&mut self, wide: W, wave: &mut Wave, texture: &Texture, lanes: Mask) {
        let lanes = if texture.whole_quad { wave.whole_quads(lanes) } else { lanes };
        let rows = &mut self.lanes;
        let [x, y, z, w] = texture.src;
        let src = [rows.row(x), rows.row(y), rows.row(z), rows.row(w)];
        let mut values = [[0; LANES]; 4];
        match &texture.work {
            TextureWork::Sample(sample) => {
                let image = image(&wave.launch, sample.bound);
                sample_rows(wide, sample, image, &src, &wave.held, lanes.0, &mut values);
            }
            TextureWork::Load(bound, offset) => {
                let image = image(&wave.launch, *bound);
                for lane in members(lanes.0) {
                    let texel = load(image, src.map(|row| row[lane]), *offset);
                    (0..4).for_each(|chan| values[chan][lane] = texel[chan]);
                }
            }
            TextureWork::Gradients(step) => {
                for chan in 0..4 {
                    for lane in 0..LANES {
                        let first = lane & !3;
                        values[chan][lane] = lane::add(src[chan][first + step], lane::neg(src[chan][first]));
                    }
                }
            }
            TextureWork::SetGradients(direction) => {
                wave.held.gradients[*direction] = Some(Box::new(src.map(|row| *row)));
                return;
            }
        }
        write(wide, rows, texture, &values, lanes);
    }
}

/// Whether the instruction traps: the reference interpreter says how.
fn traps(texture: &Texture, wave: &Wave) -> bool {
    let missing = |sample: &Sample| {
        sample.kind.lod == Lod::Gradients && wave.held.gradients.iter().any(Option::is_none)
    };
    matches!(&texture.work, TextureWork::Sample(sample) if missing(sample)) && wave.strict()
}

/// Goes to the next control-flow instruction, or ends the program.
fn leave(wave: &mut Wave, end: bool) {
    wave.flow.nop();
    if end {
        wave.flow.end_of_program();
    }
}

fn image(launch: &Launch, bound: Bound) -> &Image {
    let resources = if bound.alternate { &launch.alternate } else { &launch.resources };
    &resources.textures[&bound.id].image
}

/// SAMPLE and its kin: as `Wave::read_texture`, on rows.
fn sample_rows<W: Wide>(
    wide: W,
    sample: &Sample,
    image: &Image,
    src: &[&[u32; LANES]; 4],
    held: &Held,
    lanes: u64,
    values: &mut Values,
) {
    let Sample { plan, sampler, kind, .. } = sample;
    let [x, y, z, w] = *src;
    let read = if sample.gathers {
        Read::Gather
    } else if kind.compare {
        Read::Compare(sample.state.compare, src[kind.reference_component()])
    } else if sample.integer {
        Read::Bits
    } else {
        Read::Floats
    };
    let mut lods = [0; LANES];
    if plan.needs_lod(read) {
        lods = match kind.lod {
            Lod::Quad => lods_of_differences(image, sampler, [x, y, z], lanes),
            Lod::Gradients => {
                let nothing = [[0; LANES]; 4];
                let [h, v] = held.gradients.each_ref().map(|loaded| loaded.as_deref().unwrap_or(&nothing));
                lods_of_gradients(image, sampler, [h, v].map(|rows| [&rows[0], &rows[1], &rows[2]]), lanes)
            }
            Lod::Register => *w,
            Lod::Zero => [0; LANES],
        };
        for lane in 0..LANES {
            let biased = if kind.biased { f32::from_bits(w[lane]) } else { 0.0 };
            lods[lane] = (f32::from_bits(lods[lane]) + sample.bias + biased).to_bits();
        }
    }
    let at = Positions { coordinates: [x, y, z], layer: z, offset: sample.offset, lod: &lods };
    plan.read(wide, image, read, &at, lanes, values);
}

/// Writes what DST_SEL chooses.
fn write<W: Wide>(wide: W, rows: &mut Lanes<'_>, texture: &Texture, values: &Values, lanes: Mask) {
    rows.sets[usize::from(ACTIVE)].choose(wide, lanes.0);
    for (place, chosen) in texture.dst.iter().flatten() {
        match chosen {
            Chosen::Component(component) => rows.write(wide, *place, ACTIVE, &values[*component]),
            Chosen::Word(word) => rows.write(wide, *place, ACTIVE, &[*word; LANES]),
        }
    }
}
