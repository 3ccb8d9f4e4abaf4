"""Programs from files, and the parts of a program."""

from __future__ import annotations

import pickle
import warnings
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
        (lambda: reconverge.disassemble([1, 2]), "unknown machine"),
        (lambda: reconverge.disassemble([-1], isa="r500"), "0 to 0xffffffff"),
        (lambda: reconverge.disassemble(np.zeros((2, 2), np.uint32), isa="r500"), "one row of integers"),
        (lambda: reconverge.disassemble([1, 2], isa="r501"), "isa: unknown value `r501`.*r500"),  # type: ignore[arg-type]
        (lambda: reconverge.disassemble([1, 2], isa="r500", chip="rv770"), "rv770 is a chip of r700"),
        (lambda: reconverge.explain("add b32 $r0 $r1 $r2"), "isa= or chip="),
        (lambda: reconverge.explain([1, 2, 3], isa="tesla"), "found 3"),
        (lambda: reconverge.kernel("collatz", "r500"), "r500 has no kernel `collatz`: expected one of mandel, scale, newton, options, stencil4, lit"),
        (lambda: reconverge.kernel("mandel", "tesla", lanes=3), "a multiple of 256"),
        (lambda: reconverge.kernel("scan", "tesla", lanes=256), "lanes: scan always has 524288 lanes"),
    ],
)
def test_wrong_input_is_an_exception_with_a_remedy(call: object, message: str) -> None:
    with pytest.raises(reconverge.Error, match=message):
        call()  # type: ignore[operator]


def test_every_kernel_of_bench_is_a_kernel() -> None:
    launch = reconverge.kernel("newton", "r500")
    assert launch.run()["color0"].shape[0] == 1 << 20
    assert pickle.loads(pickle.dumps(launch)).title == "newton (r500)"


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


def test_instructions_have_mnemonic_operands_reads_and_writes(samples: Path) -> None:
    """Instructions have attributes for their mnemonic, operands, reads and writes."""
    tesla = reconverge.load(samples / "collatz.s")
    step = tesla.at(0x28)
    assert (step.mnemonic, step.operands, step.modifiers) == ("set", ("$c0", "#", "$r3", "$r1"), ("e", "u32"))
    assert (step.reads, step.writes) == (("$r3", "$r1"), ("$c0",))
    store = tesla[-1]
    assert (store.mnemonic, store.operands, store.modifiers) == ("st", ("g14[$r0]", "$r4"), ("exit", "b32"))
    assert (store.reads, store.writes, store.loads, store.stores) == (("$r0", "$r4"), (), (), ("g14[]",))
    assert [read.purpose for read in store.operations[0].reads] == ["address", "value", "output"]
    branch = next(each for each in tesla if each.mnemonic == "bra" and each.reads)
    assert branch.modifiers == ("(lg $c0)",) and branch.reads == ("$c0",) and branch.operations[0].reads[0].purpose == "flow"

    r700 = reconverge.load(samples / "loop-break.r700.s")
    add = next(each for each in r700 if each.mnemonic == "ADD" and "R1.x" in each.operands)
    assert add.operands == ("R1.x", "R1.x", "R1.y") and add.reads == ("R1.x", "R1.y") and add.writes[0] == "R1.x"
    second = next(each for each in r700 if each.text.startswith("y: MOV"))
    assert second.mnemonic == "MOV" and second.operands == ("R1.y", "0") and second.writes[0] == "R1.y"
    start = next(each for each in r700 if each.mnemonic == "LOOP_START_DX10")
    assert len(start.operands) == 1 and start.operands[0].startswith("ADDR(")

    r500 = reconverge.load(samples / "loop-break.r500.s")
    mad = next(each for each in r500 if each.mnemonic == "MAD" and each.writes == ("temp1.r",))
    assert mad.operands == ("temp[1].r", "src0.rrr", "src0.111", "src0.ggg") and mad.reads == ("temp1.r", "temp1.g")
    leave = next(each for each in r500 if each.mnemonic == "breakrep")
    assert leave.reads == ("alu",) and leave.operands[0] == "alu"
    assert r500[-1].mnemonic == "MAX" and r500[-1].writes == ("color0.r", "color0.g", "color0.b", "color0.a")


def test_every_mnemonic_is_one_of_the_machine(samples: Path) -> None:
    from reconverge.instruction import mnemonics

    seen: dict[str, set[str]] = {}
    for path in [*samples.glob("*.s"), *(samples.parents[1] / "corpus").glob("*/*.s")]:
        try:
            with warnings.catch_warnings(action="ignore"):
                programs = reconverge.programs(path)
        except reconverge.SourceError:
            continue
        for program in programs:
            for each in program:
                assert each.mnemonic in mnemonics(program.isa), (path, each.text)
                assert not set(each.operands) & {"->", "if", "="}, each.text
                seen.setdefault(program.isa, set()).add(each.mnemonic)
    assert {isa: len(names) > 20 for isa, names in seen.items()} == {"tesla": True, "r700": True, "r500": True}
