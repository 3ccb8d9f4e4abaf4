//! The table `[filter]` of a campaign file. The table restricts the faults to some instructions, registers, lanes and
//! groups.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use reconverge_isa::source::{closest, parse_number, suggest};
use serde::{Deserialize, Serialize};

/// One value or a list of values. A value is a number, or a text such as `0x10-0x40`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "expected a number that is not negative, a text such as \"0-3\", or a list of these"
)]
pub enum OneOrMore {
    /// A number.
    Number(u32),
    /// A name, a number or a range.
    Text(String),
    /// A list of values.
    List(Vec<OneOrMore>),
}

impl OneOrMore {
    /// Returns the values as texts. A text with commas is split at the commas.
    fn texts(&self) -> Vec<String> {
        match self {
            OneOrMore::Number(number) => vec![number.to_string()],
            OneOrMore::Text(text) => text.split(',').map(|part| part.trim().to_owned()).collect(),
            OneOrMore::List(list) => list.iter().flat_map(OneOrMore::texts).collect(),
        }
    }
}

/// Restricts the faults of a campaign. A field that is absent does not restrict faults.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FaultFilter {
    /// The instructions at which faults may occur: addresses, ranges of addresses, or labels of the source.
    pub pc: Option<OneOrMore>,
    /// The operations of the instructions at which faults may occur: `mul`, `MULADD`.
    pub opcode: Option<OneOrMore>,
    /// The registers that faults may change. The names are the same as in the results of a campaign: `$r1`, `R2`,
    /// `R2.x`, `temp[0]`.
    pub register: Option<OneOrMore>,
    /// The lanes in which faults may change words: `0-3,8`. The lanes are numbered within their group.
    pub lane: Option<OneOrMore>,
    /// The groups in which faults may change words: `0-3,8`.
    pub group: Option<OneOrMore>,
}

/// An instruction of the program, with all names that a filter can use for this instruction.
pub(crate) struct ProgramLine {
    pub(crate) pc: u32,
    /// Names of the instruction's operations. The list has the names in reports, and the mnemonic.
    pub(crate) operations: Vec<String>,
}

/// A filter, after the names in the filter were looked up in one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// The allowed addresses. `None` allows all addresses.
    pcs: Option<BTreeSet<u32>>,
    registers: Option<Vec<String>>,
    lanes: Option<Vec<RangeInclusive<u32>>>,
    groups: Option<Vec<RangeInclusive<u32>>>,
}

impl FaultFilter {
    /// Returns whether the filter has no restrictions.
    pub fn is_empty(&self) -> bool {
        let Self { pc, opcode, register, lane, group } = self;
        [pc, opcode, register, lane, group].iter().all(|part| part.is_none())
    }

    /// Resolves the names in the filter for a program. `label` returns the address of a label, and `labels` lists all
    /// labels.
    ///
    /// # Errors
    /// Fails if a name in the filter does not exist in the program, or if a range is malformed.
    pub(crate) fn of_program(
        &self,
        shown: &[ProgramLine],
        labels: &[(String, u32)],
        registers: &[String],
    ) -> Result<Allowed, String> {
        let mut pcs: Option<BTreeSet<u32>> = None;
        let mut keep = |found: BTreeSet<u32>| {
            pcs = Some(match pcs.take() {
                None => found,
                Some(before) => before.intersection(&found).copied().collect(),
            });
        };
        if let Some(pc) = &self.pc {
            let mut found = BTreeSet::new();
            for text in pc.texts() {
                let range = addresses(&text, labels).map_err(|why| format!("filter, pc: {why}"))?;
                let before = found.len();
                found.extend(shown.iter().map(|one| one.pc).filter(|pc| range.contains(pc)));
                if found.len() == before && !shown.iter().any(|one| range.contains(&one.pc)) {
                    return Err(format!("filter, pc: the program has no instruction at {text}"));
                }
            }
            keep(found);
        }
        if let Some(opcode) = &self.opcode {
            let mut found = BTreeSet::new();
            for wanted in opcode.texts() {
                let is_it =
                    |one: &&ProgramLine| one.operations.iter().any(|name| name.eq_ignore_ascii_case(&wanted));
                let before = found.len();
                found.extend(shown.iter().filter(is_it).map(|one| one.pc));
                if found.len() == before && !shown.iter().any(|one| is_it(&one)) {
                    let all: BTreeSet<&str> =
                        shown.iter().flat_map(|one| &one.operations).map(String::as_str).collect();
                    return Err(format!(
                        "filter, opcode: the program has no `{wanted}`: {}",
                        suggest(&wanted, all)
                    ));
                }
            }
            keep(found);
        }
        let registers = self.register.as_ref().map(|wanted| known_registers(&wanted.texts(), registers));
        let ranges = |part: &Option<OneOrMore>, what: &str| {
            let range = |text: &String| {
                range(text).ok_or_else(|| {
                    format!("filter, {what}: `{text}`: expected numbers and ranges such as 0-3")
                })
            };
            part.as_ref()
                .map(|part| part.texts().iter().map(range).collect::<Result<Vec<_>, _>>())
                .transpose()
        };
        Ok(Allowed {
            pcs,
            registers: registers.transpose()?,
            lanes: ranges(&self.lane, "lane")?,
            groups: ranges(&self.group, "group")?,
        })
    }
}

