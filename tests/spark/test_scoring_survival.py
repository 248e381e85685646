"""Children and executors that are lost while a job scores: each record has one row, that of the undisturbed job."""

import contextlib
import os
import re
import signal
import time

import pytest

from conftest import LONG, make_lmdb, wait_until
from disturbed_jobs import FRAMES, ended, executors, frames_job, processes, said
from spark_jobs import FILES, job, rows, submit  # noqa: F401 (job is a fixture)

FEATURES = ("-features", "ip2", "-label", "label", "-clusterSize", 4)


def kill_one(find, sign=signal.SIGKILL):
    """Ends one of the processes that find() names, or stops it."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        for pid in find():
            with contextlib.suppress(ProcessLookupError):
                return os.kill(pid, sign)
    raise AssertionError("there is nothing to kill")


def one_at_a_time(job, tmp_path, source):
    """Makes the job one of 1,000 records in batches of one, for a larger net. Returns its files."""
    files = FILES if source == "database" else FRAMES
    if source == "frame":
        frames_job(job, tmp_path, test=1000)
    else:
        make_lmdb(tmp_path, "more", 1000, seed=5)
    net = (job / files[1]).read_text().replace("batch_size: 20", "batch_size: 1")
    net, large = re.subn(r"num_output: 50\n", "num_output: 400\n", net)
    assert large == 1
    (job / files[1]).write_text(re.sub(r'source: "\S*test_lmdb"', f'source: "{tmp_path}/more_lmdb"', net))
    solver = (job / files[0]).read_text()
    (job / files[0]).write_text(re.sub(r"(max_iter|test_iter): \d+", r"\1: 1", solver))
    return files


@pytest.mark.parametrize("source", ["database", pytest.param("frame", marks=LONG)])
def test_killed_and_stopped_children_and_executors_lose_and_double_no_row(job, tmp_path, source):
    """1,000 records, scored one at a time by a large net, so that a child that is seen is killed before it is done."""
    files = one_at_a_time(job, tmp_path, source)
    done = submit(job, "local[2]", "-train", *FEATURES, model=f"file:{job}/model", output="undisturbed", files=files)
    assert done.returncode == 0, done.stderr[-1000:]
    expected = rows(job / "undisturbed")
    assert len({row["SampleID"] for row in expected}) == len(expected) == 1000

    def disturb(run):
        kill_one(lambda: processes(run, "\0score\0-job"))
        wait_until(lambda: "killed by signal 9" in said(job), 60, "the task's failure")
        kill_one(lambda: processes(run, "\0score\0-job"), signal.SIGSTOP)
        wait_until(
            lambda: "has been silent for 5 s and was killed: it was stopped" in said(job), 60, "its task's failure"
        )
        kill_one(lambda: executors(run))

    text = ended(
        job,
        "local-cluster[2,1,1024]",
        *FEATURES,
        disturb=disturb,
        model=f"file:{job}/model",
        output="disturbed",
        conf=("spark.crema.stepTimeout=5s",),
        files=files,
    )
    assert "Lost executor" in text, text[-1000:]

    def by_id(all_rows):
        return sorted(all_rows, key=lambda row: row["SampleID"])

    assert by_id(rows(job / "disturbed")) == by_id(expected)
