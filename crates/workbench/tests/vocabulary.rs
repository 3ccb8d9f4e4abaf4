//! One vocabulary of time and lanes: a run, a trace, a stepped session and a report have the same steps, with the same
//! lanes and the same events.

use std::io::{Cursor, Read};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reconverge_simt::{Engine, Event, Mask, Options};
use reconverge_testkit::launch_samples;
use reconverge_trace::{Header, Limits, Line, Outcome, Reader, What, Writer};
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::report::{Bounds, Report, Subject};
use reconverge_workbench::session::{Stride, register_name};
use reconverge_workbench::stats::Profile;
use reconverge_workbench::trace::{Recorded, Sink};
use reconverge_workbench::values::NoFiles;
use reconverge_workbench::{Known, Opened, Session, naming, open};

/// Opens a launch of docs/samples, with its program's text.
fn sample(name: &str) -> (Opened, Session, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
    let launch = LaunchFile::parse(&text).unwrap();
    let source = std::fs::read_to_string(folder.join(launch.common.program.clone().unwrap())).unwrap();
    let known = Known { isa: Some(launch.isa), ..Known::default() };
    let opened = open(source.as_bytes(), true, &known).unwrap();
    let program = choose_program(&opened.image, launch.common.kernel.as_deref()).unwrap();
    let session = launch.prepare(&opened.image, program, &NoFiles).unwrap();
    (opened, session, source)
}

/// Step, group, and instruction or event.
type Happened = (u64, usize, Event);

/// Numbers the events of a run: an event has the step of its group's last instruction.
#[derive(Default)]
struct Numbered {
    issued: u64,
    last: Vec<u64>,
    all: Vec<Happened>,
}

impl Sink for Numbered {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        self.last.resize(self.last.len().max(group + 1), 0);
        for pc in addresses {
            self.all.push((self.issued, group, Event::Issue { pc: *pc, mask }));
            self.last[group] = self.issued;
            self.issued += 1;
        }
    }

    fn event(&mut self, group: usize, event: Event) {
        if let Event::Issue { pc, mask } = event {
            return self.issues(group, &[pc], mask);
        }
        self.all.push((self.last[group], group, event));
    }
}

/// Returns the instructions and events of a run, by step.
fn run(session: &Session, engine: Engine) -> Vec<Happened> {
    let mut numbered = Numbered::default();
    let options = Options { engine, ..Options::default() };
    session.copy().run_traced(&options, Recorded::Flow, &mut numbered).unwrap();
    numbered.all.sort_by_key(|(step, ..)| *step);
    numbered.all
}

fn is_data(event: &Event) -> bool {
    matches!(event, Event::Write { .. } | Event::Load { .. } | Event::Store { .. })
}

/// Returns the instructions and events of a session that is stepped. Events have the number of their step.
fn stepped(session: &Session, name: &str) -> Vec<Happened> {
    let mut stepping = session.start(&Options::default()).unwrap();
    let (mut all, mut step) = (Vec::new(), 0);
    while let Some(group) = stepping.current() {
        let next = stepping.issue(group).unwrap();
        let mut issued = Vec::new();
        let mut take = |of, event| {
            match event {
                Event::Issue { pc, mask } => issued.push((of, pc, mask)),
                other if is_data(&other) => return,
                _ => {}
            }
            all.push((step, of, event));
        };
        stepping.step(group, Stride::Instruction, &mut take).unwrap();
        assert_eq!(issued, [(group, next.pc, next.mask)], "{name}: a step is the instruction that was next");
        step += 1;
        assert_eq!(stepping.statistics().instructions, step, "{name}");
    }
    all
}

