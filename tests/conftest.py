"""Shared by the tests of several modules: the executable, small data sets, and helpers that run commands with a
deadline.
"""

import hashlib
import os
import pathlib
import random
import signal
import struct
import subprocess
import time

import pytest

from testbed import jvm
from testbed.fixtures import SPARK_HOME, azure, bed, hadoop, s3  # noqa: F401 (fixtures)

# Whoever tries other options sets these variables.
for name, value in jvm.environment(SPARK_HOME).items():
    os.environ.setdefault(name, value)

# A background job of a script ignores Ctrl-C (SIGINT), and programs that these tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parent.parent
CREMA = os.environ.get("CREMA_BINARY", str(ROOT / "build/release/cli/crema"))
SHARED = pathlib.Path(os.environ.get("CREMA_SHARED_DATA", ROOT.parent / "shared/data"))
RECORDED = ROOT / "tests/goldens/recorded"  # recordings of BVLC Caffe on generated data; `make` there repeats them
# As quickstart fills it: raw, train_lmdb, test_lmdb.
MNIST = pathlib.Path(os.environ.get("CREMA_DATA", ROOT / "data/mnist"))


def others(*names):
    """The paths of these files of third parties in the shared data; [] where one is missing, which is printed."""
    missing = [n for n in names if not (SHARED / n).exists()]
    for name in missing:
        print(f"SKIPPED PART: {name} is not here (set CREMA_SHARED_DATA)", flush=True)
    return [] if missing else [SHARED / n for n in names]


def digits(part="t10k"):
    """MNIST as it was published: pixels (records x 784 bytes) and labels (bytes)."""
    if not (MNIST / "raw/complete").exists():
        pytest.fail(f"there is no MNIST in {MNIST}: ./runtests fetches it, or CREMA_DATA names its folder")
    pixels, labels = ((MNIST / f"raw/{part}-{kind}-ubyte").read_bytes() for kind in ("images-idx3", "labels-idx1"))
    return [pixels[at : at + 784] for at in range(16, len(pixels), 784)], labels[8:]


def write_some_digits(folder, train, tested):
    """The first records of MNIST's two parts as a set of their own, in its own format; returns the folder."""
    folder.mkdir()
    for part, count in (("train", train), ("t10k", tested)):
        pixels, labels = digits(part)
        for kind, data, sides in (("images-idx3", pixels, (28, 28)), ("labels-idx1", labels, ())):
            head = struct.pack(f">{2 + len(sides)}I", 0x0801 + 2 * bool(sides), count, *sides)
            body = b"".join(data[:count]) if sides else data[:count]
            (folder / f"{part}-{kind}-ubyte").write_bytes(head + body)
    return folder


class Result:
    def __init__(self, process, out, err, seconds):
        self.code, self.out, self.err, self.seconds = process.returncode, out, err, seconds

    @property
    def message(self):
        """The last error, without the log lines before it."""
        return self.err[self.err.rfind("crema: error:") :] if "crema: error:" in self.err else ""


def crema(*arguments, cwd=None, timeout=120, env=None):
    """Runs the executable to its end; the test fails when it takes longer than the timeout."""
    start = time.monotonic()
    process = subprocess.Popen(
        [CREMA, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env={**os.environ, **(env or {})},
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"{arguments} did not end within {timeout} s:\n{err[-2000:]}")
    return Result(process, out, err, time.monotonic() - start)


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def write_idx(folder, name, count, side, seed):
    """Pictures of `side` x `side` pixels in ten classes that a net can learn: each class is bright in its own
    pixels.
    """
    rng = random.Random(seed)
    labels = bytes(rng.randrange(10) for _ in range(count))
    pixels = bytearray()
    for label in labels:
        pixels += bytes(
            rng.randrange(90) + (150 if (i * 7 + i // side) % 10 == label else 0) for i in range(side * side)
        )
    images, marks = folder / f"{name}-images", folder / f"{name}-labels"
    images.write_bytes(struct.pack(">4I", 2051, count, side, side) + pixels)
    marks.write_bytes(struct.pack(">2I", 2049, count) + labels)
    return images, marks


# For tests of which others show the most part.
LONG_RUN = bool(os.environ.get("CREMA_LONG"))
LONG = pytest.mark.skipif(not LONG_RUN, reason="takes minutes; CREMA_LONG=1")
# Of these, too, others show the most part: ./runtests sets CREMA_SLOW where the engine took long to build.
NOT_WHEN_SLOW = pytest.mark.skipif(bool(os.environ.get("CREMA_SLOW")), reason="this machine is slow; CREMA_LONG=1")


def make_lmdb(folder, name, count, side=28, seed=1):
    done = crema("convert_mnist_data", *write_idx(folder, name, count, side, seed), folder / f"{name}_lmdb")
    assert done.code == 0, done.err
    return folder / f"{name}_lmdb"


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """A folder with train_lmdb (1,003 records of 28 x 28) and test_lmdb (200)."""
    folder = tmp_path_factory.mktemp("records")
    make_lmdb(folder, "train", 1003, seed=1)
    make_lmdb(folder, "test", 200, seed=2)
    return folder


def lenet(records, batch=8, test_batch=20):
    """examples/lenet_train_test.prototxt on these records."""
    text = (ROOT / "examples/lenet_train_test.prototxt").read_text()
    for part in ("train", "test"):
        text = text.replace(f"data/mnist_{part}_lmdb", str(records / f"{part}_lmdb"))
    return text.replace("batch_size: 64", f"batch_size: {batch}").replace(
        "batch_size: 100", f"batch_size: {test_batch}"
    )


def solver(folder, net, *, max_iter=20, extra=""):
    """Writes net.prototxt and solver.prototxt into the folder; later fields of `extra` replace the defaults."""
    fields = {
        "net": '"net.prototxt"',
        "base_lr": "0.01",
        "momentum": "0.9",
        "weight_decay": "0.0005",
        "lr_policy": '"inv"',
        "gamma": "0.0001",
        "power": "0.75",
        "display": "10",
        "max_iter": str(max_iter),
        "random_seed": "1",
        "solver_mode": "CPU",
        "snapshot_prefix": '"snap"',
    }
    for line in extra.split(";"):
        if line.strip():
            key, value = line.split(":", 1)
            fields[key.strip()] = value.strip()
    (folder / "net.prototxt").write_text(net)
    (folder / "solver.prototxt").write_text("".join(f"{k}: {v}\n" for k, v in fields.items()))
    return folder / "solver.prototxt"


def children(pid):
    try:
        return [
            int(p)
            for t in os.listdir(f"/proc/{pid}/task")
            for p in pathlib.Path(f"/proc/{pid}/task/{t}/children").read_text().split()
        ]
    except FileNotFoundError:
        return []


def running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)
