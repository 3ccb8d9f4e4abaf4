//! `reconverge trace`

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use reconverge_output::Whole;
use reconverge_simt::limits::TRACE;
use reconverge_simt::{Engine, Event, Lane, Mask, Why};
use reconverge_trace::compare::first_difference;
use reconverge_trace::filter::EVENTS;
use reconverge_trace::{
    Error as TraceError, Filter, Following, Header, Limits, Line, Outcome, Reader, What, Writer, export,
};
use reconverge_workbench::listing::{self, Style};
use reconverge_workbench::naming;
use reconverge_workbench::session::{Stepping, Stride};
use reconverge_workbench::trace::{Recorded, Sink};

use crate::args::Answer;
use crate::interrupt::{Ended, run_traced};
use crate::launch::{LaunchArgs, Ready};
use crate::page::PageArgs;
use crate::timeout::{Seconds, Timeout};
use crate::{interrupt, messages};

/// Record which lanes ran at each step, and the events that changed the control flow
///
/// FILE is an input of `run`, or a recorded trace.
#[derive(clap::Args)]
pub(crate) struct Trace {
    #[command(flatten)]
    launch: LaunchArgs,
    /// Output file: .rtrace, .json for Chrome and others, .pftrace for Perfetto, or .parquet for data frames
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    /// Print the trace with one line per instruction and one letter per lane
    ///
    /// A letter is the state of a lane. A: the lane is active. b: a branch switched the lane off. k: the lane left its
    /// loop by a break. c: the lane waits for the next iteration. p: the lane is parked at another address. x: the lane
    /// has exited. u: the lane is not covered. A trace file does not have the reasons why lanes wait, so a dot stands
    /// for each inactive lane.
    #[arg(long)]
    print: bool,
    /// Also record writes to registers and accesses to memory
    #[arg(long)]
    data: bool,
    /// Maximum size of the trace in bytes
    #[arg(long, value_name = "BYTES", default_value_t = TRACE.get())]
    limit: u64,
    /// Stop after this time, with exit status 1 and without a trace
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<Seconds>,
    /// Record only these groups: 3 or 0-7
    #[arg(long, value_name = "RANGE", value_parser = range)]
    groups: Option<RangeInclusive<u32>>,
    /// Record only these lanes of each group: 3 or 0-15
    #[arg(long, value_name = "RANGE", value_parser = range)]
    only_lanes: Option<RangeInclusive<u32>>,
    /// Record only instructions at these addresses: 0x40 or 0x40-0x80
    #[arg(long, value_name = "RANGE", value_parser = range)]
    addresses: Option<RangeInclusive<u32>>,
    /// Record only these types of records
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', value_parser = EVENTS.to_vec())]
    events: Option<Vec<String>>,
}

/// Parses `3`, `0-7` or `0x40-0x80`.
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
        _ => Err("expected a number or a range such as 0-7".to_owned()),
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
        bail!("missing output: expected -o FILE, --html FILE or --print");
    }
    let file = is_trace(args.launch.file());
    args.output.iter().try_for_each(|output| can_be_written(output, file))?;
    if file {
        return from_trace(args, args.launch.file());
    }
    interrupt::watch();
    // The timer stops when `_limit` is dropped at the end of the command.
    let _limit = Timeout::start(args.timeout, false, &crate::shown::path(&args.launch.file()));
    let mut ready = args.launch.ready(matches)?;
    let mut ended = Ended::Well;
    let recording = Recording { data: args.data, limit: args.limit };
    if args.page.html.is_some()
        && let Some(trap) = args.page.write(&ready, &[])?
    {
        ended = Ended::Trap(trap);
    }
    match &args.output {
        Some(file) if file.extension().is_some_and(|extension| extension == "rtrace") => {
            let place = || crate::shown::path(&file);
            let created = Whole::create(file).with_context(place)?;
            let (written, how) =
                record_file(&mut ready, recording, BufWriter::new(created)).with_context(place)?;
            written
                .into_inner()
                .map_err(|error| error.into_error())
                .and_then(Whole::finish)
                .with_context(place)?;
            ended = how;
        }
        _ => {}
    }
    let exported = args.output.as_ref().filter(|file| file.extension().is_none_or(|ext| ext != "rtrace"));
    if exported.is_some() || args.print {
        let (bytes, how) = record(&ready, recording, Vec::new())?;
        ended = how;
        let mut reader = Reader::new(std::io::Cursor::new(bytes))?;
        show(args, &mut reader, exported.map(PathBuf::as_path), Some(&ready))?;
    }
    Ok(ended.answer(&ready.title))
}

