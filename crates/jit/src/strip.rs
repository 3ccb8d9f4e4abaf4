//! Straight-line computations on a strip of lanes. Each value is computed once, and all effects are at the end.
//!
//! A [`Strip`] is straight-line code for the lanes of a vector, which is a part of a group. The strip reads rows,
//! computes values, and writes rows at its end. No row changes before all values are computed. A strip can therefore
//! bail out, and a different strip can recompute the results.
//!
//! A truth value is the sign bit of each lane's word. A comparison returns words in which all bits are 1 or all bits
//! are 0.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::called::PerLane;

/// A row in memory, relative to one of two base addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Row {
    /// A row of the group. The number is the distance in bytes from the start of the group's rows to this row.
    Group(u32),
    /// A row of the [`State`](crate::State), by number.
    Own(u32),
    /// A row of the group with a byte per lane, by number. In the value of the row, the lowest eight bits of each word
    /// are the byte. The upper bits are zeros.
    Bytes(u32),
    /// A row of the group with 16 bits per lane, by number, like [`Row::Bytes`].
    Halves(u32),
}

impl Row {
    /// Returns whether each lane has a whole word.
    pub(crate) fn has_words(self) -> bool {
        matches!(self, Row::Group(_) | Row::Own(_))
    }
}

/// A value: one word per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub(crate) u32);

/// Operation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named as the instructions are")]
pub enum Two {
    Add,
    Sub,
    Mul,
    And,
    /// Bitwise AND of the first value's complement and the second value.
    AndNot,
    Or,
    Xor,
    Equal,
    /// Comparison of signed words.
    Greater,
    MinSigned,
    MaxSigned,
    MinUnsigned,
    MaxUnsigned,
    /// Shift to the left. For counts of 32 and more, the result is 0.
    Shl,
    /// Logical shift to the right. For counts of 32 and more, the result is 0.
    Shr,
    /// Arithmetic shift to the right. For counts of 32 and more, all bits of the result are copies of the sign.
    Sar,
    FAdd,
    FSub,
    FMul,
    FMin,
    FMax,
    FDiv,
    /// Comparison of floats with the [`predicate`] that has this number.
    FCompare(u8),
}

/// The predicates of [`Two::FCompare`].
pub mod predicate {
    /// a = b
    pub const EQ: u8 = 0;
    /// a < b
    pub const LT: u8 = 1;
    /// a <= b
    pub const LE: u8 = 2;
    /// a or b is NaN.
    pub const UNORD: u8 = 3;
    /// a != b, or a or b is NaN.
    pub const NEQ: u8 = 4;
    /// a < b is false: a >= b, or a or b is NaN.
    pub const NLT: u8 = 5;
    /// a <= b is false: a > b, or a or b is NaN.
    pub const NLE: u8 = 6;
    /// a and b are not NaN.
    pub const ORD: u8 = 7;
    /// a = b, or a or b is NaN.
    pub const EQ_UQ: u8 = 8;
    /// a >= b is false: a < b, or a or b is NaN.
    pub const NGE: u8 = 9;
    /// a > b is false: a <= b, or a or b is NaN.
    pub const NGT: u8 = 10;
    /// a != b, and neither a nor b is NaN.
    pub const NEQ_OQ: u8 = 12;
    /// a >= b
    pub const GE: u8 = 13;
    /// a > b
    pub const GT: u8 = 14;
}

/// Operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named as the instructions are")]
pub enum One {
    /// Converts a signed word to a float.
    Float,
    /// Converts a float to a signed word, rounded toward zero. A result that is not representable becomes 0x80000000.
    Truncate,
    /// Converts a float to a signed word, rounded to nearest even. A result that is not representable becomes
    /// 0x80000000.
    Nearest,
    /// Rounds to a whole number. The code of the rounding is 0 (nearest even), 1 (down), 2 (up) or 3 (toward zero).
    Round(u8),
    Sqrt,
    /// Shifts to the left by this number of bits.
    Shl(u8),
    Shr(u8),
    Sar(u8),
}

/// Definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Row(Row),
    Constant(u32),
    Two(Two, [Value; 2]),
    One(One, Value),
    /// The third value if the sign of the first value is set, otherwise the second value.
    Select([Value; 3]),
    /// The first value times the second value, plus or minus the third value, rounded once.
    Fused {
        minus: bool,
        of: [Value; 3],
    },
    /// The word at this offset of the window, in all lanes. The offset counts bytes.
    Word(u32),
    /// The smallest distance, in bytes, of the span with this number. The value is the same in all lanes.
    Least(u32),
    /// The greatest valid offset, in bytes, of the first word of the span with this number. The value is the same in
    /// all lanes.
    Limit(u32),
    /// The address of the first byte of the site with this number. The value is the same in all lanes.
    Start(u32),
    /// The bound of the site with this number. The bound is the number of byte offsets at which a word can start. The
    /// highest bit is inverted. The value is the same in all lanes.
    Bound(u32),
    /// A load from the window. `span` is the number of the span of the access. A lane whose access is inside the window
    /// gets the accessed word. Any other lane gets an arbitrary word. `place` and `lanes` equal the fields `place` and
    /// `lanes` of the span.
    Load {
        span: u32,
        distance: i32,
        place: Value,
        lanes: Value,
    },
    /// A value that a function may correct. If the sign of `test` is set in a lane of `mask`, the function recomputes
    /// the value in all lanes of `mask` from `sources`.
    PerLane {
        with: PerLane,
        value: Value,
        test: Value,
        mask: Value,
        sources: [Value; 3],
    },
}

impl Node {
    /// Returns whether the value is the same in all lanes.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(
            self,
            Node::Constant(_)
                | Node::Word(_)
                | Node::Least(_)
                | Node::Limit(_)
                | Node::Start(_)
                | Node::Bound(_)
        )
    }

    /// Returns a node for the same operation, with different sources.
    pub(crate) fn with(&self, of: impl Fn(Value) -> Value) -> Node {
        match *self {
            Node::Row(_) | Node::Constant(_) | Node::Word(_) => *self,
            Node::Least(_) | Node::Limit(_) | Node::Start(_) | Node::Bound(_) => *self,
            Node::Two(op, sources) => Node::Two(op, sources.map(of)),
            Node::One(op, source) => Node::One(op, of(source)),
            Node::Select(sources) => Node::Select(sources.map(of)),
            Node::Fused { minus, of: sources } => Node::Fused { minus, of: sources.map(of) },
            Node::Load { span, distance, place, lanes } => {
                Node::Load { span, distance, place: of(place), lanes: of(lanes) }
            }
            Node::PerLane { with, value, test, mask, sources } => Node::PerLane {
                with,
                value: of(value),
                test: of(test),
                mask: of(mask),
                sources: sources.map(of),
            },
        }
    }
}

/// An effect of a strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Stores the value in the row.
    Store(Row, Value),
    /// Stores the signs of the value in a word of the [`State`](crate::State). The strip stores only the bits of its
    /// lanes. The number selects the word.
    Gather(u32, Value),
    /// Has the effect of [`Effect::Gather`], for lanes that leave the node.
    Leave(u32, Value),
    /// Stores the value in words of the window, lane after lane. `span` is the number of the span of the access. Lanes
    /// whose access is outside the window do not store. `place` and `lanes` equal the fields `place` and `lanes` of the
    /// span.
    Scatter { span: u32, distance: i32, place: Value, lanes: Value, value: Value },
}

impl Effect {
    /// Returns the same effect, with different values.
    pub(crate) fn with(&self, of: impl Fn(Value) -> Value) -> Effect {
        match *self {
            Effect::Store(row, value) => Effect::Store(row, of(value)),
            Effect::Gather(word, value) => Effect::Gather(word, of(value)),
            Effect::Leave(word, value) => Effect::Leave(word, of(value)),
            Effect::Scatter { span, distance, place, lanes, value } => {
                Effect::Scatter { span, distance, place: of(place), lanes: of(lanes), value: of(value) }
            }
        }
    }
}

