//! Explains one instruction. The explanation has the instruction's text, fields, computation, and effect on the flow of
//! lanes.
//!
//! The meaning of words depends on the part of the program: the control-flow program, an ALU clause or a fetch clause.
//! [`at`] finds the part that contains an instruction. [`readings`] returns every legal interpretation of words that
//! belong to no program. [`crate::words`] contains the sentences about opcodes. [`crate::control`] contains the
//! sentences about the flow of lanes.

use reconverge_isa::word::Kind;
use reconverge_isa::{FieldValue, WordInfo};

use crate::chip::{Chip, Family};
use crate::code::{self, AluOp, Operand, Source};
use crate::control::{self, CfWork, export_in_r600, form_effect, tex_in_r600};
use crate::meaning::Meaning;
use crate::ports;
use crate::rules::RULES;
use crate::text::{self, Home};
use crate::words::*;

/// One field of an instruction, or a range of bits that belong to no field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The manual's name of the word format.
    pub format: &'static str,
    /// Index of the word in the instruction.
    pub word: usize,
    /// Highest bit.
    pub hi: u8,
    /// Lowest bit.
    pub lo: u8,
    /// The field's name, or `reserved` for bits that belong to no field.
    pub field: &'static str,
    /// Bits of the field, right-aligned.
    pub value: u32,
    /// Meaning of the value.
    pub text: String,
    /// Purpose of the field. The text may be empty.
    pub doc: &'static str,
}

/// The part of a program that contains an instruction. The words of an instruction do not show in which part the
/// instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The control-flow program. Its instructions have two words.
    ControlFlow,
    /// An ALU clause. Its instructions have two words.
    Alu,
    /// A TEX or VTX clause. Its instructions have four words.
    Fetch,
}

/// One interpretation of some words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Kind of instruction in this interpretation: `control flow`, `ALU`, `fetch`.
    pub title: &'static str,
    /// The words. For an ALU group, the words of all slots and literals.
    pub words: Vec<u32>,
    /// The text that the disassembler prints, one line per slot of a group.
    pub text: Vec<String>,
    /// The fields of the words. Every bit of the words belongs to one field.
    pub fields: Vec<Explained>,
    /// Sentences that describe the computation.
    pub meaning: Vec<String>,
    /// Sentences that describe the effect on the flow of lanes.
    pub flow: Vec<String>,
    /// Sentences about bits and values that have no meaning. The list is empty for a legal instruction.
    pub findings: Vec<String>,
    /// Whether a field that the instruction does not read has a value other than 0. In real code, such a value is rare.
    pub unread: bool,
    /// Pages of the documents that describe the instruction.
    pub source: &'static str,
}

/// Returns the instruction at address `addr` of a program that starts at address `start`. In an ALU group, the function
/// returns only the instruction of the slot at `addr`.
pub fn at(words: &[u32], start: u32, chip: Chip, addr: u32) -> Option<Reading> {
    let home = text::home(words, chip, start, addr as usize)?;
    let pairs = |addr: usize, count: usize| &words[2 * addr..2 * (addr + count)];
    match home {
        Home::ControlFlow => Some(control_flow(pairs(addr as usize, 1), chip)),
        Home::Fetch => Some(fetch(pairs(addr as usize, 2), chip)),
        Home::Alu { launch, group: (first, slots, literals), open } => {
            let form = AluForm::from_bits(words[2 * launch + 1] >> 26 & 15, 4);
            let mut reading = group(pairs(first, slots + literals), slots, form, chip);
            reading.keep_slot(addr as usize - first, slots);
            reading.findings.extend(open.map(str::to_owned));
            if slots > 1 {
                let (last, slots) = (first + slots - 1, ["two", "three", "four", "five"][slots - 2]);
                reading.meaning.push(format!(
                    "The instruction belongs to the group of {slots} instructions at {first} to {last}. All \
                     instructions of the group read their operands before any of them writes a result."
                ));
            }
            Some(reading)
        }
    }
}

/// Returns the possible interpretations of `words`.
///
/// Two words can be a control-flow instruction or an ALU instruction. Four words can be a fetch. An ALU group has two
/// words for each slot and two words for each pair of literals. If a legal interpretation exists, the result omits
/// illegal interpretations. If an interpretation has 0 in every field that the instruction does not read, the result
/// omits all other interpretations. The result is empty if no instruction has this number of words.
pub fn readings(words: &[u32], chip: Chip) -> Vec<Reading> {
    let mut all = Vec::new();
    if words.len() == 2 {
        all.push(control_flow(words, chip));
    }
    if words.len() == 4 {
        all.push(fetch(words, chip));
    }
    if let Some(slots) = slots_of(words) {
        all.push(group(words, slots, None, chip));
    }
    for doubts in [|reading: &Reading| !reading.findings.is_empty(), |reading: &Reading| reading.unread] {
        if !all.iter().all(doubts) {
            all.retain(|reading| !doubts(reading));
        }
    }
    all
}

