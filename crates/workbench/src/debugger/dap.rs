//! The Debug Adapter Protocol over a [`Debugger`]: a message in, messages out. Reading and writing them is the caller's.
//!
//! Groups are threads; a lane is a scope of a frame. The program's listing is a source (`sourceReference` 1), for editors
//! without a disassembly view. Addresses are byte addresses in the program, spelled `0x…` everywhere alike, because clients
//! compare them as text.
//!
//! Source: Debug Adapter Protocol 1.68, <https://microsoft.github.io/debug-adapter-protocol/specification>.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reconverge_simt::Lane;
use serde_json::{Value, json};

use super::command::{self, BUDGET, shown};
use super::stop::On;
use super::{Debugger, Halt};
use crate::session::{GroupState, Register};

/// The listing as a source.
const LISTING: u64 = 1;

/// Most threads that are listed: the groups that run come first.
const MOST_THREADS: usize = 256;

/// Opens what a launch request names.
pub type Open<'a> = dyn FnMut(&Value) -> Result<Debugger, String> + 'a;

/// What a `variablesReference` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The registers of a lane.
    Lane(usize, Lane),
    /// Every register, by lane.
    Lanes(usize),
    /// One register by lane.
    Register(usize, Register),
    /// Which lanes do what.
    Masks(usize),
    /// The machine's own stack.
    Stack(usize),
    /// The memory spaces.
    Memory(usize),
}

/// An adapter: the state of one connection.
#[derive(Default)]
pub struct Adapter {
    debugger: Option<Debugger>,
    /// Numbers of the messages that go out.
    sequence: u64,
    shown: Vec<Shown>,
    /// Stops of the debugger that the listing's lines, instructions and data have, so that a new list replaces them.
    of_source: Vec<usize>,
    of_instructions: Vec<usize>,
    of_data: Vec<usize>,
    of_filters: Vec<usize>,
    /// Memory behind references.
    memory: HashMap<String, (&'static str, usize, Lane)>,
    initialized: bool,
    ended: bool,
}

/// Bytes of one unit of address.
fn unit_bytes(debugger: &Debugger) -> i64 {
    match debugger.unit {
        "bytes" => 1,
        "64-bit words" => 8,
        // An R500 instruction has six words.
        _ => 24,
    }
}

fn spelled(byte: i64) -> String {
    format!("{:#x}", byte as u64)
}

/// A reason for which a request is refused.
type Refused = String;

impl Adapter {
    /// Takes a message from the client; gives the messages for it: the response first, then events.
    pub fn handle(&mut self, request: &Value, open: &mut Open<'_>) -> Vec<Value> {
        let command = request["command"].as_str().unwrap_or("");
        if request["type"] != "request" || command.is_empty() {
            return vec![self.response(request, Err("this is no request".to_owned()))];
        }
        let arguments = &request["arguments"];
        let mut events = Vec::new();
        let result = self.dispatch(command, arguments, open, &mut events);
        let mut messages = vec![self.response(request, result)];
        for (name, body) in events {
            self.sequence += 1;
            messages.push(json!({ "seq": self.sequence, "type": "event", "event": name, "body": body }));
        }
        messages
    }

    /// Whether the client has ended the connection.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    fn response(&mut self, request: &Value, result: Result<Value, Refused>) -> Value {
        self.sequence += 1;
        let mut response = json!({
            "seq": self.sequence,
            "type": "response",
            "request_seq": request["seq"].as_u64().unwrap_or(0),
            "command": request["command"].as_str().unwrap_or(""),
            "success": result.is_ok(),
        });
        match result {
            Ok(Value::Null) => {}
            Ok(body) => response["body"] = body,
            Err(why) => {
                response["message"] = json!(why);
                response["body"] = json!({ "error": { "id": 1, "format": why, "showUser": true } });
            }
        }
        response
    }

    fn debugger(&mut self) -> Result<&mut Debugger, Refused> {
        self.debugger.as_mut().ok_or_else(|| "nothing is launched: `launch` comes first".to_owned())
    }

