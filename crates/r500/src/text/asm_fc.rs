//! Parsers for flow control. The text of an FC instruction is either a construct or a raw form that states all fields.

use reconverge_isa::source::{self, Cursor, Diagnostic, Span, suggest};
use reconverge_isa::word::{FieldValue, Kind};

use super::asm_alu::{indexed, predicate, predicate_name};
use super::construct::{CONSTRUCTS, Condition, Construct, Jumps, Pop, Statement};
use super::dis::blank;
use super::reading::{Parsed, equals, expected, number, place, set, value};
use super::record::Target;
use super::syntax::{self, RAW_FIELDS};
use crate::inst::{LOOP_CONSTANTS, SLOTS, WORDS};
use crate::words::*;

pub(super) fn fc_words(common: CmnInst, inst: FcInst, addr: FcAddr) -> [u32; WORDS] {
    [common.pack(), 0, inst.pack(), addr.pack(), 0, 0]
}

/// Returns the default common word of an FC instruction. In this word, ALU_WAIT is set, because compilers set this bit
/// in every FC instruction.
pub(super) fn fc_common() -> CmnInst {
    CmnInst { alu_wait: true, ..blank(InstType::FC) }
}

/// Parses a jump target: ` -> 12` or ` -> label`.
pub(super) fn jump_target(cursor: &mut Cursor<'_>, addr: &mut FcAddr) -> Parsed<Option<Target>> {
    if !cursor.eat("->") {
        return Ok(None);
    }
    if cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        addr.jump_addr = number(cursor, "a target", SLOTS as u64 - 1)? as u16;
        return Ok(Some(Target::Fixed));
    }
    let at = cursor.here();
    let label = cursor.word();
    if label.is_empty() {
        return Err(expected(cursor, "expected a target", "write a label or an address"));
    }
    Ok(Some(Target::Label(label.to_owned(), at)))
}

/// The highest number of an integer or boolean constant.
const HIGHEST: u64 = LOOP_CONSTANTS as u64 - 1;

pub(super) const NO_ADDR: FcAddr = FcAddr { bool_addr: 0, int_addr: 0, jump_addr: 0, jump_global: false };

pub(super) fn raw_fc(cursor: &mut Cursor<'_>, target: &mut Target) -> Parsed<[u32; WORDS]> {
    if cursor.peek() == Some('{') {
        return Ok([blank(InstType::FC).pack(), 0, 0, 0, 0, 0]);
    }
    let mut common = fc_common();
    if let Some((select, inverted)) = predicate(cursor)? {
        (common.rgb_pred_sel, common.rgb_pred_inv) = (select, inverted);
    }
    let op: FcOp = value(cursor, |name| format!("unknown flow-control operation `{name}`"))?;
    let (mut words, mut addr) = ([common.pack(), 0, op.to_bits(), 0, 0, 0], NO_ADDR);
    while !matches!(cursor.peek(), None | Some('{')) {
        if let Some(found) = jump_target(cursor, &mut addr)? {
            *target = found;
            continue;
        }
        let names = RAW_FIELDS.iter().map(|(name, ..)| *name);
        let row = place(cursor, names, |name| format!("unknown flow-control field `{name}`"))?;
        let (_, name, what) = RAW_FIELDS[row];
        let Some((_, field)) = syntax::field(InstType::FC, name) else {
            unreachable!("FC has a field {name}")
        };
        if field.kind != Kind::Flag {
            equals(cursor)?;
        }
        let value = match field.kind {
            Kind::Flag => 1,
            Kind::Names => {
                let names = field.names.iter().map(|name| name.text);
                field.names[place(cursor, names, |name| format!("unknown value `{name}`"))?].value
            }
            Kind::Number | Kind::Signed => number(cursor, what, field.max().into())? as u32,
        };
        set(&mut words, InstType::FC, name, value);
    }
    set(&mut words, InstType::FC, "JUMP_ADDR", addr.jump_addr.into());
    Ok(words)
}

/// Parses the number of a constant. The number is in brackets, such as `[12]`.
fn constant(cursor: &mut Cursor<'_>, at: Span, what: &str) -> Parsed<u8> {
    match indexed(cursor, what, HIGHEST)? {
        (_, true) => Err(Diagnostic::error(at, format!("{what} cannot be relative"))),
        (number, false) => Ok(number as u8),
    }
}

