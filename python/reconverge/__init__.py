"""Runs, reads, writes and explains the shader machine code of ATI R500, AMD R700 and NVIDIA Tesla.

* :func:`load`, :func:`assemble`, :func:`disassemble`, :func:`explain`: programs and their text.
* :meth:`Program.run`, :meth:`Program.launch`, :func:`launch`, :func:`kernel`: runs. Inputs and outputs are numpy arrays.
* :meth:`Program.session`: stepping, registers, memory, snapshots.
* :meth:`Program.trace`, :meth:`Program.stats`, :class:`Hooks`: the events and the counts of a run.
* :mod:`reconverge.campaign`: fault injection on one machine or on a cluster.
"""

from __future__ import annotations

from . import _native
from ._native import Event
from .errors import (
    ArrayCopied,
    EngineFault,
    EnginesDiffer,
    Error,
    HookError,
    NotFound,
    OutOfRange,
    SourceError,
    StopRun,
    Trap,
    TypeChosen,
    UnknownKeyword,
    WrongType,
)
from .instruction import Explanation, Instruction
from .keywords import LaunchFields, LaunchKeywords
from .launch import Launch, Result, kernel, launch
from .program import Program, assemble, disassemble, explain, load, programs
from .session import Memory, Registers, Session, Snapshot, Why
from .stats import Stats
from .trace import Events, Hooks, Observed, Trace

__version__ = _native.__version__

#: The machines, and the names of their chips.
MACHINES = {isa: [name for name, _ in _native.chips(isa)] for isa in ("r500", "r700", "tesla")}

__all__ = [
    "MACHINES",
    "ArrayCopied",
    "EngineFault",
    "EnginesDiffer",
    "Error",
    "Event",
    "Events",
    "Explanation",
    "HookError",
    "Hooks",
    "Instruction",
    "Launch",
    "LaunchFields",
    "LaunchKeywords",
    "Memory",
    "NotFound",
    "Observed",
    "OutOfRange",
    "Program",
    "Registers",
    "Result",
    "Session",
    "Snapshot",
    "SourceError",
    "Stats",
    "StopRun",
    "Trace",
    "Trap",
    "TypeChosen",
    "UnknownKeyword",
    "Why",
    "WrongType",
    "assemble",
    "disassemble",
    "explain",
    "kernel",
    "launch",
    "load",
    "programs",
]
