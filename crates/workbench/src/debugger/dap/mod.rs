//! The Debug Adapter Protocol over a [`Debugger`]: a message in, messages out. Reading and writing them is the caller's.
//!
//! Groups are threads; a lane is a scope of a frame. The user's own source is the frame's if it is known; the program's
//! listing is another (`sourceReference` 1), for editors without a disassembly view. Addresses are byte addresses in the
//! program. All are spelled `0x…`, because clients compare them as text.
//!
//! [`launch`] has the arguments of a launch, `show.rs` answers what clients look at, `stops.rs` keeps their breakpoints.
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

/// The listing as a source.
const LISTING: u64 = 1;

/// Opens what a launch request names.
pub type Open<'a> = dyn FnMut(&LaunchRequest) -> Result<Debugger, String> + 'a;

/// What a `variablesReference` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The registers of a lane.
    Lane(usize, Lane),
    /// Every register, by lane.
    Lanes(usize),
    /// Every lane, with its registers.
    Table(usize),
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
    /// The arguments of the launch request, for restarts.
    launched: LaunchRequest,
    /// The targets of the last `gotoTargets`: the address of each, and whether the way to it is forward.
    targets: Vec<(u32, bool)>,
    /// Stops of the debugger that lines, instructions and data have, so that a new list replaces them.
    of_source: Vec<usize>,
    of_listing: Vec<usize>,
    of_other: Vec<usize>,
    /// The requested lines of the stops in the user's own source, with the numbers of the stops.
    lines_wanted: Vec<(usize, usize)>,
    of_instructions: Vec<usize>,
    of_data: Vec<usize>,
    of_filters: Vec<usize>,
    /// Memory behind references.
    memory: HashMap<String, (&'static str, usize, Lane)>,
    phase: Phase,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Before `initialize`.
    #[default]
    New,
    /// Before `launch`.
    Initialized,
    /// Before `configurationDone`: breakpoints are set.
    Launched,
    /// Stopped somewhere.
    Stopped,
    /// After the end of the launch, or `terminate`.
    Over,
    /// After `disconnect`.
    Closed,
}

/// Moves a debugger.
type Go = fn(&mut Debugger, &Movement) -> Halt;

/// A movement that follows the response to its request.
struct Movement {
    /// What it is when it ends at no stop.
    reason: &'static str,
    go: Go,
    /// The lane that a step into one follows.
    lane: Lane,
    /// The address to which it goes.
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

    /// Goes to an instruction: to the next time that the group is in front of it, or back to the last.
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

/// An event: its name and body.
type Event = (&'static str, Value);

/// Bytes of one unit of address.
fn unit_bytes(debugger: &Debugger) -> i64 {
    match debugger.machine.isa().unit() {
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

/// The requests that are answered.
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
    /// Takes a message from the client, and sends the messages for it: the response first, then events. A movement is made
    /// between them.
    pub fn handle(&mut self, request: &Value, open: &mut Open<'_>, send: &mut dyn FnMut(Value)) {
        let command = request["command"].as_str().unwrap_or("");
        if request["type"] != "request" || command.is_empty() {
            let why = "this is no request: `type` is \"request\" and `command` names one".to_owned();
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

    /// The answer to bytes that are no message.
    pub fn malformed(&mut self, why: &str) -> Value {
        self.response(&Value::Null, Err(why.to_owned()))
    }

    /// Whether the client has ended the connection.
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
        self.debugger.as_mut().ok_or_else(|| "nothing is launched: `launch` comes first".to_owned())
    }

    /// Whether a request has its turn.
    fn in_order(&self, command: &str) -> Result<(), Refused> {
        let wrong = |why: &str| Err(format!("`{command}` {why}"));
        let moves = Movement::of(command, None).is_some();
        match (self.phase, command) {
            (_, "disconnect") => Ok(()),
            (Phase::New, "initialize") => Ok(()),
            (Phase::New, _) => wrong("comes before `initialize`"),
            (Phase::Stopped | Phase::Over, "restart") => Ok(()),
            (_, "initialize") => wrong("comes a second time: a connection is one session"),
            (Phase::Over | Phase::Closed, _) => {
                wrong("comes after the end of the session: `disconnect`, and start another")
            }
            (Phase::Initialized, "launch" | "attach" | "terminate") => Ok(()),
            (_, "launch") => wrong("comes a second time: `disconnect`, and start another session"),
            (Phase::Initialized, _) if REQUESTS.contains(&command) => wrong("comes before `launch`"),
            (Phase::Stopped, "configurationDone") => wrong("comes a second time: `continue` goes on"),
            (Phase::Launched, _) if moves => wrong("comes before `configurationDone`"),
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
            "attach" => return Err("there is nothing to attach to: `launch` names a program".to_owned()),
            "configurationDone" => return self.begin(events),
            "restart" => {
                // The program is read again: an edited source is assembled anew.
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
            // A run that it should end has ended before this is read.
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

    // ---- Moving

    /// Stops at the first instruction, or continues from there.
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

    /// Drops what references stand for: they end when the launch goes on.
    fn forget(&mut self) {
        self.shown.clear();
        self.memory.clear();
    }

    /// The ways to an instruction of a line: one ahead and one back. The machines cannot jump over code, so that both are
    /// movements through the launch, and their labels say so. (The protocol lets a debugger skip the code between.)
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

    /// Turns to the thread and lane that a movement is for.
    fn turn_to(&mut self, arguments: &Value) -> Result<(), Refused> {
        if !arguments["threadId"].is_null() {
            let group = self.group_of(&arguments["threadId"])?;
            self.debugger()?.choose_group(group);
        }
        let width = self.debugger()?.width() as u64;
        match arguments["targetId"].as_u64() {
            Some(target) if target == 0 || target > width => Err(format!("there is no lane {target}")),
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

    /// What a movement's end is to clients.
    fn report(&mut self, halt: &Halt, reason: &str, events: &mut Vec<Event>) -> Result<(), Refused> {
        let (reason, text) = match halt {
            Halt::There if reason == "goto" => ("goto", None),
            Halt::There => ("step", None),
            Halt::Budget => ("pause", Some(format!("{BUDGET} instructions without a stop"))),
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

    /// What each lane does, for pages that follow: not in the protocol, which lets adapters have events of their own.
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
        group.filter(|group| *group < groups).ok_or_else(|| format!("there is no thread {thread}"))
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
            // A formula alone is a question for its value; one word, or one that is like a command, is none.
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

/// Returns a message without the codes that colour it on terminals.
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

/// The byte address that a reference spells.
fn byte_address(reference: &str) -> Option<i64> {
    match reference.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|at| at as i64),
        None => reference.parse().ok(),
    }
}

/// What is said of a request that is not answered.
fn unknown(command: &str) -> Refused {
    let meant = closest(command, REQUESTS.iter().copied()).map(|meant| format!(", did you mean `{meant}`?"));
    format!("`{command}` is not supported{}", meant.unwrap_or_default())
}

/// What the adapter can do.
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
