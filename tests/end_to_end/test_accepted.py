"""Unusual but valid nets of Caffe's train here too, to the same losses (tests/goldens/accepted)."""

import re

import pytest

from conftest import ROOT, crema

GOLDEN, IMAGES = ROOT / "tests/goldens/accepted", ROOT / "tests/goldens/images"
LOSS = re.compile(r"(T(?:est|rain) net output #0: loss) = (\S+)")


def golden():
    nets, name = {}, None
    for line in (GOLDEN / "caffe.txt").read_text().splitlines():
        if line.endswith(".prototxt"):
            name = line
        else:
            nets.setdefault(name, []).append(LOSS.match(line).groups())
    return nets


def train(folder, net, extra="", **options):
    if not (folder / "db").exists():
        done = crema(
            "convert_imageset",
            "-resize_width",
            16,
            "-resize_height",
            12,
            f"{IMAGES}/",
            GOLDEN / "images.list",
            folder / "db",
        )
        assert done.code == 0, done.err
    (folder / "net.prototxt").write_text(net)
    (folder / "solver.prototxt").write_text((GOLDEN / "solver.prototxt").read_text() + extra)
    arguments = [a for name, value in options.items() for a in (f"-{name}", value)]
    return crema("train", "-solver", "solver.prototxt", *arguments, cwd=folder)


@pytest.mark.parametrize("net", ["fold_in_place", "thin_pooling", "twins", "unnamed"])
def test_losses_are_caffes(tmp_path, net):
    want = golden()[f"{net}.prototxt"]
    tested = any(name.startswith("Test") for name, _ in want)
    done = train(
        tmp_path, (GOLDEN / f"{net}.prototxt").read_text(), "test_iter: 3 test_interval: 3\n" if tested else ""
    )
    assert done.code == 0, done.err[-2000:]
    got = LOSS.findall(done.err)
    assert [name for name, _ in got] == [name for name, _ in want] and len(want) >= 6
    assert [float(v) for _, v in got] == pytest.approx([float(v) for _, v in want], rel=2e-5)
    assert ("two layers with parameters are named" in done.err) == (net in ("twins", "unnamed"))


def test_equal_names_get_random_numbers_of_their_own(tmp_path):
    """Two layers with the same name and shape: if they shared a random stream, their outputs would be equal."""
    layer = (
        'layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "{}" inner_product_param {{ num_output: 1 '
        'weight_filler {{ type: "gaussian" }} }} }}\n'
    )
    net = (
        'layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 1 dim: 9 } data_filler { '
        "value: 1 } } }\n" + layer.format("a") + layer.format("b")
    )
    (tmp_path / "net.prototxt").write_text(net)
    done = crema("time", "-model", "net.prototxt", "-iterations", 1, cwd=tmp_path)
    assert done.code == 0, done.err
    done = train(
        tmp_path,
        net + 'layer { type: "Reduction" bottom: "a" top: "la" loss_weight: 1 }\nlayer { type: "Reduction" bottom: "b" '
        'top: "lb" loss_weight: 1 }\n',
    )
    assert done.code == 0, done.err[-2000:]
    first = re.findall(r"Train net output #\d: l[ab] = (\S+)", done.err)[:2]
    assert len(first) == 2 and first[0] != first[1]


def test_equal_names_do_not_fit_into_hdf5(tmp_path):
    done = train(tmp_path, (GOLDEN / "twins.prototxt").read_text(), "snapshot_format: HDF5\n")
    assert done.code == 2 and "two layers named 'ip' cannot stand in one HDF5 file" in done.message, done.err[-2000:]


