"""Slower workers get fewer ranks, and workers that come later join; the model is that of the undisturbed run."""

import contextlib
import os
import re
import signal
import threading

import pytest

import test_sequences
from conftest import crema, lenet, sha256, solver, wait_until
from runs import cluster, ended, start
from test_survival import said


def workers_of(folder, flags, address, numbers):
    return [
        start(folder, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
        for w in numbers
    ]


@contextlib.contextmanager
def slowed(pid, stopped=0.08, running=0.02):
    """Stops the process for most of the time, as another load on its machine would."""
    over = threading.Event()

    def stop_and_go():
        while not over.wait(running):
            os.kill(pid, signal.SIGSTOP)
            over.wait(stopped)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def stopped_with_a_snapshot(folder, coordinator, workers):
    """Asks all to end, and returns the iteration at which they did."""
    for w in workers:
        w.send_signal(signal.SIGTERM)
    for process in (*workers, coordinator):
        ended(process, 60)
    at = re.search(r"go on from there with -snapshot snap_iter_(\d+).solverstate", said(folder, "coordinator"))
    assert at, said(folder, "coordinator")[-2000:]
    return int(at.group(1))


def same_as_undisturbed(folder, net, at, **settings):
    """The snapshot of iteration `at` has the bits of a run by one process."""
    calm = folder / "calm"
    calm.mkdir()
    solver(calm, net, max_iter=at, **settings)
    done = crema("train", "-solver", "solver.prototxt", "-ranks", 8, "-threads", 1, cwd=calm, timeout=300)
    assert done.code == 0, done.err[-2000:]
    for kind in ("caffemodel", "solverstate"):
        assert sha256(folder / f"snap_iter_{at}.{kind}") == sha256(calm / f"snap_iter_{at}.{kind}")


def lenet_case(records):
    return lenet(records), {}


def sequences_case(records):
    """Each rank carries the state of an LSTM from batch to batch, which moves with it."""
    return test_sequences.NET % {"records": records, "cont": 1}, {"extra": "clip_gradients: 3; base_lr: 0.1"}


@pytest.mark.parametrize("case", [lenet_case, sequences_case])
def test_a_slow_worker_gets_fewer_ranks(records, tmp_path, case):
    net, settings = case(records)
    solver(tmp_path, net, **settings)
    coordinator, address, flags = cluster(
        tmp_path, 3, 10000000, timeout=60, replacement="continue", ranks=8, more=("-rebalance", 2)
    )
    workers = workers_of(tmp_path, flags, address, range(3))
    wait_until(lambda: "Iteration 10 " in said(tmp_path, "w0"), 60, "the tenth iteration")
    goes_on = (
        r"training goes on with 3 worker\(s\) from iteration \d+, after \d+\.\d\d s; ranks of worker\(s\) 0, 1, 2: "
    )
    fewer = goes_on + r"\d, [12], \d, before 3, 3, 2, as worker 1 takes \S+ s for a rank"
    with slowed(workers[1].pid):
        wait_until(lambda: re.search(fewer, said(tmp_path, "coordinator")), 120, "fewer ranks for worker 1")
    at = stopped_with_a_snapshot(tmp_path, coordinator, workers)
    same_as_undisturbed(tmp_path, net, at, **settings)


def test_a_run_grows_with_the_workers_that_come_and_shrinks_with_those_that_leave(records, tmp_path):
    net, settings = sequences_case(records)
    solver(tmp_path, net, **settings)
    coordinator, address, flags = cluster(
        tmp_path, 4, 10000000, timeout=60, replacement="continue", ranks=8, more=("-first_workers", 2)
    )

    def goes_on(line):
        wait_until(lambda: re.search(line, said(tmp_path, "coordinator")), 60, line)

    workers = workers_of(tmp_path, flags, address, [3, 1])
    wait_until(lambda: "Iteration 10 " in said(tmp_path, "w1"), 60, "the tenth iteration")
    for number, count in ((0, 3), (2, 4)):
        workers += workers_of(tmp_path, flags, address, [number])
        goes_on(rf"training goes on with {count} worker\(s\) \(new: {number}\) from iteration \d+, after \d+\.\d\d s")
    leaves = workers.pop(0)
    leaves.send_signal(signal.SIGTERM)
    goes_on(r"training goes on with 3 worker\(s\) from iteration \d+")
    assert ended(leaves, 20) == 1
    at = stopped_with_a_snapshot(tmp_path, coordinator, workers)
    same_as_undisturbed(tmp_path, net, at, **settings)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("-first_workers", 3), "-first_workers must be 0 to 2, the number of workers, not 3"),
        (("-first_workers", 1, "-least_workers", 2), "-first_workers 1 is less than -least_workers 2"),
        (("-rebalance", -1), "-rebalance must be a number of seconds, or 0 to leave"),
    ],
)
def test_wrong_numbers_are_refused(records, tmp_path, flags, sentence):
    solver(tmp_path, lenet(records))
    done = crema(*"train -solver solver.prototxt -workers 2 -ranks 2".split(), *flags, cwd=tmp_path)
    assert done.code == 2 and sentence in done.message, done.err[-500:]