/// Checks that the name of an output file has a known extension. If `of_file` is set, the input is a trace. In that
/// case, the output cannot be a trace.
fn can_be_written(output: &Path, of_file: bool) -> Result<()> {
    let place = crate::shown::path(&output);
    match output.extension().and_then(|extension| extension.to_str()) {
        #[cfg(not(feature = "parquet"))]
        Some("parquet") => bail!("{place}: {}", crate::features::missing("Parquet", "parquet")),
        #[cfg(feature = "parquet")]
        Some("parquet") => Ok(()),
        Some("json" | "pftrace" | "perfetto-trace") => Ok(()),
        Some("rtrace") if !of_file => Ok(()),
        Some("rtrace") => {
            bail!("{place}: expected the extension .json, .pftrace or .parquet, because FILE is a trace")
        }
        _ => bail!("{place}: expected the extension .rtrace, .json, .pftrace or .parquet"),
    }
}

/// Whether the first bytes of a file show that the file is a trace.
pub(crate) fn is_trace(path: &Path) -> bool {
    let mut start = [0; 6];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && &start == b"RTRACE"
}

/// Prints and exports an existing trace file.
fn from_trace(args: &Trace, path: &Path) -> Result<Answer> {
    let place = || crate::shown::path(&path);
    if args.page.html.is_some() {
        bail!(
            "{}: --html: expected a launch, found a trace, which does not have registers and a stack",
            place()
        );
    }
    let mut reader =
        Reader::new(BufReader::new(File::open(path).with_context(place)?)).with_context(place)?;
    show(args, &mut reader, args.output.as_deref(), None).with_context(place)?;
    said_whole(&reader, path)?;
    Ok(Answer::Yes)
}

/// Reports whether the limit on the size or an interruption has removed records from a trace.
///
/// # Errors
/// Returns an error if the trace is truncated or damaged.
pub(crate) fn said_whole<R: Read + Seek>(reader: &Reader<R>, path: &Path) -> Result<()> {
    let place = || crate::shown::path(&path);
    if reader.end().is_some_and(|end| end.outcome.interrupted) {
        messages::note(&format!("{}: the run was interrupted", place()));
    }
    if let Some(bound) = reader.end().and_then(|end| end.bound_at) {
        messages::note(&format!(
            "{}: records are missing from step {bound}: the file reached its limit",
            place()
        ));
    }
    if let Some(problem) = reader.problem() {
        bail!("{}: {problem}; the records before this place were read", place());
    }
    Ok(())
}

/// The kinds of records in a trace, and the maximum size of the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recording {
    /// Whether to record register writes and memory accesses.
    pub(crate) data: bool,
    /// Maximum size in bytes.
    pub(crate) limit: u64,
}

/// A sink that writes all events to a trace.
struct Recorder<W: Write> {
    writer: Writer<W>,
    failed: Option<TraceError>,
}

