"""The rows of a queue, batch by batch, as the program takes them: where batches end, what is looked ahead, and when the
memory of rows is given back.
"""

import collections
import time

from tensorflowonspark import _wire

_AHEAD = 64 << 20  # bytes of the node's budget that equal steps look ahead; what is beyond is copied
_SPREAD = 16  # rows by which nodes may differ
_ALIVE = 1  # seconds: so often a program that works through a block lets its node know


class _Part:
    """Rows [at, end) of a block."""

    def __init__(self, block, first, count, size):
        self.block, self.at, self.end, self.bytes = block, first, first + count, size


class Reader:
    """One thread at a time.

    Args:
      queue: TFManager.Queue.
      by_partition: batches end with a partition.
      equal_steps: an epoch has the same number of batches on each node.
    """

    def __init__(self, queue, by_partition=False, equal_steps=False):
        self.ended = False  # no more rows come
        self.rows = 0  # that batch() gave
        self.by_epoch = False
        self._queue, self._by_partition, self._equal_steps = queue, by_partition, equal_steps
        self._parts = collections.deque()  # that have come
        self._assigned = (
            None  # of the epoch whose end has come: the most and the least rows of a node, None if not evenly
        )
        self._epoch_over = False
        self._steps = 0  # batches of this epoch, so far
        self._left = 0  # blocks whose rows are taken, not yet reported to the node
        self._finished = collections.deque()  # bytes of blocks whose last view is gone; finalizers may take no lock
        self._heard = time.monotonic()  # when the node last heard of this program

    def stops(self):
        """Whether there is no more, of the epoch in epochs()."""
        return self.ended or (self.by_epoch and self._epoch_over)

    def batch(self, size, convert):
        """Yields convert(column, first, last) of the next rows, `size` of them at most, in order. A block is left
        before the next one is waited for: who waits for the end of the feed (TFCluster.train) must not wait for this
        program, nor this program for more rows.
        """
        if self.stops():
            return
        if self._equal_steps:
            size = self._equal_size(size)
        elif self._parts:
            self._show_life()
        self._steps += 1
        count = 0
        while count < size:
            if not self._parts:
                if self.stops():
                    return
                mark = self._more()
                if mark == _wire.END_OF_PARTITION and count > 0 and self._by_partition:
                    return
                continue
            part = self._parts[0]
            last = min(part.end, part.at + size - count)
            count += last - part.at
            self.rows += last - part.at
            made = convert(part.block.column, part.at, last)
            part.at = last
            if part.at == part.end:
                self._leave(self._parts.popleft())
            del part
            yield made
        if self._equal_steps and not self._parts and self._assigned is not None:
            self._end_epoch()

    def _equal_size(self, size):
        """Rows of the next batch, so that all nodes come to the end of the epoch with as many: full ones until that end
        is in sight, two batches ahead, then what is left in equal parts. The number of steps is ceil(most / size), or
        the least rows of a node when those are fewer: batches of one row then end with one of two.
        """
        while self._assigned is None and not self.ended:
            rows = sum(p.end - p.at for p in self._parts)
            if rows >= size + max(size, _SPREAD):
                self._show_life()
                return size
            self._more()
            self._copy_what_is_ahead()
        rows = sum(p.end - p.at for p in self._parts)
        most, least = self._assigned or (None, None)
        if most is None:
            if not self.ended:
                raise ValueError("equal_steps wants rows sharded evenly: TFCluster.train(..., equal_steps=True)")
            return size
        left = min(-(-most // size), least or 0) - self._steps
        if left < 1 or rows < left:
            raise ValueError(
                f"an epoch in which one node has {most} rows and another {least or 0} has no equal number of steps for "
                "all: feed more rows, or have fewer nodes"
            )
        return -(-rows // left)

    def _copy_what_is_ahead(self):
        """Batches may be larger than what the node holds."""
        shared = [part for part in self._parts if part.bytes]
        if sum(part.bytes for part in shared) > _AHEAD:
            for part in shared:
                block, size = part.block, part.bytes
                part.block, part.bytes = block.copied(), 0
                block.when_free(self._finished.append, size)
                del block

    def _show_life(self):
        """A block may hold more rows than the program takes in a feed_timeout: taking batches is progress."""
        if time.monotonic() - self._heard > _ALIVE:
            self._queue.ask({"done": {"queue": self._queue.name, "bytes": 0, "count": 0}})
            self._heard = time.monotonic()

    def _more(self):
        """Takes the next block, or mark, which is returned (NONE for a block); None when neither was there within a
        second: room for more rows may depend on blocks that are given back meanwhile.
        """
        self.give_back()
        taken = self._queue.take(1)
        self._heard = time.monotonic()
        if taken is None:
            return None
        mark, block, first, count, size = taken
        if block is not None:
            self._epoch_over = False
            self._parts.append(_Part(block, first, count, size))
            return mark
        self._queue.done(0)
        self.ended = mark == _wire.END_OF_FEED
        if mark == _wire.END_OF_EPOCH:
            self._assigned = (first, count)
            if not self._equal_steps or (not first and not self._parts):
                self._end_epoch()
        return mark

    def _end_epoch(self):
        self._epoch_over, self._assigned, self._steps = True, None, 0

    def epochs(self):
        """Yields once for each epoch, whose rows batch() then gives. What a program leaves of one is dropped."""
        self.by_epoch = True
        while self._begin_epoch():
            yield
            while not self._epoch_over and not self.ended:
                while self._parts:
                    self._leave(self._parts.popleft())
                if self._assigned is not None:
                    self._end_epoch()
                else:
                    self._more()

    def _begin_epoch(self):
        """Waits for the first rows of one, or its end when it has none; false at the end of the feed."""
        self._epoch_over = False
        while not (self._parts or self._epoch_over or self.ended or self._assigned):
            self._more()
        return not self.ended

    def _leave(self, part):
        """Its rows are taken. Its memory is given back when the last array that stands in it is gone, which may be
        after the end of the feed: a loop's variable or a tf.data buffer keeps batches while it waits for the next.
        """
        part.block.when_free(self._finished.append, part.bytes)
        part.block = None
        self._left += 1
        self.give_back()

    def give_back(self):
        sizes = [self._finished.popleft() for _ in range(len(self._finished))]
        if sizes or self._left:
            self._queue.done(sum(sizes), self._left)
            self._left = 0
