//! Pseudo-instructions: names for moves, sums and comparisons. The hardware does not have such operations. Compilers
//! use other operations with certain operands instead. docs/r500-idioms.md shows the table in this file.
//!
//! Source: the forms of Mesa's r300 compiler (`final_rewrite` in `radeon_pair_translate.c`) and of vendor programs.

use crate::inst::Operand;
use crate::words::*;

/// The origin of an operand of the underlying operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The operand of the pseudo-instruction with this number.
    Operand(usize),
    /// The operand of the pseudo-instruction with this number, negated.
    Negated(usize),
    /// The literal 1 in all channels.
    One,
    /// The literal 0 in all channels.
    Zero,
    /// No operand, because the underlying operation has fewer operands.
    Nothing,
}

/// A pseudo-instruction.
#[derive(Clone, Copy, Debug)]
pub struct Idiom {
    /// Name of the pseudo-instruction.
    pub name: &'static str,
    /// Number of operands of the pseudo-instruction.
    pub operands: usize,
    /// The underlying operation. Both the RGB unit and the alpha unit have this operation.
    pub operation: &'static str,
    /// The operands of the underlying operation.
    pub parts: [Part; 3],
    /// Whether the underlying operation has OMOD disabled (`*off`).
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

/// All pseudo-instructions. If several rows fit an instruction, the disassembler uses the first such row.
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
    /// Returns the pseudo-instruction with this name. `off` states whether OMOD is disabled.
    pub fn named(name: &str, off: bool) -> Option<&'static Idiom> {
        let mut named = IDIOMS.iter().filter(|idiom| idiom.name == name);
        // If no row with this name has the requested OMOD, the function returns any row with this name. In that case,
        // all rows with this name have the same meaning.
        named.clone().find(|idiom| idiom.off == off).or_else(|| named.next())
    }

    /// Converts the operands of the pseudo-instruction to the operands of the underlying operation.
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

    /// Finds the pseudo-instruction for an operation with these operands. Returns the pseudo-instruction and its
    /// operands. `missing` is the operand that the assembler uses if the text omits an operand.
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

    /// Returns operands of the pseudo-instruction that expand to `operands`. If no operands expand to `operands`, the
    /// function returns `None`.
    fn given(&self, operands: &[Operand; 3], missing: &Operand) -> Option<Vec<Operand>> {
        let mut given: Vec<Option<Operand>> = vec![None; self.operands];
        for (part, operand) in self.parts.iter().zip(operands) {
            match part {
                Given(number) => given[*number] = Some(*operand),
                // A negated operand fits only if the modifier of the operand negates the operand.
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

/// Returns advice for a mnemonic that only other assemblers have. The advice explains how to write the instruction for
/// R500.
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "ABS" => "write the operand as |src0.rgb|, for example in MOV",
        "NEG" => "write the operand as -src0.rgb, for example in MOV",
        "DP2" => "D2A with a third operand of src0.000 is the two-term dot product",
        "FLR" | "FLOOR" => "FRC computes the fraction, which SUB subtracts",
        "LRP" => "srcp=SUB computes src1 - src0, which MAD multiplies and adds",
        "SGE" | "SLT" | "SETGE" | "SETLT" => "SUB, then GEZ or LTZ",
        "SEL" | "CNDGE" => "CMP returns A if C is zero or above, otherwise B",
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
