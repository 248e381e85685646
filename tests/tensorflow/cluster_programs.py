"""Imported by the tests of clusters: one Spark for all of them, programs, and what is left of nodes."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pyspark
import pytest
from tensorflow_session import MARK, spark  # noqa: F401  before what needs its path

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file


@pytest.fixture(scope="module")
def sc(spark):  # noqa: F811
    return spark.sparkContext


@pytest.fixture
def seen(tmp_path):
    """Where programs write what they saw, a file each. What is being written is not there yet."""

    def read():
        whole = {}
        for p in tmp_path.glob("*.json"):
            with contextlib.suppress(json.JSONDecodeError):
                whole[p.name] = json.loads(p.read_text())
        return whole

    read.folder = str(tmp_path)
    return read


def nodes_running():
    """Node processes and programs of these tests, as ps shows them."""
    out = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [
        line
        for line in out.splitlines()
        if re.search(r"crema\S* node$|tensorflowonspark\._program", line) and _ours(line)
    ]


def _ours(line):
    try:
        return f"{MARK}={os.environ[MARK]}".encode() in pathlib.Path(f"/proc/{line.split()[0]}/environ").read_bytes()
    except OSError:
        return False  # it has ended


def all_gone(seconds):
    deadline = time.monotonic() + seconds
    while nodes_running() and time.monotonic() < deadline:
        time.sleep(0.1)
    return not nodes_running()


def say_who(args, ctx):
    about = {
        "job": ctx.job_name,
        "index": ctx.task_index,
        "spec": ctx.cluster_spec,
        "workers": ctx.num_workers,
        "socket": ctx.tmp_socket is not None,
        "config": os.environ.get("TF_CONFIG"),
        "argv": sys.argv[:2],
        "path": ctx.absolute_path("/data"),
    }
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(about))


def count_rows(args, ctx):
    feed = ctx.get_data_feed()
    seen = []
    while not feed.should_stop():
        seen.extend(feed.next_batch(100))
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(seen))