/// Returns the number of instructions in the group that these words encode. If the words do not encode a group, the
/// function returns `None`. A single instruction does not need the LAST bit.
fn slots_of(words: &[u32]) -> Option<usize> {
    let (pairs, []) = words.as_chunks::<2>() else { return None };
    let last = pairs.iter().position(|pair| pair[0] >> 31 != 0);
    let slots = last.map_or(1, |last| last + 1);
    let literals = code::literal_pairs(&pairs[..slots.min(pairs.len())]);
    (!pairs.is_empty() && slots <= 5 && (slots + literals == pairs.len() || pairs.len() == 1))
        .then_some(slots)
}

/// Returns whether each value of an enumerated field has a sentence that describes the value.
const fn all_say<T: FieldValue>() -> bool {
    let mut place = 0;
    while place < T::NAMES.len() {
        if T::NAMES[place].doc.is_empty() {
            return false;
        }
        place += 1;
    }
    true
}

const _: () = {
    assert!(all_say::<Op2>() && all_say::<Op3>(), "every ALU operation has a sentence in words.rs");
    assert!(
        all_say::<CfInst>() && all_say::<ExportInst>() && all_say::<AluForm>(),
        "every CF instruction has one"
    );
    assert!(
        all_say::<TexInst>() && all_say::<VtxInst>() && all_say::<MemOp>(),
        "every fetch instruction has one"
    );
};

/// Returns the sentence that describes a value of an enumeration, such as an opcode.
fn says<T: FieldValue>(value: T) -> &'static str {
    let bits = value.to_bits();
    T::NAMES.iter().find(|name| name.value == bits).map_or("", |name| name.doc.trim())
}

impl Reading {
    /// Returns an interpretation of `words`. The interpretation contains the fields of the words, and sentences about
    /// bits and codes that have no meaning.
    fn of(title: &'static str, words: &[u32], text: Vec<String>, place: Place, chip: Chip) -> Reading {
        Reading {
            title,
            words: words.to_vec(),
            text,
            fields: explain(words, place, chip),
            meaning: Vec::new(),
            flow: Vec::new(),
            findings: stray(words, &formats(words, place, chip)),
            unread: false,
            source: "",
        }
    }

    /// Removes the data about all slots of a group except one slot.
    fn keep_slot(&mut self, slot: usize, slots: usize) {
        let about = |word: usize| word / 2 == slot || word / 2 >= slots;
        self.fields.retain(|field| about(field.word));
        self.text = self.text.drain(..).skip(slot).take(1).collect();
        let mark = format!("{}: ", self.text[0].split(':').next().unwrap_or_default());
        let own = |line: &String| line.strip_prefix(&mark).map(str::to_owned);
        self.meaning = self.meaning.iter().filter_map(own).collect();
        self.flow = self.flow.iter().filter_map(own).collect();
        self.findings.retain(|finding| !finding.starts_with("word ") || about(word_of(finding)));
    }
}

fn word_of(finding: &str) -> usize {
    finding.split(' ').nth(1).and_then(|word| word.trim_end_matches(':').parse().ok()).unwrap_or(0)
}

/// Returns sentences about the bits and codes of `words` that have no meaning.
fn stray(words: &[u32], formats: &[&'static WordInfo]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, &raw) in words.iter().enumerate() {
        let info = formats.get(number);
        let bits = raw & !info.map_or(0, |info| info.owned);
        if bits != 0 {
            found.push(format!("word {number}: the bits {bits:#010x} are reserved"));
        }
        for field in info.map_or(&[][..], |info| info.fields) {
            let value = field.get(raw);
            if field.kind == Kind::Names && !field.names.iter().any(|name| name.value == value) {
                let name = field.name.to_ascii_uppercase();
                found.push(format!("word {number}: {value} is not a value of {name}"));
            }
        }
    }
    found
}

