"""Feeds that are not as usual: two at once, of large rows, to a program that keeps all."""

import json
import pathlib
import sys
import threading
import time

import pyspark
from cluster_programs import sc, seen  # noqa: F401  fixtures
from tensorflow_session import spark  # noqa: F401

from tensorflowonspark import TFCluster, _frames

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file


def takes_both(args, ctx):
    """A thread for each queue."""
    rows = {"input": 0, "other": 0}

    def take(name):
        feed = ctx.get_data_feed(qname_in=name)
        while not feed.should_stop():
            rows[name] += len(feed.next_batch(100))
            time.sleep(0.01)

    threads = [threading.Thread(target=take, args=(name,)) for name in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(rows))


def test_the_second_call_takes_nothing_from_the_first(sc, seen):  # noqa: F811
    queues = ["input", "other", "output", "error"]
    cluster = TFCluster.run(sc, takes_both, {"to": seen.folder}, 1, 0, input_mode=1, queues=queues)
    started, refused = threading.Event(), []

    def rows(count):
        started.set()
        return sc.parallelize(range(count), 2)

    first = threading.Thread(target=lambda: cluster.train(rows(30000), num_epochs=2, feed_timeout=60), daemon=True)
    first.start()
    assert started.wait(60)
    time.sleep(2)
    try:
        cluster.train(rows(10), num_epochs=1)
    except Exception as e:
        refused.append(str(e))
    cluster.train(rows(10000), num_epochs=2, qname="other", feed_timeout=60)
    first.join(120)
    assert not first.is_alive(), "the first waits for ever"
    cluster.shutdown()
    assert seen()["0.json"] == {"input": 60000, "other": 20000}
    assert len(refused) == 1 and refused[0].startswith("a train() of queue 'input' is going on in another thread: wait")


def takes_in_batches(args, ctx):
    feed, rows = ctx.get_data_feed(), 0
    while not feed.should_stop():
        rows += len(feed.next_batch(50))
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(rows))


def test_a_frame_of_images_fits_into_an_executor(sc, spark, seen):  # noqa: F811
    """1.35 GB in one partition: ten thousand of these rows, Spark's batch, are more than its JVM's memory."""
    frame = spark.range(0, 9000, 1, 1).selectExpr("id", "cast(repeat('x', 150000) as binary) as image")
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    cluster = TFCluster.run(sc, takes_in_batches, {"to": seen.folder}, 1, 0, input_mode=1)
    cluster.train(frame, num_epochs=1)
    cluster.shutdown()
    assert seen()["0.json"] == 9000
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == before


def test_batches_are_as_large_as_what_is_known_of_rows_allows(spark):  # noqa: F811
    """Those of a cached frame have a size; numbers alone need no bound."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before, found = "10000", []
    spark.conf.set(name, before)  # TFModel.transform lowers it for its session, which tests share

    def wide():
        return spark.range(0, 1000, 1, 2).selectExpr("cast(repeat('x', 2000) as binary) as image", "id")

    cached = wide().cache()
    cached.count()
    for frame in (cached, wide().limit(10), spark.range(10)):
        with _frames.small_batches(frame):
            found.append(int(spark.conf.get(name)))
        assert spark.conf.get(name) == before
    cached.unpersist()
    assert 1500 < found[0] < 3000 and found[1:] == [256, int(before)], found


def keeps_all(args, ctx):
    arrays = list(ctx.get_data_feed().arrays(20))
    rows = sum(len(a[0]) for a in arrays)
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(rows))


def test_a_program_may_keep_more_than_a_node_holds(sc, seen):  # noqa: F811
    """360 MB of arrays, where 256 MiB wait in a node at most: what a program keeps is its own."""
    rows = sc.range(0, 24000, 1, 2).map(lambda i: (bytes([i % 256]) * 15000, i))
    cluster = TFCluster.run(sc, keeps_all, {"to": seen.folder}, 1, 0, input_mode=1)
    cluster.train(rows, num_epochs=1, feed_timeout=30)
    cluster.shutdown()
    assert seen()["0.json"] == 24000
