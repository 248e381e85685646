"""Paths as TensorFlow takes them, which files are a node's, and what is said without an executor;
tests/spark/test_tensorflow_yarn.py copies them.
"""

import getpass
import os
import pathlib
import sys
import time
import types

import pytest

import spark_session  # noqa: F401  puts python/ on the path

from tensorflowonspark import TFNode, TFSparkNode, _hadoop


@pytest.fixture
def parts(tmp_path):
    (tmp_path / "part-folder").mkdir()
    for i in range(5):
        (tmp_path / f"part-{i}").touch()
    return tmp_path


def context(job, index, spec):
    nodes = {name: [f"host:{i}" for i in range(count)] for name, count in spec.items()}
    return TFSparkNode.TFNodeContext(3, job, index, nodes)


def names(paths):
    return [pathlib.Path(path).name for path in paths]


@pytest.mark.parametrize(
    ("job", "index", "spec", "expected"),
    [
        ("chief", 0, {"ps": 1, "worker": 2, "chief": 1}, [0, 3]),
        ("worker", 0, {"ps": 1, "worker": 2, "chief": 1}, [1, 4]),
        ("worker", 1, {"ps": 1, "worker": 2, "chief": 1}, [2]),
        ("evaluator", 0, {"chief": 1, "worker": 1, "evaluator": 1}, [0, 1, 2, 3, 4]),
        ("worker", 1, {"worker": 2}, [1, 3]),
    ],
)
def test_nodes_that_train_take_a_share_each(parts, job, index, spec, expected):
    found = context(job, index, spec).local_files(f"{parts}/part-?*")
    assert names(found) == [f"part-{i}" for i in expected]


def test_instances_without_a_cluster_take_a_share_each(parts):
    ctx = TFSparkNode.TFNodeContext()
    ctx.worker_num, ctx.num_workers = 1, 3  # as TFParallel makes it
    assert names(ctx.local_files(f"file://{parts}/part-[0-4]")) == ["part-1", "part-4"]
    assert names(TFNode.local_files(ctx, f"{parts}/part-[0-4]", (2, 4))) == ["part-2"]


def test_too_few_files_are_refused(parts):
    with pytest.raises(FileNotFoundError, match=r"part-\* matches 5 file\(s\) and 6 node\(s\) take a share each"):
        context("worker", 0, {"worker": 6}).local_files(f"{parts}/part-*")
    with pytest.raises(FileNotFoundError, match="there is no such file or folder on this machine"):
        TFNode.upload(types.SimpleNamespace(defaultFS="hdfs://h"), str(parts / "none"), "/there")


def test_other_file_systems_need_an_executor():
    with pytest.raises(OSError, match="there is no executor above process"):
        context("worker", 0, {"worker": 1}).local_files("hdfs://nowhere:1/part-*")


def run(code, silence):
    return _hadoop._run([sys.executable, "-c", code], dict(os.environ), None, silence)


def test_a_copy_takes_as_long_as_it_moves_bytes(tmp_path):
    """Four times the silence in all; its client's own lines about waiting are no copy."""
    code = (
        "import os, sys, time\n"
        "f = open(sys.argv[1], 'wb', 0)\n"
        "for _ in range(16): f.write(bytes(8192)); time.sleep(0.5)\n"
        "print('done'); print('and said', file=sys.stderr); sys.exit(3)"
    )
    started = time.monotonic()
    command = [sys.executable, "-c", code, str(tmp_path / "copy")]
    assert _hadoop._run(command, dict(os.environ), str(tmp_path), 2) == (3, "done\n", "and said\n")
    assert time.monotonic() - started >= 8
    (tmp_path / "pid").touch()
    waits = (
        f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "while True: print('still waiting', flush=True); time.sleep(0.1)"
    )
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="it has moved nothing for 2 s, and was ended"):
        run(waits, 2)
    assert time.monotonic() - started < 20
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text()}")


def test_what_is_taken_over_of_an_executors_options():
    line = "-server -Xmx896m -Djava.io.tmpdir=/t -Dcom.sun.management.port=1 --add-opens=java.base/a=ALL -cp /a/*"
    options = _hadoop._options([*line.split(), "org.Main", "-Dnot=taken"])
    assert options == ["-Djava.io.tmpdir=/t", "--add-opens=java.base/a=ALL", "-cp", "/a/*"]


@pytest.mark.parametrize(
    ("path", "on_hdfs", "on_viewfs", "local", "elsewhere"),
    [
        ("/data/a", "hdfs://nn:8020/data/a", "viewfs://all/data/a", "file:///data/a", "s3a://bucket/data/a"),
        (
            "a/b",
            "hdfs://nn:8020/user/{me}/a/b",
            "viewfs://all/user/{me}/a/b",
            "file:///work/here/a/b",
            "s3a://bucket/a/b",
        ),
        *[
            (p, p, p, p, p)
            for p in ("hdfs://other/a", "file:///a", "gs://bucket/a", "abfss://box@account/a", "s3a://b/a")
        ],
        *[(p, p, p, p, p) for p in ("wasbs://a/b", "cosn://a/b", "obs://a/b", "viewfs:///a", "webhdfs://h:1/a")],
    ],
)
def test_paths_of_every_file_system(path, on_hdfs, on_viewfs, local, elsewhere):
    systems = {"hdfs://nn:8020": on_hdfs, "viewfs://all": on_viewfs, "file://": local, "s3a://bucket": elsewhere}
    for default, expected in systems.items():
        ctx = types.SimpleNamespace(defaultFS=default, working_dir="/work/here")
        assert TFNode.hdfs_path(ctx, path) == expected.format(me=getpass.getuser()), default
