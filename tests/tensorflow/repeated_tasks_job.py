"""A job that test_tf_repeated_tasks.py submits: Spark runs a failed task again, up to four times in all.

repeated_tasks_job.py FOLDER: rows whose source fails once in each partition are fed and scored; then a program fails.
"""

import json
import os
import pathlib
import sys
import uuid

import pyspark

from tensorflowonspark import TFCluster

ROWS, PARTITIONS, GOOD = 4000, 4, 700  # rows that a partition gives before its source fails


def fails_once(folder):
    """For mapPartitionsWithIndex: the source of each partition is cut after GOOD rows when it is read first."""

    def read(index, rows):
        try:
            os.close(os.open(f"{folder}/cut-{index}", os.O_CREAT | os.O_EXCL))
            first = True
        except FileExistsError:
            first = False
        for i, row in enumerate(rows):
            if first and i == GOOD:
                raise OSError("the source was cut")
            yield row

    return read


def count(args, ctx):
    feed, seen = ctx.get_data_feed(), []
    while not feed.should_stop():
        seen.extend(feed.next_batch(100))
    pathlib.Path(args, f"seen-{ctx.executor_id}.json").write_text(json.dumps(seen))


def squares(args, ctx):
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        feed.batch_results([x * x for x in feed.next_batch(7)])


def explodes(args, ctx):
    pathlib.Path(args, f"started-{ctx.executor_id}-{uuid.uuid4()}").touch()
    if ctx.executor_id == 0:
        raise ValueError("the model exploded")
    import time

    time.sleep(600)


def main(folder):
    sc = pyspark.SparkContext()
    spark = TFCluster.InputMode.SPARK
    made = {}
    for kind in ("fed", "scored"):
        made[kind] = pathlib.Path(folder, kind)
        made[kind].mkdir()
    cluster = TFCluster.run(sc, count, folder, 2, 0, input_mode=spark)
    cluster.train(sc.range(ROWS, numSlices=PARTITIONS).mapPartitionsWithIndex(fails_once(made["fed"])), num_epochs=1)
    cluster.shutdown()
    cluster = TFCluster.run(sc, squares, folder, 2, 0, input_mode=spark)
    rows = sc.range(ROWS, numSlices=PARTITIONS).mapPartitionsWithIndex(fails_once(made["scored"]))
    results = cluster.inference(rows).collect()
    cluster.shutdown()
    said = None
    cluster = TFCluster.run(sc, explodes, folder, 2, 0, input_mode=TFCluster.InputMode.TENSORFLOW)
    try:
        cluster.shutdown()
    except Exception as e:
        said = str(e)
    pathlib.Path(folder, "results.json").write_text(json.dumps({"results": results, "said": said}))


if __name__ == "__main__":
    main(sys.argv[1])
