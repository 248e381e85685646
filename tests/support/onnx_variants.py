"""Every operator that crema import reads, in all variants of its attributes, inputs and opsets that it has to tell apart."""

import itertools

import numpy as np
import onnx
from onnx import helper, numpy_helper

from support.onnx_case import F32, I64, Blob, case, ints, ramp

TYPES = [np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_]


def constant_or_blob(op, shape, *inputs, **more):
    """The same node on a blob and on a constant of the shape."""
    yield case(op, Blob(shape), *inputs, **more)
    yield case(op, ramp(*shape, low=-1), *inputs, **more)


def resizes():
    x = Blob((2, 3, 3, 4))
    words = (
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_half_pixel_for_nn",
        "tf_crop_and_resize",
    )
    for factor, word, near in itertools.product(
        (2, 3, 4, 5), words, ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ):
        yield case(
            "Resize",
            x,
            np.zeros(8, F32),
            F32([1, 1, factor, factor]),
            opset=11,
            coordinate_transformation_mode=word,
            nearest_mode=near,
        )
    for near in ("round_prefer_floor", "floor"):
        yield case(
            "Resize",
            x,
            "",
            F32([1, 1, 2, 3]),
            opset=19,
            coordinate_transformation_mode="half_pixel_symmetric",
            nearest_mode=near,
        )
    for mode, word in itertools.product(("nearest", "linear", "cubic"), ("asymmetric", "half_pixel")):
        yield case(
            "Resize",
            x,
            "",
            F32([1, 1, 2, 2]),
            mode=mode,
            coordinate_transformation_mode=word,
            cubic_coeff_a=-0.5,
            exclude_outside=0,
        )
    for sizes in ((2, 3, 6, 8), (2, 3, 9, 4), (2, 3, 7, 8), (2, 6, 6, 8), (2, 3, 1, 2)):
        yield case("Resize", x, "", "", ints(*sizes), extrapolation_value=0.0)
    for policy in ("stretch", "not_larger", "not_smaller"):
        yield case(
            "Resize", x, "", "", ints(6, 12), opset=18, axes=[2, 3], keep_aspect_ratio_policy=policy, antialias=0
        )
    yield case("Resize", x, "", F32([3, 2]), opset=18, axes=[3, -2])
    yield case(
        "Resize",
        Blob((2, 3, 1, 1)),
        "",
        F32([1, 1, 3, 2]),
        coordinate_transformation_mode="align_corners",
        nearest_mode="ceil",
    )
    for factors in ((1, 1, 2, 3), (1, 1, 1, 1), (1, 1, 1.5, 2), (1, 2, 1, 1), (1, 1, 0.5, 1)):
        yield case("Resize", x, F32(factors), opset=10)
        yield case("Upsample", x, F32(factors), opset=9, mode="nearest")
        yield case("Upsample", x, opset=7, scales=[float(f) for f in factors])
    yield case("Upsample", x, F32([1, 1, 2, 2]), opset=9, mode="linear")


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


def reductions():
    choices = (None, [1], [2, 3], [-1], [3], [1, 2, 3], [-2, -1], [0], [0, 1, 2, 3], [1, 3], [3, 2], [])
    for op, axes, keep in itertools.product(
        ("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL1", "ReduceSumSquare"), choices, (0, 1)
    ):
        x = Blob((2, 3, 4, 5))
        if axes != []:
            yield case(op, x, opset=11, keepdims=keep, **({} if axes is None else {"axes": axes}))
        for noop in (0, 1) if axes is None or axes == [] else (0,):
            yield case(
                op, x, *([] if axes is None else [ints(*axes)]), opset=18, keepdims=keep, noop_with_empty_axes=noop
            )
    for op in ("ReduceMean", "ReduceSum"):
        yield case(op, Blob((2, 5), np.int32, -9, 50), opset=11, axes=[1], behind=("Cast", {"to": 1}))
        yield case(op, Blob((2, 3)), opset=11)
    for axis, keep, last in itertools.product((None, 0, 1, 2, -1), (0, 1), (0, 1)):
        yield case(
            "ArgMax",
            Blob((2, 3, 4)),
            keepdims=keep,
            select_last_index=last,
            behind=("Cast", {"to": 1}),
            **({} if axis is None else {"axis": axis}),
        )


