"""Jobs that are disturbed while they run: their processes, their log, records of our own, what is left of them."""

import base64
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, children, sha256
from spark_jobs import ENVIRONMENT, FILES, command
from support import judge

FRAMES = ("lenet_dataframe_solver.prototxt", "lenet_dataframe_train_test.prototxt")
MASTER = "local-cluster[3,1,1024]"
SNAPSHOT = 400  # longer() has one every so many iterations


def descendants(pid):
    mine = children(pid)
    return mine + [d for c in mine for d in descendants(c)]


def processes(run, word):
    """Those of the job whose command line has the word."""

    def has(pid):
        try:
            return word in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return False

    return [p for p in descendants(run.pid) if has(p)]


def executors(run):
    return processes(run, "CoarseGrainedExecutorBackend")


def marked_processes(bed, what):
    """Processes that jobs of this test bed started and whose command line contains these words."""
    found = []
    for pid in bed.processes.marked():
        with contextlib.suppress(OSError):
            if what in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                found.append(pid)
    return found


def marked_executors(bed):
    """Without the shells that start them on YARN."""
    found = []
    for pid in marked_processes(bed, "CoarseGrainedExecutorBackend"):
        with contextlib.suppress(OSError):
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "java":
                found.append(pid)
    return found


def longer(job, file, iterations):
    text = (job / file).read_text()
    for field, value in (("max_iter", iterations), ("snapshot", SNAPSHOT), ("test_interval", 500), ("test_iter", 5)):
        text = re.sub(rf"^{field}: .*", f"{field}: {value}", text, flags=re.M)
    (job / file).write_text(text)


def files_of(folder):
    return {
        p.name: sha256(p) for p in sorted(folder.glob("*iter*")) if "solverstate" in p.name or "caffemodel" in p.name
    }


@contextlib.contextmanager
def started(job, master, *flags, **more):
    """A job that writes job/driver.log, in a session of its own; killed at the end if it is still there."""
    with open(job / "driver.log", "w") as log:
        run = subprocess.Popen(
            command(job, master, *flags, **more),
            cwd=job,
            env=ENVIRONMENT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield run
    finally:
        run.kill()


def said(job):
    return (job / "driver.log").read_text()


def ended(job, master, *flags, disturb=None, **more):
    """The log of a job that ends well although disturb(run) is called meanwhile."""
    with started(job, master, *flags, **more) as run:
        if disturb:
            disturb(run)
        code = run.wait(200)
    assert code == 0, said(job)[-4000:]
    return said(job)


def trained(job, folder, *flags, disturb=None, files=FILES, master=MASTER, **more):
    """Runs the job, with four ranks, into the folder; returns the driver's log and what it wrote."""
    if "-resume" not in flags:
        shutil.rmtree(folder, ignore_errors=True)  # a snapshot names its model by its whole path
        folder.mkdir()
    flags = ("-train", "-clusterSize", 4, *flags)
    text = ended(job, master, *flags, disturb=disturb, model=f"file:{folder}/model", files=files, **more)
    return text, sha256(folder / "model"), files_of(folder)


def expect_files(text, wanted, got):
    """The (model, snapshots) of a disturbed run of longer(), whose log is `text`, are the undisturbed one's: but that
    another worker may have taken a snapshot some steps later, where the one that wrote it was lost with it.
    """
    wrong = judge.differences(wanted[1], got[1], judge.late(text, got[1], SNAPSHOT))
    assert got[0] == wanted[0] and not wrong, f"{wrong}\n{text[-4000:]}"


class Undisturbed:
    """What jobs leave that nobody disturbs, each trained once: a snapshot names its model, and a model its records, by
    the whole path, so those that are compared have the folder `run`, and records of their own in `records`.
    """

    def __init__(self, folder):
        self.run, self.records, self.known = folder / "run", folder, {}

    def of(self, job, files=FILES):
        """Hash of the model, and of the snapshots by name, that the job with these files leaves in `run`."""
        texts = tuple((job / name).read_text() for name in files)
        if texts not in self.known:
            self.known[texts] = trained(job, self.run, files=files, master="local[2]")[1:]
        return self.known[texts]


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    return Undisturbed(tmp_path_factory.mktemp("disturbed"))


def write_pictures(path, count, seed):
    draw = random.Random(seed)
    with open(path, "w") as out:
        for i in range(count):
            label = draw.randrange(10)
            pixels = bytes(draw.randrange(90) + (150 if (k * 7 + k // 28) % 10 == label else 0) for k in range(784))
            data = base64.b64encode(pixels).decode()
            row = {
                "id": str(i),
                "label": label,
                "channels": 1,
                "height": 28,
                "width": 28,
                "encoded": False,
                "data": data,
            }
            out.write(json.dumps(row) + "\n")


def frames_job(job, folder, train=800, test=100):
    """The example whose records are data frames, on ones of our own with so many rows, in the folder."""
    for name in FRAMES:
        text = (ROOT / "examples" / name).read_text()
        for part, count in (("train", train), ("test", test)):
            write_pictures(folder / f"{part}.json", count, len(part))
            text = re.sub(rf'source: "\S*{part}\S*"', f'source: "file:{folder}/{part}.json"', text)
        text = text.replace("batch_size: 64", "batch_size: 8").replace("batch_size: 100", "batch_size: 20")
        text = re.sub(r'dataframe_format: ".*"', 'dataframe_format: "json"', text)
        (job / name).write_text(text)
