"""The executable from a user's view: help, log lines, Caffe's known results, an empty root directory."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import CREMA, MNIST, RECORDED, ROOT, crema, lenet, others, solver


def test_help_and_version_help():
    assert re.fullmatch(r"crema \d+\.\d+\.\d+\n", crema("--version").out)
    text = crema("--help").out
    for command in ("train", "test", "time", "device_query", "convert_mnist_data", "coordinator", "worker"):
        assert re.search(rf"^ +{command} ", text, re.M), text
        done = crema(command, "--help")
        assert done.code == 0 and "Usage" in done.out
    assert "-solver" in crema("train", "--help").out
    assert crema("device_query").out.startswith("CPU: ")


def test_static_small_and_alone(tmp_path, records):
    assert os.path.getsize(CREMA) <= 25 << 20
    assert "not a dynamic executable" in subprocess.run(["ldd", CREMA], capture_output=True, text=True).stderr
    if os.geteuid() != 0:
        pytest.skip("SKIPPED: chroot needs root")
    shutil.copy(CREMA, tmp_path / "crema")
    shutil.copytree(records / "train_lmdb", tmp_path / "train_lmdb")
    shutil.copytree(records / "test_lmdb", tmp_path / "test_lmdb")
    net = lenet(records).replace(str(records), "")
    solver(tmp_path, net)
    done = subprocess.run(
        ["chroot", str(tmp_path), "/crema", "train", "-solver", "solver.prototxt"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "snap_iter_20.caffemodel").exists()
    done = subprocess.run(
        ["chroot", str(tmp_path), "/crema", "train", "-solver", "solver.prototxt", "-ranks", "2", "-workers", "2"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
    )
    assert done.returncode == 0 and done.stdout == "", done.stderr[-2000:]


def test_log_lines_are_caffes(records, tmp_path):
    solver(tmp_path, lenet(records), extra="test_iter: 10; test_interval: 10")
    log = crema("train", "-solver", "solver.prototxt", cwd=tmp_path).err
    prefix = r"^I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \S+:\d+\] "
    for line in (
        r"Initializing net from parameters: ?",
        r"The NetState phase \(0\) differed from the phase \(1\) specified by a rule in layer data",
        r"Creating Layer conv1",
        r"conv1 <- data",
        r"conv1 -> conv1",
        r"Setting up conv1",
        r"Top shape: 8 20 24 24 \(92160\)",
        r"Memory required for data: \d+",
        r"conv1 needs backward computation\.",
        r"data does not need backward computation\.",
        r"This network produces output accuracy",
        r"Network initialization done\.",
        r"Solving LeNet",
        r"Learning Rate Policy: inv",
        r"Iteration 0, Testing net \(#0\)",
        r"    Test net output #0: accuracy = 0\.\d+",
        r"    Test net output #1: loss = \d\.\d+ \(\* 1 = \d\.\d+ loss\)",
        r"Iteration 10 \(\d+\.?\d* iter/s, \d+\.\d+s/10 iters\), loss = \d\.\d+",
        r"    Train net output #0: loss = \d\.\d+ \(\* 1 = \d\.\d+ loss\)",
        r"Iteration 10, lr = 0\.00\d+",
        r"Snapshotting to binary proto file snap_iter_20\.caffemodel",
        r"Snapshotting solver state to binary proto file snap_iter_20\.solverstate",
        r"Optimization Done\.",
    ):
        assert re.search(prefix + line + "$", log, re.M), line
    assert "\r" not in log and "\033" not in log, "a file gets plain lines"


def test_time_prints_every_layer(records, tmp_path):
    solver(tmp_path, lenet(records))
    done = crema("time", "-model", "net.prototxt", "-iterations", 3, cwd=tmp_path)
    assert done.code == 0, done.err
    for line in (
        "conv1\tforward:",
        "conv1\tbackward:",
        "Average Forward pass:",
        "Average Backward pass:",
        "Total Time:",
    ):
        assert line.replace("\t", " ") in re.sub(r"[\t ]+", " ", done.err), done.err[-2000:]


DEPLOY = """input: "x" input_shape { dim: 4 dim: 3 dim: 64 dim: 64 }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
  convolution_param { num_output: 32 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 64 weight_filler { type: "xavier" } } }
