//! Answers requests for threads, frames, scopes, registers, memory, the listing and the disassembly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reconverge_simt::Lane;
use serde_json::{Value, json};

use super::{Adapter, LISTING, Refused, Shown, byte_address, spelled, unit_bytes};
use crate::debugger::formula::Formula;
use crate::debugger::table::{self, Notation};
use crate::debugger::{CALLS, Change, Debugger, command, names, shown_in};
use crate::listing::Line;
use crate::session::GroupState;

/// Maximum number of threads in an answer.
const MOST_THREADS: usize = 256;

/// Returns up to `count` elements of a list, starting at index `first`. If `first` is missing, the index is 0. If
/// `count` is missing or zero, returns all elements from `first` on.
fn part(list: Vec<Value>, first: &Value, count: &Value) -> Vec<Value> {
    let first = first.as_u64().unwrap_or(0) as usize;
    let count = count.as_u64().filter(|count| *count > 0).map_or(list.len(), |count| count as usize);
    list.into_iter().skip(first).take(count).collect()
}

impl Adapter {
    pub(super) fn threads(&mut self) -> Result<Value, Refused> {
        let debugger = self.debugger()?;
        let stepping = debugger.stepping();
        // After the launch has ended, the answer lists all groups, because users can inspect the last state of each
        // group.
        let ended = stepping.current().is_none();
        let listed = |group: &usize| {
            ended || stepping.state(*group) == GroupState::Running || *group == debugger.group()
        };
        let thread = |group: usize| {
            let lanes = stepping.lanes(group);
            let name = format!("group {group} (lanes {} to {})", lanes.start, lanes.end.saturating_sub(1));
            json!({ "id": group + 1, "name": name })
        };
        let threads = (0..stepping.groups()).filter(listed).take(MOST_THREADS).map(thread);
        Ok(json!({ "threads": threads.collect::<Vec<Value>>() }))
    }

    pub(super) fn stack_trace(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let group = self.group_of(&arguments["threadId"])?;
        let debugger = self.debugger()?;
        let unit = unit_bytes(debugger);
        let mut places = Vec::new();
        if let Some(pc) = debugger.place_of(group) {
            let ended = debugger.stepping().state(group) == GroupState::Ended;
            places.push((if ended { "ended after " } else { "" }, pc));
        }
        for row in debugger.stepping().stack(group) {
            if let Some(pc) = row.pc.filter(|_| CALLS.contains(&row.kind)) {
                places.push(("called from ", pc));
            }
        }
        // A frame number has eight bits for the depth of the frame. The adapter therefore shows at most 255 frames of a
        // group.
        places.truncate(255);
        let total = places.len();
        let frame = |(depth, (what, pc)): (usize, (&str, u32))| {
            let text = debugger.instruction(pc);
            let (source, line) = source_of(debugger, pc);
            json!({
                "id": group * 256 + depth + 1,
                "name": format!("{what}{}  {text}", debugger.named(pc)),
                "line": line,
                "column": 1,
                "source": source,
                "instructionPointerReference": spelled(i64::from(pc) * unit),
            })
        };
        let frames: Vec<Value> = places.into_iter().enumerate().map(frame).collect();
        Ok(
            json!({ "totalFrames": total, "stackFrames": part(frames, &arguments["startFrame"], &arguments["levels"]) }),
        )
    }

    fn reference(&mut self, shown: Shown) -> usize {
        let known = self.shown.iter().position(|known| *known == shown);
        known.unwrap_or_else(|| {
            self.shown.push(shown);
            self.shown.len() - 1
        }) + 1
    }

