"""Checks of values from users, and warnings that refer to the user's code."""

from __future__ import annotations

import difflib
import operator
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .errors import Error, OutOfRange, WrongType, missing

_PACKAGE = str(Path(__file__).parent) + os.sep


def article(value: object) -> str:
    """The type of a value, with an article: ``a float``, ``an ndarray``."""
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiou' or name == 'ndarray' else 'a'} {name}"


def whole(place: str, value: object, least: int = 0, most: int = (1 << 64) - 1) -> int:
    """Returns the value as an integer, after checking that it is a whole number from ``least`` to ``most``."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        hint = f" (for instance {int(value)})" if isinstance(value, float) and value.is_integer() else ""
        raise WrongType(f"{place}: expected a whole number{hint}, found {article(value)} ({value!r})")
    number = operator.index(value)
    if not least <= number <= most:
        fits = f"expected {least} or more" if most >= 1 << 63 else f"expected {least} to {most}"
        raise OutOfRange(f"{place}: {number}: {fits}")
    return number


def mapping(place: str, value: object, example: str) -> Mapping[object, object]:
    """Returns the value, after checking that it is a dict. ``None`` is treated as an empty dict."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise WrongType(f"{place}: expected a dict such as {place}={example}, found {article(value)}")
    return value


def text(place: str, value: object, remedy: str) -> str:
    """Returns the value, after checking that it is a str."""
    if not isinstance(value, str):
        raise WrongType(f"{place}: expected a str{remedy}, found {article(value)}")
    return value


def existing(path: str | os.PathLike[str]) -> Path:
    """Returns the value as a path, after checking that the file exists."""
    if not isinstance(path, (str, os.PathLike)):
        raise WrongType(f"path: expected a str or a path, found {article(path)}")
    found = Path(path)
    if not found.exists():
        missing(str(path))
    if found.is_dir():
        raise Error(f"{found}: it is a folder; expected a file")
    return found


def meant(word: str, known: Iterable[str]) -> str:
    """A hint that suggests the known name that is most similar to the user's name. The hint is empty if no known name is
    similar."""
    close = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean `{close[0]}`?" if close else ""


def warn(message: str, category: type[Warning]) -> None:
    """Issues a warning that refers to the line of the user's code that called the package."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_LIMITS: dict[str, tuple[int, int]] = {"u": (0, (1 << 32) - 1), "i": (-(1 << 31), (1 << 31) - 1)}


def _range(kind: str) -> str:
    low, high = _LIMITS[kind]
    return f"expected {low} to {high}"


def words(place: str, value: object, kind: str) -> npt.NDArray[np.uint32]:
    """Returns numbers as 32-bit words. ``kind`` is ``u``, ``i`` or ``f``: unsigned, signed, binary32.

    Integers must be in the range of the type. Floats are allowed only if ``kind`` is ``f``, and must not overflow.
    """
    array = np.asarray(value)
    other = "regs.f32 writes numbers of binary32, regs.i32 signed integers"
    if array.dtype.kind == "O" and all(isinstance(each, int) for each in array.reshape(-1).tolist()):
        raise OutOfRange(f"{place}: {_largest(array)}: {_range(kind if kind != 'f' else 'u')}")
    if array.dtype.kind not in "uif" or array.dtype.kind == "f" and kind != "f":
        type_name = article(value) if array.ndim == 0 else f"an array of {array.dtype}"
        raise WrongType(f"{place}: expected {_NAMES[kind]}, found {type_name}; {other}")
    if kind == "f":
        with np.errstate(over="ignore"):
            single = array.astype(np.float32)
        if np.any(np.isinf(single) & ~np.isinf(array.astype(np.float64))):
            raise OutOfRange(f"{place}: {_largest(array)}: expected -3.4028235e38 to 3.4028235e38")
        return single.view(np.uint32)
    low, high = _LIMITS[kind]
    wrong = (array < low) | (array > high)
    if np.any(wrong):
        raise OutOfRange(f"{place}: {array[wrong].reshape(-1)[0]}: {_range(kind)}{_signed(array, kind)}")
    return array.astype(np.uint32 if kind == "u" else np.int32).view(np.uint32)


_NAMES = {"u": "an integer from 0 to 4294967295", "i": "an integer from -2147483648 to 2147483647", "f": "a number"}


def _largest(array: npt.NDArray[np.generic]) -> object:
    return max(array.reshape(-1).tolist(), key=abs)


def _signed(array: npt.NDArray[np.generic], kind: str) -> str:
    return "; regs.i32 writes signed integers" if kind == "u" and np.any(array < 0) else ""  # type: ignore[operator]
