"""What a feeding task takes of the machine's memory, over the real `crema node`."""

import contextlib
import multiprocessing
import os
import threading

import pytest

pytest.importorskip("numpy")
from lone_node import TOKEN, mgr  # noqa: E402,F401  mgr is a fixture; puts python/ on the path

from conftest import wait_until  # noqa: E402
from tensorflowonspark import TFManager, TFNode, _feed  # noqa: E402

MOST_OF_THE_BUDGET = 224  # MB; the next block may not fit


def _feeds_much(address, rows):
    trainer = _feed.Trainer([], None, 60, "input")
    trainer.manager = lambda: TFManager.connect(address, TOKEN)
    trainer(bytes([i % 256]) * 1_000_000 for i in range(rows))
    TFManager.connect(address, TOKEN).get_queue("input").put(None)


def _memory_of_feeding(feeding, others):
    """MB that a feeding process has for itself, and of the blocks that it and others hold, each block once. Its peak of
    resident memory does not say it: pages that are written into a block by write() are nobody's there.
    """
    blocks = {}
    for pid in (feeding, *others):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # closed meanwhile
                if "memfd:" in os.readlink(f"/proc/{pid}/fd/{fd}"):
                    about = os.stat(f"/proc/{pid}/fd/{fd}")
                    blocks[about.st_ino] = about.st_blocks * 512
    with open(f"/proc/{feeding}/status") as status:
        own = next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024
    return own + sum(blocks.values()) / 2**20


def test_four_gigabytes_pass_through_a_quarter(mgr):
    """The feeding side, shared memory included, stays under the budget (256 MiB) + 100 MB, though the program begins
    late.
    """
    feeding = multiprocessing.get_context("spawn").Process(target=_feeds_much, args=(mgr.address, 4000), daemon=True)
    feeding.start()
    seen, over = [], threading.Event()

    def look():
        with contextlib.suppress(OSError, StopIteration):  # it has ended
            while not over.wait(0.02):
                seen.append(_memory_of_feeding(feeding.pid, [mgr._process._process.pid]))

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    wait_until(lambda: max(seen, default=0) > MOST_OF_THE_BUDGET, 60, "a budget that is full")
    data, rows = TFNode.DataFeed(mgr), 0
    while not data.should_stop():
        batch = data.next_batch(20)
        for at, row in enumerate(batch, rows):
            assert (len(row), row[0], row[-1]) == (1_000_000, at % 256, at % 256), at
        rows += len(batch)
    feeding.join(20)
    over.set()
    watch.join(20)
    assert rows == 4000 and len(seen) > 20 and max(seen) < 256 + 95, max(seen)
