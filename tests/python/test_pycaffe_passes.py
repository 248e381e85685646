"""Passes in any order: backward without forward, parts of nets, running statistics that move with every forward."""

import numpy as np
import pytest

from pycaffe_module import caffe, net, python, write

IN_PLACE = "layer {{ name: 'act' type: '{0}' bottom: 'y' top: '{1}' }}"
HEAD = """force_backward: true layer { name: 'd' type: 'Input' top: 'x'
  input_param { shape { dim: 3 dim: 4 dim: 2 dim: 2 } } }
layer { name: 'p' type: 'Power' bottom: 'x' top: 'y' power_param { shift: 0.25 } }"""
ALONE = """
import numpy as np, caffe
HEAD = '''%s'''
for type in %r:
    for top in ("y", "z"):
        if top == "y" and type in ("LRN", "Pooling", "SPP"): continue
        more = {"Eltwise": "bottom: 'x' eltwise_param { operation: MAX }",
                "LRN": "lrn_param { norm_region: WITHIN_CHANNEL }",
                "Pooling": "pooling_param { kernel_size: 2 }", "SPP": "spp_param { pyramid_height: 2 }"}.get(type, "")
        layer = "layer { name: 'l' type: '%%s' bottom: 'y' top: '%%s' %%s }" %% (type, top, more)
        open("net.prototxt", "w").write(HEAD + layer)
        n = caffe.Net("net.prototxt", caffe.TRAIN)
        n.backward()                                                   # before any forward pass
        n.blobs["x"].reshape(30000, 4, 2, 2)
        try:
            n.backward()
            raise SystemExit("no sentence for " + type)
        except RuntimeError as e:
            assert "go forward, or reshape the net" in str(e), e
        n.reshape(), n.backward()                                       # after growing
        n.forward(), n.backward()
        assert np.isfinite(n.blobs["x"].diff).all()
print("all came back")
"""


def test_backward_never_needs_a_forward_to_be_safe(tmp_path):
    done = python(
        ALONE
        % (
            HEAD,
            [
                "MVN",
                "BatchNorm",
                "Eltwise",
                "ELU",
                "TanH",
                "Sigmoid",
                "Scale",
                "PReLU",
                "LRN",
                "Pooling",
                "SPP",
                "Softmax",
                "ReLU",
                "Dropout",
            ],
        ),
        tmp_path,
    )
    assert done.returncode == 0 and done.stdout == "all came back\n", done.stderr[-2000:]


@pytest.mark.parametrize("kind", ["ELU", "Sigmoid", "TanH"])
def test_a_solvers_test_net_goes_back_in_place(tmp_path, kind):
    found = []
    for top in "yz":
        text = (
            """layer { name: 'd' type: 'DummyData' top: 'x' top: 't'
              dummy_data_param { shape { dim: 3 dim: 4 } shape { dim: 3 dim: 2 }
          data_filler { type: 'gaussian' } } }
          layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
            inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }
          """
            + IN_PLACE.format(kind, top)
            + "layer { name: 'loss' type: 'EuclideanLoss' bottom: '%s' bottom: 't' top: 'loss' }" % top
        )
        path = write(tmp_path, top + ".prototxt", text)
        solver = caffe.SGDSolver(
            write(
                tmp_path,
                "s.prototxt",
                f"net: '{path}' base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 test_iter: 1 "
                "test_interval: 1 random_seed: 5 snapshot_after_train: false",
            )
        )
        solver.test_nets[0].forward(), solver.test_nets[0].backward()
        found.append(solver.test_nets[0].params["ip"][0].diff.copy())
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0]).max() > 0.01


