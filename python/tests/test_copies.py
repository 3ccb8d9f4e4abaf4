"""Objects can be pickled and copied."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from conftest import NESTED

import reconverge
from reconverge.campaign import Campaign

Thing = TypeVar("Thing")


def copies(thing: Thing) -> list[Thing]:
    return [pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)]


def test_programs_and_instructions_are_copied(samples: Path) -> None:
    """Regression test: Program, Launch, Session, Trace and Instruction could not be pickled or copied."""
    for name in ("collatz.s", "sort.r700.s", "loop-break.r500.s", "vec.cubin"):
        program = reconverge.load(samples / name)
        for other in copies(program):
            assert other == program and repr(other) == repr(program) and str(other) == str(program)
            assert other.source == program.source and other.contents == program.contents
            assert np.array_equal(other.words, program.words)
        for again in copies(program[1]):
            assert again == program[1] and again.explain() == program[1].explain() and again.reads == program[1].reads


def test_a_program_is_copied_with_the_files_that_it_includes(tmp_path: Path) -> None:
    (tmp_path / "part.inc").write_text(".macro two to\nmov b32 \\to 0x2\n.endm\n")
    (tmp_path / "k.s").write_text('.isa tesla\n.include "part.inc"\ntwo $r0\nexit nop\n')
    program = reconverge.load(tmp_path / "k.s")
    data = pickle.dumps([program, program[0]])
    for file in tmp_path.iterdir():
        file.unlink()
    other, first = pickle.loads(data)
    assert other == program and first.text == "mov b32 $r0 0x2"


def test_launches_and_their_results_are_copied(nested: reconverge.Launch) -> None:
    left = nested.run()
    for other in copies(nested):
        again = other.run()
        assert other.fields == nested.fields and other.title == nested.title and again.mismatches == []
        assert np.array_equal(again[NESTED[nested.program.isa]], left[NESTED[nested.program.isa]])
    for result in copies(left):
        assert dict(result.fidelity) == left.fidelity and result.instructions == left.instructions
        for name, array in left.items():
            assert np.array_equal(result[name], array) and not result[name].flags.writeable
    kernel = reconverge.kernel("collatz", "tesla", lanes=256)
    for launch in copies(kernel):
        assert np.array_equal(launch.run()["out"], kernel.run()["out"])


def test_a_launch_is_copied_with_its_arrays_and_files(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = reconverge.load(samples / "vec.s")
    given = np.arange(4, dtype=np.int32)
    np.save("a.npy", given)
    launches = [
        program.launch(grid=2, block=2, params={"a": given, "out": "i32[4]", "n": 5}),
        program.launch(grid=2, block=2, params={"a": "a.npy", "out": "i32[4]", "n": 5}),
    ]
    data = pickle.dumps(launches)
    given[:] = 100
    os.unlink("a.npy")
    for launch in pickle.loads(data):
        left = launch.run()
        assert left["out"].tolist() == [5, 6, 7, 8] and left["n"] if "n" in left else True
        first, _ = launch.buffers["out"]
        assert pickle.loads(pickle.dumps(left)).at(first, 4, np.int32).tolist() == [5, 6, 7, 8]


def test_traces_counts_and_answers_are_copied(nested: reconverge.Launch) -> None:
    trace, stats, session = nested.trace(data=True), nested.stats(), nested.session()
    session.run_until(parted=True)
    for other in copies(trace):
        assert other == trace and other.complete and other.registers == trace.registers and list(other) == list(trace)
    events = list(trace)
    assert copies(events) == [events] * 3 and len(set(events)) > 1
    for counts in copies(stats):
        assert counts == stats
    for thing in (session.why(), session.why(0), session.stack(), session.depths(), session.instruction):
        assert copies(thing) == [thing] * 3
    values = session.regs.values()
    for again in copies(values):
        assert all(np.array_equal(again[name], array) for name, array in values.items())


def test_a_session_is_copied_at_its_place(nested: reconverge.Launch) -> None:
    session = nested.session()
    session.run_until(parted=True)
    place = (session.pc, session.mask, session.why(), session.stack(), session.instructions)
    for other in copies(session):
        assert (other.pc, other.mask, other.why(), other.stack(), other.instructions) == place
        other.run()
        assert np.array_equal(other.outputs()[NESTED[nested.program.isa]], nested.run()[NESTED[nested.program.isa]])
    assert (session.pc, session.instructions) == (place[0], place[-1])
    registers = copy.deepcopy(session.regs)
    assert all(np.array_equal(registers[name], session.regs[name]) for name in session.regs.names)


def test_a_session_that_was_changed_is_copied_and_not_pickled(nested: reconverge.Launch) -> None:
    session = nested.session()
    session.run_until(parted=True)
    snapshot = session.snapshot()
    name = {"r500": "temp1.r", "r700": "R1.x", "tesla": "$r2"}[nested.program.isa]
    session.regs[name] = 77
    assert copy.copy(session).regs[name].tolist() == [77] * 8
    with pytest.raises(TypeError, match="pickle its launch, and repeat the changes"):
        pickle.dumps(session)
    with pytest.raises(TypeError, match="belongs to its session and cannot be pickled: pickle the session"):
        pickle.dumps(snapshot)
    assert copy.copy(snapshot) is copy.deepcopy(snapshot) is snapshot
    session.restore(snapshot)
    assert pickle.loads(pickle.dumps(session)).pc == session.pc


def test_errors_and_campaigns_are_copied(samples: Path, tmp_path: Path) -> None:
    errors: list[Any] = []
    for call in (
        lambda: reconverge.load("/nope"),
        lambda: reconverge.assemble(".isa tesla\nmov b32 $r0\n"),
        lambda: reconverge.load(samples / "collatz.s").run(block=12, params={"a": np.zeros(4, np.uint32)}),
        lambda: reconverge.assemble("exit nop", chip="sm_99"),
    ):
        try:
            call()
        except Exception as raised:  # noqa: BLE001
            errors.append(raised)
    assert len(errors) == 4
    for error in errors:
        other = pickle.loads(pickle.dumps(error))
        assert type(other) is type(error) and str(other) == str(error) and vars(other) == vars(error)
    file = tmp_path / "c.toml"
    file.write_text('kernel = "collatz"\nisa = "r700"\nlanes = 64\ninjections = 4\n')
    for campaign in copies(Campaign(file)):
        assert campaign.description == Campaign(file).description


def ran(launch: reconverge.Launch) -> tuple[int, reconverge.Result]:
    result = launch.run()
    return result.instructions, result


def test_launches_and_results_go_to_other_processes(nested: reconverge.Launch) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        instructions, result = pool.apply(ran, (nested,))
    assert instructions == nested.run().instructions
    assert np.array_equal(result[NESTED[nested.program.isa]], nested.run()[NESTED[nested.program.isa]])
