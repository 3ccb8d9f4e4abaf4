//! Layouts of surfaces: the addresses of their bytes.
//!
//! A tiled surface consists of tiles of 64 bytes by 4 << y rows by 1 << z slices. Programs cannot map tiled memory, so
//! the chip model is free to choose the order of bytes in a tile. The chip model must agree with the driver only on the
//! size of each level and on the start of each slice. If tiles have one slice, the model stores the surface row by row.
//! Each row is as wide as a row of tiles. If tiles have several slices, the model stores tiles in the order of the
//! chip. Within a tile, the model stores the elements row by row. Source: Mesa `nv50_miptree.c` and `nv50_tex.c`.

use reconverge_simt::vram::Vram;

/// Width of a tile in bytes.
const TILE_WIDTH: usize = 64;

/// Height and depth of tiles, as in TILE_MODE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TileMode {
    /// log2 of a quarter of the number of rows.
    pub(super) y: u32,
    /// log2 of the number of slices.
    pub(super) z: u32,
}

impl TileMode {
    /// Returns the mode in the word of a method.
    pub(super) fn new(word: u32) -> TileMode {
        TileMode { y: (word >> 4 & 0xf).min(5), z: (word >> 8 & 0xf).min(5) }
    }

    /// Returns the number of rows of a tile.
    pub(super) fn height(self) -> usize {
        4 << self.y
    }

    /// Returns the number of slices of a tile.
    pub(super) fn depth(self) -> usize {
        1 << self.z
    }

    /// Returns the mode of a level with `rows` rows of elements. `slices` is the number of slices of a texture with
    /// depth.
    pub(super) fn of_level(rows: usize, slices: Option<usize>) -> TileMode {
        let doubled = 2 * rows;
        let y = [64, 32, 16, 8].iter().position(|most| doubled > *most).map_or(0, |at| 4 - at as u32);
        let Some(slices) = slices else { return TileMode { y, z: 0 } };
        let y = y.min(2);
        let z = match slices {
            17.. if y < 2 => 5,
            9.. => 4,
            5.. => 3,
            3.. => 2,
            2 => 1,
            _ => 0,
        };
        TileMode { y, z }
    }
}

/// Layout of a level in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A surface without tiles. The distance between rows is constant.
    Linear {
        /// Distance from one row to the next, in bytes.
        pitch: usize,
    },
    /// Rows of tiles.
    Tiled {
        /// Height and depth of the tiles.
        mode: TileMode,
        /// Width of a row of tiles in bytes.
        pitch: usize,
        /// Number of rows, rounded up to whole tiles.
        rows: usize,
    },
}

impl Layout {
    /// Returns the tiled layout of a level with `rows` rows of `row_bytes` bytes.
    pub(super) fn tiled(mode: TileMode, row_bytes: usize, rows: usize) -> Layout {
        let pitch = row_bytes.max(1).next_multiple_of(TILE_WIDTH);
        Layout::Tiled { mode, pitch, rows: rows.max(1).next_multiple_of(mode.height()) }
    }

    /// Returns the number of bytes from one row to the next. For tiles with several slices, this is the width of a row
    /// of tiles.
    pub(super) fn pitch(&self) -> usize {
        match self {
            Layout::Linear { pitch } | Layout::Tiled { pitch, .. } => *pitch,
        }
    }

    /// Returns whether the level is stored row by row.
    pub(super) fn has_rows(&self) -> bool {
        !matches!(self, Layout::Tiled { mode, .. } if mode.z > 0)
    }

    /// Returns the offset of a byte from the start of the level. `z` is the slice, for a level with depth. Registers
    /// may have values for which the offset is past the end of any memory.
    pub(super) fn place(&self, x: usize, y: usize, z: usize) -> usize {
        match *self {
            Layout::Linear { pitch } => y.saturating_mul(pitch).saturating_add(x),
            Layout::Tiled { mode, pitch, .. } if mode.z == 0 => y.saturating_mul(pitch).saturating_add(x),
            Layout::Tiled { mode, pitch, rows } => {
                let (height, depth) = (mode.height(), mode.depth());
                let whole = (z / depth * depth).saturating_mul(pitch).saturating_mul(rows);
                let tile = (y / height).saturating_mul(pitch / TILE_WIDTH).saturating_add(x / TILE_WIDTH);
                let in_tile = (z % depth * height + y % height) * TILE_WIDTH + x % TILE_WIDTH;
                tile.saturating_mul(TILE_WIDTH * height * depth).saturating_add(whole).saturating_add(in_tile)
            }
        }
    }

    /// Returns the number of bytes of a row that are contiguous in memory, starting at byte `x`.
    pub(super) fn run(&self, x: usize) -> usize {
        if self.has_rows() { usize::MAX } else { TILE_WIDTH - x % TILE_WIDTH }
    }

    /// Returns the size in bytes of a level with `slices` slices.
    pub(super) fn bytes(&self, slices: usize) -> usize {
        match *self {
            Layout::Linear { pitch } => pitch.saturating_mul(slices),
            Layout::Tiled { mode, pitch, rows } => {
                pitch.saturating_mul(rows).saturating_mul(slices.next_multiple_of(mode.depth()))
            }
        }
    }
}

