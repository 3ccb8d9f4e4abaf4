//! Implements the Debug Adapter Protocol for a [`Debugger`]. The adapter receives one message at a time and returns
//! messages. The caller of the adapter does the input and output.
//!
//! In the protocol, each group of lanes is a thread, and each lane is a scope of a frame. If the user's source is
//! known, a frame refers to this source. Editors without a disassembly view can show the program's listing as a second
//! source (`sourceReference` 1). Addresses are byte addresses in the program. Addresses always have the form `0x…`,
//! because clients compare addresses as text.
//!
//! [`launch`] has the arguments of a launch request. `show.rs` answers requests for data. `stops.rs` sets the client's
//! breakpoints.
//!
//! Source: Debug Adapter Protocol 1.68, <https://microsoft.github.io/debug-adapter-protocol/specification>.

pub mod launch;
mod show;
mod stops;

use std::collections::HashMap;

use reconverge_isa::source::closest;
use reconverge_simt::Lane;
use serde_json::{Value, json};

use super::command::{self, BUDGET};
use super::stop::FlowChange;
use super::{Debugger, Halt};
use crate::session::Register;
use launch::LaunchRequest;

/// The `sourceReference` of the listing.
const LISTING: u64 = 1;

/// A function that opens the program of a launch request.
pub type Open<'a> = dyn FnMut(&LaunchRequest) -> Result<Debugger, String> + 'a;

/// The object to which a `variablesReference` refers. The first field of each variant is the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The registers of one lane.
    Lane(usize, Lane),
    /// All registers. Each register expands to its values in all lanes.
    Lanes(usize),
    /// A table of all lanes with their registers.
    Table(usize),
    /// The values of one register in all lanes.
    Register(usize, Register),
    /// The set of lanes for each lane state.
    Masks(usize),
    /// The stack of the group. The machine defines the entries of the stack.
    Stack(usize),
    /// The memory spaces.
    Memory(usize),
}

/// A debug adapter with the state of one connection.
#[derive(Default)]
pub struct Adapter {
    debugger: Option<Debugger>,
    /// Sequence number of the last message sent.
    sequence: u64,
    shown: Vec<Shown>,
    /// The arguments of the last launch request. A restart reads the same arguments again.
    launched: LaunchRequest,
    /// The answer to the last `gotoTargets` request. Each target is an address with a flag. If the flag is true, the
    /// launch must run forward to the address. If the flag is false, the launch must run backward to the address.
    targets: Vec<(u32, bool)>,
    /// Numbers of the stops that belong to breakpoints, one list per kind of breakpoint. A request of the client
    /// replaces all stops of one kind.
    of_source: Vec<usize>,
    of_listing: Vec<usize>,
    of_other: Vec<usize>,
    /// For each stop in the user's source: the number of the stop, and the source line that the client requested.
    lines_wanted: Vec<(usize, usize)>,
    of_instructions: Vec<usize>,
    of_data: Vec<usize>,
    of_filters: Vec<usize>,
    /// Space, group and lane of each memory reference that was sent to the client.
    memory: HashMap<String, (&'static str, usize, Lane)>,
    phase: Phase,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The adapter waits for `initialize`.
    #[default]
    New,
    /// The adapter waits for `launch`.
    Initialized,
    /// The client sets breakpoints until the client sends `configurationDone`.
    Launched,
    /// The launch is stopped.
    Stopped,
    /// The launch has ended, or the client has sent `terminate`.
    Over,
    /// The client has sent `disconnect`.
    Closed,
}

/// A function that performs a movement of the debugger.
type Go = fn(&mut Debugger, &Movement) -> Halt;

/// A movement of the debugger. The movement starts after the adapter has sent the response to the request.
struct Movement {
    /// Name of the movement: `step`, `goto` or `breakpoint`. [`Adapter::report`] derives the reason in the `stopped`
    /// event from this name.
    reason: &'static str,
    go: Go,
    /// The lane to follow if the movement steps into a lane.
    lane: Lane,
    /// The target of a movement to an address.
    address: u32,
}

impl Movement {
    fn of(command: &str, lane: Option<Lane>) -> Option<Movement> {
        let lane_or_first = lane.unwrap_or(Lane(0));
        let made = |reason, go: Go| Some(Movement { reason, go, lane: lane_or_first, address: 0 });
        match command {
            "stepIn" if lane.is_some() => made("step", |debugger, movement| {
                debugger.choose_lane(movement.lane);
                debugger.follow(movement.lane, BUDGET)
            }),
            "stepIn" => made("step", |debugger, _| debugger.step(1, BUDGET)),
            "next" => made("step", |debugger, _| debugger.over(BUDGET)),
            "stepOut" => made("step", |debugger, _| debugger.out(BUDGET)),
            "stepBack" => made("step", |debugger, _| debugger.back(1)),
            "continue" => made("breakpoint", |debugger, _| debugger.run(BUDGET, &mut |_| false)),
            "reverseContinue" => made("breakpoint", |debugger, _| debugger.back_until(&mut |_| false)),
            _ => None,
        }
    }

