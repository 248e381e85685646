"""Clusters of nodes on a real Spark cluster, with programs that need no TensorFlow: who starts where, what is fed and
answered.
"""

import json
import os
import pathlib
import sys
import threading
import time

import pyspark
import pytest
from cluster_programs import all_gone, count_rows, nodes_running, say_who, sc, seen  # noqa: F401  fixtures
from tensorflow_session import spark  # noqa: F401

from conftest import wait_until

from tensorflowonspark import TFCluster, TFParallel, _layout  # isort: skip

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file
SPARK = TFCluster.InputMode.SPARK


def squares(args, ctx):
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        batch = feed.next_batch(7)
        feed.batch_results([x * x for x in batch])


def test_nodes_know_their_roles_and_each_other(sc, seen):
    cluster = TFCluster.run(sc, say_who, {"to": seen.folder}, 2, 0, master_node="chief")
    cluster.shutdown()
    seen = seen()
    chief, worker = seen["0.json"], seen["1.json"]
    assert (chief["job"], chief["index"], worker["job"], worker["index"]) == ("chief", 0, "worker", 0)
    assert chief["spec"] == worker["spec"] and chief["workers"] == 2
    assert len({*chief["spec"]["chief"], *chief["spec"]["worker"]}) == 2
    for node in (chief, worker):
        task = {"type": node["job"], "index": 0}
        assert json.loads(node["config"]) == {"cluster": node["spec"], "task": task, "environment": "cloud"}
    assert not chief["socket"] and chief["path"] == "file:///data"
    assert all_gone(5), nodes_running()


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((3, 1, "chief", False), {"ps": [0], "chief": [1], "worker": [2]}),
        ((4, 1, "chief", True), {"ps": [0], "chief": [1], "evaluator": [2], "worker": [3]}),
        ((2, 0, None, False), {"worker": [0, 1]}),
        ((5, 2, None, False), {"ps": [0, 1], "worker": [2, 3, 4]}),
        ((1, 0, "master", False), {"master": [0]}),
    ],
)
def test_the_template_of_roles(shape, expected):
    assert _layout.template(*shape) == expected


def test_impossible_clusters_are_refused(sc):
    def run(nodes, ps, **options):
        TFCluster.run(sc, say_who, {}, nodes, ps, **options)

    with pytest.raises(AssertionError, match="TensorFlow cluster requires 3 nodes, but only 2 executors available"):
        run(2, 2, master_node="chief")
    with pytest.raises(AssertionError, match="at least one worker or master/chief node"):
        run(1, 1)
    with pytest.raises(Exception, match="running PS nodes on driver locally is only supported in InputMode.TENSORFLOW"):
        run(2, 1, driver_ps_nodes=True, input_mode=SPARK)
    with pytest.raises(Exception, match="running evaluator nodes is only supported in InputMode.TENSORFLOW"):
        run(2, 0, eval_node=True, input_mode=SPARK)
    with pytest.raises(ValueError, match="num_ps is -1, and cannot be negative"):
        run(2, -1)
    with pytest.raises(TypeError, match="num_executors must be a whole number, not '2'"):
        run("2", 0)
    with pytest.raises(TypeError, match="sc is None"):
        TFCluster.run(None, say_who, {}, 2, 0)
    with pytest.raises(TypeError, match=r"map_fun must be a function map_fun\(args, ctx\), not None"):
        TFCluster.run(sc, None, {}, 2, 0)
    with pytest.raises(ValueError, match="input_mode is InputMode.TENSORFLOW or InputMode.SPARK, not 'SPARK'"):
        run(2, 0, input_mode="SPARK")
    with pytest.raises(TypeError, match="map function 'uses_context' cannot be sent to the executors.*SparkContext"):

        def uses_context(args, ctx):
            return sc.parallelize([1])

        TFCluster.run(sc, uses_context, {}, 2, 0)
    with pytest.raises(TypeError, match="^what tf_args has cannot be sent to the executors: cannot pickle"):
        TFCluster.run(sc, say_who, {"lock": threading.Lock()}, 2, 0)


