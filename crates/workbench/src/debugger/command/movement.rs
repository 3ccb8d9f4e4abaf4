//! Commands that run the launch forward, backward, or to step N.

use super::call::{Call, Done, address};
use super::position::BUDGET;
use crate::debugger::names::long_number;

pub(super) fn step(call: &mut Call<'_>) -> Done {
    let count = call.count(1)?;
    call.moved(|debugger| debugger.step(count, BUDGET))
}

pub(super) fn over(call: &mut Call<'_>) -> Done {
    call.moved(|debugger| debugger.over(BUDGET))
}

pub(super) fn out(call: &mut Call<'_>) -> Done {
    call.moved(|debugger| debugger.out(BUDGET))
}

pub(super) fn follow(call: &mut Call<'_>) -> Done {
    let lane = call.lane(0)?;
    call.debugger.choose_lane(lane);
    call.moved(|debugger| debugger.follow(lane, BUDGET))
}

pub(super) fn until(call: &mut Call<'_>) -> Done {
    let address = address(call.debugger, call.words.first())?;
    call.moved(|debugger| debugger.until(address, BUDGET))
}

pub(super) fn resume(call: &mut Call<'_>) -> Done {
    let budget = call.count(BUDGET)?;
    call.moved(|debugger| debugger.run(budget, &mut |_| false))
}

pub(super) fn back(call: &mut Call<'_>) -> Done {
    let count = call.count(1)?;
    call.moved(|debugger| debugger.back(count))
}

pub(super) fn back_follow(call: &mut Call<'_>) -> Done {
    let lane = call.lane(0)?;
    call.debugger.choose_lane(lane);
    let group = call.debugger.group();
    call.moved(|debugger| {
        debugger.back_until(&mut |debugger| {
            debugger.stepping().current() == Some(group)
                && debugger.stepping().issue(group).is_some_and(|issue| issue.mask.has(lane))
        })
    })
}

pub(super) fn back_continue(call: &mut Call<'_>) -> Done {
    call.moved(|debugger| debugger.back_until(&mut |_| false))
}

pub(super) fn go_to(call: &mut Call<'_>) -> Done {
    let missing = "the number of a step is missing; steps are numbered from 0";
    let word = call.words.first().ok_or_else(|| missing.to_owned())?;
    let position = long_number(word).ok_or_else(|| {
        format!(
            "expected the number of a step, from 0, found `{word}`; `until PLACE` goes to a label or line"
        )
    })?;
    call.moved(|debugger| debugger.go_to(position))
}