fn control_flow(words: &[u32], chip: Chip) -> Reading {
    let formats = formats(words, Place::ControlFlow, chip);
    let text = text::instruction(words, Home::ControlFlow, chip);
    let mut reading = Reading::of("control flow", words, text, Place::ControlFlow, chip);
    let get = |name: &str| field(words, &formats, name).unwrap_or(0);
    let r600 = chip.family == Family::R600;
    let (number, missing) = (get("cf_inst"), "is not an instruction of this chip");
    let addr = get("addr");
    let mut also = Vec::new();
    if words[1] >> 29 & 1 != 0 {
        reading.source = "R700-Family Instruction Set Architecture, pp. 37 and 47 to 54 (clauses, flow), p. 70 (constants)";
        match AluForm::from_bits(number, 4) {
            Some(form) => {
                also.push(says(form).to_owned());
                reading.flow.extend(sentence(form_effect(form)));
            }
            None => reading.findings.push(format!("ALU_{number} {missing}")),
        }
        let count = get("count") + 1;
        also.push(format!("The clause has {} at {addr}.", counted(count, "64-bit word", "64-bit words")));
        for set in 0..2 {
            let [mode, bank, line] = ["mode", "bank", "addr"].map(|what| get(&format!("kcache_{what}{set}")));
            let first = 16 * line;
            let window = match mode {
                0 => continue,
                1 => format!("constants {first} to {}", first + 15),
                2 => format!("constants {first} to {}", first + 31),
                _ => format!("constants {first} to {} (plus 16 times aL)", first + 31),
            };
            also.push(format!("KC{set} is a window on {window} of buffer {bank}."));
        }
    } else if let Some(inst) = ExportInst::from_bits(number, 7) {
        reading.source =
            "R700-Family Instruction Set Architecture, p. 45 (exports and memory writes), p. 37 (clauses)";
        also.push(says(inst).to_owned());
        if r600 && !export_in_r600(inst) {
            reading.findings.push(format!("{} {missing}", inst.name()));
        }
        let (gpr, burst) = (get("rw_gpr"), get("burst_count"));
        let registers = match burst {
            0 => format!("R{gpr}"),
            burst => format!("R{gpr} to R{}", gpr + burst),
        };
        let base = get("array_base");
        match (inst, get("type_code")) {
            (ExportInst::EXPORT | ExportInst::EXPORT_DONE, 3) => {
                reading.findings.push("3 is not a value of TYPE".to_owned());
            }
            (ExportInst::EXPORT | ExportInst::EXPORT_DONE, kind) => {
                let kind = ["colour or depth", "position", "parameter"][kind as usize];
                also.push(format!("{registers} goes to {kind} {base}."));
            }
            (_, kind) => {
                let index =
                    if kind & 1 != 0 { format!(" plus R{}.x", get("index_gpr")) } else { String::new() };
                let read = if r600 && kind & 2 != 0 { " comes from" } else { " goes to" };
                let ack = if !r600 && kind & 2 != 0 { ", and an acknowledge is requested" } else { "" };
                also.push(format!("{registers}{read} element {base}{index}{ack}."));
            }
        }
        also.extend(sentence("Only active lanes execute it."));
    } else {
        reading.source =
            "R700-Family Instruction Set Architecture, pp. 47 to 54 (flow control), p. 37 (clauses)";
        match CfInst::from_bits(number, 7).filter(|inst| !r600 || control::cf(*inst).in_r600) {
            Some(inst) => {
                let row = control::cf(inst);
                if matches!(
                    inst,
                    CfInst::LOOP_START
                        | CfInst::LOOP_START_DX10
                        | CfInst::LOOP_START_NO_AL
                        | CfInst::LOOP_END
                ) {
                    reading.source = "R700-Family Instruction Set Architecture, p. 120 (loops), pp. 47 to 54 (flow control)";
                }
                also.push(says(inst).to_owned());
                let condition = Cond::from_bits(get("cond"), 2);
                if !matches!(inst, CfInst::NOP | CfInst::END_PROGRAM | CfInst::WAIT_ACK) {
                    also.extend(condition.map(|condition| says(condition).to_owned()));
                }
                let fetches = matches!(row.work, CfWork::Fetch { .. });
                if fetches {
                    let count = get("count") + 8 * get("count_3") + 1;
                    also.push(format!(
                        "The clause has {} at {addr}.",
                        counted(count, "instruction", "instructions")
                    ));
                } else if row.jumps {
                    also.push(format!("ADDR is instruction {addr}."));
                }
                reading.flow.extend(sentence(control::effect(inst)));
                also.extend(disputed(row.rule));
                also.push(format!("Fidelity: {}.", row.exactness.name()));
                let counts = matches!(row.work, CfWork::Flow(_)) && reading.source.contains("loops");
                reading.unread = (get("count") != 0 && !fetches)
                    || (addr != 0
                        && !fetches
                        && !row.jumps
                        && !matches!(inst, CfInst::WAIT_ACK | CfInst::POP))
                    || (get("call_count") != 0 && !matches!(inst, CfInst::CALL | CfInst::CALL_FS))
                    || (get("cf_const") != 0 && get("cond") < 2 && !counts);
            }
            None => reading.findings.push(format!("CF_INST {number:#x} {missing}")),
        }
    }
    for (name, text) in [
        ("whole_quad_mode", "It executes for all lanes of a quad that has an active lane."),
        ("valid_pixel_mode", "Only lanes that are valid pixels execute it."),
        ("end_of_program", "The program ends after this instruction."),
    ] {
        if get(name) != 0 {
            also.push(text.to_owned());
        }
    }
    reading.meaning = also.into_iter().filter(|line| !line.is_empty()).collect();
    reading
}