    pub(super) fn scopes(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let group = self.group_of_frame(arguments)?;
        let debugger = self.debugger()?;
        debugger.choose_group(group);
        let chosen = debugger.lane();
        let width = debugger.width();
        let why: Vec<String> = (0..width).map(|lane| debugger.why_short(Lane(lane as u8))).collect();
        let mut scopes = Vec::new();
        // The selected lane is the first scope. The scopes that cover all lanes come after this scope. The scopes of
        // the remaining lanes come last.
        let order = std::iter::once(chosen.index()).chain((0..width).filter(|lane| *lane != chosen.index()));
        let mut lanes = Vec::new();
        for lane in order {
            let reference = self.reference(Shown::Lane(group, Lane(lane as u8)));
            lanes.push(json!({
                "name": format!("lane {lane} ({})", why[lane]), "variablesReference": reference,
                "expensive": lane != chosen.index(), "presentationHint": "registers",
            }));
        }
        scopes.push(lanes.remove(0));
        for (name, shown) in [
            ("all lanes", Shown::Lanes(group)),
            ("lanes by registers", Shown::Table(group)),
            ("masks", Shown::Masks(group)),
            ("stack", Shown::Stack(group)),
            ("memory", Shown::Memory(group)),
        ] {
            let reference = self.reference(shown);
            scopes.push(json!({ "name": name, "variablesReference": reference, "expensive": false }));
        }
        scopes.extend(lanes);
        Ok(json!({ "scopes": scopes }))
    }

    pub(super) fn variables(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let shown = self.shown_by(arguments)?;
        let plain =
            |name: String, value: String| json!({ "name": name, "value": value, "variablesReference": 0 });
        let mut variables = Vec::new();
        match shown {
            Shown::Lane(group, lane) => {
                for (name, register) in self.debugger()?.register_names() {
                    let values = self.debugger()?.stepping().read(group, register);
                    if let Some(value) = values.and_then(|values| values.get(lane.index()).copied()) {
                        let mut variable = plain(name.clone(), shown_in(register, value));
                        variable["evaluateName"] = json!(format!("{name}@{}", lane.0));
                        variables.push(variable);
                    }
                }
            }
            Shown::Lanes(group) => {
                for (name, register) in self.debugger()?.register_names() {
                    if self.debugger()?.stepping().read(group, register).is_none() {
                        continue;
                    }
                    let width = self.debugger()?.width();
                    let reference = self.reference(Shown::Register(group, register));
                    variables.push(json!({
                        "name": name, "value": format!("{width} lanes"), "variablesReference": reference,
                        "indexedVariables": width,
                    }));
                }
            }
            Shown::Register(group, register) => {
                let values = self.debugger()?.stepping().read(group, register).unwrap_or_default();
                for (lane, value) in values.iter().enumerate() {
                    variables.push(plain(format!("[{lane}]"), shown_in(register, *value)));
                }
            }
            Shown::Table(group) => {
                let debugger = self.debugger()?;
                debugger.choose_group(group);
                let rows = table::rows(debugger, group, false);
                let lines: Vec<(usize, String)> = (0..debugger.stepping().lanes(group).len())
                    .map(|lane| {
                        (
                            lane,
                            format!(
                                "{}: {}",
                                debugger.why_short(Lane(lane as u8)),
                                cells(&rows, Notation::of(debugger.isa()), lane)
                            ),
                        )
                    })
                    .collect();
                for (lane, value) in lines {
                    let reference = self.reference(Shown::Lane(group, Lane(lane as u8)));
                    let name = format!("[{lane}]");
                    variables.push(json!({ "name": name, "value": value, "variablesReference": reference }));
                }
            }
            Shown::Masks(group) => {
                let debugger = self.debugger()?;
                let lanes = (0..debugger.width()).map(|lane| Lane(lane as u8));
                let mut by_why: Vec<(String, u64)> = Vec::new();
                debugger.choose_group(group);
                for lane in lanes {
                    let why = debugger.why(lane);
                    match by_why.iter_mut().find(|(known, _)| *known == why) {
                        Some((_, mask)) => *mask |= 1 << lane.0,
                        None => by_why.push((why, 1 << lane.0)),
                    }
                }
                variables.extend(by_why.into_iter().map(|(why, mask)| plain(why, format!("{mask:#x}"))));
            }
            Shown::Stack(group) => {
                let debugger = self.debugger()?;
                for (depth, row) in debugger.stepping().stack(group).iter().enumerate() {
                    variables.push(plain(format!("[{depth}]"), command::parts(debugger, row).join(" ")));
                }
            }
            Shown::Memory(group) => {
                let lane = self.debugger()?.lane();
                for space in self.debugger()?.stepping().spaces() {
                    let reference = format!("{}:{group}:{}", space.name, lane.0);
                    self.memory.insert(reference.clone(), (space.name, group, lane));
                    variables.push(json!({
                        "name": space.name, "value": "bytes", "variablesReference": 0, "memoryReference": reference,
                    }));
                }
            }
        }
        Ok(json!({ "variables": part(variables, &arguments["start"], &arguments["count"]) }))
    }

