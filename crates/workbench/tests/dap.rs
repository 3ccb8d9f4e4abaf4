//! A session of the Debug Adapter Protocol on every machine, by the rules that its clients rely on.

use std::collections::HashSet;
use std::path::Path;

use reconverge_isa::Isa;
use reconverge_simt::Options;
use reconverge_workbench::debugger::Debugger;
use reconverge_workbench::debugger::dap::Adapter;
use reconverge_workbench::debugger::dap::launch::{ARGUMENTS, LaunchRequest, in_arguments, schema};
use reconverge_workbench::kernels::{KERNELS, Kernel, find};
use reconverge_workbench::source::UserSource;
use serde_json::{Value, json};

/// A client that sends requests to an adapter.
struct Client {
    adapter: Adapter,
    kernel: &'static Kernel,
    sequence: u64,
    /// Whether the adapter has the kernel's source, as `kernel.s`.
    has_source: bool,
    /// Number of lines inserted before the source, as if it had been edited.
    lines_before: usize,
}

impl Client {
    fn new(kernel: &'static Kernel) -> Client {
        Client { adapter: Adapter::default(), kernel, sequence: 0, has_source: false, lines_before: 0 }
    }

    /// Sends a request and returns the response and the events that follow it.
    fn send(&mut self, command: &str, arguments: Value) -> (Value, Vec<Value>) {
        self.sequence += 1;
        let request =
            json!({ "seq": self.sequence, "type": "request", "command": command, "arguments": arguments });
        let (kernel, has_source, before) = (self.kernel, self.has_source, self.lines_before);
        let mut messages = Vec::new();
        let mut open = |_: &LaunchRequest| {
            let opened = kernel.open().map_err(|error| error.to_string())?;
            let session = kernel.prepare(1 << 14).map_err(|error| error.to_string())?;
            let debugger =
                Debugger::new(&session, &opened.target, &opened.image.programs[0], &Options::default());
            let text = "\n".repeat(before) + kernel.source;
            let lines: Vec<(u32, usize)> =
                opened.lines[0].iter().map(|(address, line)| (*address, line + before)).collect();
            let source = UserSource::new(kernel.isa, Path::new("kernel.s"), &text, &lines);
            let debugger = debugger.map_err(|error| error.to_string())?;
            Ok(debugger.with_source(has_source.then_some(source)))
        };
        self.adapter.handle(&request, &mut open, &mut |message| messages.push(message));
        let response = messages.remove(0);
        assert_eq!(
            (&response["type"], &response["request_seq"]),
            (&json!("response"), &json!(self.sequence))
        );
        (response, messages)
    }

    fn ask(&mut self, command: &str, arguments: Value) -> Value {
        let (response, _) = self.send(command, arguments);
        assert_eq!(response["success"], true, "{command}: {response}");
        response["body"].clone()
    }

    /// Sends a request for a movement and returns the `stopped` event.
    fn go(&mut self, command: &str, thread: &Value) -> Value {
        let (response, events) = self.send(command, json!({ "threadId": thread }));
        assert_eq!(response["success"], true, "{command}: {response}");
        let stopped = events.into_iter().find(|event| event["event"] == "stopped");
        stopped.unwrap_or_else(|| panic!("{command} does not stop"))["body"].clone()
    }

    /// Returns a client that has launched a kernel with known source.
    fn with_source(kernel: &'static Kernel) -> Client {
        Client::launched(Client { has_source: true, ..Client::new(kernel) })
    }

    fn started(kernel: &'static Kernel) -> Client {
        Client::launched(Client::new(kernel))
    }

    fn launched(mut client: Client) -> Client {
        client.ask("initialize", json!({ "adapterID": "reconverge" }));
        let (response, events) = client.send("launch", json!({}));
        assert_eq!(response["success"], true, "{response}");
        assert_eq!(events[0]["event"], "initialized");
        client
    }

    /// Returns the number of the first line in the kernel's source that begins with a text.
    fn line(&self, begins: &str) -> usize {
        let at = self.kernel.source.lines().position(|line| line.trim_start().starts_with(begins));
        at.unwrap_or_else(|| panic!("no line begins with {begins}")) + 1
    }

    /// Sets breakpoints in the kernel's source and returns them.
    fn set_lines(&mut self, breakpoints: Value) -> Vec<Value> {
        let body = self
            .ask("setBreakpoints", json!({ "source": { "path": "kernel.s" }, "breakpoints": breakpoints }));
        body["breakpoints"].as_array().unwrap().clone()
    }

    /// Returns the value of an expression in a watch.
    fn watch(&mut self, expression: &str) -> Value {
        self.ask("evaluate", json!({ "expression": expression, "context": "watch" }))
    }

