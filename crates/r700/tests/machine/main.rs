//! Tests the interpreter, one behaviour per test, with programs of a few words.
//!
//! Words marked "tool" were printed by LLVM or by the XF86 driver's macros; the others are built from the fields.

mod clauses;
mod control;
mod effects;
#[path = "../engines/mod.rs"]
mod engines;
mod wave;

use engines::run;
use reconverge_isa::Program;
use reconverge_r700::cause::Cause;
use reconverge_r700::chip::Chip;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::outcome::Outcome;
use reconverge_r700::words::{AluDword0, AluDword1Op2R700, IndexModeR700, Omod, Op2, PredSel};
use reconverge_simt::Options;
use reconverge_simt::{Engine, Mode, Trap};

/// Options of lenient mode.
const LENIENT: Options = Options {
    mode: Mode::Lenient,
    engine: Engine::Fast,
    level: None,
    watchdog: 1 << 28,
    jobs: None,
    always_ahead: false,
    race_check: true,
};

/// Inline source selectors.
const ZERO: u16 = 248;
const ONE: u16 = 249;
const INT_ONE: u16 = 250;
const LITERAL: u16 = 253;
const PV: u16 = 254;
const PS: u16 = 255;

/// `NOP` with END_OF_PROGRAM (tool).
const END: [u32; 2] = [0, 0x8020_0000];

/// An ALU instruction under construction: `MUL.to(1, 2).a(0, 3).last()`.
#[derive(Clone, Copy)]
struct Alu(AluDword0, AluDword1Op2R700);

fn alu(op: Op2) -> Alu {
    let low = AluDword0 {
        src0_sel: 0,
        src0_rel: false,
        src0_chan: 0,
        src0_neg: false,
        src1_sel: 0,
        src1_rel: false,
        src1_chan: 0,
        src1_neg: false,
        index_mode: IndexModeR700::AR_X,
        pred_sel: PredSel::OFF,
        last: false,
    };
    let high = AluDword1Op2R700 {
        src0_abs: false,
        src1_abs: false,
        update_execute_mask: false,
        update_pred: false,
        write_mask: false,
        omod: Omod::OFF,
        alu_inst: op as u16,
        bank_swizzle: 0,
        dst_gpr: 0,
        dst_rel: false,
        dst_chan: 0,
        clamp: false,
    };
    Alu(low, high)
}

impl Alu {
    /// Writes component `chan` of register `gpr`.
    fn to(mut self, gpr: u8, chan: u8) -> Alu {
        (self.1.dst_gpr, self.1.dst_chan, self.1.write_mask) = (gpr, chan, true);
        self
    }

    /// Uses slot `chan` without writing a register.
    fn slot(mut self, chan: u8) -> Alu {
        self.1.dst_chan = chan;
        self
    }

    fn a(mut self, sel: u16, chan: u8) -> Alu {
        (self.0.src0_sel, self.0.src0_chan) = (sel, chan);
        self
    }

    fn b(mut self, sel: u16, chan: u8) -> Alu {
        (self.0.src1_sel, self.0.src1_chan) = (sel, chan);
        self
    }

    fn with(mut self, change: impl FnOnce(&mut AluDword0, &mut AluDword1Op2R700)) -> Alu {
        change(&mut self.0, &mut self.1);
        self
    }

    fn last(mut self) -> Alu {
        self.0.last = true;
        self
    }

    fn words(self) -> [u32; 2] {
        [self.0.pack(), self.1.pack()]
    }
}

/// An ALU clause: its control-flow word without address and count, and its slots.
struct Clause {
    low: u32,
    high: u32,
    slots: Vec<[u32; 2]>,
}

/// Returns a clause with the `CF_INST` of the 4-bit group, and these slots.
fn clause(inst: u32, slots: &[[u32; 2]]) -> Clause {
    Clause { low: 0, high: inst << 26 | 1 << 31, slots: slots.to_vec() }
}

/// Assembles a whole program: control flow first, then the clauses that it names by number (`Err`); `Ok` contains raw
/// words.
fn assemble(cf: &[Result<[u32; 2], usize>], clauses: &[Clause]) -> Program {
    let mut starts = Vec::new();
    let mut at = cf.len() as u32;
    for clause in clauses {
        starts.push(at);
        at += clause.slots.len() as u32;
    }
    let mut words = Vec::new();
    for place in cf {
        words.extend(match place {
            Ok(pair) => *pair,
            Err(number) => {
                let clause = &clauses[*number];
                [clause.low | starts[*number], clause.high | (clause.slots.len() as u32 - 1) << 18]
            }
        });
    }
    words.extend(clauses.iter().flat_map(|clause| clause.slots.iter().flatten().copied()));
    Program::from_words(words)
}

/// EXPORT_DONE of R0.xyzw to pixel target 0, with END_OF_PROGRAM (as in a program from a tool, with another register).
const EXPORT_R0: [u32; 2] = [0xc000_0000, 0x9420_0688];

/// Returns a program of one ALU clause that exports R0 to pixel 0.
fn one_clause(slots: &[[u32; 2]]) -> Program {
    assemble(&[Err(0), Ok(EXPORT_R0)], &[clause(8, slots)])
}

/// Returns two lanes of a pixel program with R0 = 0, 1, 2, 3 and 10, 11, 12, 13 as integers.
fn launch() -> Launch {
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, 2);
    launch.environment_mut().num_gprs = 8;
    launch.inputs.push(Input { gpr: 0, values: vec![[0, 1, 2, 3], [10, 11, 12, 13]].into() });
    launch
}

fn floats(values: [f32; 4]) -> [u32; 4] {
    values.map(f32::to_bits)
}

fn strict(program: &Program, launch: &Launch) -> Result<Outcome, Trap<Cause>> {
    run(program, launch, &Options::default())
}

fn lenient(program: &Program, launch: &Launch) -> Outcome {
    run(program, launch, &LENIENT).expect("lenient mode has a reading")
}

/// Returns pixel 0 of every lane.
fn pixels(outcome: &Outcome) -> &[[u32; 4]] {
    let kind = reconverge_r700::code::ExportKind::Pixel;
    &outcome.export(kind, 0).expect("pixel 0").values
}