    /// Returns the text of the listing, one line per instruction.
    pub(super) fn source(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let asked = arguments["source"]["sourceReference"].as_u64().or(arguments["sourceReference"].as_u64());
        if asked != Some(LISTING) {
            return Err(format!(
                "unknown sourceReference; the only source is the listing, with sourceReference {LISTING}"
            ));
        }
        let debugger = self.debugger()?;
        let lines = debugger.lines().iter().map(|line| {
            let label = line.label.as_ref().map(|label| format!("{label}: ")).unwrap_or_default();
            let code = line.code();
            let (address, indent) = (debugger.spelled(line.address.unwrap_or(0)), 2 * line.depth);
            format!("{address:>8}  {:indent$}{label}{code}\n", "")
        });
        Ok(json!({ "content": lines.collect::<String>(), "mimeType": "text/x-asm" }))
    }

    pub(super) fn disassemble(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let reference = arguments["memoryReference"].as_str().unwrap_or("");
        let at = byte_address(reference).ok_or_else(|| format!("`{reference}` is not an address"))?;
        let at = at.saturating_add(arguments["offset"].as_i64().unwrap_or(0));
        // The maximum of an instruction offset. The maximum is larger than the length of any program, but sums with the
        // maximum do not overflow.
        const FAR: i64 = 1 << 40;
        let first = arguments["instructionOffset"].as_i64().unwrap_or(0).clamp(-FAR, FAR);
        let count = arguments["instructionCount"].as_i64().unwrap_or(0).clamp(0, 100_000);
        let debugger = self.debugger()?;
        let unit = unit_bytes(debugger);
        let lines = debugger.lines();
        let byte = |line: &Line| i64::from(line.address.unwrap_or(0)) * unit;
        // Index of the instruction that contains the address.
        let place = lines.partition_point(|line| byte(line) <= at) as i64 - 1;
        let end = lines.last().map_or(0, |line| byte(line) + 4 * line.words.len() as i64);
        let instructions = (place + first..place + first + count).map(|number| {
            match usize::try_from(number).ok().and_then(|number| lines.get(number)) {
                Some(line) => {
                    let bytes = line.words.iter().flat_map(|word| word.to_le_bytes());
                    let bytes: Vec<String> = bytes.map(|byte| format!("{byte:02x}")).collect();
                    let mut instruction = json!({
                        "address": spelled(byte(line)),
                        "instructionBytes": bytes.join(" "),
                        "instruction": debugger.instruction(line.address.unwrap_or(0)),
                    });
                    if let Some(label) = &line.label {
                        instruction["symbol"] = json!(label);
                    }
                    if debugger.source().is_some() {
                        let (source, number) = source_of(debugger, line.address.unwrap_or(0));
                        instruction["location"] = source;
                        instruction["line"] = json!(number);
                    }
                    instruction
                }
                // Clients require a distinct address for each entry, even for entries outside the program. Entries
                // before the program get negative addresses.
                None => {
                    let address = if number < 0 { 8 * number } else { end + 8 * (number - lines.len() as i64) };
                    json!({ "address": spelled(address), "instruction": "outside the program", "presentationHint": "invalid" })
                }
            }
        });
        Ok(json!({ "instructions": instructions.collect::<Vec<Value>>() }))
    }

    /// Returns the space, group and lane of the memory to which a request refers.
    fn memory_of(&self, arguments: &Value) -> Result<(&'static str, usize, Lane), Refused> {
        let reference = arguments["memoryReference"].as_str().unwrap_or("");
        let known = self.memory.get(reference).copied();
        known.ok_or_else(|| format!("`{reference}` is not memory that the `memory` scope shows now"))
    }

