"""A launch that is stepped: flow, registers, memory, snapshots."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native, html
from .errors import Error

if TYPE_CHECKING:
    from .program import Instruction, Program


class Why(NamedTuple):
    """Why a lane takes part in the next instruction, or does not."""

    #: The lane of its group.
    lane: int
    #: As traces have it: A active, b branch, k break, c continue, p parked, x exited, u uncovered.
    letter: str
    word: str
    #: How many constructs ago a branch switched it off, or where it goes on.
    number: int | None


class Row(NamedTuple):
    """A row of the machine's own bookkeeping: what it is, its address, its lanes, its counter."""

    kind: str
    pc: int | None
    mask: int | None
    counter: int | None


class Depth(NamedTuple):
    """How full a stack or counter is."""

    of: str
    used: int
    room: int | None


class Chosen(NamedTuple):
    """A register by its class, and a channel of it."""

    name: str
    number: int
    channel: int | None


Classes = list[tuple[str, int, str]]


def named(text: str, classes: Classes) -> Chosen:
    """The register of a name such as ``R1.x``, ``temp[3]``, ``$r5``."""
    for name, count, channels in sorted(classes, key=lambda each: -len(each[0])):
        found = re.fullmatch(re.escape(name) + r"\[?(\d+)\]?(?:\.(\w))?", text)
        if not found:
            continue
        number = int(found[1])
        if number >= count:
            raise Error(f"{text}: there are {count} of {name}, from 0 on")
        if found[2] is None:
            return Chosen(name, number, None)
        if found[2] not in channels:
            fits = f"one of {', '.join(channels)}" if channels else "no channel"
            raise Error(f"{text}: {fits} fits behind {name}{number}")
        return Chosen(name, number, channels.index(found[2]))
    examples = ", ".join(f"{name}0.{channels[0]}" if channels else f"{name}0" for name, _, channels in classes)
    raise Error(f"{text}: no such register; there are {examples} and so on")


class Registers:
    """The registers of a group, by name.

    ``regs["R1.x"]`` has a value a lane; ``regs["R1"]`` a row a lane, a column a channel; ``regs["R0":"R4"]`` the registers
    from R0 up to, not including, R4. Values are bits (``uint32``); ``regs.f32`` and ``regs.i32`` read and write numbers.
    """

    def __init__(self, session: Session, group: int | None = None, dtype: Any = np.uint32) -> None:
        self._session, self._group, self._dtype = session, group, np.dtype(dtype)

    @property
    def f32(self) -> Registers:
        """The same registers as numbers of binary32."""
        return Registers(self._session, self._group, np.float32)

    @property
    def i32(self) -> Registers:
        """The same registers as signed integers."""
        return Registers(self._session, self._group, np.int32)

    @property
    def names(self) -> list[str]:
        """The classes of registers, with how many there are."""
        return [f"{name}0 to {name}{count - 1}" for name, count, _ in self._session._native.registers()]

    def _which(self) -> int:
        return self._session._running(self._group)

    def _read(self, name: str, number: int, channel: int) -> npt.NDArray[Any]:
        group = self._which()
        values = self._session._native.read(group, name, number, channel)
        if values is None:
            raise Error(f"{name}{number}: the group has no such register")
        first, end = self._session._native.lanes(group)
        return values[: end - first].view(self._dtype)

    def _whole(self, name: str, number: int, channels: str) -> npt.NDArray[Any]:
        if not channels:
            return self._read(name, number, 0)
        return np.stack([self._read(name, number, channel) for channel in range(len(channels))], axis=1)

    def __getitem__(self, key: str | slice) -> npt.NDArray[Any]:
        classes = self._session._native.registers()
        if isinstance(key, slice):
            first, end = named(str(key.start), classes), named_end(str(key.stop), classes)
            if first.name != end.name or key.step is not None:
                raise Error(f"{key.start} to {key.stop}: registers of one kind, without a step, fit here")
            channels = next(each[2] for each in classes if each[0] == first.name)
            numbers = range(first.number, end.number)
            if not numbers:
                raise Error(f"{key.start} to {key.stop}: there is no register between them")
            return np.stack([self._whole(first.name, number, channels) for number in numbers])
        chosen = named(key, classes)
        if chosen.channel is None:
            return self._whole(chosen.name, chosen.number, next(each[2] for each in classes if each[0] == chosen.name))
        return self._read(chosen.name, chosen.number, chosen.channel)

    def __setitem__(self, key: str, value: Any) -> None:
        classes = self._session._native.registers()
        chosen = named(key, classes)
        channels = next(each[2] for each in classes if each[0] == chosen.name)
        group = self._which()
        first, end = self._session._native.lanes(group)
        lanes = end - first
        if chosen.channel is None and channels:
            shape: tuple[int, ...] = (lanes, len(channels))
            wanted = list(range(len(channels)))
        else:
            shape, wanted = (lanes,), [chosen.channel or 0]
        array = np.asarray(value)
        if not np.can_cast(array.dtype, self._dtype, "same_kind") and isinstance(value, np.ndarray):
            raise Error(
                f"{key}: an array of {array.dtype} where {self._dtype} fits: give array.astype, or use regs.f32 or regs.i32"
            )
        try:
            rows = np.broadcast_to(array.astype(self._dtype), shape)
        except ValueError:
            raise Error(f"{key}: an array of shape {array.shape} where {shape} (or one that numpy spreads so) fits") from None
        for column, channel in enumerate(wanted):
            bits = np.ascontiguousarray(rows[:, column] if len(shape) == 2 else rows).view(np.uint32)
            mask = (1 << lanes) - 1
            kept = self._session._native.write(group, chosen.name, chosen.number, channel, mask, bits)
            if kept:
                raise Error(f"{key}: {kept} of {lanes} lanes cannot be changed: it is not there, or follows other state")


