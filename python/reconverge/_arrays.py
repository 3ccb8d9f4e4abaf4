"""Converts numpy arrays to inputs of the native module."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ._checks import warn
from .errors import ArrayCopied, Error

if TYPE_CHECKING:
    from .program import Program

#: An array for the native module. The items are the name, the type, whether the user chose the type, the shape, and the
#: bytes.
Native = tuple[str, str, bool, list[int], npt.NDArray[np.uint8]]

#: Matches a 64-bit type in the text of an instruction.
_WIDE = re.compile(r"\b[bsuf]64\b|_64\b")
_KINDS = {"u": "u", "i": "i", "f": "f"}


def _kind(dtype: np.dtype[np.generic]) -> str | None:
    """The name of a numpy type in launch files: ``u8`` for ``uint8``, ``f32`` for ``float32``."""
    name = f"{_KINDS.get(dtype.kind, '?')}{dtype.itemsize * 8}"
    known = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64")
    return name if name in known else None


class Arrays:
    """The arrays that a launch names. Each array has a different name."""

    def __init__(self) -> None:
        self.native: list[Native] = []
        #: Arrays of 64-bit numbers that become bytes of memory. Each entry has the field of the launch that contains the array,
        #: such as ``params in0``, and the type of the array.
        self._wide: list[tuple[str, np.dtype[np.generic]]] = []

    def check(self, program: Program) -> None:
        """Raises an error if memory has 64-bit numbers but no instruction of the program accesses 64-bit numbers.

        The program would read each half of a 64-bit number as a separate number.
        """
        for place, dtype in self._wide:
            if any(_WIDE.search(each.text) for each in program):
                return
            narrow = {"f": "np.float32", "i": "np.int32", "u": "np.uint32"}[dtype.kind]
            raise Error(
                f"{place}: an array of {dtype}, but no instruction of the program uses 64-bit numbers: "
                f"give array.astype({narrow}), or array.view(np.uint32) for the bits"
            )

    def name(self, place: str, value: object, *, memory: bool = False) -> str:
        """Adds an array or nested lists, and returns its name in the launch.

        If ``memory`` is true, the bytes of the array become memory. Otherwise, the launch converts the numbers of the array.
        """
        array = np.asarray(value)
        chosen = isinstance(value, (np.ndarray, np.generic)) or not isinstance(value, (list, tuple))
        reasons = []
        if array.dtype == np.bool_:
            array = array.view(np.uint8)
        elif array.dtype == np.float16:
            array, reasons = array.astype(np.float32), ["float16 becomes float32"]
        kind = _kind(array.dtype)
        if kind is None:
            raise Error(
                f"{place}: an array of {array.dtype} has no numbers that a launch can start from: "
                "give bool, int8 to int64, uint8 to uint64, float16, float32 or float64, "
                "for instance array.astype(np.float32)"
            )
        if chosen and memory and array.dtype.itemsize == 8:
            self._wide.append((place, array.dtype))
        if not array.dtype.isnative:
            array, reasons = array.astype(array.dtype.newbyteorder("=")), ["its byte order is not that of this machine"]
        if not array.flags.c_contiguous:
            array, reasons = np.ascontiguousarray(array), [*reasons, "it is not contiguous"]
        if reasons and chosen:
            message = f"{place}: the array is copied: {', '.join(reasons)}; copy it once yourself to avoid this"
            warn(message, ArrayCopied)
        name = f"@{len(self.native)}"
        flat = array.reshape(-1).view(np.uint8)
        self.native.append((name, kind, chosen, list(array.shape), flat))
        return name
