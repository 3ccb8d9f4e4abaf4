//! Observers that are chosen at run time. The crate of a machine compiles the machine's engine for four kinds of
//! observers. These four kinds can pass events to any other observer. So a crate with additional observers does not
//! compile the engine again.

use crate::mask::Mask;
use crate::observe::{Event, Observer, hand_on};
use crate::paths::Path;

/// The methods of an [`Observer`] as a trait that can be used through a pointer. Every observer is a listener.
pub trait Listener {
    /// Calls [`Observer::event`].
    fn event(&mut self, event: Event);
    /// Calls [`Observer::group`].
    fn group(&mut self, number: usize);
    /// Calls [`Observer::issues`].
    fn issues(&mut self, addresses: &[u32], mask: Mask);
    /// Calls [`Observer::again`].
    fn again(&mut self, key: u32, active: Mask, first: Mask) -> bool;
    /// Calls [`Observer::learn`].
    fn learn(&mut self, key: u32, active: Mask, first: Mask);
    /// Calls [`Observer::wants_depths`].
    fn wants_depths(&self) -> bool;
    /// Calls [`Observer::depth`].
    fn depth(&mut self, number: usize, used: u32);
    /// Calls [`Observer::path`].
    fn path(&mut self, path: Path, instructions: u64);
}

impl<O: Observer> Listener for O {
    hand_on!(self, Observer, self);
    fn path(&mut self, path: Path, instructions: u64) {
        Observer::path(self, path, instructions);
    }
}

/// The observer of a run. The variant states which kinds of events the observer receives.
///
/// ```
/// use reconverge_simt::{FlowTrace, Recorder, Shares, Silent, Watch};
/// assert!(matches!(Watch::of(&mut Silent), Watch::Nothing));
/// assert!(matches!(Watch::of(&mut Shares::default()), Watch::Paths(_)));
/// assert!(matches!(Watch::of(&mut FlowTrace::default()), Watch::Flow(_)));
/// assert!(matches!(Watch::of(&mut Recorder::default()), Watch::Data(_)));
/// ```
pub enum Watch<'a> {
    /// No observer.
    Nothing,
    /// An observer that receives the paths of the fast engine ([`Observer::PATHS`]), but no events.
    Paths(&'a mut dyn Listener),
    /// An observer that receives all events except the events of registers and memory.
    Flow(&'a mut dyn Listener),
    /// An observer that receives all events ([`Observer::DATA`]).
    Data(&'a mut dyn Listener),
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Watch::Nothing => "Nothing",
            Watch::Paths(_) => "Paths",
            Watch::Flow(_) => "Flow",
            Watch::Data(_) => "Data",
        })
    }
}

impl<'a> Watch<'a> {
    /// Returns an observer as a watch. The constants of the observer determine the kind of events.
    pub fn of<O: Observer>(observer: &'a mut O) -> Watch<'a> {
        match (O::ENABLED, O::DATA, O::PATHS) {
            (true, true, _) => Watch::Data(observer),
            (true, false, _) => Watch::Flow(observer),
            (false, _, true) => Watch::Paths(observer),
            (false, _, false) => Watch::Nothing,
        }
    }

    /// Returns an observer that receives all events except the events of registers and memory. Returns `None` if the
    /// observer does not request events. This function is for code that never announces events of registers and memory.
    pub fn flow(self) -> Option<Told<'a, false>> {
        match self {
            Watch::Nothing | Watch::Paths(_) => None,
            Watch::Flow(listener) | Watch::Data(listener) => Some(Told(listener)),
        }
    }
}

/// An observer that passes events to a listener. Engines are compiled for this type. [`watched!`](crate::watched)
/// creates values of this type.
pub struct Told<'a, const DATA: bool>(pub &'a mut dyn Listener);

impl<const DATA: bool> Observer for Told<'_, DATA> {
    const ENABLED: bool = true;
    const DATA: bool = DATA;
    hand_on!(self, Listener, self.0);
}

/// Evaluates an expression with the observer of a [`Watch`]. The expression is compiled for four types of observers.
#[macro_export]
macro_rules! watched {
    ($watch:expr, |$observer:ident| $run:expr) => {
        match $watch {
            $crate::Watch::Nothing => {
                let $observer = &mut $crate::Silent;
                $run
            }
            $crate::Watch::Paths(listener) => {
                // The type `Shares` is used here because lockstep also uses this type. With a different type, the
                // compiler would have to compile the engine once more.
                let mut shares = $crate::Shares::default();
                let result = {
                    let $observer = &mut shares;
                    $run
                };
                for path in $crate::Path::ALL {
                    listener.path(path, shares.of(path));
                }
                result
            }
            $crate::Watch::Flow(listener) => {
                let $observer = &mut $crate::watch::Told::<false>(listener);
                $run
            }
            $crate::Watch::Data(listener) => {
                let $observer = &mut $crate::watch::Told::<true>(listener);
                $run
            }
        }
    };
}

