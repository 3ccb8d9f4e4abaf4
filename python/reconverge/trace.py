"""The events of a run. A trace records the events, and hooks are called with the events during the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from . import _native, html
from ._checks import article, meant, whole
from ._native import Event
from .errors import Error, HookError, WrongType
from .frames import Library, frame

if TYPE_CHECKING:
    import pandas
    import polars

    from .launch import Launch
    from .program import Program
    from .session import Session

#: The kinds of events. The index of a kind is its number in events.
KINDS = tuple(_native.event_kinds())
#: The kinds of events that a trace has only with ``data=True``.
DATA = ("write", "load", "store")
_NUMBERS = {name: number for number, name in enumerate(KINDS)}
_COLUMNS = ("step", "group", "kind", "pc", "mask", "other", "lane", "value", "space")

#: A column of events.
Column = npt.NDArray[np.unsignedinteger]


_ScalarT = TypeVar("_ScalarT", bound=np.generic)


def _frozen(array: npt.NDArray[_ScalarT]) -> npt.NDArray[_ScalarT]:
    """A read-only view of an array. The user cannot make this view writable."""
    array.setflags(write=False)
    return array.view()


class Naming(NamedTuple):
    """The names of registers and memories in the events of a launch."""

    #: Names of the registers, by their numbers.
    registers: Mapping[int, str]
    #: Names of the memories, by their numbers. The number 0 means no memory.
    spaces: tuple[str | None, ...]

    def register(self, number: int) -> str:
        """The name of a register."""
        return self.registers.get(number, f"register {number}")


_UNNAMED = Naming({}, (None,))


class Events:
    """Events as columns, in the order in which they happen.

    * ``step``: the step of the instruction that causes the event. Steps are numbered from 0, and all events of an instruction have
      the same step.
    * ``group``: the group.
    * ``kind``: the index of the kind in ``KINDS``.
    * ``pc``: the address of the instruction that causes the event.
    * ``mask``: a set of lanes. Bit n is lane n of the group. For an issue, a reconvergence and a resume, the set has
      the active lanes. For a trap, the set has the lanes that trapped. For a divergence, the set has the lanes that run
      first. For a write, a load and a store, the set has one lane.
    * ``other``: for a divergence, the lanes that do not run first. For a jump, a load or a store, the address. For a write, the
      number of the register; ``registers`` has the register's name.
    * ``lane`` and ``value``: the lane and the value, for a write, a load or a store.
    * ``space``: the number of the memory that a load or a store accesses; ``spaces`` has the memory's name.

    Columns are read-only. ``column.copy()`` returns a writable copy.
    """

    def __init__(self, columns: Mapping[str, Column], naming: Naming = _UNNAMED) -> None:
        self.columns = dict(columns)
        self._naming = naming

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.columns = {name: _frozen(column) for name, column in self.columns.items()}

    @property
    def step(self) -> npt.NDArray[np.uint64]:
        return self._column("step", np.uint64)

    @property
    def group(self) -> npt.NDArray[np.uint32]:
        return self._column("group", np.uint32)

    @property
    def kind(self) -> npt.NDArray[np.uint8]:
        return self._column("kind", np.uint8)

    @property
    def pc(self) -> npt.NDArray[np.uint32]:
        return self._column("pc", np.uint32)

    @property
    def mask(self) -> npt.NDArray[np.uint64]:
        return self._column("mask", np.uint64)

    @property
    def other(self) -> npt.NDArray[np.uint64]:
        return self._column("other", np.uint64)

    @property
    def lane(self) -> npt.NDArray[np.uint8]:
        return self._column("lane", np.uint8)

    @property
    def value(self) -> npt.NDArray[np.uint32]:
        return self._column("value", np.uint32)

    @property
    def space(self) -> npt.NDArray[np.uint8]:
        return self._column("space", np.uint8)

    def _column(self, name: str, kind: type[_ColumnT]) -> npt.NDArray[_ColumnT]:
        return _frozen(self.columns[name].astype(kind, copy=False))

    @property
    def registers(self) -> list[str | None]:
        """For each event, the name of the register that was written. ``None`` if the event is not a write."""
        writes = (self.kind == _NUMBERS["write"]).tolist()
        numbers = self.other.tolist()
        name = self._naming.register
        return [name(each) if is_write else None for each, is_write in zip(numbers, writes, strict=True)]

    @property
    def spaces(self) -> list[str | None]:
        """For each event, the name of the memory that was accessed. ``None`` if the event is not an access."""
        return [self._naming.spaces[each] for each in self.space.tolist()]

    def __len__(self) -> int:
        return len(self.columns["kind"])

    def __iter__(self) -> Iterator[Event]:
        rows = zip(*(self.columns[name].tolist() for name in _COLUMNS), strict=True)
        for step, group, kind, pc, mask, other, lane, value, space in rows:
            register = self._naming.register(other) if KINDS[kind] == "write" else None
            memory = self._naming.spaces[space]
            yield Event(step, group, KINDS[kind], pc, mask, other, lane, value, register, memory)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Events:
        """The events for which ``chosen`` is true."""
        return Events({name: _frozen(column[chosen]) for name, column in self.columns.items()}, self._naming)

    def of(self, *kinds: str) -> Events:
        """The events whose kind is in ``kinds``."""
        return self.where(np.isin(self.kind, [_number(kind) for kind in kinds]))

    def lanes(self, width: int = 64) -> npt.NDArray[np.bool_]:
        """The lanes in the mask of each event, as a table. Each event has a row, and each lane has a column."""
        bits: npt.NDArray[np.uint64] = (self.mask[:, None] >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
        return _frozen(bits.astype(np.bool_))

    @overload
    def frame(self, library: Literal["pandas"] | None = None) -> pandas.DataFrame: ...
    @overload
    def frame(self, library: Literal["polars"]) -> polars.DataFrame: ...
    @overload
    def frame(self, library: Library | None) -> pandas.DataFrame | polars.DataFrame: ...
    def frame(self, library: Library | None = None) -> pandas.DataFrame | polars.DataFrame:
        """The events as a frame of pandas or polars. The frame has names for kinds, registers and memories instead of
        numbers."""
        names = {"register": np.array(self.registers, object), "space": np.array(self.spaces, object)}
        words = {"kind": np.array(KINDS)[self.kind], **names}
        return frame(dict(self.columns, **words), library)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Events):
            return NotImplemented
        return all(np.array_equal(column, other.columns[name]) for name, column in self.columns.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Events: {self._counted()}>"

    def _counted(self) -> str:
        counts = np.bincount(self.kind, minlength=len(KINDS)).tolist()
        kinds = ", ".join(f"{count} {name}" for name, count in zip(KINDS, counts, strict=True) if count)
        return f"{len(self)} events{f' ({kinds})' if kinds else ''}"


_ColumnT = TypeVar("_ColumnT", bound=np.unsignedinteger)


def _number(kind: object) -> int:
    if kind not in _NUMBERS:
        raise Error(f"unknown kind of event `{kind}`{meant(str(kind), KINDS)}; expected one of {', '.join(KINDS)}")
    return _NUMBERS[str(kind)]


class Trace(Events):
    """The events of a run.

    >>> import reconverge
    >>> trace = reconverge.kernel("mandel", "tesla", lanes=256).trace()
    >>> trace.complete, len(trace.of("diverge")) > 0
    (True, True)
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        program: Program,
        complete: bool,
        width: int,
        naming: Naming = _UNNAMED,
    ) -> None:
        super().__init__(columns, naming)
        self.program = program
        #: Whether the trace has every event of the run.
        self.complete = complete
        #: Maximum number of lanes in a group.
        self.width = width

    @classmethod
    def record(cls, launch: Launch, *, data: bool, limit: int) -> Trace:
        """Runs a launch and records up to ``limit`` of its events."""
        batches: list[dict[str, Column]] = []
        kinds = sum(1 << number for name, number in _NUMBERS.items() if data or name not in DATA)
        keep = (batches.append, kinds, None, None, None, None)
        ended, _ = launch._native.observe([keep], 1 << 20, limit)
        none: dict[str, Column] = {name: _frozen(np.zeros(0, np.uint64)) for name in _COLUMNS}
        columns = {name: _frozen(np.concatenate([each[name] for each in batches])) for name in _COLUMNS} if batches else none
        return cls(columns, launch.program, ended == "end", _width(launch), _naming(launch))

    def __repr__(self) -> str:
        whole = "" if self.complete else ", truncated at its limit"
        return f"<Trace of {self.program.name or self.program.title}: {self._counted()}{whole}>"

    def _repr_html_(self) -> str:
        return html.trace(self)


