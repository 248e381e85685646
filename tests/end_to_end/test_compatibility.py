"""The table of promises is whole: scripts/compatibility.py makes docs/compatibility.md of it."""
import subprocess
import sys

from conftest import ROOT


def test_every_row_has_its_tests():
    done = subprocess.run([sys.executable, str(ROOT / "scripts/compatibility.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
