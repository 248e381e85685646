"""crema export: what onnxruntime, another program, computes with the model is what `import caffe` computes with the
net.

Every comparison is within 1e-5 of the largest value of a blob, for the net's own batch and, where the model says that
the batch is free, for another. Weights are drawn here (He-scaled; running statistics of positive variance): fillers'
zeros would hide mistakes.
"""

import sys
import zlib

import numpy as np
import pytest

from conftest import ROOT, crema

pytest.importorskip("onnxruntime", reason="SKIPPED: onnxruntime is not installed (scripts/lib.sh, ensure_onnxruntime)")
sys.path.append(str(ROOT / "tests/python"))
from pycaffe_module import caffe  # noqa: E402

from support.onnx_model import Exported, case_text, values  # noqa: E402

# Data layers compute nothing, and Silence and HDF5Output have no tops.
CASES = [
    line
    for line in (
        text.split("|")
        for text in (ROOT / "tests/goldens/layers/cases.txt").read_text().splitlines()
        if text and text[0] != "#"
    )
    if line[2] and not line[0].startswith(("silence", "hdf5-output"))
]
LIMIT = 1e-5

# Cases without a model: losses and layers that judge scores have nothing to export; a Filter's batch is known only at
# run time.
JUDGES = (
    "accuracy",
    "contrastive",
    "euclidean",
    "hinge",
    "infogain",
    "multinomial",
    "sigmoid-cross-entropy",
    "softmax-loss",
    "split",
)
WITHOUT = {"filter": "Filter", "filter-all": "Filter", "filter-4d": "Filter"}
REFUSED = {
    "argmax-1d": "its bottom has one axis",
    "convolution-nospatial": "it has no spatial axis; InnerProduct does the same",
}
CONSTANT = {"clip-same"}  # all outputs are zero or constant, so there is no relative error

MORE = """argmax-ties|TEST|4,6|l3|s|type: "ArgMax" argmax_param { top_k: 3 out_max_val: true }
argmax-axis-ties|TEST|4,6,2|l3|s|type: "ArgMax" argmax_param { axis: 1 top_k: 2 }
batchnorm-batch|TEST|4,3,5|s|p|type: "BatchNorm" batch_norm_param { use_global_stats: false }
batchnorm-one-axis|TEST|5|s|p|type: "BatchNorm"
convolution-axis|TEST|2,3,4,7,6|s|s|type: "Convolution" \
convolution_param { axis: 2 num_output: 3 kernel_size: 3 stride: 2 }
deconvolution-1d|TEST|2,3,5|s|s|type: "Deconvolution" \
convolution_param { num_output: 2 kernel_size: 3 stride: 3 pad: 1 }
im2col-axis|TEST|2,3,2,6,5|s|s|type: "Im2col" convolution_param { axis: 2 kernel_h: 2 kernel_w: 3 stride: 2 pad: 1 }
embed-no-word|TEST|4,3|m5|s|type: "Embed" embed_param { input_dim: 5 num_output: 3 }
inner-product-last|TEST|2,3,4|s|s|type: "InnerProduct" inner_product_param { num_output: 5 axis: -1 }
inner-product-all|TEST|2,3|s|s|type: "InnerProduct" inner_product_param { num_output: 5 axis: 0 }
lrn-large|TEST|2,7,3,4|s|s|type: "LRN" lrn_param { local_size: 9 alpha: 2 beta: 0.5 }
lstm-exposed|TEST|3,2,5;3,2;1,2,3;2,3|s;b;s;s|s|type: "LSTM" top: "y" top: "h" top: "c" \
recurrent_param { num_output: 3 expose_hidden: true }
lstm-one-step|TEST|1,2,5;1,2;2,4;1,2,3;1,2,3|s;b;s;s;s|s|type: "LSTM" top: "y" top: "h" top: "c" \
recurrent_param { num_output: 3 expose_hidden: true }
pooling-mask-pad|TEST|2,3,7,8|s|s|type: "Pooling" top: "y" top: "mask" pooling_param { kernel_size: 3 stride: 2 pad: 1 }
power-zero|TEST|3,7|s|s|type: "Power" power_param { power: 0 scale: 2 }
rnn-exposed|TEST|3,2,5;3,2;1,2,3|s;b;s|s|type: "RNN" top: "y" top: "h" \
recurrent_param { num_output: 3 expose_hidden: true }
scale-bottom-bias|TEST|4,3,2;4|s;s|s|type: "Scale" scale_param { axis: 0 bias_term: true }
spp-one|TEST|2,3,9,8|s|s|type: "SPP" spp_param { pyramid_height: 1 pool: AVE }
swish-plain|TEST|3,7|s|s|type: "Swish" swish_param { }"""
CASES += [("more-" + line).split("|") for line in MORE.splitlines()]