layer { name: "best" type: "ArgMax" bottom: "ip" top: "best" }
"""


@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_time_goes_backwards_without_a_loss(tmp_path, phase):
    """As in Caffe, layers of a deploy net compute the gradients of their parameters. A layer without gradient (Caffe
    aborts there) computes nothing.
    """
    (tmp_path / "deploy.prototxt").write_text(DEPLOY)
    done = crema("time", "-model", "deploy.prototxt", "-iterations", 3, "-phase", phase, cwd=tmp_path)
    assert done.code == 0, done.err
    ms = {
        (layer, way): float(t) for layer, way, t in re.findall(r"\] +(\w+)\t(forward|backward): (\S+) ms\.", done.err)
    }
    assert len(ms) == 10 and min(ms["conv", "backward"], ms["ip", "backward"]) > 0.01, ms
    whole = {
        way: float(re.search(rf"Average {way} pass: (\S+) ms", done.err).group(1)) for way in ("Forward", "Backward")
    }
    for way, t in whole.items():
        assert t == pytest.approx(sum(v for (_, w), v in ms.items() if w == way.lower()), rel=1e-3), (way, ms)
    assert float(re.search(r"Average Forward-Backward: (\S+) ms", done.err).group(1)) == pytest.approx(
        sum(whole.values()), rel=1e-3
    )


def test_caffes_own_snapshots_score_as_in_caffe(tmp_path):
    """Models in both formats over 10,000 digits, to the digits that `caffe test` prints; and others' snapshots of
    LeNet.
    """
    runs = []
    for folder in (RECORDED / "lenet", RECORDED / "quick"):
        said = dict(re.findall(r"^(\S+: \w+) = (\S+)$", (folder / "log.txt").read_text(), re.M))
        runs += [
            (folder / "train_test.prototxt", folder / model, said[f"{model}: accuracy"], float(said[f"{model}: loss"]))
            for model in sorted({key.split(":")[0] for key in said})
        ]
    if files := others(
        *(
            f"caffe_runs/lenet_mnist/{f}"
            for f in (
                "lenet_train_test.prototxt",
                "lenet_basic_iter_5000.caffemodel",
                "lenet_basic_iter_10000.caffemodel",
            )
        )
    ):
        runs += [(files[0], files[1], "0.9903", 0.0300311), (files[0], files[2], "0.9918", 0.0273357)]
    assert len(runs) in (4, 6)
    shutil.copy(RECORDED / "quick/mean.binaryproto", tmp_path)
    shutil.copytree(MNIST / "test_lmdb", tmp_path / "test_lmdb")
    for net, model, accuracy, loss in runs:
        (tmp_path / "net.prototxt").write_text(
            re.sub(r'source: "\S*test_lmdb"', 'source: "test_lmdb"', net.read_text())
        )
        done = crema("test", "-model", "net.prototxt", "-weights", model, "-iterations", 100, cwd=tmp_path)
        assert done.code == 0, done.err
        assert re.search(rf"\] accuracy = {accuracy}$", done.err, re.M), (model, done.err[-500:])
        assert abs(float(re.search(r"\] loss = (\S+) ", done.err.splitlines()[-1]).group(1)) - loss) < 1e-5 * loss, (
            model,
            done.err[-500:],
        )


def test_quickstart_without_root_prints_the_line_to_type(tmp_path):
    """A database of apt that lacks our packages, as seen by a user who is not root."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("SKIPPED: needs root to become somebody else")
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "dpkg-query").write_text("#!/bin/sh\nexit 1\n")
    (fake / "dpkg-query").chmod(0o755)
    os.chmod(tmp_path, 0o755)
    copy = tmp_path / "clone"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("build", "data", ".venv", ".git", "target"))
    os.system(f"chown -R 65534:65534 {copy}; chmod -R a+rX {tmp_path}")
    for parent in tmp_path.parents:
        if str(parent).startswith("/tmp/pytest"):
            os.chmod(parent, 0o755)
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(copy / "quickstart")],
        capture_output=True,
        text=True,
        env={"PATH": f"{fake}:{os.environ['PATH']}", "HOME": "/nonexistent"},
        timeout=60,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(r"^  sudo apt-get install -y --no-install-recommends .*cmake", done.stdout, re.M), done.stdout
