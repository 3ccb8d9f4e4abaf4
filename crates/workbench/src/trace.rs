//! What happens in a run, handed to a [`Sink`] with the group that it happens to.

use reconverge_simt::{Event, Mask, Observer, Watch};

/// Takes what happens in a run, in the fixed order of its instructions.
pub trait Sink {
    /// Takes the issues of instructions that follow each other with the same lanes, by their addresses.
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask);

    /// Takes an event that is no issue.
    fn event(&mut self, group: usize, event: Event);

    /// The trace that it writes, if that is all it does: of flow the engine then packs what happens itself, without a call
    /// for each event, which would take more time than the event itself.
    fn recording(&mut self) -> Option<reconverge_trace::Recording<'_>> {
        None
    }

    /// Whether [`Sink::depth`] is of interest.
    fn wants_depths(&self) -> bool {
        false
    }

    /// Takes how full a stack or counter of a group is, by its place in [`reconverge_simt::FlowView::depths`].
    fn depth(&mut self, _group: usize, _number: usize, _used: u32) {}
}

/// Hands events to a sink. With `DATA`, writes to registers and accesses to memory are among them.
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

/// Counts what a trace of a run would hold: runs of instructions with the same lanes, and events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pieces {
    /// How many so far.
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

/// What a trace records of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recorded {
    /// Issues, masks and what happens to the flow.
    #[default]
    Flow,
    /// Writes to registers and accesses to memory as well. They come from the reference interpreter.
    Data,
}

/// Calls a function with the observer that hands to a sink what is recorded.
pub(crate) fn recording<T>(recorded: Recorded, sink: &mut dyn Sink, run: impl FnOnce(Watch<'_>) -> T) -> T {
    match recorded {
        Recorded::Flow => match sink.recording() {
            Some(mut recording) => run(Watch::of(&mut recording)),
            None => run(Watch::of(&mut Recording::<false>::new(sink))),
        },
        Recorded::Data => run(Watch::of(&mut Recording::<true>::new(sink))),
    }
}
