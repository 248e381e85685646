"""Children and executors that are lost while a job scores: each record has one row, that of the undisturbed job."""

import contextlib
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import make_lmdb, wait_until
from spark_jobs import ENVIRONMENT, FILES, command, job, rows, submit  # noqa: F401 (job is a fixture)
from test_survival import FRAMES, executors, frames_job, processes

FEATURES = ("-features", "ip2", "-label", "label", "-clusterSize", 4)


def scorers(run):
    return processes(run, "\0score\0-job")


def kill_one(find):
    """Ends one of the processes that find() names."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        for pid in find():
            with contextlib.suppress(ProcessLookupError):
                return os.kill(pid, signal.SIGKILL)
    raise AssertionError("there is nothing to kill")


def scored(job, output, files, disturb):
    """The rows of a job in two executors that is disturbed, and its log."""
    with open(job / "driver.log", "w") as log:
        run = subprocess.Popen(
            command(
                job,
                "local-cluster[2,1,1024]",
                *FEATURES,
                model=f"file:{job}/model",
                output=output,
                files=files,
            ),
            cwd=job,
            env=ENVIRONMENT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        disturb(run)
        code = run.wait(200)
    finally:
        run.kill()
    text = (job / "driver.log").read_text()
    assert code == 0, text[-4000:]
    return rows(job / output), text


@pytest.mark.parametrize("source", ["database", "frame"])
def test_killed_children_and_executors_lose_and_double_no_row(job, tmp_path, source):
    """1,000 records, scored one at a time by a large net, so that a child that is seen is killed before it is done."""
    files = FILES if source == "database" else FRAMES
    if source == "frame":
        frames_job(job, tmp_path, test=1000)
    else:
        make_lmdb(tmp_path, "more", 1000, seed=5)
    net = (
        (job / files[1])
        .read_text()
        .replace("batch_size: 20", "batch_size: 1")
        .replace("num_output: 50 ", "num_output: 400 ")
    )
    (job / files[1]).write_text(re.sub(r'source: "\S*test_lmdb"', f'source: "{tmp_path}/more_lmdb"', net))
    solver = (job / files[0]).read_text()
    (job / files[0]).write_text(re.sub(r"(max_iter|test_iter): \d+", r"\1: 1", solver))
    done = submit(job, "local[2]", "-train", *FEATURES, model=f"file:{job}/model", output="undisturbed", files=files)
    assert done.returncode == 0, done.stderr[-1000:]
    expected = rows(job / "undisturbed")
    assert len({row["SampleID"] for row in expected}) == len(expected) == 1000

    def disturb(run):
        kill_one(lambda: scorers(run))
        wait_until(lambda: "killed by signal 9" in (job / "driver.log").read_text(), 60, "the task's failure")
        kill_one(lambda: executors(run))

    found, text = scored(job, "disturbed", files, disturb)
    assert "killed by signal 9" in text, text[-1000:]
    key = lambda row: row["SampleID"]  # noqa: E731
    assert sorted(found, key=key) == sorted(expected, key=key)
