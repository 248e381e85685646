"""The same records in LMDB, LevelDB and HDF5 give the same model, for any number of workers."""

import re
import shutil

import pytest

from conftest import crema, lenet, solver, write_idx
from training import one_outcome, resumed, weights

WAYS = ((1, 1, ""), (2, 1, ""), (3, 2, ""))


@pytest.fixture(scope="module")
def leveldbs(tmp_path_factory):
    """The records of conftest's LMDBs as a LevelDB, made from the same idx files."""
    folder = tmp_path_factory.mktemp("leveldbs")
    for name, count, seed in (("train", 1003, 1), ("test", 200, 2)):
        done = crema(
            "convert_mnist_data",
            *write_idx(folder, name, count, 28, seed),
            folder / f"{name}_lmdb",
            "-backend",
            "leveldb",
        )
        assert done.code == 0, done.err
    return folder


def run(folder, net, ways=WAYS):
    folder.mkdir()
    solver(folder, net, extra="test_iter: 10; test_interval: 10")
    outcome = one_outcome(folder, 6, ways)
    return weights(folder / "snap_iter_20.caffemodel"), outcome


def test_a_leveldb_gives_the_model_of_an_lmdb(records, leveldbs, tmp_path):
    before = {f: f.read_bytes() for f in leveldbs.rglob("*") if f.is_file()}
    lmdb, lmdb_outcome = run(tmp_path / "lmdb", lenet(records))
    for name, backend in (("said", "backend: LEVELDB"), ("unset", "")):
        found, outcome = run(tmp_path / name, lenet(leveldbs).replace("backend: LMDB", backend))
        assert found == lmdb and outcome.tests == lmdb_outcome.tests
    assert {f: f.read_bytes() for f in leveldbs.rglob("*") if f.is_file()} == before


def test_paths_beside_the_solver_are_found_by_any_number_of_workers(records, tmp_path):
    """With the command typed in another folder than the solver's, as Caffe's own examples are."""
    beside = tmp_path / "nets"
    beside.mkdir()
    done = crema("compute_image_mean", records / "train_lmdb", beside / "mean.binaryproto")
    assert done.code == 0, done.err
    for name in ("train_lmdb", "test_lmdb"):
        (beside / name).symlink_to(records / name)
    net = (
        lenet(beside)
        .replace(f"{beside}/", "")
        .replace("scale: 0.00390625", 'scale: 0.00390625 mean_file: "mean.binaryproto"')
    )
    assert 'source: "train_lmdb"' in net and net.count("mean_file") == 2, net
    solver(beside, net, max_iter=3, extra="test_iter: 2; test_interval: 3; display: 0")
    models = set()
    for workers in (1, 2):
        model = tmp_path / f"{workers}.caffemodel"
        done = crema(
            *("train", "-solver", "nets/solver.prototxt", "-ranks", 2, "-workers", workers, "-model", model),
            cwd=tmp_path,
        )
        assert done.code == 0, done.err
        models.add(model.read_bytes())
    assert len(models) == 1


def test_a_wrong_backend_names_the_remedy(records, leveldbs, tmp_path):
    for where, wrong, remedy in (
        (records, "", "say `backend: LMDB`"),
        (leveldbs, "backend: LMDB", "`backend: LEVELDB`"),
    ):
        solver(tmp_path, lenet(where).replace("backend: LMDB", wrong))
        done = crema("train", "-solver", "solver.prototxt", cwd=tmp_path)
        assert done.code != 0 and remedy in done.message and "layer 'data' (Data)" in done.message, done.err


OUTPUT = """
layer { name: "store" type: "HDF5Output" bottom: "data" bottom: "label" include { phase: TRAIN }
  hdf5_output_param { file_name: "%s" } }
"""


@pytest.fixture(scope="module")
def hdf5(records, tmp_path_factory):
    """The training records as train.h5, and in three files with their list, in the form that HDF5Output writes;
    1,003 is 17 times 59.
    """
    folder = tmp_path_factory.mktemp("hdf5")
    for name, batch, passes in (("whole", 17, 59),):
        solver(
            folder,
            lenet(records, batch=batch) + OUTPUT % f"{name}.h5",
            max_iter=passes,
            extra="display: 0; test_iter: 1; test_interval: 1000; base_lr: 0",
        )
        done = crema("train", "-solver", "solver.prototxt", cwd=folder)
        assert done.code == 0, done.err
    (folder / "list.txt").write_text("whole.h5\n")
    return folder


def from_hdf5(net, folder, more=""):
    """Changes the net so that its TRAIN layer reads the list; TEST is unchanged."""
    first = re.search(r"layer \{(?:[^{}]|\{[^{}]*\})*\}", net)[0]
    assert "TRAIN" in first
    return net.replace(
        first,
        f"""layer {{ name: "data" type: "HDF5Data" top: "data" top: "label" include {{ phase: TRAIN }}
  hdf5_data_param {{ source: "{folder}/list.txt" batch_size: 8 {more} }} }}""",
    )


def test_hdf5_rows_give_the_model_of_their_lmdb(records, hdf5, tmp_path):
    lmdb, lmdb_outcome = run(tmp_path / "lmdb", lenet(records), WAYS[:1])
    found, outcome = run(tmp_path / "hdf5", from_hdf5(lenet(records), hdf5))
    assert found == lmdb and outcome.tests == lmdb_outcome.tests


def test_shuffled_hdf5_rows_do_not_depend_on_workers_or_resuming(records, hdf5, tmp_path):
    for part in ("a", "b"):
        shutil.copy(hdf5 / "whole.h5", tmp_path / f"{part}.h5")
    (tmp_path / "list.txt").write_text("a.h5 b.h5")
    net = from_hdf5(lenet(records), tmp_path, "shuffle: true")
    found, outcome = run(tmp_path / "run", net)
    solver(tmp_path / "run", net, extra="test_iter: 10; test_interval: 10; snapshot: 10")
    again = resumed(tmp_path / "run", 6, (10, 3), 2)
    assert again.model == outcome.model
    assert found != run(tmp_path / "in order", from_hdf5(lenet(records), tmp_path), WAYS[:1])[0]


def test_output_of_several_ranks_is_rank_0s(records, hdf5, tmp_path):
    solver(
        tmp_path, lenet(records) + OUTPUT % "out.h5", max_iter=5, extra="display: 0; test_iter: 1; test_interval: 1000"
    )
    outcomes = set()
    for workers in (1, 2, 4):
        done = crema("train", "-solver", "solver.prototxt", "-ranks", 4, "-workers", workers, cwd=tmp_path)
        assert done.code == 0, done.err
        outcomes.add((tmp_path / "out.h5").read_bytes())
    assert len(outcomes) == 1


def test_a_damaged_file_ends_a_run_with_its_name(records, hdf5, tmp_path):
    whole = (hdf5 / "whole.h5").read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "list.txt").write_text("cut.h5")
    solver(tmp_path, from_hdf5(lenet(records), tmp_path))
    for workers in (1, 2):
        done = crema("train", "-solver", "solver.prototxt", "-workers", workers, "-ranks", 2, cwd=tmp_path)
        assert (
            done.code != 0
            and "cut.h5 cannot be read as HDF5 data" in done.err
            and "layer 'data' (HDF5Data)" in done.err
        ), done.err
