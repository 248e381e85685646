"""Workers that are lost, and others that come, change neither model nor snapshots: one case of each kind, at the moment
that it is about. tests/chaos has them at all moments.
"""

import os
import re
import resource
import signal
import time

import pytest

from conftest import children, crema, lenet, running, sha256, solver, wait_until
from runs import cluster, ended, start

SETTINGS = "test_iter: 3; test_interval: 50; snapshot: 50; snapshot_after_train: true"


@pytest.fixture(scope="module")
def calm(records, tmp_path_factory):
    """A folder with the undisturbed run, of eight ranks in one process."""
    folder = tmp_path_factory.mktemp("calm")
    solver(folder, lenet(records), max_iter=120, extra=SETTINGS)
    done = crema("train", "-solver", "solver.prototxt", "-ranks", 8, "-threads", 1, "-model", "model", cwd=folder)
    assert done.code == 0, done.err[-2000:]
    return folder


@pytest.fixture
def folder(records, tmp_path):
    solver(tmp_path, lenet(records), max_iter=120, extra=SETTINGS)
    return tmp_path


def launched(folder, workers, *flags, name="run"):
    run = start(
        folder,
        *"train -solver solver.prototxt -ranks 8 -threads 1 -model model -workers".split(),
        workers,
        *flags,
        name=name,
    )
    wait_until(lambda: "Iteration 10 " in said(folder, name), 60, "the tenth iteration")
    return run


def said(folder, name="run"):
    return (folder / f"{name}.log").read_text()


def same(folder, calm, models=("model",)):
    files = [*models, *(p.name for p in calm.glob("snap_iter_*"))]
    assert {f: sha256(folder / f) for f in files} == {f: sha256(calm / f) for f in files}


@pytest.mark.parametrize("replacement", ["continue", "wait"])
@pytest.mark.parametrize("which", [0, 3])
def test_a_killed_worker_is_replaced(folder, calm, which, replacement):
    run = launched(folder, 4, "-replacement", replacement)
    os.kill(children(run.pid)[which], signal.SIGKILL)
    assert ended(run, 60) == 0
    same(folder, calm)
    assert re.search(rf"worker {which} \(ranks .*\) was lost in step \d+", said(folder))
    assert re.search(rf"training goes on with 4 worker\(s\) \(new: {which}\) from iteration \d+", said(folder))


