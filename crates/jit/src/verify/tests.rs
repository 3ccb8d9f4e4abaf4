//! Tests with strips that cannot be created with the public interface. The verifier must reject each of these strips.

use super::*;
use crate::program::tests::node;
use crate::program::{Branch, Conditional, Piece, Waits};
use crate::strip::Inside;

const WINDOW: u32 = 64;

/// Two loads and a store that the verifier accepts. The loads and the store access words at the base and words 8 bytes
/// after the base.
struct Probe {
    strip: Strip,
    base: Value,
    mask: Value,
    near: Inside,
    loaded: Value,
}

fn probe() -> Probe {
    let mut strip = Strip::with_window(WINDOW);
    let (base, mask) = (strip.row(Row::Group(0)), strip.row(Row::Own(0)));
    let near = strip.inside(base, 0, mask).expect("a window of words");
    let loaded = strip.window_load(near);
    let far = strip.inside(base, 8, mask).expect("a window of words");
    let other = strip.window_load(far);
    let sum = strip.two(Two::Add, loaded, other);
    strip.store(Row::Group(128), sum);
    Probe { strip, base, mask, near, loaded }
}

fn verify(strip: Strip) -> Result<(), Rejected> {
    segment(&Segment::new(None, strip))
}

fn load(strip: &mut Strip) -> &mut Node {
    strip.nodes.iter_mut().find(|node| matches!(node, Node::Load { .. })).expect("a load")
}

#[test]
fn checked_loads_and_stores_are_accepted_with_one_check_for_a_base() {
    let Probe { mut strip, base, mask, near, loaded } = probe();
    assert_eq!(strip.spans.len(), 1);
    assert_eq!((strip.spans[0].least, strip.spans[0].greatest), (0, 8));
    let before = strip.inside(base, -16, mask).expect("a distance of whole words");
    assert_eq!((strip.spans.len(), strip.spans[0].least), (1, -16));
    strip.window_store(before, loaded);
    strip.window_store(near, loaded);
    assert_eq!(verify(strip), Ok(()));
}

#[test]
fn distances_further_apart_than_the_window_have_checks_of_their_own() {
    let Probe { mut strip, base, mask, .. } = probe();
    let far = strip.inside(base, WINDOW as i32, mask).expect("a distance of whole words");
    strip.window_load(far);
    assert_eq!(strip.spans.len(), 2);
    assert_eq!(verify(strip), Ok(()));
}

#[test]
fn distances_between_words_and_windows_without_a_word_have_no_check() {
    let Probe { mut strip, base, mask, .. } = probe();
    assert_eq!(strip.inside(base, 2, mask), None);
    assert_eq!(strip.window_word(WINDOW), None);
    assert_eq!(strip.window_word(WINDOW - 2), None);
    let mut empty = Strip::with_window(3);
    let (base, mask) = (empty.row(Row::Group(0)), empty.row(Row::Own(0)));
    assert_eq!(empty.inside(base, 0, mask), None);
    assert_eq!(empty.window_word(0), None);
}

#[test]
fn a_load_from_an_address_without_a_check_is_rejected() {
    let Probe { mut strip, base, .. } = probe();
    if let Node::Load { place, .. } = load(&mut strip) {
        *place = base;
    }
    assert_eq!(verify(strip), Err(Rejected::Unchecked(0)));
}

#[test]
fn a_load_for_more_lanes_than_were_checked_is_rejected() {
    // The mask of a load differs from the mask of its check. An earlier version of this crate generated such loads.
    let Probe { mut strip, mask, .. } = probe();
    if let Node::Load { lanes, .. } = load(&mut strip) {
        *lanes = mask;
    }
    assert_eq!(verify(strip), Err(Rejected::Unchecked(0)));
}

#[test]
fn a_store_for_more_lanes_than_were_checked_is_rejected() {
    let Probe { mut strip, mask, near, loaded, .. } = probe();
    strip.window_store(near, loaded);
    if let Some(Effect::Scatter { lanes, .. }) = strip.effects.last_mut() {
        *lanes = mask;
    }
    assert_eq!(verify(strip), Err(Rejected::Unchecked(0)));
}

#[test]
fn a_check_of_another_base_is_rejected() {
    let Probe { mut strip, mask, .. } = probe();
    strip.spans[0].base = mask;
    assert_eq!(verify(strip), Err(Rejected::Place(0)));
}

#[test]
fn a_distance_outside_its_span_is_rejected() {
    for wrong in [-4, 12, 2] {
        let Probe { mut strip, .. } = probe();
        if let Node::Load { distance, .. } = load(&mut strip) {
            *distance = wrong;
        }
        assert_eq!(verify(strip), Err(Rejected::Distance(0, wrong)));
    }
}

