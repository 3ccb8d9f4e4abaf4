//! Stops. A stop is a condition under which the debugger stops.

use std::collections::BTreeSet;
use std::fmt;

use reconverge_simt::{Event, Lane};

use super::Debugger;
use super::formula::Formula;
use super::log::LogText;
use super::names::brief;
use crate::session::{Register, Stepping};

reconverge_isa::choices! {
    /// A comparison of two values. The parser takes the first sign in this list that matches the text. So a longer sign
    /// is in the list before any sign that is a prefix of the longer sign.
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

/// The kind of event at which a stop is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum On {
    /// The next instruction is the instruction at an address.
    Address(u32),
    /// Lanes of a group diverge, resume or reconverge.
    Flow(FlowChange),
    /// A lane is active in the next instruction.
    Lane(Lane),
    /// The value of a register or of memory changes.
    Change(Watched),
    /// An instruction stores to a byte address, in any memory space.
    Store(u32),
    /// The stop is reached before every instruction. A stop of this kind needs a condition.
    Always,
}

/// A register or a memory range whose changes stop the debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// A register of the running group, in one lane or in all lanes.
    Register(Register, Option<Lane>),
    /// A range of memory.
    Memory {
        /// The memory space.
        space: &'static str,
        /// The lane, if each lane has a separate memory.
        lane: Lane,
        /// Address of the first byte.
        address: u32,
        /// Number of bytes.
        bytes: usize,
    },
}

impl Watched {
    /// Returns the current values. A register has one number per lane, and memory has one number per byte.
    fn value(self, stepping: &Stepping, group: usize) -> Vec<u32> {
        match self {
            Watched::Register(register, _) => stepping.read(group, register).unwrap_or_default(),
            Watched::Memory { space, lane, address, bytes } => {
                stepping.memory(space, group, lane, address, bytes).into_iter().map(u32::from).collect()
            }
        }
    }

    /// Describes the differences between two lists of values. Returns `None` if the two lists are equal.
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

/// The hits at which a stop takes effect. Hits are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    /// Hits whose number satisfies the comparison.
    Compare(Relation, u64),
    /// Every N-th hit.
    Every(u64),
}

impl Hits {
    /// Parses a restriction on hits. The text is a number such as `3`, a comparison such as `== 3` or `>= 3`, or a
    /// period such as `% 3`. The text `% 3` stands for every third hit.
    pub fn parse(text: &str) -> Option<Hits> {
        let text = text.trim();
        if let Some(every) = text.strip_prefix('%') {
            return every.trim().parse().ok().filter(|every| *every > 0).map(Hits::Every);
        }
        let found = Relation::ALL
            .iter()
            .find_map(|relation| text.strip_prefix(relation.name()).map(|rest| (*relation, rest)));
        let (relation, rest) = found.unwrap_or((Relation::Equal, text));
        // The number of a hit is at least 1.
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
    /// The stop takes effect only in this group.
    pub group: Option<usize>,
    /// The stop takes effect only if this formula is true. If the formula has no lane, the formula must be true for at
    /// least one active lane.
    pub condition: Option<Formula>,
    /// The stop takes effect only at hits with these numbers.
    pub hits: Option<Hits>,
    /// The debugger prints this text instead of stopping.
    pub log: Option<LogText>,
}

/// A stop that is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Number of the stop.
    pub number: usize,
    /// The kind of event at which the stop is reached.
    pub on: On,
    /// Restrictions on the stop.
    pub only: Only,
    /// The text of the command that set the stop.
    pub text: String,
    /// Steps at which the stop was reached. The set includes steps whose hits [`Only::hits`] excludes. The number of a
    /// hit follows from the stored steps. So if the debugger replays the launch, each hit gets its previous number
    /// again.
    reached: BTreeSet<u64>,
    /// First step at which the condition could not be evaluated. The debugger reports the failure at this step, and
    /// does not report failures at later steps.
    failed: Option<u64>,
}

/// The reason why the debugger stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// Number of the stop.
    pub stop: usize,
    /// The group.
    pub group: usize,
    /// Description of the reason.
    pub seen: String,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stop {} in group {}: {}", self.stop, self.group, self.seen)
    }
}

/// The list of all stops.
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

    /// Removes the recorded hits of all steps after step `position`.
    pub(super) fn forget_after(&mut self, position: u64) {
        for stop in &mut self.stops {
            stop.reached.retain(|at| *at <= position);
            stop.failed = stop.failed.filter(|at| *at <= position);
        }
    }

    /// Removes all recorded hits, because the launch starts again.
    pub(super) fn begin_again(&mut self) {
        for stop in &mut self.stops {
            stop.reached.clear();
            stop.failed = None;
        }
    }

    /// Returns the values of the watched registers and memory ranges. Each entry has the number of the stop that
    /// watches the values of the entry.
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

    /// Moves a stop to another address. Returns `false` if no stop has this number.
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

    /// Returns the first stop that is reached in the debugger's current state. If log stops are reached, appends their
    /// texts to `logs`.
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

/// A stop that is reached in the debugger's current state. The hit of this stop is not recorded yet.
struct Reached {
    group: usize,
    /// The lane for which the condition is true, if the condition depends on a lane.
    lane: Option<Lane>,
    text: String,
    /// Whether the condition could not be evaluated.
    failed: bool,
}

impl Stop {
    /// Returns a description if the stop is reached in the debugger's current state.
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
                    let text =
                        brief(&format!("{text}, but the condition `{condition}` cannot be computed: {why}"));
                    return Some(Reached { group, lane: None, text, failed: true });
                }
            },
        };
        let text = lane.map_or(text.clone(), |lane| format!("{text}, in lane {}", lane.0));
        Some(Reached { group, lane, text, failed: false })
    }
}

/// Describes the event if the event is a store to the byte address `wanted`.
fn stored(wanted: u32, event: &Event) -> Option<String> {
    match event {
        Event::Store { lane, address, value, .. } if *address == wanted => {
            Some(format!("lane {} stores {value:#010x} at {address:#x}", lane.0))
        }
        _ => None,
    }
}

reconverge_isa::choices! {
    /// A change of the set of lanes that run. Commands and the filters of debug clients use the name of each change.
    pub enum FlowChange {
        /// Lanes diverge. Some active lanes run first, and the remaining active lanes wait.
        Diverge = "diverge",
        /// Waiting lanes resume. The lanes that ran before this event wait or have ended.
        Resume = "resume",
        /// Waiting lanes resume, and continue together with the lanes that ran before this event.
        Reconverge = "reconverge",
    }
}

impl FlowChange {
    /// Returns a label and a sentence for the menus of debug clients.
    pub fn labels(self) -> (&'static str, &'static str) {
        match self {
            FlowChange::Diverge => ("Lanes diverge", "Lanes of a group diverge: some run, the others wait."),
            FlowChange::Resume => (
                "Lanes resume",
                "Waiting lanes resume. The lanes that ran before them wait or have ended. No lanes reconverge.",
            ),
            FlowChange::Reconverge => (
                "Lanes reconverge",
                "Waiting lanes resume, and continue together with the lanes that ran before them.",
            ),
        }
    }

    /// Describes an event. Returns `None` if the event is not of this kind.
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