    /// Returns the address of a thread's top frame.
    fn top(&mut self, thread: &Value) -> String {
        let frames = self.ask("stackTrace", json!({ "threadId": thread }));
        frames["stackFrames"][0]["instructionPointerReference"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_session_stops_at_an_instruction_steps_back_over_a_divergence_and_reads_memory() {
    for kernel in &KERNELS {
        let what = format!("{} {}", kernel.isa, kernel.name);
        let mut client = Client::started(kernel);
        client.ask("setExceptionBreakpoints", json!({ "filters": ["diverge"] }));
        let (response, events) = client.send("configurationDone", json!({}));
        assert_eq!(response["success"], true);
        assert_eq!(events[0]["body"]["reason"], "entry");
        let stopped = client.go("continue", &json!(1));
        assert_eq!(stopped["reason"], "breakpoint", "{what}: {stopped}");
        let thread = stopped["threadId"].clone();
        let after = client.top(&thread);
        let registers = |client: &mut Client| {
            let frames = client.ask("stackTrace", json!({ "threadId": thread }));
            let scopes = client.ask("scopes", json!({ "frameId": frames["stackFrames"][0]["id"] }));
            let reference = scopes["scopes"][0]["variablesReference"].clone();
            (client.ask("variables", json!({ "variablesReference": reference })), scopes)
        };
        let (values, scopes) = registers(&mut client);
        let lanes = scopes["scopes"].as_array().unwrap().iter();
        let lanes = lanes.filter(|scope| scope["name"].as_str().unwrap().starts_with("lane ")).count();
        assert!([16, 32, 48, 64].contains(&lanes), "{what}: {lanes}");
        let back = client.go("stepBack", &thread);
        assert_eq!(back["reason"], "step");
        let before = client.top(&thread);
        assert_ne!(before, after, "{what}");
        client.ask("setExceptionBreakpoints", json!({ "filters": [] }));
        client
            .ask("setInstructionBreakpoints", json!({ "breakpoints": [{ "instructionReference": after }] }));
        let again = client.go("continue", &thread);
        assert_eq!(again["reason"], "instruction breakpoint", "{what}: {again}");
        assert_eq!(client.top(&again["threadId"]), after, "{what}");
        if again["threadId"] == thread {
            assert_eq!(registers(&mut client).0, values, "{what}: the same registers");
        }
        let memory =
            scopes["scopes"].as_array().unwrap().iter().find(|scope| scope["name"] == "memory").unwrap();
        let _ = memory;
        let (_, scopes) = registers(&mut client);
        let memory =
            scopes["scopes"].as_array().unwrap().iter().find(|scope| scope["name"] == "memory").unwrap();
        let spaces = client.ask("variables", json!({ "variablesReference": memory["variablesReference"] }));
        for space in spaces["variables"].as_array().unwrap() {
            let read = client.ask(
                "readMemory",
                json!({ "memoryReference": space["memoryReference"], "offset": 0, "count": 16 }),
            );
            let unreadable = read["unreadableBytes"].as_u64().unwrap();
            assert!(unreadable <= 16, "{what}: {read}");
        }
        client.ask("disconnect", json!({}));
        assert!(client.adapter.is_ended());
    }
}

#[test]
fn disassembly_has_exactly_the_lines_asked_for_each_with_an_address_of_its_own() {
    for kernel in &KERNELS {
        let mut client = Client::started(kernel);
        client.ask("configurationDone", json!({}));
        let top = client.top(&json!(1));
        for (offset, count) in [(-50, 50), (-50, 200), (0, 1), (0, 500), (300, 50), (-3, 3)] {
            let body = client.ask(
                "disassemble",
                json!({ "memoryReference": top, "offset": 0, "instructionOffset": offset, "instructionCount": count }),
            );
            let lines = body["instructions"].as_array().unwrap();
            assert_eq!(lines.len(), count as usize, "{} from {offset}", kernel.isa);
            let addresses: HashSet<&str> =
                lines.iter().map(|line| line["address"].as_str().unwrap()).collect();
            assert_eq!(addresses.len(), lines.len(), "{} from {offset}", kernel.isa);
            assert!(lines.iter().all(|line| line["location"].is_null()));
            // The address is spelled as in the frame, because clients compare text.
            if offset <= 0 && i64::from(count) > -i64::from(offset) {
                let here = &lines[-offset as usize];
                assert_eq!(here["address"], top.as_str());
                assert!(here["instructionBytes"].as_str().unwrap().split(' ').count().is_multiple_of(4));
            }
        }
    }
}

#[test]
fn a_breakpoint_offset_is_in_bytes() {
    let kernel = KERNELS.iter().find(|kernel| kernel.isa.name() == "tesla").unwrap();
    let mut client = Client::started(kernel);
    let mut verified = |reference: &str, offset: i64| {
        let body = client.ask(
            "setInstructionBreakpoints",
            json!({ "breakpoints": [{ "instructionReference": reference, "offset": offset }] }),
        );
        body["breakpoints"][0].clone()
    };
    assert_eq!(verified("0x0", 8)["instructionReference"], "0x8");
    assert_eq!(verified("0x10", -8)["instructionReference"], "0x8");
    assert_eq!(verified("0x0", 3)["verified"], false);
}

#[test]
fn the_listing_is_a_source_in_which_stops_are_set() {
    for kernel in &KERNELS {
        let mut client = Client::started(kernel);
        let source =
            client.ask("source", json!({ "sourceReference": 1, "source": { "sourceReference": 1 } }));
        let lines = source["content"].as_str().unwrap().lines().count();
        let set = client.ask(
            "setBreakpoints",
            json!({ "source": { "sourceReference": 1 }, "breakpoints": [{ "line": 2 }, { "line": lines + 1 }] }),
        );
        assert_eq!(
            (&set["breakpoints"][0]["verified"], &set["breakpoints"][1]["verified"]),
            (&json!(true), &json!(false))
        );
        client.ask("configurationDone", json!({}));
        let stopped = client.go("continue", &json!(1));
        let frames = client.ask("stackTrace", json!({ "threadId": stopped["threadId"] }));
        assert_eq!(frames["stackFrames"][0]["line"], 2, "{}", kernel.isa);
    }
}

#[test]
fn a_register_of_one_lane_is_watched() {
    let kernel = KERNELS.iter().find(|kernel| kernel.isa.name() == "tesla").unwrap();
    let mut client = Client::started(kernel);
    client.ask("configurationDone", json!({}));
    let frames = client.ask("stackTrace", json!({ "threadId": 1 }));
    let scopes = client.ask("scopes", json!({ "frameId": frames["stackFrames"][0]["id"] }));
    let info = client.ask(
        "dataBreakpointInfo",
        json!({ "name": "$r9", "variablesReference": scopes["scopes"][0]["variablesReference"] }),
    );
    assert_eq!(info["dataId"], "$r9@0");
    client.ask("setDataBreakpoints", json!({ "breakpoints": [{ "dataId": info["dataId"] }] }));
    assert_eq!(client.go("continue", &json!(1))["reason"], "data breakpoint");
}

#[test]
fn a_message_out_of_order_or_unknown_is_refused_with_the_remedy() {
    let mut client = Client::new(&KERNELS[0]);
    let refused = |client: &mut Client, command: &str| {
        let (response, events) = client.send(command, json!({}));
        assert_eq!((&response["success"], events.len()), (&json!(false), 0), "{response}");
        assert_eq!(response["message"], response["body"]["error"]["format"]);
        response["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(&mut client, "threads"), "`threads` was sent before `initialize`");
    client.ask("initialize", json!({}));
    assert_eq!(refused(&mut client, "threads"), "`threads` was sent before `launch`");
    assert!(refused(&mut client, "initialize").contains("open another connection"));
    assert_eq!(refused(&mut client, "attach"), "cannot attach; use `launch` with a program");
    assert_eq!(
        refused(&mut client, "setVariables"),
        "`setVariables` is not supported, did you mean `setVariable`?"
    );
    client.ask("launch", json!({}));
    assert!(refused(&mut client, "launch").contains("was already sent"));
    assert_eq!(refused(&mut client, "continue"), "`continue` was sent before `configurationDone`");
    client.ask("configurationDone", json!({}));
    assert!(refused(&mut client, "configurationDone").contains("use `continue`"));
    assert_eq!(refused(&mut client, "exceptionInfo"), "the program has not trapped");
    assert_eq!(refused(&mut client, "stackTrace"), "unknown thread null");
    assert_eq!(refused(&mut client, "scopes"), "unknown frame null");
    assert!(refused(&mut client, "variables").contains("references end when the launch continues"));
    client.ask("terminate", json!({}));
    assert!(
        refused(&mut client, "continue").contains("was sent after the end of the session; send `disconnect`")
    );
    client.ask("disconnect", json!({}));
    let mut messages = Vec::new();
    let event = json!({ "seq": 9, "type": "event" });
    client.adapter.handle(&event, &mut |_| Err("no".to_owned()), &mut |message| messages.push(message));
    assert_eq!(messages[0]["success"], false);
}

#[test]
fn arguments_of_the_wrong_kind_or_far_away_are_answered() {
    let wrong =
        [json!(null), json!(-1), json!(u64::MAX), json!(i64::MIN), json!("x"), json!([{}]), json!(0.5)];
    let names = [
        "threadId",
        "frameId",
        "variablesReference",
        "memoryReference",
        "offset",
        "count",
        "instructionOffset",
        "instructionCount",
        "targetId",
        "sourceReference",
        "name",
        "value",
        "data",
        "startFrame",
        "levels",
        "start",
    ];
    for kernel in &KERNELS {
        let mut client = Client::started(kernel);
        client.ask("configurationDone", json!({}));
        for command in [
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
            "evaluate",
            "stepInTargets",
            "stepIn",
            "stepBack",
            "pause",
        ] {
            for value in &wrong {
                let mut arguments = json!({
                    "breakpoints": [value, { "offset": value, "line": value, "instructionReference": "0x8", "dataId": value }],
                    "filters": [value], "memoryReference": "0x8", "expression": value,
                });
                client.send(command, arguments.clone());
                for name in names {
                    arguments[name] = value.clone();
                    client.send(command, arguments.clone());
                }
            }
        }
    }
}

/// Returns the scopes of a thread's top frame.
fn scopes(client: &mut Client, thread: &Value) -> Vec<Value> {
    let frames = client.ask("stackTrace", json!({ "threadId": thread }));
    let body = client.ask("scopes", json!({ "frameId": frames["stackFrames"][0]["id"] }));
    body["scopes"].as_array().unwrap().clone()
}

/// Returns whether a lane of the top frame is active, by the name of its scope.
fn is_active(client: &mut Client, thread: &Value, lane: usize) -> bool {
    let active = format!("lane {lane} (active)");
    scopes(client, thread).iter().any(|scope| scope["name"] == active.as_str())
}

#[test]
fn a_step_into_a_lane_follows_it_across_both_sides_of_an_if() {
    // The step of a wave leaves a lane waiting at a branch (ROCgdb issue 181). The step of a lane ends where the lane
    // runs.
    for kernel in &KERNELS {
        let what = format!("{} {}", kernel.isa, kernel.name);
        let mut client = Client::started(kernel);
        client.ask("setExceptionBreakpoints", json!({ "filters": ["diverge"] }));
        client.ask("configurationDone", json!({}));
        let thread = client.go("continue", &json!(1))["threadId"].clone();
        client.ask("setExceptionBreakpoints", json!({ "filters": [] }));
        let frames = client.ask("stackTrace", json!({ "threadId": thread }));
        let targets = client.ask("stepInTargets", json!({ "frameId": frames["stackFrames"][0]["id"] }));
        let targets = targets["targets"].as_array().unwrap().clone();
        let idle = targets.iter().position(|target| !target["label"].as_str().unwrap().ends_with("(active)"));
        let active =
            targets.iter().position(|target| target["label"].as_str().unwrap().ends_with("(active)"));
        let (idle, active) = (idle.unwrap(), active.unwrap());
        for lane in [active, idle] {
            let arguments = json!({ "threadId": thread, "targetId": targets[lane]["id"] });
            let (response, events) = client.send("stepIn", arguments);
            assert_eq!(response["success"], true, "{what}: {response}");
            assert_eq!(events[0]["body"]["reason"], "step", "{what}: {events:?}");
            assert!(is_active(&mut client, &thread, lane), "{what}: lane {lane}");
        }
    }
}

#[test]
fn registers_and_memory_change_and_stay_changed_when_their_place_is_passed_again() {
    for kernel in &KERNELS {
        let what = format!("{} {}", kernel.isa, kernel.name);
        let mut client = Client::started(kernel);
        client.ask("configurationDone", json!({}));
        client.go("next", &json!(1));
        let register = |client: &mut Client| {
            let lane = scopes(client, &json!(1))[0]["variablesReference"].clone();
            let body = client.ask("variables", json!({ "variablesReference": lane }));
            (lane, body["variables"][0].clone())
        };
        let (lane, first) = register(&mut client);
        let name = first["name"].clone();
        let change = json!({ "variablesReference": lane, "name": name, "value": "0x2a" });
        assert!(
            client.ask("setVariable", change)["value"].as_str().unwrap().starts_with("0x0000002a"),
            "{what}"
        );
        client.go("stepBack", &json!(1));
        client.go("next", &json!(1));
        let (lane, again) = register(&mut client);
        assert!(again["value"].as_str().unwrap().starts_with("0x0000002a"), "{what}: {again}");
        let (refused, _) =
            client.send("setVariable", json!({ "variablesReference": lane, "name": name, "value": "many" }));
        assert!(refused["message"].as_str().unwrap().contains("found `many`"), "{what}: {refused}");

        let all = scopes(&mut client, &json!(1));
        let memory = all.iter().find(|scope| scope["name"] == "memory").unwrap();
        let spaces = client.ask("variables", json!({ "variablesReference": memory["variablesReference"] }));
        for space in spaces["variables"].as_array().unwrap() {
            let place = |count: u32| json!({ "memoryReference": space["memoryReference"], "offset": 0x20, "count": count });
            if client.ask("readMemory", place(4))["unreadableBytes"] != 0 {
                continue;
            }
            let mut change = place(4);
            change["data"] = json!("AQIDBA==");
            let (response, _) = client.send("writeMemory", change);
            if response["success"] == true {
                assert_eq!(client.ask("readMemory", place(4))["data"], "AQIDBA==", "{what}: {space}");
            }
        }
    }
}

#[test]
fn a_breakpoint_counts_its_hits_the_same_coming_by_again() {
    let kernel =
        KERNELS.iter().find(|kernel| kernel.isa.name() == "tesla" && kernel.name == "mandel").unwrap();
    let mut client = Client::started(kernel);
    let wanted =
        |hits: &str| json!({ "breakpoints": [{ "instructionReference": "0xb0", "hitCondition": hits }] });
    let set = client.ask("setInstructionBreakpoints", wanted("often"));
    assert!(set["breakpoints"][0]["message"].as_str().unwrap().contains("such as 3, >= 3 or % 3"), "{set}");
    client.ask("setInstructionBreakpoints", wanted("% 3"));
    client.ask("configurationDone", json!({}));
    let times = |client: &mut Client, command: &str| {
        client.go(command, &json!(1))["text"].as_str().unwrap().rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(
        ["continue", "continue", "reverseContinue", "continue"].map(|go| times(&mut client, go)),
        ["3", "6", "3", "6"]
    );
}

/// Returns a kernel of Tesla with labels and a loop.
fn collatz() -> &'static Kernel {
    find(Isa::Tesla, "collatz").unwrap()
}

/// Returns the first label of a source.
fn first_label(source: &str) -> &str {
    let label = source.lines().find_map(|line| line.strip_suffix(':').filter(|name| !name.contains(' ')));
    label.expect("the kernel has a label")
}

/// Fault 6: breakpoints in the user's own file were refused.
#[test]
fn a_breakpoint_binds_in_the_users_own_source_and_the_frame_is_there() {
    for kernel in &KERNELS {
        let what = format!("{} {}", kernel.isa, kernel.name);
        let mut client = Client::with_source(kernel);
        // Each line is bound to itself or to the next line with an instruction. No instruction follows the last line.
        let count = kernel.source.lines().count();
        let all: Vec<Value> = (1..=count + 1).map(|line| json!({ "line": line })).collect();
        let set = client.set_lines(json!(all));
        let bound: Vec<usize> = set
            .iter()
            .filter(|set| set["verified"] == true)
            .map(|set| set["line"].as_u64().unwrap() as usize)
            .collect();
        assert!(bound.len() > 5 && bound.is_sorted(), "{what}: {bound:?}");
        assert!(bound.iter().enumerate().all(|(at, line)| *line > at), "{what}: {bound:?}");
        assert_eq!(set[count]["verified"], false, "{what}");
        let comment = set.iter().position(|set| set["message"].is_string()).unwrap();
        assert!(
            set[comment]["message"].as_str().unwrap().contains("has no instruction; the stop is at line "),
            "{what}"
        );
        // `breakpointLocations` lists the lines at which a breakpoint is not moved.
        let places = client.ask(
            "breakpointLocations",
            json!({ "source": { "path": "kernel.s" }, "line": 1, "endLine": count }),
        );
        let places: Vec<u64> = places["breakpoints"]
            .as_array()
            .unwrap()
            .iter()
            .map(|place| place["line"].as_u64().unwrap())
            .collect();
        let own: Vec<u64> = set
            .iter()
            .enumerate()
            .filter(|(at, set)| set["line"] == json!(at + 1))
            .map(|(at, _)| at as u64 + 1)
            .collect();
        assert_eq!(places, own, "{what}");
        let line = own[2];
        client.set_lines(json!([{ "line": line }]));
        client.ask("configurationDone", json!({}));
        let stopped = client.go("continue", &json!(1));
        assert_eq!(stopped["reason"], "breakpoint", "{what}: {stopped}");
        let frames = client.ask("stackTrace", json!({ "threadId": stopped["threadId"] }));
        let frame = &frames["stackFrames"][0];
        assert_eq!((&frame["line"], &frame["source"]["path"]), (&json!(line), &json!("kernel.s")), "{what}");
        // No breakpoint is set in another file, and the existing breakpoints stay.
        let other = client.ask(
            "setBreakpoints",
            json!({ "source": { "path": "/other.s" }, "breakpoints": [{ "line": 3 }] }),
        );
        let message = other["breakpoints"][0]["message"].as_str().unwrap();
        assert!(message.contains("`/other.s` is not the source of this program"), "{message}");
        assert_eq!(client.go("continue", &json!(1))["reason"], "breakpoint", "{what}");
    }
}

/// Fault 16: with `stopAtEnd` the stack trace was empty, and nothing could be read.
#[test]
fn after_the_end_there_are_frames_registers_and_memory() {
    for kernel in &KERNELS {
        let what = format!("{} {}", kernel.isa, kernel.name);
        let mut client = Client { has_source: true, ..Client::new(kernel) };
        client.ask("initialize", json!({}));
        client.ask("launch", json!({ "stopAtEnd": true }));
        client.ask("configurationDone", json!({}));
        let stopped = client.go("continue", &json!(1));
        assert!(stopped["text"].as_str().unwrap().contains("the launch has ended"), "{what}: {stopped}");
        let thread = stopped["threadId"].clone();
        let frames = client.ask("stackTrace", json!({ "threadId": thread }));
        let frame = &frames["stackFrames"][0];
        assert!(frame["name"].as_str().unwrap().starts_with("ended after "), "{what}: {frames}");
        assert!(frame["line"].as_u64().unwrap() > 1, "{what}: {frame}");
        let scopes = scopes(&mut client, &thread);
        let variables =
            client.ask("variables", json!({ "variablesReference": scopes[0]["variablesReference"] }));
        assert!(!variables["variables"].as_array().unwrap().is_empty(), "{what}");
        let memory = scopes.iter().find(|scope| scope["name"] == "memory").unwrap();
        let spaces = client.ask("variables", json!({ "variablesReference": memory["variablesReference"] }));
        for space in spaces["variables"].as_array().unwrap() {
            let place = json!({ "memoryReference": space["memoryReference"], "count": 4 });
            let read = client.ask("readMemory", place);
            assert!(space["name"] != "s" || read["unreadableBytes"] == 0, "{what}: {space} {read}");
        }
        assert_eq!(client.go("stepBack", &thread)["reason"], "step", "{what}");
    }
}

/// Fault 21: `$r3@5`, the debugger's own syntax, was refused in a watch.
#[test]
fn a_watch_takes_lanes_formulas_memory_and_the_table() {
    let mut client = Client::with_source(collatz());
    client.ask("configurationDone", json!({}));
    for _ in 0..6 {
        client.go("next", &json!(1));
    }
    let result = |value: Value| value["result"].as_str().unwrap().to_owned();
    client.ask("setExpression", json!({ "expression": "$r3@5", "value": "41" }));
    assert!(result(client.watch("$r3@5")).starts_with("0x00000029  41 "));
    assert!(result(client.watch("$r3@5 + 1")).starts_with("0x0000002a  42 "));
    let register = client.watch("$r3");
    assert!(result(register.clone()).ends_with("(lane 0)"), "{register}");
    let lanes = client.ask("variables", json!({ "variablesReference": register["variablesReference"] }));
    assert!(lanes["variables"][5]["value"].as_str().unwrap().starts_with("0x00000029"), "{lanes}");
    let memory = client.watch("s[0x10]");
    assert!(memory["memoryReference"].is_string(), "{memory}");
    client.ask("setExpression", json!({ "expression": "s[0x10]", "value": "0x77" }));
    assert!(result(client.watch("s[0x10]")).starts_with("0x00000077"));
    let table = client.watch("lanes");
    assert!(result(table.clone()).contains("32 lanes, active: 0-31"), "{table}");
    let rows = client.ask("variables", json!({ "variablesReference": table["variablesReference"] }));
    let fifth = &rows["variables"][5];
    assert!(fifth["value"].as_str().unwrap().contains("$r3 00000029"), "{fifth}");
    let registers = client.ask("variables", json!({ "variablesReference": fifth["variablesReference"] }));
    let third = registers["variables"].as_array().unwrap().iter().find(|each| each["name"] == "$r3").unwrap();
    assert!(third["value"].as_str().unwrap().starts_with("0x00000029"), "{third}");
    assert!(scopes(&mut client, &json!(1)).iter().any(|scope| scope["name"] == "lanes by registers"));
    // Flags are not printed as floats.
    let flags = client.watch("$c0@0")["result"].as_str().unwrap().to_owned();
    assert!(!flags.contains("e-"), "{flags}");
    for wrong in ["$r3@99", "$q", "1 +", ""] {
        let (response, _) = client.send("evaluate", json!({ "expression": wrong, "context": "watch" }));
        assert_eq!(response["success"], false, "{wrong}");
    }
    // The console accepts commands, and a formula alone.
    let console = client.ask("evaluate", json!({ "expression": "$r3@5 * 2", "context": "repl" }));
    assert!(result(console).starts_with("0x00000052  82 "));
    let console = client.ask("evaluate", json!({ "expression": "p $r3@5", "context": "repl" }));
    assert!(result(console).starts_with("$r3@5  0x00000029"));
}

#[test]
fn a_log_point_writes_values_instead_of_stopping() {
    let mut client = Client::with_source(collatz());
    let line = client.line("set");
    let set = client.set_lines(json!([
        { "line": line, "logMessage": "n is {$r3@1}, lanes {lanes}", "condition": "step < 200" },
        { "line": line, "logMessage": "{$q}" },
    ]));
    assert_eq!((&set[0]["verified"], &set[1]["verified"]), (&json!(true), &json!(false)), "{set:?}");
    client.ask("configurationDone", json!({}));
    let (response, events) = client.send("continue", json!({ "threadId": 1 }));
    assert_eq!(response["success"], true);
    let texts: Vec<&str> = events
        .iter()
        .filter(|event| event["event"] == "output")
        .map(|event| event["body"]["output"].as_str().unwrap())
        .collect();
    assert!(texts.len() > 2 && texts[0].starts_with("n is "), "{texts:?}");
    assert!(texts[0].contains("lanes 0-31\n"), "{texts:?}");
    assert!(events.iter().all(|event| event["event"] != "stopped"), "a log point does not stop");
}

#[test]
fn a_restart_binds_the_lines_of_an_edited_source_again() {
    let mut client = Client::with_source(collatz());
    let line = client.line("set");
    client.set_lines(json!([{ "line": line }]));
    client.ask("configurationDone", json!({}));
    client.go("continue", &json!(1));
    let before = client.top(&json!(1));
    client.go("continue", &json!(1));
    client.lines_before = 2;
    let (response, events) = client.send("restart", json!({}));
    assert_eq!(response["success"], true, "{response}");
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["breakpoint", "stopped", "reconvergeLanes"]);
    assert_eq!(events[1]["body"]["reason"], "entry");
    // The line now has the instruction that was two lines before.
    client.go("continue", &json!(1));
    assert_ne!(client.top(&json!(1)), before);
    let frames = client.ask("stackTrace", json!({ "threadId": 1 }));
    assert!(frames["stackFrames"][0]["line"].as_u64().unwrap() >= line as u64);
}

#[test]
fn goto_goes_ahead_and_back_to_a_line() {
    let mut client = Client::with_source(collatz());
    client.ask("configurationDone", json!({}));
    let line = client.line("set");
    let targets = |client: &mut Client| {
        client.ask("gotoTargets", json!({ "source": { "path": "kernel.s" }, "line": line }))["targets"]
            .clone()
    };
    let all = targets(&mut client);
    // The machines cannot jump. A client shows the labels, which state that the code between is executed.
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
    for (target, what) in all.as_array().unwrap().iter().zip(["run on to", "go back to"]) {
        let label = target["label"].as_str().unwrap();
        assert!(label.starts_with(&format!("{what} kernel.s:{line}, at 0x")), "{label}");
    }
    let go = |client: &mut Client, id: &Value| {
        let (response, events) = client.send("goto", json!({ "threadId": 1, "targetId": id }));
        assert_eq!(response["success"], true, "{response}");
        events.into_iter().find(|event| event["event"] == "stopped").unwrap()["body"].clone()
    };
    let line_of = |client: &mut Client| {
        client.ask("stackTrace", json!({ "threadId": 1 }))["stackFrames"][0]["line"].as_u64().unwrap()
            as usize
    };
    assert_eq!(go(&mut client, &all[0]["id"])["reason"], "goto");
    assert_eq!(line_of(&mut client), line);
    client.go("next", &json!(1));
    assert_ne!(line_of(&mut client), line);
    let all = targets(&mut client);
    assert_eq!(go(&mut client, &all[1]["id"])["reason"], "goto");
    assert_eq!(line_of(&mut client), line);
    let (refused, _) = client.send("goto", json!({ "threadId": 1, "targetId": 9 }));
    assert!(refused["message"].as_str().unwrap().contains("`gotoTargets` lists them"), "{refused}");
}

#[test]
fn the_console_completes_commands_registers_and_labels() {
    let mut client = Client::with_source(collatz());
    client.ask("configurationDone", json!({}));
    let completed = |client: &mut Client, text: &str| {
        let body = client.ask("completions", json!({ "text": text, "column": text.len() + 1 }));
        body["targets"].as_array().unwrap().clone()
    };
    let commands = completed(&mut client, "reg");
    assert_eq!(commands, [json!({ "label": "registers", "start": 0, "length": 3 })]);
    let label = first_label(collatz().source);
    let labels = completed(&mut client, &format!("break {}", &label[..1]));
    assert!(labels.iter().any(|target| target["label"] == label), "{labels:?}");
    assert!(completed(&mut client, "p $r1").iter().any(|target| target["start"] == 2));
}

#[test]
fn an_error_message_has_no_colours() {
    let mut adapter = Adapter::default();
    let mut messages = Vec::new();
    let mut open = |_: &LaunchRequest| Err("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m no `--x`".to_owned());
    for command in ["initialize", "launch"] {
        let request = json!({ "seq": 1, "type": "request", "command": command, "arguments": {} });
        adapter.handle(&request, &mut open, &mut |message| messages.push(message));
    }
    assert_eq!(messages[1]["message"], "error: no `--x`");
    assert_eq!(messages[1]["body"]["error"]["format"], "error: no `--x`");
}

#[test]
fn a_formula_that_fails_in_the_console_says_why() {
    let mut client = Client::started(collatz());
    client.ask("configurationDone", json!({}));
    let mut refused = |text: &str| {
        let (response, _) = client.send("evaluate", json!({ "expression": text, "context": "repl" }));
        response["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused("1/0"), "division by zero");
    assert!(refused("$r1 + ").contains("expected a register"));
    assert!(refused("stpe").contains("did you mean `step`"));
}

#[test]
fn a_launch_whose_last_lanes_are_taken_away_terminates() {
    let mut client = Client::started(collatz());
    client.ask("configurationDone", json!({}));
    // Disables all warps of the first block. The other blocks run.
    for group in 0..8 {
        for text in [format!("group {group}"), "set mask none".to_owned()] {
            client.ask("evaluate", json!({ "expression": text, "context": "repl" }));
        }
    }
    let (_, events) = client.send("continue", json!({ "threadId": 1 }));
    assert!(events.iter().any(|event| event["event"] == "terminated"), "{events:?}");
}

/// Fault 6: frames, the disassembly and the console had the labels of the listing (`bra L60`).
#[test]
fn frames_disassembly_and_console_have_the_text_of_the_users_own_source() {
    let mut client = Client::with_source(collatz());
    client.ask("configurationDone", json!({}));
    let source: Vec<String> = collatz().source.lines().map(str::to_owned).collect();
    let mut branches = 0;
    for _ in 0..40 {
        let frames = client.ask("stackTrace", json!({ "threadId": 1 }));
        let frame = &frames["stackFrames"][0];
        let line = frame["line"].as_u64().unwrap() as usize;
        let code =
            source[line - 1].split(';').next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let name = frame["name"].as_str().unwrap();
        assert!(name.ends_with(&format!(")  {code}")), "{name}: {code}");
        branches += usize::from(code.contains("bra ") || code.contains("joinat "));
        let here = json!({ "memoryReference": frame["instructionPointerReference"], "instructionCount": 1 });
        let shown = client.ask("disassemble", here)["instructions"][0].clone();
        assert_eq!((&shown["instruction"], &shown["line"]), (&json!(code), &json!(line)), "{shown}");
        let (response, _) = client.send("evaluate", json!({ "expression": "where", "context": "repl" }));
        assert!(response["body"]["result"].as_str().unwrap().contains(&format!(", kernel.s:{line}  {code}")));
        client.go("next", &json!(1));
    }
    assert!(branches >= 3, "{branches}");
}

/// Arguments of the wrong type and unknown arguments were ignored.
#[test]
fn launch_arguments_of_a_wrong_type_or_name_are_refused_with_what_fits() {
    let mut client = Client::new(&KERNELS[0]);
    client.ask("initialize", json!({}));
    for (arguments, wanted) in [
        (
            json!({ "stopOnEntry": "no" }),
            "launch argument `stopOnEntry`: expected true or false, found \"no\"",
        ),
        (json!({ "program": 7 }), "launch argument `program`: expected a text, found 7"),
        (json!({ "lanes": "many" }), "launch argument `lanes`: expected a whole number, found \"many\""),
        (json!({ "lanes": -1 }), "launch argument `lanes`: expected a whole number, found -1"),
        (
            json!({ "block": [8, 8] }),
            "launch argument `block`: expected a whole number or a text such as \"8x8\"",
        ),
        (json!({ "args": ["--block", 12] }), "launch argument `args`: expected a list of texts"),
        (json!({ "buf": { "a": 1 } }), "launch argument `buf`: expected a list of texts"),
        (json!({ "stopOnEnty": true }), "unknown launch argument `stopOnEnty`, did you mean `stopOnEntry`?"),
        (json!({ "progam": "x.s" }), "unknown launch argument `progam`, did you mean `program`?"),
        (json!({ "qqqqqqqq": 1 }), "expected one of program, machine, chip"),
        (json!([1]), "launch arguments: expected an object, found [1]"),
    ] {
        let (response, _) = client.send("launch", arguments.clone());
        let message = response["message"].as_str().unwrap_or_else(|| panic!("{arguments} is taken"));
        assert!(message.contains(wanted), "{arguments}: {message}");
    }
    // Names that editors use for themselves are accepted.
    let own = json!({ "type": "reconverge", "request": "launch", "name": "x", "__sessionId": "1", "preLaunchTask": "make" });
    assert_eq!(client.send("launch", own).0["success"], true);
}

#[test]
fn launch_arguments_are_options_of_run() {
    let read = |arguments: Value| LaunchRequest::read(&arguments).unwrap();
    let request = read(json!({
        "program": "x.s", "block": 12, "grid": "4x2", "buf": ["a=in.npy", "out=u32[12]"], "machine": "tesla",
        "args": ["--shared", "512"], "stopAtEnd": true, "lanes": null,
    }));
    let options =
        ["--isa=tesla", "--grid=4x2", "--block=12", "--buf=a=in.npy", "--buf=out=u32[12]", "--shared", "512"];
    assert_eq!(request.options, options);
    assert_eq!(
        (request.program.as_deref(), request.stop_at_end, request.stop_on_entry),
        (Some("x.s"), true, true)
    );
    let alone = read(json!({ "program": "x.s" }));
    assert_eq!((alone.options.len(), alone.stop_on_entry, alone.no_debug), (0, true, false));
    // A message about options states the corresponding arguments.
    let message = in_arguments("add --buf n=VALUES for a buffer or --arg n=VALUE");
    assert!(message.ends_with("; in a launch request --buf is `buf`, --arg is `arg`"), "{message}");
    assert_eq!(in_arguments("no --buffer"), "no --buffer");
    // One row for each argument, and each has an effect.
    for row in &ARGUMENTS {
        let values = [json!("0"), json!(1), json!(true), json!(false)];
        let changes = values.into_iter().any(|value| {
            LaunchRequest::read(&json!({ row.name: value }))
                .is_ok_and(|read| read != LaunchRequest::read(&json!({})).unwrap())
        });
        assert!(changes, "{}", row.name);
    }
}

#[test]
fn the_manifest_of_the_extension_and_the_page_have_each_launch_argument() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let manifest: Value = serde_json::from_str(&read("editors/vscode/package.json")).unwrap();
    let schema = schema();
    assert_eq!(
        manifest["contributes"]["debuggers"][0]["configurationAttributes"]["launch"], schema,
        "`reconverge debug --dap-schema` prints it"
    );
    let page = read("docs/debugger.md");
    for row in &ARGUMENTS {
        let option = row.option.map(|option| format!("`{option}`")).unwrap_or_default();
        let line = format!("| `{}` | {} | {option} | {} |", row.name, row.kind.name(), row.help);
        assert!(page.contains(&line), "docs/debugger.md: {line}");
    }
}

/// An unbalanced brace was accepted silently, and braces could not be escaped.
#[test]
fn braces_of_log_points_are_balanced_or_doubled() {
    let mut client = Client::with_source(collatz());
    let line = client.line("set");
    for (text, wanted) in [
        ("a } b", "`a } b`: unmatched `}`; write `}}` for a brace"),
        ("a { b", "`a { b`: unmatched `{`; write `{{` for a brace"),
        ("{}", "a formula is missing between the braces"),
        ("{$q}", "`$q` is not a register"),
    ] {
        let set = client.set_lines(json!([{ "line": line, "logMessage": text }]));
        assert_eq!(
            (&set[0]["verified"], set[0]["message"].as_str().unwrap().contains(wanted)),
            (&json!(false), true),
            "{set:?}"
        );
    }
    let set = client.set_lines(json!([{ "line": line, "logMessage": "{{{step}}} is {{step}}" }]));
    assert_eq!(set[0]["verified"], true, "{set:?}");
    client.ask("configurationDone", json!({}));
    let (_, events) = client.send("continue", json!({ "threadId": 1 }));
    let output = events.iter().find(|event| event["event"] == "output").unwrap()["body"]["output"].clone();
    let step = output.as_str().unwrap().strip_prefix('{').and_then(|rest| rest.strip_suffix("} is {step}\n"));
    assert!(step.is_some_and(|step| step.parse::<u64>().is_ok()), "{output}");
}

#[test]
fn a_launch_without_debugging_passes_breakpoints() {
    let mut client = Client { has_source: true, ..Client::new(collatz()) };
    client.ask("initialize", json!({}));
    client.ask("launch", json!({ "noDebug": true }));
    let line = client.line("set");
    assert_eq!(client.set_lines(json!([{ "line": line }]))[0]["verified"], true);
    let (_, events) = client.send("configurationDone", json!({}));
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["exited", "terminated"]);
}