#[test]
fn a_span_wider_than_the_window_is_rejected() {
    let Probe { mut strip, .. } = probe();
    strip.spans[0].greatest = WINDOW as i32;
    assert_eq!(verify(strip), Err(Rejected::Span(0)));
}

/// Verifies a load. The function `lanes` computes the lanes of the load from the lanes of the check.
fn load_for(lanes: impl Fn(&mut Strip, Span) -> Value) -> Result<(), Rejected> {
    let mut strip = Strip::with_window(WINDOW);
    let (base, mask) = (strip.row(Row::Group(0)), strip.row(Row::Own(0)));
    let inside = strip.inside(base, 0, mask).expect("a window of words");
    let span = strip.spans[0];
    strip.spans[0].lanes = lanes(&mut strip, span);
    let loaded = strip.window_load(inside);
    strip.store(Row::Group(128), loaded);
    verify(strip)
}

#[test]
fn lanes_that_are_not_all_inside_are_rejected() {
    assert_eq!(load_for(|_, span| span.lanes), Ok(()));
    assert_eq!(load_for(|_, span| span.mask), Err(Rejected::Lanes(0)));
    let of = |op: Two| load_for(move |strip, span| strip.two(op, span.lanes, span.base));
    assert_eq!(of(Two::And), Ok(()), "fewer lanes");
    for op in [Two::Or, Two::Xor, Two::AndNot, Two::Add] {
        assert_eq!(of(op), Err(Rejected::Lanes(0)), "{op:?}");
    }
    let not = load_for(|strip, span| strip.not(span.lanes));
    assert_eq!(not, Err(Rejected::Lanes(0)));
    let select = load_for(|strip, span| strip.select(span.base, span.lanes, span.mask));
    assert_eq!(select, Err(Rejected::Lanes(0)));
}

#[test]
fn a_segment_that_runs_although_a_lane_is_outside_is_rejected() {
    let Probe { strip, .. } = probe();
    let mut without = Segment::new(None, strip.clone());
    without.check = None;
    assert_eq!(segment(&without), Err(Rejected::Exit(0)));
    let mut other = Segment::new(None, strip);
    if let Some(check) = &mut other.check {
        check.guard = Some(check.spans[0].mask);
    }
    assert_eq!(segment(&other), Err(Rejected::Exit(0)));
}

#[test]
fn a_check_with_effects_is_rejected() {
    let Probe { strip, loaded, .. } = probe();
    let mut with = Segment::new(None, strip);
    if let Some(check) = &mut with.check {
        check.effects.push(Effect::Store(Row::Group(0), loaded));
    }
    assert_eq!(segment(&with), Err(Rejected::Effects));
}

#[test]
fn a_word_beyond_the_window_is_rejected() {
    for offset in [WINDOW, WINDOW - 2, u32::MAX - 3] {
        let Probe { mut strip, .. } = probe();
        strip.nodes.push(Node::Word(offset));
        assert_eq!(verify(strip), Err(Rejected::Offset(offset)));
    }
}

#[test]
fn rows_and_words_that_do_not_exist_are_rejected() {
    let narrow = [Row::Bytes(NARROW_ROWS), Row::Halves(NARROW_ROWS)];
    for row in [Row::Own(OWN as u32), Row::Group(u32::MAX), Row::Group(2)].into_iter().chain(narrow) {
        let Probe { mut strip, loaded, .. } = probe();
        strip.effects.push(Effect::Store(row, loaded));
        assert_eq!(verify(strip), Err(Rejected::Row(row)));
        let Probe { mut strip, .. } = probe();
        strip.nodes.push(Node::Row(row));
        assert_eq!(verify(strip), Err(Rejected::Row(row)));
    }
    let Probe { mut strip, mask, .. } = probe();
    strip.gather(WORDS as u32, mask);
    assert_eq!(verify(strip), Err(Rejected::Word(WORDS as u32)));
    let of = |leave: Option<(u32, Waits)>, words: Option<(u32, u32)>| {
        let conditional = |(word, parent)| Conditional {
            word,
            parent: Some((parent, 0)),
            sides: [Branch::default(); 2],
            held: 0,
            joins: false,
        };
        let mut node = node(Segment::new(None, probe().strip));
        let conditionals = words.into_iter().map(conditional).collect();
        node.pieces.insert(0, Piece { conditionals, leave, ..Piece::default() });
        node.verify()
    };
    let (last, wrong) = (WORDS as u32 - 1, WORDS as u32);
    assert_eq!(of(Some((last, Waits::Arrive)), Some((last, last))), Ok(()));
    assert_eq!(of(Some((wrong, Waits::Arrive)), None), Err(Rejected::Word(wrong)));
    assert_eq!(of(None, Some((wrong, 0))), Err(Rejected::Word(wrong)));
    assert_eq!(of(None, Some((0, wrong))), Err(Rejected::Word(wrong)));
    let mut masked = node(Segment::new(None, probe().strip));
    masked.mask = Row::Own(OWN as u32);
    assert_eq!(masked.verify(), Err(Rejected::Row(masked.mask)));
}

