"""What `make dist` lays out, and the scripts in it that bring data."""

import importlib.util
import os
import pathlib
import random
import re
import struct
import subprocess
import zipfile

import pytest

from conftest import ROOT, SHARED, crema, others, sha256

JAR = pathlib.Path(os.environ.get("CREMA_JAR", ROOT / "spark/target/3.5_2.12/crema-spark-3.5_2.12-0.1.0.jar"))
NAMES = [
    "bvlc_reference_net",
    "bvlc_reference_solver",
    "caffenet_train_net",
    "cifar10_quick_solver",
    "cifar10_quick_train_test",
    "lenet_cos_solver",
    "lenet_cos_train_test",
    "lenet_dataframe_solver",
    "lenet_dataframe_train_test",
    "lenet_memory_solver",
    "lenet_memory_train_test",
    "lrcn_cos",
    "lrcn_solver",
    "lrcn_word_to_preds.deploy",
    "lstm_deploy",
]


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist") / "caffe on spark"
    subprocess.run([str(ROOT / "scripts/dist"), str(folder), str(JAR)], check=True, timeout=60)
    return folder


def test_names_and_places_are_caffeonsparks(dist):
    assert sha256(dist / "caffe-grid/target/caffe-grid-0.1-SNAPSHOT-jar-with-dependencies.jar") == sha256(JAR)
    assert sorted(p.name for p in (dist / "data").iterdir() if p.is_file()) == [f"{n}.prototxt" for n in NAMES]
    labels = dict(line.split() for line in (dist / "data/images/labels.txt").read_text().splitlines())
    assert sorted(labels) == sorted(p.name for p in (dist / "data/images").glob("*.jpg")) and set(labels.values()) == {
        "0",
        "1",
    }
    names = zipfile.ZipFile(dist / "caffe-grid/target/caffeonsparkpythonapi.zip").namelist()
    assert {"com/yahoo/ml/caffe/CaffeOnSpark.py", "examples/ImageCaption.py", "examples/DLDemo.ipynb"} <= set(names), (
        names
    )
    assert subprocess.run([dist / "bin/crema", "--version"], capture_output=True, timeout=20).returncode == 0
    assert b"kernels" in subprocess.run([dist / "bin/caffe", "device_query"], capture_output=True, timeout=20).stdout
    assert (
        b"-resize_height"
        in subprocess.run([dist / "bin/convert_imageset", "--help"], capture_output=True, timeout=20).stdout
    )


def message(kind, file):
    """The text as protoc prints it after a round trip through the binary form; a field that caffe.proto lacks fails."""
    run = lambda way, data: subprocess.run(
        ["protoc", f"--{way}=caffe.{kind}", f"-I{ROOT}/proto", "caffe.proto"],
        input=data,
        capture_output=True,
        timeout=20,
        check=True,
    )
    return run("decode", run("encode", file.read_bytes()).stdout).stdout.decode()


def test_nets_have_their_layers_and_solvers_name_nets_that_are_there(dist):
    # data 2, convolutions, ReLU, pooling, normalisation, fully connected, dropout, accuracy and loss 2
    layers = {
        "bvlc_reference_net": 2 + 5 + 7 + 3 + 2 + 3 + 2 + 2,
        "caffenet_train_net": 2 + 5 + 7 + 3 + 2 + 3 + 2 + 2,
        "cifar10_quick_train_test": 2 + 3 + 3 + 3 + 2 + 2,
        "lenet_memory_train_test": 2 + 2 + 1 + 2 + 2 + 2,
        "lenet_dataframe_train_test": 2 + 2 + 1 + 2 + 2 + 2,
        "lenet_cos_train_test": 2 + 2 + 1 + 2 + 2 + 2,
        # data 2, silence, seven layers that are frozen or not, fc8, ReLU, pooling, normalisation, dropout, table, LSTM 2 + 2, predict 2, loss, accuracy
        "lrcn_cos": 2 + 1 + 7 * 2 + 1 + 7 + 3 + 2 + 2 + 1 + 4 + 2 + 2,
        "lstm_deploy": 5 + 7 + 3 + 2 + 3 + 2 + 1,
        "lrcn_word_to_preds.deploy": 1 + 2 + 1 + 1,
    }
    for name, count in layers.items():
        assert message("NetParameter", dist / f"data/{name}.prototxt").count("\nlayer {") == count, name
    for name in set(NAMES) - set(layers):
        net = re.search(r'^net: "(.*)"$', message("SolverParameter", dist / f"data/{name}.prototxt"), re.M).group(1)
        assert (dist / "data" / net).exists(), name


def test_setup_mnist_from_any_folder_gives_the_databases_that_the_nets_name(dist, tmp_path):
    folder = next(
        (
            f
            for f in (os.environ.get("MNIST_DIR"), SHARED / "mnist", ROOT / "data/mnist/raw")
            if f and any(pathlib.Path(f).glob("train-images-idx3-ubyte*"))
        ),
        None,
    )
    if folder is None:
        pytest.skip("no copy of MNIST's idx files (MNIST_DIR)")
    environment = {**os.environ, "MNIST_DIR": str(folder), "CREMA_DATA_DIR": str(tmp_path / "d")}
    done = subprocess.run(
        [dist / "scripts/setup-mnist.sh"], cwd="/", env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert [crema("records", tmp_path / f"d/mnist_{part}_lmdb").out.strip() for part in ("train", "test")] == [
        "60000",
        "10000",
    ]


@pytest.fixture(scope="module")
def cifar10():
    spec = importlib.util.spec_from_file_location("cifar10", ROOT / "scripts/cifar10.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_mean_of_cifar10_is_the_mean_pixel_by_pixel(cifar10):
    records = random.Random(1).randbytes(7 * 3073)
    found = cifar10.mean(records)
    for p in range(3072):
        assert found[p] == sum(records[r * 3073 + 1 + p] for r in range(7)) / 7


def test_a_mean_file_has_the_bytes_that_protoc_and_caffes_own_tool_write(cifar10):
    """A BlobProto with the old dimensions, as protoc encodes it; and shared data cifar10/mean.binaryproto, by Caffe's compute_image_mean, whose values,
    written again, must give its bytes."""
    values = struct.unpack("<3072f", struct.pack("<3072f", *(random.Random(3).uniform(0, 255) for _ in range(3072))))
    text = "num: 1 channels: 3 height: 32 width: 32 " + " ".join(f"data: {v:.9g}" for v in values)
    encoded = subprocess.run(
        ["protoc", "--encode=caffe.BlobProto", f"-I{ROOT}/proto", "caffe.proto"],
        input=text.encode(),
        capture_output=True,
        timeout=20,
        check=True,
    ).stdout
    assert cifar10.blob(values) == encoded
    for golden in others("cifar10/mean.binaryproto"):
        data = golden.read_bytes()
        assert cifar10.blob(struct.unpack("<3072f", data[-4 * 3072 :])) == data
