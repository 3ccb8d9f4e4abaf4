//! Compares our listings with those of other tools for the same words, instruction by instruction.

use std::collections::HashMap;

use reconverge_r700::chip::Chip;
use reconverge_r700::text::{Options, disassemble};
use reconverge_testkit::records;

/// An instruction in a form that both listings can express.
#[derive(Debug, PartialEq)]
struct Said {
    name: String,
    operands: Vec<String>,
    flags: Vec<String>,
}

fn sort(mut flags: Vec<String>) -> Vec<String> {
    flags.sort();
    flags
}

/// Returns our lines by address. The slot letter comes before the instruction.
fn ours(words: &[u32], chip: Chip) -> HashMap<usize, (String, String)> {
    let text = disassemble(words, chip, Options { hex: true, ..Options::default() }).text;
    let mut lines = HashMap::new();
    for line in text.lines() {
        let Some((code, at)) = line.split_once("  ; ") else { continue };
        let addr = at.split(':').next().and_then(|at| at.parse().ok()).expect("an address");
        let code = code.trim().trim_start_matches(|c: char| c.is_ascii_digit()).trim();
        match code.split_once(": ") {
            Some((slot, rest)) if slot.len() == 1 => lines.insert(addr, (slot.to_owned(), rest.to_owned())),
            Some(_) | None => lines.insert(addr, (String::new(), code.to_owned())),
        };
    }
    lines
}

/// Parses our ALU line. Literals become `literal.c`; their values are stored in `literals`.
fn our_alu(text: &str, literals: &mut [Option<u32>; 4]) -> Said {
    let text = text.split(" BITS(").next().unwrap_or(text);
    let (name, rest) = text.split_once(' ').expect("a name");
    let mut plain = String::new();
    let mut rest = rest.trim();
    while let Some((before, after)) = rest.split_once("(0x") {
        let (value, after) = after.split_once(')').expect("a bracket");
        let value = u32::from_str_radix(&value[..8], 16).expect("hexadecimal");
        let chan = "xyzw".find(&after[1..2]).expect("a component");
        assert!(literals[chan].is_none_or(|other| other == value));
        literals[chan] = Some(value);
        plain.push_str(before);
        plain.push_str("literal");
        rest = after;
    }
    plain.push_str(rest);
    let parts: Vec<&str> = plain.split(", ").collect();
    let mut operands: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
    let last = operands.pop().unwrap_or_default();
    let mut words = last.split(' ').map(str::to_owned);
    operands.push(words.next().unwrap_or_default());
    if operands[0].starts_with('_') {
        operands[0] = format!("_{}", &operands[0][operands[0].len() - 2..]);
    }
    Said { name: name.to_owned(), operands, flags: sort(words.collect()) }
}

/// Converts LLVM's spelling of an operand to ours.
fn llvm_operand(text: &str) -> String {
    let text = text.trim();
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) if rest != "1" => ("-", rest),
        _ => ("", text),
    };
    let (bar, text) = match text.strip_prefix('|') {
        Some(rest) => ("|", rest.trim_end_matches('|')),
        None => ("", text),
    };
    let plain = match text {
        "0.0" => "0".to_owned(),
        "PS" | "1.0" | "1" | "-1" | "0.5" => text.to_owned(),
        _ => {
            let text = text.trim_end_matches('+');
            let text = match text.strip_prefix("T(") {
                Some(rest) => format!("R[{}", rest.replace(" + ", "+").replace(").", "].")),
                None => text.strip_prefix('T').map_or(text.to_owned(), |rest| format!("R{rest}")),
            };
            let (front, chan) = text.rsplit_once('.').unwrap_or_else(|| panic!("{text} has no component"));
            format!("{front}.{}", chan.to_lowercase())
        }
    };
    format!("{sign}{bar}{plain}{bar}")
}

