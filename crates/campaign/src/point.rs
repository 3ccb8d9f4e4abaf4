//! One launch of a campaign: the golden run of the launch, the steps at which sites exist, and the snapshots at which
//! experiments start.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use reconverge_isa::{Isa, Program};
use reconverge_simt::course::{Course, Stage};
use reconverge_simt::uses::UsesAt;
use reconverge_simt::{Engine, Lane, Options, Statistics, Watch};
use reconverge_workbench::Error as LaunchError;
use reconverge_workbench::Session;
use reconverge_workbench::array::Array;
use reconverge_workbench::faults::Kind;
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::listing::{Line, Style};
use reconverge_workbench::open::Opened;
use reconverge_workbench::session::{GroupState, Register, RegisterClass, SpaceOf, Stepping};
use reconverge_workbench::values::Files;

use crate::filter::{Allowed, FaultFilter, ProgramLine};
use crate::site::Site;
use crate::spot::{register_name, words};

/// Maximum number of instructions in a golden run. The profile needs 16 bytes per instruction, the size of a [`Stage`].
const MOST_STEPS: usize = 1 << 25;

/// Maximum number of snapshots of a golden run.
const SNAPSHOTS: usize = 128;

/// Minimum number of instructions between two snapshots. Running fewer instructions than this minimum takes less time
/// than copying a snapshot.
const APART: usize = 64;

/// Steps of a golden run at which a site exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instants {
    /// All steps of the golden run. The field is the number of steps.
    All(u64),
    /// The steps in this list.
    Some(Vec<u32>),
}

impl Instants {
    /// Returns the number of steps.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Instants::All(count) => *count,
            Instants::Some(list) => list.len() as u64,
        }
    }

    /// Returns a step by its index in the list of steps.
    pub(crate) fn get(&self, place: u64) -> u64 {
        match self {
            Instants::All(_) => place,
            Instants::Some(list) => list[place as usize].into(),
        }
    }

    /// Returns whether the site exists at a step.
    pub(crate) fn has(&self, step: u64) -> bool {
        match self {
            Instants::All(count) => step < *count,
            Instants::Some(list) => u32::try_from(step).is_ok_and(|step| list.binary_search(&step).is_ok()),
        }
    }
}

/// A part of memory that faults can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) space: &'static str,
    pub(crate) of: SpaceOf,
    /// Range of byte addresses, in whole words.
    pub(crate) bytes: Range<u64>,
}

impl Area {
    pub(crate) fn words(&self) -> u64 {
        (self.bytes.end - self.bytes.start) / 4
    }
}

/// A launch that is ready for experiments.
pub(crate) struct Point {
    pub(crate) program: Program,
    pub(crate) isa: Isa,
    pub(crate) chip: Option<String>,
    pub(crate) mode: &'static str,
    /// The keys that the sweep sets, and the values of these keys.
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) groups: usize,
    pub(crate) statistics: Statistics,
    /// Number of instructions after which a group is treated as hanging. On Tesla, the number applies to a block.
    pub(crate) fuel: u64,
    pub(crate) golden: Vec<(String, Array)>,
    pub(crate) course: Course,
    /// Snapshots of the golden run, and the step of each snapshot.
    snapshots: Vec<(u64, Stepping)>,
    /// The sites that exist in the golden run. Each site has the steps at which the site exists.
    pub(crate) instants: Vec<(Site, Instants)>,
    /// Registers that the program names and that the filter allows. Each entry has the mask of the register's bits.
    pub(crate) registers: Vec<(Register, u32)>,
    /// Index into `registers` for each register name of the results.
    by_name: HashMap<String, usize>,
    /// For the address of each instruction, the registers that the instruction writes, as indices into `registers`.
    written: BTreeMap<u32, Vec<usize>>,
    pub(crate) allowed: Allowed,
    pub(crate) options: Options,
    pub(crate) areas: Vec<Area>,
}

/// The inputs of a point.
pub(crate) struct Source<'a> {
    pub(crate) launch: &'a LaunchFile,
    pub(crate) opened: &'a Opened,
    pub(crate) files: &'a dyn Files,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) fuel: f64,
    pub(crate) engine: Engine,
    pub(crate) filter: &'a FaultFilter,
    /// The labels of the program's source, and the address of each label.
    pub(crate) labels: &'a [(String, u32)],
}