/// Returns the contents of a trace of the run.
fn traced(opened: &Opened, session: &Session) -> Vec<Happened> {
    let program = &opened.image.programs[0];
    let listing = opened.target.machine().disassemble(&opened.target, program, Default::default()).unwrap();
    let lines = listing.instructions(&program.words);
    let line = |line: &reconverge_workbench::listing::Line| {
        Some(Line { address: line.address?, text: line.code(), ..Line::default() })
    };
    let header = Header { listing: lines.iter().filter_map(line).collect(), ..Header::default() };
    /// Writes into the trace.
    struct Traced(Writer<Vec<u8>>);
    impl Sink for Traced {
        fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
            self.0.issues(group as u32, addresses, mask).unwrap();
        }
        fn event(&mut self, group: usize, event: Event) {
            self.0.event(group as u32, event).unwrap();
        }
        fn recording(&mut self) -> Option<reconverge_trace::Recording<'_>> {
            Some(self.0.recording())
        }
    }
    let mut sink = Traced(Writer::new(Vec::new(), &header, Limits::default()).unwrap());
    let options = Options { engine: Engine::Fast, ..Options::default() };
    session.copy().run_traced(&options, Recorded::Flow, &mut sink).unwrap();
    let mut reader = Reader::new(Cursor::new(sink.0.finish(Outcome::default()).unwrap())).unwrap();
    let mut all = Vec::new();
    for record in reader.block(0).unwrap() {
        let group = record.group as usize;
        match record.what {
            What::Ran { pc, count, mask } => {
                let addresses = reader.addresses(pc, count).iter();
                all.extend(
                    (record.step..)
                        .zip(addresses)
                        .map(|(step, pc)| (step, group, Event::Issue { pc: *pc, mask })),
                );
            }
            What::Push { kind } => {
                all.push((record.step, group, Event::Push { kind: word(reader.kind(kind)) }))
            }
            What::Pop { kind } => {
                all.push((record.step, group, Event::Pop { kind: word(reader.kind(kind)) }))
            }
            what => all.push((record.step, group, what.event())),
        }
    }
    all.sort_by_key(|(step, ..)| *step);
    all
}

/// Returns a word of the machine with static lifetime.
fn word(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

#[test]
fn a_run_a_trace_and_a_session_have_the_same_steps_with_the_same_lanes_and_events() {
    for name in launch_samples() {
        let (opened, session, _) = sample(name);
        let fast = run(&session, Engine::Fast);
        let statistics = session.copy().run(&Options::default()).unwrap().statistics();
        let issues = fast.iter().filter(|(.., event)| matches!(event, Event::Issue { .. })).count();
        assert_eq!(issues as u64, statistics.instructions, "{name}");
        assert_eq!(run(&session, Engine::Reference), fast, "{name}: reference");
        assert_eq!(stepped(&session, name), fast, "{name}: stepped");
        assert_eq!(traced(&opened, &session), fast, "{name}: trace");
    }
}

/// Unpacks a column of a report.
fn column(text: &str) -> Vec<i32> {
    let mut bytes = Vec::new();
    flate2::read::ZlibDecoder::new(&STANDARD.decode(text).unwrap()[..]).read_to_end(&mut bytes).unwrap();
    let (mut numbers, mut last, mut value, mut shift) = (Vec::new(), 0i32, 0u32, 0);
    for byte in bytes {
        value |= u32::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            last = last.wrapping_add((value >> 1) as i32 ^ -((value & 1) as i32));
            numbers.push(last);
            (value, shift) = (0, 0);
        }
    }
    numbers
}

