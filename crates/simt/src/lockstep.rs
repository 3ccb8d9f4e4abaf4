//! Runs two engines of a machine in lockstep and compares the engines.
//!
//! The fast engine runs many instructions at once, so the comparison covers stretches of one or more instructions.
//! First, the fast engine runs a stretch. It uses the same paths as in normal runs. The reference interpreter then
//! steps through the same number of instructions. Finally, this module compares all state that an engine may have
//! changed. The length of each stretch is random. A random choice also determines whether the engines announce the
//! events of a stretch. Announced events are also compared. The same seed results in the same stretches:
//!
//! ```text
//!              |--| |-| |-------------- ... ---| |-----| ...
//! fast           3   1            all              6            n instructions at once
//! reference     1 1 1 1   1 1 1 1 1 1 1 ... 1   1 1 1 1 1 1     as many, one by one
//!                  =   =                      =         =       compared
//! ```
//!
//! After a difference, a new copy of the group runs up to the stretch that showed the difference. The search then
//! shortens this stretch from both ends as long as the engines still differ. The result is a single instruction, or the
//! shortest stretch that the search found. The engines differ after this stretch if the fast engine runs the stretch at
//! once. A piece of host code for several instructions always runs as a whole. So [`first`] compares the engines again,
//! and each piece then covers fewer instructions. The last instruction of the resulting stretch is the first
//! instruction after which the engines differ.
//!
//! This module does not depend on any machine. Each machine implements [`Twin`].

use std::fmt;
use std::ops::Range;

use crate::compiling::Extent;
use crate::error::{Difference, GroupId, GroupTrap, RunError};
use crate::machine::{Issue, Step, Trap};
use crate::mask::{Lane, Mask};
use crate::observe::{Event, Observer, Silent};
use crate::paths::{Path, Shares};
use crate::random::Random;
use crate::registers::Row;
use crate::stop;
use crate::watch::Told;

/// Two copies of a group (Tesla: a block), one per engine. Each copy includes all data that the group reads and writes.
pub trait Twin {
    /// Cause of a trap.
    type Cause: Clone + PartialEq + fmt::Debug;

    /// Returns the group. If the twin is a block, returns the warp of the block that runs next.
    fn group(&self) -> GroupId;

    /// Returns the next instruction that the reference interpreter issues, or `None` if the group has ended.
    fn issue(&self) -> Option<Issue>;

    /// Returns the words of the instruction at an address, for the description of a trap. Returns `None` if traps of
    /// the machine do not show words.
    fn words(&self, _pc: u32) -> Option<[u32; 2]> {
        None
    }

    /// Executes one instruction with the reference interpreter.
    ///
    /// # Errors
    /// Returns the trap if the program trapped.
    fn reference<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Self::Cause>>;

    /// Runs the fast engine for at least one and at most `most` instructions. The engine uses the same paths as in a
    /// normal run, and announces these paths. The engine may stop early, at any point that allows the engine to
    /// continue later.
    fn fast<O: Observer>(&mut self, most: u64, observer: &mut O) -> Stretch<Self::Cause>;

    /// Compares the two copies. `end` is the result of the stretch in both copies. While the program runs, both copies
    /// must have the same state. State that the program can no longer read may differ. At the end of the program, all
    /// results of the group must be equal. The group's counts are also results.
    ///
    /// # Errors
    /// Returns the first item whose values in the two copies differ.
    fn compare(&mut self, end: &Result<Step, Trap<Self::Cause>>) -> Result<(), Differs>;
}

/// Result of one stretch of the fast engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch<Cause> {
    /// Number of instructions that ran. An instruction that traps may or may not be counted.
    pub instructions: u64,
    /// Result of the last instruction.
    pub end: Result<Step, Trap<Cause>>,
}

/// A difference between the two copies of a group, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// Name of the item that differs.
    pub what: String,
    /// Value in the reference interpreter.
    pub reference: String,
    /// Value in the fast engine.
    pub fast: String,
}

