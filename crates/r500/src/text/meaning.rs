//! Describes the effect of an instruction in sentences.

use super::construct::{Condition, Statement};
use super::dis::{mask_text, swizzle_text, temp_text, vector_text};
use super::syntax::{COMPARISONS, TARGETS, letter, modifier};
use crate::inst::{Alu, Body, Fc, Inst, Operand, Source, Sources, Tex, inline_constant};
use crate::operations::{Dot, Value};
use crate::words::*;

/// Returns the effect of a decoded instruction. The list has one sentence per element, and is not empty.
pub(super) fn meaning(inst: &Inst) -> Vec<String> {
    let mut sentences = match &inst.body {
        Body::Alu(alu) => arithmetic(&inst.common, alu),
        Body::Tex(tex) => texture(&inst.common, tex),
        Body::Fc(fc) => vec![flow(&inst.common, fc)],
    };
    let common = &inst.common;
    for (flag, text) in [
        (common.tex_sem_wait, "Waits until the data of earlier texture fetches has arrived."),
        (common.alu_wait, "Waits until earlier arithmetic has completed."),
        (common.write_inactive, "Writes inactive lanes too."),
        (common.nop, "One idle issue slot follows."),
        (common.last, "Lanes that are active here may stop."),
    ] {
        if flag {
            sentences.push(text.to_owned());
        }
    }
    sentences
}

// ---- Arithmetic

fn arithmetic(common: &CmnInst, alu: &Alu) -> Vec<String> {
    let mut sentences = Vec::new();
    let out = common.r#type == InstType::OUT;
    let halves = [
        (mask_text(common.rgb_wmask, false), mask_text(common.rgb_omask, false), "RGB half"),
        (mask_text(0, common.alpha_wmask), mask_text(0, common.alpha_omask), "Alpha half"),
    ];
    for (unit, (temporary, output, name)) in halves.into_iter().enumerate() {
        let channel = 3 * unit;
        let (address, rel) = alu.destination(channel);
        let mut places = Vec::new();
        if temporary != "_" {
            places.push(format!("{}.{temporary}", temp_text(address, rel)));
        }
        let target = alu.target(channel) as usize;
        let mut tests = Vec::new();
        if output != "_" && out {
            places.push(format!("channels {output} of render target {}", TARGETS[target]));
        } else if output != "_" {
            tests.push(format!(
                "predicate bits {output} record whether it is {}",
                comparison(COMPARISONS[target])
            ));
        }
        let result_here = (common.alu_result_sel == AluResultSel::ALPHA) == (unit == 1);
        if alu.alu_wmask && result_here {
            let channel = if unit == 1 { "alpha" } else { "red" };
            let is = comparison(common.alu_result_op.name());
            tests.push(format!("the ALU result records whether {channel} is {is}"));
        }
        if unit == 1 && alu.w_omask {
            places.push("the depth output".to_owned());
        }
        if places.is_empty() && tests.is_empty() {
            continue;
        }
        let (select, inverted, clamp) = match unit {
            0 => (common.rgb_pred_sel, common.rgb_pred_inv, common.rgb_clamp),
            _ => (common.alpha_pred_sel, common.alpha_pred_inv, common.alpha_clamp),
        };
        let mut value = value(alu, channel);
        value += match alu.omod(channel) {
            Omod::MUL_1 => "",
            Omod::MUL_2 => ", times 2",
            Omod::MUL_4 => ", times 4",
            Omod::MUL_8 => ", times 8",
            Omod::DIV_2 => ", divided by 2",
            Omod::DIV_4 => ", divided by 4",
            Omod::DIV_8 => ", divided by 8",
            Omod::DISABLED => ", with its bits unchanged",
        };
        if clamp {
            value += ", clamped to 0..1";
        }
        let mut text = match places.is_empty() {
            true => format!("{name}: computes {value}"),
            false => format!("{name}: {} = {value}", places.join(" and ")),
        };
        for test in tests {
            text += &format!("; {test}");
        }
        text += &predicated(select, inverted);
        sentences.push(text + ".");
    }
    if sentences.is_empty() {
        let read = if matches!(alu.rgb.op.operation().value, Value::Forwarded) {
            ""
        } else {
            " whatever it computes"
        };
        sentences.push(format!("Neither half writes anything{read}: no effect on registers."));
    }
    sentences
}

