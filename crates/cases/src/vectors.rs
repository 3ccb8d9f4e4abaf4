//! Arithmetic vectors. Each row has one instruction, the instruction's operands, and the expected result. (Description
//! of the vectors)
//!
//! For each row, the case runs a program that consists of the instruction and `exit`. Then the case reads the result
//! from the registers.

use std::sync::Arc;

use reconverge_isa::{Isa, Program};
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Engine, Lane, Options, Silent, Step};
use reconverge_tesla::decode::decode;
use reconverge_tesla::inst::{Base, Chip, Dst, Inst, Operand, Stage};
use reconverge_tesla::launch::{Compute, Fragment, Launch, Setup};
use reconverge_tesla::meaning::Modes;
use reconverge_tesla::run::Run;
use reconverge_workbench::trapped::instruction;
use reconverge_workbench::{Opened, Target};

use crate::opened::OpenedCase;
use crate::{Case, CaseKind, ReadError, Settings, Verdict};

/// The first bytes of every table of vectors.
pub const HEADER: &[u8] = b"op,chip,mode,w0,w1,";

/// `exit nop`, which follows the instruction under test.
const EXIT: [u32; 2] = [0xf000_0001, 0xe000_0781];

/// Address of the word that an atomic operation accesses.
const WORD: u32 = 0x1000;

/// The kind of a table. The kind determines the columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    /// Sources, flags and result of an arithmetic instruction.
    Arithmetic,
    /// The same columns as [`Table::Arithmetic`]. The first source is in $r1, and later sources are in the registers
    /// after $r1.
    Special,
    /// The same columns as [`Table::Arithmetic`]. Each source is in a pair of registers.
    Double,
    /// An atomic operation. The columns have the word in memory before and after the operation.
    Atomic,
    /// Four consecutive rows are the four lanes of one instruction.
    Quad,
}

impl Table {
    /// Returns the kind of a table. `header` is the first line of the table, and `family` is the file name up to the
    /// first dot.
    fn of(header: &str, family: &str) -> Table {
        let columns: Vec<&str> = header.split(',').collect();
        match () {
            () if columns.contains(&"mem_old") => Table::Atomic,
            () if columns.contains(&"lane") => Table::Quad,
            () if family.starts_with("sfu") => Table::Special,
            () if family.starts_with('d') || family.ends_with("64") => Table::Double,
            () => Table::Arithmetic,
        }
    }
}

/// The fields of a row.
#[derive(Clone, Debug)]
struct Row(Vec<String>);

impl Row {
    fn text(&self, column: usize) -> &str {
        self.0.get(column).map_or("", String::as_str)
    }

    /// Returns the number in a column, or `None` for `-`.
    fn number(&self, column: usize) -> Result<Option<u64>, String> {
        match self.text(column) {
            "-" => Ok(None),
            digits => u64::from_str_radix(digits, 16)
                .map(Some)
                .map_err(|_| format!("column {column}: expected a hexadecimal number, found `{digits}`")),
        }
    }

    fn given(&self, column: usize) -> Result<u64, String> {
        self.number(column)?.ok_or_else(|| format!("missing column {column}"))
    }

    /// Returns a chip to which the row applies.
    fn chip(&self) -> Result<Chip, String> {
        match self.text(1) {
            "G80+G84" | "G84+" => Ok(Chip::G84),
            "any" | "G200" | "G200+" => Ok(Chip::G200),
            "GT215" => Ok(Chip::Gt215),
            other => Err(format!("unknown chip `{other}`")),
        }
    }

    fn modes(&self) -> Modes {
        let has = |flag: &str| self.text(2).contains(flag);
        Modes {
            mul_zero_wins: has("mul_zero_wins=1"),
            sat_nan: has("sat_nan=1"),
            nonfp_deriv: has("nonfp_deriv=1"),
        }
    }
}

/// One row of a table.
#[derive(Clone, Debug)]
pub struct VectorCase {
    table: Table,
    /// The rows of the case. A case has one row, or the four rows of a quad.
    rows: Arc<[Row]>,
    /// Index of the row in `rows` to which the case belongs.
    lane: usize,
}