/// Accesses to the window relative to one base. Each accessed word is at the base plus a distance, which is between
/// `least` and `greatest`.
///
/// The distances are multiples of 4, in bytes. Each new access widens the range of distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) base: Value,
    /// The lanes that access words.
    pub(crate) mask: Value,
    /// Offset of the span's first word in the window: the base plus `least`.
    pub(crate) place: Value,
    /// Lanes of the mask whose words are all in the window. No other lane accesses memory.
    pub(crate) lanes: Value,
    /// Lanes of the mask that access a word outside the window, or whose address is not a multiple of 4.
    pub(crate) outside: Value,
    pub(crate) least: i32,
    pub(crate) greatest: i32,
    /// The site whose memory is accessed instead of the window. `place` is then an offset in the memory of the site.
    pub(crate) site: Option<u32>,
    /// Whether the segment does not run if a lane accesses a word outside the memory. If `false`, a lane outside the
    /// memory loads zeros.
    pub(crate) exits: bool,
}

impl Span {
    /// Returns the number of bytes from the start of the first word to the start of the last word.
    pub(crate) fn bytes(&self) -> u32 {
        self.greatest.abs_diff(self.least)
    }

    /// Returns a copy of the span whose range of distances also includes `distance`.
    fn widened(&self, distance: i32) -> Span {
        Span { least: self.least.min(distance), greatest: self.greatest.max(distance), ..*self }
    }
}

/// An access of the window with a checked address. Only [`Strip::inside`] creates an `Inside`, for a base, a distance
/// and a mask.
///
/// The access is valid only in the strip that created it. The verifier rejects the access in any other strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    span: u32,
    distance: i32,
}

/// Number of definitions that [`Strip::low_zeros`] follows.
const DEPTH: u32 = 6;

/// Hashes the few words of a node. With the standard hasher, hashing would take most of the compile time. The standard
/// hasher protects against keys that were chosen to collide. This protection is not needed, because collisions cost
/// little in a program of bounded length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

impl Mix {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix((*byte).into()));
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(word.into());
    }

    fn write_i32(&mut self, word: i32) {
        self.mix(word as u64);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }

    fn finish(&self) -> u64 {
        // The lowest bits of a product depend only on the lowest bits of the factors. So the rotation is needed.
        self.0.rotate_left(26)
    }
}

/// The code of one strip under construction.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    pub(crate) nodes: Vec<Node>,
    known: HashMap<Node, Value, BuildHasherDefault<Mix>>,
    pub(crate) effects: Vec<Effect>,
    /// Bytes of the window, a multiple of 4.
    pub(crate) window: u32,
    pub(crate) spans: Vec<Span>,
    /// The guard. The strip bails out if the sign of this value is set for an active lane.
    pub(crate) guard: Option<Value>,
}

impl PartialEq for Strip {
    fn eq(&self, other: &Strip) -> bool {
        // The nodes determine the field `known`.
        (&self.nodes, &self.effects, self.guard) == (&other.nodes, &other.effects, other.guard)
            && (self.window, &self.spans) == (other.window, &other.spans)
    }
}

impl Strip {
    /// Returns an empty strip that does not access a window.
    pub fn new() -> Strip {
        Strip::default()
    }

    /// Returns an empty strip for a window of `bytes` bytes. If the last word of the window is incomplete, the strip
    /// does not access that word.
    pub fn with_window(bytes: u32) -> Strip {
        Strip { window: bytes & !3, ..Strip::default() }
    }

    fn node(&mut self, node: Node) -> Value {
        if let Some(value) = self.known.get(&node) {
            return *value;
        }
        let value = Value(self.nodes.len() as u32);
        self.nodes.push(node);
        self.known.insert(node, value);
        value
    }

    /// If a value is one constant in all lanes, returns the word of the constant.
    pub fn is_constant(&self, value: Value) -> Option<u32> {
        match self.nodes[value.0 as usize] {
            Node::Constant(word) => Some(word),
            _ => None,
        }
    }

