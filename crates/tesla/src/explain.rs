//! Explains an instruction in words: the result, the effect on the flow of lanes, and the meaning of each field.

use crate::inst::{
    Access, Base, Dst, End, Group, Idle, Inst, Mem, Memory, Op, Operand, Space, Special, Tex, TexOp,
};
use crate::lane::Modifiers;
use crate::lane::atomic::{Atomic, Atomic64};
use crate::lane::interpolate::Position;
use crate::lane::quad::{QuadOp, QuadSource};
use crate::parts::CONDITION_NAMES;
use crate::sentence::{Words, signedness};

/// Returns the effects of `inst` on the lanes of the warp and on the token stack. Each effect is one sentence. If every
/// active lane executes the instruction and continues at the next instruction, the list is empty. (tesla.md 9)
pub fn flow(inst: &Inst) -> Vec<&'static str> {
    let mut text = Vec::new();
    if !inst.guard.is_always() {
        text.push(
            "only lanes whose condition holds execute the instruction; the other active lanes stay active and do \
             nothing",
        );
    }
    text.extend(lanes_of(inst));
    text.extend(match inst.end {
        End::None => None,
        End::Exit => Some("exit: every active lane of the warp ends after the instruction"),
        End::Join => Some(
            "join, before the instruction: if a side of the branch still waits, that side runs first; after all lanes \
             have arrived, the warp pops the JOINAT entry, and all lanes continue together",
        ),
    });
    text
}

fn lanes_of(inst: &Inst) -> Option<&'static str> {
    match &inst.op {
        Op::Control(control) => Some(control.sentences(&words(inst)).1),
        Op::Group(Group::Vote { .. }) => {
            Some("evaluates the condition in all active lanes, and writes the same flags in all active lanes")
        }
        Op::Arith(_) | Op::Memory(_) | Op::Group(_) | Op::Idle(_) => None,
    }
}

// ---- Results

/// Returns sentences that describe the computation of `inst` with its operands.
pub fn meaning(inst: &Inst) -> Vec<String> {
    let mut text = Vec::new();
    text.push(match &inst.op {
        Op::Arith(arith) => arith.sentence(&words(inst)),
        Op::Memory(memory) => of_memory(memory, inst),
        Op::Group(group) => of_group(group, inst),
        Op::Control(control) => control.sentences(&words(inst)).0,
        Op::Idle(idle) => of_idle(idle, inst.end),
    });
    if let Some(c) = inst.cdst {
        let drops = if inst.dst == Dst::Discard { " The result itself is dropped." } else { "" };
        text.push(format!("The flags of the result (Z, S, C, O) go to $c{c}.{drops}"));
    } else if inst.dst == Dst::Discard {
        text.push("The result is dropped.".to_owned());
    }
    if !inst.guard.is_always() && !matches!(inst.op, Op::Group(Group::Vote { .. })) {
        let name = condition_name(inst.guard.condition.code());
        text.push(format!("Only lanes whose $c{} satisfies `{name}` execute the instruction.", inst.guard.c));
    }
    if inst.lanes != 15 {
        let lanes: Vec<String> =
            (0..4).filter(|lane| inst.lanes >> lane & 1 != 0).map(|lane| lane.to_string()).collect();
        text.push(match lanes.is_empty() {
            true => "No lane of a quad is written.".to_owned(),
            false => format!("Lanes {} of each quad are written.", lanes.join(", ")),
        });
    }
    let increments = inst.src.iter().find_map(|source| match source {
        Operand::Mem(Mem { base: Base::A(a), increment: true, offset, .. }) => Some((a, offset)),
        _ => None,
    });
    if let Some((a, offset)) = increments {
        text.push(format!("After the access, $a{a} grows by {offset}."));
    }
    text
}

fn condition_name(code: u8) -> &'static str {
    CONDITION_NAMES[usize::from(code & 31)].unwrap_or_default()
}

fn of_dst(dst: &Dst) -> String {
    match dst {
        Dst::None => "nothing".to_owned(),
        Dst::Discard => "The result".to_owned(),
        Dst::R32(r) => format!("$r{r}"),
        Dst::R16(half) => format!("$r{}{}", half.register(), if half.is_high() { "h" } else { "l" }),
        Dst::R64(r) => format!("$r{r}d"),
        Dst::R128(r) => format!("$r{r}q"),
        Dst::A(a) => format!("$a{a}"),
        Dst::C(c) => format!("$c{c}"),
        Dst::Out32(at) => format!("o[{at:#x}]"),
        Dst::Out16(at) => format!("both halves of o[{at:#x}]"),
    }
}

