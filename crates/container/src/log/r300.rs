//! Dumps of Mesa's r300, with a line for each word.
//!
//! ```text
//! R500 Fragment Program:                                  Final vertex program code:
//! 0  0:CMN_INST   0x00078005:OUT TEX_WAIT …               0: op: 0x00f00203 dst: 0o op: VE_ADD
//!    1:RGB_ADDR   0x08020000:Addr0: 0t, …                  src0: 0x00d10001 reg: 0i swiz: …
//!    2:ALPHA_ADDR 0x08020000:Addr0: 0t, …                 …
//! …                                                       Flow Control Ops: 0x00000002
//!                                                         LOOP: uw-> 0x00060000 lw-> 0x00010001 loop data->0x00000003
//! ```
//! (Mesa `r500_fragprog.c`, `r3xx_vertprog_dump.c`.) Words that are not printed are 0.

use reconverge_isa::Isa;
use reconverge_isa::program::Stage;

use super::found::{LoggedShader, digits_of, missing};
use super::lines::{FIRST, LogLine, LogLines, stage_of};
use crate::Error;

/// The names of the words, and their indices in an instruction.
const NAMES: [(&str, usize); 11] = [
    ("CMN_INST", 0),
    ("RGB_ADDR", 1),
    ("ALPHA_ADDR", 2),
    ("RGB_INST", 3),
    ("ALPHA_INST", 4),
    ("RGBA_INST", 5),
    ("TEX_INST", 1),
    ("TEX_ADDR", 2),
    ("TEX_DXDY", 3),
    ("FC_INST", 2),
    ("FC_ADDR", 3),
];

/// Returns whether a line contains the first word of an instruction.
pub(super) fn begins(text: &str) -> bool {
    text.contains(FIRST) && text.contains("0x")
}

/// Reads a fragment program. Starts at the line after the program's header. If the program has no header, starts at the
/// first instruction.
pub(super) fn fragment<'a>(lines: &mut LogLines<'a>, first: LogLine<'a>) -> Result<LoggedShader, Error> {
    let mut found =
        LoggedShader { isa: Some(Isa::R500), stage: Some(Stage::Fragment), ..LoggedShader::new(first) };
    let mut printed: Vec<[bool; 6]> = Vec::new();
    while let Some(line) = lines.of_dump() {
        let name = NAMES.iter().find_map(|(name, index)| Some((*index, line.text.find(name)? + name.len())));
        let Some((index, after)) = name else {
            // At this line, the text of the following program begins.
            if line.text.contains("r300: Initial ") || stage_of(line.text).is_some() {
                lines.back(line);
                break;
            }
            if !line.text.trim_matches('-').is_empty() {
                found.passed.add(line);
            }
            continue;
        };
        let (place, word) = number(line, after, ":")?;
        if index == 0 {
            // Instruction number 0 begins another program, which has no header.
            let count = line.text.split_ascii_whitespace().next().and_then(|count| count.parse().ok());
            if count == Some(0) && !printed.is_empty() {
                lines.back(line);
                break;
            }
            if count.is_some_and(|count| count != printed.len()) && found.damage.is_none() {
                found.damage = Some(Box::new(missing(first, format!("instruction {}", printed.len()))));
            }
            printed.push([false; 6]);
            found.words.extend([0; 6]);
            found.places.resize(found.words.len(), None);
        }
        let Some(record) = found.words.len().checked_sub(6) else {
            return Err(Error::line(
                line.number,
                line.text,
                "the CMN_INST word before the other words of the instruction",
            ));
        };
        if let Some(printed) = printed.last_mut()
            && std::mem::replace(&mut printed[index], true)
        {
            return Err(Error::line(
                line.number,
                line.text,
                "a word that no earlier line of this instruction contains",
            ));
        }
        found.words[record + index] = word;
        found.places[record + index] = Some(place..place + 8);
    }
    for (number, (words, printed)) in found.words.as_chunks::<6>().0.iter().zip(printed).enumerate() {
        // The type of an instruction determines which words must be present. The word with the derivatives is not
        // always printed. (CTM guide, US_CMN_INST)
        let needed: &[usize] = match words[0] & 3 {
            2 => &[2, 3],
            3 => &[1, 2],
            _ => &[1, 2, 3, 4, 5],
        };
        if let Some(word) = needed.iter().find(|word| !printed[**word]) {
            found
                .damage
                .get_or_insert(Box::new(missing(first, format!("word {word} of instruction {number}"))));
        }
    }
    Ok(found)
}