/// Compares an item of the reference copy with the same item of the fast copy.
///
/// # Errors
/// Returns an error if the values differ. The error shows both values with `Debug`.
pub fn check<T: PartialEq + fmt::Debug + ?Sized>(what: &str, reference: &T, fast: &T) -> Result<(), Differs> {
    if reference == fast {
        return Ok(());
    }
    let [reference, fast] = [reference, fast].map(|side| format!("{side:?}"));
    Err(Differs { what: what.to_owned(), reference, fast })
}

/// Compares the rows of two register files in some lanes. `name` converts the number of a row into its name.
///
/// # Errors
/// Returns an error for the first row and lane that differ. If the files have different numbers of rows, the function
/// also returns an error.
pub fn check_rows<const W: usize>(
    reference: &[Row<W>],
    fast: &[Row<W>],
    lanes: Mask,
    name: impl Fn(usize) -> String,
) -> Result<(), Differs> {
    check("the number of rows", &reference.len(), &fast.len())?;
    for (number, (Row(a), Row(b))) in reference.iter().zip(fast).enumerate().filter(|(_, (a, b))| a != b) {
        let differs = |lane: &Lane| a[lane.index()] != b[lane.index()];
        if let Some(lane) = lanes.lanes().take_while(|lane| lane.index() < W).find(differs) {
            let [reference, fast] = [a, b].map(|row| format!("{:#x}", row[lane.index()]));
            return Err(Differs { what: format!("{} of lane {}", name(number), lane.0), reference, fast });
        }
    }
    Ok(())
}

/// Reason why a group did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<Cause> {
    /// Both engines trapped with the same trap.
    Trap(GroupTrap<Cause>),
    /// The engines differ.
    Differ(Box<Difference>),
}

impl<Cause> Failure<Cause> {
    /// Returns the failure. A difference in a program with host code is a special case: [`first`] reduces this
    /// difference to fewer instructions.
    pub fn first(
        self,
        is_compiled: bool,
        again: impl Fn(Extent, &Difference) -> Option<Difference>,
    ) -> Failure<Cause> {
        match self {
            Failure::Differ(difference) if is_compiled => Failure::Differ(first(difference, again)),
            failure => failure,
        }
    }
}

impl<Launch, Cause> From<Failure<Cause>> for RunError<Launch, Cause> {
    fn from(failure: Failure<Cause>) -> Self {
        match failure {
            Failure::Trap(trap) => RunError::Trap(trap),
            Failure::Differ(difference) => RunError::Differ(difference),
        }
    }
}

/// Returns a seed for the stretches of a group. The seed differs between programs and between groups.
pub fn seed(words: &[u32], group: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ group.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    words.iter().fold(start, |hash, word| (hash ^ u64::from(*word)).wrapping_mul(0x0100_0000_01b3))
}

/// Runs a group on both engines until the group ends or a [stop] is requested. `make` creates both copies of the group
/// in the initial state. After a difference, the search for a shorter stretch calls `make` again. The function returns
/// both copies after the end of the group. For each path, the function adds to `shares` the number of instructions that
/// the fast engine ran by this path.
///
/// # Errors
/// Returns the trap or the difference as a [`Failure`].
pub fn run<T: Twin>(make: impl Fn() -> T, seed: u64, shares: &mut Shares) -> Result<T, Failure<T::Cause>> {
    let mut pair = Pair::new(make());
    let mut lengths = Lengths::new(seed);
    while !stop::asked() {
        let stretch = lengths.next();
        let start = pair.start();
        match pair.run(stretch, shares) {
            Ok(Ok(Step::Running)) => {}
            Ok(Ok(Step::Done)) => break,
            Ok(Err(trap)) => {
                let (group, words) = (start.group, pair.twin.words(trap.pc));
                return Err(Failure::Trap(GroupTrap { group, words, trap }));
            }
            Err(differs) => {
                let difference = start.found(&pair, stretch.observed, differs);
                let narrowed = narrowed(difference, |done| replayed(&make, seed, done));
                return Err(Failure::Differ(Box::new(narrowed)));
            }
        }
    }
    Ok(pair.twin)
}

