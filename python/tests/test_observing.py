"""Traces, hooks and counts."""

from __future__ import annotations

import numpy as np
import pytest

import reconverge
from reconverge.trace import KINDS


def test_a_trace_has_every_instruction_of_a_run(nested: reconverge.Launch) -> None:
    trace, left = nested.trace(), nested.run()
    issues = trace.of("issue")
    assert trace.complete and len(issues) == left.instructions
    assert issues.lanes().sum() == left.lane_instructions
    assert len(trace.of("diverge")) == left.divergent_branches == 2
    assert issues.step.tolist() == list(range(left.instructions))
    first = trace.of("diverge")
    lanes = {int(first.mask[0]), int(first.other[0])}
    assert lanes == {0b0000_0011, 0b1111_1100}
    assert [event.kind for event in trace][:1] == ["issue"]
    assert trace._repr_html_().count("lane 7") == min(len(issues), 64)


def test_a_trace_of_data_has_writes_and_stores() -> None:
    launch = reconverge.kernel("collatz", "tesla", lanes=256)
    trace = launch.trace(data=True)
    stores = trace.of("store")
    assert len(stores) == 256 and len(trace.of("write")) > 256
    order = np.argsort(stores.other, kind="stable")
    assert np.array_equal(stores.value[order], launch.run()["out"])
    assert len(launch.trace().of("store")) == 0


def test_what_an_instruction_causes_has_its_step() -> None:
    """Each event has the step number of the instruction that causes it."""
    trace = reconverge.kernel("collatz", "tesla", lanes=256).trace(data=True)
    last: dict[int, int] = {}
    for event in trace:
        if event.kind == "issue":
            last[event.group] = event.step
        assert event.step == last[event.group], event


def test_steps_are_instructions() -> None:
    """Each call of `step` executes one instruction of the launch."""
    launch = reconverge.kernel("collatz", "tesla", lanes=256)
    session, steps = launch.session(), 0
    while session.step():
        steps += 1
    assert steps + 1 == launch.run().instructions


def test_frames_name_registers_and_memory() -> None:
    """Regression test: the text `lane 0 loads 0x10` did not state whether the memory is s[] or g[]."""
    pytest.importorskip("pandas")
    events = reconverge.kernel("collatz", "tesla", lanes=256).trace(data=True).frame("pandas")
    writes, stores, loads = (events[events.kind == kind] for kind in ("write", "store", "load"))
    assert {"$r0", "$c0"} <= set(writes.register) and set(stores.space) == {"g14[]"}
    assert "s[]" in set(loads.space) and loads.space.notna().all()
    assert events[events.kind == "issue"].register.isna().all()


def test_counts_by_group_and_block_add_up() -> None:
    stats = reconverge.kernel("collatz", "tesla", lanes=512).stats()
    for counts in (stats.groups, stats.blocks):
        assert sum(each["instructions"] for each in counts) == stats.totals["instructions"]
    assert stats.banks["passes"] >= stats.banks["requests"] > 0
    assert reconverge.kernel("mandel", "r700", lanes=64).stats().blocks == []


def test_a_trace_ends_at_its_limit_and_says_so() -> None:
    trace = reconverge.kernel("collatz", "tesla", lanes=256).trace(limit=100)
    assert len(trace) == 100 and not trace.complete and "truncated" in repr(trace)


def test_traces_and_counts_are_frames_of_pandas_and_polars(nested: reconverge.Launch) -> None:
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
        events = nested.trace().frame(library)
        assert set(events["kind"]) <= set(KINDS)
        counts = nested.stats().frame(library)
        assert type(counts).__module__.startswith(library)
        assert int(counts["executed"].sum()) == nested.run().instructions
    with pytest.raises(reconverge.Error, match="expected pandas or polars"):
        nested.stats().frame("numpy")  # type: ignore[call-overload]


def test_the_sums_of_counts_are_those_of_a_run(nested: reconverge.Launch) -> None:
    stats, left = nested.stats(), nested.run()
    assert stats.totals["instructions"] == left.instructions
    assert stats.totals["lane_instructions"] == left.lane_instructions
    assert "executed" in stats._repr_html_()


def test_a_hook_is_called_with_arrays() -> None:
    launch = reconverge.kernel("collatz", "tesla", lanes=512)
    hooks = reconverge.Hooks()
    calls: dict[str, list[int]] = {"issue": [], "diverge": [], "first": []}

    @hooks.issue
    def every(events: reconverge.Events) -> None:
        calls["issue"].append(len(events))

    @hooks.diverge(group=1)
    def parted(events: reconverge.Events) -> None:
        assert (events.group == 1).all() and (events.mask & events.other == 0).all()
        calls["diverge"].append(len(events))

    @hooks.issue(pc=launch.program[0].address)
    def first(events: reconverge.Events) -> None:
        calls["first"].append(len(events))

    launch.observe(hooks, batch=1000)
    assert sum(calls["issue"]) == launch.run().instructions
    assert len(calls["issue"]) < sum(calls["issue"]) // 500
    assert sum(calls["first"]) == 16
    assert sum(calls["diverge"]) > 0


def test_a_hook_of_a_register_sees_its_writes() -> None:
    launch = reconverge.kernel("mandel", "r700", lanes=64)
    hooks, seen = reconverge.Hooks(), []

    @hooks.write(register="R0.x")
    def written(events: reconverge.Events) -> None:
        seen.append(events)

    launch.observe(hooks)
    writes = launch.trace(data=True).of("write")
    assert sum(len(each) for each in seen) == (writes.other == 0).sum() > 0
    assert all((each.other == 0).all() for each in seen)


@pytest.mark.parametrize(
    ("kind", "narrowed", "message"),
    [
        ("issue", {"pc": 0x3}, "hook f can never be called: no instruction starts at 0x3"),
        ("issue", {"pc": []}, "hook f can never be called: pc= does not have any address"),
        ("issue", {"group": 8}, "hook f can never be called: group 8: the launch has 8"),
        ("write", {"register": "R1.x"}, "no such register"),
        ("load", {"space": "LDT"}, "hook f can never be called: unknown memory `LDT`"),
        ("trap", {}, r"never called: f \(trap\); maybe=True"),
    ],
)
def test_a_hook_that_is_never_called_is_an_error(kind: str, narrowed: dict[str, object], message: str) -> None:
    hooks = reconverge.Hooks()

    @hooks.on(kind, **narrowed)  # type: ignore[arg-type]
    def f(events: reconverge.Events) -> None:
        raise AssertionError

    with pytest.raises(reconverge.Error, match=message):
        reconverge.kernel("collatz", "tesla", lanes=256).observe(hooks)


def test_unknown_kinds_and_no_hooks_are_errors() -> None:
    launch = reconverge.kernel("collatz", "tesla", lanes=256)
    with pytest.raises(reconverge.HookError, match="observe: no hooks"):
        launch.observe(reconverge.Hooks())
    with pytest.raises(AttributeError, match="unknown kind of event `isue`; did you mean `issue`"):
        reconverge.Hooks().isue  # noqa: B018
    with pytest.raises(reconverge.HookError, match="only writes have a register"):
        reconverge.Hooks().issue(register="$r0")


def test_an_exception_of_a_hook_ends_the_run() -> None:
    hooks = reconverge.Hooks()

    @hooks.issue
    def f(events: reconverge.Events) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        reconverge.kernel("mandel", "r700", lanes=4096).observe(hooks, batch=16)
