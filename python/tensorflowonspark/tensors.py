"""Columns of Spark as numpy arrays that fit a tensor, and tensors as columns.

A column of n rows becomes an array of n x the sizes of its nested arrays; strings and binary become objects (bytes).
numpy is there wherever TensorFlow is; pyarrow is needed by the functions for Arrow's columns alone.
"""

import numpy as np

#: dtype of a tensor: (type of Spark, numpy dtype of the values that reach Spark). Unsigned numbers take the next wider
#: type; bfloat16 and half become float.
OUTPUT_TYPES = {
    "bool": ("boolean", np.bool_),
    "int8": ("tinyint", np.int8),
    "uint8": ("smallint", np.int16),
    "int16": ("smallint", np.int16),
    "uint16": ("int", np.int32),
    "int32": ("int", np.int32),
    "uint32": ("bigint", np.int64),
    "int64": ("bigint", np.int64),
    "uint64": ("bigint", np.int64),
    "bfloat16": ("float", np.float32),
    "float16": ("float", np.float32),
    "float32": ("float", np.float32),
    "float64": ("double", np.float64),
    "string": ("binary", np.object_),
}


class BadColumn(ValueError):
    """A value that its tensor cannot take; the message names column and row."""


def of_arrow(column, name, first):
    """A pyarrow array as numpy. name: of the column, first: number of its first row in the partition, for errors."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes, row_items = [len(column)], 1
    while True:
        _refuse_nulls(column, name, lambda at, items=row_items: first + at // items)
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            break
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
        size = int(lengths[0]) if len(lengths) else 0
        if (lengths != size).any():
            at = int((lengths != size).argmax())
            raise _ragged(name, first + at // row_items, int(lengths[at]), first, size)
        sizes.append(size)
        row_items *= max(size, 1)
        column = column.flatten()
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        values = np.empty(len(column), object)
        values[:] = column.cast(pa.binary()).to_pylist()
    else:
        values = column.to_numpy(zero_copy_only=False)
    return values.reshape(sizes)


def _refuse_nulls(column, name, row_of):
    if column.null_count:
        row = row_of(int(column.is_null().to_numpy(zero_copy_only=False).argmax()))
        raise BadColumn(f"column '{name}' has a null in row {row} of its partition; fill it, or drop such rows first")


def _ragged(name, row, items, first, expected):
    return BadColumn(
        f"column '{name}' has {items} items in row {row} of its partition and {expected} in row {first}; the rows of a "
        "batch are one tensor: pad them to one length, or set batch_size to 1"
    )


def of_rows(values, name, first):
    """A list of Python's values as numpy: what of_arrow gives for the same column."""
    for at, value in enumerate(values):
        if value is None:
            raise BadColumn(
                f"column '{name}' has a null in row {first + at} of its partition; fill it, or drop such rows first"
            )
        if isinstance(value, (list, tuple)) and len(value) != len(values[0]):
            raise _ragged(name, first + at, len(value), first, len(values[0]))
    leaf = values
    while len(leaf) and isinstance(leaf[0], (list, tuple)):
        leaf = leaf[0]
    if len(leaf) and isinstance(leaf[0], (str, bytes, bytearray)):
        sizes, flat = [len(values)], list(values)
        while isinstance(flat[0], (list, tuple)):
            sizes.append(len(flat[0]))
            flat = [item for row in flat for item in row]
        found = np.empty(len(flat), object)
        found[:] = [item.encode() if isinstance(item, str) else bytes(item) for item in flat]
        return found.reshape(sizes)
    try:
        found = np.asarray(values)
    except ValueError:  # numpy's for nested lists of different lengths
        found = np.empty(0, object)
    if _is_bytes(found.dtype):
        end = first + len(values) - 1
        raise BadColumn(
            f"column '{name}' has a null or arrays of several lengths in rows {first} to {end} of its partition"
        )
    return found


