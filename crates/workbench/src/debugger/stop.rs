//! Where a debugger stops.

use std::fmt;

use reconverge_simt::{Event, Lane};

use super::Debugger;
use crate::session::{Register, Stepping};

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `==`
    Equal,
    /// `!=`
    Differs,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Relation {
    /// All with their spelling; longer ones first.
    pub const ALL: [(&'static str, Relation); 6] = [
        ("==", Relation::Equal),
        ("!=", Relation::Differs),
        ("<=", Relation::AtMost),
        (">=", Relation::AtLeast),
        ("<", Relation::Less),
        (">", Relation::Greater),
    ];

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
    /// A register is written: its number in events, and one lane or any.
    Write(u32, Option<Lane>),
    /// Memory at a byte address is written.
    Store(u32),
    /// Nothing but the condition.
    Always,
}

/// A stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Its number.
    pub number: usize,
    /// What it waits for.
    pub on: On,
    /// Only in this group.
    pub group: Option<usize>,
    /// Only when this holds.
    pub condition: Option<Condition>,
    /// How it was written.
    pub text: String,
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
    pub fn add(&mut self, on: On, group: Option<usize>, condition: Option<Condition>, text: &str) -> usize {
        self.last += 1;
        self.stops.push(Stop { number: self.last, on, group, condition, text: text.to_owned() });
        self.last
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

    /// The first stop that is reached, after an instruction with these events.
    pub(super) fn reached(
        &self,
        stepping: &Stepping,
        events: &[(usize, Event)],
        debugger: &Debugger,
    ) -> Option<Why> {
        if self.stops.is_empty() {
            return None;
        }
        let next = stepping.current();
        self.stops.iter().find_map(|stop| {
            let (group, seen) = match stop.on {
                On::Address(address) => {
                    let group = next.filter(|group| {
                        stepping.issue(*group).is_some_and(|issue| issue.pc == address && issue.mask.any())
                    })?;
                    (group, format!("at {}", debugger.spelled(address)))
                }
                On::Lane(lane) => {
                    let takes_part =
                        |group: usize| stepping.issue(group).is_some_and(|issue| issue.mask.has(lane));
                    (next.filter(|group| takes_part(*group))?, format!("lane {} runs", lane.0))
                }
                On::Always => (next?, "the condition holds".to_owned()),
                ref on => events.iter().find_map(|(group, event)| Some((*group, seen(on, event)?)))?,
            };
            if stop.group.is_some_and(|only| only != group) {
                return None;
            }
            let seen = match &stop.condition {
                None => seen,
                Some(condition) => {
                    let lane = condition.holds(stepping, group)?;
                    format!("{seen}, in lane {}", lane.0)
                }
            };
            Some(Why { stop: stop.number, group, seen })
        })
    }
}

/// What an event shows to a stop that waits for one.
fn seen(on: &On, event: &Event) -> Option<String> {
    match (on, event) {
        (On::Diverge, Event::Diverge { taken, not }) => {
            Some(format!("lanes part: {taken} first, then {not}"))
        }
        (On::Reconverge, Event::Reconverge { mask }) => Some(format!("lanes run together: {mask}")),
        (On::Write(wanted, lane), Event::Write { lane: of, register, value })
            if wanted == register && lane.is_none_or(|lane| lane == *of) =>
        {
            Some(format!("lane {} is written {value:#010x}", of.0))
        }
        (On::Store(wanted), Event::Store { lane, address, value }) if address == wanted => {
            Some(format!("lane {} stores {value:#010x} at {address:#x}", lane.0))
        }
        _ => None,
    }
}
