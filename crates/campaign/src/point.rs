//! One launch of a campaign: its golden run, where faults can be, and places to start from.

use std::ops::Range;

use reconverge_isa::{Isa, Program};
use reconverge_simt::course::Course;
use reconverge_simt::{Engine, Lane, Options, Statistics, Watch};
use reconverge_workbench::Error as LaunchError;
use reconverge_workbench::Session;
use reconverge_workbench::array::Array;
use reconverge_workbench::faults::Kind;
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::open::Opened;
use reconverge_workbench::session::{Register, RegisterClass, SpaceOf, Stepping};
use reconverge_workbench::values::Files;

use crate::file::Site;

/// Instructions of a golden run at most: what is kept of each takes 16 bytes.
const MOST_STEPS: usize = 1 << 25;

/// Snapshots of a golden run at most.
const SNAPSHOTS: usize = 128;

/// Instructions between two snapshots at least: fewer are run again as fast as a snapshot is copied.
const APART: usize = 64;

/// Steps of a golden run at which a site exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instants {
    /// At each of the first so many.
    All(u64),
    /// At these.
    Some(Vec<u32>),
}

impl Instants {
    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Instants::All(count) => *count,
            Instants::Some(list) => list.len() as u64,
        }
    }

    /// One of them.
    pub(crate) fn get(&self, place: u64) -> u64 {
        match self {
            Instants::All(_) => place,
            Instants::Some(list) => list[place as usize].into(),
        }
    }
}

/// A part of memory that faults reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) space: &'static str,
    pub(crate) of: SpaceOf,
    /// Byte addresses; whole words of them.
    pub(crate) bytes: Range<u64>,
}

impl Area {
    pub(crate) fn words(&self) -> u64 {
        (self.bytes.end - self.bytes.start) / 4
    }
}

/// A launch, ready for experiments.
pub(crate) struct Point {
    pub(crate) program: Program,
    pub(crate) isa: Isa,
    pub(crate) chip: Option<String>,
    pub(crate) mode: &'static str,
    /// What a sweep has set, by key.
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) groups: usize,
    pub(crate) statistics: Statistics,
    /// Instructions after which a group (Tesla: a block) hangs.
    pub(crate) fuel: u64,
    pub(crate) golden: Vec<(String, Array)>,
    pub(crate) course: Course,
    /// By step.
    snapshots: Vec<(u64, Stepping)>,
    /// Of the sites that the golden run has.
    pub(crate) instants: Vec<(Site, Instants)>,
    /// Those that the program names, with the bits of each.
    pub(crate) registers: Vec<(Register, u32)>,
    pub(crate) areas: Vec<Area>,
}

/// What a point is made of.
pub(crate) struct Source<'a> {
    pub(crate) launch: &'a LaunchFile,
    pub(crate) opened: &'a Opened,
    pub(crate) files: &'a dyn Files,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) fuel: f64,
    pub(crate) engine: Engine,
}

impl Point {
    /// Runs a launch without a fault, and looks where faults can be.
    pub(crate) fn new(source: &Source<'_>) -> Result<Point, LaunchError> {
        let Source { launch, opened, files, parameters, fuel, engine } = source;
        let program = choose_program(&opened.image, launch.common.kernel.as_deref())?;
        let session = launch.prepare(&opened.image, program, *files)?;
        // A fault may cause a race. Hardware does not notice it.
        let found = Options { engine: *engine, race_check: false, ..Options::default() };
        let options = launch.options(&found)?;
        let mut stepping = session.start(&options)?;
        let together = stepping.running().len();
        let course = record(&mut stepping)?;
        let statistics = stepping.statistics();
        if statistics.instructions != course.stages().len() as u64 {
            return Err(LaunchError::Machine(format!(
                "the golden run announces {} of its {} instructions",
                course.stages().len(),
                statistics.instructions
            )));
        }
        let fuel = (course.longest(together) as f64 * fuel).ceil() as u64;
        let chip = launch
            .common
            .chip
            .clone()
            .or(opened.image.chip.clone())
            .or_else(|| opened.target.chip_name().map(str::to_owned));
        let mut point = Point {
            program: program.clone(),
            isa: launch.isa,
            chip,
            mode: options.mode.name(),
            parameters: parameters.clone(),
            groups: stepping.groups(),
            statistics,
            fuel,
            golden: stepping.outcome().outputs(),
            course,
            snapshots: Vec::new(),
            instants: Vec::new(),
            registers: Vec::new(),
            areas: Vec::new(),
        };
        let options = Options { watchdog: fuel.min(options.watchdog), ..options };
        point.profile(&session, &options, opened)?;
        Ok(point)
    }

    /// The state before a step.
    pub(crate) fn at(&self, step: u64) -> Result<Stepping, LaunchError> {
        let after = self.snapshots.partition_point(|(from, _)| *from <= step);
        let (from, snapshot) = &self.snapshots[after - 1];
        let mut stepping = snapshot.copy();
        if step > *from {
            stepping.advance(step - from, Watch::Nothing)?;
        }
        Ok(stepping)
    }

    /// The instants of a site.
    pub(crate) fn instants_of(&self, site: Site) -> Option<&Instants> {
        self.instants.iter().find(|(known, _)| *known == site).map(|(_, instants)| instants)
    }

