//! Tests of buffers, views and commits.

use super::*;

fn memory() -> Memory {
    Memory::new(vec![Buffer::new(0x1000, Vec::from_iter(0..64)), Buffer::new(0x10f0, vec![9; 32])]).unwrap()
}

fn word(store: &mut impl Store, address: u32) -> Option<u32> {
    let mut bytes = [0; 4];
    store.load(address, &mut bytes).then(|| u32::from_le_bytes(bytes))
}

#[test]
fn buffers_must_not_overlap_or_reach_beyond_the_last_address() {
    let at = |address, count| Buffer::new(address, vec![0; count]);
    assert_eq!(
        Memory::new(vec![at(0x20, 4), at(0x10, 0x11)]),
        Err(LayoutError::Overlap { first: 0x10, second: 0x20 })
    );
    assert_eq!(Memory::new(vec![at(u32::MAX, 2)]), Err(LayoutError::Beyond(u32::MAX)));
    assert!(Memory::new(vec![at(u32::MAX, 1), at(0, 16), at(16, 16)]).is_ok());
}

#[test]
fn a_buffer_is_added_only_where_there_is_room() {
    let at = |address, count| Buffer::new(address, vec![0; count]);
    let mut memory = Memory::new(vec![at(0x20, 16)]).unwrap();
    let clash = Err(LayoutError::Overlap { first: 0x20, second: 0x2f });
    assert_eq!(memory.insert(at(0x2f, 1)), clash);
    assert_eq!(memory.insert(at(0x1f, 2)), Err(LayoutError::Overlap { first: 0x1f, second: 0x20 }));
    assert_eq!(memory.insert(at(0x30, 4)), Ok(()));
    assert_eq!(memory.insert(at(0x10, 16)), Ok(()));
    let places: Vec<u32> = memory.buffers().iter().map(|buffer| buffer.address).collect();
    assert_eq!(places, [0x10, 0x20, 0x30]);
}

/// Code that stores host addresses of buffers compares layouts to find out whether the addresses are still valid. So
/// every change of the buffers must change the layout.
#[test]
fn a_memory_has_another_layout_whenever_its_buffers_may_have_other_addresses() {
    let mut memory = memory();
    let mut seen = vec![memory.layout()];
    let mut is_new = |layout: Option<Identity>| {
        let is_new = layout.is_some() && !seen.contains(&layout);
        seen.push(layout);
        is_new
    };
    let copy = memory.clone();
    assert!(is_new(copy.layout()) && copy == memory);
    assert!(is_new(Memory::default().layout()));
    memory.insert(Buffer::new(0, vec![0; 4])).unwrap();
    assert!(is_new(memory.layout()));
    memory.remove(0).unwrap();
    assert!(is_new(memory.layout()));
    let before = memory.layout();
    assert!(memory.store(0x1000, &[7; 4]));
    assert_eq!(memory.layout(), before, "the bytes stay where they are");
    let mut view = Tracked::new(&memory);
    assert!(is_new(view.layout()));
    assert!(view.store(0x1000, &[7; 4]));
    assert!(!is_new(view.layout()), "the group has read no buffer directly");
}

/// A group may read a buffer directly until its first store to the buffer. The group's later loads must return its own
/// stores, so they must not access the buffer.
#[test]
fn a_view_allows_direct_reads_of_a_buffer_until_the_group_stores_to_the_buffer() {
    let memory = memory();
    let mut view = Tracked::new(&memory);
    assert!(view.whole(0x1004, true).is_none(), "a view has no direct writes");
    assert!(view.whole(0xfff, false).is_none(), "no buffer contains the address");
    let (start, bytes) = view.whole(0x1004, false).unwrap();
    assert_eq!((start, bytes.len()), (0x1000, 0x40));
    let before = view.layout();
    assert!(view.store(0x1100, &[7; 4]));
    assert_eq!(view.layout(), before, "a store to another buffer");
    assert!(view.store(0x1000, &[7; 4]));
    assert_ne!(view.layout(), before, "a store to the buffer");
    assert!(view.whole(0x1004, false).is_none());
    assert_eq!(word(&mut view, 0x1000), Some(0x0707_0707));
}

/// Direct reads count as reads of the whole buffer.
#[test]
fn a_group_with_direct_reads_runs_again_if_an_earlier_group_wrote_to_the_buffer() {
    let memory = memory();
    let ran = |act: &dyn Fn(&mut Tracked<'_>)| {
        let mut view = Tracked::new(&memory);
        act(&mut view);
        view.finish().0
    };
    let earlier = ran(&|view| assert!(view.store(0x1000, &[7; 4])));
    let mut written = Written::before([&earlier]);
    written.add(&earlier);
    let reads = |address| ran(&|view| assert!(view.whole(address, false).is_some()));
    assert_eq!(written.judge(&reads(0x103c)), Verdict::Unknown);
    assert_eq!(written.judge(&reads(0x1100)), Verdict::Right);
}

