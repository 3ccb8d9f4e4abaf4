//! `reconverge trace`

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use reconverge_simt::{Event, Mask};
use reconverge_trace::filter::EVENTS;
use reconverge_trace::{
    Error as TraceError, Filter, Header, Limits, Line, Outcome, Reader, What, Writer, export,
};
use reconverge_workbench::listing::Style;
use reconverge_workbench::request::Error;
use reconverge_workbench::trace::{Recorded, Sink};

use crate::launch::{LaunchArgs, Ready};
use crate::page::PageArgs;
use crate::{Answer, messages};

/// Record which lanes ran when, and what happened to the flow between
///
/// FILE is what `run` takes, or a trace that was recorded before.
#[derive(clap::Args)]
pub(crate) struct Trace {
    #[command(flatten)]
    launch: LaunchArgs,
    /// Where the trace goes: .rtrace, .json for Chrome and others, .pftrace for Perfetto
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    /// Print it: a line a run of instructions, a character a lane (A takes part, . does not)
    #[arg(long)]
    print: bool,
    /// Record writes to registers and accesses to memory too
    #[arg(long)]
    data: bool,
    /// Bytes that the trace may have, at most
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().bytes)]
    limit: u64,
    /// Only these groups: 3 or 0-7
    #[arg(long, value_name = "RANGE", value_parser = range)]
    groups: Option<RangeInclusive<u32>>,
    /// Only what concerns these lanes of a group: 3 or 0-15
    #[arg(long, value_name = "RANGE", value_parser = range)]
    only_lanes: Option<RangeInclusive<u32>>,
    /// Only instructions at these addresses: 0x40 or 0x40-0x80
    #[arg(long, value_name = "RANGE", value_parser = range)]
    addresses: Option<RangeInclusive<u32>>,
    /// Only these types of records
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', value_parser = EVENTS.to_vec())]
    events: Option<Vec<String>>,
}

/// `3`, `0-7`, `0x40-0x80`.
fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let number = |text: &str| {
        let text = text.trim();
        match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err("a number or a range such as 0-7 fits here".to_owned()),
    }
}

impl Trace {
    fn filter(&self) -> Filter {
        let lanes =
            |range: &RangeInclusive<u32>| Mask::from_fn(64, |lane| range.contains(&u32::from(lane.0)));
        let wanted = |names: &Vec<String>| {
            EVENTS.into_iter().filter(|event| names.iter().any(|name| name == event)).collect()
        };
        Filter {
            groups: self.groups.clone(),
            lanes: self.only_lanes.as_ref().map(lanes),
            addresses: self.addresses.clone(),
            events: self.events.as_ref().map(wanted),
        }
    }
}

pub(crate) fn run(args: &Trace, matches: &ArgMatches) -> Result<Answer> {
    if args.output.is_none() && args.page.html.is_none() && !args.print {
        bail!("say what to make: -o FILE, --html FILE or --print");
    }
    if is_trace(args.launch.file()) {
        return from_trace(args, args.launch.file());
    }
    let ready = args.launch.ready(matches)?;
    let mut trap = None;
    if args.page.html.is_some() {
        trap = args.page.write(&ready, &[])?;
    }
    match &args.output {
        Some(file) if file.extension().is_some_and(|extension| extension == "rtrace") => {
            let place = || file.display().to_string();
            let created = File::create(file).with_context(place)?;
            (_, trap) = record(args, &ready, BufWriter::new(created)).with_context(place)?;
        }
        _ => {}
    }
    let exported = args.output.as_ref().filter(|file| file.extension().is_none_or(|ext| ext != "rtrace"));
    if exported.is_some() || args.print {
        let (bytes, ended) = record(args, &ready, Vec::new())?;
        trap = ended;
        let mut reader = Reader::new(std::io::Cursor::new(bytes))?;
        show(args, &mut reader, exported.map(PathBuf::as_path))?;
    }
    match trap {
        None => Ok(Answer::Yes),
        Some(trap) => {
            tell!("{}: {trap}", ready.title);
            Ok(Answer::No)
        }
    }
}

