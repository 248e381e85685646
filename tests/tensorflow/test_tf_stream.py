"""A DStream feeds a cluster until somebody asks for its end, or the program wants no more rows."""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import pyspark
import pytest
from cluster_programs import all_gone, nodes_running, sc, seen  # noqa: F401  fixtures
from pyspark.streaming import StreamingContext
from tensorflow_session import example, spark, tf  # noqa: F401  fixture
from tensorflow_submit import EXAMPLES, raw  # noqa: F401  fixture

from conftest import wait_until
from tensorflowonspark import TFCluster

pyspark.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not have this file


def stop(address, token):
    """Runs the utility; the time when it has ended."""
    command = [sys.executable, EXAMPLES / "stop_streaming.py", *map(str, address)]
    path = os.pathsep.join(p for p in sys.path if p)
    subprocess.run(command, env={**os.environ, "CREMA_TOKEN": token, "PYTHONPATH": path}, check=True, timeout=60)
    return time.monotonic()


def taken(cluster):
    """Rows that the programs have taken, as the nodes say."""
    return sum(node.get("taken", 0) for node in cluster.progress._nodes.values())


def test_the_example_trains_on_files_that_appear_until_it_is_stopped(sc, raw, tmp_path, monkeypatch):
    program, convert = example("mnist_streaming"), example("mnist_data_setup")
    folder, token, clusters, start = tmp_path / "incoming", tmp_path / "token", [], TFCluster.run
    folder.mkdir()
    monkeypatch.setattr(TFCluster, "run", lambda *a, **k: clusters.append(start(*a, **k)) or clusters[0])
    flags = ("--folder", f"file:{folder}", "--export_dir", tmp_path / "model", "--token_file", token)
    running = threading.Thread(target=program.run, args=(sc, program.arguments(list(map(str, flags)))))
    running.start()
    wait_until(lambda: StreamingContext.getActive() is not None or not running.is_alive(), 60, "the stream")
    digits = convert.digits(raw, "train")
    for i in range(4):
        file = tmp_path / f"{i}.csv"
        file.write_text("".join(convert.csv(d) + "\n" for d in digits[i * 3000 : (i + 1) * 3000]))
        file.rename(folder / file.name)
        wait_until(lambda: taken(clusters[0]) == (i + 1) * 3000 or not running.is_alive(), 60, "its rows")  # noqa: B023
    asked = stop(clusters[0].cluster_meta["server_addr"], token.read_text())
    wait_until(lambda: StreamingContext.getActive() is None, 60, "the end of the stream")
    seconds = time.monotonic() - asked
    running.join(60)
    print(f"the stream ended {seconds:.2f} s after it was asked to")
    assert seconds <= 15 and not running.is_alive()  # one or two, where nothing else runs
    assert token.stat().st_mode & 0o777 == 0o600
    model, pixels = (
        tf.saved_model.load(tmp_path / "model"),
        tf.constant([list(p) for p, _ in digits[:1000]], tf.float32),
    )
    assert sum(tf.argmax(model.serve(pixels), 1).numpy() == [label for _, label in digits[:1000]]) >= 800
    assert all_gone(5), nodes_running()


def test_a_program_that_wants_no_more_rows_ends_the_stream(sc, seen):
    def few(args, ctx):
        feed = ctx.get_data_feed()
        rows = feed.next_batch(50)
        feed.terminate()
        pathlib.Path(args["to"], f"{ctx.executor_id}.json").write_text(json.dumps(rows))

    stream = StreamingContext(sc, 0.5)
    rows = stream.queueStream([sc.parallelize(range(i * 100, (i + 1) * 100), 2) for i in range(200)])
    cluster = TFCluster.run(sc, few, {"to": seen.folder}, 1, 0, input_mode=TFCluster.InputMode.SPARK)
    cluster.train(rows)
    stream.start()
    began = time.monotonic()
    cluster.shutdown(stream)
    assert time.monotonic() - began < 30  # the queue has rows for 100 seconds
    assert len(seen()["0.json"]) == 50 and StreamingContext.getActive() is None


def test_a_stream_that_fails_is_ended_with_its_error(sc, seen):
    def damaged(i):
        raise ValueError(f"row {i} is damaged")

    def waits(args, ctx):
        ctx.get_data_feed().next_batch(1)
        pathlib.Path(args["to"], "0.json").write_text("1")

    stream = StreamingContext(sc, 0.5)
    rows = stream.queueStream([sc.parallelize(range(10), 2) for _ in range(200)]).map(damaged)
    cluster = TFCluster.run(sc, waits, {"to": seen.folder}, 1, 0, input_mode=TFCluster.InputMode.SPARK)
    cluster.train(rows)
    stream.start()
    began = time.monotonic()
    with pytest.raises(Exception, match="row . is damaged"):
        cluster.shutdown(stream)
    assert StreamingContext.getActive() is None and time.monotonic() - began < 60
    assert seen() == {} and all_gone(15), nodes_running()


def test_an_error_of_the_program_ends_a_stream_and_is_what_the_user_reads(sc, seen):
    def fails(args, ctx):
        ctx.get_data_feed().next_batch(20)
        raise ValueError("the model exploded")

    stream = StreamingContext(sc, 0.5)
    rows = stream.queueStream([sc.parallelize(range(10), 2) for _ in range(200)])
    cluster = TFCluster.run(sc, fails, {}, 1, 0, input_mode=TFCluster.InputMode.SPARK)
    cluster.train(rows)
    stream.start()
    with pytest.raises(Exception) as failed:
        cluster.shutdown(stream)
    said = str(failed.value)
    assert said.startswith("node 0 (worker:0") and "the model exploded" in said and "Py4J" not in said, said
    assert StreamingContext.getActive() is None and all_gone(15), nodes_running()
