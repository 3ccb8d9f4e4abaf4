//! The columns of a block. They hold symbols, masks and numbers separately, so that each column compresses well.

/// The columns, in the order of the file. A column holds one kind of data, so that neighbouring bytes are similar.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// Runs of consecutive instructions. A path is a list of ranges of the listing, each with its start and length.
    Path,
    /// Recurring sequences of symbols. A phrase is stored as its number of symbols, then the symbols in the form of
    /// literals.
    Phrase,
    /// Repeated records. A copy is stored as the number of literals before it, the distance back to its source, and its
    /// length.
    Copy,
    /// One byte per literal: the tag of the literal, and the relation of its mask to the previous masks.
    Tag,
    /// Consecutive records of one group. Each entry has the number of these records, the group, and the distance to the
    /// group's previous instruction. The distance is counted in instructions of the launch.
    Group,
    /// Numbers that identify paths and phrases, and targets of jumps.
    Place,
    /// Lane masks that cannot be derived from the previous masks. Each is stored as the bits in which it differs from
    /// the last mask.
    Mask,
    /// Lanes and kinds, one byte each.
    Byte,
    /// Registers and byte addresses, as differences from the previous number.
    Number,
    /// Values, four bytes each.
    Value,
}

pub(crate) const COLUMNS: usize = 10;

/// Record types, which are the tags of symbols.
pub(crate) const RAN: u8 = 0;
pub(crate) const DIVERGE: u8 = 1;
pub(crate) const RECONVERGE: u8 = 2;
pub(crate) const PUSH: u8 = 3;
pub(crate) const POP: u8 = 4;
pub(crate) const JUMP: u8 = 5;
pub(crate) const TRAP: u8 = 6;
pub(crate) const WRITE: u8 = 7;
pub(crate) const LOAD: u8 = 8;
pub(crate) const STORE: u8 = 9;
/// A phrase, which stands for several symbols of the other types.
pub(crate) const PHRASE: u8 = 10;
pub(crate) const RESUME: u8 = 11;

/// Maximum number of symbols in a phrase.
pub(crate) const MOST_SYMBOLS: usize = 64;

/// The addresses of the listing's instructions, and the index of each instruction in the listing.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    addresses: Vec<u32>,
    /// Index in the listing for each address, starting with the first address of the listing. It is `u32::MAX` if no
    /// instruction has the address.
    places: Vec<u32>,
}

/// Maximum span of a listing's addresses, in units of the machine: 16 MiB for Tesla code.
const MOST_SPAN: u32 = 1 << 24;

impl Order {
    /// Returns `None` if the addresses are not in ascending order, or if they span more than [`MOST_SPAN`].
    pub(crate) fn new(addresses: Vec<u32>) -> Option<Order> {
        let (first, last) = (addresses.first().copied().unwrap_or(0), addresses.last().copied().unwrap_or(0));
        if !addresses.is_sorted_by(|a, b| a < b) || last - first > MOST_SPAN {
            return None;
        }
        let mut places = vec![u32::MAX; addresses.last().map_or(0, |last| (last - first) as usize + 1)];
        for (place, address) in addresses.iter().enumerate() {
            places[(address - first) as usize] = place as u32;
        }
        Some(Order { addresses, places })
    }

    /// Returns the index of the instruction at an address.
    #[inline]
    pub(crate) fn place(&self, pc: u32) -> Option<u32> {
        let at = pc.checked_sub(*self.addresses.first()?)?;
        self.places.get(at as usize).copied().filter(|place| *place != u32::MAX)
    }

    /// Returns the addresses of `count` instructions, starting at an index. Returns fewer addresses if the listing ends
    /// earlier.
    #[inline]
    pub(crate) fn from(&self, place: u32, count: u32) -> &[u32] {
        let rest = self.addresses.get(place as usize..).unwrap_or_default();
        &rest[..rest.len().min(count as usize)]
    }
}

/// A record without its masks, numbers and values. Holds its tag, the relation of its mask, and 32 bits that depend on
/// the tag. No record has the value `u64::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbol(pub(crate) u64);

impl Symbol {
    /// Number of bits for the tag and the relation together. A literal stores them in one byte.
    const LOW: u32 = 6;
    /// The value for no symbol.
    pub(crate) const NONE: Symbol = Symbol(u64::MAX);

    #[inline(always)]
    pub(crate) fn new(tag: u8, relation: u8, rest: u32) -> Symbol {
        Symbol(u64::from(tag | relation << 4) | u64::from(rest) << Symbol::LOW)
    }

    pub(crate) fn low(self) -> u8 {
        self.0 as u8 & ((1 << Symbol::LOW) - 1)
    }

    pub(crate) fn tag(self) -> u8 {
        self.0 as u8 & 15
    }

    pub(crate) fn relation(self) -> u8 {
        self.0 as u8 >> 4 & 3
    }

    pub(crate) fn rest(self) -> u32 {
        (self.0 >> Symbol::LOW) as u32
    }

    /// Returns the index of the symbol in a table of [`RECENT`] entries.
    pub(crate) fn slot(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT.trailing_zeros())) as usize
    }
}

/// Number of entries in the tables of recent symbols and recent paths.
pub(crate) const RECENT: usize = 1 << 10;

/// Relation of a mask to the previous masks: the mask equals the last mask.
///
/// For a divergence, [`SAME`] means that the waiting lanes are the other lanes of the last mask, and [`OTHER`] means
/// that a mask of the waiting lanes is stored.
pub(crate) const SAME: u8 = 0;
/// The mask equals the most recent mask that differs from the last mask.
pub(crate) const OTHER: u8 = 1;
/// The mask is the union of the last two masks.
pub(crate) const BOTH: u8 = 2;
/// The mask is not related to the previous masks, so its bits are stored.
pub(crate) const EXPLICIT: u8 = 3;

/// The last two different masks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Masks {
    pub(crate) last: u64,
    pub(crate) other: u64,
}

impl Masks {
    /// Sets the last mask. Does nothing if it is unchanged.
    #[inline]
    pub(crate) fn on(&mut self, next: u64) {
        if next != self.last {
            *self = Masks { last: next, other: self.last };
        }
    }
}

/// Appends a number with seven bits per byte, the lowest bits first.
#[inline]
pub(crate) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends the difference from `last` with its sign in the lowest bit, and sets `last` to `next`.
#[inline]
pub(crate) fn delta(bytes: &mut Vec<u8>, last: &mut u32, next: u32) {
    let difference = next.wrapping_sub(*last) as i32;
    varint(bytes, u64::from((difference << 1 ^ difference >> 31) as u32));
    *last = next;
}

/// Appends the bits of a mask. The number of zeros at the low end of the first byte is the number of bytes that follow
/// it. Writing a varint of the same length takes much longer.
#[inline]
pub(crate) fn mask_bits(bytes: &mut Vec<u8>, bits: u64) {
    let used = 64 - (bits | 1).leading_zeros();
    let length = used.div_ceil(7);
    if length > 8 {
        bytes.push(0);
        bytes.extend_from_slice(&bits.to_le_bytes());
    } else {
        let number = bits << length | 1 << (length - 1);
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.truncate(bytes.len() - 8 + length as usize);
    }
}
