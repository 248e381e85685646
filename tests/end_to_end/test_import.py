"""crema import: the nets of ONNX models compute what onnxruntime computes with the models; our own exports come back.

Graphs are those that PyTorch's exporter writes (tests/support/onnx_graph.py). Files of PyTorch 1.13 itself were
compared by hand: ResNet-50, VGG, SqueezeNet, MobileNet 2 and 3, opsets 9, 11, 13 and 16, folded and not: all within
4.1e-7 of the largest value.
"""

import numpy as np
import pytest

from conftest import crema

onnx = pytest.importorskip("onnx", reason="SKIPPED: onnx is not installed (scripts/lib.sh, ensure_onnxruntime)")
ort = pytest.importorskip(
    "onnxruntime", reason="SKIPPED: onnxruntime is not installed (scripts/lib.sh, ensure_onnxruntime)"
)

from test_onnx import caffe  # noqa: E402

from support.onnx_graph import NETS, Graph  # noqa: E402

LIMIT = 1e-5


def imported(model, *flags):
    done = crema("import", model, "-force", *flags)
    assert done.code == 0, done.err
    return caffe.Net(
        str(model.with_suffix(".prototxt")), caffe.TEST, weights=str(model.with_suffix(".caffemodel"))
    ), done.out


def error(model, net, seed=1, batch=None):
    """The largest difference to onnxruntime, relative to the largest value of each output."""
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    rng, feed = np.random.default_rng(seed), {}
    for i in session.get_inputs():
        if batch:
            net.blobs[i.name].reshape(batch, *net.blobs[i.name].shape[1:])
        feed[i.name] = rng.standard_normal(net.blobs[i.name].data.shape, dtype=np.float32)
    net.reshape()
    for name, array in feed.items():
        net.blobs[name].data[...] = array
    net.forward()
    worst = 0.0
    for output, want in zip(session.get_outputs(), session.run(None, feed)):
        got = net.blobs[output.name].data
        assert got.shape == want.shape and np.isfinite(want).all() and np.abs(want).max() > 0, (
            output.name,
            got.shape,
            want.shape,
        )
        worst = max(worst, np.abs(got - want).max() / np.abs(want).max())
    return worst


@pytest.mark.parametrize("opset", [7, 11, 13, 18])
@pytest.mark.parametrize("name", NETS)
def test_nets_as_pytorch_exports_them(tmp_path, name, opset):
    g = Graph((3, 67 if name != "vgg" else 64, 64), opset)
    g.save(tmp_path / "net.onnx", NETS[name](g))
    net, out = imported(tmp_path / "net.onnx")
    assert "input 'x': the batch is open, 1 is written" in out
    errors = [error(tmp_path / "net.onnx", net), error(tmp_path / "net.onnx", net, batch=3)]
    assert max(errors) <= LIMIT, errors
    assert all(layer.startswith("features.") or layer == "x" for layer in net._layer_names if "split" not in layer), (
        list(net._layer_names)
    )
    print(f"import {name}, opset {opset}: {max(errors):.1e} of the largest value")


def numbers(g, wide):
    """Several outputs, each computed with other operators."""
    yield g.node("LeakyRelu", wide, alpha=0.2)
    yield g.node("Elu", wide, alpha=0.7)
    yield g.node("PRelu", [wide, g.constant(np.linspace(-1, 1, 8, dtype=np.float32).reshape(8, 1, 1))])
    yield g.node("PRelu", [wide, g.constant(np.float32([0.3]))])
    yield g.node("HardSwish", wide)
    yield g.node("HardSigmoid", wide, alpha=0.3)
    yield g.node("Mul", [wide, g.node("Sigmoid", wide)])
    yield g.node("Sub", [g.node("Tanh", wide), g.node("Abs", wide)])
    yield g.node("Div", [g.constant(np.float32(2)), g.node("Exp", wide)])
    yield g.node("Div", [g.node("Neg", wide), g.node("Add", [g.node("Exp", wide), g.constant(np.float32([1]))])])
    yield g.node("Add", [g.constant(np.arange(14, dtype=np.float32)), wide])
    yield g.node("Mul", [wide, g.constant(np.arange(8 * 14, dtype=np.float32).reshape(8, 1, 14))])
    yield g.node("Mul", [g.node("Sigmoid", g.node("GlobalAveragePool", wide)), wide])
    yield g.node("Sum", [wide, wide, g.node("Relu", wide)])
    yield g.node("Sqrt", g.node("Pow", [g.node("Max", [wide, g.node("Neg", wide)]), g.constant(np.float32(3))]))
    yield g.node("Softplus", wide)
    yield g.node("LogSoftmax", wide, axis=1)
    yield g.node("Softmax", wide, axis=3)
    yield g.node("LRN", wide, size=3, alpha=0.3, beta=0.6, bias=1.5)


