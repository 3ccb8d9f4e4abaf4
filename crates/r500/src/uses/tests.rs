//! Compares the listed uses with the reference interpreter. A test executes one instruction from a random state. The
//! test then changes one register or flag of this state and executes the instruction again.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::texture::Image;
use reconverge_simt::{Event, Lane, Machine, Mask, Mode, Options, Recorder};
use reconverge_testkit::Random;

use super::*;
use crate::flow::LoopConstant;
use crate::group::{Group, OUTPUTS, color_row};
use crate::inst::decode;
use crate::launch::{Environment, Hardware, Launch};
use crate::texture::Texture;

const LANES: usize = 8;
/// The instructions use temporaries and constants with numbers below this limit.
const REGISTERS: u32 = 8;

/// Returns a random instruction that has a meaning and uses small register numbers.
fn record(random: &mut Random) -> ([u32; 6], Inst) {
    loop {
        let kind = random.below(4);
        let mut words: [u32; 6] = std::array::from_fn(|_| random.next());
        words[0] = words[0] & !3 | kind;
        if random.once_in(2) {
            words[0] &= !(7 << 3 | 7 << 25);
        }
        let kind = [InstType::ALU, InstType::OUT, InstType::FC, InstType::TEX][kind as usize];
        match kind {
            InstType::ALU | InstType::OUT => {
                let keep = if random.once_in(8) { 0x387 } else { 0x187 };
                for word in &mut words[1..3] {
                    *word &= 3 << 30 | keep << 20 | keep << 10 | keep;
                }
                words[4] &= if random.once_in(8) { !0x780 } else { !0xf80 };
                words[5] &= if random.once_in(8) { !0x780 } else { !0xf80 };
            }
            // The jump target is a slot of the program inside the open loop.
            InstType::FC => words[3] = words[3] & !(0x1ff << 16 | 0x1c << 8 | 0x1c) | 1 << 16,
            InstType::TEX => {
                let keep = if random.once_in(8) { !0x78_0078 } else { !0xf8_00f8 };
                words[2] &= keep;
                words[3] &= keep;
            }
        }
        if let Ok(inst) = decode(&words) {
            return (words, inst);
        }
    }
}

fn value(random: &mut Random) -> u32 {
    match random.below(4) {
        0 => [0, 0x8000_0000, 0x3f80_0000, 0xbf80_0000][random.below(4) as usize],
        _ => (random.below(32) as f32 / 8.0 - 2.0).to_bits(),
    }
}

/// Returns a group with random registers. The group is inside a loop of the kind that the next instruction requires.
fn group(random: &mut Random, words: [u32; 6], inst: &Inst) -> Group {
    let in_rep = matches!(&inst.body, Body::Fc(fc) if matches!(fc.inst.op, FcOp::BREAKREP | FcOp::ENDREP));
    let opened = if in_rep { FcOp::REP } else { FcOp::LOOP };
    let mut program = vec![2, 0, opened as u32 | 1 << 5, 0, 0, 0];
    program.extend(words);
    program.extend([5, 0, 0, 0, 0, 0]);
    let mut setup = Setup::new(&Program { words: program, ..Program::default() }).unwrap();
    setup.bools = random.next();
    setup.ints = std::array::from_fn(|_| LoopConstant {
        count: 1 + random.below(3) as u8,
        start: random.below(3) as u8,
        step: 1 + random.below(3) as i8,
    });
    setup.prepare();
    let texels = |unit: u32| {
        (0..16).map(move |texel| [0, 1, 2, 3].map(|channel| (unit * 64 + texel * 4 + channel) as f32))
    };
    let texture = |unit: u8| {
        let texels = texels(u32::from(unit)).map(|texel| texel.map(f32::to_bits)).collect();
        (unit, Texture { image: Arc::new(Image::flat(4, 4, texels).unwrap()), sampler: Default::default() })
    };
    let launch = Launch {
        lanes: LANES,
        environment: Environment {
            textures: (0..16).map(texture).collect(),
            hardware: Hardware { group_width: LANES, ..Hardware::default() },
            ..Environment::default()
        }
        .into(),
        ..Launch::default()
    };
    let options = Options { mode: Mode::Lenient, ..Options::default() };
    let all = Mask::first(LANES);
    let mut group = launch.group(&Arc::new(setup), &options, 0, all);
    group.step(&mut Recorder::default()).unwrap();
    for row in 0..color_row(0, 0) {
        group.rows[row][..LANES].fill_with(|| value(random));
    }
    group.constants =
        Arc::new(group.constants.iter().map(|_| std::array::from_fn(|_| value(random))).collect());
    group.predicate = std::array::from_fn(|_| Mask(u64::from(random.next())) & all);
    group.alu_result = Mask(u64::from(random.next())) & all;
    group
}

