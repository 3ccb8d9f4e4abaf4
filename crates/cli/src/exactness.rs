//! The report of a run about exactness. The report covers values of three kinds: values that decide control flow,
//! values that select addresses, and values that leave the program.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use reconverge_isa::Program;
use reconverge_simt::uses::Role;
use reconverge_simt::{Fidelity, Mask, Options};
use reconverge_workbench::Error;
use reconverge_workbench::result::RunResult;
use reconverge_workbench::session::GroupState;
use reconverge_workbench::taint::{Exactness, ROLES, Reached, Taint};
use reconverge_workbench::trace::Recorded;
use reconverge_workbench::{Machine, Opened, Session, Style};
use serde_json::{Value, json};

/// The exactness of the values of a run, and the data that locates these values in the program.
pub(crate) struct Followed {
    exactness: Exactness,
    machine: &'static dyn Machine,
    /// Text of each instruction, indexed by address.
    texts: BTreeMap<u32, String>,
    /// Index of each group's first lane in the launch.
    first: Vec<usize>,
}

impl Followed {
    /// Runs a launch again and tracks the exactness of the values in the launch. `result` is the result of the first
    /// run of the launch.
    pub(crate) fn of(
        opened: &Opened,
        program: &Program,
        session: &Session,
        options: &Options,
        result: &RunResult,
    ) -> Result<Followed> {
        let target = &opened.target.for_program(&opened.image, program);
        let machine = target.machine();
        let uses = machine.uses(target, program)?;
        if uses.is_empty() {
            bail!("cannot follow the values of this program: the operands of its instructions are not known");
        }
        let stepping = session.start(options)?;
        let groups = stepping.groups();
        let of_block = (0..groups).take_while(|group| stepping.state(*group) != GroupState::Waiting).count();
        let first = (0..groups).map(|group| stepping.lanes(group).start).collect();
        let killed_of = |group: usize| {
            let killed = result.killed().and_then(|killed| killed.get(stepping.lanes(group)))?;
            let lanes = Mask::from_fn(killed.len(), |lane| killed[lane.index()] != 0);
            Some((group, lanes))
        };
        let killed = (0..groups).filter_map(killed_of).collect();
        drop(stepping);
        let mut taint = Taint::new(uses, of_block, killed);
        match session.copy().run_traced(options, Recorded::Data, &mut taint) {
            // A trap of the second run is not an error here. The command `run` compares the trap of the first run with
            // the trap that the launch states.
            Ok(_) | Err(Error::Trap(_)) => {}
            Err(error) => return Err(anyhow!("{error}")),
        }
        let lines = machine.disassemble(target, program, Style::default())?.lines(&program.words);
        let texts = lines.iter().filter_map(|line| Some((line.address?, line.code()))).collect();
        Ok(Followed { exactness: taint.finish(), machine, texts, first })
    }

    /// Returns an address and the instruction at this address: `0x48 (bra L60)`.
    fn place(&self, pc: u32) -> String {
        let text = self.texts.get(&pc).map(|text| format!(" ({text})")).unwrap_or_default();
        format!("{}{text}", self.machine.isa().spelled(pc))
    }

    fn lane(&self, reached: &Reached) -> usize {
        self.first.get(reached.group).copied().unwrap_or_default() + reached.lane.index()
    }

    fn from(&self, reached: &Reached) -> String {
        match reached.grade.fidelity {
            Fidelity::Exact => String::new(),
            _ => format!("{} at {}", reached.grade.operation, self.place(reached.grade.pc)),
        }
    }

    /// Returns one line for each kind of values (see [`ROLES`]). Another line has the instructions that could not be
    /// tracked.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = ROLES
            .iter()
            .map(|(role, name)| match self.exactness.worst(*role) {
                None => format!("reaches {name}: nothing"),
                Some(reached) if reached.grade.fidelity == Fidelity::Exact => {
                    format!("reaches {name}: exact")
                }
                Some(reached) => format!(
                    "reaches {name}: {}, first in lane {} at {}, from {}",
                    reached.grade.fidelity,
                    self.lane(reached),
                    self.place(reached.pc),
                    self.from(reached)
                ),
            })
            .collect();
        let unknown: Vec<String> = self.exactness.unknown().map(|pc| self.place(pc)).collect();
        if !unknown.is_empty() {
            lines.push(format!("not followed through: {}", unknown.join(", ")));
        }
        lines
    }

    /// Returns a message about the first value that is less exact than `required`. Returns `None` if no value is less
    /// exact than `required`.
    pub(crate) fn worse_than(&self, required: Fidelity) -> Option<String> {
        let reached = self.exactness.worse_than(required)?;
        Some(format!(
            "--require {required}: {} is only {} at {}, lane {}, from {}",
            match reached.role {
                Role::Flow => "a value that decides the flow",
                Role::Address => "a value that selects an address",
                Role::Output | Role::Value => "a value that leaves the program",
            },
            reached.grade.fidelity,
            self.place(reached.pc),
            self.lane(reached),
            self.from(reached)
        ))
    }

    /// Returns the report as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let of = |role: Role| {
            let reached = self.exactness.worst(role)?;
            let from = (reached.grade.fidelity != Fidelity::Exact).then(|| {
                json!({
                    "operation": reached.grade.operation,
                    "pc": reached.grade.pc,
                    "text": self.texts.get(&reached.grade.pc),
                })
            });
            Some(json!({
                "grade": reached.grade.fidelity.name(),
                "pc": reached.pc,
                "text": self.texts.get(&reached.pc),
                "lane": self.lane(reached),
                "from": from,
            }))
        };
        json!({
            "flow": of(Role::Flow),
            "address": of(Role::Address),
            "output": of(Role::Output),
            "not_followed": self.exactness.unknown().collect::<Vec<_>>(),
        })
    }
}
