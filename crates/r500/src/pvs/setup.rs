//! A vertex program in its slots, with its state registers. The program is decoded and checked once.

use reconverge_isa::Program;
use reconverge_isa::word::{WordError, WordInfo};
use reconverge_simt::loaded::count_decoded;

use super::flow::{Control, Descriptor};
use super::inst::{CONSTANTS, DESCRIPTORS, Inst, SLOTS, WORDS, decode};
use super::violations::{Violation, violations};
use super::words::*;
pub use crate::setup::SetupError;
use crate::setup::{constants, slots_of};

/// One loaded instruction slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The loaded words.
    pub words: [u32; WORDS],
    /// The decoded instruction, or the reason why the words have no meaning.
    pub inst: Result<Inst, WordError>,
    /// Rules of the documents that the instruction violates.
    pub violations: Vec<Violation>,
}

/// A program in its slots, with its state registers, decoded and checked.
///
/// ```
/// use reconverge_isa::Program;
/// use reconverge_r500::pvs::setup::Setup;
/// // o0 = i0, at slot 3 of the code store.
/// let program = Program {
///     words: vec![0x00f0_0203, 0x00d1_0001, 0x0124_8001, 0x0124_8001],
///     base: 3,
///     state: vec![("VAP_PVS_CODE_CNTL_0".to_owned(), 3 << 20 | 3 << 10 | 3)],
///     ..Program::default()
/// };
/// let setup = Setup::new(&program).unwrap();
/// assert_eq!((setup.first, setup.control.last()), (3, 3));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The contents of each slot, up to the last loaded slot.
    slots: Vec<Option<Slot>>,
    /// First slot to execute. (PVS_FIRST_INST)
    pub first: u16,
    /// The position output is complete after the instruction in this slot. Execution ignores this hint.
    /// (PVS_XYZW_VALID_INST)
    pub position_valid: u16,
    /// The last slot that reads inputs. Execution ignores this hint. (PVS_LAST_VTX_SRC_INST)
    pub last_source: u16,
    /// Index of the program's constant 0 in the constant file. (PVS_CONST_BASE_OFFSET)
    pub constant_base: u8,
    /// The highest constant number of the program. (PVS_MAX_CONST_ADDR)
    pub constant_max: u8,
    /// The flow-control descriptors and the last slot to execute.
    pub control: Control,
    /// Constants that the program contains. Each element has the index of the constant in the constant file, and the
    /// bits of x, y, z, w.
    pub constants: Vec<(u8, [u32; 4])>,
}

impl Setup {
    /// Loads and decodes a program. The words of the program start at slot `base`. The program uses the register names
    /// of [`STATE`].
    ///
    /// If the program does not contain a state register, the register gets a permissive default. By default, the code
    /// runs from the first to the last slot, all constants can be read, and there is no flow control. The function
    /// ignores registers of other units (`VAP_…` registers that are not in [`STATE`]). If the program contains the LW
    /// or UW word of a descriptor, the addresses of the descriptor come from these words. Otherwise, the addresses come
    /// from the single word that R300 uses. (docs/r500-vertex.md, Q13)
    ///
    /// # Errors
    /// Returns a [`SetupError`] if the program cannot be set up. A field of an instruction with an undefined code is
    /// not an error here. The instruction traps when the program reaches the instruction.
    pub fn new(program: &Program) -> Result<Setup, SetupError> {
        count_decoded();
        let (first, last) = slots_of(program, WORDS, SLOTS)?;
        let mut slots = vec![None; usize::from(last) + 1];
        for (slot, words) in slots[usize::from(first)..].iter_mut().zip(program.words.as_chunks::<WORDS>().0)
        {
            let inst = decode(words);
            let violations = inst.as_ref().map_or_else(|_| Vec::new(), |inst| violations(words, inst));
            *slot = Some(Slot { words: *words, inst, violations });
        }
        let mut setup = Setup {
            slots,
            first,
            position_valid: last,
            last_source: last,
            constant_base: 0,
            constant_max: u8::MAX,
            control: Control::new([Descriptor::default(); DESCRIPTORS], last),
            constants: Vec::new(),
        };
        setup.load_state(program)?;
        setup.constants = constants(program)?;
        Ok(setup)
    }

