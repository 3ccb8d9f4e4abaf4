//! Tests generated structured programs, lowered to R700 in the idioms that compilers emit and in some that only the
//! manual describes. The results must equal a direct evaluation of their tree. At the end the stack must be empty and
//! every lane active.

mod engines;

use std::sync::Arc;

use reconverge_isa::lint::Severity;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::Code;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{FetchProgram, Input, Launch, Stage};
use reconverge_r700::lint::lint;
use reconverge_r700::text::assemble;
use reconverge_r700::wave::Wave;
use reconverge_simt::Options;
use reconverge_simt::{Lane as LaneNumber, Machine, Mask, Silent, Step};
use reconverge_testkit::{
    Campaign, Compare, Condition, Lane, LoweredProgram, MIX_MODULUS, MIX_MULTIPLIER, MOST_ROUNDS, Program,
    Random, STEP_MODULUS, Shape, Statement, generate,
};

const CHANS: [&str; 4] = ["x", "y", "z", "w"];

/// First register of loop counters, and number of counters.
const COUNTERS: usize = 2;
const MOST_COUNTERS: usize = 4 * 120;

/// A line of the control-flow program.
enum Item {
    Label(String),
    Alu {
        form: &'static str,
        groups: Vec<String>,
        /// Whether more groups may follow, and the form of the clause may still change. Such a clause sets no execute
        /// mask and no predicate that later groups must respect.
        open: bool,
    },
    Pop(u32),
    Other(String),
}

/// Data for the end of an `if`: number of entries to pop, and labels of jumps that lead there.
struct Ending {
    pops: u32,
    labels: Vec<String>,
}

/// Writes a tree as R700 source. R0 holds the trace in x and variables 1 to 3 in y, z, w. R1 holds temporary values.
struct Lowering<'a> {
    items: Vec<Item>,
    /// Selects between equivalent idioms.
    choice: &'a mut Random,
    labels: usize,
    counters: usize,
    /// The function that is the fetch program, called with CALL_FS.
    fetch: Option<usize>,
    /// For each enclosing loop, innermost last: the label of its LOOP_END, and the number of open pushes inside it.
    loops: Vec<(String, u32)>,
}

/// Texts of a program.
struct Lowered {
    main: String,
    fetch: Option<String>,
}