/// Returns the registers that a filter names. Fails if the filter names a register that the program does not use.
fn known_registers(wanted: &[String], registers: &[String]) -> Result<Vec<String>, String> {
    for text in wanted {
        if !registers.iter().any(|name| is_register(text, name)) {
            let names = || registers.iter().map(String::as_str);
            let meant = closest(text, names()).map(|meant| format!("did you mean `{meant}`? "));
            let list: Vec<&str> = names().collect();
            return Err(format!(
                "filter, register: the program does not use `{text}`: {}expected one of {}",
                meant.unwrap_or_default(),
                if list.is_empty() { "none".to_owned() } else { list.join(", ") }
            ));
        }
    }
    Ok(wanted.to_vec())
}

/// Returns whether `name` is the name of the register `text`, or of a channel of this register.
fn is_register(text: &str, name: &str) -> bool {
    name.eq_ignore_ascii_case(text)
        || name.split_once('.').is_some_and(|(register, _)| register.eq_ignore_ascii_case(text))
}

/// Reads a number or a range. A range has a first and a last number.
fn range(text: &str) -> Option<RangeInclusive<u32>> {
    let number = |text: &str| parse_number(text.trim()).and_then(|number| u32::try_from(number).ok());
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = number(first)?..=number(last)?;
    (!range.is_empty()).then_some(range)
}

