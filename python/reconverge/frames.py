"""Columns as frames of pandas or polars, whichever is there."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

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
