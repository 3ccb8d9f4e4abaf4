//! The language server, tested through its protocol by a client on standard input and output.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use reconverge_testkit::shared;
use serde_json::{Value, json};

/// A client with its server.
struct Client {
    server: Child,
    input: ChildStdin,
    output: Receiver<Value>,
    /// Notifications that the test has not read yet.
    notices: VecDeque<Value>,
    number: i64,
}

/// Maximum time for an answer, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

impl Client {
    /// Starts a language server.
    fn start(arguments: &[&str]) -> Client {
        Client::of(&[&["lsp"], arguments].concat())
    }

    /// Starts a command that exchanges messages on standard input and output.
    fn of(arguments: &[&str]) -> Client {
        let mut server = Command::new(env!("CARGO_BIN_EXE_reconverge"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the server");
        let input = server.stdin.take().expect("its input");
        let mut from = BufReader::new(server.stdout.take().expect("its output"));
        let (sender, output) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut from) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Client { server, input, output, notices: VecDeque::new(), number: 0 }
    }

    /// Starts a server and initializes it.
    fn ready(arguments: &[&str], options: Value) -> Client {
        let mut client = Client::start(arguments);
        let params = json!({
            "processId": null, "rootUri": null, "capabilities": { "general": { "positionEncodings": ["utf-8", "utf-16"] } },
            "initializationOptions": options,
        });
        let answer = client.ask("initialize", params);
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-8");
        client.tell("initialized", json!({}));
        client
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).and_then(|()| self.input.flush()).expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        self.send_bytes(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request and returns its number.
    fn request(&mut self, method: &str, params: Value) -> i64 {
        self.number += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.number, "method": method, "params": params }));
        self.number
    }

    fn next(&mut self) -> Value {
        self.output.recv_timeout(PATIENCE).expect("a message of the server")
    }

    /// Returns the response to a request.
    fn response(&mut self, number: i64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == number {
                return message;
            }
            self.notices.push_back(message);
        }
    }

    /// Returns the parameters of a method's next notification.
    fn notice(&mut self, method: &str) -> Value {
        loop {
            let message = self.next();
            if message["method"] == method {
                return message["params"].clone();
            }
            self.notices.push_back(message);
        }
    }

    /// Sends a request and returns its result.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let number = self.request(method, params);
        let response = self.response(number);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Sends a request and returns its error.
    fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let number = self.request(method, params);
        let response = self.response(number);
        let error = &response["error"];
        (error["code"].as_i64().expect("an error"), error["message"].as_str().unwrap_or_default().to_owned())
    }

    fn open(&mut self, uri: &str, language: &str, text: &str) -> Vec<Value> {
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        self.messages(uri, 1)
    }

    fn change(&mut self, uri: &str, version: i64, changes: Value) -> Vec<Value> {
        let params = json!({ "textDocument": { "uri": uri, "version": version }, "contentChanges": changes });
        self.tell("textDocument/didChange", params);
        self.messages(uri, version)
    }

    /// Returns the diagnostics of a version of a text.
    fn messages(&mut self, uri: &str, version: i64) -> Vec<Value> {
        let fits = |message: &Value| {
            let params = &message["params"];
            message["method"] == "textDocument/publishDiagnostics"
                && params["uri"] == uri
                && params["version"] == version
        };
        if let Some(at) = self.notices.iter().position(fits) {
            let found = self.notices.remove(at).unwrap_or_default();
            return found["params"]["diagnostics"].as_array().cloned().unwrap_or_default();
        }
        loop {
            let message = self.next();
            if fits(&message) {
                return message["params"]["diagnostics"].as_array().cloned().unwrap_or_default();
            }
            self.notices.push_back(message);
        }
    }

    /// Sends a request of the Debug Adapter Protocol, and waits for an event or for the response to a command.
    fn debug(&mut self, command: &str, arguments: Value, until: (&str, &str)) -> Value {
        self.number += 1;
        self.send(
            &json!({ "seq": self.number, "type": "request", "command": command, "arguments": arguments }),
        );
        let (key, name) = until;
        loop {
            let message = self.next();
            if message[key] == name {
                return message["body"].clone();
            }
            assert_ne!(message["success"], false, "{message}");
        }
    }

    /// Shuts the server down.
    fn finish(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        let (code, why) = self.refused("textDocument/hover", json!({}));
        assert!(code == -32600 && why.contains("after `shutdown`"), "{code} {why}");
        self.tell("exit", Value::Null);
        assert_eq!(self.server.wait().expect("the end").code(), Some(0));
    }
}

