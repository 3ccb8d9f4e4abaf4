//! `uses` lists every read and write of an instruction. The tests compare random instructions of every row with the
//! reference interpreter.

use std::collections::BTreeSet;

use reconverge_simt::{Engine, Event, Lane, Mode, Options, Recorder};
use reconverge_tesla::code::Code;
use reconverge_tesla::graph::graph;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::run::Run;
use reconverge_tesla::state::{REGISTER_A, REGISTER_C};
use reconverge_tesla::table::TABLE;
use reconverge_tesla::text::assemble;
use reconverge_tesla::uses::uses;
use reconverge_testkit::Random;
use reconverge_testkit::tesla::{machine, value, words_of};

/// Changes the bits of registers in every lane: those that are, or are not, among `numbers`.
fn change(run: &mut Run, numbers: &BTreeSet<u32>, among: bool, random: &mut Random) {
    let warp = &mut run.block_mut().warps[0];
    for lane in (0..32).map(Lane) {
        for register in (0..128).filter(|register| numbers.contains(register) == among) {
            warp.set_r(lane, register as u8, value(random));
        }
        for c in (0..4).filter(|c| numbers.contains(&(REGISTER_C + c)) == among) {
            warp.set_c(lane, c as u8, random.next() as u8);
        }
        for a in (1..5).filter(|a| numbers.contains(&(REGISTER_A + a)) == among) {
            warp.set_a(lane, a as u8, random.below(0x220) as u16);
        }
    }
}

/// Executes a step, and returns its end and all its events.
fn stepped(run: &mut Run) -> (String, Vec<Event>) {
    let mut recorder = Recorder::default();
    let end = run.step(&mut recorder);
    (format!("{end:?}"), recorder.events)
}

#[test]
fn an_instruction_writes_what_is_listed_and_depends_on_nothing_else() {
    let mut seed = 0x51ed_270b_7a2c_9e35_u64;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let options =
        Options { mode: Mode::Lenient, engine: Engine::Reference, watchdog: 1000, ..Options::default() };
    let (mut compared, mut wrote, mut matters) = (0, 0, 0);
    for row in 0..TABLE.rows().len() {
        for _ in 0..60 {
            let chip = random.one_of(&Chip::ALL);
            let stage = random.one_of(&[Stage::Compute, Stage::Compute, Stage::Fragment]);
            let Some((words, _)) = words_of(row, chip, stage, &mut random) else { continue };
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let new = || machine(&words, chip, stage, &options, seed | 1);
            let code = Code::new(&words, 0, stage, chip);
            let listed = uses(&code, stage, &graph(&code, &[])).remove(&0).unwrap();
            let numbers = |slots: Vec<Option<u32>>| slots.into_iter().flatten().collect::<BTreeSet<u32>>();
            // The results that a fragment leaves at its end are not part of the instruction.
            let first = &listed[0];
            let reads = numbers(first.reads.iter().map(|read| read.slot.number).collect());
            let writes = numbers(first.writes.iter().map(|slot| slot.number).collect());
            let (mut plain, mut changed, mut other) = (new(), new(), new());
            change(&mut changed, &reads, false, &mut random);
            change(&mut other, &reads, true, &mut random);
            let expected = stepped(&mut plain);
            let what = format!("{words:08x?} {chip} {stage} seed {seed:#x}: {listed:?}");
            assert_eq!(stepped(&mut changed), expected, "{what}");
            assert_eq!(changed.block().warps[0].flow, plain.block().warps[0].flow, "{what}");
            for event in &expected.1 {
                match event {
                    Event::Write { register, .. } => {
                        assert!(writes.contains(register), "{what}: it writes {register:#x}");
                        wrote += 1;
                    }
                    Event::Load { .. } => assert!(first.loads.is_some(), "{what}: it loads"),
                    Event::Store { .. } => assert!(first.stores.is_some(), "{what}: it stores"),
                    _ => {}
                }
            }
            compared += 1;
            matters += usize::from(!reads.is_empty() && stepped(&mut other) != expected);
        }
    }
    println!("{compared} instructions, {wrote} writes, {matters} that other values change");
    assert!(compared > 5_000 && wrote > 50_000 && matters > 2_000, "{compared}, {wrote}, {matters}");
}

#[test]
fn a_vote_alone_gives_all_lanes_one_result() {
    for (text, together) in
        [("(e $c1) vote any $c2", true), ("vote all $c2", true), ("set $c2 # e u32 $r0 $r1", false)]
    {
        let words = assemble(&format!("{text}\nexit nop\n"), Chip::Gt215, Stage::Compute).unwrap().words();
        let code = Code::new(&words, 0, Stage::Compute, Chip::Gt215);
        let listed = uses(&code, Stage::Compute, &graph(&code, &[]));
        assert_eq!(listed[&0][0].together, together, "{text}");
    }
}
