//! What looks at a chip from outside: programs on their way in, draws with all that they ran.
//!
//! A chip calls its [`Observer`] at three places: for the words of a program before they are decoded, after a draw with
//! the surfaces that it has stored into, and with every launch of its programs. Nothing here depends on the chip but [`Machine`], which has a variant for each
//! machine that launches can be of.

use std::fmt::Debug;

use reconverge_isa::program::Stage;
use reconverge_isa::{Isa, Program};
use reconverge_simt::Options;

/// The most lanes that a captured launch has; a draw with more is captured without it. One more than 1920 x 1080.
pub const MOST_LANES: usize = 1 << 21;

/// What looks at a chip.
pub trait Observer: Debug + Send {
    /// Takes a program before it is decoded, and may change its words.
    fn program(&mut self, _program: &mut ChipProgram) {}

    /// Whether draws are wanted: without, none is put together.
    fn captures(&self) -> bool {
        false
    }

    /// Takes a draw that has ended, or was ended by a trap.
    fn draw(&mut self, _draw: &Captured) {}

    /// Whether surfaces are wanted after each draw.
    fn looks(&self) -> bool {
        false
    }

    /// Looks at the surfaces that a draw stores into, in the memory of all buffers. Draws are numbered from 1 on.
    fn surfaces(&mut self, _draw: u64, _targets: &[Target], _memory: &[u8]) {}
}

/// A program as the chip reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChipProgram {
    /// The machine.
    pub isa: Isa,
    /// The chip, as the machine's table of chips spells it.
    pub chip: &'static str,
    /// The stage.
    pub stage: Stage,
    /// The words, from its first instruction on. They may go on beyond its end.
    pub words: Vec<u32>,
}

/// A draw with what it ran.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Its number, from 1 on: the draw that messages name.
    pub number: u64,
    /// How primitives are made of vertices.
    pub primitive: String,
    /// Indices, and how many instances of them.
    pub indices: usize,
    /// See [`Captured::indices`].
    pub instances: u32,
    /// What it stores into.
    pub targets: Vec<Target>,
    /// What ran, in the order of the pipeline.
    pub launches: Vec<Launched>,
    /// Why it did not end.
    pub trap: Option<String>,
}

/// A surface that a draw stores into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `color0` to `color7`, or `depth`.
    pub name: String,
    /// Its elements, in words.
    pub format: String,
    /// Its first byte, in the memory of all buffers.
    pub start: usize,
    /// Bytes of an element.
    pub bytes: usize,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// Rows.
    pub rows: usize,
}

impl Target {
    /// Its bytes, as far as they are in memory.
    pub fn content<'a>(&self, memory: &'a [u8]) -> &'a [u8] {
        let end = self.start.saturating_add(self.pitch * self.rows * self.bytes).min(memory.len());
        memory.get(self.start..end).unwrap_or(&[])
    }
}

/// A program that ran, on what, and what it gave.
#[derive(Clone, Debug)]
pub struct Launched {
    /// `vertex` or `fragment`.
    pub stage: &'static str,
    /// The program.
    pub program: Program,
    /// What it started from.
    pub machine: Machine,
    /// How it ran.
    pub options: Options,
    /// What its lanes are.
    pub lanes: Lanes,
    /// What it left, by the name that the machine's launches have for it.
    pub outputs: Vec<(String, Output)>,
    /// Whether its outputs are integers.
    pub integers: bool,
    /// Why it is not here whole: it has too many lanes.
    pub too_large: Option<String>,
}

/// A launch of a machine.
#[derive(Clone, Debug)]
pub enum Machine {
    /// R600 and R700.
    R700(Box<reconverge_r700::launch::Launch>),
}

/// What each lane of a launch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Its index, and its instance.
    Vertices(Vec<[u32; 2]>),
    /// x, y, and 1 where the primitive covers the pixel: the others only help with differences.
    Pixels(Vec<[i32; 3]>),
}

/// Values of all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Four words a lane.
    Vectors(Vec<[u32; 4]>),
    /// Yes or no.
    Flags(Vec<bool>),
}
