"""What the arrays of a feed have in common: the fields of its rows, and for each a dtype and the shape of a row. Each
block of rows was encoded by itself; the first one decides for the feed.
"""

import numpy as np

_OBJECT, _BOOL = "O", "b"  # kinds of numpy's dtypes


def _as(array, dtype):
    """The array in that dtype; None where that would change a value."""
    if array.dtype == dtype:
        return array
    if {array.dtype.kind, dtype.kind} & {_OBJECT, _BOOL}:
        return None
    cast = array.astype(dtype) if np.can_cast(array.dtype, dtype, "safe") else None
    # To numpy, each int64 is safe as float64.
    exact = cast is None or array.dtype.kind == dtype.kind or (cast.real.astype(array.dtype) == array).all()
    return cast if exact else None


def _type(dtype):
    return "text or bytes" if dtype.kind == _OBJECT else str(dtype)


class Signature:
    """Of one arrays() or dataset()."""

    def __init__(self):
        self._names = self._types = None
        self._rows = 0  # that came before

    def fitted(self, arrays, names, what):
        """The arrays of the next rows, one for each field, in the feed's types. TypeError, with what to do, for rows of
        other fields, types or shapes.

        Args:
          names: of the fields; None: rows have none.
          what: how a message calls each of them.
        """
        if self._types is None:
            self._names, self._types = names, [(a.dtype, a.shape[1:]) for a in arrays]
        if names != self._names:
            raise TypeError(
                f"from row {self._rows} of this feed on rows have {_fields(names)}, and had {_fields(self._names)}: "
                "all rows of a feed have the same ones"
            )
        made = [self._one(*of) for of in zip(arrays, what, *zip(*self._types))]
        self._rows += len(arrays[0])
        return made

    def _one(self, array, what, dtype, shape):
        if array.shape[1:] != shape:
            raise TypeError(
                f"{what} has the shape {list(array.shape[1:])} from row {self._rows} of this feed on, and had "
                f"{list(shape)}; a tensor needs one: pad the rows, or take them with next_batch()"
            )
        fits = _as(array, dtype)
        if fits is None:
            raise TypeError(
                f"{what} is {_type(array.dtype)} from row {self._rows} of this feed on, and was {_type(dtype)}; a "
                "tensor has one type: convert all rows where they are made, as by float(x), or take them with "
                "next_batch()"
            )
        return fits


def _fields(names):
    return "no fields" if names is None else f"{len(names)} field(s) {list(names)}"