def test_of_equal_names_a_model_reaches_the_first_and_hdf5_the_last(tmp_path):
    """As in Caffe; shown with nets in which only one of the two layers has the name."""
    twins = (GOLDEN / "twins.prototxt").read_text()
    one = re.sub(r'layer { name: "ip"[^\n]* bottom: "a" top: "b"[^\n]*\n', "", twins).replace(
        'bottom: "b"', 'bottom: "a"'
    )
    for extra in ("", "snapshot_format: HDF5\n"):
        assert train(tmp_path, one, extra + "snapshot: 6\n").code == 0

    def score(net, weights):
        (tmp_path / "net.prototxt").write_text(net)
        done = crema("test", "-model", "net.prototxt", "-weights", weights, "-iterations", 3, cwd=tmp_path)
        assert done.code == 0, done.err[-2000:]
        return re.findall(r"\] Loss: (\S+)", done.err)

    first, last = (
        re.sub(r'"ip"([^\n]* bottom: "a" top: "b")', r'"other"\1', twins),
        re.sub(r'"ip"([^\n]* bottom: "mean")', r'"other"\1', twins),
    )
    assert (
        score(twins, "run_iter_6.caffemodel")
        == score(first, "run_iter_6.caffemodel")
        != score(last, "run_iter_6.caffemodel")
    )
    assert (
        score(twins, "run_iter_6.caffemodel.h5")
        == score(last, "run_iter_6.caffemodel.h5")
        == score(last, "run_iter_6.caffemodel")
    )


def test_rand_skip_is_ignored_with_a_warning(tmp_path):
    net = (GOLDEN / "thin_pooling.prototxt").read_text()
    plain, skipping = train(tmp_path, net), train(tmp_path, net.replace("batch_size: 2", "batch_size: 2 rand_skip: 3"))
    assert skipping.code == 0 and LOSS.findall(skipping.err) == LOSS.findall(plain.err) != []
    assert (
        re.search(r"^W.*'data' \(Data\): rand_skip 3 is ignored", skipping.err, re.M) and "rand_skip" not in plain.err
    )


def test_a_net_keeps_the_stages_that_it_names_itself(tmp_path):
    """As in `caffe time` and `caffe test`: -phase and -level replace the net's own, -stage adds to them."""
    layer = 'layer {{ name: "{0}" type: "Power" bottom: "x" top: "{0}" include {{ {1} }} }}\n'
    (tmp_path / "net.prototxt").write_text(
        'state { phase: TRAIN level: 5 stage: "own" }\nlayer { name: "in" type: "Input" top: "x" input_param { shape '
        "{ dim: 2 } } }\n"
        + layer.format("own", 'stage: "own"')
        + layer.format("given", 'stage: "given"')
        + layer.format("training", "phase: TRAIN")
        + layer.format("high", "min_level: 5")
    )
    for flags, want in (
        ([], ["own"]),
        (["-stage", "given"], ["own", "given"]),
        (["-phase", "TRAIN", "-level", 5], ["own", "training", "high"]),
    ):
        done = crema("summary", "-model", "net.prototxt", *flags, cwd=tmp_path)
        assert done.code == 0 and re.findall(r"^(\w+) +Power", done.out, re.M) == want, done.out + done.err


def test_windows_outside_the_input_cannot_be_exported(tmp_path):
    (tmp_path / "net.prototxt").write_text(
        'input: "x" input_shape { dim: 1 dim: 2 dim: 4 dim: 3 }\nlayer { name: "thin" type: "Pooling" bottom: "x" '
        'top: "y" '
        "pooling_param { kernel_size: 1 stride: 2 } }\n"
    )
    done = crema("export", "-model", "net.prototxt", "-output", "net.onnx", cwd=tmp_path)
    assert (
        done.code == 2
        and "last window begins at 4, outside the input of 4" in done.message
        and not (tmp_path / "net.onnx").exists()
    ), done.err
    (tmp_path / "net.prototxt").write_text(
        (tmp_path / "net.prototxt").read_text().replace("stride: 2", "stride: 2 round_mode: FLOOR")
    )
    assert crema("export", "-model", "net.prototxt", "-output", "net.onnx", cwd=tmp_path).code == 0
