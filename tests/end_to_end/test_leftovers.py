"""A killed process leaves nothing half-written, or what the next run removes; files of a running process stay."""

import fcntl
import os
import random
import signal
import socket
import subprocess
import time

import pytest

from conftest import CREMA, crema, solver, wait_until

# 12.5 million weights, 50 MB, that are quick to train.
LARGE = """layer { name: 'in' type: 'DummyData' top: 'x' top: 't'
  dummy_data_param { shape { dim: 1 dim: 2500 } shape { dim: 1 dim: 5000 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 5000 } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }"""


def unnamed_files(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o644))
        return True
    except OSError:
        return False


def begin(folder, *arguments):
    return subprocess.Popen(
        [CREMA, *map(str, arguments)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_kill_while_snapshotting_leaves_whole_snapshots_alone(tmp_path):
    solver(tmp_path, LARGE, max_iter=1000000, extra="snapshot: 1; base_lr: 0.00001; momentum: 0")
    rng = random.Random(3)
    for _ in range(6):
        for old in tmp_path.glob("snap*"):
            old.unlink()
        run = begin(tmp_path, "train", "-solver", "solver.prototxt")
        wait_until(lambda: list(tmp_path.glob("snap*")), 30, "the first snapshot")
        time.sleep(rng.random() * 0.3)
        run.kill()
        run.wait()
        left = [f.name for f in tmp_path.glob("snap*") if f.suffix not in (".caffemodel", ".solverstate")]
        assert not (left and unnamed_files(tmp_path)), left
        states = [f for f in tmp_path.glob("snap*.solverstate")]
        assert all(f.with_suffix(".caffemodel").stat().st_size > 50_000_000 for f in states)


def test_the_next_run_clears_what_nobody_holds(tmp_path):
    solver(tmp_path, LARGE.replace("5000", "5").replace("2500", "3"), max_iter=2)
    dead, held, theirs = (
        tmp_path / name
        for name in (
            f"snap_iter_7.caffemodel.crema-tmp-{socket.gethostname()}-0123456789abcdef",
            f"snap_iter_8.caffemodel.crema-tmp-{socket.gethostname()}-0123456789abcdee",
            "snap_iter_9.caffemodel.tmp-old-20240101",
        )
    )
    for name in (dead, held, theirs):
        name.write_bytes(b"half")
    with open(held, "r+b") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        done = crema("train", "-solver", "solver.prototxt", cwd=tmp_path)
    assert done.code == 0 and f"removed ./{dead.name}, which a process that was killed left behind" in done.err, (
        done.err
    )
    assert not dead.exists() and held.exists() and theirs.exists()


@pytest.fixture(scope="module")
def list_of_pictures(tmp_path_factory):
    """A conversion that takes several seconds: one small picture, many times."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    Image.new("RGB", (64, 64), (10, 200, 30)).save(folder / "a.png")
    (folder / "list.txt").write_text("a.png 1\n" * 200000)
    return folder


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_a_conversion_that_writes_nothing_is_ended_too(list_of_pictures, tmp_path, backend):
    """Missing pictures are skipped, so that only reading goes on."""
    flags = ["convert_imageset", "-backend", backend, f"{tmp_path}/", list_of_pictures / "list.txt", "db"]
    for sign in (signal.SIGINT, signal.SIGTERM):
        run = begin(tmp_path, *flags)
        wait_until(lambda: list(tmp_path.iterdir()), 20, "the database's folder")
        run.send_signal(sign)
        assert run.wait(20) == -sign and not list(tmp_path.iterdir())
    ignoring = subprocess.Popen(
        ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", CREMA, *map(str, flags)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: list(tmp_path.iterdir()), 20, "the database's folder")
    ignoring.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert ignoring.poll() is None
    ignoring.terminate()
    assert ignoring.wait(20) == -signal.SIGTERM and not list(tmp_path.iterdir())


@pytest.mark.parametrize("backend", ["lmdb", "leveldb"])
def test_a_conversion_that_is_ended_leaves_nothing(list_of_pictures, tmp_path, backend):
    flags = ["convert_imageset", "-backend", backend, f"{list_of_pictures}/", list_of_pictures / "list.txt", "db"]
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        run = begin(tmp_path, *flags)
        wait_until(lambda: list(tmp_path.iterdir()), 20, "the database's folder")
        time.sleep(0.2)
        run.send_signal(sign)
        assert run.wait(20) == -sign
        left = [f.name for f in tmp_path.iterdir()]
        assert len(left) == (sign == signal.SIGKILL), (sign, left)
    (tmp_path / "short.txt").write_text("a.png 1\n" * 10)
    flags[4] = tmp_path / "short.txt"
    assert crema(*flags, cwd=tmp_path).code == 0
    assert sorted(f.name for f in tmp_path.iterdir()) == ["db", "short.txt"]