def named_end(text: str, classes: Classes) -> Chosen:
    """The register at the end of a slice, which may be one past the last."""
    return named(text, [(name, count + 1, channels) for name, count, channels in classes])


class Memory:
    """A memory: ``memory[0x100:0x120]`` are bytes, as many as there are; assigning to it writes them.

    What is read is an array of its own: a step changes the machine, not the array.
    """

    def __init__(self, session: Session, space: str, group: int | None, lane: int) -> None:
        self._session, self.space, self._group, self.lane = session, space, group, lane

    def _which(self) -> int:
        return self._session._running(self._group) if self._group is None else self._group

    @property
    def buffers(self) -> dict[str, tuple[int, int]]:
        """The parts that may be accessed: first byte, and one past the last, by name."""
        found = self._session._native.buffers(self.space, self._which(), self.lane)
        return {name: (first, end) for name, first, end in found}

    def _range(self, key: slice | str) -> tuple[int, int]:
        if isinstance(key, str):
            buffers = self.buffers
            if key not in buffers:
                raise Error(f"{self.space}: no part is called {key}; there is {', '.join(buffers) or 'none'}")
            return buffers[key]
        if key.step is not None or key.stop is None:
            raise Error(f"{self.space}: a range of bytes with an end and without a step fits here")
        first, end = int(key.start or 0), int(key.stop)
        if not 0 <= first <= end <= 1 << 32:
            raise Error(f"{self.space}: {first} to {end} is no range of bytes")
        return first, end

    def __getitem__(self, key: slice | str) -> npt.NDArray[np.uint8]:
        first, end = self._range(key)
        return self._session._native.memory(self.space, self._which(), self.lane, first, end - first)

    def array(self, key: slice | str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The bytes of a range, or of a part by its name, as numbers of a type: a view on what was read."""
        data, kind = self[key], np.dtype(dtype)
        if len(data) % kind.itemsize:
            raise Error(f"{self.space}: {len(data)} bytes are no whole number of {kind}")
        return data.view(kind)

    def __setitem__(self, key: slice | str, value: Any) -> None:
        first, end = self._range(key)
        data = np.ascontiguousarray(value)
        if data.dtype.kind not in "uifb":
            raise Error(f"{self.space}: an array of {data.dtype} has no bytes that fit: give numbers")
        if data.nbytes == 1 or (data.ndim == 0 and not isinstance(value, np.generic)):
            data = np.full(end - first, data, np.uint8)
        if data.nbytes != end - first:
            raise Error(f"{self.space}: {data.nbytes} bytes of {data.dtype} where {end - first} fit")
        flat = data.reshape(-1).view(np.uint8)
        if not self._session._native.store(self.space, self._which(), self.lane, first, flat):
            raise Error(f"{self.space}: bytes {first} to {end}: not all of them are there and may change")


class Session:
    """A launch while it is stepped, in the fixed order of its groups.

    >>> import reconverge
    >>> s = reconverge.kernel("collatz", "r700", lanes=64).session()
    >>> s.run_until(parted=True)
    'there'
    >>> place = s.snapshot()
    >>> before = s.pc, s.mask
    >>> s.step(5)
    False
    >>> s.restore(place)
    >>> (s.pc, s.mask) == before
    True
    """

    def __init__(self, program: Program, native: _native.Session) -> None:
        self.program = program
        self._native = native

    @property
    def groups(self) -> int:
        """How many groups the launch has."""
        return self._native.groups()

    @property
    def group(self) -> int | None:
        """The group whose instruction is next; ``None`` at the end."""
        return self._native.current()

    def state(self, group: int) -> str:
        """``waiting``, ``running`` or ``ended``."""
        return self._native.state(group)

    def lanes(self, group: int | None = None) -> range:
        """The lanes of the launch that a group has."""
        return range(*self._native.lanes(self._any(group)))

    def _any(self, group: int | None) -> int:
        if group is not None:
            return group
        current = self._native.current()
        return max(self.groups - 1, 0) if current is None else current

    def _running(self, group: int | None) -> int:
        group = self._any(group)
        state = self._native.state(group)
        if state != "running":
            running = self._native.current()
            rest = "the launch has ended" if running is None else f"group {running} runs"
            raise Error(f"group {group} is {state}: only groups that run have registers and memory; {rest}")
        return group

    @property
    def pc(self) -> int | None:
        """The address of the next instruction of the group that is next."""
        issue = self._native.issue(self._any(None))
        return None if issue is None else issue[0]

    @property
    def mask(self) -> int:
        """The lanes that take part in it: bit n is lane n of the group."""
        issue = self._native.issue(self._any(None))
        return 0 if issue is None else issue[1]

    @property
    def instruction(self) -> Instruction | None:
        """The next instruction."""
        return None if self.pc is None else self.program.at(self.pc)

    def why(self, lane: int | None = None, *, group: int | None = None) -> Any:
        """Why each lane of a group takes part in the next instruction, or does not; with ``lane`` of one lane."""
        lanes = [Why(number, *each) for number, each in enumerate(self._native.why(self._any(group)))]
        if lane is None:
            return lanes
        if not 0 <= lane < len(lanes):
            raise Error(f"lane {lane}: the group has {len(lanes)} that can be looked at, from 0 on")
        return lanes[lane]

    def stack(self, group: int | None = None) -> list[Row]:
        """The machine's own bookkeeping, innermost first."""
        return [Row(*row) for row in self._native.stack(self._any(group))]

    def depths(self, group: int | None = None) -> list[Depth]:
        """How full the stacks and counters are."""
        return [Depth(*each) for each in self._native.depths(self._any(group))]

    @property
    def regs(self) -> Registers:
        """The registers of the group that is next."""
        return Registers(self)

    def registers(self, group: int) -> Registers:
        """The registers of a group that runs."""
        return Registers(self, group)

    @property
    def spaces(self) -> dict[str, str]:
        """The memories, and what has one of its own: ``launch``, ``group`` or ``lane``."""
        return dict(self._native.spaces())

    def memory(self, space: str, *, group: int | None = None, lane: int = 0) -> Memory:
        """A memory; one of a group or lane is that of the one given."""
        if space not in self.spaces:
            raise Error(f"no memory is called {space}; there is {', '.join(self.spaces) or 'none'}")
        return Memory(self, space, group, lane)

    @property
    def instructions(self) -> int:
        """Instructions issued so far."""
        return self._native.statistics()[0]

    def step(self, times: int = 1, *, group: int | None = None, lane: int | None = None) -> bool:
        """Executes instructions of a group, the one that is next where none is given; whether it has ended.

        With ``lane``, each time goes on to an instruction that this lane takes part in.
        """
        return self._native.step(self._any(group), times, lane)

    def run_until(
        self,
        predicate: Callable[[Session], bool] | None = None,
        *,
        pc: int | Iterable[int] | None = None,
        group: int | None = None,
        parted: bool = False,
        budget: int = 1 << 40,
    ) -> str:
        """Goes on until the next instruction fits: ``there``, ``budget`` or ``end``.

        ``pc`` has addresses, ``parted`` asks for a part of a group's lanes only. A ``predicate`` is called before each
        instruction, which is slow.
        """
        if predicate is None:
            addresses = [] if pc is None else [pc] if isinstance(pc, int) else list(pc)
            for address in addresses:
                self.program.at(address)
            return self._native.run_until(addresses, budget, group, parted)
        if pc is not None or group is not None or parted:
            raise Error("run_until: a predicate, or pc=, group= and parted=")
        for _ in range(budget):
            if self.group is None:
                return "end"
            self._native.run_until([], 1, None, False)
            if self.group is not None and predicate(self):
                return "there"
        return "budget"

    def run(self) -> None:
        """Goes on to the end."""
        self._native.run_until([], (1 << 64) - 1, None, False)

    def outputs(self) -> dict[str, npt.NDArray[Any]]:
        """What is left so far, by name; complete at the end."""
        return self._native.outputs()

    def snapshot(self) -> _native.Snapshot:
        """The place where the launch is."""
        return self._native.snapshot()

    def restore(self, place: _native.Snapshot) -> None:
        """Goes to a place of this session."""
        self._native.restore(place)

    def __repr__(self) -> str:
        title = self.program.name or self.program.title
        if self.pc is None:
            return f"<Session of {title}: at its end, {self.instructions} instructions>"
        letters = "".join(each.letter for each in self.why())
        return f"<Session of {title}: group {self.group} at {self.program._native.spelled(self.pc)} {letters}>"

    def _repr_html_(self) -> str:
        return html.session(self)
