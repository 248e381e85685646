"""Arrays and Caffe's messages, pictures, and the preprocessing of pictures for a net."""

from __future__ import annotations

import pathlib
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

from ._pictures import decode_image
from .proto import caffe_pb2

Dims = Union[Sequence[int], np.ndarray]

# --- messages


def blobproto_to_array(blob: Any, return_diff: bool = False) -> np.ndarray:
    """The values of a BlobProto, or its gradients. ValueError when its shape is that of another number of values."""
    values = np.array(
        (blob.diff if return_diff else blob.data) or (blob.double_diff if return_diff else blob.double_data),
        dtype=np.float32,
    )
    old = [blob.num, blob.channels, blob.height, blob.width]
    shape = old if any(blob.HasField(f) for f in ("num", "channels", "height", "width")) else list(blob.shape.dim)
    return values.reshape(shape)


def array_to_blobproto(arr: np.ndarray, diff: Optional[np.ndarray] = None) -> Any:
    blob = caffe_pb2.BlobProto()
    blob.shape.dim.extend(np.shape(arr))
    blob.data.extend(np.ravel(np.asarray(arr, dtype=float)))
    if diff is not None:
        blob.diff.extend(np.ravel(np.asarray(diff, dtype=float)))
    return blob


def arraylist_to_blobprotovector_str(arraylist: Iterable[np.ndarray]) -> bytes:
    vector = caffe_pb2.BlobProtoVector()
    vector.blobs.extend(array_to_blobproto(a) for a in arraylist)
    return vector.SerializeToString()


def blobprotovector_str_to_arraylist(str: bytes) -> List[np.ndarray]:
    return [blobproto_to_array(blob) for blob in caffe_pb2.BlobProtoVector.FromString(str).blobs]


def array_to_datum(arr: np.ndarray, label: Optional[int] = None) -> Any:
    """C x H x W as a Datum: bytes of uint8, floats of everything else."""
    if arr.ndim != 3:
        raise ValueError(f"a Datum has 3 axes (channels, height, width), this array {arr.ndim}")
    datum = caffe_pb2.Datum(channels=arr.shape[0], height=arr.shape[1], width=arr.shape[2])
    if arr.dtype == np.uint8:
        datum.data = arr.tobytes()
    else:
        datum.float_data.extend(np.ravel(arr.astype(float)))
    if label is not None:
        datum.label = label
    return datum


def datum_to_array(datum: Any) -> np.ndarray:
    """C x H x W; uint8 of bytes, float of floats. An encoded picture is decoded, B G R."""
    if datum.encoded:
        return decode_image(datum.data, True).transpose(2, 0, 1)
    values = np.frombuffer(datum.data, np.uint8) if datum.data else np.array(datum.float_data, dtype=float)
    return values.reshape(datum.channels, datum.height, datum.width)


# --- pictures: height x width x channels, float32, R G B, 0 to 1


def load_image(filename: Any, color: bool = True) -> np.ndarray:
    """JPEG and PNG by the engine's own decoder; other formats where Pillow is installed. Grey: one channel."""
    content = pathlib.Path(filename).read_bytes()
    if content[:2] == b"\xff\xd8" or content[:4] == b"\x89PNG":
        try:
            pixels = decode_image(content, color)[:, :, ::-1]
        except RuntimeError as e:
            raise RuntimeError(f"{filename}: {e}") from None
    else:
        try:
            from PIL import Image
        except ImportError:
            raise ImportError(f"{filename} is neither JPEG nor PNG; `pip install pillow` reads other formats") from None
        with Image.open(filename) as picture:
            pixels = np.asarray(picture.convert("RGB" if color else "L"))
            pixels = pixels.reshape(pixels.shape[0], pixels.shape[1], -1)
    return pixels.astype(np.float32) / np.float32(255)


