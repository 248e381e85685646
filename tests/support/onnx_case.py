"""A small ONNX model of one operator: its inputs are blobs of the net, constants, or "" for one that is not there.

Of constants alone the node's result is added to a blob of its shape, as the net has to compute something.
"""

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64 = np.float32, np.int64


@dataclasses.dataclass
class Blob:
    shape: tuple
    dtype: type = np.float32
    low: float = -2.0
    high: float = 2.0

    def values(self, rng):
        if self.dtype == np.bool_:
            return rng.integers(0, 2, self.shape).astype(bool)
        if np.issubdtype(self.dtype, np.integer):
            return rng.integers(
                max(self.low, 0 if self.dtype == np.uint8 else -100), max(3, self.high), self.shape
            ).astype(self.dtype)
        return rng.uniform(self.low, self.high, self.shape).astype(self.dtype)


@dataclasses.dataclass
class Case:
    op: str
    inputs: list
    opset: int = 13
    outputs: int = 1
    attributes: dict = dataclasses.field(default_factory=dict)
    joined: tuple = ()  # shape of the blob to which the result of constants is added
    behind: tuple = ()  # (op, attributes) of a node that reads the result

    def __str__(self):
        given = [
            f"{i.dtype.__name__}{list(i.shape)}"
            if isinstance(i, Blob)
            else i
            if isinstance(i, str)
            else f"= {i.tolist()}"
            if i.size < 9
            else f"= {i.dtype}{list(i.shape)}"
            for i in self.inputs
        ]
        return (
            f"{self.op}({', '.join(given)}) {self.attributes} opset "
            f"{self.opset}{' then ' + str(self.behind) if self.behind else ''}"
        )

    def blobs(self):
        found = {f"x{k}": i for k, i in enumerate(self.inputs) if isinstance(i, Blob)}
        return found or {"x": Blob(self.joined)}

    def folded(self):
        return not any(isinstance(i, Blob) for i in self.inputs)

    def model(self, alone=False):
        """Builds the model; alone: without the blob to which the result of constants is added."""
        names = ["" if isinstance(i, str) else f"x{k}" for k, i in enumerate(self.inputs)]
        made = [f"y{k}" for k in range(self.outputs)]
        nodes = [helper.make_node(self.op, names, made, name="node", **self.attributes)]
        last = made[0]
        if self.behind:
            nodes.append(helper.make_node(self.behind[0], [last], ["behind"], name="behind", **self.behind[1]))
            last = made[0] = "behind"
        if self.folded() and not alone:
            nodes += [
                helper.make_node("Cast", [last], ["float"], to=TensorProto.FLOAT),
                helper.make_node("Add", ["x", "float"], ["z"]),
            ]
            made = ["z"]
        constants = [
            numpy_helper.from_array(i, f"x{k}") for k, i in enumerate(self.inputs) if isinstance(i, np.ndarray)
        ]
        inputs = [] if self.folded() and alone else self.blobs().items()
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(b.dtype)), b.shape)
            for n, b in inputs
        ]
        graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name=m) for m in made], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return model


def case(op, *inputs, opset=13, outputs=1, joined=(), behind=(), **attributes):
    return Case(op, list(inputs), opset, outputs, attributes, joined, behind)


def ints(*values):
    return np.array(values, I64)


def ramp(*shape, low=0.5, dtype=F32):
    count = int(np.prod(shape))
    return (low + np.arange(count) % 7 * 0.375).astype(dtype).reshape(shape)
