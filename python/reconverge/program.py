"""Programs. This module reads programs from files and sources, lists programs, and explains instructions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, overload

import numpy as np
import numpy.typing as npt

from . import _native, html
from ._checks import article, existing, meant, text, warn, whole
from .errors import Error, WrongType
from .instruction import Explanation, Instruction, Operation, Read
from .keywords import LaunchKeywords

if TYPE_CHECKING:
    from .launch import Engine, Launch, Result
    from .session import Session
    from .stats import Stats
    from .trace import Trace

#: A path.
Source = str | os.PathLike[str]
#: The machines.
Isa = Literal["r500", "r700", "tesla"]


#: Start of a line in an R700 ALU group. The first line of a group starts differently.
_SLOT = re.compile(r"[xyzwt]: ")


class Parameter(TypedDict):
    """A parameter of a kernel."""

    name: str | None
    #: Byte offset from the start of the parameters.
    offset: int
    bytes: int


class ConstantData(TypedDict):
    """Constants in a file, with their bank, first byte and number of bytes."""

    bank: int
    offset: int
    bytes: int


class StateRegister(TypedDict):
    """A state register that a file sets."""

    register: str
    value: int


class SamplerUnit(TypedDict):
    """A texture that a program samples."""

    name: str
    unit: int


class Contents(TypedDict, total=False):
    """Properties of a program that its file states. A property that the file does not state is ``None``."""

    name: str | None
    demangled: str | None
    isa: str
    chip: str | None
    stage: str | None
    module: int | None
    words: int
    instructions: int
    base: int
    registers: int | None
    registers_needed: int | None
    shared: int | None
    local: int | None
    stack: int | None
    stack_needed: int | None
    barriers: int | None
    parameters: list[Parameter]
    parameter_bytes: int | None
    constants: list[ConstantData]
    state: list[StateRegister]
    samplers: list[SamplerUnit]


class Finding(TypedDict):
    """An instruction that breaks a rule of its machine."""

    rule: str
    severity: str
    pc: int
    message: str
    #: Where the rule is documented.
    source: str
    fix: str


class Program(Sequence[Instruction]):
    """A program. The object has the instructions in order, and the properties that the program's file states.

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
        self._uses: dict[int, tuple[Operation, ...]] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.title, self._native.state())

    @property
    def name(self) -> str | None:
        """The name of the program, if the file states a name."""
        return self._native.name

    @property
    def isa(self) -> Isa:
        """The machine: ``r500``, ``r700`` or ``tesla``."""
        return self._native.isa

    @property
    def chip(self) -> str | None:
        """The chip, if the chip is known."""
        return self._native.chip

    @property
    def stage(self) -> str | None:
        """The stage of the pipeline, if the stage is known."""
        return self._native.stage

    @property
    def unit(self) -> str:
        """The unit of the addresses."""
        return self._native.unit

    @property
    def source(self) -> str | None:
        """The text of the file, if the file is a source."""
        return self._native.source

    @property
    def words(self) -> npt.NDArray[np.uint32]:
        """The words of the program in memory order."""
        return self._native.words()

    @property
    def contents(self) -> Contents:
        """The properties that the file states: registers, memory, parameters, constants."""
        contents: Contents = json.loads(self._native.contents())
        return contents

    def disassemble(
        self, *, hex: bool = False, structure: bool = False, idioms: bool = False, notes: bool = False
    ) -> str:
        """The text of the program. :func:`assemble` accepts this text."""
        return self._native.text(hex, structure, idioms, notes)

    def _instructions(self) -> list[Instruction]:
        if self._lines is None:
            self._lines = [
                Instruction(address, words, text, label, depth, notes, self)
                for address, words, label, text, depth, notes, _ in self._native.lines()
                if address is not None
            ]
        return self._lines

    def _operations(self) -> dict[int, tuple[Operation, ...]]:
        if self._uses is None:
            self._uses = {
                address: tuple(
                    Operation(name, tuple(Read(*read) for read in reads), tuple(writes), loads, stores, conditional)
                    for name, reads, writes, loads, stores, conditional in operations
                )
                for address, operations in self._native.uses()
            }
            if self.isa == "r700":
                self._uses.update(_by_slot(self._instructions(), self._uses))
        return self._uses

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
        """The instruction at an address. The address is in the machine's own unit."""
        address = whole("at", address, 0, (1 << 32) - 1)
        for each in self._instructions():
            if each.address == address:
                return each
        # This call raises an error that names the nearest addresses.
        self._native.explain(address)
        raise Error(f"no instruction starts at {self._native.spelled(address)}")

    def explain(self, address: int) -> Explanation:
        """The explanation of the instruction at an address."""
        return Explanation._of(self._native.explain(whole("explain", address, 0, (1 << 32) - 1)))

    def lint(self) -> list[Finding]:
        """The instructions with which the program breaks a rule of its machine."""
        found: list[Finding] = json.loads(self._native.lint())
        return found

    def cfg(self) -> html.Picture:
        """A drawing of the control flow."""
        return html.Picture(self._native.svg(self.name or self.title))

    def launch(self, **launch: Unpack[LaunchKeywords]) -> Launch:
        """A launch: the program with its initial state.

        The keys of ``inputs``, ``constants``, ``buffers`` and ``textures`` are the names in the options of the command
        line: ``inputs={"R0": array}``. ``params`` has the parameters of a Tesla kernel. An array becomes a buffer,
        and a number becomes a value. If the source names its parameters, the names in ``params`` assign the values to
        the parameters. Otherwise, the order of ``params`` assigns the values to the parameters. Any other keyword is a
        field of a launch file. A value is a numpy array, a number, nested lists, or a string in the form of launch
        files (``"0..64"``, ``"f32[64]"``, ``"a.npy"``). An array keeps its type. A number and nested lists are
        converted to the type of the register or memory.
        """
        from .launch import prepare

        return prepare(self, launch)

    def run(
        self, *, engine: Engine | None = None, jobs: int | None = None, **launch: Unpack[LaunchKeywords]
    ) -> Result:
        """Runs a launch to its end. The keywords are those of :meth:`launch`."""
        return self.launch(**launch).run(engine=engine, jobs=jobs)

    def session(self, **launch: Unpack[LaunchKeywords]) -> Session:
        """A session that is before the first instruction of a launch. The keywords are those of :meth:`launch`."""
        return self.launch(**launch).session()

    def trace(self, **launch: Unpack[LaunchKeywords]) -> Trace:
        """The events of a run. The keywords are those of :meth:`launch`."""
        return self.launch(**launch).trace()

    def report(self, **launch: Unpack[LaunchKeywords]) -> html.Page:
        """The page that shows a run. The keywords are those of :meth:`launch`."""
        return self.launch(**launch).report()

    def stats(self, **launch: Unpack[LaunchKeywords]) -> Stats:
        """Counts by instruction of a run. The keywords are those of :meth:`launch`."""
        return self.launch(**launch).stats()

    def __eq__(self, other: object) -> bool:
        """Whether both programs have the same index in files with the same bytes."""
        if not isinstance(other, Program):
            return NotImplemented
        return self is other or self._native.state() == other._native.state()

    def __hash__(self) -> int:
        return hash((self.title, self.name, self.isa))

    def __repr__(self) -> str:
        chip = f" for {self.chip}" if self.chip else ""
        return f"<Program {self.name or self.title}: {self.isa}{chip}, {len(self)} instructions>"

    def __str__(self) -> str:
        return self.disassemble(structure=True)

    def _repr_html_(self) -> str:
        return html.listing(self)


