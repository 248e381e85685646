"""The same data, solver and seed give the same model for any number of workers and threads and on any instruction
set.
"""

import pytest

from conftest import lenet, make_lmdb, solver
from training import instruction_sets, one_outcome, resumed, train, weights


@pytest.fixture
def job(records, tmp_path):
    solver(tmp_path, lenet(records), extra="test_iter: 10; test_interval: 10; clip_gradients: 2; iter_size: 2")
    return tmp_path


def test_one_hash_for_any_workers_threads_and_instruction_set(job):
    one_outcome(job, 8, [(w, t, isa) for w in (1, 2, 4, 8, 3) for t in (1, 2) for isa in instruction_sets(job)])


# What LeNet lacks: random numbers in training and testing, padding, strides, groups, odd sizes.
EVERYTHING = """
name: "everything"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { scale: 0.00390625 crop_size: 25 mirror: true mean_value: 60 }
  data_param { source: "%(records)s/train_lmdb" batch_size: 7 backend: LMDB } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.00390625 crop_size: 25 mirror: true mean_value: 60 }
  data_param { source: "%(records)s/test_lmdb" batch_size: 11 backend: LMDB } }
layer { name: "noise" type: "DummyData" top: "noise"
  dummy_data_param { shape { dim: 7 dim: 10 } data_filler { type: "gaussian" std: 0.1 } }
  include { phase: TRAIN } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 18 kernel_size: 5 stride: 2 pad: 2
  weight_filler { type: "msra" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" relu_param { negative_slope: 0.1 } }
layer { name: "norm1" type: "LRN" bottom: "conv1" top: "norm1" lrn_param { local_size: 5 alpha: 0.01 beta: 0.75 } }
layer { name: "conv2" type: "Convolution" bottom: "norm1" top: "conv2"
  convolution_param { num_output: 21 kernel_size: 3 pad: 1 group: 3
  weight_filler { type: "xavier" } } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "conv3" type: "Convolution" bottom: "pool2" top: "conv3"
  convolution_param { num_output: 10 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "pool3" type: "Pooling" bottom: "pool2" top: "pool3"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "flat3" type: "Flatten" bottom: "conv3" top: "flat3" }
layer { name: "flatp" type: "Flatten" bottom: "pool3" top: "flatp" }
layer { name: "both" type: "Concat" bottom: "flat3" bottom: "flatp" top: "both" }
layer { name: "drop" type: "Dropout" bottom: "both" top: "both" dropout_param { dropout_ratio: 0.4 } }
layer { name: "ip" type: "InnerProduct" bottom: "both" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "noisy" type: "InnerProduct" bottom: "noise" top: "noisy" include { phase: TRAIN }
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "second" type: "SoftmaxWithLoss" bottom: "noisy" bottom: "label" top: "second" loss_weight: 0.1
  include { phase: TRAIN } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def test_random_layers_and_test_results_do_not_depend_on_workers(records, tmp_path):
    solver(
        tmp_path, EVERYTHING % {"records": records}, extra='test_iter: 9; test_interval: 5; regularization_type: "L1"'
    )
    outcome = one_outcome(tmp_path, 5, ((1, 1, "avx2"), (1, 2, ""), (2, 1, ""), (3, 1, ""), (5, 1, "avx2")))
    assert len(outcome.tests) == 10, outcome


def layer(kind, name, bottom, top, options=""):
    return f"layer {{ name: '{name}' type: '{kind}' bottom: '{bottom}' top: '{top}' {options} }}\n"


def inner(name, bottom, outputs, more=""):
    options = f"inner_product_param {{ num_output: {outputs} weight_filler {{ type: 'xavier' }} }} {more}"
    return layer("InnerProduct", name, bottom, name, options)


def large_net(records, *layers):
    source = "data_param { source: '%s/train_lmdb' batch_size: 5 backend: LMDB }" % records
    data = "layer { name: 'd' type: 'Data' top: 'x' top: 'label' transform_param { scale: 0.004 } " + source + " }\n"
    return "name: 'large' " + data + "".join(layers)


SHARED = "param { name: 'w' } param { name: 'b' }"


def test_sums_of_large_gradients_in_parts_give_one_hash(records, tmp_path):
    """Over 8 MiB a gradient is summed in parts beside the backward pass. The statistics of a BatchNorm, a group with a
    branch in its middle, and parameters of two layers are among them.
    """
    convolution = "convolution_param { num_output: 4 kernel_size: 5 stride: 2 weight_filler { type: 'xavier' } }"
    net = large_net(
        records,
        layer("Convolution", "c", "x", "c", convolution),
        layer("BatchNorm", "bn", "c", "c"),
        inner("branch", "x", 1300),
        layer("Scale", "scale", "c", "c", "scale_param { bias_term: true }"),
        layer("ReLU", "relu", "c", "c"),
        inner("ip1", "c", 1300),
        layer("Eltwise", "sum", "branch' bottom: 'ip1", "sum"),
        inner("ip2", "sum", 1300, SHARED),
        inner("ip3", "ip2", 1300, SHARED),
        inner("ip4", "ip3", 10),
        layer("SoftmaxWithLoss", "loss", "ip4' bottom: 'label", "loss"),
    )
    solver(tmp_path, net, max_iter=6, extra="clip_gradients: 5; display: 2")
    one_outcome(tmp_path, 4, ((1, 1, ""), (2, 2, ""), (4, 1, ""), (3, 1, "")))


def test_parts_beside_a_gradient_that_is_left_out_give_one_hash(records, tmp_path):
    """The first gradient is left to the update, and its 196 x 1501 floats are no multiple of 16, at which gradients
    begin: a rest of it stands before the first part.
    """
    net = large_net(
        records,
        layer("Pooling", "p", "x", "p", "pooling_param { kernel_size: 2 stride: 2 }"),
        inner("ip1", "p", 1501),
        inner("ip2", "ip1", 1501, SHARED),
        inner("ip3", "ip2", 1501, SHARED),
        inner("ip4", "ip3", 10),
        layer("SoftmaxWithLoss", "loss", "ip4' bottom: 'label", "loss"),
    )
    solver(tmp_path, net, max_iter=4)
    one_outcome(tmp_path, 4, ((1, 1, ""), (2, 1, ""), (4, 1, "")))


def test_another_seed_gives_another_model(job):
    first = train(job, "-ranks", 2)
    text = (job / "solver.prototxt").read_text()
    (job / "solver.prototxt").write_text(text.replace("random_seed: 1", "random_seed: 2"))
    assert train(job, "-ranks", 2).model != first.model


def test_resuming_on_another_number_of_workers_gives_the_same_bits(job):
    assert resumed(job, 4, (7, 1), 4).files == train(job, "-ranks", 4, "-workers", 2).files


@pytest.mark.parametrize(
    "rule",
    [
        "type: 'Nesterov'; momentum: 0.9",
        "type: 'AdaGrad'; momentum: 0",
        "type: 'RMSProp'; momentum: 0; rms_decay: 0.98",
        "type: 'AdaDelta'; momentum: 0.95; delta: 1e-6",
        "type: 'Adam'; momentum: 0.9; momentum2: 0.99",
    ],
)
def test_every_solver_type_gives_one_hash(records, tmp_path, rule):
    solver(tmp_path, lenet(records), extra=rule.replace("'", '"'))
    wanted = one_outcome(tmp_path, 4, ((1, 1, "avx2"), (3, 2, "")))
    assert resumed(tmp_path, 4, (7, 4), 2).files == wanted.files


SMOOTH = """
name: "smooth"
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { scale: 0.00390625 }
  data_param { source: "%s" batch_size: %d backend: LMDB } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 12 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { pool: AVE kernel_size: 3 stride: 3 } }
