"""Every operator that crema import reads, in all variants of attributes, inputs and opsets that are treated
differently.
"""

import itertools

import numpy as np
from onnx import helper

from support import onnx_shape_variants as shapes
from support.onnx_case import F32, I64, Blob, case, ints, ramp

TYPES = [np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_]


def casts():
    number = {t: helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in TYPES}
    for given, to in itertools.product(TYPES, TYPES):
        yield case(
            "Cast",
            Blob((2, 5), given, -9, 300 if given in (np.int64, np.int32) else 90),
            to=number[to],
            behind=("Cast", {"to": 1}),
        )
        values = [0.5, 2, -1.75, 0, 3.25, 100] if given not in (np.uint8, np.bool_) else [0, 1, 2, 200, 3, 5]
        yield case("Cast", np.array(values).astype(given), to=number[to])
    yield case("Cast", F32([300, -3, 1e20]), to=number[np.int8])
    yield case("Cast", Blob((2, 5)), opset=19, to=number[np.float64], saturate=1, behind=("Cast", {"to": 1}))
    yield case("Cast", Blob((2, 5)), opset=24, to=1, round_mode="up")
    yield case("Greater", Blob((2, 5)), F32(0.25), behind=("Cast", {"to": 1}))
    yield case("Greater", Blob((2, 5)), F32(0.25), behind=("Cast", {"to": 7}))
    yield case("ArgMax", Blob((2, 5)), axis=1, behind=("Cast", {"to": 1}))


# length: a list of cases.
def binaries():
    shapes = [
        ((2, 3, 4, 3), s)
        for s in (
            (),
            (1,),
            (3,),
            (3, 1, 1),
            (1, 3, 1, 1),
            (4, 3),
            (3, 4, 3),
            (2, 3, 4, 3),
            (2, 1, 1, 1),
            (3, 1, 3),
            (1, 1, 1, 1, 1),
            (2, 1, 4, 1),
            (4, 1),
        )
    ]
    shapes += [((2, 3), (3, 2, 3)), ((3, 1), (1, 3)), ((3,), (1, 3)), ((1, 3), (3,)), ((2, 3), (2, 4))]
    for op, (a, b) in itertools.product(("Add", "Sub", "Mul", "Div"), shapes):
        yield case(op, Blob(a, low=0.5), ramp(*b))
        yield case(op, ramp(*b), Blob(a, low=0.5))
        yield case(op, Blob(a, low=0.5), Blob(b, low=0.5))
        yield case(op, Blob(b, low=0.5), Blob(a, low=0.5))
    pairs = [
        ((3, 1), (1, 3)),
        ((3,), (3,)),
        ((), (3,)),
        ((2, 3), (3,)),
        ((2, 1, 3), (4, 1)),
        ((2,), (3,)),
        ((1,), (1, 1)),
        ((0,), (1,)),
    ]
    for op, (a, b), dtype in itertools.product(("Add", "Sub", "Mul", "Div"), pairs, (F32, I64, np.int32)):
        yield case(op, ramp(*a, low=7, dtype=dtype), ramp(*b, low=2, dtype=dtype))
        if dtype != F32 and 0 not in a:
            yield case(op, Blob(a, dtype, 0, 50), ramp(*b, low=2, dtype=dtype), behind=("Cast", {"to": 1}))
    for op in ("Sum", "Max"):
        yield case(op, Blob((2, 3)))
        yield case(op, Blob((2, 3)), Blob((2, 3)))
        yield case(op, Blob((2, 3)), Blob((2, 3)), Blob((2, 3)))
        yield case(op, Blob((2, 3)), Blob((3,)))
        yield case(op, Blob((2, 3)), ramp(2, 3))