fn of_operand(operand: &Operand) -> String {
    match operand {
        Operand::None => "nothing".to_owned(),
        Operand::R32(r) => format!("$r{r}"),
        Operand::R16(half) => format!("$r{}{}", half.register(), if half.is_high() { "h" } else { "l" }),
        Operand::R64(r) => format!("$r{r}d"),
        Operand::R128(r) => format!("$r{r}q"),
        Operand::Imm(value) => format!("{value:#x}"),
        Operand::Mem(mem) => of_mem(mem),
        Operand::A(a) => format!("$a{a}"),
        Operand::C(c) => format!("$c{c}"),
        Operand::Special(special) => match special {
            Special::Physid => "$physid (lane, warp, multiprocessor)".to_owned(),
            Special::Clock => "$clock, the cycle counter".to_owned(),
            Special::Sr2 => "$sr2, which is 0".to_owned(),
            Special::Vstride => "$vstride, the spacing of the attributes of a vertex".to_owned(),
            Special::Pm(number) => format!("$pm{number}, a performance counter"),
            Special::Sampleid => "$sampleid, the sample's number".to_owned(),
            Special::Unknown(number) => format!("$sr{number}, which reads 0"),
        },
    }
}

fn of_mem(mem: &Mem) -> String {
    let space = match mem.space {
        Space::Const(bank) => format!("c{bank}"),
        Space::Local => "l".to_owned(),
        Space::Shared => "s".to_owned(),
        Space::Global(bank) => format!("g{bank}"),
        Space::Attribute => "a".to_owned(),
        Space::Primitive => "p".to_owned(),
        Space::Varying => "v".to_owned(),
        Space::Output => "o".to_owned(),
    };
    let base = match mem.base {
        Base::A(0) => None,
        Base::A(a) => Some(format!("$a{a}")),
        Base::R(r) => Some(format!("$r{r}")),
    };
    let sign = if mem.offset < 0 { "-" } else { "" };
    let offset = format!("{sign}{:#x}", mem.offset.unsigned_abs());
    let place = match base {
        None => offset,
        Some(base) if mem.offset == 0 || mem.increment => base,
        Some(base) => format!("{base} + {offset}"),
    };
    let access = match mem.access {
        Access::U8 => "the unsigned byte",
        Access::S8 => "the signed byte",
        Access::U16 => "the unsigned 16 bits",
        Access::S16 => "the signed 16 bits",
        Access::B32 => "the word",
        Access::B64 => "the 8 bytes",
        Access::B128 => "the 16 bytes",
    };
    format!("{access} at {space}[{place}]")
}

/// Returns a source and its modifiers, for example `-|$r1|`.
fn modified(operand: &Operand, modifiers: Modifiers) -> String {
    let text = of_operand(operand);
    match (modifiers.neg, modifiers.abs) {
        (false, false) => text,
        (true, false) => format!("-({text})"),
        (false, true) => format!("|{text}|"),
        (true, true) => format!("-|{text}|"),
    }
}

fn of_memory(memory: &Memory, inst: &Inst) -> String {
    let Words { dst, a, b, c, mb, .. } = words(inst);
    let place = a.strip_prefix("the ").unwrap_or(&a);
    match memory {
        Memory::Ld => format!("{dst} becomes {a}."),
        Memory::St => format!("The {place} becomes {b}."),
        Memory::LdLock => {
            format!("{dst} becomes {a}. If the lock of the word is free, the lane takes the lock.")
        }
        Memory::StUnlock => format!("The {place} becomes {b}, and its lock is free again."),
        Memory::Interp { position } => {
            let at = match position {
                Position::Centre => "at the fragment's centre",
                Position::Centroid => "at the centroid of the covered part",
                Position::Flat => "flat, of the provoking vertex",
            };
            let times = match inst.src[1] {
                Operand::None => String::new(),
                _ => format!(", times {mb}"),
            };
            format!("{dst} becomes the interpolant {a}, {at}{times}.")
        }
        Memory::Atom { atomic, signed } => {
            let new = atomic_in_words(*atomic, *signed, &b, &c);
            format!("{dst} becomes {a}, and {a} becomes {new}, in one step.")
        }
        Memory::Atom64 { atomic } => {
            format!("{dst} becomes {a}, and {a} becomes {}, in one step.", atomic64_in_words(*atomic, &b, &c))
        }
        Memory::Red { atomic, signed } => {
            format!("The {place} becomes {}, in one step.", atomic_in_words(*atomic, *signed, &b, &c))
        }
        Memory::Red64 { atomic } => {
            format!("The {place} becomes {}, in one step.", atomic64_in_words(*atomic, &b, &c))
        }
    }
}

