//! Programs in memory: the lengths of programs, and the registers and resources that programs read.

use std::ops::Range;
use std::sync::Arc;

use reconverge_r700::code::{Cf, CfOp, Code, CodeOptions, Fetch, FetchOp, VertexFormat};
use reconverge_r700::launch::{Environment, Stage};
use reconverge_r700::run::Loaded;
use reconverge_r700::uses::{R, uses};
use reconverge_r700::words::{CfInst, KcacheMode, SelSrc2, VtxFetchType};
use reconverge_simt::Options;
use reconverge_simt::uses::Slot;
use reconverge_simt::vram::Vram;

use super::copied::{TexelRead, texel_read};

use crate::kept::Kept;

/// Returns the words from the start of a program to the end of the program's buffer. If the buffer ends with zeros, the
/// result contains only the zeros that may belong to the program.
pub(super) fn words(memory: Vram<'_>, place: &Range<usize>) -> Vec<u32> {
    let mut words = memory.words(place.clone());
    let used = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    // The last instruction may be a fetch, or may be in a clause with a literal. Therefore, up to four zeros may belong
    // to the program.
    words.truncate((used + 4).min(words.len()).next_multiple_of(2).min(words.len()));
    words
}

/// Cache of the words of programs from earlier draws, up to the end of each program.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached(Vec<(Range<usize>, Arc<[u32]>)>);

/// Maximum number of cached programs.
const MOST_REACHED: usize = 128;

impl Reached {
    /// Returns the words of a program, up to the end of the program. `place` is the range from the start of the program
    /// to the end of the program's buffer. Returns the cached words if the program's words in memory have not changed.
    pub(super) fn words(
        &mut self,
        memory: Vram<'_>,
        place: &Range<usize>,
        options: CodeOptions,
    ) -> Arc<[u32]> {
        let holds = |words: &[u32]| place.len() >= 4 * words.len() && memory.holds_words(place.start, words);
        if let Some((_, known)) = self.0.iter().find(|(of, words)| of == place && holds(words)) {
            return known.clone();
        }
        let mut words = words(memory, place);
        let code = Code::new(&words, 0, options);
        // If the decoder rejects a word, the end of the program is not known. In this case, the function keeps all
        // words.
        if code.faults().next().is_none() {
            words.truncate(2 * length(&code));
        }
        self.0.retain(|(of, _)| of != place);
        if self.0.len() >= MOST_REACHED {
            self.0.clear();
        }
        let words: Arc<[u32]> = words.into();
        self.0.push((place.clone(), words.clone()));
        words
    }
}

/// Returns the length of a program in slots of two words. The program ends after the last reachable instruction.
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

/// The register components whose initial values a program may read.
#[derive(Debug)]
pub(super) struct ComponentsRead {
    /// For each register, a mask of the register's components; bit n is component n.
    pub(super) registers: [u8; 128],
    /// The same registers and components as a list.
    pub(super) components: Arc<[(u8, u8)]>,
    /// Whether the program only computes, fetches vertices and textures, and exports.
    pub(super) is_plain: bool,
    /// The texel that the program exports. `None` if the program does more than export a texel.
    pub(super) texel: Option<TexelRead>,
}

impl ComponentsRead {
    /// Returns register components. A program or its fetch program may read the initial values of these components.
    pub(super) fn read(code: &Code, fetch_code: Option<&Code>) -> ComponentsRead {
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
        // A read of a register outside of the allocation reads R0.
        registers[0] = 0xf;
        let all: Vec<_> = [Some(code), fetch_code].into_iter().flatten().map(uses).collect();
        for read in all.iter().flat_map(|uses| uses.values().flatten()).flat_map(|uses| &uses.reads) {
            match read.slot {
                Slot { file: R, number: Some(number) } if number < 512 => {
                    registers[number as usize / 4] |= 1 << (number % 4);
                }
                Slot { file: R, number: None } => return ComponentsRead::new([0xf; 128], is_plain, None),
                _ => {}
            }
        }
        ComponentsRead::new(registers, is_plain, texel_read(code))
    }

    fn new(registers: [u8; 128], is_plain: bool, texel: Option<TexelRead>) -> ComponentsRead {
        let all = (0..128).flat_map(|register: u8| (0..4).map(move |chan: u8| (register, chan)));
        let read = |(register, chan): &(u8, u8)| registers[usize::from(*register)] >> chan & 1 != 0;
        ComponentsRead { registers, components: all.filter(read).collect(), is_plain, texel }
    }
}

