"""The node's queues, state and process from Python, without a cluster: the real `crema node`."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

np = pytest.importorskip("numpy")
from lone_node import TOKEN, mgr  # noqa: E402,F401  mgr is a fixture; puts python/ on the path

from conftest import ROOT  # noqa: E402
from tensorflowonspark import (  # noqa: E402
    TFManager,
    TFNode,
    _block,
    _door,
    _feed,
    _machine,
    _start,
    marker,
    reservation,
)


def feed(mgr, rows, size=4, end=True):
    queue = mgr.get_queue("input")
    for i in range(0, len(rows), size):
        assert queue.put_rows(rows[i : i + size])
    if end:
        queue.put(None)


def test_batches_cross_blocks_and_end_with_the_feed(mgr):
    feed(mgr, list(range(10)))
    data = TFNode.DataFeed(mgr)
    assert data.next_batch(3) == [0, 1, 2] and data.next_batch(6) == [3, 4, 5, 6, 7, 8] and not data.should_stop()
    assert data.next_batch(100) == [9] and data.should_stop()
    assert data.next_batch(1) == []


def test_partitions_end_batches_when_results_are_wanted(mgr):
    queue = mgr.get_queue("input")
    for part in ([1, 2, 3], [4]):
        queue.put_rows(part)
        queue.put(marker.EndPartition())
    queue.put(None)
    data = TFNode.DataFeed(mgr, train_mode=False)
    assert [data.next_batch(2) for _ in range(4)] == [[1, 2], [3], [4], []]
    assert data.should_stop()
    assert [TFNode.DataFeed(mgr).should_stop()] == [False]


def test_arrays_are_views_of_blocks_and_need_not_be_gone_before_the_end(mgr):
    pictures = [(np.full(784, i, np.float32), i) for i in range(8)]
    feed(mgr, pictures, size=8)
    data = TFNode.DataFeed(mgr)
    batches = data.arrays(4)
    first = next(batches)
    assert first[0].shape == (4, 784) and first[0].dtype == np.float32 and first[1].tolist() == [0, 1, 2, 3]
    second = next(batches)
    assert np.shares_memory(second[0], second[0].base) and second[1].tolist() == [4, 5, 6, 7]
    assert second[0].__array_interface__["data"][0] % 64 == 0, "784 floats a row: every row is aligned"
    assert list(batches) == [] and data.should_stop()
    mgr.get_queue("input").join(5)  # as TFCluster.train() waits: the rows are taken, whoever keeps them


def test_the_feed_ends_while_a_loop_keeps_its_last_batch(mgr):
    """The last batch ends with its block, so that it is a view; nobody ends the feed before its rows are taken."""
    queue, kept = mgr.get_queue("input"), []
    feed(mgr, [np.full(784, i, np.float32) for i in range(8)], end=False)

    def program():
        for (batch,) in TFNode.DataFeed(mgr).arrays(4):
            kept.append(batch)

    running = threading.Thread(target=program, daemon=True)
    running.start()
    TFManager.connect(mgr.address, TOKEN).get_queue("input").join(10)
    queue.put(None)
    running.join(10)
    assert not running.is_alive() and [b[0, 0] for b in kept] == [0, 4]


def test_memory_of_arrays_comes_back_when_they_are_gone(mgr):
    queue, block = mgr.get_queue("input"), [np.zeros(1 << 20, np.uint8)] * 8
    with pytest.raises(TFManager.NodeError, match="make room"):
        while True:
            queue.put_rows(block, seconds=0.5)
    batches = TFNode.DataFeed(mgr).arrays(8)
    kept = [next(batches) for _ in range(3)]
    with pytest.raises(TFManager.NodeError, match="make room"):
        queue.put_rows(block, seconds=0.5)
    kept.clear()
    next(batches)
    assert queue.put_rows(block, seconds=5)


def test_the_next_partition_does_not_wait_for_the_program(mgr):
    """Feeding tasks end when the node has their rows, so that these are there when the program wants them."""
    queue = mgr.get_queue("input")
    for part in range(200):
        feeding = _feed.Trainer([], None, 5, "input")
        feeding.manager = lambda: TFManager.connect(mgr.address, TOKEN)
        assert feeding(iter([part])) == [False]
    assert queue.qsize() == 200
    assert TFNode.DataFeed(mgr).next_batch(200) == list(range(200))


def test_terminate_ends_the_feed(mgr):
    feed(mgr, list(range(100)), end=False)
    data = TFNode.DataFeed(mgr)
    assert data.next_batch(2) == [0, 1]
    started = time.monotonic()
    data.terminate()
    assert str(mgr.get("state")) == "'terminating'"
    assert mgr.get_queue("input").put_rows([1]) is False, "the node takes no more"
    assert time.monotonic() - started < 5


def test_queues_have_the_methods_of_multiprocessings(mgr):
    queue = mgr.get_queue("input")
    assert queue.empty() and queue.qsize() == 0
    with pytest.raises(TFManager.Empty):
        queue.get(block=False)
    queue.put("a row")
    queue.put_nowait("another")
    assert queue.qsize() == 2 and queue.get() == "a row"
    queue.task_done()
    with pytest.raises(ValueError, match="too many"):
        queue.task_done()
    assert queue.get(timeout=5) == "another"
    done = threading.Event()
    waiting = threading.Thread(target=lambda: (mgr.get_queue("input").join(), done.set()))
    waiting.start()
    assert not done.wait(0.2)
    queue.task_done()
    assert done.wait(20)
    waiting.join()


def test_an_unknown_queue_is_named(mgr):
    with pytest.raises(
        TFManager.NodeError, match="Queue 'inputs' not found on this node: it has error, input or output"
    ):
        mgr.get_queue("inputs").put(1)


def test_state(mgr):
    mgr.set("answer", [1, "two", None])
    assert mgr.get("answer") == [1, "two", None] and str(mgr.get("state")) == "'running'"
    with pytest.raises(KeyError):
        mgr.get("nothing")


def test_who_lacks_the_token_gets_no_answer(mgr):
    with pytest.raises(ConnectionError, match="cannot prove the token"):
        _door.Connection(mgr.address, b"another token of 16+", "node", timeout=1000)  # long before that
    assert TFManager.connect(mgr.address, TOKEN).get("state") == "running"


def test_garbage_ends_a_connection_and_not_the_node(mgr):
    rng = np.random.default_rng(1)
    for size in rng.integers(1, 200, 300):
        door = _door.Connection(mgr.address, TOKEN, "node")
        door.socket.sendall(rng.bytes(int(size)))
        door.close()
    assert mgr.get("state") == "running"


def test_a_block_that_is_none_is_refused_by_who_reads_it(mgr):
    none = _block.Memory()
    none.write([b"\xff\xff\xff\x7f"])
    queue = mgr.get_queue("input")
    queue.send_block(none, 1)
    assert queue.sent()
    none.close()
    with pytest.raises(Exception, match="block"):
        queue.get(timeout=5)


def children_of(pid):
    out = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return [int(p) for p in out.split()]


def test_nothing_is_left_of_a_process_that_was_killed():
    """The node ends with who started it, and no name of its memory or socket is left."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tensorflowonspark import TFManager\n"
        "m = TFManager.start(b'a token of these tests', ['input'])\n"
        "m.get_queue('input').put_rows([b'x' * 1000] * 1000)\n"
        "print(m.address, flush=True); import time; time.sleep(1000)"
    )
    before = set(os.listdir("/dev/shm"))
    run = subprocess.Popen([sys.executable, "-c", code, str(ROOT / "python")], stdout=subprocess.PIPE, text=True)
    address = run.stdout.readline().strip()
    nodes = children_of(run.pid)
    assert len(nodes) == 1
    run.send_signal(signal.SIGKILL)
    run.wait()
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{nodes[0]}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{nodes[0]}")
    with pytest.raises(OSError):
        TFManager.connect(address, TOKEN)
    assert set(os.listdir("/dev/shm")) == before


