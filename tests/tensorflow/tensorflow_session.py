"""Imported by the tests with TensorFlow: skips them where it is not installed, puts python/ on the path, has one Spark
with two executors, and SavedModels.

    build/tensorflow/bin/python -m pytest tests/tensorflow        (scripts/lib.sh: ensure_tensorflow)
"""

import importlib
import os
import pathlib
import sys

import pytest

from conftest import ROOT

PACKAGE = pathlib.Path(os.environ.get("PACKAGE", ROOT / "python"))
sys.path.insert(0, str(PACKAGE))
os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="", PYSPARK_PYTHON=sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
MARK = "CREMA_TEST_RUN"  # in the environment of all processes of these tests, which others on the machine do not have
os.environ[MARK] = f"tensorflow-{os.getpid()}"

try:
    import tensorflow as tf

    tf.__version__  # noqa: B018  without TensorFlow the name may be this folder
except (ImportError, AttributeError):
    pytest.skip("TensorFlow is not in this Python: build/tensorflow/bin/python has it", allow_module_level=True)
pyspark = pytest.importorskip("pyspark", reason="PySpark is not in this Python: build/tensorflow/bin/python has it")


def jar():
    """The jar's path, None where it is not built."""
    import crema

    try:
        return crema.jar()
    except FileNotFoundError:
        return None


def example(name):
    """The module examples/tensorflow/NAME.py, whose functions executors get by value."""
    folder = str(ROOT / "examples/tensorflow")
    if folder not in sys.path:
        sys.path.append(folder)
    module = importlib.import_module(name)
    pyspark.cloudpickle.register_pickle_by_value(module)
    return module


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("tensorflow-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.executorEnv.PYTHONPATH", f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}")
        .config("spark.executorEnv.TF_CPP_MIN_LOG_LEVEL", "2")
        .config(f"spark.executorEnv.{MARK}", os.environ[MARK])
        .config(
            "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{ROOT}/scripts/log4j2-quiet.properties"
        )
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.task.maxFailures", "1")
    )
    if jar():
        builder = builder.config("spark.jars", jar())
    made = builder.getOrCreate()
    yield made
    made.stop()


class Various(tf.Module):
    """Signatures whose results numpy can compute as well."""

    def __init__(self):
        super().__init__()
        self.weights = tf.Variable([[2.0], [-1.0]])

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x"), tf.TensorSpec([None], tf.int64, "id")])
    def typed(self, x, id):
        cube = tf.reshape(tf.cast(id, tf.float64)[:, None] + tf.range(8, dtype=tf.float64), [-1, 2, 2, 2])
        text = tf.strings.as_string(id)
        return {
            "score": tf.squeeze(tf.matmul(x, self.weights), 1),
            "row": tf.matmul(x, self.weights),
            "cube": cube,
            "u8": tf.cast(250 + id % 6, tf.uint8),
            "u16s": tf.cast(tf.stack([id, 65535 - id], 1), tf.uint16),
            "i32": tf.cast(-id, tf.int32),
            "half": tf.cast(x[:, 0], tf.float16),
            "flag": id % 2 == 0,
            "text": text,
            "texts": tf.stack([text, tf.strings.join([text, "\xff\u00fc"])], 1),
            "size": tf.fill(tf.shape(id), tf.size(id)),
        }

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string, "data"), tf.TensorSpec([None, 2, 2], tf.uint8, "image")]
    )
    def binary(self, data, image):
        return {
            "same": data,
            "length": tf.strings.length(data),
            "bytes": tf.cast(tf.reshape(image, [-1, 4]), tf.int32),
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def whole(self, x):
        return {"mean": tf.reduce_mean(x), "first": x[:1]}


@pytest.fixture(scope="session")
def various(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("various") / "model")
    model = Various()
    names = ("typed", "binary", "whole")
    tf.saved_model.save(model, folder, signatures={name: getattr(model, name) for name in names})
    return folder
