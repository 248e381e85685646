"""A driver that ends without shutdown(), and what the logs of one show."""

import base64
import os
import pathlib
import subprocess
import sys

from tensorflow_session import PACKAGE, jar

DRIVER = """
import pathlib, sys
from pyspark.sql import SparkSession
from tensorflowonspark import TFCluster

def program(args, ctx):
    feed = ctx.get_data_feed()
    while not feed.should_stop():
        feed.next_batch(10)

spark = SparkSession.builder.master("local[2]").config("spark.jars", sys.argv[1]).config("spark.ui.enabled", "false")
sc = spark.getOrCreate().sparkContext
sc.setLogLevel("DEBUG" if sys.argv[2] == "debug" else "WARN")
cluster = TFCluster.run(sc, program, None, 1, 0, input_mode=TFCluster.InputMode.SPARK)
pathlib.Path("token").write_bytes(cluster.server.token)
rows = sc.parallelize(range(100), 2)
if sys.argv[2] == "bad":
    rows = rows.map(lambda x: 1 // (x - 70))
cluster.train(rows, 1)
if sys.argv[2] in ("shutdown", "debug"):
    cluster.shutdown()
if sys.argv[2] == "stop":
    sc.stop()
"""


def said(end, code, tmp_path):
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, tmp_path / "driver.py", jar(), end]
    path = {**os.environ, "PYTHONPATH": f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr[-3000:]
    return done.stderr + done.stdout


def errors(*arguments):
    return [line for line in said(*arguments).splitlines() if line.startswith("crema: error: ")]


def test_the_driver_says_that_programs_were_ended(tmp_path):
    assert errors("nothing", 1, tmp_path)[-1].startswith(
        "crema: error: the driver ended without cluster.shutdown(), which waits for the programs: those of 1 node"
    )
    assert len(errors("stop", 1, tmp_path)) == 1, "and not that a node was lost"
    assert errors("shutdown", 0, tmp_path) == []


def test_its_last_word_is_what_was_wrong_with_the_rows(tmp_path):
    last = errors("bad", 1, tmp_path)[-1]
    assert "train() of queue 'input' failed: ZeroDivisionError: integer division or modulo by zero (File" in last
    assert 'driver.py", line ' in last and "in <lambda>); the programs of 1 node" in last


def test_logs_do_not_show_the_token(tmp_path):
    """With all that Spark writes of driver and executor, which are one process here."""
    logs, token = said("debug", 0, tmp_path), pathlib.Path(tmp_path, "token").read_bytes()
    assert len(token) == 32 and "DEBUG" in logs and "is there (1 of 1" in logs
    shown = [token.hex(), token.hex().upper(), repr(token)[2:-1], str(list(token)), base64.b64encode(token).decode()]
    assert not [s for s in shown if s in logs]
