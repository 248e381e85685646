"""The program com.yahoo.tensorflowonspark.Inference as a user types it: TFRecords and a SavedModel that TensorFlow
wrote, lines of JSON, compared with what TensorFlow's Python answers to the same rows.
"""

import base64
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
from tensorflow_session import jar, tf, various  # noqa: F401  fixture

from conftest import ROOT

COUNT = 250
PROGRAM, JAVA = (os.environ.get(name) for name in ("CREMA_TENSORFLOW_JAR", "TENSORFLOW_JAVA"))
pytestmark = pytest.mark.skipif(not (PROGRAM and JAVA), reason="CREMA_TENSORFLOW_JAR and TENSORFLOW_JAVA are not set")


def submit(*flags, java=True, master="local[2]"):
    jars = [jar(), *(map(str, sorted(pathlib.Path(JAVA).glob("*.jar"))) if java else [])]
    quiet = f"-Dlog4j2.configurationFile=file:{ROOT}/scripts/log4j2-quiet.properties"
    home = os.environ.get("SPARK_HOME", ROOT / ".venv/spark-home")
    command = [f"{home}/bin/spark-submit", "--master", master, "--conf", "spark.ui.enabled=false"]
    command += ["--driver-java-options", quiet, "--jars", ",".join(jars)]
    command += ["--class", "com.yahoo.tensorflowonspark.Inference", PROGRAM, *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Three files of Examples; the rows of `typed`'s two inputs, and a name."""
    folder = tmp_path_factory.mktemp("records")
    for part in range(3):
        with tf.io.TFRecordWriter(f"{folder}/part-{part}.tfrecord") as out:
            for n in range(part, COUNT, 3):
                feature = {
                    "n": tf.train.Feature(int64_list=tf.train.Int64List(value=[n])),
                    "point": tf.train.Feature(float_list=tf.train.FloatList(value=[n / 8, 1 - n])),
                    "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"\xff%d" % n])),
                }
                out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return str(folder)


def test_inference_from_records_to_json(records, various, tmp_path):
    outputs = ["score", "cube", "u8", "flag", "text", "texts"]
    code, _, said = submit(
        *("--export_dir", various, "--signature", "typed", "--input", records, "--output", f"{tmp_path}/out"),
        *("--schema_hint", "struct<name:binary,n:bigint>", "--batch_size=20", "--pass_through", "n,name"),
        *("--input_mapping", '{"point": "x", "n": "id"}', "--binary_outputs", "out_texts"),
        *("--output_mapping", json.dumps({name: f"out_{name}" for name in outputs})),
        master="local-cluster[2,1,1024]",  # executors are processes of their own
    )
    assert code == 0, said[-3000:]
    files = sorted((tmp_path / "out").glob("part-*"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    ids = [row["n"] for row in rows]
    assert sorted(ids) == list(range(COUNT))
    assert all(b - a == 3 for a, b in zip(ids, ids[1:]) if a % 3 == b % 3)  # in the order of their files
    points = np.array([[n / 8, 1 - n] for n in ids], np.float32)
    expected = tf.saved_model.load(various).signatures["typed"](x=tf.constant(points), id=tf.constant(ids, tf.int64))
    for name in outputs[:4]:
        assert [row[f"out_{name}"] for row in rows] == expected[name].numpy().tolist(), name
    assert [row["out_text"].encode() for row in rows] == expected["text"].numpy().tolist()
    texts = [[base64.b64decode(text) for text in row["out_texts"]] for row in rows]
    assert texts == expected["texts"].numpy().tolist()
    assert [base64.b64decode(row["name"]) for row in rows] == [b"\xff%d" % n for n in ids]


def test_inference_says_what_is_wrong(records, various, tmp_path):
    mappings = ("--input_mapping", '{"point": "x", "n": "id"}', "--output_mapping", '{"score": "s"}')
    flags = ("--export_dir", various, "--input", records, "--output", f"{tmp_path}/out")
    code, _, said = submit(*flags, *mappings, "--signature", "typed", java=False)
    assert code == 1 and "crema: error: TensorFlow Java is not on the class path (there is no class " in said
    assert "--packages org.tensorflow:tensorflow-core-api:" in said and "\tat " not in said
    code, _, said = submit(*flags, "--input_mapping", '{"point": "x"}')
    assert code == 1 and "crema: error: --output_mapping is missing\nusage: Inference --export_dir" in said
    code, out, said = submit(*flags, *mappings, "--signature", "type", "--verbose")
    assert code == 1 and "has no signature 'type'; it has binary, typed, whole" in said
    assert " |-- point: array" in out
