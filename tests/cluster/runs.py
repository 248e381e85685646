"""Training runs that do not end by themselves, and clusters made of single processes."""

import os
import re
import signal
import subprocess

import pytest

from conftest import CREMA, lenet, solver, wait_until


@pytest.fixture
def endless(records, tmp_path):
    solver(tmp_path, lenet(records), max_iter=1000000)
    return tmp_path


def start(folder, *arguments, name="run"):
    log = open(folder / f"{name}.log", "w")
    return subprocess.Popen([CREMA, *map(str, arguments)], cwd=folder, stderr=log, stdout=log, stdin=subprocess.DEVNULL)


def ended(process, seconds):
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        pytest.fail(f"still running after {seconds} s")


def begun(folder, name="run"):
    return "Iteration 0" in (folder / f"{name}.log").read_text()


def cluster(folder, workers, max_iter, timeout=3, replacement="fail", ranks=None, more=()):
    """Starts a coordinator as a process of its own. Returns it, its address, and the workers' flags."""
    (folder / "token").write_bytes(os.urandom(32))
    (folder / "solver.prototxt").write_text(
        re.sub(r"max_iter: \d+", f"max_iter: {max_iter}", (folder / "solver.prototxt").read_text())
    )
    flags = [
        *"-solver solver.prototxt -token_file token -ranks".split(),
        ranks or workers,
        "-workers",
        workers,
        "-join_timeout",
        timeout,
        "-step_timeout",
        timeout,
        "-replacement",
        replacement,
        *more,
    ]
    coordinator = start(folder, "coordinator", *flags, name="coordinator")
    log = folder / "coordinator.log"
    wait_until(lambda: re.search(r"Listening on (\S+:\d+)", log.read_text()), 10, "the coordinator's address")
    return coordinator, re.search(r"Listening on (\S+:\d+)", log.read_text()).group(1), flags


def on_machines(folder, machines, address, flags):
    """Workers 0, 1, ... each in a working folder of its own, with the run's files in `folder`."""
    flags = [str(folder / f) if f in ("solver.prototxt", "token") else str(f) for f in flags]
    workers = []
    for w, machine in enumerate(machines):
        with open(folder / f"w{w}.log", "w") as log:
            command = [CREMA, "worker", *flags, "-coordinator", address, "-worker", str(w)]
            workers.append(subprocess.Popen(command, cwd=machine, stderr=log))
    return workers


def goes_on(folder, iteration):
    """A run goes on from that snapshot."""
    resumed = start(
        folder,
        *"train -solver solver.prototxt -ranks".split(),
        3,
        "-snapshot",
        f"snap_iter_{iteration}.solverstate",
        name="again",
    )
    wait_until(
        lambda: "Iteration " in (folder / "again.log").read_text().split("Starting Optimization")[-1],
        20,
        "the resumed run",
    )
    os.kill(resumed.pid, signal.SIGINT)
    assert ended(resumed, 15) == 0
