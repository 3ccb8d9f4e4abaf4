//! Tests of `reconverge serve`: the server without a browser. viewer/test/playground.test.js opens its page.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const ENDLESS: &str = ".isa tesla\\nagain:\\n    bra again\\n    exit nop\\n";

/// A running server, which is stopped when the value is dropped.
struct Served {
    process: Child,
    /// The address `127.0.0.1:PORT`.
    host: String,
}

impl Served {
    fn start(arguments: &[&str]) -> Served {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        command.args(["serve", "--port", "0"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let host = line.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        Served { process, host }
    }

    /// Sends the text of a request and returns the answer.
    fn sent(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn get(&self, path: &str) -> String {
        self.sent(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host))
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> String {
        let length = body.len();
        let host = &self.host;
        self.sent(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ))
    }

    /// Returns the reply to a request of the page.
    fn answer(&self, name: &str, request: &str) -> Value {
        let text = self.post(&format!("/answer?{name}"), "Content-Type: application/json\r\n", request);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn endless() -> String {
    format!(
        r#"{{"request": "run", "source": "{ENDLESS}", "launch": "block = [32]\nwatchdog = 1000000000000\n"}}"#
    )
}

#[test]
fn a_server_has_the_page_and_answers_its_requests() {
    let served = Served::start(&[]);
    let page = served.get("/");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.contains("<title>Reconverge playground</title>"));
    assert!(served.get("/engine.js").contains("served: true"));
    assert_eq!(status(&served.get("/editor.js")), "200");
    let described = served.answer("a", r#"{"request": "describe"}"#);
    assert_eq!(described["reply"]["engine"], "native");
    // A request may contain newlines between its parts.
    let request =
        "{\n\"request\": \"run\",\r\n\"source\": \".isa tesla\\nexit nop\\n\", \"launch\": \"block = [3]\"}";
    let ran = served.answer("b", request);
    assert_eq!(ran["reply"]["lane_instructions"], 3, "{ran}");
    let wrong = served.answer("c", r#"{"request": "rnu"}"#);
    assert!(wrong["error"]["message"].as_str().unwrap().contains("rnu"), "{wrong}");
}

#[test]
fn a_server_reads_no_files() {
    let served = Served::start(&[]);
    for path in ["/Cargo.toml", "/../Cargo.toml", "/%2e%2e/Cargo.toml", "//etc/passwd", "/src/serve.rs"] {
        assert_eq!(status(&served.get(path)), "404", "{path}");
    }
    let source = r#".isa tesla\n.include \"Cargo.toml\"\nexit nop\n"#;
    for launch in ["block = [1]", r#"block = [1]\nparam = [{ name = \"a\", buffer = \"Cargo.toml\" }]"#] {
        let ran = served
            .answer("a", &format!(r#"{{"request": "run", "source": "{source}", "launch": "{launch}"}}"#));
        assert!(ran["error"].is_object(), "{ran}");
    }
}

#[test]
fn a_server_refuses_other_sites() {
    let served = Served::start(&[]);
    let host = &served.host;
    let port = host.rsplit(':').next().unwrap();
    assert_eq!(status(&served.sent("GET / HTTP/1.1\r\n\r\n")), "403");
    assert_eq!(status(&served.sent(&format!("GET / HTTP/1.1\r\nHost: example.com:{port}\r\n\r\n"))), "403");
    assert_eq!(status(&served.sent(&format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"))), "200");
    let json = "Content-Type: application/json\r\n";
    let request = r#"{"request": "describe"}"#;
    assert_eq!(
        status(&served.post("/answer?a", &format!("{json}Origin: http://example.com\r\n"), request)),
        "403"
    );
    assert_eq!(
        status(&served.post("/answer?a", &format!("{json}Origin: http://{host}\r\n"), request)),
        "200"
    );
    // The media types that a form of another site can send.
    for media in ["", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"] {
        assert_eq!(status(&served.post("/answer?a", media, request)), "415", "{media}");
    }
    assert_eq!(status(&served.sent(&format!("PUT / HTTP/1.1\r\nHost: {host}\r\n\r\n"))), "405");
}

#[test]
fn a_request_that_is_too_large_is_refused() {
    let served = Served::start(&[]);
    let host = &served.host;
    let head = format!("POST /answer?a HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n");
    let refused = served.sent(&format!("{head}Content-Length: {}\r\n\r\n", (16 << 20) + 1));
    assert_eq!(status(&refused), "400");
    assert!(refused.contains("Content-Length"), "{refused}");
}

#[test]
fn a_run_ends_when_its_time_is_used_up() {
    let served = Served::start(&["--timeout", "0.5"]);
    let start = Instant::now();
    let reply = served.answer("a", &endless());
    assert_eq!(reply["error"]["message"], "stopped after 0.5 s, the time limit of this server");
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_run_ends_when_the_page_asks_for_that() {
    let served = Served::start(&[]);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| served.answer("run", &endless()));
        while !run.is_finished() {
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(status(&served.post("/stop?run", "", "")), "204");
        }
        let reply = run.join().unwrap();
        assert!(reply["error"]["message"].as_str().unwrap().contains("stopped"), "{reply}");
    });
    assert_eq!(served.answer("next", r#"{"request": "describe"}"#)["reply"]["engine"], "native");
}

/// Sixteen pages occupy all places for runs until they are closed.
#[test]
fn a_page_that_is_left_ends_its_run() {
    let served = Served::start(&["--timeout", "600"]);
    let body = endless();
    let page = |number: usize| {
        let mut stream = TcpStream::connect(&served.host).unwrap();
        let (host, length) = (&served.host, body.len());
        let head = format!("POST /answer?page{number} HTTP/1.1\r\nHost: {host}\r\n");
        let lines = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all([&*head, &*lines, &*body].concat().as_bytes()).unwrap();
        stream
    };
    let run = r#"{"request": "run", "source": ".isa tesla\nexit nop\n", "launch": "block = [1]"}"#;
    let asked = || served.post("/answer?more", "Content-Type: application/json\r\n", run);
    // A question can take the place of a page, which is then refused: pages come until all places are taken.
    let mut pages = Vec::new();
    while status(&asked()) != "503" {
        assert!(pages.len() < 100, "100 pages run at the same time");
        pages.push(page(pages.len()));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(asked().contains("too many runs"));
    // Questions about texts have other places.
    assert_eq!(served.answer("text", r#"{"request": "describe"}"#)["reply"]["engine"], "native");
    drop(pages);
    let start = Instant::now();
    while status(&asked()) != "200" {
        assert!(start.elapsed() < Duration::from_secs(60), "the runs of pages that were left go on");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A server that is killed cannot end its processes.
#[cfg(target_os = "linux")]
#[test]
fn a_run_ends_with_a_server_that_is_killed() {
    let served = Served::start(&["--timeout", "600"]);
    let (server, body) = (served.process.id(), endless());
    let mut stream = TcpStream::connect(&served.host).unwrap();
    let (host, length) = (&served.host, body.len());
    let head = format!("POST /answer?page HTTP/1.1\r\nHost: {host}\r\n");
    let lines = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all([&*head, &*lines, &*body].concat().as_bytes()).unwrap();
    let children = || {
        let tasks = std::fs::read_dir(format!("/proc/{server}/task")).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        lists
            .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    let start = Instant::now();
    let run = loop {
        assert!(start.elapsed() < Duration::from_secs(60), "no run began");
        match children().pop() {
            Some(run) => break run,
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    // The process requests the signal when it starts.
    std::thread::sleep(Duration::from_secs(1));
    drop(served);
    while std::path::Path::new("/proc").join(&run).exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "process {run} goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_buffer_that_needs_all_memory_is_refused() {
    let served = Served::start(&[]);
    let source = r".isa tesla\n.kernel a\n.param s[0x10] 4 out\nexit nop\n";
    let launch = r#"block = [1]\nparam = [{ name = \"out\", buffer = \"u32[1000000000]\" }]"#;
    let reply =
        served.answer("a", &format!(r#"{{"request": "run", "source": "{source}", "launch": "{launch}"}}"#));
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains("the limit `memory` (1073741824)"), "{message}");
}

#[test]
fn wrong_arguments_of_serve_are_named() {
    let refused = |arguments: &[&str], words: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_reconverge")).arg("serve").args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{text}"));
    };
    let served = Served::start(&[]);
    let port = served.host.rsplit(':').next().unwrap();
    refused(&["--port", port], &[port, "choose another port with --port N"]);
    refused(
        &["--port", "0", "--page", "/nonexistent"],
        &["/nonexistent/index.html", "create the page with scripts/build-web"],
    );
    refused(&["--port", "x"], &["--port"]);
}
