"""What a program that runs on a node uses: its data, its port, its paths."""

import getpass
import itertools
import logging

import numpy as np

from tensorflowonspark import _column, _hadoop, _reader, _signature, util

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


def local_files(ctx, path, share=None, silence=_hadoop.SILENCE):
    """Paths on this machine of files that TensorFlow cannot open where they are, as on HDFS: this node's share of them
    is copied by Hadoop's client, and removed when the process ends. Takes some seconds, and the time of the copy.

    Args:
      ctx: of the program.
      path: as hdfs_path() takes it, with * ? [] {} for several files. Those of file:// are not copied.
      share: (index, count): the files at index, index + count, ... in the order of their names. By default the nodes
        that train take a share each, and an evaluator all.
      silence: seconds in which a copy may move nothing; TimeoutError then. As long as it does it may take any time.
    """
    if share is None:
        training = [job for job in ("chief", "master", "worker") if job in ctx.cluster_spec]
        if ctx.job_name in training:
            before = sum(len(ctx.cluster_spec[job]) for job in training[: training.index(ctx.job_name)])
            share = (before + ctx.task_index, ctx.num_workers)
        else:
            share = (0, 1) if ctx.cluster_spec else (ctx.worker_num, max(1, ctx.num_workers))  # TFParallel has no jobs
    return _hadoop.local_files(hdfs_path(ctx, path), share, silence)


def local_folder(ctx, path, silence=_hadoop.SILENCE):
    """The path on this machine of a folder that TensorFlow cannot open where it is, such as a SavedModel on HDFS: of a
    copy by Hadoop's client, which is removed when the process ends. A folder of file:// is not copied.

    Args:
      path: as hdfs_path() takes it.
      silence: as of local_files().
    """
    return _hadoop.local_folder(hdfs_path(ctx, path), silence)


