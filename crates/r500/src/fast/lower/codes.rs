//! The table of codes. For each operation, the table has the kernel that computes the operation on rows.

use reconverge_simt::Level;
use reconverge_simt::curves::Curve;

use super::super::functions::{Cos, Ex2, Ln2, OfRow, Sin};
use super::super::kernels::{self, AnyMad, Channels, Dot as DotBody, DotOfTwo, Kernel, Mad, Move};
use super::super::lanes::{Body, Handler, handler};
use super::super::operands::Set;
use crate::operations::{Dot, Operation, Value};
use crate::words::AlphaOp;

/// The code that computes the channels of one vector operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub(super) computes: Computes,
    /// Number of sources per channel.
    pub(super) sources: usize,
    /// Maximum number of channels in one vector operation.
    pub(super) most: usize,
    handlers: fn(&Shape) -> Handlers,
}

impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        self.computes == other.computes
    }
}

/// The value that a [`Code`] computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fast) enum Computes {
    /// A * B + C, with OMOD.
    Sum,
    /// The first source, with OMOD.
    Pass,
    /// The first source with its sign bit cleared.
    Magnitude,
    /// An operation of the alpha unit.
    Of(AlphaOp),
}

/// The parameters that select the code of a vector operation.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Number of channels that the operation computes.
    pub(super) count: usize,
    /// Whether results are clamped.
    pub(super) clamp: bool,
    /// Whether no source can be a denormal.
    pub(super) normal: bool,
    /// Whether the sign of some source is flipped.
    pub(super) flips: bool,
    /// Whether OMOD of some channel is not ×1.
    pub(super) scaled: bool,
    /// Whether every channel of a sum computes A * 1 + 0.
    pub(super) moves: bool,
    /// Whether the product of zero and any value is zero.
    pub(super) zero_wins: bool,
    pub(super) level: Level,
}

impl Code {
    /// A * B + C, with OMOD.
    pub(super) const SUM: Code = Code { computes: Computes::Sum, sources: 3, most: 4, handlers: sum };
    /// The first source, with OMOD.
    pub(super) const PASS: Code = Code::together::<kernels::Pass>(Computes::Pass);
    /// The first source with its sign bit cleared.
    pub(super) const MAGNITUDE: Code = Code::alone::<kernels::Magnitude>(Computes::Magnitude);

    /// Returns the code of an operation that works channel by channel. Returns `None` if the operation does not work
    /// channel by channel. Also returns `None` if only the reference interpreter executes the operation.
    pub(super) fn of(operation: &Operation) -> Option<Code> {
        let op = match operation.value {
            Value::Sum | Value::Derivative(_) => return Some(Code::SUM),
            Value::Choice(..) | Value::Rounded(..) | Value::Transcendental(..) => operation.alpha?,
            Value::Dot(_) | Value::Forwarded => return None,
        };
        let id = Computes::Of(op);
        Some(match op {
            AlphaOp::MIN => Code::together::<kernels::Min>(id),
            AlphaOp::MAX => Code::together::<kernels::Max>(id),
            AlphaOp::CND => Code::together::<kernels::Cnd>(id),
            AlphaOp::CMP => Code::together::<kernels::Cmp>(id),
            AlphaOp::FRC => Code::alone::<kernels::Frc>(id),
            AlphaOp::RCP => Code::alone::<kernels::Rcp>(id),
            AlphaOp::RSQ => Code::alone::<kernels::Rsq>(id),
            AlphaOp::EX2 => Code::function::<Ex2>(id),
            AlphaOp::LN2 => Code::function::<Ln2>(id),
            AlphaOp::SIN => Code::function::<Sin>(id),
            AlphaOp::COS => Code::function::<Cos>(id),
            // All operations that are not listed above have no kernel.
            _ => return None,
        })
    }

    /// Returns code that computes up to four channels in one vector operation.
    const fn together<K: Kernel>(computes: Computes) -> Code {
        Code { computes, sources: K::SOURCES, most: 4, handlers: channels::<K> }
    }

    /// Returns code that computes one channel per vector operation.
    const fn alone<K: Kernel>(computes: Computes) -> Code {
        Code { computes, sources: K::SOURCES, most: 1, handlers: channel::<K> }
    }

    /// Returns code for a [`Curve`], which computes one channel per vector operation.
    const fn function<F: Curve>(computes: Computes) -> Code {
        Code {
            computes,
            sources: 1,
            most: 1,
            handlers: |shape| pair::<OfRow<F, true>, OfRow<F, false>>(shape.level),
        }
    }

