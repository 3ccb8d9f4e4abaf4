//! Results of a run: the output registers of the lanes, counts and findings.
//!
//! The render targets and depth have seventeen channels in total. Most programs write only a few channels. So the
//! outputs are stored by channel. If a lane wrote a channel, the channel has a column with one word per lane. A channel
//! that no lane wrote does not have a column.

use reconverge_simt::fidelity::Report;
use reconverge_simt::wide::prefetch;
use reconverge_simt::{Lane, Mask, Statistics};
use thiserror::Error;

use crate::flow::LeftOpen;
use crate::group::{DEPTH_ROW, Group, OUTPUTS, color_row, output_row};
use crate::inst::TARGETS;

/// The output registers of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneOutput {
    /// Whether TEXKILL killed the lane. The outputs of a killed lane are treated as not written.
    pub killed: bool,
    /// Bits of r, g, b, a for render targets A to D.
    pub color: [[u32; 4]; TARGETS],
    /// Written channels of each target. Bit 0 is red.
    pub written: [u8; TARGETS],
    /// The depth (W) output. `None` if the lane did not write depth.
    pub depth: Option<u32>,
}

impl LaneOutput {
    /// Returns the current outputs of a lane of a group.
    pub fn of(group: &Group, lane: usize) -> LaneOutput {
        let at = Lane(lane as u8);
        let mut output = LaneOutput { killed: group.killed.has(at), ..LaneOutput::default() };
        for target in 0..TARGETS {
            for channel in 0..4 {
                output.color[target][channel] = group.rows[color_row(target, channel)][lane];
                if group.written.color[target][channel].has(at) {
                    output.written[target] |= 1 << channel;
                }
            }
        }
        output.depth = group.written.depth.has(at).then(|| group.rows[DEPTH_ROW][lane]);
        output
    }
}

/// The output registers of all lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    lanes: usize,
    killed: LaneBits,
    /// One column for each output that at least one lane wrote. The columns of render targets A to D come first,
    /// followed by the column of depth.
    columns: Vec<(usize, Column)>,
}

/// A bit for each lane. The lowest bit of the first word is lane 0. Words at the end may be missing. A missing word
/// stands for 0.
type LaneBits = Vec<u64>;

/// Number of lanes in a word of [`LaneBits`].
const WORD: usize = u64::BITS as usize;

/// A column contains the words that the lanes have written to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    /// One word per lane. The word is 0 if the lane did not write the channel. The words of the last lanes may be
    /// missing until the outputs are [settled](Outputs::settled).
    words: Vec<u32>,
    /// The lanes of `words` that did not write the channel.
    missing: LaneBits,
}

impl Column {
    /// Extends the column to `lanes` lanes. The new lanes are marked as lanes that did not write the channel.
    fn pad(&mut self, lanes: usize) {
        let from = self.words.len();
        if from < lanes {
            self.words.resize(lanes, 0);
            for word in from / WORD..lanes.div_ceil(WORD) {
                let first = word * WORD;
                let lanes = Mask::first(lanes - first) - Mask::first(from.saturating_sub(first));
                insert(&mut self.missing, first, lanes);
            }
        }
    }
}

/// Returns the output number of a channel of a render target.
const fn color(target: usize, channel: usize) -> usize {
    target * 4 + channel
}

/// The output number of depth.
const DEPTH: usize = OUTPUTS - 1;

impl Outputs {
    /// Returns the number of lanes.
    pub fn len(&self) -> usize {
        self.lanes
    }

    /// Returns whether there are no lanes.
    pub fn is_empty(&self) -> bool {
        self.lanes == 0
    }

    /// Returns the output registers of a lane, or `None` if the lane does not exist.
    pub fn get(&self, lane: usize) -> Option<LaneOutput> {
        (lane < self.lanes).then(|| self.at(lane))
    }

    /// Returns the output registers of a lane, which must exist.
    fn at(&self, lane: usize) -> LaneOutput {
        let mut output = LaneOutput { killed: has(&self.killed, lane), ..LaneOutput::default() };
        for (number, column) in &self.columns {
            let (wrote, word) = (!has(&column.missing, lane), column.words[lane]);
            match *number {
                DEPTH => output.depth = wrote.then_some(word),
                number => {
                    output.color[number / 4][number % 4] = word;
                    output.written[number / 4] |= u8::from(wrote) << (number % 4);
                }
            }
        }
        output
    }