/// Reads a range of addresses. The first and the last address of the range may be labels.
fn addresses(text: &str, labels: &[(String, u32)]) -> Result<RangeInclusive<u32>, String> {
    let one = |text: &str| {
        let text = text.trim();
        let number = parse_number(text).and_then(|number| u32::try_from(number).ok());
        let label = || labels.iter().find(|(name, _)| name == text.trim_start_matches('@'));
        number.or_else(|| label().map(|(_, pc)| *pc)).ok_or_else(|| {
            let names = labels.iter().map(|(name, _)| name.as_str());
            format!("expected an address or a label, found `{text}`: {}", suggest(text, names))
        })
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = one(first)?..=one(last)?;
    if range.is_empty() { Err(format!("{text}: the first address comes after the last")) } else { Ok(range) }
}

fn has(ranges: &Option<Vec<RangeInclusive<u32>>>, number: u32) -> bool {
    ranges.as_ref().is_none_or(|ranges| ranges.iter().any(|range| range.contains(&number)))
}

impl Allowed {
    /// Returns whether the filter allows faults at the instruction `pc` of a group.
    pub(crate) fn instruction(&self, pc: u32, group: u32) -> bool {
        self.pcs.as_ref().is_none_or(|pcs| pcs.contains(&pc)) && has(&self.groups, group)
    }

    /// Returns whether the filter allows faults in a register.
    pub(crate) fn register(&self, name: &str) -> bool {
        let texts = self.registers.as_ref();
        texts.is_none_or(|texts| texts.iter().any(|text| is_register(text, name)))
    }

    /// Returns whether the filter restricts registers. If the filter restricts registers, faults change only registers.
    pub(crate) fn only_registers(&self) -> bool {
        self.registers.is_some()
    }

    /// Returns whether the filter restricts lanes. If the filter restricts lanes, faults change only words that belong
    /// to a lane.
    pub(crate) fn only_lanes(&self) -> bool {
        self.lanes.is_some()
    }

    /// Returns whether the filter allows faults in a lane. `lane` is the number of the lane in its group.
    pub(crate) fn lane(&self, lane: u32) -> bool {
        has(&self.lanes, lane)
    }

    /// Returns the lanes of a mask that the filter allows.
    pub(crate) fn bits(&self, bits: u64) -> u64 {
        (0..64)
            .filter(|lane| bits >> lane & 1 != 0 && self.lane(*lane))
            .fold(0, |kept, lane| kept | 1 << lane)
    }
}

/// Returns the labels of a source, each with the address of the instruction that follows the label. `lines` has the
/// address and the line number of each instruction.
pub(crate) fn labels(source: &str, lines: &[(u32, usize)]) -> Vec<(String, u32)> {
    let name = |line: &str| {
        let (name, _) = line.trim_start().split_once(':')?;
        let name = name.trim_start_matches('@');
        let fits = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
        (!name.is_empty() && name.chars().all(fits)).then(|| name.to_owned())
    };
    let address = |number: usize| {
        let after = lines.iter().filter(|(_, line)| *line >= number);
        after.min_by_key(|(pc, line)| (*line, *pc)).map(|(pc, _)| *pc)
    };
    let labels =
        source.lines().enumerate().filter_map(|(index, line)| Some((name(line)?, address(index + 1)?)));
    labels.collect()
}

#[cfg(test)]
mod tests {
    use reconverge_simt::random::Random;

    use super::*;

    fn program() -> Vec<ProgramLine> {
        let one = |pc, operations: &[&str]| ProgramLine {
            pc,
            operations: operations.iter().map(|name| (*name).to_owned()).collect(),
        };
        vec![one(0, &["mov"]), one(8, &["mul", "mul f32"]), one(16, &["add"]), one(24, &["exit"])]
    }

    fn allowed(filter: &str) -> Result<Allowed, String> {
        let filter: FaultFilter = toml::from_str(filter).unwrap();
        let labels = [("loop".to_owned(), 8), ("done".to_owned(), 24)];
        let registers = ["$r0", "$r1", "R2.x"].map(str::to_owned);
        filter.of_program(&program(), &labels, &registers)
    }

    fn pcs(filter: &str) -> Vec<u32> {
        let allowed = allowed(filter).unwrap();
        program().iter().map(|one| one.pc).filter(|pc| allowed.instruction(*pc, 0)).collect()
    }

    #[test]
    fn a_filter_keeps_instructions_by_address_range_label_and_opcode() {
        assert_eq!(pcs(""), [0, 8, 16, 24]);
        assert_eq!(pcs("pc = 8"), [8]);
        assert_eq!(pcs("pc = \"0x8-0x10\""), [8, 16]);
        assert_eq!(pcs("pc = [\"loop-done\", 0]"), [0, 8, 16, 24]);
        assert_eq!(pcs("pc = \"done\""), [24]);
        assert_eq!(pcs("opcode = \"MUL\""), [8]);
        assert_eq!(pcs("opcode = [\"mul\", \"add\"]\npc = \"8-8\""), [8]);
    }

    #[test]
    fn names_that_the_program_does_not_have_are_errors_with_those_that_it_has() {
        let wrong = |filter: &str| allowed(filter).unwrap_err();
        assert!(wrong("opcode = \"mull\"").contains("has no `mull`: did you mean `mul`?"));
        assert!(
            wrong("pc = \"lop\"")
                .contains("expected an address or a label, found `lop`: did you mean `loop`?")
        );
        assert_eq!(wrong("pc = 4"), "filter, pc: the program has no instruction at 4");
        assert!(wrong("register = \"$r7\"").ends_with("expected one of $r0, $r1, R2.x"));
        assert!(wrong("lane = \"a\"").starts_with("filter, lane: `a`: expected numbers and ranges"));
        assert!(wrong("group = \"3-1\"").starts_with("filter, group: `3-1`"));
    }

    /// The filter allows a number if and only if a range in one of the texts contains this number.
    #[test]
    fn lanes_and_groups_are_those_of_the_ranges() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let ends: Vec<[u32; 2]> = (0..3)
                .map(|_| {
                    let [one, other] = [random.below(64), random.below(64)];
                    [one.min(other), one.max(other)]
                })
                .collect();
            let text: Vec<String> = ends.iter().map(|[first, last]| format!("{first}-{last}")).collect();
            let allowed = allowed(&format!("lane = \"{0}\"\ngroup = \"{0}\"", text.join(","))).unwrap();
            let inside = |number: u32| ends.iter().any(|[first, last]| (*first..=*last).contains(&number));
            let mask = random.next_u64();
            for number in 0..64 {
                assert_eq!(allowed.lane(number), inside(number), "{text:?}");
                assert_eq!(allowed.instruction(0, number), inside(number), "{text:?}");
                assert_eq!(allowed.bits(mask) >> number & 1 != 0, mask >> number & 1 != 0 && inside(number));
            }
        }
    }

    #[test]
    fn a_register_stands_for_its_channels() {
        let allowed = allowed("register = [\"R2\", \"$r1\"]").unwrap();
        assert!(allowed.register("R2.x") && allowed.register("$r1") && !allowed.register("$r0"));
        assert!(!allowed.register("R22.x"));
    }

    #[test]
    fn a_label_is_the_next_instruction_of_the_source() {
        let source = ".isa tesla\nstart:\n\n    mov\n@body: mul\nL8:\n";
        let found = labels(source, &[(0, 4), (8, 5)]);
        assert_eq!(found, [("start".to_owned(), 0), ("body".to_owned(), 8)]);
    }
}
