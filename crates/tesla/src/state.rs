//! The state of one warp: registers, local memory, stage inputs and outputs. The control flow of the warp is not part
//! of this state.
//!
//! See tesla.md 1.4 (registers) and tesla.md 1.7 (spaces). All registers and all memory of a warp start at zero.
//! (**Open** 13.19: according to the documents, the contents are undefined, except for `$r0` of compute threads.)

use litemap::LiteMap;
use reconverge_simt::guarded::{Guarded, Placement};
use reconverge_simt::registers::{Registers, Row};
use reconverge_simt::{Lane, Mask};

use crate::flow::{Flow, WARP};
use crate::lane::interpolate::Position;

/// The maximum number of registers that a program may declare.
pub const MOST_REGISTERS: usize = 128;

/// Number of address registers that can be written: `$a1` to `$a4`. `$a0` always reads zero.
pub const ADDRESS_REGISTERS: usize = 4;

/// Number of condition registers: `$c0` to `$c3`.
pub const CONDITION_REGISTERS: usize = 4;

/// Register number of `$a0` in events. `$a<n>` is `REGISTER_A` + n, and `$r<n>` is n.
pub const REGISTER_A: u32 = 0x80;

/// Register number of `$c0` in events. `$c<n>` is `REGISTER_C` + n.
pub const REGISTER_C: u32 = 0x90;

/// Register number of the first word of o[] in events. Word n is `REGISTER_O` + n.
pub const REGISTER_O: u32 = 0x100;

/// An item that a geometry program emits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Emitted {
    /// A vertex: the words of o[].
    Vertex(Vec<u32>),
    /// The end of the strip.
    Restart,
}

/// The results of one thread of a graphics stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneResult {
    /// `$r0`, `$r1` and so on. At the end of a fragment, the registers contain the colours with four words each, and
    /// then the depth. (1.6)
    pub registers: Vec<u32>,
    /// o[] by word, up to the last word that the warp wrote.
    pub outputs: Vec<u32>,
    /// Whether the fragment was discarded or not covered. No result of such a fragment is written.
    pub dead: bool,
    /// The vertices and strip ends that a geometry program emitted, in order.
    pub emitted: Vec<Emitted>,
}

/// One word of the stage's inputs for all lanes. The input has a value at each position that an interpolation can
/// select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    centre: Row<WARP>,
    /// Words at the centroid, and words of the provoking vertex. The field is `None` if the words at all three
    /// positions are equal. The words are part of the struct and have no separate allocation. An allocation for each
    /// warp would take longer than the evaluation of a fragment's planes.
    others: Option<[Row<WARP>; 2]>,
}

impl Input {
    /// Creates an input with the same word at every position.
    pub fn same(row: Row<WARP>) -> Self {
        Input { centre: row, others: None }
    }

    /// Creates an input from three rows. The first row has the words at the fragment's centre. The second row has the
    /// words at the centroid of the covered samples. The third row has the words of the provoking vertex.
    pub fn of(centre: Row<WARP>, centroid: Row<WARP>, flat: Row<WARP>) -> Self {
        Input { centre, others: Some([centroid, flat]) }
    }

    /// Returns the words at a position.
    pub fn at(&self, position: Position) -> &Row<WARP> {
        match (position, &self.others) {
            (Position::Centre, _) | (_, None) => &self.centre,
            (Position::Centroid, Some([centroid, _])) => centroid,
            (Position::Flat, Some([_, flat])) => flat,
        }
    }
}

/// The registers and private memory of one warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warp {
    /// The program counter, active lanes and token stack.
    pub flow: Flow,
    /// Number of the warp in its block. For graphics stages, number of the warp in the launch.
    pub number: u32,
    r: Registers<WARP>,
    a: [[u16; WARP]; ADDRESS_REGISTERS],
    c: [[u8; WARP]; CONDITION_REGISTERS],
    local: Private,
    local_bytes: u32,
    /// a[] or v[] by word number. Words that the launch does not provide are `None`.
    pub inputs: Vec<Option<Input>>,
    /// o[] by word number, up to the last word that was written.
    pub outputs: Vec<Row<WARP>>,
    /// For each lane, the vertices and strip ends that a geometry program emitted.
    pub emitted: Vec<Vec<Emitted>>,
    /// Results of lanes that `quadon` activated again after the end of these lanes.
    finalised: LiteMap<Lane, LaneResult>,
}

