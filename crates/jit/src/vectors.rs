//! Strips have two forms: code for one vector at a time, or code for both vectors of a group at once.
//!
//! Code for both vectors keeps more values in registers and has no loop. This code executes each store for all lanes of
//! the group before the next store. Code for both vectors needs twice as many registers. So only AVX-512 has code for
//! both vectors.

use std::borrow::Cow;

use crate::strip::{Strip, Value};

/// A strip for one vector of a group, or for both vectors.
#[derive(Debug)]
pub(crate) struct Vectors<'a> {
    /// The values and effects. In a strip for both vectors, an effect on the first vector directly precedes the
    /// corresponding effect on the second vector.
    pub(crate) strip: Cow<'a, Strip>,
    /// In a strip for both vectors, the vector to which each value belongs: 0 or 1.
    pub(crate) of: Vec<u8>,
    /// A guard for each vector. If the sign of a guard is set for an active lane of the vector, the strip bails out before
    /// the first effect.
    pub(crate) guards: Vec<Value>,
}

impl<'a> Vectors<'a> {
    /// Returns a strip for one vector.
    pub(crate) fn one(strip: &'a Strip) -> Vectors<'a> {
        Vectors { strip: Cow::Borrowed(strip), of: Vec::new(), guards: strip.guard.into_iter().collect() }
    }

    /// Returns a strip for both vectors of a group.
    pub(crate) fn both(strip: &Strip) -> Vectors<'a> {
        let mut both = Strip::with_window(strip.window);
        both.spans.clone_from(&strip.spans);
        let mut of = Vec::new();
        let mut made: Vec<[Value; 2]> = Vec::with_capacity(strip.nodes.len());
        for node in &strip.nodes {
            let mut add = |vector: u8| {
                both.nodes.push(node.with(|source| made[source.0 as usize][usize::from(vector)]));
                of.push(vector);
                Value(both.nodes.len() as u32 - 1)
            };
            let first = add(0);
            let values = [first, if node.is_shared() { first } else { add(1) }];
            made.push(values);
        }
        let value = |value: Value, vector: usize| made[value.0 as usize][vector];
        for effect in &strip.effects {
            both.effects.extend([0, 1].map(|vector| effect.with(|of| value(of, vector))));
        }
        let guards =
            strip.guard.iter().flat_map(|guard| [0, 1].map(|vector| value(*guard, vector))).collect();
        Vectors { strip: Cow::Owned(both), of, guards }
    }
}