fn atomic_in_words(atomic: Atomic, signed: bool, b: &str, c: &str) -> String {
    let kind = signedness(signed);
    match atomic {
        Atomic::Add => format!("the sum of the old value and {b}, {kind}"),
        Atomic::Exch => b.to_owned(),
        Atomic::Cas => format!("{c} if the old value equals {b}"),
        Atomic::Inc => format!("the old value plus one, or 0 if this sum exceeds {b}"),
        Atomic::Dec => format!("the old value minus one, or {b} if the old value is 0 or exceeds {b}"),
        Atomic::Max => format!("the larger of the old value and {b}, {kind}"),
        Atomic::Min => format!("the smaller of the old value and {b}, {kind}"),
        Atomic::And => format!("the old value and {b}, bit by bit"),
        Atomic::Or => format!("the old value or {b}, bit by bit"),
        Atomic::Xor => format!("the old value exclusive or {b}, bit by bit"),
    }
}

fn atomic64_in_words(atomic: Atomic64, b: &str, c: &str) -> String {
    match atomic {
        Atomic64::Add => format!("the sum of the old value and {b}, 64 bits"),
        Atomic64::Exch => b.to_owned(),
        Atomic64::Cas => format!("{c} if the old value equals {b}"),
    }
}

fn of_group(group: &Group, inst: &Inst) -> String {
    let Words { dst, a, b, .. } = words(inst);
    match group {
        Group::Quadop { ops, from } => {
            let from = match from {
                QuadSource::Lane(lane) => format!("lane {lane} of the quad"),
                QuadSource::Dx => "the horizontal neighbour".to_owned(),
                QuadSource::Dy => "the vertical neighbour".to_owned(),
            };
            let ops: Vec<String> = ops
                .iter()
                .enumerate()
                .map(|(lane, op)| {
                    let value = match op {
                        QuadOp::Add => "t + c",
                        QuadOp::Subr => "c - t",
                        QuadOp::Sub => "t - c",
                        QuadOp::Mov2 => "c",
                    };
                    format!("lane {lane}: {value}")
                })
                .collect();
            format!(
                "{dst} becomes {}, where t is {a} of {from}, and c is {b} of the lane itself.",
                ops.join(", ")
            )
        }
        Group::Tex(tex) => of_texture(tex),
        Group::Emit { vertex, restart } => match (vertex, restart) {
            (true, true) => "Emits o[] as a vertex and ends the strip.".to_owned(),
            (true, false) => "Emits o[] as a vertex.".to_owned(),
            (false, true) => "Ends the strip.".to_owned(),
            (false, false) => "Emits nothing.".to_owned(),
        },
        Group::Vote { all } => {
            let which = if *all { "all active lanes satisfy" } else { "any active lane satisfies" };
            let name = condition_name(inst.guard.condition.code());
            format!(
                "In every active lane, {dst} becomes S if {which} `{name}` in $c{}, else Z.",
                inst.guard.c
            )
        }
    }
}

fn of_texture(tex: &Tex) -> String {
    let last = tex.base + tex.count.saturating_sub(1);
    let sources = match tex.count {
        0 | 1 => format!("$r{}", tex.base),
        _ => format!("$r{} to $r{last}", tex.base),
    };
    let mut next = tex.base;
    let mut results = Vec::new();
    for (component, name) in ["x", "y", "z", "w"].into_iter().enumerate() {
        if tex.mask >> component & 1 != 0 {
            results.push(format!("{name} to $r{next}"));
            next = next.wrapping_add(1);
        }
    }
    let results = if results.is_empty() { "nothing is written".to_owned() } else { results.join(", ") };
    let what = match tex.op {
        TexOp::Auto => "Samples texture",
        TexOp::Bias => "Samples, with a bias of the level of detail, texture",
        TexOp::Lod => "Samples, at a given level of detail, texture",
        TexOp::Fetch => "Fetches one texel, by integer coordinates, of texture",
        TexOp::Size => "Returns the size of texture",
        TexOp::Csaa => "Reads coverage samples of texture",
        TexOp::Gather => "Gathers one component of four texels of texture",
        TexOp::Prep => "Prepares coordinates for texture",
        TexOp::QueryLod => "Returns the level of detail of texture",
    };
    let mut text = format!("{what} {} with sampler {}, at {sources}: {results}.", tex.texture, tex.sampler);
    for (on, more) in [
        (tex.cube, " The texture is a cube."),
        (tex.live, " Lanes that are only helpers are skipped."),
        (tex.deriv, " Derivatives are also used outside fragment programs."),
    ] {
        if on {
            text.push_str(more);
        }
    }
    if tex.offset != [0; 3] {
        let [x, y, z] = tex.offset;
        text.push_str(&format!(" Texels are offset by {x}, {y}, {z}."));
    }
    text
}

