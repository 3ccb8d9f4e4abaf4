//! Static checks of a program against the documents. The checks cover instruction words, flow control, values and
//! hazards.
//!
//! Every rule has a name and a source. `violations.rs` checks single instructions. `lint/nesting.rs` checks the nesting
//! of constructs on all paths. `lint/values.rs` checks values and hazards between instructions.

mod nesting;
mod values;

use reconverge_isa::graph::{Edge, EdgeKind, Graph};
use reconverge_isa::lint::{Finding, MALFORMED, Rule};
use reconverge_isa::sets::NumberSet;

use crate::graph::{Ways, graph, target, wants, ways, wishes};
use crate::inst::{Body, Fc, Inst};
use crate::setup::Setup;
use crate::uses;
use crate::violations::Violation;
use crate::words::*;

reconverge_isa::rules! {
    // Rules for single instructions
    RESERVED_BITS = "reserved-bits", Error, "Reserved bits are 0.", "REG", "clear the bits";
    FC_PREDICATE = "fc-predicate", Error, "An FC instruction has one predicate, so RGB_PRED_SEL is not RGBA.", "CTM guide p. 31", "select one bit: RRRR, GGGG, BBBB or AAAA";
    OMASK = "omask", Error, "Only ALU and OUT have RGB_OMASK and ALPHA_OMASK.", "CTM guide p. 31; REG", "clear the output masks";
    SOP_SOURCE = "sop-source", Error, "SOP needs EX2, LN2, RCP, RSQ, SIN or COS in the alpha unit.", "REG", "put the function into the alpha unit, or another operation into the RGB unit";
    DP_SOURCE = "dp-source", Error, "DP needs DP3, DP4 or D2A in the RGB unit.", "REG", "put the dot product into the RGB unit, or another operation into the alpha unit";
    OMOD_DISABLED = "omod-disabled", Error, "OMOD is disabled only for MIN, MAX, CND and CMP.", "CTM guide p. 29", "use OMOD MUL_1";
    CLAMP_IGNORED = "clamp-ignored", Note, "A clamp requires an output modifier: if OMOD is disabled, the unit does not clamp.", "CTM guide p. 29", "use OMOD MUL_1, or clear the clamp";
    RELATIVE_INLINE = "relative-inline", Error, "An inline constant is not relative.", "CTM guide p. 26", "clear REL";
    ALU_RESULT_ON_OUT = "alu-result-on-out", Error, "Only ALU has ALU_WMASK.", "CTM guide p. 35", "compare in an ALU instruction";
    DEPTH_ON_ALU = "depth-on-alu", Error, "Only OUT has W_OMASK.", "REG", "write the depth in an OUT instruction";
    FRAME = "frame", Error, "Temporaries are below the frame size, US_PIXSIZE + 1.", "REG, US_PIXSIZE", "raise US_PIXSIZE, or use lower temporaries";
    FULL_MODE = "full-mode", Error, "Loops, calls and returns need full flow control.", "REG, US_FC_CTRL", "set US_FC_CTRL.FULL_FC_EN";

    // Rules for the shape of the program
    OUTSIDE = "outside", Error, "Every path stays within the program's instructions and US_CODE_RANGE.", "CTM guide p. 23; REG, US_CODE_RANGE", "end the path with END_ADDR, or correct the jump";
    OUTSIDE_CONSTANT = "outside-constant", Note, "Every path stays within the program's instructions for all values of the boolean constants.", "CTM guide p. 23", "end the path with END_ADDR, or do not change the constants";
    END = "end", Error, "Some path reaches the instruction at END_ADDR.", "REG, US_CODE_ADDR", "set END_ADDR to the last instruction that runs";
    END_OUT = "end-out", Error, "The instruction at END_ADDR is OUT.", "CTM guide p. 23", "append an OUT with empty masks";
    END_WAIT = "end-wait", Warning, "The last OUT waits for the texture semaphore.", "CTM guide p. 23", "set TEX_SEM_WAIT";
    UNREACHABLE = "unreachable", Note, "Every instruction can be reached.", "-", "remove the instructions, or jump to them";

    // Rules for the nesting of constructs on all paths
    BRANCH_DEPTH = "branch-depth", Warning, "Branches nest up to 32 deep, or 4 deep in partial flow control.", "CTM guide p. 35; Mesa", "nest fewer ifs and conditional calls, or set US_FC_CTRL.FULL_FC_EN";
    LOOP_DEPTH = "loop-depth", Warning, "Loops nest up to 4 deep.", "CTM guide p. 35; Shader Model 3", "unroll a loop";
    CALL_DEPTH = "call-depth", Warning, "Calls nest up to 4 deep and do not recurse.", "CTM guide p. 35; Shader Model 3", "inline the subroutine";
    NO_IF = "no-if", Warning, "DECR closes only open levels.", "CTM guide p. 37", "lower B_POP_CNT, or remove the endif";
    NO_LOOP = "no-loop", Error, "ENDLOOP, ENDREP, BREAK and CONTINUE are inside a loop.", "CTM guide p. 35", "open the loop, or remove the instruction";
    LOOP_KIND = "loop-kind", Error, "LOOP goes with ENDLOOP and BREAKLOOP, and REP goes with ENDREP and BREAKREP.", "CTM guide p. 37", "use LOOP, ENDLOOP and BREAKLOOP together, or REP, ENDREP and BREAKREP";
    LOOP_LEVELS = "loop-levels", Error, "A loop closes the branches that it opens: before ENDLOOP and ENDREP, and by B_POP_CNT when BREAK or CONTINUE jumps.", "CTM guide p. 40", "close the open branches; B_POP_CNT is the number of ifs around the instruction";
    LOOP_CONSTANT = "loop-constant", Note, "The end of a LOOP names the same integer constant as its start.", "REG, US_FC_ADDR", "name the same constant";
    LOOP_SKIP = "loop-skip", Note, "LOOP and REP name the address after the end of the loop. If LOOP or REP names the end itself, a skipped loop pops an entry that the loop has not pushed.", "CTM guide p. 37; Mesa 22.3.6 violates this rule", "add 1 to JUMP_ADDR, and set JUMP_ANY";
    LOOP_SKIP_INSIDE = "loop-skip-inside", Warning, "If LOOP or REP names the end of its own loop, a lane is active at the instruction. Without an active lane, the group jumps to the end, and the end closes the enclosing loop.", "CTM guide p. 37; Mesa 22.3.6 violates this rule", "add 1 to JUMP_ADDR, and set JUMP_ANY";
    NO_CALL = "no-call", Error, "A return belongs to a call.", "CTM guide p. 35", "call the subroutine, and jump around it";
    RETURN_LEVELS = "return-levels", Error, "A return is outside the branches and loops of its subroutine, and removes the level that its calls add.", "CTM guide p. 36", "return at the end of the subroutine, and use INCR either in all calls of the subroutine or in none";
    JOIN = "join", Error, "All paths to an instruction have the same loops and branches open.", "CTM guide p. 35", "do not jump into or out of a construct";
    LEFT_OPEN = "left-open", Warning, "No branch, loop or call is open at the end of the program.", "CTM guide p. 35", "close the loop or branch, or return";

    // Rules for values
    UNWRITTEN = "unwritten", Warning, "On at least one path, values that decide the flow, that address memory or that leave the program come only from inputs and written registers.", "r500.md 10: the initial contents of registers are undefined", "write the temporary first";
    UNWRITTEN_PATH = "unwritten-path", Note, "On every path, values that decide the flow, that address memory or that leave the program come only from inputs and written registers.", "r500.md 10: the initial contents of registers are undefined", "write the temporary on the path without a write, if lanes can take that path";
    UNWRITTEN_PREDICATE = "unwritten-predicate", Warning, "On every path, a predicate bit is written before it is read.", "r500.md 10: the initial contents of registers are undefined", "write the predicate bit first";
    STALE_RESULT = "stale-result", Error, "Only the first FC instruction after a comparison reads the ALU result.", "CTM guide p. 35", "compare again, or use a predicate";
    AL_OUTSIDE = "al-outside", Error, "aL is read inside a LOOP.", "r500.md Q17", "open a LOOP, or clear REL";

    // Rules for hazards
    TEXTURE_WAIT = "texture-wait", Warning, "Results of a fetch are used only after a wait for a semaphore that this fetch, or a later one, acquired.", "CTM guide p. 33", "set TEX_SEM_ACQUIRE on the last fetch, and TEX_SEM_WAIT on the first instruction that uses its result";
    TEXTURE_OVERWRITE = "texture-overwrite", Warning, "Arithmetic writes the destination of a fetch only after a wait for that fetch. Otherwise, the fetch may overwrite the result.", "CTM guide p. 33; Mesa 22.3.6 waits only where the result is read", "set TEX_SEM_WAIT on the instruction that writes the register, or remove the channel from the fetch";
    SECOND_ACQUIRE = "second-acquire", Warning, "A fetch that acquires the semaphore waits if an earlier fetch may hold it.", "CTM guide p. 33", "set TEX_SEM_WAIT";
    NOP_PRESUBTRACT = "nop-presubtract", Warning, "An idle slot separates an instruction from a presubtract that reads its result.", "REG, US_CMN_INST.NOP; CTM guide p. 26", "set NOP on the instruction that writes";
    NOP_DERIVATIVE = "nop-derivative", Warning, "An idle slot separates an instruction from an MDH or MDV that reads its result.", "REG, US_CMN_INST.NOP", "set NOP on the instruction that writes";
    ALU_WAIT = "alu-wait", Note, "An FC instruction that reads the ALU result or a predicate waits for the arithmetic before it.", "Mesa sets ALU_WAIT on all such instructions", "set ALU_WAIT";
}

