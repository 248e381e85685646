"""Data frames as they are fed."""

import contextlib

_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS = 256  # a batch, where the size of rows is not known: Spark's 10,000 are of images more than an executor's memory
_BYTES, _MOST = 4 << 20, 8192  # a batch, where it is


def plain(data):
    """A DataFrame whose vectors of Spark ML are arrays; what has none, and an RDD, as it is."""
    if not hasattr(data, "schema"):
        return data
    vectors = {field.name for field in data.schema.fields if field.dataType.simpleString() == "vector"}
    if not vectors:
        return data
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions

    def column(name):
        found = functions.col("`" + name.replace("`", "``") + "`")
        return vector_to_array(found).alias(name) if name in vectors else found

    return data.select([column(name) for name in data.columns])


def has_arrow():
    """Whether this Python has what pyspark needs to pass columns: without it a DataFrame is fed as rows."""
    try:
        from pyspark.sql.pandas.utils import require_minimum_pandas_version, require_minimum_pyarrow_version

        require_minimum_pandas_version()
        require_minimum_pyarrow_version()
    except ImportError:
        return False
    return True


def _rows_of_a_batch(frame):
    """Of a cached frame Spark has counted rows and bytes; of others it guesses a hundred bytes for a value of any
    size.
    """
    try:
        plan = frame._jdf.queryExecution().optimizedPlan()
        if plan.nodeName() != "InMemoryRelation":
            return _ROWS
        known = plan.stats()
        rows, size = int(str(known.rowCount().get())), int(str(known.sizeInBytes()))
        return max(_ROWS, min(_BYTES * rows // max(1, size), _MOST))
    except Exception:  # Spark Connect has no such thing, most frames no count of their rows
        return _ROWS


def bound_batches(frame):
    """Has Spark pass rows of any size in small batches, in queries of this frame's session that begin from now on;
    returns how many rows a batch may have had, or None when that is as it was.
    """
    from pyspark.sql import types

    sizes = (types.NumericType, types.BooleanType, types.DateType, types.TimestampType)
    if all(isinstance(field.dataType, sizes) for field in frame.schema.fields):
        return None
    conf = frame.sparkSession.conf
    before, rows = conf.get(_BATCH), _rows_of_a_batch(frame)
    if 0 < int(before) <= rows:
        return None
    conf.set(_BATCH, str(rows))
    return before


@contextlib.contextmanager
def small_batches(frame):
    """bound_batches() in a `with`."""
    before = bound_batches(frame)
    try:
        yield
    finally:
        if before is not None:
            frame.sparkSession.conf.set(_BATCH, before)