fn comparison(name: &str) -> &'static str {
    match name {
        "EQ" => "zero",
        "LT" => "below zero",
        "GE" => "zero or above",
        _ => "not zero",
    }
}

fn predicated(select: PredSel, inverted: bool) -> String {
    let is = if inverted { "false" } else { "true" };
    match select {
        PredSel::NONE => String::new(),
        PredSel::RGBA => format!(", each channel only in lanes where its own predicate bit is {is}"),
        PredSel::RRRR | PredSel::GGGG | PredSel::BBBB | PredSel::AAAA => {
            let channel = &select.name()[..1].to_ascii_lowercase();
            format!(", only in lanes where predicate {channel} is {is}")
        }
    }
}

/// Describes the value of a unit, before OMOD and clamp.
fn value(alu: &Alu, channel: usize) -> String {
    let alpha = channel == 3;
    let operand = |number: usize| {
        let operand = if alpha { &alu.alpha.operands[number] } else { &alu.rgb.operands[number] };
        operand_value(alu, operand, if alpha { 1 } else { 3 })
    };
    let operation = if alpha { alu.alpha.op.operation() } else { alu.rgb.op.operation() };
    match operation.value {
        Value::Sum => sum(operand(0), operand(1), operand(2)),
        Value::Derivative(way) => {
            let between = if way == 1 { "columns" } else { "rows" };
            format!("the difference of {} between the {between} of the quad", operand(1))
        }
        // If both operands are equal, the operation has only one possible result.
        Value::Choice(..) if operation.operands == 2 && operand(0) == operand(1) => operand(0),
        Value::Choice(_, words) | Value::Rounded(_, words) | Value::Transcendental(_, words) => {
            ["{A}", "{B}", "{C}"]
                .iter()
                .zip(0..operation.operands)
                .fold(words.to_owned(), |text, (name, number)| text.replace(name, &operand(number)))
        }
        Value::Dot(Dot::Three) => format!("the dot product of {} and {}", operand(0), operand(1)),
        Value::Dot(Dot::Four) => {
            let [a, b] = [0, 1].map(|number| operand_value(alu, &alu.alpha.operands[number], 1));
            format!("the dot product of {} and {}, plus {a} * {b} of the alpha half", operand(0), operand(1))
        }
        Value::Dot(Dot::TwoAndAddend) => {
            let first = |number: usize, channels| {
                operand_value(alu, &channel_of(&alu.rgb.operands[number], channels), 1)
            };
            let pairs = [0, 1].map(|channel| format!("{} * {}", first(0, channel), first(1, channel)));
            format!("{} + {}", pairs.join(" + "), first(2, 2))
        }
        Value::Forwarded if alpha => "the RGB half's dot product".to_owned(),
        Value::Forwarded => "the alpha half's function, in each channel".to_owned(),
    }
}

/// Returns a copy of `operand`. In every channel, the copy selects channel `channel` of `operand`.
fn channel_of(operand: &Operand, channel: usize) -> Operand {
    Operand { swiz: [operand.swiz[channel]; 3], ..*operand }
}

/// Returns the text of A * B + C, shortened if an operand is 0 or 1.
fn sum(a: String, b: String, c: String) -> String {
    let product = match (a.as_str(), b.as_str()) {
        ("0", _) | (_, "0") | ("-0", _) | (_, "-0") => None,
        ("1", _) => Some(b),
        (_, "1") => Some(a),
        ("-1", _) if !b.starts_with('-') => Some(format!("-{b}")),
        (_, "-1") if !a.starts_with('-') => Some(format!("-{a}")),
        _ => Some(format!("{a} * {b}")),
    };
    match (product, c.as_str()) {
        (None, _) => c,
        (Some(product), "0" | "-0") => product,
        (Some(product), _) => match c.strip_prefix('-') {
            Some(rest) => format!("{product} - {rest}"),
            None => format!("{product} + {c}"),
        },
    }
}