#[test]
fn a_value_that_is_not_made_before_its_use_is_rejected() {
    let Probe { mut strip, base, .. } = probe();
    let next = Value(strip.nodes.len() as u32);
    strip.nodes.push(Node::Two(Two::Add, [base, next]));
    assert_eq!(verify(strip), Err(Rejected::Order(next.0 as usize)));
}

#[test]
fn a_rejected_node_is_not_compiled() {
    let Probe { mut strip, mask, .. } = probe();
    if let Node::Load { lanes, .. } = load(&mut strip) {
        *lanes = mask;
    }
    let nodes = [node(Segment::new(None, strip))];
    let made = crate::program::Code::compile(&nodes, crate::Level::Avx2, 32, crate::FLUSH);
    assert!(matches!(made, Err(crate::CompileError::Rejected(Rejected::Unchecked(0)))));
}

#[test]
fn an_access_of_another_slice_is_rejected() {
    let Probe { near, .. } = probe();
    let mut strip = Strip::with_window(WINDOW);
    let (base, mask) = (strip.row(Row::Group(0)), strip.row(Row::Own(0)));
    strip.inside(base, 40, mask);
    strip.window_load(near);
    assert_eq!(verify(strip), Err(Rejected::Distance(0, 0)));
}

/// Verifies a load from a site, after `change` has changed the span of the load.
fn load_from_site(change: impl Fn(&mut Strip, &mut Span)) -> Result<(), Rejected> {
    let mut strip = Strip::new();
    let (base, mask) = (strip.row(Row::Group(0)), strip.row(Row::Own(0)));
    let inside = strip.inside_site(1, base, 8, mask);
    let mut span = strip.spans[0];
    change(&mut strip, &mut span);
    strip.spans[0] = span;
    let loaded = strip.window_load(inside);
    strip.store(Row::Group(128), loaded);
    verify(strip)
}

#[test]
fn a_place_that_is_not_an_offset_in_its_site_is_rejected() {
    assert_eq!(load_from_site(|_, _| {}), Ok(()));
    let wrong = Err(Rejected::Place(0));
    assert_eq!(load_from_site(|_, span| span.place = span.base), wrong, "an address");
    let other = load_from_site(|strip, span| {
        strip.nodes.push(Node::Start(2));
        span.place = strip.two(Two::Sub, span.base, Value(strip.nodes.len() as u32 - 1));
    });
    assert_eq!(other, wrong, "an offset in another site");
    let sum = load_from_site(|strip, span| {
        let Node::Two(_, [address, start]) = strip.nodes[span.place.0 as usize] else { return };
        span.place = strip.two(Two::Add, address, start);
    });
    assert_eq!(sum, wrong, "a sum");
    assert_eq!(load_from_site(|_, span| span.least = 4), wrong, "two distances");
    assert_eq!(load_from_site(|_, span| span.site = Some(2)), wrong, "another site");
}

#[test]
fn lanes_that_are_not_within_the_bound_of_their_site_are_rejected() {
    let wrong = Err(Rejected::Lanes(0));
    assert_eq!(load_from_site(|_, span| span.lanes = span.mask), wrong, "all lanes");
    // The lanes come from a different comparison of the bound and the inverted place.
    let compared = |compare: &dyn Fn(&mut Strip, Value, Value, Value) -> Value| {
        load_from_site(|strip, span| {
            let sign = strip.constant(1 << 31);
            let inverted = strip.two(Two::Xor, span.place, sign);
            let bound = strip.nodes.iter().position(|node| *node == Node::Bound(1)).expect("a bound");
            let within = compare(strip, Value(bound as u32), inverted, span.place);
            span.lanes = strip.two(Two::And, within, span.mask);
        })
    };
    let greater =
        |strip: &mut Strip, bound: Value, inverted: Value, _: Value| strip.two(Two::Greater, bound, inverted);
    assert_eq!(compared(&greater), Ok(()));
    let swapped =
        |strip: &mut Strip, bound: Value, inverted: Value, _: Value| strip.two(Two::Greater, inverted, bound);
    assert_eq!(compared(&swapped), wrong, "lanes beyond the bound");
    let signed =
        |strip: &mut Strip, bound: Value, _: Value, place: Value| strip.two(Two::Greater, bound, place);
    assert_eq!(compared(&signed), wrong, "a place whose sign is not inverted");
    let other = |strip: &mut Strip, _: Value, inverted: Value, _: Value| {
        strip.nodes.push(Node::Bound(2));
        strip.two(Two::Greater, Value(strip.nodes.len() as u32 - 1), inverted)
    };
    assert_eq!(compared(&other), wrong, "the bound of another site");
    let address = |strip: &mut Strip, bound: Value, _: Value, _: Value| {
        let (address, sign) = (strip.row(Row::Group(0)), strip.constant(1 << 31));
        let inverted = strip.two(Two::Xor, address, sign);
        strip.two(Two::Greater, bound, inverted)
    };
    assert_eq!(compared(&address), wrong, "another value than the place");
}