impl Violation {
    /// Returns the rule that the violation breaks.
    pub const fn rule(self) -> &'static Rule {
        match self {
            Violation::ReservedBits { .. } => &RESERVED_BITS,
            Violation::FcPredicatePerChannel => &FC_PREDICATE,
            Violation::OmaskOnTexOrFc => &OMASK,
            Violation::SopWithoutTranscendental => &SOP_SOURCE,
            Violation::DpWithoutDotProduct => &DP_SOURCE,
            Violation::OmodDisabledOnArithmetic => &OMOD_DISABLED,
            Violation::RelativeInline => &RELATIVE_INLINE,
            Violation::AluResultOnOut => &ALU_RESULT_ON_OUT,
            Violation::DepthOnAlu => &DEPTH_ON_ALU,
        }
    }
}

/// The findings so far. The list contains only one finding with a certain rule, instruction and message.
#[derive(Default)]
struct Found(Vec<Finding>);

impl Found {
    fn add(&mut self, rule: &'static Rule, pc: u16, message: impl Into<String>) {
        let finding = Finding { rule, pc: u32::from(pc), message: message.into() };
        if !self.0.contains(&finding) {
            self.0.push(finding);
        }
    }
}

/// Returns the findings for a program, ordered by slot.
pub fn lint(setup: &Setup) -> Vec<Finding> {
    let mut found = Found::default();
    let graph = graph(setup);
    for (pc, slot) in setup.slots() {
        for violation in &slot.violations {
            found.add(violation.rule(), pc, violation.to_string());
        }
        match &slot.inst {
            Ok(inst) => instruction(setup, pc, inst, &mut found),
            Err(error) if graph.node(u32::from(pc)).is_some() => {
                found.add(&MALFORMED, pc, format!("not an instruction: {error}"));
            }
            Err(_) => {}
        }
    }
    shape(setup, &graph, &mut found);
    nesting::check(setup, &mut found);
    values::check(setup, &graph, &mut found);
    let mut found = found.0;
    Finding::sort(&mut found);
    found
}

