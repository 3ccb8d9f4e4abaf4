//! The outcome of a run: exports, memory, counts, fidelity.

use reconverge_isa::sets::SortedSet;
use reconverge_simt::fidelity::Report;
use reconverge_simt::{Fidelity, Mask, Statistics};

use crate::chip::LANES;
use crate::code::ExportKind;
use crate::flow::Open;
#[cfg(doc)]
use crate::launch::Launch;
use crate::rules::Rule;

/// Fidelity of a run: the executed instructions, and the disputed rules on which the result depended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// ALU and fetch instructions by name. Each issue of an instruction to a wavefront counts once.
    pub report: Report,
    /// The rules that affected the result.
    pub rules: SortedSet<Rule>,
}

impl Executed {
    /// Counts an executed instruction, and records the disputed rule of the instruction.
    pub(crate) fn count(&mut self, name: &'static str, fidelity: Fidelity, rule: Option<Rule>) {
        self.report.count(name, fidelity, 1);
        self.rules.extend(rule);
    }

    /// Adds `other`, the counts and rules of another wavefront.
    pub fn add(&mut self, other: &Executed) {
        self.report.add(&other.report);
        self.rules.extend(other.rules.iter().copied());
    }
}

/// Values of one export target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Kind of the target: pixel, position or parameter.
    pub kind: ExportKind,
    /// Number of the target: ARRAY_BASE plus the index of the register in the burst.
    pub base: u16,
    /// Components x, y, z, w for each lane. A component is 0 if the lane did not write the component.
    pub values: Vec<[u32; 4]>,
    /// For each lane, the components that the lane wrote, as a bit mask. Bit 0 is x.
    pub written: Vec<u8>,
}

impl Exported {
    /// Returns the target's name: `pixel0`, `pos60`, `param0`.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            ExportKind::Pixel => "pixel",
            ExportKind::Pos => "pos",
            ExportKind::Param => "param",
        };
        format!("{kind}{}", self.base)
    }
}

/// Values of one export target, in one list per component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedColumns {
    /// Kind of the target: pixel, position or parameter.
    pub kind: ExportKind,
    /// Number of the target: ARRAY_BASE plus the index of the register in the burst.
    pub base: u16,
    /// For each of x, y, z and w, one word per lane. A word is 0 if the lane did not write the component.
    pub components: [Vec<u32>; 4],
    /// Whether any lane wrote to the target.
    pub written: bool,
}

/// One execution of EMIT_VERTEX, EMIT_CUT_VERTEX or CUT_VERTEX in a geometry program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// Number of the wavefront's first lane: the position of the lane in the launch, plus [`Launch::first_lane`].
    pub first_lane: usize,
    /// The lanes that ran the instruction. All lanes belong to the wavefront.
    pub lanes: Mask,
    /// Whether the lanes emitted a vertex.
    pub vertex: bool,
    /// Whether the lanes ended a strip.
    pub cut: bool,
}

/// Memory after a run. If each lane has separate memory in a space, the space has one list of dwords for each lane. The
/// length of a list is the number of dwords that the lane's wavefront used. If no lane has written to the space, no
/// lists exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryOutcome {
    /// Scratch memory.
    pub scratch: Vec<Vec<u32>>,
    /// The reduction buffer.
    pub reduction: Vec<Vec<u32>>,
    /// The ring between the vertex and the geometry program.
    pub ring: Vec<Vec<u32>>,
    /// Stream-out records of the four streams.
    pub streams: [Vec<Vec<u32>>; 4],
    /// The scatter buffer.
    pub scatter: Vec<u32>,
    /// The global registers, in the form of [`Launch::global`].
    pub global: Vec<[[u32; LANES]; 4]>,
}

/// Outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Export targets, in the order of kind and base.
    pub exports: Vec<Exported>,
    /// Export targets with one list per component. If the launch does not request lists per component
    /// ([`Launch::by_column`]), this field is empty.
    pub columns: Vec<ExportedColumns>,
    /// One entry per lane. The entry is `true` if the lane was not covered at the start, or if a KILL removed the lane.
    pub killed: Vec<bool>,
    /// Memory after the run.
    pub memory: MemoryOutcome,
    /// Emissions of a geometry program, in order.
    pub emissions: Vec<Emission>,
    /// Counts of the run. [`Wave`](crate::wave::Wave) defines these counts.
    pub statistics: Statistics,
    /// Executed instructions and their fidelity. If the launch does not request [reports](Launch::reports), this field
    /// is empty.
    pub fidelity: Executed,
    /// Number of stack entries that the wavefront with the deepest stack needed.
    pub stack_needed: u32,
    /// In strict mode, the stack entries of the first wavefront that ended with entries on its stack. Such entries do
    /// not cause a trap.
    pub finding: Option<Open>,
}

impl Outcome {
    /// Returns the export target, or `None` if nothing was written to the target.
    pub fn export(&self, kind: ExportKind, base: u16) -> Option<&Exported> {
        self.exports.iter().find(|exported| exported.kind == kind && exported.base == base)
    }

    /// Clears the outcome, and prepares the outcome for a launch of `lanes` lanes. The caller must later call
    /// [`Outcome::drop_unused`].
    pub(crate) fn begin(&mut self, lanes: usize) {
        let Outcome {
            exports,
            columns,
            killed,
            memory,
            emissions,
            statistics,
            fidelity,
            stack_needed,
            finding,
        } = self;
        for Exported { values, written, .. } in exports {
            values.clear();
            written.clear();
        }
        for ExportedColumns { components, written, .. } in columns {
            components.iter_mut().for_each(Vec::clear);
            *written = false;
        }
        killed.clear();
        killed.reserve_exact(lanes);
        *memory = MemoryOutcome::default();
        emissions.clear();
        *statistics = Statistics::default();
        *fidelity = Executed::default();
        (*stack_needed, *finding) = (0, None);
    }

    /// Removes targets of earlier launches. Targets to which the current launch has added data since [`Outcome::begin`]
    /// remain.
    pub(crate) fn drop_unused(&mut self) {
        self.exports.retain(|exported| !exported.values.is_empty());
        self.columns.retain(|columns| !columns.components[0].is_empty());
    }

    /// Returns the export target. If the target does not exist, adds the target with zeros for `lanes` lanes.
    pub(crate) fn export_mut(&mut self, kind: ExportKind, base: u16, lanes: usize) -> &mut Exported {
        let place =
            self.exports.binary_search_by_key(&(kind, base), |exported| (exported.kind, exported.base));
        let place = place.unwrap_or_else(|place| {
            self.exports.insert(place, Exported { kind, base, values: Vec::new(), written: Vec::new() });
            place
        });
        let found = &mut self.exports[place];
        if found.values.is_empty() {
            found.values.resize(lanes, [0; 4]);
            found.written.resize(lanes, 0);
        }
        found
    }

    /// Returns the columns of an export target. If the target has no columns, adds columns with zeros for `lanes`
    /// lanes.
    pub(crate) fn columns_mut(&mut self, kind: ExportKind, base: u16, lanes: usize) -> &mut ExportedColumns {
        let place = self.columns.iter().position(|columns| (columns.kind, columns.base) == (kind, base));
        let place = place.unwrap_or_else(|| {
            let components = [const { Vec::new() }; 4];
            self.columns.push(ExportedColumns { kind, base, components, written: false });
            self.columns.len() - 1
        });
        let found = &mut self.columns[place];
        if found.components[0].is_empty() {
            found.components.iter_mut().for_each(|component| component.resize(lanes, 0));
        }
        found
    }

    /// Adds the counts of `other`, the outcome of later lanes.
    pub(crate) fn add_counts(&mut self, other: &Outcome) {
        self.statistics.add(&other.statistics);
        self.fidelity.add(&other.fidelity);
        self.stack_needed = self.stack_needed.max(other.stack_needed);
        self.finding = self.finding.or(other.finding);
    }
}
