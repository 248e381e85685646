"""TFModel.transform on a real Spark with real SavedModels; what comes out is compared with numpy."""

import numpy as np
import pytest
from tensorflow_session import Various, spark, tf, various  # noqa: F401  fixtures

from tensorflowonspark import pipeline
from tensorflowonspark.pipeline import TFModel

TYPED = "score row cube u8 u16s i32 half flag text texts size".split()


def typed_model(folder, outputs=TYPED):
    model = TFModel({}).setExportDir(folder).setSignatureDefKey("typed").setInputMapping({"point": "x", "n": "id"})
    return model.setOutputMapping({name: f"out_{name}" for name in outputs})


@pytest.fixture(scope="module")
def points(spark):
    rows = [(i, [i / 8, 1.0 - i], f"name {i}") for i in range(103)]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 4), "n bigint, point array<float>, name string")


def expected(n):
    """The row that signature `typed` gives for row n of `points`, in the order of the tensors' names."""
    x = [np.float32(n / 8), np.float32(1.0 - n)]
    score, text = float(np.float32(2) * x[0] - x[1]), str(n).encode()
    return {
        "out_cube": (n + np.arange(8.0)).reshape(2, 2, 2).tolist(),
        "out_flag": n % 2 == 0,
        "out_half": float(np.float16(x[0])),
        "out_i32": -n,
        "out_row": [score],
        "out_score": score,
        "out_text": text,
        "out_texts": [text, text + "\xff\u00fc".encode()],
        "out_u16s": [n, 65535 - n],
        "out_u8": 250 + n % 6,
    }


def test_typed_outputs_in_order(points, various):
    out = typed_model(various, TYPED[:-1]).transform(points)
    assert out.schema.simpleString() == (
        "struct<out_cube:array<array<array<double>>>,out_flag:boolean,out_half:float,out_i32:int,out_row:array<float>,"
        "out_score:float,out_text:binary,out_texts:array<binary>,out_u16s:array<int>,out_u8:smallint>"
    )
    assert [row.asDict() for row in out.collect()] == [expected(n) for n in range(103)]


def test_rows_without_arrow_give_the_same(points, various, monkeypatch):
    model = typed_model(various).setPassThrough(["name", "n"]).setBatchSize(9)
    fast = model.transform(points)
    monkeypatch.setattr("tensorflowonspark._frames.has_arrow", lambda: False)
    slow = model.transform(points)
    assert slow.schema == fast.schema and slow.collect() == fast.collect()


def test_columns_pass_through_and_batches_have_their_size(points, various):
    model = typed_model(various, ["score", "size"]).setBatchSize(10)
    assert model.transform(points).columns == ["out_score", "out_size"]  # as the original: none
    out = model.setPassThrough(["*"]).transform(points)
    assert out.columns == ["n", "point", "name", "out_score", "out_size"]
    rows = out.collect()
    assert [(r.n, r.name, r.out_score) for r in rows] == [
        (n, f"name {n}", expected(n)["out_score"]) for n in range(103)
    ]
    parts = [len(p) for p in points.rdd.glom().collect()]
    sizes = [min(10, part - at) for part in parts for at in range(0, part, 10) for _ in range(min(10, part - at))]
    assert [r.out_size for r in rows] == sizes


def test_columns_of_other_types_pass_through(spark, various):
    frame = spark.createDataFrame([(3, [1.0, 2.0])], "n int, point array<double>").selectExpr(
        "n",
        "point",
        "cast(1.25 as decimal(5,2)) as price",
        "timestamp'2024-05-06 07:08:09' as at",
        "date'2024-05-06' as d",
        "map('a', 1) as m",
        "struct(1 as a, array('x') as b) as `s.t`",
        "cast(null as string) as nothing",
    )
    out = typed_model(various, ["score"]).setPassThrough(["*"]).transform(frame)
    assert out.drop("out_score").collect() == frame.collect() and out.columns == [*frame.columns, "out_score"]