/// Whether a file is a trace, by its first bytes.
fn is_trace(path: &Path) -> bool {
    let mut start = [0; 6];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && &start == b"RTRACE"
}

/// Prints and exports a trace that was recorded before.
fn from_trace(args: &Trace, path: &Path) -> Result<Answer> {
    let place = || path.display().to_string();
    if args.page.html.is_some() {
        bail!("{}: --html needs the launch: a trace has no registers and no stack", place());
    }
    let mut reader =
        Reader::new(BufReader::new(File::open(path).with_context(place)?)).with_context(place)?;
    show(args, &mut reader, args.output.as_deref()).with_context(place)?;
    if let Some(bound) = reader.end().and_then(|end| end.bound_at) {
        messages::note(&format!(
            "{}: records are missing from step {bound} on: the file reached its bound",
            place()
        ));
    }
    if let Some(problem) = reader.problem() {
        bail!("{}: {problem}; what is before that was read", place());
    }
    Ok(Answer::Yes)
}

/// Where everything that happens goes. Shared with the handler of Ctrl-C, which ends the file.
struct Recorder<W: Write>(Arc<Mutex<Recording<W>>>);

struct Recording<W: Write> {
    writer: Option<Writer<W>>,
    failed: Option<TraceError>,
}

impl<W: Write> Recorder<W> {
    fn with(&self, act: impl FnOnce(&mut Writer<W>) -> Result<(), TraceError>) {
        let Ok(mut recording) = self.0.lock() else { return };
        if recording.failed.is_some() {
            return;
        }
        if let Some(Err(error)) = recording.writer.as_mut().map(act) {
            recording.failed = Some(error);
        }
    }
}

impl<W: Write> Sink for Recorder<W> {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        self.with(|writer| writer.issues(group as u32, addresses, mask));
    }

    fn event(&mut self, group: usize, event: Event) {
        self.with(|writer| writer.event(group as u32, event));
    }
}

/// Runs the launch and records it; gives what was written, and the trap that ended it.
fn record<W: Write + Send + 'static>(args: &Trace, ready: &Ready, out: W) -> Result<(W, Option<String>)> {
    let (target, program) = (&ready.opened.target, ready.program());
    let machine = target.machine();
    let stepping =
        ready.session.start(&ready.options).map_err(|error| anyhow!("{}: {error}", ready.title))?;
    let listing = machine.disassemble(target, program, Style { structure: true, ..Style::default() })?;
    let mut lines: Vec<Line> = listing
        .lines(&program.words)
        .into_iter()
        .filter_map(|line| {
            Some(Line { address: line.address?, text: line.code(), label: line.label, depth: line.depth })
        })
        .collect();
    lines.sort_by_key(|line| line.address);
    lines.dedup_by_key(|line| line.address);
    let groups = stepping.groups();
    let header = Header {
        isa: target.isa.name().to_owned(),
        chip: target.chip.clone(),
        program: program.name.clone(),
        unit: machine.unit().to_owned(),
        lanes_per_group: stepping.lanes(0).len() as u32,
        groups: groups as u32,
        lanes: stepping.lanes(groups.saturating_sub(1)).end as u64,
        data: args.data,
        listing: lines,
    };
    drop(stepping);
    let writer = Writer::new(out, &header, Limits { bytes: args.limit })?;
    let recording = Arc::new(Mutex::new(Recording { writer: Some(writer), failed: None }));
    let interrupted = recording.clone();
    // Ctrl-C ends the file where it is. A handler that another command has set stays.
    let _ = ctrlc::set_handler(move || {
        if let Ok(mut recording) = interrupted.lock()
            && let Some(writer) = recording.writer.take()
        {
            let _ = writer.finish(Outcome { interrupted: true, ..Outcome::default() });
        }
        std::process::exit(130);
    });
    let recorded = if args.data { Recorded::Data } else { Recorded::Flow };
    let progress = messages::spinner("recording");
    let ended = ready.session.copy().run_traced(&ready.options, recorded, &mut Recorder(recording.clone()));
    progress.finish_and_clear();
    let trap = match ended {
        Ok(_) => None,
        Err(Error::Trap(trapped)) => Some(trapped.to_string()),
        Err(error) => bail!("{}: {error}", ready.title),
    };
    let mut recording = recording.lock().map_err(|_| anyhow!("recording failed"))?;
    if let Some(error) = recording.failed.take() {
        return Err(error.into());
    }
    let writer = recording.writer.take().ok_or_else(|| anyhow!("recording was interrupted"))?;
    if writer.is_full() {
        messages::note(&format!(
            "the trace has reached {} bytes; what comes after is counted, not recorded (--limit)",
            args.limit
        ));
    }
    Ok((writer.finish(Outcome { trap: trap.clone(), interrupted: false })?, trap))
}

