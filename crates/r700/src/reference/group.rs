//! Executes one ALU group. The interpreter reads all operands, computes the results slot by slot, and then writes all
//! results.
//!
//! Source: MAN chapter 4.

use reconverge_isa::FieldValue;
use reconverge_simt::{Lane, Mask, Observer};

use crate::cause::Cause;
use crate::chip::{Family, LANES};
use crate::code::{AluClause, AluOp, CodeFault, Group, Operand, Source, TRANS, Window};
use crate::lane::{self, Predicate};
use crate::lane64;
use crate::meaning::{Double, Meaning};
use crate::rules::Rule;
use crate::wave::{Lanes, Wave};
use crate::words::{IndexModeR700, KcacheMode};

impl Wave {
    // The methods that read operands of ALU instructions.

    /// Returns the number that INDEX_MODE adds to a relative operand, for each lane.
    fn index(&self, mode: IndexModeR700) -> Result<[i32; LANES], Cause> {
        if self.launch.environment.chip.family == Family::R600 && mode.is_global() {
            return Err(CodeFault::Unknown { field: "INDEX_MODE", number: mode.to_bits() }.into());
        }
        let Some(chan) = mode.address() else {
            return Ok([self.loop_offset(mode == IndexModeR700::LOOP)?; LANES]);
        };
        if !self.clause.address_defined[chan] && self.strict() {
            return Err(Cause::AddressRegister(b"xyzw"[chan].into()));
        }
        Ok(self.clause.address[chan])
    }

    /// Returns one operand for `lanes`, with modifiers applied.
    fn operand(
        &mut self,
        clause: &AluClause,
        op: &AluOp,
        source: &Source,
        lanes: Mask,
    ) -> Result<Lanes, Cause> {
        let mut values = match source.operand {
            Operand::Value(value) => [value; LANES],
            Operand::Gpr { gpr, chan } if source.rel => {
                let index = self.index(op.index_mode)?;
                let mut values = [0; LANES];
                for lane in lanes.lanes() {
                    let register = i32::from(gpr) + index[lane.index()];
                    values[lane.index()] = self.indexed(op.index_mode, register, chan.into(), lane)?;
                }
                values
            }
            Operand::Gpr { gpr, chan } => self.read_register(gpr.into(), chan.into(), lanes, false)?,
            Operand::Kcache { set, index, chan } => [self.constant(clause, set, index, chan)?; LANES],
            Operand::ConstantFile { index, chan } => {
                let offset = if source.rel { self.index(op.index_mode)? } else { [0; LANES] };
                let resources = self.launch.environment.bound(clause.alt_const);
                offset.map(|offset| {
                    // A constant with an index outside 0 to 255 is 0.
                    let entry = usize::try_from(i32::from(index) + offset).ok().filter(|entry| *entry < 256);
                    entry
                        .and_then(|entry| resources.constant_file.get(entry))
                        .map_or(0, |entry| entry[usize::from(chan)])
                })
            }
            Operand::Previous(chan) => self.previous(chan)?,
            Operand::PreviousScalar => self.previous(TRANS)?,
        };
        if source.abs {
            values = values.map(lane::abs);
        }
        if source.neg {
            values = values.map(lane::neg);
        }
        Ok(values)
    }

    /// Returns the value of an indexed operand. The operand is a register of the lane, or a global register
    /// ([`Rule::GLOBAL_REGISTERS_ARE_COLUMNS`]).
    fn indexed(&mut self, mode: IndexModeR700, register: i32, chan: usize, lane: Lane) -> Result<u32, Cause> {
        if mode.is_global() {
            return match self.global(register)? {
                Some(global) => Ok(self.simd.global[global][chan][lane.index()]),
                None => Ok(self.registers[chan].0[lane.index()]),
            };
        }
        let row = match self.row_for(register, chan, true) {
            Some(row) => row,
            None => self.outside(register, chan)?,
        };
        Ok(self.registers[row].0[lane.index()])
    }

    /// Returns the index of the global register with this number. If the register does not exist, returns `None` in
    /// lenient mode and a cause in strict mode.
    fn global(&mut self, register: i32) -> Result<Option<usize>, Cause> {
        self.fidelity.rules.insert(Rule::GLOBAL_REGISTERS_ARE_COLUMNS);
        let declared = self.simd.global.len();
        let found = usize::try_from(register).ok().filter(|register| *register < declared);
        if found.is_none() {
            self.fidelity.rules.insert(Rule::BAD_INDEX_READS_R0);
            if self.strict() {
                return Err(Cause::GlobalRegister { register, declared });
            }
        }
        Ok(found)
    }

