use super::*;

const R: &str = "$r";

fn slot(number: u32) -> Slot {
    Slot { file: R, number: Some(number) }
}

fn op(operation: &'static str, fidelity: Fidelity, reads: &[(u32, Role)], writes: &[u32]) -> Uses {
    let read = |(number, role): &(u32, Role)| Read { slot: slot(*number), role: *role, quad: false };
    Uses {
        reads: reads.iter().map(read).collect(),
        writes: writes.iter().copied().map(slot).collect(),
        ..Uses::new(operation, fidelity)
    }
}

use Fidelity::{Approximate, Exact, Specified};
use Role::{Address, Flow, Output, Value};

/// An instruction that writes the reciprocal of register 0 to register 1.
fn rcp() -> Uses {
    op("rcp", Approximate, &[(0, Value)], &[1])
}

fn add(from: u32, to: u32) -> Uses {
    op("add", Exact, &[(from, Value)], &[to])
}

const GLOBAL: Space = Space { number: Some(14), ..Space::shared("g[]") };
const LOCAL: Space = Space::private("l[]");
const SHARED: Space = Space::shared("s[]");

/// Tracks a program with instructions at 0, 8, 16, and so on. `run` supplies the events.
fn follow(program: Vec<Vec<Uses>>, run: impl FnOnce(&mut Taint)) -> Exactness {
    let uses = program.into_iter().enumerate().map(|(number, uses)| (number as u32 * 8, uses)).collect();
    let mut taint = Taint::new(uses, 2, HashMap::from([(7, Mask(0b0010))]));
    run(&mut taint);
    taint.finish()
}

/// Issues all instructions in order, for four lanes.
fn straight(program: Vec<Vec<Uses>>) -> Exactness {
    let addresses: Vec<u32> = (0..program.len() as u32).map(|number| number * 8).collect();
    follow(program, |taint| taint.issues(0, &addresses, Mask::first(4)))
}

fn write(lane: u8, register: u32) -> Event {
    Event::Write { lane: Lane(lane), register, value: 0 }
}

fn load(lane: u8, address: u32) -> Event {
    Event::Load { lane: Lane(lane), address }
}

fn store(lane: u8, address: u32) -> Event {
    Event::Store { lane: Lane(lane), address, value: 0 }
}

#[test]
fn an_inexact_value_is_reported_for_what_it_is_read_for() {
    for (role, uses) in [
        (Flow, op("bra", Specified, &[(2, Flow)], &[])),
        (Address, op("ld", Specified, &[(2, Address)], &[3])),
        (Output, op("st", Specified, &[(2, Output)], &[])),
    ] {
        let found = straight(vec![vec![rcp()], vec![add(1, 2)], vec![uses]]);
        let worst = found.worst(role).unwrap();
        assert_eq!((worst.pc, worst.lane, worst.grade.fidelity), (16, Lane(0), Approximate), "{role:?}");
        assert_eq!((worst.grade.pc, worst.grade.operation), (0, "rcp"));
        assert_eq!(found.worse_than(Specified).unwrap().role, role);
        assert_eq!(found.worse_than(Approximate), None);
        for other in [Flow, Address, Output].into_iter().filter(|other| *other != role) {
            assert_eq!(found.worst(other), None);
        }
    }
}

#[test]
fn an_inexact_value_that_nothing_uses_reaches_nothing() {
    let exact = op("st", Specified, &[(5, Output)], &[]);
    let found = straight(vec![vec![rcp()], vec![exact]]);
    assert_eq!(found.worse_than(Exact), None);
    assert_eq!(found.worst(Output).unwrap().grade, Grade::EXACT);
}

#[test]
fn a_register_that_is_written_anew_is_exact_again() {
    let found = straight(vec![vec![rcp()], vec![add(5, 1)], vec![op("st", Exact, &[(1, Output)], &[])]]);
    assert_eq!(found.worse_than(Exact), None);
}

