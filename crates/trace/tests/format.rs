//! The file format: a reader returns the records that were written, and reports truncated or changed bytes.

use std::io::Cursor;

use proptest::prelude::*;
use reconverge_simt::observe::together;
use reconverge_simt::{Event, Lane, Mask, Observer};
use reconverge_trace::{
    Error, Following, Header, Limits, Line, Outcome, Reader, RegisterNames, VERSION, What, Writer,
};

/// A header with instructions at 0, 8, 16, ….
fn header(instructions: u32) -> Header {
    let line = |number| Line { address: 8 * number, text: format!("i{number}"), ..Line::default() };
    Header {
        isa: "tesla".to_owned(),
        lanes_per_group: 32,
        groups: 4,
        lanes: 128,
        listing: (0..instructions).map(line).collect(),
        ..Header::default()
    }
}

/// A call of a writer.
#[derive(Clone, Debug)]
enum Act {
    Issues(u32, Vec<u32>, u64),
    Event(u32, Event),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let lane = || (0u8..64).prop_map(Lane);
    let mask = || any::<u64>().prop_map(Mask);
    let event = prop_oneof![
        (mask(), mask()).prop_map(|(taken, not)| Event::Diverge { taken, not }),
        mask().prop_map(|mask| Event::Resume { mask }),
        mask().prop_map(|mask| Event::Reconverge { mask }),
        Just(Event::Push { kind: "JOINAT" }),
        Just(Event::Pop { kind: "LOOP" }),
        any::<u32>().prop_map(|to| Event::Jump { to }),
        mask().prop_map(|mask| Event::Trap { mask }),
        (lane(), any::<u32>(), any::<u32>()).prop_map(|(lane, register, value)| Event::Write {
            lane,
            register,
            value
        }),
        (lane(), any::<u32>()).prop_map(|(lane, address)| Event::Load { lane, address }),
        (lane(), any::<u32>(), any::<u32>()).prop_map(|(lane, address, value)| Event::Store {
            lane,
            address,
            value
        }),
    ];
    let issues = (0..4u32, prop::collection::vec((0..20u32).prop_map(|place| 8 * place), 1..6), 0..8u64);
    let act = prop_oneof![
        issues.prop_map(|(group, addresses, mask)| Act::Issues(group, addresses, mask)),
        (0..4u32, event).prop_map(|(group, event)| Act::Event(group, event)),
    ];
    prop::collection::vec(act, 0..200)
}

fn written(acts: &[Act], limits: Limits) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header(20), limits).unwrap();
    for act in acts {
        match act {
            Act::Issues(group, addresses, mask) => writer.issues(*group, addresses, Mask(*mask)).unwrap(),
            Act::Event(group, event) => writer.event(*group, *event).unwrap(),
        }
    }
    writer.finish(Outcome::default()).unwrap()
}

/// Every instruction and event with its group, in order.
fn flattened(reader: &mut Reader<Cursor<Vec<u8>>>) -> Vec<(u32, String)> {
    let records = reader.records().collect::<Result<Vec<_>, _>>().unwrap();
    let mut flat = Vec::new();
    for record in records {
        match record.what {
            What::Ran { pc, count, mask } => {
                let addresses = reader.addresses(pc, count).to_vec();
                flat.extend(addresses.iter().map(|pc| (record.group, format!("{pc} {mask:?}"))));
            }
            What::Push { kind } => flat.push((record.group, format!("push {}", reader.kind(kind)))),
            What::Pop { kind } => flat.push((record.group, format!("pop {}", reader.kind(kind)))),
            other => flat.push((record.group, format!("{other:?}"))),
        }
    }
    flat
}

fn expected(acts: &[Act]) -> Vec<(u32, String)> {
    let mut flat = Vec::new();
    for act in acts {
        match act {
            Act::Issues(group, addresses, mask) => {
                flat.extend(addresses.iter().map(|pc| (*group, format!("{pc} {:?}", Mask(*mask)))));
            }
            Act::Event(group, Event::Push { kind }) => flat.push((*group, format!("push {kind}"))),
            Act::Event(group, Event::Pop { kind }) => flat.push((*group, format!("pop {kind}"))),
            Act::Event(group, event) => flat.push((*group, format!("{event:?}"))),
        }
    }
    flat
}