    /// Returns a movement to the instruction at an address. If `is_ahead` is true, the launch runs forward until the
    /// selected group reaches the instruction again. Otherwise, the launch runs back to the most recent step at which
    /// the selected group reached the instruction.
    fn to(address: u32, is_ahead: bool) -> Movement {
        let go: Go = match is_ahead {
            true => |debugger, movement| debugger.until(movement.address, BUDGET),
            false => |debugger, movement| {
                let (group, address) = (debugger.group(), movement.address);
                debugger.back_until(&mut |debugger| {
                    debugger.stepping().current() == Some(group)
                        && debugger.stepping().issue(group).is_some_and(|issue| issue.pc == address)
                })
            },
        };
        Movement { reason: "goto", go, lane: Lane(0), address }
    }
}

/// An event: name and body.
type Event = (&'static str, Value);

/// Returns the number of bytes per address unit of the machine.
fn unit_bytes(debugger: &Debugger) -> i64 {
    match debugger.machine.isa().unit() {
        "bytes" => 1,
        "64-bit words" => 8,
        // R500 counts addresses in instructions of six words.
        _ => 24,
    }
}

fn spelled(byte: i64) -> String {
    format!("{:#x}", byte as u64)
}

/// The error message for a request that fails.
type Refused = String;

/// The supported requests.
const REQUESTS: [&str; 35] = [
    "initialize",
    "launch",
    "configurationDone",
    "disconnect",
    "terminate",
    "threads",
    "stackTrace",
    "scopes",
    "variables",
    "setVariable",
    "source",
    "disassemble",
    "readMemory",
    "writeMemory",
    "setBreakpoints",
    "setInstructionBreakpoints",
    "dataBreakpointInfo",
    "setDataBreakpoints",
    "setExceptionBreakpoints",
    "exceptionInfo",
    "evaluate",
    "setExpression",
    "completions",
    "breakpointLocations",
    "gotoTargets",
    "goto",
    "restart",
    "continue",
    "next",
    "stepIn",
    "stepInTargets",
    "stepOut",
    "stepBack",
    "reverseContinue",
    "pause",
];

impl Adapter {
    /// Handles a request from the client. The adapter first sends the response and then sends the events. If the
    /// request starts a movement, the movement runs between the response and the events.
    pub fn handle(&mut self, request: &Value, open: &mut Open<'_>, send: &mut dyn FnMut(Value)) {
        let command = request["command"].as_str().unwrap_or("");
        if request["type"] != "request" || command.is_empty() {
            let why = "expected a request with `type` \"request\" and a `command`".to_owned();
            send(self.response(request, Err(why)));
            return;
        }
        let mut events = Vec::new();
        let allowed = self.in_order(command);
        let result = allowed.and_then(|()| self.dispatch(command, &request["arguments"], open, &mut events));
        let (result, mut movement) = match result {
            Ok((body, movement)) => (Ok(body), movement),
            Err(why) => (Err(why), None),
        };
        send(self.response(request, result));
        loop {
            for (name, body) in events.drain(..) {
                self.sequence += 1;
                send(json!({ "seq": self.sequence, "type": "event", "event": name, "body": body }));
            }
            let Some(movement) = movement.take() else { break };
            self.make(&movement, &mut events);
        }
    }

    /// Returns the response to received bytes that are not a valid message.
    pub fn malformed(&mut self, why: &str) -> Value {
        self.response(&Value::Null, Err(why.to_owned()))
    }

    /// Returns whether the client has ended the connection.
    pub fn is_ended(&self) -> bool {
        self.phase == Phase::Closed
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
                let why = plain(&why);
                response["message"] = json!(why);
                response["body"] = json!({ "error": { "id": 1, "format": why, "showUser": true } });
            }
        }
        response
    }

