"""Fault-injection campaigns, on one process, several, or a cluster.

A campaign is a file; its shards are Parquet files in a folder, each written whole or not at all and named by what is in
it. Whoever runs a shard, the bytes are the same, so that running goes on where the folder ends: nothing is lost with a
worker, and nothing counts twice. See docs/cluster.md.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _native
from .errors import Error, ShardDamaged
from .frames import parquet

#: Runs a function on each item, in any order and place, and gives what comes back; items may be missing.
Map = Callable[[Callable[["Task"], "str | None"], "list[Task]"], Iterable["str | None"]]

#: Seconds between two looks at shards that other processes run.
_WAIT = 0.5


@dataclass(frozen=True)
class Task:
    """A shard to run: all that a worker needs, given a file system that it shares."""

    campaign: str
    hash: str
    version: str
    shard: int
    folder: str


@functools.lru_cache(maxsize=4)
def _opened(path: str, changed: int) -> _native.Campaign:
    return _native.Campaign(path)


def run_task(task: Task) -> str | None:
    """Runs a shard in this process, and gives the path of its file; ``None`` if another process runs the shard."""
    campaign = _opened(task.campaign, os.stat(task.campaign).st_mtime_ns)
    version, found = campaign.names()
    if version != task.version:
        raise Error(
            f"shard {task.shard}: this worker has reconverge {version}, the campaign was begun with {task.version}: "
            "install that version on every worker"
        )
    if found != task.hash:
        raise Error(f"{task.campaign}: this worker reads campaign {found}, not {task.hash}: give all workers one file")
    return campaign.take_shard(task.shard, task.folder)


# ---- map: the same tasks on what is there. Nothing of ours schedules.


def over(engine: Any = 1) -> Map:
    """A map over so many processes of this machine, a Dask ``Client``, or the module ``ray`` after ``ray.init()``."""

    def processes(function: Callable[[Task], str | None], tasks: list[Task]) -> Iterator[str | None]:
        # Spawned: a fork would have this process's threads by name only.
        with ProcessPoolExecutor(engine, multiprocessing.get_context("spawn")) as pool:
            futures = [pool.submit(function, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    yield future.result()
            except BrokenProcessPool:
                # A worker was killed, and the pool with it: the rest is missing.
                return

    def dask(function: Callable[[Task], str | None], tasks: list[Task]) -> Iterator[str | None]:
        from distributed import as_completed as completed

        futures = engine.map(function, tasks, pure=False, batch_size=64)
        for future in completed(futures):  # type: ignore[no-untyped-call, unused-ignore]
            yield future.result()

    def ray(function: Callable[[Task], str | None], tasks: list[Task]) -> Iterator[str | None]:
        remote = engine.remote(max_retries=3)(function)
        waiting = [remote.remote(task) for task in tasks]
        while waiting:
            (done,), waiting = engine.wait(waiting)
            yield engine.get(done)

    if isinstance(engine, int) and engine >= 1:
        return processes if engine > 1 else map
    if hasattr(engine, "scheduler_info"):
        return dask
    if hasattr(engine, "remote") and hasattr(engine, "wait"):
        return ray
    raise Error("over: a number of processes, a distributed.Client, or the module ray fits here")


# ---- Campaigns


class Campaign:
    """A campaign file, with the golden run and the profile of its launch."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()
        self._native = _opened(str(self.path), self.path.stat().st_mtime_ns)

    @property
    def description(self) -> dict[str, Any]:
        """Its hash, the version, how many experiments and shards, the golden run, the profile."""
        described: dict[str, Any] = json.loads(self._native.describe())
        return described

    @property
    def shards(self) -> list[str]:
        """The names of its shards, in order."""
        return self._native.shards()

    def missing(self, folder: str | os.PathLike[str]) -> list[int]:
        """The numbers of the shards that a folder does not have, or whose file is damaged."""
        return self._native.state(str(folder))[0]

    def run(self, folder: str | os.PathLike[str], engine: Any = 1, *, map: Map | None = None) -> list[str]:
        """Runs the shards that are missing in a folder, and gives the paths of their files.

        ``engine`` is a number of processes, a Dask client or the module ``ray``; or ``map`` is a function that runs tasks.
        Shards of workers that were killed are run again, as long as each round finishes one, and so are shards with a
        damaged file (:class:`~reconverge.errors.ShardDamaged`). Several programs may run one campaign in one folder at
        the same time, on several hosts too: they divide the shards.
        """
        folder = Path(folder).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        mapped = over(engine) if map is None else map
        described = self.description
        paths: list[str] = []
        missing, damaged = self._native.state(str(folder))
        for file in damaged:
            warnings.warn(f"{file}; the shard is run again", ShardDamaged, stacklevel=2)
        while missing:
            known = (str(self.path), described["campaign"], described["version"])
            tasks = [Task(*known, shard, str(folder)) for shard in missing]
            done = list(mapped(run_task, tasks))
            paths += [path for path in done if path is not None]
            left = self.missing(folder)
            if None in done:
                time.sleep(_WAIT)
            elif len(left) == len(missing):
                raise Error(f"{folder}: {len(left)} shards are missing, and a round finished none of them")
            missing = left
        return paths

    def summary(self, folder: str | os.PathLike[str]) -> dict[str, Any]:
        """Counts by site and outcome of the shards that a folder has."""
        summary: dict[str, Any] = json.loads(self._native.summary(str(folder)))
        return summary

    def recheck(self, folder: str | os.PathLike[str], count: int = 1000, seed: int = 1) -> dict[str, Any]:
        """Runs so many experiments of a folder again on the reference engine, and gives those that differ."""
        checked: dict[str, Any] = json.loads(self._native.recheck(str(folder), count, seed))
        return checked

    def frame(self, folder: str | os.PathLike[str], library: str | None = None) -> Any:
        """The experiments of a folder as a frame of pandas or polars, in the order of their numbers.

        Reading Parquet takes pyarrow with pandas.
        """
        present = [shard for shard, name in enumerate(self.shards) if (Path(folder) / name).exists()]
        return parquet([self._native.shard_bytes(shard, str(folder)) for shard in present], library)

    def __repr__(self) -> str:
        described = self.description
        return f"<Campaign {self.path.name}: {described['injections']} experiments in {described['shards']} shards>"