fn read(from: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", bytes)) => length = bytes.parse::<u64>().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut bytes = Vec::new();
    from.take(length?).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns the position of a part of a text.
fn at(text: &str, part: &str) -> Value {
    let offset = text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
    let line = text[..offset].matches('\n').count();
    let column = offset - text[..offset].rfind('\n').map_or(0, |end| end + 1);
    json!({ "line": line, "character": column })
}

/// Returns the text after the protocol's edits, which count bytes.
fn edited(text: &str, edits: &Value) -> String {
    let offset = |position: &Value| {
        let line = position["line"].as_u64().unwrap() as usize;
        let start: usize = text.split('\n').take(line).map(|line| line.len() + 1).sum();
        start + position["character"].as_u64().unwrap() as usize
    };
    let mut edits: Vec<(usize, usize, &str)> = edits
        .as_array()
        .unwrap()
        .iter()
        .map(|edit| {
            (
                offset(&edit["range"]["start"]),
                offset(&edit["range"]["end"]),
                edit["newText"].as_str().unwrap(),
            )
        })
        .collect();
    edits.sort_unstable();
    let mut out = text.to_owned();
    for (start, end, new) in edits.into_iter().rev() {
        out.replace_range(start..end, new);
    }
    out
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

const SIDE: &str = "\
.isa tesla
.kernel side
.reg 3
    movv b32 $r2 0x64
    and b32 $r0 $r0 0xffff
odd:
    add b32 $r2 $r2 $r0
    (lg $c0) bra odd
    exit nop
";

#[test]
fn a_session_from_a_wrong_program_to_a_renamed_label() {
    let mut client = Client::ready(&[], json!({}));
    let uri = "file:///somewhere/side.s";
    let document = json!({ "uri": uri });
    let found = client.open(uri, "reconverge", SIDE);
    assert_eq!(found[0]["range"]["start"], at(SIDE, "movv"));
    assert_eq!((found[0]["severity"].as_i64(), found[0]["source"].as_str()), (Some(1), Some("reconverge")));

    // The fix is applied.
    let actions = client.ask(
        "textDocument/codeAction",
        json!({
            "textDocument": document, "range": found[0]["range"], "context": { "diagnostics": found },
        }),
    );
    assert_eq!(actions[0]["title"], "Replace `movv` by `mov`");
    let edit = &actions[0]["edit"]["changes"][uri];
    let text = edited(SIDE, edit);
    let changes = json!([{ "range": edit[0]["range"], "text": edit[0]["newText"] }]);
    let left = client.change(uri, 2, changes);
    assert!(left.iter().all(|message| message["severity"] != 1), "{left:?}");

    let hover = client
        .ask("textDocument/hover", json!({ "textDocument": document, "position": at(&text, "add b32 $r2") }));
    let shown = hover["contents"]["value"].as_str().unwrap();
    assert!(shown.contains("add b32 $r2 $r2 $r0") && shown.contains("| word | bits |"), "{shown}");

    // Completes a mnemonic and lists its forms.
    let insert = json!([{ "range": { "start": at(&text, "    exit"), "end": at(&text, "    exit") }, "text": "    ad\n" }]);
    client.change(uri, 3, insert);
    let typed = text.replace("    exit", "    ad\n    exit");
    let mut position = at(&typed, "    ad\n");
    position["character"] = json!(6);
    let items =
        client.ask("textDocument/completion", json!({ "textDocument": document, "position": position }));
    let add = items.as_array().unwrap().iter().find(|item| item["label"] == "add").expect("add");
    let resolved = client.ask("completionItem/resolve", add.clone());
    assert!(resolved["documentation"]["value"].as_str().unwrap().contains("example: `add"), "{resolved}");
    let undo = json!([{ "text": text }]);
    client.change(uri, 4, undo);

    // Renames the label.
    let place = json!({ "textDocument": document, "position": at(&text, "odd\n") });
    assert_eq!(client.ask("textDocument/prepareRename", place.clone())["placeholder"], "odd");
    let mut params = place.clone();
    params["newName"] = json!("again");
    let renamed = client.ask("textDocument/rename", params.clone());
    let new = edited(&text, &renamed["changes"][uri]);
    assert!(new.contains("again:\n") && new.contains("bra again") && !new.contains("odd"), "{new}");
    params["newName"] = json!("1x");
    let (code, why) = client.refused("textDocument/rename", params);
    assert!(code == -32803 && why.contains("is not a name"), "{code} {why}");

    let definition = client.ask("textDocument/definition", place.clone());
    assert_eq!(definition["range"]["start"], at(&text, "odd:"));
    let mut params = place;
    params["context"] = json!({ "includeDeclaration": true });
    assert_eq!(client.ask("textDocument/references", params).as_array().unwrap().len(), 2);
    client.finish();
    stops_in_the_source(&new);
}

/// Debugs a source with a breakpoint on the line after the label `again`.
fn stops_in_the_source(text: &str) {
    let path = folder("lsp-debug").join("side.s");
    std::fs::write(&path, text).unwrap();
    let line = text[..text.find("again:").unwrap()].matches('\n').count() + 2;
    let mut client = Client::of(&["debug", "--dap"]);
    client.debug("initialize", json!({ "adapterID": "reconverge" }), ("command", "initialize"));
    let launch = json!({ "program": path, "args": ["--block", "8"] });
    client.debug("launch", launch, ("event", "initialized"));
    let breakpoints = json!({ "source": { "path": path }, "breakpoints": [{ "line": line }] });
    let set = client.debug("setBreakpoints", breakpoints, ("command", "setBreakpoints"));
    assert_eq!(
        (set["breakpoints"][0]["verified"].as_bool(), set["breakpoints"][0]["line"].as_u64()),
        (Some(true), Some(line as u64))
    );
    let stopped = client.debug("configurationDone", json!({}), ("event", "stopped"));
    let stopped = match stopped["reason"].as_str() {
        Some("entry") => {
            client.debug("continue", json!({ "threadId": stopped["threadId"] }), ("event", "stopped"))
        }
        _ => stopped,
    };
    assert_eq!(stopped["reason"], "breakpoint");
    let stack =
        client.debug("stackTrace", json!({ "threadId": stopped["threadId"] }), ("command", "stackTrace"));
    assert_eq!(stack["stackFrames"][0]["line"], line);
    client.debug("disconnect", json!({}), ("command", "disconnect"));
    assert_eq!(client.server.wait().unwrap().code(), Some(0));
}

#[test]
fn every_question_has_an_answer() {
    let mut client = Client::ready(&[], json!({ "reconverge": { "hints": ["addresses"] } }));
    let uri = "file:///somewhere/side.s";
    let text = SIDE.replace("movv", "mov");
    client.open(uri, "reconverge", &text);
    let document = json!({ "uri": uri });
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let symbols = client.ask("textDocument/documentSymbol", json!({ "textDocument": document }));
    assert_eq!(
        (symbols[0]["name"].as_str(), symbols[0]["children"][0]["name"].as_str()),
        (Some("side"), Some("odd"))
    );
    let folds = client.ask("textDocument/foldingRange", json!({ "textDocument": document }));
    assert_eq!((folds[0]["startLine"].as_i64(), folds[0]["endLine"].as_i64()), (Some(1), Some(8)));
    let hints = client.ask("textDocument/inlayHint", json!({ "textDocument": document, "range": whole }));
    let labels: Vec<&str> =
        hints.as_array().unwrap().iter().filter_map(|hint| hint["label"].as_str()).collect();
    assert_eq!(labels, ["0x0", "0x8", "0x10", "0x18", "0x20"]);
    let tokens = client.ask("textDocument/semanticTokens/full", json!({ "textDocument": document }));
    let data = tokens["data"].as_array().unwrap();
    assert!(data.len().is_multiple_of(5) && data.len() > 100, "{}", data.len());
    let range =
        client.ask("textDocument/semanticTokens/range", json!({ "textDocument": document, "range": whole }));
    assert_eq!(&range["data"], &tokens["data"]);
    let marks = client.ask(
        "textDocument/documentHighlight",
        json!({ "textDocument": document, "position": at(&text, "odd\n") }),
    );
    assert_eq!(marks.as_array().unwrap().len(), 2);
    client.change(uri, 2, json!([{ "text": text.replace("    mov", "mov") }]));
    let options = json!({ "tabSize": 4, "insertSpaces": true });
    let edits =
        client.ask("textDocument/formatting", json!({ "textDocument": document, "options": options }));
    assert_eq!(edited(&text.replace("    mov", "mov"), &edits), text);
    let part = client.ask(
        "textDocument/rangeFormatting",
        json!({
            "textDocument": document, "options": options,
            "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 1, "character": 0 } },
        }),
    );
    assert_eq!(part, json!([]));
    client.finish();
}

#[test]
fn columns_are_those_of_the_client() {
    let text = ".isa tesla\nmovv b32 $r0 1 ; \u{1f600}\n.kernel \u{1f600} movv\n";
    for (encodings, unit, column) in
        [(json!(["utf-16"]), "utf-16", 11), (json!(["utf-32", "utf-8"]), "utf-8", 13)]
    {
        let mut client = Client::start(&[]);
        let params =
            json!({ "processId": null, "capabilities": { "general": { "positionEncodings": encodings } } });
        let answer = client.ask("initialize", params);
        assert_eq!(answer["capabilities"]["positionEncoding"], unit);
        let uri = "untitled:one";
        client.open(uri, "reconverge", text);
        let start = json!({ "line": 2, "character": column });
        let end = json!({ "line": 2, "character": column + 4 });
        let found = client.change(uri, 2, json!([{ "range": { "start": start, "end": end }, "text": "x" }]));
        assert!(
            !found.iter().any(|message| message["message"].as_str().unwrap().contains("char")),
            "{found:?}"
        );
        let symbols = client.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": uri } }));
        assert_eq!(symbols[0]["name"], "\u{1f600} x");
        client.finish();
    }
}

#[test]
fn launch_files_and_included_files_beside_a_source_are_read_and_watched() {
    let folder = folder("lsp-beside");
    let uri = |name: &str| format!("file://{}", folder.join(name).display());
    std::fs::write(folder.join("a.toml"), "isa = \"tesla\"\nchip = \"sm_13\"\n").unwrap();
    std::fs::write(folder.join("lib.inc"), ".equ WIDTH, 4\n").unwrap();
    let mut client = Client::ready(&[], json!({ "machine": "r500" }));
    let text = ".include \"lib.inc\"\n    mov b32 $r0 WIDTH\n    exit nop\n";
    // The machine in the launch file precedes the setting.
    assert_eq!(client.open(&uri("a.s"), "reconverge", text), Vec::<Value>::new());
    let place = json!({ "textDocument": { "uri": uri("a.s") }, "position": at(text, "WIDTH") });
    let definition = client.ask("textDocument/definition", place.clone());
    assert_eq!(
        (definition["uri"].as_str(), &definition["range"]["start"]),
        (Some(uri("lib.inc").as_str()), &json!({ "line": 0, "character": 5 }))
    );
    // The included file is open, and its constant is removed without saving the file.
    client.open(&uri("lib.inc"), "reconverge", ".equ WIDTH, 4\n");
    assert!(client.messages(&uri("a.s"), 1).is_empty());
    client.change(&uri("lib.inc"), 2, json!([{ "text": ".equ HEIGHT, 4\n" }]));
    let found = client.messages(&uri("a.s"), 1);
    assert!(found.iter().any(|message| message["severity"] == 1), "{found:?}");
    // The server also checks launch files.
    let found = client.open(&uri("a.toml"), "toml", "isa = \"tesla\"\nblok = [1, 1, 1]\n");
    assert_eq!(found[0]["range"]["start"]["line"], 1);
    assert!(client.open(&uri("other.toml"), "toml", "[package]\nname = \"x\"\n").is_empty());
    assert_eq!(
        client.ask(
            "textDocument/hover",
            json!({ "textDocument": { "uri": uri("a.toml") }, "position": { "line": 0, "character": 0 } })
        ),
        Value::Null
    );
    // If the file does not state a machine, the setting is used. Without a setting, the machine with the fewest
    // errors is used.
    let hints = |found: &[Value]| found.iter().filter(|message| message["severity"] == 4).count();
    assert_eq!(hints(&client.open(&uri("b.s"), "reconverge", "OUT nop\n")), 0);
    client
        .tell("workspace/didChangeConfiguration", json!({ "settings": { "reconverge": { "machine": "" } } }));
    let found = client.messages(&uri("b.s"), 1);
    assert_eq!(hints(&found), 1, "{found:?}");
    client.tell(
        "workspace/didChangeConfiguration",
        json!({ "settings": { "reconverge": { "machine": "r501" } } }),
    );
    let warned = client.notice("window/showMessage");
    assert!(warned["message"].as_str().unwrap().contains("unknown machine `r501`"), "{warned}");
    client.finish();
}

#[test]
fn messages_out_of_order_or_malformed_are_refused_and_the_session_goes_on() {
    let mut client = Client::start(&["--stdio"]);
    let (code, why) = client.refused("textDocument/hover", json!({}));
    assert!(code == -32002 && why.contains("before `initialize`"), "{code} {why}");
    client.ask("initialize", json!({ "capabilities": {} }));
    for (bytes, code) in [
        ("Content-Length: 3\r\n\r\n{]}", -32700),
        ("Content-Type: x\r\n\r\n", -32700),
        ("Content-Length: 99999999999999\r\n\r\n", -32700),
        ("Content-Length: 2\r\n\r\n[]", -32600),
        ("Content-Length: 9\r\n\r\n{\"id\": 7}", -32600),
        ("Content-Length: 29\r\n\r\n{\"id\": {}, \"method\": \"a/b\"  }", -32600),
    ] {
        client.send_bytes(bytes.as_bytes());
        let message = client.next();
        assert_eq!(message["error"]["code"], code, "{bytes}: {message}");
    }
    for (method, params, code) in [
        ("no/such", json!({}), -32601),
        ("initialize", json!({ "capabilities": {} }), -32600),
        ("textDocument/hover", json!({}), -32602),
        (
            "textDocument/hover",
            json!({ "textDocument": { "uri": "file:///none.s" }, "position": { "line": 0, "character": 0 } }),
            -32602,
        ),
        (
            "textDocument/hover",
            json!({ "textDocument": { "uri": ":" }, "position": { "line": 0, "character": 0 } }),
            -32602,
        ),
        ("textDocument/rename", json!([1, 2]), -32602),
    ] {
        assert_eq!(client.refused(method, params).0, code, "{method}");
    }
    // A text that is not open does not change.
    client.tell(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": "file:///none.s", "version": 2 }, "contentChanges": [] }),
    );
    let logged = client.notice("window/logMessage");
    assert!(logged["message"].as_str().unwrap().contains("file:///none.s is not open"), "{logged}");
    client.tell("no/such/notification", json!({}));
    // Positions after the end of the text mean its end.
    let uri = "file:///one.s";
    client.open(uri, "reconverge", ".isa tesla\nnop\n");
    let far = json!({ "line": 1_000_000, "character": 4_000_000_000_u32 });
    assert_eq!(
        client.ask("textDocument/hover", json!({ "textDocument": { "uri": uri }, "position": far })),
        Value::Null
    );
    let backward = json!({ "start": { "line": 1, "character": 2 }, "end": { "line": 0, "character": 1 } });
    client.change(uri, 2, json!([{ "range": backward, "text": "\n" }]));
    client.finish();
}

#[test]
fn a_request_that_a_waiting_message_cancels_or_overtakes_is_not_answered() {
    let mut client = Client::ready(&[], json!({}));
    let uri = "file:///one.s";
    let document = json!({ "uri": uri });
    client.open(uri, "reconverge", ".isa tesla\nnop\n");
    // All messages are sent at once, so that the later ones wait when the first is handled.
    let line = "    add b32 $r0 $r1 $r2\n".repeat(3000);
    let change = json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
        "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": format!(".isa tesla\n{line}") }] } });
    let hover = |id: i64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "textDocument/hover", "params": {
        "textDocument": document, "position": { "line": 1, "character": 5 } } })
    };
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": 102 } });
    let last = json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
        "textDocument": { "uri": uri, "version": 3 }, "contentChanges": [{ "text": ".isa tesla\nnop\n" }] } });
    let mut bytes = Vec::new();
    for message in [change, hover(101), hover(102), hover(103), cancel, last, hover(104)] {
        let text = message.to_string();
        bytes.extend(format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes());
    }
    client.send_bytes(&bytes);
    let code = |response: Value| response["error"]["code"].as_i64();
    // The server may have handled the first message before the others arrived.
    let first = code(client.response(101));
    assert!(first.is_none() || first == Some(-32801), "{first:?}");
    let cancelled = code(client.response(102));
    assert!(matches!(cancelled, None | Some(-32800 | -32801)), "{cancelled:?}");
    assert!(client.response(104)["result"]["contents"]["value"].as_str().unwrap().contains("nop"));
    client.finish();
}

