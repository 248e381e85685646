"""Help, version, misspelt words, and files that are something else than expected."""

import os
import re
import resource
import subprocess

import pytest

from conftest import CREMA, crema, lenet, solver


def called(tmp_path, name, *words):
    (tmp_path / name).symlink_to(CREMA)
    return subprocess.run([tmp_path / name, *words], capture_output=True, text=True, timeout=60)


def test_help_and_version_are_commands_too():
    assert crema("help").out == crema("--help").out and crema("version").out == crema("--version").out
    assert crema("help", "train").out == crema("train", "--help").out == crema("train", "-help").out
    assert "there is no command 'trane'; did you mean train?" in crema("help", "trane").err


def test_inner_commands_stand_apart():
    groups = re.split(r"\n\n", crema("help").out)
    inner = next(g for g in groups if g.startswith("Started by other programs:"))
    assert re.findall(r"^  (\w+) ", inner, re.M) == [
        "plan",
        "coordinator",
        "worker",
        "engine",
        "score",
        "rows",
        "index",
    ]
    own = next(g for g in groups if g.startswith("Commands:"))
    assert {"train", "test", "time", "classify", "summary"} <= set(re.findall(r"^  (\w+) ", own, re.M))


def test_usage_has_the_name_of_the_program(tmp_path):
    assert "Usage: crema train [FLAGS]\n" in crema("help", "train").out
    assert "Usage: caffe test [FLAGS]\n" in called(tmp_path, "caffe", "help", "test").stdout
    assert "Usage: compute_image_mean [FLAGS]" in called(tmp_path, "compute_image_mean", "-help").stdout


@pytest.mark.parametrize("command", ["test", "time", "export", "classify", "train"])
def test_every_flag_is_listed_once(command):
    names = re.findall(r"^  (?:-h,)?-?(\w+)", crema("help", command).out.split("Usage")[1], re.M)
    assert len(names) == len(set(names)) and names.count("model") == 1, names


@pytest.mark.parametrize(
    "line,words",
    [
        (["train", "-slover", "x"], "`train` has no flag -slover; did you mean -solver?"),
        (["trian"], "there is no command 'trian'; did you mean train?"),
        (["time", "-model", "x", "-iteration=3"], "did you mean -iterations?"),
        (["time", "-logtostder"], "did you mean -logtostderr?"),
        (["train", "-quite_other", "x"], "`train` has no flag -quite_other. `crema train --help`"),
        (["train"], "-solver is required; `crema train --help`"),
        (["train", "my.prototxt"], "-solver is required; did you mean -solver my.prototxt? `crema train --help` lists"),
        (["train", "-ranks", "2"], "-solver is required; `crema train --help`"),
        (["test", "net.prototxt"], "-weights is required; `crema test --help`"),
    ],
)
def test_what_is_misspelt_is_named_with_the_nearest(line, words):
    done = crema(*line)
    assert done.code == 2 and words in done.err, done.err
    assert "coordinator" not in done.err


