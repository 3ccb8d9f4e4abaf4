"""Sessions: flow, registers, memory, snapshots."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import NESTED

import reconverge

#: A register that the sample of a nested if writes, for each machine.
RESULT = {"r500": "temp[1].r", "r700": "R1.x", "tesla": "$r2"}


def test_lanes_that_wait_say_why(nested: reconverge.Launch) -> None:
    session = nested.session()
    assert session.run_until(parted=True) == "there"
    letters = "".join(each.letter for each in session.why())
    runs = {"r500": "bbAAAAAA", "r700": "bbAAAAAA", "tesla": "ppAAAAAA"}[nested.program.isa]
    assert letters == runs
    assert session.mask == 0b1111_1100
    assert session.why(0).word in ("branch", "parked") and session.why(7).word == "active"
    if nested.program.isa != "r500":
        # R500 is excluded, because R500 has a branch counter per lane instead of a stack.
        assert session.stack()[0].kind
    shown = session._repr_html_()
    assert shown.count("lane ") == 8 and "switched off" in shown or "parked" in shown


def test_registers_have_names_and_slices(nested: reconverge.Launch) -> None:
    name = RESULT[nested.program.isa]
    session = nested.session()
    session.run_until(pc=nested.program[-1].address)
    values = session.regs[name] if nested.program.isa == "tesla" else session.regs.f32[name]
    assert values.tolist() == [13, 13, 12, 12, 12, 11, 11, 11]
    whole = session.regs[name.split(".")[0]]
    assert whole.shape == ((8,) if nested.program.isa == "tesla" else (8, 4))
    first, end = {"r500": ("temp0", "temp2"), "r700": ("R0", "R2"), "tesla": ("$r0", "$r3")}[nested.program.isa]
    several = session.regs[first:end]
    assert several.shape[0] == (3 if nested.program.isa == "tesla" else 2)
    assert np.array_equal(several[-1], whole)


def test_a_register_that_is_changed_changes_what_comes_out(nested: reconverge.Launch) -> None:
    session = nested.session()
    session.run_until(pc=nested.program[-1].address)
    registers = session.regs if nested.program.isa == "tesla" else session.regs.f32
    registers[RESULT[nested.program.isa]] = np.arange(8, dtype=np.uint32 if nested.program.isa == "tesla" else np.float32)
    session.run()
    left = session.outputs()[NESTED[nested.program.isa]].reshape(8, -1)[:, 0]
    assert left.tolist() == list(range(8))


def test_the_end_of_steps_leaves_what_a_run_leaves(nested: reconverge.Launch) -> None:
    session = nested.session()
    while session.step():
        pass
    assert session.ended
    for name, array in nested.run().items():
        assert np.array_equal(session.outputs()[name], array)


def test_a_snapshot_is_a_place_to_come_back_to(nested: reconverge.Launch) -> None:
    session = nested.session()
    session.run_until(parted=True)
    place = session.snapshot()
    before = (session.pc, session.mask, session.why(), session.stack(), session.instructions)
    session.run()
    assert session.group is None and session.pc is None
    session.restore(place)
    assert (session.pc, session.mask, session.why(), session.stack(), session.instructions) == before
    with pytest.raises(reconverge.Error, match="belongs to another session"):
        reconverge.kernel("mandel", "r700", lanes=64).session().restore(place)


def test_a_lane_is_followed(nested: reconverge.Launch) -> None:
    session = nested.session()
    while session.step(lane=0):
        assert session.mask & 1


def test_a_predicate_stops_a_run(nested: reconverge.Launch) -> None:
    session = nested.session()
    assert session.run_until(lambda s: s.mask == 0b11) == "there"
    assert session.mask == 0b11
    assert session.run_until(budget=1) == "budget"
    assert session.run_until(lambda s: False) == "end"


def test_memory_is_read_and_written() -> None:
    program = reconverge.assemble(
        ".isa tesla\n.chip sm_10\n.kernel k\n.reg 4\n.shared 20\n.param 0 4\n"
        "and b32 $r0 $r0 0xffff\nshl b32 $r0 $r0 0x2\nadd b32 $r0 b32 s[0x10] $r0\nld b32 $r1 g14[$r0]\n"
        "add b32 $r1 $r1 0x1\nexit st b32 g14[$r0] $r1\n"
    )
    session = program.session(block=4, params={"a": np.array([1, 2, 3, 4], np.uint32)})
    space = next(name for name, of in session.spaces.items() if of == "launch" and session.memory(name).buffers)
    memory = session.memory(space)
    assert memory.array("a", np.uint32).tolist() == [1, 2, 3, 4]
    memory["a"] = np.array([10, 20, 30, 40], np.uint32)
    first, _ = memory.buffers["a"]
    assert memory[first : first + 4].tolist() == [10, 0, 0, 0]
    session.run()
    assert session.outputs()["a"].tolist() == [11, 21, 31, 41]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("R9999.x", "the group has .* registers R"),
        ("R1.q", "expected one of the channels x, y, z, w after R1, found `q`"),
        ("Q1", "no such register; there are R0.x"),
    ],
)
def test_a_wrong_register_is_refused_with_what_fits(key: str, message: str) -> None:
    session = reconverge.kernel("mandel", "r700", lanes=64).session()
    with pytest.raises(reconverge.Error, match=message):
        session.regs[key]


def test_wrong_values_of_registers_and_memory_are_refused() -> None:
    session = reconverge.kernel("mandel", "r700", lanes=64).session()
    with pytest.raises(reconverge.Error, match=r"R1.x: expected an array of shape \(64,\).* found \(3,\)"):
        session.regs["R1.x"] = np.zeros(3, np.uint32)
    with pytest.raises(reconverge.Error, match="expected an integer from 0 to 4294967295, found an array of float64; regs.f32"):
        session.regs["R1.x"] = np.zeros(64)
    session.regs.f32["R1.x"] = 0.5
    assert session.regs.f32["R1.x"].tolist() == [0.5] * 64
    with pytest.raises(reconverge.Error, match="unknown memory `nonsense`"):
        session.memory("nonsense")
    session.run()
    with pytest.raises(reconverge.Error, match="group 0 is ended: only the state of groups that run can be changed"):
        session.regs["R1.x"] = 0


def test_a_loop_of_steps_runs_every_group_to_its_end() -> None:
    """Regression test: a loop over `s.step()` stopped at the end of the first group (8,435 of 10,890 instructions)."""
    launch = reconverge.kernel("collatz", "tesla", lanes=256)
    session, ends, steps = launch.session(), 0, 0
    assert session.groups > 1
    while session.step():
        steps += 1
        ends += session.state(0) == "ended"
    assert session.ended and ends > 0 and steps + 1 == session.instructions == launch.run().instructions
    assert not session.step() and not session.step(5)
    assert np.array_equal(session.outputs()["out"], launch.run()["out"])


def test_the_answer_for_a_group_is_whether_this_group_goes_on() -> None:
    session = reconverge.kernel("collatz", "tesla", lanes=256).session()
    while session.step(group=0):
        assert session.state(0) == "running"
    assert session.state(0) == "ended" and not session.ended
    assert session.step() and session.step(0)


def test_a_lane_is_followed_through_all_groups() -> None:
    launch = reconverge.kernel("collatz", "r700", lanes=256)
    session, seen = launch.session(), set()
    while session.step(lane=5):
        assert session.mask >> 5 & 1
        seen.add(session.group)
    assert session.ended and seen == set(range(session.groups))


def test_registers_and_memory_are_read_after_the_end() -> None:
    """Regression test: after the end, `s.memory("g")["gcd"]` was the error "group 0 is ended"."""
    launch = reconverge.kernel("collatz", "tesla", lanes=256)
    session = launch.session()
    session.run()
    assert session.ended and session.pc is None
    assert np.array_equal(session.memory("g").array("out", np.uint32), launch.run()["out"])
    last = session.groups - 1
    assert len(session.registers(last)["$r0"]) == len(session.regs["$r0"]) == 32
    with pytest.raises(reconverge.Error, match="group 7 is ended: only the state of groups that run can be changed"):
        session.regs["$r0"] = 1
    with pytest.raises(reconverge.Error, match="only the state of groups that run can be changed; the launch has ended"):
        session.memory("g")["out"] = 0


def test_a_group_that_waits_has_no_registers() -> None:
    session = reconverge.kernel("mandel", "r700", lanes=256).session()
    with pytest.raises(reconverge.Error, match="group 2 waits: it does not have registers and memory before its first instruction; group 0 runs"):
        session.registers(2)["R0.x"]


def test_objects_show_what_they_are(nested: reconverge.Launch) -> None:
    """Regression test: Registers, Memory, Events and Hooks had the default repr. `dir(Hooks())` had only `all` and `on`.
    `regs.names` was a string. Editors did not complete keys."""
    session = nested.session()
    session.run_until(parted=True)
    isa = nested.program.isa
    first = {"r500": "temp0", "r700": "R0", "tesla": "$r0"}[isa]
    assert session.regs.names[0] == first and all(len(name.split()) == 1 for name in session.regs.names)
    assert list(session.regs) == session.regs.names and first in session.regs and "Q7" not in session.regs
    completions = session.regs._ipython_key_completions_()
    channel = {"r500": "temp0.r", "r700": "R0.x", "tesla": "$c0"}[isa]
    assert channel in completions and all(session.regs[name] is not None for name in completions[:4])
    assert repr(session.regs).startswith(f"<Registers of group 0 as uint32: {first} to ")
    assert repr(session.regs.f32).startswith("<Registers of group 0 as float32")
    trace = nested.trace()
    assert repr(trace.of("diverge")) == "<Events: 2 events (2 diverge)>"
    assert f"{len(trace)} events (" in repr(trace) and "issue" in repr(trace)
    assert repr(session.snapshot()).endswith(f"after {session.instructions} instructions>")
    assert repr(nested.program[0]) == f"<Instruction {nested.program._native.spelled(nested.program[0].address)}: {nested.program[0].text}>"
    assert str(session.why(0)).startswith("lane 0: ")
    left = nested.run()
    assert left._ipython_key_completions_() == list(left)
    for thing in (session, nested, nested.program, nested.stats(), left, session.regs.values(), list(trace)[0]):
        assert " object at 0x" not in repr(thing)
    session.run()
    assert repr(session).endswith(f"at its end, {session.instructions} instructions>")


def test_memory_shows_its_parts() -> None:
    session = reconverge.kernel("collatz", "tesla", lanes=256).session()
    memory = session.memory("g")
    first, end = memory.buffers["out"]
    assert repr(memory) == f"<Memory g: out {first:#x} to {end:#x}>"
    assert memory._ipython_key_completions_() == list(memory) == memory.keys() == ["out"]


def test_hooks_list_the_kinds_of_events() -> None:
    hooks = reconverge.Hooks()
    assert {"issue", "diverge", "resume", "reconverge", "write", "load", "store", "trap", "on"} <= set(dir(hooks))

    @hooks.issue(pc=[0x10, range(0x20, 0x30)])
    def mine(events: reconverge.Events) -> None: ...

    assert repr(hooks) == "<Hooks: mine of issue>" and len(hooks) == 1
    assert repr(hooks.all[0]) == "<Hook mine of issue pc=['0x10', '0x20 to 0x2f']: 0 events>"


def test_registers_are_a_table_of_lanes() -> None:
    pytest.importorskip("pandas")
    session = reconverge.kernel("collatz", "tesla", lanes=256).session()
    session.step(6)
    table = session.regs.frame("pandas")
    assert len(table) == 32 and table["$r1"].tolist() == session.regs["$r1"].tolist()
