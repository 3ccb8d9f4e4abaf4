//! The memory a program can reach: per-lane scratch and records; shared by wavefronts the scatter buffer, the global
//! registers and the local data share.
//!
//! Everything counts in dwords. Source: MAN p. 35 (data share) and p. 45 (memory exports). How a lane's private
//! place is found in the host's buffers is the host's business; here a lane simply has a record of its own.

use reconverge_simt::Lane;

use crate::launch::LANES;

/// A space in which every lane of a wavefront has dwords of its own; grows as it is written, up to a limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Private {
    rows: Vec<[u32; LANES]>,
    limit: usize,
}

impl Private {
    /// A space of at most `limit` dwords a lane, all zero.
    pub fn new(limit: usize) -> Private {
        Private { rows: Vec::new(), limit }
    }

    /// Forgets everything that was written.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// The dword, 0 where nothing was written.
    pub fn read(&self, lane: Lane, dword: usize) -> u32 {
        self.rows.get(dword).map_or(0, |row| row[lane.index()])
    }

    /// Stores a dword; says whether it lies within the limit. One beyond it is dropped.
    pub fn write(&mut self, lane: Lane, dword: usize, value: u32) -> bool {
        if dword >= self.limit {
            return false;
        }
        if dword >= self.rows.len() {
            self.rows.resize(dword + 1, [0; LANES]);
        }
        self.rows[dword][lane.index()] = value;
        true
    }

    /// Dwords a lane that are in use: one more than the highest written.
    pub fn used(&self) -> usize {
        self.rows.len()
    }

    /// The dwords of one lane, up to [`used`](Self::used).
    pub fn lane(&self, lane: Lane) -> Vec<u32> {
        self.rows.iter().map(|row| row[lane.index()]).collect()
    }
}

/// The local data share: four banks of dwords; the bank is the low two bits of the thread number.
///
/// Write-private, read-public: a thread writes its own area only and reads any (MAN p. 35). The size of 16 KB has no
/// second source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataShare {
    /// All of them, or none before the first is written: most programs have no use for them.
    words: Vec<u32>,
}

/// What outlives a wavefront: the wavefronts of a launch run one after another on one SIMD and hand it on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simd {
    /// The scatter buffer (MEM_EXPORT, READ_SCATTER), in dwords.
    pub scatter: Vec<u32>,
    /// Global registers: x to w for each lane position.
    pub global: Vec<[[u32; LANES]; 4]>,
    /// The local data share.
    pub share: DataShare,
}

/// Dwords of a bank of the local data share.
pub const BANK_DWORDS: usize = 1024;

impl DataShare {
    /// The dword, or `None` outside the bank.
    pub fn read(&self, bank: usize, dword: usize) -> Option<u32> {
        (bank < 4 && dword < BANK_DWORDS)
            .then(|| self.words.get(bank * BANK_DWORDS + dword).copied().unwrap_or(0))
    }

    /// Stores a dword; says whether it lies in the bank.
    pub fn write(&mut self, bank: usize, dword: usize, value: u32) -> bool {
        let inside = bank < 4 && dword < BANK_DWORDS;
        if inside {
            self.words.resize(4 * BANK_DWORDS, 0);
            self.words[bank * BANK_DWORDS + dword] = value;
        }
        inside
    }
}
