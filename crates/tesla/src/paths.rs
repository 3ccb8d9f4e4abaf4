//! Paths of control flow with a stack. This file finds the reachable states of a machine that pushes and pops tokens.
//! The file does not run the machine.
//!
//! A state consists of a control and the token on top of the stack. A control is an address, together with all other
//! data that determine the next step. The token is not part of the control. A state does not contain the tokens below
//! the top. Instead, this file stores, for each token, the tokens that can be directly below the token. So the number
//! of states is finite, even if a program has unlimited recursion or a loop that pushes tokens. The same token can be
//! pushed on top of different tokens. After a pop of the token, each of these different tokens can be the new top
//! token.

use std::collections::BTreeMap;

use reconverge_isa::sets::NumberSet;

/// A step from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move<C, T> {
    /// Continues at a control with the same stack.
    Go(C),
    /// Pushes a token and continues at a control.
    Push(C, T),
    /// Pops the token on top and continues at a control.
    Pop(C),
}

/// The reachable controls and tokens. Controls and tokens are numbered in the order of discovery.
#[derive(Clone, Debug)]
pub struct Paths<C, T> {
    controls: Numbering<C>,
    tokens: Numbering<T>,
    /// For each control, the entries that can be on top of the stack at that control.
    tops: Vec<NumberSet>,
    /// For each token, the entries that can be below the token.
    below: Vec<NumberSet>,
}

impl<C: Copy + Ord, T: Copy + Ord> Paths<C, T> {
    /// Returns the states that can be reached from `start` with an empty stack. `moves` receives a state, and adds the
    /// steps from this state to a list. The steps must not depend on tokens below the top.
    pub fn from(start: C, mut moves: impl FnMut(C, Option<T>, &mut Vec<Move<C, T>>)) -> Self {
        let (mut controls, mut tokens) = (Numbering::new(), Numbering::new());
        let (mut tops, mut below, mut popped) = (Vec::new(), Vec::new(), Vec::new());
        let mut open = vec![(controls.number(start), EMPTY)];
        let mut next = Vec::new();
        while let Some((control, top)) = open.pop() {
            if !of(&mut tops, control).insert(top) {
                continue;
            }
            next.clear();
            moves(
                controls.items[control as usize],
                number(top).map(|token| tokens.items[token as usize]),
                &mut next,
            );
            for step in next.drain(..) {
                match (step, number(top)) {
                    (Move::Go(to), _) | (Move::Pop(to), None) => open.push((controls.number(to), top)),
                    (Move::Push(to, token), _) => {
                        let token = tokens.number(token);
                        if of(&mut below, token).insert(top) {
                            open.extend(of(&mut popped, token).iter().map(|to| (to, top)));
                        }
                        open.push((controls.number(to), token + 1));
                    }
                    (Move::Pop(to), Some(token)) => {
                        let to = controls.number(to);
                        if of(&mut popped, token).insert(to) {
                            open.extend(of(&mut below, token).iter().map(|under| (to, under)));
                        }
                    }
                }
            }
        }
        Paths { controls, tokens, tops, below }
    }

    /// Returns every control with every token that can be on top of the stack at that control. The number of a token
    /// represents the token, and `None` represents the empty stack.
    pub fn states(&self) -> impl Iterator<Item = (C, Option<u32>)> {
        let states = self.controls.items.iter().zip(&self.tops);
        states.flat_map(|(control, tops)| tops.iter().map(|top| (*control, number(top))))
    }

    /// Returns every control, by number.
    pub fn controls(&self) -> &[C] {
        &self.controls.items
    }

    /// Returns every token, by number.
    pub fn tokens(&self) -> &[T] {
        &self.tokens.items
    }

    /// Returns the tokens that can be below a token.
    pub fn below(&self, token: u32) -> impl Iterator<Item = u32> {
        self.below[token as usize].iter().filter_map(number)
    }
}

/// The entry that stands for an empty stack. The entry that stands for a token is the number of the token plus 1.
const EMPTY: u32 = 0;

/// Returns the number of the token in an entry, or `None` for the empty stack.
fn number(top: u32) -> Option<u32> {
    top.checked_sub(1)
}

/// Returns the set of the control or token with this number.
fn of(sets: &mut Vec<NumberSet>, number: u32) -> &mut NumberSet {
    let number = number as usize;
    if sets.len() <= number {
        sets.resize(number + 1, NumberSet::new());
    }
    &mut sets[number]
}

/// Distinct items with numbers.
#[derive(Clone, Debug)]
struct Numbering<T> {
    items: Vec<T>,
    numbers: BTreeMap<T, u32>,
}

impl<T: Copy + Ord> Numbering<T> {
    fn new() -> Self {
        Numbering { items: Vec::new(), numbers: BTreeMap::new() }
    }

    /// Returns the number of an item. A new item gets the next number.
    fn number(&mut self, item: T) -> u32 {
        let next = self.items.len() as u32;
        let number = *self.numbers.entry(item).or_insert(next);
        if number == next {
            self.items.push(item);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The main program starts at address 0, and calls address 10 from the addresses 0 and 2. The subroutine at address
    /// 10 calls the same subroutine again, or returns at address 12.
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
        let token = |number: u32| paths.tokens()[number as usize];
        let tops = |at: u32| {
            let found = paths.states().filter(|state| state.0 == at).map(|state| state.1.map(token));
            found.collect::<BTreeSet<_>>()
        };
        assert_eq!(tops(3), BTreeSet::from([None]));
        assert_eq!(tops(11), BTreeSet::from([Some(0), Some(2), Some(10)]));
        let ten = paths.tokens().iter().position(|token| *token == 10).unwrap() as u32;
        assert_eq!(paths.below(ten).map(token).collect::<BTreeSet<_>>(), BTreeSet::from([0, 2, 10]));
    }
}