/// Records of a key: 0 and 1 do not diverge, 2 is a branch and its join, 3 is a branch whose last side continues, and 4
/// has a mask that does not follow from the others.
fn by_key(group: u32, key: u32, active: u64, first: u64) -> Vec<Act> {
    let (all, taken, not) = (Mask(active), Mask(first), Mask(active & !first));
    let branch = || {
        vec![
            Act::Event(group, Event::Push { kind: "BRANCH" }),
            Act::Event(group, Event::Diverge { taken, not }),
            Act::Event(group, Event::Jump { to: 40 }),
            Act::Issues(group, vec![40, 48], first),
            Act::Event(group, Event::Pop { kind: "BRANCH" }),
            Act::Event(group, Event::Resume { mask: not }),
            Act::Issues(group, vec![24], not.0),
        ]
    };
    let meets = Act::Event(group, Event::Reconverge { mask: all });
    match key {
        0 => vec![Act::Issues(group, vec![0, 8], active)],
        1 => vec![
            Act::Issues(group, vec![16], active),
            Act::Event(group, Event::Push { kind: "JOINAT" }),
            Act::Issues(group, vec![32], active),
        ],
        2 => branch().into_iter().chain([meets, Act::Issues(group, vec![56], active)]).collect(),
        3 => branch(),
        _ => branch().into_iter().chain([Act::Issues(group, vec![56], !active)]).collect(),
    }
}