    /// Returns the value of a row at the start of the strip.
    pub fn row(&mut self, row: Row) -> Value {
        self.node(Node::Row(row))
    }

    /// Returns the value with this word in all lanes.
    pub fn constant(&mut self, word: u32) -> Value {
        self.node(Node::Constant(word))
    }

    /// If the value is the complement of a value, returns the latter value.
    fn complemented(&self, value: Value) -> Option<Value> {
        match self.nodes[value.0 as usize] {
            Node::Two(Two::Xor, [of, ones]) if self.is_constant(ones) == Some(u32::MAX) => Some(of),
            _ => None,
        }
    }

    /// Returns the result of an operation on two values.
    pub fn two(&mut self, op: Two, a: Value, b: Value) -> Value {
        let constants = (self.is_constant(a), self.is_constant(b));
        match (op, constants) {
            (Two::And, (Some(0), _) | (_, Some(0))) => return self.constant(0),
            (Two::And, (Some(u32::MAX), _)) | (Two::Or | Two::Xor | Two::Add, (Some(0), _)) => return b,
            (Two::And, (_, Some(u32::MAX))) | (Two::Or | Two::Xor | Two::Add | Two::Sub, (_, Some(0))) => {
                return a;
            }
            (Two::Or, (Some(u32::MAX), _) | (_, Some(u32::MAX))) => return self.constant(u32::MAX),
            (Two::AndNot, (Some(0), _)) => return b,
            (Two::AndNot, (Some(u32::MAX), _) | (_, Some(0))) => return self.constant(0),
            (Two::And | Two::Or, _) if a == b => return a,
            (Two::Xor | Two::AndNot, _) if a == b => return self.constant(0),
            (Two::Equal, _) if a == b => return self.constant(u32::MAX),
            (Two::Mul, (_, Some(factor))) if factor.is_power_of_two() => {
                return self.one(One::Shl(factor.trailing_zeros() as u8), a);
            }
            (Two::And, (_, Some(bits))) if bits >> self.low_zeros(a, DEPTH).min(31) == 0 => {
                return self.constant(0);
            }
            _ => {}
        }
        match (op, self.complemented(a), self.complemented(b)) {
            (Two::Xor, Some(of), _) if constants.1 == Some(u32::MAX) => return of,
            (Two::And, Some(of), _) => return self.two(Two::AndNot, of, b),
            (Two::And, None, Some(of)) => return self.two(Two::AndNot, of, a),
            (Two::AndNot, Some(of), _) => return self.two(Two::And, of, b),
            (Two::AndNot, None, _) => match self.nodes[a.0 as usize] {
                // NOT (x AND b) AND b equals NOT x AND b.
                Node::Two(Two::And, [x, y]) if y == b => return self.two(Two::AndNot, x, b),
                Node::Two(Two::And, [x, y]) if x == b => return self.two(Two::AndNot, y, b),
                _ => {}
            },
            _ => {}
        }
        if let (Some(x), Some(y)) = constants {
            let word = match op {
                Two::Add => Some(x.wrapping_add(y)),
                Two::Sub => Some(x.wrapping_sub(y)),
                Two::Mul => Some(x.wrapping_mul(y)),
                Two::And => Some(x & y),
                Two::AndNot => Some(!x & y),
                Two::Or => Some(x | y),
                Two::Xor => Some(x ^ y),
                Two::Equal => Some(if x == y { u32::MAX } else { 0 }),
                _ => None,
            };
            if let Some(word) = word {
                return self.constant(word);
            }
        }
        // The operands of a commutative operation are sorted. A constant comes last, because only the last operand can
        // be in memory.
        let swapped = op.commutes()
            && (constants.0.is_some(), b.0) > (constants.1.is_some(), a.0)
            && constants.1.is_none();
        let of = if swapped { [b, a] } else { [a, b] };
        self.node(Node::Two(op, of))
    }

