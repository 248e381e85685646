"""Executors and their children that are lost while a job trains: it goes on, to the model and the snapshots of the
undisturbed job.
"""

import contextlib
import os
import re
import shutil
import signal
import time

import pytest

from conftest import LONG, NOT_WHEN_SLOW, children, crema, running, sha256, wait_until
from disturbed_jobs import (
    FRAMES,
    descendants,
    ended,
    executors,
    expect_files,
    frames_job,
    longer,
    processes,
    said,
    trained,
    undisturbed,  # noqa: F401  a fixture
)
from spark_jobs import DATA_FILES, FILES, job  # noqa: F401 (job is a fixture)


def at(job, iteration):
    wait_until(
        lambda: any(int(n) >= iteration for n in re.findall(r"training  iteration (\d+)/", said(job))),
        120,
        f"iteration {iteration}",
    )


def test_killed_children_and_executors_change_nothing(job, undisturbed):
    for file in FILES:
        (job / file).write_text((job / file).read_text().replace('source: "/', 'source: "file:/'))
    longer(job, FILES[0], 900)
    model, snapshots = undisturbed.of(job)
    assert len(snapshots) == 6

    def disturb(run):
        at(job, 100)
        os.kill(processes(run, "\0worker\0-job")[0], signal.SIGKILL)
        wait_until(lambda: "training goes on with 3 worker(s) (new" in said(job), 60, "a new worker")
        os.kill(executors(run)[0], signal.SIGKILL)

    text, *files = trained(job, undisturbed.run, disturb=disturb)
    expect_files(text, (model, snapshots), files)
    # The next process may be there before the end of the one before is seen.
    lost = re.findall(r"worker \d \(rank.*\) was (?:lost in step \d+: .*|started again); the run goes on", text)
    assert len(lost) >= 2, text[-4000:]
    pauses = [float(p) for p in re.findall(r"training goes on with .* after ([\d.]+) s", text)]
    assert pauses and max(pauses) < 20, text[-4000:]
    for file in undisturbed.run.glob("*_iter_900.*"):
        file.unlink()
    # Also where plain paths are those of another file system, here of one that nobody serves.
    hdfs = ("spark.hadoop.fs.defaultFS=hdfs://127.0.0.1:9",)
    before = text
    text, *files = trained(job, undisturbed.run, "-resume", "auto", master="local[2]", conf=hdfs)
    assert re.search(r"training goes on from the snapshot of iteration (8\d\d), \S+_iter_\1.solverstate", text), text[
        -2000:
    ]
    expect_files(before, (model, snapshots), files)


def test_rows_of_a_lost_executor_come_again(job, undisturbed):
    """Rows that only the lost worker had: Spark's next attempt sends them anew, while the others wait."""
    frames_job(job, undisturbed.records)
    longer(job, FRAMES[0], 900)
    model, _ = undisturbed.of(job, FRAMES)

    def disturb(run):
        at(job, 50)
        os.kill(executors(run)[1], signal.SIGKILL)

    text, disturbed, _ = trained(job, undisturbed.run, disturb=disturb, files=FRAMES)
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


@pytest.mark.parametrize(
    "what", [pytest.param("child", marks=LONG), pytest.param("child with rows", marks=NOT_WHEN_SLOW), "executor"]
)
def test_stopped_for_ever(job, undisturbed, stopped, what):
    """A stopped child is ended by its executor, and its task begins anew: also where only that one has its rows. An
    executor that is stopped with its child keeps its task: the run ends without it, and both end when they wake.
    """
    stop, pids = stopped
    files = FRAMES if what == "child with rows" else FILES
    if files == FRAMES:
        frames_job(job, undisturbed.records)
    longer(job, files[0], 900)
    model, snapshots = undisturbed.of(job, files)
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
    text, *its_files = trained(job, undisturbed.run, disturb=disturb, files=files, conf=conf)
    expect_files(text, (model, snapshots), its_files)
    assert re.search(r"worker \d \(rank.*\) has been silent for \d s .*; the run goes on", text), text[-4000:]
    came = re.search(r"training goes on with \d worker\(s\) \(new", text)
    assert bool(came) == (what != "executor"), text[-4000:]
    if what == "executor":
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not [p for p in everything if running(p)], 30, "the end of all processes")


