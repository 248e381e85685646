"""What a run is for: a net that has learnt."""

import re

import pytest

from conftest import MNIST, ROOT, crema


def test_lenet_learns_mnist_to_99_percent(tmp_path):
    """With the example's solver, which is quickstart's, on all of MNIST: the accuracy on all 10,000 test records."""
    if not (MNIST / "train_lmdb/data.mdb").exists():
        pytest.fail(f"there is no MNIST in {MNIST}: ./runtests fetches it, or CREMA_DATA names its folder")
    net = (ROOT / "examples/lenet_train_test.prototxt").read_text().replace("data/mnist_", f"{MNIST}/")
    (tmp_path / "net.prototxt").write_text(net)
    solver = (ROOT / "examples/lenet_memory_solver.prototxt").read_text()
    for field, value in (("net", '"net.prototxt"'), ("test_iter", 100), ("test_interval", 2000)):
        solver = re.sub(rf"^{field}: .*", f"{field}: {value}", solver, flags=re.M)
    (tmp_path / "solver.prototxt").write_text(solver)
    done = crema("train", "-solver", "solver.prototxt", "-model", "model", cwd=tmp_path, timeout=400)
    assert done.code == 0, done.err[-2000:]
    accuracies = [float(a) for a in re.findall(r"Test net output #0: accuracy = ([\d.]+)", done.err)]
    assert accuracies[0] < 0.5 and accuracies[-1] >= 0.99, accuracies
