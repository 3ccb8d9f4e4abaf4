//! Where a debugger stops.

use std::collections::BTreeSet;
use std::fmt;

use reconverge_simt::{Event, Lane};

use super::Debugger;
use crate::session::{Register, Stepping};

reconverge_isa::choices! {
    /// A comparison of two values. A sign that begins like another stands before it.
    pub enum Relation {
        /// `==`
        Equal = "==",
        /// `!=`
        Differs = "!=",
        /// `<=`
        AtMost = "<=",
        /// `>=`
        AtLeast = ">=",
        /// `<`
        Less = "<",
        /// `>`
        Greater = ">",
    }
}

impl Relation {
    fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Relation::Equal => left == right,
            Relation::Differs => left != right,
            Relation::Less => left < right,
            Relation::AtMost => left <= right,
            Relation::Greater => left > right,
            Relation::AtLeast => left >= right,
        }
    }
}

/// A number that a register is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Bits, as an unsigned number.
    Bits(u32),
    /// A negative number.
    Signed(i32),
    /// A float: it was written with a point.
    Float(f32),
}

/// A condition on a register.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The register.
    pub register: Register,
    /// One lane; any active lane otherwise.
    pub lane: Option<Lane>,
    /// How it is compared.
    pub relation: Relation,
    /// With what.
    pub number: Number,
}

impl Condition {
    /// Whether it holds for a lane of a group that runs, and for which.
    pub fn holds(&self, stepping: &Stepping, group: usize) -> Option<Lane> {
        let values = stepping.read(group, self.register)?;
        let active = stepping.issue(group).map(|issue| issue.mask)?;
        let lanes = (0..values.len()).map(|lane| Lane(lane as u8));
        lanes
            .filter(|lane| self.lane.map_or(active.has(*lane), |only| only == *lane))
            .find(|lane| self.compare(values[lane.index()]))
    }

    fn compare(&self, value: u32) -> bool {
        match self.number {
            Number::Bits(number) => self.relation.holds(value, number),
            Number::Signed(number) => self.relation.holds(value as i32, number),
            Number::Float(number) => self.relation.holds(f32::from_bits(value), number),
        }
    }
}

/// What a stop waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum On {
    /// The instruction at an address is next.
    Address(u32),
    /// A decision splits the lanes of a group.
    Diverge,
    /// Lanes run together again.
    Reconverge,
    /// A lane starts to take part.
    Lane(Lane),
    /// What a place holds changes.
    Change(Watched),
    /// A byte address is written, whatever to and in whichever space.
    Store(u32),
    /// Nothing but the condition.
    Always,
}

/// A place that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A register, of one lane or all, in the group that runs.
    Register(Register, Option<Lane>),
    /// Bytes of memory.
    Memory {
        /// The space.
        space: &'static str,
        /// The lane, for spaces of a lane.
        lane: Lane,
        /// The first byte.
        address: u32,
        /// How many.
        bytes: usize,
    },
}

impl Watched {
    /// What it holds, a number a lane or a byte.
    fn value(self, stepping: &Stepping, group: usize) -> Vec<u32> {
        match self {
            Watched::Register(register, _) => stepping.read(group, register).unwrap_or_default(),
            Watched::Memory { space, lane, address, bytes } => {
                stepping.memory(space, group, lane, address, bytes).into_iter().map(u32::from).collect()
            }
        }
    }

    /// What has changed, in words.
    fn change(self, before: &[u32], after: &[u32]) -> Option<String> {
        let mut places = (0..before.len().min(after.len())).filter(|place| before[*place] != after[*place]);
        match self {
            Watched::Register(_, only) => {
                let lane = places.find(|lane| only.is_none_or(|only| only.index() == *lane))?;
                Some(format!("lane {lane}: {:#010x} becomes {:#010x}", before[lane], after[lane]))
            }
            Watched::Memory { space, address, .. } => {
                places.next()?;
                let bytes = |values: &[u32]| {
                    values.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
                };
                Some(format!("{space} {address:#x}: {} becomes {}", bytes(before), bytes(after)))
            }
        }
    }
}

/// Which of the times that a stop is reached count, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    /// Those whose number compares so.
    Compare(Relation, u64),
    /// Every so many.
    Every(u64),
}

impl Hits {
    /// `3` or `== 3`, `>= 3` and the other relations, `% 3`.
    pub fn parse(text: &str) -> Option<Hits> {
        let text = text.trim();
        if let Some(every) = text.strip_prefix('%') {
            return every.trim().parse().ok().filter(|every| *every > 0).map(Hits::Every);
        }
        let found = Relation::ALL
            .iter()
            .find_map(|relation| text.strip_prefix(relation.name()).map(|rest| (*relation, rest)));
        let (relation, rest) = found.unwrap_or((Relation::Equal, text));
        rest.trim().parse().ok().map(|count| Hits::Compare(relation, count))
    }

    fn holds(self, number: u64) -> bool {
        match self {
            Hits::Compare(relation, count) => relation.holds(number, count),
            Hits::Every(every) => number.is_multiple_of(every),
        }
    }
}