def test_many_batches_of_arrow_become_batches_of_the_model(spark, various):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        frame = spark.range(0, 50, 1, 1).selectExpr("id as n", "array(cast(id as float), 0f) as point")
        rows = typed_model(various, ["size", "i32"]).setBatchSize(20).transform(frame).collect()
        assert [(-r.out_i32, r.out_size) for r in rows] == [(i, 20 if i < 40 else 10) for i in range(50)]
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_bytes_reach_the_tensor_unchanged(spark, various):
    every = bytes(range(256))
    rows = [(bytearray(every[i:] + every[:i]), bytearray([i, 255 - i, 0, 128])) for i in range(20)]
    frame = spark.createDataFrame(rows, "data binary, image binary")
    model = (
        TFModel({})
        .setExportDir(various)
        .setSignatureDefKey("binary")
        .setInputMapping({"data": "data", "image": "image"})
    )
    out = model.setOutputMapping({"same": "same", "length": "length", "bytes": "bytes"}).transform(frame).collect()
    assert [(bytes(r.same), r.length, r.bytes) for r in out] == [(bytes(a), 256, list(b)) for a, b in rows]
    texts = spark.createDataFrame([("ü\0x", [1, 2, 3, 4])], "data string, image array<int>")
    row = model.transform(texts).first()
    assert bytes(row.same) == "ü\0x".encode() and row.bytes == [1, 2, 3, 4]


def test_vectors_nested_arrays_and_flat_ones(spark, various):
    from pyspark.ml.linalg import Vectors

    frame = spark.createDataFrame([(1, Vectors.dense(0.5, 0.25)), (2, Vectors.sparse(2, {1: 4.0}))], ["n", "point"])
    assert [r.out_score for r in typed_model(various, ["score"]).transform(frame).collect()] == [0.75, -4.0]
    nested = spark.createDataFrame([("a", [[1, 2], [3, 4]])], "data string, image array<array<smallint>>")
    model = (
        TFModel({})
        .setExportDir(various)
        .setSignatureDefKey("binary")
        .setInputMapping({"data": "data", "image": "image:0"})
    )
    assert model.setOutputMapping({"bytes": "b"}).transform(nested).first().b == [1, 2, 3, 4]


def test_an_empty_frame(points, various):
    assert typed_model(various).transform(points.filter("n < 0")).collect() == []


