//! The choice of the word that a fault changes, by the seed or by its name.

use reconverge_isa::source::parse_number;
use reconverge_simt::random::Random;
use reconverge_workbench::faults::{Kind, Word};
use reconverge_workbench::session::{Register, SpaceOf, Stepping};

use crate::filter::Allowed;
use crate::point::{Area, Point};
use crate::site::Site;
use crate::spot::{Spot, below, words};

/// The words that a fault may change at a point of the run.
pub(crate) struct Choice<'a> {
    pub(crate) point: &'a Point,
    pub(crate) stepping: &'a Stepping,
    /// The group that issues, or has issued, the instruction.
    pub(crate) group: usize,
    /// The address of the instruction.
    pub(crate) pc: u32,
    /// The lanes for which it is issued.
    pub(crate) mask: u64,
}

impl Choice<'_> {
    fn allowed(&self) -> &Allowed {
        &self.point.allowed
    }

    /// The lanes of the group in which a fault may be.
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

    /// The words of a kind of flow state, with the bits that may change.
    fn words(&self, kind: Kind) -> Vec<Word> {
        words(self.stepping, self.allowed(), kind)
    }

    /// Chooses a word of a site; `None` if there is none.
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
            // Every bit of the words of a kind is as likely as every other.
            Site::Flow(kind) => {
                let words = self.words(kind);
                weighted(random, &words, |word| u64::from(word.bits.count_ones()))
                    .map(|(word, _)| Spot::Flow(*word))
            }
        }
    }

    /// The word of a site with this name, of this lane; what is absent is chosen.
    ///
    /// # Errors
    /// No word fits; the message lists the names that exist.
    pub(crate) fn named(
        &self,
        site: Site,
        place: Option<&str>,
        lane: Option<u32>,
        random: &mut Random,
    ) -> Result<Spot, String> {
        if let (Site::Memory, Some(place)) = (site, place) {
            return self.memory(place, lane);
        }
        let all = self.all(site);
        let names = || {
            let mut names: Vec<String> = all.iter().map(|spot| spot.name(self.stepping)).collect();
            names.dedup();
            names.truncate(32);
            names.join(", ")
        };
        let fits = |spot: &&Spot| {
            place.is_none_or(|place| spot.name(self.stepping) == place)
                && lane.is_none_or(|lane| spot.lane().is_none_or(|own| own == lane))
        };
        let found: Vec<&Spot> = all.iter().filter(fits).collect();
        let chosen = found.get(below(random, found.len() as u64) as usize).map(|spot| (*spot).clone());
        chosen.ok_or_else(|| {
            let place = place.map(|place| format!(" `{place}`")).unwrap_or_default();
            let lane = lane.map(|lane| format!(" of lane {lane}")).unwrap_or_default();
            format!("there is no {site}{place}{lane} then; there is {}", names())
        })
    }

    /// All words of a site but memory.
    fn all(&self, site: Site) -> Vec<Spot> {
        match site {
            Site::Register | Site::Destination => {
                let lanes = self.lanes(site);
                let of = |(register, bits): (Register, u32)| {
                    lanes
                        .iter()
                        .map(move |lane| Spot::Register { register, bits, lane: *lane })
                        .collect::<Vec<_>>()
                };
                self.registers(site).into_iter().flat_map(of).collect()
            }
            Site::Memory => Vec::new(),
            Site::Instruction => {
                self.stepping.next_words().into_iter().flatten().map(Spot::Program).collect()
            }
            Site::Flow(kind) => self.words(kind).into_iter().map(Spot::Flow).collect(),
        }
    }

    /// The word of memory with this name: its space and its address.
    fn memory(&self, place: &str, lane: Option<u32>) -> Result<Spot, String> {
        let spaces = || {
            let of = |area: &Area| format!("{} {:#x} to {:#x}", area.space, area.bytes.start, area.bytes.end);
            self.point.areas.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        let wrong = || format!("there is no memory `{place}`; there is {}", spaces());
        let (space, address) = place.rsplit_once(' ').ok_or_else(wrong)?;
        let address = parse_number(address).filter(|address| address % 4 == 0).ok_or_else(wrong)?;
        let area = self.point.areas.iter().find(|area| area.space == space && area.bytes.contains(&address));
        let area = area.ok_or_else(wrong)?;
        Ok(Spot::Memory {
            space: area.space,
            private: area.of == SpaceOf::Lane,
            address: address as u32,
            words: (area.bytes.end - address) / 4,
            lane: lane.unwrap_or(0) as u8,
        })
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
