"""TFCluster on YARN's nodes, where nothing is installed: the jar brings the executable, a zip the Python package."""

import shutil
import subprocess
import sys

from conftest import ROOT
from spark_jobs import JAR, SPARK
from test_daemons import output_and_logs

ANSWERED = 200


def submitted(bed, folder, mode, place):
    """spark-submit as README says it, running, of files that stand outside the checkout."""
    environment = {k: v for k, v in bed.environment("hdfs").items() if k not in ("CREMA_EXECUTABLE", "PYTHONPATH")}
    return subprocess.Popen(
        [SPARK / "bin/spark-submit", "--master", "yarn", "--deploy-mode", mode, "--jars", "crema.jar"]
        + ["--py-files", "tensorflowonspark.zip", "--conf", f"spark.pyspark.python={sys.executable}"]
        + ["--conf", "spark.executor.instances=2", "feed_job.py", f"{place}/numbers", f"{place}/{mode}"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def expect_answers(rows, bed):
    """All rows, in their order, from two nodes whose code came with the job."""
    assert [int(r[0]) for r in rows] == [i * i for i in range(ANSWERED)]
    nodes = {tuple(r[1:]) for r in rows}
    assert {(n[0], n[1]) for n in nodes} == {("0", "chief"), ("1", "worker")}
    for _, _, package, executable, path in nodes:
        assert package == "tensorflowonspark.zip/tensorflowonspark/__init__.py"
        assert "crema-executable-" in executable and str(ROOT) not in executable
        assert path == f"{bed.url('hdfs')}/user/{bed.environment('hdfs')['HADOOP_USER_NAME']}/some"


def test_nodes_on_yarn_without_installation_in_both_modes(hadoop, tmp_path):
    subprocess.run(
        [sys.executable, ROOT / "scripts/python_zip", tmp_path / "tensorflowonspark.zip"], check=True, timeout=60
    )
    shutil.copy(JAR, tmp_path / "crema.jar")
    shutil.copy(ROOT / "tests/spark/feed_job.py", tmp_path)
    (tmp_path / "numbers").write_text("".join(f"{i}\n" for i in range(ANSWERED)))
    place = f"{hadoop.url('hdfs')}/tensorflow"
    hadoop.fs("hdfs", "-mkdir", "-p", place)
    hadoop.fs("hdfs", "-put", tmp_path / "numbers", place)
    jobs = {mode: submitted(hadoop, tmp_path, mode, place) for mode in ("cluster", "client")}
    try:
        for mode, job in jobs.items():
            out, err = job.communicate(timeout=240)
            done = subprocess.CompletedProcess(mode, job.returncode, out, err)
            assert done.returncode == 0, output_and_logs(done, hadoop)
            rows = hadoop.fs("hdfs", "-cat", f"{place}/{mode}/part-*").splitlines()
            expect_answers([row.split(" ") for row in rows], hadoop)
    finally:
        for job in jobs.values():
            job.kill()
            job.wait(20)