    pub(super) fn handlers(self, shape: &Shape) -> Handlers {
        (self.handlers)(shape)
    }
}

/// Code that writes the lanes of a set (`blend`), and code that writes all lanes (`full`).
pub(super) struct Handlers {
    blend: Handler,
    full: Handler,
}

impl Handlers {
    /// Returns the handlers of an operation that writes `set`, or all lanes if `set` is `None`. The first handler works
    /// for any set of active lanes. The second handler works only if every lane of the group is active.
    pub(super) fn for_set(&self, set: Option<Set>) -> [Handler; 2] {
        match set {
            None => [self.full; 2],
            Some(Set::ACTIVE | Set::ALL) => [self.blend, self.full],
            Some(_) => [self.blend; 2],
        }
    }
}

fn pair<B: Body, F: Body>(level: Level) -> Handlers {
    Handlers { blend: handler::<B>(level), full: handler::<F>(level) }
}

fn sum(shape: &Shape) -> Handlers {
    if shape.moves && !shape.scaled {
        return channels::<Move>(shape);
    }
    if shape.zero_wins { sum_of::<true>(shape) } else { sum_of::<false>(shape) }
}

fn sum_of<const ZERO_WINS: bool>(shape: &Shape) -> Handlers {
    match *shape {
        Shape { scaled: true, .. } => channels::<AnyMad<ZERO_WINS, true>>(shape),
        Shape { normal: false, flips: false, clamp: false, .. } => {
            unclamped::<Mad<ZERO_WINS, false, true, false>>(shape)
        }
        Shape { clamp: true, .. } | Shape { normal: false, .. } => {
            channels::<AnyMad<ZERO_WINS, false>>(shape)
        }
        Shape { flips: true, .. } => unclamped::<Mad<ZERO_WINS, false, false, true>>(shape),
        Shape { flips: false, .. } => unclamped::<Mad<ZERO_WINS, false, false, false>>(shape),
    }
}

fn channels<K: Kernel>(shape: &Shape) -> Handlers {
    match (shape.count, shape.clamp) {
        (1, _) => channel::<K>(shape),
        (_, false) => unclamped::<K>(shape),
        (2, true) => pair::<Channels<K, 2, true, true>, Channels<K, 2, true, false>>(shape.level),
        (3, true) => pair::<Channels<K, 3, true, true>, Channels<K, 3, true, false>>(shape.level),
        (_, true) => pair::<Channels<K, 4, true, true>, Channels<K, 4, true, false>>(shape.level),
    }
}

fn unclamped<K: Kernel>(shape: &Shape) -> Handlers {
    match shape.count {
        1 => pair::<Channels<K, 1, false, true>, Channels<K, 1, false, false>>(shape.level),
        2 => pair::<Channels<K, 2, false, true>, Channels<K, 2, false, false>>(shape.level),
        3 => pair::<Channels<K, 3, false, true>, Channels<K, 3, false, false>>(shape.level),
        _ => pair::<Channels<K, 4, false, true>, Channels<K, 4, false, false>>(shape.level),
    }
}

fn channel<K: Kernel>(shape: &Shape) -> Handlers {
    match shape.clamp {
        false => pair::<Channels<K, 1, false, true>, Channels<K, 1, false, false>>(shape.level),
        true => pair::<Channels<K, 1, true, true>, Channels<K, 1, true, false>>(shape.level),
    }
}

/// Returns the code of a dot product. The code writes all lanes.
pub(super) fn dot(dot: Dot, zero_wins: bool, level: Level) -> Handler {
    match (dot, zero_wins) {
        (Dot::Three, false) => handler::<DotBody<3, false, false>>(level),
        (Dot::Three, true) => handler::<DotBody<3, false, true>>(level),
        (Dot::Four, false) => handler::<DotBody<4, false, false>>(level),
        (Dot::Four, true) => handler::<DotBody<4, false, true>>(level),
        (Dot::TwoAndAddend, false) => handler::<DotBody<3, true, false>>(level),
        (Dot::TwoAndAddend, true) => handler::<DotBody<3, true, true>>(level),
    }
}

/// Returns the code of a dot product that consists of three products, the third of which is zero. If `normal` is set,
/// no source can be a denormal.
pub(super) fn dot_of_two(zero_wins: bool, normal: bool, level: Level) -> Handler {
    match (zero_wins, normal) {
        (false, false) => handler::<DotOfTwo<false, true>>(level),
        (false, true) => handler::<DotOfTwo<false, false>>(level),
        (true, false) => handler::<DotOfTwo<true, true>>(level),
        (true, true) => handler::<DotOfTwo<true, false>>(level),
    }
}