@LONG
def test_stopped_for_ever_behind_a_repeated_stage(job, undisturbed, stopped):
    """A task that went on while Spark repeated the stage is still known, and is ended with its worker."""
    stop, _ = stopped
    frames_job(job, undisturbed.records)
    longer(job, FRAMES[0], 900)
    model, _ = undisturbed.of(job, FRAMES)

    def disturb(run):
        at(job, 50)
        first = processes(run, "\0worker\0-job")
        os.kill(executors(run)[1], signal.SIGKILL)
        wait_until(lambda: "training goes on with 3 worker(s) (new" in said(job), 100, "the rows of the lost executor")
        stop(next(pid for pid in first if running(pid)))

    conf = ("spark.crema.stepTimeout=3s", "spark.crema.replacementTimeout=60s")
    text, disturbed, _ = trained(job, undisturbed.run, disturb=disturb, files=FRAMES, conf=conf)
    assert disturbed == model, text[-4000:]
    assert re.search(r"worker \d \(rank.*\) has been silent for \d s .*; the run goes on", text), text[-4000:]
    assert len(re.findall(r"training goes on with 3 worker\(s\) \(new", text)) == 2, text[-4000:]


def publisher(run, folder):
    """The executor that writes a file with a temporary name into the folder; None: none does, or the folder has a
    model already.
    """
    for pid in executors(run) if list(folder.glob("_model.*.part")) else ():
        with contextlib.suppress(OSError):
            held = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            if any(name.startswith(f"{folder}/_model.") for name in held):
                return pid
    return None


def with_large_model(job):
    """A net whose model takes a while to copy, and a short run without snapshots."""
    net, rules = job / DATA_FILES[1], job / DATA_FILES[0]
    net.write_text(net.read_text().replace("num_output: 500", "num_output: 12000"))
    for field, value in (("max_iter", 4), ("test_interval", 100), ("snapshot", 0)):
        rules.write_text(re.sub(rf"^{field}: .*", f"{field}: {value}", rules.read_text(), flags=re.M))
    rules.write_text(rules.read_text() + "snapshot_after_train: false\n")


def test_an_executor_that_is_killed_while_it_publishes_the_model(job, tmp_path):
    """viewfs is a file system of others' paths, and needs no daemon; the model is large, so that copying it takes a
    while. Another worker publishes it, and the temporary file is all that is left of the first one.
    """
    with_large_model(job)
    alone = crema("train", "-solver", DATA_FILES[0], "-ranks", 4, "-model", "alone", cwd=job)
    assert alone.code == 0, alone.err[-2000:]
    store, killed = tmp_path / "store", []

    def disturb(run):
        end = time.monotonic() + 120
        while not (pid := publisher(run, store)) and run.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        if pid is None:
            return
        os.kill(pid, signal.SIGSTOP)
        killed.append(not (store / "model").exists())  # it is the moment that this is about
        for each in (pid, *children(pid)):
            os.kill(each, signal.SIGKILL)

    for _ in range(3):
        shutil.rmtree(store, ignore_errors=True)
        store.mkdir()
        text = ended(
            job,
            "local-cluster[2,1,1024]",
            *"-train -clusterSize 4".split(),
            disturb=disturb,
            model="viewfs://lake/store/model",
            files=DATA_FILES,
            conf=(f"spark.hadoop.fs.viewfs.mounttable.lake.link./store=file:{store}",),
        )
        assert sha256(store / "model") == sha256(job / "alone"), text[-4000:]
        if killed and killed[-1]:
            break
    assert killed and killed[-1], "the model was published before the executor could be killed, three times"
    assert re.search(r"worker \d \(rank.*\) was lost", text), text[-4000:]
    assert len([p for p in store.iterdir() if p.name.endswith(".part") and p.name.startswith("_model.")]) == 1
