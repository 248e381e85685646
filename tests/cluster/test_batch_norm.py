"""BatchNorm's running statistics are summed over all ranks with the gradients: the model has one hash for any number
of workers, and resuming is exact. The pass for the display behind the last iteration moves them for the last test
only: outputs are the same for any workers, and so is the model.
"""

from conftest import solver
from training import one_outcome, resumed, weights

NET = """
name: "normalised"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { scale: 0.00390625 } data_param { source: "%(records)s/train_lmdb" batch_size: 9 backend: LMDB } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.00390625 } data_param { source: "%(records)s/test_lmdb" batch_size: 11 backend: LMDB } }
layer { name: "bn0" type: "BatchNorm" bottom: "data" top: "bn0" batch_norm_param { moving_average_fraction: 0.9 } }
layer { name: "conv1" type: "Convolution" bottom: "bn0" top: "conv1"
  convolution_param { num_output: 7 kernel_size: 5 stride: 2 bias_term: false weight_filler { type: "msra" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2"
  convolution_param { num_output: 7 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "bn2" type: "BatchNorm" bottom: "conv2" top: "bn2" batch_norm_param { eps: 0.001 } }
layer { name: "scale2" type: "Scale" bottom: "bn2" top: "bn2" scale_param { bias_term: true } }
layer { name: "prelu2" type: "PReLU" bottom: "bn2" top: "bn2" }
layer { name: "sum" type: "Eltwise" bottom: "bn2" bottom: "conv1" top: "sum" }
layer { name: "pool" type: "Pooling" bottom: "sum" top: "pool" pooling_param { pool: AVE global_pooling: true } }
layer { name: "tanh" type: "TanH" bottom: "pool" top: "pool" }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "swish" type: "Swish" bottom: "ip" top: "ip" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


def test_one_hash_whoever_computes_a_rank_and_exact_resuming(records, tmp_path):
    solver(
        tmp_path,
        NET % {"records": records},
        max_iter=14,
        extra="test_iter: 7; test_interval: 7; display: 7; iter_size: 2; clip_gradients: 3; base_lr: 0.05",
    )
    wanted = one_outcome(tmp_path, 4, ((1, 1, "avx2"), (1, 2, ""), (2, 1, ""), (3, 2, ""), (4, 1, "")))
    assert len(wanted.tests) == 3, wanted
    # bn0 comes first: mean, variance and weight of 28 passes, one number each; every pass adds 1 to the weight.
    mean, variance, weight = weights(tmp_path / "snap_iter_14.caffemodel")[:3]
    assert (
        abs(weight - sum(0.9**k for k in range(28))) < 1e-4 and 0 < mean / weight < 1 and 0 < variance / weight < 0.25
    )
    assert resumed(tmp_path, 4, (5, 2), 3).files == wanted.files
