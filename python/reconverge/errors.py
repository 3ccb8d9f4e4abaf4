"""Exceptions and warnings of the package."""

from __future__ import annotations

import json
from typing import NoReturn, TypedDict


class Error(ValueError):
    """The input or the usage is wrong; the message names the place, the problem and the remedy."""


class WrongType(Error, TypeError):
    """A value has a type that does not fit its place."""


class OutOfRange(Error, OverflowError):
    """A number does not fit its place."""


class NotFound(FileNotFoundError, Error):
    """A file does not exist."""


class UnknownKeyword(Error, TypeError):
    """A keyword that a launch does not have."""


class Diagnostic(TypedDict):
    """An error or a warning of the assembler, with its place in the source."""

    line: int
    column: int
    message: str
    help: str | None


class SourceError(Error):
    """A source text does not assemble; ``diagnostics`` has line, column, message and help of each error."""

    diagnostics: list[Diagnostic]

    def __init__(self, message: str, details: str = "[]") -> None:
        super().__init__(message)
        self._details = details
        self.diagnostics = json.loads(details)

    def __reduce__(self) -> tuple[type[SourceError], tuple[str, str]]:
        return SourceError, (str(self), self._details)


class HookError(Error):
    """A hook that can never be called, or never was, or that returns something other than ``"stop"`` or ``None``."""


class StopRun(Exception):  # noqa: N818
    """A hook raises it to stop the run. ``return "stop"`` does the same."""


class Trap(RuntimeError):
    """The program did what the hardware forbids or leaves undefined.

    ``str(trap)`` has the lines that the command prints. The attributes have the same as values.
    """

    #: The first line: what happened, where, for which lanes.
    message: str
    #: The file of the program.
    file: str
    #: Address of the instruction.
    pc: int
    #: The lanes concerned, of their group.
    lanes: list[int]
    #: What happened.
    cause: str
    #: The instruction as in the source, or else as the disassembler prints it.
    instruction: str | None
    #: The line of the source that has the instruction.
    line: int | None
    #: The first lane concerned, of the launch.
    lane: int | None
    #: Words of the registers that the instruction names, by name.
    registers: dict[str, list[int]]
    #: The memory of an access.
    space: str | None
    #: The first byte of an access.
    address: int | None
    #: The buffer that is nearest to an access.
    nearest: str | None

    def __init__(self, message: str, details: str = "{}") -> None:
        super().__init__(message)
        self._details = details
        self.message, self.file = message, ""
        self.__dict__.update(json.loads(details))

    def __reduce__(self) -> tuple[type[Trap], tuple[str, str]]:
        return Trap, (str(self), self._details)


class EnginesDiffer(RuntimeError):
    """Two engines in lockstep differ: a defect of one of them, not of the program."""


class EngineFault(RuntimeError):
    """The compiled engine has a defect: its code accessed memory outside its bounds. Other engines do not use such code."""


class ArrayCopied(UserWarning):
    """An array could not be read as it is and was copied."""


class ShardDamaged(UserWarning):
    """A file of results is damaged; its shard runs again."""


class TypeChosen(UserWarning):
    """Numbers without a stated type were read as one."""


def missing(path: str) -> NoReturn:
    """Raises the error for a file that does not exist."""
    raise NotFound(2, "no such file or directory", path)