def _width(launch: Launch) -> int:
    first, end = launch._native.start(None).lanes(0)
    return end - first


def _naming(launch: Launch) -> Naming:
    registers, spaces = launch._native.naming()
    return Naming(dict(registers), (None, *spaces))


#: A function that is called with one event, or with several events in one call.
EventFunction = Callable[[Event], object]
BatchFunction = Callable[[Events], object]
Function = TypeVar("Function", bound=EventFunction | BatchFunction)
#: One address, one range of addresses, or a list of addresses and ranges.
Addresses = int | range | Iterable[int | range]


@dataclass
class Hook:
    """A function, and the filters that select the events with which the function is called."""

    function: EventFunction | BatchFunction
    kind: str
    pc: tuple[range, ...] | None
    group: tuple[int, ...] | None
    register: tuple[str, ...] | None
    space: tuple[str, ...] | None
    #: Whether the run may end without a call of the hook.
    maybe: bool
    #: The number of events that the hook received in the last run.
    events: int = 0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = getattr(self.function, "__name__", repr(self.function))

    def __repr__(self) -> str:
        narrowed = [f"pc={[_range(each) for each in self.pc]}"] if self.pc is not None else []
        for name, value in (("group", self.group), ("register", self.register), ("space", self.space)):
            narrowed += [f"{name}={', '.join(map(str, value))}"] if value is not None else []
        return f"<Hook {self.name} of {' '.join([self.kind, *narrowed])}: {self.events} events>"


