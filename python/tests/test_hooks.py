"""Hooks that receive one event at a time, hooks that stop a run, and hooks that change the state of a run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import reconverge

SOURCE = """
.isa tesla
.chip sm_10
.kernel k
.reg 4
.shared 20
.param 0 4
    and b32 $r0 $r0 0xffff
    shl b32 $r1 $r0 0x2
    add b32 $r1 b32 s[0x10] $r1
    ld b32 $r2 g14[$r1]
    add b32 $r2 $r2 $r0
    exit st b32 g14[$r1] $r2
"""


@pytest.fixture
def launch() -> reconverge.Launch:
    return reconverge.assemble(SOURCE).launch(block=4, params={"a": np.array([10, 20, 30, 40], np.uint32)})


def test_one_event_at_a_time_is_the_same_as_a_trace() -> None:
    launch = reconverge.kernel("collatz", "tesla", lanes=256)
    hooks = reconverge.Hooks()
    seen: list[reconverge.Event] = []
    for kind in ("issue", "diverge", "reconverge", "resume", "push", "pop", "jump", "write", "store", "load"):
        hooks.on(kind, maybe=True)(seen.append)
    observed = launch.observe(hooks, batch=1)
    trace = launch.trace(data=True)
    assert seen == [event for event in trace if event.kind != "trap"]
    assert not observed.stopped and sum(observed.events) == len(seen)
    writes = [event for event in seen if event.kind == "write"]
    assert {event.register for event in writes} >= {"$r3", "$c0"} and all(event.register is None for event in seen if event.kind != "write")


def test_hooks_are_filtered_by_address_range_register_and_space(launch: reconverge.Launch) -> None:
    seen: dict[str, list[reconverge.Event]] = {name: [] for name in ("range", "one", "register", "space")}
    hooks = reconverge.Hooks()
    addresses = [each.address for each in launch.program]
    hooks.issue(pc=range(addresses[1], addresses[3] + 1))(seen["range"].append)
    hooks.write(pc=addresses[1])(seen["one"].append)
    hooks.write(register=["$r2", "$c0"])(seen["register"].append)
    launch.observe(hooks, batch=1)
    assert [event.pc for event in seen["range"]] == addresses[1:4]
    assert [(event.lane, event.register, event.value) for event in seen["one"]] == [(lane, "$r1", 4 * lane) for lane in range(4)]
    assert {event.register for event in seen["register"]} == {"$r2"}
    trace = launch.trace(data=True).of("write")
    assert len(seen["register"]) == trace.registers.count("$r2") == 8


def test_columns_are_filtered_as_events_are(launch: reconverge.Launch) -> None:
    hooks = reconverge.Hooks()
    seen: list[tuple[int, int, str | None]] = []

    @hooks.write(register="$r2", pc=launch.program[4].address)
    def many(events: reconverge.Events) -> None:
        seen.extend(zip(events.lane.tolist(), events.value.tolist(), events.registers, strict=True))

    launch.observe(hooks)
    assert seen == [(0, 10, "$r2"), (1, 21, "$r2"), (2, 32, "$r2"), (3, 43, "$r2")]


@pytest.mark.parametrize("batch", [1, 16])
def test_a_hook_stops_a_run(batch: int) -> None:
    launch = reconverge.kernel("collatz", "tesla", lanes=256)
    for raises in (False, True):
        hooks = reconverge.Hooks()
        steps: list[int] = []

        @hooks.issue
        def stop(event: Any, raises: bool = raises, steps: list[int] = steps) -> str | None:
            steps.append(int(np.max(event.step)))
            if steps[-1] < 99:
                return None
            if raises:
                raise reconverge.StopRun
            return "stop"

        @hooks.trap
        def never(event: Any) -> None: ...

        observed = launch.observe(hooks, batch=batch)
        assert observed.stopped and 99 <= steps[-1] < 99 + batch and observed.events[1] == 0


def test_a_hook_that_returns_another_text_is_an_error() -> None:
    hooks = reconverge.Hooks()
    hooks.issue(lambda event: "halt")
    for batch in (1, 100):
        with pytest.raises(reconverge.HookError, match='a hook returned `halt`: expected "stop" or None'):
            reconverge.kernel("mandel", "tesla", lanes=256).observe(hooks, batch=batch)


def test_an_exception_of_a_hook_goes_to_the_caller(launch: reconverge.Launch) -> None:
    for batch in (1, 8):
        hooks = reconverge.Hooks()

        @hooks.issue
        def wrong(event: Any) -> None:
            raise ZeroDivisionError("mine")

        with pytest.raises(ZeroDivisionError, match="mine"):
            launch.observe(hooks, batch=batch)
        session = launch.session()
        with pytest.raises(ZeroDivisionError, match="mine"):
            session.observe(hooks)
        assert session.instructions == 0 and session.step()


def test_a_hook_changes_registers_before_the_instruction(launch: reconverge.Launch) -> None:
    session, hooks = launch.session(), reconverge.Hooks()

    @hooks.issue(pc=launch.program[4].address)
    def change(event: reconverge.Event) -> None:
        assert (session.pc, session.mask, session.instructions) == (event.pc, event.mask, event.step) == (event.pc, 0b1111, 4)
        assert session.regs["$r2"].tolist() == [10, 20, 30, 40]
        session.regs["$r2"] = 100

    observed = session.observe(hooks)
    assert observed == (False, (1,)) and session.ended
    assert session.outputs()["a"].tolist() == [100, 101, 102, 103]


def test_a_hook_changes_memory_after_the_instruction(launch: reconverge.Launch) -> None:
    session, hooks, loads = launch.session(), reconverge.Hooks(), []
    memory = session.memory("g")

    @hooks.write(register="$r1", pc=launch.program[2].address, group=0)
    def change(event: reconverge.Event) -> None:
        if event.lane == 3:
            memory["a"] = np.array([1, 2, 3, 4], np.uint32)

    @hooks.load
    def load(event: reconverge.Event) -> None:
        loads.append((event.lane, event.other - memory.buffers["a"][0]))

    session.observe(hooks)
    assert session.outputs()["a"].tolist() == [1, 3, 5, 7]
    assert [each for each in loads if each[1] >= 0] == [(0, 0), (1, 4), (2, 8), (3, 12)]


def test_a_session_that_a_hook_stops_goes_on(launch: reconverge.Launch) -> None:
    session, hooks, pcs = launch.session(), reconverge.Hooks(), []

    @hooks.issue
    def stop(event: reconverge.Event) -> str:
        pcs.append(event.pc)
        return "stop"

    while session.observe(hooks).stopped:
        assert session.pc == pcs[-1]
    assert pcs == [each.address for each in launch.program] and session.ended
    assert session.outputs()["a"].tolist() == launch.run()["a"].tolist() == [10, 21, 32, 43]


def test_a_hook_cannot_step_the_session_that_calls_it(launch: reconverge.Launch) -> None:
    session, hooks = launch.session(), reconverge.Hooks()

    @hooks.issue
    def step(event: reconverge.Event) -> None:
        session.step()

    with pytest.raises(reconverge.Error, match="a hook cannot step the session that calls it"):
        session.observe(hooks)
    assert session.step()


def test_a_hook_of_a_session_is_called_as_often_as_there_are_steps(nested: reconverge.Launch) -> None:
    session, hooks, steps = nested.session(), reconverge.Hooks(), []
    hooks.issue(lambda event: steps.append((event.step, event.pc, event.mask)))
    session.observe(hooks)
    issues = nested.trace().of("issue")
    assert steps == list(zip(issues.step.tolist(), issues.pc.tolist(), issues.mask.tolist(), strict=True))


def test_hooks_with_one_event_each_are_fast() -> None:
    """Regression test: with batch=1, a run passed only 38,000 to 80,000 events per second (unicorn: 800,000)."""
    launch = reconverge.kernel("collatz", "tesla", lanes=1 << 14)
    hooks, count = reconverge.Hooks(), 0

    @hooks.issue
    def each(event: reconverge.Event) -> None:
        nonlocal count
        count += event.mask & 1

    rates = []
    for _ in range(3):
        # The test measures processor time instead of wall time, because other programs may run at the same time.
        start = time.thread_time()
        observed = launch.observe(hooks, batch=1)
        rates.append(observed.events[0] / (time.thread_time() - start))
    assert max(rates) > 500_000, rates
