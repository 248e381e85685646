"""Messages and arrays, pictures, nets written in Python, drawings."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from google.protobuf import text_format

from pycaffe_module import PACKAGE, caffe, net, python

import conftest
from caffe import coord_map, draw
from caffe import layers as L
from caffe import params as P
from caffe.proto import caffe_pb2
from support.drawing import Drawing, mistakes

PICTURES = conftest.ROOT / "tests/goldens/images"


def values(*shape, seed=1):
    return np.random.default_rng(seed).random(shape).astype(np.float32)


def test_import_is_quick_and_takes_only_numpy_and_protobuf(tmp_path):
    program = "import sys, caffe; print(*sorted({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)))"
    ended = python(program, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert {m for m in ended.stdout.split() if not m.startswith("_")} <= {"caffe", "google", "numpy", "sitecustomize"}


def test_the_engines_library_shows_its_own_functions_only():
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", PACKAGE / "caffe/libcrema.so"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    names = {line.split()[2] for line in shown.splitlines()}
    header = (conftest.ROOT / "api/crema.h").read_text()
    assert names and all(name.startswith("crema_") and name + "(" in header for name in names)
    from caffe import _engine

    assert {"crema_" + name for name in _engine._FUNCTIONS} == names


def test_blob_messages():
    a, d = values(2, 3, 4), values(2, 3, 4, seed=2)
    proto = caffe.io.array_to_blobproto(a, d)
    assert (caffe.io.blobproto_to_array(proto) == a).all() and (
        caffe.io.blobproto_to_array(proto, return_diff=True) == d
    ).all()
    old = caffe_pb2.BlobProto(num=1, channels=2, height=3, width=4, data=a.ravel())
    assert caffe.io.blobproto_to_array(old).shape == (1, 2, 3, 4)
    proto.shape.dim[0] = 5
    with pytest.raises(ValueError):
        caffe.io.blobproto_to_array(proto)
    several = caffe.io.blobprotovector_str_to_arraylist(caffe.io.arraylist_to_blobprotovector_str([a, d[0]]))
    assert (several[0] == a).all() and (several[1] == d[0]).all()


def test_datums():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    datum = caffe.io.array_to_datum(pixels, 7)
    assert datum.data == pixels.tobytes() and datum.label == 7 and (caffe.io.datum_to_array(datum) == pixels).all()
    floats = values(1, 2, 2)
    assert (caffe.io.datum_to_array(caffe.io.array_to_datum(floats)) == floats).all()
    encoded = caffe_pb2.Datum(data=(PICTURES / "type2_8.png").read_bytes(), encoded=True)
    picture = caffe.io.load_image(PICTURES / "type2_8.png")
    assert (caffe.io.datum_to_array(encoded).transpose(1, 2, 0)[:, :, ::-1] == np.round(picture * 255)).all()
    with pytest.raises(ValueError, match="3 axes"):
        caffe.io.array_to_datum(pixels[0])


@pytest.mark.parametrize("name", ["type2_8.png", "type3_4.png", "type6_8_i.png", "type0_8.png"])
def test_pictures_are_pillows(name):
    image = pytest.importorskip("PIL.Image", reason="SKIPPED: no Pillow")
    with image.open(PICTURES / name) as picture:
        colour, mode = np.asarray(picture.convert("RGBA"))[:, :, :3], picture.mode
    mine = caffe.io.load_image(str(PICTURES / name))
    assert mine.dtype == np.float32 and (mine == colour.astype(np.float32) / np.float32(255)).all(), mode
    assert caffe.io.load_image(PICTURES / name, color=False).shape == colour.shape[:2] + (1,)


def test_formats_beyond_png_and_jpeg(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="SKIPPED: no Pillow")
    pixels = (values(5, 7, 3) * 255).astype(np.uint8)
    image.fromarray(pixels).save(tmp_path / "a.bmp")
    assert (caffe.io.load_image(tmp_path / "a.bmp") == pixels / np.float32(255)).all()
    (tmp_path / "b.png").write_bytes((PICTURES / "type2_8.png").read_bytes()[:-30])
    with pytest.raises(RuntimeError, match="the image"):
        caffe.io.load_image(tmp_path / "b.png")


def test_resizing_by_hand():
    im, (h, w) = values(6, 9, 2), (4, 13)
    mine = caffe.io.resize_image(im, (h, w))
    for y in range(h):
        for x in range(w):
            fy, fx = min(max((y + 0.5) * 6 / h - 0.5, 0), 5), min(max((x + 0.5) * 9 / w - 0.5, 0), 8)
            y0, x0 = int(fy), int(fx)
            y1, x1 = min(y0 + 1, 5), min(x0 + 1, 8)
            ty, tx = fy - y0, fx - x0
            want = (im[y0, x0] * (1 - tx) + im[y0, x1] * tx) * (1 - ty) + (im[y1, x0] * (1 - tx) + im[y1, x1] * tx) * ty
            np.testing.assert_allclose(mine[y, x], want, atol=1e-6)
    assert (caffe.io.resize_image(im, (12, 18), 0) == im.repeat(2, 0).repeat(2, 1)).all()


def test_ten_crops():
    im = values(7, 8, 3)
    ten = caffe.io.oversample([im], (4, 5))
    places = [(0, 0), (0, 3), (3, 0), (3, 3), (1, 1)]
    for k, (y, x) in enumerate(places):
        assert (ten[k] == im[y : y + 4, x : x + 5]).all() and (ten[k + 5] == im[y : y + 4, x : x + 5][:, ::-1]).all()
    with pytest.raises(ValueError, match="do not fit"):
        caffe.io.oversample([im], (9, 5))


def test_the_transformer_follows_its_order_and_back():
    t = caffe.io.Transformer({"data": (10, 3, 6, 5)})
    t.set_transpose("data", (2, 0, 1)), t.set_channel_swap("data", (2, 1, 0)), t.set_raw_scale("data", 255)
    t.set_mean("data", np.array([10.0, 20.0, 30.0])), t.set_input_scale("data", 0.5)
    im = values(6, 5, 3)
    want = (im.transpose(2, 0, 1)[::-1] * 255 - np.array([10, 20, 30]).reshape(3, 1, 1)) * 0.5
    out = t.preprocess("data", im)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(t.deprocess("data", out), im, atol=1e-5)
    assert t.preprocess("data", values(9, 9, 3)).shape == (3, 6, 5)
    t.set_mean("data", values(3, 12, 10))
    assert t.mean["data"].shape == (3, 6, 5)
    for wrong in (lambda: t.set_mean("data", np.zeros(2)), lambda: t.set_mean("data", np.zeros((2, 6, 5)))):
        with pytest.raises(ValueError, match="Mean"):
            wrong()
    with pytest.raises(Exception, match="not one of the net inputs: data"):
        t.preprocess("other", im)


def test_nets_in_python_say_what_a_prototxt_says():
    n = caffe.NetSpec()
    n.data, n.label = L.DummyData(shape=[dict(dim=[2, 3]), dict(dim=[2])], ntop=2, include=dict(phase=caffe.TEST))
    n.ip = L.InnerProduct(
        n.data, num_output=4, weight_filler=dict(type="xavier"), param=[dict(lr_mult=1), dict(lr_mult=2)]
    )
    n.relu = L.ReLU(n.ip, in_place=True)
    n.up = L.Deconvolution(n.relu, num_output=np.int64(2), kernel_size=(3, 4))
    n.pool = L.Pooling(n.up, pool=P.Pooling.AVE, kernel_size=2)
    n.loss = L.SoftmaxWithLoss(n.pool, n.label, loss_weight=2)
    n["quiet"] = L.Silence(n.up, ntop=0)
    want = text_format.Parse(
        """
      layer { name: "data" type: "DummyData" top: "data" top: "label" include { phase: TEST }
        dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" param { lr_mult: 1 } param { lr_mult: 2 }
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
      layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
      layer { name: "up" type: "Deconvolution" bottom: "ip" top: "up"
        convolution_param { num_output: 2 kernel_size: 3 kernel_size: 4 } }
      layer { name: "pool" type: "Pooling" bottom: "up" top: "pool" pooling_param { pool: AVE kernel_size: 2 } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "pool" bottom: "label" top: "loss" loss_weight: 2 }
      layer { name: "quiet" type: "Silence" bottom: "up" }""",
        caffe_pb2.NetParameter(),
    )
    assert n.to_proto() == want
    a = L.ReLU(L.ReLU(L.Input(shape=dict(dim=1))), in_place=True).to_proto()
    assert [(x.name, list(x.bottom), list(x.top)) for x in a.layer] == [
        ("Input1", [], ["Input1"]),
        ("ReLU1", ["Input1"], ["ReLU1"]),
        ("ReLU2", ["ReLU1"], ["ReLU1"]),
    ]
    deep = L.Input(shape=dict(dim=1))
    for _ in range(3000):
        deep = L.ReLU(deep)
    assert len(caffe.to_proto(deep).layer) == 3001
    with pytest.raises(TypeError, match="ReLU input 0 is not a Top"):
        L.ReLU(3)


@pytest.mark.parametrize("kernel, stride, pad, pool, up", [(3, 1, 0, 2, 2), (5, 2, 3, 2, 4), (3, 1, 2, 4, 4)])
def test_crops_land_where_the_pixels_came_from(kernel, stride, pad, pool, up):
    """Checked with a net: one bright pixel goes through convolution, pooling and deconvolution and becomes a
    symmetric spot around the place that the map gives.
    """
    side, at = 96, 47
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, side, side]))
    one = dict(type="constant", value=1)
    n.conv = L.Convolution(n.data, num_output=1, kernel_size=kernel, stride=stride, pad=pad, weight_filler=one)
    n.pool = L.Pooling(n.conv, pool=P.Pooling.AVE, kernel_size=pool, stride=pool)
    n.up = L.Deconvolution(n.pool, num_output=1, kernel_size=2 * up, stride=up, bias_term=False, weight_filler=one)
    axis, a, b = coord_map.coord_map_from_to(n.up, n.data)
    assert axis == 1
    made = net(str(n.to_proto()))
    spots = []
    for x in range(at, at + stride * pool):  # for every phase of the strides, as their mean has no rounding
        made.blobs["data"].data[...] = 0
        made.blobs["data"].data[0, 0, at, x] = 1
        row = made.forward()["up"][0, 0].sum(0)
        spots.append((row * np.arange(len(row))).sum() / row.sum())
    assert a * np.mean(spots) + b == pytest.approx(at + (stride * pool - 1) / 2, abs=0.51 if stride > 1 else 1e-4)


def test_crop_and_what_has_no_map():
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 1, 20, 20]))
    n.conv = L.Convolution(n.data, num_output=1, kernel_size=3, pad=5)
    crop = coord_map.crop(n.conv, n.data)
    assert crop.fn.type_name == "Crop" and crop.fn.params["crop_param"] == dict(axis=2, offset=[4])
    n.ip = L.InnerProduct(n.conv, num_output=1)
    with pytest.raises(RuntimeError, match="no map"):
        coord_map.coord_map_from_to(n.ip, n.data)
    with pytest.raises(AssertionError, match="negative offset"):
        coord_map.crop(n.data, n.conv)


def test_drawings(tmp_path):
    model = text_format.Parse(
        (conftest.ROOT / "examples/lenet_train_test.prototxt").read_text(), caffe_pb2.NetParameter()
    )
    for direction in ("LR", "TB", "RL", "BT"):
        draw.draw_net_to_file(model, tmp_path / "a.svg", direction, display_lrm=True)
        root = ElementTree.parse(tmp_path / "a.svg").getroot()
        said = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {layer.name for layer in model.layer} <= set(said) and "kernel: 5" in said and "500" in said
        assert not [*mistakes(Drawing((tmp_path / "a.svg").read_bytes()))]
    everything, tests = (draw.draw_net(model, "LR", "svg", phase) for phase in (None, caffe.TEST))
    assert (
        b"accuracy" in everything
        and b"accuracy" in tests
        and b"accuracy" not in draw.draw_net(model, "LR", "svg", caffe.TRAIN)
    )
    (tmp_path / "a.png").write_bytes(draw.draw_net(model, "LR"))
    sideways = ElementTree.fromstring(draw.draw_net(model, "LR", "svg"))
    assert caffe.io.load_image(tmp_path / "a.png").shape == (int(sideways.get("height")), int(sideways.get("width")), 3)
    assert int(sideways.get("width")) > int(sideways.get("height"))
    with pytest.raises(RuntimeError, match="TB, BT, LR or RL, not 'UP'"):
        draw.draw_net(model, "UP", "svg")


def test_a_graph_for_graphviz(monkeypatch):
    model = text_format.Parse(
        (conftest.ROOT / "examples/lenet_train_test.prototxt").read_text(), caffe_pb2.NetParameter()
    )
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pydot", None)
        with pytest.raises(ImportError, match="needs pydot and Graphviz"):
            draw.draw_net(model, "LR", "pdf")
    pytest.importorskip("pydot", reason="SKIPPED: pydot is not installed (scripts/lib.sh, ensure_onnxruntime)")
    graph = draw.get_pydot_graph(model, "BT", phase=caffe.TEST)
    label = {node.get_name(): node.get_label().strip('"').split("\\n")[0] for node in graph.get_nodes()}
    edges = {(label[e.get_source()], label[e.get_destination()]): e.get_label().strip('"') for e in graph.get_edges()}
    assert graph.get_rankdir() == "BT" and {"conv1", "ip2", "accuracy"} <= set(label.values())
    assert (
        edges["data", "conv1"] == ""
        and edges["conv1", "conv1"] == "20"
        and edges["ip1", "relu1"] == ""
        and edges["ip2", "loss"] == ""
    )
