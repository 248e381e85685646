"""Small nets whose runs hold all that a worker can hold: weights, histories, running statistics, states of recurrent
layers, tests and snapshots.
"""

from conftest import lenet, solver

RANKS, SNAPSHOT = 8, 15  # a snapshot each 15 iterations
CONV = """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
  num_output: 8 kernel_size: 5 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "drop" type: "Dropout" bottom: "conv" top: "conv" }
"""
FLAT = """
layer { name: "flat" type: "Flatten" bottom: "conv" top: "flat" }
"""
# Its weights' gradient is left to the update by several workers, and summed by one alone
# (engine/train/left_gradients.cc).
HIDDEN = """
layer { name: "hidden" type: "InnerProduct" bottom: "flat" top: "hidden"
  inner_product_param { num_output: 128 weight_filler { type: "xavier" } } }
layer { name: "relu_hidden" type: "ReLU" bottom: "hidden" top: "hidden" }
"""
LSTM = """
layer { name: "cont" type: "DummyData" top: "cont" dummy_data_param {
  shape { dim: 6 dim: 1 } data_filler { value: 1 } } }
layer { name: "lstm" type: "LSTM" bottom: "data" bottom: "cont" top: "conv"
  recurrent_param { num_output: 16 weight_filler { type: "uniform" min: -0.08 max: 0.08 } } }
"""
END = """
layer { name: "ip" type: "InnerProduct" bottom: "BOTTOM" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def end(bottom):
    return END.replace("BOTTOM", bottom)


def data(records, batch):
    return "".join(
        f'layer {{ name: "data" type: "Data" top: "data" top: "label" include {{ phase: {phase} }} '
        f"transform_param {{ scale: 0.00390625 mirror: true }} "
        f'data_param {{ source: "{records}/{part}_lmdb" batch_size: {batch} backend: LMDB }} }}\n'
        for phase, part in (("TRAIN", "train"), ("TEST", "test"))
    )


def write(folder, records, kind):
    """kind: lenet, statistics (BatchNorm, dropout, Adam), hidden (the same above a hidden layer) or sequences (an LSTM
    that goes on from batch to batch).
    """
    settings = f"test_iter: 5; snapshot: {SNAPSHOT}; test_interval: 20; average_loss: 3; snapshot_after_train: true;"
    settings += 'snapshot_prefix: "disk/snap";'
    if kind == "lenet":
        solver(folder, lenet(records), max_iter=40, extra=settings)
    elif kind in ("statistics", "hidden"):
        layers = CONV + FLAT + (HIDDEN + end("hidden") if kind == "hidden" else end("flat"))
        solver(folder, data(records, 8) + layers, max_iter=90, extra=settings + 'type: "Adam"; momentum2: 0.999')
    else:
        solver(
            folder,
            data(records, 6) + LSTM + FLAT + end("flat"),
            max_iter=90,
            extra=settings + "iter_size: 2; clip_gradients: 3",
        )


KINDS = ("lenet", "statistics", "hidden", "sequences")
