"""Imported by the tests of the Python package: puts python/ on the path, and has one Spark, local[2], with the real
jar.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import ROOT

SPARK = pathlib.Path(os.environ.get("SPARK_HOME", ROOT / ".venv/spark-home"))
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def submitted(script, line, folder, *options, **environment):
    """What a script of Python wrote to stdout, through spark-submit on local[2]; `line`: its spark.pythonargs."""
    import crema

    done = subprocess.run(
        [SPARK / "bin/spark-submit", "--master", "local[2]", "--jars", crema.jar(), *options]
        + ["--conf", "spark.ui.enabled=false", "--conf", f"spark.pythonargs={line}", script],
        cwd=folder,
        env={**os.environ, "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="session")
def session():
    from pyspark.sql import SparkSession

    import crema

    made = (
        SparkSession.builder.master("local[2]")
        .appName("python-tests")
        .config("spark.jars", crema.jar())
        .config("spark.ui.enabled", "false")
        .config(
            "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{ROOT}/scripts/log4j2-quiet.properties"
        )
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield made
    made.stop()


@pytest.fixture(scope="session")
def solver_file(records, tmp_path_factory):
    """The example's LeNet on small records; returns the solver's path."""
    folder = tmp_path_factory.mktemp("lenet")
    net = (ROOT / "examples/lenet_memory_train_test.prototxt").read_text()
    for part in ("train", "test"):
        net = re.sub(rf'source: "\S*mnist_{part}_lmdb/?"', f'source: "{records}/{part}_lmdb"', net)
    (folder / "lenet_memory_train_test.prototxt").write_text(
        net.replace("batch_size: 64", "batch_size: 16").replace("batch_size: 100", "batch_size: 20")
    )
    text = (ROOT / "examples/lenet_memory_solver.prototxt").read_text()
    for field, value in (
        ("max_iter", 150),
        ("test_iter", 10),
        ("test_interval", 25),
        ("snapshot", 500),
        ("display", 50),
    ):
        text = re.sub(rf"^{field}: .*", f"{field}: {value}", text, flags=re.M)
    (folder / "lenet_memory_solver.prototxt").write_text(text)
    return folder / "lenet_memory_solver.prototxt"


@pytest.fixture(scope="session")
def frames(session, records, tmp_path_factory):
    """The records as the data frames of LMDB2DataFrame: {'train': path, 'test': path}."""
    from com.yahoo.ml.caffe._jvm import frame, java_class, singleton
    from com.yahoo.ml.caffe.Config import Config

    folder, sc, paths = tmp_path_factory.mktemp("frames"), session.sparkContext, {}
    for part in ("train", "test"):
        cfg = Config(session, {"imageRoot": records / f"{part}_lmdb"})
        rows = java_class(sc, "com.yahoo.ml.caffe.tools.LMDB2DataFrame")(sc._jsc.sc(), cfg.config).makeRDD()
        schema = singleton(sc, "com.yahoo.ml.caffe.tools.LMDB2DataFrame").schema()
        paths[part] = str(folder / part)
        frame(session._jsparkSession.createDataFrame(rows, schema)).write.parquet(paths[part])
    return paths
