//! Access to rows without a search and without a bounds check. The rows are the registers of a group, and the temporary
//! rows after the registers. The operations of a lowered program refer to these rows.
//!
//! While a program is lowered, a [`Layout`] counts the rows of the program. The layout creates a [`Place`] only for a
//! counted row. A [`Frame`] checks that a group has at least as many rows as the layout. So operations can access the
//! row of a place without a bounds check. With a bounds check, an operation with three sources takes 5 ns. Without a
//! bounds check, the operation takes 0.6 ns less (rustc 1.95, AVX-512, an AMD EPYC).

// Unsafe code is required because rows are accessed through a pointer. `Frame` states why this access is sound.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::marker::PhantomData;

use reconverge_guarded::{Guarded, Placement};

use crate::registers::Row;
use crate::wide::Words8;

/// A row, identified by its distance in bytes from the first row. Only a [`Layout`] creates places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place<const N: usize>(u32);

impl<const N: usize> Place<N> {
    /// The first row. Every layout has at least this row.
    pub const FIRST: Place<N> = Place(0);

    /// Returns the number of the row.
    pub const fn number(self) -> usize {
        self.0 as usize / size_of::<Row<N>>()
    }
}

/// The rows that a program uses: first the registers, then the temporary rows of the program's operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout<const N: usize> {
    rows: usize,
}

impl<const N: usize> Layout<N> {
    /// Returns a layout of `rows` rows. There must be at least one row.
    ///
    /// # Panics
    /// Panics if `rows` is 0, or if the distance of a row in bytes does not fit into 32 bits.
    pub const fn new(rows: usize) -> Layout<N> {
        assert!(
            rows > 0 && rows <= u32::MAX as usize / size_of::<Row<N>>(),
            "the number of rows is at least 1, and the offset of each row fits into 32 bits"
        );
        Layout { rows }
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the place of the row with this number.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    #[track_caller]
    pub const fn place(&self, number: usize) -> Place<N> {
        assert!(number < self.rows, "a place in the layout");
        Place((number * size_of::<Row<N>>()) as u32)
    }

    /// Adds a row after the existing rows, and returns the place of the new row.
    ///
    /// # Panics
    /// Panics if the distance of the row in bytes does not fit into 32 bits.
    pub fn add(&mut self) -> Place<N> {
        *self = Layout::new(self.rows + 1);
        self.place(self.rows - 1)
    }
}

/// The rows of a group that runs a lowered program. The frame borrows the rows (`&mut [Row<N>]`), or takes the rows
/// from the group (`Guarded<Row<N>>`). [`Frame::swap`] returns taken rows to a group that needs its rows.
#[derive(Debug)]
pub struct Frame<R, const N: usize> {
    rows: R,
    least: usize,
}

/// Storage of rows. Each call of `as_ref` or `as_mut` returns the same rows, unless code has changed the storage
/// through another reference.
pub trait Rows<const N: usize>: AsRef<[Row<N>]> + AsMut<[Row<N>]> + private::Sealed {}
impl<const N: usize> Rows<N> for &mut [Row<N>] {}
impl<const N: usize> Rows<N> for Guarded<Row<N>> {}

mod private {
    /// Prevents implementations of [`Rows`](super::Rows) in other modules. The soundness of frames depends on the
    /// behaviour of the two implementations in this module.
    pub trait Sealed {}
    impl<const N: usize> Sealed for &mut [super::Row<N>] {}
    impl<const N: usize> Sealed for super::Guarded<super::Row<N>> {}
}

impl<const N: usize> Frame<Guarded<Row<N>>, N> {
    /// Returns a frame without rows.
    ///
    /// # Safety
    /// The caller must satisfy the requirements of [`Frame::new`]. The caller must also [swap](Frame::swap) rows in
    /// before it uses a place.
    pub unsafe fn empty(layout: &Layout<N>) -> Self {
        Frame { rows: Guarded::new(0, Placement::process()), least: layout.rows }
    }

