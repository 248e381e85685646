"""Layers that are written in Python: python_param { module: 'm' layer: 'Class' } in a net, a subclass of Layer here."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import itertools
import threading
import weakref
from typing import Any, Iterator, List, Optional

from ._engine import (
    BACKWARD,
    CLASS,
    FORWARD,
    MODULE,
    NAME,
    ON_MAKE,
    ON_RUN,
    PARAM_STR,
    RESHAPE,
    Blob,
    BlobVec,
    LayerHost,
    check,
    guarded,
    lib,
    made,
)


class LayerParam:
    """What a layer is made with: its name, type, param_str and phase."""

    def __init__(self, name: str, type: str, param_str: str = "", phase: int = 1) -> None:
        self.name, self.type, self.param_str, self.phase = name, type, param_str, phase


class Layer:
    """A layer of a net: type, blobs (its parameters).

    A layer in Python is a subclass with setup(bottom, top), reshape(bottom, top), forward(bottom, top) and
    backward(top, propagate_down, bottom). It finds param_str and phase (caffe.TRAIN or caffe.TEST) in itself.
    """

    name: str
    type: str
    param_str: str
    phase: int
    blobs: BlobVec

    def __new__(cls, param: Optional[LayerParam] = None, *_: Any, **__: Any) -> "Layer":
        layer = super().__new__(cls)
        param = param if isinstance(param, LayerParam) else LayerParam("", "Python")
        layer.name, layer.type, layer.param_str, layer.phase = param.name, param.type, param.param_str, param.phase
        layer.blobs = BlobVec()
        return layer

    def __init__(self, param: Optional[LayerParam] = None) -> None:
        pass


class Hosted:
    """A layer written in Python, with the blobs around it; kept by the net that it belongs to."""

    def __init__(self, layer: Layer, bottom: List[Blob], top: List[Blob]) -> None:
        self.layer, self.bottom, self.top = layer, bottom, top


_numbers = itertools.count()
_known: "weakref.WeakValueDictionary[int, Hosted]" = weakref.WeakValueDictionary()
_building = threading.local()


@contextlib.contextmanager
def collected() -> Iterator[List[Hosted]]:
    """Collects the layers that are made while a net is built, so that the net can keep them."""
    before, _building.made = getattr(_building, "made", None), []
    try:
        yield _building.made
    finally:
        _building.made = before


def instance(number: int) -> Layer:
    return _known[number].layer


def _class_of(module: str, name: str) -> type:
    found = getattr(importlib.import_module(module), name, None)
    if not (isinstance(found, type) and issubclass(found, Layer)):
        raise TypeError(
            f"python_param names {module}.{name}, which is "
            f"{'not there' if found is None else 'no subclass of caffe.Layer'}"
        )
    return found


@guarded
def _make(_user: Any, handle: int, number: Any) -> None:
    def text(which: int) -> str:
        return lib.layer_text(handle, which).decode()

    param = LayerParam(text(NAME), "Python", text(PARAM_STR), lib.layer_phase(handle))
    layer = _class_of(text(MODULE), text(CLASS))(param)
    bottom = [Blob(made(lib.layer_bottom, handle, i)) for i in range(lib.layer_bottoms(handle))]
    top = [Blob(made(lib.layer_top, handle, i)) for i in range(lib.layer_tops(handle))]
    hosted = Hosted(layer, bottom, top)
    layer.blobs._layer = handle
    try:
        layer.setup(bottom, top)  # type: ignore[attr-defined]
    finally:
        layer.blobs._layer = None
    number[0] = next(_numbers)
    _known[number[0]] = hosted
    _building.made.append(hosted)


@guarded
def _run(_user: Any, number: int, which: int, propagate_down: Any) -> None:
    hosted = _known[number]
    layer: Any = hosted.layer
    if which == RESHAPE:
        layer.reshape(hosted.bottom, hosted.top)
    elif which == FORWARD:
        layer.forward(hosted.bottom, hosted.top)
    elif which == BACKWARD:
        layer.backward(hosted.top, [bool(propagate_down[i]) for i in range(len(hosted.bottom))], hosted.bottom)


_host = LayerHost(ctypes.sizeof(LayerHost), None, ON_MAKE(_make), ON_RUN(_run))
check(lib.set_layer_host(ctypes.byref(_host)))
