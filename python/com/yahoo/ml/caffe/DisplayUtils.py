"""Rows with images as a table in a notebook. (CaffeOnSpark's show_network is not offered; caffe.draw draws nets.)"""

import html
import struct
import zlib
from base64 import b64encode

import numpy as np

_KINDS = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"))


class _Page(str):
    """Used as HTML where IPython is not installed."""

    def _repr_html_(self):
        return str(self)


def page(text):
    try:
        from IPython.display import HTML
    except ImportError:
        return _Page(text)
    return HTML(text)


def get_np_array(row):
    """A raw image's bytes: height x width, or height x width x channels as the row has them."""
    channels = row.channels if "channels" in row and row.channels else len(row.data) // (row.height * row.width)
    shape = (row.height, row.width) if channels == 1 else (row.height, row.width, channels)
    return np.frombuffer(bytes(row.data), "uint8").reshape(shape)


def png(array):
    """PNG file of a grey image, or of a colour image in Caffe's order: blue, green, red."""
    array = np.ascontiguousarray(array if array.ndim == 2 else array[:, :, 2::-1], "uint8")
    height, width = array.shape[:2]

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + line.tobytes() for line in array)
    head = struct.pack(">2I5B", width, height, 8, 0 if array.ndim == 2 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def encoded_tag(data):
    """<img> of a JPEG or PNG file."""
    data = bytes(data)
    kind = next((kind for start, kind in _KINDS if data.startswith(start)), "png")
    return f"<img src='data:image/{kind};base64,{b64encode(data).decode()}' />"


def image_tag(np_array):
    """<img> of an array as get_np_array gives it."""
    return encoded_tag(png(np_array))


def table(heads, rows):
    lines = ["<tr>" + "".join(f"<th>{h}</th>" for h in heads)] + [
        "<tr>" + "".join(f"<td>{c}</td>" for c in row) for row in rows
    ]
    return page("<table>" + "</tr>".join(lines) + "</tr></table>")


def show_df(df, nrows=10):
    """A table of the first rows of a frame as ImageDataFrame reads it: id, label and data, raw with height and width or
    else encoded.
    """

    def cells(row):
        raw = "height" in row and row.height and not ("encoded" in row and row.encoded)
        image = image_tag(get_np_array(row)) if raw else encoded_tag(row.data)
        return html.escape(str(row["id"] if "id" in row else row["SampleID"])), html.escape(str(row.label)), image

    return table(("Index", "Label", "Image"), map(cells, df.take(nrows)))
