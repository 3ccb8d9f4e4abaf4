"""Launches run in processes that multiprocessing starts, with each of its start methods."""

from __future__ import annotations

import multiprocessing
import os

import pytest

import reconverge

METHODS = [method for method in ("fork", "forkserver", "spawn") if method in multiprocessing.get_all_start_methods()]


def total(lanes: int) -> int:
    return int(reconverge.kernel("collatz", "tesla", lanes=lanes).run()["out"].sum())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_launches_run_in_processes_after_one_has_run_here(method: str) -> None:
    lanes = [1 << 10, 1 << 11, 1 << 12]
    expected = [total(count) for count in lanes]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(total, lanes).get(timeout=120) == expected
    assert [total(count) for count in lanes] == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_a_child_runs_launches() -> None:
    expected = total(1 << 10)
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        assert pool.apply_async(child_of_child, (1 << 10,)).get(timeout=120) == expected


def child_of_child(lanes: int) -> int:
    assert total(lanes) > 0
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(sender, str(total(lanes)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(receiver, 100))