def test_a_rank_that_only_an_output_shows(spark, tmp_path):
    class Open(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "x")])
        def serve(self, x):
            return {"out": tf.reshape(x * 2, tf.concat([tf.shape(x), tf.ones([tf.size(x[:1]) // 2], tf.int32)], 0))}

    model = Open()
    tf.saved_model.save(model, str(tmp_path / "m"), signatures=model.serve)
    stage = TFModel({}).setExportDir(str(tmp_path / "m")).setInputMapping({"x": "x"}).setOutputMapping({"out": "y"})
    frame = spark.createDataFrame([([1, 2],), ([3, 4],)], "x array<int>")
    out = stage.transform(frame)
    assert out.schema.simpleString() == "struct<y:array<array<int>>>"
    assert [r.y for r in out.collect()] == [[[2], [4]], [[6], [8]]]
    with pytest.raises(ValueError, match="does not say what rank tensor 'out' has, and there is no row to try"):
        stage.transform(frame.limit(0))


def test_saved_loaded_and_scored_again(points, various, tmp_path):
    from pyspark.ml import PipelineModel

    fitted = PipelineModel(stages=[typed_model(various).setPassThrough(["n"])])
    fitted.save(f"{tmp_path}/pipeline")
    loaded = PipelineModel.load(f"{tmp_path}/pipeline")
    assert loaded.transform(points).collect() == fitted.transform(points).collect()


def test_graphs_of_several_tags(spark, tmp_path):
    """A SavedModel as TensorFlow 1 wrote them."""
    v1, folder = tf.compat.v1, str(tmp_path / "v1")
    builder = v1.saved_model.Builder(folder)
    for tags, factor in ((["serve"], 2.0), (["serve", "big"], 20.0)):
        with tf.Graph().as_default(), v1.Session() as session:
            x = v1.placeholder(tf.float32, [None], "x")
            y = tf.identity(x * v1.get_variable("w", initializer=factor), "y")
            session.run(v1.global_variables_initializer())
            signature = v1.saved_model.predict_signature_def({"inp": x}, {"out": y})
            if len(tags) == 1:
                builder.add_meta_graph_and_variables(session, tags, {"predict": signature})
            else:
                builder.add_meta_graph(tags, {"predict": signature})
    builder.save()
    frame = spark.createDataFrame([(3.0,)], "x double")
    model = TFModel({}).setExportDir(folder).setInputMapping({"x": "inp"}).setOutputMapping({"out": "y"})
    assert model.setTagSet("serve").transform(frame).first().y == 6.0
    assert model.copy().setTagSet("big, serve").transform(frame).columns == ["y"]
    with pytest.raises(ValueError, match="has 2 graphs; set tag_set to one of: serve; big,serve"):
        model.copy().setTagSet("").transform(frame)
    with pytest.raises(ValueError, match="no graph with tag_set 'train'; it has: serve; big,serve"):
        model.copy().setTagSet("train").transform(frame)
    assert set(pipeline.get_meta_graph_def(folder, "big,serve").meta_info_def.tags) == {"serve", "big"}
    with pytest.raises(
        RuntimeError, match="MetaGraphDef associated with tag-set x could not be found in SavedModel .*serve"
    ):
        pipeline.get_meta_graph_def(folder, "x")


WRONG = [
    (lambda m: m.setExportDir("/nowhere"), "no SavedModel in /nowhere: /nowhere/saved_model.pb is missing"),
    (lambda m: m.setSignatureDefKey("serve"), "no signature 'serve'; it has binary, typed, whole"),
    (lambda m: m.setSignatureDefKey(None), "no signature 'serving_default'; it has binary, typed, whole"),
    (
        lambda m: m.setInputMapping({"point": "x", "n": "ids"}),
        r"tensor 'ids'.* its inputs are 'id' \(int64, \(None,\)\), 'x'",
    ),
    (lambda m: m.setInputMapping({"point": "x"}), "no column is mapped to input 'id' of the model"),
    (
        lambda m: m.setOutputMapping({"scores": "s"}),
        r"tensor 'scores'.* its outputs are 'cube' \(float64, \(None, 2, 2, 2\)\)",
    ),
]


@pytest.mark.parametrize("change, words", WRONG)
def test_a_model_that_is_not_as_it_was_asked_for(points, various, change, words):
    with pytest.raises(ValueError, match=words):
        change(typed_model(various)).transform(points)


def test_outputs_that_are_not_one_for_each_row(spark, various):
    frame = spark.createDataFrame([(1.0,), (2.0,)], "x float").coalesce(1)
    model = TFModel({}).setExportDir(various).setSignatureDefKey("whole").setInputMapping({"x": "x"})
    with pytest.raises(ValueError, match="tensor 'mean' for column 'm' has one value for a whole batch, none for rows"):
        model.setOutputMapping({"mean": "m"}).transform(frame)
    with pytest.raises(Exception, match=r"Output array sizes \[1\] must match input size: 2"):
        model.setOutputMapping({"first": "f"}).transform(frame).collect()


def test_a_row_that_no_tensor_takes(spark, various):
    frame = spark.createDataFrame([(0, [1.0, 2.0]), (None, [1.0, 2.0])], "n bigint, point array<float>").coalesce(1)
    with pytest.raises(Exception, match="column 'n' has a null in row 1 of its partition; fill it, or drop such rows"):
        typed_model(various, ["score"]).transform(frame).collect()