    fn dispatch(
        &mut self,
        command: &str,
        arguments: &Value,
        open: &mut Open<'_>,
        events: &mut Vec<(&'static str, Value)>,
    ) -> Result<Value, Refused> {
        if !self.initialized && command != "initialize" {
            return Err(format!("`{command}` comes before `initialize`"));
        }
        match command {
            "initialize" => {
                self.initialized = true;
                Ok(capabilities())
            }
            "launch" => {
                let debugger = open(arguments)?;
                self.debugger = Some(debugger);
                events.push(("initialized", json!({})));
                Ok(Value::Null)
            }
            "attach" => Err("there is nothing to attach to: `launch` a program".to_owned()),
            "configurationDone" => {
                let thread = self.debugger()?.group() + 1;
                events.push((
                    "stopped",
                    json!({
                        "reason": "entry", "threadId": thread, "allThreadsStopped": true,
                    }),
                ));
                self.mask_event(events)?;
                Ok(Value::Null)
            }
            "disconnect" | "terminate" => {
                self.ended = true;
                events.push(("terminated", json!({})));
                Ok(Value::Null)
            }
            "threads" => self.threads(),
            "stackTrace" => self.stack_trace(arguments),
            "scopes" => self.scopes(arguments),
            "variables" => self.variables(arguments),
            "source" => Ok(json!({ "content": self.source()?, "mimeType": "text/x-asm" })),
            "disassemble" => self.disassemble(arguments),
            "readMemory" => self.read_memory(arguments),
            "setBreakpoints" => self.set_breakpoints(arguments),
            "setInstructionBreakpoints" => self.set_instruction_breakpoints(arguments),
            "dataBreakpointInfo" => self.data_breakpoint_info(arguments),
            "setDataBreakpoints" => self.set_data_breakpoints(arguments),
            "setExceptionBreakpoints" => self.set_filters(arguments),
            "exceptionInfo" => {
                let trap = self.debugger()?.trap().unwrap_or("no trap").to_owned();
                Ok(json!({ "exceptionId": "trap", "description": trap, "breakMode": "always" }))
            }
            "evaluate" => self.evaluate(arguments, events),
            "continue" => {
                self.resume(arguments, events, "breakpoint", |debugger| debugger.run(BUDGET, &mut |_| false))
            }
            "next" => self.resume(arguments, events, "step", |debugger| debugger.over(BUDGET)),
            "stepIn" => self.resume(arguments, events, "step", |debugger| debugger.step(1, BUDGET)),
            "stepOut" => self.resume(arguments, events, "step", |debugger| debugger.out(BUDGET)),
            "stepBack" => self.resume(arguments, events, "step", |debugger| debugger.back(1)),
            "reverseContinue" => {
                self.resume(arguments, events, "breakpoint", |debugger| debugger.back_until(&mut |_| false))
            }
            "pause" => Ok(Value::Null),
            other => Err(format!("`{other}` is not supported")),
        }
    }

    // ---- Moving

    fn resume(
        &mut self,
        arguments: &Value,
        events: &mut Vec<(&'static str, Value)>,
        reason: &str,
        go: impl FnOnce(&mut Debugger) -> Halt,
    ) -> Result<Value, Refused> {
        self.shown.clear();
        self.memory.clear();
        let thread = arguments["threadId"].as_u64();
        let debugger = self.debugger()?;
        if let Some(thread) = thread
            && !debugger.choose_group((thread as usize).wrapping_sub(1))
        {
            return Err(format!("there is no thread {thread}"));
        }
        let halt = go(debugger);
        self.report(&halt, reason, events)?;
        Ok(json!({ "allThreadsContinued": true }))
    }

    fn report(
        &mut self,
        halt: &Halt,
        reason: &str,
        events: &mut Vec<(&'static str, Value)>,
    ) -> Result<(), Refused> {
        let data: Vec<usize> = self.of_data.clone();
        let instructions: Vec<usize> = self.of_instructions.clone();
        let debugger = self.debugger()?;
        let thread = debugger.group() + 1;
        let stopped = |reason: &str, text: Option<String>| {
            let mut body = json!({ "reason": reason, "threadId": thread, "allThreadsStopped": true });
            if let Some(text) = text {
                body["description"] = json!(text);
                body["text"] = json!(text);
            }
            ("stopped", body)
        };
        match halt {
            Halt::There => events.push(stopped("step", None)),
            Halt::Budget => {
                events.push(stopped("pause", Some(format!("{BUDGET} instructions without a stop"))))
            }
            Halt::Start => events.push(stopped("entry", Some("the start of the launch".to_owned()))),
            Halt::Stop(why) => {
                let reason = match why.stop {
                    stop if data.contains(&stop) => "data breakpoint",
                    stop if instructions.contains(&stop) => "instruction breakpoint",
                    _ => reason,
                };
                let reason = if reason == "step" { "breakpoint" } else { reason };
                let mut event = stopped(reason, Some(why.to_string()));
                event.1["hitBreakpointIds"] = json!([why.stop]);
                events.push(event);
            }
            Halt::Trap(message) => events.push(stopped("exception", Some(message.clone()))),
            Halt::End => {
                let group_ended = debugger.stepping().current().is_some();
                if group_ended {
                    debugger.follow_current();
                    let thread = debugger.group() + 1;
                    events.push((
                        "stopped",
                        json!({
                            "reason": "step", "threadId": thread, "allThreadsStopped": true,
                            "description": "the group has ended",
                        }),
                    ));
                } else {
                    events.push(("exited", json!({ "exitCode": 0 })));
                    events.push(("terminated", json!({})));
                    return Ok(());
                }
            }
        }
        self.mask_event(events)
    }

    /// What each lane does, for pages that follow: not in the protocol, which lets adapters have events of their own.
    fn mask_event(&mut self, events: &mut Vec<(&'static str, Value)>) -> Result<(), Refused> {
        let debugger = self.debugger()?;
        let mask = debugger.issue().map_or(0, |issue| issue.mask.0);
        let lanes: Vec<String> = (0..debugger.width()).map(|lane| debugger.why(Lane(lane as u8))).collect();
        let body = json!({
            "group": debugger.group(), "mask": format!("{mask:#x}"), "lanes": lanes, "position": debugger.position(),
        });
        events.push(("reconvergeLanes", body));
        Ok(())
    }

    // ---- Looking

    fn threads(&mut self) -> Result<Value, Refused> {
        let debugger = self.debugger()?;
        let stepping = debugger.stepping();
        let mut threads = Vec::new();
        for group in 0..stepping.groups() {
            if threads.len() == MOST_THREADS {
                break;
            }
            if stepping.state(group) == GroupState::Running || group == debugger.group() {
                let lanes = stepping.lanes(group);
                let name =
                    format!("group {group} (lanes {} to {})", lanes.start, lanes.end.saturating_sub(1));
                threads.push(json!({ "id": group + 1, "name": name }));
            }
        }
        Ok(json!({ "threads": threads }))
    }

    fn stack_trace(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let group = self.group_of(&arguments["threadId"])?;
        let debugger = self.debugger()?;
        let unit = unit_bytes(debugger);
        let mut places = Vec::new();
        if let Some(issue) = debugger.stepping().issue(group) {
            places.push(("".to_owned(), issue.pc));
        }
        for row in debugger.stepping().stack(group) {
            const CALLS: [&str; 4] = ["return address", "CALL", "CALLLIM", "RETURN"];
            if let Some(pc) = row.pc.filter(|_| CALLS.contains(&row.kind)) {
                places.push(("called from ".to_owned(), pc));
            }
        }
        let frames: Vec<Value> = places
            .iter()
            .enumerate()
            .map(|(depth, (what, pc))| {
                let line = debugger.lines().iter().position(|line| line.address == Some(*pc));
                let text = debugger.line(*pc).map_or("", |line| line.text.as_str());
                json!({
                    "id": group * 256 + depth + 1,
                    "name": format!("{what}{}  {}", debugger.spelled(*pc), text.split_whitespace().collect::<Vec<_>>().join(" ")),
                    "line": line.map_or(0, |line| line + 1),
                    "column": 1,
                    "source": { "name": "listing", "sourceReference": LISTING },
                    "instructionPointerReference": spelled(i64::from(*pc) * unit),
                })
            })
            .collect();
        Ok(json!({ "totalFrames": frames.len(), "stackFrames": frames }))
    }

    fn group_of(&mut self, thread: &Value) -> Result<usize, Refused> {
        let group = thread.as_u64().and_then(|thread| (thread as usize).checked_sub(1));
        let groups = self.debugger()?.stepping().groups();
        group.filter(|group| *group < groups).ok_or_else(|| format!("there is no thread {thread}"))
    }

    fn reference(&mut self, shown: Shown) -> usize {
        let known = self.shown.iter().position(|known| *known == shown);
        known.unwrap_or_else(|| {
            self.shown.push(shown);
            self.shown.len() - 1
        }) + 1
    }

    fn scopes(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let frame = arguments["frameId"].as_u64().unwrap_or(0) as usize;
        let group = frame.checked_sub(1).ok_or_else(|| format!("there is no frame {frame}"))? / 256;
        let debugger = self.debugger()?;
        if group >= debugger.stepping().groups() {
            return Err(format!("there is no frame {frame}"));
        }
        debugger.choose_group(group);
        let chosen = debugger.lane();
        let width = debugger.width();
        let why: Vec<String> = (0..width).map(|lane| debugger.why(Lane(lane as u8))).collect();
        let mut scopes = Vec::new();
        // The lane that was chosen last comes first, then what is of all lanes, then each lane.
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

    fn variables(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let number = arguments["variablesReference"].as_u64().unwrap_or(0) as usize;
        let shown = number.checked_sub(1).and_then(|number| self.shown.get(number)).copied();
        let shown = shown.ok_or_else(|| format!("there is no variablesReference {number} now"))?;
        let plain =
            |name: String, value: String| json!({ "name": name, "value": value, "variablesReference": 0 });
        let mut variables = Vec::new();
        match shown {
            Shown::Lane(group, lane) => {
                for (name, register) in self.debugger()?.register_names() {
                    let values = self.debugger()?.stepping().read(group, register);
                    if let Some(value) = values.and_then(|values| values.get(lane.index()).copied()) {
                        variables.push(plain(name, command::shown(value)));
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
                let start = arguments["start"].as_u64().unwrap_or(0) as usize;
                let count =
                    arguments["count"].as_u64().filter(|count| *count > 0).unwrap_or(u64::MAX) as usize;
                for (lane, value) in values.iter().enumerate().skip(start).take(count) {
                    variables.push(plain(format!("[{lane}]"), command::shown(*value)));
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
                for (depth, row) in debugger.stepping().stack(group).into_iter().enumerate() {
                    let mut value = row.kind.to_owned();
                    value.extend(row.pc.map(|pc| format!(" to {}", debugger.spelled(pc))));
                    value.extend(row.mask.map(|mask| format!(" lanes {mask}")));
                    value.extend(row.count.map(|count| format!(" count {count}")));
                    variables.push(plain(format!("[{depth}]"), value));
                }
            }
            Shown::Memory(group) => {
                let (lane, spaces) = {
                    let debugger = self.debugger()?;
                    (debugger.lane(), debugger.stepping().spaces())
                };
                for space in spaces {
                    let reference = format!("{}:{group}:{}", space.name, lane.0);
                    self.memory.insert(reference.clone(), (space.name, group, lane));
                    variables.push(json!({
                        "name": space.name, "value": "bytes", "variablesReference": 0, "memoryReference": reference,
                    }));
                }
            }
        }
        Ok(json!({ "variables": variables }))
    }

    /// The listing, a line an instruction.
    fn source(&mut self) -> Result<String, Refused> {
        let debugger = self.debugger()?;
        let lines = debugger.lines().iter().map(|line| {
            let label = line.label.as_ref().map(|label| format!("{label}: ")).unwrap_or_default();
            let code = line.code();
            format!(
                "{:>8}  {:indent$}{label}{code}\n",
                debugger.spelled(line.address.unwrap_or(0)),
                "",
                indent = 2 * line.depth
            )
        });
        Ok(lines.collect())
    }

    fn disassemble(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let reference = arguments["memoryReference"].as_str().unwrap_or("");
        let at = byte_address(reference).ok_or_else(|| format!("`{reference}` is no address"))?;
        let at = at + arguments["offset"].as_i64().unwrap_or(0);
        let first = arguments["instructionOffset"].as_i64().unwrap_or(0);
        let count = arguments["instructionCount"].as_i64().unwrap_or(0).clamp(0, 100_000);
        let debugger = self.debugger()?;
        let unit = unit_bytes(debugger);
        let lines = debugger.lines();
        let byte = |line: &crate::listing::Line| i64::from(line.address.unwrap_or(0)) * unit;
        // The instruction at the address, or the one before it.
        let place = lines.partition_point(|line| byte(line) <= at) as i64 - 1;
        let end = lines.last().map_or(0, |line| byte(line) + 4 * line.words.len() as i64);
        let instructions = (place + first..place + first + count).map(|number| {
            match usize::try_from(number).ok().and_then(|number| lines.get(number)) {
                Some(line) => {
                    let bytes: Vec<String> = line
                        .words
                        .iter()
                        .flat_map(|word| word.to_le_bytes())
                        .map(|byte| format!("{byte:02x}"))
                        .collect();
                    let mut instruction = json!({
                        "address": spelled(byte(line)),
                        "instructionBytes": bytes.join(" "),
                        "instruction": line.code(),
                    });
                    if let Some(label) = &line.label {
                        instruction["symbol"] = json!(label);
                    }
                    instruction
                }
                // Addresses outside the program, each of its own: before it they count down from the end of memory.
                None => {
                    let address = if number < 0 { 8 * number } else { end + 8 * (number - lines.len() as i64) };
                    json!({ "address": spelled(address), "instruction": "outside the program", "presentationHint": "invalid" })
                }
            }
        });
        Ok(json!({ "instructions": instructions.collect::<Vec<Value>>() }))
    }

    fn read_memory(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let reference = arguments["memoryReference"].as_str().unwrap_or("").to_owned();
        let offset = arguments["offset"].as_i64().unwrap_or(0);
        let count = arguments["count"].as_u64().unwrap_or(0).min(1 << 24) as usize;
        let (space, group, lane) = *self
            .memory
            .get(&reference)
            .ok_or_else(|| format!("`{reference}` is no memory that the `memory` scope shows now"))?;
        let from = u32::try_from(offset.max(0)).map_err(|_| format!("offset {offset} is beyond 4 GiB"))?;
        let before = usize::try_from(-offset.min(0)).unwrap_or(usize::MAX);
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

    // ---- Stops

    fn replace(&mut self, of: fn(&mut Adapter) -> &mut Vec<usize>) -> Result<(), Refused> {
        let old = std::mem::take(of(self));
        let debugger = self.debugger()?;
        for number in old {
            debugger.stops.remove(number);
        }
        Ok(())
    }

    fn add(&mut self, on: On, condition: &Value, text: &str) -> Result<usize, Refused> {
        let debugger = self.debugger()?;
        let condition = match condition.as_str().filter(|text| !text.trim().is_empty()) {
            Some(text) => Some(command::condition_of(debugger, text)?),
            None => None,
        };
        Ok(debugger.stops.add(on, None, condition, text))
    }

    fn set_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(|adapter| &mut adapter.of_source)?;
        let listing = arguments["source"]["sourceReference"].as_u64() == Some(LISTING);
        let mut answers = Vec::new();
        for wanted in arguments["breakpoints"].as_array().map_or(&[][..], Vec::as_slice) {
            let line = wanted["line"].as_u64().unwrap_or(0) as usize;
            let address =
                line.checked_sub(1).and_then(|line| self.debugger.as_ref()?.lines().get(line)?.address);
            answers.push(match address.filter(|_| listing) {
                None => {
                    json!({ "verified": false, "message": "stops are set in the listing, at an instruction" })
                }
                Some(address) => {
                    match self.add(On::Address(address), &wanted["condition"], &format!("line {line}")) {
                        Err(why) => json!({ "verified": false, "message": why }),
                        Ok(number) => {
                            self.of_source.push(number);
                            json!({ "id": number, "verified": true, "line": line })
                        }
                    }
                }
            });
        }
        Ok(json!({ "breakpoints": answers }))
    }

    fn set_instruction_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(|adapter| &mut adapter.of_instructions)?;
        let mut answers = Vec::new();
        for wanted in arguments["breakpoints"].as_array().map_or(&[][..], Vec::as_slice) {
            let reference = wanted["instructionReference"].as_str().unwrap_or("");
            let byte = byte_address(reference).map(|at| at + wanted["offset"].as_i64().unwrap_or(0));
            let debugger = self.debugger()?;
            let unit = unit_bytes(debugger);
            let address =
                byte.filter(|byte| byte % unit == 0).and_then(|byte| u32::try_from(byte / unit).ok());
            let address = address.filter(|address| debugger.line(*address).is_some());
            answers.push(match address {
                None => json!({ "verified": false, "message": "no instruction starts there" }),
                Some(address) => match self.add(On::Address(address), &wanted["condition"], reference) {
                    Err(why) => json!({ "verified": false, "message": why }),
                    Ok(number) => {
                        self.of_instructions.push(number);
                        json!({
                            "id": number, "verified": true,
                            "instructionReference": spelled(i64::from(address) * unit),
                        })
                    }
                },
            });
        }
        Ok(json!({ "breakpoints": answers }))
    }

    fn data_breakpoint_info(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let name = arguments["name"].as_str().unwrap_or("").to_owned();
        let number = arguments["variablesReference"].as_u64().unwrap_or(0) as usize;
        let shown = number.checked_sub(1).and_then(|number| self.shown.get(number)).copied();
        let lane = match shown {
            Some(Shown::Lane(_, lane)) => Some(lane),
            Some(Shown::Lanes(_)) | None => None,
            Some(_) => return Ok(json!({ "dataId": null, "description": "only registers are watched" })),
        };
        let debugger = self.debugger()?;
        match command::register(debugger, &name) {
            Err(why) => Ok(json!({ "dataId": null, "description": why })),
            Ok(_) => {
                let of = lane.map(|lane| format!("@{}", lane.0)).unwrap_or_default();
                Ok(json!({
                    "dataId": format!("{name}{of}"), "description": format!("{name}{of} is written"),
                    "accessTypes": ["write"], "canPersist": true,
                }))
            }
        }
    }

    fn set_data_breakpoints(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(|adapter| &mut adapter.of_data)?;
        let mut answers = Vec::new();
        for wanted in arguments["breakpoints"].as_array().map_or(&[][..], Vec::as_slice) {
            let id = wanted["dataId"].as_str().unwrap_or("").to_owned();
            let debugger = self.debugger()?;
            let (name, lane) =
                id.split_once('@').map_or((id.as_str(), None), |(name, lane)| (name, Some(lane)));
            let register =
                command::register(debugger, name).map(|register| command::event_number(debugger, register));
            let lane = lane.and_then(|lane| lane.parse().ok()).map(Lane);
            answers.push(match register {
                Err(why) => json!({ "verified": false, "message": why }),
                Ok(register) => match self.add(On::Write(register, lane), &wanted["condition"], &id) {
                    Err(why) => json!({ "verified": false, "message": why }),
                    Ok(number) => {
                        self.of_data.push(number);
                        json!({ "id": number, "verified": true })
                    }
                },
            });
        }
        Ok(json!({ "breakpoints": answers }))
    }

    fn set_filters(&mut self, arguments: &Value) -> Result<Value, Refused> {
        self.replace(|adapter| &mut adapter.of_filters)?;
        let mut answers = Vec::new();
        for filter in arguments["filters"].as_array().map_or(&[][..], Vec::as_slice) {
            let on = match filter.as_str() {
                Some("diverge") => On::Diverge,
                Some("reconverge") => On::Reconverge,
                other => {
                    answers.push(
                        json!({ "verified": false, "message": format!("there is no filter {other:?}") }),
                    );
                    continue;
                }
            };
            let number = self.add(on, &Value::Null, filter.as_str().unwrap_or(""))?;
            self.of_filters.push(number);
            answers.push(json!({ "id": number, "verified": true }));
        }
        Ok(json!({ "breakpoints": answers }))
    }

    fn evaluate(
        &mut self,
        arguments: &Value,
        events: &mut Vec<(&'static str, Value)>,
    ) -> Result<Value, Refused> {
        let expression = arguments["expression"].as_str().unwrap_or("");
        if arguments["context"] == "repl" {
            let answer = command::run(self.debugger()?, expression).map_err(|error| error.to_string())?;
            if let Some(halt) = &answer.halt {
                self.shown.clear();
                self.report(halt, "step", events)?;
            }
            return Ok(json!({ "result": answer.text, "variablesReference": 0 }));
        }
        let debugger = self.debugger()?;
        let register = command::register(debugger, expression)?;
        let values = debugger.stepping().read(debugger.group(), register).unwrap_or_default();
        let value = values.get(debugger.lane().index()).ok_or("the group does not run")?;
        Ok(json!({ "result": shown(*value), "variablesReference": 0 }))
    }
}

/// The byte address that a reference spells.
fn byte_address(reference: &str) -> Option<i64> {
    match reference.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|at| at as i64),
        None => reference.parse().ok(),
    }
}

/// What the adapter can do.
fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsConditionalBreakpoints": true,
        "supportsDataBreakpoints": true,
        "supportsDisassembleRequest": true,
        "supportsEvaluateForHovers": true,
        "supportsExceptionInfoRequest": true,
        "supportsInstructionBreakpoints": true,
        "supportsReadMemoryRequest": true,
        "supportsStepBack": true,
        "supportsSteppingGranularity": true,
        "supportsTerminateRequest": true,
        "exceptionBreakpointFilters": [
            { "filter": "diverge", "label": "Lanes part", "description": "A decision splits the lanes of a group." },
            { "filter": "reconverge", "label": "Lanes run together", "description": "Lanes that were waiting run again." },
        ],
    })
}
