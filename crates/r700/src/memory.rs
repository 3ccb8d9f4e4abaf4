//! The memory that a program can access. Each lane has separate scratch memory and records. All wavefronts share the
//! scatter buffer, the global registers and the local data share. Vertex fetches read buffers.
//!
//! Addresses are numbers of dwords, except in vertex buffers. On the hardware, the driver chooses where in memory the
//! lanes' records are. In this emulation, each lane has a separate record. Source: MAN p. 35 (data share) and p. 45
//! (memory exports); Mesa `r600d.h` (resource words).

use std::sync::Arc;

use reconverge_simt::Lane;
use reconverge_simt::races::Races;

use crate::chip::LANES;
pub(crate) use crate::code::Space;
use crate::format::{Number, Swap};
use crate::words::DataFormat;

/// A memory space with separate dwords for each lane of a wavefront. When a lane writes to the space, the space grows,
/// but not beyond a limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Private {
    rows: Vec<[u32; LANES]>,
    limit: usize,
}

impl Private {
    /// Creates a space of up to `limit` dwords per lane, all zero.
    pub fn new(limit: usize) -> Private {
        Private { rows: Vec::new(), limit }
    }

    /// Sets all dwords to zero.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// Returns a dword of a lane, or 0 if the lane's wavefront has not written the dword.
    pub fn read(&self, lane: Lane, dword: usize) -> u32 {
        self.rows.get(dword).map_or(0, |row| row[lane.index()])
    }

    /// Stores a dword. Returns whether the dword is within the limit. A store past the limit has no effect.
    pub fn write(&mut self, lane: Lane, dword: usize, value: u32) -> bool {
        self.row_mut(dword).map(|row| row[lane.index()] = value).is_some()
    }

    /// Returns dword `dword` of every lane. If the program has written no dword at `dword` or above, the function
    /// returns `None`.
    pub(crate) fn row(&self, dword: usize) -> Option<&[u32; LANES]> {
        self.rows.get(dword)
    }

    /// Returns a mutable reference to dword `dword` of every lane. If the dword is past the limit, the function returns
    /// `None`.
    pub(crate) fn row_mut(&mut self, dword: usize) -> Option<&mut [u32; LANES]> {
        if dword >= self.limit {
            return None;
        }
        if dword >= self.rows.len() {
            self.rows.resize(dword + 1, [0; LANES]);
        }
        Some(&mut self.rows[dword])
    }

    /// Returns the maximum number of dwords per lane.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of dwords per lane that are in use. The last dword in use is the highest dword that the
    /// program has written.
    pub fn used(&self) -> usize {
        self.rows.len()
    }

    /// Returns the dwords of one lane, up to [`used`](Self::used).
    pub fn lane(&self, lane: Lane) -> Vec<u32> {
        self.rows.iter().map(|row| row[lane.index()]).collect()
    }
}

/// The local data share, which has four banks of dwords. The low two bits of a thread's number select the thread's
/// bank.
///
/// A thread can read any area, but can write only one area, which belongs to the thread (MAN p. 35). Only one source
/// states the size of the data share, 16 KB.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataShare {
    /// The dwords. The list is empty until the first write, because most programs do not use the share.
    words: Vec<u32>,
    /// The accesses so far. If the run does not search for races, this field is `None`.
    pub(crate) races: Option<Box<Races>>,
}

/// State that the wavefronts of a launch share. The wavefronts run in order, as on one SIMD.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simd {
    /// The scatter buffer (MEM_EXPORT, READ_SCATTER), in dwords.
    pub scatter: Vec<u32>,
    /// Global registers: the rows of x to w for each register.
    pub global: Vec<[[u32; LANES]; 4]>,
    /// The local data share.
    pub share: DataShare,
}

/// Maximum number of wavefronts that the search for races can distinguish. The stamp of an access has 32 bits. The
/// number of the wavefront may occupy 24 of these bits.
const MOST_WAVEFRONTS: u32 = 1 << 24;

/// Number of dwords in a bank of the local data share.
pub const BANK_DWORDS: usize = 1024;

impl DataShare {
    /// Starts a search for races among `wavefronts` wavefronts.
    pub(crate) fn check(&mut self, wavefronts: usize) {
        let mut races = Races::default();
        // A stamp also contains a time. This time never advances, because R700 has no instruction that orders
        // wavefronts. Therefore few bits of a stamp are enough for the time.
        let groups = u32::try_from(wavefronts).unwrap_or(u32::MAX).min(MOST_WAVEFRONTS);
        races.begin(groups, 16 * BANK_DWORDS, 0, false, true);
        self.races = Some(Box::new(races));
    }

