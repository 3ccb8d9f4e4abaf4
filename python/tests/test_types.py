"""mypy --strict finds mistakes in programs that use the package, and does not report correct programs."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import reconverge
import reconverge.campaign

PACKAGE = Path(os.fspath(reconverge.__file__)).parent

WRONG = """\
import reconverge
from reconverge.campaign import Campaign

p = reconverge.load("k.s")
p.run(block="twelve", parms={"a": 1})
p.session(blok=3)
s = p.session()
s.why(3).lettr
Campaign("c.toml").summary("results")["sites"][0]["nope"]
"""

RIGHT = """\
import numpy as np

import reconverge
from reconverge.campaign import Campaign, Ended, Progress

p = reconverge.load("k.s", chip="sm_10")
left = p.run(block=12, grid=(1, 1), params={"a": np.zeros(12, np.uint32), "n": 3}, engine="fast", jobs=2)
total = int(left["a"].sum()) + left.instructions
words = left.at(0x100, 3).tolist()
halves = left.at(0x100, 3, np.float32).sum()
s = p.session(block=12, params={"a": "u32[12]"})
while s.step():
    letters = "".join(each.letter for each in s.why())
depth = s.why(3).number
s.regs["$r1"] = np.full(12, 3, np.uint32)
s.regs.f32["$r1"] = 0.5
numbers = s.memory("g").array("a", np.uint32).tolist()
first = p[0]
parts = (first.mnemonic, first.operands[0], first.reads, first.writes)
stats = p.stats(block=12)
efficiency: float = stats.totals["simd_efficiency"]
most = max(stats.instructions, key=lambda each: each["diverged"])["text"]
hooks = reconverge.Hooks()


@hooks.issue(pc=range(0x10, 0x40))
def each(event: reconverge.Event) -> str | None:
    return "stop" if event.mask == 1 else None


@hooks.write(register="$r1")
def many(events: reconverge.Events) -> None:
    print(events.value.max())


stopped: bool = s.observe(hooks).stopped


def classify(ended: Ended) -> str:
    return "visible" if ended.outputs is not None and ended.outcome == "sdc" else "other"


def told(progress: Progress) -> None:
    print(progress.done / progress.total)


campaign = Campaign("c.toml", classify=classify)
campaign.run("results", 2, progress=told)
low, high = campaign.summary("results")["sites"][0]["outcomes"][0]["interval"]
places = [row["place"] for row in campaign.results("results")]
other = reconverge.launch("k.toml", watchdog=1000, expect=[]).run().mismatches
"""


def mypy(text: str, folder: Path) -> list[tuple[int, str]]:
    """The errors that mypy reports for a program. Each error has its line and its message."""
    pytest.importorskip("mypy")
    (folder / "program.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports", "silent", "--cache-dir", str(folder / "cache"), "program.py"]
    environment = dict(os.environ, MYPYPATH="" if "site-packages" in str(PACKAGE) else str(PACKAGE.parent))
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.stderr == "", ran.stderr
    found = [re.match(r"program\.py:(\d+): error: (.*)", line) for line in ran.stdout.splitlines() if ": error: " in line]
    assert all(found), ran.stdout
    return [(int(each[1]), each[2]) for each in found if each]


def test_mypy_finds_each_mistake(tmp_path: Path) -> None:
    """Regression test: mypy --strict accepted `p.run(block="twelve", parms={…})`, `p.session(blok=3)`, `s.why(3).lettr` and
    `summary()["sites"][0]["nope"]`, because the package declared `**launch: Any` and `why -> Any`."""
    errors = mypy(WRONG, tmp_path)
    assert sorted({line for line, _ in errors}) == [5, 6, 8, 9], errors
    messages = {line: " ".join(message for at, message in errors if at == line) for line, _ in errors}
    assert 'Unexpected keyword argument "parms"' in messages[5]
    assert 'Argument "block"' in messages[5] and '"str"' in messages[5]
    assert 'Unexpected keyword argument "blok"' in messages[6]
    assert '"Why" has no attribute "lettr"' in messages[8]
    assert 'has no key "nope"' in messages[9]


def test_mypy_finds_nothing_in_a_program_that_is_right(tmp_path: Path) -> None:
    assert mypy(RIGHT, tmp_path) == []


def test_the_public_surface_has_no_any() -> None:
    """Regression test: with `**launch: Any` and `why -> Any`, editors did not complete names and mypy did not check types."""
    public = [getattr(reconverge, name) for name in reconverge.__all__]
    public += [value for name, value in vars(reconverge.campaign).items() if not name.startswith("_")]
    seen = 0
    for thing in public:
        if not getattr(thing, "__module__", "").startswith("reconverge."):
            continue
        members = vars(thing).items() if inspect.isclass(thing) else [(getattr(thing, "__name__", ""), thing)]
        for name, member in members:
            function = member.fget if isinstance(member, property) else member
            function = getattr(function, "__func__", function)
            annotations = getattr(function, "__annotations__", {}) if inspect.isfunction(function) else {}
            seen += len(annotations)
            for argument, annotation in annotations.items():
                assert not re.search(r"\bAny\b", str(annotation)), f"{thing}.{name}: {argument}: {annotation}"
        for name, annotation in (getattr(thing, "__annotations__", {}) if inspect.isclass(thing) else {}).items():
            assert not re.search(r"\bAny\b", str(annotation)), f"{thing}.{name}: {annotation}"
    assert seen > 150


def test_keywords_are_the_fields_that_launch_files_have() -> None:
    known = set(reconverge.LaunchFields.__annotations__)
    texts = {"r500": "OUT nop\n", "r700": ".stage pixel\nEXPORT_DONE: PIXEL[0], R0 END_OF_PROGRAM\n", "tesla": "exit nop\n"}
    listed: set[str] = set()
    for isa, text in texts.items():
        program = reconverge.assemble(f".isa {isa}\n{text}")
        with pytest.raises(reconverge.Error) as caught:
            reconverge._native.launch(program._native, "t", f'{{"isa": "{isa}", "nonsense": 1}}', [], [])
        found = re.search(r"the keys are (.*)|expected one of (.*)", str(caught.value))
        assert found, caught.value
        listed |= set(re.findall(r"\w+", found[1] or found[2]))
    assert listed <= known | {"isa", "program", "expect"}, listed - known
    assert known - listed <= {"isa", "program", "kernel", "chip", "stage", "expect", "texture", "trap", "pixels", "vertices"} | {
        "lanes", "mode", "race_check", "watchdog"
    }
    hints = typing.get_type_hints(reconverge.LaunchKeywords)
    assert {"inputs", "params", "buffers", "textures", "constants", "grid", "block"} <= set(hints)
