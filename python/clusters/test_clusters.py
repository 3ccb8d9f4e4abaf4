"""Tests of campaigns on worker processes, Dask and Ray, with two workers each. All three write the same shards as one
process, even if the test kills a worker during the run.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import reconverge
from reconverge.campaign import Campaign, Task, run_task

FILE = Path(__file__).parent / "campaign.toml"


def contents(folder: Path) -> dict[str, str]:
    """The shards in a folder, with hashes of their bytes. The result does not have incomplete files of killed workers."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.parquet"))}


@pytest.fixture(scope="session")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The shards that one process writes."""
    folder = tmp_path_factory.mktemp("one")
    campaign = Campaign(FILE)
    campaign.run(folder)
    assert set(contents(folder)) >= set(campaign.shards) and len(campaign.shards) >= 16
    return contents(folder)


@contextmanager
def processes() -> Iterator[tuple[Any, Callable[[], list[int]]]]:
    yield 2, lambda: [child.pid for child in multiprocessing.active_children() if child.pid]


@contextmanager
def dask() -> Iterator[tuple[Any, Callable[[], list[int]]]]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client, lambda: list(client.run(os.getpid).values())


@contextmanager
def ray() -> Iterator[tuple[Any, Callable[[], list[int]]]]:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", configure_logging=False)

    def workers() -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = path.read_bytes()
            except OSError:
                continue
            if command.startswith(b"ray::run_task"):
                found.append(int(path.parent.name))
        return found

    try:
        yield ray, workers
    finally:
        ray.shutdown()


ENGINES = [processes, dask, ray]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore")
def test_two_workers_give_the_bytes_of_one(engine: Any, wanted: dict[str, str], tmp_path: Path) -> None:
    with engine() as (workers, _):
        Campaign(FILE).run(tmp_path, workers)
    assert contents(tmp_path) == wanted


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_the_middle_loses_nothing_and_doubles_nothing(
    engine: Any, wanted: dict[str, str], tmp_path: Path
) -> None:
    campaign, killed = Campaign(FILE), []
    with engine() as (workers, pids):

        def kill() -> None:
            """Kills a worker when some shards exist and other shards are still missing."""
            while len(list(tmp_path.glob("*.parquet"))) < 3:
                time.sleep(0.002)
            victims = pids()
            before = len(list(tmp_path.glob("*.parquet")))
            os.kill(victims[0], signal.SIGKILL)
            killed.append((victims[0], before))

        thread = threading.Thread(target=kill)
        thread.start()
        campaign.run(tmp_path, workers)
        thread.join(30)
    assert killed and killed[0][1] < len(campaign.shards), killed
    print(f"{engine.__name__}: killed worker {killed[0][0]} with {killed[0][1]} of {len(campaign.shards)} shards there")
    assert contents(tmp_path) == wanted
    experiments = campaign.frame(tmp_path, "pandas")
    assert len(experiments) == campaign.description["injections"]


def test_what_is_there_is_not_run_again(wanted: dict[str, str], tmp_path: Path) -> None:
    campaign = Campaign(FILE)
    campaign.run(tmp_path)
    (tmp_path / campaign.shards[5]).unlink()
    times = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert campaign.missing(tmp_path) == [5]
    assert len(campaign.run(tmp_path)) == 1
    assert contents(tmp_path) == wanted
    assert all((tmp_path / name).stat().st_mtime_ns == changed for name, changed in times.items())


def test_a_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    described = Campaign(FILE).description
    task = Task(str(FILE), described["campaign"], "0.0.1", 0, str(tmp_path))
    with pytest.raises(reconverge.Error, match=r"has reconverge .*, the campaign was begun with 0.0.1: install"):
        run_task(task)
    other = Task(str(FILE), "0" * 32, described["version"], 0, str(tmp_path))
    with pytest.raises(reconverge.Error, match="this worker reads campaign"):
        run_task(other)
    assert list(tmp_path.iterdir()) == []