    /// Returns the result of an operation on one value.
    pub fn one(&mut self, op: One, a: Value) -> Value {
        match (op, self.is_constant(a)) {
            (One::Shl(0) | One::Shr(0) | One::Sar(0), _) => a,
            (One::Shl(32..) | One::Shr(32..), _) => self.constant(0),
            (One::Sar(32..), _) => self.one(One::Sar(31), a),
            (One::Shl(count), Some(word)) => self.constant(word << count),
            (One::Shr(count), Some(word)) => self.constant(word >> count),
            (One::Sar(count), Some(word)) => self.constant((word as i32 >> count) as u32),
            _ => self.node(Node::One(op, a)),
        }
    }

    /// Returns `then` if the sign of the condition is set, otherwise `other`.
    pub fn select(&mut self, condition: Value, other: Value, then: Value) -> Value {
        match self.is_constant(condition) {
            Some(word) => return if word >> 31 != 0 { then } else { other },
            None if other == then => return then,
            None => {}
        }
        if let Some(of) = self.complemented(condition) {
            return self.select(of, then, other);
        }
        self.node(Node::Select([condition, other, then]))
    }

    /// Returns a * b + c, rounded once. If `minus` is set, returns a * b - c.
    pub fn fused(&mut self, minus: bool, a: Value, b: Value, c: Value) -> Value {
        self.node(Node::Fused { minus, of: [a, b, c] })
    }

    /// Returns the complement of a value.
    pub fn not(&mut self, a: Value) -> Value {
        let ones = self.constant(u32::MAX);
        self.two(Two::Xor, a, ones)
    }

    /// Returns the value. If the sign of the test is set in a lane of the mask, generated code calls the function for
    /// all lanes of the mask.
    pub fn per_lane(
        &mut self,
        with: PerLane,
        value: Value,
        test: Value,
        mask: Value,
        sources: [Value; 3],
    ) -> Value {
        if self.is_constant(test).is_some_and(|word| word >> 31 == 0) {
            return value;
        }
        self.node(Node::PerLane { with, value, test, mask, sources })
    }

    /// Returns the word at an offset of the window, in all lanes. Returns `None` if the window does not have the word.
    /// `offset` counts bytes and is a multiple of 4.
    pub fn window_word(&mut self, offset: u32) -> Option<Value> {
        let end = offset.checked_add(4)?;
        (offset & 3 == 0 && end <= self.window).then(|| self.node(Node::Word(offset)))
    }

    /// Checks the addresses of an access to the words at `base` plus `distance` bytes, for the lanes of `mask`.
    ///
    /// A lane of the mask accesses memory only if the lane's word is in the window. On the slow path, the node does not
    /// run if a word of a lane of the mask is outside the window: [`Left::Refused`](crate::Left::Refused).
    ///
    /// Returns `None` if the distance is not a multiple of 4, or if the window does not contain a word.
    pub fn inside(&mut self, base: Value, distance: i32, mask: Value) -> Option<Inside> {
        let last = self.window.checked_sub(4)?;
        if distance & 3 != 0 {
            return None;
        }
        // One check covers all distances from a base. With a separate check for each access, the kernel `matmul` takes
        // twice as long (AMD EPYC).
        let known = self.spans.iter().position(|span| {
            (span.base, span.mask, span.site) == (base, mask, None) && span.widened(distance).bytes() <= last
        });
        let span = match known {
            Some(number) => {
                self.spans[number] = self.spans[number].widened(distance);
                number
            }
            None => self.span(base, distance, mask),
        };
        Some(Inside { span: span as u32, distance })
    }

