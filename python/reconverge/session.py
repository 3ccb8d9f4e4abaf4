"""Sessions. A session runs a launch step by step. It has the flow state, registers, memory and snapshots of the
launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from . import _native, html
from ._checks import article, meant, whole, words
from .errors import Error, OutOfRange, WrongType
from .frames import Library, frame

if TYPE_CHECKING:
    import pandas
    import polars

    from .instruction import Instruction
    from .launch import Launch, Output
    from .program import Program
    from .trace import Hooks, Observed

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_WordT = TypeVar("_WordT", bound=np.generic)

#: Values for registers: one value for all lanes, or one value for each lane.
RegisterValues = int | float | np.number | npt.NDArray[np.generic] | list[int] | list[float]
#: Values for a range of memory: an array or bytes with the size of the range, or one number that becomes every byte of the
#: range.
MemoryValues = int | bytes | npt.NDArray[np.generic] | list[int]


class Why(NamedTuple):
    """The reason why a lane is active or inactive for the next instruction."""

    #: Number of the lane in its group.
    lane: int
    #: The letter that traces use: A active, b branch, k break, c continue, p parked, x exited, u uncovered.
    letter: str
    word: str
    #: If a branch switched the lane off, the number of open flow constructs inside the construct of this branch. If the
    #: lane is parked, the address at which the lane resumes.
    number: int | None

    def __str__(self) -> str:
        rest = {"branch": f", {self.number} constructs ago", "parked": f" at {self.number or 0:#x}"}
        return f"lane {self.lane}: {self.word}{rest.get(self.word, '') if self.number is not None else ''}"


class Row(NamedTuple):
    """A row of the machine's flow state. The row has a kind, an address, lanes and a counter."""

    kind: str
    pc: int | None
    mask: int | None
    counter: int | None


class Depth(NamedTuple):
    """The current depth of a stack or counter, and the maximum depth."""

    of: str
    used: int
    room: int | None


class Chosen(NamedTuple):
    """The class and the number of a register, and optionally one channel of the register."""

    name: str
    number: int
    channel: int | None


Classes = list[tuple[str, int, str]]


def named(text: object, classes: Classes) -> Chosen:
    """The register with a name such as ``R1.x``, ``temp0.r``, ``temp[3]``, ``$r5``."""
    if not isinstance(text, str):
        raise WrongType(f"registers: expected a name such as {_examples(classes)}, found {article(text)} ({text!r})")
    for name, count, channels in sorted(classes, key=lambda each: -len(each[0])):
        found = re.fullmatch(re.escape(name) + r"\[?(\d+)\]?(?:\.(\w))?", text)
        if not found:
            continue
        number = int(found[1])
        if number >= count:
            raise Error(f"{text}: the group has {count} registers {name}, numbered from 0")
        if found[2] is None:
            return Chosen(name, number, None)
        if found[2] not in channels:
            fits = f"one of the channels {', '.join(channels)}" if channels else "no channel"
            raise Error(f"{text}: expected {fits} after {name}{number}, found `{found[2]}`")
        return Chosen(name, number, channels.index(found[2]))
    close = meant(text, all_names(classes))
    raise Error(f"{text}: no such register{close}; there are {_examples(classes)} and so on")


def _examples(classes: Classes) -> str:
    return ", ".join(f"{name}0.{channels[0]}" if channels else f"{name}0" for name, _, channels in classes)


def all_names(classes: Classes, *, channels: bool = False) -> list[str]:
    """The names of all registers. If ``channels`` is true, the result also has the names of all channels."""
    found = []
    for name, count, letters in classes:
        for number in range(count):
            found.append(f"{name}{number}")
            found += [f"{name}{number}.{letter}" for letter in letters] if channels else []
    return found


