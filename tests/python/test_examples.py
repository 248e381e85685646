"""The notebooks and scripts of python/examples, run as a user runs them; and the zip for --py-files."""

import json
import pathlib
import subprocess
import sys
import zipfile

import pytest

from spark_session import frames, session, solver_file, submitted  # noqa: F401  fixtures

import crema
from conftest import ROOT

EXAMPLES = ROOT / "python/examples"


def execute(name, frames, monkeypatch, **settings):
    """Runs the notebook; a cell that fails or takes more than 200 s raises."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    for key, value in {
        "TRAIN_FRAME": frames["train"],
        "TEST_FRAME": frames["test"],
        "CREMA_JAR": crema.jar(),
        "PYTHONPATH": str(ROOT / "python"),
        "TMPDIR": pathlib.Path(frames["train"]).parent,
        **settings,
    }.items():
        monkeypatch.setenv(key, str(value))
    book = nbformat.read(EXAMPLES / name, as_version=4)
    nbclient.NotebookClient(
        book, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(EXAMPLES)}}
    ).execute()
    return book


def result(book, start):
    """The value that a cell shows, found by the start of its last line."""
    cell = next(c for c in book.cells if c.cell_type == "code" and c.source.rstrip().splitlines()[-1] == start)
    return next(o.data["text/plain"] for o in cell.outputs if o.output_type == "execute_result")


def test_committed_notebooks_have_no_outputs():
    books = sorted(EXAMPLES.glob("*.ipynb"))
    assert [b.name for b in books] == ["DLDemo.ipynb", "ImageCaptioning.ipynb", "NetworkDefinitionDemo.ipynb"]
    for book in books:
        assert all(
            not c.get("outputs") and not c.get("execution_count") for c in json.loads(book.read_text())["cells"]
        ), book


def test_dl_demo(session, frames, monkeypatch):
    book = execute("DLDemo.ipynb", frames, monkeypatch, ITERATIONS=120, BATCH=16)
    assert float(result(book, "learnt")) > 0.9
    right = float(result(book, "right"))
    assert right > 0.8
    shown = [o for c in book.cells if c.cell_type == "code" for o in c.outputs if "data" in o]
    assert any("image/png" in o.data for o in shown), "no plot"
    assert any(o.data.get("text/html", "").count("<img") == 5 for o in shown), "no images"


def test_network_definition_demo(session, frames, monkeypatch):
    book = execute(
        "NetworkDefinitionDemo.ipynb", frames, monkeypatch, ITERATIONS=60, BATCHES="16,32", RATES="0.01,0.001"
    )
    table = "".join(o.text for o in book.cells[-2].outputs if o.output_type == "stream" and o.name == "stdout")
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")][1:]
    grid = {(int(r[0]), float(r[1])): float(r[3]) for r in rows}
    assert set(grid) == {(b, lr) for b in (16, 32) for lr in (0.01, 0.001)}
    assert all(grid[b, 0.01] > 0.5 for b in (16, 32)), grid  # ten classes


def test_logistic_regression_through_spark_submit_and_the_zip(solver_file, tmp_path):
    archive = tmp_path / "caffeonsparkpythonapi.zip"
    for _ in range(2):
        subprocess.run(
            [sys.executable, ROOT / "scripts/python_zip", archive], check=True, timeout=60, stdout=subprocess.DEVNULL
        )
    with zipfile.ZipFile(archive) as z:
        assert {
            "com/yahoo/ml/caffe/CaffeOnSpark.py",
            "com/yahoo/ml/caffe/tools/Vocab.py",
            "com/__init__.py",
            "crema/__init__.py",
        } <= set(z.namelist())
    line = (
        f"-conf {solver_file} -model file:{tmp_path}/lenet.model -features ip1 -label label -clusterSize 1 "
        "-connection ethernet"
    )
    out = submitted(EXAMPLES / "MultiClassLogisticRegression.py", line, tmp_path, "--py-files", archive)
    words = out.split()
    assert words[2] == "200" and int(words[0]) > 180, out
