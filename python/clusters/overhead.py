"""What a shard costs beside its own work, on processes, Dask and Ray with two workers each: docs/cluster.md has the figures."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from test_clusters import FILE, dask, processes, ray

from reconverge.campaign import Campaign, Task, over, run_task


def nothing(task: Task) -> str:
    """A shard without any work."""
    return f"{task.shard}"


def measured(engine: Any, tasks: list[Task]) -> float:
    """Seconds a shard that does nothing, with the workers started before."""
    mapped = over(engine)
    list(mapped(nothing, tasks[:8]))
    start = time.perf_counter()
    assert len(list(mapped(nothing, tasks))) == len(tasks)
    return (time.perf_counter() - start) / len(tasks)


def main() -> None:
    warnings.simplefilter("ignore")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    campaign = Campaign(FILE)
    described = campaign.description
    known = (str(FILE), described["campaign"], described["version"])
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        for shard in range(len(campaign.shards)):
            run_task(Task(*known, shard, folder))
        one = time.perf_counter() - start
        sizes = [path.stat().st_size for path in Path(folder).iterdir()]
    found = {"shards": len(campaign.shards), "injections": described["injections"], "one process, s": round(one, 3)}
    found["bytes of a shard"] = sum(sizes) // len(sizes)
    tasks = [Task(*known, shard, "nowhere") for shard in range(count)]
    for engine in (processes, dask, ray):
        with engine() as (workers, _), tempfile.TemporaryDirectory() as folder:
            overhead = measured(workers, tasks)
            # Each worker opens the campaign once; what it costs is not the shard's.
            campaign.run(folder, workers)
            with tempfile.TemporaryDirectory() as again:
                start = time.perf_counter()
                campaign.run(again, workers)
                whole = time.perf_counter() - start
            found[engine.__name__] = {"µs a shard": round(overhead * 1e6), "two workers, s": round(whole, 3)}
            print(engine.__name__, json.dumps(found[engine.__name__], ensure_ascii=False), flush=True)
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
