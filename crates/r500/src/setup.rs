//! A program in its slots, with its state registers. The program is decoded and checked once.

use reconverge_isa::Program;
use reconverge_isa::word::WordError;
use reconverge_simt::loaded::count_decoded;
use thiserror::Error;

use crate::flow::{LoopConstant, Step};
use crate::inst::{self, Body, CONSTANTS, Inst, LOOP_CONSTANTS, SLOTS, Source, TARGETS, WORDS};
use crate::violations::{Violation, violations};
use crate::words::*;

/// One loaded instruction slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The loaded words.
    pub words: [u32; WORDS],
    /// The decoded instruction, or the reason why the words have no meaning.
    pub inst: Result<Inst, WordError>,
    /// Rules of the documents that the instruction violates.
    pub violations: Vec<Violation>,
    /// For a flow instruction, the instruction together with the constants of the program that the instruction uses.
    pub step: Option<Step>,
}

/// A program in its slots, with its state registers, decoded and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The contents of each slot, up to the last loaded slot.
    slots: Vec<Option<Slot>>,
    /// Whether zero times any value is zero. (US_CONFIG.ZERO_TIMES_ANYTHING_EQUALS_ZERO)
    pub zero_wins: bool,
    /// The highest allocated temporary. (US_PIXSIZE)
    pub pix_size: u8,
    /// The flow-control mode. (US_FC_CTRL.FULL_FC_EN)
    pub fc_mode: FcMode,
    /// The boolean constants: bit n is constant n. (US_FC_BOOL_CONST)
    pub(crate) bools: u32,
    /// Whether the program contains the boolean constants.
    pub brings_bools: bool,
    /// The integer constants. (US_FC_INT_CONST)
    pub(crate) ints: [LoopConstant; LOOP_CONSTANTS],
    /// The number that is added to each address that is not global. (US_CODE_OFFSET)
    pub offset: u16,
    /// First slot to execute, as an absolute number.
    pub start: u16,
    /// Last slot to execute, as an absolute number.
    pub end: u16,
    /// First slot that the program may use, as an absolute number. (US_CODE_RANGE)
    pub range_start: u16,
    /// Last slot that the program may use, as an absolute number. (US_CODE_RANGE)
    pub range_end: u16,
    /// Formats of the render targets. (US_OUT_FMT)
    pub out_fmt: [OutFmtReg; TARGETS],
    /// Source of the value for the depth test. (FG_DEPTH_SRC)
    pub depth_src: DepthSrc,
    /// Temporaries that the rasteriser writes. `None` if the program does not contain the set-up of the rasteriser.
    /// (RS_INST)
    pub inputs: Option<Vec<u8>>,
    /// Float constants that the program contains. Each element has the number of the constant, and the bits of r, g, b,
    /// a.
    pub constants: Vec<(u8, [u32; 4])>,
}

/// The reason why a program cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SetupError {
    /// The program does not have an instruction.
    #[error("the program has no instruction")]
    Empty,
    /// The code ends inside an instruction.
    #[error("{words} words are not a whole number of instructions: the last one has {left} of {size} words")]
    Cut {
        /// Number of words in the code.
        words: usize,
        /// Number of words in the incomplete instruction.
        left: usize,
        /// Number of words per instruction.
        size: usize,
    },
    /// The program has more instructions than the unit has slots.
    #[error("{count} instructions from slot {base} do not fit into the {slots} instruction slots")]
    TooMany {
        /// Number of instructions.
        count: usize,
        /// Slot of the first instruction.
        base: u32,
        /// Number of slots in the unit.
        slots: usize,
    },
    /// The program has a state register that this machine does not have.
    #[error("unknown state register {0}")]
    UnknownRegister(String),
    /// The value of a state register has invalid bits or codes.
    #[error("{name} = {value:#010x}: {error}")]
    Register {
        /// The register.
        name: String,
        /// Value of the register.
        value: u32,
        /// The error in the value.
        error: WordError,
    },
    /// A constant is outside the constant file.
    #[error(
        "constant bytes {offset}..{end} of bank {bank} lie outside the {CONSTANTS} float constants (bank 0)"
    )]
    Constant {
        /// Bank of the constants.
        bank: u32,
        /// Offset of the first byte.
        offset: u32,
        /// Offset of the byte after the last byte of the constants.
        end: u64,
    },
}

