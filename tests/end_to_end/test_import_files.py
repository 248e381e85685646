"""crema import: its flags, what it reads beside the model, what it writes."""

import os

import pytest

from conftest import crema

onnx = pytest.importorskip("onnx", reason="SKIPPED: onnx is not installed (scripts/lib.sh, ensure_onnxruntime)")
from test_import import caffe, imported  # noqa: E402

from support.onnx_graph import Graph  # noqa: E402


def test_flags_and_files(tmp_path):
    g = Graph((3, "height", 8))
    g.save(tmp_path / "net.onnx", g.conv("x", 3, 2, 3))

    def message(name, *flags):
        return crema("import", tmp_path / name, *flags).message

    open_axis = "input 'x' leaves axis 2 open ('height'); say its shape: -input_shape x:1,3,224,224"
    assert open_axis in message("net.onnx")
    for shape, words in (
        ("x:0,3,9,8", "-input_shape x:0,3,9,8: no axis has a length of 0"),
        ("nosuch:2,3,9,8", "-input_shape nosuch: the model has no such input; it has x"),
    ):
        more = ["-input_shape", "x:2,3,9,8"] if shape[0] == "n" else []
        done = crema("import", tmp_path / "net.onnx", "-input_shape", shape, *more)
        assert done.code == 2 and words in done.message, done.err
    assert "which input? Write INPUT:1,3,224,224" in message("net.onnx", "-input_shape", "2,3,9,8")
    places = ["-model", tmp_path / "a.prototxt", "-weights", tmp_path / "b.caffemodel"]
    done = crema("import", tmp_path / "net.onnx", "-input_shape", "x:2,3,9,8", *places)
    assert done.code == 0 and "a.prototxt: 2 layers" in done.out and "56 values" in done.out, done.out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.prototxt", "b.caffemodel", "net.onnx"]
    (tmp_path / "text.onnx").write_text("layer { name: 'x' }")
    assert "text.onnx" in message("text.onnx")
    assert "which model? Name the .onnx file" in crema("import").message
    old = onnx.load(str(tmp_path / "net.onnx"))
    old.opset_import[0].version = 3
    onnx.save(old, str(tmp_path / "old.onnx"))
    assert "the model is of opset 3, and 5 to 24 are read; convert it" in message("old.onnx")
    del old.graph.input[0].type.tensor_type.shape.dim[:]
    old.graph.input[0].type.tensor_type.ClearField("shape")
    old.opset_import[0].version = 13
    onnx.save(old, str(tmp_path / "shapeless.onnx"))
    assert "input 'x' has no shape; say it: -input_shape x:1,3,224,224" in message("shapeless.onnx")


def test_nothing_is_replaced_unasked(tmp_path):
    """The README's two commands, export and then import: the exported net's own files are not overwritten."""
    net = tmp_path / "net.prototxt"
    text = (
        "# ours\n"
        + """layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
      inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }"""
    )
    net.write_text(text)
    caffe.Net(str(net), caffe.TEST).save(str(tmp_path / "net.caffemodel"))
    weights = (tmp_path / "net.caffemodel").read_bytes()
    assert (
        crema("export", "-model", net, "-weights", tmp_path / "net.caffemodel", "-output", tmp_path / "net.onnx").code
        == 0
    )
    done = crema("import", tmp_path / "net.onnx")
    assert (
        done.code == 2
        and "net.prototxt is there already; name another beginning with -output, or replace it with -force"
        in done.message
    ), done.err
    net.unlink()
    assert "net.caffemodel is there already" in crema("import", tmp_path / "net.onnx").message and not net.exists()
    assert (tmp_path / "net.caffemodel").read_bytes() == weights
    net.write_text(text)
    assert crema("import", tmp_path / "net.onnx", "-output", tmp_path / "back").code == 0
    assert net.read_text() == text and (tmp_path / "net.caffemodel").read_bytes() == weights
    assert crema("import", tmp_path / "net.onnx", "-force").code == 0
    assert net.read_text() == (tmp_path / "back.prototxt").read_text() != text


def test_values_in_a_file_beside_the_model(tmp_path):
    g = Graph((3, 9, 8))
    g.save(tmp_path / "one.onnx", g.conv("x", 3, 2, 3))
    two, data = tmp_path / "two.onnx", tmp_path / "two.data"
    onnx.save(
        onnx.load(str(tmp_path / "one.onnx")),
        str(two),
        save_as_external_data=True,
        location="two.data",
        size_threshold=0,
    )
    imported(tmp_path / "one.onnx"), imported(two)
    assert (tmp_path / "two.caffemodel").read_bytes() == (tmp_path / "one.caffemodel").read_bytes()

    def message(**places):
        model = onnx.load(str(two), load_external_data=False)
        for p in model.graph.initializer[0].external_data:
            p.value = str(places.get(p.key, p.value))
        (tmp_path / "three.onnx").write_bytes(model.SerializeToString())
        done = crema("import", tmp_path / "three.onnx", timeout=20)
        assert done.code in (1, 2, 3), done.err
        return done.message

    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for place in (".", "folder", "pipe"):
        assert f"/{place}, where tensor 'onnx::0' has its values, is no file" in message(location=place)
    for place in ("/etc/passwd", "../two.data", ""):
        assert f"tensor 'onnx::0' has its values in '{place}', which is no file beside the model" in message(
            location=place
        )
    assert "tensor 'onnx::0' is damaged: the offset of its place in a file is '-4'" in message(offset=-4)
    assert "tensor 'onnx::0' is damaged: 2x3x3x3 has 216 bytes, and its place in " in message(length=2**60)
    assert "two.data is cut: tensor 'onnx::0' needs 216 bytes from 999999 on" in message(offset=999999)
    data.write_bytes(data.read_bytes()[:-4])
    assert "two.data is cut: tensor 'onnx::" in crema("import", two, "-force").message
    data.unlink()
    assert "two.data, which holds the values of tensor" in message()
