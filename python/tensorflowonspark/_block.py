"""Blocks: columns in memory that has no name (memfd), passed between processes as a descriptor.

Bytes: u32 little endian, the size of a header; the header, JSON: {"rows", "column" (_columns.py), "buffers": [[dtype,
offset, elements], ...]}; then the buffers, each at a multiple of 64 bytes, so that TensorFlow takes them without a
copy.
"""

import json
import mmap
import os
import struct

import numpy as np

from tensorflowonspark import _column, _columns

_ALIGNED = 64


def _up(size):
    return -(-size // _ALIGNED) * _ALIGNED


def write(column, buffers, rows):
    """(descriptor, bytes) of a new block; the descriptor is the caller's to close."""
    places, at = [], 0
    for b in buffers:
        places.append([b.dtype.str, at, b.size])
        at = _up(at + b.nbytes)
    header = json.dumps({"rows": rows, "column": column, "buffers": places}).encode()
    front = _up(4 + len(header))
    parts = [struct.pack("<I", len(header)) + header + bytes(front - 4 - len(header))]
    for b in buffers:
        parts.append(memoryview(np.ascontiguousarray(b)).cast("B") if b.nbytes else b"")
        if _up(b.nbytes) != b.nbytes:
            parts.append(bytes(_up(b.nbytes) - b.nbytes))
    size = front + at
    fd = os.memfd_create("crema-rows", os.MFD_CLOEXEC)
    try:
        for i in range(0, len(parts), 512):
            _write_all(fd, parts[i : i + 512])
    except BaseException:
        os.close(fd)
        raise
    return fd, size


def _write_all(fd, parts):
    parts = [p for p in parts if len(p)]
    while parts:
        done = os.writev(fd, parts)
        while parts and done >= len(parts[0]):
            done -= len(parts.pop(0))
        if done:
            parts[0] = memoryview(parts[0])[done:]


def of_rows(rows):
    """write() of a list of Python rows."""
    column, buffers = _columns.encode(rows)
    return write(column, buffers, len(rows))


class Block:
    """A block that has come. Its memory is freed when the last array that stands in it is."""

    def __init__(self, descriptor):
        try:
            size = os.fstat(descriptor).st_size
            self.memory = memory = np.frombuffer(
                mmap.mmap(descriptor, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE), np.uint8
            )
        finally:
            os.close(descriptor)
        try:
            (length,) = struct.unpack("<I", memory[:4].tobytes())
            header = json.loads(memory[4 : 4 + length].tobytes())
            front = _up(4 + length)
            buffers = []
            for dtype, at, elements in header["buffers"]:
                dtype = np.dtype(dtype)
                part = memory[front + at : front + at + elements * dtype.itemsize]
                if part.nbytes != elements * dtype.itemsize:
                    raise ValueError("it is cut off")
                buffers.append(part.view(dtype))
            self.rows, self.bytes = header["rows"], size
            self.column = _column.Column(header["column"], buffers, self.rows)
        except (struct.error, KeyError, IndexError, TypeError, ValueError) as e:
            raise ValueError(f"this is no block of rows: {e}; are all parts of one version?") from e