fn instruction(setup: &Setup, pc: u16, inst: &Inst, found: &mut Found) {
    for uses in uses::of_instruction(inst) {
        let reads = uses.reads.iter().map(|read| read.slot);
        let above = reads.chain(uses.writes.iter().copied()).find(|slot| {
            slot.file == uses::TEMP
                && slot.number.is_some_and(|number| number / 4 > u32::from(setup.pix_size))
        });
        if let Some(temp) = above.and_then(|slot| slot.number) {
            let highest = setup.pix_size;
            found.add(
                &FRAME,
                pc,
                format!("temp[{}] is above the highest temporary, temp[{highest}]", temp / 4),
            );
        }
    }
    match &inst.body {
        Body::Alu(alu) => {
            let halves = [
                ("RGB", inst.common.rgb_clamp, alu.rgb.omod),
                ("alpha", inst.common.alpha_clamp, alu.alpha.omod),
            ];
            for (name, ..) in halves.into_iter().filter(|(_, clamp, omod)| *clamp && *omod == Omod::DISABLED)
            {
                found.add(&CLAMP_IGNORED, pc, format!("the {name} unit clamps, but its OMOD is disabled"));
            }
        }
        Body::Fc(fc) if setup.fc_mode == FcMode::PARTIAL => {
            let needs = match (fc.inst.op, fc.inst.a_op) {
                (FcOp::JUMP, AOp::NONE) => None,
                (FcOp::JUMP, a_op) => Some(a_op.name()),
                (op, _) => Some(op.name()),
            };
            if let Some(what) = needs {
                found.add(&FULL_MODE, pc, format!("{what} in a program with partial flow control"));
            }
        }
        Body::Fc(_) | Body::Tex(_) => {}
    }
}