class Registers(Generic[_WordT]):
    """The registers of a group, by name.

    ``regs["R1.x"]`` has one value per lane. ``regs["R1"]`` has one row per lane and one column per channel.
    ``regs["R0":"R4"]`` has the registers R0, R1, R2 and R3. Values are bits (``uint32``). ``regs.f32`` and ``regs.i32`` read
    and write the registers as floats and as signed integers. The returned arrays are read-only. To change a register, assign to
    ``regs[name]``.

    An assigned integer outside the range of the type raises an ``OverflowError``. An assigned float raises a
    ``TypeError``. Only ``regs.f32`` accepts floats.
    """

    def __init__(self, session: Session, dtype: type[_WordT], group: int | None = None) -> None:
        self._session, self._group, self._dtype = session, group, np.dtype(dtype)

    @property
    def f32(self) -> Registers[np.float32]:
        """The same registers as binary32 numbers."""
        return Registers(self._session, np.float32, self._group)

    @property
    def i32(self) -> Registers[np.int32]:
        """The same registers as signed integers."""
        return Registers(self._session, np.int32, self._group)

    @property
    def u32(self) -> Registers[np.uint32]:
        """The same registers as bits."""
        return Registers(self._session, np.uint32, self._group)

    @property
    def names(self) -> list[str]:
        """The names of the registers, without channels."""
        return all_names(self._classes)

    @property
    def _classes(self) -> Classes:
        return self._session._native.registers()

    def keys(self) -> list[str]:
        """The names of the registers, without channels."""
        return self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return sum(count for _, count, _ in self._classes)

    def __contains__(self, key: object) -> bool:
        try:
            named(key, self._classes)
        except Error:
            return False
        return True

    def _ipython_key_completions_(self) -> list[str]:
        return all_names(self._classes, channels=True)

    def values(self) -> dict[str, npt.NDArray[_WordT]]:
        """The current values of all registers, by name. The dict can be pickled."""
        return {name: self[name] for name in self.names}

    def frame(self, library: Library | None = None) -> pandas.DataFrame | polars.DataFrame:
        """A table of the registers. Each lane has a row, and each register or channel has a column."""
        columns: dict[str, npt.NDArray[_WordT]] = {}
        for name, count, letters in self._classes:
            for number in range(count):
                for key in [f"{name}{number}.{letter}" for letter in letters] or [f"{name}{number}"]:
                    columns[key] = self[key]
        return frame(columns, library)

    def _read(self, name: str, first: int, count: int, channels: list[int]) -> npt.NDArray[_WordT]:
        """Reads registers. Returns an array of shape (registers, lanes, channels)."""
        group = self._session._readable(self._group)
        values = self._session._native.read(group, name, first, count, channels)
        if values is None:
            raise Error(f"{name}{first}: group {group} does not have this register")
        return cast("npt.NDArray[_WordT]", values.view(self._dtype))

    def _channels(self, name: str) -> str:
        return next(channels for known, _, channels in self._classes if known == name)

    def __getitem__(self, key: str | slice) -> npt.NDArray[_WordT]:
        classes = self._classes
        if isinstance(key, slice):
            first, end = named(key.start, classes), named_end(key.stop, classes)
            if first.name != end.name or key.step is not None:
                raise Error(f"{key.start} to {key.stop}: expected registers of one kind, without a step")
            channels = self._channels(first.name)
            if end.number <= first.number:
                raise Error(f"{key.start} to {key.stop}: no register is in this range")
            rows = self._read(first.name, first.number, end.number - first.number, list(range(len(channels) or 1)))
            return rows if channels else _first(rows)
        chosen = named(key, classes)
        channels = self._channels(chosen.name)
        if chosen.channel is None and channels:
            rows = self._read(chosen.name, chosen.number, 1, list(range(len(channels))))
            return rows.reshape(rows.shape[1:])
        return self._read(chosen.name, chosen.number, 1, [chosen.channel or 0]).reshape(-1)

    def __setitem__(self, key: str, value: RegisterValues) -> None:
        chosen = named(key, self._classes)
        channels = self._channels(chosen.name)
        group = self._session._running(self._group)
        first, end = self._session._native.lanes(group)
        lanes = end - first
        if chosen.channel is None and channels:
            shape: tuple[int, ...] = (lanes, len(channels))
            wanted = list(range(len(channels)))
        else:
            shape, wanted = (lanes,), [chosen.channel or 0]
        bits = words(key, value, self._dtype.kind)
        try:
            rows = np.broadcast_to(bits, shape)
        except ValueError:
            raise Error(f"{key}: expected an array of shape {shape}, or one that broadcasts to it; found {bits.shape}") from None
        for column, channel in enumerate(wanted):
            each = np.ascontiguousarray(rows[:, column] if len(shape) == 2 else rows)
            kept = self._session._native.write(group, chosen.name, chosen.number, channel, (1 << lanes) - 1, each)
            if kept:
                why = "it does not exist, or is derived from other state"
                raise Error(f"{key}: cannot be changed in {kept} of {lanes} lanes: {why}")

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}0 to {name}{count - 1}" for name, count, _ in self._classes if count)
        group = self._session._any(self._group)
        return f"<Registers of group {group} as {self._dtype}: {kinds}>"


