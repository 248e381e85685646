"""Command lines as in scripts for Caffe: gflags' forms, glog's flags, empty values."""

import os
import subprocess

import pytest

import conftest
from conftest import CREMA, crema

SMALL = """layer { name: 'in' type: 'DummyData' top: 'x' top: 't'
  dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 1 } } include { stage: 'here' } }
layer { name: 'in' type: 'DummyData' top: 'x' top: 't'
  dummy_data_param { shape { dim: 2 dim: 5 } shape { dim: 2 dim: 1 } } exclude { stage: 'here' } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 1 } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }"""


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.prototxt").write_text(SMALL)
    return tmp_path / "net.prototxt"


def test_an_empty_value_is_empty(net):
    for words in (
        ["-stage=", "-iterations=3"],
        ["-stage=", "-iterations", "3"],
        ["-iterations=3", "-stage="],
        ["--stage=", "--iterations=3"],
    ):
        r = crema("time", "-model", net, *words)
        assert r.code == 0, r.err
        assert "Testing for 3 iterations." in r.err, r.err
        assert "2 5 (10)" in r.err


def test_a_value_with_the_flag(net):
    assert "2 3 (6)" in crema("time", f"-model={net}", "-stage=here", "-iterations=1").err


@pytest.mark.parametrize(
    "words",
    [
        ["-logtostderr=1"],
        ["-logtostderr"],
        ["--alsologtostderr"],
        ["-log_dir=/tmp"],
        ["-log_dir", "/tmp"],
        ["-v=1"],
        ["-nologtostderr"],
        ["-stderrthreshold", "0"],
    ],
)
def test_glogs_flags_do_no_harm(net, words):
    for line in (
        ["time", *words, "-model", net, "-iterations", "1"],
        ["time", "-model", net, "-iterations", "1", *words],
        [*words, "time", "-model", net, "-iterations", "1"],
    ):
        r = crema(*line)
        assert r.code == 0 and "Average Forward pass" in r.err, (line, r.err)


def test_minloglevel_is_obeyed(net):
    for words in (["-minloglevel", "2"], ["--minloglevel=2"]):
        r = crema("time", "-model", net, "-iterations", 1, *words)
        assert r.code == 0 and r.err == ""


def test_flags_may_stand_before_the_command(net):
    r = crema("-model", net, "-iterations=1", "time")
    assert r.code == 0 and "Average Forward pass" in r.err


def test_unknown_flags_are_refused(net):
    r = crema("time", "-model", net, "-logtostder")
    assert r.code == 2 and "logtostder" in r.err


def test_numbers_that_do_not_fit_are_refused(net):
    for value in ("3000000000", "ten"):
        r = crema("time", "-model", net, "-iterations", value)
        assert r.code == 2 and f"-iterations = {value} is not a number, or is too large" in r.err, r.err


def test_what_cannot_be_printed_is_an_error(net):
    if not os.path.exists("/dev/full"):
        pytest.skip("SKIPPED: no /dev/full")
    with open("/dev/full", "w") as full:
        r = subprocess.run(
            [conftest.CREMA, "summary", "-model", net], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert r.returncode == 1 and "cannot write to stdout: No space left on device" in r.stderr


def test_an_output_goes_where_its_link_leads(tmp_path):
    """Output to a symbolic link goes to its target: to a file that does not exist yet, to a file elsewhere, to what
    the process has open, such as /dev/stdout.
    """
    (tmp_path / "net.prototxt").write_text(
        "name: 'n' layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 } } }"
    )
    (tmp_path / "far").mkdir()
    links = {
        "dangling.svg": "far/real.svg",
        "open.svg": "/proc/self/fd/1",
        "twice.svg": "open.svg",
        "round.svg": "round.svg",
    }
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)

    def draw(name, out):
        command = [CREMA, "draw", "-model", "net.prototxt", "-output", name]
        return subprocess.run(command, cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, timeout=60)

    assert draw("dangling.svg", subprocess.PIPE).returncode == 0 and "<svg" in (tmp_path / "far/real.svg").read_text()
    for name in ("open.svg", "twice.svg"):
        done = draw(name, subprocess.PIPE)
        assert done.returncode == 0 and b"<svg" in done.stdout and b"</svg>" in done.stdout, (name, done)
    for name in ("/dev/stdout", "/dev/fd/1"):
        assert "input_param" in crema("upgrade_net_proto_text", "net.prototxt", name, cwd=tmp_path).out
    with open(tmp_path / "all.txt", "wb") as out:
        out.write(b"before\n")
        out.flush()
        assert draw("open.svg", out).returncode == 0
    text = (tmp_path / "all.txt").read_text()
    assert text.startswith("before\n") and "</svg>" in text
    done = draw("round.svg", subprocess.PIPE)
    assert done.returncode == 1 and b"its links lead to each other" in done.stderr
    assert all(os.readlink(tmp_path / name) == target for name, target in links.items())