/// What narrows a stop down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Only {
    /// Only in this group.
    pub group: Option<usize>,
    /// Only when this holds.
    pub condition: Option<Condition>,
    /// Only these times.
    pub hits: Option<Hits>,
}

/// A stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Its number.
    pub number: usize,
    /// What it waits for.
    pub on: On,
    /// What narrows it down.
    pub only: Only,
    /// How it was written.
    pub text: String,
    /// Where it was reached so far, hits that do not count included: instructions before each. Kept for [`Only::hits`], so that
    /// the number of a hit is the same coming by again.
    reached: BTreeSet<u64>,
}

/// Why a stop was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The stop's number.
    pub stop: usize,
    /// The group.
    pub group: usize,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stop {} in group {}: {}", self.stop, self.group, self.seen)
    }
}

/// All stops.
#[derive(Clone, Debug, Default)]
pub struct Stops {
    stops: Vec<Stop>,
    last: usize,
}

impl Stops {
    /// Adds a stop; gives its number, from 1.
    pub fn add(&mut self, on: On, only: Only, text: &str) -> usize {
        self.last += 1;
        let (text, reached) = (text.to_owned(), BTreeSet::new());
        self.stops.push(Stop { number: self.last, on, only, text, reached });
        self.last
    }

    /// Forgets that stops were reached after so many instructions.
    pub(super) fn forget_after(&mut self, position: u64) {
        for stop in &mut self.stops {
            stop.reached.retain(|at| *at <= position);
        }
    }

    /// What the watched places hold, by the numbers of their stops.
    pub(super) fn watched(&self, stepping: &Stepping, group: usize) -> Vec<(usize, Vec<u32>)> {
        let watched = self.stops.iter().filter_map(|stop| match stop.on {
            On::Change(watched) => Some((stop.number, watched.value(stepping, group))),
            _ => None,
        });
        watched.collect()
    }

    /// Removes a stop; `false` if there is none of this number.
    pub fn remove(&mut self, number: usize) -> bool {
        let before = self.stops.len();
        self.stops.retain(|stop| stop.number != number);
        self.stops.len() < before
    }

    /// Removes all stops.
    pub fn clear(&mut self) {
        self.stops.clear();
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Stop> {
        self.stops.iter()
    }

    /// The first stop that is reached where a debugger is.
    pub(super) fn reached(&mut self, debugger: &Debugger) -> Option<Why> {
        self.stops.iter_mut().find_map(|stop| {
            let (group, seen) = stop.seen(debugger)?;
            if let Some(hits) = stop.only.hits {
                stop.reached.insert(debugger.position);
                let number = stop.reached.range(..=debugger.position).count() as u64;
                return hits.holds(number).then(|| Why {
                    stop: stop.number,
                    group,
                    seen: format!("{seen}, time {number}"),
                });
            }
            Some(Why { stop: stop.number, group, seen })
        })
    }
}

impl Stop {
    /// The group and what is seen, where it is reached.
    fn seen(&self, debugger: &Debugger) -> Option<(usize, String)> {
        let stepping = &debugger.stepping;
        let next = stepping.current();
        let issue = next.and_then(|group| stepping.issue(group));
        let (group, seen) = match self.on {
            On::Address(address) => {
                issue.filter(|issue| issue.pc == address)?;
                (next?, format!("at {}", debugger.spelled(address)))
            }
            On::Lane(lane) => {
                issue.filter(|issue| issue.mask.has(lane))?;
                (next?, format!("lane {} runs", lane.0))
            }
            On::Always => (next?, "the condition holds".to_owned()),
            On::Change(watched) => {
                let (_, before) = debugger.before.iter().find(|(number, _)| *number == self.number)?;
                let after = watched.value(stepping, debugger.last);
                (debugger.last, watched.change(before, &after)?)
            }
            On::Diverge | On::Reconverge | On::Store(_) => {
                let events = debugger.events.iter();
                events.filter_map(|(group, event)| Some((*group, seen(&self.on, event)?))).next()?
            }
        };
        if self.only.group.is_some_and(|only| only != group) {
            return None;
        }
        match &self.only.condition {
            None => Some((group, seen)),
            Some(condition) => {
                let lane = condition.holds(stepping, group)?;
                Some((group, format!("{seen}, in lane {}", lane.0)))
            }
        }
    }
}

/// What an event shows to a stop that waits for one.
fn seen(on: &On, event: &Event) -> Option<String> {
    match (on, event) {
        (On::Diverge, Event::Diverge { taken, not }) => {
            Some(format!("lanes part: {taken} first, then {not}"))
        }
        (On::Reconverge, Event::Reconverge { mask }) => Some(format!("lanes run together: {mask}")),
        (On::Store(wanted), Event::Store { lane, address, value }) if address == wanted => {
            Some(format!("lane {} stores {value:#010x} at {address:#x}", lane.0))
        }
        _ => None,
    }
}