/// Returns the operands of an instruction in words.
fn words(inst: &Inst) -> Words {
    let [a, b, c] = [0, 1, 2].map(|source| of_operand(&inst.src[source]));
    let [ma, mb, mc] = [0, 1, 2].map(|source| modified(&inst.src[source], inst.modifiers[source]));
    let taken_by = if inst.guard.is_always() { "" } else { " in the lanes whose condition holds" };
    let (carry, negated) = (inst.guard.c, inst.modifiers[0].neg);
    Words { dst: of_dst(&inst.dst), a, b, c, ma, mb, mc, carry, negated, taken_by }
}

fn of_idle(idle: &Idle, end: End) -> String {
    match (idle, end) {
        (Idle::Nop, End::None) => "Computes nothing.".to_owned(),
        (Idle::Nop, End::Join) => {
            "Reconverges the sides of a branch: the side that arrives first waits for the other side. Then all lanes \
             continue together. The instruction has no other effect."
                .to_owned()
        }
        (Idle::Nop, End::Exit) => "Ends every active lane of the warp. The instruction has no other effect.".to_owned(),
        (Idle::PmEvent { event }, _) => format!("Counts performance event {event}."),
        (Idle::Brkpt, _) => "A breakpoint: continues if no debugger is attached.".to_owned(),
    }
}

// ---- Fields

