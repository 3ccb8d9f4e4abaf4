"""Runs the examples in docs/python.md and in the package."""

from __future__ import annotations

import doctest
import importlib
import os
from pathlib import Path

import pytest
from conftest import ROOT

import reconverge

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", ["instruction", "program", "launch", "session", "stats", "trace"])
def test_examples_of_the_package_run(name: str) -> None:
    module = importlib.import_module(f"reconverge.{name}")
    failed, tried = doctest.testmod(module, optionflags=FLAGS)
    assert failed == 0 and tried > 0


def test_examples_of_the_page_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failed, tried = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, optionflags=FLAGS)
    assert failed == 0 and tried > 20


def test_the_package_has_its_types() -> None:
    folder = Path(os.fspath(reconverge.__file__)).parent
    assert (folder / "py.typed").exists() and (folder / "_native.pyi").exists()
    stub = (folder / "_native.pyi").read_text()
    native = importlib.import_module("reconverge._native")
    for name in dir(native):
        if not name.startswith("__") and name != "_native":
            assert f" {name}" in stub, name
            for method in dir(getattr(native, name)):
                assert method.startswith("__") or f"def {method}(" in stub, f"{name}.{method}"