/// Returns the first and the last slot of a program.
pub(crate) fn slots_of(program: &Program, size: usize, slots: usize) -> Result<(u16, u16), SetupError> {
    let (words, base) = (program.words.len(), program.base);
    let (count, left) = (words / size, words % size);
    if left != 0 {
        return Err(SetupError::Cut { words, left, size });
    }
    if count == 0 {
        return Err(SetupError::Empty);
    }
    if count as u64 + u64::from(base) > slots as u64 {
        return Err(SetupError::TooMany { count, base, slots });
    }
    Ok((base as u16, base as u16 + count as u16 - 1))
}

/// Returns the float constants of a program. An element has the number of the constant and the bits of four channels.
pub(crate) fn constants(program: &Program) -> Result<Vec<(u8, [u32; 4])>, SetupError> {
    let mut constants = Vec::new();
    for block in &program.constants {
        let end = u64::from(block.offset) + block.bytes.len() as u64;
        let aligned = block.offset.is_multiple_of(16) && end.is_multiple_of(16);
        if block.bank != 0 || end > CONSTANTS as u64 * 16 || !aligned {
            return Err(SetupError::Constant { bank: block.bank, offset: block.offset, end });
        }
        for (index, bytes) in block.bytes.as_chunks::<16>().0.iter().enumerate() {
            let (words, _) = bytes.as_chunks::<4>();
            let value = [0, 1, 2, 3].map(|channel| u32::from_le_bytes(words[channel]));
            constants.push(((block.offset / 16) as u8 + index as u8, value));
        }
    }
    Ok(constants)
}

impl Setup {
    /// Loads and decodes a program.
    ///
    /// If the program does not contain a state register, the register gets a permissive default. By default, the code
    /// runs from the first to the last slot, and 128 temporaries are allocated. Flow control is full, and a product
    /// with the factor zero follows IEEE rules. The function ignores registers of other blocks. Examples are the `RS_…`
    /// registers, which route the inputs.
    ///
    /// # Errors
    /// Returns a [`SetupError`] if the program cannot be set up. A field of an instruction with an undefined code is
    /// not an error here. The instruction traps when a group reaches the instruction.
    pub fn new(program: &Program) -> Result<Setup, SetupError> {
        count_decoded();
        let (first, last) = slots_of(program, WORDS, SLOTS)?;
        let mut slots = vec![None; usize::from(last) + 1];
        for (slot, words) in slots[usize::from(first)..].iter_mut().zip(program.words.as_chunks::<WORDS>().0)
        {
            let inst = inst::decode(words);
            let violations = inst.as_ref().map_or_else(|_| Vec::new(), |inst| violations(words, inst));
            *slot = Some(Slot { words: *words, inst, violations, step: None });
        }
        let unused = OutFmtReg {
            out_fmt: OutFmt::UNUSED,
            c0_sel: OutSel::A,
            c1_sel: OutSel::A,
            c2_sel: OutSel::A,
            c3_sel: OutSel::A,
            out_sign: 0,
            round_adj: RoundAdj::NORMAL,
        };
        let mut setup = Setup {
            slots,
            zero_wins: false,
            pix_size: 127,
            fc_mode: FcMode::FULL,
            bools: 0,
            brings_bools: false,
            ints: [LoopConstant::default(); LOOP_CONSTANTS],
            offset: 0,
            start: first,
            end: last,
            range_start: first,
            range_end: last,
            out_fmt: [unused; TARGETS],
            depth_src: DepthSrc::SCAN,
            inputs: inputs(program),
            constants: Vec::new(),
        };
        setup.load_state(program)?;
        setup.constants = constants(program)?;
        setup.prepare();
        Ok(setup)
    }

    /// Prepares the flow instructions for the current boolean and integer constants.
    pub(crate) fn prepare(&mut self) {
        let Setup { slots, bools, ints, offset, fc_mode, .. } = self;
        for slot in slots.iter_mut().flatten() {
            slot.step = match &slot.inst {
                Ok(Inst { common, body: Body::Fc(fc), .. }) => {
                    Some(Step::new(common, fc, (*bools, ints), *offset, *fc_mode))
                }
                _ => None,
            };
        }
    }

