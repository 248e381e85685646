"""What `make dist` lays out, and the scripts in it that bring data."""

import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import zipfile

import pytest

from conftest import ROOT, SHARED, crema, sha256

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

    def run(way, data):
        command = ["protoc", f"--{way}=caffe.{kind}", f"-I{ROOT}/proto", "caffe.proto"]
        return subprocess.run(command, input=data, capture_output=True, timeout=20, check=True).stdout

    return run("decode", run("encode", file.read_bytes())).decode()


def test_nets_have_their_layers_and_solvers_name_nets_that_are_there(dist):
    # data 2, convolutions, ReLU, pooling, normalisation, fully connected, dropout, accuracy and loss 2
    layers = {
        "bvlc_reference_net": 2 + 5 + 7 + 3 + 2 + 3 + 2 + 2,
        "caffenet_train_net": 2 + 5 + 7 + 3 + 2 + 3 + 2 + 2,
        "cifar10_quick_train_test": 2 + 3 + 3 + 3 + 2 + 2,
        "lenet_memory_train_test": 2 + 2 + 1 + 2 + 2 + 2,
        "lenet_dataframe_train_test": 2 + 2 + 1 + 2 + 2 + 2,
        "lenet_cos_train_test": 2 + 2 + 1 + 2 + 2 + 2,
        # data 2, silence, seven layers that are frozen or not, fc8, ReLU, pooling, normalisation, dropout, table, LSTM
        # 2 + 2, predict 2, loss, accuracy
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


RECORD = 1 + 3072


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    """A folder with six small batches of CIFAR-10's form, deep in it."""
    folder, numbers = tmp_path_factory.mktemp("cifar"), random.Random(1)
    (folder / "deep/in").mkdir(parents=True)
    for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"):
        records = (bytes([numbers.randrange(10)]) + numbers.randbytes(RECORD - 1) for _ in range(3))
        (folder / "deep/in" / name).write_bytes(b"".join(records))
    return folder


def set_up_cifar10(dist, source, to):
    command, environment = [dist / "scripts/setup-cifar10.sh", source], {**os.environ, "CREMA_DATA_DIR": str(to)}
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("archive", [False, True])
def test_setup_cifar10_gives_databases_and_the_mean_pixel_by_pixel(dist, batches, tmp_path, archive):
    """The mean file is a BlobProto with the old dimensions, with the bytes that protoc encodes it to."""
    source = shutil.make_archive(tmp_path / "cifar", "gztar", batches) if archive else batches
    for _ in range(2):  # existing files are replaced
        done = set_up_cifar10(dist, source, tmp_path / "data")
        assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == [
        "cifar10_test_lmdb",
        "cifar10_train_lmdb",
        "mean.binaryproto",
    ]
    counts = [crema("records", tmp_path / f"data/cifar10_{part}_lmdb").out.strip() for part in ("train", "test")]
    assert counts == ["15", "3"]
    train = b"".join((batches / f"deep/in/data_batch_{i}.bin").read_bytes() for i in range(1, 6))
    means = [sum(train[r * RECORD + 1 + p] for r in range(15)) / 15 for p in range(RECORD - 1)]
    values = struct.unpack("<3072f", struct.pack("<3072f", *means))
    text = "num: 1 channels: 3 height: 32 width: 32 " + " ".join(f"data: {v:.9g}" for v in values)
    command = ["protoc", "--encode=caffe.BlobProto", f"-I{ROOT}/proto", "caffe.proto"]
    encoded = subprocess.run(command, input=text.encode(), capture_output=True, timeout=20, check=True).stdout
    assert (tmp_path / "data/mean.binaryproto").read_bytes() == encoded


def test_setup_cifar10_says_what_is_missing_or_wrong_and_leaves_nothing(dist, batches, tmp_path):
    shutil.copytree(batches, tmp_path / "few")
    (tmp_path / "few/deep/in/data_batch_3.bin").unlink()
    for source, words in (
        ("/nowhere", "/nowhere is not there; name a folder or an archive of CIFAR-10's binary version"),
        (tmp_path / "few", f"{tmp_path}/few lacks data_batch_3.bin; take CIFAR-10's binary version"),
    ):
        done = set_up_cifar10(dist, source, tmp_path / "data")
        assert done.returncode == 1 and words in done.stderr, done.stderr
        assert not list((tmp_path / "data").iterdir())
    (tmp_path / "few/deep/in/data_batch_3.bin").write_bytes(bytes(RECORD - 1))
    done = set_up_cifar10(dist, tmp_path / "few", tmp_path / "data")
    assert done.returncode == 1 and f"{tmp_path}/few/data_batch_3.bin has 3072 bytes, no multiple" in done.stderr
    assert not list((tmp_path / "data").iterdir())