    pub(super) fn read_memory(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let offset = arguments["offset"].as_i64().unwrap_or(0);
        let count = arguments["count"].as_u64().unwrap_or(0).min(1 << 24) as usize;
        let (space, group, lane) = self.memory_of(arguments)?;
        let from = u32::try_from(offset.max(0))
            .map_err(|_| format!("offset: expected less than 4 GiB, found {offset}"))?;
        let before = usize::try_from(offset.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let wanted = count.saturating_sub(before);
        let bytes = match wanted {
            0 => Vec::new(),
            wanted => self.debugger()?.stepping().memory(space, group, lane, from, wanted),
        };
        Ok(json!({
            "address": spelled(from.into()),
            "unreadableBytes": wanted - bytes.len().min(wanted),
            "data": STANDARD.encode(bytes),
        }))
    }

    /// Changes a register in the scope of a lane or in the scope `all lanes`.
    pub(super) fn set_variable(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let name = arguments["name"].as_str().unwrap_or("").to_owned();
        let text = arguments["value"].as_str().unwrap_or("");
        let word = text.split_whitespace().next().unwrap_or("");
        let value = names::word_of(word)?;
        let (group, register, lane) = match self.shown_by(arguments)? {
            Shown::Lane(group, lane) => (group, self.debugger()?.register(&name)?, lane),
            Shown::Register(group, register) => {
                let lane =
                    name.trim_matches(['[', ']']).parse().map_err(|_| format!("`{name}` is not a lane"))?;
                (group, register, Lane(lane))
            }
            _ => return Err(format!("`{name}` cannot be changed; only registers can")),
        };
        if !self.debugger()?.change(Change::Register { group, register, lane, value }) {
            return Err(format!("cannot set {name} of lane {} to {value:#x} here", lane.0));
        }
        Ok(json!({ "value": shown_in(register, value) }))
    }

    /// Evaluates the expression of a watch, a hover or the console. The expression is a formula or the word `lanes`.
    /// The word `lanes` stands for the table of lanes.
    pub(super) fn value_of(&mut self, expression: &str) -> Result<Value, Refused> {
        let debugger = self.debugger()?;
        let (group, lane) = (debugger.group(), debugger.lane());
        if expression == "lanes" {
            let count = debugger.stepping().lanes(group).len();
            let active = debugger.issue().map_or("none".to_owned(), |issue| issue.mask.to_string());
            let reference = self.reference(Shown::Table(group));
            return Ok(json!({
                "result": format!("{count} lanes, active: {active}"), "variablesReference": reference,
                "indexedVariables": count,
            }));
        }
        let formula = Formula::parse(debugger, expression)?;
        let here = debugger.here(group);
        let value = formula.value(&here, lane)?;
        let text = formula.shown(value);
        let text = if formula.is_of_a_lane() { format!("{text}  (lane {})", lane.0) } else { text };
        let place = formula.place(&here, lane);
        let mut answer = json!({ "result": text, "variablesReference": 0 });
        // A register without a lane expands to the values of the register in all lanes.
        if let Some((register, None)) = formula.register() {
            let count = debugger.stepping().lanes(group).len();
            answer["variablesReference"] = json!(self.reference(Shown::Register(group, register)));
            answer["indexedVariables"] = json!(count);
        }
        if let Some((space, lane, _)) = place {
            let reference = format!("{space}:{group}:{}", lane.0);
            self.memory.insert(reference.clone(), (space, group, lane));
            answer["memoryReference"] = json!(reference);
        }
        Ok(answer)
    }

    /// Changes the register or the word of memory that an expression names.
    pub(super) fn set_expression(&mut self, arguments: &Value) -> Result<Value, Refused> {
        if !arguments["frameId"].is_null() {
            let group = self.group_of_frame(arguments)?;
            self.debugger()?.choose_group(group);
        }
        let expression = arguments["expression"].as_str().unwrap_or("");
        let text = arguments["value"].as_str().unwrap_or("");
        let debugger = self.debugger()?;
        let (group, lane) = (debugger.group(), debugger.lane());
        let (formula, wanted) = (Formula::parse(debugger, expression)?, Formula::parse(debugger, text)?);
        let here = debugger.here(group);
        let mut value = wanted.value(&here, lane)?.bits();
        let change = match (formula.register(), formula.place(&here, lane)) {
            (Some((register, of)), _) => {
                // A single number has the same meaning as in the command `set`. A number without a decimal point is an
                // integer.
                value = names::bits(text.trim()).unwrap_or(value);
                Change::Register { group, register, lane: of.unwrap_or(lane), value }
            }
            (None, Some((space, lane, address))) => {
                Change::Memory { space, group, lane, address, bytes: value.to_le_bytes().to_vec() }
            }
            (None, None) => {
                return Err(format!("`{expression}` cannot be changed; only registers and memory can"));
            }
        };
        if !debugger.change(change) {
            return Err(format!("cannot set `{expression}` to {value:#x} here"));
        }
        self.value_of(expression).map(|answer| json!({ "value": answer["result"] }))
    }

    /// Returns the texts that complete a line of the console.
    pub(super) fn completions(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let text = arguments["text"].as_str().unwrap_or("");
        let column = arguments["column"].as_u64().unwrap_or(1).max(1) as usize - 1;
        let line: String = text.chars().take(column).collect();
        let names = command::completions(self.debugger()?, &line);
        let word = command::last_word(&line).chars().count();
        let start = line.chars().count() - word;
        let target = |name: String| json!({ "label": name, "start": start, "length": word });
        Ok(json!({ "targets": names.into_iter().map(target).collect::<Vec<Value>>() }))
    }

    pub(super) fn write_memory(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let (space, group, lane) = self.memory_of(arguments)?;
        let offset = arguments["offset"].as_i64().unwrap_or(0);
        let address =
            u32::try_from(offset).map_err(|_| format!("offset: expected 0 to 0xffffffff, found {offset}"))?;
        let data = STANDARD.decode(arguments["data"].as_str().unwrap_or(""));
        let bytes = data.map_err(|error| format!("`data` is not base64: {error}"))?;
        let count = bytes.len();
        if !self.debugger()?.change(Change::Memory { space, group, lane, address, bytes }) {
            return Err(format!("cannot write {count} bytes to {space} at {address:#x}"));
        }
        Ok(json!({ "offset": 0, "bytesWritten": count }))
    }

    /// Returns the lanes of the frame's group as targets of the request `stepIn`. A step into a lane continues until
    /// this lane is active.
    pub(super) fn step_in_targets(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let group = self.group_of_frame(arguments)?;
        let debugger = self.debugger()?;
        debugger.choose_group(group);
        let targets = (0..debugger.width()).map(|lane| {
            json!({ "id": lane + 1, "label": format!("lane {lane} ({})", debugger.why_short(Lane(lane as u8))) })
        });
        Ok(json!({ "targets": targets.collect::<Vec<Value>>() }))
    }

    /// Returns the group of the frame that a request names.
    pub(super) fn group_of_frame(&mut self, arguments: &Value) -> Result<usize, Refused> {
        let frame = &arguments["frameId"];
        let group = frame.as_u64().and_then(|frame| Some((frame as usize).checked_sub(1)? / 256));
        let groups = self.debugger()?.stepping().groups();
        group.filter(|group| *group < groups).ok_or_else(|| format!("unknown frame {frame}"))
    }

    /// Returns the object to which a request's `variablesReference` refers.
    pub(super) fn shown_by(&self, arguments: &Value) -> Result<Shown, Refused> {
        let number = &arguments["variablesReference"];
        let place = number.as_u64().and_then(|number| (number as usize).checked_sub(1));
        let shown = place.and_then(|place| self.shown.get(place)).copied();
        shown.ok_or_else(|| {
            format!("unknown variablesReference {number}: references end when the launch continues")
        })
    }
}

/// Returns the source and line of an instruction, in the user's source or in the listing.
fn source_of(debugger: &Debugger, pc: u32) -> (Value, usize) {
    if let Some(source) = debugger.source()
        && let Some(line) = source.line_of(pc)
    {
        let path = source.path().canonicalize().unwrap_or_else(|_| source.path().to_owned());
        return (json!({ "name": source.name(), "path": path }), line);
    }
    let line = debugger.lines().iter().position(|line| line.address == Some(pc));
    (json!({ "name": "listing", "sourceReference": LISTING }), line.map_or(0, |line| line + 1))
}

/// Maximum number of registers in a row of the table of lanes.
const MOST_CELLS: usize = 12;

/// Returns the registers of a lane as one line of text.
fn cells(rows: &[table::TableRow], notation: Notation, lane: usize) -> String {
    let cell = |row: &table::TableRow| {
        let value = row.values.get(lane).copied().unwrap_or(0);
        format!("{} {}", row.name, notation.written(row.register, value))
    };
    let mut cells: Vec<String> = rows.iter().take(MOST_CELLS).map(cell).collect();
    if rows.len() > MOST_CELLS {
        cells.push("…".to_owned());
    }
    cells.join("  ")
}
