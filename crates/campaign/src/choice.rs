//! Chooses the word that a fault changes. The seed or the name of the word determines the choice.

use reconverge_isa::source::parse_number;
use reconverge_simt::random::Random;
use reconverge_workbench::faults::{Kind, Word};
use reconverge_workbench::session::{Register, SpaceOf, Stepping};

use crate::filter::Allowed;
use crate::point::{Area, Point};
use crate::site::Site;
use crate::spot::{Spot, below, words};

/// The words that a fault may change at one step of the run.
pub(crate) struct Choice<'a> {
    pub(crate) point: &'a Point,
    pub(crate) stepping: &'a Stepping,
    /// The group of the instruction. The fault changes the group's state before or after the group issues the
    /// instruction.
    pub(crate) group: usize,
    /// The address of the instruction.
    pub(crate) pc: u32,
    /// The lanes for which the instruction is issued.
    pub(crate) mask: u64,
}

impl Choice<'_> {
    fn allowed(&self) -> &Allowed {
        &self.point.allowed
    }

    /// Returns the lanes in which a fault may change words. The lanes belong to the group of the instruction.
    fn lanes(&self, site: Site) -> Vec<u8> {
        let is_active = |lane: &u8| site != Site::Destination || self.mask >> lane & 1 != 0;
        let lanes = 0..self.stepping.lanes(self.group).len() as u8;
        lanes.filter(|lane| self.allowed().lane((*lane).into())).filter(is_active).collect()
    }

    fn registers(&self, site: Site) -> Vec<(Register, u32)> {
        match site {
            Site::Destination => self.point.destinations(self.pc).collect(),
            _ => self.point.registers.clone(),
        }
    }

    /// Returns the words of a kind of flow state, with the bits that may change.
    fn words(&self, kind: Kind) -> Vec<Word> {
        words(self.stepping, self.allowed(), kind)
    }

    /// Chooses a word of a site at random. Returns `None` if the site has no words.
    pub(crate) fn any(&self, site: Site, random: &mut Random) -> Option<Spot> {
        match site {
            Site::Register | Site::Destination => {
                let registers = self.registers(site);
                let (register, bits) = *registers.get(below(random, registers.len() as u64) as usize)?;
                let lanes = self.lanes(site);
                let lane = *lanes.get(below(random, lanes.len() as u64) as usize)?;
                Some(Spot::Register { register, bits, lane })
            }
            Site::Memory => {
                let lanes = self.lanes(site);
                let weight = |area: &Area| {
                    area.words() * if area.of == SpaceOf::Lane { lanes.len() as u64 } else { 1 }
                };
                let (area, place) = weighted(random, &self.point.areas, weight)?;
                let (word, lane) = (place % area.words(), place / area.words());
                Some(Spot::Memory {
                    space: area.space,
                    private: area.of == SpaceOf::Lane,
                    address: (area.bytes.start + 4 * word) as u32,
                    words: area.words() - word,
                    lane: lanes.get(lane as usize).copied().unwrap_or(0),
                })
            }
            Site::Instruction => {
                let words = self.stepping.next_words()?;
                words.get(below(random, words.len() as u64) as usize).copied().map(Spot::Program)
            }
            // Every bit in the words of a kind has the same probability.
            Site::Flow(kind) => {
                let words = self.words(kind);
                weighted(random, &words, |word| u64::from(word.bits.count_ones()))
                    .map(|(word, _)| Spot::Flow(*word))
            }
        }
    }

    /// Returns the word that has the name `place`, belongs to the lane `lane`, and is a word of the site. If the name
    /// or the lane is absent, chooses a name or a lane at random.
    ///
    /// # Errors
    /// Fails if no word has this name and lane. The message lists the names that exist.
    pub(crate) fn named(
        &self,
        site: Site,
        place: Option<&str>,
        lane: Option<u32>,
        random: &mut Random,
    ) -> Result<Spot, String> {
        let count = self.stepping.lanes(self.group).len();
        if let Some(lane) = lane.filter(|lane| *lane as usize >= count) {
            let last = count.saturating_sub(1);
            return Err(format!("lane {lane}: expected a lane of the group, 0 to {last}"));
        }
        match (site, place) {
            (Site::Memory, Some(place)) => return self.memory(place, lane, random),
            (Site::Memory, None) => return self.any_memory(lane, random),
            _ => {}
        }
        let fits = |spot: &Spot| match lane {
            Some(lane) if spot.lane().is_some() => (spot.lane() == Some(lane)).then(|| spot.clone()),
            Some(lane) => spot.of_lane(lane),
            None => Some(spot.clone()),
        };
        let found: Vec<Spot> = self.all(site, place).iter().filter_map(fits).collect();
        let chosen = found.get(below(random, found.len() as u64) as usize).cloned();
        chosen.ok_or_else(|| {
            let named = self.all(site, place);
            if let Some(lane) = lane.filter(|_| !named.is_empty())
                && named.iter().all(|spot| spot.lane().is_none() && !spot.is_mask())
            {
                return no_lanes(lane, place.unwrap_or(site.name()));
            }
            let place = place.map(|place| format!(" `{place}`")).unwrap_or_default();
            let word = lane.map_or(format!("{site}{place}"), |lane| format!("{site}{place} of lane {lane}"));
            let names = self.some_names(site);
            match names.is_empty() {
                true => format!("{word} does not exist at this step, and neither does any other {site}"),
                false => format!("{word} does not exist at this step; {} exist", names.join(", ")),
            }
        })
    }

    /// Chooses a word of any memory. If `lane` is `Some`, the word is in the private memory of this lane.
    fn any_memory(&self, lane: Option<u32>, random: &mut Random) -> Result<Spot, String> {
        let Some(lane) = lane else {
            return self
                .any(Site::Memory, random)
                .ok_or_else(|| "the launch does not have memory at this step".to_owned());
        };
        let of_lane = |area: &&Area| area.of == SpaceOf::Lane;
        let areas: Vec<&Area> = self.point.areas.iter().filter(of_lane).collect();
        let (area, word) =
            weighted(random, &areas, |area| area.words()).ok_or_else(|| no_lanes(lane, "memory"))?;
        Ok(Spot::Memory {
            space: area.space,
            private: true,
            address: (area.bytes.start + 4 * word) as u32,
            words: area.words() - word,
            lane: lane as u8,
        })
    }

    /// Returns the names of the first words of a site, for a message. A list of faults may have many impossible faults,
    /// and each impossible fault causes a message. So the function must be fast. For this reason, the result has the
    /// registers of only one lane.
    fn some_names(&self, site: Site) -> Vec<String> {
        let mut spots = match site {
            Site::Register | Site::Destination => {
                let of = |(register, bits): (Register, u32)| Spot::Register { register, bits, lane: 0 };
                self.registers(site).into_iter().take(MOST_NAMES).map(of).collect()
            }
            _ => self.all(site, None),
        };
        spots.truncate(MOST_NAMES);
        let mut names: Vec<String> = spots.iter().map(|spot| spot.name(self.stepping)).collect();
        names.dedup();
        names
    }

    /// Returns all words of a site except for words of memory. If `place` is present, returns only the words with this
    /// name.
    fn all(&self, site: Site, place: Option<&str>) -> Vec<Spot> {
        let has_name = |spot: &Spot| place.is_none_or(|place| spot.name(self.stepping) == place);
        match site {
            Site::Register | Site::Destination => {
                let lanes = self.lanes(site);
                let wanted = place.map(|place| self.point.register(place));
                let is_wanted = |register: Register| wanted.is_none_or(|wanted| wanted == Some(register));
                let named = self.registers(site).into_iter().filter(|(register, _)| is_wanted(*register));
                let of = |(register, bits): (Register, u32)| {
                    lanes.iter().map(move |lane| Spot::Register { register, bits, lane: *lane })
                };
                named.flat_map(of).collect()
            }
            Site::Memory => Vec::new(),
            Site::Instruction => {
                let words = self.stepping.next_words().into_iter().flatten();
                words.map(Spot::Program).filter(has_name).collect()
            }
            Site::Flow(kind) => self.words(kind).into_iter().map(Spot::Flow).filter(has_name).collect(),
        }
    }

    /// Returns the memory word that `place` names. `place` contains the memory space and the address.
    fn memory(&self, place: &str, lane: Option<u32>, random: &mut Random) -> Result<Spot, String> {
        let spaces = || {
            let of = |area: &Area| format!("{} {:#x} to {:#x}", area.space, area.bytes.start, area.bytes.end);
            self.point.areas.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        let wrong = || format!("memory `{place}` does not exist; the launch has {}", spaces());
        let (space, address) = place.rsplit_once(' ').ok_or_else(wrong)?;
        let address = parse_number(address).filter(|address| address % 4 == 0).ok_or_else(wrong)?;
        let area = self.point.areas.iter().find(|area| area.space == space && area.bytes.contains(&address));
        let area = area.ok_or_else(wrong)?;
        let private = area.of == SpaceOf::Lane;
        let lane = match lane {
            Some(lane) if !private => return Err(no_lanes(lane, place)),
            Some(lane) => lane as u8,
            None if private => below(random, self.stepping.lanes(self.group).len() as u64) as u8,
            None => 0,
        };
        Ok(Spot::Memory {
            space: area.space,
            private,
            address: address as u32,
            words: (area.bytes.end - address) / 4,
            lane,
        })
    }
}

/// Maximum number of names in a message.
const MOST_NAMES: usize = 32;

fn no_lanes(lane: u32, place: &str) -> String {
    format!("lane {lane}: {place} does not have lanes; omit lane")
}

/// Chooses an item at random. The probability of an item is proportional to its weight. Also returns a random number
/// below the weight of the chosen item.
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
