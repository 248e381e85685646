"""The examples as a user would type them: spark-submit on a standalone cluster, two executors, real MNIST."""

import difflib
import subprocess
import sys
import textwrap

import numpy as np
import tf_keras
from tensorflow_session import tf
from tensorflow_submit import EXAMPLES, raw, some, submit  # noqa: F401  fixtures

from conftest import ROOT


def test_convert_train_and_infer_with_a_feed(submit, some, tmp_path):
    submit("mnist_data_setup.py", "--raw", some, "--output", f"file:{tmp_path}/csv", "--format", "csv")
    model = tmp_path / "model"
    said = submit("mnist_spark.py", "--images_labels", f"file:{tmp_path}/csv/train", "--export_dir", model)
    assert "crema: node 0 (worker:0) is there (1 of 1" in said and "crema: fed 36000 rows, 36000 taken" in said
    submit(
        "mnist_spark.py",
        *("--images_labels", f"file:{tmp_path}/csv/test", "--export_dir", model, "--mode", "inference"),
        *("--cluster_size", 2, "--output", f"file:{tmp_path}/predictions"),
    )
    lines = [line for part in (tmp_path / "predictions").glob("part-*") for line in part.read_text().splitlines()]
    answers = [line.split("Label: ")[1].split(", Prediction: ") for line in lines]
    labels = (some / "t10k-labels-idx1-ubyte").read_bytes()[8:]
    assert sorted(int(a) for a, _ in answers) == sorted(labels)  # local folders are listed in no order
    assert sum(a == b for a, b in answers) >= 0.85 * len(answers)
    readmes_program_trains(submit, some, tmp_path)


def readmes_program_trains(submit, some, tmp_path):  # noqa: F811
    """README's own lines, but for the places of data and model: a part of the test above, which has made the data."""
    text = (ROOT / "README.md").read_text().split("trains, `program.py`:\n\n")[1].split("\n\nIn a checkout")[0]
    program, model = textwrap.dedent(text), tmp_path / "readme"
    for there, here in (('"mnist/train"', f'"file:{tmp_path}/csv/train"'), ('"/tmp/model"', f'"{model}"')):
        assert program.count(there) == 1, there
        program = program.replace(there, here)
    (tmp_path / "program.py").write_text(program)
    submit(tmp_path / "program.py")
    loaded = tf.saved_model.load(str(model))
    assert accuracy(lambda pixels: loaded.serve(pixels / 255), some) >= 0.8  # it is linear


def lines_of(script):
    """The lines of a program behind its docstring."""
    return (EXAMPLES / script).read_text().split('"""', 2)[2].splitlines()


def accuracy(model, raw):
    pixels = np.fromfile(raw / "t10k-images-idx3-ubyte", np.uint8, offset=16).reshape(-1, 784)
    labels = np.fromfile(raw / "t10k-labels-idx1-ubyte", np.uint8, offset=8)
    return np.mean(np.argmax(model(tf.constant(pixels, tf.float32)), axis=1) == labels)


def test_a_program_of_one_file_becomes_distributed_by_ten_lines(submit, raw, tmp_path, capsys):
    difference = difflib.ndiff(lines_of("single_file.py"), lines_of("single_file_on_spark.py"))
    changed = [line for line in difference if line[0] in "-+"]
    with capsys.disabled():
        print(f"\nsingle_file.py: {len(changed)} lines taken out or put in make it distributed, driver included")
    assert 0 < len(changed) <= 10, changed
    alone, chief = tmp_path / "alone.keras", tmp_path / "chief.keras"
    command = [sys.executable, EXAMPLES / "single_file.py", "--raw", raw, "--model", alone]
    subprocess.run(command, check=True, timeout=200, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    legacy = ["spark.executorEnv.TF_USE_LEGACY_KERAS=1"]
    submit("single_file_on_spark.py", "--raw", raw, "--model", chief, conf=legacy)
    (of_worker,) = submit.work.glob("*/app-*/*/of_worker.keras")
    trained, same = (tf_keras.models.load_model(path) for path in (chief, of_worker))
    assert accuracy(tf.keras.models.load_model(alone), raw) >= 0.9 and accuracy(trained, raw) >= 0.9
    # Each node draws weights of its own; the strategy gives all the chief's and adds the gradients of all.
    assert all(np.array_equal(a, b) for a, b in zip(trained.get_weights(), same.get_weights(), strict=True))
