"""The environments of programs, of what they start, and of the driver."""

import json
import os
import pathlib
import sys

import pyspark
from cluster_programs import sc, seen  # noqa: F401  fixtures
from tensorflow_session import spark  # noqa: F401

from conftest import wait_until
from tensorflowonspark import TFCluster, TFSparkNode, gpu_info, reservation

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file
NAMES = ("TF_CONFIG", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CLASSPATH")


def say_environment(args, ctx):
    found = {name: os.environ.get(name) for name in (*NAMES, "PYTHONPATH")}
    pathlib.Path(args["to"], f"{ctx.job_name}-{ctx.task_index}.json").write_text(json.dumps(found))


def test_servers_on_the_driver_leave_its_environment_alone(sc, seen, monkeypatch):  # noqa: F811
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setenv("TF_CONFIG", "of the driver")
    before = {name: os.environ.get(name) for name in NAMES}
    cluster = TFCluster.run(sc, say_environment, {"to": seen.folder}, 4, 2, driver_ps_nodes=True, master_node="chief")
    wait_until(lambda: len(seen()) == 4, 60, "the programs")
    assert {name: os.environ.get(name) for name in NAMES} == before
    cluster.shutdown()
    for name, about in seen().items():
        job, index = name.removesuffix(".json").split("-")
        assert json.loads(about["TF_CONFIG"])["task"] == {"type": job, "index": int(index)}
        assert about["CUDA_VISIBLE_DEVICES"] == ""


def test_what_a_program_starts_has_the_module_path_of_tasks(sc, seen):  # noqa: F811
    """Another Python that it starts would find modules of this one there, and end."""
    cluster = TFCluster.run(sc, say_environment, {"to": seen.folder}, 1, 0, input_mode=TFCluster.InputMode.SPARK)
    cluster.shutdown()
    (found,) = seen().values()
    assert found["TF_CONFIG"] is None, "there is no chief"
    assert found["PYTHONPATH"] == sc.parallelize([1], 1).map(lambda _: os.environ.get("PYTHONPATH")).first()
    assert not [p for p in found["PYTHONPATH"].split(os.pathsep) if os.path.exists(os.path.join(p, "os.py"))]


def test_a_node_outside_of_spark_is_one_to_its_process(monkeypatch):
    """As the original's own tests start it: the function of a task, called where there is no task."""
    monkeypatch.setattr(gpu_info, "is_gpu_available", lambda: True)
    monkeypatch.setattr(gpu_info, "get_gpus", lambda *_, **__: ["3"])
    for name in NAMES:
        monkeypatch.setenv(name, "of before")
    server, found = reservation.Server(1, timeout=60), {}
    meta = {"id": 7, "cluster_template": {"chief": [0]}, "num_executors": 1, "default_fs": "file://"}
    meta.update(working_dir=".", server_addr=server.start())
    try:
        TFSparkNode.run(lambda args, ctx: found.update(os.environ), None, meta, False, None, ["input"], False)([0])
    finally:
        server.stop()
    assert json.loads(found["TF_CONFIG"])["task"] == {"type": "chief", "index": 0}
    assert found["CUDA_VISIBLE_DEVICES"] == "3"
