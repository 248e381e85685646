"""Solvers in Python: the update, callbacks, snapshots, and results equal to the executable's."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from pycaffe_module import caffe, net, write

import conftest
from conftest import lenet, records  # noqa: F401 (fixture)

NET = """name: 'line' layer { name: 'd' type: 'DummyData' top: 'x' top: 't'
  dummy_data_param { shape { dim: 6 dim: 4 } shape { dim: 6 dim: 2 }
  data_filler { type: 'gaussian' std: 1 } } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
  inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }
layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' }"""
BASE = (
    "base_lr: 0.05 lr_policy: 'step' gamma: 0.5 stepsize: 4 momentum: 0.9 weight_decay: 0.01 max_iter: 10 "
    "random_seed: 3 snapshot_after_train: false "
)


def solver_file(folder, more=BASE, text=NET, name="solver.prototxt"):
    return write(folder, name, f"net: '{write(folder, 'net.prototxt', text)}' snapshot_prefix: '{folder}/s' {more}")


def weights(solver):
    return [p.data.copy() for p in solver.net.params["ip"]]


def test_steps_are_sgd_with_momentum_by_hand(tmp_path):
    solver = caffe.SGDSolver(solver_file(tmp_path))
    w = [p.astype(np.float64) for p in weights(solver)]
    h, grads = [np.zeros_like(p) for p in w], []
    solver.add_callback(lambda: None, lambda: grads.append([p.diff.copy() for p in solver.net.params["ip"]]))
    for k in range(10):
        assert solver.iter == k and solver.lr == pytest.approx(0.05 * 0.5 ** (k // 4))
        solver.step(1)
        x, t = (solver.net.blobs[n].data.astype(np.float64) for n in "xt")
        d = (x @ w[0].T + w[1] - t) / 6
        for i, g in enumerate((d.T @ x, d.sum(0))):
            np.testing.assert_allclose(grads[k][i], g, rtol=1e-4, atol=1e-6)
            h[i] = 0.9 * h[i] + 0.05 * 0.5 ** (k // 4) * (g + 0.01 * w[i])
        w = [p - v for p, v in zip(w, h)]
        for mine, want in zip(weights(solver), w):
            np.testing.assert_allclose(mine, want, rtol=1e-5, atol=1e-6)


def test_solve_is_step_and_steps_add_up(tmp_path):
    file = solver_file(tmp_path)
    solved, stepped = caffe.get_solver(file), caffe.get_solver(file)
    solved.solve()
    stepped.step(4), stepped.step(0), stepped.step(6)
    assert solved.iter == stepped.iter == 10
    assert all((a == b).all() for a, b in zip(weights(solved), weights(stepped)))


def test_apply_update_and_settings(tmp_path):
    solver = caffe.SGDSolver(solver_file(tmp_path, BASE.replace("weight_decay: 0.01", "")))
    before = weights(solver)
    for p in solver.net.params["ip"]:
        p.diff[...] = 1
    solver.param.base_lr = 0.5
    solver.apply_update()
    assert solver.iter == 1 and solver.param.base_lr == 0.5
    for old, new in zip(before, weights(solver)):
        np.testing.assert_allclose(new, old - 0.5, rtol=1e-6)
    solver.param.max_iter = 3
    solver.param.display = 2
    solver.solve()
    assert (solver.iter, solver.param.max_iter, solver.param.display) == (3, 3, 2)
    with pytest.raises(RuntimeError, match="0 to 2147483647"):
        solver.param.max_iter = -1


@pytest.mark.parametrize("kind", ["SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"])
def test_every_type_has_its_class(tmp_path, kind):
    more = "base_lr: 0.01 lr_policy: 'fixed' max_iter: 5 snapshot_after_train: false random_seed: 3 "
    more += "" if kind in ("AdaGrad", "RMSProp") else "momentum: 0.9 "
    wanted = getattr(caffe, kind + "Solver")
    named = caffe.get_solver(solver_file(tmp_path, more + f"type: '{kind}'"))
    by_class = wanted(solver_file(tmp_path, more))
    assert type(named) is wanted and by_class.type == named.type == kind
    named.solve(), by_class.solve()
    assert all((a == b).all() for a, b in zip(weights(named), weights(by_class)))
    assert isinstance(named, caffe.Solver)


def test_snapshots_are_where_a_run_goes_on(tmp_path):
    file = solver_file(tmp_path)
    whole = caffe.get_solver(file)
    whole.solve()
    first = caffe.get_solver(file)
    first.step(6)
    first.snapshot()
    assert sorted(p.name for p in tmp_path.glob("s_iter*")) == ["s_iter_6.caffemodel", "s_iter_6.solverstate"]
    second, third = caffe.get_solver(file), caffe.get_solver(file)
    second.restore(str(tmp_path / "s_iter_6.solverstate"))
    assert second.iter == 6
    second.step(4)
    third.solve(str(tmp_path / "s_iter_6.solverstate"))
    for other in (second, third):
        assert other.iter == 10 and all((a == b).all() for a, b in zip(weights(whole), weights(other)))
    with pytest.raises(RuntimeError, match="none.solverstate"):
        first.restore(str(tmp_path / "none.solverstate"))


def test_hdf5_snapshots(tmp_path):
    file = solver_file(tmp_path, BASE + "snapshot_format: HDF5")
    made = caffe.get_solver(file)
    made.step(2)
    made.snapshot()
    again = caffe.get_solver(file)
    again.restore(str(tmp_path / "s_iter_2.solverstate.h5"))
    assert again.iter == 2 and all((a == b).all() for a, b in zip(weights(made), weights(again)))


def test_callbacks_come_in_order_and_may_end_a_run(tmp_path):
    solver, seen = caffe.get_solver(solver_file(tmp_path, BASE + "iter_size: 2")), []
    solver.add_callback(lambda: seen.append("start"), lambda: seen.append("ready"))
    solver.net.before_forward(lambda i: seen.append(i))
    solver.step(2)
    assert seen == ["start", 0, 1, 2, 0, 1, 2, "ready"] * 2

    def enough():
        if solver.iter == 5:
            raise StopIteration("five are enough")

    solver.add_callback(lambda: None, enough)
    with pytest.raises(StopIteration, match="five are enough"):
        solver.solve()
    assert solver.iter == 5


def test_gradients_may_be_changed_before_the_update(tmp_path):
    solver = caffe.get_solver(solver_file(tmp_path, BASE.replace("weight_decay: 0.01", "")))
    before = weights(solver)

    def freeze():
        solver.net.params["ip"][0].diff[...] = 0

    solver.add_callback(lambda: None, freeze)
    solver.step(3)
    assert (weights(solver)[0] == before[0]).all() and (weights(solver)[1] != before[1]).all()


def test_ctrl_c_ends_a_run_behind_the_iteration(tmp_path):
    solver = caffe.get_solver(solver_file(tmp_path, BASE.replace("max_iter: 10", "max_iter: 2000000000")))
    start = time.monotonic()

    def too_late():
        assert time.monotonic() - start < 20, "nobody noticed the signal"

    solver.add_callback(too_late, lambda: None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in a background job SIGINT would be ignored
    try:
        threading.Thread(target=lambda: (time.sleep(0.5), os.kill(os.getpid(), signal.SIGINT))).start()
        with pytest.raises(KeyboardInterrupt):
            solver.solve()
    finally:
        signal.signal(signal.SIGINT, before)
    reached = solver.iter
    assert reached > 0
    solver.step(1)
    assert solver.iter == reached + 1


def test_test_nets_share_the_weights_and_nets_outlive_their_solver(tmp_path):
    solver = caffe.get_solver(solver_file(tmp_path, BASE + "test_iter: 2 test_interval: 5"))
    assert len(solver.test_nets) == 1
    solver.step(3)
    test_net, train_net = solver.test_nets[0], solver.net
    assert (test_net.params["ip"][0].data == train_net.params["ip"][0].data).all()
    other = net(NET)
    solver.share_weights(other)
    assert (other.params["ip"][0].data == train_net.params["ip"][0].data).all()
    with pytest.raises(RuntimeError, match="share the other way"):
        train_net.share_with(other)
    del solver
    test_net.forward(), train_net.forward(), train_net.backward(), other.forward()
    assert all(np.isfinite(b.data).all() for b in train_net.blobs.values())


def test_seeds(tmp_path):
    def fresh():
        caffe.set_random_seed(77)
        return net(NET), net(NET)

    (a, b), (c, d) = fresh(), fresh()
    for one, same in ((a, c), (b, d)):
        assert (one.params["ip"][0].data == same.params["ip"][0].data).all()
    assert (a.params["ip"][0].data != b.params["ip"][0].data).any()


def test_mistakes_and_what_this_build_lacks(tmp_path):
    with pytest.raises(RuntimeError, match="Unknown learning rate policy"):
        caffe.get_solver(solver_file(tmp_path, "base_lr: 1 lr_policy: 'none'"))
    with pytest.raises(RuntimeError, match="none.prototxt"):
        caffe.SGDSolver(str(tmp_path / "none.prototxt"))
    assert caffe.has_nccl() is False
    for call in (
        caffe.NCCL,
        caffe.NCCL.new_uid,
        lambda: caffe.set_solver_count(2),
        lambda: caffe.set_multiprocess(True),
    ):
        with pytest.raises(RuntimeError, match="no NCCL"):
            call()
    for call in (caffe.set_mode_gpu, lambda: caffe.set_device(0)):
        with pytest.raises(RuntimeError, match="CPU-only"):
            call()
    caffe.set_mode_cpu(), caffe.set_solver_count(1), caffe.set_solver_rank(0), caffe.set_multiprocess(False)
    assert (caffe.solver_count(), caffe.solver_rank()) == (1, 0)
    timer = caffe.Timer()
    timer.start(), time.sleep(0.02), timer.stop()
    assert 20 <= timer.ms < 2000 and timer.ms == timer.ms


def same_in_both(folder, settings, steps):
    """Trains in this process, layer by layer as a program may look at blobs, and by the executable, by its plan."""
    for name in ("python", "executable"):
        write(folder, name + ".prototxt", settings + f"snapshot_prefix: '{folder}/{name}' max_iter: {steps}")
    caffe.set_threads(1)
    try:
        caffe.get_solver(str(folder / "python.prototxt")).solve()
    finally:
        caffe.set_threads(0)
    ended = conftest.crema("train", "--solver", folder / "executable.prototxt")
    assert ended.code == 0, ended.err
    ours, theirs = ((folder / f"{n}_iter_{steps}.caffemodel").read_bytes() for n in ("python", "executable"))
    assert ours == theirs


def test_a_run_in_python_is_the_executables_to_the_bit(tmp_path, records):
    (tmp_path / "net.prototxt").write_text(lenet(records))
    text = (conftest.ROOT / "examples/lenet_solver.prototxt").read_text()
    text = "\n".join(
        line
        for line in text.splitlines()
        if not line.startswith(("net:", "max_iter:", "snapshot", "test_iter", "test_interval", "random_seed"))
    )
    text += (
        f"\nnet: '{tmp_path}/net.prototxt' test_iter: 2 test_interval: 10 random_seed: 9 snapshot_after_train: true\n"
    )
    same_in_both(tmp_path, text, 25)


def residual_net():
    xavier = "weight_filler { type: 'xavier' }"
    lines = [
        "name: 'residual' layer { name: 'd' type: 'DummyData' top: 'x' top: 't' dummy_data_param { "
        "shape { dim: 6 dim: 3 dim: 11 dim: 11 } shape { dim: 6 dim: 5 } data_filler { type: 'gaussian' std: 1 } } }"
    ]

    def layer(kind, name, bottoms, top, options=""):
        wires = " ".join(f"bottom: '{b}'" for b in bottoms)
        lines.append(f"layer {{ name: '{name}' type: '{kind}' {wires} top: '{top}' {options} }}")
        return top

    def block(name, x, relu):
        conv = f"convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 bias_term: false {xavier} }}"
        layer("Convolution", name, [x], name, conv)
        layer("BatchNorm", name + "/bn", [name], name)
        layer("Scale", name + "/scale", [name], name, "scale_param { bias_term: true }")
        return layer("ReLU", name + "/relu", [name], name) if relu else name

    a = block("a", "x", True)
    s = layer("Eltwise", "s", [a, block("c", block("b", a, True), False)], "s")
    norm = layer(
        "LRN", "n", [layer("ReLU", "r", [s], s)], "n", "lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }"
    )
    flat = layer(
        "Flatten", "f", [layer("Pooling", "p", [norm], "p", "pooling_param { kernel_size: 3 stride: 2 }")], "f"
    )
    ip = layer("InnerProduct", "ip", [flat], "ip", f"inner_product_param {{ num_output: 5 {xavier} }}")
    layer("EuclideanLoss", "loss", [ip, "t"], "loss")
    return "\n".join(lines)


def test_a_residual_net_in_python_is_the_executables_to_the_bit(tmp_path):
    (tmp_path / "net.prototxt").write_text(residual_net())
    settings = (
        f"net: '{tmp_path}/net.prototxt' base_lr: 0.01 lr_policy: 'fixed' momentum: 0.9 weight_decay: 0.001 "
        "iter_size: 2 random_seed: 5 clip_gradients: 3 "
    )
    same_in_both(tmp_path, settings, 7)
