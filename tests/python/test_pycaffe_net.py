"""caffe.Net: passes, blobs, weights, errors."""

import copy

import numpy as np
import pytest

from pycaffe_module import caffe, net, write

from conftest import lenet, records  # noqa: F401 (fixture)

PAIR = """name: 'pair' force_backward: true
layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 5 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
  inner_product_param { num_output: 3 weight_filler { type: 'gaussian' std: 1 } bias_filler { type: 'constant'
    value: 0.25 } } }
layer { name: 'act' type: 'TanH' bottom: 'y' top: 'z' }"""


def rows(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def by_hand(made, x):
    w, b = (p.data.astype(np.float64) for p in made.params["ip"])
    return np.tanh(x.astype(np.float64) @ w.T + b)


def test_forward_and_backward_are_the_formulas():
    made, x, d = net(PAIR), rows(4, 5), rows(4, 3, seed=2)
    z = made.forward(x=x)["z"]
    np.testing.assert_allclose(z, by_hand(made, x), atol=2e-6)
    back = made.backward(z=d)
    dy = d * (1 - by_hand(made, x) ** 2)
    np.testing.assert_allclose(back["x"], dy @ made.params["ip"][0].data, atol=5e-6)
    np.testing.assert_allclose(made.params["ip"][0].diff, dy.T @ x, atol=5e-6)
    made.backward(z=d)
    np.testing.assert_allclose(
        made.params["ip"][1].diff, 2 * dy.sum(0), atol=1e-5, err_msg="gradients of parameters add up"
    )
    made.clear_param_diffs()
    assert not made.params["ip"][0].diff.any()


def test_parts_of_a_net():
    made, y = net(PAIR), rows(4, 3)
    made.blobs["y"].data[...] = y
    assert list(made.forward(start="act", end="act")) == ["z"]
    np.testing.assert_allclose(made.blobs["z"].data, np.tanh(y.astype(np.float64)), atol=1e-6)
    made.blobs["z"].diff[...] = 1
    assert sorted(made.backward(start="act", end="act", diffs=["x"])) == ["x", "y"]
    with pytest.raises(ValueError, match="no layer 'none'; its layers: in, ip, act"):
        made.forward(start="none")


def test_what_a_net_consists_of():
    made = net(PAIR, caffe.TRAIN)
    assert (made.inputs, made.outputs) == (["x"], ["z"])
    assert list(made.blobs) == ["x", "y", "z"] and list(made._layer_names) == ["in", "ip", "act"] == list(
        made.layer_dict
    )
    assert [layer.type for layer in made.layers] == ["Input", "InnerProduct", "TanH"]
    assert dict(made.bottom_names) == {"in": [], "ip": ["x"], "act": ["y"]} and made.top_names["act"] == ["z"]
    assert [b.shape for b in made.params["ip"]] == [(3, 5), (3,)] and list(made.params) == ["ip"]
    blob = made.blobs["x"]
    assert (blob.num, blob.channels, blob.height, blob.width, blob.count) == (4, 5, 1, 1, 20)
    blob.reshape(1, 2, 3, 4, 5)
    with pytest.raises(RuntimeError, match="at most 4 axes"):
        _ = blob.num
    loss = net(
        "layer { name: 'd' type: 'DummyData' top: 'a' top: 'b' dummy_data_param { shape { dim: 2 } } }"
        "layer { name: 'l' type: 'EuclideanLoss' bottom: 'a' bottom: 'b' top: 'l' loss_weight: 3 }"
    )
    assert dict(loss.blob_loss_weights) == {"a": 0, "b": 0, "l": 3}


def test_views_are_no_copies_and_outlive_what_they_are_of():
    made = net(PAIR)
    view, weights = made.blobs["x"].data, made.params["ip"][0].data
    view[...] = 7
    assert (made.blobs["x"].data == 7).all() and np.shares_memory(view, made.blobs["x"].data)
    before = weights.copy()
    made.blobs["x"].reshape(4000, 5)  # it grows into other memory; the view keeps the old one
    made.blobs["x"].data[...] = 1
    del made
    assert (view == 7).all() and (weights == before).all()


def test_reshape_and_growing_batches():
    made = net(PAIR)
    made.blobs["x"].reshape(9, 5)
    made.reshape()
    assert made.blobs["z"].shape == (9, 3)
    x = rows(9, 5)
    np.testing.assert_allclose(made.forward(x=x)["z"], by_hand(made, x), atol=2e-6)


def test_any_number_of_samples():
    made, x, d = net(PAIR), rows(11, 5), rows(11, 3, seed=3)
    np.testing.assert_allclose(made.forward_all(x=x)["z"], by_hand(made, x), atol=2e-6)
    outs, grads = made.forward_backward_all(blobs=["y"], diffs=["y"], x=x, z=d)
    assert outs["y"].shape == (11, 3)
    np.testing.assert_allclose(grads["y"], d * (1 - by_hand(made, x) ** 2), atol=2e-6)
    assert grads["x"].shape == (11, 5)


def test_wrong_inputs_are_named():
    made = net(PAIR)
    with pytest.raises(
        Exception, match=r"Input blob arguments do not match net inputs: \['wrong'\] are given, the net has \['x'\]"
    ):
        made.forward(wrong=rows(4, 5))
    with pytest.raises(Exception, match="not batch sized: 'x' takes 4 at once"):
        made.forward(x=rows(3, 5))


def test_weights_go_through_files_of_both_formats(tmp_path):
    made = net(PAIR)
    made.save(tmp_path / "w.caffemodel")
    made.save_hdf5(str(tmp_path / "w.h5"))
    text = write(tmp_path, "net.prototxt", PAIR)
    for other in (
        caffe.Net(text, caffe.TEST, weights=str(tmp_path / "w.caffemodel")),
        caffe.Net(text, str(tmp_path / "w.h5"), caffe.TEST),
    ):  # the old form of the constructor
        for mine, theirs in zip(made.params["ip"], other.params["ip"]):
            assert (mine.data == theirs.data).all()
    third = caffe.Net(text, caffe.TEST)
    assert (third.params["ip"][0].data != made.params["ip"][0].data).any()
    third.load_hdf5(str(tmp_path / "w.h5"))
    assert (third.params["ip"][0].data == made.params["ip"][0].data).all()
    message = caffe.proto.caffe_pb2.NetParameter.FromString((tmp_path / "w.caffemodel").read_bytes())
    assert [layer.name for layer in message.layer] == ["in", "ip", "act"] and not message.layer[1].blobs[0].diff
    np.testing.assert_array_equal(caffe.io.blobproto_to_array(message.layer[1].blobs[0]), made.params["ip"][0].data)


def test_a_name_with_a_comma_is_one_name(tmp_path):
    """'weights.pretrained, end-to-end.caffemodel', as one of Caffe's notebooks calls it."""
    made, name = net(PAIR), str(tmp_path / "weights.pretrained, end-to-end.caffemodel")
    made.save(name)
    text = write(tmp_path, "net.prototxt", PAIR)
    fresh = caffe.Net(text, caffe.TEST)
    fresh.copy_from(name)
    for other in (fresh, caffe.Net(text, name, caffe.TEST), caffe.Net(text, caffe.TEST, weights=name)):
        assert (other.params["ip"][0].data == made.params["ip"][0].data).all()


def test_shared_weights_are_one():
    made, other = net(PAIR), net(PAIR)
    other.share_with(made)
    other.params["ip"][1].data[...] = 5
    assert (made.params["ip"][1].data == 5).all()
    kept = other.params["ip"][0].data
    del made
    assert np.isfinite(other.forward(x=rows(4, 5))["z"]).all() and kept.any()


def test_mistakes_are_runtime_errors_that_name_their_place(tmp_path):
    with pytest.raises(RuntimeError, match="none.prototxt"):
        caffe.Net(str(tmp_path / "none.prototxt"), caffe.TEST)
    with pytest.raises(RuntimeError, match=r"net.prototxt:3:"):
        net("name: 'a'\n\nlayer { nonsense: 1 }")
    with pytest.raises(RuntimeError, match="(?s)kernel.*in layer 'c'"):
        net(
            "layer { name: 'i' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 1 dim: 3 dim: 3 } } }"
            "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 1 "
            "kernel_size: 9 } }"
        )
    made = net(PAIR)
    with pytest.raises(RuntimeError, match="none.caffemodel"):
        made.copy_from(str(tmp_path / "none.caffemodel"))
    (tmp_path / "bad.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(500))
    with pytest.raises(RuntimeError, match="bad.h5"):
        made.load_hdf5(str(tmp_path / "bad.h5"))
    made.blobs["x"].reshape(4, 6)
    with pytest.raises(RuntimeError, match="in forward of layer 'ip'"):
        made.forward()
    for wrong in (dict(), dict(phase=caffe.TEST, colour=1)):
        with pytest.raises(TypeError, match="Net takes"):
            caffe.Net("x", **wrong)
    made.blobs["x"].reshape(4, 5)
    assert made.forward()["z"].shape == (4, 3)  # still usable


def test_hooks_see_every_layer_and_may_end_a_pass():
    made, seen = net(PAIR), []
    made.before_forward(lambda i: seen.append(("f", i)))
    made.after_forward(lambda i: seen.append(("F", i)))
    made.before_backward(lambda i: seen.append(("b", i)))
    made.after_backward(lambda i: seen.append(("B", i)))
    made.forward(), made.backward()
    assert seen == [(k, i) for i in range(3) for k in "fF"] + [(k, i) for i in (2, 1, 0) for k in "bB"]

    def stop(i):
        if i == 1:
            raise KeyError("enough")

    made.before_forward(stop)
    del seen[:]
    with pytest.raises(KeyError, match="enough"):
        made.forward()
    assert seen == [("f", 0), ("F", 0), ("f", 1)]


MEMORY = """layer { name: 'm' type: 'MemoryData' top: 'data' top: 'label'
  memory_data_param { batch_size: 2 channels: 3 height: 1 width: 2 } }
layer { name: 'p' type: 'Power' bottom: 'data' top: 'p' power_param { scale: 2 } }"""


def test_arrays_for_memory_data_go_round():
    made = net(MEMORY)
    with pytest.raises(RuntimeError, match="call set_input_arrays"):
        made.forward()
    data, labels = rows(6, 3, 1, 2), np.arange(6, dtype=np.float32)
    assert made.blobs["label"].shape == (
        2,
    )  # Caffe's layer makes it so at first, and N x 1 x 1 x 1 when it first computes
    made.set_input_arrays(data, labels)
    for k in (0, 2, 4, 0):
        assert (made.forward()["p"] == 2 * data[k : k + 2]).all()
        assert (made.blobs["label"].data == labels[k : k + 2].reshape(2, 1, 1, 1)).all()
    data[2:4] = 1  # the arrays are read when batches are
    assert (made.forward()["p"] == 2).all()
    for bad, why in (
        (data[:5], "multiple of batch size"),
        (data[:, :2].copy(), "takes 3x1x2"),
        (data.astype(float), "float32"),
        (data[:, ::-1], "C contiguous"),
    ):
        with pytest.raises(RuntimeError, match=why):
            made.set_input_arrays(bad, labels[: len(bad)].copy())
    with pytest.raises(RuntimeError, match="MemoryData"):
        net(PAIR).set_input_arrays(data, labels)


def test_there_is_one_of_each_net_and_blob():
    made = net(PAIR)
    for whole in (made, made.blobs["x"], made.params):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            copy.deepcopy(whole)
    assert (copy.deepcopy(made.blobs["x"].data) == made.blobs["x"].data).all()
    with pytest.raises(AttributeError):
        caffe.Net.__new__(caffe.Net).reshape()


def test_data_layers_read_batch_after_batch(tmp_path, records):
    labels = [b for b in (records / "train-labels").read_bytes()[8:]]
    pixels = np.frombuffer((records / "train-images").read_bytes()[16:], np.uint8).reshape(-1, 1, 28, 28)
    made = caffe.Net(write(tmp_path, "net.prototxt", lenet(records, batch=8)), caffe.TRAIN)
    for k in range(0, 24, 8):
        loss = made.forward()["loss"]
        assert made.blobs["label"].data.tolist() == labels[k : k + 8] and loss > 0
        assert (made.blobs["data"].data == pixels[k : k + 8] * np.float32(0.00390625)).all()
    made.forward(start="conv1")  # the same batch again
    assert made.blobs["label"].data.tolist() == labels[16:24]
    made.forward(end="data")
    assert made.blobs["label"].data.tolist() == labels[24:32]
    made.forward()
    assert made.blobs["label"].data.tolist() == labels[32:40]


def test_levels_and_stages():
    text = PAIR + " layer { name: 'deep' type: 'ReLU' bottom: 'z' top: 'r' include { min_level: 2 stage: 'a' } }"
    assert net(text).outputs == ["z"] == net(text, level=2).outputs == net(text, stages=["a"]).outputs
    assert net(text, level=2, stages=["a", "b"]).outputs == ["r"]
