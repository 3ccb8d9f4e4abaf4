//! One experiment: what is changed when, chosen by seed and number alone; the run from there on; what became of it.

use reconverge_simt::course::Follower;
use reconverge_simt::random::Random;
use reconverge_simt::{Lane, Watch};
use reconverge_workbench::Error as LaunchError;
use reconverge_workbench::array::Array;
use reconverge_workbench::faults::{Kind, Word};
use reconverge_workbench::session::{SpaceOf, Stepping};

use crate::file::{Model, Site};
use crate::point::{Area, Point};

reconverge_isa::choices! {
    /// The outcome of an experiment.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Outcome {
        /// The same instructions for the same lanes, and the same outputs.
        Masked = "masked",
        /// Other instructions or lanes, and the same outputs.
        Diverged = "diverged",
        /// Other outputs: silent data corruption.
        Sdc = "sdc",
        /// The program trapped.
        Trap = "trap",
        /// A group used up its fuel.
        Hang = "hang",
    }
}

/// What an experiment did, and what became of it: a row of the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its number.
    pub index: u64,
    /// The point of the sweep.
    pub point: u32,
    /// What was changed.
    pub site: Site,
    /// How.
    pub model: Model,
    /// Instructions that the launch had issued before the change.
    pub step: u64,
    /// The group that was next.
    pub group: u32,
    /// The address of its next instruction.
    pub pc: u32,
    /// The lane, where the place belongs to one.
    pub lane: Option<u32>,
    /// The place: `temp[1].r`, `token 2 mask`, `g 0x100`, `word 7`.
    pub place: String,
    /// Its bits before the change; of a warp-wide fault those of the first place.
    pub before: u64,
    /// Its bits after the change.
    pub after: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The trap, by name.
    pub trap: Option<String>,
    /// The first step at which another instruction was issued than without the fault, or for other lanes.
    pub flow_step: Option<u64>,
    /// Of an SDC, the largest difference of an output from what it should be; infinity where one of the two is no number.
    pub error: Option<f64>,
    /// Of an SDC, how many rows of outputs differ: lanes, or elements of a buffer.
    pub hits: u32,
}

/// Instructions between two looks at whether the flow has left its course.
const LOOK: u64 = 256;

/// Instructions that run at once where the flow is not watched.
const STRETCH: u64 = 4096;

/// An experiment of a point: site, model, and its number in the campaign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experiment {
    pub(crate) index: u64,
    pub(crate) seed: u64,
    pub(crate) point: u32,
    pub(crate) site: Site,
    pub(crate) model: Model,
}

/// A change that was made.
struct Change {
    lane: Option<u32>,
    place: String,
    before: u64,
    after: u64,
}

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    /// The site is not there, or the run up to it does not give what the golden run gave: a mistake of the engine.
    pub(crate) fn run(&self, point: &Point) -> Result<Record, LaunchError> {
        let Experiment { index, seed, point: number, site, model } = *self;
        // Neighbouring numbers are far apart.
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index.wrapping_mul(0xd134_2543_de82_ef95);
        let mut random = Random::new(seed);
        let missing = || LaunchError::Machine(format!("experiment {index}: there is no {site} to change"));
        let instants = point.instants_of(site).ok_or_else(missing)?;
        let step = instants.get(below(&mut random, instants.count()));
        let mut stepping = point.at(step)?;
        let group = stepping.current().ok_or_else(missing)?;
        let pc = point.course.stages()[step as usize].pc;
        let mut injection = Injection { model, point, stepping: &mut stepping, group, random };
        let Change { lane, place, before, after } = injection.change(site).ok_or_else(missing)?;
        let mut record = Record {
            index,
            point: number,
            site,
            model,
            step,
            group: group as u32,
            pc,
            lane,
            place,
            before,
            after,
            outcome: Outcome::Masked,
            trap: None,
            flow_step: None,
            error: None,
            hits: 0,
        };
        // Groups behind this one are what they would be.
        let alone = site != Site::Instruction && stepping.is_independent();
        let mut follower = Follower::new(&point.course, step as usize);
        let ended = go_on(&mut stepping, &mut follower, alone.then_some(group));
        if let Err(LaunchError::Trap(trap)) = &ended {
            follower.trap(trap.pc);
        }
        record.flow_step = follower.left().map(|step| step as u64);
        match ended {
            Ok(()) => {
                let rows = alone.then(|| stepping.lanes(group));
                let (error, hits) = difference(&point.golden, &stepping.outcome().outputs(), rows);
                (record.outcome, record.error, record.hits) = match hits {
                    0 if record.flow_step.is_some() => (Outcome::Diverged, None, 0),
                    0 => (Outcome::Masked, None, 0),
                    _ => (Outcome::Sdc, Some(error), hits),
                };
            }
            Err(LaunchError::Trap(trap)) => {
                let hangs = ["Watchdog", "Timeout"].contains(&&*trap.name);
                record.outcome = if hangs { Outcome::Hang } else { Outcome::Trap };
                record.trap = (!hangs).then_some(trap.name);
            }
            // A launch that a fault has made impossible: a CTM output outside its buffer.
            Err(_) => (record.outcome, record.trap) = (Outcome::Trap, Some("Launch".to_owned())),
        }
        Ok(record)
    }
}