    fn previous(&self, slot: u8) -> Result<Lanes, Cause> {
        let slot = usize::from(slot);
        if !self.clause.defined[slot] && self.strict() {
            return Err(Cause::Previous(["PV.x", "PV.y", "PV.z", "PV.w", "PS"][slot]));
        }
        Ok(self.registers[self.previous_row(slot)].0)
    }

    /// Returns constant `index` of a locked window (MAN 4, kcache).
    fn constant(&mut self, clause: &AluClause, set: u8, index: u8, chan: u8) -> Result<u32, Cause> {
        let Window { bank, line, mode } = clause.kcache[usize::from(set)];
        let (lines, offset) = match mode {
            KcacheMode::NOP => (0, 0),
            KcacheMode::LOCK_1 => (1, 0),
            KcacheMode::LOCK_2 => (2, 0),
            KcacheMode::LOCK_LOOP_INDEX => {
                self.fidelity.rules.insert(Rule::LOCK_LOOP_INDEX_COUNTS_LINES);
                (2, self.loop_offset(true)?)
            }
        };
        if index >= lines * 16 {
            if self.strict() {
                return Err(Cause::NotLocked { set, index, mode });
            }
            return Ok(0);
        }
        let resources = self.launch.environment.bound(clause.alt_const);
        let entry = (i32::from(line) + offset) * 16 + i32::from(index);
        let dword = usize::try_from(entry).map_or(usize::MAX, |entry| entry * 4 + usize::from(chan));
        Ok(resources.constant_buffers[usize::from(bank)].get(dword).copied().unwrap_or(0))
    }

    // The methods that execute groups.

    /// Executes one ALU group.
    pub(super) fn group<O: Observer>(
        &mut self,
        clause: &AluClause,
        group: Group<'_>,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let lanes = self.flow.alu_lanes(clause.whole_quad_mode);
        let mut operands = [[[0; LANES]; 3]; 5];
        let mut running = [Mask::NONE; 5];
        let mut write = Writes::default();
        // First, all instructions read their operands. An instruction after an indexed write is an exception (see
        // below).
        for (number, op) in group.ops.iter().enumerate() {
            if op.pred_sel.is_some() && !self.clause.predicate_written {
                self.fidelity.rules.insert(Rule::PREDICATE_STARTS_TRUE);
            }
            running[number] = match op.pred_sel {
                None => lanes,
                Some(true) => lanes & self.clause.predicate,
                Some(false) => lanes - self.clause.predicate,
            };
            for (place, source) in op.read().iter().enumerate() {
                operands[number][place] = self.operand(clause, op, source, running[number])?;
            }
            self.fidelity.count(op.opcode.name, op.opcode.exactness, op.opcode.rule);
            // An instruction with an indexed destination writes its result immediately. So instructions in later slots
            // read the new value (Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP).
            if op.dst_rel && !op.opcode.meaning.spans_slots() {
                self.fidelity.rules.insert(Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP);
                self.compute(group, number, op, &operands, running[number], &mut write);
                self.write_result(op, running[number], &write, observer)?;
            }
        }
        // After the indexed writes, the function computes all other results and then writes these results.
        let others = |op: &&AluOp| !op.dst_rel || op.opcode.meaning.spans_slots();
        for (number, op) in group.ops.iter().enumerate().filter(|(_, op)| others(op)) {
            self.compute(group, number, op, &operands, running[number], &mut write);
        }
        for (number, op) in group.ops.iter().enumerate().filter(|(_, op)| others(op)) {
            self.write_result(op, running[number], &write, observer)?;
        }
        self.retire(clause, group, &running, write);
        Ok(())
    }

    /// Writes the result of one instruction to the destination register.
    fn write_result<O: Observer>(
        &mut self,
        op: &AluOp,
        running: Mask,
        write: &Writes,
        observer: &mut O,
    ) -> Result<(), Cause> {
        if !op.writes() {
            return Ok(());
        }
        let values = &write.results[usize::from(op.slot)];
        if !op.dst_rel {
            return self.write_register(
                op.dst_gpr.into(),
                op.dst_chan.into(),
                running,
                values,
                false,
                observer,
            );
        }
        let index = self.index(op.index_mode)?;
        for lane in running.lanes() {
            let register = i32::from(op.dst_gpr) + index[lane.index()];
            let chan = usize::from(op.dst_chan);
            if op.index_mode.is_global() {
                if let Some(global) = self.global(register)? {
                    self.simd.global[global][chan][lane.index()] = values[lane.index()];
                }
                continue;
            }
            self.write_register(register, chan, Mask::only(lane), values, true, observer)?;
        }
        Ok(())
    }

