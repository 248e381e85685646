"""Parameter servers: they are there as long as others need them, and train by TensorFlow's own strategy, on the
driver too.
"""

import json
import os
import pathlib
import sys
import threading
import time

import pyspark
import pytest
from cluster_programs import all_gone, nodes_running, sc, seen  # noqa: F401  fixtures
from tensorflow_session import spark  # noqa: F401

from conftest import wait_until

from tensorflowonspark import TFCluster  # isort: skip

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file


@pytest.mark.parametrize("job", ["ps", "evaluator"])
def test_they_go_on_until_all_others_have_ended(sc, seen, job):
    """shutdown() may be called while others train, as it is behind the start of a program that reads by itself."""

    def needs(args, ctx):
        folder = pathlib.Path(args["to"])
        if ctx.job_name in ("ps", "evaluator"):
            (folder / "server.json").write_text(json.dumps(os.getpid()))
            time.sleep(600)
        deadline = time.monotonic() + 60
        while not (folder / "ending").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(2)
        server = json.loads((folder / "server.json").read_text())
        (folder / "worker.json").write_text(json.dumps(os.path.exists(f"/proc/{server}")))

    options = {"master_node": "chief", "eval_node": True} if job == "evaluator" else {}
    cluster = TFCluster.run(sc, needs, {"to": seen.folder}, 2, 0 if options else 1, **options)
    wait_until(lambda: "server.json" in seen(), 60, "the server")
    threading.Timer(0.5, pathlib.Path(seen.folder, "ending").touch).start()
    cluster.shutdown()
    assert seen()["worker.json"], "the server was there"
    assert not os.path.exists(f"/proc/{seen()['server.json']}")


def trains_on_servers(args, ctx):
    """The chief has the worker move four weights, which lie on the servers, towards 3."""
    import tensorflow as tf

    done = pathlib.Path(args["to"], "done")
    cluster = tf.train.ClusterSpec(ctx.cluster_spec)
    if ctx.job_name != "chief":
        server = tf.distribute.Server(cluster, job_name=ctx.job_name, task_index=ctx.task_index, protocol="grpc")
        while not done.exists():
            time.sleep(0.1)
        del server
        return
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type="chief", task_id=0, rpc_layer="grpc"
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = [tf.Variable(float(i)) for i in range(4)]

    @tf.function
    def step():
        for weight in weights:
            weight.assign_sub(0.5 * (weight - 3.0))

    for _ in range(40):
        coordinator.schedule(step)
    coordinator.join()
    about = {"weights": [float(w.numpy()) for w in weights], "devices": [w.device for w in weights], "pid": os.getpid()}
    pathlib.Path(args["to"], "chief.json").write_text(json.dumps(about))
    done.touch()


def test_two_servers_on_the_driver_train(sc, seen):
    cluster = TFCluster.run(sc, trains_on_servers, {"to": seen.folder}, 4, 2, driver_ps_nodes=True, master_node="chief")
    cluster.shutdown(timeout=240)
    chief = seen()["chief.json"]
    assert all(abs(w - 3) < 1e-3 for w in chief["weights"]), chief
    assert [d.split("/device")[0] for d in chief["devices"]] == [f"/job:ps/replica:0/task:{i % 2}" for i in range(4)], (
        chief
    )
    assert all_gone(15), nodes_running()