/// Compares the engines once more, from the start of the group to the end of a known difference. `make` sets up the
/// fast engine differently, for example with host code for fewer instructions. Returns the first difference, or `None`
/// if the engines do not differ.
pub fn again<T: Twin>(make: impl Fn() -> T, known: &Difference) -> Option<Difference> {
    let Range { start, end } = known.instructions;
    let mut pair = Pair::new(make());
    while pair.done < end {
        let length = match start.checked_sub(pair.done) {
            Some(before @ 1..) => Length { most: before, observed: false },
            _ => Length { most: end - pair.done, observed: known.observed },
        };
        let start = pair.start();
        match pair.run(length, &mut Shares::default()) {
            Ok(Ok(Step::Running)) => {}
            Ok(_) => return None,
            Err(differs) => {
                let difference = start.found(&pair, length.observed, differs);
                return Some(narrowed(difference, |done| straight(&make, done)));
            }
        }
    }
    None
}

/// Reduces a known difference that covers several instructions. The function `again` compares the engines once more
/// ([`again()`]). In this comparison, host code is compiled to a given extent. Shorter pieces of code locate the defect
/// more exactly. The last instruction of the returned difference is the first instruction after which the engines
/// differ.
pub fn first(
    known: Box<Difference>,
    again: impl Fn(Extent, &Difference) -> Option<Difference>,
) -> Box<Difference> {
    let again = |extent| again(extent, &known);
    let length = known.instructions.end - known.instructions.start;
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    if length <= 1 {
        return known;
    }
    if let Some(single) = again(Extent::Upto(1)) {
        return Box::new(single);
    }
    for extent in [Extent::Upto, Extent::Blocks] {
        let Some(mut best) = again(extent(length)) else { continue };
        let (mut low, mut high) = (1, length);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match again(extent(middle)) {
                Some(found) => (best, high) = (found, middle),
                None => low = middle,
            }
        }
        return Box::new(best);
    }
    known
}

/// The stretch that the fast engine runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Length {
    /// Maximum number of instructions of the stretch.
    most: u64,
    /// Whether events are announced and compared.
    observed: bool,
}

/// Generator of the lengths of a group's stretches.
struct Lengths {
    random: Random,
    habit: Habit,
}

/// Distribution of the lengths of a group's stretches.
#[derive(Clone, Copy)]
enum Habit {
    /// Stretches with the maximum length that normal runs use. Normal runs do not compare engines.
    Whole,
    /// Stretches of one instruction.
    Single,
    /// Stretches of different lengths.
    Mixed,
}

impl Lengths {
    fn new(seed: u64) -> Lengths {
        let mut random = Random::new(seed);
        let habit = match random.below(8) {
            0 | 1 => Habit::Whole,
            2 => Habit::Single,
            _ => Habit::Mixed,
        };
        Lengths { random, habit }
    }

    fn next(&mut self) -> Length {
        let observed = self.random.once_in(2);
        let most = match self.habit {
            Habit::Whole => stop::SLICE,
            Habit::Single => 1,
            Habit::Mixed => match self.random.below(16) {
                0..4 => 1,
                4..9 => 2 + u64::from(self.random.below(7)),
                9..15 => 9 + u64::from(self.random.below(248)),
                _ => stop::SLICE,
            },
        };
        Length { most, observed }
    }
}

/// An observer that records flow events and counts instructions by path.
struct Watch<'a> {
    events: Vec<Event>,
    shares: &'a mut Shares,
}

impl Observer for Watch<'_> {
    const ENABLED: bool = true;
    const DATA: bool = false;
    const PATHS: bool = true;

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    fn path(&mut self, path: Path, instructions: u64) {
        self.shares.path(path, instructions);
    }
}

/// The two copies of a group, and the number of instructions that each copy has run.
struct Pair<T> {
    twin: T,
    done: u64,
    /// The last instruction that the reference interpreter issued.
    last: Option<Issue>,
}

/// State of a pair before a stretch.
struct Start {
    done: u64,
    group: GroupId,
    issue: Option<Issue>,
}

impl Start {
    /// Returns the description of a difference that the comparison after the stretch has found.
    fn found<T>(self, pair: &Pair<T>, observed: bool, differs: Differs) -> Difference {
        let Differs { what, reference, fast } = differs;
        let instructions = self.done..pair.done.max(self.done + 1);
        let (group, at, from) = (self.group, pair.last.or(self.issue), self.issue);
        Difference { group, at, instructions, from, observed, what, reference, fast }
    }
}

