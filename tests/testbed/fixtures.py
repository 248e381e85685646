"""Session fixtures: daemons start when the first test asks for them and end with the session, however that ends.
Each gives the bed: `.environment(share)` and `.url(share)` for spark-submit, `.fs(share, ...)` for Hadoop's own
shell.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from .bed import Bed

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("CREMA_TESTBED_CACHE", ROOT / "build/testbed"))
VERSION = os.environ.get("CREMA_HADOOP", "3.3.4")
SPARK_HOME = pathlib.Path(os.environ.get("SPARK_HOME", ROOT / ".venv/spark-home"))
TOOLS = {"hadoop": "mvn", "azure": "npm", "s3": "mvn"}


def fetched(*parts):
    """Fetches what is missing; skips only where the tool that would fetch it is not installed."""
    done = subprocess.run(
        [str(ROOT / "scripts/testbed"), "fetch", *parts, "--hadoop", VERSION],
        capture_output=True,
        text=True,
        timeout=1500,
    )
    if done.returncode != 0:
        missing = [TOOLS[p] for p in parts if shutil.which(TOOLS[p]) is None]
        if missing:
            pytest.skip(f"{', '.join(missing)} is not installed (scripts/packages.txt, group test)")
        pytest.fail(f"scripts/testbed fetch {' '.join(parts)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


@pytest.fixture(scope="session")
def bed(tmp_path_factory):
    """The bed without daemons. The guard process reads a pipe from this process, so that a session that is killed
    leaves no daemons.
    """
    bed = Bed(tmp_path_factory.mktemp("testbed"), CACHE, SPARK_HOME, VERSION, daemons_home=ROOT / ".venv/spark-home")
    guard = subprocess.Popen(
        [
            sys.executable,
            *"-m testbed guard --dir".split(),
            str(bed.folder),
            "--cache",
            str(CACHE),
            "--spark-home",
            str(SPARK_HOME),
        ],
        cwd=ROOT / "tests",
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield bed
    finally:
        bed.down()
        guard.stdin.close()
        guard.wait(30)


def share(bed, *parts):
    fetched(*parts)
    bed.up(*parts)
    return bed


@pytest.fixture(scope="session")
def hadoop(bed):
    """HDFS and YARN."""
    return share(bed, "hadoop")


@pytest.fixture(scope="session")
def azure(bed, hadoop):
    """YARN with wasb:// as its file system."""
    return share(bed, "azure")


@pytest.fixture(scope="session")
def s3(bed, hadoop):
    """YARN and HDFS, with s3a:// configured too."""
    return share(bed, "s3")
