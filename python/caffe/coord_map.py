"""Which coordinates of one top lie at which of another: for cropping an upsampled result back onto its input.

A map is (axis, a, b): position x along the axes behind `axis` of the first top is a x + b of the second. With kernel k
(its extent k' = dilation (k - 1) + 1), stride s, pad p:
    Convolution, Pooling, Im2col    from top to bottom   s x + (k' - 1) / 2 - p
    Deconvolution                   the inverse of that
    Crop                            x + offset
    layers that keep positions      x
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from .net_spec import Top, layers

Map = Tuple[Optional[int], Any, Any]

PASS_THROUGH = {
    "AbsVal",
    "BatchNorm",
    "Bias",
    "BNLL",
    "Clip",
    "Concat",
    "Dropout",
    "Eltwise",
    "ELU",
    "Exp",
    "Log",
    "LRN",
    "MVN",
    "Power",
    "PReLU",
    "ReLU",
    "Scale",
    "Sigmoid",
    "Softmax",
    "Split",
    "Swish",
    "TanH",
    "Threshold",
}


class UndefinedMapException(Exception):
    """A layer that does not keep positions."""


class AxisMismatchException(Exception):
    """Two maps belong to different axes."""


def _sizes(fields: Dict[str, Any], name: str, default: int) -> np.ndarray:
    both = [fields.get(f"{name.replace('kernel_size', 'kernel')}_{side}") for side in "hw"]
    value = both if None not in both else fields.get(name, default)
    return np.array(value, dtype=float, ndmin=1)


def _window(fn: Any) -> Map:
    option = "pooling_param" if fn.type_name == "Pooling" else "convolution_param"
    fields = fn.params.get(option, fn.params)
    if fields.get("global_pooling") or ("kernel_size" not in fields and "kernel_h" not in fields):
        raise UndefinedMapException
    extent = _sizes(fields, "dilation", 1) * (_sizes(fields, "kernel_size", 1) - 1) + 1
    return fields.get("axis", 1), _sizes(fields, "stride", 1), (extent - 1) / 2 - _sizes(fields, "pad", 0)


def coord_map(fn: Any) -> Map:
    """The map from a layer's top to its bottom."""
    if fn.type_name in ("Convolution", "Pooling", "Im2col"):
        return _window(fn)
    if fn.type_name == "Deconvolution":
        return inverse(_window(fn))
    if fn.type_name in PASS_THROUGH:
        return None, 1, 0
    if fn.type_name == "Crop":
        fields = fn.params.get("crop_param", fn.params)
        return fields.get("axis", 2) - 1, 1, np.array(fields.get("offset", 0), dtype=float, ndmin=1)
    raise UndefinedMapException


def compose(first: Map, then: Map) -> Map:
    """The composition of two maps, `first` applied first."""
    (ax1, a1, b1), (ax2, a2, b2) = first, then
    if ax1 is not None and ax2 is not None and ax1 != ax2:
        raise AxisMismatchException(f"axes {ax1} and {ax2}")
    return (ax2 if ax1 is None else ax1), a2 * a1, a2 * b1 + b2


def inverse(of: Map) -> Map:
    axis, a, b = of
    return axis, 1 / a, -b / a


def _below(top: Top) -> Iterator[Tuple[Top, Map]]:
    """All tops that positions of `top` can be followed to, nearest first, including itself."""
    level: List[Tuple[Top, Map]] = [(top, (None, 1, 0))]
    seen = {top}
    while level:
        yield from level
        following: List[Tuple[Top, Map]] = []
        for here, so_far in level:
            try:
                down = compose(so_far, coord_map(here.fn))
            except UndefinedMapException:
                continue
            for bottom in here.fn.inputs[:1] if here.fn.type_name == "Crop" else here.fn.inputs:
                if bottom not in seen:
                    seen.add(bottom)
                    following.append((bottom, down))
        level = following


def coord_map_from_to(top_from: Top, top_to: Top) -> Map:
    """The map from one top to another, through any top that both are computed from."""
    of_from = dict(_below(top_from))
    for top, of_to in _below(top_to):
        if top in of_from:
            return compose(of_from[top], inverse(of_to))
    raise RuntimeError(
        "there is no map between these tops: no chain of layers that keep track of positions connects them"
    )


def crop(top_from: Top, top_to: Top) -> Top:
    """A Crop layer that cuts `top_from` to the place and size of `top_to`."""
    axis, a, b = coord_map_from_to(top_from, top_to)
    assert np.all(a == 1), f"scale mismatch on crop: one step of the first top is {a} of the second"
    assert np.all(b <= 0), f"cannot crop negative offset (offset = {-b}): the top to be cropped begins inside the other"
    assert np.all(np.round(b) == b), f"cannot crop noninteger offset (offset = {-b})"
    offset = [int(v) for v in np.atleast_1d(-np.round(b))]
    return layers.Crop(top_from, top_to, crop_param=dict(axis=(1 if axis is None else axis) + 1, offset=offset))