def test_what_waits_is_bounded(mgr):
    """A feeding side that is faster than the program waits: of a gigabyte that is fed a quarter is in memory."""
    queue, block = mgr.get_queue("input"), [b"x" * (1 << 20)] * 8
    fed = 0
    with pytest.raises(TFManager.NodeError, match="Timeout while feeding partition.*make room; 24[0-9] of 256 MiB"):
        for fed in range(200):  # noqa: B007
            queue.put_rows(block, seconds=1)
    assert 28 <= fed <= 32
    data = TFNode.DataFeed(mgr)
    assert len(data.next_batch(16)) == 16
    assert queue.put_rows(block, seconds=5)


def test_blocks_are_checked_before_they_are_used():
    written = _block.of_rows([1, 2, 3])
    os.ftruncate(written.fd, 70)
    with pytest.raises(ValueError, match="block"):
        _block.Block(written.fd)


def test_ports_that_the_environment_names(monkeypatch):
    """TFOS_SERVER_HOST, TFOS_SERVER_PORT, TENSORBOARD_PORT and TENSORFLOW_PORT, which the node does not hold then."""
    with socket.socket() as s:
        s.bind(("", 0))
        port = s.getsockname()[1]
    monkeypatch.setenv("TFOS_SERVER_HOST", "127.0.0.1")
    monkeypatch.setenv("TFOS_SERVER_PORT", f"{port}-{port + 1}")
    server, second = reservation.Server(1), reservation.Server(1)
    assert server.start() == ("127.0.0.1", port)
    monkeypatch.setenv("TENSORFLOW_PORT", "4321")
    meta = {"server_addr": ("127.0.0.1", port), "token": server.token, "reservation_timeout": 30}
    node = _start.Start(meta, 0, "worker", 0, ["input"], time.monotonic())
    joined = node.join(0)
    assert [n["port"] for n in joined] == [4321] and node.manager.port() is None
    monkeypatch.setenv("TFOS_SERVER_PORT", f"{port}")
    with pytest.raises(Exception, match=f"unable to bind to any ports, port_list = \\[{port}\\]"):
        second.start()
    node.process.leave()
    server.stop()
    monkeypatch.setenv("TENSORBOARD_PORT", "4322")
    monkeypatch.setattr(_machine.shutil, "which", lambda *a, **k: "/bin/tensorboard")
    port, command = _machine.tensorboard("worker", 0, {"worker": [0]}, "/logs", 0)
    assert port == 4322 and {"--port=4322", "--logdir=/logs"} <= set(command)