/// Returns the cases of a table, one per row.
///
/// # Errors
/// Fails if the text is not UTF-8, or if a quad does not have four rows.
pub fn read(path: &str, bytes: &[u8]) -> Result<Vec<Case>, ReadError> {
    let damaged = |why: &str| ReadError::Damaged { file: path.to_owned(), why: why.to_owned() };
    let text = std::str::from_utf8(bytes).map_err(|_| damaged("not UTF-8"))?;
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let family = file.split('.').next().unwrap_or(file);
    let mut lines = text.lines();
    let table = Table::of(lines.next().unwrap_or_default(), family);
    let rows: Vec<Row> = lines
        .filter(|line| !line.trim().is_empty())
        .map(|line| Row(line.split(',').map(str::to_owned).collect()))
        .collect();
    let each = if table == Table::Quad { 4 } else { 1 };
    if !rows.len().is_multiple_of(each) {
        return Err(damaged("a quad has fewer than four rows"));
    }
    let mut cases = Vec::with_capacity(rows.len());
    for (number, group) in rows.chunks(each).enumerate() {
        let rows: Arc<[Row]> = group.to_vec().into();
        for lane in 0..each {
            let name = format!("{family}:{} {}", each * number + lane + 2, rows[lane].text(0));
            let case = VectorCase { table, rows: rows.clone(), lane };
            cases.push(Case { file: path.to_owned(), name, kind: CaseKind::Vector(Box::new(case)) });
        }
    }
    Ok(cases)
}

/// The result and the flags of an instruction. For an atomic operation, the word in memory and the value that the
/// operation returns.
type Left = (Option<u64>, Option<u64>);

impl VectorCase {
    /// Executes the row on the engine that the settings state. A lockstep engine consists of two engines. For a
    /// lockstep engine, the function executes the row on both of these engines.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        let engines = match settings.options.engine {
            Engine::Lockstep => &[Engine::Reference, Engine::Fast][..],
            Engine::LockstepCompiled => &[Engine::Reference, Engine::Compiled],
            Engine::Reference => &[Engine::Reference],
            Engine::Fast => &[Engine::Fast],
            Engine::Compiled => &[Engine::Compiled],
        };
        let on = |engine: &Engine| Options {
            engine: *engine,
            level: settings.options.level,
            ..Options::default()
        };
        let verdicts = engines.iter().map(|engine| self.judge_with(&on(engine)));
        verdicts.into_iter().find(|verdict| *verdict != Verdict::PASSED).unwrap_or(Verdict::PASSED)
    }

    /// Returns a program that consists of the instruction and `exit`. The result does not have launches, because a
    /// launch cannot set the initial registers.
    ///
    /// # Errors
    /// Fails if the row has no words.
    pub(crate) fn open(&self) -> Result<OpenedCase, String> {
        let row = &self.rows[self.lane];
        let first = row.given(3)? as u32;
        let words = row.number(4)?.map_or(vec![first, first], |second| vec![first, second as u32]);
        let target = Target::new(Isa::Tesla, Some(row.chip()?.name())).map_err(|error| error.to_string())?;
        Ok(OpenedCase::of(target, Program::from_words([words, EXIT.to_vec()].concat()), Vec::new()))
    }

    fn judge_with(&self, options: &Options) -> Verdict {
        match self.compare(options) {
            Ok((found, wanted)) if found == wanted => Verdict::PASSED,
            Ok((found, wanted)) => {
                let show = |left: Left| format!("{} {}", hex(left.0), hex(left.1));
                Verdict::Failed(format!("{} instead of {}: {}", show(found), show(wanted), self.shown()))
            }
            Err(why) => Verdict::Failed(format!("{why}: {}", self.shown())),
        }
    }

    /// Returns the row as text. If the instruction can be decoded, the text includes the disassembled instruction.
    fn shown(&self) -> String {
        let row = self.rows[self.lane].0.join(",");
        let text = self.open().ok().and_then(|case| {
            let Opened { target, image, .. } = &case.opened;
            instruction(target, image.programs.first()?, 0)
        });
        text.map_or_else(|| row.clone(), |text| format!("{row}; instruction: {text}"))
    }

    fn compare(&self, options: &Options) -> Result<(Left, Left), String> {
        let row = &self.rows[self.lane];
        match self.table {
            Table::Arithmetic | Table::Special | Table::Double => {
                Ok((self.arithmetic(row, options)?, (row.number(9)?, row.number(10)?)))
            }
            Table::Atomic => Ok((atomic(row, options)?, (row.number(8)?, row.number(9)?))),
            Table::Quad => Ok((self.quad(options)?, (row.number(8)?, row.number(9)?))),
        }
    }

    fn arithmetic(&self, row: &Row, options: &Options) -> Result<Left, String> {
        let (mut run, inst) = machine(row, Stage::Compute, 1, options)?;
        let warp = &mut run.block_mut().warps[0];
        for place in 0..3 {
            let Some(value) = row.number(5 + usize::from(place))? else { continue };
            match self.table {
                Table::Special => warp.set_r(Lane(0), 1 + place, value as u32),
                Table::Double => warp.set_pair(Lane(0), 4 + 2 * place, value),
                Table::Arithmetic | Table::Atomic | Table::Quad => {
                    warp.set_r(Lane(0), 4 + place, value as u32)
                }
            }
        }
        if let Some(carry) = row.number(8)? {
            warp.set_c(Lane(0), 0, carry as u8);
        }
        step(&mut run)?;
        Ok(left(&run, &inst, Lane(0)))
    }

    fn quad(&self, options: &Options) -> Result<Left, String> {
        let first = &self.rows[0];
        let outside = first.text(2).contains("non_fp_stage");
        let (mut run, inst) =
            machine(first, if outside { Stage::Compute } else { Stage::Fragment }, 4, options)?;
        let warp = &mut run.block_mut().warps[0];
        for (lane, row) in self.rows.iter().enumerate() {
            warp.set_r(Lane(lane as u8), 4, row.given(6)? as u32);
            warp.set_r(Lane(lane as u8), 6, row.given(7)? as u32);
        }
        step(&mut run)?;
        Ok(left(&run, &inst, Lane(self.lane as u8)))
    }
}

