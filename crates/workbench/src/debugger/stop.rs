//! Conditions at which a debugger stops.

use std::collections::BTreeSet;
use std::fmt;

use reconverge_simt::{Event, Lane};

use super::Debugger;
use super::formula::Formula;
use super::log::LogText;
use super::names::brief;
use crate::session::{Register, Stepping};

reconverge_isa::choices! {
    /// A comparison of two values. If one sign is a prefix of another, the longer sign comes first.
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

/// The occurrence that a stop waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum On {
    /// The instruction at an address is next.
    Address(u32),
    /// The flow of lanes changes.
    Flow(FlowChange),
    /// A lane becomes active.
    Lane(Lane),
    /// A register or memory value changes.
    Change(Watched),
    /// A store to a byte address, in any space and with any value.
    Store(u32),
    /// Every instruction; the condition decides.
    Always,
}

/// A register or memory range that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A register in the group that runs, for one lane or for all lanes.
    Register(Register, Option<Lane>),
    /// Bytes of memory.
    Memory {
        /// The space.
        space: &'static str,
        /// The lane, for spaces that each lane has.
        lane: Lane,
        /// The first byte.
        address: u32,
        /// Number of bytes.
        bytes: usize,
    },
}

impl Watched {
    /// Returns the watched contents: one number per lane of a register, or per byte of memory.
    fn value(self, stepping: &Stepping, group: usize) -> Vec<u32> {
        match self {
            Watched::Register(register, _) => stepping.read(group, register).unwrap_or_default(),
            Watched::Memory { space, lane, address, bytes } => {
                stepping.memory(space, group, lane, address, bytes).into_iter().map(u32::from).collect()
            }
        }
    }

    /// Describes the changes, or returns `None` if the values are equal.
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

/// The hits of a stop that count. Hits are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    /// Hits whose number satisfies this comparison.
    Compare(Relation, u64),
    /// Every N-th hit.
    Every(u64),
}

impl Hits {
    /// Parses `3` or `== 3`, `>= 3` and the other relations, or `% 3`.
    pub fn parse(text: &str) -> Option<Hits> {
        let text = text.trim();
        if let Some(every) = text.strip_prefix('%') {
            return every.trim().parse().ok().filter(|every| *every > 0).map(Hits::Every);
        }
        let found = Relation::ALL
            .iter()
            .find_map(|relation| text.strip_prefix(relation.name()).map(|rest| (*relation, rest)));
        let (relation, rest) = found.unwrap_or((Relation::Equal, text));
        // Hits are counted from 1.
        let count = rest.trim().parse().ok().filter(|count| *count > 0)?;
        (relation != Relation::Less || count > 1).then_some(Hits::Compare(relation, count))
    }

    fn holds(self, number: u64) -> bool {
        match self {
            Hits::Compare(relation, count) => relation.holds(number, count),
            Hits::Every(every) => number.is_multiple_of(every),
        }
    }
}

/// Restrictions on a stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Only {
    /// Only in this group.
    pub group: Option<usize>,
    /// Only if this is true for any active lane, or for the lane that the formula names.
    pub condition: Option<Formula>,
    /// Only at these hits.
    pub hits: Option<Hits>,
    /// Write this text instead of stopping.
    pub log: Option<LogText>,
}

/// A stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Number of the stop.
    pub number: usize,
    /// The occurrence that it waits for.
    pub on: On,
    /// Restrictions on the stop.
    pub only: Only,
    /// The text with which it was set.
    pub text: String,
    /// Steps at which it was reached so far, including hits that do not count. Kept for [`Only::hits`], so that a hit
    /// has the same number if the launch reaches it again.
    reached: BTreeSet<u64>,
    /// Step at which its condition first had no value. The debugger stops there, and does not stop for that reason
    /// again.
    failed: Option<u64>,
}