    /// Returns a number of lowest bits that are zero in all lanes of a value. The function follows the definition of the
    /// value `depth` steps back.
    fn low_zeros(&self, value: Value, depth: u32) -> u32 {
        let Some(depth) = depth.checked_sub(1) else { return 0 };
        let of = |value| self.low_zeros(value, depth);
        match self.nodes[value.0 as usize] {
            Node::Constant(word) => word.trailing_zeros(),
            // The distances of a span, and the start of a site, are multiples of 4.
            Node::Least(_) | Node::Start(_) => 2,
            Node::One(One::Shl(count), a) => of(a) + u32::from(count),
            Node::Two(Two::Add | Two::Sub | Two::Or | Two::Xor, [a, b]) | Node::Select([_, a, b]) => {
                of(a).min(of(b))
            }
            Node::Two(Two::And, [a, b]) => of(a).max(of(b)),
            _ => 0,
        }
    }

    /// Adds a span and returns its number.
    fn span(&mut self, base: Value, distance: i32, mask: Value) -> usize {
        let number = self.spans.len();
        let (least, limit) = (self.node(Node::Least(number as u32)), self.node(Node::Limit(number as u32)));
        // If the offset of the first word does not exceed the limit, the last word is also in the window. The reason is
        // that the sum of the limit and the size of the span does not wrap.
        let place = self.two(Two::Add, base, least);
        let first = self.two(Two::MinUnsigned, place, limit);
        let within = self.two(Two::Equal, first, place);
        self.push_span([base, mask, place, within], distance, None, true)
    }

    /// Adds a span and returns its number. The span's `place` is an offset in the memory. `within` is true for lanes
    /// whose words are in the memory.
    fn push_span(
        &mut self,
        [base, mask, place, within]: [Value; 4],
        distance: i32,
        site: Option<u32>,
        exits: bool,
    ) -> usize {
        let (zero, three) = (self.constant(0), self.constant(3));
        let lanes = self.two(Two::And, within, mask);
        let (least, greatest) = (distance, distance);
        if !exits {
            let outside = zero;
            self.spans.push(Span { base, mask, place, lanes, outside, least, greatest, site, exits });
            return self.spans.len() - 1;
        }
        // The machine has no word at an address that is not a multiple of 4, even if memory contains the address.
        let low = self.two(Two::And, place, three);
        let aligned = self.two(Two::Equal, low, zero);
        let good = self.two(Two::And, within, aligned);
        let outside = self.two(Two::AndNot, good, mask);
        self.spans.push(Span { base, mask, place, lanes, outside, least, greatest, site, exits });
        self.spans.len() - 1
    }

    /// Checks the addresses of an access in the memory of a site, like [`Strip::inside`] does for the window. The
    /// machine sets the memory of the site at run time: [`State::set_site`](crate::State::set_site).
    pub fn inside_site(&mut self, site: u32, base: Value, distance: i32, mask: Value) -> Inside {
        let (start, after) = (self.node(Node::Start(site)), self.constant(distance as u32));
        let address = self.two(Two::Add, base, after);
        let place = self.two(Two::Sub, address, start);
        let within = self.within(site, place);
        let span = self.push_span([base, mask, place, within], distance, Some(site), true);
        Inside { span: span as u32, distance }
    }

    /// Returns the lanes for which the memory of a site has a word at the offset `place`, in bytes.
    fn within(&mut self, site: u32, place: Value) -> Value {
        let (bound, sign) = (self.node(Node::Bound(site)), self.constant(1 << 31));
        // Comparisons are signed, but offsets are unsigned. So the highest bits of both operands are inverted.
        let inverted = self.two(Two::Xor, place, sign);
        self.two(Two::Greater, bound, inverted)
    }

    /// Returns the offset in bytes of the last word in the memory of a site, in all lanes. If the memory has no word,
    /// returns `u32::MAX`.
    pub fn last_of_site(&mut self, site: u32) -> Value {
        let (bound, sign, one) = (self.node(Node::Bound(site)), self.constant(1 << 31), self.constant(1));
        let words = self.two(Two::Xor, bound, sign);
        self.two(Two::Sub, words, one)
    }

