"""Feeding tasks: rows of a partition become blocks, which the node of this executor takes."""

import contextlib
import itertools
import socket
import time

from tensorflowonspark import TFManager, _block, _column, _machine, _wire, reservation, util

_BLOCK_BYTES = 1 << 20  # about: a block's rows are few enough to wait for and large enough to cost little each
_MOST_ROWS = 8192
_MOST_BYTES = 16 << 20
_FLUSH = 0.1  # seconds: rows of a slow source do not wait longer for their block to be full

_HINTS = (
    "No TFManager found on this node, please ensure that:\n"
    "1. Spark num_executors matches TensorFlow cluster_size\n"
    "2. Spark tasks per executor is 1: nodes take one slot each, and feeding tasks run on executors that have a node\n"
    "3. Spark dynamic allocation is disabled (spark.dynamicAllocation.enabled=false)\n"
    "4. the node has not ended before: its error stands in the driver's log and in this executor's stderr"
)


def manager_here(cluster_info, cluster_meta, number=0):
    """A TFManager of a node of this executor, else of this machine, else of another; of several the one for that
    number.

    Exception, with what to look at, when there is none. Parameter servers and evaluators are not fed.
    """
    token = reservation.token_of(cluster_meta)
    here, hosts = _machine.here(), {util.get_ip_address(), socket.gethostname()}
    fed = [n for n in cluster_info if n["job_name"] not in ("ps", "evaluator")]
    own = [n for n in fed if n.get("executor") == here]
    near = [n for n in fed if n["host"] in hosts and n not in own]
    far = [n for n in fed if n not in own and n not in near and n.get("feed")]
    for nodes in (own, near, far):
        for i in range(len(nodes)):
            node = nodes[(number + i) % len(nodes)]
            host, _, port = node.get("feed", "").rpartition(":")
            try:
                return TFManager.connect((host.strip("[]"), int(port)) if nodes is far else node["addr"], token)
            except OSError:
                continue
    raise Exception(_HINTS)


def _size(value):
    """About the bytes that a row takes in a block."""
    if isinstance(value, (bytes, bytearray, str)):
        return len(value)
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value)) if len(value) < 16 else len(value) * max(1, _size(value[0]))
    return getattr(value, "nbytes", 8)


def blocks(rows):
    """Lists of rows, each for one block."""
    iterator = iter(rows)
    for first in iterator:
        size = _size(first)
        if size > _column.LARGE:
            _column.keep_freed_memory()
        some = min(_MOST_ROWS, max(1, _BLOCK_BYTES // max(1, size)))
        chunk, started = [first], time.monotonic()
        while len(chunk) < some:
            more = list(itertools.islice(iterator, min(64, some - len(chunk))))
            chunk.extend(more)
            if not more or time.monotonic() - started > _FLUSH:
                break
        yield chunk


class _Feeder:
    def __init__(self, cluster_info, cluster_meta, feed_timeout, qname):
        self.info, self.meta, self.timeout, self.qname = cluster_info, cluster_meta, feed_timeout, qname

    def manager(self):
        context = util.task_context()
        return manager_here(self.info, self.meta, context.partitionId() if context else 0)


class Trainer(_Feeder):
    """keep: the node keeps the rows for later epochs."""

    keep = None

    def __call__(self, iterator):
        return [not self._feed(lambda memory: ((_block.of_rows(c, memory), len(c)) for c in blocks(iterator)))]

    def arrow(self, batches):
        """The same for pyspark's mapInArrow: yields a batch whose one column is the result."""
        import pyarrow as pa

        from tensorflowonspark import _arrow

        def made(memory):
            for batch in batches:
                # Copying costs more than the start of a block: a batch is one, but for very large ones.
                rows = max(1, min(len(batch), _MOST_BYTES * len(batch) // max(1, batch.nbytes)))
                for part in (batch.slice(i, rows) for i in range(0, len(batch), rows)):
                    yield _block.write(*_arrow.of_batch(part), len(part), memory), len(part)

        wanted = self._feed(made)
        yield pa.RecordBatch.from_arrays([pa.array([not wanted])], ["terminating"])

    def _feed(self, made):
        """Feeds the (block, rows) of made(memory), each while the node takes the one before. False: the program wants
        no more.
        """
        queue = self.manager().get_queue(self.qname)
        before, wanted = None, True
        with contextlib.closing(_block.Pool()) as pool:
            for block, rows in made(pool.take):
                if before is not None:
                    wanted = queue.sent(self.timeout)
                    pool.sent(before)
                before = block
                if not wanted:
                    break
                queue.send_block(block, rows, self.timeout, keep=self.keep)
            if before is not None:
                before.close()
                wanted = wanted and queue.sent(self.timeout)
        return wanted


class Scorer(_Feeder):
    """Yields results while it feeds: what the program has answered is taken between two blocks."""

    def __call__(self, iterator):
        manager = self.manager()
        queue = manager.get_queue(self.qname)
        feed = queue.ask({"open": {}})[0]["feed"]
        results = manager.get_queue("output")
        fed = had = 0
        for chunk in blocks(iterator):
            if not queue.put_rows(chunk, self.timeout, feed=feed):
                raise Exception(
                    "the program has ended, or called DataFeed.terminate(), before it had all rows to answer"
                )
            fed += len(chunk)
            for rows in self._results(results, feed, 0, fed - had):
                had += len(rows)
                yield from rows
        if fed:
            mark = {"queue": self.qname, "mark": _wire.END_OF_PARTITION, "timeout": self.timeout, "feed": feed}
            queue.ask({"put": mark}, self.timeout)
        while had < fed:
            before = had
            for rows in self._results(results, feed, self.timeout, fed - had):
                had += len(rows)
                yield from rows
            if had == before:
                what = f"has returned {had} results for {fed} rows, and none in the last {self.timeout:g} s"
                manager.stuck(what)
                raise Exception(
                    f"Timeout while feeding partition: the program {what}; batch_results() takes one for each row"
                )

    def _results(self, queue, feed, seconds, wanted):
        """Lists of results, until none is there for `seconds`, or `wanted` have come."""
        while wanted > 0:
            taken = queue.take(seconds, feed)
            if taken is None:
                return
            _, block, first, count, _ = taken
            wanted -= count
            yield block.column.rows(first, first + count)