impl Lowering<'_> {
    /// Returns `None` if the program has more loops than counters exist.
    fn program(program: &Program, seed: u64) -> Option<Lowered> {
        let mut choice = Random::new(!seed);
        // A fetch program has no calls, and the last function has no function to call.
        let last = program.functions.len().checked_sub(1);
        let fetch = last.filter(|_| choice.once_in(2));
        let mut lowering = Lowering {
            items: Vec::new(),
            choice: &mut choice,
            labels: 0,
            counters: 0,
            fetch,
            loops: Vec::new(),
        };
        lowering.block(&program.body);
        lowering.other("NOP: END_OF_PROGRAM".to_owned());
        for (index, function) in program.functions.iter().enumerate() {
            if Some(index) != fetch {
                lowering.function(Some(index), function);
            }
        }
        // Lanes that fail a RETURN continue after it. Therefore lint requires an end after the last one.
        lowering.other("NOP: END_OF_PROGRAM".to_owned());
        let main = text(&std::mem::take(&mut lowering.items));
        let fetch = fetch.map(|index| {
            lowering.function(None, &program.functions[index]);
            lowering.other("NOP: END_OF_PROGRAM".to_owned());
            text(&lowering.items)
        });
        (lowering.counters <= MOST_COUNTERS).then_some(Lowered { main, fetch })
    }

    fn function(&mut self, label: Option<usize>, block: &[Statement]) {
        self.items.extend(label.map(|index| Item::Label(format!("f{index}"))));
        self.block(block);
        self.other("RETURN:".to_owned());
    }

    fn label(&mut self, name: &str) -> String {
        self.labels += 1;
        format!("{name}{}", self.labels)
    }

    fn other(&mut self, text: String) {
        self.items.push(Item::Other(text));
    }

    fn place(&mut self, labels: Vec<String>) {
        self.items.extend(labels.into_iter().map(Item::Label));
    }

    /// Adds groups that compute, to the previous clause if possible.
    fn alu(&mut self, groups: &[String]) {
        let joins = !self.choice.once_in(4);
        match self.items.last_mut() {
            Some(Item::Alu { open: true, groups: before, .. }) if joins && has_room(before) => {
                before.extend_from_slice(groups);
            }
            _ => self.items.push(Item::Alu { form: "ALU", groups: groups.to_vec(), open: true }),
        }
    }

    /// Adds a clause of this form that ends with PRED_SET and UPDATE_EXEC_MASK. Lanes for which the condition holds
    /// continue.
    fn predicate(&mut self, form: &'static str, condition: &Condition) {
        let groups = self.pred_set(condition, "UPDATE_EXEC_MASK");
        self.execute_mask(form, groups);
    }

    fn execute_mask(&mut self, form: &'static str, groups: Vec<String>) {
        let joins = self.choice.once_in(2);
        match self.items.last_mut() {
            // The computation of the previous clause can also be in this one.
            Some(Item::Alu { form: before, groups: all, open }) if *open && joins && has_room(all) => {
                all.extend(groups);
                (*before, *open) = (form, false);
            }
            _ => self.items.push(Item::Alu { form, groups, open: false }),
        }
    }

    /// Returns groups whose last one sets the predicate if the condition holds.
    fn pred_set(&mut self, condition: &Condition, update: &str) -> Vec<String> {
        let also = match self.choice.below(3) {
            0 if update == "UPDATE_EXEC_MASK" => " UPDATE_PRED",
            _ => "",
        };
        let chan = CHANS[self.choice.below(4) as usize];
        if self.choice.once_in(3) {
            // Two steps, of which the second may invert the first.
            let (first, second) = match self.choice.below(2) {
                0 => (*condition, "PRED_SETNE_INT"),
                _ => (condition.negated(), "PRED_SETE_INT"),
            };
            let (op, a, b) = comparison("SET", &first);
            return vec![
                format!("y: {op}_INT R1.y, {a}, {b}"),
                format!("{chan}: {second} _.{chan}, R1.y, 0 {update}{also}"),
            ];
        }
        let (op, a, b) = comparison("PRED_SET", condition);
        let ordered = matches!(condition.compare, Compare::Less | Compare::GreaterEqual);
        // No variable is negative.
        let kind = if ordered && self.choice.once_in(3) { "UINT" } else { "INT" };
        vec![format!("{chan}: {op}_{kind} _.{chan}, {a}, {b} {update}{also}")]
    }

    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
            if self.choice.once_in(24) {
                self.other("NOP:".to_owned());
            }
        }
    }

    /// Adds a block before code that pops `level` entries, followed by the label `past`. If it `merges`, the last
    /// statement is an `if` that leaves its own pop to that code.
    fn block_before_pop(
        &mut self,
        statements: &[Statement],
        merges: bool,
        past: Option<&str>,
        level: u32,
    ) -> Ending {
        match statements.split_last() {
            Some((Statement::If(condition, then, otherwise), before)) if merges => {
                self.block(before);
                self.if_open(condition, then, otherwise.as_deref(), past, level + 1)
            }
            _ => {
                self.block(statements);
                Ending { pops: level, labels: Vec::new() }
            }
        }
    }

    /// Returns whether a construct that ends with this block also pops its last `if`, so that several pops become one.
    /// Lanes that skip that `if` then cannot jump to the pop, which removes too many entries. They need a label after
    /// it.
    fn merges(&mut self, statements: &[Statement], past: Option<&str>, level: u32) -> bool {
        let ends_with_if = matches!(statements.last(), Some(Statement::If(..)));
        // POP_COUNT has three bits.
        past.is_some() && ends_with_if && level < 7 && self.choice.once_in(2)
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Mix(_) | Statement::Step(_) => {
                let mut groups = self.work(statement);
                self.detour(&mut groups);
                self.alu(&groups);
            }
            Statement::If(condition, then, otherwise) => self.if_(condition, then, otherwise.as_deref()),
            Statement::IfStatic(index, body) => self.if_static(*index, body),
            Statement::Loop(count, body) => self.loop_(*count, body),
            Statement::Break(None) => self.leave("LOOP_BREAK", ""),
            Statement::Continue(None) => self.leave("LOOP_CONTINUE", ""),
            Statement::Call(index, None) => self.call(*index, ""),
            Statement::Break(Some(condition)) if self.choice.once_in(2) => {
                self.predicate("ALU_BREAK", &condition.negated());
            }
            Statement::Continue(Some(condition)) if self.choice.once_in(2) => {
                self.predicate("ALU_CONTINUE", &condition.negated());
            }
            Statement::Break(Some(condition)) => self.if_(condition, &[Statement::Break(None)], None),
            Statement::Continue(Some(condition)) => self.if_(condition, &[Statement::Continue(None)], None),
            Statement::Call(index, Some(condition)) => {
                self.if_(condition, &[Statement::Call(*index, None)], None);
            }
            Statement::Return(_) | Statement::Exit(_) => {
                unreachable!("RETURN takes all lanes or none, and no lane ends alone: not asked for")
            }
        }
    }

    /// Returns the groups of a statement that computes.
    fn work(&mut self, statement: &Statement) -> Vec<String> {
        match statement {
            Statement::Mix(k) => {
                let multiplied = match self.choice.below(2) {
                    0 => vec![format!("t: MULLO_INT R1.x, R0.x, ({MIX_MULTIPLIER}).x")],
                    _ => vec![
                        "x: ADD_INT R1.x, R0.x, R0.x".to_owned(),
                        "x: ADD_INT R1.x, R1.x, R1.x".to_owned(),
                        "x: ADD_INT R1.x, R1.x, R0.x".to_owned(),
                    ],
                };
                let sum = format!("z: ADD_INT R1.z, R1.x, ({k}).y");
                let modulus = format!("x: AND_INT R0.x, R1.z, ({}).z", MIX_MODULUS - 1);
                multiplied.into_iter().chain([sum, modulus]).collect()
            }
            Statement::Step(variable) => {
                let chan = CHANS[*variable];
                vec![
                    format!("{chan}: ADD_INT R1.{chan}, R0.{chan}, 1"),
                    format!("{chan}: AND_INT R0.{chan}, R1.{chan}, ({}).x", STEP_MODULUS - 1),
                ]
            }
            other => unreachable!("{other:?} computes nothing"),
        }
    }

    /// In some cases, adds a group before the work, or an index in it, that the fast engine leaves to the reference
    /// interpreter, so that the clause is split into several runs. In other cases, adds a KILL that removes no lane. None
    /// of these changes a result.
    fn detour(&mut self, groups: &mut Vec<String>) {
        match self.choice.below(12) {
            0 => {
                let slot =
                    |(slot, [a, b]): (&str, [&str; 2])| format!("{slot}: CUBE R1.{slot}, R1.{a}, R1.{b}");
                let sources = [["z", "y"], ["z", "x"], ["x", "z"], ["y", "z"]];
                groups.insert(0, CHANS.into_iter().zip(sources).map(slot).collect::<Vec<_>>().join("\n    "));
            }
            1 => {
                groups[0] = groups[0].replace("R0.", "R[0+AR.x].");
                groups.insert(0, "x: MOVA_INT _.x, 0".to_owned());
            }
            2 => groups.insert(0, "x: KILLGT_INT _.x, 0, (5).x".to_owned()),
            _ => {}
        }
    }

    fn computes(block: &[Statement]) -> bool {
        block.iter().all(|statement| matches!(statement, Statement::Mix(_) | Statement::Step(_)))
    }

    fn if_(&mut self, condition: &Condition, then: &[Statement], otherwise: Option<&[Statement]>) {
        let simple = Self::computes(then) && otherwise.is_none_or(Self::computes);
        if simple && then.len() + otherwise.map_or(0, <[_]>::len) < 6 && self.choice.once_in(3) {
            return self.if_predicated(condition, then, otherwise.unwrap_or_default());
        }
        let past = self.choice.once_in(2).then(|| self.label("past"));
        let start = self.items.len();
        let ending = self.if_open(condition, then, otherwise, past.as_deref(), 1);
        self.pop(start, ending);
        self.items.extend(past.map(Item::Label));
    }

    /// Adds both sides in one clause, selected by PRED_SEL.
    fn if_predicated(&mut self, condition: &Condition, then: &[Statement], otherwise: &[Statement]) {
        let mut groups = self.pred_set(condition, "UPDATE_PRED");
        let mut sides = [("ONE", then), ("ZERO", otherwise)];
        sides.rotate_left(self.choice.below(2) as usize);
        for (select, side) in sides {
            for statement in side {
                groups.extend(self.work(statement).iter().map(|group| format!("{group} PRED({select})")));
            }
        }
        self.items.push(Item::Alu { form: "ALU", groups, open: false });
    }

    /// Adds all of an `if` except for its pop, which removes at least the `level` entries that are on the stack then.
    /// The label `past`, if there is one, comes after the pop.
    fn if_open(
        &mut self,
        condition: &Condition,
        then: &[Statement],
        otherwise: Option<&[Statement]>,
        past: Option<&str>,
        level: u32,
    ) -> Ending {
        match past {
            // If no lane is active, PUSH pushes nothing, so it jumps to code at which its entry would already be
            // popped.
            Some(past) if self.choice.once_in(2) => {
                match self.items.last() {
                    Some(&Item::Pop(pops)) if level == 1 && self.choice.once_in(2) => {
                        self.items.pop();
                        self.other(format!("POP_PUSH: ADDR(@{past}) POP_CNT({pops})"));
                    }
                    _ => self.other(format!("PUSH: ADDR(@{past}) POP_CNT({})", level - 1)),
                }
                let groups = self.pred_set(condition, "UPDATE_EXEC_MASK");
                self.items.push(Item::Alu { form: "ALU", groups, open: false });
            }
            _ => self.predicate("ALU_PUSH_BEFORE", condition),
        }
        self.pushed(1);
        let mut labels = Vec::new();
        let merges = self.merges(otherwise.unwrap_or(then), past, level);
        let to_pop = past.filter(|_| merges || self.choice.once_in(2)).map(|past| (past, level));
        let skips = !self.choice.once_in(4);
        if let Some(otherwise) = otherwise {
            let other_side = self.label("else");
            if skips {
                self.other(format!("JUMP: ADDR(@{other_side})"));
            }
            let start = self.items.len();
            self.block(then);
            match self.items.get_mut(start..).and_then(<[_]>::last_mut) {
                Some(Item::Alu { form, open, .. }) if *open && self.choice.once_in(2) => {
                    // Lanes that skip the first side arrive at its last clause, which swaps the sides after it.
                    (*form, *open) = ("ALU_ELSE_AFTER", false);
                    let last = self.items.len() - 1;
                    self.items.insert(last, Item::Label(other_side));
                }
                _ => {
                    self.items.push(Item::Label(other_side));
                    labels.extend(self.jump("ELSE", to_pop));
                }
            }
            let ending = self.block_before_pop(otherwise, merges, past, level).with(labels);
            self.pushed(-1);
            return ending;
        }
        if skips {
            labels.extend(self.jump("JUMP", to_pop));
        }
        let ending = self.block_before_pop(then, merges, past, level).with(labels);
        self.pushed(-1);
        ending
    }

    /// Adds a JUMP or ELSE to the end of an `if`. It jumps past the pop and pops itself, or jumps to the returned
    /// label, which the caller must place before the pop.
    fn jump(&mut self, name: &str, past: Option<(&str, u32)>) -> Option<String> {
        if let Some((past, pops)) = past {
            self.other(format!("{name}: ADDR(@{past}) POP_CNT({pops})"));
            return None;
        }
        let label = self.label("endif");
        self.other(format!("{name}: ADDR(@{label})"));
        Some(label)
    }

    /// Pops the entries that the constructs since item `start` have left, with an instruction or at the end of their
    /// last clause.
    fn pop(&mut self, start: usize, ending: Ending) {
        let Ending { pops, labels } = ending;
        let folded = match pops {
            1 => Some("ALU_POP_AFTER"),
            2 => Some("ALU_POP2_AFTER"),
            _ => None,
        };
        let at_top_of_loop = match self.loops.last() {
            Some((end, 0)) => Some(end.clone()),
            _ => None,
        };
        match (self.items.get_mut(start..).and_then(<[_]>::last_mut), folded) {
            (Some(Item::Alu { form, open, .. }), Some(folded)) if *open && self.choice.once_in(2) => {
                (*form, *open) = (folded, false);
                let clause = self.items.pop();
                self.place(labels);
                self.items.extend(clause);
            }
            _ => {
                self.place(labels);
                match at_top_of_loop {
                    // The stack has no entry of this iteration. If no lane passes, the jump may lead to the end of the
                    // loop.
                    Some(end) if self.choice.once_in(2) => {
                        self.other(format!("POP_JUMP: ADDR(@{end}) POP_CNT({pops})"));
                    }
                    _ => self.items.push(Item::Pop(pops)),
                }
            }
        }
    }

    fn pushed(&mut self, entries: i32) {
        if let Some((_, pushes)) = self.loops.last_mut() {
            *pushes = pushes.wrapping_add_signed(entries);
        }
    }

    fn leave(&mut self, name: &str, condition: &str) {
        let (end, _) = self.loops.last().expect("breaks and continues stand in loops");
        let text = format!("{name}: ADDR(@{end}){condition}");
        self.other(text);
    }

    fn call(&mut self, index: usize, condition: &str) {
        if self.fetch == Some(index) {
            return self.other(format!("CALL_FS:{condition}"));
        }
        self.other(format!("CALL: ADDR(@f{index}) CALL_CNT(1){condition}"));
    }

    /// Adds an `if` on a boolean constant. It is the same for all lanes, so the instruction decides.
    fn if_static(&mut self, index: u32, body: &[Statement]) {
        let condition = format!(" COND(BOOL) CF_CONST({index})");
        match body {
            [Statement::Break(None)] => return self.leave("LOOP_BREAK", &condition),
            [Statement::Continue(None)] => return self.leave("LOOP_CONTINUE", &condition),
            [Statement::Call(function, None)] => return self.call(*function, &condition),
            _ => {}
        }
        let end = self.label("static");
        match self.choice.below(3) {
            0 => {
                self.other(format!("JUMP: ADDR(@{end}){condition}"));
                self.block(body);
            }
            1 => {
                self.other(format!("PUSH: ADDR(@{end}){condition}"));
                self.pushed(1);
                let start = self.items.len();
                let merges = self.merges(body, Some(&end), 1);
                let ending = self.block_before_pop(body, merges, Some(&end), 1);
                self.pushed(-1);
                self.pop(start, ending);
            }
            _ => {
                let true_side = self.label("true");
                self.other(format!("JUMP: ADDR(@{true_side}) COND(NOT_BOOL) CF_CONST({index})"));
                self.other(format!("JUMP: ADDR(@{end}) COND(FALSE)"));
                self.items.push(Item::Label(true_side));
                self.block(body);
            }
        }
        self.items.push(Item::Label(end));
    }

    fn loop_(&mut self, count: u32, body: &[Statement]) {
        let [top, end, past] = ["top", "end", "past"].map(|name| self.label(name));
        let kind = self.choice.below(4);
        let (start, constant) = match kind {
            0 => ("LOOP_START", format!(" CF_CONST({count})")),
            1 => ("LOOP_START_NO_AL", format!(" CF_CONST({count})")),
            _ => ("LOOP_START_DX10", String::new()),
        };
        // A loop without a count uses a register as its counter.
        let counter = (kind > 1).then(|| {
            let counter = self.counters;
            self.counters += 1;
            (format!("R{}", COUNTERS + counter / 4), CHANS[counter % 4])
        });
        if let Some((register, chan)) = &counter {
            self.alu(&[format!("{chan}: MOV {register}.{chan}, 0")]);
        }
        self.other(format!("{start}: ADDR(@{past}){constant}"));
        self.items.push(Item::Label(top.clone()));
        self.loops.push((end.clone(), 0));
        if let Some((register, chan)) = counter {
            let add = format!("{chan}: ADD_INT {register}.{chan}, {register}.{chan}, 1");
            let form = "ALU_BREAK";
            if self.choice.once_in(2) {
                let test = format!("x: PRED_SETGT_INT _.x, ({count}).x, {register}.{chan} UPDATE_EXEC_MASK");
                self.execute_mask(form, vec![test]);
                self.alu(&[add]);
            } else {
                let test = format!("x: PRED_SETGE_INT _.x, ({count}).x, {register}.{chan} UPDATE_EXEC_MASK");
                self.execute_mask(form, vec![add, test]);
            }
        }
        self.block(body);
        self.loops.pop();
        self.items.push(Item::Label(end));
        self.other(format!("LOOP_END: ADDR(@{top}){constant}"));
        self.items.push(Item::Label(past));
    }
}

