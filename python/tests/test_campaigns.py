"""Tests that any number of processes write the same bytes for a campaign, and tests errors of campaigns. python/clusters tests
clusters."""

from __future__ import annotations

import errno
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import reconverge
from reconverge.campaign import Campaign, Ended, Progress, Task, over, run_task

TEXT = 'kernel = "collatz"\nisa = "r700"\nlanes = 64\nseed = 3\ninjections = 60\nshard = 16\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "campaign.toml"
    path.write_text(TEXT)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_one_process_and_two_leave_the_same_bytes_and_go_on(file: Path, tmp_path: Path) -> None:
    campaign = Campaign(file)
    assert len(campaign.shards) == 4 and repr(campaign) == "<Campaign campaign.toml: 60 experiments in 4 shards>"
    one, two = tmp_path / "one", tmp_path / "two"
    assert len(campaign.run(one)) == 4
    two.mkdir()
    (two / campaign.shards[1]).write_bytes((one / campaign.shards[1]).read_bytes())
    assert campaign.missing(two) == [0, 2, 3]
    assert len(campaign.run(two, 2)) == 3
    assert contents(one) == contents(two)
    assert campaign.run(two) == []
    summary = campaign.summary(two)
    assert summary["finished"] == sum(each["injections"] for each in summary["sites"]) == 60
    assert campaign.recheck(two, 20) == {"checked": 20, "differ": []}


def test_experiments_are_a_frame(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    campaign = Campaign(file)
    campaign.run(tmp_path / "results")
    frame = campaign.frame(tmp_path / "results", "pandas")
    assert frame["index"].tolist() == list(range(60))
    assert set(frame["outcome"]) <= {"masked", "diverged", "sdc", "trap", "hang"}


def test_a_damaged_shard_is_named_and_never_counted_and_run_again(file: Path, tmp_path: Path) -> None:
    campaign, results = Campaign(file), tmp_path / "results"
    campaign.run(results)
    wanted = contents(results)
    shard = results / campaign.shards[1]
    for place in range(0, len(wanted[shard.name]), 997):
        damaged = bytearray(wanted[shard.name])
        damaged[place] ^= 1 << place % 8
        shard.write_bytes(damaged)
        assert campaign.missing(results) == [1]
        for read in (campaign.summary, campaign.recheck):
            with pytest.raises(reconverge.Error, match=f"{shard.name}: .*checksum"):
                read(results)
        with pytest.raises(reconverge.Error, match=f"{shard.name}: .*checksum"):
            campaign._native.shard_bytes(1, str(results))
    with pytest.warns(reconverge.errors.ShardDamaged, match=f"{shard.name}: damaged: .*; the shard is run again"):
        assert campaign.run(results) == [str(shard)]
    assert contents(results) == wanted


def test_two_programs_divide_the_shards_of_a_folder(file: Path, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from reconverge.campaign import Campaign\n"
        "print(len(Campaign(sys.argv[1]).run(sys.argv[2])))\n"
    )
    file.write_text(TEXT.replace("shard = 16", "shard = 2"))
    both, alone = tmp_path / "both", tmp_path / "alone"
    command = [sys.executable, "-c", program, str(file), str(both)]
    programs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [program.communicate()[0] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], printed
    Campaign(file).run(alone)
    assert contents(both) == contents(alone)


def test_any_map_will_do_and_one_that_runs_nothing_is_an_error(file: Path, tmp_path: Path) -> None:
    campaign = Campaign(file)
    assert len(campaign.run(tmp_path / "backwards", map=lambda function, tasks: [function(task) for task in tasks[::-1]])) == 4
    with pytest.raises(reconverge.Error, match="4 shards are missing, and the last attempt did not finish any of them"):
        campaign.run(tmp_path / "nothing", map=lambda function, tasks: [])
    with pytest.raises(reconverge.Error, match=r"a number of processes, a distributed\.Client, or the module ray"):
        over("processes")  # type: ignore[arg-type]


def test_an_unknown_site_is_refused_with_its_line_and_what_was_meant(file: Path) -> None:
    file.write_text(TEXT + 'sites = ["registers"]\n')
    with pytest.raises(reconverge.Error, match=r"campaign\.toml:7: unknown site `registers`: did you mean `register`\?"):
        Campaign(file)


def test_a_folder_of_another_campaign_is_refused(file: Path, tmp_path: Path) -> None:
    Campaign(file).run(tmp_path / "results")
    file.write_text(TEXT.replace("seed = 3", "seed = 4"))
    with pytest.raises(reconverge.Error, match="it belongs to another campaign.*use another folder"):
        Campaign(file).run(tmp_path / "results")


def test_a_worker_of_another_version_or_file_is_refused(file: Path, tmp_path: Path) -> None:
    described = Campaign(file).description
    older = Task(str(file), described["campaign"], "0.0.1", 0, str(tmp_path / "results"))
    with pytest.raises(reconverge.Error, match=r"has reconverge .*, the campaign was begun with 0\.0\.1: install"):
        run_task(older)
    other = Task(str(file), "0" * 32, described["version"], 0, str(tmp_path / "results"))
    with pytest.raises(reconverge.Error, match="this worker reads campaign .*: give all workers one file"):
        run_task(other)
    assert not (tmp_path / "results").exists()


@contextmanager
def full_disk() -> Iterator[None]:
    """Limits files to 1,024 bytes, which is less than the size of a shard."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")
def test_a_full_disk_keeps_what_is_finished(file: Path, tmp_path: Path) -> None:
    campaign, results = Campaign(file), tmp_path / "results"
    campaign.run(results)
    wanted = contents(results)
    (results / campaign.shards[2]).unlink()
    left = contents(results)
    with full_disk(), pytest.raises(reconverge.Error, match="finished shards are kept; free disk space") as caught:
        campaign.run(results)
    assert f"os error {errno.EFBIG}" in str(caught.value)
    assert contents(results) == left
    campaign.run(results)
    assert contents(results) == wanted


def visible(ended: Ended) -> str:
    """An outcome function. The returned name states whether the first output differs from the first output of the golden run."""
    if ended.trap is not None:
        return f"trapped: {ended.trap}"
    if ended.outputs is None:
        return ended.outcome
    name = next(iter(ended.golden))
    assert ended.outputs[name].shape == ended.golden[name].shape
    differs = int((ended.outputs[name] != ended.golden[name]).sum())
    assert (differs > 0) == (ended.outcome == "sdc")
    return "visible" if differs > 8 else "small" if differs else "unseen"


def test_an_outcome_function_names_outcomes(file: Path, tmp_path: Path) -> None:
    """A user's outcome function names the outcomes of experiments."""
    campaign = Campaign(file, classify=visible)
    campaign.run(tmp_path / "own")
    rows = list(campaign.results(tmp_path / "own"))
    assert [row["index"] for row in rows] == list(range(60))
    assert {row["class"] for row in rows} <= {"visible", "small", "unseen", "hang"} | {f"trapped: {row['trap']}" for row in rows}
    assert len({row["class"] for row in rows}) > 1
    plain = Campaign(file)
    plain.run(tmp_path / "plain")
    assert [dict(row, **{"class": None}) for row in rows] == list(plain.results(tmp_path / "plain"))
    summary = campaign.summary(tmp_path / "own")
    named = sum(rate["count"] for site in summary["sites"] for rate in site["classes"])
    assert named == 60 and all(0 <= rate["interval"][0] <= rate["rate"] <= rate["interval"][1] <= 1 for site in summary["sites"] for rate in site["classes"])
    assert plain.summary(tmp_path / "plain")["sites"][0]["classes"] == []
    assert campaign.recheck(tmp_path / "own", 10) == {"checked": 10, "differ": []}
    # A folder with results of another outcome function is an error.
    with pytest.raises(reconverge.Error, match="it belongs to another campaign"):
        plain.run(tmp_path / "own")
    assert campaign.description["campaign"] == Campaign(file, classify=visible).description["campaign"]


def test_an_outcome_function_runs_in_other_processes(file: Path, tmp_path: Path) -> None:
    module = tmp_path / "outcomes.py"
    module.write_text("def named(ended):\n    return 'x' + ended.outcome\n")
    program = (
        "import sys\n"
        "import outcomes\n"
        "from reconverge.campaign import Campaign\n"
        "if __name__ == '__main__':\n"
        "    campaign = Campaign(sys.argv[1], classify=outcomes.named)\n"
        "    campaign.run(sys.argv[2], 2)\n"
        "    assert all(row['class'] == 'x' + row['outcome'] for row in campaign.results(sys.argv[2]))\n"
        "    print(campaign.summary(sys.argv[2])['finished'])\n"
    )
    script = tmp_path / "program.py"
    script.write_text(program)
    ran = subprocess.run([sys.executable, str(script), str(file), str(tmp_path / "r")], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "60\n"), ran.stderr
    with pytest.raises(reconverge.Error, match="classify: other processes cannot import .*: define it in a module"):
        Campaign(file, classify=lambda ended: "x").run(tmp_path / "r2", 2)


def test_mistakes_of_an_outcome_function_end_the_campaign(file: Path, tmp_path: Path) -> None:
    def raises(ended: Ended) -> str:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        Campaign(file, classify=raises).run(tmp_path / "a")
    with pytest.raises(reconverge.Error, match="classify: expected a str from the function, found int"):
        Campaign(file, classify=lambda ended: 3).run(tmp_path / "b")  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="classify: expected a function, found a str"):
        Campaign(file, classify="sdc")  # type: ignore[arg-type]


