"""`-resume auto` knows the snapshots of its own job: those of another net, solver, seed or data at the same prefix, or
of other ranks, are refused, and a seed that nobody has set is the snapshot's.
"""

import os
import re
import shutil

import pytest

from conftest import ROOT, crema, lenet, make_lmdb, sha256, solver

TRAIN = "train -solver solver.prototxt -threads 1 -model model -ranks".split()


def train(folder, *flags, ranks=4):
    return crema(*TRAIN, ranks, *flags, cwd=folder)


@pytest.fixture
def begun(records, tmp_path):
    """A folder in which ten iterations are trained, with a snapshot."""
    solver(tmp_path, lenet(records), max_iter=10)
    assert train(tmp_path).code == 0
    return tmp_path


def other_data(folder, records):
    make_lmdb(folder, "train", 1003, seed=9)
    solver(folder, lenet(records).replace(f"{records}/train_lmdb", f"{folder}/train_lmdb"), max_iter=20)


OTHERS = {
    "net": lambda f, r: solver(f, lenet(r).replace('type: "xavier"', 'type: "msra"'), max_iter=20),
    "solver settings (base_lr: 0.01, here base_lr: 0.02)": lambda f, r: solver(
        f, lenet(r), max_iter=20, extra="base_lr: 0.02"
    ),
    "random_seed (1, here 2)": lambda f, r: solver(f, lenet(r), max_iter=20, extra="random_seed: 2"),
    "records": other_data,
    "net, ranks (4, here 2)": lambda f, r: solver(f, lenet(r, batch=16), max_iter=20),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("differs", OTHERS)
def test_a_snapshot_of_another_job_is_refused_and_taken_where_it_is_named(begun, records, differs, workers):
    OTHERS[differs](begun, records)
    ranks = 2 if "ranks" in differs else 4
    before = sha256(begun / "model")
    done = train(begun, "-workers", workers, "-resume", "auto", ranks=ranks)
    said = f"./snap_iter_10.solverstate is of another job, which differs in its {differs}. Give this job"
    assert done.code == 2 and f"the newest snapshot {said}" in done.message, done.err[-2000:]
    assert sha256(begun / "model") == before and not (begun / "snap_iter_20.solverstate").exists()
    done = train(begun, "-workers", workers, "-snapshot", "snap_iter_10.solverstate", ranks=ranks)
    assert done.code == 0, done.err[-2000:]
    assert f"snap_iter_10.solverstate is of another job, which differs in its {differs}; training goes on" in done.err


def test_other_workers_tests_and_lengths_are_the_same_job(begun, records, tmp_path_factory):
    settings = "test_iter: 2; test_interval: 5; snapshot: 7; display: 3; snapshot_format: HDF5"
    solver(begun, lenet(records), max_iter=20, extra=settings)
    done = train(begun, "-workers", 3, "-resume", "auto")
    assert done.code == 0 and "another job" not in done.err, done.err[-2000:]
    solver(begun, lenet(records), max_iter=25, extra=settings)
    again = train(begun, "-resume", "auto")  # from a .solverstate.h5
    assert again.code == 0 and "Resuming from ./snap_iter_20.solverstate.h5" in again.err, again.err[-2000:]
    whole = tmp_path_factory.mktemp("whole")
    solver(whole, lenet(records), max_iter=25)
    assert train(whole).code == 0
    assert sha256(begun / "model.h5") != sha256(whole / "model")  # of another format; the state tells
    solver(begun, lenet(records), max_iter=25)
    assert train(begun, "-snapshot", "snap_iter_25.solverstate.h5").code == 0
    for file in ("model", "snap_iter_25.solverstate"):
        assert sha256(begun / file) == sha256(whole / file), file


@pytest.mark.parametrize("flags", [("-resume", "auto"), ("-snapshot", "snap_iter_10.solverstate")])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_seed_that_was_drawn_is_that_of_the_snapshot(records, tmp_path, workers, flags):
    solver(tmp_path, lenet(records), max_iter=10, extra="random_seed: -1")
    first = train(tmp_path)
    seed = re.search(r"random_seed is not set: (\d+) was drawn", first.err).group(1)
    solver(tmp_path, lenet(records), max_iter=20, extra="random_seed: -1")
    done = train(tmp_path, "-workers", workers, *flags)
    assert done.code == 0 and f"that of the snapshot is taken, {seed}" in done.err, done.err[-2000:]
    resumed = sha256(tmp_path / "model")
    solver(tmp_path, lenet(records), max_iter=20, extra=f"random_seed: {seed}")
    assert train(tmp_path).code == 0 and sha256(tmp_path / "model") == resumed


@pytest.mark.parametrize("end", ["", ".h5"])
def test_a_snapshot_of_caffe_says_nothing_and_is_taken(tmp_path, end):
    golden = ROOT / "tests/goldens/caffe_snapshots"
    for name in ("net.prototxt", "solver.prototxt", f"tiny_iter_2.caffemodel{end}", f"tiny_iter_2.solverstate{end}"):
        shutil.copy(golden / name, tmp_path)
    done = crema(*"train -solver solver.prototxt -resume auto".split(), cwd=tmp_path)
    assert done.code == 0 and "does not say which job took it" in done.err, done.err[-2000:]
    assert f"Resuming from ./tiny_iter_2.solverstate{end}" in done.err


def train_with_snapshots(folder, records, end, **settings):
    """A snapshot every five iterations, of names that end in `end`; the model's hash."""
    extra = "snapshot: 5" + ("; snapshot_format: HDF5" if end else "")
    solver(folder, lenet(records), extra=extra, **settings)
    assert train(folder).code == 0
    return sha256(folder / f"model{end}")


def flip(file, at):
    """One bit of the byte there."""
    content = bytearray(file.read_bytes())
    content[at] ^= 4
    file.write_bytes(content)


@pytest.mark.parametrize("end", ["", ".h5"])
@pytest.mark.parametrize("kind", ["caffemodel", "solverstate"])
def test_a_changed_bit_is_passed_over_by_auto_and_refused_where_it_is_named(records, tmp_path, kind, end):
    whole = train_with_snapshots(tmp_path, records, end, max_iter=10)
    file = tmp_path / f"snap_iter_10.{kind}{end}"
    flip(file, file.stat().st_size // 2)  # in the values of ip1
    done = train(tmp_path, "-workers", 2, "-snapshot", f"snap_iter_10.solverstate{end}")
    assert done.code != 0 and file.name in done.message and "resume from another snapshot" in done.message
    done = train(tmp_path, "-resume", "auto")
    assert done.code == 0 and f"Resuming from ./snap_iter_5.solverstate{end}" in done.err, done.err[-2000:]
    assert sha256(tmp_path / f"model{end}") == whole


def times(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("snap_iter_*")}


@pytest.mark.parametrize("flags", [("-resume", "auto"), ("-snapshot", "snap_iter_10.solverstate")])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_snapshot_that_is_gone_on_from_is_not_written_again(begun, records, workers, flags):
    before = times(begun)
    assert len(before) == 2
    assert train(begun, "-workers", workers, *flags).code == 0  # there is nothing left to do
    assert times(begun) == before
    shutil.copy(begun / "snap_iter_10.solverstate", begun / "mine.solverstate")
    assert train(begun, "-snapshot", "mine.solverstate").code == 0  # which is another place
    assert times(begun) != before


def test_a_run_that_has_moved_goes_on_from_the_model_beside_the_state(records, tmp_path):
    """The state names its model by the place where it was written."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    solver(first, lenet(records), max_iter=10, extra=f'snapshot_prefix: "{first}/snap"')
    assert train(first).code == 0
    shutil.copytree(first, second)
    for folder in (first, second):
        solver(folder, lenet(records), max_iter=20, extra=f'snapshot_prefix: "{folder}/snap"')
    assert train(first, "-resume", "auto").code == 0
    flip(first / "snap_iter_10.caffemodel", 200_000)
    done = train(second, "-resume", "auto")
    assert done.code == 0, done.err[-2000:]
    assert sha256(second / "model") == sha256(first / "model")


def test_a_snapshot_that_cannot_be_read_is_passed_over(records, tmp_path):
    whole = train_with_snapshots(tmp_path, records, "", max_iter=10)
    (tmp_path / "snap_iter_10.caffemodel").unlink()
    (tmp_path / "snap_iter_10.caffemodel").mkdir()  # reading it fails, as on a broken disk; so does writing it
    done = train(tmp_path, "-resume", "auto")
    assert "Resuming from ./snap_iter_5.solverstate" in done.err, done.err[-2000:]
    assert "snap_iter_10.solverstate is passed over" in done.err
    (tmp_path / "snap_iter_10.caffemodel").rmdir()
    assert train(tmp_path, "-resume", "auto").code == 0 and sha256(tmp_path / "model") == whole


@pytest.mark.parametrize("workers", [1, 2])
def test_weights_that_are_not_finite_are_not_saved(begun, records, workers):
    """The loss is looked at before each update, and nobody computes one behind the last."""
    solver(begun, lenet(records), max_iter=11, extra="base_lr: 1e38; weight_decay: 1e5")
    before, model = times(begun), sha256(begun / "model")
    done = train(begun, "-workers", workers, "-snapshot", "snap_iter_10.solverstate")
    assert done.code == 2 and "not finite behind iteration 11; no model is written" in done.message, done.err[-2000:]
    assert times(begun) == before and sha256(begun / "model") == model


def test_gradients_in_a_model_are_the_sum_over_ranks_for_any_number_of_workers(records, tmp_path):
    solver(tmp_path, lenet(records), max_iter=3, extra="snapshot_diff: true")
    hashes = set()
    for workers in (1, 2, 4):
        assert train(tmp_path, "-workers", workers).code == 0
        hashes.add((sha256(tmp_path / "snap_iter_3.caffemodel"), sha256(tmp_path / "snap_iter_3.solverstate")))
    assert len(hashes) == 1


def test_a_state_that_no_file_could_hold_is_refused_before_training(tmp_path):
    (tmp_path / "net.prototxt").write_text(
        'layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 1 dim: 14000 } } }'
        'layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 20000 } }'
        'layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1 }'
    )
    (tmp_path / "solver.prototxt").write_text(
        'net: "net.prototxt" type: "Adam" base_lr: 1 momentum: 0.9 momentum2: 0.99 lr_policy: "fixed" max_iter: 1 '
        'snapshot_prefix: "snap" random_seed: 1'
    )
    done = train(tmp_path, ranks=1)
    assert done.code == 2 and "a .solverstate of 280020000 parameters takes 2136 MiB" in done.message, done.err[-2000:]
    assert "SGD" in done.message and not list(tmp_path.glob("snap_iter*"))


@pytest.mark.parametrize("end", ["", ".h5"])
@pytest.mark.parametrize("kind", ["caffemodel", "solverstate"])
def test_a_damaged_snapshot_is_passed_over_for_an_older_one(records, tmp_path, kind, end):
    whole = train_with_snapshots(tmp_path, records, end, max_iter=15)

    def cut(iteration):
        file = tmp_path / f"snap_iter_{iteration}.{kind}{end}"
        os.truncate(file, file.stat().st_size // 2)

    cut(15)
    done = train(tmp_path, "-resume", "auto")
    assert done.code == 0 and f"Resuming from ./snap_iter_10.solverstate{end}" in done.err, done.err[-2000:]
    assert f"the snapshot ./snap_iter_15.solverstate{end} is passed over: ./snap_iter_15.{kind}{end}" in done.err
    assert sha256(tmp_path / f"model{end}") == whole
    for iteration in (5, 10, 15):
        cut(iteration)
    done = train(tmp_path, "-resume", "auto")  # begins not anew
    assert done.code == 1 and f"snap_iter_15.{kind}{end}" in done.message, done.err[-2000:]
    assert "move these files away to begin anew" in done.message


def test_a_state_without_its_model_is_passed_over_and_nothing_begins_anew_over_it(records, tmp_path):
    whole = train_with_snapshots(tmp_path, records, "", max_iter=10)
    missing = "is passed over: its model ./snap_iter_10.caffemodel is missing"
    (tmp_path / "snap_iter_10.caffemodel").unlink()
    done = train(tmp_path, "-resume", "auto")
    assert done.code == 0 and missing in done.err and sha256(tmp_path / "model") == whole, done.err[-2000:]
    for model in tmp_path.glob("snap_iter_*.caffemodel"):
        model.unlink()
    before = {f: sha256(f) for f in tmp_path.glob("snap_iter_*")}
    done = train(tmp_path, "-resume", "auto")
    assert done.code == 1 and "its model ./snap_iter_10.caffemodel is missing" in done.message, done.err[-2000:]
    assert {f: sha256(f) for f in tmp_path.glob("snap_iter_*")} == before
