"""The jar of another line of Spark says which one to take. (The jar of Scala 2.12 on Spark 4 ends with a class's name before any of our code can run: the
JVM looks for scala.Serializable, which Scala 2.13 has no more.)"""
import os
import subprocess

import pytest

from conftest import ROOT
from spark_jobs import ENVIRONMENT, SPARK

OTHER = ROOT / "spark/target/4_2.13/crema-spark-4_2.13-0.1.0.jar"


@pytest.mark.skipif(not OTHER.exists() or "4_2.13" in os.environ.get("CREMA_JAR", ""), reason="SKIPPED: there is no jar for Spark 4 beside the one under test")
def test_the_jar_for_spark_4_on_spark_3_5(tmp_path):
    done = subprocess.run([str(SPARK / "bin/spark-submit"), "--master", "local[1]", "--class", "com.yahoo.ml.caffe.CaffeOnSpark", str(OTHER), "-train", "-conf", "solver.prototxt"],
                          cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("crema: error:")]
    assert len(said) == 1 and "this jar is for Spark 4 with Scala 2.13, and this is Spark 3.5" in said[0] and "take the jar crema-spark-3.5_2.12" in said[0], done.stderr[-2000:]