def test_with_one_of_many_left_the_run_goes_on(folder, calm):
    coordinator, address, flags = cluster(folder, 8, 120, timeout=20, replacement="continue")
    workers = [
        start(folder, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
        for w in range(8)
    ]
    wait_until(lambda: "Iteration 10 " in "".join(said(folder, f"w{w}") for w in range(8)), 60, "the tenth iteration")
    for w in workers[:7]:
        os.kill(w.pid, signal.SIGKILL)
    for process in (workers[7], coordinator):
        assert ended(process, 60) == 0, said(folder, "coordinator")[-2000:]
    for w in workers[:7]:
        w.wait()
    same(folder, calm, [])


def test_a_stopped_worker_is_given_up_and_ends_when_it_wakes(folder, calm):
    coordinator, address, flags = cluster(folder, 2, 120, timeout=2, replacement="continue", ranks=8)
    workers = [
        start(folder, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
        for w in (0, 1)
    ]
    wait_until(lambda: "Iteration 10 " in said(folder, "w0"), 60, "the tenth iteration")
    os.kill(workers[0].pid, signal.SIGSTOP)
    wait_until(lambda: "training goes on with 1 worker(s)" in said(folder, "coordinator"), 20, "the other worker")
    os.kill(workers[0].pid, signal.SIGCONT)
    assert ended(workers[0], 20) == 1
    assert "was given up, and the run goes on without it" in said(folder, "w0"), said(folder, "w0")[-1000:]
    for process in (workers[1], coordinator):
        assert ended(process, 60) == 0
    same(folder, calm, [])


def test_a_worker_that_gets_sigterm_leaves(folder, calm):
    coordinator, address, flags = cluster(folder, 2, 120, timeout=20, replacement="continue", ranks=8)
    workers = [
        start(folder, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
        for w in (0, 1)
    ]
    wait_until(lambda: "Iteration 10 " in said(folder, "w0"), 60, "the tenth iteration")
    os.kill(workers[0].pid, signal.SIGTERM)
    assert ended(workers[0], 20) == 1
    for process in (workers[1], coordinator):
        assert ended(process, 60) == 0, said(folder, "coordinator")[-2000:]
    assert "it was told to end (SIGTERM)" in said(folder, "coordinator")
    same(folder, calm, [])


def test_without_the_coordinator_all_workers_end_at_once(folder):
    coordinator, address, flags = cluster(folder, 2, 1000000, timeout=60, replacement="continue", ranks=8)
    workers = [
        start(folder, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
        for w in (0, 1)
    ]
    wait_until(lambda: "Iteration " in said(folder, "coordinator"), 60, "the first step")
    coordinator.kill()
    coordinator.wait()
    for w, process in enumerate(workers):
        assert ended(process, 20) == 1 and "the coordinator is gone" in said(folder, f"w{w}")


def test_workers_that_all_get_sigterm_leave_a_snapshot(folder, calm):
    """Each has four ranks, and hears of it in the pass of any of them."""
    for _ in range(3):
        for old in folder.glob("snap_iter_*"):
            old.unlink()
        coordinator, address, flags = cluster(folder, 2, 1000000, timeout=20, replacement="continue", ranks=8)
        workers = [
            start(folder, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
            for w in (0, 1)
        ]
        wait_until(lambda: "Iteration " in said(folder, "coordinator"), 60, "the first step")
        for w in workers:
            os.kill(w.pid, signal.SIGTERM)
        assert 0 not in [ended(p, 20) for p in (*workers, coordinator)]
        named = re.search(r"go on from there with -snapshot (snap_iter_\d+.solverstate)", said(folder, "coordinator"))
        assert named and (folder / named.group(1)).exists(), said(folder, "coordinator")[-2000:]


def test_workers_that_get_sigterm_while_they_wait_for_others_leave_a_snapshot(folder, calm):
    """With `wait` the others of a worker that has left wait for its replacement, for longer than a scheduler does."""
    coordinator, address, flags = cluster(
        folder, 3, 120, timeout=20, replacement="wait", ranks=8, more=("-replacement_timeout", 60)
    )
    workers = [
        start(folder, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
        for w in range(3)
    ]
    wait_until(lambda: "Iteration " in said(folder, "coordinator"), 60, "the first step")
    os.kill(workers[0].pid, signal.SIGTERM)
    assert ended(workers[0], 20) == 1
    for w in workers[1:]:
        os.kill(w.pid, signal.SIGTERM)
    assert [ended(p, 10) for p in (*workers[1:], coordinator)] == [1, 1, 1]
    named = re.search(r"go on from there with -snapshot (snap_iter_\d+.solverstate)", said(folder, "coordinator"))
    assert named and (folder / named.group(1)).exists(), said(folder, "coordinator")[-2000:]
    done = crema(
        *"train -solver solver.prototxt -ranks 8 -workers 2 -threads 1 -model model -resume auto".split(), cwd=folder
    )
    assert done.code == 0 and f"Resuming from ./{named.group(1)}" in done.err, done.err[-2000:]
    assert sha256(folder / "model") == sha256(calm / "model")


def test_a_worker_that_cannot_be_started_again_ends_no_run(folder, calm):
    run = launched(folder, 3)
    open_files = len(os.listdir(f"/proc/{run.pid}/fd"))
    resource.prlimit(run.pid, resource.RLIMIT_NOFILE, (open_files, open_files))
    os.kill(children(run.pid)[1], signal.SIGKILL)
    assert ended(run, 60) == 0, said(folder)[-2000:]
    same(folder, calm)
    assert re.search(r"worker \d is not started again: .*ulimit -n", said(folder)), said(folder)[-2000:]


def test_too_few_workers_end_the_run_after_the_wait(folder):
    solver(folder, (folder / "net.prototxt").read_text(), max_iter=1000000)  # it is not over before the kills
    run = launched(folder, 3, "-replacement", "wait", "-replacement_timeout", 1, "-least_workers", 3)
    begin = time.monotonic()
    for _ in range(4):  # the first process and its three replacements
        pid = children(run.pid)[-1]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not running(pid), 10, "its end")
        wait_until(
            lambda: len(children(run.pid)) == 3 or run.poll() is not None or time.monotonic() > begin + 8, 20, ""
        )
        time.sleep(0.5)
    assert ended(run, 30) == 1
    assert "2 worker(s) are left, and 3 are needed; none came within 1 s" in said(folder), said(folder)[-1500:]


def test_resume_auto_takes_the_newest_whole_snapshot(folder, calm):
    run = launched(folder, 2)
    wait_until(lambda: (folder / "snap_iter_50.solverstate").exists(), 60, "a snapshot")
    for pid in (run.pid, *children(run.pid)):
        os.kill(pid, signal.SIGKILL)
    run.wait()
    (folder / "snap_iter_70.solverstate").write_bytes(b"")  # without its model
    done = crema(
        *"train -solver solver.prototxt -ranks 8 -workers 2 -threads 1 -model model -resume auto".split(), cwd=folder
    )
    assert done.code == 0 and re.search(r"Resuming from \S*snap_iter_(50|100).solverstate", done.err), done.err[-2000:]
    assert sha256(folder / "model") == sha256(calm / "model")


def test_resume_auto_without_a_snapshot_begins_and_says_so(folder):
    solver(folder, (folder / "net.prototxt").read_text(), max_iter=1)
    done = crema("train", "-solver", "solver.prototxt", "-resume", "auto", cwd=folder)
    assert done.code == 0 and "there is no snapshot snap_iter_N.solverstate yet" in done.err
    done = crema("train", "-solver", "solver.prototxt", "-resume", "yes", cwd=folder)
    assert done.code == 2 and "-resume must be auto or none, not 'yes'" in done.message