    /// Returns the words of an output, or `None` if no lane wrote the output.
    fn words(&self, output: usize) -> Option<&[u32]> {
        let (_, column) = self.columns.iter().find(|(number, _)| *number == output)?;
        Some(&column.words)
    }

    /// Returns the output registers of each lane, in lane order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = LaneOutput> + '_ {
        (0..self.lanes).map(|lane| self.at(lane))
    }

    /// Returns the bits of a channel (0 red to 3 alpha) of a render target (0 to 3). The slice has one word per lane.
    /// The word is 0 if the lane did not write the channel. Returns `None` if no lane wrote the channel, or if the
    /// channel does not exist.
    pub fn color(&self, target: usize, channel: usize) -> Option<&[u32]> {
        if target >= TARGETS || channel >= 4 {
            return None;
        }
        self.words(color(target, channel))
    }

    /// Removes the column of a channel and returns the words of the column. See [`Outputs::color`].
    pub fn take_color(&mut self, target: usize, channel: usize) -> Option<Vec<u32>> {
        if target >= TARGETS || channel >= 4 {
            return None;
        }
        let output = color(target, channel);
        let place = self.columns.iter().position(|(number, _)| *number == output)?;
        Some(self.columns.remove(place).1.words)
    }

    /// Returns the bits of the depth (W) output. The slice has one word per lane. The word is 0 if the lane did not
    /// write the output. Returns `None` if no lane wrote the output.
    pub fn depth(&self) -> Option<&[u32]> {
        self.words(DEPTH)
    }

    /// Returns whether TEXKILL killed any lane.
    pub fn any_killed(&self) -> bool {
        self.killed.iter().any(|word| *word != 0)
    }

    /// Returns, for each lane, whether TEXKILL killed the lane.
    pub fn killed(&self) -> Vec<bool> {
        let mut killed = Vec::with_capacity(self.lanes.next_multiple_of(WORD));
        for word in &self.killed {
            killed.extend((0..WORD).map(|lane| word >> lane & 1 != 0));
        }
        killed.resize(self.lanes, false);
        killed
    }

    /// Returns whether TEXKILL killed a lane.
    pub fn is_killed(&self, lane: usize) -> bool {
        lane < self.lanes && has(&self.killed, lane)
    }

    /// Returns empty outputs with space for `lanes` lanes. `outputs` yields the numbers of the outputs that lanes may
    /// write, in ascending order.
    pub(crate) fn new(lanes: usize, outputs: impl Iterator<Item = usize>) -> Outputs {
        let column = || Column { words: Vec::with_capacity(lanes), missing: LaneBits::new() };
        let columns = outputs.map(|output| (output, column())).collect();
        Outputs { lanes, killed: LaneBits::new(), columns }
    }

    /// Drops the columns that no lane wrote, so that equal runs return equal outputs. Extends the remaining columns to
    /// all lanes.
    pub(crate) fn settled(mut self) -> Outputs {
        // A column is empty until some lane writes to the column.
        self.columns.retain(|(_, column)| !column.words.is_empty());
        self.columns.iter_mut().for_each(|(_, column)| column.pad(self.lanes));
        self
    }

    /// Adds the outputs of the first `lanes` lanes of a group that has ended. Lane 0 of the group becomes lane `place`
    /// of the outputs. Groups must be added in lane order.
    pub(crate) fn put(&mut self, group: &Group, place: usize, lanes: usize) {
        let all = Mask::first(lanes);
        insert(&mut self.killed, place, group.killed & all);
        for (output, column) in &mut self.columns {
            let wrote = group.written.output(*output) & all;
            if wrote.any() {
                debug_assert!(column.words.len() <= place, "groups come in order");
                if column.words.len() < place {
                    column.pad(place);
                }
                column.words.extend_from_slice(&group.rows[output_row(*output)][..lanes]);
                // The next group writes to this memory.
                prefetch(column.words.spare_capacity_mut().as_ptr().cast(), 4 * lanes);
                if wrote != all {
                    (all - wrote).lanes().for_each(|lane| column.words[place + lane.index()] = 0);
                    insert(&mut column.missing, place, all - wrote);
                }
            }
        }
    }

    /// Joins the outputs of consecutive parts of a launch. The number of lanes in each part, except for the last part,
    /// must be a multiple of [`WORD`].
    pub(crate) fn joined(parts: Vec<Outputs>) -> Outputs {
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            debug_assert!(all.lanes.is_multiple_of(WORD), "parts share no word");
            append(&mut all.killed, all.lanes, &part.killed);
            for ((_, column), (_, more)) in all.columns.iter_mut().zip(part.columns) {
                if !more.words.is_empty() {
                    column.pad(all.lanes);
                    column.words.extend(more.words);
                    append(&mut column.missing, all.lanes, &more.missing);
                }
            }
            all.lanes += part.lanes;
        }
        all
    }
}