def upload(ctx, local, path, silence=_hadoop.SILENCE):
    """Copies a local file or folder to where TensorFlow cannot write, as on HDFS, by Hadoop's client. Takes some
    seconds, and the time of the copy.

    Args:
      path: of the copy, as hdfs_path() takes it. A file replaces one that is there, and is copied into a folder under
        its own name; a folder is not copied to where something is. The folder above must be there.
      silence: as of local_files().
    """
    _hadoop.upload(local, hdfs_path(ctx, path), silence)


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
      input_mapping: {column of a DataFrame: tensor}; next_batch() then gives a dict. Rows that have names, those of a
        DataFrame and dicts, are looked into by the names of columns; other fields of theirs are left out. Those of
        tuples and lists stand in the order of the columns' names, as many as there are columns.
      equal_steps: an epoch has the same number of batches on each node, all of one batch_size but for the last ones,
        which share what is left, so that programs that add up their gradients step by step (synchronous training) end
        together, with every row used. TFCluster.train() must have equal_steps as well.
    """

    def __init__(
        self,
        mgr,
        train_mode=True,
        qname_in="input",
        qname_out="output",
        input_mapping=None,
        equal_steps=False,
    ):
        self.mgr = mgr
        self.train_mode = train_mode
        self.qname_in, self.qname_out = qname_in, qname_out
        mapped = sorted(input_mapping.items()) if input_mapping is not None else None
        self.input_columns = mapped and [c for c, _ in mapped]
        self.input_tensors = mapped and [t for _, t in mapped]
        self.queue_in, self.queue_out = mgr.get_queue(qname_in), mgr.get_queue(qname_out)
        self._reader = _reader.Reader(self.queue_in, not train_mode, equal_steps)
        self._answered = 0  # rows that have their result

    @property
    def done_feeding(self):
        """Whether the feed has ended."""
        return self._reader.ended

    def epochs(self):
        """Yields this feed once for each epoch: should_stop() is then true at its end, and next_batch(), arrays() and
        dataset() end there. An epoch is what one TFCluster.train() feeds, num_epochs times.
        """
        for _ in self._reader.epochs():
            yield self

    def next_batch(self, batch_size):
        """The next rows, `batch_size` of them; fewer at the end of the feed, and without train_mode at the end of a
        partition. Waits for them.

        Returns: a list of rows as they were fed; with an input_mapping {tensor: list of values}.
        """
        tensors = self.input_tensors
        if tensors is None:
            return [row for part in self._reader.batch(batch_size, _column.Column.rows) for row in part]

        def fields(column, first, last):
            return [column.columns[i].rows(first, last) for i in self._mapped(column)]

        out = {t: [] for t in tensors}
        for part in self._reader.batch(batch_size, fields):
            for tensor, values in zip(tensors, part):
                out[tensor].extend(values)
        return out

    def _mapped(self, column):
        """Which fields of rows the columns of input_mapping are, in their order."""
        wanted, names = self.input_columns, column.names()
        if column.kind == "record" and column.about.get("names"):
            missing = [name for name in wanted if name not in names]
            if missing:
                raise TypeError(
                    f"input_mapping names column {missing[0]!r}, which rows do not have; they have "
                    f"{', '.join(names)}: correct input_mapping, or give the columns that are fed those names"
                )
            return [names.index(name) for name in wanted]
        if names is None or len(names) != len(wanted):
            raise TypeError(
                f"input_mapping names {len(wanted)} column(s), and rows have "
                f"{'no' if names is None else len(names)} fields: feed one field for each column, in the order of the "
                "columns' names"
            )
        return range(len(names))

    def arrays(self, batch_size):
        """Yields batches as lists of arrays, one for each field of a row (one alone when rows have no fields), or for
        each tensor of input_mapping in the order of its columns' names, of shape (rows, ...): views of the memory that
        the rows came in where a batch lies in one block, else copies. The memory is given back when the last view is
        gone. Batches are as next_batch()'s. TypeError for fields that are no tensor, and for rows of other fields,
        types or shapes than the first ones; whole numbers count as floats where the first ones were. Fields have: Rows,
        dicts, and tuples of up to 16 values or of different types; longer tuples, and lists of numbers, are one array.
        """
        signature = _signature.Signature()

        def fields(column, first, last):
            names = column.names()
            columns = [column] if names is None else column.columns
            if self.input_tensors is not None:
                chosen = self._mapped(column)
                names, columns = [names[i] for i in chosen], [columns[i] for i in chosen]
            what = ["a row"] if names is None else [f"field {n!r} of a row" for n in names]
            number = self._reader.rows - (last - first)  # of the first one in this feed
            arrays = signature.fitted([c.array(first, last, w, number) for c, w in zip(columns, what)], names, what)
            # A part of a batch is copied, so that its block is not in use while the rest is waited for.
            return arrays if last - first == batch_size else [a.copy() for a in arrays]

        while not self.should_stop():
            batch = list(self._reader.batch(batch_size, fields))
            if batch:
                whole = batch[0] if len(batch) == 1 else [np.concatenate(parts) for parts in zip(*batch)]
                del batch
                yield whole
                del whole

    def dataset(self, batch_size):
        """The feed as a tf.data.Dataset of whole batches: of a tensor, of a tuple of tensors, one for each field of a
        row, or with an input_mapping of {tensor: values}. Waits for the first rows, whose types and shapes it takes.
        str and bytes become tf.string; numbers are not copied where a batch lies in one block, which stays in memory as
        long as its tensors: cache() keeps all of them.
        """
        import tensorflow as tf

        batches = self.arrays(batch_size)
        first = next(batches, None)
        if first is None:
            raise ValueError("the feed, or the epoch, has ended before its first row, so its types are not known")

        def spec(array):
            dtype = tf.string if array.dtype == object else tf.as_dtype(array.dtype)
            return tf.TensorSpec((None, *array.shape[1:]), dtype)

        def shaped(values):
            if self.input_tensors is not None:
                return dict(zip(self.input_tensors, values))
            return tuple(values) if len(values) > 1 else values[0]

        def ahead():
            while waiting:
                yield waiting.pop()

        def generate():  # nothing here keeps a batch while the next one is waited for
            return map(shaped, itertools.chain(ahead(), batches))

        signature, waiting = shaped([spec(a) for a in first]), [first]
        del first
        return tf.data.Dataset.from_generator(generate, output_signature=signature)

    def should_stop(self):
        """Whether the feed has ended; in epochs(), whether the epoch has."""
        return self._reader.stops()

    def batch_results(self, results):
        """One result for each row of next_batch(), in order: a list, or an array of the results. ValueError for more of
        them than there are rows without one.
        """
        rows = list(results)
        waiting = self._reader.rows - self._answered
        # Who took no rows answers those of another DataFeed of this node.
        if self._reader.rows and not self.train_mode and len(rows) > waiting:
            raise ValueError(
                f"batch_results() got {len(rows)} result(s), and {waiting} row(s) of next_batch() have none yet: there "
                "is one for each row, in order"
            )
        self._answered += len(rows)
        if rows:
            self.queue_out.put_rows(rows)

    def terminate(self):
        """No more rows are wanted: what waits is dropped, and feeding tasks end."""
        self.mgr.set("state", "terminating")
        dropped = self.mgr.get_queue(self.qname_in).drop()
        logger.info("dropped %d rows", dropped)