fn llvm_alu(text: &str) -> (Said, bool) {
    let (name, rest) = text.split_once(' ').expect("a name");
    let last = rest.starts_with("* ");
    let rest = rest.trim_start_matches("* ");
    let name = match name {
        "LSHR" | "LSHL" | "ASHR" => format!("{name}_INT"),
        "MULHI" => "MULHI_UINT".to_owned(),
        other => other.to_owned(),
    };
    let mut flags = Vec::new();
    let rest = match rest.strip_prefix("ExecMask,PredicateBit (MASKED), ") {
        Some(sources) => {
            flags.push("UPDATE_EXEC_MASK".to_owned());
            format!("_, {sources}")
        }
        None => match rest.strip_prefix("Pred,PredicateBit (MASKED), ") {
            Some(sources) => {
                flags.push("UPDATE_PRED".to_owned());
                format!("_, {sources}")
            }
            None => rest.to_owned(),
        },
    };
    let mut operands: Vec<&str> = rest.split(", ").map(|part| part.trim_end_matches(',')).collect();
    let tail = match operands.last() {
        Some(last) if last.starts_with("Pred_sel") || last.starts_with("BS:") => operands.pop().unwrap_or(""),
        _ => "",
    };
    for (mark, flag) in [
        ("Pred_sel_zero", "PRED(ZERO)"),
        ("Pred_sel_one", "PRED(ONE)"),
        ("VEC_021", "BANK(021)"),
        ("VEC_120", "BANK(120)"),
        ("VEC_102", "BANK(102)"),
        ("VEC_201", "BANK(201)"),
        ("VEC_210", "BANK(210)"),
    ] {
        if tail.contains(mark) {
            flags.push(flag.to_owned());
        }
    }
    let mut said = Said { name, operands: Vec::new(), flags: sort(flags) };
    for (index, operand) in operands.into_iter().enumerate() {
        let operand = operand.trim();
        let masked = operand.strip_suffix(" (MASKED)");
        said.operands.push(match (index, masked) {
            (0, Some(target)) => format!("_{}", &target[target.len() - 2..].to_lowercase()),
            // LLVM does not show the component that a predicate instruction would write.
            (0, None) if operand == "_" => "_".to_owned(),
            _ => llvm_operand(operand),
        });
    }
    (said, last)
}

/// Converts LLVM's control-flow or fetch line to our spelling. Returns `None` if it contains nothing to compare.
fn llvm_other(text: &str) -> Option<String> {
    let mut parts = text.split_whitespace();
    let name = parts.next()?;
    let kcache = |text: &str| {
        let (set, window) = text.trim_end_matches(',').split_once('[')?;
        let (bank, range) = window.trim_end_matches(']').split_once(':')?;
        let (first, end) = range.split_once('-')?;
        let last = end.parse::<u32>().ok()? - 1;
        Some(format!(" KCACHE{}({bank}:{first}-{last})", &set[2..]))
    };
    Some(match name {
        "ALU" | "ALU_PUSH_BEFORE" | "ALU_POP_AFTER" => {
            let count: u32 = parts.next()?.trim_end_matches(',').parse().ok()?;
            let addr = parts.next()?.trim_start_matches('@').trim_end_matches(',');
            let windows: String = parts.filter_map(kcache).collect();
            format!("{name}: ADDR({addr}) CNT({}){windows}", count + 1)
        }
        "VTX" | "TEX" => {
            let count: u32 = parts.next()?.parse().ok()?;
            format!("{name}: ADDR({}) CNT({})", parts.next()?.trim_start_matches('@'), count + 1)
        }
        "JUMP" | "ELSE" | "POP" | "LOOP_START_DX10" | "END_LOOP" | "CONTINUE" | "LOOP_BREAK" => {
            let name = match name {
                "END_LOOP" => "LOOP_END",
                "CONTINUE" => "LOOP_CONTINUE",
                other => other,
            };
            let addr = parts.next()?.trim_start_matches('@');
            let pop = parts.next().and_then(|pop| pop.strip_prefix("POP:")).filter(|pop| *pop != "0");
            format!("{name}: ADDR({addr}){}", pop.map_or(String::new(), |pop| format!(" POP_CNT({pop})")))
        }
        "CALL_FS" => "CALL_FS:".to_owned(),
        "CF_END" => "NOP: END_OF_PROGRAM".to_owned(),
        "EXPORT" => {
            // Exports to streams are shown without their components.
            let target = parts.next()?;
            let (register, select) = target.split_once('.').unwrap_or((target, ""));
            format!("R{}.{}", &register[1..], select.to_lowercase())
        }
        "TEX_SAMPLE" | "TEX_SAMPLE_C" => {
            let target = parts.next()?.trim_end_matches(',');
            let source = parts.next()?;
            let mut ids = parts.map(|part| part.split_once(':').map_or("", |(_, id)| id));
            let swap = |text: &str| {
                let (register, select) = text.split_once('.').unwrap_or((text, ""));
                format!("R{}.{}", &register[1..], select.to_lowercase())
            };
            let (resource, sampler) = (ids.next()?, ids.next()?);
            let coords = ids.next()?;
            let unnormalised: String = "XYZW"
                .chars()
                .zip(coords.chars())
                .filter(|(_, c)| *c == 'U')
                .map(|(at, _)| format!(" UNNORM_{at}"))
                .collect();
            format!(
                "{} {}, {}, t{resource}, s{sampler}{unnormalised}",
                &name[4..],
                swap(target),
                swap(source)
            )
        }
        "VTX_READ_eg" => {
            let target = parts.next()?.trim_end_matches(',');
            let (register, chan) = parts.next()?.trim_end_matches(',').split_once('.')?;
            format!("FETCH R{}.xyzw, R{}.{}", &target[1..], &register[1..], chan.to_lowercase())
        }
        _ => return None,
    })
}

