"""TFEstimator on two executors: fed by Spark, exported by export_fn, scored by the TFModel that fit() returns."""

import numpy as np
import pytest
from tensorflow_session import spark, tf  # noqa: F401  fixture

from tensorflowonspark.pipeline import TFEstimator, TFModel

pytest.importorskip("tensorflowonspark.TFCluster", reason="the runtime (TFCluster) is not in this package")
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