/// Evaluates an expression that does not announce paths. The expression is compiled only for three types of observers.
/// The first type receives no events. The second type receives all events except registers and memory. The third type
/// receives all events. If the observer receives paths but no events, the macro uses [`Silent`](crate::Silent) instead.
/// If the observer receives paths and all events except registers and memory, the macro uses
/// [`Told`](crate::watch::Told) instead.
#[macro_export]
macro_rules! announced {
    ($Observer:ident, |$observer:ident| $run:expr) => {
        if $Observer::ENABLED && $Observer::PATHS && !$Observer::DATA {
            let $observer = &mut $crate::watch::Told::<false>($observer);
            $run
        } else if $Observer::ENABLED {
            $run
        } else {
            let $observer = &mut $crate::Silent;
            $run
        }
    };
}

/// Defines the methods that step a launch. The macro adds these methods to a type. This type must have a method
/// `observed_step`, which is generic over the observer. The added methods are compiled in the crate of the machine.
///
/// With the argument `advance`, the type must also have a method `observed_advance`. With the argument `groups`, the
/// macro defines `observed_advance`, which runs one group after another. For this definition, the type must have the
/// field `done` and the methods `statistics`, `lowered`, `group_number` and `advance_group`.
#[macro_export]
macro_rules! stepping {
    ($Cause:ty) => {
        /// Executes one instruction.
        ///
        /// # Errors
        /// Returns the trap if the program trapped. The group then stays at the trapping instruction.
        pub fn step<O: $crate::Observer>(
            &mut self,
            observer: &mut O,
        ) -> Result<$crate::Step, $crate::Trap<$Cause>> {
            self.step_watched($crate::Watch::of(observer))
        }

        /// Executes one instruction as [`Run::step`] does. The observer is chosen at run time.
        ///
        /// # Errors
        /// Returns the trap if the program trapped, as [`Run::step`] does.
        pub fn step_watched(
            &mut self,
            watch: $crate::Watch<'_>,
        ) -> Result<$crate::Step, $crate::Trap<$Cause>> {
            $crate::watched!(watch, |observer| self.observed_step(observer))
        }
    };
    ($Cause:ty, advance) => {
        $crate::stepping!($Cause);

        /// Executes `most` instructions, or fewer instructions if the launch ends earlier. If the options select the
        /// reference interpreter, this interpreter executes the instructions. Otherwise, the fast engine executes the
        /// instructions. Events of registers and memory are not announced.
        ///
        /// # Errors
        /// Returns the trap if the program trapped. The group then stays at the trapping instruction.
        pub fn advance(
            &mut self,
            most: u64,
            watch: $crate::Watch<'_>,
        ) -> Result<$crate::Step, $crate::Trap<$Cause>> {
            match watch.flow() {
                None => self.observed_advance(most, &mut $crate::Silent),
                Some(mut told) => self.observed_advance(most, &mut told),
            }
        }
    };
    ($Cause:ty, groups) => {
        $crate::stepping!($Cause, advance);

        fn observed_advance<O: $crate::Observer>(
            &mut self,
            most: u64,
            observer: &mut O,
        ) -> Result<$crate::Step, $crate::Trap<$Cause>> {
            let end = self.statistics().instructions.saturating_add(most);
            // The first call lowers the program. Copies of the launch share the lowered program.
            let fast = self.lowered();
            while !self.done {
                let left = end.saturating_sub(self.statistics().instructions);
                if left == 0 {
                    return Ok($crate::Step::Running);
                }
                if O::ENABLED {
                    observer.group(self.group_number());
                }
                match &fast {
                    Some(fast) => self.advance_group(fast, left, observer)?,
                    None => {
                        self.observed_step(observer)?;
                    }
                }
            }
            Ok($crate::Step::Done)
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowTrace, Recorder, Shares, Silent};

    #[test]
    fn an_engine_sees_the_constants_of_the_observer_and_the_observer_the_events() {
        fn told<O: Observer>(observer: &mut O) -> (bool, bool, bool) {
            observer.event(Event::Jump { to: 8 });
            if O::PATHS {
                observer.path(Path::Chain, 1);
            }
            (O::ENABLED, O::DATA, O::PATHS)
        }
        let (mut recorder, mut trace, mut shares) =
            (Recorder::default(), FlowTrace::default(), Shares::default());
        assert_eq!(watched!(Watch::of(&mut Silent), |observer| told(observer)), (false, false, false));
        assert_eq!(watched!(Watch::of(&mut shares), |observer| told(observer)), (false, false, true));
        assert_eq!(watched!(Watch::of(&mut trace), |observer| told(observer)), (true, false, false));
        assert_eq!(watched!(Watch::of(&mut recorder), |observer| told(observer)), (true, true, false));
        assert_eq!((recorder.events.len(), trace.steps.len(), shares.of(Path::Chain)), (1, 1, 1));
    }
}
