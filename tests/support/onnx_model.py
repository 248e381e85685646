"""A net, its ONNX model and a session of onnxruntime, for tests/end_to_end/test_onnx.py."""

import re

import numpy as np
import onnxruntime as ort

from pycaffe_module import caffe

from conftest import crema


def values(filling, shape, rng):
    """Values by the codes of cases.txt; mK: from -1 on."""
    if filling in "spw":
        return rng.uniform(-1, 1, shape) * (8 if filling == "w" else 1) + (1.1 if filling == "p" else 0)
    if filling in "zo":
        return np.full(shape, filling == "o", np.float32)
    return rng.integers(-1 if filling[0] == "m" else 0, 2 if filling == "b" else int(filling[1:]), shape)


def draw_weights(net, rng, filling=""):
    for name, blobs in net.params.items():
        kind = net.layer_dict[name].type
        for i, blob in enumerate(blobs):
            if kind == "BatchNorm":
                blob.data[...] = [
                    rng.normal(0, 0.2, blob.shape),
                    rng.uniform(0.5, 1.5, blob.shape),
                    np.ones(blob.shape),
                ][i] * 3
            elif filling:
                blob.data[...] = values(filling, blob.shape, rng)
            elif len(blob.shape) > 1:
                blob.data[...] = rng.standard_normal(blob.shape, dtype=np.float32) * np.sqrt(
                    2 / np.prod(blob.shape[1:])
                )
            else:
                blob.data[...] = (
                    rng.uniform(0.3, 0.7, blob.shape) if kind == "Scale" and i == 0 else rng.normal(0, 0.1, blob.shape)
                )


class Exported:
    """An exported net: its prototxt on disk, the net with weights, and onnxruntime's session of the model."""

    def __init__(self, folder, text, weights=None, filling="", seed=1):
        self.rng = np.random.default_rng(seed)
        (folder / "net.prototxt").write_text(text)
        self.net = caffe.Net(str(folder / "net.prototxt"), caffe.TEST)
        files = weights
        if weights:
            self.net.copy_from(str(weights))
        elif self.net.params:
            draw_weights(self.net, self.rng, filling)
            files = folder / "net.caffemodel"
            self.net.save(str(files))
        model = folder / "net.onnx"
        self.done = crema(
            "export", "-model", folder / "net.prototxt", *(["-weights", files] if files else []), "-output", model
        )
        self.model = model
        self.session = None
        if self.done.code == 0:
            self.session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])

    @property
    def any_batch(self):
        inputs = self.session.get_inputs()
        return any(i.shape and i.shape[0] == "batch" for i in inputs)

    def error(self, feed=None, grow=0):
        """The largest difference over all outputs, relative to the largest value of each."""
        if grow:
            batch = next(iter(self.net.blobs.values())).shape[0]
            for name in self.net.inputs:
                shape = self.net.blobs[name].shape
                if shape[0] == batch:
                    self.net.blobs[name].reshape(batch + grow, *shape[1:])
            self.net.reshape()
        for name, array in (feed(self.net) if feed else {}).items():
            self.net.blobs[name].data[...] = array
        arrays = {i.name: self.net.blobs[i.name].data.copy() for i in self.session.get_inputs()}
        self.net.forward()
        if not feed:  # a data layer determines the batch
            arrays = {name: self.net.blobs[name].data.copy() for name in arrays}
        worst = 0.0
        for output, got in zip(self.session.get_outputs(), self.session.run(None, arrays)):
            want = self.net.blobs[output.name].data.astype(np.float64)
            assert got.shape == want.shape, output.name
            assert all(d in (None, "batch") or isinstance(d, str) or d == s for d, s in zip(output.shape, got.shape))
            assert np.isfinite(want).all() and np.abs(want).max() > 0, output.name
            worst = max(worst, np.abs(got - want).max() / np.abs(want).max())
        return worst


def case_text(shapes, layer):
    tops = re.findall(r'top: "\w+"', layer)
    inputs = "".join(
        f'layer {{ name: "in{i}" type: "Input" top: "b{i}" '
        f"input_param {{ shape {{ {' '.join(f'dim: {d}' for d in s)} }} }} }}\n"
        for i, s in enumerate(shapes)
    )
    bottoms = " ".join(f'bottom: "b{i}"' for i in range(len(shapes)))
    layer = re.sub(r"propagate_down: \w+", "", layer)
    return f'{inputs}layer {{ name: "layer" {bottoms} {layer}{"" if tops else " top: " + chr(34) + "y" + chr(34)} }}\n'