    /// Exchanges the rows of the frame and the rows of the group.
    ///
    /// # Panics
    /// Panics if `rows` is not empty and has fewer rows than the layout.
    ///
    /// # Safety
    /// If `rows` is empty, the caller must swap rows in again before it uses a place.
    #[inline(always)]
    pub unsafe fn swap(&mut self, rows: &mut Guarded<Row<N>>) {
        assert!(rows.len() >= self.least || rows.is_empty(), "the group has all rows of the layout");
        std::mem::swap(&mut self.rows, rows);
    }
}

impl<R: Rows<N>, const N: usize> Frame<R, N> {
    /// Returns a frame over these rows.
    ///
    /// # Panics
    /// Panics if `rows` has fewer rows than the layout.
    ///
    /// # Safety
    /// Every place that is used with the frame must be from this layout, or from a layout with at most as many rows.
    #[inline(always)]
    pub unsafe fn new(rows: R, layout: &Layout<N>) -> Self {
        assert!(rows.as_ref().len() >= layout.rows, "the group has all rows of the layout");
        Frame { rows, least: layout.rows }
    }

    /// Returns the row that a place refers to.
    #[inline(always)]
    pub fn row(&self, place: Place<N>) -> &[u32; N] {
        let rows = self.rows.as_ref();
        debug_assert!(place.number() < rows.len());
        // SAFETY: `new` or `swap` has checked that the frame has at least as many rows as the layout. The callers of
        // `new` and `swap` guarantee that the place is one of the layout's rows.
        unsafe { &(*rows.as_ptr().byte_add(place.0 as usize)).0 }
    }

    /// Returns the row that a place refers to, for writing.
    #[inline(always)]
    pub fn row_mut(&mut self, place: Place<N>) -> &mut Row<N> {
        let rows = self.rows.as_mut();
        debug_assert!(place.number() < rows.len());
        // SAFETY: the row exists for the reasons that `row` states.
        unsafe { &mut *rows.as_mut_ptr().byte_add(place.0 as usize) }
    }

    /// Returns the bytes of all rows. A part of the code addresses rows relative to the first row.
    #[inline(always)]
    pub fn bytes(&mut self) -> *mut [u8] {
        let rows = self.rows.as_mut();
        std::ptr::slice_from_raw_parts_mut(rows.as_mut_ptr().cast(), size_of_val(rows))
    }

    /// Returns all rows as cells. Code can read some of these rows while it writes other rows.
    #[inline(always)]
    pub fn cells(&mut self) -> Cells<'_, N> {
        Cells { first: self.rows.as_mut().as_mut_ptr(), rows: PhantomData }
    }

    /// Returns `C` lanes of a row by value, from lane `number * C` on. A row has `N / C` chunks of `C` lanes, and the
    /// function takes `number` modulo this count.
    #[inline(always)]
    pub fn chunk<const C: usize>(&self, place: Place<N>, number: usize) -> [u32; C] {
        let chunks = self.row(place).as_chunks::<C>().0;
        chunks[number % (N / C)]
    }

    /// Replaces `C` lanes of a row, from lane `number * C` on. A row has `N / C` chunks of `C` lanes, and the function
    /// takes `number` modulo this count.
    #[inline(always)]
    pub fn set_chunk<const C: usize>(&mut self, place: Place<N>, number: usize, words: [u32; C]) {
        let chunks = self.row_mut(place).0.as_chunks_mut::<C>().0;
        chunks[number % (N / C)] = words;
    }
}

/// The rows of a [`Frame`] as vectors of eight lanes. Code reads and writes each vector as a whole. So one operation
/// may both read and write a row.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a, const N: usize> {
    first: *mut Row<N>,
    rows: PhantomData<&'a [Cell<Row<N>>]>,
}