def planes(g, wide):
    yield g.node(
        "ConvTranspose",
        [wide, g.draw(8, 2, 3, 3), g.draw(4, std=0.1)],
        strides=[2, 2],
        pads=[1] * 4,
        output_padding=[1, 1],
        group=2,
    )
    yield g.conv(wide, 8, 4, 3, dilation=2, pad=[0, 2, 2, 0])
    yield g.conv(wide, 8, 4, 4, stride=2, pad=[1, 0, 2, 3])
    yield g.node("Conv", [wide, g.draw(4, 8, 4, 4)], auto_pad="SAME_UPPER", strides=[2, 2])
    yield g.conv(g.node("Pad", [wide, g.constant(np.int64([0, 0, 1, 0, 0, 0, 0, 2]))]), 8, 4, 3)
    yield g.node(
        "Resize",
        [wide, "", g.constant(np.float32([1, 1, 2, 3]))],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    a, b = g.node("Split", [wide, g.constant(np.int64([3, 5]))], 2, axis=1)
    yield g.node("Concat", [b, a], axis=1)
    yield g.node(
        "Slice", [wide, g.constant(np.int64([1, -3])), g.constant(np.int64([2**62, -1])), g.constant(np.int64([1, 2]))]
    )
    yield g.node("Flatten", wide, axis=2)
    yield g.node("Transpose", g.node("GlobalMaxPool", wide), perm=[0, 2, 3, 1])
    yield g.node("Squeeze", [g.node("ReduceSum", [wide, g.constant(np.int64([2, 3]))]), g.constant(np.int64([3]))])
    yield g.node("ReduceMean", wide, axes=[-1], keepdims=0)
    yield g.node("Tile", [wide, g.constant(np.int64([1, 1, 2, 3]))])
    yield g.node("MatMul", [g.node("ReduceMean", wide, axes=[3], keepdims=0), g.draw(15, 6)])
    yield g.node("Gemm", [g.viewed(wide), g.draw(8 * 15 * 14, 5), g.constant(np.float32([0.5]))], alpha=0.5, beta=2.0)


def pools(g, wide):
    for kernel, stride, pad in ((3, 2, 1), (2, 2, 0), (3, 3, 0), (2, 2, [0, 0, 1, 1])):
        for up in (0, 1):
            yield g.pool("Max", wide, kernel, stride, pad, ceil_mode=up)
            for counted in (0, 1):
                yield g.pool("Average", wide, kernel, stride, pad, ceil_mode=up, count_include_pad=counted)


def test_every_operator(tmp_path):
    g = Graph((3, 17, 16), 14)
    wide = g.conv("x", 3, 8, 3)  # 8 x 15 x 14
    outputs = [*numbers(g, wide), *planes(g, wide), *pools(g, wide)]
    g.save(tmp_path / "net.onnx", *outputs)
    net, _ = imported(tmp_path / "net.onnx")
    assert len(outputs) == 58 and set(net.outputs) == set(outputs)
    assert error(tmp_path / "net.onnx", net, batch=2) <= LIMIT


@pytest.mark.parametrize(
    "stored, listed",
    [(np.float32, True), (np.float16, False), (np.float16, True), (np.float64, False), (np.float64, True)],
)
def test_weights_of_every_kind(tmp_path, stored, listed):
    weights = np.random.default_rng(3).normal(size=(4, 12)).astype(stored)
    g = Graph((12,))
    y = g.node("MatMul", ["x", g.constant(weights.T.copy(), listed)])
    g.save(tmp_path / "net.onnx", y)
    net, _ = imported(tmp_path / "net.onnx")
    assert (net.params["features.0"][0].data == weights.T.astype(np.float32)).all()


REFUSED = [  # (what makes the last node of a graph, the error)
    (lambda g: g.node("Erf", "x"), "(Erf) cannot be imported: no layer of Caffe computes Erf"),
    (
        lambda g: g.node("Transpose", "x", perm=[0, 2, 3, 1]),
        "(Transpose) cannot be imported: it turns the axes of 10x3x9x8, and no layer",
    ),
    (
        lambda g: g.node("MatMul", ["x", g.node("Relu", "x")]),
        "(MatMul) cannot be imported: its input 1, '/features.0/Relu_output_0', is computed by the net",
    ),
    (
        lambda g: g.node("MaxPool", "x", kernel_shape=[2, 2], dilations=[2, 2]),
        "(MaxPool) cannot be imported: its dilations are not 1",
    ),
    (
        lambda g: g.pool("Max", "x", 3, 1, [1, 1, 0, 0]),
        "(MaxPool) cannot be imported: pads 1 and 0, 1 and 0 give 8 x 7 windows",
    ),
    (
        lambda g: g.node("Pad", ["x", g.constant(np.int64([0, 0, 1, 1, 0, 0, 1, 1]))], mode="reflect"),
        "(Pad) cannot be imported: Caffe pads with zeros only",
    ),
    (lambda g: g.node("InstanceNormalization", ["x", g.draw(3), g.draw(3)]), "MVN adds eps to the deviation"),
    (lambda g: g.node("LRN", "x", size=4), "its size is 4; Caffe's LRN has an odd one"),
    (
        lambda g: g.node("Slice", ["x", *(g.constant(np.int64([v])) for v in (0, 9, 2, 2))]),
        "its step is 2; Slice takes neighbours",
    ),
    (lambda g: g.node("Conv", ["x", g.draw(4, 2, 3, 3)]), "has weights of 4x2x3x3, and its input asks for 4x3x3x3"),
    (lambda g: g.node("Relu", "nothing"), "reads 'nothing', which nothing before it makes"),
]


@pytest.mark.parametrize("make, message", REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_expressed_is_named(tmp_path, make, message):
    g = Graph((3, 9, 8))
    g.save(tmp_path / "net.onnx", make(g))
    done = crema("import", tmp_path / "net.onnx")
    assert done.code in (1, 2) and message in done.message and "net.onnx" in done.message, done.message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx"]


@pytest.mark.parametrize(
    "op, a, b, message",
    [
        ("Div", -(2**63), -1, "-9223372036854775808 and -1 give more than 64 bits"),
        ("Div", 3, 0, "3 divided by 0"),
        ("Mul", 2**62, 2, "give more than 64 bits"),
        ("Sub", -(2**63), 1, "give more than 64 bits"),
        ("Add", 2**63 - 1, 1, "give more than 64 bits"),
        ("Add", np.int32(2**31 - 1), np.int32(1), "2147483648 is no number of 32 bits"),
    ],
)
def test_whole_numbers_that_do_not_fit(tmp_path, op, a, b, message):
    g = Graph((3,))
    made = g.node(op, [g.constant(np.array([a])), g.constant(np.array([b]))])
    g.save(tmp_path / "net.onnx", g.node("Add", ["x", g.node("Cast", made, to=1)]))
    done = crema("import", tmp_path / "net.onnx")
    assert done.code in (1, 2) and message in done.message and f"/features.0/{op}' ({op})" in done.message, done.err


def test_numbers_made_of_an_open_batch(tmp_path):
    """A net that computes with the size of its batch is written for one batch size."""
    g = Graph((3,))
    items = g.node("Cast", g.node("Gather", [g.node("Shape", "x"), g.value(np.int64(0))]), to=1)
    g.save(tmp_path / "net.onnx", g.node("Div", ["x", items]))
    net, out = imported(tmp_path / "net.onnx")
    assert "the net computes with the size of its batch: it holds for 1" in out and net.blobs["x"].data.shape == (1, 3)
    assert error(tmp_path / "net.onnx", net) <= LIMIT
    net, out = imported(tmp_path / "net.onnx", "-input_shape", "x:4,3")
    assert "batch" not in out and error(tmp_path / "net.onnx", net) <= LIMIT
