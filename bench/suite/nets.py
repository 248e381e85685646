"""The nets that are compared, and for each a folder with all that a contestant reads, made once:

    train.prototxt      both phases, on batch.h5; solvers beside it
    learn.prototxt      the same without dropout and multipliers of learning rates, which peers have otherwise or not at
                        all: the losses of its first steps are compared
    deploy_N.prototxt   an Input blob `data` of N pictures, Softmax at the end; the same as deploy_N.onnx
    weights.caffemodel  msra's fillers and the running statistics of a few batches, so that no program meets zeros
    batch.h5            one batch of noise of unit variance, and its labels
    pictures.npy        N pictures for scoring, `crema time`'s noise, and probabilities.npy, what `import caffe` of this
                        project says of them

Everything is written by this project's own Python package, which the caller has on its path.
"""

import contextlib
import json
import math
import pathlib
import subprocess
import sys

import numpy as np
import state
from google.protobuf import text_format

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "build/release/python")]
import caffe  # noqa: E402
from caffe.proto import caffe_pb2  # noqa: E402
from support import zoo  # noqa: E402

caffe.init_log(2)

CREMA = ROOT / "build/release/cli/crema"
SCORED = (1, 32)  # batches
LEARNT_STEPS, LEARNING_RATE = 4, 1e-4  # of learn.prototxt
# batch of a training step, shape of a picture
NETS = {
    "lenet": (64, (1, 28, 28)),
    "cifar10_quick": (100, (3, 32, 32)),
    "cifar10_full": (100, (3, 32, 32)),
    "alexnet": (32, (3, 227, 227)),
    "caffenet": (32, (3, 227, 227)),
    "googlenet": (32, (3, 224, 224)),
    "resnet50": (16, (3, 224, 224)),
    "vgg16": (8, (3, 224, 224)),
    "mobilenet": (32, (3, 224, 224)),
}
FULL = """
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 32 kernel_size: 5 pad: 2 } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "relu1" type: "ReLU" bottom: "pool1" top: "pool1" }
layer { name: "norm1" type: "LRN" bottom: "pool1" top: "norm1"
  lrn_param { local_size: 3 alpha: 5e-05 beta: 0.75 norm_region: WITHIN_CHANNEL } }
layer { name: "conv2" type: "Convolution" bottom: "norm1" top: "conv2"
  convolution_param { num_output: 32 kernel_size: 5 pad: 2 } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "norm2" type: "LRN" bottom: "pool2" top: "norm2"
  lrn_param { local_size: 3 alpha: 5e-05 beta: 0.75 norm_region: WITHIN_CHANNEL } }
layer { name: "conv3" type: "Convolution" bottom: "norm2" top: "conv3"
  convolution_param { num_output: 64 kernel_size: 5 pad: 2 } }
layer { name: "relu3" type: "ReLU" bottom: "conv3" top: "conv3" }
layer { name: "pool3" type: "Pooling" bottom: "conv3" top: "pool3"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool3" top: "ip1" inner_product_param { num_output: 10 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip1" bottom: "label" top: "loss" }
"""
SOLVER = """net: "{net}.prototxt"
base_lr: {rate}
momentum: 0.9
weight_decay: 0.0005
lr_policy: "fixed"
display: {display}
max_iter: {steps}
test_iter: 1
test_interval: 1000000000
snapshot_after_train: false
snapshot_prefix: "unused"
solver_mode: CPU
random_seed: 1
"""
MSRA = ("Convolution", "convolution_param"), ("InnerProduct", "inner_product_param")


def layers_of(name):
    """Of the net, without what feeds it and without Accuracy; dropout in both phases."""
    if name in zoo.NETS:
        text = zoo.NETS[name]()
    elif name == "cifar10_full":
        text = FULL
    else:
        text = (ROOT / f"examples/{name}_train_test.prototxt").read_text()
    net = text_format.Parse(text, caffe_pb2.NetParameter())
    for layer in net.layer:
        if layer.type in ("Data", "MemoryData", "Input", "Accuracy"):
            continue
        layer.ClearField("include")
        layer.ClearField("phase")
        for kind, field in MSRA:
            if layer.type == kind:
                getattr(layer, field).weight_filler.type = "msra"
        yield layer


def train_net(name, folder):
    net = caffe_pb2.NetParameter(name=name)
    feed = net.layer.add(name="data", type="HDF5Data", top=["data", "label"])
    feed.hdf5_data_param.source, feed.hdf5_data_param.batch_size = str(folder / "batch.txt"), NETS[name][0]
    net.layer.extend(layers_of(name))
    return net


