//! The prefixes of an instruction's name: exit and join, predicate, lanes, `short`. (2.2, 2.3, 3.4)

use reconverge_isa::row::{Case, Cases, Number, Part, Words, at};

use crate::inst::{Condition, End};

use super::*;

/// exit and join. The value 3 marks the immediate form.
pub(crate) const END: P = word!(
    "exit or join",
    at(32, 2),
    &[Some(""), Some("exit"), Some("join"), None],
    |draft, value| draft.inst.end = [End::None, End::Exit, End::Join, End::None][value as usize & 3],
);

/// Names of conditions by code. Conditions without a documented name are `cc20` to `cc27`. (2.3)
pub(crate) const CONDITION_NAMES: &[Option<&str>] = &[
    Some("never"), Some("l"), Some("e"), Some("le"), Some("g"), Some("lg"), Some("ge"), Some("lge"),
    Some("u"), Some("lu"), Some("eu"), Some("leu"), Some("gu"), Some("lgu"), Some("geu"), Some("always"),
    Some("o"), Some("c"), Some("a"), Some("s"), Some("cc20"), Some("cc21"), Some("cc22"), Some("cc23"),
    Some("cc24"), Some("cc25"), Some("cc26"), Some("cc27"), Some("ns"), Some("na"), Some("nc"), Some("no"),
];

pub(super) const CONDITION: P = word!(
    "condition",
    at(39, 5),
    CONDITION_NAMES,
    |draft, code| draft.inst.guard.condition = Condition::from_code(code as u8),
);

/// The `$c` of the predicate.
pub(super) const CONDITION_C: P = number!(
    "condition register",
    at(44, 2),
    CC,
    |draft, c| draft.inst.guard.c = c as u8,
);

/// The bits of the condition field for the predicate "always".
pub(crate) const PREDICATE_ALWAYS: u64 = 15 << 39;

/// The predicate. The text omits the predicate "always", and shows "never" without a register.
pub(crate) const PRED: P = choice!("predicate", [
    case!(PREDICATE_ALWAYS, 31 << 39, &[]),
    case!(0, 0x7f << 39, &[Part::Open, Part::Text("never"), Part::Close, NEVER]),
    case!(0, 0, &[Part::Open, CONDITION, CONDITION_C, Part::Close]),
]);

pub(super) const NEVER: P = Part::Set(|draft| draft.inst.guard.condition = Condition::NEVER);

/// The first word of a short instruction's text.
pub(crate) const SHORT: P = Part::Text("short");

/// Lanes of a quad that are written. The text omits the mask if the mask has all lanes. (3.4)
pub(crate) const LANE: P = choice!("lane mask", [
    case!(0xf << 46, 0xf << 46, &[]),
    case!(0, 0, &[Part::Open, LANES, Part::Close]),
]);

pub(super) const LANES: P = word!(
    "lanes",
    at(46, 4),
    &[
        Some("lnone"), Some("l0"), Some("l1"), Some("l01"), Some("l2"), Some("l02"), Some("l12"), Some("l012"),
        Some("l3"), Some("l03"), Some("l13"), Some("l013"), Some("l23"), Some("l023"), Some("l123"), None,
    ],
    |draft, mask| draft.inst.lanes = mask as u8,
);