/// Result of a stretch, which is the same for both engines.
type End<T> = Result<Step, Trap<<T as Twin>::Cause>>;

impl<T: Twin> Pair<T> {
    fn new(twin: T) -> Pair<T> {
        Pair { twin, done: 0, last: None }
    }

    fn start(&self) -> Start {
        Start { done: self.done, group: self.twin.group(), issue: self.twin.issue() }
    }

    /// Runs a stretch on both engines and compares the engines.
    fn run(&mut self, length: Length, shares: &mut Shares) -> Result<End<T>, Differs> {
        let before = shares.total();
        let mut watch = Watch { events: Vec::new(), shares };
        let Stretch { instructions, end } = match length.observed {
            true => self.twin.fast(length.most, &mut watch),
            false => self.twin.fast(length.most, watch.shares),
        };
        let events = watch.events;
        let announced = shares.total() - before;
        shares.path(Path::Other, instructions.saturating_sub(announced));

        // The reference interpreter takes one more step than the fast engine in two cases. In the first case, the fast
        // engine trapped. In the second case, the fast engine ran no instruction because the group had ended.
        let steps = instructions + u64::from(end.is_err() || instructions == 0);
        let mut watch = Watch { events: Vec::new(), shares: &mut Shares::default() };
        let (mut stepped, mut found) = (0, Ok(Step::Running));
        while stepped < steps && found == Ok(Step::Running) {
            self.last = self.twin.issue();
            // The build contains the reference interpreter for these two observer types in any case. So the comparison
            // does not add compiled code.
            found = match length.observed {
                true => self.twin.reference(&mut Told::<false>(&mut watch)),
                false => self.twin.reference(&mut Silent),
            };
            stepped += 1;
        }
        self.done += stepped;
        check("the end", &found, &end)?;
        // The comparison ignores the numbers of instructions in two cases. After a trap, each engine may or may not
        // have counted the trapping instruction. If the group had already ended, the last step of the reference
        // interpreter issued no instruction.
        if end.is_ok() && (instructions > 0 || end == Ok(Step::Running)) {
            check("the number of instructions", &stepped, &instructions)?;
        }
        if watch.events != events {
            return Err(events_differ(&watch.events, &events));
        }
        self.twin.compare(&end)?;
        Ok(end)
    }
}

/// Returns the first event that differs.
fn events_differ(reference: &[Event], fast: &[Event]) -> Differs {
    let same = reference.iter().zip(fast).take_while(|(a, b)| a == b).count();
    let shown = |events: &[Event]| match events.get(same) {
        Some(event) => format!("{event:?}"),
        None => "no event".to_owned(),
    };
    Differs { what: format!("event {same} of the stretch"), reference: shown(reference), fast: shown(fast) }
}

/// Searches for shorter stretches that show a known difference. Returns the difference after the shortest stretch that
/// the search finds. Returns `known` if no shorter stretch shows the difference. The argument of `reach` is a number of
/// instructions. `reach` returns a pair that has run this number of instructions.
fn narrowed<T: Twin>(mut known: Difference, reach: impl Fn(u64) -> Option<Pair<T>>) -> Difference {
    let Range { start, end } = known.instructions;
    // The search first tries stretches without events. If the difference `known` was found with events, the search then
    // also tries stretches with events.
    let mut modes = vec![false];
    modes.extend(known.observed.then_some(true));
    for observed in modes {
        // Runs instructions `first` to `last` as one stretch. Returns the difference after that stretch, or `None` if
        // the engines do not differ.
        let differing = |first: u64, last: u64| {
            let mut pair = reach(start)?;
            while pair.done < first {
                let length = Length { most: first - pair.done, observed: false };
                if pair.run(length, &mut Shares::default()) != Ok(Ok(Step::Running)) {
                    return None;
                }
            }
            let start = pair.start();
            let length = Length { most: last - start.done, observed };
            let differs = pair.run(length, &mut Shares::default()).err()?;
            Some(start.found(&pair, observed, differs))
        };
        let Some(found) = differing(start, end) else { continue };
        known = found;
        // First, move the end of the stretch forward. The engines are still equal after `low` instructions, and differ
        // after `high` instructions.
        let (mut low, mut high) = (start, known.instructions.end);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match differing(start, middle) {
                Some(found) => (known, high) = (found, middle),
                None => low = middle,
            }
        }
        // Second, move the start of the stretch back. A stretch that starts at `low` shows the difference. A stretch
        // that starts at `high_start` does not show the difference.
        let (mut low, mut high_start) = (start, high);
        while high_start - low > 1 {
            let middle = low + (high_start - low) / 2;
            match differing(middle, high) {
                Some(found) => (known, low) = (found, middle),
                None => high_start = middle,
            }
        }
        break;
    }
    known
}

