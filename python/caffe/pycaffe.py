"""Nets: Net, and what runs batches through it."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from ctypes import c_char_p, c_double
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from . import _engine
from ._engine import (
    BLOBS,
    BOTTOMS,
    INPUTS,
    LAYER_TYPES,
    LAYERS,
    ON_LAYER,
    OUTPUTS,
    TOPS,
    Blob,
    BlobVec,
    Owner,
    check,
    encoded,
    guarded,
    lib,
    made,
    whole,
)
from ._hosted import Hosted, Layer, LayerParam, collected, instance
from ._named import Named

Arrays = Dict[str, Any]  # of np.ndarray
_MOMENTS = {"before_forward": 0, "after_forward": 1, "before_backward": 2, "after_backward": 3}


class Net(Owner):
    """Net(network_file, phase, level=0, stages=None, weights=None): a net of a prototxt, ready to compute.

    The old form Net(network_file, weights, phase) works too.
    """

    _handle: int

    def __init__(self, network_file: Any, *args: Any, **kwargs: Any) -> None:
        names = ["phase", "level", "stages", "weights"]
        if args and not hasattr(args[0], "__index__"):
            lib.log(1, b"DEPRECATION WARNING: write Net(file, phase, weights=...) instead of Net(file, weights, phase)")
            names = ["weights", "phase"]
        given = dict(zip(names, args), **kwargs)
        unknown = set(given) - {"phase", "level", "stages", "weights"}
        if unknown or len(args) > len(names) or "phase" not in given:
            raise TypeError(
                "Net takes (network_file, phase, level=0, stages=None, weights=None)"
                + (f", not {', '.join(sorted(unknown))}" if unknown else "")
            )
        stages = [encoded(s) for s in given.get("stages") or []]
        with collected() as hosted:
            handle = made(
                lib.net_create,
                encoded(network_file),
                whole(given["phase"], "phase"),
                whole(given.get("level", 0), "level"),
                (c_char_p * len(stages))(*stages),
                len(stages),
            )
        self._attach(handle, hosted)
        if given.get("weights") is not None:
            self.copy_from(given["weights"])

    def _attach(self, handle: int, hosted: List[Hosted], keep: Any = None) -> None:
        self._handle, self._hosted, self._keep = handle, hosted, keep
        self._layer_names = self._texts(LAYERS)
        self._blob_names = self._texts(BLOBS)
        self._blobs = [Blob(made(lib.net_blob, handle, name.encode())) for name in self._blob_names]
        self._inputs = [self._blob_names.index(n) for n in self._texts(INPUTS)]
        self._outputs = [self._blob_names.index(n) for n in self._texts(OUTPUTS)]
        self.layers = [self._layer(i, kind) for i, kind in enumerate(self._texts(LAYER_TYPES))]
        self._hooks: Dict[str, Tuple[Any, List[Callable[[int], Any]]]] = {}
        self._arrays: Any = None
        self.blobs: "OrderedDict[str, Blob]" = Named(zip(self._blob_names, self._blobs), "blob")
        self.layer_dict: "OrderedDict[str, Layer]" = Named(zip(self._layer_names, self.layers), "layer")
        self.params: "OrderedDict[str, BlobVec]" = Named(
            ((name, layer.blobs) for name, layer in zip(self._layer_names, self.layers) if layer.blobs),
            "layer with parameters",
        )
        self.inputs = [self._blob_names[i] for i in self._inputs]
        self.outputs = [self._blob_names[i] for i in self._outputs]
        self.bottom_names = OrderedDict((n, self._texts(BOTTOMS, i)) for i, n in enumerate(self._layer_names))
        self.top_names = OrderedDict((n, self._texts(TOPS, i)) for i, n in enumerate(self._layer_names))

    def __del__(self, free: Any = lib.net_free) -> None:
        if hasattr(self, "_handle"):
            free(self._handle)

    def _texts(self, which: int, layer: int = 0) -> List[str]:
        return [
            lib.net_text(self._handle, which, layer, i).decode()
            for i in range(lib.net_count(self._handle, which, layer))
        ]

    def _layer(self, i: int, kind: str) -> Layer:
        number = lib.net_instance(self._handle, i)
        layer = instance(number) if number >= 0 else Layer(LayerParam(self._layer_names[i], kind))
        layer.blobs = BlobVec(
            Blob(made(lib.net_param, self._handle, i, k)) for k in range(lib.net_params(self._handle, i))
        )
        return layer

    @property
    def blob_loss_weights(self) -> "OrderedDict[str, float]":
        return OrderedDict((name, lib.net_loss_weight(self._handle, name.encode())) for name in self._blob_names)

    # --- passes

    def _forward(self, start: int, end: int) -> float:
        """Runs layers start to end, by number, both included; returns the sum of their losses."""
        loss = c_double()
        if self._layer_names:
            check(lib.net_forward(self._handle, start, end, ctypes.byref(loss)))
        return loss.value

    def _backward(self, start: int, end: int) -> None:
        if self._layer_names:
            check(lib.net_backward(self._handle, start, end))

    def _at(self, layer: str) -> int:
        if layer not in self._layer_names:
            raise ValueError(f"the net has no layer '{layer}'; its layers: {', '.join(self._layer_names)}")
        return self._layer_names.index(layer)

    def _place(self, given: Arrays, names: Sequence[str], what: str, diff: bool) -> None:
        if not given:
            return
        if set(given) != set(names):
            raise Exception(
                f"{what} blob arguments do not match net {what.lower()}s: {sorted(given)} are given, "
                f"the net has {sorted(names)}"
            )
        for name, values in given.items():
            blob, values = self.blobs[name], np.asarray(values)
            want = blob.shape
            if want and (values.shape[:1] != want[:1]):
                raise Exception(
                    f"{what} is not batch sized: '{name}' takes {want[0]} at once, here are {values.shape}; reshape "
                    "the blob"
                )
            (blob.diff if diff else blob.data)[...] = values

    def forward(
        self,
        blobs: Optional[Sequence[str]] = None,
        start: Optional[str] = None,
        end: Optional[str] = None,
        **inputs: np.ndarray,
    ) -> Arrays:
        """Computes the net, or its layers from `start` to `end`. Takes inputs by name; returns the outputs and
        `blobs` as views.
        """
        first = self._at(start) if start is not None else 0
        last = self._at(end) if end is not None else len(self.layers) - 1
        wanted = (self.top_names[end] if end is not None else self.outputs) + list(blobs or [])
        self._place(inputs, self.inputs, "Input", False)
        self._forward(first, last)
        return {name: self.blobs[name].data for name in dict.fromkeys(wanted)}

    def backward(
        self,
        diffs: Optional[Sequence[str]] = None,
        start: Optional[str] = None,
        end: Optional[str] = None,
        **top_diffs: np.ndarray,
    ) -> Arrays:
        """Computes gradients from layer `start` down to `end`. Takes gradients of outputs by name; returns those of
        the inputs and `diffs`.
        """
        first = self._at(start) if start is not None else len(self.layers) - 1
        last = self._at(end) if end is not None else 0
        wanted = (self.bottom_names[end] if end is not None else self.inputs) + list(diffs or [])
        self._place(top_diffs, self.outputs, "Output", True)
        self._backward(first, last)
        return {name: self.blobs[name].diff for name in dict.fromkeys(wanted)}

    def _batch(self, blobs: Arrays) -> Iterator[Arrays]:
        """Batches of the net's size; the last is filled up with zeros."""
        size = self.blobs[next(iter(blobs))].shape[0]
        count = len(next(iter(blobs.values())))
        for at in range(0, count, size):
            part = {name: np.asarray(values[at : at + size]) for name, values in blobs.items()}
            missing = size - min(size, count - at)
            yield {
                name: np.concatenate([v, np.zeros((missing,) + v.shape[1:], v.dtype)]) if missing else v
                for name, v in part.items()
            }

    def _joined(self, parts: List[Arrays], count: int) -> Arrays:
        return {name: np.concatenate([p[name] for p in parts])[:count] for name in (parts[0] if parts else {})}

    def forward_all(self, blobs: Optional[Sequence[str]] = None, **inputs: np.ndarray) -> Arrays:
        """forward() for any number of samples, batch after batch; returns copies."""
        parts = [
            {n: np.atleast_1d(v).copy() for n, v in self.forward(blobs, **batch).items()}
            for batch in self._batch(inputs)
        ]
        return self._joined(parts, len(next(iter(inputs.values()))))

    def forward_backward_all(
        self, blobs: Optional[Sequence[str]] = None, diffs: Optional[Sequence[str]] = None, **arrays: np.ndarray
    ) -> Tuple[Arrays, Arrays]:
        """forward() and backward() for any number of samples: inputs and gradients of outputs by name."""

        def of(names: Sequence[str]) -> Arrays:
            return {n: v for n, v in arrays.items() if n in names}

        outs, grads = [], []
        tops = list(self._batch(of(self.outputs))) if of(self.outputs) else None
        for i, batch in enumerate(self._batch(of(self.inputs))):
            outs.append({n: np.atleast_1d(v).copy() for n, v in self.forward(blobs, **batch).items()})
            grads.append({n: v.copy() for n, v in self.backward(diffs, **(tops[i] if tops else {})).items()})
        count = len(next(iter(of(self.inputs).values())))
        return self._joined(outs, count), self._joined(grads, count)

    # --- weights and shapes

    def reshape(self) -> None:
        """Gives all blobs the shapes that follow from the shapes of the inputs."""
        check(lib.net_reshape(self._handle))

    def clear_param_diffs(self) -> None:
        check(lib.net_clear_param_diffs(self._handle))

    def copy_from(self, weights: Any) -> None:
        """Weights by layer name from a .caffemodel or .caffemodel.h5."""
        check(lib.net_copy_from(self._handle, encoded(weights)))

    load_hdf5 = copy_from

    def share_with(self, other: "Net") -> None:
        """Uses the weights of `other` from now on; both nets then share them."""
        check(lib.net_share_with(self._handle, other._handle))

    def save(self, filename: Any) -> None:
        check(lib.net_save(self._handle, encoded(filename), 0))

    def save_hdf5(self, filename: Any) -> None:
        check(lib.net_save(self._handle, encoded(filename), 1))

    def set_input_arrays(self, data: np.ndarray, labels: np.ndarray) -> None:
        """What a net that begins with MemoryData reads, batch after batch and round again: N x C x H x W and N x 1 x 1
        x 1.
        """
        for name, array in (("data", data), ("labels", labels)):
            if not (isinstance(array, np.ndarray) and array.dtype == np.float32 and array.flags["C_CONTIGUOUS"]):
                raise RuntimeError(
                    f"{name} array must be float32 and C contiguous; np.ascontiguousarray(a, np.float32) makes it so"
                )
        if labels.ndim == 1:
            labels = labels.reshape(-1, 1, 1, 1)
        if data.ndim != 4 or labels.shape != (len(data), 1, 1, 1):
            raise RuntimeError(
                f"data must be N x C x H x W and labels N or N x 1 x 1 x 1, not {data.shape} and {labels.shape}"
            )
        check(
            lib.net_set_input_arrays(
                self._handle, data.ctypes.data, labels.ctypes.data, len(data), _engine.dims_of(data.shape[1:])
            )
        )
        self._arrays = data, labels

    # --- hooks: callables that are given the number of the layer

    def _hook(self, moment: str, body: Callable[[int], Any]) -> None:
        if moment not in self._hooks:
            bodies: List[Callable[[int], Any]] = []
            hook = ON_LAYER(guarded(lambda _user, layer: [b(layer) for b in bodies]))
            self._hooks[moment] = hook, bodies
            check(lib.net_set_hook(self._handle, _MOMENTS[moment], hook, None))
        self._hooks[moment][1].append(body)

    def before_forward(self, body: Callable[[int], Any]) -> None:
        self._hook("before_forward", body)

    def after_forward(self, body: Callable[[int], Any]) -> None:
        self._hook("after_forward", body)

    def before_backward(self, body: Callable[[int], Any]) -> None:
        self._hook("before_backward", body)

    def after_backward(self, body: Callable[[int], Any]) -> None:
        self._hook("after_backward", body)


def net_of_solver(handle: int, hosted: List[Hosted]) -> Net:
    net = Net.__new__(Net)
    net._attach(handle, hosted)
    return net
