"""A job that test_tf_dynamic_allocation.py submits: feeds twice, with pauses in which Spark takes idle executors away.

dynamic_allocation_job.py FOLDER: the rows that programs saw, and in executors.json how many executors there were, and
whether those of the nodes were among them.
"""

import json
import os
import pathlib
import sys
import time

import pyspark

from tensorflowonspark import TFCluster

ROWS, PAUSE, DEADLINE = 600, 5, 60  # seconds; idle executors have two


def count(args, ctx):
    feed, seen = ctx.get_data_feed(), []
    while not feed.should_stop():
        seen.extend(feed.next_batch(100))
    pathlib.Path(args, f"seen-{ctx.executor_id}.json").write_text(json.dumps(seen))


def until(value, good):
    """value(), as soon as it is good, or at the deadline: the test judges it."""
    deadline = time.monotonic() + DEADLINE
    while not good(found := value()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def start_three(sc, folder):
    """Three tasks at once, and so three executors: each waits for the others."""

    def meet(i):
        pathlib.Path(folder, f"here-{i}").touch()
        until(lambda: len(list(pathlib.Path(folder).glob("here-*"))), lambda n: n == 3)

    sc.parallelize(range(3), 3).foreach(meet)


def main(folder):
    sc = pyspark.SparkContext()

    def executors():
        return sc._jsc.sc().getExecutorMemoryStatus().size() - 1

    start_three(sc, folder)
    seen = {"started": executors()}
    cluster = TFCluster.run(sc, count, folder, 2, 0, input_mode=TFCluster.InputMode.SPARK)
    processes = [n["executor"].rpartition("/")[2].partition(".")[0] for n in cluster.cluster_info]
    for feed in ("first", "second"):
        first = 0 if feed == "first" else ROWS
        rows = sc.parallelize(range(first, first + ROWS), 12).map(lambda x: time.sleep(0.02) or x)
        cluster.train(rows, num_epochs=1)
        time.sleep(PAUSE)
        # What Spark has asked for in the feed may come behind it, and goes then.
        seen[feed] = [until(executors, lambda n: n <= 2), [os.path.exists(f"/proc/{pid}") for pid in processes]]
    cluster.shutdown()
    seen["ended"] = until(executors, lambda n: n == 0)
    pathlib.Path(folder, "executors.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1])
