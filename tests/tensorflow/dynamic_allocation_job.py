"""A job that test_tf_dynamic_allocation.py submits: feeds twice, with a pause in which Spark takes idle executors away.

dynamic_allocation_job.py FOLDER: the rows that programs saw, and how many executors there are at the end of the pause.
"""

import json
import pathlib
import sys
import time

import pyspark

from tensorflowonspark import TFCluster

ROWS, PAUSE = 600, 5  # seconds; idle executors have two


def count(args, ctx):
    feed, seen = ctx.get_data_feed(), []
    while not feed.should_stop():
        seen.extend(feed.next_batch(100))
    pathlib.Path(args, f"seen-{ctx.executor_id}.json").write_text(json.dumps(seen))


def main(folder):
    sc = pyspark.SparkContext()
    cluster = TFCluster.run(sc, count, folder, 2, 0, input_mode=TFCluster.InputMode.SPARK)
    executors = []
    for first in (0, ROWS):
        rows = sc.parallelize(range(first, first + ROWS), 12).map(lambda x: time.sleep(0.02) or x)
        cluster.train(rows, num_epochs=1)
        executors.append(sc._jsc.sc().getExecutorMemoryStatus().size() - 1)
        time.sleep(PAUSE)
        executors.append(sc._jsc.sc().getExecutorMemoryStatus().size() - 1)
    cluster.shutdown()
    deadline = time.monotonic() + 60
    while sc._jsc.sc().getExecutorMemoryStatus().size() > 1 and time.monotonic() < deadline:
        time.sleep(0.5)
    executors.append(sc._jsc.sc().getExecutorMemoryStatus().size() - 1)
    pathlib.Path(folder, "executors.json").write_text(json.dumps(executors))


if __name__ == "__main__":
    main(sys.argv[1])