/// The l[] of all lanes, word by word: the first words of all lanes, then the second words of all lanes. If all lanes
/// access the same address, they access consecutive words.
#[derive(Clone, Debug)]
struct Private {
    bytes: Guarded<u8>,
    /// Mask of the parts of l[] that may be nonzero. The l[] of each lane consists of up to 64 parts, and bit n is for
    /// part n. If bit n is clear, part n is zero in all lanes. Most programs use few bytes of the l[] that they
    /// declare.
    touched: u64,
}

/// Two values are equal if their bytes are equal. `touched` is not compared.
impl PartialEq for Private {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Private {}

impl Private {
    /// Returns an l[] of `each` bytes for each lane.
    fn new(each: u32) -> Private {
        let bytes = (each as usize).next_multiple_of(4) * WARP;
        Private { bytes: Guarded::new(bytes, Placement::addressed()), touched: 0 }
    }

    /// Returns the size of a part, in bytes of all lanes. There are at most 64 parts.
    #[inline]
    fn part(&self) -> usize {
        (self.bytes.len() / 64).next_multiple_of(4 * WARP).max(4 * WARP)
    }

    /// Returns the bytes of all lanes. The caller may write the offsets from `first` to `last` in each lane.
    #[inline]
    fn bytes_mut(&mut self, first: u32, last: u32) -> &mut [u8] {
        let size = self.part();
        let part = |byte: u32| (byte as usize * WARP / size).min(63);
        self.touched |= u64::MAX << part(first) & u64::MAX >> (63 - part(last));
        &mut self.bytes
    }

    /// Sets all bytes to zero.
    fn clear(&mut self) {
        let (size, touched) = (self.part(), std::mem::take(&mut self.touched));
        if touched == 0 {
            return;
        }
        let parts = self.bytes.chunks_mut(size).enumerate();
        parts.filter(|(number, _)| touched >> number & 1 != 0).for_each(|(_, bytes)| bytes.fill(0));
    }
}

/// The parts of a warp as separate borrows, for engines that work on whole rows.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The program counter, active lanes and token stack.
    pub flow: &'a mut Flow,
    /// The general registers, followed by the rows that [`Warp::add_room`] added.
    pub rows: &'a mut [Row<WARP>],
    /// The address registers `$a1` to `$a4`.
    pub a: &'a mut [[u16; WARP]; ADDRESS_REGISTERS],
    /// The condition registers `$c0` to `$c3`. Only the low four bits of each lane may be set.
    pub c: &'a mut [[u8; WARP]; CONDITION_REGISTERS],
    /// The l[] of all lanes.
    pub local: Local<'a>,
    /// a[] or v[] by word number.
    pub inputs: &'a [Option<Input>],
    /// o[] by word number, up to the last word that was written.
    pub outputs: &'a mut Vec<Row<WARP>>,
}

/// The l[] of all lanes.
#[derive(Debug)]
pub struct Local<'a> {
    private: &'a mut Private,
    each: u32,
}

impl Local<'_> {
    /// Returns the number of bytes of each lane.
    #[inline]
    pub fn each(&self) -> u32 {
        self.each
    }

    /// Returns the bytes of all lanes, word by word. [`local_place`] has the position of a lane's byte.
    #[inline]
    pub fn all(&self) -> &[u8] {
        &self.private.bytes
    }

    /// Returns the bytes of all lanes. The caller may write the offsets from `first` to `last` in each lane.
    #[inline]
    pub fn all_mut(&mut self, first: u32, last: u32) -> &mut [u8] {
        self.private.bytes_mut(first, last)
    }
}

