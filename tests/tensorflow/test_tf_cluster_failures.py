"""Clusters of nodes that fail, on a real Spark cluster: what a user reads, how soon, and what is left."""

import json
import os
import pathlib
import re
import signal
import sys
import threading
import time

import pyspark
import pytest
from cluster_programs import all_gone, count_rows, nodes_running, say_who, sc, seen  # noqa: F401  fixtures
from tensorflow_session import spark  # noqa: F401

from tensorflowonspark import TFCluster, _node  # isort: skip

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file
SPARK = TFCluster.InputMode.SPARK


def test_an_exception_of_the_program_reaches_who_feeds(sc):
    def fails(args, ctx):
        ctx.get_data_feed().next_batch(10)
        raise ValueError(f"the model exploded at {time.time()}")

    cluster = TFCluster.run(sc, fails, {}, 2, 0, input_mode=SPARK)
    with pytest.raises(
        Exception, match=r"node \d \(worker:\d, host .*Exception in worker:\nTraceback(.*\n)*.*the model exploded"
    ) as failed:
        cluster.train(sc.parallelize(range(100000), 10))
    seconds = time.time() - float(re.findall(r"exploded at ([\d.]+)\n", str(failed.value) + "\n")[-1])
    print(f"the driver knows it after {seconds:.1f} s")
    assert seconds < 5
    with pytest.raises(Exception, match="the model exploded"):
        cluster.shutdown()


def test_an_exception_after_the_feed_is_not_missed(sc):
    def fails_late(args, ctx):
        feed = ctx.get_data_feed()
        while not feed.should_stop():
            feed.next_batch(10)
        time.sleep(1)
        raise ValueError("cannot export")

    cluster = TFCluster.run(sc, fails_late, {}, 2, 0, input_mode=SPARK)
    cluster.train(sc.parallelize(range(100), 2), num_epochs=1)
    with pytest.raises(Exception, match="cannot export"):
        cluster.shutdown(grace_secs=0)


@pytest.mark.parametrize("while_feeding", [True, False])
def test_a_killed_program_is_named_with_its_last_lines(sc, seen, while_feeding):
    def waits(args, ctx):
        print("half of the epoch is over", flush=True)
        pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(os.getpid()))
        time.sleep(600)

    cluster = TFCluster.run(sc, waits, {"to": seen.folder}, 2, 0, input_mode=SPARK)
    while len(seen()) < 2:
        time.sleep(0.1)
    killed = []

    def kill():
        killed.append(time.monotonic())
        os.kill(seen()["1.json"], signal.SIGKILL)

    threading.Timer(2, kill).start()
    with pytest.raises(Exception) as failed:
        cluster.train(sc.parallelize(range(100)), num_epochs=1) if while_feeding else cluster.shutdown(grace_secs=0)
    assert killed and time.monotonic() - killed[0] < 3, "what is promised, where the original takes 600 s"
    said = str(failed.value)
    assert re.search(r"node 1 \(worker:1, host \S+ [\d.]+, pid \d+\) failed: the program ended with signal 9", said), (
        said
    )
    assert said.endswith("; its last lines:\n  half of the epoch is over"), said
    assert all_gone(15), nodes_running()


