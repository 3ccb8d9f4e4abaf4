"""Tests arrays of events, keywords of launches, lists of floats, messages, and the position of a session after a trap."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reconverge


@pytest.fixture
def collatz(samples: Path) -> reconverge.Program:
    return reconverge.load(samples / "collatz.s")


@pytest.fixture
def room() -> dict[str, Any]:
    return {"block": 12, "params": {"a": np.zeros(12, np.uint32)}}


def assert_read_only(*arrays: Any) -> None:
    for array in arrays:
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_arrays_of_a_trace_are_read_only(collatz: reconverge.Program, room: dict[str, Any]) -> None:
    trace = collatz.launch(**room).trace(data=True)
    empty = trace.of("trap")
    for events in (trace, trace.of("write"), empty, pickle.loads(pickle.dumps(trace)), copy.copy(trace), copy.deepcopy(trace)):
        columns = (events.step, events.group, events.kind, events.pc, events.mask, events.other, events.lane, events.value)
        assert_read_only(*columns, events.space, *events.columns.values(), events.lanes(32))


def test_arrays_that_hooks_get_are_read_only(collatz: reconverge.Program, room: dict[str, Any]) -> None:
    hooks = reconverge.Hooks()
    seen: list[reconverge.Events] = []
    hooks.issue(seen.append)
    collatz.launch(**room).observe(hooks)
    for events in seen:
        assert_read_only(events.pc, events.step, events.lanes(32), *events.columns.values())
    assert seen


def test_a_chip_that_is_not_the_programs_is_refused(collatz: reconverge.Program, room: dict[str, Any]) -> None:
    calls: list[tuple[str, str]] = [
        ("r600", "chip: r600 is a chip of r700, not of tesla"),
        ("sm_99", "chip: unknown chip `sm_99`: did you mean"),
        ("sm_13", "chip: sm_13, but the program is for sm_10: use chip= when the program is loaded"),
    ]
    for chip, message in calls:
        for call in (collatz.launch, collatz.run, collatz.stats, collatz.session, collatz.trace):
            with pytest.raises(reconverge.Error, match=message):
                call(chip=chip, **room)
    for chip in ("sm_10", "G80"):
        assert collatz.run(chip=chip, **room)["a"].tolist()[:4] == [0, 1, 7, 2]


def test_a_chip_that_a_launch_file_does_not_fit_is_refused(samples: Path) -> None:
    for chip in ("r600", "sm_99"):
        with pytest.raises(reconverge.Error, match=chip):
            reconverge.launch(samples / "nested-if.tesla.toml", chip=chip)


def test_another_program_is_refused(collatz: reconverge.Program, room: dict[str, Any]) -> None:
    for call in (collatz.launch, collatz.run, collatz.stats, collatz.session):
        with pytest.raises(reconverge.Error, match=r"program: x\.s, but the launch is for .*collatz\.s: omit program="):
            call(program="x.s", **room)
        with pytest.raises(reconverge.Error, match=r"kernel: other, but the launch is for collatz: omit kernel="):
            call(kernel="other", **room)
    collatz.run(program="collatz.s", kernel="collatz", **room)


@pytest.mark.parametrize("values", [[0.0] * 12, [0, 1.5] * 6])
def test_a_list_of_floats_for_a_buffer_says_its_type(collatz: reconverge.Program, values: list[float]) -> None:
    with pytest.warns(reconverge.TypeChosen, match="param gcd f32; state others with an array"):
        collatz.launch(block=12, params={"gcd": values})
    with pytest.warns(reconverge.TypeChosen, match="param gcd f32"):
        collatz.launch(block=12, param=[{"name": "gcd", "buffer": values}])
    with pytest.warns(reconverge.TypeChosen, match="param gcd i32"):
        collatz.launch(block=12, params={"gcd": [0] * 12})


@pytest.mark.filterwarnings("error")
def test_a_stated_type_of_floats_gives_no_warning(collatz: reconverge.Program) -> None:
    collatz.launch(block=12, params={"gcd": np.zeros(12, np.float32)})


def test_messages_about_parameters_name_keywords(collatz: reconverge.Program, samples: Path) -> None:
    wanted = r"found 0 parameters; the order of params= is the order of the parameters"
    with pytest.raises(reconverge.Error, match=wanted) as caught:
        collatz.run(block=12)
    assert "--" not in str(caught.value)
    named = reconverge.assemble(
        ".isa tesla\n.kernel k\n.reg 4\n.shared 24\n.param s[0x10] 4 a\n.param s[0x14] 4 out\nexit nop\n"
    )
    with pytest.raises(reconverge.Error, match=r'add params=\{"out": array\} for a buffer or params=\{"out": 5\}') as caught:
        named.run(block=4, params={"a": np.zeros(4, np.uint32)})
    assert "--" not in str(caught.value)


def test_after_a_trap_the_count_is_that_of_the_place(collatz: reconverge.Program) -> None:
    launch = collatz.launch(block=64, params={"a": np.zeros(12, np.uint32)})
    stepped, steps = launch.session(), 0
    with pytest.raises(reconverge.Trap):
        while stepped.step():
            steps += 1
    place = (steps, stepped.pc)
    assert stepped.instructions == steps
    for go in (stepped.step, stepped.run, lambda: stepped.step(group=stepped.group), lambda: stepped.step(lane=0)):
        with pytest.raises(reconverge.Trap):
            go()
        assert (stepped.instructions, stepped.pc) == place
    for other in (copy.copy(stepped), pickle.loads(pickle.dumps(stepped))):
        assert (other.instructions, other.pc) == place
    trapped = stepped.snapshot()
    assert trapped.instructions == steps
    ran = launch.session()
    start = ran.snapshot()
    with pytest.raises(reconverge.Trap):
        ran.run()
    assert (ran.instructions, ran.pc) == place
    ran.restore(start)
    assert ran.instructions == 0
    stepped.restore(trapped)
    assert (stepped.instructions, stepped.pc) == place
    hooks = reconverge.Hooks()
    seen: list[int] = []
    hooks.issue(lambda event: seen.append(event.step))
    for _ in range(2):
        with pytest.raises(reconverge.Trap):
            stepped.observe(hooks)
        assert (stepped.instructions, stepped.pc) == place
    assert seen == [steps, steps]
