"""A solver that solves in one thread, and what other threads see of it."""

import threading

import pytest

from pycaffe_module import caffe, net

from test_pycaffe_solver import BASE, NET, solver_file, weights


def test_another_thread_reads_the_iteration_at_once_and_saves_when_the_steps_are_done(tmp_path):
    solver = caffe.SGDSolver(solver_file(tmp_path))
    reached, go_on = threading.Event(), threading.Event()

    def hold_the_fourth():
        if solver.iter == 3:
            reached.set()
            assert go_on.wait(30)

    solver.add_callback(hold_the_fourth, lambda: None)
    steps = threading.Thread(target=solver.step, args=(6,))
    saves = threading.Thread(target=solver.net.save, args=(tmp_path / "w.caffemodel",))
    steps.start()
    assert reached.wait(30)
    assert solver.iter == 3
    saves.start()
    saves.join(0.3)
    assert saves.is_alive(), "weights were saved in the middle of a step"
    go_on.set()
    for thread in (steps, saves):
        thread.join(30)
        assert not thread.is_alive()
    again = net(NET, weights=str(tmp_path / "w.caffemodel"))
    assert solver.iter == 6
    assert all((p.data == w).all() for p, w in zip(again.params["ip"], weights(solver)))


def test_another_thread_reads_blobs_between_iterations_and_while_a_callback_runs(tmp_path):
    solver = caffe.SGDSolver(solver_file(tmp_path, BASE.replace("max_iter: 10", "max_iter: 1000000")))
    read, looked, seen = [], [], threading.Event()

    def watch():
        while len(read) < 200:
            read.append((solver.net.params["ip"][0].data.copy(), solver.net.blobs["x"].shape[0], solver.iter))
        seen.set()

    def look():  # a callback that waits for a thread which looks at the net, and uses the net itself
        if solver.iter == 2:
            other = threading.Thread(target=lambda: looked.append(solver.net.params["ip"][0].data.copy()))
            other.start()
            other.join(30)
            assert not other.is_alive()
            solver.net.forward()
        if seen.is_set() and solver.iter > 2:
            raise StopIteration

    solver.add_callback(look, lambda: None)
    thread = threading.Thread(target=watch)
    thread.start()
    with pytest.raises(StopIteration):
        solver.solve()
    thread.join(30)
    assert not thread.is_alive() and len(read) == 200 and len(looked) == 1
    assert all(shape == 6 for _, shape, _ in read)
