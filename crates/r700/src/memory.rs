//! The memory that a program can reach: scratch and records of each lane; scatter buffer, global registers and local data
//! share, which wavefronts share; buffers of vertex fetches.
//!
//! Addresses count dwords, except in vertex buffers. Source: MAN p. 35 (data share) and p. 45 (memory exports); resource
//! words from Mesa `r600d.h`. The driver places the records of lanes in memory; here each lane has a record of its own.

use std::sync::Arc;

use reconverge_simt::Lane;
use reconverge_simt::races::Races;

use crate::chip::LANES;
pub(crate) use crate::code::Space;
use crate::format::{Number, Swap};
use crate::words::DataFormat;

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

    /// Makes all dwords zero.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// The dword, 0 where nothing was written.
    pub fn read(&self, lane: Lane, dword: usize) -> u32 {
        self.rows.get(dword).map_or(0, |row| row[lane.index()])
    }

    /// Stores a dword and gives whether it is within the limit; beyond it the store is dropped.
    pub fn write(&mut self, lane: Lane, dword: usize, value: u32) -> bool {
        self.row_mut(dword).map(|row| row[lane.index()] = value).is_some()
    }

    /// The dword of every lane; `None` where nothing was written.
    pub(crate) fn row(&self, dword: usize) -> Option<&[u32; LANES]> {
        self.rows.get(dword)
    }

    /// The dword of every lane for writing; `None` beyond the limit.
    pub(crate) fn row_mut(&mut self, dword: usize) -> Option<&mut [u32; LANES]> {
        if dword >= self.limit {
            return None;
        }
        if dword >= self.rows.len() {
            self.rows.resize(dword + 1, [0; LANES]);
        }
        Some(&mut self.rows[dword])
    }

    /// The most dwords a lane.
    pub(crate) fn limit(&self) -> usize {
        self.limit
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
    /// Empty until the first is written: most programs use none.
    words: Vec<u32>,
    /// The accesses, if races are looked for.
    pub(crate) races: Option<Box<Races>>,
}

/// What the wavefronts of a launch share. They run one after another, as on one SIMD.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simd {
    /// The scatter buffer (MEM_EXPORT, READ_SCATTER), in dwords.
    pub scatter: Vec<u32>,
    /// Global registers: x to w for each lane position.
    pub global: Vec<[[u32; LANES]; 4]>,
    /// The local data share.
    pub share: DataShare,
}

/// The maximum of wavefronts with a number of their own. The numbers leave eight bits of a stamp.
const MOST_WAVEFRONTS: u32 = 1 << 24;

/// Dwords of a bank of the local data share.
pub const BANK_DWORDS: usize = 1024;

impl DataShare {
    /// Begins a search for races of `wavefronts` wavefronts.
    pub(crate) fn check(&mut self, wavefronts: usize) {
        let mut races = Races::default();
        // The stamps have room for the launch: nothing advances their time.
        let groups = u32::try_from(wavefronts).unwrap_or(u32::MAX).min(MOST_WAVEFRONTS);
        races.begin(groups, 16 * BANK_DWORDS, 0, false, true);
        self.races = Some(Box::new(races));
    }

    /// The address of a dword among all, in bytes.
    pub(crate) fn address(bank: u32, dword: u32) -> u32 {
        4 * (bank * BANK_DWORDS as u32 + dword)
    }

    /// The dword, or `None` outside the bank.
    pub fn read(&self, bank: usize, dword: usize) -> Option<u32> {
        (bank < 4 && dword < BANK_DWORDS)
            .then(|| self.words.get(bank * BANK_DWORDS + dword).copied().unwrap_or(0))
    }

    /// Stores a dword and gives whether it is in the bank; outside the store is dropped.
    pub fn write(&mut self, bank: usize, dword: usize, value: u32) -> bool {
        let inside = bank < 4 && dword < BANK_DWORDS;
        if inside {
            self.words_mut()[bank * BANK_DWORDS + dword] = value;
        }
        inside
    }

    /// All banks, one after another; `None` if nothing was written.
    pub(crate) fn words(&self) -> Option<&[u32; 4 * BANK_DWORDS]> {
        self.words.as_slice().try_into().ok()
    }

    /// All banks, one after another, for writing.
    pub(crate) fn words_mut(&mut self) -> &mut [u32; 4 * BANK_DWORDS] {
        self.words.resize(4 * BANK_DWORDS, 0);
        self.words.as_mut_slice().try_into().expect("four banks")
    }
}

/// The lane-private spaces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spaces {
    pub(crate) scratch: Private,
    pub(crate) reduction: Private,
    pub(crate) ring: Private,
    pub(crate) streams: [Private; 4],
}

impl Spaces {
    pub(crate) fn new(scratch_dwords: usize, record_dwords: usize) -> Spaces {
        let record = || Private::new(record_dwords);
        Spaces {
            scratch: Private::new(scratch_dwords),
            reduction: record(),
            ring: record(),
            streams: [record(), record(), record(), record()],
        }
    }

