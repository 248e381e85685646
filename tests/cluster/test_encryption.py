"""What travels between the processes of a run, overheard on the loopback device."""

import os

from conftest import crema, lenet, sha256, solver
from support.overheard import Overheard


def trained(folder, *flags):
    with Overheard() as overheard:
        run = crema(
            *"train -solver solver.prototxt -ranks 2 -workers 2 -threads 1 -model model".split(), *flags, cwd=folder
        )
    assert run.code == 0, run.err[-2000:]
    return sha256(folder / "model"), overheard.text()


def test_an_encrypted_run_says_nothing_in_the_clear(records, tmp_path):
    solver(tmp_path, lenet(records), max_iter=3)
    plain_model, plain = trained(tmp_path)
    sealed_model, sealed = trained(tmp_path, "-encrypt")
    assert sealed_model == plain_model
    least = 3 * 2 * 4 * (20 * 25 + 50 * 20 * 25)  # three steps' gradients of the convolutions, each way, as floats
    assert len(sealed) > least and len(plain) > least
    host = os.uname().nodename.encode() + b" 127.0.0.1"  # as a worker introduces itself
    for word in (host, b"records of 28x28", b"CRMF"):  # the last begins each frame of a gradient
        if word in plain:
            assert word not in sealed, word
    assert host in plain and b"CRMF" in plain
