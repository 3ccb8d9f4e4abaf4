//! Where the bytes of a surface are.
//!
//! A tiled surface consists of tiles of 64 bytes by 4 << y rows by 1 << z slices. Nothing maps tiled memory, so that the
//! order inside is the chip's own business; what the driver computes itself must hold: sizes of levels, and where slices
//! of a level begin. One slice a tile: rows lie one behind another, as wide as the tiles of a row. Otherwise tiles lie as
//! on the chip, with plain rows inside. Source: Mesa `nv50_miptree.c` and `nv50_tex.c`.

/// The width of a tile in bytes.
const TILE_WIDTH: usize = 64;

/// TILE_MODE: how high and how deep tiles are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TileMode {
    /// log2 of rows / 4.
    pub(super) y: u32,
    /// log2 of slices.
    pub(super) z: u32,
}

impl TileMode {
    /// Of a method's word.
    pub(super) fn new(word: u32) -> TileMode {
        TileMode { y: (word >> 4 & 0xf).min(5), z: (word >> 8 & 0xf).min(5) }
    }

    /// Rows of a tile.
    pub(super) fn height(self) -> usize {
        4 << self.y
    }

    /// Slices of a tile.
    pub(super) fn depth(self) -> usize {
        1 << self.z
    }

    /// The mode of a level of `rows` rows of blocks, in `slices` slices if the texture has depth.
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

/// How a level lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Rows of so many bytes from one to the next.
    Linear {
        /// In bytes.
        pitch: usize,
    },
    /// Tiles.
    Tiled {
        /// Their size.
        mode: TileMode,
        /// Bytes of a row of tiles.
        pitch: usize,
        /// Rows, in whole tiles.
        rows: usize,
    },
}

impl Layout {
    /// A level whose rows have `row_bytes` bytes.
    pub(super) fn tiled(mode: TileMode, row_bytes: usize, rows: usize) -> Layout {
        let pitch = row_bytes.max(1).next_multiple_of(TILE_WIDTH);
        Layout::Tiled { mode, pitch, rows: rows.max(1).next_multiple_of(mode.height()) }
    }

    /// Bytes from one row to the next, where rows lie so.
    pub(super) fn pitch(&self) -> usize {
        match self {
            Layout::Linear { pitch } | Layout::Tiled { pitch, .. } => *pitch,
        }
    }

    /// Whether rows lie one behind another.
    pub(super) fn has_rows(&self) -> bool {
        !matches!(self, Layout::Tiled { mode, .. } if mode.z > 0)
    }

    /// Where a byte is, from the start of the level. `z` is a slice of a level with depth.
    pub(super) fn place(&self, x: usize, y: usize, z: usize) -> usize {
        match *self {
            Layout::Linear { pitch } => y * pitch + x,
            Layout::Tiled { mode, pitch, .. } if mode.z == 0 => y * pitch + x,
            Layout::Tiled { mode, pitch, rows } => {
                let (height, depth) = (mode.height(), mode.depth());
                let slices = (z / depth) * depth * pitch * rows + (z % depth) * TILE_WIDTH * height;
                let tile = (y / height) * (pitch / TILE_WIDTH) + x / TILE_WIDTH;
                slices + tile * TILE_WIDTH * height * depth + y % height * TILE_WIDTH + x % TILE_WIDTH
            }
        }
    }

    /// How many bytes from `x` on lie one behind another.
    pub(super) fn run(&self, x: usize) -> usize {
        if self.has_rows() { usize::MAX } else { TILE_WIDTH - x % TILE_WIDTH }
    }

    /// Bytes of a level with so many slices.
    pub(super) fn bytes(&self, slices: usize) -> usize {
        match *self {
            Layout::Linear { pitch } => pitch * slices,
            Layout::Tiled { mode, pitch, rows } => pitch * rows * slices.next_multiple_of(mode.depth()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captured: tile modes of the levels of a texture of 64 x 64, RGBA8, and where they are.
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
        // Slice z begins where the driver says.
        assert_eq!(layout.place(0, 0, 5), 4 * 192 * 24 + 64 * 8);
    }
}