    /// Runs again, one step after another, and keeps snapshots and what exists when.
    fn profile(&mut self, session: &Session, options: &Options, opened: &Opened) -> Result<(), LaunchError> {
        let mut stepping = session.start(options)?;
        // What the engine makes of the program is made once, for all copies.
        stepping.advance(0, Watch::Nothing)?;
        self.registers = registers(&stepping, opened, &self.program);
        self.areas = areas(&stepping);
        let steps = self.course.stages().len();
        let every = steps.div_ceil(SNAPSHOTS).max(APART);
        let mut instants: Vec<(Site, Vec<u32>)> = Site::all()
            .filter(|site| !matches!(site, Site::Register | Site::Flow(Kind::ActiveMask) | Site::Memory))
            .filter(|site| site.machines().contains(&self.isa))
            .map(|site| (site, Vec::new()))
            .collect();
        let mut masks = 0;
        for step in 0..steps {
            if step % every == 0 {
                self.snapshots.push((step as u64, stepping.copy()));
            }
            masks += u64::from(!stepping.words(Kind::ActiveMask).is_empty());
            for (site, list) in &mut instants {
                if exists(&stepping, *site) {
                    list.push(step as u32);
                }
            }
            stepping.advance(1, Watch::Nothing)?;
        }
        let all = Instants::All(steps as u64);
        self.instants = Site::all()
            .filter_map(|site| {
                let there = match site {
                    Site::Register => !self.registers.is_empty(),
                    Site::Memory => self.areas.iter().any(|area| area.words() > 0),
                    Site::Flow(Kind::ActiveMask) => masks == steps as u64,
                    _ => {
                        let (_, list) = instants.iter_mut().find(|(known, _)| *known == site)?;
                        let list = std::mem::take(list);
                        return (!list.is_empty()).then_some((site, Instants::Some(list)));
                    }
                };
                there.then(|| (site, all.clone()))
            })
            .collect();
        Ok(())
    }
}

/// Whether the next instruction has a site.
fn exists(stepping: &Stepping, site: Site) -> bool {
    match site {
        Site::Flow(kind) => !stepping.words(kind).is_empty(),
        _ => stepping.next_words().is_some_and(|words| !words.is_empty()),
    }
}

/// Runs to the end and records.
fn record(stepping: &mut Stepping) -> Result<Course, LaunchError> {
    let mut course = Course::default();
    while stepping.current().is_some() {
        stepping.advance(1 << 20, Watch::of(&mut course))?;
        if course.stages().len() > MOST_STEPS {
            let limit = MOST_STEPS;
            return Err(LaunchError::Machine(format!(
                "the golden run has more than {limit} instructions, and what is kept of each must fit into memory: use \
                 fewer lanes"
            )));
        }
    }
    Ok(course)
}

/// The registers that a program names, and the bits of each. Where an index chooses one, all of its file.
fn registers(stepping: &Stepping, opened: &Opened, program: &Program) -> Vec<(Register, u32)> {
    let Ok(uses) = opened.target.machine().uses(&opened.target, program) else { return Vec::new() };
    let classes = stepping.registers();
    let mut found: Vec<(usize, usize, usize)> = Vec::new();
    let uses = uses.into_iter().flat_map(|(_, uses)| uses);
    let slots = uses.flat_map(|uses| {
        let reads: Vec<_> = uses.reads.into_iter().map(|read| read.slot).collect();
        reads.into_iter().chain(uses.writes)
    });
    for slot in slots {
        // Tesla counts all its registers in one row: $a behind $r.
        let first = if slot.file == "$a" { 0x80 } else { 0 };
        for (place, class) in classes.iter().enumerate() {
            let channels = class.channels.len().max(1);
            // The topmost numbers of R700's registers are the clause temporaries.
            let (name, before) = if class.name == "T" { ("R", 128 - class.count) } else { (class.name, 0) };
            if name != slot.file || class.count == 0 || class.name == "$c" {
                continue;
            }
            match slot.number {
                None => {
                    let each = |number| (0..channels).map(move |channel| (place, number, channel));
                    found.extend((0..class.count).flat_map(each));
                }
                Some(number) => {
                    let number = (number as usize).wrapping_sub(first);
                    let (register, channel) = (number / channels, number % channels);
                    let register = register.wrapping_sub(before);
                    if register < class.count {
                        found.push((place, register, channel));
                    }
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    let Some(group) = stepping.current() else { return Vec::new() };
    // Some only follow others: outputs of R500, $a0.
    let mut trial = stepping.copy();
    let mut changes = |register: &Register| {
        let held = trial.read(group, *register).and_then(|lanes| lanes.first().copied());
        held.is_some_and(|held| trial.set(group, *register, Lane(0), held))
    };
    let register = |(place, number, channel)| {
        let class: &RegisterClass = &classes[place];
        (Register { class: class.name, number, channel }, if class.name == "$a" { 16 } else { 32 })
    };
    found.into_iter().map(register).filter(|(register, _)| changes(register)).collect()
}

/// Memory that can change.
fn areas(stepping: &Stepping) -> Vec<Area> {
    let Some(group) = stepping.current() else { return Vec::new() };
    let (mut trial, lane) = (stepping.copy(), Lane(0));
    let mut areas = Vec::new();
    for space in stepping.spaces() {
        let mut ranges: Vec<Range<u64>> =
            stepping.buffers(space.name, group, lane).into_iter().map(|(_, range)| range).collect();
        if ranges.is_empty() {
            let count = stepping.memory(space.name, group, lane, 0, usize::MAX).len();
            ranges.push(0..count as u64);
        }
        for bytes in ranges {
            let area = Area { space: space.name, of: space.of, bytes };
            let Ok(first) = u32::try_from(area.bytes.start) else { continue };
            let held = stepping.memory(space.name, group, lane, first, 4);
            if area.words() > 0 && held.len() == 4 && trial.store(space.name, group, lane, first, &held) {
                areas.push(area);
            }
        }
    }
    areas
}
