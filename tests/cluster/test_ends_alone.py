"""Whoever is asked to end, and waits for others, ends within seconds with a snapshot. The step timeout
is 60 s, and so is the time for replacements.
"""

import os
import re
import signal

import pytest

from conftest import children, running, wait_until
from runs import begun, cluster, ended, endless, goes_on, start  # noqa: F401 (a fixture)


def ended_alone(folder, process, log, code, told):
    """That process ended within seconds, and named the snapshot of its last update; a run goes on from there."""
    assert ended(process, 25) == code, (folder / log).read_text()[-2000:]
    text = (folder / log).read_text()
    said = re.search(told + r" stopped at iteration (\d+) of 1000000; go on from there with -snapshot (\S+)", text)
    assert said and said.group(2) == f"snap_iter_{said.group(1)}.solverstate", text[-2000:]
    assert (folder / said.group(2)).exists()
    goes_on(folder, said.group(1))


WAITED = "training was asked to end, and waited for workers that did not come: it has"


@pytest.mark.parametrize("sign,code", [(signal.SIGTERM, 143), (signal.SIGINT, 3)])
def test_a_run_that_waits_for_a_stopped_worker_ends_when_it_is_asked_to(endless, sign, code):
    run = start(endless, *"train -solver solver.prototxt -ranks 3 -workers 3 -threads 1".split())
    wait_until(lambda: begun(endless), 30, "the first step")
    workers = children(run.pid)
    os.kill(workers[1], signal.SIGSTOP)
    os.kill(run.pid, sign)
    ended_alone(endless, run, "run.log", code, WAITED)
    assert not [p for p in workers if running(p)]


def test_a_run_that_waits_for_a_replacement_ends_when_it_is_asked_to(endless):
    """The process that is to be it is stopped before it has joined."""
    run = start(endless, *"train -solver solver.prototxt -ranks 3 -workers 3 -threads 1 -replacement wait".split())
    wait_until(lambda: begun(endless), 30, "the first step")
    before = children(run.pid)
    os.kill(before[1], signal.SIGKILL)

    def stopped():
        new = [p for p in children(run.pid) if p not in before]
        for pid in new:
            os.kill(pid, signal.SIGSTOP)
        return new

    wait_until(stopped, 20, "the replacement")
    os.kill(run.pid, signal.SIGTERM)
    ended_alone(endless, run, "run.log", 143, WAITED)


def test_a_worker_that_waits_for_a_stopped_one_ends_when_it_is_asked_to(endless):
    coordinator, address, flags = cluster(endless, 2, 1000000, timeout=60, replacement="continue")
    workers = [
        start(endless, "worker", *flags, "-threads", 1, "-coordinator", address, "-worker", w, name=f"w{w}")
        for w in (0, 1)
    ]
    wait_until(lambda: "Iteration " in (endless / "coordinator.log").read_text(), 30, "the first step")
    os.kill(workers[0].pid, signal.SIGSTOP)
    os.kill(workers[1].pid, signal.SIGTERM)
    ended_alone(endless, workers[1], "w1.log", 1, r"a worker was told to end \(SIGTERM\), so training has")
    for process in (workers[0], coordinator):
        process.kill()
        process.wait()