/// Reads a vertex program, starting at the line after its header.
pub(super) fn vertex<'a>(lines: &mut LogLines<'a>, first: LogLine<'a>) -> Result<LoggedShader, Error> {
    let mut found =
        LoggedShader { isa: Some(Isa::R500), stage: Some(Stage::Vertex), ..LoggedShader::new(first) };
    let mut flow = None;
    while let Some(line) = lines.of_dump() {
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        if let Some(operations) = &mut flow {
            if words.first().is_some_and(|word| ["Before", "First", "Last"].contains(word)) {
                continue;
            }
            match flow_operation(&mut found, line, *operations)? {
                true => *operations += 1,
                false => {
                    lines.back(line);
                    break;
                }
            }
            continue;
        }
        if let ["Flow", "Control", "Ops:", ..] = words[..] {
            let (_, value) = number(line, 0, "")?;
            found.state.push(("VAP_PVS_FLOW_CNTL_OPC".to_owned(), value));
            flow = Some(0);
            continue;
        }
        let record = found.words.len() % 4;
        let is_first = words.get(1) == Some(&"op:") && words[0].ends_with(':');
        let source = words.first().and_then(|word| word.strip_prefix("src")?.strip_suffix(':'));
        match (is_first, source) {
            (true, _) if record == 0 => {
                let expected = found.words.len() / 4;
                if words[0].strip_suffix(':') != Some(&expected.to_string()) {
                    found.damage.get_or_insert(Box::new(missing(first, format!("instruction {expected}"))));
                }
            }
            (false, Some(source)) if record > 0 && source == (record - 1).to_string() => {}
            (false, None) => {
                found.passed.add(line);
                continue;
            }
            _ => {
                let expected =
                    if record == 0 { "an instruction's op".to_owned() } else { format!("src{}", record - 1) };
                return Err(Error::line(line.number, line.text, expected));
            }
        }
        let (place, word) = number(line, 0, " ")?;
        found.words.push(word);
        found.places.push(Some(place..place + 8));
    }
    if !found.words.len().is_multiple_of(4) {
        found.damage =
            Some(Box::new(missing(first, "an instruction with an op and three sources".to_owned())));
    }
    Ok(found)
}

/// Reads the registers of one flow control operation.
fn flow_operation(found: &mut LoggedShader, line: LogLine<'_>, operation: usize) -> Result<bool, Error> {
    let Some((name, _)) = line.text.split_once(':') else { return Ok(false) };
    if !["NOP", "JUMP", "LOOP", "JSR"].contains(&name.trim()) {
        return Ok(false);
    }
    let registers = [
        ("uw->", "VAP_PVS_FLOW_CNTL_ADDRS_UW"),
        ("lw->", "VAP_PVS_FLOW_CNTL_ADDRS_LW"),
        ("loop data->", "VAP_PVS_FLOW_CNTL_LOOP_INDEX"),
    ];
    for (mark, register) in registers {
        let Some(at) = line.text.find(mark) else {
            found.foreign = Some("R300 or R400 (flow control of one word)".to_owned());
            return Ok(true);
        };
        let (_, value) = number(line, at, " ")?;
        found.state.push((format!("{register}_{operation}"), value));
    }
    Ok(true)
}

/// Searches a line for `0x`, starting at byte `from`. Returns the word that follows this `0x`, and the offset of the
/// word's digits. `end` lists the characters that may follow the word.
fn number(line: LogLine<'_>, from: usize, end: &str) -> Result<(usize, u32), Error> {
    let rest = &line.text[from..];
    let digits = rest.split_once("0x").map(|(_, rest)| {
        let end = rest.find(|c: char| c.is_ascii_whitespace() || end.contains(c)).unwrap_or(rest.len());
        &rest[..end]
    });
    let word = digits.and_then(digits_of).zip(digits);
    word.map(|(word, digits)| (line.at + (digits.as_ptr() as usize - line.text.as_ptr() as usize), word))
        .ok_or_else(|| {
            let found = digits.unwrap_or_else(|| rest.trim());
            Error::at(line.number, line.text, found, "a word of eight digits after 0x")
        })
}
