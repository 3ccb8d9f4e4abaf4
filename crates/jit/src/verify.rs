//! Proves that the code of a node accesses only the group's rows, the words of the state and the window. The proof
//! comes before the emission of the code.
//!
//! The verifier reads only the finished strips. So the verifier does not rely on the functions that create strips. Each
//! access needs a check with the base and the mask of the access. The check must cover the distance of the access. The
//! verifier rejects a node with any other access.

use crate::segment::Segment;
use crate::state::{NARROW_ROWS, OWN, SITES, WORDS};
use crate::strip::{Effect, Node, Row, Span, Strip, Two, Value};

/// Maximum distance of a row from the first row, in bytes. This number is also the maximum size of a window. A
/// displacement is a signed 32-bit number, and the end of a row must be within the range of displacements. So the
/// maximum is the largest displacement minus the size of a row of 64 words.
const FARTHEST: u32 = i32::MAX as u32 - 4 * 64;

/// The rule that a strip breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// A node uses a value that does not exist or that a later node defines.
    #[error("value {0} uses a value that is defined later or does not exist")]
    Order(usize),
    /// A row that groups do not have.
    #[error("{0:?} is not a row of a group")]
    Row(Row),
    /// A word of lanes that the state does not have.
    #[error("word {0} is not a word of the state")]
    Word(u32),
    /// A word of the window at an offset that the window does not have.
    #[error("the window does not have a word at byte {0}")]
    Offset(u32),
    /// A span that does not exist, or that is wider than the window.
    #[error("span {0} does not fit into the window")]
    Span(u32),
    /// A site that the state does not have.
    #[error("the state does not have site {0}")]
    Site(u32),
    /// The place of a span is not the sum of the span's base and least distance. For the span of a site, the error
    /// means that the place is not an offset from the start of the site.
    #[error("the place of span {0} is not the sum of its base and its least distance")]
    Place(u32),
    /// A lane of a span is not inside the window.
    #[error("the lanes of span {0} are not all inside the window")]
    Lanes(u32),
    /// The place or the lanes of an access differ from the place or the lanes of the access's span.
    #[error("an access does not use the place and the lanes of span {0}")]
    Unchecked(u32),
    /// An access has a distance that its span does not cover.
    #[error("an access is {1} bytes from the base of span {0}, but the span does not cover this distance")]
    Distance(u32, i32),
    /// The segment can run although a lane is outside a span.
    #[error("a lane outside span {0} does not prevent the effects of the segment")]
    Exit(u32),
    /// A strip for one vector at a time stores to memory after a load or a store.
    #[error("a strip for one vector at a time stores to memory after it has accessed memory")]
    Stores,
    /// A check of a segment has effects.
    #[error("the check of a segment has effects")]
    Effects,
}

/// Proves that the strips of a segment access only their rows, the state and the window.
///
/// # Errors
/// Returns the first rule that a strip breaks.
pub(crate) fn segment(segment: &Segment) -> Result<(), Rejected> {
    segment.strips().try_for_each(strip)?;
    exits(&segment.exact, segment.check.as_ref())
}

pub(crate) fn row(row: Row) -> Result<(), Rejected> {
    let exists = match row {
        Row::Group(distance) => distance & 3 == 0 && distance <= FARTHEST,
        Row::Own(number) => number < OWN as u32,
        Row::Bytes(number) | Row::Halves(number) => number < NARROW_ROWS,
    };
    if exists { Ok(()) } else { Err(Rejected::Row(row)) }
}

pub(crate) fn word(number: u32) -> Result<(), Rejected> {
    if (number as usize) < WORDS { Ok(()) } else { Err(Rejected::Word(number)) }
}

