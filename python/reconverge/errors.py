"""Exceptions and warnings of the package."""

from __future__ import annotations

import json
from typing import NoReturn, TypedDict


class Error(ValueError):
    """The input or the usage is wrong. The message names the wrong value, the problem and the remedy."""


class WrongType(Error, TypeError):
    """A value has the wrong type for its use."""


class OutOfRange(Error, OverflowError):
    """A number is outside the allowed range."""


class NotFound(FileNotFoundError, Error):
    """A file does not exist."""


class UnknownKeyword(Error, TypeError):
    """A keyword that launches do not have."""


class Diagnostic(TypedDict):
    """An error or a warning of the assembler, with its position in the source."""

    line: int
    column: int
    message: str
    help: str | None


class SourceError(Error):
    """A source text does not assemble. ``diagnostics`` has line, column, message and help of each error."""

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
    """The program did what the hardware forbids or leaves undefined.

    ``str(trap)`` has the lines that the command prints. The attributes have the same facts as values.
    """

    #: The first line: what happened, where, for which lanes.
    message: str
    #: The file of the program.
    file: str
    #: Address of the instruction.
    pc: int
    #: The lanes that trapped, numbered within their group.
    lanes: list[int]
    #: The cause of the trap.
    cause: str
    #: The instruction as in the source. Without a source, as the disassembler prints it.
    instruction: str | None
    #: The line of the instruction in the source.
    line: int | None
    #: The first lane that trapped, numbered within the launch.
    lane: int | None
    #: Words of the registers that the instruction uses, by name.
    registers: dict[str, list[int]]
    #: The memory that the instruction accesses, for a trap of an access.
    space: str | None
    #: The byte address of the access, for a trap of an access.
    address: int | None
    #: The buffer nearest to the accessed address, for a trap of an access.
    nearest: str | None

    def __init__(self, message: str, details: str = "{}") -> None:
        super().__init__(message)
        self._details = details
        self.message, self.file = message, ""
        self.__dict__.update(json.loads(details))

    def __reduce__(self) -> tuple[type[Trap], tuple[str, str]]:
        return Trap, (str(self), self._details)


class EnginesDiffer(RuntimeError):
    """Two engines in lockstep differ. One of the engines has a defect, not the program."""


class EngineFault(RuntimeError):
    """The compiled engine has a defect: its code accessed memory outside its bounds. Other engines do not use such code."""


class ArrayCopied(UserWarning):
    """An array was copied, because its memory could not be used directly."""


class ShardDamaged(UserWarning):
    """A file of results is damaged, so its shard runs again."""


class TypeChosen(UserWarning):
    """A type was assumed for numbers that do not state one."""


def missing(path: str) -> NoReturn:
    """Raises the error for a file that does not exist."""
    raise NotFound(2, "no such file or directory", path)