def moves():
    for shape in ((2, 3, 4, 5), (2, 1, 3, 1)):
        count = int(np.prod(shape))
        for to in (
            (0, -1),
            (-1,),
            (2, -1),
            (count,),
            (0, 0, -1),
            (-1, 5),
            (-1, 7),
            (2, 3, -1, -1),
            (0, 0, 0, 0),
            (0, 0, 0, 0, 0),
            (1, 2, 3, -1),
            (-1, 3),
            (0, 3, -1),
        ):
            for allow in (0, 1):
                yield from constant_or_blob("Reshape", shape, ints(*to), opset=14, allowzero=allow)
        for axes in ([1], [-1], [1, 3], [3, 1], [0], [1, 1], [4], []):
            yield from constant_or_blob("Squeeze", shape, opset=11, **({"axes": axes} if axes else {}))
            yield from constant_or_blob("Squeeze", shape, *([ints(*axes)] if axes else []), opset=13)
            if axes:
                yield from constant_or_blob("Unsqueeze", shape, opset=11, axes=axes)
                yield from constant_or_blob("Unsqueeze", shape, ints(*axes), opset=13)
        for axis in range(-4, 5):
            yield case("Flatten", Blob(shape), opset=13, axis=axis)
        for perm in itertools.permutations(range(4)):
            yield from constant_or_blob("Transpose", shape, perm=perm)
        yield from constant_or_blob("Transpose", shape)
    yield case("Flatten", Blob((2, 3, 4, 5)), opset=7)
    for to in ((2, 3), (1,), (4, 2, 3), (2, 1), (2, 6), (1, 2, 3)):
        yield from constant_or_blob("Expand", (2, 3), ints(*to))
        yield from constant_or_blob("Expand", (2, 1), ints(*to))
    for times in ((1, 1), (2, 3), (1, 4), (0, 1), (2,)):
        yield case("Tile", Blob((2, 3)), ints(*times))


def cuts():
    for opset, shape in itertools.product((9, 13), ((4, 5), (2, 3, 4, 5))):
        for start, end, axis, step in (
            ([1], [3], [0], None),
            ([1], [9], [1], None),
            ([-2], [2**62], [-1], None),
            ([0, 1], [2, 3], None, None),
            ([0], [-1], [1], None),
            ([0, 1], [2, 4], [1, 0], None),
            ([3], [1], [1], None),
            ([-99], [99], [1], None),
            ([0], [9], [1], [2]),
            ([-1], [-99], [1], [-1]),
            ([9], [0], [1], [-1]),
            ([3], [-(2**62)], [1], [-2]),
            ([0, 0], [1, 1], [1, 1], None),
            ([0], [1], [7], None),
            ([1], [2], [1], [3]),
            ([0], [2], [1], [0]),
        ):
            if opset < 10 and step is None:
                yield from constant_or_blob(
                    "Slice",
                    shape,
                    opset=opset,
                    starts=start,
                    ends=[min(e, 2**31) for e in end],
                    **({"axes": axis} if axis else {}),
                )
            elif opset >= 10:
                more = [ints(*axis) if axis else ""] + ([ints(*step)] if step else [])
                yield from constant_or_blob(
                    "Slice", shape, ints(*start), ints(*end), *(more if axis or step else []), opset=opset
                )
    for parts, sizes, axis in (
        (2, (2, 4), 1),
        (2, None, 1),
        (3, (1, 2, 3), -1),
        (2, (2, 3), 1),
        (1, (6,), 1),
        (1, None, 1),
        (2, (0, 6), 1),
        (4, None, 1),
        (2, (4, 4), 1),
        (2, None, 0),
    ):
        yield case("Split", Blob((2, 6)), opset=11, outputs=parts, axis=axis, **({"split": sizes} if sizes else {}))
        yield case("Split", Blob((2, 6)), *([ints(*sizes)] if sizes else []), opset=13, outputs=parts, axis=axis)
        if not sizes:
            yield case("Split", Blob((2, 6)), opset=18, outputs=parts, axis=axis, num_outputs=parts)
    for axis, shapes in itertools.product(
        (0, 1, -1, 3), (((2, 3), (2, 3)), ((2, 3), (2, 4)), ((2, 3), (1, 3)), ((2, 3),), ((2, 3, 1), (2, 3)))
    ):
        yield case("Concat", *(Blob(s) for s in shapes), axis=axis)
        yield case("Concat", *(ramp(*s) for s in shapes), axis=axis)
    yield case("Concat", ints(1, 2), np.int32([3]), axis=0)
    yield case("Concat", Blob((2, 3)), ramp(2, 3), axis=0)


