"""Blocks: columns in memory that has no name (memfd), passed between processes as a descriptor.

Bytes: u32 little endian, the size of a header; u8, 1 when the program is done with it; 3 zeros; the header, JSON:
{"rows", "column" (_columns.py), "buffers": [[dtype, offset, elements], ...]}; then the buffers, each at a multiple of
64 bytes, so that TensorFlow takes them without a copy.
"""

import json
import mmap
import os
import struct
import weakref

import numpy as np

from tensorflowonspark import _column, _columns

_ALIGNED = 64
_DONE = 4  # where that byte stands
_forks = 0  # of this process, so far


def _forked():
    global _forks
    _forks += 1


os.register_at_fork(after_in_parent=_forked)


def _up(size):
    return -(-size // _ALIGNED) * _ALIGNED


class Memory:
    """A memfd that a block is written to: `fd`, `size`. Written anew its pages are there already, and a mapping costs a
    third of write().
    """

    def __init__(self):
        self.fd, self.size, self._map = os.memfd_create("crema-rows", os.MFD_CLOEXEC), 0, None

    def write(self, parts):
        if not self.size:
            for i in range(0, len(parts), 512):
                _write_all(self.fd, parts[i : i + 512])
            self.size = sum(map(len, parts))
            return
        if self._map is None:
            self._map = mmap.mmap(self.fd, self.size)
        at = 0
        for part in parts:
            self._map[at : at + len(part)] = part
            at += len(part)

    def done(self):
        """Whether the program is done with it."""
        return (self._map[_DONE] if self._map else os.pread(self.fd, 1, _DONE)[0]) == 1

    def close(self):
        os.close(self.fd)
        if self._map is not None:
            self._map.close()


def _write_all(fd, parts):
    parts = [p for p in parts if len(p)]
    while parts:
        done = os.writev(fd, parts)
        while parts and done >= len(parts[0]):
            done -= len(parts.pop(0))
        if done:
            parts[0] = memoryview(parts[0])[done:]


class Pool:
    """Memory of blocks that the program is done with, for the next ones of one feeding task: new pages cost the kernel
    five times as much as the bytes that are written to them. What is done is said in the block itself, so whoever is
    killed leaves nothing behind: its blocks are not used again, that is all.
    """

    _FREE = 32 << 20  # bytes of blocks that wait to be used again; the memory of others, but for one, is given up
    _BYTES = 320 << 20  # of blocks that are remembered while a program has them: what a node may hold, and some more

    def __init__(self):
        self._sent, self._bytes, self._free = [], 0, []

    def take(self, size):
        """A Memory for a block of that size."""
        done = [m.done() for m in self._sent]  # of all of them: a program may keep some for long
        free = [m for m, over in zip(self._sent, done) if over]
        self._sent = [m for m, over in zip(self._sent, done) if not over]
        self._bytes -= sum(m.size for m in free)
        self._keep(free)
        for memory in reversed(self._free):
            if size <= memory.size <= 2 * size:
                self._free.remove(memory)
                return memory
        return Memory()

    def _keep(self, free):
        self._free += free
        size = sum(m.size for m in self._free)
        while size > self._FREE and len(self._free) > 1:
            size -= self._free[0].size
            self._free.pop(0).close()

    def sent(self, memory, shared=True):
        """Of a block that the node has taken, and copied if it keeps a copy. shared: others have this memory now."""
        if not shared:
            self._keep([memory])
            return
        self._sent.append(memory)
        self._bytes += memory.size
        while self._bytes > self._BYTES:
            self._bytes -= self._sent[0].size
            self._sent.pop(0).close()

    def close(self):
        for memory in (*self._sent, *self._free):
            memory.close()


def write(column, buffers, rows, memory=None):
    """A block in memory(its size), by default new memory: the Memory, which is the caller's to close."""
    places, at = [], 0
    for b in buffers:
        places.append([b.dtype.str, at, b.size])
        at = _up(at + b.nbytes)
    header = json.dumps({"rows": rows, "column": column, "buffers": places}).encode()
    front = _up(8 + len(header))
    parts = [struct.pack("<II", len(header), 0) + header + bytes(front - 8 - len(header))]
    for b in buffers:
        parts.extend(_columns.pieces_of(b))
        if _up(b.nbytes) != b.nbytes:
            parts.append(bytes(_up(b.nbytes) - b.nbytes))
    block = memory(front + at) if memory else Memory()
    try:
        block.write(parts)
    except BaseException:
        block.close()
        raise
    return block


def of_rows(rows, memory=None):
    """write() of a list of Python rows."""
    column, buffers = _columns.encode(rows)
    return write(column, buffers, len(rows), memory)


class Block:
    """A block that has come. Its memory is freed when the last array that stands in it is."""

    def __init__(self, descriptor):
        self._forks = _forks
        try:
            size = os.fstat(descriptor).st_size
            self._map = mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
            self.memory = np.frombuffer(self._map, np.uint8)
            # The node may still copy it for later epochs: a program that wrote to it would change what it gets then.
            self.memory.flags.writeable = False
        finally:
            os.close(descriptor)
        self._read()

    def _read(self):
        memory = self.memory
        try:
            (length,) = struct.unpack("<I", memory[:4].tobytes())
            header = json.loads(memory[8 : 8 + length].tobytes())
            front = _up(8 + length)
            buffers = []
            for dtype, at, elements in header["buffers"]:
                dtype = np.dtype(dtype)
                part = memory[front + at : front + at + elements * dtype.itemsize]
                if part.nbytes != elements * dtype.itemsize:
                    raise ValueError("it is cut off")
                buffers.append(part.view(dtype))
            self.rows, self.bytes = header["rows"], memory.nbytes
            self.column = _column.Column(header["column"], buffers, self.rows)
        except (struct.error, KeyError, IndexError, TypeError, ValueError) as e:
            raise ValueError(f"this is no block of rows: {e}; are all parts of one version?") from e

    def when_free(self, call, *arguments):
        """Says in the block that the program is done with it, and calls call(*arguments), when the last array that
        stands in it is gone.
        """
        weakref.finalize(self.memory, _free, self._map, os.getpid(), self._forks, call, arguments).atexit = False

    def copied(self):
        """The same rows in memory of this process."""
        block = Block.__new__(Block)
        block._map, block._forks, block.memory = None, self._forks, self.memory.copy()
        block._read()
        return block


def _free(shared, process, forks, call, arguments):
    if os.getpid() != process:
        return  # a fork has the views, and its parent may still use them
    if shared is not None and forks == _forks:  # else a fork has the views, whose memory is not used again
        # One store of one byte. A slice of 4 bytes is copied by two stores to one place, and by the second one this
        # memory may be a next block's, which is written over before it is read: one of 300,000 times.
        shared[_DONE] = 1
    call(*arguments)
