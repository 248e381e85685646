"""Clusters of nodes on a real Spark cluster, with programs that need no TensorFlow: who starts where, what is fed and
answered, and what a user is told when something fails. (Programs with TensorFlow: tests/tensorflow.)
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

np = pytest.importorskip("numpy")
pyspark = pytest.importorskip("pyspark")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from tensorflowonspark import TFCluster, TFParallel, reservation  # noqa: E402

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
SPARK, FILES = TFCluster.InputMode.SPARK, TFCluster.InputMode.TENSORFLOW


@pytest.fixture(scope="module")
def sc():
    conf = pyspark.SparkConf().setMaster("local-cluster[2,1,1024]").setAppName("nodes")
    conf.setExecutorEnv("PYTHONPATH", f"{ROOT / 'python'}:{pathlib.Path(__file__).parent}").set("spark.ui.enabled", "false")
    conf.set("spark.task.maxFailures", "2").set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    context = pyspark.SparkContext(conf=conf)
    context.setLogLevel("OFF")
    yield context
    context.stop()


@pytest.fixture
def told(tmp_path):
    """Where programs say what they saw, a file each."""

    def read():
        return {p.name: json.loads(p.read_text()) for p in tmp_path.glob("*.json")}

    read.folder = str(tmp_path)
    return read


def nodes_running():
    """pids of node processes and of programs."""
    out = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in out.splitlines() if re.search(r"crema\S* node$|tensorflowonspark\._program", line)]


def all_gone(seconds):
    deadline = time.monotonic() + seconds
    while nodes_running() and time.monotonic() < deadline:
        time.sleep(0.1)
    return not nodes_running()


def say_who(args, ctx):
    about = {
        "job": ctx.job_name,
        "index": ctx.task_index,
        "spec": ctx.cluster_spec,
        "workers": ctx.num_workers,
        "socket": ctx.tmp_socket is not None,
        "config": os.environ.get("TF_CONFIG"),
        "argv": sys.argv[:2],
        "path": ctx.absolute_path("/data"),
    }
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(about))


def squares(args, ctx):
    feed = ctx.get_data_feed(train_mode=False)
    while not feed.should_stop():
        batch = feed.next_batch(7)
        feed.batch_results([x * x for x in batch])


def count_rows(args, ctx):
    feed = ctx.get_data_feed()
    seen = []
    while not feed.should_stop():
        seen.extend(feed.next_batch(100))
    pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(seen))


def test_nodes_know_their_roles_and_each_other(sc, told):
    cluster = TFCluster.run(sc, say_who, {"to": told.folder}, 2, 0, master_node="chief")
    cluster.shutdown()
    seen = told()
    chief, worker = seen["0.json"], seen["1.json"]
    assert (chief["job"], chief["index"], worker["job"], worker["index"]) == ("chief", 0, "worker", 0)
    assert chief["spec"] == worker["spec"] and chief["workers"] == 2
    assert len({*chief["spec"]["chief"], *chief["spec"]["worker"]}) == 2
    assert json.loads(worker["config"]) == {
        "cluster": worker["spec"],
        "task": {"type": "worker", "index": 0},
        "environment": "cloud",
    }
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
    assert TFCluster._template(*shape) == expected


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
    with pytest.raises(TypeError, match="map function 'uses_context' cannot be sent to the executors.*SparkContext"):

        def uses_context(args, ctx):
            return sc.parallelize([1])

        TFCluster.run(sc, uses_context, {}, 2, 0)


def test_inference_answers_each_row_in_order(sc):
    rows = list(range(1000))
    cluster = TFCluster.run(sc, squares, {}, 2, 0, input_mode=SPARK)
    out = cluster.inference(sc.parallelize(rows, 10))
    assert out.getNumPartitions() == 10
    assert out.collect() == [x * x for x in rows]
    empty = cluster.inference(sc.parallelize([1, 2], 5))
    assert empty.glom().map(len).collect() == [0, 0, 1, 0, 1] and empty.collect() == [1, 4]
    cluster.shutdown()


def test_epochs_are_fed_again_from_copies(sc, told):
    read = sc.accumulator(0)

    def counted(x):
        read.add(1)
        return x

    cluster = TFCluster.run(sc, count_rows, {"to": told.folder}, 2, 0, input_mode=SPARK)
    cluster.train(sc.parallelize(range(5000), 8).map(counted), num_epochs=3)
    assert read.value == 5000
    cluster.shutdown()
    seen = list(told().values())
    assert sorted(x for rows in seen for x in rows) == sorted(list(range(5000)) * 3)
    for rows in seen:
        third = len(rows) // 3
        assert rows[:third] == rows[third : 2 * third] == rows[2 * third :], "each epoch in the same order"


def test_a_dataframe_is_fed_as_columns(sc, told):
    spark = pyspark.sql.SparkSession(sc)
    frame = spark.range(0, 3000, 1, 4).selectExpr(
        "id", "cast(id as string) as name", "array(float(id), float(1)) as pair", "if(id % 2 = 0, id, null) as even"
    )

    def tell(args, ctx):
        feed = ctx.get_data_feed()
        seen = []
        while not feed.should_stop():
            seen.extend([r.id, r.name, r.pair, r.even] for r in feed.next_batch(64))
        pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(seen))

    cluster = TFCluster.run(sc, tell, {"to": told.folder}, 2, 0, input_mode=SPARK)
    cluster.train(frame, num_epochs=1)
    cluster.shutdown()
    seen = sorted(r for rows in told().values() for r in rows)
    assert seen == [[i, str(i), [float(i), 1.0], i if i % 2 == 0 else None] for i in range(3000)]


def test_executors_without_a_node_feed_too(sc, told):
    """One node on two executors: tasks of the other reach it over the network."""
    cluster = TFCluster.run(sc, count_rows, {"to": told.folder}, 1, 0, input_mode=SPARK)
    cluster.train(sc.parallelize(range(1000), 20), num_epochs=1)
    cluster.shutdown()
    assert sorted(told()["0.json"]) == list(range(1000))


def test_an_exception_of_the_program_reaches_who_feeds(sc):
    def fails(args, ctx):
        ctx.get_data_feed().next_batch(10)
        raise ValueError("the model exploded")

    cluster = TFCluster.run(sc, fails, {}, 2, 0, input_mode=SPARK)
    started = time.monotonic()
    with pytest.raises(
        Exception, match=r"node \d \(worker:\d, host .*Exception in worker:\nTraceback(.*\n)*.*the model exploded"
    ):
        cluster.train(sc.parallelize(range(100000), 10))
    assert time.monotonic() - started < 30
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


def test_a_killed_program_is_named_with_its_last_lines(sc, told):
    def waits(args, ctx):
        print("half of the epoch is over", flush=True)
        pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(os.getpid()))
        ctx.get_data_feed().next_batch(10**9)

    cluster = TFCluster.run(sc, waits, {"to": told.folder}, 2, 0, input_mode=SPARK)
    while len(told()) < 2:
        time.sleep(0.1)
    os.kill(told()["1.json"], signal.SIGKILL)
    started = time.monotonic()
    with pytest.raises(Exception) as failed:
        cluster.shutdown()
    assert time.monotonic() - started < 10
    said = str(failed.value)
    assert re.search(
        r"node \d \(worker:1, host \S+ [\d.]+, pid \d+\) failed: the program was killed by signal 9", said
    ), said
    assert said.endswith("; its last lines:\n  half of the epoch is over"), said
    assert all_gone(15), nodes_running()


def test_a_failed_cluster_does_not_poison_the_next(sc, told):
    def fails(args, ctx):
        raise ValueError("wrong")

    with pytest.raises(Exception, match="wrong"):
        TFCluster.run(sc, fails, {}, 2, 0).shutdown()
    cluster = TFCluster.run(sc, say_who, {"to": told.folder}, 2, 0)
    cluster.shutdown()
    assert len(told()) == 2


def test_too_few_executors_end_the_wait(sc):
    started = time.monotonic()
    with pytest.raises(
        Exception, match=r"3 nodes wanted, 2 here; waited 5 s; missing: node 2|2 of 3 nodes are here after 5 s"
    ):
        TFCluster.run(sc, say_who, {"to": "/tmp"}, 3, 0, reservation_timeout=5)
    assert time.monotonic() - started < 20
    assert all_gone(15), nodes_running()


def test_servers_and_evaluators_stay_until_shutdown(sc, told):
    def serve(args, ctx):
        pathlib.Path(args["to"], f"{ctx.job_name}.json").write_text(json.dumps(os.getpid()))
        while ctx.job_name in ("ps", "evaluator"):
            time.sleep(0.1)

    cluster = TFCluster.run(sc, serve, {"to": told.folder}, 2, 1)
    while len(told()) < 2:
        time.sleep(0.1)
    time.sleep(1)
    assert os.path.exists(f"/proc/{told()['ps.json']}")
    cluster.shutdown()
    assert not os.path.exists(f"/proc/{told()['ps.json']}")
    assert all_gone(5), nodes_running()


def test_servers_on_the_driver(sc, told):
    cluster = TFCluster.run(sc, say_who, {"to": told.folder}, 3, 1, driver_ps_nodes=True)
    while len(told()) < 3:
        time.sleep(0.1)  # the end ends a server that has not begun yet
    cluster.shutdown()
    assert sorted(told()) == ["0.json", "1.json", "2.json"] and told()["0.json"]["job"] == "ps"


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
    with pytest.raises(Exception, match="a row is int in one row and str in another.*convert them before they are fed"):
        cluster.train(sc.parallelize([1, "a"], 1), num_epochs=1)
    cluster.train(sc.parallelize([1, 2], 1), num_epochs=1)
    with pytest.raises(AssertionError, match="Unknown queue: rows"):
        cluster.train(sc.parallelize([1]), qname="rows")
    cluster.shutdown()


def test_parallel_instances(sc, told):
    def instance(args, ctx):
        pathlib.Path(args["to"], f"{ctx.worker_num}.json").write_text(json.dumps([ctx.num_workers, ctx.executor_id]))

    TFParallel.run(sc, instance, {"to": told.folder}, 2, use_barrier=False)
    assert told() == {"0.json": [2, 0], "1.json": [2, 1]}


def test_many_reservations_at_once():
    """More clients than a process has descriptors by default; the original's server dies at 1,020."""
    count = 300
    server = reservation.Server(count)
    address = server.start()
    clients = [reservation.Client(address) for _ in range(count)]
    for i, client in enumerate(clients):
        assert client.register({"node": i}) == "OK"
    assert sorted(n["node"] for n in clients[0].await_reservations()) == list(range(count))
    for client in clients:
        client.close()
    server.stop()