layer { name: "norm" type: "LRN" bottom: "pool" top: "norm" lrn_param { local_size: 3 alpha: 0.1 beta: 0.75 } }
layer { name: "ip" type: "InnerProduct" bottom: "norm" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.mark.parametrize("extra", ["", "clip_gradients: 0.5", "iter_size: 2", "clip_gradients: 0.5; iter_size: 2"])
def test_two_ranks_of_32_are_one_rank_of_64(tmp_path, extra):
    """100 iterations within the first epoch, where both programs see the same records in each step. The net has no
    kinks: with ReLU or max pooling a single rounding sometimes sends a gradient another way, and then no float
    tolerance holds.
    """
    make_lmdb(tmp_path, "train", 12800 if "iter_size" in extra else 6400, seed=3)
    models = []
    for ranks, batch in ((1, 64), (2, 32)):
        folder = tmp_path / f"r{ranks}"
        folder.mkdir()
        solver(folder, SMOOTH % (tmp_path / "train_lmdb", batch), max_iter=100, extra="base_lr: 0.05;" + extra)
        done = train(folder, "-ranks", ranks, "-workers", ranks)
        assert ("Gradient clipping" in done.log) == ("clip" in extra), "the case should clip exactly when it says so"
        models.append(weights(folder / "snap_iter_100.caffemodel"))
    assert len(models[0]) == len(models[1]) == 12 * 26 + 10 * (12 * 64 + 1)
    assert max(abs(a - b) for a, b in zip(*models)) < 2e-6