    /// Computes the results of one instruction of a group. Stores these results in `write`.
    fn compute(
        &self,
        group: Group<'_>,
        number: usize,
        op: &AluOp,
        operands: &[[Lanes; 3]; 5],
        running: Mask,
        write: &mut Writes,
    ) {
        let [a, b, c] = &operands[number];
        let result = &mut write.results[usize::from(op.slot)];
        let finish = |value: u32| {
            let scaled = if op.omod == 1.0 { value } else { lane::scale(value, op.omod) };
            if op.clamp { lane::clamp(scaled, self.launch.environment.dx10_clamp) } else { scaled }
        };
        // Returns the operands of the four vector slots. Operations over all four slots need these operands.
        let across = |place: usize, lane: usize| {
            [0, 1, 2, 3].map(|slot| {
                let found = group.ops.iter().position(|other| other.slot == slot);
                found.map_or(0, |number| operands[number][place][lane])
            })
        };
        match op.opcode.meaning {
            Meaning::Nothing => {}
            Meaning::Float1(f) => each(running, |lane| result[lane] = finish(f(a[lane]))),
            Meaning::Float2(f) => each(running, |lane| result[lane] = finish(f(a[lane], b[lane]))),
            Meaning::Float3(f, factor) => each(running, |lane| {
                let value = f(a[lane], b[lane], c[lane]);
                result[lane] = finish(if factor == 1.0 { value } else { lane::scale(value, factor) });
            }),
            Meaning::Bits1(f) => each(running, |lane| result[lane] = f(a[lane])),
            Meaning::Bits2(f) => each(running, |lane| result[lane] = f(a[lane], b[lane])),
            Meaning::Bits3(f) => each(running, |lane| result[lane] = f(a[lane], b[lane], c[lane])),
            Meaning::PredSet(f) => {
                let mut execute = Mask::NONE;
                each(running, |lane| {
                    let predicate = f(a[lane], b[lane]);
                    if predicate.execute {
                        execute.insert(Lane(lane as u8));
                    }
                    result[lane] = predicate.value;
                });
                write.predicate = Some((number, execute));
            }
            Meaning::Kill(f) => each(running, |lane| {
                let kill = f(a[lane], b[lane]);
                if kill {
                    write.killed.insert(Lane(lane as u8));
                }
                result[lane] = if kill { lane::ONE } else { 0 };
            }),
            Meaning::Mova(f) | Meaning::MovaLoop(f) => {
                let chan = usize::from(op.dst_chan);
                each(running, |lane| {
                    let value = f(a[lane]);
                    write.address[chan][lane] = value;
                    result[lane] = value as u32;
                });
                write.address_written[chan] = running;
                write.mova[chan] = true;
                if let Meaning::MovaLoop(_) = op.opcode.meaning {
                    write.loop_index = running.lowest().map(|lane| result[lane.index()] as i32);
                }
            }
            Meaning::Reduce(f) => each(running, |lane| {
                result[lane] = finish(f(across(0, lane), across(1, lane)));
            }),
            Meaning::Cube => each(running, |lane| {
                let value = lane::cube(across(0, lane), across(1, lane))[usize::from(op.slot)];
                // OMOD and CLAMP do not apply to the face number.
                result[lane] = if op.slot == 3 { value } else { finish(value) };
            }),
            Meaning::Double(double) => {
                let mut execute = Mask::NONE;
                each(running, |lane| {
                    let sources = [0, 1, 2].map(|place| across(place, lane));
                    let (value, predicate) = self.double(double, op.slot.into(), sources);
                    result[lane] = value;
                    if predicate.is_some_and(|predicate| predicate.execute) {
                        execute.insert(Lane(lane as u8));
                    }
                });
                // The lower slot of a pair sets the predicate.
                if matches!(double, Double::PredSet(_)) && op.slot & 1 == 0 {
                    write.predicate = Some((number, execute));
                }
            }
        }
    }

