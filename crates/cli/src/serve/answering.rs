//! Requests of the page. Each runs in a separate process.

use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use reconverge_isa::limits::ALL;
use serde_json::json;

use crate::args::Answer;

/// Maximum number of concurrent requests: two per page, for several pages.
const MOST: usize = 16;

/// Answers the requests on standard input, one per line.
///
/// # Errors
/// Standard input cannot be read.
pub(super) fn answer_lines() -> Result<Answer> {
    for line in std::io::stdin().lock().split(b'\n') {
        let reply = reconverge_playground::answer(&line.context("standard input")?);
        say!("{}", String::from_utf8_lossy(&reply));
        crate::messages::finish();
    }
    Ok(Answer::Yes)
}

/// The running processes, by the names that the page gives its requests.
#[derive(Clone, Default)]
pub(super) struct Answering(Arc<Mutex<HashMap<String, Child>>>);

impl Answering {
    fn running(&self) -> MutexGuard<'_, HashMap<String, Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request within a time limit. Returns `None` if too many requests run, or if one with this name runs.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(super) fn answer(&self, name: &str, request: &[u8], limit: Duration) -> Result<Option<Vec<u8>>> {
        let mut command = Command::new(std::env::current_exe().context("the program of this command")?);
        let limits = ALL.iter().filter(|limit| limit.raise.starts_with("--limits"));
        let limits: Vec<String> = limits.map(|limit| format!("{}={}", limit.name, limit.get())).collect();
        command.args(["serve", "--answer", "--limits", &limits.join(",")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let (input, mut output) = {
            let mut running = self.running();
            if running.len() >= MOST || running.contains_key(name) {
                return Ok(None);
            }
            let mut child = command.spawn().context("a process for the request")?;
            let pipes = child.stdin.take().zip(child.stdout.take()).context("the pipes of a process")?;
            running.insert(name.to_owned(), child);
            pipes
        };
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let mut reply = Vec::new();
            let _ = output.read_to_end(&mut reply);
            // After the time limit, the receiver no longer exists.
            let _ = sender.send(reply);
        });
        // Writing fails if the process was stopped.
        let _ = write(input, request);
        let reply = receiver.recv_timeout(limit);
        self.stop(name);
        Ok(Some(match reply {
            Ok(reply) if !reply.is_empty() => reply,
            Ok(_) | Err(RecvTimeoutError::Disconnected) => {
                failed("the run was stopped, or its process ended")
            }
            Err(RecvTimeoutError::Timeout) => {
                failed(&format!("no end after {} s: --timeout SECONDS allows more", limit.as_secs_f64()))
            }
        }))
    }

    /// Ends the process of a request, if it runs.
    pub(super) fn stop(&self, name: &str) {
        let child = self.running().remove(name);
        if let Some(mut child) = child {
            // The process may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Writes a request as one line. JSON may have newlines between its parts, but not inside a string.
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