@pytest.mark.parametrize(
    "number, said, last",
    [
        (signal.SIGKILL, r"was killed by a signal \(number 9 is what the kernel sends when memory is short: .*\)", ""),
        (
            signal.SIGSEGV,
            r"(.*\n)*  Fatal Python error: Segmentation fault",
            r"(.*\n)+.* in waits_in_its_task\n(.*\n)*.*",
        ),
    ],
)
def test_a_killed_task_is_named_with_its_programs_last_lines(sc, seen, number, said, last):
    """InputMode.TENSORFLOW: the program runs in Spark's Python worker, whose parent alone learns the signal."""

    def waits_in_its_task(args, ctx):
        for step in range(100):
            print(f"step {step}", end="\r")
        print("\nhalf of the epoch is over")
        pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(os.getpid()))
        time.sleep(600)

    cluster = TFCluster.run(sc, waits_in_its_task, {"to": seen.folder}, 2, 0)
    while len(seen()) < 2:
        time.sleep(0.1)
    os.kill(seen()["1.json"], number)
    started = time.monotonic()
    with pytest.raises(Exception) as failed:
        cluster.shutdown()
    assert time.monotonic() - started < 3
    lines = r"; its last lines:\n  step 99\n  half of the epoch is over"
    assert re.search(rf"node 1 \(worker:1, .*(.|\n)*{said}", str(failed.value)), str(failed.value)
    assert re.search(lines + (rf"\n{last}" if last else "$"), str(failed.value)), str(failed.value)
    assert all_gone(15), nodes_running()


def test_a_killed_executor_is_named(sc, seen):
    def waits(args, ctx):
        pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(_node.executor_pid()))
        time.sleep(600)

    cluster = TFCluster.run(sc, waits, {"to": seen.folder}, 2, 0, input_mode=SPARK)
    while len(seen()) < 2:
        time.sleep(0.1)
    os.kill(seen()["1.json"], signal.SIGKILL)
    started = time.monotonic()
    with pytest.raises(Exception, match=r"node 1 \(worker:1, host .* (was lost: |failed: the executor)"):
        cluster.shutdown()
    assert time.monotonic() - started < 3
    assert all_gone(15), nodes_running()


def test_a_program_that_ends_before_its_rows_is_named(sc, capfd):
    """It may mean to: the run goes on, and a line says that its rows are dropped."""
    cluster = TFCluster.run(sc, lambda args, ctx: None, {}, 2, 0, input_mode=SPARK)
    time.sleep(1)
    cluster.train(sc.parallelize(range(100), 4), num_epochs=1)
    cluster.shutdown()
    assert "has ended and left rows, and did not call DataFeed.terminate()" in capfd.readouterr().err


def test_two_nodes_that_want_one_port_are_named(sc):
    def set_port(i):
        os.environ.update(TENSORFLOW_PORT="4321") if i else os.environ.pop("TENSORFLOW_PORT", None)

    def port_of_all(value):
        sc.parallelize([value] * 4, 4).map(lambda v: time.sleep(1) or set_port(v)).collect()

    port_of_all(1)
    try:
        with pytest.raises(Exception, match=r"nodes 0 and 1 both want port 4321 of host .*TENSORFLOW_PORT"):
            TFCluster.run(sc, say_who, {"to": "/tmp"}, 2, 0)
    finally:
        port_of_all(0)


def test_a_failed_cluster_does_not_poison_the_next(sc, seen):
    def fails(args, ctx):
        raise ValueError("wrong")

    with pytest.raises(Exception, match="wrong"):
        TFCluster.run(sc, fails, {}, 2, 0).shutdown()
    cluster = TFCluster.run(sc, say_who, {"to": seen.folder}, 2, 0)
    cluster.shutdown()
    assert len(seen()) == 2


def test_too_few_executors_end_the_wait(sc):
    started = time.monotonic()
    with pytest.raises(
        Exception,
        match="^timed out waiting for reservations to complete: "
        r"(3 nodes wanted, \d here; waited 5 s; missing: node|[0-2] of 3 nodes are here after 5 s)",
    ):
        TFCluster.run(sc, say_who, {"to": "/tmp"}, 3, 0, reservation_timeout=5)
    seconds = time.monotonic() - started
    gone = all_gone(15)
    last = time.monotonic() - started
    print(f"the driver after {seconds:.1f} s, the last node after {last:.1f} s")
    assert gone, nodes_running()
    assert seconds < 10 and last < 14, "nodes that were never fed have nobody to answer"


