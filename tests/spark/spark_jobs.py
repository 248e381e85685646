"""A CaffeOnSpark job on small records: its files, its command, what it wrote."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from conftest import ROOT, sha256

SPARK = pathlib.Path(os.environ.get("SPARK_HOME", ROOT / ".venv/spark-home"))
JAR = os.environ.get("CREMA_JAR", str(ROOT / "spark/target/3.5_2.12/crema-spark-3.5_2.12-0.1.0.jar"))
ENVIRONMENT = {**os.environ, "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1"}
FILES = ("lenet_memory_solver.prototxt", "lenet_memory_train_test.prototxt")


DATA_FILES = ("lenet_solver.prototxt", "lenet_train_test.prototxt")  # the same, with stock Caffe's Data layers


@pytest.fixture
def job(records, tmp_path):
    """The examples' files on small records, as a user has them in the working folder."""
    return write_job(records, tmp_path)


def write_job(records, folder):
    for name in FILES + DATA_FILES:
        text = (ROOT / "examples" / name).read_text()
        for part in ("train", "test"):
            text = re.sub(rf'source: "\S*mnist_{part}_lmdb/?"', f'source: "{records}/{part}_lmdb"', text)
        text = text.replace("batch_size: 64", "batch_size: 8").replace("batch_size: 100", "batch_size: 20")
        for field, value in (
            ("max_iter", 30),
            ("test_iter", 10),
            ("test_interval", 10),
            ("snapshot", 20),
            ("display", 10),
        ):
            text = re.sub(rf"^{field}: .*", f"{field}: {value}", text, flags=re.M)
        (folder / name).write_text(text)
    return folder


def command(folder, master, *flags, conf=(), model="model", output="out", files=FILES, devices=1):
    return [
        str(SPARK / "bin/spark-submit"),
        "--master",
        master,
        "--files",
        ",".join(files),
        *"--conf spark.ui.enabled=false --conf spark.ui.showConsoleProgress=false".split(),
        *[w for c in conf for w in ("--conf", c)],
        "--driver-java-options",
        f"-Dlog4j2.configurationFile=file:{ROOT}/scripts/log4j2-quiet.properties",
        "--class",
        "com.yahoo.ml.caffe.CaffeOnSpark",
        JAR,
        "-conf",
        files[0],
        *f"-devices {devices} -connection ethernet -model".split(),
        model,
        "-output",
        output,
        *map(str, flags),
    ]


def submit(folder, master, *flags, timeout=240, env=ENVIRONMENT, **more):
    return subprocess.run(
        command(folder, master, *flags, **more), cwd=folder, env=env, capture_output=True, text=True, timeout=timeout
    )


def rows(folder):
    return [json.loads(line) for part in sorted(folder.glob("part-*")) for line in part.read_text().splitlines()]


TRAIN = ("-train", "-features", "accuracy,loss", "-label", "label")


def trained(folder):
    """Model and published snapshots."""
    return {
        name: sha256(folder / name)
        for name in sorted(p.name for p in folder.glob("*"))
        if "model" in name or "solverstate" in name
    }