#[test]
fn llvm_says_the_same_of_every_instruction() {
    let (mut alu, mut other) = (0, 0);
    for record in
        ["exec", "disasm"].into_iter().flat_map(|file| records(&format!("corpus/r700-llvm/{file}.jsonl.gz")))
    {
        let words: Vec<u32> = record["words"]
            .as_str()
            .unwrap_or("")
            .split_whitespace()
            .map(|word| u32::from_str_radix(word, 16).expect("hexadecimal"))
            .collect();
        let id = record["id"].as_str().unwrap_or("");
        let lines = ours(&words, Chip::named(record["chip"].as_str().unwrap_or("")).expect("a chip"));
        let mut literals = [None; 4];
        let mut next_literal = 0;
        for entry in record["listing"].as_array().expect("a listing") {
            let at = entry[0].as_u64().unwrap_or(0) as usize;
            let text = entry[2].as_str().unwrap_or("").trim();
            if entry[1] == 0 || text == "PAD" {
                continue;
            }
            if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
                for part in text.split("), ") {
                    let value: i64 =
                        part.split('(').next().and_then(|part| part.parse().ok()).expect("a number");
                    if let Some(ours) = literals[next_literal] {
                        assert_eq!(ours, value as u32, "{id} at {at}: {text}");
                    }
                    next_literal += 1;
                }
                continue;
            }
            // After an export that ends the program this word is unreachable, so our text prints it as data.
            if text == "CF_END" && !lines.contains_key(&(at / 2)) {
                assert_eq!(words[at..at + 2], [0, 0x8020_0000], "{id}");
                continue;
            }
            let (_, line) = lines.get(&(at / 2)).unwrap_or_else(|| panic!("{id}: nothing at {at}: {text}"));
            if let Some(said) = llvm_other(text) {
                if text.starts_with("EXPORT") {
                    assert!(line.contains(&said), "{id}: {text} against {line}");
                } else {
                    // LLVM shows neither the barrier nor texel offsets.
                    let shown = |part: &&str| *part != "NO_BARRIER" && !part.starts_with("OFFSET_");
                    let ours = line.split(' ').filter(shown).collect::<Vec<_>>().join(" ");
                    let rest = ours
                        .strip_prefix(&said)
                        .unwrap_or_else(|| panic!("{id}: {text}: {said} against {ours}"));
                    let fetch = text.starts_with("VTX_READ");
                    assert!(rest.trim().is_empty() || fetch, "{id}: {text} leaves `{rest}` of {ours} unsaid");
                }
                other += 1;
                continue;
            }
            let (mut theirs, last) = llvm_alu(text);
            if next_literal > 0 {
                (literals, next_literal) = ([None; 4], 0);
            }
            let mut mine = our_alu(line, &mut literals);
            if theirs.operands[0] == "_" {
                mine.operands[0] = "_".to_owned();
            }
            // Number 43 (hexadecimal) is printed as PRED_SETGE_INT by LLVM, whose own encoder uses it for GT.
            if mine.name == "PRED_SETGT_INT" && theirs.name == "PRED_SETGE_INT" {
                theirs.name = mine.name.clone();
            }
            assert_eq!(mine, theirs, "{id} at {at}: {text}");
            assert_eq!(words[at] >> 31 != 0, last, "{id} at {at}: the end of the group");
            alu += 1;
            if last && !literal_follows(&record["listing"], at) {
                literals = [None; 4];
            }
        }
    }
    println!("{alu} ALU instructions and {other} others say the same");
}

/// Returns whether the entry after the one at word `at` is a literal.
fn literal_follows(listing: &serde_json::Value, at: usize) -> bool {
    let entries = listing.as_array().expect("a listing");
    entries.iter().any(|entry| {
        entry[0] == at + 2
            && entry[2]
                .as_str()
                .is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    })
}

/// Converts a Mesa operand to our spelling.
fn mesa_operand(text: &str) -> String {
    let text = text.trim();
    // A literal is shown by value only: [0x40600000 3.500000].
    if let Some(at) = text.find("[0x") {
        let sign = &text[..at];
        return format!("{sign}literal {}", text[at + 3..at + 11].to_lowercase());
    }
    text.to_owned()
}

/// Renumbers the temporaries of the optimiser's listing, which count down from R127. Both listings print 1 for integer
/// one.
fn plain_registers(text: &str) -> String {
    let temporary = |digits: &str| format!("R{}", 124 + digits.parse::<u32>().unwrap_or(0));
    match text.find("T").filter(|at| text[at + 1..].starts_with(|c: char| c.is_ascii_digit())) {
        Some(at) if !text.contains('[') => {
            let (digits, rest) = text[at + 1..].split_once('.').unwrap_or((&text[at + 1..], ""));
            format!("{}{}.{rest}", &text[..at], temporary(digits))
        }
        _ => text.to_owned(),
    }
}

