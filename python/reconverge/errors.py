"""Exceptions and warnings of the package."""

from __future__ import annotations

import json
from typing import Any


class Error(ValueError):
    """The input or the usage is wrong; the message names what, where, and what would fit."""


class SourceError(Error):
    """A source text does not assemble; ``diagnostics`` has line, column, message and help of each error."""

    diagnostics: list[dict[str, Any]]

    def __init__(self, message: str, details: str = "[]") -> None:
        super().__init__(message)
        self.diagnostics = json.loads(details)


class HookError(Error):
    """A hook that can never be called, or never was."""


class Trap(RuntimeError):
    """The program did what the hardware forbids or leaves undefined.

    ``pc``, ``lanes`` (of the group), ``cause``, and as far as they are known ``instruction``, ``line`` of the source,
    ``lane`` of the launch, ``registers`` that the instruction names, ``space`` and ``address`` of an access, and the
    ``nearest`` buffer.
    """

    pc: int
    lanes: list[int]
    cause: str
    instruction: str | None
    line: int | None
    lane: int | None
    registers: dict[str, list[int]]
    space: str | None
    address: int | None
    nearest: str | None

    def __init__(self, message: str, details: str = "{}") -> None:
        super().__init__(message)
        self.__dict__.update(json.loads(details))


class EnginesDiffer(RuntimeError):
    """Two engines in lockstep differ: a defect of one of them, not of the program."""


class EngineFault(RuntimeError):
    """The compiled engine has a defect: its code accessed memory that it must not. Other engines do not use such code."""


class ArrayCopied(UserWarning):
    """An array could not be read as it is and was copied."""


class ShardDamaged(UserWarning):
    """A file of results is not as it was written; its shard is run again."""


class TypeChosen(UserWarning):
    """Numbers without a stated type were read as one."""
