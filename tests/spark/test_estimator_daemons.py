"""CaffeEstimator on YARN with real executors: the model depends on the number of logical ranks, not on that of
executors.
"""

import os
import re
import subprocess
import sys

import pytest

from conftest import LONG, NOT_WHEN_SLOW, ROOT, crema
from spark_jobs import JAR, SPARK, job  # noqa: F401 (job is a fixture)


@pytest.mark.parametrize("ranks,executors", [pytest.param(3, 2, marks=NOT_WHEN_SLOW), pytest.param(1, 2, marks=LONG)])
def test_an_estimators_ranks_are_honoured_on_yarn(job, records, hadoop, ranks, executors):
    solver = job / "lenet_memory_solver.prototxt"
    alone = crema("train", "-solver", solver.name, "-ranks", ranks, "-model", "alone.model", cwd=job)
    assert alone.code == 0, alone.err
    environment = {
        **hadoop.environment("hdfs"),
        "PYSPARK_PYTHON": sys.executable,
        "CREMA_JAR": JAR,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]),
    }
    command = [SPARK / "bin/spark-submit", "--master", "yarn", "--jars", JAR, "--conf", "spark.ui.enabled=false"]
    command += ["--conf", f"spark.executor.instances={executors}", ROOT / "tests/spark/estimator_job.py"]
    command += [f"file:{records}/train_lmdb", f"{hadoop.url('hdfs')}/estimator_{ranks}"]
    command += [solver, str(ranks), job / "alone.model"]
    done = subprocess.run(command, cwd=job, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]
    found = re.search(r"weights (\w+): 8 blobs of (\d+) bytes; (\d+) rows scored", done.stdout)
    assert found and found.group(1) == "equal" and int(found.group(2)) > 1_000_000 and int(found.group(3)) == 1003, (
        done.stdout
    )
    copies = re.search(r"(\d+) copies of the model in (\d+) executors after 5 transformations", done.stdout)
    assert copies and copies.group(1) == copies.group(2) and 1 <= int(copies.group(1)) <= executors, done.stdout
    assert f"{ranks} rank(s) of batch 8 on {min(ranks, executors)} worker(s)" in done.stderr
