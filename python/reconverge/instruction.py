"""Instructions: their parts, their operands and results, their explanation."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from . import _native, html

if TYPE_CHECKING:
    from .program import Program


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


#: The purpose of a read. An instruction reads a value as an operand, to decide the flow, to compute the address of a
#: memory word or register, or to write an output.
Purpose = Literal["value", "flow", "address", "output"]


class Read(NamedTuple):
    """A register, flag or constant that an operation reads, and the purpose of the read."""

    place: str
    purpose: Purpose


class Operation(NamedTuple):
    """One operation of an instruction. All operations of an instruction read their operands before any of the operations writes
    a result."""

    #: The name of the operation in reports of a run.
    name: str
    reads: tuple[Read, ...]
    writes: tuple[str, ...]
    #: The memory that the operation reads: ``g[]``, ``LDS``.
    loads: str | None
    #: The memory that the operation writes.
    stores: str | None
    #: Whether a predicate or a condition can prevent the write of the result in active lanes.
    conditional: bool


class Parts(NamedTuple):
    """The text of an instruction in parts."""

    mnemonic: str
    operands: tuple[str, ...]
    modifiers: tuple[str, ...]


@dataclass(frozen=True)
class Instruction:
    """A line of a listing that has an address.

    >>> import reconverge
    >>> add = reconverge.assemble(".isa tesla\\n(lg $c0) add b32 $r0 b32 s[0x10] $r1\\n")[0]
    >>> add.mnemonic, add.operands
    ('add', ('$r0', 's[0x10]', '$r1'))
    >>> add.reads, add.writes, add.loads
    (('$c0', '$r1'), ('$r0',), ('s[]',))
    """

    #: Address in the machine's own unit.
    address: int
    #: The words of the instruction, in memory order.
    words: list[int]
    #: The text that the disassembler prints, in one line.
    text: str
    #: The label before the instruction.
    label: str | None
    #: The number of flow constructs that contain the instruction.
    depth: int
    #: The comments after the instruction in the listing.
    notes: list[str]
    _program: Program = field(repr=False, compare=False)

    @property
    def mnemonic(self) -> str:
        """The mnemonic: ``add``, ``MULADD``, ``MAD``. If an R500 instruction has two operations, the result is the
        mnemonic of the first operation.
        """
        return self._parts.mnemonic

    @property
    def operands(self) -> tuple[str, ...]:
        """The operands in the order of the text. Results come before other operands."""
        return self._parts.operands

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The words of the text that are neither the mnemonic nor operands: types, predicates, options."""
        return self._parts.modifiers

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations. An R500 instruction has up to two operations, and an ALU group of R700 has up to five operations."""
        return self._program._operations().get(self.address, ())

    @property
    def reads(self) -> tuple[str, ...]:
        """The registers, flags and constants that the instruction reads: ``$r1``, ``R0.x``, ``temp1.r``. Each name occurs
        once."""
        return tuple(dict.fromkeys(read.place for each in self.operations for read in each.reads))

    @property
    def writes(self) -> tuple[str, ...]:
        """The registers and flags that the instruction writes. Each name occurs once."""
        return tuple(dict.fromkeys(place for each in self.operations for place in each.writes))

    @property
    def loads(self) -> tuple[str, ...]:
        """The memories that the instruction reads."""
        return tuple(dict.fromkeys(each.loads for each in self.operations if each.loads is not None))

    @property
    def stores(self) -> tuple[str, ...]:
        """The memories that the instruction writes."""
        return tuple(dict.fromkeys(each.stores for each in self.operations if each.stores is not None))

    def explain(self) -> Explanation:
        """Explains the instruction: its fields, its result, and the documents that define it."""
        return self._program.explain(self.address)

    @property
    def _parts(self) -> Parts:
        return parts(self._program.isa, self.text)

    def __hash__(self) -> int:
        return hash((self.address, self.text))

    def __repr__(self) -> str:
        return f"<Instruction {self._program._native.spelled(self.address)}: {self.text}>"

    def __str__(self) -> str:
        return self.text


@functools.lru_cache(maxsize=4096)
def parts(isa: str, text: str) -> Parts:
    """The mnemonic, the operands and the remaining words of an instruction's text."""
    return {"tesla": _tesla, "r700": _r700, "r500": _r500}[isa](text)


@functools.cache
def mnemonics(isa: str) -> frozenset[str]:
    """The mnemonics of a machine."""
    return frozenset(_native.mnemonics(isa))


