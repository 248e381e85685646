"""tensorflowonspark: every module imports without TensorFlow and Spark, signatures are the original's, and util."""

import argparse
import inspect
import os
import socket
import subprocess
import sys

import pytest

import spark_session  # noqa: F401  puts python/ on the path

from conftest import ROOT
from tensorflowonspark import TFParallel, compat, dfutil, gpu_info, pipeline, util

OURS = "util gpu_info compat TFParallel pipeline dfutil params saving tasks batches example".split()


@pytest.mark.parametrize("module", ["__init__", *OURS, "scoring", "tensors", "transform"])
def test_import_without_tensorflow_and_spark(module):
    absent = ["tensorflow", "pyspark", "six", "packaging", "pkg_resources"]
    absent += [] if module in ("scoring", "tensors", "transform") else ["numpy", "pandas", "pyarrow"]
    program = f"""
import logging, sys
sys.modules.update(dict.fromkeys({absent}))
import tensorflowonspark.{module}
assert not logging.getLogger().handlers
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_projects():
    import crema
    import tensorflowonspark

    assert tensorflowonspark.__version__ == crema.__version__


SIGNATURES = {
    util.single_node_env: "(num_gpus=1, worker_index=-1, nodes=[])",
    util.get_ip_address: "()",
    util.find_in_path: "(path, file)",
    util.write_executor_id: "(num)",
    util.read_executor_id: "()",
    gpu_info.is_gpu_available: "()",
    gpu_info.get_gpus: "(num_gpu=1, worker_index=-1, format='string')",
    compat.export_saved_model: "(model, export_dir, is_chief=False)",
    compat.disable_auto_shard: "(options)",
    compat.is_gpu_available: "()",
    TFParallel.run: "(sc, map_fn, tf_args, num_executors, use_barrier=True)",
    dfutil.isLoadedDF: "(df)",
    dfutil.saveAsTFRecords: "(df, output_dir)",
    dfutil.loadTFRecords: "(sc, input_dir, binary_features=[])",
    dfutil.toTFExample: "(dtypes)",
    dfutil.infer_schema: "(example, binary_features=[])",
    dfutil.fromTFExample: "(iter, binary_features=[])",
    pipeline.TFEstimator: "(train_fn, tf_args, export_fn=None)",
    pipeline.TFModel: "(tf_args)",
    pipeline.Namespace: "(d)",
    pipeline.TFParams.merge_args_params: "(self)",
    pipeline.single_node_env: "(args)",
    pipeline.get_meta_graph_def: "(saved_model_dir, tag_set)",
    pipeline.yield_batch: "(iterable, batch_size, num_tensors=1)",
}


def test_signatures():
    assert {f.__name__: str(inspect.signature(f)) for f in SIGNATURES} == {
        f.__name__: text for f, text in SIGNATURES.items()
    }


class Conf(dict):
    """Of a SparkContext, as far as settings go."""

    def getConf(self):
        return self


def test_nodes_encrypt_where_spark_does():
    assert not util.encrypts(Conf())
    # As spark/src/main/scala/com/crema/Cluster.scala has them.
    for key in (
        "spark.network.crypto.enabled",
        "spark.authenticate.enableSaslEncryption",
        "spark.ssl.enabled",
        "spark.ssl.rpc.enabled",
        "spark.crema.encrypt",
    ):
        assert util.encrypts(Conf({key: "true"})) and not util.encrypts(Conf({key: "false"})), key
    assert not util.encrypts(Conf({"spark.ssl.enabled": "true", "spark.crema.encrypt": "false"}))


def test_executor_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match="No executor_id file found on this node, please ensure that:\n1. (.|\n)*4. "):
        util.read_executor_id()
    util.write_executor_id(12)
    assert util.read_executor_id() == 12


def test_find_in_path(tmp_path):
    (tmp_path / "a/tool").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/tool").touch()
    path = f"{tmp_path}/none:{tmp_path}/a:{tmp_path}/b"
    assert util.find_in_path(path, "tool") == f"{tmp_path}/b/tool"
    assert util.find_in_path(path, "nothing") is False


def test_ip_address_is_one_of_this_host():
    with socket.socket() as s:
        s.bind((util.get_ip_address(), 0))
    # Where no route leads out, as in a network of its own.
    program = f"import sys; sys.path.insert(0, '{ROOT}/python')\nfrom tensorflowonspark import util\nimport socket\n"
    program += "s = socket.socket(); s.bind((util.get_ip_address(), 0)); print('bound')"
    done = subprocess.run([ROOT / "scripts/own_network", sys.executable, "-c", program], capture_output=True, text=True)
    if done.returncode == 71:
        pytest.skip(done.stderr.strip())
    assert done.stdout == "bound\n", done.stderr


def test_hadoop_classpath(tmp_path, monkeypatch):
    for name in ("HADOOP_PREFIX", "HADOOP_HOME", "CLASSPATH", "TFOS_CLASSPATH_UPDATED"):
        monkeypatch.delenv(name, raising=False)
    util.expand_hadoop_classpath()
    assert "CLASSPATH" not in os.environ
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    util.expand_hadoop_classpath()  # no bin/hadoop: a warning
    assert "CLASSPATH" not in os.environ
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/hadoop").write_text('#!/bin/sh\n[ "$*" = "classpath --glob" ] && echo /h/a.jar:/h/b.jar\n')
    (tmp_path / "bin/hadoop").chmod(0o755)
    util.expand_hadoop_classpath()
    assert os.environ["CLASSPATH"] == "/h/a.jar:/h/b.jar"
    util.expand_hadoop_classpath()
    assert os.environ["CLASSPATH"] == "/h/a.jar:/h/b.jar"  # once
    monkeypatch.delenv("TFOS_CLASSPATH_UPDATED")
    monkeypatch.setenv("CLASSPATH", "/mine")
    util.expand_hadoop_classpath()
    assert os.environ["CLASSPATH"] == "/mine:/h/a.jar:/h/b.jar"
    monkeypatch.delenv("TFOS_CLASSPATH_UPDATED")


@pytest.mark.parametrize(
    "tf_args, gpus",
    [({"num_gpus": 2}, 2), ({"x": 1}, 1), (argparse.Namespace(num_gpus=0), 0), (["--num_gpus", "3"], 1), (None, 1)]
    + [(pipeline.Namespace({"num_gpus": 4}), 4), (argparse.Namespace(num_gpus=None), 1)],
)
def test_num_gpus(tf_args, gpus):
    assert util.num_gpus_of(tf_args) == gpus
