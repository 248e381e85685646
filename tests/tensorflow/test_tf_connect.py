"""Sessions of Spark Connect, which have no SparkContext: TFModel, TFParallel and TFCluster in a process that has
nothing else.
"""

import os
import subprocess
import sys

import pytest
from tensorflow_session import PACKAGE, pyspark, various  # noqa: F401  fixture

pytest.importorskip("grpc_status", reason="Spark Connect needs grpcio-status")
if pyspark.__version__.startswith("3."):
    pytest.skip("Spark 3.5's package has no server of Spark Connect", allow_module_level=True)

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from tensorflowonspark import TFCluster, TFParallel, dfutil, tasks, util
from tensorflowonspark.pipeline import TFModel

spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
assert util.is_connect(spark) and util.default_fs(spark) == "file://"
frame = spark.createDataFrame([(i, [i / 2, 1.0]) for i in range(20)], "n bigint, point array<float>")
model = TFModel({}).setExportDir(sys.argv[1]).setSignatureDefKey("typed").setInputMapping({"n": "id", "point": "x"})
model.setOutputMapping({"score": "s"}).setPassThrough(["n"])
assert [(r.n, r.s) for r in model.transform(frame).collect()] == [(i, i - 1.0) for i in range(20)]
model.save(sys.argv[2])
again = TFModel.load(sys.argv[2])
assert again.transform(frame).collect() == model.transform(frame).collect()

def number(i):
    from pyspark import BarrierTaskContext
    return f"{i} of {len(BarrierTaskContext.get().getTaskInfos())}"

assert tasks.run_tasks(spark, number, 2, barrier=True) == ["0 of 2", "1 of 2"]
def main(args, ctx):
    open(f"{args['folder']}/{ctx.worker_num}", "w").write(ctx.defaultFS)

TFParallel.run(spark, main, {"folder": sys.argv[3]}, 2)

def train(args, ctx):
    feed, total = ctx.get_data_feed(), [0, 0]
    while not feed.should_stop():
        for row in feed.next_batch(64):
            total[0] += row.n
            total[1] += row.point[1]
    open(f"{args['folder']}/trained", "w").write(str(total))

cluster = TFCluster.run(spark, train, {"folder": sys.argv[3]}, 1, 0, input_mode=TFCluster.InputMode.SPARK)
try:
    cluster.inference(frame)
    raise AssertionError("there are no RDDs")
except TypeError as e:
    assert "Spark Connect has none" in str(e)
cluster.train(frame, num_epochs=3)
cluster.shutdown()

def fails(args, ctx):
    raise ValueError("the model exploded")

cluster = TFCluster.run(spark, fails, {}, 1, 0, input_mode=TFCluster.InputMode.TENSORFLOW)
try:
    cluster.shutdown()
    raise AssertionError("it failed")
except Exception as e:
    assert "Exception in worker" in str(e) and "the model exploded" in str(e), e
print("done")
"""


def test_connect(various, tmp_path):
    (tmp_path / "notes").mkdir()
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, various, str(tmp_path / "saved"), str(tmp_path / "notes")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr[-5000:]
    read = {p.name: p.read_text() for p in (tmp_path / "notes").iterdir()}
    assert read == {"0": "file://", "1": "file://", "trained": "[570, 60.0]"}


def test_the_servers_file_system(tmp_path):
    """Which is the server's to know: Hadoop's settings do not reach a session."""
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>viewfs://here</value></property><property>"
        f"<name>fs.viewfs.mounttable.here.link./data</name><value>file://{tmp_path}</value></property></configuration>"
    )
    program = (
        "from pyspark.sql import SparkSession; from tensorflowonspark import util; "
        'print(util.default_fs(SparkSession.builder.remote("local[1]").getOrCreate()))'
    )
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}"}
    environment["HADOOP_CONF_DIR"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1:] == ["viewfs://here"], done.stderr[-3000:]
