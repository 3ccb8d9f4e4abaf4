//! Results of a run: the output registers of the vertices, and counts.

use reconverge_simt::fidelity::Report;
use reconverge_simt::registers::from_rows;
use reconverge_simt::{Mask, Statistics};

use super::group::{Group, OUTPUT};
use super::inst::OUTPUTS;

/// The output registers of all vertices. An output that no vertex wrote does not use memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    vertices: usize,
    values: Vec<Option<Vec<[u32; 4]>>>,
    written: [u8; OUTPUTS],
}

impl Outputs {
    /// Returns the outputs of a run in which no vertex has written anything yet.
    pub(crate) fn new(vertices: usize) -> Outputs {
        Outputs { vertices, values: vec![None; OUTPUTS], written: [0; OUTPUTS] }
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// Returns the bits of x, y, z, w of an output register for each vertex, in vertex order. If a vertex did not write
    /// a channel, the bits of that channel are 0. Returns `None` if no vertex wrote the register.
    pub fn values(&self, output: usize) -> Option<&[[u32; 4]]> {
        self.values.get(output)?.as_deref()
    }

    /// Returns the channels of an output register that at least one vertex wrote. Bit 0 is x.
    pub fn written(&self, output: usize) -> u8 {
        self.written.get(output).copied().unwrap_or(0)
    }

    /// Stores the outputs of a group. Lane 0 of the group is vertex `first`.
    pub(crate) fn put(&mut self, group: &Group, first: usize) {
        let count = group.flow.lanes().count() as usize;
        for (output, written) in group.written.iter().enumerate() {
            let channels =
                (0..4).filter(|channel| written[*channel].any()).fold(0, |mask, channel| mask | 1 << channel);
            if channels == 0 {
                continue;
            }
            self.written[output] |= channels;
            let values = self.values[output].get_or_insert_with(|| vec![[0; 4]; self.vertices]);
            let rows = [0, 1, 2, 3].map(|channel| &group.rows[OUTPUT.start + output * 4 + channel]);
            from_rows(None, rows, &mut values[first..first + count]);
        }
    }

    /// Stores the outputs of a part of the launch. The first vertex of the part is vertex `first` of the launch.
    pub(crate) fn put_all(&mut self, part: &Outputs, first: usize) {
        for (output, values) in part.values.iter().enumerate() {
            let Some(values) = values else { continue };
            self.written[output] |= part.written[output];
            let all = self.values[output].get_or_insert_with(|| vec![[0; 4]; self.vertices]);
            all[first..first + values.len()].copy_from_slice(values);
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The output registers of the vertices.
    pub outputs: Outputs,
    /// Execution counts, summed over all groups. An instruction that is issued to a group of up to 64 vertices is
    /// counted once.
    pub statistics: Statistics,
    /// The executed operations and their accuracy.
    pub report: Report,
}

impl Outcome {
    /// Returns the outcome of a run that has not executed any instruction.
    pub(crate) fn new(vertices: usize) -> Outcome {
        let (statistics, report) = (Statistics::default(), Report::default());
        Outcome { outputs: Outputs::new(vertices), statistics, report }
    }

    /// Adds the results of a group. Lane 0 of the group is vertex `first`.
    pub(crate) fn put(&mut self, group: &Group, first: usize) {
        self.outputs.put(group, first);
        self.statistics.add(&group.statistics());
        self.report.add(&group.report());
    }

    /// Adds the results of a part of the launch. The first vertex of the part is vertex `first` of the launch.
    pub(crate) fn put_all(&mut self, part: &Outcome, first: usize) {
        self.outputs.put_all(&part.outputs, first);
        self.statistics.add(&part.statistics);
        self.report.add(&part.report);
    }
}

/// Records that the vertices `lanes` wrote the channels `channels` of an output.
pub(crate) fn mark(written: &mut [Mask; 4], channels: u8, lanes: Mask) {
    for (channel, mask) in written.iter_mut().enumerate() {
        if channels >> channel & 1 == 1 {
            *mask |= lanes;
        }
    }
}