# length: a list of cases.
def numbers():
    for op in ("Abs", "Exp", "HardSwish", "Identity", "Neg", "Relu", "Sigmoid", "Softplus", "Tanh"):
        yield case(op, Blob((2, 3, 4)), opset=14)
    for op in ("Log", "Sqrt", "Reciprocal"):
        yield case(op, Blob((2, 3), low=0.25))
    for op, names in (("LeakyRelu", ["alpha"]), ("Elu", ["alpha"]), ("HardSigmoid", ["alpha", "beta"])):
        yield case(op, Blob((2, 3)))
        yield case(op, Blob((2, 3)), **dict(zip(names, (0.3, 0.7))))
    for shape in ((2, 3), (2, 3, 4), (2, 3, 4, 3), (3,)):
        for slope in (
            (),
            (1,),
            (3,),
            (1, 3),
            (3, 1),
            (3, 1, 1),
            (1, 3, 1, 1),
            (1, 1, 3),
            (4, 3),
            (2, 1, 1, 1),
            (3, 4, 3),
            (1, 1, 1, 1, 1),
        ):
            yield case("PRelu", Blob(shape), ramp(*slope, low=-1))
    for bound in ((), (1,), (1, 1, 1, 1), (3,)):
        yield case("Pow", Blob((2, 3), low=0.25), ramp(*bound, low=1.5))
        yield case("Greater", Blob((2, 3)), ramp(*bound, low=0.1), behind=("Cast", {"to": 1}))
        yield case("Greater", ramp(*bound), Blob((2, 3)), behind=("Cast", {"to": 1}))
    yield case("Pow", Blob((2, 3), np.int64, 0, 5), F32(0.5), behind=("Cast", {"to": 1}))
    yield case("Pow", ramp(2, 3), Blob((2, 3)))
    for opset, given in itertools.product(
        (7, 10), ({}, {"min": -0.5}, {"max": 0.5}, {"min": -0.5, "max": 0.5}, {"min": 0.0}, {"min": 1.0, "max": -1.0})
    ):
        yield case("Clip", Blob((2, 3)), opset=opset, **given)
    for opset, given in itertools.product(
        (11, 13),
        ((), ("", F32(0.5)), (F32(-0.5),), (F32(-0.5), F32(0.5)), (F32(0),), (F32(1), F32(-1)), (F32([-0.5]), F32(1))),
    ):
        yield case("Clip", Blob((2, 3)), *given, opset=opset)
    yield case("Dropout", Blob((2, 3)), opset=7)
    for opset, ratio in itertools.product((7, 10), (0.0, 0.3, 0.9)):
        yield case("Dropout", Blob((2, 3)), opset=opset, ratio=ratio)
    for ratio, trains in itertools.product((0.0, 0.3), (None, False, True)):
        yield case(
            "Dropout", Blob((2, 3)), F32(ratio), *([np.array(trains)] if trains is not None else []), opset=12, seed=3
        )
    yield case("Dropout", Blob((2, 3)), outputs=2)


def pools():
    x = Blob((2, 3, 7, 8))
    pads = ([0] * 4, [1] * 4, [0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0])
    for kernel, stride, pad, up in itertools.product((2, 3), (1, 2, 3), pads, (0, 1)):
        given = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": pad, "ceil_mode": up}
        yield case("MaxPool", x, opset=12, **given)
        for counted in (0, 1):
            yield case("AveragePool", x, opset=19, count_include_pad=counted, **given)
    for op, auto, kernel, stride in itertools.product(
        ("MaxPool", "AveragePool"), ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "ELSE"), (2, 3), (1, 2, 3)
    ):
        yield case(op, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, auto_pad=auto)
    for op in ("MaxPool", "AveragePool"):
        yield case(op, x, opset=19, kernel_shape=[2, 2], dilations=[2, 2])
        yield case(op, x, opset=7, kernel_shape=[3, 2])
        yield case(op, Blob((2, 3, 7)), kernel_shape=[2])
        yield case(op, Blob((2, 3, 4, 5, 6)), kernel_shape=[2, 2, 2])
    yield case("MaxPool", x, kernel_shape=[2, 2], storage_order=1)
    yield case("MaxPool", x, kernel_shape=[2, 2], outputs=2)
    for op in ("GlobalMaxPool", "GlobalAveragePool"):
        yield case(op, x)
        yield case(op, Blob((2, 3, 7)))