#[test]
fn lanes_are_apart() {
    let program = vec![vec![rcp()], vec![op("bra", Specified, &[(1, Flow)], &[])]];
    let found = follow(program, |taint| {
        taint.issues(0, &[0], Mask(0b1000));
        taint.issues(0, &[8], Mask(0b0111));
        taint.issues(1, &[8], Mask(0b1111));
        assert_eq!(taint.clone().finish().worse_than(Exact), None);
        taint.issues(0, &[8], Mask(0b1111));
    });
    let first = found.worse_than(Exact).unwrap();
    assert_eq!((first.group, first.lane), (0, Lane(3)));
}

#[test]
fn operations_side_by_side_read_before_any_writes() {
    let program = vec![vec![rcp()], vec![add(5, 1), add(1, 2)], vec![op("bra", Exact, &[(2, Flow)], &[])]];
    assert_eq!(straight(program).worst(Flow).unwrap().grade.fidelity, Approximate);
    // If an instruction computes a value and also outputs this value, the output is the new value.
    let exit = op("exit", Specified, &[(1, Output)], &[]);
    assert_eq!(straight(vec![vec![rcp(), exit]]).worst(Output).unwrap().grade.fidelity, Approximate);
}

#[test]
fn memory_keeps_grades_by_word_and_private_memory_by_lane() {
    let stores = |space| Uses { stores: Some(space), ..op("st", Exact, &[(1, Value)], &[]) };
    let loads = |space| Uses { loads: Some(space), ..op("ld", Exact, &[], &[2]) };
    let through = |space, group: usize, lane: u8, address| {
        let program = vec![
            vec![rcp()],
            vec![stores(space)],
            vec![loads(space)],
            vec![op("bra", Exact, &[(2, Flow)], &[])],
        ];
        let found = follow(program, |taint| {
            taint.issues(0, &[0], Mask::first(4));
            taint.issues(0, &[8], Mask(0b0001));
            taint.event(0, store(0, 0x40));
            taint.issues(group, &[16], Mask::only(Lane(lane)));
            taint.event(group, load(lane, address));
            taint.issues(group, &[24], Mask::only(Lane(lane)));
        });
        found.worst(Flow).unwrap().grade.fidelity
    };
    assert_eq!(through(GLOBAL, 3, 2, 0x40), Approximate);
    assert_eq!(through(GLOBAL, 3, 2, 0x42), Approximate, "the same word");
    assert_eq!(through(GLOBAL, 0, 0, 0x44), Exact);
    assert_eq!(through(LOCAL, 0, 0, 0x40), Approximate);
    assert_eq!(through(LOCAL, 0, 1, 0x40), Exact, "another lane's");
    assert_eq!(through(SHARED, 1, 1, 0x40), Approximate, "the other warp of the block");
    assert_eq!(through(SHARED, 2, 1, 0x40), Exact, "another block's");
}

#[test]
fn a_store_of_less_than_a_word_leaves_the_rest_of_it() {
    let after = |narrow, address| {
        let second = Uses { narrow, ..op("st", Exact, &[(5, Value)], &[]) };
        let stores = |uses| vec![Uses { stores: Some(GLOBAL), ..uses }];
        let program = vec![
            vec![rcp()],
            stores(op("st", Exact, &[(1, Value)], &[])),
            stores(second),
            vec![Uses { loads: Some(GLOBAL), ..op("ld", Exact, &[], &[2]) }],
            vec![op("bra", Exact, &[(2, Flow)], &[])],
        ];
        let lane = Mask::only(Lane(0));
        let found = follow(program, |taint| {
            taint.issues(0, &[0, 8], lane);
            taint.event(0, store(0, 0x40));
            taint.issues(0, &[16], lane);
            taint.event(0, store(0, address));
            taint.issues(0, &[24], lane);
            taint.event(0, load(0, 0x40));
            taint.issues(0, &[32], lane);
        });
        found.worst(Flow).unwrap().grade.fidelity
    };
    assert_eq!(after(false, 0x40), Exact);
    assert_eq!([0x40, 0x41, 0x42].map(|address| after(true, address)), [Approximate; 3]);
}

