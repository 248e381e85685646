"""A feeding task and a program at once, over the real `crema node`: memory is used again, and never too early; what a
partition takes is bounded.
"""

import gc
import os
import threading
import time

import pytest

np = pytest.importorskip("numpy")
from lone_node import TOKEN, mgr  # noqa: E402,F401  mgr is a fixture; puts python/ on the path

from tensorflowonspark import TFManager, TFNode, _block, _feed, _start, _wire, marker, reservation  # noqa: E402

ROW = 100_001  # bytes: blocks do not end where rows of a power of two would


def trainer(address, keep=None):
    made = _feed.Trainer([], None, 60, "input")
    made.manager = lambda: TFManager.connect(address, TOKEN)
    made.keep = keep
    return made


def row(i):
    """A row that no other row looks like."""
    return np.random.default_rng(i).integers(0, 256, ROW, np.uint8)


def fed(address, rows, keep=None, end=True):
    """The thread of a feeding task, which ends the feed; its error is the node's."""

    def work():
        try:
            trainer(address, keep)(rows)
        except Exception as e:
            TFManager.connect(address, TOKEN).fail(str(e))
        if end:
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
    ahead = threading.Semaphore(200)  # rows, so that what is new does not depend on how far behind the program is
    thread = fed(mgr.address, (row(i) for i in range(900) if ahead.acquire()), keep)
    views, wrong, at = [], [], 0
    for (values,) in TFNode.DataFeed(mgr).arrays(5):
        for value in values:
            if not np.array_equal(value, row(at)):
                wrong.append(at)
            if at % 20 == 0:
                views.append((at, value))
            at += 1
            ahead.release()
        del values, value
        while len(views) > 12:
            number, view = views.pop(0)
            if not np.array_equal(view, row(number)):
                wrong.append(number)
    thread.join(10)
    assert at == 900 and wrong == []
    assert len(made) < 60  # of 90 blocks


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


@pytest.fixture
def node():
    """A node of a cluster of one: (TFManager of its private socket, (host, port) for other machines, token, pid)."""
    server = reservation.Server(1)
    meta = {"server_addr": server.start(), "token": server.token, "reservation_timeout": 30}
    start = _start.Start(meta, 0, "worker", 0, ["input", "output"], time.monotonic())
    (about,) = start.join(0)
    host, port = about["feed"].rsplit(":", 1)
    yield start.manager, (host, int(port)), server.token, start.process._process.pid
    start.process.leave()
    server.stop()


def test_rows_come_over_the_network_as_well(node, made):
    """As from an executor of another machine: as bytes, and the memory of blocks is used again at once."""
    manager, address, token, _ = node
    feeding = _feed.Trainer([], None, 30, "input")
    feeding.manager = lambda: TFManager.connect(address, token)

    def work():
        assert feeding(row(i) for i in range(300)) == [False]
        manager.get_queue("input").put(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    data, at = TFNode.DataFeed(manager), 0
    while not data.should_stop():
        for value in data.next_batch(16):
            assert np.array_equal(value, row(at))
            at += 1
    thread.join(10)
    assert at == 300
    assert len(made) < 10  # of 30 blocks; those that come are the program's own memory


def memory_of(pid):
    """MiB: the process's own, and the memory without a name that it holds."""
    with open(f"/proc/{pid}/status") as status:
        own = next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024
    shared = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if os.readlink(path).startswith("/memfd:"):
                shared += os.stat(path).st_blocks * 512 / 2**20
        except FileNotFoundError:
            continue
    return own + shared


def test_what_comes_over_the_network_is_bounded_too(node):
    """Sixty tasks of other executors bring 16 MiB at once, 960 in all: what there is no room for stays with them."""
    manager, address, token, pid = node

    def work(i):
        feeding = _feed.Trainer([], None, 60, "input")
        feeding.manager = lambda: TFManager.connect(address, token)
        feeding(bytes([i]) * (1 << 24) for _ in range(1))

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(60)]
    for thread in threads:
        thread.start()
    most = at = 0
    while memory_of(pid) < 230 or at < 20:  # full, and then for two seconds more
        at += memory_of(pid) >= 230
        most = max(most, memory_of(pid))
        time.sleep(0.1)
    data, seen = TFNode.DataFeed(manager), []
    while len(seen) < 60:
        seen += [row[0] for row in data.next_batch(1) if row == bytes([row[0]]) * (1 << 24)]
        most = max(most, memory_of(pid))
    for thread in threads:
        thread.join(30)
    assert sorted(seen) == list(range(60)) and 230 < most < 256 + 50