/// Resources that a program and its fetch program may read.
#[derive(Debug)]
pub(super) struct ResourcesRead {
    /// For each constant buffer, the number of dwords up to the last dword that the program may read.
    pub(super) constants: [usize; 16],
    /// Vertex buffers. Each entry has the number of a buffer and the elements that the program reads. The index or the
    /// instance of a vertex usually selects an element. If a different number may select an element, the list of
    /// elements is `None`.
    pub(super) buffers: Vec<(u8, Option<Vec<Element>>)>,
    /// Numbers of textures, and numbers of samplers.
    pub(super) textures: Vec<u8>,
    pub(super) samplers: Vec<u8>,
}

/// An element of a vertex buffer. The index or the instance of a vertex selects the element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    by_instance: bool,
    /// Whether the number of the first instance is added (INSTANCE_DATA).
    based: bool,
    /// Whether the stride is 0 (CONST_BUF_NO_STRIDE).
    no_stride: bool,
    /// Number of bytes from the start of the vertex to the last byte that the program may read.
    size: usize,
}

/// The largest index and the largest instance of a draw's vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Largest {
    pub(super) index: u32,
    pub(super) instance: u32,
    /// Number of the first instance.
    pub(super) first_instance: u32,
}

impl Element {
    /// Maximum size of an element in bytes.
    const MOST: usize = 16;

    /// Returns the element that a fetch reads. Returns `None` in two cases: neither the index nor the instance in R0
    /// selects the element, or the program may have changed the selecting component of R0. `intact` states which
    /// components of R0 have their initial values.
    fn of(fetch: &Fetch, intact: [bool; 4]) -> Option<Element> {
        let FetchOp::Vertex(low, _, third) = &fetch.op else { return None };
        let (chan, by_instance) = match low.src_sel_x {
            SelSrc2::X => (0, false),
            SelSrc2::W => (3, true),
            SelSrc2::Y | SelSrc2::Z => return None,
        };
        (fetch.src_gpr == 0 && !fetch.src_rel && intact[chan]).then_some(Element {
            by_instance,
            based: low.fetch_type == VtxFetchType::INSTANCE_DATA,
            no_stride: third.const_buf_no_stride,
            size: usize::from(third.offset) + Element::MOST,
        })
    }

    /// Returns how many bytes, from the start of the buffer, the vertices may read. `numbers` has the largest index and
    /// the largest instance of the vertices.
    pub(super) fn end(&self, numbers: Largest, stride: usize) -> usize {
        let number = if self.by_instance { numbers.instance } else { numbers.index };
        let base = if self.based { numbers.first_instance } else { 0 };
        // The chip wraps a sum that is too large. The saturated sum is an upper bound of the wrapped sum.
        let number = number.saturating_add(base) as usize;
        let stride = if self.no_stride { 0 } else { stride };
        number.saturating_mul(stride).saturating_add(self.size)
    }
}

impl ResourcesRead {
    /// Returns the resources that a program and its fetch program may read.
    pub(super) fn read(code: &Code, fetch_code: Option<&Code>) -> ResourcesRead {
        let mut found = ResourcesRead {
            constants: [0; 16],
            buffers: Vec::new(),
            textures: Vec::new(),
            samplers: Vec::new(),
        };
        found.add(code, |_| [false; 4]);
        if let Some(fetch_code) = fetch_code {
            // At the start of the fetch program, R0 has its initial value under two conditions. The first instruction
            // of the program calls the fetch program. No later instruction calls the fetch program.
            let is_call = |cf: &Cf| matches!(cf.op, CfOp::Control(CfInst::CALL_FS, _));
            let called_first = code.instructions().next().is_some_and(|(at, cf)| at == 0 && is_call(cf));
            let called_once = code.instructions().filter(|(_, cf)| is_call(cf)).count() == 1;
            let plain = |cf: &Cf| match &cf.op {
                CfOp::Control(inst, _) => matches!(inst, CfInst::NOP | CfInst::RETURN),
                CfOp::Fetch(..) => true,
                CfOp::Alu(_) | CfOp::Export(..) | CfOp::Memory(..) => false,
            };
            let straight = fetch_code.instructions().all(|(_, cf)| plain(cf));
            let mut intact = [called_first && called_once && straight; 4];
            found.add(fetch_code, |fetch| {
                let before = intact;
                let named = match &fetch.op {
                    FetchOp::Vertex(_, VertexFormat { semantic: Some(_), .. }, _) => false,
                    _ => fetch.dst_gpr == 0,
                };
                if named || fetch.dst_rel {
                    intact = [false; 4];
                }
                before
            });
        }
        found
    }