def test_a_solvers_test_net_goes_back_from_its_last_test(tmp_path):
    data = """layer { name: 'd' type: '%s' top: 'x' top: 't' %s
      { shape { dim: 2 dim: 3 dim: 6 dim: 6 } shape { dim: 2 dim: 4 dim: 3 dim: 3 } %s } }
      layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c'
        convolution_param { num_output: 4 kernel_size: 1 weight_filler { type: 'xavier' } } }
      layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { kernel_size: 2 stride: 2 } }
      layer { name: 'n' type: 'LRN' bottom: 'p' top: 'n' lrn_param { local_size: 3 alpha: 2 } }
      layer { name: 'loss' type: 'EuclideanLoss' bottom: 'n' bottom: 't' top: 'loss' }"""
    path = write(tmp_path, "n.prototxt", data % ("DummyData", "dummy_data_param", "data_filler { type: 'gaussian' }"))
    solver = caffe.SGDSolver(
        write(
            tmp_path,
            "s.prototxt",
            f"net: '{path}' base_lr: 0 lr_policy: 'fixed' max_iter: 1 test_iter: 1 "
            "test_interval: 1 random_seed: 5 snapshot_after_train: false",
        )
    )
    solver.step(1)
    tested = solver.test_nets[0]
    tested.backward()
    alone = caffe.Net(write(tmp_path, "a.prototxt", data % ("Input", "input_param", "")), caffe.TEST)
    for mine, others in zip(alone.params["c"], tested.params["c"]):
        mine.data[...] = others.data
    for blob in "xt":
        alone.blobs[blob].data[...] = tested.blobs[blob].data
    alone.forward(), alone.backward()
    np.testing.assert_array_equal(tested.params["c"][0].diff, alone.params["c"][0].diff)
    assert np.abs(alone.params["c"][0].diff).max() > 0.01


BN = """layer { name: 'd' type: 'Input' top: 'x' input_param { shape { dim: 64 dim: 4 } } }
layer { name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'y' batch_norm_param { moving_average_fraction: 0.9 } }"""


class Running:
    """Caffe's running sums over the batches so far, in double."""

    def __init__(self, f):
        self.f, self.sums = f, [0.0, 0.0, 0.0]

    def see(self, x):
        x = np.asarray(x, np.float64)
        m = len(x)
        for i, add in enumerate((x.mean(0), x.var(0) * m / (m - 1), 1.0)):
            self.sums[i] = self.f * self.sums[i] + add

    def check(self, params):
        for mine, want in zip(params, self.sums):
            np.testing.assert_allclose(mine.data, np.broadcast_to(want, mine.data.shape), rtol=1e-5)


def test_running_statistics_move_with_every_forward(tmp_path):
    rng, want = np.random.default_rng(0), Running(0.9)
    made = net(BN, caffe.TRAIN)
    for _ in range(200):
        made.blobs["x"].data[...] = rng.normal(5, 3, (64, 4))
        made.forward()
        want.see(made.blobs["x"].data)
        assert not any(p.diff.any() for p in made.params["bn"])  # data -= rate * diff leaves them alone
    want.check(made.params["bn"])
    made.forward(end="d")  # the layer does not run, so nothing moves
    want.check(made.params["bn"])
    path = str(tmp_path / "bn.caffemodel")
    made.save(path)
    scored = caffe.Net(write(tmp_path, "net.prototxt", BN), path, caffe.TEST)
    scored.blobs["x"].data[...] = x = rng.normal(5, 3, (64, 4))
    scored.forward()
    mean, variance, total = want.sums
    np.testing.assert_allclose(
        scored.blobs["y"].data, (x - mean / total) / np.sqrt(variance / total + 1e-5), rtol=1e-4, atol=1e-5
    )
    assert scored.params["bn"][2].data[0] == made.params["bn"][2].data[0]


TRAINED = """layer { name: 'd' type: 'DummyData' top: 'x' top: 't'
  dummy_data_param { shape { dim: 8 dim: 3 } shape { dim: 8 dim: 2 }
  data_filler { type: 'gaussian' mean: 2 } } }
layer { name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'n' batch_norm_param { moving_average_fraction: 0.8 } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'n' top: 'y'
  inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }"""


def bn_solver(folder, more=""):
    path = write(folder, "net.prototxt", TRAINED)
    return caffe.SGDSolver(
        write(
            folder,
            "solver.prototxt",
            f"net: '{path}' base_lr: 0.1 lr_policy: 'fixed' max_iter: 4 random_seed: 5 "
            "snapshot_after_train: false " + more,
        )
    )


