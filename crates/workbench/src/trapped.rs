//! Adds context to a trap for users. The context has three parts: the instruction with its source line, the registers
//! that the instruction names, and the nearest memory.
//!
//! Engines report only an address, lanes and a cause. [`look`] repeats the launch on the reference interpreter up to
//! the trap, and reads the state of the repeated launch. The launch is deterministic, so the trap occurs at the same
//! step.

use std::ops::Range;
use std::path::Path;

use reconverge_isa::Program;
use reconverge_simt::{Engine, Lane, Options};

use crate::error::{Access, Error, LaneState, Trapped};
use crate::listing::Style;
use crate::open::Opened;
use crate::session::{Register, RegisterClass, Session, Stepping};
use crate::target::Target;

/// Maximum number of instructions that [`look`] repeats to reach a trap. This number of instructions takes a few
/// seconds.
const MOST_STEPS: u64 = 1 << 20;

/// Returns the disassembled text of the instruction at an address of a program.
pub fn instruction(target: &Target, program: &Program, pc: u32) -> Option<String> {
    let listing = target.machine().disassemble(target, program, Style::default()).ok()?;
    listing.lines(&program.words).iter().find(|line| line.address == Some(pc)).map(|line| line.code())
}

/// Adds the context to a trap of `program`, which is a program of `opened`. `session` is the launch in the state before
/// the run. The text of an instruction comes from the user's source. If the source does not contain the instruction,
/// the text comes from the listing.
pub fn look(trapped: &mut Trapped, opened: &Opened, program: &Program, session: &Session, options: &Options) {
    let target = opened.target.for_program(&opened.image, program);
    let source = opened.user_source(program, Path::new(""));
    let listed = |pc| instruction(&target, program, pc);
    let own = |pc| source.as_ref()?.instruction(pc).map(str::to_owned);
    trapped.line = source.as_ref().and_then(|source| source.line_of(trapped.pc));
    trapped.instruction = own(trapped.pc).or_else(|| listed(trapped.pc));
    if let Some((pc, text)) = &mut trapped.other {
        *text = own(*pc).or_else(|| listed(*pc));
    }
    let options = Options { engine: Engine::Reference, ..*options };
    let Ok(mut stepping) = session.start(&options) else { return };
    let stopped = stepping.run_until(MOST_STEPS, &mut |_, _| false, &mut |_, _| {});
    if !matches!(stopped, Err(Error::Trap(again)) if again.message == trapped.message) {
        return;
    }
    let Some(group) = stepping.current() else { return };
    let lane = trapped.lanes.lowest().unwrap_or(Lane(0));
    // This text comes from the listing, because the user's source may have aliases for registers.
    if let Some(text) = listed(trapped.pc) {
        let read = |(name, register): (String, Vec<Register>)| {
            let of = |register: &Register| stepping.read(group, *register)?.get(lane.index()).copied();
            Some((name, register.iter().map(of).collect::<Option<Vec<u32>>>()?))
        };
        let registers = named(&text, &stepping.registers()).into_iter().filter_map(read).collect();
        let lane = stepping.lanes(group).start + lane.index();
        trapped.state = Some(LaneState { lane, registers });
    }
    trapped.nearest = trapped.access.as_ref().and_then(|access| nearest(access, &stepping, group, lane));
}

/// Returns the registers that occur in a text, in order. Examples are `R3`, `temp[3]` and `$r3`. `$r2d` stands for two
/// registers, and `$r4q` stands for four registers.
fn named(text: &str, classes: &[RegisterClass]) -> Vec<(String, Vec<Register>)> {
    let mut found: Vec<(String, Vec<Register>)> = Vec::new();
    for (at, _) in text.char_indices() {
        if text[..at].chars().next_back().is_some_and(|before| before.is_alphanumeric() || before == '_') {
            continue;
        }
        for class in classes {
            let Some(rest) = text[at..].strip_prefix(class.name) else { continue };
            let (rest, bracket) = rest.strip_prefix('[').map_or((rest, ""), |rest| (rest, "]"));
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let Ok(number) = rest[..end].parse::<usize>() else { continue };
            let several = match rest[end..].chars().next() {
                Some('d') => 2,
                Some('q') => 4,
                _ => 1,
            };
            for number in (number..number + several).filter(|number| *number < class.count) {
                let open = if bracket.is_empty() { "" } else { "[" };
                let name = format!("{}{open}{number}{bracket}", class.name);
                let channels = class.channels.len().max(1);
                let channel = |channel| Register { class: class.name, number, channel };
                if found.iter().all(|(known, _)| *known != name) {
                    found.push((name, (0..channels).map(channel).collect()));
                }
            }
        }
    }
    found
}

/// Describes the buffer that is nearest to the address of an invalid access, and the distance of this address from the
/// buffer.
fn nearest(access: &Access, stepping: &Stepping, group: usize, lane: Lane) -> Option<String> {
    let (first, end) = (u64::from(access.address), u64::from(access.address) + u64::from(access.bytes));
    let missed = |range: &Range<u64>| match () {
        () if range.contains(&first) => (end.saturating_sub(range.end), "ends", "after its end"),
        () if first >= range.end => (first - range.end, "begins", "after its end"),
        () => (range.start.saturating_sub(first), "begins", "before it"),
    };
    let buffers = stepping.buffers(access.space, group, lane);
    let (name, range) = buffers.into_iter().min_by_key(|(_, range)| missed(range).0)?;
    let ((bytes, verb, side), Range { start, end }) = (missed(&range), range);
    Some(format!("nearest: {name}, {start:#x} to {end:#x}; the access {verb} {bytes} bytes {side}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_found_in_the_texts_of_all_machines() {
        let class = |name, count, channels| RegisterClass { name, count, channels, first: 0 };
        let names = |text: &str, classes: &[RegisterClass]| {
            named(text, classes).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let tesla = [class("$r", 128, ""), class("$a", 8, ""), class("$c", 4, "")];
        assert_eq!(names("@$c1.ne ld b64 $r2d g14[$a1+0x10] $r2l", &tesla), ["$c1", "$r2", "$r3", "$a1"]);
        let r700 = [class("R", 64, "xyzw"), class("T", 2, "xyzw")];
        assert_eq!(names("0 x: ADD R3.x, T1.y, KC0[2].R, R3.w PIXEL[0]", &r700), ["R3", "T1"]);
        let r500 = [class("temp", 128, "rgba")];
        assert_eq!(names("ALU temp[5].rgb = MAD src0.rgb : src0=temp[2+aL]", &r500), ["temp[5]", "temp[2]"]);
    }
}
