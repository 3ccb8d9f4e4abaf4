"""Launches: programs with their inputs. A launch has methods for runs, counts and reports."""

from __future__ import annotations

import json
import numbers
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, SupportsIndex, TypedDict, TypeVar, Unpack, overload

import numpy as np
import numpy.typing as npt

from . import _native, html
from ._arrays import Arrays
from ._checks import article, existing, mapping, meant, text, warn, whole
from .errors import Error, OutOfRange, TypeChosen, UnknownKeyword, WrongType
from .keywords import LaunchFields, LaunchKeywords
from .program import Isa, Program, Source
from .session import Session
from .stats import Stats, StatsData
from .trace import Hooks, Observed, Trace, observe

#: The engines. Results do not depend on the engine.
Engine = Literal["reference", "fast", "compiled", "lockstep"]
#: Numbers. The launch determines their type.
Output = npt.NDArray[np.number]

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


class _Rest(TypedDict):
    instructions: int
    lane_instructions: int
    divergent_branches: int
    fidelity: dict[str, tuple[str, int]]
    findings: list[str]
    held: list[str]
    mismatches: list[str]


class Result(Mapping[str, Output]):
    """The result of a run. The result has the outputs by name, the counts, and the exactness of each operation.

    An output is a read-only view of the buffer that the run wrote.
    """

    def __init__(self, outputs: dict[str, Output], rest: _Rest, launch: Launch) -> None:
        self._outputs, self._launch = outputs, launch
        self._places: dict[str, tuple[int, int]] | None = None
        self.title = launch.title
        #: Number of instructions issued to groups.
        self.instructions: int = rest["instructions"]
        #: Number of instructions executed by lanes: the sum of the active lanes of all instructions.
        self.lane_instructions: int = rest["lane_instructions"]
        #: Number of branch decisions that split the lanes of a group.
        self.divergent_branches: int = rest["divergent_branches"]
        #: For each operation, the exactness grade, and how often the operation was issued.
        self.fidelity: dict[str, tuple[str, int]] = {
            name: (grade, times) for name, (grade, times) in rest["fidelity"].items()
        }
        #: Problems that strict mode finds in the state at the program's end.
        self.findings: list[str] = rest["findings"]
        #: The conditions of the launch file that the run met. Each condition is about a count, and is listed with this count.
        self.held: list[str] = rest["held"]
        #: The expectations of the launch file that the run did not meet.
        self.mismatches: list[str] = rest["mismatches"]

    def __getstate__(self) -> dict[str, object]:
        # A copy of the result has the addresses of the launch's buffers instead of the launch.
        state = dict(self.__dict__, _places=self._buffers(), _launch=None)
        return state

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        for array in self._outputs.values():
            array.setflags(write=False)

    def _buffers(self) -> dict[str, tuple[int, int]]:
        if self._places is None:
            self._places = self._launch.buffers
        return self._places

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._outputs)

    def __getitem__(self, name: str) -> Output:
        try:
            return self._outputs[name]
        except KeyError:
            hint = meant(str(name), self._outputs)
            raise KeyError(f"no output `{name}`{hint}; there is {', '.join(self._outputs) or 'none'}") from None

    @overload
    def at(self, address: SupportsIndex, count: int = 1) -> npt.NDArray[np.uint32]: ...
    @overload
    def at(
        self, address: SupportsIndex, count: int, dtype: type[_ScalarT] | np.dtype[_ScalarT]
    ) -> npt.NDArray[_ScalarT]: ...
    @overload
    def at(self, address: SupportsIndex, count: int = 1, *, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]: ...
    def at(
        self, address: SupportsIndex, count: int = 1, dtype: npt.DTypeLike = np.uint32
    ) -> npt.NDArray[np.generic]:
        """The numbers at an address of global memory. The array is a view of the output that contains the address.

        This method is useful for a captured launch. The outputs of a captured launch are whole allocations. The
        parameters of the launch are pointers into these allocations.
        """
        kind, address = np.dtype(dtype), operator.index(address)
        whole("count", count, -(1 << 63))
        if count < 0 or kind.hasobject or kind.itemsize == 0:
            raise Error(f"{count} numbers of {kind}: expected a number of elements from 0 on and a type of fixed size")
        size = count * kind.itemsize
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
    """A program with its inputs, which can run any number of times."""

    def __init__(
        self,
        program: Program,
        native: _native.Launch,
        plain: frozenset[str] = frozenset(),
        floats: Sequence[str] = (),
    ) -> None:
        self.program = program
        self._native = native
        self._places: dict[str, tuple[int, int]] | None = None
        # If the user passes a plain number to a kernel, the number determines the type of the parameter. No warning is
        # needed.
        typed = [each for each in native.typed if each.rsplit(" ", 1)[0] not in plain]
        # The native module does not report lists of floats, because a number with a fraction states the type in a
        # launch file.
        known = {each.rsplit(" ", 1)[0] for each in native.typed}
        typed += [f"{place} f32" for place in floats if place not in known]
        if typed:
            read = ", ".join(typed)
            warn(f"assumed types of numbers: {read}; state others with an array of that type", TypeChosen)

    def __reduce__(self) -> tuple[object, ...]:
        state = self._native.state()
        if state is None:
            return _kernel_again, (self._native.built_in(),)
        return _relaunched, (self.program, state)

    def __copy__(self) -> Launch:
        # A launch is immutable.
        return self

    def __deepcopy__(self, _: object) -> Launch:
        return self

    @property
    def title(self) -> str:
        """The name of the launch in messages."""
        return self._native.title

    @property
    def fields(self) -> LaunchFields | None:
        """The fields of the launch file, as the file states them. ``None`` if the launch does not come from a file.

        The dict is a copy. To change a field of a launch, pass the field to :func:`launch` as a keyword.
        """
        return self._native.fields()

    @property
    def buffers(self) -> dict[str, tuple[int, int]]:
        """The buffers of Tesla's global memory, by name. Each buffer has the address of its first byte, and the address
        after its last byte. On other machines, the result is empty.
        """
        if self._places is None:
            self._places = {name: (first, end) for name, first, end in self._native.buffers()}
        return dict(self._places)

    def run(self, *, engine: Engine | None = None, jobs: int | None = None) -> Result:
        """Runs the launch to its end. Python's interpreter lock is released during the run.

        ``engine`` is ``reference``, ``fast``, ``compiled`` (the default) or ``lockstep``. ``jobs`` is the number of threads.
        Results do not depend on these arguments.
        """
        threads = None if jobs is None else whole("jobs", jobs, 1, 1 << 16)
        outputs, rest = self._native.run(_engine(engine), threads)
        return Result(outputs, json.loads(rest), self)

    def session(self, *, engine: Engine | None = None) -> Session:
        """A session that is before the first instruction of the launch. The session can examine the launch and execute
        the launch step by step.
        """
        return Session(self, self._native.start(_engine(engine)))

    def stats(self, *, memory: bool = True) -> Stats:
        """Counts by instruction. With ``memory=False``, the result does not have memory transactions, and the function is
        faster."""
        data: StatsData = json.loads(self._native.stats(memory))
        return Stats(data, self.title)

    def trace(self, *, data: bool = False, limit: int = 10_000_000) -> Trace:
        """The events of a run. If ``data`` is true, the events include writes to registers and accesses to memory.

        The trace ends after ``limit`` events. If the run has more events, ``complete`` is false.
        """
        return Trace.record(self, data=data, limit=whole("limit", limit))

    def observe(self, hooks: Hooks, *, batch: int = 65_536) -> Observed:
        """Runs the launch and calls hooks. Each call passes an object :class:`Events` with up to ``batch`` events. If ``batch`` is
        1, each call passes one :class:`Event`.

        A hook that can never be called is an error. A hook that the run never called is also an error. If a hook
        returns ``"stop"``, the run ends. To read or change registers and memory in a hook, use :meth:`Session.observe`.
        """
        return observe(self, hooks, whole("batch", batch, 1))

    def report(self) -> html.Page:
        """The page that shows the program, counts, a timeline of all lanes, registers, and why each lane waits."""
        return html.Page(self._native.report())

    def __repr__(self) -> str:
        return f"<Launch of {self.program!r}>"

    def _repr_html_(self) -> str:
        return self.program._repr_html_()