fn has(bits: &LaneBits, lane: usize) -> bool {
    bits.get(lane / WORD).is_some_and(|word| Mask(*word).has(Lane((lane % WORD) as u8)))
}

/// Sets the bits for the lanes of a mask. The bit for lane 0 of the mask is bit `place`.
#[inline]
fn insert(bits: &mut LaneBits, place: usize, lanes: Mask) {
    if lanes.is_empty() {
        return;
    }
    let (word, shift) = (place / WORD, place % WORD);
    let parts = [lanes.0 << shift, if shift == 0 { 0 } else { lanes.0 >> (WORD - shift) }];
    for (at, part) in (word..).zip(parts).filter(|(_, part)| *part != 0) {
        bits.resize(bits.len().max(at + 1), 0);
        bits[at] |= part;
    }
}

/// Appends the bits of a part. The first lane of the part is `place`, which must be a multiple of [`WORD`].
fn append(bits: &mut LaneBits, place: usize, part: &LaneBits) {
    if !part.is_empty() {
        bits.resize(place / WORD, 0);
        bits.extend_from_slice(part);
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The output registers of the lanes.
    pub outputs: Outputs,
    /// Execution counts, summed over all groups.
    pub statistics: Statistics,
    /// The executed operations and their accuracy.
    pub report: Report,
    /// The first finding of strict mode. Groups run in order, so this finding belongs to the first group that has a
    /// finding.
    pub finding: Option<Finding>,
}

/// A report of strict mode that a group ended with entries on its stacks. Such a report is not a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{left_open} (group from lane {first_lane})")]
pub struct Finding {
    /// First lane of the group.
    pub first_lane: usize,
    /// The numbers of entries that remain on the stacks of the ended group.
    pub left_open: LeftOpen,
}

impl Outcome {
    /// Returns the output registers of a lane, or `None` if the lane does not exist.
    pub fn lane(&self, lane: usize) -> Option<LaneOutput> {
        self.outputs.get(lane)
    }

    /// Returns the output registers of each lane, in lane order.
    pub fn lanes(&self) -> impl ExactSizeIterator<Item = LaneOutput> + '_ {
        self.outputs.iter()
    }
}

/// The sums of the counts of several groups, and the first finding in these groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// Execution counts, summed over all groups.
    pub(crate) statistics: Statistics,
    /// The executed operations and their accuracy.
    pub(crate) report: Report,
    /// The first finding of strict mode. Groups run in order, so this finding belongs to the first group that has a
    /// finding.
    pub(crate) finding: Option<Finding>,
}

impl Totals {
    /// Adds the counts, the report and the finding of a group that has ended.
    pub(crate) fn add_group(&mut self, group: &Group, first_lane: usize) {
        self.add_counts(group, first_lane);
        self.report.add(&group.report());
    }

    /// Adds the counts and the finding of a group that has ended. Does not add the report of the group.
    pub(crate) fn add_counts(&mut self, group: &Group, first_lane: usize) {
        self.statistics.add(&group.statistics());
        self.add_finding(group, first_lane);
    }

    /// Adds the finding of strict mode for a group that has ended.
    pub(crate) fn add_finding(&mut self, group: &Group, first_lane: usize) {
        let finding = group.flow().left_open().map(|left_open| Finding { first_lane, left_open });
        self.finding = first(self.finding, finding);
    }

