"""Dictionaries by name of what a net holds."""

import difflib
from collections import OrderedDict
from typing import Any


class UnknownName(KeyError):
    """A KeyError whose text is its message, without quotes."""

    def __str__(self) -> str:
        return str(self.args[0])


class Named(OrderedDict):
    """A net's blobs, layers or parameters by name; an error about an unknown name suggests the nearest known one."""

    def __init__(self, items: Any = (), what: str = "") -> None:
        super().__init__(items)
        self._what = what or getattr(items, "_what", "entry")  # OrderedDict builds unions by calling Named(self)

    def copy(self) -> "Named":
        return Named(self)

    def __missing__(self, name: Any) -> Any:
        near = difflib.get_close_matches(str(name), map(str, self), 1, 0.5)
        raise UnknownName(
            f"the net has no {self._what} '{name}'"
            + (f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(self)}")
        )

    def __reduce__(self) -> Any:
        return OrderedDict, (list(self.items()),)