impl<W: Write> Recorder<W> {
    #[inline]
    fn with(&mut self, act: impl FnOnce(&mut Writer<W>) -> Result<(), TraceError>) {
        if self.failed.is_none()
            && let Err(error) = act(&mut self.writer)
        {
            self.failed = Some(error);
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

    fn recording(&mut self) -> Option<reconverge_trace::Recording<'_>> {
        Some(self.writer.recording())
    }
}

/// Records the launch into a file. The bytes of the file do not depend on the engine.
///
/// The packed form of a trace depends on the number of instructions that an engine reports at a time. The fast engine
/// reports many consecutive instructions at a time. The reference interpreter reports one instruction at a time. Files
/// always have the form that the fast engine produces. If a launch uses another engine, the function therefore records
/// the launch twice: on that engine and on the fast engine. If both recordings have the same records, the function
/// writes the recording of the fast engine. Otherwise one engine is wrong, and the recording of the requested engine is
/// written.
fn record_file<W: Write>(ready: &mut Ready, what: Recording, mut out: W) -> Result<(W, Ended)> {
    // A recording with data always comes from the reference interpreter. The compiled engine does not run launches with
    // observers. If the user requests the compiled engine, the fast engine runs a launch with observers.
    if what.data || matches!(ready.options.engine, Engine::Fast | Engine::Compiled) {
        return record(ready, what, out);
    }
    let (asked, ended) = record(ready, what, Vec::new())?;
    if ended == Ended::Interrupted {
        out.write_all(&asked)?;
        return Ok((out, ended));
    }
    let engine = std::mem::replace(&mut ready.options.engine, Engine::Fast);
    let again = recorded(ready, what, Vec::new());
    ready.options.engine = engine;
    let chosen = match again {
        Ok((fast, how, _)) if how == ended && same_contents(&asked, &fast)? => fast,
        _ => asked,
    };
    out.write_all(&chosen)?;
    Ok((out, ended))
}

/// Returns whether two traces have the same records. If the limit on bytes has ended one of the traces, the function
/// compares only the records up to the end of this trace.
fn same_contents(a: &[u8], b: &[u8]) -> Result<bool> {
    let (mut a, mut b) = (Reader::new(std::io::Cursor::new(a))?, Reader::new(std::io::Cursor::new(b))?);
    let is_bounded = [a.end(), b.end()].iter().flatten().any(|end| end.bound_at.is_some());
    Ok(match first_difference(&mut a, &mut b)? {
        None => true,
        Some(difference) => is_bounded && (difference.a.is_none() || difference.b.is_none()),
    })
}

/// Runs the launch and records the run. Returns the output, and how the run ended. After Ctrl-C, the trace contains all
/// records up to the interruption.
pub(crate) fn record<W: Write>(ready: &Ready, what: Recording, out: W) -> Result<(W, Ended)> {
    let (out, ended, notes) = recorded(ready, what, out)?;
    notes.iter().for_each(|text| messages::note(text));
    Ok((out, ended))
}

/// Performs the recording for [`record`]. Returns the notes for the user instead of printing the notes.
fn recorded<W: Write>(ready: &Ready, what: Recording, out: W) -> Result<(W, Ended, Vec<String>)> {
    let mut notes = Vec::new();
    let (target, program) = (&ready.opened.target, ready.program());
    let machine = target.machine();
    let stepping =
        ready.session.start(&ready.options).map_err(|error| anyhow!("{}: {error}", ready.title))?;
    let listing = machine.disassemble(target, program, Style { structure: true, ..Style::default() })?;
    let accessed =
        naming::accessed(&target.for_program(&ready.opened.image, program), program).unwrap_or_default();
    let line = |line: &listing::Line| {
        let address = line.address?;
        let naming::Accessed { loads, stores } = accessed.get(&address).cloned().unwrap_or_default();
        let (text, label, depth) = (line.code(), line.label.clone(), line.depth);
        // The names of memories are needed only if accesses are recorded.
        let (loads, stores) = if what.data { (loads, stores) } else { (Vec::new(), None) };
        Some(Line { address, text, label, depth, loads, stores })
    };
    let groups = stepping.groups();
    let header = Header {
        isa: target.isa.name().to_owned(),
        chip: target.chip_name().map(str::to_owned),
        program: program.name.clone(),
        unit: target.isa.unit().to_owned(),
        lanes_per_group: stepping.lanes(0).len() as u32,
        groups: groups as u32,
        lanes: stepping.lanes(groups.saturating_sub(1)).end as u64,
        data: what.data,
        listing: listing.instructions(&program.words).iter().filter_map(line).collect(),
        registers: naming::registers(&stepping.registers()),
    };
    drop(stepping);
    let writer = Writer::new(out, &header, Limits { bytes: what.limit })?;
    let recorded = if what.data { Recorded::Data } else { Recorded::Flow };
    let mut recorder = Recorder { writer, failed: None };
    let progress = messages::spinner("recording");
    let ended = run_traced(ready, recorded, &mut recorder);
    progress.finish_and_clear();
    let ended = ended?;
    if let Some(error) = recorder.failed {
        return Err(error.into());
    }
    if recorder.writer.is_full() {
        notes.push(format!(
            "the trace has reached {} bytes; later events are counted but not recorded; raise --limit",
            what.limit
        ));
    }
    if ended == Ended::Interrupted {
        let steps = messages::counted(recorder.writer.steps(), "instruction");
        notes.push(format!("interrupted: the trace ends after {steps}"));
    }
    let outcome = Outcome { trap: ended.trap().map(str::to_owned), interrupted: ended == Ended::Interrupted };
    Ok((recorder.writer.finish(outcome)?, ended, notes))
}

/// Prints and exports the records that pass the filter.
fn show<R: Read + Seek>(
    args: &Trace,
    reader: &mut Reader<R>,
    output: Option<&Path>,
    launch: Option<&Ready>,
) -> Result<()> {
    let filter = args.filter();
    if let Some(file) = output {
        let place = || crate::shown::path(&file);
        let mut out = BufWriter::new(Whole::create(file).with_context(place)?);
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("json") => export::chrome(reader, &filter, &mut out).with_context(place)?,
            Some("pftrace" | "perfetto-trace") => {
                export::perfetto(reader, &filter, &mut out).with_context(place)?
            }
            #[cfg(feature = "parquet")]
            Some("parquet") => {
                reconverge_trace::parquet::table(reader, &filter, &mut out).with_context(place)?
            }
            _ => bail!("{}: cannot write a trace in this format", place()),
        }
        out.into_inner().map_err(|error| error.into_error()).and_then(Whole::finish).with_context(place)?;
    }
    if args.print {
        print(reader, &filter, launch)?;
    }
    Ok(())
}

