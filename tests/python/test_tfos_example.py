"""tensorflowonspark.example and the functions of dfutil for single records, against bytes that protobuf wrote."""

import math
import random
import struct

import pytest

import spark_session  # noqa: F401  puts python/ on the path

from tensorflowonspark import dfutil
from tensorflowonspark.example import BYTES, FLOAT, INT64, decode, encode

# tf.train.Example(features=...).SerializeToString(deterministic=True) of TensorFlow 2.21 (protobuf 7.36)
GOLDENS = {
    "nothing": ({}, "0a00"),
    "one of each": (
        {"label": (INT64, [7]), "image": (BYTES, [b"\xff\x00\x80"]), "weight": (FLOAT, [0.5])},
        "0a360a100a05696d61676512070a050a03ff00800a0e0a056c6162656c12051a030a01070a120a06776569676874120812060a040000003f",
    ),
    "several": (
        {
            "b": (BYTES, [b"", b"text", "ü".encode()]),
            "f": (FLOAT, [0.0, -1.5, 3.4028234663852886e38, math.inf]),
            "i": (INT64, [0, -1, 127, 128, (1 << 63) - 1, -(1 << 63)]),
        },
        "0a5c0a130a0162120e0a0c0a000a04746578740a02c3bc0a190a0166121412120a10000000000000c0bfffff7f7f0000807f0a2a0a016912251a230a2100ffffffffffffffffff017f8001ffffffffffffffff7f80808080808080808001",
    ),
    "empty lists": (
        {"b": (BYTES, []), "f": (FLOAT, []), "i": (INT64, [])},
        "0a1b0a070a016212020a000a070a0166120212000a070a016912021a00",
    ),
    "order of bytes": (
        {"a": (INT64, [1]), "B": (INT64, [2]), "é": (INT64, [3])},
        "0a250a0a0a014212051a030a01020a0a0a016112051a030a01010a0b0a02c3a912051a030a0103",
    ),
    "lengths of two bytes": ({"x" * 130: (BYTES, [b"yyy"])}, "0a91010a8e010a8201" + "78" * 130 + "12070a050a03797979"),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_bytes_are_protobufs(name):
    features, data = GOLDENS[name]
    assert encode(features).hex() == data
    assert decode(bytes.fromhex(data)) == features
    backwards = dict(reversed(features.items()))
    assert encode(backwards).hex() == data  # the order is that of names


def test_random_features_come_back():
    rng = random.Random(5)
    for _ in range(300):
        features = {}
        for i in range(rng.randrange(6)):
            kind = rng.choice([BYTES, FLOAT, INT64])
            count = rng.choice([0, 1, 2, 40])
            value = {
                BYTES: lambda: rng.randbytes(rng.choice([0, 1, 127, 128, 20000])),
                FLOAT: lambda: struct.unpack("<f", struct.pack("<f", rng.uniform(-1e9, 1e9)))[0],
                INT64: lambda: rng.randint(-(1 << 63), (1 << 63) - 1) >> rng.randrange(64),
            }[kind]
            features[f"f{i}" * rng.choice([1, 60])] = (kind, [value() for _ in range(count)])
        assert decode(encode(features)) == features


def test_other_ways_to_write_the_same():
    one = b"\x08\x05\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # int64 5 and -1, each with a key of its own
    two = b"\x0d" + struct.pack("<f", 1.5) + b"\x0a\x04" + struct.pack("<f", 2.5)
    entry = b"\x0a\x01a\x12" + bytes([len(one) + 2]) + b"\x1a" + bytes([len(one)]) + one
    other = b"\x0a\x01b\x12" + bytes([len(two) + 2]) + b"\x12" + bytes([len(two)]) + two
    unknown = b"\x98\x06\x01" + b"\xa1\x06" + b"8" * 8 + b"\xad\x06" + b"4444"  # fields 99 to 101
    features = b"\x0a" + bytes([len(entry)]) + entry + b"\x0a" + bytes([len(other)]) + other + unknown
    expected = {"a": (INT64, [5, -1]), "b": (FLOAT, [1.5, 2.5])}
    assert decode(b"\x0a" + bytes([len(features)]) + features + unknown) == expected
    assert decode(b"") == {} and decode(b"\x0a\x00") == {}
    assert decode(bytes.fromhex("0a070a050a01781200")) == {"x": (None, [])}


def test_damaged_bytes_are_refused_or_read():
    good = encode({"label": (INT64, [7]), "pixels": (BYTES, [b"abc", b""]), "w": (FLOAT, [0.5, 1.5])})
    for cut in range(1, len(good)):
        with pytest.raises(ValueError, match="damaged Example"):
            decode(good[:cut])
    rng, refused = random.Random(3), 0
    for _ in range(3000):
        data = bytearray(good)
        data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            decode(data)
        except ValueError:  # UnicodeDecodeError among them
            refused += 1
    assert 1000 < refused < 2900


def test_values_that_do_not_fit():
    with pytest.raises(ValueError, match="9223372036854775808 has more than 64 bits"):
        encode({"a": (INT64, [1 << 63])})
    with pytest.raises(TypeError):
        encode({"a": (INT64, [1.5])})
    assert decode(encode({"a": (FLOAT, [1e300])}))["a"][1] == [math.inf]


DTYPES = [("s", "string"), ("b", "binary"), ("f", "float"), ("d", "double"), ("n", "boolean"), ("i", "tinyint")]
DTYPES += [
    ("l", "bigint"),
    ("fs", "array<double>"),
    ("is", "array<int>"),
    ("ss", "array<string>"),
    ("bs", "array<binary>"),
]
ROW = dict(s="ü", b=bytearray(b"\xff\x00"), f=0.5, d=0.25, n=True, i=-3, l=1 << 40, fs=[1.0], is_=[1, 2])
ROW = {"is": ROW.pop("is_"), **ROW, "ss": ["a", "ü"], "bs": [b"\xfe", b""]}


def test_rows_to_examples():
    (data, none), (empty, _) = dfutil.toTFExample(DTYPES)([ROW, dict.fromkeys(ROW)])
    assert isinstance(data, bytearray) and none is None
    assert decode(data) == {
        "s": (BYTES, ["ü".encode()]),
        "b": (BYTES, [b"\xff\x00"]),
        "f": (FLOAT, [0.5]),
        "d": (FLOAT, [0.25]),
        "n": (INT64, [1]),
        "i": (INT64, [-3]),
        "l": (INT64, [1 << 40]),
        "fs": (FLOAT, [1.0]),
        "is": (INT64, [1, 2]),
        "ss": (BYTES, [b"a", "ü".encode()]),
        "bs": (BYTES, [b"\xfe", b""]),
    }
    assert decode(empty) == {}  # null is no feature, and not the text None


def test_rows_that_no_example_holds():
    for dtype in ("date", "timestamp", "decimal(10,0)", "map<string,int>", "struct<a:int>", "array<array<int>>"):
        with pytest.raises(Exception, match=f"Unsupported dtype: {dtype.translate({40: '.', 41: '.'})} in column 'x'"):
            dfutil.toTFExample([("x", dtype)])
    with pytest.raises(ValueError, match="column 'is' has a null inside an array"):
        list(dfutil.toTFExample(DTYPES)([{**ROW, "is": [1, None]}]))


def test_examples_to_rows():
    one = encode({"s": (BYTES, [b"x"]), "n": (INT64, [1, 2]), "b": (BYTES, [b"\xff"]), "e": (FLOAT, [])})
    two = encode({"s": (BYTES, [b"x", b"y"]), "n": (INT64, [3]), "b": (BYTES, [b"\xfe"]), "f": (FLOAT, [0.5])})
    rows = dfutil.fromTFExample([(one, None), (bytearray(two), None)], ["b"])
    assert [row.asDict() for row in rows] == [
        {"s": "x", "n": [1, 2], "b": bytearray(b"\xff"), "e": None, "f": None},
        {"s": ["x", "y"], "n": 3, "b": bytearray(b"\xfe"), "e": None, "f": 0.5},
    ]
    assert list(rows[0].asDict()) == ["b", "e", "f", "n", "s"]
    with pytest.raises(ValueError, match="feature 'b' is no UTF-8 text .*; name it in binary_features"):
        dfutil.fromTFExample([(one, None)])
    assert dfutil.fromTFExample([]) == []


def test_schema_of_one_example():
    data = encode(
        {
            "s": (BYTES, [b"x"]),
            "ss": (BYTES, [b"x", b"y"]),
            "b": (BYTES, [b"x"]),
            "i": (INT64, [1]),
            "is": (INT64, [1, 2]),
            "f": (FLOAT, [1.0]),
            "fs": (FLOAT, [1.0, 2.0]),
            "e": (INT64, []),
        }
    )
    assert dfutil.infer_schema(data, ["b"]).simpleString() == (
        "struct<b:binary,e:bigint,f:float,fs:array<float>,i:bigint,is:array<bigint>,s:string,ss:array<string>>"
    )
    assert all(field.nullable for field in dfutil.infer_schema(data))