def _split(text: str, separators: str) -> list[str]:
    """Splits a text at the separators that are outside brackets."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif depth == 0 and letter in separators:
            found.append(text[start:place].strip())
            start = place + 1
    found.append(text[start:].strip())
    return [each for each in found if each]


_OPERAND = re.compile(r"[-+~!|]*(\$|#$|\w*\[|0x[0-9a-fA-F]|\d|[A-Z_]\w*$)|.*[$\[]")
#: Words in the text of a Tesla instruction. Each word belongs to the operand that follows the word.
_SIGNS = ("neg", "abs", "not", "sshr")


def _tesla(text: str) -> Parts:
    words = _split(text, " ,")
    modifiers: list[str] = []
    while words and (words[0].startswith(("(", "@")) or len(words) > 1 and words[0] in ("exit", "join", "short")):
        modifiers.append(words.pop(0))
    mnemonic = words.pop(0) if words else ""
    operands: list[str] = []
    signs: list[str] = []
    for word in words:
        if word in _SIGNS:
            signs.append(word)
        elif _OPERAND.match(word):
            operands.append(" ".join([*signs, word]))
            signs = []
        else:
            modifiers += [*signs, word]
            signs = []
    return Parts(mnemonic, tuple(operands), tuple(modifiers + signs))


def _r700(text: str) -> Parts:
    # An R700 line may start with the number of the ALU group and the slot of the operation.
    found = re.match(r"(?:\d+\s+)?(?:([xyzwt]):\s+)?", text)
    modifiers = [found[1]] if found and found[1] else []
    rest = text[found.end() :] if found else text
    name = re.match(r"[\w*.]+", rest)
    if name is None:
        return Parts("", (), (text,))
    mnemonic, *scale = re.split(r"[*.]", name[0])
    modifiers += scale
    is_flow = rest[name.end() :].startswith(":")
    places, rest = _split(rest[name.end() :].removeprefix(":").strip(), ","), ""
    operands: list[str] = []
    for number, each in enumerate(places):
        for place, word in enumerate(_split(each, " ")):
            # Options such as POP_CNT(1) and END_OF_PROGRAM come last. The address of a jump is an operand, not an option.
            is_option = re.fullmatch(r"[A-Z][A-Z_0-9]*(\(.*\))?", word) and not re.fullmatch(r"(R|T|C|KC|PV|PS)\d*", word)
            is_operand = word.startswith("ADDR(") if is_flow and "(" in word else not is_option
            if place == 0 and (number > 0 or "[" in word):
                is_operand = True
            (operands if is_operand else modifiers).append(word)
    return Parts(mnemonic, tuple(operands), tuple(modifiers))


#: The first word in the text of an R500 instruction. This word names the unit that executes the instruction.
_UNITS = ("ALU", "OUT", "TEX")


def _r500(text: str) -> Parts:
    operands: list[str] = []
    modifiers: list[str] = []
    mnemonic = ""
    for half in re.split(r"\s\+\s", text):
        code, _, sources = half.partition(" : ")
        words = _split(code, " ,")
        predicates = [word for word in words if re.fullmatch(r"\(!?[\w.]+\)", word)]
        words = [word for word in words if word not in predicates]
        modifiers += predicates
        name = ""
        if words and words[0] in _UNITS and (len(words) > 2 and words[2] == "=" or len(words) > 1 and _is_r500(words[1])):
            modifiers.append(words.pop(0))
        if len(words) > 1 and words[1] == "=":
            operands.append(words[0])
            name, words = (words[2], words[3:]) if len(words) > 2 else ("", [])
        elif words:
            name, words = words[0], words[1:]
            if len(words) > 1 and words[1] == "=":
                operands.append(words[0])
                words = words[2:]
        name, star, scale = name.partition("*")
        name, dot, clamp = name.partition(".")
        mnemonic = mnemonic or name
        modifiers += [each for each in (star + scale, dot + clamp) if each]
        for word in words:
            is_option = re.fullmatch(r"if|->|!|any|all|[A-Z_]{3,}|\{.*|\w+=.*", word)
            (modifiers if is_option else operands).append(word)
        modifiers += _split(sources, " ")
    return Parts(mnemonic, tuple(operands), tuple(each for each in modifiers if each != "->"))


def _is_r500(word: str) -> bool:
    return re.split(r"[*.]", word)[0] in mnemonics("r500")
