"""Converts columns to a ``DataFrame`` of pandas or polars."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from types import ModuleType
from typing import TYPE_CHECKING, Literal, overload

from .errors import Error

if TYPE_CHECKING:
    import pandas
    import polars

#: The libraries that provide a ``DataFrame``.
Library = Literal["pandas", "polars"]


def _library(name: str | None) -> ModuleType:
    """Imports a library. The default is pandas if pandas is installed, and polars otherwise."""
    names = (name,) if name else ("pandas", "polars")
    for each in names:
        if each not in ("pandas", "polars"):
            raise Error(f"library: `{each}` is not supported: expected pandas or polars")
        try:
            return importlib.import_module(each)
        except ImportError:
            continue
    raise Error(f"{' and '.join(names)} cannot be imported: pip install {names[0]}")


@overload
def frame(columns: Mapping[str, object], library: Literal["pandas"] | None = None) -> pandas.DataFrame: ...
@overload
def frame(columns: Mapping[str, object], library: Literal["polars"]) -> polars.DataFrame: ...
@overload
def frame(columns: Mapping[str, object], library: Library | None) -> pandas.DataFrame | polars.DataFrame: ...
def frame(columns: Mapping[str, object], library: Library | None = None) -> pandas.DataFrame | polars.DataFrame:
    """A ``DataFrame`` with these columns. The default library is pandas if pandas is installed, and polars otherwise."""
    made: pandas.DataFrame | polars.DataFrame = _library(library).DataFrame(dict(columns))
    return made


def parquet(files: Sequence[bytes], library: Library | None = None) -> pandas.DataFrame | polars.DataFrame:
    """The contents of Parquet files, in order, as a ``DataFrame``."""
    module = _library(library)
    frames = [module.read_parquet(BytesIO(file)) for file in files]
    if not frames:
        none: pandas.DataFrame | polars.DataFrame = module.DataFrame()
        return none
    joined: pandas.DataFrame | polars.DataFrame = (
        module.concat(frames, ignore_index=True) if module.__name__ == "pandas" else module.concat(frames)
    )
    return joined
