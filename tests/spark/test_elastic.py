"""Dynamic allocation: executors that come while a job trains join it, and the model is that of a fixed number."""

import os
import re
import shutil
import signal

import pytest

from conftest import LONG, wait_until
from disturbed_jobs import (
    FRAMES,
    executors,
    expect_files,
    frames_job,
    longer,
    said,
    trained,
    undisturbed,  # noqa: F401  a fixture
)
from spark_jobs import DATA_FILES, job, submit  # noqa: F401 (job is a fixture)


def dynamic(fewest, most):
    settings = {"enabled": "true", "shuffleTracking.enabled": "true", "minExecutors": fewest, "maxExecutors": most}
    return [
        "spark.executor.cores=1",
        *(f"spark.dynamicAllocation.{k}={v}" for k, v in settings.items()),
    ]


def await_step(run, job):
    wait_until(lambda: run.poll() is not None or "training  iteration" in said(job), 120, "a step")


@pytest.fixture
def longer_job(job, records, undisturbed):  # noqa: F811
    """One on records that a test may take away."""
    here = undisturbed.records / "here"
    shutil.copytree(records, here, dirs_exist_ok=True)
    net = job / DATA_FILES[1]
    net.write_text(net.read_text().replace(str(records), str(here)))
    longer(job, DATA_FILES[0], 2000)
    yield job
    shutil.rmtree(here)


def test_executors_that_come_later_join_and_those_that_leave_are_done_without(longer_job, undisturbed):  # noqa: F811
    job = longer_job
    model, snapshots = undisturbed.of(job, DATA_FILES)

    def disturb(run):
        def driver_says(line):
            wait_until(lambda: run.poll() is not None or re.search(line, said(job)), 120, line)
            assert re.search(line, said(job)), said(job)[-4000:]

        driver_says(r"training goes on with 3 worker\(s\) \(new: \d\) from iteration \d+, after \d+\.\d\d s")
        os.kill(executors(run)[0], signal.SIGTERM)  # as who preempts it does: the worker ends with its JVM
        driver_says(r"training goes on with 2 worker\(s\) from iteration \d+, after \d+\.\d\d s")

    text, grown, its_snapshots = trained(
        job,
        undisturbed.run,
        disturb=disturb,
        files=DATA_FILES,
        devices=4,
        conf=dynamic(1, 4),  # the task for the fourth never gets an executor while the others train
    )
    expect_files(text, (model, snapshots), (grown, its_snapshots))
    assert not re.search(r"worker \d .* failed in step", text), text[-4000:]
    assert "4 rank(s) of batch 8 on 1 worker(s), and up to 4 as executors come" in text
    assert re.search(r"training goes on with 2 worker\(s\) \(new: \d\) from iteration \d+", text), text[-4000:]


def test_executors_that_come_and_cannot_read_the_records_end_nothing(longer_job, undisturbed):  # noqa: F811
    """As Spark ends a job whose task has failed four times."""
    job, here = longer_job, undisturbed.records / "here"
    model, snapshots = undisturbed.of(job, DATA_FILES)

    def disturb(run):
        await_step(run, job)
        (here / "train_lmdb").rename(here / "gone")  # the worker that trains has it open

    text, alone, its_snapshots = trained(
        job, undisturbed.run, disturb=disturb, files=DATA_FILES, devices=4, conf=dynamic(1, 2)
    )
    expect_files(text, (model, snapshots), (alone, its_snapshots))
    why = re.findall(rf"^crema: worker 1 \(.*\) failed in step 0: there is no LMDB at {here}/train_lmdb", text, re.M)
    assert len(why) == 4, text[-6000:]
    assert "(new: " not in text


@LONG
def test_executors_that_come_and_cannot_stage_their_files_end_nothing(longer_job, tmp_path):  # noqa: F811
    """The snapshot that the run went on from is gone when they come: their tasks fail before they have a worker."""
    job = longer_job
    _, model, snapshots = trained(job, tmp_path / "run", files=DATA_FILES, master="local[2]")
    store = tmp_path / "store"
    store.mkdir()
    for file in (tmp_path / "run").glob("*_iter_400.*"):
        shutil.copy(file, store)
    (state,), (weights,) = (store.glob(f"*.{end}") for end in ("solverstate", "caffemodel"))

    def disturb(run):
        await_step(run, job)
        state.unlink()

    text, alone, its_snapshots = trained(
        job,
        tmp_path / "run",
        *("-snapshot", f"viewfs://lake/store/{state.name}", "-weights", f"viewfs://lake/store/{weights.name}"),
        disturb=disturb,
        files=DATA_FILES,
        devices=4,
        conf=[
            *dynamic(1, 2),
            "spark.dynamicAllocation.schedulerBacklogTimeout=5s",  # not before the file is gone
            f"spark.hadoop.fs.viewfs.mounttable.lake.link./store=file:{store}",
        ],
    )
    later = {name: digest for name, digest in snapshots.items() if "_iter_400." not in name}
    assert (alone, its_snapshots) == (model, later), text[-4000:]
    assert re.search(rf"Lost task 1\.0 .*: there is nothing at viewfs://lake/store/{state.name}", text), text[-6000:]
    assert re.search(r"Lost task 1\.3 .*: TaskKilled", text), text[-6000:]  # the fourth attempt waits, and tries again
    assert "(new: " not in text


@pytest.mark.parametrize(
    ("devices", "conf", "why"),
    [
        (
            1,
            dynamic(1, 3),
            "the 1 rank(s), minExecutors x devices, give more than 1 executor(s) nothing to do",
        ),
        (
            4,
            [s for s in dynamic(1, 3) if "minExecutors" not in s],
            "a run begins with minExecutors, which is 0 or not set",
        ),
        (
            4,
            [*dynamic(1, 3), "spark.executor.cores=2"],
            "set spark.executor.cores and spark.task.cpus to one",
        ),
    ],
)
def test_settings_with_which_a_run_cannot_grow_are_refused(job, devices, conf, why):  # noqa: F811
    expect_refusal(job, DATA_FILES, devices, conf, why)


def test_rows_that_executors_keep_do_not_grow(job, tmp_path):  # noqa: F811
    frames_job(job, tmp_path, train=100, test=40)
    why = "rows of sources that are no database are sent to the executors that are there at the beginning"
    expect_refusal(job, FRAMES, 4, dynamic(1, 3), why)


def expect_refusal(job, files, devices, conf, why):  # noqa: F811
    done = submit(job, "local-cluster[3,1,1024]", "-train", files=files, devices=devices, conf=conf)
    assert done.returncode == 1
    assert (
        "maxExecutors and spark.dynamicAllocation.minExecutors must be identical, as this run cannot grow"
        in done.stderr
    )
    assert why in done.stderr, done.stderr[-2000:]
