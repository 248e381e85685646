"""A program's mistakes raise exceptions with a message; no value is cut, wrapped round or ignored."""

import copy
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from pycaffe_module import PACKAGE, caffe

PICTURES = pathlib.Path(__file__).resolve().parents[1] / "goldens/images"
NET = """layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip'
  inner_product_param { num_output: 5 weight_filler { type: 'gaussian' std: 0.1 } } }
layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }"""


@pytest.fixture
def deploy(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST).save(tmp_path / "net.caffemodel")
    return str(tmp_path / "net.prototxt"), str(tmp_path / "net.caffemodel")


def test_parameters_are_written_into_not_replaced(deploy):
    net = caffe.Net(deploy[0], caffe.TEST)
    with pytest.raises(TypeError, match=r"\.data\[\.\.\.\] = values"):
        net.params["ip"][0] = np.zeros((5, 192))
    net.params["ip"][0].data[...] = 0
    assert (net.forward()["prob"] == np.float32(0.2)).all()


@pytest.mark.parametrize(
    "dim, error",
    [
        (2**32 + 5, OverflowError),
        (-(2**32) + 3, OverflowError),
        (2**63, OverflowError),
        (2**31, OverflowError),
        (2.9, TypeError),
        ("3", TypeError),
        (-1, RuntimeError),
    ],
)
def test_dimensions_are_taken_as_they_are(deploy, dim, error):
    net = caffe.Net(deploy[0], caffe.TEST)
    with pytest.raises(error, match=str(dim)):
        net.blobs["data"].reshape(dim, 3, 8, 8)
    assert net.blobs["data"].shape == (2, 3, 8, 8)
    net.blobs["data"].reshape(np.int64(4), 3, 8, 8)
    assert net.blobs["data"].shape == (4, 3, 8, 8)


def test_parameters_keep_their_size(deploy):
    """A larger array would write beyond the net's memory, a smaller one be read beyond its end."""
    net = caffe.Net(deploy[0], caffe.TEST)
    weights = net.params["ip"][0]
    for shape in ((5, 10**6), (1, 1)):
        with pytest.raises(RuntimeError, match="a parameter of 960 values cannot become"):
            weights.reshape(*shape)
    before = net.forward()["prob"].copy()
    weights.reshape(5, 192, 1, 1)
    assert (net.forward()["prob"] == before).all()


def test_unknown_names_are_told_with_the_nearest(deploy):
    net = caffe.Net(deploy[0], caffe.TEST)
    for names, wrong, words in (
        (net.blobs, "prop", "the net has no blob 'prop'; did you mean 'prob'?"),
        (net.blobs, "zzz", "the net has no blob 'zzz'; it has data, ip, prob"),
        (net.params, "ib", "the net has no layer with parameters 'ib'; did you mean 'ip'?"),
        (net.layer_dict, "it", "did you mean 'i"),
    ):
        with pytest.raises(KeyError) as e:
            names[wrong]
        assert words in str(e.value)
        assert wrong not in names and names.get(wrong) is None
    with pytest.raises(KeyError, match="did you mean 'prob'"):
        net.forward(blobs=["prob1"])
    assert (
        list(net.blobs.copy()) == list(net.blobs)
        and list(net.params | {"new": 1}) == ["ip", "new"]
        and list(copy.copy(net.blobs)) == list(net.blobs)
    )
    with pytest.raises(KeyError, match="no blob 'prop'"):
        net.blobs.copy()["prop"]


def test_steps_are_whole(tmp_path):
    (tmp_path / "n.prototxt").write_text("""layer { name: 'd' type: 'DummyData' top: 'x' top: 't'
      dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 1 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 1 } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }""")
    (tmp_path / "s.prototxt").write_text("net: 'n.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 9")
    solver = caffe.SGDSolver(str(tmp_path / "s.prototxt"))
    for steps, error in ((2**32 + 2, OverflowError), (2.5, TypeError), (-1, OverflowError)):
        with pytest.raises(error, match="iterations"):
            solver.step(steps)
    assert solver.iter == 0


def test_context_must_leave_room_for_the_window(deploy):
    for pad in (4, 5, 100, -1):
        with pytest.raises(ValueError, match=f"context_pad {pad} .*8 x 8"):
            caffe.Detector(*deploy, context_pad=pad)
    assert caffe.Detector(*deploy, context_pad=3).context_pad == 3


@pytest.mark.parametrize("pad", [0, 2])
def test_windows_must_show_something(deploy, pad):
    detector, picture = caffe.Detector(*deploy, context_pad=pad), PICTURES / "type2_8.png"
    height, width = caffe.io.load_image(picture).shape[:2]
    for window in (
        [3, 3, 3, 3],
        [5, 5, 2, 9],
        [height, 0, height + 9, 9],
        [0, width + 1, 9, width + 9],
        [-9, -9, 0, 0],
    ):
        with pytest.raises(ValueError, match="type2_8.png: the window"):
            detector.detect_windows([(picture, [window])])
    over = [-2, -2, 9, 9]
    if pad:
        assert len(detector.detect_windows([(picture, [over])])) == 1
    else:
        with pytest.raises(ValueError, match="begins outside"):
            detector.detect_windows([(picture, [over])])
    found = detector.detect_windows([(picture, [[0, 0, 9, 9], [1, 2, 12, 14]])])
    assert not np.array_equal(found[0]["prediction"], found[1]["prediction"])


def test_a_damaged_picture_is_named_and_none_is_none(deploy, tmp_path):
    (tmp_path / "cut.png").write_bytes((PICTURES / "type2_8.png").read_bytes()[:-30])
    with pytest.raises(RuntimeError, match="cut.png: "):
        caffe.io.load_image(tmp_path / "cut.png")
    assert caffe.Classifier(*deploy).predict([]).shape == (0, 5)


@pytest.mark.parametrize(
    "words",
    [
        ["classify", "nothing.jpg", "out.npy", "--model_def", "{0}", "--pretrained_model", "{1}"],
        ["detect", "nothing.csv", "out.csv", "--model_def", "{0}", "--pretrained_model", "{1}"],
        ["classify", "nothing.jpg", "out.npy", "--model_def", "none", "--pretrained_model", "{1}"],
        ["draw_net", "none.prototxt", "x.svg"],
    ],
)
def test_commands_end_with_a_sentence(deploy, words, tmp_path):
    r = subprocess.run(
        [sys.executable, "-m", "caffe." + words[0], *(w.format(*deploy) for w in words[1:])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(PACKAGE), "PATH": "/usr/bin:/bin"},
    )
    assert r.returncode == 1 and r.stderr.splitlines()[-1].startswith("error: ") and "Traceback" not in r.stderr, (
        r.stderr
    )