#[test]
fn a_connection_that_ends_without_shutdown_has_status_1() {
    let mut client = Client::ready(&[], json!({}));
    client.tell("exit", Value::Null);
    assert_eq!(client.server.wait().unwrap().code(), Some(1));
    let client = Client::ready(&[], json!({}));
    let Client { mut server, input, .. } = client;
    drop(input);
    assert_eq!(server.wait().unwrap().code(), Some(1));
}

#[test]
fn a_macro_that_doubles_its_argument_is_an_error_and_the_server_goes_on() {
    let mut client = Client::ready(&[], json!({}));
    let text = ".isa tesla\n.kernel a\n.macro m a\n m \\a\\a\n.endm\nm xxxxxxxxxx\n";
    let found = client.open("file:///grow.s", "reconverge", text);
    assert!(found[0]["message"].as_str().unwrap().contains("limit `expansion`"), "{found:?}");
    client.finish();
}

#[cfg(unix)]
#[test]
fn only_regular_files_are_included() {
    let folder = folder("lsp-pipe");
    let made = Command::new("mkfifo").arg(folder.join("f.s")).status().expect("mkfifo");
    assert!(made.success());
    std::fs::write(folder.join("big.s"), vec![b'\n'; 5 << 20]).unwrap();
    let mut client = Client::ready(&[], json!({}));
    let uri = format!("file://{}", folder.join("a.s").display());
    for (name, why) in
        [("f.s", "not a regular file"), ("/dev/zero", "not a regular file"), ("big.s", "found 5242880")]
    {
        let found = client.open(&uri, "reconverge", &format!(".isa tesla\n.include \"{name}\"\n"));
        assert!(found[0]["message"].as_str().unwrap().contains(why), "{found:?}");
    }
    client.finish();
}

