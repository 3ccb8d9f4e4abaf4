//! The four counters of a multiprocessor, which programs read as $pm0 to $pm3.
//!
//! The driver sets the counters to 0, selects the signals of the counters, and launches programs. After these launches,
//! the driver stops the counters. The driver then launches a program that stores the counters. In this model, one
//! multiprocessor runs all blocks. Sources: Mesa `nv50_query_hw_sm.c` and `nv50_compute.xml.h`.

use reconverge_simt::observe::Statistics;

use super::methods::MpPmControl;
use super::state::Unknown;

/// Entry n is a logic function. The result of the function is signal n, the signal of counter n. A logic function is a
/// truth table of the four signals.
const OWN: [u16; 4] = [0xaaaa, 0xcccc, 0xf0f0, 0xff00];

/// A signal that a counter can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Instructions,
    DivergentBranches,
    Blocks,
}

impl Signal {
    /// Returns the signal that a number and a unit select. If the signal is not supported, returns the name of the
    /// signal as an error.
    fn of(number: u8, unit: u8) -> Result<Signal, String> {
        match (number, unit) {
            (0x04, 4) => Ok(Signal::Instructions),
            (0x09, 4) => Ok(Signal::DivergentBranches),
            (0x33, 1) => Ok(Signal::Blocks),
            (0x02, 4) => Err("branches".to_owned()),
            (0x0b, 0) => Err("serialized warps".to_owned()),
            (0x26..=0x2d, 1) => Err(format!("trigger {} of pmevent", number - 0x26)),
            _ => Err(format!("signal {number:#x} of unit {unit}")),
        }
    }
}

/// The counters, and the signals that the counters count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MpCounters {
    values: [u32; 4],
    signals: [Option<Signal>; 4],
}

impl MpCounters {
    /// Returns the values that programs read.
    pub(super) fn values(&self) -> [u32; 4] {
        self.values
    }

    /// Executes MP_PM_SET: sets a counter.
    pub(super) fn set(&mut self, counter: usize, value: u32) {
        self.values[counter] = value;
    }

    /// Executes MP_PM_CONTROL: selects the signal of a counter. A logic function that is always false stops the
    /// counter.
    pub(super) fn control(&mut self, counter: usize, control: MpPmControl, unknown: &mut Unknown) {
        let MpPmControl { function, signal, unit, .. } = control;
        self.signals[counter] = None;
        if function == 0 {
            return;
        }
        match Signal::of(signal, unit) {
            Ok(signal) if function == OWN[counter] => self.signals[counter] = Some(signal),
            Ok(_) => unknown.note(format!("MP_PM_CONTROL: function {function:#06x} of counter {counter}")),
            Err(name) => unknown.note(format!("MP_PM_CONTROL: {name}")),
        }
    }

    /// Adds the counts of a launch to the counters.
    pub(super) fn count(&mut self, statistics: &Statistics, grid: [u32; 2]) {
        for (value, signal) in self.values.iter_mut().zip(self.signals) {
            let Some(signal) = signal else { continue };
            let count = match signal {
                Signal::Instructions => statistics.instructions,
                Signal::DivergentBranches => statistics.divergent_branches,
                Signal::Blocks => u64::from(grid[0]) * u64::from(grid[1]),
            };
            *value = value.wrapping_add(count as u32);
        }
    }
}