fn field(words: &[u32], formats: &[&'static WordInfo], name: &str) -> Option<u32> {
    words.iter().zip(formats).find_map(|(raw, info)| Some(info.field(name)?.get(*raw)))
}

fn sentence(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn counted(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Returns a sentence about the disputed rule on which the effect of an instruction depends. Returns `None` if the
/// effect depends on no disputed rule.
fn disputed(rule: Option<crate::rules::Rule>) -> Option<String> {
    let info = RULES.iter().find(|info| Some(info.rule) == rule)?;
    Some(format!("Sources disagree (D{}): {} {}", info.rule.number(), info.question, info.reading))
}

fn group(words: &[u32], slots: usize, form: Option<AluForm>, chip: Chip) -> Reading {
    let literals = words.len() / 2 - slots;
    let home = Home::Alu { launch: 0, group: (0, slots, literals), open: None };
    let text = text::instruction(words, home, chip);
    let mut reading = Reading {
        words: words.to_vec(),
        source: "R700-Family Instruction Set Architecture, pp. 67 to 70 (operands, literals, groups), chapter 4 (ALU clauses)",
        // The caller adds the fields of each slot.
        ..Reading::of("ALU", &[], text, Place::Alu, chip)
    };
    let of_word = |shift: usize| move |field: Explained| Explained { word: field.word + shift, ..field };
    for (slot, pair) in words.chunks(2).enumerate() {
        if slot < slots {
            reading.fields.extend(explain(pair, Place::Alu, chip).into_iter().map(of_word(2 * slot)));
            let found = stray(pair, &formats(pair, Place::Alu, chip)).into_iter();
            reading.findings.extend(found.map(|text| match text.strip_prefix("word 1") {
                Some(rest) => format!("word {}{rest}", 2 * slot + 1),
                None => text.replacen("word 0", &format!("word {}", 2 * slot), 1),
            }));
        } else {
            reading.fields.extend(pair.iter().zip(2 * slot..).map(|(value, word)| literal(*value, word)));
        }
    }
    // A single instruction from the middle of a group does not have the LAST bit. The decoder requires this bit.
    let mut closed = words.to_vec();
    closed[2 * (slots - 1)] |= 1 << 31;
    match code::group_of(&closed, chip) {
        Ok(ops) => {
            for (op, pair) in ops.iter().zip(words.chunks(2)) {
                let unread =
                    [!(0x1fff << 13 | 0x1fff), !(0x1fff << 13), !0, !0][usize::from(op.opcode.sources)];
                let sources = pair[0] & !unread & 0x03ff_ffff;
                reading.unread |= sources != 0 || (!op.writes() && op.dst_gpr != 0);
                let slot = char::from(b"xyzwt"[usize::from(op.slot)]);
                reading.meaning.extend(alu_meaning(op).into_iter().map(|line| format!("{slot}: {line}")));
                reading.flow.extend(alu_flow(op, form).into_iter().map(|line| format!("{slot}: {line}")));
            }
        }
        Err(fault) => {
            reading.meaning = broken_group(&words[..2 * slots], &fault, chip);
            reading.findings.push(fault.to_string());
        }
    }
    reading
}

/// Returns sentences about a group that cannot run. The sentences describe the computation of each instruction and name
/// the missing slots.
fn broken_group(words: &[u32], fault: &code::CodeFault, chip: Chip) -> Vec<String> {
    let group: Vec<[u32; 2]> = words.as_chunks::<2>().0.to_vec();
    let mut letters = vec![0; group.len()];
    ports::slots(&group, chip.family, &mut letters);
    let letter = |slot: u8| ["x", "y", "z", "w", "t", "?"][usize::from(slot.min(5))];
    let there: Vec<&str> = letters.iter().map(|slot| letter(*slot)).collect();
    let mut said = Vec::new();
    for (words, slot) in group.iter().zip(&there) {
        if let Some(row) = ports::alu_row(words[1], chip.family) {
            let what = match row.code {
                crate::meaning::AluCode::Op2(code) => says(code),
                crate::meaning::AluCode::Op3(code) => says(code),
            };
            said.push(format!("{slot}: {what}"));
            let all = match row.meaning.slots() {
                4 => "x, y, z and w",
                2 => "x and y, or z and w,",
                _ => "",
            };
            if !all.is_empty() && matches!(fault, code::CodeFault::Incomplete { .. }) {
                said.push(format!(
                    "{slot}: The operation takes the slots {all} of one group, each with its own operands; the group has \
                     {}.",
                    there.join(", ")
                ));
            }
        }
        said.push(format!("{slot}: It cannot run: {fault}."));
    }
    said
}

fn literal(value: u32, word: usize) -> Explained {
    Explained {
        format: "ALU_LITERAL_PAIR",
        word,
        hi: 31,
        lo: 0,
        field: "value",
        value,
        text: format!("{value:#010x}, {}", f32::from_bits(value)),
        doc: field_says("value"),
    }
}

fn alu_meaning(op: &AluOp) -> Vec<String> {
    let mut said = vec![match op.opcode.code {
        crate::meaning::AluCode::Op2(code) => says(code).to_owned(),
        crate::meaning::AluCode::Op3(code) => says(code).to_owned(),
    }];
    said.extend(
        op.read()
            .iter()
            .enumerate()
            .map(|(number, source)| format!("src{number} is {}.", operand(source, op))),
    );
    let (gpr, chan) = (op.dst_gpr, char::from(b"xyzw"[usize::from(op.dst_chan)]));
    let previous = if op.slot == code::TRANS {
        "PS".to_owned()
    } else {
        format!("PV.{}", char::from(b"xyzw"[usize::from(op.slot)]))
    };
    let index = if op.dst_rel { format!(", indexed by {}", index(op)) } else { String::new() };
    match op.opcode.meaning {
        Meaning::Nothing => {}
        _ if op.writes() => said.push(format!(
            "The result goes to R{gpr}.{chan}{index}; the next group can read it as {previous}."
        )),
        _ => said.push(format!("No register is written; the next group can read the result as {previous}.")),
    }
    if op.omod != 1.0 {
        said.push(format!("OMOD multiplies the result by {}.", op.omod));
    }
    if op.clamp {
        said.push("CLAMP limits the result to 0.0 to 1.0.".to_owned());
    }
    if let Some(one) = op.pred_sel {
        said.push(format!("Only lanes whose predicate is {} execute it.", u8::from(one)));
    }
    said.extend(disputed(op.opcode.rule));
    said.push(format!("Fidelity: {}.", op.opcode.exactness.name()));
    said
}

fn alu_flow(op: &AluOp, form: Option<AluForm>) -> Vec<String> {
    let mut said = Vec::new();
    if op.update_pred {
        said.push(
            "The instruction sets the predicate of each lane. Later instructions of the clause can select lanes by \
             this predicate (PRED_SEL)."
                .to_owned(),
        );
    }
    if op.update_execute_mask {
        let become_ = match form {
            Some(AluForm::ALU_BREAK) => "inactive-break: they leave the loop",
            Some(AluForm::ALU_CONTINUE) => "inactive-continue: they end their iteration of the loop",
            Some(_) => "inactive-branch: they wait for an ELSE or a POP",
            None => {
                "inactive: inactive-branch, in ALU_BREAK inactive-break, in ALU_CONTINUE inactive-continue"
            }
        };
        said.push(format!("The execute mask is updated: lanes with the predicate 0 become {become_}."));
    }
    if let Meaning::Kill(_) = op.opcode.meaning {
        said.push(
            "The lanes that the instruction removes from the valid mask stay active. The exports of these lanes are \
             dropped."
                .to_owned(),
        );
    }
    said
}

fn index(op: &AluOp) -> &'static str {
    match op.index_mode {
        IndexModeR700::AR_X => "AR.x",
        IndexModeR700::AR_Y => "AR.y",
        IndexModeR700::AR_Z => "AR.z",
        IndexModeR700::AR_W => "AR.w",
        IndexModeR700::LOOP => "aL",
        IndexModeR700::GLOBAL => "the start of the global registers",
        IndexModeR700::GLOBAL_AR_X => "the start of the global registers plus AR.x",
    }
}

fn operand(source: &Source, op: &AluOp) -> String {
    let chan = |chan: u8| char::from(b"xyzw"[usize::from(chan)]);
    let mut text = match source.operand {
        Operand::Gpr { gpr, chan: c } => format!("register R{gpr}.{}", chan(c)),
        Operand::Kcache { set, index, chan: c } => format!("constant {index}.{} of window KC{set}", chan(c)),
        Operand::ConstantFile { index, chan: c } => {
            format!("constant {index}.{} of the constant file", chan(c))
        }
        Operand::Value(bits) => format!("the value {bits:#010x} ({} as a float)", f32::from_bits(bits)),
        Operand::Previous(c) => format!("PV.{}, a result of the previous group", chan(c)),
        Operand::PreviousScalar => "PS, the result of slot t of the previous group".to_owned(),
    };
    if source.rel {
        text += &format!(", indexed by {}", index(op));
    }
    text += match (source.abs, source.neg) {
        (false, false) => "",
        (true, false) => ", its absolute value",
        (false, true) => ", negated",
        (true, true) => ", its absolute value, negated",
    };
    text
}

fn fetch(words: &[u32], chip: Chip) -> Reading {
    let formats = formats(words, Place::Fetch, chip);
    let text = text::instruction(words, Home::Fetch, chip);
    let mut reading = Reading::of("fetch", words, text, Place::Fetch, chip);
    let get = |name: &str| field(words, &formats, name).unwrap_or(0);
    if let Err(fault) = code::fetch_of(words, chip) {
        reading.findings.push(fault.to_string());
    }
    let channels = |names: &str| -> String {
        let select = |c: char| SELECT[get(&format!("{names}_{c}")) as usize & 7];
        "xyzw".chars().map(select).collect()
    };
    let place = |what: &str| {
        let index = if get(&format!("{what}_rel")) != 0 { "[aL]" } else { "" };
        format!("R{}{index}", get(&format!("{what}_gpr")))
    };
    let one = |name: &str| char::from(b"xyzw"[get(name) as usize & 3]);
    let mut said = Vec::new();
    match words[0] & 31 {
        number @ (0 | 1) => {
            reading.source =
                "R700-Family Instruction Set Architecture, chapter 5 (vertex fetches), pp. 37 and 92";
            said.extend(VtxInst::from_bits(number, 5).map(|inst| says(inst).to_owned()));
            said.push(format!(
                "Buffer {}, the element with the index in {}.{}, {} after the start of the element.",
                get("buffer_id"),
                place("src"),
                one("src_sel_x"),
                counted(get("offset"), "byte", "bytes")
            ));
            let target = if number == 0 {
                place("dst")
            } else {
                format!("the register of semantic {}", get("semantic_id"))
            };
            said.push(format!("{target} receives {}.", channels("dst_sel")));
            said.push(match get("use_const_fields") {
                0 => format!("The element has the format {}.", get_name::<DataFormat>(get("data_format"))),
                _ => "The element has the format that the buffer's resource states.".to_owned(),
            });
        }
        2 => {
            let op = MemOp::from_bits(words[0] >> 8 & 7, 3);
            reading.source = match op {
                Some(MemOp::RD_SCRATCH | MemOp::RD_REDUC | MemOp::RD_SCATTER) | None => {
                    "Mesa, r600_asm.c (memory reads); R700-Family Instruction Set Architecture, p. 45 (the memories)"
                }
                Some(_) => "R700-Family Instruction Set Architecture, p. 35 (data share)",
            };
            said.extend(op.map(|op| says(op).to_owned()));
            match op {
                Some(MemOp::RD_SCRATCH | MemOp::RD_REDUC | MemOp::RD_SCATTER) => {
                    let index = if get("indexed") != 0 {
                        format!(" plus {}.{}", place("src"), one("src_sel_x"))
                    } else {
                        String::new()
                    };
                    said.push(format!(
                        "Element {}{index}, of {}; {} receives {}.",
                        get("array_base"),
                        counted(get("elem_size") + 1, "dword", "dwords"),
                        place("dst"),
                        channels("dst_sel")
                    ));
                }
                Some(MemOp::LOCAL_DS_WRITE) => said.push(format!("{} is written.", place("src"))),
                Some(MemOp::LOCAL_DS_READ) => {
                    said.push(format!(
                        "The address is in {}; {} receives {}.",
                        place("src"),
                        place("dst"),
                        channels("dst_sel")
                    ));
                }
                Some(_) | None => {}
            }
        }
        number => {
            reading.source =
                "R700-Family Instruction Set Architecture, chapter 5 (texture fetches), pp. 37 and 92";
            match TexInst::from_bits(number, 5)
                .filter(|inst| chip.family == Family::R700 || tex_in_r600(*inst))
            {
                Some(inst) => {
                    said.push(says(inst).to_owned());
                    said.push(format!(
                        "Texture {} with sampler {}, coordinates {}.{}; {} receives {}.",
                        get("resource_id"),
                        get("sampler_id"),
                        place("src"),
                        channels("src_sel"),
                        place("dst"),
                        channels("dst_sel")
                    ));
                }
                None => said.push("It cannot run: no instruction of this chip has this number.".to_owned()),
            }
        }
    }
    if get("fetch_whole_quad") != 0 {
        said.push("It fetches for every lane of a quad, valid or not.".to_owned());
    }
    reading.meaning = said;
    reading
}

/// Letters of the select codes. Code 6 is reserved.
const SELECT: [char; 8] = ['x', 'y', 'z', 'w', '0', '1', '?', '_'];

fn get_name<T: FieldValue>(value: u32) -> String {
    let name = T::NAMES.iter().find(|name| name.value == value);
    name.map_or_else(|| value.to_string(), |name| name.text.to_owned())
}

static CF_DWORD1_R600: WordInfo = CfDword1R700::INFO.without_last();
static VTX_DWORD2_R600: WordInfo = VtxDword2R700::INFO.without_last();
static TEX_DWORD0_R600: WordInfo = TexDword0R700::INFO.without_last();
static SWIZ_R700: WordInfo = CfAllocExportDword1Swiz::INFO.without_last();
static BUF_R700: WordInfo = CfAllocExportDword1Buf::INFO.without_last();

/// Returns the format of each word of the instruction `words`. `place` is the part of the program that contains the
/// instruction. Words after the last format are padding.
pub fn formats(words: &[u32], place: Place, chip: Chip) -> Vec<&'static WordInfo> {
    let by_family = |r600, r700| if chip.family == Family::R700 { r700 } else { r600 };
    let second = words.get(1).copied().unwrap_or(0);
    match place {
        Place::ControlFlow if second >> 29 & 1 != 0 => {
            vec![&CfAluDword0::INFO, by_family(&CfAluDword1R600::INFO, &CfAluDword1R700::INFO)]
        }
        Place::ControlFlow => match ExportInst::from_bits(second >> 23 & 0x7f, 7) {
            None => vec![&CfDword0::INFO, by_family(&CF_DWORD1_R600, &CfDword1R700::INFO)],
            Some(ExportInst::EXPORT | ExportInst::EXPORT_DONE) => {
                vec![&CfAllocExportDword0::INFO, by_family(&CfAllocExportDword1Swiz::INFO, &SWIZ_R700)]
            }
            Some(_) => vec![&CfAllocExportDword0::INFO, by_family(&CfAllocExportDword1Buf::INFO, &BUF_R700)],
        },
        Place::Alu if code::is_op3(second) => vec![&AluDword0::INFO, &AluDword1Op3::INFO],
        Place::Alu => vec![&AluDword0::INFO, by_family(&AluDword1Op2R600::INFO, &AluDword1Op2R700::INFO)],
        Place::Fetch => {
            let first = words.first().copied().unwrap_or(0);
            let vertex = by_family(&VTX_DWORD2_R600, &VtxDword2R700::INFO);
            match (first & 31, first >> 8 & 7) {
                (0, _) => vec![&VtxDword0::INFO, &VtxDword1Gpr::INFO, vertex],
                (1, _) => vec![&VtxDword0::INFO, &VtxDword1Sem::INFO, vertex],
                (2, 4 | 6) => vec![&MemDswDword0::INFO, &MemDswDword1::INFO],
                (2, 5 | 7) => vec![&MemDsrDword0::INFO, &MemDsrDword1::INFO],
                (2, _) => vec![&MemRdDword0::INFO, &MemRdDword1::INFO, &MemRdDword2::INFO],
                _ => {
                    let first = by_family(&TEX_DWORD0_R600, &TexDword0R700::INFO);
                    vec![first, &TexDword1::INFO, &TexDword2::INFO]
                }
            }
        }
    }
}

/// Returns every field of the instruction `words`. `place` is the part of the program that contains the instruction.
/// The result lists the words in order, and the fields of each word from bit 0 upwards. Every bit belongs to exactly
/// one entry of the result.
pub fn explain(words: &[u32], place: Place, chip: Chip) -> Vec<Explained> {
    let formats = formats(words, place, chip);
    let mut all = Vec::new();
    for (word, &raw) in words.iter().enumerate() {
        let info = formats.get(word);
        let mut bit = 0;
        while bit < 32 {
            let field = info.and_then(|info| info.field_at(bit));
            let explained = match (info, field) {
                (Some(info), Some(field)) => Explained {
                    format: info.name,
                    word,
                    hi: field.hi,
                    lo: field.lo,
                    field: field.name,
                    value: field.get(raw),
                    text: text(field.name, field.get(raw), place, info.name)
                        .unwrap_or_else(|| field.show(field.get(raw))),
                    doc: field_says(field.name),
                },
                (info, _) => {
                    let free = |bit: &u8| info.is_none_or(|info| info.field_at(*bit).is_none());
                    let hi = (bit..32).take_while(free).last().unwrap_or(bit);
                    let value = (u64::from(raw) >> bit & ((1 << (hi - bit + 1)) - 1)) as u32;
                    let name = info.map_or("padding", |info| info.name);
                    let text =
                        if value == 0 { "zero".to_owned() } else { format!("{value:#x}, should be zero") };
                    Explained {
                        format: name,
                        word,
                        hi,
                        lo: bit,
                        field: "reserved",
                        value,
                        text,
                        doc: "No field has these bits.",
                    }
                }
            };
            bit = explained.hi + 1;
            all.push(explained);
        }
    }
    all
}

/// Returns the name of an opcode or the meaning of a selector. The word formats contain opcodes and selectors only as
/// numbers.
fn text(field: &str, value: u32, place: Place, format: &str) -> Option<String> {
    let name = match (field, place) {
        ("cf_inst", _) if format == CfAluDword0::INFO.name || format == CfAluDword1R700::INFO.name => {
            AluForm::from_bits(value, 4).map(AluForm::name)
        }
        ("cf_inst", _) => CfInst::from_bits(value, 7)
            .map(CfInst::name)
            .or_else(|| ExportInst::from_bits(value, 7).map(ExportInst::name)),
        ("alu_inst", Place::Alu) if format == AluDword1Op2R700::INFO.name => {
            Op2::from_bits(value, 11).map(Op2::name)
        }
        ("src0_chan" | "src1_chan" | "src2_chan" | "dst_chan", Place::Alu) => {
            ["X", "Y", "Z", "W"].get(value as usize).copied()
        }
        ("src0_sel" | "src1_sel" | "src2_sel", Place::Alu) => return Some(selector(value)),
        _ => return None,
    };
    name.map(|name| format!("{name} ({value:#x})"))
}

/// Returns the operand that a source selector names (r700.md 4.4).
fn selector(value: u32) -> String {
    match value {
        0..=127 => format!("R{value}"),
        128..=159 => format!("KC0[{}]", value - 128),
        160..=191 => format!("KC1[{}]", value - 160),
        192..=243 => format!("{value} (reserved)"),
        244 => "low half of 1.0 (double)".into(),
        245 => "high half of 1.0 (double)".into(),
        246 => "low half of 0.5 (double)".into(),
        247 => "high half of 0.5 (double)".into(),
        248 => "0".into(),
        249 => "1.0".into(),
        250 => "1 (integer)".into(),
        251 => "-1 (integer)".into(),
        252 => "0.5".into(),
        253 => "literal".into(),
        254 => "PV".into(),
        255 => "PS".into(),
        _ => format!("C[{}]", value - 256),
    }
}

/// Returns the purpose of a field.
#[rustfmt::skip]
pub fn field_says(name: &str) -> &'static str {
    match name {
        "addr" => "Address of the target instruction or clause, in 64-bit words.",
        "pop_count" => "Number of stack entries that are popped.",
        "cf_const" => "The loop constant or the boolean constant.",
        "cond" => "Which lanes pass.",
        "count" => "Number of instructions in the clause (slots of an ALU clause) minus one.",
        "count_3" => "The highest bit of COUNT.",
        "call_count" => "Amount that a call adds to the depth of calls.",
        "end_of_program" => "Whether the program ends after this instruction.",
        "valid_pixel_mode" => "Whether only valid pixels execute.",
        "whole_quad_mode" => "Whether all lanes of a quad execute if one of them is active.",
        "cf_inst" => "The operation.",
        "barrier" => "Whether all clauses before must have ended.",
        "kcache_bank0" => "The constant buffer of window KC0.",
        "kcache_bank1" => "The constant buffer of window KC1.",
        "kcache_mode0" => "How many constants window KC0 locks.",
        "kcache_mode1" => "How many constants window KC1 locks.",
        "kcache_addr0" => "Where window KC0 begins, in lines of 16 constants.",
        "kcache_addr1" => "Where window KC1 begins, in lines of 16 constants.",
        "uses_waterfall" => "Whether constants are indexed by a value that differs between lanes.",
        "alt_const" => "Whether constants and resources are those of the other stage.",
        "array_base" => "The target, or the first element.",
        "array_size" => "The highest element that may be accessed, relative to ARRAY_BASE.",
        "type_code" => "The kind of the target, or of the access.",
        "rw_gpr" => "The first register.",
        "rw_rel" => "Whether aL is added to the register.",
        "index_gpr" => "The register whose x is added to the address.",
        "elem_size" => "Dwords per element minus one.",
        "comp_mask" => "The components that are written.",
        "elem_loop" => "Leave 0.",
        "burst_count" => "Number of registers minus one.",
        "sel_x" | "sel_y" | "sel_z" | "sel_w" => "Value for this component of the target.",
        "src0_sel" | "src1_sel" | "src2_sel" => "Where the operand comes from.",
        "src0_rel" | "src1_rel" | "src2_rel" => "Whether the index is added to the operand's number.",
        "src0_chan" | "src1_chan" | "src2_chan" => "Component of the operand, or dword of a literal.",
        "src0_neg" | "src1_neg" | "src2_neg" => "Whether the operand's sign is changed, after SRC_ABS.",
        "src0_abs" | "src1_abs" => "Whether the operand's absolute value is taken.",
        "index_mode" => "The index for operands with REL.",
        "pred_sel" => "The predicate that a lane must have to execute this.",
        "last" => "Whether the group ends here.",
        "update_execute_mask" => "Whether the predicate decides which lanes stay active.",
        "update_pred" => "Whether the predicate of the lanes is set.",
        "write_mask" => "Whether the register is written.",
        "fog_merge" => "Whether the export merges a fog factor. Leave 0.",
        "omod" => "A factor for float results.",
        "alu_inst" => "The operation.",
        "bank_swizzle" => "The order in which operands are fetched; it changes no result.",
        "dst_gpr" => "The register that is written.",
        "dst_rel" => "Whether an index is added to the register that is written.",
        "dst_chan" => "The component that is written; it also decides the slot.",
        "clamp" => "Whether a float result is limited to 0.0 to 1.0.",
        "value" => "The dword.",
        "vtx_inst" | "tex_inst" | "mem_op" => "The operation.",
        "mem_inst" => "2 for memory instructions.",
        "fetch_type" => "Whether the index counts vertices or instances.",
        "fetch_whole_quad" => "Whether invalid lanes of a quad fetch as well.",
        "buffer_id" => "The buffer's resource.",
        "resource_id" => "The texture's resource.",
        "sampler_id" => "The sampler.",
        "semantic_id" => "The row of the semantic table that names the register.",
        "src_gpr" => "The register with the index, the coordinates or the data.",
        "src_rel" => "Whether aL is added to the source register.",
        "src_sel_x" | "src_sel_y" | "src_sel_z" | "src_sel_w" => "The component of the source register that is taken.",
        "mega_fetch_count" => "Bytes of a mega fetch minus one.",
        "mega_fetch" => "Whether this is a mega fetch, which later mini fetches share.",
        "dst_sel_x" | "dst_sel_y" | "dst_sel_z" | "dst_sel_w" => "Value for this component of the register.",
        "use_const_fields" => "Whether the resource states the format, not this word.",
        "data_format" => "The format of an element.",
        "num_format_all" => "How integers of the element become numbers.",
        "format_comp_all" => "Whether the components are signed.",
        "srf_mode_all" => "How signed normalised numbers are read.",
        "offset" => "Bytes that are added to the address.",
        "endian_swap" => "The order of bytes.",
        "const_buf_no_stride" => "Whether the stride counts as 0.",
        "bc_frac_mode" => "How fractions of compressed blocks are handled. Leave 0.",
        "lod_bias" => "Bias of the level of detail, in eighths.",
        "coord_type_x" | "coord_type_y" | "coord_type_z" | "coord_type_w" => "Whether the coordinate counts from 0 to 1 or in texels.",
        "offset_x" | "offset_y" | "offset_z" => "Offset of the coordinate, in half texels.",
        "uncached" => "Whether the cache is bypassed, so that a program reads its own writes.",
        "indexed" => "Whether the source register is added to the address.",
        "lds_req" | "coalesced_read" => "A bit of later chips. Leave 0.",
        "dst_index" => "Offset of the write in the thread's area, in dwords.",
        "dst_stride" => "Dwords of a thread's area.",
        "simd_wave_rel" => "Whether threads are counted from the start of the thread group.",
        "mux_cntl" => "How the dwords read are distributed.",
        "broadcast" => "Whether one address serves all lanes.",
        "waterfall" => "Whether one lane of four reads at a time.",
        _ => "",
    }
}
