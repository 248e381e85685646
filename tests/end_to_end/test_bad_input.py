"""Bad input gives a message that names the place, the cause and the remedy, a non-zero exit code, and no
half-written file.
"""

import os
import shutil

import pytest

from conftest import crema, lenet, make_lmdb, solver


def refused(folder, *flags):
    before = sorted(p.name for p in folder.iterdir())
    done = crema("train", "-solver", "solver.prototxt", *flags, cwd=folder, timeout=60)
    assert done.code not in (0, 70) and done.code > 0, done.err[-2000:]
    assert sorted(p.name for p in folder.iterdir()) == before, "something was left behind"
    assert done.message, done.err[-2000:]
    return done.message


NETS = {
    "malformed": (("num_output: 20", "num_output: twenty"), ["net.prototxt:38:17: Expected integer, got: twenty"]),
    "unknown field": (
        ("num_output: 20", "num_outputs: 20"),
        ["net.prototxt:38:16", 'no field named "num_outputs"', "did you mean num_output?"],
    ),
    "unknown layer type": (
        ('type: "ReLU"', 'type: "Rectify"'),
        ["Unknown layer type: Rectify (known types: AbsVal, Accuracy, ArgMax,", "in layer 'relu1'", "net.prototxt"],
    ),
    "unknown bottom": (
        ('bottom: "conv2"', 'bottom: "conv9"'),
        ["Unknown bottom blob 'conv9' (layer 'pool2', bottom index 0)", "conv1, conv2, data"],
    ),
    "kernel too large": (
        ("kernel_size: 5", "kernel_size: 50"),
        ["kernel 50x50", "28x28", "in layer 'conv1' (Convolution)", "use a smaller kernel_size"],
    ),
    "too few classes": (
        ("num_output: 10", "num_output: 5"),
        [
            "is not a class: there are 5 classes",
            "layer 'loss'",
            "num_output",
            "of layer 'data' is record",
            "train_lmdb",
        ],
    ),
    "dilation beyond an int": (
        ("kernel_size: 5", "kernel_size: 3 dilation: 1073741825"),
        ["dilation must be 1 to 16777216, not 1073741825", "conv1"],
    ),
    "no kernel": (("kernel_size: 5", "kernel_size: 0"), ["kernel_size must be 1 to 16777216, not 0", "'conv1'"]),
    "no kernel on one side": (
        ("kernel_size: 5", "kernel_h: 5 kernel_w: 0"),
        ["kernel_w must be 1 to 16777216, not 0", "'conv1'"],
    ),
    "outputs beyond an int": (("num_output: 20", "num_output: 4000000000"), ["num_output", "4000000000", "conv1"]),
    "no database": (
        ("train_lmdb", "nope_lmdb"),
        ["there is no LMDB at", "nope_lmdb", "layer 'data'", "check `source`"],
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_nets(records, tmp_path, name):
    (old, new), words = NETS[name]
    net = lenet(records)
    assert old in net
    solver(tmp_path, net.replace(old, new))
    message = refused(tmp_path)
    for w in words:
        assert w in message, message


SOLVERS = {
    "solver_mode: GPU": ["Cannot use GPU in CPU-only Caffe: check mode.", "solver_mode: CPU", "solver.prototxt"],
    'lr_policy: "magic"': ["Unknown learning rate policy: 'magic'", "multistep"],
    'type: "Adamant"': ["Unknown solver type: Adamant"],
    "base_lr: 1e20": ["the loss is", "in iteration", "layer '", "Lower base_lr"],
    'snapshot_prefix: "no/such/snap"': ["no/such/snap", "No such file or directory", "make the folder first"],
    'net: "nothere.prototxt"': ["nothere.prototxt", "No such file or directory"],
    "test_iter: -1; test_interval: 5": ["test_iter must not be negative"],
}


@pytest.mark.parametrize("extra", SOLVERS)
def test_solvers(records, tmp_path, extra):
    solver(tmp_path, lenet(records), extra=extra)
    message = refused(tmp_path)
    for w in SOLVERS[extra]:
        assert w in message, message


def test_databases(records, tmp_path):
    whole = (records / "train_lmdb/data.mdb").read_bytes()
    other = make_lmdb(tmp_path, "other", 30, side=12)
    for name, content, words in (
        ("foreign", os.urandom(40000), "is no LMDB"),
        ("truncated", whole[: len(whole) // 2], "is truncated"),
        ("empty", b"", "data.mdb"),
        ("shape", None, "in layer 'conv2' (Convolution)"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        if content is not None:
            (folder / "db").mkdir()
            (folder / "db/data.mdb").write_bytes(content)
        source = folder / "db" if content is not None else other
        solver(folder, lenet(records).replace(str(records / "train_lmdb"), str(source)))
        message = refused(folder)
        assert words in message and str(source) in message or name == "shape" and words in message, message


def test_a_test_set_of_another_shape_is_refused_before_training(records, tmp_path):
    """(A single record of another shape is tested in engine/data/data_test.cc.)"""
    small = make_lmdb(tmp_path, "small", 20, side=12)
    solver(
        tmp_path, lenet(records).replace(str(records / "test_lmdb"), str(small)), extra="test_iter: 1; test_interval: 5"
    )
    message = refused(tmp_path)
    assert "layer 'conv2'" in message and "use a smaller kernel_size" in message, message


def test_fewer_records_than_ranks(records, tmp_path):
    solver(tmp_path, lenet(records))
    message = refused(tmp_path, "-ranks", 1004)
    assert "Insufficient training data. Please adjust hyperparameters or increase dataset." in message, message
    assert "1003 records for 1004 ranks" in message, message


def test_weights_and_states(records, tmp_path):
    solver(tmp_path, lenet(records), max_iter=2)
    assert crema("train", "-solver", "solver.prototxt", "-model", "good", cwd=tmp_path).code == 0
    (tmp_path / "junk").write_bytes(os.urandom(500))
    (tmp_path / "half").write_bytes((tmp_path / "good").read_bytes()[:5000])
    solver(tmp_path, lenet(records).replace("num_output: 50", "num_output: 40"))
    message = refused(tmp_path, "-weights", "good")
    assert (
        "Cannot copy param 0 weights from layer 'conv2'; shape mismatch.  Source param shape is 50 20 5 5 (25000); "
        "target param shape is 40 20 5 5" in message
    )
    (tmp_path / "empty").write_bytes(b"")
    for flags, words in (
        (("-weights", "junk"), "junk is damaged"),
        (("-weights", "empty"), "empty holds no layers"),
        (("-weights", "half"), "half is damaged"),
        (("-weights", "none"), "cannot open none"),
        (("-snapshot", "junk"), "junk is damaged"),
        (("-snapshot", "good", "-weights", "good"), "but not both"),
    ):
        message = refused(tmp_path, *flags)
        assert words in message, message


def test_weights_that_fit_no_layer(records, tmp_path):
    """Weights that reach no layer would silently leave the fillers' random values. All files together must give at
    least one layer its values; renaming some layers is fine-tuning.
    """
    solver(tmp_path, lenet(records), max_iter=2)
    assert crema("train", "-solver", "solver.prototxt", "-model", "good", cwd=tmp_path).code == 0
    other = lenet(records)
    for name in ("conv1", "conv2", "ip1", "ip2"):
        other = other.replace(f'name: "{name}"', f'name: "my_{name}"')
    solver(tmp_path, other, max_iter=2)
    words = (
        "the weights good fit no layer of net 'LeNet': they are for conv1, conv2, ip1, ip2, and the net has "
        "my_conv1, my_conv2, my_ip1, my_ip2; name the weights of this net"
    )
    assert words in refused(tmp_path, "-weights", "good")
    assert words in refused(tmp_path, "-weights", "good", "-ranks", "2", "-workers", "2")
    (tmp_path / "own").mkdir()
    assert crema("train", "-solver", "solver.prototxt", "-model", "own/good", cwd=tmp_path).code == 0
    assert crema("train", "-solver", "solver.prototxt", "-weights", "good,own/good", cwd=tmp_path).code == 0
    test = crema("test", "-model", "net.prototxt", "-weights", "good", "-iterations", 1, cwd=tmp_path)
    assert test.code == 2 and words in test.message, test.err
    solver(tmp_path, lenet(records).replace('name: "ip2"', 'name: "my_ip2"'), max_iter=2)
    assert crema("train", "-solver", "solver.prototxt", "-weights", "good", cwd=tmp_path).code == 0
    test = crema("test", "-model", "net.prototxt", "-weights", "good", "-iterations", 1, cwd=tmp_path)
    assert (
        test.code == 0
        and test.err.count("good has no values for my_ip2: the random values of their fillers enter the results") == 1
    ), test.err


def test_a_net_is_no_solver(records, tmp_path):
    solver(tmp_path, lenet(records))
    message = crema("train", "-solver", "net.prototxt", cwd=tmp_path).message
    assert "net.prototxt is a net, and a solver is needed; name the file whose `net` names this one" in message, message
    solver(tmp_path, lenet(records).replace("num_output: 20", "num_outptu: 20"))
    assert 'has no field named "num_outptu"; did you mean num_output?' in refused(tmp_path)


def test_flags(records, tmp_path):
    solver(tmp_path, lenet(records))
    for flags, words in (
        (("-gpu", "0"), "Cannot use GPU in CPU-only Caffe: check mode."),
        (("-isa", "sse"), "-isa must be avx2"),
        (("-workers", "2"), "at most as many as ranks; name more ranks"),
        (("-sigint_effect", "dance"), "sigint_effect"),
        (("-ranks", "2000000000"), "-ranks must be 1 to 65536"),
        (("-threads", "-4"), "-threads must be 0"),
        (("-threads", "99999"), "-threads must be 0"),
        (("-join_timeout", "nan"), "-join_timeout must be a positive number"),
        (("-step_timeout", "-1"), "-step_timeout must be"),
        (("-level", "x"), "level"),
        (("-frobnicate", "1"), "frobnicate"),
    ):
        assert words in refused(tmp_path, *flags)
    assert "there is no command 'frob'" in crema("frob").err
    assert crema("train").code == 2


def test_a_full_disk_while_snapshotting(records, tmp_path):
    """A real file system of 1 MiB, where mounting one is allowed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=1m tmpfs {disk} 2>/dev/null") != 0:
        pytest.skip("SKIPPED: no right to mount a small disk here")
    try:
        solver(tmp_path, lenet(records), extra='snapshot_prefix: "disk/snap"')
        done = crema("train", "-solver", "solver.prototxt", cwd=tmp_path)
        assert done.code == 1 and "No space left on device" in done.message and "disk/snap_iter_20" in done.message, (
            done.message
        )
        assert list(disk.iterdir()) == []
    finally:
        os.system(f"umount {disk}")


def test_a_model_follows_links_and_never_replaces_a_device(records, tmp_path):
    solver(tmp_path, lenet(records), max_iter=1, extra="snapshot_after_train: false")
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert crema("train", "-solver", "solver.prototxt", "-model", "link", cwd=tmp_path).code == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").stat().st_size > 1700000
    if os.geteuid() == 0 and os.system(f"mknod {tmp_path}/full c 1 7") == 0:
        done = crema("train", "-solver", "solver.prototxt", "-model", "full", cwd=tmp_path)
        assert done.code == 1 and "No space left on device" in done.message, done.message
        assert (tmp_path / "full").is_char_device()
    folder = crema("train", "-solver", "solver.prototxt", "-model", tmp_path, cwd=tmp_path)
    assert folder.code == 1 and "it is a folder" in folder.message and "Iteration" not in folder.err


def test_conversion(records, tmp_path):
    images, labels = records / "train-images", records / "train-labels"
    for flags, words in (
        ((labels, images), "are the two files in the right order?"),
        ((images, tmp_path / "none"), "cannot open"),
        ((images, records / "test-labels"), "different sets"),
    ):
        done = crema("convert_mnist_data", *flags, tmp_path / "db")
        assert done.code == 1 and words in done.message, done.message
        assert not list(tmp_path.glob("db*"))
    cut = tmp_path / "cut"
    cut.write_bytes(images.read_bytes()[:-7])
    done = crema("convert_mnist_data", cut, labels, tmp_path / "db")
    assert done.code == 1 and "promises 1003 images" in done.message, done.message
    shutil.copytree(records / "train_lmdb", tmp_path / "db")
    assert "already" in crema("convert_mnist_data", images, labels, tmp_path / "db").message