def fitted(values, name, tensor, dtype, shape, is_text=False):
    """`values` (of_arrow, of_rows) in a tensor's dtype (numpy's; object for strings) and shape.

    shape: a list with None for any size, or None for any shape; its first place is the batch. Sizes that differ are
    reshaped, as Spark's columns often are flat. Binary values for a tensor of numbers are those numbers' bytes. Whole
    numbers become floating-point ones, and narrower ones where they fit; a number is never rounded or made a text.
    """
    binary = _is_bytes(values.dtype)
    if binary and not _is_bytes(dtype) and not is_text:
        values = _numbers_of_bytes(values, name, tensor, dtype)
    elif binary != _is_bytes(dtype) or not binary and not _may_become(values.dtype, dtype):
        have = "string" if is_text else "binary" if binary else values.dtype.name
        want = "strings" if _is_bytes(dtype) else dtype.name
        raise BadColumn(f"column '{name}' is {have} and tensor '{tensor}' takes {want}; cast the column first")
    if not binary:
        values = _converted(values, name, tensor, dtype)
    return _shaped(values, name, tensor, shape)


def _is_bytes(dtype):
    return dtype.kind == "O"


def _numbers_of_bytes(values, name, tensor, dtype):
    lengths = {len(value) for value in values.flat}
    if len(lengths) > 1 or any(length % dtype.itemsize for length in lengths):
        raise BadColumn(
            f"column '{name}' holds binary values of {', '.join(map(str, sorted(lengths)[:5]))} bytes and tensor "
            f"'{tensor}' takes {dtype.name}: all must be of one length, a multiple of {dtype.itemsize}"
        )
    return np.frombuffer(b"".join(values.flat), dtype).reshape(*values.shape, -1)


def _may_become(have, want):
    if have.kind == "b" or want.kind == "b":
        return want.kind in "biuf" and have.kind == "b"
    return have.kind in "iuf" and (want.kind not in "iu" or have.kind in "iu")


def _converted(values, name, tensor, dtype):
    if dtype.kind in "iu" and values.dtype.kind in "iu" and values.size:
        limits = np.iinfo(dtype)
        low, high = int(values.min()), int(values.max())
        if low < limits.min or high > limits.max:
            raise BadColumn(
                f"column '{name}' has {low if low < limits.min else high}, and tensor '{tensor}' takes {dtype.name}, "
                f"{limits.min} to {limits.max}"
            )
    return values.astype(dtype, copy=False)


def _shaped(values, name, tensor, shape):
    if shape is None or not shape:
        return values
    wanted = [len(values), *shape[1:]]
    if len(wanted) == values.ndim and all(w in (None, v) for w, v in zip(wanted, values.shape)):
        return values
    if wanted.count(None) <= 1:
        try:
            return values.reshape([-1 if size is None else size for size in wanted])
        except ValueError:
            pass
    row = " x ".join(map(str, values.shape[1:])) or "1"
    want = " x ".join("any" if size is None else str(size) for size in shape[1:]) or "a scalar"
    raise BadColumn(f"column '{name}' has rows of {row} items and tensor '{tensor}' takes rows of {want}")


def spark_type(column, tensor, dtype, rank):
    """The type of an output column in Spark's words: array<...> for each dimension behind the batch."""
    if dtype not in OUTPUT_TYPES:
        known = ", ".join(OUTPUT_TYPES)
        raise BadColumn(
            f"tensor '{tensor}' for column '{column}' is {dtype}, which is no column's type; known: {known}"
        )
    return "array<" * (rank - 1) + OUTPUT_TYPES[dtype][0] + ">" * (rank - 1)


def for_spark(values, dtype):
    """A tensor's numpy array with values that Spark's type can hold."""
    wanted = OUTPUT_TYPES[dtype][1]
    if dtype == "uint64" and values.size and int(values.max()) > np.iinfo(np.int64).max:
        raise BadColumn(f"{int(values.max())} (uint64) does not fit into Spark's bigint")
    return values if wanted is np.object_ else values.astype(wanted, copy=False)


def to_arrow(values):
    """A numpy array of n x ... as n Arrow values, nested lists for the dimensions behind the first."""
    import pyarrow as pa

    flat = values.reshape(-1)
    column = pa.array(flat.tolist(), pa.binary()) if _is_bytes(values.dtype) else pa.array(flat)
    for axis in range(values.ndim - 1, 0, -1):
        count, size = int(np.prod(values.shape[:axis])), values.shape[axis]
        column = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int64) * size, pa.int32()), column)
    return column