#[test]
fn mesa_gives_every_instruction_the_same_name_slot_and_operands() {
    let (mut compared, mut relative) = (0, 0);
    for file in ["fuzz", "piglit"] {
        let listings: HashMap<String, String> = records(&format!("corpus/r700/{file}-disasm.jsonl.gz"))
            .into_iter()
            .map(|record| (record["name"].to_string(), record["disasm"].as_str().unwrap_or("").to_owned()))
            .collect();
        for record in records(&format!("corpus/r700/{file}.jsonl.gz")) {
            let words: Vec<u32> = record["program"]["code"]
                .as_array()
                .expect("code")
                .iter()
                .filter_map(|word| word.as_str())
                .flat_map(|word| {
                    [&word[..8], &word[8..]].map(|word| u32::from_str_radix(word, 16).expect("hexadecimal"))
                })
                .collect();
            let name = record["name"].to_string();
            let lines = ours(&words, Chip::named(record["chip"].as_str().unwrap_or("")).expect("a chip"));
            for line in listings.get(&name).map_or("", String::as_str).lines() {
                let mut parts = line.split_whitespace();
                let (Some(at), Some(first), Some(second)) = (parts.next(), parts.next(), parts.next()) else {
                    continue;
                };
                let (Ok(at), Ok(first), Ok(second)) =
                    (at.parse::<usize>(), u32::from_str_radix(first, 16), u32::from_str_radix(second, 16))
                else {
                    continue;
                };
                // A listing may show a version that the driver did not upload.
                if words.get(at..at + 2) != Some(&[first, second]) {
                    continue;
                }
                let Some((before, instruction)) = line.split_once(':') else { continue };
                let Some(slot) = before.chars().last().filter(|slot| "xyzwt".contains(*slot)) else {
                    continue;
                };
                // Marks for the execute mask and the predicate come directly after the colon.
                let instruction = instruction.trim_start_matches(|c: char| c != ' ').trim_start();
                let instruction = instruction.split("  BS:").next().unwrap_or("").trim();
                let Some((letter, mine)) = lines.get(&(at / 2)) else {
                    panic!("{name}: nothing at {at}: {line}");
                };
                let mut literals = [None; 4];
                let said = our_alu(mine, &mut literals);
                let (op, rest) = instruction.split_once(' ').unwrap_or((instruction, ""));
                let op = op.trim_end_matches("_sat");
                if !lettered(op) {
                    continue;
                }
                assert_eq!(
                    (letter.chars().next(), said.name.as_str()),
                    (Some(slot), base(op)),
                    "{name} at {at}: {line} against {mine}"
                );
                let theirs: Vec<String> =
                    rest.split(',').map(|part| plain_registers(&mesa_operand(part))).collect();
                for (mine, theirs) in said.operands.iter().zip(&theirs) {
                    let theirs = theirs.split_whitespace().collect::<Vec<_>>();
                    let shown = match mine.split_once("literal.") {
                        Some((sign, chan)) => {
                            let chan = "xyzw".find(&chan[..1]).unwrap_or(0);
                            format!("{sign}literal {:08x}", literals[chan].unwrap_or(0))
                        }
                        None => mine.clone(),
                    };
                    let joined =
                        theirs.join(" ").split(" VEC_").next().map_or(String::new(), |text| {
                            text.split(" SCL_").next().unwrap_or("").to_owned()
                        });
                    if joined.contains("[") && !joined.contains("KC") || shown.contains('+') {
                        relative += 1;
                        continue;
                    }
                    let joined = if joined.starts_with("__.") { joined.replace("__.", "_.") } else { joined };
                    if op == "NOP" || op.starts_with("MOVA") {
                        continue;
                    }
                    // The component of a constant has no meaning; Mesa leaves it out.
                    let shown = match shown
                        .strip_suffix(['x', 'y', 'z', 'w'])
                        .and_then(|text| text.strip_suffix('.'))
                    {
                        Some(short) if short == joined => short,
                        Some(_) | None => shown.as_str(),
                    };
                    assert_eq!(shown, joined, "{name} at {at}: {line} against {mine}");
                }
                compared += 1;
            }
        }
    }
    println!("{compared} instructions agree; {relative} relative operands were not compared");
}

fn lettered(op: &str) -> bool {
    op.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns the opcode without the suffix that the listing appends for OMOD.
fn base(op: &str) -> &str {
    op.trim_start_matches("ALU_").trim_end_matches("*2").trim_end_matches("*4").trim_end_matches("/2")
}
