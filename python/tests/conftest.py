"""Fixtures and helpers that the tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

import reconverge

ROOT = Path(__file__).resolve().parents[2]

#: For each machine, the output of the sample program with a nested if.
NESTED = {"r500": "color0", "r700": "pixel0", "tesla": "out"}


@pytest.fixture
def samples() -> Path:
    return ROOT / "docs" / "samples"


@pytest.fixture(params=list(NESTED))
def nested(request: pytest.FixtureRequest, samples: Path) -> reconverge.Launch:
    return reconverge.launch(samples / f"nested-if.{request.param}.toml")
