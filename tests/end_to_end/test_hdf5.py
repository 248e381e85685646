"""HDF5 models and snapshots: file names, log lines, the same bits as the binary format, damaged files."""

import os
import re
import subprocess

import pytest

from conftest import CREMA, crema, lenet, sha256, solver

HDF5 = "snapshot_format: HDF5; snapshot: 10"


def train(folder, *flags):
    done = crema("train", "-solver", "solver.prototxt", *flags, cwd=folder)
    assert done.code == 0, done.err[-3000:]
    return done.err


def scores(folder, weights):
    done = crema("test", "-model", "net.prototxt", "-weights", weights, "-iterations", 10, cwd=folder)
    assert done.code == 0, done.err[-2000:]
    return re.findall(r"(?:accuracy|loss|Loss:)[ =]+[\d.]+", done.err, re.I)


@pytest.fixture
def run(records, tmp_path):
    solver(tmp_path, lenet(records), extra=HDF5)
    return tmp_path


def test_names_lines_and_final_model(run):
    log = train(run, "-model", "final.caffemodel")
    for line in (
        r"Snapshotting to HDF5 file snap_iter_10\.caffemodel\.h5",
        r"Snapshotting solver state to HDF5 file snap_iter_20\.solverstate\.h5",
        r"Final model: final\.caffemodel\.h5",
    ):
        assert re.search(line, log), line
    assert sorted(p.name for p in run.iterdir() if p.suffix != ".prototxt") == [
        "final.caffemodel.h5",
        "snap_iter_10.caffemodel.h5",
        "snap_iter_10.solverstate.h5",
        "snap_iter_20.caffemodel.h5",
        "snap_iter_20.solverstate.h5",
    ]
    assert sha256(run / "final.caffemodel.h5") == sha256(run / "snap_iter_20.caffemodel.h5")
    solver(run, (run / "net.prototxt").read_text())
    train(run, "-model", "final2.caffemodel.h5", "-workers", 2, "-ranks", 2)
    assert (run / "final2.caffemodel").exists() and not (run / "final2.caffemodel.h5").exists()


def test_one_hash_for_workers_resuming_and_formats(run):
    files = ["snap_iter_20.caffemodel.h5", "snap_iter_20.solverstate.h5"]
    hashes = []
    for flags in (
        ("-workers", 1),
        ("-workers", 2),
        ("-snapshot", "snap_iter_10.solverstate.h5"),
        ("-workers", 2, "-snapshot", "snap_iter_10.solverstate.h5"),
    ):
        train(run, "-ranks", 2, *flags)
        hashes.append([sha256(run / f) for f in files])
        for f in files:
            (run / f).unlink()
    assert all(h == hashes[0] for h in hashes), hashes
    solver(
        run, (run / "net.prototxt").read_text()
    )  # a binary run resumes from the HDF5 snapshot, and the other way round
    train(run, "-ranks", 2, "-snapshot", "snap_iter_10.solverstate.h5")
    (run / "snap_iter_10.solverstate.h5").unlink()
    solver(run, (run / "net.prototxt").read_text(), max_iter=10, extra="")
    train(run, "-ranks", 2)
    solver(run, (run / "net.prototxt").read_text(), extra=HDF5)
    train(run, "-ranks", 2, "-snapshot", "snap_iter_10.solverstate")
    assert [sha256(run / f) for f in files] == hashes[0]
    assert scores(run, "snap_iter_20.caffemodel") == scores(run, "snap_iter_20.caffemodel.h5") != []


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def field(number, value):
    return (
        varint(number << 3) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | 2) + varint(len(value)) + value
    )


def first_field(message):
    """Field 1 of a length-delimited message whose first field it is: Plan.solver."""

    def number(at):
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 128:
                return value, at

    _, at = number(0)
    assert message[at] == 1 << 3 | 2
    size, at = number(at + 1)
    return message[at : at + size]


