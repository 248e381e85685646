"""Workers on machines of their own, between which all packets vanish: what is said, when, and that the model is the
undisturbed run's.
"""

import contextlib
import os
import random
import re
import time

import pytest
from machines import Machines
from nets import RANKS, write

from chaos import DEADLINE, Home, run
from conftest import CREMA, sha256, wait_until

COORDINATOR, WORKERS = 0, (1, 2, 3)  # machines


LONG = pytest.mark.skipif(not os.environ.get("CREMA_LONG_CHAOS"), reason="SKIPPED: takes minutes; CREMA_LONG_CHAOS=1")


@pytest.fixture(scope="module")
def calm(records, tmp_path_factory):
    """The model of the undisturbed run."""
    home = fresh(Home(tmp_path_factory.mktemp("calm") / "run"), records)
    assert run(home).code == 0
    return sha256(home.disk / "model")


def fresh(home, records):
    home.empty()
    write(home.folder, records, "statistics")
    solver = (home.folder / "solver.prototxt").read_text()
    (home.folder / "solver.prototxt").write_text(re.sub("max_iter: 90", "max_iter: 200", solver))
    return home


class Cluster:
    """A coordinator and three workers, slow enough that something can happen to them before they are done."""

    def __init__(self, folder, records, megabits):
        self.home = fresh(Home(folder / "run"), records)
        self.ends = contextlib.ExitStack()
        with contextlib.ExitStack() as unfinished:
            unfinished.enter_context(self.ends)
            self.machines = Machines(4, megabits)
            self.ends.callback(self.machines.close)
            self.begin()
            unfinished.pop_all()

    def begin(self):
        (self.home.folder / "token").write_bytes(os.urandom(32))
        flags = f"-solver solver.prototxt -ranks {RANKS} -workers 3 -token_file token -step_timeout {DEADLINE}".split()
        self.coordinator = self.start(COORDINATOR, "coordinator", *flags)
        self.wait("Listening on ", 30)
        own = ["-threads", 1, "-model", "disk/model", "-coordinator", re.search(r"Listening on (\S+)", self.said())[1]]
        self.workers = {m: self.start(m, "worker", *flags, *own, "-worker", m - 1) for m in WORKERS}
        self.wait("Iteration ", 60)

    def start(self, machine, kind, *flags):
        command = [CREMA, kind, "-host", self.machines.address(machine), *map(str, flags)]
        process = self.home.launch(f"{machine}.log", self.machines.all[machine].command(self.home.folder, *command))
        self.ends.callback(process.wait)
        self.ends.callback(process.kill)
        return process

    def said(self, machine=COORDINATOR):
        return (self.home.folder / f"{machine}.log").read_text(errors="replace")

    def wait(self, pattern, seconds):
        """Returns how long it took."""
        begin = time.monotonic()
        wait_until(lambda: re.search(pattern, self.said()), seconds, f"{pattern} in {self.home.folder}/0.log")
        return time.monotonic() - begin

    def codes(self, *machines, limit=60):
        return [self.workers[m].wait(limit) for m in machines] + [self.coordinator.wait(limit)]

    def model(self):
        return sha256(self.home.disk / "model")


@pytest.fixture
def cluster(records, tmp_path, request):
    try:
        one = Cluster(tmp_path, records, getattr(request, "param", 20))
    except OSError as e:
        pytest.skip(f"SKIPPED: there are no networks of our own: {e}")
    with one.ends:
        yield one


def test_a_machine_that_is_cut_off_is_given_up(cluster, calm):
    cluster.machines.cut_off(2)
    assert cluster.wait(r"worker 1 \(.*\) has been silent for \d+ s", 30) < DEADLINE + 4
    cluster.wait(r"training goes on with 2 worker\(s\) from iteration", 30)
    assert cluster.codes(1, 3) == [0, 0, 0] and cluster.model() == calm
    assert cluster.workers[2].wait(20) == 1 and "the coordinator is gone" in cluster.said(2)


def test_a_machine_that_is_back_before_the_deadline_is_not(cluster, calm):
    cluster.machines.cut_off(2)
    time.sleep(0.2 * DEADLINE)
    cluster.machines.cut_off(2, "del")
    assert cluster.codes(*WORKERS) == [0, 0, 0, 0] and cluster.model() == calm
    assert "training goes on" not in cluster.said()


def test_without_the_coordinators_machine_all_end_and_the_run_is_resumed(cluster, calm):
    begin = time.monotonic()
    cluster.machines.cut_off(COORDINATOR)
    codes = cluster.codes(*WORKERS)
    assert codes == [1, 1, 1, 1] and time.monotonic() - begin < 3 * (DEADLINE + 2), cluster.said()
    done = run(cluster.home, "-resume", "auto")
    assert done.code == 0 and cluster.model() == calm


@LONG
def test_of_two_machines_between_which_packets_vanish_one_is_given_up(cluster, calm):
    cluster.machines.lose(2, 3), cluster.machines.lose(3, 2)
    took = cluster.wait(r"worker \d \(.*\) and others cannot reach each other, three times in a row", 240)
    assert took < 12 * DEADLINE + 3 * 30 + 5
    cluster.wait(r"training goes on with 2 worker\(s\) from iteration", 30)
    assert sorted(cluster.codes(*WORKERS)) == [0, 0, 0, 1] and cluster.model() == calm


@LONG
@pytest.mark.parametrize("seed", range(8))
def test_packets_that_vanish_between_machines_at_any_time(cluster, calm, seed):
    """In one direction or both, for less or more than workers try to meet: whoever is given up, the run goes on."""
    draw, lost = random.Random(seed), {}  # (sender, receiver): when it ends
    for _ in range(draw.choice([1, 2, 3])):
        time.sleep(draw.uniform(0, 2))
        pair = tuple(draw.sample(WORKERS, 2))
        end = time.monotonic() + draw.choice([0.5, 3, 30, 70])
        for sender, receiver in [pair, pair[::-1]][: draw.choice([1, 2])]:
            if (sender, receiver) not in lost:
                cluster.machines.lose(sender, receiver)
                lost[sender, receiver] = end
    while lost and cluster.coordinator.poll() is None:
        for pair in [p for p, end in lost.items() if end < time.monotonic()]:
            cluster.machines.heal(*pair)
            del lost[pair]
        time.sleep(0.1)
    codes = cluster.codes(*WORKERS, limit=200)
    assert codes[-1] == 0 and cluster.model() == calm, cluster.said()[-2000:]