    fn load_state(&mut self, program: &Program) -> Result<(), SetupError> {
        let mut descriptors = [Descriptor::default(); DESCRIPTORS];
        let mut last = self.control.last();
        let wide = |n: u32| {
            let brings = |word: WordInfo| program.state(&format!("{}_{n}", word.name)).is_some();
            brings(FlowCntlAddrsLw::INFO) || brings(FlowCntlAddrsUw::INFO)
        };
        for (name, value) in &program.state {
            let Some((register, n)) = state_register(name) else {
                if name.starts_with("VAP_") {
                    continue;
                }
                return Err(SetupError::UnknownRegister(name.clone()));
            };
            let bad = |error| SetupError::Register { name: name.clone(), value: *value, error };
            let descriptor = &mut descriptors[n as usize];
            match register.word.name {
                "VAP_PVS_CODE_CNTL_0" => {
                    let code = CodeCntl0::unpack(*value).map_err(bad)?;
                    (self.first, self.position_valid, last) =
                        (code.pvs_first_inst, code.pvs_xyzw_valid_inst, code.pvs_last_inst);
                }
                "VAP_PVS_CODE_CNTL_1" => {
                    self.last_source = CodeCntl1::unpack(*value).map_err(bad)?.pvs_last_vtx_src_inst;
                }
                "VAP_PVS_CONST_CNTL" => {
                    let constants = ConstCntl::unpack(*value).map_err(bad)?;
                    self.constant_base = constants.pvs_const_base_offset;
                    self.constant_max = constants.pvs_max_const_addr;
                }
                "VAP_PVS_FLOW_CNTL_OPC" => {
                    for (n, descriptor) in descriptors.iter_mut().enumerate() {
                        descriptor.op = FlowOp::ALL[(value >> (2 * n) & 3) as usize];
                    }
                }
                "VAP_PVS_FLOW_CNTL_ADDRS" if wide(n) => {}
                "VAP_PVS_FLOW_CNTL_ADDRS" => {
                    let addresses = FlowCntlAddrs::unpack(*value).map_err(bad)?;
                    descriptor.act = u16::from(addresses.pvs_fc_act_adrs);
                    descriptor.count_or_target = u16::from(addresses.pvs_fc_loop_cnt_jmp_inst);
                    descriptor.last = u16::from(addresses.pvs_fc_last_inst);
                    descriptor.back = u16::from(addresses.pvs_fc_rtn_inst);
                }
                "VAP_PVS_FLOW_CNTL_ADDRS_LW" => {
                    let low = FlowCntlAddrsLw::unpack(*value).map_err(bad)?;
                    descriptor.act = low.pvs_fc_act_adrs;
                    descriptor.count_or_target = low.pvs_fc_loop_cnt_jmp_inst;
                }
                "VAP_PVS_FLOW_CNTL_ADDRS_UW" => {
                    let high = FlowCntlAddrsUw::unpack(*value).map_err(bad)?;
                    descriptor.last = high.pvs_fc_last_inst;
                    descriptor.back = high.pvs_fc_rtn_inst;
                }
                "VAP_PVS_FLOW_CNTL_LOOP_INDEX" => {
                    let index = FlowCntlLoopIndex::unpack(*value).map_err(bad)?;
                    descriptor.init = index.pvs_fc_loop_init_val;
                    descriptor.step = index.pvs_fc_loop_step_val;
                    descriptor.repeat = index.pvs_fc_loop_repeat_no_fli;
                }
                other => unreachable!("{other} is in words::STATE but is not loaded"),
            }
        }
        self.control = Control::new(descriptors, last);
        Ok(())
    }

    /// Returns the constant-file index of the program's constant `number`. Returns `None` if the number is out of
    /// range. A constant that is out of range reads as zero. (REG, PVS_CONST_CNTL; docs/r500-vertex.md, 4.3 and Q11)
    #[inline(always)]
    pub(crate) fn constant(&self, number: i32) -> Option<usize> {
        let inside = (0..=i32::from(self.constant_max)).contains(&number);
        inside.then(|| (usize::from(self.constant_base) + number as usize) % CONSTANTS)
    }