@pytest.fixture(scope="module")
def model(records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    solver(folder, lenet(records), max_iter=1)
    assert crema("train", "-solver", "solver.prototxt", cwd=folder).code == 0
    return folder


def test_a_file_that_is_something_else_is_told_what_it_is(model):
    weights, state = "snap_iter_1.caffemodel", "snap_iter_1.solverstate"
    trained = (
        f"{weights} is no prototxt but a trained model (.caffemodel); it goes with -weights, and the prototxt "
        "of its net with -model"
    )
    for line in (
        ["test", "-model", weights, "-weights", weights],
        ["summary", weights],
        ["time", "-model", weights],
        ["train", "-solver", weights],
    ):
        assert trained in crema(*line, cwd=model).message, line
    assert (
        f"{state} is no prototxt but the state of a solver (.solverstate); it goes with -snapshot"
        in crema("train", "-solver", state, cwd=model).message
    )
    deploy = """input: "x" input_shape { dim: 1 dim: 3 } layer { name: "r" type: "ReLU" bottom: "x" top: "y" }"""
    (model / "deploy.prototxt").write_text(deploy)
    assert crema("export", "-model", "deploy.prototxt", "-output", "net.onnx", cwd=model).code == 0
    assert "net.onnx is no prototxt but an ONNX model" in crema("summary", "net.onnx", cwd=model).message
    (model / "weights.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert "weights.h5 is no prototxt but an HDF5 file" in crema("summary", "weights.h5", cwd=model).message


@pytest.mark.parametrize(
    "text,words",
    [
        ("", "solver.prototxt says nothing; a solver names its net, base_lr, lr_policy and max_iter at least"),
        ("# later\n", "says nothing"),
        ('net: "net.prototxt" base_lr: 1', "lr_policy is not set; set it to exp, fixed,"),
    ],
)
def test_a_solver_that_says_too_little(tmp_path, text, words):
    (tmp_path / "solver.prototxt").write_text(text)
    done = crema("train", "-solver", "solver.prototxt", cwd=tmp_path)
    assert done.code == 2 and words in done.message, done.err


def test_a_memory_limit_is_named(model):
    """512 MiB of address space are too few for the stacks of so many threads."""
    limit = 512 << 20
    done = subprocess.run(
        [CREMA, "train", "-solver", "solver.prototxt", "-threads", str(4 * (os.cpu_count() or 1)), "-minloglevel", "2"],
        cwd=model,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "GLIBC_TUNABLES": ""},
        preexec_fn=lambda: (
            resource.setrlimit(resource.RLIMIT_STACK, (256 << 20,) * 2),
            resource.setrlimit(resource.RLIMIT_AS, (limit,) * 2),
        ),
    )
    assert done.returncode == 1 and "raise the memory limit of 512 MiB (ulimit -v)" in done.stderr, done.stderr


DEPLOY = """layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 200 dim: 3 dim: 227 dim: 227 } } }
layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: 20 kernel_size: 3 } }"""


def test_out_of_memory_has_a_remedy_for_deploy_nets_and_the_limit(tmp_path):
    (tmp_path / "deploy.prototxt").write_text(DEPLOY)
    limit = 400 << 20
    done = subprocess.run(
        [CREMA, "time", "deploy.prototxt", "-threads", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit,) * 2),
    )
    assert done.returncode == 1 and (
        "bytes for a blob; use a smaller batch_size (a deploy net's is the first dim of its input), or raise the "
        "memory limit of 400 MiB (ulimit -v)\n  in forward of layer 'conv' (Convolution)" in done.stderr
    ), done.stderr[-500:]


def test_a_solver_is_no_net(model):
    """The other way round: test_a_net_is_no_solver."""
    words = "solver.prototxt is a solver, and a net is needed; give the net that it names: net.prototxt"
    for line in (["test", "-weights", "w", "-model"], ["summary"], ["time"], ["export", "-output", "x.onnx", "-model"]):
        done = crema(*line, "solver.prototxt", cwd=model)
        assert done.code == 2 and words in done.message, done.err


def test_every_blob_needs_a_dataset(model):
    done = crema("extract_features", "snap_iter_1.caffemodel", "net.prototxt", "ip1,ip2", "x", 1, "lmdb", cwd=model)
    words = "crema: error: the number of blob names and dataset names must be equal (2 and 1)"
    assert done.code == 2 and words in done.message, done.err


def test_records_counts_databases_and_names_what_is_none(records, tmp_path):
    assert crema("records", records / "test_lmdb").out == "200\n"
    assert crema("records", records / "test_lmdb/data.mdb").out == "200\n"
    images, labels = records / "test-images", records / "test-labels"
    assert crema("convert_mnist_data", "-backend", "leveldb", images, labels, tmp_path / "level").code == 0
    assert crema("records", "-backend", "leveldb", tmp_path / "level").out == "200\n"
    (tmp_path / "list.txt").write_text("a.jpg 0\nb.jpg 1\n")
    for flags, words in (
        (["list.txt"], "list.txt"),
        (["level"], "level is a LevelDB, and an LMDB is wanted"),
        (["-backend", "rocks", "level"], "there is no backend 'rocks'; it is lmdb or leveldb"),
        (["none"], "there is no LMDB at none"),
    ):
        done = crema("records", *flags, cwd=tmp_path)
        assert done.code in (1, 2) and words in done.message and not done.out, done.err


