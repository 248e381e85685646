"""Examples that predict: independent instances, and a stage of a pipeline."""

import numpy as np
import pytest
from pyspark.sql import Row
from tensorflow_session import example, spark, tf  # noqa: F401  fixture
from tensorflow_submit import raw  # noqa: F401  fixture

from tensorflowonspark import TFParallel, dfutil


@pytest.fixture(scope="module")
def digits(raw):
    """digits(part, count): the first ones, as the example reads them."""
    convert = example("mnist_data_setup")
    return lambda part, count: convert.digits(raw, part)[:count]


def test_instances_predict_a_share_of_the_files_each(spark, digits, tmp_path):
    program, convert = example("mnist_parallel"), example("mnist_data_setup")
    weights = np.random.default_rng(1).standard_normal((784, 10)).astype(np.float32)

    class Linear(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((None, 784), tf.float32)])
        def serve(self, x):
            return x @ weights

    tf.saved_model.save(Linear(), str(tmp_path / "model"))
    tested = digits("t10k", 1000)
    (tmp_path / "test").mkdir()
    for i in range(5):
        lines = [convert.csv(digit) + "\n" for digit in tested[i * 200 : (i + 1) * 200]]
        (tmp_path / f"test/part-{i:05}").write_text("".join(lines))
    folders = ["--images_labels", tmp_path / "test", "--export_dir", tmp_path / "model", "--output", tmp_path / "out"]
    args = program.arguments(list(map(str, folders)))
    TFParallel.run(spark, program.infer, args, args.instances, use_barrier=False)
    found = [np.loadtxt(tmp_path / f"out/{i}.txt", int) for i in range(2)]
    pixels = np.array([list(p) for p, _ in tested], np.float64)
    scores, labels = pixels @ weights.astype(np.float64), np.array([label for _, label in tested])
    for which, rows in zip(([0, 2, 4], [1, 3]), found, strict=True):
        mine = np.concatenate([np.arange(i * 200, (i + 1) * 200) for i in which])
        np.testing.assert_array_equal(rows[:, 0], labels[mine])
        np.testing.assert_array_equal(rows[:, 1], np.argmax(scores[mine], axis=1))


def test_a_stage_of_a_pipeline_trains_and_predicts(spark, digits, tmp_path):
    program = example("mnist_pipeline")
    for name, part, count in (("train", "train", 3000), ("test", "t10k", 500)):
        rows = spark.sparkContext.parallelize(digits(part, count), 2)
        frame = spark.createDataFrame(rows.map(lambda digit: Row(image=list(digit[0]), label=digit[1])))
        dfutil.saveAsTFRecords(frame, f"file:{tmp_path}/records/{name}")
    flags = ["--records", f"file:{tmp_path}/records", "--export_dir", f"{tmp_path}/model"]
    program.run(spark, program.arguments([*flags, "--output", f"file:{tmp_path}/predictions"]))
    rows = spark.read.parquet(f"file:{tmp_path}/predictions").collect()
    assert sorted(r.label for r in rows) == sorted(label for _, label in digits("t10k", 500))
    assert sum(r.label == r.prediction for r in rows) >= 400