def test_inference_answers_each_row_in_order(sc):
    rows = list(range(1000))
    cluster = TFCluster.run(sc, squares, {}, 2, 0, input_mode=SPARK)
    out = cluster.inference(sc.parallelize(rows, 10))
    assert out.getNumPartitions() == 10
    assert out.collect() == [x * x for x in rows]
    empty = cluster.inference(sc.parallelize([1, 2], 5))
    assert empty.glom().map(len).collect() == [0, 0, 1, 0, 1] and empty.collect() == [1, 4]
    cluster.shutdown()


def test_epochs_are_fed_again_from_copies(sc, seen):
    read = sc.accumulator(0)

    def counted(x):
        read.add(1)
        return x

    cluster = TFCluster.run(sc, count_rows, {"to": seen.folder}, 2, 0, input_mode=SPARK)
    cluster.train(sc.parallelize(range(5000), 8).map(counted), num_epochs=3)
    assert read.value == 5000
    cluster.shutdown()
    seen = list(seen().values())
    assert sorted(x for rows in seen for x in rows) == sorted(list(range(5000)) * 3)
    for rows in seen:
        third = len(rows) // 3
        assert rows[:third] == rows[third : 2 * third] == rows[2 * third :], "each epoch in the same order"


def test_a_dataframe_is_fed_as_columns(sc, seen):
    frame = (
        pyspark.sql.SparkSession(sc)
        .range(0, 3000, 1, 4)
        .selectExpr(
            "id", "cast(id as string) as name", "array(float(id), float(1)) as pair", "if(id % 2 = 0, id, null) as even"
        )
    )

    def tell(args, ctx):
        feed = ctx.get_data_feed()
        seen = []
        while not feed.should_stop():
            seen.extend([r.id, r.name, r.pair, r.even] for r in feed.next_batch(64))
        pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(seen))

    cluster = TFCluster.run(sc, tell, {"to": seen.folder}, 2, 0, input_mode=SPARK)
    cluster.train(frame, num_epochs=1)
    cluster.shutdown()
    seen = sorted(r for rows in seen().values() for r in rows)
    assert seen == [[i, str(i), [float(i), 1.0], i if i % 2 == 0 else None] for i in range(3000)]


def test_executors_without_a_node_feed_too(sc, seen):
    """One node on two executors: tasks of the other reach it over the network."""
    cluster = TFCluster.run(sc, count_rows, {"to": seen.folder}, 1, 0, input_mode=SPARK)
    cluster.train(sc.parallelize(range(1000), 20), num_epochs=1)
    cluster.shutdown()
    assert sorted(seen()["0.json"]) == list(range(1000))


def test_servers_and_evaluators_stay_until_shutdown(sc, seen):
    def serve(args, ctx):
        pathlib.Path(args["to"], f"{ctx.job_name}.json").write_text(json.dumps(os.getpid()))
        while ctx.job_name in ("ps", "evaluator"):
            time.sleep(0.1)

    options = {"driver_ps_nodes": True, "master_node": "chief", "eval_node": True}
    cluster = TFCluster.run(sc, serve, {"to": seen.folder}, 3, 1, **options)
    wait_until(lambda: len(seen()) == 3, 60, "the programs")
    time.sleep(1)

    def running():
        return [name for name in ("ps", "evaluator") if os.path.exists(f"/proc/{seen()[name + '.json']}")]

    there = running()
    cluster.shutdown()
    assert there == ["ps", "evaluator"] and not running()
    assert all_gone(5), nodes_running()


def test_servers_on_the_driver(sc, seen):
    cluster = TFCluster.run(sc, say_who, {"to": seen.folder}, 3, 1, driver_ps_nodes=True)
    wait_until(lambda: len(seen()) == 3, 60, "the programs")  # the end ends a server that has not begun yet
    cluster.shutdown()
    assert sorted(seen()) == ["0.json", "1.json", "2.json"] and seen()["0.json"]["job"] == "ps"


def test_parallel_instances(sc, seen):
    def instance(args, ctx):
        pathlib.Path(args["to"], f"{ctx.worker_num}.json").write_text(json.dumps([ctx.num_workers, ctx.executor_id]))

    TFParallel.run(sc, instance, {"to": seen.folder}, 2, use_barrier=False)
    assert seen() == {"0.json": [2, 0], "1.json": [2, 1]}