    /// Adds the totals of other groups. In the order of lanes, the groups of `other` may precede or follow the groups
    /// of `self`.
    pub(crate) fn add(&mut self, other: &Totals) {
        self.statistics.add(&other.statistics);
        self.report.add(&other.report);
        self.finding = first(self.finding, other.finding);
    }

    /// Returns the outcome of a run with these totals and outputs.
    pub(crate) fn with(self, outputs: Outputs) -> Outcome {
        let Totals { statistics, report, finding } = self;
        Outcome { outputs: outputs.settled(), statistics, report, finding }
    }
}

/// Returns the finding of the group whose lanes have the lower numbers.
fn first(one: Option<Finding>, other: Option<Finding>) -> Option<Finding> {
    one.into_iter().chain(other).min_by_key(|finding| finding.first_lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a group with lanes 62 to 73 of a launch. Each lane except lane 70 writes the number of the lane to blue
    /// of target B.
    fn group_of_twelve() -> Group {
        let setup =
            crate::text::assemble("OUT nop\n").map(|assembled| crate::setup::Setup::new(&assembled.program));
        let setup = std::sync::Arc::new(setup.expect("it assembles").expect("a program"));
        let mut group = crate::launch::Launch::default().group(
            &setup,
            &reconverge_simt::Options::default(),
            0,
            Mask::first(12),
        );
        group.rows[output_row(color(1, 2))] =
            std::array::from_fn(|lane| if lane == 8 { 0 } else { 62 + lane as u32 });
        group.written.color[1][2] = Mask::first(12) - Mask(1 << 8);
        group.killed = Mask(1 << 5);
        group
    }

    /// Returns the outputs of a launch of 100 lanes. Only the lanes of [`group_of_twelve`] have written outputs.
    fn part_of_a_run() -> Outputs {
        let group = group_of_twelve();
        let mut outputs = Outputs::new(100, [color(1, 2), color(0, 0), DEPTH].into_iter());
        outputs.put(&group, 62, 12);
        outputs.settled()
    }

    #[test]
    fn threads_leave_their_lanes_across_words_of_bits() {
        let outputs = part_of_a_run();
        let wrote: Vec<usize> =
            (0..100).filter(|lane| outputs.get(*lane).unwrap().written[1] == 0b100).collect();
        assert_eq!(wrote, [62, 63, 64, 65, 66, 67, 68, 69, 71, 72, 73]);
        let killed: Vec<usize> = (0..100).filter(|lane| outputs.get(*lane).unwrap().killed).collect();
        assert_eq!((killed, outputs.any_killed()), (vec![67], true));
        assert_eq!(outputs.killed(), (0..100).map(|lane| outputs.is_killed(lane)).collect::<Vec<_>>());
        assert_eq!([69, 70, 73, 74].map(|lane| outputs.get(lane).unwrap().color[1][2]), [69, 0, 73, 0]);
        assert_eq!((outputs.get(100), outputs.len(), outputs.iter().len()), (None, 100, 100));
    }

    #[test]
    fn channels_that_no_lane_wrote_have_no_column() {
        let outputs = part_of_a_run();
        assert!(outputs.color(0, 0).is_none() && outputs.depth().is_none());
        assert!(outputs.color(4, 0).is_none() && outputs.color(0, 4).is_none());
        assert_eq!(outputs.color(1, 2).map(|words| (words.len(), words[63])), Some((100, 63)));
    }

    #[test]
    fn parts_are_the_whole() {
        let mut group = group_of_twelve();
        let wanted = || [color(1, 2), color(0, 0), DEPTH].into_iter();
        let (mut whole, mut parts) = (Outputs::new(150, wanted()), Vec::new());
        for first_lane in [0, 64, 128] {
            let mut part = Outputs::new(64.min(150 - first_lane), wanted());
            for place in [12, 40] {
                // The last part ends in the middle of the group's lanes.
                let lanes = 12.min(part.lanes.saturating_sub(place));
                group.killed = Mask(1 << (first_lane / 64));
                part.put(&group, place, lanes);
                whole.put(&group, first_lane + place, lanes);
            }
            parts.push(part);
        }
        let lanes: Vec<_> = parts.iter().map(|part| (part.lanes, part.killed.len())).collect();
        assert_eq!(lanes, [(64, 1), (64, 1), (22, 1)]);
        assert_eq!(Outputs::joined(parts).settled(), whole.settled());
    }
}