# Corners of pooling's rounding: windows cut at the padded border, a last window that is dropped, strides beyond the
# kernel.
POOLS = [
    (size, kernel, stride, pad)
    for size in (5, 6, 7, 8)
    for kernel in (1, 2, 3, 4)
    for stride in (1, 2, 3)
    for pad in (0, 1, 2)
    if pad < kernel and (kernel >= stride or pad)
]


def noise(rng, *names):
    return lambda net: {n: rng.standard_normal(net.blobs[n].data.shape, dtype=np.float32) for n in names}


def check(exported, feed, name, batches=(0, 2)):
    assert exported.done.code == 0, exported.done.err
    errors = [exported.error(feed, grow) for grow in (batches if exported.any_batch else (0,))]
    print(f"onnx {name}: {max(errors):.1e} of the largest value, {len(errors)} batch size(s)")
    assert max(errors) <= LIMIT, errors
    return len(errors)


def case(folder, line):
    name, _, shapes, fillings, params, layer = line
    shapes = [[int(d) for d in s.split(",")] for s in shapes.split(";")]
    folder.mkdir()
    exported = Exported(folder, case_text(shapes, layer), filling=params, seed=zlib.crc32(name.encode()))
    fillings = dict(zip((f"b{i}" for i in range(len(shapes))), fillings.split(";")))
    return exported, lambda net: {n: values(f, net.blobs[n].data.shape, exported.rng) for n, f in fillings.items()}


def test_every_layer_type(tmp_path):
    compared, free = 0, 0
    for line in CASES:
        name = line[0]
        exported, feed = case(tmp_path / name, line)
        if name.startswith(JUDGES):
            assert (
                exported.done.code == 2
                and "has no scores to export" in exported.done.message
                and not exported.model.exists()
            ), name
            continue
        if name in WITHOUT:
            assert exported.done.code == 2 and not exported.model.exists()
            assert (
                f"layer 'layer' ({WITHOUT[name]}) cannot be exported to ONNX: there is no conversion for type "
                f"{WITHOUT[name]}" in exported.done.message
            )
            continue
        if name in REFUSED:
            assert (
                exported.done.code == 2
                and f"cannot be exported to ONNX: {REFUSED[name]}" in exported.done.message
                and not exported.model.exists()
            )
            continue
        if name in CONSTANT:
            assert exported.done.code == 0
            continue
        free += check(exported, feed, name) > 1
        compared += 1
    judged = sum(line[0].startswith(JUDGES) for line in CASES)
    assert compared == len(CASES) - judged - len(WITHOUT) - len(REFUSED) - len(CONSTANT) and compared >= 200, (
        compared,
        judged,
    )
    assert free >= 100, free
    print(
        f"onnx: {compared} cases compared, {free} of them with two batch sizes; {judged} are losses, {len(WITHOUT)} "
        "have no conversion"
    )


@pytest.mark.parametrize("kind", ["MAX", "AVE"])
def test_pooling_corners(tmp_path, kind):
    """All windows in one net, with a pooling layer for each."""
    text, layers = "", 0
    for size in sorted({p[0] for p in POOLS}):
        text += (
            f'layer {{ name: "in{size}" type: "Input" top: "x{size}" input_param {{ shape {{ dim: 2 dim: 2 dim: '
            f"{size} dim: {size + 1} }} }} }}\n"
        )
    for size, kernel, stride, pad in POOLS:
        layers += 1
        text += (
            f'layer {{ name: "p{layers}" type: "Pooling" bottom: "x{size}" top: "p{layers}" '
            f"pooling_param {{ pool: {kind} kernel_size: {kernel} stride: {stride} pad: {pad} }} }}\n"
        )
    exported = Exported(tmp_path, text)
    assert exported.done.code == 0, exported.done.err
    assert len(exported.session.get_outputs()) == layers == len(POOLS) >= 80
    assert check(exported, noise(exported.rng, *exported.net.inputs), f"{layers} windows, {kind}") == 2


def test_stochastic_pooling_is_its_expectation(tmp_path):
    text = case_text([[2, 3, 7, 8]], 'type: "Pooling" pooling_param { pool: STOCHASTIC kernel_size: 3 stride: 2 }')
    exported = Exported(tmp_path, text)
    check(
        exported, lambda net: {"b0": np.maximum(0, exported.rng.normal(size=net.blobs["b0"].data.shape))}, "stochastic"
    )