fn operand_value(alu: &Alu, operand: &Operand, channels: usize) -> String {
    let swizzle = &operand.swiz[..channels];
    let read = |swiz: Swiz| -> (String, bool) {
        match swiz {
            Swiz::ZERO => ("0".to_owned(), false),
            Swiz::HALF => ("0.5".to_owned(), false),
            Swiz::ONE => ("1".to_owned(), false),
            Swiz::A => source_value(&alu.alpha_sources, operand.sel),
            Swiz::R | Swiz::G | Swiz::B => source_value(&alu.rgb_sources, operand.sel),
        }
    };
    let parts: Vec<(String, bool)> = swizzle.iter().map(|swiz| read(*swiz)).collect();
    let text = if parts.iter().all(|part| part == &parts[0]) {
        let letters: String = swizzle.iter().map(|swiz| letter(*swiz)).collect();
        if parts[0].1 { format!("{}.{letters}", parts[0].0) } else { parts[0].0.clone() }
    } else {
        let each = parts.iter().zip(swizzle).map(|((text, vector), swiz)| match vector {
            true => format!("{text}.{}", letter(*swiz)),
            false => text.clone(),
        });
        format!("({})", each.collect::<Vec<_>>().join(", "))
    };
    let (before, after) = modifier(operand.modifier);
    format!("{before}{text}{after}")
}

/// Returns the text of a source, and whether the channels of the source differ.
fn source_value(sources: &Sources, sel: Sel) -> (String, bool) {
    let plain = |number: usize| match sources.src[number] {
        Source::Temp { addr, rel } => (temp_text(addr, rel).to_string(), true),
        Source::Const { addr, rel } => (format!("const[{addr}{}]", if rel { "+aL" } else { "" }), true),
        Source::Inline { code } => (inline_constant(code).to_string(), false),
    };
    match sel {
        Sel::SRC0 => plain(0),
        Sel::SRC1 => plain(1),
        Sel::SRC2 => plain(2),
        Sel::SRCP => {
            let ((a, vector), (b, second)) = (plain(0), plain(1));
            match sources.srcp_op {
                SrcpOp::NEG2 => (format!("(1 - 2 * {a})"), vector),
                SrcpOp::SUB => (format!("({b} - {a})"), vector || second),
                SrcpOp::ADD => (format!("({b} + {a})"), vector || second),
                SrcpOp::NEG => (format!("(1 - {a})"), vector),
            }
        }
    }
}

// ---- Texture

