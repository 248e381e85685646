"""SIGINT and SIGTERM at any moment: a clean end, a snapshot, no process left, no request lost."""

import os
import pathlib
import random
import re
import signal
import subprocess
import time

import pytest

from conftest import CREMA, children, crema, lenet, running, solver, wait_until
from runs import begun, cluster, ended, endless, goes_on, start  # noqa: F401 (a fixture)

RUNS = int(os.environ.get("CREMA_SIGNAL_RUNS", "15"))  # of each kind; hundreds were made when this was written


def of_session(session):
    """Processes that the run started and that still exist, whatever their process group."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found


def interrupted_after(folder, seconds, workers):
    log = folder / "run.log"
    with open(log, "w") as out:
        run = subprocess.Popen(
            [CREMA, "train", "-solver", "solver.prototxt", "-ranks", "4", "-workers", str(workers), "-threads", "1"],
            cwd=folder,
            stderr=out,
            stdout=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    time.sleep(seconds)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    code = ended(run, 20)
    assert not of_session(run.pid)
    return code, log.read_text()


@pytest.mark.parametrize("workers,longest", [(1, 0.05), (2, 0.05), (2, 0.6)])
def test_ctrl_c_at_any_moment_is_a_clean_end(endless, workers, longest):
    """A signal within the first milliseconds, before handlers are installed, ends the process as by default: nothing
    has begun.
    """
    rng, requested = random.Random(7), 0
    for _ in range(RUNS):
        for old in endless.glob("snap_iter_*"):
            old.unlink()
        code, log = interrupted_after(endless, rng.random() * longest, workers)
        if code == -signal.SIGINT and not log:
            continue
        assert code == 0 and "Optimization stopped early." in log, (code, log[-1500:])
        assert sorted(f.suffix for f in endless.glob("snap_iter_*")) == [".caffemodel", ".solverstate"], log[-1500:]
        requested += 1
    assert requested > RUNS * 2 // 3


def states(folder):
    return sorted(folder.glob("snap_iter_*.solverstate"))


@pytest.mark.parametrize("workers", [1, 3])
def test_sigint_snapshots_and_stops_sighup_snapshots_and_goes_on(endless, workers):
    (endless / "model").write_text("of before")
    run = start(
        endless,
        *"train -solver solver.prototxt -ranks".split(),
        3,
        "-workers",
        workers,
        "-threads",
        1,
        *"-sigint_effect stop -sighup_effect snapshot -model model".split(),
    )
    wait_until(lambda: begun(endless), 30, "the first step")
    os.kill(run.pid, signal.SIGHUP)

    wait_until(lambda: len(states(endless)) == 1, 15, "the snapshot of SIGHUP")
    time.sleep(0.2)
    assert run.poll() is None
    os.kill(run.pid, signal.SIGINT)
    assert ended(run, 15) == 0
    log = (endless / "run.log").read_text()
    assert len(states(endless)) == 2 and "Optimization stopped early." in log
    assert (endless / "model").read_text() == "of before", "a half-trained net took the model's place"
    assert "the model model is not written, as training was stopped at iteration" in log
    last = max(int(s.name.split("_")[2].split(".")[0]) for s in states(endless))
    assert (endless / f"snap_iter_{last}.caffemodel").exists()
    goes_on(endless, last)


@pytest.mark.parametrize("which", [0, 2])
def test_the_snapshot_of_sighup_comes_once_whichever_worker_is_lost(endless, which):
    """It is stopped, so that it cannot pass the signal on. The others hear of it in steps of their own."""
    run = start(endless, *"train -solver solver.prototxt -ranks 3 -workers 3 -threads 1".split())
    wait_until(lambda: begun(endless), 30, "the first step")
    lost = children(run.pid)[which]
    os.kill(lost, signal.SIGSTOP)
    os.kill(run.pid, signal.SIGHUP)
    time.sleep(0.5)
    os.kill(lost, signal.SIGKILL)
    wait_until(lambda: states(endless), 15, "the snapshot of SIGHUP")
    wait_until(
        lambda: "goes on with 3 worker(s)" in (endless / "run.log").read_text(), 30, "the replacement of that worker"
    )
    os.kill(run.pid, signal.SIGHUP)
    wait_until(lambda: len(states(endless)) > 1, 15, "the snapshot of the next SIGHUP")
    time.sleep(0.5)
    assert len(states(endless)) == 2, (endless / "run.log").read_text()[-1500:]
    os.kill(run.pid, signal.SIGINT)
    assert ended(run, 15) == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_in_the_initial_test_makes_no_iteration(records, tmp_path, workers):
    solver(tmp_path, lenet(records), max_iter=1000, extra="test_iter: 1000000; test_interval: 1000; display: 1")
    run = start(tmp_path, "train", "-solver", "solver.prototxt", "-ranks", 2, "-workers", workers, "-threads", 1)
    log = tmp_path / "run.log"
    wait_until(lambda: "Testing net (#0)" in log.read_text(), 30, "the initial test")
    time.sleep(0.3)
    os.kill(run.pid, signal.SIGINT)
    assert ended(run, 10) == 0
    text = log.read_text()
    assert "Test interrupted." in text and "Optimization stopped early." in text and "Train net output" not in text, (
        text[-1500:]
    )
    assert (tmp_path / "snap_iter_0.solverstate").exists() and (tmp_path / "snap_iter_0.caffemodel").exists()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "prefix,flags,snapshot",
    [
        ('"snap"', [], True),
        ('""', [], False),
        ('"snap"', ["-sigterm_effect", "stop"], False),
        ('""', ["-sigterm_effect", "snapshot"], True),
    ],
)
def test_sigterm_snapshots_and_stops(records, tmp_path, workers, prefix, flags, snapshot):
    """The signal goes to every process of the run, as with Slurm."""
    solver(tmp_path, lenet(records), max_iter=1000000, extra=f"snapshot_after_train: false; snapshot_prefix: {prefix}")
    run = start(
        tmp_path, "train", "-solver", "solver.prototxt", "-ranks", 2, "-workers", workers, "-threads", 1, *flags
    )
    wait_until(lambda: begun(tmp_path), 30, "the first step")
    for process in [*children(run.pid), run.pid]:
        os.kill(process, signal.SIGTERM)
    assert ended(run, 15) == 143
    assert "Optimization stopped early." in (tmp_path / "run.log").read_text()
    states = list(tmp_path.glob("*_iter_*.solverstate"))
    assert len(states) == snapshot, states
    if snapshot:
        assert int(re.search(r"_iter_(\d+)", states[0].name).group(1)) > 0
        resumed = start(
            tmp_path, "train", "-solver", "solver.prototxt", "-ranks", 2, "-snapshot", states[0].name, name="again"
        )
        wait_until(lambda: "Iteration " in (tmp_path / "again.log").read_text(), 20, "the resumed run")
        os.kill(resumed.pid, signal.SIGINT)
        assert ended(resumed, 15) == 0


def test_sigterm_may_be_ignored_and_its_effect_is_judged(endless):
    assert (
        "-sigterm_effect must be stop, snapshot or none, not 'sometimes'"
        in crema("train", "-solver", "solver.prototxt", "-sigterm_effect", "sometimes", cwd=endless).message
    )
    run = start(endless, "train", "-solver", "solver.prototxt", "-sigterm_effect", "none")
    wait_until(lambda: begun(endless), 30, "the first step")
    os.kill(run.pid, signal.SIGTERM)
    time.sleep(0.5)
    assert run.poll() is None
    os.kill(run.pid, signal.SIGINT)
    assert ended(run, 15) == 0


@pytest.mark.parametrize("which", [0, 1])
def test_a_worker_that_gets_sigterm_leaves_a_snapshot_of_all(endless, which):
    """The signal goes to the container's whole process group, as with YARN: the run ends with a message that names
    the snapshot to resume from.
    """
    coordinator, address, flags = cluster(endless, 2, 1000000, timeout=20)
    workers = [
        start(endless, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
        for w in (0, 1)
    ]
    wait_until(lambda: "Iteration " in (endless / "coordinator.log").read_text(), 30, "the first step")
    os.kill(workers[which].pid, signal.SIGTERM)
    codes = [ended(p, 15) for p in (coordinator, *workers)]
    assert 0 not in codes, codes
    message = (endless / "coordinator.log").read_text()
    said = re.search(
        r"a worker was told to end \(SIGTERM\), so training has stopped at iteration (\d+) of 1000000; go on from "
        r"there with -snapshot (\S+)",
        message,
    )
    assert said and said.group(2) == f"snap_iter_{said.group(1)}.solverstate", message[-1500:]
    assert (endless / said.group(2)).exists() and len(list(endless.glob("snap_iter_*"))) == 2
    assert not [w for w in workers if running(w.pid)]


def test_sigterm_from_before_the_training_leaves_iteration_0(endless):
    coordinator, address, flags = cluster(endless, 2, 1000000, timeout=20)
    first = start(endless, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", 1, name="w1")
    wait_until(lambda: "has joined" in (endless / "coordinator.log").read_text(), 20, "worker 1")
    os.kill(first.pid, signal.SIGTERM)
    second = start(endless, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", 0, name="w0")
    for process in (coordinator, first, second):
        assert ended(process, 20) != 0
    assert sorted(f.name for f in endless.glob("snap_iter_*")) == ["snap_iter_0.caffemodel", "snap_iter_0.solverstate"]
    assert "stopped at iteration 0 of 1000000" in (endless / "coordinator.log").read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_whose_log_nobody_reads_ends_when_it_is_told_twice(records, tmp_path, workers):
    """The process is blocked in a write and cannot act on the first request; a second one ten seconds later ends it."""
    solver(tmp_path, lenet(records), max_iter=1000000, extra="display: 1")
    read, write = os.pipe()
    run = subprocess.Popen(
        [
            CREMA,
            *"train -solver solver.prototxt -ranks".split(),
            str(workers),
            "-workers",
            str(workers),
            "-threads",
            "1",
        ],
        cwd=tmp_path,
        stdout=write,
        stderr=write,
        stdin=subprocess.DEVNULL,
    )
    os.close(write)

    def hung():
        threads = pathlib.Path(f"/proc/{run.pid}/task").glob("*/wchan")
        return any("pipe_write" in t.read_text() for t in [pathlib.Path(f"/proc/{run.pid}/wchan"), *threads])

    wait_until(hung, 60, "a full pipe")
    os.kill(run.pid, signal.SIGTERM)
    time.sleep(11)
    assert run.poll() is None
    os.kill(run.pid, signal.SIGTERM)
    assert ended(run, 10) == -signal.SIGTERM
    os.close(read)
    wait_until(lambda: not children(run.pid), 10, "the end of the workers")
