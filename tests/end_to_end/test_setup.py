"""The set-up scripts: an interrupted one ends, and half-made files are not taken for complete."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

from conftest import ROOT, children


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def everything_below(pid):
    found = list(children(pid))
    for child in list(found):
        found += everything_below(child)
    return found


def test_an_interrupted_step_ends_with_all_that_it_started():
    shell = subprocess.Popen(
        [
            "bash",
            "-c",
            "source scripts/lib.sh; step test-interrupt 'sleeping' timeout 300 bash -c 'sleep 200 & sleep 200'; echo "
            "went on",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.time() + 20
    while (
        time.time() < deadline
        and sum("sleep" in pathlib.Path(f"/proc/{p}/comm").read_text() for p in everything_below(shell.pid) if alive(p))
        < 2
    ):
        time.sleep(0.1)
    below = everything_below(shell.pid)
    assert len(below) >= 4, below
    shell.send_signal(signal.SIGTERM)
    out, err = shell.communicate(timeout=20)
    assert shell.returncode == 130 and "went on" not in out and "interrupted; run the same command again" in err
    deadline = time.time() + 5
    while time.time() < deadline and any(map(alive, below)):
        time.sleep(0.1)
    assert not [p for p in below if alive(p)]


def test_a_jar_that_was_being_written_is_made_anew(tmp_path):
    """With a stand-in for maven that writes half a jar and dies, and then a whole one."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/lib.sh", tmp_path / "scripts")
    for path in ("spark/src/main/x.scala", "spark/pom.xml", "proto/x.proto", "build/release/cli/crema", ".venv/x"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    maven = tmp_path / "bin/mvn"
    maven.parent.mkdir()
    jar = tmp_path / "spark/target/3.5_2.12/crema-spark-3.5_2.12-0.1.0.jar"

    def build(script):
        maven.write_text(f"#!/bin/bash\nmkdir -p {jar.parent}\n{script}\n")
        maven.chmod(0o755)
        return subprocess.run(
            ["bash", "-c", "source scripts/lib.sh; build_jar; echo made $JAR"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PATH": f"{maven.parent}:{os.environ['PATH']}"},
        )

    assert build(f"printf half > {jar}; kill -9 $$").returncode == 1
    assert jar.read_text() == "half"
    done = build(f"printf whole > {jar}")
    assert done.returncode == 0 and jar.read_text() == "whole", done.stderr
    # Nothing has changed, so it is not made again.
    assert build(f"printf again > {jar}").returncode == 0 and jar.read_text() == "whole"
    os.utime(tmp_path / "spark/pom.xml", (time.time() + 5, time.time() + 5))
    assert build(f"printf again > {jar}").returncode == 0 and jar.read_text() == "again"