/// Returns the position of a lane's byte in the l[] of all lanes. The address of the byte is below 2^24.
#[inline(always)]
pub fn local_place(lane: usize, address: u32) -> u32 {
    (address & !3) * WARP as u32 + 4 * lane as u32 + (address & 3)
}

impl Warp {
    /// Creates a warp with `registers` general registers and `local_bytes` of l[] per lane, all zero.
    ///
    /// A warp has at most [`MOST_REGISTERS`] registers, even if `registers` is larger.
    pub fn new(flow: Flow, number: u32, registers: usize, local_bytes: u32) -> Self {
        Warp {
            flow,
            number,
            r: Registers::zero(registers.min(MOST_REGISTERS)),
            a: [[0; WARP]; ADDRESS_REGISTERS],
            c: [[0; WARP]; CONDITION_REGISTERS],
            local: Private::new(local_bytes),
            local_bytes,
            inputs: Vec::new(),
            outputs: Vec::new(),
            emitted: Vec::new(),
            finalised: LiteMap::new(),
        }
    }

    /// Resets the warp to the state that [`Warp::new`] creates with the limits, the mode and the sizes of this warp.
    /// The warp starts at `pc` with the `launched` lanes active. The number, the inputs and the rows of
    /// [`Warp::add_room`] keep their values. `cleared` lists the general registers that become zero. `None` stands for
    /// all general registers.
    pub fn begin(&mut self, pc: u32, launched: Mask, cleared: Option<&[u8]>) {
        let Warp { flow, number: _, r, a, c, local, local_bytes: _, inputs: _, outputs, emitted, finalised } =
            self;
        flow.begin(pc, launched);
        match cleared {
            None => r.clear(),
            Some(cleared) => {
                for register in cleared {
                    r.row_mut(usize::from(*register)).into_iter().for_each(Row::clear);
                }
            }
        }
        (*a, *c) = ([[0; WARP]; ADDRESS_REGISTERS], [[0; WARP]; CONDITION_REGISTERS]);
        local.clear();
        outputs.clear();
        emitted.clear();
        finalised.clear();
    }

    /// Returns the general registers. Each register is a row with one value per lane.
    pub fn file(&self) -> &Registers<WARP> {
        &self.r
    }

    /// Returns the general registers for writing whole rows.
    pub fn file_mut(&mut self) -> &mut Registers<WARP> {
        &mut self.r
    }

    /// Adds rows after the general registers for an engine's own use. The rows are not registers, and no code outside
    /// the engine reads the rows.
    pub fn add_room(&mut self, rows: &[Row<WARP>]) {
        self.r.add_room(rows);
    }

