//! What a run leaves: the vertices' output registers and counts.

use reconverge_simt::fidelity::Report;
use reconverge_simt::registers::from_rows;
use reconverge_simt::{Mask, Statistics};

use super::group::{Group, OUTPUT};
use super::inst::OUTPUTS;

/// What all vertices left in their output registers. An output that no vertex wrote takes no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    vertices: usize,
    values: Vec<Option<Vec<[u32; 4]>>>,
    written: [u8; OUTPUTS],
}

impl Outputs {
    /// Nothing written yet.
    pub(crate) fn new(vertices: usize) -> Outputs {
        Outputs { vertices, values: vec![None; OUTPUTS], written: [0; OUTPUTS] }
    }

    /// How many vertices there are.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// Bits of x, y, z, w that the vertices left in an output register, in their order; `None` where none wrote it. What a
    /// vertex did not write is 0.
    pub fn values(&self, output: usize) -> Option<&[[u32; 4]]> {
        self.values.get(output)?.as_deref()
    }

    /// Which channels of an output register any vertex wrote, bit 0 x.
    pub fn written(&self, output: usize) -> u8 {
        self.written.get(output).copied().unwrap_or(0)
    }

    /// Takes what a group has left; its lane 0 is vertex `first`.
    pub(crate) fn put(&mut self, group: &Group, first: usize) {
        let count = group.flow.lanes().count() as usize;
        for (output, written) in group.written.iter().enumerate() {
            let channels = (0..4).filter(|channel| written[*channel].any()).fold(0, |mask, channel| mask | 1 << channel);
            if channels == 0 {
                continue;
            }
            self.written[output] |= channels;
            let values = self.values[output].get_or_insert_with(|| vec![[0; 4]; self.vertices]);
            let rows = [0, 1, 2, 3].map(|channel| &group.rows[OUTPUT.start + output * 4 + channel]);
            from_rows(rows, &mut values[first..first + count]);
        }
    }

    /// Takes what vertices from `first` on left.
    pub(crate) fn put_all(&mut self, part: &Outputs, first: usize) {
        for (output, values) in part.values.iter().enumerate() {
            let Some(values) = values else { continue };
            self.written[output] |= part.written[output];
            let all = self.values[output].get_or_insert_with(|| vec![[0; 4]; self.vertices]);
            all[first..first + values.len()].copy_from_slice(values);
        }
    }
}

/// What a run leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The vertices' output registers.
    pub outputs: Outputs,
    /// Counts. An instruction is one for a group of up to 64 vertices.
    pub statistics: Statistics,
    /// What was executed, and how exact it was.
    pub report: Report,
}

impl Outcome {
    /// Before anything ran.
    pub(crate) fn new(vertices: usize) -> Outcome {
        let (statistics, report) = (Statistics::default(), Report::default());
        Outcome { outputs: Outputs::new(vertices), statistics, report }
    }

    /// Takes what a group has left; its lane 0 is vertex `first`.
    pub(crate) fn put(&mut self, group: &Group, first: usize) {
        self.outputs.put(group, first);
        self.statistics.add(&group.statistics());
        self.report.add(&group.report());
    }

    /// Takes what vertices from `first` on left.
    pub(crate) fn put_all(&mut self, part: &Outcome, first: usize) {
        self.outputs.put_all(&part.outputs, first);
        self.statistics.add(&part.statistics);
        self.report.add(&part.report);
    }
}

/// Marks vertices as having written the channels of an output.
pub(crate) fn mark(written: &mut [Mask; 4], channels: u8, lanes: Mask) {
    for (channel, mask) in written.iter_mut().enumerate() {
        if channels >> channel & 1 == 1 {
            *mask |= lanes;
        }
    }
}