#[test]
fn an_access_must_lie_in_one_buffer() {
    let mut memory = memory();
    assert_eq!(word(&mut memory, 0x103c), Some(0x3f3e_3d3c));
    for outside in [0x103d, 0x0fff, 0x1040, 0x110d, 0xffff_ffff, 0] {
        assert_eq!(word(&mut memory, outside), None, "{outside:#x}");
        let before = memory.clone();
        assert_eq!(word(&mut Tracked::new(&before), outside), None);
        assert!(!memory.store(outside, &[1; 4]));
        assert_eq!(memory, before);
    }
}

#[test]
fn a_view_sees_its_own_writes_and_the_memory_stays_as_it_was() {
    let memory = memory();
    let mut view = Tracked::new(&memory);
    assert!(view.store(0x10fe, &[1, 2, 3, 4])); // the bytes cross a page boundary
    assert_eq!(word(&mut view, 0x10fe), Some(0x0403_0201));
    assert_eq!(word(&mut view, 0x10fa), Some(0x0909_0909));
    assert_eq!(memory.bytes(0x10fe, 4), Some(&[9, 9, 9, 9][..]));
}

#[test]
fn a_view_is_to_its_group_what_the_memory_itself_would_be() {
    // Some buffers are adjacent, some share a page and a piece, and some span several pieces.
    let size = 64 * 256;
    let places =
        [(0x80, 700), (0x80 + 700, 100), (1000, 5000), (size - 100, 3 * size), (5 * size, 9), (6 * size, 0)];
    let buffers = places.map(|(address, count)| {
        let bytes: Vec<u8> = (0..=255).cycle().skip(address as usize % 251).take(count as usize).collect();
        Buffer::new(address, bytes)
    });
    let mut before = Memory::new(buffers.into()).unwrap();
    let mut state = 1u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        (state >> 8) % below
    };
    for _ in 0..20 {
        let (mut alone, mut view) = (before.clone(), Tracked::new(&before));
        for _ in 0..500 {
            let near = [0, 600, size - 200, 2 * size - 40, 5 * size - 40][random(5) as usize];
            let (address, count) = (near + random(400), random(40) as usize + 1);
            let mut bytes = [[0; 40]; 2];
            if random(4) == 0 {
                bytes[0].fill_with(|| random(256) as u8);
                let stored = view.store(address, &bytes[0][..count]);
                assert_eq!(alone.store(address, &bytes[0][..count]), stored);
                continue;
            }
            let [from_view, from_memory] = &mut bytes;
            let loaded = view.load(address, &mut from_view[..count]);
            assert_eq!(alone.load(address, &mut from_memory[..count]), loaded);
            assert_eq!(from_view, from_memory, "{count} bytes at {address:#x}");
        }
        let footprint = view.finish().0;
        before.commit(&[footprint]);
        assert_eq!(before, alone);
    }
}

#[test]
fn commits_in_order_equal_running_in_order() {
    let mut memory = memory();
    let before = memory.clone();
    let (mut first, mut second, mut third) =
        (Tracked::new(&before), Tracked::new(&before), Tracked::new(&before));
    first.store(0x1000, &[100; 4]);
    second.store(0x1002, &[200; 4]); // this store overwrites part of the first store without reading it
    word(&mut third, 0x1004);
    let mut written = Written::default();
    let footprints = [first, second].map(|view| {
        let footprint = view.finish().0;
        assert_eq!(written.judge(&footprint), Verdict::Right);
        written.add(&footprint);
        footprint
    });
    memory.commit(&footprints);
    assert_eq!(memory.bytes(0x1000, 8), Some(&[100, 100, 200, 200, 200, 200, 6, 7][..]));
    let third = third.finish().0;
    assert_eq!(written.judge(&third), Verdict::Unknown, "a word near it changed");
}

#[test]
fn reading_back_an_own_write_depends_on_nobody() {
    let before = memory();
    let mut memory = before.clone();
    let (mut first, mut second) = (Tracked::new(&before), Tracked::new(&before));
    first.store(0x1000, &[1; 4]);
    second.store(0x1000, &[2; 4]);
    word(&mut second, 0x1000);
    let mut written = Written::default();
    let (first, second) = (first.finish().0, second.finish().0);
    written.add(&first);
    assert_eq!(written.judge(&second), Verdict::Right);
    memory.commit(&[first, second]);
    assert_eq!(word(&mut memory, 0x1000), Some(0x0202_0202));
}