def test_a_loss_that_is_nan_has_no_sign(tmp_path):
    """Log(-1), whose NaN has one on x86."""
    net = """layer { name: 'in' type: 'DummyData' top: 'x' top: 't'
      dummy_data_param { shape { dim: 2 dim: 3 } data_filler { value: -1 } } }
    layer { name: 'log' type: 'Log' bottom: 'x' top: 'y' }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'y' top: 'z' inner_product_param { num_output: 3 } }
    layer { name: 'loss' type: 'EuclideanLoss' bottom: 'z' bottom: 't' top: 'loss' }"""
    solver(tmp_path, net)
    assert "the loss is nan in iteration 0" in crema("train", "-solver", "solver.prototxt", cwd=tmp_path).message


TRAIN_VAL = """layer { name: 'data' type: 'Data' top: 'data' top: 'label' include { phase: TRAIN }
  transform_param { crop_size: 27 mean_file: 'none.binaryproto' }
  data_param { source: 'examples/imagenet/train_lmdb' batch_size: 6 backend: LMDB } }
layer { name: 'data' type: 'Data' top: 'data' top: 'label' include { phase: TEST }
  transform_param { crop_size: 27 CHANNELS }
  data_param { source: 'examples/imagenet/val_lmdb' batch_size: 5 backend: LMDB } }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'xavier' } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip'
  inner_product_param { num_output: 7 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }"""


@pytest.mark.parametrize(
    "transform,channels",
    [("mean_file: 'none.binaryproto'", 3), ("mean_value: 1 mean_value: 2", 2), ("force_gray: true", 1)],
)
def test_crop_size_stands_for_a_database_that_is_not_there(tmp_path, transform, channels):
    (tmp_path / "net.prototxt").write_text(TRAIN_VAL.replace("CHANNELS", transform))
    done = crema("summary", "-model", "net.prototxt", cwd=tmp_path)
    assert done.code == 0, done.err
    assert (
        f"layer 'data': there is no examples/imagenet/val_lmdb; its shapes are those of crop_size, {channels}x27x27"
        in done.err
    )
    assert re.search(rf"^data +Data +data 5x{channels}x27x27, label 5$", done.out, re.M), done.out
    assert re.search(rf"^conv .* {4 * channels * 9 + 4} +{5 * 4 * 25 * 25 * channels * 9:,}$", done.out, re.M), done.out
    assert "data 6x3x27x27" in crema("summary", "-model", "net.prototxt", "-phase", "TRAIN", cwd=tmp_path).out
    assert crema("draw", "-model", "net.prototxt", "-output", "net.svg", cwd=tmp_path).code == 0
    assert "data (Data)" in (tmp_path / "net.svg").read_text() and "DummyData" not in (tmp_path / "net.svg").read_text()
    # This one needs records.
    assert (
        "examples/imagenet/val_lmdb" in crema("time", "-model", "net.prototxt", "-phase", "TEST", cwd=tmp_path).message
    )


def test_export_of_a_train_val_without_its_database(tmp_path):
    text = TRAIN_VAL.replace("CHANNELS", "")
    data = (
        "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { shape { dim: 5 dim: 3 "
        "dim: 27 dim: 27 } shape { dim: 5 } } }\n"
    )
    solver(tmp_path, data + text[text.index("layer { name: 'conv'") :], max_iter=1)
    assert crema("train", "-solver", "solver.prototxt", cwd=tmp_path).code == 0
    (tmp_path / "train_val.prototxt").write_text(text)
    done = crema(
        *"export -model train_val.prototxt -weights snap_iter_1.caffemodel -output net.onnx".split(),
        cwd=tmp_path,
    )
    assert (
        done.code == 0
        and "inputs data batchx3x27x27, outputs ip batchx7" in done.out
        and done.err.count("there is no") == 1
    ), (done.out, done.err)
