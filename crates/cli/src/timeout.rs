//! `--timeout`: the time limit of a command.

use std::str::FromStr;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// A duration on the command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seconds(pub(crate) Duration);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seconds, String> {
        let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.);
        let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.map(Seconds).ok_or_else(|| "expected a time in seconds greater than 0".to_owned())
    }
}

/// A timer that ends the process with exit status 1 when the time limit is reached. The whole process ends, because a
/// running program cannot be stopped from outside.
pub(crate) struct Timeout(Option<Sender<()>>);

impl Timeout {
    /// Starts the timer. `what` names the operation in the message.
    pub(crate) fn start(limit: Option<Seconds>, as_json: bool, what: &str) -> Timeout {
        let Some(Seconds(limit)) = limit else { return Timeout(None) };
        let (sender, receiver) = channel::<()>();
        let what = what.to_owned();
        std::thread::spawn(move || {
            if receiver.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let why = format!("timed out after {} s (--timeout)", limit.as_secs_f64());
                if as_json {
                    crate::messages::answer_json(&serde_json::json!({ "timeout": why }));
                }
                tell!("{what}: {why}");
                crate::files::leave(1);
            }
        });
        Timeout(Some(sender))
    }

    /// Stops the timer.
    pub(crate) fn end(self) {
        if let Some(sender) = self.0 {
            // If the time limit has just been reached, sending fails. The result is ignored, because the process then
            // ends.
            let _ = sender.send(());
        }
    }
}