def test_names_in_place_and_shared_weights(tmp_path):
    """Four layers on one blob, a parameter of two layers, a blob with three readers, outputs that change nothing."""
    text = """layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 3 dim: 5 } } }
    layer { name: "a" type: "InnerProduct" bottom: "x" top: "h" param { name: "w" }
      inner_product_param { num_output: 5 bias_term: false } }
    layer { name: "s" type: "Scale" bottom: "h" top: "h" } layer { name: "r" type: "ReLU" bottom: "h" top: "h" }
    layer { name: "d" type: "Dropout" bottom: "h" top: "h" }
    layer { name: "b" type: "InnerProduct" bottom: "h" top: "g" param { name: "w" }
      inner_product_param { num_output: 5 bias_term: false } }
    layer { name: "e" type: "Eltwise" bottom: "h" bottom: "g" bottom: "x" top: "sum" }
    layer { name: "drop" type: "Dropout" bottom: "g" top: "dropped" }
    layer { name: "p" type: "TanH" bottom: "h" top: "p" }
    layer { name: "q" type: "Parameter" top: "q" parameter_param { shape { dim: 2 dim: 3 } } }"""
    exported = Exported(tmp_path, text)
    assert check(exported, noise(exported.rng, "x"), "in place") == 2
    assert sorted(o.name for o in exported.session.get_outputs()) == ["dropped", "p", "q", "sum"]
    assert [i.name for i in exported.session.get_inputs()] == ["x"]
    assert exported.model.stat().st_size - len(text) < 3000, "the shared parameter is stored once"


def test_a_loss_with_a_second_top_gives_its_probabilities(tmp_path):
    text = """layer { name: "in" type: "Input" top: "x" top: "label"
      input_param { shape { dim: 3 dim: 5 } shape { dim: 3 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 4 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "label" top: "loss" top: "prob" }"""
    exported = Exported(tmp_path, text)
    assert check(exported, noise(exported.rng, "x"), "probabilities") == 2
    assert [o.name for o in exported.session.get_outputs()] == ["prob"] and [
        i.name for i in exported.session.get_inputs()
    ] == ["x"]


@pytest.mark.parametrize("bottoms", ["code data", "data code"])
def test_a_prediction_may_be_either_bottom_of_a_euclidean_loss(tmp_path, bottoms):
    text = """layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 3 dim: 5 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "code" inner_product_param { num_output: 5 } }
    layer { name: "loss" type: "EuclideanLoss" %s top: "loss" }"""
    exported = Exported(tmp_path, text % " ".join(f'bottom: "{b}"' for b in bottoms.split()))
    assert check(exported, noise(exported.rng, "data"), bottoms) == 2
    assert [o.name for o in exported.session.get_outputs()] == ["code"]


def test_what_cannot_be_exported_leaves_no_file(tmp_path):
    text = case_text([[2, 3]], 'type: "InnerProduct" inner_product_param { num_output: 2 }')
    (tmp_path / "net.prototxt").write_text(text)
    done = crema("export", "-model", tmp_path / "net.prototxt", "--onnx", tmp_path / "net.onnx")
    assert done.code == 2 and "'layer' the first; give their values: -weights FILE.caffemodel" in done.message
    done = crema("export", "-model", tmp_path / "net.prototxt")
    assert done.code == 2 and "-output is missing" in done.message
    net = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST)
    net.save(str(tmp_path / "a.caffemodel"))
    (tmp_path / "more.prototxt").write_text(
        text + 'layer { name: "new" type: "InnerProduct" bottom: "y" top: "z" inner_product_param { num_output: 2 } }'
    )
    weights = ["-weights", tmp_path / "a.caffemodel"]
    done = crema("export", "-model", tmp_path / "more.prototxt", *weights, "--onnx", tmp_path / "more.onnx")
    assert done.code == 0 and "has no values for new: the random values of their fillers enter the results" in done.err
    done = crema("export", "-model", tmp_path / "net.prototxt", *weights, "--onnx", tmp_path / "none/net.onnx")
    assert done.code == 1 and "none/net.onnx" in done.message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.caffemodel", "more.onnx", "more.prototxt", "net.prototxt"]


def test_a_layer_that_counts_the_batch_fixes_it(tmp_path):
    text = case_text([[4, 3]], 'type: "Reshape" reshape_param { shape { dim: 2 dim: 6 } }')
    exported = Exported(tmp_path, text)
    assert check(exported, noise(exported.rng, "b0"), "fixed") == 1
    assert (
        exported.session.get_inputs()[0].shape == [4, 3]
        and "the batch is fixed, 4: a layer depends on it" in exported.done.out
    )
