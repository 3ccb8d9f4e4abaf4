"""Runs, reads, writes and explains the shader machine code of ATI R500, AMD R700 and NVIDIA Tesla.

* :func:`load`, :func:`assemble`, :func:`disassemble`, :func:`explain`: programs and their text.
* :meth:`Program.run`, :meth:`Program.launch`, :func:`launch`, :func:`kernel`: runs, with numpy arrays in and out.
* :meth:`Program.session`: stepping, registers, memory, snapshots.
* :meth:`Program.trace`, :meth:`Program.stats`, :class:`Hooks`: what happens in a run.
* :mod:`reconverge.campaign`: fault injection, on one machine or a cluster.
"""

from __future__ import annotations

from . import _native
from .errors import ArrayCopied, EngineFault, EnginesDiffer, Error, HookError, SourceError, Trap, TypeChosen
from .launch import Launch, Result, kernel, launch
from .program import Explanation, Instruction, Program, assemble, disassemble, explain, load, programs
from .session import Session
from .stats import Stats
from .trace import Events, Hooks, Trace

__version__ = _native.__version__

#: The machines, and the names of their chips.
MACHINES = {isa: [name for name, _ in _native.chips(isa)] for isa in ("r500", "r700", "tesla")}

__all__ = [
    "MACHINES",
    "ArrayCopied",
    "EngineFault",
    "EnginesDiffer",
    "Error",
    "Events",
    "Explanation",
    "HookError",
    "Hooks",
    "Instruction",
    "Launch",
    "Program",
    "Result",
    "Session",
    "SourceError",
    "Stats",
    "Trace",
    "Trap",
    "TypeChosen",
    "assemble",
    "disassemble",
    "explain",
    "kernel",
    "launch",
    "load",
    "programs",
]
