//! Passes the events of a run to a [`Sink`], with their groups.

use reconverge_simt::{Event, Mask, Observer, Watch};

/// Receives the events of a run, in the fixed order of its instructions.
pub trait Sink {
    /// Receives the issues of consecutive instructions with the same lanes, by their addresses.
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask);

    /// Receives an event other than an issue.
    fn event(&mut self, group: usize, event: Event);

    /// Returns the trace writer of this sink, if the sink only writes a trace. The engine then packs flow events
    /// itself. This avoids a call per event, which would take more time than the event itself.
    fn recording(&mut self) -> Option<reconverge_trace::Recording<'_>> {
        None
    }

    /// Returns whether [`Sink::depth`] is called.
    fn wants_depths(&self) -> bool {
        false
    }

    /// Receives the depth of a stack or counter of a group. `number` is its index in
    /// [`reconverge_simt::FlowView::depths`].
    fn depth(&mut self, _group: usize, _number: usize, _used: u32) {}
}

/// Passes events to a sink. With `DATA`, they include writes to registers and accesses to memory.
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

/// Counts the records of a trace of a run: runs of instructions with the same lanes, and events.
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

/// The events that a trace of a run contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recorded {
    /// Issues, masks and changes of the flow.
    #[default]
    Flow,
    /// The events of `Flow`, writes to registers, and accesses to memory. The last two come from the reference interpreter.
    Data,
}

/// Calls a function with the observer that passes the recorded events to a sink.
pub(crate) fn recording<T>(recorded: Recorded, sink: &mut dyn Sink, run: impl FnOnce(Watch<'_>) -> T) -> T {
    match recorded {
        Recorded::Flow => match sink.recording() {
            Some(mut recording) => run(Watch::of(&mut recording)),
            None => run(Watch::of(&mut Recording::<false>::new(sink))),
        },
        Recorded::Data => run(Watch::of(&mut Recording::<true>::new(sink))),
    }
}
