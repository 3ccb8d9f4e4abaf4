//! `reconverge lsp`: the language server. `server.rs` handles messages in order. `documents.rs` stores the open texts
//! and the analyses of these texts. `answers.rs` answers requests. `refusal.rs` defines the errors of requests.
//! `convert.rs` converts positions to the form that the protocol requires.
//!
//! Source: Language Server Protocol 3.17, <https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/>.

mod answers;
mod convert;
mod documents;
mod refusal;
mod server;

use std::collections::VecDeque;
use std::io::BufReader;
use std::sync::mpsc::{self, Receiver, TryRecvError};

use anyhow::{Context, Result, anyhow};
use reconverge_isa::limits::EXPANSION;
use reconverge_language::TargetHint;

use crate::args::{Answer, TargetArgs};
use crate::framed::{Incoming, read_message, write_message};
use crate::messages;
use server::Server;

/// Run a language server for assembler sources and launch files: messages, explanations and completions
///
/// The server speaks the Language Server Protocol on standard input and output. The machine of a source is stated by
/// the source, by the launch file next to it, by the editor's settings, or by --isa, in this order.
#[derive(clap::Args)]
pub(crate) struct Lsp {
    /// Use standard input and output. The server always uses standard input and output; the option exists because some
    /// editors pass it
    #[arg(long)]
    stdio: bool,
    #[command(flatten)]
    target: TargetArgs,
}

/// Maximum number of bytes and of lines in an expanded source, unless `--limits` states another number.
const MOST_EXPANDED: u64 = 1 << 20;

pub(crate) fn run(args: &Lsp) -> Result<Answer> {
    if EXPANSION.get() == EXPANSION.default {
        // The limit is low, because the server expands a text after each change. The text can be incorrect at that
        // time.
        EXPANSION.set(MOST_EXPANDED).map_err(|most| anyhow!("at most {most}"))?;
    }
    let mut output = messages::output().context("standard output")?;
    let (sender, incoming) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = BufReader::new(std::io::stdin());
        while let Some(message) = read_message(&mut input) {
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    let TargetArgs { isa, chip, stage, .. } = args.target.clone();
    let mut server = Server::new(TargetHint { isa, chip, stage });
    let mut queue = VecDeque::new();
    while !server.is_over() && fill(&mut queue, &incoming, server.is_busy()) {
        let answers = match queue.pop_front() {
            Some(message) => server.take(message, &queue),
            None => server.publish_one(),
        };
        for answer in answers {
            write_message(&mut output, &answer).context("standard output")?;
        }
    }
    Ok(if server.ended_well() { Answer::Yes } else { Answer::No })
}

/// Moves the received messages to the queue. If the queue is empty and the server is not busy, the function waits for a
/// message. Returns `false` if the queue is empty and the input has ended.
fn fill(queue: &mut VecDeque<Incoming>, incoming: &Receiver<Incoming>, is_busy: bool) -> bool {
    loop {
        match incoming.try_recv() {
            Ok(message) => queue.push_back(message),
            Err(TryRecvError::Empty) => break,
            Err(TryRecvError::Disconnected) => return !queue.is_empty(),
        }
    }
    if queue.is_empty() && !is_busy {
        match incoming.recv() {
            Ok(message) => queue.push_back(message),
            Err(_) => return false,
        }
    }
    true
}