/// The reason for a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// The stop's number.
    pub stop: usize,
    /// The group.
    pub group: usize,
    /// Text that describes the reason.
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
    /// Adds a stop and returns its number. Numbers start at 1.
    pub fn add(&mut self, on: On, only: Only, text: &str) -> usize {
        self.last += 1;
        let (text, reached) = (text.to_owned(), BTreeSet::new());
        self.stops.push(Stop { number: self.last, on, only, text, reached, failed: None });
        self.last
    }

    /// Forgets the hits after step `position`.
    pub(super) fn forget_after(&mut self, position: u64) {
        for stop in &mut self.stops {
            stop.reached.retain(|at| *at <= position);
            stop.failed = stop.failed.filter(|at| *at <= position);
        }
    }

    /// Forgets all hits, because the launch starts again.
    pub(super) fn begin_again(&mut self) {
        for stop in &mut self.stops {
            stop.reached.clear();
            stop.failed = None;
        }
    }

    /// Returns the contents of the watched registers and memory ranges, with the numbers of their stops.
    pub(super) fn watched(&self, stepping: &Stepping, group: usize) -> Vec<(usize, Vec<u32>)> {
        let watched = self.stops.iter().filter_map(|stop| match stop.on {
            On::Change(watched) => Some((stop.number, watched.value(stepping, group))),
            _ => None,
        });
        watched.collect()
    }

    /// Removes a stop. Returns `false` if no stop has this number.
    pub fn remove(&mut self, number: usize) -> bool {
        let before = self.stops.len();
        self.stops.retain(|stop| stop.number != number);
        self.stops.len() < before
    }

    /// Moves a stop at an address to another address. Returns `false` if no stop has this number.
    pub(super) fn move_to(&mut self, number: usize, address: u32) -> bool {
        let stop = self.stops.iter_mut().find(|stop| stop.number == number);
        stop.map(|stop| stop.on = On::Address(address)).is_some()
    }

    /// Removes all stops.
    pub fn clear(&mut self) {
        self.stops.clear();
    }

    /// Iterates over all stops.
    pub fn iter(&self) -> impl Iterator<Item = &Stop> {
        self.stops.iter()
    }

    /// Returns the first stop that is reached where a debugger is, and appends the texts of those that log to `logs`.
    pub(super) fn reached(&mut self, debugger: &Debugger, logs: &mut Vec<String>) -> Option<Why> {
        let mut first = None;
        for stop in &mut self.stops {
            if first.is_some() && stop.only.log.is_none() {
                continue;
            }
            let Some(Reached { group, lane, mut text, failed }) = stop.seen(debugger) else { continue };
            if failed {
                if stop.failed.is_some_and(|at| at < debugger.position) {
                    continue;
                }
                stop.failed = Some(debugger.position);
                match stop.only.log {
                    Some(_) => logs.push(text),
                    None => first = Some(Why { stop: stop.number, group, seen: text }),
                }
                continue;
            }
            if let Some(hits) = stop.only.hits {
                stop.reached.insert(debugger.position);
                let number = stop.reached.range(..=debugger.position).count() as u64;
                if !hits.holds(number) {
                    continue;
                }
                text = format!("{text}, time {number}");
            }
            match &stop.only.log {
                Some(log) => logs.push(log.written(debugger, group, lane.unwrap_or(debugger.lane()))),
                None => first = Some(Why { stop: stop.number, group, seen: text }),
            }
        }
        first
    }
}

/// A stop that is reached.
struct Reached {
    group: usize,
    /// The lane for which its condition holds, if the condition depends on a lane.
    lane: Option<Lane>,
    text: String,
    /// Whether its condition has no value.
    failed: bool,
}

impl Stop {
    /// Returns the reason if the stop is reached.
    fn seen(&self, debugger: &Debugger) -> Option<Reached> {
        let stepping = &debugger.stepping;
        let next = stepping.current();
        let issue = next.and_then(|group| stepping.issue(group));
        let (group, text) = match self.on {
            On::Address(address) => {
                issue.filter(|issue| issue.pc == address)?;
                (next?, format!("at {}", debugger.placed(address)))
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
            On::Flow(kind) => {
                let events = debugger.events.iter();
                events.filter_map(|(group, event)| Some((*group, kind.seen(event)?))).next()?
            }
            On::Store(wanted) => {
                let events = debugger.events.iter();
                events.filter_map(|(group, event)| Some((*group, stored(wanted, event)?))).next()?
            }
        };
        if self.only.group.is_some_and(|only| only != group) {
            return None;
        }
        let lane = match &self.only.condition {
            None => None,
            Some(condition) => match condition.holds(&debugger.here(group)) {
                Ok(holds) => holds?,
                Err(why) => {
                    let text = brief(&format!("{text}, and the condition `{condition}` has no value: {why}"));
                    return Some(Reached { group, lane: None, text, failed: true });
                }
            },
        };
        let text = lane.map_or(text.clone(), |lane| format!("{text}, in lane {}", lane.0));
        Some(Reached { group, lane, text, failed: false })
    }
}

/// Describes a store to a byte address.
fn stored(wanted: u32, event: &Event) -> Option<String> {
    match event {
        Event::Store { lane, address, value, .. } if *address == wanted => {
            Some(format!("lane {} stores {value:#010x} at {address:#x}", lane.0))
        }
        _ => None,
    }
}

reconverge_isa::choices! {
    /// A change of the flow of lanes, by its name in commands and in the filters of debug clients.
    pub enum FlowChange {
        /// Lanes diverge: some run first, and the others wait.
        Diverge = "diverge",
        /// Lanes that waited run, and the lanes that ran before wait or have ended.
        Resume = "resume",
        /// Lanes that waited run again together with lanes that ran before.
        Reconverge = "reconverge",
    }
}

impl FlowChange {
    /// Returns a label and a sentence for menus of clients.
    pub fn labels(self) -> (&'static str, &'static str) {
        match self {
            FlowChange::Diverge => ("Lanes diverge", "Lanes of a group part: some run, the others wait."),
            FlowChange::Resume => (
                "Lanes resume",
                "Lanes that waited run, and those that ran wait or have ended. No lanes meet.",
            ),
            FlowChange::Reconverge => {
                ("Lanes reconverge", "Lanes that waited run again together with lanes that ran.")
            }
        }
    }

    /// Returns the text for an event of this kind.
    fn seen(self, event: &Event) -> Option<String> {
        match (self, event) {
            (FlowChange::Diverge, Event::Diverge { taken, not }) => {
                Some(format!("lanes diverge: {taken} first, then {not}"))
            }
            (FlowChange::Resume, Event::Resume { mask }) => Some(format!("lanes resume: {mask}")),
            (FlowChange::Reconverge, Event::Reconverge { mask }) => Some(format!("lanes reconverge: {mask}")),
            _ => None,
        }
    }
}
