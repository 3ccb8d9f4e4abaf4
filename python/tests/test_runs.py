"""Runs: numpy arrays as inputs and outputs, and errors about wrong inputs."""

from __future__ import annotations

import threading
import time
import warnings
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import NESTED

import reconverge
from reconverge.keywords import ExpectField

DOUBLE = """
.isa r700
.chip rv770
.stage pixel
.gprs 2
ALU:
    0 x: ADD R0.x, R0.x, R0.x
      y: ADD R0.y, R0.y, R0.y
EXPORT_DONE: PIXEL[0], R0.xyxy END_OF_PROGRAM
"""


def double(**launch: Any) -> Any:
    return reconverge.assemble(DOUBLE).run(**launch)


def test_a_million_lanes_come_back_at_one_address_without_a_copy() -> None:
    given = np.arange(2_000_000, dtype=np.float32).reshape(1_000_000, 2)
    left = double(inputs={"R0": given})
    first, again = left["pixel0"], left["pixel0"]
    assert first.shape == (1_000_000, 4) and first.dtype == np.float32
    assert first.__array_interface__["data"][0] == again.__array_interface__["data"][0]
    # The array is a view of the buffer that Rust allocated, and numpy does not own a copy.
    assert not first.flags.owndata and first.base is not None
    assert np.array_equal(first[:, :2], given * 2)
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1


def test_outputs_cannot_be_made_writeable_by_any_array_below_them() -> None:
    result = double(inputs={"R0": np.ones((64, 2), np.float32)})
    session = reconverge.assemble(DOUBLE).launch(inputs={"R0": np.ones((64, 2), np.float32)}).session()
    session.run()
    for output in (result["pixel0"], session.outputs()["pixel0"]):
        below = [output, output.view(), output[1:], output.reshape(-1), output.T, np.asarray(output)]
        while isinstance(below[-1].base, np.ndarray):
            below.append(below[-1].base)
        for array in below:
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
        with pytest.raises((TypeError, ValueError)):
            memoryview(below[-1].base)  # type: ignore[arg-type]


def test_results_outlive_what_made_them() -> None:
    array = double(inputs={"R0": np.ones((64, 2), np.float32)})["pixel0"]
    assert array.sum() == 64 * 8


def test_every_engine_and_number_of_threads_gives_the_same() -> None:
    launch = reconverge.kernel("mandel", "r700", lanes=4096)
    wanted = launch.run(engine="reference")
    for engine in ("fast", "compiled", "lockstep"):
        for jobs in (1, 2):
            found = launch.run(engine=engine, jobs=jobs)
            assert np.array_equal(found["pixel0"], wanted["pixel0"]) and found.instructions == wanted.instructions


def test_launch_files_are_judged(nested: reconverge.Launch) -> None:
    left = nested.run()
    assert left.mismatches == []
    values = left[NESTED[nested.program.isa]].reshape(8, -1)[:, 0]
    assert values.tolist() == [13, 13, 12, 12, 12, 11, 11, 11]


def test_a_kernel_takes_its_parameters_in_order() -> None:
    samples = Path(__file__).resolve().parents[2] / "docs" / "samples"
    program = reconverge.load(samples / "vec.s")
    given = np.arange(4, dtype=np.int32)
    left = program.run(grid=2, block=2, params={"a": given, "out": "i32[4]", "n": 5})
    assert left["out"].tolist() == [5, 6, 7, 8]
    assert given.tolist() == [0, 1, 2, 3]