    fn load_state(&mut self, program: &Program) -> Result<(), SetupError> {
        let mut code_addr = None;
        for (name, value) in &program.state {
            // The function `inputs` reads the RS registers. RS registers set up the rasteriser and name the temporary
            // of each input.
            if name.starts_with("RS_") {
                continue;
            }
            let Some((register, n)) = state_register(name) else {
                return Err(SetupError::UnknownRegister(name.clone()));
            };
            let bad = |error| SetupError::Register { name: name.clone(), value: *value, error };
            match register.word.name {
                "US_CONFIG" => {
                    let config = Config::unpack(*value).map_err(bad)?;
                    self.zero_wins = config.zero_times_anything_equals_zero == ZeroMul::ZERO_WINS;
                }
                "US_PIXSIZE" => self.pix_size = PixSize::unpack(*value).map_err(bad)?.pix_size,
                "US_FC_BOOL_CONST" => (self.bools, self.brings_bools) = (*value, true),
                "US_FC_CTRL" => self.fc_mode = FcCtrl::unpack(*value).map_err(bad)?.full_fc_en,
                "US_FC_INT_CONST" => {
                    let FcIntConst { kr, kg, kb } = FcIntConst::unpack(*value).map_err(bad)?;
                    self.ints[n as usize] = LoopConstant { count: kr, start: kg, step: kb };
                }
                "US_CODE_ADDR" => code_addr = Some(CodeAddr::unpack(*value).map_err(bad)?),
                "US_CODE_RANGE" => {
                    let range = CodeRange::unpack(*value).map_err(bad)?;
                    self.range_start = range.code_addr;
                    self.range_end = range.code_addr + range.code_size;
                }
                "US_CODE_OFFSET" => self.offset = CodeOffset::unpack(*value).map_err(bad)?.offset_addr,
                "US_OUT_FMT" => self.out_fmt[n as usize] = OutFmtReg::unpack(*value).map_err(bad)?,
                "FG_DEPTH_SRC" => self.depth_src = DepthSrcReg::unpack(*value).map_err(bad)?.depth_src,
                // These registers do not affect the program, for three reasons. Textures define their own sizes. The
                // depth format applies only after the shader. The upload registers are no longer needed after the
                // program has been loaded into its slots.
                "US_FORMAT0" | "US_W_FMT" | "GA_US_VECTOR_INDEX" | "GA_US_VECTOR_DATA" => {}
                other => unreachable!("{other} is in words::STATE but is not loaded"),
            }
        }
        // START_ADDR and END_ADDR are relative to OFFSET_ADDR. The program may state OFFSET_ADDR after START_ADDR and
        // END_ADDR. So this code adds OFFSET_ADDR after the loop over all registers.
        if let Some(CodeAddr { start_addr, end_addr }) = code_addr {
            self.start = self.offset + start_addr;
            self.end = self.offset + end_addr;
        }
        Ok(())
    }

    /// Returns the float constants that the program may read, in ascending order.
    pub fn constants_read(&self) -> Vec<u8> {
        let mut read = [false; CONSTANTS];
        let instructions = self.slots().filter_map(|(_, slot)| slot.inst.as_ref().ok());
        for inst in instructions {
            let Body::Alu(alu) = &inst.body else { continue };
            for source in alu.rgb_sources.src.iter().chain(&alu.alpha_sources.src) {
                match source {
                    Source::Const { rel: true, .. } => read = [true; CONSTANTS],
                    Source::Const { addr, .. } => read[usize::from(*addr) % CONSTANTS] = true,
                    Source::Temp { .. } | Source::Inline { .. } => {}
                }
            }
        }
        (0..=u8::MAX).filter(|number| read[usize::from(*number)]).collect()
    }

    /// Returns the words of the loaded slots, in order.
    pub(crate) fn words(&self) -> Vec<u32> {
        self.slots().flat_map(|(_, slot)| slot.words).collect()
    }

    /// Returns the contents of the slot with this absolute number. If no words are loaded into the slot, the function
    /// returns `None`.
    pub fn slot(&self, slot: u16) -> Option<&Slot> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    /// Returns the loaded slots, in order.
    pub fn slots(&self) -> impl Iterator<Item = (u16, &Slot)> {
        self.slots.iter().enumerate().filter_map(|(n, slot)| Some((n as u16, slot.as_ref()?)))
    }
}

/// Returns the temporaries that the RS_INST_n registers name. If bit 4 of such a register is set, bits 11:5 name the
/// temporary of a texture coordinate. If bits 17:16 are not 0, bits 24:18 name the temporary of a colour. RS_INST_COUNT
/// is the number n of the last RS_INST_n register. (Mesa, r300_reg.h; valid for all programs of Mesa's corpus)
fn inputs(program: &Program) -> Option<Vec<u8>> {
    let value = |name: &str| program.state.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let last = value("RS_INST_COUNT")? & 0xf;
    let mut temps = Vec::new();
    for word in (0..=last).filter_map(|n| value(&format!("RS_INST_{n}"))) {
        temps.extend((word >> 4 & 1 != 0).then_some((word >> 5 & 0x7f) as u8));
        temps.extend((word >> 16 & 3 != 0).then_some((word >> 18 & 0x7f) as u8));
    }
    Some(temps)
}