    fn debugger(&mut self) -> Result<&mut Debugger, Refused> {
        self.debugger.as_mut().ok_or_else(|| "nothing is launched; use `launch` first".to_owned())
    }

    /// Checks whether a request is allowed in the current phase.
    fn in_order(&self, command: &str) -> Result<(), Refused> {
        let wrong = |why: &str| Err(format!("`{command}` {why}"));
        let moves = Movement::of(command, None).is_some();
        match (self.phase, command) {
            (_, "disconnect") => Ok(()),
            (Phase::New, "initialize") => Ok(()),
            (Phase::New, _) => wrong("was sent before `initialize`"),
            (Phase::Stopped | Phase::Over, "restart") => Ok(()),
            (_, "initialize") => wrong("was already sent; open another connection for another session"),
            (Phase::Over | Phase::Closed, _) => {
                wrong("was sent after the end of the session; send `disconnect` and start another session")
            }
            (Phase::Initialized, "launch" | "attach" | "terminate") => Ok(()),
            (_, "launch") => wrong("was already sent; send `disconnect` and start another session"),
            (Phase::Initialized, _) if REQUESTS.contains(&command) => wrong("was sent before `launch`"),
            (Phase::Stopped, "configurationDone") => wrong("was already sent; use `continue`"),
            (Phase::Launched, _) if moves => wrong("was sent before `configurationDone`"),
            _ => Ok(()),
        }
    }