def _first(rows: npt.NDArray[_WordT]) -> npt.NDArray[_WordT]:
    """Removes the last axis of an array, if the length of this axis is one. The last axis has the channels."""
    return rows.reshape(rows.shape[:-1])


def named_end(text: object, classes: Classes) -> Chosen:
    """The register at the end of a slice. The number of this register can be one more than the largest register number.
    """
    return named(text, [(name, count + 1, channels) for name, count, channels in classes])


class Memory:
    """A memory space of a session.

    ``memory[0x100:0x120]`` has the bytes of this range. ``memory["out"]`` has the bytes of the part with the name
    ``out``. The returned array is a read-only copy. Later steps do not change this copy. To write memory, assign to
    ``memory[…]``.
    """

    def __init__(self, session: Session, space: str, group: int | None, lane: int) -> None:
        self._session, self.space, self._group, self.lane = session, space, group, lane

    def _which(self) -> int:
        return self._session._readable(self._group)

    @property
    def buffers(self) -> dict[str, tuple[int, int]]:
        """The accessible parts of the memory, by name. Each part has the address of its first byte, and the address
        after its last byte.
        """
        found = self._session._native.buffers(self.space, self._which(), self.lane)
        return {name: (first, end) for name, first, end in found}

    def keys(self) -> list[str]:
        """The names of the accessible parts."""
        return list(self.buffers)

    def __iter__(self) -> Iterator[str]:
        return iter(self.buffers)

    def __len__(self) -> int:
        return len(self.buffers)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.buffers)

    def _range(self, key: slice | str) -> tuple[int, int]:
        if isinstance(key, str):
            buffers = self.buffers
            if key not in buffers:
                close = meant(key, buffers)
                raise Error(f"{self.space}: unknown part `{key}`{close}; expected one of {', '.join(buffers) or 'none'}")
            return buffers[key]
        if not isinstance(key, slice):
            raise WrongType(f"{self.space}: expected a range of bytes or the name of a part, found {article(key)}")
        if key.step is not None or key.stop is None:
            raise Error(f"{self.space}: expected a range of bytes with an end and without a step")
        first, end = (whole(self.space, each, 0, 1 << 32) for each in (key.start or 0, key.stop))
        if first > end:
            raise Error(f"{self.space}: {first} to {end} is not a range of bytes")
        return first, end

    def __getitem__(self, key: slice | str) -> npt.NDArray[np.uint8]:
        first, end = self._range(key)
        return self._session._native.memory(self.space, self._which(), self.lane, first, end - first)

    @overload
    def array(self, key: slice | str, dtype: type[_ScalarT] | np.dtype[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
    @overload
    def array(self, key: slice | str, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]: ...
    def array(self, key: slice | str, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
        """Returns the bytes of a range or of a named part as numbers of a type. The array is a view of these bytes."""
        try:
            kind = np.dtype(dtype)
        except TypeError:
            raise WrongType(f"{self.space}: {dtype!r} is not a type of numpy; expected np.uint32 or np.float32") from None
        if kind.itemsize == 0 or kind.hasobject:
            raise Error(f"{self.space}: expected a type of fixed size, for instance np.uint32, found {kind}")
        data = self[key]
        if len(data) % kind.itemsize:
            raise Error(f"{self.space}: {len(data)} bytes are not a multiple of the size of {kind}")
        return data.view(kind)

    def __setitem__(self, key: slice | str, value: MemoryValues) -> None:
        first, end = self._range(key)
        flat = _bytes(self.space, value, end - first)
        group = self._session._running(self._group)
        if not self._session._native.store(self.space, group, self.lane, first, flat):
            raise Error(f"{self.space}: bytes {first} to {end}: some of them do not exist or cannot be changed")

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {first:#x} to {end:#x}" for name, (first, end) in self.buffers.items())
        return f"<Memory {self.space}: {parts or 'no parts with names'}>"


def _bytes(place: str, value: object, count: int) -> npt.NDArray[np.uint8]:
    """Converts a value that is assigned to a memory range to bytes."""
    if isinstance(value, (bytes, bytearray)):
        data = np.frombuffer(value, np.uint8)
    elif isinstance(value, (np.ndarray, np.generic)):
        data = np.ascontiguousarray(value)
        if data.dtype.kind not in "uifb":
            raise WrongType(f"{place}: expected numbers, found an array of {data.dtype}")
        data = data.reshape(-1).view(np.uint8)
    elif isinstance(value, (list, tuple)):
        data = np.array([whole(f"{place}[{number}]", each, 0, 255) for number, each in enumerate(value)], np.uint8)
    else:
        remedy = "an array states a type, for instance np.float32"
        if isinstance(value, (float, str)) or not hasattr(value, "__index__"):
            raise WrongType(f"{place}: expected bytes, found {article(value)}; {remedy}")
        number = whole(place, value, -(1 << 63), 1 << 64)
        if not 0 <= number <= 255:
            raise OutOfRange(f"{place}: {number}: expected one byte, 0 to 255; {remedy}")
        data = np.full(count, number, np.uint8)
    if data.nbytes != count:
        raise Error(f"{place}: expected {count} bytes, found {data.nbytes}")
    return data


class Snapshot:
    """A position of a session, and the state at this position. A snapshot is immutable, so ``copy`` returns the same object."""

    def __init__(self, native: _native.Snapshot, instructions: int, title: str) -> None:
        self._native = native
        #: Number of instructions executed before this position.
        self.instructions = instructions
        self._title = title

    def __copy__(self) -> Snapshot:
        return self

    def __deepcopy__(self, _: object) -> Snapshot:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a snapshot belongs to its session and cannot be pickled: pickle the session, which includes its position")

    def __repr__(self) -> str:
        return f"<Snapshot of {self._title}: after {self.instructions} instructions>"


def _again(launch: Launch, instructions: int) -> Session:
    session = launch.session()
    session._native.go_to(instructions)
    return session


class Session:
    """A launch that runs step by step, in the fixed order of its groups.

    >>> import reconverge
    >>> s = reconverge.kernel("collatz", "r700", lanes=64).session()
    >>> s.run_until(parted=True)
    'there'
    >>> place = s.snapshot()
    >>> before = s.pc, s.mask
    >>> s.step(5)
    True
    >>> s.restore(place)
    >>> (s.pc, s.mask) == before
    True
    """

    def __init__(self, launch: Launch, native: _native.Session) -> None:
        self.launch = launch
        self._native = native

    def __reduce__(self) -> tuple[object, ...]:
        if self._native.changed():
            raise TypeError(
                "a session whose registers or memory were changed cannot be pickled: pickle its launch, and repeat the "
                "changes in a session of the copy; copy.copy copies a session in this process"
            )
        return _again, (self.launch, self.instructions)

    def __copy__(self) -> Session:
        return Session(self.launch, self._native.copy())

    def __deepcopy__(self, _: object) -> Session:
        return self.__copy__()

    @property
    def program(self) -> Program:
        """The program that runs."""
        return self.launch.program

    @property
    def ended(self) -> bool:
        """Whether all groups of the launch have ended."""
        return self._native.current() is None

    @property
    def groups(self) -> int:
        """The number of groups of the launch."""
        return self._native.groups()

    @property
    def group(self) -> int | None:
        """The group that executes the next instruction. ``None`` if the launch has ended."""
        return self._native.current()

    def state(self, group: int) -> str:
        """The state of a group: ``waiting``, ``running`` or ``ended``."""
        return self._native.state(group)

    def lanes(self, group: int | None = None) -> range:
        """The lanes of a group, numbered within the launch."""
        return range(*self._native.lanes(self._any(group)))

    def _any(self, group: int | None) -> int:
        if group is not None:
            return whole("group", group, 0, max(self.groups - 1, 0))
        current = self._native.current()
        return max(self.groups - 1, 0) if current is None else current

    def _readable(self, group: int | None) -> int:
        """Checks that the state of the group can be read, and returns the group. The group must be running or have ended."""
        group = self._any(group)
        if self._native.state(group) == "waiting":
            raise Error(f"group {group} waits: it does not have registers and memory before its first instruction; {self._rest()}")
        return group

    def _running(self, group: int | None) -> int:
        """Checks that the state of the group can be changed, and returns the group. The group must be running."""
        group = self._any(group)
        state = self._native.state(group)
        if state != "running":
            raise Error(f"group {group} is {state}: only the state of groups that run can be changed; {self._rest()}")
        return group

    def _rest(self) -> str:
        running = self._native.current()
        return "the launch has ended" if running is None else f"group {running} runs"

    @property
    def pc(self) -> int | None:
        """The address of the next instruction. ``None`` if the launch has ended."""
        issue = self._native.issue(self._any(None))
        return None if issue is None else issue[0]

    @property
    def mask(self) -> int:
        """The lanes that are active for the next instruction, as a mask. Bit n is lane n of the group."""
        issue = self._native.issue(self._any(None))
        return 0 if issue is None else issue[1]

    @property
    def instruction(self) -> Instruction | None:
        """The next instruction."""
        return None if self.pc is None else self.program.at(self.pc)

    @overload
    def why(self, lane: None = None, *, group: int | None = None) -> list[Why]: ...
    @overload
    def why(self, lane: int, *, group: int | None = None) -> Why: ...
    def why(self, lane: int | None = None, *, group: int | None = None) -> list[Why] | Why:
        """The reasons why the lanes of a group are active or inactive for the next instruction.

        With ``lane``, returns only the reason for this lane.
        """
        lanes = [Why(number, *each) for number, each in enumerate(self._native.why(self._any(group)))]
        if lane is None:
            return lanes
        if not 0 <= lane < len(lanes):
            raise Error(f"lane {lane}: the group has {len(lanes)} lanes whose state can be read, numbered from 0")
        return lanes[lane]

    def stack(self, group: int | None = None) -> list[Row]:
        """The machine's flow state as rows. The innermost entry comes first."""
        return [Row(*row) for row in self._native.stack(self._any(group))]

    def depths(self, group: int | None = None) -> list[Depth]:
        """The depths of the stacks and counters."""
        return [Depth(*each) for each in self._native.depths(self._any(group))]

    @property
    def regs(self) -> Registers[np.uint32]:
        """The registers of the group that executes the next instruction. If the launch has ended, the result has the
        registers of the last group.
        """
        return Registers(self, np.uint32)

    def registers(self, group: int) -> Registers[np.uint32]:
        """The registers of a group that runs or has ended."""
        return Registers(self, np.uint32, whole("group", group, 0, max(self.groups - 1, 0)))

    @property
    def spaces(self) -> dict[str, str]:
        """The names of the memory spaces. The value of a name is ``launch``, ``group`` or ``lane``: the launch, each
        group or each lane has its own copy of the space."""
        return dict(self._native.spaces())

    def memory(self, space: str, *, group: int | None = None, lane: int = 0) -> Memory:
        """A memory space. If the space exists once in each group or lane, ``group`` and ``lane`` select the group or the lane."""
        if space not in self.spaces:
            close = meant(str(space), self.spaces)
            raise Error(f"unknown memory `{space}`{close}; expected one of {', '.join(self.spaces) or 'none'}")
        return Memory(self, space, group, whole("lane", lane, 0, 63))

    @property
    def instructions(self) -> int:
        """Number of instructions that have completed. The number does not include an instruction that trapped, because this
        instruction remains the next instruction."""
        return self._native.instructions()

    def step(self, times: int = 1, *, group: int | None = None, lane: int | None = None) -> bool:
        """Executes instructions. Returns ``False`` if the launch has ended. So ``while s.step(): ...`` runs the launch to its
        end.

        Executes ``times`` instructions, in the order of the launch. With ``group``, executes ``times`` instructions of
        this group, and returns ``False`` if this group has ended. The launch has a fixed order, so instructions of
        other groups may run first. With ``lane``, each step continues until this lane of the group is active for the
        next instruction.
        """
        followed = None if lane is None else whole("lane", lane, 0, 63)
        chosen = None if group is None else self._any(group)
        return self._native.step(whole("times", times), chosen, followed)

    def observe(self, hooks: Hooks) -> Observed:
        """Runs the launch to its end, and calls hooks with each :class:`~reconverge.Event`. A hook may read and change the
        session.

        A hook for issues is called before the instruction runs. At this time, ``session.pc`` and ``session.mask`` have
        the values of the event. If the hook changes values, the instruction reads the changed values. A hook for any
        other event is called after the instruction that causes the event. If a hook returns ``"stop"`` or raises
        :class:`~reconverge.StopRun`, the session stops at this instruction. The session can continue later.
        """
        from .trace import observe_session

        return observe_session(self, hooks)

    def run_until(
        self,
        predicate: Callable[[Session], bool] | None = None,
        *,
        pc: int | Iterable[int] | None = None,
        group: int | None = None,
        parted: bool = False,
        budget: int = 1 << 40,
    ) -> Literal["there", "budget", "end"]:
        """Runs until the next instruction matches the arguments. Returns ``there`` in this case. Returns ``budget`` if the
        maximum number of instructions was executed, and ``end`` if the launch has ended.

        ``pc`` has the addresses of instructions that match. If ``parted`` is true, an instruction matches only if its
        group has both active and inactive lanes. ``predicate`` is a function that is called before each instruction.
        These calls are slow.
        """
        whole("budget", budget)
        if predicate is None:
            group = None if group is None else self._any(group)
            addresses = [] if pc is None else [whole("pc", pc)] if not isinstance(pc, Iterable) else list(pc)
            for address in addresses:
                self.program.at(address)
            return self._native.run_until(addresses, budget, group, parted)
        if pc is not None or group is not None or parted:
            raise Error("run_until: expected either a predicate, or pc=, group= and parted=")
        for _ in range(budget):
            if self.group is None:
                return "end"
            self._native.run_until([], 1, None, False)
            if self.group is not None and predicate(self):
                return "there"
        return "budget"

    def run(self) -> None:
        """Runs to the end of the launch."""
        self._native.run_until([], (1 << 64) - 1, None, False)

    def outputs(self) -> dict[str, Output]:
        """The outputs so far, by name. The outputs are complete when the launch has ended."""
        return self._native.outputs()

    def report(self) -> html.Page:
        """The page that shows a run of the session's launch. The page opens at the current step.

        The launch runs again for the page. The new run does not have the changes to registers and memory that the user made in
        the session.
        """
        page = self.launch.report()
        page.place = f"step={self.instructions}"
        return page

    def snapshot(self) -> Snapshot:
        """A snapshot of the current position and state."""
        return Snapshot(self._native.snapshot(), self.instructions, self.launch.title)

    def restore(self, place: Snapshot) -> None:
        """Restores a snapshot. The snapshot must come from this session or from a copy of this session."""
        if not isinstance(place, Snapshot):
            raise WrongType(f"restore: expected a snapshot from snapshot(), found {article(place)}")
        self._native.restore(place._native)

    def __repr__(self) -> str:
        title = self.program.name or self.program.title
        if self.ended or self.pc is None:
            return f"<Session of {title}: at its end, {self.instructions} instructions>"
        letters = "".join(each.letter for each in self.why())
        return f"<Session of {title}: group {self.group} at {self.program._native.spelled(self.pc)} {letters}>"

    def _repr_html_(self) -> str:
        return html.session(self)