def test_numbers_without_a_type_take_that_of_their_place_and_say_so() -> None:
    with pytest.warns(reconverge.TypeChosen, match=r"R0.* f32; state others with an array"):
        left = double(inputs={"R0": [[1, 2], [3, 4]]})
    assert left["pixel0"][:, :2].tolist() == [[2, 4], [6, 8]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double(inputs={"R0": np.array([[1, 2], [3, 4]], np.float32)})


def test_an_array_that_is_not_in_a_row_is_copied_and_the_message_says_so() -> None:
    given = np.arange(16, dtype=np.float32).reshape(4, 4)
    with pytest.warns(reconverge.ArrayCopied, match="inputs R0: the array is copied: it is not contiguous"):
        left = double(inputs={"R0": given[:, ::2]})
    assert np.array_equal(left["pixel0"][:, :2], given[:, ::2] * 2)
    # Four views of an array: rows in reverse order, columns in reverse order, one row for all lanes, and columns that are
    # contiguous in memory.
    pairs = given[:, :2].copy()
    for view in (pairs[::-1], pairs[:, ::-1], np.broadcast_to(pairs[:1], (4, 2)), np.asfortranarray(pairs)):
        with pytest.warns(reconverge.ArrayCopied, match="it is not contiguous"):
            left = double(inputs={"R0": view})
        assert np.array_equal(left["pixel0"][:, :2], view * 2), view.strides
    with pytest.warns(reconverge.ArrayCopied, match="its byte order is not that of this machine"):
        left = double(inputs={"R0": given[:, :2].astype(">f4")})
    assert np.array_equal(left["pixel0"][:, :2], given[:, :2] * 2)
    with pytest.warns(reconverge.ArrayCopied, match="float16 becomes float32"):
        double(inputs={"R0": given[:, :2].astype(np.float16)})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((4, 2), np.complex64), "inputs R0: an array of complex64 .* float32"),
        (np.array([object()]), "inputs R0: an array of object"),
        (np.array(["a"]), "inputs R0: an array of <U1"),
        (np.zeros(3, [("a", "i4")]), "inputs R0: an array of"),
        (np.zeros((4, 5), np.float32), r"expected 1 to 4 .* found 20 numbers"),
        (np.zeros((0, 4), np.float32), "expected at least one number, found none"),
        ("no-such-file.npy", "no-such-file.npy"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_wrong_array_is_refused_with_its_name(value: Any, message: str) -> None:
    with pytest.raises(reconverge.Error, match=message):
        double(inputs={"R0": value})


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        ({"lanes": 0}, "lanes"),
        ({"inputs": {"R900": [1.0]}}, "R900"),
        ({"grid": 4}, "`grid` is not for r700"),
        ({"nonsense": 1}, "unknown keyword `nonsense`"),
        ({"mode": "strickt"}, "strict"),
        ({"lanes": "many"}, "lanes"),
        ({"engine": "quick"}, "engine: unknown value `quick`"),
        ({"params": {"a": np.zeros(4, np.float32)}}, "buf"),
        ({"loop": [{"number": object()}]}, "fields of the launch"),
    ],
)
def test_a_wrong_launch_is_refused(launch: dict[str, Any], message: str) -> None:
    with pytest.raises(reconverge.Error, match=message):
        double(**launch)


def test_a_trap_says_where_and_what() -> None:
    program = reconverge.assemble(
        ".isa tesla\n.chip sm_10\n.kernel k\n.reg 2\n.shared 16\nmov b32 $r0 0x10\nld b32 $r1 g14[$r0]\nexit nop\n"
    )
    with pytest.raises(reconverge.Trap) as caught:
        program.run(block=4)
    trap = caught.value
    assert (trap.pc, trap.lanes, trap.line) == (8, [0], 7)
    assert trap.address == 16 and trap.registers["$r0"] == [16]


def test_a_run_releases_the_lock_of_the_interpreter() -> None:
    launch = reconverge.kernel("mandel", "tesla", lanes=1 << 15)
    alive = threading.Event()
    ticks: list[None] = []

    def tick() -> None:
        while not alive.is_set():
            ticks.append(None)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    for _ in range(3):
        launch.run(engine="reference", jobs=1)
    after = len(ticks)
    alive.set()
    thread.join()
    assert after - before > 10


def test_notebooks_show_a_result_and_the_report(nested: reconverge.Launch) -> None:
    assert "13" in nested.run()._repr_html_()
    page = nested.report()
    assert page.text.startswith("<!doctype html>") or "<html" in page.text[:200].lower()
    before, text, after = page._repr_html_().split('"', 2)
    assert before == "<iframe srcdoc=" and after.endswith("></iframe>")
    assert unescape(text).replace('<base href="about:srcdoc">', "") == page.text


def test_a_program_has_the_page_of_a_run() -> None:
    page = reconverge.assemble(DOUBLE).report(lanes=4)
    assert repr(page) == "<Page>" and "RV770" in page.text.upper()


def test_the_page_of_a_session_opens_at_its_step(nested: reconverge.Launch) -> None:
    session = nested.session()
    session.step(3)
    page = session.report()
    assert repr(page) == "<Page at step=3>"
    shown = unescape(page._repr_html_())
    assert '<base href="about:srcdoc"><script>location.hash = "step=3"</script>' in shown
    assert page.text == nested.report().text, "the file has no place"


def test_conditions_on_counts_are_judged(samples: Path) -> None:
    """`[[expect]]` checks conditions on counts."""
    expect: list[ExpectField] = [{"holds": "instructions <= 16"}, {"holds": "divergent_branches == 2"}]
    left = reconverge.launch(samples / "nested-if.tesla.toml", expect=expect).run()
    assert len(left.held) == 1 and "divergent_branches" in left.held[0]
    assert len(left.mismatches) == 1 and "instructions <= 16" in left.mismatches[0]