/// Announces what is in an act.
fn announce(observer: &mut impl Observer, act: &Act) {
    match act {
        Act::Issues(_, addresses, mask) => observer.issues(addresses, Mask(*mask)),
        Act::Event(_, event) => observer.event(*event),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(acts in acts()) {
        let mut reader = Reader::new(Cursor::new(written(&acts, Limits::default()))).unwrap();
        prop_assert_eq!(flattened(&mut reader), expected(&acts));
        prop_assert!(reader.problem().is_none());
        let issued = acts.iter().map(|act| match act { Act::Issues(_, list, _) => list.len(), _ => 0 });
        prop_assert_eq!(reader.end().unwrap().totals.instructions, issued.sum::<usize>() as u64);
    }

    /// Loops. Their records are copies of earlier ones, with masks that follow from others and masks that do not.
    #[test]
    fn what_repeats_is_read(acts in acts(), rounds in prop::collection::vec((any::<u64>(), 0..4u32), 0..40)) {
        let mut looped = Vec::new();
        let mut active = u64::MAX;
        for (bits, group) in rounds {
            let (taken, not) = (active & bits, active & !bits);
            looped.push(Act::Issues(group, vec![0, 8, 16], active));
            if bits % 3 > 0 {
                looped.push(Act::Event(group, Event::Push { kind: "BRANCH" }));
                looped.push(Act::Event(group, Event::Diverge { taken: Mask(taken), not: Mask(not) }));
                looped.push(Act::Issues(group, vec![40, 48], taken));
                looped.push(Act::Event(group, Event::Resume { mask: Mask(not) }));
                looped.push(Act::Issues(group, vec![32], not));
                looped.push(Act::Event(group, Event::Reconverge { mask: Mask(active) }));
            }
            if bits % 5 == 0 {
                active = bits;
                looped.extend(acts.iter().take(7).cloned());
            }
            looped.push(Act::Event(group, Event::Jump { to: 0 }));
        }
        let mut reader = Reader::new(Cursor::new(written(&looped, Limits::default()))).unwrap();
        prop_assert_eq!(flattened(&mut reader), expected(&looped));
    }

    /// Events that an engine announces by keys, as [`together`] requires, between other events.
    #[test]
    fn what_comes_together_is_read(
        rounds in prop::collection::vec((0..5u32, any::<(u64, u64)>(), 0..6u32, 0..40u32), 0..200), acts in acts(),
    ) {
        let mut writer = Writer::new(Vec::new(), &header(20), Limits::default()).unwrap();
        let mut recording = writer.recording();
        let mut said: Vec<Act> = Vec::new();
        let (mut active, mut parted, mut counted) = (u64::MAX, 0, 0);
        for (key, (bits, other), change, act) in rounds {
            if change == 0 {
                active = other | 3;
            }
            let key = if (active & bits).count_ones() > 0 && active & !bits != 0 { key } else { key % 2 };
            let first = if key < 2 { Mask::NONE } else { Mask(active & bits) };
            let group = key % 2;
            recording.group(group as usize);
            let coming = by_key(group, key, active, first.0);
            together(&mut recording, 7 * key, Mask(active), first, |recording| {
                coming.iter().for_each(|act| announce(recording, act));
            });
            parted += u64::from(key >= 2);
            counted += coming.iter().map(|act| match act {
                Act::Issues(_, list, mask) => list.len() as u64 * u64::from(mask.count_ones()),
                Act::Event(..) => 0,
            }).sum::<u64>();
            if key == 3 && change > 2 {
                active &= !first.0;
            }
            said.extend(coming);
            // The mask of a side, which can be a mask that the trace stores now.
            if change == 5 {
                let mask = if act % 2 == 0 { first } else { Mask(active) - first };
                recording.event(Event::Reconverge { mask });
                said.push(Act::Event(group, Event::Reconverge { mask }));
            }
            if let Some(Act::Event(_, event)) = acts.get(act as usize) {
                recording.event(*event);
                said.push(Act::Event(group, *event));
                parted += u64::from(matches!(event, Event::Diverge { .. }));
            }
        }
        let file = writer.finish(Outcome::default()).unwrap();
        let mut reader = Reader::new(Cursor::new(file)).unwrap();
        prop_assert_eq!(flattened(&mut reader), expected(&said));
        let totals = reader.end().unwrap().totals;
        prop_assert_eq!((totals.divergences, totals.lane_instructions), (parted, counted));
    }

    #[test]
    fn changed_bytes_never_panic(acts in acts(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut file = written(&acts, Limits::default());
        let at = at.index(file.len());
        file[at] = to;
        if let Ok(mut reader) = Reader::new(Cursor::new(file)) {
            let _ = reader.records().collect::<Vec<_>>();
        }
    }

    #[test]
    fn a_file_that_breaks_off_gives_the_blocks_before_or_says_that_it_has_none(
        acts in acts(), size in any::<prop::sample::Index>(),
    ) {
        let mut file = written(&acts, Limits::default());
        file.truncate(size.index(file.len()));
        match Reader::new(Cursor::new(file)) {
            Ok(mut reader) => {
                prop_assert!(reader.problem().is_some());
                prop_assert!(reader.records().all(|record| record.is_ok()));
            }
            Err(error) => {
                let early = matches!(error, Error::NotATrace | Error::LineEnds | Error::NoHeader { .. });
                prop_assert!(early, "{error}");
            }
        }
    }
}

/// The steps of instructions and events, by the rule of [`Record::step`](reconverge_trace::Record).
fn steps(acts: &[Act]) -> Vec<u64> {
    let (mut issued, mut last) = (0, [None::<u64>; 4]);
    let mut steps = Vec::new();
    for act in acts {
        match act {
            Act::Issues(group, addresses, _) => {
                steps.extend(issued..issued + addresses.len() as u64);
                issued += addresses.len() as u64;
                last[*group as usize] = Some(issued - 1);
            }
            Act::Event(group, _) => steps.push(last[*group as usize].unwrap_or(issued)),
        }
    }
    steps
}

proptest! {
    /// Groups that alternate, across the ends of blocks.
    #[test]
    fn an_event_has_the_step_of_its_group_s_last_instruction(acts in acts(), flushed in 1..20usize) {
        let mut writer = Writer::new(Vec::new(), &header(20), Limits::default()).unwrap();
        for (number, act) in acts.iter().enumerate() {
            match act {
                Act::Issues(group, addresses, mask) => writer.issues(*group, addresses, Mask(*mask)).unwrap(),
                Act::Event(group, event) => writer.event(*group, *event).unwrap(),
            }
            if number % flushed == 0 {
                writer.flush().unwrap();
            }
        }
        let mut reader = Reader::new(Cursor::new(writer.finish(Outcome::default()).unwrap())).unwrap();
        let read: Vec<u64> = reader.records().map(|record| record.unwrap()).flat_map(|record| {
            let count = if let What::Ran { count, .. } = record.what { u64::from(count) } else { 1 };
            record.step..record.step + count
        }).collect();
        prop_assert_eq!(read, steps(&acts));
    }
}

#[test]
fn a_register_and_the_memory_of_an_access_are_named() {
    let line = |address, loads: &[&str], stores: Option<&str>| Line {
        address,
        loads: loads.iter().map(|space| (*space).to_owned()).collect(),
        stores: stores.map(str::to_owned),
        ..Line::default()
    };
    let listing = vec![line(0, &["s[]", "c0[]"], None), line(8, &["LDS"], Some("g14[]"))];
    let file = |name: &str, first, count, channels: &str| RegisterNames {
        name: name.to_owned(),
        first,
        count,
        channels: channels.to_owned(),
    };
    let registers = vec![file("$r", 0, 128, ""), file("$c", 0x90, 4, ""), file("R", 0x200, 2, "xyzw")];
    let header = Header { listing, registers, ..Header::default() };
    let mut writer = Writer::new(Vec::new(), &header, Limits::default()).unwrap();
    let lane = Lane(1);
    let load = Event::Load { lane, address: 16 };
    let write = |register| Event::Write { lane, register, value: 5 };
    writer.issues(0, &[0], Mask(3)).unwrap();
    let mut event = |event| writer.event(0, event).unwrap();
    [load, load, write(0x91), write(0x205), write(0x400)].into_iter().for_each(&mut event);
    writer.issues(0, &[8], Mask(3)).unwrap();
    for event in [load, load, Event::Store { lane, address: 32, value: 1 }] {
        writer.event(0, event).unwrap();
    }
    let mut reader = Reader::new(Cursor::new(writer.finish(Outcome::default()).unwrap())).unwrap();
    let records = reader.block(0).unwrap();
    let mut following = Following::default();
    let texts: Vec<String> = records
        .iter()
        .map(|record| {
            let place = following.take(&reader, record);
            reader.described(&record.what, place.space)
        })
        .collect();
    assert_eq!(
        texts,
        [
            "",
            "lane 1 loads s[0x10]",
            "lane 1 loads c0[0x10]",
            "lane 1 writes $c1: 0x00000005",
            "lane 1 writes R1.y: 0x00000005",
            "lane 1 writes register 1024: 0x00000005",
            "",
            "lane 1 loads LDS 0x10",
            "lane 1 loads LDS 0x10",
            "lane 1 stores 0x00000001 at g14[0x20]",
        ]
    );
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let mut file = written(&[], Limits::default());
    file[8] = 9;
    let error = Reader::new(Cursor::new(file)).unwrap_err().to_string();
    assert!(error.contains("found 9") && error.contains(&format!("version {VERSION}")), "{error}");
}

#[test]
fn a_file_that_is_no_trace_says_how_to_make_one() {
    let error = Reader::new(Cursor::new(b"\x7fELF....".to_vec())).unwrap_err().to_string();
    assert!(error.contains("reconverge trace"), "{error}");
}

#[test]
fn changed_line_ends_are_named() {
    let error = Reader::new(Cursor::new(b"RTRACE\n\x01\0....".to_vec())).unwrap_err();
    assert!(matches!(error, Error::LineEnds));
}

#[test]
fn a_bound_is_kept_and_the_file_says_where_it_was_reached() {
    let mut writer = Writer::new(Vec::new(), &header(20), Limits { bytes: 1000 }).unwrap();
    for number in 0..200_000u64 {
        // Masks without a pattern.
        let mask = Mask(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        writer.issues(0, &[8 * (number as u32 % 20)], mask).unwrap();
    }
    assert!(writer.is_full());
    let file = writer.finish(Outcome::default()).unwrap();
    let reader = Reader::new(Cursor::new(file)).unwrap();
    let end = reader.end().unwrap();
    assert_eq!(end.totals.instructions, 200_000);
    assert_eq!(end.bound_at, Some((1 << 16) - 1), "one block is written whole");
    assert_eq!(reader.blocks().len(), 1);
}

#[test]
fn a_block_is_read_without_those_before_it() {
    let acts: Vec<Act> =
        (0..100_000).map(|number| Act::Event(number % 4, Event::Jump { to: number })).collect();
    let mut reader = Reader::new(Cursor::new(written(&acts, Limits::default()))).unwrap();
    let last = reader.blocks().len() - 1;
    assert_eq!(last, 1);
    let records = reader.block(last).unwrap();
    assert_eq!(records.last().unwrap().what, What::Jump { to: 99_999 });
}

#[test]
fn an_instruction_outside_the_listing_is_an_error() {
    let mut writer = Writer::new(Vec::new(), &header(2), Limits::default()).unwrap();
    let error = writer.issues(0, &[4], Mask::first(1)).unwrap_err();
    assert!(matches!(error, Error::UnknownInstruction { pc: 4 }));
}

#[test]
fn an_observer_notes_an_instruction_outside_the_listing_and_goes_on() {
    let mut writer = Writer::new(Vec::new(), &header(2), Limits::default()).unwrap();
    let mut recording = writer.recording();
    for number in 0..200_000u32 {
        recording.issues(&[0, 8], Mask(number.into()));
        recording.issues(&[4], Mask::first(1));
    }
    assert_eq!(writer.steps(), 600_000);
    let error = writer.finish(Outcome::default()).unwrap_err();
    assert!(matches!(error, Error::UnknownInstruction { pc: 4 }), "{error}");
}

/// A file of three blocks with a record of each type, and where its blocks end.
fn small() -> (Vec<u8>, Vec<u64>) {
    let mut writer = Writer::new(Vec::new(), &header(3), Limits::default()).unwrap();
    let (lane, mask) = (Lane(3), Mask(0b11));
    for round in 0..3 {
        writer.issues(0, &[0, 8, 16], mask).unwrap();
        for event in [
            Event::Diverge { taken: Mask(1), not: Mask(2) },
            Event::Push { kind: "JOINAT" },
            Event::Pop { kind: "JOINAT" },
            Event::Resume { mask },
            Event::Reconverge { mask },
            Event::Jump { to: 8 * round },
            Event::Write { lane, register: round, value: 7 },
            Event::Load { lane, address: 64 },
            Event::Store { lane, address: 64, value: 9 },
            Event::Trap { mask },
        ] {
            writer.event(round, event).unwrap();
        }
        writer.flush().unwrap();
    }
    let file = writer.finish(Outcome::default()).unwrap();
    let reader = Reader::new(Cursor::new(file.clone())).unwrap();
    let starts: Vec<u64> = reader.blocks().iter().map(|block| block.offset).collect();
    let end = u64::from_le_bytes(file[file.len() - 16..file.len() - 8].try_into().unwrap());
    (file, starts[1..].iter().copied().chain([end]).collect())
}

#[test]
fn of_a_file_that_is_cut_anywhere_the_blocks_before_the_cut_are_read() {
    let (file, ends) = small();
    for size in 0..file.len() {
        match Reader::new(Cursor::new(file[..size].to_vec())) {
            Ok(mut reader) => {
                assert!(reader.problem().is_some(), "{size} bytes");
                let whole = ends.iter().filter(|end| **end <= size as u64).count();
                assert_eq!(reader.blocks().len(), whole, "{size} bytes");
                assert_eq!(reader.records().filter(|record| record.is_ok()).count(), 11 * whole);
            }
            Err(error) => {
                let early = matches!(error, Error::NotATrace | Error::LineEnds | Error::NoHeader { .. });
                assert!(early && size < ends[0] as usize, "{size} bytes: {error}");
            }
        }
    }
}

#[test]
fn a_changed_bit_anywhere_is_noticed_or_changes_nothing() {
    let (file, _) = small();
    let records = |file: Vec<u8>| {
        let mut reader = Reader::new(Cursor::new(file))?;
        let mut records = reader.records().collect::<Result<Vec<_>, _>>()?;
        // Reporting that the file is incomplete is as good as an error.
        if reader.problem().is_some() {
            records.clear();
        }
        Ok::<_, Error>(records)
    };
    let whole = records(file.clone()).unwrap();
    assert_eq!(whole.len(), 33);
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut changed = file.clone();
            changed[at] ^= 1 << bit;
            if let Ok(read) = records(changed) {
                assert!(read.is_empty() || read == whole, "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn a_block_whose_masks_have_no_pattern_is_stored_as_it_is() {
    let act = |number: u64, mask: u64| Act::Issues(0, vec![8 * (number as u32 % 20)], mask);
    let size_and_records = |acts: &[Act]| {
        let file = written(acts, Limits::default());
        let size = file.len();
        assert_eq!(flattened(&mut Reader::new(Cursor::new(file)).unwrap()), expected(acts));
        size
    };
    let mix = |number: u64| {
        let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (number ^ number >> 31).wrapping_mul(0x94d0_49bb_1331_11eb)
    };
    let random: Vec<Act> = (0..20_000).map(|number| act(number, mix(number))).collect();
    let regular: Vec<Act> = (0..20_000).map(|number| act(number, u64::MAX >> (number % 50) << 7)).collect();
    // Nine bytes per mask, which packing does not reduce.
    let sizes = (size_and_records(&random), size_and_records(&regular));
    assert!(sizes.0 > 20_000 * 9 && sizes.1 < 20_000, "{sizes:?}");
}