/// Returns the possible successors of an FC instruction. Boolean constants may change, so both successors are usually
/// possible. The exception is an instruction whose vote depends only on a boolean constant that the program sets. The
/// function then assumes the value that the program sets.
fn ways_of(setup: &Setup, inst: &Inst, fc: &Fc) -> Ways {
    let ways = ways(&inst.common, &fc.inst);
    let wishes = wishes(&inst.common, &fc.inst);
    let sure = !wishes.differ && wishes.jump && wishes.stay && !fc.inst.b_else;
    if !(sure && setup.brings_bools && fc.inst.op == FcOp::JUMP) {
        return ways;
    }
    let all = wants(&inst.common, &fc.inst, setup.bools >> fc.addr.bool_addr & 1 != 0);
    Ways { stays: ways.stays && !all, jumps: ways.jumps && all }
}

/// Returns the slots that the program can reach. The function assumes that boolean constants keep the values that the
/// program sets.
fn reached(setup: &Setup, graph: &Graph) -> NumberSet {
    let mut reached = NumberSet::new();
    let mut open = vec![u32::from(setup.start)];
    while let Some(pc) = open.pop() {
        let Some(node) = graph.node(pc).filter(|_| reached.insert(pc)) else { continue };
        let ways = match setup.slot(pc as u16).map(|slot| &slot.inst) {
            Some(Ok(inst)) => match &inst.body {
                Body::Fc(fc) => ways_of(setup, inst, fc),
                Body::Alu(_) | Body::Tex(_) => Ways { stays: true, jumps: false },
            },
            _ => continue,
        };
        let leads = |edge: &&Edge| if edge.kind == EdgeKind::Next { ways.stays } else { ways.jumps };
        open.extend(node.next.iter().filter(leads).map(|edge| edge.to));
    }
    reached
}

/// Checks where the program ends, which paths leave the program, and which instructions no path reaches.
fn shape(setup: &Setup, graph: &Graph, found: &mut Found) {
    let reached = reached(setup, graph);
    let window = setup.range_start..=setup.range_end;
    if setup.slot(setup.start).is_none() {
        found.add(&OUTSIDE, setup.start, "the program starts outside its instructions");
    }
    for node in &graph.nodes {
        let pc = node.pc as u16;
        let Some(Ok(inst)) = setup.slot(pc).map(|slot| &slot.inst) else { continue };
        if !window.contains(&pc) {
            let (start, end) = (setup.range_start, setup.range_end);
            found.add(&OUTSIDE, pc, format!("slot {pc} is outside slots {start} to {end} (US_CODE_RANGE)"));
        }
        if pc == setup.end {
            if inst.common.r#type != InstType::OUT {
                found.add(&END_OUT, pc, format!("the last instruction is {}", inst.common.r#type.name()));
            } else if !inst.common.tex_sem_wait {
                found.add(&END_WAIT, pc, "the last OUT does not wait for the texture semaphore");
            }
            continue;
        }
        let (stays, jumps) = match &inst.body {
            Body::Fc(fc) => {
                let ways = ways(&inst.common, &fc.inst);
                // After a return, the group continues after the call. Another rule reports a return without a call.
                (ways.stays, (ways.jumps && fc.inst.a_op != AOp::POP).then(|| target(setup, fc)))
            }
            Body::Alu(_) | Body::Tex(_) => (true, None),
        };
        let sure = match &inst.body {
            Body::Fc(fc) => ways_of(setup, inst, fc),
            Body::Alu(_) | Body::Tex(_) => Ways { stays: true, jumps: true },
        };
        let mut outside = |sure: bool, how: &str, to: u16| {
            let (rule, when) = match sure && reached.contains(node.pc) {
                true => (&OUTSIDE, ""),
                false => (&OUTSIDE_CONSTANT, ", with boolean constants other than those of the program"),
            };
            found.add(
                rule,
                pc,
                format!("the instruction {how} slot {to}, which does not contain an instruction{when}"),
            );
        };
        if stays && setup.slot(pc + 1).is_none() {
            outside(sure.stays, "continues at", pc + 1);
        }
        if let Some(to) = jumps.filter(|to| setup.slot(*to).is_none()) {
            outside(sure.jumps, "jumps to", to);
        }
    }
    if graph.node(u32::from(setup.end)).is_none() {
        found.add(&END, setup.start, format!("no path reaches slot {} (US_CODE_ADDR.END_ADDR)", setup.end));
    }
    let mut unreached =
        setup.slots().map(|(pc, _)| pc).filter(|pc| graph.node(u32::from(*pc)).is_none()).peekable();
    while let Some(first) = unreached.next() {
        let mut last = first;
        while let Some(next) = unreached.next_if_eq(&(last + 1)) {
            last = next;
        }
        let message = match last {
            last if last == first => "no path reaches this instruction".to_owned(),
            last => format!("no path reaches the instructions from here to slot {last}"),
        };
        found.add(&UNREACHABLE, first, message);
    }
}
