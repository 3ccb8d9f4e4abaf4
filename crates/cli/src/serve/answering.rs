//! Answers requests of the page. Each request runs in a separate process.

use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use reconverge_isa::limits::{ALL, Limit, MEMORY};
use reconverge_playground::request::PlayRequest;
use serde_json::json;

use crate::args::Answer;

/// Maximum number of program runs at the same time.
const RUNS: usize = 16;

/// Maximum number of text requests that run at the same time. A request for diagnostics is an example of a text
/// request. Text requests have a separate limit, so that the server answers the requests of the editor while programs
/// run.
const QUESTIONS: usize = 16;

/// Time limit of a text request.
const QUESTION_TIME: Duration = Duration::from_secs(10);

/// Interval at which the connection of a page is polled.
const LOOK: Duration = Duration::from_millis(200);

/// Maximum size of a buffer on the server in bytes, unless `--limits` sets another maximum. The limit is low because
/// several pages share the memory.
const MEMORY_OF_RUN: u64 = 1 << 30;

/// Answers the requests on standard input, one per line.
///
/// # Errors
/// Returns an error if standard input cannot be read.
pub(super) fn answer_lines() -> Result<Answer> {
    // The kernel ends this process together with the server, even if the server is killed.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
        .context("the signal of the server's end")?;
    for line in std::io::stdin().lock().split(b'\n') {
        let reply = reconverge_playground::answer(&line.context("standard input")?);
        say!("{}", String::from_utf8_lossy(&reply));
        crate::messages::finish();
    }
    Ok(Answer::Yes)
}

/// A process that answers a request.
struct Responder {
    process: Child,
    /// Whether the request runs a program.
    runs: bool,
}

/// The running processes. The key of a process is the name that the page gave to the request of this process.
#[derive(Clone, Default)]
pub(super) struct Answering(Arc<Mutex<HashMap<String, Responder>>>);

impl Answering {
    fn running(&self) -> MutexGuard<'_, HashMap<String, Responder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request within a time limit. If `is_gone` reports that the page has closed the connection, the
    /// function stops the request early. Returns `None` if too many requests run, or if a request with this name
    /// already runs.
    ///
    /// # Errors
    /// Returns an error if a process cannot be started.
    pub(super) fn answer(
        &self,
        name: &str,
        request: &[u8],
        limit: Duration,
        is_gone: impl Fn() -> bool,
    ) -> Result<Option<Vec<u8>>> {
        let runs = serde_json::from_slice::<PlayRequest>(request).is_ok_and(|request| request.runs());
        let (most, limit) = if runs { (RUNS, limit) } else { (QUESTIONS, limit.min(QUESTION_TIME)) };
        let mut command = Command::new(std::env::current_exe().context("the program of this command")?);
        command.args(["serve", "--answer", "--limits", &limits()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let (input, mut output) = {
            let mut running = self.running();
            let like = running.values().filter(|other| other.runs == runs).count();
            if like >= most || running.contains_key(name) {
                return Ok(None);
            }
            let mut process = command.spawn().context("a process for the request")?;
            let pipes = process.stdin.take().zip(process.stdout.take()).context("the pipes of a process")?;
            running.insert(name.to_owned(), Responder { process, runs });
            pipes
        };
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let mut reply = Vec::new();
            let _ = output.read_to_end(&mut reply);
            // If the time limit has been reached, the receiver no longer exists, and sending fails.
            let _ = sender.send(reply);
        });
        // Writing fails if the process has been stopped.
        let _ = write(input, request);
        let end = Instant::now() + limit;
        let reply = loop {
            let left = end.saturating_duration_since(Instant::now());
            match receiver.recv_timeout(left.min(LOOK)) {
                Err(RecvTimeoutError::Timeout) if !left.is_zero() && !is_gone() => {}
                reply => break reply,
            }
        };
        self.stop(name);
        let seconds = limit.as_secs_f64();
        Ok(Some(match reply {
            Ok(reply) if !reply.is_empty() => reply,
            Ok(_) | Err(RecvTimeoutError::Disconnected) => {
                failed("the run was stopped, or its process ended")
            }
            Err(RecvTimeoutError::Timeout) if runs => {
                failed(&format!("stopped after {seconds} s, the time limit of this server"))
            }
            Err(RecvTimeoutError::Timeout) => {
                failed(&format!("checking the texts timed out after {seconds} s; shorten them"))
            }
        }))
    }

    /// Ends the process of a request, if the request still runs.
    pub(super) fn stop(&self, name: &str) {
        let stopped = self.running().remove(name);
        if let Some(Responder { mut process, .. }) = stopped {
            // `kill` fails if the process has already ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Returns the value of `--limits` for a process that answers a request. The value contains the limits of the server.
fn limits() -> String {
    let value = |limit: &Limit| {
        let is_unset = limit.name == MEMORY.name && limit.get() == MEMORY.default;
        if is_unset { MEMORY_OF_RUN } else { limit.get() }
    };
    let of_command = ALL.iter().filter(|limit| limit.raise.starts_with("--limits"));
    let all: Vec<String> = of_command.map(|limit| format!("{}={}", limit.name, value(limit))).collect();
    all.join(",")
}

/// Writes a request as one line. In JSON, ends of lines occur only between tokens and not in strings. So the function
/// can replace the ends of lines in the request.
fn write(mut input: impl Write, request: &[u8]) -> std::io::Result<()> {
    let line: Vec<u8> =
        request.iter().map(|byte| if b"\r\n".contains(byte) { b' ' } else { *byte }).collect();
    input.write_all(&line)?;
    input.write_all(b"\n")
}

/// Returns the reply to a request that does not have a result.
fn failed(why: &str) -> Vec<u8> {
    json!({ "error": { "of": "engine", "message": why } }).to_string().into_bytes()
}
