#!/usr/bin/env python3
"""What TensorFlow writes as TFRecords: the goldens of com.crema.tfrecord.GoldenSuite.

    python3 -m venv VENV && VENV/bin/pip install tensorflow-cpu==2.21.0
    VENV/bin/python tests/goldens/tfrecords/make.py

Written beside this file, with tf.io.TFRecordWriter:

    examples.tfrecord        tf.train.Examples, SerializeToString(deterministic=True)
    examples.tfrecord.gz     the same with TFRecordOptions("GZIP")
    bytes.tfrecord           records that are no Examples, one of them a TFRecord file
    examples.json            what examples.tfrecord holds, as TensorFlow's own parser reads it: for each record a
                             feature's kind and values (bytes in hex, floats as the bits of a float32)
    bytes.json               the records of bytes.tfrecord in hex

Deterministic means features in the order of their names' bytes, in protobuf for C++, Java and plain Python, which is
asked for here. Its fast Python runtime (upb) differs in one point: it puts a name behind those that it begins (ab, a).
"""

import gzip
import json
import os
import pathlib
import struct

os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"
import tensorflow as tf  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SMALLEST, LARGEST = -(2**63), 2**63 - 1


def int64s(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def texts(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


# Names in the order of their bytes: Z, a, a1, a_b, ab, ö. Scalars are in columns of their own, some of them absent.
RECORDS = [
    {
        "Z": int64s(1),
        "a": floats(0.1),
        "a1": texts(b"one"),
        "a_b": int64s(1, 2, 3),
        "ab": floats(1.5, -2.5),
        "ö": texts("größe".encode(), b""),
    },
    {
        "Z": int64s(SMALLEST),
        "a1": texts(b""),
        "a_b": int64s(LARGEST, SMALLEST, -1, 0, 127, 128, 300),
        "ab": floats(),
        "ö": texts(),
    },
    {},
    {
        "Z": int64s(0),
        "a": floats(float("inf")),
        "a1": texts("naïve".encode()),
        "a_b": int64s(7),
        "ab": floats(-0.0, 3.4e38, 1e-45),
        "ö": texts(b"x" * 200),
    },
    {
        "Z": int64s(-1),
        "a": floats(float("-inf")),
        "ab": floats(*(i / 7 for i in range(300))),
        "a_b": int64s(*range(300)),
    },
]


def described(record):
    """As TensorFlow parses it, not as it was made."""
    example = tf.train.Example.FromString(record)
    found = {}
    for name, feature in example.features.feature.items():
        kind = feature.WhichOneof("kind")
        values = list(getattr(feature, kind).value)
        if kind == "bytes_list":
            values = [v.hex() for v in values]
        elif kind == "float_list":
            values = [struct.unpack("<i", struct.pack("<f", v))[0] for v in values]
        found[name] = {"kind": kind, "values": values}
    return found


def write(name, records, compression=""):
    with tf.io.TFRecordWriter(str(HERE / name), tf.io.TFRecordOptions(compression)) as out:
        for record in records:
            out.write(record)


def read(name, compression=""):
    return [r.numpy() for r in tf.data.TFRecordDataset(str(HERE / name), compression)]


def main():
    examples = [
        tf.train.Example(features=tf.train.Features(feature=r)).SerializeToString(deterministic=True) for r in RECORDS
    ]
    write("examples.tfrecord", examples)
    write("examples.tfrecord.gz", examples, "GZIP")
    assert gzip.decompress((HERE / "examples.tfrecord.gz").read_bytes()) == (HERE / "examples.tfrecord").read_bytes()
    assert read("examples.tfrecord") == examples == read("examples.tfrecord.gz", "GZIP")
    (HERE / "examples.json").write_text(
        json.dumps([described(e) for e in examples], indent=0, ensure_ascii=False) + "\n"
    )
    inside = (HERE / "examples.tfrecord").read_bytes()
    plain = [b"", b"\0", b"0123456", b"01234567", b"012345678", bytes(100), inside, bytes(range(256))]
    write("bytes.tfrecord", plain)
    (HERE / "bytes.json").write_text(json.dumps([r.hex() for r in read("bytes.tfrecord")], indent=0) + "\n")


main()
