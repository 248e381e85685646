"""A net that says what windows of pictures show, in the manner of R-CNN: every window is warped to the net's input."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from . import io
from .classifier import transformer_for
from .proto.caffe_pb2 import TEST
from .pycaffe import Net


class Detector(Net):
    """Detector(model_file, pretrained_file, mean=None, input_scale=None, raw_scale=None, channel_swap=None,
    context_pad=None)

    context_pad: pixels of surroundings, counted in the net's input, that are taken in around a window.
    """

    def __init__(
        self,
        model_file: Any,
        pretrained_file: Any,
        mean: Any = None,
        input_scale: Any = None,
        raw_scale: Any = None,
        channel_swap: Any = None,
        context_pad: Any = None,
    ) -> None:
        super().__init__(model_file, TEST, weights=pretrained_file)
        self.transformer = transformer_for(self, mean, input_scale, raw_scale, channel_swap)
        self.configure_crop(context_pad)

    def configure_crop(self, context_pad: Any) -> None:
        """Sets the values for what lies outside of a picture, when there is context: the mean, as a picture (H x W x
        K).
        """
        name = self.inputs[0]
        self.context_pad = int(context_pad or 0)
        shape = tuple(self.blobs[name].shape)[1:]
        if self.context_pad < 0 or 2 * self.context_pad >= min(shape[1:]):
            raise ValueError(
                f"context_pad {self.context_pad} leaves nothing of the net's input, {shape[1]} x {shape[2]}; "
                "it must be less than half of its shorter side"
            )
        mean = np.zeros(shape, np.float32) + self.transformer.mean.get(name, np.float32(0))
        if name in self.transformer.raw_scale:
            mean = mean / np.float32(self.transformer.raw_scale[name])
        if name in self.transformer.channel_swap:
            mean = mean[np.argsort(self.transformer.channel_swap[name])]
        self.crop_mean = mean.transpose(1, 2, 0)

    def crop(self, im: np.ndarray, window: Sequence[float]) -> np.ndarray:
        """A window (ymin, xmin, ymax, xmax) of a picture; with context, warped to the net's input. ValueError when
        nothing of the window is in the picture, or, without context, when it begins outside.
        """
        ymin, xmin, ymax, xmax = (float(v) for v in window)
        if not (ymin < ymax and xmin < xmax and ymin < im.shape[0] and xmin < im.shape[1] and ymax > 0 and xmax > 0):
            raise ValueError(
                f"the window {list(window)} (ymin, xmin, ymax, xmax) has nothing of the picture of {im.shape[0]} x "
                f"{im.shape[1]}"
            )
        if not self.context_pad:
            part = im[int(ymin) : int(ymax), int(xmin) : int(xmax)]
            if min(ymin, xmin) < 0 or not part.size:
                raise ValueError(
                    f"the window {list(window)} (ymin, xmin, ymax, xmax) begins outside of the picture or has no "
                    "whole pixel; "
                    "correct it, or give a context_pad"
                )
            return part
        out = self.crop_mean.copy()
        size = np.array(out.shape[:2])
        # The window fills the middle, size - 2 pad; so the region that fills the whole input is that much larger.
        half = np.array([ymax - ymin, xmax - xmin]) / 2 * (size / (size - 2.0 * self.context_pad))
        middle = np.array([ymin + ymax, xmin + xmax]) / 2
        low, high = np.round(middle - half), np.round(middle + half)
        scale = size / np.maximum(high - low, 1)
        inside_low, inside_high = np.maximum(low, 0).astype(int), np.minimum(high, im.shape[:2]).astype(int)
        place = np.round((inside_low - low) * scale).astype(int)
        room = np.minimum(np.round((inside_high - inside_low) * scale).astype(int), size - place)
        if (room > 0).all():
            part = im[inside_low[0] : inside_high[0], inside_low[1] : inside_high[1]]
            out[place[0] : place[0] + room[0], place[1] : place[1] + room[1]] = io.resize_image(part, room)
        return out

    def detect_windows(self, images_windows: Sequence[Tuple[Any, Sequence[Sequence[float]]]]) -> List[Dict[str, Any]]:
        """For (file, windows) pairs: a dict of window, prediction and filename for every window."""
        name, pictures, found = self.inputs[0], [], []
        for filename, windows in images_windows:
            im = io.load_image(filename)
            for window in windows:
                try:
                    part = self.crop(im, window)
                except ValueError as e:
                    raise ValueError(f"{filename}: {e}") from None
                pictures.append(self.transformer.preprocess(name, part))
                found.append({"window": window, "filename": filename})
        if not found:
            return []
        predictions = self.forward_all(None, **{name: np.array(pictures, np.float32)})[self.outputs[0]]
        predictions = predictions.reshape(len(found), -1)
        return [{"window": f["window"], "prediction": p, "filename": f["filename"]} for f, p in zip(found, predictions)]

    def detect_selective_search(self, image_fnames: Sequence[Any]) -> List[Dict[str, Any]]:
        """Windows proposed by the package selective_search_ijcv_with_python, which needs MATLAB."""
        try:
            import selective_search_ijcv_with_python as selective_search  # type: ignore[import-not-found]
        except ImportError:
            raise ImportError(
                "detect_selective_search needs the package selective_search_ijcv_with_python (and MATLAB); "
                "with windows of your own call detect_windows"
            ) from None
        names = [str(f) for f in image_fnames]
        return self.detect_windows(list(zip(names, selective_search.get_windows(names, cmd="selective_search_rcnn"))))