def _by_slot(
    instructions: list[Instruction], uses: dict[int, tuple[Operation, ...]]
) -> dict[int, tuple[Operation, ...]]:
    """Assigns the operations of an ALU group to the lines of the group's slots. The lines have the address of the group."""
    groups: list[list[Instruction]] = []
    for each in instructions:
        if _SLOT.match(each.text) and groups and each.address not in uses:
            groups[-1].append(each)
        else:
            groups.append([each])
    found = {}
    for group in groups:
        operations = uses.get(group[0].address, ())
        is_one_each = len(operations) == len(group)
        for number, each in enumerate(group if len(group) > 1 else []):
            found[each.address] = (operations[number],) if is_one_each else operations
    return found


def _reopened(title: str, state: _native.ProgramState) -> Program:
    return Program(_native.reopen(*state), title)


def _open(
    data: bytes,
    title: str,
    source: bool,
    *,
    isa: str | None,
    chip: str | None,
    stage: str | None,
    endian: str | None = None,
) -> list[Program]:
    for name, value in (("isa", isa), ("chip", chip), ("stage", stage), ("endian", endian)):
        if value is not None:
            text(name, value, "")
    programs, messages = _native.open(title, data, source, isa, chip, stage, endian)
    for each in json.loads(messages):
        warn(f"{title}:{each['line']}:{each['column']}: {each['message']}", UserWarning)
    return [Program(each, title) for each in programs]