def test_training_beside_a_server(sc, seen):
    """A server takes no rows, which is no reason to end it; epochs are waited for where they are fed."""

    def trains_and_exports(args, ctx):
        if ctx.job_name == "ps":
            time.sleep(1000)
        count_rows(args, ctx)
        time.sleep(18)

    cluster = TFCluster.run(sc, trains_and_exports, {"to": seen.folder}, 2, 1, input_mode=SPARK)
    cluster.train(sc.parallelize(range(500), 3), num_epochs=4, feed_timeout=15)
    cluster.shutdown()
    assert [sorted(rows) for rows in seen().values()] == [sorted(list(range(500)) * 4)]
    assert all_gone(15), nodes_running()


def test_rows_of_a_feed_that_failed_do_not_come_again(sc, seen):
    cluster = TFCluster.run(sc, count_rows, {"to": seen.folder}, 1, 0, input_mode=SPARK)
    with pytest.raises(Exception, match="all rows of a feed have one type"):
        cluster.train(sc.parallelize([1, 2, 3, 4, 5, "six"], 2), num_epochs=3)
    cluster.train(sc.parallelize([7, 8], 1), num_epochs=3)
    cluster.shutdown()
    (rows,) = seen().values()
    assert [x for x in rows if x > 6] == [7, 8] * 3 and len(rows) < 6 + 6


def epoch_by_epoch(args, ctx):
    """Of each epoch: its rows, and the validation's behind them."""
    feed, validation, seen = ctx.get_data_feed(), ctx.get_data_feed(qname_in="validation"), []

    def all_of(feed):
        rows = []
        while not feed.should_stop():
            rows.extend(feed.next_batch(64))
        return rows

    for _ in zip(feed.epochs(), validation.epochs()):
        seen.append([all_of(feed), all_of(validation)])
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(seen))


def test_validation_behind_each_epoch(sc, seen):
    cluster = TFCluster.run(sc, epoch_by_epoch, {"to": seen.folder}, 2, 0, input_mode=SPARK)
    cluster.train(sc.parallelize(range(1000), 4), num_epochs=3, validation=sc.parallelize(range(5000, 5100), 2))
    cluster.shutdown()
    nodes = list(seen().values())
    assert [len(epochs) for epochs in nodes] == [3, 3]
    for epoch in range(3):
        assert sorted(x for node in nodes for x in node[epoch][0]) == list(range(1000))
        assert sorted(x for node in nodes for x in node[epoch][1]) == list(range(5000, 5100))


def synchronous(args, ctx):
    """Gradients of all nodes are added up in each step: a node with a step more than others would wait for ever."""
    import numpy as np

    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable([0.0, 0.0], aggregation=tf.VariableAggregation.SUM)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def step(rows):
        def one():
            value = tf.reduce_sum(tf.cast(rows, tf.float32))
            weight.assign_add(tf.stack([value, tf.cast(tf.size(rows), tf.float32)]))

        strategy.run(one)

    feed, sizes = ctx.get_data_feed(equal_steps=True), []
    for _ in feed.epochs():
        sizes.append([])
        for (rows,) in feed.arrays(50):
            step(tf.constant(np.array(rows)))
            sizes[-1].append(len(rows))
    about = {"sizes": sizes, "weight": weight.numpy().tolist()}
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(about))


def test_synchronous_training_over_partitions_of_any_size(sc, seen):
    """Every row is used, nodes take as many steps, and all end: partitions of 1, 10, 100 and 1000 rows."""
    bounds = [0, 1, 11, 111, 1111]

    def rows(i):
        return range(bounds[i], bounds[i + 1])

    cluster = TFCluster.run(
        sc, synchronous, {"to": seen.folder}, 2, 0, input_mode=SPARK, master_node="chief", reservation_timeout=60
    )
    cluster.train(sc.parallelize(range(4), 4).flatMap(rows), num_epochs=2, equal_steps=True)
    cluster.shutdown()
    one, other = seen()["0.json"], seen()["1.json"]
    assert [len(sizes) for sizes in one["sizes"]] == [len(sizes) for sizes in other["sizes"]] == [12, 12]
    assert sum(map(sum, one["sizes"] + other["sizes"])) == 2 * 1111
    assert min(map(min, one["sizes"] + other["sizes"])) > 20
    assert one["weight"] == other["weight"] == [2.0 * sum(range(1111)), 2.0 * 1111]
