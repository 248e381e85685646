"""The table of guarantees is complete, and a test run on any machine compares it and leaves the checkout unchanged."""

import shutil
import socket
import subprocess
import sys

import pytest

from conftest import ROOT


def script(root, *flags):
    return subprocess.run(
        [sys.executable, str(root / "scripts/compatibility.py"), *flags], capture_output=True, text=True, timeout=60
    )


def test_every_row_has_its_tests():
    done = script(ROOT, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def checkout(tmp_path):
    """A folder with the script, the tables, the pages, and reports of a run in which every test of a table passed."""
    tables = ("tests/compatibility.tsv", "tests/compatibility_tensorflow.tsv")
    for path in ("scripts/compatibility.py", "docs/compatibility.md", "docs/compatibility-tensorflow.md", *tables):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    names = {}
    for line in [line for table in tables for line in (ROOT / table).read_text().splitlines()]:
        for test in [] if line.startswith("#") or line.split("\t")[3] == "-" else line.split("\t")[3].split("; "):
            names.setdefault(test.split(":", 1)[0], set()).add(test.split(":", 1)[1])
    for kind, file in (
        ("py", "python.xml"),
        ("py4", "python-spark4.xml"),
        ("py11", "python-java11.xml"),
        ("tf", "python-tensorflow.xml"),
        ("tf4", "python-tensorflow4.xml"),
        ("scala", "scala/a.xml"),
        ("scala4", "scala-spark4/a.xml"),
        ("scalatf", "scala-tensorflow/a.xml"),
        ("cpp", "cpp/a.xml"),
    ):
        cases = "".join(
            '<testcase classname="{}" name="{}"/>'.format(*(n.split(".", 1) if kind == "cpp" else ("", n)))
            for n in sorted(names.get(kind, ()))
        )
        (tmp_path / "build/logs" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "build/logs" / file).write_text(f"<testsuite>{cases}</testsuite>")
    return tmp_path


def test_the_page_is_compared_and_written_on_request_only(checkout):
    page, reports = checkout / "docs/compatibility.md", checkout / "build/logs/python.xml"
    before = page.read_bytes()
    assert script(checkout).returncode == 0, script(checkout).stdout
    assert script(checkout, "--check").returncode == 0
    reports.write_text(reports.read_text().replace("/>", "><skipped/></testcase>"))  # another machine lacks the data
    skipped = script(checkout)
    assert skipped.returncode == 0 and page.read_bytes() == before
    assert (
        "row 1: the page says 'shown', here it was skipped\n" in skipped.stdout
        and "row 4: the page says 'shown', here it was skipped in part\n" in skipped.stdout
    ), skipped.stdout
    script(checkout, "--write")
    assert "| 1 | K | main class and jar entry | skipped |" in page.read_text() and script(checkout).returncode == 0
    # A page that guarantees less than the run has shown.
    reports.write_text(reports.read_text().replace("><skipped/></testcase>", "/>"))
    more = script(checkout)
    assert more.returncode == 1 and "--write makes it anew" in more.stdout
    page.write_bytes(before)
    reports.write_text(reports.read_text().replace("/>", "><skipped/></testcase>"))
    reports.write_text(reports.read_text().replace("<skipped/>", "<failure/>", 1))
    failed = script(checkout)
    assert failed.returncode == 1 and "FAILED" in failed.stdout and page.read_bytes() == before
    table = checkout / "tests/compatibility.tsv"
    table.write_text(table.read_text().replace("main class and jar entry", "another promise"))
    assert "docs/compatibility.md has not the rows of tests/compatibility.tsv" in script(checkout, "--check").stderr
    differs = script(checkout)
    assert differs.returncode == 1 and "--write makes it anew" in differs.stdout and page.read_bytes() == before
    script(checkout, "--write")
    assert "another promise" in page.read_text() and script(checkout).stdout.count("makes it anew") == 0


def test_two_runs_on_one_machine_have_a_network_each():
    """Azure's emulator has a fixed port; taken outside, it is free in a network of its own."""
    own = [str(ROOT / "scripts/own_network")]
    if subprocess.run([*own, "true"], capture_output=True).returncode == 71:
        pytest.skip("SKIPPED: this system gives no network of its own")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        inside = (
            "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); "
            "socket.create_connection(s.getsockname(), 5)"
        )
        assert subprocess.run([sys.executable, "-c", inside, str(port)], capture_output=True).returncode == 1
        done = subprocess.run([*own, sys.executable, "-c", inside, str(port)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