    fn dispatch(
        &mut self,
        command: &str,
        arguments: &Value,
        open: &mut Open<'_>,
        events: &mut Vec<Event>,
    ) -> Result<(Value, Option<Movement>), Refused> {
        let body = match command {
            "initialize" => {
                self.phase = Phase::Initialized;
                capabilities()
            }
            "launch" => {
                let request = LaunchRequest::read(arguments)?;
                self.debugger = Some(open(&request)?);
                self.launched = request;
                self.phase = Phase::Launched;
                events.push(("initialized", json!({})));
                Value::Null
            }
            "attach" => return Err("cannot attach; use `launch` with a program".to_owned()),
            "configurationDone" => return self.begin(events),
            "restart" => {
                // `open` reads the program's file again. If the user has changed the source, the restarted launch runs
                // the changed source.
                let changed = &arguments["arguments"];
                let launched = match changed.is_object() {
                    true => LaunchRequest::read(changed)?,
                    false => self.launched.clone(),
                };
                let mut debugger = open(&launched)?;
                if let Some(old) = &mut self.debugger {
                    debugger.stops = std::mem::take(&mut old.stops);
                    debugger.stops.begin_again();
                    debugger.choose_lane(old.lane());
                }
                (self.debugger, self.launched) = (Some(debugger), launched);
                self.forget();
                self.bind_again(events)?;
                return self.begin(events);
            }
            "terminate" => {
                self.phase = Phase::Over;
                events.push(("terminated", json!({})));
                Value::Null
            }
            "disconnect" => {
                self.phase = Phase::Closed;
                Value::Null
            }
            "threads" => self.threads()?,
            "stackTrace" => self.stack_trace(arguments)?,
            "scopes" => self.scopes(arguments)?,
            "variables" => self.variables(arguments)?,
            "setVariable" => self.set_variable(arguments)?,
            "source" => self.source(arguments)?,
            "disassemble" => self.disassemble(arguments)?,
            "readMemory" => self.read_memory(arguments)?,
            "writeMemory" => self.write_memory(arguments)?,
            "setBreakpoints" => self.set_breakpoints(arguments)?,
            "setInstructionBreakpoints" => self.set_instruction_breakpoints(arguments)?,
            "dataBreakpointInfo" => self.data_breakpoint_info(arguments)?,
            "setDataBreakpoints" => self.set_data_breakpoints(arguments)?,
            "setExceptionBreakpoints" => self.set_filters(arguments)?,
            "exceptionInfo" => {
                let trap = self.debugger()?.trap().ok_or("the program has not trapped")?;
                json!({ "exceptionId": "trap", "description": trap, "breakMode": "always" })
            }
            "stepInTargets" => self.step_in_targets(arguments)?,
            "breakpointLocations" => self.breakpoint_locations(arguments)?,
            "gotoTargets" => self.goto_targets(arguments)?,
            "goto" => {
                let number =
                    arguments["targetId"].as_u64().and_then(|number| (number as usize).checked_sub(1));
                let target = number.and_then(|number| self.targets.get(number)).copied();
                let (address, is_ahead) = target.ok_or("unknown target: `gotoTargets` lists them")?;
                self.turn_to(&json!({ "threadId": arguments["threadId"] }))?;
                return Ok((Value::Null, Some(Movement::to(address, is_ahead))));
            }
            "completions" => self.completions(arguments)?,
            "setExpression" => self.set_expression(arguments)?,
            "evaluate" => self.evaluate(arguments, events)?,
            // The adapter reads requests only between movements. So when the adapter reads this request, the movement
            // has already ended.
            "pause" => Value::Null,
            _ => {
                let target = arguments["targetId"].as_u64().and_then(|target| target.checked_sub(1));
                let lane = target.and_then(|lane| u8::try_from(lane).ok()).map(Lane);
                let movement = Movement::of(command, lane).ok_or_else(|| unknown(command))?;
                self.turn_to(arguments)?;
                return Ok((json!({ "allThreadsContinued": true }), Some(movement)));
            }
        };
        Ok((body, None))
    }

    // ---- Movements

    /// Starts the launch. If `stop_on_entry` is set, the launch stops at its first instruction. Otherwise, the launch
    /// runs.
    fn begin(&mut self, events: &mut Vec<Event>) -> Result<(Value, Option<Movement>), Refused> {
        self.phase = Phase::Stopped;
        if self.launched.no_debug {
            self.debugger()?.stops.clear();
        }
        if self.launched.no_debug || !self.launched.stop_on_entry {
            return Ok((Value::Null, Movement::of("continue", None)));
        }
        let thread = self.debugger()?.group() + 1;
        let body = json!({ "reason": "entry", "threadId": thread, "allThreadsStopped": true });
        events.push(("stopped", body));
        self.lanes_event(events)?;
        Ok((Value::Null, None))
    }

    /// Discards all references to variables and memory. A reference is valid only until the launch continues.
    fn forget(&mut self) {
        self.shown.clear();
        self.memory.clear();
    }

