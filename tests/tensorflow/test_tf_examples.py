"""The examples with TensorFlow, as a user would type them: spark-submit, two executors, real MNIST."""

import os
import subprocess
import sys

import pytest
import tensorflow_session  # noqa: F401  skips where there is no TensorFlow

import crema
from conftest import MNIST, ROOT

EXAMPLES = ROOT / "examples/tensorflow"


def submit(folder, script, *arguments):
    import pyspark

    home = os.environ.get("SPARK_HOME", os.path.dirname(pyspark.__file__))
    package = f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [f"{home}/bin/spark-submit", "--master", "local-cluster[2,1,1024]", "--jars", crema.jar()]
        + ["--conf", f"spark.executorEnv.PYTHONPATH={package}", "--conf", "spark.ui.enabled=false"]
        + [str(EXAMPLES / script), *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": package, "SPARK_HOME": home, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout  # Spark sends what a Python driver writes to stderr there as well


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    if not (MNIST / "raw/complete").exists():
        pytest.fail(f"there is no MNIST in {MNIST}: ./runtests fetches it, or CREMA_DATA names its folder")
    return tmp_path_factory.mktemp("mnist")


def test_convert_train_and_infer_with_a_feed(work):
    submit(work, "mnist_data_setup.py", "--raw", MNIST / "raw", "--output", f"file:{work}/csv", "--format", "csv")
    said = submit(work, "mnist_spark.py", "--images_labels", f"file:{work}/csv/train", "--export_dir", work / "model")
    assert "crema: node 0 (worker:0) is there (1 of 1" in said and "crema: fed 180000 rows, 180000 taken" in said
    submit(
        work,
        "mnist_spark.py",
        *("--images_labels", f"file:{work}/csv/test", "--export_dir", work / "model", "--mode", "inference"),
        *("--cluster_size", 2, "--output", f"file:{work}/predictions"),
    )
    lines = [line for part in sorted((work / "predictions").glob("part-*")) for line in part.read_text().splitlines()]
    answers = [line.split("Label: ")[1].split(", Prediction: ") for line in lines]
    labels = (MNIST / "raw/t10k-labels-idx1-ubyte").read_bytes()[8:]
    assert sorted(int(a) for a, _ in answers) == sorted(labels)  # local folders are listed in no order
    assert sum(a == b for a, b in answers) >= 0.95 * len(answers)
