"""The caffe package that the build made (build/release/python, or $CREMA_CAFFE), for the tests of it."""

import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from conftest import ROOT

PACKAGE = pathlib.Path(os.environ.get("CREMA_CAFFE", ROOT / "build/release/python"))
if not (PACKAGE / "caffe/libcrema.so").is_file():
    pytest.skip(f"SKIPPED: no caffe package in {PACKAGE} (cmake -DCREMA_PYTHON=ON builds it)", allow_module_level=True)
sys.path.insert(0, str(PACKAGE))
import caffe  # noqa: E402

caffe.init_log(2)  # set here and not by GLOG_minloglevel, which the executable reads too


def write(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text(text)
    return str(path)


def net(text, phase=caffe.TEST, **more):
    """A net of this text."""
    with tempfile.TemporaryDirectory() as folder:
        return caffe.Net(write(folder, "net.prototxt", text), phase, **more)


def python(program, cwd, timeout=60, **env):
    """Runs a Python program that may import caffe; the finished process."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        timeout=timeout,
        capture_output=True,
        text=True,
        env={**os.environ, "GLOG_minloglevel": "2", "PYTHONPATH": str(PACKAGE), **env},
    )