    /// Makes all dwords zero.
    pub(crate) fn clear(&mut self) {
        let Spaces { scratch, reduction, ring, streams } = self;
        for space in [scratch, reduction, ring].into_iter().chain(streams) {
            space.clear();
        }
    }

    /// The lane-private space; `None` for the scatter buffer.
    pub(crate) fn private(&self, space: Space) -> Option<&Private> {
        match space {
            Space::Scratch => Some(&self.scratch),
            Space::Reduction => Some(&self.reduction),
            Space::Ring => Some(&self.ring),
            Space::Stream(number) => Some(&self.streams[number]),
            Space::Scatter => None,
        }
    }

    /// [`Spaces::private`], for writing.
    pub(crate) fn private_mut(&mut self, space: Space) -> Option<&mut Private> {
        match space {
            Space::Scratch => Some(&mut self.scratch),
            Space::Reduction => Some(&mut self.reduction),
            Space::Ring => Some(&mut self.ring),
            Space::Stream(number) => Some(&mut self.streams[number]),
            Space::Scatter => None,
        }
    }
}

/// A buffer that vertex fetches read: a vertex resource with its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexBuffer {
    /// The memory, from the resource's base to its last byte. Shared, so that a launch is cheap to copy.
    pub bytes: Arc<[u8]>,
    /// Bytes from one element to the next, 0 to 2047.
    pub stride: u32,
    /// CLAMP_X: what lies outside reads as NaN instead of 0.
    pub nan_outside: bool,
    /// DATA_FORMAT, for fetches with USE_CONST_FIELDS.
    pub format: u32,
    /// NUM_FORMAT_ALL with FORMAT_COMP_ALL and SRF_MODE_ALL, for fetches with USE_CONST_FIELDS.
    pub number: Number,
    /// ENDIAN_SWAP, for fetches with USE_CONST_FIELDS.
    pub swap: Swap,
}

impl VertexBuffer {
    /// Elements of four dwords, as drivers bind constant buffers for vertex fetches.
    pub fn constants(words: &[u32]) -> VertexBuffer {
        VertexBuffer {
            bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            stride: 16,
            nan_outside: false,
            format: DataFormat::FMT_32_32_32_32_FLOAT as u32,
            number: Number::UnsignedInt,
            swap: Swap::None,
        }
    }

    /// Returns whether elements of both buffers are in the same places and mean the same.
    pub(crate) fn is_read_alike(&self, other: &VertexBuffer) -> bool {
        let VertexBuffer { bytes: _, stride, nan_outside, format, number, swap } = self;
        (*stride, *nan_outside, *format) == (other.stride, other.nan_outside, other.format)
            && (*number, *swap) == (other.number, other.swap)
    }

    /// Word 2 of the vertex resource: stride, CLAMP_X, format, number and swap.
    pub fn word2(&self) -> u32 {
        let (num_format, signed, no_zero) = match self.number {
            Number::UnsignedNorm => (0, false, false),
            Number::SignedNorm { no_zero } => (0, true, no_zero),
            Number::UnsignedInt => (1, false, false),
            Number::SignedInt => (1, true, false),
            Number::UnsignedScaled => (2, false, false),
            Number::SignedScaled => (2, true, false),
        };
        let swap = match self.swap {
            Swap::None => 0,
            Swap::In16 => 1,
            Swap::In32 => 2,
            Swap::In64 => 3,
        };
        (self.stride & 0x7ff) << 8
            | u32::from(self.nan_outside) << 19
            | (self.format & 0x3f) << 20
            | num_format << 26
            | u32::from(signed) << 28
            | u32::from(no_zero) << 29
            | swap << 30
    }

    /// A buffer described by the seven words of a vertex resource; `bytes` is its memory from the base on. Memory
    /// beyond the size that the words give is cut off.
    pub fn from_resource(words: [u32; 7], mut bytes: Vec<u8>) -> VertexBuffer {
        let [_, size, layout, ..] = words;
        bytes.truncate((size as usize).saturating_add(1));
        VertexBuffer {
            bytes: bytes.into(),
            stride: layout >> 8 & 0x7ff,
            nan_outside: layout >> 19 & 1 != 0,
            format: layout >> 20 & 0x3f,
            number: number_of(layout >> 26 & 3, layout >> 28 & 1 != 0, layout >> 29 & 1 != 0),
            swap: match layout >> 30 {
                0 => Swap::None,
                1 => Swap::In16,
                2 => Swap::In32,
                _ => Swap::In64,
            },
        }
    }
}

/// The number that NUM_FORMAT, FORMAT_COMP and SRF_MODE name. NUM_FORMAT 3 has no meaning; it reads as SCALED does.
pub(crate) fn number_of(num_format: u32, signed: bool, no_zero: bool) -> Number {
    match (num_format, signed) {
        (0, false) => Number::UnsignedNorm,
        (0, true) => Number::SignedNorm { no_zero },
        (1, false) => Number::UnsignedInt,
        (1, true) => Number::SignedInt,
        (_, false) => Number::UnsignedScaled,
        (_, true) => Number::SignedScaled,
    }
}
