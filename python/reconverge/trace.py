"""What happens in a run: traces, and hooks that are called with arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, overload

import numpy as np
import numpy.typing as npt

from . import html
from .errors import Error, HookError
from .frames import Naming, frame, register_names, space_names

if TYPE_CHECKING:
    from .launch import Launch
    from .program import Program

#: The kinds of events by their numbers.
KINDS = ("issue", "diverge", "reconverge", "push", "pop", "jump", "write", "load", "store", "trap", "resume")
#: Those that need ``data=True``.
DATA = ("write", "load", "store")
_NUMBERS = {name: number for number, name in enumerate(KINDS)}
_COLUMNS = ("step", "group", "kind", "pc", "mask", "other", "lane", "value")


class Event(NamedTuple):
    """One event; what a column means, :class:`Events` says."""

    step: int
    group: int
    kind: str
    pc: int
    mask: int
    other: int
    lane: int
    value: int


class Events:
    """Events as columns, in the order in which they happen.

    * ``step``: the step of the instruction: how many instructions of the launch were issued before it. An event has the
      step of its group's last instruction.
    * ``group``: the group.
    * ``kind``: its number in ``KINDS``.
    * ``pc``: the address of the instruction; of other events that of the group's last.
    * ``mask``: the lanes of an issue, a resume, a reconvergence or a trap (bit n is lane n of the group); of a divergence those
      that run first; of a write or an access its lane.
    * ``other``: the other lanes of a divergence; the address of a jump, a load or a store; the number of a register
      (R500, R700: four times the register plus the channel).
    * ``lane`` and ``value``: of a write, a load or a store.
    """

    def __init__(self, columns: dict[str, npt.NDArray[Any]]) -> None:
        self.columns = columns

    @property
    def step(self) -> npt.NDArray[np.uint64]:
        return self.columns["step"]

    @property
    def group(self) -> npt.NDArray[np.uint32]:
        return self.columns["group"]

    @property
    def kind(self) -> npt.NDArray[np.uint8]:
        return self.columns["kind"]

    @property
    def pc(self) -> npt.NDArray[np.uint32]:
        return self.columns["pc"]

    @property
    def mask(self) -> npt.NDArray[np.uint64]:
        return self.columns["mask"]

    @property
    def other(self) -> npt.NDArray[np.uint64]:
        return self.columns["other"]

    @property
    def lane(self) -> npt.NDArray[np.uint8]:
        return self.columns["lane"]

    @property
    def value(self) -> npt.NDArray[np.uint32]:
        return self.columns["value"]

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Event]:
        for step, group, kind, *rest in zip(*(self.columns[name].tolist() for name in _COLUMNS), strict=True):
            yield Event(step, group, KINDS[kind], *rest)

    def where(self, chosen: npt.NDArray[np.bool_]) -> Events:
        """The events that are chosen."""
        return Events({name: column[chosen] for name, column in self.columns.items()})

    def of(self, *kinds: str) -> Events:
        """The events of these kinds."""
        return self.where(np.isin(self.kind, [_number(kind) for kind in kinds]))

    def lanes(self, width: int = 64) -> npt.NDArray[np.bool_]:
        """Of each event the lanes of its mask: a row an event, a column a lane."""
        bits: npt.NDArray[np.uint64] = (self.mask[:, None] >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
        return bits.astype(np.bool_)

    def frame(self, library: str | None = None) -> Any:
        """The events as a frame of pandas or polars, kinds as words."""
        return frame(dict(self.columns, kind=np.array(KINDS)[self.kind]), library)


def _number(kind: str) -> int:
    if kind not in _NUMBERS:
        raise Error(f"no events are called {kind}: there are {', '.join(KINDS)}")
    return _NUMBERS[kind]


class Trace(Events):
    """The events of a run.

    >>> import reconverge
    >>> trace = reconverge.kernel("mandel", "tesla", lanes=256).trace()
    >>> trace.complete, len(trace.of("diverge")) > 0
    (True, True)
    """

    def __init__(
        self,
        columns: dict[str, npt.NDArray[Any]],
        program: Program,
        complete: bool,
        width: int,
        naming: Naming = ([], {}),
    ) -> None:
        super().__init__(columns)
        self.program = program
        self._naming = naming
        #: Whether it has every event of the run.
        self.complete = complete
        #: Lanes that a group has room for.
        self.width = width

    @classmethod
    def record(cls, launch: Launch, *, data: bool, limit: int) -> Trace:
        """Runs a launch and keeps its events, ``limit`` at most."""
        batches: list[dict[str, npt.NDArray[Any]]] = []
        kinds = sum(1 << number for name, number in _NUMBERS.items() if data or name not in DATA)
        complete = launch._native.observe(batches.append, kinds, 1 << 20, limit)
        width = _width(launch)
        if len(batches) == 1:
            return cls(batches[0], launch.program, complete, width, launch._native.naming())
        none: dict[str, npt.NDArray[Any]] = {name: np.zeros(0, np.uint64) for name in _COLUMNS}
        columns = {name: np.concatenate([each[name] for each in batches]) for name in _COLUMNS} if batches else none
        return cls(columns, launch.program, complete, width, launch._native.naming())

    def frame(self, library: str | None = None) -> Any:
        """The events as a frame of pandas or polars, kinds as words.

        ``register`` is the name of the register that a write is to, ``space`` the memory of a load or store.
        """
        kinds = np.array(KINDS)[self.kind]
        registers, spaces = self._naming
        named = {
            "register": register_names(kinds, self.other, registers),
            "space": space_names(kinds, self.columns, spaces),
        }
        return frame(dict(self.columns, kind=kinds, **named), library)

    def __repr__(self) -> str:
        whole = "" if self.complete else ", cut at its limit"
        return f"<Trace of {self.program.name or self.program.title}: {len(self)} events{whole}>"

    def _repr_html_(self) -> str:
        return html.trace(self)


def _width(launch: Launch) -> int:
    first, end = launch._native.start(None).lanes(0)
    return end - first


@dataclass
class Hook:
    """A function that is called with the events it asks for."""

    function: Callable[[Events], object]
    kind: str
    pc: frozenset[int] | None
    group: frozenset[int] | None
    register: str | None
    number: int | None = None
    events: int = 0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = getattr(self.function, "__name__", repr(self.function))


Function = TypeVar("Function", bound=Callable[["Events"], object])


class Decorator(Protocol):
    """What :class:`Hooks` has for a kind of event: a decorator, with or without arguments."""

    @overload
    def __call__(self, function: Function) -> Function: ...

    @overload
    def __call__(
        self,
        *,
        pc: int | Iterable[int] | None = None,
        group: int | Iterable[int] | None = None,
        register: str | None = None,
        maybe: bool = False,
    ) -> Callable[[Function], Function]: ...


class Hooks:
    """Functions that are called with arrays of events while a launch runs.

    A decorator a kind of event; ``pc``, ``group`` and, for writes, ``register`` narrow it. A hook is called with
    :class:`Events`, a batch at a time, in order. A hook that can never be called is an error before the run, one that
    never was is an error behind it (unless ``maybe=True``).

    >>> import reconverge
    >>> hooks, lost = reconverge.Hooks(), []
    >>> @hooks.diverge
    ... def count(events):
    ...     lost.append(len(events))
    >>> reconverge.kernel("collatz", "tesla", lanes=256).observe(hooks)
    >>> sum(lost) > 0
    True
    """

    def __init__(self) -> None:
        self.all: list[tuple[Hook, bool]] = []

    def on(
        self,
        kind: str,
        *,
        pc: int | Iterable[int] | None = None,
        group: int | Iterable[int] | None = None,
        register: str | None = None,
        maybe: bool = False,
    ) -> Callable[[Function], Function]:
        """A decorator: the function is called with events of a kind."""
        _number(kind)
        if register is not None and kind != "write":
            raise HookError(f"register={register}: only writes are of a register; say hooks.write")

        def take(function: Function) -> Function:
            self.all.append((Hook(function, kind, _set(pc), _set(group), register), maybe))
            return function

        return take

    def __getattr__(self, kind: str) -> Decorator:
        if kind not in _NUMBERS:
            raise AttributeError(f"no events are called {kind}: there are {', '.join(KINDS)}")

        def decorate(function: Callable[[Events], object] | None = None, **narrowed: Any) -> Any:
            take = self.on(kind, **narrowed)
            return take if function is None else take(function)

        return decorate


def _set(numbers: int | Iterable[int] | None) -> frozenset[int] | None:
    if numbers is None:
        return None
    return frozenset([numbers]) if isinstance(numbers, int) else frozenset(numbers)


def _checked(hook: Hook, launch: Launch) -> None:
    """Refuses a hook that can never be called."""
    program = launch.program
    addresses = {each.address for each in program}
    for pc in sorted(hook.pc or ()):
        if pc not in addresses:
            raise HookError(f"hook {hook.name} can never be called: {_nowhere(program, pc)}")
    if hook.pc is not None and not hook.pc:
        raise HookError(f"hook {hook.name} can never be called: pc= has no address")
    start = launch._native.start(None)
    for group in sorted(hook.group or ()):
        if not 0 <= group < start.groups():
            raise HookError(
                f"hook {hook.name} can never be called: group {group}: the launch has {start.groups()}, from 0 on"
            )
    if hook.register is not None:
        from .session import named

        classes = start.registers()
        chosen = named(hook.register, classes)
        first = classes[0]
        if chosen.name != first[0] or (first[2] and chosen.channel is None):
            example = f"{first[0]}0.{first[2][0]}" if first[2] else f"{first[0]}0"
            raise HookError(f"hook {hook.name} can never be called: writes name registers such as {example}")
        channels = len(first[2]) or 1
        hook.number = chosen.number * channels + (chosen.channel or 0)


def _nowhere(program: Program, pc: int) -> str:
    try:
        program.explain(pc)
    except Error as error:
        return str(error)
    return f"no instruction starts at {pc}"


def observe(launch: Launch, hooks: Hooks, batch: int) -> None:
    """Runs a launch with hooks."""
    if not hooks.all:
        raise HookError("there are no hooks: decorate a function with one, for instance hooks.issue")
    for hook, _ in hooks.all:
        hook.events = 0
        _checked(hook, launch)

    def call(columns: dict[str, npt.NDArray[Any]]) -> None:
        events = Events(columns)
        for hook, _ in hooks.all:
            chosen = events.kind == _NUMBERS[hook.kind]
            if hook.pc is not None:
                chosen &= np.isin(events.pc, list(hook.pc))
            if hook.group is not None:
                chosen &= np.isin(events.group, list(hook.group))
            if hook.number is not None:
                chosen &= events.other == hook.number
            if chosen.any():
                wanted = events.where(chosen)
                hook.events += len(wanted)
                hook.function(wanted)

    kinds = sum(1 << number for number in {_NUMBERS[hook.kind] for hook, _ in hooks.all})
    launch._native.observe(call, kinds, batch, None)
    silent = [f"{hook.name} ({hook.kind})" for hook, maybe in hooks.all if not maybe and hook.events == 0]
    if silent:
        raise HookError(f"never called: {', '.join(silent)}; maybe=True says that this is well")