def _one(programs: list[Program], title: str, kernel: str | None) -> Program:
    names = [each.name or "?" for each in programs]
    listed = ", ".join(names)
    if kernel is not None:
        for each in programs:
            if each.name == kernel:
                return each
        raise Error(f"{title}: unknown program `{kernel}`{meant(kernel, names)}; expected one of {listed or 'none'}")
    if len(programs) != 1:
        several = f'several programs; choose one with kernel="…": {listed}' if programs else "no program found"
        raise Error(f"{title}: {several}")
    return programs[0]


def programs(
    path: Source,
    *,
    isa: Isa | None = None,
    chip: str | None = None,
    stage: str | None = None,
    endian: str | None = None,
) -> list[Program]:
    """Every program of a file: assembler source (``.s``, ``.asm``), cubin, ELF, words."""
    path = existing(path)
    data, source = path.read_bytes(), path.suffix in (".s", ".asm")
    return _open(data, str(path), source, isa=isa, chip=chip, stage=stage, endian=endian)


def load(
    path: Source,
    *,
    kernel: str | None = None,
    isa: Isa | None = None,
    chip: str | None = None,
    stage: str | None = None,
    endian: str | None = None,
) -> Program:
    """The program of a file. If the file has several programs, ``kernel`` names one of these programs."""
    found = programs(path, isa=isa, chip=chip, stage=stage, endian=endian)
    return _one(found, str(path), kernel)


def assemble(
    text: str,
    *,
    kernel: str | None = None,
    isa: Isa | None = None,
    chip: str | None = None,
    stage: str | None = None,
) -> Program:
    """The program of a source text.

    >>> import reconverge
    >>> [hex(word) for word in reconverge.assemble("exit nop", isa="tesla").words]
    ['0xf0000001', '0xe0000781']
    """
    if not isinstance(text, str):
        raise WrongType(
            f"assemble: expected a str, found {article(text)}; text.decode() returns one, and disassemble accepts bytes of a file"
        )
    return _one(_open(text.encode(), "source", True, isa=isa, chip=chip, stage=stage), "source", kernel)


def disassemble(
    words: Sequence[int] | npt.NDArray[np.integer] | bytes,
    *,
    isa: Isa | None = None,
    chip: str | None = None,
    stage: str | None = None,
    endian: str | None = None,
) -> Program:
    """The program that consists of words in memory order, or the program in the bytes of a file.

    >>> import reconverge
    >>> print(reconverge.disassemble([0xf0000001, 0xe0000781], isa="tesla")[0].text)
    exit nop
    """
    if not isinstance(words, (bytes, bytearray)):
        array = np.asarray(words)
        if array.dtype.kind not in "ui" or array.ndim != 1 or np.any((array < 0) | (array > 0xFFFF_FFFF)):
            raise Error("words: expected one row of integers from 0 to 0xffffffff, or bytes")
        words, endian = array.astype("<u4").tobytes(), endian or "little"
    found = _open(bytes(words), "words", False, isa=isa, chip=chip, stage=stage, endian=endian)
    return _one(found, "words", None)


def explain(
    instruction: str | Sequence[int], *, isa: Isa | None = None, chip: str | None = None, stage: str | None = None
) -> Explanation:
    """The explanation of one instruction. ``instruction`` is the text of the instruction, or its words.

    >>> import reconverge
    >>> reconverge.explain("add b32 $r0 $r1 $r2", isa="tesla").fields[0].name
    'opcode'
    """
    if isinstance(instruction, (bytes, bytearray)) or not isinstance(instruction, Sequence | np.ndarray):
        raise WrongType(f"explain: expected a str or words, found {article(instruction)}")
    if isinstance(instruction, str):
        return Explanation._of(_native.explain([], instruction, isa, chip, stage))
    words = [whole("explain", word, 0, (1 << 32) - 1) for word in instruction]
    return Explanation._of(_native.explain(words, None, isa, chip, stage))