def test_a_program_that_wants_no_more_rows(sc):
    def takes_some(args, ctx):
        feed = ctx.get_data_feed()
        feed.next_batch(10)
        feed.terminate()

    cluster = TFCluster.run(sc, takes_some, {}, 2, 0, input_mode=SPARK)
    started = time.monotonic()
    cluster.train(sc.parallelize(range(100000), 10), num_epochs=5, feed_timeout=60)
    assert time.monotonic() - started < 30
    cluster.shutdown()


def test_rows_of_mixed_types_are_named(sc):
    cluster = TFCluster.run(sc, count_rows, {"to": "/tmp"}, 2, 0, input_mode=SPARK)
    with pytest.raises(
        TypeError, match="^row 1 of partition 0: a row is int in one row and str in another.*convert them"
    ) as failed:
        cluster.train(sc.parallelize([1, "a"], 1), num_epochs=1)
    assert len(str(failed.value)) < 300, "a sentence, and nothing of Spark's around it"
    cluster.train(sc.parallelize([1, 2], 1), num_epochs=1)
    with pytest.raises(AssertionError, match="Unknown queue: rows"):
        cluster.train(sc.parallelize([1]), qname="rows")
    with pytest.raises(TypeError, match="feeds an RDD, a DataFrame or a DStream, not list"):
        cluster.train([1, 2])
    with pytest.raises(TypeError, match="num_epochs must be a whole number, not '3'"):
        cluster.train(sc.parallelize([1]), "3")
    cluster.shutdown()
    for use in (cluster.train, cluster.inference):
        with pytest.raises(
            Exception, match=r"after the end of this cluster \(shutdown\(\)\): TFCluster.run\(\) starts"
        ):
            use(sc.parallelize([1]))


def stuck_in_the_middle(args, ctx):
    if args["rows"]:
        ctx.get_data_feed().next_batch(args["rows"])
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text("1")
    time.sleep(1000)  # the line that the error names


@pytest.mark.parametrize("rows, fed", [(10, "and is not done with those"), (0, "there is no room")])
def test_a_program_that_is_stuck_is_ended_and_its_stack_shown(sc, seen, rows, fed):
    """After some rows, while the driver waits for the rest; and before the first, when the feed has filled its room."""
    data = sc.parallelize(range(20), 2)
    if rows == 0:
        data = data.flatMap(lambda i: (bytes(1 << 20) for _ in range(30)))
    cluster = TFCluster.run(sc, stuck_in_the_middle, {"rows": rows, "to": seen.folder}, 1, 0, input_mode=SPARK)
    started = time.monotonic()
    with pytest.raises(Exception) as failed:
        cluster.train(data, num_epochs=1, feed_timeout=8)
    assert time.monotonic() - started < 60
    said = str(failed.value)
    assert re.search(r"node 0 \(worker:0, host .*failed: the program has taken no rows for 8 s", said), said
    assert fed in said and "ended with signal 6 (Aborted)" in said, said
    assert re.search(r"File .*test_tf_cluster_failures.py\", line \d+ in stuck_in_the_middle", said), said
    with pytest.raises(Exception, match="has taken no rows"):
        cluster.shutdown()
    assert all_gone(15), nodes_running()


@pytest.mark.parametrize("mode", [SPARK, TFCluster.InputMode.TENSORFLOW])
def test_a_program_that_does_not_end_is_shown_where_it_stands(sc, seen, mode):
    cluster = TFCluster.run(sc, stuck_in_the_middle, {"rows": 0, "to": seen.folder}, 2, 0, input_mode=mode)
    while len(seen()) < 2:
        time.sleep(0.1)
    started = time.monotonic()
    with pytest.raises(Exception) as failed:
        cluster.shutdown(timeout=2)
    assert time.monotonic() - started < 40
    said = str(failed.value)
    assert "the program goes on 2 s after the end of its feed, the timeout of shutdown()" in said, said
    assert "in stuck_in_the_middle" in said, said
    assert all_gone(15), nodes_running()