#[test]
fn a_load_of_zeros_outside_a_site_needs_a_bound_but_no_exit() {
    let load = |at: Option<u32>, change: &dyn Fn(&mut Span)| {
        let mut strip = Strip::new();
        let (row, mask) = (strip.row(Row::Group(0)), strip.row(Row::Own(0)));
        let place = at.map_or(row, |at| strip.constant(at));
        let [word, _] = strip.site_load(1, place, mask);
        change(&mut strip.spans[0]);
        strip.store(Row::Group(128), word);
        verify(strip)
    };
    assert_eq!(load(None, &|_| {}), Ok(()));
    assert_eq!(load(Some(8), &|_| {}), Ok(()), "a place that is the same in all lanes");
    assert_eq!(load(None, &|span| span.lanes = span.mask), Err(Rejected::Unchecked(0)), "all lanes");
    assert_eq!(load(None, &|span| span.site = Some(2)), Err(Rejected::Lanes(0)), "the bound of another site");
    assert_eq!(load(None, &|span| span.exits = true), Err(Rejected::Place(0)), "an offset that may exit");
}

#[test]
fn a_site_that_the_state_does_not_have_is_rejected() {
    let of = |site: u32| {
        let mut strip = Strip::new();
        let (base, mask) = (strip.row(Row::Group(0)), strip.row(Row::Own(0)));
        strip.inside_site(site, base, 0, mask);
        verify(strip)
    };
    assert_eq!(of(SITES - 1), Ok(()));
    assert_eq!(of(SITES), Err(Rejected::Site(SITES)));
}

/// Verifies a segment without a check. The strip of the segment stores once, and `change` modifies this strip.
fn store_at_once(site: bool, change: impl Fn(&mut Strip, Inside, Value)) -> Result<(), Rejected> {
    let mut strip = Strip::with_window(WINDOW);
    let (base, mask) = (strip.row(Row::Group(0)), strip.row(Row::Own(0)));
    let inside = match site {
        true => strip.inside_site(1, base, 0, mask),
        false => strip.inside(base, 0, mask).expect("a window of words"),
    };
    strip.window_store(inside, base);
    let mut segment = Segment::restarting(strip.clone(), strip);
    assert_eq!(segment.check, None);
    change(&mut segment.exact, inside, base);
    super::segment(&segment)
}

#[test]
fn a_store_that_does_not_bail_out_by_itself_is_rejected() {
    let wrong = Err(Rejected::Exit(0));
    for site in [false, true] {
        assert_eq!(store_at_once(site, |_, _, _| {}), Ok(()));
        let words = store_at_once(site, |strip, _, base| strip.gather(1, base));
        assert_eq!(words, Ok(()), "words of lanes");
        assert_eq!(store_at_once(site, |strip, _, _| strip.guard = None), wrong, "no guard");
        let fewer = store_at_once(site, |strip, _, _| strip.guard = Some(strip.spans[0].lanes));
        assert_eq!(fewer, wrong, "a guard of other lanes");
        let row = store_at_once(site, |strip, _, base| strip.store(Row::Group(128), base));
        assert_eq!(row, wrong, "a row that an earlier strip has stored");
        let leave = store_at_once(site, |strip, _, base| strip.leave(1, base));
        assert_eq!(leave, wrong, "lanes that have left");
        let twice = store_at_once(site, |strip, inside, base| strip.window_store(inside, base));
        assert_eq!(twice, wrong, "two stores");
        let inner = store_at_once(site, |strip, _, _| {
            strip.spans[0].outside = strip.constant(0);
        });
        assert_eq!(inner, wrong, "lanes outside that are none");
    }
}
