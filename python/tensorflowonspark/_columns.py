"""Rows as columns: what travels between a feeding task and a program.

A column is (description, buffers): a dict that JSON can hold, and a list of one-dimensional numpy arrays. Kinds:

- "number": values of one dtype; `shape` of a row, () for scalars; `box` says what a row was: "scalar" (bool, int,
float),
  "numpy" (array, or numpy scalar). Buffer: the values, row after row.
- "bytes", "str": buffers: n + 1 offsets, then the bytes; str in UTF-8. `box`: "bytes" or "bytearray".
- "list": rows that are lists or tuples (`box`) of one kind: `length` of all of them, or n + 1 offsets as the first
  buffer; `child` is the column of their elements.
- "record": rows that have fields: `box` "tuple", "list", "row" or "dict", `names` for the last two, `columns`.
- "ragged": numpy arrays of one dtype and different shapes: `dims`; buffers: shapes (n x dims), then the values.
- "null": None alone. Any other column with None among its rows has `nulls`, and a buffer in front: 1 where there is a
row.

Python's int is 64 bits wide here, and int beside float in a column becomes float where that is exact.
"""

import array
import itertools

import numpy as np

_EXACT = 1 << 53  # integers up to here are floats without loss
_FIELDS = 16  # a tuple of more numbers of one kind is a list of them: a column for each would cost too much
_LARGE = 8192  # bytes of a row, from which on one more copy costs more than a piece of its own


class RowError(TypeError):
    """A row that cannot be fed; the message names the row, what is wrong, and what can be fed."""


def _typename(value):
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _mixed(values, at):
    first = next(v for v in values if v is not None)
    for value in values:
        if value is not None and type(value) is not type(first):
            raise RowError(
                f"{at} is {_typename(first)} in one row and {_typename(value)} in another: all rows of a feed have one "
                "type; convert them before they are fed"
            )
    raise RowError(f"{at} has rows of different types; convert them before they are fed")


def _numbers(values, types, at):
    kind = next(iter(types))
    try:
        if types == {int, float}:
            if any(type(v) is int and not -_EXACT <= v <= _EXACT for v in values):
                raise RowError(f"{at} has int beside float, and an int that no float holds exactly; convert them")
            data = np.array(values, np.float64)
        else:
            data = np.array(values, {bool: np.bool_, int: np.int64, float: np.float64}[kind])
    except OverflowError:
        raise RowError(f"{at} has an int of more than 64 bits; feed it as str or float") from None
    return {"kind": "number", "dtype": data.dtype.str, "shape": [], "box": "scalar"}, [data]


def _offsets(lengths, count):
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, count), out=offsets[1:])
    return offsets


class Pieces:
    """A buffer in pieces, which stay where they are until a block takes them: large rows are copied once."""

    def __init__(self, pieces, dtype):
        self.pieces, self.dtype = [memoryview(p).cast("B") for p in pieces], np.dtype(dtype)
        self.nbytes = sum(p.nbytes for p in self.pieces)
        self.size = self.nbytes // self.dtype.itemsize


def pieces_of(buffer):
    """The bytes of a buffer of encode(), in pieces."""
    if isinstance(buffer, Pieces):
        return buffer.pieces
    return [memoryview(np.ascontiguousarray(buffer)).cast("B")] if buffer.nbytes else []


def _strings(values, kind):
    encoded = [v.encode() for v in values] if kind is str else values
    large = sum(map(len, encoded)) > _LARGE * len(encoded)
    data = Pieces(filter(len, encoded), np.uint8) if large else np.frombuffer(b"".join(encoded), np.uint8)
    about = {"kind": "str"} if kind is str else {"kind": "bytes", "box": kind.__name__}
    return about, [_offsets(map(len, encoded), len(values)), data]


def _arrays(values, at):
    first = values[0]
    if first.dtype.kind not in "biufc":
        raise RowError(f"{at} is an array of {first.dtype}, which cannot be fed; numbers can")
    if any(v.dtype != first.dtype or v.ndim != first.ndim for v in values):
        raise RowError(
            f"{at} has arrays of different dtypes or numbers of dimensions, such as {first.dtype}{list(first.shape)}; "
            "all rows of a feed have one"
        )
    box = "scalar_array" if isinstance(first, np.generic) else "numpy"
    if len({v.shape for v in values}) == 1:
        if first.nbytes > _LARGE:
            data = Pieces(map(np.ascontiguousarray, values), first.dtype)
        else:
            data = np.array(values).reshape(-1)
        return {"kind": "number", "dtype": data.dtype.str, "shape": list(first.shape), "box": box}, [data]
    shapes = np.array([v.shape for v in values], np.int64).reshape(-1)
    data = np.concatenate([v.reshape(-1) for v in values])
    return {"kind": "ragged", "dtype": data.dtype.str, "dims": first.ndim}, [shapes, data]


_SCALARS = frozenset((bool, int, float))


