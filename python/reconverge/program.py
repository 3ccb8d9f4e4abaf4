"""Programs: files and sources, listings, explanations."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from . import _native, html
from .errors import Error

if TYPE_CHECKING:
    from .launch import Launch, Result
    from .session import Session
    from .stats import Stats
    from .trace import Trace

Source = str | os.PathLike[str]


@dataclass(frozen=True)
class Field:
    """A field of an instruction's words."""

    word: str
    index: int
    name: str
    hi: int
    lo: int
    value: int
    text: str
    doc: str


@dataclass(frozen=True)
class Explanation:
    """One instruction, field by field."""

    words: list[int]
    text: str
    fields: list[Field]
    meaning: list[str]
    flow: list[str]
    findings: list[str]
    source: str

    @classmethod
    def _of(cls, text: str) -> Explanation:
        data = json.loads(text)
        data["fields"] = [Field(**each) for each in data["fields"]]
        return cls(**data)

    def __str__(self) -> str:
        lines = [self.text, ""]
        for each in self.fields:
            bits = str(each.hi) if each.hi == each.lo else f"{each.hi}:{each.lo}"
            lines.append(f"  word {each.index} {bits:>5}  {each.name:<18} {each.text:<16}  {each.doc}".rstrip())
        for title, sentences in (("meaning", self.meaning), ("flow", self.flow)):
            if sentences:
                lines += ["", f"{title}:", *(f"  {sentence}" for sentence in sentences)]
        return "\n".join([*lines, "", f"source: {self.source}"])

    def _repr_html_(self) -> str:
        return html.explanation(self)


@dataclass(frozen=True)
class Instruction:
    """A line of a listing that has an address."""

    address: int
    words: list[int]
    text: str
    label: str | None
    depth: int
    notes: list[str]
    _program: _native.Program = field(repr=False, compare=False)

    def explain(self) -> Explanation:
        """Its fields, what it computes, and where that is documented."""
        return Explanation._of(self._program.explain(self.address))


