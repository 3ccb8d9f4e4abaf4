"""Fault-injection campaigns on one process, on several processes, or on a cluster.

A campaign is a file. The results of a campaign are shards: Parquet files in a folder. Each shard is written atomically,
and its name contains a hash of the campaign. Every process writes the same bytes for a shard. A run of the campaign runs
only the shards that are missing in the folder. If a worker is killed, finished shards are not lost. The results have
each experiment only once. See docs/cluster.md.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, overload

from . import _native
from ._checks import article, existing, warn, whole
from .errors import Error, ShardDamaged, WrongType, missing
from .frames import Library, parquet

if TYPE_CHECKING:
    import pandas
    import polars

    from .launch import Output

#: Runs a function on each item, in any order and on any process. Returns the results. The results of some items may be missing.
Map = Callable[[Callable[["Task"], "str | None"], "list[Task]"], Iterable["str | None"]]

#: Seconds between two checks whether other processes have finished their shards.
_WAIT = 0.5

#: Outcomes of experiments. ``sdc``: the outputs differ from the outputs of the run without the fault. ``diverged``: the
#: issued instructions or active lanes differ from the run without the fault, but the outputs are equal.
Outcome = Literal["masked", "diverged", "sdc", "trap", "hang"]

#: An experiment: a row of the results. ``class`` is the name that the outcome function returned for the experiment.
Experiment = TypedDict(
    "Experiment",
    {
        "index": int,
        "point": int,
        "site": str,
        "model": str,
        "step": int,
        "group": int,
        "pc": int,
        "lane": int | None,
        "place": str,
        "before": int,
        "after": int,
        "outcome": Outcome,
        "trap": str | None,
        "flow_step": int | None,
        "error": float | None,
        "hits": int,
        "class": str | None,
    },
)


class OutcomeRate(TypedDict):
    """The number of experiments with one outcome. The rate is their share of all experiments of a point, site and
    model."""

    outcome: Outcome
    count: int
    #: The share, and the Wilson interval of the share.
    rate: float
    interval: tuple[float, float]


#: The number of experiments for which the outcome function returned one name. The rate is their share of all
#: experiments of a point, site and model.
ClassRate = TypedDict(
    "ClassRate", {"class": str, "count": int, "rate": float, "interval": tuple[float, float]}
)


class SiteCounts(TypedDict):
    """The experiments of a point and site."""

    point: int
    site: str
    injections: int
    outcomes: list[OutcomeRate]
    #: Counts by the names that the outcome function returned. The list is empty if the campaign does not have an outcome
    #: function.
    classes: list[ClassRate]
    #: Number of traps by name.
    traps: dict[str, int]
    largest_error: float | None


class ModelCounts(SiteCounts):
    """The experiments of a point, site and fault model."""

    model: str


class Summary(TypedDict):
    """Counts by site and outcome."""

    #: The hash of program, data and campaign.
    campaign: str
    injections: int
    #: Number of experiments whose shard is in the folder.
    finished: int
    shards: int
    #: Number of shards that are not in the folder.
    missing: int
    #: The confidence level of the intervals.
    confidence: float
    sites: list[SiteCounts]
    #: Counts by point, site and model, if the campaign has several models.
    models: list[ModelCounts]


class Disagreement(TypedDict):
    """An experiment whose result on the reference engine differs from the stored result."""

    index: int
    stored: str
    reference: str


class Recheck(TypedDict):
    """The result of :meth:`Campaign.recheck`."""

    checked: int
    differ: list[Disagreement]


class SiteProfile(TypedDict):
    """A site, and the number of steps at which this site exists."""

    site: str
    instants: int


class PointDescription(TypedDict):
    """One launch of a campaign, and the results of its run without a fault."""

    parameters: dict[str, str]
    isa: str
    chip: str | None
    mode: str
    groups: int
    instructions: int
    lane_instructions: int
    divergent_branches: int
    fuel: int
    outputs: str
    sites: list[SiteProfile]


class Description(TypedDict):
    """A campaign: its hash, its size, and its golden runs."""

    campaign: str
    version: str
    seed: int
    injections: int
    injections_of_point: int
    size_of_site: int | None
    confidence: float
    margin: float | None
    sites: list[str]
    models: list[str]
    shard_size: int
    shards: int
    points: list[PointDescription]


@dataclass(frozen=True)
class Progress:
    """The progress of a campaign."""

    #: Number of experiments that belong to finished shards.
    done: int
    #: Number of experiments in the campaign.
    total: int
    #: Number of finished experiments for each outcome. With an outcome function, for each name that this function
    #: returned.
    outcomes: Mapping[str, int]

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{self.done} of {self.total} experiments{f': {counts}' if counts else ''}"


@dataclass(frozen=True)
class Ended:
    """An experiment that has ended: the argument of an outcome function."""

    #: The fault and the outcome, as in the results.
    experiment: Experiment
    #: The outputs of the run, by name. ``None`` if the run ended with a trap or a hang.
    outputs: dict[str, Output] | None
    #: The outputs of the run without the fault.
    golden: dict[str, Output]

    @property
    def outcome(self) -> Outcome:
        """The outcome."""
        return self.experiment["outcome"]

    @property
    def trap(self) -> str | None:
        """The name of the trap, if the program trapped."""
        return self.experiment["trap"]


#: A function that returns the name of an experiment's outcome.
Classify = Callable[[Ended], str]


class ClientLike(Protocol):
    """The methods of a Dask client that :func:`over` calls."""

    def scheduler_info(self) -> Mapping[str, object]: ...


#: A number of processes, a Dask client, or the module ``ray``.
EngineOfTasks = int | ClientLike | ModuleType


@dataclass(frozen=True)
class Task:
    """A shard that must run, with all data that a worker needs. The worker also needs access to the file system of this
    process."""

    campaign: str
    hash: str
    version: str
    shard: int
    folder: str
    #: The outcome function, and the name of this function in the hash of the campaign.
    classify: Classify | None = None
    named: str | None = None


@functools.lru_cache(maxsize=4)
def _opened(path: str, changed: int, classify: Classify | None, named: str | None) -> _native.Campaign:
    if classify is None:
        return _native.Campaign(path)
    return _native.Campaign(path, named, _Called(classify))


@dataclass(frozen=True)
class _Called:
    """An outcome function in the form that the native module calls."""

    classify: Classify

    def __call__(
        self, experiment: Experiment, outputs: dict[str, Output] | None, golden: dict[str, Output]
    ) -> object:
        return self.classify(Ended(experiment, outputs, golden))


def _name(classify: Classify) -> str:
    """A name for an outcome function. The name changes if the source text of the function changes."""
    try:
        text = inspect.getsource(classify)
    except (OSError, TypeError):
        text = repr(getattr(getattr(classify, "__code__", None), "co_code", b""))
    digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    return f"{getattr(classify, '__qualname__', type(classify).__qualname__)} {digest}"


def run_task(task: Task) -> str | None:
    """Runs a shard in this process. Returns the path of the shard's file, or ``None`` if another process runs the
    shard.
    """
    campaign = _opened(task.campaign, os.stat(task.campaign).st_mtime_ns, task.classify, task.named)
    version, found = campaign.names()
    if version != task.version:
        raise Error(
            f"shard {task.shard}: this worker has reconverge {version}, the campaign was begun with {task.version}: "
            "install that version on every worker"
        )
    if found != task.hash:
        raise Error(f"{task.campaign}: this worker reads campaign {found}, not {task.hash}: give all workers one file")
    return campaign.take_shard(task.shard, task.folder)


# ---- Maps: functions that run tasks on processes, Dask or Ray.


def over(engine: EngineOfTasks = 1) -> Map:
    """Returns a map function. ``engine`` is the number of processes on this machine, a Dask ``Client``, or the module ``ray``
    after ``ray.init()``."""

    def processes(function: Callable[[Task], str | None], tasks: list[Task]) -> Iterator[str | None]:
        # The processes are spawned, because a forked process would not have the threads of this process.
        count = whole("engine", engine, 1)
        with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
            futures = [pool.submit(function, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    yield future.result()
            except BrokenProcessPool:
                # If a worker is killed, the pool ends. The results of the remaining items are missing in this case.
                return

    def dask(function: Callable[[Task], str | None], tasks: list[Task]) -> Iterator[str | None]:
        from distributed import as_completed as completed

        client: Any = engine
        futures = client.map(function, tasks, pure=False, batch_size=64)
        for future in completed(futures):  # type: ignore[no-untyped-call, unused-ignore]
            yield future.result()

    def ray(function: Callable[[Task], str | None], tasks: list[Task]) -> Iterator[str | None]:
        library: Any = engine
        remote = library.remote(max_retries=3)(function)
        waiting = [remote.remote(task) for task in tasks]
        while waiting:
            (done,), waiting = library.wait(waiting)
            yield library.get(done)

    if isinstance(engine, int) and engine >= 1:
        return processes if engine > 1 else map
    if hasattr(engine, "scheduler_info"):
        return dask
    if hasattr(engine, "remote") and hasattr(engine, "wait"):
        return ray
    raise Error("over: expected a number of processes, a distributed.Client, or the module ray")


# ---- Campaigns


class Campaign:
    """A campaign file, with the golden run and the profile of each launch.

    ``classify`` returns the name of an experiment's outcome. The argument of ``classify`` (:class:`Ended`) has the
    experiment, its outputs and the golden outputs. The column ``class`` of the results has the names of the outcomes. The field
    ``classes`` of the summary has counts of these names. The hash of the campaign includes the outcome function. So no
    shard has results of several outcome functions. If several processes run the campaign, ``classify`` must be defined
    in a module.
    """

    def __init__(self, path: str | os.PathLike[str], *, classify: Classify | None = None) -> None:
        self.path = existing(path).resolve()
        if classify is not None and not callable(classify):
            raise WrongType(f"classify: expected a function, found {article(classify)}")
        self.classify = classify
        self._named = None if classify is None else _name(classify)
        self._native = _opened(str(self.path), self.path.stat().st_mtime_ns, classify, self._named)

    def __reduce__(self) -> tuple[object, ...]:
        return functools.partial(Campaign, classify=self.classify), (str(self.path),)

    @property
    def description(self) -> Description:
        """The hash, the version, the numbers of experiments and shards, the golden runs, and the profiles of the sites."""
        described: Description = json.loads(self._native.describe())
        return described

    @property
    def shards(self) -> list[str]:
        """The names of the shards, in order."""
        return self._native.shards()

    def missing(self, folder: str | os.PathLike[str]) -> list[int]:
        """The numbers of the shards whose file is damaged or does not exist in a folder."""
        return self._native.state(str(folder))[0]

    def run(
        self,
        folder: str | os.PathLike[str],
        engine: EngineOfTasks = 1,
        *,
        map: Map | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> list[str]:
        """Runs the shards that are missing in a folder, and returns the paths of their files.

        ``engine`` is a number of processes, a Dask client or the module ``ray``. Alternatively, ``map`` is a function
        that runs tasks. ``progress`` is called at the start and after each shard. If ``progress`` raises an exception,
        the run ends, and finished shards remain in the folder. If a worker is killed, the shards of the worker run
        again. The run ends with an error if an attempt does not finish any shard. A shard with a damaged file also runs
        again. In this case, the function issues the warning :class:`~reconverge.errors.ShardDamaged`. Several programs
        can run the same campaign in the same folder at the same time, even on several hosts. These programs divide the
        shards among themselves.
        """
        mapped = over(engine) if map is None else map
        self._portable(engine if map is None else 1)
        folder = Path(folder).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        described = self.description
        paths: list[str] = []
        missing, damaged = self._native.state(str(folder))
        for file in damaged:
            warn(f"{file}; the shard is run again", ShardDamaged)
        tally = _Tally(self, folder, described, missing, progress)
        while missing:
            known = (str(self.path), described["campaign"], described["version"])
            own = (self.classify, self._named)
            tasks = [Task(*known, shard, str(folder), *own) for shard in missing]
            done = []
            for path in mapped(run_task, tasks):
                done.append(path)
                if path is not None:
                    tally.add(path)
            paths += [path for path in done if path is not None]
            left = self.missing(folder)
            if None in done:
                time.sleep(_WAIT)
            elif len(left) == len(missing):
                raise Error(f"{folder}: {len(left)} shards are missing, and the last attempt did not finish any of them")
            missing = left
        return paths

    def _portable(self, engine: EngineOfTasks) -> None:
        """Raises an error if other processes cannot import the outcome function."""
        if self.classify is None or not isinstance(engine, int) or engine <= 1:
            return
        try:
            pickle.dumps(self.classify)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            name = getattr(self.classify, "__qualname__", repr(self.classify))
            raise Error(
                f"classify: other processes cannot import {name} ({error}): define it in a module, or use one process"
            ) from None

    def summary(self, folder: str | os.PathLike[str]) -> Summary:
        """Counts of the experiments in a folder's shards, grouped by site and outcome."""
        self._present(folder)
        summary: Summary = json.loads(self._native.summary(str(folder)))
        for counts in [*summary["sites"], *summary["models"]]:
            counts.setdefault("classes", [])
        return summary

    def recheck(self, folder: str | os.PathLike[str], count: int = 1000, seed: int = 1) -> Recheck:
        """Runs ``count`` experiments of a folder again on the reference engine. Returns the experiments whose new results
        differ from the stored results."""
        checked: Recheck = json.loads(self._native.recheck(str(folder), whole("count", count), whole("seed", seed)))
        return checked

    def _present(self, folder: str | os.PathLike[str]) -> list[int]:
        """The numbers of the shards in a folder. Raises an error if the folder does not have a shard."""
        if not Path(folder).exists():
            missing(str(folder))
        if not Path(folder).is_dir():
            raise Error(f"{folder}: it is a file; expected a folder of results")
        present = [shard for shard, name in enumerate(self.shards) if (Path(folder) / name).exists()]
        if not present and self.shards:
            raise Error(f"{folder}: no results of this campaign: name another folder, or run the campaign first")
        return present

    def results(self, folder: str | os.PathLike[str]) -> Iterator[Experiment]:
        """Returns the experiments of a folder as dicts, in the order of their numbers."""
        for shard in self._present(folder):
            yield from self._native.records(shard, str(folder))

    @overload
    def frame(
        self, folder: str | os.PathLike[str], library: Literal["pandas"] | None = None
    ) -> pandas.DataFrame: ...
    @overload
    def frame(self, folder: str | os.PathLike[str], library: Literal["polars"]) -> polars.DataFrame: ...
    def frame(
        self, folder: str | os.PathLike[str], library: Library | None = None
    ) -> pandas.DataFrame | polars.DataFrame:
        """The experiments of a folder as a ``DataFrame`` of pandas or polars, in the order of their numbers.

        The library pandas needs the package pyarrow for this function.
        """
        return parquet([self._native.shard_bytes(shard, str(folder)) for shard in self._present(folder)], library)

    def __repr__(self) -> str:
        described = self.description
        return f"<Campaign {self.path.name}: {described['injections']} experiments in {described['shards']} shards>"


class _Tally:
    """Counts of finished experiments, for a progress function."""

    def __init__(
        self,
        campaign: Campaign,
        folder: Path,
        described: Description,
        missing: list[int],
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self._campaign, self._folder, self._described, self._progress = campaign, folder, described, progress
        self._numbers = {name: number for number, name in enumerate(campaign.shards)}
        self._outcomes: dict[str, int] = {}
        if progress is not None:
            for number in sorted(set(self._numbers.values()) - set(missing)):
                self._count(number)
            self._tell()

    def _count(self, number: int) -> None:
        for name, count in self._campaign._native.outcomes(number, str(self._folder)).items():
            self._outcomes[name] = self._outcomes.get(name, 0) + count

    def _tell(self) -> None:
        if self._progress is not None:
            counts = dict(self._outcomes)
            self._progress(Progress(sum(counts.values()), self._described["injections"], counts))

    def add(self, path: str) -> None:
        """Adds a finished shard to the counts, and calls the progress function."""
        if self._progress is not None:
            self._count(self._numbers[Path(path).name])
            self._tell()
