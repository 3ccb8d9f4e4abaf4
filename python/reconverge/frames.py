"""Columns as frames of pandas or polars, whichever is there."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import Error


def _library(name: str | None) -> Any:
    """The module of a name; without one pandas if it is there, else polars."""
    names = (name,) if name else ("pandas", "polars")
    for each in names:
        if each not in ("pandas", "polars"):
            raise Error(f"library: `{each}` has no frames that fit: say pandas or polars")
        try:
            return importlib.import_module(each)
        except ImportError:
            continue
    raise Error(f"{' and '.join(names)} cannot be imported: pip install {names[0]}")


#: Names for events: the registers (name, number of the first, how many, channels), and by address the memory that an
#: instruction loads from, a name for all loads or one for each of a lane's, and stores to.
Naming = tuple[list[tuple[str, int, int, str]], dict[int, tuple[list[str], str | None]]]


def register_names(kinds: npt.NDArray[Any], numbers: npt.NDArray[Any], registers: Any) -> npt.NDArray[Any]:
    """Returns the register of each write, or ``None`` for other events."""

    def name(number: int) -> str:
        for name, first, count, channels in registers:
            register, channel = divmod(number - first, max(len(channels), 1))
            if 0 <= register < count:
                return f"{name}{register}.{channels[channel]}" if channels else f"{name}{register}"
        return f"register {number}"

    names: npt.NDArray[Any] = np.full(len(kinds), None, object)
    writes = kinds == "write"
    for number in np.unique(numbers[writes]).tolist():
        names[writes & (numbers == number)] = name(number)
    return names


def space_names(kinds: npt.NDArray[Any], columns: Mapping[str, Any], spaces: Any) -> npt.NDArray[Any]:
    """Returns the memory of each load and store, or ``None`` for other events and for memory without a name."""
    names: npt.NDArray[Any] = np.full(len(kinds), None, object)
    pcs = columns["pc"]
    loads, stores = kinds == "load", kinds == "store"
    for pc in np.unique(pcs[loads | stores]).tolist():
        loaded, stored = spaces.get(pc, ([], None))
        names[stores & (pcs == pc)] = stored
        here = loads & (pcs == pc)
        if len(loaded) == 1:
            names[here] = loaded[0]
        elif loaded:
            seen: dict[tuple[int, int], int] = {}
            for row in np.flatnonzero(here).tolist():
                access = (int(columns["step"][row]), int(columns["lane"][row]))
                seen[access] = number = seen.get(access, -1) + 1
                names[row] = loaded[number] if number < len(loaded) else None
    return names


def frame(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """A ``DataFrame`` of these columns, of pandas (if it is there and nothing else is asked for) or polars."""
    return _library(library).DataFrame(dict(columns))


def parquet(files: Sequence[bytes], library: str | None = None) -> Any:
    """The contents of Parquet files, in order, as a ``DataFrame``."""
    module = _library(library)
    frames = [module.read_parquet(BytesIO(file)) for file in files]
    if not frames:
        return module.DataFrame()
    return module.concat(frames, ignore_index=True) if module.__name__ == "pandas" else module.concat(frames)
