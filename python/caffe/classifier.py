"""A net that says what a picture shows."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from . import io
from .proto.caffe_pb2 import TEST
from .pycaffe import Net


def transformer_for(net: Net, mean: Any, input_scale: Any, raw_scale: Any, channel_swap: Any) -> io.Transformer:
    """For pictures H x W x K and the net's first input."""
    name = net.inputs[0]
    made = io.Transformer({name: net.blobs[name].shape})
    made.set_transpose(name, (2, 0, 1))
    for value, setter in (
        (mean, made.set_mean),
        (input_scale, made.set_input_scale),
        (raw_scale, made.set_raw_scale),
        (channel_swap, made.set_channel_swap),
    ):
        if value is not None:
            setter(name, value)
    return made


class Classifier(Net):
    """Classifier(model_file, pretrained_file, image_dims=None, mean=None, input_scale=None, raw_scale=None,
    channel_swap=None)

    image_dims: what pictures are resized to before crops are taken; by default the crops' own size, the net's input.
    """

    def __init__(
        self,
        model_file: Any,
        pretrained_file: Any,
        image_dims: Optional[Sequence[int]] = None,
        mean: Any = None,
        input_scale: Any = None,
        raw_scale: Any = None,
        channel_swap: Any = None,
    ) -> None:
        super().__init__(model_file, TEST, weights=pretrained_file)
        self.transformer = transformer_for(self, mean, input_scale, raw_scale, channel_swap)
        self.crop_dims = np.array(self.blobs[self.inputs[0]].shape[2:])
        self.image_dims = self.crop_dims if image_dims is None else np.array(image_dims)

    def predict(self, inputs: Sequence[np.ndarray], oversample: bool = True) -> np.ndarray:
        """N x C: the net's output for N pictures H x W x K; the mean over ten crops of each, or (oversample=False) the
        centre's.
        """
        if not len(inputs):
            return np.zeros((0, int(np.prod(self.blobs[self.outputs[0]].shape[1:]))), np.float32)
        resized = [io.resize_image(im, self.image_dims) for im in inputs]
        if oversample:
            crops = io.oversample(resized, self.crop_dims)
        else:
            top, left = ((self.image_dims - self.crop_dims) / 2).astype(int)
            crops = np.array([im[top : top + self.crop_dims[0], left : left + self.crop_dims[1]] for im in resized])
        name = self.inputs[0]
        batch = np.array([self.transformer.preprocess(name, crop) for crop in crops], dtype=np.float32)
        found = self.forward_all(None, **{name: batch})[self.outputs[0]]
        found = found.reshape(len(crops), -1)
        return found.reshape(len(resized), -1, found.shape[1]).mean(1) if oversample else found
