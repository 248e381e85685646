"""Arrow's record batches as blocks: columns stay columns, and no row becomes a Python object.

A block of a batch is a record with names, so that next_batch() gives pyspark's Rows, as an RDD of a DataFrame would.
"""

import numpy as np
import pyarrow as pa

from tensorflowonspark import _columns


def _offsets(array, width):
    """n + 1 offsets of a list, string or binary array, from 0, and where its values begin."""
    if not len(array):  # whose buffer Arrow for Java leaves out
        return np.zeros(1, np.int64), 0
    raw = np.frombuffer(array.buffers()[1], width)[array.offset : array.offset + len(array) + 1]
    return raw.astype(np.int64) - int(raw[0]), int(raw[0])


def _text(array, kind):
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    offsets, start = _offsets(array, np.int64 if wide else np.int32)
    buffer = array.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None else np.empty(0, np.uint8)
    about = {"kind": "str"} if kind == "str" else {"kind": "bytes", "box": "bytes"}
    return about, [offsets, data[start : start + int(offsets[-1])]]


def _list(array, at):
    if pa.types.is_fixed_size_list(array.type):
        length = array.type.list_size
        child, buffers = column(array.values.slice(array.offset * length, len(array) * length), f"an element of {at}")
        return {"kind": "list", "box": "list", "length": length, "child": child}, buffers
    offsets, start = _offsets(array, np.int64 if pa.types.is_large_list(array.type) else np.int32)
    child, buffers = column(array.values.slice(start, int(offsets[-1])), f"an element of {at}")
    lengths = np.diff(offsets)
    about = {"kind": "list", "box": "list", "child": child}
    if len(lengths) and lengths.min() == lengths.max():
        return dict(about, length=int(lengths[0])), buffers
    return about, [offsets, *buffers]


def _number(array):
    if pa.types.is_boolean(array.type):
        data = array.to_numpy(zero_copy_only=False)
    else:
        data = array.to_numpy(zero_copy_only=True)
    return {"kind": "number", "dtype": data.dtype.str, "shape": [], "box": "scalar"}, [data]


def column(array, at):
    """The column of an Arrow array (_columns.py). RowError names a type that cannot be fed, and what to do."""
    if array.null_count:
        present = array.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
        if not present.any():
            return {"kind": "null"}, []
        about, buffers = column(array.drop_null(), at)
        return dict(about, nulls=True), [present, *buffers]
    kind = array.type
    if pa.types.is_null(kind):
        return {"kind": "null"}, []
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _number(array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text(array, "str")
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _text(array, "bytes")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _list(array, at)
    if pa.types.is_struct(kind):
        return record(array.flatten(), [f.name for f in kind], at)
    raise _columns.RowError(
        f"{at} is of type {kind}, which cannot be fed; cast it before: numbers, strings, binary, and arrays and "
        "structs of them can"
    )


def record(arrays, names, at="a row"):
    made = [column(a, f"{at}[{n!r}]") for a, n in zip(arrays, names)]
    columns = [dict(about, buffers=len(buffers)) for about, buffers in made]
    return {"kind": "record", "box": "row", "names": names, "columns": columns}, [b for _, bs in made for b in bs]


def of_batch(batch):
    """The column of a RecordBatch."""
    return record(batch.columns, batch.schema.names)