/// The inputs of a change.
struct Injection<'a> {
    model: Model,
    point: &'a Point,
    stepping: &'a mut Stepping,
    /// The group that is next.
    group: usize,
    random: Random,
}

impl Injection<'_> {
    /// Changes the state; `None` where there is nothing to change.
    fn change(&mut self, site: Site) -> Option<Change> {
        match site {
            Site::Register => self.change_register(),
            Site::Memory => self.change_memory(),
            Site::Instruction => self.change_program(),
            Site::Flow(kind) => self.change_word(kind),
        }
    }

    fn change_register(&mut self) -> Option<Change> {
        let Injection { model, point, ref mut stepping, group, ref mut random } = *self;
        let lanes = stepping.lanes(group).len() as u64;
        let (register, bits) = *point.registers.get(below(random, point.registers.len() as u64) as usize)?;
        let lane = below(random, lanes) as usize;
        let held = stepping.read(group, register)?;
        let before = u64::from(*held.get(lane)?);
        let after = faulted(model, before, (1 << bits) - 1, false, random);
        let others = if model == Model::WarpWide { 0..held.len() } else { lane..lane + 1 };
        for lane in others {
            let value = if model == Model::WarpWide { u64::from(held[lane]) ^ before ^ after } else { after };
            if !stepping.set(group, register, Lane(lane as u8), value as u32) {
                return None;
            }
        }
        let classes = stepping.registers();
        let class = classes.iter().find(|class| class.name == register.class)?;
        let channel = class.channels.get(register.channel..register.channel + 1).filter(|it| !it.is_empty());
        let channel = channel.map_or_else(String::new, |channel| format!(".{channel}"));
        let number = if register.class == "temp" {
            format!("[{}]", register.number)
        } else {
            register.number.to_string()
        };
        let place = format!("{}{number}{channel}", register.class);
        Some(Change { lane: Some(lane as u32), place, before, after })
    }

    fn change_memory(&mut self) -> Option<Change> {
        let Injection { model, point, ref mut stepping, group, ref mut random } = *self;
        let lanes = stepping.lanes(group).len() as u64;
        let weight = |area: &Area| area.words() * if area.of == SpaceOf::Lane { lanes } else { 1 };
        let (area, place) = weighted(random, &point.areas, weight)?;
        let (word, lane) = (place % area.words(), place / area.words());
        let address = (area.bytes.start + 4 * word) as u32;
        let lane = Lane(lane as u8);
        let held = |stepping: &Stepping, address: u32| {
            let bytes = stepping.memory(area.space, group, lane, address, 4);
            bytes.try_into().ok().map(|bytes| u64::from(u32::from_le_bytes(bytes)))
        };
        let before = held(stepping, address)?;
        let after = faulted(model, before, u32::MAX.into(), false, random);
        let wide = if model == Model::WarpWide { lanes } else { 1 };
        for place in word..(word + wide).min(area.words()) {
            let address = (area.bytes.start + 4 * place) as u32;
            let value = held(stepping, address)? ^ before ^ after;
            if !stepping.store(area.space, group, lane, address, &(value as u32).to_le_bytes()) {
                return None;
            }
        }
        let own = (area.of == SpaceOf::Lane).then_some(lane.0.into());
        Some(Change { lane: own, place: format!("{} {address:#x}", area.space), before, after })
    }

    fn change_program(&mut self) -> Option<Change> {
        let words = self.stepping.next_words()?;
        let word = *words.get(below(&mut self.random, words.len() as u64) as usize)?;
        let mut program = self.point.program.clone();
        let before = u64::from(*program.words.get(word)?);
        let after = faulted(self.model, before, u32::MAX.into(), false, &mut self.random);
        program.words[word] = after as u32;
        let place = format!("word {word}");
        self.stepping.set_program(&program).then_some(Change { lane: None, place, before, after })
    }

    /// Every bit of the words of a kind is as likely as every other.
    fn change_word(&mut self, kind: Kind) -> Option<Change> {
        let words = self.stepping.words(kind);
        let (word, _) = weighted(&mut self.random, &words, |word| u64::from(word.bits.count_ones()))?;
        let before = self.stepping.word(word);
        let after = faulted(self.model, before, word.bits, word.is_mask(), &mut self.random);
        let wide = self.model == Model::WarpWide && word.lane.is_some();
        let same = |other: &&Word| wide && other.number == word.number || *other == word;
        for other in words.iter().filter(same) {
            let value = self.stepping.word(other) ^ before ^ after;
            self.stepping.set_word(other, value);
        }
        let lane = word.lane.map(|lane| lane.0.into());
        Some(Change { lane, place: word.to_string(), before, after })
    }
}