#[test]
fn a_commit_reaches_every_buffer_of_a_page() {
    let at = |address| Buffer::new(address, vec![0; 4]);
    let before = Memory::new(vec![at(0x10), at(0x14)]).unwrap();
    let (mut memory, mut view) = (before.clone(), Tracked::new(&before));
    assert!(view.store(0x10, &[1, 2, 3, 4]) && view.store(0x14, &[5, 6, 7, 8]));
    memory.commit(&[view.finish().0]);
    let words = [0x10, 0x14].map(|address| word(&mut memory, address));
    assert_eq!(words, [Some(0x0403_0201), Some(0x0807_0605)]);
}

/// A generator of pseudorandom numbers.
struct Random(u32);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        (self.0 >> 8) % end
    }
}

/// The action that a group performs on the picked bytes.
#[derive(Clone, Copy, Debug)]
enum Way {
    Read,
    Write,
    Change,
}

/// An access of a group. The access has one of the shapes that accesses of a warp can have.
#[derive(Clone, Debug)]
struct Access {
    way: Way,
    address: u32,
    count: usize,
    row: bool,
    bits: u32,
    size: u32,
    offsets: [u32; 32],
}

impl Access {
    fn new(random: &mut Random, near: u32) -> Access {
        let way = [Way::Read, Way::Write, Way::Change][random.below(3) as usize];
        let bits = [u32::MAX, 0xffff, random.below(1 << 24) | 1, 1][random.below(4) as usize];
        let size = [1, 2, 4, 4, 8, 16][random.below(6) as usize];
        let step = if random.below(8) == 0 { 1 } else { size };
        let address = near + random.below(64) * step;
        let (row, all) = (random.below(3) == 0, random.below(3) == 0);
        let reach = [1, 8, 200][random.below(3) as usize];
        let offsets = std::array::from_fn(|_| random.below(reach) * step);
        let far = (0..32).filter(|lane| bits >> lane & 1 != 0).map(|lane| offsets[lane]).max();
        let count = match (row, all) {
            (true, _) => 128,
            (_, true) => size as usize * random.below(40).max(1) as usize,
            _ => (far.unwrap() + size) as usize,
        };
        Access { way, address, count, row, bits: if all && !row { 0 } else { bits }, size, offsets }
    }

    /// Returns the offsets of the picked bytes, relative to the first byte of the range.
    fn picked(&self) -> Vec<usize> {
        let lanes = (0..32).filter(|lane| self.bits >> lane & 1 != 0);
        match (self.row, self.bits) {
            (false, 0) => (0..self.count).collect(),
            (true, _) => lanes.flat_map(|lane| 4 * lane..4 * lane + 4).collect(),
            (false, _) => {
                let at = |lane: usize| self.offsets[lane] as usize;
                lanes.flat_map(|lane| at(lane)..at(lane) + self.size as usize).collect()
            }
        }
    }

    /// Performs the access on a memory or on a view of a memory. The written bytes depend on all earlier reads of the
    /// group. Returns `None` if some of the bytes do not exist.
    fn run(&self, store: &mut impl Store, seen: &mut u32) -> Option<()> {
        let picked = match (self.row, self.bits) {
            (false, 0) => Picked::All,
            (true, bits) => Picked::Row(bits),
            (false, bits) => Picked::Each(&self.offsets, bits, self.size),
        };
        let mut look = |bytes: &[u8]| {
            for place in self.picked() {
                *seen = seen.wrapping_mul(31).wrapping_add(bytes[place].into());
            }
        };
        match self.way {
            Way::Read => look(store.reading(self.address, self.count, picked)?),
            Way::Write => {
                let bytes = store.writing(self.address, self.count, picked)?;
                self.picked().into_iter().for_each(|place| bytes[place] = (*seen as usize + place) as u8);
            }
            Way::Change => {
                let bytes = store.changing(self.address, self.count, picked)?;
                look(bytes);
                self.picked().into_iter().for_each(|place| bytes[place] ^= *seen as u8);
            }
        }
        Some(())
    }
}

