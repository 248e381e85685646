"""scoring.py in this process: models are loaded once, memory stays flat; the codec of Examples against TensorFlow's."""

import functools
import json
import pathlib
import random

import numpy as np
import pytest
from tensorflow_session import tf, various  # noqa: F401  fixture

from tensorflowonspark import batches, dfutil, example, scoring

pa = pytest.importorskip("pyarrow")


def plan(folder, signature="typed", **more):
    given = dict(
        export_dir=folder,
        tags=(),
        signature=signature,
        inputs=(("n", "id", False), ("point", "x", False)),
        outputs=(("score", "s"), ("text", "t")),
        batch_size=4,
    )
    return scoring.Plan(**{**given, **more})


def batch(start, stop):
    n = np.arange(start, stop)
    point = pa.array([[float(i), 1.0] for i in n], pa.list_(pa.float32()))
    return pa.RecordBatch.from_arrays([pa.array(n), point], ["c0", "c1"])


@pytest.fixture
def loads(monkeypatch):
    """What was loaded, one entry for each time; no model is in memory at the start."""
    found, load = [], tf.saved_model.load
    monkeypatch.setattr(tf.saved_model, "load", lambda folder, **more: found.append(folder) or load(folder, **more))
    scoring._scorers.clear()
    return found


def test_a_model_is_loaded_once(various, loads):
    prepared = []
    first = plan(various, prepare=functools.partial(prepared.append, "once"))
    for _ in range(3):
        list(scoring.score_arrow(first, [batch(0, 9)]))
    scoring.describe(
        plan(various, outputs=(("row", "r"),), batch_size=2)
    )  # neither outputs nor batches are its business
    assert loads == [various] and prepared == ["once"]
    scoring.describe(plan(various, "binary"))
    assert len(loads) == 2
    list(scoring.score_arrow(first, [batch(0, 9)]))
    assert len(loads) == 2 and len(scoring._scorers) == scoring.LOADED == 2


def test_a_model_that_was_written_anew_is_loaded_anew(tmp_path, loads):
    class Constant(tf.Module):
        def __init__(self, value):
            super().__init__()
            self.value = tf.Variable(value)

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x"), tf.TensorSpec([None], tf.int64, "id")])
        def serve(self, x, id):
            return {"score": tf.cast(id, tf.float32) + self.value}

    for value in (1.0, 5.0):
        model = Constant(value)
        tf.saved_model.save(model, str(tmp_path), signatures=model.serve)
        out = list(scoring.score_arrow(plan(str(tmp_path), None, outputs=(("score", "s"),)), [batch(0, 2)]))
        assert out[0].column(0).to_pylist() == [value, 1 + value]
    assert len(loads) == 2