impl Ending {
    /// Adds the labels of further jumps.
    fn with(mut self, labels: Vec<String>) -> Ending {
        self.labels.extend(labels);
        self
    }
}

/// Returns whether more groups fit: a clause holds 128 slots, and a line here takes up to two.
fn has_room(groups: &[String]) -> bool {
    groups.iter().map(|group| 2 * group.lines().count()).sum::<usize>() < 80
}

/// Returns operation and operands of a comparison of integers, without `_INT`.
fn comparison(prefix: &str, condition: &Condition) -> (String, String, String) {
    let variable = format!("R0.{}", CHANS[condition.variable]);
    let number = format!("({}).x", condition.number);
    match condition.compare {
        Compare::Less => (format!("{prefix}GT"), number, variable),
        Compare::GreaterEqual => (format!("{prefix}GE"), variable, number),
        Compare::Equal => (format!("{prefix}E"), variable, number),
        Compare::NotEqual => (format!("{prefix}NE"), variable, number),
    }
}

fn text(items: &[Item]) -> String {
    let mut text = String::new();
    let mut line = |line: String| {
        text += &line;
        text.push('\n');
    };
    for item in items {
        match item {
            Item::Label(name) => line(format!("@{name}:")),
            Item::Alu { form, groups, .. } => {
                line(format!("{form}:"));
                groups.iter().enumerate().for_each(|(number, group)| line(format!("  {number} {group}")));
            }
            Item::Pop(pops) => line(format!("POP: POP_CNT({pops})")),
            Item::Other(text) => line(text.clone()),
        }
    }
    text
}