def _engine(name: object) -> str | None:
    return None if name is None else text("engine", name, ": reference, fast, compiled, lockstep")


def _kernel_again(known: tuple[str, Isa, int | None]) -> Launch:
    return kernel(*known)


def _relaunched(program: Program, state: _native.LaunchState) -> Launch:
    made = Launch.__new__(Launch)
    made.program, made._places = program, None
    made._native = _native.relaunch(program._native, *state)
    return made


def _size(place: str, size: object) -> str:
    """A size in the notation of the command line: ``8x8``."""
    if isinstance(size, str):
        numbers = "x".join(size.split("x")) if size.replace("x", "").isdigit() else None
        hint = f"({size.replace('x', ', ')})" if numbers and "x" in size else size if numbers else "64 or (8, 8)"
        raise WrongType(f"{place}: expected one or more whole numbers, as in {place}={hint}, found the text {size!r}")
    if isinstance(size, (Sequence, np.ndarray)):
        return "x".join(str(whole(f"{place}[{number}]", each, 1, (1 << 32) - 1)) for number, each in enumerate(size))
    return str(whole(place, size, 1, (1 << 32) - 1))


def _value(place: str, value: object, arrays: Arrays, *, memory: bool = False) -> str:
    """A value in the notation of the command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple) and len(value) >= 2 and not isinstance(value[0], numbers.Number):
        # A buffer and the format or stride of the buffer: (array, "FLOAT32_1:8x8"), (array, 16).
        return ":".join([_value(place, value[0], arrays, memory=memory), *(str(each) for each in value[1:])])
    if isinstance(value, (bool, int, float)):
        return str(int(value) if isinstance(value, bool) else value)
    if value is None or isinstance(value, (Mapping, set, bytes)):
        raise WrongType(f"{place}: expected an array, a number or a text, found {article(value)}")
    return arrays.name(place, value, memory=memory)


def _texture(unit: object, value: object, arrays: Arrays) -> str:
    place = f"textures {unit}"
    if isinstance(value, str):
        return value
    texels = np.asarray(value)
    if texels.ndim not in (2, 3):
        raise Error(f"{place}: expected an array of shape (height, width) or (height, width, channels)")
    return f"{arrays.name(place, value)}:{texels.shape[1]}x{texels.shape[0]}"


#: If an array is the value of one of these fields, the bytes of the array become memory without a conversion.
_MEMORY = ("buffer", "param")


def _field(place: str, value: object, arrays: Arrays) -> object:
    """A field of a launch file. Replaces arrays by their names."""
    if isinstance(value, (np.ndarray, np.generic)) and np.ndim(value) > 0:
        return arrays.name(place, value, memory=place.startswith(_MEMORY))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): _field(f"{place}.{key}", each, arrays) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_field(f"{place}[{number}]", each, arrays) for number, each in enumerate(value)]
    return value


def _json(fields: Mapping[str, object]) -> str:
    try:
        return json.dumps(fields)
    except TypeError as error:
        raise Error(f"fields of the launch: {error}; expected numbers, texts, lists, dicts and arrays") from None


#: Fields that are whole numbers, with their smallest allowed value.
_WHOLE = {"lanes": 1, "shared": 0, "watchdog": 0}


def _known(fields: Mapping[str, object], known: Mapping[str, object]) -> None:
    """Raises an error for an unknown keyword. Also raises an error if a field of ``_WHOLE`` is not a whole number in
    range."""
    for name, value in fields.items():
        if name not in known:
            raise UnknownKeyword(f"unknown keyword `{name}`{meant(name, known)}; docs/launch-files.md lists the fields")
        if name in _WHOLE and value is not None:
            whole(name, value, _WHOLE[name])


def _param(place: str, value: object, arrays: Arrays) -> tuple[str, str]:
    """The name and the value of the command-line option for a parameter."""
    place = f"params {place}"
    if isinstance(value, np.generic) and not isinstance(value, (np.float64, np.int64, np.bool_)):
        return "arg", f"{value.item()}:{value.dtype.kind}{value.dtype.itemsize * 8}"
    if isinstance(value, np.generic):
        # The results of arithmetic in numpy often have one of numpy's default types. If a value has a default type, the user
        # possibly did not choose this type.
        value = value.item()
    if isinstance(value, int) and not -(1 << 31) <= value < 1 << 32:
        raise OutOfRange(f"{place}: {value}: expected -2147483648 to 4294967295; np.uint64({value}) is a 64-bit number")
    return "arg" if isinstance(value, (bool, int, float)) else "buf", _value(place, value, arrays, memory=True)


def _is_floats(value: object) -> bool:
    """Whether a value is a list that contains a float. The float may be in a nested list."""
    if isinstance(value, tuple) and len(value) >= 2 and not isinstance(value[0], numbers.Number):
        value = value[0]
    if not isinstance(value, (list, tuple)):
        return False
    array = np.asarray(value)
    return array.dtype.kind == "f" and array.size > 0


def _floats(program: Program, fields: Mapping[str, object]) -> list[str]:
    """The buffers and parameters without a type of memory whose value is a list of floats. (The result does not contain
    inputs and R500 buffers, because they have a type.)"""
    if program.isa == "r500":
        return []
    found = []
    buffer = "param" if program.isa == "tesla" else "buffer"
    for keyword, place in (("params", "param"), ("buffers", buffer)):
        values = fields.get(keyword)
        if isinstance(values, Mapping):
            found += [f"{place} {name}" for name, value in values.items() if _is_floats(value)]
    for field, value in (("param", "buffer"), ("buffer", "values")):
        tables = fields.get(field)
        for table in tables if isinstance(tables, (list, tuple)) else ():
            if isinstance(table, Mapping) and _is_floats(table.get(value)):
                found.append(f"{field} {table.get('name', table.get('number', '?'))}")
    return found


def _same_program(program: Program, given: Mapping[str, object]) -> None:
    """Raises an error for keywords that name another program, because the launch belongs to ``program``."""
    file, kernel = given.get("program"), given.get("kernel")
    own = {Path(program.title).name, Path(program._native.state()[0]).name}
    if file is not None and Path(text("program", file, "")).name not in own:
        raise Error(
            f"program: {file}, but the launch is for {program.title}: omit program=; "
            "reconverge.launch(path, program=…) uses another program"
        )
    if kernel is not None and text("kernel", kernel, "") not in (program.name, program.contents["demangled"]):
        raise Error(
            f"kernel: {kernel}, but the launch is for {program.name or 'a program without a name'}: omit kernel=; "
            "reconverge.load(path, kernel=…) loads another program"
        )


def prepare(program: Program, keywords: LaunchKeywords) -> Launch:
    """A launch of a program."""
    arrays = Arrays()
    given: dict[str, object] = dict(keywords)
    _known(given, LaunchKeywords.__annotations__)
    _same_program(program, given)
    floats = _floats(program, given)
    options: list[tuple[str, str]] = []
    for name in ("grid", "block"):
        size = given.pop(name, None)
        if size is not None:
            options.append((name, _size(name, size)))
    shared = given.pop("shared", None)
    if shared is not None:
        options.append(("shared", str(shared)))
    for place, value in mapping("inputs", given.pop("inputs", None), '{"R0": array}').items():
        options.append(("input", f"{place}={_value(f'inputs {place}', value, arrays)}"))
    for place, value in mapping("constants", given.pop("constants", None), "{0: array}").items():
        options.append(("const", f"{place}={_value(f'constants {place}', value, arrays)}"))
    params = mapping("params", given.pop("params", None), _example(program))
    for place, value in params.items():
        option, shown = _param(str(place), value, arrays)
        options.append((option, f"{place}={shown}"))
    for place, value in mapping("buffers", given.pop("buffers", None), "{0: array}").items():
        options.append(("buf", f"{place}={_value(f'buffers {place}', value, arrays, memory=True)}"))
    for unit, value in mapping("textures", given.pop("textures", None), "{0: array}").items():
        options.append(("texture", f"{unit}={_texture(unit, value, arrays)}"))
    known = {name: _field(name, value, arrays) for name, value in given.items() if value is not None}
    if known.get("isa", program.isa) != program.isa:
        raise Error(f"isa: {known['isa']}, but the program is for {program.isa}")
    arrays.check(program)
    stated = _json(dict(known, isa=program.isa))
    title = program.name or program.title
    plain = frozenset(f"param {name}" for name, value in params.items() if isinstance(value, (bool, int, float)))
    return Launch(program, _native.launch(program._native, title, stated, options, arrays.native), plain, floats)


def _example(program: Program) -> str:
    """An example of the argument ``params``, with the names of the program's parameters."""
    names = [each["name"] for each in program.contents["parameters"] if each["name"]] or ["a"]
    return "{" + ", ".join(f'"{name}": array' for name in names[:3]) + "}"