fn strip(strip: &Strip) -> Result<(), Rejected> {
    let made = |value: Value| (value.0 as usize) < strip.nodes.len();
    for (number, node) in strip.nodes.iter().enumerate() {
        if Strip::sources(node).any(|source| source.0 as usize >= number) {
            return Err(Rejected::Order(number));
        }
        match *node {
            Node::Row(named) => row(named)?,
            Node::Word(offset) => {
                if offset & 3 != 0 || offset.checked_add(4).is_none_or(|end| end > strip.window) {
                    return Err(Rejected::Offset(offset));
                }
            }
            Node::Least(span) | Node::Limit(span) => {
                strip.spans.get(span as usize).ok_or(Rejected::Span(span))?;
            }
            Node::Load { span, distance, place, lanes } => access(strip, span, distance, [place, lanes])?,
            Node::Start(site) | Node::Bound(site) => {
                if site >= SITES {
                    return Err(Rejected::Site(site));
                }
            }
            Node::Constant(_)
            | Node::Two(..)
            | Node::One(..)
            | Node::Select(_)
            | Node::Fused { .. }
            | Node::PerLane { .. } => {}
        }
    }
    for (number, span) in strip.spans.iter().enumerate() {
        let Span { base, mask, place, lanes, outside, .. } = *span;
        if ![base, mask, place, lanes, outside].into_iter().all(made) {
            return Err(Rejected::Span(number as u32));
        }
        check_span(strip, number as u32, span)?;
    }
    for effect in &strip.effects {
        match *effect {
            Effect::Store(to, value) if made(value) => row(to)?,
            Effect::Gather(number, value) | Effect::Leave(number, value) if made(value) => word(number)?,
            Effect::Scatter { span, distance, place, lanes, value } if made(value) => {
                access(strip, span, distance, [place, lanes])?;
            }
            _ => return Err(Rejected::Order(strip.nodes.len())),
        }
    }
    if strip.guard.is_some_and(|value| !made(value)) {
        return Err(Rejected::Order(strip.nodes.len()));
    }
    Ok(())
}

/// Checks that an access has the place and the lanes of the span, and a distance that the span covers.
fn access(strip: &Strip, number: u32, distance: i32, of: [Value; 2]) -> Result<(), Rejected> {
    let span = strip.spans.get(number as usize).ok_or(Rejected::Span(number))?;
    if of != [span.place, span.lanes] {
        return Err(Rejected::Unchecked(number));
    }
    if distance & 3 != 0 || !(span.least..=span.greatest).contains(&distance) {
        return Err(Rejected::Distance(number, distance));
    }
    Ok(())
}

/// Checks that a span fits into the window. Also checks that the strip compares the span's place with the limit, and
/// that each lane of the span passes the comparison.
fn check_span(strip: &Strip, number: u32, span: &Span) -> Result<(), Rejected> {
    if let Some(site) = span.site {
        return check_site(strip, number, span, site);
    }
    let fits = span.least <= span.greatest
        && span.least & 3 == 0
        && strip.window & 3 == 0
        && strip.window <= FARTHEST
        && strip.window.checked_sub(4).is_some_and(|last| span.bytes() <= last);
    if !fits {
        return Err(Rejected::Span(number));
    }
    let is_sum = match strip.nodes[span.place.0 as usize] {
        Node::Two(Two::Add, [a, b]) => {
            let least = |value: Value| strip.nodes[value.0 as usize] == Node::Least(number);
            a == span.base && least(b) || b == span.base && least(a)
        }
        _ => false,
    };
    if !is_sum {
        return Err(Rejected::Place(number));
    }
    if strip.is_constant(span.lanes) != Some(0) && !implies(strip, span.lanes, number, span.place) {
        return Err(Rejected::Lanes(number));
    }
    Ok(())
}

/// Checks that the place of a span is relative to the start of the site. Also checks that the span's lanes are within
/// the bound of the site.
fn check_site(strip: &Strip, number: u32, span: &Span, site: u32) -> Result<(), Rejected> {
    // In a span without `exits`, lanes outside the site load zeros. The machine may compute the place of a span without
    // `exits` in any way. So the check of the place does not apply.
    let is_offset = match strip.nodes[span.place.0 as usize] {
        Node::Two(Two::Sub, [_, start]) if span.exits => strip.nodes[start.0 as usize] == Node::Start(site),
        _ => !span.exits,
    };
    if !is_offset || span.least != span.greatest {
        return Err(Rejected::Place(number));
    }
    if strip.is_constant(span.lanes) != Some(0) && !implies(strip, span.lanes, number, span.place) {
        return Err(Rejected::Lanes(number));
    }
    Ok(())
}

