"""A jar for another version of Spark says which jar to take, before the JVM fails on a class that the other Scala
lacks. ./runtests brings both jars and both Sparks; without them the test fails and says so.
"""

import subprocess

import pytest

from conftest import ROOT
from spark_jobs import ENVIRONMENT

SPARKS = {
    "3.5": ROOT / ".venv/spark-home",
    "4": next(iter(sorted(ROOT.glob("build/spark/4.*/pyspark"))), ROOT / "build/spark/4/pyspark"),
}


@pytest.mark.parametrize(
    "line, spark, take",
    [
        (
            "4_2.13",
            "3.5",
            "this jar is for Spark 4 with Scala 2.13, and this is Spark 3.5.* with Scala 2.12; take the jar "
            "crema-spark-3.5_2.12",
        ),
        (
            "3.5_2.12",
            "4",
            "this jar is for Spark 3.5 with Scala 2.12, and this is Spark 4.* with Scala 2.13; take the jar "
            "crema-spark-4_2.13",
        ),
    ],
)
def test_a_jar_of_another_line_says_which_to_take(line, spark, take, tmp_path):
    jar, home = ROOT / f"spark/target/{line}/crema-spark-{line}-0.1.0.jar", SPARKS[spark]
    assert jar.exists() and home.exists(), f"./runtests brings {jar} and {home}"
    done = subprocess.run(
        [
            str(home / "bin/spark-submit"),
            *"--master local[1] --class com.yahoo.ml.caffe.CaffeOnSpark".split(),
            str(jar),
            "-train",
            "-conf",
            "solver.prototxt",
        ],
        cwd=tmp_path,
        env={**ENVIRONMENT, "SPARK_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = [text for text in done.stderr.splitlines() if text.startswith("crema: error:")]
    start, end = take.split(".*")
    assert done.returncode == 1 and len(said) == 1 and start in said[0] and end in said[0], done.stderr[-2000:]