def constants():
    tensor = numpy_helper.from_array(ramp(2, 3))
    for given in (
        {"value": tensor},
        {"value_float": 1.5},
        {"value_int": 3},
        {"value_floats": [1.0, 2.5]},
        {"value_ints": [4, 5]},
        {"value_string": "a"},
        {"value_strings": ["a"]},
    ):
        yield case("Constant", **given)
    for value in (F32([1.5]), np.int64([3]), np.int32([-2]), np.array([True])):
        yield case("ConstantOfShape", ints(2, 3), value=numpy_helper.from_array(value))
    yield case("ConstantOfShape", ints(2, 3))
    for given in ({}, {"start": 1}, {"start": -2, "end": 9}, {"end": -1}, {"start": 2, "end": 1}):
        yield case("Shape", ramp(2, 3, 4), opset=15, **given)
    yield case("Identity", ramp(2, 3))


def opsets():
    """Plain nodes in every opset in which their operator became another."""
    x = Blob((2, 4, 5, 6))
    plain = [
        ("Conv", [ramp(2, 4, 3, 3)], {}),
        ("ConvTranspose", [ramp(4, 2, 3, 3)], {}),
        ("BatchNormalization", [ramp(4, low=v) for v in (0.5, -1, 0.2, 0.7)], {}),
        ("LRN", [], {"size": 3}),
        ("MaxPool", [], {"kernel_shape": [2, 2]}),
        ("AveragePool", [], {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
        ("GlobalMaxPool", [], {}),
        ("GlobalAveragePool", [], {}),
        ("Softmax", [], {"axis": 1}),
        ("LogSoftmax", [], {"axis": 3}),
        ("Flatten", [], {}),
        ("Reshape", [ints(2, -1)], {}),
        ("Transpose", [], {"perm": [0, 1, 2, 3]}),
        ("PRelu", [ramp(4, 1, 1)], {}),
        ("LeakyRelu", [], {}),
        ("Elu", [], {}),
        ("HardSigmoid", [], {}),
        ("HardSwish", [], {}),
        ("Softplus", [], {}),
        ("Sigmoid", [], {}),
        ("Tanh", [], {}),
        ("Exp", [], {}),
        ("Abs", [], {}),
        ("Neg", [], {}),
        ("Relu", [], {}),
        ("Clip", [], {}),
        ("Dropout", [], {}),
        ("Identity", [], {}),
        ("Concat", [x], {"axis": 1}),
        ("Sum", [x], {}),
        ("Max", [x], {}),
        ("Add", [ramp(4, 1, 1)], {}),
        ("Sub", [x], {}),
        ("Mul", [ramp(6)], {}),
        ("Div", [F32(2)], {}),
        ("Pow", [F32(2)], {}),
        ("Tile", [ints(1, 2, 1, 3)], {}),
        ("Expand", [ints(2, 4, 5, 6)], {}),
        ("Squeeze", [], {}),
        ("Split", [], {"axis": 1}),
        ("ReduceMean", [], {}),
        ("ReduceMax", [], {}),
        ("ReduceSum", [], {}),
        ("ReduceL1", [], {}),
        ("ReduceSumSquare", [], {}),
    ]
    for op, more, given in plain:
        for opset in sorted(
            {max(7, onnx.defs.get_schema(op, v).since_version) for v in range(7, 25) if onnx.defs.has(op, v)}
        ):
            yield case(op, x, *more, opset=opset, **given)
    for opset in (13, 18, 23):
        yield case("ReduceSum", x, ints(2, 3), opset=opset, keepdims=0)
        yield case("Squeeze", Blob((2, 1, 3)), ints(1), opset=opset)
        yield case("Cast", x, opset=opset, to=11, behind=("Cast", {"to": 1}))
        yield case("ArgMax", x, opset=opset, axis=1, behind=("Cast", {"to": 1}))
        yield case("Greater", x, F32(0.5), opset=opset, behind=("Cast", {"to": 1}))
        yield case("Gemm", Blob((3, 4)), ramp(4, 5), ramp(5), opset=opset)
        yield case("MatMul", Blob((3, 4)), ramp(4, 5), opset=opset)
        yield case("Gather", ramp(6, 4), Blob((2, 3), np.int64, 0, 4), opset=opset)


ALL = [
    resizes,
    casts,
    binaries,
    numbers,
    pools,
    weighted,
    products,
    normalisations,
    reductions,
    moves,
    cuts,
    constants,
    opsets,
]


def cases():
    for group in ALL:
        yield from group()
