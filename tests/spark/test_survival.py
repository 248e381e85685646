"""Executors and their children that are lost while a job trains: it goes on, to the model and the snapshots of the
undisturbed job.
"""

import contextlib
import os
import re
import signal

import pytest

from conftest import children, running, wait_until
from disturbed_jobs import FRAMES, descendants, executors, frames_job, longer, processes, said, trained
from spark_jobs import FILES, job  # noqa: F401 (job is a fixture)


def at(job, iteration):
    wait_until(
        lambda: any(int(n) >= iteration for n in re.findall(r"training  iteration (\d+)/", said(job))),
        120,
        f"iteration {iteration}",
    )


def test_killed_children_and_executors_change_nothing(job, tmp_path):
    longer(job, FILES[0], 1500)
    _, model, snapshots = trained(job, tmp_path / "run", master="local[2]")
    assert len(snapshots) == 8

    def disturb(run):
        at(job, 100)
        os.kill(processes(run, "\0worker\0-job")[0], signal.SIGKILL)
        wait_until(lambda: "training goes on with 3 worker(s) (new" in said(job), 60, "a new worker")
        os.kill(executors(run)[0], signal.SIGKILL)

    text, disturbed, its_snapshots = trained(job, tmp_path / "run", disturb=disturb)
    assert (disturbed, its_snapshots) == (model, snapshots), text[-4000:]
    # The next process may be there before the end of the one before is seen.
    lost = re.findall(r"worker \d \(rank.*\) was (?:lost in step \d+: .*|started again); the run goes on", text)
    assert len(lost) >= 2, text[-4000:]
    pauses = [float(p) for p in re.findall(r"training goes on with .* after ([\d.]+) s", text)]
    assert pauses and max(pauses) < 20, text[-4000:]
    for file in (tmp_path / "run").glob("*_iter_1500.*"):
        file.unlink()
    text, again, its_snapshots = trained(job, tmp_path / "run", "-resume", "auto", master="local[2]")
    assert re.search(r"training goes on from the snapshot of iteration 1200, \S+_iter_1200.solverstate", text), text[
        -2000:
    ]
    assert (again, its_snapshots) == (model, snapshots), text[-2000:]


def test_rows_of_a_lost_executor_come_again(job, tmp_path):
    """Rows that only the lost worker had: Spark's next attempt sends them anew, while the others wait."""
    frames_job(job, tmp_path)
    longer(job, FRAMES[0], 1200)
    _, model, _ = trained(job, tmp_path / "run", files=FRAMES, master="local[2]")

    def disturb(run):
        at(job, 50)
        os.kill(executors(run)[1], signal.SIGKILL)

    text, disturbed, _ = trained(job, tmp_path / "run", disturb=disturb, files=FRAMES)
    assert disturbed == model, text[-4000:]
    came = re.findall(r"training goes on with \d worker\(s\)(?: \(new: ([\d, ]+)\))?", text)
    lost = set(re.findall(r"worker (\d) \(rank.*?\) was (?:lost|started again)", text))
    assert len(lost) == 1 and came == [*lost], text[-4000:]  # only the one whose rows went with its executor is new
    assert "is already here" not in text


@pytest.fixture
def stopped():
    """Stops processes, which are ended behind the test, and the list of those that it has stopped."""
    pids = []

    def stop(*these):
        pids.extend(these)
        for pid in these:
            os.kill(pid, signal.SIGSTOP)

    yield stop, pids
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("what", ["child", "child with rows", "executor"])
def test_stopped_for_ever(job, tmp_path, stopped, what):
    """A stopped child is ended by its executor, and its task begins anew: also where only that one has its rows. An
    executor that is stopped with its child keeps its task: the run ends without it, and both end when they wake.
    """
    stop, pids = stopped
    files = FRAMES if what == "child with rows" else FILES
    if files == FRAMES:
        frames_job(job, tmp_path)
    longer(job, files[0], 1200)
    _, model, snapshots = trained(job, tmp_path / "run", files=files, master="local[2]")
    everything = []

    def disturb(run):
        at(job, 100)
        everything.extend(descendants(run.pid))
        if what == "executor":
            executor = executors(run)[0]
            stop(executor, *children(executor))
        else:
            stop(processes(run, "\0worker\0-job")[0])

    conf = ("spark.crema.stepTimeout=2s",)
    text, disturbed, its_snapshots = trained(job, tmp_path / "run", disturb=disturb, files=files, conf=conf)
    assert (disturbed, its_snapshots) == (model, snapshots), text[-4000:]
    assert re.search(r"worker \d \(rank.*\) has been silent for \d s .*; the run goes on", text), text[-4000:]
    came = re.search(r"training goes on with \d worker\(s\) \(new", text)
    assert bool(came) == (what != "executor"), text[-4000:]
    if what == "executor":
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not [p for p in everything if running(p)], 30, "the end of all processes")
