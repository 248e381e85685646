"""crema export of whole nets: LeNet, CIFAR-10's, well-known large nets, and nets that were trained elsewhere."""

import re

import numpy as np
import pytest

from conftest import RECORDED, ROOT, crema, lenet, others, records  # noqa: F401 (fixture)

pytest.importorskip("onnxruntime", reason="SKIPPED: onnxruntime is not installed (scripts/lib.sh, ensure_onnxruntime)")
from test_onnx import check, noise  # noqa: E402

from support import zoo  # noqa: E402
from support.onnx_model import Exported  # noqa: E402

CIFAR_FULL = """name: "cifar full" layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 4 dim: 3 dim: 32 dim: 32 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 32 pad: 2 kernel_size: 5 } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "relu1" type: "ReLU" bottom: "pool1" top: "pool1" }
layer { name: "norm1" type: "LRN" bottom: "pool1" top: "norm1"
  lrn_param { local_size: 3 alpha: 0.05 norm_region: WITHIN_CHANNEL } }
layer { name: "conv2" type: "Convolution" bottom: "norm1" top: "conv2"
  convolution_param { num_output: 32 pad: 2 kernel_size: 5 } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "norm2" type: "LRN" bottom: "pool2" top: "norm2"
  lrn_param { local_size: 3 alpha: 0.05 norm_region: WITHIN_CHANNEL } }
layer { name: "conv3" type: "Convolution" bottom: "norm2" top: "conv3"
  convolution_param { num_output: 64 pad: 2 kernel_size: 5 } }
layer { name: "relu3" type: "ReLU" bottom: "conv3" top: "conv3" }
layer { name: "pool3" type: "Pooling" bottom: "conv3" top: "pool3"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool3" top: "ip1" inner_product_param { num_output: 10 } }
layer { name: "prob" type: "Softmax" bottom: "ip1" top: "prob" }"""


def test_lenet_with_its_data_layer(records, tmp_path):
    text = lenet(records)
    exported = Exported(tmp_path, text)
    assert check(exported, None, "LeNet", batches=(0,)) == 1 and exported.any_batch
    assert [(i.name, i.shape) for i in exported.session.get_inputs()] == [("data", ["batch", 1, 28, 28])]
    assert [(o.name, o.shape) for o in exported.session.get_outputs()] == [("ip2", ["batch", 10])]
    assert (
        "left out, as no score needs it: layer 'accuracy' (Accuracy), layer 'loss' (SoftmaxWithLoss)"
        in exported.done.out
    )
    assert "transform_param of layer 'data' (Data)" in exported.done.out and "scale: 0.00390625" in exported.done.out


def test_cifar_full(tmp_path):
    exported = Exported(tmp_path, CIFAR_FULL)
    assert check(exported, noise(exported.rng, "data"), "CIFAR-10 full") == 2


def test_cifar_quick(tmp_path):
    text = (ROOT / "examples/cifar10_quick_train_test.prototxt").read_text()
    layers = text[text.index('layer {\n  name: "conv1"') :]
    data = (
        'layer { name: "data" type: "Input" top: "data" top: "label" input_param { shape { dim: 3 dim: 3 dim: 32 '
        "dim: 32 } shape { dim: 3 } } }\n"
    )
    exported = Exported(tmp_path, data + layers)
    assert check(exported, noise(exported.rng, "data"), "CIFAR-10 quick") == 2


@pytest.mark.parametrize("name", ["alexnet", "googlenet", "resnet50"])
def test_large_nets(tmp_path, name):
    exported = Exported(tmp_path, zoo.NETS[name]())
    assert check(exported, noise(exported.rng, "data"), name, batches=(0, 1)) == 2
    assert len(exported.session.get_outputs()) == (3 if name == "googlenet" else 1)


def test_trained_nets(tmp_path):
    """Trained weights, and results that a third program computed: BVLC Caffe for a small detector, OpenCV for MTCNN
    where its weights are available.
    """
    runs = [(RECORDED / "detector/net.prototxt", RECORDED / "detector", ["box", "prob"])]
    for name in ("det1", "det2"):
        if files := others(
            f"models/mtcnn/{name}.prototxt", f"models/mtcnn/{name}.caffemodel", f"reference_outputs/mtcnn_{name}"
        ):
            runs.append((files[0], files[2], ["conv4-2" if name == "det1" else "conv5-2", "prob1"]))
    for number, (net, reference, blobs) in enumerate(runs):
        (folder := tmp_path / str(number)).mkdir()
        image = np.load(reference / "input.npy").astype(np.float32)
        sizes = iter(image.shape)
        text = re.sub(r"input_dim: \d+", lambda _, sizes=sizes: f"input_dim: {next(sizes)}", net.read_text())
        exported = Exported(folder, text, weights=net.with_suffix(".caffemodel"))
        check(exported, lambda net, x=image: {"data": np.resize(x, net.blobs["data"].data.shape)}, net.stem)
        names = [o.name for o in exported.session.get_outputs()]
        results = dict(zip(names, exported.session.run(None, {"data": image})))
        assert sorted(results) == blobs
        for blob in blobs:
            want = np.load(reference / f"{blob}.npy")
            np.testing.assert_allclose(results[blob].reshape(want.shape), want, atol=1e-5 * np.abs(want).max())
