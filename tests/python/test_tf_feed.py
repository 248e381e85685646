"""A feeding task and a program at once, over the real `crema node`: memory is used again, and never too early; what a
partition takes is bounded.
"""

import multiprocessing
import resource
import threading
import time

import pytest

np = pytest.importorskip("numpy")
import spark_session  # noqa: E402,F401  puts python/ on the path

from tensorflowonspark import TFManager, TFNode, _block, _feed  # noqa: E402

TOKEN = b"a token of these tests"
ROW = 100_001  # bytes: blocks do not end where rows of a power of two would


@pytest.fixture
def mgr():
    manager = TFManager.start(TOKEN, ["input", "output", "error"])
    yield manager
    manager.shutdown()


def trainer(address, keep=None):
    made = _feed.Trainer([], None, 60, "input")
    made.manager = lambda: TFManager.connect(address, TOKEN)
    made.keep = keep
    return made


def row(i):
    """A row that no other row looks like."""
    return np.random.default_rng(i).integers(0, 256, ROW, np.uint8)


def fed(address, rows, keep=None):
    """The thread of a feeding task, which ends the feed; its error is the node's."""

    def work():
        try:
            trainer(address, keep)(rows)
        except Exception as e:
            TFManager.connect(address, TOKEN).fail(str(e))
        TFManager.connect(address, TOKEN).get_queue("input").put(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def made(monkeypatch):
    """How many new pieces of memory were taken."""
    count, init = [], _block.Memory.__init__

    def counted(self):
        count.append(1)
        init(self)

    monkeypatch.setattr(_block.Memory, "__init__", counted)
    return count


@pytest.mark.parametrize("keep", [None, True])
def test_memory_is_used_again_when_its_last_view_is_gone(mgr, made, keep):
    """Of 900 rows every 20th stays in use for a while: as a view, which the rows after it must not change."""
    thread = fed(mgr.address, (row(i) for i in range(900)), keep)
    views, wrong, at = [], [], 0
    for (values,) in TFNode.DataFeed(mgr).arrays(5):
        for value in values:
            if not np.array_equal(value, row(at)):
                wrong.append(at)
            if at % 20 == 0:
                views.append((at, value))
            at += 1
        del values, value
        while len(views) > 12:
            number, view = views.pop(0)
            if not np.array_equal(view, row(number)):
                wrong.append(number)
    thread.join(10)
    assert at == 900 and wrong == []
    assert len(made) < 60  # of 90 blocks: the program is never that far behind


@pytest.mark.parametrize("kind", ["bytes", "str", "arrays", "fields"])
def test_large_rows_come_as_they_were(mgr, kind):
    def value(i):
        raw = row(i).tobytes()[: ROW - i % 3]
        if kind == "str":
            return raw.decode("latin-1")
        if kind == "arrays":
            return np.frombuffer(raw[:99968], np.uint16)[::2].reshape(4, -1)
        return raw if kind == "bytes" else (raw, np.float32(i), raw[:3])

    thread = fed(mgr.address, (value(i) for i in range(60)))
    data, rows = TFNode.DataFeed(mgr), []
    while not data.should_stop():
        rows.extend(data.next_batch(7))
    thread.join(10)
    assert len(rows) == 60
    for i, got in enumerate(rows):
        assert np.array_equal(got, value(i)) and getattr(got, "dtype", 0) == getattr(value(i), "dtype", 0)


def _feeds_much(address, rows, peak):
    trainer(address)(bytes([i % 256]) * 1_000_000 for i in range(rows))
    TFManager.connect(address, TOKEN).get_queue("input").put(None)
    peak.value = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_four_gigabytes_pass_through_a_quarter(mgr):
    """The feeding side, shared memory included, stays under the budget (256 MiB) + 100 MB, though the program begins
    late.
    """
    peak = multiprocessing.get_context("spawn").Value("d", 0)
    feeding = multiprocessing.get_context("spawn").Process(
        target=_feeds_much, args=(mgr.address, 4000, peak), daemon=True
    )
    feeding.start()
    time.sleep(1)
    data, rows = TFNode.DataFeed(mgr), 0
    while not data.should_stop():
        batch = data.next_batch(20)
        assert all(len(b) == 1_000_000 and b[0] == b[-1] == (rows + i) % 256 for i, b in enumerate(batch))
        rows += len(batch)
    feeding.join(20)
    assert rows == 4000 and 0 < peak.value < 256 + 95