#[test]
fn a_line_of_200_000_words_has_tokens() {
    let mut client = Client::ready(&[], json!({}));
    let uri = "file:///long.s";
    client.open(uri, "reconverge", &format!(".isa tesla\nmov b32 $r0 {}\n", "0x1 ".repeat(200_000)));
    let document = json!({ "uri": uri });
    let tokens = client.ask("textDocument/semanticTokens/full", json!({ "textDocument": document }));
    assert!(tokens["data"].as_array().unwrap().len() > 1_000_000);
    client.finish();
}

#[test]
fn a_launch_file_of_json_has_messages() {
    let mut client = Client::ready(&[], json!({}));
    let text = "{\"isa\":\"tesla\",\"blok\":[1],\"program\":\"g.s\"}";
    let found = client.open("file:///a.json", "json", text);
    assert!(found[0]["message"].as_str().unwrap().contains("did you mean `block`?"), "{found:?}");
    assert!(client.open("file:///b.json", "json", "{\"name\": \"x\"}").is_empty());
    client.finish();
}

#[test]
fn header_names_have_no_case_and_a_client_without_markdown_gets_plain_text() {
    let mut client = Client::start(&[]);
    let hover = json!({ "contentFormat": ["plaintext"] });
    let params = json!({ "capabilities": { "textDocument": { "hover": hover } } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    client.number = 1;
    client.send_bytes(format!("content-length: {}\r\n\r\n{message}", message.len()).as_bytes());
    assert!(client.response(1)["result"]["capabilities"].is_object());
    let uri = "file:///one.s";
    // A carriage return alone ends a line.
    client.open(uri, "reconverge", ".isa tesla\radd b32 $r2 $r2 $r0\rexit nop\r");
    let place = json!({ "textDocument": { "uri": uri }, "position": { "line": 1, "character": 1 } });
    let shown = client.ask("textDocument/hover", place);
    let text = shown["contents"]["value"].as_str().unwrap();
    assert_eq!(
        (shown["contents"]["kind"].as_str(), &shown["range"]["start"]["line"]),
        (Some("plaintext"), &json!(1))
    );
    assert!(text.contains("$r2 becomes $r2 + $r0") && !text.contains(['`', '\\', '*']), "{text}");
    client.finish();
}

#[test]
fn words_are_no_hints_without_a_setting() {
    let mut client = Client::ready(&[], json!({}));
    let uri = "file:///one.s";
    client.open(uri, "reconverge", ".isa tesla\nexit nop\n");
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let hints =
        client.ask("textDocument/inlayHint", json!({ "textDocument": { "uri": uri }, "range": whole }));
    let labels: Vec<&str> =
        hints.as_array().unwrap().iter().filter_map(|hint| hint["label"].as_str()).collect();
    assert_eq!(labels, ["0x0"]);
    client.finish();
}

/// Every source of the repository and every listing of the corpora: no request has an error, none ends the server.
#[test]
fn every_source_of_the_corpora_has_answers() {
    let mut client = Client::ready(&[], json!({}));
    let mut count = 0;
    for (name, machine, text) in corpora() {
        let uri = format!("file:///corpus/{count}.s");
        if let Some(machine) = machine {
            client.tell("workspace/didChangeConfiguration", json!({ "settings": { "reconverge": machine } }));
        }
        let messages = client.open(&uri, "reconverge", &text);
        let document = json!({ "uri": uri });
        let end = json!({ "line": text.lines().count(), "character": 0 });
        let whole = json!({ "start": { "line": 0, "character": 0 }, "end": end });
        let middle = json!({ "line": text.lines().count() / 2, "character": 9 });
        let options = json!({ "tabSize": 4, "insertSpaces": true });
        for (method, more) in [
            ("hover", json!({ "position": middle })),
            ("completion", json!({ "position": middle })),
            ("definition", json!({ "position": middle })),
            ("references", json!({ "position": middle, "context": { "includeDeclaration": true } })),
            ("documentHighlight", json!({ "position": middle })),
            ("documentSymbol", json!({})),
            ("foldingRange", json!({})),
            ("inlayHint", json!({ "range": whole })),
            ("semanticTokens/full", json!({})),
            ("formatting", json!({ "options": options })),
            ("codeAction", json!({ "range": whole, "context": { "diagnostics": messages } })),
        ] {
            let mut params = more;
            params["textDocument"] = document.clone();
            let number = client.request(&format!("textDocument/{method}"), params);
            let response = client.response(number);
            assert!(response.get("error").is_none(), "{name}: {method}: {response}");
        }
        client.tell("textDocument/didClose", json!({ "textDocument": document }));
        count += 1;
    }
    assert!(count > 80, "{count}");
    client.finish();
}

/// Returns names, settings and texts: the sources of the repository, and some listings from each file of the corpora, or
/// all of them with `RECONVERGE_ALL`.
fn corpora() -> Vec<(String, Option<Value>, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in [Some(root.join("docs")), Some(root.join("corpus")), shared("corpus")].into_iter().flatten()
    {
        find(&folder, &mut files);
    }
    let mut found = Vec::new();
    for path in files {
        let name = path.display().to_string();
        if name.ends_with(".s") {
            found.push((name, None, std::fs::read_to_string(&path).expect("a text")));
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        let folder: std::sync::Arc<dyn reconverge_cases::Folder> =
            std::sync::Arc::new(reconverge_cases::NoFolder);
        let Ok(cases) = reconverge_cases::read(&name, &bytes, &folder, None) else { continue };
        let step = if std::env::var_os("RECONVERGE_ALL").is_some() { 1 } else { (cases.len() / 12).max(1) };
        for case in cases.iter().step_by(step) {
            let Ok(opened) = case.open() else { continue };
            let opened = opened.opened;
            let text = opened.target.machine().image_text(&opened.target, &opened.image, Default::default());
            let settings = json!({
                "machine": opened.target.isa.name(), "chip": opened.target.chip_name(),
                "stage": opened.target.stage.map(|stage| stage.name()),
            });
            found.extend(text.ok().map(|text| (name.clone(), Some(settings), text)));
        }
    }
    found
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.to_string_lossy().into_owned();
        match path.is_dir() {
            true => find(&path, files),
            false if name.ends_with(".s") || name.ends_with(".jsonl.gz") => files.push(path),
            false => {}
        }
    }
}