/// Returns the meaning of a field of [`describe`](crate::decode::describe), as a sentence.
pub fn field(name: &str) -> &'static str {
    match name {
        "opcode" => "The bits that select this instruction among all.",
        "spare" => "Bits without a known meaning. The text keeps these bits as `bits`.",
        "not used by this operand choice" => "A field that another choice of operands would use.",
        "exit or join" => {
            "Whether the active lanes end after the instruction, or the warp joins before the instruction."
        }
        "predicate" | "condition" => {
            "The condition that a lane's flags must satisfy for the lane to execute."
        }
        "condition register" => "The $c register whose flags are read.",
        "lanes that take part" => "Condition and $c register that select the lanes that execute.",
        "flags output" => "Whether the flags of the result are written.",
        "flags register" => "The $c register that the flags of the result go to.",
        "lane mask" | "lanes" => "Which lanes of each quad are written.",
        "destination" => "Where the result goes.",
        "output" => "Whether the result goes to a register, or to o[] and the bit bucket.",
        "destination type" | "destination width" => "The type or width of the result.",
        "register width" => "Whether operands are 32-bit registers or halves of them.",
        "source type" => "The type that the source is read as.",
        "type" => "The type that the operands are read as.",
        "access mode" => {
            "How many bytes an s[] operand reads, and whether the value is zero-extended or sign-extended."
        }
        "source 1" => "The first source: a register, or the offset of a memory operand.",
        "source 2" => "The second source: a register, or the offset of a memory operand.",
        "source 3" => "The third source: a register, or the offset of a memory operand.",
        "kind of source 1" => "Whether the first source is a register or memory.",
        "kind of source 2" => "Whether the second source is a register, memory or an immediate.",
        "kind of source 3" => "Whether the third source is a register or memory.",
        "pair of c[] sources" => "Which sources are in c[]; one bank serves both.",
        "kind of shift count" => "Whether the shift count is a register or an immediate.",
        "inc" => "Whether the warp counts as arrived at the barrier.",
        "wait" => "Whether the warp waits until the barrier is complete.",
        "high" => "Whether bits 16 to 47 of the product are taken, rather than the low 32.",
        "deriv" => "Whether derivatives are also used outside fragment programs.",
        "lim" => "Whether the jump is limited. The documents do not state what is limited.",
        "sfu" => "Which unit executes the move; the result is the same.",
        "shift count" => "Number of bits by which the first source is shifted.",
        "post-increment" => {
            "Whether the address is $a alone. After the access, the instruction adds the offset to $a."
        }
        "immediate" => "The immediate: its low 6 bits are in the first word, its high 26 in the second.",
        "special register" => "Which special register is read.",
        "carry" => "Whether the carry flag of a $c register is added.",
        "comparison" => "For which outcomes of the comparison the result is true.",
        "operation" => "Which operation of this group is done.",
        "secondary opcode" => "Which product of this opcode is computed.",
        "rounding" => "How a result that the type cannot represent exactly is rounded.",
        "saturation" | "sat" => {
            "Whether the result is clamped: a float to 0…1, an integer to its signed range."
        }
        "neg" => "Whether the source's sign is flipped.",
        "abs" => "Whether the source's sign is cleared.",
        "not" => "Whether the source's bits are inverted.",
        "unlock" => "Whether the store releases the lock of its word.",
        "target" => "The code address in bytes. The fields hold the address in words.",
        "barrier" => "Which of the block's 16 barriers.",
        "count of warps" => "How many warps complete the barrier.",
        "event" => "The number of the performance event.",
        "texture" => "The number of the texture.",
        "sampler" => "The number of the sampler.",
        "texel offset" => "Offset of a coordinate, in texels.",
        "level of detail" => "How the level of detail is chosen.",
        "source lane" => "The lane of the quad whose first source is taken.",
        "operation of lane 0" => "Operation of lane 0 of a quad on the two values.",
        "operation of lane 1" => "Operation of lane 1 of a quad on the two values.",
        "operation of lane 2" => "Operation of lane 2 of a quad on the two values.",
        "operation of lane 3" => "Operation of lane 3 of a quad on the two values.",
        name if name.starts_with("destination components") => {
            "Which components of the result are written, to consecutive registers."
        }
        name if name.starts_with("source registers") => {
            "How many consecutive registers hold the coordinates."
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decode;
    use crate::inst::{Chip, Stage};

    #[test]
    fn flow_names_condition_branch_and_exit() {
        let branch = decode([0x1000_0003, 0x0000_0280], Chip::G80, Stage::Compute).unwrap();
        assert_eq!(flow(&branch).len(), 2);
        let exit = decode([0xf000_0001, 0xe000_0781], Chip::G80, Stage::Compute).unwrap();
        assert_eq!(flow(&exit), ["exit: every active lane of the warp ends after the instruction"]);
    }

    /// Visits instruction words for every row of the table. Bits that a row does not fix are random.
    fn some_words(mut visit: impl FnMut([u32; 2], Chip, Stage)) {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for row in crate::table::TABLE.rows() {
            for round in 0..200 {
                let open = if round == 0 { 0 } else { random() };
                let word = row.fixed | open & !row.mask;
                let (chip, stage) = (Chip::ALL[round % 5], Stage::ALL[round / 5 % 4]);
                visit([word as u32, (word >> 32) as u32], chip, stage);
            }
        }
    }

    #[test]
    fn every_instruction_has_a_meaning_in_sentences() {
        let mut seen = 0;
        some_words(|words, chip, stage| {
            let Ok(inst) = decode(words, chip, stage) else { return };
            seen += 1;
            let text = meaning(&inst);
            assert!(!text.is_empty());
            for sentence in text {
                assert!(sentence.ends_with('.') && sentence.len() > 5, "{sentence}");
                assert!(!sentence.contains("unknown") && !sentence.contains("  "), "{sentence}");
            }
        });
        assert!(seen > 10_000, "{seen}");
    }

    #[test]
    fn every_field_has_a_sentence() {
        let mut without = std::collections::BTreeSet::new();
        some_words(|words, chip, stage| {
            let described = crate::decode::describe(words, chip, stage).unwrap_or_default();
            without.extend(described.iter().map(|field| field.name).filter(|name| field(name).is_empty()));
        });
        assert!(without.is_empty(), "{without:?}");
    }

    #[test]
    fn a_meaning_names_the_operands() {
        let of = |words| meaning(&decode(words, Chip::G80, Stage::Compute).unwrap());
        assert_eq!(of([0x203f_8205, 0x0fff_ffff]), ["$r1 becomes $r1 + 0xffffffff, modulo 2^32."]);
        assert_eq!(of([0x1100_f204, 0]), ["$r1 becomes the word at s[0x24], 32 bits."]);
        assert_eq!(of([0xd00e_0409, 0x80c0_0780]), ["$r2 becomes the word at g14[$r2]."]);
        assert_eq!(
            of([0x3001_01fd, 0x6400_47c8]),
            [
                "The result becomes all ones where $r0 < $r1, else 0. The sources are unsigned 32-bit integers.",
                "The flags of the result (Z, S, C, O) go to $c0. The result itself is dropped.",
            ]
        );
        assert_eq!(
            of([0x1000_0003, 0x0000_0280])[1],
            "Only lanes whose $c0 satisfies `lg` execute the instruction."
        );
    }
}