fn texture(common: &CmnInst, tex: &Tex) -> Vec<String> {
    let at = vector_text(tex.src());
    let unit = format!("texture {}", tex.inst.tex_id);
    let fetch = match tex.inst.inst {
        TexOp::NOP => "Fetches and writes nothing".to_owned(),
        TexOp::TEXKILL => {
            let mut killed = format!("Kills the lanes in which a component of {at} is negative");
            killed += &predicated(common.rgb_pred_sel, common.rgb_pred_inv);
            killed
        }
        TexOp::LD => format!("Fetches from {unit} at {at}"),
        TexOp::PROJ => {
            format!("Fetches from {unit} at {at}, the first three components divided by the fourth")
        }
        TexOp::LODBIAS => {
            format!("Fetches from {unit} at {at}, the level of detail biased by the fourth component")
        }
        TexOp::LOD => format!("Fetches from {unit} at {at}, at the level of detail in the fourth component"),
        TexOp::DXDY => {
            let [dx, dy] = tex.derivatives().map(|it| temp_text(it.temp, it.rel));
            format!("Fetches from {unit} at {at}, at the level of detail of the derivatives {dx} and {dy}")
        }
    };
    let mut sentences = vec![fetch + "."];
    if !matches!(tex.inst.inst, TexOp::NOP | TexOp::TEXKILL) {
        let mask = mask_text(common.rgb_wmask, common.alpha_wmask);
        let (dst, to) = (tex.dst(), swizzle_text(tex.dst()));
        sentences.push(match mask == "_" {
            true => "The result is not written.".to_owned(),
            false => {
                let order = if to == "rgba" { String::new() } else { format!(", in the order {to}") };
                let when = predicated(common.rgb_pred_sel, common.rgb_pred_inv);
                format!("The result goes to {}.{mask}{order}{when}.", temp_text(dst.temp, dst.rel))
            }
        });
        sentences.push(match tex.inst.unscaled {
            true => "Coordinates count texels.".to_owned(),
            false => "Coordinates go from 0 to 1.".to_owned(),
        });
    }
    if tex.inst.ignore_uncovered {
        sentences.push("Lanes outside the primitive do not fetch.".to_owned());
    }
    if tex.inst.tex_sem_acquire {
        sentences.push("Holds the texture semaphore until the data has arrived.".to_owned());
    }
    sentences
}

// ---- Flow control

fn flow(common: &CmnInst, fc: &Fc) -> String {
    let Some(statement) = Statement::recognise(&fc.inst, &fc.addr) else {
        return "This jump is not a usual construct. The fields state its effect on lanes.".to_owned();
    };
    let condition = statement.condition.map(|(condition, negated)| {
        let is = if negated { "false" } else { "true" };
        match condition {
            Condition::Alu => format!("the ALU result is {is}"),
            Condition::Predicate => {
                let channel = match common.rgb_pred_sel {
                    PredSel::NONE | PredSel::RGBA => "the predicate".to_owned(),
                    select => format!("predicate {}", select.name()[..1].to_ascii_lowercase()),
                };
                let is = if negated == common.rgb_pred_inv { "true" } else { "false" };
                format!("{channel} is {is}")
            }
            Condition::Boolean => format!("boolean constant {} is {is}", statement.addr.bool_addr),
        }
    });
    let int = statement.addr.int_addr;
    let to = statement.addr.jump_addr;
    let when =
        condition.as_ref().map(|condition| format!(", for lanes where {condition}")).unwrap_or_default();
    let ifs = match statement.pop {
        0 => String::new(),
        1 => ", out of 1 if".to_owned(),
        pop => format!(", out of {pop} ifs"),
    };
    match (statement.construct.name, statement.construct.variant) {
        ("if", "else") => format!("Begins an if that has an else part{when}; the else part is before {to}."),
        ("if", _) => format!("Begins an if{when}; its end is before {to}."),
        ("else", _) => format!("Ends the if's first part and begins its else part; the end is before {to}."),
        ("endif", _) if statement.pop == 1 => "Ends the innermost if, where its lanes reconverge.".to_owned(),
        ("endif", _) => format!("Ends the {} innermost ifs, where their lanes reconverge.", statement.pop),
        ("loop", _) => {
            format!("Begins a loop with aL, with integer constant {int}. Its end is before {to}.")
        }
        ("rep", _) => {
            format!("Begins a loop without aL, with integer constant {int}. Its end is before {to}.")
        }
        ("endloop" | "endrep", _) => {
            format!("Goes back to {to} for the next iteration of the loop, or ends the loop.")
        }
        ("break" | "breakrep", _) => format!("Leaves the loop{when}{ifs}."),
        ("continue", _) => format!("Continues with the next iteration of the loop{when}{ifs}."),
        ("call", _) => format!("Calls the subroutine at {to}{when}."),
        ("return", _) => "Returns from the subroutine.".to_owned(),
        _ => format!("Jumps to {to}{when}."),
    }
}
