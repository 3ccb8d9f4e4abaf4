"""A program with what it starts from: runs, counts, reports."""

from __future__ import annotations

import json
import numbers
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from . import _native, html
from ._arrays import Arrays
from .errors import Error, TypeChosen
from .program import Program, Source
from .session import Session
from .stats import Stats
from .trace import Hooks, Trace, observe


class Result(Mapping[str, npt.NDArray[Any]]):
    """What a run leaves: outputs by name, counts, and how exact each operation was.

    An output is a view on the buffer that the run made; it cannot be written.
    """

    def __init__(
        self,
        outputs: dict[str, npt.NDArray[Any]],
        rest: dict[str, Any],
        title: str,
        buffers: Callable[[], dict[str, tuple[int, int]]] = dict,
    ) -> None:
        self._outputs, self._buffers = outputs, buffers
        self.title = title
        #: Instructions issued to a group.
        self.instructions: int = rest["instructions"]
        #: Instructions summed over the lanes that took part.
        self.lane_instructions: int = rest["lane_instructions"]
        #: Decisions that split the lanes.
        self.divergent_branches: int = rest["divergent_branches"]
        #: By operation: the grade, and how often it was issued.
        self.fidelity: dict[str, tuple[str, int]] = {name: tuple(each) for name, each in rest["fidelity"].items()}
        #: What strict mode objects to in how the program ended.
        self.findings: list[str] = rest["findings"]
        #: Expectations of a launch file that were not met.
        self.mismatches: list[str] = rest["mismatches"]

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        try:
            return self._outputs[name]
        except KeyError:
            raise KeyError(f"no output `{name}`; there is {', '.join(self._outputs) or 'none'}") from None

    def at(self, address: SupportsIndex, count: int = 1, dtype: npt.DTypeLike = np.uint32) -> npt.NDArray[Any]:
        """The numbers at an address of global memory: a view on the output that has them.

        A captured launch has whole allocations as outputs, and pointers into them as parameters.
        """
        kind, address = np.dtype(dtype), operator.index(address)
        size = count * kind.itemsize
        if count < 0 or kind.hasobject or kind.itemsize == 0:
            raise Error(f"{count} numbers of {kind}: a number of elements from 0 on and a type of fixed size fit here")
        buffers = self._buffers()
        for name, (first, end) in buffers.items():
            if first <= address and address + size <= end:
                flat = self[name].reshape(-1).view(np.uint8)
                return flat[address - first : address - first + size].view(kind)
        if not buffers:
            raise Error(f"{self.title}: the launch has no buffers with addresses")
        near = min(buffers, key=lambda name: max(buffers[name][0] - address, address - buffers[name][1]))
        first, end = buffers[near]
        raise Error(
            f"{size} bytes from {address:#x} on are not in one buffer; the nearest is {near}, {first:#x} to {end:#x}"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)

    def __repr__(self) -> str:
        outputs = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in self.items())
        return f"<Result of {self.title}: {outputs}; {self.instructions} group instructions>"

    def _repr_html_(self) -> str:
        return html.result(self)


class Launch:
    """A program with what it starts from, ready to run any number of times."""

    def __init__(self, program: Program, native: _native.Launch, plain: frozenset[str] = frozenset()) -> None:
        self.program = program
        self._native = native
        self._places: dict[str, tuple[int, int]] | None = None
        # A number that is passed to a kernel has the type that its value has.
        typed = [each for each in native.typed if each.rsplit(" ", 1)[0] not in plain]
        if typed:
            read = ", ".join(typed)
            message = f"numbers without a type are read as: {read}; an array of that type states it"
            warnings.warn(message, TypeChosen, stacklevel=4)

    @property
    def title(self) -> str:
        """What it is called in messages."""
        return self._native.title

    @property
    def fields(self) -> dict[str, Any] | None:
        """The fields of its launch file, as they are written there; ``None`` for a launch without a file.

        They are a copy: changed fields are keywords of :func:`launch`.
        """
        return self._native.fields()

    @property
    def buffers(self) -> dict[str, tuple[int, int]]:
        """The buffers of global memory, by name: first byte, and one past the last. Only Tesla has such buffers."""
        if self._places is None:
            self._places = {name: (first, end) for name, first, end in self._native.buffers()}
        return dict(self._places)

    def run(self, *, engine: str | None = None, jobs: int | None = None) -> Result:
        """Runs it to its end, without the interpreter's lock.

        ``engine`` is ``reference``, ``fast``, ``compiled`` (the default) or ``lockstep``; results do not depend on it.
        """
        outputs, rest = self._native.run(engine, jobs)
        return Result(outputs, json.loads(rest), self.title, lambda: self.buffers)

    def session(self, *, engine: str | None = None) -> Session:
        """The launch before its first instruction, to be looked at and stepped."""
        return Session(self.program, self._native.start(engine))

    def stats(self, *, memory: bool = True) -> Stats:
        """Counts by instruction; ``memory=False`` leaves out how accesses come together, which is faster."""
        return Stats(json.loads(self._native.stats(memory)), self.title)

    def trace(self, *, data: bool = False, limit: int = 10_000_000) -> Trace:
        """What happens in a run; with ``data`` also writes to registers and accesses to memory.

        The trace ends after ``limit`` events, and ``complete`` is then false.
        """
        return Trace.record(self, data=data, limit=limit)

    def observe(self, hooks: Hooks, *, batch: int = 65_536) -> None:
        """Runs it and calls hooks with arrays of events. A hook that can never be called, or never was, is an error."""
        observe(self, hooks, batch)

    def report(self) -> html.Page:
        """The page that shows the run: program, counts, a timeline of all lanes, registers, why each lane waits."""
        return html.Page(self._native.report())

    def __repr__(self) -> str:
        return f"<Launch of {self.program!r}>"

    def _repr_html_(self) -> str:
        return self.program._repr_html_()