/// Slices of targets whose tiles have several slices. Before a draw, the model copies these slices to the end of
/// memory, row by row. After the draw, the model copies the slices back to their tiles and restores the end of memory.
#[derive(Debug)]
pub(super) struct Slices {
    end: usize,
    all: Vec<Slice>,
}

#[derive(Debug)]
struct Slice {
    layout: Layout,
    start: usize,
    z: usize,
    /// Offset in memory of the slice's rows during the draw.
    place: usize,
    /// Old contents of the memory for the rows.
    saved: Vec<u8>,
}

impl Slice {
    /// Copies the slice from tiles to rows, or from rows to tiles.
    fn copy(&self, memory: Vram<'_>, to_rows: bool) {
        let Layout::Tiled { pitch, rows, .. } = self.layout else { return };
        for (y, x) in (0..rows).flat_map(|y| (0..pitch).step_by(TILE_WIDTH).map(move |x| (y, x))) {
            let tiled = self.start.saturating_add(self.layout.place(x, y, self.z));
            let row = self.place + y * pitch + x;
            let (from, to) = if to_rows { (tiled, row) } else { (row, tiled) };
            memory.copy_within(from..from.saturating_add(TILE_WIDTH), to);
        }
    }
}

impl Slices {
    /// Returns whether the list has no slices.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns an empty list for a memory of `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Slices {
        Slices { end: bytes, all: Vec::new() }
    }

    /// Adds a slice, and returns the offset in memory for the rows of the slice. Returns `None` if memory has no room
    /// for the rows.
    pub(super) fn rows(&mut self, layout: Layout, start: usize, z: usize) -> Option<usize> {
        let Layout::Tiled { pitch, rows, .. } = layout else { return None };
        self.end = self.end.checked_sub(pitch.checked_mul(rows)?)?;
        self.all.push(Slice { layout, start, z, place: self.end, saved: Vec::new() });
        Some(self.end)
    }

    /// Saves the old contents of the memory for rows, and copies all slices to their rows.
    pub(super) fn take(&mut self, memory: Vram<'_>) {
        for slice in &mut self.all {
            let Layout::Tiled { pitch, rows, .. } = slice.layout else { continue };
            slice.saved = memory.bytes(slice.place..slice.place + pitch * rows);
            slice.copy(memory, true);
        }
    }

    /// Copies all slices back to their tiles, and restores the old contents of memory.
    pub(super) fn put(self, memory: Vram<'_>) {
        for slice in &self.all {
            slice.copy(memory, false);
            memory.write(slice.place, &slice.saved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test uses captured tile modes and addresses of the levels of an RGBA8 texture. The texture has 64 x 64
    /// texels. Registers of the copy object have 32 bits.
    #[test]
    fn places_that_no_memory_has_are_the_furthest() {
        let most = u32::MAX as usize;
        let layout = Layout::tiled(TileMode { y: 2, z: 1 }, most, most);
        assert_eq!(layout.place(0, 0, most), usize::MAX);
        assert_eq!((layout.place(0, 0, 1), layout.bytes(most)), (64 * 16, usize::MAX));
    }

    #[test]
    fn levels_are_where_the_driver_put_them() {
        let (mut at, mut found) = (0, Vec::new());
        for level in 0..5 {
            let mode = TileMode::of_level(64 >> level, None);
            found.push((at, mode.y << 4));
            at += Layout::tiled(mode, (64 >> level) * 4, 64 >> level).bytes(1);
        }
        assert_eq!(found, [(0, 0x40), (0x4000, 0x30), (0x5000, 0x20), (0x5400, 0x10), (0x5600, 0)]);
    }

    #[test]
    fn every_byte_of_a_level_with_depth_has_a_place_of_its_own() {
        let mode = TileMode { y: 1, z: 2 };
        let layout = Layout::tiled(mode, 130, 19);
        let mut seen = vec![false; layout.bytes(6)];
        for (z, y, x) in (0..8).flat_map(|z| (0..24).flat_map(move |y| (0..192).map(move |x| (z, y, x)))) {
            let place = layout.place(x, y, z);
            assert!(!std::mem::replace(&mut seen[place], true), "{x} {y} {z}");
        }
        assert!(seen.iter().all(|seen| *seen));
        // Slice z begins at the offset that the driver computes.
        assert_eq!(layout.place(0, 0, 5), 4 * 192 * 24 + 64 * 8);
    }

    #[test]
    fn a_slice_is_drawn_to_as_rows_and_nothing_else_changes() {
        let layout = Layout::tiled(TileMode { y: 0, z: 1 }, 100, 6);
        let mut memory: Vec<u8> = (0..8 * 1024).map(|at| (at % 251) as u8).collect();
        let before = memory.clone();
        let mut slices = Slices::new(memory.len());
        let rows = slices.rows(layout, 64, 1).unwrap();
        slices.take(Vram::new(&mut memory));
        assert_eq!(memory[rows + 5 * 128 + 70], before[64 + layout.place(70, 5, 1)]);
        memory[rows + 5 * 128 + 70] = 255;
        slices.put(Vram::new(&mut memory));
        let changed: Vec<usize> = (0..memory.len()).filter(|at| memory[*at] != before[*at]).collect();
        assert_eq!(changed, [64 + layout.place(70, 5, 1)]);
    }
}
