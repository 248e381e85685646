"""Where nodes are and where rows come from: several nodes on an executor, rows and results over the network, and what
Spark may not do with a node's task.
"""

import json
import multiprocessing
import pathlib
import sys

import pyspark
import pytest
from cluster_programs import all_gone, count_rows, nodes_running, say_who, sc, seen  # noqa: F401  fixtures
from tensorflow_session import spark  # noqa: F401
from tensorflow_submit import submit_to_wide  # noqa: F401  fixture

from tensorflowonspark import TFCluster  # isort: skip

import places_job  # isort: skip  needs the path that the one above sets

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file
SPARK = TFCluster.InputMode.SPARK


def test_copies_of_tasks_are_refused(sc, monkeypatch):
    """spark.speculation: a copy of a node's task would find all places taken, fail, and end the run."""
    settings = sc.getConf().set("spark.speculation", "true")
    monkeypatch.setattr(sc, "getConf", lambda: settings)
    with pytest.raises(ValueError, match="spark.speculation is true: .*set --conf spark.speculation=false"):
        TFCluster.run(sc, say_who, {}, 2, 0)


def move_away(cluster):
    """From now on its nodes are on other machines, for all that feeding tasks know: their ports alone are reached."""
    for node in cluster.cluster_info:
        node.update(host="elsewhere", executor="elsewhere/1.1", addr="no such socket")


def test_rows_come_over_the_network(sc, seen):
    cluster = TFCluster.run(sc, count_rows, {"to": seen.folder}, 2, 0, input_mode=SPARK)
    move_away(cluster)
    cluster.train(sc.parallelize(range(3000), 7), num_epochs=2)
    cluster.shutdown()
    rows = list(seen().values())
    assert sorted(x for some in rows for x in some) == sorted(2 * list(range(3000)))
    assert all(rows), "partitions go to both"
    assert all_gone(15), nodes_running()


def in_steps(args, ctx):
    feed = ctx.get_data_feed(equal_steps=True)
    seen = [[batch.tolist() for (batch,) in feed.arrays(50)] for _ in feed.epochs()]
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(seen))


def test_equal_steps_come_over_the_network(sc, seen):
    cluster = TFCluster.run(sc, in_steps, {"to": seen.folder}, 2, 0, input_mode=SPARK)
    move_away(cluster)
    sizes = sc.parallelize([1, 10, 100, 1000], 4)
    cluster.train(sizes.flatMap(lambda n: range(n)), num_epochs=2, equal_steps=True)
    cluster.shutdown()
    one, other = seen().values()
    assert [len(epoch) for epoch in one] == [len(epoch) for epoch in other] == [12, 12], "batches of 50 of 1111 rows"
    rows = sorted(x for node in (one, other) for epoch in node for batch in epoch for x in batch)
    assert rows == sorted(2 * [x for n in (1, 10, 100, 1000) for x in range(n)])


def squares_of(args, ctx):
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        feed.batch_results([x * x for x in feed.next_batch(7)])


def test_results_come_over_the_network(sc):
    cluster = TFCluster.run(sc, squares_of, {}, 2, 0, input_mode=SPARK)
    move_away(cluster)
    assert cluster.inference(sc.parallelize(range(1000), 5)).collect() == [x * x for x in range(1000)]
    cluster.shutdown()


def test_nodes_that_share_an_executor_are_all_fed_by_its_tasks(submit_to_wide, tmp_path):  # noqa: F811
    """Four nodes on two executors with two slots each; in the original rows go to the wrong one."""
    submit_to_wide(pathlib.Path(places_job.__file__), tmp_path)
    nodes = json.loads((tmp_path / "nodes.json").read_text())
    assert len(nodes) == 4 and len(set(nodes.values())) == 2
    seen = {p.stem.removeprefix("seen-"): json.loads(p.read_text()) for p in tmp_path.glob("seen-*.json")}
    assert sorted(x for rows in seen.values() for _, x in rows) == list(range(places_job.ROWS))
    for node, rows in seen.items():
        assert rows, "each node has some"
        assert {executor for executor, _ in rows} == {nodes[node]}, "of tasks of its own executor"


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_every_start_method_is_one_to_a_cluster(sc, seen, method):
    """On the driver and in Spark's Python workers; the original's managers work with fork alone."""

    def begin_with(method):
        multiprocessing.set_start_method(method, force=True)
        return multiprocessing.get_start_method()

    def in_the_program(args, ctx):
        pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(
            json.dumps(list(ctx.get_data_feed().next_batch(9)))
        )

    def everywhere(method):
        begin_with(method)
        assert set(sc.parallelize(range(4), 4).map(lambda i: begin_with(method)).collect()) == {method}

    before = multiprocessing.get_start_method()
    everywhere(method)
    try:
        cluster = TFCluster.run(sc, in_the_program, {"to": seen.folder}, 1, 0, input_mode=SPARK)
        cluster.train(sc.parallelize(range(9), 3), num_epochs=1)
        cluster.shutdown()
    finally:
        everywhere(before)
    assert sorted(seen()["0.json"]) == list(range(9))