def _size(size: int | Sequence[int]) -> str:
    return str(size) if isinstance(size, numbers.Integral) else "x".join(str(each) for each in size)  # type: ignore[union-attr]


def _value(place: str, value: Any, arrays: Arrays) -> str:
    """A value as the command line has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple) and len(value) >= 2 and not isinstance(value[0], numbers.Number):
        # A buffer with what is behind it: (array, "FLOAT32_1:8x8"), (array, 16).
        return ":".join([_value(place, value[0], arrays), *(str(each) for each in value[1:])])
    if isinstance(value, (bool, int, float)):
        return str(int(value) if isinstance(value, bool) else value)
    return arrays.name(place, value)


def _texture(unit: int, value: Any, arrays: Arrays) -> str:
    place = f"textures {unit}"
    if isinstance(value, str):
        return value
    texels = np.asarray(value)
    if texels.ndim not in (2, 3):
        raise Error(f"{place}: an array of shape (height, width) or (height, width, channels) fits here")
    return f"{arrays.name(place, value)}:{texels.shape[1]}x{texels.shape[0]}"


def _field(place: str, value: Any, arrays: Arrays) -> Any:
    """A field of a launch file, with names in place of arrays."""
    if isinstance(value, (np.ndarray, np.generic)) and np.ndim(value) > 0:
        return arrays.name(place, value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): _field(f"{place}.{key}", each, arrays) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_field(f"{place}[{number}]", each, arrays) for number, each in enumerate(value)]
    return value


def _json(fields: dict[str, Any]) -> str:
    try:
        return json.dumps(fields)
    except TypeError as error:
        raise Error(f"fields of the launch: {error}; numbers, texts, lists, dicts and arrays fit here") from None


def prepare(
    program: Program,
    fields: dict[str, Any],
    *,
    inputs: Mapping[str, Any],
    constants: Mapping[Any, Any],
    params: Mapping[str, Any],
    buffers: Mapping[Any, Any],
    textures: Mapping[int, Any],
    grid: int | Sequence[int] | None,
    block: int | Sequence[int] | None,
    shared: int | None,
) -> Launch:
    """A launch of a program."""
    arrays = Arrays()
    options: list[tuple[str, str]] = []
    for name, size in (("grid", grid), ("block", block)):
        if size is not None:
            options.append((name, _size(size)))
    if shared is not None:
        options.append(("shared", str(shared)))
    for place, value in inputs.items():
        options.append(("input", f"{place}={_value(f'inputs {place}', value, arrays)}"))
    for place, value in constants.items():
        options.append(("const", f"{place}={_value(f'constants {place}', value, arrays)}"))
    for place, value in params.items():
        number = isinstance(value, (bool, int, float, np.generic))
        if isinstance(value, np.generic) and not isinstance(value, (np.float64, np.int64, np.bool_)):
            kind = f"{value.dtype.kind}{value.dtype.itemsize * 8}"
            text = f"{value.item()}:{kind}"
        else:
            # numpy's default types state nothing: they are what any arithmetic gives.
            text = _value(f"params {place}", value.item() if isinstance(value, np.generic) else value, arrays)
        options.append(("arg" if number else "buf", f"{place}={text}"))
    for place, value in buffers.items():
        options.append(("buf", f"{place}={_value(f'buffers {place}', value, arrays)}"))
    for unit, value in textures.items():
        options.append(("texture", f"{unit}={_texture(unit, value, arrays)}"))
    known = {name: _field(name, value, arrays) for name, value in fields.items() if value is not None}
    text = _json(dict(known, isa=program.isa))
    title = program.name or program.title
    plain = frozenset(f"param {name}" for name, value in params.items() if isinstance(value, (bool, int, float)))
    return Launch(program, _native.launch(program._native, title, text, options, arrays.native), plain)


def launch(path: Source, *, outside: bool = False, **fields: Any) -> Launch:
    """The launch that a launch file (TOML or JSON) describes.

    Files that it names must be in its folder, unless ``outside`` is true. Any other keyword replaces a field of the file;
    arrays may stand for its values.
    """
    arrays = Arrays()
    changes = _json({name: _field(name, value, arrays) for name, value in fields.items()})
    native, prepared = _native.launch_file(str(path), outside, changes, arrays.native)
    return Launch(Program(native, str(path)), prepared)


def kernel(name: str, isa: str, lanes: int = 1024) -> Launch:
    """The first lanes of a built-in kernel: ``mandel`` of every machine, ``collatz`` of ``r700`` and ``tesla``.

    >>> import reconverge
    >>> reconverge.kernel("collatz", "tesla", lanes=256).run()["out"][:8].tolist()
    [0, 1, 7, 2, 5, 8, 16, 3]
    """
    native, prepared = _native.kernel(name, isa, lanes)
    return Launch(Program(native, f"{name} ({isa})"), prepared)