def test_equal_steps_may_be_larger_than_what_a_node_holds(mgr):
    """A batch of 300 MB, two of which are looked ahead: the node's room is 256 MiB."""
    rows, size = 330, 1 << 20
    thread = fed(mgr.address, (bytes([i % 251]) * size for i in range(rows)), end=False)
    mark = {"queue": "input", "mark": _wire.END_OF_EPOCH, "epoch": {"most": rows, "least": rows}, "timeout": 1}
    data = TFNode.DataFeed(mgr, equal_steps=True)
    taken, waiting = [], threading.Thread(target=lambda: taken.append(data.next_batch(300)), daemon=True)
    waiting.start()
    thread.join(30)
    mgr.get_queue("input").ask({"put": mark})
    waiting.join(30)
    assert [len(b) for b in taken] == [165], "what is left is shared by the two steps"
    assert [b[0] for b in taken[0]] == [i % 251 for i in range(165)]
    assert [b[-1] for b in data.next_batch(300)] == [i % 251 for i in range(165, 330)]


def test_a_program_that_takes_rows_slowly_is_not_stuck(mgr):
    """Of one block, for longer than the timeout of who waits for room; and who wants no more has nothing left."""
    queue = mgr.get_queue("input")
    queue.put_rows([bytes(1 << 20)] * 60)
    for _ in range(3):
        queue.put_rows([bytes(1 << 20)] * 60)
    data, asked = TFNode.DataFeed(mgr), TFManager.connect(mgr.address, TOKEN)
    for _ in range(30):
        time.sleep(0.25)
        data.next_batch(2)
        assert not asked.stuck("does nothing", 5)
    time.sleep(0.3)
    assert asked.stuck("does nothing", 0.2)
    data.terminate()
    assert queue.put_rows([b"more"]) is False


def test_a_pause_of_the_feed_is_no_end_of_a_partition(mgr):
    queue = mgr.get_queue("input")

    def work():
        for part in ([1, 2, 3], [4, 5, 6]):
            queue.put_rows(part)
            time.sleep(1.5)
        queue.put(marker.EndPartition())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert TFNode.DataFeed(mgr, train_mode=False).next_batch(6) == [1, 2, 3, 4, 5, 6]
    thread.join(10)


def test_a_child_of_fork_gives_back_nothing(mgr):
    """It has the parent's views, and ends: the feed must not use their memory again."""
    thread = fed(mgr.address, (row(i) for i in range(200)))
    batches = TFNode.DataFeed(mgr).arrays(5)
    (kept,) = next(batches)
    child = os.fork()
    if child == 0:
        del kept
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    rest = sum(len(values) for (values,) in batches)
    thread.join(10)
    assert rest == 195 and np.array_equal(kept, [row(i) for i in range(5)])


def test_blocks_are_bounded_whatever_their_first_row_is():
    rows = [{"x": b""}] + [{"x": np.zeros(150_000, np.uint8)}] * 300
    sizes = [sum(len(r["x"]) for r in chunk) for chunk in _feed.blocks(rows)]
    assert sum(sizes) == 300 * 150_000 and max(sizes) < 4 << 20

    def slow():
        for i in range(40):
            time.sleep(0.02)
            yield i

    began, times = time.monotonic(), []
    for _ in _feed.blocks(slow()):
        times.append(time.monotonic() - began)
    assert len(times) > 2