def _range(addresses: range) -> str:
    first, last = addresses[0], addresses[-1]
    return f"{first:#x}" if first == last else f"{first:#x} to {last:#x}"


class Decorator:
    """The decorator of :class:`Hooks` for a kind of event. The decorator accepts arguments, but does not need
    arguments.
    """

    def __init__(self, hooks: Hooks, kind: str) -> None:
        self._hooks, self._kind = hooks, kind

    @overload
    def __call__(self, function: Function) -> Function: ...

    @overload
    def __call__(
        self,
        *,
        pc: Addresses | None = None,
        group: int | Iterable[int] | None = None,
        register: str | Iterable[str] | None = None,
        space: str | Iterable[str] | None = None,
        maybe: bool = False,
    ) -> Callable[[Function], Function]: ...

    def __call__(
        self,
        function: Function | None = None,
        *,
        pc: Addresses | None = None,
        group: int | Iterable[int] | None = None,
        register: str | Iterable[str] | None = None,
        space: str | Iterable[str] | None = None,
        maybe: bool = False,
    ) -> Function | Callable[[Function], Function]:
        take: Callable[[Function], Function] = self._hooks.on(
            self._kind, pc=pc, group=group, register=register, space=space, maybe=maybe
        )
        return take if function is None else take(function)

    def __repr__(self) -> str:
        return f"<decorator for hooks of {self._kind}>"


class _Kind:
    """An attribute of :class:`Hooks` for a kind of event."""

    def __set_name__(self, owner: type[Hooks], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, hooks: None, owner: type[Hooks]) -> _Kind: ...
    @overload
    def __get__(self, hooks: Hooks, owner: type[Hooks]) -> Decorator: ...
    def __get__(self, hooks: Hooks | None, owner: type[Hooks]) -> _Kind | Decorator:
        return self if hooks is None else Decorator(hooks, self._name)


