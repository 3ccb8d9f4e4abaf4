//! The columns of a block. Symbols, masks and numbers have separate columns, so that each column compresses well.

/// The columns, in their order in the file. A column has only one kind of data, so that adjacent bytes are similar.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    /// Runs of consecutive instructions. A path is a list of ranges of the listing. Each range is stored as its start
    /// and its length.
    Path,
    /// Sequences of symbols that occur several times. The file stores a phrase as the number of its symbols, followed
    /// by the symbols. The symbols have the form of literals.
    Phrase,
    /// Copies of earlier records. A copy is stored as three numbers. The first number is the number of literals before
    /// the copy. The second number is the distance back to the repeated records. The third number is the number of
    /// repeated records.
    Copy,
    /// One byte per literal. The byte has the tag of the literal, and the relation between the literal's mask and the
    /// previous masks.
    Tag,
    /// Sequences of consecutive records that belong to one group of lanes. An entry has three numbers: the number of
    /// records in the sequence, the group of lanes, and the distance to the group's previous instruction. The distance
    /// counts the instructions of the whole launch.
    Group,
    /// Numbers that identify paths and phrases, and targets of jumps.
    Place,
    /// Lane masks that cannot be derived from the previous masks. For each mask, the column stores the bits in which
    /// the mask differs from the previous mask.
    Mask,
    /// Lanes, and kinds of pushed or popped entries. Each lane or kind takes one byte.
    Byte,
    /// Registers and byte addresses. The file stores each register or address as the difference from the previous
    /// register or address.
    Number,
    /// Values. Each value takes four bytes.
    Value,
}

pub(crate) const COLUMNS: usize = 10;

/// Record types. A symbol has a record type as its tag.
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
/// The tag of a phrase. A phrase stands for several symbols with other tags.
pub(crate) const PHRASE: u8 = 10;
pub(crate) const RESUME: u8 = 11;

/// Maximum number of symbols in a phrase.
pub(crate) const MOST_SYMBOLS: usize = 64;

/// The addresses of the listing's instructions, and the index of each instruction in the listing.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    addresses: Vec<u32>,
    /// For each address, the index of the instruction at this address in the listing. The first element belongs to the
    /// first address of the listing. An element is `u32::MAX` if no instruction is at the address.
    places: Vec<u32>,
}

/// Maximum span of a listing's addresses, in units of the machine. For Tesla code, this maximum is 16 MiB.
const MOST_SPAN: u32 = 1 << 24;

impl Order {
    /// Returns `None` if the addresses are not in ascending order, or if the addresses span more than [`MOST_SPAN`].
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

    /// Returns the addresses of `count` instructions of the listing. The first of these instructions has the index
    /// `place`. Returns fewer addresses if the listing ends earlier.
    #[inline]
    pub(crate) fn from(&self, place: u32, count: u32) -> &[u32] {
        let rest = self.addresses.get(place as usize..).unwrap_or_default();
        &rest[..rest.len().min(count as usize)]
    }
}

/// A record without the masks, the numbers and the values of the record. A symbol has the tag of the record, the
/// relation between the record's mask and the previous masks, and 32 bits. The meaning of these bits depends on the
/// tag. No record has the symbol `u64::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbol(pub(crate) u64);

impl Symbol {
    /// Number of bits of the tag and the relation together. A literal stores the tag and the relation in one byte.
    const LOW: u32 = 6;
    /// The value that means "no symbol".
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

    /// Returns the index of the symbol's entry in a table of [`RECENT`] entries.
    pub(crate) fn slot(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT.trailing_zeros())) as usize
    }
}

/// Number of entries in the tables of recent symbols and of recent paths.
pub(crate) const RECENT: usize = 1 << 10;

/// The mask equals the previous mask. This constant and the next three constants are the relations between a mask and
/// the previous masks.
///
/// For a divergence, [`SAME`] and [`OTHER`] have a different meaning. [`SAME`] means that all lanes of the previous
/// mask wait, except for the lanes that run first. [`OTHER`] means that the mask of the waiting lanes is stored.
pub(crate) const SAME: u8 = 0;
/// The mask equals the most recent mask that differs from the previous mask.
pub(crate) const OTHER: u8 = 1;
/// The mask is the union of the previous mask and the most recent mask that differs from the previous mask.
pub(crate) const BOTH: u8 = 2;
/// The mask has no relation to the previous masks, so the file stores the bits of the mask.
pub(crate) const EXPLICIT: u8 = 3;

/// The two most recent different masks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Masks {
    pub(crate) last: u64,
    pub(crate) other: u64,
}

impl Masks {
    /// Sets the previous mask to `next`. Does nothing if the two masks are equal.
    #[inline]
    pub(crate) fn on(&mut self, next: u64) {
        if next != self.last {
            *self = Masks { last: next, other: self.last };
        }
    }
}

/// Appends a number with seven bits per byte. The lowest bits come first.
#[inline]
pub(crate) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends the difference between `next` and `last`, and sets `last` to `next`. The lowest bit of the stored difference
/// is the sign of the difference.
#[inline]
pub(crate) fn delta(bytes: &mut Vec<u8>, last: &mut u32, next: u32) {
    let difference = next.wrapping_sub(*last) as i32;
    varint(bytes, u64::from((difference << 1 ^ difference >> 31) as u32));
    *last = next;
}

/// Appends the bits of a mask. The number of zeros at the low end of the first byte states how many bytes follow the
/// first byte. A varint of the mask would have the same length, but writing a varint would take much longer.
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
