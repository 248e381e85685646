"""`pip install .`: one wheel with the executable, the modules and their types."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

from pycaffe_module import PACKAGE

import conftest


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A new virtual environment in which pip has installed the source tree; required libraries are those of this
    interpreter.
    """
    if not (PACKAGE.parent / "CMakeCache.txt").is_file() or not all(map(shutil.which, ("cmake", "ninja", "protoc"))):
        pytest.skip(f"SKIPPED: {PACKAGE.parent} is no build folder, or cmake, ninja or protoc are missing")
    folder = tmp_path_factory.mktemp("wheel")
    venv.create(folder / "env", with_pip=False)
    python = folder / "env/bin/python"
    wheel = [
        sys.executable,
        *"-m pip --disable-pip-version-check wheel -q --no-deps --no-index -w".split(),
        folder,
        conftest.ROOT,
    ]
    built = {**os.environ, "CREMA_BUILD": str(PACKAGE.parent)}
    made = subprocess.run(wheel, env=built, capture_output=True, text=True, timeout=500, cwd=folder)
    assert made.returncode == 0, made.stdout + made.stderr
    install = [
        sys.executable,
        *"-m pip --disable-pip-version-check --python".split(),
        python,
        *"install -q --no-deps --no-index".split(),
        next(folder.glob("crema_spark-*.whl")),
    ]
    done = subprocess.run(install, capture_output=True, text=True, timeout=200, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    import google.protobuf
    import numpy

    paths = {
        str(os.path.dirname(os.path.dirname(numpy.__file__))),
        str(os.path.dirname(os.path.dirname(list(google.protobuf.__path__)[0]))),
    }
    return folder, python, {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run(environment, *command):
    folder, _, env = environment
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_everything_and_its_record_is_right(environment):
    with zipfile.ZipFile(next(environment[0].glob("crema_spark-*.whl"))) as wheel:
        names = set(wheel.namelist())
        info = next(n for n in names if n.endswith("METADATA")).split("/")[0]
        recorded = {line.split(",")[0] for line in wheel.read(f"{info}/RECORD").decode().splitlines()}
    assert recorded == names
    for name in (
        "caffe/__init__.py",
        "caffe/py.typed",
        "caffe/libcrema.so",
        "caffe/proto/caffe_pb2.py",
        "caffe/proto/caffe_pb2.pyi",
        "com/yahoo/ml/caffe/CaffeOnSpark.py",
        "crema/ml.py",
        "tensorflowonspark/TFCluster.py",
    ):
        assert name in names
    assert not [n for n in names if "__pycache__" in n or n.startswith(("examples", "tests"))]


def test_what_is_installed_works_away_from_the_source_tree(environment):
    python = environment[1]
    (environment[0] / "net.prototxt").write_text(
        "layer { name: 'p' type: 'Input' top: 'x' input_param { shape { dim: 2 } } }"
        "layer { name: 'q' type: 'Power' bottom: 'x' top: 'y' power_param { scale: 3 } }"
    )
    said = run(
        environment,
        python,
        "-c",
        "import caffe, crema; n = caffe.Net('net.prototxt', caffe.TEST); n.blobs['x'].data[:] = 5; "
        "print(caffe.__file__, caffe.__version__ == crema.__version__, n.forward()['y'])",
    )
    assert str(environment[0]) in said and "True [15. 15.]" in said
    libraries = run(environment, "ldd", next((environment[0] / "env/lib").rglob("libcrema.so")))
    assert str(environment[0]) in next(line for line in libraries.splitlines() if "libprotobuf" in line)
    assert "train" in run(environment, environment[0] / "env/bin/crema", "--help")


def test_a_node_starts_from_what_is_installed(environment):
    """The executable of the wheel is the one that tensorflowonspark finds."""
    said = run(
        environment,
        environment[1],
        "-c",
        "from tensorflowonspark import TFManager, TFNode, _executable\n"
        "m = TFManager.start(b'key', ['input', 'output'])\n"
        "m.get_queue('input').put([1, 2]); print(TFNode.DataFeed(m).next_batch(1), _executable.local())",
    )
    assert said.strip() == f"[[1, 2]] {environment[0] / 'env/bin/crema'}"


def test_auditwheel_names_the_same_platform(environment):
    auditwheel = conftest.ROOT / "build/auditwheel/bin/auditwheel"
    if not auditwheel.exists():
        pytest.skip("SKIPPED: auditwheel is not here: make wheel fetches it")
    wheel = next(environment[0].glob("crema_spark-*.whl"))
    said = run(environment, auditwheel, "show", wheel)
    assert wheel.name.split("-")[-1].removesuffix(".whl") in " ".join(said.split())
    assert wheel.stat().st_size < 60 << 20
