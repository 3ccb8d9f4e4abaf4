//! Pseudo-instructions: names for the forms of an operation that compilers emit for moves, sums and comparisons, for
//! which the hardware has no operations. docs/r500-idioms.md shows this table.
//!
//! Source: the forms of Mesa's r300 compiler (`final_rewrite` in `radeon_pair_translate.c`) and of vendor programs.

use crate::inst::Operand;
use crate::words::*;

/// One operand of the underlying operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The idiom's operand with this number.
    Operand(usize),
    /// The idiom's operand with this number, negated.
    Negated(usize),
    /// The literal 1 in all channels.
    One,
    /// The literal 0 in all channels.
    Zero,
    /// No operand: the operation has fewer operands.
    Nothing,
}

/// One pseudo-instruction.
#[derive(Clone, Copy, Debug)]
pub struct Idiom {
    /// Name of the idiom.
    pub name: &'static str,
    /// Number of operands.
    pub operands: usize,
    /// The underlying operation of both units.
    pub operation: &'static str,
    /// The operation's operands.
    pub parts: [Part; 3],
    /// Whether the idiom names the form with OMOD disabled, `*off`.
    pub off: bool,
    /// Description of the value.
    pub meaning: &'static str,
}

use Part::{Negated, Nothing, One, Operand as Given, Zero};

const fn row(
    name: &'static str,
    operands: usize,
    operation: &'static str,
    parts: [Part; 3],
    off: bool,
    meaning: &'static str,
) -> Idiom {
    Idiom { name, operands, operation, parts, off, meaning }
}

/// All idioms. A form that fits several rows is printed as the first of them.
#[rustfmt::skip]
pub const IDIOMS: [Idiom; 7] = [
    row("MOV", 1, "MAD", [Given(0), One,      Zero],       false, "A"),
    row("MOV", 1, "MAX", [Given(0), Given(0), Nothing],    true,  "A with its bits unchanged"),
    row("SUB", 2, "MAD", [Given(0), One,      Negated(1)], false, "A - B"),
    row("ADD", 2, "MAD", [Given(0), One,      Given(1)],   false, "A + B"),
    row("MUL", 2, "MAD", [Given(0), Given(1), Zero],       false, "A * B"),
    row("GEZ", 1, "CMP", [One,      Zero,     Given(0)],   false, "1 where A is zero or above, 0 elsewhere"),
    row("LTZ", 1, "CMP", [Zero,     One,      Given(0)],   false, "1 where A is below zero, 0 elsewhere"),
];

const fn literal(swiz: Swiz) -> Operand {
    Operand { sel: Sel::SRC0, swiz: [swiz; 3], modifier: Imod::NOP }
}

const fn negated(modifier: Imod) -> Imod {
    match modifier {
        Imod::NOP => Imod::NEG,
        Imod::NEG => Imod::NOP,
        Imod::ABS => Imod::NAB,
        Imod::NAB => Imod::ABS,
    }
}

impl Idiom {
    /// Returns the idiom with this name, with OMOD disabled or not.
    pub fn named(name: &str, off: bool) -> Option<&'static Idiom> {
        let mut named = IDIOMS.iter().filter(|idiom| idiom.name == name);
        // A name whose rows do not distinguish OMOD accepts either.
        named.clone().find(|idiom| idiom.off == off).or_else(|| named.next())
    }

    /// Returns the operation's operands for the idiom's operands.
    pub fn expand(&self, given: &[Operand]) -> Vec<Operand> {
        let part = |part: &Part| match part {
            Given(number) => Some(given[*number]),
            Negated(number) => Some(Operand { modifier: negated(given[*number].modifier), ..given[*number] }),
            One => Some(literal(Swiz::ONE)),
            Zero => Some(literal(Swiz::ZERO)),
            Nothing => None,
        };
        self.parts.iter().filter_map(part).collect()
    }

    /// Returns the idiom of an operation with these operands, and the idiom's operands. `missing` is the default of
    /// an operand that the text omits.
    pub(super) fn recognise(
        operation: &str,
        omod: Omod,
        operands: &[Operand; 3],
        missing: &Operand,
    ) -> Option<(&'static Idiom, Vec<Operand>)> {
        let off = omod == Omod::DISABLED;
        let candidates = IDIOMS.iter().filter(|idiom| idiom.operation == operation && idiom.off == off);
        candidates.filter_map(|idiom| Some((idiom, idiom.given(operands, missing)?))).next()
    }

    /// Returns the idiom's operands if they expand to `operands`.
    fn given(&self, operands: &[Operand; 3], missing: &Operand) -> Option<Vec<Operand>> {
        let mut given: Vec<Option<Operand>> = vec![None; self.operands];
        for (part, operand) in self.parts.iter().zip(operands) {
            match part {
                Given(number) => given[*number] = Some(*operand),
                // A negated operand matches only if it has a negation.
                Negated(number) if matches!(operand.modifier, Imod::NEG | Imod::NAB) => {
                    given[*number] = Some(Operand { modifier: negated(operand.modifier), ..*operand });
                }
                Negated(_) => return None,
                One | Zero | Nothing => {}
            }
        }
        let given: Vec<Operand> = given.into_iter().collect::<Option<_>>()?;
        let mut expanded = self.expand(&given);
        expanded.resize(3, *missing);
        (expanded == operands).then_some(given)
    }
}

/// Returns the R500 equivalent of a mnemonic that other assemblers have.
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "ABS" => "write the operand as |src0.rgb|, of MOV for instance",
        "NEG" => "write the operand as -src0.rgb, of MOV for instance",
        "DP2" => "D2A with a third operand of src0.000 is the two-term dot product",
        "FLR" | "FLOOR" => "FRC gives the fraction; SUB takes it off",
        "LRP" => "srcp=SUB makes src1 - src0 of two sources; MAD takes it from there",
        "SGE" | "SLT" | "SETGE" | "SETLT" => "SUB, then GEZ or LTZ",
        "SEL" | "CNDGE" => "CMP takes A where C is zero or above, B elsewhere",
        "POW" => "LN2, MUL and EX2",
        "LG2" | "LOG" => "LN2 of the alpha unit is the base-two logarithm",
        "EXP" => "EX2 of the alpha unit is 2 to the power of its operand",
        "KIL" | "KILL" | "DISCARD" => {
            "TEX TEXKILL tex[0], temp[N].rgba kills lanes with a negative component"
        }
        "DDX" | "DSX" => "MDH is the derivative between the columns of the quad",
        "DDY" | "DSY" => "MDV is the derivative between the rows of the quad",
        _ => return None,
    })
}
