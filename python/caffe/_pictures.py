"""Pictures by the engine: decoded, and graphs drawn."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Sequence, Tuple

import numpy as np

from ._engine import Memory, check, lib


class DrawnBox(ctypes.Structure):
    _fields_ = [("text", c_char_p), ("colour", c_uint)]


class DrawnEdge(ctypes.Structure):
    _fields_ = [("start", c_int), ("end", c_int), ("text", c_char_p)]


class DrawnGraph(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("box_size", c_size_t),
        ("edge_size", c_size_t),
        ("title", c_char_p),
        ("rankdir", c_char_p),
        ("boxes", POINTER(DrawnBox)),
        ("edges", POINTER(DrawnEdge)),
        ("box_count", c_int),
        ("edge_count", c_int),
    ]


def decode_image(content: bytes, colour: bool) -> np.ndarray:
    """JPEG or PNG as bytes, height x width x channels (B, G, R)."""
    dims, pixels, owner = (c_int * 3)(), c_void_p(), c_void_p()
    check(lib.decode_image(content, len(content), int(colour), dims, ctypes.byref(pixels), ctypes.byref(owner)))
    return np.asarray(Memory(owner.value, pixels.value, tuple(dims), "|u1"))  # type: ignore[arg-type]


def draw_graph(
    title: str, boxes: Sequence[Tuple[str, int]], edges: Sequence[Tuple[int, int, str]], rankdir: str, format: str
) -> bytes:
    """Boxes of (lines, 0xRRGGBB) and edges of (from, to, words) as a picture, "svg" or "png"."""
    drawn_boxes = (DrawnBox * len(boxes))(*((text.encode(), colour) for text, colour in boxes))
    drawn_edges = (DrawnEdge * len(edges))(*((start, end, text.encode()) for start, end, text in edges))
    graph = DrawnGraph(
        ctypes.sizeof(DrawnGraph),
        ctypes.sizeof(DrawnBox),
        ctypes.sizeof(DrawnEdge),
        title.encode(),
        rankdir.encode(),
        drawn_boxes,
        drawn_edges,
        len(boxes),
        len(edges),
    )
    content, size = c_char_p(), c_size_t()
    check(lib.draw(ctypes.byref(graph), format.encode(), ctypes.byref(content), ctypes.byref(size)))
    return ctypes.string_at(content, size.value)
