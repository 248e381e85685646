"""ONNX graphs as PyTorch's exporter writes them, node by node with the helpers of the onnx package; weights
He-scaled.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    def __init__(self, shape, opset=13, name="x", batch="batch", seed=1):
        self.rng, self.opset, self.nodes, self.weights = np.random.default_rng(seed), opset, [], []
        self.input = helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, *shape])
        self.stored = np.float32

    def constant(self, array, listed=False):
        """An initializer, as raw bytes or as a list of its type."""
        array = np.asarray(array)
        name = f"onnx::{len(self.weights)}"
        if listed:
            self.weights.append(
                helper.make_tensor(
                    name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.ravel().tolist()
                )
            )
        else:
            self.weights.append(numpy_helper.from_array(array, name))
        return name

    def draw(self, *shape, mean=0.0, std=None):
        std = std or np.sqrt(2 / max(1, np.prod(shape[1:])))
        return self.constant(self.rng.normal(mean, std, shape).astype(self.stored))

    def node(self, op, inputs, outputs=1, **attributes):
        name = f"/features.{len(self.nodes)}/{op}"
        made = [f"{name}_output_{k}" for k in range(outputs)]
        self.nodes.append(
            helper.make_node(op, [inputs] if isinstance(inputs, str) else inputs, made, name=name, **attributes)
        )
        return made[0] if outputs == 1 else made

    def value(self, array):
        """A Constant node, as a traced program has it between its nodes."""
        return self.node("Constant", [], value=numpy_helper.from_array(np.asarray(array)))

    def conv(self, x, inputs, outputs, kernel, stride=1, pad=0, group=1, bias=True, dilation=1):
        pads = pad if isinstance(pad, list) else [pad] * 4
        weights = [self.draw(outputs, inputs // group, kernel, kernel)] + (
            [self.draw(outputs, std=0.1)] if bias else []
        )
        return self.node(
            "Conv",
            [x, *weights],
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=pads,
            group=group,
            dilations=[dilation] * 2,
        )

    def norm(self, x, channels):
        positive = self.constant(self.rng.uniform(0.5, 1.5, channels).astype(np.float32))
        factor = self.constant(self.rng.uniform(0.3, 0.7, channels).astype(np.float32))
        return self.node(
            "BatchNormalization",
            [x, factor, self.draw(channels, std=0.1), self.draw(channels, std=0.2), positive],
            epsilon=1e-5,
            momentum=0.9,
        )

    def relu6(self, x):
        if self.opset < 11:
            return self.node("Clip", x, min=0.0, max=6.0)
        return self.node("Clip", [x, self.value(np.float32(0)), self.value(np.float32(6))])

    def pool(self, kind, x, kernel, stride, pad=0, **attributes):
        pads = pad if isinstance(pad, list) else [pad] * 4
        return self.node(kind + "Pool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, **attributes)

    def linear(self, x, inputs, outputs):
        return self.node(
            "Gemm", [x, self.draw(outputs, inputs), self.draw(outputs, std=0.1)], alpha=1.0, beta=1.0, transB=1
        )

    def viewed(self, x):
        """x.view(x.size(0), -1), as it is traced."""
        size = self.node("Gather", [self.node("Shape", x), self.value(np.int64(0))], axis=0)
        if self.opset < 13:
            rows = self.node("Unsqueeze", size, axes=[0])
        else:
            rows = self.node("Unsqueeze", [size, self.value(np.int64([0]))])
        return self.node("Reshape", [x, self.node("Concat", [rows, self.value(np.int64([-1]))], axis=0)])

    def dropout(self, x, ratio):
        return (
            self.node("Dropout", x, ratio=ratio)
            if self.opset < 12
            else self.node("Dropout", [x, self.value(np.float32(ratio))])
        )

    def save(self, path, *outputs):
        infos = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "main_graph", [self.input], infos, self.weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=min(8, 3 if self.opset < 9 else 8)
        )
        if self.opset < 9:  # here initializers are inputs, too
            for w in self.weights:
                model.graph.input.append(helper.make_tensor_value_info(w.name, w.data_type, list(w.dims)))
        onnx.save(model, str(path))


def resnet(g):
    """Bottlenecks with a projection in each stage; every convolution with its normalisation."""

    def normalised(x, *shape, **more):
        return g.norm(g.conv(x, *shape, bias=False, **more), shape[1])

    x = g.pool("Max", g.node("Relu", normalised("x", 3, 16, 7, stride=2, pad=3)), 3, 2, pad=1)
    inputs = 16
    for stage, width in enumerate((8, 16)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = g.node("Relu", normalised(x, inputs, width, 1))
            y = g.node("Relu", normalised(y, width, width, 3, stride=stride, pad=1))
            y = normalised(y, width, 4 * width, 1)
            x = g.node("Relu", g.node("Add", [y, x if block else normalised(x, inputs, 4 * width, 1, stride=stride)]))
            inputs = 4 * width
    return g.linear(g.node("Flatten", g.node("GlobalAveragePool", x), axis=1), inputs, 10)


def vgg(g):
    x, inputs = "x", 3
    for width in (8, 16, 32):
        for _ in range(2):
            x, inputs = g.node("Relu", g.conv(x, inputs, width, 3, pad=1)), width
        x = g.pool("Max", x, 2, 2)
    x = g.viewed(g.pool("Average", x, 2, 2))
    x = g.dropout(g.node("Relu", g.linear(x, 32 * 16, 64)), 0.5)
    return g.linear(x, 64, 10)


def squeezenet(g):
    up = {"ceil_mode": 1} if g.opset >= 10 else {}
    x = g.pool("Max", g.node("Relu", g.conv("x", 3, 16, 3, stride=2)), 3, 2, **up)
    inputs = 16
    for squeeze, width in ((4, 16), (4, 16), (8, 32)):
        s = g.node("Relu", g.conv(x, inputs, squeeze, 1))
        x = g.node(
            "Concat",
            [g.node("Relu", g.conv(s, squeeze, width, 1)), g.node("Relu", g.conv(s, squeeze, width, 3, pad=1))],
            axis=1,
        )
        inputs = 2 * width
    x = g.node("Relu", g.conv(g.dropout(g.pool("Max", x, 3, 2, **up), 0.5), inputs, 10, 1))
    return g.node("Flatten", g.node("GlobalAveragePool", x), axis=1)


def mobilenet(g):
    """Depthwise convolutions, linear bottlenecks, the mean over planes as a reduction."""

    def block(x, inputs, outputs, stride, times):
        wide = inputs * times
        y = g.relu6(g.norm(g.conv(x, inputs, wide, 1, bias=False), wide))
        y = g.relu6(g.norm(g.conv(y, wide, wide, 3, stride=stride, pad=1, group=wide, bias=False), wide))
        y = g.norm(g.conv(y, wide, outputs, 1, bias=False), outputs)
        return g.node("Add", [x, y]) if stride == 1 and inputs == outputs else y

    x = g.relu6(g.norm(g.conv("x", 3, 8, 3, stride=2, pad=1, bias=False), 8))
    for inputs, outputs, stride in ((8, 12, 2), (12, 12, 1), (12, 16, 2)):
        x = block(x, inputs, outputs, stride, 4)
    x = (
        g.node("ReduceMean", [x, g.value(np.int64([2, 3]))], keepdims=0)
        if g.opset >= 18
        else g.node("ReduceMean", x, axes=[2, 3], keepdims=0)
    )
    return g.node("Softmax", g.linear(g.dropout(x, 0.2), 16, 10), axis=-1)


NETS = {"resnet": resnet, "vgg": vgg, "squeezenet": squeezenet, "mobilenet": mobilenet}