def launch(path: Source, *, outside: bool = False, **fields: Unpack[LaunchFields]) -> Launch:
    """The launch that a launch file (TOML or JSON) describes.

    Files that the launch file names must be in the launch file's folder, unless ``outside`` is true. Any other keyword replaces
    a field of the launch file. The value of such a keyword can be an array.
    """
    arrays = Arrays()
    file = existing(path)
    _known(fields, LaunchFields.__annotations__)
    changes = _json({name: _field(name, value, arrays) for name, value in fields.items()})
    native, prepared = _native.launch_file(os.fspath(file), outside, changes, arrays.native)
    program = Program(native, str(path))
    arrays.check(program)
    return Launch(program, prepared, floats=_floats(program, fields))


def kernel(name: str, isa: Isa, lanes: int | None = None) -> Launch:
    """A kernel of ``reconverge bench --list``.

    ``lanes`` is the number of lanes of ``mandel`` and ``collatz`` (default: 1024). Each other kernel has a fixed number of
    lanes, which ``reconverge bench --list`` prints.

    >>> import reconverge
    >>> reconverge.kernel("collatz", "tesla", lanes=256).run()["out"][:8].tolist()
    [0, 1, 7, 2, 5, 8, 16, 3]
    """
    wanted = None if lanes is None else whole("lanes", lanes, 1, (1 << 32) - 1)
    native, prepared = _native.kernel(text("name", name, ""), text("isa", isa, ""), wanted)
    return Launch(Program(native, f"{name} ({isa})"), prepared)