pub(super) fn statement(cursor: &mut Cursor<'_>, name: &str, target: &mut Target) -> Parsed<[u32; WORDS]> {
    let mut common = fc_common();
    let mut addr = NO_ADDR;
    let condition = if name == "if" || cursor.eat_word("if") {
        Some(condition(cursor, &mut common, &mut addr)?)
    } else {
        None
    };
    let (mut variant, mut pop, mut any, mut ignore_uncovered) = (String::new(), None, None, false);
    let (mut said_target, mut int) = (None, false);
    while !matches!(cursor.peek(), None | Some('{')) {
        if let Some(found) = jump_target(cursor, &mut addr)? {
            said_target = Some(found);
            continue;
        }
        let at = cursor.here();
        match cursor.word() {
            "int" => {
                addr.int_addr = constant(cursor, at, "an integer constant")?;
                int = true;
            }
            "pop" => {
                equals(cursor)?;
                pop = Some(number(cursor, "a number of levels", 31)? as u8);
            }
            word @ ("else" | "merged" | "simple") => variant = word.to_owned(),
            "any" => any = Some(true),
            "all" => any = Some(false),
            "ignore_uncovered" => ignore_uncovered = true,
            "global" => addr.jump_global = true,
            // A word follows the mnemonic, as in `endif 3`, `call label` or `goto label`.
            word => match (name, source::parse_number(word)) {
                ("endif", Some(levels)) if levels <= 31 => pop = Some(levels as u8),
                ("call" | "goto", Some(address)) if address < SLOTS as u64 => {
                    addr.jump_addr = address as u16;
                    said_target = Some(Target::Fixed);
                }
                ("call" | "goto", None) if !word.is_empty() => {
                    said_target = Some(Target::Label(word.to_owned(), at))
                }
                _ => {
                    let fits = [
                        "int",
                        "pop",
                        "else",
                        "merged",
                        "simple",
                        "any",
                        "all",
                        "ignore_uncovered",
                        "global",
                    ];
                    return Err(Diagnostic::error(at, format!("`{word}` is not understood after `{name}`"))
                        .help(suggest(word, fits)));
                }
            },
        }
    }
    let on_boolean = matches!(condition, Some((Condition::Boolean, _)));
    let in_structure = said_target.is_none();
    let construct = CONSTRUCTS.iter().find(|construct| {
        let condition_fits = match construct.jumps {
            Jumps::Never | Jumps::Always => condition.is_none(),
            Jumps::WhenTrue | Jumps::WhenFalse => condition.is_some(),
        };
        // In a structured program, a break or continue may omit `pop`. The first pass then sets the number of closed
        // levels to 0. The second pass replaces 0 by the correct number.
        let pop_fits = match construct.pop {
            Pop::None => pop.is_none() || name == "if" && variant.is_empty(),
            Pop::One => true,
            Pop::Said => pop.is_some(),
        };
        let boolean_fits = construct.name != "if" || on_boolean == construct.on_boolean;
        construct.name == name && construct.variant == variant && condition_fits && pop_fits && boolean_fits
    });
    let Some(construct) = construct else {
        let here = cursor.here();
        return Err(Diagnostic::error(here, format!("`{name}` does not take these words together"))
            .help(format!("forms of `{name}`: {}", forms(name))));
    };
    *target = match said_target {
        Some(target) => target,
        None if in_structure && needs_target(construct) => Target::Structure { int },
        None => Target::Fixed,
    };
    let statement = Statement {
        construct,
        condition,
        pop: pop.unwrap_or(if construct.pop == Pop::One { 1 } else { 0 }),
        any: any.unwrap_or(construct.any),
        ignore_uncovered,
        addr,
    };
    let (inst, addr) = statement.encode();
    Ok(fc_words(common, inst, addr))
}

pub(super) fn needs_target(construct: &Construct) -> bool {
    construct.a_op != AOp::POP
}

/// Returns the forms of a mnemonic, for messages.
pub(super) fn forms(name: &str) -> String {
    let of = |construct: &&Construct| construct.name == name;
    let text = |construct: &Construct| {
        let condition = match construct.jumps {
            Jumps::Never | Jumps::Always => "",
            Jumps::WhenFalse => " CONDITION",
            Jumps::WhenTrue => " if CONDITION",
        };
        let variant =
            if construct.variant.is_empty() { String::new() } else { format!(" {}", construct.variant) };
        let pop = if construct.pop == Pop::Said { " pop=N" } else { "" };
        format!("`{name}{condition}{variant}{pop}`")
    };
    let mut list: Vec<String> = CONSTRUCTS.iter().filter(of).map(text).collect();
    list.dedup();
    list.join(", ")
}

pub(super) fn condition(
    cursor: &mut Cursor<'_>,
    common: &mut CmnInst,
    addr: &mut FcAddr,
) -> Parsed<(Condition, bool)> {
    let negated = cursor.eat("!");
    if cursor.eat_word("alu") {
        return Ok((Condition::Alu, negated));
    }
    let at = cursor.here();
    if cursor.eat_word("bool") {
        addr.bool_addr = constant(cursor, at, "a boolean constant")?;
        return Ok((Condition::Boolean, negated));
    }
    if cursor.peek() != Some('p') {
        return Err(expected(
            cursor,
            "expected a condition",
            "write alu, pred.r (g, b, a) or bool[N], optionally with ! before it",
        ));
    }
    match predicate_name(cursor)? {
        PredSel::RGBA => Err(Diagnostic::error(at, "a flow-control instruction has one predicate")
            .help("expected pred.r, pred.g, pred.b or pred.a")),
        select => {
            common.rgb_pred_sel = select;
            Ok((Condition::Predicate, negated))
        }
    }
}
