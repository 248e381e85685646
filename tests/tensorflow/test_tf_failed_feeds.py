"""Feeds that fail or are interrupted while the programs are well."""

import json
import pathlib
import sys
import time

import pyspark
import pytest
from cluster_programs import all_gone, count_rows, nodes_running, sc, seen  # noqa: F401  fixtures
from tensorflow_session import spark  # noqa: F401

from tensorflowonspark import TFCluster  # isort: skip

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file
SPARK = TFCluster.InputMode.SPARK


def damaged(i):
    if i == 900:
        raise ValueError("the source of row 900 is damaged")
    return i


def test_a_feed_that_failed_is_no_end_of_the_rows(sc, seen):
    """A program that took what has come for all rows would write a model of them."""
    cluster = TFCluster.run(sc, count_rows, {"to": seen.folder}, 2, 0, input_mode=SPARK)
    with pytest.raises(Exception, match="the source of row 900 is damaged"):
        cluster.train(sc.parallelize(range(1000), 10).map(damaged), num_epochs=2)
    with pytest.raises(Exception) as failed:
        cluster.shutdown(timeout=60)
    said = str(failed.value)
    assert (
        "the feed has failed, and rows are missing: train() of queue 'input' failed: ValueError: the source of row 900"
        in said
    ), said
    assert seen() == {}
    assert all_gone(15), nodes_running()


def test_a_feed_that_failed_may_be_fed_again(sc, seen):
    cluster = TFCluster.run(sc, count_rows, {"to": seen.folder}, 1, 0, input_mode=SPARK)
    with pytest.raises(Exception, match="the source of row 900 is damaged"):
        cluster.train(sc.parallelize(range(1000), 10).map(damaged), num_epochs=1)
    cluster.train(sc.parallelize(range(1000, 2000), 4), num_epochs=1)
    cluster.shutdown()
    (rows,) = seen().values()
    assert sorted(x for x in rows if x >= 1000) == list(range(1000, 2000))


def slow_epochs(args, ctx):
    """The rows of each epoch, each of which takes some seconds until a file says that the driver was interrupted."""
    feed, epochs, hurry = ctx.get_data_feed(), [], pathlib.Path(args["to"], "hurry")
    for _ in feed.epochs():
        epochs.append([])
        while not feed.should_stop():
            epochs[-1].extend(number for number, _ in feed.next_batch(8192))
            deadline = time.monotonic() + 60
            while len(epochs) > 1 and not hurry.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps([[len(e), max(e)] for e in epochs if e]))


def test_an_interrupted_train_is_withdrawn(sc, seen, monkeypatch):
    """While nodes feed later epochs: the next train() has its rows alone, and no node is deaf meanwhile."""
    cluster = TFCluster.run(sc, slow_epochs, {"to": seen.folder}, 1, 0, input_mode=SPARK)
    wait = cluster.server.wait

    def interrupted(condition, *rest):
        if rest == () and cluster.apart:
            time.sleep(2)
            raise KeyboardInterrupt
        return wait(condition, *rest)

    monkeypatch.setattr(cluster.server, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):  # of epochs of 20 MB each, of which a dozen are fed ahead
        cluster.train(sc.parallelize(range(1000), 2).map(lambda i: (i, bytes(20000))), num_epochs=1000)
    monkeypatch.undo()
    with pytest.raises(Exception, match="stand in different ones"):
        cluster.train(sc.parallelize([1]), equal_steps=True)
    pathlib.Path(seen.folder, "hurry").touch()
    started = time.monotonic()
    cluster.train(sc.parallelize(range(9000, 9100), 2).map(lambda i: (i, b"")), num_epochs=3)
    cluster.shutdown(timeout=120)
    assert time.monotonic() - started < 120
    (epochs,) = seen().values()
    assert epochs[-2:] == [[100, 9099]] * 2, "no row of the interrupted call between them"
