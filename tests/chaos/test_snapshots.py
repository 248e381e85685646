"""A snapshot whose writer is killed before each of the system calls of its writing. What is there under a snapshot's
name is whole, and the run goes on to the undisturbed one's model: of a writer alone by `-resume auto`, else by the
others. Of HDF5 and of files that are written over some calls are drawn; CREMA_LONG_CHAOS=1 takes all of them.
"""

import os
import random
import re
import sys

import pytest
from nets import RANKS, write
from system_calls import calls_about, killed_at, possible

from chaos import Home, run
from conftest import CREMA, sha256, wait_until

WHY = possible()
pytestmark = pytest.mark.skipif(bool(WHY), reason=f"SKIPPED: {WHY}")
PART = b"snap_iter_30."
LAST = 4  # calls behind the one that gives the last file its name: the folder is opened, flushed, closed; one more
SOLVER = f"-solver solver.prototxt -ranks {RANKS}".split()
OWN = "-threads 1 -model disk/model".split()
ALONE = [CREMA, "train", *SOLVER, *OWN]


class Case:
    """kind: BINARYPROTO, HDF5, or `over`: a snapshot of an earlier run with another seed is there under that name."""

    def __init__(self, folder, records, kind):
        self.home, self.records, self.kind, self.old, self.old_hashes = Home(folder), records, kind, {}, {}
        self.fresh()
        self.calls = calls_about(PART, folder, "calm.log", ALONE) + LAST
        self.calm = self.files()
        assert len([f for f in self.calm if "snap_iter_30." in f]) == 2 and len(self.calm) > 10, self.calm
        if kind == "over":
            self.fresh(seed=2)
            assert run(self.home, "-workers", "1").code == 0
            self.old = {f: (self.home.disk / f).read_bytes() for f in self.files() if "_30." in f}
            self.old_hashes = {f: h for f, h in self.files().items() if f in self.old}
            self.fresh()
            self.calls = calls_about(PART, folder, "calm.log", ALONE) + LAST
            assert len(self.old) == 2 and not set(self.old_hashes.items()) & set(self.calm.items())

    def fresh(self, seed=1):
        self.home.empty()
        write(self.home.folder, self.records, "statistics")
        with open(self.home.folder / "solver.prototxt", "r+") as solver:
            text = solver.read().replace("random_seed: 1\n", f"random_seed: {seed}\n")
            solver.seek(0)
            solver.write(text)
        if self.kind == "HDF5":
            with open(self.home.folder / "solver.prototxt", "a") as solver:
                solver.write("snapshot_format: HDF5\n")
        for name, content in self.old.items():
            (self.home.disk / name).write_bytes(content)

    def files(self):
        return {f.name: sha256(f) for f in self.home.disk.iterdir()}

    def whole(self):
        """How many files of that snapshot are there; None when they are still the earlier run's."""
        there = {f: h for f, h in self.files().items() if ".crema-tmp-" not in f}
        if self.old and {f: there.get(f) for f in self.old} == self.old_hashes:
            return None
        state = "snap_iter_30.solverstate"
        if self.old and there.get(state) == self.old_hashes[state]:
            del there[state]  # it lies beside another model than its own, as its sums tell
        both = {
            f: {self.calm[f], self.old_hashes.get(f)} if f != state and state not in there else {self.calm[f]}
            for f in there
        }
        assert all(there[f] in both[f] for f in there), there
        return len([f for f in there if "snap_iter_30." in f])


@pytest.mark.parametrize("kind", ["BINARYPROTO", "HDF5", "over"])
def test_a_writer_alone_leaves_whole_snapshots(records, tmp_path, kind):
    case = Case(tmp_path / "run", records, kind)
    assert 10 < case.calls < 1000
    seen = set()
    all_of_them = kind == "BINARYPROTO" or os.environ.get("CREMA_LONG_CHAOS")
    drawn = sorted({0, case.calls - 1, *random.Random(kind).sample(range(case.calls), 12)})
    for n in range(case.calls) if all_of_them else drawn:
        case.fresh()
        assert killed_at(n, PART, case.home.folder, "killed.log", ALONE), n
        seen.add(case.whole())
        if case.whole() is None:
            continue  # a run cannot know that they are another's
        done = run(case.home, "-resume", "auto")
        assert done.code == 0 and re.search("Resuming from .*snap_iter_(15|30)", done.log), done.log[-2000:]
        assert case.files() == case.calm
    assert ({None, 1, 2} if case.old else {0, 2}) <= seen, seen


def test_the_others_take_the_snapshot_of_a_worker_that_is_killed_in_it(records, tmp_path):
    case = Case(tmp_path / "run", records, "BINARYPROTO")
    for n in random.Random(7).sample(range(case.calls - LAST), 8):
        case.fresh()
        (case.home.folder / "token").write_bytes(os.urandom(32))
        flags = [*SOLVER, *"-token_file token -workers 3".split()]
        others = [case.home.start("run.log", "coordinator", *flags)]
        try:
            log = case.home.folder / "run.log"
            wait_until(lambda log=log: "Listening on " in log.read_text(), 30, "the coordinator's address")
            own = [*OWN, "-coordinator", re.search(r"Listening on (\S+)", log.read_text())[1], "-worker"]
            others += [case.home.start(f"worker{w}.log", "worker", *flags, *own, w) for w in (1, 2)]
            assert killed_at(n, PART, case.home.folder, "worker0.log", [CREMA, "worker", *flags, *own, "0"]), n
            assert [p.wait(60) for p in others] == [0, 0, 0], log.read_text()[-2000:]
        finally:
            for process in others:
                process.kill()
                process.wait()
        assert "was lost" in log.read_text() and case.files() == case.calm


def test_a_writer_of_half_files_is_seen(tmp_path):
    """It writes under the file's own name: killed between two calls it must leave a half file, or nothing is tested."""
    calls = "f = os.open('snap_iter_30.x', os.O_CREAT | os.O_WRONLY); os.write(f, b'1'); os.write(f, b'2')"
    command = [sys.executable, "-c", f"import os; {calls}"]
    found = set()
    for n in range(calls_about(b"snap_iter_30.x", tmp_path, "log", command) + 3):
        (tmp_path / "snap_iter_30.x").unlink(missing_ok=True)
        killed_at(n, b"snap_iter_30.x", tmp_path, "log", command)
        path = tmp_path / "snap_iter_30.x"
        found.add(path.read_bytes() if path.exists() else None)
    assert found >= {None, b"", b"1", b"12"}