def test_forwards_between_a_solvers_steps_count(tmp_path):
    solver, want = bn_solver(tmp_path), Running(0.8)
    params = solver.net.params["bn"]
    for _ in range(3):
        solver.step(1)
        want.see(solver.net.blobs["x"].data)
        want.check(params)
        solver.net.forward()
        want.see(solver.net.blobs["x"].data)
        want.check(params)
        assert not any(p.diff.any() for p in params)
    before = solver.net.params["ip"][0].data.copy()
    solver.net.clear_param_diffs()
    solver.net.forward(), solver.net.backward(), solver.apply_update()
    want.see(solver.net.blobs["x"].data)
    want.check(params)
    assert (solver.net.params["ip"][0].data != before).any()


def test_the_display_pass_at_the_end_counts_for_the_last_test_and_not_for_the_model(tmp_path):
    solver, want = (
        bn_solver(tmp_path, "display: 4 test_iter: 1 test_interval: 4 test_initialization: false"),
        Running(0.8),
    )
    solver.add_callback(lambda: None, lambda: want.see(solver.net.blobs["x"].data))
    solver.solve()
    want.check(solver.net.params["bn"])
    want.see(solver.net.blobs["x"].data)  # of the display pass
    mean, variance, total = want.sums
    x = solver.test_nets[0].blobs["x"].data.astype(np.float64)
    np.testing.assert_allclose(
        solver.test_nets[0].blobs["n"].data, (x - mean / total) / np.sqrt(variance / total + 1e-5), rtol=1e-4, atol=1e-5
    )


def test_every_forward_draws_anew():
    made = net(
        """layer { name: 'd' type: 'Input' top: 'x' input_param { shape { dim: 400 } } }
        layer { name: 'drop' type: 'Dropout' bottom: 'x' top: 'y' }""",
        caffe.TRAIN,
    )
    made.blobs["x"].data[...] = 1
    masks = [made.forward()["y"].copy()] + [made.forward(start="drop")["y"].copy() for _ in range(3)]
    for i, mask in enumerate(masks):
        assert set(np.unique(mask)) == {0, 2} and 140 < (mask == 0).sum() < 260
        for other in masks[:i]:
            assert 130 < (mask != other).sum() < 270  # independent: half of them


def test_data_moves_on_when_its_layer_runs(tmp_path):
    text = """layer { name: 'd' type: 'MemoryData' top: 'x' top: 'l'
      memory_data_param { batch_size: 1 channels: 1 height: 1 width: 1 } }
        layer { name: 'drop' type: 'Dropout' bottom: 'x' top: 'y' } layer { name: 's' type: 'Silence' bottom: 'l' }
        layer { name: 'r' type: 'DummyData' top: 'r'
          dummy_data_param { shape { dim: 2 } data_filler { type: 'gaussian' } } }"""
    made = net(text, caffe.TRAIN)
    made.set_input_arrays(np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1), np.zeros(6, np.float32))
    seen = []
    for parts in (
        {},
        {"start": "drop", "end": "drop"},
        {"start": "drop", "end": "s"},
        {"end": "d"},
        {"start": "drop"},
        {},
    ):
        made.forward(**parts)
        seen.append(float(made.blobs["x"].data.squeeze()))
    assert seen == [0, 0, 0, 1, 1, 2]


def test_recurrent_state_goes_on_after_part_of_a_net():
    text = """layer { name: 'd' type: 'Input' top: 'x' top: 'c'
      input_param { shape { dim: 2 dim: 1 dim: 3 } shape { dim: 2 dim: 1 } } }
        layer { name: 'p' type: 'Power' bottom: 'x' top: 'p' }
        layer { name: 'lstm' type: 'LSTM' bottom: 'p' bottom: 'c' top: 'h'
                recurrent_param { num_output: 3 weight_filler { type: 'uniform' min: -1 max: 1 } } }"""
    rows = []
    for between in ((), ("d", "p"), ("p", "p", "p")):
        caffe.set_random_seed(4)
        made = net(text)
        made.blobs["x"].data[...] = 0.5
        made.blobs["c"].data[...] = 1
        first = made.forward()["h"].copy()
        for end in between:
            made.forward(end=end)
        rows.append((first, made.forward()["h"].copy()))
    assert np.abs(rows[0][1] - rows[0][0]).max() > 0.01  # training goes on
    for row in rows[1:]:
        np.testing.assert_array_equal(row, rows[0])