def test_progress_is_told_with_counts(file: Path, tmp_path: Path) -> None:
    """The progress callback receives counts by outcome."""
    campaign = Campaign(file)
    told: list[Progress] = []
    campaign.run(tmp_path / "r", progress=told.append)
    assert [each.done for each in told] == [0, 16, 32, 48, 60] and {each.total for each in told} == {60}
    assert all(sum(each.outcomes.values()) == each.done for each in told)
    summary = campaign.summary(tmp_path / "r")
    counts: dict[str, int] = {}
    for site in summary["sites"]:
        for rate in site["outcomes"]:
            counts[rate["outcome"]] = counts.get(rate["outcome"], 0) + rate["count"]
    assert told[-1].outcomes == {name: count for name, count in counts.items() if count}
    assert str(told[-1]).startswith("60 of 60 experiments: ")
    # The first call of the progress callback counts the shards that were finished before the run.
    (tmp_path / "r" / campaign.shards[0]).unlink()
    again: list[Progress] = []
    campaign.run(tmp_path / "r", progress=again.append)
    assert [each.done for each in again] == [44, 60]

    def stop(progress: Progress) -> None:
        if progress.done >= 32:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        campaign.run(tmp_path / "other", progress=stop)
    assert campaign.missing(tmp_path / "other") == [2, 3]


def test_results_are_dicts(file: Path, tmp_path: Path) -> None:
    campaign = Campaign(file)
    campaign.run(tmp_path / "r")
    rows = list(campaign.results(tmp_path / "r"))
    assert len(rows) == 60 and {row["outcome"] for row in rows} <= {"masked", "diverged", "sdc", "trap", "hang"}
    assert all((row["trap"] is not None) == (row["outcome"] == "trap") for row in rows)
    sdc = [row for row in rows if row["outcome"] == "sdc"]
    assert sdc and all(row["hits"] > 0 and row["before"] != row["after"] for row in sdc)