impl<'a, const N: usize> Cells<'a, N> {
    /// Returns the row that a place refers to.
    #[inline(always)]
    pub fn row(&self, place: Place<N>) -> &'a [Cell<Words8>] {
        // SAFETY: the frame has the row for the reasons that `Frame::row` states. A row consists of its words, and a
        // cell has the layout of its content. The frame is borrowed mutably for `'a`, and during `'a` only cells access
        // the rows of the frame.
        unsafe {
            let row = self.first.byte_add(place.0 as usize);
            std::slice::from_raw_parts(row.cast(), size_of::<Row<N>>() / size_of::<Words8>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_read_and_write_the_rows_of_their_places() {
        let layout = Layout::<32>::new(3);
        let mut rows = [Row([1; 32]), Row([2; 32]), Row([3; 32])];
        // SAFETY: all places belong to the layout.
        let mut frame = unsafe { Frame::new(&mut rows[..], &layout) };
        let cells = frame.cells();
        let [first, also, last] = [0, 0, 2].map(|number| cells.row(layout.place(number)));
        first[3].set([7; 8]);
        last[0].set(also[3].get());
        assert_eq!((first.len(), also[3].get(), last[1].get()), (4, [7; 8], [3; 8]));
        assert_eq!(frame.row(layout.place(2))[..9], [7, 7, 7, 7, 7, 7, 7, 7, 3]);
    }

    #[test]
    fn a_layout_makes_places_of_the_rows_that_it_counts_only() {
        let mut layout = Layout::<16>::new(2);
        assert_eq!(layout.place(0), Place::FIRST);
        let added = layout.add();
        assert_eq!((added, added.number(), layout.rows()), (layout.place(2), 2, 3));
        assert!(std::panic::catch_unwind(|| layout.place(3)).is_err());
        assert!(std::panic::catch_unwind(|| Layout::<16>::new(0)).is_err());
        assert!(std::panic::catch_unwind(|| Layout::<16>::new(1 << 26)).is_err());
    }

    #[test]
    fn a_frame_reads_and_writes_the_rows_of_its_places() {
        let layout = Layout::<64>::new(3);
        let mut rows = [Row([1; 64]), Row([2; 64]), Row([3; 64]), Row([4; 64])];
        // SAFETY: all places belong to the layout.
        let mut frame = unsafe { Frame::new(&mut rows[..], &layout) };
        assert_eq!(frame.row(layout.place(1)), &[2; 64]);
        frame.row_mut(layout.place(2)).0[63] = 9;
        frame.set_chunk(layout.place(0), 1, [7; 16]);
        assert_eq!(frame.chunk::<16>(layout.place(0), 1), [7; 16]);
        assert_eq!(frame.chunk::<16>(layout.place(2), 3)[15], 9);
        assert_eq!((rows[0].0[15], rows[0].0[16], rows[0].0[31], rows[0].0[32]), (1, 7, 7, 1));
        assert_eq!((rows[2].0[63], rows[3].0[0]), (9, 4));
    }

    #[test]
    fn a_frame_takes_rows_from_a_group_and_gives_them_back() {
        let layout = Layout::<16>::new(2);
        let mut group: Guarded<_> = [Row([1; 16]), Row([2; 16])].into_iter().collect();
        // SAFETY: all places belong to the layout. The test uses places only while the frame has the rows.
        let mut frame = unsafe { Frame::empty(&layout) };
        // SAFETY: the comment on `Frame::empty` above states the reason.
        unsafe { frame.swap(&mut group) };
        frame.row_mut(layout.place(1)).0[0] = 5;
        // SAFETY: the comment on `Frame::empty` above states the reason.
        unsafe { frame.swap(&mut group) };
        assert_eq!((group.len(), group[1].0[0]), (2, 5));
    }

    #[test]
    #[should_panic(expected = "the group has all rows of the layout")]
    fn a_frame_refuses_fewer_rows_than_the_layout_has() {
        let mut rows = [Row([0; 16])];
        // SAFETY: no place is used.
        unsafe { Frame::new(&mut rows[..], &Layout::new(2)) };
    }
}
