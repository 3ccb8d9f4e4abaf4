"""If a user passes a wrong value, the package raises one of its own errors."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reconverge
from reconverge.campaign import Campaign


@pytest.fixture
def collatz(samples: Path) -> reconverge.Program:
    return reconverge.load(samples / "collatz.s")


@pytest.fixture
def stepped(collatz: reconverge.Program) -> reconverge.Session:
    session = collatz.session(block=12, params={"a": np.zeros(12, np.uint32)})
    session.step(4)
    return session


@pytest.mark.parametrize("value", [2**40, -1, 2**70, np.int64(2**32), np.full(12, 2**33)])
def test_a_number_outside_the_range_of_a_register_is_an_overflow(stepped: reconverge.Session, value: Any) -> None:
    """Regression test: `s.regs["$r1"] = 2**40` stored 0."""
    before = stepped.regs["$r1"].tolist()
    with pytest.raises(OverflowError, match=r"\$r1: .*: expected 0 to 4294967295") as caught:
        stepped.regs["$r1"] = value
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, reconverge.Error)
    assert stepped.regs["$r1"].tolist() == before


def test_floats_are_for_registers_of_floats(stepped: reconverge.Session) -> None:
    """Regression test: `s.regs["$r1"] = 1.7` stored 1."""
    for registers in (stepped.regs, stepped.regs.i32):
        with pytest.raises(TypeError, match=r"\$r1: expected an integer .*, found a float; regs.f32 writes numbers of binary32"):
            registers["$r1"] = 1.7
        with pytest.raises(TypeError, match="expected an integer .*, found an array of float32"):
            registers["$r1"] = np.ones(12, np.float32)
    stepped.regs.f32["$r1"] = 1.7
    assert stepped.regs.f32["$r1"].tolist() == [np.float32(1.7)] * 12
    stepped.regs.f32["$r1"] = 3
    assert stepped.regs["$r1"].tolist() == [0x40400000] * 12
    with pytest.raises(OverflowError, match="1e\\+39: expected -3.4028235e38 to 3.4028235e38"):
        stepped.regs.f32["$r1"] = 1e39
    stepped.regs.f32["$r1"] = float("inf")
    stepped.regs.i32["$r1"] = -5
    assert stepped.regs["$r1"].tolist() == [2**32 - 5] * 12
    with pytest.raises(OverflowError, match="expected -2147483648 to 2147483647"):
        stepped.regs.i32["$r1"] = 2**31
    values: list[Any] = ["5", None, [1, "2"], {}]
    for wrong in values:
        with pytest.raises(TypeError):
            stepped.regs["$r1"] = wrong


def test_memory_takes_bytes_that_fit(stepped: reconverge.Session) -> None:
    memory = stepped.memory("g")
    memory["a"] = np.arange(12, dtype=np.uint32)
    assert memory.array("a", np.uint32).tolist() == list(range(12))
    memory["a"] = 7
    assert memory["a"].tolist() == [7] * 48
    first, _ = memory.buffers["a"]
    memory[first : first + 4] = [1, 2, 3, 4]
    memory[first + 4 : first + 6] = b"\x05\x06"
    assert memory[first : first + 6].tolist() == [1, 2, 3, 4, 5, 6]
    for number in (256, 2**40, -1):
        with pytest.raises(OverflowError, match=f"g: {number}: expected one byte, 0 to 255"):
            memory["a"] = number
    for wrong in (1.7, "7", None):
        with pytest.raises(TypeError, match="g: expected bytes, found"):
            memory["a"] = wrong  # type: ignore[assignment]
    with pytest.raises(reconverge.Error, match="g: expected 48 bytes, found 96"):
        memory["a"] = np.zeros(12)


def test_parameters_of_another_type_are_refused(collatz: reconverge.Program) -> None:
    """Regression test: `params={"gcd": np.zeros(12)}` (float64) had the result 4.24e-314."""
    for array, fits in ((np.zeros(12), "np.float32"), (np.zeros(12, np.int64), "np.int32")):
        with pytest.raises(reconverge.Error, match=rf"params a: an array of {array.dtype}, but .* give array.astype\({fits}\)"):
            collatz.run(block=12, params={"a": array})
    for number in (2**40, -(2**31) - 1):
        with pytest.raises(OverflowError, match=f"params a: {number}: expected -2147483648 to 4294967295"):
            collatz.run(block=12, params={"a": number})
    wide = reconverge.assemble(".isa tesla\n.kernel k\n.reg 4\n.shared 20\n.param 0 4\nmov b32 $r2 b32 s[0x10]\nld b64 $r0d g14[$r2]\nexit nop\n")
    assert wide.run(block=1, params={"a": np.zeros(1)})["a"].dtype == np.float64


def test_parameters_have_the_names_of_the_source(samples: Path) -> None:
    """Regression test: the order of the dict determined the parameters instead of their names, so a wrong order was not
    detected."""
    text = (
        ".isa tesla\n.chip sm_10\n.kernel k\n.reg 4\n.shared 24\n.param s[0x10] 4 a\n.param s[0x14] 4 out\n"
        "and b32 $r0 $r0 0xffff\nshl b32 $r0 $r0 0x2\nadd b32 $r1 b32 s[0x10] $r0\nadd b32 $r2 b32 s[0x14] $r0\n"
        "ld b32 $r3 g14[$r1]\nexit st b32 g14[$r2] $r3\n"
    )
    program = reconverge.assemble(text)
    given = np.array([5, 6, 7, 8], np.uint32)
    left = program.run(block=4, params={"out": "u32[4]", "a": given})
    assert left["out"].tolist() == given.tolist() and left["a"].tolist() == given.tolist()
    with pytest.raises(reconverge.Error, match="oout"):
        program.run(block=4, params={"a": given, "oout": "u32[4]"})


def test_unknown_keywords_are_refused_with_what_was_meant(collatz: reconverge.Program, samples: Path) -> None:
    anything: Any = reconverge
    program: Any = collatz
    calls: list[tuple[Any, str]] = [
        (lambda: program.run(blok=3), "unknown keyword `blok`; did you mean `block`"),
        (lambda: program.session(parms={}), "unknown keyword `parms`; did you mean `params`"),
        (lambda: anything.launch(samples / "loop-break.tesla.toml", whatchdog=1), "did you mean `watchdog`"),
    ]
    for call, message in calls:
        with pytest.raises(TypeError, match=message) as caught:
            call()
        assert isinstance(caught.value, reconverge.Error)


def raw(collatz: reconverge.Program) -> list[tuple[Any, type[Exception], str]]:
    launch = collatz.launch(block=12, params={"a": np.zeros(12, np.uint32)})
    z = np.zeros(12, np.uint32)
    anything: Any = collatz
    every: Any = launch
    session: Any = launch.session()
    hooks = reconverge.Hooks()
    hooks.issue(lambda events: None)
    return [
        (lambda: anything.run(block=12, params=[z]), TypeError, r'params: expected a dict such as params=\{"\w+": array\}, found a list'),
        (lambda: anything.run(block=12, inputs=z), TypeError, "inputs: expected a dict .*, found an ndarray"),
        (lambda: anything.run(block=12.0), TypeError, r"block: expected a whole number \(for instance 12\), found a float \(12.0\)"),
        (lambda: anything.run(block="twelve"), TypeError, "block: expected one or more whole numbers, .*, found the text 'twelve'"),
        (lambda: anything.run(block="8x8"), TypeError, r"block=\(8, 8\)"),
        (lambda: anything.run(block=(4, -1)), OverflowError, r"block\[1\]: -1: expected 1 to 4294967295"),
        (lambda: anything.run(block=0), OverflowError, "block: 0: expected 1 to"),
        (lambda: anything.launch(lanes=1.5), TypeError, "lanes: expected a whole number, found a float"),
        (lambda: launch.run(jobs=-1), OverflowError, "jobs: -1: expected 1 to 65536"),
        (lambda: every.run(jobs="2"), TypeError, "jobs: expected a whole number, found a str"),
        (lambda: session.step(-1), OverflowError, "times: -1: expected 0 or more"),
        (lambda: session.step(1.5), TypeError, "times: expected a whole number, found a float"),
        (lambda: session.step(group=9), OverflowError, "group: 9: expected 0 to 0"),
        (lambda: session.step(lane=64), OverflowError, "lane: 64: expected 0 to 63"),
        (lambda: session.run_until(pc="x"), TypeError, "at: expected a whole number, found a str"),
        (lambda: session.run_until(budget=-1), OverflowError, "budget: -1"),
        (lambda: launch.observe(hooks, batch=-1), OverflowError, "batch: -1: expected 1 or more"),
        (lambda: launch.observe(hooks, batch=0), OverflowError, "batch: 0"),
        (lambda: launch.trace(limit=-1), OverflowError, "limit: -1"),
        (lambda: reconverge.assemble(b"exit nop"), TypeError, r"assemble: expected a str, found a bytes; text.decode\(\)"),  # type: ignore[arg-type]
        (lambda: reconverge.assemble("exit nop", chip="sm_99"), ValueError, "chip: unknown chip `sm_99`.*sm_10"),
        (lambda: reconverge.disassemble([1, 2], chip="sm_99"), ValueError, "tesla: .*sm_10"),
        (lambda: reconverge.explain(5, isa="tesla"), TypeError, "explain: expected a str or words, found an int"),  # type: ignore[arg-type]
        (lambda: collatz.at("x"), TypeError, "at: expected a whole number, found a str"),  # type: ignore[arg-type]
        (lambda: reconverge.kernel("collatz", "tesla", lanes=-256), OverflowError, "lanes: -256"),
        (lambda: session.memory("g").array("a", "V0"), ValueError, "g: expected a type of fixed size, .*, found .*V0"),
        (lambda: session.memory("g").array("a", object), ValueError, "g: expected a type of fixed size, .*, found object"),
        (lambda: session.memory("g").array("a", "nonsense"), TypeError, "'nonsense' is not a type of numpy"),
        (lambda: session.memory("g")["b"], ValueError, "g: unknown part `b`"),
        (lambda: session.memory("g")[5], TypeError, "expected a range of bytes .*, found an int"),
        (lambda: session.memory("g")[-4:8], OverflowError, "g: -4"),
        (lambda: session.regs[3], TypeError, r"registers: expected a name .*, found an int \(3\)"),
        (lambda: session.regs["$q1"], ValueError, r"no such register.*there are \$r0"),
        (lambda: session.restore(3), TypeError, "restore: expected a snapshot .*, found an int"),
        (lambda: launch.observe(3), TypeError, "observe: expected hooks, .*, found an int"),  # type: ignore[arg-type]
        (lambda: launch.run(engine=3), TypeError, "engine: expected a str.*, found an int"),  # type: ignore[arg-type]
    ]


def test_wrong_values_are_clear_errors_with_their_place(collatz: reconverge.Program) -> None:
    """Regression test: these values caused exceptions of Python or misleading messages. For example, `params=[z]` caused
    `'list' object has no attribute 'items'`, and `memory('g').array('out', 'V0')` caused a ZeroDivisionError."""
    for call, kind, message in raw(collatz):
        with pytest.raises(kind, match=message) as caught:
            call()
        assert isinstance(caught.value, reconverge.Error), (message, caught.value)


def test_files_that_do_not_exist_are_all_the_same_error() -> None:
    """Regression test: `load("/nope.s")` raised FileNotFoundError, but `launch("/nope.toml")` raised Error."""
    for call in (
        lambda: reconverge.load("/nope"),
        lambda: reconverge.programs("/nope"),
        lambda: reconverge.launch("/nope"),
        lambda: Campaign("/nope"),
    ):
        with pytest.raises(FileNotFoundError, match="/nope") as caught:
            call()
        assert isinstance(caught.value, reconverge.Error) and caught.value.filename == "/nope"
    with pytest.raises(reconverge.Error, match="it is a folder"):
        reconverge.load("/")


def test_folders_of_results_that_do_not_exist_are_errors(tmp_path: Path) -> None:
    """Regression test: `frame("/typo")` returned an empty frame, and `campaign --summary typo` printed an empty table."""
    file = tmp_path / "c.toml"
    file.write_text('kernel = "collatz"\nisa = "r700"\nlanes = 64\ninjections = 4\n')
    campaign = Campaign(file)
    for call in (campaign.frame, campaign.summary, lambda folder: list(campaign.results(folder))):
        with pytest.raises(FileNotFoundError, match="/typo"):
            call("/typo")


def test_folders_without_results_of_the_campaign_are_errors(tmp_path: Path) -> None:
    """Regression test: for a folder without results, the frame and the table were empty."""
    file = tmp_path / "c.toml"
    file.write_text('kernel = "collatz"\nisa = "r700"\nlanes = 64\ninjections = 4\n')
    campaign = Campaign(file)
    for call in (campaign.frame, campaign.summary, lambda folder: list(campaign.results(folder))):
        with pytest.raises(reconverge.Error, match="no results of this campaign: name another folder, or run"):
            call(tmp_path)
        with pytest.raises(reconverge.Error, match="it is a file; expected a folder of results"):
            call(file)


def test_the_words_of_a_program_cannot_be_written(collatz: reconverge.Program) -> None:
    """Regression test: `Program.words` was a view that a user could make writeable."""
    words: Any = collatz.words
    with pytest.raises(ValueError, match="read-only"):
        words[0] = 1
    while isinstance(words, np.ndarray):
        with pytest.raises(ValueError, match="WRITEABLE"):
            words.flags.writeable = True
        words = words.base


def test_what_is_read_cannot_be_written(stepped: reconverge.Session) -> None:
    """Regression test: a user could make views writeable."""
    memory = stepped.memory("g")
    read: list[Any] = [stepped.regs["$r1"], stepped.regs["$r0":"$r2"], memory["a"], memory.array("a", np.uint32)]
    read.append(reconverge.kernel("mandel", "r700", lanes=64).session().regs["R0"])
    for array in read:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        base: Any = array
        while isinstance(base, np.ndarray):
            with pytest.raises(ValueError, match="WRITEABLE"):
                base.flags.writeable = True
            base = base.base


def test_a_trap_has_what_the_command_prints(collatz: reconverge.Program) -> None:
    """Regression test: `str(Trap)` did not have all lines that the command prints."""
    with pytest.raises(reconverge.Trap) as caught:
        collatz.run(block=12, params={"a": np.zeros(4, np.uint32)})
    trap = caught.value
    lines = str(trap).splitlines()
    assert lines[0] == trap.message and "exit st b32 g14[$r0] $r4" in lines[1] and "collatz.s:33: " in lines[1]
    assert any("lane 4: $r0 = " in line for line in lines)
    assert trap.nearest is not None and trap.nearest in str(trap)
    session = collatz.session(block=12, params={"a": np.zeros(4, np.uint32)})
    for call in (session.run, lambda: session.step(1000)):
        with pytest.raises(reconverge.Trap, match=r"collatz\.s:33: exit st") as again:
            call()
        assert again.value.registers == trap.registers


def test_warnings_point_at_the_line_that_caused_them(samples: Path, tmp_path: Path) -> None:
    """Regression test: warnings referred to lines of the package."""
    text = "exit nop\n.isa tesla\n"
    program = reconverge.assemble(".isa r700\n.chip rv770\n.stage pixel\n.gprs 2\nEXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM\n")
    strided = np.ones((4, 8), np.float32)[:, ::2]
    del text
    for call in (
        lambda: program.run(inputs={"R0": [[1, 2], [3, 4]]}),
        lambda: program.launch(inputs={"R0": [[1, 2], [3, 4]]}),
        lambda: program.stats(inputs={"R0": strided}),
        lambda: program.session(inputs={"R0": strided}),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert [each.filename for each in caught] == [__file__], [str(each.message) for each in caught]
