"""DataFrames whose columns are unusual, from the JVM to the program."""

import json
import pathlib
import sys

import pyspark
import pytest
from cluster_programs import sc, seen  # noqa: F401  fixtures
from pyspark.ml.linalg import Vectors
from tensorflow_session import spark  # noqa: F401

from tensorflowonspark import TFCluster
from tensorflowonspark.pipeline import TFEstimator

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file


def fields_of_rows(args, ctx):
    """Of all rows, the fields that are asked for."""
    feed, rows = ctx.get_data_feed(), []
    while not feed.should_stop():
        rows += [[str(row[name]) for name in args["names"]] for row in feed.next_batch(64)]
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(rows))


def tensors(args, ctx):
    """What an input_mapping gives, by next_batch() and as arrays."""
    feed = ctx.get_data_feed(input_mapping={"image": "x", "label": "y"})
    batch = feed.next_batch(2)
    ((x, y),) = feed.arrays(100)
    seen = {"x": batch["x"] + x.tolist(), "y": batch["y"] + y.tolist()}
    pathlib.Path(dict(args)["to"], f"{ctx.executor_id}.json").write_text(json.dumps(seen))


def fed(sc, frame, program, args):  # noqa: F811
    cluster = TFCluster.run(sc, program, args, 1, 0, input_mode=TFCluster.InputMode.SPARK)
    cluster.train(frame, num_epochs=1, feed_timeout=60)
    cluster.shutdown()


def test_arrays_without_a_value_in_a_whole_batch(spark, sc, seen):  # noqa: F811
    names = ["texts", "raws", "lists"]
    frame = spark.range(10).selectExpr(
        "cast(array() as array<string>) texts", "cast(array() as array<binary>) raws", "array(array()) lists"
    )
    frame = frame.selectExpr("texts", "raws", "cast(lists as array<array<int>>) lists")
    fed(sc, frame, fields_of_rows, {"to": seen.folder, "names": names})
    assert seen()["0.json"] == [["[]", "[]", "[[]]"]] * 10


def vectors(spark, count):  # noqa: F811
    """Columns in another order than their names', with one more."""
    rows = [(i, "more", Vectors.sparse(2, {1: i / 2}) if i % 2 else Vectors.dense(0, i / 2)) for i in range(count)]
    return spark.createDataFrame(rows, ["label", "about", "image"]).coalesce(1)


EXPECTED = {"x": [[0, i / 2] for i in range(20)], "y": list(range(20))}


@pytest.mark.parametrize("arrow", [True, False])
def test_vectors_are_arrays_and_a_mapping_goes_by_names(spark, sc, seen, monkeypatch, arrow):  # noqa: F811
    if not arrow:
        monkeypatch.setattr("tensorflowonspark._frames.has_arrow", lambda: False)
    fed(sc, vectors(spark, 20), tensors, {"to": seen.folder})
    assert seen()["0.json"] == EXPECTED


def test_an_estimator_takes_vectors(spark, seen):  # noqa: F811
    def program(args, ctx):
        tensors({"to": args.to}, ctx)

    mapping = {"image": "x", "label": "y"}
    TFEstimator(program, {"to": seen.folder}).setInputMapping(mapping).setGraceSecs(0).fit(vectors(spark, 20))
    assert seen()["0.json"] == EXPECTED