    /// Returns two targets for the instruction of a line. For one target, the debugger runs the launch forward to the
    /// instruction. For the second target, the debugger runs the launch backward. In the protocol, a jump may skip the
    /// code before the target. The machines cannot skip code, so the launch runs all code up to the target. The labels
    /// of the targets state that the launch runs forward or backward.
    fn goto_targets(&mut self, arguments: &Value) -> Result<Value, Refused> {
        let (address, line) = self.line_address(arguments)?;
        self.targets = vec![(address, true), (address, false)];
        let debugger = self.debugger()?;
        let reference = spelled(i64::from(address) * unit_bytes(debugger));
        let place = debugger.source_place(address).unwrap_or_else(|| format!("line {line} of the listing"));
        let target = |id: usize, what: &str| {
            let label = format!("{what} to {place}, at {}", debugger.spelled(address));
            json!({ "id": id, "label": label, "line": line, "instructionPointerReference": reference })
        };
        Ok(json!({ "targets": [target(1, "run on"), target(2, "go back")] }))
    }

    /// Selects the group of the thread that a request names, and checks that the requested lane exists.
    fn turn_to(&mut self, arguments: &Value) -> Result<(), Refused> {
        if !arguments["threadId"].is_null() {
            let group = self.group_of(&arguments["threadId"])?;
            self.debugger()?.choose_group(group);
        }
        let width = self.debugger()?.width() as u64;
        match arguments["targetId"].as_u64() {
            Some(target) if target == 0 || target > width => Err(format!("unknown lane {target}")),
            _ => Ok(()),
        }
    }

    fn make(&mut self, movement: &Movement, events: &mut Vec<Event>) {
        self.forget();
        let Some(debugger) = &mut self.debugger else { return };
        let halt = (movement.go)(debugger, movement);
        for line in debugger.take_logs() {
            events.push(("output", json!({ "category": "console", "output": format!("{line}\n") })));
        }
        if let Err(why) = self.report(&halt, movement.reason, events) {
            events.push(("output", json!({ "category": "important", "output": format!("{why}\n") })));
        }
    }

    /// Reports to the client the reason why a movement ended.
    fn report(&mut self, halt: &Halt, reason: &str, events: &mut Vec<Event>) -> Result<(), Refused> {
        let (reason, text) = match halt {
            Halt::There if reason == "goto" => ("goto", None),
            Halt::There => ("step", None),
            Halt::Budget => ("pause", Some(format!("no stop was reached in {BUDGET} instructions"))),
            Halt::Interrupted => ("pause", None),
            Halt::Start => ("entry", Some("the start of the launch".to_owned())),
            Halt::Stop(why) => {
                let reason = match why.stop {
                    stop if self.of_data.contains(&stop) => "data breakpoint",
                    stop if self.of_instructions.contains(&stop) => "instruction breakpoint",
                    _ if reason == "step" || reason == "goto" => "breakpoint",
                    _ => reason,
                };
                (reason, Some(why.to_string()))
            }
            Halt::Trap(message) => ("exception", Some(message.clone())),
            Halt::End => {
                let debugger = self.debugger()?;
                let more = debugger.stepping().current().is_some();
                debugger.follow_current();
                if !more && !self.launched.stop_at_end {
                    self.phase = Phase::Over;
                    events.push(("exited", json!({ "exitCode": 0 })));
                    events.push(("terminated", json!({})));
                    return Ok(());
                }
                let what = match more {
                    true => "the group has ended",
                    false => "the launch has ended; steps back are possible",
                };
                ("step", Some(what.to_owned()))
            }
        };
        let thread = self.debugger()?.group() + 1;
        let mut body = json!({ "reason": reason, "threadId": thread, "allThreadsStopped": true });
        if let Some(text) = text {
            body["description"] = json!(text);
            body["text"] = json!(text);
        }
        if let Halt::Stop(why) = halt {
            body["hitBreakpointIds"] = json!([why.stop]);
        }
        events.push(("stopped", body));
        self.lanes_event(events)
    }

    /// Sends the state of each lane in the event `reconvergeLanes`. The protocol does not define this event, but allows
    /// adapter-specific events.
    fn lanes_event(&mut self, events: &mut Vec<Event>) -> Result<(), Refused> {
        let debugger = self.debugger()?;
        let mask = debugger.issue().map_or(0, |issue| issue.mask.0);
        let lanes: Vec<String> = (0..debugger.width()).map(|lane| debugger.why(Lane(lane as u8))).collect();
        let body = json!({
            "group": debugger.group(), "mask": format!("{mask:#x}"), "lanes": lanes, "position": debugger.position(),
        });
        events.push(("reconvergeLanes", body));
        Ok(())
    }

