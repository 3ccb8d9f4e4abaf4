//! Formats the events of the most recently executed instruction.

use reconverge_simt::{Event, Lane};
use reconverge_trace::place;

use super::call::{Call, Done, lines};
use crate::debugger::Debugger;

pub(super) fn events(call: &mut Call<'_>) -> Done {
    let debugger = &*call.debugger;
    let mut memory = MemoryNames::default();
    let line = |(group, event): &(usize, Event)| {
        let space = memory.of(debugger, event);
        format!("group {group}: {}", event_text(debugger, event, space))
    };
    let texts: Vec<String> = debugger.events().iter().map(line).collect();
    lines(texts.into_iter(), "no events")
}

/// Finds the name of the memory that each event in a list accesses. The name depends on the last instruction that was
/// issued before the event. If the last instruction loads several operands from memory, the name also depends on the
/// position of the load. The position counts the loads of one lane in this instruction.
#[derive(Default)]
struct MemoryNames {
    pc: u32,
    /// For each load event after the last issue event, the lane of the load.
    loads: Vec<Lane>,
}

impl MemoryNames {
    fn of<'a>(&mut self, debugger: &'a Debugger, event: &Event) -> Option<&'a str> {
        match event {
            Event::Issue { pc, .. } => {
                (self.pc, self.loads) = (*pc, Vec::new());
                None
            }
            Event::Load { lane, .. } => {
                let number = self.loads.iter().filter(|known| *known == lane).count();
                self.loads.push(*lane);
                match &debugger.accessed(self.pc)?.loads[..] {
                    [one] => Some(one),
                    several => several.get(number).map(String::as_str),
                }
            }
            Event::Store { .. } => debugger.accessed(self.pc)?.stores.as_deref(),
            _ => None,
        }
    }
}

/// Describes an event. The description uses the machine's names of registers. `space` is the name of the memory that
/// the event accesses.
fn event_text(debugger: &Debugger, event: &Event, space: Option<&str>) -> String {
    match event {
        Event::Issue { pc, mask } => format!("issue {} for lanes {mask}", debugger.named(*pc)),
        Event::Diverge { taken, not } => format!("diverge: lanes {taken} first, then {not}"),
        Event::Resume { mask } => format!("resume: lanes {mask}"),
        Event::Reconverge { mask } => format!("reconverge: lanes {mask}"),
        Event::Push { kind } => format!("push {kind}"),
        Event::Pop { kind } => format!("pop {kind}"),
        Event::Jump { to } => format!("jump to {}", debugger.named(*to)),
        Event::Write { lane, register, value } => {
            let name = debugger.stepping().register_name(*register);
            format!("lane {} writes {value:#010x} to {name}", lane.0)
        }
        Event::Load { lane, address } => format!("lane {} loads {}", lane.0, place(space, *address)),
        Event::Store { lane, address, value } => {
            format!("lane {} stores {value:#010x} at {}", lane.0, place(space, *address))
        }
        Event::Trap { mask } => format!("trap: lanes {mask}"),
    }
}
