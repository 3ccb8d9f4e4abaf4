"""Counts by instruction."""

from __future__ import annotations

from typing import Any

from . import html
from .frames import frame

_MEMORY = ("requests", "transactions", "bytes_moved", "bytes_wanted")


class Stats:
    """Counts of a run by instruction, and their sums.

    >>> import reconverge
    >>> stats = reconverge.kernel("mandel", "r700", lanes=64).stats()
    >>> stats.totals["instructions"] == sum(each["executed"] for each in stats.instructions)
    True
    """

    def __init__(self, data: dict[str, Any], title: str) -> None:
        self.title = title
        #: By instruction that ran: pc, text, class, executed, lanes, diverged, cost of the sides, distance, memory.
        self.instructions: list[dict[str, Any]] = data["instructions"]
        #: Sums, SIMD efficiency, groups.
        self.totals: dict[str, Any] = data["totals"]
        #: By class of instructions: executed, lanes, share.
        self.mix: list[dict[str, Any]] = data["mix"]
        #: How full each stack and counter became.
        self.stacks: list[dict[str, Any]] = data["stacks"]
        #: Sums of accesses that come together, and the rule.
        self.memory: dict[str, Any] = data["memory"]
        #: Shared memory in banks: requests, passes, the most passes of a request, and the rule.
        self.banks: dict[str, Any] = data["banks"]
        #: By group: instructions, lane instructions, divergent branches, SIMD efficiency, memory, banks. Empty with more
        #: than 65,536 groups.
        self.groups: list[dict[str, Any]] = data["groups"] or []
        #: The same by block. Empty if the machine has no blocks.
        self.blocks: list[dict[str, Any]] = data["blocks"] or []

    def columns(self) -> dict[str, list[Any]]:
        """The counts by instruction, a list a column."""
        rows = [dict(each, **each.get("memory", {})) for each in self.instructions]
        names = ["pc", "text", "class", "executed", "lanes", "diverged", "taken_cost", "not_cost", "reconverged"]
        names += ["distance", "farthest"]
        if any("memory" in each for each in self.instructions):
            names += _MEMORY
        return {name: [row.get(name) for row in rows] for name in names}

    def frame(self, library: str | None = None) -> Any:
        """The counts by instruction as a frame of pandas or polars."""
        return frame(self.columns(), library)

    def __repr__(self) -> str:
        totals = self.totals
        return (
            f"<Stats of {self.title}: {totals['instructions']} group instructions, "
            f"{totals['lane_instructions']} lane instructions, efficiency {totals['simd_efficiency']:.2f}>"
        )

    def _repr_html_(self) -> str:
        return html.stats(self)