/// Returns a pair that has run the first `done` instructions of the group. The seed determines the stretches. Returns
/// `None` if no stretch ends after exactly `done` instructions.
fn replayed<T: Twin>(make: &impl Fn() -> T, seed: u64, done: u64) -> Option<Pair<T>> {
    let (mut pair, mut lengths) = (Pair::new(make()), Lengths::new(seed));
    while pair.done < done {
        if pair.run(lengths.next(), &mut Shares::default()) != Ok(Ok(Step::Running)) {
            return None;
        }
    }
    (pair.done == done).then_some(pair)
}

/// Returns a pair that has run the first `done` instructions of the group, in as few stretches as possible.
fn straight<T: Twin>(make: &impl Fn() -> T, done: u64) -> Option<Pair<T>> {
    let mut pair = Pair::new(make());
    while pair.done < done {
        let length = Length { most: done - pair.done, observed: false };
        if pair.run(length, &mut Shares::default()) != Ok(Ok(Step::Running)) {
            return None;
        }
    }
    (pair.done == done).then_some(pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Statistics;

    /// The program is a loop of three instructions for one lane: `a += 1`, `b += a`, and a jump. The jump goes back
    /// while `a` is less than the number of iterations.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Side {
        pc: u32,
        a: u32,
        b: u32,
        statistics: Statistics,
    }

    const LANES: Mask = Mask(1);
    const ROUNDS: u32 = 100;
    /// The iteration in which a defect has an effect.
    const ROUND: u32 = 40;

    impl Side {
        fn step<O: Observer>(&mut self, traps_at: u32, observer: &mut O) -> Result<Step, Trap<&'static str>> {
            let mut event = |event| {
                if O::ENABLED {
                    observer.event(event)
                }
            };
            event(Event::Issue { pc: self.pc, mask: LANES });
            self.statistics.instructions += 1;
            match self.pc {
                0 => self.a += 1,
                1 if self.a == traps_at => return Err(Trap { pc: 1, lanes: LANES, cause: "too much" }),
                1 => self.b += self.a,
                _ if self.a < ROUNDS => {
                    event(Event::Jump { to: 0 });
                    self.pc = 0;
                    return Ok(Step::Running);
                }
                _ => return Ok(Step::Done),
            }
            self.pc += 1;
            Ok(Step::Running)
        }
    }

    /// Kind of defect in the fast engine.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Defect {
        None,
        /// `b` is wrong after the instruction, no matter by which path the instruction runs.
        Single,
        /// `b` is wrong after an iteration that runs as one piece.
        Block,
        /// `b` is wrong after a stretch of two iterations. Each iteration runs as one piece.
        Chain,
        /// `b` is wrong after an observed iteration that runs as one piece.
        Observed,
        /// The fast engine does not announce a jump.
        Event,
        /// The fast engine counts an instruction twice.
        Count,
        /// The trap has a wrong cause.
        Trap,
        /// The fast engine ends the program too early.
        End,
        /// The fast engine does not run any instruction.
        Stuck,
        /// The fast engine reports one instruction more than it ran.
        Claim,
        /// `b` is wrong if its instruction `b += a` runs in a piece of code of any length.
        Piece,
        /// `b` is wrong if its instruction `b += a` runs in a piece of code, but is not the first instruction of the
        /// piece.
        Piece2,
        /// `b` is wrong if its instruction `b += a` is neither the first nor the last instruction of a piece of code.
        Whole,
    }

    struct Toy {
        reference: Side,
        fast: Side,
        defect: Defect,
        traps_at: u32,
        /// Extent of the pieces of code: whole iterations, or a number of instructions.
        extent: Extent,
    }

    impl Toy {
        /// Executes one instruction with the fast engine.
        fn one<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<&'static str>> {
            let now = self.fast.a == ROUND && self.fast.pc == 1;
            let mut step = self.fast.step(self.traps_at, observer);
            match (self.defect, &mut step) {
                (Defect::Single, _) if now => self.fast.b ^= 1,
                (Defect::Count, _) if now => self.fast.statistics.instructions += 1,
                (Defect::End, _) if now => step = Ok(Step::Done),
                (Defect::Trap, Err(trap)) => trap.cause = "something else",
                _ => {}
            }
            step
        }
    }

    impl Twin for Toy {
        type Cause = &'static str;

        fn group(&self) -> GroupId {
            GroupId::Lanes { first: 0 }
        }

        fn issue(&self) -> Option<Issue> {
            Some(Issue { pc: self.reference.pc, mask: LANES })
        }

        fn reference<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<&'static str>> {
            self.reference.step(self.traps_at, observer)
        }

        fn fast<O: Observer>(&mut self, most: u64, observer: &mut O) -> Stretch<&'static str> {
            let mut instructions = 0;
            let mut rounds = 0;
            let mut end = Ok(Step::Running);
            while instructions < most && end == Ok(Step::Running) {
                if self.defect == Defect::Stuck && self.fast.a == ROUND {
                    break;
                }
                // The engine runs a whole piece if the budget covers the piece. Otherwise, the engine runs a single
                // instruction.
                let size = match self.extent {
                    Extent::Upto(size) => size.min(3 - self.fast.pc),
                    _ if self.fast.pc == 0 && self.extent.most() >= 3 => 3,
                    _ => 0,
                };
                let block = size > 0 && most - instructions >= u64::from(size);
                let (first, last) = (self.fast.pc, self.fast.pc + size - u32::from(size > 0));
                let now =
                    (self.fast.a + u32::from(first == 0)) == ROUND && block && (first..=last).contains(&1);
                let mut events = Vec::new();
                let mut watch = Watch { events: Vec::new(), shares: &mut Shares::default() };
                for _ in 0..if block { size } else { 1 } {
                    if end == Ok(Step::Running) {
                        end = self.one(&mut watch);
                        instructions += 1;
                    }
                }
                events.append(&mut watch.events);
                if O::PATHS {
                    observer.path(
                        if block { Path::Block } else { Path::Single },
                        if block { size.into() } else { 1 },
                    );
                }
                rounds += u32::from(block);
                if now {
                    match self.defect {
                        Defect::Block => self.fast.b ^= 2,
                        Defect::Chain if rounds >= 2 => self.fast.b ^= 4,
                        Defect::Observed if O::ENABLED => self.fast.b ^= 8,
                        Defect::Event => events.retain(|event| !matches!(event, Event::Jump { .. })),
                        Defect::Claim => instructions += 1,
                        Defect::Piece => self.fast.b ^= 16,
                        Defect::Piece2 if first < 1 => self.fast.b ^= 16,
                        Defect::Whole if first < 1 && last > 1 => self.fast.b ^= 16,
                        _ => {}
                    }
                }
                if O::ENABLED {
                    events.into_iter().for_each(|event| observer.event(event));
                }
            }
            Stretch { instructions, end }
        }

        fn compare(&mut self, _: &Result<Step, Trap<&'static str>>) -> Result<(), Differs> {
            let (reference, fast) = (&self.reference, &self.fast);
            check_rows(&[Row([reference.b])], &[Row([fast.b])], LANES, |_| "b".to_owned())?;
            check("the counts", &reference.statistics, &fast.statistics)?;
            check("the place", &(reference.pc, reference.a), &(fast.pc, fast.a))
        }
    }

    fn toy(defect: Defect, traps_at: u32, extent: Extent) -> Toy {
        Toy { reference: Side::default(), fast: Side::default(), defect, traps_at, extent }
    }

    fn run_with(defect: Defect, traps_at: u32, seed: u64) -> (Result<Toy, Failure<&'static str>>, Shares) {
        let mut shares = Shares::default();
        (run(|| toy(defect, traps_at, Extent::Throughout), seed, &mut shares), shares)
    }

    /// Returns the differences that several seeds find. To reduce each difference, the engines are compared again with
    /// shorter pieces of code.
    fn firsts(defect: Defect) -> Vec<Difference> {
        let again = |extent, known: &Difference| again(|| toy(defect, u32::MAX, extent), known);
        let differences = differences(defect).into_iter();
        differences.map(|known| *first(Box::new(known.clone()), again)).collect()
    }

    /// Returns the differences that several seeds find.
    fn differences(defect: Defect) -> Vec<Difference> {
        let found = (0..64).filter_map(|seed| match run_with(defect, u32::MAX, seed).0 {
            Ok(_) => None,
            Err(Failure::Differ(difference)) => Some(*difference),
            Err(failure) => panic!("{failure:?}"),
        });
        found.collect()
    }

    /// Number of the instruction that adds to `b` in iteration [`ROUND`].
    const AT: u64 = 3 * (ROUND as u64 - 1) + 1;

    #[test]
    fn engines_that_agree_run_to_the_end_by_all_their_paths() {
        let mut all = Shares::default();
        for seed in 0..64 {
            let (ended, shares) = run_with(Defect::None, u32::MAX, seed);
            let Ok(ended) = ended else { panic!("a difference") };
            assert_eq!((ended.reference.b, &ended.reference), (ROUNDS * (ROUNDS + 1) / 2, &ended.fast));
            assert_eq!(shares.total(), 3 * u64::from(ROUNDS));
            all.add(&shares);
        }
        assert!(all.of(Path::Block) > 0 && all.of(Path::Single) > 0 && all.of(Path::Other) == 0, "{all}");
    }

    #[test]
    fn the_same_seed_gives_the_same_stretches_and_another_seed_others() {
        let lengths = |seed| {
            let mut lengths = Lengths::new(seed);
            (0..20).map(|_| lengths.next()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(7), lengths(7));
        assert!((0..64).any(|seed| lengths(seed) != lengths(7)));
        let all: Vec<Length> = (0..64).flat_map(lengths).collect();
        let has = |most: Range<u64>, observed| {
            all.iter().any(|length| most.contains(&length.most) && length.observed == observed)
        };
        for observed in [false, true] {
            assert!(has(1..2, observed) && has(2..9, observed) && has(9..300, observed));
        }
        assert!(
            [false, true]
                .map(|observed| Length { most: stop::SLICE, observed })
                .iter()
                .all(|length| all.contains(length))
        );
        assert_ne!(seed(&[1, 2], 0), seed(&[1, 2], 1));
        assert_ne!(seed(&[1, 2], 0), seed(&[2, 1], 0));
    }

    #[test]
    fn a_defect_that_shows_in_one_instruction_is_narrowed_to_it_by_every_seed() {
        let found = differences(Defect::Single);
        assert_eq!(found.len(), 64);
        for difference in found {
            assert_eq!(difference.instructions, AT..AT + 1);
            assert_eq!(difference.at, Some(Issue { pc: 1, mask: LANES }));
            assert_eq!((difference.what.as_str(), difference.observed), ("b of lane 0", false));
            assert_eq!((difference.reference.as_str(), difference.fast.as_str()), ("0x334", "0x335"));
        }
    }

    #[test]
    fn a_defect_that_shows_only_in_several_instructions_is_found_and_narrowed_to_them() {
        let found = differences(Defect::Block);
        assert!(found.len() > 32, "{}", found.len());
        for difference in found {
            assert_eq!(difference.instructions, AT - 1..AT + 2);
            assert_eq!(difference.from, Some(Issue { pc: 0, mask: LANES }));
            assert_eq!(difference.at, Some(Issue { pc: 2, mask: LANES }));
        }
        let found = differences(Defect::Chain);
        assert!(found.len() > 16, "{}", found.len());
        for difference in found {
            assert_eq!(difference.instructions, AT - 4..AT + 2);
        }
    }

    #[test]
    fn a_defect_of_an_instruction_in_a_piece_of_code_is_narrowed_to_the_instruction() {
        for (defect, instructions) in [
            (Defect::Piece, AT..AT + 1),
            (Defect::Piece2, AT - 1..AT + 1),
            (Defect::Whole, AT - 1..AT + 2),
            (Defect::Block, AT..AT + 1),
            (Defect::Single, AT..AT + 1),
        ] {
            let found = firsts(defect);
            assert!(found.len() > 32, "{}", found.len());
            for difference in found {
                assert_eq!(difference.instructions, instructions, "{defect:?}");
                let last = (instructions.end - 1) % 3;
                assert_eq!(difference.at, Some(Issue { pc: last as u32, mask: LANES }), "{defect:?}");
                assert_eq!(difference.what, "b of lane 0");
            }
        }
        // If the second comparison does not find the difference, the known difference is returned unchanged.
        let known = &differences(Defect::Chain)[0];
        assert_eq!(*first(Box::new(known.clone()), |_, _| None), *known);
        // If the engines differ only with pieces of whole blocks, the search shortens these pieces.
        let blocks = |extent: Extent, _: &Difference| match extent {
            Extent::Blocks(4..) => Some(Difference { observed: true, ..known.clone() }),
            _ => None,
        };
        assert!(first(Box::new(known.clone()), blocks).observed);
    }

    #[test]
    fn a_defect_that_shows_only_to_an_observer_is_found_and_says_so() {
        let found = differences(Defect::Observed);
        assert!(found.len() > 16, "{}", found.len());
        assert!(
            found.iter().all(|difference| difference.observed && difference.instructions == (AT - 1..AT + 2))
        );
        let found = differences(Defect::Event);
        assert!(found.len() > 16, "{}", found.len());
        for difference in found {
            assert_eq!((difference.what.as_str(), difference.observed), ("event 3 of the stretch", true));
            assert_eq!(
                (difference.reference.as_str(), difference.fast.as_str()),
                ("Jump { to: 0 }", "no event")
            );
        }
    }

    #[test]
    fn counts_ends_traps_and_missing_progress_differ_too() {
        for (defect, what) in [
            (Defect::Count, "the counts"),
            (Defect::End, "the end"),
            (Defect::Stuck, "the number of instructions"),
        ] {
            let found = differences(defect);
            assert_eq!(found.len(), 64, "{defect:?}");
            assert!(found.iter().all(|difference| difference.what == what), "{defect:?}: {found:?}");
        }
        let found = differences(Defect::Claim);
        assert!(!found.is_empty() && found.iter().all(|difference| difference.what != "b of lane 0"));
        for seed in 0..64 {
            let Err(Failure::Differ(difference)) = run_with(Defect::Trap, ROUND, seed).0 else {
                panic!("the traps differ")
            };
            assert_eq!((difference.what.as_str(), difference.instructions), ("the end", AT..AT + 1));
        }
    }

    #[test]
    fn a_trap_of_both_engines_is_the_result() {
        for seed in 0..64 {
            let trap = Trap { pc: 1, lanes: LANES, cause: "too much" };
            let found = run_with(Defect::None, ROUND, seed).0.err();
            let group = GroupId::Lanes { first: 0 };
            assert_eq!(found, Some(Failure::Trap(GroupTrap { group, words: None, trap })));
        }
    }

    #[test]
    fn rows_are_compared_in_the_lanes_that_exist() {
        let (a, mut b) = (Row([1u32; 4]), Row([1u32; 4]));
        b.0[3] = 0x20;
        let check = |lanes| check_rows(&[a, a], &[a, b], lanes, |row| format!("R{row}"));
        assert_eq!(check(Mask::first(3)), Ok(()));
        let differs = check(Mask::first(4)).unwrap_err();
        assert_eq!((&*differs.what, &*differs.reference, &*differs.fast), ("R1 of lane 3", "0x1", "0x20"));
        assert!(check_rows(&[a], &[a, a], Mask::first(4), |_| String::new()).is_err());
    }
}