def _is_record(values):
    """Whether tuples or lists have fields, rather than elements. Numbers of one kind are elements in a list, and in
    tuples of very many or of different lengths; so are, of a list, strings, and lists unless their lengths tell them
    apart, place by place ([pixels, label]).
    """
    first = values[0]
    kinds = set(map(type, first))
    if kinds <= {int, float} or kinds == {bool}:
        return isinstance(first, tuple) and 0 < len(first) <= _FIELDS and len(set(map(len, values))) == 1
    if not isinstance(first, list) or kinds not in ({str}, {list}):
        return True
    if kinds == {str}:
        return False
    lengths = list(map(len, first))
    return len(set(lengths)) > 1 and all(
        len(v) == len(first) and set(map(type, v)) == {list} and list(map(len, v)) == lengths for v in values
    )


def _record(values, box, at):
    first = values[0]
    about = {"kind": "record", "box": box}
    if box in ("row", "dict"):
        names = list(first.__fields__) if box == "row" else list(first)
        if box == "dict" and (not all(isinstance(n, str) for n in names) or any(list(v) != names for v in values)):
            raise RowError(f"{at} is a dict; all rows have the same names, which are str, in the same order")
        about["names"] = names
        columns = zip(*(v.values() for v in values)) if box == "dict" else zip(*values)
    else:
        names = range(len(first))
        if len(set(map(len, values))) > 1:
            raise RowError(f"{at} is a {box} of {len(first)} fields in one row and not in another")
        columns = zip(*values)
    made = [encode(list(column), f"{at}[{name!r}]") for name, column in zip(names, columns)]
    about["columns"] = [dict(description, buffers=len(buffers)) for description, buffers in made]
    return about, [b for _, buffers in made for b in buffers]


def _packed(values):
    """The numbers of lists that have int or float alone, as one array; None where they have anything else. The check is
    in array's own conversion, which is several times as fast as one of each element's type: 'q' takes no float.
    """
    kinds = set(map(type, values[0]))
    if kinds not in ({int}, {float}):
        return None
    flat = array.array("q" if kinds == {int} else "d")
    try:
        for value in values:
            flat.extend(value)
    except (TypeError, OverflowError):
        return None
    if kinds == {int}:  # bool is an int to array
        return None if any(len(v) and type(v[0]) is bool for v in values) else np.frombuffer(flat, np.int64)
    numbers = np.frombuffer(flat, np.float64)
    return None if (np.abs(numbers) > _EXACT).any() else numbers  # it may have been an int that no float holds


def _sequence(values, kind, at):
    if hasattr(values[0], "__fields__"):
        return _record(values, "row", at)
    box = "tuple" if issubclass(kind, tuple) else "list"
    if _is_record(values):
        return _record(values, box, at)
    flat = _packed(values)
    if flat is not None:
        child, buffers = {"kind": "number", "dtype": flat.dtype.str, "shape": [], "box": "scalar"}, [flat]
    else:
        child, buffers = encode(list(itertools.chain.from_iterable(values)), f"an element of {at}")
    lengths = set(map(len, values))
    about = {"kind": "list", "box": box, "child": child}
    if len(lengths) == 1:
        return dict(about, length=lengths.pop()), buffers
    return about, [_offsets(map(len, values), len(values)), *buffers]


def encode(values, at="a row"):
    """The column of a list of Python values. RowError names the row, the cause and the remedy; `at` names the
    column.
    """
    types = set(map(type, values))
    if type(None) in types:
        types.discard(type(None))
        if not types:
            return {"kind": "null"}, []
        present = np.array([v is not None for v in values], np.uint8)
        about, buffers = encode([v for v in values if v is not None], at)
        return dict(about, nulls=True), [present, *buffers]
    if not values:
        return {"kind": "null"}, []
    if types <= _SCALARS and (len(types) == 1 or types == {int, float}):
        return _numbers(values, types, at)
    if len(types) > 1 and not all(issubclass(t, (np.ndarray, np.generic)) for t in types):
        _mixed(values, at)
    kind = type(values[0])
    if kind in (str, bytes, bytearray):
        return _strings(values, kind)
    if issubclass(kind, (np.ndarray, np.generic)):
        return _arrays(values, at)
    if issubclass(kind, (list, tuple)):
        return _sequence(values, kind, at)
    if issubclass(kind, dict):
        return _record(values, "dict", at)
    raise RowError(
        f"{at} is of type {_typename(values[0])}, which cannot be fed; numbers, str, bytes, numpy arrays, and lists, "
        "tuples and dicts of them can"
    )


def first_refused(rows):
    """Which row of a list that encode() refuses cannot stand behind those before it: its index."""
    taken, refused = 0, len(rows)  # so many rows are encoded, so many are not
    while refused - taken > 1:
        middle = (taken + refused) // 2
        try:
            encode(rows[:middle])
            taken = middle
        except RowError:
            refused = middle
    return taken
