"""The table and the JSON of `crema time`: what a pass does, counted by hand, and what it reaches of the machine."""

import json
import math
import re
import subprocess

import pytest

from conftest import CREMA, ROOT, crema

NET = """
name: "counted"
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } shape { dim: 2 }
                           data_filler { type: "gaussian" } data_filler { type: "constant" } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "frozen" type: "Convolution" bottom: "conv" top: "frozen" param { lr_mult: 0 } param { lr_mult: 0 }
        convolution_param { num_output: 5 kernel_size: 1 } }
layer { name: "relu" type: "ReLU" bottom: "frozen" top: "frozen" }
layer { name: "flat" type: "Flatten" bottom: "frozen" top: "flat" }
layer { name: "ip" type: "InnerProduct" bottom: "flat" top: "ip" inner_product_param { num_output: 10 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
# {layer: (flops, values) forward, backward}. Blobs: x 384, conv 2*4*6*6 = 288, frozen 2*5*36 = 360, ip 20, label 2.
CONV, FROZEN, IP = 288 * 27, 360 * 4, 20 * 180  # multiply-adds
WORK = {
    "data": ((0, 0), (0, 0)),
    "conv": ((2 * CONV, 384 + 112 + 288), (2 * CONV, 288 + 384 + 2 * 112)),
    "frozen": ((2 * FROZEN, 288 + 25 + 360), (2 * FROZEN, 360 + 288 + 25 + 288)),
    "relu": ((0, 0), (0, 360 + 360 + 360)),  # forward it is a step of the convolution before it
    "flat": ((0, 0), (0, 0)),
    "ip": ((2 * IP, 360 + 1810 + 20), (4 * IP, 20 + 360 + 2 * 1810 + 1810 + 360)),
    "loss": ((0, 20 + 2 + 1), (0, 1 + 20 + 2 + 20)),
}


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    return tmp_path / "net.prototxt"


def test_work_is_counted_and_set_against_the_machines_peak(net):
    done = crema("time", "-model", net, "-iterations", 20, "-threads", 1, "-json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["threads"] == 1 and said["peak_flops"] > 1e8 and said["peak_bytes"] > 1e7
    assert [layer["name"] for layer in said["layers"]] == list(WORK)
    for layer in said["layers"]:
        for direction, (flops, values) in zip(("forward", "backward"), WORK[layer["name"]], strict=True):
            assert layer[f"{direction}_flops"] == flops, (layer["name"], direction)
            assert layer[f"{direction}_bytes"] == 4 * values, (layer["name"], direction)
            least = max(flops / said["peak_flops"], 4 * values / said["peak_bytes"]) * 1e3
            percent = layer[f"{direction}_percent_of_peak"]
            if least:
                assert percent == pytest.approx(100 * least / layer[f"{direction}_ms"])
            else:
                assert percent is None
        assert layer["computed_by"] == layer["name"]
        assert layer["forward_computed_by"] == ("frozen" if layer["name"] == "relu" else layer["name"])
        assert layer["backward_computed_by"] == layer["name"]
    assert said["forward_ms"] == pytest.approx(sum(layer["forward_ms"] for layer in said["layers"]))
    assert said["total_ms"] == pytest.approx(20 * said["forward_backward_ms"])
    assert said["feed_share"] == 0 and said["compute_share"] == 1  # DummyData reads nothing
    assert [out["name"] for out in said["outputs"]] == ["loss"] and said["outputs"][0]["shape"] == []
    assert 1 << 22 < said["memory_bytes"] < 100 << 20  # without the arrays by which memory is measured, 192 MiB


def test_the_table_has_a_line_for_each_layer_and_one_for_all(net):
    done = crema("time", "-model", net, "-iterations", 3)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert re.split(r"\s{2,}", lines[0])[:6] == ["layer", "type", "forward ms", "GFLOP/s", "GB/s", "of peak"]
    cells = {line.split()[0]: line.split() for line in lines[1 : len(WORK) + 1]}
    assert list(cells) == list(WORK) and lines[len(WORK) + 1].startswith("all layers")
    assert cells["ip"][1] == "InnerProduct" and cells["ip"].count("%") == 3
    assert cells["data"].count("%") == 1 and cells["relu"].count("%") == 2  # no figures where nothing is computed
    assert re.search(r"^relu +ReLU, forward in frozen +0\.000 ", done.out, re.M), done.out
    assert sum(float(c[-2]) for c in cells.values()) == pytest.approx(100, abs=1)
    assert lines[-4].startswith("feed 0.0 %, compute 100.0 %; ") and lines[-3] == "", done.out
    assert re.match(r"peak of \d+ threads?: \d+ GFLOP/s", lines[-2])
    memory = r"memory of this process at its peak: \d+ MiB, weights that were read included"
    assert re.fullmatch(memory + r"; measuring these peaks took 192 more\.", lines[-1])


def test_without_memory_to_measure_the_machine_times_are_said(net):
    """The arrays for it are 192 MiB; the warning says how to have them."""
    limited = ["bash", "-c", 'ulimit -v 180000; exec "$@"', "bash", CREMA, "time", "-model", net, "-iterations", "1"]
    done = subprocess.run([*limited, "-threads", "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "peaks are not measured: that takes 192 MiB more memory; raise the memory limit of 175 MiB" in done.stderr
    assert "all layers" in done.stdout and "peak of" not in done.stdout and "took 192" not in done.stdout
    done = subprocess.run([*limited, "-threads", "1", "-json"], capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["peak_bytes"] is None, done.stderr


def test_two_threads_are_measured_with_two(net):
    said = json.loads(crema("time", "-model", net, "-iterations", 1, "-threads", 2, "-json").out)
    assert said["threads"] == 2


def test_forward_alone_has_no_backward_in_table_json_and_log(net):
    done = crema("time", "-model", net, "-iterations", 3, "-forward_only")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert "backward" not in done.out and "ackward pass" not in done.err and "\tbackward" not in done.err
    assert re.split(r"\s{2,}", lines[0]) == ["layer", "type", "forward ms", "GFLOP/s", "GB/s", "of peak", "share"]
    assert re.search(r"Iteration: 3 forward time: [\d.e-]+ ms\.", done.err)
    said = json.loads(crema("time", "-model", net, "-iterations", 3, "-forward_only", "-json").out)
    assert not [key for part in (said, *said["layers"]) for key in part if "backward" in key]
    assert said["total_ms"] == pytest.approx(3 * said["forward_ms"])
    # The ReLU in place is a step of the convolution before it: its row says so and has no figures.
    assert re.search(r"^relu +ReLU in frozen$", done.out, re.M), done.out
    by = {layer["name"]: layer["computed_by"] for layer in said["layers"]}
    assert by == {**{name: name for name in WORK}, "relu": "frozen"}


PICTURES = """
layer { name: "in" type: "Input" top: "in" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
layer { name: "mean" type: "Pooling" bottom: "in" top: "mean" pooling_param { pool: AVE kernel_size: 4 stride: 4 } }
"""


def noise(i):
    h = i * 0x9E3779B1 % 2**32
    h = (h ^ h >> 15) * 0x85EBCA77 % 2**32
    return 3**0.5 * ((h ^ h >> 13) / 2**31 - 1)


def root_mean_square(values):
    return (sum(v * v for v in values) / len(values)) ** 0.5


@pytest.mark.parametrize("forward_only", [(), ("-forward_only",)])
def test_pictures_that_a_caller_would_give_are_noise(tmp_path, forward_only):
    net = tmp_path / "pictures.prototxt"
    net.write_text(PICTURES)
    done = crema("time", "-model", net, "-iterations", 2, "-json", *forward_only)
    assert done.code == 0, done.err
    (mean,) = json.loads(done.out)["outputs"]
    pictures = [noise(i) for i in range(2 * 3 * 8 * 8)]
    assert abs(sum(pictures)) < 0.1 * len(pictures) and root_mean_square(pictures) == pytest.approx(1, abs=0.05)
    corners = [8 * 8 * plane + 8 * y + x for plane in range(6) for y in (0, 4) for x in (0, 4)]
    means = [sum(pictures[at + 8 * y + x] for y in range(4) for x in range(4)) / 16 for at in corners]
    assert mean["name"] == "mean" and mean["shape"] == [2, 3, 2, 2]
    assert mean["root_mean_square"] == pytest.approx(root_mean_square(means), rel=1e-5)
    assert mean["first"] == pytest.approx(means[:16], rel=1e-5, abs=1e-6)


def test_feed_is_what_layers_read_records_for(tmp_path):
    picture = ROOT / "tests/goldens/images/grey_p.jpg"
    (tmp_path / "list.txt").write_text(f"{picture} 0\n")
    (tmp_path / "net.prototxt").write_text(
        'layer { name: "data" type: "ImageData" top: "x" top: "label" image_data_param { source: "list.txt" '
        "batch_size: 4 new_height: 16 new_width: 16 } }\n"
        'layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" inner_product_param { num_output: 9 } }\n'
        'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }\n'
    )
    done = crema("time", "-model", tmp_path / "net.prototxt", "-iterations", 3, "-json", cwd=tmp_path)
    assert done.code == 0, done.err
    said = json.loads(done.out)
    data = next(layer for layer in said["layers"] if layer["name"] == "data")
    assert (
        said["feed_share"] == pytest.approx(data["forward_ms"] / said["forward_backward_ms"]) and said["feed_share"] > 0
    )
    assert said["feed_share"] + said["compute_share"] == pytest.approx(1)


PIXELS = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 6 dim: 6 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 1 dim: 1 dim: 6 dim: 6 } } }
layer { name: "scale" type: "Power" bottom: "data" top: "data" power_param { scale: 0.5 } }
layer { name: "copy" type: "Split" bottom: "data" top: "scores" top: "seen" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }
"""


@pytest.mark.parametrize("count", [1, 7])
def test_labels_that_a_caller_would_give_are_zero_and_inputs_are_filled_anew_for_each_pass(tmp_path, count):
    (tmp_path / "net.prototxt").write_text(PIXELS)
    done = crema("time", "-model", tmp_path / "net.prototxt", "-iterations", count, "-json")
    assert done.code == 0, done.err
    assert "refuses noise, so all inputs but the first are zeros: " in done.err
    outputs = {out["name"]: out["root_mean_square"] for out in json.loads(done.out)["outputs"]}
    halves = [noise(i) / 2 for i in range(3 * 6 * 6)]
    assert outputs["seen"] == pytest.approx(root_mean_square(halves), rel=1e-5)  # however often the layer in place ran
    losses = [
        math.log(sum(math.exp(halves[36 * c + i]) for c in range(3))) - halves[i] for i in range(36)
    ]  # of class 0
    assert outputs["loss"] == pytest.approx(sum(losses) / 36, rel=1e-5)


def test_less_than_no_threads_are_refused(net):
    done = crema("time", "-model", net, "-threads", -1)
    assert done.code != 0 and "threads must be 0, for all cores, or more, not -1" in done.err


WORDS = """
layer { name: "in" type: "Input" top: "in" input_param { shape { dim: 4 dim: 6 } } }
layer { name: "slice" type: "Slice" bottom: "in" top: "a" top: "b" slice_param { axis: 1 } }
layer { name: "words" type: "Embed" bottom: "a" top: "w" embed_param { num_output: 3 input_dim: 5 } }
layer { name: "others" type: "Embed" bottom: "b" top: "o" embed_param { num_output: 3 input_dim: 5 } }
layer { name: "ip" type: "InnerProduct" bottom: "w" top: "ip"
        inner_product_param { num_output: 3 bias_filler { type: "constant" value: 1000 } } }
layer { name: "ip2" type: "InnerProduct" bottom: "ip" top: "ip2"
        inner_product_param { num_output: 3 bias_filler { type: "constant" value: 1000 } } }
layer { name: "ip3" type: "InnerProduct" bottom: "ip2" top: "ip3" inner_product_param { num_output: 3 } }
"""


def test_backward_passes_that_no_loss_needs_find_what_they_read(tmp_path):
    net = tmp_path / "words.prototxt"
    net.write_text(WORDS)
    done = crema("time", "-model", net, "-iterations", 2, "-threads", 1)
    assert done.code == 0, done.err
