"""The operators of onnx_variants.py that resize, reduce, move, cut, join; of constants; each in every opset."""

import itertools

import numpy as np
import onnx
from onnx import numpy_helper

from support.onnx_case import F32, Blob, case, ints, ramp


def constant_or_blob(op, shape, *inputs, **more):
    """The same node on a blob and on a constant of the shape."""
    yield case(op, Blob(shape), *inputs, **more)
    yield case(op, ramp(*shape, low=-1), *inputs, **more)


# length: a list of cases.
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


# length: a list of cases.
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


# length: a list of cases.
def opsets():
    """Plain nodes in every opset that changed their operator."""
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
