"""Feeding tasks: rows of a partition become blocks, which the node of this executor takes."""

import contextlib
import itertools
import random
import socket
import time

from tensorflowonspark import TFManager, _block, _column, _columns, _frames, _machine, _wire, reservation, util

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


def fed_nodes(cluster_info):
    """Nodes that are fed: parameter servers and evaluators are not."""
    return [n for n in cluster_info if n["job_name"] not in ("ps", "evaluator")]


def _connected(node, token, here):
    """A TFManager of a node; OSError when there is no way. here: the names of this machine."""
    if node["host"] in here or node.get("executor") == _machine.here():
        return TFManager.connect(node["addr"], token)
    host, _, port = node["feed"].rpartition(":")
    return TFManager.connect((host.strip("[]"), int(port)), token)


def manager_here(cluster_info, cluster_meta, number=0):
    """A TFManager of a node of this executor, else of this machine, else of another; of several the one for that
    number. Exception, with what to look at, when there is none.
    """
    token = reservation.token_of(cluster_meta)
    here, hosts = _machine.here(), {util.get_ip_address(), socket.gethostname()}
    fed = fed_nodes(cluster_info)
    own = [n for n in fed if n.get("executor") == here]
    near = [n for n in fed if n["host"] in hosts and n not in own]
    far = [n for n in fed if n not in own and n not in near and n.get("feed")]
    for nodes in (own, near, far):
        for i in range(len(nodes)):
            try:
                return _connected(nodes[(number + i) % len(nodes)], token, hosts)
            except OSError:
                continue
    raise Exception(_HINTS)


def managers_of_all(cluster_info, cluster_meta):
    """A TFManager of each node that is fed, by executor_id. Exception for a node that is not to be reached."""
    token, hosts, managers = reservation.token_of(cluster_meta), {util.get_ip_address(), socket.gethostname()}, []
    for node in fed_nodes(cluster_info):
        try:
            managers.append(_connected(node, token, hosts))
        except OSError as e:
            raise Exception(
                f"rows cannot be sent to node {node['executor_id']} ({node['job_name']}:{node['task_index']}, "
                f"host {node['host']}): {e}. Executors must reach each other's ports, and no node may have ended"
            ) from e
    return managers


def _size(value):
    """About the bytes that a row takes in a block."""
    if isinstance(value, (bytes, bytearray, str)):
        return len(value)
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value)) if len(value) < 16 else len(value) * max(1, _size(value[0]))
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return getattr(value, "nbytes", 8)


