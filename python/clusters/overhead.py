"""Measures the overhead of a shard on processes, on Dask and on Ray. Processes, Dask and Ray have two workers each.
docs/cluster.md has the figures.

Prints the wall time, and the CPU time of the busiest process that is not a worker. Other work on the machine affects
the wall time, but not the CPU time.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from test_clusters import FILE, dask, processes, ray

from reconverge.campaign import Campaign, Task, over, run_task


def nothing(task: Task) -> str:
    """Does not run an experiment, so that the measurement has only the overhead of a shard."""
    return f"{task.shard}"


def used() -> dict[int, float]:
    """The CPU seconds that processes have used so far, by process number. The processes are this process, and its descendants
    except for workers."""
    parents, seconds, workers = {}, {}, set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command, stat = (path / "cmdline").read_bytes(), (path / "stat").read_text()
        except OSError:
            continue
        pid, fields = int(path.name), stat.rpartition(")")[2].split()
        parents[pid] = int(fields[1])
        seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        # Workers of a pool and of Dask are processes that Python spawned. A worker of Ray is named after its task.
        if b"spawn_main" in command or command.startswith(b"ray::"):
            workers.add(pid)

    def ours(pid: int) -> bool:
        while pid not in (0, 1, os.getpid()):
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    return {pid: each for pid, each in seconds.items() if pid not in workers and ours(pid)}


def measured(engine: Any, tasks: list[Task]) -> tuple[float, float]:
    """The wall time and the CPU time per shard in seconds, if shards have no work. The times are medians of five runs. The
    workers are already running when the measurement starts."""
    mapped = over(engine)
    list(mapped(nothing, tasks[:8]))
    rounds = []
    for _ in range(5):
        before, start = used(), time.perf_counter()
        assert len(list(mapped(nothing, tasks))) == len(tasks)
        wall, after = time.perf_counter() - start, used()
        busiest = max(after[pid] - before.get(pid, 0) for pid in after)
        rounds.append((wall / len(tasks), busiest / len(tasks)))
    walls, busy = zip(*rounds, strict=True)
    return statistics.median(walls), statistics.median(busy)


def main() -> None:
    warnings.simplefilter("ignore")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    campaign = Campaign(FILE)
    described = campaign.description
    known = (str(FILE), described["campaign"], described["version"])
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        for shard in range(len(campaign.shards)):
            run_task(Task(*known, shard, folder))
        one = time.perf_counter() - start
        sizes = [path.stat().st_size for path in Path(folder).iterdir()]
    found: dict[str, object] = {"shards": len(campaign.shards), "injections": described["injections"], "one process, s": round(one, 3)}
    found["bytes of a shard"] = sum(sizes) // len(sizes)
    tasks = [Task(*known, shard, "nowhere") for shard in range(count)]
    for engine in (processes, dask, ray):
        with engine() as (workers, _), tempfile.TemporaryDirectory() as folder:
            wall, busy = measured(workers, tasks)
            # Each worker opens the campaign once. The time for opening the campaign is not part of the cost of a shard.
            campaign.run(folder, workers)
            with tempfile.TemporaryDirectory() as again:
                start = time.perf_counter()
                campaign.run(again, workers)
                whole = time.perf_counter() - start
            found[engine.__name__] = {"µs a shard": round(wall * 1e6), "CPU µs a shard": round(busy * 1e6), "two workers, s": round(whole, 3)}
            print(engine.__name__, json.dumps(found[engine.__name__], ensure_ascii=False), flush=True)
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
