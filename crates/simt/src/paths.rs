//! The paths by which a fast engine executes instructions, and the number of instructions of each path.
//!
//! A fast engine has special paths for code that is common in programs. A path is tested only if some test program uses
//! the path. Runs therefore count the instructions of each path. The engine calls [`Observer::path`] with the numbers
//! of instructions, and [`Shares`] adds these numbers.

use std::fmt;

use crate::observe::{Event, Observer};

pub use crate::observe::Path;

/// Number of instructions that the fast engine executed by each path. `Shares` is also an observer, which counts the
/// instructions of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    instructions: [u64; Path::ALL.len()],
}

impl Shares {
    /// Returns the number of instructions that were executed by a path.
    pub fn of(&self, path: Path) -> u64 {
        self.instructions[path as usize]
    }

    /// Returns the number of instructions of all paths.
    pub fn total(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Shares) {
        other.announce(self);
    }

    /// Announces the counts to an observer that requests counts.
    pub fn announce<O: Observer>(&self, observer: &mut O) {
        if O::PATHS {
            for path in Path::ALL {
                observer.path(path, self.of(path));
            }
        }
    }
}

impl Observer for Shares {
    const ENABLED: bool = false;
    const PATHS: bool = true;

    #[inline(always)]
    fn event(&mut self, _: Event) {}

    #[inline(always)]
    fn path(&mut self, path: Path, instructions: u64) {
        self.instructions[path as usize] += instructions;
    }
}

/// Writes a list of the paths that executed instructions, and then the total number of instructions: `chain 75.0 %,
/// single 25.0 % of 8 instructions`. Each path is written with its percentage of all instructions.
impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let mut separator = "";
        for path in Path::ALL.into_iter().filter(|path| self.of(*path) > 0) {
            write!(f, "{separator}{} {:.1} %", path.name(), self.of(path) as f64 * 100.0 / total as f64)?;
            separator = ", ";
        }
        match total {
            0 => f.write_str("no instruction"),
            1 => f.write_str(" of 1 instruction"),
            _ => write!(f, " of {total} instructions"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_summed_by_path_and_shown_in_percent() {
        let mut shares = Shares::default();
        assert_eq!(shares.to_string(), "no instruction");
        shares.path(Path::Single, 1);
        assert_eq!(shares.to_string(), "single 100.0 % of 1 instruction");
        let mut others = Shares::default();
        others.path(Path::Chain, 6);
        others.path(Path::Single, 1);
        shares.add(&others);
        assert_eq!((shares.of(Path::Chain), shares.of(Path::Single), shares.total()), (6, 2, 8));
        assert_eq!(shares.to_string(), "chain 75.0 %, single 25.0 % of 8 instructions");
    }

    #[test]
    fn a_path_is_listed_at_its_own_number() {
        for (number, path) in Path::ALL.into_iter().enumerate() {
            assert_eq!(path as usize, number);
        }
    }
}
