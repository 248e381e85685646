"""What a program that runs on a node uses: its data, its port, its paths."""

import getpass
import logging
import threading

import numpy as np

from tensorflowonspark import _column, _wire, util

logger = logging.getLogger(__name__)

# Paths that are absolute already.
_SCHEMES = tuple(
    s + "://"
    for s in ("abfs abfss adl cos cosn file gs hdfs o3 obs ofs oss s3 s3a s3n swift viewfs wasb wasbs webhdfs".split())
)


def __getattr__(name):
    if name == "TF_VERSION":  # of the TensorFlow that is installed, which is not imported for it
        return util.tf_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def hdfs_path(ctx, path):
    """A path as TensorFlow's file systems take it.

    Args:
      ctx: has `defaultFS` and `working_dir`.
      path: with a scheme: returned as it is; absolute: of the default file system; relative: of the user's folder on
        HDFS, of the driver's working folder on a local file system.
    """
    if path.startswith(_SCHEMES):
        return path
    if path.startswith("/"):
        return ctx.defaultFS + path
    if ctx.defaultFS.startswith(("hdfs://", "viewfs://")):
        return f"{ctx.defaultFS}/user/{getpass.getuser()}/{path}"
    if ctx.defaultFS.startswith("file://"):
        return f"{ctx.defaultFS}/{ctx.working_dir[1:]}/{path}"
    logger.warning("Unknown scheme %s with relative path: %s", ctx.defaultFS, path)
    return f"{ctx.defaultFS}/{path}"


def start_cluster_server(ctx, num_gpus=1, rdma=False):
    """Of TensorFlow 1; raises on the TensorFlow of today, whose strategies read TF_CONFIG."""
    raise Exception(
        "DEPRECATED: Use higher-level APIs like `tf.keras` with a tf.distribute strategy, which reads TF_CONFIG"
    )


def export_saved_model(sess, export_dir, tag_set, signatures):
    """Of TensorFlow 1; raises on the TensorFlow of today."""
    raise Exception("DEPRECATED: Use TF provided APIs instead: `model.export(dir)` or `tf.saved_model.save`")


def next_batch(mgr, batch_size, qname="input"):
    """Raises: DataFeed has it."""
    raise Exception("DEPRECATED: Use TFNode.DataFeed class instead")


def batch_results(mgr, results, qname="output"):
    """Raises: DataFeed has it."""
    raise Exception("DEPRECATED: Use TFNode.DataFeed class instead")


def terminate(mgr, qname="input"):
    """Raises: DataFeed has it."""
    raise Exception("DEPRECATED: Use TFNode.DataFeed class instead")


def release_port(ctx):
    """Gives the port up that the node holds for the program, for a server that binds it without SO_REUSEADDR; gRPC's,
    and so TensorFlow's, need not.
    """
    if ctx.tmp_socket is not None:
        ctx.tmp_socket.close()
        ctx.tmp_socket = None
    if ctx.mgr is not None:
        ctx.mgr.release_port()


