//! `reconverge serve`
//!
//! [`server`] sends the page to a browser and answers the page's requests. Each request runs in a separate process,
//! `reconverge serve --answer`. The process ends after the reply, at the time limit, or when the page stops the
//! request.

#[cfg(feature = "serve")]
mod answering;
#[cfg(feature = "serve")]
mod server;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use anyhow::Result;

use crate::args::Answer;
use crate::timeout::Seconds;

/// Serve the playground to a browser on this machine
///
/// The page has an editor, and runs programs with the engines of this command. It does not read files of this
/// machine. Ctrl-C ends the server.
#[derive(clap::Args)]
pub(crate) struct Serve {
    /// Port to listen on; with 0, the system selects a free port
    #[arg(long, value_name = "N", default_value_t = 8660)]
    port: u16,
    /// Address to listen on. With an address other than the default, other computers can reach the server
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Stop a run after this time
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    timeout: Seconds,
    /// Serve the page that scripts/build-web wrote into this folder. The editor of this page has more functions than
    /// the editor of the built-in page
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
    /// Answer requests of standard input, one per line, on standard output
    #[arg(long, hide = true, conflicts_with_all = ["port", "address", "open", "timeout", "page"])]
    answer: bool,
}

#[cfg(feature = "serve")]
pub(crate) fn run(args: &Serve) -> Result<Answer> {
    if args.answer { answering::answer_lines() } else { server::run(args) }
}

#[cfg(not(feature = "serve"))]
pub(crate) fn run(_args: &Serve) -> Result<Answer> {
    anyhow::bail!(crate::features::missing("`reconverge serve`", "serve"))
}
