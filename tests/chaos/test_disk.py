"""A disk that is full, of one worker's machine or of all: the run goes on, or ends with the place; no half file is left
under a snapshot's name; with room again `-resume auto` leads to the undisturbed run's files.
"""

import os
import re

import pytest
from disk import Disk, StillDisk
from nets import RANKS, write

from chaos import Home, run
from conftest import sha256, wait_until

FULL = r"cannot write \S+/{}.* No space left on device.*; no part of it was left behind"


@pytest.fixture
def small(tmp_path):
    try:
        disk = Disk(tmp_path / "small", megabytes=4)
    except OSError as e:
        pytest.skip(f"SKIPPED: there is no disk to fill: {e}")
    with disk:
        yield disk


@pytest.fixture(scope="module")
def calm(records, tmp_path_factory):
    """The files of the undisturbed run."""
    home = fresh(Home(tmp_path_factory.mktemp("calm") / "run"), records)
    done = run(home, "-workers", "2")
    assert done.code == 0 and len(files(home.disk)) > 10, done.log[-2000:]
    return files(home.disk)


def fresh(home, records):
    home.empty()
    write(home.folder, records, "statistics")
    return home


def files(folder):
    return {f.name: sha256(f) for f in folder.iterdir() if f.name != "filler"}


# Bytes: for nothing, for a part of a model, for a model (47,588), for a part of a state (94,386), ..., for all but one.
ROOMS = [0, 4096, 40_000, 60_000, 140_000, 200_000, 500_000, 850_000]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_full_disk_ends_a_run_with_the_place_and_no_half_file(records, tmp_path, small, calm, workers):
    home = Home(tmp_path / "run", small)
    counts = set()
    for room in ROOMS if workers == 1 else ROOMS[::2]:
        fresh(home, records)
        small.fill(room)
        done = run(home, "-workers", str(workers))
        assert done.code == 1 and not done.left, (room, done.log[-2000:])
        last = done.log[done.log.rindex("crema: error:") :]
        assert re.search(FULL.format("(snap_iter_|model)"), last), (room, last)
        there = files(small.path)
        assert there == {f: calm[f] for f in there}, room
        counts.add(len(there))
        small.free()
        done = run(home, "-workers", str(workers), "-resume", "auto")
        assert done.code == 0 and files(small.path) == calm, (room, done.log[-2000:])
    assert {0} < counts and (workers > 1 or {1} < counts and max(counts) > 8), counts


def test_the_full_disk_of_one_machine_costs_its_worker(records, tmp_path, small, calm):
    """Each worker has a machine, which is a folder, of its own; that of the first one is full."""
    homes = [fresh(Home(tmp_path / f"machine{w}", small if w == 0 else None), records) for w in range(3)]
    small.fill()
    token, log = tmp_path / "token", homes[2].folder / "coordinator.log"
    token.write_bytes(os.urandom(32))
    flags = f"-solver solver.prototxt -ranks {RANKS} -workers 3 -token_file {token}".split()
    processes = [homes[2].start("coordinator.log", "coordinator", *flags)]
    try:
        wait_until(lambda: "Listening on " in log.read_text(), 30, "the coordinator's address")
        address = re.search(r"Listening on (\S+)", log.read_text())[1]
        own = ["-threads", 1, "-model", "disk/model", "-coordinator", address]
        processes += [home.start("run.log", "worker", *flags, *own, "-worker", w) for w, home in enumerate(homes)]
        ends = [p.wait(60) for p in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert ends == [0, 1, 0, 0], log.read_text()[-2000:]
    assert re.search(r"worker 0 \(.*\) failed.*" + FULL.format("snap_iter_15"), log.read_text()), log.read_text()
    assert [files(home.disk) for home in homes] == [{}, calm, {}]


def test_a_disk_that_stands_still_ends_the_run_with_an_error(records, tmp_path):
    try:
        disk = StillDisk(tmp_path / "still", tmp_path / "image")
    except OSError as e:
        pytest.skip(f"SKIPPED: there is no disk to freeze: {e}")
    with disk:
        home = fresh(Home(tmp_path / "run", disk), records)
        text = (home.folder / "solver.prototxt").read_text()
        (home.folder / "solver.prototxt").write_text(re.sub(r"max_iter: \d+", "max_iter: 100000", text))

        def freeze(process, _):
            log = home.folder / "run.log"
            wait_until(lambda: "Iteration 20 " in log.read_text(), 60, "iteration 20")
            disk.freeze()

        done = run(home, *"-workers 2 -step_timeout 1 -replacement fail".split(), disturb=freeze, limit=40)
        disk.thaw()
        assert done.code == 1, done.log[-2000:]
        assert "crema: error: worker " in done.log and "was killed and has not ended: it waits for a disk" in done.log
