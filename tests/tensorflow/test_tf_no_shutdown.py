"""A driver that ends without shutdown()."""

import os
import subprocess
import sys

from tensorflow_session import PACKAGE, jar

DRIVER = """
import sys
from pyspark.sql import SparkSession
from tensorflowonspark import TFCluster

def program(args, ctx):
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(10)

spark = SparkSession.builder.master("local[2]").config("spark.jars", sys.argv[1]).config("spark.ui.enabled", "false")
sc = spark.getOrCreate().sparkContext
cluster = TFCluster.run(sc, program, None, 1, 0, input_mode=TFCluster.InputMode.SPARK)
rows = sc.parallelize(range(100), 2)
if sys.argv[2] == "bad":
    rows = rows.map(lambda x: 1 // (x - 70))
cluster.train(rows, 1)
if sys.argv[2] == "shutdown":
    cluster.shutdown()
"""


def said(end, code, tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, tmp_path / "driver.py", jar(), end]
    path = {**os.environ, "PYTHONPATH": f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr[-3000:]
    return [line for line in done.stderr.splitlines() if line.startswith("crema: error: ")]


def test_the_driver_says_that_programs_were_ended(tmp_path):
    assert said("nothing", 1, tmp_path)[-1].startswith(
        "crema: error: the driver ended without cluster.shutdown(), which waits for the programs: those of 1 node"
    )
    assert said("shutdown", 0, tmp_path) == []


def test_its_last_word_is_what_was_wrong_with_the_rows(tmp_path):
    last = said("bad", 1, tmp_path)[-1]
    assert "train() of queue 'input' failed: ZeroDivisionError: integer division or modulo by zero (File" in last
    assert 'driver.py", line ' in last and "in <lambda>); the programs of 1 node" in last