/// Prints one line per instruction and one line per event. If the launch is available, the line has a letter for each
/// inactive lane. This letter states why the lane is inactive.
fn print<R: Read + Seek>(reader: &mut Reader<R>, filter: &Filter, launch: Option<&Ready>) -> Result<()> {
    let width = reader.header().lanes_per_group.clamp(1, 64) as usize;
    let mut following = Following::default();
    let mut replay = launch.and_then(Replay::of);
    let mut damaged = None;
    for number in 0..reader.blocks().len() {
        // If one block is damaged, the reader can still read all other blocks.
        let records = match reader.block(number) {
            Ok(records) => records,
            Err(error @ TraceError::Damaged { .. }) => {
                damaged = damaged.or(Some(error));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        for record in records {
            let group = record.group as usize;
            let place = following.take(reader, &record);
            let head = |step: u64| format!("{step:>8} {group:>5} ");
            if let What::Ran { pc, count, mask } = record.what {
                for (step, address) in (record.step..).zip(reader.addresses(pc, count)) {
                    if !filter.takes(&record, *address) {
                        continue;
                    }
                    let letters = replay.as_mut().and_then(|replay| replay.at(step, group));
                    let lanes = (0..width).map(|lane| match &letters {
                        _ if mask.has(Lane(lane as u8)) => Why::Active.letter(),
                        Some(letters) => letters[lane],
                        None => '.',
                    });
                    let lanes = coloured(lanes);
                    let text = reader.line(*address).map_or("", |line| line.text.as_str());
                    let text = crate::shown::name(text);
                    let address = reader.spelled(*address);
                    messages::answer_coloured(format_args!("{}{lanes} {address:>6}  {text}\n", head(step)));
                }
            } else if filter.takes(&record, place.pc) {
                say!("{}{}", head(record.step), reader.described(&record.what, place.space));
            }
        }
    }
    damaged.map_or(Ok(()), |error| Err(error.into()))
}

/// Returns the letters of lanes. Each letter has the colour of the lane's state. If the output does not support
/// colours, `messages::answer_coloured` removes the colours.
fn coloured(letters: impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    let mut colour = "";
    for letter in letters {
        let next = match letter {
            'A' => "\x1b[1;94m",
            'b' => "\x1b[33m",
            'k' => "\x1b[91m",
            'c' => "\x1b[35m",
            'p' => "\x1b[93m",
            _ => "\x1b[90m",
        };
        if next != colour {
            text.push_str(if colour.is_empty() { "" } else { "\x1b[0m" });
            text.push_str(next);
            colour = next;
        }
        text.push(letter);
    }
    text + "\x1b[0m"
}

/// The launch of a trace. For each record of the trace, the launch is stepped to the same instruction.
struct Replay {
    stepping: Stepping,
    /// Number of instructions issued so far.
    issued: u64,
}

impl Replay {
    fn of(ready: &Ready) -> Option<Replay> {
        Some(Replay { stepping: ready.session.start(&ready.options).ok()?, issued: 0 })
    }

    /// Returns the letters of a group's lanes before the instruction at `step` of the trace. Returns `None` if the
    /// launch does not reach that instruction.
    fn at(&mut self, step: u64, group: usize) -> Option<Vec<char>> {
        loop {
            let current = self.stepping.current()?;
            if self.issued == step {
                let letter = |lane| self.stepping.why(group, Lane(lane)).unwrap_or(Why::Uncovered).letter();
                return (current == group).then(|| (0..64).map(letter).collect());
            }
            let issued = &mut self.issued;
            let counted = &mut |_, event| *issued += u64::from(matches!(event, Event::Issue { .. }));
            self.stepping.step(current, Stride::Instruction, counted).ok()?;
            if self.issued > step {
                return None;
            }
        }
    }
}
