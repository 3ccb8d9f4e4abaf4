//! Passes the events of a run to a [`Sink`]. Each event has the number of its group.

use reconverge_simt::{Event, Mask, Observer, Watch};

/// Receives the events of a run, in the order in which the instructions are issued.
pub trait Sink {
    /// Receives several instructions that a group issued one after another. The same lanes are active in all of these
    /// instructions.
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask);

    /// Receives an event that is not the issue of an instruction.
    fn event(&mut self, group: usize, event: Event);

    /// If this sink only writes a trace, returns the trace writer. The engine then encodes flow events directly. Direct
    /// encoding is faster than one call per event.
    fn recording(&mut self) -> Option<reconverge_trace::Recording<'_>> {
        None
    }

    /// Returns whether the caller should call [`Sink::depth`].
    fn wants_depths(&self) -> bool {
        false
    }

    /// Receives the depth of a stack or counter of a group. `number` is the index of the stack or counter in
    /// [`reconverge_simt::FlowView::depths`].
    fn depth(&mut self, _group: usize, _number: usize, _used: u32) {}
}

/// An observer that passes events to a sink. If `DATA` is set, the events include register writes and memory accesses.
pub(crate) struct Recording<'a, const DATA: bool> {
    group: usize,
    depths: bool,
    sink: &'a mut dyn Sink,
}

impl<'a, const DATA: bool> Recording<'a, DATA> {
    pub(crate) fn new(sink: &'a mut dyn Sink) -> Self {
        Recording { group: 0, depths: sink.wants_depths(), sink }
    }
}

impl<const DATA: bool> Observer for Recording<'_, DATA> {
    const ENABLED: bool = true;
    const DATA: bool = DATA;

    fn event(&mut self, event: Event) {
        match event {
            Event::Issue { pc, mask } => self.sink.issues(self.group, &[pc], mask),
            other => self.sink.event(self.group, other),
        }
    }

    fn issues(&mut self, addresses: &[u32], mask: Mask) {
        self.sink.issues(self.group, addresses, mask);
    }

    fn group(&mut self, number: usize) {
        self.group = number;
    }

    #[inline]
    fn wants_depths(&self) -> bool {
        self.depths
    }

    fn depth(&mut self, number: usize, used: u32) {
        self.sink.depth(self.group, number, used);
    }
}

/// A sink that counts records. The count is the number of records that a trace of the run would have. A record is an
/// event, or a sequence of instructions with the same active lanes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pieces {
    /// Number of records so far.
    pub count: u64,
    last: Option<(usize, u32, Mask)>,
}

impl Sink for Pieces {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        let (Some(&first), Some(&end)) = (addresses.first(), addresses.last()) else { return };
        let goes_on = self.last.is_some_and(|(of, last, lanes)| of == group && lanes == mask && first > last);
        self.count += u64::from(!goes_on);
        self.last = Some((group, end, mask));
    }

    fn event(&mut self, _: usize, _: Event) {
        self.count += 1;
        self.last = None;
    }
}

/// The kinds of events that a run records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recorded {
    /// The issue of each instruction with the active lanes, and changes of the control flow.
    #[default]
    Flow,
    /// The events of `Flow`, and also register writes and memory accesses. To record register writes and memory
    /// accesses, the reference interpreter must run the launch.
    Data,
}

/// Calls `run` with an observer that passes the selected events to a sink.
pub(crate) fn recording<T>(recorded: Recorded, sink: &mut dyn Sink, run: impl FnOnce(Watch<'_>) -> T) -> T {
    match recorded {
        Recorded::Flow => match sink.recording() {
            Some(mut recording) => run(Watch::of(&mut recording)),
            None => run(Watch::of(&mut Recording::<false>::new(sink))),
        },
        Recorded::Data => run(Watch::of(&mut Recording::<true>::new(sink))),
    }
}