/// Words of a program, with its fetch program in the launch.
struct Prepared {
    text: String,
    words: Vec<u32>,
    code: Arc<Code>,
    launch: Launch,
}

impl Prepared {
    /// Returns `None` for a program with more loops than counter registers.
    fn new(seed: u64, program: &Program) -> Option<Prepared> {
        let chips = ["rv770", "rv740", "rv730", "rv670", "rv630", "rs780"];
        let chip = Chip::named(chips[(seed / 3 % 6) as usize]).expect("they are in the table");
        let lowered = Lowering::program(program, seed)?;
        let words = |text: &str| match assemble(text, chip) {
            Ok(assembled) => assembled.words,
            Err(faults) => {
                panic!("seed {seed}: {} at {:?}\n{text}", faults[0], faults[0].span.line_column(text))
            }
        };
        let mut launch = Launch::new(chip, Stage::Vertex, 1);
        launch.environment_mut().scratch_dwords = 0;
        launch.environment_mut().record_dwords = 0;
        launch.environment_mut().num_gprs = (COUNTERS + MOST_COUNTERS / 4) as u8;
        launch.environment_mut().resources.booleans = program.booleans;
        for count in 0..=MOST_ROUNDS {
            launch.environment_mut().resources.loop_constants[count as usize] =
                LoopConstant(count | 3 << 12 | 0xff << 24);
        }
        launch.environment_mut().fetch_program =
            lowered.fetch.as_ref().map(|text| FetchProgram { words: words(text).into(), start: 0 });
        let words = words(&lowered.main);
        let code = Arc::new(Code::new(&words, 0, launch.environment.code_options()));
        let fetch = lowered.fetch.map_or(String::new(), |text| format!("\nfetch program:\n{text}"));
        let text = format!(".chip {}\n{}{fetch}", chip.name, lowered.main);
        Some(Prepared { text, words, code, launch })
    }
}