def _linear(im: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Resizes along one axis: position x of the result is (x + 1/2) old / new - 1/2 of the original, limited to its
    range.
    """
    old = im.shape[axis]
    at = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0, old - 1)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, old - 1)
    shape = [1] * im.ndim
    shape[axis] = size
    weight = (at - low).astype(np.float32).reshape(shape)
    return np.take(im, low, axis) * (1 - weight) + np.take(im, high, axis) * weight


def resize_image(im: np.ndarray, new_dims: Dims, interp_order: int = 1) -> np.ndarray:
    """H x W x K to new_dims (height, width): nearest (0) or bilinear (1); higher orders by scipy where it is
    installed.
    """
    height, width = (int(d) for d in new_dims)
    im = np.asarray(im)
    if im.shape[:2] == (height, width):
        return im.astype(np.float32)
    if interp_order == 1:
        return _linear(_linear(im.astype(np.float32), 0, height), 1, width)
    if interp_order == 0:
        rows = ((np.arange(height) + 0.5) * im.shape[0] / height).astype(int)
        columns = ((np.arange(width) + 0.5) * im.shape[1] / width).astype(int)
        return im[rows][:, columns].astype(np.float32)
    try:
        from scipy.ndimage import map_coordinates
    except ImportError:
        raise ImportError(f"interp_order {interp_order} needs scipy; `pip install scipy`, or use 0 or 1") from None
    at = np.meshgrid(*((np.arange(n) + 0.5) * o / n - 0.5 for n, o in zip((height, width), im.shape)), indexing="ij")
    channels = [
        map_coordinates(im[:, :, k].astype(np.float32), at, order=interp_order, mode="nearest")
        for k in range(im.shape[2])
    ]
    return np.stack(channels, axis=2)


def oversample(images: Iterable[np.ndarray], crop_dims: Dims) -> np.ndarray:
    """Ten of each H x W x K picture: four corners and the centre, then the same mirrored."""
    crops = []
    for im in images:
        spare_y, spare_x = im.shape[0] - int(crop_dims[0]), im.shape[1] - int(crop_dims[1])
        if spare_y < 0 or spare_x < 0:
            raise ValueError(f"crops of {tuple(crop_dims)} do not fit pictures of {im.shape[:2]}")
        corners = [(0, 0), (0, spare_x), (spare_y, 0), (spare_y, spare_x), (spare_y // 2, spare_x // 2)]
        five = [im[y : y + int(crop_dims[0]), x : x + int(crop_dims[1])] for y, x in corners]
        crops += five + [c[:, ::-1] for c in five]
    return np.array(crops, dtype=np.float32)


class Transformer:
    """Prepares pictures for a net's inputs: Transformer({"data": net.blobs["data"].shape}), then set_... for each
    input. preprocess: to float32, resize to the input's height and width, transpose, swap channels, times raw_scale,
    minus mean, times input_scale. deprocess: the inverse.
    """

    def __init__(self, inputs: Dict[str, Sequence[int]]) -> None:
        self.inputs = inputs
        self.transpose: Dict[str, Tuple[int, ...]] = {}
        self.channel_swap: Dict[str, Tuple[int, ...]] = {}
        self.raw_scale: Dict[str, float] = {}
        self.mean: Dict[str, np.ndarray] = {}
        self.input_scale: Dict[str, float] = {}

    def _known(self, in_: str) -> None:
        if in_ not in self.inputs:
            raise Exception(f"{in_} is not one of the net inputs: {', '.join(self.inputs)}")

    def preprocess(self, in_: str, data: np.ndarray) -> np.ndarray:
        self._known(in_)
        out = np.asarray(data).astype(np.float32)
        dims = tuple(self.inputs[in_])[2:]
        if out.shape[:2] != dims:
            out = resize_image(out, dims)
        if in_ in self.transpose:
            out = out.transpose(self.transpose[in_])
        if in_ in self.channel_swap:
            out = out[list(self.channel_swap[in_])]
        if in_ in self.raw_scale:
            out = out * np.float32(self.raw_scale[in_])
        if in_ in self.mean:
            out = out - self.mean[in_]
        if in_ in self.input_scale:
            out = out * np.float32(self.input_scale[in_])
        return out

    def deprocess(self, in_: str, data: np.ndarray) -> np.ndarray:
        self._known(in_)
        out = np.array(data, dtype=np.float32).squeeze()
        if in_ in self.input_scale:
            out /= np.float32(self.input_scale[in_])
        if in_ in self.mean:
            out += self.mean[in_]
        if in_ in self.raw_scale:
            out /= np.float32(self.raw_scale[in_])
        if in_ in self.channel_swap:
            out = out[np.argsort(self.channel_swap[in_])]
        if in_ in self.transpose:
            out = out.transpose(np.argsort(self.transpose[in_]))
        return out

    def set_transpose(self, in_: str, order: Sequence[int]) -> None:
        """Axes of the picture in the net's order: (2, 0, 1) for H x W x K to K x H x W."""
        self._known(in_)
        if len(order) != len(self.inputs[in_]) - 1:
            raise Exception("Transpose order needs to have the same number of dimensions as the input.")
        self.transpose[in_] = tuple(order)

    def set_channel_swap(self, in_: str, order: Sequence[int]) -> None:
        """Channels of the picture in the net's order: (2, 1, 0) for R G B to B G R."""
        self._known(in_)
        if len(order) != self.inputs[in_][1]:
            raise Exception("Channel swap needs to have the same number of dimensions as the input channels.")
        self.channel_swap[in_] = tuple(order)

    def set_raw_scale(self, in_: str, scale: float) -> None:
        """255 for a net that was trained on 0 to 255."""
        self._known(in_)
        self.raw_scale[in_] = scale

    def set_mean(self, in_: str, mean: np.ndarray) -> None:
        """One number per channel, or a picture K x H x W (or H x W), which is resized to the input."""
        self._known(in_)
        channels, height, width = tuple(self.inputs[in_])[1:]
        mean = np.asarray(mean, dtype=np.float32)
        if mean.ndim == 1:
            if len(mean) not in (1, channels):
                raise ValueError(f"Mean channels incompatible with input: {len(mean)} values, {channels} channels")
            mean = mean[:, np.newaxis, np.newaxis]
        else:
            mean = mean[np.newaxis] if mean.ndim == 2 else mean
            if mean.ndim != 3 or mean.shape[0] not in (1, channels):
                raise ValueError(f"Mean shape invalid: {mean.shape}; {channels} x height x width is wanted")
            if mean.shape[1:] != (height, width):
                mean = resize_image(mean.transpose(1, 2, 0), (height, width)).transpose(2, 0, 1)
        self.mean[in_] = mean

    def set_input_scale(self, in_: str, scale: float) -> None:
        self._known(in_)
        self.input_scale[in_] = scale
