"""Blocks without a node: what a feeding task keeps of their memory, and Arrow's columns as Java writes them."""

import os
import signal
import time

import pytest

np = pytest.importorskip("numpy")
import spark_session  # noqa: E402,F401  puts python/ on the path

from tensorflowonspark import _block, _column  # noqa: E402

SIZE = 4 << 20


def sent(pool, count):
    """So many blocks that a node has taken."""
    made = []
    for _ in range(count):
        memory = pool.take(SIZE)
        memory.write([bytes(SIZE)])
        pool.sent(memory)
        made.append(memory)
    return made


def done(memory):
    """As the program says it, in the block."""
    block = np.memmap(f"/proc/self/fd/{memory.fd}", np.uint8, "r+")
    block[_block._DONE] = 1


def test_memory_that_waits_to_be_used_again_is_bounded_by_its_bytes():
    pool = _block.Pool()
    for memory in sent(pool, 20):
        done(memory)
    pool.take(1).close()  # looks, and finds none of that size
    assert sum(m.size for m in pool._free) <= 32 << 20
    pool.close()


def test_large_memory_that_comes_back_at_once_is_bounded_too():
    pool = _block.Pool()
    for _ in range(20):
        memory = _block.Memory()
        memory.write([bytes(SIZE)])
        pool.sent(memory, shared=False)
    assert sum(m.size for m in pool._free) <= 32 << 20
    pool.close()


def test_a_program_is_done_with_a_block_by_one_store_of_one_byte():
    """A second store could come when the memory is a next block's. Of a mapping's bytes Python stores one that is
    assigned alone, and copies a slice as the C library likes.
    """
    stored, done = [], []

    class Shared:
        def __setitem__(self, place, value):
            stored.append((place, value))

    _block._free(Shared(), os.getpid(), _block._forks, done.append, (7,))
    assert stored == [(4, 1)] and done == [7]


def test_memory_that_a_fork_still_reads_is_not_used_again():
    memory, given_back = _block.of_rows([b"row"]), []
    block = _block.Block(os.dup(memory.fd))
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    block.when_free(given_back.append, 1)
    del block
    assert not memory.done() and given_back == [1]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    memory.close()


def test_blocks_that_a_program_keeps_do_not_hide_those_behind_them():
    pool = _block.Pool()
    last = sent(pool, 21)[-1]
    done(last)
    assert pool.take(SIZE) is last
    last.close()
    pool.close()


def test_arrays_that_are_all_empty_as_java_writes_them():
    """Arrow for Java leaves the offsets out where there are no values; the format allows that."""
    pa = pytest.importorskip("pyarrow")
    from tensorflowonspark import _arrow

    nothing, zeros = pa.py_buffer(b""), pa.array([0, 0, 0, 0], pa.int32()).buffers()[1]
    texts = pa.Array.from_buffers(pa.string(), 0, [None, nothing, nothing])
    raws = pa.Array.from_buffers(pa.binary(), 0, [None, nothing, nothing])
    lists = pa.Array.from_buffers(
        pa.list_(pa.int32()), 0, [None, nothing], children=[pa.Array.from_buffers(pa.int32(), 0, [None, nothing])]
    )
    for child in (texts, raws, lists):
        whole = pa.Array.from_buffers(pa.list_(child.type), 3, [None, zeros], children=[child])
        about, buffers = _arrow.column(whole, "a row")
        assert _column.Column(about, buffers, 3).rows(0, 3) == [[], [], []]