#[test]
fn a_report_has_the_steps_and_events_of_the_run() {
    for name in launch_samples() {
        let (opened, session, source) = sample(name);
        let fast = run(&session, Engine::Fast);
        let program = &opened.image.programs[0];
        let subject = Subject { title: name, opened: &opened, program, source: Some(&source) };
        let report = Report::of(subject, &session, &Options::default(), Bounds::default()).unwrap();
        let report = serde_json::to_value(&report).unwrap();
        let lines = column(report["steps"]["line"].as_str().unwrap());
        let addresses: Vec<u64> =
            lines.iter().map(|line| report["listing"][*line as usize]["address"].as_u64().unwrap()).collect();
        let issued = fast.iter().filter_map(|(.., event)| match event {
            Event::Issue { pc, .. } => Some(u64::from(*pc)),
            _ => None,
        });
        assert_eq!(addresses, issued.collect::<Vec<_>>(), "{name}");
        // The lanes of a step are the lanes that the report shows as active before it.
        let vectors = column(report["steps"]["vector"].as_str().unwrap());
        let active = |vector: i32| {
            let runs = report["vectors"][vector as usize].as_array().unwrap();
            let mut lanes = Vec::new();
            for pair in runs.chunks(2) {
                let state = report["whys"][pair[0].as_u64().unwrap() as usize]["state"].as_u64().unwrap();
                lanes.extend(std::iter::repeat_n(state == 0, pair[1].as_u64().unwrap() as usize));
            }
            Mask::from_fn(lanes.len().min(64), |lane| lanes[lane.index()])
        };
        let masks = fast.iter().filter_map(|(.., event)| match event {
            Event::Issue { mask, .. } => Some(*mask),
            _ => None,
        });
        // In the report, only covered lanes are active; R500's helpers also run.
        for ((step, mask), vector) in masks.enumerate().zip(vectors) {
            assert!(
                (active(vector) - mask).is_empty(),
                "{name}, step {step}: {:?} of {mask:?}",
                active(vector)
            );
        }
        let steps = column(report["events"]["step"].as_str().unwrap());
        let kinds = column(report["events"]["kind"].as_str().unwrap());
        let mut found: Vec<(u64, i32)> = steps.into_iter().map(|step| step as u64).zip(kinds).collect();
        let mut wanted: Vec<(u64, i32)> = fast
            .iter()
            .filter_map(|(step, _, event)| match event {
                Event::Diverge { .. } => Some((*step, 0)),
                Event::Reconverge { .. } => Some((*step, 1)),
                Event::Resume { .. } => Some((*step, 3)),
                _ => None,
            })
            .collect();
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{name}");
    }
}

/// Lanes reconverge exactly if lanes that had diverged are active together.
#[test]
fn lanes_that_resume_meet_no_others_and_lanes_that_reconverge_do() {
    let (mut resumes, mut meetings) = (0, 0);
    for name in launch_samples() {
        let (_, session, _) = sample(name);
        let mut last: Vec<Mask> = Vec::new();
        for (step, group, event) in run(&session, Engine::Fast) {
            last.resize(last.len().max(group + 1), Mask::NONE);
            match event {
                Event::Issue { mask, .. } if mask.any() => last[group] = mask,
                Event::Diverge { taken, not } => {
                    assert!((taken & not).is_empty(), "{name}, step {step}");
                    last[group] = taken;
                }
                Event::Resume { mask } => {
                    assert!(
                        (mask & last[group]).is_empty(),
                        "{name}, step {step}: {mask} after {}",
                        last[group]
                    );
                    resumes += 1;
                    last[group] = mask;
                }
                Event::Reconverge { mask } => {
                    let (before, stay) = (last[group], mask & last[group]);
                    assert!(
                        stay.any() && (mask - before).any(),
                        "{name}, step {step}: {mask} after {before}"
                    );
                    meetings += 1;
                    last[group] = mask;
                }
                _ => {}
            }
        }
    }
    assert!(resumes > 10 && meetings > 10, "{resumes}, {meetings}");
}