#[test]
fn a_wide_access_takes_several_words() {
    let wide_store = Uses { stores: Some(GLOBAL), ..op("st", Exact, &[(0, Value), (1, Value)], &[]) };
    let wide_load = Uses { loads: Some(GLOBAL), ..op("ld", Exact, &[], &[4, 5]) };
    let narrow = Uses { loads: Some(GLOBAL), ..op("ld", Exact, &[], &[4]) };
    for (uses, address, grade) in
        [(narrow.clone(), 4, Approximate), (narrow, 8, Exact), (wide_load, 0, Approximate)]
    {
        let program = vec![
            vec![rcp()],
            vec![wide_store.clone()],
            vec![uses],
            vec![op("bra", Exact, &[(4, Flow)], &[])],
        ];
        let found = follow(program, |taint| {
            taint.issues(0, &[0, 8], Mask(1));
            taint.event(0, store(0, 0));
            taint.issues(0, &[16], Mask(1));
            taint.event(0, load(0, address));
            taint.issues(0, &[24], Mask(1));
        });
        assert_eq!(found.worst(Flow).unwrap().grade.fidelity, grade, "{address}");
    }
}

#[test]
fn a_lane_that_a_condition_leaves_out_keeps_what_it_had() {
    let conditional = |uses: Uses| Uses { conditional: true, ..uses };
    let reads = |lane: u8| {
        let program = vec![vec![conditional(rcp())], vec![op("bra", Exact, &[(1, Flow)], &[])]];
        let found = follow(program, |taint| {
            taint.issues(0, &[0], Mask::first(4));
            taint.event(0, write(2, 1));
            taint.issues(0, &[8], Mask::only(Lane(lane)));
        });
        found.worst(Flow).unwrap().grade.fidelity
    };
    assert_eq!([0, 1, 2, 3].map(reads), [Exact, Exact, Approximate, Exact]);
    // A conditional write may leave the value of some lanes unchanged. If this value is inexact, the value remains
    // inexact.
    let keeps = |lane: u8| {
        let program =
            vec![vec![rcp()], vec![conditional(add(5, 1))], vec![op("bra", Exact, &[(1, Flow)], &[])]];
        let found = follow(program, |taint| {
            taint.issues(0, &[0, 8], Mask::first(4));
            taint.event(0, write(2, 1));
            taint.issues(0, &[16], Mask::only(Lane(lane)));
        });
        found.worst(Flow).unwrap().grade.fidelity
    };
    assert_eq!([0, 1, 2, 3].map(keeps), [Approximate, Approximate, Exact, Approximate]);
}

#[test]
fn a_lane_that_does_not_store_lets_nothing_leave() {
    let predicated = Uses {
        stores: Some(GLOBAL),
        conditional: true,
        ..op("st", Exact, &[(1, Value), (1, Output), (1, Address)], &[])
    };
    let found = follow(vec![vec![rcp()], vec![predicated]], |taint| {
        taint.issues(0, &[0], Mask(0b1000));
        taint.issues(0, &[8], Mask::first(4));
        taint.event(0, store(1, 0));
    });
    assert_eq!(found.worst(Output).unwrap().lane, Lane(1));
    assert_eq!(found.worse_than(Exact), None);
}