    /// Adds the resources that a program may read. This function calls `intact` for each fetch, in order. `intact`
    /// returns which components of R0 still have their initial values.
    fn add(&mut self, code: &Code, mut intact: impl FnMut(&Fetch) -> [bool; 4]) {
        for (_, cf) in code.instructions() {
            match &cf.op {
                CfOp::Alu(clause) => {
                    for window in &clause.kcache {
                        let lines = match window.mode {
                            KcacheMode::NOP => continue,
                            KcacheMode::LOCK_1 => 1,
                            KcacheMode::LOCK_2 => 2,
                            // A loop index may move the window to any later line of the constant buffer.
                            KcacheMode::LOCK_LOOP_INDEX => usize::MAX,
                        };
                        let end = lines.saturating_add(window.line.into()).saturating_mul(LINE);
                        let dwords = &mut self.constants[usize::from(window.bank) % 16];
                        *dwords = end.max(*dwords);
                    }
                }
                CfOp::Fetch(_, _, fetches) => {
                    for fetch in fetches {
                        let intact = intact(fetch);
                        self.add_fetch(fetch, intact);
                    }
                }
                CfOp::Control(..) | CfOp::Export(..) | CfOp::Memory(..) => {}
            }
        }
    }

    fn add_fetch(&mut self, fetch: &Fetch, intact: [bool; 4]) {
        match &fetch.op {
            FetchOp::Vertex(word, ..) => {
                let element = Element::of(fetch, intact);
                let known = self.buffers.iter_mut().find(|(id, _)| *id == word.buffer_id);
                match (known, element) {
                    (Some((_, Some(elements))), Some(element)) => elements.push(element),
                    (Some((_, elements)), _) => *elements = None,
                    (None, element) => {
                        self.buffers.push((word.buffer_id, element.map(|element| vec![element])))
                    }
                }
            }
            FetchOp::Texture(word, _, last) => {
                if !self.textures.contains(&word.resource_id) {
                    self.textures.push(word.resource_id);
                }
                if !self.samplers.contains(&last.sampler_id) {
                    self.samplers.push(last.sampler_id);
                }
            }
            FetchOp::Memory(..) | FetchOp::DataShareWrite(_) | FetchOp::DataShareRead(..) => {}
        }
    }
}

/// Number of dwords in a line of a constant buffer.
const LINE: usize = 64;

/// The properties on which the decoding of a program depends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProgramKey {
    /// The words of the program, and the words of the fetch program. If both programs have the same address, both
    /// fields refer to one list.
    pub(super) words: Arc<[u32]>,
    pub(super) fetch: Option<Arc<[u32]>>,
    pub(super) stage: Stage,
    /// Value of SQ_PGM_RESOURCES.
    pub(super) resources: u32,
    pub(super) clause_temps: u8,
    pub(super) prefer_vector: bool,
    pub(super) options: Options,
}

/// A cached program of earlier draws.
#[derive(Clone, Debug)]
pub(super) struct KeptProgram {
    /// The decoded program, for an environment without resources.
    pub(super) decoded: Loaded,
    pub(super) reads: Arc<ComponentsRead>,
    pub(super) resources: Arc<ResourcesRead>,
    /// The lowered program for each environment. The environments do not contain the contents of buffers, because the
    /// contents do not affect lowering.
    pub(super) lowered: Kept<Arc<Environment>, Loaded>,
}

impl KeptProgram {
    /// Returns a new cache entry for a decoded program.
    pub(super) fn new(decoded: Loaded) -> KeptProgram {
        let (code, fetch) = decoded.codes();
        KeptProgram {
            reads: Arc::new(ComponentsRead::read(code, fetch)),
            resources: Arc::new(ResourcesRead::read(code, fetch)),
            lowered: Kept::default(),
            decoded,
        }
    }
}
