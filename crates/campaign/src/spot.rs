//! The word that a fault changes. This file defines the word's location, the word's value, and the change of this
//! value.

use reconverge_isa::Program;
use reconverge_simt::random::Random;
use reconverge_simt::{Event, Lane};
use reconverge_workbench::faults::{Kind, Word};
use reconverge_workbench::session::{GroupState, Register, Stepping};

use crate::filter::Allowed;
use crate::site::Model;

/// A word that a fault can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// A register of a lane.
    Register { register: Register, bits: u32, lane: u8 },
    /// A word of memory. `words` is the number of words from the start of this word to the end of the memory area.
    Memory { space: &'static str, private: bool, address: u32, words: u64, lane: u8 },
    /// A word of flow state.
    Flow(Word),
    /// A word of the program.
    Program(usize),
}

impl Spot {
    /// Returns the lane to which the word belongs. Returns `None` if the word does not belong to a lane.
    pub(crate) fn lane(&self) -> Option<u32> {
        match self {
            Spot::Register { lane, .. } | Spot::Memory { private: true, lane, .. } => Some((*lane).into()),
            Spot::Flow(word) => word.lane.map(|lane| lane.0.into()),
            Spot::Memory { .. } | Spot::Program(_) => None,
        }
    }

    /// Returns the name of the word in results. `stepping` is the launch.
    pub(crate) fn name(&self, stepping: &Stepping) -> String {
        match self {
            Spot::Register { register, .. } => register_name(stepping, *register),
            Spot::Memory { space, address, .. } => format!("{space} {address:#x}"),
            Spot::Flow(word) => word.to_string(),
            Spot::Program(word) => format!("word {word}"),
        }
    }

    /// Returns the bits that the word has.
    pub(crate) fn bits(&self) -> u64 {
        match self {
            Spot::Register { bits, .. } => (1 << bits) - 1,
            Spot::Memory { .. } | Spot::Program(_) => u32::MAX.into(),
            Spot::Flow(word) => word.bits,
        }
    }

    /// If the word is a mask, returns one bit of this mask: the bit of `lane`. Returns `None` if the word is not a
    /// mask, or if the mask does not have the bit of `lane`.
    pub(crate) fn of_lane(&self, lane: u32) -> Option<Spot> {
        let Spot::Flow(word) = self else { return None };
        let bits = word.bits & 1u64.checked_shl(lane)?;
        (word.is_mask() && bits != 0).then_some(Spot::Flow(Word { bits, ..*word }))
    }

    /// Returns whether the word is a mask with one bit per lane.
    pub(crate) fn is_mask(&self) -> bool {
        matches!(self, Spot::Flow(word) if word.is_mask())
    }

    /// Returns the value of the word. Returns `None` if the word does not exist at the current step.
    pub(crate) fn read(&self, stepping: &Stepping, group: usize, program: &Program) -> Option<u64> {
        match self {
            Spot::Register { register, lane, .. } => {
                stepping.read(group, *register)?.get(usize::from(*lane)).map(|word| u64::from(*word))
            }
            Spot::Memory { space, address, lane, .. } => {
                let bytes = stepping.memory(space, group, Lane(*lane), *address, 4);
                bytes.try_into().ok().map(|bytes| u64::from(u32::from_le_bytes(bytes)))
            }
            Spot::Flow(word) => {
                let is_here = stepping.current() == Some(group);
                let whole = whole(stepping, word).filter(|_| is_here)?;
                Some(stepping.word(&whole))
            }
            Spot::Program(word) => program.words.get(*word).map(|word| u64::from(*word)),
        }
    }

    /// Changes the word. Returns `false` if the change is impossible.
    pub(crate) fn write(&self, stepping: &mut Stepping, group: usize, program: &Program, value: u64) -> bool {
        match self {
            Spot::Register { register, lane, .. } => {
                stepping.set(group, *register, Lane(*lane), value as u32)
            }
            Spot::Memory { space, address, lane, .. } => {
                stepping.store(space, group, Lane(*lane), *address, &(value as u32).to_le_bytes())
            }
            Spot::Flow(word) => {
                let Some(whole) = whole(stepping, word) else { return false };
                stepping.set_word(&whole, value);
                true
            }
            Spot::Program(word) => {
                let mut program = program.clone();
                program.words[*word] = value as u32;
                stepping.set_program(&program)
            }
        }
    }