def learn_net(name, folder):
    net = train_net(name, folder)
    for layer in net.layer:
        layer.ClearField("param")
        if layer.type == "Dropout":
            layer.dropout_param.dropout_ratio = 0
    return net


def deploy_net(name, batch):
    """Up to the last loss, which becomes a Softmax; what only side losses need is gone."""
    layers = list(layers_of(name))
    last = next(layer for layer in reversed(layers) if layer.type == "SoftmaxWithLoss")
    wanted, kept = {last.bottom[0]}, []
    for layer in reversed([layer for layer in layers if not layer.type.endswith("Loss")]):
        if wanted & set(layer.top):
            wanted |= set(layer.bottom)
            kept.append(layer)
    net = caffe_pb2.NetParameter(name=name)
    source = net.layer.add(name="data", type="Input", top=["data"])
    source.input_param.shape.add().dim.extend((batch, *NETS[name][1]))
    net.layer.extend(reversed(kept))
    net.layer.add(name="prob", type="Softmax", bottom=[last.bottom[0]], top=["prob"])
    return net


def write_batch(name, folder, rng):
    batch, shape = NETS[name]
    whole = caffe_pb2.NetParameter(name="batch", layer=[])
    values = {"data": rng.standard_normal((batch, *shape), "f4"), "label": rng.integers(0, 10, batch).astype("f4")}
    for top, value in values.items():
        layer = whole.layer.add(name=top, type="Input", top=[top])
        layer.input_param.shape.add().dim.extend(value.shape)
    output = whole.layer.add(name="file", type="HDF5Output", bottom=["data", "label"])
    output.hdf5_output_param.file_name = str(folder / "batch.h5")
    (folder / "batch.prototxt").write_text(text_format.MessageToString(whole))
    net = caffe.Net(str(folder / "batch.prototxt"), caffe.TEST)
    for top, value in values.items():
        net.blobs[top].data[...] = value
    net.forward()
    del net  # which writes the file's end
    (folder / "batch.txt").write_text(f"{folder / 'batch.h5'}\n")


def write_weights(folder):
    net = caffe.Net(str(folder / "train.prototxt"), caffe.TRAIN)
    for _ in range(3):  # BatchNorm's running statistics
        net.forward()
    net.save(str(folder / "weights.caffemodel"))


def noise(*shape):
    """What `crema time` gives the inputs of a net (cli/noise.h)."""
    h = np.arange(math.prod(shape), dtype=np.uint32) * np.uint32(0x9E3779B1)
    h = (h ^ h >> np.uint32(15)) * np.uint32(0x85EBCA77)
    return (3**0.5 * ((h ^ h >> np.uint32(13)) / 2**31 - 1)).astype("f4").reshape(shape)


def write_deploy(name, folder):
    pictures = noise(max(SCORED), *NETS[name][1])
    np.save(folder / "pictures.npy", pictures)
    weights = str(folder / "weights.caffemodel")
    for batch in SCORED:
        file = folder / f"deploy_{batch}.prototxt"
        file.write_text(text_format.MessageToString(deploy_net(name, batch)))
        subprocess.run(
            [CREMA, "export", "-model", file, "-weights", weights, "-output", file.with_suffix(".onnx")],
            check=True,
            capture_output=True,
        )
    net = caffe.Net(str(folder / f"deploy_{max(SCORED)}.prototxt"), caffe.TEST, weights=weights)
    np.save(folder / "probabilities.npy", net.forward(data=pictures)["prob"])


def write_solver(folder, display, steps, net="train", rate=1e-6):
    path = folder / f"solver_{net}_{display}_{steps}.prototxt"
    path.write_text(SOLVER.format(display=display, steps=steps, net=net, rate=rate))
    return path


def written(name, folder):
    """The net's folder under `folder`, made if it is not there or is of another state of this file, or the engine, as
    all answers are compared with ours.
    """
    folder = pathlib.Path(folder) / name
    mark, of = folder / "made.json", {"of": state.digest(__file__, *state.ENGINE)}
    with contextlib.suppress(OSError, ValueError):
        if json.loads(mark.read_text()) == of:
            return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    write_batch(name, folder, rng)
    for of, net in (("train", train_net), ("learn", learn_net)):
        (folder / f"{of}.prototxt").write_text(text_format.MessageToString(net(name, folder)))
    write_weights(folder)
    write_deploy(name, folder)
    mark.write_text(json.dumps(of))
    return folder
