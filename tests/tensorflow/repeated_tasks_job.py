"""A job that test_tf_repeated_tasks.py submits: Spark runs a failed task again, up to four times in all.

repeated_tasks_job.py FOLDER: rows whose source fails once in each partition are fed, with equal steps too, and scored;
then a program fails.
repeated_tasks_job.py FOLDER lost: rows are fed with equal steps, and an executor without a node is killed meanwhile.
"""

import json
import os
import pathlib
import signal
import sys
import uuid

import pyspark

from tensorflowonspark import TFCluster, _node

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


def dies_once(folder):
    """The first executor without a node that reads so far is killed."""

    def read(index, rows):
        for i, row in enumerate(rows):
            if i == GOOD and not os.path.exists("executor_id"):
                try:
                    os.close(os.open(f"{folder}/died", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    os.kill(_node.executor_pid(), signal.SIGKILL)
            yield row

    return read


def steps(args, ctx):
    feed = ctx.get_data_feed(equal_steps=True)
    seen = [list(iter(lambda: feed.next_batch(64), [])) for _ in feed.epochs()]
    pathlib.Path(args, f"steps-{ctx.executor_id}.json").write_text(json.dumps(seen))


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


def lost(folder):
    sc = pyspark.SparkContext()
    cluster = TFCluster.run(sc, steps, folder, 2, 0, input_mode=TFCluster.InputMode.SPARK)
    rows = sc.range(ROWS, numSlices=PARTITIONS).mapPartitionsWithIndex(dies_once(folder))
    cluster.train(rows, num_epochs=2, equal_steps=True)
    cluster.shutdown()


def main(folder):
    sc = pyspark.SparkContext()
    spark = TFCluster.InputMode.SPARK
    made = {}
    for kind in ("fed", "even", "scored"):
        made[kind] = pathlib.Path(folder, kind)
        made[kind].mkdir()
    cluster = TFCluster.run(sc, count, folder, 2, 0, input_mode=spark)
    cluster.train(sc.range(ROWS, numSlices=PARTITIONS).mapPartitionsWithIndex(fails_once(made["fed"])), num_epochs=1)
    cluster.shutdown()
    cluster = TFCluster.run(sc, steps, folder, 2, 0, input_mode=spark)
    rows = sc.range(ROWS, numSlices=PARTITIONS).mapPartitionsWithIndex(fails_once(made["even"]))
    cluster.train(rows, num_epochs=2, equal_steps=True)
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
    {"lost": lost, "all": main}[(*sys.argv, "all")[2]](sys.argv[1])
