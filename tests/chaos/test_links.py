"""Each thing that can happen to a connection, once, and what is then said: the model is the undisturbed run's in any
case. chaos.py has them at all moments.
"""

import re
import subprocess
import time

import pytest
import sockets
from nets import RANKS, write

from chaos import DEADLINE
from conftest import CREMA, children, crema, sha256, wait_until

WHY = sockets.possible()
pytestmark = pytest.mark.skipif(bool(WHY), reason=f"SKIPPED: {WHY}")
FLAGS = f"train -solver solver.prototxt -ranks {RANKS} -threads 1 -model disk/model".split()
BUSY = 4  # seconds by which a busy machine may be late
ON = r"training goes on with 3 worker\(s\) from iteration"  # nobody was lost
REPLACED = r"training goes on with 3 worker\(s\) \(new: 1\) from iteration"


@pytest.fixture(scope="module")
def calm(records, tmp_path_factory):
    """The model of the undisturbed run."""
    folder = made(tmp_path_factory.mktemp("calm"), records)
    done = crema(*FLAGS, cwd=folder)
    assert done.code == 0, done.err[-2000:]
    return sha256(folder / "disk/model")


def made(folder, records):
    write(folder, records, "statistics")
    solver = (folder / "solver.prototxt").read_text()
    (folder / "solver.prototxt").write_text(re.sub("max_iter: 90", "max_iter: 800", solver))
    (folder / "disk").mkdir()
    return folder


class Run:
    """Three workers, from their twentieth iteration on; to its end, which must be a good one."""

    def __init__(self, folder, calm):
        self.folder, self.calm = folder, calm

    def __enter__(self):
        with open(self.folder / "run.log", "w") as log:
            self.process = subprocess.Popen(
                [CREMA, *FLAGS, "-workers", "3", "-step_timeout", str(DEADLINE)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self.wait("Iteration 20[ ,]", 60)
        except BaseException:
            self.__exit__(AssertionError)
            raise
        self.workers = children(self.process.pid)
        self.control, self.mesh = sockets.connections(self.workers[1], self.process.pid, self.workers)
        return self

    def __exit__(self, failed, *_):
        try:
            if not failed:
                assert self.process.wait(60) == 0, self.said()[-2000:]
                assert sha256(self.folder / "disk/model") == self.calm
        finally:
            self.process.kill()
            self.process.wait()

    def said(self):
        return (self.folder / "run.log").read_text(errors="replace")

    def wait(self, pattern, seconds):
        """Returns how long it took."""
        begin = time.monotonic()
        wait_until(lambda: re.search(pattern, self.said()), seconds, f"{pattern} in {self.folder}/run.log")
        return time.monotonic() - begin


@pytest.fixture
def run(records, tmp_path, calm):
    with Run(made(tmp_path, records), calm) as one:
        assert len(one.control) == 1 and len(one.mesh) == 2
        yield one


@pytest.mark.parametrize("how", [sockets.cut, sockets.half_close])
def test_without_one_connection_between_workers_all_meet_again(run, how):
    how(run.mesh[0][0])
    run.wait(ON, 20)
    assert "was lost" not in run.said()


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("how", [sockets.cut, sockets.half_close])
def test_without_its_connection_to_the_coordinator_a_worker_is_lost_at_once(run, how, side):
    how(run.control[0][side])
    assert run.wait(r"worker 1 \(.*\) was lost", 20) < DEADLINE  # and not after it
    run.wait(REPLACED, 20)


@pytest.mark.parametrize("sides", [(0,), (1,), (0, 1)])
def test_where_packets_to_and_from_the_coordinator_vanish_silence_counts(run, sides):
    for pair in run.mesh:
        sockets.slow(pair[0], 20_000)  # else the run would be over before anything shows: its steps go on meanwhile
    for side in sides:
        with run.control[0][side].held() as end:
            sockets.black_hole(end)
    assert run.wait(r"worker 1 \(.*\) (has been silent for \d+ s|was lost)", 30) < DEADLINE + BUSY
    run.wait(REPLACED, 20)
    if sides == (0,):  # only the worker hears nothing: it ends
        run.wait("the coordinator is gone", 20)


def test_where_packets_between_two_workers_vanish_they_meet_again_after_twelve_deadlines(run):
    for end in run.mesh[0]:
        with end.held() as own:
            sockets.black_hole(own)
    assert 11 * DEADLINE < run.wait("has stopped: no data from worker", 60) < 12 * DEADLINE + BUSY
    run.wait(ON, 20)
    assert "was lost" not in run.said() and "silent" not in run.said()


def test_bytes_that_are_damaged_between_two_workers_are_seen_and_all_meet_again(run):
    with run.mesh[0][0].held() as own:
        own.send(b"\xff" * 16)  # in the middle of what the worker sends
    run.wait("was damaged on the way", 40)
    run.wait(ON, 20)
    assert "was lost" not in run.said()


def test_slow_links_lose_nobody(run):
    ends = [end for pair in run.control + run.mesh for end in pair]
    for end in ends:
        sockets.slow(end, 20_000)
    before = re.findall(r"Iteration (\d+)", run.said())[-1]
    time.sleep(1.5 * DEADLINE)
    assert run.process.poll() is None and int(re.findall(r"Iteration (\d+)", run.said())[-1]) - int(before) < 100
    for end in ends:
        sockets.slow(end)
    assert run.process.wait(60) == 0 and "training goes on" not in run.said()


def test_a_machine_without_power_closes_nothing_and_silence_counts(run):
    begin = time.monotonic()
    severed = sockets.Severed(run.workers[1])
    try:
        assert len(severed.sockets) == 4  # its door as well
        run.wait(r"worker 1 \(.*\) has been silent for \d+ s", 30)
        assert DEADLINE - 1.5 < time.monotonic() - begin < DEADLINE + BUSY  # its last heartbeat was a second before
        run.wait(REPLACED, 20)
    finally:
        severed.close()