def test_rows_scored_with_either_format_are_the_same(run):
    train(run)
    solver(run, (run / "net.prototxt").read_text(), extra="test_iter: 10; test_interval: 10")
    train(run, "-snapshot", "snap_iter_20.solverstate.h5")  # nothing is left to do but to write the binary model
    assert (run / "snap_iter_20.caffemodel").exists()
    plan = subprocess.run(
        [CREMA, "plan", "-wire", "-solver", "solver.prototxt"], cwd=run, capture_output=True, timeout=60
    )
    assert plan.returncode == 0, plan.stderr
    rows = []
    for weights in (
        "snap_iter_20.caffemodel",
        " snap_iter_20.caffemodel.h5 ",
        "snap_iter_10.caffemodel.h5,snap_iter_20.caffemodel.h5",
    ):
        job = field(1, first_field(plan.stdout)) + field(11, weights.encode())
        child = subprocess.Popen(
            [CREMA, "score"], cwd=run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        child.stdin.write(varint(len(job)) + job)
        child.stdin.flush()  # left open, as its end would end the child
        out = child.stdout.read()
        assert child.wait(60) == 0, child.stderr.read()
        rows.append(out[:-30])  # the last event contains the time
        child.stdin.close()
    assert len(rows[0]) > 1000 and rows[0] == rows[1] == rows[2]


def test_lists_in_flag_and_solver(run):
    train(run)
    log = train(run, "-weights", " snap_iter_20.caffemodel.h5 , snap_iter_10.caffemodel.h5")
    assert re.findall(r"Finetuning from (\S+)", log) == ["snap_iter_20.caffemodel.h5", "snap_iter_10.caffemodel.h5"]
    elsewhere = run / "elsewhere"
    elsewhere.mkdir()
    solver(
        run,
        (run / "net.prototxt").read_text(),
        extra='weights: "snap_iter_20.caffemodel.h5 , snap_iter_10.caffemodel.h5"',
    )
    done = crema("train", "-solver", "../solver.prototxt", cwd=elsewhere)  # relative to the solver
    assert done.code == 0 and len(re.findall("Finetuning from", done.err)) == 2, done.err[-2000:]
    assert (
        crema(
            "time", "-model", "net.prototxt", "-iterations", 1, "-weights", "snap_iter_20.caffemodel.h5", cwd=run
        ).code
        == 0
    )


def test_damaged_and_mistaken_files_are_sentences(run):
    train(run)
    model, state = (run / f"snap_iter_20.{kind}.h5" for kind in ("caffemodel", "solverstate"))
    cut = run / "cut.h5"
    cut.write_bytes(model.read_bytes()[:-5000])
    cases = (
        (("train", "-snapshot", cut), "truncated file"),
        (("train", "-weights", cut), "truncated file"),
        (("train", "-weights", state), "pass it with -snapshot"),
        (("train", "-snapshot", model), "pass it with -weights"),
    )
    for (command, *flags), cause in cases:
        done = crema(command, "-solver", "solver.prototxt", *flags, cwd=run)
        assert done.code not in (0, 70) and cause in done.message and str(flags[1]) in done.message, done.err[-1500:]


def test_the_host_is_told_the_name_that_was_written(run):
    """Event.Done.model of a worker, as the JVM reads it; coordinator and worker each get a Job on stdin."""
    plan = subprocess.run(
        [CREMA, "plan", "-wire", "-solver", "solver.prototxt"], cwd=run, capture_output=True, timeout=60
    )
    job = (
        field(1, first_field(plan.stdout))
        + field(2, 1)
        + field(3, 1)
        + field(8, b"0123456789abcdef")
        + field(7, b"127.0.0.1")
    )
    started = []

    def start(command, message):
        child = subprocess.Popen(
            [CREMA, command, "-job", "-"],
            cwd=run,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(child)
        child.stdin.write(varint(len(message)) + message)
        child.stdin.flush()
        return child

    try:
        address = re.search(rb"127\.0\.0\.1:\d+", os.read(start("coordinator", job).stdout.fileno(), 1000)).group(0)
        worker = start("worker", job + field(4, 0) + field(6, address) + field(13, b"told.caffemodel"))
        events = worker.stdout.read()
        assert worker.wait(60) == 0, worker.stderr.read()
        assert events.count(field(2, b"told.caffemodel.h5")) == 1, events
        assert (run / "told.caffemodel.h5").exists() and not (run / "told.caffemodel").exists()
    finally:
        for child in started:
            child.kill()
            child.communicate(timeout=10)
