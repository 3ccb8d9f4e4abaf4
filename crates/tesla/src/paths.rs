//! Where control can get with a stack: the states of a machine that pushes and pops, found without running it.
//!
//! A state is a control (an address, and what else decides) with the token on top of the stack. What lies below a token
//! is kept once a token, not once a state, so that calls within calls and loops that push need no bound: a pop goes on
//! above everything that a token was ever pushed on.

use std::collections::{BTreeMap, BTreeSet};

/// What a state does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move<C, T> {
    /// Goes on with the same stack.
    Go(C),
    /// Pushes a token.
    Push(C, T),
    /// Pops the token on top.
    Pop(C),
}

/// What can be reached.
#[derive(Clone, Debug)]
pub struct Paths<C, T> {
    /// Every control with every token that can be on top there; `None` is the empty stack.
    pub states: BTreeSet<(C, Option<T>)>,
    /// What a token can lie on.
    pub below: BTreeMap<T, BTreeSet<Option<T>>>,
}

impl<C: Copy + Ord, T: Copy + Ord> Paths<C, T> {
    /// What can be reached from `start` with an empty stack. `moves` gives the moves of a state, whatever lies below.
    pub fn from(start: C, mut moves: impl FnMut(C, Option<T>, &mut Vec<Move<C, T>>)) -> Self {
        let mut paths = Paths { states: BTreeSet::new(), below: BTreeMap::new() };
        let mut popped: BTreeMap<T, BTreeSet<C>> = BTreeMap::new();
        let mut open = vec![(start, None)];
        let mut next = Vec::new();
        while let Some((control, top)) = open.pop() {
            if !paths.states.insert((control, top)) {
                continue;
            }
            next.clear();
            moves(control, top, &mut next);
            for step in next.drain(..) {
                match (step, top) {
                    (Move::Go(to), _) => open.push((to, top)),
                    (Move::Push(to, token), _) => {
                        if paths.below.entry(token).or_default().insert(top) {
                            open.extend(popped.get(&token).into_iter().flatten().map(|to| (*to, top)));
                        }
                        open.push((to, Some(token)));
                    }
                    (Move::Pop(to), Some(token)) => {
                        if popped.entry(token).or_default().insert(to) {
                            let below = paths.below.get(&token).into_iter().flatten();
                            open.extend(below.map(|under| (to, *under)));
                        }
                    }
                    (Move::Pop(to), None) => open.push((to, None)),
                }
            }
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 calls 10 from 0 and 2; 10 calls itself from 11, or returns at 12.
    #[test]
    fn a_pop_goes_on_above_all_that_its_token_was_pushed_on() {
        let paths = Paths::from(0, |at: u32, top: Option<u32>, next| match at {
            0 | 2 => next.push(Move::Push(10, at)),
            10 => next.extend([Move::Push(10, 10), Move::Go(12)]),
            12 => next.extend(top.map(|from| Move::Pop(from + 1))),
            1 => next.push(Move::Go(2)),
            11 => next.push(Move::Go(12)),
            _ => {}
        });
        let tops = |at: u32| {
            let found = paths.states.iter().filter(|state| state.0 == at).map(|state| state.1);
            found.collect::<Vec<_>>()
        };
        assert_eq!(tops(3), [None]);
        assert_eq!(tops(11), [Some(0), Some(2), Some(10)]);
        assert_eq!(paths.below[&10], BTreeSet::from([Some(0), Some(2), Some(10)]));
    }
}
