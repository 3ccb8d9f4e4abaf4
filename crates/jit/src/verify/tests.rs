//! Strips that cannot be created with the public interface: the verifier rejects each.

use super::*;
use crate::region::Back;
use crate::strip::Inside;

const WINDOW: u32 = 64;

/// Two loads and a store that the verifier accepts: words at the base and 8 bytes after it.
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

fn plan(strip: Strip) -> Plan {
    Plan {
        segments: vec![Segment::new(None, strip, None)],
        steps: vec![Step::Begin(0), Step::Run(1)],
        back: Back::Never,
        mask: Row::Own(0),
        lazy: false,
        joins: false,
    }
}

fn verify(strip: Strip) -> Result<(), Rejected> {
    plan(strip).verify()
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
    // The fault for which this test was written: the mask of a load is not the mask of its check.
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

/// Verifies a load whose lanes `lanes` computes from those of the check.
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
    let mut without = plan(strip.clone());
    without.segments[0].check = None;
    assert_eq!(without.verify(), Err(Rejected::Exit(0)));
    let mut other = plan(strip);
    if let Some(check) = &mut other.segments[0].check {
        check.guard = Some(check.spans[0].mask);
    }
    assert_eq!(other.verify(), Err(Rejected::Exit(0)));
}

#[test]
fn a_check_with_effects_is_rejected() {
    let Probe { strip, loaded, .. } = probe();
    let mut plan = plan(strip);
    if let Some(check) = &mut plan.segments[0].check {
        check.effects.push(Effect::Store(Row::Group(0), loaded));
    }
    assert_eq!(plan.verify(), Err(Rejected::Effects));
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
    for row in [Row::Own(OWN as u32), Row::Group(u32::MAX), Row::Group(2)] {
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
    let Probe { strip, .. } = probe();
    let mut plan = plan(strip);
    plan.steps.push(Step::If(WORDS as u32));
    assert_eq!(plan.verify(), Err(Rejected::Word(WORDS as u32)));
}

#[test]
fn a_value_that_is_not_made_before_its_use_is_rejected() {
    let Probe { mut strip, base, .. } = probe();
    let next = Value(strip.nodes.len() as u32);
    strip.nodes.push(Node::Two(Two::Add, [base, next]));
    assert_eq!(verify(strip), Err(Rejected::Order(next.0 as usize)));
}

#[test]
fn a_rejected_plan_is_not_compiled() {
    let Probe { mut strip, mask, .. } = probe();
    if let Node::Load { lanes, .. } = load(&mut strip) {
        *lanes = mask;
    }
    let made = crate::Regions::compile(&[plan(strip)], crate::Level::Avx2, 32, crate::FLUSH);
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