    /// Returns the parts of the warp.
    pub fn parts(&mut self) -> Parts<'_> {
        Parts {
            flow: &mut self.flow,
            rows: self.r.with_room_mut(),
            a: &mut self.a,
            c: &mut self.c,
            local: Local { private: &mut self.local, each: self.local_bytes },
            inputs: &self.inputs,
            outputs: &mut self.outputs,
        }
    }

    /// Returns whether the program has `$r<register>`. Writes to a register that the program does not have are dropped.
    /// If the destination field of an instruction selects an absent register, the whole instruction is dropped. (1.4)
    #[inline]
    pub fn has_register(&self, register: u8) -> bool {
        usize::from(register) < self.r.count()
    }

    /// Returns `$r<register>`, or 0 if the program does not have the register. (1.4)
    #[inline]
    pub fn r(&self, lane: Lane, register: u8) -> u32 {
        self.r.row(usize::from(register)).map_or(0, |row| row.0[lane.index()])
    }

    /// Writes `$r<register>`. If the program does not have the register, the write is dropped. (1.4)
    #[inline]
    pub fn set_r(&mut self, lane: Lane, register: u8, value: u32) {
        if let Some(row) = self.r.row_mut(usize::from(register)) {
            row.0[lane.index()] = value;
        }
    }

    /// Returns a half register by its field value F: the low half of `$r<F/2>` for even F, and the high half for odd F.
    /// (1.4)
    #[inline]
    pub fn half(&self, lane: Lane, field: u8) -> u16 {
        (self.r(lane, field >> 1) >> (16 * u32::from(field & 1))) as u16
    }

    /// Writes a half register. The other half of the register does not change.
    #[inline]
    pub fn set_half(&mut self, lane: Lane, field: u8, value: u16) {
        let old = self.r(lane, field >> 1);
        let new = if field & 1 == 0 {
            old & 0xffff_0000 | u32::from(value)
        } else {
            old & 0xffff | u32::from(value) << 16
        };
        self.set_r(lane, field >> 1, new);
    }

    /// Returns a pair of registers, with the low word in `$r<register>`. (1.4)
    #[inline]
    pub fn pair(&self, lane: Lane, register: u8) -> u64 {
        u64::from(self.r(lane, register)) | u64::from(self.r(lane, register.wrapping_add(1))) << 32
    }

    /// Writes a pair of registers.
    #[inline]
    pub fn set_pair(&mut self, lane: Lane, register: u8, value: u64) {
        self.set_r(lane, register, value as u32);
        self.set_r(lane, register.wrapping_add(1), (value >> 32) as u32);
    }

    /// Returns four consecutive registers as one value. The lowest register contains the low word. (1.4)
    #[inline]
    pub fn quad(&self, lane: Lane, register: u8) -> u128 {
        (0..4)
            .rev()
            .fold(0, |value, step| value << 32 | u128::from(self.r(lane, register.saturating_add(step))))
    }

    /// Returns `$a<register>`. `$a0` is 0.
    ///
    /// **Open** (13.9): `$a5` and `$a6` do not exist, and the use of `$a7` is unknown. All three registers read 0 here.
    /// [`check_address_register`](crate::access::check_address_register) decides whether an instruction may use one of
    /// these three registers.
    #[inline]
    pub fn a(&self, lane: Lane, register: u8) -> u16 {
        match register {
            1..=4 => self.a[usize::from(register) - 1][lane.index()],
            _ => 0,
        }
    }

    /// Writes `$a<register>`. A write to `$a0` has no effect (**Open**, section 4).
    #[inline]
    pub fn set_a(&mut self, lane: Lane, register: u8, value: u16) {
        if let 1..=4 = register {
            self.a[usize::from(register) - 1][lane.index()] = value;
        }
    }

    /// Returns the flags of `$c<register>`: Z = 1, S = 2, C = 4, O = 8.
    #[inline]
    pub fn c(&self, lane: Lane, register: u8) -> u8 {
        self.c[usize::from(register) % CONDITION_REGISTERS][lane.index()]
    }

    /// Writes `$c<register>`.
    #[inline]
    pub fn set_c(&mut self, lane: Lane, register: u8, flags: u8) {
        self.c[usize::from(register) % CONDITION_REGISTERS][lane.index()] = flags & 0xf;
    }

    /// Returns the flags of `$c<register>` for all lanes.
    pub fn c_row(&self, register: u8) -> &[u8; WARP] {
        &self.c[usize::from(register) % CONDITION_REGISTERS]
    }

    /// Returns `$a<register>`, 1 to 4, for all lanes.
    pub fn a_row(&self, register: u8) -> &[u16; WARP] {
        &self.a[(usize::from(register) + ADDRESS_REGISTERS - 1) % ADDRESS_REGISTERS]
    }

    /// Returns the number of bytes of l[] per lane.
    pub fn local_bytes(&self) -> u32 {
        self.local_bytes
    }

    /// Returns the addresses of `count` bytes from `address` on. Returns `None` if the bytes extend past the end of l[].
    #[inline]
    fn locals(&self, address: u32, count: usize) -> Option<std::ops::Range<u32>> {
        let end = address.checked_add(u32::try_from(count).ok()?)?;
        (end <= self.local_bytes).then_some(address..end)
    }

    /// Reads bytes of the lane's l[] from `address` on. Returns `None` if the bytes extend past the end of l[].
    #[inline]
    pub fn read_local(&self, lane: Lane, address: u32, into: &mut [u8]) -> Option<()> {
        for (address, byte) in self.locals(address, into.len())?.zip(into) {
            *byte = *self.local.bytes.get(local_place(lane.index(), address) as usize)?;
        }
        Some(())
    }

    /// Writes bytes to the lane's l[] from `address` on. Returns `None` if the bytes extend past the end of l[].
    #[inline]
    pub fn write_local(&mut self, lane: Lane, address: u32, bytes: &[u8]) -> Option<()> {
        let addresses = self.locals(address, bytes.len())?;
        let all = self.local.bytes_mut(address, addresses.end.saturating_sub(1));
        for (address, byte) in addresses.zip(bytes) {
            *all.get_mut(local_place(lane.index(), address) as usize)? = *byte;
        }
        Some(())
    }

    /// Sets an input word of the warp, and replaces any earlier value.
    #[inline(always)]
    pub fn set_input(&mut self, word: u16, input: Input) {
        *self.input_mut(word) = Some(input);
    }

    #[inline(always)]
    fn input_mut(&mut self, word: u16) -> &mut Option<Input> {
        let word = usize::from(word);
        if self.inputs.len() <= word {
            self.inputs.resize(word + 1, None);
        }
        &mut self.inputs[word]
    }

    /// Sets a word of a[] or v[] that is the same at every position. `values` has one value per lane. If there are
    /// fewer values than lanes, the word is 0 in the remaining lanes.
    pub(crate) fn set_input_words(&mut self, word: u16, values: &[u32]) {
        let input = self.input_mut(word).get_or_insert_with(|| Input::same(Row::ZERO));
        input.others = None;
        let count = values.len().min(WARP);
        input.centre.0[..count].copy_from_slice(&values[..count]);
        input.centre.0[count..].fill(0);
    }

    /// Returns word `word` of a lane's o[], or 0 if the word was never written.
    pub fn output(&self, lane: Lane, word: usize) -> u32 {
        self.outputs.get(word).map_or(0, |row| row.0[lane.index()])
    }

    /// Writes word `word` of o[].
    pub fn set_output(&mut self, lane: Lane, word: usize, value: u32) {
        if self.outputs.len() <= word {
            self.outputs.resize(word + 1, Row::ZERO);
        }
        self.outputs[word].0[lane.index()] = value;
    }

    /// Executes `emit` for `lanes`: copies the words of o[] to a new vertex, and then sets o[] to zero. (**Open** 6.10:
    /// the contents are undefined afterwards.)
    pub fn emit(&mut self, lanes: Mask) {
        self.emitted.resize(WARP, Vec::new());
        for lane in lanes.lanes() {
            let vertex = self.outputs.iter().map(|row| row.0[lane.index()]).collect();
            self.emitted[lane.index()].push(Emitted::Vertex(vertex));
            for row in &mut self.outputs {
                row.0[lane.index()] = 0;
            }
        }
    }

    /// Executes `restart` for `lanes`: ends the strip.
    pub fn restart(&mut self, lanes: Mask) {
        self.emitted.resize(WARP, Vec::new());
        for lane in lanes.lanes() {
            self.emitted[lane.index()].push(Emitted::Restart);
        }
    }

    /// Stores the results of the ended lanes in `lanes`. Later instructions do not change the stored results. Between
    /// `quadon` and `quadpop`, ended lanes compute only for their quad. (9.6: exit finalises outputs)
    pub fn finalise(&mut self, lanes: Mask) {
        for lane in (lanes & self.flow.ended()).lanes() {
            if !self.finalised.contains_key(&lane) {
                self.finalised.insert(lane, self.result(lane));
            }
        }
    }

    /// Returns the results of lanes that `quadon` activated again after the end of these lanes.
    pub(crate) fn finalised(&self) -> &LiteMap<Lane, LaneResult> {
        &self.finalised
    }

    /// Returns the current results of a lane. If the lane has ended, returns the results from the end of the lane.
    pub fn result(&self, lane: Lane) -> LaneResult {
        if let Some(result) = self.finalised.get(&lane) {
            return result.clone();
        }
        LaneResult {
            registers: self.r.rows().iter().map(|row| row.0[lane.index()]).collect(),
            outputs: self.outputs.iter().map(|row| row.0[lane.index()]).collect(),
            dead: self.flow.dead().has(lane),
            emitted: self.emitted.get(lane.index()).cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Limits;
    use reconverge_simt::Mode;

    fn warp() -> Warp {
        Warp::new(Flow::new(0, Mask::first(WARP), Limits::default(), Mode::Strict), 0, 4, 16)
    }

    const LANE: Lane = Lane(5);

    #[test]
    fn registers_beyond_the_count_read_zero_and_cannot_be_written() {
        let mut warp = warp();
        for register in [4, 124, 127, 255] {
            warp.set_r(LANE, register, 7);
            warp.set_pair(LANE, register, 7);
            warp.set_half(LANE, register, 7);
            assert_eq!(warp.r(LANE, register), 0);
        }
        warp.set_pair(LANE, 3, 1 << 32 | 9);
        assert_eq!((warp.r(LANE, 3), warp.pair(LANE, 3)), (9, 9));
    }

    #[test]
    fn writing_one_half_leaves_the_other() {
        let mut warp = warp();
        warp.set_r(LANE, 1, 0x1234_5678);
        warp.set_half(LANE, 3, 0xabcd);
        assert_eq!(warp.r(LANE, 1), 0xabcd_5678);
        warp.set_half(LANE, 2, 0xef01);
        assert_eq!((warp.r(LANE, 1), warp.half(LANE, 3), warp.half(LANE, 2)), (0xabcd_ef01, 0xabcd, 0xef01));
        assert_eq!(warp.r(Lane(4), 1), 0);
    }

    #[test]
    fn address_register_zero_stays_zero() {
        let mut warp = warp();
        for register in 0..8 {
            warp.set_a(LANE, register, 9);
        }
        assert_eq!(
            (0..8).map(|register| warp.a(LANE, register)).collect::<Vec<_>>(),
            [0, 9, 9, 9, 9, 0, 0, 0]
        );
    }

    #[test]
    fn local_memory_is_a_lanes_own_and_ends() {
        let mut warp = warp();
        warp.write_local(LANE, 10, &[1, 2, 3, 4]).unwrap();
        let read = |warp: &Warp, lane, address| {
            let mut bytes = [0xff; 4];
            warp.read_local(lane, address, &mut bytes).map(|()| bytes)
        };
        assert_eq!(read(&warp, LANE, 10), Some([1, 2, 3, 4]));
        assert_eq!(read(&warp, LANE, 12), Some([3, 4, 0, 0]));
        assert_eq!(read(&warp, Lane(4), 10), Some([0; 4]));
        assert_eq!(read(&warp, Lane(6), 10), Some([0; 4]));
        assert!(read(&warp, LANE, 13).is_none() && read(&warp, Lane(31), u32::MAX).is_none());
        assert!(warp.write_local(LANE, 13, &[0; 4]).is_none());
    }

    #[test]
    fn a_new_warp_has_a_local_memory_of_zeros() {
        for each in [16, 64, 256, 0x1000, 0x1_0000] {
            let mut warp = Warp { local: Private::new(each), local_bytes: each, ..warp() };
            let zeros = warp.local.clone();
            for address in (0..each).step_by(12) {
                warp.write_local(Lane(address as u8 % 32), address, &[1]).unwrap();
            }
            assert_ne!(warp.local, zeros);
            warp.begin(0, Mask::first(WARP), None);
            assert_eq!(warp.local, zeros);
        }
    }

    #[test]
    fn an_emitted_vertex_takes_the_outputs_with_it() {
        let mut warp = warp();
        warp.set_output(LANE, 2, 7);
        warp.emit(Mask::only(LANE));
        warp.restart(Mask::only(LANE));
        assert_eq!(warp.emitted[5], [Emitted::Vertex(vec![0, 0, 7]), Emitted::Restart]);
        assert_eq!(warp.output(LANE, 2), 0);
        assert!(warp.emitted[4].is_empty());
    }
}
