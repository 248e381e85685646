"""A column that has come (_columns.py describes them): its rows again, or its numbers as one array."""

import contextlib
import ctypes
import functools

import numpy as np

LARGE = 100_000  # bytes of a row, from which on keep_freed_memory() is worth it
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


@functools.cache
def keep_freed_memory():
    """Rows of more than 100 kB are allocated and freed by the hundred; with its defaults glibc gives their pages back
    to the kernel each time, and new ones cost ten times as much as the row's copy. From now on this process keeps 64
    MiB of them. Nothing, where the C library has no mallopt().
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        mallopt(_M_TRIM_THRESHOLD, 64 << 20)


def _cut(data, offsets):
    """The bytes of each row: of small ones by one copy of all, which costs less than a slice of an array for each."""
    start, end = offsets[0], offsets[-1]
    if end - start > LARGE * len(offsets):
        keep_freed_memory()
    if end - start > 4096 * len(offsets):
        view = memoryview(data)
        return [bytes(view[a:b]) for a, b in zip(offsets, offsets[1:])]
    whole = data[start:end].tobytes()
    return [whole[a - start : b - start] for a, b in zip(offsets, offsets[1:])]


class Column:
    """A column that has come: rows() gives Python's values again, array() the numbers without a copy."""

    def __init__(self, about, buffers, count):
        self.about, self.kind, self.count = about, about["kind"], count
        self.present = buffers.pop(0).astype(bool) if about.get("nulls") else None
        own = int(self.present.sum()) if self.present is not None else count
        self.own = own  # rows that are not None
        if self.present is not None:
            self.places = np.concatenate(([0], np.cumsum(self.present)))
        if self.kind in ("number", "null"):
            self.values = buffers.pop(0).reshape(own, *about["shape"]) if self.kind == "number" else None
        elif self.kind in ("str", "bytes"):
            self.offsets, self.values = buffers.pop(0), buffers.pop(0)
        elif self.kind == "ragged":
            self.shapes = buffers.pop(0).reshape(own, about["dims"])
            self.values = buffers.pop(0)
            self.offsets = np.concatenate(([0], np.cumsum(self.shapes.prod(axis=1))))
        elif self.kind == "list":
            length = about.get("length")
            self.offsets = buffers.pop(0) if length is None else np.arange(own + 1, dtype=np.int64) * length
            self.child = Column(about["child"], buffers, int(self.offsets[-1]) if own else 0)
        else:
            self.columns = [Column(c, buffers, own) for c in about["columns"]]

    @property
    def plain(self):
        """Whether rows are Python's own numbers, none of them None."""
        return self.kind == "number" and self.about["box"] == "scalar" and self.present is None

    def rows(self, first, last):
        """Rows [first, last) as they were."""
        if self.present is None:
            return self._own(first, last)
        values = iter(self._own(int(self.places[first]), int(self.places[last])))
        return [next(values) if there else None for there in self.present[first:last]]

    def _own(self, first, last):
        if self.kind == "null":
            return [None] * (last - first)
        box = self.about.get("box")
        if self.kind == "number":
            part = self.values[first:last]
            # Copies: a row must not keep its whole block in memory, nor change when another one does.
            return part.tolist() if box == "scalar" else list(part.copy())
        if self.kind == "ragged":
            return [
                self.values[self.offsets[i] : self.offsets[i + 1]].reshape(self.shapes[i]).copy()
                for i in range(first, last)
            ]
        offsets = self.offsets[first : last + 1].tolist() if self.kind != "record" else None
        if self.kind in ("str", "bytes"):
            parts = _cut(self.values, offsets)
            if self.kind == "str":
                return [p.decode() for p in parts]
            return parts if box == "bytes" else [bytearray(p) for p in parts]
        length = self.about.get("length")
        if self.kind == "list" and length and self.child.plain and box == "list":
            return self.child.values[first * length : last * length].reshape(-1, length).tolist()
        if self.kind == "list":
            elements = self.child.rows(offsets[0], offsets[-1])
            parts = [elements[a - offsets[0] : b - offsets[0]] for a, b in zip(offsets, offsets[1:])]
            return parts if box == "list" else [tuple(p) for p in parts]
        return self._records(first, last, box)

    def _records(self, first, last, box):
        fields = zip(*(c.rows(first, last) for c in self.columns))
        if box == "tuple":
            return list(fields)
        if box == "list":
            return [list(f) for f in fields]
        names = self.about["names"]
        if box == "dict":
            return [dict(zip(names, f)) for f in fields]
        from pyspark.sql import Row

        make = Row(*names)
        return [make(*f) for f in fields]

    def array(self, first, last, what="a column", number=0):
        """Rows [first, last) as one array of the shape (last - first, ...), a view where the block has it so: numbers,
        and lists of them of one length. Strings become an array of objects. TypeError for what is ragged or has None;
        to it the first row has that number.
        """
        if self.present is not None and not self.present[first:last].all():
            raise TypeError(f"{what} has None in it, and a tensor cannot; fill or drop those rows before they are fed")
        if self.present is not None:
            first, last = int(self.places[first]), int(self.places[last])
        if self.kind == "number":
            return self.values[first:last]
        if self.kind in ("str", "bytes"):
            out = np.empty(last - first, object)
            out[:] = [v.encode() if isinstance(v, str) else bytes(v) for v in self._own(first, last)]
            return out
        if self.kind == "list":
            lengths = np.diff(self.offsets[first : last + 1])
            if len(lengths) and lengths.min() != lengths.max():
                at = int(np.argmax(lengths != lengths[0]))
                raise TypeError(
                    f"{what} is ragged: row {number} has {lengths[0]} elements and row {number + at} has {lengths[at]}"
                    "; a tensor needs one length: pad the rows, or take them with next_batch()"
                )
            flat = self.child.array(int(self.offsets[first]), int(self.offsets[last]), f"an element of {what}")
            return flat.reshape(last - first, -1, *flat.shape[1:]) if last > first else flat
        raise TypeError(f"{what} is of kind {self.kind}, which is no tensor; take the rows with next_batch()")

    def names(self):
        """Of the fields of a record; None when the rows are no record."""
        if self.kind != "record":
            return None
        return self.about.get("names") or list(range(len(self.columns)))
