"""Hosts of a coordinator that do not read what it says."""

import fcntl
import os
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest

from conftest import CREMA, ROOT, running, wait_until
from runs import endless  # noqa: F401 (a fixture)

sys.path.insert(0, str(ROOT / "python"))
from tensorflowonspark import _encoding  # noqa: E402

STEP_TIMEOUT = 2
LOST, FAILED, DONE, PROGRESS, LISTENING = 15, 7, 8, 3, 1  # fields of wire.Event


def message(numbers):
    """Of fields by number: ints, seconds (floats), bytes or text."""

    def field(number, value):
        if isinstance(value, int):
            return _encoding.varint(number << 3) + _encoding.varint(value)
        if isinstance(value, float):
            return _encoding.varint(number << 3 | 1) + struct.pack("<d", value)
        return _encoding.field(number, value.encode() if isinstance(value, str) else value)

    return b"".join(field(n, v) for n, v in numbers.items())


def delimited(data):
    return _encoding.varint(len(data)) + data


def parsed(data):
    """{field number: int or bytes}."""
    return {
        number: value if isinstance(value, int) else data[value[0] : value[1]]
        for number, _, value in _encoding.fields(data, 0, len(data))
    }


def events(file):
    """(field, content) of each event until the end of the stream."""
    while head := file.read(1):
        while head[-1] > 127:
            head += file.read(1)
        yield next(iter(parsed(file.read(_encoding.read_varint(head, 0, len(head))[0])).items()))


def waiting(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"1234"))[0]


@pytest.fixture
def child(endless):  # noqa: F811
    """Starts a process that gets a Job, and ends it behind the test; child.all are those that were started."""

    def start(subcommand, job, stdout=subprocess.DEVNULL):
        log = open(endless / f"{subcommand}{len(start.all)}.log", "w")
        process = subprocess.Popen(
            [CREMA, subcommand, "-job", "-"], cwd=endless, stdin=subprocess.PIPE, stdout=stdout, stderr=log
        )
        start.all.append(process)
        tell(process, job)
        return process

    start.all = []
    yield start
    for process in start.all:
        process.kill()
        process.wait()


def tell(process, what):
    process.stdin.write(delimited(message(what)))
    process.stdin.flush()


def job_of(folder):
    """Of two workers and a coordinator that gives up who is silent for STEP_TIMEOUT."""
    plan = subprocess.run(
        [CREMA, "plan", "-wire", "-solver", "solver.prototxt"], cwd=folder, check=True, capture_output=True
    ).stdout
    solver = parsed(plan[_encoding.read_varint(plan, 0, len(plan))[1] :])[1]
    timeouts = {17: 30.0, 18: float(STEP_TIMEOUT)}
    return {1: solver, 2: 2, 3: 2, 7: "127.0.0.1", 8: os.urandom(32), 15: 1, **timeouts, 37: 1, 40: "fail"}


def test_workers_train_on_while_the_host_of_their_coordinator_reads_nothing(endless, child):  # noqa: F811
    """A pipe of one page holds some 20 seconds of progress. Then the coordinator waits for room in it, and workers that
    heard nothing for two seconds would give it up.
    """
    job = job_of(endless)
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    coordinator = child("coordinator", job, writing)
    os.close(writing)
    with open(reading, "rb", buffering=0) as said:
        said_events = events(said)
        kind, content = next(said_events)
        assert kind == LISTENING
        workers = [child("worker", {**job, 4: w, 6: parsed(content)[1]}) for w in (0, 1)]
        wait_until(lambda: waiting(reading) > 4096 - 200, 90, "a full pipe")
        time.sleep(3 * STEP_TIMEOUT)
        assert all(running(p.pid) for p in child.all)
        heard = []
        listener = threading.Thread(target=lambda: heard.extend(said_events))
        listener.start()
        for worker in workers:
            tell(worker, {6: message({2: 1})})  # to stop
        listener.join(30)
        assert not listener.is_alive() and running(coordinator.pid), "it answers who comes late"
        coordinator.stdin.close()
        assert coordinator.wait(30) == 0
    kinds = [kind for kind, _ in heard]
    assert kinds[-1] == DONE and LOST not in kinds and FAILED not in kinds, kinds
    steps = [parsed(content).get(1, 0) for kind, content in heard if kind == PROGRESS]
    gaps = sorted(b - a for a, b in zip(steps, steps[1:]))
    assert gaps[0] > 0 and gaps[-1] > 5 * gaps[len(gaps) // 2], steps  # of what waited, the newest alone came
    assert [w.wait(30) for w in workers] == [0, 0]
