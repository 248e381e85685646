"""One hash for any workers, threads and instruction set, with layers that rearrange, select, draw random numbers,
keep state, and compute losses.
"""

from conftest import solver
from training import one_outcome


def layer(name, kind, bottoms, tops, rest=""):
    blobs = "".join(f' bottom: "{b}"' for b in bottoms.split()) + "".join(f' top: "{t}"' for t in tops.split())
    return f'layer {{ name: "{name}" type: "{kind}"{blobs} {rest} }}\n'


def dummy(name, dims, filler):
    shape = " ".join(f"dim: {d}" for d in dims)
    return layer(name, "DummyData", "", name, f"dummy_data_param {{ shape {{ {shape} }} data_filler {{ {filler} }} }}")


def inner(name, bottom, outputs):
    return layer(
        name,
        "InnerProduct",
        bottom,
        name,
        f'inner_product_param {{ num_output: {outputs} weight_filler {{ type: "xavier" }} }}',
    )


def data(records, phase, batch):
    return f"""layer {{ name: "data" type: "Data" top: "data" top: "label" include {{ phase: {phase} }}
      transform_param {{ scale: 0.00390625 crop_size: 24 mirror: true }}
        data_param {{ source: "{records}/{phase.lower()}_lmdb" batch_size: {batch} backend: LMDB }} }}\n"""


UNIFORM = 'type: "uniform" min: 0 max: {}'


# length: one layer after the other.
def net(records, batch=7):
    return "".join(
        [
            data(records, "TRAIN", batch),
            data(records, "TEST", batch),
            layer(
                "conv",
                "Convolution",
                "data",
                "conv",
                'convolution_param { num_output: 8 kernel_size: 5 stride: 2 weight_filler { type: "msra" } }',
            ),
            layer("relu", "ReLU", "conv", "conv"),
            layer("drawn", "Pooling", "conv", "drawn", "pooling_param { pool: STOCHASTIC kernel_size: 3 stride: 2 }"),
            layer("slice", "Slice", "drawn", "s1 s2", "slice_param { slice_point: 3 }"),
            layer(
                "up",
                "Deconvolution",
                "s1",
                "up",
                'convolution_param { num_output: 6 group: 3 kernel_size: 3 stride: 2 weight_filler { type: "bilinear" '
                "} }",
            ),
            layer("crop", "Crop", "up conv", "crop", "crop_param { offset: 1 }"),
            layer(
                "volume",
                "Reshape",
                "crop",
                "volume",
                "reshape_param { shape { dim: 0 dim: 2 dim: 3 dim: 10 dim: -1 } }",
            ),
            layer(
                "conv3",
                "Convolution",
                "volume",
                "conv3",
                'convolution_param { num_output: 3 kernel_size: 2 weight_filler { type: "xavier" } }',
            ),
            layer("flat3", "Reshape", "conv3", "flat3", "reshape_param { shape { dim: 0 dim: 6 dim: 9 dim: 9 } }"),
            layer("spp", "SPP", "flat3", "spp", "spp_param { pyramid_height: 3 pool: AVE }"),
            layer("tile", "Tile", "s2", "tile", "tile_param { tiles: 2 }"),
            layer("columns", "Im2col", "tile", "columns", "convolution_param { kernel_size: 3 stride: 2 pad: 1 }"),
            inner("ip", "spp", 10),
            inner("side", "columns", 10),
            layer("steps", "Reshape", "side", "steps", "reshape_param { axis: 1 num_axes: 0 shape { dim: 1 } }"),
            dummy("cont", (batch, 1), "value: 1"),
            layer(
                "rnn",
                "RNN",
                "steps cont",
                "rnn",
                'recurrent_param { num_output: 10 weight_filler { type: "uniform" min: -0.3 max: 0.3 } }',
            ),
            layer("told", "Reshape", "rnn", "told", "reshape_param { shape { dim: 0 dim: -1 } }"),
            dummy("order", (batch,), UNIFORM.format(batch)),
            layer("mixed", "BatchReindex", "ip order", "mixed"),
            layer("offset", "Parameter", "", "offset", f"parameter_param {{ shape {{ dim: {batch} dim: 10 }} }}"),
            layer("near", "EuclideanLoss", "mixed offset", "near", "loss_weight: 0.01"),
            dummy("alike", (batch,), UNIFORM.format(2)),
            layer("pairs", "ContrastiveLoss", "ip told alike", "pairs", "loss_weight: 0.01"),
            dummy("answers", (batch, 10), UNIFORM.format(1)),
            layer("cross", "SigmoidCrossEntropyLoss", "side answers", "cross", "loss_weight: 0.01"),
            dummy("worth", (10, 10), UNIFORM.format(1)),
            layer("gain", "InfogainLoss", "told label worth", "gain", "loss_weight: 0.1"),
            layer("hinge", "HingeLoss", "ip label", "hinge", "loss_weight: 0.1 hinge_loss_param { norm: L2 }"),
            layer("soft", "Softmax", "told", "soft"),
            layer("log", "MultinomialLogisticLoss", "soft label", "log", "loss_weight: 0.1"),
            layer("kept", "Filter", "ip label label", "kept keptlabel"),
            layer("loss", "SoftmaxWithLoss", "kept keptlabel", "loss", "propagate_down: true propagate_down: false"),
            inner("gates", "ip", 12),
            layer("unit", "Reshape", "gates", "unit", "reshape_param { axis: 0 num_axes: 0 shape { dim: 1 } }"),
            dummy("before", (1, batch, 3), UNIFORM.format(1)),
            dummy("on", (1, batch), "value: 1"),
            layer("lstm", "LSTMUnit", "before unit on", "c h"),
            dummy("goal", (1, batch, 3), "value: 0.5"),
            layer("reach", "EuclideanLoss", "h goal", "reach", "loss_weight: 0.1"),
            layer("first", "ArgMax", "ip", "first", "include { phase: TEST }"),
        ]
    )


def test_one_hash_and_one_test_result(records, tmp_path):
    solver(tmp_path, net(records), extra="test_iter: 9; test_interval: 10")
    tests = one_outcome(tmp_path, 4, ((1, 1, "avx2"), (1, 2, ""), (2, 1, ""), (3, 1, ""), (4, 2, "avx2"))).tests
    assert any("hinge = " in t for t in tests) and not any("nan" in t for t in tests), tests