# length: a list of cases.
def weighted():
    x = Blob((2, 4, 7, 8))
    pads = ([0] * 4, [1] * 4, [0, 1, 2, 1], [2, 0, 0, 0])
    for kernel, stride, pad, dilation, group in itertools.product((1, 3), (1, 2), pads, (1, 2), (1, 2)):
        more = {"strides": [stride] * 2, "pads": pad, "dilations": [dilation] * 2, "group": group}
        yield case("Conv", x, ramp(6, 4 // group, kernel, kernel, low=-1), ramp(6), **more)
        yield case("ConvTranspose", x, ramp(4, 6 // group, kernel, kernel, low=-1), ramp(6), **more)
        yield case("ConvTranspose", x, ramp(4, 6 // group, kernel, kernel, low=-1), output_padding=[1, 0], **more)
    for auto, kernel, stride in itertools.product(("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"), (2, 3), (1, 2, 3)):
        yield case(
            "Conv", x, ramp(2, 4, kernel, kernel), auto_pad=auto, strides=[stride] * 2, kernel_shape=[kernel] * 2
        )
        yield case(
            "ConvTranspose",
            x,
            ramp(4, 2, kernel, kernel),
            auto_pad=auto,
            strides=[stride] * 2,
            kernel_shape=[kernel] * 2,
        )
    yield case("ConvTranspose", x, ramp(4, 2, 3, 3), strides=[2, 2], output_shape=[14, 16])
    yield case("Conv", x, ramp(2, 4, 3, 3), kernel_shape=[2, 2])
    yield case("Conv", Blob((2, 4, 7)), ramp(2, 4, 3), pads=[0, 1])
    yield case("Conv", Blob((2, 4, 5, 6, 7)), ramp(2, 4, 2, 3, 2), strides=[1, 2, 1])
    yield case("Conv", x, Blob((2, 4, 3, 3)))
    for opset, pad in itertools.product(
        (10, 13, 18),
        (
            [0, 0, 1, 2, 0, 0, 0, 1],
            [0] * 8,
            [0, 0, -1, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, 0, 0, 0],
            [0, 0, 1, 1, 0, 0, 1, 1],
        ),
    ):
        for mode, value in (("constant", 0.0), ("constant", 1.0), ("reflect", 0.0), ("edge", 0.0)):
            if opset < 11:
                yield case("Pad", x, opset=opset, pads=pad, mode=mode, value=value)
            else:
                yield case("Pad", x, ints(*pad), F32(value), opset=opset, mode=mode)
    yield case("Pad", x, ints(1, 1, 1, 2), "", ints(2, 3), opset=18)
    yield case("Pad", x, ints(1, 1, 1, 2), opset=19, mode="wrap")


def products():
    rows = ((), (1,), (3,), (1, 3), (1, 1), (4, 1), (3, 1), (4, 3), (3, 3))
    for m, ta, tb, c in itertools.product((1, 3, 4), (0, 1), (0, 1), rows):
        a, b = (5, m) if ta else (m, 5), (3, 5) if tb else (5, 3)
        yield case("Gemm", Blob(a), ramp(*b, low=-1), ramp(*c), transA=ta, transB=tb, alpha=0.5, beta=2.0)
    for c, beta in itertools.product(((4, 3), (3,), (4, 1)), (1.0, 0.5)):
        yield case("Gemm", Blob((4, 5)), ramp(5, 3), Blob(c), beta=beta)
    yield case("Gemm", Blob((4, 5)), ramp(5, 3), opset=11)
    yield case("Gemm", Blob((4, 5)), Blob((5, 3)))
    yield case("Gemm", ramp(4, 5), Blob((5, 3)))
    for a, b in (
        ((4, 5), (5, 3)),
        ((2, 4, 5), (5, 3)),
        ((2, 3, 4, 5), (5, 3)),
        ((5,), (5, 3)),
        ((4, 5), (5,)),
        ((2, 4, 5), (2, 5, 3)),
        ((4, 5), (4, 3)),
        ((4, 5), (1, 5, 3)),
    ):
        yield case("MatMul", Blob(a), ramp(*b, low=-1))
        yield case("MatMul", ramp(*a), Blob(b))
    for axis, table in itertools.product((0, 1, -2), ((6, 4), (6,), (6, 4, 2))):
        yield case("Gather", ramp(*table), Blob((2, 3), np.int64, 0, 4), axis=axis)
        for places in (ints(1, 0), np.array(-1), ints([0], [1])):
            yield case("Gather", ramp(*table), places, axis=axis)
    yield case("Gather", Blob((6, 4)), ints(1, 0))


def normalisations():
    for opset, shape in itertools.product((7, 9, 14, 15), ((2, 3, 4, 5), (2, 3), (2, 3, 4), (3,))):
        channels = shape[1] if len(shape) > 1 else 1
        stats = [ramp(channels, low=v) for v in (0.5, -1, 0.2, 0.7)]
        yield case("BatchNormalization", Blob(shape), *stats, opset=opset, epsilon=1e-3, momentum=0.8)
    stats = [ramp(3, low=v) for v in (0.5, -1, 0.2, 0.7)]
    yield case("BatchNormalization", Blob((2, 3, 4)), *stats, opset=15, training_mode=1, outputs=3)
    yield case("BatchNormalization", Blob((2, 3, 4)), *stats, opset=9, outputs=5)
    for spatial in (0, 1):
        yield case(
            "BatchNormalization",
            Blob((2, 3, 4)),
            *([s] if spatial else [np.repeat(s, 4).reshape(3, 4)] for s in ()),
            *stats,
            opset=7,
            spatial=spatial,
        )
    yield case("InstanceNormalization", Blob((2, 3, 4, 5)), ramp(3), ramp(3), epsilon=1e-3)
    for size, shape in itertools.product((1, 3, 4, 5), ((2, 6, 3, 4), (2, 6))):
        yield case("LRN", Blob(shape), size=size, alpha=0.4, beta=0.6, bias=1.5)
    for op, opset, shape in itertools.product(
        ("Softmax", "LogSoftmax"), (7, 11, 13), ((2, 3, 4, 5), (2, 3), (2, 3, 1, 1), (4,))
    ):
        yield case(op, Blob(shape), opset=opset)
        for axis in range(-len(shape), len(shape)):
            yield case(op, Blob(shape), opset=opset, axis=axis)


ALL = [
    shapes.resizes,
    casts,
    binaries,
    numbers,
    pools,
    weighted,
    products,
    normalisations,
    shapes.reductions,
    shapes.moves,
    shapes.cuts,
    shapes.constants,
    shapes.opsets,
]


def cases():
    for group in ALL:
        yield from group()
