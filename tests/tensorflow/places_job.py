"""A job that test_tf_cluster_places.py submits to two executors with two slots each: four nodes, and rows that say
which executor has fed them.

places_job.py FOLDER: nodes.json has each node's executor, and seen-N.json the rows of node N.
"""

import json
import pathlib
import sys
import time

import pyspark

from tensorflowonspark import TFCluster, _machine

ROWS, DEADLINE = 1200, 120


def count(args, ctx):
    feed, seen = ctx.get_data_feed(), []
    while not feed.should_stop():
        seen.extend(feed.next_batch(100))
    pathlib.Path(args, f"seen-{ctx.executor_id}.json").write_text(json.dumps([list(row) for row in seen]))


def main(folder):
    sc = pyspark.SparkContext()
    deadline = time.monotonic() + DEADLINE
    while sc._jsc.sc().getExecutorMemoryStatus().size() < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    here = _machine.here
    cluster = TFCluster.run(sc, count, folder, 4, 0, input_mode=TFCluster.InputMode.SPARK)
    nodes = {n["executor_id"]: n["executor"] for n in cluster.cluster_info}
    cluster.train(sc.parallelize(range(ROWS), 24).map(lambda x: time.sleep(0.005) or (here(), x)), num_epochs=1)
    cluster.shutdown()
    pathlib.Path(folder, "nodes.json").write_text(json.dumps(nodes))


if __name__ == "__main__":
    main(sys.argv[1])