def blocks(rows, shares=1):
    """Lists of rows, each for a block, or for `shares` of them. Their bytes are estimated by a few of their rows; those
    of a slow source wait for about as long as _FLUSH.
    """
    iterator = iter(rows)
    for first in iterator:
        chunk, started, size, step = [first], time.monotonic(), _size(first), 1
        if size > _column.LARGE:
            _column.keep_freed_memory()
        while len(chunk) < _MOST_ROWS * shares and size < _BLOCK_BYTES * shares:
            # More at once as long as they come fast, and never many that are large.
            step = min(2 * step, 64, max(1, _BLOCK_BYTES * len(chunk) // (4 * max(1, size))))
            more = list(itertools.islice(iterator, step))
            chunk.extend(more)
            if not more or time.monotonic() - started > _FLUSH:
                break
            size += max(_size(more[0]), _size(more[-1])) * len(more)
        yield chunk


@contextlib.contextmanager
def _rows_named(rows, partition, before):
    """In a `with`: a RowError about these rows of a partition, which stand behind so many others, names the row."""
    try:
        yield
    except _columns.RowError as e:
        at = before + _columns.first_refused(rows)
        raise _columns.RowError(f"row {at} of partition {partition}: {e}") from None


def rows_of(data):
    """The RDD of a DataFrame, or of an RDD."""
    return _frames.plain(data).rdd if hasattr(data, "rdd") and hasattr(data, "schema") else data


class _Feeder:
    def __init__(self, cluster_info, cluster_meta, feed_timeout, qname):
        self.info, self.meta, self.timeout, self.qname = cluster_info, cluster_meta, feed_timeout, qname

    def number(self):
        """Of this task's partition."""
        context = util.task_context()
        return context.partitionId() if context else 0

    def manager(self):
        return manager_here(self.info, self.meta, self.number())


class Trainer(_Feeder):
    """Feeds the node of its executor, or all nodes.

    keep: nodes keep the rows for later epochs.
    call: a number of this train(), when all nodes are fed, as evenly as can be: with it, and with the partition, nodes
      know the rows that a repeated task brings again.
    """

    keep = call = None

    def equal_steps(self):
        self.call = random.getrandbits(62)

    def __call__(self, iterator):
        return [self.feed(iterator)[0][0]]

    def feed(self, iterator):
        """[(whether the program wants no more, how many rows were fed)]"""

        def made(memory, shares):
            before = 0
            for chunk in blocks(iterator, shares.count):
                with _rows_named(chunk, self.number(), before):
                    for share, first in shares.of(len(chunk)):
                        part = chunk[first :: shares.count] if shares.count > 1 else chunk
                        yield share, _block.of_rows(part, memory), len(part)
                before += len(chunk)

        return [self._feed(made)]

    def arrow(self, batches):
        """feed() for pyspark's mapInArrow: yields a batch of one row, (terminating, fed)."""
        import pyarrow as pa

        from tensorflowonspark import _arrow

        def made(memory, shares):
            for batch in batches:
                # Copying costs more than the start of a block: a batch is one, but for very large ones.
                rows = max(1, min(len(batch), shares.count * _MOST_BYTES * len(batch) // max(1, batch.nbytes)))
                for whole in (batch.slice(i, rows) for i in range(0, len(batch), rows)):
                    for share, first in shares.of(len(whole)):
                        part = (
                            whole.take(pa.array(range(first, len(whole), shares.count))) if shares.count > 1 else whole
                        )
                        yield share, _block.write(*_arrow.of_batch(part), len(part), memory), len(part)

        terminating, fed = self._feed(made)
        yield pa.RecordBatch.from_arrays([pa.array([terminating]), pa.array([fed])], ["terminating", "fed"])

    def managers(self):
        return managers_of_all(self.info, self.meta) if self.call else [self.manager()]

    def _feed(self, made):
        """Feeds the (share, block, rows) of made(memory, shares), each while its node takes the one before."""
        queues = [m.get_queue(self.qname) for m in self.managers()]
        number = self.number()
        shares = Shares(len(queues), number)
        before, wanted = [None] * len(queues), True

        def taken(share):
            wanted = queues[share].sent()  # the node has the deadline
            pool.sent(before[share], queues[share].local)
            before[share] = None
            return wanted

        pool = _block.Pool()
        try:
            for share, block, rows in made(pool.take, shares):
                if before[share] is not None:
                    wanted = taken(share)
                before[share] = block
                if not wanted:
                    break
                place = {"call": self.call, "partition": number, "at": shares.sent[share]} if self.call else None
                queues[share].send_block(block, rows, self.timeout, keep=self.keep, place=place)
                shares.sent[share] += rows
            for share in range(len(queues)):
                if before[share] is not None and wanted:
                    wanted = taken(share)
        finally:
            for memory in (pool, *filter(None, before)):
                memory.close()
        return not wanted, sum(shares.sent)


class Shares:
    """Of the rows of a partition: row i is in share (first + i) % count, whatever the sizes of chunks, which another
    attempt may have otherwise. `sent`: rows of each share.
    """

    def __init__(self, count, first):
        self.count, self.sent, self._next = count, [0] * count, first

    def of(self, rows):
        """[(share, i)] of the next rows: those at i, i + count, ... are that share's."""
        shares = [((self._next + i) % self.count, i) for i in range(min(rows, self.count))]
        self._next += rows
        return shares


class Scorer(_Feeder):
    """Yields results while it feeds: what the program has answered is taken between two blocks."""

    def __call__(self, iterator):
        manager = self.manager()
        queue = manager.get_queue(self.qname)
        feed = queue.ask({"open": {}})[0]["feed"]
        results = manager.get_queue("output")
        fed = had = 0
        for chunk in blocks(iterator):
            with _rows_named(chunk, self.number(), fed):
                wanted = queue.put_rows(chunk, self.timeout, feed=feed)
            if not wanted:
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
                if not manager.stuck(what, self.timeout):
                    continue  # it works on rows of other tasks
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
