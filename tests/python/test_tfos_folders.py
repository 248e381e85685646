"""Where a node of a TensorFlow cluster keeps rows for later epochs."""

import os

import pytest

import spark_session  # noqa: F401  puts python/ on the path

from tensorflowonspark import _machine

NAMES = ("SPARK_EXECUTOR_DIRS", "LOCAL_DIRS", "SPARK_LOCAL_DIRS")


@pytest.mark.parametrize(("name", "between"), [(NAMES[0], os.pathsep), (NAMES[1], ","), (NAMES[2], ",")])
def test_rows_are_kept_where_spark_keeps_its_own(name, between, tmp_path, monkeypatch):
    for other in NAMES:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.chdir(tmp_path)
    assert _machine.work_folder() == str(tmp_path)
    (tmp_path / "disk").mkdir()
    monkeypatch.setenv(name, between.join([str(tmp_path / "none"), str(tmp_path / "disk"), str(tmp_path)]))
    assert _machine.work_folder() == str(tmp_path / "disk")