    /// For the lanes of `mask`, loads the word at the offset `place` in the memory of a site. The offset counts bytes
    /// and need not be a multiple of 4. Returns the words, and the lanes of the mask whose word exists in the memory.
    /// Lanes without a word get zeros.
    pub fn site_load(&mut self, site: u32, place: Value, mask: Value) -> [Value; 2] {
        let within = self.within(site, place);
        let known = self.spans.iter().position(|span| {
            (span.place, span.mask, span.site, span.exits) == (place, mask, Some(site), false)
        });
        let span = match known {
            Some(span) => span,
            None => self.push_span([place, mask, place, within], 0, Some(site), false),
        };
        let word = self.window_load(Inside { span: span as u32, distance: 0 });
        [word, self.spans[span].lanes]
    }

    /// Returns each lane's word of the window, for lanes inside the window. For other lanes, the word is arbitrary.
    pub fn window_load(&mut self, Inside { span, distance }: Inside) -> Value {
        let Some(Span { place, lanes, .. }) = self.spans.get(span as usize).copied() else {
            return self.constant(0);
        };
        self.node(Node::Load { span, distance, place, lanes })
    }

    /// Stores the value in words of the window at the end of the strip. Lanes whose access is outside the window do not
    /// store. The lowest lane stores first.
    ///
    /// A node that stores to the window must not load from the window. The strips of the node run one after another.
    /// Then a later strip would load words that an earlier strip has stored.
    pub fn window_store(&mut self, Inside { span, distance }: Inside, value: Value) {
        let Some(Span { place, lanes, .. }) = self.spans.get(span as usize).copied() else { return };
        self.effects.push(Effect::Scatter { span, distance, place, lanes, value });
    }

    /// Returns whether a lane outside the window or outside a site may prevent the segment from running.
    pub fn has_spans(&self) -> bool {
        self.spans.iter().any(|span| span.exits)
    }

    /// Returns a strip without effects. The guard of the returned strip fails if a lane is outside a span of this
    /// strip. Returns `None` if this strip has no span.
    pub(crate) fn check(&self) -> Option<Strip> {
        let mut check = Strip { effects: Vec::new(), guard: None, ..self.clone() };
        for span in &self.spans {
            check.guard(span.outside);
        }
        self.has_spans().then_some(check)
    }

    /// Returns whether the strip has exactly one store to the window or to a site. Besides the store, the effects may
    /// only gather words of lanes.
    pub(crate) fn only_stores(&self) -> bool {
        let stores = self.effects.iter().filter(|effect| matches!(effect, Effect::Scatter { .. })).count();
        let others = |effect: &Effect| matches!(effect, Effect::Scatter { .. } | Effect::Gather(..));
        stores == 1 && self.effects.iter().all(others)
    }

    /// Returns the strip with guards that fail if a lane is outside a span.
    pub(crate) fn with_guarded_spans(mut self) -> Strip {
        for span in self.spans.clone() {
            self.guard(span.outside);
        }
        self
    }

    /// If a node is one constant in all lanes, returns the word of the constant.
    pub(crate) fn constant_word(&self, node: &Node) -> Option<u32> {
        let span = |number: u32| self.spans.get(number as usize);
        match *node {
            Node::Constant(word) => Some(word),
            Node::Least(number) => span(number).map(|span| span.least as u32),
            Node::Limit(number) => {
                span(number).map(|span| self.window.wrapping_sub(4).wrapping_sub(span.bytes()))
            }
            _ => None,
        }
    }

    /// Adds a guard: the strip bails out if the sign of the test is set for an active lane.
    pub fn guard(&mut self, test: Value) {
        let zero = self.constant(0);
        let guard = self.guard.unwrap_or(zero);
        self.guard = Some(self.two(Two::Or, guard, test));
    }

    /// Stores the value in the row at the end of the strip. Each row may be stored once.
    pub fn store(&mut self, row: Row, value: Value) {
        if self.nodes[value.0 as usize] != Node::Row(row) {
            self.effects.push(Effect::Store(row, value));
        }
    }

    /// Stores the signs in the word with this number at the end of the strip.
    pub fn gather(&mut self, word: u32, value: Value) {
        self.effects.push(Effect::Gather(word, value));
    }