impl Source<'_> {
    /// Returns the program, and a session that is ready to run the launch.
    pub(crate) fn prepare(&self) -> Result<(&Program, Session), LaunchError> {
        let Source { launch, opened, files, .. } = self;
        let program = choose_program(&opened.image, launch.common.kernel.as_deref())?;
        Ok((program, launch.prepare(&opened.image, program, *files)?))
    }
}

impl Point {
    /// Runs a launch without a fault, and finds the sites.
    pub(crate) fn new(source: &Source<'_>) -> Result<Point, LaunchError> {
        let Source { launch, opened, parameters, fuel, engine, filter, labels, .. } = source;
        let (program, session) = source.prepare()?;
        // The race check is off. A fault may cause a race, and the hardware does not detect races.
        let found = Options { engine: *engine, race_check: false, ..Options::default() };
        let options = launch.options(&found)?;
        let mut stepping = session.start(&options)?;
        let together = stepping.running().len();
        let course = record(&mut stepping, options.watchdog)?;
        let statistics = stepping.statistics();
        if statistics.instructions != course.stages().len() as u64 {
            return Err(LaunchError::Machine(format!(
                "the golden run reported only {} of its {} instructions",
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
            by_name: HashMap::new(),
            written: BTreeMap::new(),
            allowed: Allowed::default(),
            options: Options { watchdog: fuel.min(options.watchdog), ..options },
            areas: Vec::new(),
        };
        point.profile(&session, opened, filter, labels)?;
        Ok(point)
    }

    /// Returns the state before a step.
    pub(crate) fn at(&self, step: u64) -> Result<Stepping, LaunchError> {
        let after = self.snapshots.partition_point(|(from, _)| *from <= step);
        let (from, snapshot) = &self.snapshots[after - 1];
        let mut stepping = snapshot.copy();
        if step > *from {
            stepping.advance(step - from, Watch::Nothing)?;
        }
        Ok(stepping)
    }

    /// Returns the steps at which a site exists.
    pub(crate) fn instants_of(&self, site: Site) -> Option<&Instants> {
        self.instants.iter().find(|(known, _)| *known == site).map(|(_, instants)| instants)
    }

    /// Returns the register that has this name in results. Returns `None` if the program does not name this register,
    /// or if the filter does not allow this register.
    pub(crate) fn register(&self, name: &str) -> Option<Register> {
        self.by_name.get(name).map(|place| self.registers[*place].0)
    }

    /// Returns the registers that the instruction at an address writes, and the bits of each register.
    pub(crate) fn destinations(&self, pc: u32) -> impl Iterator<Item = (Register, u32)> + '_ {
        let places = self.written.get(&pc).into_iter().flatten();
        places.map(|place| self.registers[*place])
    }

    /// Runs the launch again, one step at a time. Stores snapshots of the launch, and the steps at which each site
    /// exists.
    fn profile(
        &mut self,
        session: &Session,
        opened: &Opened,
        filter: &FaultFilter,
        labels: &[(String, u32)],
    ) -> Result<(), LaunchError> {
        let mut stepping = session.start(&self.options)?;
        // Compiles the program before the function copies the launch, so that all copies share the compiled code.
        stepping.advance(0, Watch::Nothing)?;
        self.find_registers(&stepping, opened, filter, labels)?;
        self.areas = areas(&stepping);
        if self.allowed.only_lanes() {
            self.areas.retain(|area| area.of == SpaceOf::Lane);
        }
        let steps = self.course.stages().len();
        let every = steps.div_ceil(SNAPSHOTS).max(APART);
        let mut sites: Vec<(Site, Vec<u32>)> =
            self.possible().into_iter().map(|site| (site, Vec::new())).collect();
        for step in 0..steps {
            if step % every == 0 {
                self.snapshots.push((step as u64, stepping.copy()));
            }
            let Stage { pc, group, mask } = self.course.stages()[step];
            let allowed = self.allowed.instruction(pc, group);
            let lanes = stepping.lanes(group as usize).len() as u32;
            let some_lane = (0..lanes).any(|lane| self.allowed.lane(lane));
            for (site, list) in &mut sites {
                if allowed && *site != Site::Destination && self.exists(&stepping, *site, some_lane) {
                    list.push(step as u32);
                }
            }
            stepping.advance(1, Watch::Nothing)?;
            let late = sites.iter_mut().find(|(site, _)| *site == Site::Destination);
            if let Some((_, list)) = late.filter(|_| allowed && self.allowed.bits(mask.0) != 0) {
                // After the end of a group, a change to the registers of the group has no effect. So the site does not
                // exist after the last instruction of a group.
                let is_there = stepping.state(group as usize) != GroupState::Ended;
                if is_there && self.destinations(pc).next().is_some() {
                    list.push(step as u32);
                }
            }
        }
        let whole = |(site, list): (Site, Vec<u32>)| match list.len() {
            0 => None,
            count if count == steps => Some((site, Instants::All(steps as u64))),
            // In a campaign without a filter, the active mask is a site only if an active mask exists at every step.
            _ if site == Site::Flow(Kind::ActiveMask) && self.allowed == Allowed::default() => None,
            _ => Some((site, Instants::Some(list))),
        };
        self.instants = sites.into_iter().filter_map(whole).collect();
        Ok(())
    }

    /// Resolves the filter, and finds the registers that the filter allows.
    fn find_registers(
        &mut self,
        stepping: &Stepping,
        opened: &Opened,
        filter: &FaultFilter,
        labels: &[(String, u32)],
    ) -> Result<(), LaunchError> {
        let uses = opened.target.machine().uses(&opened.target, &self.program).unwrap_or_default();
        let all = registers(stepping, &uses);
        let names: Vec<String> =
            all.iter().map(|(register, ..)| register_name(stepping, *register)).collect();
        let shown = shown(opened, &self.program, &uses);
        self.allowed = filter.of_program(&shown, labels, &names).map_err(LaunchError::Machine)?;
        let kept = all.into_iter().zip(&names).filter(|(_, name)| self.allowed.register(name));
        for (place, ((register, bits, writers), name)) in kept.enumerate() {
            self.registers.push((register, bits));
            self.by_name.insert(name.clone(), place);
            for pc in writers {
                self.written.entry(pc).or_default().push(place);
            }
        }
        Ok(())
    }

    /// Returns the sites that the launch may have.
    fn possible(&self) -> Vec<Site> {
        let fits = |site: &Site| match site {
            Site::Register => !self.registers.is_empty(),
            Site::Destination => !self.written.is_empty(),
            _ if self.allowed.only_registers() => false,
            Site::Memory => self.areas.iter().any(|area| area.words() > 0),
            Site::Instruction => !self.allowed.only_lanes(),
            Site::Flow(_) => true,
        };
        Site::all().filter(|site| site.machines().contains(&self.isa)).filter(fits).collect()
    }

    /// Returns whether a site exists at the next instruction. `some_lane` states whether the filter allows at least one
    /// lane of the group that issues this instruction.
    fn exists(&self, stepping: &Stepping, site: Site, some_lane: bool) -> bool {
        match site {
            Site::Register | Site::Memory => some_lane || !self.allowed.only_lanes(),
            Site::Destination => false,
            Site::Instruction => stepping.next_words().is_some_and(|words| !words.is_empty()),
            Site::Flow(kind) => !words(stepping, &self.allowed, kind).is_empty(),
        }
    }
}

/// Returns the instructions of a program with their operations.
fn shown(opened: &Opened, program: &Program, uses: &UsesAt) -> Vec<ProgramLine> {
    let style = Style::default();
    let Ok(listing) = opened.target.machine().disassemble(&opened.target, program, style) else {
        return Vec::new();
    };
    let lines = listing.instructions(&program.words);
    let one = |line: &Line| {
        let pc = line.address?;
        let used = uses.get(&pc).into_iter().flatten().map(|uses| uses.operation.to_owned());
        let mut operations: Vec<String> = used.collect();
        let first: Vec<String> =
            operations.iter().filter_map(|name| Some(name.split_whitespace().next()?.to_owned())).collect();
        operations.extend(first);
        operations.extend(mnemonic(&line.code()));
        operations.sort_unstable();
        operations.dedup();
        Some(ProgramLine { pc, operations })
    };
    lines.iter().filter_map(one).collect()
}

/// Returns the mnemonic of an instruction. The mnemonic is the first word in the instruction's text that is a name. A
/// predicate or the number of a slot may precede the mnemonic.
fn mnemonic(text: &str) -> Option<String> {
    let is_name =
        |word: &&str| word.starts_with(|letter: char| letter.is_ascii_alphabetic()) && !word.ends_with(':');
    let words = text.split_whitespace().map(|word| word.trim_end_matches(';'));
    let first = words.clone().find(is_name).map(str::to_owned);
    first.or_else(|| words.map(|word| word.trim_end_matches(':')).next().map(str::to_owned))
}

/// Runs the launch to its end and records the control flow. `watchdog` is the maximum number of instructions per group.
fn record(stepping: &mut Stepping, watchdog: u64) -> Result<Course, LaunchError> {
    let mut course = Course::default();
    while stepping.current().is_some() {
        stepping.advance(1 << 20, Watch::of(&mut course))?;
        if course.stages().len() > MOST_STEPS {
            return Err(LaunchError::Machine(too_long(&course, stepping.groups(), watchdog)));
        }
    }
    Ok(course)
}

/// Returns the message that a golden run is too long. The cause is an endless loop or too many lanes.
fn too_long(course: &Course, groups: usize, watchdog: u64) -> String {
    let ran = course.longest(1);
    let limit = MOST_STEPS;
    if ran as usize > MOST_STEPS / 2 || groups == 1 {
        return format!(
            "a group has issued {ran} instructions and has not ended: is it an endless loop? watchdog = N in the launch \
             file (now {watchdog}) limits the instructions of a group; a golden run has at most {limit} instructions"
        );
    }
    format!(
        "the golden run has more than {limit} instructions in {groups} groups (up to {ran} in a group), and their profile \
         does not fit into memory; use fewer lanes"
    )
}

/// Returns the registers that a program names. Each entry has a register, the bits of the register, and the addresses
/// of the instructions that write the register. If an instruction accesses a register by an index, the register is not
/// known. In this case, the result has all registers of the register file. The address of this instruction is not in
/// the lists of these registers.
fn registers(stepping: &Stepping, uses: &UsesAt) -> Vec<(Register, u32, Vec<u32>)> {
    let classes = stepping.registers();
    let mut found: BTreeMap<(usize, usize, usize), Vec<u32>> = BTreeMap::new();
    let uses = uses.iter().flat_map(|(pc, uses)| uses.iter().map(move |uses| (*pc, uses)));
    let slots = uses.flat_map(|(pc, uses)| {
        let reads = uses.reads.iter().map(|read| (read.slot, None));
        reads.chain(uses.writes.iter().map(move |slot| (*slot, Some(pc))))
    });
    for (slot, writer) in slots {
        // Tesla numbers all its registers consecutively. The numbers of $a follow the numbers of $r.
        let first = if slot.file == "$a" { 0x80 } else { 0 };
        for (place, class) in classes.iter().enumerate() {
            let channels = class.channels.len().max(1);
            // On R700, the clause temporaries are the registers with the highest numbers.
            let (name, before) = if class.name == "T" { ("R", 128 - class.count) } else { (class.name, 0) };
            if name != slot.file || class.count == 0 || class.name == "$c" {
                continue;
            }
            match slot.number {
                None => {
                    let each = |number| (0..channels).map(move |channel| (place, number, channel));
                    for register in (0..class.count).flat_map(each) {
                        found.entry(register).or_default();
                    }
                }
                Some(number) => {
                    let number = (number as usize).wrapping_sub(first);
                    let (register, channel) = (number / channels, number % channels);
                    let register = register.wrapping_sub(before);
                    if register < class.count {
                        found.entry((place, register, channel)).or_default().extend(writer);
                    }
                }
            }
        }
    }
    let Some(group) = stepping.current() else { return Vec::new() };
    // Registers that only mirror other registers cannot be set. These registers are the outputs of R500, and $a0. The
    // result does not contain these registers.
    let mut trial = stepping.copy();
    let mut changes = |register: &Register| {
        let held = trial.read(group, *register).and_then(|lanes| lanes.first().copied());
        held.is_some_and(|held| trial.set(group, *register, Lane(0), held))
    };
    let register = |((place, number, channel), mut writers): ((usize, usize, usize), Vec<u32>)| {
        let class: &RegisterClass = &classes[place];
        writers.dedup();
        (Register { class: class.name, number, channel }, if class.name == "$a" { 16 } else { 32 }, writers)
    };
    found.into_iter().map(register).filter(|(register, ..)| changes(register)).collect()
}

/// Returns the parts of memory that faults can change.
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