class Hooks:
    """Functions that are called while a launch runs.

    There is one decorator for each kind of event. The arguments ``pc`` (addresses and ranges) and ``group`` select events of
    this kind. The argument ``register`` selects writes by their register. The argument ``space`` selects loads and stores by
    their memory. If no hook selects an event, the event does not cause a call.

    :meth:`Launch.observe` calls a hook with a batch of :class:`Events`, or with each :class:`Event` if ``batch`` is 1.
    :meth:`Session.observe` calls a hook with each event, and the hook may read and change the session. If a hook returns
    ``"stop"`` or raises :class:`~reconverge.StopRun`, the run ends. If a hook raises another exception, the run ends
    and the caller receives the exception. If a hook can never be called, the method raises an error before the run. If
    a hook was never called, the method raises an error after the run. The error after the run does not occur if the
    hook has ``maybe=True``, or if a hook stopped the run.

    >>> import reconverge
    >>> hooks, lost = reconverge.Hooks(), []
    >>> @hooks.diverge
    ... def count(events):
    ...     lost.append(len(events))
    >>> reconverge.kernel("collatz", "tesla", lanes=256).observe(hooks).stopped
    False
    >>> sum(lost) > 0
    True
    """

    #: An instruction is issued.
    issue = _Kind()
    #: Lanes of a group diverge.
    diverge = _Kind()
    #: Waiting lanes resume. The lanes that ran before the event wait or have ended.
    resume = _Kind()
    #: Waiting lanes reconverge with the lanes that ran before the event.
    reconverge = _Kind()
    #: A stack or frame grows.
    push = _Kind()
    #: A stack or frame shrinks.
    pop = _Kind()
    #: The next instruction of the group is not the instruction that follows in memory.
    jump = _Kind()
    #: A lane writes a register.
    write = _Kind()
    #: A lane reads memory.
    load = _Kind()
    #: A lane writes memory.
    store = _Kind()
    #: The program traps.
    trap = _Kind()

    def __init__(self) -> None:
        self.all: list[Hook] = []

    def on(
        self,
        kind: str,
        *,
        pc: Addresses | None = None,
        group: int | Iterable[int] | None = None,
        register: str | Iterable[str] | None = None,
        space: str | Iterable[str] | None = None,
        maybe: bool = False,
    ) -> Callable[[Function], Function]:
        """Returns a decorator for functions that are called with events of this kind."""
        _number(kind)
        if register is not None and kind != "write":
            raise HookError(f"register={register}: only writes have a register; use hooks.write")
        if space is not None and kind not in ("load", "store"):
            raise HookError(f"space={space}: only loads and stores have a memory; use hooks.load or hooks.store")
        addresses, groups = _ranges(pc), _several(group)
        registers, spaces = _texts("register", register), _texts("space", space)

        def take(function: Function) -> Function:
            if not callable(function):
                raise WrongType(f"hooks.{kind}: expected a function, found {article(function)}")
            self.all.append(Hook(function, kind, addresses, groups, registers, spaces, maybe))
            return function

        return take

    def __getattr__(self, kind: str) -> Decorator:
        raise AttributeError(f"unknown kind of event `{kind}`{meant(kind, KINDS)}; expected one of {', '.join(KINDS)}")

    def __len__(self) -> int:
        return len(self.all)

    def __repr__(self) -> str:
        return f"<Hooks: {', '.join(f'{hook.name} of {hook.kind}' for hook in self.all) or 'none'}>"


class Observed(NamedTuple):
    """The result of a run with hooks."""

    #: Whether a hook stopped the run.
    stopped: bool
    #: The number of events that each hook received, in the order of the hooks.
    events: tuple[int, ...]


def _ranges(addresses: Addresses | None) -> tuple[range, ...] | None:
    if addresses is None:
        return None
    several = [addresses] if isinstance(addresses, range) or not isinstance(addresses, Iterable) else list(addresses)
    found = []
    for each in several:
        if isinstance(each, range):
            if each.step != 1:
                found += [range(one, one + 1) for one in each]
                continue
            found.append(each)
        else:
            address = whole("pc", each, 0, (1 << 32) - 1)
            found.append(range(address, address + 1))
    return tuple(each for each in found if len(each))


def _several(numbers: int | Iterable[int] | None) -> tuple[int, ...] | None:
    if numbers is None:
        return None
    several = list(numbers) if isinstance(numbers, Iterable) else [numbers]
    return tuple(whole("group", each, 0, (1 << 32) - 1) for each in several)