def test_a_damaged_model_is_said_to_be_one(various, tmp_path):
    whole = pathlib.Path(various, "saved_model.pb").read_bytes()
    (tmp_path / "saved_model.pb").write_bytes(whole[: len(whole) // 2])
    found = json.loads(scoring.describe(plan(str(tmp_path))))
    assert found == {"error": f"{tmp_path}/saved_model.pb is damaged, or no SavedModel: write the model again"}


def test_batches_of_one_size_from_batches_of_any():
    sizes = [0, 1, 5, 0, 11, 3, 40, 1]
    starts = np.cumsum([0, *sizes])
    parts = [batch(a, b) for a, b in zip(starts, starts[1:])]
    found = list(batches.exact_batches(parts, 8))
    assert [b.num_rows for b in found] == [8] * 7 + [5]
    assert pa.Table.from_batches(found).column(0).to_pylist() == list(range(61))
    assert list(batches.exact_batches([batch(0, 0)], 8)) == []


BAD_ROWS = [  # types of n and point, their values in two rows, what is said of them
    ("int64", "list<float>", [1, None], [[1.0, 2.0]] * 2, "column 'n' has a null in row 1 of its partition"),
    ("int64", "list<float>", [1, 1], [[1.0, 2.0], None], "column 'point' has a null in row 1 of its partition"),
    ("int64", "list<float>", [1, 1], [[1.0, 2.0], [1.0, None]], "column 'point' has a null .* of its partition"),
    (
        "int64",
        "list<float>",
        [1, 1],
        [[1.0, 2.0], [1.0]],
        "column 'point' has 1 items in row 1 of its partition and 2 in",
    ),
    (
        "int64",
        "list<float>",
        [1, 1],
        [[1.0] * 3] * 2,
        "column 'point' has rows of 3 items and tensor 'x' takes rows of 2",
    ),
    ("double", "list<float>", [1.0, 1.0], [[1.0, 2.0]] * 2, "column 'n' is float64 and tensor 'id' takes int64; cast"),
    ("bool", "list<float>", [True, True], [[1.0, 2.0]] * 2, None),
    ("int8", "list<int64>", [1, 2], [[1, 2]] * 2, None),
    ("string", "list<float>", ["1", "2"], [[1.0, 2.0]] * 2, "column 'n' is string and tensor 'id' takes int64; cast"),
    ("int64", "list<string>", [1, 1], [["1", "2"]] * 2, "column 'point' is string and tensor 'x' takes float32; cast"),
    (
        "int64",
        "binary",
        [1, 1],
        [bytes(8), bytes(7)],
        "column 'point' holds binary values of 7, 8 bytes and tensor 'x'",
    ),
    ("binary", "binary", [bytes(8)] * 2, [bytes(8)] * 2, None),
]
TYPES = {
    "int64": pa.int64(), "int8": pa.int8(), "double": pa.float64(), "bool": pa.bool_(), "string": pa.string(),
    "binary": pa.binary(), "list<float>": pa.list_(pa.float32()), "list<int64>": pa.list_(pa.int64()),
    "list<string>": pa.list_(pa.string()),
}  # fmt: skip


@pytest.mark.parametrize("n_type, point_type, n, point, words", BAD_ROWS)
def test_rows_that_no_tensor_takes(various, n_type, point_type, n, point, words):
    """Columns of Arrow and rows of an RDD are judged alike; what is taken gives the same."""
    inputs = (("n", "id", n_type == "string"), ("point", "x", point_type == "list<string>"))
    each = plan(various, inputs=inputs)
    columns = [pa.array(n, TYPES[n_type]), pa.array(point, TYPES[point_type])]
    record = pa.RecordBatch.from_arrays(columns, ["c0", "c1"])
    if words is None:
        (out,) = scoring.score_arrow(each, [record])
        assert out.num_rows == 2
        assert list(scoring.score_rows(each, zip(n, point))) == list(zip(*out.to_pydict().values()))
        return
    for scored in (scoring.score_arrow(each, [record]), scoring.score_rows(each, zip(n, point))):
        with pytest.raises(ValueError, match=words):
            list(scored)


def resident():
    fields = pathlib.Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


def test_memory_is_flat(various):
    """A leak of 200 bytes in each batch would be 2 MB, three thousandths of what this process has."""
    outputs = tuple((name, name) for name in ("score", "cube", "text", "texts", "u8", "flag"))
    each = plan(various, outputs=outputs, batch_size=2)

    def score(count):
        one = batch(0, 2)
        for out in scoring.score_arrow(each, (one for _ in range(count))):
            assert out.num_rows == 2

    score(2000)
    sizes = [resident()]
    while len(sizes) < 2 or (len(sizes) < 5 and abs(sizes[-1] / sizes[-2] - 1) >= 0.003):
        score(10_000)  # again, as an allocator may take a step; a leak takes one each time
        sizes.append(resident())
    print(f"bytes before and after each 10,000 batches: {sizes}")
    assert abs(sizes[-1] / sizes[0] - 1) < 0.02, f"bytes before and after each 10,000 batches: {sizes}"
    assert abs(sizes[-1] / sizes[-2] - 1) < 0.003, f"bytes before and after each 10,000 batches: {sizes}"


def test_examples_are_tensorflows():
    """Random features: our bytes are those of TensorFlow's protobuf, and each reads the other's."""
    rng = random.Random(11)
    for _ in range(400):
        features, theirs = {}, {}
        for i in range(rng.randrange(7)):
            name = rng.choice(["a", "Z", "ü", "long name " * 20]) + str(i)
            kind, count = rng.choice([example.BYTES, example.FLOAT, example.INT64]), rng.choice([0, 1, 3, 200])
            if kind == example.BYTES:
                values = [rng.randbytes(rng.choice([0, 3, 300])) for _ in range(count)]
                theirs[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
            elif kind == example.FLOAT:
                values = [float(np.float32(rng.uniform(-1e30, 1e30))) for _ in range(count)]
                theirs[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
            else:
                values = [rng.randint(-(1 << 63), (1 << 63) - 1) >> rng.randrange(64) for _ in range(count)]
                theirs[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
            features[name] = (kind, values)
        message = tf.train.Example(features=tf.train.Features(feature=theirs))
        assert example.encode(features) == message.SerializeToString(deterministic=True)
        assert example.decode(message.SerializeToString()) == features
        assert tf.train.Example.FromString(example.encode(features)) == message
        dfutil.infer_schema(message)