/// Prints and exports what the filter takes.
fn show<R: Read + Seek>(args: &Trace, reader: &mut Reader<R>, output: Option<&Path>) -> Result<()> {
    let filter = args.filter();
    if let Some(file) = output {
        let place = || file.display().to_string();
        let mut out = BufWriter::new(File::create(file).with_context(place)?);
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("json") => export::chrome(reader, &filter, &mut out).with_context(place)?,
            Some("pftrace" | "perfetto-trace") => {
                export::perfetto(reader, &filter, &mut out).with_context(place)?
            }
            _ => bail!("{}: the name must end in .rtrace, .json or .pftrace", place()),
        }
        out.flush().with_context(place)?;
    }
    if args.print {
        print(reader, &filter)?;
    }
    Ok(())
}

/// A line a run of instructions and an event.
fn print<R: Read + Seek>(reader: &mut Reader<R>, filter: &Filter) -> Result<()> {
    let bytes = reader.header().unit == "bytes";
    let width = reader.header().lanes_per_group.clamp(1, 64) as usize;
    let spelled = |pc: u32| if bytes { format!("{pc:#x}") } else { pc.to_string() };
    let mut last: Vec<u32> = Vec::new();
    for number in 0..reader.blocks().len() {
        for record in reader.block(number)? {
            let group = record.group as usize;
            last.resize(last.len().max(group + 1), 0);
            let head = |step: u64| format!("{step:>8} {group:>5} ");
            if let What::Ran { pc, count, mask } = record.what {
                let lanes: String =
                    (0..width).map(|lane| if mask.0 >> lane & 1 != 0 { 'A' } else { '.' }).collect();
                let addresses = reader.addresses(pc, count).to_vec();
                for (nth, address) in addresses.iter().enumerate() {
                    last[group] = *address;
                    if !filter.takes(&record, *address) {
                        continue;
                    }
                    let listing = &reader.header().listing;
                    let line = listing.binary_search_by_key(address, |line| line.address);
                    let text = line.map_or("", |line| listing[line].text.as_str());
                    say!("{}{lanes} {:>6}  {text}", head(record.step + nth as u64), spelled(*address));
                }
                continue;
            }
            if !filter.takes(&record, last[group]) {
                continue;
            }
            let what = match record.what {
                What::Diverge { taken, not } => format!("diverge: {taken} first, then {not}"),
                What::Reconverge { mask } => format!("reconverge: {mask}"),
                What::Push { kind } => format!("push {}", reader.kind(kind)),
                What::Pop { kind } => format!("pop {}", reader.kind(kind)),
                What::Jump { to } => format!("jump to {}", spelled(to)),
                What::Trap { mask } => format!("trap: {mask}"),
                What::Write { lane, register, value } => {
                    format!("lane {} writes register {register}: {value:#010x}", lane.0)
                }
                What::Load { lane, address } => format!("lane {} loads {address:#x}", lane.0),
                What::Store { lane, address, value } => {
                    format!("lane {} stores {value:#010x} at {address:#x}", lane.0)
                }
                What::Ran { .. } => continue,
            };
            say!("{}{what}", head(record.step));
        }
    }
    Ok(())
}
