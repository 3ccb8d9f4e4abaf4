"""Counts by instruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, overload

from . import html
from .frames import Library, frame

if TYPE_CHECKING:
    import pandas
    import polars


class MemoryCounts(TypedDict):
    """Counts of the accesses to memory, and of the memory transactions that serve the accesses."""

    #: Number of requests. The machine's manual defines a request. For example, a request is the access of half a group.
    requests: int
    #: Number of transactions that serve the requests.
    transactions: int
    #: Number of bytes that the transactions move.
    bytes_moved: int
    #: Number of bytes that the lanes access.
    bytes_wanted: int




class BankCounts(TypedDict):
    """Counts of the accesses to shared memory, and of the passes in which the banks serve the accesses."""

    #: Number of requests. A request is the access of a half-warp.
    requests: int
    #: Number of passes that serve the requests. A request without a bank conflict takes one pass.
    passes: int
    #: Maximum number of passes of one request.
    most: int


#: Counts of an instruction that ran. ``pc``, ``text`` and ``class`` identify the instruction. ``executed`` is how often
#: the instruction was issued. ``lanes`` is the sum of the active lanes over all issues. ``diverged`` is how often the
#: lanes diverged at the instruction. The remaining counts describe the divergences at the instruction (their costs and
#: the distance to the reconvergence) and the memory accesses of the instruction.
InstructionCounts = TypedDict(
    "InstructionCounts",
    {
        "pc": int,
        "text": str,
        "class": str,
        "executed": int,
        "lanes": int,
        "diverged": int,
        "taken_cost": int,
        "not_cost": int,
        "reconverged": int,
        "distance": int,
        "farthest": int,
        "memory": MemoryCounts,
        "banks": BankCounts,
    },
    total=False,
)

#: Counts of a class of instructions.
ClassCounts = TypedDict("ClassCounts", {"class": str, "executed": int, "lanes": int, "share": float})


class Totals(TypedDict):
    """Counts of a whole run."""

    #: Number of instructions issued to groups.
    instructions: int
    #: Number of instructions executed by lanes: the sum of the active lanes of all instructions.
    lane_instructions: int
    #: Number of branch decisions that split the lanes of a group.
    divergent_branches: int
    #: The average share of a group's lanes that are active, from 0 to 1.
    simd_efficiency: float
    #: The maximum number of entries on a group's stack.
    stack_high_water: int
    #: Number of groups that ran.
    groups: int


class StackCounts(TypedDict):
    """The maximum depth that a stack or counter reached."""

    of: str
    high_water: int
    room: int | None


class MemoryTotals(TypedDict, total=False):
    """Sums of accesses to memory, and the rule by which transactions are counted."""

    requests: int
    transactions: int
    bytes_moved: int
    bytes_wanted: int
    rule: str


class BankTotals(TypedDict, total=False):
    """Sums of accesses to shared memory, and the rule by which passes are counted."""

    requests: int
    passes: int
    most: int
    rule: str


class GroupCounts(TypedDict, total=False):
    """Counts of a group, or of a block."""

    group: int
    block: int
    instructions: int
    lane_instructions: int
    divergent_branches: int
    simd_efficiency: float
    memory: MemoryCounts
    banks: BankCounts


class StatsData(TypedDict):
    """The counts of a run."""

    instructions: list[InstructionCounts]
    totals: Totals
    mix: list[ClassCounts]
    stacks: list[StackCounts]
    memory: MemoryTotals
    banks: BankTotals
    groups: list[GroupCounts] | None
    blocks: list[GroupCounts] | None


_MEMORY = ("requests", "transactions", "bytes_moved", "bytes_wanted")


class Stats:
    """The counts of each instruction in a run, and the totals over all instructions.

    >>> import reconverge
    >>> stats = reconverge.kernel("mandel", "r700", lanes=64).stats()
    >>> stats.totals["instructions"] == sum(each["executed"] for each in stats.instructions)
    True
    """

    def __init__(self, data: StatsData, title: str) -> None:
        self.title = title
        #: The counts of each instruction that ran, by address.
        self.instructions: list[InstructionCounts] = data["instructions"]
        #: Sums over all instructions, the SIMD efficiency, and the number of groups.
        self.totals: Totals = data["totals"]
        #: Counts of the instructions that ran, by class.
        self.mix: list[ClassCounts] = data["mix"]
        #: The largest depth of each stack and counter.
        self.stacks: list[StackCounts] = data["stacks"]
        #: Sums of memory accesses and their transactions, and the rule by which transactions are counted.
        self.memory: MemoryTotals = data["memory"]
        #: Sums of accesses to shared memory, and the rule by which passes are counted.
        self.banks: BankTotals = data["banks"]
        #: The counts of each group. The list is empty if the launch has more than 65,536 groups.
        self.groups: list[GroupCounts] = data["groups"] or []
        #: The counts of each block. The list is empty if the launch does not have blocks.
        self.blocks: list[GroupCounts] = data["blocks"] or []

    def columns(self) -> dict[str, Sequence[object]]:
        """The counts by instruction, one list per column."""
        rows: list[dict[str, object]] = [{**each, **each.get("memory", {})} for each in self.instructions]
        names = ["pc", "text", "class", "executed", "lanes", "diverged", "taken_cost", "not_cost", "reconverged"]
        names += ["distance", "farthest"]
        if any("memory" in each for each in self.instructions):
            names += _MEMORY
        return {name: [row.get(name) for row in rows] for name in names}

    @overload
    def frame(self, library: Literal["pandas"] | None = None) -> pandas.DataFrame: ...
    @overload
    def frame(self, library: Literal["polars"]) -> polars.DataFrame: ...
    @overload
    def frame(self, library: Library | None) -> pandas.DataFrame | polars.DataFrame: ...
    def frame(self, library: Library | None = None) -> pandas.DataFrame | polars.DataFrame:
        """The counts by instruction as a frame of pandas or polars."""
        return frame(self.columns(), library)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stats) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        totals = self.totals
        return (
            f"<Stats of {self.title}: {totals['instructions']} group instructions, "
            f"{totals['lane_instructions']} lane instructions, efficiency {totals['simd_efficiency']:.2f}>"
        )

    def _repr_html_(self) -> str:
        return html.stats(self)
