//! A session of the Debug Adapter Protocol on every machine, by the rules that its clients rely on.

use std::collections::HashSet;

use reconverge_simt::Options;
use reconverge_workbench::debugger::Debugger;
use reconverge_workbench::debugger::dap::Adapter;
use reconverge_workbench::kernels::{KERNELS, Kernel};
use serde_json::{Value, json};

/// A client that sends requests to an adapter.
struct Client {
    adapter: Adapter,
    kernel: &'static Kernel,
    sequence: u64,
}

impl Client {
    fn new(kernel: &'static Kernel) -> Client {
        Client { adapter: Adapter::default(), kernel, sequence: 0 }
    }

    /// A request; gives the response and the events behind it.
    fn send(&mut self, command: &str, arguments: Value) -> (Value, Vec<Value>) {
        self.sequence += 1;
        let request =
            json!({ "seq": self.sequence, "type": "request", "command": command, "arguments": arguments });
        let kernel = self.kernel;
        let mut messages = Vec::new();
        let mut open = |_: &Value| {
            let opened = kernel.open().map_err(|error| error.to_string())?;
            let session = kernel.prepare(1 << 14).map_err(|error| error.to_string())?;
            Debugger::new(&session, &opened.target, &opened.image.programs[0], &Options::default())
                .map_err(|error| error.to_string())
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

    /// A request that moves; gives the `stopped` event.
    fn go(&mut self, command: &str, thread: &Value) -> Value {
        let (response, events) = self.send(command, json!({ "threadId": thread }));
        assert_eq!(response["success"], true, "{command}: {response}");
        let stopped = events.into_iter().find(|event| event["event"] == "stopped");
        stopped.unwrap_or_else(|| panic!("{command} does not stop"))["body"].clone()
    }

    fn started(kernel: &'static Kernel) -> Client {
        let mut client = Client::new(kernel);
        client.ask("initialize", json!({ "adapterID": "reconverge" }));
        let (response, events) = client.send("launch", json!({}));
        assert_eq!(response["success"], true, "{response}");
        assert_eq!(events[0]["event"], "initialized");
        client
    }

    /// The address of the frame on top of a thread.
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
            // The spelling is the frame's: clients compare text.
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
    assert_eq!(refused(&mut client, "threads"), "`threads` comes before `initialize`");
    client.ask("initialize", json!({}));
    assert_eq!(refused(&mut client, "threads"), "`threads` comes before `launch`");
    assert!(refused(&mut client, "initialize").contains("a connection is one session"));
    assert_eq!(refused(&mut client, "attach"), "there is nothing to attach to: `launch` names a program");
    assert_eq!(
        refused(&mut client, "setVariables"),
        "`setVariables` is not supported, did you mean `setVariable`?"
    );
    client.ask("launch", json!({}));
    assert!(refused(&mut client, "launch").contains("a second time"));
    assert_eq!(refused(&mut client, "continue"), "`continue` comes before `configurationDone`");
    client.ask("configurationDone", json!({}));
    assert!(refused(&mut client, "configurationDone").contains("`continue` goes on"));
    assert_eq!(refused(&mut client, "exceptionInfo"), "the program has not trapped");
    assert_eq!(refused(&mut client, "stackTrace"), "there is no thread null");
    assert_eq!(refused(&mut client, "scopes"), "there is no frame null");
    assert!(refused(&mut client, "variables").contains("references end when the launch goes on"));
    client.ask("terminate", json!({}));
    assert!(refused(&mut client, "continue").contains("comes after the end of the session: `disconnect`"));
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

/// The scopes of the frame on top of a thread.
fn scopes(client: &mut Client, thread: &Value) -> Vec<Value> {
    let frames = client.ask("stackTrace", json!({ "threadId": thread }));
    let body = client.ask("scopes", json!({ "frameId": frames["stackFrames"][0]["id"] }));
    body["scopes"].as_array().unwrap().clone()
}

/// Whether a lane of the frame on top is active, by the name of its scope.
fn is_active(client: &mut Client, thread: &Value, lane: usize) -> bool {
    let active = format!("lane {lane} (active)");
    scopes(client, thread).iter().any(|scope| scope["name"] == active.as_str())
}

#[test]
fn a_step_into_a_lane_follows_it_across_both_sides_of_an_if() {
    // The step of a wave leaves a lane behind at a branch (ROCgdb issue 181); the step of a lane ends where the lane runs.
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
        assert!(refused["message"].as_str().unwrap().contains("`many` is no number"), "{what}: {refused}");

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
    assert!(set["breakpoints"][0]["message"].as_str().unwrap().contains("3, >= 3 or % 3 does"), "{set}");
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