#[test]
fn an_index_reads_any_register_and_writes_the_one_that_the_event_names() {
    let any = Slot { file: R, number: None };
    let indexed =
        Uses { reads: vec![Read { slot: any, role: Value, quad: false }], ..op("mov", Exact, &[], &[9]) };
    let program = vec![vec![rcp()], vec![indexed], vec![op("bra", Exact, &[(9, Flow)], &[])]];
    assert_eq!(straight(program).worst(Flow).unwrap().grade.fidelity, Approximate);
    let indexed = Uses { writes: vec![any], ..op("mov", Exact, &[(1, Value)], &[]) };
    for (read, grade) in [(7, Approximate), (8, Exact)] {
        let program = vec![vec![rcp()], vec![indexed.clone()], vec![op("bra", Exact, &[(read, Flow)], &[])]];
        let found = follow(program, |taint| {
            taint.issues(0, &[0, 8], Mask(1));
            taint.event(0, write(0, 7));
            taint.issues(0, &[16], Mask(1));
        });
        assert_eq!(found.worst(Flow).unwrap().grade.fidelity, grade, "{read}");
    }
}

#[test]
fn a_quad_reads_its_worst_lane() {
    let quad = Read { slot: slot(1), role: Address, quad: true };
    let program = vec![vec![rcp()], vec![Uses { reads: vec![quad], ..op("tex", Approximate, &[], &[4]) }]];
    let found = follow(program, |taint| {
        taint.issues(0, &[0], Mask(0b1000));
        taint.issues(0, &[8], Mask(0b1_0001));
    });
    let worst = found.worst(Address).unwrap();
    assert_eq!((worst.lane, worst.grade.fidelity), (Lane(0), Approximate));
    assert_eq!(found.worse_than(Exact).unwrap().lane, Lane(0));
}

#[test]
fn a_vote_is_as_exact_as_the_worst_lane_that_takes_part() {
    for (together, voters, grade) in
        [(true, 0b1111, Approximate), (false, 0b1111, Exact), (true, 0b0111, Exact)]
    {
        let vote = Uses { together, ..op("vote", Exact, &[(1, Value)], &[2]) };
        let program = vec![vec![rcp()], vec![vote], vec![op("bra", Exact, &[(2, Flow)], &[])]];
        let found = follow(program, |taint| {
            taint.issues(0, &[0], Mask(0b1000));
            taint.issues(0, &[8], Mask(voters));
            taint.issues(0, &[16], Mask(0b0001));
        });
        assert_eq!(found.worst(Flow).unwrap().grade.fidelity, grade, "{together} {voters:b}");
    }
}

#[test]
fn what_a_killed_lane_exports_does_not_leave() {
    let export = op("EXPORT", Specified, &[(1, Output)], &[]);
    let leaves = Uses { leaves: true, ..op("MOV", Exact, &[(1, Value)], &[9]) };
    for (dropped_if_killed, group, leaves_inexact) in [(true, 7, false), (false, 7, true), (true, 0, true)] {
        for uses in [&export, &leaves] {
            let uses = Uses { dropped_if_killed, ..uses.clone() };
            let found = follow(vec![vec![rcp()], vec![uses]], |taint| {
                taint.issues(group, &[0], Mask(0b0010));
                taint.issues(group, &[8], Mask(0b0011));
            });
            assert_eq!(found.worse_than(Specified).is_some(), leaves_inexact, "{dropped_if_killed} {group}");
        }
    }
}

#[test]
fn what_is_computed_into_an_output_has_the_operations_grade() {
    let leaves = Uses { leaves: true, ..op("RCP", Approximate, &[(0, Value)], &[9]) };
    assert_eq!(straight(vec![vec![leaves]]).worst(Output).unwrap().grade.operation, "RCP");
    let through = op("rcp", Approximate, &[(0, Value), (0, Output)], &[9]);
    assert_eq!(straight(vec![vec![through]]).worst(Output).unwrap().grade.operation, "rcp");
    let store = op("st", Specified, &[(0, Output)], &[]);
    assert_eq!(straight(vec![vec![store]]).worst(Output).unwrap().grade, Grade::EXACT);
}

#[test]
fn an_instruction_without_uses_is_named() {
    let found = follow(vec![vec![rcp()]], |taint| taint.issues(0, &[0, 8], Mask(1)));
    assert_eq!(found.unknown().collect::<Vec<_>>(), [8]);
}
