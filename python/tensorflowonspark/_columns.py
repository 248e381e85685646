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


class RowError(TypeError):
    """A row that cannot be fed; the message names the row, what is wrong, and what can be fed."""


def _typename(value):
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _mixed(values, at):
    first = next(v for v in values if v is not None)
    for row, value in enumerate(values):
        if value is not None and type(value) is not type(first):
            raise RowError(
                f"{at} is {_typename(first)} in one row and {_typename(value)} in another (row {row} of this block): "
                "all rows of a feed have one type; convert them before they are fed"
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


def _strings(values, kind):
    encoded = [v.encode() for v in values] if kind is str else values
    data = np.frombuffer(b"".join(encoded), np.uint8)
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
        data = np.array(values).reshape(-1) if len(values) > 1 else np.asarray(first).reshape(-1)
        return {"kind": "number", "dtype": data.dtype.str, "shape": list(first.shape), "box": box}, [data]
    shapes = np.array([v.shape for v in values], np.int64).reshape(-1)
    data = np.concatenate([v.reshape(-1) for v in values])
    return {"kind": "ragged", "dtype": data.dtype.str, "dims": first.ndim}, [shapes, data]


_SCALARS = frozenset((bool, int, float))


def _is_record(values):
    """Whether tuples or lists have fields, rather than elements. Numbers of one kind are elements; so are, of a list,
    strings, and lists unless their lengths tell them apart, place by place ([pixels, label]).
    """
    first = values[0]
    kinds = set(map(type, first))
    if kinds <= {int, float} or kinds == {bool}:
        return False
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
    return np.frombuffer(flat, np.int64 if kinds == {int} else np.float64)


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


def _cut(data, offsets):
    """The bytes of each row: of small ones by one copy of all, which costs less than a slice of an array for each."""
    start, end = offsets[0], offsets[-1]
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

    def array(self, first, last, what="a column"):
        """Rows [first, last) as one array of the shape (last - first, ...), a view where the block has it so: numbers,
        and lists of them of one length. Strings become an array of objects. TypeError for what is ragged or has None.
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
                at = first + int(np.argmax(lengths != lengths[0]))
                raise TypeError(
                    f"{what} is ragged: row {first} has {lengths[0]} elements and row {at} has {lengths[at - first]}; "
                    "a tensor needs one length: pad the rows, or take them with next_batch()"
                )
            flat = self.child.array(int(self.offsets[first]), int(self.offsets[last]), what)
            return flat.reshape(last - first, -1, *flat.shape[1:]) if last > first else flat
        raise TypeError(f"{what} is of kind {self.kind}, which is no tensor; take the rows with next_batch()")

    def names(self):
        """Of the fields of a record; None when the rows are no record."""
        if self.kind != "record":
            return None
        return self.about.get("names") or list(range(len(self.columns)))