/// Runs groups on buffers that are adjacent and share pages. The groups access bytes close to each other or far apart.
/// The results must equal the results of running the groups in order. If the accesses of groups do not overlap, only
/// few groups may run a second time.
#[test]
fn groups_that_run_ahead_leave_what_groups_in_order_leave() {
    let places = [(0x80, 700), (0x80 + 700, 100), (1002, 5000), (0x3f9c, 0x9000), (0x20000, 300_000)];
    let buffers = places.map(|(address, count)| {
        let bytes: Vec<u8> = (0..=255).cycle().skip(address as usize % 251).take(count).collect();
        Buffer::new(address, bytes)
    });
    let mut random = Random(1);
    let mut verdicts = [0; 3];
    for _ in 0..200 {
        let mut ordered = Memory::new(buffers.clone().into()).unwrap();
        let mut memory = ordered.clone();
        let mut plan = Plan::new(&memory);
        let apart = [0, 64, 3000][random.below(3) as usize];
        for _ in 0..4 {
            let groups: Vec<Vec<Access>> = (0..6)
                .map(|group| {
                    let near = [0x90, 600, 1100, 0x4010, 0x20000, 0x28000][random.below(6) as usize];
                    let count = random.below(12);
                    (0..count).map(|_| Access::new(&mut random, near + group * apart)).collect()
                })
                .collect();
            let in_order: Vec<Vec<bool>> = groups.iter().map(|group| run(group, &mut ordered)).collect();
            let mut shadow = Shadow::default();
            let mut ahead = |memory: &Memory, plan: &Plan, group: &[Access]| {
                let mut view = Tracked::with(memory, plan, std::mem::take(&mut shadow));
                let there = run(group, &mut view);
                let footprint;
                (footprint, shadow) = view.finish();
                (there, footprint)
            };
            let all: Vec<_> = groups.iter().map(|group| ahead(&memory, &plan, group)).collect();
            let mut written = Written::before(all.iter().map(|(_, footprint)| footprint));
            for (number, (mut there, mut footprint)) in all.into_iter().enumerate() {
                let verdict = written.judge(&footprint);
                verdicts[verdict as usize] += 1;
                if verdict == Verdict::Unknown {
                    plan.learn(&written, &footprint);
                }
                if verdict != Verdict::Right {
                    (there, footprint) = ahead(&memory, &plan, &groups[number]);
                }
                assert_eq!(there, in_order[number]);
                written.add(&footprint);
                memory.commit(&[footprint]);
            }
            assert_eq!(memory, ordered);
        }
    }
    assert!(verdicts.iter().all(|count| *count > 50), "{verdicts:?}");
}

/// Performs the accesses of a group and returns which of them succeed.
fn run(group: &[Access], store: &mut impl Store) -> Vec<bool> {
    let mut seen = 1;
    group.iter().map(|access| access.run(store, &mut seen).is_some()).collect()
}

/// Returns two verdicts on a second group that ran at the same time as a first group. The first verdict is for a plan
/// without paged chunks. The second verdict is for the plan after its update.
fn verdict(first: impl Fn(&mut Tracked<'_>), second: impl Fn(&mut Tracked<'_>)) -> [Verdict; 2] {
    let memory = Memory::new(vec![Buffer::new(0x1000, vec![0; 1024])]).unwrap();
    let mut plan = Plan::new(&memory);
    [(); 2].map(|()| {
        let [first, second] = [&first as &dyn Fn(&mut Tracked<'_>), &second].map(|act| {
            let mut view = Tracked::with(&memory, &plan, Shadow::default());
            act(&mut view);
            view.finish().0
        });
        let mut written = Written::before([&first, &second]);
        written.add(&first);
        let verdict = written.judge(&second);
        plan.learn(&written, &second);
        verdict
    })
}

#[test]
fn neighbours_do_not_conflict() {
    use Verdict::{Right, Stale, Unknown};
    let store =
        |address, count: usize| move |view: &mut Tracked<'_>| assert!(view.store(address, &[1; 64][..count]));
    let load = |address| move |view: &mut Tracked<'_>| assert!(word(view, address).is_some());
    // Stores to different words, to different bytes of a word, and to the same bytes.
    assert_eq!(verdict(store(0x1000, 64), store(0x1040, 64)), [Right; 2]);
    assert_eq!(verdict(store(0x1000, 1), store(0x1001, 1)), [Right; 2]);
    assert_eq!(verdict(store(0x1000, 4), store(0x1000, 4)), [Right; 2]);
    // Loads of words near stored words, and loads of stored words.
    assert_eq!(verdict(store(0x1000, 64), load(0x1040)), [Unknown, Right]);
    assert_eq!(verdict(store(0x1000, 64), load(0x103c)), [Unknown, Stale]);
    assert_eq!(verdict(store(0x1003, 1), load(0x1000)), [Unknown, Stale]);
    assert_eq!(verdict(store(0x1000, 4), load(0x1100)), [Right; 2]);
    assert_eq!(verdict(load(0x1000), load(0x1000)), [Right; 2]);
    // In-place updates of separate words, and of words that overlap.
    let update = |address| {
        move |view: &mut Tracked<'_>| {
            let bytes = view.changing(address, 128, Picked::Row(u32::MAX)).unwrap();
            bytes.iter_mut().for_each(|byte| *byte += 1);
        }
    };
    assert_eq!(verdict(update(0x1040), update(0x10c0)), [Right; 2]);
    assert_eq!(verdict(update(0x1040), update(0x1080)), [Stale; 2]);
    let reread = |view: &mut Tracked<'_>| {
        store(0x1040, 64)(view);
        load(0x1040)(view);
    };
    assert_eq!(verdict(update(0x1000), reread), [Right; 2]);
}
