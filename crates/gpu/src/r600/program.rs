//! Programs in memory: their lengths, and their operands.

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

/// Returns the words of a program: the words of its buffer from the start of the program, without the zeros at the
/// end.
pub(super) fn words(memory: Vram<'_>, place: &Range<usize>) -> Vec<u32> {
    let mut words = memory.words(place.clone());
    let used = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    // The last instruction may end in zeros: a clause of a literal, a fetch.
    words.truncate((used + 4).min(words.len()).next_multiple_of(2).min(words.len()));
    words
}

/// Programs of earlier draws, each up to its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached(Vec<(Range<usize>, Arc<[u32]>)>);

/// Maximum number of programs that are kept.
const MOST_REACHED: usize = 128;

impl Reached {
    /// Returns the words of the program at an offset in memory, up to its end. They are those of earlier draws,
    /// unless memory has changed.
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
        // A program with words that cannot be decoded may be longer, so all of them are kept.
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

/// Returns the length of a program in instruction slots of two words, up to its last reachable slot.
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
    /// The list of these registers and components.
    pub(super) components: Arc<[(u8, u8)]>,
    /// Whether the program only computes, fetches vertices and textures, and exports.
    pub(super) is_plain: bool,
    /// The texel that the program exports, if that is all that it does.
    pub(super) texel: Option<TexelRead>,
}

impl ComponentsRead {
    /// Returns the components whose initial values a program, or its fetch program, may read.
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
        // A register outside of the allocation reads as R0.
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

/// Resources that a program and its fetch program read.
#[derive(Debug)]
pub(super) struct ResourcesRead {
    /// Dwords of each constant buffer, from the first on.
    pub(super) constants: [usize; 16],
    /// Vertex buffers. Elements are listed if all reads are selected by vertices and instances.
    pub(super) buffers: Vec<(u8, Option<Vec<Element>>)>,
    /// Textures and samplers.
    pub(super) textures: Vec<u8>,
    pub(super) samplers: Vec<u8>,
}

/// An element of a vertex buffer, selected by a vertex or instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    by_instance: bool,
    /// Whether the number of the first instance is added (INSTANCE_DATA).
    based: bool,
    /// CONST_BUF_NO_STRIDE
    no_stride: bool,
    /// Number of bytes from its start to the last one that may be read.
    size: usize,
}

/// The largest numbers of a draw's vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Largest {
    pub(super) index: u32,
    pub(super) instance: u32,
    /// The number of the first instance.
    pub(super) first_instance: u32,
}

impl Element {
    /// Maximum number of bytes of an element.
    const MOST: usize = 16;

    /// Returns the element of a fetch, and its buffer; `None` if another register selects it, or if the program may
    /// have changed the register.
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

    /// Returns the end offset in a buffer of the bytes that vertices with these numbers can read.
    pub(super) fn end(&self, numbers: Largest, stride: usize) -> usize {
        let number = if self.by_instance { numbers.instance } else { numbers.index };
        let base = if self.based { numbers.first_instance } else { 0 };
        // A sum that is too large wraps.
        let number = number.saturating_add(base) as usize;
        let stride = if self.no_stride { 0 } else { stride };
        number.saturating_mul(stride).saturating_add(self.size)
    }
}

impl ResourcesRead {
    /// Returns the resources that a program and its fetch program read.
    pub(super) fn read(code: &Code, fetch_code: Option<&Code>) -> ResourcesRead {
        let mut found = ResourcesRead {
            constants: [0; 16],
            buffers: Vec::new(),
            textures: Vec::new(),
            samplers: Vec::new(),
        };
        found.add(code, |_| [false; 4]);
        if let Some(fetch_code) = fetch_code {
            // R0 contains the numbers of the vertex at the start of the fetch program, if that is called first and
            // only once.
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

    /// Adds the resources that a program reads. `intact` returns for each fetch, in order, which components of R0
    /// still have their initial values.
    fn add(&mut self, code: &Code, mut intact: impl FnMut(&Fetch) -> [bool; 4]) {
        for (_, cf) in code.instructions() {
            match &cf.op {
                CfOp::Alu(clause) => {
                    for window in &clause.kcache {
                        let lines = match window.mode {
                            KcacheMode::NOP => continue,
                            KcacheMode::LOCK_1 => 1,
                            KcacheMode::LOCK_2 => 2,
                            // A loop may move the window.
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

/// Dwords of a line of constants.
const LINE: usize = 64;

/// The state on which decoding a program depends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProgramKey {
    /// The words, and those of the fetch program: the same list for the same address.
    pub(super) words: Arc<[u32]>,
    pub(super) fetch: Option<Arc<[u32]>>,
    pub(super) stage: Stage,
    /// SQ_PGM_RESOURCES
    pub(super) resources: u32,
    pub(super) clause_temps: u8,
    pub(super) prefer_vector: bool,
    pub(super) options: Options,
}

/// A program of earlier draws.
#[derive(Clone, Debug)]
pub(super) struct KeptProgram {
    /// The program, decoded for an environment without resources.
    pub(super) decoded: Loaded,
    pub(super) reads: Arc<ComponentsRead>,
    pub(super) resources: Arc<ResourcesRead>,
    /// The program lowered for resources, without their contents.
    pub(super) lowered: Kept<Arc<Environment>, Loaded>,
}

impl KeptProgram {
    /// Returns a kept program from its decoded form.
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