    /// Returns the result of one slot of a double-precision operation. `sources[place][slot]` is operand `place` of a
    /// slot.
    ///
    /// The lower slot of a pair holds the high half of every source. In a four-slot operation, x, y and z hold the high
    /// half, and w holds the low half ([`Rule::DOUBLES_TAKE_THE_HIGH_HALF_FIRST`]).
    fn double(&self, double: Double, slot: usize, sources: [[u32; 4]; 3]) -> (u32, Option<Predicate>) {
        let join = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let pair = slot & !1;
        let of_pair = |place: usize| join(sources[place][pair], sources[place][pair + 1]);
        let of_four = |place: usize| join(sources[place][0], sources[place][3]);
        let half = |value: u64| if slot & 1 == 0 { value as u32 } else { (value >> 32) as u32 };
        let value = match double {
            Double::Add => half(lane64::add_64(of_pair(0), of_pair(1))),
            Double::Mul => half(lane64::mul_64(of_four(0), of_four(1))),
            Double::MulAdd(factor) => {
                let fused = self.launch.environment.fused_muladd_64;
                half(lane64::muladd_64(of_four(0), of_four(1), of_four(2), factor, fused))
            }
            Double::Frexp => {
                let (exponent, mantissa) = lane64::frexp_64(join(sources[0][0], sources[0][1]));
                match slot {
                    0 => 0,
                    1 => exponent as u32,
                    _ => half(mantissa),
                }
            }
            Double::Ldexp => {
                let (double, integer) =
                    if self.launch.environment.ldexp_64_integer_first { (1, 0) } else { (0, 1) };
                half(lane64::ldexp_64(of_pair(double), sources[integer][pair] as i32))
            }
            Double::Fract => half(lane64::fract_64(of_pair(0))),
            Double::ToFloat if slot & 1 == 0 => lane64::flt64_to_flt32(of_pair(0)),
            Double::ToFloat => 0,
            Double::FromFloat => half(lane64::flt32_to_flt64(sources[0][pair])),
            Double::PredSet(f) => {
                let predicate = lane::pred_set(f(of_pair(0), of_pair(1)));
                return (predicate.value, Some(predicate));
            }
        };
        (value, None)
    }

    /// Publishes the results of a group to the next group. These results are PV, PS, AR, the predicate and the masks.
    fn retire(&mut self, clause: &AluClause, group: Group<'_>, running: &[Mask; 5], write: Writes) {
        let first = self.previous_row(0);
        let state = &mut *self.clause;
        state.defined = [false; 5];
        for (number, op) in group.ops.iter().enumerate() {
            if matches!(op.opcode.meaning, Meaning::Nothing) {
                continue;
            }
            let slot = usize::from(op.slot);
            state.defined[slot] = true;
            let previous = &mut self.registers[first + slot].0;
            each(running[number], |lane| previous[lane] = write.results[slot][lane]);
        }
        for chan in 0..4 {
            state.address_defined[chan] |= write.mova[chan];
            each(write.address_written[chan], |lane| state.address[chan][lane] = write.address[chan][lane]);
        }
        if let Some(index) = write.loop_index {
            self.flow.set_loop_index(index);
        }
        self.flow.kill_lanes(write.killed);
        if let Some((number, execute)) = write.predicate {
            let op = &group.ops[number];
            self.fidelity.rules.insert(Rule::PRED_SET_WRITES_ZERO_FOR_TRUE);
            if op.update_pred {
                state.predicate = (state.predicate - running[number]) | execute;
                state.predicate_written = true;
            }
            if op.update_execute_mask {
                let skip = running[number] - execute;
                state.mask_updated = true;
                let parts = self.flow.update_execute_mask(clause.form, skip);
                self.statistics.divergent_branches += u64::from(parts);
            }
        }
    }
}

/// Results of a group, collected before the first result is written.
struct Writes {
    /// Results, indexed by slot.
    results: [Lanes; 5],
    /// New values of AR, indexed by component.
    address: [[i32; LANES]; 4],
    address_written: [Mask; 4],
    mova: [bool; 4],
    loop_index: Option<i32>,
    killed: Mask,
    /// The first element is the index of the group's PRED_SET* that sets the predicate, counted in the instructions of
    /// the group. The second element has the lanes that pass the test of this PRED_SET*.
    predicate: Option<(usize, Mask)>,
}

impl Default for Writes {
    fn default() -> Self {
        Writes {
            results: [[0; LANES]; 5],
            address: [[0; LANES]; 4],
            address_written: [Mask::NONE; 4],
            mova: [false; 4],
            loop_index: None,
            killed: Mask::NONE,
            predicate: None,
        }
    }
}

fn each(lanes: Mask, mut act: impl FnMut(usize)) {
    for lane in lanes.lanes() {
        act(lane.index());
    }
}