/// Returns every slot that an instruction can change, with its value in each lane.
fn places(group: &Group) -> Vec<(Slot, Vec<u32>)> {
    let lanes = |mask: Mask| (0..LANES).map(|lane| u32::from(mask.has(Lane(lane as u8)))).collect::<Vec<_>>();
    let row = |row: usize| group.rows[row][..LANES].to_vec();
    let mut places = Vec::new();
    for temp in 0..color_row(0, 0) {
        places.push((slot(TEMP, temp as u32), row(temp)));
    }
    for output in 0..OUTPUTS {
        let written = lanes(group.written.output(output));
        let values = row(color_row(0, 0) + output).into_iter().zip(written);
        places.push((slot(OUT, output as u32), values.map(|(value, written)| value + written).collect()));
    }
    for (channel, mask) in group.predicate.into_iter().enumerate() {
        places.push((slot(PRED, channel as u32), lanes(mask)));
    }
    places.push((slot(ALU_RESULT, 0), lanes(group.alu_result)));
    places.push((slot(AL, 0), vec![group.flow.al() as u32]));
    places
}

/// Returns the killed lanes, the next slot and the active lanes.
fn flow(group: &Group) -> (Mask, u16, Mask) {
    (group.killed, group.flow.pc(), group.flow.active())
}

/// Returns whether the entry `list` of reads or writes covers the slot `place`.
fn holds(list: &Slot, place: &Slot) -> bool {
    list.file == place.file && list.number.is_none_or(|number| Some(number) == place.number)
}

/// Changes the value of a slot in some lanes.
fn change(group: &mut Group, place: &Slot, lanes: Mask) {
    let number = place.number.unwrap() as usize;
    let mut setup = Setup::clone(&group.setup);
    match place.file {
        TEMP => {
            for lane in lanes.lanes() {
                group.rows[number][lane.index()] ^= 0xc0d0_0000;
            }
        }
        CONST => Arc::make_mut(&mut group.constants)[number / 4][number % 4] ^= 0xc0d0_0000,
        PRED => group.predicate[number] = Mask(group.predicate[number].0 ^ lanes.0),
        ALU_RESULT => group.alu_result = Mask(group.alu_result.0 ^ lanes.0),
        BOOL => setup.bools ^= 1 << number,
        INT => setup.ints[number] = LoopConstant { count: 0, start: 9, step: 9 },
        other => unreachable!("{other} is not changed"),
    }
    setup.prepare();
    group.setup = Arc::new(setup);
}

fn run(group: &Group) -> (Group, Vec<Event>) {
    let mut group = group.clone();
    let mut recorder = Recorder::default();
    let step = group.step(&mut recorder);
    step.unwrap_or_else(|trap| panic!("{trap:?}"));
    (group, recorder.events)
}

fn changeable() -> Vec<Slot> {
    let numbers = |file, count| (0..count).map(move |number| slot(file, number));
    let files =
        [(TEMP, REGISTERS * 4), (CONST, REGISTERS * 4), (PRED, 4), (ALU_RESULT, 1), (BOOL, 4), (INT, 4)];
    files.into_iter().flat_map(|(file, count)| numbers(file, count)).collect()
}