class DataFeed:
    """The rows that a program is fed in InputMode.SPARK. One thread at a time, but terminate().

    Args:
      mgr: ctx.mgr.
      train_mode: False when results are wanted: batches then end with a partition.
      qname_in, qname_out: queues.
      input_mapping: {column of a DataFrame: tensor}; next_batch() then gives a dict. Fields of a row stand in the order
        of the columns' names.
    """

    def __init__(self, mgr, train_mode=True, qname_in="input", qname_out="output", input_mapping=None):
        self.mgr = mgr
        self.train_mode = train_mode
        self.qname_in, self.qname_out = qname_in, qname_out
        self.done_feeding = False
        self.input_tensors = [t for _, t in sorted(input_mapping.items())] if input_mapping is not None else None
        self.queue_in, self.queue_out = mgr.get_queue(qname_in), mgr.get_queue(qname_out)
        self._block = None  # that the next row is in
        self._at = self._end = self._bytes = 0
        self._finished, self._finishing = [], threading.Lock()  # bytes of blocks whose last view is gone

    def _next_block(self):
        """False when there is none: at the end of the feed, or of a partition."""
        taken = None
        while taken is None:  # in short waits, as room for more rows may depend on blocks that are given back meanwhile
            self._give_back()
            taken = self.queue_in.take(1)
        mark, block, first, count, size = taken
        if block is None:
            self.queue_in.done(0)
            self.done_feeding = mark == _wire.END_OF_FEED
            return False
        self._block, self._at, self._end, self._bytes = block, first, first + count, size
        return True

    def _parts(self, batch_size, convert):
        """convert(column, first, last) of the next rows, `batch_size` of them at most, in order. A block is left before
        the next one is waited for: who waits for the end of the feed (TFCluster.train) must not wait for this program,
        nor this program for more rows.
        """
        count = 0
        while count < batch_size and not self.done_feeding:
            if self._block is None and not self._next_block():
                if self.done_feeding or (not self.train_mode and count > 0):
                    return
                continue
            last = min(self._end, self._at + batch_size - count)
            count += last - self._at
            part = convert(self._block.column, self._at, last)
            self._at = last
            if self._at == self._end:
                self._leave_block()
            yield part

    def _leave_block(self):
        """It is given back when the last array that stands in it is gone; now, when there is none."""
        self._block.when_free(self._gone, self._bytes)
        self._block = None
        self._give_back()

    def _gone(self, size):
        with self._finishing:
            self._finished.append(size)

    def _give_back(self):
        with self._finishing:
            sizes, self._finished = self._finished, []
        if sizes:
            self.queue_in.done(sum(sizes), len(sizes))

    def next_batch(self, batch_size):
        """The next rows, `batch_size` of them; fewer at the end of the feed, and without train_mode at the end of a
        partition. Waits for them.

        Returns: a list of rows as they were fed; with an input_mapping {tensor: list of values}.
        """
        tensors = self.input_tensors
        if tensors is None:
            return [row for part in self._parts(batch_size, _column.Column.rows) for row in part]

        def fields(column, first, last):
            return [self._field(column, i).rows(first, last) for i in range(len(tensors))]

        out = {t: [] for t in tensors}
        for part in self._parts(batch_size, fields):
            for tensor, values in zip(tensors, part):
                out[tensor].extend(values)
        return out

    def _field(self, column, i):
        if column.kind != "record" or i >= len(column.columns):
            raise TypeError(
                f"input_mapping names {len(self.input_tensors)} column(s), and rows have "
                f"{len(column.columns) if column.kind == 'record' else 'no'} fields: feed one field for each column"
            )
        return column.columns[i]

    def arrays(self, batch_size):
        """Yields batches as lists of arrays, one for each field of a row (one alone when rows have no fields), of shape
        (rows, ...): views of the memory that the rows came in where a batch lies in one block, else copies. The memory
        is given back when the last view is gone. Batches are as next_batch()'s. TypeError for fields that are no
        tensor.
        """

        def fields(column, first, last):
            names = column.names()
            columns = [column] if names is None else column.columns
            what = ["a row"] if names is None else [f"field {n!r} of a row" for n in names]
            arrays = [c.array(first, last, w) for c, w in zip(columns, what)]
            # A part of a batch is copied, so that its block is not in use while the rest is waited for.
            return arrays if last - first == batch_size else [a.copy() for a in arrays]

        while not self.done_feeding:
            batch = list(self._parts(batch_size, fields))
            if batch:
                whole = batch[0] if len(batch) == 1 else [np.concatenate(parts) for parts in zip(*batch)]
                del batch
                yield whole
                del whole

    def dataset(self, batch_size):
        """The feed as a tf.data.Dataset of whole batches: of a tensor, of a tuple of tensors, one for each field of a
        row, or with an input_mapping of {tensor: values}. Waits for the first rows, whose types and shapes it takes.
        str and bytes become tf.string; numbers are not copied where a batch lies in one block.
        """
        import tensorflow as tf

        batches = self.arrays(batch_size)
        first = next(batches, None)
        if first is None:
            raise ValueError("the feed has ended before its first row, so its types are not known")

        def spec(array):
            dtype = tf.string if array.dtype == object else tf.as_dtype(array.dtype)
            return tf.TensorSpec((None, *array.shape[1:]), dtype)

        def shaped(values):
            if self.input_tensors is not None:
                return dict(zip(self.input_tensors, values))
            return tuple(values) if len(values) > 1 else values[0]

        def generate():
            while waiting:
                yield shaped(waiting.pop())
            for batch in batches:
                yield shaped(batch)

        signature, waiting = shaped([spec(a) for a in first]), [first]
        del first
        return tf.data.Dataset.from_generator(generate, output_signature=signature)

    def should_stop(self):
        """Whether the feed has ended."""
        return self.done_feeding

    def batch_results(self, results):
        """One result for each row of next_batch(), in order: a list, or an array of the results."""
        rows = list(results)
        if rows:
            self.queue_out.put_rows(rows)

    def terminate(self):
        """No more rows are wanted: what waits is dropped, and feeding tasks end."""
        self.mgr.set("state", "terminating")
        dropped = self.mgr.get_queue(self.qname_in).drop()
        logger.info("dropped %d rows", dropped)