/// Returns whether a truth value implies that the place of a span does not exceed the limit.
fn implies(strip: &Strip, truth: Value, number: u32, place: Value) -> bool {
    let node = |value: Value| strip.nodes[value.0 as usize];
    let limited = |value: Value| match node(value) {
        Node::Two(Two::MinUnsigned, [a, b]) => {
            a == place && node(b) == Node::Limit(number) || b == place && node(a) == Node::Limit(number)
        }
        _ => false,
    };
    let inverted = |value: Value| match node(value) {
        Node::Two(Two::Xor, [a, sign]) => a == place && strip.is_constant(sign) == Some(1 << 31),
        Node::Constant(word) => strip.is_constant(place) == Some(word ^ 1 << 31),
        _ => false,
    };
    if let Some(site) = strip.spans.get(number as usize).and_then(|span| span.site) {
        return match node(truth) {
            Node::Two(Two::Greater, [bound, of]) => node(bound) == Node::Bound(site) && inverted(of),
            Node::Two(Two::And, [a, b]) => [a, b].into_iter().any(|part| implies(strip, part, number, place)),
            Node::Two(Two::AndNot, [_, b]) => implies(strip, b, number, place),
            _ => false,
        };
    }
    match node(truth) {
        Node::Two(Two::Equal, [a, b]) => a == place && limited(b) || b == place && limited(a),
        Node::Two(Two::And, [a, b]) => [a, b].into_iter().any(|part| implies(strip, part, number, place)),
        Node::Two(Two::AndNot, [_, b]) => implies(strip, b, number, place),
        _ => false,
    }
}

/// Verifies the check of a segment. The check must have the values of the exact strip and no effects. The guard of the
/// check must fail if a lane is outside a span.
fn exits(exact: &Strip, check: Option<&Strip>) -> Result<(), Rejected> {
    for (number, span) in exact.spans.iter().enumerate().filter(|(_, span)| span.exits) {
        let exit = Rejected::Exit(number as u32);
        let Some(check) = check else {
            // If the only effect of the strip is one store, the strip may have a guard that fails for a lane outside
            // the span. With this guard, the segment does not need a check.
            let leaves = |guard| is_among(exact, guard, span.outside);
            let bails = exact.only_stores() && exact.guard.is_some_and(leaves);
            match bails && is_outside(exact, number as u32, span) {
                true => continue,
                false => return Err(exit),
            }
        };
        let same = check.nodes.get(..exact.nodes.len()) == Some(&exact.nodes[..])
            && (&check.spans, check.window) == (&exact.spans, exact.window);
        let leaves = |guard| is_among(check, guard, span.outside);
        if !same || !check.guard.is_some_and(leaves) || !is_outside(exact, number as u32, span) {
            return Err(exit);
        }
    }
    match check {
        Some(check) if !check.effects.is_empty() => Err(Rejected::Effects),
        _ => Ok(()),
    }
}

/// Returns whether each lane of a span's mask is inside the window or in the span's `outside`.
fn is_outside(strip: &Strip, number: u32, span: &Span) -> bool {
    match strip.nodes[span.outside.0 as usize] {
        Node::Constant(0) => strip.is_constant(span.mask) == Some(0),
        Node::Two(Two::AndNot, [inside, mask]) => {
            mask == span.mask && implies(strip, inside, number, span.place)
        }
        _ => false,
    }
}

/// Returns whether a value is an operand of a disjunction of truth values.
fn is_among(strip: &Strip, truth: Value, part: Value) -> bool {
    truth == part
        || strip.is_constant(part) == Some(0)
        || match strip.nodes[truth.0 as usize] {
            Node::Two(Two::Or, of) => of.into_iter().any(|truth| is_among(strip, truth, part)),
            _ => false,
        }
}

#[cfg(test)]
mod tests;