    /// Returns the words that a warp-wide fault changes. The fault flips the same bits in each returned word. If this
    /// word is a register or flow state, the result has this word of every lane. If this word is in memory, the result
    /// has contiguous words that start at this word. The number of these words is the number of lanes.
    fn wide(&self, stepping: &Stepping, group: usize) -> Vec<Spot> {
        let lanes = stepping.lanes(group).len();
        match self {
            Spot::Register { register, bits, .. } => {
                let held = stepping.read(group, *register).map_or(0, |held| held.len());
                let of = |lane| Spot::Register { register: *register, bits: *bits, lane: lane as u8 };
                (0..held).map(of).collect()
            }
            Spot::Memory { space, private, address, words, lane } => {
                let of = |place: u64| Spot::Memory {
                    space,
                    private: *private,
                    address: address + 4 * place as u32,
                    words: words - place,
                    lane: *lane,
                };
                (0..(lanes as u64).min(*words)).map(of).collect()
            }
            Spot::Flow(word) if word.lane.is_some() => {
                let words = stepping.words(word.kind).into_iter();
                words.filter(|other| other.number == word.number).map(Spot::Flow).collect()
            }
            Spot::Flow(_) | Spot::Program(_) => vec![self.clone()],
        }
    }
}

/// Returns the machine's word with all of its bits. A filter or a lane may have removed bits from `word`.
fn whole(stepping: &Stepping, word: &Word) -> Option<Word> {
    stepping.words(word.kind).into_iter().find(|other| same_word(other, word))
}

/// Returns whether `one` and `other` are the same word of flow state. The two words may come from different steps.
fn same_word(one: &Word, other: &Word) -> bool {
    (one.kind, one.number, one.part, one.lane) == (other.kind, other.number, other.part, other.lane)
}

/// Returns the name of a register in results: `$r1`, `R2.x`, `temp[0].r`.
pub(crate) fn register_name(stepping: &Stepping, register: Register) -> String {
    let classes = stepping.registers();
    let class = classes.iter().find(|class| class.name == register.class);
    let channel = class.and_then(|class| class.channels.get(register.channel..register.channel + 1));
    let channel =
        channel.filter(|it| !it.is_empty()).map_or_else(String::new, |channel| format!(".{channel}"));
    let number = match register.class {
        "temp" => format!("[{}]", register.number),
        _ => register.number.to_string(),
    };
    format!("{}{number}{channel}", register.class)
}

/// Returns the number that write events use for a register.
fn event_number(stepping: &Stepping, register: Register) -> u32 {
    let classes = stepping.registers();
    let class = classes.iter().find(|class| class.name == register.class);
    let (first, channels) = class.map_or((0, 1), |class| (class.first, class.channels.len().max(1)));
    first + (register.number * channels + register.channel) as u32
}

/// The change that a fault makes to a word.
#[derive(Clone, Debug)]
pub(crate) struct Flaw {
    pub(crate) spot: Spot,
    /// The group to which the word belongs.
    pub(crate) group: usize,
    /// The bits of the word that flip.
    pub(crate) pattern: u64,
    /// Whether the same bits flip in the words of all lanes.
    pub(crate) wide: bool,
    /// The stuck bits, and their value.
    pub(crate) stuck: Option<(u64, bool)>,
}

impl Flaw {
    /// Returns whether the word belongs to one group, so that no other group can access the word.
    fn is_of_group(&self) -> bool {
        match self.spot {
            Spot::Register { .. } | Spot::Flow(_) => true,
            Spot::Memory { private, .. } => private,
            Spot::Program(_) => false,
        }
    }

    /// Returns whether stuck bits must be restored after the group `issued` has issued an instruction. `next` is the
    /// group that runs next. The flow state of a group exists only while this group is the next group to run. So the
    /// bits of a word of flow state are restored when the group of the word becomes the next group to run. The bits of
    /// a word that is not flow state are restored if the instruction may have changed the word.
    pub(crate) fn is_touched(&self, issued: usize, next: Option<usize>) -> bool {
        match self.spot {
            Spot::Flow(_) => next == Some(self.group),
            _ => issued == self.group || !self.is_of_group(),
        }
    }

    /// Returns whether the word cannot change any more. The word cannot change if the group of the word has ended, or
    /// if the word belongs to the program.
    pub(crate) fn is_over(&self, stepping: &Stepping) -> bool {
        matches!(self.spot, Spot::Program(_))
            || self.is_of_group() && stepping.state(self.group) == GroupState::Ended
    }

    /// Returns write events for the registers that the change affects. For each register, the result has one event with
    /// the current value of the register.
    pub(crate) fn written(&self, stepping: &Stepping) -> Vec<Event> {
        let Spot::Register { register, lane, .. } = &self.spot else { return Vec::new() };
        let Some(held) = stepping.read(self.group, *register) else { return Vec::new() };
        let number = event_number(stepping, *register);
        let lanes = if self.wide { 0..held.len() } else { usize::from(*lane)..usize::from(*lane) + 1 };
        let event = |lane: usize| {
            Some(Event::Write { lane: Lane(lane as u8), register: number, value: *held.get(lane)? })
        };
        lanes.filter_map(event).collect()
    }

    /// Applies the change to the word. Returns whether the change was possible.
    pub(crate) fn apply(&self, stepping: &mut Stepping, program: &Program) -> bool {
        let Flaw { spot, group, pattern, wide, .. } = self;
        let spots = if *wide { spot.wide(stepping, *group) } else { vec![spot.clone()] };
        spots.iter().all(|spot| {
            let held = spot.read(stepping, *group, program);
            held.is_some_and(|held| spot.write(stepping, *group, program, held ^ pattern))
        })
    }