def _texts(place: str, texts: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if texts is None:
        return None
    several = (texts,) if isinstance(texts, str) else tuple(texts)
    for each in several:
        if not isinstance(each, str):
            raise WrongType(f"{place}: expected a name, found {article(each)}")
    return several


def _native_hook(
    hook: Hook, launch: Launch, start: _native.Session, naming: Naming, function: _native.HookFunction
) -> _native.Hook:
    """Converts a hook to the form that the native module takes. Raises an error if the hook can never be called."""
    program, never = launch.program, f"hook {hook.name} can never be called"
    if hook.pc is not None:
        addresses = sorted(each.address for each in program)
        if not hook.pc:
            raise HookError(f"{never}: pc= does not have any address")
        for each in hook.pc:
            if not any(address in each for address in addresses):
                raise HookError(f"{never}: {_nowhere(program, each)}")
    for group in hook.group or ():
        if group >= start.groups():
            raise HookError(f"{never}: group {group}: the launch has {start.groups()} groups, numbered from 0")
    registers = None if hook.register is None else [_written(never, each, start, naming) for each in hook.register]
    spaces = None if hook.space is None else [each for space in hook.space for each in _memories(never, space, naming)]
    pc = None if hook.pc is None else [(each[0], each[-1]) for each in hook.pc]
    groups = None if hook.group is None else list(hook.group)
    return function, 1 << _NUMBERS[hook.kind], pc, groups, registers, spaces


def _memories(never: str, space: str, naming: Naming) -> list[int]:
    """The numbers of the memories to which the name ``space`` refers. A name such as ``g14[]`` refers to one memory. The
    name ``g`` refers to all memories from ``g0[]`` to ``g15[]``.
    """
    known = [each for each in naming.spaces if each]
    found = [
        number
        for number, name in enumerate(naming.spaces)
        if name and (name == space or re.sub(r"\s?\d*(\[\])?$", "", name) == space.removesuffix("[]"))
    ]
    if not found:
        there = f"the program accesses {', '.join(known)}" if known else "the program does not access memory"
        raise HookError(f"{never}: unknown memory `{space}`{meant(space, known)}; {there}")
    return found


def _written(never: str, register: str, start: _native.Session, naming: Naming) -> int:
    """The number that write events use for a register."""
    from .session import named

    classes = start.registers()
    chosen = named(register, classes)
    numbers = {name: number for number, name in naming.registers.items()}
    channels = next(channels for name, _, channels in classes if name == chosen.name)
    if channels and chosen.channel is None:
        raise HookError(f"{never}: writes name registers such as {chosen.name}{chosen.number}.{channels[0]}")
    channel = f".{channels[chosen.channel]}" if channels and chosen.channel is not None else ""
    return numbers[f"{chosen.name}{chosen.number}{channel}"]


def _nowhere(program: Program, pc: range) -> str:
    if len(pc) > 1:
        return f"no instruction starts at {_range(pc)}"
    try:
        program.explain(pc[0])
    except Error as error:
        return str(error)
    return f"no instruction starts at {pc[0]}"


def _some(hooks: Hooks) -> None:
    if not isinstance(hooks, Hooks):
        raise WrongType(f"observe: expected hooks, as in hooks = reconverge.Hooks(), found {article(hooks)}")
    if not hooks.all:
        raise HookError("observe: no hooks; decorate a function, for instance with hooks.issue")


def _judged(hooks: Hooks, ended: str, counts: list[int], *, whole: bool = True) -> Observed:
    """Counts the events that each hook received. Raises an error if the run is complete and never called a hook."""
    for hook, events in zip(hooks.all, counts, strict=True):
        hook.events = events
    silent = [f"{hook.name} ({hook.kind})" for hook in hooks.all if not hook.maybe and hook.events == 0]
    if silent and whole and ended == "end":
        raise HookError(f"hooks that were never called: {', '.join(silent)}; maybe=True permits this")
    return Observed(ended == "stop", tuple(counts))


def observe(launch: Launch, hooks: Hooks, batch: int) -> Observed:
    """Runs a launch with hooks."""
    _some(hooks)
    naming = _naming(launch)

    def columns(function: Callable[..., object]) -> _native.HookFunction:
        return lambda columns: function(Events(columns, naming))

    start = launch._native.start(None)
    native = [
        _native_hook(hook, launch, start, naming, hook.function if batch == 1 else columns(hook.function))
        for hook in hooks.all
    ]
    ended, counts = launch._native.observe(native, batch, None)
    return _judged(hooks, ended, counts)


def observe_session(session: Session, hooks: Hooks) -> Observed:
    """Runs a session with hooks. Each call of a hook has one event."""
    _some(hooks)
    launch = session.launch
    start, naming = launch._native.start(None), _naming(launch)
    native = [_native_hook(hook, launch, start, naming, hook.function) for hook in hooks.all]
    whole = session.instructions == 0
    ended, counts = session._native.observe(native)
    return _judged(hooks, ended, counts, whole=whole)