/// Chooses an item with a probability in proportion to its weight, and a random number below its weight.
fn weighted<'a, T>(random: &mut Random, items: &'a [T], weight: impl Fn(&T) -> u64) -> Option<(&'a T, u64)> {
    let mut place = below(random, items.iter().map(&weight).sum());
    items.iter().find_map(|item| match place.checked_sub(weight(item)) {
        None => Some((item, place)),
        Some(rest) => {
            place = rest;
            None
        }
    })
}

/// A number below a limit, which is at least 1 and far below 2^64.
fn below(random: &mut Random, limit: u64) -> u64 {
    random.next_u64() % limit.max(1)
}

/// A word after a fault; of its bits those in `bits` exist. `lanes`: each is a lane.
fn faulted(model: Model, before: u64, bits: u64, lanes: bool, random: &mut Random) -> u64 {
    let places: Vec<u32> = (0..64).filter(|place| bits >> place & 1 != 0).collect();
    let count = places.len() as u64;
    let bit = |place: u64| places.get(place as usize).map_or(0, |place| 1 << place);
    match model {
        Model::Flip => before ^ bit(below(random, count)),
        Model::Double => {
            let first = below(random, count.saturating_sub(1));
            before ^ bit(first) ^ if count > 1 { bit(first + 1) } else { 0 }
        }
        Model::Zero => 0,
        Model::WarpWide if lanes => before ^ bits,
        Model::Random | Model::WarpWide => {
            // Each pattern but none is as likely as every other.
            let pattern = loop {
                let pattern = random.next_u64() & bits;
                if pattern != 0 || bits == 0 {
                    break pattern;
                }
            };
            before ^ pattern
        }
    }
}

/// Runs on to the end; where nothing that others see has changed, to the end of a group.
fn go_on(
    stepping: &mut Stepping,
    follower: &mut Follower<'_>,
    only: Option<usize>,
) -> Result<(), LaunchError> {
    loop {
        match (stepping.current(), only) {
            (None, _) => {
                follower.end();
                return Ok(());
            }
            (Some(current), Some(group)) if current != group => {
                follower.end_group(group);
                return Ok(());
            }
            _ if follower.left().is_none() => stepping.advance(LOOK, Watch::of(follower))?,
            _ => stepping.advance(STRETCH, Watch::Nothing)?,
        }
    }
}

