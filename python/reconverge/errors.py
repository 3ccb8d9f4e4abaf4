"""Exceptions and warnings of the package."""

from __future__ import annotations

import json
from typing import NoReturn, TypedDict


class Error(ValueError):
    """An input is wrong, or a function is used wrongly. The message states the wrong value, the problem and the remedy."""


class WrongType(Error, TypeError):
    """A value has the wrong type for its use."""


class OutOfRange(Error, OverflowError):
    """A number is outside the allowed range."""


class NotFound(FileNotFoundError, Error):
    """A file does not exist."""


class UnknownKeyword(Error, TypeError):
    """A keyword does not exist for launches."""


class Diagnostic(TypedDict):
    """An error or a warning of the assembler, with its position in the source."""

    line: int
    column: int
    message: str
    help: str | None


class SourceError(Error):
    """The assembler rejects a source text. ``diagnostics`` has the line, column, message and help of each error."""

    diagnostics: list[Diagnostic]

    def __init__(self, message: str, details: str = "[]") -> None:
        super().__init__(message)
        self._details = details
        self.diagnostics = json.loads(details)

    def __reduce__(self) -> tuple[type[SourceError], tuple[str, str]]:
        return SourceError, (str(self), self._details)


class HookError(Error):
    """A hook can never be called, was never called, or returned something other than ``"stop"`` or ``None``."""


class StopRun(Exception):  # noqa: N818
    """An exception that a hook raises to stop the run. ``return "stop"`` has the same effect."""


class Trap(RuntimeError):
    """The program executed an operation that the hardware forbids or leaves undefined.

    ``str(trap)`` has the lines that the command ``reconverge run`` prints. The attributes have this information as Python values.
    """

    #: The first line of the message. It states the cause of the trap, the position of the trap, and the lanes that
    #: trapped.
    message: str
    #: The file of the program.
    file: str
    #: Address of the instruction.
    pc: int
    #: The lanes that trapped, numbered within their group.
    lanes: list[int]
    #: The cause of the trap.
    cause: str
    #: The text of the instruction in the source. If the program does not have a source, the text in the disassembly.
    instruction: str | None
    #: The line of the instruction in the source.
    line: int | None
    #: The number of the first lane that trapped. Lanes are numbered over the whole launch.
    lane: int | None
    #: Words of the registers that the instruction uses, by name.
    registers: dict[str, list[int]]
    #: If an invalid memory access caused the trap, the memory that the instruction accessed.
    space: str | None
    #: If an invalid memory access caused the trap, the byte address of the access.
    address: int | None
    #: If an invalid memory access caused the trap, the buffer that is nearest to the accessed address.
    nearest: str | None

    def __init__(self, message: str, details: str = "{}") -> None:
        super().__init__(message)
        self._details = details
        self.message, self.file = message, ""
        self.__dict__.update(json.loads(details))

    def __reduce__(self) -> tuple[type[Trap], tuple[str, str]]:
        return Trap, (str(self), self._details)


class EnginesDiffer(RuntimeError):
    """Two engines that run in lockstep have different results. This is a defect of an engine, not of the program."""


class EngineFault(RuntimeError):
    """The code that the compiled engine generated accessed invalid memory. This is a defect of the engine. Other engines do not
    generate code."""


class ArrayCopied(UserWarning):
    """An array was copied, because its memory could not be used directly."""


class ShardDamaged(UserWarning):
    """A file of results is damaged. The shard of this file runs again."""


class TypeChosen(UserWarning):
    """The package chose a type for numbers whose type the user did not state."""


def missing(path: str) -> NoReturn:
    """Raises the error for a file that does not exist."""
    raise NotFound(2, "no such file or directory", path)

