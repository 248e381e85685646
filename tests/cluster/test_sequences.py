"""Recurrent nets: the state that is carried from step to step belongs to a rank, so that the model has one hash for
any number of workers.
"""

import pytest

from conftest import solver
from training import one_outcome, resumed, train

# A batch of 12 pictures is a sequence of 12 steps; `cont` says whether it continues the previous batch.
NET = """
name: "sequences"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { scale: 0.00390625 } data_param { source: "%(records)s/train_lmdb" batch_size: 12 backend: LMDB } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.00390625 } data_param { source: "%(records)s/test_lmdb" batch_size: 12 backend: LMDB } }
layer { name: "cont" type: "DummyData" top: "cont" dummy_data_param { shape { dim: 12 dim: 1 } data_filler {
  value: %(cont)d } } }
layer { name: "lstm1" type: "LSTM" bottom: "data" bottom: "cont" top: "lstm1"
  recurrent_param { num_output: 13 weight_filler { type: "uniform" min: -0.08 max: 0.08 } } }
layer { name: "lstm2" type: "LSTM" bottom: "lstm1" bottom: "cont" top: "lstm2"
  recurrent_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "table" type: "Embed" bottom: "label" top: "table"
  embed_param { input_dim: 10 num_output: 5 weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "flat" type: "Flatten" bottom: "lstm2" top: "flat" }
layer { name: "both" type: "Concat" bottom: "flat" bottom: "table" top: "both" }
layer { name: "ip" type: "InnerProduct" bottom: "both" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
LOST = "goes on with sentences of the batch before"


def write(folder, records, cont):
    solver(
        folder,
        NET % {"records": records, "cont": cont},
        max_iter=12,
        extra="test_iter: 7; test_interval: 4; iter_size: 2; clip_gradients: 3; base_lr: 0.1",
    )


@pytest.mark.parametrize("cont", [0, 1])
def test_one_hash_whoever_computes_a_rank(records, tmp_path, cont):
    write(tmp_path, records, cont)
    wanted = one_outcome(tmp_path, 4, ((1, 1, "avx2"), (1, 2, ""), (2, 1, ""), (3, 2, ""), (4, 1, "")))
    assert len(wanted.tests) == 4 and LOST not in wanted.log
    write(tmp_path, records, 1 - cont)
    assert train(tmp_path, "-ranks", 4).model != wanted.model  # the state that is carried changes the model


def test_resuming_is_exact_where_sequences_end_with_their_batch_and_says_so_elsewhere(records, tmp_path):
    for cont in (0, 1):
        write(tmp_path, records, cont)
        wanted = train(tmp_path, "-ranks", 2, "-workers", 2)
        got = resumed(tmp_path, 2, (6, 1), 2)
        assert (got.files == wanted.files) == (cont == 0) and (LOST in got.log) == (cont == 1)