    /// Returns the address of a dword in the share, in bytes.
    pub(crate) fn address(bank: u32, dword: u32) -> u32 {
        4 * (bank * BANK_DWORDS as u32 + dword)
    }

    /// Returns a dword, or `None` if the dword is outside the bank.
    pub fn read(&self, bank: usize, dword: usize) -> Option<u32> {
        (bank < 4 && dword < BANK_DWORDS)
            .then(|| self.words.get(bank * BANK_DWORDS + dword).copied().unwrap_or(0))
    }

    /// Stores a dword. Returns whether the dword is inside the bank. A store outside the bank has no effect.
    pub fn write(&mut self, bank: usize, dword: usize, value: u32) -> bool {
        let inside = bank < 4 && dword < BANK_DWORDS;
        if inside {
            self.words_mut()[bank * BANK_DWORDS + dword] = value;
        }
        inside
    }

    /// Returns the dwords of all banks, one bank after another, or `None` if nothing was written.
    pub(crate) fn words(&self) -> Option<&[u32; 4 * BANK_DWORDS]> {
        self.words.as_slice().try_into().ok()
    }

    /// Returns the dwords of all banks, one bank after another, for modification.
    pub(crate) fn words_mut(&mut self) -> &mut [u32; 4 * BANK_DWORDS] {
        self.words.resize(4 * BANK_DWORDS, 0);
        self.words.as_mut_slice().try_into().expect("four banks")
    }
}

/// The memory spaces that each lane has separately.
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

    /// Sets all dwords to zero.
    pub(crate) fn clear(&mut self) {
        let Spaces { scratch, reduction, ring, streams } = self;
        for space in [scratch, reduction, ring].into_iter().chain(streams) {
            space.clear();
        }
    }

    /// Returns the memory of a space that each lane has separately. Returns `None` for the scatter buffer, because the
    /// lanes share this buffer.
    pub(crate) fn private(&self, space: Space) -> Option<&Private> {
        match space {
            Space::Scratch => Some(&self.scratch),
            Space::Reduction => Some(&self.reduction),
            Space::Ring => Some(&self.ring),
            Space::Stream(number) => Some(&self.streams[number]),
            Space::Scatter => None,
        }
    }

    /// Returns the memory of a space that each lane has separately, for modification. Returns `None` for the scatter
    /// buffer, because the lanes share this buffer.
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

/// A buffer for vertex fetches. The structure has the vertex resource and its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexBuffer {
    /// The memory, from the resource's base to its last byte. Copies of a launch share the memory, so a copy is cheap.
    pub bytes: Arc<[u8]>,
    /// Distance between elements in bytes, 0 to 2047.
    pub stride: u32,
    /// CLAMP_X: whether accesses outside the buffer read as NaN instead of 0.
    pub nan_outside: bool,
    /// DATA_FORMAT, for fetches with USE_CONST_FIELDS.
    pub format: u32,
    /// NUM_FORMAT_ALL with FORMAT_COMP_ALL and SRF_MODE_ALL, for fetches with USE_CONST_FIELDS.
    pub number: Number,
    /// ENDIAN_SWAP, for fetches with USE_CONST_FIELDS.
    pub swap: Swap,
}

impl VertexBuffer {
    /// Returns a buffer with elements of four dwords. Drivers bind constant buffers in this form for vertex fetches.
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

    /// Returns whether the elements of this buffer have the same positions and formats as the elements of `other`.
    pub(crate) fn is_read_alike(&self, other: &VertexBuffer) -> bool {
        let VertexBuffer { bytes: _, stride, nan_outside, format, number, swap } = self;
        (*stride, *nan_outside, *format) == (other.stride, other.nan_outside, other.format)
            && (*number, *swap) == (other.number, other.swap)
    }

    /// Returns word 2 of the vertex resource. It contains stride, CLAMP_X, format, number and swap.
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

    /// Returns the buffer that the seven words of a vertex resource describe. `bytes` is the buffer's memory, starting
    /// at the base. If `bytes` is longer than the size that the words state, the excess bytes are removed.
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

/// Returns the number conversion that NUM_FORMAT, FORMAT_COMP and SRF_MODE select. The manual does not define
/// NUM_FORMAT 3. This function treats NUM_FORMAT 3 as SCALED.
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
