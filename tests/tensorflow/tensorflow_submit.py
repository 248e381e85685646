"""Imported by the tests that run examples with spark-submit: a standalone cluster of two executors, where nothing is
installed but a Python with TensorFlow.
"""

import os
import pathlib
import subprocess
import sys

import pyspark
import pytest
import tensorflow_session  # noqa: F401  skips where there is no TensorFlow

import crema
from conftest import MNIST, ROOT, write_some_digits
from testbed.standalone import Standalone

EXAMPLES = ROOT / "examples/tensorflow"
HOME = os.environ.get("SPARK_HOME", os.path.dirname(pyspark.__file__))


@pytest.fixture(scope="session")
def raw():
    """MNIST's four files."""
    if not (MNIST / "raw/complete").exists():
        pytest.fail(f"there is no MNIST in {MNIST}: ./runtests fetches it, or CREMA_DATA names its folder")
    return MNIST / "raw"


@pytest.fixture(scope="session")
def some(tmp_path_factory):
    """A fifth of them, in the same format: 12,000 records and 2,000."""
    return write_some_digits(tmp_path_factory.mktemp("digits") / "raw", 12000, 2000)


@pytest.fixture(scope="session")
def submit(tmp_path_factory):
    """submit(script, *arguments, conf=()) runs an example to its end and returns what it said; submit.work has a folder
    for each executor.
    """
    yield from submitting(tmp_path_factory.mktemp("standalone"), 2)


@pytest.fixture
def submit_to_three(tmp_path_factory):
    """The same with three executors."""
    yield from submitting(tmp_path_factory.mktemp("standalone3"), 3)


@pytest.fixture
def submit_to_wide(tmp_path_factory):
    """The same with two executors that have two cores, and so run two tasks, each."""
    yield from submitting(tmp_path_factory.mktemp("standalone-wide"), 2, cores=2)


def submitting(folder, workers, cores=1):
    package = folder / "tensorflowonspark.zip"
    subprocess.run(
        [sys.executable, ROOT / "scripts/python_zip", package], check=True, timeout=60, stdout=subprocess.DEVNULL
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("CREMA_EXECUTABLE", "PYTHONPATH")}
    cluster = Standalone(folder, HOME).up(workers, cores)
    environment |= {"SPARK_HOME": HOME, "PYSPARK_PYTHON": sys.executable}

    def run(script, *arguments, conf=()):
        command = [f"{HOME}/bin/spark-submit", "--master", cluster.url, "--jars", crema.jar(), "--py-files", package]
        for setting in ("spark.ui.enabled=false", *conf):
            command += ["--conf", setting]
        done = subprocess.run(
            [str(word) for word in (*command, EXAMPLES / script, *arguments)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout  # Spark sends what a Python driver writes to stderr there as well

    run.work = pathlib.Path(folder, "work")
    yield run
    cluster.down()