    /// Restores stuck bits. Returns whether the stuck bits had changed. Does nothing if the word does not exist at the
    /// current step.
    pub(crate) fn hold(&self, stepping: &mut Stepping, program: &Program) -> bool {
        // A fault in the program changes the program's words once. No instruction can change the words of the program,
        // so stuck bits in these words do not need to be restored.
        let Some((bits, value)) = self.stuck.filter(|_| !matches!(self.spot, Spot::Program(_))) else {
            return false;
        };
        let Some(held) = self.spot.read(stepping, self.group, program) else { return false };
        let wanted = if value { held | bits } else { held & !bits };
        wanted != held && self.spot.write(stepping, self.group, program, wanted)
    }
}

/// Returns the words of flow state of one kind that the filter allows to change. Each word has the bits that may
/// change.
pub(crate) fn words(stepping: &Stepping, allowed: &Allowed, kind: Kind) -> Vec<Word> {
    let words = stepping.words(kind);
    if !allowed.only_lanes() {
        return words;
    }
    let of_lanes = |word: Word| match word.lane {
        Some(lane) => allowed.lane(lane.0.into()).then_some(word),
        None if word.is_mask() => Some(Word { bits: allowed.bits(word.bits), ..word }),
        None => None,
    };
    words.into_iter().filter_map(of_lanes).filter(|word| word.bits != 0).collect()
}

/// Returns a random number below `limit`. `limit` must be at least 1 and far below 2^64.
pub(crate) fn below(random: &mut Random, limit: u64) -> u64 {
    random.next_u64() % limit.max(1)
}

/// Applies a fault model to a word that has the bits `bits`. `lanes` states whether the word is a mask with one bit per
/// lane. `count` is the number of bits that [`Model::Bits`] flips.
///
/// Returns the changed word and the mask of the stuck bit.
pub(crate) fn faulted(
    model: Model,
    before: u64,
    bits: u64,
    lanes: bool,
    count: u32,
    random: &mut Random,
) -> (u64, u64) {
    let places: Vec<u32> = (0..64).filter(|place| bits >> place & 1 != 0).collect();
    let all = places.len() as u64;
    let bit = |place: u64| places.get(place as usize).map_or(0, |place| 1 << place);
    let after = match model {
        Model::Flip => before ^ bit(below(random, all)),
        Model::Double => {
            let first = below(random, all.saturating_sub(1));
            before ^ bit(first) ^ if all > 1 { bit(first + 1) } else { 0 }
        }
        Model::Bits => {
            let mut pattern = 0u64;
            while u64::from(pattern.count_ones()) < u64::from(count).min(all) {
                pattern |= bit(below(random, all));
            }
            before ^ pattern
        }
        Model::StuckAt0 | Model::StuckAt1 => {
            let stuck = bit(below(random, all));
            return (if model == Model::StuckAt1 { before | stuck } else { before & !stuck }, stuck);
        }
        Model::Zero => before & !bits,
        Model::WarpWide if lanes => before ^ bits,
        Model::Random | Model::WarpWide => {
            // Each pattern except 0 has the same probability.
            let pattern = loop {
                let pattern = random.next_u64() & bits;
                if pattern != 0 || bits == 0 {
                    break pattern;
                }
            };
            before ^ pattern
        }
    };
    (after, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_model_changes_the_bits_that_it_says() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let (bits, before) = (0b1011_0110, 0b1001_0010);
            let mut change = |model, lanes| {
                let (after, _) = faulted(model, before, bits, lanes, 3, &mut random);
                assert_eq!((after ^ before) & !bits, 0, "{model}");
                after ^ before
            };
            assert_eq!(change(Model::Flip, false).count_ones(), 1);
            assert!([0b110, 0b1_0100, 0b11_0000, 0b1010_0000].contains(&change(Model::Double, false)));
            assert_ne!(change(Model::Random, false), 0);
            assert_eq!(change(Model::Zero, false), 0b1001_0010);
            assert_eq!(change(Model::WarpWide, true), bits);
            assert_ne!(change(Model::WarpWide, false), 0);
            assert_eq!(change(Model::Bits, false).count_ones(), 3);
            for model in [Model::StuckAt0, Model::StuckAt1] {
                let (after, stuck) = faulted(model, before, bits, false, 3, &mut random);
                assert_eq!((stuck.count_ones(), stuck & !bits), (1, 0));
                assert_eq!(after & stuck != 0, model == Model::StuckAt1);
                assert_eq!((after ^ before) & !stuck, 0);
            }
        }
        assert_eq!(faulted(Model::Double, 0, 1, false, 0, &mut random).0, 1);
        // The word has fewer bits than the model should flip, so all bits of the word flip.
        assert_eq!(faulted(Model::Bits, 0, 0b11, false, 9, &mut random).0, 0b11);
    }
}