#[test]
fn what_is_written_is_in_writes_and_what_is_not_read_changes_nothing() {
    let mut random = Random::new(500);
    let (mut effects, mut quads) = (0, 0);
    for case in 0..12_000 {
        let (words, inst) = record(&mut random);
        let before = group(&mut random, words, &inst);
        let all = of_instruction(&inst);
        let what = format!("{case}: {words:08x?}, {all:?}");
        let (after, events) = run(&before);

        let writes = |place: &Slot| all.iter().flat_map(|uses| &uses.writes).any(|write| holds(write, place));
        let after_places = places(&after);
        for ((place, before), (_, after)) in places(&before).iter().zip(&after_places) {
            assert!(before == after || writes(place), "{place:?} is written in {what}");
        }
        for event in events {
            if let Event::Write { register, .. } = event {
                assert!(writes(&slot(TEMP, register)), "{register} is written in {what}");
            }
        }

        let changeable = changeable();
        for place in (0..16).map(|_| random.one_of(&changeable)) {
            let reads = all.iter().flat_map(|uses| &uses.reads).filter(|read| holds(&read.slot, &place));
            let (read, quad) = (reads.clone().next().is_some(), reads.clone().any(|read| read.quad));
            let by_group = matches!(place.file, CONST | BOOL | INT) || matches!(inst.body, Body::Fc(_));
            // If the instruction reads the slot, the test changes the slot only in lane 0. The results of all other
            // lanes must then stay the same, unless the instruction reads the quad.
            let lanes = if read { Mask(1) } else { Mask::first(LANES) };
            if read && by_group {
                continue;
            }
            let mut changed = before.clone();
            change(&mut changed, &place, lanes);
            let (changed_after, _) = run(&changed);
            let mut differ = Mask::NONE;
            for ((at, one), (_, other)) in after_places.iter().zip(&places(&changed_after)) {
                let lanes = Mask::from_fn(one.len(), |lane| one[lane.index()] != other[lane.index()]);
                if *at == place {
                    continue;
                }
                assert!(read || lanes.is_empty(), "{place:?} reaches {at:?} in {what}");
                differ |= lanes;
            }
            assert!(read || flow(&after) == flow(&changed_after), "{place:?} reaches flow in {what}");
            let others = differ - Mask(1);
            assert!(quad || others.is_empty(), "{place:?} of lane 0 reaches lanes {others} in {what}");
            assert!((others - Mask(15)).is_empty(), "{place:?} reaches another quad in {what}");
            effects += u32::from(read && differ.any());
            quads += u32::from(others.any());
        }
    }
    // The test fails if only few changes of slots that instructions read had an effect.
    assert!(effects > 500 && quads > 20, "{effects} {quads}");
}

fn texts(source: &str) -> Vec<String> {
    let program = crate::text::assemble(source).unwrap().program;
    let setup = Setup::new(&program).unwrap();
    let of = |uses: &Uses| {
        let spelled = |place: &Slot| match place.number {
            Some(number) => format!("{}{number}", place.file),
            None => format!("{}[]", place.file),
        };
        let reads: Vec<String> =
            uses.reads.iter().map(|read| format!("{}:{:?}", spelled(&read.slot), read.role)).collect();
        let writes: Vec<String> = uses.writes.iter().map(spelled).collect();
        format!("{} {}: {} -> {}", uses.operation, uses.fidelity, reads.join(" "), writes.join(" "))
    };
    uses(&setup)[&0].iter().map(of).collect()
}

#[test]
fn each_unit_has_its_operands_and_its_channels() {
    let found = texts(
        "ALU (pred.g) temp[2].r = MAD srcp.rrr, src0.aaa, src1.ggg : src0=temp[1] src1=const[3] srcp=SUB\n  + temp[2].a = MAX*off src0.a, src0.a : src0=temp[5]\n",
    );
    assert_eq!(
        found,
        [
            "MAD approximate: pred1:Flow temp4:Value const12:Value temp23:Value const13:Value -> temp8",
            "MAX specified: temp23:Value -> temp11",
        ]
    );
}

#[test]
fn a_presubtract_or_a_scale_makes_a_choice_approximate() {
    let grade = |operand: &str, omod: &str| {
        let source =
            format!("ALU temp[0].r = MAX{omod} {operand}.rrr, {operand}.rrr : src0=temp[1] srcp=NEG\n");
        texts(&source)[0].split(':').next().unwrap().to_owned()
    };
    assert_eq!(grade("src0", ""), "MAX specified");
    assert_eq!(grade("src0", "*off"), "MAX specified");
    assert_eq!(grade("src0", "*2"), "MAX approximate");
    assert_eq!(grade("srcp", ""), "MAX approximate");
}