    /// Writes the program's constants to a constant file, and then writes the constants `others` to the file. Entries
    /// that the program cannot read do not change.
    pub(crate) fn put_constants(&self, file: &mut [[u32; 4]; CONSTANTS], others: &[(u8, [u32; 4])]) {
        for place in (0..=i32::from(self.constant_max)).filter_map(|number| self.constant(number)) {
            file[place] = [0; 4];
        }
        for (number, value) in self.constants.iter().chain(others) {
            file[usize::from(*number)] = *value;
        }
    }

    /// Returns the words of the loaded slots, in order.
    pub(crate) fn words(&self) -> Vec<u32> {
        self.slots().flat_map(|(_, slot)| slot.words).collect()
    }

    /// Returns the contents of a slot, or `None` if no words are loaded into the slot.
    pub fn slot(&self, slot: u16) -> Option<&Slot> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    /// Returns the loaded slots, in order.
    pub fn slots(&self) -> impl Iterator<Item = (u16, &Slot)> {
        self.slots.iter().enumerate().filter_map(|(n, slot)| Some((n as u16, slot.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(state: &[(&str, u32)]) -> Result<Setup, SetupError> {
        let state = state.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Setup::new(&Program { words: vec![0; 4 * 20], state, ..Program::default() })
    }

    /// The state registers that Mesa 22.3.6's r300 driver wrote for a loop.
    #[test]
    fn registers_become_descriptors() {
        let state = [
            ("VAP_PVS_FLOW_CNTL_OPC", 2),
            ("VAP_PVS_FLOW_CNTL_ADDRS_LW_0", 0x00ff_0003),
            ("VAP_PVS_FLOW_CNTL_ADDRS_UW_0", 0x0004_000e),
            ("VAP_PVS_FLOW_CNTL_LOOP_INDEX_0", 0x100),
            ("VAP_PVS_CODE_CNTL_0", 0x0110_4000),
            ("VAP_PVS_CODE_CNTL_1", 0x10),
            ("VAP_PVS_CONST_CNTL", 0x0003_0000),
            ("VAP_VTE_CNTL", 0x43f),
        ];
        let setup = setup(&state).unwrap();
        let expected = Descriptor {
            op: FlowOp::LOOP,
            act: 3,
            count_or_target: 255,
            last: 14,
            back: 4,
            init: 0,
            step: 1,
            repeat: false,
        };
        assert_eq!(setup.control.descriptors()[0], expected);
        assert_eq!((setup.first, setup.position_valid, setup.control.last()), (0, 16, 17));
        assert_eq!((setup.last_source, setup.constant_max), (16, 3));
        assert_eq!((setup.constant(3), setup.constant(4), setup.constant(-1)), (Some(3), None, None));
    }

    /// docs/r500-vertex.md, Q13.
    #[test]
    fn the_narrow_addresses_serve_where_no_wide_ones_are() {
        let narrow = ("VAP_PVS_FLOW_CNTL_ADDRS_1", 0x0403_0201);
        let known = setup(&[("VAP_PVS_FLOW_CNTL_OPC", 3 << 2), narrow]).unwrap();
        let expected = Descriptor {
            op: FlowOp::JSR,
            act: 1,
            count_or_target: 2,
            last: 3,
            back: 4,
            ..Descriptor::default()
        };
        assert_eq!(known.control.descriptors()[1], expected);
        let known = setup(&[("VAP_PVS_FLOW_CNTL_ADDRS_LW_1", 7), narrow]).unwrap();
        assert_eq!(known.control.descriptors()[1].act, 7);
    }

    #[test]
    fn what_cannot_be_set_up_is_named() {
        assert_eq!(setup(&[("US_CONFIG", 0)]).unwrap_err().to_string(), "unknown state register US_CONFIG");
        let error = setup(&[("VAP_PVS_CONST_CNTL", 1 << 8)]).unwrap_err().to_string();
        assert!(error.contains("reserved bits 0x00000100"), "{error}");
        assert_eq!(Setup::new(&Program::default()).unwrap_err(), SetupError::Empty);
        let cut = Program::from_words(vec![0; 5]);
        assert_eq!(Setup::new(&cut).unwrap_err(), SetupError::Cut { words: 5, left: 1, size: WORDS });
        let many = Program { base: 1020, ..Program::from_words(vec![0; 20]) };
        assert_eq!(
            Setup::new(&many).unwrap_err(),
            SetupError::TooMany { count: 5, base: 1020, slots: SLOTS }
        );
    }
}