/// `stats` counts a divergence as ended if the trace has a reconvergence of lanes of both sides.
#[test]
fn counts_of_divergence_agree_with_the_events() {
    for name in launch_samples() {
        let (_, session, _) = sample(name);
        let mut profile = Profile::new(64);
        let options = Options { engine: Engine::Fast, ..Options::default() };
        session.copy().run_traced(&options, Recorded::Flow, &mut profile).unwrap();
        let counted: u64 = profile.instructions().map(|(_, counts)| counts.reconverged).sum();
        // From the events alone: a reconvergence ends the divergences that have lanes of both sides in it.
        let mut open: Vec<(usize, Mask, Mask)> = Vec::new();
        let mut ended = 0;
        for (_, group, event) in run(&session, Engine::Fast) {
            match event {
                Event::Diverge { taken, not } => open.push((group, taken, not)),
                Event::Reconverge { mask } => {
                    let before = open.len();
                    open.retain(|(of, taken, not)| {
                        *of != group || !(mask & *taken).any() || !(mask & *not).any()
                    });
                    ended += before - open.len();
                }
                _ => {}
            }
        }
        assert_eq!(counted, ended as u64, "{name}");
        let diverged: u64 = profile.instructions().map(|(_, counts)| counts.diverged).sum();
        let statistics = session.copy().run(&Options::default()).unwrap().statistics();
        assert_eq!(diverged, statistics.divergent_branches, "{name}");
        let by_group: u64 = profile.groups().iter().map(|(_, counts)| counts.instructions).sum();
        assert_eq!(by_group, statistics.instructions, "{name}");
    }
}

/// A session reads the values that a step writes, by the names of their registers.
#[test]
fn a_register_of_an_event_is_the_register_of_the_session() {
    for name in ["nested-if.r500", "nested-if.r700", "nested-if.tesla", "loop-break.r700", "reduction"] {
        let (_, session, _) = sample(name);
        let mut stepping = session.start(&Options::default()).unwrap();
        let classes = stepping.registers();
        let (mut seen, mut group) = (0, stepping.current());
        while let Some(current) = group.filter(|_| seen < 300) {
            let mut writes = Vec::new();
            let mut take = |_, event| {
                if let Event::Write { lane, register, value } = event {
                    writes.push((lane, register, value));
                }
            };
            stepping.step(current, Stride::Instruction, &mut take).unwrap();
            group = stepping.current().filter(|next| *next == current);
            if group.is_none() {
                break;
            }
            for (lane, number, value) in writes {
                let text = register_name(&classes, number);
                assert_eq!(stepping.register_name(number), text);
                let found = classes.iter().find_map(|class| {
                    let (count, width) = (class.count, class.channels.len().max(1));
                    let registers = (0..count * width).map(|place| (place / width, place % width));
                    let named = |(number, channel): &(usize, usize)| {
                        let channel = class.channels.chars().nth(*channel).map(|name| format!(".{name}"));
                        format!("{}{number}{}", class.name, channel.unwrap_or_default()) == text
                    };
                    let (number, channel) = registers.into_iter().find(named)?;
                    let register =
                        reconverge_workbench::session::Register { class: class.name, number, channel };
                    stepping.read(current, register)?.get(lane.index()).copied()
                });
                assert_eq!(found, Some(value), "{name}: {text}");
                seen += 1;
            }
        }
        assert!(seen > 10, "{name}: {seen}");
    }
}

/// Register numbers in traces: `$c0` is 144, and R1.x is 4.
#[test]
fn registers_of_each_machine_have_the_manual_s_names() {
    let name = |sample_of: &str, number: u32| {
        let (_, session, _) = sample(sample_of);
        let stepping = session.start(&Options::default()).unwrap();
        let header = Header { registers: naming::registers(&stepping.registers()), ..Header::default() };
        let text = register_name(&stepping.registers(), number);
        assert_eq!(header.register(number), text, "a trace has the same name");
        text
    };
    assert_eq!(name("nested-if.tesla", 0), "$r0");
    assert_eq!(name("nested-if.tesla", 144), "$c0");
    assert_eq!(name("nested-if.tesla", 0x81), "$a1");
    assert_eq!(name("nested-if.r700", 4), "R1.x");
    assert_eq!(name("nested-if.r500", 6), "temp1.b");
    assert_eq!(name("nested-if.r500", 1 << 20), "register 1048576");
}
