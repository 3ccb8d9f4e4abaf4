"""The keywords of :meth:`reconverge.Program.launch`, and the fields of launch files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt

#: A number of Python or of numpy.
Number = int | float | np.number | np.bool_
#: Numbers: an array, a number, nested lists, or a string in the form of launch files. An array keeps its type.
Values = str | Number | npt.NDArray[np.generic] | Sequence["Values"]
#: Numbers, or a tuple of numbers and the format or stride of a buffer: ``(array, "FLOAT32_1:8x8")``, ``(array, 16)``.
Formatted = Values | tuple[Values, str | int] | tuple[Values, str | int, str | int]


class TypedList(TypedDict):
    """Nested lists of numbers with their type."""

    type: str
    list: Sequence[Values]


#: Numbers in a launch file.
Stated = Values | TypedList


class ParamField(TypedDict, total=False):
    """A parameter of a Tesla kernel."""

    name: str
    buffer: Stated
    address: int
    segment: int
    value: Stated
    offset: int


class BufferField(TypedDict, total=False):
    """A buffer."""

    name: str
    number: int
    address: int
    segment: int
    values: Stated
    stride: int
    format: str
    tiling: str
    pitch: int
    height: int


class SegmentField(TypedDict, total=False):
    """A segment of Tesla's global memory."""

    number: int
    base: int
    limit: int
    pitch: int
    tile_rows: int
    lenient: bool


class ConstantField(TypedDict, total=False):
    """Constants. On Tesla, a bank and an offset state where the constants are. On R500 and R700, a number states where the
    constants are.
    """

    bank: int
    number: int
    offset: int
    values: Stated


class InputField(TypedDict, total=False):
    """Inputs. An input sets a word on Tesla, a temporary on R500, and a register on R700."""

    word: int
    temp: int
    gpr: int
    values: Stated
    plane: Sequence[float]
    flat: float


class AttributeField(TypedDict, total=False):
    """An input register of an R500 vertex program."""

    number: int
    values: Stated


class LoopField(TypedDict, total=False):
    """A loop constant of R700."""

    number: int
    count: int
    init: int
    inc: int


class FetchProgramField(TypedDict, total=False):
    """The fetch program of an R700 vertex program."""

    words: Stated
    start: int


class TextureField(TypedDict, total=False):
    """A texture."""

    unit: int
    sampler: int
    size: Sequence[int]
    cube: bool
    layers: bool
    levels: int
    texels: Stated
    filter: str
    wrap: str
    integer: bool
    fractions: bool
    select: str


class SamplerField(TypedDict, total=False):
    """A sampler that is separate from textures."""

    number: int
    wrap: Sequence[str]
    mag: str
    min: str
    mip: str
    border: Stated
    min_lod: float
    max_lod: float
    lod_bias: float
    compare: str
    unnormalised: bool
    seamless: bool
    anisotropy: int


class ExpectField(TypedDict, total=False):
    """The expected contents of an output, or a condition on a count (``holds``)."""

    holds: str
    output: str
    values: Stated
    abs: float
    rel: float


class ConditionalField(TypedDict, total=False):
    """The conditional output of CTM."""

    test: str
    location: str
    value: float
    write: bool
    buffer: BufferField


class CtmField(TypedDict, total=False):
    """A run over a domain, in the CTM model of R500."""

    domain: Sequence[int]
    origin: Sequence[int]
    uncached: bool
    input: list[BufferField]
    output: list[BufferField]
    conditional: ConditionalField


class _Common(TypedDict, total=False):
    """Fields of launch files that are also keywords of :meth:`reconverge.Program.launch`."""

    isa: str
    program: str
    kernel: str
    lanes: int
    mode: str
    watchdog: int
    shared: int
    race_check: bool
    chip: str
    stage: str
    texture: list[TextureField]
    expect: list[ExpectField]
    trap: str
    pixels: Stated
    vertices: Stated
    # Tesla
    registers: int
    local_bytes: int
    shared_bytes: int
    barriers: int
    grid_id: int
    driver_fixes: str
    oversized: bool
    pointer_bytes: int
    param: list[ParamField]
    buffer: list[BufferField]
    segment: list[SegmentField]
    constant: list[ConstantField]
    input: list[InputField]
    helpers: bool
    colors: int
    results: int
    covered: Stated
    mul_zero_wins: bool
    sampler: list[SamplerField]
    # R500
    group_width: int
    loop_stack: int
    address_stack: int
    branch_counter: int
    inhibit_scope: str
    attribute: list[AttributeField]
    ctm: CtmField
    # R700
    start: int
    gprs: int
    stack: int
    clause_temps: int
    dx10_clamp: bool
    prefer_vector: bool
    constants_are_buffers: bool
    booleans: int
    fetch_program: FetchProgramField
    base_vertex: int
    base_instance: int
    semantics: Sequence[int]
    scatter: Stated
    output_type: str
    constant_file: list[ConstantField]
    loop: list[LoopField]


class LaunchKeywords(_Common, total=False):
    """The keywords of :meth:`reconverge.Program.launch`, ``run``, ``session``, ``trace``, ``report``
    and ``stats``.

    The keys of ``inputs``, ``constants``, ``buffers`` and ``textures`` are the names in the options of the command line.
    ``params`` has the parameters of a Tesla kernel by name. An array in ``params`` becomes a buffer, and a number becomes a
    value. All other keywords are fields of launch files.
    """

    grid: int | Sequence[int]
    block: int | Sequence[int]
    inputs: Mapping[str, Values]
    constants: Mapping[str, Values] | Mapping[int, Values]
    params: Mapping[str, Values]
    buffers: Mapping[str, Formatted] | Mapping[int, Formatted]
    textures: Mapping[int, Values]


class LaunchFields(_Common, total=False):
    """The fields of a launch file. The machine determines which fields a launch can have: see docs/launch-files.md."""

    grid: int | Sequence[int]
    block: int | Sequence[int]