    fn group_of(&mut self, thread: &Value) -> Result<usize, Refused> {
        let group = thread.as_u64().and_then(|thread| (thread as usize).checked_sub(1));
        let groups = self.debugger()?.stepping().groups();
        group.filter(|group| *group < groups).ok_or_else(|| format!("unknown thread {thread}"))
    }

    fn evaluate(&mut self, arguments: &Value, events: &mut Vec<Event>) -> Result<Value, Refused> {
        let expression = arguments["expression"].as_str().unwrap_or("").trim();
        if !arguments["frameId"].is_null() {
            let group = self.group_of_frame(arguments)?;
            self.debugger()?.choose_group(group);
        }
        if arguments["context"] != "repl" {
            return self.value_of(expression);
        }
        match command::run(self.debugger()?, expression) {
            Ok(answer) => {
                if let Some(halt) = &answer.halt {
                    self.forget();
                    self.report(halt, "step", events)?;
                }
                Ok(json!({ "result": answer.text, "variablesReference": 0 }))
            }
            // The text is not a command. If the text is a formula, the answer is the value of the formula. The text may
            // look like a command without being a formula. The error message then reports an unknown command, not an
            // invalid formula.
            Err(command::CommandError::Unknown(name, more)) => {
                let is_word = name.chars().all(|letter| letter.is_alphabetic() || letter == '-');
                let is_command = is_word && (!more.is_empty() || name == expression);
                self.value_of(expression).map_err(|why| match is_command {
                    true => command::CommandError::Unknown(name, more).to_string(),
                    false => why,
                })
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns a message without terminal colour codes.
fn plain(message: &str) -> String {
    let mut parts = message.split('\x1b');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.strip_prefix('[').map(|code| {
            let end = code.find(|letter: char| ('@'..='~').contains(&letter));
            end.map_or("", |end| &code[end + 1..])
        });
        text += rest.unwrap_or(part);
    }
    text
}

/// Parses a memory or instruction reference as a byte address.
fn byte_address(reference: &str) -> Option<i64> {
    match reference.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|at| at as i64),
        None => reference.parse().ok(),
    }
}

/// Returns the message for an unsupported request.
fn unknown(command: &str) -> Refused {
    let meant = closest(command, REQUESTS.iter().copied()).map(|meant| format!(", did you mean `{meant}`?"));
    format!("`{command}` is not supported{}", meant.unwrap_or_default())
}

/// Returns the capabilities of the adapter.
fn capabilities() -> Value {
    let filter = |change: FlowChange| {
        let (label, description) = change.labels();
        json!({ "filter": change.name(), "label": label, "description": description })
    };
    let filters: Vec<Value> = FlowChange::ALL.into_iter().map(filter).collect();
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsConditionalBreakpoints": true,
        "supportsDataBreakpoints": true,
        "supportsDisassembleRequest": true,
        "supportsEvaluateForHovers": true,
        "supportsExceptionInfoRequest": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsInstructionBreakpoints": true,
        "supportsReadMemoryRequest": true,
        "supportsSetVariable": true,
        "supportsStepBack": true,
        "supportsStepInTargetsRequest": true,
        "supportsSteppingGranularity": true,
        "supportsTerminateRequest": true,
        "supportsWriteMemoryRequest": true,
        "supportsBreakpointLocationsRequest": true,
        "supportsClipboardContext": true,
        "supportsCompletionsRequest": true,
        "completionTriggerCharacters": ["$", "."],
        "supportsGotoTargetsRequest": true,
        "supportsLogPoints": true,
        "supportsRestartRequest": true,
        "supportsSetExpression": true,
        "exceptionBreakpointFilters": filters,
    })
}