fn hex(value: Option<u64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:x}"))
}

fn atomic(row: &Row, options: &Options) -> Result<Left, String> {
    let (mut run, inst) = machine(row, Stage::Compute, 1, options)?;
    let Operand::Mem(mem) = inst.src[0] else { return Err("not a memory operand".to_owned()) };
    let bytes = mem.access.bytes() as usize;
    // The test writes the initial value directly to memory. A store instruction would set the value with the
    // interpreter, but the interpreter is the code under test.
    let mut memory = run.memory().clone();
    let word = memory.bytes_mut(WORD, bytes).ok_or("an operand of more than eight bytes")?;
    word.copy_from_slice(&row.given(5)?.to_le_bytes()[..bytes]);
    run.set_memory(memory);
    let warp = &mut run.block_mut().warps[0];
    let mut set = |operand: Operand, value: Option<u64>| match (operand, value) {
        (Operand::R32(register), Some(value)) => warp.set_r(Lane(0), register, value as u32),
        (Operand::R64(register), Some(value)) => warp.set_pair(Lane(0), register, value),
        _ => {}
    };
    set(inst.src[1], row.number(6)?);
    set(inst.src[2], row.number(7)?);
    if let Base::R(register) = mem.base {
        set(Operand::R32(register), Some(WORD.into()));
    }
    step(&mut run)?;
    let word = run.memory().bytes(WORD, bytes).unwrap_or_default();
    let new = word.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Ok((Some(new), left(&run, &inst, Lane(0)).0))
}

/// Returns a machine whose next instruction is the instruction of the row. The instruction runs in `lanes` lanes.
fn machine(row: &Row, stage: Stage, lanes: u32, options: &Options) -> Result<(Run, Inst), String> {
    let chip = row.chip()?;
    let w0 = row.given(3)? as u32;
    let instruction = match row.number(4)? {
        Some(w1) => [w0, w1 as u32],
        // Two short instructions of 32 bits share one slot of 64 bits. The second instruction of this slot is a copy of
        // the first instruction. The second instruction does not run.
        None => [w0, w0],
    };
    let inst = decode(instruction, chip, stage).map_err(|error| error.to_string())?;
    let program = Program::from_words([instruction, EXIT].concat());
    let mut setup = Setup::new(chip);
    setup.modes = row.modes();
    let launch = match stage {
        Stage::Fragment => Launch::Fragment(Fragment::new(setup, lanes as usize)),
        Stage::Compute | Stage::Vertex | Stage::Geometry => {
            let mut compute = Compute::of(&program, chip).map_err(|error| error.to_string())?;
            compute.setup = setup.into();
            compute.block = [lanes, 1, 1];
            // The instructions access g0[]. Segment g14[] maps all of memory. The segment g0[] gets the same mapping.
            compute.segments.0[0] = compute.segments.0[14];
            compute.memory =
                Memory::new(vec![Buffer::new(WORD, vec![0; 8])]).map_err(|error| error.to_string())?;
            Launch::Compute(compute)
        }
    };
    let run = Run::new(&program, launch, options).map_err(|error| error.to_string())?;
    Ok((run, inst))
}

fn step(run: &mut Run) -> Result<(), String> {
    match run.step(&mut Silent) {
        Ok(Step::Running) => Ok(()),
        Ok(Step::Done) => Err("the program ended at its first instruction".to_owned()),
        Err(trap) => Err(run.locate(trap).to_string()),
    }
}

/// Returns the result and the flags of a lane.
fn left(run: &Run, inst: &Inst, lane: Lane) -> Left {
    let warp = run.block().current();
    let result = match inst.dst {
        Dst::R32(register) => Some(warp.r(lane, register).into()),
        Dst::R16(half) => Some(warp.half(lane, half.0).into()),
        Dst::R64(register) => Some(warp.pair(lane, register)),
        _ => None,
    };
    (result, inst.cdst.map(|register| warp.c(lane, register).into()))
}
