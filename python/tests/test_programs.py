"""Files to programs, and what can be read of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import reconverge


def test_words_to_text_to_words_is_the_identity(samples: Path) -> None:
    for path in [*samples.glob("nested-if.*.s"), *samples.glob("loop-break.*.s")]:
        program = reconverge.load(path)
        for options in ({}, {"hex": True}, {"structure": True}, {"notes": True}):
            back = reconverge.assemble(program.disassemble(**options))
            assert np.array_equal(back.words, program.words), (path, options)
        again = reconverge.disassemble(program.words, isa=program.isa, chip=program.chip, stage=program.stage)
        assert np.array_equal(again.words, program.words)


def test_a_program_is_a_sequence_of_its_instructions(samples: Path) -> None:
    program = reconverge.load(samples / "collatz.s")
    assert program.isa == "tesla" and len(program) == len(list(program)) == 20
    assert program[-1].text == program[len(program) - 1].text == "exit st b32 g14[$r0] $r4"
    assert program.at(0x28).text == program[5].text == "set $c0 # e u32 $r3 $r1"
    assert "comparison" in [field.name for field in program[5].explain().fields]
    assert program.contents["registers"] == 6


def test_an_address_between_instructions_is_refused_with_the_nearest(samples: Path) -> None:
    with pytest.raises(reconverge.Error, match=r"no instruction starts at 0x2a: the nearest start at 0x28 and 0x30"):
        reconverge.load(samples / "collatz.s").at(0x2A)


def test_every_error_of_a_source_has_its_place() -> None:
    with pytest.raises(reconverge.SourceError, match=r"source:2:\d+: ") as caught:
        reconverge.assemble(".isa tesla\nmov b32 $r0\nad b32 $r0 $r1 $r2\n")
    assert [each["line"] for each in caught.value.diagnostics] == [2, 3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reconverge.disassemble([1, 2]), "which machine"),
        (lambda: reconverge.disassemble([-1], isa="r500"), "0 to 0xffffffff"),
        (lambda: reconverge.disassemble(np.zeros((2, 2), np.uint32), isa="r500"), "one row of integers"),
        (lambda: reconverge.disassemble([1, 2], isa="r501"), "isa: unknown value `r501`.*r500"),  # type: ignore[arg-type]
        (lambda: reconverge.disassemble([1, 2], isa="r500", chip="rv770"), "rv770 is a chip of r700"),
        (lambda: reconverge.explain("add b32 $r0 $r1 $r2"), "isa= or chip="),
        (lambda: reconverge.explain([1, 2, 3], isa="tesla"), "not 3"),
        (lambda: reconverge.kernel("collatz", "r500"), "no kernel collatz of r500"),
        (lambda: reconverge.kernel("mandel", "tesla", lanes=3), "a multiple of 256"),
    ],
)
def test_wrong_input_is_an_exception_with_a_remedy(call: object, message: str) -> None:
    with pytest.raises(reconverge.Error, match=message):
        call()  # type: ignore[operator]


def test_a_file_of_several_programs_asks_for_a_name() -> None:
    text = ".isa tesla\n.kernel a\nexit nop\n.kernel b\nexit nop\n"
    with pytest.raises(reconverge.Error, match='kernel="…": a, b'):
        reconverge.assemble(text)
    assert reconverge.assemble(text, kernel="b").name == "b"


def test_notebooks_show_colours_and_escape_what_they_show(samples: Path) -> None:
    program = reconverge.load(samples / "collatz.s")
    shown = program._repr_html_()
    assert "<b style" in shown and "&lt;Program" in shown and "$r3" in shown
    assert program[5].explain()._repr_html_().count("<tr>") > 5
    assert program.cfg()._repr_svg_().startswith("<svg")
    assert program.lint() == []
