//! The steps that lanes take from instruction to instruction.

use std::collections::BTreeSet;

use reconverge_simt::{Event, Lane, Mask, Observer};

/// Collects pairs of instructions from the events of one group. In a pair, a lane executes the second instruction
/// directly after the first instruction.
#[derive(Clone, Debug, Default)]
pub struct LaneSteps {
    /// The collected pairs, each as two addresses.
    pub steps: BTreeSet<(u32, u32)>,
    /// Addresses of the first instructions of lanes.
    pub starts: BTreeSet<u32>,
    /// Address of the last instruction of each lane.
    last: Vec<Option<u32>>,
    mask: Mask,
    /// The lanes that were active before a QUADON. Outside QUADON and its pop, the field is `None`. The collector only
    /// records the steps of these lanes. Any other lane runs only as a helper of its quad.
    own: Option<Mask>,
}

impl Observer for LaneSteps {
    const ENABLED: bool = true;
    const DATA: bool = false;

    fn event(&mut self, event: Event) {
        match event {
            Event::Issue { pc, mask } => self.issues(&[pc], mask),
            Event::Push { kind: "QUADON" } => self.own = Some(self.mask),
            Event::Pop { kind: "QUADON" } => self.own = None,
            _ => {}
        }
    }

    fn issues(&mut self, addresses: &[u32], mask: Mask) {
        let (Some(&first), Some(&end)) = (addresses.first(), addresses.last()) else { return };
        self.mask = mask;
        self.steps.extend(addresses.windows(2).map(|pair| (pair[0], pair[1])));
        for Lane(lane) in (mask & self.own.unwrap_or(mask)).lanes() {
            let lane = usize::from(lane);
            if self.last.len() <= lane {
                self.last.resize(lane + 1, None);
            }
            match self.last[lane].replace(end) {
                Some(before) => drop(self.steps.insert((before, first))),
                None => drop(self.starts.insert(first)),
            }
        }
    }
}