impl LoweredProgram for Prepared {
    fn width(&self) -> usize {
        self.launch.environment.chip.wave_width.into()
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    /// Returns the variables of every lane at the end, in strict mode.
    fn outputs(&self, lanes: &[Lane]) -> Result<Vec<Lane>, String> {
        let mut launch = self.launch.clone();
        launch.lanes = lanes.len();
        let values = lanes.iter().map(|lane| lane.map(|variable| variable as u32)).collect();
        launch.inputs = vec![Input { gpr: 0, values }];
        engines::run(&reconverge_isa::Program::from_words(self.words.clone()), &launch, &Options::default())
            .map_err(|trap| trap.to_string())?;
        let fetch = launch.environment.fetch_code();
        let mut wave = Wave::new(self.code.clone(), fetch, Arc::new(launch), Options::default(), 0);
        while wave.step(&mut Silent).map_err(|trap| trap.to_string())? == Step::Running {}
        if !wave.flow().entries().is_empty() {
            return Err(format!("still on the stack: {:?}", wave.flow().entries()));
        }
        if wave.flow().active() != Mask::first(lanes.len()) {
            return Err(format!("active at the end: {}", wave.flow().active()));
        }
        let variable = |lane: usize, chan: usize| {
            wave.register(0, chan, LaneNumber(lane as u8)).expect("R0 is there") as i32
        };
        Ok((0..lanes.len()).map(|lane| std::array::from_fn(|chan| variable(lane, chan))).collect())
    }
}

fn program(seed: u64) -> Program {
    generate(seed, Shape::of(seed))
}

#[test]
fn structured_programs_equal_the_direct_evaluation_of_their_tree() {
    Campaign::from_environment(2_000).run_against_evaluation("reconverge-r700", program, Prepared::new);
}

#[test]
fn a_lane_alone_gives_the_same_as_all_lanes_together() {
    Campaign::from_environment(2_000).tenth().run_lanes_alone("reconverge-r700", program, Prepared::new);
}

#[test]
fn no_program_breaks_a_rule_of_the_manual() {
    for seed in 0..300 {
        let Some(prepared) = Prepared::new(seed, &program(seed)) else { continue };
        let fetch = prepared.launch.environment.fetch_program.iter().map(|program| &program.words);
        for words in fetch.map(|words| &words[..]).chain([&prepared.words[..]]) {
            let mut findings = lint(words, prepared.launch.environment.chip);
            // Code after COND(FALSE) is unreachable.
            findings.retain(|finding| finding.rule.severity > Severity::Note);
            assert!(findings.is_empty(), "seed {seed}: {findings:?}\n{}", prepared.text);
        }
    }
}

#[test]
fn every_idiom_is_written() {
    let texts: String = (0..300).filter_map(|seed| Some(Prepared::new(seed, &program(seed))?.text)).collect();
    #[rustfmt::skip]
    let idioms = [
        "ALU:", "ALU_PUSH_BEFORE:", "ALU_POP_AFTER:", "ALU_POP2_AFTER:", "ALU_ELSE_AFTER:", "ALU_BREAK:",
        "ALU_CONTINUE:", "PRED(ONE)", "PRED(ZERO)", "PUSH:", "POP: POP_CNT(1)", "POP: POP_CNT(2)",
        "POP: POP_CNT(3)", "POP_PUSH:", "POP_JUMP:", "JUMP:", "ELSE:", "LOOP_START:", "LOOP_START_NO_AL:",
        "LOOP_START_DX10:", "LOOP_END:", "LOOP_BREAK:", "LOOP_CONTINUE:", "CALL:", "CALL_FS:", "RETURN:",
        "COND(BOOL)", "COND(NOT_BOOL)", "COND(FALSE)", "x: CUBE", "x: MOVA_INT", "R[0+AR.x].x,", "x: KILLGT_INT",
    ];
    for idiom in idioms {
        assert!(texts.contains(&format!("{idiom} ")) || texts.contains(&format!("{idiom}\n")), "{idiom}");
    }
}
