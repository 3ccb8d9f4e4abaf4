//! Programs in memory: how far they go, and what they read.

use std::ops::Range;
use std::sync::Arc;

use reconverge_r700::code::{Cf, CfOp, Code, CodeOptions, FetchOp};
use reconverge_r700::run::Loaded;
use reconverge_r700::uses::{R, uses};
use reconverge_simt::uses::Slot;
use reconverge_simt::vram::Vram;

/// The words of a program: all that its buffer holds from its start on, without the zeros at the end.
pub(super) fn words(memory: Vram<'_>, place: &Range<usize>) -> Vec<u32> {
    let mut words = memory.words(place.clone());
    let used = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    // The last instruction may end in zeros: a clause of a literal, a fetch.
    words.truncate((used + 4).min(words.len()).next_multiple_of(2).min(words.len()));
    words
}

/// Programs of draws before, each only as far as it goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached(Vec<(Range<usize>, Vec<u32>)>);

/// Programs that are kept, at most.
const MOST_REACHED: usize = 128;

impl Reached {
    /// Returns the words of the program at a place in memory, as far as it goes.
    pub(super) fn words(&mut self, memory: Vram<'_>, place: &Range<usize>, options: CodeOptions) -> Vec<u32> {
        let holds = |words: &[u32]| {
            let mut now = words.iter().zip((place.start..).step_by(4));
            place.len() >= 4 * words.len() && now.all(|(word, at)| memory.word(at) == Some(*word))
        };
        if let Some((_, known)) = self.0.iter().find(|(of, words)| of == place && holds(words)) {
            return known.clone();
        }
        let mut words = words(memory, place);
        let code = Code::new(&words, 0, options);
        // A program with words that cannot be decoded may go further: keep all of them.
        if code.faults().next().is_none() {
            words.truncate(2 * length(&code));
        }
        self.0.retain(|(of, _)| of != place);
        if self.0.len() >= MOST_REACHED {
            self.0.clear();
        }
        self.0.push((place.clone(), words.clone()));
        words
    }
}

/// Returns the number of instruction slots, of two words each, that a program reaches.
fn length(code: &Code) -> usize {
    let end = |(at, cf): (u32, &Cf)| {
        let clause = match &cf.op {
            CfOp::Alu(clause) => clause.slots.end,
            CfOp::Fetch(_, _, fetches) => fetches.last().map_or(0, |last| last.addr + 2),
            CfOp::Control(..) | CfOp::Export(..) | CfOp::Memory(..) => 0,
        };
        clause.max(at + 1) as usize
    };
    code.instructions().map(end).max().unwrap_or(0)
}

/// The components that a program may read before it writes them.
#[derive(Debug)]
pub(super) struct ComponentsRead {
    /// The mask of each register: bit n is component n.
    pub(super) registers: [u8; 128],
    /// The same as a list of registers and components.
    pub(super) components: Arc<[(u8, u8)]>,
    /// Whether the program only computes, fetches vertices and textures, and exports.
    pub(super) is_plain: bool,
}

impl ComponentsRead {
    /// Finds the components that a program may read as they are at its start.
    pub(super) fn read(code: &Code) -> ComponentsRead {
        let is_plain = code.instructions().all(|(_, cf)| match &cf.op {
            CfOp::Control(..) | CfOp::Alu(_) | CfOp::Export(..) => true,
            CfOp::Fetch(_, _, fetches) => {
                let plain = |op: &FetchOp| matches!(op, FetchOp::Vertex(..) | FetchOp::Texture(..));
                fetches.iter().all(|fetch| plain(&fetch.op))
            }
            CfOp::Memory(..) => false,
        });
        let is_plain = is_plain && code.faults().next().is_none();
        let mut registers = [0; 128];
        // A register outside of the allocation reads as R0.
        registers[0] = 0xf;
        for read in uses(code).values().flatten().flat_map(|uses| &uses.reads) {
            match read.slot {
                Slot { file: R, number: Some(number) } if number < 512 => {
                    registers[number as usize / 4] |= 1 << (number % 4);
                }
                Slot { file: R, number: None } => return ComponentsRead::new([0xf; 128], is_plain),
                _ => {}
            }
        }
        ComponentsRead::new(registers, is_plain)
    }

    fn new(registers: [u8; 128], is_plain: bool) -> ComponentsRead {
        let all = (0..128).flat_map(|register: u8| (0..4).map(move |chan: u8| (register, chan)));
        let read = |(register, chan): &(u8, u8)| registers[usize::from(*register)] >> chan & 1 != 0;
        ComponentsRead { registers, components: all.filter(read).collect(), is_plain }
    }
}

/// A program that draws before have loaded, and what it reads.
pub(super) type KeptProgram = (Loaded, Arc<ComponentsRead>);