    /// Stores the signs like [`gather`](Self::gather), for lanes that leave the node.
    pub fn leave(&mut self, word: u32, value: Value) {
        self.effects.push(Effect::Leave(word, value));
    }

    /// Returns whether the strip must run for all lanes of a group at once. This is necessary if the strip stores to
    /// memory after a load from memory or after a store to memory.
    pub(crate) fn needs_both(&self) -> bool {
        let stores = self.effects.iter().filter(|effect| matches!(effect, Effect::Scatter { .. })).count();
        let loads = self.nodes.iter().any(|node| matches!(node, Node::Load { .. } | Node::Word(_)));
        stores > 1 || stores == 1 && loads
    }

    /// Returns whether lanes leave the node in this strip.
    pub(crate) fn leaves(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::Leave(..)))
    }

    /// Returns the rows that the strip reads and writes.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let read = self.nodes.iter().filter_map(|node| match node {
            Node::Row(row) => Some(*row),
            _ => None,
        });
        read.chain(self.effects.iter().filter_map(|effect| match effect {
            Effect::Store(row, _) => Some(*row),
            _ => None,
        }))
    }

    /// Returns the number of bytes of the window that the strip may access.
    pub(crate) fn reached(&self) -> usize {
        let words = self.nodes.iter().any(|node| matches!(node, Node::Word(_)));
        let spans = self.spans.iter().any(|span| span.site.is_none());
        if words || spans { self.window as usize } else { 0 }
    }

    /// Returns the words for which the strip gathers bits.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> + '_ {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Store(..) | Effect::Scatter { .. } => None,
            Effect::Gather(word, _) | Effect::Leave(word, _) => Some(*word),
        })
    }

    /// Returns whether the strip depends on the host's floating point modes.
    pub(crate) fn has_floats(&self) -> bool {
        self.nodes.iter().any(|node| match node {
            Node::Row(_) | Node::Constant(_) | Node::Least(_) | Node::Limit(_) => false,
            Node::Start(_) | Node::Bound(_) => false,
            Node::Select(_) | Node::Word(_) | Node::Load { .. } => false,
            Node::Two(op, _) => op.is_float(),
            Node::One(op, _) => !matches!(op, One::Shl(_) | One::Shr(_) | One::Sar(_)),
            Node::Fused { .. } | Node::PerLane { .. } => true,
        })
    }

    /// Returns the values from which a value is computed.
    pub(crate) fn sources(node: &Node) -> impl Iterator<Item = Value> + use<> {
        let (count, all) = match *node {
            Node::Row(_) | Node::Constant(_) | Node::Least(_) | Node::Limit(_) => (0, [Value(0); 6]),
            Node::Start(_) | Node::Bound(_) | Node::Word(_) => (0, [Value(0); 6]),
            Node::Two(_, [a, b]) | Node::Load { place: a, lanes: b, .. } => (2, [a, b, a, a, a, a]),
            Node::One(_, a) => (1, [a; 6]),
            Node::Select([a, b, c]) | Node::Fused { of: [a, b, c], .. } => (3, [a, b, c, a, a, a]),
            Node::PerLane { value, test, mask, sources: [a, b, c], .. } => (6, [value, test, mask, a, b, c]),
        };
        all.into_iter().take(count)
    }
}

impl Two {
    fn commutes(self) -> bool {
        matches!(
            self,
            Two::Add
                | Two::Mul
                | Two::And
                | Two::Or
                | Two::Xor
                | Two::Equal
                | Two::MinSigned
                | Two::MaxSigned
                | Two::MinUnsigned
                | Two::MaxUnsigned
        )
    }

    fn is_float(self) -> bool {
        use Two::*;
        matches!(self, FAdd | FSub | FMul | FMin | FMax | FDiv | FCompare(_))
    }

    /// Returns whether the result is a truth value.
    pub(crate) fn compares(self) -> bool {
        matches!(self, Two::Equal | Two::Greater | Two::FCompare(_))
    }
}