/// The largest difference of outputs, and how many rows differ; of some rows only, where they are given.
fn difference<'a>(
    golden: &'a [(String, Array)],
    found: &'a [(String, Array)],
    rows: Option<std::ops::Range<usize>>,
) -> (f64, u32) {
    let (mut largest, mut hits) = (0f64, 0);
    let names =
        golden.iter().chain(found.iter().filter(|(name, _)| golden.iter().all(|(known, _)| known != name)));
    for (name, shape) in names {
        let of = |outputs: &'a [(String, Array)]| {
            outputs.iter().find(|(known, _)| known == name).map_or(&[][..], |(_, array)| &array.bytes)
        };
        let (golden, found) = (of(golden), of(found));
        let each = shape.bytes.len() / shape.rows().max(1);
        if each == 0 {
            continue;
        }
        let all = golden.len().max(found.len()).div_ceil(each);
        let row = |bytes: &[u8], row: usize| {
            let mut there = bytes.get(row * each..).unwrap_or_default().to_vec();
            there.resize(each, 0);
            Array { dtype: shape.dtype, shape: vec![each / shape.dtype.bytes()], bytes: there }
        };
        let same = |at: usize| {
            let range = at * each..(at + 1) * each;
            matches!((golden.get(range.clone()), found.get(range)), (Some(golden), Some(found)) if golden == found)
        };
        for at in rows.clone().unwrap_or(0..all).filter(|at| !same(*at)) {
            let (golden, found) = (row(golden, at), row(found, at));
            if golden.bytes == found.bytes {
                continue;
            }
            hits += 1;
            for element in 0..golden.len() {
                let (one, other) = (golden.number(element), found.number(element));
                let off = (one - other).abs();
                // The same infinity on both sides is no difference.
                let off = if one == other {
                    0.
                } else if off.is_nan() {
                    f64::INFINITY
                } else {
                    off
                };
                largest = largest.max(off);
            }
        }
    }
    (largest, hits)
}

#[cfg(test)]
mod tests {
    use reconverge_workbench::array::Dtype;

    use super::*;

    #[test]
    fn each_model_changes_the_bits_that_it_says() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let bits = 0b1011_0110;
            let mut change = |model, lanes| {
                let after = faulted(model, 0b1001_0010, bits, lanes, &mut random);
                assert_eq!((after ^ 0b1001_0010) & !bits, 0, "{model}");
                after ^ 0b1001_0010
            };
            assert_eq!(change(Model::Flip, false).count_ones(), 1);
            assert!([0b110, 0b1_0100, 0b11_0000, 0b1010_0000].contains(&change(Model::Double, false)));
            assert_ne!(change(Model::Random, false), 0);
            assert_eq!(change(Model::Zero, false), 0b1001_0010);
            assert_eq!(change(Model::WarpWide, true), bits);
            assert_ne!(change(Model::WarpWide, false), 0);
        }
        assert_eq!(faulted(Model::Double, 0, 1, false, &mut random), 1);
    }

    #[test]
    fn rows_that_differ_are_counted_and_the_largest_difference_is_kept() {
        let array = |values: &[f32]| {
            let words = values.iter().map(|value| value.to_bits());
            Array::from_words(Dtype::F32, vec![values.len() / 2, 2], words)
        };
        let named = |values: &[f32]| vec![("color0".to_owned(), array(values))];
        let golden = named(&[1., 2., 3., 4., f32::INFINITY, 6.]);
        assert_eq!(difference(&golden, &golden, None), (0., 0));
        let found = named(&[1., 2.5, 3., 4., f32::INFINITY, -6.]);
        assert_eq!(difference(&golden, &found, None), (12., 2));
        assert_eq!(difference(&golden, &found, Some(0..2)), (0.5, 1));
        let nan = named(&[1., f32::NAN, 3., 4., f32::INFINITY, 6.]);
        assert_eq!(difference(&golden, &nan, None), (f64::INFINITY, 1));
        // Outputs that were never written are zeros.
        assert_eq!(difference(&golden, &[], Some(1..2)), (4., 1));
    }
}
