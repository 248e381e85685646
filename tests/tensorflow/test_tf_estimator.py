"""TFEstimator on two executors: fed by Spark, exported by export_fn, scored by the TFModel that fit() returns."""

import pathlib
import sys
import time

import numpy as np
import pyspark
import pytest
from cluster_programs import all_gone, nodes_running
from tensorflow_session import spark, tf  # noqa: F401  fixture

from tensorflowonspark import TFCluster
from tensorflowonspark.pipeline import TFEstimator, TFModel

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file
WEIGHTS = [3.0, -1.5]


def programs():
    """The program and its export, as functions that are pickled by value: executors do not have this file."""

    def learn(args, ctx):
        """Sums of the normal equations of what this node was fed, kept in model_dir."""
        import os

        import numpy as np

        from tensorflowonspark import TFNode

        feed, rows = TFNode.DataFeed(ctx.mgr, input_mapping=args.input_mapping), []
        while not feed.should_stop():
            batch = feed.next_batch(args.batch_size)
            rows += [[*x, *y] for x, y in zip(batch["x"], batch["y"])]
        assert ctx.num_workers == args.cluster_size == 2
        os.makedirs(args.model_dir, exist_ok=True)
        table = np.array(rows, np.float64).reshape(-1, 3)
        np.save(f"{args.model_dir}/{ctx.executor_id}.npy", np.vstack([table.T @ table, np.full(3, len(rows))]))

    def export(args):
        import glob

        import numpy as np

        import tensorflow as tf

        sums = sum(np.load(path) for path in glob.glob(f"{args.model_dir}/*.npy"))
        assert sums[3, 0] == args.rows * args.epochs

        class Linear(tf.Module):
            @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
            def serve(self, x):
                return {"y": tf.linalg.matvec(x, tf.constant(np.linalg.solve(sums[:2, :2], sums[:2, 2]), tf.float32))}

        model = Linear()
        tf.saved_model.save(model, args.export_dir, signatures=model.serve)

    return learn, export


def test_fit_export_and_transform(spark, tmp_path):
    x = np.random.default_rng(1).random((200, 2))
    rows = [(row.tolist(), [float(row @ WEIGHTS)]) for row in x]
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, 4), "a array<double>, b array<double>")
    learn, export = programs()
    estimator = (
        TFEstimator(learn, {"rows": len(rows)}, export_fn=export)
        .setInputMapping({"a": "x", "b": "y"})
        .setClusterSize(2)
        .setEpochs(2)
        .setBatchSize(32)
        .setModelDir(str(tmp_path / "model"))
        .setExportDir(str(tmp_path / "export"))
        .setGraceSecs(1)
        .setFeedTimeout(60)
        .setReservationTimeout(60)
        .setShutdownTimeout(100)
    )
    model = estimator.fit(frame)
    assert isinstance(model, TFModel) and model.getExportDir() == str(tmp_path / "export")
    out = model.setInputMapping({"a": "x"}).setOutputMapping({"y": "y"}).transform(frame).collect()
    np.testing.assert_allclose([r.y for r in out], x @ WEIGHTS, rtol=1e-5)


def test_a_program_that_fails(spark):
    def fails(args, ctx):
        raise ValueError("this program fails")

    frame = spark.createDataFrame([(float(i),) for i in range(20)], "x double")
    estimator = TFEstimator(fails, {}).setInputMapping({"x": "x"}).setFeedTimeout(20).setGraceSecs(0)
    with pytest.raises(Exception, match="this program fails"):
        estimator.fit(frame)


def exports(args, ctx):
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(10)
    pathlib.Path(args["to"], "exported").touch()


def test_a_feed_that_fails_exports_nothing(spark, tmp_path):
    frame = spark.range(0, 1000, 1, 4).selectExpr("if(id = 999, assert_true(false, 'a damaged file'), id) as x")
    estimator = TFEstimator(exports, {"to": str(tmp_path)}).setInputMapping({"x": "x"}).setGraceSecs(0)
    with pytest.raises(Exception, match="a damaged file"):
        estimator.fit(frame)
    time.sleep(1)
    assert list(tmp_path.iterdir()) == [] and all_gone(10), nodes_running()


def test_an_interrupt_ends_a_fit_at_once(spark, tmp_path, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(TFCluster.TFCluster, "train", interrupted)
    frame, started = spark.range(10).selectExpr("id as x"), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        TFEstimator(lambda args, ctx: time.sleep(1000), {}).setInputMapping({"x": "x"}).fit(frame)
    assert time.monotonic() - started < 60 and all_gone(10), nodes_running()