class Program(Sequence[Instruction]):
    """A program: its instructions in order, and what its file states.

    >>> import reconverge
    >>> p = reconverge.assemble(".isa tesla\\nmov b32 $r0 0x2\\nexit nop\\n")
    >>> len(p), p[0].text
    (2, 'mov b32 $r0 0x2')
    >>> p[0].explain().meaning[0]
    '$r0 becomes 0x2, 32 bits.'
    """

    def __init__(self, native: _native.Program, title: str) -> None:
        self._native = native
        self.title = title
        self._lines: list[Instruction] | None = None

    @property
    def name(self) -> str | None:
        """Its name, where the file has one."""
        return self._native.name

    @property
    def isa(self) -> str:
        """The machine: ``r500``, ``r700`` or ``tesla``."""
        return self._native.isa

    @property
    def chip(self) -> str | None:
        """The chip, where it is known."""
        return self._native.chip

    @property
    def stage(self) -> str | None:
        """The step of the pipeline, where it is known."""
        return self._native.stage

    @property
    def unit(self) -> str:
        """The unit of its addresses."""
        return self._native.unit

    @property
    def source(self) -> str | None:
        """The text of its file, where that is a source."""
        return self._native.source

    @property
    def words(self) -> npt.NDArray[np.uint32]:
        """Its words in memory order."""
        return self._native.words()

    @property
    def contents(self) -> dict[str, Any]:
        """What its file states: registers, memory, parameters, constants."""
        contents: dict[str, Any] = json.loads(self._native.contents())
        return contents

    def disassemble(
        self, *, hex: bool = False, structure: bool = False, idioms: bool = False, notes: bool = False
    ) -> str:
        """The text, which :func:`assemble` takes back."""
        return self._native.text(hex, structure, idioms, notes)

    def _instructions(self) -> list[Instruction]:
        if self._lines is None:
            self._lines = [
                Instruction(address, words, text, label, depth, notes, self._native)
                for address, words, label, text, depth, notes, _ in self._native.lines()
                if address is not None
            ]
        return self._lines

    def __len__(self) -> int:
        return len(self._instructions())

    @overload
    def __getitem__(self, index: int) -> Instruction: ...
    @overload
    def __getitem__(self, index: slice) -> list[Instruction]: ...
    def __getitem__(self, index: int | slice) -> Instruction | list[Instruction]:
        return self._instructions()[index]

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._instructions())

    def at(self, address: int) -> Instruction:
        """The instruction at an address, in the machine's own unit."""
        for each in self._instructions():
            if each.address == address:
                return each
        # The native half names the nearest addresses.
        self._native.explain(address)
        raise Error(f"no instruction starts at {self._native.spelled(address)}")

    def explain(self, address: int) -> Explanation:
        """The instruction at an address explained."""
        return Explanation._of(self._native.explain(address))

    def lint(self) -> list[dict[str, Any]]:
        """Where it breaks a rule of its machine."""
        found: list[dict[str, Any]] = json.loads(self._native.lint())
        return found

    def cfg(self) -> html.Picture:
        """Its control flow, drawn."""
        return html.Picture(self._native.svg(self.name or self.title))

    def launch(
        self,
        *,
        lanes: int | None = None,
        inputs: Mapping[str, Any] | None = None,
        constants: Mapping[Any, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        buffers: Mapping[Any, Any] | None = None,
        textures: Mapping[int, Any] | None = None,
        grid: int | Sequence[int] | None = None,
        block: int | Sequence[int] | None = None,
        shared: int | None = None,
        mode: str | None = None,
        watchdog: int | None = None,
        **fields: Any,
    ) -> Launch:
        """The program with what it starts from.

        ``inputs``, ``constants``, ``buffers`` and ``textures`` have the places and values of the command line's options:
        ``inputs={"R0": array}``. ``params`` has the parameters of a Tesla kernel in their order: an array is a buffer, a
        number is a value. Any other keyword is a field of a launch file. Values are numpy arrays, which keep their types;
        nested lists and numbers, which take the type of their place; or texts as launch files have them
        (``"0..64"``, ``"f32[64]"``, ``"a.npy"``).
        """
        from .launch import prepare

        return prepare(
            self,
            dict(fields, lanes=lanes, mode=mode, watchdog=watchdog),
            inputs=inputs or {},
            constants=constants or {},
            params=params or {},
            buffers=buffers or {},
            textures=textures or {},
            grid=grid,
            block=block,
            shared=shared,
        )

    def run(self, *, engine: str | None = None, jobs: int | None = None, **launch: Any) -> Result:
        """Runs a launch to its end; keywords are those of :meth:`launch`."""
        return self.launch(**launch).run(engine=engine, jobs=jobs)

    def session(self, **launch: Any) -> Session:
        """A launch before its first instruction, to be stepped; keywords are those of :meth:`launch`."""
        return self.launch(**launch).session()

    def trace(self, **launch: Any) -> Trace:
        """What happens in a run; keywords are those of :meth:`launch`."""
        return self.launch(**launch).trace()

    def stats(self, **launch: Any) -> Stats:
        """Counts by instruction of a run; keywords are those of :meth:`launch`."""
        return self.launch(**launch).stats()

    def __repr__(self) -> str:
        chip = f" for {self.chip}" if self.chip else ""
        return f"<Program {self.name or self.title}: {self.isa}{chip}, {len(self)} instructions>"

    def __str__(self) -> str:
        return self.disassemble(structure=True)

    def _repr_html_(self) -> str:
        return html.listing(self)


def _open(data: bytes, title: str, source: bool, known: dict[str, str | None]) -> list[Program]:
    programs, messages = _native.open(title, data, source, **known)
    for each in json.loads(messages):
        warnings.warn(f"{title}:{each['line']}:{each['column']}: {each['message']}", stacklevel=3)
    return [Program(each, title) for each in programs]


def _one(programs: list[Program], title: str, kernel: str | None) -> Program:
    names = ", ".join(each.name or "?" for each in programs)
    if kernel is not None:
        for each in programs:
            if each.name == kernel:
                return each
        raise Error(f"{title}: no program `{kernel}`; there is {names or 'none'}")
    if len(programs) != 1:
        several = f'several programs; choose one with kernel="…": {names}' if programs else "there is no program"
        raise Error(f"{title}: {several}")
    return programs[0]


def programs(
    path: Source,
    *,
    isa: str | None = None,
    chip: str | None = None,
    stage: str | None = None,
    endian: str | None = None,
) -> list[Program]:
    """Every program of a file: assembler source (``.s``, ``.asm``), cubin, ELF, words."""
    path = Path(path)
    known = {"isa": isa, "chip": chip, "stage": stage, "endian": endian}
    return _open(path.read_bytes(), str(path), path.suffix in (".s", ".asm"), known)


def load(
    path: Source,
    *,
    kernel: str | None = None,
    isa: str | None = None,
    chip: str | None = None,
    stage: str | None = None,
    endian: str | None = None,
) -> Program:
    """The program of a file, or the one of a name where it has several."""
    found = programs(path, isa=isa, chip=chip, stage=stage, endian=endian)
    return _one(found, str(path), kernel)


def assemble(
    text: str,
    *,
    kernel: str | None = None,
    isa: str | None = None,
    chip: str | None = None,
    stage: str | None = None,
) -> Program:
    """The program of a source text.

    >>> import reconverge
    >>> [hex(word) for word in reconverge.assemble("exit nop", isa="tesla").words]
    ['0xf0000001', '0xe0000781']
    """
    known = {"isa": isa, "chip": chip, "stage": stage, "endian": None}
    return _one(_open(text.encode(), "source", True, known), "source", kernel)


def disassemble(
    words: npt.ArrayLike | bytes,
    *,
    isa: str | None = None,
    chip: str | None = None,
    stage: str | None = None,
    endian: str | None = None,
) -> Program:
    """The program of words in memory order, or of a file's bytes.

    >>> import reconverge
    >>> print(reconverge.disassemble([0xf0000001, 0xe0000781], isa="tesla")[0].text)
    exit nop
    """
    if not isinstance(words, bytes):
        array = np.asarray(words)
        if array.dtype.kind not in "ui" or array.ndim != 1 or np.any((array < 0) | (array > 0xFFFF_FFFF)):
            raise Error("words: one row of integers from 0 to 0xffffffff fits here, or bytes")
        words, endian = array.astype("<u4").tobytes(), endian or "little"
    return _one(_open(words, "words", False, {"isa": isa, "chip": chip, "stage": stage, "endian": endian}), "words", None)


def explain(
    instruction: str | Sequence[int], *, isa: str | None = None, chip: str | None = None, stage: str | None = None
) -> Explanation:
    """One instruction explained, by its text or its words.

    >>> import reconverge
    >>> reconverge.explain("add b32 $r0 $r1 $r2", isa="tesla").fields[0].name
    'opcode'
    """
    text = instruction if isinstance(instruction, str) else None
    words = [] if text is not None else [int(word) for word in instruction]
    return Explanation._of(_native.explain(words, text, isa, chip, stage))
